// SPDX-License-Identifier: Apache-2.0
//
// Where a link of the model may lead, and which of its pictures may be loaded. Everything else is drawn as text.
//
// To allow one more scheme: a word in the pattern of `address`.

// The address, if a link may lead there: a full one, or a path of this server.
export function address(href: string): URL | undefined {
  href = href.replace(/^<(.*)>$/, '$1');
  const url = URL.parse(href, location.href);
  return url && /^(https?|mailto|tel):/.test(url.href) && (URL.canParse(href) || (href[0] === '/' && url.origin === location.origin)) ? url : undefined;
}

// Pictures are files of this server only: loading one from elsewhere would tell its owner what was read here, and one that
// never ends would hold up everything else.
export const ours = ({ href }: URL): boolean => href.startsWith(new URL('api/v1/agent/attachments/', document.baseURI).href);

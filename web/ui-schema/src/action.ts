// SPDX-License-Identifier: Apache-2.0
//
// Actions: which ones a button may have, where an address leads, and the two that the element does by itself.
//
// The server lets only good addresses through. They are looked at again, since a card may come from anywhere, by the
// browser's own parser: what it would open is what is judged and shown.
//
// To add an action: a row in `NEEDS`; a type in types.ts.

import type { Action, Fields } from './types.js';

export const isText = (value: unknown): value is string => typeof value === 'string';
export const isFields = (value: unknown): value is Fields => !!value && typeof value === 'object' && !Array.isArray(value);

// What a table has for a word that may be anything.
export const pick = <T>(table: { [word: string]: T }, word: unknown): T | false | undefined =>
  isText(word) && Object.hasOwn(table, word) && table[word];

// Where an address leads, if it is one of http, https, mailto or tel.
export function linkOf(address: unknown): URL | false | null {
  const url = isText(address) && URL.parse(address, location.href);
  return url && /^(https?|mailto|tel):/.test(url.href) && url;
}

// What each type cannot be without: an object for `payload`, an address for `url`, a text for the others.
const NEEDS: { [type in Action['type']]: string } = {
  navigation: 'path', url: 'url', event: 'event', tool: 'toolId', copy: 'content', payload: 'payload',
};

// The action of a button, or nothing if it is one that no host should get.
export function actionOf(action: Fields): Action | undefined {
  const { type } = action, field = pick(NEEDS, type), fits = type === 'payload' ? isFields : type === 'url' ? linkOf : isText;
  return field && fits(action[field]) ? action as Action : undefined;
}

// A new tab knows nothing of us: no referrer means no opener too.
export function open({ href }: URL, target: unknown): void {
  if (/^http/.test(href) && target !== '_self') window.open(href, '_blank', 'noreferrer');
  else location.assign(href);
}

// Whether the text is in the clipboard now. The second way is for pages without https.
export async function copy(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const { oncopy } = document;
    document.oncopy = (event) => {
      event.clipboardData!.setData('text/plain', text);
      event.preventDefault();
    };
    const done = document.execCommand('copy');
    document.oncopy = oncopy;
    return done;
  }
}

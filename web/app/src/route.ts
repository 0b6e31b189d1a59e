// SPDX-License-Identifier: Apache-2.0
//
// Where in the page we are: behind the #, so that it works under any path prefix and without the server's help.
//
//     #/            a new conversation        #/inbox       what waits for this person
//     #/t/ID        that conversation         #/settings    settings
//     #/t/ID/ASKED  and there, what is asked

import { signal } from '@preact/signals';

export interface Route {
  view: 'chat' | 'inbox' | 'settings';
  threadId?: string;
  asked?: string; // interaction to bring into sight
}

function parse(hash: string): Route {
  try {
    const [view, threadId, asked] = hash.slice(2).split('/').map(decodeURIComponent);
    if (view === 'inbox' || view === 'settings') return { view };
    if (view === 't' && threadId) return { view: 'chat', threadId, asked };
  } catch {
    // not an address of ours
  }
  return { view: 'chat' };
}

export const route = signal<Route>(parse(location.hash));
addEventListener('hashchange', () => { route.value = parse(location.hash); });

export const hrefOf = ({ view, threadId, asked }: Route): string =>
  `#/${(view !== 'chat' ? [view] : threadId ? ['t', threadId, ...asked ? [asked] : []] : []).map(encodeURIComponent).join('/')}`;

export function go(to: Route, { replace = false } = {}): void {
  if (replace) {
    history.replaceState(null, '', hrefOf(to));
    route.value = to;
  } else location.hash = hrefOf(to);
}

// SPDX-License-Identifier: Apache-2.0
//
// Where in the page we are: behind the #, so that it works under any path prefix and without the server's help.
//
//     #/            a new conversation        #/inbox       what waits for this person
//     #/t/ID        that conversation         #/settings    settings
//     #/t/ID/ASKED  and there, what is asked
//
// A ? and what follows it are parameters, for whoever reads them; they do not change where it is.

import { signal } from '@preact/signals';

export interface Route {
  view: 'chat' | 'inbox' | 'settings';
  threadId?: string;
  asked?: string; // interaction to bring into sight
}

// The place of this path; undefined: there is none.
export function placeOf(path: string): Route | undefined {
  try {
    const [view = '', threadId, asked, more] = path.split('/').map(decodeURIComponent);
    if (view === 'inbox' || view === 'settings') return { view };
    if (view === 't' && threadId && more === undefined) return { view: 'chat', threadId, asked };
    if (!view && threadId === undefined) return { view: 'chat' };
  } catch {
    // not an address of ours
  }
  return undefined;
}

const parse = (hash: string): Route => placeOf(hash.slice(2).split('?')[0]!) ?? { view: 'chat' };

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

// SPDX-License-Identifier: Apache-2.0
//
// What is fetched when it is first needed: a part of the page, the words of a language. Once it is there it stays.
//
//     begin ──► there
//       ▲  ├──► lost: the server did not answer ──┐   old: it answers, and does not have it: another version of the
//       │  └──► old                               │   page is there now, to be loaded
//       └── a press, or the network is back ◄─────┘
//
// Some browsers remember that a module could not be fetched and do not ask again: then it is `old` as well, and loading the
// page helps.

import { signal, type ReadonlySignal } from '@preact/signals';

export type Why = 'lost' | 'old';

export interface Later<T> {
  it: ReadonlySignal<T | undefined>;
  why: ReadonlySignal<Why | undefined>; // it is not there, after it was tried
  begin(): Promise<void>; // never fails
}

const lost = new Set<() => void>();

export function later<T>(load: () => Promise<T>): Later<T> {
  const it = signal<T>(), why = signal<Why>();
  let trying: Promise<void> | undefined;
  const attempt = async (): Promise<void> => {
    lost.delete(begin);
    try {
      it.value = await load();
      why.value = undefined;
    } catch (error) {
      console.error(error);
      why.value = await isThere() ? 'old' : 'lost';
      if (why.value === 'lost') lost.add(begin);
    }
    trying = undefined;
  };
  const begin = (): Promise<void> => (it.peek() ? Promise.resolve() : trying ??= attempt());
  return { it, why, begin };
}

// Whether the server has a page at all.
const isThere = (): Promise<boolean> => fetch('.', { method: 'HEAD', cache: 'no-store' }).then(({ ok }) => ok, () => false);

// The network is back.
export const tryAgain = (): void => lost.forEach((begin) => begin());

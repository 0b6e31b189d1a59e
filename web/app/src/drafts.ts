// SPDX-License-Identifier: Apache-2.0
//
// What was typed and not sent: by conversation (`new` before there is one), and by question. Kept until it was sent or
// emptied by its writer; the oldest go when there are too many.
//
// Two tabs may write in the same place, and the last one is kept. So each tab remembers its own words: they stand there
// for it whatever the other does, and are kept again when it goes.

import { keep } from './keep.js';

const DRAFTS_MAX = 200;

interface Draft {
  name: string;
  value: unknown;
  at: number;
}

const mine: { [name: string]: unknown } = {}; // typed in this tab
const seen: { [name: string]: string | undefined } = {}; // what was kept when this tab last looked
const full = (name: string): string => `draft:${name}`;
const kept = (name: string): unknown => keep.get<Draft>(full(name))?.value;

export const drafts = {
  get<T>(name: string): T | undefined {
    const value = kept(name);
    seen[name] = JSON.stringify(value);
    return (value ?? mine[name]) as T | undefined;
  },

  // undefined forgets it; words of another tab that this one has not seen stay.
  set(name: string, value: unknown): void {
    mine[name] = value;
    if (value === undefined && name in seen && JSON.stringify(kept(name)) !== seen[name]) return;
    keep.set(full(name), value === undefined ? value : { name, value, at: Date.now() });
    seen[name] = JSON.stringify(value);
    const list = keep.all<Draft>(full(''));
    if (list.length > DRAFTS_MAX) keep.set(full(list.sort((a, b) => a.at - b.at)[0]!.name), undefined);
  },
};

addEventListener('pagehide', () => { for (const name in mine) if (mine[name] !== undefined) drafts.set(name, mine[name]); });

// SPDX-License-Identifier: Apache-2.0
//
// Which turns of a long conversation are in the document: a few pages around the one that is looked at. The others are
// empty room of about their height. Pure arithmetic.
//
//     turns     0 ......... origin ................. count
//     pages       │  -1  │   0   │   1   │   2   │ 3 │        borders at origin + n * PAGE
//     mounted             [ from .............. to )          AROUND pages on each side
//
// The origin is a turn, so that borders stay where they are when older turns come in front.

export const PAGE = 20; // turns
const AROUND = 2; // pages, on each side
const GUESS = 120; // px, before anything was measured

export interface Span { from: number; to: number }

// Turns to have in the document when turn `at` is looked at.
export function spanAround(at: number, count: number, origin: number): Span {
  const first = origin + (Math.floor((at - origin) / PAGE) - AROUND) * PAGE;
  return { from: Math.max(0, first), to: Math.min(count, first + (2 * AROUND + 1) * PAGE) };
}

interface Keyed { key: string }

// Heights as they were last measured; what never was is like the others.
export class Heights {
  readonly #known = new Map<string, number>();
  #total = 0;

  set(key: string, height: number): void {
    this.#total += height - (this.#known.get(key) ?? 0);
    this.#known.set(key, height);
  }

  of(key: string): number {
    return this.#known.get(key) ?? (this.#known.size ? this.#total / this.#known.size : GUESS);
  }

  sum(list: Keyed[], from: number, to: number): number {
    let sum = 0;
    for (let i = from; i < to; i++) sum += this.of(list[i]!.key);
    return sum;
  }

  // Going from turn `from` by `step`, past so many px: where that ends, and how many px it has been.
  walk(list: Keyed[], from: number, step: 1 | -1, px: number): { at: number; past: number } {
    let at = from, past = this.of(list[at]!.key);
    for (; past < px && list[at + step]; past += this.of(list[at]!.key)) at += step;
    return { at, past };
  }
}

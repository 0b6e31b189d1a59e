// SPDX-License-Identifier: Apache-2.0
//
// Random numbers from a seed, so that a failure can be tried again: FERMATA_SEED=n. What the clock and the scheduler
// add is not under the seed.

import { randomInt } from 'node:crypto';

export const seed = Number(process.env.FERMATA_SEED ?? randomInt(2 ** 31));

// A function of its own stream: next(n) is a whole number from 0 to n - 1. (A 32-bit Weyl sequence, mixed.)
export function chance(stream = 0) {
  let state = (seed + Math.imul(stream, 0x9e3779b1)) | 0;
  return (n) => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return Math.floor(((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32 * n);
  };
}

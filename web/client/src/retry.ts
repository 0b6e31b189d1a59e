// SPDX-License-Identifier: Apache-2.0
//
// When to try again, and how long to wait before. Waits double, up to a limit, and half of each is chance, so that
// many clients of a server that was restarted do not come back all at once.

import { FermataError } from './error.js';

const FIRST_MS = 250;
const MOST_MS = 15_000;
export const TRIES = 6; // about ten seconds

export const backoff = (attempt: number): number => Math.min(MOST_MS, FIRST_MS * 2 ** attempt) * (0.5 + Math.random() / 2);

// Worth another try: nobody answered, the server is busy or stops, or something in between is down.
export const passing = (error: unknown): boolean =>
  error instanceof FermataError && (['network', 'rate_limited', 'internal', 'shutting_down'].includes(error.code) || [408, 429, 500, 502, 503, 504].includes(error.status));

// Resolves after `ms`, or at once when the signal is given.
export function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    if (signal?.aborted) done();
    else signal?.addEventListener('abort', done);
  });
}

// A name that nobody else gives; also where the page is not a secure context.
export const newId = (kind: string): string =>
  kind + Array.from(crypto.getRandomValues(new Uint32Array(4)), (number) => number.toString(36)).join('');

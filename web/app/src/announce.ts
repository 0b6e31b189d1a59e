// SPDX-License-Identifier: Apache-2.0
//
// What a screen reader is told, without the focus moving: one short text at a time in one polite region, at least a
// second each, the weightier first. Never the words of a reply as they come in.

import { signal } from '@preact/signals';

export const enum Weight { Asked = 3, Error = 2, Done = 1, Note = 0 }

const EACH_MS = 1000;

export const announced = signal(''); // drawn by the shell in role=status
const waiting: { text: string; weight: Weight }[] = [];
let busy = false;

export function announce(text: string, weight: Weight): void {
  if (waiting.some((one) => one.text === text)) return;
  if (weight === Weight.Note && (busy || waiting.length)) return; // not worth waiting for
  waiting.push({ text, weight });
  waiting.sort((a, b) => b.weight - a.weight);
  if (!busy) next();
}

function next(): void {
  const one = waiting.shift();
  busy = one !== undefined;
  if (!one) return;
  announced.value = one.text;
  setTimeout(next, EACH_MS);
}

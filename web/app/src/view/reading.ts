// SPDX-License-Identifier: Apache-2.0
//
// What was seen of something that is to be approved. A part of the card (a row, a paragraph) is seen once each of its lines
// has stood between head and controls for a moment, in a tab that is looked at. However it came there does not matter: by
// a wheel, a finger, the keyboard, a screen reader that goes through it, or the button that goes on to the next part.
//
//     part      ████▒▒▒▒▒▒     lines: seen, not yet     ──all of all parts──►  it may be approved
//
// Invariants: 1. What was seen belongs to what is approved (`of`): another one begins anew. 2. A part whose words have changed
// is another part. 3. What has no height cannot be seen.

import type { RefObject } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';

const TICK_MS = 100;
const SEEN_MS = 300;
const LINE_PX = 12; // finer than any line of text
const SLACK_PX = 2; // sizes are rounded
const ROOM_PX = 48; // less between head and controls is no room to read in: then all of the box is
const MARGIN_PX = 8;

const ASIDE = /^(In the model's own words|模型自己的说法)/; // a section of the server's card: what the model claims is not what is approved
const IN_CARD = 'dl > div, p, pre, h3, h4, h5, h6', BESIDE = '.asked-text, .decide-exact[data-state=needed]';

interface Part { text: string; height: number; since: number[]; seen: boolean } // since when each line is there; 0: it is not, -1: it was seen

const partsIn = (body: HTMLElement): Element[] => [
  ...[...body.querySelectorAll('ui-schema')].flatMap((card) => [...card.shadowRoot!.querySelectorAll(IN_CARD)]), ...body.querySelectorAll(BESIDE),
].filter((one) => one.textContent!.trim() && !ASIDE.test(one.closest('.section')?.firstElementChild?.textContent ?? ''));

// Where there is room to read, from the top of the window.
function roomOf(body: HTMLElement): { box: HTMLElement; top: number; bottom: number } {
  const card = body.parentElement!, box = body.closest<HTMLElement>('.scroller, .scroll')!, { top, bottom } = box.getBoundingClientRect();
  const head = card.querySelector('.decide-head')!.getBoundingClientRect().bottom, row = card.querySelector('.decide-row')?.getBoundingClientRect().top ?? bottom;
  const from = Math.max(top, head), to = Math.min(bottom, row);
  return to - from < ROOM_PX ? { box, top, bottom } : { box, top: from, bottom: to };
}

// [how many parts are not seen, go on to the next]. `drawn` changes with what is drawn.
export function useReading(body: RefObject<HTMLElement | null>, of: unknown, drawn: unknown[]): [number, () => void] {
  const known = useRef({ of, parts: new Map<Element, Part>() }), [left, set] = useState(1);
  if (known.current.of !== of) known.current = { of, parts: new Map() };
  const { parts } = known.current;

  useEffect(() => {
    const element = body.current;
    if (!element) return undefined;
    for (const [one, { text }] of parts) if (one.textContent !== text) parts.delete(one);
    let timer: ReturnType<typeof setTimeout> | undefined;
    const look = () => {
      if (!element.isConnected) return;
      const all = partsIn(element), unseen = all.filter((one) => !parts.get(one)?.seen);
      if (unseen.length) {
        const { top, bottom } = roomOf(element), now = performance.now();
        for (const one of unseen) see(parts, one, top, bottom, now);
      }
      const still = unseen.filter((one) => !parts.get(one)!.seen).length;
      set(all.length ? still : 1);
      if (still || !all.length) timer = setTimeout(look, TICK_MS);
    };
    look();
    return () => clearTimeout(timer);
  }, [of, ...drawn]);

  return [left, () => {
    const element = partsIn(body.current!).find((one) => !parts.get(one)?.seen);
    if (!element) return;
    const { box, top } = roomOf(body.current!), line = Math.max(0, parts.get(element)?.since.findIndex((since) => since >= 0) ?? 0);
    box.scrollTop += element.getBoundingClientRect().top + line * LINE_PX - top - MARGIN_PX;
  }];
}

function see(parts: Map<Element, Part>, element: Element, top: number, bottom: number, now: number): void {
  const { top: at, height } = element.getBoundingClientRect(), old = parts.get(element);
  const part = old && Math.abs(old.height - height) <= SLACK_PX ? old
    : { text: element.textContent!, height, since: new Array<number>(Math.ceil(height / LINE_PX)).fill(0), seen: false };
  parts.set(element, part);
  const { since } = part;
  for (let i = 0; i < since.length; i++) {
    if (since[i]! < 0) continue;
    const from = at + i * LINE_PX, to = Math.min(from + LINE_PX, at + height), there = !document.hidden && from >= top - SLACK_PX && to <= bottom + SLACK_PX;
    since[i] = !there ? 0 : !since[i] ? now : now - since[i]! >= SEEN_MS ? -1 : since[i]!;
  }
  part.seen = height > 0 && since.every((one) => one < 0);
}

// SPDX-License-Identifier: Apache-2.0
//
// Where the log is scrolled to. Two states:
//
//     pinned ──── the person scrolls up ────► released
//        ▲──── reaches the end, jumps, sends ────┘
//
// Pinned, the end stays in sight whatever grows; but a card that asks something, and is higher than the box, is met at its
// head, until the person scrolls: who decides reads from the top. Released, nothing moves: an element at the top edge is the anchor, and
// after every change it is put back to where it was. Sizes are watched by a ResizeObserver, which tells them after layout
// and before paint: nothing is measured twice, and a frame has one write. The browser's own anchoring is off, as not all
// browsers have one.
//
// Invariants:
//  1. `#last` is the position as we know it. When there is another one the person has scrolled, or the browser has, since
//     what is shown was shorter for a moment.
//  2. An anchor lives until the person scrolls, or cannot be kept: taken anew after each change, roundings would add up.
//  3. Pinned, the position is the goal: the end, or the head of the first open card that nobody has scrolled past.

import { signal } from '@preact/signals';
import type { Conversation } from '../conversation.js';
import type { Turn } from '../turns.js';
import { Heights, spanAround, type Span } from '../window.js';

const NEAR = 4; // px to the end that are none
const LOAD_AHEAD = 600; // px to the top at which the past is loaded
const HOLD_MS = 500; // after a press on what folds, that stays where it is
const SEEK_PAGES = 40; // of the past, at most, to find what is asked
const MARGIN = 12; // px around what is brought into sight
const DEPTH = 8; // of an anchor
const UP = new Set(['ArrowUp', 'PageUp', 'Home']);
const FIELD = /^(input|textarea|select)$/;
const OPEN = '.ask-open, .decide'; // cards that ask something

interface Place { node: Element; top: number }
interface Anchor { places: Place[]; key: string; top: number } // deepest first; the turn itself by its key

const holds = (turn: Turn, asked: string): boolean => {
  if (turn.kind === 'folded') return turn.turns.some((one) => holds(one, asked));
  return turn.kind === 'agent' && turn.parts.some((part) => part.kind === 'asked' && part.asked.id === asked);
};

export class Follow {
  readonly pinned = signal(true);
  readonly away = signal(false); // released, and not at the end
  readonly middle = signal(''); // turn around which the others are mounted, while released
  readonly heights = new Heights();
  since = ''; // the last turn when it was released
  #box!: HTMLElement; // what scrolls
  #log!: HTMLElement; // whose children are the turns
  #observer!: ResizeObserver;
  #turns: Turn[] = [];
  #span: Span = { from: 0, to: 0 };
  #origin = '';
  #watched = new Set<Element>();
  #last = { top: 0, max: 0 };
  #anchor: Anchor | undefined;
  #heldUntil = 0;
  #handsUntil = 0; // something other than a wheel or a key may scroll up
  #looking = false;
  #passed = new Set<string>(); // open cards that the person has scrolled in
  #sent = '';
  #sought: { id: string; left: number; then?: (card: HTMLElement) => void } | undefined;
  #todo: { key: string; then: (node: HTMLElement) => void } | undefined; // once it is mounted

  constructor(readonly conversation: Conversation) {}

  // ---- drawing ----

  // The turns to draw. Subscribes to what that depends on.
  spanOf(turns: Turn[]): Span {
    const indexOf = (key: string) => turns.findIndex((turn) => turn.key === key);
    let origin = indexOf(this.#origin);
    if (origin < 0) this.#origin = turns[origin = 0]?.key ?? '';
    const at = this.pinned.value ? -1 : indexOf(this.middle.value);
    return spanAround(at < 0 ? turns.length - 1 : at, turns.length, origin);
  }

  attach(box: HTMLElement, log: HTMLElement): () => void {
    const end = new AbortController();
    const passive = { passive: true, signal: end.signal };
    this.#box = box;
    this.#log = log;
    this.#observer = new ResizeObserver((entries) => this.#resized(entries));
    this.#observer.observe(box);
    this.#observer.observe(log.parentElement!);
    box.addEventListener('scroll', () => this.#settle(), passive);
    box.addEventListener('wheel', ({ deltaY, ctrlKey, target }) => {
      if (ctrlKey) return;
      if (deltaY < 0) this.#up(target);
      if (this.#last.top + deltaY > this.#last.max) this.#pinEnd(); // the browser scrolls to where the end was
    }, passive);
    const hands = (ms: number) => () => { this.#handsUntil = performance.now() + ms; };
    box.addEventListener('touchmove', hands(1000), passive);
    box.addEventListener('focusin', hands(100), passive);
    box.addEventListener('pointerdown', ({ target }) => { if (target === box) hands(5000)(); }, passive); // the scrollbar
    box.addEventListener('keydown', (event) => this.#key(event), { signal: end.signal });
    log.addEventListener('click', (event) => this.#pressed(event), { capture: true, signal: end.signal });
    return () => {
      end.abort();
      this.#observer.disconnect();
    };
  }

  // These were drawn: called in the same frame, before paint.
  drawn(turns: Turn[], span: Span): void {
    const last = turns.at(-1);
    this.#turns = turns;
    this.#span = span;
    if (this.#watch()) this.#settle();
    const sent = last?.kind === 'user' && last.outgoing ? last.key : '';
    if (sent && sent !== this.#sent) this.pin();
    this.#sent = sent || this.#sent;
    const todo = this.#todo, node = todo && this.#find(todo.key);
    if (node) {
      this.#todo = undefined;
      todo.then(node);
    }
    if (this.#sought) this.#search();
    this.#lookSoon();
  }

  // Whether other turns are mounted than before.
  #watch(): boolean {
    let changed = false;
    for (const node of this.#watched) {
      if (node.isConnected) continue;
      changed = true;
      this.#observer.unobserve(node);
      this.#watched.delete(node);
    }
    for (const node of this.#log.children) {
      if (this.#watched.has(node)) continue;
      changed = true;
      this.#observer.observe(node);
      this.#watched.add(node);
    }
    return changed;
  }

  // ---- what happens ----

  #resized(entries: ResizeObserverEntry[]): void {
    for (const { target, borderBoxSize } of entries) {
      const key = (target as HTMLElement).dataset['key'];
      if (key && target.isConnected) this.heights.set(key, borderBoxSize[0]!.blockSize);
    }
    this.#settle();
    this.#lookSoon();
  }

  #scrolled(): void {
    const { top: was, max: end } = this.#last, { top, max } = this.#seen();
    if (Math.abs(top - was) <= 0.5 || max < end && max - top < NEAR || this.#slipped(was - top, max !== end)) return;
    this.#last = { top, max };
    this.#heldUntil = 0;
    this.#pass();
    if (max - top < NEAR && top >= was) this.pin();
    else this.release();
    if (!this.pinned.peek()) this.#anchor = this.#capture();
    this.#lookSoon();
  }

  // For a moment there was less to show, or a higher box for it, and the browser has moved the end up: if no hand was on it,
  // and it did not go far.
  #slipped(up: number, changed: boolean): boolean {
    return this.pinned.peek() && up > 0 && performance.now() > this.#handsUntil && (changed || up < this.#box.clientHeight / 2);
  }

  // Up, and it has not scrolled yet: no write of ours may come between. Unless it is something inside that scrolls.
  #up(target: EventTarget | null): void {
    if (this.#box.scrollTop <= 0) return;
    for (let node = target as Element | null; node && node !== this.#box; node = node.parentElement) if (node.scrollTop > 0) return;
    this.#sought = undefined;
    this.release();
  }

  // The browser scrolls to where the end was; it may have grown since.
  #key(event: KeyboardEvent): void {
    const { key, altKey, shiftKey, target } = event;
    if (event.defaultPrevented || altKey || FIELD.test((target as Element).localName)) return;
    if (UP.has(key) || key === ' ' && shiftKey) this.#up(target);
    if (key !== 'End') return;
    event.preventDefault();
    this.#pinEnd();
  }

  #pressed({ target }: MouseEvent): void {
    const node = (target as Element).closest('summary, .long > button, [aria-expanded]');
    if (!node) return;
    const turn = this.#turnOf(node)!;
    this.#anchor = { places: [this.#place(node)], key: turn.dataset['key']!, top: this.#place(turn).top };
    this.#heldUntil = performance.now() + HOLD_MS;
  }

  pin(): void {
    this.#heldUntil = 0;
    this.pinned.value = true;
    this.away.value = false;
    if (this.#log.isConnected) this.#settle();
  }

  #pinEnd(): void {
    this.#pass();
    this.pin();
  }

  #openCards(): Element[] {
    return [...this.#log.querySelectorAll(OPEN)];
  }

  #pass(): void {
    for (const { id } of this.#openCards()) this.#passed.add(id);
  }

  release(): void {
    if (!this.pinned.peek()) return;
    this.since = this.middle.value = this.#turns.at(-1)?.key ?? '';
    this.pinned.value = false;
    if (performance.now() > this.#heldUntil) this.#anchor = this.#capture();
  }

  // ---- keeping the place ----

  #seen(): { top: number; max: number } {
    const { scrollTop, scrollHeight, clientHeight } = this.#box;
    return { top: scrollTop, max: scrollHeight - clientHeight };
  }

  // Where it is pinned to. Who types in a card has it where the browser put it.
  #goal({ top, max }: { top: number; max: number }): number {
    const card = this.#openCards().find(({ id }) => !this.#passed.has(id));
    if (!card || card.contains(document.activeElement) && card.querySelector('h3') !== document.activeElement) return max;
    return Math.max(0, Math.min(max, top + this.#place(card).top - MARGIN));
  }

  #know(): void {
    this.#last = this.#seen();
    if (this.pinned.peek() && Math.abs(this.#goal(this.#last) - this.#last.top) >= NEAR) this.release();
  }

  #settle(): void {
    this.#scrolled(); // its event may still be to come
    if (this.pinned.peek() && performance.now() > this.#heldUntil) {
      const now = this.#seen(), goal = this.#goal(now);
      if (Math.abs(goal - now.top) >= 0.5) this.#box.scrollTop = goal < now.max ? goal : now.max + 1;
    } else this.#restore();
    this.#know();
  }

  #restore(): void {
    const anchor = this.#anchor;
    if (!anchor) return;
    anchor.places = anchor.places.filter(({ node }) => node.isConnected);
    const turn = this.#find(anchor.key);
    const { node, top } = anchor.places[0] ?? { node: turn, top: anchor.top };
    if (!node) return;
    const moved = this.#place(node).top - top;
    if (Math.abs(moved) >= 0.5) this.#box.scrollTop += moved;
    if (Math.abs(this.#place(node).top - top) > 1) this.#anchor = this.#capture(); // the box ends here
    for (const place of anchor.places.slice(1)) place.top = this.#place(place.node).top; // in case the first one goes
    if (turn && node !== turn) anchor.top = this.#place(turn).top;
  }

  // What stands at the top edge, as deep as it goes: what is above it may grow, inside of the same turn too.
  #capture(): Anchor | undefined {
    const turn = this.#turnAt(0);
    if (!turn) return undefined;
    const places: Place[] = [], edge = this.#edge();
    const reaches = (node: Element): boolean => {
      const { bottom, height } = node.getBoundingClientRect();
      return height > 1 && bottom - edge > 1;
    };
    for (let node: Element | undefined = turn.node; node && places.length < DEPTH;) {
      const place = this.#place(node);
      places.unshift(place);
      node = place.top < 0 ? [...node.children].find(reaches) : undefined;
    }
    return { places, key: turn.key, top: turn.top };
  }

  #edge(): number {
    return this.#box.getBoundingClientRect().top;
  }

  #place(node: Element): Place {
    return { node, top: node.getBoundingClientRect().top - this.#edge() };
  }

  #find(key: string): HTMLElement | undefined {
    return [...this.#log.children].find((node) => (node as HTMLElement).dataset['key'] === key) as HTMLElement | undefined;
  }

  #turnOf(node: Element): HTMLElement | undefined {
    return [...this.#log.children].find((turn) => turn.contains(node)) as HTMLElement | undefined;
  }

  // The turn that is `y` px below the top edge, mounted or not.
  #turnAt(y: number): { key: string; top: number; node?: HTMLElement } | undefined {
    const { from, to } = this.#span, edge = this.#edge(), log = this.#log.getBoundingClientRect();
    const above = log.top - edge - y, below = y - (log.bottom - edge);
    if (above > 0 && from > 0) {
      const { at, past } = this.heights.walk(this.#turns, from - 1, -1, above);
      return { key: this.#turns[at]!.key, top: log.top - edge - past };
    }
    if (below >= 0 && to < this.#turns.length) {
      const { at, past } = this.heights.walk(this.#turns, to, 1, below);
      const { key } = this.#turns[at]!;
      return { key, top: log.bottom - edge + past - this.heights.of(key) };
    }
    const nodes = [...this.#log.children] as HTMLElement[];
    const node = nodes.find((one) => one.getBoundingClientRect().bottom - edge > y) ?? nodes.at(-1);
    return node && { key: node.dataset['key']!, top: this.#place(node).top, node };
  }

  // ---- what is mounted, and what is loaded ----

  #lookSoon(): void {
    if (this.#looking) return;
    this.#looking = true;
    requestAnimationFrame(() => {
      this.#looking = false;
      if (this.#log.isConnected) this.#look();
    });
  }

  #look(): void {
    const { top, max } = this.#last, pinned = this.pinned.peek();
    this.away.value = !pinned && max - top >= NEAR;
    const middle = pinned ? undefined : this.#turnAt(this.#box.clientHeight / 2);
    if (middle) this.middle.value = middle.key;
    if (this.#span.from === 0 && top < LOAD_AHEAD && this.conversation.older.peek() === 'idle') void this.conversation.loadOlder();
  }

  // ---- bringing into sight ----

  #bring(key: string, then: (node: HTMLElement) => void): void {
    const node = this.#find(key);
    if (node) return then(node);
    this.release();
    this.#todo = { key, then };
    this.middle.value = key;
  }

  // As little as is needed, or to the middle. What is higher than the log begins at its top.
  #show(node: Element, how: 'near' | 'middle'): void {
    const { top } = this.#place(node), height = node.getBoundingClientRect().height, room = this.#box.clientHeight;
    const lowest = room - MARGIN - height;
    const to = lowest < MARGIN ? MARGIN : how === 'middle' ? (room - height) / 2 : Math.min(Math.max(top, MARGIN), lowest);
    this.#heldUntil = 0;
    this.#box.scrollTop += top - to;
    this.#know();
    this.#anchor = this.#capture();
    this.#lookSoon();
  }

  // What is asked: found in the past if need be, shown, and marked for a moment.
  seek(id: string, then?: (card: HTMLElement) => void): void {
    this.#sought = { id, left: SEEK_PAGES, then };
    this.#search();
  }

  #search(): void {
    const sought = this.#sought!, { id, then } = sought, { older, phase } = this.conversation;
    const turn = this.#turns.find((one) => holds(one, id));
    if (turn) {
      this.#sought = undefined;
      this.#bring(turn.key, (node) => {
        const card = document.getElementById(`asked-${id}`) ?? node;
        this.#show(card, 'middle');
        card.animate({ boxShadow: ['0 0 0 4px var(--ask)', '0 0 0 4px var(--ask)', '0 0 0 4px transparent'] }, 1600);
        then?.(card);
      });
    } else if (phase.peek() === 'ready' && this.#turns.length && (older.peek() === 'none' || sought.left <= 0)) this.#sought = undefined;
    else if (older.peek() === 'idle') {
      sought.left--;
      void this.conversation.loadOlder();
    }
  }

  #focus(key: string): void {
    this.#bring(key, (node) => {
      node.focus({ preventScroll: true });
      this.#show(node, 'near');
    });
  }

  // The turn before or after the one that has the focus; else one that is in sight.
  step(by: 1 | -1): void {
    const on = document.activeElement && this.#turnOf(document.activeElement);
    const key = on?.dataset['key'] ?? this.#turnAt(by < 0 ? this.#box.clientHeight - 1 : 0)?.key;
    const to = this.#turns[this.#turns.findIndex((turn) => turn.key === key) + (on ? by : 0)];
    if (to) this.#focus(to.key);
    else if (by < 0 && this.conversation.older.peek() === 'idle') void this.conversation.loadOlder();
  }

  latest(): void {
    const reply = this.#turns.findLast(({ kind }) => kind === 'agent');
    if (reply) this.#focus(reply.key);
  }

  // By a press of the person, so the focus may move: what was pressed goes away.
  jump(): void {
    this.pin();
    this.#box.focus({ preventScroll: true });
  }
}

// SPDX-License-Identifier: Apache-2.0
//
// Shortcuts: Alt and one key, by its place on the keyboard, so that they work in every layout and while typing.
//
// To add one: a row in KEYS, and its text.

import { signal } from '@preact/signals';
import { asked } from './conversation.js';
import type { Text } from './i18n.js';
import { visit } from './notify.js';
import { go } from './route.js';
import { focusAsked } from './view/ask.js';
import { focusLatest, focusTurn } from './view/log.js';

export const helping = signal(false);

// Its code, what stands on it, what it is for.
export const KEYS: [code: string, shown: string, Text, act: () => void][] = [
  ['KeyQ', 'Q', 'keys.asked', nextAsked],
  ['KeyC', 'C', 'frame.skip', focusComposer],
  ['KeyL', 'L', 'keys.latest', focusLatest],
  ['ArrowUp', '↑', 'keys.previous', () => focusTurn(-1)],
  ['ArrowDown', '↓', 'keys.next', () => focusTurn(1)],
  ['KeyN', 'N', 'threads.new', () => go({ view: 'chat' })],
  ['Slash', '/', 'keys.title', () => { helping.value = !helping.value; }],
];

export function focusComposer(): void {
  document.querySelector<HTMLElement>('[data-testid=composer]')?.focus();
}

// The one after that in which the focus is, of those on the page; else where the first is.
function nextAsked(): void {
  const cardOf = (id: string) => document.getElementById(`asked-${id}`);
  const here = asked.value.map(({ interactionId }) => interactionId).filter(cardOf);
  const at = here.findIndex((id) => cardOf(id)!.contains(document.activeElement));
  if (here.length) focusAsked(here[at + 1] ?? here[0]!);
  else if (asked.value[0]) visit(asked.value[0]);
}

export function begin(): void {
  addEventListener('keydown', (event) => {
    if (!event.altKey || event.ctrlKey || event.metaKey || event.shiftKey || event.isComposing) return;
    const key = KEYS.find(([code]) => code === event.code);
    if (!key || (key[0] !== 'Slash' && document.querySelector('dialog[open]'))) return;
    event.preventDefault();
    key[3]();
  });
}

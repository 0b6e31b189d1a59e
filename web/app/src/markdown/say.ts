// SPDX-License-Identifier: Apache-2.0
//
// Words of ours on elements that no component draws: said at once, and again when the language changes. Elements that are
// gone are forgotten.

import { effect } from '@preact/signals';
import { lang } from '../i18n.js';

type Say = (element: Element) => void; // names the element by its argument only: what it kept would stay
const said = new Map<WeakRef<Element>, Say>();

export function say(element: Element, write: Say): void {
  said.set(new WeakRef(element), write);
  write(element);
}

effect(() => {
  void lang.value;
  for (const [one, write] of said) {
    const element = one.deref();
    if (element) write(element);
    else said.delete(one);
  }
});

// SPDX-License-Identifier: Apache-2.0
//
// A press counts for what it began on. A reply that comes in pushes along what stands below it, and a list takes in a row:
// so something else may be under a pointer that rests when it is let go. A browser then takes it for a press of what is
// around both, or, with a finger, of what has come there. Who moves the pointer away has not meant it, as everywhere.

const PRESSED = 'button, a, summary';
const pressable = (event: Event): Element | undefined => (event.composedPath() as Element[]).find((one) => one.matches?.(PRESSED)); // also inside of a card

export function begin(): void {
  let pressed: Element | undefined, { left, right, top, bottom } = new DOMRect();
  addEventListener('pointerdown', (event) => {
    pressed = event.isPrimary && !event.button ? pressable(event) : undefined;
    if (pressed) ({ left, right, top, bottom } = pressed.getBoundingClientRect());
  }, true);
  addEventListener('pointermove', ({ clientX: x, clientY: y }) => { if (x < left || x > right || y < top || y > bottom) pressed = undefined; }, true);
  addEventListener('pointercancel', () => { pressed = undefined; }, true);
  addEventListener('click', (event) => {
    const one = pressed;
    if (!event.isTrusted || !event.detail) return; // by a script, or a key
    pressed = undefined;
    if (!one?.isConnected || one.matches(':disabled') || event.composedPath().includes(one)) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    one.dispatchEvent(new MouseEvent('click', event)); // with its place, its count and its keys
  }, true);
}

// SPDX-License-Identifier: Apache-2.0
//
// A press counts only once what is pressed has been there for a while: nobody approves with a click that was meant for what
// stood there before. It begins when the controls come up, when they become others (`what`), and when they move under
// the pointer. What a keyboard presses has the focus, so there only the first two count.

import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { RefObject } from 'preact';

const ARM_MS = 600;
const SHIFT_PX = 8;

// [whether it looks armed, whether a press counts]
export function useArming(row: RefObject<HTMLElement | null>, what: unknown): [boolean, (press: MouseEvent) => boolean] {
  const [armed, set] = useState(false), takes = useRef((_: MouseEvent): boolean => false);
  useLayoutEffect(() => {
    const element = row.current!, now = () => performance.now();
    let timer: ReturnType<typeof setTimeout> | undefined, at = 0, since = 0, shifted = 0, moved = 0, pointer = '';
    const arm = () => {
      since = now();
      set(false);
      clearTimeout(timer);
      timer = setTimeout(set, ARM_MS, true);
    };
    const look = () => {
      const { top } = element.getBoundingClientRect();
      if (Math.abs(top - at) < SHIFT_PX) return;
      at = top;
      shifted = now();
      if (element.matches(':hover')) arm();
    };
    const move = ({ screenX, screenY }: PointerEvent) => { // also told when it rests and the page moves
      if (pointer !== (pointer = `${screenX} ${screenY}`)) moved = now();
    };
    look();
    arm();
    takes.current = ({ detail }) => {
      // By a pointer: has it just come to where that rests, or a finger is about to be?
      if (detail && moved < shifted && now() - shifted < ARM_MS) arm();
      return now() - since >= ARM_MS;
    };
    const sizes = new ResizeObserver(look);
    for (let up: Element | null = element; up; up = up.parentElement) sizes.observe(up);
    document.addEventListener('scroll', look, true);
    document.addEventListener('pointermove', move, true);
    return () => {
      clearTimeout(timer);
      sizes.disconnect();
      document.removeEventListener('scroll', look, true);
      document.removeEventListener('pointermove', move, true);
    };
  }, [what]);
  return [armed, (press) => takes.current(press)];
}

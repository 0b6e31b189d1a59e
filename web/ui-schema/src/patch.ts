// SPDX-License-Identifier: Apache-2.0
//
// From views to elements. A view says what an element should be; `place` makes the children of a parent be just that, with
// as few changes as there are differences, so that focus, selection and scroll positions stay.
//
// Which element is which: by tag and key among its siblings, in their order among those with the same. A button has its id as
// key, so it stays the same element wherever its neighbours come and go.
//
// Invariant: elements of one tag and key have the same attributes in all views (empty: not there) and the same sort of content.

import { isText } from './action.js';

type Kids = string | View[] | null; // null: not ours
type Attrs = { [name: string]: string | false | undefined };
export type View = [tag: string, kids: Kids, attrs: Attrs, key?: string, click?: () => void];

// A view. A text of its own is isolated from its neighbours' direction.
export const h = (tag: string, kids: Kids, look = '', attrs?: Attrs, key?: string, click?: () => void): View =>
  [tag, kids, { class: look, dir: isText(kids) && kids && 'auto', ...attrs }, key, click];

type Placed = HTMLElement & { viewName?: string };

export function place(parent: ParentNode & Node, views: View[]): void {
  const old: { [name: string]: Placed[] } = {};
  for (const child of parent.children as Iterable<Placed>) (old[child.viewName!] ??= []).push(child);
  const elements = views.map(([tag, , , key]) => {
    const name = `${tag} ${key}`;
    const element: Placed = old[name]?.shift() ?? (
      /^(svg|use)$/.test(tag) ? document.createElementNS('http://www.w3.org/2000/svg', tag) as Element as HTMLElement
        : document.createElement(tag));
    element.viewName = name;
    return element;
  });
  for (const gone of Object.values(old).flat()) gone.remove();
  let at = parent.firstChild;
  views.forEach(([, kids, attrs, , click], i) => {
    const element = elements[i]!;
    if (element === at) at = at.nextSibling;
    else parent.insertBefore(element, at);
    for (const name in attrs) {
      const value = attrs[name];
      if (!value) element.removeAttribute(name);
      else if (value !== element.getAttribute(name)) element.setAttribute(name, value);
    }
    element.onclick = click ?? null;
    if (!isText(kids)) kids && place(element, kids);
    else if (element.textContent !== kids) element.textContent = kids;
  });
}

// SPDX-License-Identifier: Apache-2.0
//
// The element: properties in, `ui-action` out. Whatever changes, everything is drawn again through the same two steps:
// view.ts says what should stand there, patch.ts changes what differs. So the same card is the same DOM, however it came.
//
// Markdown is the host's: its nodes stand in the light DOM, in slots, where the host's style sheets reach them.

import { h, place } from './patch.js';
import { sheet } from './style.js';
import type { Status, UiSchema } from './types.js';
import { type Mark, viewOf } from './view.js';

export type Markdown = (text: string) => Node;

export class UiSchemaElement extends HTMLElement {
  static readonly observedAttributes = ['icons', 'readonly', 'heading-level'];

  readonly #marks = new Map<string, Mark>();
  #schema?: UiSchema;
  #markdown?: Markdown;
  #cut = 0;
  // A folded text offers to show all of it only if there is more.
  readonly #sizes = new ResizeObserver(() => {
    for (const text of this.shadowRoot!.querySelectorAll('.clamp')) {
      const details = text.nextSibling as HTMLDetailsElement;
      details.hidden = !details.open && text.scrollHeight <= text.clientHeight;
    }
  });

  constructor() {
    super();
    this.attachShadow({ mode: 'open' }).adoptedStyleSheets = [sheet];
  }

  attributeChangedCallback(): void { this.#draw(); }

  get schema(): UiSchema | undefined { return this.#schema; }
  set schema(schema: UiSchema | undefined) {
    if (schema === this.#schema) return;
    this.#schema = schema;
    this.#marks.clear();
    this.#draw();
  }

  get markdown(): Markdown | undefined { return this.#markdown; }
  set markdown(markdown: Markdown | undefined) {
    if (markdown === this.#markdown) return;
    this.#markdown = markdown;
    place(this, []);
    this.#draw();
  }

  get icons(): string { return this.getAttribute('icons') ?? ''; }
  set icons(address: string) { this.setAttribute('icons', address); }

  get readonly(): boolean { return this.hasAttribute('readonly'); }
  set readonly(on: boolean) { this.toggleAttribute('readonly', on); }

  // Characters of the card that are not shown: more than the element draws, or than its maker could put into it. 0: all are there.
  get cut(): number { return this.#cut; }

  // Shows a button as working; meanwhile it cannot be pressed. Like a note it lasts until another card is set.
  busy(buttonId: string, on: boolean): void { this.#mark(buttonId, { busy: on }); }

  // A short line beside a button; an empty one takes it away.
  note(buttonId: string, note: string, status: Status = 'info'): void { this.#mark(buttonId, { note, status }); }

  #mark(key: string, change: Mark): void {
    this.#marks.set(key, { ...this.#marks.get(key), ...change });
    this.#draw();
  }

  #draw(): void {
    const [views, slots, cut] = viewOf(this, this.#marks);
    place(this.shadowRoot!, views);
    if (cut !== this.#cut) {
      this.#cut = cut;
      if (cut) this.setAttribute('cut', String(cut));
      else this.removeAttribute('cut');
      this.dispatchEvent(new CustomEvent('ui-cut', { detail: { cut }, bubbles: true, composed: true }));
    }
    // The text is the key: a box with another one is another box.
    place(this, slots.map((text, i) => h('div', null, '', { slot: `md${i}` }, text)));
    slots.forEach((text, i) => {
      const box = this.children[i]!;
      if (!box.firstChild) box.append(this.#markdown!(text));
    });
    this.#sizes.disconnect(); // anew: other words may fold elsewhere in a box of the same size
    this.#sizes.observe(this);
  }
}

if (!customElements.get('ui-schema')) customElements.define('ui-schema', UiSchemaElement);

declare global {
  interface HTMLElementTagNameMap { 'ui-schema': UiSchemaElement }
}

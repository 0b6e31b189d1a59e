// SPDX-License-Identifier: Apache-2.0
//
// Markdown that grows. A view is given the whole text each time and looks only at its unfinished end: a block that nothing
// which may follow can change is done, and its elements stay the same objects for ever.
//
// A block is done when two whole lines follow it: every rule that ends a block looks at most that far. One thing comes
// late by nature: a definition of a link below the text that uses it. It is applied when the text is complete.
//
// What is drawn for a complete text depends on the text alone, whatever the pieces were that it came in.

import { drawBlock, isDrawn, sync, type Context, type Drawn } from './blocks.js';
import { lexBlocks, type Links, type Token } from './lexer.js';
import { mendBlocks } from './mend.js';


// A block that is drawn by the definitions there were, and certain as long as the text does not change before `known`.
interface Done { node: HTMLElement | undefined; start: number; end: number; known: number; defined: string }

const none = (): Links => Object.create(null);

export class MarkdownView {
  #text = '';
  #done: Done[] = [];
  #links = none(); // those defined in what is done: the first of a label counts
  #tail: Drawn[] = [];

  constructor(readonly host: HTMLElement) {
    host.classList.add('md');
  }

  // Draws `text`; `live`: more of it may come.
  update(text: string, live: boolean): void {
    text = text.replace(/\r\n?/g, '\n');
    if (!text.startsWith(this.#text)) this.#backTo(sameUpTo(text, this.#text));
    this.#text = text;
    const start = this.#end(), links = Object.assign(none(), this.#links), tokens = lexBlocks(text.slice(start), links);
    const defined = JSON.stringify(links), done = this.#certain(tokens, start, defined);
    const context: Context = { links, defined, live: live && tokens.slice(done.length).some(isDrawn), top: true };
    if (live) mendBlocks(tokens, links);
    this.#tail = sync(this.host, this.#tail, tokens, context);
    let drawn = 0;
    for (const [i, one] of done.entries()) {
      if (isDrawn(tokens[i]!)) one.node = this.#tail[drawn++]!.node;
      this.#done.push(one);
    }
    this.#tail.splice(0, drawn);
    this.#define(start);
    if (!live) this.#refer(context);
  }

  #end(): number { return this.#done.at(-1)?.end ?? 0; }

  // Takes the definitions of what is done from `start` on.
  #define(start: number): void {
    const text = this.#text.slice(start, this.#end());
    if (text.includes(']:')) lexBlocks(text, this.#links);
  }

  // The tokens at the beginning of `tokens` that are done.
  #certain(tokens: Token[], start: number, defined: string): Done[] {
    const done: Done[] = [];
    for (const [i, { raw }] of tokens.entries()) {
      const end = start + raw.length, next = tokens[i + 1];
      const known = this.#text.indexOf('\n', this.#text.indexOf('\n', end + (next && !isDrawn(next) ? next.raw.length : 0)) + 1 || Infinity) + 1;
      if (!known) break;
      done.push({ node: undefined, start, end, known, defined });
      start = end;
    }
    return done;
  }

  // Forgets what a change after the first `same` characters may change.
  #backTo(same: number): void {
    for (const { node } of this.#tail) node.remove();
    this.#tail = [];
    while ((this.#done.at(-1)?.known ?? 0) > same) this.#done.pop()!.node?.remove();
    this.#links = none();
    this.#define(0);
  }

  // Draws those again that refer to links which were not defined when they were drawn.
  #refer(context: Context): void {
    for (const done of this.#done) {
      const text = this.#text.slice(done.start, done.end), old = done.node;
      if (!old || done.defined === context.defined || !text.includes('[')) continue;
      done.defined = context.defined;
      const { node } = drawBlock(lexBlocks(text, context.links).find(isDrawn)!, context);
      if (!node.isEqualNode(old)) old.replaceWith(done.node = node);
    }
  }
}

// One piece of markdown that does not grow.
export function markdownNode(text: string): Node {
  const host = document.createElement('div');
  new MarkdownView(host).update(text, false);
  return host;
}

function sameUpTo(a: string, b: string): number {
  let at = 0;
  while (at < a.length && a[at] === b[at]) at++;
  return at;
}

// SPDX-License-Identifier: Apache-2.0
//
// Blocks as elements. An element is made once for its shape (what tag it is, and what cannot change about it) and filled
// from its token; drawing again keeps every element whose token is the same, and fills again those of the same shape.
//
// A token's type is its tag. To draw one that needs more than its words or its blocks in it: a case in `make` and `fill`.

import { number, t } from '../i18n.js';
import { codeBlock, fillCode } from './code.js';
import { become, element, inline } from './inline.js';
import { cells, type Links, type Token } from './lexer.js';
import { mendInline } from './mend.js';
import { say } from './say.js';

const ROWS_SHOWN = 500; // of a table, until all are asked for; and so many more a frame then

// What is drawn is a function of the token, of the definitions of links, and of whether more may come at its end. `top`: it
// stands in nothing else, so it finds its own direction.
export interface Context { links: Links; defined: string; live: boolean; top: boolean }
export interface Drawn { key: string; shape: string; node: HTMLElement; inner: Drawn[]; rows: number }

// ---- words ----

const draw = (text: string, { links, live }: Context): DocumentFragment => inline(live ? mendInline(text) : text, links);

function fillText(node: Element, { text = '', first }: Token, context: Context): void {
  const task = first ? /^\[([ xX])\][ \t]+(?=\S)/.exec(text) : null;
  const wanted = draw(task ? text.slice(task[0].length) : text, context);
  if (task) {
    const box = element('input');
    box.type = 'checkbox';
    box.disabled = true;
    box.defaultChecked = task[1] !== ' ';
    wanted.append(element('label', box, wanted));
  }
  become(node, wanted);
}

function fillCells(node: Element, tag: 'th' | 'td', line: string, align: string[], context: Context): void {
  const texts = cells(line);
  align.forEach((side, i) => {
    const cell = node.children[i] ?? node.appendChild(element(tag));
    if (side) cell.className = `md-${side}`;
    become(cell, draw(texts[i] ?? '', context));
  });
}

// ---- tables ----

function makeTable({ text, align }: Token, context: Context): HTMLElement {
  const head = element('tr'), region = element('div', element('table', element('thead', head), element('tbody')));
  fillCells(head, 'th', text!, align!, { ...context, live: false });
  region.className = 'md-table';
  region.tabIndex = 0;
  region.role = 'region';
  say(region, (it) => { it.ariaLabel = t('md.table'); });
  return region;
}

function fillTable(drawn: Drawn, token: Token, context: Context): void {
  const { node } = drawn, tokens = token.tokens!;
  drawn.inner = sync(node.querySelector('tbody')!, drawn.inner, tokens.slice(0, drawn.rows), context);
  node.querySelector('button')?.remove();
  if (tokens.length <= drawn.rows) return;
  const button = element('button');
  button.type = 'button';
  say(button, (it) => { it.textContent = t('md.rows', { n: number(tokens.length) }); });
  button.onclick = function more() {
    drawn.rows += ROWS_SHOWN;
    fillTable(drawn, token, context);
    if (drawn.rows < tokens.length) requestAnimationFrame(more);
  };
  node.append(button);
}

// ---- drawing ----

const languageOf = (info = ''): string => /^[^\s{,]*/.exec(info)![0];
const isClosed = (raw: string): boolean => /^ *(`{3,}|~{3,})[^\n]*\n(?:[^]*\n)? *\1[`~]*\s*$/.test(raw);

function make(token: Token, context: Context): HTMLElement {
  const { type, lang, start } = token;
  if (type === 'table') return makeTable(token, context);
  if (type === 'pre') return codeBlock(languageOf(lang));
  const node = element(type as 'ol');
  if (start !== undefined) node.className = 'md-list';
  if (start !== undefined && start !== 1) node.start = start;
  return node;
}

function fill(drawn: Drawn, token: Token, { ...context }: Context): Drawn {
  const { node } = drawn, { type, raw, text, tokens, align, loose, lang } = token;
  drawn.key = keyOf(token, context);
  context.top = false;
  if (type === 'li' && tokens![0]) tokens![0].first = true;
  if (type === 'table') fillTable(drawn, token, context);
  else if (type === 'tr') fillCells(node, 'td', raw, align!, context);
  else if (type === 'pre') fillCode(node, languageOf(lang), text!, !context.live || isClosed(raw));
  else if (tokens) drawn.inner = sync(node, drawn.inner, tokens, context);
  else if (text !== undefined) fillText(node, token, context);
  if (loose !== undefined) node.classList.toggle('md-loose', loose);
  return drawn;
}

export const isDrawn = ({ type }: Token): boolean => type !== '';

export function drawBlock(token: Token, context: Context): Drawn {
  const node = make(token, context);
  const drawn = fill({ key: '', shape: shapeOf(token, context), node, inner: [], rows: ROWS_SHOWN }, token, context);
  // Last, because the browser looks for the direction at each change.
  if (context.top && !/pre|hr/.test(token.type)) node.dir = 'auto';
  return drawn;
}

const keyOf = ({ type, raw }: Token, { live, defined }: Context): string => `${type} ${live} ${raw.includes('[') ? defined : ''} ${raw}`;
const shapeOf = ({ type, start, lang, text, align }: Token, { defined }: Context): string => JSON.stringify([type, start, lang, align && [text, align, defined]]);

// Makes the elements of `parent` those of `tokens`.
export function sync(parent: Element, old: Drawn[], tokens: Token[], context: Context): Drawn[] {
  const shown = tokens.filter(isDrawn);
  const now = shown.map((token, i) => {
    const here = { ...context, live: context.live && i === shown.length - 1 };
    const was = old[i];
    if (was?.key === keyOf(token, here)) return was;
    if (was?.shape === shapeOf(token, here)) return fill(was, token, here);
    const made = drawBlock(token, here);
    if (was) was.node.replaceWith(made.node);
    else parent.append(made.node);
    return made;
  });
  for (const { node } of old.slice(now.length)) node.remove();
  return now;
}

// SPDX-License-Identifier: Apache-2.0
//
// From a card to views: what should stand on the page, as a pure function of the schema and of what the element knows.
//
// Nothing in a card is trusted. Each field is read by a function that gives a good value or none; a wrong type is drawn as if
// it were absent, a kind that is not in `kinds` as its `fallback` text. Depth, nodes, rows and the length of texts end at the
// limits below. What is left out is never silent: its characters are counted, together with those of which the card itself says
// that they did not fit (`cut` of a text), and the last line tells how many there are. Who decides by a card asks for that number.
//
// To add a kind: its function in `kinds`, its type in types.ts, its look in style.ts.

import { actionOf, copy, isFields, isText, linkOf, open, pick } from './action.js';
import { h, type View } from './patch.js';
import type { Fields, Status, UiActionDetail } from './types.js';
import { wordsOf } from './words.js';

export const enum Max {
  Depth = 24, Nodes = 2000, Rows = 4000, Text = 65_536,
  Counted = 100_000, // parts of what is left out; a card without an end has to have one
  Number = 48, // of gaps, columns and lines: style.ts has a class for each
}
const enum Ms { Copied = 1500 } // how long that is shown

// What a button or a row shows besides itself.
export interface Mark {
  busy?: boolean;
  note?: string;
  status?: Status;
}

// The element, as far as drawing goes.
interface Host extends EventTarget {
  schema: unknown;
  icons: string;
  readonly: boolean;
  markdown?: unknown;
  getAttribute(name: string): string | null;
  note(key: string, note: string, status?: Status): void;
}

type Maybe = View | false | '' | 0 | undefined;

// ---- fields ----

const one = (value: unknown, words: string, other = ''): string =>
  (isText(value) && words.split(' ').includes(value) ? value : other);
const css = (...names: unknown[]): string => names.filter(Boolean).join(' ');
const number = (letter: string, value: unknown): string =>
  (typeof value === 'number' && value >= 0 ? letter + (Math.min(value, Max.Number) | 0) : '');
const status = (value: unknown): string => one(value, 'info success warning error pending') && `s-${value}`;
const fields = (value: unknown): Fields => (isFields(value) ? value : {});

const clip = (value: unknown): string => (!isText(value) ? '' : value.length > Max.Text ? `${value.slice(0, Max.Text)}…` : value);
const over = (value: string): number => Math.max(0, value.length - Max.Text);

function json(value: unknown): string {
  try {
    return JSON.stringify(value);
  } catch { // too deep, or no JSON at all
    return '';
  }
}

// ---- drawing ----

// A view with something in it, or none.
const some = (tag: string, kids: string | View[], look: string): Maybe => kids.length && h(tag, kids, look);

// The views of a card, its texts in markdown for the slots md0, md1..., and how many characters of it are not shown. Marks are by
// the id of a button or the number of a row.
export function viewOf(host: Host, marks: Map<string, Mark>): [View[], string[], number] {
  const { root, theme, locale } = fields(host.schema), slots: string[] = [];
  const lang = one(locale, 'zh-CN en'), say = wordsOf(lang === 'zh-CN' ? 1 : 0);
  const level = +(host.getAttribute('heading-level') ?? 3);
  let nodes = 0, rows = 0, cut = 0, counted = 0;

  // A text that is shown, as far as it is.
  const shown = (value: unknown): string => {
    if (isText(value)) cut += over(value);
    return clip(value);
  };

  // A node or a row that is not.
  const lose = (value: unknown): undefined => {
    for (const todo = [value]; todo.length && ++counted < Max.Counted;) {
      const one = todo.pop();
      if (isText(one)) cut += one.length;
      else if (Array.isArray(one)) for (const each of one) todo.push(each);
      else if (isFields(one)) {
        const { content, label, key, value: own, fallback, children, items } = one;
        todo.push(content, label || key, own == null || isText(own) ? own : json(own), fallback, children, items);
      }
    }
  };

  const all = (items: unknown, each: (item: unknown) => Maybe): View[] =>
    (Array.isArray(items) ? items.map(each).filter(Boolean) as View[] : []);

  const box = (node: Fields, depth: number, look: string): Maybe => some(
    'div', all(node.children, (child) => draw(child, depth + 1)),
    css(look, one(node.appearance, 'card section', 'plain'), status(node.status), number('g', node.gap)));

  const icon = ({ name, size, status: state }: Fields): Maybe => {
    const shape = status(state), look = css('icon', one(size, 'sm lg'), shape);
    if (host.icons && isText(name) && /^[a-z0-9-]+$/.test(name)) {
      return h('svg', [h('use', null, '', { href: `${host.icons}#${name}` })], look, { 'aria-hidden': 'true' });
    }
    return shape && h('span', '', look);
  };

  const copyTo = async (key: string, text: string, message?: unknown): Promise<void> => {
    const done = await copy(text);
    host.note(key, done ? clip(message) || say('copied') : say('failed'), done ? 'success' : 'error');
    const mark = marks.get(key);
    if (done) setTimeout(() => { if (marks.get(key) === mark) host.note(key, ''); }, Ms.Copied);
  };

  // Whether the host leaves the rest to us.
  const press = (detail: UiActionDetail): boolean =>
    host.dispatchEvent(new CustomEvent('ui-action', { detail, bubbles: true, composed: true, cancelable: true }));

  // The line beside a button, there from the start so that it is read out when it changes.
  const noteOf = (key: string): View => {
    const { note = '', status: state } = marks.get(key) ?? {};
    return h('span', note, css('note', note && status(state)), { role: 'status' });
  };

  const text = (node: Fields, depth: number): Maybe => {
    const content = shown(node.content), role = one(node.role, 'title subtitle caption code', 'body');
    const code = role === 'code', lead = role === 'title' && depth < 4, lines = number('n', node.maxLines);
    const tag = code ? 'pre' : role.endsWith('title') ? `h${Math.min(level + (lead ? 0 : 1), 6)}` : 'p';
    const slot = content && tag === 'p' && node.format === 'markdown' && host.markdown;
    const view = h(
      slot ? 'div' : tag, slot ? [h('slot', null, '', { name: `md${slots.push(content) - 1}` })] : content,
      css(role, lead && 'lead', status(node.status), lines && `clamp ${lines}`),
      { title: lines && content, ...code && { tabindex: '0', role: 'region', 'aria-label': say('code') } }, 'text');
    if (typeof node.cut === 'number' && node.cut > 0) cut += node.cut;
    // Other words are folded anew.
    return content && (lines ? h('div', [view, h('details', [h('summary', say('more'))], '', {}, content)]) : view);
  };

  const button = (node: Fields): Maybe => {
    const label = shown(node.label).trim(), id = clip(node.id), action = actionOf(fields(node.action));
    const url = action?.type === 'url' && linkOf(action.url), busy = marks.get(id)?.busy && 'true';
    const sign = icon(busy ? { status: 'pending' } : fields(node.icon));
    return label && h('div', [
      h('button', sign ? [sign, h('span', label)] : [h('span', label)], one(node.style, 'primary ghost danger', 'secondary'), {
        title: url ? url.host || url.pathname : !action && say('refused'),
        disabled: (!action || node.disabled === true || (host.readonly && action.type !== 'copy')) && 'true',
        'aria-disabled': busy, 'aria-busy': busy,
      }, '', () => {
        if (busy || !press({ id, label, action: action! })) return;
        if (url) open(url, (action as Fields).target);
        if (action!.type === 'copy') void copyTo(id, action!.content, action!.successMessage);
      }),
      noteOf(id),
    ], 'act', {}, id);
  };

  const row = (item: unknown): Maybe => {
    const { key, label, value, copyable } = fields(item);
    if (value == null) return;
    if (++rows > Max.Rows) return lose(item);
    const name = shown(label) || shown(key), full = isText(value) ? value : json(value), place = ` ${rows}`;
    if (!full && !isText(value)) cut++; // it cannot be written
    const kids = [h('span', shown(full))];
    if (copyable === true) {
      kids.push(h('button', say('copy'), '', { 'aria-label': `${say('copy')} ${name}` }, '', () => void copyTo(place, full)), noteOf(place));
    }
    return h('div', [h('dt', name), h('dd', kids)], '', {}, name);
  };

  const kinds: { [type: string]: (node: Fields, depth: number) => Maybe } = {
    stack: (node, depth) => box(node, depth, css(
      one(node.direction, 'horizontal', 'vertical'), node.wrap === true && 'wrap', one(node.align, 'start center end stretch'),
      one(node.justify, 'start center end between') && `j j-${node.justify}`)),
    grid: (node, depth) => box(node, depth, css('grid', number('n', node.columns))),
    text,
    icon,
    badge: (node) => some('span', shown(node.label), css('badge', status(node.status))),
    divider: () => h('hr', null),
    button,
    kv: (node) => {
      const columns = number('n', node.columns);
      return some('dl', all(node.items, row), css(columns > 'n1' && 'wide', columns));
    },
  };

  function draw(node: unknown, depth: number): Maybe {
    if (!isFields(node) || node.visible === false) return;
    if (++nodes > Max.Nodes || depth > Max.Depth) return lose(node);
    const kind = pick(kinds, node.type);
    return kind ? kind(node, depth) : text({ content: node.fallback }, depth);
  }

  const view = draw(root, 1), end = cut > 0 && h('p', say('cut', cut), 'caption s-warning cut');
  return [view ? [h('div', end ? [view, end] : [view], css('root', one(theme, 'light dark')), { lang })] : [], slots, cut];
}

// SPDX-License-Identifier: Apache-2.0
//
// The end of a text that is still being written, as if it were finished: bold is bold before its second **, a link is its
// words until its address is whole, a table is a table from its first line on, and a mark that may become something else
// with the next character waits for it. Only what is drawn meanwhile depends on this; a finished text never comes here.
//
// To mend one more kind of mark: a case in `mendInline`.

import { cells, lexBlocks, type Links, type Token } from './lexer.js';

const MEND_CHARS_MAX = 20_000;
const LABEL_CHARS_MAX = 200;

const LONE_MARK = /(?:^|\n) {0,3}(?:[-*_+=]{1,2}|#{1,6}|`{1,2}|~{1,2}|\d{1,3}[.)]?) *$/; // a last line that may become a block
const TABLE_BEGUN = /(?:^|\n) {0,3}(\|[^\n]*)(?:\n[ |:-]*)?$/;
const MARKS = /\\[^]|`+|\*+|~+|!?\[|\]/g;

// Mends the last block of `tokens`, however deep it stands.
export function mendBlocks(tokens: Token[], links: Links): void {
  const last = tokens.at(-1);
  if (last?.tokens) {
    mendBlocks(last.tokens, links);
  } else if (last?.type === 'pre') {
    last.text = last.text!.replace(/(?:^|\n) {0,3}(?:`+|~+)$/, '');
  } else if (last?.type === 'p') {
    last.text = last.text!.replace(LONE_MARK, '');
    const table = TABLE_BEGUN.exec(last.text), head = table?.[1];
    if (head) tokens.splice(-1, 1, ...lexBlocks(`${last.text.slice(0, table!.index)}\n${head}\n${'|-'.repeat(cells(head).length)}|`, links));
    else if (!last.text) tokens.pop();
  }
}

// Closes what is open at the end, and leaves out what is half there.
export function mendInline(text: string): string {
  if (text.length > MEND_CHARS_MAX) return text;
  const open: { mark: string; at: number }[] = [];
  const withoutLink = (from: number, mark: string, labelEnd: number): string =>
    text.slice(0, from) + (mark === '[' ? text.slice(from + 1, labelEnd) : '');
  MARKS.lastIndex = 0;
  for (let found = MARKS.exec(text); found; found = MARKS.exec(text)) {
    const mark = found[0], at = found.index, end = at + mark.length, top = open.at(-1);
    if (mark[0] === '`') {
      const close = new RegExp(`(?<!\`)\`{${mark.length}}(?!\`)`, 'g');
      close.lastIndex = end;
      if (close.exec(text)) {
        MARKS.lastIndex = close.lastIndex;
        continue;
      }
      text = end < text.length ? `${text}${mark}` : text.slice(0, at); // code to the end
      break;
    }
    if (mark === ']') {
      const label = open.findLastIndex((one) => one.mark.endsWith('['));
      if (label < 0) continue;
      const [{ mark: kind, at: from } = { mark: '', at: 0 }] = open.splice(label);
      const rest = text.slice(end);
      if (rest === '' || /^\([^)\n]*$/.test(rest)) text = withoutLink(from, kind, at);
      else if (rest[0] === '(') MARKS.lastIndex = end + rest.indexOf(')') + 1 || end;
    } else if (mark.endsWith('[')) {
      open.push({ mark, at });
    } else if (mark[0] !== '\\') {
      const before = text[at - 1] ?? ' ', after = text[end] ?? '';
      if (top && before.trim() && top.mark === mark) open.pop();
      else if (!after) text = text.slice(0, at); // half a closing mark, or an opening one with nothing after it
      else if (after.trim() && mark !== '~' && !/^\w\w$/.test(before + after)) open.push({ mark, at }); // not 3~5, not 3*4
    }
  }
  const label = open.findLast((one) => one.mark.endsWith('['));
  if (label && text.length - label.at < LABEL_CHARS_MAX) text = withoutLink(label.at, label.mark, text.length);
  const closing = open.filter(({ mark }) => !mark.endsWith('[')).map(({ mark }) => mark).reverse().join('');
  return closing ? text.trimEnd() + closing : text;
}

// SPDX-License-Identifier: Apache-2.0
//
// The blocks of a text of markdown, line by line. What stands inside a line is inline.ts's.
//
// The rules are those of CommonMark and of GitHub's tables, but for what reads better in a chat, or could change what was
// drawn before:
//   - Raw HTML is text.
//   - A line of --- below a text is a rule, never a heading. A quote has > on each of its lines.
//   - A table ends at the first line without a |. A definition of a link is one line, and is one only if it can be linked.
//   - Under a number, bullets need two spaces to stand inside.
//
// Every text takes time in proportion to its length: what nests deeper than DEPTH_MAX stays as it was written.
//
// Invariant: the `raw` of the blocks of a text, one behind the other, are that text.
//
// To add a block: a rule in RULES, which looks at the lines from `at` on, and its row in blocks.ts.

import { address } from './address.js';

export interface Links { [label: string]: string } // the addresses
export interface Token {
  type: string; // the tag it is drawn with; '' is drawn as nothing
  raw: string;
  text?: string; // of what has an inside of words, or is words
  tokens?: Token[]; // of what has an inside of blocks: those, the items of a list, the rows of a table
  first?: boolean; // of a list item, so it may begin with a box to tick
  lang?: string | undefined; // of code
  start?: number; // of a list
  loose?: boolean; // a list with blank lines in it
  align?: string[]; // of a table and its rows: what its columns lean to
}

export const DEPTH_MAX = 32; // of blocks in blocks, and of marks in marks

// ---- lines ----

const isBlank = (line: string): boolean => !line.trim();

// How far a line is indented, a tab being up to the next multiple of four; and the line without that much of it.
function indentOf(line: string, columns = 0): number {
  for (const mark of line) {
    if (mark === ' ') columns++;
    else if (mark === '\t') columns += 4 - columns % 4;
    else break;
  }
  return columns;
}
const outdent = (line: string, columns: number): string => ' '.repeat(Math.max(0, indentOf(line) - columns)) + line.trimStart();

// The first line from `at` on that `ends`.
function until(lines: string[], at: number, ends: (line: string, at: number) => unknown): number {
  while (at < lines.length && !ends(lines[at]!, at)) at++;
  return at;
}

// ---- tables ----

export const cells = (line: string): string[] =>
  line.trim().replace(/^\|/, '').replace(/(?<!\\)\|$/, '').split(/(?<!\\)\|/).map((cell) => cell.trim().replaceAll('\\|', '|'));

// The sides its columns lean to, if a table begins at `at`.
function tableAt(lines: string[], at: number): string[] | undefined {
  const head = lines[at]!, below = lines[at + 1]?.trim() ?? '';
  if (!head.includes('|') || !below.includes('|') || !/^\|?(?: *:?-+:? *\|)*(?: *:?-+:?)?$/.test(below)) return undefined;
  const align = cells(below).map((cell) => (!cell.endsWith(':') ? '' : cell[0] === ':' ? 'center' : 'right'));
  return align.length === cells(head).length ? align : undefined;
}

// ---- blocks ----

const RULE = '(?:-[ \\t]*){3,}$|(?:_[ \\t]*){3,}$|(?:\\*[ \\t]*){3,}$';
const IS_RULE = new RegExp(`^ {0,3}(?:${RULE})`);
const HEADING = /^ {0,3}(#{1,6})(?=[ \t]|$)/;
const FENCE = /^( {0,3})(`{3,}(?=[^`]*$)|~{3,})[ \t]*(.*)$/;
const QUOTE = /^ {0,3}> ?/;
const MARKER = /^([ \t]*)([*+-]|\d{1,9}[.)])([ \t]+(?=\S)|[ \t]*$)/;
const DEFINITION = /^ {0,3}\[((?!\s*\])[^[\]]{1,200})\]: +(\S+)(?: +(?:"[^"]*"|'[^']*'|\([^()]*\)))?[ \t]*$/;
const ENDS_PARAGRAPH = new RegExp(`^[ \\t]*$|^ {0,3}(?:#{1,6}(?:\\s|$)|>|\`{3,}[^\`]*$|~~~|(?:[*+-]|1[.)])[ \\t]+\\S|${RULE})`);
const ENDS_TABLE = /^ {0,3}(?:#{1,6}(?:\s|$)|>|```|~~~|(?:[*+-]|\d{1,9}[.)])[ \t])|^[^|]*$/;

export const labelOf = (label: string): string => label.trim().replace(/\s+/g, ' ').toLowerCase().toUpperCase().toLowerCase();

// What begins at the line `at`, and the line it ends before.
type Rule = (lines: string[], at: number, links: Links, depth: number) => Omit<Token, 'raw'> & { end: number } | false | undefined;

const blank: Rule = (lines, at) => isBlank(lines[at]!) && { type: '', end: until(lines, at, (line) => !isBlank(line)) };

const indented: Rule = (lines, at) => {
  if (indentOf(lines[at]!) < 4) return false;
  let end = until(lines, at, (line) => !isBlank(line) && indentOf(line) < 4);
  while (isBlank(lines[end - 1]!)) end--;
  return { type: 'pre', text: lines.slice(at, end).map((line) => outdent(line, 4)).join('\n'), end };
};

const fence: Rule = (lines, at) => {
  const [, indent, marks, lang] = FENCE.exec(lines[at]!) ?? [];
  if (!marks) return false;
  const closing = new RegExp(`^ {0,3}${marks[0]}{${marks.length},}[ \\t]*$`), end = until(lines, at + 1, (line) => closing.test(line));
  const text = lines.slice(at + 1, end).map((line) => (indent ? outdent(line, indent.length) : line)).join('\n');
  return { type: 'pre', lang, text, end: end + 1 };
};

const heading: Rule = (lines, at) => {
  const [whole, marks] = HEADING.exec(lines[at]!) ?? [];
  if (!marks) return false;
  let text = lines[at]!.slice(whole!.length).trim(), end = text.length;
  while (text[end - 1] === '#') end--;
  if (isBlank(text[end - 1] ?? '')) text = text.slice(0, end).trimEnd();
  return { type: `h${Math.min(6, marks.length + 2)}`, text, end: at + 1 };
};

const rule: Rule = (lines, at) => IS_RULE.test(lines[at]!) && { type: 'hr', end: at + 1 };

const quote: Rule = (lines, at, links, depth) => {
  if (!QUOTE.test(lines[at]!) || depth >= DEPTH_MAX) return false;
  const end = until(lines, at, (line) => !QUOTE.test(line)), inside = lines.slice(at, end).map((line) => line.replace(QUOTE, ''));
  return { type: 'blockquote', tokens: lexBlocks(inside.join('\n'), links, depth + 1), end };
};

const list: Rule = (lines, at, links, depth) => {
  let marker = MARKER.exec(lines[at]!), end = at, loose = false;
  if (!marker || indentOf(lines[at]!) > 3 || depth >= DEPTH_MAX) return false;
  const first = marker[2]!, ordered = first.length > 1, items: Token[] = [];
  while (marker) {
    const [whole, lead, mark, space] = marker as unknown as [string, string, string, string];
    const from = end, indent = indentOf(lead), least = indent + mark.length + 1, begins = indentOf(space, least - 1);
    const inner = begins < least || begins > least + 3 ? least : begins; // four more are code
    const inside: string[] = [];
    let fenced = '', open = false, blanks = 0; // open: a paragraph, which may go on without being indented
    const take = (line: string): void => {
      const marks = FENCE.exec(line)?.[2] ?? '';
      open = !isBlank(line) && !fenced && !marks && (open || indentOf(line) < 4) && !HEADING.test(line) && !IS_RULE.test(line);
      fenced = !fenced ? marks : marks.startsWith(fenced) && isBlank(line.replace(marks, '')) ? '' : fenced;
      inside.push(line);
    };
    take(' '.repeat(Math.max(0, begins - inner)) + lines[from]!.slice(whole.length));
    marker = null;
    end++;
    for (let to = end; to < lines.length; to++) {
      const line = lines[to]!, next = MARKER.exec(line), far = indentOf(line);
      if (isBlank(line)) {
        blanks++;
        open = false;
        continue;
      }
      const within = !(blanks && inside.length === 1 && isBlank(inside[0]!)) && (far >= inner || (ordered && next?.[2]!.length === 1 && far >= indent + 2));
      if (!within && next && far < indent + 4 && next[2]!.at(-1) === first.at(-1) && !IS_RULE.test(line)) { // 1) and 1. are two kinds
        marker = next;
        end = to;
        break;
      }
      if (!within && (!open || next || ENDS_PARAGRAPH.test(line) || tableAt(lines, to))) break;
      for (; blanks; blanks--) inside.push('');
      take(within ? outdent(line, inner) : line.trimStart());
      end = to + 1;
    }
    const tokens = lexBlocks(inside.join('\n'), links, depth + 1);
    loose ||= (marker && blanks > 0) || tokens.some(({ raw }, i) => isBlank(raw) && i > 0 && i < tokens.length - 1);
    items.push({ type: 'li', raw: lines.slice(from, end).join('\n'), tokens });
  }
  return { type: ordered ? 'ol' : 'ul', start: ordered ? parseInt(first, 10) : 1, loose, tokens: items, end };
};

const definition: Rule = (lines, at, links) => {
  const [, label, href] = DEFINITION.exec(lines[at]!) ?? [];
  if (!label || !address(href!)) return false;
  links[labelOf(label)] ??= href!;
  return { type: '', end: at + 1 };
};

const table: Rule = (lines, at) => {
  const align = tableAt(lines, at);
  if (!align) return false;
  const end = until(lines, at + 2, (line) => ENDS_TABLE.test(line));
  return { type: 'table', text: lines[at]!, align, tokens: lines.slice(at + 2, end).map((raw) => ({ type: 'tr', raw, align })), end };
};

const paragraph: Rule = (lines, at) => {
  const end = until(lines, at + 1, (line, i) => ENDS_PARAGRAPH.test(line) || tableAt(lines, i));
  return { type: 'p', text: lines.slice(at, end).map((line) => line.replace(/^[ \t]+/, '')).join('\n').trimEnd(), end };
};

const RULES = [blank, indented, fence, heading, rule, quote, list, definition, table, paragraph];

// The blocks of `text`. Definitions of links go into `links`, unless the label is there already.
export function lexBlocks(text: string, links: Links, depth = 0): Token[] {
  const lines = text.split('\n'), tokens: Token[] = [];
  if (!lines.at(-1)) lines.pop();
  for (let at = 0, from = 0; at < lines.length;) {
    let found: ReturnType<Rule>;
    for (const find of RULES) if ((found = find(lines, at, links, depth))) break;
    const { end, ...token } = found as Exclude<typeof found, false | undefined>;
    const raw = text.slice(from, from + lines.slice(at, end).join('\n').length + 1);
    tokens.push({ ...token, raw });
    from += raw.length;
    at = end;
  }
  return tokens;
}

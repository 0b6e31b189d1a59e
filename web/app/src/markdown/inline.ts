// SPDX-License-Identifier: Apache-2.0
//
// The inside of a line as nodes, by the usual method of delimiters. Nothing is ever parsed as HTML.
//
//     a **b `c` *d***      a, opener ** , b, code, opener *, d, closer *** ──► em from *, strong from **
//
// The rules are those of CommonMark and of GitHub's bare addresses, but for what reads better in a chat:
//   - Beside Chinese, Japanese and Korean, emphasis needs no spaces: `**标题：**内容` is bold.
//   - Bare addresses end at those characters and their punctuation.
//   - One ~ strikes nothing out, as in 3~5. Raw HTML is text.
//
// Time is in proportion to the length: a mark looks for its partner among so many only.
//
// To add a mark: its pattern in MARK, its case in `inline`.

import { address, ours } from './address.js';
import { DEPTH_MAX, labelOf, type Links } from './lexer.js';

const INLINE_CHARS_MAX = 200_000;
const BRACKETS_MAX = 256; // open at a time
const MARKS_MAX = 6; // of a kind in a row, for emphasis

type Inside = Node | string;

export function element<K extends keyof HTMLElementTagNameMap>(tag: K, ...inside: Inside[]): HTMLElementTagNameMap[K] {
  const made = document.createElement(tag);
  made.append(...inside);
  return made;
}

function fragment(nodes: Inside[]): DocumentFragment {
  const all = document.createDocumentFragment();
  for (const node of nodes) all.append(node); // they may be more than a call can have arguments
  return all;
}

// ---- text ----

const CJK = ['Han', 'Hiragana', 'Katakana', 'Hangul'].map((name) => `\\p{Script=${name}}`).join('') + '\\u3000-\\u303f\\uff00-\\uffef“”‘’…—';
const HAS_CJK = new RegExp(`[${CJK}]`, 'u');
// A newline between two CJK characters is nothing; elsewhere it is a space.
const JOIN = new RegExp(`(?<=[${CJK}])\\n[ \\t]*(?=[*_~\`[(]{0,3}[${CJK}])|(?<=[${CJK}][*_~\`)\\]]{1,3})\\n[ \\t]*(?=[${CJK}])`, 'gu');

const WORDS = ('amp & lt < gt > quot " apos \' nbsp \u00a0 copy © reg ® trade ™ hellip … mdash — ndash – lsquo ‘ rsquo ’ ldquo “ rdquo ” '
  + 'bull • middot · times × divide ÷ plusmn ± le ≤ ge ≥ ne ≠ deg ° larr ← uarr ↑ rarr → darr ↓ euro € check ✓').split(' ');

const decode = (text: string): string => text.replace(/&(?:#(\d{1,7})|#x([\da-f]{1,6})|(\w{2,8}));/gi, (whole, decimal, hex, name) => {
  if (name) return WORDS[WORDS.indexOf(name) + 1 || Infinity] ?? whole;
  const code = decimal ? Number(decimal) : parseInt(hex, 16);
  return code && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff) ? String.fromCodePoint(code) : '\ufffd';
});

// Marks that reorder what is read are shown as their numbers where the order is what matters: in code and addresses.
export const visible = (text: string): string => text.replace(/[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g,
  (mark) => `⟨U+${mark.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')}⟩`);

// ---- links and pictures ----

function link(href: string, inside: Inside): Node {
  const a = element('a', inside), url = address(decode(href));
  for (const inner of a.querySelectorAll('a')) inner.replaceWith(fragment([...inner.childNodes])); // no link in a link
  if (!url) return fragment([...a.childNodes]);
  a.href = url.href;
  a.rel = 'noopener noreferrer nofollow';
  a.target = '_blank';
  a.title = visible(url.host || url.pathname);
  return a;
}

function picture(href: string, alt: string): Node {
  const url = address(decode(href)), img = element('img');
  if (!url || !ours(url)) return link(href, ['🖼', alt, url?.host && `(${url.host})`].filter(Boolean).join(' '));
  img.loading = 'lazy';
  img.alt = alt;
  img.src = url.href;
  return img;
}

// ---- marks ----

// What may be more than itself.
const MARK = new RegExp(`\\\\(?:\\n|[!-/:-@[-\`{-~])|\`+|\\*+|_+|~+|!?\\[|\\]|<[^\\s<>]+>|(?<! )(?: {2,})?\\n[ \\t]*|https?://|(?<![^\\s*_~(${CJK}])www\\.|`
  + '(?<![\\w.+-])(?:mailto:)?[\\w.+-]{1,64}@', 'giu');
const WEB = new RegExp(`(?:https?://|www\\.)[^\\s<>"\`${CJK}]{1,2000}`, 'iuy');
const MAIL = /(?:mailto:)?([\w.+-]{1,64}@[a-z0-9-]{1,63}(?:\.[a-z0-9-]{1,63}){1,8})(?![\w-])/iy;
const TARGET = /\(\s*(?:<([^<>\n]{0,2000})>|(?!<)((?:\\[^]|[^\s()\\]|\((?:\\[^]|[^\s()\\]){0,999}\)){0,2000}))(?:\s+(?:"[^"]{0,999}"|'[^']{0,999}'|\([^()]{0,999}\)))?\s*\)/y;
const REFERENCE = /\[([^[\]]{0,200})\]/y;
const PUNCT = /[\p{P}\p{S}]/u;

// A stretch of the line: a node, or marks that wait for their partner.
interface Piece { start: number; end: number; node?: Inside; mark?: string; opens?: boolean; closes?: boolean }

function matchAt(pattern: RegExp, text: string, at: number): RegExpExecArray | null {
  pattern.lastIndex = at;
  return pattern.exec(text);
}

// A bare address that begins at `at`: itself, and where it leads.
function bare(text: string, at: number): [string, string] | undefined {
  const mail = matchAt(MAIL, text, at);
  if (mail) return [mail[0], `mailto:${mail[1]}`];
  let found = matchAt(WEB, text, at)?.[0] ?? '';
  while (/[?!.,:;*_~'"\]]$/.test(found) || (found.endsWith(')') && found.split('(').length < found.split(')').length)) found = found.slice(0, -1);
  return /^(?:https?:\/\/|www\.)[^\W_]/i.test(found) ? [found, /^w/i.test(found) ? `http://${found}` : found] : undefined;
}

// May a run of marks open, may it close? By what stands on both sides of it.
function sides(text: string, start: number, end: number): { opens: boolean; closes: boolean } {
  const before = [...text.slice(0, start).slice(-2)].at(-1) ?? ' ', next = [...text.slice(end, end + 2)][0] ?? ' ', low = text[start] === '_';
  const soft = !low && HAS_CJK.test(before + next);
  const hardBefore = !soft && PUNCT.test(before), hardNext = !soft && PUNCT.test(next);
  const left = !!next.trim() && (!hardNext || !before.trim() || hardBefore);
  const right = !!before.trim() && (!hardBefore || !next.trim() || hardNext);
  return { opens: left && (!low || !right || hardBefore), closes: right && (!low || !left || hardNext) };
}

// Marks that found their partner become elements, the others are text.
function pair(text: string, pieces: Piece[]): DocumentFragment {
  const out: Piece[] = [], openers: number[] = []; // where in out
  const nodes = (some: Piece[]): DocumentFragment => fragment(some.map(({ node, start, end }) => node ?? text.slice(start, end)));
  for (const piece of pieces) {
    const { mark, closes, opens } = piece, kind = mark?.[0], strike = kind === '~';
    while (closes && piece.start < piece.end) {
      const size = piece.end - piece.start;
      const which = openers.findLastIndex((one) => { // a run that could do both pairs only with some
        const { mark: other, start, end, closes: both } = out[one]!;
        return other![0] === kind && (strike || !((both || opens) && (end - start + size) % 3 === 0 && size % 3));
      });
      if (which < 0) break;
      const opener = out[openers[which]!]!, inside = out.splice(openers[which]! + 1);
      openers.length = which + 1;
      const wide = strike || (size > 1 && opener.end - opener.start > 1), used = wide ? 2 : 1;
      const node = element(strike ? 'del' : wide ? 'strong' : 'em', nodes(inside));
      if (!wide && HAS_CJK.test(node.textContent!)) node.className = 'md-dots'; // slanted, such characters read badly
      opener.end -= used;
      piece.start += used;
      if (opener.end === opener.start) {
        out.pop();
        openers.pop();
      }
      out.push({ start: opener.end, end: piece.start, node });
    }
    if (mark && opens && piece.start < piece.end && openers.push(out.length) > DEPTH_MAX) openers.shift();
    out.push(piece);
  }
  return nodes(out);
}

// What stands in one paragraph, heading or cell.
export function inline(text: string, links: Links): DocumentFragment {
  if (text.length > INLINE_CHARS_MAX) return fragment([text]);
  text = text.replace(JOIN, '');
  const pieces: Piece[] = [], ticks: number[][] = []; // where runs of ` are, by their length, the last first
  for (const { 0: run, index } of [...text.matchAll(/`+/g)].reverse()) (ticks[run.length] ??= []).push(index);
  let at = 0, end = 0, brackets: number[] = []; // where in pieces
  const put = (start: number, to: number, more: Partial<Piece>): void => { pieces.push({ start, end: at = to, ...more }); };
  const plain = (to: number): void => { if (at < to) put(at, to, { node: decode(text.slice(at, to)) }); };
  for (let found; (found = matchAt(MARK, text, Math.max(at, end)));) {
    const [mark] = found, start = found.index, kind = mark[0]!;
    const node = (made: Inside, to = end): void => put(start, to, { node: made });
    plain(start);
    end = start + mark.length;
    if (kind === '\\') {
      node(mark === '\\\n' ? element('br') : mark[1]!);
    } else if (kind === ' ') {
      node(element('br'));
    } else if (kind === '\n') {
      node('\n');
    } else if (kind === '`') {
      const runs = ticks[mark.length] ?? [];
      while (runs.at(-1)! < end) runs.pop();
      const close = runs.at(-1);
      if (close) node(element('code', visible(text.slice(end, close).replace(/\n/g, ' ').replace(/^ (.*[^ ].*) $/, '$1'))), close + mark.length);
      else node(mark);
    } else if (kind === '<') {
      const to = mark.slice(1, -1), mail = matchAt(MAIL, to, 0);
      if (mail?.[0] === to) node(link(`mailto:${mail[1]}`, to));
      else if (/^[a-z][a-z0-9+.-]{1,31}:/i.test(to)) node(link(to, decode(to)));
    } else if (kind === '[' || kind === '!') {
      if (brackets.push(pieces.length) > BRACKETS_MAX) brackets.shift();
      put(start, end, {});
    } else if (kind === ']') {
      const index = brackets.pop() ?? Infinity, open = pieces[index], label = text.slice(open?.end, start);
      const [whole = '', one, two] = open ? matchAt(TARGET, text, end) ?? matchAt(REFERENCE, text, end) ?? [] : [];
      const href = whole[0] === '(' ? (one ?? two)!.replace(/\\([!-/:-@[-`{-~])/g, '$1') : open && label.length < 201 ? links[labelOf(one?.trim() || label)] : undefined;
      if (href === undefined) {
        node(mark);
        continue;
      }
      const inside = pair(text, pieces.splice(index).slice(1)), from = open!.start, image = text[from] === '!';
      if (!image) brackets = brackets.filter((other) => text[pieces[other]!.start] === '!'); // the words around it are none
      put(from, end + whole.length, { node: image ? picture(href, inside.textContent!) : link(href, inside) });
    } else if (/[*_~]/.test(kind)) {
      if (kind === '~' ? mark.length !== 2 : mark.length > MARKS_MAX) node(mark);
      else put(start, end, { mark, ...sides(text, start, end) });
    } else {
      const [raw, href] = bare(text, start) ?? [];
      if (raw) node(link(href!, decode(raw)), start + raw.length);
    }
  }
  plain(text.length);
  return pair(text, pieces);
}

// Makes what is in `parent` equal to what is in `wanted`, and leaves alone what is already: a selection stays where it was.
export function become(parent: Element, wanted: DocumentFragment): void {
  wanted.normalize();
  const nodes = [...wanted.childNodes];
  nodes.forEach((node, i) => {
    const old = parent.childNodes[i];
    if (!old) parent.append(node);
    else if (old instanceof Text && node instanceof Text) setText(old, node.data);
    else if (!old.isEqualNode(node)) old.replaceWith(node);
  });
  while (parent.childNodes.length > nodes.length) parent.lastChild!.remove();
}

export function setText(node: Text, text: string): void {
  if (text.startsWith(node.data)) node.appendData(text.slice(node.length));
  else node.data = text;
}

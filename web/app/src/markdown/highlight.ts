// SPDX-License-Identifier: Apache-2.0
//
// Colours for code: one pass that finds comments, texts, words and signs, and says of a word what it is by a list and by
// its neighbours. That is enough for code in a chat, and takes time in proportion to its length.
// A span has the class `t-` and the kind.
//
// To add a language: a row in GRAMMARS, and its names in code.ts.

const REST = '(?![^])'; // the end of the text, where something is not closed
const SLASHES = `//.*|/\\*[^]*?(?:\\*/|${REST})`, HASH = '(?<![\\w$&])#.*';
const quoted = (mark: string, inside: string): string => `${mark}(?:\\\\[^]|[^\\\\${mark}${inside})*${mark}?`;
const DOUBLE = quoted('"', '\\n]'), TEXTS = `${DOUBLE}|${quoted("'", '\\n]')}|${quoted('`', ']')}`;
const NAME = '\\d[\\w.]*|[@#$]*[\\w$]+', DASHED = '\\d[\\w.%]*|[@#$.]*-*\\w[\\w-]*'; // the second: in a language of keys and values

const ALL = 'break case class continue else false for if import in return true try while null ';
const BRACES = `${ALL}abstract as async await catch const default do enum export extends final finally function get implements instanceof interface let `
  + 'new of package private protected public set static super switch this throw throws typeof undefined var void yield ';

// Comments, texts, names, and words that are the language's.
const GRAMMARS: { [name: string]: [comment: string, text: string, name: string, words: string] } = {
  js: [SLASHES, TEXTS, NAME, `${BRACES}constructor debugger delete from`],
  ts: [SLASHES, TEXTS, NAME, `${BRACES}any boolean constructor declare delete from infer is keyof namespace never number readonly satisfies string type unknown`],
  py: [HASH, `"""[^]*?(?:"""|${REST})|'''[^]*?(?:'''|${REST})|${TEXTS}`, NAME,
    `${ALL}and as assert async await def del elif except finally from global is lambda nonlocal not or pass raise with yield None True False self`],
  go: [SLASHES, `${DOUBLE}|\`[^\`]*\`?|'(?:\\\\[^'\\n]+|[^'\\\\\\n])'`, NAME,
    `${BRACES}auto bool byte chan char crate defer double dyn elif error extern float fn fun func go goto i32 i64 impl int long loop map match mod move mut nil `
    + 'override pub range select self short signed sizeof string String struct template trait type typedef u8 u32 u64 union unsafe unsigned use using usize val virtual where'],
  sql: [`--.*|${SLASHES}`, TEXTS, NAME,
    `${ALL}add all alter and as asc begin between by check column commit constraint create cross default delete desc distinct drop end exists foreign from full `
    + 'group having index inner insert into is join key left like limit not offset on or order outer over partition primary references right rollback '
    + 'select set table then to union unique update using values view when where with int integer bigint varchar text boolean date timestamp decimal'],
  bash: [HASH, TEXTS, DASHED, `${ALL}do done elif esac exit export fi function local set source sudo then until`],
  json: [SLASHES, DOUBLE, DASHED, 'true false null'],
  yaml: [`${HASH}|;.*`, TEXTS, DASHED, 'true false null yes no on off'],
  css: [SLASHES, TEXTS, DASHED, 'and not only or'],
  html: [`<!--[^]*?(?:-->|${REST})`, `(?<==)(?:"[^"]*"?|'[^']*'?)`, '(?<num>&#?\\w+;)|<[/!?]?[\\w:-]+|[\\w:@.-]+', ''],
  diff: ['^@@.*', '^\\+.*', '(?<deleted>^-.*)', ''],
};

export function highlight(code: Element, grammar: string): void {
  const text = code.textContent!, [comment, quote, name, list] = GRAMMARS[grammar]!, words = list.split(' '), keys = name !== NAME;
  const spans = document.createDocumentFragment();
  let at = 0;
  for (const { 0: part, index, groups } of text.matchAll(new RegExp(`(?<cmnt>${comment})|(?<str>${quote})|${name}|(?<oper>[-+*/%=<>!&|^~?:]+)`, 'gm'))) {
    const end = index + part.length, before = text.slice(0, index).slice(-9), next = text.slice(end, end + 2), span = document.createElement('span');
    const kind = Object.entries(groups!).find(([, found]) => found)?.[0]
      ?? (words.includes(grammar === 'sql' ? part.toLowerCase() : part) && !before.endsWith('.') || part[0] === '<' ? 'kwd'
        : /^-?\.?\d/.test(part) || (keys && /^#[\da-f]{3,8}$/i.test(part)) ? 'num'
          : next[0] === '(' || (grammar === 'bash' && /(^|[|;&($\n]) *$/.test(before)) ? 'func'
            : /^[@#$.-]/.test(part) || (keys && /^ ?[:=]/.test(next)) ? 'var'
              : !keys && /^[A-Z]/.test(part) ? 'class' : '');
    span.className = `t-${kind === 'str' && keys && /^ ?:/.test(next) ? 'var' : kind}`;
    span.append(part);
    spans.append(text.slice(at, index), kind ? span : part);
    at = end;
  }
  spans.append(text.slice(at));
  spans.normalize();
  code.replaceChildren(spans);
}

// SPDX-License-Identifier: Apache-2.0
//
// JSON as it stands: pieces are cut out of a text without being parsed and written again, so that a comparison is one of
// bytes. Texts are valid JSON, which JSON.parse has seen.

import { createHash } from 'node:crypto';

const SPACE = ' \t\r\n';

function skipSpace(text, at) {
  while (SPACE.includes(text[at]) && at < text.length) at++;
  return at;
}

// Behind the string that begins here.
function skipString(text, at) {
  for (at++; text[at] !== '"'; at++) {
    if (at >= text.length) throw new Error('a string without an end');
    if (text[at] === '\\') at++;
  }
  return at + 1;
}

// Behind the value that begins here.
function skipValue(text, at) {
  let depth = 0;
  do {
    const c = text[at];
    if (c === '"') at = skipString(text, at);
    else {
      if (c === '{' || c === '[') depth++;
      if (c === '}' || c === ']') depth--;
      at++;
      if (depth === 0 && c !== '}' && c !== ']') while (at < text.length && !',]} \t\r\n'.includes(text[at])) at++;
    }
    if (at > text.length) throw new Error('a value without an end');
  } while (depth > 0);
  return at;
}

// Members of an object, or entries of a list, that is the whole text: [[key, raw text]].
export function parts(text) {
  const found = [];
  const isList = text[0] === '[';
  for (let at = skipSpace(text, 1); text[at] !== '}' && text[at] !== ']';) {
    let key = found.length;
    if (!isList) {
      const end = skipString(text, at);
      key = JSON.parse(text.slice(at, end));
      at = skipSpace(text, skipSpace(text, end) + 1); // the colon
    }
    const end = skipValue(text, at);
    found.push([key, text.slice(at, end)]);
    at = skipSpace(text, end);
    if (text[at] === ',') at = skipSpace(text, at + 1);
  }
  return found;
}

// What stands under these names, one inside the other; undefined if nothing does.
export function cut(text, ...names) {
  for (const name of names) {
    if (text === undefined || !'{['.includes(text[0])) return undefined;
    text = parts(text).find(([key]) => key === name)?.[1];
  }
  return text;
}

export const hashOf = (text) => createHash('sha256').update(text, 'utf8').digest('hex');

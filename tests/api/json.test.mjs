// SPDX-License-Identifier: Apache-2.0
//
// base/json against Node's JSON.parse: random documents, valid ones and damaged ones, must get the
// same verdict from both, and the same values. We refuse more than JSON.parse in four ways, and each
// is recognised here without our parser: bytes that are not UTF-8 (or start with a byte order mark),
// lone surrogates, duplicate keys and depth. FERMATA_BUILD is the build folder; FERMATA_SEED repeats
// a run.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';

const DOCUMENTS = 6000;
const DEPTH_MAX = 64;
const seed = Number(process.env.FERMATA_SEED ?? Date.now() % 0x7fffffff) >>> 0;
const tool = `${process.env.FERMATA_BUILD ?? 'build/asan'}/tests/json_verdict`;

// A small generator of pseudo-random 32-bit numbers; the seed fixes all that follows.
function generator(state) {
  return () => {
    state = (state + 0x9e3779b9) | 0;
    let x = state;
    x = Math.imul(x ^ (x >>> 16), 0x21f0aaad);
    x = Math.imul(x ^ (x >>> 15), 0x735a2d97);
    return (x ^ (x >>> 15)) >>> 0;
  };
}
const random = generator(seed);
const below = (n) => random() % n;
const pick = (list) => list[below(list.length)];
const times = (n, make) => Array.from({ length: n }, make);

const spaces = ['', '', '', '', ' ', '\n', '\t', '\r\n', '  '];
const space = () => pick(spaces);
const hex4 = (unit) => {
  const digits = unit.toString(16).padStart(4, '0');
  return below(2) ? digits : digits.toUpperCase();
};

const pieces = [
  () => pick(['a', 'id', 'content', ' hello', 'eight888', 'a text of more than sixteen bytes']),
  () => pick(['你好', 'é', '😀', '\u2028', '\u2029', '\u007f', '\ufeff', '\uffff', '\u{10ffff}']),
  () => String.fromCodePoint(0x20 + below(0xd7e0)).replace(/["\\]/, 'x'),
  () => `\\${pick(['"', '\\', '/', 'b', 'f', 'n', 'r', 't'])}`,
  () => `\\u${hex4(below(0xd800))}`,
  () => `\\u${hex4(0xd800 + below(0x400))}\\u${hex4(0xdc00 + below(0x400))}`,
];
// Rarely a lone surrogate, which Node accepts and we do not.
const string = () =>
  `"${times(below(5), () => (below(200) ? pick(pieces)() : `\\u${hex4(0xd800 + below(0x800))}`)).join('')}"`;

const digits = () => times(1 + below(pick([2, 5, 20])), () => below(10)).join('');
const number = () =>
  pick(['', '-']) +
  pick(['0', `${1 + below(9)}`, `${1 + below(9)}${digits()}`]) +
  pick(['', '', `.${digits()}`]) +
  pick(['', '', '', `${pick(['e', 'E'])}${pick(['', '+', '-'])}${1 + below(400)}`]);

function value(depth) {
  const kinds = depth > 5 ? 5 : 8;
  switch (below(kinds)) {
    case 0: return pick(['true', 'false', 'null']);
    case 1: case 2: return number();
    case 3: case 4: return string();
    case 5: case 6: return object(depth);
    default: return `[${space()}${times(below(5), () => value(depth + 1)).join(`${space()},${space()}`)}${space()}]`;
  }
}
const object = (depth) => {
  const count = below(20) ? below(6) : 10 + below(40); // some pass the size where a set takes over
  const member = (_, i) => {
    const key = below(8) ? `"${string().slice(1, -1)}${i}"` : string(); // now and then equal keys
    return `${key}${space()}:${space()}${value(depth + 1)}`;
  };
  return `{${space()}${times(count, member).join(`${space()},${space()}`)}${space()}}`;
};
const nested = () => {
  const levels = DEPTH_MAX - 3 + below(6);
  const opens = times(levels, () => pick(['[', '{"k":']));
  const closes = opens.map((open) => (open === '[' ? ']' : '}')).reverse();
  return opens.join('') + number() + closes.join('');
};

const tokens = ['{', '}', '[', ']', ',', ':', '"', '\\', '\\u', '\\ud800', '0', '-', '.', 'e', 'true', 'nul', ' ', '\n', '\0', '\x1f', '\u00a0', '//', "'"];
const damages = [
  (b) => b.subarray(0, below(b.length + 1)),
  (b) => Buffer.concat([b, Buffer.from(pick(tokens))]),
  (b) => Buffer.concat([Buffer.from(pick(tokens)), b]),
  (b) => cut(b, 1, Buffer.alloc(0)),
  (b) => cut(b, 0, Buffer.from(pick(tokens))),
  (b) => cut(b, 1, Buffer.from(pick(tokens))),
  (b) => cut(b, 1, Buffer.from([below(256)])),
  (b) => cut(b, 0, b.subarray(below(b.length), below(b.length + 1))),
];
function cut(bytes, remove, insert) {
  const at = below(bytes.length + 1);
  return Buffer.concat([bytes.subarray(0, at), insert, bytes.subarray(at + remove)]);
}

function document() {
  let bytes = Buffer.from(`${space()}${below(40) ? value(0) : nested()}${space()}`);
  if (below(2)) for (let i = 1 + below(2); i > 0; i--) bytes = pick(damages)(bytes);
  return bytes;
}

// The four stricter refusals, for a document that JSON.parse accepts. Duplicates: an object with
// equal keys has fewer members than colons outside strings.
const withoutStrings = (text) => text.replace(/"(?:[^"\\]|\\.)*"/gs, '""');
function deepest(text) {
  let depth = 0, most = 0;
  for (const c of withoutStrings(text)) {
    if (c === '[' || c === '{') most = Math.max(most, ++depth);
    if (c === ']' || c === '}') depth--;
  }
  return most;
}
function members(parsed) {
  if (parsed === null || typeof parsed !== 'object') return 0;
  const inner = Object.values(parsed).reduce((sum, v) => sum + members(v), 0);
  return Array.isArray(parsed) ? inner : inner + Object.keys(parsed).length;
}
// __proto__ would be a member like any other: JSON.parse makes it an own property.
const hasDuplicates = (text, parsed) => withoutStrings(text).split(':').length - 1 !== members(parsed);
function hasLoneSurrogate(parsed) {
  if (typeof parsed === 'string') return !parsed.isWellFormed();
  if (parsed === null || typeof parsed !== 'object') return false;
  return Object.entries(parsed).some(([k, v]) => !k.isWellFormed() || hasLoneSurrogate(v));
}

function judge(bytes) {
  let text, parsed;
  try {
    text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
    parsed = JSON.parse(text);
  } catch {
    return { verdict: 'invalid' };
  }
  if (deepest(text) > DEPTH_MAX) return { verdict: 'too deep' };
  if (hasDuplicates(text, parsed)) return { verdict: 'duplicate key' };
  if (hasLoneSurrogate(parsed)) return { verdict: 'lone surrogate' };
  return { verdict: 'accept', text, parsed };
}

function ask(documents) {
  const input = documents.map((d) => `${d.toString('hex')}\n`).join('');
  const run = spawnSync(tool, { input, maxBuffer: 1 << 28 });
  assert.equal(run.error, undefined, `${tool}: ${run.error}`);
  assert.equal(run.status, 0, `json_verdict ended with ${run.status ?? run.signal}: ${run.stderr}`);
  return run.stdout.toString().split('\n').slice(0, -1);
}

// Numbers pass through the tree as they were written, in the same order.
const numbers = (text) => withoutStrings(text).match(/-?\d[\d.eE+-]*/g) ?? [];

test(`random documents get Node's verdict and values (FERMATA_SEED=${seed})`, (t) => {
  t.diagnostic(`seed ${seed}`);
  const documents = times(DOCUMENTS, document);
  const answers = ask(documents);
  assert.equal(answers.length, documents.length);

  const seen = {};
  documents.forEach((bytes, i) => {
    const { verdict, text, parsed } = judge(bytes);
    const [ours, hex] = answers[i].split(' ');
    const expected = verdict === 'accept' ? 'accept' : 'reject';
    seen[verdict] = (seen[verdict] ?? 0) + 1;
    assert.equal(ours, expected, `seed ${seed}, document ${i}, ${verdict}: ${answers[i]}\n${bytes}`);
    if (ours === 'reject') {
      if (verdict === 'too deep') assert.match(answers[i], /too deep|duplicate key|lone surrogate/);
      return;
    }
    const written = Buffer.from(hex, 'hex').toString();
    assert.deepEqual(JSON.parse(written), parsed, `seed ${seed}, document ${i}\n${bytes}`);
    assert.deepEqual(numbers(written), numbers(text));
  });
  t.diagnostic(JSON.stringify(seen));
  for (const verdict of ['accept', 'invalid', 'too deep', 'duplicate key', 'lone surrogate'])
    assert.ok(seen[verdict] >= 3, `only ${seen[verdict] ?? 0} documents: ${verdict}`);
});

test('every single byte and every pair of bytes', () => {
  const documents = times(256, (_, i) => Buffer.from([i]));
  for (let i = 0; i < 65536; i++) documents.push(Buffer.from([i >> 8, i & 255]));
  ask(documents).forEach((answer, i) => {
    const expected = judge(documents[i]).verdict === 'accept' ? 'accept' : 'reject';
    assert.equal(answer.split(' ')[0], expected, documents[i].toString('hex'));
  });
});

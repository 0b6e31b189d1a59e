// SPDX-License-Identifier: Apache-2.0
//
// The card compiler and docs/schema against a validator that is not ours (ajv, strict): the corpus of tests/ui and
// thousands of changed cards from it, through tests/tools/ui_verdict.c. Every card that comes out is valid UiSchema
// 2.0 and within its limits. What is accepted is valid UiHints 2.1; what is refused is not, and the pointer is one
// that the validator names, too - apart from the few rules that JSON Schema cannot say (ONLY_COMPILER).
// FERMATA_SEED repeats a run, FERMATA_CARDS makes it longer.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, test } from 'node:test';

import Ajv from 'ajv/dist/2020.js';

import { faults } from './json-schema.mjs';
import { buildFolder, within } from './server.mjs';

const ROOT = resolve(import.meta.dirname, '../..');
const CARDS = Number(process.env.FERMATA_CARDS ?? 24_000);
const BATCH = 2000;
const BATCH_MS_MAX = 60_000;
const BYTES_MAX = 256 * 1024, NODES_MAX = 500, DEPTH_MAX = 8;
const seed = Number(process.env.FERMATA_SEED ?? Date.now() % 0x7fffffff) >>> 0;

const readJson = (path) => JSON.parse(readFileSync(join(ROOT, path), 'utf8'));
const HINTS = readJson('docs/schema/ui-hints-2.1.json'), SCHEMA = readJson('docs/schema/ui-schema-2.0.json');
const ajv = new Ajv({ strict: true, allowUnionTypes: true, allErrors: true });
const hintsValid = ajv.compile(HINTS), schemaValid = ajv.compile(SCHEMA);

const cases = readdirSync(join(ROOT, 'tests/ui')).filter((file) => file.endsWith('.json')).map((file) => ({ file, ...readJson(`tests/ui/${file}`) }));

// Reasons that JSON Schema has no words for: what is left once the texts are trimmed, and how deep a payload is.
const ONLY_COMPILER = [/^the hints have nothing to show/, / is nested more than \d+ deep$/];

// ---- the driver ----

// Documents through one process: [{verdict: 'card' | 'refused' | 'no JSON', bytes}] in their order.
async function compileAll(documents) {
  const proc = spawn(join(buildFolder(), 'tests/ui_verdict'), { stdio: ['pipe', 'pipe', 'pipe'] });
  const out = [], errors = [];
  proc.stdout.on('data', (piece) => out.push(piece));
  proc.stderr.on('data', (piece) => errors.push(piece));
  proc.stdin.on('error', () => {}); // told by its status
  for (const { text, locale } of documents) {
    const bytes = Buffer.from(text), head = Buffer.alloc(5);
    head.write(locale === 'zh-CN' ? 'z' : 'e');
    head.writeUInt32LE(bytes.length, 1);
    proc.stdin.write(head);
    proc.stdin.write(bytes);
  }
  proc.stdin.end();
  const code = await within(BATCH_MS_MAX, 'ui_verdict', new Promise((done, failed) => { proc.on('error', failed).on('close', done); }));
  assert.equal(code, 0, `seed ${seed}: ${Buffer.concat(errors)}`);
  const all = Buffer.concat(out), answers = [];
  for (let at = 0; at < all.length;) {
    const len = all.readUInt32LE(at + 1);
    answers.push({ verdict: { c: 'card', r: 'refused', n: 'no JSON' }[String.fromCharCode(all[at])], bytes: all.subarray(at + 5, at + 5 + len) });
    at += 5 + len;
  }
  assert.equal(answers.length, documents.length);
  return answers;
}

// ---- what must hold ----

const escaped = (name) => name.replaceAll('~', '~0').replaceAll('/', '~1');
// Where the validator sees a fault: at a value, or at the place of one that is missing.
const pointerOf = ({ instancePath, keyword, params }) => (keyword === 'required' ? `${instancePath}/${escaped(params.missingProperty)}` : instancePath);

function measure(node, depth, tally) {
  tally.nodes++;
  tally.depth = Math.max(tally.depth, depth);
  for (const child of node.children ?? []) measure(child, depth + 1, tally);
  return tally;
}

function assertCard(bytes, about) {
  const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  assert.ok(bytes.length <= BYTES_MAX && !/[\n\r]/.test(text), about());
  const schema = JSON.parse(text);
  assert.ok(schemaValid(schema), `${about()}\n${text.slice(0, 2000)}\n${JSON.stringify(schemaValid.errors, null, 1)}`);
  const { nodes, depth } = measure(schema.root, 1, { nodes: 0, depth: 0 });
  assert.ok(nodes <= NODES_MAX && depth <= DEPTH_MAX, about());
}

function assertVerdict({ text }, { verdict, bytes }) {
  const about = () => `seed ${seed}: ${text.slice(0, 4000)}`;
  if (verdict === 'no JSON') return; // tests/api/json.test.mjs
  let readable = true; // a number may be larger than any of JavaScript's, and ajv would take it for none
  const hints = JSON.parse(text, (key, value) => {
    if (value === Infinity || value === -Infinity) readable = false;
    return value;
  });
  if (!readable) return;
  const valid = hintsValid(hints);
  if (verdict === 'card') {
    assert.ok(valid, `accepted, but not by the schema: ${about()}\n${JSON.stringify(hintsValid.errors, null, 1)}`);
    assertCard(bytes, about);
    return;
  }
  const [pointer, reason] = bytes.toString().split('\n');
  if (ONLY_COMPILER.some((known) => known.test(reason))) return;
  assert.ok(!valid, `refused (${pointer}: ${reason}), but not by the schema: ${about()}`);
  const found = hintsValid.errors.map(pointerOf);
  assert.ok(found.includes(pointer), `refused at ${pointer} (${reason}), by the schema at ${found}: ${about()}`);
}

// ---- changed cards ----

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
const isObject = (value) => typeof value === 'object' && value !== null && !Array.isArray(value);
const copy = (value) => structuredClone(value);

const names = new Set(), words = new Set();
(function collect(schema) {
  if (typeof schema !== 'object' || schema === null) return;
  if (isObject(schema.properties)) for (const name of Object.keys(schema.properties)) names.add(name);
  for (const word of [].concat(schema.const ?? [], schema.enum ?? [])) words.add(word);
  for (const inner of Object.values(schema)) collect(inner);
})(HINTS);
const NAMES = [...names], WORDS = [...words];
const SPACES = ['', ' ', '\t', '\n', '\r\n', '\u00a0', '\u3000', '\u200b', '\u2060', '\ufeff', '\u2028', '\u0085', '\u180e'];
const HIDDEN = ['\u202e', '\u2066', '\u200d', '\u0000', '\u0007', '\u007f', '\u00ad', '\u061c'];
const LINKS = ['/', '//', '/a', '/\\a', '\\', 'https://', 'https://a', 'HTTP://A.b/c?d#e', 'https:///a', 'https://?a', 'http:a', 'mailto:', 'mailto:a@b',
  'mailto:/a', 'tel:', 'tel:+1', 'javascript:alert(1)', 'data:text/html,x', 'ftp://a', ' /a ', '/a b', 'https://a\tb', '/\u202ea', 'https://中文.example/路'];
const TEXTS = [() => pick(SPACES) + pick(WORDS) + pick(SPACES), () => pick(SPACES), () => pick(HIDDEN), () => pick(SPACES) + pick(HIDDEN),
  () => pick(LINKS), () => pick(SPACES) + pick(LINKS) + pick(SPACES), () => pick(LINKS) + pick(HIDDEN), () => pick(['```\ncode\n```', '~~~\nx\n~~~', '```', '# 题', '[a](javascript:x)']),
  () => '字'.repeat(below(300)), () => pick(WORDS)];
const VALUES = [() => pick(TEXTS)(), () => pick(TEXTS)(), () => pick([0, -0, 1, -1.5, 1e300, 1e-7, 2 ** 53, 0.1]), () => null, () => true, () => false, () => [],
  () => ({}), () => [pick(TEXTS)()], () => ({ [pick(NAMES)]: pick(TEXTS)() }), () => nested(1 + below(40))];
const nested = (depth) => (depth ? (below(2) ? [nested(depth - 1)] : { a: nested(depth - 1) }) : 1);

// Every place in a value: {parent, key}.
function places(value, found = []) {
  if (typeof value !== 'object' || value === null) return found;
  for (const key of Object.keys(value)) {
    found.push({ parent: value, key });
    places(value[key], found);
  }
  return found;
}

const CHANGES = [
  ({ parent, key }) => { parent[key] = pick(VALUES)(); },
  ({ parent, key }) => { if (typeof parent[key] === 'string') parent[key] = pick(TEXTS)(); },
  ({ parent, key }) => { if (typeof parent[key] === 'string') parent[key] = pick(SPACES) + parent[key] + pick(SPACES); },
  ({ parent, key }) => { if (Array.isArray(parent)) parent.splice(key, 1); else delete parent[key]; },
  ({ parent, key }) => { if (Array.isArray(parent)) for (let n = below(4); n; n--) parent.splice(key, 0, copy(parent[key])); },
  ({ parent, key }) => { if (Array.isArray(parent) && !below(20)) for (let n = below(600); n; n--) parent.push(copy(parent[key])); },
  ({ parent }) => { if (isObject(parent)) parent[pick(NAMES)] = pick(VALUES)(); },
  ({ parent, key }) => { if (isObject(parent)) { parent[pick(NAMES)] = parent[key]; delete parent[key]; } },
  ({ parent, key }) => { // a part of another card, of the same name if there is one
    const others = places(pick(cases).hints);
    const same = others.filter((other) => other.key === key && !Array.isArray(other.parent));
    if (others.length) parent[key] = copy(pick(same.length && below(4) ? same : others).parent[pick(same.length ? same : others).key]);
    if (parent[key] === undefined) delete parent[key];
  },
];

function changeBytes(text) {
  const bytes = Buffer.from(text);
  for (let n = 1 + below(3); n && bytes.length; n--) bytes[below(bytes.length)] = pick([...Buffer.from('{}[]",:\\ 019et'), below(256)]);
  return below(4) ? bytes : bytes.subarray(0, below(bytes.length + 1));
}

function changed() {
  const { hints, locale } = pick(cases);
  const tree = { hints: copy(hints) };
  for (let n = 1 + below(3); n; n--) {
    const found = places(tree);
    if (found.length) pick(CHANGES)(pick(found));
  }
  const text = JSON.stringify(tree.hints) ?? 'null';
  if (below(10) || text.length > 100_000) return { text, locale };
  const bytes = changeBytes(text);
  // What is no UTF-8 must be refused before it is read; only what Node can read is compared.
  return { text: bytes.toString('utf8'), locale };
}

// ---- the tests ----

describe(`cards and ajv, seed ${seed}`, () => {
  test('the corpus in both languages', async () => {
    const documents = cases.flatMap(({ hints }) => ['zh-CN', 'en'].map((locale) => ({ text: JSON.stringify(hints), locale })));
    const answers = await compileAll(documents);
    cases.forEach(({ file, schema, error }, i) => {
      for (const answer of answers.slice(2 * i, 2 * i + 2)) {
        assert.equal(answer.verdict, schema ? 'card' : 'refused', file);
        if (answer.verdict === 'card') assertCard(answer.bytes, () => file);
        if (error) assert.equal(answer.bytes.toString().split('\n')[0], error.path, file);
      }
      if (schema) assert.ok(schemaValid(schema) && hintsValid(cases[i].hints), file);
      else assert.equal(hintsValid(cases[i].hints), error.onlyCompiler === true, file);
    });
  });

  test(`${CARDS} changed cards`, { timeout: 600_000 }, async () => {
    const tally = { card: 0, refused: 0, 'no JSON': 0 };
    for (let done = 0; done < CARDS; done += BATCH) {
      const documents = Array.from({ length: Math.min(BATCH, CARDS - done) }, changed);
      const answers = await compileAll(documents);
      answers.forEach((answer, i) => {
        tally[answer.verdict]++;
        assertVerdict(documents[i], answer);
      });
    }
    for (const [verdict, count] of Object.entries(tally)) assert.ok(count > CARDS / 100, `${verdict}: only ${count}`);
  });

  test('our own small checker agrees with ajv', () => {
    for (let n = 0; n < 2000; n++) {
      let hints;
      try {
        hints = JSON.parse(changed().text);
      } catch {
        continue;
      }
      assert.equal(faults(HINTS, hints).length === 0, hintsValid(hints), `seed ${seed}: ${JSON.stringify(hints).slice(0, 2000)}`);
    }
  });
});

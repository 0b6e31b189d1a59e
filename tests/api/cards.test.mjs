// SPDX-License-Identifier: Apache-2.0
//
// The card compiler as clients and people meet it: every case of tests/ui by POST /compile-ui-hints, and by the command
// for the same bytes. UPDATE=1 writes the expected schemas anew; read the difference before keeping it.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { after, before, describe, test } from 'node:test';

import { assertProblem, bearer, call, Home, run } from './home.mjs';
import { faults } from './json-schema.mjs';
import { buildFolder, within } from './server.mjs';

const PATH = '/api/v1/agent/compile-ui-hints';
const ROOT = resolve(import.meta.dirname, '../..');
const FOLDER = join(ROOT, 'tests/ui');
const BYTES_MAX = 256 * 1024, NODES_MAX = 500, DEPTH_MAX = 8, HINTS_BYTES_MAX = 1024 * 1024;
const CUT = { en: 'This card is too long to show; the rest is left out.', 'zh-CN': '卡片内容过长，其余部分已省略。' };
const readJson = (path) => JSON.parse(readFileSync(join(ROOT, path), 'utf8'));
const HINTS = readJson('docs/schema/ui-hints-2.1.json'), SCHEMA = readJson('docs/schema/ui-schema-2.0.json');

// The bytes of a member stand on its own line.
const lineOf = (text, name) => text.split('\n').find((line) => line.startsWith(`  "${name}": `))?.slice(`  "${name}": `.length).replace(/,$/, '');

const cases = readdirSync(FOLDER).filter((file) => file.endsWith('.json')).map((file) => {
  const path = join(FOLDER, file), text = readFileSync(path, 'utf8');
  return { file, path, text, ...JSON.parse(text), hintsText: lineOf(text, 'hints'), schemaText: lineOf(text, 'schema') };
});

let home, server, key, cleanUp, folder;
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'fermata-cards-'));
  home = await Home.make({ after: (fn) => { cleanUp = fn; } }, { FERMATA_LIMITS_RATE: '100000' });
  server = await home.start();
  key = bearer(await home.addKey('ann'));
});
after(async () => {
  await rm(folder, { recursive: true, force: true });
  await cleanUp?.();
});

const post = (body, headers = {}) => call(server, 'POST', PATH, { headers: { ...key, ...headers }, body });
const compile = (hints, locale = 'en') => post(typeof hints === 'string' ? hints : JSON.stringify(hints), { 'accept-language': locale });
const card = (more) => ({ version: '2.1', intent: 'message', status: 'info', title: 'x', ...more });

// The command with hints on standard input.
function command(input, locale, args = []) {
  const proc = spawn(resolve(buildFolder(), 'fermata'), ['compile-ui', ...args], { env: { PATH: process.env.PATH, LC_ALL: locale } });
  const out = [], errors = [];
  proc.stdout.on('data', (piece) => out.push(piece));
  proc.stderr.on('data', (piece) => errors.push(piece));
  proc.stdin.on('error', () => {}); // it may end before it has read everything
  proc.stdin.end(input);
  return within(20_000, 'compile-ui', new Promise((done, failed) => {
    proc.on('error', failed).on('close', (code) => done({ code, stdout: Buffer.concat(out).toString(), stderr: Buffer.concat(errors).toString() }));
  }));
}

// Every node with its depth, in document order.
function* nodesOf(node, depth = 1) {
  yield { node, depth };
  for (const child of node.children ?? []) yield* nodesOf(child, depth + 1);
}

// What holds for every card, whatever it is about.
function assertCard(text) {
  const schema = JSON.parse(text);
  assert.deepEqual(faults(SCHEMA, schema), []);
  assert.ok(Buffer.byteLength(text) <= BYTES_MAX);
  assert.ok(!/[\n\r]/.test(text));
  const nodes = [...nodesOf(schema.root)];
  assert.ok(nodes.length <= NODES_MAX);
  assert.ok(nodes.every(({ depth }) => depth <= DEPTH_MAX));
  const buttons = nodes.filter(({ node }) => node.type === 'button').map(({ node }) => node);
  assert.deepEqual(buttons.map(({ id }) => id), buttons.map((_, i) => `a${i}`));
  assert.ok(buttons.filter(({ style }) => style === 'primary').length <= 1);
  for (const { node } of nodes) {
    if (node.type === 'stack') assert.notEqual(node.children.at(-1).type, 'divider');
    if (node.type === 'text') assert.equal(node.content.trim(), node.content.trimStart() && node.content.trim());
  }
  return { schema, nodes };
}

describe('the corpus', () => {
  test('has cases of every intent, node and action, in both languages', () => {
    assert.ok(cases.length >= 60);
    const good = cases.filter(({ schema }) => schema);
    const texts = good.map(({ text }) => text).join('');
    for (const intent of HINTS.properties.intent.enum) assert.ok(good.some(({ hints }) => hints.intent === intent), intent);
    for (const { $ref } of SCHEMA.$defs.node.oneOf) {
      const type = SCHEMA.$defs[$ref.split('/').at(-1)].properties.type.const;
      assert.ok(texts.includes(`{"type":"${type}"`), type);
    }
    for (const { properties } of SCHEMA.$defs.actionPayload.oneOf) assert.ok(texts.includes(`"action":{"type":"${properties.type.const}"`), properties.type.const);
    for (const locale of ['zh-CN', 'en']) assert.ok(good.some(({ schema }) => schema.locale === locale), locale);
    assert.deepEqual([...new Set(cases.map(({ name }) => name))].length, cases.length, 'each name once');
  });

  for (const { file, path, text, name, hints, hintsText, schemaText, error, locale } of cases) {
    test(`${file}: ${name}`, async () => {
      const answer = await compile(hintsText, locale);
      if (error) {
        assertProblem(answer, 422, 'invalid_hints', error.path || undefined);
        const found = faults(HINTS, hints);
        if (error.onlyCompiler) assert.deepEqual(found, [], 'JSON Schema cannot say this');
        else assert.ok(found.some(([at]) => at === error.path), `the schema says ${JSON.stringify(found)}`);
        return;
      }
      assert.equal(answer.status, 200, answer.text);
      assert.equal(answer.headers['content-type'], 'application/json');
      assert.deepEqual(faults(HINTS, hints), []);
      assertCard(answer.text);
      if (process.env.UPDATE) await writeFile(path, text.replace(/^ {2}"schema": .*$/m, () => `  "schema": ${answer.text}`));
      else assert.equal(answer.text, schemaText);
    });
  }
});

describe('the command', () => {
  for (const { file, hintsText, schemaText, error, locale } of cases) {
    test(`gives the same for ${file}`, async () => {
      const { code, stdout, stderr } = await command(hintsText, locale === 'zh-CN' ? 'zh_CN.UTF-8' : 'C.UTF-8');
      assert.equal(stdout, schemaText ?? '');
      assert.equal(code, error ? 1 : 0, stderr);
      if (error) assert.ok(stderr.startsWith(`fermata: ${error.path ? `${error.path}: ` : ''}`), stderr);
      else assert.equal(stderr, '');
    });
  }

  test('reads a file, or - for standard input', async () => {
    const file = join(folder, 'hints.json'), hints = JSON.stringify(card());
    await writeFile(file, hints);
    const wanted = (await compile(hints)).text;
    assert.deepEqual(await run(['compile-ui', file]), { code: 0, stdout: wanted, stderr: '' });
    assert.deepEqual(await command(hints, 'C', ['-']), { code: 0, stdout: wanted, stderr: '' });
  });

  test('says what is wrong: no file, no JSON, two files, too large', async () => {
    const missing = await run(['compile-ui', join(folder, 'none.json')]);
    assert.deepEqual([missing.code, missing.stdout], [1, '']);
    assert.match(missing.stderr, /none\.json: cannot be read/);
    const words = await command('{"version":', 'C');
    assert.deepEqual([words.code, words.stdout, words.stderr], [1, '', 'fermata: this is not JSON: unexpected end at byte 11\n']);
    const two = await run(['compile-ui', 'a', 'b']);
    assert.deepEqual([two.code, two.stdout], [2, '']);
    const large = await command(JSON.stringify(card({ body: 'x'.repeat(HINTS_BYTES_MAX) })), 'C');
    assert.deepEqual([large.code, large.stdout], [1, '']);
    assert.match(large.stderr, /larger than 1048576 bytes/);
  });
});

describe('the route', () => {
  test('takes any content type, or none', async () => {
    const hints = JSON.stringify(card()), wanted = (await compile(hints)).text;
    for (const type of ['application/json', 'text/plain;charset=UTF-8', 'application/x-www-form-urlencoded', 'image/png', '']) {
      const answer = await post(hints, type ? { 'content-type': type } : {});
      assert.deepEqual([answer.status, answer.text], [200, wanted], type);
    }
  });

  test('takes its language from Accept-Language', async () => {
    for (const [accepted, locale] of [[undefined, 'en'], ['', 'en'], ['zh', 'zh-CN'], ['zh-CN', 'zh-CN'], ['zh-TW,zh;q=0.9', 'zh-CN'], ['ZH-hans', 'zh-CN'],
      ['en-GB,zh;q=0.9', 'en'], ['en;q=0.5, zh;q=0.8', 'zh-CN'], ['fr', 'en'], ['fr;q=0.4,zh;q=0.3', 'en'], ['zh;q=0', 'en'], ['zhx', 'en'], ['*', 'en'],
      ['zh;q=2', 'en'], ['zh;q=0.1234', 'en'], [',,;q=1,zh', 'zh-CN'], ['en;q=0.8,zh;q=0.8', 'en']]) {
      const answer = await post(JSON.stringify(card()), accepted === undefined ? {} : { 'accept-language': accepted });
      assert.equal(answer.json().locale, locale, accepted);
    }
  });

  test('gives the same bytes for the same hints, and no meta', async () => {
    const hints = JSON.stringify(cases.find(({ file }) => file === 'mixed-all.json').hints);
    const answers = await Promise.all(Array.from({ length: 5 }, () => compile(hints)));
    assert.equal(new Set(answers.map(({ text }) => text)).size, 1);
    assert.equal(answers[0].json().meta, undefined);
  });

  test('refuses what is no JSON, what is compressed, and what is too large', async () => {
    assertProblem(await post('{'), 400, 'invalid_field');
    assertProblem(await post(''), 400, 'invalid_field');
    assertProblem(await post('{"version":"2.1","version":"2.1"}'), 400, 'invalid_field');
    assertProblem(await post('{}', { 'content-encoding': 'gzip' }), 415, 'unsupported_type');
    const fitting = JSON.stringify(card({ body: '' }));
    const body = 'x'.repeat(HINTS_BYTES_MAX - fitting.length);
    assert.equal((await compile(card({ body }))).status, 200);
    assertProblem(await compile(card({ body: `${body}x` })), 413, 'too_large');
  });

  test('needs a key', async () => {
    assertProblem(await call(server, 'POST', PATH, { body: JSON.stringify(card()) }), 401, 'unauthenticated');
  });
});

describe('limits', () => {
  const captions = ({ nodes }) => nodes.filter(({ node }) => Object.values(CUT).includes(node.content));
  // A card of exactly `count` nodes: root, header row, title, list stack, then 3 for each entry less a divider.
  const listOf = (count, more = {}) => card({ intent: 'list', listItems: Array.from({ length: count }, (_, i) => ({ title: `n${i}` })), ...more });

  test('500 nodes are whole, 501 are cut to 500 with a caption', async () => {
    // 4 + 3n - 1 = 498 for n = 165; a description and a body make 500, one more text 501.
    const whole = assertCard((await compile(listOf(165, { description: 'd', body: 'b' }))).text);
    assert.equal(whole.nodes.length, 500);
    assert.deepEqual(captions(whole), []);
    const cut = assertCard((await compile(listOf(165, { description: 'd', body: 'b', items: [{ key: 'k', value: 1 }] }))).text);
    assert.ok(cut.nodes.length <= 500 && cut.nodes.length >= 497);
    assert.equal(captions(cut).length, 1);
    assert.equal(cut.schema.root.children.at(-1).content, CUT.en);
    const zh = assertCard((await compile(listOf(400), 'zh')).text);
    assert.equal(zh.schema.root.children.at(-1).content, CUT['zh-CN']);
  });

  for (const [what, unit] of [['ascii', 'x'], ['中文', '字'], ['escapes', '"'], ['emoji', '🎉']]) {
    test(`262,144 bytes are whole, one more is cut at a character: ${what}`, async () => {
      const bare = Buffer.byteLength((await compile(card({ body: 'x' }))).text) - 1;
      const step = Buffer.byteLength(JSON.stringify(unit)) - 2;
      const room = BYTES_MAX - bare, fill = 'x'.repeat(room % step);
      const whole = (await compile(card({ body: unit.repeat(Math.floor(room / step)) + fill }))).text;
      assert.equal(Buffer.byteLength(whole), BYTES_MAX);
      assert.deepEqual(captions(assertCard(whole)), []);
      const over = (await compile(card({ body: unit.repeat(Math.floor(room / step)) + `${fill}x` }))).text;
      const cut = assertCard(over);
      assert.ok(Buffer.byteLength(over) > BYTES_MAX - 16, `${Buffer.byteLength(over)}`);
      assert.equal(captions(cut).length, 1);
      const body = cut.nodes.find(({ node }) => node.role === 'body').node.content;
      assert.match(body, new RegExp(`^(${unit})+…$`, 'u'));
    });
  }

  test('values, keys, labels and actions that do not fit', async () => {
    const long = 'y'.repeat(300_000);
    for (const more of [{ items: [{ key: 'a', value: 1 }, { key: 'k', value: long }] }, { items: [{ key: 'a', value: 1 }, { key: long, value: 1 }] },
      { items: [{ key: 'k', value: { deep: [long] } }] }, { items: [{ key: 'k', value: [1, 2, 3, long, 4] }] }, { actions: [{ label: long, action: { type: 'event', event: 'e' } }] },
      { actions: [{ label: 'a', action: { type: 'payload', payload: { long } } }] }, { listItems: [{ title: 'a' }, { title: 'b', badge: { label: long } }] }, { title: long },
      { sections: [{ title: 'a', body: long }, { title: 'never' }] }, { icon: long }, { intent: 'data', sections: [{ title: long, items: [{ key: 'k', value: 1 }] }] }]) {
      const answer = await compile(card(more));
      assert.equal(answer.status, 200);
      const cut = assertCard(answer.text);
      assert.equal(captions(cut).length, 1);
      assert.ok(!answer.text.includes('never'));
    }
  });

  test('the deepest card has seven levels', async () => {
    const { nodes } = assertCard(cases.find(({ file }) => file === 'limit-depth.json').schemaText);
    assert.equal(Math.max(...nodes.map(({ depth }) => depth)), 7);
  });
});

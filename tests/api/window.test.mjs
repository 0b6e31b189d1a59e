// SPDX-License-Identifier: Apache-2.0
//
// A model with a small window, and a conversation that is far longer. Every request fits, no call stands without its
// result, where the conversation begins moves seldom and never back, and a request that is made again by another
// process has the same bytes.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';

import { execute, rows, until } from './asking.mjs';
import { Home } from './home.mjs';
import { accepted, history, runOf, user, waitFor } from './talk.mjs';

const WINDOW = 8192, ANSWER = WINDOW / 4, RESERVE = 1024;
const ROOM = WINDOW - ANSWER - RESERVE;
const TURNS = 500, TURNS_MS_MAX = 300_000;
const MARK = /Older parts of this conversation are left out/;
const words = (count) => 'an old story told again, '.repeat(Math.ceil(count / 25)).slice(0, count);
const fetch = (...sizes) => ({ calls: sizes.map((size) => ({ name: 'fetch', args: { size } })) });

const LINES = [
  { match: '^slow', turns: [{ text: 'At last.', delay_ms: 60_000 }] },
  { match: '^rounds', turns: [...Array(29).fill(fetch(9000)), { text: 'All fetched.' }] },
  { match: '^side by side', turns: [fetch(9000, 9000, 9000, 9000), { text: 'Four fetched.' }] },
  { match: 'fetch one', turns: [fetch(700), { text: words(90) }] },
  { match: 'fetch two', turns: [fetch(60, 2500), { text: words(40) }] },
  { match: 'tell', turns: [{ text: words(1200) }] },
  { match: '说', turns: [{ text: '这是一个比较长的回答。'.repeat(12) }] },
  { turns: [{ text: 'Yes.' }] },
];

// ---- two ways to count ----

// As docs/MODELS.md says.
function rule(text) {
  let ascii = 0, others = 0;
  for (const char of text) {
    const code = char.codePointAt(0);
    if (code < 0x80) ascii++;
    else others += code < 0x10000 ? 1 : 2;
  }
  return Math.ceil(ascii / 3) + others;
}

// As tokenizers go about it: words and their blank, short rows of digits, signs; of long words a token for six letters.
function pieces(text) {
  let count = 0;
  for (const [piece] of text.matchAll(/ ?\p{Script=Han}| ?[\p{L}\p{M}]+| ?\p{N}{1,3}| ?[^\s\p{L}\p{M}\p{N}]{1,3}|\s+/gu))
    count += Math.ceil(piece.trim().length / 6) || 1;
  return count;
}

const textsOf = ({ system, messages, tools }) => [
  system, JSON.stringify(tools),
  ...messages.flatMap(({ text, toolCalls, toolCallId }) => [text, toolCalls ? JSON.stringify(toolCalls) : '', toolCallId ?? '']),
];
const size = (request, count) => textsOf(request).reduce((sum, text) => sum + count(text), 8 * request.messages.length);

function assertFits(request) {
  assert.ok(size(request, rule) <= ROOM, `${size(request, rule)} tokens by the rule`);
  assert.ok(size(request, pieces) <= WINDOW - ANSWER, `${size(request, pieces)} tokens as pieces`);
}

function assertPaired({ messages }) {
  for (let i = 0; i < messages.length;) {
    const { role, toolCalls = [] } = messages[i++];
    assert.notEqual(role, 'tool', 'a result without its call');
    for (const { id } of toolCalls) assert.equal(messages[i++]?.toolCallId, id, 'a call without its result');
  }
}

// ---- a place ----

async function startPlace(t) {
  const home = await Home.make(t);
  const file = (name) => join(home.data, name);
  const service = createServer({ keepAliveTimeout: 1 }, (request, response) => {
    const parts = [];
    request.on('data', (part) => parts.push(part)).on('end', () => {
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ content: 'Fetched.', result: words(JSON.parse(Buffer.concat(parts)).size) }));
    });
  });
  service.listen(0, '127.0.0.1');
  await once(service, 'listening');
  t.after(async () => {
    const closed = once(service, 'close');
    service.close();
    service.closeAllConnections();
    await closed;
  });
  const schema = { type: 'object', properties: { size: { type: 'integer' } } };
  const url = `http://127.0.0.1:${service.address().port}/`;
  await writeFile(file('script.jsonl'), LINES.map((line) => `${JSON.stringify(line)}\n`).join(''));
  await writeFile(file('fermata.yaml'), JSON.stringify({
    models: { small: { provider: 'scripted', window: WINDOW } },
    agents: { assistant: { model: 'small', tools: ['fetch'], plan: 'never', locale: 'en' } },
    tools: [{ http: { name: 'fetch', url, description: 'Fetches.', effect: 'read', schema } }],
  }));
  home.env = { FERMATA_SCRIPT: file('script.jsonl'), FERMATA_SCRIPT_LOG: file('asked.jsonl'), FERMATA_CONFIG: file('fermata.yaml') };
  await home.start();
  const lines = () => readFileSync(file('asked.jsonl'), 'utf8').split('\n').slice(0, -1); // whole ones
  return { home, lines, asked: () => lines().map((line) => JSON.parse(line)) };
}

async function say(home, threadId, text) {
  await accepted(home.server, { threadId, messages: [user(text)] });
  await until(home.server, threadId, 'completed');
}

const closing = [];
after(async () => {
  for (const fn of closing) await fn();
});

// ---- a long thread ----

describe(`${TURNS} turns in a window of ${WINDOW}`, () => {
  const KINDS = ['plain words', 'tell me more', 'fetch one', 'nothing much', '说说看', 'fetch two', `and then: ${words(400)}`];
  let home, lines, asked;
  before(async () => {
    ({ home, lines, asked } = await startPlace({ after: (fn) => closing.unshift(fn) }));
    const turn = (i) => ({ threadId: 'long', messages: [user(`turn ${i}: ${KINDS[i % KINDS.length]}`)] });
    for (let i = 0; i < TURNS; i++) await accepted(home.server, turn(i)); // most of them wait in the queue
    await waitFor('the last turn', async () => {
      const { status, queue } = await runOf(home.server, 'long');
      return status === 'completed' && queue.length === 0;
    }, TURNS_MS_MAX);
  });
  const number = ({ text }) => Number(/^turn (\d+):/.exec(text)[1]);

  test('every request fits, by the rule and by another way to count', () => {
    const all = asked();
    assert.ok(all.length > TURNS);
    for (const request of all) assertFits(request);
    assert.ok(all.some((request) => size(request, rule) > 0.9 * ROOM), 'the window is made use of');
  });

  test('no call without its result, no result without its call', () => {
    for (const request of asked()) assertPaired(request);
    assert.ok(asked().some(({ messages }) => messages.filter(({ role }) => role === 'tool').length > 3));
  });

  test('it begins with a turn, and where moves seldom and never back', () => {
    const starts = asked().map(({ messages }) => {
      assert.equal(messages[0].role, 'user');
      return number(messages[0]);
    });
    const moves = starts.filter((start, i) => i > 0 && start !== starts[i - 1]).length;
    for (let i = 1; i < starts.length; i++) assert.ok(starts[i] >= starts[i - 1], `${starts[i]} after ${starts[i - 1]}`);
    assert.ok(starts.at(-1) > TURNS - 100);
    assert.ok(moves > 5 && moves < TURNS / 4, `${moves} moves`);
  });

  test('between two moves a request begins as the one before it', () => {
    const shown = ({ messages }) => messages.map(({ role, text }) => (role === 'tool' ? role : text));
    const all = asked();
    for (let i = 1; i < all.length; i++) {
      const before = shown(all[i - 1]), now = shown(all[i]);
      if (before[0] === now[0]) assert.deepEqual(now.slice(0, before.length), before);
    }
  });

  test('the newest words are there, and the model is told that old ones are not', () => {
    const all = asked();
    assert.doesNotMatch(all[0].system, MARK);
    assert.match(all.at(-1).system, MARK);
    for (const request of all) assert.equal(MARK.test(request.system), number(request.messages[0]) > 0);
  });

  test('where it begins is stored with each run, and grows', () => {
    const stored = rows(home, 'SELECT from_message FROM runs ORDER BY id').map(({ from_message: from }) => Number(from));
    assert.equal(stored.length, TURNS);
    for (let i = 1; i < stored.length; i++) assert.ok(stored[i] >= stored[i - 1]);
    const [{ text }] = rows(home, `SELECT plain AS text FROM messages WHERE seq=${stored.at(-1)}`);
    assert.equal(number({ text }), number(asked().at(-1).messages[0]));
  });

  test('killed in a model call: the same request again, byte by byte', async () => {
    const before = lines().length;
    const { threadId } = await accepted(home.server, { threadId: 'long', messages: [user('slow')] });
    await waitFor('the request', () => lines().length > before);
    await home.server.kill9();
    home.server = null;
    await home.start();
    await waitFor('the request after the restart', () => lines().length > before + 1);
    const [first, second] = lines().slice(before);
    assert.equal(second, first);
    assert.match(JSON.parse(first).system, MARK);
    assertFits(JSON.parse(first));
    assert.equal((await history(home.server, threadId)).messages.at(-1).content, 'slow');
  });
});

// The time that the model is told is the leg's, or a request could not be made again. Nobody waits a minute here: the
// leg gets another beginning while the server is down.
test('after a restart the time is still that of the leg', async (t) => {
  const { home, lines } = await startPlace(t);
  await accepted(home.server, { threadId: 'late', messages: [user('slow')] });
  await waitFor('the request', () => lines().length === 1);
  await home.server.kill9();
  home.server = null;
  const [{ bytes }] = rows(home, 'SELECT CAST(snapshot AS TEXT) AS bytes FROM runs WHERE version>0');
  const state = JSON.parse(bytes);
  state.common_state.leg_since = Date.parse('2026-11-15T05:52:50Z');
  const text = Buffer.from(JSON.stringify(state)), hash = createHash('sha256').update(text).digest('hex');
  execute(home, `UPDATE runs SET snapshot=x'${text.toString('hex')}', hash=x'${hash}' WHERE version>0;`);
  await home.start();
  await waitFor('the request after the restart', () => lines().length === 2);
  assert.match(JSON.parse(lines()[1]).system, /- Now: 2026-11-15 05:52 UTC, Sunday\n/);
});

// ---- one turn that is too long by itself ----

describe('one turn', () => {
  let home, asked;
  before(async () => {
    ({ home, asked } = await startPlace({ after: (fn) => closing.unshift(fn) }));
  });
  const since = (text) => {
    const all = asked();
    return all.slice(all.findIndex(({ messages }) => messages.some((message) => message.text.startsWith(text))));
  };

  test('a message that does not fit is cut, and says so', async () => {
    await say(home, 'message', `tell ${words(60_000)}`);
    const [request] = since('tell');
    assertFits(request);
    assert.match(request.messages[0].text, /^tell an old [^]+\n\[\.\.\. \d+ bytes left out \.\.\.\]\n[^]+/);
    const [row] = (await history(home.server, 'message')).messages;
    assert.equal(row.content.length, 60_005, 'people have it whole');
  });

  test('many results: the oldest are cut first, and the request stays under the window', async () => {
    await say(home, 'rounds', 'rounds');
    const requests = since('rounds');
    assert.equal(requests.length, 30);
    for (const request of requests) {
      assertFits(request);
      assertPaired(request);
      assert.equal(request.messages[0].text, 'rounds');
    }
    const results = requests.at(-1).messages.filter(({ role }) => role === 'tool').map(({ text }) => text.length);
    assert.ok(results.at(-1) > 1000 && results[0] < results.at(-1), `${results}`);
  });

  test('several at once: each has a share', async () => {
    await say(home, 'beside', 'side by side');
    const [, request] = since('side by side');
    assertFits(request);
    const results = request.messages.filter(({ role }) => role === 'tool').map(({ text }) => text.length);
    assert.equal(results.length, 4);
    assert.ok(Math.min(...results) > 100 && Math.max(...results) - Math.min(...results) < 20, `${results}`);
  });
});

// SPDX-License-Identifier: Apache-2.0
//
// Bodies of JSON: how many values they may have, that large ones are read like small ones, and what they cost. Memory
// can be told only without a sanitizer.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { isSanitized, memoryPeakKib } from '../fault/kit.mjs';
import { assertProblem, call } from './home.mjs';
import { accepted, AGENT, history, startTalk } from './talk.mjs';

const LINES = [{ turns: [{ text: 'Hello.' }] }];
const VALUES_SURE = 32 * 1024, VALUE_BYTES = 8;
const RUN_INPUT_BYTES_MAX = 16 * 1024 * 1024;
const HOSTILE_BYTES = 1_900_000;

const post = (server, body) => call(server, 'POST', `${AGENT}/runs`, { headers: { 'content-type': 'application/json' }, body });
const list = (value, count) => `[${Array(count).fill(value).join(',')}]`;
const input = (noise, threadId) => `{"threadId":"${threadId}","messages":[{"role":"user","content":"hello"}],"state":${noise}}`;

test('a body has values for its bytes', async (t) => {
  const { server } = await startTalk(t, LINES);
  const rows = [
    ['1', VALUES_SURE - 100, true], ['1', VALUES_SURE * 2, false],
    ['1234567', VALUES_SURE * 8, true], ['12345', VALUES_SURE * 8, false],
  ];
  for (const [i, [value, count, taken]] of rows.entries()) {
    const body = input(list(value, count), `t-${i}`);
    const answer = await post(server, body);
    if (taken) {
      assert.equal(answer.status, 202, `${count} times ${value}: ${answer.text}`);
      continue;
    }
    assert.ok(count > VALUES_SURE + body.length / VALUE_BYTES);
    assertProblem(answer, 400, 'invalid_field');
    assert.match(answer.json().detail, /^the body is not JSON: too many values at byte \d+$/);
  }
});

test('large bodies are taken and refused as small ones', async (t) => {
  const { server } = await startTalk(t, LINES);
  for (const pad of [10, 70_000, 5_000_000]) {
    const threadId = `pad-${pad}`, text = 'x'.repeat(pad);
    await accepted(server, { threadId, messages: [{ role: 'user', content: 'hello' }], state: { text } });
    assert.equal((await history(server, threadId)).messages[0].content, 'hello');
    const cut = `{"state":"${text}",`;
    assertProblem(await post(server, cut), 400, 'invalid_field');
    assert.equal((await post(server, cut)).json().detail, `the body is not JSON: unexpected end at byte ${cut.length}`);
    assertProblem(await post(server, `{"messages":7,"state":"${text}"}`), 400, 'invalid_field', 'messages');
  }
  const rest = input('""', 'all').length;
  const whole = input(`"${'x'.repeat(RUN_INPUT_BYTES_MAX - rest)}"`, 'all');
  assert.equal(whole.length, RUN_INPUT_BYTES_MAX);
  assert.equal((await post(server, whole)).status, 202);
});

test('what is sent decides what it costs', async (t) => {
  const { server } = await startTalk(t, LINES);
  if (isSanitized(server.pid)) return t.skip('a sanitizer keeps what was freed');
  const before = memoryPeakKib(server.pid);
  const small = list('1', HOSTILE_BYTES / 2), within = list('1234567', Math.floor(HOSTILE_BYTES / 8));
  for (const noise of [small, within]) await Promise.all(Array.from({ length: 20 }, (_, i) => post(server, input(noise, `n-${noise.length}-${i}`))));
  const most = list('1', (RUN_INPUT_BYTES_MAX - 200) / 2);
  assertProblem(await post(server, input(most, 'most')), 400, 'invalid_field');
  const grown = (memoryPeakKib(server.pid) - before) / 1024;
  console.log(`# ${Math.round(grown)} MiB more`);
  assert.ok(grown < 500, `${grown} MiB more`);
});

// SPDX-License-Identifier: Apache-2.0
//
// SIGTERM while a message is taken whose answer is a stream: the streams that there were are told before this one is there.
// Whoever is answered is told the truth and a whole body, at whatever moment the signal comes; the others get nothing at all.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { lastOf } from '../api/agui.mjs';
import { startPlace, tool } from '../api/people.mjs';
import { holdBack } from '../api/readers.mjs';
import { within } from '../api/server.mjs';
import { user } from '../api/talk.mjs';
import { lint } from '../clients/lint.mjs';

const STOP_MS_MAX = 20_000;
const MOMENTS_MS = [0, 2, 5, 10, 20, 40, 80]; // behind the last byte of the request
const LINES = [{ turns: [{ calls: [tool('wait', { until: 'never' })] }, { text: 'Done.' }] }];
const BODY = { protocolVersion: '1.0', threadId: 't', runId: 'r1', messages: [user(`hold ${'x'.repeat(6_000_000)}`, 'u1')] };

// One server, stopped so long after the request: its stream, or null if the request was not answered.
async function stopAt(t, ms) {
  const { home: { server } } = await startPlace(t, LINES);
  const post = await holdBack(t, server, BODY);
  post.go();
  await new Promise((resolve) => { setTimeout(resolve, ms); });
  server.proc.kill('SIGTERM');
  assert.deepEqual(await within(STOP_MS_MAX, 'stop', server.exited), { code: 0, signal: null }, server.stderr());
  return post.begun.then(() => post.whole(), () => null);
}

test('a message taken at the moment of SIGTERM', async (t) => {
  const told = [];
  for (const ms of MOMENTS_MS) {
    const post = await stopAt(t, ms);
    if (!post) continue;
    assert.deepEqual(lint(Buffer.from(post.text), { profile: 'new', threadId: 't', runId: 'r1' }), []);
    const { type, code } = lastOf(post);
    assert.deepEqual([type, code], ['RUN_ERROR', 'shutting_down'], `after ${ms} ms`);
    told.push(ms);
  }
  t.diagnostic(`told after ${told.join(', ')} of ${MOMENTS_MS.join(', ')} ms`);
  assert.ok(told.length > 0);
});

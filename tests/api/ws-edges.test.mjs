// SPDX-License-Identifier: Apache-2.0
//
// What a client may do again and again, or in part, and what ends those who were heard without a key.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';

import WebSocket from 'ws';

import { startAsking } from './asking.mjs';
import { bearer, call } from './home.mjs';
import { Socket } from './socket.mjs';
import { AGENT, accepted, openEvents, runOf, startTalk, user, waitFor } from './talk.mjs';

const SLOWLY = { turns: [{ text: 'One moment please, I speak slowly about this.', chunk: 1, gap_ms: 20 }] };
const PICTURE = { match: '^paint', turns: [{ calls: [{ name: 'locate', args: {} }] }, { calls: [{ name: 'paint', args: {} }] }, { text: 'Done.' }] };
const ended = (server, threadId) => waitFor('the end', async () => {
  const { status } = await runOf(server, threadId);
  return ['completed', 'cancelled'].includes(status) && status;
});

test('subscribing again is not leaving, under on_disconnect: cancel', async (t) => {
  const { server } = await startTalk(t, [SLOWLY], { FERMATA_AGENTS_ASSISTANT_ON_DISCONNECT: 'cancel' });
  const { threadId } = await accepted(server, { messages: [user('go')] });
  const socket = new WebSocket(`${server.url.replace('http', 'ws')}${AGENT}/ws`);
  t.after(() => socket.terminate());
  await once(socket, 'open');
  const seen = [];
  socket.on('message', (text) => seen.push(JSON.parse(text).type));
  for (let i = 0; i < 5; i++) {
    seen.length = 0;
    socket.send(JSON.stringify({ type: 'subscribe', sessionId: threadId, after: 0 }));
    await waitFor('a delta', () => seen.includes('text.delta'));
  }
  assert.equal(await ended(server, threadId), 'completed');
});

test('hundreds of subscriptions at once, and others are served meanwhile', async (t) => {
  const { server } = await startTalk(t, [{ match: '.', turns: [{ text: 'Hello.' }] }]);
  const socket = await Socket.open(t, server);
  const ids = Array.from({ length: 600 }, (_, i) => `s${i}`);
  for (const [i, id] of ids.entries()) await socket.send({ type: 'subscribe', ...(i % 2 ? { inbox: true } : { sessionId: 'nobody' }), id });
  const answers = [];
  for (const id of ids) answers.push(await socket.one((message) => message.id === id));
  for (const { type, data } of answers) assert.ok(type === 'ack' || (type === 'error' && data.code === 'rate_limited'), JSON.stringify(data));
  assert.ok(answers.some(({ type }) => type === 'ack'));
  const other = await accepted(server, { messages: [user('hello')] });
  assert.equal(await ended(server, other.threadId), 'completed');
  assert.equal((await socket.ask({ type: 'ping' })).type, 'pong');
});

test('the first key ends those who were heard without one', async (t) => {
  const home = await startAsking(t);
  const { server } = home;
  const socket = await Socket.open(t, server);
  await socket.subscribe('z1');
  await socket.done({ type: 'subscribe', inbox: true });
  const events = await openEvents(t, server, 'z1');
  const key = await home.addKey('local');
  assert.equal((await socket.closed()).code, 1008);
  await events.over();
  await accepted(server, { threadId: 'z1', messages: [user('book')] }, bearer(key));
  assert.equal((await call(server, 'GET', `${AGENT}/runs/z1`)).status, 401);
});

for (const [what, more] of [['nothing else', {}], ['a time zone', { forwardedProps: { timezone: 'UTC' } }], ['a state', { state: { n: 1 } }]]) {
  test(`a result with ${what} leaves the client's tools as they were`, async (t) => {
    const { server } = await startTalk(t, [PICTURE]);
    const tools = ['locate', 'paint'].map((name) => ({ name, description: 'of the page' }));
    const pending = async (n) => {
      const events = await openEvents(t, server, threadId, { query: '?after=0' });
      let legs = 0;
      const seen = await events.until(({ type }) => type === 'run.finished' && ++legs === n);
      events.close();
      return seen.filter(({ type }) => type === 'tool.call')[n - 1];
    };
    const { threadId } = await accepted(server, { messages: [user('paint it')], tools });
    const first = await pending(1);
    await accepted(server, { threadId, messages: [{ id: 'here', role: 'tool', toolCallId: first.data.toolCallId, content: 'here' }], ...more });
    const second = await pending(2);
    assert.equal(second.data.toolName, 'paint');
    assert.equal((await runOf(server, threadId)).status, 'waiting');
  });
}

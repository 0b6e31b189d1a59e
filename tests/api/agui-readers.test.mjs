// SPDX-License-Identifier: Apache-2.0
//
// AG-UI readers in tight places: sent away before they were answered, revoked while they were slow, asked for twice, or
// given more than a log keeps. However it goes, a body ends in good order, behind a terminal event that says what is so.
// A WebSocket without room is here too. Readers and SIGTERM are in tests/fault/agui-stop.test.mjs.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { assertRun, lastOf, openRun, runWhole, textOf, typesIn } from './agui.mjs';
import { answer, inbox, until } from './asking.mjs';
import { bearer, call } from './home.mjs';
import { ask, startPlace, tool } from './people.mjs';
import { holdBack, queues, Reader } from './readers.mjs';
import { within } from './server.mjs';
import { Socket } from './socket.mjs';
import { accepted, AGENT, endOf, get, history, openEvents, runOf, typesOf, user, waitFor } from './talk.mjs';
import { lint } from '../clients/lint.mjs';

const MS_MAX = 30_000;
const SEARCHES = 4;
const FULL_MS = 300; // without another byte: nothing more fits
const VERSION = { protocolVersion: '1.0' };
const LATER = 'Said after the key was revoked.';
const calls = (...list) => ({ turns: [{ calls: list }, { text: 'Done.' }] });
const LINES = [
  { match: '^question', ...calls(ask('Which room?')) },
  { match: '^then', ...calls(ask('And which shelf?')) },
  { match: '^both', ...calls(ask('Which room?'), tool('wait', { until: 'both' })) },
  { match: '^hold', turns: [{ calls: [tool('wait', { until: 'hold' })] }, { text: LATER }] },
  {
    match: '^long',
    turns: [{ calls: [tool('wait', { until: 'a' })] }, { calls: [ask('First?')] }, { calls: [tool('wait', { until: 'b' })] },
      { calls: [ask('Second?')] }, { text: 'Done.' }],
  },
  { turns: [{ text: 'Hello.' }] },
];

async function start(t) {
  const { home, street } = await startPlace(t, LINES);
  return { home, street, server: home.server };
}

const read = (t, server, threadId, headers = {}) =>
  Reader.open(t, server, { path: `${AGENT}/runs/${threadId}/events?format=ag-ui&protocolVersion=1.0`, headers });
const input = (threadId, runId, messages, more = {}) => ({ ...VERSION, threadId, runId, messages, ...more });
const long = (size, id) => user(`hello ${'x'.repeat(size)}`, id);
const faultsOf = ({ text }, threadId, more = {}) => lint(Buffer.from(text), { profile: 'new', threadId, ...more });

// A message whose run is over.
async function said(server, threadId, runId, message, headers = {}) {
  await accepted(server, { threadId, runId, messages: [message] }, headers);
  await until(server, threadId, 'completed', headers);
}

// ---- sent away ----

// A message that joins the leg makes a snapshot; what is told while that is read is held, up to 16 MiB. Whether so much
// comes in that time is the machine's affair, for searches do not hold snapshots up: each reader has all, or is told.
test('requests whose snapshots are read beside searches and long messages', async (t) => {
  const { server, street } = await start(t), threadId = 'full';
  for (let k = 0; k < 4; k++) await said(server, threadId, `h${k}`, long(3_900_000, `m${k}`));
  const waits = street.ran('wait');
  await accepted(server, { threadId, runId: 'r1', messages: [user('both', 'u1')] });
  await street.arrived('wait', waits + 1);
  await waitFor('the question', async () => (await runOf(server, threadId)).interactions.length === 1);
  const along = await read(t, server, threadId);
  await along.sees('STEP_STARTED');

  const bodies = [input(threadId, 'answer', [user('the left one', 'ua')]),
    ...[1, 2].map((k) => input(threadId, `big${k}`, [long(8_388_380, `b${k}`)]))];
  const posts = await Promise.all(bodies.map((body) => holdBack(t, server, body)));
  const busy = Array.from({ length: SEARCHES }, () => get(server, '/threads?query=nowhere'));
  await call(server, 'GET', '/healthz'); // behind them
  for (const post of posts) post.go();
  await Promise.all([...busy, ...posts.map((post) => within(MS_MAX, 'the head of an answer', post.begun))]);
  await street.release('both');
  for (const [i, post] of posts.entries()) {
    await post.whole();
    assert.deepEqual(faultsOf(post, threadId, { runId: bodies[i].runId }), []);
    const { type, code, outcome } = lastOf(post);
    assert.ok(type === 'RUN_ERROR' ? code === 'lagging' : outcome.type === 'success', JSON.stringify(lastOf(post)));
  }
  await waitFor('the queue to be empty', async () => {
    const { status, queue } = await runOf(server, threadId);
    return status === 'completed' && !queue.length;
  });
  const given = posts.filter((post) => lastOf(post).code === 'lagging').length;
  if (given === posts.length) {
    await along.whole();
    assert.deepEqual(faultsOf(along, threadId), []);
    assert.equal(lastOf(along).code, 'lagging');
  }
  const { events } = await runWhole(t, server, input(threadId, 'after', []));
  assert.deepEqual(events.at(-1).outcome, { type: 'success' }, 'whoever comes then finds it as it is');
});

test('a slow reader whose key is revoked gets nothing newer', async (t) => {
  const { home, server, street } = await start(t);
  const [lost, kept] = [await home.addKey('ann'), await home.addKey('ann')].map(bearer);
  const send = (runId, message) => accepted(server, { threadId: 'slow', runId, messages: [message] }, kept);
  await send('r1', user('hold', 'u1'));
  await street.arrived('wait');
  const slow = await read(t, server, 'slow', lost), other = await read(t, server, 'slow', kept);
  await Promise.all([slow.sees('STEP_STARTED'), other.sees('STEP_STARTED')]);
  slow.response.pause();
  for (const [k, size] of [3_800_000, 3_900_000].entries()) {
    await send(`b${k}`, long(size, `m${k}`));
    await other.sees(`"id":"m${k}"`);
  }
  await home.revokeKey(lost.authorization.slice('Bearer '.length));
  assert.equal((await call(server, 'GET', `${AGENT}/runs/slow`, { headers: lost })).status, 401);
  await send('b2', long(4_300_000, 'late'));
  await other.sees('"id":"late"');
  slow.response.resume();
  await street.release('hold');
  await other.sees(LATER);
  await slow.whole();
  assert.deepEqual(faultsOf(slow, 'slow'), []);
  const { type, code } = lastOf(slow);
  assert.deepEqual([type, code], ['RUN_ERROR', 'unauthenticated']);
  assert.equal(slow.events.filter((event) => event.type === 'RUN_ERROR').length, 1);
  assert.ok(!slow.text.includes('"id":"late"') && !slow.text.includes(LATER));
});

// ---- sent again ----

test('an Idempotency-Key again, without a threadId: everybody is told the thread that there is', async (t) => {
  const { server, street } = await start(t);
  const headers = { 'idempotency-key': 'k1' }, body = { ...VERSION, messages: [user('hold', 'u1')] };
  const { threadId, runId } = await accepted(server, body, headers);
  await street.arrived('wait');
  const again = await openRun(t, server, body, { path: `${AGENT}/runs`, headers });
  await waitFor('RUN_STARTED', () => again.events.length > 0);
  const events = await openEvents(t, server, threadId, { query: '?after=0' }); // checks the thread of each
  await street.release('hold');
  await events.run(runId);
  await again.whole;
  assert.equal(assertRun(again, { threadId, runId }).outcome.type, 'success');
  assert.deepEqual(faultsOf(again, threadId, { runId }), []);
});

test('an answer and a message again under a new runId, while the next question is open', async (t) => {
  const { server } = await start(t);
  const first = await runWhole(t, server, input('t', 'r1', [user('question', 'u1')]));
  const resume = [{ interruptId: lastOf(first).outcome.interrupts[0].id, status: 'resolved', payload: 'kitchen' }];
  const messages = [user('question', 'u1'), user('then', 'u2')];
  const sent = await runWhole(t, server, input('t', 'r2', messages, { resume }));
  const { interactions: [open] } = await runOf(server, 't');
  assert.equal(open.displayText, 'And which shelf?');
  const before = (await history(server, 't')).seq;
  const again = await runWhole(t, server, input('t', 'r3', messages, { resume }));
  const join = await runWhole(t, server, input('t', 'r4', []));
  for (const run of [sent, again, join]) {
    const { outcome } = lastOf(run);
    assert.deepEqual([outcome.type, outcome.interrupts?.map(({ id }) => id)], ['interrupt', [open.interactionId]]);
  }
  for (const [run, runId] of [[again, 'r3'], [join, 'r4']]) {
    assertRun(run, { threadId: 't', runId });
    assert.deepEqual(faultsOf(run, 't', { runId }), []);
  }
  assert.equal((await history(server, 't')).seq, before, 'it changes nothing');
});

describe('the same request again', () => {
  // A request that was answered before: what it gets now.
  async function once(t, server, body) {
    const { seq } = await history(server, body.threadId);
    const again = await runWhole(t, server, body);
    assert.equal((await history(server, body.threadId)).seq, seq, 'no fact, no run');
    const { outcome } = assertRun(again, body);
    assert.deepEqual(faultsOf(again, body.threadId, { runId: body.runId }), []);
    return outcome;
  }

  test('while its run runs', async (t) => {
    const { server, street } = await start(t);
    const body = input('t', 'r1', [user('hold', 'u1')]);
    const first = await openRun(t, server, body);
    await street.arrived('wait');
    const again = await openRun(t, server, body);
    await waitFor('its head', () => typesIn(again).includes('STEP_STARTED'));
    await street.release('hold');
    for (const run of [await first.whole, await again.whole]) {
      assert.equal(assertRun(run, body).outcome.type, 'success');
      assert.deepEqual(faultsOf(run, 't', { runId: 'r1' }), []);
      assert.equal(textOf(run), LATER);
    }
    assert.equal(street.ran('wait'), 1);
  });

  test('while it waits', async (t) => {
    const { server } = await start(t);
    const body = input('t', 'r1', [user('question', 'u1')]);
    const first = await runWhole(t, server, body);
    assert.deepEqual(await once(t, server, body), lastOf(first).outcome);
    assert.equal(lastOf(first).outcome.type, 'interrupt');
  });

  test('when it has ended, and another has come since', async (t) => {
    const { server } = await start(t);
    const body = input('t', 'r1', [user('hello', 'u1')]);
    await runWhole(t, server, body);
    assert.deepEqual(await once(t, server, body), { type: 'success' });
    await runWhole(t, server, input('t', 'r2', [user('question', 'u2')]));
    assert.deepEqual(await once(t, server, body), { type: 'success' }, 'its own end, not that of the newest');
  });
});

// ---- much at once ----

// Both are told in one turn: others before and behind them keep the loop busy meanwhile.
test('one that keeps up is not called slow when two long messages are queued in one turn', async (t) => {
  const { server, street } = await start(t);
  await accepted(server, { threadId: 't', runId: 'r1', messages: [user('hold', 'u1')] });
  await street.arrived('wait');
  const reader = await read(t, server, 't'), events = await openEvents(t, server, 't');
  await reader.sees('STEP_STARTED');
  const order = ['x', 't', 't', 'y', 'z'];
  const posts = await Promise.all(order.map((threadId, k) => holdBack(t, server, input(threadId, `q${k}`, [long(5_000_000, `m${k}`)]))));
  for (const post of posts) post.go();
  const queued = ({ type }) => type === 'run.queued';
  await events.until(queued);
  await events.until(queued);
  await street.release('hold');
  for (const [k, post] of posts.entries()) {
    await post.whole();
    assert.deepEqual(faultsOf(post, order[k], { runId: `q${k}` }), []);
    assert.equal(lastOf(post).outcome?.type, 'success', JSON.stringify(lastOf(post)));
  }
  await waitFor('the last run', () => reader.events.filter(({ type }) => type === 'RUN_FINISHED').length === 3);
  assert.deepEqual(faultsOf(reader, 't', { many: true }), []);
  assert.ok(!typesIn(reader).includes('RUN_ERROR'));
  assert.equal(reader.events.filter(({ name }) => name === 'fermata.run.queued').length, 2);
  assert.ok(!typesOf(events.all).includes('reset'));
});

for (const size of [300_000, 3_000_000]) {
  test(`a thread of ${size} characters at rest: a join has its end`, async (t) => {
    const { server } = await start(t);
    for (const k of [1, 2]) await said(server, 't', `r${k}`, long(size, `m${k}`));
    const join = await runWhole(t, server, input('t', 'j', []));
    assert.equal(assertRun(join, { threadId: 't', runId: 'j' }).outcome.type, 'success');
    assert.deepEqual(faultsOf(join, 't', { runId: 'j' }), []);
    assert.equal(join.events.find(({ type }) => type === 'MESSAGES_SNAPSHOT').messages[0].content.length, size + 'hello '.length);
    const reader = await read(t, server, 't');
    await reader.sees('RUN_FINISHED');
    assert.deepEqual(faultsOf(reader, 't'), []);
  });
}

// ---- a WebSocket ----

test('a subscription ahead of everything, on a socket without room: the reset comes', async (t) => {
  const { server } = await start(t);
  for (let k = 0; k < 5; k++) {
    const messages = Array.from({ length: 50 }, (_, i) => long(60_000, `m${k}-${i}`));
    await accepted(server, { threadId: 'long', runId: `r${k}`, messages });
    await until(server, 'long', 'completed');
  }
  await said(server, 'short', 'r1', user('hello', 'u1'));
  const { seq } = await history(server, 'short');
  const socket = await Socket.open(t, server), wire = socket.frames.raw.socket;
  wire.pause();
  await socket.send({ type: 'subscribe', sessionId: 'long', after: 0, id: 'a' });
  let last = 0, since = 0;
  await waitFor('the socket to be full', () => {
    const { down } = queues(server, wire);
    if (!down || down !== last) since = Date.now();
    last = down;
    return Date.now() - since > FULL_MS;
  });
  await socket.send({ type: 'subscribe', sessionId: 'short', after: seq + 1000, id: 'b' });
  await waitFor('the server to have read it', () => queues(server, wire).up === 0);
  wire.resume();
  assert.equal((await socket.one(({ id }) => id === 'b')).type, 'ack');
  const reset = await socket.one(({ type, sessionId }) => type === 'reset' && sessionId === 'short');
  assert.deepEqual([reset.seq, reset.data], [seq, { reason: 'future', seq }]);
  await accepted(server, { threadId: 'short', runId: 'r2', messages: [user('hello again', 'u2')] });
  await socket.one((message) => message.sessionId === 'short' && endOf('r2')(message));
  assert.equal(socket.all.filter(({ type }) => type === 'reset').length, 1);
});

// The reader of a run that is over learns which step was open at its end. That says nothing of the leg that is under way.
test('one who asks for a run that is over leaves the step of the next one alone', { timeout: 2 * MS_MAX }, async (t) => {
  const { server, street } = await start(t);
  const threadId = 'steps', over = { ...VERSION, threadId, runId: 'R1', messages: [user('hello', 'u1')] };
  await runWhole(t, server, over);
  await accepted(server, { threadId, runId: 'R2', messages: [user('long', 'u2')] });
  await street.arrived('wait', 1);
  await openRun(t, server, { ...VERSION, threadId, runId: 'R3', messages: [user('hello again', 'u3')] }); // keeps the log
  await street.release('a');
  await until(server, threadId, 'waiting');
  const { interactions: [question] } = await inbox(server, `?threadId=${threadId}`);
  assert.equal((await answer(server, question.interactionId, { answer: 'yes' })).status, 200);
  await street.arrived('wait', 2);
  await runWhole(t, server, over); // again: it joins what is over
  const reader = await read(t, server, threadId);
  await reader.sees('STEP_STARTED');
  await street.release('b');
  await reader.sees('RUN_FINISHED');
  assert.ok(reader.text.includes('STEP_FINISHED'), 'the step that was told as open is told as finished');
});

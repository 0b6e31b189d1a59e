// SPDX-License-Identifier: Apache-2.0
//
// A thread that is busy: what becomes of a second message, the queue, and cancelling.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';

import { execute } from './asking.mjs';
import { assertProblem, call } from './home.mjs';
import {
  accepted, AGENT, cancel, endOf, factsOf, history, isEnd, openEvents, postRun, runOf, startTalk, talk, typesOf, user,
} from './talk.mjs';

const QUEUE_MAX = 1000;
const QUEUE_BYTES_MAX = 16 * 1024 * 1024;
const SCRIPT = [
  { match: '^endless', turns: [{ text: 'Once upon a time. '.repeat(20_000), chunk: 4, gap_ms: 5 }] },
  { match: '^mute', turns: [{ text: 'x', delay_ms: 600_000 }] },
  { match: '^flaky', turns: [{ text: 'Some text.', fail: { at: 4 } }] },
  { turns: [{ text: 'Hello.' }] },
];
const NOTHING_USED = { inputTokens: 0, outputTokens: 0, cost: 0, currency: 'USD' };

const serverWith = (env) => {
  const held = {};
  before(async () => {
    held.home = await startTalk({ after: (fn) => { held.cleanUp = fn; } }, SCRIPT, env);
    held.server = held.home.server;
  });
  after(() => held.cleanUp?.());
  return held;
};

// A thread whose run r1 is saying something: its reader, past the first words.
async function busy(t, server, threadId, content = 'endless') {
  const events = await openEvents(t, server, threadId);
  await accepted(server, { threadId, runId: 'r1', messages: [user(content, 'u1')] });
  await events.until(({ type }) => type === (content === 'endless' ? 'text.delta' : 'step.start'));
  return events;
}

const say = (server, threadId, runId, content = 'hi') =>
  accepted(server, { threadId, runId, messages: [user(content, `u-${runId}`)] });
const drop = (server, threadId, n) => call(server, 'DELETE', `${AGENT}/runs/${threadId}/queue/${n}`);
const pagesOf = (ids, limit) => ids.length ? [ids.slice(0, limit), ...pagesOf(ids.slice(limit), limit)] : [];

async function queuePages(server, threadId, limit) {
  const pages = [];
  for (let cursor = ''; cursor !== undefined;) {
    const { queue, next } = await runOf(server, `${threadId}?limit=${limit}${cursor && `&cursor=${cursor}`}`);
    pages.push(queue.map(({ runId }) => runId));
    cursor = next;
  }
  return pages;
}

const ends = (facts) => facts.filter(isEnd).map(({ runId, data }) => `${runId} ${data.outcome ?? data.code}`);

describe('cancel', () => {
  const held = serverWith({});

  test('amid an answer: what was said is kept', async (t) => {
    const events = await busy(t, held.server, 'c1');
    const running = await runOf(held.server, 'c1');
    assert.deepEqual([running.status, running.runId, running.step], ['running', 'r1', 'intent']);
    assert.ok(running.phase);
    const answer = await cancel(held.server, 'c1', { runId: 'r1' });
    assert.equal(answer.status, 202, answer.text);
    assert.deepEqual(answer.json(), { threadId: 'c1', runId: 'r1', status: 'cancelling' });
    const facts = await events.run('r1');
    assert.deepEqual(typesOf(facts), ['text.message.end', 'step.finish', 'run.finished']);
    const { data } = facts[0];
    assert.equal(data.stopped, true);
    assert.ok(data.content.startsWith('Once'), 'and the reader has checked that it is what it saw');
    assert.equal(facts[2].data.outcome, 'cancelled');
    const { messages } = await history(held.server, 'c1');
    assert.deepEqual([messages[1].content, messages[1].metadata.stopped], [data.content, true]);
    const run = await runOf(held.server, 'c1');
    assert.deepEqual([run.status, run.phase, run.step], ['cancelled', undefined, undefined]);
  });

  test('without a body, and with an empty one', async (t) => {
    for (const body of [undefined, {}]) {
      const threadId = `c2-${body === undefined}`;
      const events = await busy(t, held.server, threadId);
      assert.equal((await cancel(held.server, threadId, body)).status, 202);
      assert.deepEqual(ends(await events.run()), ['r1 cancelled']);
    }
  });

  test('before the first word: no message', async (t) => {
    const events = await busy(t, held.server, 'c3', 'mute');
    await cancel(held.server, 'c3');
    const facts = await events.run();
    assert.deepEqual(typesOf(facts), ['step.finish', 'run.finished']);
    assert.equal((await history(held.server, 'c3')).messages.length, 1);
  });

  test('between two attempts: nothing is kept of what was discarded', async (t) => {
    const events = await openEvents(t, held.server, 'c4');
    await say(held.server, 'c4', 'r1', 'flaky');
    await events.until(({ type }) => type === 'message.discard');
    await cancel(held.server, 'c4');
    const facts = await events.run();
    assert.deepEqual(typesOf(facts), ['step.finish', 'run.finished']);
    assert.deepEqual(ends(facts), ['r1 cancelled']);
    assert.equal((await history(held.server, 'c4')).messages.length, 1);
  });

  test('twice: the second is accepted or too late, and there is one end', async (t) => {
    const events = await busy(t, held.server, 'c5');
    const answers = await Promise.all([cancel(held.server, 'c5'), cancel(held.server, 'c5'), cancel(held.server, 'c5')]);
    assert.ok(answers.some(({ status }) => status === 202));
    for (const answer of answers) if (answer.status !== 202) assertProblem(answer, 409, 'not_current');
    await events.run();
    await say(held.server, 'c5', 'r2');
    await events.run('r2');
    assert.deepEqual(ends(events.facts), ['r1 cancelled', 'r2 completed']);
  });

  test('of a run that is not the current one', async (t) => {
    const events = await busy(t, held.server, 'c6');
    await say(held.server, 'c6', 'r2');
    for (const runId of ['r2', 'r0']) assertProblem(await cancel(held.server, 'c6', { runId }), 409, 'not_current');
    await cancel(held.server, 'c6', { queue: true });
    await events.until(endOf('r1'));
  });

  test('of an idle thread, and of none', async (t) => {
    await talk(t, held.server, { threadId: 'c7', runId: 'r1', messages: [user('hi')] });
    assertProblem(await cancel(held.server, 'c7'), 409, 'not_current');
    assertProblem(await cancel(held.server, 'c7', { queue: true }), 409, 'not_current');
    assertProblem(await cancel(held.server, 'c7', { runId: 'r1' }), 409, 'not_current');
    assertProblem(await cancel(held.server, 'c-none'), 404, 'not_found');
  });

  test('with fields it does not know or understand', async (t) => {
    await busy(t, held.server, 'c8');
    for (const [body, field] of [[{ runID: 'r1' }, 'runID'], [{ runId: 1 }, 'runId'], [{ queue: 1 }, 'queue'], [{ queue: 'true' }, 'queue']]) {
      assertProblem(await cancel(held.server, 'c8', body), 400, 'invalid_field', field);
    }
    assert.equal((await runOf(held.server, 'c8')).status, 'running');
    await cancel(held.server, 'c8');
  });

  test('survives a kill: a run that was being cancelled is not taken up again', async (t) => {
    const home = await startTalk(t, SCRIPT);
    await busy(t, home.server, 'c9');
    await say(home.server, 'c9', 'r2');
    const { server } = home;
    home.server = null;
    assert.equal((await cancel(server, 'c9')).status, 202);
    await server.kill9();
    await home.start();
    const events = await openEvents(t, home.server, 'c9', { query: '?after=0' });
    await events.run('r2');
    assert.deepEqual(ends(events.facts), ['r1 cancelled', 'r2 completed']);
  });
});

describe('busy: enqueue', () => {
  const held = serverWith({});

  test('the message waits as a fact, and comes in its turn', async (t) => {
    const { server } = held;
    const events = await busy(t, server, 'q1');
    const starts = [await say(server, 'q1', 'r2', 'second'), await say(server, 'q1', 'r3', 'third')];
    assert.deepEqual(starts.map(({ created, seq }) => [created, seq]), [[false, 3], [false, 4]]);
    const queued = factsOf(await events.until(({ runId, type }) => runId === 'r3' && type === 'run.queued'));
    assert.deepEqual(queued.map(({ type, runId, seq }) => [type, runId, seq]), [['run.queued', 'r2', 4], ['run.queued', 'r3', 5]]);
    for (const [i, { data, seq }] of queued.entries()) {
      assert.deepEqual(Object.keys(data), ['taskId', 'n', 'message']);
      assert.deepEqual([data.taskId, data.n], [starts[i].taskId, seq]);
      assert.deepEqual(Object.keys(data.message), ['id', 'role', 'content', 'metadata', 'createdAt']);
      assert.equal(data.message.id, `u-${starts[i].runId}`);
    }
    const run = await runOf(server, 'q1');
    assert.deepEqual([run.status, run.runId], ['running', 'r1']);
    assert.deepEqual(run.queue.map(({ n, runId, taskId }) => [n, runId, taskId]), starts.map((s, i) => [i + 4, s.runId, s.taskId]));
    assert.deepEqual(run.queue.map(({ messages }) => messages), queued.map(({ data }) => [data.message]));
    assert.deepEqual(run.queue.map(({ messages }) => messages[0].content), ['second', 'third']);
    assert.equal((await history(server, 'q1')).messages.length, 1, 'what waits is not yet said');

    await cancel(server, 'q1');
    const rest = [...await events.run('r1'), ...await events.run('r2'), ...await events.run('r3')];
    const turn = (id) => ['message.added', 'run.started', 'step.start', 'step.finish', 'step.start', 'text.message.end', 'step.finish',
      'run.finished'].map((type) => [type, id]);
    assert.deepEqual(rest.map(({ type, runId }) => [type, runId]), [
      ['text.message.end', 'r1'], ['step.finish', 'r1'], ['run.finished', 'r1'], ...turn('r2'), ...turn('r3'),
    ]);
    const begun = rest.filter(({ type }) => type === 'run.started').map(({ data }) => [data.taskId, data.leg, data.resumed]);
    assert.deepEqual(begun, starts.map(({ taskId }) => [taskId, 1, false]));
    assert.deepEqual((await runOf(server, 'q1')).queue, []);
    assert.deepEqual((await history(server, 'q1')).messages.map(({ content }) => content).filter((c) => !c.startsWith('Once')),
      ['endless', 'second', 'Hello.', 'third', 'Hello.']);
  });

  test('one of the queue is dropped', async (t) => {
    const { server } = held;
    const events = await busy(t, server, 'q2');
    for (const runId of ['r2', 'r3', 'r4']) await say(server, 'q2', runId);
    const { queue } = await runOf(server, 'q2');
    const answer = await drop(server, 'q2', queue[1].n);
    assert.deepEqual([answer.status, answer.text], [204, '']);
    const facts = factsOf(await events.until(endOf('r3')));
    assert.deepEqual(facts.at(-1).data, { outcome: 'cancelled', usage: NOTHING_USED });
    assertProblem(await drop(server, 'q2', queue[1].n), 404, 'not_found');
    for (const n of [0, 1, 999, '-1', 'x', '18446744073709551616']) assertProblem(await drop(server, 'q2', n), 404, 'not_found');
    assert.deepEqual((await runOf(server, 'q2')).queue.map(({ runId }) => runId), ['r2', 'r4']);
    await cancel(server, 'q2');
    await events.run('r4');
    assert.deepEqual(ends(events.facts), ['r3 cancelled', 'r1 cancelled', 'r2 completed', 'r4 completed']);
    assert.ok(!(await history(server, 'q2')).messages.some(({ id }) => id === 'u-r3'));
  });

  test('cancel with queue:true drops them all', async (t) => {
    const { server } = held;
    const events = await busy(t, server, 'q3');
    for (const runId of ['r2', 'r3']) await say(server, 'q3', runId);
    assert.equal((await cancel(server, 'q3', { queue: true })).status, 202);
    await events.run('r1');
    assert.deepEqual(ends(events.facts).sort(), ['r1 cancelled', 'r2 cancelled', 'r3 cancelled']);
    const run = await runOf(server, 'q3');
    assert.deepEqual([run.status, run.runId, run.queue], ['cancelled', 'r1', []]);
    await say(server, 'q3', 'r5');
    await events.run('r5');
  });

  test('the same runId while it waits, and afterwards: the same bytes', async (t) => {
    const { server } = held;
    const events = await busy(t, server, 'q4');
    const body = { threadId: 'q4', runId: 'r2', messages: [user('hi', 'u2')] };
    const first = await postRun(server, body);
    assert.equal((await postRun(server, body)).text, first.text);
    assertProblem(await postRun(server, { ...body, state: {} }), 422, 'idempotency_mismatch', 'runId');
    assert.equal((await runOf(server, 'q4')).queue.length, 1);
    await cancel(server, 'q4');
    await events.run('r2');
    assert.equal((await postRun(server, body)).text, first.text);
  });

  test('a client that sends its unanswered messages along again queues each once', async (t) => {
    const { server } = held;
    const events = await busy(t, server, 'q5');
    const messages = [user('endless', 'u1'), user('two', 'u2')];
    await accepted(server, { threadId: 'q5', runId: 'r2', messages });
    await accepted(server, { threadId: 'q5', runId: 'r3', messages: [...messages, user('three', 'u3')] });
    assertProblem(await postRun(server, { threadId: 'q5', runId: 'r4', messages }), 400, 'invalid_field', 'messages');
    assert.deepEqual((await runOf(server, 'q5')).queue.map((q) => q.messages.map(({ id }) => id)), [['u2'], ['u3']]);
    await cancel(server, 'q5');
    await events.run('r3');
    assert.deepEqual(events.facts.filter(({ type }) => type === 'message.added').map(({ data }) => data.message.id), ['u1', 'u2', 'u3']);
  });

  test('a queued message whose id the answer takes meanwhile still gets its turn', async (t) => {
    const { server } = held;
    const events = await busy(t, server, 'q6');
    const { messageId } = events.all.find(({ type }) => type === 'text.message.start').data;
    await accepted(server, { threadId: 'q6', runId: 'r2', messages: [user('hi', messageId)] });
    await cancel(server, 'q6');
    await events.run('r2');
    const { messages } = await history(server, 'q6');
    assert.equal(new Set(messages.map(({ id }) => id)).size, messages.length);
    assert.equal(messages[2].content, 'hi');
  });

  test('several messages of one request wait together', async (t) => {
    const { server } = held;
    const events = await busy(t, server, 'q7');
    await accepted(server, { threadId: 'q7', runId: 'r2', messages: [user('two', 'u2'), user('three', 'u3')] });
    await cancel(server, 'q7');
    const facts = [...await events.run('r1'), ...await events.run('r2')];
    assert.deepEqual(facts.filter(({ type }) => type === 'message.added').map(({ data }) => data.message.id), ['u2', 'u3']);
  });

  test('the queue outlives the server, by number', async (t) => {
    const home = await startTalk(t, SCRIPT);
    await busy(t, home.server, 'q8');
    for (const runId of ['r2', 'r3']) await say(home.server, 'q8', runId);
    const { queue } = await runOf(home.server, 'q8');
    await home.restart();
    assert.deepEqual((await runOf(home.server, 'q8')).queue, queue);
    assert.equal((await drop(home.server, 'q8', queue[0].n)).status, 204);
    await cancel(home.server, 'q8');
    const events = await openEvents(t, home.server, 'q8', { query: '?after=0' });
    await events.run('r3');
    assert.deepEqual(ends(events.facts), ['r2 cancelled', 'r1 cancelled', 'r3 completed']);
  });

  test('what waits is not read by who comes next', async (t) => {
    const home = await startTalk(t, SCRIPT);
    await busy(t, home.server, 'q10', 'mute');
    await say(home.server, 'q10', 'r2');
    await home.stop();
    execute(home, "UPDATE runs SET queued='no JSON' WHERE status=0");
    await home.start();
    await say(home.server, 'q10', 'r3');
    assertProblem(await postRun(home.server, { threadId: 'q10', messages: [user('hi', 'u-r2')] }), 400, 'invalid_field', 'messages');
    assert.equal((await drop(home.server, 'q10', (await runOf(home.server, 'q10')).queue[0].n)).status, 204);
    await accepted(home.server, { threadId: 'q10', runId: 'r4', messages: [user('hi', 'u-r2')] });
    assert.deepEqual((await runOf(home.server, 'q10')).queue.map(({ runId }) => runId), ['r3', 'r4']);
  });

  test(`is full beyond ${QUEUE_BYTES_MAX} bytes`, async (t) => {
    const { server } = held;
    const events = await busy(t, server, 'q11', 'mute');
    const long = 'x'.repeat(QUEUE_BYTES_MAX / 4); // each is kept twice, to be shown and to be searched
    for (const runId of ['r2', 'r3']) await say(server, 'q11', runId, long);
    assertProblem(await postRun(server, { threadId: 'q11', messages: [user('one more')] }), 429, 'rate_limited');
    assert.deepEqual((await runOf(server, 'q11')).queue.map(({ messages }) => messages[0].content === long), [true, true]);
    await drop(server, 'q11', (await runOf(server, 'q11')).queue[0].n);
    await say(server, 'q11', 'r4');
    await cancel(server, 'q11', { queue: true });
    await events.until(endOf('r1'));
  });

  test(`is full at ${QUEUE_MAX}`, async (t) => {
    const { server } = held;
    const events = await busy(t, server, 'q9', 'mute');
    const all = Array.from({ length: QUEUE_MAX }, (_, i) => `n${i}`);
    for (const runId of all) await say(server, 'q9', runId);
    assertProblem(await postRun(server, { threadId: 'q9', messages: [user('one more')] }), 429, 'rate_limited');
    const first = await runOf(server, 'q9');
    assert.deepEqual([first.queue.map(({ runId }) => runId), first.next], [all.slice(0, 50), String(first.queue[49].n)]);
    for (const limit of [200, 199]) assert.deepEqual(await queuePages(server, 'q9', limit), pagesOf(all, limit));
    const last = await runOf(server, `q9?cursor=${first.next}&limit=1`);
    assert.deepEqual([last.runId, last.status, last.queue[0].runId], ['r1', 'running', all[50]]);
    for (const [query, field] of [['limit=0', 'limit'], ['limit=201', 'limit'], ['cursor=x', 'cursor']])
      assertProblem(await call(server, 'GET', `${AGENT}/runs/q9?${query}`), 400, 'invalid_field', field);
    assert.equal((await cancel(server, 'q9', { queue: true })).status, 202);
    await events.run('r1');
    assert.deepEqual((await runOf(server, 'q9')).queue, []);
    assert.equal(ends(events.facts).length, QUEUE_MAX + 1);
  });
});

describe('busy: reject', () => {
  const held = serverWith({ FERMATA_AGENTS_ASSISTANT_BUSY: 'reject' });

  test('409 busy while a run is under way, and nothing of it is left', async (t) => {
    const { server } = held;
    const events = await busy(t, server, 'j1');
    assertProblem(await postRun(server, { threadId: 'j1', runId: 'r2', messages: [user('hi')] }), 409, 'busy');
    assert.deepEqual((await runOf(server, 'j1')).queue, []);
    const again = await postRun(server, { threadId: 'j1', runId: 'r1', messages: [user('endless', 'u1')] });
    assert.equal(again.status, 202, 'the run under way, asked for again');
    await cancel(server, 'j1');
    await events.run('r1');
    await say(server, 'j1', 'r2');
    await events.run('r2');
    assert.deepEqual(ends(events.facts), ['r1 cancelled', 'r2 completed']);
  });
});

describe('busy: interrupt', () => {
  const held = serverWith({ FERMATA_AGENTS_ASSISTANT_BUSY: 'interrupt' });

  test('the run under way is cancelled, the new one follows', async (t) => {
    const { server } = held;
    const events = await busy(t, server, 'x1');
    await say(server, 'x1', 'r2', 'second');
    const facts = [...await events.run('r1'), ...await events.run('r2')];
    assert.deepEqual(facts.slice(0, 6).map(({ type, runId }) => [type, runId]), [
      ['run.queued', 'r2'], ['text.message.end', 'r1'], ['step.finish', 'r1'], ['run.finished', 'r1'],
      ['message.added', 'r2'], ['run.started', 'r2'],
    ]);
    assert.equal(facts[1].data.stopped, true);
    assert.deepEqual(ends(facts), ['r1 cancelled', 'r2 completed']);
  });

  test('many at once: each is said, and the last is answered', async (t) => {
    const { server } = held;
    const events = await busy(t, server, 'x2');
    const ids = Array.from({ length: 10 }, (_, i) => `n${i}`);
    await Promise.all(ids.map((id) => say(server, 'x2', id)));
    const left = new Set(['r1', ...ids]);
    await events.until((event) => isEnd(event) && left.delete(event.runId) && left.size === 0);
    assert.equal(ends(events.facts).length, ids.length + 1);
    assert.ok(ends(events.facts).at(-1).endsWith(' completed'));
  });
});

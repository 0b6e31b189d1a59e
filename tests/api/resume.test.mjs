// SPDX-License-Identifier: Apache-2.0
//
// POST /runs with `resume`, answered in JSON: what a run waits for is settled as AG-UI clients say it, all of it or
// nothing. What must not be taken is in forgery.test.mjs.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';

import { answer, audit, cancelOne, execute, inbox, interaction, move, REFUSED, rows, startAsking, until, waiting } from './asking.mjs';
import { assertProblem, postJson } from './home.mjs';
import { factsUntil, finished, ofType, resultsOf } from './people.mjs';
import { AGENT, endOf, history, postRun, runOf, user, waitFor } from './talk.mjs';

let home, server, cleanUp;
before(async () => {
  home = await startAsking({ after: (fn) => { cleanUp = fn; } });
  server = home.server;
});
after(() => cleanUp?.());

const resolved = ({ interactionId }, payload) => ({ interruptId: interactionId, status: 'resolved', payload });
const cancelled = ({ interactionId }) => ({ interruptId: interactionId, status: 'cancelled' });
const resume = (threadId, list, more = {}, on = server) => postRun(on, { threadId, messages: [], resume: list, ...more });
const events = (asked, on = home) => rows(on, `SELECT title FROM calendar_events WHERE call_id='${asked.toolCallId}'`).map(({ title }) => title);
// What the legs of a thread are called: the first as its run, another as its request said, or as the run with its number.
const legs = (threadId, on = home) => rows(on, `SELECT runs.id, run_id AS runId, legs FROM runs JOIN threads ON threads.id=runs.thread
  WHERE threads.thread_id='${threadId}' ORDER BY runs.id`).flatMap(({ id, runId, legs: count }) => {
  const named = new Map(rows(on, `SELECT n, wire_run_id AS wire FROM legs WHERE run=${id}`).map(({ n, wire }) => [n, wire]));
  return Array.from({ length: count }, (_, i) => ({ wire: named.get(i + 1) ?? (i ? `${runId}-${i + 1}` : runId) }));
});

// The 202 of a request that brings answers and no message.
function assertTaken(taken, { threadId, runId, ids }) {
  assert.equal(taken.status, 202, taken.text);
  const body = taken.json();
  assert.deepEqual(Object.keys(body), ['taskId', 'threadId', 'runId', 'created', 'seq', 'eventsUrl', 'answered']);
  assert.deepEqual([body.threadId, body.runId, body.created, body.answered], [threadId, runId, false, ids]);
  return body;
}

describe('a question', () => {
  for (const [word, payload, given, told] of [
    ['choose', '1 hour', { answer: '1 hour' }, '1 hour'],
    ['choose', { choices: ['c1'] }, { choices: ['c1'] }, '30 minutes'],
    ['choose', { choices: ['c2'], text: 'at most' }, { choices: ['c2'], text: 'at most' }, '1 hour: at most'],
    ['open', '预算，和明年的计划', { answer: '预算，和明年的计划' }, '预算，和明年的计划'],
    ['open', { answer: 'a "quoted" word' }, { answer: 'a "quoted" word' }, 'a "quoted" word'],
    ['open', { skip: true }, { skip: true }, 'The user skipped this question'],
    ['several', { choices: ['c1', 'c3'] }, { choices: ['c1', 'c3'] }, '["Ann","Eve"]'],
  ]) {
    test(`${word}: ${JSON.stringify(payload)}`, async (t) => {
      const { threadId, runId, open: [asked] } = await waiting(server, word);
      const { seq, taskId } = assertTaken(await resume(threadId, [resolved(asked, payload)]), { threadId, runId, ids: [asked.interactionId] });
      const facts = await factsUntil(t, server, threadId, finished('completed'));
      const [settled, started, result] = facts.slice(seq);
      assert.deepEqual([settled, started, result].map(({ type }) => type), ['interaction.resolved', 'run.started', 'tool.call.result']);
      assert.deepEqual([settled.data.answer, settled.data.text, settled.data.via], [given, told, 'ag-ui']);
      assert.deepEqual([started.data.taskId, started.data.leg, started.data.resumed], [taskId, 2, true]);
      assert.equal(result.data.content, told);
      assert.equal((await history(server, threadId)).messages.filter(({ role }) => role === 'user').length, 1, 'no message was made of it');
    });
  }
});

describe('a confirmation', () => {
  for (const [payload, given, titles] of [
    [{ approved: true }, { decision: 'approve' }, 1],
    [{ approved: true, editedArgs: null, comment: 'fine' }, { decision: 'approve', comment: 'fine' }, 1],
    [{ approved: false }, { decision: 'reject' }, 0],
    [{ approved: false, comment: 'not today' }, { decision: 'reject', comment: 'not today' }, 0],
    [{ decision: 'approve' }, { decision: 'approve' }, 1],
    [{ decision: 'respond', comment: 'ask Bob' }, { decision: 'respond', comment: 'ask Bob' }, 0],
  ]) {
    test(JSON.stringify(payload), async () => {
      const { threadId, runId, open: [asked] } = await waiting(server, 'book');
      assertTaken(await resume(threadId, [resolved(asked, payload)]), { threadId, runId, ids: [asked.interactionId] });
      await until(server, threadId, 'completed');
      const settled = await interaction(server, asked.interactionId);
      assert.deepEqual([settled.status, settled.answer, settled.via, settled.answeredBy], ['resolved', given, 'ag-ui', 'local']);
      assert.equal(events(asked).length, titles);
    });
  }

  test('with edited arguments, which are all of them', async () => {
    const { threadId, open: [asked] } = await waiting(server, 'book');
    const args = { ...JSON.parse(asked.pendingTool.argsJson), title: 'Changed' };
    assert.equal((await resume(threadId, [resolved(asked, { approved: true, editedArgs: args })])).status, 202);
    await until(server, threadId, 'completed');
    assert.deepEqual((await interaction(server, asked.interactionId)).answer, { decision: 'edit', args });
    assert.deepEqual(events(asked), ['Changed']);
  });

  test('with its binding', async () => {
    const { threadId, open: [asked] } = await waiting(server, 'book');
    assert.equal((await resume(threadId, [resolved(asked, { approved: true, binding: asked.binding })])).status, 202);
    await until(server, threadId, 'completed');
    assert.equal(events(asked).length, 1);
  });
});

describe('others', () => {
  test('a model that is gone: continue', async (t) => {
    const own = await startAsking(t);
    const { threadId, runId, open: [asked] } = await waiting(own.server, 'lost');
    assert.equal(asked.type, 'connection_lost');
    assertProblem(await resume(threadId, [resolved(asked, 'continue')], {}, own.server), 400, 'invalid_field', 'resume[0].payload');
    assertProblem(await resume(threadId, [resolved(asked, { decision: 'retry' })], {}, own.server), 400, 'invalid_field', 'resume[0].payload.decision');
    assertTaken(await resume(threadId, [resolved(asked, { decision: 'continue' })], {}, own.server), { threadId, runId, ids: [asked.interactionId] });
    await until(own.server, threadId, 'completed');
  });

  for (const word of ['open', 'book']) {
    test(`${word}, cancelled: its call gets an error, and the run goes on`, async (t) => {
      const { threadId, runId, open: [asked] } = await waiting(server, word);
      assertTaken(await resume(threadId, [{ ...cancelled(asked), payload: { approved: true } }]), { threadId, runId, ids: [asked.interactionId] });
      const facts = await factsUntil(t, server, threadId, finished('completed'));
      assert.equal((await interaction(server, asked.interactionId)).status, 'canceled');
      assert.ok(resultsOf(facts)[0].error);
      assert.deepEqual(events(asked), []);
    });
  }
});

describe('several', () => {
  test('all in one commit, and one leg', async (t) => {
    const { threadId, runId, open } = await waiting(server, 'all');
    const ids = open.map(({ interactionId }) => interactionId);
    const list = [resolved(open[0], 'an hour'), resolved(open[1], { approved: true }), cancelled(open[2])];
    const { seq } = assertTaken(await resume(threadId, list), { threadId, runId, ids });
    const facts = await factsUntil(t, server, threadId, finished('completed'));
    assert.deepEqual(facts.slice(seq, seq + 4).map(({ type }) => type),
      ['interaction.resolved', 'interaction.resolved', 'interaction.resolved', 'run.started']);
    assert.equal(ofType(facts, 'run.started').length, 2);
    assert.deepEqual([events(open[1]).length, events(open[2]).length], [1, 0]);
  });

  test('some of them: the rest stays open, and the run waits again', async () => {
    const { threadId, runId, open } = await waiting(server, 'all');
    assertTaken(await resume(threadId, [resolved(open[2], { approved: false })]), { threadId, runId, ids: [open[2].interactionId] });
    await until(server, threadId, 'waiting');
    assert.deepEqual((await inbox(server, `?threadId=${threadId}`)).interactions.map(({ interactionId }) => interactionId).reverse(),
      open.slice(0, 2).map(({ interactionId }) => interactionId));
  });

  for (const [name, bad, field, why] of [
    ['does not fit', (open) => resolved(open[1], { approved: 'yes' }), 'resume[1].payload.approved', 'invalid_answer'],
    ['is unknown', () => resolved({ interactionId: 'int_none' }, 'x'), 'resume[1].interruptId'],
  ]) {
    test(`one that ${name}: nothing is applied`, async () => {
      const { threadId, open } = await waiting(server, 'all');
      const { seq } = await history(server, threadId);
      assertProblem(await resume(threadId, [resolved(open[0], 'an hour'), bad(open), resolved(open[2], { approved: true })], { runId: 'mine' }),
        400, 'invalid_field', field);
      assert.equal((await inbox(server, `?threadId=${threadId}`)).interactions.length, 3);
      assert.equal((await history(server, threadId)).seq, seq, 'no fact');
      assert.deepEqual(audit(home, threadId, REFUSED).map((entry) => [entry.why, entry.via]), why ? [[why, 'ag-ui']] : []);
      assert.equal((await resume(threadId, [resolved(open[0], 'an hour')], { runId: 'mine' })).status, 202, 'the runId is still free');
    });
  }
});

describe('settled already', () => {
  test('accepted and ignored, whatever it says now', async () => {
    const { threadId, runId, open: [asked] } = await waiting(server, 'book');
    await answer(server, asked.interactionId, { decision: 'reject' });
    await until(server, threadId, 'completed');
    const { seq } = await history(server, threadId);
    for (const entry of [resolved(asked, { approved: true }), resolved(asked, 7), cancelled(asked)]) {
      const body = assertTaken(await resume(threadId, [entry]), { threadId, runId, ids: [] });
      assert.equal(body.seq, seq);
    }
    assert.equal((await history(server, threadId)).seq, seq);
    assert.deepEqual([(await interaction(server, asked.interactionId)).answer.decision, events(asked).length], ['reject', 0]);
    assert.deepEqual(audit(home, threadId, REFUSED), []);
  });

  test('beside one that is open: that one is settled', async () => {
    const { threadId, runId, open } = await waiting(server, 'both');
    await cancelOne(server, open[1].interactionId);
    const taken = await resume(threadId, [resolved(open[1], { approved: true }), resolved(open[0], 'an hour')]);
    assertTaken(taken, { threadId, runId, ids: [open[0].interactionId] });
    await until(server, threadId, 'completed');
    assert.deepEqual(events(open[1]), []);
  });

  test('beside a message: the message is a message', async (t) => {
    const { threadId, open: [asked] } = await waiting(server, 'open');
    await answer(server, asked.interactionId, { answer: 'x' });
    await until(server, threadId, 'completed');
    const taken = await resume(threadId, [resolved(asked, 'y')], { runId: 'r2', messages: [user('hello')] });
    assert.deepEqual([taken.status, taken.json().runId, taken.json().answered, taken.json().queued], [202, 'r2', undefined, undefined]);
    await factsUntil(t, server, threadId, endOf('r2'));
  });

  test('because its time is over', async () => {
    const { threadId, runId, open: [asked] } = await waiting(server, 'book');
    assert.equal((await move(server, asked.interactionId, { expiresAt: new Date(Date.now() + 3000).toISOString() })).status, 200);
    await waitFor('it to expire', async () => (await interaction(server, asked.interactionId)).status === 'expired');
    assertTaken(await resume(threadId, [resolved(asked, { approved: true })]), { threadId, runId, ids: [] });
    await until(server, threadId, 'completed');
    assert.deepEqual(events(asked), []);
  });

  // The clock looks when it is told to, and once a minute: a time that it was not told of is over, and nobody has noticed.
  function overdue({ interactionId }) {
    execFileSync('sqlite3', ['-cmd', '.timeout 5000', join(home.data, 'fermata.db'), `UPDATE interactions SET expires=1 WHERE id='${interactionId}'`]);
  }

  test('because its time is over by now: settled as expired, noted, and the run goes on', async (t) => {
    const { threadId, runId, open: [asked] } = await waiting(server, 'book');
    overdue(asked);
    const { seq } = assertTaken(await resume(threadId, [resolved(asked, { approved: true })], { runId: 'r2' }), { threadId, runId, ids: [] });
    const facts = await factsUntil(t, server, threadId, finished('completed'));
    assert.deepEqual(facts.slice(seq, seq + 2).map(({ type, data }) => [type, data.status]), [['interaction.resolved', 'expired'], ['run.started', undefined]]);
    assert.deepEqual(audit(home, threadId, REFUSED).map(({ why, via }) => [why, via]), [['expired', 'ag-ui']]);
    assert.deepEqual(events(asked), []);
    assert.deepEqual(legs(threadId).map(({ wire }) => wire), ['r1', 'r2']);
  });

  test('of one among several: the others are taken', async (t) => {
    const { threadId, runId, open } = await waiting(server, 'all');
    overdue(open[1]);
    const list = [resolved(open[0], 'an hour'), resolved(open[1], { approved: true }), resolved(open[2], { approved: true })];
    assertTaken(await resume(threadId, list), { threadId, runId, ids: [open[0].interactionId, open[2].interactionId] });
    const facts = await factsUntil(t, server, threadId, finished('completed'));
    assert.equal(ofType(facts, 'run.started').length, 2, 'one leg for all');
    assert.deepEqual([events(open[1]).length, events(open[2]).length], [0, 1]);
  });

  test('a message does not answer it either', async (t) => {
    const { threadId, open: [asked] } = await waiting(server, 'open');
    overdue(asked);
    const taken = await postRun(server, { threadId, runId: 'r2', messages: [user('hello')] });
    assert.deepEqual([taken.status, taken.json().runId, taken.json().answered], [202, 'r2', undefined]);
    await factsUntil(t, server, threadId, endOf('r2'));
    assert.equal((await interaction(server, asked.interactionId)).status, 'expired');
  });

  test('or its tool has changed: the approval is not taken, and a new one is asked for', async (t) => {
    const own = await startAsking(t);
    const { threadId, runId, open: [asked] } = await waiting(own.server, 'book');
    await own.stop();
    execute(own, `UPDATE interactions SET args_schema='{"type":"object"}' WHERE id='${asked.interactionId}'`);
    await own.start();
    assertTaken(await resume(threadId, [resolved(asked, { approved: true })], {}, own.server), { threadId, runId, ids: [] });
    assert.equal((await interaction(own.server, asked.interactionId)).status, 'superseded');
    assert.deepEqual(audit(own, threadId, REFUSED).map(({ why }) => why), ['superseded']);
    await until(own.server, threadId, 'waiting');
    const [next] = (await inbox(own.server, `?threadId=${threadId}`)).interactions;
    assert.notEqual(next.interactionId, asked.interactionId);
    assert.deepEqual(events(asked, own), []);
    assertTaken(await resume(threadId, [resolved(next, { approved: true })], {}, own.server), { threadId, runId, ids: [next.interactionId] });
    await until(own.server, threadId, 'completed');
    assert.equal(events(asked, own).length, 1);
  });
});

describe('with a message', () => {
  test('that is queued behind the run that goes on', async (t) => {
    const { threadId, runId, open: [asked] } = await waiting(server, 'book');
    const taken = await resume(threadId, [resolved(asked, { approved: true })], { runId: 'r2', messages: [user('hello', 'm2')] });
    assert.equal(taken.status, 202, taken.text);
    const body = taken.json();
    assert.deepEqual([body.runId, body.answered, body.queued], ['r2', [asked.interactionId], true]);
    const facts = await factsUntil(t, server, threadId, endOf('r2'));
    assert.deepEqual(ofType(facts, 'run.queued').map(({ message }) => message.id), ['m2']);
    assert.deepEqual(facts.filter(({ type }) => type === 'run.finished').map(({ runId: of, data }) => [of, data.outcome]),
      [[runId, 'interrupted'], [runId, 'completed'], ['r2', 'completed']]);
    assert.deepEqual([(await interaction(server, asked.interactionId)).answer.decision, events(asked).length], ['approve', 1]);
  });

  test('also where busy threads are refused', async (t) => {
    const own = await startAsking(t, { config: 'agents: {assistant: {busy: reject}}\n' });
    const { threadId, open: [asked] } = await waiting(own.server, 'open');
    const taken = await resume(threadId, [resolved(asked, 'x')], { runId: 'r2', messages: [user('hello')] }, own.server);
    assert.deepEqual([taken.status, taken.json().queued], [202, true]);
    await factsUntil(t, own.server, threadId, endOf('r2'));
  });

  test('that answers what is left open', async (t) => {
    const { threadId, runId, open } = await waiting(server, 'two');
    const ids = open.map(({ interactionId }) => interactionId);
    const taken = await resume(threadId, [resolved(open[0], 'first')], { messages: [user('second')] });
    const { seq } = assertTaken(taken, { threadId, runId, ids });
    const facts = await factsUntil(t, server, threadId, finished('completed'));
    assert.deepEqual(facts.slice(seq, seq + 4).map(({ type }) => type),
      ['message.added', 'interaction.resolved', 'interaction.resolved', 'run.started']);
    assert.deepEqual(ofType(facts, 'interaction.resolved').map(({ text, via }) => [text, via]), [['first', 'ag-ui'], ['second', 'message']]);
    const said = (await history(server, threadId)).messages.filter(({ role }) => role === 'user')[1];
    assert.equal(said.metadata.answer_to, ids[1]);
    assert.equal(ofType(facts, 'run.started').length, 2, 'one leg for both');
  });

  test('that leaves two questions open: 409, and the entry is not taken either', async () => {
    const own = await waiting(server, 'tangle');
    const confirm = own.open.find(({ type }) => type === 'confirm');
    const taken = await resume(own.threadId, [resolved(confirm, { approved: true })], { messages: [user('yes')] });
    assert.deepEqual([taken.status, taken.json().code], [409, 'ambiguous']);
    assert.equal((await interaction(server, confirm.interactionId)).status, 'open');
    assert.deepEqual(events(confirm), []);
  });
});

describe('again', () => {
  test('the same runId is the same 202, with another body 422', async () => {
    const { threadId, runId, open: [asked] } = await waiting(server, 'open');
    const first = await resume(threadId, [resolved(asked, 'x')], { runId: 'mine' });
    assertTaken(first, { threadId, runId, ids: [asked.interactionId] });
    const again = await resume(threadId, [resolved(asked, 'x')], { runId: 'mine' });
    assert.deepEqual([again.status, again.text], [202, first.text]);
    assertProblem(await resume(threadId, [resolved(asked, 'y')], { runId: 'mine' }), 422, 'idempotency_mismatch', 'runId');
    await until(server, threadId, 'completed');
  });

  test('so it is under an Idempotency-Key', async () => {
    const { threadId, open: [asked] } = await waiting(server, 'open');
    const body = { threadId, messages: [], resume: [resolved(asked, 'x')] };
    const send = () => postJson(server, `${AGENT}/runs`, body, { 'idempotency-key': `k-${threadId}` });
    const first = await send(), again = await send();
    assert.deepEqual([first.status, again.status, again.text], [202, 202, first.text]);
    await until(server, threadId, 'completed');
  });

  test('of twenty at once one is taken, and the others change nothing', async () => {
    const { threadId, open: [asked] } = await waiting(server, 'book');
    const all = await Promise.all(Array.from({ length: 20 }, (_, i) => resume(threadId, [resolved(asked, { approved: true })], { runId: `r-${i}` })));
    assert.deepEqual(all.map(({ status }) => status), all.map(() => 202));
    assert.equal(all.filter((one) => one.json().answered.length).length, 1);
    await until(server, threadId, 'completed');
    assert.equal(events(asked).length, 1);
  });
});

describe('the leg', () => {
  test('is called as its request was, and has what that brought', async () => {
    const { threadId, open: [asked] } = await waiting(server, 'again');
    assert.equal((await resume(threadId, [resolved(asked, { approved: true })], { runId: 'r2', state: { a: 0.10 } })).status, 202);
    await waitFor('the second', async () => (await runOf(server, threadId)).interactions[0]?.interactionId !== asked.interactionId
      && (await runOf(server, threadId)).status === 'waiting');
    const [next] = (await runOf(server, threadId)).interactions;
    const input = () => rows(home, `SELECT input FROM runs JOIN threads ON threads.id=runs.thread
      WHERE threads.thread_id='${threadId}' AND input<>''`).map((row) => row.input);
    assert.deepEqual(input(), ['{"state":{"a":0.1}}']);
    await answer(server, next.interactionId, { decision: 'approve' });
    await until(server, threadId, 'completed');
    assert.deepEqual(legs(threadId).map(({ wire }) => wire), ['r1', 'r2', 'r1-3']);
    assert.deepEqual(input(), ['{"state":{"a":0.1}}'], 'whoever brings nothing changes nothing');
  });
});

describe('refused before anything is looked up', () => {
  const one = { interruptId: 'int_x', status: 'cancelled' };
  for (const [name, list, field] of [
    ['no list', {}, 'resume'], ['a word', 'x', 'resume'], ['an entry that is none', [7], 'resume[0]'],
    ['no id', [{ status: 'resolved' }], 'resume[0].interruptId'], ['no status', [{ interruptId: 'x' }], 'resume[0].status'],
    ['twice', [one, one], 'resume[1].interruptId'], ['too many', Array.from({ length: 1001 }, (_, i) => ({ ...one, interruptId: `i${i}` })), 'resume'],
  ]) {
    test(name, async () => assertProblem(await resume('none', list), 400, 'invalid_field', field));
  }

  test('a thread that does not exist', async () => {
    assertProblem(await resume('no-thread', [one]), 400, 'invalid_field', 'resume[0].interruptId');
    assertProblem(await resume('no-thread', [one], { messages: [user('hi')] }), 400, 'invalid_field', 'resume[0].interruptId');
    assert.equal((await postJson(server, `${AGENT}/runs/no-thread/cancel`, {})).status, 404, 'none was made');
  });

  test('an empty list, or null, is none', async () => {
    for (const list of [[], null]) assertProblem(await resume('no-thread', list), 400, 'invalid_field', 'messages');
  });

  test('an answer that is too long', async () => {
    const { threadId, open: [asked] } = await waiting(server, 'open');
    assertProblem(await resume(threadId, [resolved(asked, 'x'.repeat(256 * 1024))]), 413, 'too_large', 'resume[0].payload');
    assert.equal((await interaction(server, asked.interactionId)).status, 'open');
  });
});

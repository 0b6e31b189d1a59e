// SPDX-License-Identifier: Apache-2.0
//
// Interactions over HTTP: the inbox, answers that are taken once, answers that are refused and stay open, cancels,
// expiries over restarts.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { after, before, describe, test } from 'node:test';

import {
  answer, answerRun, assertRefused, audit, cancelOne, execute, inbox, interaction, MEETING, move, MOVED, REFUSED, rows, startAsking, until, waiting,
} from './asking.mjs';
import { assertProblem, postJson } from './home.mjs';
import { AGENT, endOf, factsOf, get, openEvents, postRun, runOf, TIME, user, waitFor } from './talk.mjs';
import { storedFacts } from '../tools/facts.mjs';

const DAY_MS = 86_400_000;
const CONCURRENT = 50;
const RACE_ROUNDS = process.env.FERMATA_LONG ? 1000 : 120;
const INTERACTION_ID = /^int_[0-9a-z]{26}$/;

let home, server, cleanUp;
before(async () => {
  home = await startAsking({ after: (fn) => { cleanUp = fn; } });
  server = home.server;
});
after(() => cleanUp?.());

const resolvedIn = (own) => storedFacts(own.data).filter(({ type }) => type === 'interaction.resolved');
const later = (ms = DAY_MS) => new Date(Date.now() + ms).toISOString();

// Facts of a thread from the first to the one for which it holds.
async function factsUntil(t, threadId, predicate, on = server) {
  const events = await openEvents(t, on, threadId, { query: '?after=0' });
  const facts = factsOf(await events.until(predicate));
  events.close();
  return facts;
}

const finished = (outcome) => ({ type, data }) => type === 'run.finished' && data.outcome === outcome;
const factOf = (facts, type) => facts.filter((fact) => fact.type === type);
const resultsOf = (facts) => factOf(facts, 'tool.call.result').map(({ data }) => data);

// What the model got for the only call of a thread.
async function resultOf(t, threadId) {
  const facts = await factsUntil(t, threadId, ({ type }) => type === 'tool.call.result');
  return resultsOf(facts)[0];
}

describe('a question', () => {
  test('is in the inbox, with what is asked and nothing that is not', async () => {
    const { threadId, runId, open } = await waiting(server, 'choose');
    assert.equal(open.length, 1);
    const [asked] = open;
    assert.match(asked.interactionId, INTERACTION_ID);
    assert.match(asked.openedAt, TIME);
    assert.deepEqual(asked, {
      version: asked.version, interactionId: asked.interactionId, type: 'ask_user', status: 'open', threadId, runId,
      toolCallId: asked.toolCallId, displayText: 'How long?', question: 'How long?',
      choices: [{ id: 'c1', label: '30 minutes' }, { id: 'c2', label: '1 hour', description: 'the usual' }],
      allowFreeform: true, ...(asked.multi === undefined ? {} : { multi: false }),
      resumeNode: asked.resumeNode, resumePhase: asked.resumePhase, resumeStep: 0, ...(asked.ui === undefined ? {} : { ui: asked.ui }),
      requester: 'local', openedAt: asked.openedAt, metadata: {},
    });
    assert.deepEqual(await interaction(server, asked.interactionId), asked);
    assert.deepEqual((await runOf(server, threadId)).interactions, [asked]);
  });

  test('is answered once; then the answer is 409, with how it was settled', async (t) => {
    const { threadId, open: [asked] } = await waiting(server, 'choose');
    const first = await answer(server, asked.interactionId, { choices: ['c2'] });
    assert.equal(first.status, 200, first.text);
    const settled = first.json();
    assert.deepEqual([settled.status, settled.answer, settled.answeredBy, settled.via], ['resolved', { choices: ['c2'] }, 'local', 'api']);
    for (const body of [{ choices: ['c2'] }, { choices: ['c1'] }, { nonsense: true }]) {
      assert.deepEqual(assertRefused(await answer(server, asked.interactionId, body), 409, 'already_resolved'), settled);
    }
    assert.deepEqual(assertRefused(await cancelOne(server, asked.interactionId), 409, 'already_resolved'), settled);
    assert.deepEqual(assertRefused(await move(server, asked.interactionId, { expiresAt: later() }), 409, 'already_resolved'), settled);
    const facts = await factsUntil(t, threadId, finished('completed'));
    const resolved = factOf(facts, 'interaction.resolved');
    assert.equal(resolved.length, 1);
    assert.deepEqual(resolved[0].data, {
      interactionId: asked.interactionId, status: 'resolved', answer: { choices: ['c2'] }, text: '1 hour', answeredBy: 'local', via: 'api',
      at: resolved[0].data.at,
    });
    assert.equal(resultsOf(facts)[0].content, '1 hour');
    assert.deepEqual(await interaction(server, asked.interactionId), settled);
  });

  for (const [word, body, text] of [
    ['choose', { answer: '1 hour' }, '1 hour'],
    ['choose', { answer: 'two hours, please' }, 'two hours, please'],
    ['choose', { choices: ['c1'], text: 'or a little more' }, '30 minutes: or a little more'],
    ['strict', { answer: 'Blue' }, 'Blue'],
    ['several', { choices: ['c1', 'c3'] }, '["Ann","Eve"]'],
    ['open', { answer: '预算' }, '预算'],
  ]) {
    test(`${word}: ${JSON.stringify(body)} is ${JSON.stringify(text)} for the model`, async (t) => {
      const { threadId, open: [asked] } = await waiting(server, word);
      const taken = await answer(server, asked.interactionId, body);
      assert.equal(taken.status, 200, taken.text);
      assert.deepEqual(taken.json().answer, body);
      assert.equal((await resultOf(t, threadId)).content, text);
    });
  }

  test('is skipped', async (t) => {
    const { threadId, open: [asked] } = await waiting(server, 'choose');
    assert.equal((await answer(server, asked.interactionId, { skip: true })).status, 200);
    assert.ok(['用户跳过了这个问题', 'The user skipped this question'].includes((await resultOf(t, threadId)).content));
  });

  test('is answered by the only one of its thread', async (t) => {
    const { threadId, open: [asked] } = await waiting(server, 'choose');
    const taken = await answerRun(server, threadId, { answer: '1 hour' });
    assert.equal(taken.status, 200, taken.text);
    assert.deepEqual([taken.json().interactionId, taken.json().status], [asked.interactionId, 'resolved']);
    assert.equal((await resultOf(t, threadId)).content, '1 hour');
    await until(server, threadId, 'completed');
    assertProblem(await answerRun(server, threadId, { answer: '1 hour' }), 404, 'not_found');
    assertProblem(await answerRun(server, 'no-such-thread', { answer: 'x' }), 404, 'not_found');
  });

  test('which of two? 409 lists both', async () => {
    const { threadId, open } = await waiting(server, 'two');
    assert.equal(open.length, 2);
    const listed = assertRefused(await answerRun(server, threadId, { answer: 'x' }), 409, 'ambiguous', 'interactions');
    assert.deepEqual(listed.map(({ interactionId }) => interactionId), open.map(({ interactionId }) => interactionId));
    assert.deepEqual(audit(home, threadId, REFUSED).map(({ why }) => why), ['ambiguous']);
    assert.equal((await answer(server, open[1].interactionId, { answer: 'b' })).status, 200);
    assert.equal((await answerRun(server, threadId, { answer: 'a' })).status, 200);
    await until(server, threadId, 'completed');
  });

  for (const body of [{}, { answer: 1 }, { answer: '' }, { answer: 'x', extra: 1 }, []]) {
    test(`POST /runs/{threadId}/answer refuses ${JSON.stringify(body)}`, async () => {
      const { threadId } = await waiting(server, 'open');
      assert.equal((await answerRun(server, threadId, body)).status, 400);
      assert.equal((await runOf(server, threadId)).status, 'waiting');
    });
  }

  test('a front end with Idempotency-Key gets the same answer again', async () => {
    const { open: [asked] } = await waiting(server, 'choose');
    const headers = { 'idempotency-key': `k-${asked.interactionId}` };
    const first = await answer(server, asked.interactionId, { choices: ['c1'] }, headers);
    const again = await answer(server, asked.interactionId, { choices: ['c1'] }, headers);
    assert.deepEqual([first.status, again.status, again.text], [200, 200, first.text]);
    assertProblem(await answer(server, asked.interactionId, { choices: ['c2'] }, headers), 422, 'idempotency_mismatch');
    const late = { 'idempotency-key': `late-${asked.interactionId}` };
    const refused = await answer(server, asked.interactionId, { choices: ['c1'] }, late);
    const refusedAgain = await answer(server, asked.interactionId, { choices: ['c1'] }, late);
    assertRefused(refused, 409, 'already_resolved');
    assert.deepEqual([refusedAgain.status, refusedAgain.text, refusedAgain.headers['content-type']],
      [409, refused.text, 'application/problem+json']);
  });
});

describe('a confirmation', () => {
  test('shows the call, and runs it when approved', async (t) => {
    const { threadId, open: [asked] } = await waiting(server, 'book');
    assert.equal(asked.type, 'confirm');
    assert.deepEqual([asked.pendingTool.toolName, JSON.parse(asked.pendingTool.argsJson), asked.pendingTool.risk],
      ['calendar_write', MEETING, 'write']);
    assert.equal(typeof asked.pendingTool.argsSchema, 'object');
    assert.ok(asked.binding.length > 20);
    const taken = await answer(server, asked.interactionId, { decision: 'approve', binding: asked.binding });
    assert.equal(taken.status, 200, taken.text);
    assert.deepEqual(taken.json().answer, { decision: 'approve' }, 'without the binding');
    const facts = await factsUntil(t, threadId, finished('completed'));
    assert.equal(resultsOf(facts)[0].error, undefined);
    assert.equal(rows(home, `SELECT count(*) AS n FROM calendar_events WHERE call_id='${asked.toolCallId}'`)[0].n, 1);
  });

  test('runs what was edited, and nothing else', async (t) => {
    const { threadId, open: [asked] } = await waiting(server, 'book');
    const args = { ...MEETING, title: 'Renamed' };
    assert.equal((await answer(server, asked.interactionId, { decision: 'edit', args })).status, 200);
    await factsUntil(t, threadId, finished('completed'));
    assert.deepEqual(rows(home, `SELECT title FROM calendar_events WHERE call_id='${asked.toolCallId}'`), [{ title: 'Renamed' }]);
  });

  for (const body of [{ decision: 'reject', comment: 'not now' }, { decision: 'respond', comment: 'it is booked already' }]) {
    test(`${body.decision}: the call does not run, the model gets the words`, async (t) => {
      const { threadId, open: [asked] } = await waiting(server, 'book');
      assert.equal((await answer(server, asked.interactionId, body)).status, 200);
      const result = await resultOf(t, threadId);
      assert.ok(result.content.includes(body.comment), result.content);
      assert.equal(Boolean(result.error), body.decision === 'reject');
      await until(server, threadId, 'completed');
      assert.equal(rows(home, `SELECT count(*) AS n FROM calendar_events WHERE call_id='${asked.toolCallId}'`)[0].n, 0);
    });
  }

  test('three together are settled one by one, and the run goes on after the last', async (t) => {
    const { threadId, open } = await waiting(server, 'three');
    assert.equal(open.length, 3);
    for (const [i, { interactionId }] of open.entries()) {
      assert.equal((await answer(server, interactionId, { decision: i === 1 ? 'reject' : 'approve' })).status, 200);
      if (i < 2) await until(server, threadId, 'waiting');
    }
    await factsUntil(t, threadId, finished('completed'));
    const titles = rows(home, `SELECT title FROM calendar_events WHERE call_id IN (${open.map(({ toolCallId }) => `'${toolCallId}'`)}) ORDER BY title`);
    assert.deepEqual(titles.map(({ title }) => title), ['One', 'Three']);
  });

  test('its tool has another schema after a restart: 409 superseded, and a new one is open', async (t) => {
    const other = await startAsking(t);
    const { threadId, open: [asked] } = await waiting(other.server, 'book');
    await other.stop();
    execute(other, `UPDATE interactions SET args_schema='{"type":"object"}' WHERE id='${asked.interactionId}'`);
    await other.start();
    const refused = await answer(other.server, asked.interactionId, { decision: 'approve' });
    assert.equal(assertRefused(refused, 409, 'superseded').status, 'superseded');
    assertRefused(await answer(other.server, asked.interactionId, { decision: 'approve' }), 409, 'superseded');
    const { interactions } = await inbox(other.server, `?threadId=${threadId}`);
    assert.equal(interactions.length, 1);
    assert.notEqual(interactions[0].interactionId, asked.interactionId);
    assert.equal((await answer(other.server, interactions[0].interactionId, { decision: 'approve' })).status, 200);
    await until(other.server, threadId, 'completed');
    assert.equal(rows(other, 'SELECT count(*) AS n FROM calendar_events')[0].n, 1);
  });
});

// Every reason in src/thread/refusal.h, and how to get it: the word of the message, the body, what comes back.
const REFUSALS = {
  invalid_answer: [
    ['choose', {}, 400], ['choose', [], 400], ['choose', 'text', 400], ['choose', null, 400], ['choose', { answer: '  ' }, 400, 'answer'],
    ['choose', { answer: 7 }, 400, 'answer'], ['choose', { choices: [] }, 400, 'choices'], ['choose', { choices: 'c1' }, 400, 'choices'],
    ['choose', { answer: 'x', extra: 1 }, 400, 'extra'], ['choose', { skip: false }, 400, 'skip'], ['book', {}, 400, 'decision'],
    ['book', { decision: 'approve', extra: 1 }, 400, 'extra'], ['book', { decision: 7 }, 400, 'decision'],
  ],
  outside_choices: [
    ['strict', { answer: 'Green' }, 400, 'answer'], ['strict', { choices: ['c9'] }, 400, 'choices[0]'], ['choose', { choices: ['c1', 'c9'] }, 400],
  ],
  wrong_type: [
    ['choose', { decision: 'approve' }, 400, 'decision'], ['book', { answer: 'yes' }, 400], ['book', { choices: ['c1'] }, 400],
    ['book', { decision: 'retry' }, 400, 'decision'], ['book', { decision: 'continue' }, 400, 'decision'],
  ],
  unknown_decision: [
    ['book', { decision: 'APPROVE' }, 400, 'decision'], ['book', { decision: 'yes' }, 400, 'decision'], ['book', { decision: '' }, 400, 'decision'],
  ],
  edit_invalid: [
    ['book', { decision: 'edit' }, 400, 'args'], ['book', { decision: 'edit', args: {} }, 400], ['book', { decision: 'edit', args: [] }, 400, 'args'],
    ['book', { decision: 'edit', args: { ...MEETING, title: 7 } }, 400, 'args.title'],
    ['book', { decision: 'approve', args: MEETING }, 400, 'args'],
  ],
  always_not_allowed: [
    ['book', { decision: 'reject', always: { scope: 'user' } }, 400, 'always'],
    ['book', { decision: 'edit', args: MEETING, always: { scope: 'thread' } }, 400, 'always'],
  ],
  binding_mismatch: [
    ['book', { decision: 'approve', binding: 'k1:other' }, 412], ['book', { decision: 'approve', binding: '' }, 412],
  ],
};

describe('an answer that is refused', () => {
  for (const [why, list] of Object.entries(REFUSALS)) {
    for (const [word, body, status, field] of list) {
      test(`${word} ${JSON.stringify(body)}: ${status} ${why}, noted, and it stays open`, async () => {
        const { threadId, open: [asked] } = await waiting(server, word);
        const refused = await answer(server, asked.interactionId, body);
        const given = refused.json().field;
        assert.deepEqual(assertRefused(refused, status, status === 412 ? 'binding_mismatch' : 'invalid_field', 'interaction', given), asked);
        if (field !== undefined) assert.equal(given, field);
        assert.deepEqual(await interaction(server, asked.interactionId), asked, 'as before');
        assert.deepEqual(audit(home, threadId, REFUSED), [{ action: REFUSED, who: 'local', via: 'api', why, id: asked.interactionId }]);
        assert.equal((await runOf(server, threadId)).status, 'waiting');
      });
    }
  }

  test('every reason of the table has been seen', async () => {
    const source = await readFile(new URL('../../src/thread/refusal.h', import.meta.url), 'utf8');
    const words = [...source.matchAll(/X\(REFUSAL_\w+,\s*"(\w+)"/g)].map(([, word]) => word);
    assert.ok(words.length > 10);
    const elsewhere = ['not_visible', 'wrong_role', 'own_request', 'already_resolved', 'expired', 'superseded', 'ambiguous', 'no_question', 'client_history',
      'action_forged', 'action_unknown', 'action_disabled', 'action_tool'];
    assert.deepEqual([...new Set(words)].sort(), [...Object.keys(REFUSALS), ...elsewhere].sort());
  });

  test('too large a body is no answer', async () => {
    const { open: [asked] } = await waiting(server, 'open');
    assert.equal((await answer(server, asked.interactionId, { answer: 'x'.repeat(256 * 1024) })).status, 413);
    assert.equal((await interaction(server, asked.interactionId)).status, 'open');
    assert.equal((await answer(server, asked.interactionId, { answer: 'x'.repeat(250 * 1024) })).status, 200);
  });

  test('nothing is known by an id that nobody has', async () => {
    for (const path of ['int_00000000000000000000000000', 'x', '%20', '%FF']) {
      assert.equal((await get(server, `/interactions/${path}`)).status, 404);
      assert.equal((await answer(server, path, { answer: 'x' })).status, 404);
      assert.equal((await cancelOne(server, path)).status, 404);
      assert.equal((await move(server, path, { expiresAt: null })).status, 404);
    }
  });

  test('the audit trail is whole after all that', async () => {
    const { code, stdout, stderr } = await home.run(['check', '--audit']);
    assert.equal(code, 0, stdout + stderr);
  });
});

describe('cancel', () => {
  for (const word of ['choose', 'book']) {
    test(`${word}: its call gets an error, the run goes on`, async (t) => {
      const { threadId, open: [asked] } = await waiting(server, word);
      const cancelled = await cancelOne(server, asked.interactionId);
      assert.equal(cancelled.status, 200, cancelled.text);
      assert.deepEqual([cancelled.json().status, cancelled.json().answeredBy, cancelled.json().via], ['canceled', 'local', 'api']);
      assertRefused(await cancelOne(server, asked.interactionId), 409, 'already_resolved');
      const facts = await factsUntil(t, threadId, finished('completed'));
      assert.ok(resultsOf(facts)[0].error);
      assert.equal(factOf(facts, 'interaction.resolved')[0].data.status, 'canceled');
    });
  }

  for (const [body, field] of [[{ decision: 'approve' }, 'decision'], [{ queue: true }, 'queue'], [[], undefined], ['now', undefined]]) {
    test(`refuses ${JSON.stringify(body)}`, async () => {
      const { open: [asked] } = await waiting(server, 'choose');
      assertProblem(await postJson(server, `${AGENT}/interactions/${asked.interactionId}/cancel`, body), 400, 'invalid_field', field);
      assert.deepEqual(await interaction(server, asked.interactionId), asked);
    });
  }

  test('with an empty object is as without a body', async () => {
    const { open: [asked] } = await waiting(server, 'choose');
    assert.equal((await postJson(server, `${AGENT}/interactions/${asked.interactionId}/cancel`, {})).status, 200);
  });

  test('of the run: what was open is canceled', async (t) => {
    const { threadId, runId, open } = await waiting(server, 'both');
    assert.equal((await postJson(server, `${AGENT}/runs/${threadId}/cancel`, {})).status, 202);
    await factsUntil(t, threadId, endOf(runId));
    await until(server, threadId, 'cancelled');
    for (const { interactionId } of open) {
      const { status } = assertRefused(await answer(server, interactionId, { answer: 'late' }), 409, 'already_resolved');
      assert.equal(status, 'canceled');
    }
    assert.deepEqual(await inbox(server, `?threadId=${threadId}`), { interactions: [] });
  });
});

describe('the inbox', () => {
  test('has pages, newest first, and none twice', async (t) => {
    const own = await startAsking(t);
    const ids = [];
    for (let i = 0; i < 7; i++) ids.unshift((await waiting(own.server, 'open', { threadId: `p${i}` })).open[0].interactionId);
    const seen = [];
    for (let cursor = ''; cursor !== undefined;) {
      const { interactions, next } = await inbox(own.server, `?limit=3${cursor && `&cursor=${cursor}`}`);
      assert.ok(interactions.length <= 3);
      seen.push(...interactions.map(({ interactionId }) => interactionId));
      cursor = next;
    }
    assert.deepEqual(seen, ids);
    assert.deepEqual((await inbox(own.server, '?limit=7')).next, undefined);
  });

  test('by status, thread and agent', async (t) => {
    const own = await startAsking(t);
    const first = await waiting(own.server, 'open', { threadId: 'a' });
    const second = await waiting(own.server, 'book', { threadId: 'b' });
    await answer(own.server, first.open[0].interactionId, { answer: 'x' });
    const idsOf = async (query) => (await inbox(own.server, query)).interactions.map(({ interactionId }) => interactionId);
    const [one, two] = [first.open[0].interactionId, second.open[0].interactionId];
    for (const [query, expected] of [
      ['', [two]], ['?status=open', [two]], ['?status=resolved', [one]], ['?status=canceled', []], ['?status=expired', []],
      ['?status=superseded', []], ['?threadId=a', []], ['?threadId=b', [two]], ['?threadId=a&status=resolved', [one]], ['?threadId=nope', []],
      ['?agent=assistant', [two]], ['?agent=another', []],
    ]) assert.deepEqual(await idsOf(query), expected, query);
  });

  for (const [query, field] of [
    ['?status=any', 'status'], ['?status=', 'status'], ['?status=OPEN', 'status'], ['?limit=0', 'limit'], ['?limit=201', 'limit'],
    ['?cursor=x', 'cursor'], ['?cursor=-1', 'cursor'], ['?threadId=%FF', 'threadId'],
  ]) {
    test(`refuses ${query}`, async () => {
      assertProblem(await get(server, `/interactions${query}`), 400, 'invalid_field', field);
    });
  }
});

describe('of fifty answers at once', () => {
  const bodies = (i) => (i % 2 ? { answer: `answer ${i}` } : { choices: [i % 4 ? 'c1' : 'c2'] });

  // One round: fifty connections of their own, one winner, forty-nine refusals with the same interaction.
  async function race(word, bodyOf) {
    const { threadId, open: [asked] } = await waiting(server, word);
    const answers = await Promise.all(Array.from({ length: CONCURRENT }, (_, i) => answer(server, asked.interactionId, bodyOf(i))));
    const won = answers.filter(({ status }) => status === 200);
    assert.equal(won.length, 1);
    const settled = won[0].json();
    for (const lost of answers.filter(({ status }) => status !== 200)) {
      assert.deepEqual(assertRefused(lost, 409, 'already_resolved'), settled);
    }
    return { threadId, asked, settled };
  }

  for (let round = 1; round <= 3; round++) {
    test(`one wins, round ${round}`, async (t) => {
      const { threadId } = await race('choose', bodies);
      const facts = await factsUntil(t, threadId, finished('completed'));
      assert.equal(factOf(facts, 'interaction.resolved').length, 1);
      assert.equal(resultsOf(facts).length, 1);
      assert.equal(audit(home, threadId, REFUSED).length, CONCURRENT - 1);
    });
  }

  test('an approval runs once', async () => {
    const { threadId, asked } = await race('book', () => ({ decision: 'approve' }));
    await until(server, threadId, 'completed');
    assert.equal(rows(home, `SELECT count(*) AS n FROM calendar_events WHERE call_id='${asked.toolCallId}'`)[0].n, 1);
  });

  // Answers of every kind, cancels and messages at once.
  test('one settles it, whatever they are', async (t) => {
    const own = await startAsking(t);
    const ways = [
      (id) => answer(own.server, id, { choices: ['c1'] }), (id) => answer(own.server, id, { answer: 'free' }),
      (id) => answer(own.server, id, { skip: true }), (id) => cancelOne(own.server, id),
      (id, threadId) => answerRun(own.server, threadId, { answer: '1 hour' }),
      (id, threadId, i) => postRun(own.server, { threadId, runId: `m${i}`, messages: [user('2')] }),
    ];
    for (let round = 0; round < RACE_ROUNDS; round++) {
      const { threadId, open: [asked] } = await waiting(own.server, 'choose', { threadId: `race${round}` });
      const id = asked.interactionId;
      const answers = await Promise.all(Array.from({ length: CONCURRENT }, (_, i) => ways[(i + round) % ways.length](id, threadId, i)));
      const settled = answers.filter((given) => given.status === 200 || (given.status === 202 && given.json().answered?.includes(id)));
      assert.equal(settled.length, 1, answers.map(({ status, text }) => `${status} ${text}`).join('\n'));
      assert.notEqual((await interaction(own.server, id)).status, 'open');
    }
    const resolved = resolvedIn(own).map(({ thread }) => thread);
    assert.equal(resolved.length, new Set(resolved).size, 'once in each thread');
    assert.equal((await own.run(['check', '--audit'])).code, 0);
  });
});

describe('time', () => {
  test('an expiry is set, shown, moved and cleared', async () => {
    const { threadId, open: [asked] } = await waiting(server, 'choose');
    const noted = [];
    for (const [expiresAt, shown] of [
      ['2040-01-31T09:30:00Z', '2040-01-31T09:30:00.000Z'], ['2041-01-31T09:30:00.5+08:00', '2041-01-31T01:30:00.500Z'], [null, undefined],
      [null, undefined], ['9999-12-31T23:59:59.999Z', '9999-12-31T23:59:59.999Z'],
    ]) {
      const moved = await move(server, asked.interactionId, { expiresAt });
      assert.equal(moved.status, 200, moved.text);
      assert.equal(moved.json().expiresAt, shown);
      assert.deepEqual(await interaction(server, asked.interactionId), moved.json());
      noted.push({ action: MOVED, who: 'local', via: 'api', why: 'moved', id: asked.interactionId });
      assert.deepEqual(audit(home, threadId, MOVED), noted);
    }
    assert.equal((await home.run(['check', '--audit'])).code, 0);
  });

  for (const body of [
    {}, [], { expiresAt: 5 }, { expiresAt: '' }, { expiresAt: 'tomorrow' }, { expiresAt: '2040-01-31' }, { expiresAt: '2001-01-31T09:30:00Z' },
    { expiresAt: '2040-13-31T09:30:00Z' }, { expiresAt: null, more: 1 }, { expiresAt: '2040-01-31T09:30:00' },
  ]) {
    test(`PATCH refuses ${JSON.stringify(body)}`, async () => {
      const { open: [asked] } = await waiting(server, 'choose');
      assert.equal((await move(server, asked.interactionId, body)).status, 400);
      assert.deepEqual(await interaction(server, asked.interactionId), asked);
    });
  }

  const soon = (ms) => new Date(Date.now() + ms).toISOString();
  const expired = (id, on = server) => waitFor('it to expire', async () => {
    const state = await interaction(on, id);
    return state.status === 'expired' && state;
  });

  for (const word of ['choose', 'book']) {
    test(`${word}: over is not approved, and the run goes on`, async (t) => {
      const { threadId, open: [asked] } = await waiting(server, word);
      assert.equal((await move(server, asked.interactionId, { expiresAt: soon(3000) })).status, 200);
      const state = await expired(asked.interactionId);
      assert.deepEqual([state.answer, state.via], [undefined, 'timer']);
      assert.equal(assertRefused(await answer(server, asked.interactionId, { decision: 'approve' }), 410, 'expired').status, 'expired');
      assertRefused(await cancelOne(server, asked.interactionId), 410, 'expired');
      assertRefused(await move(server, asked.interactionId, { expiresAt: null }), 410, 'expired');
      const facts = await factsUntil(t, threadId, finished('completed'));
      assert.equal(factOf(facts, 'interaction.resolved')[0].data.status, 'expired');
      assert.ok(resultsOf(facts)[0].error);
      assert.equal(rows(home, `SELECT count(*) AS n FROM calendar_events WHERE call_id='${asked.toolCallId}'`)[0].n, 0);
    });
  }

  test('more time in time keeps it open', async () => {
    const { open: [asked] } = await waiting(server, 'choose');
    await move(server, asked.interactionId, { expiresAt: soon(3000) });
    const moved = await move(server, asked.interactionId, { expiresAt: soon(60_000) });
    assert.equal(moved.status, 200, moved.text);
    const other = (await waiting(server, 'choose')).open[0];
    await move(server, other.interactionId, { expiresAt: soon(3200) });
    await expired(other.interactionId);
    assert.equal((await interaction(server, asked.interactionId)).status, 'open', 'though its first time is over');
    assert.equal((await answer(server, asked.interactionId, { choices: ['c1'] })).status, 200);
  });

  test('many at once, of one run and of several, each once', async (t) => {
    const own = await startAsking(t);
    const open = [];
    for (const word of ['three', 'two', 'book', 'open']) open.push(...(await waiting(own.server, word)).open);
    const at = soon(5000);
    for (const { interactionId } of open) assert.equal((await move(own.server, interactionId, { expiresAt: at })).status, 200);
    for (const { interactionId, threadId } of open) {
      await expired(interactionId, own.server);
      await until(own.server, threadId, 'completed');
    }
    assert.equal(resolvedIn(own).length, open.length);
    assert.deepEqual(rows(own, `SELECT id FROM interactions WHERE status=0`), []);
  });

  test('runs on while the server does not', async (t) => {
    const own = await startAsking(t);
    const past = (await waiting(own.server, 'choose')).open[0];
    const future = (await waiting(own.server, 'choose')).open[0];
    const expiresAt = soon(3000);
    assert.equal((await move(own.server, past.interactionId, { expiresAt })).status, 200);
    await move(own.server, future.interactionId, { expiresAt: soon(60_000) });
    await own.server.kill9();
    own.server = null;
    await waitFor('its time to be over', () => Date.now() > Date.parse(expiresAt));
    await own.start();
    await expired(past.interactionId, own.server);
    await until(own.server, past.threadId, 'completed');
    assert.equal((await interaction(own.server, future.interactionId)).status, 'open');
    const moved = await move(own.server, future.interactionId, { expiresAt: soon(3000) });
    assert.equal(moved.status, 200);
    await expired(future.interactionId, own.server);
  });

  test('an answer that is too late settles it, before the clock comes round', async (t) => {
    const own = await startAsking(t);
    const { threadId, open: [asked] } = await waiting(own.server, 'choose');
    await own.stop();
    execute(own, `UPDATE interactions SET expires=${Date.now() - 1} WHERE id='${asked.interactionId}'`);
    await own.start();
    const late = await answer(own.server, asked.interactionId, { choices: ['c1'] });
    assert.equal(assertRefused(late, 410, 'expired').status, 'expired');
    await until(own.server, threadId, 'completed');
    assert.equal(resolvedIn(own).length, 1);
  });
});

describe('a run that cannot be read', () => {
  // The snapshot of a thread's run, destroyed.
  const damage = (own, threadId) => execute(own, `UPDATE runs SET snapshot=x'00' WHERE thread IN
    (SELECT id FROM threads WHERE thread_id='${threadId}')`);

  test('fails when it is answered, and what it asked is canceled', async (t) => {
    const own = await startAsking(t);
    const { threadId, open } = await waiting(own.server, 'both');
    await own.stop();
    damage(own, threadId);
    await own.start();
    const refused = await answer(own.server, open[0].interactionId, { answer: 'x' });
    assert.equal(assertRefused(refused, 409, 'already_resolved').status, 'canceled');
    await until(own.server, threadId, 'failed');
    const facts = await factsUntil(t, threadId, ({ type }) => type === 'run.error', own.server);
    assert.equal(facts.at(-1).data.code, 'snapshot_damaged');
    assert.deepEqual(await inbox(own.server), { interactions: [] });
  });

  for (const [word, settle] of [
    ['an answer', (on, id) => answer(on, id, { choices: ['c1'] })], ['a skip', (on, id) => answer(on, id, { skip: true })], ['a cancel', cancelOne],
  ]) {
    test(`${word} that settles nothing is no success`, async (t) => {
      const own = await startAsking(t);
      const { threadId, open: [asked] } = await waiting(own.server, 'choose');
      await own.stop();
      execute(own, 'UPDATE interactions SET run=run+1000');
      await own.start();
      assertProblem(await settle(own.server, asked.interactionId), 500, 'internal');
      assert.equal((await interaction(own.server, asked.interactionId)).status, 'open');
      assert.equal((await runOf(own.server, threadId)).status, 'waiting');
    });
  }

  test('fails when its time is over; others expire as they should', async (t) => {
    const own = await startAsking(t);
    const bad = await waiting(own.server, 'choose'), lost = await waiting(own.server, 'choose'), good = await waiting(own.server, 'choose');
    await own.stop();
    damage(own, bad.threadId);
    // And one that no run has, which nobody can settle.
    execute(own, `UPDATE runs SET status=4 WHERE thread=(SELECT id FROM threads WHERE thread_id='${lost.threadId}');
      UPDATE interactions SET expires=CASE thread_id WHEN '${lost.threadId}' THEN 1 ELSE 2 END`);
    await own.start();
    await until(own.server, good.threadId, 'completed');
    await until(own.server, bad.threadId, 'failed');
    const statuses = await Promise.all([bad, lost, good].map(async ({ open: [{ interactionId }] }) => (await interaction(own.server, interactionId)).status));
    assert.deepEqual(statuses, ['canceled', 'open', 'expired']);
    const next = await waiting(own.server, 'choose');
    await move(own.server, next.open[0].interactionId, { expiresAt: new Date(Date.now() + 3000).toISOString() });
    await until(own.server, next.threadId, 'completed');
    assert.ok(own.server.stderr().split('\n').filter((line) => line.includes('expiry.failed')).length < 10, 'said, and not all the time');
  });
});

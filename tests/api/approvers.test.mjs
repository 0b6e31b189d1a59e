// SPDX-License-Identifier: Apache-2.0
//
// Who sees and who answers: the owner, somebody with the role that the policy names, and everybody else, for whom it
// does not exist.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';

import { answer, assertRefused, audit, cancelOne, inbox, interaction, move, REFUSED, rows, startAsking, until, waiting } from './asking.mjs';
import { bearer, call, postJson } from './home.mjs';
import { answerFrame } from './socket.mjs';
import { AGENT, get, postRun, user, waitFor } from './talk.mjs';

const NOBODYS = 'int_00000000000000000000000000';
const HIDDEN = ['threadId', 'runId', 'toolCallId'];
const CONFIG = 'agents: {assistant: {approvers: {calendar_write: approver, calendar_delete: operator}}}\n';

let home, server, cleanUp;
const keys = {};
before(async () => {
  home = await startAsking({ after: (fn) => { cleanUp = fn; } }, { config: CONFIG });
  server = home.server;
  for (const [name, ...roles] of [['ann', 'user'], ['bob', 'user'], ['eve', 'approver'], ['oscar', 'operator'], ['amy', 'user', 'approver']]) {
    keys[name] = bearer(await home.addKey(name, ...roles.flatMap((role) => ['--role', role])));
  }
});
after(() => cleanUp?.());

// What the store has done so far, by the names of its counters.
async function work() {
  const { text } = await call(server, 'GET', '/metrics', { headers: keys.bob });
  const counters = [...text.matchAll(/^(fermata_store_\S+_total\S*) (\d+)$/gm)];
  assert.ok(counters.length > 0);
  return new Map(counters.map(([, name, value]) => [name, Number(value)]));
}

// What it does until a request is answered: the middle of several, because its own duties fall into one now and then.
async function workOf(asks) {
  const samples = asks.map(() => []);
  for (let i = 0; i < 9; i++) {
    for (const [n, ask] of asks.entries()) {
      const before = await work();
      assert.equal((await ask()).status, 404);
      const after = await work();
      samples[n].push([...after].map(([name, value]) => [name, value - before.get(name)]));
    }
  }
  return samples.map((list) => Object.fromEntries(list[0].map(([name], at) =>
    [name, list.map((sample) => sample[at][1]).sort((a, b) => a - b)[list.length >> 1]])));
}

const idsOf = ({ interactions }) => interactions.map(({ interactionId }) => interactionId);
const comparable = ({ status, text, headers }) => {
  const { date, 'x-request-id': id, ...rest } = headers;
  return { status, text, headers: rest };
};

describe('a call that a role approves', () => {
  test('is in the inbox of owner and role, and of nobody else', async () => {
    const { threadId, open: [asked] } = await waiting(server, 'book', { headers: keys.ann });
    for (const [name, sees] of [['ann', true], ['eve', true], ['amy', true], ['bob', false], ['oscar', false]]) {
      assert.equal(idsOf(await inbox(server, '', keys[name])).includes(asked.interactionId), sees, name);
      assert.equal((await get(server, `/interactions/${asked.interactionId}`, keys[name])).status, sees ? 200 : 404, name);
    }
    const shown = await interaction(server, asked.interactionId, keys.eve);
    assert.deepEqual(HIDDEN.filter((name) => name in shown), [], 'the thread of another user');
    assert.ok(!JSON.stringify(shown).includes(`"${threadId}"`));
    const { threadId: t1, runId, toolCallId, ...rest } = asked;
    assert.deepEqual(shown, rest);
    assert.equal(shown.requester, 'ann');
    assert.deepEqual(idsOf(await inbox(server, `?threadId=${threadId}`, keys.eve)), [], 'a thread is named by its owner alone');
  });

  test('is answered by the role, in its own name', async () => {
    const { threadId, open: [asked] } = await waiting(server, 'book', { headers: keys.ann });
    const taken = await answer(server, asked.interactionId, { decision: 'approve', binding: asked.binding }, keys.eve);
    assert.equal(taken.status, 200, taken.text);
    assert.deepEqual([taken.json().answeredBy, taken.json().status], ['eve', 'resolved']);
    assert.deepEqual(HIDDEN.filter((name) => name in taken.json()), []);
    await until(server, threadId, 'completed', keys.ann);
    const late = assertRefused(await answer(server, asked.interactionId, { decision: 'approve' }, keys.eve), 409, 'already_resolved');
    assert.deepEqual(HIDDEN.filter((name) => name in late), []);
  });

  test('its owner sees it and may not: 403, noted', async () => {
    const { threadId, open: [asked] } = await waiting(server, 'book', { headers: keys.ann });
    const refused = await answer(server, asked.interactionId, { decision: 'approve' }, keys.ann);
    assert.deepEqual(assertRefused(refused, 403, 'forbidden'), asked);
    assert.deepEqual(audit(home, threadId, REFUSED).map(({ who, why }) => [who, why]), [['ann', 'wrong_role']]);
    assert.equal((await interaction(server, asked.interactionId, keys.ann)).status, 'open');
  });

  test('its owner takes it back: canceled, and the run goes on', async () => {
    for (const name of ['ann', 'amy']) {
      const { threadId, open: [asked] } = await waiting(server, 'book', { headers: keys[name] });
      const taken = await cancelOne(server, asked.interactionId, keys[name]);
      assert.equal(taken.status, 200, taken.text);
      assert.equal(taken.json().status, 'canceled');
      await until(server, threadId, 'completed', keys[name]);
    }
    assert.deepEqual(rows(home, 'SELECT 1 FROM calendar_events WHERE owner=\'amy\''), []);
  });

  const ASKS = [
    ['answer', (id, headers) => answer(server, id, { decision: 'approve' }, headers)],
    ['a bad answer', (id, headers) => answer(server, id, { nonsense: 1 }, headers)],
    ['an answer with a key', (id, headers) => answer(server, id, { decision: 'approve' }, { ...headers, 'idempotency-key': 'one-key' })],
    ['cancel', (id, headers) => cancelOne(server, id, headers)],
    ['look', (id, headers) => get(server, `/interactions/${id}`, headers)],
    ['move', (id, headers) => move(server, id, { expiresAt: null }, headers)],
  ];
  for (const [what, ask] of ASKS) {
    test(`bob asks to ${what}: as for an id that nobody has, byte for byte`, async () => {
      const { open: [asked] } = await waiting(server, 'book', { headers: keys.ann });
      const answers = [await ask(asked.interactionId, keys.bob), await ask(NOBODYS, keys.bob)];
      assert.equal(answers[0].status, 404);
      assert.deepEqual(comparable(answers[0]), comparable(answers[1]));
      assert.equal((await interaction(server, asked.interactionId, keys.ann)).status, 'open');
    });
  }

  // The time of an answer tells as much as its words do. How long a job takes differs from machine to machine; what the
  // store does for it does not: an id that is there must not cost one statement or one commit more than one that is not.
  for (const [what, ask] of ASKS) {
    test(`bob asks to ${what}: the store works no more for it than for an id that nobody has`, async () => {
      const { open: [asked] } = await waiting(server, 'book', { headers: keys.ann });
      const [foreign, nobodys] = await workOf([asked.interactionId, NOBODYS].map((id) => () => ask(id, keys.bob)));
      assert.ok(Object.values(nobodys).some((count) => count > 0), JSON.stringify(nobodys));
      assert.deepEqual(foreign, nobodys);
    });
  }

  // Four eyes: amy has the role that approves, and it is her own request.
  const EDITED = { decision: 'edit', args: { title: 'Mine', start_time: '2030-01-31T15:00:00+08:00', end_time: '2030-01-31T16:00:00+08:00' } };
  for (const [what, ask, via] of [
    ['approves', (id) => answer(server, id, { decision: 'approve' }, keys.amy), 'api'],
    ['edits', (id) => answer(server, id, EDITED, keys.amy), 'api'],
    ['allows it for always', (id) => answer(server, id, { decision: 'approve', always: { scope: 'user' } }, keys.amy), 'api'],
    ['rejects', (id) => answer(server, id, { decision: 'reject' }, keys.amy), 'api'],
    ['approves at the page', async (id) => {
      const login = await postJson(server, '/api/v1/session', { key: keys.amy.authorization.split(' ')[1] });
      return answer(server, id, { decision: 'approve' }, { cookie: login.cookies[0].split(';')[0] });
    }, 'page'],
    ['approves on a WebSocket', (id) => answerFrame(server, { type: 'confirm_response', requestId: id, approved: true }, keys.amy), 'websocket'],
    ['resumes with AG-UI', (id, threadId) => postJson(server, `${AGENT}/ag-ui/assistant`, {
      threadId, runId: `again-${id}`, messages: [], tools: [], context: [], state: {}, forwardedProps: {},
      resume: [{ interruptId: id, status: 'resolved', payload: { approved: true } }],
    }, { accept: 'text/event-stream', ...keys.amy }), 'ag-ui'],
  ]) {
    test(`whoever asked for it ${what}: 403, noted as their own; another with the role approves`, async () => {
      const { threadId, open: [asked] } = await waiting(server, 'book', { headers: keys.amy });
      const refused = await ask(asked.interactionId, threadId);
      assert.equal(refused.status, 403, refused.text);
      assert.equal(refused.json().code, 'forbidden');
      assert.deepEqual(audit(home, threadId, REFUSED).map(({ who, why, via: where }) => [who, why, where]), [['amy', 'own_request', via]]);
      assert.equal((await interaction(server, asked.interactionId, keys.amy)).status, 'open');
      assert.equal((await answer(server, asked.interactionId, { decision: 'approve' }, keys.eve)).status, 200);
      await until(server, threadId, 'completed', keys.amy);
    });
  }

  test('a thousand tries of a stranger are one entry', async () => {
    const { threadId, open: [asked] } = await waiting(server, 'book', { headers: keys.ann });
    for (let i = 0; i < 50; i++) {
      const tries = await Promise.all(Array.from({ length: 20 }, () => answer(server, asked.interactionId, { decision: 'approve' }, keys.bob)));
      assert.deepEqual([...new Set(tries.map(({ status }) => status))], [404]);
    }
    await waitFor('the entry', () => audit(home, threadId, REFUSED).length);
    assert.equal((await answer(server, asked.interactionId, { decision: 'approve' }, keys.bob)).status, 404);
    assert.equal((await answer(server, asked.interactionId, { decision: 'approve' }, keys.oscar)).status, 404);
    await waitFor('the other stranger', () => audit(home, threadId, REFUSED).length > 1);
    assert.deepEqual(audit(home, threadId, REFUSED).map(({ who, why }) => [who, why]), [['bob', 'not_visible'], ['oscar', 'not_visible']]);
  });

  test('what bob tried is noted, and his key is still free', async () => {
    const { threadId, open: [asked] } = await waiting(server, 'book', { headers: keys.ann });
    const headers = { ...keys.bob, 'idempotency-key': 'free' };
    assert.equal((await answer(server, asked.interactionId, { decision: 'approve' }, headers)).status, 404);
    assert.equal((await answer(server, asked.interactionId, { decision: 'reject' }, headers)).status, 404, 'not 422');
    await waitFor('the entry', () => audit(home, threadId, REFUSED).length);
    assert.deepEqual(audit(home, threadId, REFUSED).map(({ who, why, id }) => [who, why, id]), [['bob', 'not_visible', asked.interactionId]]);
  });
});

describe('the owner takes it back', () => {
  test('with a plain message: rejected, whoever was to approve it', async () => {
    const { threadId, runId, open: [asked] } = await waiting(server, 'book', { headers: keys.ann });
    const taken = await postRun(server, { threadId, messages: [user('never mind')] }, keys.ann);
    assert.equal(taken.status, 202, taken.text);
    assert.deepEqual([taken.json().runId, taken.json().answered], [runId, [asked.interactionId]]);
    await until(server, threadId, 'completed', keys.ann);
    const settled = await interaction(server, asked.interactionId, keys.ann);
    assert.deepEqual([settled.answer.decision, settled.answeredBy, settled.via], ['reject', 'ann', 'message']);
  });
});

describe('a question is its owner\'s', () => {
  test('no role answers it', async () => {
    const { open: [asked] } = await waiting(server, 'open', { headers: keys.ann });
    for (const name of ['bob', 'eve', 'oscar', 'amy']) {
      assert.equal((await answer(server, asked.interactionId, { answer: 'mine' }, keys[name])).status, 404, name);
      assert.ok(!idsOf(await inbox(server, '', keys[name])).includes(asked.interactionId), name);
    }
    assert.equal((await answer(server, asked.interactionId, { answer: 'mine' }, keys.ann)).status, 200);
  });
});

describe('the expiry', () => {
  test('is moved by the owner or an operator; an approver may not', async () => {
    const { open: [asked] } = await waiting(server, 'book', { headers: keys.ann });
    const body = { expiresAt: '2040-01-31T09:30:00Z' };
    assert.equal((await move(server, asked.interactionId, body, keys.ann)).status, 200);
    const moved = await move(server, asked.interactionId, { expiresAt: null }, keys.oscar);
    assert.equal(moved.status, 200, moved.text);
    assert.deepEqual(HIDDEN.filter((name) => name in moved.json()), []);
    assert.equal((await move(server, asked.interactionId, body, keys.eve)).status, 403);
    assert.equal((await interaction(server, asked.interactionId, keys.ann)).expiresAt, undefined);
  });
});

describe('a browser', () => {
  test('answers from the page', async () => {
    const key = keys.ann.authorization.split(' ')[1];
    const login = await postJson(server, '/api/v1/session', { key });
    assert.equal(login.status, 200, login.text);
    const cookie = login.cookies[0].split(';')[0];
    const { open: [asked] } = await waiting(server, 'open', { headers: keys.ann });
    const taken = await answer(server, asked.interactionId, { answer: 'by hand' }, { cookie });
    assert.equal(taken.status, 200, taken.text);
    assert.deepEqual([taken.json().via, taken.json().answeredBy], ['page', 'ann']);
  });
});

describe('without any key everybody is one person', () => {
  test('who approves what they asked for', async (t) => {
    const own = await startAsking(t, { config: CONFIG });
    const { threadId, open: [asked] } = await waiting(own.server, 'book');
    const taken = await answer(own.server, asked.interactionId, { decision: 'approve' });
    assert.equal(taken.status, 200, taken.text);
    await until(own.server, threadId, 'completed');
  });
});

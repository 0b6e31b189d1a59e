// SPDX-License-Identifier: Apache-2.0
//
// Who sees and who answers: the owner, somebody with the role that the policy names, and everybody else, for whom it
// does not exist.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';

import { answer, assertRefused, audit, cancelOne, inbox, interaction, move, REFUSED, startAsking, until, waiting } from './asking.mjs';
import { bearer, postJson } from './home.mjs';
import { get, postRun, user } from './talk.mjs';

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
    for (const refused of [
      await answer(server, asked.interactionId, { decision: 'approve' }, keys.ann), await cancelOne(server, asked.interactionId, keys.ann),
    ]) assert.deepEqual(assertRefused(refused, 403, 'forbidden'), asked);
    assert.deepEqual(audit(home, threadId, REFUSED).map(({ who, why }) => [who, why]), [['ann', 'wrong_role'], ['ann', 'wrong_role']]);
    assert.equal((await interaction(server, asked.interactionId, keys.ann)).status, 'open');
  });

  for (const [what, ask] of [
    ['answer', (id, headers) => answer(server, id, { decision: 'approve' }, headers)],
    ['a bad answer', (id, headers) => answer(server, id, { nonsense: 1 }, headers)],
    ['an answer with a key', (id, headers) => answer(server, id, { decision: 'approve' }, { ...headers, 'idempotency-key': 'one-key' })],
    ['cancel', (id, headers) => cancelOne(server, id, headers)],
    ['look', (id, headers) => get(server, `/interactions/${id}`, headers)],
    ['move', (id, headers) => move(server, id, { expiresAt: null }, headers)],
  ]) {
    test(`bob asks to ${what}: as for an id that nobody has, byte for byte`, async () => {
      const { open: [asked] } = await waiting(server, 'book', { headers: keys.ann });
      const answers = [await ask(asked.interactionId, keys.bob), await ask(NOBODYS, keys.bob)];
      assert.equal(answers[0].status, 404);
      assert.deepEqual(comparable(answers[0]), comparable(answers[1]));
      assert.equal((await interaction(server, asked.interactionId, keys.ann)).status, 'open');
    });
  }

  test('what bob tried is noted, and his key is still free', async () => {
    const { threadId, open: [asked] } = await waiting(server, 'book', { headers: keys.ann });
    const headers = { ...keys.bob, 'idempotency-key': 'free' };
    assert.equal((await answer(server, asked.interactionId, { decision: 'approve' }, headers)).status, 404);
    assert.equal((await answer(server, asked.interactionId, { decision: 'reject' }, headers)).status, 404, 'not 422');
    assert.deepEqual(audit(home, threadId, REFUSED).map(({ who, why, id }) => [who, why, id]),
      [['bob', 'not_visible', asked.interactionId], ['bob', 'not_visible', asked.interactionId]]);
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

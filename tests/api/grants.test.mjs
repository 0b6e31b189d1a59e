// SPDX-License-Identifier: Apache-2.0
//
// What a person has allowed for always: made by an approval, listed, used, revoked.

import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, test } from 'node:test';

import { answer, audit, inbox, MEETING, REVOKED, rows, startAsking, until, waiting } from './asking.mjs';
import { assertProblem, bearer, call } from './home.mjs';
import { accepted, AGENT, get, TIME, user, waitFor } from './talk.mjs';

async function grants(server, query = '', headers = {}) {
  const listed = await get(server, `/grants${query}`, headers);
  assert.equal(listed.status, 200, listed.text);
  return listed.json();
}

const revoke = (server, id, headers = {}) => call(server, 'DELETE', `${AGENT}/grants/${id}`, { headers });

// Approves the only confirmation of a new thread, for always.
async function approve(server, word, always, options = {}) {
  const started = await waiting(server, word, options);
  const [asked] = started.open;
  const taken = await answer(server, asked.interactionId, { decision: 'approve', always }, options.headers);
  assert.equal(taken.status, 200, taken.text);
  return { ...started, asked };
}

describe('always', () => {
  test('for a thread: the next call of it runs, another thread asks', async (t) => {
    const home = await startAsking(t);
    const { threadId, asked } = await approve(home.server, 'again', { scope: 'thread' });
    await until(home.server, threadId, 'completed');
    assert.equal(rows(home, 'SELECT count(*) AS n FROM calendar_events')[0].n, 2);
    const { grants: listed, next } = await grants(home.server);
    assert.equal(next, undefined);
    assert.match(listed[0].createdAt, TIME);
    assert.match(listed[0].grantId, /^grant_[0-9a-z]{26}$/);
    assert.deepEqual(listed, [{
      grantId: listed[0].grantId, toolName: 'calendar_write', scope: 'thread', threadId, match: {}, madeBy: 'local',
      interactionId: asked.interactionId, createdAt: listed[0].createdAt, rule: 'default', approvedBy: ['local'],
    }]);
    assert.equal((await waiting(home.server, 'book')).open.length, 1);
  });

  test('for the user, with a match: what fits runs, what does not asks', async (t) => {
    const home = await startAsking(t);
    const { threadId } = await approve(home.server, 'book', { scope: 'user', match: { title: MEETING.title } });
    await until(home.server, threadId, 'completed');
    const [grant] = (await grants(home.server)).grants;
    assert.deepEqual([grant.scope, grant.threadId, grant.match], ['user', undefined, { title: 'Review' }]);
    await accepted(home.server, { threadId: 'fits', messages: [user('book')] });
    await until(home.server, 'fits', 'completed');
    assert.equal(rows(home, 'SELECT count(*) AS n FROM calendar_events')[0].n, 2);
    assert.equal((await waiting(home.server, 'three')).open.length, 3);
  });
});

describe('revoking', () => {
  test('ends it: the next call asks again', async (t) => {
    const home = await startAsking(t);
    const { threadId, asked } = await approve(home.server, 'book', { scope: 'thread' });
    await until(home.server, threadId, 'completed');
    const [{ grantId }] = (await grants(home.server)).grants;
    const gone = await revoke(home.server, grantId);
    assert.deepEqual([gone.status, gone.text], [204, '']);
    assert.deepEqual(await grants(home.server), { grants: [] });
    assertProblem(await revoke(home.server, grantId), 404, 'not_found');
    assert.deepEqual(audit(home, threadId, REVOKED), [{ action: REVOKED, who: 'local', via: 'api', why: 'revoked', id: asked.interactionId }]);
    assert.equal((await waiting(home.server, 'book', { threadId, runId: 'r2' })).open.length, 1);
    assert.equal((await home.run(['check', '--audit'])).code, 0);
  });

  test('one for all threads is noted in the thread it was given in', async (t) => {
    const home = await startAsking(t);
    const { threadId, asked } = await approve(home.server, 'book', { scope: 'user' });
    await until(home.server, threadId, 'completed');
    const [{ grantId }] = (await grants(home.server)).grants;
    assert.equal((await revoke(home.server, grantId)).status, 204);
    assert.deepEqual(audit(home, threadId, REVOKED), [{ action: REVOKED, who: 'local', via: 'api', why: 'revoked', id: asked.interactionId }]);
    assert.equal((await home.run(['check', '--audit'])).code, 0);
  });

  test('one for all threads outlives the thread it was given in, and its end is noted beside the chains', async (t) => {
    const home = await startAsking(t);
    const { threadId } = await approve(home.server, 'book', { scope: 'user' });
    await until(home.server, threadId, 'completed');
    assert.equal((await call(home.server, 'DELETE', `${AGENT}/threads/${threadId}`)).status, 204);
    const [{ grantId }] = (await grants(home.server)).grants;
    assert.equal((await revoke(home.server, grantId)).status, 204);
    assert.deepEqual(rows(home, `SELECT chain, who, why FROM audit WHERE action=${REVOKED}`), [{ chain: 0, who: 'local', why: 'revoked' }]);
    assert.deepEqual(await grants(home.server), { grants: [] });
    assert.equal((await home.run(['check', '--audit'])).code, 0);
  });

  test('with a key: twice is the same answer', async (t) => {
    const home = await startAsking(t);
    const { threadId } = await approve(home.server, 'book', { scope: 'thread' });
    await until(home.server, threadId, 'completed');
    const [{ grantId }] = (await grants(home.server)).grants;
    const headers = { 'idempotency-key': 'once' };
    assert.equal((await revoke(home.server, grantId, headers)).status, 204);
    assert.equal((await revoke(home.server, grantId, headers)).status, 204);
  });
});

describe('the list', () => {
  test('has pages, newest first, and is one\'s own', async (t) => {
    const home = await startAsking(t);
    const ann = bearer(await home.addKey('ann')), bob = bearer(await home.addKey('bob'));
    const made = [];
    for (let i = 0; i < 5; i++) {
      const { threadId, asked } = await approve(home.server, 'book', { scope: 'thread' }, { threadId: `g${i}`, headers: ann });
      await until(home.server, threadId, 'completed', ann);
      made.unshift(asked.interactionId);
    }
    const seen = [];
    for (let cursor = ''; cursor !== undefined;) {
      const { grants: page, next } = await grants(home.server, `?limit=2${cursor && `&cursor=${cursor}`}`, ann);
      assert.ok(page.length <= 2);
      seen.push(...page.map(({ interactionId }) => interactionId));
      cursor = next;
    }
    assert.deepEqual(seen, made);
    assert.deepEqual(await grants(home.server, '', bob), { grants: [] });
    const [{ grantId }] = (await grants(home.server, '', ann)).grants;
    assertProblem(await revoke(home.server, grantId, bob), 404, 'not_found');
    assert.equal((await grants(home.server, '', ann)).grants.length, 5);
    assert.deepEqual((await inbox(home.server, '', bob)).interactions, []);
  });

  for (const [query, field] of [['?limit=0', 'limit'], ['?limit=201', 'limit'], ['?cursor=x', 'cursor'], ['?scope=ours', 'scope'], ['?scope=', 'scope']]) {
    test(`refuses ${query}`, async (t) => {
      const home = await startAsking(t);
      assertProblem(await get(home.server, `/grants${query}`), 400, 'invalid_field', field);
    });
  }
});

describe('what an approver allowed for always', () => {
  const CONFIG = 'agents: {assistant: {approvers: {calendar_write: approver}}}\n';
  let home, server, keys, texts, granted, cleanUp;

  // ann asks; eve, with the role, allows it for always. bob has the role, too; cid has none; oscar is an operator.
  beforeEach(async () => {
    home = await startAsking({ after: (fn) => { cleanUp = fn; } }, { config: CONFIG });
    ({ server } = home);
    texts = {};
    for (const [name, role] of [['ann', 'user'], ['eve', 'approver'], ['bob', 'approver'], ['cid', 'user'], ['oscar', 'operator']]) {
      texts[name] = await home.addKey(name, '--role', role);
    }
    keys = Object.fromEntries(Object.entries(texts).map(([name, key]) => [name, bearer(key)]));
    const { threadId, open: [asked] } = await waiting(server, 'book', { headers: keys.ann });
    const taken = await answer(server, asked.interactionId, { decision: 'approve', always: { scope: 'user' } }, keys.eve);
    assert.equal(taken.status, 200, taken.text);
    await until(server, threadId, 'completed', keys.ann);
    granted = (await grants(server, '', keys.ann)).grants[0];
    granted.threadOf = threadId;
  });
  afterEach(() => cleanUp?.());

  const runs = async (threadId) => {
    await accepted(server, { threadId, messages: [user('book')] }, keys.ann);
    return (await waitFor(threadId, async () => {
      const run = (await get(server, `/runs/${threadId}`, keys.ann)).json();
      return ['completed', 'waiting'].includes(run.status) && run;
    })).status;
  };

  test('is listed for whom it concerns', async () => {
    assert.equal(granted.rule, 'default@approver');
    assert.deepEqual(granted.approvedBy, ['eve']);
    for (const [name, query, seen] of [['ann', '', 1], ['eve', '', 1], ['eve', '?scope=mine', 1], ['bob', '', 1], ['cid', '', 0], ['oscar', '', 0], ['oscar', '?scope=all', 1]]) {
      const { grants: listed } = await grants(server, query, keys[name]);
      assert.deepEqual(listed.map(({ grantId }) => grantId), seen ? [granted.grantId] : [], `${name} ${query}`);
      if (seen && name !== 'ann') assert.deepEqual([listed[0].requester, listed[0].threadId], ['ann', undefined]);
    }
    for (const name of ['ann', 'eve', 'cid']) assertProblem(await get(server, '/grants?scope=all', keys[name]), 403, 'forbidden');
  });

  for (const name of ['ann', 'eve', 'bob', 'oscar']) {
    test(`is taken back by ${name}`, async () => {
      assert.equal(await runs('before'), 'completed');
      assertProblem(await revoke(server, granted.grantId, keys.cid), 404, 'not_found');
      assert.equal((await revoke(server, granted.grantId, keys[name])).status, 204);
      assert.deepEqual(await grants(server, '', keys.ann), { grants: [] });
      assert.deepEqual(audit(home, granted.threadOf, REVOKED).map(({ who, why }) => [who, why]), [[name, 'revoked']]);
      assert.equal(await runs('after'), 'waiting');
    });
  }

  for (const running of [true, false]) {
    test(`ends when its maker loses the role, ${running ? 'under a server' : 'no server'}`, async () => {
      const second = await home.addKey('eve', '--role', 'approver');
      if (!running) await home.stop();
      await home.revokeKey(texts.eve);
      if (!running) server = await home.start();
      assert.equal((await grants(server, '', keys.ann)).grants.length, 1, 'she still has the role');
      assert.equal(await runs('before'), 'completed');
      if (!running) await home.stop();
      await home.revokeKey(second);
      if (!running) server = await home.start();
      for (const [name, query] of [['ann', ''], ['bob', ''], ['oscar', '?scope=all']]) assert.deepEqual(await grants(server, query, keys[name]), { grants: [] }, name);
      assertProblem(await revoke(server, granted.grantId, keys.ann), 404, 'not_found');
      assert.equal(await runs('after'), 'waiting');
      assert.deepEqual(audit(home, granted.threadOf, REVOKED).map(({ who, why }) => [who, why]), [['', 'role']]);
      assert.equal((await home.run(['check', '--audit'])).code, 0);
    });
  }

  test('one of the owner, where nobody is named, needs no role', async () => {
    const { threadId, open: [asked] } = await waiting(server, 'delete', { headers: keys.ann });
    assert.equal((await answer(server, asked.interactionId, { decision: 'approve', always: { scope: 'user' } }, keys.ann)).status, 200);
    await until(server, threadId, 'completed', keys.ann);
    await home.addKey('ann');
    await home.revokeKey(texts.ann);
    await home.revokeKey(texts.eve);
    const { grants: listed } = await grants(server, '?scope=all', keys.oscar);
    assert.deepEqual(listed.map(({ toolName, rule }) => [toolName, rule]), [['calendar_delete', 'default']]);
  });
});

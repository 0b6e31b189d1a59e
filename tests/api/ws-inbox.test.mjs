// SPDX-License-Identifier: Apache-2.0
//
// The inbox, live: what is open comes first, then what opens and what is settled, to those who may see it and to nobody
// else. The list and the news together are exactly what happened: nothing is missing, nothing comes twice.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';

import { cancelOne, inbox, interaction, move, until, waiting } from './asking.mjs';
import { bearer, call } from './home.mjs';
import { ask, settle, startPlace, tool } from './people.mjs';
import { Socket } from './socket.mjs';
import { accepted, AGENT, cancel, runOf, TIME, user, waitFor } from './talk.mjs';

const TEA = { item: 'tea', count: 2 };
const BIG = { item: 'x'.repeat(60_000) };
const calls = (...list) => ({ turns: [{ calls: list }, { text: 'Done.' }] });
const LINES = [
  { match: '^buy', ...calls(tool('order', TEA)) },
  { match: '^pay', ...calls(tool('pay', TEA)) },
  { match: '^big', ...calls(tool('pay', BIG)) },
  { match: '^pick', ...calls(ask('Which room?', { choices: ['Red', 'Blue'] })) },
  { match: '^pair', ...calls(ask('First?'), tool('order', TEA)) },
  { turns: [{ text: 'Hello.' }] },
];

let home, server;
const keys = {};
const cleanUp = [];
before(async () => {
  ({ home } = await startPlace({ after: (fn) => cleanUp.unshift(fn) }, LINES));
  for (const [name, ...roles] of [['ann', 'user'], ['bob', 'user'], ['eve', 'approver'], ['oscar', 'operator']]) {
    keys[name] = await home.addKey(name, ...roles.flatMap((role) => ['--role', role]));
  }
  server = home.server;
});
after(async () => {
  for (const fn of cleanUp) await fn();
});

const headersOf = (name) => bearer(keys[name]);
const wait = (name, word, more = {}) => waiting(server, word, { headers: headersOf(name), ...more });
const ids = (list) => list.map(({ interactionId }) => interactionId);
const isNews = ({ type, seq }) => seq === undefined && ['interaction.request', 'interaction.resolved'].includes(type);
const newsOf = (socket) => socket.all.filter(isNews);

const openAs = (t, name) => Socket.open(t, server, { headers: { Authorization: `Bearer ${keys[name]}` } });

// A socket that follows the inbox, and the list it got.
async function follow(t, name) {
  const socket = await openAs(t, name);
  assert.deepEqual(await socket.done({ type: 'subscribe', inbox: true }), { inbox: true });
  const list = await socket.one(({ type }) => type === 'inbox');
  assert.deepEqual(Object.keys(list), ['type', 'data']);
  return { socket, list: list.data.interactions };
}

const news = (socket, type, id) => socket.one((message) => isNews(message) && message.type === type && message.data.interactionId === id);

describe('what is open', () => {
  test('the list is that of GET /interactions, for everybody', async (t) => {
    await wait('ann', 'pay');
    await wait('ann', 'pair');
    await wait('bob', 'buy');
    for (const name of ['ann', 'bob', 'eve', 'oscar']) {
      const { list } = await follow(t, name);
      assert.deepEqual(list, (await inbox(server, '?limit=200', headersOf(name))).interactions, name);
    }
  });

  test('more than a list can have: the newest, and where the rest begins', async (t) => {
    const key = await home.addKey('max');
    const headers = bearer(key);
    for (let i = 0; i < 201; i++) await accepted(server, { threadId: `max${i}`, messages: [user('buy')] }, headers);
    const all = async (cursor = '') => (await inbox(server, `?limit=200${cursor}`, headers));
    await waitFor('all to wait', async () => (await all()).next);
    const socket = await Socket.open(t, server, { headers: { Authorization: `Bearer ${key}` } });
    await socket.done({ type: 'subscribe', inbox: true });
    const { data } = await socket.one(({ type }) => type === 'inbox');
    assert.deepEqual(data, await all());
    assert.equal(data.interactions.length, 200);
    assert.equal((await all(`&cursor=${data.next}`)).interactions.length, 1);
  });
});

describe('what happens', () => {
  test('the owner sees it open and settled, with its session', async (t) => {
    const { socket, list } = await follow(t, 'ann');
    const { threadId, runId, open: [asked] } = await wait('ann', 'pick');
    assert.ok(!ids(list).includes(asked.interactionId));
    const request = await news(socket, 'interaction.request', asked.interactionId);
    assert.deepEqual(Object.keys(request), ['type', 'sessionId', 'runId', 'ts', 'data']);
    assert.deepEqual([request.sessionId, request.runId], [threadId, runId]);
    assert.match(request.ts, TIME);
    assert.deepEqual(request.data, asked);
    await settle(server, asked.interactionId, { choices: ['c1'] }, headersOf('ann'));
    const resolved = await news(socket, 'interaction.resolved', asked.interactionId);
    assert.deepEqual(Object.keys(resolved), ['type', 'sessionId', 'runId', 'ts', 'data']);
    assert.deepEqual([resolved.data.status, resolved.data.answer, resolved.data.text, resolved.data.via], ['resolved', { choices: ['c1'] }, 'Red', 'api']);
  });

  test('approvers see what their role answers, without session, run and call; others see nothing', async (t) => {
    const eve = await follow(t, 'eve'), bob = await follow(t, 'bob'), oscar = await follow(t, 'oscar'), ann = await follow(t, 'ann');
    const { threadId, runId, open: [asked] } = await wait('ann', 'pay');
    const own = await news(ann.socket, 'interaction.request', asked.interactionId);
    assert.equal(own.sessionId, threadId);
    const request = await news(eve.socket, 'interaction.request', asked.interactionId);
    assert.deepEqual(Object.keys(request), ['type', 'ts', 'data']);
    assert.deepEqual(request.data, await interaction(server, asked.interactionId, headersOf('eve')));
    for (const secret of ['threadId', 'runId', 'toolCallId', 'sessionId']) assert.equal(request.data[secret], undefined);

    const say = (more) => ({ type: 'confirm_response', requestId: asked.interactionId, decision: 'approve', ...more });
    await eve.socket.refused(say({ sessionId: threadId }), 'not_found');
    await eve.socket.refused(say({ sessionId: 'guess' }), 'not_found');
    await bob.socket.refused(say({}), 'not_found');
    await ann.socket.refused(say({ sessionId: threadId }), 'forbidden');
    const taken = await eve.socket.done(say({ binding: asked.binding }));
    assert.deepEqual([taken.status, taken.answeredBy, taken.threadId], ['resolved', 'eve', undefined]);
    const resolved = await news(eve.socket, 'interaction.resolved', asked.interactionId);
    assert.deepEqual(Object.keys(resolved), ['type', 'ts', 'data']);
    assert.equal((await news(ann.socket, 'interaction.resolved', asked.interactionId)).runId, runId);
    await until(server, threadId, 'completed', headersOf('ann'));

    for (const { socket } of [bob, oscar]) {
      await socket.ask({ type: 'ping' });
      assert.deepEqual(newsOf(socket), []);
    }
    assert.ok(!JSON.stringify(eve.socket.all).includes(`"${threadId}"`), 'nothing else tells it either');
  });

  test('a card too large for an event: the owner gets its address, the approver the card', async (t) => {
    const eve = await follow(t, 'eve'), ann = await follow(t, 'ann');
    const { threadId, open: [asked] } = await wait('ann', 'big');
    const own = await news(ann.socket, 'interaction.request', asked.interactionId);
    assert.ok(own.data.uiRef && !own.data.ui);
    const request = await news(eve.socket, 'interaction.request', asked.interactionId);
    assert.ok(request.data.ui && !request.data.uiRef);
    assert.ok(!JSON.stringify(request).includes(`"${threadId}"`));
  });

  for (const [name, end, status] of [
    ['cancelled alone', ({ asked }) => cancelOne(server, asked.interactionId, headersOf('eve')), 'canceled'],
    ['cancelled with its run', ({ threadId }) => cancel(server, threadId, {}, headersOf('ann')), 'canceled'],
    ['deleted with its thread', ({ threadId }) => call(server, 'DELETE', `${AGENT}/threads/${threadId}`, { headers: headersOf('ann') }), 'canceled'],
    ['out of time', ({ asked }) => move(server, asked.interactionId, { expiresAt: new Date(Date.now() + 3000).toISOString() }, headersOf('ann')), 'expired'],
    ['answered by a message', ({ threadId }) => accepted(server, { threadId, messages: [user('no')] }, headersOf('ann')), 'resolved'],
  ]) {
    test(`${name}: both are told`, async (t) => {
      const eve = await follow(t, 'eve'), ann = await follow(t, 'ann');
      const { threadId, open: [asked] } = await wait('ann', 'pay');
      for (const { socket } of [eve, ann]) await news(socket, 'interaction.request', asked.interactionId);
      await end({ threadId, asked });
      for (const { socket } of [eve, ann]) {
        const { data } = await news(socket, 'interaction.resolved', asked.interactionId);
        assert.equal(data.status, status);
        assert.match(data.at, TIME);
      }
    });
  }

  test('both subscriptions on one socket: the inbox has no seq, the session has', async (t) => {
    const { socket } = await follow(t, 'ann');
    await socket.subscribe('both1');
    await socket.done({ type: 'message', sessionId: 'both1', content: 'pick' });
    const first = await socket.one(({ type }) => type === 'interaction.request');
    const second = await socket.one(({ type }) => type === 'interaction.request');
    assert.deepEqual([first, second].map(({ seq }) => seq === undefined).sort(), [false, true]);
    assert.deepEqual(first.data, second.data);
  });

  test('subscribing again gives the list again; after unsubscribe nothing comes', async (t) => {
    const { socket } = await follow(t, 'ann');
    const { open: [one] } = await wait('ann', 'buy');
    await news(socket, 'interaction.request', one.interactionId);
    await socket.done({ type: 'subscribe', inbox: true });
    const again = await socket.one(({ type }) => type === 'inbox');
    assert.ok(ids(again.data.interactions).includes(one.interactionId));
    assert.deepEqual(await socket.done({ type: 'unsubscribe', inbox: true }), { inbox: true });
    const before = newsOf(socket).length;
    await wait('ann', 'buy');
    await socket.ask({ type: 'ping' });
    assert.equal(newsOf(socket).length, before);
  });
});

// The open ones of a client: a list replaces everything, news change it. Fails if something comes twice or unasked.
function follower(socket) {
  const open = new Set(), seen = new Set();
  for (const message of socket.all) {
    if (message.type === 'inbox') {
      open.clear();
      for (const id of ids(message.data.interactions)) open.add(id);
      for (const id of open) seen.add(id);
    }
    if (!isNews(message)) continue;
    const { interactionId: id } = message.data;
    if (message.type === 'interaction.request') {
      assert.ok(!seen.has(id), `${id} opens once`);
      seen.add(id);
      open.add(id);
    } else {
      assert.ok(open.delete(id), `${id} is settled once, after it was open`);
    }
  }
  return open;
}

describe('no gap, nothing twice', () => {
  test('sockets come while interactions open and are settled', async (t) => {
    const headers = headersOf('bob');
    const busy = Array.from({ length: 12 }, async (_, i) => {
      for (let round = 0; round < 3; round++) {
        const { threadId, open } = await wait('bob', i % 2 ? 'pay' : 'pair', { threadId: `busy${i}-${round}` });
        if (round === 2) continue; // these stay open
        const question = open.find(({ type }) => type === 'ask_user');
        if (question) await settle(server, question.interactionId, { answer: 'x' }, headers);
        await cancel(server, threadId, {}, headers);
      }
    });
    const sockets = [];
    const watching = (async () => {
      for (let i = 0; i < 30; i++) {
        const { socket } = await follow(t, i % 3 ? 'bob' : 'eve');
        sockets.push({ socket, name: i % 3 ? 'bob' : 'eve' });
      }
    })();
    await Promise.all([...busy, watching]);
    for (const { socket, name } of sockets) {
      const want = ids((await inbox(server, '?limit=200', headersOf(name))).interactions).sort();
      await waitFor(`${name} to have it all`, () => JSON.stringify([...follower(socket)].sort()) === JSON.stringify(want));
      await socket.ask({ type: 'ping' });
      assert.deepEqual([...follower(socket)].sort(), want);
    }
    assert.equal((await runOf(server, 'busy0-2', headers)).status, 'waiting');
  });
});

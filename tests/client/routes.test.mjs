// SPDX-License-Identifier: Apache-2.0
//
// Every method of the client against a started server, once: that it asks for the right thing and gives what its type
// says. And the inbox over a WebSocket.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';

import { WebSocket } from 'ws';

import { waitFor } from '../api/talk.mjs';
import { approve, Fermata, isOver, start, take, untilEnd } from './kit.mjs';

let place, client;
const closing = [];
before(async () => {
  place = await start({ after: (fn) => closing.unshift(fn) });
  client = place.client();
});
after(async () => {
  for (const fn of closing) await fn();
});

const refused = (code) => (error) => error.code === code;
const ended = async (threadId) => waitFor(`the end of ${threadId}`, async () => ['completed', 'cancelled', 'failed'].includes((await client.current(threadId)).status));

// The one open interaction of a conversation, as soon as it is there.
const open = (threadId) => waitFor(`a question in ${threadId}`, async () => (await client.interactions({ threadId })).interactions[0]);

test('conversations: list, search, name, page, remove', async () => {
  for (const [threadId, text] of [['a', 'hello apple'], ['b', 'hello pear']]) {
    await client.run({ threadId, text });
    await ended(threadId);
  }
  assert.deepEqual((await client.threads()).threads.map(({ threadId }) => threadId), ['b', 'a']);
  const { threads, next } = await client.threads({ limit: 1 });
  assert.deepEqual((await client.threads({ limit: 1, cursor: next })).threads.map(({ threadId }) => threadId), ['a']);
  assert.equal(threads[0].threadId, 'b');
  assert.deepEqual((await client.threads({ query: 'apple' })).threads.map(({ threadId }) => threadId), ['a']);
  assert.equal((await client.rename('a', '苹果')).title, '苹果');
  assert.equal((await client.thread('a')).title, '苹果');
  const newest = await client.history('a', { limit: 1 });
  assert.deepEqual([newest.messages.length, newest.hasMore], [1, true]);
  const older = await client.history('a', { before: newest.before });
  assert.deepEqual([older.messages[0].role, older.hasMore], ['user', false]);
  assert.equal(await client.remove('a'), undefined);
  await assert.rejects(client.thread('a'), refused('not_found'));
});

test('a run: state, queue, stop', async () => {
  const { runId } = await client.run({ threadId: 'run', text: 'patient' });
  for (const text of ['hello', 'hi']) await client.run({ threadId: 'run', text });
  const { queue, next, status } = await client.current('run', { limit: 1 });
  assert.equal((await client.current('run', { cursor: next })).queue[0].messages[0].content, 'hi');
  assert.deepEqual([status, queue.length, queue[0].messages[0].content], ['running', 1, 'hello']);
  assert.equal(await client.dropQueued('run', queue[0].n), undefined);
  await assert.rejects(client.cancel('run', { runId: 'other' }), refused('not_current'));
  assert.deepEqual(await client.cancel('run', { runId, queue: true }), { threadId: 'run', runId, status: 'cancelling' });
  await ended('run');
  assert.equal((await client.current('run')).status, 'cancelled');
});

test('interactions: one, its expiry, its end without an answer', async () => {
  await client.run({ threadId: 'i', text: 'ask' });
  const { interactionId } = await open('i');
  const expiresAt = '2040-01-01T00:00:00.000Z';
  assert.equal((await client.setExpiry(interactionId, expiresAt)).expiresAt, expiresAt);
  assert.equal((await client.setExpiry(interactionId, null)).expiresAt, undefined);
  assert.equal((await client.interaction(interactionId)).status, 'open');
  assert.equal((await client.cancelInteraction(interactionId)).status, 'canceled');
  await ended('i');
  assert.equal((await client.interactions({ status: 'canceled', threadId: 'i' })).interactions.length, 1);
});

test('grants: made by an approval, listed, revoked', async () => {
  await client.run({ threadId: 'g', text: 'book' });
  const asked = await open('g');
  await client.answer(asked.interactionId, { ...approve(asked), always: { scope: 'thread' } });
  await ended('g');
  const { grants: [grant] } = await client.grants();
  assert.deepEqual([grant.toolName, grant.scope, grant.threadId], ['calendar_write', 'thread', 'g']);
  assert.equal(await client.revoke(grant.grantId), undefined);
  assert.deepEqual((await client.grants()).grants, []);
});

test('files, also when the answer is lost', async () => {
  let lost = 0;
  const losing = new Fermata({ url: client.url, async fetch(url, init) {
    const response = await fetch(url, init);
    if (lost++) return response;
    await response.text();
    throw new TypeError('lost');
  } });
  const file = new File(['name,count\ntea,2\n'], '清单.csv');
  const attachment = await losing.upload('f', file);
  assert.deepEqual([attachment.filename, attachment.size, lost], ['清单.csv', 17, 2]);
  assert.equal((await client.upload('f', new Blob(['x']), 'x.txt')).filename, 'x.txt');
  assert.equal(await (await fetch(client.url + attachment.url)).text(), 'name,count\ntea,2\n');
  await client.run({ threadId: 'f', text: [{ type: 'text', text: 'hello' }, { type: 'binary', id: attachment.id }] });
  await ended('f');
  assert.deepEqual((await client.history('f')).messages[0].attachments.map(({ id }) => id), [attachment.id]);
});

test('cards, results, buttons', async () => {
  await client.run({ threadId: 'c', text: 'book' });
  const asked = await open('c');
  await client.answer(asked.interactionId, approve(asked));
  await ended('c');
  const tool = await waitFor('its card', async () => (await client.history('c')).messages.find(({ role, uiSchema }) => role === 'tool' && uiSchema));
  assert.deepEqual(await client.card('c', tool.id), tool.uiSchema);
  assert.equal((await client.result('c', tool.id)).title, 'Review');
  const pressed = await client.press({ threadId: 'c', messageId: tool.id, actionId: 'a0' });
  assert.equal(pressed.action.type, 'url');
  await assert.rejects(client.press({ threadId: 'c', messageId: tool.id, actionId: 'none' }), refused('not_found'));
});

test('a wide card is read by whoever follows', async (t) => {
  await client.run({ threadId: 'w', text: 'wide' });
  const states = client.follow('w', { signal: untilEnd(t) });
  const { messages } = (await take(states, ({ run }) => run?.status === 'completed')).at(-1);
  assert.deepEqual([messages.at(-1).uiRef, messages.at(-1).uiSchema.version], [undefined, '2.0']);
});

test('front-end tools: a call for the page, and its result', async () => {
  const tools = [{ name: 'paint', description: 'Paints the page', parameters: { type: 'object', properties: { colour: { type: 'string' } } } }];
  await client.run({ threadId: 'p', text: 'paint', tools });
  const waiting = await waitFor('the call', async () => {
    const { messages } = await client.history('p');
    return messages.find(({ toolCalls }) => toolCalls?.[0].function.name === 'paint');
  });
  await client.run({ threadId: 'p', messages: [{ role: 'tool', toolCallId: waiting.toolCalls[0].id, content: 'painted' }], tools });
  await ended('p');
  assert.equal((await client.history('p')).messages.at(-1).content, 'It is red now.');
});

test('agents and settings', async () => {
  const [agent] = await client.agents();
  assert.equal(agent.name, 'assistant');
  assert.equal((await client.changeSettings(agent.name, { maxToolRounds: 7 })).maxToolRounds, 7);
  assert.equal((await client.settings(agent.name)).maxToolRounds, 7);
  await client.changeSettings(agent.name, { maxToolRounds: null });
});

test('channels: none here, and nobody to sign in to', async () => {
  assert.deepEqual(await client.channels(), []);
  await assert.rejects(client.login('wx'), refused('not_found'));
});

describe('who one is', () => {
  test('without a key, with one, and with a session', async (t) => {
    const { home, client: make } = await start(t);
    assert.deepEqual([(await make().session()).user, (await make().session()).via], ['local', 'local']);
    const key = await home.addKey('ann', '--role', 'approver');
    await assert.rejects(make().session(), refused('unauthenticated'));
    assert.deepEqual((await make({ key }).session()).roles, ['approver']);
    assert.match(await make({ key }).ticket(), /./);
    let cookie = '';
    const browser = make({ async fetch(url, init) {
      if (cookie) init.headers.set('cookie', cookie);
      const response = await fetch(url, init);
      cookie = response.headers.getSetCookie()[0]?.split(';')[0] ?? cookie;
      return response;
    } });
    assert.equal((await browser.signIn(key)).user, 'ann');
    assert.equal((await browser.session()).via, 'session');
    assert.equal(await browser.signOut(), undefined);
    await assert.rejects(browser.session(), refused('unauthenticated'));
  });
});

describe('the inbox', () => {
  test('what is open, what opens, what is settled; all again after a kill', async (t) => {
    const { home, client: make } = await start(t);
    await make().run({ threadId: 'one', text: 'ask' });
    await waitFor('the question', async () => (await make().interactions()).interactions.length);
    const connection = make({ WebSocket }).connect({ signal: untilEnd(t) });
    const inbox = connection.inbox(), events = connection.subscribe('two', { after: 0 });
    const [{ data: { interactions: [first] } }] = await take(inbox, ({ type }) => type === 'inbox');
    assert.equal(first.threadId, 'one');

    await take(events, ({ type }) => type === 'connection.open');
    await connection.run({ threadId: 'two', text: 'book' });
    const [asked] = await take(inbox, ({ type }) => type === 'interaction.request');
    assert.deepEqual([asked.data.threadId, Object.keys(asked)], ['two', ['type', 'data']]);
    const seen = await take(events, ({ type }) => type === 'run.finished');
    assert.equal(seen.filter(({ type }) => type === 'interaction.request').length, 1, 'each reader has its own');

    await connection.answer(asked.data.interactionId, { decision: 'reject' });
    const [settled] = await take(inbox, ({ type }) => type === 'interaction.resolved');
    assert.deepEqual([settled.data.interactionId, settled.data.answer.decision], [asked.data.interactionId, 'reject']);
    await take(events, isOver);

    const { port } = home.server;
    await home.server.kill9();
    home.server = null;
    await home.start({ FERMATA_LISTEN: `127.0.0.1:${port}` });
    const again = (await take(inbox, ({ type }) => type === 'inbox')).map(({ type }) => type);
    assert.deepEqual([again[0], again.at(-1)], ['connection.lost', 'inbox']);
    await connection.run({ threadId: 'one', text: '1 hour' });
    assert.equal((await take(inbox, ({ type }) => type === 'interaction.resolved')).at(-1).data.interactionId, first.interactionId);
  });

  test('stop over the connection', async (t) => {
    const { client: make } = await start(t);
    const connection = make({ WebSocket }).connect({ signal: untilEnd(t) });
    const events = connection.subscribe('s', { after: 0 });
    await connection.run({ threadId: 's', text: 'slow' });
    await take(events, ({ type }) => type === 'text.delta');
    await connection.stop('s');
    assert.equal((await take(events, isOver)).at(-1).data.outcome, 'cancelled');
    await assert.rejects(connection.stop('s'), refused('not_current'));
  });
});

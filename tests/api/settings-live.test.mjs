// SPDX-License-Identifier: Apache-2.0
//
// Settings that are changed while the server runs: what the next request to the model, the next call and the next run
// make of them, without a restart.

import assert from 'node:assert/strict';
import { after, afterEach, before, describe, test } from 'node:test';

import { audit, inbox, REFUSED, until, waiting } from './asking.mjs';
import { call } from './home.mjs';
import { approve, ask, askedAbout, ended, factsUntil, finished, ofType, order, resultsOf, settle, startPlace, tool, toolNames } from './people.mjs';
import { accepted, AGENT, cancel, runOf, user } from './talk.mjs';

const turn = (...calls) => ({ calls });
const done = { text: 'Done.' };
const look = turn(tool('look'));

// What the model does, by the first word of the message.
const LINES = [
  { match: '^question', turns: [turn(ask('How long?')), done] },
  { match: '^two', turns: [turn(ask('First?')), turn(ask('Second?')), done] },
  { match: '^looks', turns: [look, look, look, look, done] },
  { match: '^pause', turns: [look, turn(ask('Go on?')), look, look, done] },
  { match: '^(buy|买)', turns: [turn(order('tea')), done] },
  { match: '^read', turns: [turn(tool('look', { reply: 'seen' })), done] },
  { match: '^twice', turns: [turn(order('tea')), turn(order('tea')), done] },
  { turns: [{ text: 'Hello.' }] },
];

let home, server, street, asked;
const closing = [];
before(async () => {
  ({ home, street, asked } = await startPlace({ after: (fn) => closing.unshift(fn) }, LINES));
  server = home.server;
});
after(async () => {
  for (const fn of closing) await fn();
});
afterEach(() => set({ enableAskUser: null, maxToolRounds: null, confirmPolicy: null, locale: null }));

async function set(body) {
  const answer = await call(server, 'PATCH', `${AGENT}/agents/assistant/settings`,
    { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) });
  assert.equal(answer.status, 200, answer.text);
}

// A message whose run nobody has to wait for: its facts.
async function through(t, text, outcome = 'completed') {
  const { threadId } = await accepted(server, { messages: [user(text)] });
  return factsUntil(t, server, threadId, finished(outcome));
}

const offered = (text) => askedAbout(asked, text).map((request) => toolNames(request).includes('ask_user'));

describe('enableAskUser', () => {
  test('off: the next request does not have the tool; on: the next one has it again', async (t) => {
    await through(t, 'hello one');
    await set({ enableAskUser: false });
    await through(t, 'hello two');
    await set({ enableAskUser: true });
    await through(t, 'hello three');
    await set({ enableAskUser: false });
    await set({ enableAskUser: null });
    await through(t, 'hello four');
    assert.deepEqual(['one', 'two', 'three', 'four'].map((n) => offered(`hello ${n}`)), [[true], [false], [true], [true]]);
    const system = (text) => askedAbout(asked, text)[0].system;
    assert.match(system('hello one'), /ask_user/);
    assert.doesNotMatch(system('hello two'), /ask_user/, 'nor is the model told when to ask');
  });

  test('off: a stubborn call gets an error, and nobody is asked', async (t) => {
    await set({ enableAskUser: false });
    const facts = await through(t, 'question');
    const [result] = resultsOf(facts);
    assert.deepEqual([result.toolName, result.error], ['ask_user', 'not_offered']);
    assert.match(result.content, /switched off/);
    assert.equal(ofType(facts, 'interaction.request').length, 0);
    assert.equal(askedAbout(asked, 'question').at(-1).messages.at(-1).text, result.content);
  });

  test('off while a question is open: it can be answered, the next one is not asked', async (t) => {
    const { open: [first], threadId } = await waiting(server, 'two');
    await set({ enableAskUser: false });
    await settle(server, first.interactionId, { answer: 'a' });
    const facts = await factsUntil(t, server, threadId, finished('completed'));
    assert.deepEqual(resultsOf(facts).map(({ content, error }) => error ?? content), ['a', 'not_offered']);
    assert.deepEqual(offered('two'), [true, false, false], 'in the same run');
  });

  test('off survives a restart', async (t) => {
    await set({ enableAskUser: false });
    server = await home.restart();
    await through(t, 'hello after');
    assert.deepEqual(offered('hello after'), [false]);
  });
});

describe('maxToolRounds', () => {
  for (const rounds of [1, 2, 3]) {
    test(`${rounds}: the next run has exactly so many`, async (t) => {
      await set({ maxToolRounds: rounds });
      const before = street.ran('look');
      const facts = await through(t, 'looks', 'exhausted');
      assert.equal(street.ran('look') - before, rounds);
      assert.equal(facts.at(-1).data.code, 'budget_exhausted');
      const { tools } = askedAbout(asked, 'looks').at(-1);
      assert.deepEqual(tools, [], 'the report was asked for without tools');
    });
  }

  test('a run that has begun keeps its own', async (t) => {
    const { open: [question], threadId } = await waiting(server, 'pause');
    await set({ maxToolRounds: 2 });
    await settle(server, question.interactionId, { answer: 'yes' });
    const facts = await factsUntil(t, server, threadId, finished('completed'));
    assert.equal(resultsOf(facts).length, 4);
  });
});

describe('confirmPolicy', () => {
  test('allow: it runs and nobody is asked', async (t) => {
    await set({ confirmPolicy: { order: 'allow' } });
    const facts = await through(t, 'buy');
    assert.equal(ofType(facts, 'interaction.request').length, 0);
    assert.equal(resultsOf(facts)[0].error, undefined);
    assert.equal(street.ran(resultsOf(facts)[0].toolCallId), 1);
  });

  test('deny: the model is told, and it is not run', async (t) => {
    await set({ confirmPolicy: { order: 'deny' } });
    const facts = await through(t, 'buy');
    assert.deepEqual(resultsOf(facts).map(({ error }) => error), ['policy_denied']);
    assert.equal(street.ran(resultsOf(facts)[0].toolCallId), 0);
  });

  test('confirm: also a read waits', async () => {
    await set({ confirmPolicy: { look: 'confirm' } });
    const { open: [one], threadId } = await waiting(server, 'read');
    assert.deepEqual([one.type, one.pendingTool.toolName, street.ran(one.toolCallId)], ['confirm', 'look', 0]);
    await approve(server, one);
    await ended(server, threadId);
    assert.equal(street.ran(one.toolCallId), 1);
  });

  for (const [confirmPolicy, asks] of [
    [{ '*': 'allow' }, 0], [{ 'o*': 'deny', order: 'confirm' }, 1], [{ 'o*': 'confirm', 'ord*': 'allow' }, 0], [{ pay: 'allow' }, 1], [{}, 1],
  ]) {
    test(`${JSON.stringify(confirmPolicy)}: the nearest name counts`, async () => {
      await set({ confirmPolicy });
      const { threadId } = await accepted(server, { messages: [user('buy')] });
      await until(server, threadId, asks ? 'waiting' : 'completed');
      if (asks) await cancel(server, threadId);
    });
  }

  test('deny while it waits: approved, and not run', async (t) => {
    const { open: [one], threadId } = await waiting(server, 'buy');
    await set({ confirmPolicy: { order: 'deny' } });
    await approve(server, one);
    const facts = await factsUntil(t, server, threadId, finished('completed'));
    const [result] = resultsOf(facts);
    assert.equal(result.error, 'policy_changed');
    assert.match(result.content, /no longer allows order/);
    assert.equal(street.ran(one.toolCallId), 0);
    assert.deepEqual(audit(home, threadId, REFUSED).map(({ why }) => why), ['policy_changed']);
  });

  test('allow while it waits: it waits all the same', async () => {
    const { open: [one], threadId } = await waiting(server, 'buy');
    await set({ confirmPolicy: { order: 'allow' } });
    assert.equal((await runOf(server, threadId)).status, 'waiting');
    assert.equal(street.ran(one.toolCallId), 0);
    await approve(server, one);
    await ended(server, threadId);
    assert.equal(street.ran(one.toolCallId), 1);
  });

  test('what was granted for always is denied too', async (t) => {
    await set({ confirmPolicy: { order: 'confirm' } }); // a grant holds for the rule it was made under
    const { open: [one], threadId } = await waiting(server, 'twice');
    const before = street.ran('order');
    await settle(server, one.interactionId, { decision: 'approve', always: { scope: 'thread' } });
    await ended(server, threadId);
    assert.equal(street.ran('order') - before, 2);
    await set({ confirmPolicy: { order: 'deny' } });
    const { seq } = await accepted(server, { threadId, messages: [user('buy')] });
    const facts = await factsUntil(t, server, threadId, finished('completed'), { after: seq });
    assert.deepEqual(resultsOf(facts).map(({ error }) => error), ['policy_denied']);
    assert.equal(street.ran('order') - before, 2);
  });
});

describe('locale', () => {
  test('of the next run', async (t) => {
    for (const [locale, word, question] of [['zh-CN', 'buy', /^要执行 order 吗？/], ['en', '买茶', /^Run order\?/], [null, '买茶', /^要执行 order 吗？/]]) {
      await set({ locale });
      const { open: [one], threadId } = await waiting(server, word);
      assert.match(one.displayText, question);
      await cancel(server, threadId);
    }
    await set({ locale: 'zh-CN' });
    const { open: [one], threadId } = await waiting(server, 'question');
    await settle(server, one.interactionId, { skip: true });
    const facts = await factsUntil(t, server, threadId, finished('completed'));
    assert.equal(resultsOf(facts)[0].content, '用户跳过了这个问题');
    assert.equal((await inbox(server, `?threadId=${threadId}`)).interactions.length, 0);
  });
});

// SPDX-License-Identifier: Apache-2.0
//
// What a conversation used: tokens and their cost on each message, on the run and on the thread, live and in history,
// over pauses and kills. Costs are exact decimal numbers, not sums of rounded ones.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { after, before, describe, test } from 'node:test';

import { execute, rows, waiting } from './asking.mjs';
import { ask, factsUntil, finished, ofType, settle, startPlace, tool } from './people.mjs';
import { accepted, get, history, runOf, user } from './talk.mjs';

const used = (input, output, more) => ({ ...more, usage: { input_tokens: input, output_tokens: output } });
const LINES = [
  { match: '^plain', turns: [used(500, 100, { text: 'Hello.' })] },
  { match: '^tools', turns: [used(10, 1, { calls: [tool('look')] }), used(20, 2, { text: 'Seen.' })] },
  { match: '^asks', turns: [used(7, 0, { calls: [ask('Go on?')] }), used(0, 3, { text: 'Done.' })] },
  { match: '^tenth', turns: [used(1, 0, { text: 'A.' })] },
  { match: '^large', turns: [used(1_000_000_000, 1_000_000_000, { text: 'Much.' })] },
  { turns: [used(0, 0, { text: 'Nothing.' })] },
];
const PRICE = { FERMATA_MODEL_PRICE_INPUT: '0.5', FERMATA_MODEL_PRICE_OUTPUT: '1.5', FERMATA_MODEL_PRICE_CURRENCY: 'EUR' };
const usage = (inputTokens, outputTokens, cost, currency = 'EUR') => ({ inputTokens, outputTokens, cost, currency });
const usageOf = ({ inputTokens, outputTokens, cost, currency }) => ({ inputTokens, outputTokens, cost, currency });

const closing = [];
after(async () => {
  for (const fn of closing) await fn();
});

async function say(t, server, text, threadId) {
  const start = await accepted(server, { ...(threadId ? { threadId } : {}), messages: [user(text)] });
  const facts = await factsUntil(t, server, start.threadId, finished('completed'), { after: start.seq });
  return { threadId: start.threadId, facts };
}

async function threadUsage(server, threadId) {
  const answer = await get(server, `/threads/${threadId}`);
  assert.equal(answer.status, 200, answer.text);
  return answer.json().usage;
}

describe('with a price', () => {
  let place, server;
  before(async () => {
    place = await startPlace({ after: (fn) => closing.unshift(fn) }, LINES, { env: PRICE });
    server = place.home.server;
  });

  test('message, history, run and thread say the same', async (t) => {
    const { threadId, facts } = await say(t, server, 'plain');
    const expected = usage(500, 100, 0.0004);
    assert.deepEqual(usageOf(ofType(facts, 'text.message.end')[0]), expected);
    assert.deepEqual(facts.at(-1).data.usage, expected);
    assert.deepEqual((await history(server, threadId)).messages.at(-1).usage, expected);
    assert.deepEqual((await runOf(server, threadId)).usage, expected);
    assert.deepEqual(await threadUsage(server, threadId), [expected]);
  });

  test('the number on the wire has all its digits and no more', async (t) => {
    const { threadId } = await say(t, server, 'plain');
    const answer = await get(server, `/runs/${threadId}`);
    assert.match(answer.text, /"usage":\{"inputTokens":500,"outputTokens":100,"cost":0\.0004,"currency":"EUR"\}/);
  });

  test('each message its own, the run all of them', async (t) => {
    const { threadId, facts } = await say(t, server, 'tools');
    assert.deepEqual(ofType(facts, 'text.message.end').map(usageOf), [usage(10, 1, 0.0000065), usage(20, 2, 0.000013)]);
    assert.deepEqual(facts.at(-1).data.usage, usage(30, 3, 0.0000195));
    assert.deepEqual((await runOf(server, threadId)).usage, usage(30, 3, 0.0000195));
  });

  test('ten tenths are one: nothing is rounded on the way', async (t) => {
    let threadId;
    for (let i = 0; i < 10; i++) ({ threadId } = await say(t, server, 'tenth', threadId));
    const answer = await get(server, `/threads/${threadId}`);
    assert.match(answer.text, /"usage":\[\{"inputTokens":10,"outputTokens":0,"cost":0\.000005,"currency":"EUR"\}\]/);
  });

  test('the most that a turn can say', async (t) => {
    const { facts } = await say(t, server, 'large');
    assert.deepEqual(facts.at(-1).data.usage, usage(1e9, 1e9, 2000));
  });

  test('nothing used costs nothing', async (t) => {
    const { facts } = await say(t, server, 'x');
    assert.deepEqual(facts.at(-1).data.usage, usage(0, 0, 0));
  });

  test('over a pause and a kill', async (t) => {
    const { open: [question], threadId } = await waiting(server, 'asks');
    assert.deepEqual((await runOf(server, threadId)).usage, usage(7, 0, 0.0000035));
    await place.home.server.kill9();
    place.home.server = null;
    server = await place.home.start();
    assert.deepEqual((await runOf(server, threadId)).usage, usage(7, 0, 0.0000035));
    await settle(server, question.interactionId, { answer: 'yes' });
    const facts = await factsUntil(t, server, threadId, finished('completed'));
    assert.deepEqual(facts.at(-1).data.usage, usage(7, 3, 0.000008));
    assert.deepEqual(await threadUsage(server, threadId), [usage(7, 3, 0.000008)]);
  });

  test('a thread lists each currency by itself, and what had no price as 0 USD', async (t) => {
    const { threadId } = await say(t, server, 'plain');
    const restart = async (env) => { server = await place.home.restart(env); };
    await restart({ FERMATA_MODEL_PRICE_CURRENCY: 'CNY' });
    await say(t, server, 'plain', threadId);
    await restart({ FERMATA_MODEL_PRICE_INPUT: '', FERMATA_MODEL_PRICE_OUTPUT: '' });
    const { facts } = await say(t, server, 'plain', threadId);
    assert.deepEqual(facts.at(-1).data.usage, usage(500, 100, 0, 'USD'));
    await restart({});
    await say(t, server, 'plain', threadId);
    assert.deepEqual(await threadUsage(server, threadId),
      [usage(1000, 200, 0.0008), usage(500, 100, 0.0004, 'CNY'), usage(500, 100, 0, 'USD')]);
  });

  test('a run whose model is exchanged keeps its currency; the message tells the other', async (t) => {
    const { open: [question], threadId } = await waiting(server, 'asks');
    server = await place.home.restart({ FERMATA_MODEL_PRICE_CURRENCY: 'CNY' });
    await settle(server, question.interactionId, { answer: 'yes' });
    const facts = await factsUntil(t, server, threadId, finished('completed'));
    assert.deepEqual(usageOf(ofType(facts, 'text.message.end').at(-1)), usage(0, 3, 0.0000045, 'CNY'));
    assert.deepEqual(facts.at(-1).data.usage, usage(7, 3, 0.0000035));
    server = await place.home.restart({});
  });
});

test('without a price: 0 USD everywhere, and a new thread has used nothing', async (t) => {
  const { home } = await startPlace(t, LINES);
  const { threadId, facts } = await say(t, home.server, 'plain');
  const expected = usage(500, 100, 0, 'USD');
  assert.deepEqual(usageOf(ofType(facts, 'text.message.end')[0]), expected);
  assert.deepEqual(facts.at(-1).data.usage, expected);
  assert.deepEqual((await runOf(home.server, threadId)).usage, expected);
  assert.deepEqual(await threadUsage(home.server, threadId), [expected]);
});

test('a snapshot from before there were costs goes on at 0', async (t) => {
  const { home } = await startPlace(t, LINES, { env: PRICE });
  const { open: [question], threadId } = await waiting(home.server, 'asks');
  await home.stop();
  const [{ bytes }] = rows(home, 'SELECT CAST(snapshot AS TEXT) AS bytes FROM runs WHERE version>0');
  const state = JSON.parse(bytes);
  assert.equal(state.common_state.cost, 3_500_000);
  delete state.common_state.cost;
  delete state.common_state.currency;
  const text = Buffer.from(JSON.stringify(state));
  const hash = createHash('sha256').update(text).digest('hex');
  execute(home, `UPDATE runs SET snapshot=x'${text.toString('hex')}', hash=x'${hash}' WHERE version>0;`);
  await home.start();
  await settle(home.server, question.interactionId, { answer: 'yes' });
  const facts = await factsUntil(t, home.server, threadId, finished('completed'));
  assert.deepEqual(facts.at(-1).data.usage, usage(7, 3, 0.0000045));
});

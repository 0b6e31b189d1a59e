// SPDX-License-Identifier: Apache-2.0
//
// Budgets of a run: rounds, tokens, money, minutes. Each ends it in good order, none counts the time that a person takes, and
// all survive a restart.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { after, before, describe, test } from 'node:test';

import { execute, inbox, rows, until, waiting } from './asking.mjs';
import { approve, ask, askedAbout, factsUntil, finished, ofType, order, resultsOf, settle, startPlace, tool, toolNames } from './people.mjs';
import { accepted, factsOf, history, isEnd, openEvents, runOf, typesOf, user } from './talk.mjs';

const ROUNDS = 3;
const TOKENS = 1000;
const turn = (...calls) => ({ calls });
const look = turn(tool('look'));
const costly = (usage, more) => ({ ...more, usage: { input_tokens: usage, output_tokens: 0 } });
const cheap = (more) => costly(1, more);
const report = { text: 'So far.' };
const PLAN = { steps: [{ content: 'One' }, { content: 'Two' }] };

// What the model does, by the first word of the message; usage is set where tokens are counted.
const LINES = [
  { match: '^under', turns: [look, look, { text: 'In time.' }] },
  { match: '^over', turns: [look, look, look, report] },
  { match: '^endless', turns: [look] }, // also when it is asked for a report
  { match: '^chatty', turns: [look, look, look, { text: 'So far.', calls: [tool('look')] }] },
  { match: '^mute', turns: [look, look, look, { text: 'x', fail: { at: 'start', status: 500 } }] },
  { match: '^没有', turns: [look, look, look, { text: 'x', fail: { at: 'start', status: 400 } }] },
  { match: '^asks', turns: [turn(ask('One?')), turn(order('tea')), turn(ask('Two?')), report] },
  { match: '^wrong', turns: [turn({ name: 'look', args: '{' }), look, turn({ name: 'look', args: '{' }), report] },
  { match: '^plan', turns: [turn(tool('submit_plan', PLAN)), look, { text: 'One is done.' }, look,
    { text: 'x', fail: { at: 'start', status: 400 } }] },
  { match: '^spend', turns: [costly(400, look), costly(700, look), cheap({ text: 'Never said.' })] },
  { match: '^花', turns: [costly(1100, look), cheap({ text: 'Never said.' })] },
  { match: '^exact', turns: [costly(999, look), cheap({ text: 'Just in time.' })] },
  { match: '^dear', turns: [costly(5000, { text: 'A dear answer.' })] },
  { match: '^waits', turns: [costly(600, turn(ask('Go on?'))), costly(600, look), cheap({ text: 'Never said.' })] },
  { match: '^time', turns: [turn(ask('Go on?')), { text: 'There was time.' }] },
  { match: '^slow', turns: [turn(ask('Go on?')), { text: 'This is a long answer that nobody hears to its end.', chunk: 1, gap_ms: 500 }] },
  { turns: [{ text: 'Hello.' }] },
];

const EN = 'The budget of this run is used up.', ZH = '本次运行的预算已用完。';
const lastText = (facts) => ofType(facts, 'text.message.end').at(-1);
const told = (facts) => {
  const { outcome, code } = facts.at(-1).data;
  return [outcome, code];
};

let home, asked, street;
const closing = [];
before(async () => {
  ({ home, asked, street } = await startPlace({ after: (fn) => closing.unshift(fn) }, LINES, { assistant: { max_rounds: ROUNDS } }));
});
after(async () => {
  for (const fn of closing) await fn();
});

// A message and all facts of its run.
async function through(t, text, server = home.server) {
  const { threadId } = await accepted(server, { messages: [user(text)] });
  const stream = await openEvents(t, server, threadId, { query: '?after=0' });
  const events = await stream.until((event) => isEnd(event) && event.data.outcome !== 'interrupted');
  stream.close();
  return { threadId, events, facts: factsOf(events) };
}

describe('rounds', () => {
  test('one fewer than there may be: an answer as any other', async (t) => {
    const { facts } = await through(t, 'under');
    assert.deepEqual(told(facts), ['completed', undefined]);
    assert.equal(resultsOf(facts).length, ROUNDS - 1);
  });

  test('used up: exactly so many, then a report without tools', async (t) => {
    const { facts, threadId } = await through(t, 'over');
    assert.deepEqual(told(facts), ['exhausted', 'budget_exhausted']);
    assert.equal(resultsOf(facts).length, ROUNDS);
    assert.equal(lastText(facts).content, 'So far.');
    assert.deepEqual(typesOf(facts).slice(-5), ['step.finish', 'step.start', 'text.message.end', 'step.finish', 'run.finished']);
    const calls = askedAbout(asked, 'over');
    assert.deepEqual(calls.map((request) => toolNames(request).includes('look')), [true, true, true, false]);
    assert.deepEqual(calls.at(-1).tools, []);
    assert.match(calls.at(-1).system, /Your work: the report/);
    assert.equal((await runOf(home.server, threadId)).status, 'exhausted');
  });

  test('used up by a model that never stops: it is asked once more, and what it calls then is not called', async (t) => {
    const before = street.ran('look');
    const { facts } = await through(t, 'endless');
    assert.deepEqual(told(facts), ['exhausted', 'budget_exhausted']);
    assert.equal(lastText(facts).content, EN);
    assert.equal(street.ran('look') - before, ROUNDS);
    assert.equal(askedAbout(asked, 'endless').length, ROUNDS + 1);
  });

  test('a report with a call beside it: the words count, the call does not', async (t) => {
    const before = street.ran('look');
    const { facts } = await through(t, 'chatty');
    assert.deepEqual([told(facts), lastText(facts).content], [['exhausted', 'budget_exhausted'], 'So far.']);
    assert.equal(street.ran('look') - before, ROUNDS);
    assert.equal(ofType(facts, 'tool.call').length, ROUNDS);
  });

  for (const [word, text] of [['mute', EN], ['没有', ZH]]) {
    test(`${word}: a report that fails is made mechanically`, async (t) => {
      const { facts, events } = await through(t, word);
      assert.deepEqual([told(facts), lastText(facts).content], [['exhausted', 'budget_exhausted'], text]);
      assert.ok(events.some(({ type, data }) => type === 'text.delta' && data.delta === text), 'in deltas too');
    });
  }

  test('corrections are rounds', async (t) => {
    const { facts } = await through(t, 'wrong');
    assert.deepEqual(told(facts), ['exhausted', 'budget_exhausted']);
    assert.equal(resultsOf(facts).length, ROUNDS);
  });

  test('a step of a plan that was under way is what its calls say', async (t) => {
    const { open: [card], threadId } = await waiting(home.server, 'plan');
    await approve(home.server, card);
    const facts = await factsUntil(t, home.server, threadId, finished('exhausted'));
    assert.equal(lastText(facts).content, `${EN}\n- [x] One\n- [x] Two`);
    assert.deepEqual(told(facts), ['exhausted', 'budget_exhausted']);
  });

  test('are counted over pauses and kills', async (t) => {
    const place = await startPlace(t, LINES, { assistant: { max_rounds: ROUNDS } });
    const { threadId } = await accepted(place.home.server, { messages: [user('asks')] });
    for (let i = 0; i < ROUNDS; i++) {
      await until(place.home.server, threadId, 'waiting');
      await place.home.server.kill9();
      place.home.server = null;
      await place.home.start();
      const [open] = (await inbox(place.home.server)).interactions;
      await settle(place.home.server, open.interactionId, open.type === 'confirm' ? { decision: 'approve' } : { answer: 'yes' });
    }
    const facts = await factsUntil(t, place.home.server, threadId, finished('exhausted'));
    assert.deepEqual([told(facts), lastText(facts).content], [['exhausted', 'budget_exhausted'], 'So far.']);
    assert.equal(place.street.ran('order'), 1);
  });

  test('the next run has its own', async (t) => {
    const { threadId } = await through(t, 'over');
    const start = await accepted(home.server, { threadId, messages: [user('under')] });
    const facts = await factsUntil(t, home.server, threadId, finished('completed'), { after: start.seq });
    assert.equal(resultsOf(facts).length, 2);
  });
});

describe('tokens', () => {
  let place;
  before(async () => {
    place = await startPlace({ after: (fn) => closing.unshift(fn) }, LINES, { assistant: { budget: { tokens: TOKENS } } });
  });

  for (const [word, text, turns] of [['spend', EN, 2], ['花', ZH, 1]]) {
    test(`${word}: used up, the mechanical text follows, and the model is not asked again`, async (t) => {
      const { facts, threadId } = await through(t, word, place.home.server);
      assert.deepEqual([told(facts), lastText(facts).content], [['exhausted', 'budget_exhausted'], text]);
      assert.equal(askedAbout(place.asked, word).length, turns);
      assert.equal(resultsOf(facts).length, turns, 'what was called has its result');
      assert.ok(facts.at(-1).data.usage.inputTokens >= TOKENS);
      assert.equal((await history(place.home.server, threadId)).messages.at(-1).content, text);
    });
  }

  test('one left is enough for one more', async (t) => {
    const { facts } = await through(t, 'exact', place.home.server);
    assert.deepEqual([told(facts), lastText(facts).content], [['completed', undefined], 'Just in time.']);
  });

  test('an answer that is whole is kept, whatever it cost', async (t) => {
    const { facts } = await through(t, 'dear', place.home.server);
    assert.deepEqual([told(facts), lastText(facts).content], [['completed', undefined], 'A dear answer.']);
  });

  test('are counted over a pause and a kill', async (t) => {
    const { open: [question], threadId } = await waiting(place.home.server, 'waits');
    await place.home.server.kill9();
    place.home.server = null;
    await place.home.start();
    await settle(place.home.server, question.interactionId, { answer: 'yes' });
    const facts = await factsUntil(t, place.home.server, threadId, finished('exhausted'));
    assert.deepEqual([told(facts), facts.at(-1).data.usage.inputTokens], [['exhausted', 'budget_exhausted'], 1200]);
  });
});

// The same money: a token in costs 0.001 USD, and a run may cost 1.
describe('cost', () => {
  const PRICE = { FERMATA_MODEL_PRICE_INPUT: '1000', FERMATA_MODEL_PRICE_OUTPUT: '0' };
  let place;
  before(async () => {
    place = await startPlace({ after: (fn) => closing.unshift(fn) }, LINES, { assistant: { budget: { cost: 1 } }, env: PRICE });
  });

  for (const [word, text, turns, cost] of [['spend', EN, 2, 1.1], ['花', ZH, 1, 1.1]]) {
    test(`${word}: used up, the mechanical text follows, and the model is not asked again`, async (t) => {
      const { facts, threadId } = await through(t, word, place.home.server);
      assert.deepEqual([told(facts), lastText(facts).content], [['exhausted', 'budget_exhausted'], text]);
      assert.equal(askedAbout(place.asked, word).length, turns);
      assert.equal(resultsOf(facts).length, turns, 'what was called has its result');
      assert.deepEqual([facts.at(-1).data.usage.cost, facts.at(-1).data.usage.currency], [cost, 'USD']);
      assert.equal((await history(place.home.server, threadId)).messages.at(-1).content, text);
      assert.equal((await runOf(place.home.server, threadId)).status, 'exhausted');
    });
  }

  test('a token short of it is enough for one more', async (t) => {
    const { facts } = await through(t, 'exact', place.home.server);
    assert.deepEqual([told(facts), lastText(facts).content], [['completed', undefined], 'Just in time.']);
    assert.equal(facts.at(-1).data.usage.cost, 1);
  });

  test('is counted over a pause and a kill', async (t) => {
    const { open: [question], threadId } = await waiting(place.home.server, 'waits');
    await place.home.server.kill9();
    place.home.server = null;
    await place.home.start();
    await settle(place.home.server, question.interactionId, { answer: 'yes' });
    const facts = await factsUntil(t, place.home.server, threadId, finished('exhausted'));
    assert.deepEqual([told(facts), facts.at(-1).data.usage.cost], [['exhausted', 'budget_exhausted'], 1.2]);
  });

  test('the next run has its own', async (t) => {
    const { threadId } = await through(t, 'spend', place.home.server);
    const start = await accepted(place.home.server, { threadId, messages: [user('exact')] });
    const facts = await factsUntil(t, place.home.server, threadId, finished('completed'), { after: start.seq });
    assert.equal(facts.at(-1).data.usage.cost, 1);
  });
});

// A minute is the smallest budget of time. So that nobody waits for it, what a run has used of it is written into its
// snapshot while the server is stopped.
describe('minutes', () => {
  const MINUTE_MS = 60_000;
  let place;
  before(async () => {
    place = await startPlace({ after: (fn) => closing.unshift(fn) }, LINES, { assistant: { budget: { minutes: 1 } } });
  });

  async function rewrite(threadId, change) {
    await place.home.stop();
    const which = `id=(SELECT r.id FROM runs r JOIN threads t ON t.id=r.thread WHERE t.thread_id='${threadId}')`;
    const [{ bytes }] = rows(place.home, `SELECT CAST(snapshot AS TEXT) AS bytes FROM runs WHERE ${which}`);
    const state = JSON.parse(bytes);
    assert.ok(Number.isInteger(state.common_state.active_ms) && state.common_state.active_ms < MINUTE_MS);
    change(state.common_state);
    const text = Buffer.from(JSON.stringify(state)), hash = createHash('sha256').update(text).digest('hex');
    execute(place.home, `UPDATE runs SET snapshot=x'${text.toString('hex')}', hash=x'${hash}' WHERE ${which};`);
    await place.home.start();
  }

  async function answered(t, word, change, outcome) {
    const { open: [question], threadId } = await waiting(place.home.server, word);
    await rewrite(threadId, change);
    const { seq } = await history(place.home.server, threadId);
    const stream = await openEvents(t, place.home.server, threadId, { query: `?after=${seq}` });
    await settle(place.home.server, question.interactionId, { answer: 'yes' });
    const events = await stream.until(isEnd);
    assert.equal(events.at(-1).data.outcome, outcome);
    return { events, facts: factsOf(events) };
  }

  test('used up: the mechanical text, and the model is not asked', async (t) => {
    const { facts } = await answered(t, 'time', (state) => { state.active_ms = MINUTE_MS; }, 'exhausted');
    assert.deepEqual([told(facts), lastText(facts).content], [['exhausted', 'budget_exhausted'], EN]);
    assert.equal(askedAbout(place.asked, 'time').length, 1);
  });

  test('the hours that a person took do not count', async (t) => {
    const { facts } = await answered(t, 'time', (state) => { state.leg_since -= 5 * 60 * MINUTE_MS; }, 'completed');
    assert.equal(lastText(facts).content, 'There was time.');
  });

  test('over while the model speaks: its words are taken back', async (t) => {
    const { events, facts } = await answered(t, 'slow', (state) => { state.active_ms = MINUTE_MS - 4000; }, 'exhausted');
    assert.deepEqual([told(facts), lastText(facts).content], [['exhausted', 'budget_exhausted'], EN]);
    const discarded = events.filter(({ type }) => type === 'message.discard');
    assert.equal(discarded.length, 1);
    assert.notEqual(discarded[0].data.messageId, lastText(facts).messageId);
    assert.equal(ofType(facts, 'text.message.end').length, 1, 'nothing is kept of them');
  });
});

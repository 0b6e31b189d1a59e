// SPDX-License-Identifier: Apache-2.0
//
// Runs whose model breaks off, and runs whose server does. However often and wherever that is, the conversation gets
// one whole answer, or one error that says why.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';

import { accepted, answer, factsOf, history, isEnd, openEvents, runOf, startTalk, talk, typesOf, user, waitFor } from './talk.mjs';

const TEXT = 'Grüße, 你好 👋.';
const TEXT_BYTES = Buffer.byteLength(TEXT);
const LONG = 'The quick brown fox jumps over the lazy dog, and back again. '.repeat(2);
const COMPLETED = ['message.added', 'run.started', 'step.start', 'step.finish', 'step.start', 'text.message.end', 'step.finish', 'run.finished'];
const FAILED = ['message.added', 'run.started', 'step.start', 'step.finish', 'run.error'];

// The delay lets the reader, who comes before the thread does, be there for the first word.
const failing = (match, fail, more = {}) => ({ match: `^${match}$`, turns: [{ text: TEXT, chunk: 1, delay_ms: 1000, fail, ...more }] });

const SCRIPT = [
  failing('lost before', { at: 'start', times: 1 }),
  failing('503 before', { at: 'start', status: 503, times: 1 }),
  failing('429 before', { at: 'start', status: 429, times: 1 }),
  failing('lost after', { at: 5, times: 1 }),
  failing('lost twice', { at: 5, times: 2 }),
  failing('500 after', { at: 5, status: 500, times: 1 }),
  failing('gone', { at: 'start' }),
  failing('gone after', { at: 5 }),
  failing('400 before', { at: 'start', status: 400, times: 1 }),
  failing('401 after', { at: 5, status: 401, times: 1 }),
  failing('lost in thought', { at: 0, times: 1 }, { reasoning: 'Let me see.' }),
  { match: '^calls$', turns: [{ text: 'I will look.', delay_ms: 300, calls: [{ name: 'forecast', args: {} }] }, { text: TEXT }] },
  ...Array.from({ length: TEXT_BYTES + 1 }, (_, at) => failing(`cut at ${at}`, { at, times: 1 })),
  { match: '^long', turns: [{ text: LONG, chunk: 1, gap_ms: 30 }] },
  { match: '^plain', turns: [{ text: TEXT }] },
];

// Follows the thread from before it exists, so that every preview of the run is seen.
async function follow(t, server, threadId, content) {
  const events = await openEvents(t, server, threadId);
  await accepted(server, { threadId, runId: 'r1', messages: [user(content, 'u1')] });
  const all = await events.until(isEnd);
  events.close();
  return all;
}

const started = (events) => events.filter(({ type }) => type === 'text.message.start').map(({ data }) => data.messageId);
const discarded = (events) => events.filter(({ type }) => type === 'message.discard').map(({ data }) => data.messageId);
const answerOf = (events) => events.find(({ type }) => type === 'text.message.end')?.data;

async function assertOneAnswer(server, threadId, text) {
  const { messages } = await history(server, threadId);
  assert.deepEqual(messages.filter(({ role }) => role === 'assistant').map(({ content }) => content), [text]);
}

describe('a model that breaks off', { concurrency: true }, () => {
  let home, server, cleanUp;
  before(async () => {
    home = await startTalk({ after: (fn) => { cleanUp = fn; } }, SCRIPT);
    server = home.server;
  });
  after(() => cleanUp?.());

  for (const content of ['lost before', '503 before', '429 before']) {
    test(`${content} the first byte: tried again, and nobody sees it`, async (t) => {
      const events = await follow(t, server, content.replaceAll(' ', '-'), content);
      assert.deepEqual(typesOf(factsOf(events)), COMPLETED);
      assert.deepEqual([started(events).length, discarded(events).length], [1, 0]);
      await assertOneAnswer(server, content.replaceAll(' ', '-'), TEXT);
    });
  }

  for (const [content, times] of [['lost after', 1], ['500 after', 1], ['lost twice', 2]]) {
    test(`${content} the first byte: discarded, and said again under another id`, async (t) => {
      const threadId = content.replaceAll(' ', '-');
      const events = await follow(t, server, threadId, content);
      assert.deepEqual(typesOf(factsOf(events)), COMPLETED);
      const ids = started(events);
      assert.equal(new Set(ids).size, times + 1);
      assert.deepEqual(discarded(events), ids.slice(0, times));
      assert.equal(answerOf(events).messageId, ids[times]);
      for (const id of ids.slice(0, times)) assert.ok(!JSON.stringify(factsOf(events)).includes(id), 'no fact of it');
      await assertOneAnswer(server, threadId, TEXT);
    });
  }

  test('lost in thought: the reasoning is discarded too', async (t) => {
    const events = await follow(t, server, 'thought', 'lost in thought');
    assert.equal(discarded(events).length, 1);
    assert.deepEqual(events.filter(({ type }) => type === 'reasoning.end').map(({ data }) => data.content), ['Let me see.']);
    assert.equal(answerOf(events).content, TEXT);
  });

  for (const [content, times] of [['gone', 0], ['gone after', 3]]) {
    for (const decision of ['give_up', 'continue']) {
      test(`${content}: waits as connection_lost; ${decision}`, async (t) => {
        const threadId = `${content.replaceAll(' ', '-')}-${decision}`;
        const events = await follow(t, server, threadId, content);
        const facts = factsOf(events);
        assert.deepEqual(typesOf(facts), ['message.added', 'run.started', 'step.start', 'interaction.request', 'run.finished']);
        assert.equal(discarded(events).length, times);
        assert.equal(facts.at(-2).data.type, 'connection_lost');
        const settled = await answer(server, facts.at(-2).data.interactionId, { decision });
        assert.equal(settled.status, 'resolved');
        const run = await waitFor('the run to come to rest', async () => {
          const now = await runOf(server, threadId);
          return now.status !== 'running' && now;
        });
        // Whoever gives up ends it; whoever continues waits again, for the model stays away.
        assert.equal(run.status, decision === 'give_up' ? 'failed' : 'waiting');
        assert.equal(run.interactions.length, decision === 'give_up' ? 0 : 1);
      });
    }
  }

  test('a tool that is not there: the model is told, and goes on', async (t) => {
    const events = await follow(t, server, 'calls', 'calls');
    const result = factsOf(events).find(({ type }) => type === 'tool.call.result');
    assert.deepEqual([result.data.toolName, result.data.error], ['forecast', 'tool_unavailable']);
    assert.equal(factsOf(events).at(-1).data.outcome, 'completed');
  });

  const errors = [
    ['400 before', 'model_error', false, 0],
    ['401 after', 'model_error', false, 1],
    ['nothing matches this', 'model_error', false, 0],
  ];
  for (const [content, code, retryable, shown] of errors) {
    test(`${content}: ${code}`, async (t) => {
      const threadId = content.replaceAll(' ', '_');
      const events = await follow(t, server, threadId, content);
      const facts = factsOf(events);
      assert.deepEqual(typesOf(facts), FAILED);
      const { data } = facts.at(-1);
      assert.deepEqual(Object.keys(data), ['code', 'message', 'retryable']);
      assert.deepEqual([data.code, data.retryable], [code, retryable]);
      assert.ok(data.message.length > 5);
      assert.equal(started(events).length, shown);
      assert.deepEqual(discarded(events), started(events));
      assert.deepEqual((await history(server, threadId)).messages.map(({ role }) => role), ['user']);
      const run = await runOf(server, threadId);
      assert.deepEqual([run.status, run.phase], ['failed', undefined]);
      const next = await talk(t, server, { threadId, messages: [user('plain')] });
      assert.equal(next.facts.at(-1).data.outcome, 'completed', 'the thread lives on');
    });
  }

  test('cut at every byte: one whole answer each', async (t) => {
    const cuts = Array.from({ length: TEXT_BYTES + 1 }, (_, at) => at);
    await Promise.all(cuts.map(async (at) => {
      const events = await follow(t, server, `cut-${at}`, `cut at ${at}`);
      assert.deepEqual(typesOf(factsOf(events)), COMPLETED, `cut at ${at}`);
      assert.equal(answerOf(events).content, TEXT);
      const ids = started(events);
      assert.deepEqual(discarded(events), ids.slice(0, -1));
      assert.equal(ids.at(-1), answerOf(events).messageId);
      assert.equal(ids.length, at >= Buffer.byteLength(TEXT[0]) ? 2 : 1, `cut at ${at}`);
      await assertOneAnswer(server, `cut-${at}`, TEXT);
    }));
  });
});

// One line for each run that failed: which one, whose, and why. Nothing that people or the model said.
describe('the log', () => {
  const lines = (server, event) => server.stderr().split('\n').filter((line) => line.includes(` ${event} `));
  const told = (server, event, threadId) => waitFor(`${event} of ${threadId}`, () => {
    const found = lines(server, event).filter((line) => line.includes(` thread=${threadId} `));
    return found.length && found;
  });
  const bad = { calls: [{ name: 'calendar_read', args: '{"secret words' }] };

  test('of failed runs: once each, with thread, run, agent, code and cause', async (t) => {
    const home = await startTalk(t, [...SCRIPT, { match: '^bad', turns: [bad] }]);
    const { server } = home;
    await follow(t, server, 'refused', '400 before');
    assert.match((await told(server, 'run.failed', 'refused'))[0], /^\S+ error run\.failed thread=refused run=r1 agent=assistant code=model_error cause="?[^"]{5,}/);

    const lost = factsOf(await follow(t, server, 'lost', 'gone'));
    await answer(server, lost.at(-2).data.interactionId, { decision: 'give_up' });
    assert.match((await told(server, 'run.failed', 'lost'))[0], / run=r1 agent=assistant code=model_unavailable cause=/);

    await follow(t, server, 'wrong', 'bad secret message');
    const [aborted] = await told(server, 'run.failed', 'wrong');
    assert.match(aborted, / code=aborted /);

    await follow(t, server, 'fine', 'plain');
    for (const threadId of ['refused', 'lost', 'wrong']) assert.equal((await told(server, 'run.failed', threadId)).length, 1);
    assert.equal(lines(server, 'run.failed').length, 3);
    assert.doesNotMatch(server.stderr(), /secret/, 'nothing of the conversation');
  });

  test('of a run that used up its rounds', async (t) => {
    const home = await startTalk(t, [{ turns: [{ calls: [{ name: 'calendar_read', args: {} }] }] }], { FERMATA_AGENTS_ASSISTANT_MAX_ROUNDS: '1' });
    await accepted(home.server, { threadId: 'endless', runId: 'r1', messages: [user('go')] });
    assert.match((await told(home.server, 'run.exhausted', 'endless'))[0], / warn {1,2}run\.exhausted thread=endless run=r1 agent=assistant code=budget_exhausted$/);
    assert.equal(lines(home.server, 'run.failed').length, 0);
  });
});

describe('a server that breaks off', { concurrency: 2 }, () => {
  async function begin(t, runs = ['r1']) {
    const home = await startTalk(t, SCRIPT);
    const events = await openEvents(t, home.server, 't1');
    for (const runId of runs) await accepted(home.server, { threadId: 't1', runId, messages: [user('long', `u-${runId}`)] });
    const seen = await events.until(({ type, data }) => type === 'text.delta' && data.offset >= 10);
    return { home, events, first: started(seen)[0], seen };
  }

  async function kill(home) {
    const { server } = home;
    home.server = null;
    await server.kill9();
  }

  // The rest of the run, read from where the first reader was cut off.
  async function assertGoesOn(t, server, { first, seen }) {
    const lastSeq = factsOf(seen).at(-1).seq;
    const events = await openEvents(t, server, 't1', { headers: { 'last-event-id': String(lastSeq) } });
    const rest = await events.until(isEnd);
    assert.deepEqual(typesOf([...factsOf(seen), ...factsOf(rest)]), COMPLETED);
    const { messageId, content } = answerOf(rest);
    assert.equal(content, LONG);
    assert.notEqual(messageId, first, 'another attempt, another id');
    assert.ok(!started(rest).includes(first));
    await assertOneAnswer(server, 't1', LONG);
    const again = await openEvents(t, server, 't1', { query: '?after=0' });
    assert.deepEqual(await again.run(), [...factsOf(seen), ...factsOf(rest)], 'what was seen is what is stored');
  }

  test('kill -9 amid an answer: it is given again, whole', async (t) => {
    const begun = await begin(t);
    await kill(begun.home);
    assert.equal(await begun.events.over(), 'cut');
    await assertGoesOn(t, await begun.home.start(), begun);
  });

  test('SIGTERM amid an answer: the stream ends in good order, and the answer is given later', async (t) => {
    const begun = await begin(t);
    await begun.home.stop();
    assert.equal(await begun.events.over(), 'end');
    assert.ok(!begun.events.all.some(isEnd), 'the run has not ended');
    await assertGoesOn(t, await begun.home.start(), begun);
  });

  test('kill -9 again and again', async (t) => {
    const begun = await begin(t);
    for (let i = 0; i < 3; i++) {
      await kill(begun.home);
      const events = await openEvents(t, await begun.home.start(), 't1');
      const seen = await events.until(({ type, data }) => type === 'text.delta' && data.offset >= 5);
      assert.notEqual(started(seen)[0], begun.first);
    }
    await kill(begun.home);
    await assertGoesOn(t, await begun.home.start(), begun);
  });

  test('kill -9 with a queue: everything in its turn', async (t) => {
    const { home } = await begin(t, ['r1', 'r2', 'r3']);
    await kill(home);
    await home.start();
    const events = await openEvents(t, home.server, 't1', { query: '?after=0' });
    for (const runId of ['r1', 'r2', 'r3']) await events.run(runId);
    const { facts } = events;
    assert.deepEqual(facts.filter(({ type }) => type === 'run.started').map(({ runId }) => runId), ['r1', 'r2', 'r3']);
    assert.deepEqual(facts.filter(isEnd).map(({ runId, data }) => [runId, data.outcome]),
      [['r1', 'completed'], ['r2', 'completed'], ['r3', 'completed']]);
    const { messages } = await history(home.server, 't1');
    assert.deepEqual(messages.map(({ content }) => content), ['long', LONG, 'long', LONG, 'long', LONG]);
  });

  test('a run goes on although nobody watches', async (t) => {
    const home = await startTalk(t, SCRIPT);
    await accepted(home.server, { threadId: 't1', messages: [user('long')] });
    await kill(home);
    await home.start();
    await waitFor('the end', async () => (await runOf(home.server, 't1')).status === 'completed');
    await assertOneAnswer(home.server, 't1', LONG);
  });
});

// SPDX-License-Identifier: Apache-2.0
//
// The reducer: live equals history, whatever happens between. Conversations of every kind are recorded once from a
// server, with the history as it was after each fact. Then each log is folded again with every possible cut, as a
// server answers after one (docs/EVENTS.md): the same state at every later event. And from each recorded history on:
// the same state, too.
//
// To add a kind: a row in KINDS, its turns in kit.mjs.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';

import { chance, seed } from '../fault/chance.mjs';
import { applyCard, applyEvent, applyHistory, applyOlder, approve, emptyState, isOver, start, take } from './kit.mjs';

const TOOLS = [{ name: 'paint', description: 'Paints the page', parameters: { type: 'object', properties: { colour: { type: 'string' } } } }];

const answer = (how) => async (client, { type, data }) => {
  if (type === 'interaction.request') await client.answer(data.interactionId, how(data));
};
const either = answer((data) => (data.type === 'ask_user' ? { answer: 'Forty minutes' } : approve(data)));

// Does something at the n-th preview of a text, once.
const inTheMiddle = (what) => {
  let deltas = 0;
  return async (client, event) => {
    if (event.type === 'text.delta' && ++deltas === 4) await what(client, event);
  };
};

// What is said, and what a person does about what comes.
const KINDS = {
  'a plain answer': ['hello'],
  'reasoning': ['think'],
  'a choice': ['ask', answer(() => ({ choices: ['c2'] }))],
  'a skipped question': ['ask', answer(() => ({ skip: true }))],
  'a question answered by a message': ['ask', async (client, { type, threadId }) => { if (type === 'interaction.request') await client.run({ threadId, text: '1 hour' }); }],
  'a question that is cancelled': ['ask', async (client, { type, data }) => { if (type === 'interaction.request') await client.cancelInteraction(data.interactionId); }],
  'an approval': ['book', answer(approve)],
  'a rejection': ['book', answer(() => ({ decision: 'reject', comment: 'Not now' }))],
  'an edit': ['book', answer(({ binding, pendingTool }) => ({ decision: 'edit', args: { ...JSON.parse(pendingTool.argsJson), title: 'Changed' }, binding }))],
  'a run cancelled while it waits': ['book', async (client, { type, threadId }) => { if (type === 'interaction.request') await client.cancel(threadId); }],
  'a question, then an approval': ['meeting', either],
  'everything at once': ['both', either],
  'reads': ['look'],
  'a card': ['card'],
  'a wide card': ['wide'],
  'malformed arguments': ['bad'],
  'a second attempt': ['flaky'],
  'a failure': ['fail'],
  'a plan': ['plan', either],
  'a front-end call': [{ text: 'paint', tools: TOOLS }, async (client, { type, data, threadId }) => {
    if (type !== 'run.finished' || !data.pendingToolCallIds) return;
    await client.run({ threadId, tools: TOOLS, messages: [{ role: 'tool', toolCallId: data.pendingToolCallIds[0], content: 'painted' }] });
  }],
  'a stop in the middle': ['patient', inTheMiddle((client, { threadId }) => client.cancel(threadId))],
  'a queue of which one is dropped': ['patient', inTheMiddle(async (client, { threadId }) => {
    for (const text_ of ['think', 'book', 'hello']) await client.run({ threadId, text: text_ });
    const { queue } = await client.current(threadId);
    await client.dropQueued(threadId, queue[1].n);
  }), 4],
};

const isFact = ({ seq, type }) => seq !== undefined && type !== 'reset';
const OPEN = (threadId) => ({ type: 'connection.open', threadId });
// However it began, and without what grows: of that a history knows nothing.
const plain = (state) => ({ ...state, loaded: 0, previews: [] });

// ---- recording ----

// {log, pages, cards, states}: events as they came, history after each fact, cards that events only name.
async function record(client, threadId, words, act, runs = 1) {
  const control = new AbortController();
  const log = [], pages = new Map(), acts = [];
  let left = runs;
  try {
    await client.run({ threadId, ...(typeof words === 'string' ? { text: words } : words) });
    await take(client.events(threadId, { after: 0, signal: control.signal }), async (event) => {
      log.push(event);
      acts.push(act?.(client, event));
      if (isFact(event)) {
        const page = await client.history(threadId);
        pages.set(page.seq, page);
      }
      return isOver(event) && --left === 0;
    });
    await Promise.all(acts);
  } finally {
    control.abort();
  }
  const last = await client.history(threadId);
  pages.set(last.seq, last);
  const cards = new Map();
  for (const { id, uiSchema } of last.messages) if (uiSchema) cards.set(id, uiSchema);
  return { threadId, log, pages, cards, last };
}

// The state after each event, with cards read at once.
const step = ({ cards }, state, event) => {
  let next = applyEvent(state, event);
  if (isFact(event)) for (const { id, uiRef } of next.messages) if (uiRef) next = applyCard(next, id, cards.get(id));
  return next;
};
function fold(recorded, events, from = emptyState(recorded.threadId)) {
  const states = [];
  let state = from;
  for (const event of events) states.push(state = step(recorded, state, event));
  return states;
}

// ---- what a server sends after a cut ----

// What previews grow, and what ends it.
const text = ({ messageId }) => `text ${messageId}`;
const thought = ({ messageId }) => `thought ${messageId}`;
const written = ({ toolCallId }) => `call ${toolCallId}`;
const STARTS = { 'text.message.start': text, 'tool.call.start': written };
const GROWS = { 'text.delta': text, 'reasoning.delta': thought, 'tool.call.args': written };
const ENDS = { 'text.message.end': text, 'reasoning.end': thought, 'tool.call': written };

// What is growing after the first `count` events of a log: its start, and one delta with everything so far.
function growing(log, count) {
  const open = new Map(); // -> {messageId, start?, delta?}
  for (const event of log.slice(0, count)) {
    const { type, data } = event;
    if (STARTS[type]) open.set(STARTS[type](data), { messageId: data.messageId ?? data.parentMessageId, start: event });
    if (GROWS[type]) {
      const grown = open.get(GROWS[type](data)) ?? { messageId: data.messageId };
      grown.delta = grown.delta ? { ...grown.delta, data: { ...grown.delta.data, delta: grown.delta.data.delta + data.delta } } : event;
      open.set(GROWS[type](data), grown);
    }
    if (ENDS[type]) open.delete(ENDS[type](data));
    if (type === 'message.discard' || data?.stopped) for (const [key, { messageId }] of open) if (messageId === data.messageId) open.delete(key);
    if (isFact(event) && type.startsWith('run.') && type !== 'run.queued') open.clear();
  }
  return [...open.values()].flatMap(({ start: first, delta }) => [first, delta].filter(Boolean));
}

// ---- the tests ----

const closing = [];
const recordings = new Map();

before(async () => {
  const { client } = await start({ after: (fn) => closing.unshift(fn) });
  const all = Object.entries(KINDS).map(async ([kind, what], n) => {
    recordings.set(kind, await record(client(), `t${n}`, ...what));
  });
  await Promise.all(all);
});
after(async () => {
  for (const fn of closing) await fn();
});

for (const kind of Object.keys(KINDS)) {
  describe(kind, () => {
    let r, states, final;
    before(() => {
      r = recordings.get(kind);
      states = fold(r, r.log);
      final = states.at(-1);
    });

    test('live is history', () => {
      const { messages, interactions, seq, stale } = applyHistory(emptyState(r.threadId), r.last);
      assert.deepEqual(final.messages, messages);
      assert.deepEqual(final.interactions, interactions);
      assert.deepEqual([final.seq, final.stale, final.queue.length], [r.last.seq, false, 0]);
      assert.equal(seq, 0, 'a stream without a cursor tells the rest');
      assert.equal(stale, false);
    });

    test('any cut gives the same state, then and at every later event', () => {
      for (let cut = 1; cut < r.log.length; cut++) {
        const back = [OPEN(r.threadId), ...growing(r.log, cut)];
        const [resumed] = fold(r, back, states[cut - 1]).slice(-1);
        assert.deepEqual(resumed, states[cut - 1], `right after a cut behind event ${cut} (seed ${seed})`);
        assert.deepEqual(fold(r, r.log.slice(cut), resumed).at(-1), final, `at the end, after a cut behind event ${cut}`);
      }
    });

    test('many cuts, and facts sent again', () => {
      const next = chance(r.log.length);
      for (let round = 0; round < 20; round++) {
        let state = emptyState(r.threadId);
        r.log.forEach((event, n) => {
          state = step(r, state, event);
          if (next(3) === 0) state = [OPEN(r.threadId), ...growing(r.log, n + 1)].reduce((old, e) => step(r, old, e), state);
          if (next(3) === 0) state = r.log.slice(0, n + 1).filter(isFact).reduce((old, e) => step(r, old, e), state);
          assert.deepEqual(state, states[n], `event ${n + 1} of round ${round} (seed ${seed})`);
        });
      }
    });

    test('any history, and the stream behind it, gives the same state', () => {
      for (const [seq, page] of r.pages) {
        const from = startOfNewest(r.log, seq);
        if (from < 0) continue;
        let state = applyEvent(applyHistory(emptyState(r.threadId), page), OPEN(r.threadId));
        const before = state;
        r.log.slice(from).forEach((event, n) => {
          state = step(r, state, event);
          if (isFact(event) && event.seq < seq) assert.equal(state.messages, before.messages, 'messages are known');
          if (isFact(event) && event.seq >= seq) assert.deepEqual(plain(state), plain(states[from + n]), `history of ${seq}, fact ${event.seq}`);
        });
        assert.deepEqual(plain(state), plain(final), `history of ${seq}`);
      }
    });

    test('the old state stays as it was', () => {
      const frozen = (value) => {
        if (value && typeof value === 'object' && !Object.isFrozen(value)) Object.values(Object.freeze(value)).forEach(frozen);
        return value;
      };
      let state = frozen(emptyState(r.threadId));
      for (const event of r.log) state = frozen(step(r, state, frozen(structuredClone(event))));
      assert.deepEqual(state, final);
    });
  });
}

// Where a stream without a cursor begins, when `seq` is the newest fact: at the message of the newest run that has started.
function startOfNewest(log, seq) {
  const run = log.findLast((event) => event.type === 'run.started' && event.seq <= seq);
  return run ? log.findIndex((event) => isFact(event) && event.runId === run.runId) : -1;
}

// ---- a table of single events ----

const base = { threadId: 't', runId: 'r', ts: '2026-11-15T00:00:00.000Z' };
const fact = (seq, type, data) => ({ ...base, type, seq, data });
const preview = (type, data) => ({ ...base, type, data });
const started = [fact(1, 'message.added', { message: { id: 'u', role: 'user', content: 'Hi', metadata: {}, createdAt: base.ts } }),
  fact(2, 'run.started', { taskId: 'task', leg: 1, resumed: false, agent: 'a', model: 'm' }), fact(3, 'step.start', { stepName: 'intent', index: 0, total: 3 })];
const said = (id, text) => [preview('text.message.start', { messageId: id, role: 'assistant' }), preview('text.delta', { messageId: id, delta: text, offset: 0 })];
const contents = ({ messages, previews }) => [...messages.map(({ content }) => content), ...previews.map(({ content }) => `${content}...`)];

const TABLE = [
  ['a start begins anew', [...said('m', 'Hello'), ...said('m', 'Hey')], (s) => assert.deepEqual(contents(s), ['Hi', 'Hey...'])],
  ['an offset repairs', [...said('m', 'Hello'), preview('text.delta', { messageId: 'm', delta: 'p!', offset: 3 })], (s) => assert.deepEqual(contents(s), ['Hi', 'Help!...'])],
  ['a delta whose beginning was missed is passed over', [preview('text.delta', { messageId: 'm', delta: 'x', offset: 4 })], (s) => assert.deepEqual(contents(s), ['Hi'])],
  ['a discard takes back text, thoughts and calls', [preview('reasoning.delta', { messageId: 'm', delta: 'Hm', offset: 0 }), ...said('m', 'He'),
    preview('tool.call.start', { toolCallId: 'c', toolName: 'x', parentMessageId: 'm', stage: 'intent' }), preview('message.discard', { messageId: 'm', reason: 'cut' })],
  (s) => assert.deepEqual(contents(s), ['Hi'])],
  ['thoughts and text grow side by side', [preview('reasoning.delta', { messageId: 'm', delta: 'H', offset: 0 }), ...said('m', 'He'), preview('reasoning.delta', { messageId: 'm', delta: 'm', offset: 1 })],
    (s) => assert.deepEqual([contents(s), s.previews.map(({ id, role }) => [id, role])], [['Hi', 'Hm...', 'He...'], [['m-reasoning', 'reasoning'], ['m', 'assistant']]])],
  ['a result that comes while a text grows stands before it', [...said('m', 'He'), fact(4, 'tool.call.result', { messageId: 'x', toolCallId: 'c', callId: 'c', toolName: 'n', args: {}, content: 'res', toolAgentOutput: {} })],
    (s) => assert.deepEqual(contents(s), ['Hi', 'res', 'He...'])],
  ['a call grows', [preview('tool.call.start', { toolCallId: 'c', toolName: 'n', parentMessageId: 'm', stage: 'intent' }), preview('tool.call.args', { toolCallId: 'c', delta: '{"a"' }), preview('tool.call.args', { toolCallId: 'c', delta: ':1}' })],
    (s) => assert.deepEqual(s.previews.at(-1).toolCalls, [{ id: 'c', type: 'function', function: { name: 'n', arguments: '{"a":1}' } }])],
  ['progress is shown until the result', [preview('tool.progress', { toolCallId: 'c', progress: 1, total: 2 })], (s) => assert.deepEqual(s.progress, { c: { progress: 1, total: 2 } })],
  ['a lost connection keeps what is shown', [...said('m', 'He'), { type: 'connection.lost', threadId: 't', data: { error: new Error('x'), retryMs: 1 } }],
    (s) => assert.deepEqual([contents(s), s.connected], [['Hi', 'He...'], false])],
  ['a new connection forgets previews', [...said('m', 'He'), OPEN('t')], (s) => assert.deepEqual([contents(s), s.connected], [['Hi'], true])],
  ['a reset asks for the history', [...said('m', 'He'), { ...base, type: 'reset', seq: 9, data: { reason: 'future', seq: 9 } }], (s) => assert.deepEqual([contents(s), s.stale, s.seq], [['Hi'], true, 9])],
  ['a gap asks for the history', [fact(5, 'step.finish', { stepName: 'intent', index: 0, total: 3 })], (s) => assert.deepEqual([s.stale, s.seq], [true, 5])],
  ['a preview of what is finished is passed over', [fact(4, 'text.message.end', { messageId: 'm', content: 'Hello' }), ...said('m', 'He')], (s) => assert.deepEqual(contents(s), ['Hi', 'Hello'])],
  ['a repeated fact is passed over', [fact(2, 'run.error', { code: 'internal', message: 'x', retryable: false })], (s) => assert.equal(s.run.status, 'running')],
  ['an unknown fact moves the cursor', [fact(4, 'never.heard', {})], (s) => assert.deepEqual([s.seq, s.stale], [4, false])],
  ['an unknown preview is passed over', [preview('never.heard', {})], (s) => assert.deepEqual([s.seq, s.stale], [3, false])],
  ['an error ends the run and what grows', [...said('m', 'He'), fact(4, 'run.error', { code: 'model_error', message: 'gone', retryable: true })],
    (s) => assert.deepEqual([contents(s), s.run.status, s.run.error.code, s.run.step], [['Hi'], 'failed', 'model_error', undefined])],
  ['a waiting run keeps its step', [fact(4, 'run.finished', { outcome: 'interrupted', interactions: ['i'], usage: {} })], (s) => assert.deepEqual([s.run.status, s.run.step], ['waiting', 'intent'])],
];

describe('single events', () => {
  for (const [name, events, check] of TABLE) {
    test(name, () => check([...started, ...events].reduce(applyEvent, emptyState('t'))));
  }

  test('older pages go in front, once', () => {
    const row = (id) => ({ id, role: 'user', content: id, metadata: {}, createdAt: base.ts });
    const page = (ids, before) => ({ messages: ids.map(row), hasMore: before !== undefined, openInteractions: [], seq: 9, ...(before && { before }) });
    const newest = applyHistory(emptyState('t'), page(['c', 'd'], 7));
    const older = applyOlder(newest, page(['a', 'b', 'c']));
    assert.deepEqual([newest.before, contents(older), older.before, older.loaded], [7, ['a', 'b', 'c', 'd'], undefined, 9]);
  });
});

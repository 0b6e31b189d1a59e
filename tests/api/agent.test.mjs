// SPDX-License-Identifier: Apache-2.0
//
// Whole conversations with an agent that acts and waits, as a stranger sees them who has only the documentation: a
// scripted model, a street of services outside, facts in their order, history, and what the model was asked.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';

import { cancelOne, inbox, interaction, until, waiting } from './asking.mjs';
import { call } from './home.mjs';
import {
  approve, ask, askedAbout, ended, factsUntil, failed, finished, ofType, order, resultsOf, settle, startPlace, tool,
} from './people.mjs';
import { accepted, AGENT, cancel, endOf, factsOf, get, history, isEnd, openEvents, postAnswer, runOf, TIME, typesOf, user,
  waitFor } from './talk.mjs';

const TEA = { item: 'tea', count: 2 };
const FORM = {
  fields: [
    { name: 'when', type: 'date', required: true }, { name: 'people', label: 'How many?', type: 'number' }, { name: 'remote', type: 'boolean' },
    { name: 'room', type: 'choice', choices: ['Red', 'Blue'] }, { name: 'note', type: 'text' },
  ],
};
const done = { text: 'Done.' };
const turn = (...calls) => ({ calls });
const raw = (name, args) => ({ name, args }); // args as they are, JSON or not
const bad = turn(raw('order', '{"item": "tea"')); // cut off
const good = turn(tool('look'));

// What the model does, by the first word of the message.
const LINES = [
  { match: '评审会', turns: [
    turn(ask('会议多长？', { choices: ['30 分钟', '1 小时'] })),
    { text: '好的，我来创建日程。', calls: [tool('calendar_write', { title: '评审会', start_time: '2026-11-16T15:00:00+08:00',
      end_time: '2026-11-16T16:00:00+08:00' })] },
    { text: '已为你约好明天 15:00 到 16:00 的评审会。' },
  ] },
  { match: '^many', turns: [{ text: 'Let me see.', calls: [tool('wait', { until: 'a' }), ask('How many?'), tool('wait', { until: 'b' }),
    order('tea')] }, done] },
  { match: '^six', turns: [turn(...[1, 2, 3, 4, 5, 6].map((n) => tool('wait', { until: `w${n}` }))), done] },
  { match: '^seven', turns: [turn(...[1, 2, 3, 4, 5, 6, 7].map((n) => order(`thing ${n}`))), done] },
  { match: '^buy', turns: [turn(tool('order', TEA)), done] },
  { match: '^买', turns: [turn(tool('order', TEA)), { text: '好了。' }] },
  { match: '^question', turns: [turn(ask('How long?', { choices: ['30 minutes', '1 hour'] })), done] },
  { match: '^问', turns: [turn(ask('多长？', { choices: ['30 分钟', '1 小时'] })), { text: '好了。' }] },
  { match: '^both', turns: [turn(ask('How long?'), tool('order', TEA)), done] },
  { match: '^form', turns: [turn(ask('About the meeting?', FORM)), done] },
  { match: '^menu', turns: [turn(ask('Who comes?', { choices: ['Ann', 'Bob', 'Eve'], multi: true, allow_freeform: false })), done] },
  { match: '^often', turns: [turn(order('tea')), turn(order('tea')), turn(order('milk')), done] },
  { match: '^wrong3', turns: [bad, bad, bad, turn(tool('look')), done] },
  { match: '^wrong4', turns: [bad, bad, bad, bad, done] },

  { match: '^reset', turns: [bad, bad, bad, good, bad, bad, bad, good, done] },
  { match: '^range', turns: [turn(tool('order', { item: 'tea', count: 99 })), turn(tool('order', { item: 'tea' })), done] },
  { match: '^shape', turns: [turn(raw('look', '[1]')), turn(raw('look', '"x"')), turn(raw('look', '')), done] },
  { match: '^mixed', turns: [turn(raw('order', '{'), tool('look', { reply: 'here' })), done] },
  { match: '^unknown', turns: [turn(tool('teleport', { to: 'Mars' })), done] },
  { match: '^denied', turns: [turn(tool('pay', TEA)), done] },
  { match: '^badask', turns: [turn(ask('  ')), turn(ask('Really?')), done] },
  { match: '^fails', turns: [turn(tool('fail')), done] },
  { match: '^hold', turns: [turn(tool('wait', { until: 'never' }), tool('ship', { until: 'held' }), ask('How long?'), tool('order', TEA)), done] },
  { match: '^cut', turns: [turn(tool('cut', TEA)), done] },
  { match: '^丢', turns: [turn(tool('cut', TEA)), { text: '好了。' }] },
  { match: '^away', turns: [{ text: 'Here again.', fail: { at: 'start', status: 503, times: 3 } }] },
  { match: '^gone', turns: [{ text: 'x', fail: { at: 'start', status: 503 } }] },
  { match: '^broken', turns: [{ text: 'x', fail: { at: 'start', status: 400 } }] },
  { match: '^slowly', turns: [{ text: 'I shall look.', calls: [tool('look',
    { reply: 'a rather long reply, so that it comes in pieces' })], chunk: 6, gap_ms: 300 }, done] },
  { match: '^flaky', turns: [{ text: 'Now.', calls: [tool('look', { reply: 'after all' })], fail: { at: 12, times: 1 } }, done] },
  { match: '^drops', turns: [{ text: 'I begin.', calls: [tool('order', { item: 'so much tea that it takes long to write it all down '.repeat(10) })],
    chunk: 4, gap_ms: 50 }, done] },
  { turns: [{ text: 'Hello.' }] },
];

let home, server, street, asked;
const closing = [];
before(async () => {
  ({ home, street, asked } = await startPlace({ after: (fn) => closing.unshift(fn) }, LINES,
    { assistant: { policy: { cut: 'allow', ship: 'allow', pay: 'deny' } } }));
  server = home.server;
});
after(async () => {
  for (const fn of closing) await fn();
});

const since = (facts, seq) => facts.filter((fact) => fact.seq > seq);
const steps = (facts) => facts.filter(({ type }) => type.startsWith('step.')).map(({ type, data }) => `${type} ${data.stepName}`);

// The facts of a run that has ended, whatever it took.
const allFacts = (t, { threadId, runId }) => factsUntil(t, server, threadId,
  (event) => endOf(runId)(event) && event.data.outcome !== 'interrupted');

// A message whose run nobody has to wait for.
async function through(t, text) {
  const start = await accepted(server, { messages: [user(text)] });
  return { ...start, facts: await allFacts(t, start) };
}

// ---- the example of the documentation ----

const OFFERED = ['ask_user', 'submit_plan', 'calendar_write'];

// Facts 1 to 24: type, and members that must be so. `id` is filled as facts come.
function example(id) {
  const args1 = { question: '会议多长？', choices: ['30 分钟', '1 小时'] };
  const args2 = { title: '评审会', start_time: '2026-11-16T15:00:00+08:00', end_time: '2026-11-16T16:00:00+08:00' };
  const model = { agent: 'assistant', model: 'scripted' };
  const step = (stepName, index) => ({ stepName, index, total: 3 });
  return [
    ['message.added', () => ({ message: { id: 'u1', role: 'user', content: '帮我约明天下午三点的评审会' } })],
    ['run.started', () => ({ taskId: id.task1, leg: 1, resumed: false, ...model })],
    ['step.start', () => step('intent', 0)],
    ['text.message.end', () => ({ messageId: id.m1, content: '', workerAgentOutput: { answer: '' } })],
    ['tool.call', () => ({ toolCallId: id.call1, toolName: 'ask_user', args: args1, parentMessageId: id.m1, stage: 'intent' })],
    ['interaction.request', () => ({ interactionId: id.int1, type: 'ask_user', status: 'open', threadId: 't1', runId: 'r1', toolCallId: id.call1,
      displayText: '会议多长？', question: '会议多长？', choices: [{ id: 'c1', label: '30 分钟' }, { id: 'c2', label: '1 小时' }], allowFreeform: true,
      resumeNode: 'execute', resumePhase: 'executing', resumeStep: 0, requester: 'local' })],
    ['run.finished', () => ({ outcome: 'interrupted', interactions: [id.int1] })],
    ['interaction.resolved', () => ({ interactionId: id.int1, status: 'resolved', answer: { choices: ['c2'] }, text: '1 小时',
      answeredBy: 'local', via: 'api' })],
    ['run.started', () => ({ taskId: id.task2, leg: 2, resumed: true, ...model })],
    ['tool.call.result', () => ({ messageId: id.t1, toolCallId: id.call1, callId: id.call1, toolName: 'ask_user', args: args1, result: '1 小时',
      content: '1 小时', toolAgentOutput: { result_summary: '1 小时' } })],
    ['text.message.end', () => ({ messageId: id.m2, content: '好的，我来创建日程。', workerAgentOutput: { answer: '好的，我来创建日程。' } })],
    ['tool.call', () => ({ toolCallId: id.call2, toolName: 'calendar_write', args: args2, parentMessageId: id.m2, stage: 'execution' })],
    ['interaction.request', () => ({ interactionId: id.int2, type: 'confirm', status: 'open', threadId: 't1', runId: 'r1', toolCallId: id.call2,
      resumeNode: 'execute', resumePhase: 'executing', resumeStep: 0, requester: 'local' })],
    ['run.finished', () => ({ outcome: 'interrupted', interactions: [id.int2] })],
    ['interaction.resolved', () => ({ interactionId: id.int2, status: 'resolved', answer: { decision: 'approve' }, answeredBy: 'local',
      via: 'api' })],
    ['run.started', () => ({ taskId: id.task3, leg: 3, resumed: true, ...model })],
    ['step.finish', () => step('intent', 0)],
    ['step.start', () => step('execution', 1)],
    ['tool.call.result', () => ({ messageId: id.t2, toolCallId: id.call2, callId: id.call2, toolName: 'calendar_write', args: args2 })],
    ['step.finish', () => step('execution', 1)],
    ['step.start', () => step('report', 2)],
    ['text.message.end', () => ({ messageId: id.m3, content: '已为你约好明天 15:00 到 16:00 的评审会。', currency: 'USD' })],
    ['step.finish', () => step('report', 2)],
    ['run.finished', () => ({ outcome: 'completed' })],
  ];
}

// The members of `expected` in `actual`, and nothing said about others.
function assertMembers(actual, expected, what) {
  for (const [name, value] of Object.entries(expected)) {
    if (name === 'message') assertMembers(actual.message, value, what);
    else assert.deepEqual(actual[name], value, `${what}: ${name}`);
  }
}

// `between` happens before each answer; it may end the server and start another.
async function followExample(t, place, between) {
  const now = () => place.home.server;
  const start = await accepted(now(), {
    threadId: 't1', runId: 'r1', messages: [user('帮我约明天下午三点的评审会', 'u1')], forwardedProps: { timezone: 'Asia/Shanghai' },
  });
  assert.deepEqual(start, { taskId: start.taskId, threadId: 't1', runId: 'r1', created: true, seq: 0, eventsUrl: `${AGENT}/runs/t1/events?after=0` });
  for (const body of [{ choices: ['c2'] }, { decision: 'approve' }]) {
    await until(now(), 't1', 'waiting');
    await between();
    const [open] = (await inbox(now())).interactions;
    if (open.binding) body.binding = open.binding;
    await settle(now(), open.interactionId, body);
  }
  await ended(now(), 't1');
  const facts = await factsUntil(t, now(), 't1', finished('completed'));
  assert.deepEqual(facts.map(({ seq }) => seq), Array.from({ length: 24 }, (_, i) => i + 1));
  const data = (n) => facts[n - 1].data;
  const id = {
    task1: start.taskId, task2: data(9).taskId, task3: data(16).taskId, m1: data(4).messageId, m2: data(11).messageId, m3: data(22).messageId,
    call1: data(5).toolCallId, call2: data(12).toolCallId, int1: data(6).interactionId, int2: data(13).interactionId,
    t1: data(10).messageId, t2: data(19).messageId,
  };
  assert.equal(new Set(Object.values(id)).size, Object.keys(id).length, 'all different');
  const expected = example(id);
  assert.deepEqual(typesOf(facts), expected.map(([type]) => type));
  for (const [i, [type, members]] of expected.entries()) assertMembers(facts[i].data, members(), `${i + 1} ${type}`);
  return { facts, id, data };
}

describe('the example of the documentation', () => {
  for (const [name, killed] of [['as it stands', false], ['with the server killed before each answer', true]]) {
    test(name, async (t) => {
      const place = await startPlace(t, LINES);
      const { facts, id, data } = await followExample(t, place, async () => {
        if (!killed) return;
        await place.home.server.kill9();
        place.home.server = null;
        await place.home.start();
      });
      const on = place.home.server;

      const { pendingTool, binding } = data(13);
      assert.deepEqual(JSON.parse(pendingTool.argsJson), data(12).args);
      assert.deepEqual([pendingTool.toolName, pendingTool.risk], ['calendar_write', 'write']);
      assert.ok(pendingTool.summary.includes('评审会') && pendingTool.argsSchema.properties.title && binding.length > 40);
      for (const n of [4, 11, 22]) assert.ok(data(n).inputTokens > 0 && data(n).outputTokens > 0 && data(n).cost >= 0);
      const total = data(24).usage;
      assert.equal(total.inputTokens, data(4).inputTokens + data(11).inputTokens + data(22).inputTokens);
      assert.deepEqual([data(19).result.title, data(19).error], ['评审会', undefined]);
      for (const [one, two] of [[1, 3], [4, 7], [8, 9], [11, 14], [15, 16], [20, 24]]) {
        assert.equal(new Set(facts.slice(one - 1, two).map(({ ts }) => ts)).size, 1, `facts ${one} to ${two} are of one commit`);
      }

      const late = await openEvents(t, on, 't1', { headers: { 'last-event-id': '18' } });
      const seen = await late.until(finished('completed'));
      assert.deepEqual(seen.map(({ seq, type }) => seq ?? type), [19, 20, 21, 'text.message.start', 'text.delta', 22, 23, 24]);
      assert.equal(seen[4].data.delta, data(22).content);

      const { messages, openInteractions, seq, hasMore, before: older } = await history(on, 't1');
      assert.deepEqual([seq, openInteractions, hasMore, older], [24, [], false, undefined]);
      assert.deepEqual(messages.map(({ id: of, role }) => [of, role]), [
        ['u1', 'user'], [id.m1, 'assistant'], [id.int1, 'clarify'], [id.t1, 'tool'], [id.m2, 'assistant'], [id.int2, 'interaction'],
          [id.t2, 'tool'], [id.m3, 'assistant'],
      ]);
      const [, m1, int1, t1, m2, int2, t2] = messages;
      assert.deepEqual([m1, m2].map(({ toolCalls }) => toolCalls.map(({ id: of, function: { name: called } }) => [of, called])),
        [[[id.call1, 'ask_user']], [[id.call2, 'calendar_write']]]);
      assertMembers(int1.metadata, { requestId: id.int1, choices: data(6).choices, allowFreeform: true, status: 'answered',
        answer: '1 小时' }, 'clarify');
      assert.deepEqual([t1.content, t1.toolCallId, t1.toolName, t1.error], ['1 小时', id.call1, 'ask_user', undefined]);
      assert.deepEqual([int2.metadata.status, int2.metadata.decision], ['resolved', 'approve']);
      assert.deepEqual([t2.content, t2.toolCallId], [data(19).content, id.call2]);
      assertMembers(t2.metadata, { tool_call_id: id.call2, tool_name: 'calendar_write', run_id: 'r1', stage: 'execution',
        task_id: id.task3 }, 'tool row');
      for (const { createdAt } of messages) assert.match(createdAt, TIME);

      const calls = askedAbout(place.asked, '帮我约明天下午三点的评审会');
      assert.deepEqual(calls.map(({ round, locale }) => [round, locale]), [[1, 'zh-CN'], [2, 'zh-CN'], [3, 'zh-CN']]);
      for (const { tools, system } of calls) {
        assert.deepEqual(tools.slice(0, 3).map(({ name: offered }) => offered), OFFERED);
        assert.match(system, /Asia\/Shanghai/);
      }
      assert.deepEqual(calls[2].messages.map(({ role }) => role), ['user', 'assistant', 'tool', 'assistant', 'tool'], 'no clarify, no interaction');
      assert.equal((await get(on, '/interactions?threadId=t1')).json().interactions.length, 0);
    });
  }
});

// ---- several calls in one turn ----

describe('one turn with two reads, a question and an approval', () => {
  async function begin(t, threadId) {
    const start = await accepted(server, { threadId, messages: [user('many')] });
    const events = await openEvents(t, server, threadId, { query: '?after=0' });
    const facts = factsOf(await events.until(({ type, data }) => type === 'step.start' && data.stepName === 'execution'));
    const calls = ofType(facts, 'tool.call').map(({ toolCallId }) => toolCallId);
    const requests = ofType(facts, 'interaction.request');
    return { start, events, facts, calls, requests };
  }

  test('is sorted in one step, results come as they complete, and all that is open is listed', async (t) => {
    const { events, facts, calls, requests } = await begin(t, 'many1');
    assert.deepEqual(typesOf(facts), ['message.added', 'run.started', 'step.start', 'text.message.end', 'tool.call', 'tool.call',
      'tool.call', 'tool.call',
      'interaction.request', 'interaction.request', 'step.finish', 'step.start']);
    assert.deepEqual(ofType(facts, 'tool.call').map(({ toolName, stage }) => `${toolName} ${stage}`),
      ['wait execution', 'ask_user intent', 'wait execution', 'order execution']);
    assert.deepEqual(requests.map(({ type, toolCallId }) => [type, toolCallId]), [['ask_user', calls[1]], ['confirm', calls[3]]]);
    assert.equal((await runOf(server, 'many1')).status, 'running', 'as long as a call is under way');
    await street.release('b');
    const [second] = await events.until(({ type }) => type === 'tool.call.result');
    await street.release('a');
    const rest = await events.until(isEnd);
    assert.deepEqual([second, ...rest].map(({ type, data }) => [type, data.toolCallId]),
      [['tool.call.result', calls[2]], ['tool.call.result', calls[0]], ['run.finished', undefined]]);
    const ids = requests.map(({ interactionId }) => interactionId);
    assert.deepEqual([rest.at(-1).data.outcome, rest.at(-1).data.interactions], ['interrupted', ids]);

    await settle(server, ids[1], { decision: 'approve' });
    const partial = factsOf(await events.until(isEnd));
    assert.deepEqual(typesOf(partial), ['interaction.resolved', 'run.started', 'tool.call.result', 'run.finished']);
    assert.deepEqual([partial[1].data.leg, partial[1].data.resumed, partial[2].data.toolCallId], [2, true, calls[3]]);
    assert.deepEqual([partial[3].data.outcome, partial[3].data.interactions], ['interrupted', [ids[0]]]);
    assert.equal(street.ran(calls[3]), 1, 'an approved call runs at once');
    assert.equal((await runOf(server, 'many1')).phase, 'interrupted', 'while the phase stays');

    await settle(server, ids[0], { answer: 'two' });
    const last = factsOf(await events.until(isEnd));
    assert.deepEqual(typesOf(last), ['interaction.resolved', 'run.started', 'tool.call.result', 'step.finish', 'step.start',
      'text.message.end', 'step.finish', 'run.finished']);
    assert.equal(last[1].data.leg, 3);
    const { messages } = askedAbout(asked, 'many').filter(({ round }) => round === 2).at(-1);
    assert.deepEqual(messages.filter(({ role }) => role === 'tool').map(({ toolCallId }) => toolCallId), calls, 'the model gets them in call order');
  });

  test('an answer joins the leg while calls are under way', async (t) => {
    const { events, calls, requests: [question, confirm] } = await begin(t, 'many2');
    await settle(server, question.interactionId, { answer: 'two' });
    const joined = factsOf(await events.until(({ type }) => type === 'tool.call.result'));
    assert.deepEqual(typesOf(joined), ['interaction.resolved', 'tool.call.result'], 'no new leg');
    await approve(server, confirm);
    const ran = factsOf(await events.until(({ type }) => type === 'tool.call.result'));
    assert.deepEqual(ran.map(({ type, data }) => [type, data.toolCallId]), [['interaction.resolved', undefined], ['tool.call.result', calls[3]]]);
    await street.release('a');
    await street.release('b');
    const rest = factsOf(await events.until(isEnd));
    assert.deepEqual(typesOf(rest), ['tool.call.result', 'tool.call.result', 'step.finish', 'step.start', 'text.message.end',
      'step.finish', 'run.finished']);
    assert.equal(rest.at(-1).data.outcome, 'completed');
    assert.equal(ofType(events.facts, 'run.started').length, 1, 'one leg');
  });

  for (const first of ['ask_user', 'confirm']) {
    test(`is answered in any order: ${first} first, the other rejected or skipped`, async (t) => {
      const { start, requests } = await begin(t, `many-${first}`);
      await street.release('a');
      await street.release('b');
      await until(server, start.threadId, 'waiting');
      for (const request of first === 'confirm' ? requests.reverse() : requests) {
        await settle(server, request.interactionId, request.type === 'confirm' ? { decision: 'reject' } : { skip: true });
      }
      const facts = await allFacts(t, start);
      assert.deepEqual(new Set(resultsOf(facts).map(({ toolName, error }) => `${toolName} ${error}`)),
        new Set(['wait undefined', 'ask_user undefined', 'order rejected']));
    });
  }
});

test('at most four calls are under way at a time', async (t) => {
  const before = street.ran('wait');
  const start = await accepted(server, { messages: [user('six')] });
  await street.arrived('wait', before + 4);
  for (const n of [1, 2, 3, 4, 5, 6]) await street.release(`w${n}`);
  const facts = await allFacts(t, start);
  assert.equal(resultsOf(facts).length, 6);
  assert.equal(street.mostHeld, 4);
});

test('at most five approvals are open; the others are refused to the model', async (t) => {
  const { open, ...start } = await waiting(server, 'seven');
  assert.equal(open.length, 5);
  const refused = resultsOf(await factsUntil(t, server, start.threadId, finished('interrupted')));
  assert.deepEqual(refused.map(({ error, args }) => [error, args.item]), [['too_many_confirms', 'thing 6'], ['too_many_confirms', 'thing 7']]);
  for (const one of open) await approve(server, one);
  const facts = await allFacts(t, start);
  assert.deepEqual(open.map(({ toolCallId }) => street.ran(toolCallId)), [1, 1, 1, 1, 1]);
  assert.equal(resultsOf(facts).length, 7, 'each call has one result');
});

// ---- decisions ----

describe('a decision about a call', () => {
  test('approve: it runs with the bytes that were shown', async (t) => {
    const { open: [one], ...start } = await waiting(server, 'buy');
    await approve(server, one);
    const [result] = resultsOf(await allFacts(t, start));
    assert.deepEqual([result.args, result.error, result.toolCallId], [TEA, undefined, one.toolCallId]);
    assert.deepEqual(street.visits.filter(({ key }) => key === one.toolCallId).map(({ args, language }) => [args, language]), [[TEA, 'en']]);
  });

  test('edit: it runs with the new ones, and everybody is told', async (t) => {
    const { open: [one], ...start } = await waiting(server, 'buy');
    const args = { item: 'coffee', count: 1 };
    const settled = await settle(server, one.interactionId, { decision: 'edit', args, binding: one.binding });
    assert.deepEqual(settled.answer, { decision: 'edit', args });
    const facts = await allFacts(t, start);
    assert.deepEqual(resultsOf(facts)[0].args, args);
    assert.deepEqual(ofType(facts, 'tool.call')[0].args, TEA, 'what the model asked for stays as it was');
    assert.deepEqual(street.visits.filter(({ key }) => key === one.toolCallId).map((visit) => visit.args), [args]);
    const row = (await history(server, start.threadId)).messages.find(({ id }) => id === one.interactionId);
    assert.deepEqual([row.metadata.status, row.metadata.decision], ['resolved', 'edit']);
    const [, { messages }] = askedAbout(asked, 'buy').slice(-2);
    assert.match(messages.at(-1).text, /^The user changed the arguments to: \{"item":"coffee","count":1\}\n.*[Oo]rder/s);
  });

  for (const [decision, error] of [['reject', 'rejected'], ['respond', undefined]]) {
    test(`${decision}: nothing runs, and the model has the comment`, async (t) => {
      const { open: [one], ...start } = await waiting(server, 'buy');
      await settle(server, one.interactionId, { decision, comment: 'we have tea' });
      const facts = await allFacts(t, start);
      const [result] = resultsOf(facts);
      assert.equal(result.error, error);
      assert.ok(result.content.includes('we have tea'));
      assert.equal(ofType(facts, 'interaction.resolved')[0].text, result.content, 'text = what the model got');
      assert.equal(askedAbout(asked, 'buy').at(-1).messages.at(-1).text, result.content);
      assert.deepEqual(steps(facts), ['step.start intent', 'step.finish intent', 'step.start report', 'step.finish report'], 'nothing was executed');
      assert.equal(street.ran(one.toolCallId), 0);
    });
  }

  test('always: the next call that fits does not ask, until it is revoked', async (t) => {
    const { open: [one], threadId } = await waiting(server, 'often');
    await settle(server, one.interactionId, { decision: 'approve', always: { scope: 'thread', match: { item: 'tea' } } });
    const milk = await waitFor('milk to be asked for', async () => (await inbox(server, `?threadId=${threadId}`)).interactions[0]);
    assert.deepEqual(JSON.parse(milk.pendingTool.argsJson), { item: 'milk' }, 'tea was not asked for again');
    await settle(server, milk.interactionId, { decision: 'reject' });
    await ended(server, threadId);
    const [grant] = (await get(server, '/grants')).json().grants.filter((made) => made.threadId === threadId);
    assert.deepEqual([grant.match, grant.toolName], [{ item: 'tea' }, 'order']);
    assert.equal((await call(server, 'DELETE', `${AGENT}/grants/${grant.grantId}`)).status, 204);
    const { open: [again] } = await waiting(server, 'often', { threadId, runId: 'r2' });
    assert.deepEqual(JSON.parse(again.pendingTool.argsJson), { item: 'tea' }, 'after that it is');
    await cancel(server, threadId);
  });
});

// ---- what a model gets wrong ----

describe('a model that calls wrongly', () => {
  test('is corrected, three times in a row', async (t) => {
    const { facts } = await through(t, 'wrong3');
    assert.deepEqual(resultsOf(facts).map(({ error }) => error), ['invalid_arguments', 'invalid_arguments', 'invalid_arguments', undefined]);
    assert.equal(facts.at(-1).data.outcome, 'completed');
    const corrected = askedAbout(asked, 'wrong3')[1].messages.at(-1);
    assert.equal(corrected.role, 'tool');
    assert.match(corrected.text, /JSON object.*again/);
  });

  test('is stopped at the fourth, with a clear text, and every call has a result', async (t) => {
    const { facts, threadId } = await through(t, 'wrong4');
    const { type, data } = facts.at(-1);
    assert.deepEqual([type, data.code, data.retryable], ['run.error', 'aborted', false]);
    assert.match(data.message, /kept calling tools wrongly/);
    assert.equal(resultsOf(facts).length, 4);
    assert.equal(askedAbout(asked, 'wrong4').length, 4);
    assert.equal((await runOf(server, threadId)).status, 'failed');
    const again = await accepted(server, { threadId, messages: [user('hello')] });
    assert.equal((await allFacts(t, again)).at(-1).data.outcome, 'completed', 'the thread goes on');
  });

  test('may begin to count anew after a call that was right', async (t) => {
    const { facts } = await through(t, 'reset');
    assert.equal(facts.at(-1).data.outcome, 'completed');
    assert.equal(resultsOf(facts).filter(({ error }) => error === 'invalid_arguments').length, 6);
  });

  test('arguments that do not fit the schema are never shown to a person', async (t) => {
    const { open: [one], ...start } = await waiting(server, 'range');
    assert.deepEqual(JSON.parse(one.pendingTool.argsJson), { item: 'tea' });
    await approve(server, one);
    const facts = await allFacts(t, start);
    assert.deepEqual(resultsOf(facts).map(({ error }) => error), ['invalid_arguments', undefined]);
    assert.match(resultsOf(facts)[0].content, /args\.count/);
    assert.equal(ofType(facts, 'interaction.request').length, 1);
  });

  test('arguments that are no object are wrong; none at all are {}', async (t) => {
    const { facts } = await through(t, 'shape');
    assert.deepEqual(resultsOf(facts).map(({ error, args }) => [error, args]),
      [['invalid_arguments', [1]], ['invalid_arguments', 'x'], [undefined, {}]]);
  });

  test('one wrong call does not keep the others of its turn', async (t) => {
    const { facts } = await through(t, 'mixed');
    assert.deepEqual(resultsOf(facts).map(({ toolName, error, result }) => [toolName, error, result]),
      [['order', 'invalid_arguments', undefined], ['look', undefined, 'here']]);
  });

  test('a question without words is wrong', async (t) => {
    const { open: [one], ...start } = await waiting(server, 'badask');
    assert.equal(one.question, 'Really?');
    await settle(server, one.interactionId, { answer: 'yes' });
    assert.deepEqual(resultsOf(await allFacts(t, start)).map(({ error }) => error), ['invalid_arguments', undefined]);
  });

  for (const [word, name, error] of [['unknown', 'teleport', 'tool_unavailable'], ['denied', 'pay', 'policy_denied']]) {
    test(`${word}: the model is told, and goes on`, async (t) => {
      const { facts } = await through(t, word);
      const [result] = resultsOf(facts);
      assert.deepEqual([result.toolName, result.error], [name, error]);
      assert.ok(result.content.includes(name));
      assert.equal(ofType(facts, 'interaction.request').length, 0);
      assert.equal(facts.at(-1).data.outcome, 'completed');
      assert.equal(street.ran('pay'), 0);
      assert.deepEqual(steps(facts), ['step.start intent', 'step.finish intent', 'step.start report', 'step.finish report']);
    });
  }

  test('a tool that fails is told with its reason', async (t) => {
    const { facts } = await through(t, 'fails');
    const [result] = resultsOf(facts);
    assert.ok(result.error.includes('closed today'), result.error);
    assert.ok(askedAbout(asked, 'fails').at(-1).messages.at(-1).text.includes('closed today'));
    assert.equal(facts.at(-1).data.outcome, 'completed');
    assert.deepEqual(steps(facts).slice(1, 3), ['step.finish intent', 'step.start execution']);
  });
});

// ---- questions ----

describe('a question', () => {
  // What the model got.
  async function told(t, word, body) {
    const { open: [one], ...start } = await waiting(server, word);
    await settle(server, one.interactionId, body);
    const facts = await allFacts(t, start);
    const [result] = resultsOf(facts);
    assert.deepEqual([result.result, result.content, result.error], [result.content, ofType(facts, 'interaction.resolved')[0].text, undefined]);
    assert.equal(askedAbout(asked, word).at(-1).messages.at(-1).text, result.content, 'the same for the model');
    return result.content;
  }

  test('as a form: the values are a JSON object for the model', async (t) => {
    const fields = { when: '2026-11-16', people: 4, remote: false, room: 'Blue', note: 'bring tea' };
    assert.deepEqual(JSON.parse(await told(t, 'form', { fields })), fields);
    assert.deepEqual(JSON.parse(await told(t, 'form', { fields: { when: '2026-11-16' } })), { when: '2026-11-16' },
      'what is not required may be left out');
  });

  test('as a form shows its fields, and refuses what does not fit them by name', async () => {
    const { open: [one] } = await waiting(server, 'form');
    assert.deepEqual(one.fields.map(({ name, type }) => [name, type]), FORM.fields.map(({ name, type }) => [name, type]));
    for (const [fields, field] of [
      [{}, 'fields.when'], [{ when: 'tomorrow' }, 'fields.when'], [{ when: '2026-02-30' }, 'fields.when'],
        [{ when: '2026-11-16', people: '4' }, 'fields.people'],
      [{ when: '2026-11-16', remote: 'no' }, 'fields.remote'], [{ when: '2026-11-16', room: 'Green' }, 'fields.room'],
      [{ when: '2026-11-16', note: ' ' }, 'fields.note'], [{ when: '2026-11-16', other: 1 }, 'fields.other'], [['x'], 'fields'],
    ]) {
      const refused = await postAnswer(server, one.interactionId, { fields });
      assert.deepEqual([refused.status, refused.json().code, refused.json().field], [400, 'invalid_field', field], JSON.stringify(fields));
    }
    assert.equal((await interaction(server, one.interactionId)).status, 'open');
    await cancel(server, one.threadId);
  });

  test('with several choices', async (t) => {
    const { open: [one], threadId } = await waiting(server, 'menu');
    assert.deepEqual([one.multi, one.allowFreeform, one.choices.map(({ id }) => id)], [true, false, ['c1', 'c2', 'c3']]);
    for (const [body, field] of [[{ answer: 'Mallory' }, 'answer'], [{ choices: ['c1', 'c1'] }, 'choices[1]'],
      [{ choices: ['c1'], text: 'late' }, 'text'], [{ choices: ['Ann'] }, 'choices[0]']]) {
      const refused = await postAnswer(server, one.interactionId, body);
      assert.deepEqual([refused.status, refused.json().field], [400, field], JSON.stringify(body));
    }
    await cancel(server, threadId);
    assert.equal(await told(t, 'menu', { choices: ['c3', 'c1'] }), '["Eve","Ann"]');
    assert.equal(await told(t, 'menu', { choices: ['c2'] }), 'Bob');
    assert.equal(await told(t, 'menu', { answer: 'Bob' }), 'Bob');
  });

  for (const [word, body, text] of [
    ['question', { skip: true }, 'The user skipped this question'], ['问', { skip: true }, '用户跳过了这个问题'],
    ['question', { choices: ['c2'], text: 'or so' }, '1 hour: or so'], ['问', { answer: '两个小时' }, '两个小时'],
      ['question', { answer: ' 1 hour ' }, '1 hour'],
  ]) {
    test(`${word} ${JSON.stringify(body)}: the model gets ${text}`, async (t) => {
      assert.equal(await told(t, word, body), text);
    });
  }
});

// ---- cancels ----

const CANCELLED = { question: 'The user did not answer; cancelled', 问: '用户未回答，操作已取消', buy: 'The user did not answer; cancelled', 买: '用户未回答，操作已取消' };

describe('the cancel of one interaction', () => {
  for (const [word, text] of Object.entries(CANCELLED)) {
    test(`${word}: its call gets an error, and the run goes on`, async (t) => {
      const { open: [one], ...start } = await waiting(server, word);
      const cancelled = await cancelOne(server, one.interactionId);
      assert.deepEqual([cancelled.status, cancelled.json().status], [200, 'canceled']);
      const facts = since(await allFacts(t, start), 7);
      assert.deepEqual(typesOf(facts).slice(0, 3), ['interaction.resolved', 'run.started', 'tool.call.result']);
      assert.deepEqual([facts[0].data.status, facts[0].data.answer, facts[2].data.error, facts[2].data.content],
        ['canceled', undefined, 'cancelled', text]);
      assert.equal(facts.at(-1).data.outcome, 'completed');
      assert.equal(askedAbout(asked, word).at(-1).messages.at(-1).text, text);
      const row = (await history(server, start.threadId)).messages.find(({ id }) => id === one.interactionId);
      assert.equal(row.metadata.status, 'canceled');
    });
  }
});

describe('the cancel of a run', () => {
  for (const [word, text] of Object.entries({ ...CANCELLED, both: CANCELLED.buy })) {
    test(`${word}: that waits is one commit without a leg`, async (t) => {
      const { open, threadId, runId, ...start } = await waiting(server, word);
      const before = (await history(server, threadId)).seq;
      const answered = await cancel(server, threadId, { runId });
      assert.equal(answered.status, 202, answered.text);
      assert.equal((await runOf(server, threadId)).status, 'cancelled', 'when the 202 comes');
      const facts = since(await allFacts(t, { threadId, runId, ...start }), before);
      assert.deepEqual(typesOf(facts), [...open.map(() => 'interaction.resolved'), ...open.map(() => 'tool.call.result'), 'step.finish',
        'run.finished']);
      assert.equal(new Set(facts.map(({ ts }) => ts)).size, 1);
      assert.deepEqual(ofType(facts, 'interaction.resolved').map(({ status }) => status), open.map(() => 'canceled'));
      assert.deepEqual(resultsOf(facts).map(({ error, content }) => [error, content]), open.map(() => ['cancelled', text]));
      assert.equal(facts.at(-1).data.outcome, 'cancelled');
      const { messages, openInteractions } = await history(server, threadId);
      assert.deepEqual(openInteractions, []);
      const tools = messages.filter(({ role }) => role === 'tool');
      assert.deepEqual(tools.map(({ error, content, toolCallId }) => [error, content, toolCallId]),
        open.map(({ toolCallId }) => ['cancelled', text, toolCallId]));
      assert.ok(messages.filter(({ role }) => role === 'clarify' || role === 'interaction').every(({ metadata }) => metadata.status === 'canceled'));
      for (const { toolCallId } of open) assert.equal(street.ran(toolCallId), 0);

      const next = await accepted(server, { threadId, messages: [user('hello again')] });
      await allFacts(t, next);
      const heard = askedAbout(asked, 'hello again').at(-1).messages.filter(({ role }) => role === 'tool');
      assert.deepEqual(heard.map((message) => message.text), open.map(() => text), 'later runs know');
    });
  }

  test('with calls under way waits for the write, and tells what it did', async (t) => {
    const start = await accepted(server, { threadId: 'hold', messages: [user('hold')] });
    await street.arrived('ship');
    assert.equal((await inbox(server, '?threadId=hold')).interactions.length, 2);
    assert.equal((await cancel(server, 'hold')).status, 202);
    await waitFor('nobody to be asked any more', async () => (await runOf(server, 'hold')).interactions.length === 0);
    assert.equal((await runOf(server, 'hold')).status, 'cancelling');
    await street.release('held');
    const facts = await allFacts(t, start);
    assert.equal(facts.at(-1).data.outcome, 'cancelled');
    assert.equal((await runOf(server, 'hold')).status, 'cancelled');
    assert.deepEqual(Object.fromEntries(resultsOf(facts).map(({ toolName, error, result }) => [toolName, error ?? result])),
      { ask_user: 'cancelled', order: 'cancelled', wait: 'cancelled', ship: 'held' });
    assert.equal(resultsOf(facts).length, 4);
  });

  for (const [word, text] of [['cut', 'Outcome unknown; it may have happened'], ['丢', '结果未知，可能已执行']]) {
    test(`${word}: an open uncertain write is recorded as what it is`, async (t) => {
      const { open: [one], ...start } = await waiting(server, word);
      assert.equal(one.type, 'uncertain');
      assert.equal((await cancel(server, start.threadId)).status, 202);
      const facts = await allFacts(t, start);
      const [result] = resultsOf(facts);
      assert.deepEqual([result.error !== undefined, result.content], [true, text]);
      assert.equal(facts.at(-1).data.outcome, 'cancelled');
      assert.equal(street.ran(one.toolCallId), 1);
    });
  }
});

// ---- ends that nobody knows, models that are gone ----

describe('a write whose end nobody knows', () => {
  for (const [decision, error, words] of [['happened', undefined, /confirms that it happened/],
    ['give_up', 'unknown_outcome', /may have happened/]]) {
    test(`${decision}: it is not repeated`, async (t) => {
      const { open: [one], ...start } = await waiting(server, 'cut');
      assert.deepEqual([one.type, one.pendingTool.toolName, JSON.parse(one.pendingTool.argsJson)], ['uncertain', 'cut', TEA]);
      await settle(server, one.interactionId, { decision });
      const [result] = resultsOf(await allFacts(t, start));
      assert.equal(result.error, error);
      assert.match(result.content, words);
      assert.equal(street.ran(one.toolCallId), 1);
    });
  }

  test('retry: once more, with the same key; and asks again if that was lost too', async () => {
    const { open: [one], threadId } = await waiting(server, 'cut');
    await settle(server, one.interactionId, { decision: 'retry' });
    const again = await waitFor('it to ask again', async () => (await inbox(server, `?threadId=${threadId}`)).interactions[0]);
    assert.deepEqual([again.type, again.toolCallId], ['uncertain', one.toolCallId]);
    assert.notEqual(again.interactionId, one.interactionId);
    assert.equal(street.ran(one.toolCallId), 2);
    await settle(server, again.interactionId, { decision: 'give_up' });
    await ended(server, threadId);
  });
});

describe('a model that is gone', () => {
  test('three attempts, then somebody is asked; continue goes on from the same step', async (t) => {
    const { open: [one], ...start } = await waiting(server, 'away');
    assert.deepEqual([one.type, one.toolCallId, one.pendingTool], ['connection_lost', undefined, undefined]);
    assert.equal(askedAbout(asked, 'away').length, 3);
    await settle(server, one.interactionId, { decision: 'continue' });
    const facts = await allFacts(t, start);
    assert.deepEqual(typesOf(facts), ['message.added', 'run.started', 'step.start', 'interaction.request', 'run.finished',
      'interaction.resolved', 'run.started',
      'step.finish', 'step.start', 'text.message.end', 'step.finish', 'run.finished']);
    assert.equal(ofType(facts, 'text.message.end')[0].content, 'Here again.');
    const row = (await history(server, start.threadId)).messages.find(({ id }) => id === one.interactionId);
    assert.deepEqual([row.role, row.metadata.type, row.metadata.status], ['interaction', 'connection_lost', 'resolved']);
  });

  test('give_up ends the run', async (t) => {
    const { open: [one], threadId } = await waiting(server, 'gone');
    await settle(server, one.interactionId, { decision: 'give_up' });
    const facts = await factsUntil(t, server, threadId, failed);
    assert.equal(facts.at(-1).data.code, 'model_unavailable');
    assert.equal((await runOf(server, threadId)).status, 'failed');
  });

  test('a failure that no attempt would mend is an error at once', async (t) => {
    const { facts } = await through(t, 'broken');
    assert.deepEqual([facts.at(-1).type, facts.at(-1).data.code], ['run.error', 'model_error']);
    assert.equal(askedAbout(asked, 'broken').length, 1);
  });
});

// ---- history ----

describe('history while somebody is asked', () => {
  test('has the rows of what is open, and lists it', async () => {
    const { open, threadId } = await waiting(server, 'both');
    const { messages, openInteractions } = await history(server, threadId);
    assert.deepEqual(openInteractions, open);
    assert.deepEqual(messages.map(({ role }) => role), ['user', 'assistant', 'clarify', 'interaction']);
    const [, turnRow, clarify, confirm] = messages;
    assert.deepEqual(turnRow.toolCalls.map(({ id }) => id), open.map(({ toolCallId }) => toolCallId));
    assert.deepEqual([clarify.id, clarify.content, clarify.metadata.status, clarify.metadata.allowFreeform, clarify.metadata.answer],
      [open[0].interactionId, 'How long?', 'pending', true, undefined]);
    assert.deepEqual([confirm.id, confirm.metadata.status, confirm.metadata.type, confirm.content],
      [open[1].interactionId, 'open', 'confirm', open[1].displayText]);
    await settle(server, open[0].interactionId, { answer: 'long' });
    await until(server, threadId, 'waiting');
    const later = await history(server, threadId);
    assert.deepEqual(later.messages.map(({ role }) => role), ['user', 'assistant', 'clarify', 'interaction', 'tool'],
      'rows stay where their request was');
    assert.deepEqual([later.messages[2].metadata.status, later.messages[2].metadata.answer], ['answered', 'long']);
    await cancel(server, threadId);
  });

  test('an expired question says so', async () => {
    const { open: [one], threadId } = await waiting(server, 'question');
    const moved = await call(server, 'PATCH', `${AGENT}/interactions/${one.interactionId}`, {
      headers: { 'content-type': 'application/json' }, body: JSON.stringify({ expiresAt: new Date(Date.now() + 3000).toISOString() }),
    });
    assert.equal(moved.status, 200, moved.text);
    await ended(server, threadId);
    const row = (await history(server, threadId)).messages.find(({ id }) => id === one.interactionId);
    assert.deepEqual([row.role, row.metadata.status, row.metadata.answer], ['clarify', 'expired', undefined]);
  });
});

// ---- readers ----

describe('a reader that comes back in the middle of a call', () => {
  const ofCall = (events) => events.filter(({ type }) => type.startsWith('tool.call') && type !== 'tool.call.result');
  const joined = (events) => events.filter(({ type }) => type === 'tool.call.args').map(({ data }) => data.delta).join('');

  // Everything of the call once, from its start to its fact, with the deltas being the arguments.
  function assertOnce(events) {
    const seen = ofCall(events);
    assert.equal(seen[0].type, 'tool.call.start');
    assert.equal(seen.at(-1).type, 'tool.call');
    assert.deepEqual(seen.slice(1, -1).map(({ type }) => type), seen.slice(1, -1).map(() => 'tool.call.args'));
    assert.equal(new Set(seen.map(({ data }) => data.toolCallId)).size, 1);
    assert.deepEqual(JSON.parse(joined(seen)), seen.at(-1).data.args);
    const { toolCallId, toolName, parentMessageId, stage } = seen.at(-1).data;
    assert.deepEqual(seen[0].data, { toolCallId, toolName, parentMessageId, stage });
    return seen;
  }

  test('gets its previews once, whole', async (t) => {
    const start = await accepted(server, { messages: [user('slowly')] });
    const first = await openEvents(t, server, start.threadId, { query: '?after=0' });
    const before = await first.until(({ type }) => type === 'tool.call.args');
    const last = factsOf(before).at(-1).seq;
    first.close();
    const second = await openEvents(t, server, start.threadId, { headers: { 'last-event-id': String(last) } });
    const events = await second.until(({ type }) => type === 'tool.call');
    const seen = assertOnce(events);
    assert.equal(seen[0].data.toolCallId, ofCall(before)[0].data.toolCallId, 'the same call');
    assert.ok(joined(seen).startsWith(joined(before)));
    assert.ok(seen.length > 3, 'it grew on');
    assert.equal(events.filter(({ type }) => type === 'text.message.start').length, 1);
  });

  test('and after it: made up, one piece', async (t) => {
    const { threadId, facts } = await through(t, 'slowly');
    const end = facts.find(({ type }) => type === 'text.message.end');
    for (const [after, types] of [
      [end.seq - 1, ['text.message.start', 'text.delta', 'text.message.end', 'tool.call.start', 'tool.call.args', 'tool.call']],
      [end.seq, ['tool.call.start', 'tool.call.args', 'tool.call']],
      [end.seq + 1, []],
    ]) {
      const reader = await openEvents(t, server, threadId, { headers: { 'last-event-id': String(after) } });
      const events = await reader.until(isEnd);
      const upTo = events.slice(0, types.length);
      assert.deepEqual(typesOf(upTo), types);
      if (types.length) assertOnce(upTo);
      assert.deepEqual(ofCall(events.slice(types.length)), [], 'never again');
    }
  });
});

describe('a call that is not written to its end', () => {
  test('is discarded with its attempt; the next one has ids of its own', async (t) => {
    const start = await accepted(server, { messages: [user('flaky')] });
    const stream = await openEvents(t, server, start.threadId, { query: '?after=0' });
    const events = await stream.until(isEnd);
    const starts = events.filter(({ type }) => type === 'tool.call.start').map(({ data }) => data);
    const gone = events.filter(({ type }) => type === 'message.discard').map(({ data }) => data.messageId);
    const facts = factsOf(events), [made] = ofType(facts, 'tool.call');
    assert.equal(ofType(facts, 'tool.call').length, 1);
    assert.equal(made.toolCallId, starts.at(-1).toolCallId);
    if (starts.length > 1) { // whoever came in time saw the first attempt too
      assert.deepEqual(gone, [starts[0].parentMessageId]);
      assert.notEqual(starts[0].toolCallId, made.toolCallId);
    }
    assert.deepEqual(resultsOf(facts).map(({ result }) => result), ['after all']);
  });

  test('is dropped with a cancel; the text so far is kept', async (t) => {
    const start = await accepted(server, { messages: [user('drops')] });
    const stream = await openEvents(t, server, start.threadId, { query: '?after=0' });
    await stream.until(({ type }) => type === 'tool.call.args');
    assert.equal((await cancel(server, start.threadId)).status, 202);
    const facts = factsOf(await stream.until(isEnd));
    assert.deepEqual(typesOf(facts), ['text.message.end', 'step.finish', 'run.finished']);
    assert.deepEqual([facts[0].data.content, facts[0].data.stopped, facts[2].data.outcome], ['I begin.', true, 'cancelled']);
    const row = (await history(server, start.threadId)).messages.at(-1);
    assert.deepEqual([row.content, row.toolCalls], ['I begin.', undefined]);
  });
});

// ---- languages ----

describe('the language', () => {
  test('is that of the message', async () => {
    for (const [word, locale, text] of [['buy', 'en', /^Run order\?/], ['买茶', 'zh-CN', /^要执行 order 吗？/]]) {
      const { open: [one], threadId } = await waiting(server, word);
      assert.match(one.displayText, text);
      assert.equal(askedAbout(asked, word).at(-1).locale, locale);
      await cancel(server, threadId);
    }
  });

  for (const [locale, word, question, text] of [['zh-CN', 'buy', /^要执行 order 吗？/, '用户拒绝了这个操作'],
    ['en', '买茶', /^Run order\?/, 'The user rejected this call']]) {
    test(`is the agent's, if it has one: ${locale} for ${word}`, async (t) => {
      const place = await startPlace(t, LINES, { assistant: { locale } });
      const { open: [one], threadId } = await waiting(place.home.server, word);
      assert.match(one.displayText, question);
      await settle(place.home.server, one.interactionId, { decision: 'reject' });
      const facts = await factsUntil(t, place.home.server, threadId, finished('completed'));
      assert.equal(resultsOf(facts)[0].content, text);
      assert.deepEqual(place.asked().map((request) => request.locale), [locale, locale]);
    });
  }

  test('goes out to the tools', async () => {
    const { open: [one], threadId } = await waiting(server, '买茶');
    await approve(server, one);
    await ended(server, threadId);
    assert.equal(street.visits.find(({ key }) => key === one.toolCallId).language, 'zh-CN');
  });
});

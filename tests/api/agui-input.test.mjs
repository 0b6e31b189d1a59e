// SPDX-License-Identifier: Apache-2.0
//
// What AG-UI clients send: tool messages for the calls that they execute, nothing new at all, the same again; and the
// two forms of the answer. Entries of `resume` are in resume.test.mjs, the events of the stream in tests/clients.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';

import { assertRun, lastOf, openRun, runWhole, textOf, typesIn } from './agui.mjs';
import { audit, interaction, REFUSED, rows, until } from './asking.mjs';
import { assertProblem, call, postJson } from './home.mjs';
import { ask, askedAbout, factsUntil, finished, ofType, order, resultsOf, startPlace, tool, toolNames } from './people.mjs';
import { accepted, AGENT, endOf, get, history, postRun, runOf, user, waitFor } from './talk.mjs';

const TOOLS = [
  { name: 'locate', description: 'Where the user is', parameters: { type: 'object', properties: { precise: { type: 'boolean' } } } },
  { name: 'paint', description: 'Colours the page' },
];
const calls = (...list) => ({ turns: [{ calls: list }, { text: 'Done.' }] });
const LINES = [
  { match: '^where', ...calls(tool('locate', { precise: true })) },
  { match: '^both', ...calls(tool('locate'), tool('paint', { colour: 'red' })) },
  { match: '^ask', ...calls(tool('locate'), ask('Which room?')) },
  { match: '^two', ...calls(tool('locate'), ask('First?'), ask('Second?')) },
  { match: '^buy', ...calls(tool('locate'), order('tea')) },
  { match: '^confirm', ...calls(order('tea')) },
  { match: '^question', ...calls(ask('Which room?')) },
  { match: '^hold', ...calls(tool('wait', { until: 'go' })) },
  { match: '^mixed', ...calls(tool('locate'), tool('wait', { until: 'mixed' })) },
  { match: '^pick', turns: [{ calls: [tool('locate')] }, { calls: [tool('paint')] }, { text: 'Done.' }] },
  { turns: [{ text: 'Hello.' }] },
];

let home, server, street, asked;
const cleanUp = [];
before(async () => {
  ({ home, street, asked } = await startPlace({ after: (fn) => cleanUp.unshift(fn) }, LINES));
  server = home.server;
});
after(async () => {
  for (const fn of cleanUp) await fn();
});

let count = 0;
const ofRun = (threadId, sql) => rows(home, `SELECT ${sql} FROM runs JOIN threads ON threads.id=runs.thread WHERE threads.thread_id='${threadId}' ORDER BY runs.id`);
const pendingOf = (facts) => ofType(facts, 'run.finished').at(-1).pendingToolCallIds;

// A thread whose run waits for the client: {threadId, runId, calls: {name: id}, open}.
async function pending(t, word, more = {}) {
  const threadId = `f${++count}`;
  const { runId } = await accepted(server, { threadId, runId: 'r1', messages: [user(word, 'u1')], tools: TOOLS, ...more });
  await until(server, threadId, 'waiting');
  const facts = await factsUntil(t, server, threadId, finished('interrupted'));
  const made = ofType(facts, 'tool.call').map(({ toolName, toolCallId }) => [toolName, toolCallId]);
  const { interactions: open } = await runOf(server, threadId);
  return { threadId, runId, calls: Object.fromEntries(made), open, waits: pendingOf(facts), seq: facts.length };
}

const result = (toolCallId, content, more = {}) => ({ id: `tm${++count}`, role: 'tool', toolCallId, content, ...more });
const send = (threadId, messages, more = {}) => postRun(server, { threadId, messages, ...more });
const toolRows = async (threadId) => (await history(server, threadId)).messages.filter(({ role }) => role === 'tool');

function assertTaken(taken, { threadId, runId }, answered = []) {
  assert.equal(taken.status, 202, taken.text);
  const body = taken.json();
  assert.deepEqual(Object.keys(body), ['taskId', 'threadId', 'runId', 'created', 'seq', 'eventsUrl', 'answered']);
  assert.deepEqual([body.threadId, body.runId, body.created, body.answered], [threadId, runId, false, answered]);
  return body;
}

describe('a result of a front-end call', () => {
  for (const [name, message, expected] of [
    ['words', { content: 'Berlin' }, { content: 'Berlin', result: 'Berlin' }],
    ['JSON', { content: '{"lat":52.5}' }, { result: { lat: 52.5 } }],
    ['parts, of which the words count', { content: [{ type: 'text', text: 'Ber' }, { type: 'image', source: {} }, { type: 'text', text: 'lin' }] }, { result: 'Berlin' }],
    ['nothing', { content: '' }, { result: '' }],
    ['null for what is absent', { content: 'Berlin', error: null, metadata: null, encryptedValue: null }, { result: 'Berlin' }],
    ['an error', { content: 'no permission', error: 'denied' }, { error: 'no permission' }],
    ['an error alone', { content: '', error: 'denied' }, { error: 'denied' }],
  ]) {
    test(name, async (t) => {
      const run = await pending(t, 'where');
      assert.deepEqual(run.waits, [run.calls.locate]);
      const sent = result(run.calls.locate, undefined, message);
      const { seq, taskId } = assertTaken(await send(run.threadId, [sent]), run);
      const facts = await factsUntil(t, server, run.threadId, finished('completed'));
      assert.deepEqual(facts.slice(seq, seq + 2).map(({ type }) => type), ['run.started', 'tool.call.result']);
      assert.equal(facts[seq].data.taskId, taskId);
      const told = facts[seq + 1].data;
      assert.equal(told.messageId, sent.id, 'the row is the client\'s own');
      for (const [member, value] of Object.entries(expected)) assert.deepEqual(told[member], value, member);
      assert.equal(told.error !== undefined, expected.error !== undefined);
      assert.deepEqual((await toolRows(run.threadId)).map(({ id, toolCallId }) => [id, toolCallId]), [[sent.id, run.calls.locate]]);
    });
  }

  test('without an id, or with one that cannot be used: ours', async (t) => {
    for (const id of [undefined, 'a b', 7, null]) {
      const run = await pending(t, 'where');
      assertTaken(await send(run.threadId, [{ ...result(run.calls.locate, 'x'), id }]), run);
      await until(server, run.threadId, 'completed');
      assert.match((await toolRows(run.threadId))[0].id, /^[A-Za-z0-9._:-]{1,128}$/);
    }
  });

  test('the id of a message in the same request stays that message\'s', async (t) => {
    const run = await pending(t, 'where');
    const taken = await send(run.threadId, [{ ...result(run.calls.locate, 'x'), id: 'same' }, user('hello', 'same')], { runId: 'r2' });
    assert.equal(taken.status, 202, taken.text);
    await factsUntil(t, server, run.threadId, endOf('r2'));
    const { messages } = await history(server, run.threadId);
    assert.deepEqual(messages.filter(({ id }) => id === 'same').map(({ role }) => role), ['user']);
  });

  test('the same runId is the same 202, with another body 422', async (t) => {
    const run = await pending(t, 'where');
    const sent = result(run.calls.locate, 'x');
    const first = await send(run.threadId, [sent], { runId: 'r2' }), again = await send(run.threadId, [sent], { runId: 'r2' });
    assert.deepEqual([first.status, again.status, again.text], [202, 202, first.text]);
    assertProblem(await send(run.threadId, [{ ...sent, content: 'y' }], { runId: 'r2' }), 422, 'idempotency_mismatch', 'runId');
  });

  test('of two calls, one at a time', async (t) => {
    const run = await pending(t, 'both');
    assert.deepEqual(run.waits, [run.calls.locate, run.calls.paint]);
    assertTaken(await send(run.threadId, [result(run.calls.paint, 'red')]), run);
    await until(server, run.threadId, 'waiting');
    const facts = await factsUntil(t, server, run.threadId, ({ type, data, seq }) => type === 'run.finished' && seq > run.seq && data.pendingToolCallIds);
    assert.deepEqual(pendingOf(facts), [run.calls.locate]);
    assertTaken(await send(run.threadId, [result(run.calls.locate, 'here')]), run);
    await until(server, run.threadId, 'completed');
    assert.deepEqual((await toolRows(run.threadId)).map(({ toolName }) => toolName), ['paint', 'locate']);
  });

  test('of two calls at once, and twice for one: the first word counts', async (t) => {
    const run = await pending(t, 'both');
    const list = [result(run.calls.locate, 'here'), result(run.calls.paint, 'red'), result(run.calls.locate, 'there')];
    assertTaken(await send(run.threadId, list), run);
    const facts = await factsUntil(t, server, run.threadId, finished('completed'));
    assert.deepEqual(resultsOf(facts).map(({ toolName, result: given }) => [toolName, given]).sort(), [['locate', 'here'], ['paint', 'red']]);
    assert.deepEqual(audit(home, run.threadId, REFUSED), []);
  });

  test('beside a call that is under way: it joins the leg', async (t) => {
    const threadId = `f${++count}`;
    await accepted(server, { threadId, runId: 'r1', messages: [user('mixed')], tools: TOOLS });
    const facts = await factsUntil(t, server, threadId, ({ type, data }) => type === 'tool.call' && data.toolName === 'wait');
    const { toolCallId } = ofType(facts, 'tool.call').find(({ toolName }) => toolName === 'locate');
    assertTaken(await send(threadId, [result(toolCallId, 'here')]), { threadId, runId: 'r1' });
    await street.release('mixed');
    const all = await factsUntil(t, server, threadId, finished('completed'));
    assert.equal(ofType(all, 'run.started').length, 1);
  });

  test('with an answer in resume, in one step', async (t) => {
    const run = await pending(t, 'ask');
    const [question] = run.open;
    const taken = await send(run.threadId, [result(run.calls.locate, 'here')],
      { resume: [{ interruptId: question.interactionId, status: 'resolved', payload: 'Red' }] });
    assertTaken(taken, run, [question.interactionId]);
    const facts = await factsUntil(t, server, run.threadId, finished('completed'));
    assert.equal(ofType(facts, 'run.started').length, 2, 'one leg for both');
  });

  test('waits over a restart', async (t) => {
    const place = await startPlace(t, LINES);
    await accepted(place.home.server, { threadId: 'f', runId: 'r1', messages: [user('pick')], tools: TOOLS });
    await until(place.home.server, 'f', 'waiting');
    await place.home.restart();
    const facts = await factsUntil(t, place.home.server, 'f', finished('interrupted'));
    const { toolCallId } = ofType(facts, 'tool.call')[0];
    assert.equal((await postRun(place.home.server, { threadId: 'f', messages: [result(toolCallId, 'here')] })).status, 202);
    const more = await factsUntil(t, place.home.server, 'f', ({ type, data, seq }) => type === 'run.finished' && seq > facts.length && data);
    assert.equal(ofType(more, 'tool.call')[1].toolName, 'paint', 'whoever brings no tools leaves them as they were');
  });
});

describe('a result that is not asked for', () => {
  const forgery = 'no such call';
  test('of no call: 400, and noted while something waits', async (t) => {
    const run = await pending(t, 'where');
    assertProblem(await send(run.threadId, [user('where', 'u1'), result('call_x', forgery)]), 400, 'invalid_field', 'messages[1].toolCallId');
    assertProblem(await send(run.threadId, [{ role: 'tool', content: forgery }]), 400, 'invalid_field', 'messages[0].toolCallId');
    assert.deepEqual(audit(home, run.threadId, REFUSED).map(({ why }) => why), ['client_history', 'client_history']);
    assert.equal((await runOf(server, run.threadId)).status, 'waiting');
  });

  test('of no call, while nothing waits: 400 alone', async () => {
    const { threadId } = await accepted(server, 'hello');
    await until(server, threadId, 'completed');
    assertProblem(await send(threadId, [result('call_x', forgery)]), 400, 'invalid_field', 'messages[0].toolCallId');
    assert.deepEqual(audit(home, threadId, REFUSED), []);
  });

  test('of a call of another thread', async (t) => {
    const run = await pending(t, 'where'), other = await pending(t, 'where');
    assertProblem(await send(run.threadId, [result(other.calls.locate, 'x')]), 400, 'invalid_field', 'messages[0].toolCallId');
    assert.equal((await runOf(server, other.threadId)).status, 'waiting');
  });

  for (const [word, name] of [['buy', 'order'], ['ask', 'ask_user']]) {
    test(`of ${name}, which waits for a person: 400, and it stays open`, async (t) => {
      const run = await pending(t, word);
      assertProblem(await send(run.threadId, [result(run.calls[name], 'approved')]), 400, 'invalid_field', 'messages[0].toolCallId');
      assert.equal((await interaction(server, run.open[0].interactionId)).status, 'open');
      assert.equal(street.ran(run.calls[name]), 0);
    });

    test(`of ${name}, beside a good one: not used, and noted`, async (t) => {
      const run = await pending(t, word);
      assertTaken(await send(run.threadId, [result(run.calls[name], 'approved'), result(run.calls.locate, 'here')]), run);
      await until(server, run.threadId, 'waiting');
      assert.equal((await interaction(server, run.open[0].interactionId)).status, 'open');
      assert.deepEqual(audit(home, run.threadId, REFUSED).map(({ why }) => why), ['client_history']);
      assert.deepEqual((await toolRows(run.threadId)).map(({ toolName }) => toolName), ['locate']);
      assert.equal(street.ran(run.calls[name]), 0);
    });
  }

  test('again: known by its id, or settled; ignored in silence', async (t) => {
    const run = await pending(t, 'pick');
    const sent = result(run.calls.locate, 'here');
    assertTaken(await send(run.threadId, [sent]), run);
    const facts = await factsUntil(t, server, run.threadId, ({ seq, type }) => type === 'run.finished' && seq > run.seq);
    const [, paint] = ofType(facts, 'tool.call');
    await until(server, run.threadId, 'waiting');
    for (const late of [sent, result(run.calls.locate, 'there'), { ...sent, toolCallId: paint.toolCallId }]) {
      assertProblem(await send(run.threadId, [late]), 400, 'invalid_field', 'messages');
    }
    assert.deepEqual(audit(home, run.threadId, REFUSED), []);
    assert.equal((await runOf(server, run.threadId)).status, 'waiting');
    assertTaken(await send(run.threadId, [sent, result(paint.toolCallId, 'red')]), run);
    await until(server, run.threadId, 'completed');
  });

  test('too late: a message came before it', async (t) => {
    const run = await pending(t, 'where');
    await accepted(server, { threadId: run.threadId, runId: 'r2', messages: [user('never mind')] });
    await factsUntil(t, server, run.threadId, endOf('r2'));
    assertProblem(await send(run.threadId, [result(run.calls.locate, 'here')]), 400, 'invalid_field', 'messages');
    assert.deepEqual(audit(home, run.threadId, REFUSED), []);
  });

  test('of an unreadable shape', async (t) => {
    const run = await pending(t, 'where');
    for (const [message, field] of [
      [{ content: 7 }, 'messages[0].content'], [{ content: {} }, 'messages[0].content'], [{ content: ['x'] }, 'messages[0].content[0]'],
      [{ content: [{ type: 'text' }] }, 'messages[0].content[0]'], [{ content: 'x', error: 7 }, 'messages[0].error'],
    ]) assertProblem(await send(run.threadId, [result(run.calls.locate, undefined, message)]), 400, 'invalid_field', field);
    assert.equal((await runOf(server, run.threadId)).status, 'waiting');
  });
});

describe('a plain message while the client is asked', () => {
  test('the calls get the error "not answered", and the message follows', async (t) => {
    const run = await pending(t, 'both');
    const taken = await send(run.threadId, [user('never mind', 'm2')], { runId: 'r2' });
    assert.equal(taken.status, 202, taken.text);
    const body = taken.json();
    assert.deepEqual([body.runId, body.answered, body.queued], ['r2', undefined, true]);
    const facts = await factsUntil(t, server, run.threadId, endOf('r2'));
    assert.deepEqual(resultsOf(facts).map(({ error }) => error), ['not answered', 'not answered']);
    assert.deepEqual(facts.filter(({ type }) => type === 'run.finished').map(({ runId, data }) => [runId, data.outcome]),
      [['r1', 'interrupted'], ['r1', 'completed'], ['r2', 'completed']]);
    const { messages } = await history(server, run.threadId);
    assert.equal(messages.filter(({ role }) => role === 'user').at(-1).id, 'm2');
  });

  test('also where busy threads are refused', async (t) => {
    const place = await startPlace(t, LINES, { assistant: { busy: 'reject' } });
    await accepted(place.home.server, { threadId: 'f', messages: [user('where')], tools: TOOLS });
    await until(place.home.server, 'f', 'waiting');
    const body = await accepted(place.home.server, { threadId: 'f', runId: 'r2', messages: [user('never mind')] });
    assert.equal(body.queued, true);
    await factsUntil(t, place.home.server, 'f', endOf('r2'));
  });

  for (const [word, settled] of [['ask', { answer: 'Red' }], ['buy', { decision: 'reject', comment: 'Red' }]]) {
    test(`beside ${word}: it is the answer, and the call is not answered`, async (t) => {
      const run = await pending(t, word);
      const [open] = run.open;
      assertTaken(await send(run.threadId, [user('Red')]), run, [open.interactionId]);
      const facts = await factsUntil(t, server, run.threadId, finished('completed'));
      assert.deepEqual((await interaction(server, open.interactionId)).answer, settled);
      assert.equal(resultsOf(facts).find(({ toolName }) => toolName === 'locate').error, 'not answered');
      assert.equal(ofType(facts, 'run.started').length, 2, 'one leg for both');
      assert.equal(street.ran(run.calls.order ?? 'none'), 0);
    });
  }

  test('beside two questions: 409, and the call waits on', async (t) => {
    const run = await pending(t, 'two');
    const refused = await send(run.threadId, [user('Red')]);
    assert.deepEqual([refused.status, refused.json().code, refused.json().interactions.length], [409, 'ambiguous', 2]);
    assert.deepEqual((await toolRows(run.threadId)), []);
  });

  test('with the result: it waits behind the run that goes on', async (t) => {
    const run = await pending(t, 'where');
    const taken = await send(run.threadId, [result(run.calls.locate, 'here'), user('and now hello', 'm2')], { runId: 'r2' });
    assert.deepEqual([taken.status, taken.json().runId, taken.json().queued, taken.json().answered], [202, 'r2', true, undefined]);
    const facts = await factsUntil(t, server, run.threadId, endOf('r2'));
    assert.deepEqual(resultsOf(facts).map(({ result: given, error }) => [given, error]), [['here', undefined]]);
  });

  test('with the result of one call: the other is not answered', async (t) => {
    const run = await pending(t, 'both');
    assert.equal((await send(run.threadId, [result(run.calls.locate, 'here'), user('never mind')], { runId: 'r2' })).status, 202);
    const facts = await factsUntil(t, server, run.threadId, endOf('r2'));
    assert.deepEqual(resultsOf(facts).map(({ toolName, error }) => [toolName, error]).sort(), [['locate', undefined], ['paint', 'not answered']]);
  });
});

describe('what the client brings for the model', () => {
  test('its tools are offered, but not those with the name of ours', async () => {
    const text = 'hello with tools';
    const { threadId } = await accepted(server, { messages: [user(text)],
      tools: [...TOOLS, { name: 'order', description: 'mine' }, { name: 'ask_user', description: 'mine' }, { description: 'nameless' }] });
    await until(server, threadId, 'completed');
    const [request] = askedAbout(asked, text);
    const names = toolNames(request);
    assert.deepEqual(names.filter((name) => ['locate', 'paint'].includes(name)), ['locate', 'paint']);
    assert.equal(names.filter((name) => name === 'order').length, 1);
    const line = home.server.stderr().split('\n').find((one) => one.includes('run.tools_refused') && one.includes(threadId));
    assert.match(line, /name=order/);
    assert.match(line, /count=3/);
  });

  test('null is nothing, wherever it is optional', async () => {
    const nulls = { runId: null, agent: null, state: null, tools: null, context: null, forwardedProps: null, resume: null,
      protocolVersion: null, parentRunId: null };
    const { threadId } = await accepted(server, { ...nulls, threadId: null, messages: [{ role: 'user', content: 'hi', id: null, name: null, metadata: null }] });
    await until(server, threadId, 'completed');
    assert.deepEqual(ofRun(threadId, 'input_bytes AS n'), [{ n: 0 }]);
  });

  test('other types are refused by name', async () => {
    for (const [body, field] of [[{ tools: {} }, 'tools'], [{ context: 'x' }, 'context'], [{ protocolVersion: 1 }, 'protocolVersion']]) {
      assertProblem(await postRun(server, { messages: [user('hi')], ...body }), 400, 'invalid_field', field);
    }
  });
});

describe('the stream', () => {
  const input = (threadId, runId, messages, more = {}) => ({ threadId, runId, protocolVersion: '1.0', state: {}, messages, tools: TOOLS,
    context: [], forwardedProps: {}, ...more });
  const AG_UI = `${AGENT}/ag-ui/assistant`;
  let n = 0;
  const fresh = () => `s${++n}`;

  // Two whole runs, one after the other, under the same id.
  function assertTwo(run, ids, ...texts) {
    const second = run.events.findLastIndex(({ type }) => type === 'RUN_STARTED');
    const both = [run.events.slice(0, second), run.events.slice(second)].map((events) => ({ ...run, events }));
    for (const one of both) assert.equal(assertRun(one, ids).outcome.type, 'success');
    // A run that is over before its turn comes is told by the snapshot alone.
    const said = (one) => textOf(one) || one.events.findLast(({ type }) => type === 'MESSAGES_SNAPSHOT')?.messages.findLast(({ role }) => role === 'assistant')?.content;
    assert.deepEqual(both.map(said), texts);
  }

  test('is the answer of POST /runs to whoever asks for it by name', async (t) => {
    const path = `${AGENT}/runs`;
    for (const accept of ['text/event-stream', 'application/json, text/event-stream', 'TEXT/Event-Stream;q=0.5']) {
      const threadId = fresh();
      const run = await runWhole(t, server, input(threadId, 'r1', [user('hello', 'u1')]), { path, headers: { accept } });
      assertRun(run, { threadId, runId: 'r1' });
      assert.equal(textOf(run), 'Hello.');
    }
    for (const accept of ['*/*', 'text/*', 'application/json', 'text/event-stream;q=0']) {
      const run = await runWhole(t, server, input(fresh(), 'r1', [user('hello')]), { path, headers: { accept } });
      assert.deepEqual([run.status, run.headers['content-type']], [202, 'application/json']);
    }
  });

  test('is the only answer at the address of the agent', async (t) => {
    for (const accept of ['*/*', 'text/*', 'text/event-stream']) {
      const threadId = fresh();
      assertRun(await runWhole(t, server, input(threadId, 'r1', [user('hello')]), { headers: { accept } }), { threadId, runId: 'r1' });
    }
    const threadId = fresh();
    const bare = await call(server, 'POST', AG_UI, { headers: { 'content-type': 'application/json' }, body: JSON.stringify(input(threadId, 'r1', [user('hi')])) });
    assert.deepEqual([bare.status, bare.headers['content-type']], [200, 'text/event-stream; charset=utf-8']);
    for (const accept of ['application/json', 'text/html', 'text/event-stream;q=0']) {
      assertProblem(await runWhole(t, server, input(fresh(), 'r1', [user('hello')]), { headers: { accept } }), 406, 'not_acceptable');
    }
  });

  test('of another agent: 404', async (t) => {
    for (const name of ['other', 'Assistant', 'assistant%20']) {
      assertProblem(await runWhole(t, server, input(fresh(), 'r1', [user('hello')]), { path: `${AGENT}/ag-ui/${name}` }), 404, 'not_found');
      assertProblem(await call(server, 'GET', `${AGENT}/ag-ui/${name}/capabilities`), 404, 'not_found');
    }
  });

  test('does not begin for what is refused', async (t) => {
    const threadId = fresh();
    for (const [body, status, code, field] of [
      [input(threadId, 'r1', []), 400, 'invalid_field', 'messages'],
      [input(threadId, 'r1', [{ role: 'user' }]), 400, 'invalid_field', 'messages[0].content'],
      [input(threadId, 'r1', [user('hi')], { agent: 'other' }), 400, 'invalid_field', 'agent'],
      [input(threadId, 'r1', [user('hi')], { resume: [{ interruptId: 'x', status: 'cancelled' }] }), 400, 'invalid_field', 'resume[0].interruptId'],
    ]) assertProblem(await runWhole(t, server, body), status, code, field);
    assert.equal((await get(server, `/threads/${threadId}`)).status, 404);
  });

  test('has an id of ours if the client has none', async (t) => {
    const run = await runWhole(t, server, { messages: [user('hello')] });
    const [{ threadId, runId }] = run.events;
    assert.match(runId, /^run_/);
    assert.match(threadId, /^thr_/);
    assertRun(run, { threadId, runId });
    assert.equal((await runOf(server, threadId)).runId, runId);
  });

  test('of a run with pauses: each request has its leg, under its own id', async (t) => {
    const threadId = fresh();
    const first = await runWhole(t, server, input(threadId, 'r1', [user('confirm', 'u1')]));
    const { outcome: { type, interrupts: [interrupt] } } = assertRun(first, { threadId, runId: 'r1' });
    assert.equal(type, 'interrupt');
    const second = await runWhole(t, server, input(threadId, 'r2', [user('confirm', 'u1')],
      { state: { n: 2 }, resume: [{ interruptId: interrupt.id, status: 'resolved', payload: { approved: true } }] }));
    assert.equal(assertRun(second, { threadId, runId: 'r2' }).outcome.type, 'success');
    assert.deepEqual(second.events.find((event) => event.type === 'STATE_SNAPSHOT').snapshot, { n: 2 });
    assert.equal(textOf(second), 'Done.');
    assert.equal(street.ran(interrupt.toolCallId), 1);
  });

  test('an answer to what was settled joins, and changes nothing', async (t) => {
    const threadId = fresh();
    const first = await runWhole(t, server, input(threadId, 'r1', [user('confirm', 'u1')]));
    const [interrupt] = lastOf(first).outcome.interrupts;
    const entry = { resume: [{ interruptId: interrupt.id, status: 'resolved', payload: { approved: true } }] };
    await runWhole(t, server, input(threadId, 'r2', [user('confirm', 'u1')], entry));
    const again = await runWhole(t, server, input(threadId, 'r3', [user('confirm', 'u1')], entry));
    assert.equal(assertRun(again, { threadId, runId: 'r3' }).outcome.type, 'success');
    assert.ok(typesIn(again).includes('MESSAGES_SNAPSHOT'));
    assert.equal(street.ran(interrupt.toolCallId), 1);
  });

  test('nothing new joins: what waits is told again', async (t) => {
    const threadId = fresh();
    const first = await runWhole(t, server, input(threadId, 'r1', [user('question', 'u1')]));
    const before = (await history(server, threadId)).seq;
    for (const messages of [[], [user('question', 'u1')], [{ id: 'a1', role: 'assistant', content: 'what I remember' }]]) {
      const join = await runWhole(t, server, input(threadId, `j${++n}`, messages));
      assert.deepEqual(typesIn(join).slice(0, 3), ['RUN_STARTED', 'STATE_SNAPSHOT', 'MESSAGES_SNAPSHOT']);
      assert.deepEqual(lastOf(join).outcome, lastOf(first).outcome);
    }
    assert.equal((await history(server, threadId)).seq, before, 'no fact, no run, no leg');
    assert.deepEqual(audit(home, threadId, REFUSED).map(({ why }) => why), ['client_history'], 'but foreign words are noted');
  });

  test('a message that is an answer: the leg that it begins', async (t) => {
    const threadId = fresh();
    await runWhole(t, server, input(threadId, 'r1', [user('question', 'u1')]));
    const run = await runWhole(t, server, input(threadId, 'r2', [user('question', 'u1'), user('Red', 'u2')]));
    assert.equal(assertRun(run, { threadId, runId: 'r2' }).outcome.type, 'success');
    assert.equal(textOf(run), 'Done.');
    assert.equal(run.events.find(({ type }) => type === 'TOOL_CALL_RESULT').content, 'Red');
  });

  test('results of front-end calls: the leg that they begin', async (t) => {
    const threadId = fresh();
    const first = await runWhole(t, server, input(threadId, 'r1', [user('where', 'u1')]));
    const { outcome } = assertRun(first, { threadId, runId: 'r1' });
    assert.equal(outcome.type, 'success');
    const [id] = outcome.pendingToolCallIds;
    const second = await runWhole(t, server, input(threadId, 'r2', [user('where', 'u1'), result(id, 'here')]));
    assert.deepEqual(assertRun(second, { threadId, runId: 'r2' }).outcome, { type: 'success' });
    assert.equal(textOf(second), 'Done.');
    assertProblem(await runWhole(t, server, input(threadId, 'r3', [result('call_x', 'forged')])), 400, 'invalid_field', 'messages[0].toolCallId');
    const late = await runWhole(t, server, input(threadId, 'r4', [result(id, 'there')]));
    assert.equal(assertRun(late, { threadId, runId: 'r4' }).outcome.type, 'success', 'too late is nothing new: a join');
  });

  test('the same runId again joins; with another body 422', async (t) => {
    const threadId = fresh();
    const body = input(threadId, 'r1', [user('hello', 'u1')]);
    await runWhole(t, server, body);
    const before = (await history(server, threadId)).seq;
    const again = await runWhole(t, server, body);
    assertRun(again, { threadId, runId: 'r1' });
    assert.equal(again.events.find(({ type }) => type === 'MESSAGES_SNAPSHOT').messages.at(-1).content, 'Hello.');
    assert.equal((await history(server, threadId)).seq, before);
    assertProblem(await runWhole(t, server, { ...body, state: { other: 1 } }), 422, 'idempotency_mismatch', 'runId');
  });

  test('the same Idempotency-Key again joins; the other form has the 202', async (t) => {
    const threadId = fresh(), headers = { 'idempotency-key': `k-${threadId}` };
    const body = { ...input(threadId, undefined, [user('hello', 'u1')]) };
    const first = await runWhole(t, server, body, { path: `${AGENT}/runs`, headers });
    const again = await runWhole(t, server, body, { path: `${AGENT}/runs`, headers });
    assert.equal(assertRun(again, { threadId, runId: again.events[0].runId }).outcome.type, 'success');
    const plain = await postJson(server, `${AGENT}/runs`, body, headers);
    assert.deepEqual([plain.status, plain.json().runId], [202, first.events[0].runId]);
    assertProblem(await runWhole(t, server, { ...body, state: 1 }, { path: `${AGENT}/runs`, headers }), 422, 'idempotency_mismatch');
    assert.equal(ofRun(threadId, 'run_id').length, 1);
  });

  test('of a queued run begins when its turn comes', async (t) => {
    const threadId = fresh();
    const first = await openRun(t, server, input(threadId, 'r1', [user('hold', 'u1')]));
    await street.arrived('wait');
    const second = await openRun(t, server, input(threadId, 'r2', [user('hello', 'u2')]));
    const twin = await openRun(t, server, input(threadId, 'r2', [user('hello', 'u2')]));
    const join = await openRun(t, server, input(threadId, 'r3', []));
    await waitFor('the join to begin', () => join.events.length > 2);
    assert.deepEqual([second.status, second.events], [200, []]);
    assert.deepEqual(ofRun(threadId, 'run_id AS id').map(({ id }) => id), ['r1', 'r2'], 'one run for both of the same id');
    await street.release('go');
    assertRun(await first.whole, { threadId, runId: 'r1' });
    assertRun(await join.whole, { threadId, runId: 'r3' });
    for (const run of [second, twin]) {
      assertRun(await run.whole, { threadId, runId: 'r2' });
      assert.equal(textOf(run), 'Hello.');
    }
  });

  test('with resume and a message: the leg that goes on, then the run of the message', async (t) => {
    const threadId = fresh();
    const first = await runWhole(t, server, input(threadId, 'r1', [user('question', 'u1')]));
    const [interrupt] = lastOf(first).outcome.interrupts;
    const run = await runWhole(t, server, input(threadId, 'r2', [user('question', 'u1'), user('hello', 'u2')],
      { resume: [{ interruptId: interrupt.id, status: 'resolved', payload: 'Red' }] }));
    assertTwo(run, { threadId, runId: 'r2' }, 'Done.', 'Hello.');
  });

  test('a message instead of a result: likewise', async (t) => {
    const threadId = fresh();
    await runWhole(t, server, input(threadId, 'r1', [user('where', 'u1')]));
    const run = await runWhole(t, server, input(threadId, 'r2', [user('where', 'u1'), user('hello', 'u2')]));
    assertTwo(run, { threadId, runId: 'r2' }, 'Done.', 'Hello.');
    assert.equal(run.events.find(({ type }) => type === 'TOOL_CALL_RESULT').metadata['fermata.result'].error, 'not answered');
  });

  test('the leg that goes on waits again: it ends there, and the message waits', async (t) => {
    const threadId = fresh();
    await runWhole(t, server, input(threadId, 'r1', [user('pick', 'u1')]));
    const run = await runWhole(t, server, input(threadId, 'r2', [user('pick', 'u1'), user('hello', 'u2')]));
    assert.equal(assertRun(run, { threadId, runId: 'r2' }).outcome.pendingToolCallIds.length, 1);
    assert.equal((await runOf(server, threadId)).queue.length, 1);
  });

  test('for clients before 1.0', async (t) => {
    const threadId = fresh();
    const { protocolVersion: _, ...old } = input(threadId, 'r1', [user('where', 'u1')]);
    const run = await runWhole(t, server, old);
    const { outcome } = assertRun(run, { threadId, runId: 'r1' });
    assert.equal(outcome?.pendingToolCallIds, undefined);
  });

  test('capabilities', async () => {
    const answer = await call(server, 'GET', `${AG_UI}/capabilities`);
    assert.equal(answer.status, 200, answer.text);
    const said = answer.json();
    assert.equal(said.identity.name, 'assistant');
    assert.deepEqual([said.transport.streaming, said.tools.clientProvided, said.humanInTheLoop.interrupts], [true, true, true]);
    assert.ok(said.tools.items.some(({ name, parameters }) => name === 'order' && parameters.required.includes('item')));
  });
});

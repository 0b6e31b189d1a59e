// SPDX-License-Identifier: Apache-2.0
//
// Buttons of cards. What a press does comes from the stored card alone; it happens once, through policy and journal, and
// touches nothing that is open. forgery.test.mjs has the presses that somebody made up.

import assert from 'node:assert/strict';
import { Agent, request } from 'node:http';
import { after, before, describe, test } from 'node:test';

import { answer, audit, execute, inbox, interaction, REFUSED, rows, startAsking, until, waiting } from './asking.mjs';
import { button, card, cardOf, payloadButton, press, pressed, shown, toolButton } from './buttons.mjs';
import { assertProblem, call, postJson } from './home.mjs';
import { approve, ask, askedAbout, ended, factsUntil, finished, ofType, order, resultsOf, settle, startPlace, tool } from './people.mjs';
import { accepted, AGENT, endOf, history, postRun, runOf, typesOf, user, waitFor } from './talk.mjs';

const TEA = { item: 'tea', count: 2 };
const KINDS = {
  Go: { type: 'navigation', path: '/orders', params: { id: 1 } },
  Link: { type: 'url', url: 'https://example.org/', target: '_blank' },
  Copy: { type: 'copy', content: ' as it is ', successMessage: 'Copied' },
};
const CARD = card(
  ...Object.entries(KINDS).map(([label, { type, ...fields }]) => button(label, type, fields)),
  button('Tell', 'event', { event: 'refresh "now"', payload: { a: [1, null], n: 1.50 } }),
  button('Ring', 'event', { event: 'ring' }),
  toolButton('Look', 'look', { reply: { found: 1 } }),
  toolButton('Nothing', 'look'),
  toolButton('Order tea', 'order', TEA),
  toolButton('Wrong', 'order', { item: 'tea', count: 2000 }),
  toolButton('Hold', 'ship', { until: 'later' }),
  payloadButton('Say', {}),
  payloadButton('Data', { room: '红', n: 1.50 }),
  button('Submit', 'payload', { payload: { to: 'a place' }, submitTo: '/api/v1/other' }),
  toolButton('Off', 'order', TEA, { disabled: true }),
  toolButton('Ask', 'ask_user', { question: 'Me?' }),
  toolButton('Gone', 'no_such_tool', {}),
);
const CHOICES = card(payloadButton('Red', { choice: 'c1' }), payloadButton('Blue', { choice: 'Blue' }), payloadButton('Green', { answer: 'Green' }),
  payloadButton('Mixed', { color: ['red', 'blue'] }));
const shows = (match, hints) => ({ match, turns: [{ text: 'Here.', calls: [tool('show_card', hints)] }] });
const LINES = [
  shows('^card', CARD),
  { match: '^made', turns: [{ calls: [tool('show', { hints: CHOICES })] }, { text: 'Made.' }] },
  { match: '^buy', turns: [{ calls: [order('milk')] }, { text: 'Bought.' }] },
  { match: '^pick', turns: [{ calls: [ask('Which room?', { choices: ['Red', 'Blue'], allow_freeform: false })] }, { text: 'Picked.' }] },
  { match: '^open', turns: [{ calls: [ask('What?')] }, { text: 'Heard.' }] },
  { match: '^slow', turns: [{ calls: [tool('wait', { until: 'slow' })] }, { text: 'Slow.' }] },
  { turns: [{ text: 'Hello.' }] },
];

let home, server, street, asked;
const cleanUp = [];
before(async () => {
  ({ home, street, asked } = await startPlace({ after: (fn) => cleanUp.unshift(fn) }, LINES, { assistant: { policy: { ship: 'allow' } } }));
  server = home.server;
});
after(async () => {
  for (const fn of cleanUp) await fn();
});

const models = () => asked().length;
const users = async (threadId) => (await history(server, threadId)).messages.filter(({ role }) => role === 'user');
const runsOf = (threadId, place = home) => rows(place, `SELECT run_id AS runId, status FROM runs
  WHERE thread=(SELECT id FROM threads WHERE thread_id='${threadId}') ORDER BY id`);
const refusals = (threadId) => audit(home, threadId, REFUSED).map(({ why }) => why);

describe('what the client does', () => {
  test('is told as it was stored, and nothing else happens', async (t) => {
    const made = await shown(t, server, 'card');
    const before = (await history(server, made.threadId)).seq;
    for (const [label, action] of Object.entries(KINDS)) {
      for (let i = 0; i < 2; i++) {
        const told = await press(server, made, made.ids[label]);
        assert.equal(told.status, 200, told.text);
        assert.deepEqual(told.json(), { action });
      }
    }
    assert.equal((await history(server, made.threadId)).seq, before);
    assert.equal(runsOf(made.threadId).length, 1);
  });
});

describe('an event', () => {
  for (const [label, text] of [['Tell', 'Tell\n{"event":"refresh \\"now\\"","payload":{"a":[1,null],"n":1.5}}'], ['Ring', 'Ring\n{"event":"ring"}']]) {
    test(`reaches the agent: ${label}`, async (t) => {
      const made = await shown(t, server, 'card'), asks = models();
      const start = await pressed(server, made, made.ids[label]);
      assert.match(start.runId, /^act_[0-9a-z]{26}$/);
      const facts = await factsUntil(t, server, made.threadId, endOf(start.runId), { after: start.seq });
      const { message } = facts[0].data;
      assert.deepEqual([message.role, message.content], ['user', text]);
      assert.deepEqual(message.metadata.action, { messageId: made.messageId, actionId: made.ids[label] });
      assert.equal(models(), asks + 1, 'the model is asked');
      assert.deepEqual(JSON.parse((await press(server, made, made.ids[label])).text), start, 'once for ever');
    });
  }

  test('answers nothing that is open: it waits its turn', async (t) => {
    const made = await shown(t, server, 'card');
    await postRun(server, { threadId: made.threadId, messages: [user('buy')] });
    const open = await waitFor('the approval', async () => (await inbox(server, `?threadId=${made.threadId}`)).interactions[0]);
    const start = await pressed(server, made, made.ids.Ring);
    assert.equal(start.queued, true);
    assert.equal((await interaction(server, open.interactionId)).status, 'open');
  });
});

describe('a tool', () => {
  test('is called with the stored arguments, without a model', async (t) => {
    const made = await shown(t, server, 'card'), asks = models();
    const start = await pressed(server, made, made.ids.Look);
    assert.deepEqual(Object.keys(start), ['taskId', 'threadId', 'runId', 'created', 'seq', 'eventsUrl']);
    assert.match(start.runId, /^act_[0-9a-z]{26}$/);
    assert.equal(start.created, false);
    const facts = await factsUntil(t, server, made.threadId, endOf(start.runId), { after: start.seq });
    assert.deepEqual(typesOf(facts), ['message.added', 'run.started', 'step.start', 'text.message.end', 'tool.call', 'step.finish',
      'step.start', 'tool.call.result', 'step.finish', 'run.finished']);
    assert.deepEqual(facts.at(-1).data.outcome, 'completed');
    assert.deepEqual(resultsOf(facts)[0].result, { found: 1 });
    const { message } = facts[0].data;
    assert.deepEqual([message.role, message.content], ['user', 'Look']);
    assert.deepEqual(message.metadata, { run_id: start.runId, task_id: start.taskId, action: { messageId: made.messageId, actionId: made.ids.Look } });
    assert.equal(models(), asks, 'nobody asked a model');
    assert.deepEqual(street.visits.findLast(({ house }) => house === 'look').args, { reply: { found: 1 } });
  });

  test('without params gets none', async (t) => {
    const made = await shown(t, server, 'card');
    const { runId, seq } = await pressed(server, made, made.ids.Nothing);
    const facts = await factsUntil(t, server, made.threadId, endOf(runId), { after: seq });
    assert.deepEqual(ofType(facts, 'tool.call')[0].args, {});
    assert.equal(resultsOf(facts)[0].result, 'nothing');
  });

  test('that writes waits for its approval, with a binding and a journal', async (t) => {
    const made = await shown(t, server, 'card'), before = street.ran('order');
    const { runId } = await pressed(server, made, made.ids['Order tea']);
    await until(server, made.threadId, 'waiting');
    const [confirm] = (await inbox(server, `?threadId=${made.threadId}`)).interactions;
    assert.deepEqual([confirm.type, confirm.runId, JSON.parse(confirm.pendingTool.argsJson)], ['confirm', runId, TEA]);
    assert.ok(confirm.binding);
    assert.equal(street.ran('order'), before);
    await approve(server, confirm);
    await ended(server, made.threadId);
    assert.equal(street.ran(confirm.toolCallId), 1);
    const trail = rows(home, `SELECT action, why FROM audit WHERE call_id='${confirm.toolCallId}' ORDER BY n`);
    assert.deepEqual(trail.map(({ action }) => action), [0, 1, 3, 4], 'opened, resolved, started, ended');
  });

  // name, how it is refused, whether a model has to hear of it
  for (const [name, refuse, heard] of [
    ['a message', (threadId) => accepted(server, { threadId, messages: [user('No, three')] }), true],
    ['a comment', (_, { interactionId }) => settle(server, interactionId, { decision: 'reject', comment: 'No, three' }), true],
    ['a response', (_, { interactionId }) => settle(server, interactionId, { decision: 'respond', comment: 'No, three' }), true],
    ['no words', (_, { interactionId }) => settle(server, interactionId, { decision: 'reject' }), false],
  ]) {
    test(`that is refused with ${name} ${heard ? 'asks' : 'does not ask'} the model`, async (t) => {
      const made = await shown(t, server, 'card'), before = street.ran('order'), asks = models();
      const { runId, seq } = await pressed(server, made, made.ids['Order tea']);
      await until(server, made.threadId, 'waiting');
      const [confirm] = (await inbox(server, `?threadId=${made.threadId}`)).interactions;
      await refuse(made.threadId, confirm);
      await ended(server, made.threadId);
      const facts = await factsUntil(t, server, made.threadId, finished('completed'), { after: seq });
      assert.equal(facts.at(-1).runId, runId);
      assert.equal(models() - asks, heard ? 1 : 0);
      const said = ofType(facts, 'text.message.end').map(({ content }) => content);
      assert.deepEqual(said, heard ? ['', 'Hello.'] : ['']);
      if (heard) assert.match(asked().at(-1).messages.at(-1).text, /No, three$/);
      assert.equal(street.ran('order'), before, 'it did not run');
    });
  }

  test('that is refused with many words has one line in history; the model gets all of them', async (t) => {
    const made = await shown(t, server, 'card'), comment = `No:\n${'three '.repeat(100)}please`;
    await pressed(server, made, made.ids['Order tea']);
    await until(server, made.threadId, 'waiting');
    const [confirm] = (await inbox(server, `?threadId=${made.threadId}`)).interactions;
    await settle(server, confirm.interactionId, { decision: 'reject', comment });
    await ended(server, made.threadId);
    const { content } = (await history(server, made.threadId)).messages.findLast(({ role }) => role === 'tool');
    assert.ok([...content].length <= 200 && content.endsWith('…') && !content.includes('\n'), content);
    assert.ok(asked().at(-1).messages.at(-1).text.endsWith(comment));
  });

  test('with arguments that do not fit fails, visibly, and nothing is repeated', async (t) => {
    const made = await shown(t, server, 'card'), asks = models();
    const { runId, seq } = await pressed(server, made, made.ids.Wrong);
    const facts = await factsUntil(t, server, made.threadId, endOf(runId), { after: seq });
    assert.deepEqual(resultsOf(facts).map(({ error }) => error), ['invalid_arguments']);
    assert.equal(facts.at(-1).type, 'run.finished');
    assert.equal(models(), asks);
  });

  test('is in the context of the next message', async (t) => {
    const made = await shown(t, server, 'card');
    const { runId, seq } = await pressed(server, made, made.ids.Look);
    await factsUntil(t, server, made.threadId, endOf(runId), { after: seq });
    const text = `after the press ${made.threadId}`;
    await accepted(server, { threadId: made.threadId, messages: [user(text)] });
    await ended(server, made.threadId);
    const [{ messages }] = askedAbout(asked, text);
    assert.ok(messages.some((message) => message.text === 'Look'), JSON.stringify(messages));
  });

  for (const [label, why] of [['Ask', 'action_tool'], ['Gone', 'action_tool'], ['Off', 'action_disabled']]) {
    test(`that may not be called: ${label}`, async (t) => {
      const made = await shown(t, server, 'card');
      assertProblem(await press(server, made, made.ids[label]), 403, 'forbidden', 'actionId');
      assert.deepEqual(refusals(made.threadId), [why]);
      assert.equal(runsOf(made.threadId).length, 1);
    });
  }
});

describe('a payload', () => {
  const TEXTS = { Say: 'Say\n{}', Data: 'Data\n{"room":"红","n":1.5}', Submit: 'Submit\n{"to":"a place"}' };
  for (const [label, text] of Object.entries(TEXTS)) {
    test(`is a message on an idle thread: ${label}`, async (t) => {
      const made = await shown(t, server, 'card');
      const { runId, seq } = await pressed(server, made, made.ids[label]);
      const facts = await factsUntil(t, server, made.threadId, endOf(runId), { after: seq });
      assert.deepEqual(facts.at(-1).data.outcome, 'completed');
      const { content, metadata } = (await users(made.threadId)).at(-1);
      assert.deepEqual([content, metadata.action], [text, { messageId: made.messageId, actionId: made.ids[label] }]);
      assert.equal(ofType(facts, 'text.message.end')[0].content, 'Hello.', 'the model has answered');
    });
  }

  test('answers the question that the call of its card asked, and no other', async (t) => {
    const place = await startPlace(t, LINES);
    const rooms = [['Red', 'Red'], ['Blue', 'Blue'], ['Mixed', '{"color":["red","blue"]}'], ['Green', null]];
    for (const [index, [label, text]] of rooms.entries()) {
      const threadId = `own${index}`;
      const made = await shown(t, place.home.server, 'made', { threadId });
      const { open: [question], runId } = await waiting(place.home.server, label === 'Mixed' ? 'open' : 'pick', { threadId, runId: 'asks' });
      await place.home.stop(); // no tool of today asks and shows in one call: the row says that this one did
      execute(place.home, `UPDATE messages SET metadata=json_set(metadata, '$.tool_call_id', '${question.toolCallId}') WHERE id='${made.messageId}'`);
      await place.home.start();
      const now = place.home.server;
      if (!text) {
        const refused = await press(now, made, made.ids[label]);
        assert.deepEqual([refused.status, refused.json().code, refused.json().field], [400, 'invalid_field', 'answer']);
        assert.equal(refused.json().interaction.status, 'open');
        assert.equal((await interaction(now, question.interactionId)).status, 'open');
        continue;
      }
      const first = await press(now, made, made.ids[label]);
      assert.equal(first.status, 202, first.text);
      assert.deepEqual([first.json().runId, first.json().answered], [runId, [question.interactionId]]);
      await ended(now, threadId);
      const settled = await interaction(now, question.interactionId);
      assert.deepEqual([settled.status, settled.via], ['resolved', 'card']);
      const { messages } = await history(now, threadId);
      assert.equal(messages.findLast(({ toolName }) => toolName === 'ask_user').content, text);
      assert.equal(messages.filter(({ role }) => role === 'user').length, 2, 'an answer is no message');
      assert.equal((await press(now, made, made.ids[label])).text, first.text, 'pressed again: the same bytes');
      assert.equal(runsOf(threadId, place.home).length, 2);
    }
  });

  test('does not answer a question whose time is over', async (t) => {
    const place = await startPlace(t, LINES);
    const made = await shown(t, place.home.server, 'made', { threadId: 'late' });
    const { open: [question] } = await waiting(place.home.server, 'pick', { threadId: 'late', runId: 'asks' });
    await place.home.stop();
    execute(place.home, `UPDATE messages SET metadata=json_set(metadata, '$.tool_call_id', '${question.toolCallId}') WHERE id='${made.messageId}';
      UPDATE interactions SET expires=1 WHERE id='${question.interactionId}'`);
    await place.home.start();
    const given = await press(place.home.server, made, made.ids.Red);
    if (given.status === 410) assert.equal(given.json().code, 'expired'); // the clock may have been first: then it is a message
    else assert.deepEqual([given.status, given.json().answered], [202, undefined]);
    assert.equal((await interaction(place.home.server, question.interactionId)).status, 'expired');
  });
});

describe('while something is open', () => {
  // name, message that opens it, what is open
  for (const [word, type] of [['buy', 'confirm'], ['pick', 'ask_user'], ['open', 'ask_user']]) {
    for (const label of ['Look', 'Say', 'Data']) {
      test(`${label} beside a ${type} (${word}) waits its turn`, async (t) => {
        const made = await shown(t, server, 'card');
        const { open: [asking] } = await waiting(server, word, { threadId: made.threadId, runId: 'asks' });
        const start = await pressed(server, made, made.ids[label]);
        assert.equal(start.queued, true);
        const run = await runOf(server, made.threadId);
        assert.deepEqual([run.runId, run.status, run.queue.length], ['asks', 'waiting', 1]);
        assert.equal((await interaction(server, asking.interactionId)).status, 'open');
        const queued = await factsUntil(t, server, made.threadId, ({ type: name }) => name === 'run.queued', { after: start.seq });
        assert.equal(queued[0].runId, start.runId);
        assert.deepEqual(queued[0].data.message.metadata.action.actionId, made.ids[label]);
        await answer(server, asking.interactionId, type === 'confirm' ? { decision: 'reject' } : { answer: 'Red' });
        const facts = await factsUntil(t, server, made.threadId, endOf(start.runId), { after: start.seq });
        assert.equal(facts.at(-1).data.outcome, 'completed');
        const own = facts.filter(({ runId }) => runId === start.runId);
        assert.equal(ofType(own, 'tool.call').length, label === 'Look' ? 1 : 0);
      });
    }
  }

  test('a press waits behind a run that works', async (t) => {
    const made = await shown(t, server, 'card');
    const slow = await accepted(server, { threadId: made.threadId, messages: [user('slow')] });
    await street.arrived('wait');
    const start = await pressed(server, made, made.ids.Look);
    assert.equal(start.queued, undefined, 'nobody has to decide anything');
    assert.equal((await runOf(server, made.threadId)).runId, slow.runId);
    await street.release('slow');
    const facts = await factsUntil(t, server, made.threadId, endOf(start.runId), { after: start.seq });
    assert.deepEqual(resultsOf(facts.filter(({ runId }) => runId === start.runId))[0].result, { found: 1 });
  });

  test('a queued press survives a restart', async (t) => {
    const place = await startPlace(t, LINES);
    const made = await shown(t, place.home.server, 'card');
    const { open: [asking] } = await waiting(place.home.server, 'buy', { threadId: made.threadId, runId: 'asks' });
    const first = await press(place.home.server, made, made.ids.Look);
    await place.home.restart();
    assert.equal((await press(place.home.server, made, made.ids.Look)).text, first.text);
    await answer(place.home.server, asking.interactionId, { decision: 'reject' });
    const facts = await factsUntil(t, place.home.server, made.threadId, endOf(first.json().runId));
    assert.deepEqual(resultsOf(facts).at(-1).result, { found: 1 });
    assert.equal(place.street.ran('look'), 1);
  });

  for (const [busy, status] of [['reject', 409], ['interrupt', 202]]) {
    test(`with busy: ${busy}`, async (t) => {
      const place = await startPlace(t, LINES, { assistant: { busy } });
      const now = place.home.server;
      const made = await shown(t, now, 'card');
      const { open: [asking] } = await waiting(now, 'buy', { threadId: made.threadId, runId: 'asks' });
      const given = await press(now, made, made.ids.Look);
      assert.equal(given.status, status, given.text);
      if (status === 409) assertProblem(given, 409, 'busy');
      assert.equal((await interaction(now, asking.interactionId)).status, 'open');
      await answer(now, asking.interactionId, { decision: 'reject' });
      await waitFor('the run to end', async () => (await runOf(now, made.threadId)).status === 'completed');
      const { runId } = await pressed(now, made, made.ids.Look); // a refused press may be tried again
      await factsUntil(t, now, made.threadId, endOf(runId));
      assert.equal(place.street.ran('look'), 1);
    });
  }

  test('a run that works is not interrupted', async (t) => {
    const place = await startPlace(t, LINES, { assistant: { busy: 'interrupt' } });
    const made = await shown(t, place.home.server, 'card');
    const slow = await accepted(place.home.server, { threadId: made.threadId, messages: [user('slow')] });
    await place.street.arrived('wait');
    const { runId } = await pressed(place.home.server, made, made.ids.Say);
    await place.street.release('slow');
    const facts = await factsUntil(t, place.home.server, made.threadId, endOf(runId));
    assert.equal(facts.find(endOf(slow.runId)).data.outcome, 'completed');
  });
});

describe('pressed again', () => {
  test('the first answer, byte for byte, and no second run', async (t) => {
    const made = await shown(t, server, 'card');
    const first = await press(server, made, made.ids.Look);
    await ended(server, made.threadId);
    const { seq } = await history(server, made.threadId);
    for (const headers of [{}, { 'idempotency-key': `a-${made.messageId}` }, { 'idempotency-key': `a-${made.messageId}` }]) {
      const again = await press(server, made, made.ids.Look, headers);
      assert.deepEqual([again.status, again.text], [202, first.text]);
    }
    assert.equal((await history(server, made.threadId)).seq, seq);
    assert.equal(runsOf(made.threadId).length, 2);
  });

  test('the same button of another card is another one', async (t) => {
    const made = await shown(t, server, 'card');
    const first = await pressed(server, made, made.ids.Look);
    await ended(server, made.threadId);
    const other = await shown(t, server, 'card again', { threadId: made.threadId });
    assert.notEqual(other.messageId, made.messageId);
    assert.notEqual((await pressed(server, other, other.ids.Look)).runId, first.runId);
  });

  test('an Idempotency-Key of another press is refused', async (t) => {
    const made = await shown(t, server, 'card');
    const headers = { 'idempotency-key': `k-${made.messageId}` };
    assert.equal((await press(server, made, made.ids.Go, headers)).status, 200);
    assert.equal((await press(server, made, made.ids.Go, headers)).status, 200);
    assertProblem(await press(server, made, made.ids.Look, headers), 422, 'idempotency_mismatch');
  });

  test('a runId that somebody took before is not this press', async (t) => {
    const made = await shown(t, server, 'card'), other = await shown(t, server, 'card');
    const { runId } = await pressed(server, made, made.ids.Look);
    await ended(server, made.threadId);
    assertProblem(await postRun(server, { threadId: made.threadId, runId, messages: [user('hello')] }), 422, 'idempotency_mismatch', 'runId');
    await accepted(server, { threadId: other.threadId, runId, messages: [user('hello')] });
    assert.notEqual((await pressed(server, other, other.ids.Look)).runId, runId, 'made from the message, which is another');
  });

  test('1,000 presses at once by 50 connections are one', async (t) => {
    const made = await shown(t, server, 'card'), before = street.ran('ship');
    const agent = new Agent({ keepAlive: true, maxSockets: 50 });
    t.after(() => agent.destroy());
    const body = JSON.stringify({ threadId: made.threadId, messageId: made.messageId, actionId: made.ids.Hold });
    const one = () => new Promise((done, failed) => {
      const sent = request({ host: server.host, port: server.port, method: 'POST', path: `${AGENT}/actions`, agent,
        headers: { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) } }, (response) => {
        let text = '';
        response.setEncoding('utf8').on('data', (piece) => { text += piece; }).on('end', () => done(`${response.statusCode} ${text}`));
      });
      sent.on('error', failed);
      sent.end(body);
    });
    const answers = new Set(await Promise.all(Array.from({ length: 1000 }, one)));
    assert.equal(answers.size, 1, [...answers].slice(0, 3).join('\n'));
    assert.match([...answers][0], /^202 /);
    await street.release('later');
    await ended(server, made.threadId);
    assert.equal(street.ran('ship'), before + 1);
    assert.equal(runsOf(made.threadId).length, 2);
    assert.equal((await users(made.threadId)).length, 2);
  });

  test('after the thread was deleted there is nothing', async (t) => {
    const made = await shown(t, server, 'card');
    const headers = { 'idempotency-key': `d-${made.messageId}` };
    assert.equal((await press(server, made, made.ids.Look, headers)).status, 202);
    await ended(server, made.threadId);
    assert.equal((await call(server, 'DELETE', `${AGENT}/threads/${made.threadId}`)).status, 204);
    assertProblem(await press(server, made, made.ids.Look, headers), 404, 'not_found');
    await accepted(server, { threadId: made.threadId, messages: [user('hello')] });
    assertProblem(await press(server, made, made.ids.Look), 404, 'not_found');
  });
});

describe('cards', () => {
  test('of a tool row, from object storage', async (t) => {
    const made = await shown(t, server, 'made');
    assert.equal(made.row.role, 'tool');
    const { runId, seq } = await pressed(server, made, made.ids.Blue);
    const facts = await factsUntil(t, server, made.threadId, endOf(runId), { after: seq });
    assert.equal(facts[0].data.message.content, 'Blue\n{"choice":"Blue"}');
  });

  test('of a tool row whose payload is gone', async (t) => {
    const place = await startPlace(t, LINES);
    const made = await shown(t, place.home.server, 'made');
    await place.home.stop();
    execute(place.home, `UPDATE messages SET metadata=json_set(metadata, '$.storage_path', 'aa/nothing') WHERE id='${made.messageId}'`);
    await place.home.start();
    assertProblem(await press(place.home.server, made, made.ids.Blue), 404, 'not_found', 'actionId');
    assert.deepEqual(audit(place.home, made.threadId, REFUSED).map(({ why }) => why), ['action_unknown']);
  });

  test('the zone of the person goes along', async (t) => {
    const zone = 'Asia/Tokyo', text = `card ${Date.now()}`;
    const { threadId } = await accepted(server, { messages: [user(text)], forwardedProps: { timezone: zone } });
    await ended(server, threadId);
    const made = await cardOf(server, threadId);
    const { runId } = await pressed(server, made, made.ids.Say);
    await ended(server, threadId);
    const [{ state }] = rows(home, `SELECT count(*) AS state FROM runs WHERE run_id='${runId}' AND input LIKE '%${zone}%'`);
    assert.equal(state, 1);
  });
});

describe('a body', () => {
  const NONE = { threadId: 'none', messageId: 'none', actionId: 'a0' };
  for (const [name, body, field] of [
    ['without threadId', { messageId: 'm', actionId: 'a0' }, 'threadId'],
    ['without messageId', { threadId: 't', actionId: 'a0' }, 'messageId'],
    ['without actionId', { threadId: 't', messageId: 'm' }, 'actionId'],
    ['with a number', { ...NONE, actionId: 0 }, 'actionId'],
    ['with nothing in it', { ...NONE, threadId: '' }, 'threadId'],
    ['with null', { ...NONE, messageId: null }, 'messageId'],
    ['with more', { ...NONE, toolId: 'order' }, 'toolId'],
  ]) {
    test(name, async () => assertProblem(await postJson(server, `${AGENT}/actions`, body), 400, 'invalid_field', field));
  }
  test('that is a list', async () => assertProblem(await postJson(server, `${AGENT}/actions`, []), 400, 'invalid_field'));
  test('about nothing that is there', async () => assertProblem(await postJson(server, `${AGENT}/actions`, NONE), 404, 'not_found'));
});

test('the calendar\'s own buttons work from start to end', async (t) => {
  const meeting = { title: 'Review', start_time: '2030-01-31T15:00:00Z', end_time: '2030-01-31T16:00:00Z' };
  const lines = [{ match: '^book', turns: [{ calls: [tool('calendar_write', meeting)] }, { text: 'Done.' }] }, { turns: [{ text: 'Hello.' }] }];
  const place = await startAsking(t, { lines, config: 'agents: {assistant: {locale: en, policy: {calendar_write: allow}}}\n' });
  const made = await shown(t, place.server, 'book');
  const start = await pressed(place.server, made, made.ids.Delete);
  await until(place.server, made.threadId, 'waiting');
  const [confirm] = (await inbox(place.server)).interactions;
  assert.equal(confirm.pendingTool.toolName, 'calendar_delete');
  await approve(place.server, confirm);
  const facts = await factsUntil(t, place.server, made.threadId, finished('completed'), { after: start.seq });
  assert.equal(resultsOf(facts)[0].toolName, 'calendar_delete');
  assert.deepEqual(rows(place, 'SELECT id FROM calendar_events'), []);
});

// SPDX-License-Identifier: Apache-2.0
//
// One log, three encodings: a native stream, AG-UI by GET and by POST, and a WebSocket read the same thread. They see the same
// facts in the same order, and what is answered on one is settled on the others.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request } from 'node:http';
import { test } from 'node:test';

import { WebSocket } from 'ws';

import { within } from '../api/server.mjs';
import { AGENT, answer, factsOf, openEvents } from '../api/talk.mjs';
import { ask, order, startPlace, tool } from '../api/people.mjs';
import { CLIENTS, newThread, Tab } from './agui.mjs';
import { lint, parse } from './lint.mjs';

const READ_MS_MAX = 60_000;
const LINES = [
  { match: '^all', turns: [
    { reasoning: 'Let me see.', text: 'I look, wait, ask and order.', calls: [tool('look', { reply: 'seen' }), tool('wait', { until: 'go' }), ask('How long?'), ask('Where?'), order('tea')] },
    { text: 'All done, 好了。' }] },
  { match: '^break', turns: [{ text: 'In the end it works.', chunk: 4, fail: { at: 9, times: 1 } }] },
  { turns: [{ text: 'Hello.' }] },
];

// ---- readers ----

// Something that arrives piece by piece.
class Reader {
  list = [];
  #wake = () => {};

  put(one) {
    this.list.push(one);
    this.#wake();
  }

  async until(what, holds) {
    const seen = async () => {
      for (;;) {
        const found = this.list.find(holds);
        if (found) return found;
        await new Promise((resolve) => { this.#wake = resolve; });
      }
    };
    return within(READ_MS_MAX, what, seen());
  }
}

class Socket extends Reader {
  static async open(t, server, threadId) {
    const socket = new Socket();
    socket.ws = new WebSocket(`ws://${server.host}:${server.port}${AGENT}/ws`);
    t.after(() => socket.ws.terminate());
    socket.ws.on('message', (text) => socket.put(JSON.parse(text)));
    await within(READ_MS_MAX, 'the socket', once(socket.ws, 'open'));
    socket.threadId = threadId;
    await socket.ask({ type: 'subscribe', sessionId: threadId, after: 0 });
    return socket;
  }

  // Sends a frame, and gives what it is acknowledged with.
  async ask(frame) {
    const id = `f${this.list.length}-${frame.type}`;
    this.ws.send(JSON.stringify({ ...frame, id }));
    const said = await this.until(`the answer to ${frame.type}`, (one) => one.id === id);
    assert.equal(said.type, 'ack', JSON.stringify(said));
    return said.data;
  }

  get facts() {
    return this.list.filter(({ seq, type }) => seq !== undefined && type !== 'clarify_request');
  }
}

// GET format=ag-ui: leg after leg, until we hang up.
class Follower extends Reader {
  bytes = [];

  static async open(t, server, threadId) {
    const follower = new Follower();
    follower.threadId = threadId;
    const opened = new Promise((resolve, reject) => {
      const sent = request({ host: server.host, port: server.port, path: `${AGENT}/runs/${threadId}/events?format=ag-ui`, agent: false }, resolve);
      sent.on('error', reject);
      sent.end();
    });
    const response = await within(READ_MS_MAX, 'the stream', opened);
    assert.equal(response.statusCode, 200);
    t.after(() => response.destroy());
    response.on('error', () => {});
    response.on('data', (piece) => follower.take(piece));
    return follower;
  }

  take(piece) {
    this.bytes.push(piece);
    const events = parse(Buffer.concat(this.bytes), { open: true }, assert.fail);
    for (const event of events.slice(this.list.length)) this.put(event);
  }

  faults() {
    return lint(Buffer.concat(this.bytes), { profile: 'old', threadId: this.threadId, many: true, open: true });
  }
}

// ---- the same facts ----

// A fact as one line; null where AG-UI has no word for it.
function lineOfFact({ type, data }) {
  const rows = {
    'step.start': () => `step ${data.stepName} begins`, 'step.finish': () => `step ${data.stepName} ends`,
    'text.message.end': () => (data.content ? `text ${data.messageId} ${data.content}` : null),
    'reasoning.end': () => `reasoning ${data.content}`,
    'tool.call': () => `call ${data.toolCallId} ${data.toolName}`, 'tool.call.result': () => `result ${data.toolCallId} ${data.content}`,
    'run.started': () => 'run begins', 'run.finished': () => `run ends ${data.outcome}`, 'run.error': () => `run fails ${data.code}`,
    'message.added': () => null,
  };
  return rows[type] ? rows[type]() : `${type} ${JSON.stringify(data)}`;
}

// The facts that AG-UI shows: those of a leg.
function linesOfFacts(facts) {
  let leg = false;
  return facts.flatMap((fact) => {
    if (fact.type === 'run.started') leg = true;
    const line = leg ? lineOfFact(fact) : null;
    if (fact.type === 'run.finished' || fact.type === 'run.error') leg = false;
    return line ?? [];
  });
}

// What a client has seen and was not taken back. A list of messages says what is left, and what somebody who comes in the middle
// has of a message that grows.
function linesOfEvents(events) {
  const names = new Map(); // of calls
  const texts = new Map();
  const write = (id, delta) => texts.set(id, (texts.get(id) ?? '') + delta);
  let lines = []; // [line, id of the message that must not be taken back]
  const keep = (messages) => {
    const ids = new Set(messages.map(({ id }) => id));
    lines = lines.filter(([, id]) => id === undefined || ids.has(id));
    for (const { id, content } of messages) texts.set(id, content);
  };
  for (const event of events) {
    const { type, messageId, toolCallId } = event;
    const rows = {
      STEP_STARTED: () => [`step ${event.stepName} begins`], STEP_FINISHED: () => [`step ${event.stepName} ends`],
      TEXT_MESSAGE_CONTENT: () => void write(messageId, event.delta), REASONING_MESSAGE_CONTENT: () => void write(messageId, event.delta),
      TEXT_MESSAGE_END: () => [`text ${messageId} ${texts.get(messageId)}`, messageId],
      REASONING_MESSAGE_END: () => [`reasoning ${texts.get(messageId)}`, messageId],
      TOOL_CALL_START: () => void names.set(toolCallId, event.toolCallName), TOOL_CALL_END: () => [`call ${toolCallId} ${names.get(toolCallId)}`],
      TOOL_CALL_RESULT: () => [`result ${toolCallId} ${event.content}`],
      MESSAGES_SNAPSHOT: () => void keep(event.messages),
      RUN_STARTED: () => ['run begins'], RUN_ERROR: () => [`run fails ${event.code}`],
      RUN_FINISHED: () => [`run ends ${{ success: 'completed', interrupt: 'interrupted', cancelled: 'cancelled' }[event.outcome.type]}`],
      CUSTOM: () => [`${event.name.replace('fermata.', '')} ${JSON.stringify(event.value)}`],
    };
    const line = rows[type]?.();
    if (line) lines.push(line);
  }
  return lines.map(([line]) => line);
}

// Steps are closed for AG-UI at a pause, and opened again: those lines are left out where the log has none.
const withoutSteps = (lines) => lines.filter((line) => !line.startsWith('step '));

for (const client of CLIENTS) {
  test(`three dialects on one thread, with HttpAgent ${client.version}`, async (t) => {
    const { home: { server }, street } = await startPlace(t, LINES);
    const threadId = newThread();
    const native = await openEvents(t, server, threadId, { query: '?after=0' });
    const socket = await Socket.open(t, server, threadId);
    const follower = await Follower.open(t, server, threadId);
    const tab = new Tab(client, server, threadId);

    // A leg that is open while the first question is answered on the WebSocket.
    const turn = tab.write('all');
    const isRequest = ({ type, data }, n) => type === 'interaction.request' && data.question === n;
    const first = await socket.until('the first question', (frame) => isRequest(frame, 'How long?'));
    await socket.until('the second question', (frame) => isRequest(frame, 'Where?'));
    assert.ok(socket.list.some(({ type, data }) => type === 'clarify_request' && data.question === 'How long?'));
    await street.arrived('wait');
    await socket.ask({ type: 'clarify_response', sessionId: threadId, requestId: first.data.interactionId, answer: 'an hour' });

    const resolved = ({ type, name, value, data }) => (type === 'CUSTOM' ? name === 'fermata.interaction.resolved' && value : type === 'interaction.resolved' && data)
      ?.interactionId === first.data.interactionId;
    const told = [await follower.until('it by GET', resolved), await turn.until('it by POST', resolved), await socket.until('it on the socket', resolved)];
    await native.until(resolved);
    const [value] = told.map((one) => one.value ?? one.data);
    assert.deepEqual([value.status, value.text], ['resolved', 'an hour']);
    for (const one of told) assert.deepEqual(one.value ?? one.data, value);

    await street.release('go');
    await turn.end();
    assert.equal(turn.outcome, 'interrupt');
    assert.equal(tab.open.length, 2);

    // The second by the API, while nothing runs.
    const [second, approval] = tab.open;
    const ends = () => follower.list.filter(({ type }) => type === 'RUN_FINISHED').length;
    await answer(server, second.id, { answer: 'here' });
    await follower.until('the next leg to end', () => ends() === 2);

    // The approval by AG-UI.
    const last = await tab.run({ resume: [{ interruptId: second.id, status: 'resolved', payload: 'there' }, { interruptId: approval.id, status: 'resolved', payload: { approved: true } }] });
    assert.equal(last.outcome, 'success');
    assert.equal(street.ran('order'), 1);
    const settled = await socket.until('the approval', ({ type, data }) => type === 'interaction.resolved' && data.interactionId === approval.id);
    assert.deepEqual([settled.data.status, settled.data.answer.decision], ['resolved', 'approve']);

    // An attempt that breaks off, and a run begun on the socket.
    await tab.say('break');
    await socket.ask({ type: 'message', sessionId: threadId, content: 'hello' });
    const completed = ({ type, data }) => type === 'run.finished' && data.outcome === 'completed';
    await socket.until('all three runs', () => socket.facts.filter(completed).length === 3);
    await follower.until('all three runs', () => follower.list.filter(({ type, outcome }) => type === 'RUN_FINISHED' && outcome.type === 'success').length === 3);
    await native.until(({ seq }) => seq === socket.facts.at(-1).seq);

    const facts = factsOf(native.all);
    assert.deepEqual(facts.map(({ seq }) => seq), facts.map((_, i) => i + 1), 'every fact once');
    assert.deepEqual(socket.facts.map(({ sessionId, ...fact }) => ({ ...fact, threadId: sessionId })), facts, 'the socket has the same');
    assert.deepEqual(follower.faults(), []);
    const names = follower.list.filter(({ type }) => type === 'RUN_STARTED').map(({ runId }) => runId);
    assert.deepEqual(names.slice(0, 3), [turn.runId, `${turn.runId}-2`, last.runId], 'a leg is called as the request that began it');
    assert.deepEqual(withoutSteps(linesOfEvents(follower.list)), withoutSteps(linesOfFacts(facts)), 'AG-UI by GET has the same');
    for (const [one, leg] of [[turn, 1], [last, 3]]) {
      const begins = facts.findIndex(({ type, data }) => type === 'run.started' && data.leg === leg);
      const end = facts.findIndex(({ type }, i) => type === 'run.finished' && i > begins);
      assert.deepEqual(withoutSteps(linesOfEvents(one.events)), withoutSteps(linesOfFacts(facts.slice(begins, end + 1))), `AG-UI by POST has the same of leg ${leg}`);
    }
  });
}

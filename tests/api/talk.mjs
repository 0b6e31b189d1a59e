// SPDX-License-Identifier: Apache-2.0
//
// A conversation with the server: a scripted model, messages sent, and a reader of events that takes nothing on
// trust. The reader refuses any frame that is not to the letter, any gap or repetition among the facts, and any text
// that a client which only appends deltas would get wrong.

import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { request } from 'node:http';
import { join } from 'node:path';

import { call, Home, postJson } from './home.mjs';
import { within } from './server.mjs';

export const AGENT = '/api/v1/agent';
const EVENT_MS_MAX = 60_000;
const POLL_MS = 10;
const PREVIEWS = ['text.message.start', 'text.delta', 'reasoning.delta', 'message.discard', 'tool.call.start', 'tool.call.args', 'tool.progress'];
const FRAME = /^(?:id: (\d+)\n)?event: ([a-z.]+)\ndata: (.+)$/; // the dot: no line ends inside
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

export { TIME };
export const isPreview = (type) => PREVIEWS.includes(type);

// A server whose model says what the lines say: {home, server}. Ends with the test.
export async function startTalk(t, lines, env = {}) {
  const home = await Home.make(t);
  const script = join(home.data, 'script.jsonl');
  await writeFile(script, lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
  home.env = { FERMATA_MODEL_PROVIDER: 'scripted', FERMATA_SCRIPT: script, ...env };
  await home.start();
  return home;
}

export const user = (content, id) => ({ ...(id === undefined ? {} : { id }), role: 'user', content });

// Sends a message, or a whole RunAgentInput.
export function postRun(server, input, headers = {}) {
  const body = typeof input === 'string' ? { messages: [user(input)] } : input;
  return postJson(server, `${AGENT}/runs`, body, headers);
}

// The same, accepted: the 202's body.
export async function accepted(server, input, headers = {}) {
  const answer = await postRun(server, input, headers);
  assert.equal(answer.status, 202, answer.text);
  return answer.json();
}

export function get(server, path, headers = {}) {
  return call(server, 'GET', `${AGENT}${path}`, { headers });
}

async function getJson(server, path, headers) {
  const answer = await get(server, path, headers);
  assert.equal(answer.status, 200, answer.text);
  return answer.json();
}

export function history(server, threadId, query = '', headers = {}) {
  return getJson(server, `/runs/${threadId}/history${query}`, headers);
}

export function runOf(server, threadId, headers = {}) {
  return getJson(server, `/runs/${threadId}`, headers);
}

export function cancel(server, threadId, body, headers = {}) {
  if (body !== undefined) return postJson(server, `${AGENT}/runs/${threadId}/cancel`, body, headers);
  return call(server, 'POST', `${AGENT}/runs/${threadId}/cancel`, { headers });
}

// Answers an interaction; `answer` expects that it is taken, and gives it as it stands then.
export function postAnswer(server, id, body, headers = {}) {
  return postJson(server, `${AGENT}/interactions/${id}/answer`, body, headers);
}

export async function answer(server, id, body, headers = {}) {
  const reply = await postAnswer(server, id, body, headers);
  assert.equal(reply.status, 200, reply.text);
  return reply.json();
}

// Asks again until the answer is true, and returns it.
export async function waitFor(what, ask, ms = EVENT_MS_MAX) {
  const deadline = Date.now() + ms;
  for (;;) {
    const answer = await ask();
    if (answer) return answer;
    assert.ok(Date.now() < deadline, `${what}: not within ${ms} ms`);
    await new Promise((resolve) => { setTimeout(resolve, POLL_MS); });
  }
}

export const isEnd = ({ type }) => type === 'run.finished' || type === 'run.error';
export const endOf = (runId) => (event) => isEnd(event) && event.runId === runId;

// The texts of messages and reasonings, and the arguments of calls, as a client builds them, checked at every step.
export class Texts {
  constructor() {
    this.open = new Map(); // messageId -> text so far
    this.thoughts = new Map();
    this.calls = new Map(); // toolCallId -> {messageId, args so far}
    this.runs = new Map(); // messageId -> runId
  }

  #dropCalls(messageId) {
    for (const [id, call] of this.calls) if (call.messageId === messageId) this.calls.delete(id);
  }

  #takeCall(type, runId, data) {
    const id = data.toolCallId;
    if (type === 'tool.call.start') {
      assert.deepEqual(Object.keys(data), ['toolCallId', 'toolName', 'parentMessageId', 'stage']);
      this.runs.set(data.parentMessageId, runId);
      this.calls.set(id, { messageId: data.parentMessageId, args: '' });
      return;
    }
    const call = this.calls.get(id);
    assert.ok(call, `${type} of a call that has started: ${id}`);
    if (type === 'tool.call.args') {
      assert.deepEqual(Object.keys(data), ['toolCallId', 'delta']);
      assert.ok(data.delta.length > 0);
      call.args += data.delta;
      return;
    }
    assert.equal(data.parentMessageId, call.messageId);
    if (data.args !== call.args) assert.deepEqual(JSON.parse(call.args || '{}'), data.args, 'the deltas are the arguments');
    this.calls.delete(id);
  }

  take({ type, runId, data }) {
    const id = data.messageId;
    if (id) this.runs.set(id, runId);
    if (type === 'tool.call' || type === 'tool.call.start' || type === 'tool.call.args') {
      this.#takeCall(type, runId, data);
    } else if (type === 'text.message.start') {
      assert.deepEqual(data, { messageId: id, role: 'assistant' });
      this.open.set(id, '');
    } else if (type === 'text.delta') {
      assert.deepEqual(Object.keys(data), ['messageId', 'delta', 'offset']);
      assert.ok(this.open.has(id), `a delta of a message that has started: ${id}`);
      assert.equal(data.offset, this.open.get(id).length);
      assert.ok(data.delta.length > 0);
      this.open.set(id, this.open.get(id) + data.delta);
    } else if (type === 'reasoning.delta') {
      if (data.offset === 0) this.thoughts.set(id, '');
      assert.equal(data.offset, this.thoughts.get(id)?.length);
      this.thoughts.set(id, this.thoughts.get(id) + data.delta);
    } else if (type === 'reasoning.end') {
      assert.equal(this.thoughts.get(id), data.content);
      this.thoughts.delete(id);
    } else if (type === 'message.discard') {
      assert.deepEqual(Object.keys(data), ['messageId', 'reason']);
      const calls = [...this.calls.values()].some(({ messageId }) => messageId === id);
      assert.ok(this.open.has(id) || this.thoughts.has(id) || calls, 'only what was seen is discarded');
      this.open.delete(id);
      this.thoughts.delete(id);
      this.#dropCalls(id);
    } else if (type === 'text.message.end') {
      assert.equal(this.open.get(id) ?? '', data.content, 'the deltas are the text');
      this.open.delete(id);
      if (data.stopped) this.#dropCalls(id);
    } else if (type === 'run.finished' || type === 'run.error') {
      const calls = [...this.calls.values()].map(({ messageId }) => messageId);
      const open = [...this.open.keys(), ...this.thoughts.keys(), ...calls].filter((left) => this.runs.get(left) === runId);
      assert.deepEqual(open, [], 'nothing of it is left open');
    } else if (type === 'reset') {
      this.open.clear();
      this.thoughts.clear();
      this.calls.clear();
    }
  }
}

// One frame's text as an event: {type, threadId, runId?, seq?, ts, data, id?}.
function parseFrame(text, threadId) {
  const match = FRAME.exec(text);
  assert.ok(match, `no frame: ${JSON.stringify(text.slice(0, 200))}`);
  const [, id, name, json] = match;
  const event = JSON.parse(json);
  const isFact = !PREVIEWS.includes(name);
  const members = ['type', 'threadId', ...(name === 'reset' ? [] : ['runId']), ...(isFact ? ['seq'] : []), 'ts', 'data'];
  assert.deepEqual(Object.keys(event), members, text.slice(0, 200));
  assert.equal(event.type, name);
  assert.equal(event.threadId, threadId);
  assert.match(event.ts, TIME);
  assert.equal(id, isFact ? String(event.seq) : undefined, `the id of ${name}`);
  return event;
}

export class Events {
  #rest = '';
  #decoder = new TextDecoder('utf-8', { fatal: true });
  #texts = new Texts();
  #waiting = []; // events that nobody has taken
  #failed = null;
  #wake = () => {};

  constructor(threadId, response, socket) {
    this.threadId = threadId;
    this.response = response;
    this.headers = response.headers;
    this.socket = socket;
    this.all = []; // every event so far
    this.comments = 0;
    this.seq = null; // of the newest fact
    this.ended = false; // 'end': in good order; 'cut': not
    response.on('data', (bytes) => this.#guard(() => this.#feed(bytes)));
    response.on('end', () => this.#over('end'));
    response.on('error', () => this.#over('cut'));
    response.on('close', () => this.#over('cut'));
  }

  #over(how) {
    this.ended ||= how;
    this.#wake();
  }

  #guard(action) {
    try {
      action();
    } catch (error) {
      this.#failed ??= error;
    }
    this.#wake();
  }

  #feed(bytes) {
    this.#rest += this.#decoder.decode(bytes, { stream: true });
    const frames = this.#rest.split('\n\n');
    this.#rest = frames.pop();
    for (const frame of frames) {
      if (frame === ':') this.comments++;
      else this.#take(parseFrame(frame, this.threadId));
    }
  }

  #take(event) {
    if (event.seq !== undefined) {
      if (event.type !== 'reset' && this.seq !== null) assert.equal(event.seq, this.seq + 1, `the fact after ${this.seq}`);
      this.seq = event.seq;
    }
    this.#texts.take(event);
    this.all.push(event);
    this.#waiting.push(event);
  }

  // The next event; null when the stream has ended.
  async next() {
    const arrived = async () => {
      for (;;) {
        if (this.#failed) throw this.#failed;
        if (this.#waiting.length) return this.#waiting.shift();
        if (this.ended) return null;
        await new Promise((resolve) => { this.#wake = resolve; });
      }
    };
    const seen = () => this.all.map(({ type, seq }) => seq ?? type).slice(-20).join(' ');
    try {
      return await within(EVENT_MS_MAX, 'event', arrived());
    } catch (error) {
      error.message += ` (after ${seen()})`;
      throw error;
    }
  }

  async* [Symbol.asyncIterator]() {
    for (let event; (event = await this.next()) !== null;) yield event;
  }

  // Everything up to and with the first event for which `predicate` holds.
  async until(predicate) {
    const events = [];
    for await (const event of this) {
      events.push(event);
      if (predicate(event)) return events;
    }
    throw new Error(`the stream ended (${this.ended}) after ${events.map(({ type }) => type).join(' ')}`);
  }

  // Facts up to the end of a run.
  async run(runId) {
    const events = await this.until(runId ? endOf(runId) : isEnd);
    return factsOf(events);
  }

  // Resolves when the server has ended the stream; everything not taken yet is passed over.
  async over() {
    while (await this.next() !== null);
    return this.ended;
  }

  get facts() {
    return factsOf(this.all);
  }

  close() {
    this.response.destroy();
    this.socket.destroy();
  }
}

export const factsOf = (events) => events.filter(({ seq }) => seq !== undefined);
export const typesOf = (events) => events.map(({ type }) => type);

// An open stream of events. `t` closes it at the end of the test.
export async function openEvents(t, server, threadId, { query = '', headers = {} } = {}) {
  const opened = new Promise((done, failed) => {
    const path = `${AGENT}/runs/${threadId}/events${query}`;
    const sent = request({ host: server.host, port: server.port, path, headers, agent: false }, (response) => {
      response.socket.setNoDelay(true);
      done(new Events(threadId, response, response.socket));
    });
    sent.on('error', failed);
    sent.end();
  });
  const events = await within(EVENT_MS_MAX, `events of ${threadId}`, opened);
  t.after(() => events.close());
  assert.equal(events.response.statusCode, 200);
  return events;
}

// A message, and the facts of its run from the first to the last.
export async function talk(t, server, input, headers = {}) {
  const start = await accepted(server, input, headers);
  const events = await openEvents(t, server, start.threadId, { query: `?after=${start.seq}`, headers });
  const facts = await events.run(start.runId);
  events.close();
  return { start, facts, events };
}

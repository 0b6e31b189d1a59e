// SPDX-License-Identifier: Apache-2.0
//
// AG-UI clients as people have them: HttpAgent from npm, unmodified, in the version of today and in the one that most have
// installed. A `Tab` is such a client on a thread, a `Turn` one request of it. The bytes of every answer are kept and linted;
// a warning of a client is a failure. `post` is a request without a client.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { request } from 'node:http';
import { afterEach } from 'node:test';

import { HttpAgent as HttpAgent0 } from 'ag-ui-client-0';
import { HttpAgent as HttpAgent1 } from 'ag-ui-client-1';

import { within } from '../api/server.mjs';
import { AGENT, get, openEvents } from '../api/talk.mjs';
import { lint, parse } from './lint.mjs';

const RUN_MS_MAX = 60_000;

export const CLIENTS = [
  { version: '1.0.0', profile: 'new', HttpAgent: HttpAgent1 },
  { version: '0.0.59', profile: 'old', HttpAgent: HttpAgent0 },
];

// What clients complain about. A run that fails is told to whoever asked for it, so that one is left out.
const complaints = [];
console.warn = (...words) => { complaints.push(words.join(' ')); };
console.error = (...words) => { if (words[0] !== 'Agent execution failed:') complaints.push(words.join(' ')); };
afterEach(() => assert.deepEqual(complaints.splice(0), [], 'no client complains'));

// ---- a request of a client ----

export class Turn {
  events = []; // as the client's subscribers get them
  outcome = null; // success, interrupt, cancelled or error, as the client understands the end
  interrupts = [];
  pending = []; // calls for the client
  error = null; // why the run was refused, or broke off
  status = null;
  bytes = [];
  #wake = () => {};
  #over = false;

  constructor(tab, runId) {
    this.tab = tab;
    this.runId = runId;
    this.subscriber = {
      onEvent: ({ event }) => { this.events.push(structuredClone(event)); this.#wake(); },
      onRunFinishedEvent: ({ outcome, interrupts = [], pendingToolCallIds = [] }) => {
        Object.assign(this, { outcome, interrupts, pending: pendingToolCallIds });
      },
      onRunErrorEvent: ({ event }) => { this.outcome = 'error'; this.code = event.code; this.message = event.message; },
    };
  }

  begin(running) {
    this.running = running.catch((error) => { this.error = error; }).then(() => { this.#over = true; this.#wake(); });
  }

  // The first event for which it holds, as soon as the client has seen it.
  async until(what, holds) {
    const seen = async () => {
      for (;;) {
        const event = this.events.find(holds);
        if (event) return event;
        assert.ok(!this.#over, `the run ended without ${what}: ${this.types().join(' ')} ${this.error ?? ''}`);
        await new Promise((resolve) => { this.#wake = resolve; });
      }
    };
    return within(RUN_MS_MAX, what, seen());
  }

  // The run to its end, without a fault. `runs`: how many the answer has, which is two when the request answers one and brings
  // a message besides.
  async end({ runs = 1 } = {}) {
    await within(RUN_MS_MAX, `the end of ${this.runId}`, this.running);
    assert.equal(this.error, null, this.error?.stack);
    assert.deepEqual(this.faults({ many: runs > 1 }), []);
    assert.equal(this.sent().filter(({ type }) => type === 'RUN_FINISHED' || type === 'RUN_ERROR').length, runs);
    return this;
  }

  // A run that the server refuses: {status, code, field}.
  async refusal() {
    await within(RUN_MS_MAX, `the refusal of ${this.runId}`, this.running);
    assert.ok(this.error?.status, `${this.runId} was to be refused: ${this.types().join(' ')} ${this.error ?? ''}`);
    const { status, code, field } = JSON.parse(this.error.message.replace(/^HTTP \d+: /, ''));
    assert.equal(status, this.error.status);
    return { status, code, field };
  }

  // A run that the client itself cut off.
  async cut() {
    await within(RUN_MS_MAX, `the end of ${this.runId}`, this.running);
    assert.deepEqual(this.faults({ open: true }), []);
    return this;
  }

  faults(more = {}) {
    const { threadId } = this.tab.agent;
    const { profile } = this.tab.client;
    return lint(Buffer.concat(this.bytes), { profile, threadId, runId: this.runId, contentType: this.contentType, ...more });
  }

  // What was sent, whatever the client made of it.
  sent() {
    return parse(Buffer.concat(this.bytes), {}, assert.fail);
  }

  types() {
    return this.events.map(({ type }) => type);
  }

  of(type) {
    return this.events.filter((event) => event.type === type);
  }
}

// ---- a client ----

let runs = 0;

export class Tab {
  constructor(client, server, threadId, { path = '/ag-ui/assistant', headers = {} } = {}) {
    this.client = client;
    this.agent = new client.HttpAgent({
      url: `${server.url}${AGENT}${path}`, threadId, headers, fetch: (url, init) => this.#fetch(url, init),
    });
  }

  async #fetch(url, init) {
    const { turn } = this;
    turn.input = JSON.parse(init.body);
    const response = await fetch(url, init);
    turn.status = response.status;
    turn.contentType = response.headers.get('content-type');
    if (!response.ok) return response;
    const keep = new TransformStream({
      transform(piece, controller) {
        turn.bytes.push(Buffer.from(piece));
        controller.enqueue(piece);
      },
    });
    return new Response(response.body.pipeThrough(keep), { status: response.status, headers: response.headers });
  }

  // Begins a run with what the client has.
  start(parameters = {}) {
    const turn = new Turn(this, parameters.runId ?? `run-${++runs}`);
    this.turn = turn;
    turn.begin(this.agent.runAgent({ runId: turn.runId, ...parameters }, turn.subscriber));
    return turn;
  }

  run(parameters = {}) {
    return this.start(parameters).end();
  }

  // Adds a message, and begins a run with it.
  write(content, parameters = {}) {
    this.agent.addMessage({ id: `u-${randomUUID()}`, role: 'user', content });
    return this.start(parameters);
  }

  say(content, parameters = {}) {
    return this.write(content, parameters).end();
  }

  // Answers every open interrupt: payloads by position; `undefined` cancels.
  answers(...payloads) {
    assert.equal(payloads.length, this.open.length, 'an answer for each interrupt');
    return this.open.map(({ id }, i) => (payloads[i] === undefined ? { interruptId: id, status: 'cancelled' }
      : { interruptId: id, status: 'resolved', payload: payloads[i] }));
  }

  resume(...payloads) {
    return this.run({ resume: this.answers(...payloads) });
  }

  get open() {
    return this.agent.pendingInterrupts;
  }

  get messages() {
    return plain(this.agent.messages);
  }

  get threadId() {
    return this.agent.threadId;
  }
}

// A thread that nobody has used.
export const newThread = () => `t-${randomUUID()}`;

// A client that has just been opened on the thread: it knows nothing, and asks.
export async function reload(client, server, threadId, options) {
  const tab = new Tab(client, server, threadId, options);
  const turn = await tab.run();
  return { tab, turn };
}

// ---- messages ----

// What is compared of a message.
export const plain = (messages) => messages.map(({ id, role, content, toolCalls, toolCallId }) => ({
  id, role, content: content ?? '',
  ...(toolCalls?.length ? { toolCalls: toolCalls.map((call) => ({ id: call.id, type: call.type, function: call.function })) } : {}),
  ...(toolCallId === undefined ? {} : { toolCallId }),
}));

// All rows of a thread, oldest first.
export async function allRows(server, threadId, headers = {}) {
  const rows = [];
  for (let before = ''; ;) {
    const answer = await get(server, `/history?threadId=${threadId}&limit=200${before}`, headers);
    assert.equal(answer.status, 200, answer.text);
    const page = answer.json();
    rows.unshift(...page.messages);
    if (!page.hasMore) return rows;
    before = `&before=${encodeURIComponent(page.before)}`;
  }
}

// History as AG-UI has it: no row that only we know; a tool's row behind the message that called it.
export async function story(server, threadId, headers = {}) {
  const rows = await allRows(server, threadId, headers);
  const answers = rows.filter(({ role }) => role === 'tool');
  const shown = rows.filter(({ role, content, toolCalls, uiSchema }) => ['user', 'reasoning', 'system'].includes(role)
    || (role === 'assistant' && (content || toolCalls?.length || uiSchema)));
  const placed = shown.flatMap((row) => [row, ...answers.filter(({ toolCallId }) => row.toolCalls?.some(({ id }) => id === toolCallId))]);
  assert.equal(placed.length, shown.length + answers.length, 'every result has its call');
  return plain(placed);
}

// A client holds what the server does; and so does one that comes anew.
export async function assertSame(tab, server, { live = true } = {}) {
  const held = await story(server, tab.threadId);
  if (live) assert.deepEqual(tab.messages, held);
  const { tab: fresh, turn } = await reload(tab.client, server, tab.threadId);
  assert.deepEqual(fresh.messages, held, 'after a reload');
  return { fresh, turn };
}

// ---- without a client ----

// A POST whose answer is a stream: {status, headers, bytes, events(), faults(more)}, when it has ended.
export function post(server, input, { path = '/runs', headers = {}, profile = input.protocolVersion ? 'new' : 'old' } = {}) {
  const done = new Promise((resolve, reject) => {
    const sent = request({
      host: server.host, port: server.port, method: 'POST', path: `${AGENT}${path}`, agent: false,
      headers: { 'content-type': 'application/json', accept: 'text/event-stream', ...headers },
    }, (response) => {
      const pieces = [];
      response.on('data', (piece) => pieces.push(piece)).on('error', reject).on('end', () => {
        const bytes = Buffer.concat(pieces);
        const expected = { profile, threadId: input.threadId, runId: input.runId, contentType: response.headers['content-type'] };
        resolve({
          status: response.statusCode, headers: response.headers, bytes, text: bytes.toString(),
          json: () => JSON.parse(bytes), events: () => parse(bytes, expected, assert.fail), faults: (more = {}) => lint(bytes, { ...expected, ...more }),
        });
      });
    });
    sent.on('error', reject);
    sent.end(JSON.stringify(input));
  });
  return within(RUN_MS_MAX, `POST ${path}`, done);
}

// Native facts of a thread from the first to the one for which it holds.
export async function factsTo(t, server, threadId, holds, headers = {}) {
  const events = await openEvents(t, server, threadId, { query: '?after=0', headers });
  const facts = (await events.until(holds)).filter(({ seq }) => seq !== undefined);
  events.close();
  return facts;
}

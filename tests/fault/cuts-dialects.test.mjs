// SPDX-License-Identifier: Apache-2.0
//
// WebSocket and AG-UI clients whose connections are cut at random bytes, mostly in the middle of a message or of a call's
// arguments, while they talk on the same threads. Each comes back as its protocol has it:
//
//     WebSocket       subscribes with the last seq it has, and forgets what it saw grow
//     AG-UI, POST     joins with no messages, with all it has, with the same request again, or by GET
//     AG-UI, GET      asks again, and knows nothing of a cursor
//
// At the end a WebSocket client has, byte for byte, the facts and texts of one that was never cut. An AG-UI client has after
// every leg the messages that history has: it keeps what it had when it was cut, so a text sent again is there twice.
// No join starts anything. FERMATA_CUTS says how many cuts, half of them of each kind.
//
// To add a kind of exchange: a line in LINES, its word in KINDS.

import assert from 'node:assert/strict';
import { request } from 'node:http';
import { test } from 'node:test';

import { frame, Frames, handshake, PING, PONG, TEXT } from '../api/socket.mjs';
import { RawConnection } from '../api/raw.mjs';
import { within } from '../api/server.mjs';
import { until } from '../api/asking.mjs';
import { accepted, AGENT, get, startTalk, user, waitFor } from '../api/talk.mjs';
import { lint } from '../clients/lint.mjs';
import { Fold, mapped, plain } from './agui-fold.mjs';
import { chance, seed } from './chance.mjs';

const ROUNDS = Number(process.env.FERMATA_CUTS ?? 1000);
const THREADS = 4;
const SOCKETS = 2; // of a thread, besides the one that is never cut
const GROWING_MAX = 24; // frames that may come while something grows, until the cut
const BYTES_MAX = 12_000; // where the cuts fall that look at nothing
const INSIDE_MIN = 0.75;
const BROKEN_MAX = 100; // attempts of the model that break off
const LEG_MS_MAX = 60_000;
const SETTLE_MS_MAX = 30_000;
const FOREVER = 2 ** 30;

const PACE = { gap_ms: 3, chunk: 5 };
const MEETING = { title: 'Review of the quarter 季度评审 "with quotes"', start_time: '2030-01-31T15:00:00+08:00',
  end_time: '2030-01-31T16:00:00+08:00', location: 'Room 7, 七号会议室 🎈', attendees: ['Ann', 'Bob', 'Eve', 'Oscar'] };
const WEEK = { from: '2030-01-28T00:00:00+08:00', to: '2030-02-03T00:00:00+08:00', query: 'anything at all about the quarter' };
const QUESTION = { question: 'Which of the two rooms shall it be, the one with the window or the other? 选哪一间？', choices: ['Red', '蓝'] };
const CARD = { version: '2.1', intent: 'message', status: 'info', title: 'A card', body: 'Shown beside the words.' };
const tool = (name, args) => ({ name, args });
const turns = (...list) => ({ turns: list.map((turn) => ({ ...PACE, ...turn })) });

const LINES = [
  { match: '^plain', ...turns({ text: 'Short and 短, in one go. '.repeat(16) }) },
  { match: '^lines', ...turns({ text: 'A longer one 🎈 with\nlines,\r\nand "quotes". '.repeat(10) }) },
  { match: '^think', ...turns({ reasoning: 'Let me think about it. '.repeat(8), text: 'So be it. '.repeat(24) }) },
  { match: '^look', ...turns({ text: 'I look twice. '.repeat(8), calls: [tool('calendar_read', WEEK), tool('calendar_read', { ...WEEK, query: '别的' })] },
    { text: 'Nothing there. '.repeat(12) }) },
  { match: '^ask', ...turns({ text: 'One thing first. '.repeat(6), calls: [tool('ask_user', QUESTION)] }, { text: 'I see. '.repeat(20) }) },
  { match: '^book', ...turns({ calls: [tool('calendar_write', MEETING)] }, { text: 'It stands. '.repeat(16) }) },
  { match: '^pick', ...turns({ text: 'You choose. '.repeat(6), calls: [tool('pick', { from: Array.from({ length: 20 }, (_, i) => `number ${i}`) })] },
    { text: 'Good choice. '.repeat(12) }) },
  { match: '^card', ...turns({ text: 'Look at this. '.repeat(12), calls: [tool('show_card', CARD)] }) },
  ...Array.from({ length: BROKEN_MAX }, (_, i) => ({ match: `^broken ${i}$`, ...turns({ reasoning: 'This may go wrong. '.repeat(4),
    text: 'This breaks off in the middle once. '.repeat(10), fail: { at: 60 + 20 * (i % 12), times: 1 } }) })),
];
const KINDS = ['plain', 'look', 'think', 'ask', 'lines', 'book', 'card', 'pick', 'broken'];
const FRONT = [{ name: 'pick', description: 'Lets the person pick.', parameters: { type: 'object' } }];
const ANSWERS = { input_required: 'Red', tool_call: { approved: true } };

// ---- where a connection is cut ----

class Blade {
  #left = 0; // frames that may come while something grows
  #bytes = Infinity; // all that may come
  #passed = 0;

  constructor(world, dialect, stream) {
    this.world = world;
    this.dialect = dialect;
    this.random = chance(stream);
  }

  // For the next connection. True: it is cut before anything comes.
  begin() {
    const { random } = this;
    this.#passed = 0;
    this.#bytes = Infinity;
    this.#left = Infinity;
    if (this.world.enough(this.dialect)) return false;
    if (random(6)) this.#left = random(GROWING_MAX);
    else this.#bytes = 1 + random(BYTES_MAX);
    return random(20) === 0;
  }

  // The byte of this frame at which the connection is cut; -1: it comes whole. Of a frame that is cut a client has nothing.
  at(size, growing) {
    const before = this.#passed;
    this.#passed += size;
    if (this.world.enough(this.dialect)) return -1;
    if (this.#bytes < this.#passed) return this.#bytes - before;
    return growing && this.#left-- <= 0 ? this.random(size) : -1;
  }

  cut(socket, growing) {
    this.world.cut(this.dialect, growing);
    if (socket && this.random(2)) socket.resetAndDestroy(); // what was not read is lost too
    else socket?.destroy();
  }
}

// ---- WebSocket ----

const thought = ({ messageId }) => `reasoning of ${messageId}`;
const args = ({ toolCallId }) => `arguments of ${toolCallId}`;

class SocketReader {
  facts = new Map(); // seq -> the frame's JSON
  texts = new Map(); // what has ended, made of deltas
  open = new Map(); // what grows; forgotten on every connect
  last = 0;
  connects = 0;
  discards = 0;
  #question = null; // whose clarify_request comes next

  constructor(world, threadId, blade) {
    this.world = world;
    this.threadId = threadId;
    this.blade = blade;
  }

  async read() {
    while (!this.enough && !this.world.failure) await this.connection();
  }

  async connection() {
    const { server } = this.world;
    const t = { after: () => {} };
    this.open.clear();
    this.#question = null;
    this.connects++;
    if (this.blade?.begin()) {
      const raw = await RawConnection.open(server);
      await raw.write(handshake(server));
      return this.blade.cut(raw.socket, false);
    }
    const { frames } = await Frames.open(t, server);
    this.abort = () => frames.close();
    if (this.enough) return this.abort();
    await frames.write(frame(JSON.stringify({ type: 'subscribe', sessionId: this.threadId, after: this.last })));
    for (let one; (one = await frames.next(FOREVER));) {
      const growing = this.open.size > 0;
      if (this.blade && this.blade.at(one.size, growing) >= 0) return this.blade.cut(frames.raw.socket, growing);
      if (one.opcode === PING) await frames.write(frame(one.payload, { opcode: PONG }));
      else if (one.opcode === TEXT) this.#take(new TextDecoder('utf-8', { fatal: true }).decode(one.payload));
      else if (one.opcode !== PONG) this.world.fail(`${this.threadId}: the server closed a socket`);
    }
    if (!this.enough) this.world.fail(`${this.threadId}: a socket ended that nobody cut`);
  }

  #take(json) {
    const { type, seq, data } = JSON.parse(json);
    if (this.#question) this.#clarify(type, seq, data);
    else if (seq !== undefined) this.#fact(type, seq, data, json);
    const rows = {
      'text.message.start': () => this.open.set(data.messageId, ''),
      'text.delta': () => this.#add(data.messageId, data.delta),
      'reasoning.delta': () => { // has no start of its own
        if (data.offset === 0) this.open.set(thought(data), '');
        this.#add(thought(data), data.delta);
      },
      'tool.call.start': () => this.open.set(args(data), ''),
      'tool.call.args': () => this.#add(args(data), data.delta),
      'message.discard': () => { // a thread says one thing at a time
        this.open.clear();
        this.discards++;
      },
      'text.message.end': () => this.#end(data.messageId),
      'reasoning.end': () => this.#end(thought(data)),
      'tool.call': () => this.#end(args(data)),
      reset: () => this.world.fail(`${this.threadId}: reset, ${data.reason}`),
      error: () => this.world.fail(`${this.threadId}: ${json}`),
    };
    rows[type]?.();
  }

  #add(id, delta) {
    if (!this.open.has(id)) this.world.fail(`${this.threadId}: a delta of ${id}, which has not started`);
    this.open.set(id, this.open.get(id) + delta);
  }

  #end(id) {
    this.texts.set(id, this.open.get(id) ?? '');
    this.open.delete(id);
  }

  #fact(type, seq, data, json) {
    if (seq !== this.last + 1) this.world.fail(`${this.threadId}: fact ${seq} after ${this.last}`);
    this.facts.set(seq, json);
    this.last = seq;
    if (type === 'interaction.request' && data.type === 'ask_user') this.#question = { seq, ...data };
  }

  // Right behind the fact that it says again.
  #clarify(type, seq, data) {
    const { interactionId: requestId, question, choices, allowFreeform } = this.#question;
    const expected = JSON.stringify({ requestId, question, choices: choices.map(({ label }) => label), allowFreeform });
    if (type !== 'clarify_request' || seq !== this.#question.seq || JSON.stringify(data) !== expected)
      this.world.fail(`${this.threadId}: ${type} ${JSON.stringify(data)} instead of the clarify_request of fact ${this.#question.seq}`);
    this.#question = null;
  }
}

// ---- AG-UI ----

// All of a thread's history, oldest first.
async function rowsOf(server, threadId) {
  const rows = [];
  for (let before = ''; ;) {
    const page = (await get(server, `/history?threadId=${threadId}&limit=200${before}`)).json();
    rows.unshift(...page.messages);
    if (!page.hasMore) return rows;
    before = `&before=${encodeURIComponent(page.before)}`;
  }
}

class AguiClient {
  fold = new Fold();
  connects = 0;

  constructor(world, threadId, profile, blade) {
    Object.assign(this, { world, threadId, profile, blade });
    this.follows = `${AGENT}/runs/${threadId}/events?format=ag-ui${profile === 'new' ? '&protocolVersion=1.0' : ''}`;
  }

  // One request to its end: 'end' in good order, 'cut' by us, 'none' if that was before its head. `until` says when we have
  // enough. What came is linted in any case.
  stream({ method, path, body, runId }, until = () => false) {
    const json = body === undefined ? undefined : JSON.stringify(body);
    const headers = { accept: 'text/event-stream', ...(json ? { 'content-type': 'application/json', 'content-length': Buffer.byteLength(json) } : {}) };
    const { host, port } = this.world.server;
    const early = this.blade.begin();
    this.connects++;
    return new Promise((over) => {
      let how = 'none';
      const sent = request({ host, port, method, path, headers, agent: false }, (response) => {
        if (how === 'cut early') return;
        how = null;
        if (response.statusCode !== 200) this.world.fail(`${this.threadId} ${runId}: status ${response.statusCode}`);
        const came = [];
        const finish = (what) => { how ??= what; };
        let rest = Buffer.alloc(0);
        response.on('data', (bytes) => {
          if (how) return;
          rest = Buffer.concat([rest, bytes]);
          for (let end; !how && (end = rest.indexOf('\n\n')) >= 0; rest = rest.subarray(end + 2)) {
            const growing = this.fold.growing.size > 0;
            const at = this.blade.at(end + 2, growing);
            came.push(rest.subarray(0, at < 0 ? end + 2 : at));
            if (at < 0) this.#take(rest.toString('utf8', 0, end));
            else {
              finish('cut');
              this.blade.cut(response.socket, growing);
            }
            if (!how && until()) {
              finish('enough');
              response.destroy();
            }
          }
        });
        response.on('end', () => finish('end')).on('error', () => finish('broken'));
        response.on('close', () => {
          finish('broken');
          if (how === 'end') came.push(rest);
          this.#lint(Buffer.concat(came), how, { runId, many: runId === undefined, contentType: response.headers['content-type'] });
          this.fold.cut();
          over(how);
        });
      });
      sent.on('error', () => {}).on('close', () => { if (how === 'none' || how === 'cut early') over('none'); });
      this.abort = () => sent.destroy();
      sent.end(json, () => {
        if (!early) return;
        how = 'cut early';
        this.blade.cut(sent.socket, false);
        sent.destroy();
      });
    });
  }

  #take(text) {
    if (!text.startsWith(':')) this.fold.take(JSON.parse(text.replace('data: ', '')));
  }

  #lint(bytes, how, expected) {
    const { profile, threadId } = this;
    const faults = lint(bytes, { profile, threadId, open: how !== 'end', ...expected });
    if (how === 'broken' && !this.enough) faults.push('it broke off, and nobody cut it');
    for (const fault of faults) this.world.faults.push(`${threadId} ${expected.runId ?? 'by GET'}: ${fault}`);
  }
}

// Talks: sends what a person says, answers what it is asked, and comes back until each leg has ended.
class Poster extends AguiClient {
  #runs = 0;
  kinds = 0;

  // A request with what the client has; the stock clients send all of it.
  #input(more = {}) {
    return { threadId: this.threadId, runId: `${this.threadId}-r${++this.#runs}`, ...(this.profile === 'new' ? { protocolVersion: '1.0' } : {}),
      state: {}, messages: structuredClone(this.fold.messages), tools: FRONT, context: [], forwardedProps: {}, ...more };
  }

  #post(body) {
    const path = this.blade.random(2) ? `${AGENT}/runs` : `${AGENT}/ag-ui/assistant`;
    return { method: 'POST', path, body, runId: body.runId };
  }

  #join(first) {
    const ways = ['empty', 'all', 'again', 'get'];
    const way = ways[this.blade.random(ways.length)];
    this.world.joins[way] = (this.world.joins[way] ?? 0) + 1;
    const rows = {
      empty: () => this.#post(this.#input({ messages: [] })), all: () => this.#post(this.#input()), again: () => this.#post(first),
      get: () => ({ method: 'GET', path: this.follows }),
    };
    return rows[way]();
  }

  // One leg, whatever happens to its connections.
  async #leg(resume) {
    const first = this.#input(resume ? { resume } : {});
    this.world.legs++;
    let next = this.#post(first), known = false;
    for (;;) {
      this.fold.end = null;
      const how = await this.stream(next, () => next.method === 'GET' && this.fold.end !== null);
      if (how === 'end' || how === 'enough' || how === 'broken' || this.world.failure) break;
      known ||= how === 'cut';
      next = known ? this.#join(first) : this.#post(first);
    }
    await this.#check(first.runId);
  }

  async #check(runId) {
    const rows = await rowsOf(this.world.server, this.threadId);
    const cards = this.profile === 'new';
    this.world.stories.set(runId, mapped(rows));
    this.world.checks.push({ what: `${runId}, by POST`, got: plain(this.fold.messages, { cards }), expected: mapped(rows, { cards }) });
  }

  #pending() {
    const answered = new Set(this.fold.messages.map(({ toolCallId }) => toolCallId));
    return this.fold.messages.flatMap(({ toolCalls = [] }) => toolCalls).filter(({ id, function: { name } }) => name === 'pick' && !answered.has(id));
  }

  async #exchange(kind) {
    let resume;
    this.fold.messages.push({ id: `${this.threadId}-u${this.kinds}`, role: 'user', content: `${kind} ${this.world.exchanges++ % BROKEN_MAX}` });
    for (;;) {
      await within(LEG_MS_MAX, `a leg of ${this.threadId}`, this.#leg(resume));
      const { type, outcome, code } = this.fold.end ?? {};
      if (type !== 'RUN_FINISHED') return this.world.fail(`${this.threadId}, ${kind}, ended with ${type} ${code}`);
      const calls = this.#pending();
      if (this.profile === 'new') assert.deepEqual(outcome.pendingToolCallIds ?? [], calls.map(({ id }) => id));
      resume = outcome.interrupts?.map(({ id, reason }) => ({ interruptId: id, status: 'resolved', payload: ANSWERS[reason] }));
      for (const { id } of calls) this.fold.messages.push({ id: `given-${id}`, role: 'tool', toolCallId: id, content: 'number 7' });
      if (this.world.failure || (!resume && !calls.length)) return;
    }
  }

  async talk(offset) {
    while (!this.world.over) await this.#exchange(KINDS[(offset + this.kinds++) % KINDS.length]);
  }
}

// Reads along by GET, leg after leg, and notes what it has at the end of each.
class Follower extends AguiClient {
  seen = new Set();

  async read() {
    while (!this.enough && !this.world.failure) {
      const how = await this.stream({ method: 'GET', path: this.follows }, () => {
        this.#note();
        return false;
      });
      if (how === 'end') this.world.faults.push(`${this.threadId} by GET: the server ended it`);
    }
  }

  #note() {
    const { end, runId, messages } = this.fold;
    if (end === null || this.noted === end) return;
    this.noted = end;
    this.seen.add(runId);
    this.world.notes.push({ runId, what: `${runId}, by GET`, got: plain(messages) });
  }
}

// ---- all of them ----

class World {
  cuts = { websocket: 0, 'ag-ui': 0 };
  inside = { websocket: 0, 'ag-ui': 0 };
  joins = {};
  exchanges = 0;
  legs = 0; // that were asked for
  stories = new Map(); // runId of the request that began a leg -> history behind it
  checks = []; // {what, got, expected}
  notes = []; // the same; expected is in the stories
  faults = []; // of streams
  failure = null;

  constructor(server) {
    this.server = server;
  }

  enough(dialect) {
    return this.cuts[dialect] >= ROUNDS / 2;
  }

  get over() {
    return this.failure !== null || Object.keys(this.cuts).every((dialect) => this.enough(dialect));
  }

  cut(dialect, growing) {
    this.cuts[dialect]++;
    if (growing) this.inside[dialect]++;
  }

  fail(what) {
    this.failure ??= what;
  }
}

const textsOf = (messages) => new Map(messages.flatMap(({ id, content, toolCalls = [] }) => [[id, content],
  ...toolCalls.map((call) => [call.id, call.function.arguments])]));

function compareMessages({ what, got, expected }) {
  assert.ok(expected, `${what}: a leg that nobody asked for`);
  const texts = textsOf(got);
  for (const [id, text] of textsOf(expected))
    assert.equal(texts.get(id), text, `${what}: a reader that was cut has another text of ${id}`);
  assert.deepEqual(got, expected, `${what}: a reader that was cut has other messages`);
}

// What messages and reasonings are, by the facts that end them.
function textsOfFacts(facts) {
  const texts = new Map();
  for (const json of facts.values()) {
    const { type, data } = JSON.parse(json);
    if (type === 'text.message.end') texts.set(data.messageId, data.content);
    if (type === 'reasoning.end') texts.set(thought(data), data.content);
  }
  return texts;
}

test(`${ROUNDS} cuts of WebSocket and AG-UI streams`, async (t) => {
  const start = Date.now();
  t.diagnostic(`FERMATA_SEED=${seed}`);
  const { server } = await startTalk(t, LINES);
  const world = new World(server);
  const threads = Array.from({ length: THREADS }, (_, i) => `t${i}`);
  let streams = 0;
  const blade = (dialect) => new Blade(world, dialect, streams++);
  const whole = threads.map((id) => new SocketReader(world, id, null));
  const sockets = threads.flatMap((id) => Array.from({ length: SOCKETS }, () => new SocketReader(world, id, blade('websocket'))));
  const posters = threads.map((id, i) => new Poster(world, id, i % 2 ? 'old' : 'new', blade('ag-ui')));
  const followers = threads.map((id, i) => new Follower(world, id, i % 2 ? 'new' : 'old', blade('ag-ui')));
  const readers = [...whole, ...sockets, ...followers];
  const reading = readers.map((reader) => reader.read());

  await Promise.all(posters.map((poster, i) => poster.talk(i * 2)));
  for (const reader of [...whole, ...sockets]) {
    const { seq } = (await get(server, `/history?threadId=${reader.threadId}&limit=1`)).json();
    await waitFor(`fact ${seq} on a socket`, () => world.failure || reader.last >= seq, SETTLE_MS_MAX);
  }
  for (const [i, follower] of followers.entries()) {
    const last = [...world.stories.keys()].findLast((runId) => runId.startsWith(`${threads[i]}-`));
    await waitFor(`${last} by GET`, () => world.failure || follower.seen.has(last), SETTLE_MS_MAX);
  }
  for (const reader of readers) {
    reader.enough = true;
    reader.abort?.();
  }
  await Promise.all(reading);

  const sum = (list, field) => list.reduce((total, one) => total + one[field], 0);
  for (const dialect of Object.keys(world.cuts)) {
    t.diagnostic(`${dialect}: ${world.cuts[dialect]} cuts, ${(100 * world.inside[dialect] / world.cuts[dialect]).toFixed(1)} % inside a message or a call`);
  }
  t.diagnostic(`${world.exchanges} exchanges in ${world.legs} legs; ${sum(sockets, 'connects')} sockets, `
    + `${sum(posters, 'connects')} POST and ${sum(followers, 'connects')} GET; joins ${JSON.stringify(world.joins)}; ${Date.now() - start} ms`);

  await t.test('nothing went wrong on the way', () => assert.equal(world.failure, null));

  await t.test('WebSocket: nothing lost, nothing doubled', () => {
    for (const reader of sockets) {
      const { facts } = whole[threads.indexOf(reader.threadId)];
      assert.deepEqual(reader.facts, facts, `facts of ${reader.threadId}`);
      for (const [id, text] of textsOfFacts(facts))
        assert.equal(reader.texts.get(id), text, `a reader that was cut has another text in ${reader.threadId}`);
    }
    for (const reader of sockets) {
      const { texts } = whole[threads.indexOf(reader.threadId)];
      assert.deepEqual(reader.texts, texts, `a reader that was never cut has another text in ${reader.threadId}`);
    }
  });

  await t.test('AG-UI: nothing lost, nothing doubled', () => {
    for (const check of world.checks) compareMessages(check);
    for (const note of world.notes) compareMessages({ ...note, expected: world.stories.get(note.runId) });
    for (const { seen, threadId } of followers) assert.ok(seen.size > 0, `legs of ${threadId} by GET`);
  });

  await t.test('AG-UI: no stream breaks a rule', () => assert.deepEqual(world.faults, []));

  await t.test('a join starts nothing', () => {
    const began = whole.flatMap(({ facts }) => [...facts.values()]).filter((json) => JSON.parse(json).type === 'run.started').length;
    assert.equal(began, world.legs);
  });

  await t.test('the cuts were where they hurt', () => {
    for (const dialect of Object.keys(world.cuts)) {
      assert.ok(world.cuts[dialect] >= ROUNDS / 2, `${world.cuts[dialect]} of ${dialect}`);
      assert.ok(world.inside[dialect] / world.cuts[dialect] >= INSIDE_MIN, `${world.inside[dialect]} inside, of ${dialect}`);
    }
    if (ROUNDS < 1000) return;
    assert.deepEqual(Object.keys(world.joins).sort(), ['again', 'all', 'empty', 'get']);
    assert.ok(world.exchanges >= 3 * KINDS.length, `${world.exchanges} exchanges`);
    assert.ok(sum(whole, 'discards') >= THREADS, 'attempts of the model broke off');
  });
});

// Its messages do not fit into one write; what comes behind them must come all the same.
for (const size of [1000, 300_000, 3_000_000]) {
  test(`a conversation of ${size} bytes is joined whole, and ended`, async (t) => {
    const { server } = await startTalk(t, LINES);
    const world = new World(server);
    world.enough = () => true;
    await accepted(server, { threadId: 't', messages: [user(`plain ${'x'.repeat(size)}`)] });
    await until(server, 't', 'completed');
    for (const way of ['POST', 'GET']) {
      const client = new AguiClient(world, 't', 'new', new Blade(world, 'ag-ui', 0));
      const body = { threadId: 't', runId: 'join', protocolVersion: '1.0', messages: [] };
      const joins = { POST: { method: 'POST', path: `${AGENT}/runs`, body, runId: 'join' }, GET: { method: 'GET', path: client.follows } };
      await within(LEG_MS_MAX, way, client.stream(joins[way], () => way === 'GET' && client.fold.end !== null));
      assert.deepEqual(world.faults, []);
      assert.equal(client.fold.end?.type, 'RUN_FINISHED', `the end by ${way}`);
      assert.deepEqual(plain(client.fold.messages), mapped(await rowsOf(server, 't')));
    }
  });
}

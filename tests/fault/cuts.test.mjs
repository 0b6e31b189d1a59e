// SPDX-License-Identifier: Apache-2.0
//
// Readers whose connections are cut at random bytes, while the server is killed or stopped in every tenth round. Each
// comes back with Last-Event-ID and does what a simple client does: starts a message anew when it starts, appends
// deltas, forgets what was discarded or left unfinished. At the end each has, byte for byte, the facts and the texts
// of a reader that was never cut.
//
// A round is one cut of one reader, or one restart, which cuts all of them. FERMATA_CUTS says how many rounds.

import assert from 'node:assert/strict';
import { request } from 'node:http';
import { connect, createServer } from 'node:net';
import { once } from 'node:events';
import { test } from 'node:test';

import { AGENT, history, isEnd, openEvents, postRun, startTalk, user, waitFor } from '../api/talk.mjs';
import { within } from '../api/server.mjs';
import { chance, seed } from './chance.mjs';

const ROUNDS = Number(process.env.FERMATA_CUTS ?? 300);
const THREADS = 4;
const READERS = 3;
const RESTART_EVERY = 10;
const CUT_BYTES_MAX = 30_000; // of a connection's life: most lie inside the deltas of a message
const INSIDE_MIN = 0.8;
const RUNS_MIN = ROUNDS / 20;
const SETTLE_MS_MAX = 30_000;
const RUN_MS_MAX = 180_000; // a run whose model rests after a failure starts again with every restart

const LINES = [
  { match: 'short', turns: [{ text: '短い answer, 一二三。'.repeat(10), gap_ms: 3 }] },
  { match: 'long', turns: [{ text: 'A longer one 🎈 with\nlines,\r\nand "quotes". '.repeat(6), gap_ms: 3 }] },
  { match: 'broken', turns: [{ text: 'This breaks off in the middle once. '.repeat(16), gap_ms: 3, fail: { at: 480, times: 1 } }] },
  { turns: [{ reasoning: 'Let me think about it. '.repeat(4), text: 'So be it. '.repeat(30), gap_ms: 3 }] },
];
const KINDS = ['short', 'long', 'thoughtful', 'long'];
// One thread's model fails now and then, and rests before it tries again.
const kind = (threadId, n) => (threadId === 't0' && n % 30 === 7 ? 'broken' : KINDS[n % KINDS.length]);

// ---- what is between a reader and the server ----

// Passes bytes on; after `budget` bytes to the reader the connection is cut, in the middle of whatever it is.
class Wire {
  budget = Infinity;

  static async open(world, random, onCut) {
    const wire = new Wire();
    wire.sockets = new Set();
    wire.listener = createServer((client) => wire.#join(client, world, random, onCut));
    wire.listener.listen(0, '127.0.0.1');
    await once(wire.listener, 'listening');
    wire.port = wire.listener.address().port;
    return wire;
  }

  #join(client, world, random, onCut) {
    const server = connect({ host: '127.0.0.1', port: world.port, noDelay: true });
    const close = () => { client.destroy(); server.destroy(); this.sockets.delete(client); };
    this.sockets.add(client);
    client.setNoDelay(true);
    client.on('data', (bytes) => server.write(bytes)).on('error', close).on('close', close);
    server.on('data', (bytes) => {
      const passed = bytes.subarray(0, Math.min(bytes.length, this.budget));
      const cut = bytes.length >= this.budget;
      this.budget -= passed.length;
      client.write(passed, () => {
        if (!cut) return;
        onCut();
        if (random(2)) client.resetAndDestroy(); // what was not read is lost too
        close();
      });
      if (cut) server.pause();
    }).on('error', close).on('end', () => client.end()).on('close', close);
  }

  close() {
    this.listener.close();
    for (const socket of this.sockets) socket.destroy();
  }
}

// ---- a simple client ----

const thought = ({ messageId }) => `reasoning of ${messageId}`;

class Reader {
  facts = new Map(); // id -> the frame's JSON
  texts = new Map(); // messageId -> text of the message that ended, made of deltas
  open = new Map();  // the same, not ended; forgotten on every connect
  last = 0;
  connects = 0;

  constructor(world, threadId) {
    this.world = world;
    this.threadId = threadId;
  }

  // One connection to its end. True: it got as far as an answer.
  connection(port) {
    this.open.clear();
    this.connects++;
    const headers = { 'last-event-id': String(this.last) };
    const path = `${AGENT}/runs/${this.threadId}/events`;
    return new Promise((over) => {
      const sent = request({ host: '127.0.0.1', port, path, headers, agent: false }, (response) => {
        assert.equal(response.statusCode, 200);
        let rest = Buffer.alloc(0);
        response.on('data', (bytes) => { rest = this.#feed(Buffer.concat([rest, bytes])); });
        response.on('error', () => {}).on('close', () => over(true));
      });
      sent.on('error', () => over(false)).on('close', () => over(false));
      this.abort = () => sent.destroy();
      sent.end();
    });
  }

  #feed(bytes) {
    let start = 0;
    for (let end; (end = bytes.indexOf('\n\n', start)) >= 0; start = end + 2)
      this.#frame(bytes.toString('utf8', start, end));
    return bytes.subarray(start);
  }

  #frame(text) {
    if (text.startsWith(':')) return;
    const [, id, type, json] = /^(?:id: (\d+)\n)?event: (\S+)\ndata: (.*)$/.exec(text);
    const { data, runId } = JSON.parse(json);
    if (id !== undefined) this.#fact(Number(id), json);
    if (type === 'text.message.start') this.open.set(data.messageId, '');
    if (type === 'reasoning.delta') this.#thought(data);
    if (type === 'text.delta') this.open.set(data.messageId, this.open.get(data.messageId) + data.delta);
    if (type === 'message.discard') for (const id of [data.messageId, thought(data)]) this.open.delete(id);
    if (type === 'reasoning.end') this.#end(thought(data));
    if (type === 'text.message.end') this.#end(data.messageId);
    if (isEnd({ type })) this.world.ended(runId);
  }

  #thought(data) { // has no start of its own
    const before = data.offset === 0 ? '' : this.open.get(thought(data));
    this.open.set(thought(data), before + data.delta);
  }

  #end(id) {
    this.texts.set(id, this.open.get(id) ?? '');
    this.open.delete(id);
  }

  #fact(seq, json) {
    if (seq !== this.last + 1) this.world.fail(`${this.threadId}: fact ${seq} after ${this.last}`);
    this.facts.set(seq, json);
    this.last = seq;
  }
}

// ---- the server and all who talk to it ----

class World {
  rounds = 0;
  restarts = 0;
  cuts = 0;
  inside = 0;
  runs = new Map(); // runId -> function to call when it has ended
  finished = 0;
  failure = null;

  constructor(home) {
    this.home = home;
    this.port = home.server.port;
    this.up = Promise.resolve();
  }

  get over() {
    return this.rounds >= ROUNDS || this.failure !== null;
  }

  fail(what) {
    this.failure ??= what;
  }

  ended(runId) {
    this.runs.get(runId)?.();
    if (this.runs.delete(runId)) this.finished++;
  }

  // A connection was cut. Was its reader in the middle of a message?
  cut(reader) {
    this.cuts++;
    if (reader.open.size) this.inside++;
  }

  round() {
    this.rounds++;
    if (this.rounds % RESTART_EVERY === 0 && this.rounds <= ROUNDS) this.up = this.up.then(() => this.restart());
  }

  async restart() {
    for (const reader of this.readers) if (reader.connected) this.cut(reader);
    if (this.restarts++ % 2) await this.home.stop();
    else {
      await this.home.server.kill9();
      this.home.server = null;
    }
    this.port = (await this.home.start()).port;
  }

  // The next message, until it is taken: the same request again after each restart.
  async say(threadId, n) {
    const runId = `${threadId}-r${n}`;
    const ended = new Promise((resolve) => { this.runs.set(runId, resolve); });
    const input = { threadId, runId, messages: [user(kind(threadId, n), `${runId}-u`)] };
    await waitFor(`${runId} is accepted`, async () => {
      await this.up;
      const answer = await postRun({ host: '127.0.0.1', port: this.port }, input).catch(() => null);
      if (answer && answer.status !== 503) assert.equal(answer.status, 202, answer.text);
      return answer?.status === 202;
    }, RUN_MS_MAX);
    await within(RUN_MS_MAX, `the end of ${runId}`, ended);
  }

  async talk(threadId) {
    for (let n = 0; !this.over; n++) await this.say(threadId, n);
  }

  // Reads until told that it is enough; cut as long as there are rounds.
  async read(reader, random) {
    const wire = await Wire.open(this, random, () => {
      this.cut(reader);
      reader.connected = false;
      this.round();
    });
    while (!reader.enough) {
      await this.up;
      wire.budget = this.over ? Infinity : 1 + random(CUT_BYTES_MAX);
      reader.connected = true;
      await reader.connection(wire.port);
      reader.connected = false;
    }
    wire.close();
  }
}

// What a reader that is never cut sees of the thread, and what history says of it.
async function reference(t, server, threadId) {
  const { seq, messages } = await history(server, threadId, '?limit=200');
  const events = await openEvents(t, server, threadId, { query: '?after=0' });
  await events.until((event) => event.seq === seq);
  events.close();
  const texts = new Map();
  for (const { type, data } of events.facts) {
    if (type === 'text.message.end') texts.set(data.messageId, data.content);
    if (type === 'reasoning.end') texts.set(thought(data), data.content);
  }
  for (const { id, role, content } of messages)
    if (role === 'assistant') assert.equal(texts.get(id), content, 'history says the same');
  return { seq, facts: new Map(events.facts.map((fact) => [fact.seq, JSON.stringify(fact)])), texts };
}

function compare(reader, expected) {
  assert.deepEqual(reader.facts, expected.facts, `facts of ${reader.threadId}`);
  assert.deepEqual(reader.texts, expected.texts, `a reader that was cut has another text in ${reader.threadId}`);
}

test(`${ROUNDS} cuts lose nothing and repeat nothing`, async (t) => {
  const start = Date.now();
  t.diagnostic(`FERMATA_SEED=${seed}`);
  const world = new World(await startTalk(t, LINES));
  const threads = Array.from({ length: THREADS }, (_, i) => `t${i}`);
  world.readers = threads.flatMap((id) => Array.from({ length: READERS }, () => new Reader(world, id)));
  const reading = world.readers.map((reader, i) => world.read(reader, chance(i)));

  await Promise.all(threads.map((id) => world.talk(id)));
  await world.up;
  const expected = new Map();
  for (const id of threads) expected.set(id, await reference(t, world.home.server, id));
  for (const reader of world.readers) {
    const { seq } = expected.get(reader.threadId);
    await waitFor(`a reader has fact ${seq}`, () => world.failure || reader.last >= seq, SETTLE_MS_MAX);
    reader.enough = true;
    reader.abort();
  }
  await Promise.all(reading);

  assert.equal(world.failure, null);
  for (const reader of world.readers) compare(reader, expected.get(reader.threadId));
  const share = world.inside / world.cuts;
  t.diagnostic(`${world.rounds} rounds, ${world.restarts} of them restarts; ${world.cuts} connections cut, `
    + `${(100 * share).toFixed(1)} % inside a message; ${world.finished} runs; `
    + `${world.readers.reduce((sum, { connects }) => sum + connects, 0)} connects; ${Date.now() - start} ms`);
  assert.ok(world.restarts >= Math.floor(ROUNDS / RESTART_EVERY), `${world.restarts} restarts`);
  assert.ok(world.finished >= RUNS_MIN, `${world.finished} runs came to an end meanwhile`);
  assert.ok(share >= INSIDE_MIN, `${share} of the cuts were inside a message`);
});

// SPDX-License-Identifier: Apache-2.0
//
// One thread, read by many in three dialects at once: native events, AG-UI by GET, WebSocket. Runs of many deltas follow each
// other; every reader has to get every event of every run, and /metrics has to say that each event was encoded once for each
// dialect, however many read it. A reader here counts frames and looks for the end of a run; it parses nothing else.
//
// One more dialect: a row in `dialects`.

import net from 'node:net';

import { column, median, perSecond, quick, ROUNDS, withServer } from './kit.mjs';

const READERS = 200; // of each dialect
const PIECES = 200; // deltas of a run
const RUNS = quick ? 5 : 20;
const THREAD = 'bench';
const WAIT_MS = 120_000;
const API = '/api/v1/agent';

// ---- readers ----

const BLANK = Buffer.from('\n\n');
const COLON = 0x3a; // a comment

/** Frames of an event stream: `end` says whether one, from byte `at`, is the end of a run. */
const eventStream = (end) => (reader, bytes) => {
  let at = 0;
  for (let next; (next = bytes.indexOf(BLANK, at)) >= 0; at = next + 2) {
    if (bytes[at] === COLON) continue;
    reader.frames++;
    if (end(bytes, at)) reader.ended();
  }
  return at;
};

const starts = (text, offset = 0) => (bytes, at) => bytes.latin1Slice(at + offset, at + offset + text.length) === text;
const isFact = starts('id: ');
const finished = starts('{"type":"run.finished"');
const complete = starts('{"type":"ai-chat-complete"');

/** Frames of a WebSocket: a server's are neither masked nor in pieces. */
function socketFrames(reader, bytes) {
  let at = 0;
  while (bytes.length - at >= 2) {
    let head = 2, size = bytes[at + 1];
    if (size === 126) head = 4;
    if (size === 127) head = 10;
    if (bytes.length - at < head) break;
    if (size === 126) size = bytes.readUInt16BE(at + 2);
    else if (size === 127) size = Number(bytes.readBigUInt64BE(at + 2));
    if (bytes.length - at < head + size) break;
    if ((bytes[at] & 0x0f) === 1) {
      reader.frames++;
      if (complete(bytes, at + head)) reader.ended(); // comes last
    }
    at += head + size;
  }
  return at;
}

/** A short text of a client. */
function text(json) {
  const body = Buffer.from(JSON.stringify(json));
  const mask = Buffer.alloc(4); // of zeros: the body stays as it is
  return Buffer.concat([Buffer.from([0x81, 0x80 | body.length]), mask, body]);
}

/** HTTP/1.0, so that the frames come without a framing of their own. */
const get = (where) => Buffer.from(`GET ${where} HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n`);
const upgrade = Buffer.from(`GET ${API}/ws HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n`
  + 'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n');

/** name: what is asked, what is answered, how frames are counted. */
const dialects = {
  native: { ask: get(`${API}/runs/${THREAD}/events`), status: '200',
    count: eventStream((bytes, at) => isFact(bytes, at) && finished(bytes, bytes.indexOf('{', at))) },
  'ag-ui': { ask: get(`${API}/runs/${THREAD}/events?format=ag-ui`), status: '200', count: eventStream(starts('RUN_FINISHED', 'data: {"type":"'.length)) },
  websocket: { ask: Buffer.concat([upgrade, text({ type: 'subscribe', sessionId: THREAD, events: ['native', 'clarify', 'ask-user'] })]), status: '101', count: socketFrames },
};

class Reader {
  frames = 0;
  runs = 0;
  #rest = null;
  #isOpen = false;

  constructor(port, dialect, crowd) {
    this.dialect = dialect;
    this.crowd = crowd;
    this.socket = net.connect({ host: '127.0.0.1', port, noDelay: true });
    this.socket.on('data', (bytes) => this.#take(bytes));
    this.socket.on('error', (error) => crowd.fail(error.message)).on('close', () => crowd.fail('a reader was cut'));
    this.socket.write(dialects[dialect].ask);
  }

  #take(bytes) {
    let all = this.#rest ? Buffer.concat([this.#rest, bytes]) : bytes;
    if (!this.#isOpen) {
      const head = all.indexOf('\r\n\r\n');
      if (head >= 0 && all.latin1Slice(9, 12) !== dialects[this.dialect].status) this.crowd.fail(all.latin1Slice(0, head));
      this.#isOpen = head >= 0;
      if (this.#isOpen) all = all.subarray(head + 4);
    }
    const used = this.#isOpen ? dialects[this.dialect].count(this, all) : 0;
    this.#rest = used < all.length ? all.subarray(used) : null;
  }

  ended() {
    this.runs++;
    this.crowd.look();
  }
}

/** All readers; waits for them together. */
class Crowd {
  readers = [];
  #wake = null;

  constructor(port, counts) {
    for (const [dialect, count] of Object.entries(counts)) {
      for (let i = 0; i < count; i++) this.readers.push(new Reader(port, dialect, this));
    }
  }

  fail(why) {
    if (this.closed) return;
    this.failure ??= new Error(why);
    this.#wake?.();
  }

  look() {
    this.#wake?.();
  }

  /** Resolves when everybody has seen the end of so many runs. */
  async until(runs) {
    const late = setTimeout(() => this.fail(`not all readers saw run ${runs}`), WAIT_MS);
    let at = 0; // those before have
    while (!this.failure) {
      while (at < this.readers.length && this.readers[at].runs >= runs) at++;
      if (at === this.readers.length) break;
      await new Promise((resolve) => { this.#wake = resolve; });
    }
    clearTimeout(late);
    this.#wake = null;
    if (this.failure) throw this.failure;
  }

  of(dialect) {
    return this.readers.filter((reader) => reader.dialect === dialect);
  }

  close() {
    this.closed = true;
    for (const { socket } of this.readers) socket.destroy();
  }
}

// ---- measuring ----

async function encodings(server) {
  const page = await (await fetch(`${server.url}/metrics`)).text();
  return Object.fromEntries([...page.matchAll(/^fermata_events_encoded_total\{dialect="([^"]+)"\} (\d+)$/gm)].map(([, name, value]) => [name, Number(value)]));
}

async function say(server) {
  const answer = await fetch(`${server.url}${API}/runs`, {
    method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ threadId: THREAD, messages: [{ role: 'user', content: 'go' }] }),
  });
  if (answer.status !== 202) throw new Error(`a run was refused: ${answer.status}`);
  await answer.arrayBuffer();
}

/** Encodings for each event; an error unless each reader of a dialect got the same. */
function perEvent(crowd, before, encoded) {
  const frames = {};
  for (const name of Object.keys(dialects)) {
    const got = crowd.of(name).map((reader) => reader.frames - before.get(reader));
    if (got.some((count) => count !== got[0])) throw new Error(`${name}: readers got ${Math.min(...got)} to ${Math.max(...got)} frames`);
    frames[name] = got[0];
  }
  // A fact or a preview is one native frame and one text; in AG-UI it may be several frames, or none.
  const events = { native: frames.native, websocket: frames.websocket, 'ag-ui': frames.native };
  return Object.fromEntries(Object.keys(encoded).filter((name) => events[name]).map((name) => [name, encoded[name] / events[name]]));
}

/** So many readers of each dialect; all have seen a run before it begins. */
const measure = (counts) => async (server) => {
  const crowd = new Crowd(Number(new URL(server.url).port), counts);
  try {
    await say(server);
    await crowd.until(1);
    const before = new Map(crowd.readers.map((reader) => [reader, reader.frames]));
    const first = await encodings(server);
    const began = process.hrtime.bigint();
    for (let run = 1; run <= RUNS; run++) {
      await say(server);
      await crowd.until(run + 1);
    }
    const seconds = Number(process.hrtime.bigint() - began) / 1e9;
    const then = await encodings(server);
    const encoded = Object.fromEntries(Object.keys(then).map((name) => [name, then[name] - first[name]]));
    const deliveries = crowd.readers.reduce((sum, reader) => sum + reader.frames - before.get(reader), 0);
    return { deliveries_per_s: deliveries / seconds, deliveries, seconds, encoded, per_event: perEvent(crowd, before, encoded) };
  } finally {
    crowd.close();
  }
};

export async function dialectsRow() {
  const counts = Object.fromEntries(Object.keys(dialects).map((name) => [name, READERS]));
  const figures = { ours: [], floor: [] };
  for (let round = 0; round < ROUNDS; round++) {
    figures.ours.push(await withServer('talker', { pieces: PIECES }, measure(counts)));
    figures.floor.push(await withServer('talker', { pieces: PIECES }, measure({ native: 3 * READERS })));
  }
  for (const { per_event: rates } of figures.ours) {
    for (const name of Object.keys(dialects)) if (rates[name] !== 1) throw new Error(`${name}: ${rates[name]} encodings for each event`);
  }
  const rate = column(figures.ours, 'deliveries_per_s'), floor = median(figures.floor.map((run) => run.deliveries_per_s));
  const show = perSecond('ev');
  return {
    value: rate, figure: show(rate), peer: `native alone ${show(floor)}`, ratio: rate / floor, detail: figures,
    more: `encodings for each event: ${Object.entries(figures.ours[0].per_event).map(([name, each]) => `${name} ${each}`).join(', ')}`,
  };
}

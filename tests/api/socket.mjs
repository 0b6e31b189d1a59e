// SPDX-License-Identifier: Apache-2.0
//
// A WebSocket client that takes nothing on trust: it writes any bytes it is told to, and refuses a frame of the server
// that is not to the letter. On top of it a client that speaks JSON, and checks every event as tests/api/talk.mjs does.

import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';

import { RawConnection } from './raw.mjs';
import { within } from './server.mjs';
import { AGENT, isPreview, Texts, TIME } from './talk.mjs';

const MS_MAX = 60_000;
const GUID = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';

export const TEXT = 1, BINARY = 2, CLOSE = 8, PING = 9, PONG = 10;
export const WS = `${AGENT}/ws`;

// The bytes of a client's frame. `length` says how the length is written: 7, 16 or 64 bits; `claims` says another one.
export function frame(payload, { opcode = TEXT, fin = true, rsv = 0, masked = true, length, claims } = {}) {
  const body = Buffer.from(payload);
  const size = claims ?? BigInt(body.length);
  const bits = length ?? (size < 126n ? 7 : size < 65536n ? 16 : 64);
  const head = [(fin ? 0x80 : 0) | (rsv << 4) | opcode];
  const mask = masked ? 0x80 : 0;
  let extra = Buffer.alloc(0);
  if (bits === 7) {
    head.push(mask | Number(size));
  } else if (bits === 16) {
    head.push(mask | 126);
    extra = Buffer.alloc(2);
    extra.writeUInt16BE(Number(size));
  } else {
    head.push(mask | 127);
    extra = Buffer.alloc(8);
    extra.writeBigUInt64BE(BigInt(size));
  }
  if (!masked) return Buffer.concat([Buffer.from(head), extra, body]);
  const key = randomBytes(4);
  return Buffer.concat([Buffer.from(head), extra, key, body.map((byte, i) => byte ^ key[i % 4])]);
}

export const closeFrame = (code, reason = '') => {
  const head = Buffer.alloc(2);
  head.writeUInt16BE(code);
  return frame(Buffer.concat([head, Buffer.from(reason)]), { opcode: CLOSE });
};

// The request of a handshake as text. A header whose value is undefined is left out; a list is several lines.
export function handshake(server, { path = WS, method = 'GET', version = '1.1', key = randomBytes(16).toString('base64'), headers = {} } = {}) {
  const all = {
    Host: `${server.host}:${server.port}`, Upgrade: 'websocket', Connection: 'Upgrade', 'Sec-WebSocket-Version': '13',
    'Sec-WebSocket-Key': key, ...headers,
  };
  const lines = Object.entries(all).flatMap(([name, value]) => [value].flat().filter((one) => one !== undefined).map((one) => `${name}: ${one}`));
  return `${method} ${path} HTTP/${version}\r\n${lines.join('\r\n')}\r\n\r\n`;
}

// One server frame off the front of `bytes`: {opcode, payload, size}, or null.
function parseFrame(bytes) {
  if (bytes.length < 2) return null;
  const [first, second] = bytes;
  assert.equal(first & 0x70, 0, 'no reserved bit');
  assert.ok(first & 0x80, 'no fragments');
  assert.equal(second & 0x80, 0, 'a server does not mask');
  const opcode = first & 0x0f;
  assert.ok([TEXT, CLOSE, PING, PONG].includes(opcode), `opcode ${opcode}`);
  let at = 2, length = second;
  if (second === 126) {
    if (bytes.length < 4) return null;
    length = bytes.readUInt16BE(2);
    at = 4;
    assert.ok(length > 125, 'the shortest form of a length');
  } else if (second === 127) {
    if (bytes.length < 10) return null;
    length = Number(bytes.readBigUInt64BE(2));
    at = 10;
    assert.ok(length > 65535, 'the shortest form of a length');
  }
  if (opcode >= 8) assert.ok(length <= 125, 'a short control frame');
  if (bytes.length < at + length) return null;
  return { opcode, payload: bytes.subarray(at, at + length), size: at + length };
}

// A connection after its handshake: bytes out, frames in.
export class Frames {
  // Resolves to the answer of the handshake and, if it is 101, the frames: {response, frames}.
  static async open(t, server, options = {}) {
    const raw = await RawConnection.open(server);
    t.after(() => raw.close());
    const key = options.key ?? randomBytes(16).toString('base64');
    await raw.write(Buffer.concat([Buffer.from(handshake(server, { key, ...options }), 'latin1'), options.behind ?? Buffer.alloc(0)]));
    const response = await raw.response();
    if (response?.status === 101) {
      assert.equal(response.headers['sec-websocket-accept'], createHash('sha1').update(key + GUID).digest('base64'));
      assert.equal(response.headers.upgrade.toLowerCase(), 'websocket');
      assert.match(response.headers.connection, /^upgrade$/i);
      assert.equal(response.headers['content-length'], undefined);
      assert.equal(response.headers['transfer-encoding'], undefined);
    }
    return { response, frames: response?.status === 101 ? new Frames(raw) : null };
  }

  constructor(raw) {
    this.raw = raw;
  }

  write(bytes) {
    return this.raw.write(bytes);
  }

  // The next frame; null when the other side has ended.
  async next(ms = MS_MAX) {
    const arrived = async () => {
      for (;;) {
        const found = parseFrame(this.raw.received);
        if (found) {
          this.raw.received = this.raw.received.subarray(found.size);
          return found;
        }
        if (this.raw.ended) return null;
        await new Promise((resolve) => { this.raw.wake = resolve; });
      }
    };
    return within(ms, 'frame', arrived());
  }

  // The next close frame, past all others: {code, reason}; code is null when the connection ended without one.
  async closed(ms) {
    for (let one; (one = await this.next(ms));) {
      if (one.opcode !== CLOSE) continue;
      if (!one.payload.length) return { code: 1005, reason: '' };
      return { code: one.payload.readUInt16BE(0), reason: new TextDecoder('utf-8', { fatal: true }).decode(one.payload.subarray(2)) };
    }
    return { code: null };
  }

  close() {
    this.raw.close();
  }
}

const NEWS = ['interaction.request', 'interaction.resolved'];
const OWN = ['ack', 'error', 'pong', 'inbox', 'clarify_request', 'ai-agent-ask-user', 'ai-chat-complete'];

// A client that speaks JSON. Everything that comes is kept in `all`, in order.
export class Socket {
  #waiting = [];
  #wake = () => {};
  #failed = null;
  #texts = new Map(); // sessionId -> Texts
  #seqs = new Map(); // sessionId -> seq of the newest fact
  #ids = 0;

  // Opens one that must be let in.
  static async open(t, server, options = {}) {
    const { response, frames } = await Frames.open(t, server, options);
    assert.equal(response?.status, 101, response?.body);
    return new Socket(frames);
  }

  constructor(frames) {
    this.frames = frames;
    this.all = [];
    this.over = null; // {code, reason} once it is closed
    this.#read();
  }

  async #read() {
    try {
      for (;;) {
        const one = await this.frames.next(2 ** 30);
        if (!one) break;
        if (one.opcode === PING) await this.frames.write(frame(one.payload, { opcode: PONG }));
        if (one.opcode === CLOSE) {
          this.over = { code: one.payload.readUInt16BE(0), reason: one.payload.toString('utf8', 2) };
          await this.frames.write(closeFrame(this.over.code));
          this.frames.close();
          break;
        }
        if (one.opcode === TEXT) this.#take(JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(one.payload)));
      }
    } catch (error) {
      this.#failed ??= error;
    }
    this.over ??= { code: null };
    this.#wake();
  }

  #take(message) {
    this.#check(message);
    this.all.push(message);
    this.#waiting.push(message);
    this.#wake();
  }

  // An event is to the letter, follows the one before it, and makes sense to a client that only appends.
  #check(message) {
    const { type, sessionId, runId, seq, data } = message;
    if (OWN.includes(type) || (seq === undefined && NEWS.includes(type))) return; // the latter is the inbox's
    const fact = !isPreview(type);
    const members = ['type', 'sessionId', ...(type === 'reset' ? [] : ['runId']), ...(fact ? ['seq'] : []), 'ts', 'data'];
    assert.deepEqual(Object.keys(message), members, JSON.stringify(message).slice(0, 200));
    assert.match(message.ts, TIME);
    if (fact) {
      const before = this.#seqs.get(sessionId);
      if (type !== 'reset' && before !== undefined) assert.equal(seq, before + 1, `the fact after ${before} of ${sessionId}`);
      this.#seqs.set(sessionId, seq);
    }
    if (!this.#texts.has(sessionId)) this.#texts.set(sessionId, new Texts());
    this.#texts.get(sessionId).take({ type, runId, data });
  }

  // Forget what was read of a session: a new subscription begins.
  forget(sessionId) {
    this.#texts.delete(sessionId);
    this.#seqs.delete(sessionId);
  }

  write(text) {
    return this.frames.write(frame(text));
  }

  send(value) {
    return this.write(JSON.stringify(value));
  }

  // Sends a frame with an id, and resolves to its ack or error.
  async ask(value) {
    const id = value.id ?? `q${++this.#ids}`;
    await this.send({ ...value, id });
    return this.one((message) => message.id === id);
  }

  // The same, taken: the ack's data.
  async done(value) {
    const answer = await this.ask(value);
    assert.equal(answer.type, 'ack', JSON.stringify(answer));
    return answer.data;
  }

  // The same, refused: the error's data.
  async refused(value, code, field) {
    const answer = await this.ask(value);
    assert.deepEqual(Object.keys(answer), ['type', 'id', 'data']);
    assert.equal(answer.type, 'error', JSON.stringify(answer));
    assert.equal(answer.data.code, code, JSON.stringify(answer));
    assert.ok(answer.data.message);
    assert.equal(answer.data.field, field);
    return answer.data;
  }

  async subscribe(sessionId, more = {}) {
    this.forget(sessionId);
    return this.done({ type: 'subscribe', sessionId, ...more });
  }

  async #until(what, find) {
    const arrived = async () => {
      for (;;) {
        if (this.#failed) throw this.#failed;
        const found = find();
        if (found !== undefined) return found;
        if (this.over) throw new Error(`closed with ${this.over.code} ${this.over.reason ?? ''}`);
        await new Promise((resolve) => { this.#wake = resolve; });
      }
    };
    try {
      return await within(MS_MAX, what, arrived());
    } catch (error) {
      error.message += ` (after ${this.all.map(({ type, seq }) => seq ?? type).slice(-20).join(' ')})`;
      throw error;
    }
  }

  // The next message; and the next for which it holds, which is taken out from among the others.
  next() {
    return this.#until('message', () => this.#waiting.shift());
  }

  one(predicate) {
    return this.#until('message', () => {
      const at = this.#waiting.findIndex(predicate);
      return at < 0 ? undefined : this.#waiting.splice(at, 1)[0];
    });
  }

  // Everything up to and with the first for which it holds.
  until(predicate) {
    return this.#until('message', () => {
      const at = this.#waiting.findIndex(predicate);
      return at < 0 ? undefined : this.#waiting.splice(0, at + 1);
    });
  }

  // How it was closed by the server.
  async closed() {
    const arrived = async () => {
      for (;;) {
        if (this.#failed) throw this.#failed;
        if (this.over) return this.over;
        await new Promise((resolve) => { this.#wake = resolve; });
      }
    };
    return within(MS_MAX, 'close', arrived());
  }

  close() {
    this.frames.close();
  }
}

// The codes of errors and what HTTP makes of them, so that a test can ask the same of both.
const STATUS = {
  invalid_field: 400, unauthenticated: 401, forbidden: 403, not_found: 404, busy: 409, already_resolved: 409, ambiguous: 409, not_current: 409,
  superseded: 409, expired: 410, binding_mismatch: 412, too_large: 413, idempotency_mismatch: 422, rate_limited: 429,
};

// One frame on a socket of its own; what comes back looks like the answer of an HTTP request.
async function oneFrame(server, value, headers, status) {
  const closing = [];
  try {
    const { response, frames } = await Frames.open({ after: (fn) => closing.push(fn) }, server, { headers });
    if (!frames) return { status: response.status, text: response.body, headers: {}, json: () => JSON.parse(response.body) };
    const answer = await new Socket(frames).ask({ id: 1, ...value });
    const text = JSON.stringify(answer);
    return { status: answer.type === 'ack' ? status : STATUS[answer.data.code], text, headers: {}, json: () => answer.data };
  } finally {
    for (const fn of closing) fn();
  }
}

export const answerFrame = (server, value, headers = {}) => oneFrame(server, value, headers, 200);
export const messageFrame = (server, sessionId, content, headers = {}) => oneFrame(server, { type: 'message', sessionId, content }, headers, 202);

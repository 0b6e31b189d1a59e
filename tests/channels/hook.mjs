// SPDX-License-Identifier: Apache-2.0
//
// A program of an operator's at the other end of a channel of kind `webhook`: it receives what the agent says, checks
// that it is signed, knows repeats by their id, and sends what people say, signed.
//
//   const bridge = await startBridge();
//   ... url: bridge.url, secret bridge.secret ...
//   bridge.hook = 'http://127.0.0.1:.../webhook';
//   const said = await bridge.say('alice', 'hello');           // {status, body, json(), message}
//   const asked = await bridge.waitForSend(/which day/);       // {id, to, class, text, buttons?, interactionId?, file?}
//   await bridge.press('alice', asked, 'Tuesday');
//   assert.deepEqual(bridge.violations, []);
//   await bridge.close();
//
// sends [...]: what came, each id once; copies: how many of them came again; violations [string]: what was not signed,
// not in time, or no message at all; those are answered with 401 or 400.
// say(who, text, {...}): more members of the message: group, quoted, name, files: [{name, mimeType, bytes}], id.
// post(message, {secret, timestamp, signature, raw}): any message, signed or as it is told.
// failNext(how, times): 'cut' before it is taken, 'cut-after' it was; 'hang', 'hang-after'; a number is a status.
// answerId: what the answer says the id of the message is: a function of the message; none by default.

import { createHmac, randomBytes, randomUUID, timingSafeEqual } from 'node:crypto';
import { EventEmitter, once } from 'node:events';
import { createServer } from 'node:http';

const FRESH_S = 300;
const MEMBERS = new Set(['id', 'to', 'class', 'text', 'buttons', 'interactionId', 'file']);
const CLASSES = new Set(['final', 'question', 'error', 'notice']);

export const signature = (secret, timestamp, body) => `v1=${createHmac('sha256', secret).update(`${timestamp}.`).update(body).digest('hex')}`;

const same = (a, b) => a.length === b.length && timingSafeEqual(Buffer.from(a), Buffer.from(b));

export class Bridge {
  constructor(options) {
    Object.assign(this, { secret: randomBytes(24).toString('base64url'), hook: '', answerId: null }, options);
    this.sends = []; this.violations = []; this.trouble = [];
    this.ids = new Set();
    this.copies = 0;
    this.news = new EventEmitter().setMaxListeners(0);
  }

  async listen() {
    this.server = createServer((request, response) => {
      this.take(request, response).catch((error) => { this.violations.push(`the bridge: ${error.stack}`); response.destroy(); });
    });
    await new Promise((done) => { this.server.listen(0, '127.0.0.1', done); });
    this.url = `http://127.0.0.1:${this.server.address().port}/from-fermata`;
    return this;
  }

  async close() {
    this.server.closeAllConnections();
    await new Promise((done) => { this.server.close(done); });
  }

  // ---- what the agent says ----

  async take(request, response) {
    const pieces = [];
    for await (const piece of request.on('error', () => {})) pieces.push(piece);
    const body = Buffer.concat(pieces);
    const how = this.trouble.shift();
    if (how === 'cut') { response.destroy(); return; }
    if (how === 'hang') { await once(response, 'close'); return; }
    if (typeof how === 'number') { response.writeHead(how).end(); return; }
    const why = this.forged(request, body);
    if (why) { this.violations.push(why); response.writeHead(401).end(); return; }
    const message = this.read(body);
    if (!message) { response.writeHead(400).end(); return; }
    if (this.ids.has(message.id)) {
      this.copies++;
    } else {
      this.ids.add(message.id);
      this.sends.push(message);
      this.news.emit('news');
    }
    if (how === 'cut-after') response.destroy();
    else if (how === 'hang-after') await once(response, 'close');
    else response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(this.answerId ? { id: this.answerId(message) } : {}));
  }

  forged(request, body) {
    const timestamp = request.headers['fermata-timestamp'] ?? '';
    if (request.method !== 'POST' || request.headers['content-type'] !== 'application/json') return 'not a POST of JSON';
    if (!/^\d{10}$/.test(timestamp) || Math.abs(Date.now() / 1000 - Number(timestamp)) > FRESH_S) return `not in time: ${timestamp}`;
    if (!same(request.headers['fermata-signature'] ?? '', signature(this.secret, timestamp, body))) return 'not signed';
    return '';
  }

  read(body) {
    let message;
    try {
      message = JSON.parse(body.toString('utf8'));
    } catch {
      this.violations.push(`no JSON: ${body}`);
      return null;
    }
    const strange = Object.keys(message).filter((name) => !MEMBERS.has(name));
    if (strange.length) this.violations.push(`strange members: ${strange}`);
    if (!message.id || !message.to || !CLASSES.has(message.class) || !(message.text || message.file)) {
      this.violations.push(`not a message: ${body}`);
      return null;
    }
    if (message.file) message.file.bytes = Buffer.from(message.file.data, 'base64');
    return message;
  }

  // ---- what people say ----

  async post(message, { secret = this.secret, timestamp = String(Math.floor(Date.now() / 1000)), signature: given, raw, method = 'POST' } = {}) {
    const body = Buffer.from(raw ?? JSON.stringify(message));
    const headers = { 'content-type': 'application/json' };
    if (timestamp !== null) headers['fermata-timestamp'] = timestamp;
    if (given !== null) headers['fermata-signature'] = given ?? signature(secret, timestamp, body);
    const answer = await fetch(this.hook, { method, headers, body: method === 'POST' ? body : undefined });
    const text = await answer.text();
    return { status: answer.status, type: answer.headers.get('content-type'), body: text, json: () => JSON.parse(text), message };
  }

  say(who, text, { files = [], ...more } = {}) {
    const message = { id: randomUUID(), sender: who, ...(text === undefined ? {} : { text }), ...more };
    if (files.length) message.files = files.map(({ bytes, ...file }) => ({ ...file, data: bytes.toString('base64') }));
    return this.post(message);
  }

  press(who, sent, label) {
    const button = sent.buttons?.find((entry) => entry.label === label || entry.data === label);
    if (!button) throw new Error(`no button "${label}"`);
    return this.say(who, undefined, { button: button.data });
  }

  // ---- trouble and waiting ----

  failNext(how, times = 1) { for (let i = 0; i < times; i++) this.trouble.push(how); }

  async waitForSend(match = () => true, { from = 0, timeoutMs = 30_000 } = {}) {
    const fits = (entry) => (typeof match === 'function' ? match(entry) : match instanceof RegExp ? match.test(entry.text) : entry.text === match);
    const until = AbortSignal.timeout(timeoutMs);
    for (;;) {
      const found = this.sends.slice(from).find(fits);
      if (found) return found;
      try {
        await once(this.news, 'news', { signal: until });
      } catch {
        throw new Error(`nothing sent is ${match} after ${timeoutMs} ms: ${JSON.stringify(this.sends.slice(from))}`);
      }
    }
  }
}

export const startBridge = (options = {}) => new Bridge(options).listen();

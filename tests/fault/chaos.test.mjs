// SPDX-License-Identifier: Apache-2.0
//
// Requests of every kind, torn at random moments, while keys are revoked, threads deleted and the configuration is read
// again. No sanitizer complains, the server stops in good order, and every conversation is whole afterwards.
//
// FERMATA_CHAOS=n says how many requests (make test-long sends many); FERMATA_SEED=n tries a run again: the same
// requests and tears, in the order of the workers; what the clock adds is not under the seed.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { connect } from 'node:net';
import { fileURLToPath } from 'node:url';
import { test } from 'node:test';

import { bearer, call, run } from '../api/home.mjs';
import { within } from '../api/server.mjs';
import { frame, handshake } from '../api/socket.mjs';
import { get, history, openEvents, waitFor } from '../api/talk.mjs';
import { chance, seed } from './chance.mjs';
import { checkDatabase, readDatabase } from './oracle.mjs';
import { form, LINES, REQUESTS, startWorld } from './world.mjs';

const COUNT = Number(process.env.FERMATA_CHAOS ?? 800);
const WORKERS = 12;
const THREADS_MAX = 60; // at a time, of which requests speak
const ANSWER_MS_MAX = 60_000;
const FULL_EVERY = 40; // one of so many is a request whose state is made for it, as in gone.test.mjs
const SHOWN = 300; // conversations that are read again at the end
const CHILD = fileURLToPath(new URL('../tools/mcp-child.mjs', import.meta.url));

const WORDS = ['hello', 'ask', 'book', 'card', 'slow', 'price', 'fall', '你好', 'hello again'];

// ---- what is sent ----

class Chaos {
  constructor(world) {
    this.world = world;
    this.next = chance(1);
    this.threads = [];
    this.interactions = ['int_none'];
    this.cards = [];
    this.attachments = ['att_none'];
    this.cookies = [];
    this.keys = [];
    this.kinds = new Map();
    this.left = COUNT;
  }

  pick(list) { return list[this.next(list.length)]; }

  thread() {
    if (!this.threads.length || (this.threads.length < THREADS_MAX && this.next(4) === 0)) this.threads.push(this.world.fresh('chaos'));
    return this.pick(this.threads);
  }

  login() {
    if (this.cookies.length && this.next(6) === 0) return { Cookie: this.pick(this.cookies), Origin: this.world.server.url };
    return this.keys.length && this.next(3) === 0 ? bearer(this.pick(this.keys)) : this.world.headers;
  }

  message(more = {}) {
    const data = Buffer.alloc(1 + this.next(3000), 'words ').toString('base64');
    const content = this.next(5) ? this.pick(WORDS) : [{ type: 'text', text: 'look' }, { type: 'binary', mimeType: 'text/plain', data }];
    return { threadId: this.thread(), messages: [{ id: randomUUID(), role: 'user', content }],
      ...(this.next(12) ? {} : { state: { noise: Array.from({ length: 30_000 }, (_, i) => i) } }), ...more };
  }

  agent(method, path, options = {}) { return this.world.agent(method, path, { login: this.login(), ...options }); }

  key() { return this.next(2) ? { 'Idempotency-Key': `k-${this.next(500)}-${randomUUID().slice(0, this.next(3))}` } : {}; }

  // Kinds that need nothing made for them: they speak of what the requests before have left.
  cheap() {
    const interaction = () => this.pick(this.interactions);
    const card = () => this.pick(this.cards) ?? { threadId: 't', messageId: 'm', actionId: 'a' };
    const kinds = {
      run: () => this.agent('POST', '/runs', { headers: this.key(), body: this.message() }),
      'run, streamed': () => this.agent('POST', '/runs', { headers: { Accept: 'text/event-stream' }, body: this.message() }),
      'ag-ui': () => this.agent('POST', '/ag-ui/assistant', { headers: { Accept: 'text/event-stream' }, body: this.message({ runId: randomUUID(), tools: [], context: [], forwardedProps: {} }) }),
      'run, look': () => this.agent('GET', `/runs/${this.thread()}`),
      'run, cancel': () => this.agent('POST', `/runs/${this.thread()}/cancel`),
      'run, answer': () => this.agent('POST', `/runs/${this.thread()}/answer`, { headers: this.key(), body: { answer: 'This.' } }),
      'run, unqueue': () => this.agent('DELETE', `/runs/${this.thread()}/queue/1`),
      events: () => this.agent('GET', `/runs/${this.thread()}/events?after=${this.next(20)}`),
      'events, ag-ui': () => this.agent('GET', `/runs/${this.thread()}/events?format=ag-ui`),
      'run, history': () => this.agent('GET', `/runs/${this.thread()}/history?limit=${1 + this.next(50)}`),
      threads: () => this.agent('GET', '/threads'),
      search: () => this.agent('GET', `/threads?q=${encodeURIComponent(this.pick(['hello', '你', 'o', 'zzz']))}`),
      'thread, rename': () => this.agent('PATCH', `/threads/${this.thread()}`, { headers: this.key(), body: { title: `T ${this.next(9)}` } }),
      'thread, delete': () => {
        const threadId = this.thread();
        this.threads = this.threads.filter((one) => one !== threadId);
        return this.agent('DELETE', `/threads/${threadId}`);
      },
      'thread, export': () => this.agent('GET', `/threads/${this.thread()}/export`),
      inbox: () => this.agent('GET', '/interactions'),
      interaction: () => this.agent('GET', `/interactions/${interaction()}`),
      'interaction, answer': () => this.agent('POST', `/interactions/${interaction()}/answer`, { headers: this.key(), body: this.pick([{ answer: 'This.' }, { decision: 'approve' }, { decision: 'reject' }]) }),
      'interaction, cancel': () => this.agent('POST', `/interactions/${interaction()}/cancel`),
      press: () => this.agent('POST', '/actions', { headers: this.key(), body: card() }),
      result: () => { const { threadId, messageId } = card(); return this.agent('GET', `/threads/${threadId}/messages/${messageId}/result`); },
      upload: () => {
        const { bytes, headers } = form(this.thread(), Buffer.alloc(this.next(200_000), 'file '));
        return this.agent('POST', '/attachments', { headers: { ...headers, ...this.key() }, body: bytes });
      },
      download: () => this.agent('GET', `/attachments/${this.pick(this.attachments)}`, { headers: this.next(2) ? { Range: 'bytes=1-9' } : {} }),
      'mcp, ask': () => this.world.mcp('ask_user', { question: 'Which?', wait_s: this.next(3), key: `q-${this.next(200)}` }),
      'mcp, get_answer': () => this.world.mcp('get_answer', { id: interaction(), wait_s: this.next(2) }),
      hook: () => this.world.hook({ sender: `alice-${this.next(5)}`, text: this.pick(WORDS) }),
      'hook, unsigned': () => this.world.agent('POST', '/channels/own/webhook', { login: {}, body: { id: 'x', sender: 'eve', text: 'x' } }),
      session: () => this.world.bytes('POST', '/api/v1/session', { login: {}, body: { key: this.world.key } }),
      ticket: () => this.world.bytes('POST', '/api/v1/tickets', { login: this.login() }),
      grants: () => this.agent('GET', '/grants'),
      settings: () => this.agent('PATCH', '/agents/assistant/settings', { body: { locale: this.pick(['en', 'zh-CN']) } }),
      calendar: () => this.agent('GET', '/calendar.ics'),
      readyz: () => this.world.bytes('GET', '/readyz', { login: {} }),
      metrics: () => this.world.bytes('GET', '/metrics'),
      page: () => this.world.bytes('GET', '/', { login: {} }),
      'no JSON': () => this.agent('POST', '/runs', { body: `{"messages":[${'1,'.repeat(this.next(50_000))}` }),
      nothing: () => Buffer.from('GET / HTTP/1.1\r\nHost: nobody\r\n\r\n'),
      socket: () => Buffer.concat([Buffer.from(handshake(this.world.server, { headers: this.login() })),
        ...Array.from({ length: 1 + this.next(4) }, () => frame(JSON.stringify(this.pick([
          { type: 'subscribe', id: '1', sessionId: this.thread(), after: 0 }, { type: 'subscribe', id: '2', inbox: true },
          { type: 'message', id: '3', sessionId: this.thread(), content: this.pick(WORDS) }, { type: 'stop', id: '4', sessionId: this.thread() },
          { type: 'clarify_response', id: '5', requestId: interaction(), answer: 'This.' }, { type: 'ping', id: '6' },
        ]))))]),
    };
    const name = this.pick(Object.keys(kinds));
    return { name, bytes: kinds[name]() };
  }

  async full() {
    const name = this.pick(Object.keys(REQUESTS).filter((one) => !/^(session, asked|admin)/.test(one)));
    try {
      const made = await REQUESTS[name](this.world);
      return { name, bytes: Buffer.isBuffer(made) ? made : Buffer.concat([made.first ?? Buffer.alloc(0), made.bytes]) };
    } catch { // what it needs was torn away by another: that is the point
      return this.cheap();
    }
  }

  // ---- how it ends ----

  // One request: sent whole or in part, and left, cut or read to its end.
  async one() {
    const { name, bytes } = this.next(FULL_EVERY) ? this.cheap() : await this.full();
    this.kinds.set(name, (this.kinds.get(name) ?? 0) + 1);
    const way = this.next(8);
    const part = way < 2 ? this.next(bytes.length) : bytes.length;
    const patience = [0, 0, 1, 2, 5, 10, 20, 50][this.next(8)];
    const end = this.next(3);
    const { host, port } = this.world.server;
    const socket = connect({ host, port, noDelay: true, allowHalfOpen: true });
    let text = '';
    const over = new Promise((resolve) => { socket.on('close', resolve).on('error', () => {}); });
    const first = new Promise((resolve) => { socket.on('data', (piece) => { if (text.length < 100_000) text += piece.toString('latin1'); resolve(); }).on('end', resolve).on('close', resolve); });
    socket.write(bytes.subarray(0, part));
    if (way === 7) { // read it, and let it end by itself where it does
      socket.end();
      await Promise.race([within(ANSWER_MS_MAX, name, first), over]);
      this.learn(text);
    } else if (way === 6) {
      await within(ANSWER_MS_MAX, name, Promise.race([first, over, new Promise((resolve) => { setTimeout(resolve, 300); })]));
      this.learn(text);
    } else {
      await new Promise((resolve) => { setTimeout(resolve, patience); });
    }
    if (end === 0) socket.resetAndDestroy(); else socket.destroy();
    await over;
  }

  // Names of things that later requests speak of.
  learn(text) {
    for (const id of text.match(/int_[0-9a-z]{26}/g) ?? []) this.remember(this.interactions, id);
    for (const id of text.match(/att_[0-9a-z]{26}/g) ?? []) this.remember(this.attachments, id);
    for (const cookie of text.match(/(?<=Set-Cookie: )[^;]+/gi) ?? []) this.remember(this.cookies, cookie);
  }

  remember(list, item) {
    if (list.length < 50) list.push(item);
    else list[this.next(50)] = item;
  }

  async worker() {
    while (this.left-- > 0) await this.one();
  }

  // ---- what goes on beside ----

  async upheaval(over) {
    const { world } = this;
    for (let round = 0; !over.done; round++) {
      world.server.proc.kill('SIGHUP');
      const key = await this.addKey(this.pick(['ann', 'bob']));
      this.keys.push(key);
      if (this.keys.length > 4) await world.home.revokeKey(this.keys.shift());
      const { interactions = [] } = (await get(world.server, '/interactions', world.headers)).json();
      for (const { interactionId } of interactions) this.remember(this.interactions, interactionId);
      const threadId = await world.card().catch(() => null);
      if (threadId) this.remember(this.cards, { threadId: threadId.threadId, messageId: threadId.messageId, actionId: threadId.ids.Say });
      assert.equal((await call(world.server, 'GET', '/healthz')).status, 200);
      await Promise.race([over.end, new Promise((resolve) => { setTimeout(resolve, 200); })]);
    }
  }

  async addKey(user) {
    const { code, stdout, stderr } = await run(['key', 'add', '--user', user], { env: { FERMATA_DATA: this.world.home.data } });
    assert.equal(code, 0, stderr);
    return stdout.trimEnd();
  }
}

// ---- afterwards ----

// What is read now is what was stored: facts from 1 on without a gap, the last one the thread's last, and a history.
async function checkThread(t, world, db, { id, thread_id: threadId, last_seq: last }) {
  const page = await history(world.server, threadId, '?limit=1', world.headers);
  assert.ok(page.messages.length <= 1);
  if (!last) return;
  const stream = await openEvents(t, world.server, threadId, { query: '?after=0', headers: world.headers });
  const events = await stream.until(({ seq }) => seq >= last);
  stream.close();
  const facts = events.filter(({ seq }) => seq !== undefined);
  assert.deepEqual(facts.slice(0, last).map(({ seq }) => seq), Array.from({ length: last }, (_, i) => i + 1), threadId);
  const stored = db.events.filter(({ thread }) => thread === id);
  assert.deepEqual(facts.slice(0, last).map(({ type, data }) => ({ type, data })), stored.map(({ type, data }) => ({ type, data: JSON.parse(data) })));
}

test(`${COUNT} requests, torn at random moments`, { timeout: 60_000 + COUNT * 200 }, async (t) => {
  console.log(`# seed ${seed}`);
  const world = await startWorld(t, {
    lines: [{ match: '^price', turns: [{ calls: [{ name: 'shop.price', args: { item: 'tea' } }] }, { text: 'Done.' }] },
      { match: '^fall', turns: [{ calls: [{ name: 'shop.fall', args: { item: 'tea' } }] }, { text: 'Done.' }] }, ...LINES],
    config: `mcp: ${JSON.stringify({ shop: { command: [process.execPath, CHILD, '--version', '2025-06-18'], read: ['price'] } })}`,
  });
  const chaos = new Chaos(world);
  const over = { done: false };
  over.end = new Promise((resolve) => { over.stop = () => { over.done = true; resolve(); }; });
  const beside = chaos.upheaval(over);
  const { server } = world;
  const died = server.exited.then((end) => { throw new Error(`the server ended: ${JSON.stringify(end)}\n${server.stderr()}`); });
  died.catch(() => {}); // it ends in good order, later
  const progress = setInterval(() => console.log(`# ${COUNT - Math.max(chaos.left, 0)} of ${COUNT}`), 60_000);
  try {
    await Promise.race([died, Promise.all([beside, Promise.all(Array.from({ length: WORKERS }, () => chaos.worker())).finally(over.stop)])]);
  } catch (error) {
    await Promise.race([died, new Promise((resolve) => { setTimeout(resolve, 1000); })]); // that tells more
    throw error;
  } finally {
    clearInterval(progress);
    over.stop();
  }
  assert.ok(chaos.kinds.size > 30, 'every kind was there');
  assert.equal((await call(world.server, 'GET', '/healthz')).status, 200);
  await world.home.stop(); // exit 0, and no sanitizer has anything to say
  const db = readDatabase(world.home.data);
  checkDatabase(db);
  const audit = await world.home.run(['check', '--audit']);
  assert.equal(audit.code, 0, audit.stdout + audit.stderr);
  await world.home.start();
  const mine = db.threads.filter(({ owner }) => owner === 'ann').slice(-SHOWN);
  assert.ok(mine.length > 5);
  for (const thread of mine) await checkThread(t, world, db, thread);
  await waitFor('the server is ready', async () => (await call(world.server, 'GET', '/readyz')).status === 200);
});

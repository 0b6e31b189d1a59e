// SPDX-License-Identifier: Apache-2.0
//
// A tool outside the server: a shop that takes orders over HTTP. Every execution is a line in a file of its own, on disk
// before the answer. What a test knows about executions it knows from there, never from the server.

import assert from 'node:assert/strict';
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { appendFileSync, closeSync, existsSync, fsyncSync, openSync, readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { answer, waiting } from '../api/asking.mjs';
import { within } from '../api/server.mjs';
import { factsOf, openEvents, runOf, waitFor } from '../api/talk.mjs';
import { until } from './kit.mjs';

const TAKEN_MS_MAX = 20_000;

const ACCEPT = (response, { n }) => {
  const hints = { version: '2.1', intent: 'status', status: 'success', title: `Order ${n}`, body: '已下单 "pens"' };
  response.writeHead(200, { 'content-type': 'application/json' });
  response.end(JSON.stringify({ content: `Order ${n} placed`, result: { order: n }, ui_hints: hints }));
};

export class Shop {
  // Of its own on loopback: nobody else gets the port of one that is closed for a while.
  host = `127.${randomInt(1, 255)}.${randomInt(256)}.${randomInt(1, 255)}`;

  // `respond(response, {n, key, args})` says how the n-th execution ends. `t` closes it.
  static async open(t, respond = ACCEPT) {
    const shop = new Shop();
    const folder = await mkdtemp(join(tmpdir(), 'fermata-shop-'));
    t.after(() => rm(folder, { recursive: true, force: true }));
    shop.path = join(folder, 'orders');
    shop.respond = respond;
    shop.server = createServer({ keepAliveTimeout: 1 }, (asked, response) => shop.#take(asked, response));
    await shop.listen();
    t.after(() => shop.close());
    return shop;
  }

  static accept = ACCEPT;

  // Also opens a closed one again, at the same address.
  async listen() {
    this.server.listen(this.port ?? 0, this.host);
    await once(this.server, 'listening');
    this.port = this.server.address().port;
  }

  async close() {
    if (!this.server.listening) return;
    const closed = once(this.server, 'close');
    this.server.close();
    this.server.closeAllConnections();
    await closed;
  }

  // What it does counts from here on; a request that is not whole is none.
  #take(asked, response) {
    const pieces = [];
    asked.on('error', () => {});
    response.on('error', () => {});
    asked.on('data', (piece) => pieces.push(piece)).on('end', () => {
      if (asked.url === '/ping') return void response.end();
      const order = { key: asked.headers['idempotency-key'], args: JSON.parse(Buffer.concat(pieces)) };
      const file = openSync(this.path, 'a');
      appendFileSync(file, `${JSON.stringify(order)}\n`);
      fsyncSync(file);
      closeSync(file);
      this.respond(response, { n: this.orders.length, ...order });
    });
  }

  // Everything that was executed: [{key, args}].
  get orders() {
    if (!existsSync(this.path)) return [];
    return readFileSync(this.path, 'utf8').split('\n').filter(Boolean).map((line) => JSON.parse(line));
  }

  // Resolves when everything that clients have sent is taken: who came before this visit was let in before it, and who
  // is dead is gone when his bytes are read.
  async quiet() {
    const visit = request({ host: this.host, port: this.port, path: '/ping', agent: false });
    visit.end();
    const [response] = await once(visit, 'response');
    response.resume();
    await once(response, 'close');
    const visitors = () => new Promise((done, failed) => {
      this.server.getConnections((error, count) => (error ? failed(error) : done(count)));
    });
    await until('nobody is in the shop', async () => await visitors() === 0);
  }

  // The line of fermata.yaml for a tool that is this shop.
  tool({ name = 'place_order', effect = 'write', idempotent = false } = {}) {
    const schema = { type: 'object', required: ['item', 'count'], properties: { item: { type: 'string' }, count: { type: 'integer' } } };
    const http = { name, url: `http://${this.host}:${this.port}/`, description: 'Places an order.', schema, effect, idempotent };
    return `  - http: ${JSON.stringify(http)}\n`; // JSON is YAML
  }
}

export const ORDER = { item: 'pens', count: 2 };

// One key, the arguments that were approved.
export function checkOrders(shop, count) {
  const { orders } = shop;
  assert.equal(orders.length, count, `executed ${orders.length} times, not ${count}`);
  for (const { key, args } of orders) assert.deepEqual({ key, args }, { key: orders[0].key, args: ORDER });
}

// An answer that the test gives when it likes: {respond, taken: resolves when a request is there, release}.
export function held() {
  let come, letGo;
  const taken = within(TAKEN_MS_MAX, 'a request', new Promise((resolve) => { come = resolve; }));
  taken.catch(() => {}); // whoever awaits it is told
  const released = new Promise((resolve) => { letGo = resolve; });
  const respond = async (response, order) => {
    come();
    (await released)(response, order);
  };
  return { respond, taken, release: (how = Shop.accept) => letGo(how) };
}

// ---- a run that needs it ----

// Approves what waits first, and waits no further.
export async function approve(server, text) {
  const run = await waiting(server, text);
  const taken = await answer(server, run.open[0].interactionId, { decision: 'approve', binding: run.open[0].binding });
  assert.equal(taken.status, 200, taken.text);
  return run;
}

// Facts of the thread from the first to this one.
export async function factsTo(t, server, threadId, predicate) {
  const events = await openEvents(t, server, threadId, { query: '?after=0' });
  const facts = factsOf(await events.until(predicate));
  events.close();
  return facts;
}

export const finished = (outcome) => ({ type, data }) => type === 'run.finished' && data.outcome === outcome;
export const resultOf = (facts) => facts.find(({ type }) => type === 'tool.call.result')?.data;
export const asked = (facts, kind) => facts.filter(({ type, data }) => type === 'interaction.request' && data.type === kind);

export async function openUncertain(server, threadId) {
  const run = await waitFor('it is asked about', async () => {
    const now = await runOf(server, threadId);
    return now.status === 'waiting' && now.interactions[0]?.type === 'uncertain' && now;
  });
  assert.equal(run.interactions.length, 1);
  return run.interactions[0];
}

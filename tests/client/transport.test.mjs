// SPDX-License-Identifier: Apache-2.0
//
// What carries the client's words, without a server: how bytes become events, what is tried again and when, how silence
// is noticed, and that a reader which is left leaves nothing behind.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { Fermata, FermataError, STEP_MS_MAX, take } from './kit.mjs';

const frame = (seq, data, end = '\n') => [`id: ${seq}`, 'event: step.start', `data: ${JSON.stringify({ type: 'step.start', threadId: 't', runId: 'r', seq, ts: 'x', data })}`, '', ''].join(end);
const bytes = (text) => new TextEncoder().encode(text);
const problem = (status, code, more = {}) => new Response(JSON.stringify({ type: 'x', title: 'X', status, detail: `it is ${code}`, code, ...more }), { status, headers: { 'content-type': 'application/problem+json' } });
const json = (value, status = 200) => new Response(JSON.stringify(value), { status });

// A stream that says these pieces, and then nothing; `end` closes it.
function stream(pieces, { end = false, signal } = {}) {
  return new Response(new ReadableStream({
    start(control) {
      for (const piece of pieces) control.enqueue(piece);
      if (end) control.close();
      signal?.addEventListener('abort', () => { if (!end) control.error(signal.reason); });
    },
  }));
}

// Takes until enough, and leaves.
async function read(events, enough) {
  const seen = await take(events, enough);
  await events.return();
  return seen;
}

// A client whose requests are answered by `answers`, one after the other; the last one again and again.
function clientOf(...answers) {
  const asked = [];
  const client = new Fermata({
    url: 'http://server', async fetch(url, init) {
      asked.push({ url, method: init.method ?? 'GET', headers: Object.fromEntries(init.headers), body: init.body, signal: init.signal });
      const answer = answers.length > 1 ? answers.shift() : answers[0];
      const made = await answer(init);
      if (made instanceof Error) throw made;
      return made;
    },
  });
  return { client, asked };
}

// Time that goes as it is told; what waits for promises gets its turn in between.
function clock(t) {
  t.mock.timers.enable({ apis: ['setTimeout', 'setInterval', 'Date'] });
  return async (ms) => {
    for (let i = 0; i < 20; i++) await new Promise((resolve) => { setImmediate(resolve); });
    t.mock.timers.tick(ms);
    for (let i = 0; i < 20; i++) await new Promise((resolve) => { setImmediate(resolve); });
  };
}

describe('frames', () => {
  const text = `: hello\n\n${frame(1, { a: '你好 👋' })}:\n\nretry: 5\ndata\n\n${frame(2, { b: 'x' })}`;

  for (const [name, end] of [['LF', '\n'], ['CRLF', '\r\n'], ['CR', '\r']]) {
    test(`cut anywhere, with ${name}`, async () => {
      const whole = bytes(text.replaceAll('\n', end));
      for (let cut = 0; cut <= whole.length; cut++) {
        const { client } = clientOf(() => stream([whole.slice(0, cut), whole.slice(cut), bytes(end)]));
        const seen = await read(client.events('t'), ({ seq }) => seq === 2);
        assert.deepEqual(seen.map(({ type, data }) => data ?? type), ['connection.open', { a: '你好 👋' }, { b: 'x' }], `cut at ${cut}`);
      }
    });
  }

  test('byte by byte', async () => {
    const { client } = clientOf(() => stream([...bytes(text)].map((byte) => Uint8Array.of(byte))));
    assert.equal((await read(client.events('t'), ({ seq }) => seq === 2)).length, 3);
  });
});

describe('a stream', () => {
  test('goes on behind its newest fact after a cut', async () => {
    const { client, asked } = clientOf(
      () => stream([bytes(frame(4, {}))], { end: true }), () => new TypeError('fetch failed'), () => problem(503, 'shutting_down'),
      () => new Response('<html>bad gateway</html>', { status: 502 }), () => stream([bytes(frame(5, {}))]));
    const seen = await read(client.events('a/b', { after: 3 }), ({ seq }) => seq === 5);
    assert.deepEqual(seen.map(({ type, seq }) => seq ?? type),
      ['connection.open', 4, 'connection.lost', 'connection.lost', 'connection.lost', 'connection.lost', 'connection.open', 5]);
    assert.deepEqual(seen.filter(({ type }) => type === 'connection.lost').map(({ data: { error } }) => error.code), ['network', 'network', 'shutting_down', 'http_502']);
    assert.ok(asked.every(({ url, headers }) => url === 'http://server/api/v1/agent/runs/a%2Fb/events?after=3' && headers.accept === 'text/event-stream'));
    assert.deepEqual(asked.map(({ headers }) => headers['last-event-id']), [undefined, '4', '4', '4', '4']);
  });

  test('waits longer and longer, up to a limit, never twice the same', async (t) => {
    const tick = clock(t);
    const { client } = clientOf(() => new TypeError('fetch failed'));
    const events = client.events('t');
    const waits = [];
    for (let i = 0; i < 12; i++) {
      const next = events.next();
      await tick(15_000);
      waits.push((await next).value.data.retryMs);
    }
    waits.forEach((ms, n) => assert.ok(ms > Math.min(15_000, 250 * 2 ** n) / 2 - 1 && ms <= Math.min(15_000, 250 * 2 ** n), `${n}: ${ms}`));
    assert.equal(new Set(waits).size, waits.length);
  });

  test('silence is a cut', async (t) => {
    const tick = clock(t);
    const { client, asked } = clientOf(({ signal }) => stream([bytes(': \n\n')], { signal }));
    const events = client.events('t');
    assert.equal((await events.next()).value.type, 'connection.open');
    const lost = events.next();
    await tick(46_000);
    const { value } = await lost;
    assert.deepEqual([value.type, value.data.error.code], ['connection.lost', 'network']);
    assert.match(value.data.error.message, /nothing was heard/);
    assert.equal(asked[0].signal.aborted, true);
  });

  for (const [status, code] of [[400, 'invalid_field'], [401, 'unauthenticated'], [403, 'forbidden_host'], [404, 'not_found'], [406, 'not_acceptable']]) {
    test(`${code} ends it`, async () => {
      const { client, asked } = clientOf(() => problem(status, code));
      await assert.rejects(client.events('t').next(), (error) => error instanceof FermataError && error.code === code && error.status === status);
      assert.equal(asked.length, 1);
    });
  }

  test('one that is left is closed', async () => {
    const { client, asked } = clientOf(({ signal }) => stream([bytes(frame(1, {}))], { signal }));
    for await (const { seq } of client.events('t')) if (seq === 1) break;
    assert.equal(asked[0].signal.aborted, true);
    const control = new AbortController();
    const events = client.events('t', { signal: control.signal });
    await events.next();
    control.abort();
    assert.equal(asked[1].signal.aborted, true, 'at once, whoever reads it or not');
    assert.deepEqual(await events.next(), { done: true, value: undefined });
  });

  test('a signal that was given before: nothing is asked', async () => {
    const { client, asked } = clientOf(() => stream([]));
    assert.deepEqual(await client.events('t', { signal: AbortSignal.abort() }).next(), { done: true, value: undefined });
    assert.equal(asked.length, 0);
  });
});

describe('a request', () => {
  test('is sent again as it was, until there is an answer', async (t) => {
    const tick = clock(t);
    const { client, asked } = clientOf(() => new TypeError('fetch failed'), () => problem(429, 'rate_limited'), () => problem(503, 'shutting_down'), () => json({ runId: 'r' }, 202));
    const running = client.run({ text: 'hello' });
    for (let i = 0; i < 4; i++) await tick(15_000);
    assert.deepEqual(await running, { runId: 'r' });
    assert.equal(asked.length, 4);
    assert.equal(new Set(asked.map(({ body, headers }) => body + headers['idempotency-key'])).size, 1);
    const { threadId, runId, messages: [message] } = JSON.parse(asked[0].body);
    assert.match(`${threadId} ${runId} ${message.id}`, /^thr_\w+ run_\w+ msg_\w+$/);
    assert.deepEqual([message.role, message.content], ['user', 'hello']);
  });

  test('is given up after some tries', async (t) => {
    const tick = clock(t);
    const { client, asked } = clientOf(() => new TypeError('fetch failed'));
    const outcome = client.cancel('t').then(() => assert.fail('it failed'), (error) => error);
    for (let i = 0; i < 8; i++) await tick(15_000);
    const error = await outcome;
    assert.deepEqual([error.code, error.status, error.name, asked.length], ['network', 0, 'FermataError', 6]);
    assert.ok(error.cause instanceof TypeError);
    const once = client.cancel('t', {}, { tries: 1 });
    await assert.rejects(once);
    assert.equal(asked.length, 7);
  });

  test('is not sent again when it was refused', async () => {
    const { client, asked } = clientOf(() => problem(409, 'ambiguous', { interactions: [{ interactionId: 'a' }, { interactionId: 'b' }] }), () => problem(400, 'invalid_field', { field: 'messages[0].content' }),
      () => problem(507, 'storage_full'), () => new Response('No', { status: 418, statusText: 'teapot' }));
    await assert.rejects(client.run({ text: 'x' }), ({ code, detail, message, interactions }) => code === 'ambiguous' && detail === message && detail === 'it is ambiguous' && interactions.length === 2);
    await assert.rejects(client.run({ text: 'x' }), ({ field, interaction }) => field === 'messages[0].content' && interaction === undefined);
    await assert.rejects(client.run({ text: 'x' }), ({ code }) => code === 'storage_full');
    await assert.rejects(client.run({ text: 'x' }), ({ code, detail }) => code === 'http_418' && detail === 'No');
    assert.equal(asked.length, 4);
  });

  test('is left alone when its signal is given', async () => {
    const control = new AbortController();
    const { client } = clientOf(() => { control.abort(new Error('enough')); return new TypeError('aborted'); });
    await assert.rejects(client.threads({ signal: control.signal }), /enough/);
  });

  test('has the key, and no query of its own', async () => {
    const { client, asked } = clientOf(() => json({ threads: [] }));
    await new Fermata({ ...client.options, url: 'http://server/prefix/', key: 'fk' }).threads({ query: 'a&b', limit: 3, signal: new AbortController().signal });
    assert.deepEqual([asked[0].url, asked[0].headers.authorization], ['http://server/prefix/api/v1/agent/threads?query=a%26b&limit=3', 'Bearer fk']);
    await client.threads();
    assert.deepEqual([asked[1].url, asked[1].headers.authorization], ['http://server/api/v1/agent/threads', undefined]);
  });
});

// Turns of the loop until it holds. Time may be told, so turns are counted, by a clock that nobody tells.
async function until(holds) {
  const deadline = performance.now() + STEP_MS_MAX;
  while (!holds()) {
    assert.ok(performance.now() < deadline, `not within ${STEP_MS_MAX} ms: ${holds}`);
    await new Promise((resolve) => { setImmediate(resolve); });
  }
}

// A WebSocket whose other end the test holds.
class Wire {
  static made = [];
  sent = [];

  constructor(url) {
    this.url = url;
    Wire.made.push(this);
  }

  open() { this.onopen(); return this; }
  send(text) { this.sent.push(JSON.parse(text)); }
  say(...frames) { for (const one of frames) this.onmessage?.({ data: JSON.stringify(one) }); }
  ack() { for (const { id } of this.sent.splice(0)) if (id) this.say({ type: 'ack', id, data: {} }); }
  cut() { this.onclose?.({ code: 1006, reason: '' }); }
  close() { this.closed = true; }
}

async function wire(t, options = {}) {
  Wire.made = [];
  const { client } = clientOf(() => json({ user: 'local', roles: [], via: 'local' }));
  const connection = new Fermata({ ...client.options, WebSocket: Wire, ...options }).connect();
  t.after(() => connection.close());
  const next = async (n) => {
    await until(() => Wire.made.length > n);
    return Wire.made[n];
  };
  return { connection, next, first: (await next(0)).open() };
}
const event = (seq, sessionId = 't') => ({ type: 'step.start', sessionId, runId: 'r', seq, ts: 'x', data: {} });

describe('a WebSocket', () => {
  test('takes events from the ack on, and none of before', async (t) => {
    const { connection, first } = await wire(t);
    assert.equal(first.url, 'ws://server/api/v1/agent/ws');
    const events = connection.subscribe('t', { after: 1 });
    const two = events.next();
    first.say(event(9));
    assert.deepEqual(first.sent.map(({ id, ...frame_ }) => frame_), [{ type: 'subscribe', sessionId: 't', events: ['native'], after: 1 }]);
    first.ack();
    first.say(event(2), event(7, 'other'));
    assert.equal((await two).value.type, 'connection.open');
    assert.deepEqual((await events.next()).value, { type: 'step.start', threadId: 't', runId: 'r', seq: 2, ts: 'x', data: {} });
  });

  test('says everything again after a cut that was not answered', async (t) => {
    const { connection, first, next } = await wire(t);
    const events = connection.subscribe('t');
    const opened = events.next();
    first.ack();
    await opened;
    first.say(event(5));
    const message = connection.run({ threadId: 't', text: 'hello' });
    first.cut();
    const second = (await next(1)).open();
    const [said, subscribed] = second.sent;
    assert.deepEqual([said.type, said.content, subscribed.type, subscribed.after], ['message', 'hello', 'subscribe', 5]);
    second.say({ type: 'ack', id: said.id, data: { runId: said.runId } });
    assert.deepEqual(await message, { runId: said.runId });
    second.ack();
    assert.deepEqual((await take(events, ({ type }) => type === 'connection.open')).map(({ type }) => type), ['step.start', 'connection.lost', 'connection.open']);
  });

  test('gives up what nobody answers', async (t) => {
    const { connection, first, next } = await wire(t);
    const stopped = connection.stop('t').then(() => assert.fail('it failed'), (error) => error);
    first.cut();
    for (let n = 1; n < 6; n++) (await next(n)).cut();
    assert.equal((await stopped).code, 'network');
  });

  test('notices silence, and asks whether somebody is there', async (t) => {
    const tick = clock(t);
    const { connection, first } = await wire(t);
    const events = connection.subscribe('t');
    const opened = events.next();
    first.ack();
    await opened;
    await tick(15_000);
    assert.deepEqual(first.sent.at(-1), { type: 'ping' });
    first.say({ type: 'pong' });
    const lost = events.next();
    for (let i = 0; i < 4; i++) await tick(15_000);
    assert.match((await lost).value.data.error.message, /nothing was heard/);
    assert.equal(first.closed, true);
  });

  test('a reader that does not keep up is given up, and comes back behind what it has', async (t) => {
    const { connection, first } = await wire(t);
    const events = connection.subscribe('t', { after: 0 });
    const opened = events.next();
    first.ack();
    await opened;
    for (let seq = 1; seq <= 10_050; seq++) first.say(event(seq));
    assert.deepEqual(first.sent.at(-1), { type: 'unsubscribe', sessionId: 't' });
    const seen = await take(events, ({ seq }) => seq === 10_000);
    assert.deepEqual(seen.map(({ seq }) => seq), Array.from({ length: 10_000 }, (_, i) => i + 1));
    const next = events.next();
    await until(() => first.sent.at(-1).type === 'subscribe');
    assert.equal(first.sent.at(-1).after, 10_000);
    first.ack();
    first.say(event(10_001));
    assert.equal((await next).value.type, 'connection.open');
    assert.equal((await events.next()).value.seq, 10_001);
  });

  test('the inbox gets what is asked, and nothing else', async (t) => {
    const { connection, first } = await wire(t);
    const inbox = connection.inbox(), events = connection.subscribe('t');
    const opened = [inbox.next(), events.next()];
    assert.deepEqual(first.sent.map(({ id, ...frame_ }) => frame_), [{ type: 'subscribe', inbox: true }, { type: 'subscribe', sessionId: 't', events: ['native'] }]);
    first.ack();
    const asked = { type: 'interaction.request', sessionId: 't', runId: 'r', ts: 'x', data: { interactionId: 'i' } };
    first.say({ type: 'inbox', data: { interactions: [] } }, { type: 'pong' }, asked, { ...asked, seq: 3 });
    assert.deepEqual((await opened[0]).value, { type: 'inbox', data: { interactions: [] } });
    assert.deepEqual((await inbox.next()).value, { type: 'interaction.request', data: { interactionId: 'i' } });
    await opened[1];
    assert.deepEqual((await events.next()).value.seq, 3);
    first.say({ type: 'interaction.resolved', data: { interactionId: 'j' } });
    assert.equal((await inbox.next()).value.data.interactionId, 'j', 'also one whose thread is not told');
  });

  test('one subscription that ends begins again; the others stand', async (t) => {
    const { connection, first } = await wire(t);
    const one = connection.subscribe('one'), two = connection.subscribe('two');
    const opened = [one.next(), two.next()];
    first.ack();
    await Promise.all(opened);
    first.say({ type: 'error', data: { code: 'not_found', message: 'gone', sessionId: 'one' } }, event(1, 'two'));
    assert.equal((await two.next()).value.seq, 1);
    const { value } = await one.next();
    assert.deepEqual([value.type, value.data.error.code], ['connection.lost', 'not_found']);
    const next = one.next();
    await until(() => first.sent.length);
    first.ack();
    assert.equal((await next).value.type, 'connection.open');
  });

  test('a refused subscription is told to its reader', async (t) => {
    const { connection, first } = await wire(t);
    const events = connection.subscribe('t', { after: -1 }).next();
    first.say({ type: 'error', id: first.sent[0].id, data: { code: 'invalid_field', message: 'no', field: 'after' } });
    await assert.rejects(events, ({ code, detail, field }) => code === 'invalid_field' && detail === 'no' && field === 'after');
  });

  test('one reader for a thread; who is left is unsubscribed; close ends them all', async (t) => {
    const { connection, first } = await wire(t);
    const events = connection.subscribe('t');
    const opened = events.next();
    first.ack();
    await opened;
    await assert.rejects(connection.subscribe('t').next(), /t has a reader/);
    await events.return();
    assert.deepEqual(first.sent.at(-1), { type: 'unsubscribe', sessionId: 't' });
    const control = new AbortController();
    const left = connection.subscribe('t', { signal: control.signal }).next();
    control.abort();
    const again = connection.subscribe('t').next(), inbox = connection.inbox().next();
    const [old] = first.sent.filter(({ type }) => type === 'subscribe');
    first.say({ type: 'ack', id: old.id, data: {} }, event(5));
    assert.equal((await left).done, true, 'who was told to stop is out of the way at once');
    assert.equal(first.sent.filter(({ type }) => type === 'unsubscribe').length, 1, 'and leaves its place to the next one');
    connection.close();
    assert.deepEqual(await Promise.all([again, inbox]), [{ done: true, value: undefined }, { done: true, value: undefined }]);
    assert.equal(first.closed, true);
    await assert.rejects(connection.stop('t'), ({ code }) => code === 'network');
    assert.equal((await connection.subscribe('t').next()).done, true);
  });
});

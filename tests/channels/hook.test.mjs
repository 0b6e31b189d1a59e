// SPDX-License-Identifier: Apache-2.0
//
// The bridge takes what is signed, each message once, and nothing else.

import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { test } from 'node:test';

import { signature, startBridge } from './hook.mjs';

const now = () => String(Math.floor(Date.now() / 1000));
const hello = { id: '1', to: 'alice', class: 'final', text: 'hello' };

async function withBridge(t) {
  const bridge = await startBridge();
  t.after(() => bridge.close());
  return bridge;
}

function give(bridge, message, { timestamp = now(), secret = bridge.secret } = {}) {
  const body = typeof message === 'string' ? message : JSON.stringify(message);
  return fetch(bridge.url, {
    method: 'POST', body,
    headers: { 'content-type': 'application/json', 'fermata-timestamp': timestamp, 'fermata-signature': signature(secret, timestamp, body) },
  });
}

test('the signature is that of webhooks', () => {
  assert.equal(signature('secret', '1700000000', '{"a":1}'), 'v1=49f24e537407743fa4a0242bb63b94b9a47ee99cbbe071ccd8a22550ae411686');
});

test('a message is taken once', async (t) => {
  const bridge = await withBridge(t);
  bridge.answerId = ({ id }) => `s${id}`;
  assert.deepEqual(await (await give(bridge, hello)).json(), { id: 's1' });
  bridge.failNext('cut-after');
  await assert.rejects(give(bridge, { ...hello, id: '2' }));
  assert.equal((await give(bridge, { ...hello, id: '2' })).status, 200);
  assert.deepEqual([bridge.sends.length, bridge.copies, bridge.violations], [2, 1, []]);
  assert.equal((await bridge.waitForSend('hello')).id, '1');
  await assert.rejects(bridge.waitForSend('other', { timeoutMs: 20 }), /nothing sent/);
});

test('what is not signed, old, or no message is a violation', async (t) => {
  const bridge = await withBridge(t);
  assert.equal((await give(bridge, hello, { secret: 'other' })).status, 401);
  assert.equal((await give(bridge, hello, { timestamp: String(Number(now()) - 301) })).status, 401);
  assert.equal((await give(bridge, 'x')).status, 400);
  assert.equal((await give(bridge, { ...hello, class: 'x' })).status, 400);
  assert.equal(bridge.violations.length, 4);
  assert.equal((await give(bridge, { ...hello, more: 1 })).status, 200);
  assert.equal(bridge.violations.length, 5);
});

test('what people say is signed', async (t) => {
  const bridge = await withBridge(t);
  const seen = [];
  const server = createServer((request, response) => {
    const pieces = [];
    request.on('data', (piece) => pieces.push(piece)).on('end', () => {
      const body = Buffer.concat(pieces);
      const good = signature(bridge.secret, request.headers['fermata-timestamp'], body) === request.headers['fermata-signature'];
      seen.push(JSON.parse(body));
      response.writeHead(good ? 202 : 401).end('{"accepted":true}');
    });
  });
  await new Promise((done) => { server.listen(0, '127.0.0.1', done); });
  t.after(() => { server.closeAllConnections(); server.close(); });
  bridge.hook = `http://127.0.0.1:${server.address().port}/`;
  assert.equal((await bridge.say('alice', 'hello', { files: [{ name: 'a', mimeType: 'text/plain', bytes: Buffer.from('hi') }] })).status, 202);
  assert.deepEqual(seen[0].files, [{ name: 'a', mimeType: 'text/plain', data: 'aGk=' }]);
  await bridge.press('alice', { buttons: [{ data: 'c:1:c1', label: 'one' }] }, 'one');
  assert.deepEqual([seen[1].button, seen[1].text], ['c:1:c1', undefined]);
  assert.equal((await bridge.post(hello, { secret: 'other' })).status, 401);
});

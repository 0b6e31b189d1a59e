// SPDX-License-Identifier: Apache-2.0
//
// One client holds all it can: bodies, answers, connections. It is refused beyond its share, with 429 and when to come
// again; another user, or another address, is served as if it were alone.

import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, test } from 'node:test';

import { bearer, call, Home, postJson } from '../api/home.mjs';
import { RawConnection } from '../api/raw.mjs';
import { idleConnections, slowBodies, slowReaders } from './attacks.mjs';
import { until } from './kit.mjs';

const AGENT = '/api/v1/agent';
const SESSION = '/api/v1/session';
const MIB = 1 << 20;

async function twoUsers(t, env = {}) {
  const home = await Home.make(t, env);
  const server = await home.start();
  return { home, server, ann: await home.addKey('ann'), bob: await home.addKey('bob') };
}

async function withHook(t) {
  const home = await Home.make(t);
  const config = join(home.data, 'fermata.yaml');
  await writeFile(join(home.data, 'hook-secret'), 'a-secret-of-the-bridge-0123456789', { mode: 0o600 });
  await writeFile(config, `channels:\n  bridge: {kind: webhook, url: "http://127.0.0.1:9/", secret_file: "${home.data}/hook-secret", allow: ["*"]}\n`);
  home.env.FERMATA_CONFIG = config;
  return { home, server: await home.start() };
}

// One request from an address, on a connection of its own.
async function ask(server, { method = 'GET', path = SESSION, key, from, body = '' }) {
  const connection = await RawConnection.open(server, { from });
  try {
    await connection.write(`${method} ${path} HTTP/1.1\r\nHost: localhost\r\n${key ? `Authorization: Bearer ${key}\r\n` : ''}`
      + `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`);
    return await connection.response();
  } finally {
    connection.close();
  }
}

function assertWait(answer) {
  assert.equal(answer?.status, 429);
  assert.match(answer.headers['retry-after'] ?? '', /^[1-9]\d*$/);
  if (answer.body) assert.equal(JSON.parse(answer.body).code, 'rate_limited');
}

describe('bodies', () => {
  test('a call to a channel that is not there is refused with its head', async (t) => {
    const { server } = await withHook(t);
    for (const name of ['none', 'x'.repeat(200)]) {
      const connection = await RawConnection.open(server);
      t.after(() => connection.close());
      await connection.write(`POST ${AGENT}/channels/${name}/webhook HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${MIB}\r\n\r\n`);
      const answer = await connection.response();
      assert.deepEqual([answer.status, JSON.parse(answer.body).code], [404, 'not_found']);
      assert.equal(answer.headers.connection, 'close');
    }
    const there = await call(server, 'POST', `${AGENT}/channels/bridge/webhook`, { body: '{}' });
    assert.equal(there.status, 401, 'one that is there looks at the signature');
  });

  test('of strangers: one address has its share, and another is served', async (t) => {
    const { server } = await withHook(t);
    const path = `${AGENT}/channels/bridge/webhook`;
    const attack = await slowBodies(server, null, { count: 2, bytes: 2 * MIB, path, from: '127.0.0.2' });
    t.after(attack.stop);
    assert.equal(attack.refused(), 0);
    const more = await slowBodies(server, null, { count: 20, bytes: 2 * MIB, sent: 0, path, from: '127.0.0.2' });
    t.after(more.stop);
    await until('all others are refused', () => more.refused() === 20);
    assertWait(await ask(server, { method: 'POST', path, body: '{}', from: '127.0.0.2' }));
    assert.equal((await ask(server, { method: 'POST', path, body: '{}', from: '127.0.0.3' })).status, 401);
    attack.stop();
    await until('there is room again', async () => (await ask(server, { method: 'POST', path, body: '{}', from: '127.0.0.2' })).status === 401);
  });

  test('of a user: the other one posts and reads as ever', async (t) => {
    const { server, ann, bob } = await twoUsers(t);
    const attack = await slowBodies(server, ann, { count: 4, sent: 64 * 1024 });
    t.after(attack.stop);
    assert.equal(attack.refused(), 0, 'four of the largest at a time');
    const more = await slowBodies(server, ann, { count: 8, sent: 0 });
    t.after(more.stop);
    await until('the rest is refused', () => more.refused() === 8);
    const input = { threadId: 't1', messages: [{ id: 'm1', role: 'user', content: 'hello' }] };
    const refused = await postJson(server, `${AGENT}/runs`, input, bearer(ann));
    assert.equal(refused.status, 429, refused.text);
    assert.equal((await call(server, 'GET', SESSION, { headers: bearer(ann) })).status, 200, 'what has no body is served');
    const served = await postJson(server, `${AGENT}/runs`, input, bearer(bob));
    assert.equal(served.status, 202, served.text);
  });
});

test('answers that a user does not read leave those of another alone', async (t) => {
  const { server, ann, bob } = await twoUsers(t);
  const content = 'wort '.repeat(1_400_000);
  for (const key of [ann, bob]) {
    const answer = await postJson(server, `${AGENT}/runs`, { threadId: 't1', messages: [{ id: 'm1', role: 'user', content }] }, bearer(key));
    assert.equal(answer.status, 202, answer.text);
  }
  const path = `${AGENT}/history?threadId=t1`;
  const whole = async (key) => {
    const answer = await call(server, 'GET', path, { headers: bearer(key) });
    return answer.status === 200 && answer.json().messages.some((message) => message.content === content) ? 200 : answer.status;
  };
  await until('the history is there', async () => await whole(bob) === 200);
  const attack = await slowReaders(server, ann, { count: 14, path });
  t.after(attack.stop);
  const refused = attack.refused();
  assert.ok(refused >= 2 && refused < 14, `${refused} of 14 were refused`);
  assertWait(await ask(server, { path, key: ann }));
  assert.equal((await ask(server, { key: ann })).status, 200, 'small answers still come');
  assert.equal(await whole(bob), 200);
  attack.stop();
  await until('there is room again', async () => await whole(ann) === 200);
});

describe('connections', () => {
  const LIMIT = 80, SHARE = 64; // of an address without a key, and of a user

  test('of one address that says nothing: its share, and others get in', async (t) => {
    const { server, bob } = await twoUsers(t, { FERMATA_LIMITS_CONNECTIONS: String(LIMIT) });
    const attack = await idleConnections(server, null, { count: SHARE, from: '127.0.0.2' });
    t.after(attack.stop);
    assert.equal((await ask(server, { path: '/healthz', from: '127.0.0.3' })).status, 200);
    const more = await idleConnections(server, null, { count: LIMIT - SHARE, from: '127.0.0.4' });
    t.after(more.stop);
    assert.equal((await ask(server, { key: bob, from: '127.0.0.3' })).status, 200, 'all are used up: idle ones without a key go');
    assert.equal((await ask(server, { path: '/healthz', from: '127.0.0.3' })).status, 200);
  });

  test('of one user: the other one is served', async (t) => {
    const { server, ann, bob } = await twoUsers(t, { FERMATA_LIMITS_CONNECTIONS: String(LIMIT) });
    const attack = await idleConnections(server, ann, { count: SHARE });
    t.after(attack.stop);
    assert.equal(attack.refused(), 0);
    assertWait(await ask(server, { key: ann }));
    assert.equal((await ask(server, { key: bob })).status, 200);
    const rest = await idleConnections(server, bob, { count: LIMIT - SHARE });
    t.after(rest.stop);
    assert.equal(rest.refused(), 0);
    assert.equal((await ask(server, { key: bob, from: '127.0.0.3' })).status, 200, 'idle ones give way');
  });
});

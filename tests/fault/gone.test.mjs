// SPDX-License-Identifier: Apache-2.0
//
// The client goes while its request waits for something: at every wait of every kind of request, cut off or in order.
// Each wait is held shut until the server has seen the end of the connection (tests/tools/hold_preload.c), then goes on.
// The server stays, stops in good order, and what it committed is whole. tests/fault/awaits.txt says which kind of
// request gets to which wait of the code; scripts/check-awaits keeps that list whole.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';

import { call } from '../api/home.mjs';
import { RawConnection } from '../api/raw.mjs';
import { get } from '../api/talk.mjs';
import { Door } from './hold.mjs';
import { until } from './kit.mjs';
import { checkDatabase, readDatabase } from './oracle.mjs';
import { REQUESTS, startWorld } from './world.mjs';

const LIMIT = { timeout: 300_000 };
const WAITS_MAX = 60;
const SESSIONS = 40;
// A socket in the file system knows no reset.
const MODES = { reset: (socket) => (socket.remoteAddress ? socket.resetAndDestroy() : socket.destroy()), end: (socket) => socket.destroy() };

let world, folder, door;
const cleanUp = [];
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'fermata-hold-'));
  door = new Door(join(folder, 'hold'));
  world = await startWorld({ after: (fn) => cleanUp.unshift(fn) }, { env: door.env });
  await world.signIn(SESSIONS);
});
after(async () => {
  await door.open();
  for (const fn of cleanUp) await fn();
  await rm(folder, { recursive: true, force: true });
});

// Nothing in it waits: it is answered behind everything that the loop was told before.
async function seen() {
  assert.equal((await call(world.server, 'GET', '/healthz')).status, 200);
}

async function openAdmin() {
  const socket = connect({ path: join(world.home.data, 'fermata.sock'), allowHalfOpen: true });
  await once(socket, 'connect');
  return new RawConnection(socket);
}

// One request whose client goes at its wait number `at`. False if it was answered before.
async function attempt(make, leave, at) {
  const made = await make(world);
  const { first, bytes, admin, stands, answer = '' } = Buffer.isBuffer(made) ? { bytes: made } : made;
  const connection = admin ? await openAdmin() : await RawConnection.open(world.server);
  let waited;
  try {
    if (first) {
      await connection.write(first);
      await until('the first answer', () => connection.received.length || connection.ended);
      connection.received = Buffer.alloc(0);
    }
    await door.shut(at);
    await connection.write(bytes);
    waited = await until('a wait, or an answer', async () => {
      if (await door.held()) return 'waits';
      if (stands && at && await stands()) return 'stands';
      return (connection.received.length && connection.received.includes(answer)) || connection.ended ? 'answered' : null;
    });
    leave(connection.socket);
    await seen();
  } finally {
    await door.open();
    connection.close();
  }
  await seen();
  return waited === 'waits';
}

// One kind of request, at each of its waits. Returns how many there were.
async function sweep(name, make, leave) {
  for (let at = 0; ; at++) {
    assert.ok(at < WAITS_MAX, `${name} comes to an end`);
    if (!await attempt(make, leave, at)) return at;
  }
}

const awaits = readFileSync(new URL('awaits.txt', import.meta.url), 'utf8').split('\n')
  .filter((line) => line && !line.startsWith('#')).map((line) => line.split(/\t+/));

describe('the client goes at each wait', LIMIT, () => {
  for (const [mode, leave] of Object.entries(MODES)) {
    for (const [name, make] of Object.entries(REQUESTS)) {
      test(`${name}: ${mode}`, async () => {
        const waits = await sweep(name, make, leave);
        const claimed = awaits.some(([, ...kinds]) => kinds.includes(name));
        assert.ok(waits > 0 || !claimed, `${name} waits for something, as tests/fault/awaits.txt says`);
      });
    }
  }

  test('afterwards everything that was stored is whole', async () => {
    const { threads } = (await get(world.server, '/threads?limit=100', world.headers)).json();
    assert.ok(threads.length > 50);
    for (const { threadId } of threads) assert.equal((await get(world.server, `/runs/${threadId}/history`, world.headers)).status, 200);
    await world.home.stop();
    checkDatabase(readDatabase(world.home.data));
    await world.home.start();
  });
});

test('the list names requests that there are', () => {
  for (const [place, ...kinds] of awaits)
    for (const kind of kinds) assert.ok(REQUESTS[kind] || kind.startsWith('-'), `${place} names "${kind}", which is no request`);
});

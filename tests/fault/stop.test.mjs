// SPDX-License-Identifier: Apache-2.0
//
// SIGTERM: streams end in good order, idle connections close, answers under way are finished, and nobody
// holds up the end.

import assert from 'node:assert/strict';
import { rm } from 'node:fs/promises';
import { describe, test } from 'node:test';

import { parseResponse, RawConnection } from '../api/raw.mjs';
import { startServer, within } from '../api/server.mjs';
import { descriptors, get, publish, startStreamd, until, withConnections } from './kit.mjs';

const CLIENTS = 500;
const STOP_MS_MAX = 20_000;

// Brings a streamd with `count` connections into the state that `prepare` makes, and ends it.
async function checkStop(count, { prepare, check, signals = 1 }) {
  const server = await startStreamd();
  try {
    await withConnections(server, count, async (connections) => {
      await prepare(connections, server);
      for (let i = 0; i < signals; i++) server.proc.kill('SIGTERM');
      const ended = server.ended(STOP_MS_MAX);
      await Promise.all([ended, check?.(connections)]);
    });
  } finally {
    server.proc.kill('SIGKILL'); // fine if it has gone
    await server.exited;
  }
}

async function openStreams(connections, version) {
  for (const connection of connections) await connection.write(get('/stream', version));
  for (const connection of connections) {
    await until('the head of a stream', () => connection.received.includes('\r\n\r\n'));
    connection.received = Buffer.alloc(0);
  }
}

async function checkEnds(connections, bytes) {
  for (const connection of connections) {
    await until('the end of a connection', () => connection.ended);
    assert.equal(connection.received.toString('latin1'), bytes);
    assert.equal(connection.socket.errored, null, 'no reset');
    connection.close();
  }
}

const pause = (connection) => connection.socket.pause();

// All that comes from now on, put together once: the end waits three seconds for whoever reads.
function collect({ socket }) {
  const pieces = [];
  socket.removeAllListeners('data').on('data', (bytes) => pieces.push(bytes));
  return () => Buffer.concat(pieces);
}

describe('streamd', () => {
  for (const [version, end] of [['1.1', '0\r\n\r\n'], ['1.0', '']]) {
    test(`${CLIENTS} open streams, HTTP/${version}`, () => checkStop(CLIENTS, {
      prepare: (connections) => openStreams(connections, version),
      check: (connections) => checkEnds(connections, end),
    }));
  }

  test('events published just before are delivered', () => checkStop(20, {
    async prepare(connections, server) {
      await openStreams(connections, '1.1');
      await publish(server, ['last']);
    },
    check: (connections) => checkEnds(connections, 'c\r\ndata: last\n\n\r\n0\r\n\r\n'),
  }));

  test(`${CLIENTS} idle connections`, () => checkStop(CLIENTS, {
    async prepare(connections) {
      for (const connection of connections) await connection.write(get('/hello'));
      for (const connection of connections) assert.equal((await connection.response())?.status, 200);
    },
    check: (connections) => checkEnds(connections, ''),
  }));

  test('answers under way are finished', () => checkStop(3, {
    async prepare(connections) {
      for (const connection of connections) {
        pause(connection);
        await connection.write(get('/big'));
      }
      await until('answers under way', () => connections.every((c) => c.socket.bytesRead > 0));
    },
    async check(connections) {
      const taken = connections.map(collect);
      for (const connection of connections) connection.socket.resume();
      for (const [i, connection] of connections.entries()) {
        await until('the end of a connection', () => connection.ended);
        assert.equal(parseResponse(taken[i]())?.body.length, 8 << 20);
        connection.close();
      }
    },
  }));

  test('readers that do not read', () => checkStop(50, {
    async prepare(connections, server) {
      connections.forEach(pause);
      for (const [i, connection] of connections.entries()) await connection.write(get(i % 2 ? '/big' : '/stream'));
      for (let i = 0; i < 20; i++) await publish(server, [String(i).repeat(200_000)]);
    },
  }));

  test('half-sent requests', () => checkStop(20, {
    async prepare(connections, server) {
      for (const connection of connections) await connection.write('POST /publish HTTP/1.1\r\nHost: h\r\nContent-Le');
      // Who is still outside is reset; what those inside have sent is read before a signal is looked at.
      await until('all are inside', () => descriptors(server.pid) === server.descriptors + connections.length);
    },
    check: (connections) => checkEnds(connections, ''),
  }));

  // The first holds the end up until all of them have come: none finds a process that has done with signals.
  test('more signals change nothing', () => checkStop(21, {
    signals: 5,
    async prepare([slow, ...connections]) {
      await openStreams(connections, '1.1');
      pause(slow);
      await slow.write(get('/big'));
      await until('an answer under way', () => slow.socket.bytesRead > 0);
    },
    async check([slow, ...connections]) {
      await checkEnds(connections, '0\r\n\r\n');
      slow.close();
    },
  }));
});

describe('fermata', () => {
  const KEY = 'a-key-for-stopping-0123456789';
  const env = { FERMATA_API_KEY: KEY };
  const body = JSON.stringify({ key: KEY });
  const signIn = 'POST /api/v1/session HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n'
    + `Content-Length: ${body.length}\r\n\r\n${body}`;

  async function whoami(server, cookie) {
    const response = await fetch(`${server.url}/api/v1/session`, { headers: { cookie, connection: 'close' } });
    return { status: response.status, via: (await response.json()).via };
  }

  // Whoever was told that the session exists finds it again after the next start; the others were told nothing.
  test('what was acknowledged is there after the next start', async () => {
    const server = await startServer({ env });
    let again;
    try {
      const cookies = [];
      await withConnections(server, 40, async (connections) => {
        for (const connection of connections) await connection.write(signIn);
        await until('the first answer', () => connections.some((c) => c.received.length));
        const stopped = server.stop({ keep: true });
        for (const connection of connections) {
          const response = await connection.response();
          assert.equal(connection.received.length, 0, 'a whole answer or none');
          if (!response) continue;
          assert.ok(response.status === 200 || response.status === 201, String(response.status));
          cookies.push(response.headers['set-cookie'].split(';')[0]);
        }
        await within(STOP_MS_MAX, 'stop', stopped);
      });
      assert.ok(cookies.length > 0);
      again = await startServer({ env, data: server.data });
      for (const cookie of cookies) assert.deepEqual(await whoami(again, cookie), { status: 200, via: 'session' });
    } finally {
      await again?.stop();
      server.proc.kill('SIGKILL');
      await rm(server.data, { recursive: true, force: true });
    }
  });

  // A client that has been refused and stays holds the first stop up for a moment.
  test('a second SIGTERM ends at once', async () => {
    const server = await startServer();
    const exited = new Promise((resolve) => { server.proc.once('close', (code) => resolve(code)); });
    const connection = await RawConnection.open(server);
    try {
      await connection.write('GET / HTTP/9.9\r\n\r\n');
      assert.equal((await connection.response())?.status, 505);
      server.proc.kill('SIGTERM');
      await until('it is stopping', () => server.stderr().includes('server.stopping'));
      server.proc.kill('SIGTERM');
      assert.equal(await within(STOP_MS_MAX, 'exit', exited), 128 + 15);
    } finally {
      connection.close();
      server.proc.kill('SIGKILL');
      await exited;
      await rm(server.data, { recursive: true, force: true });
    }
  });
});

// SPDX-License-Identifier: Apache-2.0
//
// Clients that take too long are let go: each limit, with the answer that belongs to it.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';

import { RawConnection } from '../api/raw.mjs';
import { get, startStreamd, until, withConnections } from './kit.mjs';

const LIMIT_MS = 1000;
const DRIP_MS = 20; // a byte in each: never silent for as long as the limit

let server;
before(async () => {
  server = await startStreamd({
    args: ['--head-ms', LIMIT_MS, '--body-ms', LIMIT_MS, '--idle-ms', LIMIT_MS, '--stall-ms', LIMIT_MS,
      '--connections', 20].map(String),
  });
});
after(async () => { await server?.stop(); });

async function connected(use) {
  const connection = await RawConnection.open(server);
  try {
    await use(connection);
  } finally {
    connection.close();
  }
}

async function checkEnd(connection) {
  await until('the end of the connection', () => connection.ended);
  assert.equal(connection.received.length, 0, 'nothing more came');
}

async function checkTimeout(connection) {
  const response = await connection.response();
  assert.equal(response?.status, 408);
  assert.equal(response.headers.connection, 'close');
  assert.equal(JSON.parse(response.body).code, 'request_timeout');
  await checkEnd(connection);
}

// Sends byte after byte until something comes back.
async function drip(connection, bytes) {
  for (const byte of bytes) {
    if (connection.received.length || connection.ended) return;
    await connection.write(byte);
    await new Promise((resolve) => { setTimeout(resolve, DRIP_MS); });
  }
  assert.fail('the server took all of it');
}

const head = `GET /hello HTTP/1.1\r\nHost: localhost\r\nX-Long: ${'x'.repeat(500)}`;

const post = (length) => `POST /publish HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${length}\r\n\r\n`;

const late = [
  { what: 'a head that stops', send: (c) => c.write('GET /hello HTT') },
  { what: 'a head at a trickle', send: (c) => drip(c, head) },
  { what: 'a body that stops', send: (c) => c.write(`${post(9)}abc`) },
  { what: 'a body that never begins', send: (c) => c.write(post(9)) },
  {
    what: 'a body at a trickle',
    async send(c) {
      await c.write(post(5000));
      await drip(c, 'x'.repeat(5000));
    },
  },
  {
    what: 'a chunked body at a trickle',
    async send(c) {
      await c.write('POST /publish HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n');
      await drip(c, Array(1000).fill('1\r\nx\r\n'));
    },
  },
  {
    what: 'a second head that stops',
    async send(c) {
      await c.write(`${get('/hello')}GET /hel`);
      assert.equal((await c.response())?.status, 200);
    },
  },
];

describe('408 and the end', { concurrency: 4 }, () => {
  for (const { what, send } of late) {
    test(what, () => connected(async (connection) => {
      await send(connection);
      await checkTimeout(connection);
    }));
  }
});

describe('closed without a word', () => {
  test('a connection that says nothing', () => connected(checkEnd));
  test('empty lines are nothing', () => connected(async (connection) => {
    await connection.write('\r\n');
    await checkEnd(connection);
  }));
  test('a kept connection that stays idle', () => connected(async (connection) => {
    for (let i = 0; i < 3; i++) {
      await connection.write(get('/hello'));
      assert.equal((await connection.response())?.body, 'hello');
    }
    await checkEnd(connection);
  }));
});

test('an open stream has no limit', () => connected(async (connection) => {
  await connection.write(get('/stream'));
  await until('the head of the stream', () => connection.received.includes('\r\n\r\n'));
  for (let i = 0; i < 3; i++) await connected(checkEnd); // three times as long as a silent one lives
  assert.ok(!connection.ended);
}));

test('one connection too many gets 429 and Retry-After', async () => {
  await until('room for all', async () => {
    let full = false;
    await withConnections(server, 20, async (open) => {
      // Those of the tests before may not have gone yet: then try again.
      for (const connection of open) await connection.write(get('/stream'));
      await until('heads', () => open.every((c) => c.received.includes('\r\n\r\n')));
      full = open.every((c) => c.received.includes('200 OK'));
      if (!full) return;
      await connected(async (connection) => {
        const response = await connection.response();
        assert.equal(response?.status, 429);
        assert.equal(response.headers['retry-after'], '1');
        assert.equal(response.headers.connection, 'close');
        await checkEnd(connection);
      });
    });
    return full;
  });
  await until('an answer after they left', () => connected(async (connection) => {
    await connection.write(get('/hello'));
    return (await connection.response())?.status === 200;
  }).then(() => true));
});

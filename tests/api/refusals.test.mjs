// SPDX-License-Identifier: Apache-2.0
//
// Every row of bad-input.mjs against the running server: sent whole, and one byte at a time. The number of
// responses is exact: either the connection ends behind the last one, or one more request is sent on it
// and its answer must be the next thing that comes.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';

import { BODY_BYTES_MAX, CODES, rows } from './bad-input.mjs';
import { RawConnection } from './raw.mjs';
import { startServer } from './server.mjs';

const LAST = 'GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n';

let server;
before(async () => { server = await startServer(); });
after(async () => { await server?.stop(); });

async function connected(use) {
  const connection = await RawConnection.open(server);
  try {
    return await use(connection);
  } finally {
    connection.close();
  }
}

async function checkAlive() {
  await connected(async (connection) => {
    await connection.write(LAST);
    assert.equal((await connection.response())?.status, 200, 'the server is alive');
  });
}

async function checkEnd(connection) {
  assert.equal(await connection.response(), null, 'nothing more comes');
  assert.equal(connection.received.length, 0, 'no half answer is left');
}

function checkProblem(response) {
  assert.equal(response.headers['content-type'], 'application/problem+json');
  const problem = JSON.parse(response.body);
  assert.equal(problem.code, CODES[response.status]);
  assert.equal(problem.status, response.status);
}

function checkHeaders(response, row) {
  for (const [name, pattern] of Object.entries(row.headers ?? {})) {
    assert.match(response.headers[name] ?? '', pattern, name);
  }
}

async function checkRow(connection, row) {
  for (const [i, status] of row.statuses.entries()) {
    const isHead = row.heads?.includes(i) ?? false;
    const isLast = i === row.statuses.length - 1;
    const response = await connection.response(isHead);
    assert.equal(response?.status, status, `response ${i + 1} of ${row.statuses.length}`);
    if (status >= 400 && !isHead) checkProblem(response);
    if (isLast) checkHeaders(response, row);
    const closes = /\bclose\b/i.test(response.headers.connection ?? '');
    if (!isLast) assert.equal(closes, false, 'not the last one');
    else if (row.close !== undefined) assert.equal(closes, row.close, 'Connection: close');
    if (isLast && closes) return checkEnd(connection);
  }
  await connection.write(LAST);
  assert.equal((await connection.response())?.status, 200, 'the connection goes on');
  await checkEnd(connection);
}

describe('sent whole', () => {
  for (const row of rows) {
    test(row.id, async () => {
      await connected(async (connection) => {
        await connection.write(row.bytes);
        await checkRow(connection, row);
      });
      await checkAlive();
    });
  }
});

// The request that checkRow adds stands behind the row's bytes: it is written when the row's last answer has
// come, and that takes all of them.
describe('sent byte by byte', () => {
  for (const row of rows) {
    test(row.id, async () => {
      await connected(async (connection) => {
        await Promise.all([connection.writeByteByByte(row.bytes), checkRow(connection, row)]);
      });
      await checkAlive();
    });
  }
});

describe('in steps', () => {
  test('H36: 100 Continue comes before the body is sent', async () => {
    await connected(async (connection) => {
      await connection.write('GET /healthz HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n');
      assert.equal((await connection.response())?.status, 100);
      await connection.write('hello' + LAST);
      assert.equal((await connection.response())?.status, 200);
      assert.equal((await connection.response())?.status, 200);
      await checkEnd(connection);
    });
  });

  test('H46: a half-closed client gets its whole answer', async () => {
    await connected(async (connection) => {
      await connection.write('GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n');
      connection.socket.end();
      assert.equal((await connection.response())?.status, 200);
      await checkEnd(connection);
    });
  });

  for (const [name, bytes] of [
    ['H47: a reset in the head', 'GET /healthz HTTP/1.1\r\nHos'],
    ['H47: a reset in the body', 'GET /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhe'],
    ['H47: a reset before the answer is read', 'GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n'.repeat(20)],
  ]) {
    test(name, async () => {
      await connected(async (connection) => {
        await connection.write(bytes);
        connection.socket.resetAndDestroy();
      });
      await checkAlive();
    });
  }

  for (const [name, bytes] of [
    ['a head that never ends', 'GET /healthz HTTP/1.1\r\nHost: localhost\r\n'],
    ['F23: a body shorter than its length', 'GET /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhell'],
    ['F23: a chunked body without its last chunk',
      'GET /healthz HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n'],
  ]) {
    test(name, async () => {
      await connected(async (connection) => {
        await connection.write(bytes);
        connection.socket.end();
        const response = await connection.response();
        assert.ok(response === null || response.status === 400, 'closed, with or without a refusal');
        await checkEnd(connection);
      });
      await checkAlive();
    });
  }

  test('F25: a body of the largest size is read', async () => {
    await connected(async (connection) => {
      await connection.write('POST /api/v1/session HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n' +
        `Content-Length: ${BODY_BYTES_MAX}\r\n\r\n` + '{"key":"'.padEnd(BODY_BYTES_MAX - 2, 'x') + '"}' + LAST);
      const response = await connection.response();
      assert.notEqual(response?.status, 413);
      assert.equal((await connection.response())?.status, 200);
      await checkEnd(connection);
    });
  });
});

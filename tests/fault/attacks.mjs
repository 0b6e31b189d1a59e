// SPDX-License-Identifier: Apache-2.0
//
// Clients that hold all they can. Each attack opens its connections, waits until the server has what it was sent, and
// returns {refused, stop}: how many were answered with 429 so far, and the end of it.

import assert from 'node:assert/strict';

import { RawConnection } from '../api/raw.mjs';
import { until } from './kit.mjs';

const SEND_BYTES = 1 << 20;

const held = (connections) => ({
  connections,
  refused: () => connections.filter(({ received }) => received.toString('latin1', 0, 12) === 'HTTP/1.1 429').length,
  stop: () => connections.forEach((connection) => connection.close()),
});
const keyField = (key) => (key ? `Authorization: Bearer ${key}\r\n` : '');

// Bodies that never come to their end: `bytes` are announced, and all but one of them sent, or as few as `sent`.
export async function slowBodies(server, key, { count = 8, bytes = 16 << 20, sent = bytes - 1, path = '/api/v1/agent/runs', from } = {}) {
  const connections = [];
  for (let i = 0; i < count; i++) {
    const connection = await RawConnection.open(server, { from });
    connections.push(connection);
    await connection.write(`POST ${path} HTTP/1.1\r\nHost: localhost\r\n${keyField(key)}Content-Type: application/json\r\n`
      + `Content-Length: ${bytes}\r\n\r\n`);
    for (let at = 0; at < sent && !connection.received.length && !connection.ended; at += SEND_BYTES) {
      await connection.write(Buffer.alloc(Math.min(SEND_BYTES, sent - at), ' '));
    }
  }
  return held(connections);
}

// Answers that nobody reads, but for their first bytes.
export async function slowReaders(server, key, { count = 40, path, from } = {}) {
  const connections = [];
  for (let i = 0; i < count; i++) {
    const connection = await RawConnection.open(server, { from });
    connections.push(connection);
    connection.socket.once('data', () => connection.socket.pause());
    await connection.write(`GET ${path} HTTP/1.1\r\nHost: localhost\r\n${keyField(key)}\r\n`);
    await until('an answer begins', () => connection.received.length > 0 || connection.ended, 60_000);
  }
  return held(connections);
}

// Connections that say nothing; with a key, one request each. One that is turned away is answered 429.
export async function idleConnections(server, key, { count = 1000, from } = {}) {
  const connections = [];
  for (let i = 0; i < count; i++) {
    const connection = await RawConnection.open(server, { from });
    connections.push(connection);
    if (!key) continue;
    await connection.write(`GET /api/v1/session HTTP/1.1\r\nHost: localhost\r\n${keyField(key)}\r\n`);
    await until('an answer', () => connection.received.length > 0 || connection.ended);
    assert.ok(connection.received.length > 0, 'an answer before the end');
  }
  return held(connections);
}

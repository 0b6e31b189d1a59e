// SPDX-License-Identifier: Apache-2.0
//
// Bodies that cost more than they are worth, or that never come to their end.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import {
  checkAlive, cpuMs, descriptors, get, isSanitized, memoryKib, memoryPeakKib, until, withConnections, withStreamd,
} from './kit.mjs';

const BODY_BYTES_MAX = 16 << 20; // of /publish
const CHUNKS = 1_000_000;
const CPU_MS_MAX = 1000;
const post = (fields) => `POST /publish HTTP/1.1\r\nHost: localhost\r\n${fields}\r\n\r\n`;

test('a million chunks of one byte', () => withStreamd({}, (server) => withConnections(server, 1, async ([c]) => {
  const before = cpuMs(server.pid);
  await c.write(`${post('Transfer-Encoding: chunked')}${'1\r\nx\r\n'.repeat(CHUNKS)}0\r\n\r\n`);
  assert.equal((await c.response())?.status, 204);
  const used = cpuMs(server.pid) - before;
  if (!isSanitized(server.pid)) assert.ok(used < CPU_MS_MAX, `${used} ms of processor time`);
  await c.write(get('/hello'));
  assert.equal((await c.response())?.body, 'hello');
})));

test('a chunked body that grows past the limit', () => withStreamd({}, (server) =>
  withConnections(server, 1, async ([c]) => {
    const memory = memoryKib(server.pid);
    await c.write(post('Transfer-Encoding: chunked'));
    const chunk = `100000\r\n${'x'.repeat(1 << 20)}\r\n`;
    const answered = () => c.ended || c.received.length > 0;
    for (let mib = 0; mib < 64 && !answered(); mib++) await c.write(chunk);
    const response = await c.response();
    assert.equal(response?.status, 413);
    assert.equal(response.headers.connection, 'close');
    c.close();
    await until('descriptors are back', () => descriptors(server.pid) === server.descriptors);
    if (!isSanitized(server.pid)) {
      assert.ok(memoryPeakKib(server.pid) - memory < 3 * BODY_BYTES_MAX / 1024, 'no more than the limit is kept');
    }
    await checkAlive(server);
  })));

test('a body that ends too soon publishes nothing', () => withStreamd({}, (server) =>
  withConnections(server, 3, async ([reader, short, whole]) => {
    await reader.write(get('/stream'));
    await until('the head', () => reader.received.includes('\r\n\r\n'));
    reader.received = Buffer.alloc(0);
    await short.write(`${post('Content-Length: 20')}too short`);
    short.socket.end();
    await until('the end', () => short.ended);
    assert.equal(short.received.length, 0, 'no answer to half a request');
    await whole.write(`${post('Content-Length: 5')}whole`);
    assert.equal((await whole.response())?.status, 204);
    await until('the event', () => reader.received.length >= 18);
    assert.equal(reader.received.toString('latin1'), 'd\r\ndata: whole\n\n\r\n');
  })));

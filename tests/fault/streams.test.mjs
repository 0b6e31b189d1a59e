// SPDX-License-Identifier: Apache-2.0
//
// Every reader of a stream gets every event, once and in order, with chunked coding and without.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { get, publish, until, withConnections, withStreamd } from './kit.mjs';

const READERS = 50;
const EVENTS = 2000;
const BATCH = 40; // events of one request

// The data of whole chunks.
function unchunk(bytes) {
  const pieces = [];
  for (let at = 0; at < bytes.length;) {
    const end = bytes.indexOf('\r\n', at);
    assert.ok(end > at, 'a chunk size');
    const size = Number.parseInt(bytes.toString('latin1', at, end), 16);
    pieces.push(bytes.subarray(end + 2, end + 2 + size));
    at = end + 2 + size;
    assert.equal(bytes.toString('latin1', at, at + 2), '\r\n');
    at += 2;
  }
  return Buffer.concat(pieces);
}

for (const version of ['1.1', '1.0']) {
  test(`${READERS} readers with HTTP/${version}`, () => withStreamd({}, (server) =>
    withConnections(server, READERS, async (readers) => {
      for (const reader of readers) await reader.write(get('/stream', version));
      for (const reader of readers) {
        const end = await until('the head', () => reader.received.indexOf('\r\n\r\n') + 1);
        assert.match(reader.received.toString('latin1', 0, end), /^HTTP\/1.1 200 OK\r\n/);
        reader.received = reader.received.subarray(end + 3);
      }
      const lines = Array.from({ length: EVENTS }, (_, i) => `event ${i} ${'.'.repeat(i % 97)}`);
      for (let i = 0; i < EVENTS; i += BATCH) await publish(server, lines.slice(i, i + BATCH));
      const expected = lines.map((line) => `data: ${line}\n\n`);
      const text = expected.join('');
      const size = version === '1.0' ? text.length
        : expected.reduce((sum, frame) => sum + frame.length.toString(16).length + 2 + frame.length + 2, 0);
      for (const reader of readers) {
        await until('all events', () => reader.received.length >= size);
        const got = version === '1.0' ? reader.received : unchunk(reader.received);
        assert.equal(got.toString('latin1'), text);
      }
    })));
}

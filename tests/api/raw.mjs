// SPDX-License-Identifier: Apache-2.0
//
// A connection that sends exactly the bytes it is told to, and reads what comes back strictly.

import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { once } from 'node:events';

import { within } from './server.mjs';

const ANSWER_MS_MAX = 60_000;

// One response off the front of `bytes`: {status, headers, body, size}, or null if it is not whole.
export function parseResponse(bytes, isHead) {
  const end = bytes.indexOf('\r\n\r\n');
  if (end < 0) return null;
  const [line, ...lines] = bytes.toString('latin1', 0, end).split('\r\n');
  const match = /^HTTP\/1\.1 (\d{3}) [ -~]+$/.exec(line);
  assert.ok(match, `no status line: ${line}`);
  const status = Number(match[1]);
  const headers = {};
  for (const text of lines) {
    const field = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+): (.*)$/.exec(text);
    assert.ok(field, `no field line: ${text}`);
    headers[field[1].toLowerCase()] = field[2];
  }
  let length = 0;
  if (!isHead && status >= 200 && status !== 204) {
    assert.match(headers['content-length'] ?? '', /^\d+$/, `a length in the answer ${status}`);
    length = Number(headers['content-length']);
  }
  const size = end + 4 + length;
  if (bytes.length < size) return null;
  return { status, headers, body: bytes.toString('utf8', end + 4, size), size };
}

export class RawConnection {
  // `from`: another address of this machine, 127.0.0.2 and so on.
  static async open({ host, port }, { from } = {}) {
    const socket = connect({ host, port, localAddress: from, noDelay: true, allowHalfOpen: true });
    await within(ANSWER_MS_MAX, 'connect', once(socket, 'connect'));
    return new RawConnection(socket);
  }

  constructor(socket) {
    this.socket = socket;
    this.received = Buffer.alloc(0);
    this.ended = false;
    this.wake = () => {};
    const over = () => { this.ended = true; this.wake(); };
    socket.on('data', (bytes) => { this.received = Buffer.concat([this.received, bytes]); this.wake(); });
    socket.on('end', over).on('close', over).on('error', over);
  }

  // Writes, unless the other side has ended. What it thinks of the bytes is seen in its answer.
  async write(bytes) {
    if (this.ended) return;
    await new Promise((resolve) => this.socket.write(bytes, () => resolve()));
  }

  async writeByteByByte(bytes) {
    for (let i = 0; i < bytes.length && !this.ended; i++) await this.write(bytes.subarray(i, i + 1));
  }

  // The next response, or null when the other side has ended without one.
  async response(isHead = false) {
    const arrived = async () => {
      for (;;) {
        const response = parseResponse(this.received, isHead);
        if (response) return response;
        if (this.ended) return null;
        await new Promise((resolve) => { this.wake = resolve; });
      }
    };
    const response = await within(ANSWER_MS_MAX, 'answer', arrived());
    if (response) this.received = this.received.subarray(response.size);
    return response;
  }

  close() {
    this.socket.destroy();
  }
}

// SPDX-License-Identifier: Apache-2.0
//
// Readers of AG-UI streams that begin and read when they are told to: a request may be kept back by its last byte, so
// that many arrive at one moment, and what was sent may be left lying.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { request } from 'node:http';

import { within } from './server.mjs';
import { AGENT, waitFor } from './talk.mjs';
import { parse } from '../clients/lint.mjs';

const MS_MAX = 60_000;

// Bytes that lie in the kernel between a client and the server: {up, down}. Each side of a connection has a line there, with
// what it has sent and the other has not acknowledged, and what has come and it has not read.
export function queues(server, { localPort }) {
  const found = { up: 0, down: 0 };
  for (const line of readFileSync('/proc/net/tcp', 'latin1').trim().split('\n').slice(1)) {
    const [, local, remote, , bytes] = line.trim().split(/\s+/);
    const [from, to] = [local, remote].map((address) => Number.parseInt(address.split(':')[1], 16));
    const [sent, come] = bytes.split(':').map((digits) => Number.parseInt(digits, 16));
    if (from === localPort && to === server.port) {
      found.up += sent;
      found.down += come;
    } else if (from === server.port && to === localPort) {
      found.up += come;
      found.down += sent;
    }
  }
  return found;
}

export class Reader {
  text = '';
  ended = null; // 'end': in good order; 'cut': not

  // Resolves when the answer has begun.
  static async open(t, server, options) {
    const reader = new Reader(t, server, options);
    reader.sent.end();
    await within(MS_MAX, 'the head of an answer', reader.begun);
    return reader;
  }

  constructor(t, server, { method = 'GET', path, headers = {} }) {
    const options = { host: server.host, port: server.port, method, path, agent: false, headers: { accept: 'text/event-stream', ...headers } };
    this.begun = new Promise((resolve, reject) => {
      this.sent = request(options, (response) => {
        this.response = response;
        this.status = response.statusCode;
        response.setEncoding('utf8').on('data', (text) => { this.text += text; }).on('end', () => { this.ended = 'end'; })
          .on('error', () => { this.ended ??= 'cut'; });
        resolve(this);
      });
      this.sent.on('error', (error) => { this.ended ??= 'cut'; reject(error); });
    });
    this.begun.catch(() => {});
    t.after(() => this.sent.destroy());
  }

  // What is there so far, whole frames only.
  get events() {
    return parse(Buffer.from(this.text.slice(0, this.text.lastIndexOf('\n\n') + 2)), {}, assert.fail);
  }

  sees(text) {
    return waitFor(`${text} in a stream`, () => this.text.includes(text));
  }

  // Its end, which must be in good order.
  async whole() {
    await waitFor('the end of a stream', () => this.ended, MS_MAX);
    assert.equal(this.ended, 'end', this.text.slice(-300));
    assert.equal(this.status, 200);
    return this;
  }
}

// A POST of which the server has read all but the last byte; go() sends that.
export async function holdBack(t, server, body) {
  const bytes = Buffer.from(JSON.stringify(body));
  const headers = { 'content-type': 'application/json', 'content-length': bytes.length };
  const reader = new Reader(t, server, { method: 'POST', path: `${AGENT}/ag-ui/assistant`, headers });
  await new Promise((resolve) => { reader.sent.write(bytes.subarray(0, -1), resolve); });
  await waitFor('the server to have read a request', () => queues(server, reader.sent.socket).up === 0);
  reader.go = () => { reader.sent.end(bytes.subarray(-1)); };
  return reader;
}

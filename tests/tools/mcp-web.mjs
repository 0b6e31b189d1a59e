// SPDX-License-Identifier: Apache-2.0
//
// The shop behind streamable HTTP, in the process of the test. Older versions have sessions and a standing stream; the
// modern one checks that headers and body say the same. What it was asked is kept, with the headers.

import { once } from 'node:events';
import { createServer } from 'node:http';

import { MODERN, Shop } from './mcp-shop.mjs';

export class WebShop {
  static async open(t, { version = MODERN, log, token }) {
    const web = new WebShop();
    Object.assign(web, { version, token, sessions: new Set(), asked: [], streams: new Set(), closed: [], made: 0 });
    web.shop = new Shop({ version, log, fall: () => web.cut() });
    web.server = createServer((request, response) => web.#take(request, response));
    await web.listen();
    t.after(() => web.close());
    return web;
  }

  get url() {
    return `http://127.0.0.1:${this.port}/mcp`;
  }

  async listen() {
    this.server.listen(this.port ?? 0, '127.0.0.1');
    await once(this.server, 'listening');
    this.port = this.server.address().port;
  }

  async close() {
    if (!this.server.listening) return;
    const closed = once(this.server, 'close');
    this.server.close();
    this.server.closeAllConnections();
    await closed;
  }

  cut() {
    for (const response of this.streams) response.socket?.destroy();
  }

  forget() {
    this.sessions.clear();
  }

  #refuse(response, status, body) {
    response.writeHead(status, { 'content-type': 'application/json' });
    response.end(body && JSON.stringify(body));
  }

  async #take(request, response) {
    const pieces = [];
    request.on('error', () => {});
    response.on('error', () => {});
    for await (const piece of request) pieces.push(piece);
    if (this.token && request.headers.authorization !== `Bearer ${this.token}`) return this.#refuse(response, 401);
    if (request.method === 'DELETE') {
      this.closed.push(request.headers['mcp-session-id']);
      return this.#refuse(response, 200);
    }
    if (request.method === 'GET') return this.shop.modern ? this.#refuse(response, 405) : this.#stream(request, response);
    const message = JSON.parse(Buffer.concat(pieces));
    this.asked.push({ message, headers: request.headers });
    const wrong = this.shop.modern ? this.#checkModern(message, request.headers) : this.#checkOlder(message, request.headers);
    if (wrong) return this.#refuse(response, ...wrong);
    return this.#answer(message, request, response);
  }

  #checkModern({ id, method, params }, headers) {
    const name = headers['mcp-name'];
    const fits = headers['mcp-protocol-version'] === MODERN && headers['mcp-method'] === method &&
      (method !== 'tools/call' || name === params.name);
    return fits ? undefined : [400, { jsonrpc: '2.0', id, error: { code: -32020, message: 'Header mismatch' } }];
  }

  #checkOlder({ id, method }, headers) {
    if (method === 'initialize') return undefined;
    const session = headers['mcp-session-id'];
    if (session === undefined) return [400, { jsonrpc: '2.0', id, error: { code: -32000, message: 'Bad Request: Server not initialized' } }];
    if (!this.sessions.has(session)) return [404];
    return headers['mcp-protocol-version'] === this.version ? undefined : [400];
  }

  #stream(request, response) {
    if (!this.sessions.has(request.headers['mcp-session-id'])) return this.#refuse(response, 404);
    const say = this.#sayer(response);
    const listener = { say };
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.flushHeaders();
    this.shop.listeners.add(listener);
    response.on('close', () => this.shop.listeners.delete(listener));
    return undefined;
  }

  #sayer(response) {
    return (message) => {
      if (!response.headersSent) response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write(`event: message\ndata: ${JSON.stringify(message)}\n\n`);
    };
  }

  // As JSON, or as a stream if something is said before the answer.
  async #answer(message, request, response) {
    if (message.id === undefined || message.method === undefined) {
      await this.shop.take(message);
      response.writeHead(202);
      return response.end();
    }
    const say = this.#sayer(response);
    this.streams.add(response);
    response.on('close', () => this.streams.delete(response));
    const answer = await this.shop.take(message, say);
    if (response.headersSent) {
      say(answer);
      return response.end();
    }
    const session = message.method === 'initialize' ? { 'mcp-session-id': `s-${++this.made}` } : {};
    if (session['mcp-session-id']) this.sessions.add(session['mcp-session-id']);
    response.writeHead(200, { 'content-type': 'application/json', ...session });
    return response.end(JSON.stringify(answer));
  }
}

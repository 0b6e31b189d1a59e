// SPDX-License-Identifier: Apache-2.0
//
// An agent of somebody else that asks people through /mcp, by HTTP or through `fermata mcp`: raw JSON-RPC, so that every
// byte is the test's own.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { request } from 'node:http';
import { resolve } from 'node:path';
import { createInterface } from 'node:readline';

import { buildFolder, within } from './server.mjs';
import { get, waitFor } from './talk.mjs';

const CALL_MS_MAX = 70_000;
const EXIT_MS_MAX = 60_000;
const SANITIZER = /ERROR: \w+Sanitizer|runtime error:/;

export const MODERN = '2026-07-28';
export const meta = (more = {}) => ({
  'io.modelcontextprotocol/protocolVersion': MODERN,
  'io.modelcontextprotocol/clientInfo': { name: 'tester', version: '1' },
  'io.modelcontextprotocol/clientCapabilities': {}, ...more,
});

// One POST: {status, headers, text, json(), gone()}. A body that is no string is sent as JSON.
export function post(server, body, headers = {}) {
  let sent;
  const answer = new Promise((done, failed) => {
    sent = request({
      host: server.host, port: server.port, method: 'POST', path: '/mcp', agent: false,
      headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...headers },
    }, (response) => {
      const pieces = [];
      response.on('data', (piece) => pieces.push(piece)).on('error', failed).on('end', () => {
        const text = Buffer.concat(pieces).toString('utf8');
        done({ status: response.statusCode, headers: response.headers, text, json: () => JSON.parse(text) });
      });
    });
    sent.on('error', failed);
    sent.end(typeof body === 'string' ? body : JSON.stringify(body));
  });
  const settled = within(CALL_MS_MAX, 'POST /mcp', answer);
  settled.hangUp = () => sent.destroy();
  return settled;
}

// A request, and the headers that a modern one needs.
export function message(method, params, { id = 1, modern = false } = {}) {
  const body = { jsonrpc: '2.0', id, method, params: modern ? { ...params, _meta: meta(params?._meta) } : params };
  const headers = modern ? { 'mcp-protocol-version': MODERN, 'mcp-method': method } : {};
  if (modern && method === 'tools/call') headers['mcp-name'] = params.name;
  return { body, headers };
}

export function rpc(server, method, params, options = {}) {
  const { body, headers } = message(method, params, options);
  return post(server, body, { ...headers, ...options.headers });
}

// A tool call that is a result: the object it has twice, or the words of an error.
export function outcome(json) {
  assert.equal(json.error, undefined, JSON.stringify(json));
  const { content, structuredContent, isError } = json.result;
  assert.equal(content.length, 1);
  if (structuredContent !== undefined) assert.deepEqual(JSON.parse(content[0].text), structuredContent);
  return isError && structuredContent === undefined ? { isError, text: content[0].text } : structuredContent;
}

export async function tool(server, name, args, options = {}) {
  const answer = await rpc(server, 'tools/call', { name, arguments: args }, options);
  assert.equal(answer.status, 200, answer.text);
  return outcome(answer.json());
}

// The open interactions that a user sees, oldest first.
export async function inbox(server, headers = {}) {
  const answer = await get(server, '/interactions?limit=200', headers);
  assert.equal(answer.status, 200, answer.text);
  return answer.json().interactions.reverse();
}

export function opened(server, count = 1, headers = {}) {
  return waitFor(`${count} open`, async () => {
    const list = await inbox(server, headers);
    return list.length === count ? list : null;
  });
}

// `fermata mcp` as an agent starts it.
export class Bridge {
  #waiting = new Map(); // id -> function
  #next = 1;
  lines = []; // all that came, parsed
  stderr = '';

  constructor(t, env, args = []) {
    this.proc = spawn(resolve(buildFolder(), 'fermata'), ['mcp', ...args], {
      env: { PATH: process.env.PATH, ...env }, stdio: ['pipe', 'pipe', 'pipe'],
    });
    this.proc.stderr.setEncoding('utf8').on('data', (text) => { this.stderr += text; });
    this.proc.stdin.on('error', () => {}); // it may have ended
    this.exited = new Promise((done) => { this.proc.once('close', (code, signal) => done({ code, signal })); });
    createInterface({ input: this.proc.stdout }).on('line', (line) => {
      const json = JSON.parse(line); // nothing but protocol
      this.lines.push(json);
      this.#waiting.get(json.id)?.(json);
      this.#waiting.delete(json.id);
    });
    t.after(async () => {
      this.proc.stdin.end();
      const code = await Promise.race([this.exited, new Promise((done) => { setTimeout(done, EXIT_MS_MAX).unref(); })]);
      if (!code) this.proc.kill('SIGKILL');
      await this.exited;
      assert.doesNotMatch(this.stderr, SANITIZER);
    });
  }

  write(line) {
    this.proc.stdin.write(`${typeof line === 'string' ? line : JSON.stringify(line)}\n`);
  }

  // Sends a request: {id, answer}.
  send(method, params, { modern = false } = {}) {
    const id = this.#next++;
    const answer = new Promise((done) => { this.#waiting.set(id, done); });
    this.write(message(method, params, { id, modern }).body);
    return { id, answer: within(CALL_MS_MAX, method, answer) };
  }

  call(method, params, options) {
    return this.send(method, params, options).answer;
  }

  async tool(name, args, options) {
    return outcome(await this.call('tools/call', { name, arguments: args }, options));
  }

  async end() {
    this.proc.stdin.end();
    return within(EXIT_MS_MAX, 'the end of fermata mcp', this.exited);
  }
}

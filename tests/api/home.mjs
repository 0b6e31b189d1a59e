// SPDX-License-Identifier: Apache-2.0
//
// A data folder with what is done to it: servers that come and go, commands, requests. Everything is ended and
// removed when the test is over.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';

import { buildFolder, startServer, within } from './server.mjs';

const RUN_MS_MAX = 60_000;
const ANSWER_MS_MAX = 60_000;

export const KEY = /^fk_([0-9a-z]{26})_([A-Za-z0-9_-]{43})$/;

export const bearer = (key) => ({ authorization: `Bearer ${key}` });
export const keyId = (key) => KEY.exec(key)[1];

// One command to its end: {code, stdout, stderr}.
export function run(args, { env = {}, cwd } = {}) {
  const options = { cwd, env: { PATH: process.env.PATH, ...env }, timeout: RUN_MS_MAX };
  return new Promise((done) => {
    execFile(resolve(buildFolder(), 'fermata'), args, options, (error, stdout, stderr) => {
      done({ code: error ? error.code : 0, stdout, stderr });
    });
  });
}

// One request on a connection of its own: {status, headers, cookies, text, json()}. Unlike fetch it sends every
// header it is given, Host and Origin too.
export function call(server, method, path, { headers = {}, body } = {}) {
  const answer = new Promise((done, failed) => {
    const options = { host: server.host, port: server.port, method, path, headers, agent: false };
    const sent = request(options, (response) => {
      const pieces = [];
      if (response.headers['content-type']?.startsWith('text/event-stream')) response.destroy(); // never ends
      response.on('data', (piece) => pieces.push(piece)).on('error', failed).on('close', () => {
        const text = Buffer.concat(pieces).toString('utf8');
        done({
          status: response.statusCode, headers: response.headers, cookies: response.headers['set-cookie'] ?? [],
          text, json: () => JSON.parse(text), rawHeaders: response.rawHeaders,
        });
      });
    });
    sent.on('error', failed);
    sent.end(body);
  });
  return within(ANSWER_MS_MAX, `${method} ${path}`, answer);
}

export function postJson(server, path, value, headers = {}) {
  return call(server, 'POST', path, {
    headers: { 'content-type': 'application/json', ...headers }, body: JSON.stringify(value),
  });
}

// An error answer is a problem document with exactly these members, and nothing that only we should see.
export function assertProblem(answer, status, code, field) {
  assert.equal(answer.status, status, answer.text);
  assert.equal(answer.headers['content-type'], 'application/problem+json');
  const problem = answer.json();
  const members = ['type', 'title', 'status', 'detail', 'code', ...(field === undefined ? [] : ['field'])];
  assert.deepEqual(Object.keys(problem), members);
  assert.equal(problem.status, status);
  assert.equal(problem.code, code);
  assert.equal(problem.type, `urn:fermata:error:${code}`);
  assert.ok(problem.title && problem.detail);
  if (field !== undefined) assert.equal(problem.field, field);
}

export class Home {
  // `t` is the test, or anything with after().
  static async make(t, env = {}) {
    const home = new Home();
    home.data = await mkdtemp(join(tmpdir(), 'fermata-test-'));
    home.env = env;
    t.after(async () => {
      try {
        await home.stop();
      } finally {
        await rm(home.data, { recursive: true, force: true });
      }
    });
    return home;
  }

  async start(env = {}) {
    assert.ok(!this.server, 'one server at a time');
    this.server = await startServer({ data: this.data, env: { ...this.env, ...env } });
    return this.server;
  }

  async stop() {
    const server = this.server;
    this.server = null;
    await server?.stop({ keep: true });
  }

  async restart(env = {}) {
    await this.stop();
    return this.start(env);
  }

  run(args, env = {}) {
    return run(args, { env: { FERMATA_DATA: this.data, ...this.env, ...env } });
  }

  // A new key, through `fermata key add`.
  async addKey(user = 'ann', ...flags) {
    const { code, stdout, stderr } = await this.run(['key', 'add', '--user', user, ...flags]);
    assert.equal(code, 0, stderr);
    assert.match(stdout, /^[^\n]+\n$/);
    const key = stdout.trimEnd();
    assert.match(key, KEY);
    assert.ok(!stderr.includes(key));
    return key;
  }

  async revokeKey(key) {
    const { code, stderr } = await this.run(['key', 'revoke', keyId(key)]);
    assert.equal(code, 0, stderr);
  }

  // The bytes of every file, by name.
  async files() {
    const files = new Map();
    for (const entry of await readdir(this.data, { recursive: true, withFileTypes: true })) {
      if (entry.isFile()) files.set(entry.name, await readFile(join(entry.path, entry.name)));
    }
    return files;
  }
}

// SPDX-License-Identifier: Apache-2.0
//
// One upload, and the server killed before each call that leaves something behind, or each such call failing for want of
// room. Afterwards there is a whole file or none: a row with its object, or neither, and nothing in the spool.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { cp, mkdtemp, readdir, rm } from 'node:fs/promises';
import { constants, tmpdir } from 'node:os';
import { join } from 'node:path';
import { before, after, test } from 'node:test';

import { startServer, within } from '../api/server.mjs';
import { AGENT, waitFor } from '../api/talk.mjs';
import { program, readLog, watched } from './kill.mjs';

const EXIT_MS_MAX = 20_000;
const ANSWER_MS_MAX = 20_000;
const STORE_EXIT_UNKNOWN = 70;
const NETWORK = ['accept4', 'bind', 'listen', 'send', 'sendmsg', 'sendto', 'shutdown', 'writev'];
const content = randomBytes(700 * 1024); // several pieces of the spool
const hash = createHash('sha256').update(content).digest('hex');
const atOnce = { FERMATA_STORAGE_GRACE: '0' };

let folder, base; // a data folder that was used once, to be copied
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'fermata-uploads-'));
  base = join(folder, 'base');
  const server = await startServer({ program, data: base });
  assert.equal((await upload(server, 'base')).status, 201); // so that every folder is there
  await server.stop({ keep: true });
});
after(() => rm(folder, { recursive: true, force: true }));

async function upload(server, key = 'first') {
  const form = new FormData();
  form.set('threadId', 't1');
  form.set('file', new Blob([content]), 'a.bin');
  const answer = await fetch(`${server.url}${AGENT}/attachments`, {
    method: 'POST', body: form, headers: { 'idempotency-key': key }, signal: AbortSignal.timeout(ANSWER_MS_MAX) });
  return { status: answer.status, body: await answer.json() };
}

async function files(at) {
  const entries = await readdir(at, { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).map(({ name }) => name).sort();
}

const rows = (data) => execFileSync('sqlite3', [join(data, 'fermata.db'), 'SELECT id FROM attachments ORDER BY id'],
  { encoding: 'utf8' }).split('\n').filter(Boolean);

// What a server that starts now makes of it: all whole, nothing else. `told`: ids that a client was given.
async function judge(data, told) {
  const server = await startServer({ program, data, env: atOnce });
  try {
    await waitFor('the spool to be swept', async () => (await files(join(data, 'spool'))).length === 0);
    await waitFor('an object for each row, and no more', async () =>
      (await files(join(data, 'blobs'))).join() === rows(data).map((id) => `${hash}.${id}`).sort().join());
    for (const id of rows(data)) {
      const got = await fetch(`${server.url}${AGENT}/attachments/${id}`);
      assert.equal(got.status, 200);
      assert.ok(content.equals(Buffer.from(await got.arrayBuffer())));
    }
    for (const id of told) assert.ok(rows(data).includes(id), `${id} was told, and is there`);
    assert.equal((await upload(server, 'again')).status, 201);
  } finally {
    await server.stop({ keep: true });
  }
}

async function copied(name) {
  const data = join(folder, name);
  await cp(base, data, { recursive: true, filter: (path) => !path.endsWith('.sock') });
  return data;
}

// The calls of the upload, by an attempt that nothing happens to: [{n, name, nth, ofLoop}], nth of its name; libuv's own
// are on sockets and between threads.
async function callsOfUpload() {
  const data = await copied('dry');
  const log = watched(data, {});
  const server = await startServer({ program, data, env: log });
  const start = (await readLog(log.FAULT_LOG)).length;
  assert.equal((await upload(server)).status, 201);
  await waitFor('the spool file to go', async () => (await files(join(data, 'spool'))).length === 0);
  const all = await readLog(log.FAULT_LOG);
  await server.stop({ keep: true });
  await rm(data, { recursive: true });
  const counts = new Map();
  return all.map(({ n, name, group }) => {
    counts.set(name, (counts.get(name) ?? 0) + 1);
    return { n, name, nth: counts.get(name), ofLoop: / libuv/.test(group.split('+')[0]) };
  }).slice(start);
}

test('killed before each call', async (t) => {
  const calls = await callsOfUpload();
  assert.ok(calls.length > 10, 'an upload leaves traces');
  for (const { n, name } of calls) {
    const data = await copied(`kill-${n}`);
    const log = watched(data, { FAULT_KILL: String(n) });
    const told = [];
    let server;
    try {
      server = await startServer({ program, data, env: log });
      const { status, body } = await upload(server);
      assert.equal(status, 201, JSON.stringify(body));
      told.push(body.attachment.id);
    } catch (error) {
      if (error instanceof assert.AssertionError) throw error;
      if (!server) assert.match(error.message, /ended with SIGKILL/); // a start may take a call more
      else assert.equal((await within(EXIT_MS_MAX, 'the end', server.exited)).signal, 'SIGKILL', `${n} ${name}: ${error}`);
    }
    server?.proc.kill('SIGKILL');
    await server?.exited;
    await judge(data, told);
    await rm(data, { recursive: true });
  }
  t.diagnostic(`${calls.length} calls`);
});

test('no room at each call: refused or done, never half', async (t) => {
  const calls = (await callsOfUpload()).filter(({ name, ofLoop }) => !ofLoop && !NETWORK.includes(name));
  const seen = new Map();
  for (const { name, nth } of calls) {
    const data = await copied(`fail-${name}-${nth}`);
    const log = watched(data, { FAULT_FAIL: `${name}:${nth}:${constants.errno.ENOSPC}` });
    const told = [];
    const server = await startServer({ program, data, env: log }).catch((error) => {
      if (name !== 'write' || !/ended with SIGABRT/.test(error.message)) throw error;
    });
    if (!server) { // libuv's own write, as below, and already at the start
      await judge(data, told);
      await rm(data, { recursive: true });
      continue;
    }
    const say = async (key) => {
      const { status, body } = await upload(server, key).catch(async (error) => {
        // How often libuv writes between its threads is never twice the same, so that it may be hit instead; and a
        // commit whose fate the store cannot know ends the process.
        if (name === 'write') return { status: 'cut' };
        const { code } = await within(EXIT_MS_MAX, `${name} ${nth}: the end after ${error}`, server.exited);
        assert.equal(code, STORE_EXIT_UNKNOWN, `${name} ${nth}`);
        return { status: 'cut' };
      });
      if (status === 201) told.push(body.attachment.id);
      return status;
    };
    const status = await say('first'), next = await say('next');
    assert.ok([201, 507, 'cut'].includes(status), `${name} ${nth}: ${status}`);
    assert.ok(next === 201 || (next === 'cut' && (status === 'cut' || name === 'write')), `${name} ${nth}: then ${next}`); // it goes on
    seen.set(status, (seen.get(status) ?? 0) + 1);
    server.proc.kill('SIGKILL');
    await server.exited;
    await judge(data, told);
    await rm(data, { recursive: true });
  }
  assert.ok(seen.get(507) > 2, `answers: ${JSON.stringify([...seen])}`);
  t.diagnostic(`${calls.length} calls: ${JSON.stringify([...seen])}`);
});

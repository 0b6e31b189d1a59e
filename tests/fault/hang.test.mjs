// SPDX-License-Identifier: Apache-2.0
//
// Object storage that hangs: whoever needs nothing of it goes on, whoever does is not kept for ever, and what was said
// to be stored is.

import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { test } from 'node:test';

import { startAsking } from '../api/asking.mjs';
import { call } from '../api/home.mjs';
import { buildFolder } from '../api/server.mjs';
import { accepted, AGENT, get, history, runOf, talk, user, waitFor } from '../api/talk.mjs';

const LIMIT = { timeout: 120_000 };
const SIZES = { small: 10, longer: 100_000, large: 2_000_000 };
const HINTS = { version: '2.1', intent: 'message', status: 'info', title: 'A card' };

// A server with a tool; hang() and release() are about its storage.
async function start(t) {
  const tool = createServer((request, response) => {
    const pieces = [];
    request.on('data', (piece) => pieces.push(piece)).on('end', () => {
      const { name } = JSON.parse(Buffer.concat(pieces).toString());
      response.end(JSON.stringify({ content: 'It is here.', result: 'x'.repeat(SIZES[name]), ui_hints: HINTS }));
    });
  });
  tool.listen(0, '127.0.0.1');
  await once(tool, 'listening');
  t.after(() => {
    tool.closeAllConnections();
    tool.close();
  });
  const folder = await mkdtemp(join(tmpdir(), 'fermata-hang-')), file = join(folder, 'hang');
  t.after(() => rm(folder, { recursive: true, force: true }));
  const home = await startAsking({ after: (end) => t.after(async () => {
    await rm(file, { force: true });
    await end();
  }) }, {
    lines: [
      ...Object.keys(SIZES).map((name) => ({ match: `^${name}$`, turns: [{ calls: [{ name: 'fetch', args: { name } }] }, { text: 'Done.' }] })),
      { turns: [{ text: 'Hello.' }] },
    ],
    config: `tools:\n  - http: {name: fetch, url: "http://127.0.0.1:${tool.address().port}/", effect: read, schema: {type: object, properties: {name: {type: string}}}}\n`,
    env: {
      LD_PRELOAD: resolve(buildFolder(), 'tests/hang_preload.so'), ASAN_OPTIONS: 'verify_asan_link_order=0',
      HANG_WHILE: file, HANG_BELOW: '/blobs/',
    },
  });
  return { home, server: home.server, hang: () => writeFile(file, ''), release: () => rm(file) };
}

const say = (server, threadId, content) => accepted(server, { threadId, runId: 'r', messages: [{ id: 'u', role: 'user', content }] });
const completed = (server, threadId) =>
  waitFor(`${threadId} ends`, async () => (await runOf(server, threadId)).status === 'completed');
const toolRow = async (server, threadId) =>
  (await history(server, threadId)).messages.find(({ role }) => role === 'tool');
const objects = async (home) => (await readdir(join(home.data, 'blobs/payloads'), { recursive: true, withFileTypes: true }))
  .filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath ?? entry.path, entry.name));

test('calls end, and so do those that need a thread of the pool', LIMIT, async (t) => {
  const { server, hang, release } = await start(t);
  await hang();
  const few = Array.from({ length: 6 }, (_, i) => `small-${i}`);
  for (const threadId of few) await say(server, threadId, 'small');
  for (const threadId of few) await completed(server, threadId);
  await say(server, 'longer', 'longer'); // read beside the loop
  await say(server, 'large', 'large'); // written to the spool, which does not hang
  for (const threadId of ['longer', 'large']) await completed(server, threadId);
  assert.equal((await toolRow(server, 'large')).metadata.storage_missing, true);
  await release();
  for (const threadId of [...few, 'longer', 'large']) {
    const row = await waitFor('it is put', async () => {
      const found = await toolRow(server, threadId);
      return found.metadata.storage_missing ? null : found;
    });
    assert.equal(row.uiSchema.root.type, 'stack');
  }
});

test('history comes without its cards, and a stop waits for none', LIMIT, async (t) => {
  const { home, server, hang, release } = await start(t);
  await talk(t, server, { threadId: 'a', runId: 'r', messages: [user('large', 'u')] });
  const { id, uiSchema } = await toolRow(server, 'a');
  assert.ok(uiSchema);
  await home.restart(); // nothing is in a cache
  await hang();
  const without = await toolRow(home.server, 'a');
  assert.deepEqual([without.content, without.uiSchema], ['It is here.', undefined]);
  const gone = Promise.allSettled([get(home.server, '/runs/a/history'), get(home.server, `/threads/a/messages/${id}/result`)]);
  await get(home.server, '/runs/a');
  const ended = once(home.server.proc, 'exit');
  home.server.proc.kill('SIGTERM');
  await gone; // answered, or cut
  await release(); // a thread that hangs in the kernel keeps the process
  assert.deepEqual(await ended, [0, null], home.server.stderr());
  home.server = null;
  await home.start();
  assert.deepEqual((await toolRow(home.server, 'a')).uiSchema, uiSchema);
});

test('a run does not wait for its files for ever', LIMIT, async (t) => {
  const { server, hang, release } = await start(t);
  const data = Buffer.from('Words of a file.\n').toString('base64');
  const part = { type: 'binary', mimeType: 'text/plain', data };
  await say(server, 'first', [part]);
  await completed(server, 'first');
  const [{ attachments: [{ id }] }] = (await history(server, 'first')).messages;
  await hang();
  await say(server, 'second', [{ type: 'text', text: 'Look.' }, { type: 'binary', mimeType: 'text/plain', id }]);
  await completed(server, 'second');
  await release();
});

// Objects are put before the commit that names them. When that has to wait they may be swept meanwhile.
test('a result whose commit had to wait is not lost with its object', LIMIT, async (t) => {
  const { home, server, hang, release } = await start(t);
  await hang();
  await say(server, 'a', 'large');
  const database = join(home.data, 'fermata.db');
  const saved = () => execFileSync('sqlite3', [database, "SELECT count(*) FROM tool_calls WHERE spool<>''"]).toString().trim();
  await waitFor('the result is saved', async () => saved() === '1');
  const other = spawn('sqlite3', [database], { stdio: ['pipe', 'pipe', 'inherit'] }); // keeps everybody else from writing
  other.stdin.write('.timeout 5000\nBEGIN IMMEDIATE;\nSELECT 1;\n');
  await once(other.stdout, 'data');
  await release();
  await waitFor('the commit waits', async () => /commit postponed/.test(server.stderr()));
  const paths = await objects(home);
  assert.equal(paths.length, 2, 'the result and what is said about it were put');
  for (const path of paths) await rm(path); // as the sweeper would, after the grace time
  other.stdin.end('ROLLBACK;\n');
  await once(other, 'close');
  await completed(server, 'a');
  const { id } = await toolRow(server, 'a');
  const result = await waitFor('the result', async () => {
    const answer = await call(server, 'GET', `${AGENT}/threads/a/messages/${id}/result`);
    return answer.status === 200 ? answer : null;
  });
  assert.equal(result.json().length, SIZES.large);
  assert.ok((await toolRow(server, 'a')).uiSchema);
});

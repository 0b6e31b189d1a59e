// SPDX-License-Identifier: Apache-2.0
//
// Files that results of tools bring along: stored and named like those that people send, shown live and in history, for
// their owner, until the thread goes. A storage that does not work costs the files and never the result.

import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

import { PAGE, PIXEL } from '../tools/mcp-files.mjs';
import { rows, startAsking, until } from './asking.mjs';
import { bearer, call } from './home.mjs';
import { buildFolder } from './server.mjs';
import { accepted, AGENT, factsOf, history, openEvents, user, waitFor } from './talk.mjs';

const LIMIT = { timeout: 120_000 };
const CHILD = fileURLToPath(new URL('../tools/mcp-files.mjs', import.meta.url));
const LINES = [
  ...['picture', 'bare', 'several'].map((name) => ({ match: `^${name}`, turns: [{ calls: [{ name: `files.${name}`, args: {} }] }, { text: 'Done.' }] })),
  { turns: [{ text: 'Hello.' }] },
];

// A server that knows the tools; `hang()` makes everything below a path wait, `arm()` does so with the next call.
async function start(t, { below } = {}) {
  const folder = await mkdtemp(join(tmpdir(), 'fermata-files-'));
  t.after(() => rm(folder, { recursive: true, force: true }));
  const arm = join(folder, 'arm'), file = join(folder, 'hang');
  const config = `mcp: ${JSON.stringify({ files: { command: [process.execPath, CHILD, '--arm', arm, '--hang', file], read: ['*'] } })}\n`;
  const env = below ? { LD_PRELOAD: resolve(buildFolder(), 'tests/hang_preload.so'), ASAN_OPTIONS: 'verify_asan_link_order=0',
                        HANG_WHILE: file, HANG_BELOW: below } : {};
  const home = await startAsking({ after: (end) => t.after(async () => {
    await rm(file, { force: true });
    await end();
  }) }, { lines: LINES, config, env });
  const ready = () => waitFor('the tools are there', () => home.server.stderr().includes('mcp.connected'));
  await ready();
  return { home, ready, hang: () => writeFile(file, ''), arm: () => writeFile(arm, ''), release: () => rm(file, { force: true }) };
}

const say = (server, threadId, words, headers) => accepted(server, { threadId, messages: [user(words)] }, headers);
const rowOf = async (server, threadId, headers) => (await history(server, threadId, '', headers)).messages.find(({ role }) => role === 'tool');
const textOf = (home) => rows(home, 'SELECT model_text FROM tool_calls')[0].model_text;
const plain = (url) => url.split('?')[0];
const objects = async (home) => (await readdir(join(home.data, 'blobs/attachments'), { recursive: true, withFileTypes: true }).catch(() => []))
  .filter((entry) => entry.isFile()).map(({ name }) => name);

async function factOf(t, server, threadId, headers = {}) {
  const events = await openEvents(t, server, threadId, { query: '?after=0', headers });
  const facts = factsOf(await events.until(({ type }) => type === 'run.finished'));
  events.close();
  return facts.find(({ type }) => type === 'tool.call.result').data;
}

test('a picture is an attachment: live, in history, on the card, for the model, for its owner', LIMIT, async (t) => {
  const { home } = await start(t);
  const ann = bearer(await home.addKey('ann')), eve = bearer(await home.addKey('eve'));
  await home.restart();
  await waitFor('the tools are there', () => home.server.stderr().includes('mcp.connected'));
  const { server } = home;
  await say(server, 'a', 'picture', ann);
  const live = await factOf(t, server, 'a', ann), row = await rowOf(server, 'a', ann);
  const [file] = live.attachments;
  assert.equal(live.attachments.length, 1);
  assert.match(file.id, /^att_/);
  assert.deepEqual(file, { id: file.id, url: `${AGENT}/attachments/${file.id}`, mimeType: 'image/png', filename: 'image-1.bin',
                           size: PIXEL.length, width: 1, height: 1 });
  assert.equal(live.content, 'a pixel');
  assert.deepEqual(row.attachments.map((kept) => ({ ...kept, url: plain(kept.url) })), live.attachments);
  assert.equal(JSON.stringify(row.uiSchema), JSON.stringify(live.ui));
  assert.ok(JSON.stringify(live.ui).includes(`"url":"${file.url}"`), JSON.stringify(live.ui));
  assert.equal(textOf(home), `a pixel\n[file: image-1.bin, image/png, ${PIXEL.length} bytes]`);

  const got = await fetch(new URL(row.attachments[0].url, server.url)); // signed: no key is needed
  assert.deepEqual([got.status, got.headers.get('content-type')], [200, 'image/png']);
  assert.deepEqual(Buffer.from(await got.arrayBuffer()), PIXEL);
  assert.equal((await call(server, 'GET', file.url, { headers: ann })).status, 200);
  assert.equal((await call(server, 'GET', file.url, { headers: eve })).status, 404);

  server.proc.kill('SIGKILL');
  await server.exited;
  home.server = null;
  await home.start();
  assert.equal((await call(home.server, 'GET', file.url, { headers: ann })).status, 200);

  assert.equal((await objects(home)).length, 1);
  const gone = await call(home.server, 'DELETE', `${AGENT}/threads/a`, { headers: ann });
  assert.ok(gone.status < 300, gone.text);
  await waitFor('the object is gone', async () => (await objects(home)).length === 0);
  assert.equal((await call(home.server, 'GET', file.url, { headers: ann })).status, 404);
});

test('a picture alone is a result', LIMIT, async (t) => {
  const { home } = await start(t);
  await say(home.server, 'a', 'bare');
  assert.equal((await factOf(t, home.server, 'a')).attachments[0].filename, 'image-1.png');
  assert.equal(textOf(home), `[file: image-1.png, image/png, ${PIXEL.length} bytes]`);
});

test('types come from the content, names are made safe', LIMIT, async (t) => {
  const { home } = await start(t);
  await say(home.server, 'a', 'several');
  const { attachments } = await factOf(t, home.server, 'a');
  assert.deepEqual(attachments.map(({ mimeType, filename, size }) => ({ mimeType, filename, size })), [
    { mimeType: 'image/png', filename: 'image-1.png', size: PIXEL.length },
    { mimeType: 'text/html', filename: 'image-2.png', size: PAGE.length },
    { mimeType: 'text/plain', filename: 'name.txt', size: 5 },
  ]);
  const page = await fetch(new URL(attachments[1].url, home.server.url));
  assert.equal(page.headers.get('content-type'), 'application/octet-stream');
  assert.match(page.headers.get('content-disposition'), /^attachment/);
  await page.arrayBuffer();
});

test('storage that fails: the result is there, without its file', LIMIT, async (t) => {
  const { home } = await start(t);
  await mkdir(join(home.data, 'blobs'), { recursive: true, mode: 0o700 });
  await writeFile(join(home.data, 'blobs/attachments'), 'in the way');
  await say(home.server, 'a', 'picture');
  const live = await factOf(t, home.server, 'a');
  assert.equal(live.content, 'a pixel');
  assert.equal(live.attachments, undefined);
  assert.equal((await rowOf(home.server, 'a')).attachments, undefined);
  assert.equal(textOf(home), `a pixel\n[file: image-1.bin, text/html, ${PIXEL.length} bytes; it could not be kept]`);
  await waitFor('it is said', () => /a file of a result is not kept/.test(home.server.stderr()));
  assert.deepEqual(rows(home, 'SELECT id FROM attachments'), []);
});

test('storage that hangs: the same, after a bounded time', LIMIT, async (t) => {
  const { home, hang, release } = await start(t, { below: '/blobs/' });
  await hang();
  await say(home.server, 'a', 'picture');
  await until(home.server, 'a', 'completed');
  assert.match(textOf(home), /; it could not be kept\]$/);
  await release();
});

test('killed between object and commit: the object goes, the call is made again', LIMIT, async (t) => {
  const { home, arm, release, ready } = await start(t, { below: '/fermata.db' });
  await arm();
  await say(home.server, 'a', 'picture');
  const [first] = await waitFor('the object is there', async () => (await objects(home)).length && objects(home));
  home.server.proc.kill('SIGKILL');
  await home.server.exited;
  home.server = null;
  await release();
  assert.deepEqual(rows(home, 'SELECT id FROM attachments'), []);
  await home.start();
  await ready();
  const { attachments: [file] } = await factOf(t, home.server, 'a');
  assert.ok(!first.includes(file.id));
  await home.restart({ FERMATA_STORAGE_GRACE: '0' });
  await waitFor('the first object is swept', async () => !(await objects(home)).includes(first));
  assert.equal((await call(home.server, 'GET', file.url)).status, 200);
});

// SPDX-License-Identifier: Apache-2.0
//
// Object storage as an operator sees it: where it is, what is refused, what a start removes, what the figures say.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { access, mkdir, mkdtemp, readdir, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { test } from 'node:test';

import { call, run } from './home.mjs';
import { startServer } from './server.mjs';

const DAY_S = 24 * 60 * 60;

async function folder(t) {
  const path = await mkdtemp(join(tmpdir(), 'fermata-test-'));
  t.after(() => rm(path, { recursive: true, force: true }));
  return path;
}

const there = (path) => access(path).then(() => true, () => false);

// An object that nothing names, as a crash leaves it; its path.
async function orphan(root, bytes, whose, ageSeconds) {
  const hash = createHash('sha256').update(bytes).digest('hex');
  const path = join(root, 'payloads', hash.slice(0, 2), `${hash}.${whose}`);
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  await writeFile(path, bytes, { mode: 0o600 });
  const at = Date.now() / 1000 - ageSeconds;
  await utimes(path, at, at);
  return path;
}

async function metrics(server) {
  const { text } = await call(server, 'GET', '/metrics');
  return (name) => Number(text.split('\n').find((line) => line.startsWith(`${name} `))?.slice(name.length + 1) ?? NaN);
}

// Until a round through the storage is told; a test that waits in vain is ended by its own limit.
async function swept(server, objects) {
  while (!new RegExp(`blobs\\.swept .*objects=${objects} `).test(server.stderr()))
    await new Promise((resolve) => { server.proc.stderr.once('data', resolve); });
  assert.equal((await metrics(server))('fermata_blobs_swept_total'), objects);
}

test('the folder is made, closed to others, and cleared of what was half written', { timeout: 60_000 }, async (t) => {
  const data = await folder(t);
  await mkdir(join(data, 'blobs/.new'), { recursive: true, mode: 0o700 });
  await writeFile(join(data, 'blobs/.new/.put-3'), 'half');
  const server = await startServer({ data });
  t.after(() => server.stop());
  assert.deepEqual(await readdir(join(data, 'blobs')), ['.new']);
  assert.deepEqual(await readdir(join(data, 'blobs/.new')), []);
  const figure = await metrics(server);
  for (const name of ['fermata_blob_puts_total{result="ok"}', 'fermata_blob_puts_total{result="failed"}',
    'fermata_blob_gets_total{result="ok"}', 'fermata_blob_gets_total{result="failed"}',
    'fermata_blobs_damaged_total', 'fermata_blobs_waiting', 'fermata_blobs_swept_total'])
    assert.equal(figure(name), 0, name);
});

test('it may lie elsewhere', { timeout: 60_000 }, async (t) => {
  const data = await folder(t), elsewhere = join(await folder(t), 'objects');
  const server = await startServer({ data, env: { FERMATA_BLOB_URL: `file:${elsewhere}` } });
  t.after(() => server.stop());
  assert.equal((await stat(elsewhere)).mode & 0o7777, 0o700);
  assert.equal(await there(join(data, 'blobs')), false);
});

test('what cannot be used is refused with the reason', { timeout: 60_000 }, async (t) => {
  const data = await folder(t), open = await folder(t);
  await mkdir(join(open, 'wide'), { mode: 0o755 });
  await writeFile(join(open, 'file'), '');
  for (const [url, reason] of [
    ['s3://bucket/objects', /FERMATA_BLOB_URL: storage\.blobs: "s3:\/\/bucket\/objects" is no storage that this version knows/],
    [join(open, 'wide'), /is open to other users \(mode 0755\): close it with chmod 700/],
    [join(open, 'file'), /cannot be opened: Not a directory/],
    [join(open, 'no/such'), /cannot be made: No such file or directory/],
  ]) {
    const { code, stderr } = await run(['serve'], { env: { FERMATA_DATA: data, FERMATA_LISTEN: '127.0.0.1:0', FERMATA_BLOB_URL: url } });
    assert.notEqual(code, 0);
    assert.match(stderr, reason);
  }
});

test('a start removes what nothing names once the grace time is over', { timeout: 60_000 }, async (t) => {
  const data = await folder(t), root = join(data, 'blobs');
  await mkdir(root, { mode: 0o700 });
  const old = await orphan(root, 'old', 'call_1', DAY_S + 60);
  const young = await orphan(root, 'young', 'call_2', DAY_S - 600);
  const stray = join(root, 'payloads', 'notes.txt');
  await writeFile(stray, 'not ours');
  let server = await startServer({ data });
  await swept(server, 1);
  assert.equal(await there(old), false);
  assert.equal(await there(young), true);
  await server.stop({ keep: true });

  server = await startServer({ data, env: { FERMATA_STORAGE_GRACE: '0' } });
  t.after(() => server.stop());
  await swept(server, 1);
  assert.equal(await there(young), false);
  assert.equal(await there(stray), true);
});

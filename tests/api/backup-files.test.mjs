// SPDX-License-Identifier: Apache-2.0
//
// `fermata backup` and `fermata restore` with objects and spool files: what the database names is saved and comes back
// byte for byte; what is missing or damaged is named, and nothing is half done.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, readdir, readFile, rm, stat, unlink, writeFile } from 'node:fs/promises';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { describe, test } from 'node:test';
import { promisify } from 'node:util';

import { execute } from './asking.mjs';
import { call, Home, run } from './home.mjs';
import { buildFolder } from './server.mjs';
import { accepted, AGENT, user, waitFor } from './talk.mjs';

const sha256 = (bytes) => createHash('sha256').update(bytes).digest('hex');
const pathOf = (bytes, whose) => `${sha256(bytes).slice(0, 2)}/${sha256(bytes)}.${whose}`;
const pattern = (size, start) => Buffer.from(Uint8Array.from({ length: size }, (_, i) => (i * 31 + start * 7 + (i >> 9)) & 255));

// What lies in object storage: {bucket, path, bytes}. Every size that a tar file treats in its own way.
const OBJECTS = [0, 1, 511, 512, 513, 100_000, 700_001].map((size, i) => {
  const bytes = pattern(size, i);
  return { bucket: i % 2 ? 'payloads' : 'attachments', path: pathOf(bytes, `${i % 2 ? 'call' : 'att'}_${String(i).padStart(26, '0')}`), bytes };
});
const SPOOLED = { name: 'call_0000000000000000000000spool', bytes: pattern(300_000, 99) };

async function folder(t) {
  const path = await mkdtemp(join(tmpdir(), 'fermata-backup-'));
  t.after(() => rm(path, { recursive: true, force: true }));
  return path;
}

async function put(root, { bucket, path, bytes }) {
  const file = join(root, bucket, path);
  await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  await writeFile(file, bytes, { mode: 0o600 });
}

const rowOf = ({ bucket, path }, i) => (bucket === 'attachments'
  ? `INSERT INTO attachments VALUES ('att_${i}', 'local', 't1', 1, 1, 0, 0, 'text/plain', 'a.txt', '${path.slice(3, 67)}', '${bucket}', '${path}');`
  : `INSERT INTO blobs (thread, created, waiting, bucket, path, message_id, spool, bytes)
     SELECT id, 1, 0, '${bucket}', '${path}', 'm1', '', '' FROM threads WHERE thread_id='t1';`);
// A result whose object is still to be stored: both rows name the spool file.
const waitingRow = ({ name, bytes }) => `INSERT INTO tool_calls (run, round, n, thread, state, stage, write, idempotent, attempts, created, started,
    ended, result_bytes, call_id, message_id, tool, provider_id, rule, binding, result_id, spool, error, args, model_text, content, result, result_hash)
  SELECT runs.id, 1, 1, runs.thread, 3, 1, 0, 0, 1, 1, 1, 1, ${bytes.length}, '${name}', 'm1', 'look', '', '', '', 'm1', '${name}', '', '{}', '', '', '',
    '${sha256(bytes)}' FROM runs LIMIT 1;
  INSERT INTO blobs (thread, created, waiting, bucket, path, message_id, spool, bytes)
  SELECT id, 1, 1, 'payloads', '${pathOf(bytes, name)}', 'm1', '${name}', '' FROM threads WHERE thread_id='t1';`;

// A data folder with a thread t1, objects and a spool file, and no server. `blobs`: a storage elsewhere.
async function furnished(t, { blobs, objects = OBJECTS, spooled = SPOOLED } = {}) {
  const home = await Home.make(t, blobs ? { FERMATA_BLOB_URL: blobs } : {});
  await home.start();
  await accepted(home.server, { threadId: 't1', messages: [user('hello')] });
  await waitFor('the answer', async () => (await call(home.server, 'GET', `${AGENT}/runs/t1`)).json().status === 'completed');
  await home.stop();
  const root = blobs ?? join(home.data, 'blobs');
  for (const object of objects) await put(root, object);
  if (spooled) await writeFile(join(home.data, 'spool', spooled.name), spooled.bytes, { mode: 0o600 });
  execute(home, objects.map(rowOf).join('\n') + (spooled ? waitingRow(spooled) : ''));
  return { home, root };
}

// Every file below a folder: Map of path to bytes.
async function tree(root, below = '', found = new Map()) {
  for (const entry of await readdir(join(root, below), { withFileTypes: true })) {
    const path = join(below, entry.name);
    if (entry.isDirectory()) await tree(root, path, found);
    else found.set(path, await readFile(join(root, path)));
  }
  return found;
}

const objectsOf = async (root) => new Map([...await tree(root)].filter(([path]) => !path.startsWith('.')));
const wanted = (objects) => new Map(objects.map(({ bucket, path, bytes }) => [`${bucket}/${path}`, bytes]).sort(([a], [b]) => (a < b ? -1 : 1)));
const assertSame = (found, expected) => assert.deepEqual(new Map([...found].sort(([a], [b]) => (a < b ? -1 : 1))), expected);

const restore = (file, data, env = {}) => run(['restore', file], { env: { FERMATA_DATA: data, ...env } });

async function saved(home, file, ...flags) {
  const { code, stderr } = await home.run(['backup', file, ...flags]);
  assert.equal(code, 0, stderr);
  return stderr;
}

const partsOf = async (file) => (await promisify(execFile)('tar', ['tf', file])).stdout.trim().split('\n');

// A tar file as ours are, to the byte; for parts that ours would never have.
function tar(parts, time = 1_700_000_000) {
  const blocks = [], lines = [];
  const add = (name, bytes) => {
    const header = Buffer.alloc(512), at = name.length > 99 ? name.lastIndexOf('/') : -1;
    header.write(name.slice(at + 1), 0);
    if (at > 0) header.write(name.slice(0, at), 345);
    header.write('0000600\0' + '0000000\0' + '0000000\0' + `${bytes.length.toString(8).padStart(11, '0')}\0${time.toString(8).padStart(11, '0')}\0        0`, 100, 'latin1');
    header.write('ustar\x0000', 257, 'latin1');
    header.write(`${header.reduce((sum, byte) => sum + byte, 0).toString(8).padStart(6, '0')}\0 `, 148, 'latin1');
    blocks.push(header, bytes, Buffer.alloc((512 - bytes.length % 512) % 512));
  };
  for (const [name, bytes] of parts) {
    add(name, bytes);
    lines.push(`${sha256(bytes)}  ${name}\n`);
  }
  add('SHA256SUMS', Buffer.from(lines.join('')));
  return Buffer.concat([...blocks, Buffer.alloc(1024)]);
}

// The parts of an archive of ours: [[name, bytes]] without the list.
function untar(archive) {
  const parts = [];
  for (let at = 0; archive[at];) {
    const text = (from, length) => archive.toString('latin1', at + from, at + from + length).split('\0')[0];
    const size = parseInt(text(124, 12), 8), prefix = text(345, 155);
    parts.push([prefix ? `${prefix}/${text(0, 100)}` : text(0, 100), archive.subarray(at + 512, at + 512 + size)]);
    at += 512 + Math.ceil(size / 512) * 512;
  }
  assert.equal(parts.pop()[0], 'SHA256SUMS');
  return parts;
}

describe('objects and spool files', () => {
  for (const running of [true, false]) {
    test(`go along ${running ? 'while the server runs' : 'without a server'}`, async (t) => {
      const { home, root } = await furnished(t);
      const out = await folder(t);
      const stray = { bucket: 'payloads', path: pathOf(Buffer.from('stray'), 'call_x'), bytes: Buffer.from('stray') };
      await put(root, stray);
      if (running) await home.start({ FERMATA_STORAGE_GRACE: '86400' });
      // A running server would store what waits: it is looked at before that, or after.
      await saved(home, join(out, 'a.tar'));
      assert.deepEqual(await readdir(out), ['a.tar'], 'nothing else is left behind');
      if (running) await home.stop();
      const names = await partsOf(join(out, 'a.tar'));
      assert.ok(!names.some((name) => name.includes(stray.path)), 'what nothing names is not saved');
      assert.deepEqual(names.filter((name) => name.includes('/')), names.filter((name) => name.includes('/')).toSorted());
      await mkdir(join(out, 'x'));
      await promisify(execFile)('tar', ['xf', join(out, 'a.tar'), '-C', join(out, 'x')]);
      await promisify(execFile)('sha256sum', ['-c', '--strict', '--quiet', 'SHA256SUMS'], { cwd: join(out, 'x') });

      const data = join(out, 'data');
      const { code, stderr } = await restore(join(out, 'a.tar'), data);
      assert.equal(code, 0, stderr);
      assert.match(stderr, /^Restored into .*\n\d+ objects are in .*blobs\.\n$/);
      const found = await objectsOf(join(data, 'blobs'));
      const spool = await tree(join(data, 'spool')).catch(() => new Map());
      if (spool.has(SPOOLED.name)) assert.deepEqual(spool.get(SPOOLED.name), SPOOLED.bytes);
      else assert.ok(found.delete(`payloads/${pathOf(SPOOLED.bytes, SPOOLED.name)}`), 'it was stored before the copy was made');
      assertSame(found, wanted(OBJECTS));
      for (const [path] of found) assert.equal(((await stat(join(data, 'blobs', path))).mode & 0o777).toString(8), '600');
      assert.equal(((await stat(join(data, 'blobs', 'payloads'))).mode & 0o777).toString(8), '700');

      home.data = data;
      await home.start();
      assert.equal((await call(home.server, 'GET', `${AGENT}/runs/t1/history`)).status, 200);
    });
  }

  test('a spool file that has become an object is saved from there', async (t) => {
    const { home, root } = await furnished(t, { objects: [] });
    const out = await folder(t);
    await put(root, { bucket: 'payloads', path: pathOf(SPOOLED.bytes, SPOOLED.name), bytes: SPOOLED.bytes });
    await unlink(join(home.data, 'spool', SPOOLED.name));
    await saved(home, join(out, 'a.tar'));
    assert.deepEqual((await partsOf(join(out, 'a.tar'))).filter((name) => name.includes('/')), [`spool/${SPOOLED.name}`]);
    const { code, stderr } = await restore(join(out, 'a.tar'), join(out, 'data'));
    assert.equal(code, 0, stderr);
    assert.deepEqual(await readFile(join(out, 'data', 'spool', SPOOLED.name)), SPOOLED.bytes);
  });

  test('storage elsewhere: the server says where, and restore takes the folder of the configuration', async (t) => {
    const out = await folder(t);
    const { home, root } = await furnished(t, { blobs: join(out, 'storage'), spooled: null });
    await home.start();
    const { code, stderr } = await run(['backup', join(out, 'a.tar')], { env: { FERMATA_DATA: home.data } });
    assert.equal(code, 0, stderr);
    await home.stop();
    const full = await restore(join(out, 'a.tar'), join(out, 'data'), { FERMATA_BLOB_URL: root });
    assert.equal(full.code, 1);
    assert.match(full.stderr, /storage is not empty \(it has \w+\).*FERMATA_BLOB_URL/);
    assert.deepEqual(await readdir(join(out, 'data')), ['fermata.lock']);
    assertSame(await objectsOf(root), wanted(OBJECTS));
    const other = join(out, 'other');
    const done = await restore(join(out, 'a.tar'), join(out, 'data'), { FERMATA_BLOB_URL: `file:${other}` });
    assert.equal(done.code, 0, done.stderr);
    assertSame(await objectsOf(other), wanted(OBJECTS));
    assert.ok(!(await readdir(join(out, 'data'))).includes('blobs'));
  });
});

describe('what is missing or damaged', () => {
  const spoil = {
    missing: (file) => unlink(file),
    damaged: async (file) => {
      const bytes = await readFile(file);
      bytes[bytes.length - 1] ^= 1;
      await writeFile(file, bytes);
    },
  };
  for (const [word, act] of Object.entries(spoil)) {
    test(`${word}: refused by its name, and left out when that is wanted`, async (t) => {
      const { home, root } = await furnished(t);
      const out = await folder(t);
      const victim = OBJECTS[5];
      await act(join(root, victim.bucket, victim.path));
      const refused = await home.run(['backup', join(out, 'a.tar')]);
      assert.equal(refused.code, 1);
      assert.equal(refused.stderr, `fermata: blobs/${victim.bucket}/${victim.path} is ${word}, so nothing was saved. Bring the storage back, or use --partial to save everything else\n`);
      assert.deepEqual(await readdir(out), []);
      const words = await saved(home, join(out, 'a.tar'), '--partial');
      assert.ok(words.startsWith(`fermata: blobs/${victim.bucket}/${victim.path} is ${word}, and is left out\n1 files are missing`), words);
      const { code, stderr } = await restore(join(out, 'a.tar'), join(out, 'data'));
      assert.equal(code, 0, stderr);
      assert.match(stderr, /1 files were missing when the backup was made/);
      assertSame(await objectsOf(join(out, 'data', 'blobs')), wanted(OBJECTS.filter((object) => object !== victim)));
    });
  }

  test('storage that is not there at all is no empty storage', async (t) => {
    const { home, root } = await furnished(t);
    const out = await folder(t);
    await rm(root, { recursive: true });
    const { code, stderr } = await home.run(['backup', join(out, 'a.tar')]);
    assert.equal(code, 1);
    assert.match(stderr, /is missing, so nothing was saved/);
  });
});

describe('an archive', () => {
  const nothing = async (data) => assert.rejects(stat(data), { code: 'ENOENT' }, 'nothing was made');

  test('with a changed byte in an object names it', async (t) => {
    const { home } = await furnished(t);
    const out = await folder(t);
    await saved(home, join(out, 'a.tar'));
    const archive = await readFile(join(out, 'a.tar'));
    const victim = OBJECTS[6];
    const at = archive.indexOf(victim.bytes.subarray(1000, 1200));
    archive[at] ^= 1;
    await writeFile(join(out, 'b.tar'), archive);
    const { code, stderr } = await restore(join(out, 'b.tar'), join(out, 'data'));
    assert.equal(code, 1);
    assert.equal(stderr, `fermata: the backup is damaged: the bytes of blobs/${victim.bucket}/${victim.path} are not those that its name says\n`);
    await nothing(join(out, 'data'));
  });

  test('that nobody of us made is refused whole', async (t) => {
    const { home } = await furnished(t);
    const out = await folder(t);
    await saved(home, join(out, 'a.tar'));
    const archive = await readFile(join(out, 'a.tar'));
    const parts = untar(archive);
    const time = parseInt(archive.toString('latin1', 136, 147), 8);
    assert.deepEqual(tar(parts, time), archive, 'the same parts are the same archive');
    const bytes = Buffer.from('x'), path = pathOf(bytes, 'call_1');
    const objects = parts.filter(([name]) => name.startsWith('blobs/'));
    const rows = {
      'other bytes than its name says': [[['blobs/payloads/', pathOf(Buffer.from('y'), 'call_1')].join(''), bytes], /are not those that its name says/],
      'a bucket that is none': [[`blobs/secrets/${path}`, bytes], /has no such part/],
      'no hash': [['blobs/payloads/aa/bb', bytes], /has no such part/],
      'another folder': [[`other/${path}`, bytes], /has no such part/],
      'a folder in the spool': [['spool/a/b', bytes], /has no such part/],
      'a name that leads out': [[`blobs/payloads/../${path}`, bytes], /no backup, or it is damaged/],
      'an object twice': [objects[0], /does not come in order/],
      'an unknown file': [['fermata.db-wal', bytes], /has no such part/],
    };
    for (const [what, [part, message]] of Object.entries(rows)) {
      const changed = [...parts];
      changed.splice(2, 0, part);
      await writeFile(join(out, 'b.tar'), tar(changed));
      const { code, stderr } = await restore(join(out, 'b.tar'), join(out, 'data'));
      assert.equal(code, 1, what);
      assert.match(stderr, message, what);
      await nothing(join(out, 'data'));
    }
  });

  test('that does not fit on the disk leaves nothing behind', async (t) => {
    const out = await folder(t);
    const { home } = await furnished(t, { blobs: join(out, 'storage') });
    await saved(home, join(out, 'a.tar'));
    const program = resolve(buildFolder(), 'fermata'), data = join(out, 'data'), blobs = join(out, 'blobs');
    // Blocks of 512 bytes: the smaller objects fit, the largest does not.
    const command = `trap '' XFSZ; ulimit -f 600; exec "${program}" restore "${join(out, 'a.tar')}"`;
    const failure = await promisify(execFile)('sh', ['-c', command], { env: { PATH: process.env.PATH, FERMATA_DATA: data, FERMATA_BLOB_URL: blobs } })
      .then(() => null, (error) => error);
    assert.equal(failure?.code, 1, failure?.stderr);
    assert.match(failure.stderr, /cannot be written: File too large/);
    assert.deepEqual(await readdir(data), ['fermata.lock']);
    await nothing(blobs);
  });

  test('of the former format, without objects, is taken', async (t) => {
    const home = await Home.make(t);
    const out = await folder(t);
    await home.start();
    await home.stop();
    await saved(home, join(out, 'a.tar'));
    const parts = untar(await readFile(join(out, 'a.tar')));
    const manifest = JSON.parse(parts.find(([name]) => name === 'manifest.json')[1]);
    const old = { format: 1, version: manifest.version, schema: manifest.schema, createdAt: manifest.createdAt };
    for (const [format, expected] of [[1, 0], [3, 1]]) {
      const text = Buffer.from(JSON.stringify({ ...old, format }));
      await writeFile(join(out, 'b.tar'), tar(parts.map(([name, bytes]) => [name, name === 'manifest.json' ? text : bytes])));
      const { code, stderr } = await restore(join(out, 'b.tar'), join(out, `data${format}`));
      assert.equal(code, expected, stderr);
    }
  });
});

test('while a backup is made the server removes no object, and afterwards it does', async (t) => {
  const { home, root } = await furnished(t, { spooled: null });
  const out = await folder(t);
  const server = await home.start();
  const admin = (method, body) => new Promise((done, failed) => {
    const sent = request({
      socketPath: join(home.data, 'fermata.sock'), method, path: '/backup', agent: false,
      headers: body ? { 'content-type': 'application/json' } : {},
    }, (answer) => {
      answer.resume();
      answer.on('end', () => done(answer.statusCode));
    });
    sent.on('error', failed);
    sent.end(body && JSON.stringify(body));
  });
  const payload = OBJECTS.find(({ bucket }) => bucket === 'payloads');
  const file = join(root, payload.bucket, payload.path);
  const there = () => stat(file).then(() => true, () => false);

  assert.equal(await admin('POST', { path: join(out, 'copy.db') }), 201);
  assert.equal((await call(server, 'DELETE', `${AGENT}/threads/t1`)).status, 204);
  const later = { bucket: 'payloads', path: pathOf(Buffer.from('later'), 'call_later'), bytes: Buffer.from('later') };
  await accepted(server, { threadId: 't2', messages: [user('hello')] }); // whatever the deletion began has begun
  await waitFor('the answer', async () => (await call(server, 'GET', `${AGENT}/runs/t2`)).json().status === 'completed');
  assert.ok(await there(), 'the copy names it');
  assert.equal(await admin('DELETE'), 204);
  assert.equal(await admin('DELETE'), 204, 'once more is fine');

  await home.stop();
  await put(root, later);
  execute(home, rowOf(later).replace("'t1'", "'t2'"));
  await home.start();
  assert.equal((await call(home.server, 'DELETE', `${AGENT}/threads/t2`)).status, 204);
  await waitFor('its end', () => stat(join(root, later.bucket, later.path)).then(() => false, () => true));
});

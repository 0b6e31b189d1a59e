// SPDX-License-Identifier: Apache-2.0
//
// `fermata backup` and `fermata restore`, with and without a server.

import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';

import { bearer, call, Home, postJson, run } from './home.mjs';
import { buildFolder } from './server.mjs';
import { accepted, history, isEnd, openEvents, startTalk, talk, user, waitFor } from './talk.mjs';

const SCRIPT = [{ turns: [{ text: 'A short answer.', chunk: 4 }] }];
const TALKERS = 8;

async function folder(t) {
  const path = await mkdtemp(join(tmpdir(), 'fermata-backup-'));
  t.after(() => rm(path, { recursive: true, force: true }));
  return path;
}

const mode = async (path) => ((await stat(path)).mode & 0o7777).toString(8);

async function backup(home, file) {
  const { code, stdout, stderr } = await home.run(['backup', file]);
  assert.equal(code, 0, stderr);
  assert.equal(stdout, '');
  return readFile(file);
}

const restore = (file, data) => run(['restore', file], { env: { FERMATA_DATA: data } });

async function restored(file, data) {
  const { code, stderr } = await restore(file, data);
  assert.equal(code, 0, stderr);
  assert.match(stderr, /^Restored into /);
}

// A server on a restored folder that ends with the test.
async function startOn(t, data, env) {
  const home = await Home.make(t, env);
  await rm(home.data, { recursive: true });
  home.data = data;
  return home.start();
}

test('a backup under load has everything that was answered before it began', { timeout: 120_000 }, async (t) => {
  const home = await startTalk(t, SCRIPT);
  const out = await folder(t);
  const key = await home.addKey();
  const headers = bearer(key);
  const { server } = home;

  const answered = [];
  let going = true;
  const talker = async (n) => {
    for (let i = 0; going; i++) {
      const threadId = `t${n}-${i % 5}`;
      const id = `m${n}-${i}`;
      const { runId, seq } = await accepted(server, { threadId, messages: [user(`message ${i}`, id)] }, headers);
      answered.push({ threadId, runId, id, seq });
    }
  };
  const talkers = Array.from({ length: TALKERS }, (_, n) => talker(n));
  const some = (count) => new Promise((done) => {
    const look = () => (answered.length >= count ? done() : setImmediate(look));
    look();
  });

  await some(100);
  const before = answered.slice();
  await backup(home, join(out, 'all.tar'));
  const during = answered.length - before.length;
  await some(answered.length + 20); // and the server goes on
  going = false;
  await Promise.all(talkers);
  assert.ok(during > 0, 'messages were answered while the backup was made');
  await home.stop();

  const data = join(out, 'data');
  await restored(join(out, 'all.tar'), data);
  const again = await startOn(t, data, home.env);
  for (const threadId of new Set(before.map((row) => row.threadId))) {
    const rows = before.filter((row) => row.threadId === threadId);
    const ends = new Set();
    const events = await openEvents(t, again, threadId, { query: '?after=0', headers }); // refuses gaps
    while (rows.some(({ runId }) => !ends.has(runId))) {
      const found = (await events.until(isEnd)).at(-1);
      assert.equal(found.type, 'run.finished');
      ends.add(found.runId);
    }
    assert.equal(events.facts[0].seq, 1);
    events.close();
    const known = new Set((await history(again, threadId, '?limit=200', headers)).messages.map(({ id }) => id));
    for (const { id } of rows) assert.ok(known.has(id), `${id} of ${threadId} was answered before the backup`);
  }
});

test('sessions and keys survive, and a foreign secret ends them', async (t) => {
  const home = await Home.make(t);
  const out = await folder(t);
  const key = await home.addKey();
  const server = await home.start();
  const signedIn = await postJson(server, '/api/v1/session', { key });
  assert.equal(signedIn.status, 200, signedIn.text);
  const cookie = signedIn.cookies[0].split(';')[0];
  await backup(home, join(out, 'a.tar'));
  await home.stop();

  const who = (at, headers) => call(at, 'GET', '/api/v1/session', { headers }).then(({ status }) => status);
  await restored(join(out, 'a.tar'), join(out, 'same'));
  const same = await startOn(t, join(out, 'same'), {});
  assert.equal(await who(same, { cookie }), 200);
  assert.equal(await who(same, bearer(key)), 200);

  await restored(join(out, 'a.tar'), join(out, 'other'));
  await rm(join(out, 'other', 'secret.key'));
  const other = await startOn(t, join(out, 'other'), {});
  assert.equal(await who(other, { cookie }), 401);
  assert.equal(await who(other, bearer(key)), 200);
});

test('without a server, after a crash: the same archive, and the folder is left as it was', async (t) => {
  const home = await startTalk(t, SCRIPT);
  const out = await folder(t);
  const { start } = await talk(t, home.server, 'hello');
  await home.server.kill9();
  home.server = null;
  const names = await readdir(home.data);
  await backup(home, join(out, 'crashed.tar'));
  assert.deepEqual((await readdir(home.data)).sort(), names.sort());
  await restored(join(out, 'crashed.tar'), join(out, 'data'));
  const again = await startOn(t, join(out, 'data'), home.env);
  assert.deepEqual((await history(again, start.threadId)).messages.map(({ role }) => role), ['user', 'assistant']);
});

test('the archive is a private tar file that common tools can check', async (t) => {
  const home = await Home.make(t);
  const out = await folder(t);
  await home.start();
  await backup(home, join(out, 'a.tar'));
  assert.equal(await mode(join(out, 'a.tar')), '600');
  assert.deepEqual(await readdir(out), ['a.tar'], 'nothing else is left behind');
  await mkdir(join(out, 'x'));
  const tar = await promisify(execFile)('tar', ['xvf', join(out, 'a.tar'), '-C', join(out, 'x')]);
  assert.equal(tar.stdout, 'fermata.db\nsecret.key\nmanifest.json\nSHA256SUMS\n');
  await promisify(execFile)('sha256sum', ['-c', '--strict', 'SHA256SUMS'], { cwd: join(out, 'x') });
  const manifest = JSON.parse(await readFile(join(out, 'x', 'manifest.json'), 'utf8'));
  assert.deepEqual(Object.keys(manifest), ['format', 'version', 'schema', 'createdAt', 'files', 'leftOut']);
  assert.deepEqual(await readFile(join(out, 'x', 'secret.key')), await readFile(join(home.data, 'secret.key')));

  await restored(join(out, 'a.tar'), join(out, 'data'));
  assert.equal(await mode(join(out, 'data')), '700');
  for (const name of ['fermata.db', 'secret.key']) assert.equal(await mode(join(out, 'data', name)), '600', name);
});

test('a secret that is kept elsewhere stays there', async (t) => {
  const out = await folder(t);
  const secret = join(out, 'secret');
  await writeFile(secret, 'a secret of more than thirty-two bytes, kept elsewhere', { mode: 0o600 });
  const home = await Home.make(t, { FERMATA_SECRET_FILE: secret });
  await home.start();
  const bytes = await backup(home, join(out, 'a.tar'));
  assert.ok(!bytes.includes('secret.key') && !bytes.includes('kept elsewhere'));
  const { code, stderr } = await restore(join(out, 'a.tar'), join(out, 'data'));
  assert.equal(code, 0, stderr);
  assert.match(stderr, /FERMATA_SECRET_FILE/);
});

test('backups that are refused', async (t) => {
  const home = await Home.make(t);
  const out = await folder(t);
  await home.start();
  await writeFile(join(out, 'there'), 'precious');
  const shut = join(out, 'shut');
  await mkdir(shut);
  await chmod(shut, 0o500);
  const rows = [
    ['a file that is there', ['backup', join(out, 'there')], {}, 1, /is there already: choose another name/],
    ['a folder that is not there', ['backup', join(out, 'no', 'a')], {}, 1, /cannot be used: No such file/],
    ['no name', ['backup', `${out}/`], {}, 1, /is no name of a file/],
    ['no operand', ['backup'], {}, 2, /needs FILE/],
    ['no database', ['backup', join(out, 'a')], { FERMATA_DATA: join(out, 'nothing') }, 1, /there is nothing to save/],
  ];
  if (process.getuid() !== 0) rows.push(['a shut folder', ['backup', join(shut, 'a')], {}, 1, /Permission denied/]);
  for (const [what, args, env, expected, message] of rows) {
    const { code, stderr } = await home.run(args, env);
    assert.equal(code, expected, `${what}: ${stderr}`);
    assert.match(stderr, message, what);
  }
  assert.equal(await readFile(join(out, 'there'), 'utf8'), 'precious');
  assert.deepEqual((await readdir(out)).sort(), ['shut', 'there'], 'and nothing is left behind');
});

test('restores that are refused leave everything as it was', async (t) => {
  const home = await Home.make(t);
  const out = await folder(t);
  const data = join(out, 'data');
  await home.start();
  const good = await backup(home, join(out, 'good'));
  const flipped = Buffer.from(good);
  flipped[Math.floor(good.length / 2)] ^= 1;
  const files = {
    flipped, cut: good.subarray(0, good.length - 512), longer: Buffer.concat([good, Buffer.alloc(512)]),
    empty: Buffer.alloc(0), text: Buffer.from('this is no archive'.repeat(100)),
  };
  for (const [name, bytes] of Object.entries(files)) {
    await writeFile(join(out, name), bytes);
    const { code, stderr } = await restore(join(out, name), data);
    assert.equal(code, 1, name);
    assert.match(stderr, /^fermata: .*(damaged|cut off)/, name);
    await assert.rejects(stat(data), { code: 'ENOENT' }, `${name}: nothing was made`);
  }
  const missing = await restore(join(out, 'nowhere'), data);
  assert.equal(missing.code, 1);
  assert.match(missing.stderr, /No such file/);

  await mkdir(data, { mode: 0o700 });
  await writeFile(join(data, 'notes'), 'mine');
  const full = await restore(join(out, 'good'), data);
  assert.equal(full.code, 1);
  assert.match(full.stderr, /is not empty \(it has notes\)/);
  assert.deepEqual((await readdir(data)).sort(), ['fermata.lock', 'notes']);

  const served = await restore(join(out, 'good'), home.data);
  assert.equal(served.code, 1);
  assert.match(served.stderr, /is in use by process \d+/);
  assert.equal((await call(home.server, 'GET', '/readyz')).status, 200);
});

test('a server that finds a backup at work waits for it; one that finds a server does not', async (t) => {
  const home = await Home.make(t);
  await home.start();
  const second = await home.run(['serve'], { FERMATA_LISTEN: '127.0.0.1:0' });
  assert.equal(second.code, 1);
  assert.match(second.stderr, new RegExp(`is in use by process ${home.server.pid} \\(fermata serve\\)`));
  await home.stop();

  const lock = join(home.data, 'fermata.lock'); // held as a backup holds it, for as long as the test wants
  const holder = spawn('flock', ['-x', lock, 'sh', '-c', 'printf "%s\\nbackup\\n" $$ > "$0" && echo held && read -r go', lock], { stdio: ['pipe', 'pipe', 'inherit'] });
  t.after(() => holder.kill('SIGKILL'));
  const gone = new Promise((done) => { holder.once('close', done); });
  await new Promise((done) => { holder.stdout.once('data', done); });
  const pid = (await readFile(lock, 'utf8')).split('\n')[0];
  const server = spawn(join(buildFolder(), 'fermata'), ['serve'], {
    env: { PATH: process.env.PATH, FERMATA_DATA: home.data, FERMATA_LISTEN: '127.0.0.1:0' }, stdio: ['ignore', 'pipe', 'pipe'] });
  t.after(() => server.kill('SIGKILL'));
  const ended = new Promise((done) => { server.once('close', done); });
  let stdout = '', stderr = '';
  server.stdout.on('data', (text) => { stdout += text; });
  server.stderr.on('data', (text) => { stderr += text; });
  await waitFor('it to say so', () => stderr.includes(`waiting for fermata backup (process ${pid})`) || server.exitCode !== null);
  assert.equal(server.exitCode, null, stderr);
  assert.equal(stdout, '');
  holder.stdin.end('go\n');
  await gone;
  await waitFor('it to go on by itself', () => stdout.includes('listening on'));
  assert.equal(stderr.split('waiting for').length, 2, 'said once');
  server.kill('SIGTERM');
  assert.equal(await ended, 0);
});

test('what the admin socket refuses', async (t) => {
  const home = await Home.make(t);
  const out = await folder(t);
  await home.start();
  const ask = (body) => new Promise((done, failed) => {
    const sent = request({
      socketPath: join(home.data, 'fermata.sock'), method: 'POST', path: '/backup', agent: false,
      headers: { 'content-type': 'application/json' },
    }, (answer) => {
      answer.resume();
      answer.on('end', () => done(answer.statusCode));
    });
    sent.on('error', failed);
    sent.end(JSON.stringify(body));
  });
  assert.equal(await ask({}), 400);
  assert.equal(await ask({ path: 7 }), 400);
  assert.equal(await ask({ path: 'relative' }), 400);
  assert.equal(await ask({ path: '/new\nline' }), 400);
  assert.equal(await ask({ path: join(out, 'a'), more: 1 }), 400);
  assert.equal(await ask({ path: join(out, 'no', 'a') }), 500);
  assert.equal(await ask({ path: join(out, 'a') }), 201);
  assert.equal(await ask({ path: join(out, 'a') }), 500, 'never over a file');
  assert.equal((await call(home.server, 'POST', '/backup')).status, 404, 'and not for the public');
});

// SPDX-License-Identifier: Apache-2.0
//
// `fermata check --audit`. The chains are made here, by a second hand: what a seal is made of is in databases in
// the field and must not change.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createHash, createHmac, hkdfSync, randomBytes } from 'node:crypto';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, test } from 'node:test';

import { Home } from './home.mjs';

const subkey = (secret) => Buffer.from(hkdfSync('sha256', secret, '', 'fermata 1 audit', 32));

const number = (value) => {
  const bytes = Buffer.alloc(8);
  bytes.writeBigInt64BE(BigInt(value));
  return bytes;
};
const text = (value) => Buffer.concat([number(Buffer.byteLength(value)), Buffer.from(value)]);

// The first 4 bytes name the key.
function seal(key, ...parts) {
  const id = createHash('sha256').update('fermata 1 audit key id\0').update(key).digest().subarray(0, 4);
  return Buffer.concat([id, createHmac('sha256', key).update(Buffer.concat(parts)).digest()]);
}

const sqlite = (home, sql) => execFileSync('sqlite3', [join(home.data, 'fermata.db'), `PRAGMA foreign_keys=1; ${sql}`],
  { encoding: 'utf8' });

// A thread with so many entries.
function chain(home, key, owner, threadId, count) {
  const thread = Number(sqlite(home, `INSERT INTO threads (owner, thread_id, title, agent, last_seq, created, updated)
    VALUES ('${owner}', '${threadId}', '', 'assistant', 0, 1, 1) RETURNING id`));
  let last = Buffer.alloc(36), rows = '';
  for (let n = 1; n <= count; n++) {
    const words = ['int_1', 'call_1', owner, 'api', 'approve'], hash = randomBytes(32), at = 1_700_000_000_000 + n;
    last = seal(key, text('entry'), text(last), number(thread), number(n), number(1), number(at),
      ...words.map(text), text(hash));
    rows += `INSERT INTO audit VALUES (${thread}, ${n}, 1, ${at}, ${words.map((word) => `'${word}'`)},
      x'${hash.toString('hex')}', x'${last.toString('hex')}');`;
  }
  const head = seal(key, text('head'), number(thread), number(count), text(last));
  sqlite(home, `${rows} INSERT INTO audit_heads
    VALUES (${thread}, ${count}, x'${last.toString('hex')}', x'${head.toString('hex')}')`);
  return thread;
}

// A folder that a server has used, and its audit key.
async function made(t, env) {
  const home = await Home.make(t, env);
  await home.start();
  await home.stop();
  return { home, key: subkey(await readFile(env?.FERMATA_SECRET_FILE ?? join(home.data, 'secret.key'))) };
}

async function verdict(home, code, stdout) {
  const run = await home.run(['check', '--audit']);
  assert.equal(run.stderr, '');
  if (stdout instanceof RegExp) assert.match(run.stdout, stdout);
  else assert.equal(run.stdout, stdout);
  assert.equal(run.code, code);
}

test('chains that nobody touched are intact, with and without a server', async (t) => {
  const { home, key } = await made(t);
  await verdict(home, 0, 'audit: 0 threads, 0 entries, intact\n');
  chain(home, key, 'ann', 't1', 3);
  chain(home, key, '安娜', 't1', 2);
  await verdict(home, 0, 'audit: 2 threads, 5 entries, intact\n');
  await home.start();
  await verdict(home, 0, 'audit: 2 threads, 5 entries, intact\n');
  await home.server.kill9(); // its log stays behind
  home.server = null;
  await verdict(home, 0, 'audit: 2 threads, 5 entries, intact\n');
});

describe('a chain that somebody changed is named, and the exit code is 1', () => {
  for (const [what, change, told] of [
    ['an entry', "UPDATE audit SET who = 'eve' WHERE thread = 2 AND n = 2", 'thread 2 (ann/t2), entry 2: its seal'],
    ['the last entry gone', 'DELETE FROM audit WHERE thread = 2 AND n = 3', 'thread 2 (ann/t2), entry 2: entries behind'],
    ['the head', 'UPDATE audit_heads SET count = 2 WHERE thread = 1', 'thread 1 (ann/t1), entry 3: the head'],
  ]) {
    for (const running of [false, true]) {
      test(`${what}, ${running ? 'under a server' : 'no server'}`, async (t) => {
        const { home, key } = await made(t);
        chain(home, key, 'ann', 't1', 3);
        chain(home, key, 'ann', 't2', 3);
        sqlite(home, change);
        if (running) await home.start();
        await verdict(home, 1, new RegExp(`^audit: BROKEN: ${told.replace(/[()]/g, '\\$&')}[^\n]*\n$`));
      });
    }
  }
});

test('the secret is that of the installation', async (t) => {
  const { home, key } = await made(t);
  chain(home, key, 'ann', 't1', 1);
  const file = join(home.data, 'other.key');
  await writeFile(file, randomBytes(32), { mode: 0o600 });
  home.env.FERMATA_SECRET_FILE = file;
  await verdict(home, 1, /^audit: BROKEN: thread 1 \(ann\/t1\), entry 1: it was sealed with another secret/);
  chain(home, subkey(await readFile(file)), 'ann', 't2', 1);
  sqlite(home, 'DELETE FROM threads WHERE id = 1');
  await verdict(home, 0, 'audit: 1 threads, 1 entries, intact\n');
});

test('a folder without a database is told, and nothing is made in it', async (t) => {
  const home = await Home.make(t);
  for (const data of [home.data, join(home.data, 'none')]) {
    const run = await home.run(['check', '--audit'], { FERMATA_DATA: data });
    assert.deepEqual([run.code, run.stdout], [1, '']);
    assert.equal(run.stderr, `fermata: there is nothing to check: ${data} has no database\n`);
  }
  assert.deepEqual(await readdir(home.data), []);
});

test('help tells of it in both languages', async (t) => {
  const home = await Home.make(t);
  for (const [LANG, words] of [['en', /--audit +verify the audit trail/], ['zh_CN.UTF-8', /--audit +改为核验审计记录/]]) {
    assert.match((await home.run(['help', 'check'], { LANG })).stdout, words);
  }
});

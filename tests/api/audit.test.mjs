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

import { answer, startAsking, until, waiting } from './asking.mjs';
import { call, Home } from './home.mjs';
import { AGENT, waitFor } from './talk.mjs';

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
    rows += `INSERT INTO audit (chain, n, action, at, interaction_id, call_id, who, via, why, hash, seal) VALUES (${thread}, ${n}, 1, ${at}, ${words.map((word) => `'${word}'`)},
      x'${hash.toString('hex')}', x'${last.toString('hex')}');`;
  }
  const head = seal(key, text('head'), number(thread), number(count), text(last));
  sqlite(home, `${rows} INSERT INTO audit_chains (chain, count, last, seal, known, closed, name, owner, thread_id)
    VALUES (${thread}, ${count}, x'${last.toString('hex')}', x'${head.toString('hex')}', 0, 0, 'chn_${thread}', '${owner}', '${threadId}')`);
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
  await verdict(home, 0, 'audit: 0 chains (0 closed), 0 entries, intact\n');
  chain(home, key, 'ann', 't1', 3);
  chain(home, key, '安娜', 't1', 2);
  await verdict(home, 0, 'audit: 2 chains (0 closed), 5 entries, intact\n');
  await home.start();
  await verdict(home, 0, 'audit: 2 chains (0 closed), 5 entries, intact\n');
  await home.server.kill9(); // its log stays behind
  home.server = null;
  await verdict(home, 0, 'audit: 2 chains (0 closed), 5 entries, intact\n');
});

describe('a chain that somebody changed is named, and the exit code is 1', () => {
  for (const [what, change, told] of [
    ['an entry', "UPDATE audit SET who = 'eve' WHERE chain = 2 AND n = 2", 'chain chn_2 (ann/t2), entry 2: its seal'],
    ['the last entry gone', 'DELETE FROM audit WHERE chain = 2 AND n = 3', 'chain chn_2 (ann/t2), entry 2: entries behind'],
    ['the head', 'UPDATE audit_chains SET count = 2 WHERE chain = 1', 'chain chn_1 (ann/t1), entry 3: the head'],
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
  await verdict(home, 1, /^audit: BROKEN: chain chn_1 \(ann\/t1\), entry 1: it was sealed with another secret/);
  chain(home, subkey(await readFile(file)), 'ann', 't2', 1);
  sqlite(home, 'DELETE FROM audit WHERE chain = 1; DELETE FROM audit_chains WHERE chain = 1');
  await verdict(home, 0, 'audit: 1 chains (0 closed), 1 entries, intact\n');
});

describe('a trail outlives its thread', () => {
  const approved = async (home, word = 'book') => {
    const { threadId, open: [asked] } = await waiting(home.server, word);
    assert.equal((await answer(home.server, asked.interactionId, { decision: 'approve' })).status, 200);
    await until(home.server, threadId, 'completed');
    return threadId;
  };
  const remove = async (home, threadId) => assert.equal((await call(home.server, 'DELETE', `${AGENT}/threads/${threadId}`)).status, 204);
  const counts = async (home) => {
    const { code, stdout } = await home.run(['check', '--audit']);
    assert.equal(code, 0, stdout);
    return /^audit: (\d+) chains \((\d+) closed\), (\d+) entries, intact\n$/.exec(stdout).slice(1).map(Number);
  };

  test('deleting closes it, with who did; the same name begins another', async (t) => {
    const home = await startAsking(t);
    const gone = await approved(home), kept = await approved(home);
    const [chains, closed, entries] = await counts(home);
    assert.deepEqual([chains, closed], [2, 0]);
    await remove(home, gone);
    assert.deepEqual(await counts(home), [2, 1, entries + 1]);
    const last = sqlite(home, `SELECT action, who, total FROM audit WHERE chain=1 ORDER BY n DESC LIMIT 1`);
    assert.equal(last, `8|local|${entries / 2}\n`);
    const { open: [asked] } = await waiting(home.server, 'book', { threadId: gone });
    assert.equal((await answer(home.server, asked.interactionId, { decision: 'reject' })).status, 200);
    await until(home.server, gone, 'completed');
    assert.equal((await counts(home))[0], 3);
    await remove(home, gone);
    await remove(home, kept);
    assert.deepEqual((await counts(home)).slice(0, 2), [3, 3]);
  });

  test('one with nothing in it leaves none', async (t) => {
    const home = await startAsking(t);
    await approved(home);
    const { threadId } = (await call(home.server, 'POST', `${AGENT}/runs`, { headers: { 'content-type': 'application/json' }, body: JSON.stringify({ threadId: 'plain', messages: [{ role: 'user', content: 'hi' }] }) })).json();
    await until(home.server, threadId, 'completed');
    await remove(home, threadId);
    assert.deepEqual((await counts(home)).slice(0, 2), [1, 0]);
  });

  for (const [what, change, told] of [
    ['of a thread that is there', (chain) => `DELETE FROM audit WHERE chain=${chain}; DELETE FROM audit_chains WHERE chain=${chain}`, /^audit: BROKEN: chain chn_[0-9a-z]+: it is missing\n$/],
    ['of a deleted thread', (chain) => `DELETE FROM audit WHERE chain=${chain}; DELETE FROM audit_chains WHERE chain=${chain}`, /^audit: BROKEN: chain chn_[0-9a-z]+: it is missing\n$/],
    ['all of them', () => 'DELETE FROM audit; DELETE FROM audit_chains', /^audit: BROKEN: chain server: it is missing\n$/],
  ]) {
    test(`taken away with all its rows: ${what}`, async (t) => {
      const home = await startAsking(t);
      const first = await approved(home);
      await approved(home);
      if (what === 'of a deleted thread') await remove(home, first);
      await home.stop();
      sqlite(home, change(1));
      await verdict(home, 1, told);
      await home.start();
      await approved(home);
      await verdict(home, 1, /^audit: BROKEN: chain /);
    });
  }

  test('chains from before are made known at the start', async (t) => {
    const { home, key } = await made(t);
    chain(home, key, 'ann', 't1', 3);
    chain(home, key, 'ann', 't2', 2);
    await home.start();
    await waitFor('both to be known', () => sqlite(home, 'SELECT count(*) FROM audit WHERE chain=0 AND action=9') === '2\n');
    await home.stop();
    await verdict(home, 0, 'audit: 2 chains (0 closed), 5 entries, intact\n');
    sqlite(home, 'DELETE FROM audit WHERE chain=1; DELETE FROM audit_chains WHERE chain=1');
    await verdict(home, 1, 'audit: BROKEN: chain chn_1: it is missing\n');
  });
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

// SPDX-License-Identifier: Apache-2.0
//
// What is deleted is gone: for everybody at the 204, from the disk soon after, also if the server is killed at the 204.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdir, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';

import { bearer, call } from '../api/home.mjs';
import { RawConnection } from '../api/raw.mjs';
import { accepted, AGENT, get, history, startTalk, user, waitFor } from '../api/talk.mjs';
import { packFact } from '../tools/facts.mjs';

const FILES = 120;
const ROWS = 30_000;
const LONG_ROWS = 125_000;
const PIECES_MIN = 5; // in which so many go: 80 were seen, fewer on a faster machine
const LINES = [{ match: 'x', turns: [{ text: 'Yes.' }] }];

const sqlite = (home, sql) => execFileSync('sqlite3', ['-cmd', '.timeout 20000', join(home.data, 'fermata.db'), sql], { encoding: 'utf8' }).trim();
const remove = (server, id) => call(server, 'DELETE', `${AGENT}/threads/${id}`);

async function paths(home) {
  const entries = await readdir(join(home.data, 'blobs'), { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).map((entry) => join(entry.path, entry.name));
}
const objects = async (home) => (await paths(home)).length;

async function upload(server, threadId, n) {
  const form = new FormData();
  form.set('threadId', threadId);
  form.set('file', new Blob([`file ${n}`]), `${n}.txt`);
  const answer = await fetch(`${server.url}${AGENT}/attachments`, { method: 'POST', body: form });
  assert.equal(answer.status, 201);
  await answer.text();
}

// Messages and facts as a long conversation has them, without talking so long; facts in both of their tables.
const FACT = { type: 'message.added', run_id: 'r', data: '{}' };
function fill(home, threadId, rows = ROWS) {
  sqlite(home, `
    CREATE TEMP TABLE n AS WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<${rows}) SELECT i FROM n;
    CREATE TEMP TABLE t AS SELECT id, last_seq FROM threads WHERE thread_id='${threadId}';
    INSERT INTO events (thread, seq, type, run_id, at, data) SELECT t.id, i, '${FACT.type}', '${FACT.run_id}', 0, '${FACT.data}' FROM t, n;
    INSERT INTO facts (thread, first_seq, last_seq, bytes) SELECT t.id, t.last_seq+i, t.last_seq+i, ${packFact(FACT)} FROM t, n;
    INSERT INTO messages (thread, seq, id, role, run_id, created, plain, metadata, usage, tool_calls, content, provider_data)
      SELECT t.id, t.last_seq+i, 'old' || i, 'user', 'r', 0, 'hay', '{}', '', '', '"hay"', '' FROM t, n;
    UPDATE threads SET last_seq=last_seq+${rows} WHERE thread_id='${threadId}';`);
}

test('killed at the 204, it removes the files at the next start', async (t) => {
  const home = await startTalk(t, LINES);
  const kept = 1;
  await upload(home.server, 'keep', 0);
  for (let n = 0; n < FILES; n++) await upload(home.server, 'gone', n);
  await accepted(home.server, { threadId: 'gone', messages: [user('x')] });
  await waitFor('the answer', async () => (await get(home.server, '/runs/gone')).json().status === 'completed');
  assert.equal(await objects(home), FILES + kept);
  const { server } = home;
  home.server = null;
  const deleted = remove(server, 'gone').then(async ({ status }) => {
    server.proc.kill('SIGKILL');
    return status;
  });
  assert.equal(await deleted, 204);
  await server.exited;
  await home.start();
  await waitFor('the files to be gone', async () => await objects(home) === kept);
  await waitFor('the rows to be gone', async () => sqlite(home, "SELECT count(*) FROM attachments WHERE thread_id<>'keep'") === '0');
  assert.equal((await get(home.server, '/threads/gone')).status, 404);
});

// A folder with something in it stands where the file was, so it cannot be removed: no user and no root can.
test('a file that cannot be removed keeps nothing else', async (t) => {
  const home = await startTalk(t, LINES);
  await upload(home.server, 'stuck', 0);
  const bad = await paths(home);
  assert.equal(bad.length, 1);
  await rm(bad[0]);
  await mkdir(join(bad[0], 'in the way'), { recursive: true });
  for (let n = 1; n <= FILES; n++) await upload(home.server, n % 2 ? 'stuck' : 'other', n);
  for (const threadId of ['stuck', 'other']) {
    await accepted(home.server, { threadId, messages: [user('x')] });
    await waitFor('the answer', async () => (await get(home.server, `/runs/${threadId}`)).json().status === 'completed');
    assert.equal((await remove(home.server, threadId)).status, 204);
  }
  await waitFor('the other files to be gone', async () => await objects(home) === 0);
  await waitFor('the rows to be gone', async () => sqlite(home, "SELECT (SELECT count(*) FROM attachments) || (SELECT count(*) FROM threads)") === '10');
  await waitFor('a word about it', () => home.server.stderr().includes('a file of a deleted thread cannot be removed'));
  await rm(bad[0], { recursive: true });
  await home.stop(); // it would be tried again by itself, in a minute
  await home.start();
  await waitFor('the last row to be gone', async () => sqlite(home, 'SELECT count(*) FROM attachments') === '0');
});

test('a long thread is gone at the 204, its name is free, and its rows go beside other work', async (t) => {
  const home = await startTalk(t, LINES);
  for (const threadId of ['a', 'b', 'other']) {
    await accepted(home.server, { threadId, messages: [user('x')] });
    await waitFor('the answer', async () => (await get(home.server, `/runs/${threadId}`)).json().status === 'completed');
  }
  await home.stop();
  fill(home, 'a');
  fill(home, 'b');
  await home.start();
  assert.equal((await history(home.server, 'a', '?limit=1')).messages.length, 1);
  assert.equal((await remove(home.server, 'a')).status, 204);
  for (const path of ['/threads/a', '/runs/a', '/runs/a/history', '/threads/a/export']) assert.equal((await get(home.server, path)).status, 404, path);
  const listed = (await get(home.server, '/threads?limit=200')).json().threads.map(({ threadId }) => threadId);
  assert.deepEqual(listed.sort(), ['b', 'other']);
  assert.equal((await remove(home.server, 'a')).status, 404, 'once');
  const again = await accepted(home.server, { threadId: 'a', runId: 'r1', messages: [user('x again')] });
  assert.equal(again.created, true);
  await waitFor('the answer', async () => (await get(home.server, '/runs/a')).json().status === 'completed');
  assert.deepEqual((await history(home.server, 'a')).messages.map(({ role }) => role), ['user', 'assistant']);

  assert.equal((await remove(home.server, 'b')).status, 204);
  const { server } = home;
  home.server = null;
  await server.kill9();
  await home.start();
  assert.equal((await get(home.server, '/threads/b')).status, 404, 'also after a crash');
  await waitFor('all rows of both to be gone', async () =>
    sqlite(home, 'SELECT (SELECT count(*) FROM messages) || " " || (SELECT count(*) FROM threads)') === '4 2');
  assert.equal(sqlite(home, 'PRAGMA foreign_key_check'), '');
  assert.deepEqual((await history(home.server, 'other')).messages.map(({ role }) => role), ['user', 'assistant']);
});

// The order of commits is looked at, and no time. Three requests stand on one connection, so the server takes each right
// behind the answer to the one before, however slow this test is: ann deletes her thread, bob changes his, and then the
// commits are counted. Were the rows removed by the commit of the 204, or by one that bob's had to wait for, none would be
// left to come; they come in pieces of a few milliseconds, so there are many.
test('another user writes before the rows of a long thread are gone', async (t) => {
  const home = await startTalk(t, LINES);
  const ann = bearer(await home.addKey('ann')), bob = bearer(await home.addKey('bob'));
  for (const [threadId, headers] of [['long', ann], ['short', bob]]) {
    await accepted(home.server, { threadId, messages: [user('x')] }, headers);
    await waitFor('the answer', async () => (await get(home.server, `/runs/${threadId}`, headers)).json().status === 'completed');
  }
  await home.stop();
  fill(home, 'long', LONG_ROWS);
  await home.start();

  const request = (method, path, { authorization }, body = '') =>
    `${method} ${path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: ${authorization}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
  const commits = (text) => Number(/^fermata_store_commits_total (\d+)$/m.exec(text)[1]);
  const connection = await RawConnection.open(home.server);
  t.after(() => connection.close());
  await connection.write(request('DELETE', `${AGENT}/threads/long`, ann) + request('PATCH', `${AGENT}/threads/short`, bob, '{"title":"Mine"}')
    + request('GET', '/metrics', bob));
  assert.equal((await connection.response()).status, 204);
  assert.equal((await connection.response()).status, 200);
  const before = commits((await connection.response()).body);
  await waitFor('all rows to be gone', () => sqlite(home, "SELECT count(*) FROM messages WHERE id LIKE 'old%'") === '0');
  const after = commits((await call(home.server, 'GET', '/metrics', { headers: bob })).text);
  t.diagnostic(`${after - before} commits behind bob's`);
  assert.ok(after - before >= PIECES_MIN, `${after - before} commits removed ${LONG_ROWS} messages and their facts behind bob's`);
});

// SPDX-License-Identifier: Apache-2.0
//
// Much of something: a long thread exported from a file, and long answers that many requests were given.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { stat } from 'node:fs/promises';
import { request } from 'node:http';
import { join } from 'node:path';
import { test } from 'node:test';

import { answer, startAsking, waiting } from './asking.mjs';
import { assertProblem, bearer } from './home.mjs';
import { within } from './server.mjs';
import { accepted, AGENT, get, startTalk, user, waitFor } from './talk.mjs';

const KIB = 1024, MIB = 1024 * KIB;
const LINES = [{ turns: [{ text: 'Yes.' }] }];

const sqlite = (home, sql) => execFileSync('sqlite3', ['-cmd', '.timeout 20000', join(home.data, 'fermata.db')], { input: sql, encoding: 'utf8' });

// Messages of 1 MiB behind those that are there.
function lengthen(home, threadId, count) {
  sqlite(home, `
    CREATE TEMP TABLE n AS WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<${count}) SELECT i FROM n;
    CREATE TEMP TABLE t AS SELECT id, last_seq FROM threads WHERE thread_id='${threadId}';
    INSERT INTO messages (thread, seq, id, role, run_id, created, plain, metadata, usage, tool_calls, content, provider_data)
      SELECT t.id, t.last_seq+i, 'm' || i, 'user', 'r', 0, i || hex(zeroblob(${MIB / 2})), '{}', '', '', json_quote(i || hex(zeroblob(${MIB / 2}))), '' FROM t, n;
    UPDATE threads SET last_seq=last_seq+${count} WHERE thread_id='${threadId}';`);
}

// An export of which the head has come, and that nobody reads.
function begin(server, path, headers) {
  return within(60_000, path, new Promise((done, failed) => {
    const sent = request({ host: server.host, port: server.port, path: `${AGENT}${path}`, headers, agent: false }, (response) => {
      response.pause();
      done({ status: response.statusCode, close: () => response.destroy() });
    });
    sent.on('error', failed);
    sent.end();
  }));
}

test('a thread of 40 MiB is exported whole; two at a time for each user', async (t) => {
  const home = await startTalk(t, LINES);
  const [ann, bob] = [bearer(await home.addKey('ann')), bearer(await home.addKey('bob'))];
  for (const headers of [ann, bob]) {
    await accepted(home.server, { threadId: 'long', messages: [user('hello')] }, headers);
    await waitFor('the answer', async () => (await get(home.server, '/runs/long', headers)).json().status === 'completed');
  }
  await home.stop();
  lengthen(home, 'long', 40);
  const server = await home.start();
  const exported = await get(server, '/threads/long/export?format=json', ann);
  assert.equal(exported.status, 200);
  assert.match(exported.headers['content-disposition'], /^attachment; filename="long\.json"$/);
  assert.equal(Number(exported.headers['content-length']), Buffer.byteLength(exported.text));
  const { thread, messages } = exported.json();
  assert.equal(thread.threadId, 'long');
  assert.deepEqual(messages.map(({ id, role }) => (id.startsWith('msg_') ? role : id)),
    ['user', 'assistant', ...Array.from({ length: 40 }, (_, i) => `m${i + 1}`)]);
  const markdown = (await get(server, '/threads/long/export', ann)).text;
  assert.equal(markdown.split('## user').length - 1, 41);

  const slow = [await begin(server, '/threads/long/export', ann), await begin(server, '/threads/long/export', ann)];
  assert.deepEqual(slow.map(({ status }) => status), [200, 200]);
  const third = await get(server, '/threads/long/export', ann);
  assertProblem(third, 429, 'rate_limited');
  assert.ok(third.headers['retry-after']);
  assert.equal((await get(server, '/threads/long/export', bob)).status, 200, 'others have their own');
  for (const one of slow) one.close();
  await waitFor('their places', async () => (await get(server, '/threads/none/export', ann)).status === 404);
});

test('a long answer is kept once, however many requests were given it', async (t) => {
  const text = 'x'.repeat(200 * KIB);
  const home = await startAsking(t, {
    lines: [{ match: 'ask', turns: [{ calls: [{ name: 'calendar_write', args: { title: 'Review', start_time: '2030-01-31T15:00:00+08:00', end_time: '2030-01-31T16:00:00+08:00', location: text.slice(0, 400), attendees: [] } }] }, { text: 'Done.' }] }, ...LINES],
  });
  const { server } = home;
  const { open: [confirm] } = await waiting(server, `ask ${'long '.repeat(10)}`);
  const size = async () => (await stat(join(home.data, 'fermata.db'))).size + (await stat(join(home.data, 'fermata.db-wal'))).size;
  const wrong = (key) => answer(server, confirm.interactionId, { decision: 'approve', bindingHash: '0'.repeat(64) }, { 'idempotency-key': key });
  const first = await wrong('k0');
  assert.ok(first.status >= 400 && first.text.length > 2 * KIB, `${first.status} ${first.text.length}`);
  const before = await size();
  const answers = [];
  for (let i = 1; i <= 60; i++) answers.push(await wrong(`k${i}`));
  assert.ok(answers.every(({ status, text: body }) => status === first.status && body === first.text));
  const again = await wrong('k0');
  assert.deepEqual([again.status, again.text], [first.status, first.text], 'byte for byte');
  const rows = sqlite(home, 'SELECT count(*), coalesce(sum(length(body)), 0) FROM idempotency').trim();
  assert.equal(rows, '61|0', `nothing of ${first.text.length} bytes is there 61 times (${await size() - before} bytes more)`);
});

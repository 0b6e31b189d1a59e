// SPDX-License-Identifier: Apache-2.0
//
// Databases of former releases open, whole: tests/golden/schema-N.db.gz is a database that was killed with a run
// under way, schema-N.json what its threads say. UPDATE=1 writes the latter for a new one.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { gunzipSync } from 'node:zlib';

import { bearer, run } from './home.mjs';
import { startServer } from './server.mjs';
import { accepted, endOf, factsOf, get, history, openEvents, runOf, user } from './talk.mjs';

const GOLDEN = new URL('../golden/', import.meta.url);
const LOCAL = 'a-key-for-the-golden-test'; // acts as local
const OPEN = 'open'; // ann's thread whose run was under way

const sqlite = (data, sql) => execFileSync('sqlite3', [join(data, 'fermata.db'), sql], { encoding: 'utf8' });

async function folder(t, name) {
  const data = await mkdtemp(join(tmpdir(), 'fermata-golden-'));
  t.after(() => rm(data, { recursive: true, force: true }));
  await writeFile(join(data, 'fermata.db'), gunzipSync(await readFile(new URL(`${name}.db.gz`, GOLDEN))), { mode: 0o600 });
  return data;
}

async function open(t, name) {
  const data = await folder(t, name);
  await writeFile(join(data, 'script.jsonl'), '{"turns":[{"text":"Here I am again."}]}\n');
  const { code, stdout, stderr } = await run(['key', 'add', '--user', 'ann', '--data', data]);
  assert.equal(code, 0, stderr);
  const server = await startServer({
    data, env: { FERMATA_MODEL_PROVIDER: 'scripted', FERMATA_SCRIPT: join(data, 'script.jsonl'), FERMATA_API_KEY: LOCAL },
  });
  t.after(() => server.stop({ keep: true }));
  return { server, keys: { local: bearer(LOCAL), ann: bearer(stdout.trim()) } };
}

// Everything that a user can read of the settled threads.
async function contents(t, server, keys) {
  const all = {};
  for (const [owner, headers] of Object.entries(keys)) {
    const { threads } = (await get(server, '/threads', headers)).json();
    for (const thread of threads.filter(({ threadId }) => threadId !== OPEN)) {
      const events = await openEvents(t, server, thread.threadId, { query: '?after=0', headers });
      const seen = [];
      for await (const event of events) {
        seen.push(event);
        if (event.seq === thread.seq) break;
      }
      events.close();
      all[`${owner}/${thread.threadId}`] = {
        thread, facts: factsOf(seen), history: await history(server, thread.threadId, '', headers),
      };
    }
  }
  return all;
}

const names = (await readdir(GOLDEN)).filter((file) => file.endsWith('.db.gz')).map((file) => file.slice(0, -6));

describe('a database of a former release', () => {
  assert.ok(names.length > 0);
  for (const name of names) {
    test(`${name}: says what it said, and goes on`, async (t) => {
      const { server, keys } = await open(t, name);
      const found = await contents(t, server, keys);
      const file = new URL(`${name}.json`, GOLDEN);
      if (process.env.UPDATE) await writeFile(file, `${JSON.stringify(found, null, 1)}\n`);
      assert.deepEqual(found, JSON.parse(await readFile(file, 'utf8')));

      const events = await openEvents(t, server, OPEN, { query: '?after=0', headers: keys.ann });
      await events.until(endOf('r1'));
      assert.equal((await runOf(server, OPEN, keys.ann)).status, 'completed');
      const next = await accepted(server, { threadId: 'plain', runId: 'new', messages: [user('still there?')] }, keys.local);
      assert.equal(next.created, false);
    });
  }
});

// Schema 3 gave the inputs of runs a table of their own.
test('schema-2: what runs were given is still theirs', async (t) => {
  const data = await folder(t, 'schema-2');
  const before = sqlite(data, "SELECT id, input, length(CAST(input AS BLOB)) FROM runs WHERE input <> '{}' ORDER BY id");
  assert.match(before, /Asia\/Shanghai/);
  const { code, stderr } = await run(['key', 'list', '--data', data]);
  assert.equal(code, 0, stderr);
  const after = sqlite(data, 'SELECT id, input, input_bytes FROM runs JOIN run_inputs ON run = id ORDER BY id');
  assert.equal(after, before);
  assert.equal(sqlite(data, 'SELECT count(*) FROM runs WHERE input_bytes > 0'), `${before.trim().split('\n').length}\n`);
  assert.equal(sqlite(data, 'PRAGMA integrity_check; PRAGMA foreign_key_check'), 'ok\n');
});

test('a cursor before the oldest fact that is kept is told so, and the stream goes on', async (t) => {
  const { server, keys } = await open(t, names.at(-1));
  const { seq } = (await get(server, '/threads/plain', keys.local)).json();
  await server.stop({ keep: true });
  sqlite(server.data, "DELETE FROM events WHERE seq <= 8 AND thread = (SELECT id FROM threads WHERE thread_id = 'plain')");
  const again = await startServer({ data: server.data, env: { FERMATA_API_KEY: LOCAL } });
  t.after(() => again.stop({ keep: true }));
  const first = async (query) => {
    const events = await openEvents(t, again, 'plain', { query, headers: keys.local });
    for await (const event of events) return event;
  };
  const reset = await first('?after=3');
  assert.deepEqual([reset.type, reset.seq, reset.data], ['reset', seq, { reason: 'trimmed', seq }]);
  assert.equal((await first('?after=8')).seq, 9, 'the oldest that is kept');
});

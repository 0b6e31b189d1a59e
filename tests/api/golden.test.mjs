// SPDX-License-Identifier: Apache-2.0
//
// Databases of former releases open, whole: tests/golden/schema-N.db.gz is a database that was killed with a run
// under way, schema-N.json what its threads say. tests/golden/make.mjs makes the one, UPDATE=1 writes the other, both
// with the program of that release.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { gunzipSync } from 'node:zlib';

import { execute, inbox, until } from './asking.mjs';
import { bearer, run } from './home.mjs';
import { settle } from './people.mjs';
import { Reader } from './readers.mjs';
import { startServer } from './server.mjs';
import { accepted, AGENT, endOf, factsOf, get, history, openEvents, user, waitFor } from './talk.mjs';
import { storedFacts } from '../tools/facts.mjs';

const GOLDEN = new URL('../golden/', import.meta.url);
const LOCAL = 'a-key-for-the-golden-test'; // acts as local
const SECRET = 'golden-databases-share-this-secret-which-is-none'; // seals and bindings were made with it
const OPEN = 'open'; // ann's thread whose run was under way

const sqlite = (data, sql) => execFileSync('sqlite3', [join(data, 'fermata.db'), sql], { encoding: 'utf8' });

async function folder(t, name) {
  const data = await mkdtemp(join(tmpdir(), 'fermata-golden-'));
  t.after(() => rm(data, { recursive: true, force: true }));
  await writeFile(join(data, 'secret'), SECRET, { mode: 0o600 });
  await writeFile(join(data, 'fermata.db'), gunzipSync(await readFile(new URL(`${name}.db.gz`, GOLDEN))), { mode: 0o600 });
  return data;
}

// One command on it, which must succeed: what it says.
async function command(data, ...args) {
  const { code, stdout, stderr } = await run([...args, '--data', data], { env: { FERMATA_SECRET_FILE: join(data, 'secret') } });
  assert.equal(code, 0, stderr);
  return stdout;
}

async function start(t, data) {
  const server = await startServer({
    data,
    env: {
      FERMATA_MODEL_PROVIDER: 'scripted', FERMATA_SCRIPT: join(data, 'script.jsonl'), FERMATA_API_KEY: LOCAL,
      FERMATA_SECRET_FILE: join(data, 'secret'),
    },
  });
  t.after(() => server.stop({ keep: true }));
  return server;
}

async function open(t, name) {
  const data = await folder(t, name);
  await writeFile(join(data, 'script.jsonl'), '{"turns":[{"text":"Here I am again."}]}\n');
  const key = (await command(data, 'key', 'add', '--user', 'ann')).trim();
  return { server: await start(t, data), keys: { local: bearer(LOCAL), ann: bearer(key) } };
}

// Everything that a user can read of the settled threads.
async function contents(t, server, keys) {
  const all = {};
  for (const [owner, headers] of Object.entries(keys)) {
    const { threads } = (await get(server, '/threads?limit=200', headers)).json();
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
      const { data } = (await events.until(endOf('r1'))).at(-1);
      assert.equal(data.outcome, 'completed');
      await until(server, OPEN, 'completed', keys.ann); // and what was queued behind it
      const next = await accepted(server, { threadId: 'plain', runId: 'new', messages: [user('still there?')] }, keys.local);
      assert.equal(next.created, false);
    });

    test(`${name}: is saved as it is, and brought up to date when it is restored`, async (t) => {
      const data = await folder(t, name), into = join(data, 'restored');
      const version = (at) => sqlite(at, 'PRAGMA user_version');
      const before = version(data);
      const objects = Number(sqlite(data, "SELECT count(*) FROM sqlite_schema WHERE name='blobs'")) && Number(sqlite(data, 'SELECT count(*) FROM blobs'));
      await command(data, 'backup', join(data, 'a.tar'), ...objects ? ['--partial'] : []); // objects are not kept here
      assert.equal(version(data), before);
      const { code, stderr } = await run(['restore', join(data, 'a.tar'), '--data', into]);
      assert.equal(code, 0, stderr);
      assert.ok(Number(version(into)) > Number(before));
      assert.equal(sqlite(into, 'SELECT count(*) FROM messages'), sqlite(data, 'SELECT count(*) FROM messages'));
    });
  }
});

// Everything that waits in a database is settled, each in its own way.
async function settleAll(server, keys) {
  const { interactions } = await inbox(server, '?limit=200', keys.local);
  assert.equal(interactions.length, 5, 'with the one that ann asks an approver for');
  const byThread = Object.fromEntries(interactions.filter(({ threadId }) => threadId).map((one) => [one.threadId, one]));
  assert.deepEqual(Object.keys(byThread).sort(), ['asking', 'confirming', 'planning', 'wondering']);
  assert.equal(byThread.asking.expiresAt, '2199-01-31T09:30:00.000Z');
  const { interactionId, binding } = byThread.confirming;
  await settle(server, interactionId, { decision: 'approve', binding }, keys.local);
  await settle(server, byThread.asking.interactionId, { choices: ['c1'] }, keys.local);
  await settle(server, byThread.planning.interactionId, { decision: 'reject' }, keys.local);
  await settle(server, byThread.wondering.interactionId, { decision: 'happened' }, keys.local);
  for (const threadId of ['asking', 'confirming', 'planning', 'wondering']) await until(server, threadId, 'completed', keys.local);
}

// Schema 3 gave the inputs of runs a table of their own.
test('schema-2: what runs were given is still theirs', async (t) => {
  const data = await folder(t, 'schema-2');
  const before = sqlite(data, "SELECT id, input, length(CAST(input AS BLOB)) FROM runs WHERE input <> '{}' ORDER BY id");
  assert.match(before, /Asia\/Shanghai/);
  await command(data, 'key', 'list');
  const after = sqlite(data, 'SELECT id, run_inputs.input, input_bytes FROM runs JOIN run_inputs ON run = id ORDER BY id');
  assert.equal(after, before);
  assert.equal(sqlite(data, 'SELECT count(*) FROM runs WHERE input_bytes > 0'), `${before.trim().split('\n').length}\n`);
  assert.equal(sqlite(data, 'PRAGMA integrity_check; PRAGMA foreign_key_check'), 'ok\n');
});

// Schema 5 gave messages and interactions their cards, and results their objects.
describe('schema-4', () => {
  test('every row is there after the migration, and the trail is sealed as it was', async (t) => {
    const data = await folder(t, 'schema-4');
    const tables = sqlite(data, "SELECT name FROM sqlite_schema WHERE type='table' AND name NOT LIKE 'sqlite_%' ORDER BY name").trim().split('\n');
    const called = { audit_heads: 'audit_chains' }; // what a later schema calls it
    const counts = (names = {}) => sqlite(data, tables.map((table) => `SELECT '${table}', count(*) FROM ${names[table] ?? table};`).join(' '));
    const before = counts();
    for (const table of ['outbox', 'queued_ids', 'snapshots', 'calendar_shares']) assert.match(before, new RegExp(`^${table}\\|[1-9]`, 'm'));
    await command(data, 'key', 'list');
    assert.equal(counts(called), before);
    assert.equal(sqlite(data, 'PRAGMA integrity_check; PRAGMA foreign_key_check'), 'ok\n');
    await command(data, 'check', '--audit');
  });

  test('what was open is still open, and is settled with the binding it had', async (t) => {
    const { server, keys } = await open(t, 'schema-4');
    await settleAll(server, keys);
    const calendar = await get(server, '/calendar.ics', keys.local);
    assert.equal(calendar.text.match(/BEGIN:VEVENT/g).length, 5, 'four from before, and the one approved now');
    const { grants } = (await get(server, '/grants', keys.local)).json();
    assert.deepEqual(grants.map(({ toolName }) => toolName).sort(), ['calendar_write', 'order']);
    assert.equal((await inbox(server, '', keys.ann)).interactions.length, 1);
  });
});

// Schema 12 has the facts of a commit in one row; those from before stay rows of their own.
describe('schema-11', () => {
  // All that is told of the threads: whole, and from cursors around the place where the form of the facts changes.
  async function told(t, server, keys, borders) {
    const all = await contents(t, server, keys);
    for (const [name, one] of Object.entries(all)) {
      const [owner, threadId] = name.split('/'), headers = keys[owner];
      one.pages = [];
      for (const after of [-1, 0, 1].map((step) => (borders[name] ?? 0) + step).filter((seq) => seq >= 0 && seq < one.thread.seq)) {
        const events = await openEvents(t, server, threadId, { query: `?after=${after}`, headers });
        one.pages.push(factsOf(await events.until(({ seq }) => seq === one.thread.seq)));
        events.close();
      }
      const reader = await Reader.open(t, server, { path: `${AGENT}/runs/${threadId}/events?format=ag-ui&protocolVersion=1.0`, headers });
      await waitFor(`the end of the leg of ${name}`, () => /"type":"RUN_(FINISHED|ERROR)"/.test(reader.text));
      reader.sent.destroy();
      one.agui = reader.text;
    }
    return all;
  }

  test('what is said behind old facts is told as if all were of one kind', async (t) => {
    const { server, keys } = await open(t, 'schema-11');
    const old = JSON.parse(await readFile(new URL('schema-11.json', GOLDEN), 'utf8'));
    await until(server, OPEN, 'completed', keys.ann);
    await settleAll(server, keys);
    await accepted(server, { threadId: 'plain', runId: 'new', messages: [user('still there?')] }, keys.local);
    await accepted(server, { threadId: 'born', runId: 'new', messages: [user('still there?')] }, keys.local);
    for (const threadId of ['plain', 'born']) await until(server, threadId, 'completed', keys.local);

    const borders = Object.fromEntries(Object.entries(old).map(([name, { thread }]) => [name, thread.seq]));
    const found = await told(t, server, keys, borders);
    for (const name of Object.keys(old)) assert.deepEqual(found[name].facts.slice(0, borders[name]), old[name].facts, name);
    for (const threadId of ['plain', 'asking', 'confirming', 'planning', 'wondering']) {
      const { thread, facts } = found[`local/${threadId}`];
      assert.ok(thread.seq > borders[`local/${threadId}`], 'it went on');
      assert.deepEqual(facts.map(({ seq }) => seq), Array.from({ length: thread.seq }, (_, i) => i + 1));
    }
    await server.stop({ keep: true });
    const tables = () => ['events', 'facts'].map((table) => Number(sqlite(server.data, `SELECT count(*) FROM ${table}`)) > 0);
    assert.deepEqual(tables(), [true, true]);
    assert.equal(sqlite(server.data, "SELECT count(*) FROM events WHERE thread=(SELECT id FROM threads WHERE thread_id='born')"), '0\n');

    const text = (value) => `'${value.replaceAll("'", "''")}'`;
    const stored = storedFacts(server.data).map((fact) =>
      `INSERT INTO events VALUES (${fact.thread}, ${fact.seq}, ${text(fact.type)}, ${text(fact.run_id)}, ${fact.at}, ${text(fact.data)});\n`);
    execute({ data: server.data }, `BEGIN; DELETE FROM events; DELETE FROM facts;\n${stored.join('')}COMMIT;\n`);
    assert.deepEqual(tables(), [true, false]);
    assert.deepEqual(await told(t, await start(t, server.data), keys, borders), found);
  });
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

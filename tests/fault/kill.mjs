// SPDX-License-Identifier: Apache-2.0
//
// One scenario, and the server killed somewhere in it. tests/tools/fault_preload.c counts the calls that leave
// something behind and kills the process before the N-th; then the server is started again, must finish what was
// open, and the oracle compares the database with what clients had been told.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { bearer, call } from '../api/home.mjs';
import { startServer, within } from '../api/server.mjs';
import { AGENT, cancel, endOf, get, openEvents, postRun, runOf, user, waitFor } from '../api/talk.mjs';
import { checkDatabase, checkTold, readDatabase, Told } from './oracle.mjs';

// A build without a sanitizer: they cannot be loaded behind anything.
export const build = process.env.FERMATA_KILL_BUILD ?? new URL('../../build/clang', import.meta.url).pathname;
export const program = join(build, 'fermata');
const preload = join(build, 'tests/fault_preload.so');

const MOVE_ON_MS_MAX = 20_000; // after a restart
const EXIT_MS_MAX = 10_000;
const FIRST_KEY = 'a-first-key-that-is-only-used-by-the-tests';
const headers = bearer(FIRST_KEY);
const isIdle = ({ status, queue }) => !['queued', 'running', 'waiting', 'cancelling'].includes(status) && queue.length === 0;

const SCRIPT = [
  { match: 'slow', turns: [{ text: 'word '.repeat(10_000), gap_ms: 5 }] }, // never to its end: it is stopped
  { turns: [{ reasoning: 'Hm.', text: 'A short answer, 一二三。', chunk: 8 }] },
];
const SCRIPT_AFTER = [{ turns: [{ text: 'Answered after the restart.' }] }];
const lines = (script) => script.map((line) => `${JSON.stringify(line)}\n`).join('');

// A data folder and two scripts. `t` removes it.
export async function makeFolder(t) {
  const folder = await mkdtemp(join(tmpdir(), 'fermata-kill-'));
  t.after(() => rm(folder, { recursive: true, force: true }));
  await writeFile(join(folder, 'script'), lines(SCRIPT));
  await writeFile(join(folder, 'script-after'), lines(SCRIPT_AFTER));
  return folder;
}

function start(folder, script, env = {}, before = []) {
  return startServer({ program, before, data: join(folder, 'data'), env: {
    FERMATA_MODEL_PROVIDER: 'scripted', FERMATA_SCRIPT: join(folder, script), FERMATA_API_KEY: FIRST_KEY, ...env,
  } });
}

// ---- the scenario ----

const input = (threadId, runId, text) => ({ threadId, runId, messages: [user(text, `${runId}-u`)] });
const INPUTS = {
  r1: input('t1', 'r1', 'hello'),
  r2: input('t2', 'r2', 'slow'),
  r3: input('t3', 'r3', 'slow'),
  r4: input('t4', 'r4', 'hello'),
  r5: input('t4', 'r5', 'queued behind r4'),
};

async function follow(t, server, told, threadId) {
  const events = await openEvents(t, server, threadId, { query: '?after=0', headers });
  return {
    async until(predicate) {
      try {
        return await events.until((event) => { told.saw(event); return predicate(event); });
      } finally {
        for (const event of events.all) told.saw(event); // also those behind it
      }
    },
  };
}

async function say(server, told, runId) {
  const answer = await postRun(server, INPUTS[runId], headers);
  assert.equal(answer.status, 202, answer.text);
  told.answers.set(runId, { threadId: INPUTS[runId].threadId, body: answer.text });
}

function addKey(folder) {
  const env = { FERMATA_DATA: join(folder, 'data') };
  return new Promise((done, failed) => {
    execFile(program, ['key', 'add', '--user', 'ann'], { env, timeout: EXIT_MS_MAX }, (error) => (error ? failed(error) : done()));
  });
}

const patchTitle = (server, threadId, title) => call(server, 'PATCH', `${AGENT}/threads/${threadId}`,
  { headers: { 'content-type': 'application/json', ...headers }, body: JSON.stringify({ title }) });

// A run to its end, one cancelled, one deleted, two in a queue, a new title, a key, a stop.
async function scenario(t, folder, server, told) {
  assert.ok(existsSync(join(folder, 'data/fermata.db-wal')), 'who listens has a write-ahead log');
  const t1 = await follow(t, server, told, 't1');
  await say(server, told, 'r1');
  await t1.until(endOf('r1'));

  const t2 = await follow(t, server, told, 't2');
  await say(server, told, 'r2');
  await t2.until(({ type }) => type === 'text.delta');
  assert.equal((await cancel(server, 't2', { runId: 'r2' }, headers)).status, 202);
  told.cancelled.set('r2', 't2');
  await t2.until(endOf('r2'));

  assert.equal((await patchTitle(server, 't1', 'Renamed')).status, 200);
  told.titles.set('t1', 'Renamed');

  await say(server, told, 'r3');
  told.deleting.add('t3');
  assert.equal((await call(server, 'DELETE', `${AGENT}/threads/t3`, { headers })).status, 204);
  told.deleted.add('t3');

  const t4 = await follow(t, server, told, 't4');
  await Promise.all([say(server, told, 'r4'), say(server, told, 'r5')]);
  await t4.until(endOf('r5'));

  await addKey(folder);
  told.keys++;
  server.proc.kill('SIGTERM');
}

// Runs it as far as it gets: {told, exit}. Any failure but the server's own end is a failure of the test.
export async function attempt(t, folder, env = {}, before = []) {
  const told = new Told();
  let server;
  try {
    server = await start(folder, 'script', env, before);
  } catch (error) {
    const died = /ended with (\w+) before it listened/.exec(error.message);
    if (!died) throw error;
    return { told, exit: { code: Number(died[1]) || null, signal: Number.isNaN(Number(died[1])) ? died[1] : null } };
  }
  let failure;
  await scenario(t, folder, server, told).catch((error) => { failure = error; });
  let exit;
  try {
    exit = await within(EXIT_MS_MAX, 'the end of the server', server.exited);
  } catch {
    server.proc.kill('SIGKILL');
    await server.exited;
    throw failure ?? new Error('the server did not end');
  }
  if (failure && (exit.code === 0 || failure instanceof assert.AssertionError)) throw failure; // a wrong answer
  return { told, exit, stderr: server.stderr() };
}

// ---- after it ----

// Starts the server again without a fault: everything moves on, and everything that was told is true.
export async function recover(t, folder, told) {
  const server = await start(folder, 'script-after');
  const since = Date.now();
  try {
    const { threads } = (await get(server, '/threads', headers)).json();
    for (const { threadId } of threads)
      await waitFor(`the runs of ${threadId} end`, async () => isIdle(await runOf(server, threadId, headers)),
        MOVE_ON_MS_MAX - (Date.now() - since));
    for (const [runId, { body }] of told.answers) {
      if (told.deleting.has(INPUTS[runId].threadId)) continue;
      assert.equal((await postRun(server, INPUTS[runId], headers)).text, body, 'the same request, the same answer');
    }
    for (const { threadId, seq } of (await get(server, '/threads', headers)).json().threads) {
      const events = await openEvents(t, server, threadId, { query: '?after=0', headers });
      await events.until((event) => event.seq === seq);
      for (const event of events.all) told.saw(event);
      events.close();
    }
  } finally {
    await server.stop({ keep: true });
  }
  judge(folder, told);
}

export function judge(folder, told) {
  const db = readDatabase(join(folder, 'data'));
  checkDatabase(db);
  checkTold(db, told);
  assert.ok(db.runs.every(({ status }) => status >= 4), 'no run is open');
  return db;
}

// ---- calls ----

// A log of fault_preload: [{n, name, thread, group, fatal}]. A group is the call with everybody who called it.
export async function readLog(path) {
  return (await readFile(path, 'utf8')).split('\n').filter(Boolean).map((line) => {
    const [n, thread, name, ...stack] = line.split(' ');
    return { n: Number(n.replace('!', '')), name, thread, group: [name, ...stack].join(' '), fatal: n.startsWith('!') };
  });
}

export const watched = (folder, env) => ({ LD_PRELOAD: preload, FAULT_LOG: join(folder, 'calls'), ...env });

// One kill in a folder of its own, at the N-th call or at the first of a group: what was killed, or null if the
// scenario ended without it.
export async function killAt(place) {
  const cleanup = [];
  const t = { after: (action) => cleanup.push(action) };
  try {
    const folder = await makeFolder(t);
    const { told, exit } = await attempt(t, folder, watched(folder, typeof place === 'number' ? { FAULT_KILL: String(place) } : { FAULT_KIND: place }));
    const died = exit.signal === 'SIGKILL';
    assert.ok(died || exit.code === 0, `ended with ${exit.signal ?? exit.code}`);
    await recover(t, folder, told);
    const calls = await readLog(join(folder, 'calls'));
    return died ? { ...calls.find(({ fatal }) => fatal), told: told.count } : null;
  } catch (error) {
    error.message = `killed at call ${place}: ${error.message}`;
    throw error;
  } finally {
    for (const action of cleanup.reverse()) await action();
  }
}

// SPDX-License-Identifier: Apache-2.0
//
// The server is killed before calls of a scenario that leave something behind: at least once at each kind of call (the
// call with its whole stack of callers) that an undisturbed run makes, and at BY_CHANCE places by chance. With
// FERMATA_KILLS at every single call, and that many by chance.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';

import { chance, seed } from './chance.mjs';
import { attempt, judge, killAt, makeFolder, readLog, watched } from './kill.mjs';
import { checkDatabase, checkTold } from './oracle.mjs';

const KILLS = Number(process.env.FERMATA_KILLS ?? 0);
const BY_CHANCE = KILLS || 30;
const AT_ONCE = 3;
const CALLS_MIN = 100; // of the scenario; fewer means that nobody counted
const TRIES = 10; // for a kind of call that not every run makes: threads take turns in another order each time
const TRIES_MAX = 100; // for one that each does

// The same scenario without a fault.
async function undisturbed(t) {
  const folder = await makeFolder(t);
  const { told, exit } = await attempt(t, folder, watched(folder, {}));
  assert.deepEqual(exit, { code: 0, signal: null });
  judge(folder, told);
  const calls = await readLog(join(folder, 'calls'));
  assert.ok(calls.length > CALLS_MIN, `${calls.length} calls were counted`);
  return calls;
}

function tally(calls) {
  const names = new Map();
  for (const { name } of calls) names.set(name, (names.get(name) ?? 0) + 1);
  return [...names].map(([name, count]) => `${name} ${count}`).join(', ');
}

// Kills at each of `places`, a few at once. `done` is told what was killed.
async function killAll(places, done) {
  const queue = [...places];
  const worker = async () => { for (let n; (n = queue.shift()) !== undefined;) done(await killAt(n)); };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
}

test('killed before any call that leaves something behind, nothing is lost', async (t) => {
  const start = Date.now();
  t.diagnostic(`FERMATA_SEED=${seed}`);
  const looks = [await undisturbed(t), await undisturbed(t), await undisturbed(t)], [calls] = looks;
  const groups = new Set(calls.map(({ group }) => group));
  const sure = [...groups].filter((group) => looks.every((look) => look.some((call) => call.group === group)));
  t.diagnostic(`undisturbed: ${calls.length} calls of ${groups.size} kinds: ${tally(calls)}`);

  const killed = new Map(); // group -> how often
  let kills = 0, acknowledged = 0;
  const done = (victim) => {
    if (!victim) return;
    kills++;
    acknowledged += victim.told;
    killed.set(victim.group, (killed.get(victim.group) ?? 0) + 1);
  };
  const random = chance();
  if (KILLS) await killAll(calls.map(({ n }) => n), done);
  await killAll(Array.from({ length: BY_CHANCE }, () => 1 + random(calls.length)), done);
  const missing = (of) => [...of].filter((group) => !killed.has(group));
  for (let tries = 0; tries < TRIES_MAX && missing(tries < TRIES ? groups : sure).length; tries++) await killAll(missing(tries < TRIES ? groups : sure), done);
  const missed = missing(groups);
  t.diagnostic(`killed ${kills} times, ${groups.size - missed.length} of ${groups.size} kinds and `
    + `${killed.size - groups.size + missed.length} kinds the first run did not have; ${acknowledged} acknowledged changes, `
    + `all of them kept; ${Date.now() - start} ms`);
  assert.deepEqual(missing(sure), [], 'every kind of call that each run makes was killed');
});

// Is the judge awake? Each of these must be found.
test('the oracle finds what is wrong', async (t) => {
  const folder = await makeFolder(t);
  const { told } = await attempt(t, folder);
  const db = judge(folder, told);
  const wrongs = {
    'a lost fact': (copy) => copy.events.splice(2, 1),
    'a lost last fact': (copy) => copy.events.splice(copy.events.findLastIndex(({ thread }) => thread === copy.threads[0].id), 1),
    'a fact with other data': (copy) => { copy.events[1].data = '{}'; },
    'a wrong last_seq': (copy) => { copy.threads[0].last_seq++; },
    'a lost thread': (copy) => copy.threads.shift(),
    'a lost run': (copy) => copy.runs.shift(),
    'a lost answer': (copy) => copy.accepted.shift(),
    'a lost message': (copy) => copy.messages.splice(copy.messages.findIndex(({ role }) => role === 'assistant'), 1),
    'a lost key': (copy) => copy.keys.shift(),
    'a lost title': (copy) => { copy.threads.find(({ thread_id: id }) => id === 't1').title = 'before'; },
    'a snapshot of an ended run': (copy) => copy.snapshots.push({ run: copy.runs[0].id, version: 1 }),
    'a deleted thread': (copy) => copy.threads.push({ ...copy.threads[0], id: 99, thread_id: 't3', last_seq: 0 }),
    'a run that ended twice': (copy) => {
      const end = copy.events.findLast(({ thread }) => thread === copy.threads[0].id);
      copy.events.splice(copy.events.indexOf(end) + 1, 0, { ...end, seq: end.seq + 1 });
      copy.threads[0].last_seq++;
    },
  };
  for (const [what, damage] of Object.entries(wrongs)) {
    const copy = structuredClone(db);
    damage(copy);
    assert.throws(() => { checkDatabase(copy); checkTold(copy, told); }, what);
  }
});

// The kernel's view: is there a kind of call that fault_preload does not stand in front of?
test('no call that leaves something behind goes unseen', async (t) => {
  const changing = 'write,pwrite64,writev,pwritev,pwritev2,sendto,sendmsg,sendmmsg,fsync,fdatasync,sync_file_range,'
    + 'ftruncate,truncate,fallocate,rename,renameat,renameat2,link,linkat,symlink,symlinkat,unlink,unlinkat,mkdir,mkdirat,'
    + 'rmdir,chmod,fchmod,fchmodat,chown,fchown,fchownat,utimensat,copy_file_range,sendfile,splice,bind';
  try {
    execFileSync('strace', ['-o', '/dev/null', 'true'], { stdio: 'ignore' });
  } catch {
    t.skip('strace cannot trace here');
    return;
  }
  const folder = await makeFolder(t);
  const trace = join(folder, 'strace');
  const { exit } = await attempt(t, folder, {}, ['strace', '-D', '-f', '-qq', '-o', trace, '-e', `trace=${changing}`]);
  assert.equal(exit.code, 0);
  const traced = new Set([...(await readFile(trace, 'utf8')).matchAll(/^\d+ +(\w+)\(/gm)].map(([, name]) => name));
  const libc = { ftruncate: 'ftruncate64', utimensat: 'futimens' };
  const seen = new Set((await undisturbed(t)).map(({ name }) => name));
  for (const name of traced) assert.ok(seen.has(name) || seen.has(libc[name]), `${name} was not seen`);
});

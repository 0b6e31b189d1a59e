// SPDX-License-Identifier: Apache-2.0
//
// node tests/tools/pool.mjs JOBS <PLAN: runs the jobs of a plan, JOBS at a time, so that no processor waits for a suite to end.
//
// A line of the plan is a job, five words or more: STAGE KIND AFTER KEY COMMAND...
//   STAGE    jobs of one stage are counted together; the stage has a line when its last job has ended, its output, job by job
//            in the order of the plan, in build/log/STAGE.log, and the end of that is shown if something failed
//   KIND     how it is counted: gate, one test that passes with status 0; tap and cmocka, by the totals of such a runner;
//            plain, by a line `N passed, N failed`. What fails, or runs nothing, without saying so counts as one failure
//   AFTER    stages, with commas between, that come before: if one of them fails this is left out, unless the name ends
//            with `?`; `-`: none; `last`: when everything else has ended, one at a time
//   KEY      of the seconds it took, in build/times/pool.json: what is long begins first, and before that what others wait
//            for. A file that nobody has timed is guessed by its size; `KEY~N` is a guess of N seconds
//
// Goes on after a failure; what failed is named once more at the end. The last line is `N passed, N failed`; the exit status is
// 1 if any failed.

import { spawn } from 'node:child_process';
import { closeSync, mkdirSync, openSync, readFileSync, rmSync, statSync, writeFileSync, writeSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = join(dirname(fileURLToPath(import.meta.url)), '../..');
const LOGS = 'build/log', TIMES = 'build/times/pool.json';
const SECONDS_MAX = 900;
const BYTES_PER_SECOND = 1000; // of a test file that nobody has timed
const GUESS_SECONDS = 5; // of anything else
const END_LINES = 60;
const REASON_LINES = 120;
const SHELL = `timeout --foreground --kill-after=10 ${SECONDS_MAX} sh -c "$1"; status=$?; times >&3; exit $status`;

process.chdir(ROOT);
mkdirSync(LOGS, { recursive: true });
mkdirSync(dirname(TIMES), { recursive: true });

// ---- the plan ----

let times = {};
try {
  times = JSON.parse(readFileSync(TIMES, 'utf8'));
} catch { /* the first time */ }

function guess(key) {
  const [name, said] = key.split('~');
  if (times[name] !== undefined) return times[name];
  if (said) return Number(said);
  const size = statSync(name, { throwIfNoEntry: false })?.size;
  return size === undefined ? GUESS_SECONDS : size / BYTES_PER_SECOND;
}

const stages = new Map();
for (const line of readFileSync(0, 'utf8').split('\n').filter(Boolean)) {
  const [, name, kind, after, key, command] = /^(\S+) +(\S+) +(\S+) +(\S+) +(.*)$/.exec(line);
  if (!stages.has(name)) {
    const names = after === '-' || after === 'last' ? [] : after.split(',');
    stages.set(name, { name, kind, last: after === 'last', after: names.map((one) => ({ name: one.replace('?', ''), any: one.endsWith('?') })), jobs: [], state: 'waits' });
  }
  const stage = stages.get(name);
  stage.jobs.push({ stage, key: key.split('~')[0], command, seconds: guess(key), log: join(LOGS, `.${name}-${stage.jobs.length}`) });
}
for (const { name, after } of stages.values()) {
  for (const one of after) if (!stages.has(one.name)) throw new Error(`${name} comes after ${one.name}, which is not in the plan`);
}

// How long all takes that waits for a stage: its longest job, and what waits for that.
function tail(name) {
  let longest = 0;
  for (const stage of stages.values()) {
    if (stage.after.some((one) => one.name === name)) longest = Math.max(longest, Math.max(...stage.jobs.map(({ seconds }) => seconds)) + tail(stage.name));
  }
  return longest;
}
for (const stage of stages.values()) for (const job of stage.jobs) job.worth = job.seconds + tail(stage.name);

// ---- a job ----

const running = new Set();

function run(job) {
  return new Promise((resolve) => {
    const out = openSync(job.log, 'w'), begun = Date.now();
    const child = spawn('sh', ['-c', SHELL, 'job', job.command], { stdio: ['ignore', out, out, 'pipe'] });
    closeSync(out);
    running.add(child);
    let told = '';
    child.stdio[3].setEncoding('utf8').on('data', (text) => { told += text; });
    child.on('error', (error) => { writeFileSync(job.log, String(error)); });
    child.on('close', (code) => {
      running.delete(child);
      job.status = code ?? 1;
      job.took = (Date.now() - begun) / 1000;
      job.worked = [...(told.split('\n')[1] ?? '').matchAll(/(\d+)m([\d.]+)s/g)].reduce((sum, [, m, s]) => sum + m * 60 + Number(s), 0); // of its children
      if (job.status === 0) times[job.key] = Math.round(job.took * 10) / 10;
      resolve();
    });
  });
}
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
  process.on(signal, () => {
    for (const child of running) child.kill(signal);
    process.exit(1);
  });
}

// ---- counting ----

const total = (text, pattern) => [...text.matchAll(pattern)].reduce((sum, [, n]) => sum + Number(n), 0);
const COUNTED = {
  gate: (text, status) => [status === 0 ? 1 : 0, status === 0 ? 0 : 1],
  tap(text) {
    const end = text.split('\n').slice(-12).join('\n'); // what a test printed stands before
    return [total(end, /^# pass (\d+)/gm), total(end, /^# (?:fail|cancelled) (\d+)/gm)];
  },
  cmocka: (text) => [total(text, /^\[ {2}PASSED {2}\] (\d+)/gm), total(text, /^\[ {2}FAILED {2}\] (\d+)/gm)],
  plain(text) {
    const [, good, bad] = [...text.matchAll(/^(\d+) passed, (\d+) failed$/gm)].at(-1) ?? [0, 0, 1];
    return [Number(good), Number(bad)];
  },
};

// What failed and why: the tests of a log by name, and of TAP the report under each, without its stack.
function reasons(text) {
  const lines = [];
  let inside = 0, count = 0;
  for (const line of text.split('\n')) {
    if (/^ *not ok /.test(line)) {
      lines.push(line);
      [inside, count] = [/^ */.exec(line)[0].length + 2, 0];
    } else if (/^\[ {2}FAILED {2}\] [a-z_]|ended early/.test(line)) lines.push(line);
    else if (inside && (/^ *(\.\.\.|stack:)/.test(line) || ++count > 30)) inside = 0;
    else if (inside) lines.push(line);
  }
  return lines.slice(0, REASON_LINES);
}

const indented = (lines, mark) => lines.map((line) => `    ${mark}${line}\n`).join('');
const failures = [];
let passed = 0, failed = 0;

function finish(stage) {
  const log = join(LOGS, `${stage.name}.log`), out = openSync(log, 'w');
  let good = 0, bad = 0, why = [], ends = [];
  for (const job of stage.jobs) {
    let text = readFileSync(job.log, 'utf8');
    let [ok, not] = COUNTED[stage.kind](text, job.status);
    if (not === 0 && (job.status !== 0 || ok === 0)) {
      text += `\n${job.key} ended early, with status ${job.status}, after ${ok} tests\n`;
      not = 1;
    }
    good += ok;
    bad += not;
    if (not) {
      why = [...why, ...reasons(text)];
      ends = [...ends, ...text.trimEnd().split('\n').slice(-END_LINES)];
    }
    writeSync(out, text);
    rmSync(job.log, { force: true });
  }
  closeSync(out);
  const sum = (of) => `${Math.round(stage.jobs.reduce((all, job) => all + job[of], 0))}`.padStart(4);
  const counts = `${`${good}`.padStart(5)} passed ${bad ? `${`${bad}`.padStart(4)} failed` : ' '.repeat(11)}`;
  process.stdout.write(`${stage.name.padEnd(24)}${counts} ${sum('took')} s, of processors ${sum('worked')} s${bad ? `   ${log}` : ''}\n`);
  if (bad) {
    process.stdout.write(indented(ends, '| '));
    failures.push(`failed: ${stage.name} (${log})\n${indented(why.slice(0, REASON_LINES), '')}`);
  }
  passed += good;
  failed += bad;
  stage.state = bad ? 'failed' : 'passed';
}

// ---- the pool ----

const ended = ({ state }) => state !== 'waits';
const ready = (stage) => stage.after.every(({ name, any }) => stages.get(name).state === 'passed' || (any && ended(stages.get(name))));
const lost = (stage) => stage.after.some(({ name, any }) => !any && ['failed', 'left out'].includes(stages.get(name).state));

// Stages that cannot run any more are left out, and so are those that wait for them.
function leaveOut() {
  for (const stage of stages.values()) {
    if (ended(stage) || !lost(stage)) continue;
    process.stdout.write(`${stage.name.padEnd(24)}left out\n`);
    stage.state = 'left out';
    leaveOut();
  }
}

function next() {
  const waiting = [...stages.values()].filter((stage) => !ended(stage)).flatMap(({ jobs }) => jobs);
  const normal = waiting.filter(({ stage }) => !stage.last);
  if (normal.length === 0 && running.size) return undefined;
  const able = (normal.length ? normal : waiting).filter((job) => !job.begun && ready(job.stage));
  return able.sort((a, b) => b.worth - a.worth)[0];
}

// Processor seconds of the machine: [busy, all].
function machine() {
  const ticks = readFileSync('/proc/stat', 'utf8').split('\n')[0].split(/ +/).slice(1, 9).map(Number);
  return [ticks.reduce((a, b) => a + b) - ticks[3] - ticks[4], ticks.reduce((a, b) => a + b)];
}

const begun = Date.now(), before = machine();
await new Promise((resolve) => {
  const fill = () => {
    while (running.size < Number(process.argv[2])) {
      const job = next();
      if (!job) break;
      job.begun = true;
      run(job).then(() => {
        if (job.stage.jobs.every(({ took }) => took !== undefined)) finish(job.stage);
        leaveOut();
        fill();
      });
      if (job.stage.last) break;
    }
    if (running.size === 0) resolve();
  };
  fill();
});

writeFileSync(TIMES, `${JSON.stringify(Object.fromEntries(Object.entries(times).sort((a, b) => b[1] - a[1])), null, 1)}\n`);
const [busy, all] = machine().map((now, i) => now - before[i]);
process.stdout.write(`${failures.join('')}${Math.round((Date.now() - begun) / 1000)} s, processors busy ${Math.round((100 * busy) / all)} %\n`);
process.stdout.write(`${passed} passed, ${failed} failed\n`);
process.exitCode = failed ? 1 : 0;

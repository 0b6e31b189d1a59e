// SPDX-License-Identifier: Apache-2.0
//
// What one cycle of a conversation costs the store, with one client and nothing else to do: jobs handed over to its threads,
// commits, statements, and what was brought to disk. The counts are those of /metrics; fsyncs are counted by strace, and told
// apart by file: those of the database, and all others (objects and their folders).
//
// A cycle counts until its last event and all that follows behind it: until no run is worked on, no payload waits, and the counts
// stay as they are. Timers of the server may add to a cycle now and then, so the middle of several cycles counts.
//
// One more kind of cycle: a row in `KINDS`, with a line of the model's script.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { assertRun, runWhole } from './agui.mjs';
import { call } from './home.mjs';
import { startServer } from './server.mjs';
import { user } from './talk.mjs';

const QUIET_MS = 20; // between two looks
const QUIET_LOOKS = 3; // that find the same
const QUIET_MS_MAX = 30_000;

const times = { start_time: '2030-01-01T08:00:00Z', end_time: '2030-01-01T09:00:00Z' };
const script = [
  { match: '^pause', turns: [{ calls: [{ name: 'ask_user', args: { question: 'Which room?', choices: ['Blue', 'Green'] } }] }, { text: 'Done.' }] },
  { match: '^approve', turns: [{ calls: [{ name: 'calendar_write', args: { title: 'Review', ...times } }] }, { text: 'Done.' }] },
  { match: '^tool', turns: [{ calls: [{ name: 'calendar_read', args: { from: '2029-01-01T00:00:00Z', to: '2029-01-02T00:00:00Z' } }] }, { text: 'Done.' }] },
  { turns: [{ text: 'Done.' }] },
];

// A cycle is {ahead, counted}: what is done before counting, if anything, and what is counted. Both get a talk on a new thread.
export const KINDS = {
  run: { title: 'an AG-UI run on a new thread', counted: (talk) => talk.say('run') },
  pause: { title: 'a question and its answer, AG-UI', counted: async (talk) => { await talk.say('pause', 'interrupt'); await talk.resume('Blue'); } },
  approve: { title: 'approve a calendar write, until the end', ahead: (talk) => talk.say('approve', 'interrupt'), counted: (talk) => talk.resume({ approved: true }) },
  tool: { title: 'a run with a call that needs nobody', counted: (talk) => talk.say('tool') },
};

// ---- the client ----

// A thread, as a stock client has it: its messages, and what it was asked.
class Talk {
  #messages = [];
  #legs = 0;
  #asked = null;

  constructor(t, server, threadId) {
    Object.assign(this, { t, server, threadId });
  }

  async #post(more, outcome) {
    const ids = { threadId: this.threadId, runId: `${this.threadId}-${this.#legs++}` };
    const run = await runWhole(this.t, this.server, {
      ...ids, protocolVersion: '1.0', state: {}, messages: this.#messages, tools: [], context: [], forwardedProps: {}, ...more,
    });
    const last = assertRun(run, ids);
    assert.equal(last.outcome?.type, outcome, JSON.stringify(last));
    this.#asked = last.outcome.interrupts?.[0].id;
    this.#keep(run.events);
  }

  #keep(events) {
    for (const { type, parentMessageId, toolCallId, toolCallName } of events) {
      if (type !== 'TOOL_CALL_START') continue;
      const args = events.filter((event) => event.type === 'TOOL_CALL_ARGS' && event.toolCallId === toolCallId).map(({ delta }) => delta).join('');
      const toolCalls = [{ id: toolCallId, type: 'function', function: { name: toolCallName, arguments: args } }];
      this.#messages.push({ id: parentMessageId, role: 'assistant', toolCalls });
    }
  }

  say(text, outcome = 'success') {
    this.#messages.push(user(text, `${this.threadId}-m`));
    return this.#post({}, outcome);
  }

  resume(payload) {
    return this.#post({ resume: [{ interruptId: this.#asked, status: 'resolved', payload }] }, 'success');
  }
}

// ---- counting ----

function canTrace() {
  try {
    execFileSync('strace', ['-o', '/dev/null', 'true'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

async function look({ server, trace }) {
  const { text } = await call(server, 'GET', '/metrics');
  const of = (name) => Number(text.split('\n').find((line) => line.startsWith(`${name} `))?.slice(name.length) ?? assert.fail(name));
  const synced = trace ? [...(await readFile(trace, 'utf8')).matchAll(/\b(?:fsync|fdatasync)\(\d+<(.*?)>/g)].map(([, file]) => file) : [];
  const database = synced.filter((file) => /\/fermata\.db[^/]*$/.test(file)).length;
  return {
    writes: of('fermata_store_jobs_total'),
    reads: of('fermata_store_reads_total'),
    commits: of('fermata_store_commits_total'),
    statements: of('fermata_store_statements_total{job="write"}') + of('fermata_store_statements_total{job="read"}'),
    fsyncs: database,
    otherFsyncs: synced.length - database,
    busy: of('fermata_runs_active') + of('fermata_blobs_waiting'),
  };
}

async function quiet(it) {
  const until = Date.now() + QUIET_MS_MAX;
  let last = null, same = 0;
  while (same < QUIET_LOOKS) {
    assert.ok(Date.now() < until, 'the server does not come to rest');
    const now = await look(it);
    same = !now.busy && JSON.stringify(now) === JSON.stringify(last) ? same + 1 : 0;
    last = now;
    await new Promise((resolve) => { setTimeout(resolve, QUIET_MS); });
  }
  return last;
}

const difference = (after, before) => Object.fromEntries(Object.entries(after).map(([name, value]) => [name, value - before[name]]));
const middle = (list) => list.toSorted((a, b) => a - b)[list.length >> 1];
const middles = (counts) => Object.fromEntries(Object.keys(counts[0]).filter((name) => name !== 'busy')
  .map((name) => [name, middle(counts.map((count) => count[name]))]));

async function countKind(t, it, name, cycles) {
  const { ahead, counted } = KINDS[name];
  const atEnd = [], settled = [];
  for (let i = 0; i <= cycles; i++) {
    const talk = new Talk(t, it.server, `${name}-${i}`);
    await ahead?.(talk);
    const before = await quiet(it);
    await counted(talk);
    const end = await look(it);
    const after = await quiet(it);
    if (i === 0) continue; // the first one opens connections and prepares statements
    atEnd.push(difference(end, before));
    settled.push(difference(after, before));
  }
  return { ...middles(settled), atEnd: middles(atEnd) };
}

// {kind: {writes, reads, commits, statements, fsyncs, otherFsyncs, atEnd: the same when the last event had come}}; `traced`: whether
// fsyncs were counted at all. `t` is the test, or anything with after().
export async function countCycles(t, { cycles = 5 } = {}) {
  const folder = await mkdtemp(join(tmpdir(), 'fermata-test-'));
  const data = join(folder, 'data');
  const trace = canTrace() ? join(folder, 'trace') : null;
  await mkdir(data, { mode: 0o700 });
  await writeFile(join(folder, 'script.jsonl'), script.map((line) => `${JSON.stringify(line)}\n`).join(''));
  let server;
  t.after(async () => {
    try {
      await server?.stop({ keep: true });
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  });
  server = await startServer({
    data,
    before: trace ? ['strace', '-D', '-f', '-qq', '--seccomp-bpf', '-y', '-e', 'trace=fsync,fdatasync', '-o', trace] : [],
    env: {
      FERMATA_MODEL_PROVIDER: 'scripted', FERMATA_SCRIPT: join(folder, 'script.jsonl'),
      ASAN_OPTIONS: `${process.env.ASAN_OPTIONS ?? ''}:detect_leaks=0`, // it cannot look for them while it is traced
    },
  });
  const counts = { traced: trace !== null };
  for (const name of Object.keys(KINDS)) counts[name] = await countKind(t, { server, trace }, name, cycles);
  return counts;
}

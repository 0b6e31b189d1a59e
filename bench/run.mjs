#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
//
// The benchmark run: starts our servers and their peers, one at a time, on ports of their own, puts
// the same load on each, and prints a table. The budgets stand in the rows below; README.md says
// how to read them.
//
//     [FERMATA_BUILD=build/bench] bench/run [--quick] [--open=N] [row...]
//
// Ours and the peer take turns, round by round, and the median counts, so that a busy moment of the
// machine does not decide a ratio. Exit 0: all answers were right and every budget was kept.

import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';

import {
  Skip, bin, column, compare, inTurns, load, median, micros, millis, perSecond, quick, root, thousands, untilReady, withServer,
} from './kit.mjs';
import { dialectsRow } from './dialects.mjs';
import { chunkRow, streamsMemoryRow, streamsRow } from './models.mjs';
import * as open from './open.mjs';
import * as page from './page.mjs';
import { fewTrips, roundTrips } from './round-trips.mjs';
import { twoUsersRows } from './two-users.mjs';
import { search } from './search.mjs';

const wanted = process.argv.slice(2).filter((arg) => !arg.startsWith('--'));

const WARM = { conns: 4, seconds: 1, least: quick ? 200 : 3000, timeout: 120 }; // before it counts

// ---- measuring ----

const slowest = (run) => `${micros(run.p99_us)}, max ${millis(run.max_us)}`;

const requests = (name, where) => async () =>
  compare(
    await inTurns(name, 'nginx', (server) =>
      load('http', server, {
        url: server.url + (server.name === name ? where : '/hello'),
        conns: 64,
        seconds: quick ? 1 : 3,
      }),
    ),
    'rps',
    'nginx',
    perSecond('req'),
  );

const fanout = (options) => (server) =>
  load('sse', server, {
    url: `${server.url}/stream`,
    'publish-url': `${server.url}/publish`,
    subs: 1000,
    timeout: 120,
    ...options,
  });

/** Fan-out beside nchan, measured once for all rows that read a field of it. */
function fanoutBeside(options) {
  let figures;
  return (field, show) => async () => {
    figures ??= inTurns('streamd', 'nginx', fanout(options));
    return compare(await figures, field, 'nchan', show);
  };
}

const burst = fanoutBeside({ events: 2000, pipeline: 64 });
const serial = fanoutBeside({ events: quick ? 200 : 1000 });
const paced = fanoutBeside({ events: quick ? 400 : 1000, rate: 200 });

async function startUp() {
  const times = [];
  for (let i = 0; i < (quick ? 5 : 20); i++) {
    const began = process.hrtime.bigint();
    await withServer('fermata', {}, async (server) => {
      await untilReady(`${server.url}/healthz`);
      times.push(Number(process.hrtime.bigint() - began) / 1e6);
    });
  }
  return { value: median(times), figure: `${median(times).toFixed(1)} ms`, detail: { times } };
}

async function idleMemory() {
  const kib = await withServer('fermata', {}, async (server) => {
    await untilReady(`${server.url}/healthz`);
    return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${server.pid}/status`, 'utf8'))[1]);
  });
  return { value: kib / 1024, figure: `${(kib / 1024).toFixed(1)} MiB` };
}

/** Healthy clients beside 2,000 slow ones; the floor is the same without slow ones. Limits are short
 *  enough that every slow client must be cut within the run. */
const slow = (kind, slowPath) => async () => {
  const limits = ['--head-ms', '3000', '--body-ms', '3000', '--stall-ms', '3000'];
  const run = (kindNow) =>
    withServer('streamd', limits, (server) =>
      load('slow', server, {
        url: `${server.url}/hello`,
        'slow-url': server.url + slowPath,
        kind: kindNow,
        conns: 2000,
        seconds: 8,
      }),
    );
  const floor = await run('none');
  const figures = await run(kind);
  if (figures.cut !== 2000) throw new Error(`only ${figures.cut} of 2000 slow clients were cut`);
  return {
    value: figures.p99_us,
    figure: slowest(figures),
    peer: `alone ${slowest(floor)}`,
    ratio: figures.p99_us / floor.p99_us,
    detail: { floor, figures },
  };
};

/** The counters of /metrics; none from a server that has no such page. */
async function metrics(server) {
  const text = await (await fetch(`${server.url}/metrics`)).text();
  return Object.fromEntries([...text.matchAll(/^(\w+) (\d+)$/gm)].map(([, name, value]) => [name, Number(value)]));
}

/** Runs per second of clients, each with one under way, in one of the load generator's modes. The figures also say how many
 *  transactions and jobs a run took, and how long it was under way. */
async function runsBeside(mode, flags, { pieces = 1, asks = false, warm = false }, second) {
  const measure = async (server) => {
    const common = { url: server.url, pauses: asks ? 1 : 0, ...flags };
    if (warm) await load(mode, server, { ...common, ...WARM });
    const before = await metrics(server);
    const figures = await load(mode, server, { ...common, seconds: quick ? 1 : 4 });
    const after = await metrics(server);
    const count = (name) => ((after[name] ?? 0) - (before[name] ?? 0)) / figures.runs;
    return {
      ...figures,
      commits_per_run: count('fermata_store_commits_total'),
      jobs_per_run: count('fermata_store_jobs_total') + count('fermata_store_reads_total'),
    };
  };
  const figures = await inTurns('talker', 'node', measure, { pieces, asks }, second);
  const row = compare(figures, 'runs_per_s', 'node', perSecond(asks ? 'cycles' : 'runs'));
  row.middle = (field) => column(row.detail.ours, field);
  row.more = `p50 ${millis(row.middle('p50_us'))}, p99 ${millis(row.middle('p99_us'))}, `
    + `${row.middle('commits_per_run').toFixed(2)} commits, ${row.middle('jobs_per_run').toFixed(1)} jobs, `
    + `${micros(row.middle('server_cpu_us_per_run'))} CPU (node ${micros(column(row.detail.peer, 'server_cpu_us_per_run'))})`;
  return row;
}

/** The line for the second peer: its rate, ours divided by it, and what it takes. */
function besideLangGraph({ value, detail: { second } }, show) {
  if (!second) return 'no LangGraph.js to compare with: scripts/setup bench';
  const of = (field) => column(second, field);
  return `LangGraph.js ${show(of('runs_per_s'))}: ${(value / of('runs_per_s')).toFixed(2)} x, `
    + `p50 ${millis(of('p50_us'))}, p99 ${millis(of('p99_us'))}, ${micros(of('server_cpu_us_per_run'))} CPU`;
}

/** `turns` runs share a thread and its stream. A run that asks is answered as soon as it waits. */
const runs = (conns, turns, options = {}) => async () => {
  const row = await runsBeside('runs', { conns, turns }, options);
  if (options.asks) row.more += `, answer p99 ${millis(row.middle('answer_p99_us'))}`;
  return row;
};

/** AG-UI: a run is one POST and its answer, a run that asks is two; a new thread each. What is compiled while it runs, as the
 *  peers are, is given some cycles to get warm first. */
const agui = (conns, options = {}) => async () => {
  const row = await runsBeside('agui', { conns, text: 4 * (options.pieces ?? 1) }, { ...options, warm: true }, 'langgraph');
  row.more = [row.more, besideLangGraph(row, perSecond(options.asks ? 'cycles' : 'runs'))];
  return row;
};

/** From sending an answer to the first event after it, with one client and nothing else to do. */
async function answerLatency() {
  const measure = (server) =>
    load('runs', server, { url: server.url, conns: 1, turns: 10, pauses: 1, seconds: quick ? 1 : 4 });
  const figures = await inTurns('talker', 'node', measure, { asks: true });
  const row = compare(figures, 'answer_p99_us', 'node', millis);
  row.value /= 1000;
  row.more = `p50 ${millis(column(figures.ours, 'answer_p50_us'))}, max ${millis(column(figures.ours, 'answer_max_us'))}`;
  return row;
}

/** A thread of so many messages, posted in pieces that a client would send. */
async function fillThread(server, threadId, messages) {
  const PIECE = 999; // and the answer
  for (let done = 0; done < messages; done += PIECE + 1) {
    const batch = Array.from({ length: Math.min(PIECE, messages - done - 1) }, (_, i) => (
      { role: 'user', content: `Message number ${done + i}, as long as people write them.` }));
    const answer = await fetch(`${server.url}/api/v1/agent/runs`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ threadId, messages: batch }),
    });
    if (answer.status !== 202) throw new Error(`filling the thread: ${answer.status}`);
    await finished(server, threadId);
  }
}

async function finished(server, threadId) {
  for (let i = 0; i < 1000; i++) {
    const answer = await fetch(`${server.url}/api/v1/agent/runs/${threadId}`);
    if ((await answer.json()).status === 'completed') return;
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  throw new Error('the run did not end');
}

/** The newest page of 50 messages, one client; the floor is a thread that has little more. */
async function historyPage() {
  return withServer('talker', {}, async (server) => {
    const page = async (messages) => {
      await fillThread(server, `t${messages}`, messages);
      return load('http', server, {
        url: `${server.url}/api/v1/agent/runs/t${messages}/history?limit=50`, conns: 1, seconds: quick ? 1 : 3,
      });
    };
    const floor = await page(100);
    const figures = await page(quick ? 10_000 : 100_000);
    return {
      value: figures.p99_us / 1000,
      figure: slowest(figures),
      peer: `of 100: ${slowest(floor)}`,
      ratio: figures.p99_us / floor.p99_us,
      detail: { floor, figures },
    };
  });
}

/** The newest page of a long thread, if it is all tool rows with cards, whose objects are read one by one. */
async function historyCards() {
  const CARDS = 50;
  return withServer('talker', { cards: CARDS }, async (server) => {
    const page = async (messages) => {
      const threadId = `c${messages}`;
      const url = `${server.url}/api/v1/agent/runs/${threadId}/history?limit=${CARDS + 1}`; // and the answer
      await fillThread(server, threadId, messages - CARDS - 3);
      const asked = await fetch(`${server.url}/api/v1/agent/runs`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ threadId, messages: [{ role: 'user', content: 'cards, please' }] }),
      });
      if (asked.status !== 202) throw new Error(`asking for cards: ${asked.status}`);
      await finished(server, threadId);
      const rows = (await (await fetch(url)).json()).messages;
      const cards = rows.filter(({ uiSchema }) => uiSchema).length;
      if (cards !== CARDS) throw new Error(`${cards} of ${CARDS} rows have a card`);
      return load('http', server, { url, conns: 1, seconds: quick ? 1 : 3 });
    };
    const floor = await page(100);
    const figures = await page(quick ? 10_000 : 100_000);
    return {
      value: figures.p99_us / 1000,
      figure: slowest(figures),
      peer: `of 100: ${slowest(floor)}`,
      ratio: figures.p99_us / floor.p99_us,
      detail: { floor, figures },
      more: `p50 ${millis(figures.p50_us)} (of 100: ${millis(floor.p50_us)}), ${micros((figures.server_cpu_s * 1e6) / figures.requests)} CPU a page`,
    };
  });
}

async function jsonParse() {
  const file = bin('bench/bench_json');
  const { stdout } = await promisify(execFile)(file, []);
  const [first, ...rest] = stdout.trim().split('\n').map((line) => JSON.parse(line));
  return {
    value: first.ours_us,
    figure: micros(first.ours_us),
    peer: `jansson ${micros(first.jansson_us)}`,
    ratio: first.ours_us / first.jansson_us,
    detail: { runs: [first, ...rest] },
  };
}

/** Cards: the good ones of tests/ui, line by line, over and over. */
function corpusFile(folder) {
  const cards = path.join(root, 'tests', 'ui');
  const lines = readdirSync(cards).filter((name) => name.endsWith('.json'))
    .map((name) => JSON.parse(readFileSync(path.join(cards, name), 'utf8')))
    .filter(({ schema }) => schema).map(({ hints }) => `${JSON.stringify(hints)}\n`).join('');
  const file = path.join(folder, 'cards.jsonl');
  writeFileSync(file, lines.repeat(Math.ceil((quick ? 1e6 : 8e6) / lines.length)));
  return file;
}

async function compileUi() {
  const program = bin('bench/bench_ui');
  const folder = mkdtempSync(path.join(os.tmpdir(), 'fermata-bench-'));
  try {
    const { stdout } = await promisify(execFile)(program, [corpusFile(folder)]);
    const figures = JSON.parse(stdout);
    const rate = (value) => `${value.toFixed(0)} MB/s`;
    return {
      value: figures.compile_mb_s,
      figure: rate(figures.compile_mb_s),
      peer: `jansson, parse ${rate(figures.jansson_mb_s)}`,
      ratio: figures.compile_mb_s / figures.jansson_mb_s,
      detail: figures,
      more: `the parse alone ${rate(figures.parse_mb_s)}`,
    };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

// ---- the rows: name, title, how, budget ----

const above = (limit) => ({ text: `> ${thousands(limit)}`, kept: (row) => row.value > limit });
const below = (limit, unit) => ({ text: `< ${limit} ${unit}`, kept: (row) => row.value < limit });
const ratioBelow = (limit) => ({ text: `< ${limit} x`, kept: (row) => row.ratio < limit });
const ratioAbove = (limit) => ({ text: `> ${limit} x`, kept: (row) => row.ratio > limit });
const p50Below = (limit) => ({ text: `p50 < ${limit} ms`, kept: (row) => row.middle('p50_us') < limit * 1000 });
const both = { text: '< 0.3, 2 ms', kept: (row) => row.added50 < 0.3 && row.value < 2 }; // p50, p99
const noBudget = { text: '', kept: () => true };

const rows = [
  ['start', 'start to first answer, median', startUp, below(100, 'ms')],
  ['rss', 'idle memory of fermata serve', idleMemory, below(20, 'MiB')],
  [
    'stream-rss',
    'memory per idle stream, 2,000 open',
    async () =>
      compare(
        await inTurns('streamd', 'nginx', (server) =>
          load('idle', server, { url: `${server.url}/stream`, subs: 2000 }),
        ),
        'rss_bytes_per_conn',
        'nchan',
        (n) => `${thousands(n)} B`,
      ),
    below(3 * 1024, 'B'),
  ],
  ['healthz', 'fermata, GET /healthz, 64 connections', requests('fermata', '/healthz'), noBudget],
  ['hello', 'streamd, GET /hello, 64 connections', requests('streamd', '/hello'), noBudget],
  [
    'burst',
    'fan-out, 2,000 events to 1,000, pipelined POSTs',
    burst('deliveries_per_s', perSecond('ev')),
    ratioAbove(20),
  ],
  ['burst-p99', '  its p99 from POST to reader', burst('p99_us', millis), noBudget],
  [
    'serial',
    'the same, each POST after the answer to the last',
    serial('deliveries_per_s', perSecond('ev')),
    noBudget,
  ],
  ['serial-p99', '  its p99 from POST to reader', serial('p99_us', millis), noBudget],
  [
    'paced',
    'fan-out, 200 events/s to 1,000: CPU per delivery',
    paced('server_cpu_us_per_delivery', micros),
    ratioBelow(0.9),
  ],
  ['paced-p50', '  its p50 from POST to reader', paced('p50_us', millis), noBudget],
  ['paced-p99', '  its p99 from POST to reader', paced('p99_us', millis), noBudget],
  ['dialects', '200 readers of each dialect, 200 deltas a run', dialectsRow, noBudget],
  ['slow-head', 'p99 beside 2,000 slow heads', slow('head', '/hello'), noBudget],
  ['slow-body', 'p99 beside 2,000 slow bodies', slow('body', '/publish'), noBudget],
  ['slow-read', 'p99 beside 2,000 that never read', slow('read', '/big'), noBudget],
  ['runs-1', 'durable runs, 1 client, a new thread each', runs(1, 1), noBudget],
  ['runs-16', 'durable runs, 16 clients, a new thread each', runs(16, 1), noBudget],
  ['runs-64', 'durable runs, 64 clients, a new thread each', runs(64, 1), above(5000)],
  ['chat-64', 'the same, 10 runs on each thread', runs(64, 10), above(5000)],
  ['deltas-64', 'the same with 100 deltas a run', runs(64, 10, { pieces: 100 }), above(3100)],
  ['pause-1', 'pause and resume, 1 client, a new thread each', runs(1, 1, { asks: true }), noBudget],
  ['pause-16', 'pause and resume, 16 clients, a new thread each', runs(16, 1, { asks: true }), noBudget],
  ['pause-64', 'pause and resume, 64 clients, a new thread each', runs(64, 1, { asks: true }), above(3000)],
  ['pause-chat-64', 'the same, 10 runs on each thread', runs(64, 10, { asks: true }), above(3000)],
  ['agui-runs-1', 'AG-UI, a run in one POST, 1 client', agui(1), noBudget],
  ['agui-runs-16', 'AG-UI, a run in one POST, 16 clients', agui(16), noBudget],
  ['agui-runs-64', 'AG-UI, a run in one POST, 64 clients', agui(64), ratioAbove(0.6)],
  ['agui-deltas-64', 'the same with 100 deltas a run', agui(64, { pieces: 100 }), ratioAbove(1.2)],
  ['agui-pause-1', 'AG-UI, pause and resume in two POSTs, 1 client', agui(1, { asks: true }), p50Below(1.5)],
  ['agui-pause-16', 'AG-UI, pause and resume in two POSTs, 16 clients', agui(16, { asks: true }), noBudget],
  ['agui-pause-64', 'AG-UI, pause and resume in two POSTs, 64 clients', agui(64, { asks: true }), ratioAbove(0.6)],
  ['round-trips', 'a run, a pause, an approval, a call: to the store', roundTrips, fewTrips],
  ['answer', 'p99 from answer to first event, idle', answerLatency, below(5, 'ms')],
  ['chunk', 'model chunk -> client event, added (200 chunks/s)', chunkRow, both],
  ['streams', '1,000 runs stream 50 chunks/s each', streamsRow, noBudget],
  ['streams-rss', '  memory of a run that streams, 1,000 at once', streamsMemoryRow, below(96, 'KiB')],
  ['open-start', `start to first answer, ${thousands(open.count)} runs wait`, open.start, below(100, 'ms')],
  ['open-rss', '  memory after it', open.rss, ratioBelow(1.1)],
  ['open-worked', '  after 3,000 inbox pages and 100 answers', open.worked, ratioBelow(1.1)],
  ['open-inbox', '  p99 of the first page of an inbox', open.inbox, below(20, 'ms')],
  ['open-deep', '  p99 of pages behind it', open.deep, below(20, 'ms')],
  ['open-approver', '  p99 of pages of an approver', open.approver, below(20, 'ms')],
  ['open-answer', '  p99 from answer to completed run, 100 random', open.answer, noBudget],
  ['history', 'p99 of 50 messages of 100,000', historyPage, below(5, 'ms')],
  ['history-cards', 'p99 of 50 cards of 100,000 messages', historyCards, below(5, 'ms')],
  ...twoUsersRows.map(([name, how]) => [name, `p99 of another user, ${name.slice(6)} taken`, how, noBudget]),
  ['search', 'p99 of a page of a search in 1,000,000 messages', search, below(2500, 'ms')],
  ['page-stream', '200 tokens/s into 40 kB, in a browser', page.streaming(1), ratioAbove(1.5)],
  ['page-slow', '  the same on a processor 4 times as slow', page.streaming(4), ratioAbove(1.5)],
  ['page-open', '10,000 messages, address to last words painted', page.open, noBudget],
  ['page-prepend', '  longest task when older ones come in', page.prepend, noBudget],
  ['json', 'JSON, one document parsed', jsonParse, noBudget],
  ['compile-ui', 'cards compiled from tests/ui, with the parse', compileUi, above(100)],
];

// ---- the run ----

async function runRow([name, title, measure, budget]) {
  const row = { name, title, budget: budget.text };
  try {
    Object.assign(row, await measure());
    row.ok = budget.kept(row);
  } catch (error) {
    row.note = (error.stderr || error.message).trim().split('\n').at(-1);
    row.ok = error instanceof Skip ? null : false;
  }
  return row;
}

const verdicts = new Map([[true, 'yes'], [false, 'NO'], [null, '-']]);

function line(row) {
  if (row.note) return [row.title, row.note, '', '', row.budget, verdicts.get(row.ok)];
  const ratio = row.ratio === undefined ? '' : `${row.ratio.toFixed(2)} x`;
  return [row.title, row.figure, row.peer ?? '', ratio, row.budget, verdicts.get(row.ok)];
}

const WIDTHS = [50, 22, 28, 9, 10, 3];
const print = (cells) => console.log(cells.map((cell, i) => cell.padEnd(WIDTHS[i])).join(' ').trimEnd());

const chosen = rows.filter(([name]) => wanted.length === 0 || wanted.includes(name));
if (chosen.length === 0) {
  console.error(`rows: ${rows.map(([name]) => name).join(' ')}`);
  process.exit(2);
}
print(['row', 'figure', 'peer or floor', 'ratio', 'budget', 'ok?']);
const results = [];
for (const row of chosen) {
  const result = await runRow(row);
  results.push(result);
  print(line(result));
  for (const more of [result.more ?? []].flat()) print([`  ${more}`]);
}

const folder = path.join(root, 'build', 'bench');
mkdirSync(folder, { recursive: true });
const machine = { cpus: os.cpus().length, model: os.cpus()[0].model, kernel: os.release() };
const report = { date: new Date().toISOString(), machine, quick, rows: results };
writeFileSync(path.join(folder, 'results.json'), `${JSON.stringify(report, null, 2)}\n`);
process.exitCode = results.some((row) => row.ok === false) ? 1 : 0;

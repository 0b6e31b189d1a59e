#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
//
// The benchmark run: starts our servers and their peers, one at a time, on ports of their own, puts
// the same load on each, and prints a table. The budgets stand in the rows below; README.md says
// how to read them.
//
//     [FERMATA_BUILD=build/bench] bench/run [--quick] [row...]
//
// Ours and the peer take turns, round by round, and the median counts, so that a busy moment of the
// machine does not decide a ratio. Exit 0: all answers were right and every budget was kept.

import { execFile, spawn } from 'node:child_process';
import { accessSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..');
const build = path.resolve(root, process.env.FERMATA_BUILD ?? 'build/bench');
const args = process.argv.slice(2);
const quick = args.includes('--quick');
const wanted = args.filter((arg) => !arg.startsWith('--'));
const ROUNDS = quick ? 1 : 3;
const READY_MS = 10_000;
const STOP_MS = 10_000;

// ---- small things ----

const median = (list) => list.toSorted((a, b) => a - b)[Math.floor(list.length / 2)];

function exists(file) {
  try {
    accessSync(file);
    return true;
  } catch {
    return false;
  }
}

/** A peer that is not installed: the row is left out, it has not failed. */
class Skip extends Error {}

function peer(file) {
  if (!exists(file)) throw new Skip('no peer: scripts/setup bench');
  return file;
}

function bin(name) {
  const file = path.join(build, name);
  if (!exists(file)) throw new Error(`${name} is not built`);
  return file;
}

function freePort() {
  return new Promise((resolve, reject) => {
    const server = net.createServer();
    server.on('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}

function statusOf(url) {
  return new Promise((resolve) => {
    const request = http.get(url, { agent: false }, (answer) => {
      answer.resume();
      answer.on('end', () => resolve(answer.statusCode));
    });
    request.on('error', () => resolve(0));
  });
}

/** Ask until the answer is 200. */
async function untilReady(url) {
  const end = Date.now() + READY_MS;
  while (Date.now() < end) {
    if ((await statusOf(url)) === 200) return;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  throw new Error(`no answer from ${url}`);
}

// ---- servers ----

const children = new Set();
process.on('exit', () => children.forEach((child) => child.kill('SIGKILL')));
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => process.exit(130));

/** Settings of the caller's own must not reach a server under test. */
const plainEnv = Object.fromEntries(
  Object.entries(process.env).filter(([name]) => !name.startsWith('FERMATA_')),
);

function start(command, commandArgs, env) {
  const child = spawn(command, commandArgs, {
    env: { ...plainEnv, ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  children.add(child);
  child.ended = new Promise((resolve) => {
    child.on('error', resolve);
    child.on('exit', (code, signal) => {
      children.delete(child);
      resolve(code ?? signal);
    });
  });
  return child;
}

async function stop(child) {
  const timer = setTimeout(() => child.kill('SIGKILL'), STOP_MS);
  child.kill('SIGTERM');
  const status = await child.ended;
  clearTimeout(timer);
  if (status !== 0) throw new Error(`${path.basename(child.spawnfile)} ended with ${status}`);
}

/** The port that a child prints in its line "... listening on ...:PORT". */
async function portFrom(child) {
  let seen = '';
  const timer = setTimeout(() => child.kill('SIGKILL'), READY_MS);
  try {
    for await (const piece of child.stdout.iterator({ destroyOnReturn: false })) {
      seen += piece;
      const found = /listening on \S*:(\d+)\n/.exec(seen);
      if (found) return Number(found[1]);
    }
  } finally {
    clearTimeout(timer);
  }
  throw new Error(`${path.basename(child.spawnfile)} never said where it listens`);
}

/** Each gives {url, pid, stop}; pid is the process whose costs count. */
const servers = {
  async streamd(_folder, flags = []) {
    const child = start(bin('bench/streamd'), flags);
    const port = await portFrom(child);
    return { url: `http://127.0.0.1:${port}`, pid: child.pid, stop: () => stop(child) };
  },

  async fermata(folder, env = {}) {
    const child = start(bin('fermata'), ['serve'], {
      FERMATA_LISTEN: '127.0.0.1:0',
      FERMATA_DATA: path.join(folder, 'data'),
      FERMATA_LOG: 'error',
      ...env,
    });
    const port = await portFrom(child);
    return { url: `http://127.0.0.1:${port}`, pid: child.pid, stop: () => stop(child) };
  },

  /** fermata with a model that answers at once, in so many pieces. */
  async talker(folder, pieces) {
    const script = path.join(folder, 'script.jsonl');
    const turn = { text: 'word'.repeat(pieces), chunk: 4 };
    writeFileSync(script, `${JSON.stringify({ turns: [turn] })}\n`);
    return servers.fermata(folder, { FERMATA_MODEL_PROVIDER: 'scripted', FERMATA_SCRIPT: script });
  },

  /** A bare Node server that streams the same frames and stores nothing. */
  async node(_folder, pieces) {
    const child = start(process.execPath, [path.join(root, 'bench', 'peer_node.mjs'), String(pieces)]);
    const port = await portFrom(child);
    return { url: `http://127.0.0.1:${port}`, pid: child.pid, stop: () => stop(child) };
  },

  /** One worker; what is kept for the channel is larger than any burst, so nothing is ever lost. */
  async nginx(folder) {
    const nginx = peer('/usr/sbin/nginx');
    const module = peer('/usr/lib/nginx/modules/ngx_nchan_module.so');
    const port = await freePort();
    const config = path.join(folder, 'nginx.conf');
    writeFileSync(config, nginxConfig(folder, module, port));
    const child = start(nginx, ['-p', folder, '-c', config, '-e', '/dev/null']);
    const url = `http://127.0.0.1:${port}`;
    await untilReady(`${url}/hello`);
    const pid = readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8').trim();
    if (!/^\d+$/.test(pid)) throw new Error(`nginx should have one worker, has "${pid}"`);
    return { url, pid, stop: () => stop(child) };
  },
};

const nginxConfig = (folder, module, port) => `
load_module ${module};
daemon off;
worker_processes 1;
worker_rlimit_nofile 8192;
error_log /dev/null crit;
pid ${folder}/pid;
events { worker_connections 8000; }
http {
  access_log off;
  client_body_temp_path ${folder}/body;
  proxy_temp_path ${folder}/proxy;
  fastcgi_temp_path ${folder}/fastcgi;
  uwsgi_temp_path ${folder}/uwsgi;
  scgi_temp_path ${folder}/scgi;
  keepalive_requests 1000000000;
  nchan_shared_memory_size 256M;
  server {
    listen 127.0.0.1:${port} backlog=4096;
    location = /hello { default_type text/plain; return 200 "hello"; }
    location = /stream {
      nchan_subscriber eventsource;
      nchan_channel_id bench;
      nchan_subscriber_first_message newest;
    }
    location = /publish {
      nchan_publisher;
      nchan_channel_id bench;
      nchan_message_buffer_length 20000;
      nchan_message_timeout 5m;
    }
  }
}
`;

/** Run fn against a fresh server in a folder of its own. */
async function withServer(name, options, fn) {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'fermata-bench-'));
  try {
    const server = await servers[name](folder, options);
    try {
      return await fn({ name, ...server });
    } finally {
      await server.stop();
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

// ---- measuring ----

/** One run of the load generator: its figures, or an error if an answer was wrong. */
async function load(mode, server, options) {
  const flags = Object.entries({ pid: server.pid, ...options }).flatMap(([name, value]) => [
    `--${name}`,
    String(value),
  ]);
  const file = bin('bench/load');
  const { stdout } = await promisify(execFile)(file, [mode, ...flags]);
  return JSON.parse(stdout);
}

/** Fresh servers in turn, ROUNDS times: {ours: [figures], peer: [figures]}. */
async function inTurns(ours, peer, measure, options) {
  const figures = { ours: [], peer: [] };
  for (let round = 0; round < ROUNDS; round++) {
    figures.ours.push(await withServer(ours, options, measure));
    figures.peer.push(await withServer(peer, options, measure));
  }
  return figures;
}

const column = (list, field) => median(list.map((figures) => figures[field]));

/** ours / peer of one field, and the cells of the table. */
function compare({ ours, peer }, field, peerName, show) {
  const mine = column(ours, field);
  const theirs = column(peer, field);
  return {
    value: mine,
    figure: show(mine),
    peer: `${peerName} ${show(theirs)}`,
    ratio: mine / theirs,
    detail: { ours, peer },
  };
}

const thousands = (n) => Math.round(n).toLocaleString('en-US');
const perSecond = (unit) => (n) => `${thousands(n)} ${unit}/s`;
const micros = (n) => `${n.toFixed(n < 10 ? 2 : 0)} us`;
const millis = (us) => `${(us / 1000).toFixed(1)} ms`;
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

/** Runs per second of `conns` clients, each with one run under way; `turns` runs share a thread and
 *  its stream. The figures also say how many transactions a run took, and how long it was under way. */
const runs = (conns, turns, pieces = 1) => async () => {
  const measure = async (server) => {
    const before = await metrics(server);
    const figures = await load('runs', server, { url: server.url, conns, turns, seconds: quick ? 1 : 4 });
    const after = await metrics(server);
    const count = (name) => ((after[name] ?? 0) - (before[name] ?? 0)) / figures.runs;
    return {
      ...figures,
      commits_per_run: count('fermata_store_commits_total'),
      jobs_per_run: count('fermata_store_jobs_total'),
    };
  };
  const row = compare(await inTurns('talker', 'node', measure, pieces), 'runs_per_s', 'node', perSecond('runs'));
  const middle = (field) => column(row.detail.ours, field);
  row.more = `p50 ${millis(middle('p50_us'))}, p99 ${millis(middle('p99_us'))}, `
    + `${middle('commits_per_run').toFixed(2)} commits, ${micros(middle('server_cpu_us_per_run'))} CPU `
    + `(node ${micros(column(row.detail.peer, 'server_cpu_us_per_run'))})`;
  return row;
};

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
  return withServer('talker', 1, async (server) => {
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

// ---- the rows: name, title, how, budget ----

const above = (limit) => ({ text: `> ${thousands(limit)}`, kept: (row) => row.value > limit });
const below = (limit, unit) => ({ text: `< ${limit} ${unit}`, kept: (row) => row.value < limit });
const ratioBelow = (limit) => ({ text: `< ${limit} x`, kept: (row) => row.ratio < limit });
const ratioAbove = (limit) => ({ text: `> ${limit} x`, kept: (row) => row.ratio > limit });
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
  ['slow-head', 'p99 beside 2,000 slow heads', slow('head', '/hello'), noBudget],
  ['slow-body', 'p99 beside 2,000 slow bodies', slow('body', '/publish'), noBudget],
  ['slow-read', 'p99 beside 2,000 that never read', slow('read', '/big'), noBudget],
  ['runs-1', 'durable runs, 1 client, a new thread each', runs(1, 1), noBudget],
  ['runs-16', 'durable runs, 16 clients, a new thread each', runs(16, 1), noBudget],
  ['runs-64', 'durable runs, 64 clients, a new thread each', runs(64, 1), above(5000)],
  ['chat-64', 'the same, 10 runs on each thread', runs(64, 10), above(5000)],
  ['deltas-64', 'the same with 100 deltas a run', runs(64, 10, 100), above(3100)],
  ['history', 'p99 of 50 messages of 100,000', historyPage, below(5, 'ms')],
  ['json', 'JSON, one document parsed', jsonParse, noBudget],
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
  if (result.more) print([`  ${result.more}`]);
}

const folder = path.join(root, 'build', 'bench');
mkdirSync(folder, { recursive: true });
const machine = { cpus: os.cpus().length, model: os.cpus()[0].model, kernel: os.release() };
const report = { date: new Date().toISOString(), machine, quick, rows: results };
writeFileSync(path.join(folder, 'results.json'), `${JSON.stringify(report, null, 2)}\n`);
process.exitCode = results.some((row) => row.ok === false) ? 1 : 0;

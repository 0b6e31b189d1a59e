// SPDX-License-Identifier: Apache-2.0
//
// What all rows of the benchmark share: how servers are started and stopped, and how the load generator is asked.
// One more kind of server: a function in `servers` that gives {url, pid, stop}.

import { execFile, spawn } from 'node:child_process';
import { accessSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

export const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..');
const build = path.resolve(root, process.env.FERMATA_BUILD ?? 'build/bench');
export const quick = process.argv.includes('--quick');
export const ROUNDS = quick ? 1 : 3;
const READY_MS = 10_000;
const STOP_MS = 10_000;

// ---- small things ----

export const median = (list) => list.toSorted((a, b) => a - b)[Math.floor(list.length / 2)];

function exists(file) {
  try {
    accessSync(file);
    return true;
  } catch {
    return false;
  }
}

/** A peer that is not installed: the row is left out, it has not failed. */
export class Skip extends Error {}

function peer(file) {
  if (!exists(file)) throw new Skip('no peer: scripts/setup bench');
  return file;
}

export function bin(name) {
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
export async function untilReady(url) {
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

const meetings = (count) => Array.from({ length: count }, (_, i) => ({
  name: 'calendar_write',
  args: {
    title: `Review ${i} 评审`, location: 'Room 7', attendees: ['Ann', 'Bob'],
    start_time: `2030-01-${String(1 + (i % 28)).padStart(2, '0')}T${String(8 + (i % 10)).padStart(2, '0')}:00:00+08:00`,
    end_time: `2030-01-${String(1 + (i % 28)).padStart(2, '0')}T${String(9 + (i % 10)).padStart(2, '0')}:00:00+08:00`,
  },
}));

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

  /** fermata with a model that answers at once, in so many pieces; if it asks, after a question. To a message
   *  that begins with "cards" it answers with so many events in the calendar, which are allowed without asking. */
  async talker(folder, { pieces = 1, asks = false, cards = 0, env = {} }) {
    const script = path.join(folder, 'script.jsonl');
    const usage = { input_tokens: 3, output_tokens: pieces };
    const question = { question: 'Which room?', choices: ['Blue', 'Green'] };
    const turns = [{ text: 'word'.repeat(pieces), chunk: 4, usage }];
    if (asks) turns.unshift({ calls: [{ name: 'ask_user', args: question }], chunk: 1000, usage });
    const lines = cards ? [{ match: '^cards', turns: [{ calls: meetings(cards), chunk: 1000, usage }, ...turns] }, { turns }] : [{ turns }];
    writeFileSync(script, lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
    const config = path.join(folder, 'fermata.yaml');
    writeFileSync(config, 'agents: {assistant: {policy: {calendar_write: allow}}}\n');
    return servers.fermata(folder, {
      FERMATA_MODEL_PROVIDER: 'scripted', FERMATA_SCRIPT: script, ...(cards ? { FERMATA_CONFIG: config } : {}), ...env,
    });
  },

  /** A model that writes its time into every chunk. */
  async model(_folder, { chunks, perSecond }) {
    const child = start(process.execPath, [path.join(root, 'bench', 'fake_model.mjs'), String(chunks), String(perSecond)]);
    const port = await portFrom(child);
    return { url: `http://127.0.0.1:${port}`, pid: child.pid, stop: () => stop(child) };
  },

  /** A bare Node server that streams the same frames and stores nothing. */
  async node(_folder, { pieces = 1, asks = false }) {
    const file = path.join(root, 'bench', 'peer_node.mjs');
    const child = start(process.execPath, [file, String(pieces), ...(asks ? ['ask'] : [])]);
    const port = await portFrom(child);
    return { url: `http://127.0.0.1:${port}`, pid: child.pid, stop: () => stop(child) };
  },

  /** LangGraph.js with its SQLite checkpointer, which keeps the runs. */
  async langgraph(folder, { pieces = 1, asks = false }) {
    const place = path.join(root, 'bench', 'langgraph');
    peer(path.join(place, 'node_modules', 'better-sqlite3', 'build', 'Release', 'better_sqlite3.node'));
    const child = start(process.execPath, [path.join(place, 'peer.mjs'), String(pieces), folder, ...(asks ? ['ask'] : [])]);
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
export async function withServer(name, options, fn) {
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
export async function load(mode, server, options) {
  const flags = Object.entries({ pid: server.pid, ...options }).flatMap(([name, value]) => [
    `--${name}`,
    String(value),
  ]);
  const file = bin('bench/load');
  const { stdout } = await promisify(execFile)(file, [mode, ...flags]);
  return JSON.parse(stdout);
}

/** Fresh servers in turn, ROUNDS times: {ours: [figures], peer: [figures], second: [figures]}. A second peer that is not
 *  installed has no figures. */
export async function inTurns(ours, peer, measure, options, second) {
  const figures = { ours: [], peer: [], second: [] };
  for (let round = 0; round < ROUNDS; round++) {
    figures.ours.push(await withServer(ours, options, measure));
    figures.peer.push(await withServer(peer, options, measure));
    if (second) figures.second.push(...await unlessMissing(withServer(second, options, measure)));
  }
  return figures;
}

async function unlessMissing(measured) {
  try {
    return [await measured];
  } catch (error) {
    if (error instanceof Skip) return [];
    throw error;
  }
}

// ---- figures ----

export const column = (list, field) => median(list.map((figures) => figures[field]));

/** ours / peer of one field, and the cells of the table. */
export function compare({ ours, peer, second }, field, peerName, show) {
  const mine = column(ours, field);
  const theirs = column(peer, field);
  return {
    value: mine,
    figure: show(mine),
    peer: `${peerName} ${show(theirs)}`,
    ratio: mine / theirs,
    detail: { ours, peer, ...(second.length ? { second } : {}) },
  };
}

export const thousands = (n) => Math.round(n).toLocaleString('en-US');
export const perSecond = (unit) => (n) => `${thousands(n)} ${unit}/s`;
export const micros = (n) => `${n.toFixed(n < 10 ? 2 : 0)} us`;
export const millis = (us) => `${(us / 1000).toFixed(1)} ms`;

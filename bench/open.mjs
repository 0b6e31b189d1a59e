// SPDX-License-Identifier: Apache-2.0
//
// The rows about a data folder in which a million runs wait for a person. bench/fill makes it, once for all rows, with
// the server's own code; the floor is a folder with a hundredth of it, in which each person has as many as in the large
// one. A round starts a server on each in turn and does the same work:
//
//     start ─▶ memory ─▶ pages of inboxes ─▶ 100 answers, each followed to the end of its run ─▶ memory
//
// So a ratio of 1 says that waiting costs nothing but disk.

import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';

import { ROUNDS, bin, column, compare, load, median, millis, quick, thousands, untilReady, withServer } from './kit.mjs';

const asked = process.argv.map((arg) => /^--open=(\d+)$/.exec(arg)?.[1]).find(Boolean);
export const count = Number(asked ?? (quick ? 20_000 : 1_000_000));
const OF_EACH = 1000; // that wait for one person
const FLOOR = 10_000;
const ANSWERS = quick ? 20 : 100;
const PAGES = quick ? 200 : 1000;
const STARTS = quick ? 3 : 7;

// ---- the folders ----

const made = [];
process.on('exit', () => made.forEach((folder) => rmSync(folder, { recursive: true, force: true })));

async function fill(runs) {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'fermata-bench-open-'));
  made.push(folder);
  const users = Math.max(10, Math.round(runs / OF_EACH));
  const { stdout } = await promisify(execFile)(bin('bench/fill'), [folder, String(runs), String(users)]);
  return { ...JSON.parse(stdout), folder };
}

// ---- a round ----

const api = (server, where) => `${server.url}/api/v1/agent/${where}`;
const memory = (server) => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${server.pid}/status`, 'utf8'))[1]) / 1024;

async function ask(server, key, where, body) {
  const answer = await fetch(api(server, where), {
    method: body ? 'POST' : 'GET',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: body && JSON.stringify(body),
  });
  if (answer.status !== 200) throw new Error(`${where}: ${answer.status} ${await answer.text()}`);
  return answer.json();
}

/** One that waits for this person, somewhere in their list. */
async function pick(server, data, key) {
  for (;;) {
    const cursor = 1 + Math.floor(Math.random() * data.open);
    const { interactions } = await ask(server, key, `interactions?limit=1&cursor=${cursor}`);
    if (interactions.length) return interactions[0];
  }
}

/** Answer one and follow its run to the end; milliseconds from sending the answer to run.finished. */
async function settle(server, data) {
  const key = data.keys[Math.floor(Math.random() * data.keys.length)];
  const found = await pick(server, data, key);
  const { seq } = await ask(server, key, `runs/${found.threadId}/history?limit=1`);
  const events = await fetch(api(server, `runs/${found.threadId}/events?after=${seq}`), {
    headers: { authorization: `Bearer ${key}` },
  });
  const confirm = found.type === 'confirm';
  const began = process.hrtime.bigint();
  const answered = ask(server, confirm ? data.approver : key, `interactions/${found.interactionId}/answer`,
    confirm ? { decision: 'approve' } : { answer: 'Neither' });
  let text = '';
  for await (const piece of events.body.pipeThrough(new TextDecoderStream())) {
    text += piece;
    if (/"outcome":"[a-z]+".*\n\n/.test(text)) break;
  }
  const ms = Number(process.hrtime.bigint() - began) / 1e6;
  await answered;
  if (!/"outcome":"completed"/.test(text)) throw new Error(`the run did not complete: ${text.slice(-300)}`);
  return ms;
}

const options = (data) => ({
  asks: true,
  env: { FERMATA_DATA: data.folder, FERMATA_AGENTS_ASSISTANT_APPROVERS: 'calendar_write=approver' },
});

async function startUp(data) {
  const times = [];
  for (let i = 0; i < STARTS; i++) {
    const began = process.hrtime.bigint();
    await withServer('talker', options(data), async (server) => {
      await untilReady(`${server.url}/healthz`);
      times.push(Number(process.hrtime.bigint() - began) / 1e6);
    });
  }
  return median(times);
}

async function work(server, data) {
  await untilReady(`${server.url}/healthz`);
  const figures = { rss_start_mib: memory(server) };
  const pages = (depth, key) =>
    load('inbox', server, { url: api(server, 'interactions?limit=50'), key, pages: PAGES, depth });
  const tops = await pages(1, data.keys.join());
  const walks = await pages(OF_EACH, data.keys.join());
  const role = await pages(PAGES, data.approver);
  const times = [];
  for (let i = 0; i < ANSWERS; i++) times.push(await settle(server, data));
  times.sort((a, b) => a - b);
  return {
    ...figures,
    rss_worked_mib: memory(server),
    first_p50_us: tops.first_p50_us,
    first_p99_us: tops.first_p99_us,
    deep_p50_us: walks.deep_p50_us,
    deep_p99_us: walks.deep_p99_us,
    approver_p50_us: role.deep_p50_us,
    approver_p99_us: role.deep_p99_us,
    answer_p50_ms: median(times),
    answer_p99_ms: times[Math.floor(times.length * 0.99)],
    answered: times.length,
  };
}

async function round(data) {
  const start_ms = await startUp(data);
  return { start_ms, ...(await withServer('talker', options(data), (server) => work(server, data))) };
}

async function measure() {
  const many = await fill(count);
  const few = await fill(FLOOR);
  const figures = { ours: [], peer: [] };
  for (let i = 0; i < ROUNDS; i++) {
    figures.ours.push(await round(many));
    figures.peer.push(await round(few));
  }
  return { ...figures, many };
}

let measured;
const figures = () => (measured ??= measure());

// ---- the rows ----

const row = (field, show, p50) => async () => {
  const all = await figures();
  const cells = compare(all, field, `of ${thousands(FLOOR)}:`, show);
  if (p50) cells.more = `p50 ${show(column(all.ours, p50))}, of ${thousands(FLOOR)} ${show(column(all.peer, p50))}`;
  return cells;
};
const inMillis = (field, p50) => async () => {
  const cells = await row(field, millis, p50)();
  return { ...cells, value: cells.value / 1000 };
};
const ms = (n) => `${n.toFixed(1)} ms`;
const mib = (n) => `${n.toFixed(1)} MiB`;

export async function start() {
  const cells = await row('start_ms', ms)();
  const { many } = await figures();
  cells.more = `made by fill in ${thousands(many.seconds)} s, ${(many.bytes / 2 ** 30).toFixed(1)} GiB`;
  return cells;
}
export const rss = row('rss_start_mib', mib);
export const worked = row('rss_worked_mib', mib);
export const inbox = inMillis('first_p99_us', 'first_p50_us');
export const deep = inMillis('deep_p99_us', 'deep_p50_us');
export const approver = inMillis('approver_p99_us', 'approver_p50_us');
export const answer = row('answer_p99_ms', ms, 'answer_p50_ms');

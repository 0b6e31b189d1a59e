// SPDX-License-Identifier: Apache-2.0
//
// What a server between a model and its reader costs. The model (fake_model.mjs) writes its time into every chunk; a reader
// takes the time when that text arrives. The floor is the same reader on the model's own stream.

import { readFileSync } from 'node:fs';
import net from 'node:net';

import { column, median, quick, ROUNDS, withServer } from './kit.mjs';

const API = '/api/v1/agent';
const WAIT_MS = 120_000;
const CLOCK_HZ = 100; // of /proc/PID/stat on Linux

// ---- readers ----

const post = (where, json) => {
  const body = Buffer.from(JSON.stringify(json));
  return Buffer.concat([Buffer.from(`POST ${where} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n`), body]);
};
const get = (where) => Buffer.from(`GET ${where} HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n`);

/** A stamp of 10 digits or more with a blank behind it: nothing else in a frame looks so. */
const STAMP = /(\d{10,}) /g;

/** Resolves when `last` is in the stream; every stamp's age goes into `ages`, in microseconds, unless it is null. */
function readStream(port, ask, last, ages) {
  return new Promise((resolve, reject) => {
    const socket = net.connect({ host: '127.0.0.1', port, noDelay: true });
    const late = setTimeout(() => socket.destroy(new Error('a stream did not end')), WAIT_MS);
    let rest = '', count = 0;
    socket.on('error', reject).on('close', () => reject(new Error('a stream was cut')));
    socket.on('data', (bytes) => {
      const now = process.hrtime.bigint();
      const text = rest + bytes.latin1Slice();
      let used = 0;
      for (const found of text.matchAll(STAMP)) {
        used = found.index + found[0].length;
        count++;
        ages?.push(Number(now - BigInt(found[1])) / 1000);
      }
      rest = text.slice(Math.max(used, text.length - 64));
      if (!text.includes(last)) return;
      clearTimeout(late);
      socket.removeAllListeners('close').destroy();
      resolve(count);
    });
    socket.write(ask);
  });
}

const percentile = (list, share) => list.toSorted((a, b) => a - b)[Math.min(list.length - 1, Math.floor(list.length * share))];

// ---- the servers ----

/** fn against a model, and against a server on that model. */
const withModel = (chunks, perSecond, fn) => withServer('model', { chunks, perSecond }, (model) =>
  withServer('fermata', {
    FERMATA_MODEL_PROVIDER: 'openai', FERMATA_MODEL_BASE_URL: `${model.url}/v1`, FERMATA_MODEL_NAME: 'clock', FERMATA_MODEL_API_KEY: 'none-needed',
  }, (server) => fn(model, server)));

const portOf = (server) => Number(new URL(server.url).port);
const askModel = (model) => ({ port: portOf(model), ask: post('/v1/chat/completions', { stream: true }), last: '[DONE]' });

async function begin(server, threadId) {
  const answer = await fetch(`${server.url}${API}/runs`, {
    method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ threadId, messages: [{ role: 'user', content: 'go' }] }),
  });
  if (answer.status !== 202) throw new Error(`a run was refused: ${answer.status}`);
  await answer.arrayBuffer();
}

// ---- one stream: what is added to a chunk's way ----

const CHUNKS = quick ? 400 : 2000;

async function oneStream(model, server) {
  const floor = [], ours = [];
  const direct = askModel(model);
  await readStream(direct.port, direct.ask, direct.last, floor);
  await begin(server, 'bench');
  // Only deltas: the fact at the end holds all stamps again.
  const seen = [];
  await readStream(portOf(server), get(`${API}/runs/bench/events?after=0`), '"type":"text.message.end"', seen);
  ours.push(...seen.slice(0, CHUNKS));
  return { p50: percentile(ours, 0.5), p99: percentile(ours, 0.99), floor50: percentile(floor, 0.5), floor99: percentile(floor, 0.99) };
}

const us = (n) => `${Math.round(n)} us`;

export async function chunkRow() {
  const figures = [];
  for (let round = 0; round < ROUNDS; round++) figures.push(await withModel(CHUNKS, 200, oneStream));
  const added50 = median(figures.map((f) => f.p50 - f.floor50)), added99 = median(figures.map((f) => f.p99 - f.floor99));
  return {
    value: added99 / 1000, added50: added50 / 1000, figure: `+${us(added50)}, p99 +${us(added99)}`,
    peer: `direct ${us(column(figures, 'floor50'))}, ${us(column(figures, 'floor99'))}`, detail: figures,
  };
}

// ---- many streams ----

const STREAMS = quick ? 200 : 1000;
const SECONDS = quick ? 3 : 10;
const PER_SECOND = 50;
const BATCH = 50; // runs that begin at a time
const TIMED = 20; // readers whose every stamp is looked at; the others only wait for the end

const cpuSeconds = (pid) => {
  const fields = readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ')[1].split(' ');
  return (Number(fields[11]) + Number(fields[12])) / CLOCK_HZ;
};
const statusKiB = (pid, name) => Number(new RegExp(`${name}:\\s+(\\d+)`).exec(readFileSync(`/proc/${pid}/status`, 'latin1'))[1]);

/** Begin them all, a batch at a time, each with a reader: what readers promise. */
async function beginAll(server, read) {
  const reading = [];
  for (let i = 0; i < STREAMS; i += BATCH) {
    const batch = Array.from({ length: Math.min(BATCH, STREAMS - i) }, (_, k) => i + k);
    await Promise.all(batch.map((n) => begin(server, `bench-${n}`)));
    for (const n of batch) reading.push(read(n));
  }
  return reading;
}

/** The first chunks come while the others begin, and do not count. */
async function readRun(server, n, chunks, ours) {
  const ages = n % (STREAMS / TIMED) === 0 ? [] : null;
  const count = await readStream(portOf(server), get(`${API}/runs/bench-${n}/events?after=0`), '"type":"run.finished"', ages);
  if (ages) ours.push(...ages.slice(Math.floor(chunks / 3), chunks));
  return count;
}

async function manyStreams(model, server) {
  const chunks = PER_SECOND * SECONDS;
  const floor = [], ours = [];
  const direct = askModel(model);
  const modelBefore = cpuSeconds(model.pid);
  await Promise.all(Array.from({ length: STREAMS }, (_, i) => readStream(direct.port, direct.ask, direct.last, i < TIMED ? floor : null)));
  const modelAlone = cpuSeconds(model.pid) - modelBefore;

  const before = cpuSeconds(server.pid), began = process.hrtime.bigint();
  const counts = await Promise.all(await beginAll(server, (n) => readRun(server, n, chunks, ours)));
  const seconds = Number(process.hrtime.bigint() - began) / 1e9;
  if (counts.some((count) => count < chunks)) throw new Error(`a reader got ${Math.min(...counts)} of ${chunks} chunks`);
  return {
    cpu: (cpuSeconds(server.pid) - before) / seconds, rss: statusKiB(server.pid, 'VmHWM') / 1024, rate: (STREAMS * chunks) / seconds, seconds, modelAlone: modelAlone / SECONDS,
    p50: percentile(ours, 0.5), p99: percentile(ours, 0.99), floor50: percentile(floor, 0.5), floor99: percentile(floor, 0.99),
  };
}

export async function streamsRow() {
  const f = await withModel(PER_SECOND * SECONDS, PER_SECOND, manyStreams);
  return {
    value: f.cpu, figure: `${f.cpu.toFixed(2)} cores, ${f.rss.toFixed(0)} MiB`, peer: `the model alone ${f.modelAlone.toFixed(2)} cores`, detail: f,
    more: `${STREAMS} streams of ${PER_SECOND} chunks/s, ${Math.round(f.rate)} chunks/s: age at the reader p50 ${us(f.p50)}, p99 ${us(f.p99)}; read directly ${us(f.floor50)}, ${us(f.floor99)}`,
  };
}

// ---- the memory of one of many ----

const SLOWLY = 20; // chunks a second: few enough that all are begun while the first ones stream
const MIDDLE_S = 12; // from the first run's beginning to the middle of its stream

/** Resident memory that grew with the runs, in the middle of their streams: no one may have ended, and all have begun. */
async function memoryOfRuns(_model, server) {
  const reads = (name, last) => readStream(portOf(server), get(`${API}/runs/${name}/events?after=0`), `"type":"${last}"`, null);
  await begin(server, 'first'); // what the first call of a model takes is not a share of each
  await reads('first', 'text.delta');
  const before = statusKiB(server.pid, 'VmRSS'), middle = Date.now() + MIDDLE_S * 1000;
  let ended = 0;
  const reading = await beginAll(server, (n) => reads(`bench-${n}`, 'run.finished').then(() => ended++));
  if (Date.now() > middle) throw new Error('beginning took longer than half of a stream');
  await new Promise((resolve) => setTimeout(resolve, middle - Date.now()));
  const grown = statusKiB(server.pid, 'VmRSS') - before;
  if (ended) throw new Error(`${ended} streams ended too soon`);
  await Promise.all(reading);
  return { kib: grown / STREAMS, before_kib: before };
}

export async function streamsMemoryRow() {
  const f = await withModel(2 * MIDDLE_S * SLOWLY, SLOWLY, memoryOfRuns);
  return { value: f.kib, figure: `${f.kib.toFixed(1)} KiB`, detail: f };
}

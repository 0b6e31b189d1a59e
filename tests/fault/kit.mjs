// SPDX-License-Identifier: Apache-2.0
//
// For the fault tests: the smallest server on src/net, the load generator, what the kernel knows of a process, and a disk
// that is soon full.

import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, readdirSync, readlinkSync } from 'node:fs';
import { mkdtemp, open, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { RawConnection } from '../api/raw.mjs';
import { buildFolder, within } from '../api/server.mjs';

const START_MS_MAX = 20_000;
const EXIT_MS_MAX = 20_000;
const SANITIZER = /ERROR: \w+Sanitizer|WARNING: ThreadSanitizer|runtime error:/;
const TICKS_PER_SECOND = 100; // of /proc/PID/stat, on every Linux

// Waits for a condition, at most `ms`. The condition is looked at again and again; nothing else is waited for.
export async function until(what, condition, ms = 20_000) {
  const end = Date.now() + ms;
  for (;;) {
    const value = await condition();
    if (value) return value;
    assert.ok(Date.now() < end, `${what}: not within ${ms} ms`);
    await new Promise((resolve) => { setTimeout(resolve, 10); });
  }
}

// ---- a process ----

export const descriptors = (pid) => readdirSync(`/proc/${pid}/fd`).length;

function sockets(pid) {
  const isSocket = (fd) => {
    try {
      return readlinkSync(`/proc/${pid}/fd/${fd}`).startsWith('socket:');
    } catch {
      return false; // closed since we looked
    }
  };
  return readdirSync(`/proc/${pid}/fd`).filter(isSocket).length;
}

const status = (pid, name) =>
  Number(new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(readFileSync(`/proc/${pid}/status`, 'utf8'))[1]);

export const memoryKib = (pid) => status(pid, 'VmRSS');
export const memoryPeakKib = (pid) => status(pid, 'VmHWM');

// Processor time used so far.
export function cpuMs(pid) {
  const fields = readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ')[1].split(' ');
  return (Number(fields[11]) + Number(fields[12])) * 1000 / TICKS_PER_SECOND;
}

// A sanitizer keeps freed memory and adds to all of it: its figures say nothing.
export const isSanitized = (pid) => /lib[at]san/.test(readFileSync(`/proc/${pid}/maps`, 'latin1'));

// What a server holds without a connection. libuv takes one for itself with the first.
export async function descriptorsAtRest(server) {
  const before = sockets(server.pid);
  assert.equal((await ask(server, '/healthz')).status, 200);
  await until('the first connection is gone', () => sockets(server.pid) === before);
  return descriptors(server.pid);
}

// ---- streamd ----

// Resolves when it listens. `limit`: how many descriptors it may have.
export async function startStreamd({ args = [], limit } = {}) {
  const program = join(buildFolder(), 'bench/streamd');
  const command = [...(limit ? ['prlimit', `--nofile=${limit}:${limit}`] : []), program, ...args];
  const proc = spawn(command[0], command.slice(1), { stdio: ['ignore', 'pipe', 'pipe'] });
  let stdout = '', stderr = '';
  proc.stderr.setEncoding('utf8').on('data', (text) => { stderr += text; });
  const exited = new Promise((resolve) => {
    proc.once('close', (code, signal) => resolve({ code, signal }));
    proc.once('error', (error) => resolve({ code: null, signal: null, error }));
  });
  const ready = new Promise((resolve, reject) => {
    proc.stdout.setEncoding('utf8').on('data', (text) => {
      stdout += text;
      const match = /^listening on (.+):(\d+)$/m.exec(stdout);
      if (match) resolve(match);
    });
    exited.then(({ code, signal, error }) =>
      reject(error ?? new Error(`streamd ended with ${signal ?? code} before it listened:\n${stderr}`)));
  });
  let match;
  try {
    match = await within(START_MS_MAX, 'start', ready);
  } catch (error) {
    proc.kill('SIGKILL');
    await exited;
    throw error;
  }
  const [, host, port] = match;
  const server = {
    host, port: Number(port), url: `http://${host}:${port}`, pid: proc.pid, proc, exited,

    // The end that a signal brings: exit 0 within `ms`, without a complaint of a sanitizer.
    async ended(ms = EXIT_MS_MAX) {
      let result;
      try {
        result = await within(ms, 'exit', exited);
      } finally {
        if (!result) proc.kill('SIGKILL');
        await exited;
      }
      assert.doesNotMatch(stderr, SANITIZER);
      assert.deepEqual(result, { code: 0, signal: null }, stderr);
    },
    async stop() {
      proc.kill('SIGTERM');
      await server.ended();
    },
  };
  server.descriptors = await descriptorsAtRest(server);
  return server;
}

// Runs `use` with a streamd of its own, which must end well.
export async function withStreamd(options, use) {
  const server = await startStreamd(options);
  try {
    await use(server);
  } catch (error) {
    server.proc.kill('SIGKILL');
    await server.exited;
    throw error;
  }
  await server.stop();
}

// ---- requests ----

export const get = (path, version = '1.1', fields = '') =>
  `GET ${path} HTTP/${version}\r\nHost: localhost\r\n${fields}\r\n`;

// A request on a connection of its own.
export async function ask(server, path, options) {
  const headers = { connection: 'close', ...options?.headers };
  const response = await fetch(server.url + path, { ...options, headers });
  return { status: response.status, body: await response.text() };
}

export async function checkAlive(server) {
  assert.deepEqual(await ask(server, '/healthz'), { status: 200, body: 'ok' });
}

export async function publish(server, lines) {
  assert.equal((await ask(server, '/publish', { method: 'POST', body: lines.join('\n') })).status, 204);
}

// `count` connections at once; they are closed when `use` is done, whatever its end.
export async function withConnections(server, count, use) {
  const connections = [];
  try {
    for (let i = 0; i < count; i++) connections.push(await RawConnection.open(server));
    await use(connections);
  } finally {
    for (const connection of connections) connection.close();
  }
}

// ---- the load generator ----

// Resolves to its report. It exits 0 only if no answer was wrong; what it reports all the same is in the error.
export function load(mode, options) {
  const args = Object.entries(options).flatMap(([name, value]) => [`--${name}`, String(value)]);
  return new Promise((resolve, reject) => {
    execFile(join(buildFolder(), 'bench/load'), [mode, ...args], { timeout: 660_000 }, (error, stdout, stderr) => {
      if (error) reject(Object.assign(new Error(`load ${mode}: ${error.message}\n${stdout}${stderr}`), { report: stdout.startsWith('{') ? JSON.parse(stdout) : null }));
      else resolve(JSON.parse(stdout));
    });
  });
}

// ---- a small disk ----

export const DISK_MIB = 4;

// A small disk in a mount namespace of its own: {path, enter: words before a command, folder: its files from here}.
// Null where this system does not let us.
export async function smallDisk(t) {
  const path = await mkdtemp(join(tmpdir(), 'fermata-disk-'));
  t.after(() => rm(path, { recursive: true, force: true }));
  const mount = `mount -t tmpfs -o size=${DISK_MIB}m,mode=0700 fermata "$1" && echo ready && read -r end`;
  const flags = process.getuid() === 0 ? ['-m'] : ['-r', '-m'];
  const keeper = spawn('unshare', [...flags, 'sh', '-c', mount, 'sh', path], { stdio: ['pipe', 'pipe', 'ignore'] });
  const gone = once(keeper, 'close');
  keeper.on('error', () => {});
  keeper.stdin.on('error', () => {});
  t.after(async () => { keeper.stdin.end('\n'); await gone; });
  const ready = await Promise.race([once(keeper.stdout, 'data').then(() => true), gone.then(() => false, () => false)]);
  if (!ready) return null;
  const enter = ['nsenter', ...(process.getuid() === 0 ? [] : ['-U', '--preserve-credentials']), '-t', String(keeper.pid), '-m', '--'];
  return { path, enter, folder: `/proc/${keeper.pid}/root${path}` };
}

// Writes zeros until there is no room for one more byte, or up to a size.
export async function fill(disk, bytes = Infinity) {
  const file = await open(join(disk.folder, 'ballast'), 'a');
  try {
    if (bytes !== Infinity) await file.write(Buffer.alloc(bytes));
    else for (let size = 65536; size >= 1;) {
      const written = await file.write(Buffer.alloc(size)).then(({ bytesWritten }) => bytesWritten, (error) => {
        assert.equal(error.code, 'ENOSPC');
        return 0;
      });
      if (written < size) size = Math.floor(size / 2);
    }
  } finally {
    await file.close();
  }
}

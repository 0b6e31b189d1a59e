// SPDX-License-Identifier: Apache-2.0
//
// The program under test: one `fermata serve` with a fresh data folder, on a port of its own.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const START_MS_MAX = 60_000;
const STOP_MS_MAX = 60_000;
const READY = /^fermata: listening on http:\/\/(.+):(\d+)$/m;
const SANITIZER = /ERROR: \w+Sanitizer|WARNING: ThreadSanitizer|runtime error:/;

// The folder of the build under test.
export function buildFolder() {
  const folder = process.env.FERMATA_BUILD;
  assert.ok(folder, 'FERMATA_BUILD must name the build folder');
  return folder;
}

// Settles as the promise does, or fails after `ms`, so that no test hangs.
export async function within(ms, what, promise) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what}: nothing within ${ms} ms`)), ms);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

// Settings of the tests' own environment are not the server's.
const inherited = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('FERMATA_')));

// Resolves when the server listens. `data` takes over the folder of one that was stopped with keep, or killed; such a
// folder stays when the start fails. `before` are the words of a command that runs the program.
export async function startServer({ env = {}, args = [], data, before = [], program = join(buildFolder(), 'fermata') } = {}) {
  const folder = data ?? await mkdtemp(join(tmpdir(), 'fermata-test-'));
  const [command, ...words] = [...before, program, 'serve', ...args];
  const proc = spawn(command, words, {
    env: { ...inherited, FERMATA_LISTEN: '127.0.0.1:0', FERMATA_DATA: folder, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let stdout = '', stderr = '';
  proc.stderr.setEncoding('utf8').on('data', (text) => { stderr += text; });
  const exited = new Promise((resolve) => {
    proc.once('close', (code, signal) => resolve({ code, signal }));
    proc.once('error', (error) => resolve({ code: null, signal: null, error }));
  });
  const ready = new Promise((resolve, reject) => {
    proc.stdout.setEncoding('utf8').on('data', (text) => {
      stdout += text;
      const match = READY.exec(stdout);
      if (match) resolve(match);
    });
    exited.then(({ code, signal, error }) => reject(
      error ?? new Error(`the server ended with ${signal ?? code} before it listened:\n${stderr}`)));
  });
  const remove = () => rm(folder, { recursive: true, force: true });

  let match;
  try {
    match = await within(START_MS_MAX, 'start', ready);
  } catch (error) {
    proc.kill('SIGKILL');
    await exited;
    if (!data) await remove();
    throw error;
  }
  const [, host, port] = match;

  return {
    url: `http://${host}:${port}`, host, port: Number(port), pid: proc.pid, data: folder, proc, exited,
    stderr: () => stderr,

    // Ends it in good order, and fails unless it was. The folder goes, unless `keep`.
    async stop({ keep = false } = {}) {
      proc.kill('SIGTERM');
      let result;
      try {
        result = await within(STOP_MS_MAX, 'stop', exited);
      } finally {
        if (!result) proc.kill('SIGKILL');
        await exited;
        if (!keep) await remove();
      }
      assert.doesNotMatch(stderr, SANITIZER);
      assert.deepEqual(result, { code: 0, signal: null }, stderr);
    },

    // Ends it at once. The folder stays for the next one.
    async kill9() {
      proc.kill('SIGKILL');
      await within(STOP_MS_MAX, 'kill', exited);
      assert.doesNotMatch(stderr, SANITIZER);
    },
  };
}

// SPDX-License-Identifier: Apache-2.0
//
// A real terminal around the program: tmux with a socket of its own, 100 columns and 30 rows, read as text. Nothing
// here sleeps for a length of time that was guessed: every step waits for what the screen shows.

import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';

import { buildFolder, within } from '../api/server.mjs';
import { get, runOf, waitFor } from '../api/talk.mjs';

const POLL_MS = 20;
const SCREEN_MS_MAX = 20_000;
const RUN_MS_MAX = 120_000;
const LONG_MS_MAX = 90_000; // a run of ten thousand words, letter by letter
const SANITIZER = /ERROR: \w+Sanitizer|runtime error:/;

const program = () => resolve(buildFolder(), 'fermata');
const pause = () => new Promise((done) => { setTimeout(done, POLL_MS); });
const quoted = (word) => `'${word.replaceAll("'", "'\\''")}'`;

function call(command, args, env) {
  return new Promise((done, failed) => {
    execFile(command, args, { env, timeout: SCREEN_MS_MAX }, (error, stdout, stderr) => {
      if (error) failed(new Error(`${command} ${args.join(' ')}: ${error.message}\n${stderr}`)); else done(stdout);
    });
  });
}

export class Screen {
  // `fermata` with these words on a screen; its exit code is shown as `[code]` when it has ended, and the terminal's
  // settings before and after it are compared by `restored`.
  static async open(t, home, words, { env = {}, lang = 'C.UTF-8' } = {}) {
    const screen = new Screen();
    screen.folder = await mkdtemp(join(tmpdir(), 'fermata-screen-'));
    screen.socket = `fermata-${process.pid}-${randomBytes(4).toString('hex')}`;
    screen.env = { PATH: process.env.PATH, TMUX_TMPDIR: screen.folder, LANG: 'C.UTF-8', HOME: screen.folder, ASAN_OPTIONS: process.env.ASAN_OPTIONS ?? '' };
    t.after(() => screen.close());
    const set = { FERMATA_DATA: home.data, LANG: lang, HOME: screen.folder, ASAN_OPTIONS: `${screen.env.ASAN_OPTIONS}:detect_leaks=1`, ...env };
    const inner = [
      `stty -g >${screen.folder}/before`,
      `${Object.entries(set).map(([name, value]) => `${name}=${quoted(value)}`).join(' ')} ${[program(), ...words].map(quoted).join(' ')} 2>${screen.folder}/stderr`,
      'echo "[$?]"', `stty -g >${screen.folder}/after`, 'echo "[end]"', 'exec sleep 600',
    ].join('; ');
    await screen.tmux('-u', '-f', '/dev/null', 'new-session', '-d', '-x', '100', '-y', '30', 'sh', '-c', inner);
    return screen;
  }

  tmux(...args) {
    return call('tmux', ['-L', this.socket, ...args], this.env);
  }

  async text() {
    return (await this.tmux('capture-pane', '-p')).replace(/[ \t]+$/gm, '').trimEnd();
  }

  // The screen, once it fits: text that is in it, an expression, or a function.
  async until(what) {
    const fits = typeof what === 'string' ? (text) => text.includes(what) : what instanceof RegExp ? (text) => what.test(text) : what;
    const end = Date.now() + SCREEN_MS_MAX;
    for (;;) {
      const text = await this.text();
      if (fits(text)) return text;
      if (Date.now() > end) {
        const stderr = await readFile(join(this.folder, 'stderr'), 'utf8').catch(() => '');
        assert.fail(`no ${what} within ${SCREEN_MS_MAX} ms on\n${text}\n${stderr}`);
      }
      await pause();
    }
  }

  // Exactly this screen, ids aside.
  async shows(expected) {
    const plain = (text) => text.replace(/\b(evt|chat|int)_[0-9a-z]{26}\b/g, '$1_ID');
    let last = '';
    try {
      await this.until((text) => { last = plain(text); return last === expected.trim(); });
    } catch {
      assert.equal(last, expected.trim());
    }
  }

  type(text) {
    return this.tmux('send-keys', '-l', '--', text);
  }

  press(...keys) {
    return this.tmux('send-keys', ...keys);
  }

  async say(text) {
    await this.type(text);
    await this.press('Enter');
  }

  // As a terminal pastes: between marks, if the program asked for them.
  async paste(text) {
    await this.tmux('set-buffer', '--', text);
    await this.tmux('paste-buffer', '-p');
  }

  // Its exit code, after the terminal was found as it had been before.
  async ended() {
    const text = await this.until('[end]');
    const [before, after] = await Promise.all(['before', 'after'].map((name) => readFile(join(this.folder, name), 'utf8')));
    assert.equal(after, before);
    return Number(/\[(\d+)\]/.exec(text)[1]);
  }

  // The process on the screen, for signals.
  async pid() {
    const shell = (await this.tmux('display-message', '-p', '#{pane_pid}')).trim();
    return Number((await readFile(`/proc/${shell}/task/${shell}/children`, 'utf8')).trim().split(' ')[0]);
  }

  async close() {
    const stderr = await readFile(join(this.folder, 'stderr'), 'utf8').catch(() => '');
    await this.tmux('kill-server').catch(() => {});
    await rm(this.folder, { recursive: true, force: true });
    assert.doesNotMatch(stderr, SANITIZER);
  }
}

// Stops the process while the newest conversation's run goes on to its end: what it reads then is far behind.
export async function fallBehind(home, pid) {
  process.kill(pid, 'SIGSTOP');
  const { threads: [{ threadId }] } = (await get(home.server, '/threads?limit=1')).json();
  await waitFor('the run', async () => (await runOf(home.server, threadId)).status === 'completed', LONG_MS_MAX);
  process.kill(pid, 'SIGCONT');
}

// The program in a pipe: {code, stdout, stderr}. Of several pieces of input each is written when the output fits the
// expression before it.
export async function piped(home, words, input, { env = {}, lang = 'C.UTF-8', onOutput = () => {} } = {}) {
  const child = spawn(program(), words, {
    env: { PATH: process.env.PATH, FERMATA_DATA: home.data, LANG: lang, ASAN_OPTIONS: process.env.ASAN_OPTIONS ?? '', ...env },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  let stdout = '', stderr = '';
  child.stdout.setEncoding('utf8').on('data', (text) => { stdout += text; }).once('data', () => onOutput(child));
  child.stderr.setEncoding('utf8').on('data', (text) => { stderr += text; });
  child.stdin.on('error', () => {}); // it may end before it has read everything
  const ended = new Promise((done) => { child.once('close', (code) => done(code)); });
  child.stdin.end(input);
  try {
    const code = await within(RUN_MS_MAX, words.join(' '), ended);
    assert.doesNotMatch(stderr, SANITIZER);
    return { code, stdout, stderr };
  } finally {
    child.kill('SIGKILL');
  }
}

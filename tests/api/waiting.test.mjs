// SPDX-License-Identifier: Apache-2.0
//
// docs/WAITING.md, as it stands: its shell blocks, run by sh, with curl, on the demo model. Once straight through, and
// once with the server killed and started again before each answer.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';

import { Home } from './home.mjs';
import { within } from './server.mjs';
import { AGENT, history, runOf } from './talk.mjs';

const PAGE = new URL('../../docs/WAITING.md', import.meta.url);
const BLOCK = /^```sh\n(.*?)^```$/gms;
const ANSWER = /\/answer"/; // a line that answers
const COMMAND_MS_MAX = 30_000;

// A shell that is told commands bit by bit, as by a person with a terminal.
class Shell {
  #out = '';
  #wake = () => {};

  constructor(t) {
    const proc = spawn('sh', ['-eu'], { stdio: ['pipe', 'pipe', 'pipe'] });
    this.stdin = proc.stdin;
    this.stdin.on('error', () => {}); // its end tells
    this.exited = new Promise((resolve) => { proc.once('close', (code, signal) => { resolve(code ?? signal); this.#wake(); }); });
    this.exited.then((status) => { this.status = status; });
    for (const stream of [proc.stdout, proc.stderr])
      stream.setEncoding('utf8').on('data', (text) => { this.#out += text; this.#wake(); });
    t.after(async () => { proc.kill('SIGKILL'); await this.exited; });
  }

  // Runs the lines to their end: what they printed.
  async run(lines) {
    const mark = `--- ${lines.length} done ---\n`;
    this.#out = '';
    this.stdin.write(`${lines}\necho '${mark.trim()}'\n`);
    const done = async () => {
      while (!this.#out.endsWith(mark)) {
        assert.equal(this.status, undefined, `the shell ended at\n${lines}\n${this.#out}`);
        await new Promise((resolve) => { this.#wake = resolve; });
      }
    };
    await within(COMMAND_MS_MAX, lines, done());
    return this.#out.slice(0, -mark.length);
  }
}

// The commands of the page, cut before each answer.
async function commands() {
  const lines = [...(await readFile(PAGE, 'utf8')).matchAll(BLOCK)].flatMap(([, block]) => block.trimEnd().split('\n'));
  const pieces = [[]];
  for (const line of lines) {
    if (ANSWER.test(line)) pieces.push([]);
    pieces.at(-1).push(line);
  }
  return pieces.map((piece) => piece.join('\n'));
}

async function followPage(t, beforeAnswer, home, times = 1) {
  const shell = new Shell(t);
  const api = () => `API=${home.server.url}${AGENT}`;
  const pieces = await commands();
  assert.equal(pieces.length, 3, 'a start and two answers');
  let printed = await shell.run(`${api()}\n${pieces[0]}`);
  for (const piece of pieces.slice(1)) {
    await beforeAnswer(home);
    printed += await shell.run(`${api()}\n${piece}`);
  }

  for (const type of ['ask_user', 'confirm']) assert.match(printed, new RegExp(`"type":"${type}","status":"open"`));
  assert.equal(printed.match(/"status":"resolved"/g)?.length >= 2, true, printed);
  assert.equal(printed.match(/BEGIN:VEVENT/g)?.length, times, 'one entry in the calendar each time');
  assert.equal((await runOf(home.server, 't1')).status, 'completed');
  const { messages, openInteractions } = await history(home.server, 't1');
  assert.deepEqual(messages.map(({ role }) => role), Array(times).fill(
    ['user', 'assistant', 'clarify', 'tool', 'assistant', 'interaction', 'tool', 'assistant']).flat());
  assert.deepEqual(openInteractions, []);
  assert.ok(messages.at(-1).content, 'the report');
  assert.equal((await home.run(['check', '--audit'])).code, 0);
}

async function start(t) {
  const home = await Home.make(t);
  await home.start();
  return home;
}

test('the page works as it stands, and once more', async (t) => {
  const home = await start(t);
  for (const times of [1, 2]) await followPage(t, () => {}, home, times);
});

test('and with the server killed and started again before each answer', async (t) => followPage(t, async (home) => {
  await home.server.kill9();
  home.server = null;
  await home.start();
}, await start(t)));

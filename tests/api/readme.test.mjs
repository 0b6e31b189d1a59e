// SPDX-License-Identifier: Apache-2.0
//
// The shell blocks of README.md and docs/TERMINAL.md, pasted whole into sh, once and twice, with a server on the demo
// model. A block that is new needs a row: what it prints, or why it cannot be tried here.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { copyFileSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

import { startFakeModel } from '../tools/fake-model.mjs';
import { Home } from './home.mjs';
import { buildFolder } from './server.mjs';

const PASTE_MS_MAX = 60_000;
const ROOT = new URL('../../', import.meta.url);
const blocksOf = (page) => [...readFileSync(new URL(page, ROOT), 'utf8').matchAll(/^```sh\n(.*?)^```$/gms)].map(([, block]) => block);

// How a block begins: what it prints, each at least once; `skip`: why it is not tried.
const ROWS = {
  'README.md': [
    { begins: 'make run ', skip: 'builds, serves and tests everything' },
    { begins: 'API=http://127.0.0.1:8080/api/v1/agent T=first-', prints: [/"runId":/, /"role":"assistant"/, /event: run\.finished/] },
    { begins: 'build/fermata chat ', prints: [/^$/] },
    { begins: 'build/fermata inbox ', prints: [/Nothing waits for you/, /demo/i] },
    { begins: 'build/fermata channel login', skip: 'needs a telephone with WeChat' },
    { begins: 'API=http://127.0.0.1:8080/api/v1/agent T=meeting-',
      prints: [/"type":"ask_user","status":"open"/, /"type":"confirm","status":"open"/, /"start_time":/, /"decision":"approve"/, /"role":"assistant"/] },
    { begins: 'API=http://127.0.0.1:8080/api/v1/agent T=cards-', prints: [/"uiSchema":/, /"attachment":\{"id":/] },
    { begins: 'export FERMATA_MODEL_PROVIDER', prints: [/^model +ok: /m] },
    { begins: 'build/fermata mcp ', prints: [/^$/] },
    { begins: 'KEY=', prints: [/"user":"me"/] },
  ],
  'docs/TERMINAL.md': [
    { begins: 'fermata chat ', skip: 'a list of commands' },
    { begins: 'echo "What is on my calendar?"', prints: [/calendar/i, /How long/i, /Approval needed/, /"type":"run\.finished"/] },
  ],
};

const paste = (lines, options) => new Promise((done) => {
  execFile('sh', ['-c', lines], { timeout: PASTE_MS_MAX, ...options }, (error, stdout, stderr) => done({ code: error ? error.code : 0, stdout, stderr }))
    .stdin.end();
});

// A folder as one stands in after the build: the program in it, and what the blocks name.
async function workplace(t) {
  const folder = await mkdtemp(join(tmpdir(), 'fermata-readme-'));
  t.after(() => rm(folder, { recursive: true, force: true }));
  mkdirSync(join(folder, 'build'));
  symlinkSync(resolve(buildFolder(), 'fermata'), join(folder, 'build', 'fermata'));
  copyFileSync(fileURLToPath(new URL('README.md', ROOT)), join(folder, 'README.md'));
  for (const name of ['letter.txt', 'questions.txt']) writeFileSync(join(folder, name), 'Hello!\n');
  return folder;
}

for (const [page, rows] of Object.entries(ROWS)) {
  test(`${page}: every block has its row, in order`, () => {
    const blocks = blocksOf(page);
    assert.equal(blocks.length, rows.length);
    rows.forEach(({ begins }, i) => assert.ok(blocks[i].startsWith(begins), `${begins}\n${blocks[i]}`));
  });

  rows.forEach(({ begins, prints, skip }, i) => test(`${page}: ${begins}`, { skip }, async (t) => {
    const [home, cwd, model] = [await Home.make(t), await workplace(t), await startFakeModel({ kind: 'openai', answers: [] })];
    t.after(() => model.close());
    const server = await home.start();
    const env = { PATH: `${join(cwd, 'build')}:${process.env.PATH}`, HOME: cwd, FERMATA_DATA: home.data };
    const lines = blocksOf(page)[i].replaceAll('http://127.0.0.1:8080', server.url).replaceAll('http://127.0.0.1:11434/v1', model.url);
    for (const time of ['once', 'twice']) {
      const { code, stdout, stderr } = await paste(lines, { cwd, env });
      assert.equal(code, 0, `${time}: ${stdout}${stderr}`);
      assert.doesNotMatch(stdout + stderr, /"code":"[a-z_]+"|curl: /, time);
      for (const pattern of prints) assert.match(stdout, pattern, `${time}: ${stderr}`);
    }
  }));
}

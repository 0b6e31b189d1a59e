// SPDX-License-Identifier: Apache-2.0
//
// The command line as a person or a script meets it: what goes where, and the exit codes.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { after, before, test } from 'node:test';
import { buildFolder } from './server.mjs';

const RUN_MS_MAX = 20_000;
let folder;

before(async () => { folder = await mkdtemp(join(tmpdir(), 'fermata-cli-')); });
after(() => rm(folder, { recursive: true, force: true }));

// Runs in a folder of its own, without the variables of whoever runs the tests.
function fermata(args, env = {}) {
  const program = resolve(buildFolder(), 'fermata');
  const options = { cwd: folder, env: { PATH: process.env.PATH, ...env }, timeout: RUN_MS_MAX };
  return new Promise((done) => {
    execFile(program, args, options, (error, stdout, stderr) => {
      done({ code: error ? error.code : 0, stdout, stderr });
    });
  });
}

const rows = [
  // what, arguments, environment, exit code, standard output, standard error
  ['no command', [], {}, 2, /^$/, /^Usage: fermata COMMAND/],
  ['help', ['help'], {}, 0, /^Usage: fermata COMMAND[^]*--limits-body SIZE/, /^$/],
  ['help in Chinese', ['help'], { LANG: 'zh_CN.UTF-8' }, 0, /^用法：fermata/, /^$/],
  ['help about one command', ['help', 'key'], {}, 0, /key revoke ID/, /^$/],
  ['help about no command', ['help', 'kez'], {}, 2, /^$/, /^fermata: unknown command "kez"; did you mean "key add"\?\n$/],
  ['--help anywhere', ['serve', '--nonsense', '--help'], {}, 0, /^Usage:/, /^$/],
  ['-h', ['-h'], {}, 0, /^Usage:/, /^$/],
  ['version', ['version'], {}, 0, /^fermata \d+\.\d+\.\d+\nbuilt with .*sqlite3 \d.*\n$/, /^$/],
  ['--version', ['--version'], {}, 0, /^fermata \d/, /^$/],
  ['unknown command', ['srve'], {}, 2, /^$/, /^fermata: unknown command "srve"; did you mean "serve"\?\n$/],
  ['unknown flag', ['serve', '--lisen', 'x'], {}, 2, /^$/, /did you mean "--listen"\?/],
  ['wrong flag', ['serve', '--limits-body', '16MB'], {}, 2, /^$/, /^fermata: --limits-body: limits\.body: "16MB" is not a number; write a size/],
  ['wrong variable', ['serve'], { FERMATA_LISTEN: 'here' }, 2, /^$/, /^fermata: FERMATA_LISTEN: listen: "here" has no port/],
  ['missing file', ['serve', '--config', 'none.yaml'], {}, 2, /^$/, /^fermata: none\.yaml: cannot be read/],
];

for (const [what, args, env, code, stdout, stderr] of rows) {
  test(what, async () => {
    const run = await fermata(args, env);
    assert.match(run.stderr, stderr);
    assert.match(run.stdout, stdout);
    assert.equal(run.code, code);
  });
}

test('an unknown key in the file is refused with its line and the nearest one', async () => {
  const file = join(folder, 'fermata.yaml');
  await writeFile(file, 'limits:\n  bdy: 1MiB\n');
  try {
    const run = await fermata(['serve']);
    assert.equal(run.stderr, 'fermata: fermata.yaml:2: "limits.bdy" is an unknown key; did you mean "limits.body"?\n');
    assert.equal(run.code, 2);
  } finally {
    await rm(file);
  }
});

test('an unknown variable is a warning', async () => {
  const run = await fermata(['check'], { FERMATA_LISTN: 'x' });
  assert.match(run.stderr, /FERMATA_LISTN is unknown and ignored; did you mean \\?"FERMATA_LISTEN/);
  assert.match(run.stdout, /^listen: 127\.0\.0\.1:8080 {2}# default$/m);
});

test('check says where each value came from and hides the key', async () => {
  const env = { FERMATA_API_KEY: 'TOPSECRET-0123456789', FERMATA_LIMITS_RATE: '5' };
  const run = await fermata(['check', '--data', 'd'], env);
  assert.match(run.stdout, /^data: d {2}# --data$/m);
  assert.match(run.stdout, /^ {2}rate: 5 {2}# FERMATA_LIMITS_RATE$/m);
  assert.match(run.stdout, /^# api_key: \(hidden\) {2}# FERMATA_API_KEY$/m);
  assert.doesNotMatch(run.stdout + run.stderr, /TOPSECRET/);
});

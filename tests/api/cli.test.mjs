// SPDX-License-Identifier: Apache-2.0
//
// The command line as a person or a script meets it: what goes where, and the exit codes.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { chmod, mkdtemp, open, readFile, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { after, before, describe, test } from 'node:test';

import { Home } from './home.mjs';
import { buildFolder } from './server.mjs';
import { waitFor } from './talk.mjs';

const RUN_MS_MAX = 60_000;
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

test('migrate: the database is made, then nothing is to do, and not under a server', async (t) => {
  const home = await Home.make(t);
  const [, schema] = /^schema 0 -> (\d+)\n$/.exec((await home.run(['migrate'])).stdout);
  assert.deepEqual(await home.run(['migrate']), { code: 0, stdout: `schema ${schema}: nothing to do\n`, stderr: '' });
  await home.start();
  const { code, stderr } = await home.run(['migrate']);
  assert.equal(code, 1);
  assert.match(stderr, /^fermata: .*another/);
});

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

for (const [what, args, reason] of [
  ['half a command', ['key'], /^fermata: "key" needs one more word; `fermata help key` lists them\n$/],
  ['an unknown second word', ['key', 'ad'], /unknown command "key ad"; did you mean "key add"\?/],
  ['a flag that is needed', ['key', 'add'], /^fermata: `fermata key add` needs --user NAME\n$/],
  ['an unknown role', ['key', 'add', '--user', 'ann', '--role', 'oper'], /--role does not know "oper"/],
  ['an operand that is needed', ['key', 'revoke'], /^fermata: `fermata key revoke` needs ID behind it\n$/],
  ['a word too many', ['serve', 'now'], /^fermata: `fermata serve` does not take "now"\n$/],
  ['a flag given twice', ['serve', '--data', 'a', '--data', 'b'], /^fermata: --data is given twice; remove one\n$/],
  ['control characters', ['key', 'add', '--user', 'a\u001b[31m'],
    /^fermata: --user has characters that cannot be printed\n$/],
]) {
  test(`refused: ${what}`, async () => {
    const run = await fermata(args);
    assert.match(run.stderr, reason);
    assert.deepEqual([run.code, run.stdout], [2, '']);
  });
}

test('the file in the working directory counts, below the environment and flags', async () => {
  const file = join(folder, 'fermata.yaml');
  await writeFile(file, 'listen: 127.0.0.1:1111\nlimits: {rate: 1, connections: 11}\nlog: warn\n');
  try {
    const env = { FERMATA_LIMITS_RATE: '2', FERMATA_LIMITS_CONNECTIONS: '22' };
    const run = await fermata(['check', '--data', 'd', '--limits-rate', '3'], env);
    assert.match(run.stdout, /^listen: 127\.0\.0\.1:1111 {2}# fermata\.yaml:1$/m);
    assert.match(run.stdout, /^ {2}rate: 3 {2}# --limits-rate$/m);
    assert.match(run.stdout, /^ {2}connections: 22 {2}# FERMATA_LIMITS_CONNECTIONS$/m);
    assert.match(run.stdout, /^log: warn {2}# fermata\.yaml:3$/m);
    assert.equal(run.code, 0);
  } finally {
    await rm(file);
  }
});

describe('the data folder', () => {
  const modeOf = async (path) => ((await stat(path)).mode & 0o7777).toString(8);

  test('and everything in it is for its owner only, whatever the umask', async (t) => {
    const home = await Home.make(t);
    const data = join(home.data, 'made');
    await new Promise((done, failed) => {
      const script = 'umask 0 && exec "$0" key add --user ann --data "$1"';
      execFile('/bin/sh', ['-c', script, resolve(buildFolder(), 'fermata'), data], { env: { PATH: process.env.PATH } },
        (error) => { if (error) failed(error); else done(); });
    });
    home.env.FERMATA_DATA = data;
    await home.start();
    assert.equal(await modeOf(data), '700');
    const names = await readdir(data);
    for (const name of ['fermata.db', 'fermata.lock', 'fermata.sock', 'secret.key']) {
      assert.ok(names.includes(name), name);
    }
    const folders = ['blobs', 'spool'];
    for (const name of names) assert.equal(await modeOf(join(data, name)), folders.includes(name) ? '700' : '600', name);
  });

  test('is refused when others can look into it, and the command that closes it is told', async (t) => {
    const home = await Home.make(t);
    assert.equal((await home.run(['check'])).code, 0);
    const rows = [['.', 0o755, 0o700], ['fermata.db', 0o644, 0o600], ['secret.key', 0o640, 0o600]];
    for (const [path, opened, closed] of rows) {
      await chmod(join(home.data, path), opened);
      for (const command of ['serve', 'check']) {
        const run = await home.run([command], { FERMATA_LISTEN: '127.0.0.1:0' });
        assert.equal(run.code, 1, `${command} with ${path} open`);
        assert.match(run.stdout + run.stderr, new RegExp(`is open to other users .*chmod ${closed.toString(8)}`));
      }
      await chmod(join(home.data, path), closed);
    }
    await home.start();
  });

  test('is named when it cannot be one', async (t) => {
    const home = await Home.make(t);
    await writeFile(join(home.data, 'file'), '');
    for (const name of ['file', 'none/deeper']) {
      const data = join(home.data, name);
      const run = await home.run(['serve'], { FERMATA_DATA: data, FERMATA_LISTEN: '127.0.0.1:0' });
      assert.equal(run.code, 1);
      assert.ok(run.stderr.includes(data), run.stderr);
    }
  });

  test('of a newer version, or of another program, is left alone', async (t) => {
    const home = await Home.make(t);
    await home.addKey('ann');
    const patch = async (at, bytes) => {
      const file = await open(join(home.data, 'fermata.db'), 'r+');
      try {
        const { buffer } = await file.read(Buffer.alloc(bytes.length), 0, bytes.length, at);
        await file.write(bytes, 0, bytes.length, at);
        return buffer;
      } finally {
        await file.close();
      }
    };
    // SQLite's header: the user version at byte 60, the application's id at 68.
    for (const [at, reason] of [[60, /newer version/], [68, /belongs to another program/]]) {
      const former = await patch(at, Buffer.from([0, 0, 0x27, 0x0f]));
      for (const args of [['serve'], ['key', 'list'], ['check']]) {
        const run = await home.run(args, { FERMATA_LISTEN: '127.0.0.1:0' });
        assert.equal(run.code, 1, args.join(' '));
        assert.match(run.stdout + run.stderr, reason);
      }
      await patch(at, former);
    }
    assert.match((await home.run(['key', 'list'])).stdout, / ann /);
  });
});

// What is printed must not end up in the next file that is opened.
test('started with closed descriptors, a command works or says that it cannot print', async (t) => {
  const home = await Home.make(t);
  const closed = (args, how) => new Promise((done) => {
    execFile('/bin/sh', ['-c', `exec "$@" ${how}`, 'sh', resolve(buildFolder(), 'fermata'), ...args], { env: { PATH: process.env.PATH, FERMATA_DATA: home.data }, timeout: RUN_MS_MAX },
      (error, stdout, stderr) => done({ code: error ? error.code : 0, stdout, stderr }));
  });
  for (const how of ['<&-', '<&- >&-', '>&-', '<&- >&- 2>&-']) {
    const { code, stdout } = await closed(['key', 'add', '--user', 'ann'], how);
    assert.deepEqual([code, stdout !== ''], how.includes('>') ? [1, false] : [0, true], how);
  }
  const keys = (await home.run(['key', 'list'])).stdout.trim().split('\n');
  assert.deepEqual(keys.map((line) => line.split(/ +/)[1]).sort(), ['active', 'revoked', 'revoked', 'revoked'], 'what nobody has seen is worth nothing');
  assert.equal((await closed(['check'], '<&-')).code, 0);
  const server = execFile('/bin/sh', ['-c', 'exec "$@" <&- >&- 2>&-', 'sh', resolve(buildFolder(), 'fermata'), 'serve'], { env: { PATH: process.env.PATH, FERMATA_DATA: home.data, FERMATA_LISTEN: '127.0.0.1:0' } });
  const ended = new Promise((done) => { server.on('exit', (code) => done(code)); });
  t.after(() => server.kill('SIGKILL'));
  await waitFor('it runs', async () => (await readdir(home.data)).includes('fermata.sock') && (await home.run(['key', 'list'])).stdout); // a command before that might have the lock
  assert.equal(await readFile(join(home.data, 'fermata.lock'), 'utf8'), `${server.pid}\nserve\n`);
  server.kill('SIGTERM');
  assert.equal(await ended, 0);
});

test('check changes nothing under a running server', async (t) => {
  const home = await Home.make(t);
  await home.start();
  const run = await home.run(['check']);
  assert.equal(run.code, 0);
  assert.match(run.stdout, /^data +ok: a server is running on it$/m);
});

test('check hides every secret, wherever it came from', async (t) => {
  const home = await Home.make(t);
  const canary = 'TOPSECRET-0123456789';
  const keyFile = join(home.data, 'key.txt'), secretFile = join(home.data, 'secret.txt');
  await writeFile(keyFile, canary, { mode: 0o600 });
  await writeFile(secretFile, canary.repeat(4), { mode: 0o600 });
  const env = { FERMATA_API_KEY_FILE: keyFile, FERMATA_SECRET_FILE: secretFile, FERMATA_LOG: 'debug' };
  const run = await home.run(['check'], env);
  assert.ok(run.stdout.includes(keyFile) && run.stdout.includes(secretFile));
  assert.doesNotMatch(run.stdout + run.stderr, /TOPSECRET/);
  const refused = await home.run(['check'], { FERMATA_API_KEY: `${canary}\u0001` });
  assert.equal(refused.code, 2);
  assert.doesNotMatch(refused.stderr, /TOPSECRET/);
});

test('a key is no flag: everybody would read it in the list of processes', async (t) => {
  const home = await Home.make(t);
  const { stdout: help } = await home.run(['help']);
  const keys = [...(await readFile(new URL('../../src/config/option.c', import.meta.url), 'utf8')).matchAll(/\{"([a-z_.]+)", SECRET,/g)].map(([, name]) => name);
  assert.ok(keys.includes('api_key') && keys.includes('model.api_key'));
  for (const key of keys) {
    const flag = `--${key.replaceAll(/[._]/g, '-')}`, variable = `FERMATA_${key.replaceAll('.', '_').toUpperCase()}`;
    for (const words of [[flag, 'TOPSECRET'], [`${flag}=TOPSECRET`]]) {
      for (const command of [['check'], ['serve'], ['chat'], ['key', 'list']]) {
        const { code, stdout, stderr } = await home.run([...command, ...words]);
        assert.equal(code, 2, stdout + stderr);
        assert.ok(stderr.includes(variable) && stderr.includes(`${flag}-file`), stderr);
        assert.doesNotMatch(stdout + stderr, /TOPSECRET/);
      }
    }
    assert.ok(help.includes(`${variable}=KEY`) && !help.includes(`${flag} `), help);
  }
});

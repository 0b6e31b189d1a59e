// SPDX-License-Identifier: Apache-2.0
//
// A program under `command:` is a stranger: an evil one (tests/tools/mcp-evil.mjs) reaches neither the data folder nor
// the admin socket nor the memory of the server, whatever the means that keep it away; ordinary ones notice nothing.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { chmodSync, chownSync, copyFileSync, mkdirSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';

import { bearer, run } from './home.mjs';
import { buildFolder, startServer } from './server.mjs';
import { accepted, factsOf, openEvents, user, waitFor } from './talk.mjs';

const tool = (name) => fileURLToPath(new URL(`../tools/${name}`, import.meta.url));
const NOBODY = 65534;
const rootHere = process.getuid() === 0;
const PROGRAM = join(buildFolder(), 'fermata');

function works(command, ...args) {
  try {
    execFileSync(command, args, { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

// A server without the right to make namespaces, so that Landlock is left: in a user namespace that may have no others.
const POOR = ['unshare', '-r', 'sh', '-c', 'echo 0 >/proc/sys/user/max_user_namespaces && exec setpriv --bounding-set=-sys_admin --inh-caps=-all "$@"', 'sh'];
const PLAIN = ['setpriv', `--reuid=${NOBODY}`, `--regid=${NOBODY}`, '--clear-groups'];
const canBePoor = works(...POOR, 'true');
const canBePlain = rootHere && works(...PLAIN, PROGRAM, 'version');

const SCRIPT = [{ match: '^try', turns: [{ calls: [{ name: 'guest.try', args: {} }] }, { text: 'Done.' }] }, { turns: [{ text: 'Hello.' }] }];

// A folder with a place for the data, one for the child, a configuration and a key.
async function place(t, { uid } = {}) {
  const folder = await mkdtemp(join(tmpdir(), 'fermata-stranger-'));
  t.after(() => rm(folder, { recursive: true, force: true }));
  const data = join(folder, 'data'), own = join(folder, 'own');
  mkdirSync(data, 0o700);
  mkdirSync(own);
  writeFileSync(join(folder, 'script.jsonl'), SCRIPT.map((line) => `${JSON.stringify(line)}\n`).join(''));
  if (uid !== undefined) for (const path of [folder, data, own]) chownSync(path, uid, uid);
  chmodSync(folder, 0o755);
  return { folder, data, own };
}

async function serve(t, at, { command, before = [], data = at.data, cwd, env = {}, login = true }) {
  const config = join(at.folder, 'fermata.yaml');
  await writeFile(config, `mcp: ${JSON.stringify({ guest: { command, read: ['*'] } })}\nagents: {"assistant": {"policy": {"guest.*": "allow"}}}\n`);
  const key = 'fermata-test-key-of-24-letters';
  const server = await startServer({
    data, before: cwd ? ['env', '-C', cwd, ...before] : before,
    env: { FERMATA_MODEL_PROVIDER: 'scripted', FERMATA_SCRIPT: join(at.folder, 'script.jsonl'), FERMATA_CONFIG: config,
      ...(login ? { FERMATA_API_KEY: key } : {}), ...env },
  });
  let stopped;
  const stop = server.stop;
  server.stop = (how) => stopped ??= stop(how);
  t.after(() => server.stop({ keep: true }));
  return { server, headers: login ? bearer(key) : {}, data };
}

async function resultOf(t, { server, headers }) {
  await waitFor('the guest is there', () => server.stderr().includes('mcp.connected'));
  const { threadId } = await accepted(server, { threadId: 'try', messages: [user('try')] }, headers);
  const events = await openEvents(t, server, threadId, { query: '?after=0', headers });
  const facts = factsOf(await events.until(({ type }) => type === 'run.finished'));
  events.close();
  return facts.find(({ type }) => type === 'tool.call.result').data.result;
}

// From a folder that whoever runs it may read, as that of the sources may not be.
function evil(at, data = at.data) {
  const own = join(at.folder, 'mcp-evil.mjs');
  copyFileSync(tool('mcp-evil.mjs'), own);
  return [process.execPath, own, data, at.own];
}

const SORTS = [
  { name: 'as we run', by: 'mount namespace', before: [] },
  { name: 'as a plain user', by: 'mount namespace', before: PLAIN, uid: NOBODY, skip: !canBePlain },
  { name: 'without namespaces', by: 'Landlock', before: POOR, skip: !canBePoor },
];

describe('an evil program reaches nothing of ours', () => {
  for (const { name, by, before, uid, skip } of SORTS) {
    test(name, { skip }, async (t) => {
      const at = await place(t, { uid });
      const cwd = uid === undefined ? undefined : at.own;
      const here = await serve(t, at, { command: evil(at), before, cwd });
      const found = await resultOf(t, here);
      assert.deepEqual(found.reached, []);
      assert.deepEqual(found.cannot, by === 'Landlock' ? found.cannot.filter((text) => text.startsWith('make a file beside')) : []);
      assert.ok(found.tried > 20);
      assert.equal(found.cwd, cwd ?? process.cwd());
      if (uid) assert.equal(found.uid, uid);
      await waitFor('it is said', () => new RegExp(`mcp\\.wall .*by="?${by}`).test(here.server.stderr()));
      assert.doesNotMatch(here.server.stderr(), /mcp\.no_wall|mcp\.no_login/);
      const [program, ...words] = [...before, PROGRAM, 'key', 'list']; // a person still may
      const keys = execFileSync(program, words, { cwd, env: { PATH: process.env.PATH, FERMATA_DATA: at.data }, encoding: 'utf8' });
      assert.doesNotMatch(keys, /evil/);
    });
  }
});

describe('and an ordinary one notices nothing', () => {
  const PLACES = {
    'with a relative data folder, inside the working folder': { data: () => 'data', cwd: (at) => at.folder },
    'in a working folder that is the data folder': { cwd: (at) => at.data, data: () => '.' },
  };
  for (const [name, { data, cwd }] of Object.entries(PLACES)) {
    test(name, async (t) => {
      const at = await place(t);
      const here = await serve(t, at, { command: evil(at), data: data(at), cwd: cwd(at) });
      const found = await resultOf(t, here);
      assert.deepEqual(found.reached, []);
      assert.deepEqual(found.cannot.filter((text) => !text.startsWith('list its folder')), []);
      assert.equal(found.cwd, cwd(at));
      assert.equal(found.home, process.env.HOME);
      await here.server.stop({ keep: true });
    });
  }

  test('a program that is not there is told as before', async (t) => {
    const at = await place(t);
    const { server } = await serve(t, at, { command: ['no-such-program-here'] });
    await waitFor('the reason', () => /mcp\.away.*no-such-program-here cannot be started: no such program/.test(server.stderr()));
  });
});

describe('what should be known', () => {
  const remarks = (at, env = {}) => run(['check'], { env: { FERMATA_DATA: at.data, FERMATA_CONFIG: join(at.folder, 'fermata.yaml'),
    FERMATA_MODEL_PROVIDER: 'scripted', FERMATA_SCRIPT: join(at.folder, 'script.jsonl'), ...env } });
  const warnings = ({ stdout }) => [...stdout.matchAll(/^warning +(.*)$/gm)].map(([, text]) => text);

  test('without a login a program can approve its own calls: the start and check say so', async (t) => {
    const at = await place(t);
    const { server } = await serve(t, at, { command: evil(at), login: false });
    await waitFor('the warning', () => /mcp\.no_login.*fermata key add/.test(server.stderr()));
    await server.stop({ keep: true });
    assert.ok(warnings(await remarks(at)).some((text) => text.includes('without a login')));
    const keyed = await remarks(at, { FERMATA_API_KEY: 'fermata-test-key-of-24-letters' });
    assert.ok(!warnings(keyed).some((text) => text.includes('without a login')), keyed.stdout);
  });

  test('running as root', { skip: !canBePlain }, async (t) => {
    const at = await place(t);
    const { server } = await serve(t, at, { command: evil(at) });
    await waitFor('the remark', () => /server\.root/.test(server.stderr()));
    await server.stop({ keep: true });
    assert.ok(warnings(await remarks(at)).some((text) => text.includes('runs as root')));
    const mine = await place(t, { uid: NOBODY });
    const plain = await serve(t, mine, { command: evil(mine), before: PLAIN });
    await waitFor('the start', () => plain.server.stderr().includes('server.listening'));
    assert.doesNotMatch(plain.server.stderr(), /server\.root/);
  });
});

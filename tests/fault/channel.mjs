// SPDX-License-Identifier: Apache-2.0
//
// A conversation over WeChat with a question in it, and the server killed somewhere: a message comes in, a question goes
// out, the reply comes in, the answer goes out. Everything that comes in comes twice. The person replies once, to a
// question they can see. Whatever was killed:
//
//   each message is in the conversation once, the question was answered once, with the choice that was replied
//   the person has the question and the answer
//   what they have twice says so in its first line, and only questions and answers are there twice
//   the platform was never asked for more than it allows, and every rule of its protocol was kept

import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';

import { startServer, within } from '../api/server.mjs';
import { startIlink } from '../channels/ilink.mjs';
import { judge, program, readLog, watched } from './kill.mjs';
import { sql, Told } from './oracle.mjs';

const EXIT_MS_MAX = 10_000;
const LIFE_MS_MAX = 30_000;
const QUESTION = '❓ 会议定在哪天？', ANSWER = '好的，就这么定。';
const SCRIPT = { turns: [
  { calls: [{ name: 'ask_user', args: { question: '会议定在哪天？', choices: ['周一', '周二', '周三'] } }], chunk: 65536 },
  { text: ANSWER, chunk: 65536 },
] };
const PERSON = 'alice';

class Place {
  static async make(t) {
    const place = new Place();
    place.folder = await mkdtemp(join(tmpdir(), 'fermata-channel-'));
    t.after(() => rm(place.folder, { recursive: true, force: true }));
    place.ilink = await startIlink({ holdMs: 400 });
    t.after(() => place.ilink.close());
    place.data = join(place.folder, 'data');
    await writeFile(join(place.folder, 'script'), `${JSON.stringify(SCRIPT)}\n`);
    await writeFile(join(place.folder, 'token'), place.ilink.token);
    await writeFile(join(place.folder, 'fermata.yaml'), `channels:\n  wx: {kind: weixin, base_url: "${place.ilink.url}", `
      + `token_file: "${join(place.folder, 'token')}", allow: ["*"]}\n`);
    return place;
  }

  start(env = {}) {
    return startServer({ program, data: this.data, env: {
      FERMATA_CONFIG: join(this.folder, 'fermata.yaml'), FERMATA_MODEL_PROVIDER: 'scripted',
      FERMATA_SCRIPT: join(this.folder, 'script'), ...env,
    } });
  }

  // How far it was: what the person has, and what they said.
  get phase() {
    const { sends } = this.ilink;
    if (!this.said) return 'start';
    if (!sends.some(({ text }) => text.includes(QUESTION))) return 'question';
    if (!this.replied) return 'reply';
    return sends.some(({ text }) => text.includes(ANSWER)) ? 'end' : 'answer';
  }

  say(text) {
    const { id } = this.ilink.say(PERSON, text);
    this.ilink.repeat(id);
    return id;
  }

  // As far as the server goes: from what was said before to the answer, and until the platform was told nothing new.
  async drive(gone) {
    const seen = (text) => this.ilink.waitForSend((sent) => sent.text.includes(text), { timeoutMs: LIFE_MS_MAX });
    if (!this.said) { this.said = true; this.say('订会议'); }
    await Promise.race([gone, seen(QUESTION)]);
    if (!this.replied) { this.replied = true; this.say('2'); }
    await Promise.race([gone, seen(ANSWER)]);
    await Promise.race([gone, this.ilink.waitUntilRead()]);
    await Promise.race([gone, this.settled()]);
  }

  // The last commits: nothing is under way in the store.
  async settled() {
    const open = 'SELECT (SELECT count(*) FROM channel_inbox WHERE state<2) + (SELECT count(*) FROM channel_outbox WHERE state<3)'
      + ' + (SELECT count(*) FROM runs WHERE status<4)';
    for (const end = Date.now() + LIFE_MS_MAX; Date.now() < end; await pause(20))
      if (sql(this.data, open, { flags: ['-readonly', '-cmd', '.timeout 5000'] }).trim() === '0') return;
    throw new Error('something is still under way');
  }
}

// Runs it as far as it gets: did it die?
async function attempt(place, env) {
  let server;
  try {
    server = await place.start(env);
  } catch (error) {
    if (/ended with SIGKILL before it listened/.test(error.message)) return true;
    throw error;
  }
  let failure;
  const gone = server.exited.then(() => { throw new Error('the server has gone'); });
  gone.catch(() => {});
  await place.drive(gone).catch((error) => { failure = error; });
  if (!failure) server.proc.kill('SIGTERM');
  let exit;
  try {
    exit = await within(EXIT_MS_MAX, 'the end of the server', server.exited);
  } catch (error) {
    server.proc.kill('SIGKILL');
    await server.exited;
    throw failure ?? error;
  }
  if (failure && exit.signal !== 'SIGKILL') throw failure;
  assert.ok(exit.signal === 'SIGKILL' || exit.code === 0, `ended with ${exit.signal ?? exit.code}: ${server.stderr()}`);
  return exit.signal === 'SIGKILL';
}

function judgeAll(place, kills) {
  const db = judge(place.folder, new Told());
  const users = db.messages.filter(({ role }) => role === 'user').map(({ content }) => JSON.parse(content));
  assert.deepEqual(users, ['订会议', '2'], 'each message once');
  assert.equal(db.runs.length, 1, 'one run');
  const answers = sql(place.data, "SELECT status || ' ' || answer FROM interactions", { flags: ['-readonly'] }).trim().split('\n');
  assert.deepEqual(answers, ['1 {"choices":["c2"]}'], 'answered once');
  const tool = db.messages.find(({ role }) => role === 'tool');
  assert.equal(JSON.parse(tool.content), '周二');

  const { sends, refused, violations } = place.ilink;
  assert.deepEqual([refused, violations], [[], []]);
  for (const text of [QUESTION, ANSWER]) {
    const shown = sends.filter((sent) => sent.text.includes(text));
    assert.ok(shown.length >= 1, `${text} was delivered`);
    const plain = shown.filter((sent) => sent.text.startsWith(text));
    assert.ok(plain.length <= 1, `${text} twice, and nothing says so: ${JSON.stringify(shown)}`);
    assert.ok(shown.length <= 1 + kills, `${shown.length} times after ${kills} kills`);
  }
  assert.equal(sends.filter(({ text }) => !text.includes(QUESTION) && !text.includes(ANSWER)).length, 0, JSON.stringify(sends));
}

async function inPlace(use) {
  const cleanup = [];
  try {
    return await use(await Place.make({ after: (action) => cleanup.push(action) }));
  } finally {
    for (const action of cleanup.reverse()) await action();
  }
}

// Without a fault: the calls of the server.
export function undisturbed() {
  return inPlace(async (place) => {
    assert.equal(await attempt(place, watched(place.folder, {})), false);
    judgeAll(place, 0);
    return readLog(join(place.folder, 'calls'));
  });
}

// In a folder of its own, a kill at each of `targets`, one after the other. What was killed: [{group, phase}].
export function killAt(targets) {
  return inPlace(async (place) => {
    const kills = [];
    try {
      for (const target of targets) {
        await rm(join(place.folder, 'calls'), { force: true });
        const fault = typeof target === 'number' ? { FAULT_KILL: String(target) } : { FAULT_KIND: target };
        const { phase } = place;
        if (!await attempt(place, watched(place.folder, fault))) break;
        const { group } = (await readLog(join(place.folder, 'calls'))).find(({ fatal }) => fatal);
        kills.push({ group, from: phase, phase: place.phase });
      }
      assert.equal(await attempt(place, {}), false);
      judgeAll(place, kills.length);
    } catch (error) {
      error.message = `killed at ${targets.join(', then ')} (${JSON.stringify(kills)}): ${error.message}`;
      throw error;
    }
    return kills;
  });
}

// SPDX-License-Identifier: Apache-2.0
//
// One run that asks, needs an approval, changes something outside the server, and reports; and the server killed
// somewhere in it. The person repeats what got no answer. Before each restart the database says how far the call was:
//
//     no row, proposed, waiting, approved    earlier: it runs once, nobody is asked
//     started                                between: somebody is asked, and answers by what the shop has on paper
//     everything else                        later: nobody is asked
//
// Whichever it was, in the end the order was placed exactly once, or never if it was rejected; and history has the cards that
// were shown, byte for byte, with every object in its place.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { copyFile, cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { existsSync, lstatSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

import { answer } from '../api/asking.mjs';
import { cut, parts } from '../api/raw-json.mjs';
import { startServer, within } from '../api/server.mjs';
import { get, openEvents, postRun, user, waitFor } from '../api/talk.mjs';
import { storedFacts } from '../tools/facts.mjs';
import { checkOrders, ORDER, Shop } from './approve-shop.mjs';
import { judge, program, readLog, watched } from './kill.mjs';
import { sql, Told } from './oracle.mjs';

const EXIT_MS_MAX = 10_000;
const APPROVED = 2, STARTED = 3, CALL_UNCERTAIN = 8; // tool_calls.state
const ASK_USER = 0, CONFIRM = 1, UNCERTAIN = 3; // interactions.type
const OPEN = 0; // interactions.status
const ENDED = 4; // runs.status, and above
const THREAD = 't1', RUN = 'r1';
const INPUT = { threadId: THREAD, runId: RUN, messages: [user('Order pens', 'u1')] };

// Everything in one piece: no more calls than there are commits and frames.
const SCRIPT = { turns: [
  { calls: [{ name: 'ask_user', args: { question: 'How many?', choices: ['1', '2'] } }], chunk: 65536 },
  { text: 'I will order 2.', calls: [{ name: 'place_order', args: ORDER }], chunk: 65536 },
  { text: 'That is all.', chunk: 65536 },
] };

// ---- places ----

// The data folder of a server that was started and stopped once; each kill begins with a copy.
export async function makeTemplate(t) {
  const folder = await mkdtemp(join(tmpdir(), 'fermata-approve-'));
  t.after(() => rm(folder, { recursive: true, force: true }));
  const server = await startServer({ program, data: join(folder, 'data') });
  await server.stop({ keep: true });
  return join(folder, 'data');
}

class Place {
  static async make(t, template) {
    const place = new Place();
    place.folder = await mkdtemp(join(tmpdir(), 'fermata-approve-'));
    t.after(() => rm(place.folder, { recursive: true, force: true }));
    place.data = join(place.folder, 'data');
    await cp(template, place.data, { recursive: true, filter: (path) => !lstatSync(path).isSocket() });
    await writeFile(join(place.folder, 'script'), `${JSON.stringify(SCRIPT)}\n`);
    place.shop = await Shop.open(t);
    await writeFile(join(place.folder, 'fermata.yaml'), `tools:\n${place.shop.tool()}`);
    return place;
  }

  start(env = {}) {
    return startServer({ program, data: this.data, env: {
      FERMATA_CONFIG: join(this.folder, 'fermata.yaml'), FERMATA_MODEL_PROVIDER: 'scripted',
      FERMATA_SCRIPT: join(this.folder, 'script'), FERMATA_SCRIPT_LOG: join(this.folder, 'asked'), ...env,
    } });
  }

  // Which model calls of the run were made, in their order.
  get rounds() {
    const path = join(this.folder, 'asked');
    return existsSync(path) ? readFileSync(path, 'utf8').split('\n').filter(Boolean).map((line) => JSON.parse(line).round) : [];
  }

  // How far it was when it was killed, from a copy of the files as they are.
  async look() {
    const copy = join(this.folder, 'copy');
    await rm(copy, { recursive: true, force: true });
    await mkdir(copy);
    for (const name of ['fermata.db', 'fermata.db-wal'])
      if (existsSync(join(this.data, name))) await copyFile(join(this.data, name), join(copy, name));
    const [row] = JSON.parse(sql(copy, `SELECT
      (SELECT status FROM runs) AS run,
      (SELECT status FROM interactions WHERE type=${ASK_USER}) AS question, (SELECT status FROM interactions WHERE type=${CONFIRM}) AS confirm,
      (SELECT state FROM tool_calls WHERE tool='place_order') AS state, (SELECT attempts FROM tool_calls WHERE tool='place_order') AS attempts`,
      { flags: ['-json'] }));
    row.turns = storedFacts(copy, { flags: [] }).filter(({ type }) => type === 'text.message.end').length;
    const when = row.state === null || row.state <= APPROVED ? 'earlier' : row.state === STARTED ? 'between' : 'later';
    return { phase: phaseOf(row), when, ...row, rounds: this.rounds.length, executed: this.shop.orders.length };
  }
}

// What it was busy with, by what was stored.
export const PHASES = ['start', 'ask_user', 'answer', 'confirm', 'approve', 'tool', 'finish', 'end'];

function phaseOf({ run, question, confirm, state }) {
  if (run === null) return 'start';
  if (run >= ENDED) return 'end';
  if (question === null) return 'ask_user';
  if (question === OPEN) return 'answer';
  if (confirm === null) return 'confirm';
  if (confirm === OPEN) return 'approve';
  return [APPROVED, STARTED, CALL_UNCERTAIN].includes(state) ? 'tool' : 'finish';
}

// ---- the person ----

class Person {
  told = new Told();
  answered = new Set(); // interactions whose answer was acknowledged
  uncertain = new Set();
  onDecision = () => {};

  constructor(place, decision) {
    this.place = place;
    this.decision = decision;
  }

  async #begin(server) {
    const accepted = await postRun(server, INPUT);
    assert.equal(accepted.status, 202, accepted.text);
    if (this.told.answers.has(RUN)) assert.equal(accepted.text, this.told.answers.get(RUN).body, 'the same request, the same answer');
    this.told.answers.set(RUN, { threadId: THREAD, body: accepted.text });
  }

  async #decide({ type, binding }) {
    if (type === 'ask_user') return { choices: ['c2'] };
    if (type === 'confirm') {
      this.onDecision();
      return { decision: this.decision, binding };
    }
    assert.equal(type, 'uncertain');
    await this.place.shop.quiet();
    const executed = this.place.shop.orders.length;
    assert.ok(executed <= 1, `executed ${executed} times`);
    return { decision: executed ? 'happened' : 'retry' };
  }

  // An answer that was taken before is taken.
  async #answer(server, interaction) {
    const { type, interactionId: id } = interaction;
    if (type === 'uncertain') this.uncertain.add(id);
    if (this.answered.has(id)) return;
    const taken = await answer(server, id, await this.#decide(interaction));
    if (taken.status !== 200) assert.deepEqual([taken.status, taken.json().code], [409, 'already_resolved'], taken.text);
    assert.equal(taken.json().interaction?.status ?? taken.json().status, 'resolved');
    this.answered.add(id);
  }

  // What was shown is what history has, once nothing of it is on its way to object storage any more.
  async #compareCards(server, events) {
    const text = await waitFor('every payload is stored', async () => {
      const answered = await get(server, `/runs/${THREAD}/history`);
      assert.equal(answered.status, 200, answered.text);
      return !answered.text.includes('"storage_missing"') && answered.text;
    });
    const cards = new Map(parts(cut(text, 'messages')).map(([, row]) => [JSON.parse(cut(row, 'id')), cut(row, 'uiSchema')]));
    for (const { type, data } of events.facts) {
      if (!['interaction.request', 'tool.call.result', 'text.message.end'].includes(type)) continue;
      assert.equal(cards.get(data.interactionId ?? data.messageId), data.ui && JSON.stringify(data.ui), `the card of ${type}`);
    }
  }

  // As far as the server goes: from whatever was acknowledged to the end of the run.
  async drive(t, server) {
    await this.#begin(server);
    const events = await openEvents(t, server, THREAD, { query: '?after=0' });
    try {
      for await (const event of events) {
        const { type, data } = event;
        if (type === 'interaction.request') await this.#answer(server, data);
        assert.notEqual(type, 'run.error', JSON.stringify(data));
        if (type !== 'run.finished' || data.outcome === 'interrupted') continue;
        assert.equal(data.outcome, 'completed');
        return await this.#compareCards(server, events);
      }
      throw new Error(`the stream ended (${events.ended})`);
    } finally {
      for (const event of events.all) this.told.saw(event);
      events.close();
    }
  }
}

// ---- one server, killed or not ----

// Runs it as far as it gets: did it die? Any failure but the server's own end is a failure of the test.
async function attempt(t, place, person, env) {
  let server;
  try {
    server = await place.start(env);
  } catch (error) {
    if (/ended with SIGKILL before it listened/.test(error.message)) return true;
    throw error;
  }
  let failure;
  await person.drive(t, server).catch((error) => { failure = error; });
  if (!failure) server.proc.kill('SIGTERM');
  let exit;
  try {
    exit = await within(EXIT_MS_MAX, 'the end of the server', server.exited);
  } catch (error) {
    server.proc.kill('SIGKILL');
    await server.exited;
    throw failure ?? error;
  }
  if (failure && (exit.signal !== 'SIGKILL' || failure instanceof assert.AssertionError)) throw failure;
  assert.ok(exit.signal === 'SIGKILL' || exit.code === 0, `ended with ${exit.signal ?? exit.code}: ${server.stderr()}`);
  return exit.signal === 'SIGKILL';
}

// ---- after it ----

// No model call for a turn that was stored, and in one life of the server none twice.
export function checkRounds(rounds, kills) {
  const lives = [0, ...kills.map((kill) => kill.rounds), rounds.length];
  const stored = [0, ...kills.map((kill) => kill.turns)];
  for (let life = 0; life + 1 < lives.length; life++) {
    const asked = rounds.slice(lives[life], lives[life + 1]);
    assert.ok(asked.every((round, i) => round === stored[life] + 1 + i), `asked for ${asked} when ${stored[life]} were stored`);
  }
  assert.equal(Math.max(...rounds), SCRIPT.turns.length);
}

// Each start of the call whose end was not recorded is asked about, once; and nothing else is.
export function checkUncertain(asked, kills) {
  const lost = new Set(kills.filter(({ when }) => when === 'between').map(({ attempts }) => attempts));
  assert.equal(asked, lost.size, `asked ${asked} times whether it happened`);
}

// Every object that a row names is there, and has the bytes that its name says.
function checkObjects(data) {
  const objects = JSON.parse(sql(data, 'SELECT json_group_array(json_object(\'waiting\', waiting, \'file\', bucket || \'/\' || path)) FROM blobs').trim());
  for (const { waiting, file } of objects) {
    assert.equal(waiting, 0, `${file} is stored`);
    const hash = createHash('sha256').update(readFileSync(join(data, 'blobs', file))).digest('hex');
    assert.equal(file.split('/').at(-1).split('.')[0], hash, file);
  }
  return objects.length;
}

// Returns the database.
async function judgeAll(place, person, kills) {
  const db = judge(place.folder, person.told);
  checkUncertain(person.uncertain.size, kills);
  checkUncertain(db.interactions.filter(({ type }) => type === UNCERTAIN).length, kills);
  checkOrders(place.shop, person.decision === 'approve' ? 1 : 0);
  for (const { key } of place.shop.orders) assert.equal(key, db.calls.find(({ tool }) => tool === 'place_order').call_id);
  checkRounds(place.rounds, kills);
  const results = [...person.told.facts.get(THREAD).values()].filter(({ type }) => type === 'tool.call.result');
  assert.deepEqual(results.map(({ data }) => data.toolName), ['ask_user', 'place_order']);
  assert.equal(results[1].data.error === undefined, person.decision === 'approve', JSON.stringify(results[1].data));
  const executed = person.decision === 'approve';
  assert.equal(checkObjects(place.data), executed ? 1 : 0, 'objects');
  if (!kills.length) assert.equal(results[1].data.ui !== undefined, executed, 'what was done has a card');
  await promisify(execFile)(program, ['check', '--audit'], { env: { FERMATA_DATA: place.data }, timeout: EXIT_MS_MAX });
  return db;
}

// ---- kills ----

async function inPlace(template, decision, use) {
  const cleanup = [];
  const t = { after: (action) => cleanup.push(action) };
  try {
    const place = await Place.make(t, template);
    return await use(t, place, new Person(place, decision));
  } finally {
    for (const action of cleanup.reverse()) await action();
  }
}

// Without a fault: {calls: of the server, decided: how many there were when the approval was answered, db}.
export function undisturbed(template, decision) {
  return inPlace(template, decision, async (t, place, person) => {
    const log = join(place.folder, 'calls');
    let decided;
    person.onDecision = () => { decided = readFileSync(log, 'latin1').split('\n').length; };
    assert.equal(await attempt(t, place, person, watched(place.folder, {})), false);
    const db = await judgeAll(place, person, []);
    return { calls: await readLog(log), decided, db };
  });
}

// In a folder of its own, a kill at each of `targets`, one after the other: numbers of calls, or kinds of calls. What
// was killed: [{group, phase, when, executed}].
export function killAt(template, decision, targets) {
  return inPlace(template, decision, async (t, place, person) => {
    const kills = [];
    try {
      for (const target of targets) {
        await rm(join(place.folder, 'calls'), { force: true });
        const fault = typeof target === 'number' ? { FAULT_KILL: String(target) } : { FAULT_KIND: target };
        if (!await attempt(t, place, person, watched(place.folder, fault))) break;
        await place.shop.quiet();
        const { group } = (await readLog(join(place.folder, 'calls'))).find(({ fatal }) => fatal);
        kills.push({ group, ...await place.look() });
      }
      assert.equal(await attempt(t, place, person, {}), false);
      await judgeAll(place, person, kills);
    } catch (error) {
      error.message = `${decision}, killed at ${targets.join(', then ')} (${JSON.stringify(kills)}): ${error.message}`;
      throw error;
    }
    return kills;
  });
}

// SPDX-License-Identifier: Apache-2.0
//
// A stage for forged approvals, whatever door they come through. A row makes a call wait, tries to get it past the person who
// has to decide, and then asks five witnesses: the answer, the street outside, which counts what was executed, the
// interaction, the log of the thread, to which a refusal adds nothing, and the audit trail, which must name the reason. What was
// refused leaves the call whole: the right person can still approve it, and it runs once with the bytes that were shown.
//
// A row: name; word of the message (buy); `first`, what is done before; `forge`, which gives {code, field} if it is
// refused, and {idle: true} if it was taken and nothing may come of it; `refused` [code, field]; `why` in the trail, one or a list; how the interaction is left (open; 'rejected' by a message);
// how often the call has run (0); who approves it in the end (ann), or `mend` false; `expects`, anything more.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { inbox, interaction, REFUSED, rows, waiting } from './asking.mjs';
import { bearer } from './home.mjs';
import { approve, ask, ended, order, settle, startPlace, tool } from './people.mjs';
import { runOf, waitFor } from './talk.mjs';
import { storedFacts } from '../tools/facts.mjs';

const RESOLVED = 1; // enum audit_action
const STRANGER = 'not_visible'; // noted seconds later, so that no answer's time tells of it
export const NOBODYS = 'int_00000000000000000000000000';
export const TEA = { item: 'tea', count: 2 };
const calls = (...list) => ({ turns: [{ calls: list }, { text: 'Done.' }] });

// What the model does, by the first word of the message.
const LINES = [
  { match: '^buy', ...calls(tool('order', TEA)) },
  { match: '^pair', ...calls(tool('order', TEA), order('milk')) },
  { match: '^pay', ...calls(tool('pay', TEA)) },
  { match: '^cut', ...calls(tool('cut', TEA)) },
  { match: '^pick', ...calls(ask('Which room?', { choices: ['Red', 'Blue'], allow_freeform: false })) },
  { match: '^both', ...calls(ask('Which room?', { choices: ['Red', 'Blue'], allow_freeform: false }), tool('order', TEA)) },
  { match: '^theirs', ...calls(tool('choose', { from: ['one', 'two'] }), tool('order', TEA)) },
  { match: '^mine', ...calls(tool('choose', { from: ['one', 'two'] })) },
  { turns: [{ text: 'Hello.' }] },
];

// A server that is closed, and its people: ann, whose calls they are; bob; eve, an approver; oscar, an operator.
export class Stage {
  people = {};
  strangers = []; // threads whose trail has to say that somebody tried what they may not see

  static async open(t) {
    const stage = new Stage();
    Object.assign(stage, await startPlace(t, LINES));
    for (const [name, ...roles] of [['ann', 'user'], ['bob', 'user'], ['eve', 'approver'], ['oscar', 'operator']]) {
      stage.people[name] = bearer(await stage.home.addKey(name, ...roles.flatMap((role) => ['--role', role])));
    }
    return stage;
  }

  get server() {
    return this.home.server;
  }

  // The headers of somebody.
  who(name = 'ann') {
    return this.people[name];
  }

  // A call of ann's that waits: {threadId, runId, open, asked}. What is asked is the first confirm; else the first of all.
  async waits(word, begin) {
    const made = begin ? await begin(word) : await waiting(this.server, word, { headers: this.who() });
    return { ...made, asked: made.open.find(({ type }) => type === 'confirm') ?? made.open[0] };
  }

  // How many facts the thread has, and how many legs they are.
  #log(threadId, owner = 'ann') {
    const where = `thread=(SELECT id FROM threads WHERE thread_id='${threadId}' AND owner='${owner}')`;
    const facts = storedFacts(this.home.data, { where });
    return { facts: facts.length, legs: facts.filter(({ type }) => type === 'run.started').length };
  }

  async #left(row, { asked }) {
    const { status, answer, via } = await interaction(this.server, asked.interactionId, this.who());
    if (row.left !== 'rejected') assert.equal(status, row.left ?? 'open');
    else assert.deepEqual([status, answer.decision, via], ['resolved', 'reject', 'message']);
  }

  #audit(row, { threadId }) {
    const entries = rows(this.home, `SELECT action, why, via FROM audit
      WHERE chain=(SELECT id FROM threads WHERE thread_id='${threadId}' AND owner='ann') ORDER BY n`);
    const words = [row.why ?? []].flat();
    const refused = entries.filter(({ action, why }) => action === REFUSED && why !== STRANGER);
    assert.deepEqual(refused.map(({ why }) => why), words.filter((why) => why !== STRANGER), 'refused');
    if (words.includes(STRANGER)) this.strangers.push(threadId);
    if (row.via) for (const { via } of refused) assert.equal(via, row.via);
    if (row.left === 'rejected') assert.deepEqual(entries.filter(({ action }) => action === RESOLVED).map(({ why, via }) => [why, via]),
      [['reject', 'message']]);
  }

  async #mend(row, { threadId, open, asked }) {
    if ((row.left ?? 'open') !== 'open' || row.mend === false) return;
    await approve(this.server, asked, this.who(row.by));
    for (const { interactionId, type } of open) {
      if (interactionId !== asked.interactionId && (await interaction(this.server, interactionId, this.who())).status === 'open') {
        await settle(this.server, interactionId, type === 'confirm' ? { decision: 'reject' } : { skip: true }, this.who());
      }
    }
    await ended(this.server, threadId, this.who());
    const visits = this.street.visits.filter(({ key }) => key === asked.toolCallId);
    assert.deepEqual(visits.map(({ args }) => args), [JSON.parse(asked.pendingTool.argsJson)]);
  }

  async #play(t, row) {
    const state = { t, stage: this, ...await this.waits(row.word ?? 'buy', row.begin) };
    if (row.first) await row.first(state);
    const before = this.#log(state.threadId);
    const given = await row.forge(state);
    if (row.refused) assert.deepEqual([given?.code, given?.field], [row.refused[0], row.refused[1]], JSON.stringify(given));
    if (row.refused || given?.idle) assert.deepEqual(this.#log(state.threadId), before, 'nothing happened on the thread');
    await this.#left(row, state);
    if (row.left === 'rejected') await ended(this.server, state.threadId, this.who());
    assert.equal(this.street.ran(state.asked.toolCallId), row.ran ?? 0, 'executions, counted outside');
    this.#audit(row, state);
    await row.expects?.(state);
    await this.#mend(row, state);
  }

  // The call of `state` is still the only thing that waits for ann there.
  async stillWaits({ threadId, open }) {
    const run = await runOf(this.server, threadId, this.who());
    assert.deepEqual(run.interactions.map(({ interactionId }) => interactionId), open.map(({ interactionId }) => interactionId));
    const { interactions } = await inbox(this.server, `?threadId=${threadId}`, this.who());
    assert.equal(interactions.length, open.length);
  }

  // Whatever was tried: what ran was approved, and ran once; the trail is whole.
  async verdict() {
    await waitFor('the strangers in the trail', () => this.strangers.every((threadId) => rows(this.home, `SELECT 1 FROM audit
      WHERE why='${STRANGER}' AND chain=(SELECT chain FROM audit_chains WHERE thread_id='${threadId}' AND owner='ann')`).length > 0));
    const approved = rows(this.home, `SELECT call_id AS id FROM audit WHERE action=${RESOLVED} AND why IN ('approve', 'edit')`).map(({ id }) => id);
    const writes = this.street.visits.filter(({ house }) => house === 'order' || house === 'pay');
    assert.ok(writes.length > 0);
    for (const { key } of writes) assert.ok(approved.includes(key), key);
    assert.equal(new Set(writes.map(({ key }) => key)).size, writes.length, 'none twice');
    const { code, stdout } = await this.home.run(['check', '--audit']);
    assert.deepEqual([code, stdout.match(/intact/)?.[0]], [0, 'intact'], stdout);
  }

  static table(stage, list) {
    for (const row of list) test(row.name, (t) => stage().#play(t, row));
  }
}

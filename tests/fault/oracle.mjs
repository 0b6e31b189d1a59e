// SPDX-License-Identifier: Apache-2.0
//
// The judge after a fault. It reads the database of a stopped server with SQL of its own, and compares it with what
// clients were told. It knows the tables, and nothing of the server's code.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';

import { FACT_COLUMNS, FACT_ROWS, unpackFacts } from '../tools/facts.mjs';

const OPEN_BELOW = 4; // runs.status

// What sqlite3 prints. `before` are the words of a command that runs it.
export function sql(folder, text, { flags = [], before = [] } = {}) {
  const [command, ...words] = [...before, 'sqlite3', ...flags, join(folder, 'fermata.db'), text];
  return execFileSync(command, words, { encoding: 'utf8', maxBuffer: 2 ** 28 });
}

const rows = (columns, rest) =>
  `(SELECT json_group_array(json_object(${columns.split(' ').map((name) => `'${name}', ${name}`).join(', ')})) FROM ${rest})`;

export function readDatabase(folder, before = []) {
  const parts = {
    threads: rows('id owner thread_id title last_seq', 'threads'),
    events: rows(FACT_COLUMNS, `(${FACT_ROWS})`),
    messages: rows('thread seq id role content', 'messages'),
    runs: rows('id thread run_id status ended', 'runs'),
    snapshots: rows('run version', '(SELECT id AS run, version FROM runs WHERE version > 0 UNION ALL SELECT run, version FROM snapshots)'),
    accepted: rows('thread run_id answer', 'accepted'),
    keys: rows('id user', 'api_keys'),
    interactions: rows('run id type status call_id', 'interactions'),
    calls: rows('run call_id tool state attempts result_id', 'tool_calls'),
  };
  const pairs = Object.entries(parts).map(([name, part]) => `'${name}', json(${part})`).join(', ');
  const [integrity, foreign, json] = sql(folder,
    `PRAGMA integrity_check; SELECT count(*) FROM pragma_foreign_key_check; SELECT json_object(${pairs});`,
    { flags: ['-readonly'], before }).split('\n');
  assert.deepEqual([integrity, foreign], ['ok', '0'], 'the database is sound');
  const db = JSON.parse(json);
  return { ...db, events: db.events.flatMap(unpackFacts) };
}

// ---- what holds in every database of a stopped server ----

function checkThread(db, thread) {
  const facts = db.events.filter((event) => event.thread === thread.id);
  const places = new Map(facts.map((fact) => [fact.seq, fact]));
  assert.deepEqual(facts.map(({ seq }) => seq), facts.map((_, i) => i + 1), `facts of ${thread.thread_id} without gap`);
  assert.equal(thread.last_seq, facts.length, `last_seq of ${thread.thread_id}`);
  for (const message of db.messages.filter((row) => row.thread === thread.id))
    assert.ok(places.has(message.seq), `the fact of message ${message.id}`);
  for (const fact of facts.filter(({ type }) => type === 'text.message.end')) {
    const { messageId, content } = JSON.parse(fact.data);
    const message = db.messages.find((row) => row.thread === thread.id && row.id === messageId);
    assert.equal(JSON.parse(message.content), content, 'a message is what its fact says');
  }
}

const isEnd = ({ type }) => type === 'run.finished' || type === 'run.error';
const isPause = ({ type, data }) => type === 'run.finished' && JSON.parse(data).outcome === 'interrupted';
const times = (list) => list.reduce((counts, item) => counts.set(item, (counts.get(item) ?? 0) + 1), new Map());

// Legs follow one another: each is begun, then ends; all but the last end by a pause.
function checkLegs(what, facts, isOpen) {
  const marks = facts.filter((fact) => isEnd(fact) || fact.type === 'run.started');
  for (const [i, fact] of marks.entries()) {
    const isLast = i === marks.length - 1;
    if (fact.type === 'run.started') assert.ok(i === 0 || isPause(marks[i - 1]), `${what}: a leg begins after a pause`);
    else if (isPause(fact)) assert.ok(marks[i - 1]?.type === 'run.started' && (!isLast || isOpen), `${what}: a leg ends that was begun`);
    else assert.ok(isLast, `${what} ended once`);
  }
  assert.equal(marks.some((fact) => isEnd(fact) && !isPause(fact)), !isOpen, `${what}: status and facts`);
}

// What was asked is settled once, what was called has one result: by the end of the run at the latest.
function checkRows(what, db, run, facts, isOpen) {
  const named = (type, name) => facts.filter((fact) => fact.type === type).map(({ data }) => JSON.parse(data)[name]);
  const interactions = db.interactions.filter((row) => row.run === run.id);
  assert.deepEqual(named('interaction.request', 'interactionId').sort(), interactions.map(({ id }) => id).sort(), `${what}: what it asked`);
  const resolved = times(named('interaction.resolved', 'interactionId'));
  for (const { id, status } of interactions) assert.equal(resolved.get(id) ?? 0, status === 0 ? 0 : 1, `${what}: ${id} is settled once`);
  const calls = db.calls.filter((row) => row.run === run.id);
  assert.deepEqual(named('tool.call', 'toolCallId').sort(), calls.map(({ call_id: id }) => id).sort(), `${what}: what it called`);
  const results = times(named('tool.call.result', 'toolCallId'));
  for (const { call_id: id, result_id: shown } of calls) {
    assert.equal(results.get(id) ?? 0, shown ? 1 : 0, `${what}: ${id} has one result`);
    if (!isOpen) assert.ok(shown, `${what} has ended, and ${id} has a result`);
  }
  if (!isOpen) assert.ok(interactions.every(({ status }) => status !== 0), `${what} has ended and asks nobody`);
}

function checkRun(db, run) {
  const what = `run ${run.run_id}`;
  const facts = db.events.filter((e) => e.thread === run.thread && e.run_id === run.run_id);
  const snapshot = db.snapshots.some((row) => row.run === run.id);
  const isOpen = run.status < OPEN_BELOW;
  assert.equal(run.ended === 0, isOpen, `${what}: status and end`);
  checkLegs(what, facts, isOpen);
  checkRows(what, db, run, facts, isOpen);
  if (!isOpen) assert.ok(!snapshot, `${what} has ended and left no snapshot`);
}

export function checkDatabase(db) {
  for (const thread of db.threads) checkThread(db, thread);
  for (const run of db.runs) checkRun(db, run);
  for (const { run } of db.snapshots) assert.ok(db.runs.some(({ id }) => id === run), 'a snapshot has a run');
}

// ---- what clients were told ----

// Everything that was acknowledged or seen, by thread id. A deletion that got no answer may or may not have happened.
export class Told {
  answers = new Map();  // runId -> {threadId, body of the 202}
  cancelled = new Map(); // runId -> threadId
  titles = new Map();
  deleting = new Set(); // sent
  deleted = new Set();  // acknowledged
  facts = new Map();    // threadId -> Map(seq -> event)
  keys = 0;

  saw(event) {
    if (event.seq === undefined) return;
    if (!this.facts.has(event.threadId)) this.facts.set(event.threadId, new Map());
    this.facts.get(event.threadId).set(event.seq, event);
  }

  get count() {
    return this.answers.size + this.cancelled.size + this.titles.size + this.deleted.size + this.keys;
  }
}

function checkFacts(db, thread, facts) {
  const stored = new Map(db.events.filter((row) => row.thread === thread.id).map((row) => [row.seq, row]));
  for (const [seq, event] of facts) {
    const row = stored.get(seq);
    assert.ok(row, `fact ${seq} of ${thread.thread_id} was seen, so it is stored`);
    assert.deepEqual({ type: row.type, run: row.run_id, data: JSON.parse(row.data) },
      { type: event.type, run: event.runId, data: event.data });
  }
}

export function checkTold(db, told) {
  const find = (threadId) => {
    const thread = db.threads.find((row) => row.thread_id === threadId);
    assert.ok(thread || told.deleting.has(threadId), `thread ${threadId} is there`);
    return thread;
  };
  for (const threadId of told.deleted)
    assert.ok(!db.threads.some((row) => row.thread_id === threadId), `thread ${threadId} is gone`);
  for (const [runId, { threadId, body }] of told.answers) {
    const thread = find(threadId);
    if (!thread) continue;
    assert.equal(db.accepted.find((row) => row.thread === thread.id && row.run_id === runId)?.answer, body, `the 202 of ${runId}`);
    assert.ok(db.runs.some((row) => row.thread === thread.id && row.run_id === runId), `run ${runId} is there`);
  }
  for (const [runId, threadId] of told.cancelled) {
    const end = db.events.find((e) => e.run_id === runId && e.thread === find(threadId).id && e.type === 'run.finished');
    assert.equal(JSON.parse(end.data).outcome, 'cancelled', `${runId} was cancelled`);
  }
  for (const [threadId, title] of told.titles) assert.equal(find(threadId).title, title);
  for (const [threadId, facts] of told.facts) {
    const thread = find(threadId);
    if (thread) checkFacts(db, thread, facts);
  }
  assert.ok(db.keys.length >= told.keys, 'the key is there');
}

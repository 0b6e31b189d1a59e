// SPDX-License-Identifier: Apache-2.0
//
// Runs that wait for a person: a script that asks, and what one does about it.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';

import { call, Home, postJson } from './home.mjs';
import { accepted, AGENT, get, runOf, user, waitFor } from './talk.mjs';

export const MEETING = { title: 'Review', start_time: '2030-01-31T15:00:00+08:00', end_time: '2030-01-31T16:00:00+08:00' };
const other = (title) => ({ ...MEETING, title });
const ask = (args) => ({ name: 'ask_user', args });
const book = (title = MEETING.title) => ({ name: 'calendar_write', args: other(title) });
const calls = (...list) => ({ turns: [{ calls: list }, { text: 'Done.' }] });

// What the model does, by the first word of the message.
export const ASKING = [
  { match: '^choose', ...calls(ask({ question: 'How long?', choices: ['30 minutes', { label: '1 hour', description: 'the usual' }] })) },
  { match: '^strict', ...calls(ask({ question: 'Which room?', choices: ['Red', 'Blue'], allow_freeform: false })) },
  { match: '^several', ...calls(ask({ question: 'Who comes?', choices: ['Ann', 'Bob', 'Eve'], multi: true })) },
  { match: '^open', ...calls(ask({ question: 'What about?' })) },
  { match: '^two', ...calls(ask({ question: 'First?' }), ask({ question: 'Second?' })) },
  { match: '^book', ...calls(book()) },
  { match: '^both', ...calls(ask({ question: 'How long?' }), book()) },
  { match: '^three', ...calls(book('One'), book('Two'), book('Three')) },
  { match: '^all', ...calls(ask({ question: 'How long?' }), book('One'), book('Two')) },
  { match: '^tangle', ...calls(ask({ question: 'First?' }), ask({ question: 'Second?' }), book()) },
  { match: '^again', turns: [{ calls: [book('One')] }, { calls: [book('Two')] }, { text: 'Done.' }] },
  { match: '^lost', turns: [{ text: 'Here again.', fail: { at: 'start', status: 503, times: 3 } }] },
  { match: '^delete', ...calls({ name: 'calendar_delete', args: { id: 'evt_none' } }) },
  { turns: [{ text: 'Hello.' }] },
];

// A server whose model asks. `config` are lines of fermata.yaml.
export async function startAsking(t, { lines = ASKING, config, env = {} } = {}) {
  const home = await Home.make(t);
  const script = join(home.data, 'script.jsonl');
  await writeFile(script, lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
  home.env = { FERMATA_MODEL_PROVIDER: 'scripted', FERMATA_SCRIPT: script, ...env };
  if (config) {
    home.env.FERMATA_CONFIG = join(home.data, 'fermata.yaml');
    await writeFile(home.env.FERMATA_CONFIG, config);
  }
  await home.start();
  return home;
}

export async function inbox(server, query = '', headers = {}) {
  const answer = await get(server, `/interactions${query}`, headers);
  assert.equal(answer.status, 200, answer.text);
  return answer.json();
}

export async function interaction(server, id, headers = {}) {
  const answer = await get(server, `/interactions/${id}`, headers);
  assert.equal(answer.status, 200, answer.text);
  return answer.json();
}

export const answer = (server, id, body, headers = {}) => postJson(server, `${AGENT}/interactions/${id}/answer`, body, headers);
export const cancelOne = (server, id, headers = {}) => call(server, 'POST', `${AGENT}/interactions/${id}/cancel`, { headers });
export const answerRun = (server, threadId, body, headers = {}) => postJson(server, `${AGENT}/runs/${threadId}/answer`, body, headers);

export function move(server, id, body, headers = {}) {
  return call(server, 'PATCH', `${AGENT}/interactions/${id}`, {
    headers: { 'content-type': 'application/json', ...headers }, body: JSON.stringify(body),
  });
}

// The run of a thread once it has this status.
export function until(server, threadId, status, headers = {}) {
  return waitFor(`${threadId} to be ${status}`, async () => {
    const run = await runOf(server, threadId, headers);
    return run.status === status && run;
  });
}

let count = 0;

// Sends a message and waits until the run waits: {threadId, runId, open: [...]} in order of opening.
export async function waiting(server, text, { threadId = `t${++count}`, runId = 'r1', headers = {} } = {}) {
  const start = await accepted(server, { threadId, runId, messages: [user(text)] }, headers);
  await until(server, threadId, 'waiting', headers);
  const { interactions } = await inbox(server, `?threadId=${threadId}`, headers);
  return { ...start, open: interactions.reverse() };
}

// Rows of the database, as it stands.
export function rows(home, sql) {
  const text = execFileSync('sqlite3', ['-readonly', '-json', join(home.data, 'fermata.db'), sql], { encoding: 'utf8' });
  return text.trim() ? JSON.parse(text) : [];
}

// Changes the database of a server that is stopped.
export function execute(home, sql) {
  assert.ok(!home.server, 'stop it first');
  execFileSync('sqlite3', [join(home.data, 'fermata.db')], { input: sql });
}

// The audit trail of a thread, oldest first; `action` is a number of enum audit_action.
export const REFUSED = 2;
export const REVOKED = 6;
export const MOVED = 7;
export function audit(home, threadId, action) {
  return rows(home, `SELECT action, who, via, why, interaction_id AS id FROM audit
    WHERE chain=(SELECT chain FROM audit_chains WHERE thread_id='${threadId}' ORDER BY chain DESC LIMIT 1) ${action === undefined ? '' : `AND action=${action}`} ORDER BY n`);
}

// An error answer with one more member: the problem document, checked.
export function assertRefused(answered, status, code, member = 'interaction', field = undefined) {
  assert.equal(answered.status, status, answered.text);
  assert.equal(answered.headers['content-type'], 'application/problem+json');
  const problem = answered.json();
  assert.deepEqual(Object.keys(problem), ['type', 'title', 'status', 'detail', 'code', ...(field === undefined ? [] : ['field']), member]);
  assert.deepEqual([problem.status, problem.code, problem.type], [status, code, `urn:fermata:error:${code}`]);
  if (field !== undefined) assert.equal(problem.field, field);
  assert.ok(problem.detail);
  return problem[member];
}

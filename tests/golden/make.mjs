// SPDX-License-Identifier: Apache-2.0
//
// Makes a golden database: `FERMATA_BUILD=... node tests/golden/make.mjs schema-N` beside this file, with the program
// of a release that is about to change its schema. Every kind of row is in it, open and settled, and it ends with
// the server killed amid a run. Then `UPDATE=1 node --test tests/api/golden.test.mjs` with the same program writes
// down what it says; from then on no program may say anything else about it.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';

import { cancelOne, inbox, MEETING, move, rows, until, waiting } from '../api/asking.mjs';
import { bearer, call, Home } from '../api/home.mjs';
import { ask, order, settle, Street, tool } from '../api/people.mjs';
import { accepted, AGENT, cancel, openEvents, talk, user } from '../api/talk.mjs';

// As in golden.test.mjs: seals and bindings hold in a copy that is opened there.
const LOCAL = 'a-key-for-the-golden-test';
const SECRET = 'golden-databases-share-this-secret-which-is-none';
const NOBODY = 'http://127.0.0.1:9/hook'; // takes no message, so that the outbox keeps them

const book = (title) => tool('calendar_write', { ...MEETING, title });
const calls = (...list) => ({ turns: [{ calls: list }, { text: 'Done. 完成。' }] });
const plan = tool('submit_plan', { steps: [{ content: 'Look around', done_when: 'the shop is found' }, { content: 'Order tea' }] });
const LINES = [
  { match: '^ask', ...calls(ask('How long? 多久？', { choices: ['30 minutes', { label: '1 hour', description: 'the usual' }] })) },
  { match: '^book', ...calls(book('Review 评审')) },
  { match: '^again', turns: [{ calls: [book('First')] }, { calls: [book('Second')] }, { text: 'Both are there.' }] },
  { match: '^list', turns: [{ calls: [tool('calendar_read', { from: '2030-01-01T00:00:00Z', to: '2030-12-31T00:00:00Z' })] },
    { text: 'These.' }] },
  { match: '^plan', turns: [{ calls: [plan] }, { text: 'Found.' }, { text: 'Ordered.' }, { text: 'All done.' }] },
  { match: '^tea', ...calls(order('tea', 2)) },
  { match: '^pay', ...calls(tool('pay', { item: 'rent' })) },
  { match: '^look', turns: [{ reasoning: 'I had better look.', calls: [tool('look', { reply: { found: [1, 2.50, 'x'] } })] }, { text: 'Seen.' }] },
  { match: '^closed', ...calls(tool('fail')) },
  { match: '^cut', ...calls(tool('cut', { item: 'wire' })) },
  { match: '^broken', turns: [{ text: 'x', fail: { at: 'start', status: 400 } }] },
  { match: '^mute', turns: [{ text: 'x', delay_ms: 600_000 }] },
  { turns: [{ text: 'Hello, 你好.', chunk: 3 }] },
];

const [name] = process.argv.slice(2);
assert.match(name ?? '', /^schema-\d+$/, 'usage: node tests/golden/make.mjs schema-N');

const closing = [];
const t = { after: (fn) => closing.unshift(fn) };

const write = (home, lines) => writeFile(join(home.data, 'script.jsonl'), lines.map((line) => `${JSON.stringify(line)}\n`).join(''));

async function start() {
  const street = await Street.open(t);
  const home = await Home.make(t);
  const file = (leaf) => join(home.data, leaf);
  const config = JSON.parse(street.config({ approvers: { pay: 'approver' } }));
  config.webhooks = [{ url: NOBODY, secret_file: file('secret'), events: ['interaction.opened', 'interaction.resolved'] }];
  await writeFile(file('secret'), SECRET, { mode: 0o600 });
  await write(home, LINES);
  await writeFile(file('fermata.yaml'), JSON.stringify(config));
  home.env = {
    FERMATA_MODEL_PROVIDER: 'scripted', FERMATA_SCRIPT: file('script.jsonl'), FERMATA_CONFIG: file('fermata.yaml'),
    FERMATA_API_KEY: LOCAL, FERMATA_SECRET_FILE: file('secret'),
  };
  await home.start();
  return home;
}

// A thread whose run waits, and the first thing it waits for.
async function asked(server, threadId, text, headers) {
  const { open } = await waiting(server, text, { threadId, headers });
  return open[0];
}

async function talks(server, keys) {
  const settings = { timezone: 'Asia/Shanghai' };
  await talk(t, server, { threadId: 'plain', runId: 'r1', messages: [user('你好 hi', 'u1')] }, keys.local);
  await talk(t, server, { threadId: 'plain', runId: 'r2', messages: [user('and again', 'u2')], forwardedProps: settings }, keys.local);
  const titled = await call(server, 'PATCH', `${AGENT}/threads/plain`, {
    headers: { 'content-type': 'application/json', 'idempotency-key': 'golden', ...keys.local }, body: '{"title":"Golden 金"}',
  });
  assert.equal(titled.status, 200, titled.text);
  await talk(t, server, { threadId: 'tools', runId: 'r1', messages: [user('look', 'u1')] }, keys.local);
  await talk(t, server, { threadId: 'tools', runId: 'r2', messages: [user('closed', 'u2')] }, keys.local);
  await talk(t, server, { threadId: 'tools', runId: 'r3', messages: [user('list', 'u3')] }, keys.local);
  await talk(t, server, { threadId: 'failed', runId: 'r1', messages: [user('broken')] }, keys.local);
  await talk(t, server, { threadId: 'ann', runId: 'r1', messages: [user('hi')] }, keys.ann);
  await accepted(server, { threadId: 'stopped', runId: 'r1', messages: [user('mute')] }, keys.local);
  await accepted(server, { threadId: 'stopped', runId: 'r2', messages: [user('hi')] }, keys.local);
  await cancel(server, 'stopped', { queue: true }, keys.local);
  await until(server, 'stopped', 'cancelled', keys.local);
}

async function settled(server, keys) {
  const answers = [
    ['chosen', 'ask', { choices: ['c2'] }], ['written', 'ask', { answer: 'as long as it takes' }], ['skipped', 'ask', { skip: true }],
    ['approved', 'book', { decision: 'approve' }], ['refused', 'book', { decision: 'reject' }],
    ['edited', 'book', { decision: 'edit', args: { ...MEETING, title: 'Other', location: 'Room 1', attendees: ['Ann'] } }],
    ['granted', 'again', { decision: 'approve', always: { scope: 'thread' } }],
    ['granted-some', 'tea', { decision: 'approve', always: { scope: 'user', match: { item: 'tea' } } }],
    ['planned', 'plan', { decision: 'approve' }], ['unclear', 'cut', { decision: 'happened' }],
  ];
  for (const [threadId, text, body] of answers) {
    const { interactionId } = await asked(server, threadId, text, keys.local);
    await settle(server, interactionId, body, keys.local);
    await until(server, threadId, 'completed', keys.local);
  }
  const dropped = await asked(server, 'dropped', 'ask', keys.local);
  assert.equal((await cancelOne(server, dropped.interactionId, keys.local)).status, 200);
  await until(server, 'dropped', 'completed', keys.local);
  const paid = await asked(server, 'paid', 'pay', keys.ann);
  await settle(server, paid.interactionId, { decision: 'approve' }, keys.eve);
  await until(server, 'paid', 'completed', keys.ann);
  await asked(server, 'by-message', 'ask', keys.local);
  await accepted(server, { threadId: 'by-message', runId: 'r2', messages: [user('1 hour', 'u2')] }, keys.local);
  await until(server, 'by-message', 'completed', keys.local);
}

// An event is given to somebody else; its id is known only now.
async function shared(home, keys) {
  const [{ id }] = rows(home, "SELECT id FROM calendar_events WHERE owner='local' ORDER BY created LIMIT 1");
  await write(home, [{ match: '^share', ...calls(tool('calendar_share', { id, target: 'ann' })) }, ...LINES]);
  await home.restart();
  const { interactionId } = await asked(home.server, 'shared', 'share', keys.local);
  await settle(home.server, interactionId, { decision: 'approve' }, keys.local);
  await until(home.server, 'shared', 'completed', keys.local);
}

async function open(server, keys) {
  const question = await asked(server, 'asking', 'ask', keys.local);
  const moved = await move(server, question.interactionId, { expiresAt: '2199-01-31T09:30:00Z' }, keys.local);
  assert.equal(moved.status, 200, moved.text);
  await asked(server, 'confirming', 'book', keys.local);
  await asked(server, 'planning', 'plan', keys.local);
  await asked(server, 'wondering', 'cut', keys.local);
  await asked(server, 'paying', 'pay', keys.ann);
}

async function main() {
  const home = await start();
  const keys = { local: bearer(LOCAL), ann: bearer(await home.addKey('ann')), eve: bearer(await home.addKey('eve', '--role', 'approver')) };
  await talks(home.server, keys);
  await settled(home.server, keys);
  await shared(home, keys);
  const { server } = home;
  await open(server, keys);

  const events = await openEvents(t, server, 'open', { headers: keys.ann });
  await accepted(server, { threadId: 'open', runId: 'r1', messages: [user('mute', 'u1')] }, keys.ann);
  await events.until(({ type }) => type === 'step.start');
  await accepted(server, { threadId: 'open', runId: 'r2', messages: [user('are you there?', 'u2')] }, keys.ann);
  await events.until(({ type }) => type === 'run.queued');
  assert.ok((await inbox(server, '', keys.local)).interactions.length >= 4);
  events.close();
  home.server = null;
  await server.kill9();

  const database = join(home.data, 'fermata.db');
  execFileSync('sqlite3', [database, 'PRAGMA wal_checkpoint(TRUNCATE); PRAGMA integrity_check'], { stdio: ['ignore', 'ignore', 'inherit'] });
  await writeFile(new URL(`${name}.db.gz`, import.meta.url), gzipSync(await readFile(database), { level: 9 }));
}

try {
  await main();
} finally {
  for (const fn of closing) await fn();
}

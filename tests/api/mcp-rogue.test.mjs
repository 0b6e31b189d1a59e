// SPDX-License-Identifier: Apache-2.0
//
// Questions of a tool when something goes wrong around them, and servers with bad manners (tests/tools/mcp-rogue.mjs).

import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';

import { answer, startAsking, until, waiting } from './asking.mjs';
import { assertProblem, call } from './home.mjs';
import { accepted, AGENT, cancel, factsOf, openEvents, runOf, user, waitFor } from './talk.mjs';

const ROGUE = fileURLToPath(new URL('../tools/mcp-rogue.mjs', import.meta.url));
const LINES = [...['twice', 'ask', 'look', 'long'].map((name) => (
  { match: `^${name}`, turns: [{ calls: [{ name: `rogue.${name}`, args: {} }] }, { text: 'Done.' }] })), { turns: [{ text: 'Hello.' }] }];
const SECRET = 'not-for-children';
const word = (text) => ({ fields: { word: text } });

const rowsOf = (log) => (existsSync(log) ? readFileSync(log, 'utf8').split('\n').filter(Boolean).map((line) => JSON.parse(line)) : []);

// {home, log}; `reads` are the tools that only read.
async function start(t, reads) {
  const folder = await mkdtemp(join(tmpdir(), 'fermata-rogue-'));
  t.after(() => rm(folder, { recursive: true, force: true }));
  const log = join(folder, 'log');
  const config = `mcp: ${JSON.stringify({ rogue: { command: [process.execPath, ROGUE, log], read: reads } })}\nagents: {"assistant": {"policy": {"rogue.*": "allow"}}}\n`;
  const home = await startAsking(t, { lines: LINES, config, env: { FERMATA_TEST_SECRET: SECRET } });
  await connected(home);
  return { home, log };
}

const connected = (home) => waitFor('the server is there', () => home.server.stderr().includes('mcp.connected'));

const openOnes = (server, threadId, count, type = 'ask_user') => waitFor(`${count} are open`, async () => {
  const { interactions } = await runOf(server, threadId);
  const open = interactions.filter((one) => one.status === 'open' && one.type === type);
  return open.length === count && open;
});

async function resultOf(t, server, threadId) {
  const events = await openEvents(t, server, threadId, { query: '?after=0' });
  const facts = factsOf(await events.until(({ type, data }) => type === 'run.finished' && data.outcome !== 'interrupted'));
  events.close();
  return facts.find(({ type }) => type === 'tool.call.result').data;
}

const say = async (server, id, text) => assert.equal((await answer(server, id, word(text))).status, 200);
const gone = (pid) => { try { return readFileSync(`/proc/${pid}/stat`, 'utf8').split(' ')[2] === 'Z'; } catch { return true; } };

async function restartAfterKill(home) {
  await home.server.kill9();
  home.server = null;
  await home.start();
  await connected(home);
}

describe('questions of a call on the line', () => {
  test('two at the same time are both asked, and so is the one after them', async (t) => {
    const { home } = await start(t, ['twice']);
    const { threadId } = await accepted(home.server, { threadId: 'two', messages: [user('twice')] });
    const open = await openOnes(home.server, threadId, 2);
    const at = (text) => open.find(({ question }) => question.includes(text)).interactionId;
    await say(home.server, at('Second?'), 'b');
    await say(home.server, at('First?'), 'a');
    const [third] = await openOnes(home.server, threadId, 1);
    assert.ok(third.question.includes('Third?'), third.question);
    await say(home.server, third.interactionId, 'c');
    assert.equal((await resultOf(t, home.server, threadId)).content, 'a b c');
  });

  test('a write, and Fermata is killed: uncertain with the question; retry asks it anew', async (t) => {
    const { home, log } = await start(t, []);
    const { threadId } = await accepted(home.server, { threadId: 'killed', messages: [user('ask')] });
    await openOnes(home.server, threadId, 1);
    await restartAfterKill(home);
    const [unsure] = await openOnes(home.server, threadId, 1, 'uncertain');
    assert.ok(unsure.displayText.includes('Which word?'), unsure.displayText);
    assert.equal(rowsOf(log).filter(({ called }) => called).length, 1);
    assert.equal((await answer(home.server, unsure.interactionId, { decision: 'retry' })).status, 200);
    const [open] = await openOnes(home.server, threadId, 1);
    await say(home.server, open.interactionId, 'blue');
    assert.equal((await resultOf(t, home.server, threadId)).content, 'blue');
    assert.equal(rowsOf(log).filter(({ called }) => called).length, 2);
  });

  test('the run is cancelled: a write hears of it, and its end is waited for', async (t) => {
    const { home, log } = await start(t, []);
    const run = await waiting(home.server, 'ask');
    assert.ok((await cancel(home.server, run.threadId)).status < 300);
    await until(home.server, run.threadId, 'cancelled');
    assert.deepEqual(rowsOf(log).filter(({ reply }) => reply), [{ reply: 'cancel' }]);
  });

  // The refusal has cancelled the run already, which may be over before one could ask for it again.
  test('the thread can be deleted once the run is cancelled; the server is told, and goes on', async (t) => {
    const { home, log } = await start(t, ['ask']);
    const run = await waiting(home.server, 'ask');
    const remove = () => call(home.server, 'DELETE', `${AGENT}/threads/${run.threadId}`);
    assertProblem(await remove(), 409, 'busy');
    await until(home.server, run.threadId, 'cancelled');
    assert.ok((await remove()).status < 300);
    await waitFor('it is called off', () => rowsOf(log).some(({ told }) => told === 'notifications/cancelled'));
    const next = await waiting(home.server, 'ask');
    await say(home.server, next.open[0].interactionId, 'again');
    assert.equal((await resultOf(t, home.server, next.threadId)).content, 'again');
  });

  test('a stop does not wait for people; the question stands after the next start', async (t) => {
    const { home } = await start(t, ['ask']);
    const run = await waiting(home.server, 'ask');
    const began = Date.now();
    await home.stop();
    assert.ok(Date.now() - began < 20_000, `it took ${Date.now() - began} ms`);
    await home.start();
    await connected(home);
    const [open] = await openOnes(home.server, run.threadId, 1);
    assert.equal(open.interactionId, run.open[0].interactionId);
    await say(home.server, open.interactionId, 'green');
    assert.equal((await resultOf(t, home.server, run.threadId)).content, 'green');
  });
});

describe('a child', () => {
  test('has no secrets and no files of ours, and dies with us, with its own children', async (t) => {
    const { home, log } = await start(t, ['look']);
    const { threadId } = await accepted(home.server, { threadId: 'look', messages: [user('look')] });
    await until(home.server, threadId, 'completed');
    const { env, files, pids } = rowsOf(log).find((row) => row.env);
    assert.deepEqual(env.filter((name) => name.startsWith('FERMATA')), []);
    assert.deepEqual(files.filter((path) => path.includes(home.data)), []);
    await home.server.kill9();
    home.server = null;
    await waitFor('they are gone', () => pids.every(gone));
  });

  test('a line longer than any message ends it; it is started again, and its call is not done', { timeout: 60_000 }, async (t) => {
    const { home, log } = await start(t, []);
    const { threadId } = await accepted(home.server, { threadId: 'long', messages: [user('long')] });
    const [unsure] = await openOnes(home.server, threadId, 1, 'uncertain');
    assert.equal((await answer(home.server, unsure.interactionId, { decision: 'give_up' })).status, 200);
    await until(home.server, threadId, 'completed');
    assert.equal(rowsOf(log).filter(({ called }) => called).length, 1);
    await waitFor('it is there again', () => home.server.stderr().split('mcp.connected').length > 2);
  });
});

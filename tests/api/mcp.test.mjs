// SPDX-License-Identifier: Apache-2.0
//
// Tools of MCP servers, over both transports and in all versions: a shop of ours (tests/tools/mcp-shop.mjs) offers them,
// a scripted model calls them, people approve and answer. What was executed is read from the shop's own file.

import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';

import { MODERN } from '../tools/mcp-shop.mjs';
import { WebShop } from '../tools/mcp-web.mjs';
import { answer, startAsking, until, waiting } from './asking.mjs';
import { accepted, factsOf, openEvents, user, waitFor } from './talk.mjs';

const CHILD = fileURLToPath(new URL('../tools/mcp-child.mjs', import.meta.url));
const call = (name, args = {}) => ({ turns: [{ calls: [{ name: `shop.${name}`, args }] }, { text: 'Done.' }] });
const LINES = [
  { match: '^order', ...call('order', { item: 'tea' }) },
  { match: '^wrong', turns: [{ calls: [{ name: 'shop.order', args: { item: 7 } }] }, { text: 'I see.' }] },
  { match: '^price', ...call('price', { item: 'tea' }) },
  { match: '^fit', ...call('fit') },
  { match: '^visit', ...call('visit') },
  { match: '^picture', ...call('picture') },
  { match: '^refuse', ...call('refuse') },
  { match: '^slow', ...call('slow') },
  { match: '^grow', ...call('grow') },
  { match: '^extra', ...call('extra_1') },
  { turns: [{ text: 'Hello.' }] },
];
const READS = ['price', 'fit', 'visit', 'picture', 'refuse', 'slow', 'grow', 'extra_*'];

const executed = (log) => (existsSync(log) ? readFileSync(log, 'utf8').split('\n').filter(Boolean).map((line) => JSON.parse(line)) : []);

async function folder(t) {
  const path = await mkdtemp(join(tmpdir(), 'fermata-mcp-'));
  t.after(() => rm(path, { recursive: true, force: true }));
  return path;
}

const connected = (home, times = 1) => waitFor('the shop is open', () => home.server.stderr().split('mcp.connected').length > times);

// {home, log, web?}: a server that knows the shop as a child or behind HTTP. `more` are options of the server's entry.
async function startShop(t, { version = MODERN, web = false, args = [], more = {} }) {
  const log = join(await folder(t), 'log');
  const site = web ? await WebShop.open(t, { version, log, token: 'tok-4711' }) : undefined;
  const way = site ? { url: site.url, headers: { Authorization: 'Bearer tok-4711' } }
                   : { command: [process.execPath, CHILD, '--version', version, '--log', log, ...args], env: { SHOP_SIGN: 'open' } };
  const config = `mcp: ${JSON.stringify({ shop: { ...way, read: READS, ...more } })}\n`; // JSON is YAML
  const home = await startAsking(t, { lines: LINES, config });
  await connected(home);
  return { home, log, site };
}

let runs = 0;

// Sends a message and gives the result of its call, when the run is over.
async function result(t, server, words) {
  const { threadId } = await accepted(server, { threadId: `m${++runs}`, messages: [user(words)] });
  return resultOf(t, server, threadId);
}

async function resultOf(t, server, threadId) {
  const events = await openEvents(t, server, threadId, { query: '?after=0' });
  const facts = factsOf(await events.until(({ type, data }) => type === 'run.finished' && data.outcome !== 'interrupted'));
  events.close();
  return facts.find(({ type }) => type === 'tool.call.result').data;
}

const WAYS = [
  { version: MODERN }, { version: '2025-11-25' }, { version: '2025-06-18' },
  { version: MODERN, web: true }, { version: '2025-11-25', web: true }, { version: '2025-03-26', web: true },
];

for (const way of WAYS) {
  describe(`${way.version} over ${way.web ? 'HTTP' : 'a child'}`, () => {
    test('a write is approved and executed once, with its key; its annotations count for nothing', async (t) => {
      const { home, log } = await startShop(t, way);
      const run = await waiting(home.server, 'order');
      assert.equal(run.open[0].type, 'confirm'); // the shop says readOnlyHint
      assert.equal(run.open[0].pendingTool.toolName, 'shop.order');
      assert.equal(run.open[0].pendingTool.risk, 'external');
      assert.deepEqual(executed(log), []);
      assert.equal((await answer(home.server, run.open[0].interactionId, { decision: 'approve' })).status, 200);
      const data = await resultOf(t, home.server, run.threadId);
      assert.equal(data.error, undefined);
      assert.deepEqual(data.result, { item: 'tea', by: way.version });
      assert.deepEqual(executed(log).map(({ what, args }) => ({ what, args })), [{ what: 'order', args: { item: 'tea' } }]);
      assert.equal(executed(log)[0].key, data.toolCallId);
    });

    test('reads run at once: text, a refusal, a picture; arguments are checked before', async (t) => {
      const { home, log } = await startShop(t, way);
      assert.equal((await result(t, home.server, 'price')).content, 'tea costs 3');
      assert.equal((await result(t, home.server, 'slow')).content, 'slowly done'); // with progress on the way
      const refused = await result(t, home.server, 'refuse');
      assert.equal(refused.error, 'sold out');
      assert.equal((await result(t, home.server, 'picture')).content.includes('a pixel'), true);
      const { threadId } = await accepted(home.server, { threadId: `m${++runs}`, messages: [user('wrong')] });
      await until(home.server, threadId, 'completed');
      assert.deepEqual(executed(log).map(({ what }) => what), ['price']);
    });

    test('a question of the shop is a form for a person', async (t) => {
      const { home, log } = await startShop(t, way);
      const run = await waiting(home.server, 'fit');
      const [open] = run.open;
      assert.equal(open.type, 'ask_user');
      assert.ok(open.question.includes('Which size?') && open.question.includes('shop.fit'), open.question);
      assert.deepEqual(open.fields.map(({ name, type, choices, required }) => ({ name, type, choices, required })), [
        { name: 'size', type: 'choice', choices: ['Small', 'Large'], required: true },
        { name: 'note', type: 'text', choices: undefined, required: undefined },
      ]);
      assert.equal((await answer(home.server, open.interactionId, { fields: { size: 'Huge' } })).status, 400);
      assert.equal((await answer(home.server, open.interactionId, { fields: { size: 'Large' } })).status, 200);
      const data = await resultOf(t, home.server, run.threadId);
      assert.deepEqual(data.result, { action: 'accept', content: { size: 'l' } });
      assert.equal(executed(log).length, 1);
    });

    test('a question that is skipped is declined', async (t) => {
      const { home } = await startShop(t, way);
      const run = await waiting(home.server, 'fit');
      assert.equal((await answer(home.server, run.open[0].interactionId, { skip: true })).status, 200);
      assert.deepEqual((await resultOf(t, home.server, run.threadId)).result, { action: 'decline' });
    });

    test('a page to open is shown with its address', async (t) => {
      const { home } = await startShop(t, way);
      const run = await waiting(home.server, 'visit');
      assert.ok(run.open[0].question.includes('(login.example)'), run.open[0].question);
      assert.ok(run.open[0].question.includes('https://login.example/start?x=1'));
      assert.equal((await answer(home.server, run.open[0].interactionId, { choices: ['c1'] })).status, 200);
      assert.deepEqual((await resultOf(t, home.server, run.threadId)).result, { action: 'accept' });
    });

    test('tools that come later can be called; after a restart they are known before the shop is open', async (t) => {
      const gone = join(await folder(t), 'gone');
      const { home, site } = await startShop(t, { ...way, args: ['--gone', gone] });
      const lists = () => home.server.stderr().split('mcp.tools').length;
      await waitFor('the first list', () => lists() > 1);
      const before = lists();
      assert.equal((await result(t, home.server, 'grow')).content, 'grown');
      await waitFor('the new list', () => lists() > before);
      assert.equal((await result(t, home.server, 'extra')).error, '-32602: Unknown tool: extra_1');
      await home.stop();
      await site?.close();
      await writeFile(gone, '');
      await home.start();
      const run = await waiting(home.server, 'order'); // known, and approved before it is reached
      assert.equal(run.open[0].pendingTool.toolName, 'shop.order');
    });
  });
}

describe('odd servers', () => {
  for (const oddity of ['--scared', '--silent']) {
    test(`an older one that is ${oddity.slice(2)} before initialize`, { timeout: 60_000 }, async (t) => {
      const { home } = await startShop(t, { version: '2025-06-18', args: [oddity] });
      assert.equal((await result(t, home.server, 'price')).content, 'tea costs 3');
      await waitFor('it has spoken', () => home.server.stderr().includes('shop: open')); // its standard error, and its environment
    });
  }

  test('a version that nobody knows: away, with the reason', async (t) => {
    const log = join(await folder(t), 'log');
    const command = [process.execPath, CHILD, '--version', '1999-01-01', '--log', log];
    const home = await startAsking(t, { lines: LINES, config: `mcp: ${JSON.stringify({ shop: { command } })}\n` });
    await waitFor('the reason', () => /mcp\.away.*1999-01-01/.test(home.server.stderr()));
  });

  test('a program that is not there, or ends at once: the server works without it', async (t) => {
    const path = await folder(t);
    const gone = join(path, 'gone');
    await writeFile(gone, '');
    const shop = { command: [process.execPath, CHILD, '--log', join(path, 'log'), '--gone', gone] };
    const none = { command: [join(path, 'no-such-program')] };
    const home = await startAsking(t, { lines: LINES, config: `mcp: ${JSON.stringify({ shop, none })}\n` });
    await waitFor('both reasons', () => home.server.stderr().split('mcp.away').length > 2);
    const { threadId } = await accepted(home.server, { threadId: 'hello', messages: [user('hello')] });
    await until(home.server, threadId, 'completed');
  });
});

test('a trusted server says itself what its tools do; lists win', async (t) => {
  const { home, log } = await startShop(t, { more: { trusted: true, read: [] } });
  assert.equal((await result(t, home.server, 'order')).error, undefined); // readOnlyHint: nobody is asked
  assert.equal(executed(log).length, 1);
  const run = await waiting(home.server, 'fit');
  assert.equal(run.open[0].type, 'confirm');
  assert.equal(run.open[0].pendingTool.risk, 'destructive');
});

test('HTTP: headers, sessions that end, and a session that is closed in good order', async (t) => {
  const { home, site } = await startShop(t, { version: '2025-11-25', web: true });
  assert.equal((await result(t, home.server, 'price')).content, 'tea costs 3');
  site.forget(); // the session is gone: a new one, and the call again
  assert.equal((await result(t, home.server, 'price')).content, 'tea costs 3');
  assert.equal(site.made, 2);
  assert.ok(!home.server.stderr().includes('tok-4711'));
  await home.stop();
  assert.deepEqual(site.closed, ['s-2']);
});

// SPDX-License-Identifier: Apache-2.0
//
// MCP servers that fall over: in the middle of a write, of a read, before they are reached, while a person is asked; and
// Fermata killed meanwhile. What was executed is read from the shop's own file.

import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';

import { answer, startAsking, until, waiting } from '../api/asking.mjs';
import { accepted, runOf, user, waitFor } from '../api/talk.mjs';
import { MODERN } from '../tools/mcp-shop.mjs';
import { WebShop } from '../tools/mcp-web.mjs';
import { approve, factsTo, finished, openUncertain, resultOf } from './approve-shop.mjs';

const CHILD = fileURLToPath(new URL('../tools/mcp-child.mjs', import.meta.url));
const ATTEMPTS_MAX = 3;
const call = (name, args = {}) => ({ turns: [{ calls: [{ name: `shop.${name}`, args }] }, { text: 'Done.' }] });
const LINES = [
  { match: '^fall', ...call('fall', { item: 'tea' }) },
  { match: '^wait', ...call('wait', { item: 'tea' }) },
  { match: '^price', ...call('price', { item: 'fall' }) },
  { match: '^cheap', ...call('price', { item: 'tea' }) },
  { match: '^fit', ...call('fit') },
  { turns: [{ text: 'Hello.' }] },
];

// {home, log, gone, site?}
async function startShop(t, { version = MODERN, web = false } = {}) {
  const folder = await mkdtemp(join(tmpdir(), 'fermata-mcp-'));
  t.after(() => rm(folder, { recursive: true, force: true }));
  const log = join(folder, 'log'), gone = join(folder, 'gone');
  const site = web ? await WebShop.open(t, { version, log }) : undefined;
  const way = site ? { url: site.url } : { command: [process.execPath, CHILD, '--version', version, '--log', log, '--gone', gone] };
  const config = `mcp: ${JSON.stringify({ shop: { ...way, read: ['price', 'fit'] } })}\n`;
  const home = await startAsking(t, { lines: LINES, config });
  await connected(home);
  return { home, log, gone, site };
}

const connected = (home) => waitFor('the shop is open', () => home.server.stderr().includes('mcp.connected'));
const executed = (log) => (existsSync(log) ? readFileSync(log, 'utf8').split('\n').filter(Boolean).map((line) => JSON.parse(line)) : []);

// One key for all of them.
function checkKeys(log, count) {
  const rows = executed(log);
  assert.equal(rows.length, count, `executed ${rows.length} times, not ${count}`);
  assert.equal(new Set(rows.map(({ key }) => key)).size, 1);
}

const children = (pid) => readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').filter(Boolean).map(Number);

// The one interaction of this type that a run waits for.
const openOne = (server, threadId, type) => waitFor(`${type} is asked`, async () => {
  const { status, interactions } = await runOf(server, threadId);
  return status === 'waiting' && interactions.find((one) => one.type === type && one.status === 'open');
});

describe('in the middle of a write', () => {
  for (const way of [{}, { version: '2025-06-18' }, { web: true }, { version: '2025-11-25', web: true }]) {
    const name = `${way.version ?? MODERN} over ${way.web ? 'HTTP' : 'a child'}`;
    test(`${name}: uncertain, never repeated by itself; retry has the same key`, async (t) => {
      const { home, log } = await startShop(t, way);
      const { threadId } = await approve(home.server, 'fall');
      await openUncertain(home.server, threadId);
      checkKeys(log, 1);
      await home.restart();
      const open = await openUncertain(home.server, threadId);
      checkKeys(log, 1);
      assert.equal((await answer(home.server, open.interactionId, { decision: 'retry' })).status, 200);
      const again = await waitFor('it is asked again', async () => {
        const { interactions } = await runOf(home.server, threadId);
        return interactions.find(({ interactionId: id, type, status }) => type === 'uncertain' && status === 'open' && id !== open.interactionId);
      });
      checkKeys(log, 2);
      assert.equal((await answer(home.server, again.interactionId, { decision: 'happened' })).status, 200);
      await until(home.server, threadId, 'completed');
      checkKeys(log, 2);
    });
  }

  test('a child that is killed', async (t) => {
    const { home, log } = await startShop(t);
    const { threadId } = await approve(home.server, 'wait');
    await waitFor('it is executed', () => executed(log).length === 1);
    const [pid] = children(home.server.pid);
    process.kill(pid, 'SIGKILL');
    await openUncertain(home.server, threadId);
    checkKeys(log, 1);
  });
});

test('a read is repeated, with the same key, and then a person is asked', async (t) => {
  const { home, log } = await startShop(t);
  const { threadId } = await accepted(home.server, { threadId: 'read', messages: [user('price')] });
  const open = await openOne(home.server, threadId, 'connection_lost');
  const { length } = executed(log);
  assert.ok(length > 1 && length <= ATTEMPTS_MAX, `executed ${length} times`); // or away meanwhile
  checkKeys(log, length);
  assert.equal((await answer(home.server, open.interactionId, { decision: 'give_up' })).status, 200);
});

for (const web of [false, true]) {
  test(`a server that is down ${web ? 'behind HTTP' : 'as a child'}: connection_lost, and continue when it is back`, async (t) => {
    const { home, log, gone, site } = await startShop(t, { web });
    await writeFile(gone, '');
    if (site) await site.close();
    else for (const pid of children(home.server.pid)) process.kill(pid, 'SIGKILL');
    await waitFor('it is away', () => web || home.server.stderr().includes('mcp.away'));
    const { threadId } = await accepted(home.server, { threadId: 'down', messages: [user('cheap')] });
    const open = await openOne(home.server, threadId, 'connection_lost');
    assert.ok(open.displayText.includes('shop'), open.displayText);
    assert.deepEqual(executed(log), []);
    await rm(gone);
    if (site) await site.listen();
    assert.equal((await answer(home.server, open.interactionId, { decision: 'continue' })).status, 200);
    const facts = await factsTo(t, home.server, threadId, finished('completed'));
    assert.equal(resultOf(facts).content, 'tea costs 3');
    checkKeys(log, 1);
  });
}

describe('Fermata is killed while a person is asked', () => {
  for (const way of [{}, { version: '2025-11-25' }, { web: true }]) {
    test(`${way.version ?? MODERN} over ${way.web ? 'HTTP' : 'a child'}: the question stands, and is asked once`, async (t) => {
      const { home, log } = await startShop(t, way);
      const run = await waiting(home.server, 'fit');
      await home.server.kill9();
      home.server = null;
      await home.start();
      await connected(home);
      const open = await openOne(home.server, run.threadId, 'ask_user');
      assert.equal(open.interactionId, run.open[0].interactionId);
      assert.equal((await answer(home.server, open.interactionId, { fields: { size: 'Small' } })).status, 200);
      const facts = await factsTo(t, home.server, run.threadId, finished('completed'));
      assert.deepEqual(resultOf(facts).result, { action: 'accept', content: { size: 's' } });
      assert.equal(facts.filter(({ type, data }) => type === 'interaction.request' && data.type === 'ask_user').length, 1);
      checkKeys(log, 1);
    });
  }
});

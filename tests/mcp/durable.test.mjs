// SPDX-License-Identifier: Apache-2.0
//
// 2026-07-28: a call that needs input is over, so a question outlives both sides. Fermata is killed, the server is
// another process or another object when the answer comes, and what was approved is executed once.

import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

import { answer, rows, startAsking, until, waiting } from '../api/asking.mjs';
import { runOf, waitFor } from '../api/talk.mjs';
import { MODERN, Shop } from '../tools/mcp-shop.mjs';
import { WebShop } from '../tools/mcp-web.mjs';

const CHILD = fileURLToPath(new URL('../tools/mcp-child.mjs', import.meta.url));
const LINES = [{ turns: [{ calls: [{ name: 'shop.fit', args: {} }] }, { text: 'Done.' }] }];
const executed = (log) => (existsSync(log) ? readFileSync(log, 'utf8').split('\n').filter(Boolean).map((line) => JSON.parse(line)) : []);

const openOf = (home, threadId, type) => waitFor(`${type} is asked`, async () => {
  const { status, interactions } = await runOf(home.server, threadId);
  return status === 'waiting' && interactions.find((one) => one.type === type && one.status === 'open');
});

async function accept(home, { interactionId }, body) {
  const answered = await answer(home.server, interactionId, body);
  assert.equal(answered.status, 200, answered.text);
}

for (const http of [false, true]) {
  for (const write of [false, true]) {
    test(`a ${write ? 'write' : 'read'} over ${http ? 'HTTP' : 'a child'} asks, and both sides are gone before the answer`, async (t) => {
      const folder = await mkdtemp(join(tmpdir(), 'fermata-mcp-'));
      t.after(() => rm(folder, { recursive: true, force: true }));
      const log = join(folder, 'log');
      const site = http ? await WebShop.open(t, { version: MODERN, log }) : undefined;
      const way = site ? { url: site.url } : { command: [process.execPath, CHILD, '--version', MODERN, '--log', log] };
      const home = await startAsking(t, { lines: LINES, config: `mcp: ${JSON.stringify({ shop: { ...way, read: write ? [] : ['fit'] } })}\n` });
      await waitFor('the shop is open', () => home.server.stderr().includes('mcp.connected'));

      const run = await waiting(home.server, 'go', { threadId: 'durable' });
      if (write) {
        assert.equal(run.open[0].type, 'confirm');
        await accept(home, run.open[0], { decision: 'approve' });
      }
      const before = await openOf(home, run.threadId, 'ask_user');
      const [{ asked }] = rows(home, 'SELECT asked FROM tool_calls');
      assert.ok(asked.includes('state of size'), 'requestState is in the row');
      await home.server.kill9();
      home.server = null;
      await site?.close();
      if (site) site.shop = new Shop({ version: MODERN, log, fall: () => site.cut() }); // it remembers nothing
      await home.start();
      await site?.listen();

      const after = await openOf(home, run.threadId, 'ask_user');
      assert.equal(after.interactionId, before.interactionId);
      assert.deepEqual(executed(log), []);
      await accept(home, after, { fields: { size: 'Large' } });
      await until(home.server, run.threadId, 'completed');
      const done = executed(log);
      assert.deepEqual(done.map(({ what, args }) => ({ what, args })), [{ what: 'fit', args: { action: 'accept', content: { size: 'l' } } }]);
      const [call] = rows(home, 'SELECT call_id AS id, error FROM tool_calls');
      assert.deepEqual([done[0].key, call.error], [call.id, '']);
    });
  }
}

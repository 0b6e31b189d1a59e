// SPDX-License-Identifier: Apache-2.0
//
// Pages of history whose cards are more than a page may hold: each page ends in time, and all of them together have every
// message once.

import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { test } from 'node:test';

import { startAsking } from './asking.mjs';
import { history, talk } from './talk.mjs';

const CARDS = 60, CARD_BYTES = 200 * 1024, PAGE_BYTES_MAX = 8 * 1024 * 1024;

test('pages end where their cards get too large', async (t) => {
  const answer = JSON.stringify({ result: 1, ui_hints: {
    version: '2.1', intent: 'message', status: 'info', title: 'Long', body: 'x'.repeat(CARD_BYTES), actions: [],
  } });
  const shop = createServer((request, response) => { request.resume().on('end', () => response.end(answer)); });
  await new Promise((done) => { shop.listen(0, '127.0.0.1', done); });
  t.after(() => { shop.close(); shop.closeAllConnections(); });
  const home = await startAsking(t, {
    lines: [{ match: 'go', turns: [{ calls: Array.from({ length: CARDS }, (_, n) => ({ name: 'show', args: { n } })) }, { text: 'Done.' }] }],
    config: `tools:\n  - http: {name: show, url: "http://127.0.0.1:${shop.address().port}/", effect: read, schema: {type: object}}\n`,
  });
  const { start: { threadId } } = await talk(t, home.server, 'go');

  const walk = async (next) => {
    const pages = [];
    for (let query = '?limit=200'; query; query = next(pages.at(-1))) {
      const page = await history(home.server, threadId, query);
      const bytes = page.messages.reduce((sum, { uiSchema }) => sum + (uiSchema ? JSON.stringify(uiSchema).length : 0), 0);
      assert.ok(bytes < PAGE_BYTES_MAX + 2 * CARD_BYTES, `${bytes} bytes of cards on a page`);
      pages.push(page);
    }
    return pages;
  };
  const back = await walk(({ hasMore, before }) => (hasMore ? `?limit=200&before=${before}` : undefined));
  assert.ok(back.length > 1, 'one page held them all');
  const all = back.toReversed().flatMap(({ messages }) => messages);
  const tools = all.filter(({ role }) => role === 'tool');
  assert.equal(tools.length, CARDS);
  for (const { id, uiSchema } of tools) assert.ok(uiSchema, `${id} has its card`);
  assert.equal(new Set(all.map(({ id }) => id)).size, all.length);


  // Forwards from the beginning: the first of them.
  const first = await history(home.server, threadId, '?limit=200&after=0');
  assert.ok(first.hasMore);
  assert.deepEqual(first.messages.map(({ id }) => id), all.slice(0, first.messages.length).map(({ id }) => id));
  await home.stop();
});

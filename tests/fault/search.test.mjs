// SPDX-License-Identifier: Apache-2.0
//
// Searches that take as long as they can, and everybody else meanwhile.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { Home, bearer, call } from '../api/home.mjs';
import { RawConnection } from '../api/raw.mjs';
import { within } from '../api/server.mjs';
import { AGENT, accepted, history, user, waitFor, runOf } from '../api/talk.mjs';
import { PATTERN, fillThread, openSearches } from './attacks-search.mjs';
import { until } from './kit.mjs';

const MIB = 30; // the program that compared letter by letter took 20 s for one search of them
const SERVED_MS_MAX = 60_000;
const PAGES = 4;

async function people(t) {
  const home = await Home.make(t);
  let server = await home.start();
  const ann = bearer(await home.addKey('ann')), bob = bearer(await home.addKey('bob'));
  for (const [headers, threadId] of [[ann, 'long'], [bob, 'his']]) {
    await accepted(server, { threadId, runId: `${threadId}-r`, messages: [user('Hello there', `${threadId}-u`)] }, headers);
    await waitFor('the run ends', async () => (await runOf(server, threadId, headers)).status === 'completed');
  }
  await home.stop();
  fillThread(home.data, 'long', MIB);
  server = await home.start();
  return { home, server, ann, bob };
}

const search = (server, query, headers, cursor) =>
  call(server, 'GET', `${AGENT}/threads?query=${encodeURIComponent(query)}${cursor ? `&cursor=${cursor}` : ''}`, { headers });

test('six open searches of one person: the other one is served, and so is readiness', async (t) => {
  const { server, ann, bob } = await people(t);
  const attack = openSearches(server, ann);
  try {
    const served = async () => {
      for (let i = 0; i < PAGES; i++) {
        assert.equal((await history(server, 'his', '', bob)).messages.length, 2);
        assert.equal((await call(server, 'GET', '/readyz')).status, 200);
        const found = await search(server, 'HELLO', bob);
        assert.equal(found.status, 200, found.text);
        assert.deepEqual(found.json().threads.map(({ threadId }) => threadId), ['his']);
      }
    };
    await within(SERVED_MS_MAX, 'the other one is served', served());
    await until('a search of the first is answered as well', () => attack.answered > 0);
  } finally {
    await attack.stop();
  }
  assert.deepEqual(attack.failed, []);
});

test('searches whose clients have gone do not go on', async (t) => {
  const { server, ann } = await people(t);
  const path = `${AGENT}/threads?query=${PATTERN}`;
  for (let i = 0; i < 8; i++) {
    const connection = await RawConnection.open(server);
    await connection.write(`GET ${path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: ${ann.authorization}\r\n\r\n`);
    connection.socket.resetAndDestroy();
  }
  const found = await within(SERVED_MS_MAX, 'one that is there', search(server, 'hello', ann));
  assert.equal(found.status, 200, found.text);
  assert.deepEqual(found.json().threads.map(({ threadId }) => threadId), ['long']);
});

test('all pages together find what stands at the very end', async (t) => {
  const { server, ann } = await people(t);
  let cursor, found = [], pages = 0;
  do {
    const answer = await search(server, 'there', ann, cursor);
    assert.equal(answer.status, 200, answer.text);
    const page = answer.json();
    found.push(...page.threads.map(({ threadId }) => threadId));
    cursor = page.next;
    assert.ok(++pages < 100);
  } while (cursor);
  assert.deepEqual(found, ['long']);
});

// SPDX-License-Identifier: Apache-2.0
//
// Webhooks as their receiver sees them: signed, repeated until they are taken, told apart by their delivery id.

import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { describe, test } from 'node:test';

import { answer, inbox, interaction, move, rows, startAsking, until, waiting } from './asking.mjs';
import { call } from './home.mjs';
import { AGENT, TIME, waitFor } from './talk.mjs';

const SECRET = 'a-secret-between-us';
const FRESH_S = 120;
const SILENT = 40; // messages to a receiver that never answers

// A receiver that answers with the statuses of its plan, then with 204: {url, seen: [{headers, body}]}.
async function startReceiver(t, plan = []) {
  const seen = [];
  const server = createServer((request, response) => {
    const pieces = [];
    request.on('data', (piece) => pieces.push(piece)).on('end', () => {
      seen.push({ method: request.method, path: request.url, headers: request.headers, body: Buffer.concat(pieces).toString('utf8') });
      const status = plan.shift() ?? 204;
      if (status === 'hold') return;
      if (status === 'cut') request.socket.destroy();
      else response.writeHead(status).end();
    });
  });
  await new Promise((done) => { server.listen(0, '127.0.0.1', done); });
  t.after(() => { server.closeAllConnections(); server.close(); });
  return { url: `http://127.0.0.1:${server.address().port}/hook`, seen };
}

async function startHooked(t, hooks) {
  const home = await startAsking(t);
  await home.stop();
  await writeFile(join(home.data, 'hook.secret'), `${SECRET}\n`, { mode: 0o600 });
  home.env.FERMATA_CONFIG = join(home.data, 'fermata.yaml');
  await configure(home, hooks);
  await home.start();
  return home;
}

async function configure(home, hooks) {
  const lines = hooks.map(({ url, events }) => `  - {url: "${url}", secret_file: "${join(home.data, 'hook.secret')}", events: [${events.join(', ')}]}\n`);
  await writeFile(home.env.FERMATA_CONFIG, lines.length ? `webhooks:\n${lines.join('')}` : 'webhooks: []\n');
}

const BOTH = ['interaction.opened', 'interaction.resolved'];

function assertGenuine({ method, headers, body }) {
  assert.equal(method, 'POST');
  assert.equal(headers['content-type'], 'application/json');
  const timestamp = headers['fermata-timestamp'];
  assert.match(timestamp, /^\d{10}$/);
  assert.ok(Math.abs(Date.now() / 1000 - Number(timestamp)) < FRESH_S);
  assert.equal(headers['fermata-signature'], `v1=${createHmac('sha256', SECRET).update(`${timestamp}.${body}`).digest('hex')}`);
  const told = JSON.parse(body);
  assert.deepEqual(Object.keys(told), ['id', 'event', 'at', 'interaction']);
  assert.deepEqual([told.id, told.event], [headers['fermata-delivery'], headers['fermata-event']]);
  assert.match(told.id, /^evt_/);
  assert.match(told.at, TIME);
  return told;
}

const arrived = (seen, count) => waitFor(`${count} deliveries`, () => seen.length >= count);

describe('a webhook', () => {
  test('hears of opening and settling, signed', async (t) => {
    const { url, seen } = await startReceiver(t);
    const home = await startHooked(t, [{ url, events: BOTH }]);
    const { open: [asked] } = await waiting(home.server, 'book');
    await arrived(seen, 1);
    const opened = assertGenuine(seen[0]);
    assert.equal(opened.event, 'interaction.opened');
    assert.deepEqual(opened.interaction, asked, 'all of it: the hook is the operator\'s');
    assert.equal((await answer(home.server, asked.interactionId, { decision: 'reject' })).status, 200);
    await arrived(seen, 2);
    const resolved = assertGenuine(seen[1]);
    assert.equal(resolved.event, 'interaction.resolved');
    assert.deepEqual(resolved.interaction, await interaction(home.server, asked.interactionId));
    assert.notEqual(resolved.id, opened.id);
    await waitFor('the outbox to be empty', () => rows(home, 'SELECT count(*) AS n FROM outbox')[0].n === 0);
  });

  test('hears only what it asked for; two hear the same', async (t) => {
    const all = await startReceiver(t), ends = await startReceiver(t);
    const home = await startHooked(t, [{ url: all.url, events: BOTH }, { url: ends.url, events: ['interaction.resolved'] }]);
    const { threadId, open: [asked] } = await waiting(home.server, 'choose');
    await answer(home.server, asked.interactionId, { choices: ['c1'] });
    await until(home.server, threadId, 'completed');
    await arrived(all.seen, 2);
    await arrived(ends.seen, 1);
    const told = all.seen.map(assertGenuine);
    assert.deepEqual(told.map(({ event }) => event).sort(), BOTH);
    assert.deepEqual(ends.seen.map(assertGenuine), told.filter(({ event }) => event === 'interaction.resolved'));
  });

  test('hears of an expiry', async (t) => {
    const { url, seen } = await startReceiver(t);
    const home = await startHooked(t, [{ url, events: ['interaction.resolved'] }]);
    const { open: [asked] } = await waiting(home.server, 'choose');
    await move(home.server, asked.interactionId, { expiresAt: new Date(Date.now() + 3000).toISOString() });
    await arrived(seen, 1);
    assert.equal(assertGenuine(seen[0]).interaction.status, 'expired');
  });

  test('hears that a wait is over because its thread was deleted', async (t) => {
    const { url, seen } = await startReceiver(t);
    const home = await startHooked(t, [{ url, events: ['interaction.resolved'] }]);
    const { threadId, open } = await waiting(home.server, 'both');
    assert.equal((await call(home.server, 'DELETE', `${AGENT}/threads/${threadId}`)).status, 204);
    await arrived(seen, open.length);
    const told = seen.map(assertGenuine).map(({ interaction: { interactionId, status } }) => `${interactionId} ${status}`);
    assert.deepEqual(told.sort(), open.map(({ interactionId }) => `${interactionId} canceled`).sort());
    assert.deepEqual(await inbox(home.server), { interactions: [] });
    await waitFor('the rows to be removed', () => rows(home, 'SELECT count(*) AS n FROM runs')[0].n === 0);
  });

  test('that never answers keeps no news from another, however much waits for it', async (t) => {
    const { url, seen } = await startReceiver(t);
    const silent = await startReceiver(t, Array(SILENT).fill('hold'));
    const home = await startHooked(t, [{ url: silent.url, events: ['interaction.opened'] }, { url, events: ['interaction.resolved'] }]);
    for (let i = 0; i < SILENT; i++) await waiting(home.server, 'choose');
    const { open: [asked] } = await waiting(home.server, 'choose');
    await answer(home.server, asked.interactionId, { choices: ['c1'] });
    await arrived(seen, 1);
    assert.equal(assertGenuine(seen[0]).interaction.interactionId, asked.interactionId);
    assert.ok(silent.seen.length < SILENT);
  });

  for (const status of [500, 429, 302, 404, 'cut']) {
    test(`is told again after ${status}, under the same id`, async (t) => {
      const { url, seen } = await startReceiver(t, [status]);
      const home = await startHooked(t, [{ url, events: ['interaction.opened'] }]);
      await waiting(home.server, 'choose');
      await arrived(seen, 2);
      const [first, second] = seen.map(assertGenuine);
      assert.deepEqual(second, first);
      assert.equal(seen[1].headers['fermata-delivery'], seen[0].headers['fermata-delivery']);
      await waitFor('the outbox to be empty', () => rows(home, 'SELECT count(*) AS n FROM outbox')[0].n === 0);
      assert.equal(seen.length, 2);
    });
  }

  test('is told after a restart what it could not be told before', async (t) => {
    const { url, seen } = await startReceiver(t, [503]);
    const home = await startHooked(t, [{ url, events: ['interaction.opened'] }]);
    await waiting(home.server, 'choose');
    await arrived(seen, 1);
    await home.server.kill9();
    home.server = null;
    await home.start();
    await arrived(seen, 2);
    assert.deepEqual(assertGenuine(seen[1]), assertGenuine(seen[0]));
  });

  test('that has left the configuration is forgotten', async (t) => {
    const { url, seen } = await startReceiver(t, Array(100).fill(503));
    const home = await startHooked(t, [{ url, events: ['interaction.opened'] }]);
    await waiting(home.server, 'choose');
    await arrived(seen, 1);
    await home.stop();
    const told = seen.length;
    assert.equal(rows(home, 'SELECT count(*) AS n FROM outbox')[0].n, 1);
    await configure(home, []);
    await home.start();
    await waitFor('the outbox to be empty', () => rows(home, 'SELECT count(*) AS n FROM outbox')[0].n === 0);
    await waitFor('a line in the log', () => home.server.stderr().includes('webhook.dropped'));
    assert.equal(seen.length, told);
  });

  test('that nobody answers does not hold up the runs, and its address is not in the log', async (t) => {
    const home = await startHooked(t, [{ url: 'http://127.0.0.1:9/a-token-in-the-path', events: BOTH }]);
    const { threadId, open: [asked] } = await waiting(home.server, 'choose');
    await answer(home.server, asked.interactionId, { choices: ['c1'] });
    await until(home.server, threadId, 'completed');
    await waitFor('a line in the log', () => home.server.stderr().includes('webhook.failed'));
    assert.ok(!home.server.stderr().includes('a-token-in-the-path'));
    assert.ok(!home.server.stderr().includes(SECRET));
  });
});

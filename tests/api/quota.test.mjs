// SPDX-License-Identifier: Apache-2.0
//
// limits.storage: what each user may store. Who has it all begins nothing new, and still answers, cancels and deletes.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { answer, execute, rows, startAsking, until, waiting } from './asking.mjs';
import { bearer, call } from './home.mjs';
import { accepted, AGENT, postRun, user, waitFor } from './talk.mjs';

const KIB = 1024, MIB = 1024 * KIB;
const LINES = [
  { match: '^ask', turns: [{ calls: [{ name: 'ask_user', args: { question: 'Which?', choices: ['A', 'B'] } }] }, { text: 'Thanks.' }] },
  { match: '.', turns: [{ text: 'Yes.' }] },
];

async function upload(server, bytes, headers) {
  const form = new FormData();
  form.set('threadId', 'files');
  form.set('file', new Blob([Buffer.alloc(bytes, 'x')]), 'a.txt');
  const response = await fetch(`${server.url}${AGENT}/attachments`, { method: 'POST', body: form, headers });
  return { status: response.status, headers: Object.fromEntries(response.headers), text: await response.text() };
}

function assertFull(answered, allowed) {
  assert.equal(answered.status, 507, answered.text);
  const problem = JSON.parse(answered.text);
  assert.equal(problem.code, 'quota_exceeded');
  assert.deepEqual(Object.keys(problem), ['type', 'title', 'status', 'detail', 'code', 'used', 'allowed']);
  assert.equal(problem.allowed, allowed);
  assert.ok(Number.isInteger(problem.used) && problem.used > 0);
  assert.ok(problem.detail.includes(String(problem.used)) && problem.detail.includes(String(allowed)));
  return problem.used;
}

const done = (server, threadId, headers) => until(server, threadId, 'completed', headers);

test('a user who has it all: nothing new, and everything that ends something', async (t) => {
  const home = await startAsking(t, { lines: LINES, env: { FERMATA_LIMITS_STORAGE: '1MiB' } });
  const [ann, bob] = [bearer(await home.addKey('ann')), bearer(await home.addKey('bob'))];
  const { server } = home;
  const open = await waiting(server, 'ask me', { threadId: 'asks', headers: ann });
  assert.equal((await upload(server, 600 * KIB, ann)).status, 201);
  assertFull(await upload(server, 600 * KIB, ann), MIB); // it would be too much, and something smaller is not
  await accepted(server, { threadId: 'long', messages: [user('x'.repeat(200 * KIB))] }, ann);
  await done(server, 'long', ann);
  const used = assertFull(await postRun(server, { threadId: 'more', messages: [user('hello')] }, ann), MIB);
  assert.ok(used >= MIB, 'what is stored is counted, and what a run under way adds');
  assert.equal((await call(server, 'GET', `${AGENT}/threads/more`, { headers: ann })).status, 404, 'nothing is left of it');

  assert.equal((await upload(server, 600 * KIB, bob)).status, 201, 'others have their own');
  await accepted(server, { threadId: 'his', messages: [user('hello')] }, bob);

  const answered = await answer(server, open.open[0].interactionId, { answer: 'A' }, ann);
  assert.equal(answered.status, 200, answered.text); // answering is no beginning
  await done(server, 'asks', ann);
  assert.equal((await call(server, 'DELETE', `${AGENT}/threads/long`, { headers: ann })).status, 204);
  await accepted(server, { threadId: 'more', messages: [user('hello')] }, ann); // there is room again
  await done(server, 'more', ann);
});

test('what was stored before counts too, once the option is there', async (t) => {
  const home = await startAsking(t, { lines: LINES });
  const ann = bearer(await home.addKey('ann'));
  await accepted(home.server, { threadId: 'old', messages: [user('x'.repeat(300 * KIB))] }, ann);
  await done(home.server, 'old', ann);
  assert.equal((await upload(home.server, 100 * KIB, ann)).status, 201);
  assert.equal(rows(home, 'SELECT owner FROM storage').length, 0, 'without the option nothing is written');
  await home.stop();
  execute(home, "UPDATE threads SET bytes=NULL"); // as a database of an older program has it
  const server = await home.start({ FERMATA_LIMITS_STORAGE: '500KiB' });
  await waitFor('the count', async () => {
    const answered = await postRun(server, { threadId: 'new', messages: [user('hello')] }, ann);
    if (answered.status === 202) return false;
    assertFull(answered, 500 * KIB);
    return true;
  });
  const counted = rows(home, "SELECT bytes FROM storage WHERE owner='ann'")[0].bytes;
  assert.ok(counted > 700 * KIB && counted < 1500 * KIB, `${counted}`);
  assert.equal((await call(server, 'DELETE', `${AGENT}/threads/old`, { headers: ann })).status, 204);
  await accepted(server, { threadId: 'newer', messages: [user('hello')] }, ann);
  await done(server, 'newer', ann);
  await home.restart();
  await waitFor('it is forgotten when the option is gone', () => !rows(home, 'SELECT owner FROM storage').length);
});

test('the option', async (t) => {
  const home = await startAsking(t, { lines: LINES });
  await home.stop();
  for (const [value, code] of [['0', 0], ['10GiB', 0], ['much', 2]]) {
    const checked = await home.run(['check'], { FERMATA_LIMITS_STORAGE: value, FERMATA_LISTEN: '127.0.0.1:0' });
    assert.equal(checked.code, code, checked.stderr);
    if (!code) assert.match(checked.stdout, new RegExp(`^  storage: ${value} `, 'm'));
  }
});

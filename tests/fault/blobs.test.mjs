// SPDX-License-Identifier: Apache-2.0
//
// Object storage that fails: away in the middle of a run, damaged under a running server, full of what nobody needs. Runs
// go on, nothing wrong is shown, and what could be kept arrives by itself when the storage is back.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { access, appendFile, mkdir, readdir, readFile, rename, rm, stat, symlink, truncate, utimes, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { dirname, join } from 'node:path';
import { describe, test } from 'node:test';

import { rows, startAsking } from '../api/asking.mjs';
import { assertProblem, call } from '../api/home.mjs';
import { cut, parts } from '../api/raw-json.mjs';
import { startServer } from '../api/server.mjs';
import { accepted, AGENT, endOf, get, openEvents, talk, user, waitFor } from '../api/talk.mjs';
import { fill, smallDisk } from './kit.mjs';

const MIB = 1024 * 1024;
const ARRIVE_MS_MAX = 30_000; // the longest rest of whoever puts is 10 s
const GONE = /gone, damaged or cannot be read now/;
const HINTS = { version: '2.1', intent: 'data', status: 'success', title: '订单 17', items: [{ key: 'n', label: 'Number', value: 17 }] };
const RESULTS = { small: '{"order":17,"of":"结果"}', large: `"${'结果 x'.repeat(2 * MIB / 8)}"`, held: '{"order":18}' };
const NAMES = Object.keys(RESULTS);

// ---- a server with a tool ----

const calls = (...names) => names.map((name) => ({ calls: [{ name: 'look', args: { name } }] }));
const LINES = [
  ...NAMES.map((name) => ({ match: `^${name}$`, turns: [...calls(name), { text: 'Done.' }] })),
  { match: '^small, then held', turns: [...calls('small', 'held'), { text: 'Done.' }] },
  { match: '^small, then large', turns: [...calls('small', 'large'), { text: 'Done.' }] },
  { turns: [{ text: 'Hello.' }] },
];

// The tool takes `held` and waits: {taken, release}.
async function startTool(t) {
  const tool = {};
  tool.taken = new Promise((resolve) => { tool.take = resolve; });
  tool.released = new Promise((resolve) => { tool.release = resolve; });
  const server = createServer(async (sent, response) => {
    const pieces = [];
    for await (const piece of sent) pieces.push(piece);
    const { name } = JSON.parse(Buffer.concat(pieces).toString());
    if (name === 'held') {
      tool.take();
      await tool.released;
    }
    response.on('error', () => {});
    response.writeHead(200, { 'content-type': 'application/json' }).end(`{"content":"It is ${name}.","result":${RESULTS[name]},"ui_hints":${JSON.stringify(HINTS)}}`);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  tool.url = `http://127.0.0.1:${server.address().port}/`;
  return tool;
}

async function startLooking(t, env = {}) {
  const tool = await startTool(t);
  const http = { name: 'look', url: tool.url, effect: 'read', schema: { type: 'object', properties: { name: { type: 'string' } } } };
  const home = await startAsking(t, { lines: LINES, env, config: `tools:\n  - http: ${JSON.stringify(http)}\n` });
  return { home, tool, root: join(home.data, 'blobs'), bucket: join(home.data, 'blobs/payloads'), spool: join(home.data, 'spool') };
}

// ---- looking ----

const there = (path) => access(path).then(() => true, () => false);
const pathOf = (threadId, id, what) => `${AGENT}/threads/${threadId}/messages/${id}/${what}`;
const say = (t, server, threadId, text) => talk(t, server, { threadId, runId: 'r', messages: [user(text, 'u')] });
const resultsOf = (facts) => facts.filter(({ type }) => type === 'tool.call.result').map(({ data }) => data);

// The rows of tools: [{id, content, metadata, card: its bytes}].
async function toolRows(server, threadId) {
  const answer = await get(server, `/runs/${threadId}/history`);
  assert.equal(answer.status, 200, answer.text);
  return parts(cut(answer.text, 'messages')).map(([, raw]) => ({ ...JSON.parse(raw), card: cut(raw, 'uiSchema') })).filter(({ role }) => role === 'tool');
}

async function figures(server) {
  const { text } = await call(server, 'GET', '/metrics');
  const figure = (name) => Number(text.split('\n').find((line) => line.startsWith(`${name} `)).slice(name.length + 1));
  return {
    waiting: figure('fermata_blobs_waiting'), damaged: figure('fermata_blobs_damaged_total'), swept: figure('fermata_blobs_swept_total'),
    putsFailed: figure('fermata_blob_puts_total{result="failed"}'), getsFailed: figure('fermata_blob_gets_total{result="failed"}'),
  };
}

const logged = (server, words) => waitFor(`${words} in the log`, () => words.test(server.stderr()));

// Every object's path.
async function objects(root) {
  const found = [];
  for (const bucket of ['payloads', 'attachments']) {
    for (const entry of await readdir(join(root, bucket), { recursive: true, withFileTypes: true }).catch(() => [])) {
      if (entry.isFile()) found.push(join(entry.path, entry.name));
    }
  }
  return found.sort();
}

// The rows of a message whose payload is stored have forgotten what it says.
function assertForgotten(home, id) {
  assert.deepEqual(rows(home, `SELECT result, spool FROM tool_calls WHERE result_id='${id}'`), [{ result: '', spool: '' }]);
  for (const row of rows(home, `SELECT waiting, spool, length(bytes) AS bytes FROM blobs WHERE message_id='${id}'`)) assert.deepEqual(row, { waiting: 0, spool: '', bytes: 0 });
}

// What one sees of a result, stored or waiting: the card that was live or none, the result in any case.
async function assertShown(server, threadId, event, { missing }) {
  const row = (await toolRows(server, threadId)).find(({ id }) => id === event.messageId);
  assert.equal(row.content, event.content);
  assert.equal(row.metadata.storage_missing, missing ? true : undefined);
  assert.equal(row.card, missing ? undefined : JSON.stringify(event.ui));
  const ui = await call(server, 'GET', pathOf(threadId, row.id, 'ui'));
  if (missing) {
    assertProblem(ui, 404, 'not_found');
    assert.match(ui.json().detail, GONE);
  } else {
    assert.deepEqual([ui.status, ui.text], [200, row.card]);
  }
  const whole = await call(server, 'GET', pathOf(threadId, row.id, 'result'));
  assert.equal(whole.status, 200, whole.text.slice(0, 200));
  assert.ok(whole.text === RESULTS[event.args.name], 'byte for byte');
  return row;
}

const arrived = (server, threadId, id) => waitFor('the payload arrives', async () => {
  const row = (await toolRows(server, threadId)).find((one) => one.id === id);
  return row.metadata.storage_missing === undefined && row;
}, ARRIVE_MS_MAX);

// ---- storage that is away ----

// How it goes and how it comes back; `lost`: what was stored before does not come back with it. `starts`: a server starts
// while it is away.
const AWAY = {
  'a file stands for the bucket, and the old one comes back': {
    starts: true,
    go: async ({ bucket }) => { await rename(bucket, `${bucket}.away`); await writeFile(bucket, ''); },
    come: async ({ bucket }) => { await rm(bucket); await rename(`${bucket}.away`, bucket); },
  },
  'a file stands for the bucket, then nothing': {
    starts: true, lost: true,
    go: async ({ bucket }) => { await rm(bucket, { recursive: true }); await writeFile(bucket, ''); },
    come: ({ bucket }) => rm(bucket),
  },
  'a file stands for the folder, and the old one comes back': {
    go: async ({ root }) => { await rename(root, `${root}.away`); await writeFile(root, ''); },
    come: async ({ root }) => { await rm(root); await rename(`${root}.away`, root); },
  },
  'a file stands for the folder, then a new empty one': {
    lost: true,
    go: async ({ root }) => { await rm(root, { recursive: true }); await writeFile(root, ''); },
    come: async ({ root }) => { await rm(root); await mkdir(root, { mode: 0o700 }); },
  },
};

describe('storage that goes away in the middle of a run', () => {
  for (const [name, way] of Object.entries(AWAY)) {
    test(name, async (t) => {
      const place = await startLooking(t);
      const { home, tool } = place;
      await accepted(home.server, { threadId: 't', runId: 'r', messages: [user('small, then held', 'u')] });
      const events = await openEvents(t, home.server, 't', { query: '?after=0' });
      await tool.taken;
      assert.equal((await figures(home.server)).putsFailed, 0);
      await way.go(place);
      tool.release();
      const facts = await events.run('r');
      assert.equal(facts.at(-1).data.outcome, 'completed');
      const [before, during] = resultsOf(facts);
      assert.ok(before.ui && during.ui, 'both were shown with their cards');

      // What was stored before is a summary while it cannot be read; what could not be stored is marked.
      await assertShown(home.server, 't', during, { missing: true });
      const [old] = await toolRows(home.server, 't');
      assert.deepEqual([old.content, old.card, old.metadata.storage_missing], ['It is small.', undefined, undefined]);
      const { waiting, putsFailed } = await waitFor('it is counted', async () => {
        const now = await figures(home.server);
        return now.waiting > 0 && now;
      });
      assert.equal(waiting, 1);
      assert.ok(putsFailed >= 3, `${putsFailed} puts failed`);
      await logged(home.server, /a payload is not stored yet/);

      await way.come(place);
      await arrived(home.server, 't', during.messageId);
      await assertShown(home.server, 't', during, { missing: false });
      assertForgotten(home, during.messageId);
      await waitFor('nothing waits', async () => (await figures(home.server)).waiting === 0);
      await logged(home.server, /payloads\.stored/);
      const [again] = await toolRows(home.server, 't');
      assert.equal(again.card, way.lost ? undefined : JSON.stringify(before.ui));
      assert.equal(again.content, 'It is small.');

      // From here on it is as if nothing had been.
      const { facts: later } = await say(t, home.server, 'later', 'large');
      await arrived(home.server, 'later', resultsOf(later)[0].messageId);
      await assertShown(home.server, 'later', resultsOf(later)[0], { missing: false });
    });

    test(`${name}: a long result waits in its file`, async (t) => {
      const place = await startLooking(t);
      const { home, spool } = place;
      await say(t, home.server, 'before', 'small');
      await way.go(place);
      const [event] = resultsOf((await say(t, home.server, 't', 'large')).facts);
      await assertShown(home.server, 't', event, { missing: true });
      assert.deepEqual(await readdir(spool), [event.callId]);

      await way.come(place);
      await arrived(home.server, 't', event.messageId);
      await assertShown(home.server, 't', event, { missing: false });
      assertForgotten(home, event.messageId);
      await waitFor('the file goes', async () => (await readdir(spool)).length === 0);
      const hash = createHash('sha256').update(RESULTS.large).digest('hex');
      assert.equal((await objects(place.root)).filter((path) => path.includes(`/${hash}.`)).length, 1);
    });

    test(`${name}: killed while it waits`, async (t) => {
      const place = await startLooking(t);
      const { home } = place;
      await say(t, home.server, 'before', 'small');
      await way.go(place);
      const { facts } = await say(t, home.server, 't', 'small, then large');
      await home.server.kill9();
      home.server = null;
      if (way.starts) {
        await home.start();
        for (const event of resultsOf(facts)) await assertShown(home.server, 't', event, { missing: true });
        await waitFor('it is counted', async () => (await figures(home.server)).waiting === 3);
        await home.server.kill9();
        home.server = null;
      }
      await way.come(place);
      await home.start();
      for (const event of resultsOf(facts)) {
        await arrived(home.server, 't', event.messageId);
        await assertShown(home.server, 't', event, { missing: false });
        assertForgotten(home, event.messageId);
      }
      await waitFor('the file goes', async () => (await readdir(place.spool)).length === 0);
    });
  }

  test('a disk of its own that is full, and then has room', async (t) => {
    const disk = await smallDisk(t);
    if (!disk) return t.skip('this system allows no mount namespace, so there is no small disk to fill');
    const { home, spool } = await startLooking(t);
    await home.stop();
    const server = await startServer({ data: home.data, before: disk.enter, env: { ...home.env, FERMATA_BLOB_URL: join(disk.path, 'objects') } });
    t.after(() => server.stop({ keep: true }));
    await say(t, server, 'before', 'small');
    await fill(disk);
    const { facts } = await say(t, server, 't', 'small, then large');
    assert.equal(facts.at(-1).data.outcome, 'completed');
    for (const event of resultsOf(facts)) await assertShown(server, 't', event, { missing: true });
    await logged(server, /code=storage_full/);
    await rm(join(disk.folder, 'ballast'));
    for (const event of resultsOf(facts)) {
      await arrived(server, 't', event.messageId);
      await assertShown(server, 't', event, { missing: false });
    }
    await waitFor('the file goes', async () => (await readdir(spool)).length === 0);
    assert.deepEqual(await readdir(join(disk.folder, 'objects/.new')), [], 'nothing is left half written');
  });

  test('one that can never be put does not keep the others waiting', async (t) => {
    const place = await startLooking(t);
    const { home, spool } = place, way = AWAY['a file stands for the bucket, then nothing'];
    await say(t, home.server, 'before', 'small');
    await way.go(place);
    const [lost] = resultsOf((await say(t, home.server, 'lost', 'large')).facts);
    const [small] = resultsOf((await say(t, home.server, 't', 'small')).facts);
    await rm(join(spool, lost.callId));
    await way.come(place);
    await arrived(home.server, 't', small.messageId);
    await assertShown(home.server, 't', small, { missing: false });
    const [row] = await toolRows(home.server, 'lost');
    assert.deepEqual([row.content, row.card, row.metadata.storage_missing], ['It is large.', undefined, true], 'the mark stays');
    const whole = await call(home.server, 'GET', pathOf('lost', row.id, 'result'));
    assertProblem(whole, 404, 'not_found');
    assert.match(whole.json().detail, GONE);
    await waitFor('one is still counted', async () => (await figures(home.server)).waiting === 1);
  });

  test('a run that is answered while its results are on their way', async (t) => {
    const place = await startLooking(t);
    await say(t, place.home.server, 'before', 'small');
    await place.home.stop();
    const lines = [{ turns: [{ calls: [{ name: 'look', args: { name: 'small' } }, { name: 'ask_user', args: { question: 'Which?' } }] }, { text: 'Done.' }] }];
    await writeFile(place.home.env.FERMATA_SCRIPT, lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
    const server = await place.home.start();
    await AWAY['a file stands for the bucket, then nothing'].go(place); // so that the result is on its way for a while
    await accepted(server, { threadId: 't', runId: 'r', messages: [user('go', 'u')] });
    const events = await openEvents(t, server, 't', { query: '?after=0' });
    const [{ data: asked }] = (await events.until(({ type }) => type === 'interaction.request')).slice(-1);
    await waitFor('the result is there, and not shown', () => rows(place.home, 'SELECT call_id FROM tool_calls WHERE ended>0 AND result_id=\'\'').length === 1);
    const answered = await call(server, 'POST', `${AGENT}/interactions/${asked.interactionId}/answer`,
      { headers: { 'content-type': 'application/json' }, body: '{"answer":"This one."}' });
    assert.equal(answered.status, 200, answered.text);
    await events.until((event) => endOf('r')(event) && event.data.outcome === 'completed');
    await AWAY['a file stands for the bucket, then nothing'].come(place);
    const event = resultsOf(events.facts).find(({ toolName }) => toolName === 'look');
    assert.ok(event.ui);
    await arrived(server, 't', event.messageId);
    await assertShown(server, 't', event, { missing: false });
  });
});

// ---- objects that are lost or damaged ----

// Changes a file without a trace but its bytes and ctime.
async function flip(path, at) {
  const { atime, mtime } = await stat(path);
  const bytes = await readFile(path);
  bytes[at < 0 ? bytes.length + at : at] ^= 1;
  await writeFile(path, bytes);
  await utimes(path, atime, mtime);
}

// Does it count as damaged, or as gone?
const HARM = {
  'it is removed': { damaged: false, harm: (path) => rm(path) },
  'its folder is removed': { damaged: false, harm: (path) => rm(dirname(path), { recursive: true }) },
  'its first byte is flipped': { damaged: true, harm: (path) => flip(path, 0) },
  'its last byte is flipped': { damaged: true, harm: (path) => flip(path, -1) },
  'a byte inside is flipped': { damaged: true, harm: (path) => flip(path, 100) },
  'it is cut': { damaged: true, harm: async (path) => truncate(path, (await stat(path)).size - 1) },
  'it is emptied': { damaged: true, harm: (path) => truncate(path, 0) },
  'it has grown': { damaged: true, harm: (path) => appendFile(path, ' ') },
  'it is a folder': { damaged: true, harm: async (path) => { await rm(path); await mkdir(path); } },
  'it is a link to the same bytes': { damaged: true, harm: async (path) => { await rename(path, `${path}.moved`); await symlink(`${path}.moved`, path); } },
};

async function mend(path, bytes) {
  await rm(path, { recursive: true, force: true });
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  await writeFile(path, bytes, { mode: 0o600 });
}

describe('an object that is lost or damaged', () => {
  for (const [name, { damaged, harm }] of Object.entries(HARM)) {
    test(`${name}: a summary, and nothing wrong`, async (t) => {
      const { home, root } = await startLooking(t);
      const { server } = home;
      const [event] = resultsOf((await say(t, server, 't', 'small')).facts);
      const { metadata } = await assertShown(server, 't', event, { missing: false }); // now it is cached, too
      const path = join(root, metadata.storage_bucket, metadata.storage_path), bytes = await readFile(path);
      const before = await figures(server);
      await harm(path);
      const [row] = await toolRows(server, 't');
      assert.deepEqual([row.content, row.card, row.metadata.storage_missing], [event.content, undefined, undefined]);
      for (const what of ['ui', 'result']) {
        const answer = await call(server, 'GET', pathOf('t', row.id, what));
        assertProblem(answer, 404, 'not_found');
        assert.match(answer.json().detail, GONE);
      }
      const now = await figures(server);
      assert.equal(now.getsFailed - before.getsFailed, 3);
      assert.equal(now.damaged - before.damaged, damaged ? 3 : 0);
      const lines = () => server.stderr().split('\n').filter((line) => line.includes('payload.unreadable') && line.includes(row.id));
      await waitFor('three lines', () => lines().length >= 3);
      assert.equal(lines().length, 3);
      for (const line of lines()) assert.match(line, damaged ? /code=damaged/ : /code=not_found/);
      await mend(path, bytes);
      await assertShown(server, 't', event, { missing: false });
    });

    test(`${name}: a long result`, async (t) => {
      const { home, root } = await startLooking(t);
      const { server } = home;
      const [event] = resultsOf((await say(t, server, 't', 'large')).facts);
      await arrived(server, 't', event.messageId);
      const { id, metadata } = await assertShown(server, 't', event, { missing: false });
      const payload = JSON.parse(await readFile(join(root, metadata.storage_bucket, metadata.storage_path)));
      const path = join(root, metadata.storage_bucket, payload.result_path), bytes = await readFile(path);
      assert.ok(bytes.equals(Buffer.from(RESULTS.large)));
      const before = await figures(server);
      await harm(path);
      const answer = await call(server, 'GET', pathOf('t', id, 'result'));
      assertProblem(answer, 404, 'not_found');
      assert.match(answer.json().detail, GONE);
      assert.equal((await toolRows(server, 't'))[0].card, JSON.stringify(event.ui), 'the card is another object');
      const now = await figures(server);
      assert.deepEqual([now.getsFailed - before.getsFailed, now.damaged - before.damaged], [1, damaged ? 1 : 0]);
      await mend(path, bytes);
      await assertShown(server, 't', event, { missing: false });
    });
  }
});

// ---- objects that nobody needs ----

const removeThread = async (server, threadId) => assert.equal((await call(server, 'DELETE', `${AGENT}/threads/${threadId}`)).status, 204);

test('deleting a thread removes its objects and files, and nobody else\'s', async (t) => {
  const place = await startLooking(t);
  const { home, root, spool } = place;
  const [kept] = resultsOf((await say(t, home.server, 'kept', 'large')).facts);
  await arrived(home.server, 'kept', kept.messageId);
  const others = await objects(root);
  const { facts } = await say(t, home.server, 't', 'small, then large');
  for (const { messageId } of resultsOf(facts)) await arrived(home.server, 't', messageId);
  assert.equal((await objects(root)).length, others.length + 3);
  await removeThread(home.server, 't');
  await waitFor('its objects go', async () => (await objects(root)).length === others.length);
  assert.deepEqual(await objects(root), others);

  // Also while they wait.
  const way = AWAY['a file stands for the bucket, and the old one comes back'];
  await way.go(place);
  await say(t, home.server, 'u', 'small, then large');
  assert.equal((await readdir(spool)).length, 1);
  await waitFor('they are counted', async () => (await figures(home.server)).waiting === 3);
  await removeThread(home.server, 'u');
  await waitFor('the file goes', async () => (await readdir(spool)).length === 0);
  await way.come(place);
  await waitFor('nothing waits', async () => (await figures(home.server)).waiting === 0, ARRIVE_MS_MAX);
  assert.deepEqual(await objects(root), others);
  await assertShown(home.server, 'kept', kept, { missing: false });
});

test('a start without grace removes what nothing names, and nothing else', async (t) => {
  const place = await startLooking(t);
  const { home, root, bucket } = place;
  const { facts } = await say(t, home.server, 't', 'small, then large');
  for (const { messageId } of resultsOf(facts)) await arrived(home.server, 't', messageId);
  const form = new FormData();
  form.set('threadId', 't');
  form.set('file', new Blob(['a file']), 'a.txt');
  const sent = await fetch(`${home.server.url}${AGENT}/attachments`, { method: 'POST', body: form });
  const { attachment } = await sent.json();
  const needed = await objects(root);
  assert.equal(needed.length, 4);

  // Two of a thread that was deleted while the storage was away: they go by themselves when it is back.
  const last = await say(t, home.server, 'deleted', 'large');
  for (const { messageId } of resultsOf(last.facts)) await arrived(home.server, 'deleted', messageId); // not put later, behind the deletion
  const way = AWAY['a file stands for the bucket, and the old one comes back'];
  await way.go(place);
  await removeThread(home.server, 'deleted');
  await home.restart();
  await way.come(place);
  await waitFor('they are removed', async () => (await objects(root)).length === needed.length);
  // Two that a crash left behind: nothing names them.
  const orphan = async (bytes) => {
    const hash = createHash('sha256').update(bytes).digest('hex');
    await mkdir(join(bucket, hash.slice(0, 2)), { recursive: true, mode: 0o700 });
    await writeFile(join(bucket, hash.slice(0, 2), `${hash}.call_x`), bytes, { mode: 0o600 });
  };
  await orphan('one');
  await orphan('two');
  assert.equal((await objects(root)).length, needed.length + 2);

  await home.restart({ FERMATA_STORAGE_GRACE: '0' });
  await waitFor('they are swept', async () => (await figures(home.server)).swept === 2);
  assert.deepEqual(await objects(root), needed);
  for (const event of resultsOf(facts)) await assertShown(home.server, 't', event, { missing: false });
  const file = await call(home.server, 'GET', `${AGENT}/attachments/${attachment.id}`);
  assert.deepEqual([file.status, file.text], [200, 'a file']);
  assert.equal(await there(join(root, '.new')), true);
});

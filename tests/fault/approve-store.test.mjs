// SPDX-License-Identifier: Apache-2.0
//
// An approval on a disk that is full, and runs with a person or a tool in them whose stored state is damaged.

import assert from 'node:assert/strict';
import { mkdtemp, open, readFile, rm, unlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';

import { answer, assertRefused, cancelOne, inbox, interaction, startAsking, until, waiting } from '../api/asking.mjs';
import { assertProblem, call } from '../api/home.mjs';
import { startServer } from '../api/server.mjs';
import { accepted, AGENT, cancel, postRun, runOf, user, waitFor } from '../api/talk.mjs';
import { approve, asked, checkOrders, factsTo, finished, held, openUncertain, ORDER, resultOf, Shop } from './approve-shop.mjs';
import { fill, smallDisk } from './kit.mjs';
import { checkDatabase, readDatabase, sql } from './oracle.mjs';

const PAGE_BYTES = 4096;
const REFUSALS = 5; // in a row: then the disk is full for everybody

const LINES = [
  { match: '^order', turns: [{ calls: [{ name: 'place_order', args: ORDER }] }, { text: 'Done.' }] },
  { match: '^ask', turns: [{ calls: [{ name: 'ask_user', args: { question: 'How many?' } }] }, { text: 'Done.' }] },
  { turns: [{ text: 'Hello.' }] },
];
const APPROVE = { decision: 'approve' };

// ---- full ----

describe('a full disk', () => {
  // A server on a small disk, with a shop: {disk, shop, server, start}. Null where there is no such disk.
  async function startSmall(t, respond) {
    const disk = await smallDisk(t);
    if (!disk) return t.skip('this system allows no mount namespace, so there is no small disk to fill');
    const folder = await mkdtemp(join(tmpdir(), 'fermata-approve-'));
    t.after(() => rm(folder, { recursive: true, force: true }));
    const shop = await Shop.open(t, respond);
    await writeFile(join(folder, 'script'), LINES.map((line) => `${JSON.stringify(line)}\n`).join(''));
    await writeFile(join(folder, 'fermata.yaml'), `tools:\n${shop.tool()}`);
    const small = {
      disk, shop, data: join(disk.path, 'data'),
      async start() {
        small.server = await startServer({ data: small.data, before: disk.enter, env: { FERMATA_CONFIG: join(folder, 'fermata.yaml'),
          FERMATA_MODEL_PROVIDER: 'scripted', FERMATA_SCRIPT: join(folder, 'script') } });
      },
    };
    await small.start();
    t.after(async () => { small.server.proc.kill('SIGKILL'); await small.server.exited; });
    return small;
  }

  // Not a page is left, not even of what the log had kept.
  async function fillUp({ disk, server }) {
    let n = 0;
    for (let refused = 0; refused < REFUSALS;) {
      await fill(disk);
      const told = await postRun(server, { threadId: 'filler', runId: `f${n++}`, messages: [user('x'.repeat(3000))] });
      if (told.status === 202) refused = 0;
      else assertProblem(told, 507, 'storage_full'), refused++;
    }
  }
  const free = ({ disk }) => unlink(join(disk.folder, 'ballast'));

  async function judge(small) {
    await small.server.stop({ keep: true });
    checkDatabase(readDatabase(small.data, small.disk.enter));
  }

  test('refuses an approval, which stays open, and takes it when there is room', async (t) => {
    const small = await startSmall(t);
    if (!small) return;
    const { server, shop } = small;
    const { threadId, open: [confirm] } = await waiting(server, 'order');
    await fillUp(small);
    for (let i = 0; i < REFUSALS; i++) assertProblem(await answer(server, confirm.interactionId, APPROVE), 507, 'storage_full');
    assert.deepEqual(await interaction(server, confirm.interactionId), confirm, 'as it was');
    assert.equal((await runOf(server, threadId)).status, 'waiting');
    checkOrders(shop, 0);
    await free(small);
    assert.equal((await answer(server, confirm.interactionId, APPROVE)).status, 200);
    await factsTo(t, server, threadId, finished('completed'));
    checkOrders(shop, 1);
    await judge(small);
  });

  test('that gets a little room at a time: whatever fits, it is done once', async (t) => {
    const small = await startSmall(t);
    if (!small) return;
    const { disk, server, shop } = small;
    const { threadId, open: [confirm] } = await waiting(server, 'order');
    await fillUp(small);
    const ballast = await open(join(disk.folder, 'ballast'), 'r+');
    t.after(() => ballast.close());
    const shrink = async () => ballast.truncate(Math.max((await ballast.stat()).size - PAGE_BYTES, 0));
    let refused = 0;
    for (let status; status !== 200; refused++) {
      await shrink();
      status = (await answer(server, confirm.interactionId, APPROVE)).status;
      assert.ok([200, 507].includes(status), `answered ${status}`);
    }
    assert.ok(refused > 1, 'it was full');
    await waitFor('the end', async () => { // the next commits find no room at first
      await shrink();
      return (await runOf(server, threadId)).status === 'completed';
    });
    const facts = await factsTo(t, server, threadId, finished('completed'));
    assert.equal(asked(facts, 'uncertain').length, 0);
    checkOrders(shop, 1);
    await judge(small);
  });

  test('when the tool comes back: its result is kept until there is room', async (t) => {
    const { respond, taken, release } = held();
    const small = await startSmall(t, respond);
    if (!small) return;
    const { server, shop } = small;
    const { threadId } = await approve(server, 'order');
    await taken;
    await fillUp(small);
    release();
    await shop.quiet(); // it has the answer
    await waitFor('it says so', () => /commit postponed/.test(server.stderr()));
    assert.equal((await runOf(server, threadId)).status, 'running');
    await free(small);
    const facts = await factsTo(t, server, threadId, finished('completed'));
    assert.deepEqual(resultOf(facts).result, { order: 1 });
    assert.equal(asked(facts, 'uncertain').length, 0);
    checkOrders(shop, 1);
    await judge(small);
  });

  test('and killed with the result in hand: somebody is asked, nothing is repeated', async (t) => {
    const { respond, taken, release } = held();
    const small = await startSmall(t, respond);
    if (!small) return;
    const { threadId } = await approve(small.server, 'order');
    await taken;
    await fillUp(small);
    release();
    await waitFor('it has no room', () => /commit postponed/.test(small.server.stderr()));
    await small.server.kill9();
    await free(small);
    await small.start();
    const open = await openUncertain(small.server, threadId);
    checkOrders(small.shop, 1);
    assert.equal((await answer(small.server, open.interactionId, { decision: 'happened' })).status, 200);
    await factsTo(t, small.server, threadId, finished('completed'));
    checkOrders(small.shop, 1);
    await judge(small);
  });
});

// ---- damaged ----

describe('a damaged snapshot', () => {
  async function startShop(t, respond) {
    const shop = await Shop.open(t, respond);
    const log = join(await mkdtemp(join(tmpdir(), 'fermata-approve-')), 'asked');
    t.after(() => rm(join(log, '..'), { recursive: true, force: true }));
    const home = await startAsking(t, { lines: LINES, config: `tools:\n${shop.tool()}`, env: { FERMATA_SCRIPT_LOG: log } });
    return { shop, home, log };
  }

  // Changes what is stored of the thread's run while the server is down.
  async function damage(home, threadId, change) {
    await home.server.kill9();
    home.server = null;
    assert.equal(sql(home.data, `UPDATE ${change} = (SELECT r.id FROM runs r JOIN threads t ON t.id = r.thread
      WHERE t.thread_id = '${threadId}'); SELECT changes();`), '1\n');
    await home.start();
  }

  // One byte in the middle of the snapshot is another.
  const flip = (home, threadId) => damage(home, threadId, `runs SET snapshot = CAST(substr(snapshot, 1,
    length(snapshot) / 2) || x'ff' || substr(snapshot, length(snapshot) / 2 + 2) AS BLOB) WHERE id`);
  const loseState = (home, threadId) => damage(home, threadId, 'tool_calls SET state = 99 WHERE run');

  // It has failed and says so; nobody is asked for it; its thread can be used, and the model is told of every call.
  async function checkFailed(t, home, threadId, log) {
    const facts = await factsTo(t, home.server, threadId, ({ type }) => type === 'run.error');
    const { data } = facts.at(-1);
    assert.deepEqual([data.code, data.retryable], ['snapshot_damaged', false]);
    assert.ok(data.message);
    assert.equal((await runOf(home.server, threadId)).status, 'failed');
    assert.deepEqual((await inbox(home.server, `?threadId=${threadId}`)).interactions, []);
    await accepted(home.server, { threadId, messages: [user('hello')] });
    await factsTo(t, home.server, threadId, finished('completed'));
    const { messages } = JSON.parse((await readFile(log, 'utf8')).trimEnd().split('\n').at(-1));
    const called = messages.flatMap(({ toolCalls }) => toolCalls ?? []).map(({ id }) => id);
    const told = messages.filter(({ role }) => role === 'tool').map(({ toolCallId }) => toolCallId);
    assert.deepEqual(told, called);
    return facts;
  }

  const remove = async (home, threadId) =>
    assert.equal((await call(home.server, 'DELETE', `${AGENT}/threads/${threadId}`)).status, 204);

  async function checkOthers(t, home, shop, good, before = 0) {
    const [confirm] = (await inbox(home.server, `?threadId=${good.threadId}`)).interactions;
    assert.equal((await answer(home.server, confirm.interactionId, APPROVE)).status, 200);
    await factsTo(t, home.server, good.threadId, finished('completed'));
    assert.equal(shop.orders.length, before + 1);
    assert.equal((await home.run(['check', '--audit'])).code, 0);
    await home.stop();
    checkDatabase(readDatabase(home.data));
  }

  const ways = { // how a person comes upon it, and what that is told
    'an approval': [409, (server, { interactionId }) => answer(server, interactionId, APPROVE)],
    'a cancel of the question': [200, (server, { interactionId }) => cancelOne(server, interactionId)],
    'a plain message': [202, (server, { threadId }) => postRun(server, { threadId, messages: [user('no, later')] })],
    'a cancel of the run': [202, (server, { threadId }) => cancel(server, threadId)],
  };
  for (const [what, [status, touch]] of Object.entries(ways)) {
    test(`of a waiting run, found by ${what}: it fails, and no other`, async (t) => {
      const { shop, home, log } = await startShop(t);
      const bad = await waiting(home.server, 'order'), good = await waiting(home.server, 'order');
      await flip(home, bad.threadId);
      assert.equal((await touch(home.server, bad.open[0])).status, status);
      const facts = await checkFailed(t, home, bad.threadId, log);
      assert.equal(resultOf(facts).error, 'cancelled');
      const settled = assertRefused(await answer(home.server, bad.open[0].interactionId, APPROVE), 409, 'already_resolved');
      assert.deepEqual([settled.status, settled.answer, settled.via], ['canceled', undefined, 'run']);
      checkOrders(shop, 0);
      await checkOthers(t, home, shop, good);
    });
  }

  test('of a running run, with a write under way: it fails, and no other; nobody knows what became of the write', async (t) => {
    const { respond, taken } = held();
    const { shop, home, log } = await startShop(t, (response, order) => (order.n === 1 ? respond : Shop.accept)(response, order));
    const bad = await approve(home.server, 'order');
    await taken;
    const good = await waiting(home.server, 'order'), question = await waiting(home.server, 'ask');
    await flip(home, bad.threadId);
    const facts = await checkFailed(t, home, bad.threadId, log);
    assert.equal(asked(facts, 'uncertain').length, 0);
    assert.deepEqual([resultOf(facts).error, resultOf(facts).content], ['unknown_outcome', 'Outcome unknown; it may have happened']);
    checkOrders(shop, 1);
    assert.equal((await answer(home.server, question.open[0].interactionId, { answer: '2' })).status, 200);
    await until(home.server, question.threadId, 'completed');
    await checkOthers(t, home, shop, good, 1);
  });

  test('and a call in a state that nobody knows: likewise', async (t) => {
    const { shop, home, log } = await startShop(t);
    const bad = await waiting(home.server, 'order'), good = await waiting(home.server, 'order');
    await loseState(home, bad.threadId);
    assert.equal((await answer(home.server, bad.open[0].interactionId, APPROVE)).status, 409);
    await checkFailed(t, home, bad.threadId, log);
    await remove(home, bad.threadId);
    await checkOthers(t, home, shop, good);
  });
});

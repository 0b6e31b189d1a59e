// SPDX-License-Identifier: Apache-2.0
//
// A tool that fails on the way: connections that are cut, a service that is down or refuses, a run that is stopped while
// a call is under way. What was executed is counted by the tool itself (approve-shop.mjs).

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { answer, inbox, startAsking, until } from '../api/asking.mjs';
import { assertProblem, call } from '../api/home.mjs';
import { accepted, AGENT, cancel, factsOf, get, openEvents, runOf, user, waitFor } from '../api/talk.mjs';
import { approve, asked, checkOrders, factsTo, finished, held, openUncertain, ORDER, resultOf, Shop } from './approve-shop.mjs';

const ATTEMPTS_MAX = 3;
const REST_MS = 500; // before the second attempt; doubles
const UNKNOWN = { en: 'Outcome unknown; it may have happened', zh: '结果未知，可能已执行' };

const turns = (name) => ({ turns: [{ calls: [{ name, args: ORDER }] }, { text: 'Done.' }] });
const LINES = [
  { match: '^(order|订)', ...turns('place_order') }, // a write
  { match: '^reserve', ...turns('reserve') },        // an idempotent write
  { match: '^price', ...turns('price') },            // a read
  { turns: [{ text: 'Hello.' }] },
];

// A shop that answers this way, and a server that knows it: {home, shop}.
async function startShop(t, respond) {
  const shop = await Shop.open(t, respond);
  const tools = [shop.tool(), shop.tool({ name: 'reserve', idempotent: true }), shop.tool({ name: 'price', effect: 'read' })];
  return { home: await startAsking(t, { lines: LINES, config: `tools:\n${tools.join('')}` }), shop };
}

const cut = (response) => response.socket.destroy();
const cutInside = (response) => { // in the middle of the answer
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': 100 });
  response.write('{"result":', () => response.socket.destroy());
};
const cutTimes = (times, how = cut) => (response, order) => (order.n <= times ? how : Shop.accept)(response, order);

describe('a connection that is cut', () => {
  for (const [where, how] of [['before the answer', cut], ['inside the answer', cutInside]]) {
    test(`${where}, after a write: uncertain, never sent again; it happened`, async (t) => {
      const { home, shop } = await startShop(t, how);
      const { threadId } = await approve(home.server, 'order');
      const open = await openUncertain(home.server, threadId);
      checkOrders(shop, 1);
      await home.restart(); // the question stands
      assert.deepEqual((await openUncertain(home.server, threadId)).interactionId, open.interactionId);
      assert.equal((await answer(home.server, open.interactionId, { decision: 'happened' })).status, 200);
      const facts = await factsTo(t, home.server, threadId, finished('completed'));
      assert.equal(resultOf(facts).error, undefined);
      checkOrders(shop, 1);
    });
  }

  test('after a write: retry sends the same key; give_up tells the model that nobody knows', async (t) => {
    const { home, shop } = await startShop(t, cutTimes(2));
    const { threadId } = await approve(home.server, 'order');
    const first = await openUncertain(home.server, threadId);
    assert.equal((await answer(home.server, first.interactionId, { decision: 'retry' })).status, 200);
    const second = await waitFor('it is asked again', async () => {
      const { interactions } = await runOf(home.server, threadId);
      return interactions.find(({ interactionId: id, type }) => type === 'uncertain' && id !== first.interactionId);
    });
    checkOrders(shop, 2);
    assert.equal((await answer(home.server, second.interactionId, { decision: 'give_up' })).status, 200);
    const facts = await factsTo(t, home.server, threadId, finished('completed'));
    assert.deepEqual([resultOf(facts).error, resultOf(facts).content], ['unknown_outcome', UNKNOWN.en]);
    checkOrders(shop, 2);
  });

  for (const word of ['reserve', 'price']) {
    const go = (server) => (word === 'price' ? accepted(server, { threadId: 'p', messages: [user(word)] }) : approve(server, word));

    test(`${word}: repeated with the same key until it is answered`, async (t) => {
      const { home, shop } = await startShop(t, cutTimes(ATTEMPTS_MAX - 1));
      const { threadId } = await go(home.server);
      const facts = await factsTo(t, home.server, threadId, finished('completed'));
      assert.deepEqual(resultOf(facts).result, { order: ATTEMPTS_MAX });
      assert.equal(asked(facts, 'uncertain').length, 0);
      checkOrders(shop, ATTEMPTS_MAX);
    });

    test(`${word}: at most ${ATTEMPTS_MAX} times`, async (t) => {
      const { home, shop } = await startShop(t, cut);
      const { threadId } = await go(home.server);
      if (word === 'reserve') {
        await openUncertain(home.server, threadId); // a write all the same
      } else {
        const facts = await factsTo(t, home.server, threadId, finished('completed'));
        assert.equal(resultOf(facts).error, 'tool_unavailable');
        assert.equal(asked(facts, 'uncertain').length, 0);
      }
      checkOrders(shop, ATTEMPTS_MAX);
    });

    test(`${word}: killed while it is under way, it is repeated with the same key`, async (t) => {
      const { respond, taken } = held();
      const { home, shop } = await startShop(t, (response, order) => (order.n === 1 ? respond : Shop.accept)(response, order));
      const { threadId } = await go(home.server);
      await taken;
      await home.server.kill9();
      home.server = null;
      await home.start();
      const facts = await factsTo(t, home.server, threadId, finished('completed'));
      assert.deepEqual(resultOf(facts).result, { order: 2 });
      assert.equal(asked(facts, 'uncertain').length, 0);
      checkOrders(shop, 2);
    });
  }
});

describe('a service that is not there, or refuses', () => {
  for (const word of ['order', 'reserve']) {
    test(`${word}: down is tried ${ATTEMPTS_MAX} times, then told to the model`, async (t) => {
      const { home, shop } = await startShop(t);
      await shop.close();
      const { threadId } = await approve(home.server, word);
      const facts = await factsTo(t, home.server, threadId, finished('completed'));
      assert.equal(resultOf(facts).error, 'tool_unavailable');
      const at = (type) => Date.parse(facts.find((fact) => fact.type === type).ts);
      const begun = Date.parse(facts.find(({ type, data }) => type === 'step.start' && data.stepName === 'execution').ts);
      const took = at('tool.call.result') - begun;
      assert.ok(took >= REST_MS * 3 && took < REST_MS * 7, `two rests, not three: ${took} ms`);
      assert.equal(asked(facts, 'uncertain').length, 0);
      checkOrders(shop, 0);
    });
  }

  test('down, and back before the last attempt: it is done, once', async (t) => {
    const { home, shop } = await startShop(t);
    await shop.close();
    const { threadId } = await approve(home.server, 'order');
    await factsTo(t, home.server, threadId, ({ type, data }) => type === 'step.start' && data.stepName === 'execution');
    await shop.listen();
    const facts = await factsTo(t, home.server, threadId, finished('completed'));
    assert.deepEqual(resultOf(facts).result, { order: 1 });
    checkOrders(shop, 1);
  });

  for (const status of [500, 503, 404]) {
    test(`${status} is an error result, and final`, async (t) => {
      const { home, shop } = await startShop(t, (response) => {
        response.writeHead(status, { 'content-type': 'application/json' });
        response.end('{"error":"sold out"}');
      });
      const { threadId } = await approve(home.server, 'order');
      const facts = await factsTo(t, home.server, threadId, finished('completed'));
      assert.match(resultOf(facts).error, /sold out/);
      assert.equal(asked(facts, 'uncertain').length, 0);
      checkOrders(shop, 1);
    });
  }
});

describe('a run that is stopped while a write is under way', () => {
  // Cancelled, with the write still in the shop.
  async function stopInside(t, text = 'order') {
    const { respond, taken, release } = held();
    const { home, shop } = await startShop(t, respond);
    const { threadId } = await approve(home.server, text);
    await taken;
    assert.equal((await cancel(home.server, threadId)).status, 202);
    assert.equal((await until(home.server, threadId, 'cancelling')).status, 'cancelling');
    return { home, shop, threadId, release };
  }

  function checkStopped(facts, kinds = ['confirm']) {
    assert.deepEqual(facts.filter(({ type }) => type === 'interaction.request').map(({ data }) => data.type), kinds, 'nobody else is asked');
    assert.ok(finished('cancelled')(facts.at(-1)));
    assert.equal(facts.filter(({ type }) => type === 'tool.call.result').length, 1);
  }

  test('it is awaited, and told as it was', async (t) => {
    const { home, shop, threadId, release } = await stopInside(t);
    const events = await openEvents(t, home.server, threadId, { query: '?after=0' });
    assert.equal((await cancel(home.server, threadId)).status, 202, 'again changes nothing');
    release();
    const facts = factsOf(await events.until(finished('cancelled')));
    checkStopped(facts);
    assert.deepEqual([resultOf(facts).result, resultOf(facts).error], [{ order: 1 }, undefined]);
    assert.equal((await runOf(home.server, threadId)).status, 'cancelled');
    checkOrders(shop, 1);
  });

  test('a failure is told as one', async (t) => {
    const { home, shop, threadId, release } = await stopInside(t);
    release((response) => { response.writeHead(500); response.end('sold out'); });
    const facts = await factsTo(t, home.server, threadId, finished('cancelled'));
    checkStopped(facts);
    assert.match(resultOf(facts).error, /sold out/);
    checkOrders(shop, 1);
  });

  for (const [language, text] of [['en', 'order'], ['zh', '订两支笔']]) {
    test(`cut: nobody knows, and nobody is asked (${language})`, async (t) => {
      const { home, shop, threadId, release } = await stopInside(t, text);
      release(cut);
      const facts = await factsTo(t, home.server, threadId, finished('cancelled'));
      checkStopped(facts);
      assert.equal(resultOf(facts).content, UNKNOWN[language]);
      assert.ok(resultOf(facts).error);
      checkOrders(shop, 1);
    });

    test(`killed: nobody knows, and nobody is asked after the restart (${language})`, async (t) => {
      const { home, shop, threadId } = await stopInside(t, text);
      await home.server.kill9();
      home.server = null;
      await home.start();
      const facts = await factsTo(t, home.server, threadId, finished('cancelled'));
      checkStopped(facts);
      assert.equal(resultOf(facts).content, UNKNOWN[language]);
      assert.ok(resultOf(facts).error);
      assert.deepEqual((await inbox(home.server)).interactions, []);
      assert.equal(shop.orders.length, 1);
    });

    test(`an open uncertain is closed with it (${language})`, async (t) => {
      const { home, shop } = await startShop(t, cut);
      const { threadId } = await approve(home.server, text);
      await openUncertain(home.server, threadId);
      assert.equal((await cancel(home.server, threadId)).status, 202);
      const facts = await factsTo(t, home.server, threadId, finished('cancelled'));
      checkStopped(facts, ['confirm', 'uncertain']);
      assert.equal(resultOf(facts).content, UNKNOWN[language]);
      assert.deepEqual((await inbox(home.server)).interactions, []);
      checkOrders(shop, 1);
    });
  }

  test('a read is not waited for', async (t) => {
    const { respond, taken } = held();
    const { home } = await startShop(t, respond);
    const { threadId } = await accepted(home.server, { threadId: 'p', messages: [user('price')] });
    await taken;
    assert.equal((await cancel(home.server, threadId)).status, 202);
    const facts = await factsTo(t, home.server, threadId, finished('cancelled'));
    assert.ok(resultOf(facts).error);
  });

  test('its thread cannot be deleted before', async (t) => {
    const { respond, taken, release } = held();
    const { home, shop } = await startShop(t, respond);
    const { threadId } = await approve(home.server, 'order');
    await taken;
    const remove = () => call(home.server, 'DELETE', `${AGENT}/threads/${threadId}`);
    assertProblem(await remove(), 409, 'busy');
    assertProblem(await remove(), 409, 'busy');
    assert.equal((await runOf(home.server, threadId)).status, 'cancelling', 'it is cancelled first');
    release();
    const facts = await factsTo(t, home.server, threadId, finished('cancelled'));
    assert.deepEqual(resultOf(facts).result, { order: 1 });
    assert.equal((await remove()).status, 204);
    assertProblem(await get(home.server, `/threads/${threadId}`), 404, 'not_found');
    checkOrders(shop, 1);
  });
});

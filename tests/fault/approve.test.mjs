// SPDX-License-Identifier: Apache-2.0
//
// What a person approved happens exactly once, and what was rejected never, wherever the server is killed: at each kind of
// call that leaves something behind, at every second such call from an approval on and every fifth from a
// rejection on, and at places by chance, some of them killed a second time after the restart. With FERMATA_KILLS at every single
// call, and that many by chance.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { checkRounds, checkUncertain, killAt, makeTemplate, PHASES, undisturbed } from './approve.mjs';
import { checkOrders, ORDER } from './approve-shop.mjs';
import { chance, seed } from './chance.mjs';
import { checkDatabase } from './oracle.mjs';

const KILLS = Number(process.env.FERMATA_KILLS ?? 0);
const THIN = { approve: 2, reject: 5 }; // of the calls from the decision on, one in so many
const TWICE = 4; // one in so many is killed again after the restart
const AT_ONCE = 3;
const LOOKS = 3; // undisturbed runs: threads take turns in another order each time, so not every run makes every kind
const TRIES = 5; // for a kind that one of them made
const TRIES_MAX = 100; // for a kind that all of them made

const count = (list, key) => list.reduce((counts, item) => ({ ...counts, [item[key]]: (counts[item[key]] ?? 0) + 1 }), {});
const spell = (counts) => Object.entries(counts).map(([name, n]) => `${name} ${n}`).join(', ');

// Kills by each plan, a few at once: what was killed.
async function killAll(template, decision, plans) {
  const queue = [...plans], kills = [];
  const worker = async () => { for (let plan; (plan = queue.shift());) kills.push(...await killAt(template, decision, plan)); };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  return kills;
}

async function enumerate(t, decision, byChance) {
  const start = Date.now();
  t.diagnostic(`FERMATA_SEED=${seed}`);
  const template = await makeTemplate(t);
  const looks = [];
  while (looks.length < LOOKS) looks.push(await undisturbed(template, decision));
  const [{ calls, decided }] = looks;
  const kinds = looks.map((look) => new Set(look.calls.map(({ group }) => group)));
  const all = [...new Set(kinds.flatMap((one) => [...one]))], sure = all.filter((group) => kinds.every((one) => one.has(group)));
  const random = chance(byChance);
  const anywhere = () => 1 + random(calls.length), thin = THIN[decision], first = random(thin);
  const kills = await killAll(template, decision, [
    ...calls.filter((_, i) => KILLS || (i >= decided && (i + first) % thin === 0)).map(({ n }) => [n]),
    ...Array.from({ length: byChance }, (_, i) => (i % TWICE ? [anywhere()] : [anywhere(), anywhere()])),
  ]);
  const missing = (groups) => groups.filter((group) => !kills.some((kill) => kill.group === group));
  for (let tries = 0; tries < TRIES_MAX && missing(tries < TRIES ? all : sure).length; tries++)
    kills.push(...await killAll(template, decision, missing(tries < TRIES ? all : sure).map((group) => [group])));
  t.diagnostic(`${calls.length} calls; killed ${all.length - missing(all).length} of ${all.length} kinds, ${sure.length} of which every `
    + `run makes; ${kills.length} kills, by what was under way: ${spell(count(kills, 'phase'))}; ${Date.now() - start} ms`);
  assert.deepEqual(missing(sure), [], 'every kind of call was killed');
  return kills;
}

test('approved: exactly once; asked whether it happened exactly when killed between started and done', async (t) => {
  const kills = await enumerate(t, 'approve', KILLS || 20);
  const when = count(kills, 'when');
  const asked = count(kills.filter((kill) => kill.when === 'between'), 'executed');
  t.diagnostic(`killed earlier ${when.earlier} times: ran once, nobody was asked; in between ${when.between} times: asked, and `
    + `${asked[1]} times it had happened, ${asked[0]} times not; later ${when.later} times: nobody was asked`);
  for (const phase of PHASES) assert.ok(kills.some((kill) => kill.phase === phase), `killed in ${phase}`);
  assert.ok(when.earlier && when.between && when.later && asked[0] && asked[1], 'none is zero');
});

test('rejected: never', async (t) => {
  const kills = await enumerate(t, 'reject', KILLS || 10);
  assert.ok(kills.every(({ when, executed }) => when !== 'between' && executed === 0));
});

// Is the judge awake? Each of these must be found.
test('the judge finds what is wrong', async (t) => {
  const { db } = await undisturbed(await makeTemplate(t), 'approve');
  const fact = (copy, type) => copy.events.find((event) => event.type === type);
  const wrongs = {
    'a question that is open': (copy) => { copy.interactions[0].status = 0; },
    'a question that nobody was shown': (copy) => { copy.interactions.push({ ...copy.interactions[0], id: 'int_x' }); },
    'a question that was lost': (copy) => { copy.interactions.pop(); },
    'an answer that nobody was told': (copy) => { fact(copy, 'interaction.resolved').type = 'plan.updated'; },
    'a call without a result': (copy) => { copy.calls[1].result_id = ''; },
    'a result that nobody was told': (copy) => { fact(copy, 'tool.call.result').type = 'plan.updated'; },
    'a call that was lost': (copy) => { copy.calls.pop(); },
    'a pause that is an end': (copy) => { const end = fact(copy, 'run.finished'); end.data = end.data.replace('interrupted', 'completed'); },
    'a leg that nobody began': (copy) => { copy.events.filter(({ type }) => type === 'run.started')[1].type = 'plan.updated'; },
  };
  checkDatabase(db);
  for (const [what, damage] of Object.entries(wrongs)) {
    const copy = structuredClone(db);
    damage(copy);
    assert.throws(() => checkDatabase(copy), what);
  }

  const between = { when: 'between', attempts: 1 }, earlier = { when: 'earlier', attempts: null }, later = { when: 'later', attempts: 1 };
  for (const [asked, kills] of [[1, []], [1, [earlier]], [1, [later]], [0, [between]], [2, [between]], [2, [between, between]]])
    assert.throws(() => checkUncertain(asked, kills), `${asked} of ${JSON.stringify(kills)}`);
  checkUncertain(1, [between, between]); // killed again before it could ask
  checkUncertain(2, [between, { when: 'between', attempts: 2 }]);
  const killed = (turns, rounds) => [{ turns, rounds }];
  for (const [rounds, kills] of [[[1, 2, 2, 3], []], [[1, 2], []], [[1, 2, 2, 3], killed(2, 2)], [[1, 1, 2, 3], killed(1, 1)], [[1, 3], []]])
    assert.throws(() => checkRounds(rounds, kills), `${rounds} with ${JSON.stringify(kills)}`);
  checkRounds([1, 2, 2, 3], killed(1, 2)); // its answer was not stored
  const shop = (...orders) => ({ orders });
  const order = { key: 'call_1', args: ORDER };
  for (const [orders, times] of [[[], 1], [[order], 0], [[order, order], 1], [[{ ...order, args: {} }], 1], [[order, { ...order, key: 'call_2' }], 2]])
    assert.throws(() => checkOrders(shop(...orders), times), JSON.stringify(orders));
});

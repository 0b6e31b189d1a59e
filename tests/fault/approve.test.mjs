// SPDX-License-Identifier: Apache-2.0
//
// What a person approved happens exactly once, and what was rejected never, wherever the server is killed: once at each
// kind of call that leaves something behind, at every one from the decision on, and at 100 places by chance, some of them
// killed a second time. With FERMATA_KILLS at every single one, and that many by chance.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { killAt, makeTemplate, PHASES, undisturbed } from './approve.mjs';
import { chance, seed } from './chance.mjs';

const KILLS = Number(process.env.FERMATA_KILLS ?? 0);
const BY_CHANCE = KILLS || 100;
const TWICE = 4; // one in so many is killed again after the restart
const AT_ONCE = 3;
const TRIES_MAX = 100; // for a kind of call that not every run makes: threads take turns in another order each time

const count = (list, key) => list.reduce((counts, item) => ({ ...counts, [item[key]]: (counts[item[key]] ?? 0) + 1 }), {});
const spell = (counts) => Object.entries(counts).map(([name, n]) => `${name} ${n}`).join(', ');

// Kills at all of them, a few at once: what was killed.
async function killAll(template, decision, plans) {
  const queue = [...plans], kills = [];
  const worker = async () => { for (let targets; (targets = queue.shift());) kills.push(...await killAt(template, decision, targets)); };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  return kills;
}

async function enumerate(t, template, decision) {
  const { calls, decided } = await undisturbed(template, decision);
  const groups = [...new Set(calls.map(({ group }) => group))];
  const random = chance(decision.length);
  const kills = await killAll(template, decision, calls.slice(KILLS ? 0 : decided).map(({ n }) => [n]));
  const anywhere = () => 1 + random(calls.length);
  kills.push(...await killAll(template, decision,
    Array.from({ length: BY_CHANCE }, (_, i) => (i % TWICE ? [anywhere()] : [anywhere(), anywhere()]))));
  const missing = () => groups.filter((group) => !kills.some((kill) => kill.group === group));
  for (let tries = 0; tries < TRIES_MAX && missing().length; tries++)
    kills.push(...await killAll(template, decision, missing().map((group) => [group])));
  assert.deepEqual(missing(), [], 'every kind of call was killed');
  const phases = count(kills, 'phase');
  t.diagnostic(`${decision}: ${calls.length} calls of ${groups.length} kinds; ${kills.length} kills: ${spell(phases)}`);
  return kills;
}

test('approved: exactly once; asked whether it happened exactly when killed between started and done', async (t) => {
  const start = Date.now();
  t.diagnostic(`FERMATA_SEED=${seed}`);
  const kills = await enumerate(t, await makeTemplate(t), 'approve');
  const when = count(kills, 'when');
  const asked = count(kills.filter((kill) => kill.when === 'between'), 'executed');
  t.diagnostic(`earlier ${when.earlier}: ran once, nobody was asked; between ${when.between}: asked, of which `
    + `${asked[1]} had happened and ${asked[0]} had not; later ${when.later}: nobody was asked; ${Date.now() - start} ms`);
  for (const phase of PHASES) assert.ok(kills.some((kill) => kill.phase === phase), `killed in ${phase}`);
  assert.ok(when.earlier && when.between && when.later && asked[0] && asked[1], 'none is zero');
});

test('rejected: never', async (t) => {
  const start = Date.now();
  t.diagnostic(`FERMATA_SEED=${seed}`);
  const kills = await enumerate(t, await makeTemplate(t), 'reject');
  assert.ok(kills.every(({ when }) => when !== 'between'));
  t.diagnostic(`${Date.now() - start} ms`);
});

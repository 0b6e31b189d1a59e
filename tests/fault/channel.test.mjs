// SPDX-License-Identifier: Apache-2.0
//
// A question over WeChat and its answer, wherever the server is killed: at each kind of call that leaves something
// behind, and at 25 places by chance, spread over all of it, some of them killed a second time. With FERMATA_KILLS at every single call, and
// that many by chance.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { chance, seed } from './chance.mjs';
import { killAt, undisturbed } from './channel.mjs';

const KILLS = Number(process.env.FERMATA_KILLS ?? 0);
const TWICE = 4; // one in so many is killed again after the restart
const AT_ONCE = 3;
const LOOKS = 3; // undisturbed runs: threads take turns in another order each time, so not every run makes every kind
const TRIES = 5; // for a kind that one of them made
const TRIES_MAX = 100; // for a kind that all of them made

async function killAll(plans) {
  const queue = [...plans], kills = [];
  const worker = async () => { for (let plan; (plan = queue.shift());) kills.push(...await killAt(plan)); };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  return kills;
}

test('every message once, one answer, everything delivered', async (t) => {
  const start = Date.now();
  t.diagnostic(`FERMATA_SEED=${seed}`);
  const looks = [];
  while (looks.length < LOOKS) looks.push(await undisturbed());
  const [calls] = looks;
  const kinds = looks.map((look) => new Set(look.map(({ group }) => group)));
  const all = [...new Set(kinds.flatMap((one) => [...one]))], sure = all.filter((group) => kinds.every((one) => one.has(group)));
  const byChance = KILLS || 25;
  const random = chance(7);
  const anywhere = () => 1 + random(calls.length);
  const within = (i) => 1 + Math.floor((i + random(1000) / 1000) / byChance * calls.length); // of one stretch after the other: no phase is left out
  const kills = await killAll([
    ...(KILLS ? calls.map(({ n }) => [n]) : []),
    ...Array.from({ length: byChance }, (_, i) => (i % TWICE ? [within(i)] : [within(i), anywhere()])),
  ]);
  const missing = (groups) => groups.filter((group) => !kills.some((kill) => kill.group === group));
  for (let tries = 0; tries < TRIES_MAX && missing(tries < TRIES ? all : sure).length; tries++)
    kills.push(...await killAll(missing(tries < TRIES ? all : sure).map((group) => [group])));
  const phases = kills.reduce((counts, { phase }) => ({ ...counts, [phase]: (counts[phase] ?? 0) + 1 }), {});
  t.diagnostic(`${calls.length} calls; killed ${all.length - missing(all).length} of ${all.length} kinds, ${sure.length} of which `
    + `every run makes; ${kills.length} kills: ${JSON.stringify(phases)}; ${Date.now() - start} ms`);
  assert.deepEqual(missing(sure), [], 'every kind of call was killed');
  for (const phase of ['start', 'question', 'answer', 'end']) assert.ok(phases[phase] > 0, `a kill in ${phase}`);
});

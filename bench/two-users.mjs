// SPDX-License-Identifier: Apache-2.0
//
// One user takes as much of a pool as they can get, another asks for a little: how long the other waits, alone and
// beside it. The pools, their attacks and probes are those of tests/fault/pools.mjs, a row each.

import { bearer } from '../tests/api/home.mjs';
import { startTalk } from '../tests/api/talk.mjs';
import { LINES, POOLS } from '../tests/fault/pools.mjs';
import { bin, micros, quick } from './kit.mjs';

const PROBES = quick ? 50 : 400;
const LONG = quick ? 20_000 : 125_000; // messages of the thread that is deleted

async function probes(it, probe, prefix, count) {
  const times = [];
  for (let n = 0; n < count; n++) {
    const start = process.hrtime.bigint();
    await probe(it, `${prefix}${n}`);
    times.push(Number(process.hrtime.bigint() - start) / 1000);
  }
  times.sort((a, b) => a - b);
  return { p50_us: times[count >> 1], p99_us: times[Math.floor(count * 0.99)], max_us: times[count - 1] };
}

async function measure({ env = {}, prepare, attack, probe, probes: most = PROBES }) {
  const count = Math.min(PROBES, most);
  process.env.FERMATA_BUILD ??= bin('fermata').replace(/\/fermata$/, '');
  const ends = [];
  try {
    const home = await startTalk({ after: (end) => ends.push(end) }, LINES, env);
    const it = { home, server: home.server, long: LONG, ann: bearer(await home.addKey('ann')), bob: bearer(await home.addKey('bob')) };
    it.offline = async (change) => {
      await home.stop();
      change();
      it.server = await home.start();
    };
    await prepare?.(it);
    await probes(it, probe, 'warm', count);
    const alone = await probes(it, probe, 'alone', count);
    const { release } = await attack(it);
    const attacked = await probes(it, probe, 'beside', count);
    release();
    return { alone, attacked };
  } finally {
    for (const end of ends) await end();
  }
}

/** A row for each pool: p99 of the other user under attack, beside its p99 alone. */
export const twoUsersRows = POOLS.map((pool) => [`users-${pool.pool}`, async () => {
  const { alone, attacked } = await measure(pool);
  return {
    value: attacked.p99_us / 1000,
    figure: `p99 ${micros(attacked.p99_us)}, max ${micros(attacked.max_us)}`,
    peer: `alone: p99 ${micros(alone.p99_us)}`,
    ratio: attacked.p99_us / alone.p99_us,
    detail: { alone, attacked },
  };
}]);

// SPDX-License-Identifier: Apache-2.0
//
// One user takes all of something that they can get, and is refused beyond their share; another is served all the same.
// How fast is for bench/two-users.mjs to say.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { bearer } from '../api/home.mjs';
import { startTalk } from '../api/talk.mjs';
import { LINES, POOLS } from './pools.mjs';

const REFUSED = { storage: 507, subscriptions: 'rate_limited', waits: 'pending', readers: 0, deletion: 0 };

for (const { pool, env = {}, prepare, attack, probe } of POOLS) {
  test(pool, async (t) => {
    const home = await startTalk(t, LINES, env);
    const it = { home, server: home.server, ann: bearer(await home.addKey('ann')), bob: bearer(await home.addKey('bob')) };
    it.offline = async (change) => {
      await home.stop();
      change();
      it.server = await home.start();
    };
    await prepare?.(it);
    await probe(it, 'alone');
    const { refused, release } = await attack(it);
    try {
      assert.equal(refused, REFUSED[pool] ?? 429);
      for (let n = 0; n < 5; n++) await probe(it, n);
    } finally {
      release();
    }
  });
}

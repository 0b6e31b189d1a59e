// SPDX-License-Identifier: Apache-2.0
//
// Clients that connect, send some of a request and leave, again and again: nothing is left of them.
// FERMATA_ABORT_CYCLES says how many.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { startServer } from '../api/server.mjs';
import { descriptors, descriptorsAtRest, isSanitized, load, memoryKib, startStreamd, until } from './kit.mjs';

const CYCLES = Number(process.env.FERMATA_ABORT_CYCLES ?? 100_000);
const WARM_UP_CYCLES = 2000;
const GROWTH_KIB_MAX = 2048;

const programs = {
  fermata: { start: startServer, path: '/healthz', share: 1 },
  streamd: { start: startStreamd, path: '/stream', share: 0.2 },
};

for (const [name, { start, path, share }] of Object.entries(programs)) {
  test(`${name}: clients that leave half-way`, { timeout: 620_000 }, async (t) => {
    const server = await start();
    try {
      const base = { descriptors: await descriptorsAtRest(server) };
      const options = { url: server.url + path, pid: server.pid, timeout: 600 };
      await load('abort', { ...options, cycles: WARM_UP_CYCLES, url: `${server.url}/healthz` });
      base.memory = memoryKib(server.pid);
      const report = await load('abort', { ...options, cycles: Math.ceil(CYCLES * share), seed: Date.now() % 1e9 });
      t.diagnostic(JSON.stringify(report));
      await until('descriptors are back', () => descriptors(server.pid) === base.descriptors);
      if (!isSanitized(server.pid)) {
        assert.ok(memoryKib(server.pid) - base.memory < GROWTH_KIB_MAX, 'memory is back');
      }
      const answer = await fetch(`${server.url}/healthz`, { headers: { connection: 'close' } });
      assert.equal(answer.status, 200);
      await answer.text();
    } finally {
      await server.stop();
    }
  });
}

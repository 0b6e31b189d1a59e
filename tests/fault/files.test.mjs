// SPDX-License-Identifier: Apache-2.0
//
// No descriptors are left: callers wait outside, those inside are served, and nothing spins.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { checkAlive, cpuMs, descriptors, get, until, withConnections, withStreamd } from './kit.mjs';

const LIMIT = 64;
const CALLERS = 100;
const WINDOW_MS = 2000;
const CPU_SHARE_MAX = 0.2;

async function checkServed(connection) {
  await connection.write(get('/hello'));
  assert.equal((await connection.response())?.body, 'hello');
}

async function withConnection(server, use) {
  await withConnections(server, 1, ([connection]) => use(connection));
}

test('descriptors run out', () => withStreamd({ limit: LIMIT }, async (server) => {
  await withConnection(server, async (first) => {
    await checkServed(first);
    await withConnections(server, CALLERS, async (callers) => {
      await until('no descriptor is left', () => descriptors(server.pid) >= LIMIT);
      const before = cpuMs(server.pid);
      const end = Date.now() + WINDOW_MS;
      while (Date.now() < end) {
        await checkServed(first);
        await new Promise((resolve) => { setTimeout(resolve, 50); });
      }
      assert.ok(cpuMs(server.pid) - before < WINDOW_MS * CPU_SHARE_MAX, 'it does not spin');
      const answered = [];
      for (const caller of callers) await caller.write(get('/hello'));
      await until('answers for those inside', () => {
        answered.splice(0, Infinity, ...callers.filter((c) => c.received.length));
        return answered.length > 0;
      });
      assert.ok(answered.length < CALLERS, 'not all fit in');
      // As some leave, others come in, until all have had their turn.
      const waiting = new Set(callers);
      await until('an answer for everybody', () => {
        for (const caller of waiting) {
          assert.ok(!caller.ended, 'nobody is turned away');
          if (!caller.received.includes('hello')) continue;
          caller.close();
          waiting.delete(caller);
        }
        return waiting.size === 0;
      });
    });
    await checkServed(first);
  });
  await until('descriptors are back', () => descriptors(server.pid) === server.descriptors);
  await checkAlive(server);
}));

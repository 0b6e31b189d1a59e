// SPDX-License-Identifier: Apache-2.0
//
// Two thousand clients that hold their connection without using it. All are cut, healthy ones are answered
// meanwhile, and the server ends up as it began.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { RawConnection } from '../api/raw.mjs';
import {
  checkAlive, descriptors, get, isSanitized, load, memoryKib, memoryPeakKib, publish, until, withStreamd,
} from './kit.mjs';

const SLOW = 2000;
const LIMIT_MS = 1500;
const SECONDS = 7; // until then all are cut, unless the machine is slow
const SECONDS_MAX = 63;
const GROWTH_KIB_MAX = 64 * 1024;

const args = ['--head-ms', '--body-ms', '--stall-ms'].flatMap((name) => [name, String(LIMIT_MS)]);

// The report of a time in which all were cut, or of the longest one.
async function untilCut(options) {
  for (let seconds = SECONDS; ; seconds *= 3) {
    const report = await load('slow', { ...options, seconds }).catch((error) => {
      if (error.report?.errors !== 0 || error.report.cut === SLOW) throw error;
      return error.report; // it took all of the time to open them
    });
    if (report.cut === SLOW || seconds >= SECONDS_MAX) return report;
  }
}

// Runs the slow clients beside healthy ones, and `beside` next to them.
async function checkSlow(t, { kind, path, polite, beside }) {
  await withStreamd({ args }, async (server) => {
    const memory = memoryKib(server.pid);
    const running = untilCut({ url: `${server.url}/hello`, 'slow-url': server.url + path, kind, conns: SLOW, healthy: 4 });
    const [report] = await Promise.all([running, beside?.(server, running)]);
    t.diagnostic(JSON.stringify(report));
    assert.ok(report.requests > 0, 'healthy clients are answered');
    assert.equal(report.errors, 0);
    assert.equal(report.cut, SLOW, 'all slow ones are cut');
    if (polite) assert.equal(report.cut_408, SLOW, 'and told why');
    await until('descriptors are back', () => descriptors(server.pid) === server.descriptors);
    if (!isSanitized(server.pid)) {
      const growth = memoryPeakKib(server.pid) - memory;
      t.diagnostic(`memory grew by ${growth} KiB at most`);
      assert.ok(growth < GROWTH_KIB_MAX, `memory is bounded: ${growth} KiB`);
    }
    await checkAlive(server);
  });
}

// Publishes until the slow readers are done, to them and to one that reads, which misses nothing.
async function publishBeside(server, running) {
  const reader = await RawConnection.open(server);
  try {
    await reader.write(get('/stream'));
    await until('the head of the stream', () => reader.received.includes('\r\n\r\n'));
    let over = false, published = 0;
    running.finally(() => { over = true; }).catch(() => {});
    const wanted = (n) => `data: ${n} ${'.'.repeat(16_000)}\n\n\r\n`;
    while (!over) {
      await publish(server, [`${published} ${'.'.repeat(16_000)}`]);
      await until('the event', () => reader.received.includes(wanted(published)) || reader.ended);
      assert.ok(!reader.ended, 'a reader that reads is not cut');
      reader.received = Buffer.alloc(0);
      published++;
    }
    assert.ok(published > 10);
  } finally {
    reader.close();
  }
}

const timeout = 240_000;
test('slow heads', { timeout }, (t) => checkSlow(t, { kind: 'head', path: '/hello', polite: true }));
test('slow bodies', { timeout }, (t) => checkSlow(t, { kind: 'body', path: '/publish', polite: true }));
test('answers that nobody reads', { timeout }, (t) => checkSlow(t, { kind: 'read', path: '/big' }));
test('streams that nobody reads', { timeout },
  (t) => checkSlow(t, { kind: 'read', path: '/stream', beside: publishBeside }));

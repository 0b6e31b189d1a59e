// SPDX-License-Identifier: Apache-2.0
//
// How often a conversation goes to the store and to the disk. These are counts, not times: they are the same on every machine,
// and a change that needs one more has to say so here. `round-trips.mjs` has the cycles and how they are counted.

import assert from 'node:assert/strict';
import { before, test } from 'node:test';

import { countCycles, KINDS } from './round-trips.mjs';

// The most that a cycle may take: hand-overs to a thread of the store (jobs that write and jobs that read), commits, SQL statements
// (BEGIN and COMMIT too), fsyncs of the database, and fsyncs of other files: what a call leaves behind, put into object storage.
const MOST = {
  run: { trips: 2, commits: 2, statements: 48, fsyncs: 2, otherFsyncs: 0 },
  pause: { trips: 4, commits: 4, statements: 133, fsyncs: 4, otherFsyncs: 0 },
  approve: { trips: 6, commits: 6, statements: 137, fsyncs: 6, otherFsyncs: 4 },
  tool: { trips: 6, commits: 5, statements: 102, fsyncs: 5, otherFsyncs: 4 },
};

let counts;
before(async () => {
  const ends = [];
  try {
    counts = await countCycles({ after: (fn) => ends.push(fn) });
  } finally {
    for (const fn of ends) await fn();
  }
});

for (const [kind, { title }] of Object.entries(KINDS)) {
  test(`${title}: no more than it takes`, (t) => {
    const { atEnd, writes, reads, ...others } = counts[kind];
    const found = { trips: writes + reads, ...others };
    t.diagnostic(`${writes} jobs that write, ${reads} that read; ${JSON.stringify(found)}`);
    const over = Object.entries(MOST[kind]).filter(([name, most]) => found[name] > most);
    assert.deepEqual(over.map(([name, most]) => `${name}: ${found[name]}, not ${most}`), []);
  });
}

test('what is asked of the disk was counted', (t) => {
  if (counts.traced) assert.ok(counts.run.fsyncs > 0);
  else t.skip('strace cannot trace here');
});

// SPDX-License-Identifier: Apache-2.0
//
// What a cycle of each kind takes of the store, with one client: tests/api/round-trips.mjs has the kinds and counts them, and its
// test holds them to what they were.

import { countCycles, KINDS } from '../tests/api/round-trips.mjs';
import { bin, quick } from './kit.mjs';

const line = ({ writes, reads, commits, fsyncs, otherFsyncs, statements }, traced) =>
  `${writes} + ${reads} jobs, ${commits} commits, ${traced ? `${fsyncs} + ${otherFsyncs}` : '?'} fsyncs, ${statements} statements`;

/** The figure: jobs of either kind for each kind of cycle. */
export async function roundTrips() {
  process.env.FERMATA_BUILD ??= bin('fermata').replace(/\/fermata$/, '');
  const ends = [];
  try {
    const counts = await countCycles({ after: (end) => ends.push(end) }, { cycles: quick ? 3 : 9 });
    const kinds = Object.entries(KINDS);
    return {
      figure: `${kinds.map(([name]) => counts[name].writes + counts[name].reads).join(', ')} jobs`,
      detail: counts,
      counts,
      more: kinds.map(([name, { title }]) => `${title}: ${line(counts[name], counts.traced)}`),
    };
  } finally {
    for (const end of ends) await end();
  }
}

/** What this should come to: jobs of a run and of a pause, commits and fsyncs of the database of an approval. */
export const fewTrips = {
  text: '<= 2, 4, 4',
  kept: ({ counts: { run, pause, approve } }) =>
    run.writes + run.reads <= 2 && pause.writes + pause.reads <= 4 && approve.commits <= 4 && approve.fsyncs <= 4,
};

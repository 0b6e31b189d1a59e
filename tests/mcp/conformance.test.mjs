// SPDX-License-Identifier: Apache-2.0
//
// The client scenarios of the protocol's own conformance suite, each with a whole server of ours as the client
// (conformance-client.mjs). Those of OAuth are left out: our credentials are headers of the configuration.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';

import { conformance, here } from './suite.mjs';

const LIMIT_MS = 60_000;
const AGAIN_MAX = 5;
const LATE = /reconnected (slightly|very) late/; // by 200 ms, which says more about a busy machine than about us: measured again
const client = `${process.execPath} ${join(here, 'conformance-client.mjs')}`;

for (const [scenario, checks] of [
  ['initialize', 1],
  ['tools_call', 1],
  ['elicitation-sep1034-client-defaults', 5],
  ['sse-retry', 3],
]) {
  test(`conformance: ${scenario}`, { timeout: (2 + AGAIN_MAX) * LIMIT_MS }, async (t) => {
    const run = () => conformance(t, ['client', '--scenario', scenario, '--command', client, '--timeout', String(LIMIT_MS)]);
    let { code, output } = await run();
    for (let again = 0; again < AGAIN_MAX && LATE.test(output); again++) ({ code, output } = await run());
    assert.equal(code, 0, output);
    assert.match(output, new RegExp(`Passed: ${checks}/${checks}, 0 failed, 0 warnings`));
  });
}

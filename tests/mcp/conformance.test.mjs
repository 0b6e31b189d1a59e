// SPDX-License-Identifier: Apache-2.0
//
// The client scenarios of the protocol's own conformance suite, each with a whole server of ours as the client
// (conformance-client.mjs). Those of OAuth are left out: our credentials are headers of the configuration.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const here = dirname(fileURLToPath(import.meta.url));
const suite = join(here, 'node_modules/@modelcontextprotocol/conformance/dist/index.js');
const LIMIT_MS = 60_000;

// The suite writes its results into the folder it runs in.
async function conform(t, scenario) {
  const folder = await mkdtemp(join(tmpdir(), 'fermata-conformance-'));
  t.after(() => rm(folder, { recursive: true, force: true }));
  const words = ['--import', join(here, 'loopback.mjs'), suite, 'client', '--scenario', scenario,
    '--command', `${process.execPath} ${join(here, 'conformance-client.mjs')}`, '--timeout', String(LIMIT_MS)];
  const proc = spawn(process.execPath, words, { cwd: folder, stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  for (const stream of [proc.stdout, proc.stderr]) stream.setEncoding('utf8').on('data', (text) => { output += text; });
  const code = await new Promise((resolve, reject) => proc.once('close', resolve).once('error', reject));
  return { code, output };
}

for (const [scenario, checks] of [
  ['initialize', 1],
  ['tools_call', 1],
  ['elicitation-sep1034-client-defaults', 5],
  ['sse-retry', 3],
]) {
  test(`conformance: ${scenario}`, { timeout: 2 * LIMIT_MS }, async (t) => {
    const { code, output } = await conform(t, scenario);
    assert.equal(code, 0, output);
    assert.match(output, new RegExp(`Passed: ${checks}/${checks}, 0 failed, 0 warnings`));
  });
}

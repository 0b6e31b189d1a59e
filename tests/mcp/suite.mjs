// SPDX-License-Identifier: Apache-2.0
//
// The protocol's own conformance suite, as a program: conformance(t, words) -> {code, output}. It writes its results
// into the folder it runs in.

import { spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const here = dirname(fileURLToPath(import.meta.url));
const PROGRAM = join(here, 'node_modules/@modelcontextprotocol/conformance/dist/index.js');

export async function conformance(t, words) {
  const folder = await mkdtemp(join(tmpdir(), 'fermata-conformance-'));
  t.after(() => rm(folder, { recursive: true, force: true }));
  const proc = spawn(process.execPath, ['--import', join(here, 'loopback.mjs'), PROGRAM, ...words], { cwd: folder, stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  for (const stream of [proc.stdout, proc.stderr]) stream.setEncoding('utf8').on('data', (text) => { output += text; });
  const code = await new Promise((resolve, reject) => proc.once('close', resolve).once('error', reject));
  return { code, output };
}

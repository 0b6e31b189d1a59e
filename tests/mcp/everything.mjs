// SPDX-License-Identifier: Apache-2.0
//
// The protocol's reference server, unmodified from npm, as the only MCP server of a server of ours: as a child, or as
// a program of its own behind HTTP.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { startAsking } from '../api/asking.mjs';
import { within } from '../api/server.mjs';
import { waitFor } from '../api/talk.mjs';

const here = dirname(fileURLToPath(import.meta.url));
const PROGRAM = join(here, 'node_modules/@modelcontextprotocol/server-everything/dist/index.js');
const START_MS_MAX = 60_000;

// Behind HTTP, on a port that `t` frees: {url, port, kill()}. `port`: one that was used before.
export async function startWeb(t, port = 0) {
  const proc = spawn(process.execPath, ['--import', join(here, 'loopback.mjs'), PROGRAM, 'streamableHttp'],
                     { env: { PATH: process.env.PATH, PORT: String(port) }, stdio: ['ignore', 'ignore', 'pipe'] });
  const exited = new Promise((resolve) => { proc.once('close', resolve).once('error', resolve); });
  let stderr = '';
  const ready = new Promise((resolve, reject) => {
    proc.stderr.setEncoding('utf8').on('data', (text) => {
      stderr += text;
      const match = /^listening on 127\.0\.0\.1:(\d+)$/m.exec(stderr);
      if (match) resolve(Number(match[1]));
    });
    exited.then(() => reject(new Error(`server-everything ended before it listened:\n${stderr}`)));
  });
  const kill = async () => {
    proc.kill('SIGKILL');
    await exited;
  };
  t.after(kill);
  const found = await within(START_MS_MAX, 'server-everything', ready);
  return { url: `http://127.0.0.1:${found}/mcp`, port: found, kill };
}

export const connected = (home) => waitFor('server-everything is connected', () => home.server.stderr().includes('mcp.connected'));

// {home, web?}. `more` are options of the server's entry; the model does what `lines` say.
export async function startEverything(t, { http = false, more = {}, lines }) {
  const web = http ? await startWeb(t) : undefined;
  const way = web ? { url: web.url } : { command: [process.execPath, PROGRAM, 'stdio'] };
  const home = await startAsking(t, { lines, config: `mcp: ${JSON.stringify({ everything: { ...way, ...more } })}\n` }); // JSON is YAML
  await connected(home);
  assert.ok(!home.server.stderr().includes('mcp.away'), home.server.stderr());
  return { home, web };
}

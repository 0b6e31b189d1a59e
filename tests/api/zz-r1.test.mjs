import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { Home } from './home.mjs';
import { get, waitFor, talk, accepted, openEvents, isEnd, user } from './talk.mjs';
import { startFakeModel, text } from '../tools/fake-model.mjs';
import { modelEnv, KEY } from './modelled.mjs';

const NOISY = `
process.stderr.write('begin\\n');
const timer = setInterval(() => process.stderr.write('noise\\n'), 5);
process.stdin.on('data', () => {}).on('end', () => setTimeout(() => process.exit(0), 300));
process.on('SIGTERM', () => setTimeout(() => process.exit(0), 300));
`;

test('a reload that fails behind a server that was started', async (t) => {
  const home = await Home.make(t);
  const file = join(home.data, 'fermata.yaml'), noisy = join(home.data, 'noisy.mjs');
  await writeFile(noisy, NOISY);
  await writeFile(file, 'agents: {assistant: {}}\n');
  home.env = { FERMATA_CONFIG: file };
  const server = await home.start();
  await writeFile(file, `mcp:\n  first: {command: ["${process.execPath}", "${noisy}"]}\n  second: {url: "http://127.0.0.1:1/{x}"}\n`);
  process.kill(server.pid, 'SIGHUP');
  await waitFor('failed', () => server.stderr().includes('config.reload_failed'));
  console.log(server.stderr());
  await new Promise((r) => setTimeout(r, 1500));
  console.log(server.stderr().slice(-3000));
  assert.equal((await get(server, '/agents')).status, 200);
  await home.stop();
});

test('anthropic: a tool name of 100 KiB', async (t) => {
  const big = 'n'.repeat(100 * 1024);
  const raw = [
    { type: 'message_start', message: { id: 'm', type: 'message', role: 'assistant', content: [], usage: { input_tokens: 1, output_tokens: 1 } } },
    { type: 'content_block_start', index: 0, content_block: { type: 'tool_use', id: 'x'.repeat(100000), name: big, input: {} } },
    { type: 'content_block_stop', index: 0 },
    { type: 'message_delta', delta: { stop_reason: 'tool_use' }, usage: { output_tokens: 2 } },
    { type: 'message_stop' },
  ].map((e) => `event: ${e.type}\ndata: ${JSON.stringify(e)}\n\n`).join('');
  let n = 0;
  const model = await startFakeModel({ kind: 'anthropic', key: KEY, answers: () => (n++ ? text('Fine.') : { raw }), t });
  const home = await Home.make(t, modelEnv('anthropic', model));
  const server = await home.start();
  const events = await openEvents(t, server, 't1');
  await accepted(server, { threadId: 't1', messages: [user('hi')] });
  try { const all = await events.until(isEnd); console.log(JSON.stringify(all.at(-1)).slice(0, 300)); } catch (e) { console.log('ERR', e.message); }
  console.log(server.stderr().slice(-1500));
  await home.stop();
});

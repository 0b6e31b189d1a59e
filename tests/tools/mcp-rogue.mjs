// SPDX-License-Identifier: Apache-2.0
//
// A server of 2025-06-18 with bad manners, as a program: `mcp-rogue.mjs LOG`. What it was told is a line in LOG each.
// To add a habit: a tool in TOOLS, and what it does in call().

import { spawn } from 'node:child_process';
import { appendFileSync, readdirSync, readlinkSync } from 'node:fs';
import { createInterface } from 'node:readline';

const TOOLS = ['twice', 'ask', 'look', 'long'];
const [log] = process.argv.slice(2);
const waiting = new Map();
const tool = (name) => ({ name, inputSchema: { type: 'object' } });
let count = 0;

const say = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
const note = (row) => appendFileSync(log, `${JSON.stringify(row)}\n`);

function ask(message) {
  const id = `q${++count}`;
  const requestedSchema = { type: 'object', properties: { word: { type: 'string' } }, required: ['word'] };
  say({ id, method: 'elicitation/create', params: { message, requestedSchema } });
  return new Promise((resolve) => { waiting.set(id, resolve); });
}

const wordOf = ({ action, content }) => content?.word ?? action;

async function call(name) {
  switch (name) {
    case 'twice': { // two before either is answered, and one after
      const both = await Promise.all([ask('First?'), ask('Second?')]);
      return [...both, await ask('Third?')].map(wordOf).join(' ');
    }
    case 'ask': {
      const reply = wordOf(await ask('Which word?'));
      note({ reply });
      return reply;
    }
    case 'look': { // what it was given, and a child that outlives whoever only kills the parent
      const far = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { stdio: 'ignore' });
      const files = readdirSync('/proc/self/fd').flatMap((fd) => { try { return [readlinkSync(`/proc/self/fd/${fd}`)]; } catch { return []; } });
      note({ env: Object.keys(process.env), files, pids: [process.pid, far.pid] });
      return 'seen';
    }
    case 'long': // a line without an end, longer than any message may be
      process.stdout.write('{"jsonrpc":"2.0","x":"');
      for (let i = 0; i < 65; i++) process.stdout.write('x'.repeat(1024 * 1024));
      return new Promise(() => {});
    default:
      return 'unknown';
  }
}

async function answer({ id, method, params }) {
  if (method === 'initialize') {
    return say({ id, result: { protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo: { name: 'rogue', version: '1' } } });
  }
  if (method === 'tools/list') return say({ id, result: { tools: TOOLS.map(tool) } });
  if (method !== 'tools/call') return say({ id, error: { code: -32601, message: 'no' } });
  note({ called: params.name });
  return say({ id, result: { content: [{ type: 'text', text: await call(params.name) }] } });
}

createInterface({ input: process.stdin }).on('line', (line) => {
  const message = JSON.parse(line);
  if (message.method === undefined) waiting.get(message.id)?.(message.result ?? { action: 'error' });
  else if (message.id !== undefined) void answer(message);
  else note({ told: message.method });
});

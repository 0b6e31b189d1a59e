// SPDX-License-Identifier: Apache-2.0
//
// An MCP server for tests, as a program: what it returns has files along. `mcp-files.mjs [--arm FILE --hang FILE]`:
// the first file becomes the second, if it is there, right before a call is answered.

import { existsSync, renameSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

export const PIXEL = Buffer.from('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==', 'base64');
export const PAGE = Buffer.from('<!DOCTYPE html><html><script>alert(1)</script></html>');
const image = (bytes, mimeType) => ({ type: 'image', data: bytes.toString('base64'), mimeType });
const text = (words) => ({ type: 'text', text: words });

const TOOLS = {
  picture: [text('a pixel'), image(PIXEL, 'text/html')],
  bare: [image(PIXEL, 'image/png')],
  several: [
    text('three of them'),
    image(PIXEL, 'image/png'),
    image(PAGE, 'image/png'), // it is none
    { type: 'resource', resource: { uri: 'file:///etc/..%2f/na\u202Eme.txt', mimeType: 'text/plain', blob: Buffer.from('words').toString('base64') } },
  ],
};

function answer({ method, params }) {
  switch (method) {
    case 'initialize':
      return { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo: { name: 'files', version: '1' } };
    case 'tools/list':
      return { tools: Object.keys(TOOLS).map((name) => ({ name, description: `${name} of it`, inputSchema: { type: 'object' } })) };
    case 'tools/call':
      return { content: TOOLS[params.name] };
    default:
      return undefined;
  }
}

function serve() {
  const { values: { arm, hang } } = parseArgs({ options: { arm: { type: 'string' }, hang: { type: 'string' } } });
  createInterface({ input: process.stdin }).on('line', (line) => {
    const message = JSON.parse(line);
    if (message.id === undefined) return;
    const result = answer(message);
    if (message.method === 'tools/call' && arm && existsSync(arm)) renameSync(arm, hang);
    const error = { code: -32601, message: `no method ${message.method}` };
    process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', id: message.id, ...(result ? { result } : { error }) })}\n`);
  }).on('close', () => process.exit(0));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) serve();

// SPDX-License-Identifier: Apache-2.0
//
// The shop as a program: `mcp-child.mjs --version 2025-06-18 --log FILE [--scared] [--silent] [--gone FILE]`.
// --scared: it ends at any first message but initialize. --silent: it does not answer what it does not know.
// --gone: it ends at once while this file exists.

import { existsSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';

import { Shop } from './mcp-shop.mjs';

const { values } = parseArgs({ options: {
  version: { type: 'string' }, log: { type: 'string' }, gone: { type: 'string' }, scared: { type: 'boolean' }, silent: { type: 'boolean' },
} });
if (values.gone && existsSync(values.gone)) {
  console.error('the shop is closed');
  process.exit(3);
}
const say = (message) => process.stdout.write(`${JSON.stringify(message)}\n`);
const shop = new Shop({ version: values.version, log: values.log });
if (!shop.modern) shop.listeners.add({ say });
console.log('shop: opening'); // a banner on the standard output: real servers do that
console.error(`shop: ${process.env.SHOP_SIGN ?? 'no sign'}`);

let first = true;
createInterface({ input: process.stdin }).on('line', async (line) => {
  const message = JSON.parse(line);
  if (values.scared && first && message.method !== 'initialize') process.exit(9);
  first = false;
  const answer = await shop.take(message, say);
  if (answer && !(values.silent && answer.error?.code === -32601)) say(answer);
}).on('close', () => process.exit(0));

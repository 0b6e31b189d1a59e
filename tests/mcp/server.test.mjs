// SPDX-License-Identifier: Apache-2.0
//
// Our MCP server: the conformance suite's scenarios for what we offer (the others want tools, resources or prompts of
// their own), and the SDK's client that asks, while the server is killed before the answer.

import assert from 'node:assert/strict';
import { resolve } from 'node:path';
import { test } from 'node:test';

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

import { inbox } from '../api/desk.mjs';
import { buildFolder } from '../api/server.mjs';
import { answer, startTalk, waitFor } from '../api/talk.mjs';
import { conformance } from './suite.mjs';

const SCRIPT = [{ turns: [{ text: 'no' }] }];

for (const [scenario, checks] of [
  ['server-initialize', 1],
  ['ping', 1],
  ['tools-list', 1],
  ['dns-rebinding-protection', 2],
]) {
  test(`conformance: ${scenario}`, async (t) => {
    const home = await startTalk(t, SCRIPT);
    const { code, output } = await conformance(t, ['server', '--scenario', scenario, '--url', `${home.server.url}/mcp`]);
    assert.equal(code, 0, output);
    assert.match(output, new RegExp(`Passed: ${checks}/${checks}, 0 failed, 0 warnings`));
  });
}

const TRANSPORTS = {
  'over HTTP': (home) => new StreamableHTTPClientTransport(new URL(`${home.server.url}/mcp`)),
  'through fermata mcp': (home) => new StdioClientTransport({
    command: resolve(buildFolder(), 'fermata'), args: ['mcp'], stderr: 'pipe', env: { PATH: process.env.PATH, FERMATA_DATA: home.data },
  }),
};

async function connect(t, transport) {
  const client = new Client({ name: 'restart-test', version: '1.0.0' });
  await client.connect(transport);
  t.after(() => client.close());
  return client;
}

const say = async (client, name, args) => (await client.callTool({ name, arguments: args })).structuredContent;

async function killAndStart(home) {
  await home.server.kill9();
  home.server = null;
  await home.start();
}

for (const [name, open] of Object.entries(TRANSPORTS)) {
  test(`the SDK's client ${name}: asks, the server is killed, a person answers, the client hears`, async (t) => {
    const home = await startTalk(t, SCRIPT);
    let client = await connect(t, open(home));
    const question = { question: 'Tea or coffee?', choices: ['tea', 'coffee'], key: 'k1' };
    const { status, id } = await say(client, 'ask_user', { ...question, wait_s: 0 });
    const confirm = await say(client, 'confirm', { action: 'Order tea', details: { cups: 2 }, key: 'k2', wait_s: 0 });
    assert.deepEqual([status, confirm.status], ['pending', 'pending']);
    await killAndStart(home);
    if (name === 'over HTTP') client = await connect(t, open(home)); // at another port; fermata mcp finds it by its folder

    assert.equal((await inbox(home.server)).length, 2);
    const waiting = say(client, 'ask_user', { ...question, wait_s: 20 }); // the same key: the same question
    await answer(home.server, id, { choices: ['c2'] });
    const heard = await waiting;
    assert.deepEqual([heard.status, heard.id, heard.answer], ['answered', id, 'coffee']);
    await answer(home.server, confirm.id, { decision: 'approve' });
    await killAndStart(home);
    if (name === 'over HTTP') client = await connect(t, open(home));
    assert.equal((await say(client, 'get_answer', { id })).answer, 'coffee');
    const agreed = await waitFor('it is approved', async () => {
      const now = await say(client, 'get_answer', { id: confirm.id, wait_s: 0 });
      return now.status !== 'pending' && now;
    });
    assert.equal(agreed.status, 'approved');
    assert.equal((await inbox(home.server)).length, 0);
  });
}

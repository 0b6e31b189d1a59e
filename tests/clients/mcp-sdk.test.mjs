// SPDX-License-Identifier: Apache-2.0
//
// The MCP client that most agents are built with, unmodified from npm, against our server: over HTTP and through
// `fermata mcp`. The client checks our schemas and every result against them.

import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { resolve } from 'node:path';
import { describe, test } from 'node:test';

import { bearer, Home } from '../api/home.mjs';
import { buildFolder } from '../api/server.mjs';
import { answer, startTalk } from '../api/talk.mjs';
import { inbox, opened } from '../api/desk.mjs';

// Beside the tests that need more of MCP, or with the other clients.
const places = ['../mcp/package.json', '../../package.json'].map((path) => createRequire(new URL(path, import.meta.url)));
function load(name) {
  const found = places.find((place) => { try { return place.resolve(name); } catch { return null; } });
  assert.ok(found, `${name} is not installed: scripts/setup test`);
  return found(name);
}
const { Client } = load('@modelcontextprotocol/sdk/client/index.js');
const { StreamableHTTPClientTransport } = load('@modelcontextprotocol/sdk/client/streamableHttp.js');
const { StdioClientTransport } = load('@modelcontextprotocol/sdk/client/stdio.js');

const SCRIPT = [{ match: '.', turns: [{ text: 'no' }] }];

const TRANSPORTS = {
  'over HTTP': (home, key) => new StreamableHTTPClientTransport(new URL(`${home.server.url}/mcp`), { requestInit: { headers: key ? bearer(key) : {} } }),
  'through fermata mcp': (home, key) => new StdioClientTransport({
    command: resolve(buildFolder(), 'fermata'), args: ['mcp'], stderr: 'pipe',
    env: { PATH: process.env.PATH, FERMATA_DATA: home.data, ...(key ? { FERMATA_API_KEY: key } : {}) },
  }),
};

async function connect(t, transport) {
  const client = new Client({ name: 'sdk-test', version: '1.0.0' });
  const errors = [];
  client.onerror = (error) => errors.push(error);
  await client.connect(transport);
  t.after(async () => {
    await client.close();
    // Over HTTP a call that was given up is answered all the same, which the protocol allows and the client remarks.
    assert.deepEqual(errors.map(String).filter((text) => !text.includes('response for an unknown message ID')), []);
  });
  return client;
}

const structured = async (call) => {
  const { structuredContent, isError } = await call;
  assert.ok(!isError);
  return structuredContent;
};

for (const [name, open] of Object.entries(TRANSPORTS)) {
  describe(`the SDK's client ${name}`, () => {
    test('connects, lists tools, asks, waits and hears', async (t) => {
      const home = await startTalk(t, SCRIPT);
      const client = await connect(t, open(home));
      assert.deepEqual(client.getServerCapabilities(), { tools: {} });
      assert.equal(client.getServerVersion().name, 'fermata');
      assert.match(client.getInstructions(), /get_answer/);
      await client.ping();
      const { tools } = await client.listTools();
      assert.deepEqual(tools.map((tool) => tool.name), ['ask_user', 'confirm', 'get_answer']);

      const waiting = structured(client.callTool({ name: 'ask_user', arguments: { question: 'Tea or coffee?', choices: ['tea', 'coffee'] } }));
      const [question] = await opened(home.server);
      await client.ping(); // meanwhile
      await answer(home.server, question.interactionId, { choices: ['c1'] });
      assert.deepEqual([(await waiting).status, (await waiting).answer], ['answered', 'tea']);

      const pending = await structured(client.callTool({ name: 'confirm', arguments: { action: 'Order tea', details: { cups: 2 }, wait_s: 0 } }));
      assert.equal(pending.status, 'pending');
      await answer(home.server, pending.id, { decision: 'approve' });
      assert.equal((await structured(client.callTool({ name: 'get_answer', arguments: { id: pending.id } }))).status, 'approved');
    });

    test('gets errors that say what is wrong', async (t) => {
      const home = await startTalk(t, SCRIPT);
      const client = await connect(t, open(home));
      await client.listTools(); // from here on it checks results
      const wrong = await client.callTool({ name: 'ask_user', arguments: {} });
      assert.ok(wrong.isError && /question/.test(wrong.content[0].text));
      await assert.rejects(client.callTool({ name: 'rm', arguments: {} }), /-32602/);
      await assert.rejects(client.listResources(), /./);
    });

    test('gives up a call, and the question stays', async (t) => {
      const home = await startTalk(t, SCRIPT);
      const client = await connect(t, open(home));
      const stop = new AbortController();
      const waiting = client.callTool({ name: 'ask_user', arguments: { question: 'q', key: 'k' } }, undefined, { signal: stop.signal });
      const [question] = await opened(home.server);
      stop.abort();
      await assert.rejects(waiting);
      await client.ping();
      assert.equal((await inbox(home.server)).length, 1);
      await answer(home.server, question.interactionId, { answer: 'late' });
      assert.equal((await structured(client.callTool({ name: 'ask_user', arguments: { question: 'q', key: 'k' } }))).answer, 'late');
    });

    test('with a key asks its user', async (t) => {
      const home = await Home.make(t);
      await home.start();
      const key = await home.addKey('ann');
      const client = await connect(t, open(home, key));
      const { id } = await structured(client.callTool({ name: 'ask_user', arguments: { question: 'q', wait_s: 0 } }));
      assert.equal((await inbox(home.server, bearer(key)))[0].interactionId, id);
    });
  });
}

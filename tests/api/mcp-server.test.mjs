// SPDX-License-Identifier: Apache-2.0
//
// Fermata as an MCP server: other agents ask people, over /mcp and through `fermata mcp`.

import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';

import { bearer, call, Home, keyId } from './home.mjs';
import { answer, get, history, postAnswer, runOf, startTalk, waitFor } from './talk.mjs';
import { answerFrame, Socket, WS } from './socket.mjs';
import { Bridge, inbox, meta, MODERN, message, opened, outcome, post, rpc, tool } from './desk.mjs';

const NOW = { wait_s: 0 };
const SCRIPT = [{ match: '.', turns: [{ text: 'The model was asked.' }] }];
const ADDRESS = `/api/v1/agent/interactions`;

async function configured(t, yaml) {
  const home = await Home.make(t);
  const file = join(home.data, 'fermata.yaml');
  await writeFile(file, yaml);
  await home.start({ FERMATA_CONFIG: file });
  return home;
}

describe('the protocol', () => {
  let home, server, cleanUp;
  before(async () => {
    home = await Home.make({ after: (fn) => { cleanUp = fn; } });
    server = await home.start();
  });
  after(() => cleanUp?.());

  test('initialize agrees on a version and gives out no session', async () => {
    for (const [asked, given] of [['2025-06-18', '2025-06-18'], ['2025-11-25', '2025-11-25'], ['2024-11-05', '2025-11-25'],
      ['2099-01-01', '2025-11-25'], [MODERN, '2025-11-25']]) {
      const reply = await rpc(server, 'initialize', { protocolVersion: asked, capabilities: {}, clientInfo: { name: 'x', version: '1' } });
      assert.equal(reply.status, 200);
      assert.equal(reply.headers['content-type'], 'application/json');
      assert.equal(reply.headers['mcp-session-id'], undefined);
      const { jsonrpc, id, result } = reply.json();
      assert.deepEqual([jsonrpc, id, result.protocolVersion], ['2.0', 1, given], asked);
      assert.deepEqual(result.capabilities, { tools: {} });
      assert.equal(result.serverInfo.name, 'fermata');
      assert.match(result.instructions, /ask_user/);
      assert.equal(result.resultType, undefined);
    }
  });

  test('notifications and answers are taken with 202 and no body', async () => {
    for (const body of [{ jsonrpc: '2.0', method: 'notifications/initialized' },
      { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1 } }, { jsonrpc: '2.0', id: 7, result: {} }]) {
      const reply = await post(server, body);
      assert.deepEqual([reply.status, reply.text], [202, ''], JSON.stringify(body));
    }
  });

  test('server/discover says what a modern client has to know', async () => {
    const reply = await rpc(server, 'server/discover', {}, { modern: true });
    assert.equal(reply.status, 200, reply.text);
    const { result } = reply.json();
    assert.equal(result.resultType, 'complete');
    assert.deepEqual(result.supportedVersions, [MODERN, '2025-11-25', '2025-06-18']);
    assert.equal(result._meta['io.modelcontextprotocol/serverInfo'].name, 'fermata');
    assert.ok(result.ttlMs > 0 && result.cacheScope === 'public');
  });

  for (const modern of [false, true]) {
    test(`tools/list has three tools with schemas, ${modern ? 'modern' : 'legacy'}`, async () => {
      const { result } = (await rpc(server, 'tools/list', {}, { modern })).json();
      assert.deepEqual(result.tools.map(({ name }) => name), ['ask_user', 'confirm', 'get_answer']);
      for (const { title, description, inputSchema, outputSchema } of result.tools) {
        assert.ok(title && description.length > 60);
        assert.equal(inputSchema.type, 'object');
        assert.equal(inputSchema.additionalProperties, false);
        assert.deepEqual(outputSchema.required, ['status', 'id']);
      }
      assert.equal(result.resultType, modern ? 'complete' : undefined);
      assert.equal(result._meta === undefined, !modern);
    });
  }

  // [what, body, headers, HTTP status, code]
  const request = (method, params, more = {}) => ({ jsonrpc: '2.0', id: 'a"b', method, ...(params ? { params } : {}), ...more });
  const head = (method, more = {}) => ({ 'mcp-protocol-version': MODERN, 'mcp-method': method, ...more });
  const call3 = (name = 'get_answer') => request('tools/call', { name, arguments: { id: 'none' }, _meta: meta() });
  const ROWS = [
    ['no JSON', '{"jsonrpc":', {}, 400, -32700],
    ['two documents', '{} {}', {}, 400, -32700],
    ['a batch', [request('ping')], {}, 400, -32600],
    ['a number', '1', {}, 400, -32600],
    ['no jsonrpc', { id: 1, method: 'ping' }, {}, 400, -32600],
    ['jsonrpc 1.0', { jsonrpc: '1.0', id: 1, method: 'ping' }, {}, 400, -32600],
    ['no method', { jsonrpc: '2.0', id: 1 }, {}, 400, -32600],
    ['a method that is a number', { jsonrpc: '2.0', id: 1, method: 5 }, {}, 400, -32600],
    ['an id that is null', { jsonrpc: '2.0', id: null, method: 'ping' }, {}, 400, -32600],
    ['an id that is an object', { jsonrpc: '2.0', id: {}, method: 'ping' }, {}, 400, -32600],
    ['a very long id', { jsonrpc: '2.0', id: 'x'.repeat(1000), method: 'ping' }, {}, 400, -32600],
    ['params that are a list', { jsonrpc: '2.0', id: 1, method: 'ping', params: [] }, {}, 400, -32600],
    ['an unknown method', request('resources/list'), {}, 200, -32601],
    ['discover without its meta', request('server/discover'), {}, 200, -32601],
    ['initialize without a version', request('initialize', {}), {}, 200, -32602],
    ['a call without a name', request('tools/call', {}), {}, 200, -32602],
    ['a call with a list of arguments', request('tools/call', { name: 'ask_user', arguments: [] }), {}, 200, -32602],
    ['an unknown tool', request('tools/call', { name: 'rm' }), {}, 200, -32602],
    ['a version in the header that nobody knows', request('ping'), { 'mcp-protocol-version': '1999-01-01' }, 400, -32022],
    ['modern: an unknown method', request('ping', { _meta: meta() }), head('ping'), 404, -32601],
    ['modern: no meta', request('tools/list', {}), head('tools/list'), 400, -32602],
    ['modern: no capabilities', request('tools/list', { _meta: meta({ 'io.modelcontextprotocol/clientCapabilities': undefined }) }), head('tools/list'), 400, -32602],
    ['modern: an unknown version', request('tools/list', { _meta: meta({ 'io.modelcontextprotocol/protocolVersion': '2030-01-01' }) }),
      { 'mcp-protocol-version': '2030-01-01', 'mcp-method': 'tools/list' }, 400, -32022],
    ['modern: no version header', request('tools/list', { _meta: meta() }), { 'mcp-method': 'tools/list' }, 400, -32020],
    ['modern: another version header', request('tools/list', { _meta: meta() }), head('tools/list', { 'mcp-protocol-version': '2025-11-25' }), 400, -32020],
    ['modern: no Mcp-Method', request('tools/list', { _meta: meta() }), { 'mcp-protocol-version': MODERN }, 400, -32020],
    ['modern: another Mcp-Method', request('tools/list', { _meta: meta() }), head('tools/call'), 400, -32020],
    ['modern: no Mcp-Name', call3(), head('tools/call'), 400, -32020],
    ['modern: another Mcp-Name', call3(), head('tools/call', { 'mcp-name': 'ask_user' }), 400, -32020],
    ['modern: Mcp-Name in broken base64', call3(), head('tools/call', { 'mcp-name': '=?base64?Z2V0X2Fuc3dlcg=?=' }), 400, -32020],
  ];
  for (const [what, body, headers, status, code] of ROWS) {
    test(`refuses ${what}`, async () => {
      const reply = await post(server, body, headers);
      const json = reply.json();
      assert.deepEqual([reply.status, json.jsonrpc, json.error?.code], [status, '2.0', code], reply.text);
      assert.ok(json.error.message.length > 5);
      const readable = typeof body === 'object' && !Array.isArray(body) && ['string', 'number'].includes(typeof body.id) && String(body.id).length < 100;
      assert.equal(json.id, readable ? body.id : null);
      if (code === -32022) assert.deepEqual(json.error.data.supported, [MODERN, '2025-11-25', '2025-06-18']);
    });
  }

  test('takes Mcp-Name in base64, and ids of any size of number', async () => {
    const encoded = `=?base64?${Buffer.from('get_answer').toString('base64')}?=`;
    const reply = await post(server, call3(), head('tools/call', { 'mcp-name': encoded }));
    assert.deepEqual([reply.status, reply.json().result.isError], [200, true]);
    const text = (await post(server, '{"jsonrpc":"2.0","id":12345678901234567890,"method":"ping"}')).text;
    assert.equal(text, '{"jsonrpc":"2.0","id":12345678901234567890,"result":{}}');
  });

  test('an empty body, other methods, other types and long bodies are refused as everywhere', async () => {
    const empty = await call(server, 'POST', '/mcp');
    assert.deepEqual([empty.status, empty.json().code], [400, 'bad_request']);
    for (const method of ['GET', 'DELETE', 'PUT']) {
      const reply = await call(server, method, '/mcp');
      assert.deepEqual([reply.status, reply.headers.allow], [405, 'POST, OPTIONS'], method);
    }
    const typed = await post(server, request('ping'), { 'content-type': 'text/plain' });
    assert.deepEqual([typed.status, typed.json().code], [415, 'unsupported_type']);
    const long = await post(server, request('ping', { x: 'x'.repeat(600_000) }));
    assert.equal(long.status, 413);
    const foreign = await post(server, request('ping'), { origin: 'https://evil.example' });
    assert.equal(foreign.status, 403);
    const host = await post(server, request('ping'), { host: 'evil.example' });
    assert.equal(host.status, 403);
  });

  // [tool, arguments, what the refusal says]
  const BAD = [
    ['ask_user', undefined, /question/], ['ask_user', {}, /question/], ['ask_user', { question: '  ' }, /question/],
    ['ask_user', { question: 5 }, /question/], ['ask_user', { question: 'q', choices: 'no' }, /choices/],
    ['ask_user', { question: 'q', choices: ['a', 'a'] }, /choices\[1\]/], ['ask_user', { question: 'q', extra: 1 }, /extra/],
    ['ask_user', { question: 'q', allow_freeform: false }, /./], ['ask_user', { question: 'q', wait_s: 51 }, /wait_s.*0 to 50/],
    ['ask_user', { question: 'q', wait_s: -1 }, /wait_s/], ['ask_user', { question: 'q', wait_s: 1.5 }, /wait_s/],
    ['ask_user', { question: 'q', wait_s: '5' }, /wait_s/], ['ask_user', { question: 'q', key: '' }, /key/],
    ['ask_user', { question: 'q', key: 'k'.repeat(801) }, /key/], ['ask_user', { question: 'q', fields: [{ name: 'a', type: 'colour' }] }, /fields\[0\]/],
    ['confirm', {}, /action/], ['confirm', { action: 'two\nlines' }, /one line/], ['confirm', { action: 'x', question: 'q' }, /question/],
    ['confirm', { action: 'x', details: 'd'.repeat(300_000) }, /too long/], ['get_answer', {}, /id/], ['get_answer', { id: 'int_none', key: 'k' }, /key/],
    ['get_answer', { id: 'int_none', wait_s: 0 }, /no question/],
  ];
  test('arguments that are wrong come back as an error that a model can mend, and nothing is asked', async () => {
    for (const [name, args, says] of BAD) {
      const reply = await tool(server, name, args);
      assert.ok(reply.isError, `${name} ${JSON.stringify(args)?.slice(0, 80)}`);
      assert.match(reply.text, says, name);
    }
    assert.deepEqual(await inbox(server), []);
    assert.equal((await get(server, '/runs/mcp:local')).status, 404);
  });
});

describe('asking', () => {
  const start = (t) => startTalk(t, SCRIPT);

  test('an answer comes to the call that waits, and to get_answer', async (t) => {
    const { server } = await start(t);
    const waiting = tool(server, 'ask_user', { question: 'How long?', choices: ['30 min', { label: '1 h', description: 'usual' }] }, { modern: true });
    const [open] = await opened(server);
    assert.deepEqual([open.type, open.threadId, open.question, open.requester], ['ask_user', 'mcp:local', 'How long?', 'local']);
    assert.deepEqual(open.choices, [{ id: 'c1', label: '30 min' }, { id: 'c2', label: '1 h', description: 'usual' }]);
    await answer(server, open.interactionId, { choices: ['c2'] });
    const { answeredAt, ...got } = await waiting;
    assert.ok(!Number.isNaN(Date.parse(answeredAt)));
    assert.deepEqual(got, { status: 'answered', id: open.interactionId, answer: '1 h', reply: { choices: ['c2'] }, answeredBy: 'local', via: 'api' });
    assert.deepEqual(await tool(server, 'get_answer', { id: got.id }), { ...got, answeredAt });

    // One run without a model, over with the answer; the thread says who asked.
    const run = await waitFor('the end', async () => { const r = await runOf(server, 'mcp:local'); return r.status === 'completed' ? r : null; });
    assert.equal(run.usage.inputTokens ?? 0, 0);
    const { messages } = await history(server, 'mcp:local');
    assert.deepEqual(messages.map(({ role }) => role), ['system', 'assistant', 'clarify', 'tool']);
    assert.equal(messages[0].content, 'A question through MCP from tester');
    assert.ok(!JSON.stringify(messages).includes('The model was asked'));
  });

  test('pending, then answered later; the hint says what to do', async (t) => {
    const { server } = await start(t);
    const asked = await tool(server, 'ask_user', { question: '几点开会？', title: '周会', ...NOW });
    assert.equal(asked.status, 'pending');
    assert.match(asked.hint, /get_answer/);
    const [open] = await inbox(server); // already there
    assert.equal(open.interactionId, asked.id);
    assert.equal((await history(server, 'mcp:local')).messages[0].content, '通过 MCP 收到的提问：周会');
    assert.equal((await tool(server, 'get_answer', { id: asked.id, ...NOW })).status, 'pending');
    const waiting = tool(server, 'get_answer', { id: asked.id });
    await answer(server, asked.id, { answer: '三点' });
    assert.deepEqual([(await waiting).status, (await waiting).answer], ['answered', '三点']);
  });

  test('forms, several choices, and what is no answer', async (t) => {
    const { server } = await start(t);
    const ask = async (args) => (await tool(server, 'ask_user', { question: 'q', ...NOW, ...args })).id;
    const seen = (id) => tool(server, 'get_answer', { id });
    const form = await ask({ fields: [{ name: 'count', type: 'number', required: true }] });
    await answer(server, form, { fields: { count: 3 } });
    assert.deepEqual([(await seen(form)).answer, (await seen(form)).reply], ['{"count":3}', { fields: { count: 3 } }]);
    const multi = await ask({ choices: ['a', 'b', 'c'], multi: true, allow_freeform: false });
    await answer(server, multi, { choices: ['c1', 'c3'] });
    assert.equal((await seen(multi)).answer, '["a","c"]');
    const skipped = await ask({});
    await answer(server, skipped, { skip: true });
    assert.equal((await seen(skipped)).status, 'declined');
    const cancelled = await ask({});
    assert.equal((await call(server, 'POST', `${ADDRESS}/${cancelled}/cancel`)).status, 200);
    assert.equal((await seen(cancelled)).status, 'cancelled');
    const stopped = await ask({});
    assert.equal((await call(server, 'POST', '/api/v1/agent/runs/mcp:local/cancel')).status, 202);
    assert.equal((await seen(stopped)).status, 'cancelled');
    const expired = await ask({});
    const waiting = seen(expired);
    const soon = new Date(Date.now() + 3000).toISOString();
    const moved = await call(server, 'PATCH', `${ADDRESS}/${expired}`, { headers: { 'content-type': 'application/json' }, body: JSON.stringify({ expiresAt: soon }) });
    assert.equal(moved.status, 200, moved.text);
    assert.equal((await waiting).status, 'expired');
  });

  test('a plain message answers, or declines a question that takes choices only', async (t) => {
    const { server } = await start(t);
    const say = (content) => call(server, 'POST', '/api/v1/agent/runs', {
      headers: { 'content-type': 'application/json' }, body: JSON.stringify({ threadId: 'mcp:local', messages: [{ role: 'user', content }] }) });
    const free = await tool(server, 'ask_user', { question: 'Where?', ...NOW });
    assert.equal((await say('in Paris')).status, 202);
    assert.deepEqual([(await tool(server, 'get_answer', { id: free.id })).answer], ['in Paris']);
    const strict = await tool(server, 'ask_user', { question: 'Which?', choices: ['a', 'b'], allow_freeform: false, ...NOW });
    assert.equal((await say('neither of them')).status, 202);
    const declined = await tool(server, 'get_answer', { id: strict.id });
    assert.equal(declined.status, 'declined');
    assert.match(declined.answer, /neither of them/);
    const picked = await tool(server, 'ask_user', { question: 'Which?', choices: ['a', 'b'], allow_freeform: false, ...NOW });
    assert.equal((await say('2')).status, 202);
    assert.deepEqual([(await tool(server, 'get_answer', { id: picked.id })).status, (await tool(server, 'get_answer', { id: picked.id })).answer], ['answered', 'b']);
  });

  test('is possible although the agent itself may not ask', async (t) => {
    const { server } = await configured(t, 'agents: {assistant: {ask_user: false}}\n');
    assert.equal((await tool(server, 'ask_user', { question: 'q', ...NOW })).status, 'pending');
    assert.equal((await inbox(server)).length, 1);
  });

  test('the thread that is deleted takes the question with it', async (t) => {
    const { server } = await start(t);
    const { id } = await tool(server, 'ask_user', { question: 'q', key: 'k', ...NOW });
    assert.equal((await call(server, 'DELETE', '/api/v1/agent/threads/mcp:local')).status, 204);
    assert.ok((await tool(server, 'get_answer', { id, ...NOW })).isError);
    assert.equal((await tool(server, 'ask_user', { question: 'q', key: 'k', ...NOW })).status, 'pending'); // a new one
  });

  test('a wait ends when the server stops, with the question kept', async (t) => {
    const home = await start(t);
    const waiting = tool(home.server, 'ask_user', { question: 'q', key: 'k' });
    const [open] = await opened(home.server);
    await home.restart();
    assert.deepEqual([(await waiting).status, (await waiting).id], ['pending', open.interactionId]);
    assert.equal((await tool(home.server, 'ask_user', { question: 'q', key: 'k', ...NOW })).id, open.interactionId);
  });

  test('a client that hangs up loses nothing', async (t) => {
    const { server } = await start(t);
    const { body } = message('tools/call', { name: 'ask_user', arguments: { question: 'q', key: 'k' } });
    const waiting = post(server, body);
    const [open] = await opened(server);
    waiting.hangUp();
    await assert.rejects(waiting);
    await answer(server, open.interactionId, { answer: 'yes' });
    assert.equal((await tool(server, 'ask_user', { question: 'q', key: 'k' })).answer, 'yes');
  });
});

describe('the same key is the same question', () => {
  test('fifty at once are one, with any wait', async (t) => {
    const { server } = await startTalk(t, SCRIPT);
    const calls = Array.from({ length: 50 }, (_, i) => tool(server, 'ask_user', { question: 'Once?', key: 'once', wait_s: i % 2 ? 0 : 50, title: `try ${i}` }));
    const [open] = await opened(server);
    const pending = await Promise.all(calls.filter((_, i) => i % 2));
    assert.ok(pending.every(({ status, id }) => status === 'pending' && id === open.interactionId));
    await answer(server, open.interactionId, { answer: 'yes' });
    for (const reply of await Promise.all(calls.filter((_, i) => i % 2 === 0))) assert.deepEqual([reply.answer, reply.id], ['yes', open.interactionId]);
    assert.equal((await tool(server, 'ask_user', { question: 'Once?', key: 'once' })).answer, 'yes');
    assert.deepEqual(await inbox(server), []);
  });

  test('another question, or the other tool, under it is refused', async (t) => {
    const { server } = await startTalk(t, SCRIPT);
    await tool(server, 'ask_user', { question: 'One?', key: 'k', ...NOW });
    for (const [name, args] of [['ask_user', { question: 'Two?' }], ['ask_user', { question: 'One?', choices: ['a'] }], ['confirm', { action: 'One?' }]]) {
      const reply = await tool(server, name, { ...args, key: 'k', ...NOW });
      assert.ok(reply.isError && /key was used for another question/.test(reply.text), reply.text);
    }
    assert.equal((await inbox(server)).length, 1);
    // The order of members and spaces between them do not matter.
    const again = await post(server, '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ask_user","arguments":{ "wait_s" : 0, "key":"k",\n "question" : "One?"}}}');
    assert.equal(outcome(again.json()).status, 'pending');
  });

  test('without a key every call asks; all of them are open to people at once', async (t) => {
    const { server } = await startTalk(t, SCRIPT);
    const asked = await Promise.all([1, 2, 3].map(() => tool(server, 'ask_user', { question: 'Again?', ...NOW })));
    assert.equal(new Set(asked.map(({ id }) => id)).size, 3);
    const open = await inbox(server);
    assert.deepEqual(open.map(({ threadId }) => threadId).sort(), ['mcp:local', 'mcp:local:2', 'mcp:local:3']);
    await answer(server, asked[2].id, { answer: 'third' });
    assert.equal((await tool(server, 'get_answer', { id: asked[2].id })).answer, 'third');
    assert.equal((await tool(server, 'get_answer', { id: asked[0].id, ...NOW })).status, 'pending');
    await waitFor('a thread to be idle', async () => (await get(server, '/interactions')).json().interactions.length === 2);
  });

  test('one more than there are threads waits its turn, and says so', async (t) => {
    const { server } = await startTalk(t, SCRIPT);
    const asked = [];
    for (let i = 0; i < 32; i++) asked.push(await tool(server, 'ask_user', { question: `q${i}`, ...NOW }));
    const queued = await tool(server, 'ask_user', { question: 'last', key: 'last', ...NOW });
    assert.deepEqual([queued.status, queued.queued], ['pending', true]);
    assert.equal((await tool(server, 'ask_user', { question: 'last', key: 'last', ...NOW })).id, queued.id);
    const waiting = tool(server, 'get_answer', { id: queued.id });
    await answer(server, asked[0].id, { answer: 'x' }); // of the first thread, where it waits
    const open = await waitFor('the last', async () => (await inbox(server)).find(({ question }) => question === 'last'));
    await answer(server, open.interactionId, { answer: 'at last' });
    assert.deepEqual([(await waiting).answer, (await waiting).id], ['at last', open.interactionId]);
    assert.equal((await tool(server, 'get_answer', { id: queued.id })).answer, 'at last'); // both ids lead there
  });

  test('also after kill -9, before and after the answer', async (t) => {
    const home = await startTalk(t, SCRIPT);
    const ask = () => tool(home.server, 'ask_user', { question: 'Still there?', key: 'k', ...NOW });
    const { id } = await ask();
    const lost = post(home.server, message('tools/call', { name: 'get_answer', arguments: { id } }).body);
    await opened(home.server);
    const again = async () => { const server = home.server; home.server = null; await server.kill9(); await home.start(); };
    await Promise.all([assert.rejects(lost), again()]);
    assert.equal((await ask()).id, id);
    await answer(home.server, id, { answer: 'yes' });
    await again();
    assert.deepEqual([(await ask()).answer, (await tool(home.server, 'get_answer', { id })).answer], ['yes', 'yes']);
    assert.deepEqual(await inbox(home.server), []);
  });
});

describe('confirm', () => {
  const details = { to: 'bob@example.org', amount: 12.50, lines: ['a', '二'] };

  test('is a real confirm about the stored bytes; approve and reject come back', async (t) => {
    const { server } = await startTalk(t, SCRIPT);
    const waiting = tool(server, 'confirm', { action: 'Pay 12.50 to Bob', details });
    const [open] = await opened(server);
    assert.deepEqual([open.type, open.pendingTool.toolName, open.pendingTool.risk], ['confirm', 'consent', 'external']);
    assert.deepEqual(JSON.parse(open.pendingTool.argsJson), { action: 'Pay 12.50 to Bob', details });
    assert.match(open.displayText, /Pay 12\.50 to Bob/);
    assert.ok(open.binding);
    assert.equal((await postAnswer(server, open.interactionId, { decision: 'approve', binding: 'k.wrong' })).status, 412);
    await answer(server, open.interactionId, { decision: 'approve', binding: open.binding });
    const yes = await waiting;
    assert.deepEqual([yes.status, yes.id, yes.answeredBy, yes.changed], ['approved', open.interactionId, 'local', undefined]);

    const no = await tool(server, 'confirm', { action: 'Pay again', ...NOW });
    await answer(server, no.id, { decision: 'reject', comment: 'once is enough' });
    const rejected = await tool(server, 'get_answer', { id: no.id });
    assert.deepEqual([rejected.status, rejected.comment], ['rejected', 'once is enough']);

    const other = await tool(server, 'confirm', { action: 'Pay 50', details: 'all of it', ...NOW });
    await answer(server, other.id, { decision: 'edit', args: { action: 'Pay 5', details: 'a part' } });
    const changed = await tool(server, 'get_answer', { id: other.id });
    assert.deepEqual([changed.status, changed.changed], ['approved', { action: 'Pay 5', details: 'a part' }]);

    const instead = await tool(server, 'confirm', { action: 'Call Bob', ...NOW });
    await answer(server, instead.id, { decision: 'respond', comment: 'write to him instead' });
    assert.deepEqual([(await tool(server, 'get_answer', { id: instead.id })).status, (await tool(server, 'get_answer', { id: instead.id })).comment], ['rejected', 'write to him instead']);
    const { messages } = await history(server, 'mcp:local');
    assert.ok(messages.filter(({ role }) => role === 'assistant').every(({ content }) => content === ''), 'no model was asked');
  });

  test('is never given by a plain message, by policy or by a grant', async (t) => {
    const { server } = await configured(t, 'agents: {assistant: {policy: {"*": allow}}}\n');
    const say = (content) => call(server, 'POST', '/api/v1/agent/runs', {
      headers: { 'content-type': 'application/json' }, body: JSON.stringify({ threadId: 'mcp:local', messages: [{ role: 'user', content }] }) });
    for (const words of ['1', 'yes', 'approve', '同意']) {
      const { id, status } = await tool(server, 'confirm', { action: 'Delete it', ...NOW });
      assert.equal(status, 'pending');
      assert.equal((await say(words)).status, 202);
      const reply = await tool(server, 'get_answer', { id });
      assert.deepEqual([reply.status, reply.comment], ['rejected', words]);
    }
    const first = await tool(server, 'confirm', { action: 'Delete it', ...NOW });
    await answer(server, first.id, { decision: 'approve', always: { scope: 'user' } });
    assert.equal((await tool(server, 'get_answer', { id: first.id })).status, 'approved');
    const second = await tool(server, 'confirm', { action: 'Delete it', ...NOW });
    assert.equal(second.status, 'pending', 'a grant counts for nothing');
    assert.equal((await tool(server, 'get_answer', { id: second.id, ...NOW })).status, 'pending');
  });

  test('a policy switches it off, or gives it to a role', async (t) => {
    const off = await configured(t, 'agents: {assistant: {policy: {consent: deny}}}\n');
    const denied = await tool(off.server, 'confirm', { action: 'Do it' });
    assert.equal(denied.status, 'failed');
    assert.ok(denied.reason.length > 5);
    assert.deepEqual(await inbox(off.server), []);

    const home = await configured(t, 'agents: {assistant: {approvers: {consent: approver}}}\n');
    const { server } = home;
    const [ann, carol] = [await home.addKey('ann'), await home.addKey('carol', '--role', 'approver')];
    const { id } = await tool(server, 'confirm', { action: 'Do it', ...NOW }, { headers: bearer(ann) });
    assert.equal((await postAnswer(server, id, { decision: 'approve' }, bearer(ann))).status, 403);
    await answer(server, id, { decision: 'approve' }, bearer(carol));
    const reply = await tool(server, 'get_answer', { id }, { headers: bearer(ann) });
    assert.deepEqual([reply.status, reply.answeredBy], ['approved', 'carol']);
    assert.match((await tool(server, 'get_answer', { id, ...NOW }, { headers: bearer(carol) })).text, /no question/);
  });

  test('survives kill -9 between the approval and its end, and is approved once', async (t) => {
    const home = await startTalk(t, SCRIPT);
    const { id } = await tool(home.server, 'confirm', { action: 'Do it', key: 'k', ...NOW });
    await answer(home.server, id, { decision: 'approve' });
    const { server } = home;
    home.server = null;
    await server.kill9();
    await home.start();
    assert.equal((await tool(home.server, 'confirm', { action: 'Do it', key: 'k' })).status, 'approved');
    assert.deepEqual(await inbox(home.server), []);
  });

  test('its tool is offered to no model and no button', async (t) => {
    const home = await startTalk(t, [{ match: '.', turns: [{ calls: [{ name: 'consent', args: { action: 'x' } }] }, { text: 'no' }] }]);
    const reply = await call(home.server, 'GET', '/api/v1/agent/agents');
    assert.ok(!reply.text.includes('consent'));
    await call(home.server, 'POST', '/api/v1/agent/runs', { headers: { 'content-type': 'application/json' }, body: JSON.stringify({ threadId: 't', messages: [{ role: 'user', content: 'go' }] }) });
    await waitFor('the end', async () => (await get(home.server, '/runs/t')).json().status === 'completed');
    assert.deepEqual(await inbox(home.server), []);
    assert.match(JSON.stringify((await history(home.server, 't')).messages), /tool_unavailable/);
  });
});

describe('whose question it is', () => {
  test('a question belongs to the user of the key, and a key argument to the key', async (t) => {
    const home = await Home.make(t);
    await home.start();
    const { server } = home;
    const [ann, bob, ann2] = [await home.addKey('ann'), await home.addKey('bob'), await home.addKey('ann')];
    const by = (key) => ({ headers: bearer(key) });
    const bare = await rpc(server, 'ping');
    assert.deepEqual([bare.status, bare.headers['www-authenticate']], [401, 'Bearer']);
    assert.equal((await rpc(server, 'ping', undefined, by('fk_wrong'))).status, 401);

    const asked = await tool(server, 'ask_user', { question: 'Ann?', key: 'k', ...NOW }, by(ann));
    const [open] = await inbox(server, bearer(ann));
    assert.deepEqual([open.threadId, open.interactionId, open.requester], [`mcp:${keyId(ann)}`, asked.id, 'ann']);
    assert.deepEqual(await inbox(server, bearer(bob)), []);
    assert.match((await tool(server, 'get_answer', { id: asked.id, ...NOW }, by(bob))).text, /no question/);
    assert.equal((await postAnswer(server, asked.id, { answer: 'x' }, bearer(bob))).status, 404);
    assert.equal((await tool(server, 'get_answer', { id: asked.id, ...NOW }, by(ann2))).status, 'pending');
    const own = await tool(server, 'ask_user', { question: 'Bob?', key: 'k', ...NOW }, by(bob));
    assert.notEqual(own.id, asked.id);
    const other = await tool(server, 'ask_user', { question: 'Ann!', key: 'k', ...NOW }, by(ann2));
    assert.equal((await get(server, `/interactions/${other.id}`, bearer(ann))).json().threadId, `mcp:${keyId(ann2)}`);

    // An interaction that no agent asked over MCP is not to be read there.
    await answer(server, asked.id, { answer: 'it is me' }, bearer(ann2));
    assert.equal((await tool(server, 'get_answer', { id: asked.id }, by(ann))).answeredBy, 'ann');
  });

  test('a key for asking reaches /mcp and nothing else', async (t) => {
    const home = await Home.make(t);
    await home.start();
    const { server } = home;
    const [person, agent] = [await home.addKey('ann'), await home.addKey('ann', '--role', 'ask')];
    const asked = await tool(server, 'confirm', { action: 'Do it', ...NOW }, { headers: bearer(agent) });
    assert.equal(asked.status, 'pending');
    const document = (await call(server, 'GET', '/api/v1/openapi.json', { headers: bearer(person) })).json();
    let routes = 0;
    for (const [path, methods] of Object.entries(document.paths)) {
      for (const method of Object.keys(methods)) {
        const open = ['/healthz', '/readyz'].includes(path) || path.endsWith('/webhook') || (path === '/api/v1/session' && method === 'post');
        if (open || path === '/mcp') continue;
        const reply = await call(server, method.toUpperCase(), path.replace(/\{\w+\}/g, 'x'), { headers: { 'content-type': 'application/json', ...bearer(agent) },
          ...(['get', 'delete'].includes(method) ? {} : { body: '{}' }) });
        assert.deepEqual([reply.status, reply.json().code], [403, 'forbidden'], `${method} ${path}`);
        routes++;
      }
    }
    assert.ok(routes > 30, `${routes} routes`);
    const login = await call(server, 'POST', '/api/v1/session', { headers: { 'content-type': 'application/json' }, body: JSON.stringify({ key: agent }) });
    assert.deepEqual([login.status, login.headers['set-cookie']], [403, undefined]);
    for (const path of ['/healthz', '/readyz', '/']) assert.equal((await call(server, 'GET', path, { headers: bearer(agent) })).status, 200, path);
    await answer(server, asked.id, { decision: 'approve' }, bearer(person));
    assert.equal((await tool(server, 'get_answer', { id: asked.id }, { headers: bearer(agent) })).status, 'approved');
    const both = await home.run(['key', 'add', '--user', 'ann', '--role', 'ask', '--role', 'user']);
    assert.deepEqual([both.code, both.stdout], [2, '']);
    assert.match(both.stderr, /ask stands alone/);
  });

  test('what a key asked is answered with another: not by it, its sessions or its tickets', async (t) => {
    const home = await startTalk(t, SCRIPT);
    const { server } = home;
    const [one, two] = [await home.addKey('ann', '--role', 'user', '--role', 'approver', '--role', 'operator'), await home.addKey('ann')];
    const login = await call(server, 'POST', '/api/v1/session', { headers: { 'content-type': 'application/json' }, body: JSON.stringify({ key: one }) });
    const cookie = { cookie: login.cookies[0].split(';')[0] };
    const question = await tool(server, 'ask_user', { question: 'q', ...NOW }, { headers: bearer(one) });
    const confirm = await tool(server, 'confirm', { action: 'Do it', ...NOW }, { headers: bearer(one) });
    const [, open] = await inbox(server, bearer(one));
    for (const headers of [bearer(one), cookie]) {
      for (const [id, body] of [[question.id, { answer: 'x' }], [question.id, { skip: true }], [confirm.id, { decision: 'approve' }], [confirm.id, { decision: 'reject' }]]) {
        const refused = await postAnswer(server, id, body, headers);
        assert.deepEqual([refused.status, refused.json().code], [403, 'forbidden'], JSON.stringify(body));
      }
      const said = await call(server, 'POST', '/api/v1/agent/runs', { headers: { 'content-type': 'application/json', ...headers },
        body: JSON.stringify({ threadId: `mcp:${keyId(one)}`, messages: [{ role: 'user', content: 'yes' }] }) });
      assert.deepEqual([said.status, said.json().code], [403, 'forbidden']);
      const short = await call(server, 'POST', `/api/v1/agent/runs/mcp:${keyId(one)}/answer`, { headers: { 'content-type': 'application/json', ...headers },
        body: JSON.stringify({ answer: 'yes' }) });
      assert.equal(short.status, 403);
      const resumed = await call(server, 'POST', '/api/v1/agent/runs', { headers: { 'content-type': 'application/json', ...headers },
        body: JSON.stringify({ threadId: open.threadId, messages: [], resume: [{ interruptId: confirm.id, status: 'resolved', payload: { approved: true } }] }) });
      assert.equal(resumed.status, 403, resumed.text);
    }
    const frame = await answerFrame(server, { type: 'confirm_response', requestId: confirm.id, approved: true }, bearer(one));
    assert.equal(frame.status, 403);
    const ticket = (await call(server, 'POST', '/api/v1/tickets', { headers: bearer(one) })).json().ticket;
    const socket = await Socket.open(t, server, { path: `${WS}?ticket=${ticket}` });
    const told = await socket.ask({ id: 'a', type: 'confirm_response', requestId: confirm.id, approved: true });
    assert.deepEqual([told.type, told.data.code], ['error', 'forbidden']);
    assert.equal((await tool(server, 'get_answer', { id: confirm.id, ...NOW }, { headers: bearer(one) })).status, 'pending');

    // A person's other key answers; and what the owner asked over the API they approve as before.
    await answer(server, question.id, { answer: 'hers' }, bearer(two));
    await answer(server, confirm.id, { decision: 'approve' }, bearer(two));
    assert.equal((await tool(server, 'get_answer', { id: confirm.id }, { headers: bearer(one) })).status, 'approved');
    const mine = await tool(server, 'confirm', { action: 'No', ...NOW }, { headers: bearer(one) });
    const back = await call(server, 'POST', `${ADDRESS}/${mine.id}/cancel`, { headers: bearer(one) });
    assert.deepEqual([back.status, back.json().status], [200, 'canceled']);
  });

  test('a key that is revoked hears nothing any more', async (t) => {
    const home = await Home.make(t);
    await home.start();
    const { server } = home;
    const [ann, other] = [await home.addKey('ann'), await home.addKey('ann')];
    const waiting = rpc(server, 'tools/call', { name: 'ask_user', arguments: { question: 'q' } }, { headers: bearer(ann) });
    const [open] = await opened(server, 1, bearer(other));
    await home.revokeKey(ann);
    await answer(server, open.interactionId, { answer: 'secret' }, bearer(other));
    const reply = await waiting;
    assert.equal(reply.status, 401);
    assert.ok(!reply.text.includes('secret'));
  });

  test('questions of our own agents are not read over it', async (t) => {
    const { server } = await startTalk(t, [{ match: '.', turns: [{ calls: [{ name: 'ask_user', args: { question: 'Mine?' } }] }, { text: 'ok' }] }]);
    await call(server, 'POST', '/api/v1/agent/runs', { headers: { 'content-type': 'application/json' }, body: JSON.stringify({ threadId: 't', messages: [{ role: 'user', content: 'go' }] }) });
    const [open] = await opened(server);
    assert.match((await tool(server, 'get_answer', { id: open.interactionId, ...NOW })).text, /no question/);
  });
});

describe('fermata mcp', () => {
  const env = (home, more = {}) => ({ FERMATA_DATA: home.data, ...more });

  for (const modern of [false, true]) {
    test(`speaks the protocol line by line, ${modern ? 'modern' : 'legacy'}`, async (t) => {
      const home = await startTalk(t, SCRIPT);
      const bridge = new Bridge(t, env(home));
      if (!modern) {
        const hello = await bridge.call('initialize', { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'x', version: '1' } });
        assert.equal(hello.result.protocolVersion, '2025-11-25');
        bridge.write({ jsonrpc: '2.0', method: 'notifications/initialized' });
      } else {
        assert.ok((await bridge.call('server/discover', {}, { modern })).result.supportedVersions.includes(MODERN));
      }
      assert.equal((await bridge.call('tools/list', {}, { modern })).result.tools.length, 3);
      assert.equal((await bridge.call('no/such', {}, { modern })).error.code, -32601);
      const waiting = bridge.tool('ask_user', { question: 'Through the pipe?' }, { modern });
      const [open] = await opened(home.server);
      assert.equal(open.threadId, 'mcp:local');
      // One that waits holds up no other.
      assert.equal((await bridge.tool('get_answer', { id: open.interactionId, ...NOW }, { modern })).status, 'pending');
      await answer(home.server, open.interactionId, { answer: 'yes' });
      assert.equal((await waiting).answer, 'yes');
      assert.deepEqual(await bridge.end(), { code: 0, signal: null });
    });
  }

  test('lines that are no messages, many at once, and cancelled ones', async (t) => {
    const home = await startTalk(t, SCRIPT);
    const bridge = new Bridge(t, env(home));
    bridge.write('this is no JSON');
    bridge.write('');
    bridge.write(`{"jsonrpc":"2.0","id":"long","method":"ping","params":{"x":"${'x'.repeat(600_000)}"}}`);
    await waitFor('two errors', () => bridge.lines.length === 2);
    assert.deepEqual(bridge.lines.map(({ error }) => error.code), [-32700, -32600]);
    const many = Array.from({ length: 40 }, (_, i) => bridge.send('tools/call', { name: 'ask_user', arguments: { question: 'q', key: 'k', wait_s: 50, title: `${i}` } }));
    const [open] = await opened(home.server);
    assert.equal((await bridge.call('ping', {})).id, 41);
    bridge.write({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: many[0].id } });
    assert.ok((await bridge.call('ping', {})).result, 'the cancel is through');
    await answer(home.server, open.interactionId, { answer: 'yes' });
    for (const { answer: reply } of many.slice(1)) assert.equal(outcome(await reply).answer, 'yes');
    await bridge.call('ping', {});
    assert.ok(!bridge.lines.some(({ id }) => id === many[0].id), 'a cancelled request is not answered');
    many[0].answer.catch(() => {});
  });

  test('a server that is away is said so, and found again when it is back', async (t) => {
    const home = await Home.make(t);
    const bridge = new Bridge(t, env(home));
    const away = await bridge.call('tools/list', {});
    assert.equal(away.error.code, -32000);
    assert.match(away.error.message, /fermata serve/);
    await home.start();
    assert.equal((await bridge.call('tools/list', {})).result.tools.length, 3);
    const { id } = await bridge.tool('ask_user', { question: 'q', key: 'k', ...NOW });
    const lost = bridge.call('tools/call', { name: 'get_answer', arguments: { id } });
    await bridge.call('ping', {});
    const { server } = home;
    home.server = null;
    await server.kill9();
    const reply = await lost;
    assert.deepEqual([reply.error.code, /went away/.test(reply.error.message)], [-32000, true], JSON.stringify(reply));
    await home.start();
    assert.equal((await bridge.tool('ask_user', { question: 'q', key: 'k', ...NOW })).id, id);
    await home.restart();
    await answer(home.server, id, { answer: 'back' });
    assert.equal((await bridge.tool('get_answer', { id })).answer, 'back');
  });

  test('with keys it needs one, over the socket and over --url', async (t) => {
    const home = await Home.make(t);
    await home.start();
    const key = await home.addKey('ann');
    const none = new Bridge(t, env(home));
    const refused = await none.call('tools/list', {});
    assert.deepEqual([refused.error.code, /FERMATA_API_KEY/.test(refused.error.message)], [-32000, true]);
    const wrong = new Bridge(t, env(home, { FERMATA_API_KEY: `${key.slice(0, -1)}${key.endsWith('A') ? 'B' : 'A'}` }));
    assert.equal((await wrong.call('tools/list', {})).error.code, -32000);
    const right = new Bridge(t, env(home, { FERMATA_API_KEY: key }));
    assert.equal((await right.tool('ask_user', { question: 'q', key: 'k', ...NOW })).status, 'pending');
    const [open] = await inbox(home.server, bearer(key));
    assert.equal(open.threadId, `mcp:${keyId(key)}`);
    for (const [more, args] of [[{}, ['--url', home.server.url]], [{ FERMATA_URL: `${home.server.url}/mcp` }, []]]) {
      const far = new Bridge(t, { FERMATA_DATA: '/nowhere', FERMATA_API_KEY: key, ...more }, args);
      assert.equal((await far.tool('ask_user', { question: 'q', key: 'k', ...NOW })).id, open.interactionId);
      assert.equal(far.stderr, '');
    }
  });

  test('ends with its input, and gives what is on its way', async (t) => {
    const home = await startTalk(t, SCRIPT);
    const bridge = new Bridge(t, env(home));
    const reply = bridge.call('tools/list', {});
    const waiting = bridge.send('tools/call', { name: 'ask_user', arguments: { question: 'q' } });
    waiting.answer.catch(() => {});
    assert.deepEqual(await bridge.end(), { code: 0, signal: null });
    assert.equal((await reply).result.tools.length, 3);
  });
});

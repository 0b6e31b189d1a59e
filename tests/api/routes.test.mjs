// SPDX-License-Identifier: Apache-2.0
//
// Every route of the running server, as its own document lists them: a new row of the route table is tested here
// without a new line.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';

import { assertProblem, bearer, call, Home, postJson } from './home.mjs';
import { accepted, AGENT, cancel, postRun, startTalk, user, waitFor } from './talk.mjs';

const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'];
const POLICY = [
  "default-src 'none'", "script-src 'self'", "style-src 'self'", "img-src 'self' blob:", "connect-src 'self'",
  "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'", "require-trusted-types-for 'script'", "trusted-types 'none'",
].join('; ');
// A body that a route takes, by the name of its schema; the button is forged, and that is written down.
const BODIES = {
  SessionRequest: { key: 'none' }, McpMessage: { jsonrpc: '2.0', method: 'notifications/initialized' },
  RunAgentInput: { messages: [user('hi')] }, CancelRequest: {}, RunAnswer: { answer: 'yes' }, ThreadChange: { title: 'other' },
  InteractionChange: { expiresAt: null }, Answer: { text: 'yes' }, Nothing: {}, UiHints: {}, Press: { threadId: 'none', forged: true },
  SettingsChange: {}, ChannelLoginWish: {}, ChannelCall: {},
};
const FORM = [['name="threadId"', 'none'], ['name="file"; filename="a.txt"', 'words']]
  .map(([name, value]) => `--b\r\nContent-Disposition: form-data; ${name}\r\n\r\n${value}\r\n`).join('') + '--b--\r\n';
const NOT_COMPARED = ['date', 'x-request-id', 'content-length']; // the length is compared apart

let home, server, key, cleanUp, api;
const operations = []; // {path, method, operation}

before(async () => {
  home = await Home.make({ after: (fn) => { cleanUp = fn; } });
  server = await home.start();
  key = await home.addKey('oscar', '--role', 'operator', '--role', 'user');
  api = (await call(server, 'GET', '/api/v1/openapi.json', { headers: bearer(key) })).json();
  for (const [path, item] of Object.entries(api.paths)) {
    for (const [method, operation] of Object.entries(item)) {
      operations.push({ path, method: method.toUpperCase(), operation });
    }
  }
});
after(() => cleanUp?.());

// A path that can be asked for: parameters take a name that nothing has.
const concrete = (path) => path.replace(/\{[^}]+\}/g, 'none');
const resolve = (node) => (node.$ref ? node.$ref.slice(2).split('/').reduce((at, name) => at[name], api) : node);
const carried = (operation, where) => (operation.parameters ?? []).map(resolve).filter((parameter) => parameter.in === where);
const isOpen = ({ operation }) => Array.isArray(operation.security) && operation.security.length === 0;
const isPath = (path) => Object.keys(api.paths).some(
  (known) => new RegExp(`^${known.replace(/\./g, '\\.').replace(/\{[^}]+\}/g, '[^/]+')}$`).test(path.replace(/%00|%2f/, '')));
const readable = () => operations.filter(({ method }) => method === 'GET');
const withKey = () => ({ headers: bearer(key) });

function assertCommonHeaders(answer) {
  assert.equal(answer.headers['x-content-type-options'], 'nosniff');
  assert.equal(answer.headers['referrer-policy'], 'no-referrer');
  assert.match(answer.headers['x-request-id'] ?? '', /^[0-9A-Za-z_-]{10,64}$/);
  assert.ok(answer.headers.date && !Number.isNaN(Date.parse(answer.headers.date)));
  assert.equal(answer.headers.server, undefined);
  assert.equal(answer.headers['x-powered-by'], undefined);
  const names = answer.rawHeaders.filter((_, i) => i % 2 === 0).map((name) => name.toLowerCase());
  assert.deepEqual(names, [...new Set(names)], 'no header twice');
}

// The document of an operation names this status, and this type of it.
function assertListed(operation, answer) {
  const response = operation.responses[answer.status], type = answer.headers['content-type']?.split(';')[0];
  assert.ok(response, `${operation.operationId} answered ${answer.status}: ${answer.text}`);
  const types = Object.keys(response.content ?? {});
  assert.ok(type ? types.includes(type) : !types.length, `${operation.operationId} ${answer.status} ${type}`);
}

describe('the document', () => {
  // Every value of `name` anywhere below `node`.
  function* valuesOf(node, name) {
    if (typeof node !== 'object' || node === null) return;
    for (const [member, value] of Object.entries(node)) {
      if (member === name && typeof value === 'string') yield value;
      yield* valuesOf(value, name);
    }
  }

  test('is OpenAPI 3.1 with a title, a version and paths', () => {
    assert.equal(api.openapi, '3.1.0');
    assert.ok(api.info.title && api.info.version);
    assert.ok(operations.length >= 8);
    for (const { path, method } of operations) {
      assert.match(path, /^\/([a-z0-9._{}-]+(\/[A-Za-z0-9._{}-]+)*)?$/, path);
      assert.ok(METHODS.includes(method), `${method} ${path}`);
    }
  });

  test('has no reference that leads nowhere', () => {
    const references = [...valuesOf(api, '$ref')];
    assert.ok(references.length > 0);
    for (const reference of references) {
      assert.match(reference, /^#\//);
      const target = reference.slice(2).split('/').reduce((node, name) => node?.[name], api);
      assert.ok(target, reference);
    }
  });

  test('names every operation once, with a summary and its answers', () => {
    const names = operations.map(({ operation }) => operation.operationId);
    assert.deepEqual(names, [...new Set(names)]);
    for (const { path, operation } of operations) {
      assert.match(operation.operationId, /^[a-z][A-Za-z0-9]+$/);
      assert.ok(operation.summary?.length > 5, operation.operationId);
      assert.ok(Object.keys(operation.responses).some((status) => /^[123]/.test(status)), operation.operationId);
      for (const [status, response] of Object.entries(operation.responses)) {
        assert.match(status, /^[1-5]\d\d$/);
        assert.ok(response.description);
      }
      const parameters = (operation.parameters ?? []).filter((parameter) => parameter.in === 'path');
      assert.deepEqual(parameters.map(({ name }) => `{${name}}`), path.match(/\{[^}]+\}/g) ?? []);
      assert.ok(parameters.every((parameter) => parameter.required === true && parameter.schema));
    }
  });

  test('uses only security schemes it declares', () => {
    const declared = Object.keys(api.components.securitySchemes);
    for (const requirement of [...api.security, ...operations.flatMap(({ operation }) => operation.security ?? [])]) {
      for (const name of Object.keys(requirement)) assert.ok(declared.includes(name), name);
    }
  });
});

describe('every route', () => {
  test('needs a key unless the document says it does not', async () => {
    for (const route of operations) {
      const { path, method, operation } = route;
      const answer = await call(server, method, concrete(path));
      if (isOpen(route)) {
        assert.ok(method !== 'GET' || answer.status < 400 || path.includes('{'), // of what is not there
          `${method} ${path} ${answer.status}`);
      } else {
        assertProblem(answer, 401, 'unauthenticated');
        assert.equal(answer.headers['www-authenticate'], 'Bearer');
        assert.ok(operation.responses['401'], `${path} says so`);
      }
    }
  });

  test('answers with a status and a type that the document names', async () => {
    for (const { path, method, operation } of operations) {
      const answer = await call(server, method, concrete(path), withKey());
      if ([400, 404, 415].includes(answer.status)) continue; // it wanted a body, or a parameter that is there
      assertListed(operation, answer);
    }
  });

  test('refuses methods it does not have with 405 and Allow', async () => {
    for (const path of Object.keys(api.paths)) {
      const known = operations.filter((route) => route.path === path).map(({ method }) => method);
      const allowed = [...known, ...(known.includes('GET') ? ['HEAD'] : []), 'OPTIONS'].sort();
      const wrong = [...METHODS, 'HEAD'].filter((method) => !allowed.includes(method));
      assert.ok(wrong.length > 0);
      for (const method of wrong) {
        const answer = await call(server, method, concrete(path), withKey());
        if (method === 'HEAD') assert.deepEqual([answer.status, answer.text], [405, '']);
        else assertProblem(answer, 405, 'method_not_allowed');
        assert.deepEqual(answer.headers.allow.split(', ').sort(), allowed, `${method} ${path}`);
        assertCommonHeaders(answer);
      }
      const options = await call(server, 'OPTIONS', concrete(path));
      assert.deepEqual([options.status, options.text], [204, '']);
      assert.deepEqual(options.headers.allow.split(', ').sort(), allowed);
    }
  });

  test('answers HEAD like GET, without the body', async () => {
    const shown = ({ headers }) =>
      Object.fromEntries(Object.entries(headers).filter(([name]) => !NOT_COMPARED.includes(name)));
    for (const path of [...readable().map((route) => concrete(route.path)), '/', '/icon.svg']) {
      const get = await call(server, 'GET', path, withKey()), head = await call(server, 'HEAD', path, withKey());
      assert.equal(head.status, get.status, path);
      assert.equal(head.text, '');
      assert.deepEqual(shown(head), shown(get));
      if (get.headers['transfer-encoding']) continue; // a stream has no length
      assert.equal(get.headers['content-length'], String(Buffer.byteLength(get.text)));
      if (path === '/metrics') assert.match(head.headers['content-length'], /^\d+$/); // its figures move
      else assert.equal(head.headers['content-length'], get.headers['content-length'], path);
    }
    const refused = await call(server, 'HEAD', '/api/v1/session');
    assert.deepEqual([refused.status, refused.text], [401, '']);
  });

  test('has the common headers on every answer, and is never cached', async () => {
    const ids = new Set();
    let count = 0;
    for (const { path, method } of operations) {
      for (const headers of [bearer(key), {}, { host: 'evil.example' }, { origin: 'https://evil.example' },
        bearer('wrong')]) {
        const answer = await call(server, method, concrete(path), { headers });
        assertCommonHeaders(answer);
        assert.equal(answer.headers['cache-control'], 'no-store', `${method} ${path}`);
        if (answer.status >= 400) assertProblem(answer, answer.status, answer.json().code, answer.json().field);
        ids.add(answer.headers['x-request-id']);
        count++;
      }
    }
    assert.equal(ids.size, count, 'each request has an id of its own');
  });

  test('is found by its exact path only', async () => {
    for (const { path, method } of operations) {
      const at = concrete(path);
      for (const other of [`${at}/`, `/${at}`, `${at}x`, `${at}%00`, `${at}%2f`, `${at}/..`, `/x/..${at}`,
        at.toUpperCase()]) {
        if (other === at || isPath(other)) continue; // a parameter takes any name
        const answer = await call(server, method, other, withKey());
        if (answer.status === 400) assertProblem(answer, 400, 'bad_request');
        else assertProblem(answer, 404, 'not_found');
      }
      if (path.includes('{')) continue;
      const query = await call(server, method, `${at}?x=1&ticket=no`, withKey());
      assert.notEqual(query.status, 404, `${method} ${path} with a query`);
    }
  });
});

describe('what a request carries', () => {
  // Calls of channels are asked below: nothing of theirs is read where there is no channel.
  const asked = () => readable().filter(({ path }) => !path.includes('/channels/'));
  const isRead = (answer, name) => answer.status === 400 && answer.json().field === name;
  const ask = (path, query) => call(server, 'GET', `${concrete(path)}?${query}`, withKey());
  // What has to be there before `name` is looked at.
  const before = (operation, name) => [
    ...carried(operation, 'query').filter((other) => other.required && other.name !== name).map((other) => `${other.name}=none&`),
    ...(name === 'protocolVersion' ? ['format=ag-ui&'] : []),
  ].join('');

  test('has a name once in a route, is described, and is taken by some route', () => {
    const used = new Set();
    for (const { operation } of operations) {
      const all = (operation.parameters ?? []).map(resolve), names = all.map((parameter) => `${parameter.in} ${parameter.name}`);
      assert.deepEqual(names, [...new Set(names)], operation.operationId);
      all.forEach((parameter) => used.add(parameter));
    }
    for (const parameter of Object.values(api.components.parameters)) {
      assert.ok(used.has(parameter), parameter.name);
      assert.ok(['query', 'header'].includes(parameter.in) && parameter.description && parameter.schema, parameter.name);
    }
    const names = (id, where) => carried(operations.find(({ operation }) => operation.operationId === id).operation, where).map(({ name }) => name);
    assert.deepEqual(names('getHistory', 'query'), ['threadId', 'before', 'after', 'limit']);
    assert.deepEqual(names('getEvents', 'header'), ['Last-Event-ID']);
  });

  test('of the query: what is listed is read, and nothing else is', async () => {
    const names = new Set(Object.values(api.components.parameters).filter((parameter) => parameter.in === 'query').map(({ name }) => name));
    for (const name of ['ticket', 'exp', 'sig']) names.delete(name); // below
    assert.ok(names.size >= 10);
    for (const { path, operation } of asked()) {
      const listed = carried(operation, 'query').map((parameter) => parameter.name);
      for (const name of names) {
        const answer = await ask(path, `${before(operation, name)}${name}=%zz`);
        assert.equal(isRead(answer, name), listed.includes(name), `${path} ${name} ${answer.status}`);
        if (answer.status === 400) assertListed(operation, answer);
      }
    }
  });

  test('of the query: what its schema says is what is taken', async () => {
    for (const { path, operation } of asked()) {
      for (const { name, required, schema } of carried(operation, 'query')) {
        const taken = async (value) => !isRead(await ask(path, `${before(operation, name)}${name}=${value}`), name);
        for (const value of schema.enum ?? []) assert.ok(await taken(value), `${path} ${name}=${value}`);
        if (schema.enum) assert.ok(!await taken('other'), `${path} ${name}`);
        if (schema.maximum !== undefined) {
          for (const value of [schema.minimum, schema.maximum, schema.default]) assert.ok(await taken(value), `${path} ${name}=${value}`);
          for (const value of [schema.minimum - 1, schema.maximum + 1]) assert.ok(!await taken(value), `${path} ${name}=${value}`);
        }
        if (required) assert.ok(isRead(await ask(path, before(operation, name)), name), `${path} without ${name}`);
      }
    }
  });

  test('instead of a key: a ticket, a signature', async () => {
    for (const { path, operation } of asked()) {
      if (isOpen({ operation })) continue;
      const { ticket } = (await call(server, 'POST', '/api/v1/tickets', withKey())).json();
      const listed = carried(operation, 'query').map((parameter) => parameter.name);
      const known = await call(server, 'GET', `${concrete(path)}?ticket=${ticket}`);
      assert.equal(known.status !== 401, listed.includes('ticket'), `${path} ${known.status}`);
      for (const name of ['exp', 'sig']) {
        const answer = await call(server, 'GET', `${concrete(path)}?${name}=1`);
        assert.equal(answer.status, listed.includes(name) ? 403 : 401, `${path} ${name}`);
      }
    }
  });

  test('Idempotency-Key: where it is listed a bad one is 400, and one of another request 422', async () => {
    const used = await call(server, 'PATCH', `${AGENT}/agents/assistant/settings`, {
      headers: { ...bearer(key), 'content-type': 'application/json', 'idempotency-key': 'used' }, body: '{"locale":null}',
    });
    assert.equal(used.status, 200, used.text);
    let count = 0;
    for (const { path, method, operation } of operations) {
      if (method === 'GET') continue;
      const at = concrete(path.replace('{n}', '1').replace(/\{(name|agent)\}/, 'assistant'));
      const schema = Object.values(operation.requestBody?.content ?? {})[0]?.schema.$ref.split('/').at(-1);
      const body = schema === 'Upload' ? FORM : schema && JSON.stringify(BODIES[schema]);
      const type = schema === 'Upload' ? 'multipart/form-data; boundary=b' : 'application/json';
      const send = (given) => call(server, method, at, {
        headers: { ...bearer(key), ...(body ? { 'content-type': type } : {}), 'idempotency-key': given }, body,
      });
      const bad = await send('x'.repeat(256)), other = await send('used');
      if (carried(operation, 'header').some(({ name }) => name === 'Idempotency-Key')) {
        assertProblem(bad, 400, 'invalid_field', 'Idempotency-Key');
        assertProblem(other, 422, 'idempotency_mismatch');
        for (const answer of [bad, other]) assertListed(operation, answer);
        count++;
      } else {
        assert.ok(!isRead(bad, 'Idempotency-Key'), at);
        assert.doesNotMatch(other.text, /idempotency_mismatch/, at);
      }
    }
    assert.ok(count >= 14);
  });
});

describe('what is answered when something is there', () => {
  const SCRIPT = [
    { match: '^mute', turns: [{ text: 'x', delay_ms: 600_000 }] },
    { match: '^look', turns: [{ calls: [{ name: 'look', args: {} }] }, { text: 'Seen.' }] },
    { turns: [{ text: 'Hello.' }] },
  ];
  const QUEUE_BYTES_MAX = 16 * 1024 * 1024;
  const TOKEN = 'a-token-of-wechat';
  const listed = (id, answer, status) => {
    assert.equal(answer.status, status, answer.text);
    assertListed(operations.find(({ operation }) => operation.operationId === id).operation, answer);
  };

  test('a thread that is busy', async (t) => {
    const { server: busy } = await startTalk(t, SCRIPT);
    await accepted(busy, { threadId: 'full', messages: [user('mute')] });
    listed('cancelRun', await cancel(busy, 'full', { queue: 1 }), 400);
    listed('cancelRun', await cancel(busy, 'full', { runId: 'other' }), 409);
    for (let i = 0; i < 2; i++) await accepted(busy, { threadId: 'full', messages: [user('x'.repeat(QUEUE_BYTES_MAX / 4))] });
    listed('createRun', await postRun(busy, { threadId: 'full', messages: [user('one more')] }), 429);
    listed('runAgent', await postJson(busy, `${AGENT}/ag-ui/assistant`, { threadId: 'full', messages: [user('one more')] }), 429);
    for (const format of ['md', 'json']) listed('exportThread', await call(busy, 'GET', `${AGENT}/threads/full/export?format=${format}`), 200);
  });

  test('a thread whose tool is at work, and calls of channels', async (t) => {
    let called = false;
    const tool = createServer((request, response) => { called ||= request.url === '/look'; if (request.url !== '/look') response.end(); }).listen(0, '127.0.0.1');
    await once(tool, 'listening');
    t.after(() => { tool.closeAllConnections(); tool.close(); });
    const url = `http://127.0.0.1:${tool.address().port}`, talked = await Home.make(t);
    const at = (name) => join(talked.data, name), write = (name, text) => writeFile(at(name), text, { mode: 0o600 });
    await write('script.jsonl', SCRIPT.map((line) => `${JSON.stringify(line)}\n`).join(''));
    for (const name of ['token', 'secret']) await write(name, name === 'token' ? TOKEN : 'a-secret-of-somebody');
    await write('fermata.yaml', `tools:
  - http: {name: look, url: "${url}/look", effect: read, schema: {type: object}}
channels:
  own: {kind: webhook, url: "${url}/own", secret_file: "${at('secret')}", allow: ["*"]}
  oa: {kind: wechat_oa, base_url: "${url}", app_id: wx0123456789abcdef, token_file: "${at('token')}", secret_file: "${at('secret')}", allow: ["*"]}
`);
    const there = await talked.start({ FERMATA_MODEL_PROVIDER: 'scripted', FERMATA_SCRIPT: at('script.jsonl'), FERMATA_CONFIG: at('fermata.yaml') });

    const hook = (name, query = '') => `${AGENT}/channels/${name}/webhook${query}`;
    const time = Math.floor(Date.now() / 1000), sign = createHash('sha1').update([TOKEN, `${time}`, 'n'].sort().join('')).digest('hex');
    const query = `?timestamp=${time}&nonce=n&signature=${sign}`;
    listed('verifyChannel', await call(there, 'GET', hook('none')), 404);
    listed('verifyChannel', await call(there, 'GET', hook('own')), 405);
    listed('verifyChannel', await call(there, 'GET', hook('oa', `${query}&echostr=%zz`)), 403);
    listed('verifyChannel', await call(there, 'GET', hook('oa', query)), 400);
    listed('verifyChannel', await call(there, 'GET', hook('oa', `${query}&echostr=hello`)), 200);
    listed('callChannel', await postJson(there, hook('own'), {}), 401);
    listed('callChannel', await postJson(there, hook('oa'), {}), 403);
    listed('callChannel', await postJson(there, hook('oa', query), {}), 400);

    await accepted(there, { threadId: 'looks', messages: [user('look')] });
    await waitFor('the call', () => called);
    listed('deleteThread', await call(there, 'DELETE', `${AGENT}/threads/looks`), 409);
  });
});

describe('what is not there', () => {
  test('is 404 for whoever may know, 401 under /api for others', async () => {
    for (const path of ['/api/v1/none', '/api/v1/', '/api/', '/api/v2/session', '/api/v1/openapi.json/x']) {
      assertProblem(await call(server, 'GET', path, withKey()), 404, 'not_found');
      assertProblem(await call(server, 'GET', path), 401, 'unauthenticated');
      assertProblem(await call(server, 'POST', path), 401, 'unauthenticated');
    }
    for (const path of ['/none', '/api', '/keys', '/admin', '/index.html.bak']) {
      assertProblem(await call(server, 'GET', path), 404, 'not_found');
    }
  });

  test('has the common headers, and looks the same for every path', async () => {
    const bodies = new Set();
    for (const path of ['/none', '/other', '/.env']) {
      const answer = await call(server, 'GET', path);
      assertCommonHeaders(answer);
      assert.equal(answer.headers['cache-control'], 'no-store');
      bodies.add(answer.text);
    }
    assert.equal(bodies.size, 1);
  });

  test('methods nobody knows are 501', async () => {
    for (const method of ['TRACE', 'PROPFIND']) {
      const answer = await call(server, method, '/healthz');
      assert.equal(answer.status, 501, method);
      assert.equal(answer.json().status, 501);
      assert.doesNotMatch(answer.text, /host:/i, 'nothing is echoed');
    }
  });
});

describe('the page', () => {
  const types = { '/': 'text/html; charset=utf-8', '/icon.svg': 'image/svg+xml' }; // the others: tests/browser/served.test.mjs

  test('has a policy, a type, and the common headers', async () => {
    for (const path of Object.keys(types)) {
      const answer = await call(server, 'GET', path);
      assert.equal(answer.status, 200);
      assert.equal(answer.headers['content-security-policy'], POLICY);
      assert.equal(answer.headers['cross-origin-opener-policy'], 'same-origin');
      assert.equal(answer.headers['cache-control'], 'no-cache');
      assert.equal(answer.headers['content-type'], types[path]);
      assertCommonHeaders(answer);
    }
  });

  test('keeps to its own policy: nothing inline, nothing from elsewhere', async () => {
    const { text } = await call(server, 'GET', '/');
    assert.doesNotMatch(text, /<script(?![^>]*\bsrc=)|<style|\sstyle=|\son[a-z]+=|javascript:/i);
    for (const [, target] of text.matchAll(/\b(?:src|href)="([^"]*)"/g)) {
      assert.doesNotMatch(target, /^(?:[a-z]+:|\/)/i, `${target} is relative, so that a path prefix works`);
    }
    for (const [, target] of text.matchAll(/<(?:link|script|img)[^>]*\b(?:src|href)="([^"]*)"/g)) {
      assert.equal((await call(server, 'GET', `/${target}`)).status, 200, target);
    }
  });

  test('is not sent twice: 304 for the same ETag, in every form of If-None-Match', async () => {
    for (const path of Object.keys(types)) {
      const { etag } = (await call(server, 'GET', path)).headers;
      assert.match(etag, /^"[A-Za-z0-9_-]+"$/);
      for (const known of [etag, `W/${etag}`, `"other", ${etag}`, '*']) {
        const answer = await call(server, 'GET', path, { headers: { 'if-none-match': known } });
        assert.deepEqual([answer.status, answer.text], [304, ''], known);
        assert.equal(answer.headers.etag, etag);
        assert.equal(answer.headers['content-type'], undefined);
        assert.equal((await call(server, 'HEAD', path, { headers: { 'if-none-match': known } })).status, 304);
      }
      for (const other of ['"other"', etag.slice(0, -1), etag.slice(1, -1), '']) {
        assert.equal((await call(server, 'GET', path, { headers: { 'if-none-match': other } })).status, 200, other);
      }
    }
  });

  test('is only read', async () => {
    for (const method of ['POST', 'PUT', 'DELETE', 'PATCH']) {
      const answer = await call(server, method, '/');
      assertProblem(answer, 405, 'method_not_allowed');
      assert.equal(answer.headers.allow, 'GET, HEAD, OPTIONS');
    }
    assert.equal((await call(server, 'OPTIONS', '/')).status, 204);
  });

  test('leads to no other file', async () => {
    const data = ['fermata.db', 'secret.key', 'fermata.lock', 'fermata.sock'];
    const paths = ['/.git', '/.git/config', '/.env', '/.', '/..', '/../', '/..%2f', '/%2e%2e/',
      '/%2e%2e%2f%2e%2e%2fetc/passwd', '/..%5c', '/..;/', '/icon.svg/', '/icon.svg/..', '/icon.svg%00',
      '/icon.svg%2f', '//icon.svg', '/./icon.svg', '/x/../icon.svg', '/%69con.svg', '/ICON.SVG', '/etc/passwd',
      '/proc/self/environ', ...data.map((name) => `/${name}`), ...data.map((name) => `/..%2f${name}`), `/${home.data}/secret.key`];
    for (const path of paths) {
      const answer = await call(server, 'GET', path);
      assert.ok([400, 404].includes(answer.status), `${path} gave ${answer.status}`);
      assertProblem(answer, answer.status, answer.status === 400 ? 'bad_request' : 'not_found');
      assert.ok(!answer.text.includes(home.data), 'no path of ours in the answer');
    }
  });
});

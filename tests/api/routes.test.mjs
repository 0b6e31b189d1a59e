// SPDX-License-Identifier: Apache-2.0
//
// Every route of the running server, as its own document lists them: a new row of the route table is tested here
// without a new line.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';

import { assertProblem, bearer, call, Home } from './home.mjs';

const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'];
const POLICY = [
  "default-src 'none'", "script-src 'self'", "style-src 'self'", "img-src 'self' blob:", "connect-src 'self'",
  "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'", "require-trusted-types-for 'script'", "trusted-types 'none'",
].join('; ');
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
      const response = operation.responses[answer.status];
      assert.ok(response, `${method} ${path} answered ${answer.status}`);
      const types = Object.keys(response.content ?? {});
      const type = answer.headers['content-type']?.split(';')[0];
      assert.deepEqual(type ? [type] : [], types, `${method} ${path}`);
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

// SPDX-License-Identifier: Apache-2.0
//
// What pages of other origins make a browser ask for. Nobody is known by what a browser adds by itself (the cookie, the
// machine it runs on) unless the page is ours, even for what only reads; the scheme of a page counts where it is known.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';

import { assertProblem, bearer, call, Home, postJson } from './home.mjs';

const SESSION = '/api/v1/session';
const TICKETS = '/api/v1/tickets';
const READS = [SESSION, '/api/v1/openapi.json', '/api/v1/agent/threads', '/api/v1/agent/agents', '/api/v1/agent/interactions',
  '/api/v1/agent/runs/none/events', '/api/v1/agent/history?threadId=none', '/metrics'];
const LISTED = 'https://app.example.org';
const FOREIGN = [
  { 'sec-fetch-site': 'cross-site' }, { 'sec-fetch-site': 'same-site' },
  { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' },
  { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'no-cors', 'sec-fetch-dest': 'image' },
  { origin: 'https://evil.example' }, { origin: 'https://evil.example', 'sec-fetch-site': 'cross-site' },
  { origin: 'null' }, { origin: 'http://localhost:1' },
];

function shared(env, prepare = () => {}) {
  const context = {};
  let cleanUp;
  before(async () => {
    context.home = await Home.make({ after: (fn) => { cleanUp = fn; } }, env);
    context.server = await context.home.start();
    await prepare(context);
  });
  after(() => cleanUp?.());
  return context;
}
const get = (server, path, headers) => call(server, 'GET', path, { headers });
const own = ({ host, port }) => [{}, { 'sec-fetch-site': 'none' }, { 'sec-fetch-site': 'same-origin' },
  { host: `${host}:${port}`, origin: `http://${host}:${port}` },
  { host: `${host}:${port}`, origin: `http://${host}:${port}`, 'sec-fetch-site': 'same-origin' }];

describe('without a key', () => {
  const it = shared({ FERMATA_AUTH_CORS: LISTED });

  test('pages of other origins read nothing of the API', async () => {
    for (const headers of FOREIGN) {
      for (const path of READS) assertProblem(await get(it.server, path, headers), 403, 'forbidden');
      const head = await call(it.server, 'HEAD', SESSION, { headers });
      assert.equal(head.status, 403, JSON.stringify(headers));
    }
  });

  test('our own page, programs and listed origins do', async () => {
    for (const headers of [...own(it.server), { origin: LISTED }, { origin: LISTED, 'sec-fetch-site': 'cross-site' }]) {
      assert.equal((await get(it.server, SESSION, headers)).status, 200, JSON.stringify(headers));
    }
  });

  test('a link to the page works from anywhere, and so does a look whether it lives', async () => {
    for (const path of ['/', '/icon.svg', '/healthz', '/readyz']) {
      for (const headers of FOREIGN) assert.equal((await get(it.server, path, headers)).status, 200, path);
    }
  });
});

describe('with a key', () => {
  const it = shared({ FERMATA_AUTH_CORS: LISTED }, async (context) => {
    context.key = await context.home.addKey('ann');
    const { cookies } = await postJson(context.server, SESSION, { key: context.key });
    context.cookie = { cookie: cookies[0].split(';')[0] };
  });

  test('a cookie counts for our own page only', async () => {
    for (const headers of FOREIGN) {
      for (const path of READS) assertProblem(await get(it.server, path, { ...it.cookie, ...headers }), 403, 'forbidden');
    }
    for (const headers of own(it.server)) {
      assert.equal((await get(it.server, SESSION, { ...it.cookie, ...headers })).status, 200, JSON.stringify(headers));
    }
  });

  test('a session that a new process does not know yet is asked the same', async () => {
    it.server = await it.home.restart();
    assertProblem(await get(it.server, SESSION, { ...it.cookie, 'sec-fetch-site': 'cross-site' }), 403, 'forbidden');
    assert.equal((await get(it.server, SESSION, it.cookie)).status, 200);
  });

  test('a key counts wherever a program has it', async () => {
    for (const headers of FOREIGN) {
      assert.equal((await get(it.server, SESSION, { ...bearer(it.key), ...headers })).status, 200, JSON.stringify(headers));
    }
  });
});

describe('the scheme of a page', () => {
  const ticketOf = (at) => (headers) => call(at.server, 'POST', TICKETS, { headers: { ...bearer(at.key), ...headers } });

  describe('on plain HTTP', () => {
    const it = shared({}, async (context) => { context.key = await context.home.addKey('ann'); });
    const ticket = ticketOf(it);

    test('is http, unless the browser says that the page is ours', async () => {
      const host = `${it.server.host}:${it.server.port}`;
      const https = { host, origin: `https://${host}` }, http = { host, origin: `http://${host}` };
      assert.equal((await ticket(http)).status, 201);
      assertProblem(await ticket({ ...https, 'sec-fetch-site': 'cross-site' }), 403, 'forbidden');
      assertProblem(await ticket(https), 403, 'forbidden');
      assert.equal((await ticket({ ...https, 'sec-fetch-site': 'same-origin' })).status, 201, 'a proxy without a word of itself');
      assertProblem(await ticket({ ...http, 'sec-fetch-site': 'cross-site' }), 403, 'forbidden');
    });
  });

  describe('behind a trusted proxy', () => {
    const it = shared({ FERMATA_TRUSTED_PROXIES: '127.0.0.1' }, async (context) => { context.key = await context.home.addKey('ann'); });
    const ticket = ticketOf(it);

    test('is what the proxy says', async () => {
      const host = `${it.server.host}:${it.server.port}`;
      for (const said of ['http', 'https']) {
        for (const scheme of ['http', 'https']) {
          const answer = await ticket({ host, 'x-forwarded-proto': said, origin: `${scheme}://${host}` });
          assert.equal(answer.status, said === scheme ? 201 : 403, `${said} ${scheme}`);
        }
      }
    });
  });
});

describe('Cross-Origin-Resource-Policy', () => {
  const it = shared({ FERMATA_AUTH_CORS: LISTED }, async (context) => { context.key = await context.home.addKey('ann'); });
  const policy = ({ headers }) => headers['cross-origin-resource-policy'];

  test('keeps answers and files of the page to our own origin', async () => {
    for (const path of ['/', '/icon.svg', '/healthz', ...READS, '/none', '/api/v1/none']) {
      assert.equal(policy(await get(it.server, path, bearer(it.key))), 'same-origin', path);
    }
    assert.equal(policy(await get(it.server, SESSION, {})), 'same-origin', 'refusals, too');
    assert.equal(policy(await get(it.server, SESSION, { ...bearer(it.key), origin: LISTED })), 'same-origin');
  });

  test('lets who holds a signed address show the file anywhere', async () => {
    const form = new FormData();
    form.append('threadId', 't1');
    form.append('file', new Blob(['hello']), 'hello.txt');
    const sent = await fetch(`${it.server.url}/api/v1/agent/attachments`, { method: 'POST', body: form, headers: bearer(it.key) });
    assert.equal(sent.status, 201);
    const { attachment } = await sent.json();
    for (const headers of [{}, ...FOREIGN]) {
      const answer = await get(it.server, attachment.url, headers);
      assert.deepEqual([answer.status, policy(answer), answer.text], [200, 'cross-origin', 'hello']);
    }
    const plain = await get(it.server, attachment.url.split('?')[0], bearer(it.key));
    assert.deepEqual([plain.status, policy(plain)], [200, 'same-origin']);
  });

  test('lets a page be framed where that is configured', async (t) => {
    const home = await Home.make(t, { FERMATA_WEB_FRAME_ANCESTORS: LISTED });
    const server = await home.start();
    assert.equal(policy(await get(server, '/', {})), 'cross-origin');
    assert.equal(policy(await get(server, SESSION, {})), 'same-origin');
  });
});

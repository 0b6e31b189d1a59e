// SPDX-License-Identifier: Apache-2.0
//
// Who gets in: keys, sessions, tickets, and what a request says about where it comes from.

import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';

import { assertProblem, bearer, call, Home, KEY, keyId, postJson } from './home.mjs';
import { answer, rows, startAsking, until, waiting } from './asking.mjs';
import { RawConnection } from './raw.mjs';
import { get, waitFor } from './talk.mjs';

const SESSION = '/api/v1/session';
const TICKETS = '/api/v1/tickets';
const ALL_ROLES = ['user', 'approver', 'operator'];
const FORWARDING = {
  forwarded: 'for=1.2.3.4', 'x-forwarded-for': '1.2.3.4', 'x-forwarded-host': 'a.example',
  'x-forwarded-proto': 'https', 'x-real-ip': '1.2.3.4', via: '1.1 proxy', 'cf-connecting-ip': '1.2.3.4', 'x-forwarded-port': '443',
};

// A server for a whole group of tests.
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

const whoami = (server, headers = {}) => call(server, 'GET', SESSION, { headers });

function assertUnauthenticated(answer) {
  assertProblem(answer, 401, 'unauthenticated');
  assert.equal(answer.headers['www-authenticate'], 'Bearer');
}

// {name, value, attributes} of the one cookie that an answer sets.
function cookieOf(answer) {
  assert.equal(answer.cookies.length, 1);
  const [pair, ...attributes] = answer.cookies[0].split('; ');
  const [name, value] = pair.split('=');
  return { name, value, attributes, header: { cookie: pair } };
}

async function signIn(server, key, headers = {}) {
  const answer = await postJson(server, SESSION, { key }, headers);
  assert.equal(answer.status, 200, answer.text);
  return cookieOf(answer);
}

// The file name is told, so that a hit can be found.
async function assertNowhere(home, secrets, ...texts) {
  const places = [...await home.files(), ...texts.map((text, i) => [`text ${i}`, Buffer.from(text)])];
  assert.ok(places.length > texts.length, 'there are files to look into');
  for (const [name, bytes] of places) {
    for (const secret of secrets) assert.ok(!bytes.includes(secret), `${name} holds a secret`);
  }
}

describe('while there is no key', () => {
  const it = shared();

  test('everybody on this machine is local with every role', async () => {
    const answer = await whoami(it.server);
    assert.equal(answer.status, 200);
    assert.deepEqual(answer.json(), { user: 'local', roles: ALL_ROLES, via: 'local' });
    for (const path of ['/metrics', '/api/v1/openapi.json']) {
      assert.equal((await call(it.server, 'GET', path)).status, 200, path);
    }
  });

  test('a key that somebody sends anyway does no harm', async () => {
    assert.equal((await whoami(it.server, bearer('fk_nobody'))).json().via, 'local');
  });

  test('a session cookie of former times does no harm', async () => {
    assert.equal((await whoami(it.server, { cookie: 'fermata_session=x' })).json().via, 'local');
  });

  test('what a proxy passed on is refused', async () => {
    for (const [name, value] of Object.entries(FORWARDING)) {
      assertProblem(await whoami(it.server, { [name]: value }), 403, 'forbidden');
    }
    assert.match((await whoami(it.server, FORWARDING)).json().detail, /fermata key add/);
    await waitFor('it is said', () => /proxy\.refused/.test(it.server.stderr()));
    assert.equal(it.server.stderr().match(/proxy\.refused/g).length, 1, 'said once in the log');
  });
});

describe('the first key', () => {
  test('makes every request need one, at once', async (t) => {
    const home = await Home.make(t);
    const server = await home.start();
    assert.equal((await whoami(server)).status, 200);

    const { code, stdout, stderr } = await home.run(['key', 'add', '--user', 'ann', '--name', 'laptop']);
    assert.equal(code, 0);
    const key = stdout.slice(0, -1);
    assert.equal(stdout, `${key}\n`);
    assert.match(key, KEY);
    assert.match(stderr, /only this once/);

    for (const [method, path] of [['GET', SESSION], ['DELETE', SESSION], ['POST', TICKETS], ['GET', '/metrics'],
      ['GET', '/api/v1/openapi.json'], ['GET', '/api/v1/none']]) {
      assertUnauthenticated(await call(server, method, path));
      assertUnauthenticated(await call(server, method, path, { headers: bearer('wrong') }));
    }
    for (const path of ['/healthz', '/readyz', '/', '/icon.svg']) {
      assert.equal((await call(server, 'GET', path)).status, 200, path);
    }
    assert.equal((await postJson(server, SESSION, { key })).status, 200);
    const answer = await whoami(server, bearer(key));
    assert.deepEqual(answer.json(), { user: 'ann', roles: ['user'], via: 'key' });
  });

  test('is kept over a restart, and revoking the last one does not open the door', async (t) => {
    const home = await Home.make(t);
    let server = await home.start();
    const key = await home.addKey('ann');
    server = await home.restart();
    assert.equal((await whoami(server, bearer(key))).json().user, 'ann');
    assertUnauthenticated(await whoami(server));

    await home.revokeKey(key);
    assertUnauthenticated(await whoami(server, bearer(key)));
    assertUnauthenticated(await whoami(server));
    server = await home.restart();
    assertUnauthenticated(await whoami(server, bearer(key)));
    assertUnauthenticated(await whoami(server));
    await home.revokeKey(key); /* again is fine */
  });

  // Before it, `local` talked, was asked, and allowed something for always.
  const asLocal = async (t) => {
    const home = await startAsking(t);
    const { server } = home;
    const first = await waiting(server, 'again');
    assert.equal((await answer(server, first.open[0].interactionId, { decision: 'approve', always: { scope: 'thread' } })).status, 200);
    await until(server, first.threadId, 'completed');
    const open = await waiting(server, 'book'), question = await waiting(server, 'open');
    return { home, first, open, question };
  };

  for (const running of [true, false]) {
    test(`adopts what local had, ${running ? 'under a server' : 'no server'}: nothing disappears, and what is open can be answered`, async (t) => {
      const { home, first, open, question } = await asLocal(t);
      if (!running) await home.stop();
      const { code, stdout, stderr } = await home.run(['key', 'add', '--user', 'me']);
      assert.equal(code, 0, stderr);
      assert.match(stdout, /^fk_[^\n]+\n$/);
      assert.match(stderr, /adopted 3 conversations of local/);
      const server = running ? home.server : await home.start();
      const me = bearer(stdout.trim()), later = bearer(await home.addKey('you'));
      const { threads } = (await get(server, '/threads', me)).json();
      assert.deepEqual(threads.map(({ threadId }) => threadId).sort(), [first.threadId, open.threadId, question.threadId].sort());
      assert.deepEqual((await get(server, '/threads', later)).json().threads, [], 'the second key adopts nothing');
      const { grants } = (await get(server, '/grants', me)).json();
      assert.deepEqual(grants.map(({ toolName, madeBy }) => [toolName, madeBy]), [['calendar_write', 'me']]);
      assert.equal((await call(server, 'GET', '/api/v1/agent/calendar.ics', { headers: me })).text.match(/BEGIN:VEVENT/g).length, 2);
      // The binding is the one that was shown before.
      assert.equal((await answer(server, open.open[0].interactionId, { decision: 'approve', binding: open.open[0].binding }, me)).status, 200);
      await until(server, open.threadId, 'completed', me);
      assert.equal((await answer(server, question.open[0].interactionId, { answer: 'mine' }, me)).status, 200);
      await until(server, question.threadId, 'completed', me);
      assert.equal((await call(server, 'GET', '/api/v1/agent/calendar.ics', { headers: me })).text.match(/BEGIN:VEVENT/g).length, 3);
      assert.deepEqual(rows(home, `SELECT who, why FROM audit WHERE chain=0 AND action=11`), [{ who: 'me', why: 'local' }]);
      assert.equal((await home.run(['check', '--audit'])).code, 0);
      for (const table of ['threads', 'interactions', 'grants', 'calendar_events', 'attachments', 'idempotency']) {
        assert.deepEqual(rows(home, `SELECT 1 FROM ${table} WHERE owner='local'`), [], table);
      }
    });
  }

  test('--no-adopt leaves it with local, and says how to come back', async (t) => {
    const { home } = await asLocal(t);
    const { code, stdout, stderr } = await home.run(['key', 'add', '--user', 'me', '--no-adopt']);
    assert.equal(code, 0);
    assert.match(stderr, /3 conversations of local stay with local: `fermata key add --user local`/);
    assert.deepEqual((await get(home.server, '/threads', bearer(stdout.trim()))).json().threads, []);
    const local = bearer(await home.addKey('local'));
    assert.equal((await get(home.server, '/threads', local)).json().threads.length, 3);
  });

  test('does not adopt while FERMATA_API_KEY stands for local, nor for a key that only asks', async (t) => {
    const home = await startAsking(t, { env: { FERMATA_API_KEY: 'sesame-open-0123456789' } });
    const local = bearer('sesame-open-0123456789');
    await waiting(home.server, 'open', { headers: local });
    const { stderr } = await home.run(['key', 'add', '--user', 'me']);
    assert.ok(!/adopted|local/.test(stderr), stderr);
    assert.equal((await get(home.server, '/threads', local)).json().threads.length, 1);

    const { home: other } = await asLocal(t);
    const program = await other.run(['key', 'add', '--user', 'me', '--role', 'ask']);
    assert.match(program.stderr, /3 conversations of local stay with local/);
    const { stdout, stderr: told } = await other.run(['key', 'add', '--user', 'me']);
    assert.match(told, /adopted 3 conversations of local/);
    assert.equal((await get(other.server, '/threads', bearer(stdout.trim()))).json().threads.length, 3);
  });

  test('can be made before the server runs', async (t) => {
    const home = await Home.make(t);
    const key = await home.addKey('李雷', '--role', 'approver', '--role', 'user');
    const server = await home.start();
    const who = (await whoami(server, bearer(key))).json();
    assert.deepEqual(who, { user: '李雷', roles: ['user', 'approver'], via: 'key' });
    assertUnauthenticated(await whoami(server));
  });
});

describe('keys', () => {
  const it = shared({}, async (context) => { context.key = await context.home.addKey('ann'); });

  test('only the exact key, under the scheme Bearer, is one', async () => {
    const { server, key } = it;
    for (const value of [`Bearer ${key}`, `bearer ${key}`, `Bearer  ${key}`]) {
      assert.equal((await whoami(server, { authorization: value })).status, 200, value);
    }
    const [, id, secret] = KEY.exec(key);
    const wrong = ['', 'Bearer', 'Bearer ', key, `Basic ${key}`, `Token ${key}`, `Bearer ${key}x`,
      `Bearer ${key.slice(0, -1)}`, `Bearer ${key.toUpperCase()}`, `Bearer ${id}`, `Bearer ${secret}`, `Bearer ${key} ${key}`, `Bearer "${key}"`,
      `Bearer ${key.slice(0, 30)}${'A'.repeat(43)}`, `Bearer ${'x'.repeat(8000)}`];
    for (const value of wrong) assertUnauthenticated(await whoami(server, { authorization: value }));
  });

  test('a cookie that is none tells nothing about paths', async () => {
    const headers = { cookie: 'fermata_session=junk' };
    for (const path of ['/api/v1/nothing', SESSION])
      assert.equal((await call(it.server, 'GET', path, { headers })).status, 401, path);
  });

  test('a wrong key is not helped by a good cookie', async () => {
    const { header } = await signIn(it.server, it.key);
    assertUnauthenticated(await whoami(it.server, { ...header, ...bearer('wrong') }));
  });

  test('are listed without their secret, and revoked by their id', async () => {
    const { home, server, key } = it;
    const second = await home.addKey('bob', '--role', 'operator', '--name', 'the second');
    let list = await home.run(['key', 'list']);
    assert.equal(list.code, 0);
    assert.match(list.stdout, new RegExp(`^${keyId(second)} +active +operator +bob .*the second$`, 'm'));
    assert.match(list.stdout, new RegExp(`^${keyId(key)} +active +user +ann `, 'm'));
    for (const text of [key, second]) assert.ok(!list.stdout.includes(KEY.exec(text)[2]));

    await home.revokeKey(second);
    assertUnauthenticated(await whoami(server, bearer(second)));
    assert.equal((await whoami(server, bearer(key))).status, 200);
    list = await home.run(['key', 'list']);
    assert.match(list.stdout, new RegExp(`^${keyId(second)} +revoked `, 'm'));
  });

  test('an unknown id or a bad name is refused with a reason', async () => {
    const none = await it.home.run(['key', 'revoke', '0'.repeat(26)]);
    assert.equal(none.code, 1);
    assert.match(none.stderr, /^fermata: there is no key "0{26}"; `fermata key list` shows them all\n$/);
    const odd = await it.home.run(['key', 'revoke', '../x']);
    assert.equal(odd.code, 1);
    assert.match(odd.stderr, /^fermata: there is no key "\.\.\/x"/);
    const long = await it.home.run(['key', 'add', '--user', 'x'.repeat(129)]);
    assert.equal(long.code, 1);
    assert.match(long.stderr, /^fermata: .*user/);
    assert.equal(long.stdout, '');
    const name = await it.home.run(['key', 'add', '--user', 'ann', '--name', 'x'.repeat(129)]);
    assert.equal(name.code, 1);
    assert.match(name.stderr, /^fermata: a key's name has at most 128 bytes\n$/);
  });
});

describe('keys without a server', () => {
  test('are added, listed and revoked alike', async (t) => {
    const home = await Home.make(t);
    const empty = await home.run(['key', 'list']);
    assert.deepEqual([empty.code, empty.stdout], [0, '']);
    assert.match(empty.stderr, /There are no keys/);

    const key = await home.addKey('ann', '--role', 'operator');
    const list = await home.run(['key', 'list']);
    assert.match(list.stdout, new RegExp(`^${keyId(key)} +active +operator +ann `, 'm'));
    await home.revokeKey(key);
    assert.match((await home.run(['key', 'list'])).stdout, /revoked/);
    const none = await home.run(['key', 'revoke', '0'.repeat(26)]);
    assert.equal(none.code, 1);
    assert.match(none.stderr, /there is no key/);
    const long = await home.run(['key', 'add', '--user', 'x'.repeat(129)]);
    assert.equal(long.code, 1);
    await assertNowhere(home, [key, KEY.exec(key)[2]]);
  });
});

describe('one folder', () => {
  test('has one server: a second one refuses clearly and the first goes on', async (t) => {
    const home = await Home.make(t);
    const server = await home.start();
    const second = await home.run(['serve'], { FERMATA_LISTEN: '127.0.0.1:0' });
    assert.equal(second.code, 1);
    assert.equal(second.stdout, '');
    assert.match(second.stderr, /^fermata: [^\n]+\n$/);
    assert.ok(second.stderr.includes(home.data), second.stderr);
    assert.match(second.stderr, new RegExp(`\\b${server.pid}\\b|another|already|in use`));
    assert.equal((await call(server, 'GET', '/readyz')).status, 200);
    await home.addKey(); /* its socket is still there */
  });
});

describe('the key of the configuration', () => {
  const canary = 'sesame-open-0123456789';

  test('FERMATA_API_KEY acts as local with every role', async (t) => {
    const home = await Home.make(t, { FERMATA_API_KEY: canary, FERMATA_LOG: 'debug' });
    const server = await home.start();
    assertUnauthenticated(await whoami(server));
    assert.deepEqual((await whoami(server, bearer(canary))).json(), { user: 'local', roles: ALL_ROLES, via: 'key' });

    const { header, value } = await signIn(server, canary);
    assert.equal((await whoami(server, header)).json().via, 'session');
    await home.stop();
    await assertNowhere(home, [canary, value], server.stderr());

    const again = await home.start();
    assert.equal((await whoami(again, header)).json().via, 'session', 'the session goes on with the same key');
    const changed = await home.restart({ FERMATA_API_KEY: `${canary}-changed` });
    assertUnauthenticated(await whoami(changed, header));
    assertUnauthenticated(await whoami(changed, bearer(canary)));
  });

  test('FERMATA_API_KEY_FILE holds it, with a newline', async (t) => {
    const home = await Home.make(t);
    const file = join(home.data, 'key.txt');
    await writeFile(file, `${canary}\n`, { mode: 0o600 });
    const server = await home.start({ FERMATA_API_KEY_FILE: file });
    assert.equal((await whoami(server, bearer(canary))).json().user, 'local');
    assertUnauthenticated(await whoami(server, bearer(`${canary}\n`.trim().slice(1))));
    assertUnauthenticated(await whoami(server));
  });

  test('is one of two, not both', async (t) => {
    const home = await Home.make(t);
    const file = join(home.data, 'key.txt');
    await writeFile(file, canary, { mode: 0o600 });
    const both = await home.run(['serve'], { FERMATA_API_KEY: canary, FERMATA_API_KEY_FILE: file });
    assert.equal(both.code, 2);
    assert.ok(!both.stderr.includes(canary));
    const missing = await home.run(['serve'], { FERMATA_API_KEY_FILE: join(home.data, 'none') });
    assert.equal(missing.code, 2);
    assert.match(missing.stderr, /none/);
  });
});

describe('metrics', () => {
  const it = shared({}, async (context) => {
    context.user = await context.home.addKey('ann');
    context.operator = await context.home.addKey('oscar', '--role', 'operator');
  });

  test('are for any key on this machine', async () => {
    for (const key of [it.user, it.operator]) {
      const answer = await call(it.server, 'GET', '/metrics', { headers: bearer(key) });
      assert.equal(answer.status, 200);
      assert.match(answer.headers['content-type'], /^text\/plain; version=0\.0\.4/);
      assert.match(answer.text, /^fermata_http_requests_total\{class="2xx"\} \d+$/m);
    }
  });

  test('are for operators through a proxy', async () => {
    const through = (key) => call(it.server, 'GET', '/metrics', {
      headers: { ...bearer(key), 'x-forwarded-for': '1.2.3.4' },
    });
    assertProblem(await through(it.user), 403, 'forbidden');
    assert.equal((await through(it.operator)).status, 200);
  });

  test('count what happens', async () => {
    const figure = async (name) => {
      const { text } = await call(it.server, 'GET', '/metrics', { headers: bearer(it.user) });
      return Number(new RegExp(`^${name} (\\d+)$`, 'm').exec(text)[1]);
    };
    const before401 = await figure('fermata_http_unauthenticated_total');
    const before4xx = await figure('fermata_http_requests_total{class="4xx"}'.replace(/[{}]/g, '\\$&'));
    await whoami(it.server);
    await whoami(it.server, bearer('wrong'));
    assert.equal(await figure('fermata_http_unauthenticated_total'), before401 + 2);
    assert.equal(await figure('fermata_http_requests_total{class="4xx"}'.replace(/[{}]/g, '\\$&')), before4xx + 2);
    assert.ok(await figure('process_resident_memory_bytes') > 1e6);
  });
});

describe('sessions', () => {
  const it = shared({ FERMATA_LOG: 'debug' }, async (context) => {
    context.key = await context.home.addKey('ann', '--role', 'user', '--role', 'approver');
  });

  test('signing in sets a cookie that pages cannot read', async () => {
    const answer = await postJson(it.server, SESSION, { key: it.key });
    assert.equal(answer.status, 200);
    const body = answer.json();
    assert.deepEqual(Object.keys(body), ['user', 'roles', 'via', 'expiresAt']);
    assert.deepEqual([body.user, body.roles, body.via], ['ann', ['user', 'approver'], 'session']);
    assert.match(body.expiresAt, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    const days = (Date.parse(body.expiresAt) - Date.now()) / 86_400_000;
    assert.ok(days > 29.9 && days <= 30, `${days} days`);

    const cookie = cookieOf(answer);
    assert.equal(cookie.name, 'fermata_session');
    assert.match(cookie.value, /^[A-Za-z0-9_-]{43}\.[0-9a-f]{8}\.[A-Za-z0-9_-]{43}$/, 'a token and its signature');
    assert.deepEqual(cookie.attributes, ['Path=/', 'HttpOnly', 'SameSite=Strict', `Max-Age=${30 * 86400}`]);
    const who = (await whoami(it.server, cookie.header)).json();
    assert.deepEqual(who, { user: 'ann', roles: ['user', 'approver'], via: 'session' });
    assert.notEqual((await signIn(it.server, it.key)).value, cookie.value, 'a new one each time');
  });

  test('the cookie is found among others, by its exact name and value', async () => {
    const { value } = await signIn(it.server, it.key);
    for (const cookie of [`a=b; fermata_session=${value}`, `fermata_session=${value}; a=b`]) {
      assert.equal((await whoami(it.server, { cookie })).status, 200, cookie);
    }
    for (const cookie of [`fermata_session=${value}x`, `fermata_session=`, `Fermata_session=${value}`,
      `xfermata_session=${value}`, `__Host-fermata_session=${value}`, value, `a=fermata_session=${value}`]) {
      assertUnauthenticated(await whoami(it.server, { cookie }));
    }
  });

  test('what is wrong with a request to sign in', async () => {
    const post = (body, type = 'application/json') =>
      call(it.server, 'POST', SESSION, { headers: type ? { 'content-type': type } : {}, body });
    const good = JSON.stringify({ key: it.key });

    assertUnauthenticated(await post('{"key":"wrong"}'));
    assertProblem(await post(`{"key":"${it.key}","more":1}`), 400, 'invalid_field', 'more');
    assertProblem(await post('{}'), 400, 'invalid_field', 'key');
    assertProblem(await post('{"key":""}'), 400, 'invalid_field', 'key');
    assertProblem(await post('{"key":7}'), 400, 'invalid_field', 'key');
    assertProblem(await post('{"key":null}'), 400, 'invalid_field', 'key');
    assertProblem(await post(`{"key":"${'x'.repeat(513)}"}`), 400, 'invalid_field', 'key');
    for (const bad of ['', '{', 'key', '{"key":"a","key":"b"}', `${good}x`, '\ufeff{}', '{"key":"\\ud800"}',
      '{"key":\'a\'}']) {
      assertProblem(await post(bad), 400, 'invalid_field');
    }
    for (const other of ['[]', '"key"', 'null', '7']) assertProblem(await post(other), 400, 'invalid_field');
    for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data',
      'application/jsonx', null]) {
      assertProblem(await post(good, type), 415, 'unsupported_type');
    }
    for (const type of ['application/json; charset=utf-8', 'Application/JSON']) {
      assert.equal((await post(good, type)).status, 200, type);
    }
  });

  test('a body of 16 KiB is read, one byte more is not', async () => {
    const padded = (size) => {
      const body = JSON.stringify({ key: it.key });
      return ' '.repeat(size - body.length) + body;
    };
    const post = (body) => call(it.server, 'POST', SESSION, { headers: { 'content-type': 'application/json' }, body });
    assert.equal((await post(padded(16 * 1024))).status, 200);
    assertProblem(await post(padded(16 * 1024 + 1)), 413, 'too_large');
  });

  test('signing out ends it, and only it', async () => {
    const one = await signIn(it.server, it.key), two = await signIn(it.server, it.key);
    const answer = await call(it.server, 'DELETE', SESSION, { headers: one.header });
    assert.equal(answer.status, 204);
    const cleared = cookieOf(answer);
    assert.deepEqual([cleared.name, cleared.value], ['fermata_session', '']);
    assert.ok(cleared.attributes.includes('Max-Age=0'));
    assertUnauthenticated(await whoami(it.server, one.header));
    assert.equal((await whoami(it.server, two.header)).status, 200);
    assertUnauthenticated(await call(it.server, 'DELETE', SESSION, { headers: one.header }));

    const byKey = await call(it.server, 'DELETE', SESSION, { headers: bearer(it.key) });
    assert.deepEqual([byKey.status, byKey.cookies], [204, []]);
    assert.equal((await whoami(it.server, bearer(it.key))).status, 200, 'a key has no session to end');
  });
});

describe('sessions over time', () => {
  // A session that the server does not remember is asked for in the store; the client may be gone when the answer
  // comes.
  test('a client that leaves while its session is looked up leaves no trace', async (t) => {
    const home = await Home.make(t);
    let server = await home.start();
    const cookie = await signIn(server, await home.addKey('ann'));
    for (let round = 0; round < 5; round++) {
      server = await home.restart();
      const body = '{"messages":[{"role":"user","content":"hi"}]}';
      const request = `POST /api/v1/agent/runs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n`
        + `Cookie: ${cookie.header.cookie}\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
      const connections = await Promise.all(Array.from({ length: 50 }, () => RawConnection.open(server)));
      await Promise.all(connections.map((connection) => connection.write(request)));
      for (const connection of connections) connection.close();
      assert.equal((await whoami(server, cookie.header)).json().user, 'ann');
    }
  });

  test('last over a restart, unless ended before or after it', async (t) => {
    const home = await Home.make(t, { FERMATA_LOG: 'debug' });
    let server = await home.start();
    const logs = [];
    const key = await home.addKey('ann'), doomed = await home.addKey('bob');
    const kept = await signIn(server, key), ended = await signIn(server, key), orphan = await signIn(server, doomed);
    assert.equal((await call(server, 'DELETE', SESSION, { headers: ended.header })).status, 204);
    logs.push(server.stderr());

    server = await home.restart();
    assert.equal((await whoami(server, kept.header)).json().user, 'ann');
    assert.equal((await whoami(server, orphan.header)).json().user, 'bob');
    assertUnauthenticated(await whoami(server, ended.header));

    await home.revokeKey(doomed);
    assertUnauthenticated(await whoami(server, orphan.header));
    logs.push(server.stderr());
    server = await home.restart();
    assertUnauthenticated(await whoami(server, orphan.header));
    /* The first thing that a session just found in the store does may be to end. */
    assert.equal((await call(server, 'DELETE', SESSION, { headers: kept.header })).status, 204);
    assertUnauthenticated(await whoami(server, kept.header));
    logs.push(server.stderr());
    server = await home.restart();
    assertUnauthenticated(await whoami(server, kept.header));
    await home.stop();
    logs.push(server.stderr());

    const secrets = [key, doomed, KEY.exec(key)[2], KEY.exec(doomed)[2], kept.value, ended.value, orphan.value];
    await assertNowhere(home, secrets, ...logs);
  });

  test('a key or session that ends between head and body is let in no more', async (t) => {
    const home = await Home.make(t);
    const server = await home.start();
    const kept = await home.addKey('ann'), key = await home.addKey('ann');
    const { header } = await signIn(server, key);
    const body = JSON.stringify({ threadId: 'late', messages: [{ id: 'm1', role: 'user', content: 'hello' }] });
    const connections = [];
    for (const [name, value] of Object.entries({ ...bearer(key), ...header })) {
      const connection = await RawConnection.open(server);
      t.after(() => connection.close());
      await connection.write(Buffer.from(`POST /api/v1/agent/runs HTTP/1.1\r\nHost: ${server.host}:${server.port}\r\n` +
        `${name}: ${value}\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n{`));
      connections.push(connection);
    }
    assert.equal((await whoami(server, header)).status, 200); // both heads were read before this one
    await home.revokeKey(key);
    for (const connection of connections) {
      await connection.write(Buffer.from(body.slice(1)));
      assert.equal((await connection.response()).status, 401);
    }
    assert.equal((await get(server, '/threads/late', bearer(kept))).status, 404);
  });

  test('a key revoked while no server runs ends them, too', async (t) => {
    const home = await Home.make(t);
    let server = await home.start();
    const key = await home.addKey('ann');
    const { header } = await signIn(server, key);
    await home.stop();
    await home.revokeKey(key);
    server = await home.start();
    assertUnauthenticated(await whoami(server, header));
    assertUnauthenticated(await postJson(server, SESSION, { key }));
  });
});

describe('tickets', () => {
  const it = shared({ FERMATA_LOG: 'debug' }, async (context) => { context.key = await context.home.addKey('ann'); });

  test('are random, last 30 seconds, and no route takes them for a key', async () => {
    const answers = [];
    for (let i = 0; i < 2; i++) answers.push(await call(it.server, 'POST', TICKETS, { headers: bearer(it.key) }));
    for (const answer of answers) {
      assert.equal(answer.status, 201);
      assert.deepEqual(Object.keys(answer.json()), ['ticket', 'expiresAt']);
      assert.match(answer.json().ticket, /^[A-Za-z0-9_-]{43}$/);
      const left = Date.parse(answer.json().expiresAt) - Date.now();
      assert.ok(left > 20_000 && left <= 30_000, `${left} ms`);
    }
    const [ticket, other] = answers.map((answer) => answer.json().ticket);
    assert.notEqual(ticket, other);
    assertUnauthenticated(await call(it.server, 'GET', `${SESSION}?ticket=${ticket}`));
    assertUnauthenticated(await whoami(it.server, bearer(ticket)));
    assertUnauthenticated(await whoami(it.server, { cookie: `fermata_session=${ticket}` }));
    await assertNowhere(it.home, [ticket, other], it.server.stderr());
  });

  test('are given to sessions, too, and to nobody else', async () => {
    const { header } = await signIn(it.server, it.key);
    assert.equal((await call(it.server, 'POST', TICKETS, { headers: header })).status, 201);
    assertUnauthenticated(await call(it.server, 'POST', TICKETS));
  });
});

describe('origin', () => {
  const allowed = ['https://app.example.org', 'http://localhost:3000'];
  const it = shared({ FERMATA_AUTH_CORS: allowed.join(',') }, async (context) => {
    context.key = await context.home.addKey('ann');
  });
  const CORS = /^access-control-/;
  const corsOf = ({ headers }) => Object.keys(headers).filter((name) => CORS.test(name));
  const ticket = (headers) => call(it.server, 'POST', TICKETS, { headers: { ...bearer(it.key), ...headers } });

  test('our own page and programs may change things', async () => {
    const host = `${it.server.host}:${it.server.port}`;
    for (const headers of [{}, { host, origin: `http://${host}` }, { 'sec-fetch-site': 'same-origin' },
      { 'sec-fetch-site': 'none' }]) {
      assert.equal((await ticket(headers)).status, 201, JSON.stringify(headers));
    }
  });

  test('pages of others may not, whatever key or cookie comes along', async () => {
    const { header } = await signIn(it.server, it.key);
    const { port } = it.server;
    const foreign = ['https://evil.example', 'null', 'http://localhost', `http://localhost:${port}`,
      `http://127.0.0.1:${port}.evil.example`, 'http://app.example.org', 'https://app.example.org.evil.example',
      'https://xapp.example.org', 'https://app.example.org:8443'];
    for (const origin of foreign) {
      for (const who of [bearer(it.key), header]) {
        const answer = await call(it.server, 'POST', TICKETS, { headers: { ...who, origin } });
        assertProblem(answer, 403, 'forbidden');
        assert.deepEqual(corsOf(answer), []);
      }
      assertProblem(await postJson(it.server, SESSION, { key: it.key }, { origin }), 403, 'forbidden');
      assertProblem(await call(it.server, 'DELETE', SESSION, { headers: { ...header, origin } }), 403, 'forbidden');
    }
    assertProblem(await ticket({ 'sec-fetch-site': 'cross-site' }), 403, 'forbidden');
    assert.equal((await whoami(it.server, header)).status, 200, 'still signed in');
  });

  test('pages of others read nothing: no answer names them', async () => {
    for (const origin of ['https://evil.example', 'null', '*']) {
      const answer = await whoami(it.server, { ...bearer(it.key), origin });
      assert.equal(answer.status, 200);
      assert.deepEqual(corsOf(answer), []);
      assert.equal(answer.headers.vary, 'Origin');
    }
  });

  test('listed origins may read and change, errors included, without cookies', async () => {
    for (const origin of allowed) {
      const answers = [
        [200, await whoami(it.server, { ...bearer(it.key), origin })], [201, await ticket({ origin })],
        [401, await whoami(it.server, { origin })],
        [404, await call(it.server, 'GET', '/api/v1/none', { headers: { ...bearer(it.key), origin } })],
        [405, await call(it.server, 'PUT', SESSION, { headers: { ...bearer(it.key), origin } })],
        [400, await postJson(it.server, SESSION, {}, { origin })],
      ];
      for (const [status, answer] of answers) {
        assert.equal(answer.status, status);
        assert.equal(answer.headers['access-control-allow-origin'], origin, `on ${status}`);
        assert.equal(answer.headers['access-control-allow-credentials'], undefined);
        assert.equal(answer.headers.vary, 'Origin');
      }
    }
  });

  test('the preflight of a listed origin needs no key; of others it gives nothing', async () => {
    const preflight = (origin, path) => call(it.server, 'OPTIONS', path, {
      headers: {
        origin, 'access-control-request-method': 'POST', 'access-control-request-headers': 'authorization,content-type',
      },
    });
    const answer = await preflight(allowed[0], TICKETS);
    assert.equal(answer.status, 204);
    assert.equal(answer.headers['access-control-allow-origin'], allowed[0]);
    assert.match(answer.headers['access-control-allow-methods'], /POST/);
    for (const name of ['Authorization', 'Content-Type', 'Idempotency-Key', 'Last-Event-ID']) {
      assert.ok(answer.headers['access-control-allow-headers'].split(', ').includes(name), name);
    }
    assert.match(answer.headers['access-control-max-age'], /^\d+$/);
    assert.deepEqual(corsOf(await preflight('https://evil.example', TICKETS)), []);
    assert.equal((await preflight(allowed[0], '/')).status, 204);
    const unknown = await preflight(allowed[0], '/api/v1/none');
    assertUnauthenticated(unknown);
  });
});

test('without auth.cors no answer has a word of CORS', async (t) => {
  const home = await Home.make(t);
  const server = await home.start();
  for (const origin of ['https://evil.example', 'null', `http://${server.host}:${server.port}`]) {
    for (const answer of [await whoami(server, { origin }), await call(server, 'OPTIONS', TICKETS, {
      headers: { origin, 'access-control-request-method': 'POST' } })]) {
      assert.ok(!Object.keys(answer.headers).some((name) => name.startsWith('access-control-')), origin);
    }
  }
});

describe('host', () => {
  const it = shared({ FERMATA_AUTH_HOSTS: 'box.lan,named.lan:8443' });

  test('names of this machine and those listed are ours', async () => {
    for (const host of ['localhost', 'LOCALHOST:1', '127.0.0.1', '[::1]:8080', 'box.lan', 'Box.LAN:99',
      'named.lan:8443']) {
      assert.equal((await whoami(it.server, { host })).status, 200, host);
    }
  });

  test('every other name is refused, whatever it asks for', async () => {
    for (const host of ['evil.example', 'localhost.evil.example', '10.0.0.1', 'named.lan', 'named.lan:8444',
      '0.0.0.0', '[fd00::1]']) {
      for (const path of ['/', '/healthz', SESSION, '/none']) {
        assertProblem(await call(it.server, 'GET', path, { headers: { host } }), 403, 'forbidden_host');
      }
    }
  });

  test('the name in an absolute target counts, not the Host beside it', async () => {
    const connection = await RawConnection.open(it.server);
    try {
      await connection.write('GET http://evil.example/healthz HTTP/1.1\r\nHost: evil.example\r\n\r\n');
      assert.equal((await connection.response()).status, 403);
    } finally {
      connection.close();
    }
  });
});

describe('proxies', () => {
  const clientsOf = (server) => server.stderr().split('\n').filter((line) => line.includes('http.answered'))
    .map((line) => JSON.parse(line).client);

  test('from a peer nobody named, forwarding headers are not believed', async (t) => {
    const home = await Home.make(t, { FERMATA_LOG: 'debug,json' });
    const server = await home.start();
    const key = await home.addKey('ann');
    const answer = await postJson(server, SESSION, { key }, FORWARDING);
    assert.equal(answer.status, 200);
    assert.ok(!cookieOf(answer).attributes.includes('Secure'));
    await home.stop();
    assert.deepEqual(clientsOf(server), ['127.0.0.1']);
  });

  test('from a trusted one they tell the client and the scheme', async (t) => {
    const home = await Home.make(t, { FERMATA_LOG: 'debug,json', FERMATA_TRUSTED_PROXIES: '127.0.0.1,10.0.0.0/8' });
    const server = await home.start();
    const key = await home.addKey('ann');
    const through = { 'x-forwarded-for': '127.0.0.1, 203.0.113.9, 10.0.0.2', 'x-forwarded-proto': 'https' };
    const cookie = cookieOf(await postJson(server, SESSION, { key }, through));
    assert.equal(cookie.name, '__Host-fermata_session');
    assert.ok(cookie.attributes.includes('Secure'));
    assert.equal((await whoami(server, { ...cookie.header, ...through })).status, 200);
    assertUnauthenticated(await whoami(server, cookie.header)); /* without https it has another name */
    assertUnauthenticated(await whoami(server, through));
    await home.stop();
    assert.deepEqual(clientsOf(server), ['203.0.113.9', '203.0.113.9', '127.0.0.1', '203.0.113.9']);
  });
});

describe('the public URL', () => {
  const it = shared({ FERMATA_PUBLIC_URL: 'https://app.example.org/fermata' }, async (context) => {
    context.key = await context.home.addKey('ann');
  });
  const host = 'app.example.org', origin = 'https://app.example.org';

  test('makes the cookie a __Host- one', async () => {
    const cookie = await signIn(it.server, it.key, { host, origin });
    assert.equal(cookie.name, '__Host-fermata_session');
    assert.deepEqual(cookie.attributes, ['Path=/', 'HttpOnly', 'SameSite=Strict', `Max-Age=${30 * 86400}`, 'Secure']);
    assert.equal((await whoami(it.server, { host, ...cookie.header })).status, 200);
    assertUnauthenticated(await whoami(it.server, { host, cookie: `fermata_session=${cookie.value}` }));
    const out = await call(it.server, 'DELETE', SESSION, { headers: { host, origin, ...cookie.header } });
    assert.equal(out.status, 204);
    assert.equal(cookieOf(out).name, '__Host-fermata_session');
  });

  test('has its own name and origin, under its own scheme', async () => {
    const ticket = (headers) => call(it.server, 'POST', TICKETS, { headers: { ...bearer(it.key), host, ...headers } });
    assert.equal((await ticket({ origin })).status, 201);
    assert.equal((await ticket({ origin, host: '127.0.0.1' })).status, 201);
    assertProblem(await ticket({ origin: 'http://app.example.org' }), 403, 'forbidden');
    assertProblem(await ticket({ origin: 'https://example.org' }), 403, 'forbidden');
    assertProblem(await ticket({ host: 'example.org' }), 403, 'forbidden_host');
  });

  test('has a slash behind its path, or the links of the page would miss it', async () => {
    const { status, headers } = await call(it.server, 'GET', '/fermata');
    assert.deepEqual([status, headers.location], [308, '/fermata/']);
  });

  test('has a path that may stand before ours, or be taken away by the proxy', async () => {
    for (const path of ['/fermata/healthz', '/healthz', '/fermata/', '/fermata/icon.svg', '/fermata/readyz']) {
      assert.equal((await call(it.server, 'GET', path, { headers: { host } })).status, 200, path);
    }
    const answer = await call(it.server, 'GET', `/fermata${SESSION}`, { headers: { host, ...bearer(it.key) } });
    assert.equal(answer.json().user, 'ann');
    assertUnauthenticated(await call(it.server, 'GET', `/fermata${SESSION}`, { headers: { host } }));
    assertUnauthenticated(await call(it.server, 'GET', '/fermata/api/v1/none', { headers: { host } }));
    for (const path of ['/fermatax/healthz', '/Fermata/healthz', '/fermata/fermata/healthz', '/fermata//healthz']) {
      assertProblem(await call(it.server, 'GET', path, { headers: { host } }), 404, 'not_found');
    }
  });
});

describe('the rate limit', () => {
  const RATE = 3;
  const it = shared({ FERMATA_LIMITS_RATE: String(RATE) }, async (context) => {
    context.keys = [await context.home.addKey('ann'), await context.home.addKey('bob')];
  });

  // All in one write, so that they fall into one second.
  async function flood(count, key) {
    const connection = await RawConnection.open(it.server);
    try {
      const one = `GET ${SESSION} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${key}\r\n\r\n`;
      await connection.write(one.repeat(count));
      const answers = [];
      while (answers.length < count) {
        const answer = await connection.response();
        if (!answer) break; /* a refusal may end the connection */
        answers.push(answer);
      }
      return answers;
    } finally {
      connection.close();
    }
  }

  test('lets as many through as it says, and not one more', async () => {
    const [ann, bob] = it.keys;
    const answers = await flood(RATE + 1, ann);
    assert.deepEqual(answers.map(({ status }) => status), [...Array(RATE).fill(200), 429]);
    const refused = answers[RATE];
    assert.match(refused.headers['retry-after'] ?? '', /^[1-9]\d*$/);
    assert.equal(refused.headers['content-type'], 'application/problem+json');
    assert.equal(JSON.parse(refused.body).code, 'rate_limited');
    const others = await flood(RATE, bob);
    assert.deepEqual(others.map(({ status }) => status), Array(RATE).fill(200), 'each key has its own');

    let answer, tries = 0;
    do {
      answer = await whoami(it.server, bearer(ann));
    } while (answer.status === 429 && ++tries < 10_000);
    assert.equal(answer.status, 200, 'a second later it is over');
  });

  test('counts guesses, too', async () => {
    const answers = await flood(RATE + 1, 'a-guess');
    assert.equal(answers.at(-1).status, 429);
    assert.ok(answers.slice(0, -1).every(({ status }) => status === 401 || status === 429));
  });
});

describe('wrong keys', () => {
  const FAILURES = 100, SHORT = 'sesame-12';
  const it = shared({ FERMATA_API_KEY: SHORT }, async (context) => { context.key = await context.home.addKey('ann'); });
  const guess = (count, at = (n) => `GET ${SESSION} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer guess-${n}\r\n\r\n`, from) => answersTo(
    Array.from({ length: count }, (_, n) => at(n)), from);
  const signIn = (n) => {
    const body = JSON.stringify({ key: `guess-${n}` });
    return `POST ${SESSION} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
  };

  async function answersTo(requests, from) {
    const connection = await RawConnection.open(it.server, { from });
    try {
      await connection.write(requests.join(''));
      const answers = [];
      for (const _ of requests) answers.push(await connection.response());
      return answers;
    } finally {
      connection.close();
    }
  }

  test('are told to wait after too many from one address; a right key is not, unless it could be guessed', async () => {
    assert.equal((await whoami(it.server, bearer(SHORT))).json().user, 'local');
    const [some, more] = [await guess(FAILURES / 2), await guess(FAILURES / 2, signIn)];
    assert.ok([...some, ...more].every(({ status }) => status === 401), 'each way to say a key counts, and none too early');
    for (const refused of [...await guess(2), ...await guess(2, signIn)]) {
      assert.equal(refused.status, 429);
      assert.equal(JSON.parse(refused.body).code, 'rate_limited');
      const seconds = Number(refused.headers['retry-after']);
      assert.ok(Number.isInteger(seconds) && seconds >= 1 && seconds <= 60, refused.headers['retry-after']);
    }
    assert.equal((await whoami(it.server, bearer(it.key))).json().user, 'ann');
    assert.equal((await postJson(it.server, SESSION, { key: it.key })).status, 200);
    assert.equal((await whoami(it.server, bearer(SHORT))).status, 429, 'right or not: it is not looked at');
    assertUnauthenticated(await whoami(it.server), 'no key is no guess');
    assert.equal((await guess(1, undefined, '127.0.0.9'))[0].status, 401, 'another address');
  });
});

test('a configured key that anybody would find is refused', async (t) => {
  const home = await Home.make(t);
  const { code, stderr } = await home.run(['serve'], { FERMATA_LISTEN: '127.0.0.1:0', FERMATA_API_KEY: 'sesame1' });
  assert.equal(code, 2);
  assert.match(stderr, /fewer than 8 characters.*openssl rand/s);
  assert.ok(!stderr.includes('sesame1'));
});

describe('listening beyond this machine', () => {
  const everywhere = { FERMATA_LISTEN: '0.0.0.0:0' };

  test('is refused without a key, with what to do', async (t) => {
    const home = await Home.make(t);
    for (const listen of ['0.0.0.0:0', '[::]:0']) {
      const { code, stdout, stderr } = await home.run(['serve'], { FERMATA_LISTEN: listen });
      assert.equal(code, 1);
      assert.equal(stdout, '');
      assert.match(stderr, /^fermata: refusing to listen on [^\n]+\n$/);
      for (const word of ['`fermata key add --user NAME`', 'FERMATA_API_KEY', '127.0.0.1']) {
        assert.ok(stderr.includes(word), word);
      }
    }
    const check = await home.run(['check'], everywhere);
    assert.equal(check.code, 1);
    assert.match(check.stdout, /^listen +FAILED: refusing/m);
  });

  test('is served with a key, and addresses in digits are then ours', async (t) => {
    const home = await Home.make(t);
    const key = await home.addKey('ann');
    const server = await home.start(everywhere);
    const here = { host: '127.0.0.1', port: server.port };
    assertUnauthenticated(await whoami(here));
    assert.equal((await whoami(here, bearer(key))).status, 200);
    assert.equal((await whoami(here, { ...bearer(key), host: '192.0.2.7:8080' })).status, 200);
    assertProblem(await whoami(here, { ...bearer(key), host: 'evil.example' }), 403, 'forbidden_host');
    await home.stop();

    await home.revokeKey(key); /* nobody gets in, so nothing is open */
    const check = await home.run(['check'], everywhere);
    assert.match(check.stdout, /^listen +ok/m);
    const closed = await home.start(everywhere);
    assertUnauthenticated(await whoami({ host: '127.0.0.1', port: closed.port }, bearer(key)));
  });

  test('is served with FERMATA_API_KEY', async (t) => {
    const home = await Home.make(t, { ...everywhere, FERMATA_API_KEY: 'sesame-open-0123456789' });
    assert.equal((await home.run(['check'])).code, 0);
    const server = await home.start();
    const here = { host: '127.0.0.1', port: server.port };
    assertUnauthenticated(await whoami(here));
    assert.equal((await whoami(here, bearer('sesame-open-0123456789'))).status, 200);
  });
});

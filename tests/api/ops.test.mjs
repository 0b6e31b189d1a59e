// SPDX-License-Identifier: Apache-2.0
//
// What an operator relies on: the log, stopping, and starting again after whatever happened.

import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join, resolve } from 'node:path';
import { describe, test } from 'node:test';

import { bearer, call, Home, KEY, postJson } from './home.mjs';
import { RawConnection } from './raw.mjs';
import { buildFolder, within } from './server.mjs';

const SESSION = '/api/v1/session';
const HEALTH = 'GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n';
const postHead = (length) => `POST ${SESSION} HTTP/1.1\r\nHost: localhost\r\n`
  + `Content-Type: application/json\r\nContent-Length: ${length}\r\n`;
const CANARY = 'CANARY0123456789';
const GRACE_MS = 3000; // what open answers get at a stop

// Time, level, event, then name=value or name="value".
const TIME = String.raw`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z`;
const FIELD = String.raw`[a-z]+=(?:"(?:[^"\\]|\\.)*"|[^\s"]+)`;
const TEXT_LINE = new RegExp(`^${TIME} (debug|info |warn |error) ([a-z]+(?:\\.[a-z]+)*)((?: ${FIELD})*)$`);

const linesOf = (server) => {
  const text = server.stderr();
  assert.ok(text === '' || text.endsWith('\n'), 'the last line is whole');
  return text.split('\n').slice(0, -1);
};
// When it said so, by its own clock: the end of a process takes time, too, and a sanitizer more.
const timeOf = (server, event) => Date.parse(linesOf(server).find((line) => line.includes(` ${event}`)).split(' ')[0]);
const openAll = (server, count) => Promise.all(Array.from({ length: count }, () => RawConnection.open(server)));
const exited = (server) => within(20_000, 'exit', new Promise((done) => {
  if (server.proc.exitCode !== null || server.proc.signalCode !== null) done();
  else server.proc.once('exit', done);
}));

// Resolves when the condition holds; it is looked at whenever the server says something.
function logged(server, what, condition) {
  return within(10_000, what, new Promise((done) => {
    const look = () => { if (condition(server.stderr())) done(); };
    server.proc.stderr.on('data', look);
    look();
  }));
}

// A client that asks for more than the kernel keeps for it, and reads nothing. Resolves when the server has
// nothing left to do but wait for it.
async function stuckReader(server) {
  const socket = connect({ host: server.host, port: server.port });
  socket.pause();
  socket.on('error', () => {});
  socket.write('GET /api/v1/openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n'.repeat(20_000));
  const answered = async () => Number(/class="2xx"\} (\d+)/.exec((await call(server, 'GET', '/metrics')).text)[1]);
  let before = await answered();
  for (let still = 0, tries = 0; still < 5 && tries < 10_000; tries++) {
    const now = await answered();
    still = now === before + 1 ? still + 1 : 0; /* only our own question was answered */
    before = now;
  }
  return socket;
}

// Everything a client can put into a request, with something in it that a log must not take as it is.
async function attack(server) {
  const odd = [
    '/a%0a2026-01-01T00:00:00.000Z%20error%20forged', '/%0d%0a', '/%1b[31mred', '/%00', '/"quoted"', '/a=b', '/a\\b',
    '/%E2%80%AEright-to-left', '/{"event":"forged"}', `/${'long'.repeat(1500)}`, `/x?ticket=${CANARY}&key=${CANARY}`,
    `${SESSION}?ticket=${CANARY}`,
  ];
  const raw = [
    ...odd.map((path) => `GET ${path} HTTP/1.1\r\nHost: localhost\r\n`),
    `GET ${SESSION} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${CANARY}\r\n`,
    `GET ${SESSION} HTTP/1.1\r\nHost: localhost\r\nCookie: fermata_session=${CANARY}; a=${CANARY}\r\n`,
    'GET / HTTP/1.1\r\nHost: evil"\r\n', 'GET / HTTP/1.1\r\nHost: localhost\r\nX-Odd: \t\xff\xfe" event=forged\r\n',
    'POST /api/v1/tickets HTTP/1.1\r\nHost: localhost\r\nOrigin: http://a" level=error\r\nContent-Length: 0\r\n',
    'GET / HTTP/1.1\r\nHost: localhost\r\nX-Odd: \x1b[2J\r\n', 'GET /\x1b[2J HTTP/1.1\r\nHost: localhost\r\n',
    'GET /\xff\xfe HTTP/1.1\r\nHost: localhost\r\n', 'BREW /pot HTTP/1.1\r\nHost: localhost\r\n', 'nonsense\r\n',
    'GET / HTTP/1.1\r\nHost: localhost\r\nX-Forwarded-For: 1.2.3.4" event=forged\r\n',
  ];
  for (const head of raw) {
    const connection = await RawConnection.open(server);
    await connection.write(Buffer.from(`${head}Connection: close\r\n\r\n`, 'latin1'));
    assert.ok(await connection.response(), 'an answer');
    connection.close();
  }
  await postJson(server, SESSION, { key: CANARY });
  await postJson(server, SESSION, { [CANARY]: 1 });
  return raw.length + 2;
}

describe('the log', () => {
  test('in JSON: one line is one event, and no request breaks it or leaves a secret in it', async (t) => {
    const home = await Home.make(t, { FERMATA_LOG: 'debug,json', FERMATA_API_KEY: `${CANARY}-operator` });
    const server = await home.start();
    const key = await home.addKey('ann"\\ 李');
    const count = await attack(server);
    const signedIn = await postJson(server, SESSION, { key });
    const cookie = signedIn.cookies[0].split(';')[0];
    assert.equal((await call(server, 'POST', '/api/v1/tickets', { headers: { cookie } })).status, 201);
    assert.equal((await call(server, 'DELETE', SESSION, { headers: { cookie } })).status, 204);
    await home.revokeKey(key);
    await home.stop();

    const events = linesOf(server).map((line) => JSON.parse(line));
    for (const event of events) {
      assert.match(event.ts, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
      assert.match(event.level, /^(debug|info|warn|error)$/);
      assert.match(event.event, /^[a-z]+(\.[a-z]+)*$/);
      assert.ok(!event.event.includes('forged'));
    }
    const named = (name) => events.filter(({ event }) => event === name);
    assert.equal(named('http.answered').length, count + 3, 'one per request');
    for (const name of ['server.listening', 'key.added', 'session.opened', 'session.ended', 'key.revoked',
      'server.stopping', 'server.stopped']) {
      assert.equal(named(name).length, 1, name);
    }
    assert.equal(named('key.added')[0].user, 'ann"\\ 李');
    assert.equal(named('session.refused').length, 1);
    const ids = named('http.answered').map(({ id }) => id).filter(Boolean);
    assert.equal(new Set(ids).size, ids.length);
    const secrets = [CANARY, key, KEY.exec(key)[2], cookie.split('=')[1]];
    for (const secret of secrets) assert.ok(!server.stderr().includes(secret));
  });

  test('as text: the same', async (t) => {
    const home = await Home.make(t, { FERMATA_LOG: 'debug', FERMATA_API_KEY: `${CANARY}-operator` });
    const server = await home.start();
    const count = await attack(server);
    await home.stop();
    const lines = linesOf(server);
    for (const line of lines) {
      const match = TEXT_LINE.exec(line);
      assert.ok(match, JSON.stringify(line));
      assert.ok(!/forged/.test(match[2]));
      assert.doesNotMatch(line, /[\u0000-\u001f\u007f-\u009f\u2028\u2029\u202e]/);
    }
    assert.equal(lines.filter((line) => line.includes(' http.answered ')).length, count);
    assert.ok(!server.stderr().includes(CANARY));
  });

  test('of requests is off unless asked for, and warn has no word of a quiet life', async (t) => {
    const home = await Home.make(t);
    const quiet = await home.start({ FERMATA_LOG: 'warn' });
    await call(quiet, 'GET', '/healthz');
    await home.stop();
    const root = process.getuid() === 0 ? ['server.root'] : []; // the one thing it remarks of our way to run it
    const eventsOf = (server) => linesOf(server).map((line) => TEXT_LINE.exec(line)[2]);
    assert.deepEqual(eventsOf(quiet), root);
    const usual = await home.start();
    await call(usual, 'GET', '/healthz');
    await home.stop();
    assert.deepEqual(eventsOf(usual), ['server.listening', ...root, 'server.stopping', 'server.stopped']);
  });

  test('of a warning says it once', async (t) => {
    const home = await Home.make(t);
    const server = await home.start({ FERMATA_LISTN: 'x' });
    await home.stop();
    assert.equal(server.stderr().split('FERMATA_LISTN').length - 1, 1, server.stderr());
  });
});

describe('standard output', () => {
  test('has the line that says where it listens, and nothing else', async (t) => {
    const home = await Home.make(t);
    const server = await home.start({ FERMATA_LOG: 'debug' });
    let more = '';
    server.proc.stdout.on('data', (text) => { more += text; });
    await call(server, 'GET', '/');
    await home.addKey();
    await home.stop();
    assert.equal(more, '');
  });
});

describe('stopping', () => {
  test('does not wait for idle connections', async (t) => {
    const home = await Home.make(t);
    const server = await home.start();
    const connections = await openAll(server, 20);
    for (const connection of connections.slice(0, 10)) { /* the others have not said a word */
      await connection.write(HEALTH);
      assert.equal((await connection.response()).status, 200);
    }
    await home.stop();
    const took = timeOf(server, 'server.stopped') - timeOf(server, 'server.stopping');
    assert.ok(took < GRACE_MS - 200, `${took} ms`);
    for (const connection of connections) {
      assert.equal(await connection.response(), null);
      connection.close();
    }
  });

  test('answers the requests that are under way, and what it answered is on disk', async (t) => {
    const home = await Home.make(t);
    const key = await home.addKey('ann');
    const hang = join(home.data, 'hang'); /* while it is there, nothing can be written */
    const server = await home.start({ LD_PRELOAD: resolve(buildFolder(), 'tests/hang_preload.so'), ASAN_OPTIONS: `${process.env.ASAN_OPTIONS ?? ''}:verify_asan_link_order=0`,
      HANG_WHILE: hang, HANG_BELOW: 'fermata.db-wal' });
    const body = JSON.stringify({ key });
    const connections = await openAll(server, 5);
    for (const connection of connections) { /* accepted for sure */
      await connection.write(HEALTH);
      assert.equal((await connection.response()).status, 200);
    }
    await writeFile(hang, '');
    /* Requests and signal are there when it wakes; it sees the requests first. */
    server.proc.kill('SIGSTOP');
    for (const connection of connections) {
      await connection.write(`${postHead(body.length)}\r\n${body}`);
    }
    server.proc.kill('SIGTERM');
    server.proc.kill('SIGCONT');
    await logged(server, 'the signal', (text) => text.includes(' server.stopping'));
    await rm(hang);
    const cookies = [];
    for (const connection of connections) {
      const answer = await connection.response();
      assert.equal(answer?.status, 200);
      assert.equal(answer.headers.connection, 'close');
      cookies.push(answer.headers['set-cookie'].split(';')[0]);
      connection.close();
    }
    await exited(server);
    assert.equal(server.proc.exitCode, 0);
    home.server = null;

    const again = await home.start();
    for (const cookie of cookies) {
      assert.equal((await call(again, 'GET', SESSION, { headers: { cookie } })).status, 200);
    }
  });

  test('does not wait for ever for a request that never ends', async (t) => {
    const home = await Home.make(t);
    const server = await home.start();
    const [head, body] = await openAll(server, 2);
    await head.write('GET /healthz HTTP/1.1\r\nHost: loc');
    await body.write(`${postHead(100)}Expect: 100-continue\r\n\r\n{`);
    assert.equal((await body.response()).status, 100);
    const since = performance.now();
    await home.stop();
    const took = performance.now() - since;
    assert.ok(took < 3 * GRACE_MS, `${took} ms`);
    for (const connection of [head, body]) connection.close();
  });

  test('works by SIGINT, too', async (t) => {
    const home = await Home.make(t);
    const server = await home.start();
    server.proc.kill('SIGINT');
    await exited(server);
    assert.equal(server.proc.exitCode, 0);
    home.server = null;
  });

  test('does not wait for ever for a client that does not read, and not at all at the second signal', async (t) => {
    for (const signals of [1, 2]) {
      const home = await Home.make(t);
      const server = await home.start();
      const socket = await stuckReader(server);
      const since = performance.now();
      server.proc.kill('SIGTERM');
      await logged(server, 'stopping', (text) => text.includes('server.stopping'));
      if (signals === 2) server.proc.kill('SIGTERM');
      await exited(server);
      const took = performance.now() - since;
      socket.destroy();
      home.server = null;
      assert.equal(server.proc.exitCode, signals === 2 ? 143 : 0);
      assert.ok(took < (signals === 2 ? GRACE_MS - 200 : 3 * GRACE_MS), `${took} ms`);
      assert.equal((await call(await home.start(), 'GET', '/readyz')).status, 200);
    }
  });
});

describe('starting again', () => {
  test('on the same folder is quick, also at the same port', async (t) => {
    const home = await Home.make(t);
    const begun = performance.now();
    let server = await home.start();
    const first = performance.now() - begun;
    const key = await home.addKey('ann');
    const listen = { FERMATA_LISTEN: `127.0.0.1:${server.port}` };
    const open = await RawConnection.open(server);
    await open.write(HEALTH);
    await open.response();
    await home.stop();
    open.close();
    const since = performance.now();
    server = await home.start(listen);
    assert.ok(performance.now() - since < 5000 + first);
    assert.equal((await call(server, 'GET', SESSION, { headers: bearer(key) })).status, 200);
  });

  test('is refused at a port that somebody else has, with its name', async (t) => {
    const home = await Home.make(t), other = await Home.make(t);
    const server = await home.start();
    const { code, stderr } = await other.run(['serve'], { FERMATA_LISTEN: `127.0.0.1:${server.port}` });
    assert.equal(code, 1);
    assert.match(stderr, new RegExp(`^fermata: .*127\\.0\\.0\\.1.*${server.port}.*\\n$`));
  });

  test('after a kill finds its lock and socket stale and everything it answered', async (t) => {
    const home = await Home.make(t);
    let server = await home.start();
    const key = await home.addKey('ann');
    for (let round = 0; round < 3; round++) {
      const cookies = [];
      const clients = Array.from({ length: 8 }, async () => {
        for (let i = 0; i < 1000; i++) {
          const answer = await postJson(server, SESSION, { key }).catch(() => null);
          if (!answer) return; /* it is gone */
          assert.equal(answer.status, 200);
          cookies.push(answer.cookies[0].split(';')[0]);
          if (cookies.length === 20) server.proc.kill('SIGKILL');
        }
      });
      await within(30_000, 'clients', Promise.all(clients));
      await server.kill9();
      home.server = null;
      assert.ok(cookies.length >= 20);
      assert.ok(existsSync(join(home.data, 'fermata.sock')), 'a stale socket');

      const list = await home.run(['key', 'list']); /* no server: the socket must not mislead it */
      assert.equal(list.code, 0, list.stderr);
      assert.match(list.stdout, / ann /);
      server = await home.start();
      for (const cookie of cookies) {
        const { status } = await call(server, 'GET', SESSION, { headers: { cookie } });
        assert.equal(status, 200, 'an answered session is there');
      }
      assert.equal((await home.run(['key', 'list'])).code, 0, 'the new socket answers');
    }
  });
});

// SPDX-License-Identifier: Apache-2.0
//
// What peers do wrong on a WebSocket, row by row, against the running server: the handshake, the framing, the messages.
// Each row is sent whole and, where it is short, one byte at a time. W28, a peer that does not answer our ping for a
// minute, is in tests/unit/net/test_ws_life.c, where the minute is short.

import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, before, describe, test } from 'node:test';

import { bearer, call, Home, postJson } from './home.mjs';
import { BINARY, CLOSE, closeFrame, frame, Frames, handshake, PING, PONG, Socket, TEXT, WS } from './socket.mjs';
import { RawConnection } from './raw.mjs';
import { accepted, endOf, isEnd, runOf, startTalk, user, waitFor } from './talk.mjs';

const MESSAGE_BYTES_MAX = 256 * 1024;
const FRAGMENTS_MAX = 64;
const RUNS_MS_MAX = 300_000; // for hundreds of them
const ORIGIN = 'https://app.example.com';
const LINES = [
  { match: '^long', turns: [{ text: 'x'.repeat(30_000), chunk: 3000 }] },
  { turns: [{ text: 'Hello there.', chunk: 2 }] },
];

let home, server;
const cleanUp = [];
before(async () => {
  home = await startTalk({ after: (fn) => cleanUp.unshift(fn) }, LINES, { FERMATA_AUTH_CORS: ORIGIN });
  server = home.server;
});
after(async () => {
  for (const fn of cleanUp) await fn();
});

const PING_FRAME = '{"type":"ping","id":1}';
const PONG_TEXT = '{"type":"pong","id":1}';
const bytes = (...list) => Buffer.concat(list.map((one) => Buffer.from(one)));
const control = (opcode, payload = '', more = {}) => frame(payload, { opcode, ...more });
const piece = (payload, opcode, fin) => frame(payload, { opcode, fin });

async function checkAlive(t) {
  const socket = await Socket.open(t, server);
  assert.deepEqual(await socket.ask({ type: 'ping', id: 'alive' }), { type: 'pong', id: 'alive' });
  socket.close();
}

// ---- W1 to W8: the handshake ----

const HANDSHAKES = [
  { name: 'W1: a plain GET', options: { headers: { Upgrade: undefined, Connection: undefined, 'Sec-WebSocket-Key': undefined, 'Sec-WebSocket-Version': undefined } },
    status: 426, headers: { upgrade: /^websocket$/ } },
  { name: 'W2: no Connection: upgrade', options: { headers: { Connection: 'keep-alive' } }, status: 400 },
  { name: 'W2: no Upgrade: websocket', options: { headers: { Upgrade: undefined } }, status: 400 },
  { name: 'W2: an Upgrade to something else', options: { headers: { Upgrade: 'h2c' } }, status: 400 },
  { name: 'W2: HTTP/1.0', options: { version: '1.0' }, status: 400 },
  { name: 'W2: POST', options: { method: 'POST', headers: { 'Content-Length': '0' } }, status: 405, headers: { allow: /GET/ } },
  { name: 'W3: no key', options: { headers: { 'Sec-WebSocket-Key': undefined } }, status: 400 },
  { name: 'W3: an empty key', options: { headers: { 'Sec-WebSocket-Key': '' } }, status: 400 },
  { name: 'W3: a key of 15 bytes', options: { key: Buffer.alloc(15, 1).toString('base64') }, status: 400 },
  { name: 'W3: a key of 17 bytes', options: { key: Buffer.alloc(17, 1).toString('base64') }, status: 400 },
  { name: 'W3: a key that is no base64', options: { key: '!'.repeat(22) + '==' }, status: 400 },
  { name: 'W3: two keys', options: { headers: { 'Sec-WebSocket-Key': [randomBytes(16).toString('base64'), randomBytes(16).toString('base64')] } }, status: 400 },
  ...['8', '14', '0', '13.0', undefined].map((version) => ({ name: `W4: version ${version}`,
    options: { headers: { 'Sec-WebSocket-Version': version } }, status: 426, headers: { 'sec-websocket-version': /^13$/ } })),
  ...['null', 'https://evil.example', 'https://app.example.com.evil', 'https://APP.example.com', 'HTTPS://app.example.com', 'http://app.example.com',
    'https://app.example.com:444', 'https://sub.app.example.com', 'file://', '*'].map((origin) => ({ name: `W5: Origin ${origin}`,
    options: { headers: { Origin: origin } }, status: 403 })),
  { name: 'W5: a page of another site that does not say which', options: { headers: { 'Sec-Fetch-Site': 'cross-site' } }, status: 403 },
  { name: 'W5: an Origin of the list', options: { headers: { Origin: ORIGIN } }, status: 101 },
  { name: 'W5: our own page', options: () => ({ headers: { Origin: `http://${server.host}:${server.port}` } }), status: 101 },
  { name: 'W7: permessage-deflate', options: { headers: { 'Sec-WebSocket-Extensions': 'permessage-deflate; client_max_window_bits' } }, status: 101,
    without: 'sec-websocket-extensions' },
  { name: 'W8: a subprotocol', options: { headers: { 'Sec-WebSocket-Protocol': 'chat, superchat' } }, status: 101, without: 'sec-websocket-protocol' },
  { name: 'tokens in any case, among others', options: { headers: { Upgrade: 'WebSocket', Connection: 'keep-alive, UPGRADE' } }, status: 101 },
  { name: 'a name that is not ours', options: { headers: { Host: 'evil.example' } }, status: 403 },
];

describe('the handshake', () => {
  for (const { name, options, status, headers = {}, without } of HANDSHAKES) {
    test(name, async (t) => {
      const { response } = await Frames.open(t, server, typeof options === 'function' ? options() : options);
      assert.equal(response?.status, status, response?.body);
      if (status >= 400) assert.equal(JSON.parse(response.body).status, status);
      for (const [field, pattern] of Object.entries(headers)) assert.match(response.headers[field] ?? '', pattern, field);
      if (without) assert.equal(response.headers[without], undefined);
    });
  }

  test('W6: who has no key, session or ticket is not let in', async (t) => {
    const closed = await Home.make(t);
    await closed.start();
    const key = await closed.addKey('ann');
    const open = (options) => Frames.open(t, closed.server, options);
    const login = await postJson(closed.server, '/api/v1/session', { key });
    const cookie = login.cookies[0].split(';')[0];
    const ticket = (await call(closed.server, 'POST', '/api/v1/tickets', { headers: bearer(key) })).json().ticket;
    const rows = [
      [{}, 401], [{ headers: { Authorization: 'Bearer nonsense' } }, 401], [{ headers: { Cookie: `${cookie}x` } }, 401],
      [{ path: `${WS}?ticket=nonsense` }, 401],
      [{ headers: { Authorization: `Bearer ${key}` } }, 101], [{ headers: { Cookie: cookie } }, 101],
      [{ path: `${WS}?ticket=${ticket}` }, 101], [{ path: `${WS}?ticket=${ticket}` }, 401],
    ];
    for (const [options, status] of rows) assert.equal((await open(options)).response?.status, status, JSON.stringify(options));
    assert.equal((await call(closed.server, 'DELETE', '/api/v1/session', { headers: { cookie } })).status, 204);
    assert.equal((await open({ headers: { Cookie: cookie } })).response?.status, 401, 'a session that has ended');
  });

  test('W9: the first frame comes with the handshake', async (t) => {
    const { frames } = await Frames.open(t, server, { behind: frame(PING_FRAME) });
    assert.equal((await frames.next()).payload.toString(), PONG_TEXT);
  });

  test('the handshake byte by byte', async (t) => {
    const raw = await RawConnection.open(server);
    t.after(() => raw.close());
    await raw.writeByteByByte(bytes(handshake(server), frame(PING_FRAME)));
    assert.equal((await raw.response()).status, 101);
    assert.equal((await new Frames(raw).next()).payload.toString(), PONG_TEXT);
  });
});

// ---- W10 to W27: frames ----

const INVALID = { 'C0 80': [0xc0, 0x80], 'ED A0 80': [0xed, 0xa0, 0x80], 'F4 90 80 80': [0xf4, 0x90, 0x80, 0x80], FF: [0xff], 'E4 BD at the end': [0xe4, 0xbd] };
const spaces = (count) => `{"type":"ping","id":1${' '.repeat(count - PING_FRAME.length)}}`;
const halves = (text, at) => bytes(piece(text.slice(0, at), TEXT, false), piece(text.slice(at), 0, true));

// name; the bytes; the close code that comes. `large` is not sent byte by byte.
const FAULTS = [
  { name: 'W10: an unmasked frame', bytes: frame(PING_FRAME, { masked: false }), code: 1002 },
  ...[1, 2, 4].map((rsv) => ({ name: `W11: RSV bits ${rsv}`, bytes: frame(PING_FRAME, { rsv }), code: 1002 })),
  ...[3, 4, 5, 6, 7, 11, 12, 13, 14, 15].map((opcode) => ({ name: `W12: opcode ${opcode}`, bytes: frame('', { opcode }), code: 1002 })),
  ...[CLOSE, PING, PONG].flatMap((opcode) => [
    { name: `W13: opcode ${opcode} with 126 bytes`, bytes: control(opcode, 'x'.repeat(126)), code: 1002 },
    { name: `W13: opcode ${opcode} in pieces`, bytes: control(opcode, '', { fin: false }), code: 1002 },
  ]),
  { name: 'W15: a continuation of nothing', bytes: piece('x', 0, true), code: 1002 },
  { name: 'W15: a new text inside one in pieces', bytes: bytes(piece('{', TEXT, false), frame(PING_FRAME)), code: 1002 },
  { name: 'W16: 5 bytes, said in 16 bits', bytes: frame('hello', { length: 16 }), code: 1002 },
  { name: 'W16: 200 bytes, said in 64 bits', bytes: frame('x'.repeat(200), { length: 64 }), code: 1002 },
  { name: 'W17: a length with the top bit', bytes: frame('', { length: 64, claims: 1n << 63n }), code: 1002 },
  { name: 'W17: a length of 2^62', bytes: frame('', { length: 64, claims: 1n << 62n }), code: 1009 },
  { name: 'W18: one byte more than a message may have', bytes: frame(spaces(MESSAGE_BYTES_MAX + 1)), code: 1009, large: true },
  { name: 'W18: the same in pieces', bytes: halves(spaces(MESSAGE_BYTES_MAX + 1), 1000), code: 1009, large: true },
  ...Object.entries(INVALID).map(([name, wrong]) => ({ name: `W19: ${name}`, bytes: frame(bytes('"', wrong)), code: 1007 })),
  { name: 'W19: a character cut off at the end of a message in pieces', bytes: bytes(piece('"', TEXT, false), piece([0xe4, 0xbd], 0, true)), code: 1007 },
  { name: 'W21: 65 pieces', bytes: bytes(piece('{', TEXT, false), ...Array.from({ length: FRAGMENTS_MAX }, () => piece(' ', 0, false))), code: 1008 },
  { name: 'W21: 10,000 empty pieces', bytes: bytes(piece('{', TEXT, false), ...Array.from({ length: 10_000 }, () => piece('', 0, false))), code: 1008, large: true },
  { name: 'W22: binary', bytes: frame(PING_FRAME, { opcode: BINARY }), code: 1003 },
  { name: 'W24: a close frame of one byte', bytes: control(CLOSE, 'x'), code: 1002 },
  ...[0, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000].map((code) => ({ name: `W24: close ${code}`, bytes: closeFrame(code), code: 1002 })),
  { name: 'W26: a reason that is no UTF-8', bytes: control(CLOSE, bytes([3, 232], [0xff])), code: 1007 },
];

describe('frames that are refused', () => {
  for (const { name, bytes: wrong, code, large } of FAULTS) {
    test(name, async (t) => {
      for (const write of large ? ['write'] : ['write', 'writeByteByByte']) {
        const { frames } = await Frames.open(t, server);
        await frames.raw[write](wrong);
        assert.equal((await frames.closed()).code, code, write);
        assert.equal(await frames.next(), null, 'and the connection ends');
      }
      await checkAlive(t);
    });
  }

  test('W29: a flood of pings', async (t) => {
    const { frames } = await Frames.open(t, server);
    const flood = bytes(...Array.from({ length: 10_000 }, () => control(PING, 'x')));
    await frames.write(flood);
    assert.equal((await frames.closed()).code, 1008);
    await checkAlive(t);
  });
});

const ping125 = 'p'.repeat(125);
const GOOD = [
  { name: 'W14: a ping of 0 bytes', bytes: control(PING), answers: [[PONG, '']] },
  { name: 'W14: a ping of 125 bytes', bytes: control(PING, ping125), answers: [[PONG, ping125]] },
  { name: 'W14: a ping inside a message in pieces', bytes: bytes(piece(PING_FRAME.slice(0, 5), TEXT, false), control(PING, 'mid'), piece(PING_FRAME.slice(5), 0, true)),
    answers: [[PONG, 'mid'], [TEXT, PONG_TEXT]] },
  { name: 'a pong that nobody asked for', bytes: bytes(control(PONG, 'x'), frame(PING_FRAME)), answers: [[TEXT, PONG_TEXT]] },
  { name: 'W18: a message of the largest size', bytes: frame(spaces(MESSAGE_BYTES_MAX)), answers: [[TEXT, PONG_TEXT]], large: true },
  { name: 'W18: the same in pieces', bytes: halves(spaces(MESSAGE_BYTES_MAX), 70_000), answers: [[TEXT, PONG_TEXT]], large: true },
  { name: 'W20: a character split over pieces', bytes: (() => {
    const text = Buffer.from('{"type":"ping","id":"你好"}');
    return bytes(piece(text.subarray(0, 22), TEXT, false), piece('', 0, false), piece(text.subarray(22, 23), 0, false), piece(text.subarray(23), 0, true));
  })(), answers: [[TEXT, '{"type":"pong","id":"你好"}']] },
  { name: 'W20: empty pieces', bytes: bytes(piece('', TEXT, false), piece(PING_FRAME, 0, false), piece('', 0, true)), answers: [[TEXT, PONG_TEXT]] },
  { name: 'W21: 64 pieces', bytes: bytes(piece(PING_FRAME, TEXT, false), ...Array.from({ length: FRAGMENTS_MAX - 2 }, () => piece('', 0, false)), piece('', 0, true)),
    answers: [[TEXT, PONG_TEXT]] },
  { name: 'several frames in one segment', bytes: bytes(frame(PING_FRAME), frame('{"type":"ping","id":2}'), control(PING, 'x')),
    answers: [[TEXT, PONG_TEXT], [TEXT, '{"type":"pong","id":2}'], [PONG, 'x']], anyOrder: true },
];

describe('frames that are fine', () => {
  for (const { name, bytes: right, answers, large, anyOrder } of GOOD) {
    test(name, async (t) => {
      for (const write of large ? ['write'] : ['write', 'writeByteByByte']) {
        const { frames } = await Frames.open(t, server);
        await frames.raw[write](right);
        const got = [];
        for (let i = 0; i < answers.length; i++) {
          const { opcode, payload } = await frames.next();
          got.push([opcode, payload.toString()]);
        }
        const order = (list) => (anyOrder ? list.map(String).sort() : list.map(String));
        assert.deepEqual(order(got), order(answers), write);
        frames.close();
      }
    });
  }

  for (const code of [1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 3000, 3999, 4000, 4999]) {
    test(`W25: close ${code} is echoed`, async (t) => {
      const { frames } = await Frames.open(t, server);
      await frames.write(closeFrame(code, 'bye'));
      assert.equal((await frames.closed()).code, code);
      assert.equal(await frames.next(), null, 'clean');
    });
  }

  test('a close frame without a code', async (t) => {
    const { frames } = await Frames.open(t, server);
    await frames.write(control(CLOSE));
    assert.ok([1000, 1005].includes((await frames.closed()).code));
    assert.equal(await frames.next(), null);
  });

  test('W27: what comes behind a close frame is ignored', async (t) => {
    const { frames } = await Frames.open(t, server);
    await frames.write(bytes(closeFrame(1000), frame(PING_FRAME), control(PING, 'x'), closeFrame(1001), [0xff, 0xff]));
    assert.equal((await frames.closed()).code, 1000);
    assert.equal(await frames.next(), null);
    await checkAlive(t);
  });
});

// ---- W23: messages that make no sense ----

const NONSENSE = ['hello', '{"type":"ping"', '[]', '7', '{"type":"nothing","id":"n"}', '{"type":"stop"}', '{"type":"ping","more":1}',
  '{"type":"ping","type":"ping"}', '{"type":"subscribe","sessionId":"a b"}', '{}'];

describe('W23: messages that make no sense', () => {
  test('an error with the id of the frame, and 1008 at the tenth in a minute', async (t) => {
    const socket = await Socket.open(t, server);
    for (const [i, text] of NONSENSE.entries()) {
      await socket.write(text);
      const error = await socket.next();
      assert.equal(error.type, 'error', text);
      assert.equal(error.data.code, 'invalid_field');
      assert.ok(error.data.message);
      assert.equal(error.id, text.includes('"id":"n"') ? 'n' : undefined);
      if (i < NONSENSE.length - 1) assert.equal(socket.over, null, `open after ${i + 1}`);
    }
    assert.equal((await socket.closed()).code, 1008);
    await checkAlive(t);
  });

  test('nine, and sensible ones that are refused, leave it open', async (t) => {
    const socket = await Socket.open(t, server);
    for (const text of NONSENSE.slice(1)) await socket.write(text);
    for (let i = 0; i < 20; i++) await socket.refused({ type: 'stop', sessionId: `none${i}` }, 'not_found');
    assert.equal(socket.all.filter(({ type }) => type === 'error').length, 29);
    assert.deepEqual(await socket.ask({ type: 'ping', id: 1 }), { type: 'pong', id: 1 });
  });
});

// ---- W30 to W33 ----

describe('readers and the server', () => {
  test('W30: a reader that stops is told to come back, and goes on behind what it has', async (t) => {
    const socket = await Socket.open(t, server);
    await socket.subscribe('w30');
    socket.frames.raw.socket.pause();
    const sockets = async () => Number(/^fermata_websockets (\d+)$/m.exec((await call(server, 'GET', '/metrics')).text)[1]);
    await waitFor('the others to be gone', async () => await sockets() === 1);
    let last = 0; // runs, each of which says 90 KB: more than all buffers between us hold
    for (; last < 300 && await sockets(); last++) await accepted(server, { threadId: 'w30', runId: `r${last}`, messages: [user('long')] });
    await waitFor('the server to let go of it', async () => await sockets() === 0);
    socket.frames.raw.socket.resume();
    const { code } = await socket.closed();
    assert.ok(code === 1013 || code === null, `${code}`); // the close frame fits behind what was queued, or not
    await waitFor('all runs', async () => {
      const { runId, status } = await runOf(server, 'w30');
      return runId === `r${last - 1}` && status === 'completed';
    }, RUNS_MS_MAX);
    const after = Math.max(0, ...socket.all.filter(({ seq }) => seq !== undefined).map(({ seq }) => seq));
    const again = await Socket.open(t, server);
    await again.subscribe('w30', { after });
    const rest = await again.until(endOf(`r${last - 1}`));
    assert.equal(rest.find(({ seq }) => seq !== undefined).seq, after + 1, 'no gap');
    again.close();
  });

  test('W31: a key that is revoked and a session that ends close their sockets with 1008 at once', async (t) => {
    const closed = await Home.make(t);
    await closed.start();
    const [ann, bob] = [await closed.addKey('ann'), await closed.addKey('bob')];
    const login = async (key) => (await postJson(closed.server, '/api/v1/session', { key })).cookies[0].split(';')[0];
    const cookies = [await login(ann), await login(bob)];
    const ticket = async (headers) => (await call(closed.server, 'POST', '/api/v1/tickets', { headers })).json().ticket;
    const open = (options) => Socket.open(t, closed.server, options);
    const byCookie = await open({ headers: { Cookie: cookies[1] } });
    const byTicket = await open({ path: `${WS}?ticket=${await ticket({ cookie: cookies[1] })}` });
    const others = [await open({ headers: { Authorization: `Bearer ${bob}` } }), await open({ path: `${WS}?ticket=${await ticket(bearer(bob))}` })];
    const revoked = [await open({ headers: { Authorization: `Bearer ${ann}` } }), await open({ headers: { Cookie: cookies[0] } }),
      await open({ path: `${WS}?ticket=${await ticket(bearer(ann))}` })];
    assert.equal((await call(closed.server, 'DELETE', '/api/v1/session', { headers: { cookie: cookies[1] } })).status, 204);
    for (const socket of [byCookie, byTicket]) assert.equal((await socket.closed()).code, 1008);
    await closed.revokeKey(ann);
    for (const socket of revoked) assert.equal((await socket.closed()).code, 1008);
    for (const socket of others) assert.equal((await socket.ask({ type: 'ping' })).type, 'pong', 'others stay');
  });

  test('W31: every frame is authorised: one who was nobody\'s needs a key from the first key on', async (t) => {
    const open = await Home.make(t);
    await open.start();
    const socket = await Socket.open(t, open.server);
    await socket.done({ type: 'message', sessionId: 't1', content: 'hello' });
    await open.addKey('ann');
    await socket.send({ type: 'message', sessionId: 't1', content: 'hello again' });
    assert.equal((await socket.closed()).code, 1008);
    assert.equal(socket.all.filter(({ type }) => type === 'ack').length, 1);
  });

  test('W32: the server stops', async (t) => {
    const place = await startTalk(t, LINES);
    const sockets = [];
    for (let i = 0; i < 3; i++) sockets.push(await Socket.open(t, place.server));
    await sockets[0].subscribe('t1');
    await sockets[1].done({ type: 'subscribe', inbox: true });
    await sockets[1].one(({ type }) => type === 'inbox');
    await place.stop();
    for (const socket of sockets) assert.equal((await socket.closed()).code, 1012);
  });

  test('W33: a conversation of one byte for each segment', async (t) => {
    const { frames } = await Frames.open(t, server);
    const say = (value) => frames.raw.writeByteByByte(frame(JSON.stringify(value)));
    await say({ type: 'subscribe', sessionId: 'w33', id: 1 });
    await say({ type: 'message', sessionId: 'w33', content: '你好', runId: 'r1', id: 2 });
    const got = [];
    while (!got.some(isEnd) || !got.some(({ id }) => id === 2)) got.push(JSON.parse((await frames.next()).payload));
    const text = got.filter(({ type }) => type === 'text.delta').map(({ data }) => data.delta).join('');
    assert.equal(text, 'Hello there.');
    assert.deepEqual(got.filter(({ seq }) => seq !== undefined).map(({ seq }) => seq), [1, 2, 3, 4, 5, 6, 7, 8]);
  });

  test('what has gone is counted no more', async () => {
    await waitFor('no socket to be left', async () => /^fermata_websockets 0$/m.test((await call(server, 'GET', '/metrics')).text));
  });
});

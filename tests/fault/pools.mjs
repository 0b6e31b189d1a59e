// SPDX-License-Identifier: Apache-2.0
//
// What all users share, a row each: how one user takes as much of it as the server gives, and what another then asks
// for. For tests/fault/two-users.test.mjs, which looks whether the other is served, and bench/two-users.mjs, which
// looks how fast. To add a pool: a row.
//
//   prepare(it)   once, before anything is measured; may be absent
//   attack(it)    take it all: resolves when the server refuses more, with {refused, release}: by which word it refused
//   probe(it, n)  one request of the other user; it must be answered well
//
// `it` is {server, home, ann, bob}: the headers of the attacker and of the other. The server's model is that of LINES.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { request } from 'node:http';
import { connect } from 'node:net';
import { join } from 'node:path';

import { inbox, tool } from '../api/desk.mjs';
import { bearer } from '../api/home.mjs';
import { RawConnection } from '../api/raw.mjs';
import { Frames, Socket } from '../api/socket.mjs';
import { openEvents, postAnswer } from '../api/talk.mjs';
import { openSearches } from './attacks-search.mjs';
import { idleConnections, slowBodies, slowReaders } from './attacks.mjs';
import { Door } from './hold.mjs';
import { until } from './kit.mjs';

export const AGENT = '/api/v1/agent';
export const LINES = [{ match: '^hold', turns: [{ text: 'Later.', delay_ms: 600_000 }] }, { turns: [{ text: 'Yes.' }] }];
const BOUNDARY = 'pools';
const OWN_END = { after: () => {} }; // what is opened is closed by whoever opened it

export async function ask(server, method, path, { headers = {}, json, body } = {}) {
  const response = await fetch(`${server.url}${path}`, {
    method, body: json === undefined ? body : JSON.stringify(json),
    headers: { ...headers, ...(json === undefined ? {} : { 'content-type': 'application/json' }) } });
  return { status: response.status, headers: response.headers, text: await response.text() };
}

const ok = ({ status, text }, expected = 200) => assert.equal(status, expected, text);

const say = (it, headers, threadId, content) =>
  ask(it.server, 'POST', `${AGENT}/runs`, { headers, json: { threadId, messages: [{ role: 'user', content }] } });

async function said(it, headers, threadId, content = 'hello') {
  ok(await say(it, headers, threadId, content), 202);
  for (;;) {
    const { text } = await ask(it.server, 'GET', `${AGENT}/runs/${threadId}`, { headers });
    if (JSON.parse(text).status === 'completed') return;
  }
}

// One more and one more, until the server refuses. `begin(n)` gives {status, end}; as long as it is `good` there is more.
async function take(most, good, begin) {
  const ends = [];
  const release = () => ends.forEach((end) => end?.());
  for (let n = 0; ; n++) {
    assert.ok(n < most, 'somebody is refused before');
    const { status, end } = await begin(n);
    ends.push(end);
    if (status !== good) return { refused: status, release };
  }
}

const sqlite = (home, sql) => execFileSync('sqlite3', ['-cmd', '.timeout 20000', join(home.data, 'fermata.db')], { input: sql });

// Begins to send a file and does not end.
function beginUpload(it) {
  return new Promise((done, failed) => {
    const socket = connect(it.server.port, it.server.host);
    let text = '';
    socket.on('error', failed);
    socket.on('data', (piece) => {
      text += piece;
      done({ status: Number(text.split(' ')[1]), end: () => socket.destroy() });
    });
    const fields = Object.entries(it.ann).map(([name, value]) => `${name}: ${value}\r\n`).join('');
    const head = `--${BOUNDARY}\r\nContent-Disposition: form-data; name="threadId"\r\n\r\nt\r\n--${BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\nbytes`;
    socket.write(`POST ${AGENT}/attachments HTTP/1.1\r\nHost: localhost\r\n${fields}Content-Type: multipart/form-data; boundary=${BOUNDARY}\r\nContent-Length: 1000000\r\nExpect: 100-continue\r\n\r\n`, () => socket.write(head));
  });
}

async function upload(it, headers) {
  const body = new FormData();
  body.set('threadId', 'files');
  body.set('file', new Blob(['words']), 'a.txt');
  ok(await ask(it.server, 'POST', `${AGENT}/attachments`, { headers, body }), 201);
}

// An answer that has begun, and is not read.
function beginRead(it, path) {
  return new Promise((done, failed) => {
    const sent = request({ host: it.server.host, port: it.server.port, path: `${AGENT}${path}`, headers: it.ann, agent: false }, (response) => {
      response.pause();
      response.on('error', () => {}); // its end comes from here
      done({ status: response.statusCode, end: () => response.destroy() });
    });
    sent.on('error', failed);
    sent.end();
  });
}

// 8 MiB of messages: more than a socket takes at once. 20,000 short ones: more than a moment's work to delete.
const lengthen = (home, threadId, count, bytes) => sqlite(home, `
  CREATE TEMP TABLE n AS WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<${count}) SELECT i FROM n;
  CREATE TEMP TABLE t AS SELECT id, last_seq FROM threads WHERE thread_id='${threadId}' AND owner='ann';
  INSERT INTO messages (thread, seq, id, role, run_id, created, plain, metadata, usage, tool_calls, content, provider_data)
    SELECT t.id, t.last_seq+i, 'm' || i, 'user', 'r', 0, hex(zeroblob(${bytes / 2})), '{}', '', '', '""', '' FROM t, n;
  UPDATE threads SET last_seq=last_seq+${count} WHERE thread_id='${threadId}' AND owner='ann';`);

const keyOf = ({ authorization }) => authorization.replace(/^Bearer /, '');

// Those of tests/fault/attacks.mjs: all that fit, and one more, which is refused.
async function held(attack, more) {
  const refused = () => attack.refused() + (more?.refused() ?? 0);
  await until('one is refused', () => refused() > 0);
  return { refused: 429, release: () => [attack, more].forEach((one) => one?.stop()) };
}

async function beginSocket(it) {
  const { response, frames } = await Frames.open(OWN_END, it.server, { headers: it.ann });
  return { status: response?.status, end: () => frames?.close() };
}

// As many sockets as it needs: each reads 256 sessions.
async function subscribeAll(it) {
  const sockets = [];
  const { refused } = await take(100_100, 'ack', async (n) => {
    if (n % 256 === 0) sockets.push(await Socket.open(OWN_END, it.server, { headers: it.ann }));
    const { type, data } = await sockets.at(-1).ask({ type: 'subscribe', sessionId: `s${n}` });
    return { status: type === 'ack' ? type : data.code };
  });
  return { refused, release: () => sockets.forEach((socket) => socket.close()) };
}

async function withSocket(it, use) {
  const socket = await Socket.open(OWN_END, it.server, { headers: it.bob });
  try {
    await use(socket);
  } finally {
    socket.close();
  }
}

// All wait for one question. Whoever is beyond the share is not refused, but told at once that nobody has answered yet.
async function waitAll(it) {
  const { id } = await tool(it.server, 'ask_user', { question: 'Which room?', wait_s: 0 }, { headers: it.ann });
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'get_answer', arguments: { id } } });
  const calls = [];
  const answered = () => calls.find(({ received }) => received.length);
  const release = () => calls.forEach((call) => call.close());
  while (calls.length < 2050 && !answered()) {
    const call = await RawConnection.open(it.server);
    calls.push(call);
    await call.write(`POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: ${it.ann.authorization}\r\nContent-Type: application/json\r\n`
      + `Accept: application/json, text/event-stream\r\nContent-Length: ${body.length}\r\n\r\n${body}`);
  }
  try {
    const { body: text } = await (await until('one is told to come again', answered)).response();
    return { refused: JSON.parse(text).result.structuredContent.status, release };
  } catch (error) {
    release();
    throw error;
  }
}

// A question is asked, and its answer comes to the call that waits for it.
async function askAndAnswer(it, n) {
  const waits = tool(it.server, 'ask_user', { question: `Which room, ${n}?` }, { headers: it.desk });
  let over = false;
  waits.finally(() => { over = true; }).catch(() => {});
  while (!over) {
    for (const { interactionId } of await inbox(it.server, it.bob)) await postAnswer(it.server, interactionId, { answer: 'Blue' }, it.bob);
  }
  assert.equal((await waits).status, 'answered');
}

// The store hands nothing back until more changes wait than one user may have. The other's first request comes while the
// door is still shut. For a measurement each asks again as soon as it was answered, and there are always as many.
async function floodChanges(it) {
  const { door } = it;
  const body = JSON.stringify({ title: 'Mine' });
  const bytes = `PATCH ${AGENT}/threads/mine HTTP/1.1\r\nHost: localhost\r\nAuthorization: ${it.ann.authorization}\r\n`
    + `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
  const connections = [];
  let refused = 0, stopped = false;
  const release = () => {
    stopped = true;
    connections.forEach((connection) => connection.close());
  };
  try {
    await door.shut();
    while (!refused) {
      assert.ok(connections.length < 4800, 'somebody is refused before');
      const connection = await RawConnection.open(it.server);
      connections.push(connection);
      connection.socket.on('data', (piece) => {
        if (!refused && piece.toString('latin1', 9, 12) !== '200') refused = Number(piece.toString('latin1', 9, 12));
        connection.received = Buffer.alloc(0);
        if (it.long && !stopped) connection.write(bytes);
      });
      await connection.write(bytes);
    }
    const other = said(it, it.bob, 'behind');
    ok(await ask(it.server, 'GET', '/api/v1/session', { headers: it.bob })); // which does not wait, and comes behind it
    await door.open();
    await other;
    return { refused, release };
  } catch (error) {
    await door.open();
    release();
    throw error;
  }
}

export const POOLS = [
  {
    pool: 'bodies',
    attack: async (it) => held(await slowBodies(it.server, keyOf(it.ann), { count: 4, sent: 64 * 1024 }),
      await slowBodies(it.server, keyOf(it.ann), { count: 1, sent: 0 })),
    probe: async (it, n) => said(it, it.bob, `body${n}`),
  },
  {
    pool: 'answers',
    async prepare(it) {
      await said(it, it.ann, 'big', 'word '.repeat(1_400_000));
      await said(it, it.bob, 'small');
    },
    attack: async (it) => held(await slowReaders(it.server, keyOf(it.ann), { count: 12, path: `${AGENT}/history?threadId=big` })),
    probe: async (it) => ok(await ask(it.server, 'GET', `${AGENT}/history?threadId=small`, { headers: it.bob })),
  },
  {
    pool: 'connections',
    env: { FERMATA_LIMITS_CONNECTIONS: '80' },
    attack: async (it) => held(await idleConnections(it.server, keyOf(it.ann), { count: 65 })),
    probe: async (it) => ok(await ask(it.server, 'GET', '/api/v1/session', { headers: it.bob })),
  },
  {
    pool: 'uploads',
    attack: (it) => take(100, 100, () => beginUpload(it)),
    probe: (it) => upload(it, it.bob),
  },
  {
    pool: 'exports',
    async prepare(it) {
      await said(it, it.ann, 'long');
      await said(it, it.bob, 'short');
      await it.offline(() => lengthen(it.home, 'long', 16, 1024 * 1024));
    },
    attack: (it) => take(50, 200, () => beginRead(it, '/threads/long/export')),
    probe: async (it) => {
      const answered = await ask(it.server, 'GET', `${AGENT}/threads/short/export`, { headers: it.bob });
      ok(answered);
      assert.match(answered.text, /hello/);
    },
  },
  {
    pool: 'streams',
    async prepare(it) {
      await said(it, it.ann, 'followed');
      await said(it, it.bob, 'read');
    },
    attack: (it) => take(2600, 200, () => beginRead(it, '/runs/followed/events')),
    async probe(it) {
      const events = await openEvents(OWN_END, it.server, 'read', { query: '?after=0', headers: it.bob });
      await events.run();
      events.close();
    },
  },
  {
    pool: 'sockets',
    attack: (it) => take(2600, 101, () => beginSocket(it)),
    probe: (it, n) => withSocket(it, (socket) => socket.done({ type: 'message', sessionId: `w${n}`, content: 'hello' })),
  },
  {
    pool: 'subscriptions',
    attack: subscribeAll,
    probe: (it) => withSocket(it, (socket) => socket.subscribe('read')),
  },
  {
    pool: 'waits',
    async prepare(it) {
      it.desk = bearer(await it.home.addKey('bob')); // who asks cannot answer with the same key
    },
    attack: waitAll,
    probe: askAndAnswer,
  },
  {
    pool: 'changes',
    probes: 50, // each waits behind some thousand of the other's
    async prepare(it) {
      it.door = new Door(join(it.home.data, 'hold'));
      await said(it, it.ann, 'mine');
      await it.offline(() => Object.assign(it.home.env, it.door.env));
    },
    attack: floodChanges,
    probe: async (it, n) => said(it, it.bob, `c${n}`),
  },
  {
    pool: 'runs',
    attack: (it) => take(10_050, 202, (n) => say(it, it.ann, `r${n}`, 'hold on')),
    probe: async (it, n) => said(it, it.bob, `run${n}`),
  },
  {
    pool: 'tickets',
    probes: 200, // each is a ticket, and a user has 1,000
    attack: (it) => take(5000, 201, () => ask(it.server, 'POST', '/api/v1/tickets', { headers: it.ann })),
    probe: async (it) => ok(await ask(it.server, 'POST', '/api/v1/tickets', { headers: it.bob }), 201),
  },
  {
    pool: 'storage',
    env: { FERMATA_LIMITS_STORAGE: '8MiB' },
    attack: (it) => take(100, 202, (n) => say(it, it.ann, `s${n}`, 'x'.repeat(512 * 1024))),
    probe: async (it, n) => said(it, it.bob, `b${n}`),
  },
  {
    pool: 'readers', // nothing to refuse: six searches at a time, each of which has to look at everything
    async prepare(it) {
      await said(it, it.ann, 'searched');
      await said(it, it.bob, 'read');
      await it.offline(() => lengthen(it.home, 'searched', it.long ? 480 : 64, 64 * 1024));
    },
    async attack(it) {
      const attack = openSearches(it.server, it.ann, { query: `${'0'.repeat(255)}1` });
      await until('one is answered', () => attack.answered > 0);
      return { refused: 0, release: () => attack.stop() };
    },
    probe: async (it) => ok(await ask(it.server, 'GET', `${AGENT}/history?threadId=read`, { headers: it.bob })),
  },
  {
    pool: 'deletion', // nothing to refuse: a long thread goes while the other writes
    async prepare(it) {
      await said(it, it.ann, 'huge');
      await it.offline(() => lengthen(it.home, 'huge', it.long ?? 20_000, 200));
    },
    async attack(it) {
      ok(await ask(it.server, 'DELETE', `${AGENT}/threads/huge`, { headers: it.ann }), 204);
      return { refused: 0, release: () => {} };
    },
    probe: async (it, n) => said(it, it.bob, `d${n}`),
  },
];

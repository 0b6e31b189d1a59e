// SPDX-License-Identifier: Apache-2.0
//
// What all users share, a row each: how one user takes as much of it as the server gives, and what another then asks
// for. For tests/fault/two-users.test.mjs, which looks whether the other is served, and bench/two-users.mjs, which
// looks how fast. To add a pool: a row.
//
//   prepare(it)   once, before anything is measured; may be absent
//   attack(it)    take it all: resolves when the server refuses more, with {refused, release}
//   probe(it, n)  one request of the other user; it must be answered well
//
// `it` is {server, home, ann, bob}: the headers of the attacker and of the other.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { request } from 'node:http';
import { connect } from 'node:net';
import { join } from 'node:path';

import { openSearches } from './attacks-search.mjs';
import { idleConnections, slowBodies, slowReaders } from './attacks.mjs';
import { until } from './kit.mjs';

export const AGENT = '/api/v1/agent';
const BOUNDARY = 'pools';

export async function ask(server, method, path, { headers = {}, json, body } = {}) {
  const response = await fetch(`${server.url}${path}`, {
    method, body: json === undefined ? body : JSON.stringify(json),
    headers: { ...headers, ...(json === undefined ? {} : { 'content-type': 'application/json' }) } });
  return { status: response.status, headers: response.headers, text: await response.text() };
}

const ok = ({ status, text }, expected = 200) => assert.equal(status, expected, text);

async function said(it, headers, threadId, content = 'hello') {
  ok(await ask(it.server, 'POST', `${AGENT}/runs`, { headers, json: { threadId, messages: [{ role: 'user', content }] } }), 202);
  for (;;) {
    const { text } = await ask(it.server, 'GET', `${AGENT}/runs/${threadId}`, { headers });
    if (JSON.parse(text).status === 'completed') return;
  }
}

const sqlite = (home, sql) => execFileSync('sqlite3', ['-cmd', '.timeout 20000', join(home.data, 'fermata.db')], { input: sql });

// Begins to send a file and does not end: the socket, and the status of a refusal if there is one.
function beginUpload(it) {
  return new Promise((done, failed) => {
    const socket = connect(it.server.port, it.server.host);
    let text = '';
    socket.on('error', failed);
    socket.on('data', (piece) => {
      text += piece;
      done({ socket, status: Number(text.split(' ')[1]) });
    });
    const fields = Object.entries(it.ann).map(([name, value]) => `${name}: ${value}\r\n`).join('');
    const head = `--${BOUNDARY}\r\nContent-Disposition: form-data; name="threadId"\r\n\r\nt\r\n--${BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\nbytes`;
    socket.write(`POST ${AGENT}/attachments HTTP/1.1\r\nHost: localhost\r\n${fields}Content-Type: multipart/form-data; boundary=${BOUNDARY}\r\nContent-Length: 1000000\r\nExpect: 100-continue\r\n\r\n`, () => socket.write(head));
  });
}

const holdUploads = async (it) => {
  const open = [];
  for (;;) {
    const upload = await beginUpload(it);
    open.push(upload.socket);
    assert.ok(open.length < 100, 'somebody is refused before');
    if (upload.status === 100) continue;
    return { refused: upload.status, release: () => open.forEach((socket) => socket.destroy()) };
  }
};

async function upload(it, headers) {
  const body = new FormData();
  body.set('threadId', 'files');
  body.set('file', new Blob(['words']), 'a.txt');
  ok(await ask(it.server, 'POST', `${AGENT}/attachments`, { headers, body }), 201);
}

function beginExport(it) {
  return new Promise((done, failed) => {
    const sent = request({ host: it.server.host, port: it.server.port, path: `${AGENT}/threads/long/export`, headers: it.ann, agent: false }, (response) => {
      response.pause();
      done({ status: response.statusCode, response });
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
    attack: holdUploads,
    probe: (it) => upload(it, it.bob),
  },
  {
    pool: 'exports',
    async prepare(it) {
      await said(it, it.ann, 'long');
      await said(it, it.bob, 'short');
      await it.offline(() => lengthen(it.home, 'long', 16, 1024 * 1024));
    },
    async attack(it) {
      const open = [];
      for (;;) {
        const one = await beginExport(it);
        open.push(one.response);
        assert.ok(open.length < 50, 'somebody is refused before');
        if (one.status !== 200) return { refused: one.status, release: () => open.forEach((response) => response.destroy()) };
      }
    },
    probe: async (it) => {
      const answered = await ask(it.server, 'GET', `${AGENT}/threads/short/export`, { headers: it.bob });
      ok(answered);
      assert.match(answered.text, /hello/);
    },
  },
  {
    pool: 'tickets',
    probes: 200, // each is a ticket, and a user has 1,000
    async attack(it) {
      for (let n = 0; ; n++) {
        const { status } = await ask(it.server, 'POST', '/api/v1/tickets', { headers: it.ann });
        assert.ok(n < 5000, 'somebody is refused before');
        if (status !== 201) return { refused: status, release: () => {} };
      }
    },
    probe: async (it) => ok(await ask(it.server, 'POST', '/api/v1/tickets', { headers: it.bob }), 201),
  },
  {
    pool: 'storage',
    env: { FERMATA_LIMITS_STORAGE: '8MiB' },
    async attack(it) {
      for (let n = 0; ; n++) {
        const { status } = await ask(it.server, 'POST', `${AGENT}/runs`, { headers: it.ann, json: { threadId: `s${n}`, messages: [{ role: 'user', content: 'x'.repeat(512 * 1024) }] } });
        assert.ok(n < 100, 'somebody is refused before');
        if (status !== 202) return { refused: status, release: () => {} };
      }
    },
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

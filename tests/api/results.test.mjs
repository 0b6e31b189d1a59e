// SPDX-License-Identifier: Apache-2.0
//
// The whole result of a tool, where an event has only a reference: from object storage, for its owner alone. That it is
// there as well while object storage is away is for tests/fault/blobs.test.mjs.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { access, readdir } from 'node:fs/promises';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';

import { rows, startAsking } from './asking.mjs';
import { assertProblem, bearer, call } from './home.mjs';
import { AGENT, get, history, talk, user, waitFor } from './talk.mjs';

const KIB = 1024;
// Below and above what an event holds, and what is kept in memory.
const SIZES = { small: 100, 'event-last': 64 * KIB, 'event-first': 64 * KIB + 1, large: 300 * KIB, 'row-last': 1024 * KIB, 'row-first': 1024 * KIB + 1, huge: 5 * 1024 * KIB };

// A JSON string of exactly so many bytes, some of them of longer characters.
function resultOf(size) {
  const text = '结果 😀 "x" \\ ';
  const wanted = JSON.stringify(text.repeat(Math.floor(size / 40)));
  return `${wanted.slice(0, -1)}${'x'.repeat(size - Buffer.byteLength(wanted))}"`;
}

// Where the objects of a message are.
const objectsOf = (id) => rows(home, `SELECT bucket, path FROM blobs WHERE message_id='${id}'`).map(({ bucket, path }) => join(home.data, 'blobs', bucket, path));

let home, server, tool, cleanUp, ann, bob;
before(async () => {
  tool = createServer((request, response) => {
    const pieces = [];
    request.on('data', (piece) => pieces.push(piece)).on('end', () => {
      const { name } = JSON.parse(Buffer.concat(pieces).toString());
      response.writeHead(200, { 'content-type': 'application/json' }).end(`{"content":"It is ${name}.","result":${resultOf(SIZES[name])}}`);
    });
  });
  tool.listen(0, '127.0.0.1');
  await once(tool, 'listening');
  home = await startAsking({ after: (fn) => { cleanUp = fn; } }, {
    lines: Object.keys(SIZES).map((name) => ({ match: `^${name}$`, turns: [{ calls: [{ name: 'fetch', args: { name } }] }, { text: 'Done.' }] })),
    config: `tools:\n  - http: {name: fetch, url: "http://127.0.0.1:${tool.address().port}/", effect: read, schema: {type: object, properties: {name: {type: string}}}}\n`,
  });
  server = home.server;
  ann = bearer(await home.addKey('ann'));
  bob = bearer(await home.addKey('bob'));
});
after(async () => {
  await cleanUp?.();
  tool.closeAllConnections();
  tool.close();
});

describe('a result', () => {
  for (const [name, size] of Object.entries(SIZES)) {
    test(`of ${size} bytes (${name})`, async (t) => {
      const threadId = `thread-${name}`;
      const { facts } = await talk(t, server, { threadId, runId: 'r', messages: [user(name, 'u')] }, ann);
      const { data } = facts.find(({ type }) => type === 'tool.call.result');
      const whole = resultOf(size);
      assert.equal(Buffer.byteLength(whole), size);
      const path = `${AGENT}/threads/${threadId}/messages/${data.messageId}/result`;
      if (size <= 64 * KIB) assert.equal(JSON.stringify(data.result), JSON.stringify(JSON.parse(whole)));
      else assert.deepEqual(data.result, { ref: path, size });
      const answer = await call(server, 'GET', path, { headers: ann });
      assert.equal(answer.status, 200, answer.text.slice(0, 200));
      assert.equal(answer.headers['content-type'], 'application/json');
      assert.ok(answer.text === whole, 'byte for byte');
      await waitFor('it is an object', () => {
        const [{ spool, result, waiting }] = rows(home, `SELECT spool, result, (SELECT sum(waiting) FROM blobs WHERE message_id=result_id) AS waiting
          FROM tool_calls WHERE result_id='${data.messageId}'`);
        return spool === '' && result === '' && waiting === 0;
      });
      const stored = objectsOf(data.messageId);
      assert.equal(stored.length, size > 1024 * KIB ? 2 : 1, 'a long one has an object of its own');
      for (const path of stored) await access(path);
      await waitFor('the file is gone', async () => (await readdir(join(home.data, 'spool'))).length === 0);
      assert.ok((await call(server, 'GET', path, { headers: ann })).text === whole, 'from there too');
      assertProblem(await call(server, 'GET', path, { headers: bob }), 404, 'not_found');
      const row = (await history(server, threadId, '', ann)).messages.find(({ role }) => role === 'tool');
      assert.deepEqual([row.id, row.content], [data.messageId, data.content]);
    });
  }

  test('is still there after a restart', async () => {
    await home.restart();
    server = home.server;
    for (const [name, size] of Object.entries(SIZES)) {
      const { messages } = await history(server, `thread-${name}`, '', ann);
      const answer = await get(server, `/threads/thread-${name}/messages/${messages.find(({ role }) => role === 'tool').id}/result`, ann);
      assert.ok(answer.text === resultOf(size), name);
    }
  });

  test('is not there for what is no tool\'s, or nobody\'s', async () => {
    const { messages } = await history(server, 'thread-small', '', ann);
    for (const id of [...messages.filter(({ role }) => role !== 'tool').map(({ id }) => id), 'none', '%20', '..']) {
      assertProblem(await get(server, `/threads/thread-small/messages/${id}/result`, ann), 404, 'not_found');
    }
    const { id } = messages.find(({ role }) => role === 'tool');
    assertProblem(await get(server, `/threads/thread-large/messages/${id}/result`, ann), 404, 'not_found');
    assertProblem(await get(server, `/threads/none/messages/${id}/result`, ann), 404, 'not_found');
  });

  test('goes with its thread', async () => {
    const idOf = async (name) => (await history(server, `thread-${name}`, '', ann)).messages.find(({ role }) => role === 'tool').id;
    const gone = objectsOf(await idOf('huge')), kept = objectsOf(await idOf('row-first'));
    assert.deepEqual([gone.length, kept.length], [2, 2]);
    assert.equal((await call(server, 'DELETE', `${AGENT}/threads/thread-huge`, { headers: ann })).status, 204);
    const left = (paths) => Promise.all(paths.map((path) => access(path).then(() => true, () => false)));
    await waitFor('they are gone', async () => !(await left(gone)).includes(true));
    assert.deepEqual(await left(kept), [true, true], 'those of another thread');
  });
});

// SPDX-License-Identifier: Apache-2.0
//
// Results that are larger than memory should be: a tool streams 50 MB, and what people, models and readers get of it
// stays small. So does the server, unless it is built with a sanitizer, whose own memory is not ours to bound.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { pipeline, Readable } from 'node:stream';
import { after, before, describe, test } from 'node:test';

import { rows, startAsking } from './asking.mjs';
import { call } from './home.mjs';
import { buildFolder } from './server.mjs';
import { accepted, AGENT, cancel, get, openEvents, talk, user, waitFor } from './talk.mjs';

const KIB = 1024;
const MIB = 1024 * KIB;
const SIZE = 50_000_000;
const ROW = '{"name":"结果 😀","text":"a \\"quoted\\" line\\n","n":[1,-2.5e3,true,null]},\n';
const LINE = 'Line of a log, "quoted", 结果 😀\twith a tab.\n';

// Pieces of about 64 KiB, until there are so many bytes.
function* repeated(text, bytes) {
  const unit = Buffer.from(text);
  const piece = Buffer.concat(Array(Math.ceil(64 * KIB / unit.length)).fill(unit));
  for (let sent = 0; sent < bytes; sent += piece.length) yield piece;
}

// What the tool answers, by name: the bytes, and those of them that are the result as they are to be kept.
const oneLine = (piece) => Buffer.from(piece.toString().replaceAll('\n', ' '));
const quoted = (piece) => Buffer.from(JSON.stringify(piece.toString()).slice(1, -1));
const ANSWERS = {
  small: { answer: function* () { yield '{"result":1}'; } },
  envelope: {
    answer: function* () {
      yield '{"content":"It is large.",\n"ui_hints":{"type":"none"},\n"result":[\n';
      yield* repeated(ROW, SIZE);
      yield '0]}\n';
    },
    result: function* () {
      yield '[ ';
      for (const piece of repeated(ROW, SIZE)) yield oneLine(piece);
      yield '0]';
    },
  },
  text: {
    answer: function* () {
      yield* repeated(LINE, 20 * MIB);
      yield 'end';
    },
    result: function* () {
      yield '"';
      for (const piece of repeated(LINE, 20 * MIB)) yield quoted(piece);
      yield 'end"';
    },
  },
  bytes: { answer: () => repeated([0xff, 0xfe, 0, 1], 10 * MIB) },
  endless: { answer: () => repeated(ROW, Infinity) },
};

function digest(pieces) {
  const hash = createHash('sha256');
  let size = 0;
  for (const piece of pieces) {
    hash.update(piece);
    size += Buffer.byteLength(piece);
  }
  return { hash: hash.digest('hex'), size };
}

const memory = async (pid) => {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  const kib = (name) => Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(status)[1]);
  return { now: kib('VmRSS') * KIB, peak: kib('VmHWM') * KIB };
};

const cut = []; // answers whose reader went
let home, server, tool, cleanUp, sanitized;
before(async () => {
  const program = await readFile(join(buildFolder(), 'fermata'));
  sanitized = ['__asan_init', '__tsan_init', '__ubsan_handle'].some((name) => program.includes(name));
  tool = createServer((request, response) => {
    const pieces = [];
    request.on('data', (piece) => pieces.push(piece)).on('end', () => {
      const { name } = JSON.parse(Buffer.concat(pieces).toString());
      response.writeHead(200, { 'content-type': 'application/json' });
      pipeline(Readable.from(ANSWERS[name].answer()), response, (error) => { if (error) cut.push(name); });
    });
  });
  tool.listen(0, '127.0.0.1');
  await once(tool, 'listening');
  const fetches = (...names) => ({ turns: [{ calls: names.map((name) => ({ name: 'fetch', args: { name } })) }, { text: 'Done.' }] });
  home = await startAsking({ after: (fn) => { cleanUp = fn; } }, {
    lines: [
      ...Object.keys(ANSWERS).map((name) => ({ match: `^${name}$`, ...fetches(name) })),
      { match: '^four$', ...fetches('envelope', 'envelope', 'envelope', 'envelope') },
    ],
    config: `tools:\n  - http: {name: fetch, url: "http://127.0.0.1:${tool.address().port}/", effect: read, schema: {type: object, properties: {name: {type: string}}}}\n`,
  });
  server = home.server;
});
after(async () => {
  await cleanUp?.();
  tool.closeAllConnections();
  tool.close();
});

const spooled = async () => (await readdir(join(home.data, 'spool'))).length;

// One run; what its peak of memory was above what the server held before it.
async function measured(t, threadId, text) {
  await writeFile(`/proc/${server.pid}/clear_refs`, '5'); // the peak begins anew
  const { now } = await memory(server.pid);
  const { facts } = await talk(t, server, { threadId, runId: 'r', messages: [user(text, 'u')] });
  const { peak } = await memory(server.pid);
  const results = facts.filter(({ type }) => type === 'tool.call.result');
  return { results, above: peak - now };
}

const mib = (bytes) => `${(bytes / MIB).toFixed(1)} MiB`;

describe('a tool that streams', () => {
  before(async () => {
    await talk({ after: () => {} }, server, { threadId: 'warm', runId: 'r', messages: [user('small', 'u')] });
  });

  test('50 MB: row, event and memory stay small', async (t) => {
    const wanted = digest(ANSWERS.envelope.result());
    assert.ok(wanted.size >= SIZE);
    const { results: [event], above } = await measured(t, 'large', 'envelope');
    t.diagnostic(`peak above idle: ${mib(above)}${sanitized ? ', with a sanitizer' : ''}`);
    if (!sanitized) assert.ok(above < 16 * MIB, mib(above));
    assert.ok(JSON.stringify(event).length < 64 * KIB, 'the event');
    assert.equal(event.data.error, undefined);
    assert.equal(event.data.result.size, wanted.size);

    const { messageId } = event.data;
    const [message] = rows(home, `SELECT * FROM messages WHERE id='${messageId}'`);
    const bytes = Object.values(message).reduce((sum, value) => sum + Buffer.byteLength(String(value ?? '')), 0);
    assert.ok(bytes < 8 * KIB, `the row has ${bytes} bytes`);
    const [row] = rows(home, `SELECT content, length(CAST(result AS BLOB)) AS result, result_bytes, length(CAST(model_text AS BLOB)) AS model, model_text FROM tool_calls WHERE result_id='${messageId}'`);
    assert.deepEqual([row.content, row.result, row.result_bytes], ['It is large.', 0, wanted.size]);
    assert.ok(row.model <= 32 * KIB && row.model > 31 * KIB);
    assert.ok(/^It is large\.\n\[ \{.*\n\[\.\.\. \d+ bytes left out \.\.\.\]\n.*0\]$/s.test(row.model_text), row.model_text.slice(0, 100));

    const answer = await call(server, 'GET', `${AGENT}/threads/large/messages/${messageId}/result`);
    assert.equal(answer.status, 200);
    assert.deepEqual(digest([answer.text]), wanted, 'byte for byte');
  });

  test('20 MiB of text: kept as a string', async (t) => {
    const wanted = digest(ANSWERS.text.result());
    const { results: [event], above } = await measured(t, 'text', 'text');
    t.diagnostic(`peak above idle: ${mib(above)}`);
    if (!sanitized) assert.ok(above < 16 * MIB, mib(above));
    const answer = await call(server, 'GET', `${AGENT}/threads/text/messages/${event.data.messageId}/result`);
    assert.deepEqual(digest([answer.text]), wanted);
  });

  test('bytes that are neither: said, and not kept', async (t) => {
    const { results: [event] } = await measured(t, 'bytes', 'bytes');
    const [row] = rows(home, `SELECT content, spool, result_bytes FROM tool_calls WHERE result_id='${event.data.messageId}'`);
    assert.match(row.content, /\d{8} (字节|bytes)/);
    assert.deepEqual([row.spool, row.result_bytes], ['', 0]);
  });

  test('four times 50 MB at once', async (t) => {
    const { results, above } = await measured(t, 'four', 'four');
    t.diagnostic(`peak above idle of four: ${mib(above)}${sanitized ? ', with a sanitizer' : ''}`);
    assert.equal(results.length, 4);
    const { size } = digest(ANSWERS.envelope.result());
    for (const { data } of results) assert.equal(data.result.size, size);
    if (!sanitized) assert.ok(above < 4 * 16 * MIB, mib(above));
  });

  test('without an end: stopped by the person, and nothing stays', async (t) => {
    const before = await spooled();
    await accepted(server, { threadId: 'endless', runId: 'r', messages: [user('endless', 'u')] });
    const events = await openEvents(t, server, 'endless', { query: '?after=0' });
    await waitFor('a file that grows', async () => await spooled() > before);
    await cancel(server, 'endless', {});
    await events.run('r');
    await waitFor('the file to go', async () => await spooled() === before);
    await waitFor('the tool to be left alone', async () => cut.length > 0);
    assert.deepEqual(cut, ['endless']);
    assert.equal((await get(server, '/runs/endless')).json().status, 'cancelled');
  });
});

// SPDX-License-Identifier: Apache-2.0
//
// One log, three encodings: an event is encoded once for each dialect that somebody reads, for however many readers. /metrics
// counts: an event of the native dialect and a text of the WebSocket for each that a reader gets, in AG-UI a fact or preview,
// which may be several frames or none.

import assert from 'node:assert/strict';
import { request } from 'node:http';
import { after, before, describe, test } from 'node:test';

import { call } from './home.mjs';
import { Socket } from './socket.mjs';
import { accepted, AGENT, endOf, openEvents, startTalk, typesOf, user, waitFor } from './talk.mjs';

const FEW = 2, MANY = 20;
const DIALECTS = ['native', 'ag-ui', 'websocket'];
const LINES = [
  { match: '^think', turns: [{ reasoning: 'Let me see. '.repeat(5), text: 'So be it. '.repeat(20), chunk: 4 }] },
  { match: '^look', turns: [{ text: 'I look. '.repeat(5), chunk: 4, calls: [{ name: 'calendar_read', args: { from: '2030-01-28T00:00:00Z', to: '2030-02-03T00:00:00Z' } }] },
    { text: 'Nothing there.', chunk: 4 }] },
  { match: '^ask', turns: [{ text: 'First a question.', chunk: 4, calls: [{ name: 'ask_user', args: { question: 'Which room?', choices: ['Red', 'Blue'] } }] }] },
  { match: '^broken', turns: [{ text: 'In the end it works. '.repeat(5), chunk: 4, fail: { at: 40, times: 1 } }] },
  { turns: [{ text: 'Hello.' }] },
];

let server;
const cleanUp = [];
before(async () => { ({ server } = await startTalk({ after: (fn) => cleanUp.unshift(fn) }, LINES)); });
after(async () => {
  for (const fn of cleanUp) await fn();
});

async function encoded() {
  const { text } = await call(server, 'GET', '/metrics');
  return Object.fromEntries(DIALECTS.map((dialect) => [dialect, Number(new RegExp(`^fermata_events_encoded_total\\{dialect="${dialect}"\\} (\\d+)$`, 'm').exec(text)[1])]));
}

// Reads AG-UI by GET, leg after leg: how many have ended.
async function follow(t, threadId, version) {
  const reader = { ended: 0 };
  const path = `${AGENT}/runs/${threadId}/events?format=ag-ui${version ? `&protocolVersion=${version}` : ''}`;
  const response = await new Promise((done, failed) => {
    request({ host: server.host, port: server.port, path, agent: false }, done).on('error', failed).end();
  });
  assert.equal(response.statusCode, 200);
  let rest = '';
  response.setEncoding('utf8').on('error', () => {}).on('data', (text) => {
    const frames = (rest + text).split('\n\n');
    rest = frames.pop();
    for (const frame of frames) if (/^data: \{"type":"RUN_(FINISHED|ERROR)"/.test(frame)) reader.ended++;
  });
  t.after(() => response.destroy());
  return reader;
}

// `count` readers of each dialect, who have all seen a run of the thread from its start and follow now.
async function gather(t, threadId, count, { native = count, agui = count, websocket = count, versions = [undefined] } = {}) {
  const readers = { native: [], agui: [], websocket: [] };
  for (let i = 0; i < native; i++) readers.native.push(await openEvents(t, server, threadId));
  for (let i = 0; i < agui * versions.length; i++) readers.agui.push(await follow(t, threadId, versions[i % versions.length]));
  for (let i = 0; i < websocket; i++) {
    const socket = await Socket.open(t, server);
    await socket.subscribe(threadId, { events: ['native', 'clarify', 'ask-user'] });
    readers.websocket.push(socket);
  }
  await through(readers, threadId, 'hello');
  return readers;
}

// One run to its end, for everybody: the types that each native and each WebSocket reader got of it.
async function through(readers, threadId, text) {
  const ended = readers.agui.map((reader) => reader.ended);
  const { runId } = await accepted(server, { threadId, messages: [user(text)] });
  const events = await Promise.all(readers.native.map((reader) => reader.until(endOf(runId))));
  const last = ({ type, data }) => type === 'ai-chat-complete' && data.conversationId === threadId;
  const texts = await Promise.all(readers.websocket.map((socket) => socket.until(last)));
  await waitFor('the end of the leg by AG-UI', () => readers.agui.every((reader, i) => reader.ended > ended[i]));
  return { events: events.map(typesOf), texts: texts.map(typesOf) };
}

// How often each dialect encoded something in the run; and how much a reader got, which is the same for each.
async function measured(readers, threadId, text) {
  const first = await encoded();
  const { events, texts } = await through(readers, threadId, text);
  const then = await encoded();
  for (const [one, ...others] of [events, texts]) for (const other of others) assert.deepEqual(other, one);
  const got = { events: events[0]?.length, texts: texts[0]?.length };
  return { got, encodings: Object.fromEntries(DIALECTS.map((dialect) => [dialect, then[dialect] - first[dialect]])) };
}

describe('encodings', () => {
  for (const text of ['think', 'look', 'ask']) {
    test(`${text}: once for ${FEW} readers, once for ${MANY}`, async (t) => {
      const seen = [];
      for (const count of [FEW, MANY]) {
        const threadId = `${text}-${count}`;
        const { got, encodings } = await measured(await gather(t, threadId, count), threadId, text);
        assert.deepEqual(encodings, { native: got.events, 'ag-ui': got.events, websocket: got.texts }, `${count} readers`);
        assert.ok(got.events > 10);
        seen.push(encodings);
      }
      assert.deepEqual(seen[0], seen[1]);
    });
  }

  test('an attempt that breaks off, too', async (t) => {
    const readers = await gather(t, 'broken', MANY);
    const { got, encodings } = await measured(readers, 'broken', 'broken');
    assert.deepEqual(encodings, { native: got.events, 'ag-ui': got.events, websocket: got.texts });
  });

  test('both kinds of AG-UI clients: once for each', async (t) => {
    const readers = await gather(t, 'kinds', FEW, { versions: [undefined, '1.0'] });
    const { got, encodings } = await measured(readers, 'kinds', 'think');
    assert.deepEqual(encodings, { native: got.events, 'ag-ui': 2 * got.events, websocket: got.texts });
  });

  for (const [only, counts] of Object.entries({ native: { agui: 0, websocket: 0 }, 'ag-ui': { native: 0, websocket: 0 }, websocket: { native: 0, agui: 0 } })) {
    test(`a dialect that nobody reads is not encoded: only ${only}`, async (t) => {
      const readers = await gather(t, `only-${only}`, FEW, counts);
      const { encodings } = await measured(readers, `only-${only}`, 'think');
      assert.deepEqual(DIALECTS.filter((dialect) => encodings[dialect] > 0), [only]);
    });
  }

  test('readers that come late are caught up by themselves, and nothing is encoded for all', async (t) => {
    const threadId = `think-${FEW}`;
    const first = await encoded();
    for (let i = 0; i < MANY; i++) {
      const reader = await openEvents(t, server, threadId, { query: '?after=0' });
      await reader.run();
      reader.close();
    }
    assert.deepEqual(await encoded(), first);
  });
});

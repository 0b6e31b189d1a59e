// SPDX-License-Identifier: Apache-2.0
//
// What events only point at: a card over 48 KiB and a result over 64 KiB, each at its own address. The edges, the kinds of
// messages that have a card, who may read it, and what rows and events weigh when a result is large.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { after, before, describe, test } from 'node:test';

import { rows, startAsking, waiting } from './asking.mjs';
import { assertProblem, bearer, call } from './home.mjs';
import { cut, parts } from './raw-json.mjs';
import { AGENT, get, talk, user, waitFor } from './talk.mjs';

const KIB = 1024, MIB = 1024 * KIB;
const CARD_FACT_MAX = 48 * KIB, EVENT_MAX = 64 * KIB, ROW_MAX = 8 * KIB;
const GONE = /gone, damaged or cannot be read now/;

const hintsOf = (bytes) => ({ version: '2.1', intent: 'message', status: 'info', title: '卡片', body: 'x'.repeat(bytes) });
const large = () => `[${Array.from({ length: 2 * MIB / 64 }, (_, i) => `{"row":${i},"text":"${'结果 of a row '.repeat(3)}"}`).join(',')}]`;

let home, server, tool, cleanUp, ann, bob;
let sizes; // of a body, by word: what fills an event, and one byte more
before(async () => {
  tool = createServer(async (sent, response) => {
    const pieces = [];
    for await (const piece of sent) pieces.push(piece);
    const { size } = JSON.parse(Buffer.concat(pieces).toString());
    const members = { none: ['"result":1'], large: ['"content":"It is large."', `"result":${large()}`, `"ui_hints":${JSON.stringify(hintsOf(1000))}`] };
    const body = members[size] ?? ['"result":1', `"ui_hints":${JSON.stringify(hintsOf(size))}`];
    response.writeHead(200, { 'content-type': 'application/json' }).end(`{${body.join(',')}}`);
  });
  tool.listen(0, '127.0.0.1');
  await once(tool, 'listening');
  const http = (name, effect) => `  - http: ${JSON.stringify({ name, effect, url: `http://127.0.0.1:${tool.address().port}/`, schema: { type: 'object' } })}\n`;
  const look = (size) => ({ match: `^look ${size}$`, turns: [{ calls: [{ name: 'look', args: { size } }] }, { text: 'Done.' }] });
  const show = (size) => ({ match: `^show ${size}$`, turns: [{ text: 'See:', calls: [{ name: 'show_card', args: hintsOf(size) }] }] });
  const lines = (list) => [...list.flatMap((size) => [look(size), show(size)]), look('none'), look('large'),
    { match: '^ask$', turns: [{ calls: [{ name: 'ask_user', args: { question: 'Which?', choices: ['One', 'Two'] } }] }, { text: 'Done.' }] },
    { match: '^long$', turns: [{ calls: [{ name: 'change', args: { size: 100, text: 'x'.repeat(60 * KIB) } }] }, { text: 'Done.' }] },
    { turns: [{ text: 'Hello.' }] }];
  home = await startAsking({ after: (fn) => { cleanUp = fn; } }, { lines: lines([100]), config: `tools:\n${http('look', 'read')}${http('change', 'write')}` });
  ann = bearer(await home.addKey('ann'));
  bob = bearer(await home.addKey('bob'));

  // How much of a card is not its body, which is the same for all of a kind. The script that knows comes after it.
  server = home.server;
  const frame = async (word, type) => {
    const { facts } = await talk({ after: (fn) => after(fn) }, server, { threadId: `frame-${word}`, runId: 'r', messages: [user(`${word} 100`, 'u')] }, ann);
    return Buffer.byteLength(JSON.stringify(facts.find((fact) => fact.type === type && fact.data.ui).data.ui)) - 100;
  };
  const frames = { look: await frame('look', 'tool.call.result'), show: await frame('show', 'text.message.end') };
  sizes = Object.fromEntries(Object.entries(frames).map(([word, bytes]) => [word, [CARD_FACT_MAX - bytes, CARD_FACT_MAX - bytes + 1]]));
  await home.stop();
  await writeFile(home.env.FERMATA_SCRIPT, lines([100, ...sizes.look, ...sizes.show]).map((line) => `${JSON.stringify(line)}\n`).join(''));
  server = await home.start();
});
after(async () => {
  await cleanUp?.();
  tool.closeAllConnections();
  tool.close();
});

let count = 0;
const say = (t, text) => talk(t, server, { threadId: `t${++count}`, runId: 'r', messages: [user(text, 'u')] }, ann);
const uiOf = (threadId, id, headers = ann) => get(server, `/threads/${threadId}/messages/${id}/ui`, headers);

// The row as it stands, once nothing of it is on its way.
const rowOf = (threadId, id) => waitFor('it is stored', async () => {
  const { text } = await get(server, `/runs/${threadId}/history`, ann);
  const row = parts(cut(text, 'messages')).map(([, raw]) => raw).find((raw) => JSON.parse(cut(raw, 'id')) === id);
  return !row.includes('"storage_missing"') && row;
});

async function assertOwn(threadId, id, card) {
  const mine = await uiOf(threadId, id);
  assert.deepEqual([mine.status, mine.headers['content-type'], mine.text === card], [200, 'application/json', true]);
  const his = await uiOf(threadId, id, bob), none = await uiOf(threadId, 'none', bob);
  assertProblem(his, 404, 'not_found');
  assert.equal(his.text, none.text, 'as for what was never there');
  assertProblem(await uiOf('frame-look', id), 404, 'not_found');
}

describe('a card', () => {
  for (const [word, type] of [['look', 'tool.call.result'], ['show', 'text.message.end']]) {
    for (const [i, where] of ['that just fits stands in the event', 'of one more byte is pointed at'].entries()) {
      test(`${word}: ${where}`, async (t) => {
        const { start: { threadId }, facts } = await say(t, `${word} ${sizes[word][i]}`);
        const { data } = facts.find((fact) => fact.type === type);
        const output = data.toolAgentOutput ?? data.workerAgentOutput;
        const card = cut(await rowOf(threadId, data.messageId), 'uiSchema');
        assert.equal(Buffer.byteLength(card), CARD_FACT_MAX + i);
        if (i === 0) {
          assert.equal(JSON.stringify(data.ui), card);
          assert.deepEqual([data.uiRef, output.ui_hints], [undefined, hintsOf(sizes[word][0])]);
        } else {
          assert.deepEqual([data.ui, output.ui_hints], [undefined, undefined], 'neither it nor what it was made from');
          assert.equal(data.uiRef, `${AGENT}/threads/${threadId}/messages/${data.messageId}/ui`);
          assert.ok(Buffer.byteLength(JSON.stringify(data)) < 2 * KIB);
        }
        await assertOwn(threadId, data.messageId, card);
      });
    }
  }

  test('of a question has its address too, and needs none', async () => {
    const { threadId, open: [asked] } = await waiting(server, 'ask', { headers: ann });
    const card = cut(await rowOf(threadId, asked.interactionId), 'uiSchema');
    assert.equal(JSON.stringify(asked.ui), card);
    await assertOwn(threadId, asked.interactionId, card);
  });

  test('of a long approval is pointed at', async (t) => {
    const { start: { threadId }, facts } = await say(t, 'long');
    const { data } = facts.find(({ type }) => type === 'interaction.request');
    assert.deepEqual([data.ui, data.uiRef], [undefined, `${AGENT}/threads/${threadId}/messages/${data.interactionId}/ui`]);
    const card = cut(await rowOf(threadId, data.interactionId), 'uiSchema');
    assert.ok(Buffer.byteLength(card) > CARD_FACT_MAX);
    await assertOwn(threadId, data.interactionId, card);
  });

  test('is not there for what has none: nothing is said to be lost', async (t) => {
    const { start: { threadId }, facts } = await say(t, 'look none');
    const { messageId } = facts.find(({ type }) => type === 'tool.call.result').data;
    await rowOf(threadId, messageId);
    const answer = facts.filter(({ type }) => type === 'text.message.end').at(-1).data.messageId;
    for (const id of [messageId, answer, 'u', 'none', '%20', '..']) {
      const none = await uiOf(threadId, id);
      assertProblem(none, 404, 'not_found');
      assert.doesNotMatch(none.json().detail, GONE, id);
    }
    assertProblem(await uiOf('never', messageId), 404, 'not_found');
    for (const method of ['POST', 'PUT', 'DELETE']) {
      const refused = await call(server, method, `${AGENT}/threads/${threadId}/messages/${messageId}/ui`, { headers: ann });
      assertProblem(refused, 405, 'method_not_allowed');
    }
  });

  test('is gone with its thread', async (t) => {
    const { start: { threadId }, facts } = await say(t, `look ${sizes.look[1]}`);
    const { uiRef } = facts.find(({ type }) => type === 'tool.call.result').data;
    await waitFor('it is stored', async () => (await call(server, 'GET', uiRef, { headers: ann })).status === 200);
    assert.equal((await call(server, 'DELETE', `${AGENT}/threads/${threadId}`, { headers: ann })).status, 204);
    assertProblem(await call(server, 'GET', uiRef, { headers: ann }), 404, 'not_found');
  });
});

test('a result of 2 MiB leaves a small event and a small row, and is there whole', async (t) => {
  const { start: { threadId }, facts } = await say(t, 'look large');
  const event = facts.find(({ type }) => type === 'tool.call.result'), { data } = event;
  assert.ok(Buffer.byteLength(JSON.stringify(event)) < EVENT_MAX);
  const whole = large();
  assert.ok(Buffer.byteLength(whole) >= 2 * MIB);
  assert.deepEqual(data.result, { ref: `${AGENT}/threads/${threadId}/messages/${data.messageId}/result`, size: Buffer.byteLength(whole) });
  await rowOf(threadId, data.messageId);
  const [row] = rows(home, `SELECT * FROM messages WHERE id='${data.messageId}'`);
  const bytes = Object.values(row).reduce((sum, value) => sum + Buffer.byteLength(String(value ?? '')), 0);
  assert.ok(bytes < ROW_MAX, `the row has ${bytes} bytes`);
  const [stored] = rows(home, `SELECT * FROM tool_calls WHERE result_id='${data.messageId}'`);
  assert.deepEqual([stored.result, stored.spool], ['', '']);
  const answer = await call(server, 'GET', data.result.ref, { headers: ann });
  assert.deepEqual([answer.status, answer.headers['content-length']], [200, String(Buffer.byteLength(whole))]);
  assert.ok(answer.text === whole, 'byte for byte');
});

// SPDX-License-Identifier: Apache-2.0
//
// Frames of a WebSocket client, one kind after the other: what is done, what the ack says, and how it is refused. What
// a frame does is what its route does, so the rules are tested where the routes are; here it is seen that they hold.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, describe, test } from 'node:test';

import { WebSocket } from 'ws';

import { audit, interaction, REFUSED, startAsking, until, waiting } from './asking.mjs';
import { bearer, call } from './home.mjs';
import { frame, Frames, Socket, WS } from './socket.mjs';
import { AGENT, history, isEnd, runOf, startTalk, typesOf, waitFor } from './talk.mjs';

let home, server;
const cleanUp = [];
before(async () => {
  home = await startAsking({ after: (fn) => cleanUp.unshift(fn) });
  server = home.server;
});
after(async () => {
  for (const fn of cleanUp) await fn();
});

const NOBODYS = 'int_00000000000000000000000000';
const nextOf = (socket, type) => socket.one((message) => message.type === type);

describe('ping', () => {
  test('pong, with the id as it was written', async (t) => {
    const socket = await Socket.open(t, server);
    await socket.write('{"type":"ping"}');
    assert.deepEqual(await socket.next(), { type: 'pong' });
    for (const id of ['"a"', '""', '7', '-1.50e3', '12345678901234567890', '"\\u4f60 \\n"', '"你好"']) {
      await socket.write(`{"type":"ping","id":${id}}`);
      assert.deepEqual(await socket.next(), { type: 'pong', id: JSON.parse(id) });
    }
  });

  test('the id is echoed byte for byte', async (t) => {
    const { frames } = await Frames.open(t, server);
    for (const id of ['12345678901234567890', '1.0', '-0', '"\\u0041"', '"/"', '"\\/"']) {
      await frames.write(frame(`{"id": ${id} ,"type":"ping"}`));
      assert.equal((await frames.next()).payload.toString(), `{"type":"pong","id":${id}}`);
    }
  });
});

describe('message', () => {
  test('is POST /runs: the ack is its 202, the run its run', async (t) => {
    const socket = await Socket.open(t, server);
    const data = await socket.done({ type: 'message', sessionId: 'm1', runId: 'r1', messageId: 'u1', content: 'hello' });
    assert.deepEqual(Object.keys(data), ['taskId', 'threadId', 'runId', 'created', 'seq', 'eventsUrl']);
    assert.deepEqual([data.threadId, data.runId, data.created, data.seq], ['m1', 'r1', true, 0]);
    await until(server, 'm1', 'completed');
    const { messages } = await history(server, 'm1');
    assert.deepEqual(messages.map(({ role, content }) => [role, content]), [['user', 'hello'], ['assistant', 'Hello.']]);
    assert.equal(messages[0].id, 'u1');
  });

  test('the same runId again: the same ack, no second run; another content: refused', async (t) => {
    const socket = await Socket.open(t, server);
    const say = (content) => ({ type: 'message', sessionId: 'm2', runId: 'r1', content });
    const first = await socket.done(say('hello'));
    assert.deepEqual(await socket.done(say('hello')), first);
    await socket.refused(say('other'), 'idempotency_mismatch', 'runId');
    await until(server, 'm2', 'completed');
    assert.equal((await history(server, 'm2')).messages.length, 2);
  });

  test('parts: words and one of our own attachments', async (t) => {
    const form = new FormData();
    form.append('threadId', 'm3');
    form.append('file', new Blob(['hello'], { type: 'text/plain' }), 'a.txt');
    const sent = await fetch(`${server.url}${AGENT}/attachments`, { method: 'POST', body: form });
    const { attachment } = await sent.json();
    const socket = await Socket.open(t, server);
    const parts = (url) => [{ type: 'text', text: 'look' }, { type: 'binary', mimeType: 'text/plain', url, filename: 'a.txt' }];
    await socket.done({ type: 'message', sessionId: 'm3', content: parts(`${server.url}${attachment.url}`) });
    await until(server, 'm3', 'completed');
    const { messages } = await history(server, 'm3');
    assert.deepEqual(messages[0].attachments.map(({ id }) => id), [attachment.id], 'known by our own name');
  });

  test('a field that the route refuses is named as the frame has it', async (t) => {
    const socket = await Socket.open(t, server);
    const say = (content) => ({ type: 'message', sessionId: 'm4', content });
    await socket.refused(say(' '), 'invalid_field', 'content');
    await socket.refused(say([]), 'invalid_field', 'content');
    await socket.refused(say([{ type: 'text', text: 'a' }, { type: 'approval' }]), 'invalid_field', 'content[1]');
    assert.equal((await call(server, 'GET', `${AGENT}/threads/m4`)).status, 404, 'nothing was made');
  });

  test('on a thread that waits it answers, as everywhere', async (t) => {
    const { threadId, open: [asked] } = await waiting(server, 'choose');
    const socket = await Socket.open(t, server);
    const data = await socket.done({ type: 'message', sessionId: threadId, content: '2' });
    assert.deepEqual(data.answered, [asked.interactionId]);
    assert.equal((await interaction(server, asked.interactionId)).via, 'message');
    await until(server, threadId, 'completed');
  });

  test('two open questions: ambiguous, with both', async (t) => {
    const { threadId, open } = await waiting(server, 'two');
    const socket = await Socket.open(t, server);
    const { interactions } = await socket.refused({ type: 'message', sessionId: threadId, content: 'hm' }, 'ambiguous');
    assert.deepEqual(interactions.map(({ interactionId }) => interactionId), open.map(({ interactionId }) => interactionId));
  });

  test('without an id: no ack, and it happens', async (t) => {
    const socket = await Socket.open(t, server);
    await socket.send({ type: 'message', sessionId: 'm5', content: 'hello' });
    await socket.ask({ type: 'ping' });
    await until(server, 'm5', 'completed');
    assert.deepEqual(typesOf(socket.all), ['pong']);
  });
});

describe('clarify_response', () => {
  for (const [name, says, answer, text] of [
    ['by interactionId', ({ interactionId: requestId }, sessionId) => ({ sessionId, requestId, answer: '1 hour' }), { answer: '1 hour' }, '1 hour'],
    ['by toolCallId', ({ toolCallId: requestId }, sessionId) => ({ sessionId, requestId, answer: 'an eternity' }), { answer: 'an eternity' }, 'an eternity'],
    ['the only open one', (_, sessionId) => ({ sessionId, answer: '30 minutes' }), { answer: '30 minutes' }, '30 minutes'],
    ['without its session', ({ interactionId: requestId }) => ({ requestId, answer: '30 minutes' }), { answer: '30 minutes' }, '30 minutes'],
    ['with the body of POST answer', ({ interactionId: requestId }, sessionId) => ({ sessionId, requestId, answer: { choices: ['c2'], text: 'sharp' } }),
      { choices: ['c2'], text: 'sharp' }, '1 hour: sharp'],
    ['skipped', ({ interactionId: requestId }, sessionId) => ({ sessionId, requestId, answer: { skip: true } }), { skip: true }, 'The user skipped this question'],
  ]) {
    test(name, async (t) => {
      const { threadId, open: [asked] } = await waiting(server, 'choose');
      const socket = await Socket.open(t, server);
      await socket.subscribe(threadId);
      const taken = await socket.done({ type: 'clarify_response', ...says(asked, threadId) });
      assert.deepEqual([taken.interactionId, taken.status, taken.answer, taken.via], [asked.interactionId, 'resolved', answer, 'websocket']);
      const resolved = await nextOf(socket, 'interaction.resolved');
      assert.deepEqual([resolved.data.text, resolved.data.via, resolved.data.answeredBy], [text, 'websocket', 'local']);
      await until(server, threadId, 'completed');
    });
  }

  test('refusals: settled, blank, several, none, of another session', async (t) => {
    const { threadId, open: [asked] } = await waiting(server, 'strict');
    const other = await waiting(server, 'choose');
    const socket = await Socket.open(t, server);
    const say = (requestId, answer, sessionId = threadId) => ({ type: 'clarify_response', sessionId, requestId, answer });
    await socket.refused(say(asked.interactionId, ' '), 'invalid_field', 'answer');
    await socket.refused(say(asked.interactionId, 'Green'), 'invalid_field', 'answer');
    await socket.refused(say(asked.interactionId, 'Red', other.threadId), 'not_found');
    await socket.refused(say(asked.toolCallId, 'Red', other.threadId), 'not_found');
    await socket.refused(say(asked.interactionId, 'Red', 'nowhere'), 'not_found');
    await socket.refused(say(NOBODYS, 'Red'), 'not_found');
    assert.equal((await interaction(server, asked.interactionId)).status, 'open');
    await socket.done(say(asked.interactionId, 'Red'));
    for (const id of [asked.interactionId, asked.toolCallId]) {
      const problem = await socket.refused(say(id, 'Blue'), 'already_resolved');
      assert.deepEqual([problem.interaction.interactionId, problem.interaction.answer], [asked.interactionId, { answer: 'Red' }]);
    }
    await socket.refused({ type: 'clarify_response', sessionId: threadId, answer: 'x' }, 'not_found');
    const { threadId: two, open } = await waiting(server, 'two');
    const { interactions } = await socket.refused({ type: 'clarify_response', sessionId: two, answer: 'x' }, 'ambiguous');
    assert.equal(interactions.length, open.length);
  });

  test('never decides about a call', async (t) => {
    const { threadId, open: [asked] } = await waiting(server, 'book');
    const socket = await Socket.open(t, server);
    const say = (answer) => ({ type: 'clarify_response', sessionId: threadId, requestId: asked.interactionId, answer });
    await socket.refused(say({ decision: 'approve' }), 'invalid_field', 'answer.decision');
    await socket.refused(say('approve'), 'invalid_field', 'answer');
    assert.equal((await interaction(server, asked.interactionId)).status, 'open');
    assert.deepEqual(audit(home, threadId, REFUSED).map(({ why, via }) => [why, via]), [['wrong_type', 'websocket']]);
  });
});

describe('confirm_response', () => {
  test('approve with the binding; then it is settled', async (t) => {
    const { threadId, open: [asked] } = await waiting(server, 'book');
    const socket = await Socket.open(t, server);
    const say = (more) => ({ type: 'confirm_response', sessionId: threadId, requestId: asked.interactionId, ...more });
    const wrong = await socket.refused(say({ decision: 'approve', binding: `${asked.binding}x` }), 'binding_mismatch', 'binding');
    assert.equal(wrong.interaction.status, 'open');
    await socket.refused(say({ decision: 'approve', more: 1 }), 'invalid_field', 'more');
    await socket.refused(say({}), 'invalid_field', 'decision');
    const taken = await socket.done(say({ decision: 'approve', binding: asked.binding }));
    assert.deepEqual([taken.status, taken.answer, taken.via], ['resolved', { decision: 'approve' }, 'websocket']);
    await until(server, threadId, 'completed');
    assert.equal((await socket.refused(say({ decision: 'approve' }), 'already_resolved')).interaction.status, 'resolved');
  });

  for (const [decision, more] of [['edit', { args: { title: 'Other', start_time: '2030-01-31T15:00:00+08:00', end_time: '2030-01-31T16:00:00+08:00' } }],
    ['reject', { comment: 'not now' }], ['respond', { comment: 'done already' }]]) {
    test(decision, async (t) => {
      const { threadId, open: [asked] } = await waiting(server, 'book');
      const socket = await Socket.open(t, server);
      const taken = await socket.done({ type: 'confirm_response', sessionId: threadId, requestId: asked.toolCallId, decision, ...more });
      assert.deepEqual(taken.answer, { decision, ...more });
      await until(server, threadId, 'completed');
    });
  }

  test('a model that was gone, and goes on', async (t) => {
    const { threadId, open: [asked] } = await waiting(server, 'lost');
    assert.equal(asked.type, 'connection_lost');
    const socket = await Socket.open(t, server);
    await socket.done({ type: 'confirm_response', sessionId: threadId, requestId: asked.interactionId, decision: 'continue' });
    await until(server, threadId, 'completed');
  });
});

describe('stop', () => {
  test('cancels the run, as POST cancel', async (t) => {
    const { threadId, runId } = await waiting(server, 'choose');
    const socket = await Socket.open(t, server);
    assert.deepEqual(await socket.done({ type: 'stop', sessionId: threadId }), { threadId, runId, status: 'cancelling' });
    assert.equal((await runOf(server, threadId)).status, 'cancelled');
    await socket.refused({ type: 'stop', sessionId: threadId }, 'not_current');
    await socket.refused({ type: 'stop', sessionId: 'nowhere' }, 'not_found');
  });
});

describe('order and limits', () => {
  test('frames are worked on in their order', async (t) => {
    const socket = await Socket.open(t, server);
    const { threadId, open: [asked] } = await waiting(server, 'choose');
    await Promise.all([
      socket.send({ type: 'subscribe', sessionId: threadId, after: 0, id: 0 }),
      socket.send({ type: 'clarify_response', sessionId: threadId, requestId: asked.toolCallId, answer: 'long', id: 1 }),
      socket.send({ type: 'ping', id: 2 }),
      socket.send({ type: 'message', sessionId: 'o1', content: 'hello', id: 3 }),
      socket.send({ type: 'stop', sessionId: 'nowhere', id: 4 }),
      socket.send({ type: 'unsubscribe', sessionId: threadId, id: 5 }),
    ]);
    await socket.one(({ id }) => id === 5);
    assert.deepEqual(socket.all.filter(({ id }) => id !== undefined).map(({ id, type }) => [id, type]),
      [[0, 'ack'], [1, 'ack'], [2, 'pong'], [3, 'ack'], [4, 'error'], [5, 'ack']]);
  });

  test('a client that waits for nothing is told to', async (t) => {
    const socket = await Socket.open(t, server);
    const count = 400;
    await socket.frames.write(Buffer.concat(Array.from({ length: count },
      (_, i) => frame(JSON.stringify({ type: 'stop', sessionId: 'nowhere', id: i })))));
    const codes = [];
    for (let i = 0; i < count; i++) codes.push((await socket.next()).data.code);
    const waited = codes.filter((code) => code === 'not_found').length;
    assert.equal(codes.filter((code) => code === 'rate_limited').length, count - waited);
    assert.ok(waited >= 65 && waited < count, `${waited}`); // one that is worked on, and 64 behind it
    assert.deepEqual(await socket.ask({ type: 'ping', id: 'x' }), { type: 'pong', id: 'x' });
  });

  test('256 subscriptions, and not one more', async (t) => {
    const socket = await Socket.open(t, server);
    for (let i = 0; i < 256; i++) await socket.subscribe(`many${i}`);
    await socket.refused({ type: 'subscribe', sessionId: 'many256' }, 'rate_limited');
    await socket.subscribe('many7');
    await socket.done({ type: 'unsubscribe', sessionId: 'many9' });
    await socket.subscribe('many256');
    await socket.done({ type: 'message', sessionId: 'many256', content: 'hello' });
    assert.equal((await socket.one(isEnd)).sessionId, 'many256');
  });

  test('the rate limit counts frames, by their key', async (t) => {
    const place = await startTalk(t, [{ turns: [{ text: 'Hello.' }] }], { FERMATA_LIMITS_RATE: '5' });
    const ann = await place.addKey('ann');
    const socket = await Socket.open(t, place.server, { headers: { Authorization: `Bearer ${ann}` } });
    const got = [];
    for (let i = 0; i < 40; i++) got.push(await socket.ask({ type: 'ping', id: i }));
    const limited = got.filter(({ type }) => type === 'error');
    assert.ok(limited.length > 0 && limited.every(({ data }) => data.code === 'rate_limited'));
    assert.equal(socket.over, null, 'it stays open');
    const http = await call(place.server, 'GET', `${AGENT}/threads`, { headers: bearer(ann) });
    assert.ok([200, 429].includes(http.status), 'one count for both');
  });
});

// A browser's own, which does not mind that nobody listens for its errors.
class Page extends WebSocket {
  constructor(address) {
    super(address);
    this.on('error', () => {});
  }
}

describe('docs/WEBSOCKET.md', () => {
  test('its example asks, answers, and comes back after a restart', async (t) => {
    const place = await startAsking(t);
    const text = readFileSync(new URL('../../docs/WEBSOCKET.md', import.meta.url), 'utf8');
    const [, script] = /```js\n(.+?)```/s.exec(text);
    const open = new Function('location', 'WebSocket', `${script}; return open;`)({ href: `${place.server.url}/` }, Page);
    const questions = [], events = [];
    const chat = open('t1', { onQuestion: (question) => questions.push(question), onEvent: (event) => events.push(event) });
    t.after(() => chat.close());
    const ended = (outcome) => waitFor(`the run to be ${outcome}`, () => events.some(({ type, data }) => type === 'run.finished' && data.outcome === outcome));
    await waitFor('the socket', () => { try { chat.say('choose'); return true; } catch { return false; } });
    await ended('interrupted');
    assert.deepEqual(questions.map(({ question, choices }) => [question, choices]), [['How long?', ['30 minutes', '1 hour']]]);
    const { port } = place.server;
    await place.restart({ FERMATA_LISTEN: `127.0.0.1:${port}` });
    await waitFor('it to come back, and be heard', () => {
      try { chat.answer(questions[0].requestId, '1 hour'); } catch { /* not open yet */ }
      return events.some(({ type }) => type === 'interaction.resolved');
    });
    await ended('completed');
    const seqs = events.map(({ seq }) => seq).filter((seq) => seq !== undefined);
    assert.deepEqual(seqs, seqs.map((_, i) => i + 1), 'every fact once');
    assert.equal(questions.length, 1);
    chat.close();
  });
});

describe('the document', () => {
  test('has the route, with 101', async () => {
    const api = (await call(server, 'GET', '/api/v1/openapi.json')).json();
    const { responses } = api.paths[WS].get;
    assert.deepEqual(Object.keys(responses), ['101', '400', '401', '403', '426']);
  });
});

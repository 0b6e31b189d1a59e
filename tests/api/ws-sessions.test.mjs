// SPDX-License-Identifier: Apache-2.0
//
// Subscriptions of a WebSocket: where they begin, what they bring, how they go on after a cut, and when they end. What
// they bring is compared with the event stream, which has its own tests.

import assert from 'node:assert/strict';
import { Agent, request } from 'node:http';
import { after, before, describe, test } from 'node:test';

import { ASKING, startAsking, until, waiting } from './asking.mjs';
import { bearer, call, Home, postJson } from './home.mjs';
import { frame, Frames, Socket } from './socket.mjs';
import { accepted, AGENT, answer, cancel, endOf, factsOf, isEnd, openEvents, runOf, startTalk, typesOf, user, waitFor } from './talk.mjs';

const LINES = [
  ...ASKING.slice(0, -1),
  { match: '^slow', turns: [{ text: 'One, two, three, four, five, six, seven, eight.', chunk: 4, gap_ms: 40 }] },
  { match: '^endless', turns: [{ text: 'Once upon a time. '.repeat(20_000), chunk: 4, gap_ms: 5 }] },
  { match: '^thinks', turns: [{ reasoning: 'Let me see.', text: 'Well.', chunk: 3, gap_ms: 10 }] },
  { match: '^long', turns: [{ text: 'y'.repeat(30_000), chunk: 10_000 }] },
  { match: '^huge', turns: [{ text: '字'.repeat(100_000), chunk: 20_000 }] },
  { match: '^breaks', turns: [{ text: 'Half a sentence that is never finished.', chunk: 4, gap_ms: 20, fail: { at: 20, times: 1 } }] },
  { turns: [{ text: 'Hello.' }] },
];

let home, server;
const cleanUp = [];
before(async () => {
  home = await startAsking({ after: (fn) => cleanUp.unshift(fn) }, { lines: LINES });
  server = home.server;
});
after(async () => {
  for (const fn of cleanUp) await fn();
});

const say = (socket, sessionId, content, runId = 'r1') => socket.done({ type: 'message', sessionId, content, runId });
const native = (events) => events.filter(({ type }) => /^[a-z.]+$/.test(type) && type.includes('.'));

// An event of the stream as the socket has it.
const asSocket = ({ threadId, type, ...rest }) => ({ type, sessionId: threadId, ...rest });

const openWith = (t, place, cookie) => Socket.open(t, place.server, { headers: { Cookie: cookie } });

// Everything that the stream has behind `after`, up to the end of a run.
async function streamed(t, threadId, after, runId = 'r1', headers = {}) {
  const events = await openEvents(t, server, threadId, { query: `?after=${after}`, headers });
  const all = await events.until(endOf(runId));
  events.close();
  return all.map(asSocket);
}

describe('where it begins', () => {
  test('a session that nobody has made: open and empty, alive with its first message', async (t) => {
    const socket = await Socket.open(t, server);
    assert.deepEqual(await socket.subscribe('new1'), { sessionId: 'new1' });
    await accepted(server, { threadId: 'new1', runId: 'r1', messages: [user('hello')] });
    const events = await socket.until(endOf('r1'));
    assert.deepEqual(factsOf(events).map(({ seq }) => seq), [1, 2, 3, 4, 5, 6, 7, 8]);
    assert.equal(events[0].type, 'message.added');
  });

  test('after=0 and after every fact: what the stream has', async (t) => {
    await accepted(server, { threadId: 'old1', runId: 'r1', messages: [user('thinks')] });
    await until(server, 'old1', 'completed');
    const socket = await Socket.open(t, server);
    const { length } = factsOf(await streamed(t, 'old1', 0));
    for (let after = 0; after < length; after++) {
      await socket.subscribe('old1', { after });
      assert.deepEqual(await socket.until(isEnd), await streamed(t, 'old1', after), `after ${after}`);
    }
  });

  test('without a cursor: at the newest run', async (t) => {
    await accepted(server, { threadId: 'old2', runId: 'r1', messages: [user('hello')] });
    await until(server, 'old2', 'completed');
    const { seq } = await accepted(server, { threadId: 'old2', runId: 'r2', messages: [user('hello')] });
    await until(server, 'old2', 'completed');
    const socket = await Socket.open(t, server);
    await socket.subscribe('old2');
    const events = await socket.until(endOf('r2'));
    assert.equal(factsOf(events)[0].seq, seq + 1);
  });

  test('a cursor from the future: reset, and on behind its seq', async (t) => {
    await accepted(server, { threadId: 'old3', runId: 'r1', messages: [user('hello')] });
    await until(server, 'old3', 'completed');
    const socket = await Socket.open(t, server);
    await socket.subscribe('old3', { after: 4711 });
    const reset = await socket.next();
    assert.deepEqual([reset.type, reset.seq, reset.data], ['reset', 8, { reason: 'future', seq: 8 }]);
    await accepted(server, { threadId: 'old3', runId: 'r2', messages: [user('hello')] });
    assert.equal(factsOf(await socket.until(endOf('r2')))[0].seq, 9);
  });

  for (const events of [['clarify'], ['ask-user']])
    test(`a cursor from the future is told to readers of ${events} alone, too`, async (t) => {
      await accepted(server, { threadId: `old-${events}`, runId: 'r1', messages: [user('hello')] });
      await until(server, `old-${events}`, 'completed');
      const socket = await Socket.open(t, server);
      await socket.subscribe(`old-${events}`, { after: 4711, events });
      const reset = await socket.next();
      assert.deepEqual([reset.type, reset.seq, reset.data], ['reset', 8, { reason: 'future', seq: 8 }]);
    });

  test('in the middle of a message: its start and one delta with all so far', async (t) => {
    const first = await Socket.open(t, server), second = await Socket.open(t, server);
    await first.subscribe('mid1');
    await say(first, 'mid1', 'slow');
    const seen = await first.until(({ type, data }) => type === 'text.delta' && data.offset >= 12);
    await second.subscribe('mid1', { after: 0 });
    const [, whole] = await Promise.all([first.until(endOf('r1')), second.until(endOf('r1'))]);
    const deltas = whole.filter(({ type }) => type === 'text.delta');
    assert.equal(deltas[0].data.offset, 0);
    assert.ok(deltas[0].data.delta.length >= 12, 'everything so far in one piece');
    assert.equal(deltas.map(({ data }) => data.delta).join(''), 'One, two, three, four, five, six, seven, eight.');
    assert.ok(seen.length);
  });
});

describe('what it brings', () => {
  // Everything up to `last`, and whatever else is on its way then.
  const asked = async (t, events, sessionId, last) => {
    const socket = await Socket.open(t, server);
    await socket.subscribe(sessionId, events ? { events } : {});
    await say(socket, sessionId, 'choose');
    await waitFor(last, () => socket.all.some(({ type }) => type === last));
    await until(server, sessionId, 'waiting');
    await socket.ask({ type: 'ping', id: 'all' });
    const kinds = socket.all.filter(({ type }) => !['ack', 'pong'].includes(type));
    return { socket, kinds, one: (type) => kinds.find((message) => message.type === type) };
  };

  test('by default events and questions', async (t) => {
    const { kinds, one } = await asked(t, undefined, 'kinds1', 'run.finished');
    const { seq, data: { interactionId } } = one('interaction.request');
    assert.deepEqual(one('clarify_request'), { type: 'clarify_request', sessionId: 'kinds1', seq, data: {
      requestId: interactionId, question: 'How long?', choices: ['30 minutes', '1 hour'], allowFreeform: true } });
    assert.equal(kinds.indexOf(one('clarify_request')), kinds.indexOf(one('interaction.request')) + 1);
    assert.equal(one('ai-agent-ask-user'), undefined);
    assert.equal(native(kinds).length, kinds.length - 1);
  });

  test('questions alone', async (t) => {
    const { kinds } = await asked(t, ['clarify'], 'kinds2', 'clarify_request');
    assert.deepEqual(typesOf(kinds), ['clarify_request']);
  });

  test('the desktop form: ai-agent-ask-user, and ai-chat-complete at the end of each leg', async (t) => {
    const { socket, kinds } = await asked(t, ['ask-user'], 'kinds3', 'ai-chat-complete');
    const [question, complete] = kinds;
    assert.deepEqual(typesOf(kinds), ['ai-agent-ask-user', 'ai-chat-complete']);
    assert.deepEqual(question.data, { conversationId: 'kinds3', toolCallId: question.data.toolCallId, question: 'How long?',
      choices: ['30 minutes', '1 hour'], allowFreeform: true });
    assert.deepEqual(complete, { type: 'ai-chat-complete', data: { conversationId: 'kinds3' } });
    await socket.done({ type: 'clarify_response', sessionId: 'kinds3', requestId: question.data.toolCallId, answer: '1 hour' });
    await socket.one(({ type }) => type === 'ai-chat-complete');
    await until(server, 'kinds3', 'completed');
  });

  // Ends of runs, and of legs: how each was told.
  const endings = async (socket) => {
    await socket.ask({ type: 'ping', id: 'all' });
    return socket.all.filter((event) => isEnd(event) || event.type === 'ai-chat-complete')
      .map(({ runId, data: { outcome } }) => (runId ? `${runId} ${outcome}` : 'complete'));
  };
  const EVENTS = ['native', 'ask-user'];

  test('a message that is dropped from the queue completes nothing: amid an answer, and for those who come later', async (t) => {
    const socket = await Socket.open(t, server), late = await Socket.open(t, server);
    await socket.subscribe('drop1', { events: EVENTS });
    await say(socket, 'drop1', 'endless');
    const { seq } = await say(socket, 'drop1', 'hello', 'r2');
    const { queue: [{ n }] } = await runOf(server, 'drop1');
    assert.equal((await call(server, 'DELETE', `${AGENT}/runs/drop1/queue/${n}`)).status, 204);
    await socket.until(endOf('r2'));
    assert.deepEqual(await endings(socket), ['r2 cancelled']);
    await late.subscribe('drop1', { after: seq + 2, events: EVENTS });
    await cancel(server, 'drop1');
    await Promise.all([socket.until(endOf('r1')), late.until(endOf('r1'))]);
    assert.deepEqual(await endings(socket), ['r2 cancelled', 'r1 cancelled', 'complete']);
    assert.deepEqual(await endings(late), ['r1 cancelled', 'complete']);
    const last = await Socket.open(t, server);
    await last.subscribe('drop1', { after: seq, events: EVENTS });
    await last.until(endOf('r1'));
    assert.deepEqual(await endings(last), ['r2 cancelled', 'r1 cancelled', 'complete']);
  });

  test('a run that is cancelled while it waits has no leg to complete', async (t) => {
    const { socket } = await asked(t, EVENTS, 'drop2', 'ai-chat-complete');
    const { seq } = socket.all.find(isEnd);
    await cancel(server, 'drop2');
    const told = (event) => isEnd(event) && event.data.outcome === 'cancelled';
    await socket.until(told);
    assert.deepEqual(await endings(socket), ['r1 interrupted', 'complete', 'r1 cancelled']);
    const late = await Socket.open(t, server);
    await late.subscribe('drop2', { after: seq, events: EVENTS });
    await late.until(told);
    assert.deepEqual(await endings(late), ['r1 cancelled']);
  });

  test('all three', async (t) => {
    const { one } = await asked(t, ['native', 'clarify', 'ask-user'], 'kinds4', 'ai-chat-complete');
    for (const type of ['interaction.request', 'clarify_request', 'ai-agent-ask-user', 'ai-chat-complete', 'run.finished']) assert.ok(one(type), type);
  });

  test('two sockets and a stream see the same', async (t) => {
    const one = await Socket.open(t, server), two = await Socket.open(t, server);
    const events = await openEvents(t, server, 'same1');
    await one.subscribe('same1');
    await two.subscribe('same1');
    await one.ask({ type: 'ping' });
    await say(two, 'same1', 'thinks');
    const lists = await Promise.all([one.until(isEnd), two.until(isEnd)]);
    const stream = (await events.until(isEnd)).map(asSocket);
    assert.deepEqual(factsOf(lists[0]), factsOf(stream));
    assert.deepEqual(factsOf(lists[1]), factsOf(stream));
  });

  test('a discarded attempt is discarded here, too', async (t) => {
    const socket = await Socket.open(t, server);
    await socket.subscribe('break1');
    await say(socket, 'break1', 'breaks');
    const events = await socket.until(isEnd);
    assert.ok(events.some(({ type }) => type === 'message.discard'));
    assert.equal(events.find(({ type }) => type === 'text.message.end').data.content, 'Half a sentence that is never finished.');
  });

  test('several sessions on one socket', async (t) => {
    const socket = await Socket.open(t, server);
    const names = ['multi1', 'multi2', 'multi3'];
    for (const name of names) await socket.subscribe(name);
    for (const name of names) await say(socket, name, 'slow');
    for (const name of names) await socket.one((message) => isEnd(message) && message.sessionId === name);
    for (const name of names) {
      const text = socket.all.filter(({ type, sessionId }) => sessionId === name && type === 'text.delta').map(({ data }) => data.delta).join('');
      assert.equal(text, 'One, two, three, four, five, six, seven, eight.');
    }
  });
});

describe('how it goes on', () => {
  test('a long history is caught up on, whole, while another session is live', async (t) => {
    const socket = await Socket.open(t, server);
    const runs = 60;
    for (let i = 0; i < runs; i++) {
      await accepted(server, { threadId: 'long1', runId: `r${i}`, messages: [user('long')] });
      await until(server, 'long1', 'completed');
    }
    await socket.subscribe('live1');
    await socket.subscribe('long1', { after: 0 });
    await say(socket, 'live1', 'slow');
    await socket.one((message) => isEnd(message) && message.runId === `r${runs - 1}`);
    assert.equal(factsOf(native(socket.all)).filter(({ sessionId }) => sessionId === 'long1').length, runs * 8);
    await socket.one((message) => isEnd(message) && message.sessionId === 'live1');
    assert.equal(socket.over, null);
  });

  test('a message larger than the queue, live', async (t) => {
    const socket = await Socket.open(t, server);
    await socket.subscribe('huge1');
    for (const runId of ['r1', 'r2', 'r3']) {
      await say(socket, 'huge1', 'huge', runId);
      const events = await socket.until(endOf(runId));
      const ends = events.filter(({ type }) => type === 'text.message.end');
      assert.deepEqual(ends.map(({ data }) => data.content.length), [100_000]);
    }
    assert.equal(socket.over, null, 'a reader that reads is not sent away');
  });

  test('cut anywhere, it goes on behind the last fact, without a gap', async (t) => {
    await accepted(server, { threadId: 'cut1', runId: 'r1', messages: [user('slow')] });
    const facts = [];
    for (let cuts = 0; !facts.some(isEnd); cuts++) {
      assert.ok(cuts < 100);
      const socket = await Socket.open(t, server);
      await socket.subscribe('cut1', { after: facts.at(-1)?.seq ?? 0 });
      for (let i = 0; i < 1 + cuts % 4 && !facts.some(isEnd); i++) {
        const event = await socket.next();
        if (event.seq !== undefined) facts.push(event);
      }
      socket.close();
    }
    assert.deepEqual(facts, factsOf(await streamed(t, 'cut1', 0)));
  });

  test('over a kill -9, and the answer after it', async (t) => {
    const place = await startAsking(t);
    const socket = await Socket.open(t, place.server);
    await socket.subscribe('t1');
    await socket.done({ type: 'message', sessionId: 't1', content: 'choose' });
    const before = await socket.until(isEnd);
    const { requestId } = before.find(({ type }) => type === 'clarify_request').data;
    const { server: old } = place;
    place.server = null;
    await old.kill9();
    assert.equal((await socket.closed()).code, null);
    await place.start();
    const again = await Socket.open(t, place.server);
    await again.subscribe('t1', { after: factsOf(before).at(-1).seq });
    await again.done({ type: 'clarify_response', sessionId: 't1', requestId, answer: '1 hour' });
    const rest = await again.until(isEnd);
    assert.equal(factsOf(rest)[0].seq, factsOf(before).at(-1).seq + 1);
    assert.equal(rest.at(-1).data.outcome, 'completed');
  });

  test('subscribing again replaces the subscription', async (t) => {
    const socket = await Socket.open(t, server);
    await socket.subscribe('again1');
    await socket.subscribe('again1', { events: ['clarify'] });
    await say(socket, 'again1', 'choose');
    await socket.one(({ type }) => type === 'clarify_request');
    await socket.ask({ type: 'ping' });
    assert.deepEqual(native(socket.all), []);
    await socket.subscribe('again1', { after: 0 });
    assert.deepEqual(factsOf(native(await socket.until(isEnd))).map(({ seq }) => seq), [1, 2, 3, 4, 5, 6, 7]);
  });

  test('after unsubscribe nothing comes, and what was not there can be left', async (t) => {
    const socket = await Socket.open(t, server);
    await socket.subscribe('leave1');
    assert.deepEqual(await socket.done({ type: 'unsubscribe', sessionId: 'leave1' }), { sessionId: 'leave1' });
    await say(socket, 'leave1', 'hello');
    await until(server, 'leave1', 'completed');
    await socket.done({ type: 'unsubscribe', sessionId: 'leave1' });
    assert.deepEqual(native(socket.all), []);
  });

  test('a socket that goes in the middle leaves nothing behind', async (t) => {
    for (let i = 0; i < 20; i++) {
      const { frames } = await Frames.open(t, server);
      const session = `gone${i}`;
      await frames.write(Buffer.concat([
        frame(JSON.stringify({ type: 'subscribe', sessionId: session })), frame(JSON.stringify({ type: 'subscribe', inbox: true })),
        frame(JSON.stringify({ type: 'message', sessionId: session, content: 'slow' })),
        frame(JSON.stringify({ type: 'clarify_response', sessionId: session, requestId: 'x', answer: 'y' }))]));
      if (i % 2) await frames.next();
      if (i % 3) frames.raw.socket.resetAndDestroy();
      else frames.close();
    }
    const gauge = async (name) => Number(new RegExp(`^${name} (\\d+)$`, 'm').exec((await call(server, 'GET', '/metrics')).text)[1]);
    await waitFor('all sockets to be gone', async () => await gauge('fermata_websockets') === 0);
    await waitFor('all readers to be gone', async () => await gauge('fermata_event_streams') === 0);
  });
});

describe('when it ends', () => {
  test('a session that is deleted', async (t) => {
    const socket = await Socket.open(t, server);
    const { threadId } = await waiting(server, 'choose');
    await socket.subscribe(threadId, { after: 0 });
    await socket.until(isEnd);
    assert.equal((await call(server, 'DELETE', `${AGENT}/threads/${threadId}`)).status, 204);
    const over = await socket.one(({ type }) => type === 'error');
    assert.deepEqual([over.id, over.data.code, over.data.sessionId], [undefined, 'not_found', threadId]);
    await socket.subscribe(threadId);
    await say(socket, threadId, 'hello');
    assert.equal(factsOf(await socket.until(endOf('r1')))[0].seq, 1, 'a new one of the same name');
  });
});

describe('whose it is', () => {
  test('the same name with another user is another session', async (t) => {
    const place = await startTalk(t, [{ turns: [{ text: 'Hello.' }] }]);
    const [ann, bob] = [await place.addKey('ann'), await place.addKey('bob')];
    const open = (key) => Socket.open(t, place.server, { headers: { Authorization: `Bearer ${key}` } });
    const [hers, his] = [await open(ann), await open(bob)];
    await his.subscribe('t1', { after: 0 });
    await hers.subscribe('t1');
    await hers.done({ type: 'message', sessionId: 't1', content: 'secret', runId: 'r1' });
    await hers.until(endOf('r1'));
    await his.refused({ type: 'stop', sessionId: 't1' }, 'not_found');
    assert.deepEqual(native(his.all), []);
    assert.deepEqual((await his.done({ type: 'message', sessionId: 't1', content: 'hi', runId: 'r1' })).created, true);
    const events = await his.until(endOf('r1'));
    assert.ok(!JSON.stringify(events).includes('secret'));
    const threads = await call(place.server, 'GET', `${AGENT}/threads`, { headers: bearer(ann) });
    assert.equal(threads.json().threads.length, 1);
  });

  // The server remembers 10,000 sessions. Whoever it has forgotten is looked up with the next frame.
  test('a session of the browser that the server has forgotten is looked up', async (t) => {
    const place = await Home.make(t);
    await place.start();
    const key = await place.addKey('ann');
    const post = () => postJson(place.server, '/api/v1/session', { key });
    const login = async () => (await post()).cookies[0].split(';')[0];
    const cookies = [await login(), await login()];
    await place.restart();
    const [stays, leaves] = [await openWith(t, place, cookies[0]), await openWith(t, place, cookies[1])];
    const agent = new Agent({ keepAlive: true, maxSockets: 16 });
    t.after(() => agent.destroy());
    const many = () => Promise.all(Array.from({ length: 10_100 }, () => new Promise((done, failed) => {
      const { host, port } = place.server;
      const headers = { 'content-type': 'application/json' };
      const sent = request({ host, port, agent, method: 'POST', path: '/api/v1/session', headers }, (response) => response.resume().on('end', done));
      sent.on('error', failed);
      sent.end(JSON.stringify({ key }));
    })));
    await many();
    const pair = [{ type: 'ping', id: 1 }, { type: 'ping', id: 2 }];
    for (const value of pair) await stays.send(value);
    for (const { id } of pair) assert.deepEqual(await stays.next(), { type: 'pong', id });
    const ended = call(place.server, 'DELETE', '/api/v1/session', { headers: { cookie: cookies[1] } });
    await leaves.send({ type: 'ping' });
    assert.equal((await leaves.closed()).code, 1008);
    assert.equal((await ended).status, 204);
    assert.equal((await stays.ask({ type: 'ping' })).type, 'pong');
  });

  test('an answer over the other interface arrives here', async (t) => {
    const socket = await Socket.open(t, server);
    const { threadId, open: [asked] } = await waiting(server, 'choose');
    await socket.subscribe(threadId, { after: 0 });
    await socket.until(isEnd);
    await answer(server, asked.interactionId, { choices: ['c1'] });
    const { data } = await socket.one(({ type }) => type === 'interaction.resolved');
    assert.deepEqual([data.via, data.text], ['api', '30 minutes']);
  });
});

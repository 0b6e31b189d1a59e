// SPDX-License-Identifier: Apache-2.0
//
// Event streams: where a reader begins, what it gets when it comes late, in between or slowly, and what ends it. The
// reader of talk.mjs checks every frame, the numbers of the facts, and the texts as a client builds them.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { after, before, describe, test } from 'node:test';

import { assertProblem, bearer, call, Home, postJson } from './home.mjs';
import { within } from './server.mjs';
import {
  accepted, AGENT, cancel, endOf, factsOf, get, history, isEnd, openEvents, startTalk, talk, typesOf, user, waitFor,
} from './talk.mjs';

const END_MS_MAX = 60_000; // from the end of a session to the end of its streams
const SLOW = 'Well, let me think about 你好 👋 for a while. '.repeat(3);
const BIG = 'A long answer 你好 👋 that says little. '.repeat(4000);
const FACTS_OF_A_RUN = 8;

const SCRIPT = [
  { match: '^slow', turns: [{ text: SLOW, chunk: 1, gap_ms: 25 }] },
  { match: '^think', turns: [{ reasoning: SLOW, text: SLOW, chunk: 1, gap_ms: 25 }] },
  { match: '^endless', turns: [{ text: 'Once upon a time. '.repeat(20_000), chunk: 4, gap_ms: 5 }] },
  { match: '^big', turns: [{ text: BIG, chunk: 1000 }] },
  { match: '^huge', turns: [{ text: BIG.repeat(5), chunk: 20_000 }] },
  { match: '^quick', turns: [{ text: 'One, two, three, four, five. '.repeat(20), chunk: 1 }] },
  { turns: [{ text: 'Hello, 你好 👋.' }] },
];

let home, server, cleanUp;
before(async () => {
  home = await startTalk({ after: (fn) => { cleanUp = fn; } }, SCRIPT);
  server = home.server;
});
after(() => cleanUp?.());

const say = (threadId, runId, content = 'hi') => accepted(server, { threadId, runId, messages: [user(content, `u-${runId}`)] });
const seqs = (events) => factsOf(events).map(({ seq }) => seq);
const range = (from, to) => Array.from({ length: to - from + 1 }, (_, i) => from + i);

// A thread with two ended runs, r1 and r2: facts 1 to 16.
async function twoRuns(t, threadId) {
  await talk(t, server, { threadId, runId: 'r1', messages: [user('hi', 'u1')] });
  await talk(t, server, { threadId, runId: 'r2', messages: [user('ho', 'u2')] });
}

test('the head of the answer', async (t) => {
  const { headers } = await openEvents(t, server, 'head');
  assert.equal(headers['content-type'], 'text/event-stream; charset=utf-8');
  assert.equal(headers['cache-control'], 'no-store');
  assert.equal(headers['x-accel-buffering'], 'no');
  assert.equal(headers['x-content-type-options'], 'nosniff');
  assert.equal(headers['content-length'], undefined);
  assert.equal(headers['content-encoding'], undefined);
});

describe('a cursor', () => {
  before((t) => twoRuns({ after: (fn) => after(fn) }, 'two'));
  const open = (t, query, headers = {}) => openEvents(t, server, 'two', { query, headers });
  const lastOfTwo = endOf('r2');

  for (const [name, query, headers, first] of [
    ['none: the newest run', '', {}, 9],
    ['0: from the first fact', '?after=0', {}, 1],
    ['in between', '?after=5', {}, 6],
    ['the last but one', '?after=15', {}, 16],
    ['leading zeros', '?after=0015', {}, 16],
    ['Last-Event-ID', '', { 'last-event-id': '12' }, 13],
    ['Last-Event-ID wins over after', '?after=2', { 'last-event-id': '12' }, 13],
    ['an empty Last-Event-ID says nothing', '?after=2', { 'last-event-id': '' }, 3],
    ['runId picks a run', '?runId=r1', {}, 1],
    ['runId of the newest', '?runId=r2', {}, 9],
    ['after wins over runId', '?runId=r1&after=14', {}, 15],
    ['format=native is the default', '?format=native&after=0', {}, 1],
  ]) {
    test(name, async (t) => {
      const events = await open(t, query, headers);
      assert.deepEqual(seqs(await events.until(lastOfTwo)), range(first, 16));
    });
  }

  test('at the end: nothing, then what comes', async (t) => {
    await twoRuns(t, 'end');
    const events = await openEvents(t, server, 'end', { query: '?after=16' });
    await say('end', 'r3');
    assert.deepEqual(seqs(await events.until(endOf('r3'))), range(17, 24));
  });

  for (const cursor of ['x', '-1', '+1', '1.0', '1e3', '0x1', '17', '999', '9'.repeat(19), '18446744073709551615', '18446744073709551616',
    '9'.repeat(40), 'ü', '1;2']) {
    for (const how of ['after', 'Last-Event-ID']) {
      if (how === 'Last-Event-ID' && cursor === 'ü') continue; // not a header that Node sends
      test(`${how} ${cursor}: reset, and on from there`, async (t) => {
        const threadId = `bad-${how}-${Buffer.from(cursor).toString('hex')}`.slice(0, 100);
        await twoRuns(t, threadId);
        const events = how === 'after'
          ? await openEvents(t, server, threadId, { query: `?after=${encodeURIComponent(cursor)}` })
          : await openEvents(t, server, threadId, { headers: { 'last-event-id': cursor } });
        const reset = await events.next();
        assert.equal(reset.type, 'reset');
        assert.deepEqual(Object.keys(reset.data), ['reason', 'seq']);
        assert.deepEqual([reset.seq, reset.data.seq], [16, 16]);
        assert.ok(reset.data.reason);
        assert.equal((await history(server, threadId)).seq, 16);
        await say(threadId, 'r3');
        assert.deepEqual(seqs(await events.until(endOf('r3'))), range(17, 24));
      });
    }
  }

  test('a run under way, without a cursor: from its first fact', async (t) => {
    await twoRuns(t, 'way');
    await say('way', 'r3', 'endless');
    const { seq } = await say('way', 'r4');
    const events = await openEvents(t, server, 'way');
    await events.until(({ type }) => type === 'text.delta');
    assert.equal(events.facts[0].seq, 17, 'the queued one has not started');
    await cancel(server, 'way');
    await events.run('r4');
    const queued = await openEvents(t, server, 'way', { query: '?runId=r4' });
    const facts = await queued.run('r4');
    assert.equal(facts.find(({ type }) => type === 'message.added').runId, 'r4');
    const newest = await openEvents(t, server, 'way');
    await newest.run('r4');
    for (const { facts: [first] } of [queued, newest]) assert.deepEqual([first.type, first.runId, first.seq], ['run.queued', 'r4', seq + 1]);
  });
});

describe('a thread that does not exist', () => {
  test('an open and empty stream, which begins with the thread', async (t) => {
    const events = await openEvents(t, server, 'later');
    await say('later', 'r1');
    assert.deepEqual(seqs(await events.until(endOf('r1'))), range(1, 8));
  });

  test('with a cursor: 0 fits, any other is of the future', async (t) => {
    const zero = await openEvents(t, server, 'later2', { query: '?after=0' });
    const seven = await openEvents(t, server, 'later2', { headers: { 'last-event-id': '700' } });
    await say('later2', 'r1');
    assert.deepEqual(seqs(await zero.until(endOf('r1'))), range(1, 8));
    assert.equal((await seven.next()).type, 'reset');
    await say('later2', 'r2');
    await seven.run('r2');
  });

  test('is not kept waiting by one of the same name that was deleted', async (t) => {
    await talk(t, server, { threadId: 'gone', runId: 'r1', messages: [user('hi')] });
    await call(server, 'DELETE', `${AGENT}/threads/gone`);
    const events = await openEvents(t, server, 'gone', { query: '?after=0' });
    await say('gone', 'r1');
    assert.deepEqual(seqs(await events.until(endOf('r1'))), range(1, 8));
  });

  test('opened at the moment it is made: no reader misses it', async (t) => {
    for (let round = 0; round < 20; round++) {
      const threadId = `moment-${round}`;
      const opened = Array.from({ length: 5 }, () => openEvents(t, server, threadId, { query: '?after=0' }));
      const posted = say(threadId, 'r1');
      for (const events of await Promise.all(opened)) {
        assert.deepEqual(seqs(await events.until(endOf('r1'))), range(1, 8));
        events.close();
      }
      await posted;
    }
  });
});

describe('refused', () => {
  const ask = (threadId, query, headers) => get(server, `/runs/${threadId}/events${query}`, headers);

  test('forms that are not known', async () => {
    assertProblem(await ask('x', '?format=x', {}), 400, 'invalid_field', 'format');
    assertProblem(await ask('x', '?format=', {}), 400, 'invalid_field', 'format');
  });

  test('a caller that takes no stream', async () => {
    for (const accept of ['application/json', 'text/html', 'image/*', 'text/event-streams', 'text/event-stream;q=0, application/json']) {
      assertProblem(await ask('x', '', { accept }), 406, 'not_acceptable');
    }
  });

  test('but not one that takes it among others', async (t) => {
    for (const accept of ['text/event-stream', 'text/*', '*/*', 'application/json, text/event-stream;q=0.5', 'TEXT/Event-Stream']) {
      (await openEvents(t, server, 'x', { headers: { accept } })).close();
    }
  });

  test('ids that no thread can have', async () => {
    for (const id of ['a%20b', 'x'.repeat(129), '%00', '%ff', 'a%2Fb', '%E4%BD%A0']) {
      const answer = await ask(id, '', {});
      assert.ok([400, 404].includes(answer.status), `${id} ${answer.status}`);
    }
    assertProblem(await ask('x'.repeat(129), '', {}), 404, 'not_found');
    assertProblem(await ask('a%20b', '', {}), 404, 'not_found');
  });
});

describe('a reader that comes', () => {
  test('late: start, one delta, end', async (t) => {
    await talk(t, server, { threadId: 'late', runId: 'r1', messages: [user('slow')] });
    const events = await openEvents(t, server, 'late');
    const all = await events.until(isEnd);
    assert.deepEqual(typesOf(all), ['message.added', 'run.started', 'step.start', 'step.finish', 'step.start',
      'text.message.start', 'text.delta', 'text.message.end', 'step.finish', 'run.finished']);
    assert.equal(all[6].data.delta, SLOW);
  });

  test('late, after reasoning', async (t) => {
    await talk(t, server, { threadId: 'late2', runId: 'r1', messages: [user('think')] });
    const events = await openEvents(t, server, 'late2', { query: '?after=5' });
    assert.deepEqual(typesOf(await events.until(isEnd)), ['reasoning.delta', 'reasoning.end', 'text.message.start', 'text.delta',
      'text.message.end', 'step.finish', 'run.finished']);
  });

  for (const content of ['slow', 'think']) {
    test(`amid a message (${content}): what there is so far at once, then the rest`, async (t) => {
      const threadId = `amid-${content}`;
      const first = await openEvents(t, server, threadId);
      await say(threadId, 'r1', content);
      const seen = await first.until(({ type, data }) => type === 'text.delta' && data.offset > 20);
      const { offset, messageId } = seen.at(-1).data;
      first.close();
      const again = await openEvents(t, server, threadId, { headers: { 'last-event-id': '3' } });
      const rest = await again.until(({ type }) => type === 'text.message.end');
      const begin = typesOf(rest).indexOf('text.message.start');
      assert.deepEqual(typesOf(rest).slice(0, begin), content === 'think' ? ['reasoning.delta'] : []);
      assert.equal(rest[begin].data.messageId, messageId);
      const delta = rest[begin + 1];
      assert.deepEqual([delta.type, delta.data.offset], ['text.delta', 0]);
      assert.ok(delta.data.delta.length > offset, 'everything so far');
      assert.ok(rest.length > begin + 3, 'and then piece by piece');
      assert.equal(rest.at(-1).data.content, SLOW);
      assert.equal(typesOf(rest).filter((type) => type === 'text.message.start').length, 1);
    });
  }

  test('at any moment of many runs: every fact once, every text whole', { timeout: 300_000 }, async (t) => {
    const runs = range(1, 15).map((n) => `r${n}`);
    await say('moments', 'r0');
    const readers = [];
    for (const runId of runs) {
      await say('moments', runId, 'quick');
      readers.push(await openEvents(t, server, 'moments', { query: '?after=0' }));
      readers.push(await openEvents(t, server, 'moments', { query: `?after=${readers.length}` }));
    }
    let facts;
    for (const reader of readers) {
      await reader.run('r15');
      facts ??= reader.facts;
      assert.deepEqual(reader.facts, facts.slice(facts.length - reader.facts.length));
      reader.close();
    }
    assert.equal(facts.filter(({ type }) => type === 'run.finished').length, 16);
  });

  test('with HTTP/1.0: the same frames without chunks, and the end is the end of the connection', async (t) => {
    await talk(t, server, { threadId: 'old', runId: 'r1', messages: [user('hi')] });
    const socket = connect({ host: server.host, port: server.port });
    t.after(() => socket.destroy());
    let text = '';
    const done = new Promise((resolve) => {
      socket.setEncoding('utf8').on('data', (piece) => {
        text += piece;
        if (text.includes('{"type":"run.finished","threadId":"old","runId":"r2"')) resolve();
      });
    });
    socket.write(`GET ${AGENT}/runs/old/events?after=0 HTTP/1.0\r\nHost: ${server.host}:${server.port}\r\n\r\n`);
    await waitFor('the first run', () => text.includes('event: run.finished'));
    await say('old', 'r2');
    await within(END_MS_MAX, 'the second run', done);
    const [head, ...body] = text.split('\r\n\r\n');
    assert.match(head, /^HTTP\/1\.[01] 200 /);
    assert.doesNotMatch(head, /transfer-encoding/i);
    const frames = body.join('\r\n\r\n').split('\n\n').slice(0, -1);
    for (const frame of frames) assert.match(frame, /^(id: \d+\n)?event: [a-z.]+\ndata: \{.*\}$/);
    const ended = once(socket, 'end');
    await call(server, 'DELETE', `${AGENT}/threads/old`);
    await within(END_MS_MAX, 'the end', ended);
  });
});

describe('a slow reader', () => {
  const RUNS = 20, FEW = 6;
  async function fill(t, threadId, runs = RUNS, content = 'big') {
    for (let i = 1; i <= runs; i++) await say(threadId, `r${i}`, content);
    await waitFor('all runs', async () => {
      const run = (await get(server, `/runs/${threadId}`)).json();
      return run.runId === `r${runs}` && run.status === 'completed';
    });
  }

  test('of a long conversation gets all of it', { timeout: 300_000 }, async (t) => {
    await fill(t, 'slow1');
    const events = await openEvents(t, server, 'slow1', { query: '?after=0' });
    for (let i = 0; i < 5; i++) { // takes a little, then nothing while others work
      await events.next();
      events.response.pause();
      await talk(t, server, 'hi');
      events.response.resume();
    }
    await events.run(`r${RUNS}`);
    assert.ok(events.facts.length >= RUNS * FACTS_OF_A_RUN);
    assert.ok(events.facts.filter(({ type }) => type === 'text.message.end').every(({ data }) => data.content === BIG));
    assert.equal(events.facts.filter(({ type }) => type === 'text.message.end').length, RUNS);
  });

  test('that stops amid live runs catches up when it goes on', { timeout: 300_000 }, async (t) => {
    const events = await openEvents(t, server, 'slow2');
    await say('slow2', 'r0');
    await events.run('r0');
    events.response.pause();
    await fill(t, 'slow2', FEW, 'huge'); // more than the shared log keeps, and no longer than a reader may stop
    events.response.resume();
    await events.run(`r${FEW}`);
    const resets = events.facts.filter(({ type }) => type === 'reset');
    assert.deepEqual([...new Set(resets.map(({ data }) => data.reason))], ['lagging'], 'it forgets previews that it will not see the end of');
    const facts = events.facts.filter(({ type }) => type !== 'reset');
    assert.deepEqual(facts.map(({ seq }) => seq), range(1, facts.length));
    assert.equal(facts.filter(({ type }) => type === 'text.message.end').length, FEW + 1);
    await say('slow2', 'last');
    await events.run('last');
  });
});

describe('what ends a stream', () => {
  async function guarded(t) {
    const other = await Home.make(t, home.env);
    await other.start();
    const key = await other.addKey('ann');
    return { other, at: other.server, key };
  }
  async function signIn(at, key) {
    const answer = await postJson(at, '/api/v1/session', { key });
    assert.equal(answer.status, 200);
    return { cookie: answer.cookies[0].split(';')[0] };
  }
  const origin = (at) => ({ origin: at.url });
  const isOver = (events) => within(END_MS_MAX, 'the end of the stream', events.over());

  test('the thread is deleted', async (t) => {
    await talk(t, server, { threadId: 'del', runId: 'r1', messages: [user('hi')] });
    await say('del', 'r2', 'endless');
    const events = await openEvents(t, server, 'del');
    await events.until(({ type }) => type === 'text.delta');
    assert.equal((await call(server, 'DELETE', `${AGENT}/threads/del`)).status, 204);
    assert.equal(await isOver(events), 'end');
    assert.ok(!events.all.some(endOf('r2')));
  });

  test('its session ends; others go on', async (t) => {
    const { at, key } = await guarded(t);
    const sessions = [await signIn(at, key), await signIn(at, key)];
    const streams = [];
    for (const headers of [...sessions, bearer(key)]) streams.push(await openEvents(t, at, 'mine', { headers }));
    const out = await call(at, 'DELETE', '/api/v1/session', { headers: { ...sessions[0], ...origin(at) } });
    assert.equal(out.status, 204);
    assert.equal(await isOver(streams[0]), 'end');
    await accepted(at, { threadId: 'mine', runId: 'r1', messages: [user('hi')] }, bearer(key));
    for (const events of streams.slice(1)) assert.equal((await events.run('r1')).length, FACTS_OF_A_RUN);
  });

  test('its key is revoked: with it the sessions and tickets of the key, and nobody else', async (t) => {
    const { other, at, key } = await guarded(t);
    const bob = await other.addKey('bob');
    const { ticket } = (await call(at, 'POST', '/api/v1/tickets', { headers: bearer(key) })).json();
    const streams = [
      await openEvents(t, at, 'mine', { headers: bearer(key) }),
      await openEvents(t, at, 'mine', { headers: await signIn(at, key) }),
      await openEvents(t, at, 'mine', { query: `?ticket=${ticket}` }),
    ];
    const his = await openEvents(t, at, 'mine', { headers: bearer(bob) });
    await accepted(at, { threadId: 'mine', runId: 'r1', messages: [user('hi')] }, bearer(key));
    for (const events of streams) await events.run('r1');
    await other.revokeKey(key);
    for (const events of streams) assert.equal(await isOver(events), 'end');
    await accepted(at, { threadId: 'mine', runId: 'r1', messages: [user('ho')] }, bearer(bob));
    assert.equal((await his.run('r1')).length, FACTS_OF_A_RUN);
  });

  test('a ticket opens one stream', async (t) => {
    const { at, key } = await guarded(t);
    const { ticket } = (await call(at, 'POST', '/api/v1/tickets', { headers: bearer(key) })).json();
    const events = await openEvents(t, at, 'mine', { query: `?ticket=${ticket}` });
    assertProblem(await get(at, `/runs/mine/events?ticket=${ticket}`), 401, 'unauthenticated');
    await accepted(at, { threadId: 'mine', runId: 'r1', messages: [user('hi')] }, bearer(key));
    assert.equal((await events.run('r1')).length, FACTS_OF_A_RUN);
  });
});

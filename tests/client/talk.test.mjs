// SPDX-License-Identifier: Apache-2.0
//
// The built client against a started server, the same over server-sent events and over a WebSocket: conversations,
// cuts and kills under an open reader, answers that are lost on their way, two clients of one conversation.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { WebSocket } from 'ws';

import { waitFor } from '../api/talk.mjs';
import { approve, FermataError, isOver, start, STEP_MS_MAX, take, untilEnd, within } from './kit.mjs';

const soon = (answer) => within(STEP_MS_MAX, 'an answer', answer);

// A way to talk: {client, events, run, answer, follow}. `own` are options of the client.
const WAYS = {
  'server-sent events': (t, place, own = {}) => {
    const client = place.client(own);
    const signal = untilEnd(t);
    return {
      client, run: (input) => soon(client.run(input)), answer: (id, body) => soon(client.answer(id, body)),
      events: (threadId, more) => client.events(threadId, { signal, ...more }), follow: (threadId) => client.follow(threadId, { signal }),
    };
  },
  'a WebSocket': (t, place, own = {}) => {
    const client = place.client({ WebSocket, ...own });
    const connection = client.connect({ signal: untilEnd(t) });
    return {
      client, connection, run: (input) => soon(connection.run(input)), answer: (id, body) => soon(connection.answer(id, body)),
      events: (threadId, more) => connection.subscribe(threadId, more), follow: (threadId) => client.follow(threadId, { via: connection, signal: untilEnd(t) }),
    };
  },
};

const isFact = ({ seq }) => seq !== undefined;
const seqs = (events) => events.filter(isFact).map(({ seq }) => seq);
const upTo = (n) => Array.from({ length: n }, (_, i) => i + 1);
const waits = (type) => ({ run, interactions }) => run?.status === 'waiting' && interactions.some((one) => one.type === type);
const over = (status = 'completed') => ({ run }) => run?.status === status;
const said = ({ messages }) => messages.filter(({ role }) => role === 'assistant').map(({ content }) => content);

// Ends the server at once and starts it again at the same address.
async function killAndStart({ home }) {
  const { port } = home.server;
  await home.server.kill9();
  home.server = null;
  await home.start({ FERMATA_LISTEN: `127.0.0.1:${port}` });
}

// The state once it holds.
const until = async (states, holds) => (await take(states, holds)).at(-1);

for (const [name, way] of Object.entries(WAYS)) {
  describe(name, () => {
    test('a chat', async (t) => {
      const { run, events, client } = way(t, await start(t));
      const accepted = await run({ text: 'hello' });
      assert.deepEqual([accepted.created, accepted.seq], [true, 0]);
      const seen = await take(events(accepted.threadId, { after: 0 }), isOver);
      assert.equal(seen[0].type, 'connection.open');
      assert.deepEqual(seqs(seen), upTo(seen.at(-1).seq));
      assert.ok(seen.slice(1).every(({ threadId, ts }) => threadId === accepted.threadId && ts));
      const end = seen.find(({ type }) => type === 'text.message.end');
      assert.equal(end.data.content, 'Hello. 你好。');
      assert.equal(seen.filter(({ type }) => type === 'text.delta').map(({ data }) => data.delta).join(''), end.data.content);
      assert.deepEqual((await client.threads()).threads.map(({ threadId, title }) => [threadId, title]), [[accepted.threadId, 'hello']]);
    });

    test('a question and an approval, followed', async (t) => {
      const { run, answer, follow } = way(t, await start(t));
      const { threadId } = await run({ threadId: 'm', text: 'meeting' });
      const states = follow(threadId);
      const asked = await until(states, waits('ask_user'));
      assert.deepEqual(asked.interactions[0].choices.map(({ label }) => label), ['30 minutes', '1 hour']);
      assert.equal((await answer(asked.interactions[0].interactionId, { choices: ['c2'] })).status, 'resolved');
      const confirm = await until(states, waits('confirm'));
      assert.equal((await answer(confirm.interactions[0].interactionId, approve(confirm.interactions[0]))).status, 'resolved');
      const done = await until(states, over());
      assert.deepEqual(done.messages.map(({ role }) => role), ['user', 'assistant', 'clarify', 'tool', 'assistant', 'interaction', 'tool', 'assistant']);
      assert.deepEqual(done.messages.filter(({ metadata }) => metadata.requestId).map(({ metadata: { status, answer: text, decision } }) => [status, text, decision]),
        [['answered', '1 hour', undefined], ['resolved', undefined, 'approve']]);
      assert.ok(done.messages[6].uiSchema, 'the card of the result');
      assert.deepEqual([done.interactions, done.run.step], [[], undefined]);
    });

    test('a free answer, and a refused one', async (t) => {
      const { run, answer, follow, client } = way(t, await start(t));
      const { threadId } = await run({ text: 'ask' });
      const states = follow(threadId);
      const { interactions: [{ interactionId }] } = await until(states, waits('ask_user'));
      await assert.rejects(answer(interactionId, { choices: ['c9'] }), (error) => error instanceof FermataError && error.code === 'invalid_field' && !!error.field);
      await answer(interactionId, { answer: '2 days' });
      const done = await until(states, over());
      assert.equal(done.messages[2].metadata.answer, '2 days');
      await assert.rejects(client.answer(interactionId, { answer: 'late' }), ({ code, status, interaction }) =>
        code === 'already_resolved' && status === 409 && interaction.answer.answer === '2 days');
      await assert.rejects(answer(interactionId, { answer: 'late' }), ({ code, interaction }) => code === 'already_resolved' && interaction.answer.answer === '2 days');
    });

    test('killed while it waits, under an open reader', async (t) => {
      const place = await start(t);
      const { run, answer, events } = way(t, place);
      const { threadId } = await run({ threadId: 'k', text: 'meeting' });
      const reader = events(threadId, { after: 0 });
      const seen = await take(reader, ({ type }) => type === 'run.finished');
      await killAndStart(place);
      seen.push(...await take(reader, ({ type }) => type === 'connection.open'));
      const ask = seen.find(({ type }) => type === 'interaction.request').data;
      await answer(ask.interactionId, { choices: ['c1'] });
      seen.push(...await take(reader, ({ type }) => type === 'run.finished'));
      await killAndStart(place);
      const confirm = seen.findLast(({ type }) => type === 'interaction.request').data;
      await answer(confirm.interactionId, approve(confirm));
      seen.push(...await take(reader, isOver));
      assert.deepEqual(seqs(seen), upTo(seen.at(-1).seq), 'no fact is lost or repeated');
      assert.ok(seen.filter(({ type }) => type === 'connection.open').length >= 3);
      assert.equal(seen.filter(({ type, data }) => type === 'tool.call.result' && data.toolName === 'calendar_write').length, 1);
    });

    test('killed while it speaks, followed', async (t) => {
      const place = await start(t);
      const { run, follow, client } = way(t, place);
      const { threadId } = await run({ text: 'patient' });
      const states = follow(threadId);
      for (let kill = 0; kill < 3; kill++) {
        await until(states, ({ previews, connected }) => connected && previews.some(({ content }) => content.length > 20));
        await killAndStart(place);
      }
      const done = await until(states, ({ run: now }) => now?.status === 'completed' || now?.status === 'failed');
      assert.equal(done.run.status, 'completed');
      assert.deepEqual(said(done), ['one two three four five six seven eight nine ten '.repeat(4)]);
      assert.deepEqual(done.messages.map(({ id }) => id), (await client.history(threadId)).messages.map(({ id }) => id));
    });

    test('two clients see the same', async (t) => {
      const place = await start(t);
      const one = way(t, place), other = way(t, place);
      const { threadId } = await one.run({ text: 'meeting' });
      const states = [one.follow(threadId), other.follow(threadId)];
      const asked = await Promise.all(states.map((each) => until(each, waits('ask_user'))));
      const id = asked[0].interactions[0].interactionId;
      const answers = await Promise.allSettled([one.answer(id, { choices: ['c1'] }), other.answer(id, { choices: ['c2'] })]);
      assert.deepEqual(answers.map(({ status }) => status).sort(), ['fulfilled', 'rejected']);
      const winner = answers.find(({ value }) => value).value, { reason } = answers.find(({ reason: why }) => why);
      assert.deepEqual(reason.interaction.answer, winner.answer);
      const confirms = await Promise.all(states.map((each) => until(each, waits('confirm'))));
      await other.answer(confirms[1].interactions[0].interactionId, { decision: 'reject', comment: 'Not today' });
      const [a, b] = await Promise.all(states.map((each) => until(each, over())));
      const plain = (state) => ({ ...state, loaded: 0 });
      assert.deepEqual(plain(a), plain(b));
      const late = (await take(way(t, place).follow(threadId), over())).at(-1);
      assert.deepEqual(plain(late), plain(a), 'and so does one that comes later');
    });

    test('a bad cursor: the reset is shown, and the stream goes on behind it', async (t) => {
      const { run, events, follow } = way(t, await start(t));
      const { threadId } = await run({ text: 'hello' });
      const states = follow(threadId);
      const { seq } = await until(states, over());
      await states.return();
      const reader = events(threadId, { after: 999 });
      const [, reset] = await take(reader, ({ type }) => type === 'reset');
      assert.deepEqual([reset.seq, reset.data.seq], [seq, seq]);
      await run({ threadId, text: 'hello' });
      const seen = await take(reader, isOver);
      assert.deepEqual(seqs(seen), upTo(seen.at(-1).seq).slice(seq));
    });

    test('a follower that is told of a bad cursor loads the history anew', async (t) => {
      const place = await start(t);
      let spoilt = 0;
      class Spoiling extends WebSocket {
        send(text) {
          const frame = JSON.parse(text);
          if (frame.after !== undefined && !spoilt++) frame.after = 999;
          super.send(JSON.stringify(frame));
        }
      }
      const spoilingFetch = (url, init) => {
        if (init.headers.has('last-event-id') && !spoilt++) init.headers.set('last-event-id', '999');
        return fetch(url, init);
      };
      const { run, answer, follow } = way(t, place, { fetch: spoilingFetch, WebSocket: Spoiling });
      const { threadId } = await run({ text: 'meeting' });
      const states = follow(threadId);
      const { interactions: [{ interactionId }] } = await until(states, waits('ask_user'));
      await killAndStart(place);
      await answer(interactionId, { choices: ['c1'] });
      const confirm = await until(states, waits('confirm'));
      assert.equal(spoilt >= 1, true);
      const fresh = await until(way(t, place).follow(threadId), waits('confirm'));
      assert.deepEqual({ ...confirm, loaded: 0 }, { ...fresh, loaded: 0 });
    });

    test('a run is repeated by its name when its answer is lost', async (t) => {
      const place = await start(t);
      const { run, lost, client } = losing(t, name, way, place);
      const accepted = await run({ threadId: 'l', text: 'hello' });
      assert.equal(lost(), 1);
      await waitFor('its end', async () => (await client.current('l')).status === 'completed');
      const { messages } = await client.history('l');
      assert.deepEqual(messages.map(({ role }) => role), ['user', 'assistant']);
      assert.equal(messages[0].metadata.run_id, accepted.runId);
    });

    test('an answer is repeated when its answer is lost', async (t) => {
      const place = await start(t);
      const { threadId } = await place.client().run({ threadId: 'l', text: 'book' });
      const [open] = await waitFor('the question', async () => {
        const { interactions } = await place.client().interactions({ threadId });
        return interactions.length && interactions;
      });
      const { answer, lost, client } = losing(t, name, way, place);
      assert.equal((await answer(open.interactionId, approve(open))).status, 'resolved');
      assert.equal(lost(), 1);
      await waitFor('its end', async () => (await client.current('l')).status === 'completed');
      assert.equal((await client.history('l')).messages.filter(({ role }) => role === 'tool').length, 1);
    });

    test('a key is used, and a wrong one told', async (t) => {
      const place = await start(t);
      const key = await place.home.addKey('ann');
      const { run, events } = way(t, place, { key });
      const { threadId } = await run({ text: 'hello' });
      await take(events(threadId, { after: 0 }), isOver);
      for (const bad of [undefined, 'fk_wrong']) {
        const stranger = way(t, place, bad === undefined ? {} : { key: bad });
        await assert.rejects(take(stranger.events(threadId, { after: 0 }), isOver), ({ code, status }) => code === 'unauthenticated' && status === 401);
        await assert.rejects(stranger.run({ text: 'hello' }), ({ code }) => code === 'unauthenticated');
      }
    });

    test('a signal ends a reader at once', async (t) => {
      const { run, events } = way(t, await start(t));
      const { threadId } = await run({ text: 'ask' });
      const control = new AbortController();
      const reader = events(threadId, { after: 0, signal: control.signal });
      await take(reader, ({ type }) => type === 'run.finished');
      const next = reader.next();
      control.abort();
      assert.deepEqual(await within(STEP_MS_MAX, 'the end', next), { done: true, value: undefined });
    });
  });
}

// The way, with the first answer to something that is sent lost between server and client.
function losing(t, name, way, place) {
  let count = 0;
  if (name === 'a WebSocket') {
    class Losing extends WebSocket {
      set onmessage(take_) {
        super.onmessage = take_ && ((event) => {
          const { type, data } = JSON.parse(event.data);
          if (count || (type === 'ack' && (data.sessionId || data.inbox))) return take_(event);
          count++;
          this.terminate();
        });
      }
    }
    return { ...way(t, place, { WebSocket: Losing }), lost: () => count };
  }
  const losingFetch = async (url, init) => {
    const response = await fetch(url, init);
    if (init.method !== 'POST' || count++) return response;
    await response.text();
    throw new TypeError('the answer was lost');
  };
  const made = way(t, place, { fetch: losingFetch });
  return { ...made, lost: () => Math.min(count, 1) };
}

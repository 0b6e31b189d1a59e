// SPDX-License-Identifier: Apache-2.0
//
// One thread, several windows: messages that come from elsewhere, a second client in the middle of a run, stopping, and going
// away. For both clients.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { until } from '../api/asking.mjs';
import { accepted, cancel, runOf, user, waitFor } from '../api/talk.mjs';
import { ask, order, startPlace, tool } from '../api/people.mjs';
import { assertSame, CLIENTS, newThread, plain, reload, story, Tab } from './agui.mjs';

const LONG = Array.from({ length: 40 }, (_, i) => `word ${i}, 字 👋`).join(' ');
const SLOW = { chunk: 4, gap_ms: 20 };
const LINES = [
  { match: '^hello', turns: [{ text: 'Hello.' }] },
  { match: '^other', turns: [{ text: 'Other.' }] },
  { match: '^wait', turns: [{ text: 'I wait.', calls: [tool('wait', { until: 'go' })] }, { text: 'Done.' }] },
  { match: '^ship', turns: [{ text: 'I ship.', calls: [tool('ship', { until: 'sea' })] }, { text: 'Done.' }] },
  { match: '^ask and wait', turns: [{ text: 'One moment.', calls: [tool('wait', { until: 'go' }), ask('How long?')] }, { text: 'Done.' }] },
  { match: '^ask', turns: [{ text: 'One moment.', calls: [ask('How long?')] }, { text: 'Done.' }] },
  { match: '^buy', turns: [{ calls: [order('tea')] }, { text: 'Done.' }] },
  { match: '^long', turns: [{ text: LONG, ...SLOW }] },
  { match: '^ponder', turns: [{ reasoning: LONG, text: 'So.', ...SLOW }] },
  { match: '^detail', turns: [{ text: 'I look.', calls: [tool('look', { reply: LONG }), tool('look', { reply: LONG })], ...SLOW }, { text: 'Done.' }] },
];

const byId = (messages) => [...messages].sort((a, b) => (a.id < b.id ? -1 : 1));
const began = ({ type }) => type === 'RUN_STARTED';
const called = ({ type }) => type === 'TOOL_CALL_END';

for (const client of CLIENTS) {
  async function place(t, assistant = {}) {
    const { home, street, asked } = await startPlace(t, LINES, { assistant });
    const { server } = home;
    const threadId = newThread();
    const open = () => new Tab(client, server, threadId);
    return { server, street, asked, threadId, open, tab: open() };
  }

  // A run that waits in a tool.
  async function held(t, text = 'wait', assistant = {}) {
    const here = await place(t, assistant);
    const turn = here.tab.write(text);
    await turn.until('the call', called);
    await here.street.arrived(text === 'ship' ? 'ship' : 'wait');
    return { ...here, turn };
  }

  describe(`HttpAgent ${client.version}`, () => {
    test('a message from elsewhere between two runs', async (t) => {
      const { server, tab, threadId } = await place(t);
      await tab.say('hello');
      await accepted(server, { threadId, messages: [user('other')] });
      await until(server, threadId, 'completed');
      const turn = await tab.say('hello');
      // A client puts what it did not know behind what it has: first it has to drop its newest message, then it gets all.
      assert.deepEqual(turn.of('MESSAGES_SNAPSHOT').map(({ messages }) => messages.length), [2, 5]);
      await assertSame(tab, server);
    });

    test('a client that looks in between gets it in order', async (t) => {
      const { server, tab, threadId } = await place(t);
      await tab.say('hello');
      await accepted(server, { threadId, messages: [user('other')] });
      await until(server, threadId, 'completed');
      const look = await tab.run();
      assert.deepEqual([look.outcome, look.of('TEXT_MESSAGE_START').length], ['success', 0]);
      await tab.say('hello');
      await assertSame(tab, server);
    });

    test('a message from elsewhere during a run waits for its turn', async (t) => {
      const { server, street, tab, threadId, turn } = await held(t);
      await accepted(server, { threadId, messages: [user('other')] });
      await turn.until('the news', ({ type, name }) => type === 'CUSTOM' && name === 'fermata.run.queued');
      await street.release('go');
      assert.equal((await turn.end()).outcome, 'success');
      assert.ok(!JSON.stringify(tab.messages).includes('Other.'), 'the next run is not of this request');
      await until(server, threadId, 'completed');
      await waitFor('the next run', async () => (await story(server, threadId)).length === 6);
      await tab.run();
      await assertSame(tab, server);
    });

    test('a question answered by a message from elsewhere, while the run goes on', async (t) => {
      const { server, street, asked, tab, threadId, turn } = await held(t, 'ask and wait');
      const { answered } = await accepted(server, { threadId, messages: [user('an hour', 'u-elsewhere')] });
      assert.equal(answered.length, 1);
      await turn.until('the answer', ({ type, name }) => type === 'CUSTOM' && name === 'fermata.interaction.resolved');
      await turn.until('the message', ({ type, messages }) => type === 'MESSAGES_SNAPSHOT' && messages.some(({ id }) => id === 'u-elsewhere'));
      await street.release('go');
      assert.equal((await turn.end()).outcome, 'success');
      assert.ok(asked().at(-1).messages.some(({ role, text }) => role === 'tool' && text === 'an hour'));
      assert.deepEqual(byId(tab.messages), byId(await story(server, threadId)));
      await assertSame(tab, server, { live: false });
    });

    test('a question answered by a message from elsewhere, while nothing runs', async (t) => {
      const { server, tab, threadId } = await place(t);
      assert.equal((await tab.say('ask')).outcome, 'interrupt');
      await accepted(server, { threadId, messages: [user('an hour')] });
      await until(server, threadId, 'completed');
      const turn = await tab.resume('two hours');
      assert.equal(turn.outcome, 'success');
      assert.deepEqual(tab.open, []);
      await assertSame(tab, server);
    });

    test('an approval that is declined by a message from elsewhere', async (t) => {
      const { server, street, tab, threadId } = await place(t);
      assert.equal((await tab.say('buy')).outcome, 'interrupt');
      await accepted(server, { threadId, messages: [user('rather not')] });
      await until(server, threadId, 'completed');
      assert.equal((await tab.resume({ approved: true })).outcome, 'success');
      assert.equal(street.visits.length, 0);
      await assertSame(tab, server, { live: false });
    });

    for (const [text, what] of [['long', 'TEXT_MESSAGE_CONTENT'], ['ponder', 'REASONING_MESSAGE_CONTENT'], ['detail', 'TOOL_CALL_ARGS']]) {
      test(`a second client in the middle of ${what}`, async (t) => {
        const { server, tab, open, threadId } = await place(t);
        const turn = tab.write(text);
        await turn.until('a few pieces', () => turn.of(what).length > 5);
        const second = open();
        const joined = second.start();
        await joined.until('the messages', ({ type }) => type === 'MESSAGES_SNAPSHOT');
        await Promise.all([turn.end(), joined.end()]);
        assert.deepEqual([turn.outcome, joined.outcome], ['success', 'success']);
        const held = await story(server, threadId);
        assert.deepEqual(tab.messages, held);
        assert.deepEqual(second.messages, held);
        const [{ messages }] = joined.of('MESSAGES_SNAPSHOT');
        const partial = JSON.stringify(plain(messages));
        assert.ok(partial.length < JSON.stringify(held).length, 'it came in the middle');
        assert.ok(joined.of(what).length > 1, 'and got the rest as it was written');
        await assertSame(second, server);
      });
    }

    test('a second client while a tool runs', async (t) => {
      const { server, street, tab, open, turn } = await held(t);
      const second = open();
      const joined = second.start();
      await joined.until('the messages', ({ type }) => type === 'MESSAGES_SNAPSHOT');
      await street.release('go');
      await Promise.all([turn.end(), joined.end()]);
      assert.deepEqual(joined.of('TOOL_CALL_RESULT'), turn.of('TOOL_CALL_RESULT'));
      assert.deepEqual(second.messages, tab.messages);
      await assertSame(second, server);
    });

    test('a second client that writes waits for its turn, and gets its own run', async (t) => {
      const { server, street, tab, open, threadId, turn } = await held(t);
      const second = open();
      const next = second.write('hello');
      await waitFor('the queue', async () => (await runOf(server, threadId)).queue?.length === 1);
      assert.deepEqual(next.events, [], 'it has not begun');
      await street.release('go');
      await turn.end();
      assert.equal((await next.end()).outcome, 'success');
      assert.equal(next.of('RUN_STARTED')[0].runId, next.runId);
      await assertSame(second, server);
      await tab.run();
      await assertSame(tab, server);
    });

    test('a busy thread that takes no second run', async (t) => {
      const { server, street, open, turn } = await held(t, 'wait', { busy: 'reject' });
      const second = open();
      assert.deepEqual(await second.write('hello').refusal(), { status: 409, code: 'busy', field: undefined });
      await street.release('go');
      await turn.end();
      assert.equal((await second.run()).outcome, 'success', 'the same message is taken now');
      await assertSame(second, server, { live: false });
    });

    test('the same request again joins the run that it began', async (t) => {
      const { server, street, tab, threadId, turn } = await held(t);
      const again = new Tab(client, server, threadId);
      again.agent.setMessages(turn.input.messages);
      const joined = again.start({ runId: turn.runId });
      await joined.until('the run', began);
      await street.release('go');
      await Promise.all([turn.end(), joined.end()]);
      assert.equal(street.ran('wait'), 1);
      assert.deepEqual(again.messages, tab.messages);
      const late = new Tab(client, server, threadId);
      late.agent.setMessages(turn.input.messages);
      assert.equal((await late.run({ runId: turn.runId })).outcome, 'success');
      assert.equal(street.ran('wait'), 1);
      await assertSame(late, server);
    });

    const stopped = client.profile === 'new' ? ['cancelled', undefined] : ['error', 'cancelled'];

    test('a run that is cancelled while a tool runs', async (t) => {
      const { server, tab, threadId, turn } = await held(t);
      assert.equal((await cancel(server, threadId)).status, 202);
      await turn.end();
      assert.deepEqual([turn.outcome, turn.code], stopped);
      assert.equal((await runOf(server, threadId)).status, 'cancelled');
      await assertSame(tab, server);
      assert.equal((await tab.say('hello')).outcome, 'success');
      await assertSame(tab, server);
    });

    for (const text of ['long', 'ponder', 'detail']) {
      test(`a run that is cancelled in the middle of a turn: ${text}`, async (t) => {
        const { server, tab, threadId } = await place(t);
        const turn = tab.write(text);
        await turn.until('a few pieces', () => turn.types().filter((type) => /CONTENT|ARGS/.test(type)).length > 5);
        assert.equal((await cancel(server, threadId)).status, 202);
        await turn.end();
        assert.deepEqual([turn.outcome, turn.code], stopped);
        // A thought that was not whole is no row; a client keeps it all the same until a list of messages has another.
        assert.deepEqual(tab.messages.filter(({ role }) => role !== 'reasoning'), await story(server, threadId));
        await assertSame(tab, server, { live: text !== 'ponder' });
      });
    }

    test('a run that is cancelled while it waits for a person', async (t) => {
      const { server, street, tab, threadId } = await place(t);
      assert.equal((await tab.say('buy')).outcome, 'interrupt');
      assert.equal((await cancel(server, threadId)).status, 202);
      const turn = await tab.resume({ approved: true });
      assert.deepEqual([turn.outcome, turn.code], stopped);
      assert.equal(street.visits.length, 0);
      await assertSame(tab, server);
      // Clients before 1.0 hear of it as an error, which settles no interrupt for them: they name it once more.
      const resume = tab.open.map(({ id }) => ({ interruptId: id, status: 'cancelled' }));
      assert.equal((await tab.say('hello', resume.length ? { resume } : {})).outcome, 'success');
      assert.deepEqual(tab.open, []);
      await assertSame(tab, server);
    });

    for (const leave of ['abortRun', 'detachActiveRun']) {
      test(`a client that goes away (${leave}) stops nothing`, async (t) => {
        const { server, street, tab, threadId, turn } = await held(t);
        await tab.agent[leave]();
        await turn.cut();
        await street.release('go');
        await until(server, threadId, 'completed');
        assert.equal((await tab.run()).outcome, 'success');
        assert.equal(tab.messages.at(-1).content, 'Done.');
        await assertSame(tab, server);
      });
    }

    test('on_disconnect: cancel ends the run when the last client has gone', async (t) => {
      const { server, tab, open, threadId, turn } = await held(t, 'wait', { on_disconnect: 'cancel' });
      const second = open();
      const joined = second.start();
      await joined.until('the messages', ({ type }) => type === 'MESSAGES_SNAPSHOT');
      tab.agent.abortRun();
      await turn.cut();
      assert.equal((await runOf(server, threadId)).status, 'running', 'somebody is still there');
      second.agent.abortRun();
      await joined.cut();
      await until(server, threadId, 'cancelled');
      const { turn: after } = await reload(client, server, threadId);
      assert.deepEqual([after.outcome, after.code], stopped);
      await assertSame(tab, server, { live: false });
    });

    test('on_disconnect: pause asks before it goes on', async (t) => {
      const { server, street, tab, threadId, turn } = await held(t, 'wait', { on_disconnect: 'pause' });
      tab.agent.abortRun();
      await turn.cut();
      await street.release('go');
      await until(server, threadId, 'waiting');
      const { tab: fresh, turn: found } = await reload(client, server, threadId);
      assert.equal(found.outcome, 'interrupt');
      assert.deepEqual(fresh.open.map(({ reason }) => reason), ['fermata:connection_lost']);
      assert.equal((await fresh.resume({ decision: 'continue' })).outcome, 'success');
      assert.equal(fresh.messages.at(-1).content, 'Done.');
      await assertSame(fresh, server);
    });
  });
}

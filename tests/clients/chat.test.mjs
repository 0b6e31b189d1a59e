// SPDX-License-Identifier: Apache-2.0
//
// Runs without a pause, seen by both clients: words, thoughts, tools and cards, attempts that are taken back, and ends that are
// no success.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { get } from '../api/talk.mjs';
import { startPlace, tool } from '../api/people.mjs';
import { allRows, assertSame, CLIENTS, factsTo, newThread, post, reload, Tab } from './agui.mjs';

const WORDS = 'Hello, 你好 👋\n"quoted" \\ \u2028 and\ttabs.';
const LINES = [
  { match: '^hello', turns: [{ text: WORDS, chunk: 3 }] },
  { match: '^think', turns: [{ reasoning: 'Let me see: 想一想。', text: 'So it is.', chunk: 2 }] },
  { match: '^only think', turns: [{ reasoning: 'Look first.', calls: [tool('look', { reply: 'seen' })] }, { reasoning: 'Now say it.', text: 'Seen.' }] },
  { match: '^tools', turns: [
    { text: 'I look around.', calls: [tool('look', { reply: { n: 1 } }), tool('show', { hints: { version: '2.1', intent: 'message', status: 'info', title: 'A card', body: 'x' } }),
      tool('fail'), tool('look', { reply: '三' })], chunk: 5 },
    { calls: [tool('look', { reply: 'again' })] }, { text: 'That is all.' }] },
  { match: '^card', turns: [{ text: 'See:', calls: [tool('show_card', { version: '2.1', intent: 'message', status: 'info', title: 'Mine', body: 'x' })] }] },
  { match: '^bare card', turns: [{ calls: [tool('show_card', { version: '2.1', intent: 'message', status: 'info', title: 'Mine', body: 'x' })] }] },
  { match: '^break in thought', turns: [{ reasoning: 'Hm.', text: 'It works in the end.', chunk: 4, fail: { at: 9, times: 1 } }] },
  { match: '^break', turns: [{ text: 'It works in the end.', calls: [tool('look', { reply: 'x' })], chunk: 4, fail: { at: 24, times: 2 } }, { text: 'Done.' }] },
  { match: '^refuse', turns: [{ text: 'Never said.', fail: { at: 'start', status: 400 } }] },
  { match: '^stop short', turns: [{ text: 'Never whole.', chunk: 2, fail: { at: 5, status: 401 } }] },
  { match: '^on and on', turns: [{ calls: [tool('look', { reply: 'more' })] }] },
];

const PNG = Buffer.from('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==', 'base64');
const NOTE = Buffer.from('Bring tea. 带茶。');

const of = (turn, ...types) => turn.events.filter(({ type }) => types.includes(type));

for (const client of CLIENTS) {
  const place = (t, options) => startPlace(t, LINES, options);

  describe(`HttpAgent ${client.version}`, () => {
    for (const path of ['/ag-ui/assistant', '/runs']) {
      test(`a plain answer, by POST ${path}`, async (t) => {
        const { home: { server } } = await place(t);
        const tab = new Tab(client, server, newThread(), { path });
        const turn = await tab.say('hello');
        assert.equal(turn.outcome, 'success');
        assert.deepEqual(turn.types().filter((type) => type !== 'TEXT_MESSAGE_CONTENT'), [
          'RUN_STARTED', 'STATE_SNAPSHOT', 'STEP_STARTED', 'TEXT_MESSAGE_START', 'STEP_FINISHED', 'STEP_STARTED', 'TEXT_MESSAGE_END', 'STEP_FINISHED', 'RUN_FINISHED']);
        assert.ok(turn.of('TEXT_MESSAGE_CONTENT').length > 1, 'it is streamed');
        assert.equal(tab.messages.at(-1).content, WORDS);
        const [{ usage }] = turn.of('RUN_FINISHED');
        assert.ok(usage[0].inputTokens > 0 && usage[0].outputTokens > 0);
        await assertSame(tab, server);
      });
    }

    test('turn after turn on one thread', async (t) => {
      const { home: { server }, asked } = await place(t);
      const tab = new Tab(client, server, newThread());
      for (const text of ['hello', 'think', 'tools', 'hello']) {
        const turn = await tab.say(text);
        assert.equal(turn.outcome, 'success');
        assert.deepEqual(turn.of('MESSAGES_SNAPSHOT'), [], 'the client has them all');
      }
      const users = asked().at(-1).messages.filter(({ role }) => role === 'user').map(({ text }) => text);
      assert.deepEqual(users, ['hello', 'think', 'tools', 'hello'], 'the history that a client sends again is not added again');
      await assertSame(tab, server);
    });

    test('what it thinks', async (t) => {
      const { home: { server } } = await place(t);
      const tab = new Tab(client, server, newThread());
      await tab.say('think');
      assert.deepEqual(tab.messages.map(({ role, content }) => [role, content]), [
        ['user', 'think'], ['reasoning', 'Let me see: 想一想。'], ['assistant', 'So it is.']]);
      await tab.say('only think');
      assert.deepEqual(tab.messages.slice(3).map(({ role }) => role), ['user', 'reasoning', 'assistant', 'tool', 'reasoning', 'assistant']);
      await assertSame(tab, server);
    });

    test('tools side by side, with their cards', async (t) => {
      const { home: { server } } = await place(t);
      const tab = new Tab(client, server, newThread());
      const turn = await tab.say('tools');
      const results = turn.of('TOOL_CALL_RESULT');
      assert.equal(results.length, 5);
      const starts = turn.of('TOOL_CALL_START');
      assert.deepEqual(starts.map(({ toolCallName }) => toolCallName), ['look', 'show', 'fail', 'look', 'look']);
      assert.equal(new Set(starts.slice(0, 4).map(({ parentMessageId }) => parentMessageId)).size, 1, 'all of one message');
      assert.equal(starts[0].parentMessageId, turn.of('TEXT_MESSAGE_START')[0].messageId);

      const facts = await factsTo(t, server, tab.threadId, ({ type }) => type === 'run.finished');
      for (const { data } of facts.filter(({ type }) => type === 'tool.call.result')) {
        const event = results.find(({ toolCallId }) => toolCallId === data.toolCallId);
        const { messageId, callId, toolName, args, result, error, content, ui } = data;
        assert.deepEqual([event.messageId, event.content], [messageId, content]);
        const told = { callId, toolName, args, ...(result === undefined ? {} : { result }), ...(error === undefined ? {} : { error }) };
        if (client.profile === 'new') {
          assert.deepEqual(event.metadata['fermata.result'], { ...told, summary: content });
          assert.deepEqual(event.metadata['fermata.ui'], ui);
          const held = tab.agent.messages.find(({ id }) => id === messageId);
          assert.deepEqual(held.metadata, event.metadata, 'it stays with the message');
        } else {
          for (const [name, value] of Object.entries({ ...told, ...(ui ? { ui } : {}) })) assert.deepEqual(event[name], value, name);
        }
      }
      const cards = results.filter((event) => event.ui ?? event.metadata?.['fermata.ui']);
      assert.ok(cards.length >= 1);
      const failed = facts.find(({ type, data }) => type === 'tool.call.result' && data.toolName === 'fail');
      assert.ok(failed.data.error);

      const { fresh } = await assertSame(tab, server);
      const rows = await allRows(server, tab.threadId);
      for (const row of rows.filter(({ role, uiSchema }) => role === 'tool' && uiSchema)) {
        const held = fresh.agent.messages.find(({ id }) => id === row.id);
        assert.deepEqual(held.metadata['fermata.ui'], row.uiSchema, 'the same card after a reload');
      }
    });

    for (const text of ['card', 'bare card']) {
      test(`the model's own card: ${text}`, async (t) => {
        const { home: { server } } = await place(t);
        const tab = new Tab(client, server, newThread());
        const turn = await tab.say(text);
        assert.deepEqual(of(turn, 'TOOL_CALL_START', 'TOOL_CALL_RESULT'), [], 'no call is seen');
        const row = (await allRows(server, tab.threadId)).find(({ role }) => role === 'assistant');
        assert.ok(row.uiSchema);
        const [end] = turn.of('TEXT_MESSAGE_END');
        assert.deepEqual(end.metadata['fermata.ui'], row.uiSchema);
        assert.deepEqual(tab.agent.messages.at(-1).metadata['fermata.ui'], row.uiSchema);
        const { fresh } = await assertSame(tab, server);
        assert.deepEqual(fresh.agent.messages.at(-1).metadata['fermata.ui'], row.uiSchema);
      });
    }

    test('an attempt that breaks off is taken back', async (t) => {
      const { home: { server } } = await place(t);
      const tab = new Tab(client, server, newThread());
      const turn = await tab.say('break');
      assert.equal(turn.outcome, 'success');
      const started = [...new Set(turn.of('TEXT_MESSAGE_START').map(({ messageId }) => messageId))];
      assert.equal(started.length, 4, 'two attempts that break off, the one that does not, and the last words');
      const snapshots = turn.of('MESSAGES_SNAPSHOT');
      assert.equal(snapshots.length, 2, 'one for each attempt');
      for (const [i, { messages }] of snapshots.entries()) {
        assert.deepEqual(messages.map(({ role }) => role), ['user'], `without the attempt ${i}`);
      }
      for (const id of started.slice(0, 2)) assert.ok(!JSON.stringify(tab.agent.messages).includes(id), 'nothing of it is left');
      await assertSame(tab, server);
    });

    // Clients keep every thought that they have seen until a list of messages has one. So what an attempt thought stays until
    // then: the next request brings such a list, since the ids differ.
    test('an attempt that breaks off behind a thought is taken back', async (t) => {
      const { home: { server } } = await place(t);
      const tab = new Tab(client, server, newThread());
      const turn = await tab.say('break in thought');
      assert.equal(turn.outcome, 'success');
      const [gone] = turn.of('TEXT_MESSAGE_START');
      assert.ok(!tab.messages.some(({ id }) => id === gone.messageId));
      assert.equal((await tab.run()).outcome, 'success');
      await assertSame(tab, server);
    });

    for (const text of ['refuse', 'stop short']) {
      test(`a model that will not: ${text}`, async (t) => {
        const { home: { server } } = await place(t);
        const tab = new Tab(client, server, newThread());
        const turn = await tab.say(text);
        assert.deepEqual([turn.outcome, turn.code], ['error', 'model_error']);
        assert.ok(turn.message);
        await assertSame(tab, server);
        const next = await tab.say('hello');
        assert.equal(next.outcome, 'success');
        await assertSame(tab, server);
      });
    }

    test('too many rounds', async (t) => {
      const { home: { server } } = await place(t, { assistant: { max_rounds: 2 } });
      const tab = new Tab(client, server, newThread());
      const turn = await tab.say('on and on');
      assert.equal(turn.outcome, 'success');
      assert.deepEqual(turn.of('RUN_FINISHED')[0].result, { outcome: 'exhausted' });
      await assertSame(tab, server);
    });

    test('pictures and files', async (t) => {
      const { home: { server } } = await place(t);
      const data = (bytes, mimeType) => ({ type: 'data', value: bytes.toString('base64'), mimeType });
      for (const [parts, bytes, mimeType, name] of [
        [[{ type: 'text', text: 'hello' }, { type: 'image', source: data(PNG, 'image/png') }], PNG, 'image/png', undefined],
        [[{ type: 'text', text: 'hello' }, { type: 'document', source: data(NOTE, 'text/plain'), metadata: { filename: 'note.txt' } }], NOTE, 'text/plain', 'note.txt'],
        [[{ type: 'text', text: 'hello' }, { type: 'binary', mimeType: 'image/png', data: PNG.toString('base64'), filename: 'dot.png' }], PNG, 'image/png', 'dot.png'],
      ]) {
        const tab = new Tab(client, server, newThread());
        assert.equal((await tab.say(parts)).outcome, 'success');
        assert.deepEqual((await tab.say('hello')).of('MESSAGES_SNAPSHOT'), [], 'the client has what it sent');
        const { tab: fresh } = await reload(client, server, tab.threadId);
        const [text, part] = fresh.agent.messages[0].content;
        assert.deepEqual(text, { type: 'text', text: 'hello' });
        const [url, type, filename] = client.profile === 'new' ? [part.source.value, part.source.mimeType, part.metadata?.filename] : [part.url, part.mimeType, part.filename];
        assert.deepEqual([type, filename], [mimeType, name]);
        const file = await fetch(new URL(url, server.url));
        assert.deepEqual(Buffer.from(await file.arrayBuffer()), bytes, 'its address gives the file');
        assert.deepEqual(fresh.messages.slice(1), tab.messages.slice(1));
        assert.equal((await fresh.say('hello')).outcome, 'success', 'it may be sent again as it came');
      }
    });

    test('state, context and properties are taken, and the state comes back', async (t) => {
      const { home: { server }, asked } = await place(t);
      const tab = new Tab(client, server, newThread());
      tab.agent.setState({ page: 7, nested: { empty: null } });
      const turn = await tab.say('hello', { context: [{ description: 'the page', value: 'Orders, no. 4711' }], forwardedProps: { timezone: 'Asia/Shanghai' } });
      assert.deepEqual(turn.of('STATE_SNAPSHOT')[0].snapshot, { page: 7, nested: { empty: null } });
      assert.deepEqual(tab.agent.state, { page: 7, nested: { empty: null } });
      assert.match(JSON.stringify(asked().at(-1)), /Orders, no\. 4711/, 'the model is told');
    });
  });
}

test('the bytes without a client', async (t) => {
  const { home: { server } } = await startPlace(t, LINES);
  for (const protocolVersion of ['1.0', undefined]) {
    for (const text of LINES.map(({ match }) => match.slice(1)).filter((text) => text !== 'on and on')) {
      const input = { threadId: newThread(), runId: 'r1', ...(protocolVersion ? { protocolVersion } : {}), messages: [{ id: 'u1', role: 'user', content: text }] };
      const answer = await post(server, input);
      assert.equal(answer.status, 200, answer.text);
      assert.deepEqual(answer.faults(), [], text);
      assert.match(answer.headers['cache-control'], /no-store|no-cache/);
    }
  }
});

test('what the agent can do', async (t) => {
  const { home: { server } } = await startPlace(t, LINES);
  const answer = await get(server, '/ag-ui/assistant/capabilities');
  assert.equal(answer.status, 200, answer.text);
  const told = answer.json();
  assert.deepEqual([told.humanInTheLoop.supported, told.humanInTheLoop.interrupts, told.transport.streaming], [true, true, true]);
  assert.ok(told.tools.items.some(({ name }) => name === 'order'));
  const unknown = await get(server, '/ag-ui/nobody/capabilities');
  assert.equal(unknown.status, 404);
});

// SPDX-License-Identifier: Apache-2.0
//
// Tools that the client has: the run ends with the call unanswered, and the client's next request brings the result. For both
// clients.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { until } from '../api/asking.mjs';
import { accepted, user, waitFor } from '../api/talk.mjs';
import { ask, order, startPlace, tool, toolNames } from '../api/people.mjs';
import { assertSame, CLIENTS, newThread, reload, story, Tab } from './agui.mjs';

const PICK = { name: 'pick_color', description: 'Lets the person pick a color.', parameters: { type: 'object', properties: { of: { type: 'array', items: { type: 'string' } } } } };
const PLACE = { name: 'get_place', description: 'Where the person is.', parameters: { type: 'object' } };
const TOOLS = [PICK, PLACE];
const pick = tool('pick_color', { of: ['red', '蓝'] });
const LINES = [
  { match: '^color', turns: [{ text: 'Your choice:', calls: [pick] }, { text: 'Fine.' }] },
  { match: '^both', turns: [{ calls: [pick, tool('get_place')] }, { text: 'Fine.' }] },
  { match: '^mixed', turns: [{ calls: [tool('look', { reply: 'seen' }), pick, tool('look', { reply: 'too' })] }, { text: 'Fine.' }] },
  { match: '^question', turns: [{ calls: [pick, ask('How long?')] }, { text: 'Fine.' }] },
  { match: '^approval', turns: [{ calls: [order('tea'), pick] }, { text: 'Fine.' }] },
  { match: '^twice', turns: [{ calls: [pick] }, { calls: [tool('get_place')] }, { text: 'Fine.' }] },
  { match: '^order', turns: [{ calls: [order('tea')] }, { text: 'Fine.' }] },
  { match: '^hello', turns: [{ text: 'Hello.' }] },
];

// Calls that nobody has answered, as any client can see them.
function unanswered(messages) {
  const answered = new Set(messages.flatMap(({ toolCallId }) => toolCallId ?? []));
  return messages.flatMap(({ toolCalls = [] }) => toolCalls).filter(({ id }) => !answered.has(id));
}

const told = (asked) => {
  const { messages } = asked().at(-1);
  const last = messages.findLastIndex(({ role }) => role === 'assistant');
  return messages.slice(last + 1).filter(({ role }) => role === 'tool').map(({ text }) => text);
};

for (const client of CLIENTS) {
  // A run that ends with calls for the client: {tab, turn, calls, ...}.
  async function pending(t, text, { names = ['pick_color'], outcome = 'success', ...options } = {}) {
    const { home, street, asked } = await startPlace(t, LINES, options);
    const tab = new Tab(client, home.server, newThread());
    const turn = await tab.say(text, { tools: TOOLS });
    assert.equal(turn.outcome, outcome);
    const calls = unanswered(tab.agent.messages).filter(({ function: { name } }) => TOOLS.some((one) => one.name === name));
    assert.deepEqual(calls.map((call) => call.function.name), names);
    if (outcome === 'success' && client.profile === 'new') assert.deepEqual(turn.pending, calls.map(({ id }) => id));
    return { home, server: home.server, street, asked, tab, turn, calls };
  }

  let count = 0;
  const give = (tab, call, content, more = {}) => {
    const message = { id: `given-${client.profile}-${++count}`, role: 'tool', toolCallId: call.id, content, ...more };
    tab.agent.addMessage(message);
    return message;
  };

  describe(`HttpAgent ${client.version}`, () => {
    test('a call for the client, and its result', async (t) => {
      const { server, asked, tab, turn, calls } = await pending(t, 'color');
      assert.deepEqual(turn.of('TOOL_CALL_RESULT'), []);
      assert.deepEqual(JSON.parse(calls[0].function.arguments), { of: ['red', '蓝'] });
      assert.ok(toolNames(asked().at(-1)).includes('pick_color'), 'the model is offered it');
      const { id } = give(tab, calls[0], '蓝');
      const end = await tab.run({ tools: TOOLS });
      assert.equal(end.outcome, 'success');
      assert.deepEqual(told(asked), ['蓝']);
      assert.ok(tab.messages.some((message) => message.id === id && message.role === 'tool'), 'under the id that the client gave');
      assert.equal(tab.messages.at(-1).content, 'Fine.');
      await assertSame(tab, server);
    });

    test('a failure is a result too', async (t) => {
      const { server, asked, tab, calls } = await pending(t, 'color');
      give(tab, calls[0], 'no screen', { error: 'no screen' });
      assert.equal((await tab.run({ tools: TOOLS })).outcome, 'success');
      assert.match(told(asked)[0], /no screen/);
      await assertSame(tab, server);
    });

    test('two calls, answered at once', async (t) => {
      const { server, asked, tab, calls } = await pending(t, 'both', { names: ['pick_color', 'get_place'] });
      give(tab, calls[0], 'red');
      give(tab, calls[1], 'here');
      assert.equal((await tab.run({ tools: TOOLS })).outcome, 'success');
      assert.deepEqual(told(asked), ['red', 'here']);
      await assertSame(tab, server);
    });

    test('two calls, answered one by one', async (t) => {
      const { server, asked, tab, calls } = await pending(t, 'both', { names: ['pick_color', 'get_place'] });
      give(tab, calls[1], 'here');
      const first = await tab.run({ tools: TOOLS });
      assert.equal(first.outcome, 'success');
      if (client.profile === 'new') assert.deepEqual(first.pending, [calls[0].id]);
      assert.equal(asked().length, 1, 'the model waits for both');
      give(tab, calls[0], 'red');
      assert.equal((await tab.run({ tools: TOOLS })).outcome, 'success');
      assert.deepEqual(told(asked), ['red', 'here']);
      await assertSame(tab, server);
    });

    test('beside tools of the server', async (t) => {
      const { server, street, asked, tab, turn, calls } = await pending(t, 'mixed');
      assert.equal(turn.of('TOOL_CALL_RESULT').length, 2, 'those have run');
      give(tab, calls[0], 'red');
      assert.equal((await tab.run({ tools: TOOLS })).outcome, 'success');
      assert.equal(street.ran('look'), 2);
      assert.equal(told(asked)[1], 'red', 'in the order of the calls');
      await assertSame(tab, server);
    });

    test('beside a question: an interrupt, and both are answered together', async (t) => {
      const { server, asked, tab, calls } = await pending(t, 'question', { outcome: 'interrupt' });
      give(tab, calls[0], 'red');
      const end = await tab.run({ tools: TOOLS, resume: tab.answers('an hour') });
      assert.equal(end.outcome, 'success');
      assert.deepEqual(told(asked), ['red', 'an hour']);
      await assertSame(tab, server);
    });

    test('beside an approval that is answered first', async (t) => {
      const { server, street, asked, tab, calls } = await pending(t, 'approval', { outcome: 'interrupt' });
      const first = await tab.run({ tools: TOOLS, resume: tab.answers({ approved: true }) });
      assert.equal(first.outcome, 'success');
      assert.equal(street.ran('order'), 1);
      assert.equal(asked().length, 1, 'the model waits for the client');
      if (client.profile === 'new') assert.deepEqual(first.pending, [calls[0].id]);
      give(tab, calls[0], 'red');
      assert.equal((await tab.run({ tools: TOOLS })).outcome, 'success');
      assert.equal(told(asked)[1], 'red');
      await assertSame(tab, server);
    });

    test('one call behind another', async (t) => {
      const { server, tab, calls } = await pending(t, 'twice');
      give(tab, calls[0], 'red');
      const second = await tab.run({ tools: TOOLS });
      assert.equal(second.outcome, 'success');
      const [next] = unanswered(tab.agent.messages);
      assert.equal(next.function.name, 'get_place');
      give(tab, next, 'here');
      assert.equal((await tab.run({ tools: TOOLS })).outcome, 'success');
      assert.equal(tab.messages.at(-1).content, 'Fine.');
      await assertSame(tab, server);
    });

    test('a message instead of the result', async (t) => {
      const { server, asked, tab } = await pending(t, 'color');
      const turn = await tab.write('hello', { tools: TOOLS }).end({ runs: 2 });
      assert.equal(turn.outcome, 'success');
      assert.equal(tab.messages.at(-1).content, 'Hello.');
      const results = asked().flatMap(({ messages }) => messages).filter(({ role }) => role === 'tool');
      assert.match(results[0].text, /not answered/);
      await assertSame(tab, server);
    });

    test('a message from elsewhere instead of the result; a late result changes nothing', async (t) => {
      const { server, asked, tab, calls } = await pending(t, 'color');
      await accepted(server, { threadId: tab.threadId, messages: [user('hello')] });
      await until(server, tab.threadId, 'completed');
      give(tab, calls[0], 'red');
      assert.equal((await tab.run({ tools: TOOLS })).outcome, 'success');
      assert.ok(!JSON.stringify(asked()).includes('"red"'));
      await assertSame(tab, server, { live: false });
    });

    test('after a reload the call is still there', async (t) => {
      const { server, asked, tab, calls } = await pending(t, 'color');
      const { tab: fresh, turn } = await reload(client, server, tab.threadId);
      assert.equal(turn.outcome, 'success');
      if (client.profile === 'new') assert.deepEqual(turn.pending, [calls[0].id]);
      assert.deepEqual(unanswered(fresh.agent.messages).map(({ id }) => id), [calls[0].id]);
      give(fresh, calls[0], 'red');
      assert.equal((await fresh.run({ tools: TOOLS })).outcome, 'success');
      assert.deepEqual(told(asked), ['red']);
      await assertSame(fresh, server);
    });

    test('after the server was killed too', async (t) => {
      const { home, asked, tab, calls } = await pending(t, 'color');
      await home.server.kill9();
      home.server = null;
      const server = await home.start();
      tab.agent.url = tab.agent.url.replace(/^http:\/\/[^/]+/, server.url);
      give(tab, calls[0], 'red');
      assert.equal((await tab.run({ tools: TOOLS })).outcome, 'success');
      assert.deepEqual(told(asked), ['red']);
      await assertSame(tab, server);
    });

    test('the same result again', async (t) => {
      const { server, asked, tab, calls } = await pending(t, 'color');
      const { id } = give(tab, calls[0], 'red');
      const before = structuredClone(tab.agent.messages);
      assert.equal((await tab.run({ tools: TOOLS })).outcome, 'success');
      const again = new Tab(client, server, tab.threadId);
      again.agent.setMessages(before.map((message) => (message.id === id ? { ...message, content: 'green' } : message)));
      assert.equal((await again.run({ tools: TOOLS })).outcome, 'success');
      assert.equal(asked().length, 2, 'the model is not asked again');
      assert.deepEqual(told(asked), ['red']);
      await assertSame(again, server);
    });

    test('a client\'s tool cannot stand in for one of the server', async (t) => {
      const { home: { server }, street } = await startPlace(t, LINES);
      const tab = new Tab(client, server, newThread());
      const turn = await tab.say('order', { tools: [{ name: 'order', description: 'mine', parameters: { type: 'object' } }] });
      assert.equal(turn.outcome, 'interrupt');
      assert.equal(tab.open[0].reason, 'tool_call');
      tab.agent.addMessage({ id: 'forged', role: 'tool', toolCallId: tab.open[0].toolCallId, content: 'ordered' });
      const refused = await tab.start({ resume: tab.answers({ approved: false }) }).end();
      assert.equal(refused.outcome, 'success');
      assert.equal(street.visits.length, 0);
      const { fresh } = await assertSame(tab, server, { live: false });
      assert.ok(!JSON.stringify(fresh.messages).includes('"ordered"'));
    });
  });
}

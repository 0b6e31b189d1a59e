// SPDX-License-Identifier: Apache-2.0
//
// Cards that the model shows with its words: no call to see for people, a call with its result for the model; and what the model
// says beside a call that needs an approval, in a box that says whose words they are.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { inbox } from './asking.mjs';
import { askedAbout, startPlace, tool } from './people.mjs';
import { history, openEvents, talk, typesOf, user, accepted, waitFor } from './talk.mjs';

const hints = (title, more = {}) => ({ version: '2.1', intent: 'message', status: 'info', title, body: 'x', ...more });
const card = (title) => tool('show_card', hints(title));
const WORDS = 'I order the tea\u202e now.';
const LINES = [
  { match: '^one$', turns: [{ text: 'See:', calls: [card('First')] }] },
  { match: '^two$', turns: [{ text: 'See:', calls: [card('First'), card('Second')] }] },
  { match: '^bare$', turns: [{ calls: [card('First')] }] },
  { match: '^beside$', turns: [{ text: 'See:', calls: [card('First'), tool('look'), card('Second')] }, { text: 'Done.' }] },
  { match: '^bad$', turns: [{ calls: [tool('show_card', { version: '2.1', intent: 'dance', status: 'info' })] }, { text: 'See:', calls: [card('First')] }] },
  { match: '^then$', turns: [{ text: 'Well.' }] },
  { match: '^buy$', turns: [{ text: WORDS, calls: [tool('order', { item: 'tea' })] }, { text: 'Done.' }] },
];

// All nodes of a card, in order.
const nodes = (node) => [node, ...(node.children ?? []).flatMap(nodes)];
const texts = ({ root }) => nodes(root).flatMap(({ content }) => (content === undefined ? [] : [content]));

test('cards of the model', async (t) => {
  const { home, asked } = await startPlace(t, LINES);
  const { server } = home;
  const rows = { // facts of tools, model calls
    one: [[], 1], two: [[], 1], bare: [[], 1], beside: [['look'], 2], bad: [['show_card'], 2],
  };
  for (const [text, [tools, rounds]] of Object.entries(rows)) {
    await t.test(text, async (st) => {
      const { start, facts } = await talk(st, server, { threadId: `card-${text}`, messages: [user(text)] });
      assert.deepEqual(facts.filter(({ type }) => type === 'tool.call').map(({ data }) => data.toolName), tools);
      assert.equal(facts.filter(({ type }) => type === 'tool.call.result').length, tools.length);
      assert.equal(askedAbout(asked, text).length, rounds);
      assert.equal(facts.at(-1).data.outcome, 'completed');
      const shown = facts.filter(({ type, data }) => type === 'text.message.end' && data.ui);
      assert.equal(shown.length, 1);
      const { messageId, ui, workerAgentOutput } = shown[0].data;
      assert.ok(texts(ui).includes('First') && !texts(ui).includes('Second'));
      assert.deepEqual(workerAgentOutput.ui_hints, hints('First'));
      const { messages } = await history(server, start.threadId);
      const row = messages.find(({ id }) => id === messageId);
      assert.deepEqual(row.uiSchema, ui);
      assert.deepEqual((row.toolCalls ?? []).map((call) => call.function.name), text === 'beside' ? ['look'] : []);
    });
  }

  await t.test('is a call with its result for the model', async (st) => {
    await talk(st, server, { threadId: 'card-one', messages: [user('then')] });
    const { messages } = askedAbout(asked, 'then').at(-1);
    assert.deepEqual(messages.map(({ role }) => role), ['user', 'assistant', 'tool', 'user']);
    const [call] = messages[1].tool_calls ?? messages[1].toolCalls;
    assert.equal(call.function.name, 'show_card');
    assert.deepEqual(JSON.parse(call.function.arguments), hints('First'));
    assert.equal(messages[2].text, 'shown');
  });

  await t.test('is not previewed as a call', async (st) => {
    const { threadId } = await accepted(server, { messages: [user('one')] });
    const events = await openEvents(st, server, threadId, { query: '?after=0' });
    const all = await events.until(({ type }) => type === 'run.finished');
    assert.deepEqual(typesOf(all).filter((type) => type.startsWith('tool.')), []);
    events.close();
  });

  await t.test('words beside a call stand in a box that says whose they are', async () => {
    const { threadId } = await accepted(server, { messages: [user('buy')] });
    const { interactions: [asks] } = await waitFor('the approval', async () => {
      const open = await inbox(server, `?threadId=${threadId}`);
      return open.interactions.length ? open : undefined;
    });
    assert.deepEqual(asks.metadata, { model_text: WORDS });
    const all = texts(asks.ui), box = all.indexOf('In the model\'s own words, not checked');
    assert.ok(box > all.indexOf('Arguments'), JSON.stringify(all));
    assert.equal(all[box + 1], 'I order the tea⟦U+202E⟧ now.');
  });
  await home.stop();
});

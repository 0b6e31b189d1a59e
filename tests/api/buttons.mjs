// SPDX-License-Identifier: Apache-2.0
//
// Cards with buttons, and presses of them.

import assert from 'node:assert/strict';

import { postJson } from './home.mjs';
import { AGENT, history, talk } from './talk.mjs';

export const button = (label, type, fields = {}, more = {}) => ({ label, ...more, action: { type, ...fields } });
export const card = (...actions) => ({ version: '2.1', intent: 'data', status: 'info', title: 'A card', items: [{ key: 'k', value: 1 }], actions });
export const toolButton = (label, toolId, params, more) => button(label, 'tool', { toolId, ...(params ? { params } : {}) }, more);
export const payloadButton = (label, payload, more) => button(label, 'payload', { payload }, more);

// Every node of a card.
const nodes = (node) => [node, ...(node.children ?? []).flatMap(nodes)];

// A message whose run shows a card: {threadId, messageId, row, ids}, the ids by label. The newest card of the thread that
// has buttons.
export async function shown(t, server, text, { threadId, headers = {} } = {}) {
  const { start } = await talk(t, server, { ...(threadId ? { threadId } : {}), messages: [{ role: 'user', content: text }] }, headers);
  return cardOf(server, start.threadId, headers);
}

export async function cardOf(server, threadId, headers = {}) {
  const { messages } = await history(server, threadId, '', headers);
  const buttonsOf = ({ uiSchema }) => (uiSchema ? nodes(uiSchema.root) : []).filter(({ type }) => type === 'button');
  const row = messages.findLast((message) => buttonsOf(message).length);
  assert.ok(row, 'there is a card with buttons');
  const buttons = buttonsOf(row);
  return { threadId, messageId: row.id, row, ids: Object.fromEntries(buttons.map(({ label, id }) => [label, id])) };
}

export const press = (server, { threadId, messageId }, actionId, headers = {}) =>
  postJson(server, `${AGENT}/actions`, { threadId, messageId, actionId }, headers);

// A press that begins something: the 202's body.
export async function pressed(server, where, actionId, headers = {}) {
  const answer = await press(server, where, actionId, headers);
  assert.equal(answer.status, 202, answer.text);
  return answer.json();
}

// SPDX-License-Identifier: Apache-2.0
//
// Conversations with the built client (web/client/dist): a server whose model does what the first word of a message
// says, and what a person does about it.

import assert from 'node:assert/strict';

import { MEETING, startAsking } from '../api/asking.mjs';
import { within } from '../api/server.mjs';
import { Fermata } from '../../web/client/dist/index.js';

export * from '../../web/client/dist/index.js';
export { within };

export const STEP_MS_MAX = 60_000;

const book = (title = 'Review') => ({ name: 'calendar_write', args: { ...MEETING, title } });
const ask = (question, ...choices) => ({ name: 'ask_user', args: { question, ...(choices.length && { choices }) } });
const look = { name: 'calendar_read', args: { from: '2030-01-31T00:00:00+08:00', to: '2030-02-01T00:00:00+08:00' } };
const CARD = { version: '2.1', intent: 'message', status: 'info', title: 'A card' };
const WIDE = { ...CARD, body: 'wide 宽 '.repeat(9000) }; // its card is over what an event holds
const plan = { name: 'submit_plan', args: { steps: [{ content: 'Look', done_when: 'seen' }, { content: 'Tell' }] } };

// By the first word.
export const LINES = [
  { match: '^think', turns: [{ reasoning: 'Let me think. 想一想。', text: 'Thought 了。' }] },
  { match: '^ask', turns: [{ text: 'One thing.', calls: [ask('How long?', '30 minutes', '1 hour')] }, { text: 'All right, that long.' }] },
  { match: '^book', turns: [{ reasoning: 'A meeting.', text: 'I book it.', calls: [book()] }, { text: 'Booked.' }] },
  { match: '^meeting', turns: [{ calls: [ask('How long?', '30 minutes', '1 hour')] }, { text: 'Good.', calls: [book()] }, { text: 'It is in your calendar.' }] },
  { match: '^both', turns: [{ calls: [look, ask('What about?'), book('One'), book('Two')] }, { text: 'All done.' }] },
  { match: '^look', turns: [{ calls: [look, look] }, { text: 'Once more.', calls: [look] }, { text: 'Seen.' }] },
  { match: '^card', turns: [{ text: 'See:', calls: [{ name: 'show_card', args: CARD }] }] },
  { match: '^wide', turns: [{ text: 'See:', calls: [{ name: 'show_card', args: WIDE }], chunk: 65536 }] },
  { match: '^bad', turns: [{ calls: [{ name: 'calendar_write', args: '{"a": 1' }] }, { text: 'I gave up.' }] },
  { match: '^flaky', turns: [{ reasoning: 'Hm, hm.', text: 'At the second attempt.', fail: { at: 12, times: 1 } }] },
  { match: '^fail', turns: [{ text: 'x', fail: { at: 'start', status: 400 } }] },
  { match: '^plan', turns: [{ calls: [plan] }, { calls: [look] }, { text: 'Looked.' }, { text: 'Told.' }, { text: 'The report.' }] },
  { match: '^paint', turns: [{ calls: [{ name: 'paint', args: { colour: 'red' } }] }, { text: 'It is red now.' }] },
  { match: '^slow', turns: [{ text: 'one two three four five six seven eight nine ten '.repeat(4), chunk: 5, gap_ms: 60 }] },
  { match: '^patient', turns: [{ text: 'one two three four five six seven eight nine ten '.repeat(4), chunk: 5, gap_ms: 180 }] }, // for what has to come in between
  { turns: [{ text: 'Hello. 你好。' }] },
];

// {home, client(options)}: `client` is one of the server as it is now. Ends with the test.
export async function start(t, options = {}) {
  const home = await startAsking(t, { lines: LINES, ...options });
  return { home, client: (more = {}) => new Fermata({ url: home.server.url, ...more }) };
}

export const isOver = ({ type, data }) => type === 'run.error' || (type === 'run.finished' && data.outcome !== 'interrupted');
export const approve = ({ binding }) => ({ decision: 'approve', binding });

// Takes from an iterator until `enough` holds: everything taken. Fails instead of hanging.
export async function take(iterator, enough, ms = STEP_MS_MAX) {
  const taken = [];
  const taking = async () => {
    for (;;) {
      const { done, value } = await iterator.next();
      assert.ok(!done, `it ended after ${taken.map(({ type, seq }) => seq ?? type).join(' ')}`);
      taken.push(value);
      if (await enough(value)) return taken;
    }
  };
  return within(ms, 'what was waited for', taking());
}

// A signal that is given at the end of the test.
export function untilEnd(t) {
  const control = new AbortController();
  t.after(() => control.abort());
  return control.signal;
}

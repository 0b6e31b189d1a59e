// SPDX-License-Identifier: Apache-2.0
//
// Fifty conversations made from a seed, half with each client: words, thoughts, tools, cards, questions, approvals, tools of the
// client, failures, cancels, messages from elsewhere, reloads, and a server that is killed now and then. At every rest the
// client holds what history says: the same ids, roles, words and calls in the same order; and so does one that comes anew.
//
// To add a kind of exchange: a row in KINDS. `turns` is what the model does; `live` what the person does meanwhile.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { chance, seed } from '../fault/chance.mjs';
import { until } from '../api/asking.mjs';
import { accepted, answer, cancel, user } from '../api/talk.mjs';
import { ask, order, startPlace, tool } from '../api/people.mjs';
import { assertSame, CLIENTS, newThread, reload, Tab } from './agui.mjs';

const COUNT = 50;
const FRONT = [{ name: 'pick', description: 'Lets the person pick.', parameters: { type: 'object' } }];
const WORDS = ['Yes.', '好的，马上。', 'A line\nand another\tone.', '👩‍👩‍👧‍👦 "quoted" \\ back', 'x'.repeat(300), '\u2028 \u0000 \u001b end', '</script> data: {}'];
const HINTS = { version: '2.1', intent: 'message', status: 'info', title: 'A card', body: 'x' };

const done = (c) => ({ text: c.words(), chunk: 1 + c.next(9) });
const look = (c) => tool('look', { reply: c.words() });
const one = (...calls) => (c) => [{ ...(c.next(2) ? { text: c.words() } : {}), ...(c.next(3) ? {} : { reasoning: c.words() }), calls: calls.map((make) => make(c)) }, done(c)];

const question = (c) => ask(c.words(), c.next(2) ? { choices: ['Red', '蓝'] } : {});
const buy = (c) => order(c.words());

// What a person says to an interrupt; undefined gives it up.
function payload(c, { reason, metadata }) {
  const own = metadata['fermata.interaction'];
  if (reason === 'fermata:connection_lost') return { decision: 'continue' };
  if (c.next(8) === 0) return undefined;
  if (reason === 'input_required') {
    const labels = own.choices ? [{ choices: ['c2'] }, 'Red', { choices: ['c1'], text: 'at least' }] : [];
    return c.pick([...labels, 'my own words 说', { answer: c.words().trim() || 'x' }, { skip: true }]);
  }
  if (reason === 'tool_call') return c.pick([{ approved: true }, { approved: false }, { approved: false, comment: c.words() }, { approved: true, editedArgs: { item: 'edited', count: 2 } }]);
  return { decision: c.pick(['happened', 'give_up']) };
}

// Answers until the run waits no more.
async function settle(c, turn) {
  for (let i = 0; turn.outcome === 'interrupt'; i++) {
    assert.ok(i < 10, 'it comes to an end');
    const { open } = c.tab;
    if (c.next(4) === 0) await c.reload();
    const resume = open.map((interrupt) => {
      const said = payload(c, interrupt);
      return { interruptId: interrupt.id, status: said === undefined ? 'cancelled' : 'resolved', ...(said === undefined ? {} : { payload: said }) };
    });
    if (c.next(6) === 0) await c.kill();
    turn = await c.tab.run({ resume, tools: FRONT });
    if (turn.outcome === 'success' && c.next(3) === 0) assert.equal((await c.tab.run({ resume, tools: FRONT })).outcome, 'success', 'once more');
  }
  return turn;
}

const say = async (c, text) => settle(c, await c.tab.say(text, { tools: FRONT }));
const finished = async (c, text) => assert.equal((await say(c, text)).outcome, 'success');

const KINDS = {
  words: { turns: (c) => [done(c)] },
  thoughts: { turns: (c) => [{ reasoning: c.words(), ...done(c) }] },
  tools: { turns: one(look, look, () => tool('fail'), () => tool('show', { hints: HINTS })) },
  rounds: { turns: (c) => [...one(look)(c).slice(0, 1), ...one(look, look)(c)] },
  'a card': { turns: (c) => [{ text: c.words(), calls: [tool('show_card', HINTS)] }] },
  question: { turns: one(question) },
  approval: { turns: one(buy) },
  everything: { turns: one(question, look, buy) },
  approvals: { turns: one(buy, buy) },
  chain: { turns: (c) => [...one(question)(c).slice(0, 1), ...one(buy)(c)] },
  uncertain: { turns: one(() => tool('cut', { item: 'tea' })) },
  'breaks off': { turns: (c) => [{ text: 'It is there after all.', chunk: 3, fail: { at: c.next(20), times: 1 + c.next(2) } }] },
  'is gone': { turns: () => [{ text: 'Back.', fail: { at: 'start', status: 503, times: 3 } }] },
  refuses: { turns: () => [{ text: 'Never.', fail: { at: 'start', status: 400 } }], live: async (c, text) => assert.equal((await say(c, text)).outcome, 'error') },
  'the client\'s tool': { turns: one(() => tool('pick', { n: 1 }), look), live: async (c, text) => {
    const turn = await c.tab.say(text, { tools: FRONT });
    const calls = c.tab.agent.messages.flatMap(({ toolCalls = [] }) => toolCalls).filter(({ function: { name } }) => name === 'pick');
    assert.equal(turn.outcome, 'success');
    if (c.next(3) === 0) await c.reload();
    if (c.next(4) === 0) await c.kill();
    c.tab.agent.addMessage({ id: `given-${calls.at(-1).id}`, role: 'tool', toolCallId: calls.at(-1).id, content: c.words() });
    assert.equal((await c.tab.run({ tools: FRONT })).outcome, 'success');
  } },
  'cancelled at once': { turns: one(() => tool('wait', { until: 'never' })), live: async (c, text) => {
    const turn = c.tab.write(text);
    await turn.until('the call', ({ type }) => type === 'TOOL_CALL_END');
    assert.equal((await cancel(c.server, c.tab.threadId)).status, 202);
    await turn.end();
    assert.equal(turn.outcome, c.client.profile === 'new' ? 'cancelled' : 'error');
  } },
  'cancelled while it waits': { turns: one(question, buy), live: async (c, text) => {
    assert.equal((await c.tab.say(text)).outcome, 'interrupt');
    assert.equal((await cancel(c.server, c.tab.threadId)).status, 202);
    await c.reload(); // a client before 1.0 would hold on to its interrupts
  } },
  'answered elsewhere': { turns: one(question, buy), live: async (c, text) => {
    const turn = await c.tab.say(text);
    const [asked] = turn.interrupts;
    await answer(c.server, asked.id, { answer: 'elsewhere' });
    await until(c.server, c.tab.threadId, 'waiting');
    await settle(c, turn);
  } },
  'from elsewhere': { turns: (c) => [done(c)], live: async (c, text) => {
    await accepted(c.server, { threadId: c.tab.threadId, messages: [user(text)] });
    await until(c.server, c.tab.threadId, 'completed');
    await c.tab.run();
  } },
};

// A conversation: its exchanges, each with the line of the script that answers it.
function conversation(n) {
  const next = chance(n);
  const pick = (list) => list[next(list.length)];
  const c = { n, next, pick, words: () => pick(WORDS), client: CLIENTS[n % 2] };
  const names = Object.keys(KINDS);
  c.exchanges = Array.from({ length: 2 + next(4) }, (_, i) => {
    const kind = i === 0 ? names[Math.floor(n / 2) % names.length] : pick(names);
    const text = `c${n}e${i} ${c.words()}`;
    return { kind, text, line: { match: `^c${n}e${i} `, turns: KINDS[kind].turns(c) } };
  });
  return c;
}

const conversations = Array.from({ length: COUNT }, (_, n) => conversation(n));
let home, cleanUps = [];
before(async () => {
  const t = { after: (fn) => { cleanUps.unshift(fn); } };
  const lines = conversations.flatMap(({ exchanges }) => exchanges.map(({ line }) => line));
  ({ home } = await startPlace(t, lines));
});
after(async () => {
  for (const fn of cleanUps) await fn();
});

for (const c of conversations) {
  const name = `${c.client.version}: ${c.exchanges.map(({ kind }) => kind).join(', ')}`;
  test(`conversation ${c.n} of ${seed}, ${name}`, async () => {
    const threadId = newThread();
    c.reload = async () => { ({ tab: c.tab } = await reload(c.client, home.server, threadId)); };
    c.kill = async () => {
      await home.server.kill9();
      home.server = null;
      c.server = await home.start();
      c.tab.agent.url = c.tab.agent.url.replace(/^http:\/\/[^/]+/, c.server.url);
    };
    c.server = home.server;
    c.tab = new Tab(c.client, home.server, threadId);
    for (const { kind, text } of c.exchanges) {
      await (KINDS[kind].live ?? finished)(c, text);
      const { fresh } = await assertSame(c.tab, c.server);
      if (c.next(4) === 0) c.tab = fresh;
    }
  });
}

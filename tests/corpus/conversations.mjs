// SPDX-License-Identifier: Apache-2.0
//
// The conversations: {name, kind, steps, roles?, threads?, alone?, ends?}. A step is explained in player.mjs. Each has a
// user of its own; `threads` are those that are looked at at the end, `alone` is one that others would disturb.

import { CARDS, MEETING } from './script.mjs';

const all = [];
const add = (kind, name, steps, more = {}) => all.push({ kind, name: `${kind}: ${name}`, steps, ...more });
const say = (text, more, headers) => ['say', text, more, headers];
const done = ['until', 'completed'];
const stuck = (count = 1) => [['heard', 'live', 'step.start'], ['asked', count]]; // the model has been asked, and is silent
const doneAs = (run) => ['until', 'completed', { run }];
const waits = (open = 1) => ['until', 'waiting', { open }];
const answer = (which, body, options) => ['answer', which, body, options];

// ---- plain answers ----
for (const word of ['hello', '你好', 'long', 'mark', 'single', 'think', 'ponder', 'silent', 'numbers', 'echo', 'nothing known']) add('plain', word, [say(word), done]);
for (const [word, status] of [['broken', 'failed'], ['denied', 'failed'], ['halfway', 'failed'], ['after', 'failed']]) add('plain', `${word}, a model that fails`,
  [say(word), ['until', status]]);
add('plain', 'two turns and a title', [say('hello there'), done, say('你好 again'), done, ['agent', 'PATCH', '/threads/t1', { body: { title: 'Renamed 改名' } }], ['agent',
  'GET', '/threads/t1']]);
add('plain', 'ids of the server', [['run', { messages: [{ role: 'user', content: 'hello' }] }], ['keep', 'made'], ['thread', '{{made.threadId}}'], done,
  ['facts'], ['history'], ['run', { threadId: '{{made.threadId}}', messages: [{ role: 'user', content: 'think' }] }], done, ['facts'], ['history']], { ends: false });
add('plain', 'time zone, state and context', [say('hello', { forwardedProps: { timezone: 'Asia/Shanghai' }, state: { a: 1 }, context: [{ description: 'd',
  value: 'v' }] }), done]);
add('plain', 'parts of text', [say([{ type: 'text', text: 'hello' }, { type: 'text', text: ' in parts' }]), done]);
add('plain', 'edited and sent again', [say('hello one'), done, say({ id: 'u9', role: 'user', content: 'hello two', metadata: { replaces: 'u1' } }), done]);
add('plain', 'several messages at once', [['run', { threadId: 't1', runId: 'r1', messages: [{ id: 'a', role: 'user', content: 'first' }, { id: 'b', role: 'user',
  content: 'hello' }] }], done]);
add('plain', 'another agent in the middle', [say('hello'), done, say('hello', { agent: 'clerk' }), done, say('hello'), done, say('look', { agent: 'mute' }), done]);
add('plain', 'known messages again', [say('hello'), done, ['run', { threadId: 't1', runId: 'r2', messages: [{ id: 'u1', role: 'user', content: 'hello' }] }], ['run',
  { threadId: 't1', messages: [] }]]);

// ---- read while it happens ----
for (const word of ['hello', 'long', 'mark', 'single', 'think', 'ponder', 'rounds', 'looks']) {
  add('live', word, [say('hello'), done, ['listen'], ['heard'], say(word), done, ['heard']]);
}
for (const [word, body] of [['choose', { choices: ['c1'] }], ['tea', { decision: 'approve' }], ['saidask', { answer: 'tea' }], ['book', { decision: 'approve' }]]) {
  add('live', `${word}, asked and answered`, [say('hello'), done, ['listen'], ['heard'], say(word), waits(), ['heard'], answer(0, body), done, ['heard']]);
}
add('live', 'before there is a thread', [['listen'], say('stuck'), ...stuck(), ['cancel'], ['until', 'cancelled'], say('rounds'), doneAs('r2'), ['heard']]);
add('live', 'cursors', [say('hello'), done, say('look'), done, ['facts', 't1', 'me', '?after=4'], ['facts', 't1', 'me', '?runId=r1'], ['facts', 't1', 'me', ''],
  ['facts', 't1', 'me', '?after=99999'], ['facts', 't1', 'me', '?after=x'], ['agent', 'GET', '/runs/t1/events?format=strange']]);

for (const [i, word] of ['discard1', 'discardcall1'].entries()) add('live', `${word}, a model that breaks off`, [say('hello'), done, ['listen'], ['heard'],
  ...(i ? [] : [['listen', 'beside', '?format=ag-ui'], ['heard', 'beside', 'RUN_FINISHED']]), say(word), done, ['heard'], ...(i ? [] : [['heard', 'beside',
  'RUN_FINISHED']])]);
add('plain', 'discard2, a model that breaks off unseen', [say('discard2'), done]);
for (const version of ['', '&protocolVersion=1.0']) {
  for (const [word, body] of [['look', null], ['tea', { decision: 'approve' }], ['choose', { answer: '2' }], ['think', null]]) {
    add('live', `AG-UI by GET${version}: ${word}`, [say('hello'), done, ['listen', 'ag-ui', `?format=ag-ui${version}`], ['heard', 'ag-ui', 'RUN_FINISHED'], say(word),
      ['heard', 'ag-ui', 'RUN_FINISHED'],
      ...(body ? [waits(), answer(0, body), ['heard', 'ag-ui', 'RUN_FINISHED']] : []), done]);
  }
}

// ---- questions ----
const ANSWERS = {
  choose: [{ choices: ['c2'] }, { answer: '1 hour' }, { answer: 'as long as it takes 随便' }, { choices: ['c1'], text: 'or less' }, { skip: true }],
  strict: [{ choices: ['c1'] }, { answer: 'Blue' }, { skip: true }],
  several: [{ choices: ['c1', 'c3'] }, { choices: ['c2'] }, { choices: ['c1', 'c2'], text: 'and Max' }, { answer: 'nobody' }],
  open: [{ answer: 'Budget 预算' }, { skip: true }],
  form: [{ fields: { item: 'tea', count: 2 } }, { fields: { item: '茶' } }, { skip: true }],
  选择: [{ choices: ['c2'] }, { answer: '周三' }, { answer: '下周再说吧' }, { skip: true }],
  saidask: [{ answer: 'coffee' }],
};
for (const [word, bodies] of Object.entries(ANSWERS)) {
  for (const body of bodies) add('question', `${word} ${JSON.stringify(body)}`, [say(word), waits(), ['agent', 'GET', '/interactions/{{open.0.interactionId}}'], answer(0,
    body), done]);
}
const REFUSED = {
  choose: [{ choices: ['c9'] }, { choices: [] }, {}, { decision: 'approve' }, { choices: ['c1', 'c2'] }, { answer: '' }, { answer: 7 }, { strange: 1 }],
  strict: [{ answer: 'Green' }, { text: 'x' }],
  form: [{ fields: {} }, { fields: { item: 7 } }, { fields: { item: 'tea', other: 1 } }, { fields: { item: 'tea', count: 'many' } }],
  open: [{ choices: ['c1'] }, { fields: {} }, { text: 'in words' }],
};
for (const [word, bodies] of Object.entries(REFUSED)) {
  add('question', `${word}, answers that are refused`, [say(word), waits(), ...bodies.map((body) => answer(0, body)), ['agent', 'GET',
    '/interactions/{{open.0.interactionId}}']]);
}
add('question', 'answered twice', [say('choose'), waits(), answer(0, { choices: ['c1'] }), done, answer(0, { choices: ['c1'] }), answer(0, { choices: ['c2'] })]);
add('question', 'two, in the other order', [say('two'), waits(2), answer(1, { choices: ['c2'] }), ['legs', 2], waits(1), answer(0, { answer: 'one' }), done]);
add('question', 'one after the other', [say('chain'), waits(), answer(0, { answer: 'a' }), ['inbox', 1], waits(), answer(0, { choices: ['c1'] }), ['until', 'waiting',
  { open: 1 }]]);
add('question', 'cancelled alone', [say('choose'), waits(), ['agent', 'POST', '/interactions/{{open.0.interactionId}}/cancel'], done, ['agent', 'POST',
  '/interactions/{{open.0.interactionId}}/cancel']]);
add('question', 'by the run', [say('open'), waits(), ['agent', 'POST', '/runs/t1/answer', { body: { answer: 'this 这个' } }], done, ['agent', 'POST', '/runs/t1/answer',
  { body: { answer: 'again' } }]]);
add('question', 'by the run, of two', [say('two'), waits(2), ['agent', 'POST', '/runs/t1/answer', { body: { answer: 'which?' } }]]);
add('question', 'bad arguments of the model', [say('badask'), done]);
add('question', 'an agent that may not ask', [say('choose', { agent: 'mute' }), done]);
for (const [word, text] of [['choose', '1 hour'], ['choose', '2'], ['choose', 'ten minutes'], ['strict', 'Blue'], ['strict', '1'], ['strict', 'neither'], ['选择', '第二个'],
  ['选择', '周一'], ['open', 'words'], ['several', '1,3']]) {
  add('message', `${word}, answered by "${text}"`, [say(word), waits(), say(text), done]);
}
add('message', 'to two questions', [say('two'), waits(2), say('which one?')]);
for (const [word, text] of [['tea', 'no, not that'], ['茶', '不要'], ['tea', 'approve'], ['rent', 'yes']]) add('message', `${word}, rejected by "${text}"`, [say(word),
  waits(), say(text), done]);
add('message', 'to three approvals', [say('three'), waits(3), say('none of them'), done]);
add('message', 'to a question and an approval', [say('both'), waits(2), say('one hour'), done]);
add('message', 'to a tangle', [say('tangle'), waits(3), say('hm')]);

// ---- approvals ----
const EDIT = { item: 'coffee', count: 1 };
for (const word of ['tea', '茶', 'rent', 'book']) {
  add('approval', `${word}, approved`, [say(word), waits(), ['agent', 'GET', '/interactions/{{open.0.interactionId}}'], answer(0, { decision: 'approve',
    binding: '{{open.0.binding}}' }), done]);
  add('approval', `${word}, rejected`, [say(word), waits(), answer(0, { decision: 'reject', comment: 'Too dear 太贵' }), done]);
}
add('approval', 'tea, edited', [say('tea'), waits(), answer(0, { decision: 'edit', args: EDIT }), done, ['agent', 'GET', '/interactions/{{open.0.interactionId}}']]);
add('approval', 'book, edited', [say('book'), waits(), answer(0, { decision: 'edit', args: { ...MEETING, title: 'Other 别的', location: 'Room 1', attendees: ['Ann',
  'Bob'] } }), done]);
add('approval', 'tea, edited to what it was', [say('tea'), waits(), answer(0, { decision: 'edit', args: { item: 'tea', count: 2 } }), done]);
add('approval', 'responded', [say('tea'), waits(), answer(0, { decision: 'respond', comment: 'Ask Bob first' }), done]);
add('approval', 'refused answers', [say('tea'), waits(), ...[{ decision: 'maybe' }, {}, { decision: 'edit' }, { decision: 'edit', args: { item: 7 } }, { decision: 'edit',
  args: { item: 'tea', count: 99 } },
  { decision: 'approve', binding: 'k1:wrong' }, { decision: 'approve', args: EDIT }, { answer: 'yes' }, { decision: 'reject', always: true }, { decision: 'approve',
    always: { scope: 'world' } },
  { decision: 'approve', always: { scope: 'thread', match: { nothing: 1 } } }].map((body) => answer(0, body)), ['agent', 'GET', '/interactions?status=open']]);
add('approval', 'decided twice', [say('tea'), waits(), answer(0, { decision: 'approve' }), done, answer(0, { decision: 'approve' }), answer(0, { decision: 'reject' })]);
add('approval', 'cancelled alone', [say('tea'), waits(), ['agent', 'POST', '/interactions/{{open.0.interactionId}}/cancel'], done]);
for (const [name, always] of [['in this thread', { scope: 'thread' }], ['for this user', { scope: 'user' }], ['for one item', { scope: 'user', match: { item: 'tea' } }],
  ['in this thread for a count', { scope: 'thread', match: { count: 1 } }]]) {
  const rest = name.includes('item') ? [waits(), answer(0, { decision: 'reject' }), done] : name.includes('count') ? [waits(), answer(0, { decision: 'approve' }),
    ['inbox', 1], waits(), answer(0, { decision: 'reject' }), done] : [done];
  add('grant', name, [say('again'), waits(), answer(0, { decision: 'approve', always }), ...rest, ['agent', 'GET', '/grants'], ['keep', 'grants'],
    ['agent', 'DELETE', '/grants/{{grants.grants.0.grantId}}'], ['agent', 'GET', '/grants'], ['agent', 'DELETE', '/grants/{{grants.grants.0.grantId}}']]);
}
add('grant', 'used in another thread, then revoked', [say('tea'), waits(), answer(0, { decision: 'approve', always: { scope: 'user' } }), done, ['thread', 't2'],
  say('tea'), done,
  ['agent', 'GET', '/grants'], ['agent', 'DELETE', '/grants/{{last.grants.0.grantId}}'], say('tea'), waits()], { threads: ['t1', 't2'] });
add('approval', 'three at once, each another way', [say('three'), waits(3), answer(1, { decision: 'approve' }), ['legs', 2], waits(2), answer(0, { decision: 'reject' }),
  ['legs', 3], waits(1), answer(0, { decision: 'edit', args: EDIT }), done]);
add('approval', 'with a question beside it', [say('both'), waits(2), answer(0, { answer: 'an hour' }), ['legs', 2], waits(1), answer(0, { decision: 'approve' }), done]);
add('approval', 'a read, a write and a question', [say('mixed'), waits(2), answer(0, { decision: 'approve' }), ['legs', 2], waits(1), answer(0, { answer: 'this' }),
  done]);
add('approval', 'allowed and denied by policy', [say('tea', { agent: 'clerk' }), done, say('rent', { agent: 'clerk' }), done]);
add('approval', 'arguments that do not fit', [say('wrongargs'), done]);
add('approval', 'arguments that are no JSON', [say('badjson'), done]);
add('approval', 'a tool that there is not', [say('unknown'), done]);
add('approval', 'deleting nothing', [say('erase'), waits(), answer(0, { decision: 'approve' }), done]);
add('approval', 'the calendar', [say('agenda'), waits(), answer(0, { decision: 'approve' }), done, ['agent', 'GET', '/calendar.ics']]);
add('approval', 'somebody else', [say('who'), done]);
add('approval', 'a stranger', [say('tea'), waits(), answer(0, { decision: 'approve' }, { who: 'eve' }), ['agent', 'GET', '/interactions/{{open.0.interactionId}}',
  { who: 'eve' }], answer(0, { decision: 'approve' }, { who: 'nobody' })], { roles: { eve: ['user'] } });
add('approval', 'by an approver', [say('rent', { agent: 'office' }), waits(), answer(0, { decision: 'approve' }), ['agent', 'GET', '/interactions?agent=office',
  { who: 'boss' }],
  ['agent', 'GET', '/interactions/{{open.0.interactionId}}', { who: 'boss' }], answer(0, { decision: 'approve', comment: 'Fine' }, { who: 'boss' }), done],
    { roles: { boss: ['approver'] }, alone: true });
add('approval', 'refused by an approver', [say('rent', { agent: 'office' }), waits(), answer(0, { decision: 'reject', comment: 'No 不行' }, { who: 'boss' }), done],
  { roles: { boss: ['approver'] }, alone: true });
add('approval', 'taken back by who asked', [say('rent', { agent: 'office' }), waits(), ['agent', 'POST', '/interactions/{{open.0.interactionId}}/cancel'], done],
  { roles: { boss: ['approver'] }, alone: true });

// ---- time ----
add('expiry', 'of a question', [say('choose'), waits(), ['soon', 0], done, answer(0, { choices: ['c1'] }), ['agent', 'GET', '/interactions/{{open.0.interactionId}}']]);
add('expiry', 'of an approval', [say('tea'), waits(), ['soon', 0], done, answer(0, { decision: 'approve' })]);
add('expiry', 'of one of two', [say('both'), waits(2), ['soon', 1], ['legs', 2], waits(1), answer(0, { answer: 'now' }), done]);
add('expiry', 'moved and cleared', [say('choose'), waits(), ...['2199-01-31T09:30:00Z', '2199-01-31T17:30:00+08:00', null, 'tomorrow',
  '2001-01-01T00:00:00Z'].map((expiresAt) => ['agent', 'PATCH', '/interactions/{{open.0.interactionId}}', { body: { expiresAt } }])]);

// ---- stopping and queueing ----
add('cancel', 'while it waits', [say('choose'), waits(), ['cancel'], ['until', 'cancelled'], ['cancel'], answer(0, { choices: ['c1'] })]);
add('cancel', 'while it waits, in Chinese', [say('选择'), waits(), ['cancel', {}], ['until', 'cancelled']]);
add('cancel', 'with three approvals open', [say('three'), waits(3), ['cancel', { runId: 'r1' }], ['until', 'cancelled']]);
add('cancel', 'while the model is silent', [['listen'], say('stuck'), ...stuck(), ['cancel'], ['until', 'cancelled'], ['heard']]);
add('cancel', 'of another run', [say('hello'), done, ['cancel', { runId: 'none' }], ['cancel'], ['cancel', { strange: 1 }]]);
add('cancel', 'by the stream', [say('hello'), done, ['listen'], ['heard'], say('stuck'), ...stuck(2), ['cancel', { runId: 'r2' }], ['until', 'cancelled'], ['heard'],
  say('hello'), done]);
add('queue', 'behind a silent model', [['listen'], say('stuck'), ...stuck(), say('hello'), say('你好'), ['agent', 'GET', '/runs/t1'], ['cancel'], doneAs('r3'), ['heard']]);
add('queue', 'dropped one by one', [['listen'], say('stuck'), ...stuck(), say('hello'), say('你好'), ['agent', 'DELETE', '/runs/t1/queue/1'], ['agent', 'DELETE',
  '/runs/t1/queue/9'], ['agent', 'GET', '/runs/t1'], ['cancel'], doneAs('r3')]);
add('queue', 'dropped with the run', [['listen'], say('stuck'), ...stuck(), say('hello'), ['cancel', { queue: true }], ['until', 'cancelled'], ['heard']]);
add('queue', 'an agent that rejects', [['listen'], say('stuck', { agent: 'clerk' }), ...stuck(), say('hello', { agent: 'clerk' }), ['cancel'], ['until', 'cancelled']]);
add('queue', 'an agent that is interrupted', [['listen'], say('stuck', { agent: 'hasty' }), ...stuck(), say('hello', { agent: 'hasty' }), doneAs('r2')]);
add('queue', 'behind a tool', [say('hello'), done, ['listen'], ['heard'], say('hold'), ['heard', 'live', 'tool.call'], say('hello'), ['release', 'HOLD'], doneAs('r3'),
  ['heard']], { alone: true });

// ---- tools ----
for (const word of ['look', 'looks', 'rounds', 'plain', 'empty', 'bytes', 'fail', 'fail404', 'wrong', 'html', 'flaky']) add('tool', word, [say(word), done],
  { alone: word === 'looks' });
for (const decision of ['retry', 'happened', 'give_up']) add('tool', `cut, then ${decision}`, [say('cut'), waits(), ['agent', 'GET',
  '/interactions/{{open.0.interactionId}}'], answer(0, { decision: 'approve' }), answer(0, { decision }), decision === 'retry' ? waits() : done]);
add('tool', 'cut, then a message', [say('cut'), waits(), say('and now?'), answer(0, { decision: 'happened' }), doneAs('r2')]);
for (const word of ['lost', 'lost2', 'lost3']) {
  const body = { lost: { decision: 'continue' }, lost2: { decision: 'give_up' } }[word];
  add('lost', word, [say(word), waits(), ['agent', 'GET', '/interactions/{{open.0.interactionId}}'], ...(body ? [answer(0, { decision: 'retry' }), answer(0,
    body)] : [say('go on')]), word === 'lost3' ? doneAs('r2') : ['until', word === 'lost2' ? 'failed' : 'completed']], { alone: true });
}

// ---- results that go to object storage ----
for (const word of ['long70', 'long200', 'words40', 'words1', 'show-huge']) {
  add('large', word, [say(word), done, ['history'], ['keep', 'rows', 'last.messages'], ['agent', 'GET', '/threads/t1/messages/{{rows.2.id}}/result'], ['agent', 'GET',
    '/threads/t1/messages/{{rows.2.id}}/ui'],
    ['agent', 'GET', '/threads/t1/messages/{{rows.0.id}}/result'], ['agent', 'GET', '/threads/t1/messages/none/ui']]);
}

// ---- cards ----
for (const name of Object.keys(CARDS)) {
  add('card', `shown by the model: ${name}`, [say(`card-${name}`), done]);
  add('card', `of a tool: ${name}`, [say(`show-${name}`), done]);
  add('card', `compiled: ${name}`, [['agent', 'POST', '/compile-ui-hints', { body: CARDS[name] }], ['agent', 'POST', '/compile-ui-hints', { body: CARDS[name],
    headers: { 'accept-language': 'zh-CN' } }]], { ends: false });
}
for (const label of ['Go', 'Link', 'Copy', 'Wrong', 'Off', 'Gone', 'Submit']) add('action', label, [say('card-buttons'), done, ['press', label], ['settled'], ['press',
  label]]);
for (const label of ['Tell', 'Look', 'Say']) add('action', label, [say('card-buttons'), done, ['press', label], done, ['press', label]]);
add('action', 'Order', [say('card-buttons'), done, ['press', 'Order'], waits(), answer(0, { decision: 'approve' }), done]);
add('action', 'Order, rejected', [say('card-buttons'), done, ['press', 'Order'], waits(), answer(0, { decision: 'reject' }), done]);
add('action', 'Pick of a list', [say('card-list'), done, ['press', 'Pick'], done]);
add('action', 'with an Idempotency-Key', [say('card-buttons'), done, ['press', 'Look', { headers: { 'idempotency-key': 'k1' } }], done, ['press', 'Look',
  { headers: { 'idempotency-key': 'k1' } }], ['press', 'Say', { headers: { 'idempotency-key': 'k1' } }]]);
add('action', 'made up', [say('card-buttons'), done, ...[{}, { threadId: 't1' }, { threadId: 't1', messageId: 'none', actionId: 'a0' }, { threadId: 'none',
  messageId: 'x', actionId: 'a0' }, { threadId: 't1', messageId: 'u1', actionId: 'a0', toolId: 'order' }].map((body) => ['agent', 'POST', '/actions', { body }])]);

// ---- plans ----
add('plan', 'approved', [say('plan'), waits(), answer(0, { decision: 'approve' }), ['inbox', 1], waits(), answer(0, { decision: 'approve' }), done]);
add('plan', 'rejected', [say('计划'), waits(), answer(0, { decision: 'reject', comment: '先别买' }), done]);
add('plan', '批准', [say('计划'), waits(), answer(0, { decision: 'approve' }), done]);
add('plan', 'edited', [say('计划'), waits(), answer(0, { decision: 'edit', args: { steps: [{ content: 'One', done_when: 'a' }, { content: 'Two' },
  { content: 'Three' }] } }), done]);
add('plan', 'refused answers', [say('plan'), waits(), answer(0, { decision: 'approve', always: true }), answer(0, { decision: 'edit', args: { steps: [] } }), ['cancel'],
  ['until', 'cancelled']]);
add('plan', 'a bad one first', [say('badplan'), waits(), answer(0, { decision: 'approve' }), done]);
add('plan', 'another after a rejection', [say('replan'), waits(), answer(0, { decision: 'reject' }), ['inbox', 1], waits(), answer(0, { decision: 'approve' }), done]);
add('plan', 'without a report', [say('muteplan'), waits(), answer(0, { decision: 'approve' }), done]);
add('plan', 'with a step that fails and one that is rejected', [say('failplan'), waits(), answer(0, { decision: 'approve' }), ['inbox', 1], waits(), answer(0,
  { decision: 'reject' }), done]);
add('plan', 'always', [say('计划', { agent: 'planner' }), waits(), answer(0, { decision: 'approve' }), done]);
add('plan', 'cancelled in the middle', [say('plan'), waits(), answer(0, { decision: 'approve' }), ['inbox', 1], waits(), ['cancel'], ['until', 'cancelled']]);

// ---- budgets ----
for (const [agent, word] of [['poor', 'spend'], ['poor', '花'], ['brief', 'rounds'], ['thrifty', 'spend'], ['poor', 'hello']]) add('budget', `${agent}: ${word}`,
  [say(word, { agent }), ['until', word === 'hello' ? 'completed' : 'exhausted']]);
add('budget', 'poor: a question in between', [say('asks', { agent: 'poor' }), waits(), answer(0, { answer: 'yes' }), ['until', 'exhausted']]);

// ---- the shop ----
for (const word of ['shop-price', 'shop-picture', 'shop-refuse', 'shop-wrong']) add('mcp tool', word, [say(word), done]);
for (const body of [{ decision: 'approve' }, { decision: 'reject' }, { decision: 'edit', args: { item: 'milk' } }]) add('mcp tool', `shop-order ${body.decision}`,
  [say('shop-order'), waits(), answer(0, body), done]);
for (const body of [{ fields: { size: 'Small', note: '小心' } }, { fields: { size: 'Large' } }, { skip: true }]) add('mcp tool', `shop-fit ${JSON.stringify(body)}`,
  [say('shop-fit'), waits(), ['agent', 'GET', '/interactions/{{open.0.interactionId}}'], answer(0, body), done]);
for (const word of ['older-price', 'older-picture']) add('mcp tool', word, [say(word), done]);
add('mcp tool', 'older-order', [say('older-order'), waits(), answer(0, { decision: 'approve' }), done]);
for (const [word, body] of [['older-fit', { fields: { size: 'Large' } }], ['older-fit', { skip: true }], ['older-visit', { skip: true }]]) {
  add('mcp tool', `${word} ${JSON.stringify(body)}`, [say(word), ['inbox', 1], ['agent', 'GET', '/interactions'], answer(0, body), done], { alone: true }); // such a server does not say who is asked
}
add('mcp tool', 'shop-slow, with progress', [say('hello'), done, ['listen'], ['heard'], say('shop-slow'), done, ['heard']]);
add('mcp tool', 'shop-fit, refused answers', [say('shop-fit'), waits(), answer(0, { fields: { size: 'xl' } }), answer(0, { fields: {} }), answer(0, { answer: 'small' }),
  ['cancel'], ['until', 'cancelled']]);
add('mcp tool', 'shop-visit', [say('shop-visit'), waits(), ['agent', 'GET', '/interactions/{{open.0.interactionId}}'], answer(0, { skip: true }), done]);

// ---- attachments ----
const PIXEL = Buffer.from('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==', 'base64');
for (const [name, content] of [['a.txt', 'Words of a file. 文件里的字。\n'], ['像素.png', PIXEL], ['data.bin', Buffer.from([0, 1, 2, 3, 255])], ['empty.txt', ''], ['page.html',
  '<script>alert(1)</script>']]) {
  add('file', name, [['upload', name, content], ...(content.length ? [say([{ type: 'text', text: 'hello file' }, { type: 'binary', id: '{{files.0.id}}',
    mimeType: 'x/y' }]), done, ['agent', 'GET', '/attachments/{{files.0.id}}'],
    ['agent', 'GET', '/attachments/{{files.0.id}}', { headers: { range: 'bytes=1-3' } }], ['agent', 'GET', '/attachments/{{files.0.id}}', { who: 'nobody' }], ['call',
      'GET', '{{files.0.url}}', { who: 'nobody' }]] : [say('hello'), done])]);
}
add('file', 'inside a message', [say([{ type: 'text', text: 'hello' }, { type: 'binary', mimeType: 'text/plain', filename: 'in.txt',
  data: Buffer.from('inside 里面').toString('base64') }]), done]);
add('file', 'AG-UI parts', [['agui', [{ type: 'text', text: 'hello' }, { type: 'image', source: { type: 'data', value: PIXEL.toString('base64'),
  mimeType: 'image/png' } }], { version: '1.0' }], ['agui', [{ type: 'text', text: 'hello' }, { type: 'document', source: { type: 'url',
  value: 'https://example.org/a.pdf', mimeType: 'application/pdf' } }]]]);
add('file', 'bad parts', [...[[{ type: 'binary', id: 'att_none', mimeType: 'x/y' }], [{ type: 'binary', data: '*', mimeType: 'text/plain' }], [{ type: 'strange' }],
  [{ type: 'text' }], [], [{ type: 'text', text: 7 }]].map((content) => say(content))], { ends: false });
add('file', 'bad uploads', [['upload', 'a.txt', 'x', { thread: 'bad thread!' }], ['agent', 'POST', '/attachments', { body: 'x', headers: { 'content-type': 'text/plain' },
  json: false }],
  ['agent', 'POST', '/attachments', { body: '--b--\r\n', headers: { 'content-type': 'multipart/form-data; boundary=b' }, json: false }], ['agent', 'GET',
    '/attachments/att_none'], ['call', 'GET', '/api/v1/agent/attachments/att_none?exp=1&sig=x', { who: 'nobody' }]], { ends: false });

// ---- repeats ----
add('repeat', 'the same run', [say('hello'), done, ['run', { threadId: 't1', runId: 'r1', messages: [{ id: 'u1', role: 'user', content: 'hello' }] }], ['run',
  { threadId: 't1', runId: 'r1', messages: [{ id: 'u1', role: 'user', content: 'other' }] }]]);
add('repeat', 'Idempotency-Key of a run', [say('hello', {}, { 'idempotency-key': 'a' }), done, ['run', { threadId: 't1', runId: 'r1', messages: [{ id: 'u1', role: 'user',
  content: 'hello' }] }, { headers: { 'idempotency-key': 'a' } }],
  ['run', { threadId: 't1', runId: 'r2', messages: [{ id: 'u2', role: 'user', content: 'hello' }] }, { headers: { 'idempotency-key': 'a' } }]]);
add('repeat', 'Idempotency-Key of an answer', [say('tea'), waits(), answer(0, { decision: 'approve' }, { headers: { 'idempotency-key': 'b' } }), done, answer(0,
  { decision: 'approve' }, { headers: { 'idempotency-key': 'b' } }), answer(0, { decision: 'reject' }, { headers: { 'idempotency-key': 'b' } })]);
add('repeat', 'Idempotency-Key of a title', [say('hello'), done, ...['One', 'One', 'Two'].map((title) => ['agent', 'PATCH', '/threads/t1', { body: { title },
  headers: { 'idempotency-key': 'c' } }])]);
add('repeat', 'a bad Idempotency-Key', [say('hello', {}, { 'idempotency-key': 'x'.repeat(300) })], { ends: false });
add('repeat', 'the run of an answer', [say('choose'), waits(), say('1 hour'), done, ['run', { threadId: 't1', runId: 'r2', messages: [{ id: 'u2', role: 'user',
  content: '1 hour' }] }], ['run', { threadId: 't1', runId: 'r2', messages: [{ id: 'u2', role: 'user', content: '2' }] }]]);

// ---- bad requests ----
const BAD_RUNS = [
  {}, { messages: 'x' }, { messages: [{}] }, { messages: [{ role: 'user' }] }, { messages: [{ role: 'king', content: 'x' }] }, { messages: [{ role: 'user',
    content: 7 }] }, { threadId: 'a b', messages: [] }, { threadId: 7, messages: [] },
  { threadId: 't9', messages: [] }, { threadId: 't1', runId: '!', messages: [{ role: 'user', content: 'x' }] }, { messages: [{ role: 'user', content: 'x' }],
    agent: 'nobody' }, { messages: [{ role: 'user', content: 'x' }], tools: 'x' },
  { messages: [{ role: 'user', content: 'x' }], tools: [{ name: 'a b' }] }, { messages: [{ role: 'user', content: 'x' }], resume: [{ interruptId: 'int_none',
    status: 'resolved' }] }, { messages: [{ role: 'user', content: 'x' }], forwardedProps: { timezone: 'Mars/Base' } },
  { threadId: 't9', messages: [{ role: 'assistant', content: 'x' }] }, { threadId: 't9', messages: [{ role: 'tool', content: 'x', toolCallId: 'call_none' }] },
    { messages: [{ id: 'a b', role: 'user', content: 'x' }] },
];
BAD_RUNS.forEach((body, i) => add('bad run', `${i + 1} ${JSON.stringify(body).slice(0, 60)}`, [['run', body], ['call', 'POST', '/api/v1/agent/ag-ui/assistant', { body,
  headers: { accept: 'text/event-stream' } }]], { ends: false }));
const post = (path, options) => ['call', 'POST', path, options];
const A = '/api/v1/agent';
add('bad request', 'no JSON', ['{', '', '[]', 'null', '{"a":1}x', '{"messages":[],"messages":[]}', '\u0000'].map((body) => post(`${A}/runs`, { body })), { ends: false });
add('bad request', 'other types', ['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=b'].map((type) => post(`${A}/runs`, { body: '{}',
  headers: { 'content-type': type } })), { ends: false });
add('bad request', 'not there', ['/', '/api', '/api/v1', '/nothing', `${A}/nothing`, `${A}/runs/none`, `${A}/runs/none/history`, `${A}/threads/none`,
  `${A}/threads/none/export`, `${A}/interactions/int_none`, `${A}/history`, `${A}/history?threadId=none`, `${A}/ag-ui/none/capabilities`, `${A}/agents/none/settings`]
  .filter((path) => path !== '/').map((path) => ['call', 'GET', path]), { ends: false });
add('bad request', 'methods', [['PUT', `${A}/runs`], ['GET', `${A}/actions`], ['DELETE', `${A}/runs/t1`], ['PATCH', `${A}/history`], ['POST', `${A}/threads`], ['GET',
  '/api/v1/tickets'], ['DELETE', '/mcp'], ['OPTIONS', `${A}/runs`]].map(([method, path]) => ['call', method, path]), { ends: false });
add('bad request', 'nobody', [['GET', `${A}/threads`], ['POST', `${A}/runs`], ['GET', `${A}/runs/t1/events`], ['GET', `${A}/interactions`], ['POST', '/mcp'], ['GET',
  `${A}/agents`], ['GET', '/metrics'], ['GET', '/healthz'], ['GET', '/readyz']].map(([method, path]) => ['call', method, path, { who: 'nobody' }]), { ends: false });
add('bad request', 'a wrong key', ['Bearer wrong', 'Basic abc', 'Bearer', 'bearer fk_0_0'].map((authorization) => ['call', 'GET', `${A}/threads`,
  { headers: { authorization } }]), { ends: false });
add('bad request', 'strange origins and hosts', [{ origin: 'https://evil.example' }, { host: 'evil.example' }, { origin: 'null' }].map((headers) => post(`${A}/runs`,
  { body: { messages: [{ role: 'user', content: 'hello' }] }, headers })), { ends: false });
add('bad request', 'what a user may not', [['agent', 'GET', '/agents/assistant/settings'], ['agent', 'PATCH', '/agents/assistant/settings', { body: { locale: 'en' } }],
  ['agent', 'GET', '/channels'], ['agent', 'POST', '/channels/own/login'], ['agent', 'GET', '/grants?scope=all'], ['call', 'GET', '/metrics',
  { headers: { 'x-forwarded-for': '192.0.2.1' } }]], { ends: false });
add('bad request', 'lists', ['threads', 'interactions', 'grants'].flatMap((list) => ['limit=0', 'limit=201', 'limit=x', 'cursor=x', 'strange=1'].map((query) => ['agent',
  'GET', `/${list}?${query}`])), { ends: false });
add('bad request', 'history', [say('hello'), done, ...['limit=0', 'limit=x', 'before=x', 'after=x', 'before=a&after=b', 'limit=1000'].map((query) => ['history',
  `?${query}`])]);
add('bad request', 'titles', [say('hello'), done, ...[{ title: '' }, { title: 7 }, {}, { title: 'x'.repeat(2000) }, { name: 'x' }].map((body) => ['agent', 'PATCH',
  '/threads/t1', { body }])]);
add('bad request', 'hints', [{}, { version: '1' }, { version: '2.1', intent: 'x', status: 'info', title: 'x' }, { version: '2.1', intent: 'data', status: 'info',
  items: [{ label: 7 }] }, [], { version: '2.1', intent: 'list', status: 'info' }].map((body) => ['agent', 'POST', '/compile-ui-hints', { body }]), { ends: false });
add('bad request', 'accept', [['call', 'GET', `${A}/threads`, { headers: { accept: 'image/png' } }], post(`${A}/runs`, { body: { messages: [] },
  headers: { accept: 'image/png' } }), ['call', 'GET', `${A}/runs/t1/events`, { headers: { accept: 'application/json' } }]].slice(0, 2), { ends: false });
add('bad request', 'too much', [['call', 'POST', '/api/v1/session', { body: { key: 'x'.repeat(20_000) }, who: 'nobody' }], ['call', 'POST', '/mcp',
  { body: { x: 'x'.repeat(600_000) } }], ['call', 'GET', `/api/v1/agent/${'x'.repeat(9000)}`], ['call', 'GET', '/healthz', { headers: { x: 'x'.repeat(17_000) } }]],
  { ends: false });
add('bad request', 'long addresses', [['call', 'GET', `${A}/threads/${'x'.repeat(200)}`], ['call', 'GET', `${A}/threads/a%20b`], ['call', 'GET', `${A}/threads/%ff`]],
  { ends: false });

// ---- lists, pages, search, exports ----
add('list', 'threads, pages', [...['a', 'b', 'c', 'd'].flatMap((name) => [['thread', name], say(`hello ${name}`), done]), ['agent', 'GET', '/threads?limit=2'], ['agent',
  'GET', '/threads?limit=2&cursor={{last.next}}'], ['agent', 'GET', '/threads?limit=50']], { ends: false });
add('list', 'threads, search', [...['hello 东西', '你好 世界', 'mark my words'].flatMap((text, i) => [['thread', `s${i}`], say(text), done]), ...['东西', 'hello', 'WORDS', '%25',
  'nothing at all', '世'].map((q) => ['agent', 'GET', `/threads?query=${encodeURIComponent(q.replace('%25', '%'))}`])], { ends: false });
add('list', 'history, pages', [...['hello', 'look', 'think', 'tea'].flatMap((word) => [say(word), word === 'tea' ? waits() : done]), ['history', '?limit=2'], ['history',
  '?limit=2&before={{last.before}}'], ['history', '?limit=3&before={{last.before}}'], ['history', '?limit=200'], ['agent', 'GET', '/history?threadId=t1&limit=1'],
  ['history', '?after={{last.before}}&limit=2']]);
add('list', 'inbox', [['thread', 'a'], say('choose'), waits(), ['thread', 'b'], say('tea'), waits(), ['thread', 'c'], say('both'), waits(2), ['agent', 'GET',
  '/interactions'], ['agent', 'GET', '/interactions?limit=2'], ['agent', 'GET', '/interactions?limit=2&cursor={{last.next}}'],
  ['agent', 'GET', '/interactions?threadId=b'], ['agent', 'GET', '/interactions?agent=clerk'], ['agent', 'GET', '/interactions?status=resolved'], ['agent', 'GET',
    '/interactions?status=strange']], { threads: ['a', 'b', 'c'] });
for (const word of ['mark', 'rounds', 'card-sections', 'choose']) add('export', word, [say(word), word === 'choose' ? waits() : done, ['agent', 'GET',
  '/threads/t1/export?format=json'], ['agent', 'GET', '/threads/t1/export'], ['agent', 'GET', '/threads/t1/export?format=pdf']]);
add('list', 'deleted', [say('tea'), waits(), ['agent', 'DELETE', '/threads/t1'], ['agent', 'GET', '/threads/t1'], ['agent', 'GET', '/threads'], ['agent', 'DELETE',
  '/threads/t1'], ['agent', 'GET', '/interactions'], say('hello'), done]);
add('list', 'agents and what they can', [['agent', 'GET', '/agents'], ...['assistant', 'clerk', 'mute', 'planner'].flatMap((name) => [['agent', 'GET',
  `/ag-ui/${name}/capabilities`]]), ['call', 'GET', '/api/v1/openapi.json'], ['agent', 'GET', '/agents', { headers: { 'accept-language': 'zh-CN' } }]], { ends: false });
add('list', 'settings', [['agent', 'GET', '/agents/spare/settings'], ...[{ enableAskUser: false }, { maxToolRounds: 2 }, { confirmPolicy: { order: 'allow' } },
  { locale: 'zh-CN' }, { locale: 'xx' }, { maxToolRounds: 0 }, { strange: 1 }, { confirmPolicy: { order: 'maybe' } }].map((body) => ['agent', 'PATCH',
  '/agents/spare/settings', { body }]),
  say('choose', { agent: 'spare' }), done, say('tea', { agent: 'spare' }), done, say('rounds', { agent: 'spare' }), ['until', 'exhausted'], ['agent', 'PATCH',
    '/agents/spare/settings', { body: { enableAskUser: null, maxToolRounds: null, confirmPolicy: null, locale: null } }], say('tea', { agent: 'spare' }), waits()],
    { roles: { me: ['operator', 'user'] }, alone: true });
add('list', 'sessions and tickets', [['call', 'POST', '/api/v1/session', { body: { key: 'wrong' }, who: 'nobody' }], ['call', 'POST', '/api/v1/session', { body: {},
  who: 'nobody' }], ['call', 'GET', '/api/v1/session'], ['call', 'DELETE', '/api/v1/session'],
  ['call', 'POST', '/api/v1/session', { body: { key: '{{keys.me}}' }, who: 'nobody' }], ['call', 'POST', '/api/v1/tickets'], ['socket', 'ws', { headers: {},
    path: '/api/v1/agent/ws?ticket={{last.ticket}}' }], ['socket', 'ws2', { headers: {}, path: '/api/v1/agent/ws?ticket={{last.ticket}}' }]], { ends: false });

// ---- AG-UI ----
const PICK = { name: 'pick_color', description: 'Lets the person pick a color.', parameters: { type: 'object', properties: { of: { type: 'array',
  items: { type: 'string' } } } } };
const FRONT = [PICK, { name: 'get_place', description: 'Where the person is.', parameters: { type: 'object' } }];
const resume = (...payloads) => payloads.map((payload, i) => ({ interruptId: `{{interrupts.${i}.id}}`, status: 'resolved', payload }));
const given = (i, content) => ({ id: `given${i}`, role: 'tool', toolCallId: `{{calls.${i}}}`, content });
for (const version of ['1.0', undefined]) {
  const v = version ?? 'before 1.0';
  const agui = (text, more = {}) => ['agui', text, { version, ...more }];
  // A message that becomes a run of its own behind the one that goes on: its model is silent, so that it does not matter when the stream gets there.
  const behind = (more, asked) => [['agui-open', 'both', 'stuck', { version, ...more }], ['agui-until', 'both', 'STEP_STARTED', 3], ['asked', asked], ['cancel',
    { runId: 'r2' }], ['agui-end', 'both'], ['until', 'cancelled', { run: 'r2' }]];
  const go = (entries, more = {}) => agui(null, { resume: entries, ...more });
  // Clients before 1.0 answer outside of the protocol's own fields, too: what is open is found in the inbox.
  for (const word of ['hello', '你好', 'mark', 'think', 'ponder', 'look', 'rounds', 'fail', 'broken', 'card-buttons', 'show-list', 'long70']) add('ag-ui', `${v}: ${word}`,
    [agui(word)]);
  const found = (word, open = 1) => [agui(word), waits(open), ['interrupt']];
  for (const [word, payload] of [['choose', '1 hour'], ['choose', { choices: ['c1'] }], ['strict', { skip: true }], ['several', { choices: ['c1', 'c2'] }], ['tea',
    { approved: true }], ['tea', { approved: false, comment: 'no' }], ['tea', { approved: true, editedArgs: EDIT }], ['book', { approved: true }]]) {
    add('ag-ui', `${v}: ${word}, resumed with ${JSON.stringify(payload)}`, [...found(word), go(resume(payload))]);
  }
  for (const word of version ? ['discard3', 'discardcall2'] : ['discard4', 'discardcall3']) add('ag-ui', `${v}: ${word}, a model that breaks off`, [agui(word)]);
  add('ag-ui', `${v}: an interrupt that expires`, [...found('choose'), ['soon', 0], done, agui(null), go(resume('1 hour'))]);
  add('ag-ui', `${v}: lost and found: uncertain`, [...found('cut'), go(resume({ decision: 'maybe' })), go(resume({ decision: 'happened' }))]);
  add('ag-ui', `${v}: cancelled entry`, [...found('choose'), go([{ interruptId: '{{interrupts.0.id}}', status: 'cancelled' }])]);
  add('ag-ui', `${v}: bad entries`, [...found('both', 2), go([{ interruptId: 'int_none', status: 'resolved', payload: 'x' }]), go([{ interruptId: '{{interrupts.1.id}}',
    status: 'resolved', payload: { approved: 'yes' } }]),
    go([{ interruptId: '{{interrupts.1.id}}', status: 'resolved', payload: { approved: true, editedArgs: { item: 7 } } }]), go([{ interruptId: '{{interrupts.0.id}}',
      status: 'maybe' }]), go('x'), ['keep', 'first', 'interrupts'], go(resume('an hour')), go([{ interruptId: '{{first.0.id}}', status: 'resolved', payload: 'again' },
      { interruptId: '{{first.1.id}}', status: 'resolved', payload: { approved: true } }])]);
  add('ag-ui', `${v}: three at once`, [...found('three', 3), go(resume({ approved: true }, { approved: false }, { approved: true, editedArgs: EDIT }))], { alone: true });
  add('ag-ui', `${v}: resume with a message`, [...found('choose'), ...behind({ resume: resume('1 hour') }, 3)]);
  add('ag-ui', `${v}: a message instead`, [...found('tea'), agui('no, thanks')]);
  add('ag-ui', `${v}: plan`, [...found('计划'), go(resume({ approved: true }))]);
  for (const [word, tools] of [['color', 1], ['colors', 2], ['colormixed', 1]]) {
    const from = word === 'colormixed' ? 1 : 0;
    add('front-end tool', `${v}: ${word}`, [agui(word, { tools: FRONT }), agui(null, { tools: FRONT, messages: Array.from({ length: tools }, (_, i) => given(i + from,
      i ? '{"place":"here"}' : '蓝')) })]);
  }
  add('front-end tool', `${v}: one after the other`, [agui('colors', { tools: FRONT }), agui(null, { tools: FRONT, messages: [given(0, 'red')] }), agui(null,
    { tools: FRONT, messages: [given(1, 'here')] })]);
  add('front-end tool', `${v}: declined by a message`, [agui('color', { tools: FRONT }), ...behind({ tools: FRONT }, 3)]);
  add('front-end tool', `${v}: with a question`, [agui('colorask', { tools: FRONT }), waits(), ['interrupt'], agui(null, { tools: FRONT, messages: [given(0, 'red')] }),
    agui(null, { tools: FRONT, resume: resume('an hour') })]);
  add('front-end tool', `${v}: with an approval`, [agui('colororder', { tools: FRONT }), waits(), ['interrupt'], agui(null, { tools: FRONT,
    resume: resume({ approved: true }) }), agui(null, { tools: FRONT, messages: [given(1, 'red')] })]);
  add('front-end tool', `${v}: forged results`, [agui('color', { tools: FRONT }), agui(null, { tools: FRONT, messages: [{ id: 'f1', role: 'tool', toolCallId: 'call_none',
    content: 'x' }] }), agui(null, { tools: FRONT, messages: [given(0, 'red')] }), agui(null, { tools: FRONT, messages: [{ ...given(0, 'blue'), id: 'f2' }] })]);
  add('ag-ui', `${v}: history of the client`, [agui('hello'), agui(null, { messages: [{ id: 'u1', role: 'user', content: 'hello' }, { id: 'x1', role: 'assistant',
    content: 'made up' }, { id: 'u2', role: 'user', content: 'look' }] }), agui(null), agui(null, { messages: [{ id: 'u1', role: 'user', content: 'changed' }] })]);
  add('ag-ui', `${v}: state`, [agui('hello', { state: { counter: 1, 名: '值' }, context: [{ description: 'where', value: 'here' }] }), agui('look', { state: {} })]);
  add('ag-ui', `${v}: joined from the other side`, [say('look'), done, agui(null), say('choose'), waits(), agui(null), answer(0, { choices: ['c1'] }), done, agui(null)]);
  add('ag-ui', `${v}: other agents`, [agui('tea', { agent: 'clerk' }), agui('choose', { agent: 'mute' }), agui('spend', { agent: 'poor' }), agui('hello',
    { agent: 'nobody' })]);
  add('ag-ui', `${v}: by the route of runs`, [agui('hello', { route: '/runs' }), agui('hello', { route: '/runs', agent: 'clerk' }), agui('hello', { route: '/runs',
    headers: { accept: 'text/event-stream, application/json' } })]);
  add('ag-ui', `${v}: stopped`, [['listen'], ['agui-open', 'one', 'stuck', { version }], ...stuck(), ['cancel'], ['agui-end', 'one'], ['until', 'cancelled']]);
  add('ag-ui', `${v}: in the queue`, [['listen'], ['agui-open', 'one', 'stuck', { version }], ...stuck(), ['agui-open', 'two', 'stuck', { version }], ['heard', 'live',
    'run.queued'], ['cancel'], ['agui-end', 'one'], ['agui-until', 'two', 'STEP_STARTED', 1], ['asked', 2], ['cancel', { runId: 'r2' }], ['agui-end', 'two'], ['until',
    'cancelled', { run: 'r2' }]]);
  add('ag-ui', `${v}: the same run again`, [agui('hello', { runId: 'r7' }), agui(null, { runId: 'r7', messages: [{ id: 'u1', role: 'user', content: 'hello' }] }),
    agui(null, { runId: 'r7', messages: [{ id: 'u8', role: 'user', content: 'other' }] })]);
}
add('ag-ui', 'a strange version', [['agui', 'hello', { version: '7.0' }], ['agui', 'hello', { version: 'x' }], ['agui', 'hello', { protocolVersion: 1 }]]);

// ---- WebSocket ----
const tell = (value, options) => ['tell', value, options];
const frames = (type, options) => ['frames', type, options];
const subscribe = (more = {}) => tell({ type: 'subscribe', sessionId: 't1', after: 0, ...more });
const over = frames('run.finished');
const BEGIN = [say('hello'), done, ['socket'], subscribe(), ['frames-all']];
for (const word of ['hello', 'mark', 'think', 'look', 'rounds', 'card-list', 'show-form', 'broken']) add('socket', word, [...BEGIN, tell({ type: 'message',
  sessionId: 't1', content: word }), word === 'broken' ? frames('run.error') : over]);
for (const [word, value] of [['choose', '1 hour'], ['choose', { choices: ['c1'] }], ['several', { choices: ['c1', 'c2'] }], ['open', '随便'], ['strict', { skip: true }],
  ['form', { fields: { item: 'tea' } }]]) {
  add('socket', `${word}, answered ${JSON.stringify(value)}`, [...BEGIN, tell({ type: 'message', sessionId: 't1', content: word }), over, waits(),
    tell({ type: 'clarify_response', sessionId: 't1', requestId: '{{open.0.interactionId}}', answer: value }), over]);
}
add('socket', 'discard5, a model that breaks off', [...BEGIN, tell({ type: 'message', sessionId: 't1', content: 'discard5' }), over]);
add('socket', 'answered without its id', [...BEGIN, tell({ type: 'message', sessionId: 't1', content: 'open' }), over, waits(), tell({ type: 'clarify_response',
  sessionId: 't1', answer: 'this' }), over]);
add('socket', 'answered by the id of its call', [...BEGIN, tell({ type: 'message', sessionId: 't1', content: 'open' }), over, waits(), tell({ type: 'clarify_response',
  sessionId: 't1', requestId: '{{open.0.toolCallId}}', answer: 'this' }), over]);
for (const body of [{ decision: 'approve' }, { decision: 'reject', comment: 'no' }, { decision: 'edit', args: EDIT }, { decision: 'approve',
  always: { scope: 'thread' } }]) {
  add('socket', `tea, ${JSON.stringify(body)}`, [...BEGIN, tell({ type: 'message', sessionId: 't1', content: 'tea' }), over, waits(), tell({ type: 'confirm_response',
    sessionId: 't1', requestId: '{{open.0.interactionId}}', ...body }), over]);
}
add('socket', 'refused answers', [...BEGIN, say('both'), waits(2), ...[
  { type: 'clarify_response', sessionId: 't1', requestId: '{{open.1.interactionId}}', answer: 'yes' }, { type: 'clarify_response', sessionId: 't1',
    requestId: '{{open.0.interactionId}}', answer: { decision: 'approve' } },
  { type: 'confirm_response', sessionId: 't1', requestId: '{{open.1.interactionId}}', decision: 'maybe' }, { type: 'confirm_response', sessionId: 't2',
    requestId: '{{open.1.interactionId}}', decision: 'approve' },
  { type: 'confirm_response', requestId: 'int_none', decision: 'approve' }, { type: 'clarify_response', sessionId: 't1' }, { type: 'confirm_response', sessionId: 't1',
    requestId: '{{open.1.interactionId}}', decision: 'approve', binding: 'k1:x' }].map((value) => tell(value)), ['frames-all']]);
add('socket', 'other forms of events', [say('hello'), done, ['socket'], subscribe({ events: ['ask-user'] }), tell({ type: 'message', sessionId: 't1',
  content: 'choose' }), frames('ai-chat-complete'), frames('ai-chat-complete'), waits(), answer(0, { choices: ['c2'] }), frames('ai-chat-complete')]);
add('socket', 'only clarify', [say('hello'), done, ['socket'], subscribe({ events: ['clarify'] }), tell({ type: 'message', sessionId: 't1', content: '选择' }),
  frames('clarify_request')]);
add('socket', 'all forms', [say('hello'), done, ['socket'], subscribe({ events: ['native', 'clarify', 'ask-user'] }), frames('ai-chat-complete'), tell({ type: 'message',
  sessionId: 't1', content: 'two' }), frames('ai-chat-complete')]);
add('socket', 'cursors', [say('hello'), done, say('look'), done, ['socket'], tell({ type: 'subscribe', sessionId: 't1', after: 5 }), ['frames-all'],
  tell({ type: 'unsubscribe', sessionId: 't1' }), tell({ type: 'subscribe', sessionId: 't1' }), tell({ type: 'subscribe', sessionId: 't1', after: 999 }),
  frames('reset')]);
add('socket', 'stop', [...BEGIN, tell({ type: 'message', sessionId: 't1', content: 'stuck' }), frames('step.start'), ['asked', 2], tell({ type: 'stop',
  sessionId: 't1' }), over, tell({ type: 'stop', sessionId: 't1' }), tell({ type: 'stop', sessionId: 'none' }), frames('error', { where: { code: 'not_found' } })]);
add('socket', 'stop while it waits', [...BEGIN, tell({ type: 'message', sessionId: 't1', content: 'tea' }), over, waits(), tell({ type: 'stop', sessionId: 't1' }),
  over]);
add('socket', 'the inbox', [['socket'], tell({ type: 'subscribe', inbox: true }), frames('inbox'), say('choose'), frames('interaction.request'), waits(), answer(0,
  { choices: ['c1'] }), frames('interaction.resolved'), done, tell({ type: 'unsubscribe', inbox: true })]);
add('socket', 'errors', [['socket'], ...[{ type: 'strange' }, {}, { type: 'subscribe' }, { type: 'subscribe', sessionId: 'a b' }, { type: 'subscribe', sessionId: 't1',
  after: 'x' }, { type: 'subscribe', sessionId: 't1', events: ['other'] },
  { type: 'message', sessionId: 't1' }].map((value) => tell(value)), ['frames', 'error', { where: { field: 'content' } }]], { ends: false });
add('socket', 'more errors', [['socket'], ...[{ type: 'message', content: 'x' }, { type: 'message', sessionId: 't1', content: 'x', extra: 1 }, { type: 'clarify_response',
  sessionId: 'none', answer: 'x' }, { type: 'unsubscribe', sessionId: 'none' }, { type: 'ping' }].map((value) => tell(value)), ['frames', 'pong']], { ends: false });
add('socket', 'ten frames that make no sense', [['socket'], ...Array.from({ length: 10 }, () => tell('{', { silent: true })), ['closed']], { ends: false });
add('socket', 'no text', [['socket'], ['raw', Buffer.from([0x82, 0x81, 0, 0, 0, 0, 1])], ['closed']], { ends: false });
add('socket', 'no login', [['socket', 'ws', { who: 'nobody' }], ['socket', 'ws2', { headers: { authorization: 'Bearer wrong' } }]], { ends: false });
add('socket', 'a deleted session', [...BEGIN, ['agent', 'DELETE', '/threads/t1'], frames('error')], { ends: false });
add('socket', 'parts and ids', [...BEGIN, tell({ type: 'message', sessionId: 't1', content: [{ type: 'text', text: 'hello' }], messageId: 'mine', runId: 'own' }), over,
  tell({ type: 'message', sessionId: 't1', content: [{ type: 'text', text: 'hello' }], messageId: 'mine', runId: 'own' }), tell({ type: 'ping' }), frames('pong')]);

// ---- /mcp ----
const MODERN = '2026-07-28';
const meta = { 'io.modelcontextprotocol/protocolVersion': MODERN, 'io.modelcontextprotocol/clientInfo': { name: 'tester', version: '1' },
  'io.modelcontextprotocol/clientCapabilities': {} };
const rpc = (method, params, more = {}) => ['mcp', { jsonrpc: '2.0', id: 1, method, ...(params ? { params } : {}) }, more];
const modern = (method, params = {}) => ['mcp', { jsonrpc: '2.0', id: 'a"b', method, params: { ...params, _meta: meta } }, { headers: { 'mcp-protocol-version': MODERN,
  'mcp-method': method, ...(params.name ? { 'mcp-name': params.name } : {}) } }];
const tool = (name, args, more) => rpc('tools/call', { name, arguments: args }, more);
const desk = { roles: { 'my-agent': ['ask'] }, ends: false };
const asAgent = { who: 'my-agent' };
for (const version of ['2025-06-18', '2025-11-25', '2024-11-05', '2099-01-01']) add('mcp', `initialize ${version}`, [rpc('initialize', { protocolVersion: version,
  capabilities: {}, clientInfo: { name: 'x', version: '1' } })], { ends: false });
add('mcp', 'tools/list', [rpc('tools/list'), modern('tools/list'), rpc('ping'), modern('server/discover'), rpc('resources/list'), rpc('prompts/list')], { ends: false });
add('mcp', 'notifications', [['mcp', { jsonrpc: '2.0', method: 'notifications/initialized' }], ['mcp', { jsonrpc: '2.0', method: 'notifications/cancelled',
  params: { requestId: 1 } }], ['mcp', { jsonrpc: '2.0', id: 7, result: {} }]], { ends: false });
add('mcp', 'bad messages', ['{"jsonrpc":', '{} {}', '1', [{ jsonrpc: '2.0', id: 1, method: 'ping' }], { id: 1, method: 'ping' }, { jsonrpc: '1.0', id: 1,
  method: 'ping' }, { jsonrpc: '2.0', id: null, method: 'ping' }, { jsonrpc: '2.0', id: {}, method: 'ping' }, { jsonrpc: '2.0', id: 1, method: 'ping',
  params: [] }].map((body) => ['mcp', body]), { ends: false });
add('mcp', 'bad calls', [rpc('tools/call', {}), tool('rm', {}), tool('ask_user', {}), tool('ask_user', { question: '' }), tool('ask_user', { question: 'x',
  choices: 'y' }), tool('ask_user', { question: 'x', wait_s: 99 }), tool('confirm', {}), tool('get_answer', { id: 'none' }), tool('get_answer', {}), tool('ask_user',
  { question: 'x', strange: 1 })], { ends: false });
add('mcp', 'modern, bad heads', [['mcp', { jsonrpc: '2.0', id: 1, method: 'tools/list', params: { _meta: meta } }, { headers: { 'mcp-method': 'tools/list' } }], ['mcp',
  { jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} }, { headers: { 'mcp-protocol-version': MODERN, 'mcp-method': 'tools/list' } }],
  ['mcp', { jsonrpc: '2.0', id: 1, method: 'ping' }, { headers: { 'mcp-protocol-version': '1999-01-01' } }]], { ends: false });
const DESK = { question: 'Tea or coffee? 茶还是咖啡？', choices: ['tea', 'coffee'], title: 'Drinks' };
for (const body of [{ choices: ['c1'] }, { answer: 'water' }, { skip: true }]) {
  add('mcp', `a question that waits, ${JSON.stringify(body)}`, [['mcp-open', 'q', { jsonrpc: '2.0', id: 9, method: 'tools/call', params: { name: 'ask_user',
    arguments: DESK } }, asAgent], ['inbox', 1], ['agent', 'GET', '/interactions'], answer(0, body), ['mcp-end', 'q'],
    tool('get_answer', { id: '{{mcp.id}}', wait_s: 0 }, asAgent), ['thread', '{{open.0.threadId}}'], done], { ...desk, ends: true, threads: ['{{open.0.threadId}}'] });
}
for (const body of [{ decision: 'approve' }, { decision: 'reject', comment: 'not now 不行' }]) {
  add('mcp', `an approval that waits, ${body.decision}`, [['mcp-open', 'q', { jsonrpc: '2.0', id: 9, method: 'tools/call', params: { name: 'confirm',
    arguments: { action: 'Delete everything?', details: { path: '/tmp', count: 3 } } } }, asAgent], ['inbox', 1], answer(0, body), ['mcp-end', 'q'], ['thread',
    '{{open.0.threadId}}'], done], { ...desk, ends: true, threads: ['{{open.0.threadId}}'] });
}
add('mcp', 'pending, then answered', [tool('ask_user', { question: 'When?', wait_s: 0, key: 'k1' }, asAgent), tool('ask_user', { question: 'When?', wait_s: 0,
  key: 'k1' }, asAgent), ['keep', 'id', 'mcp.id'], ['inbox', 1], tool('get_answer', { id: '{{id}}', wait_s: 0 }, asAgent), answer(0, { answer: 'tomorrow' }),
  tool('get_answer', { id: '{{id}}' }, asAgent)], desk);
add('mcp', 'a form', [tool('ask_user', { question: 'Order', fields: [{ name: 'item', label: 'Item', type: 'text', required: true }], wait_s: 0 }, asAgent), ['keep', 'id',
  'mcp.id'], ['inbox', 1], answer(0, { fields: { item: '茶' } }), tool('get_answer', { id: '{{id}}' }, asAgent)], desk);
add('mcp', 'cancelled by the person', [tool('confirm', { action: 'Go?', wait_s: 0 }, asAgent), ['keep', 'id', 'mcp.id'], ['inbox', 1], ['agent', 'POST',
  '/interactions/{{open.0.interactionId}}/cancel'], tool('get_answer', { id: '{{id}}' }, asAgent)], desk);
add('mcp', 'who asks does not answer', [tool('confirm', { action: 'Go?', wait_s: 0 }), ['inbox', 1], answer(0, { decision: 'approve' }), ['agent', 'GET', '/threads',
  asAgent]], desk);
add('mcp', 'two at once', [tool('ask_user', { question: 'One?', wait_s: 0 }, asAgent), ['inbox', 1], tool('ask_user', { question: 'Two?', wait_s: 0 }, asAgent), ['inbox',
  2], ['agent', 'GET', '/interactions']], desk);
add('mcp', 'modern, a call', [modern('tools/call', { name: 'get_answer', arguments: { id: 'none' } }), modern('tools/call', { name: 'confirm', arguments: { action: 'Go?',
  wait_s: 0 } })], { ends: false });

// ---- chats ----
const chat = (text, more) => ['chat', text, more];
const heard = (count = 1) => ['chatted', count];
const CHAT = { ends: false };
for (const word of ['hello', '你好', 'mark', 'look', 'card-list', 'broken', 'nobody knows']) add('chat', word, [chat(word), heard()], CHAT);
for (const [word, text] of [['选择', '2'], ['选择', '第二个'], ['选择', '周三'], ['选择', '下周再说吧'], ['choose', '#2'], ['choose', 'ten minutes or so'], ['several', '1,3'], ['open',
  'in words'], ['strict', 'Blue']]) {
  add('chat', `${word}, replied "${text}"`, [chat(word), heard(), chat(text), heard()], CHAT);
}
add('chat', 'a button', [chat('选择'), heard(), chat(null, { button: '{{chat.buttons.0.data}}' }), heard()], CHAT);
add('chat', 'an approval', [chat('order some tea please'), heard(), chat('tea now please'), heard(), chat('approve {{code}}'), heard()], CHAT);
add('chat', 'an approval, refused', [chat('tea now please'), heard(), chat('reject'), heard()], CHAT);
add('chat', 'an approval, yes is not enough', [chat('tea now please'), heard(), chat('yes'), heard(), chat('approve 000000'), heard()], CHAT);
add('chat', '批准', [chat('茶 两份'), heard(), chat('好的'), heard(), chat('同意 {{code}}'), heard()], CHAT);
add('chat', 'commands', [chat('/help'), heard(), chat('/帮助'), heard(), chat('/stop'), heard(), chat('/link 00000000'), heard()], CHAT);
add('chat', 'a new conversation', [chat('选择'), heard(), chat('/new'), heard(), chat('hello'), heard()], CHAT);
add('chat', 'stopped', [chat('选择'), heard(), chat('/停止'), heard()], CHAT);
add('chat', 'two questions', [chat('two questions please'), heard(2), chat('hm, which?'), heard()], CHAT);
add('chat', 'refused calls', [['chat-bad', { id: '1', sender: 'x', text: 'y' }, { secret: 'other' }], ['chat-bad', { id: '1', sender: 'x', text: 'y' },
  { timestamp: '1000000000' }], ['chat-bad', { id: '1', sender: 'x', text: 'y' }, { signature: null }], ['chat-bad', { id: '1', sender: 'x', extra: 1 }], ['chat-bad',
  { sender: 'x', text: 'y' }], ['chat-bad', {}, { raw: '{' }], ['chat-bad', { id: '2', sender: 'x', files: [{ data: '*' }] }]], CHAT);
add('chat', 'linked', [['link'], chat('/link {{link}}'), heard(), chat('选择'), heard(), ['inbox', 1], ['keep', 'thread', 'open.0.threadId'], ['agent', 'GET',
  '/interactions'], answer(0, { choices: ['c1'] }), ['thread', '{{thread}}'], done, heard(2)], { threads: ['{{thread}}'] });

// ---- the terminal ----
const terminal = (args, input, more) => ['terminal', args, input, more];
const behind = (input) => [['listen'], say('stuck'), ...stuck(), terminal(['chat', '--json', 't1'], input, { behind: 'r1' })];
for (const word of ['hello', 'mark', 'look', 'think']) add('terminal', word, [...behind(`${word}\n`), terminal(['chat'], '你好\n')]);
add('terminal', 'a question', [...behind('选择\n2\n'), terminal(['inbox', '--json'])]);
add('terminal', 'an approval', [...behind('tea\n'), ['inbox', 1], terminal(['inbox', '--json']), terminal(['answer', '{{open.0.interactionId}}', '--approve', '--json']),
  terminal(['answer', '{{open.0.interactionId}}', '--reject', '--json']), done]);
for (const [method, params] of [['tools/list', {}], ['tools/call', { name: 'ask_user', arguments: { question: 'When?', wait_s: 0 } }]]) add('terminal', `mcp: ${method}`,
  [terminal(['mcp'], `${JSON.stringify({ jsonrpc: '2.0', id: 1, method, params })}\n`)], { ends: false });
add('terminal', 'in words', [terminal(['chat'], 'choose\n2\n'), terminal(['chat'], 'look\n'), terminal(['chat'], 'tea\n'), terminal(['chat'], 'broken\n'),
  terminal(['chat', '--once'], 'hello\nthere\n', { lang: 'zh_CN.UTF-8' })], { ends: false });

export const CONVERSATIONS = all;

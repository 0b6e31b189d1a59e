// SPDX-License-Identifier: Apache-2.0
//
// What the model says in the conversations, which agents there are, and which tools.

const ITEM = {
  type: 'object', required: ['item'], additionalProperties: false,
  properties: { item: { type: 'string', minLength: 1, description: 'What to order' }, count: { type: 'integer', minimum: 1, maximum: 20 } },
};
const ANY = { type: 'object' };

export const TOOLS = [
  { name: 'order', effect: 'write', idempotent: false, schema: ITEM, summary: { zh: '已下单：{item}（{order}）', en: 'Ordered: {item} ({order})' } },
  { name: 'pay', effect: 'write', idempotent: false, risk: 'external', schema: ITEM },
  { name: 'cut', effect: 'write', idempotent: false, risk: 'destructive', schema: ITEM },
  { name: 'flaky', effect: 'write', idempotent: true, schema: ITEM },
  { name: 'look', effect: 'read', schema: { type: 'object', properties: { reply: {} } } },
  { name: 'hold', effect: 'read', schema: { type: 'object', properties: { word: { type: 'string' } } } },
  { name: 'long', effect: 'read', schema: { type: 'object', properties: { kb: { type: 'integer' } } } },
  { name: 'words', effect: 'read', schema: { type: 'object', properties: { kb: { type: 'integer' } } } },
  { name: 'show', effect: 'read', schema: { type: 'object', properties: { hints: {} } } },
  ...['plain', 'empty', 'bytes', 'fail', 'wrong', 'html'].map((name) => ({ name, effect: 'read', schema: ANY })),
];

const POLICY = { cut: 'allow', flaky: 'allow' };
export const AGENTS = {
  assistant: { policy: POLICY, starters: ['Book a room 订会议室', 'hello'], prompt: 'You help. 你帮忙。' },
  clerk: { policy: { ...POLICY, order: 'allow', pay: 'deny' }, tools: ['order', 'pay', 'look', 'calendar'], busy: 'reject', locale: 'en', starters: [] },
  hasty: { policy: POLICY, busy: 'interrupt' },
  mute: { policy: POLICY, ask_user: false, locale: 'zh-CN' },
  poor: { policy: POLICY, budget: { tokens: 1000 } },
  thrifty: { policy: POLICY, budget: { cost: 0.002 } },
  brief: { policy: POLICY, max_rounds: 2 },
  planner: { policy: POLICY, plan: 'always' },
  office: { policy: POLICY, approvers: { pay: 'approver', calendar_delete: 'operator' } },
  spare: { policy: POLICY }, // its settings are changed
};

export const call = (name, args = {}) => ({ name, args });
export const MEETING = { title: 'Review 评审', start_time: '2030-01-31T15:00:00+08:00', end_time: '2030-01-31T16:00:00+08:00' };
const ask = (question, more = {}) => call('ask_user', { question, ...more });
const book = (more = {}) => call('calendar_write', { ...MEETING, ...more });
const order = (item, count) => call('order', { item, ...(count === undefined ? {} : { count }) });
const calls = (...list) => ({ calls: list });
const text = (words, more = {}) => ({ text: words, ...more });
const then = (match, ...turns) => ({ match: `^${match}( |$)`, turns });
const once = (match, ...list) => then(match, calls(...list), text('Done. 完成。'));
const costly = (tokens, turn) => ({ ...turn, usage: { input_tokens: tokens, output_tokens: 10 } });

const button = (label, type, fields = {}, more = {}) => ({ label, ...more, action: { type, ...fields } });
const card = (more) => ({ version: '2.1', intent: 'data', status: 'info', title: 'A card 卡片', items: [{ key: 'k', label: 'Key', value: 1.50, copyable: true }],
  ...more });
export const CARDS = {
  buttons: card({ actions: [
    button('Go', 'navigation', { path: '/orders', params: { id: 1 } }), button('Link', 'url', { url: 'https://example.org/', target: '_blank' }),
    button('Copy', 'copy', { content: ' as it is ', successMessage: 'Copied' }), button('Tell', 'event', { event: 'refresh "now"', payload: { a: [1, null], n: 1.50 } }),
    button('Look', 'tool', { toolId: 'look', params: { reply: { found: 1 } } }), button('Order', 'tool', { toolId: 'order', params: { item: 'tea', count: 2 } }),
    button('Wrong', 'tool', { toolId: 'order', params: { item: 'tea', count: 2000 } }), button('Say', 'payload', { payload: { room: '红', n: 1.50 } }),
    button('Submit', 'payload', { payload: { to: 'a place' }, submitTo: '/api/v1/other' }), button('Off', 'tool', { toolId: 'order' }, { disabled: true }),
    button('Gone', 'tool', { toolId: 'no_such_tool' }),
  ] }),
  list: card({ intent: 'list', status: 'success', listItems: [
    { title: 'One 一', subtitle: 'first', badge: { label: 'new', status: 'warning' }, items: [{ key: 'a', value: true }] },
    { title: 'Two', description: 'second', icon: 'star', actions: [button('Pick', 'payload', { payload: { choice: 'Two' } })] },
  ] }),
  sections: card({ intent: 'mixed', status: 'warning', body: '**Bold** and `code`', bodyFormat: 'markdown', sections: [
    { title: 'S1', items: [{ key: 'x', value: 'y' }] }, { title: 'S2', description: 'd', body: 'plain <b>text</b>', status: 'error' }] }),
  form: card({ intent: 'form', status: 'pending', actions: [button('Send', 'payload', { payload: { ok: true } }), button('Leave', 'event', { event: 'leave' },
    { style: 'danger' })] }),
  message: { version: '2.1', intent: 'message', status: 'error', title: 'Oh', body: '```js\nlet a = 1;\n```', bodyFormat: 'markdown' },
  status: { version: '2.1', intent: 'status', status: 'success', title: '备份完成', icon: { name: 'database', size: 'lg' } },
  refused: { version: '2.1', intent: 'data', status: 'info', title: 'Bad', actions: [button('Bad', 'url', { url: 'javascript:alert(1)' })] },
};
const STEPS = [{ content: 'Look around', done_when: 'the shop is found' }, { content: 'Order tea' }];
const ZH_STEPS = [{ content: '找店' }, { content: '买茶', done_when: '买到' }];
const plan = (steps = STEPS) => calls(call('submit_plan', { steps }));
const LONG_TEXT = Array.from({ length: 60 }, (_, i) => `Line ${i + 1} 第 ${i + 1} 行 😀 of a long answer.`).join('\n');
const MARKDOWN = '# 标题\n\n- one\n- **two**\n\n```c\nint main(void) { return 0; }\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n<script>alert("x")</script> & "quotes" \\ \u2028 end';

const SAID = [
  // Plain answers.
  then('hello', text('Hello, how are you?', { chunk: 65536 })),
  then('你好', text('你好！有什么可以帮你？')),
  then('long', text(LONG_TEXT, { chunk: 100 })),
  then('mark', text(MARKDOWN, { chunk: 7 })),
  then('single', text('One letter at a time 一个一个。😀', { chunk: 1 })),
  then('think', { reasoning: 'I had better think. 想一想。', text: 'I thought.' }),
  then('ponder', { reasoning: 'Step one.', ...calls(call('look', { reply: 'a thing' })) }, { reasoning: 'Step two.', text: 'Seen.' }),
  then('silent', text('')),
  then('numbers', text('12', { usage: { input_tokens: 123, output_tokens: 45 } })),
  then('echo', text('{"not":"json", "but":"text"}\n\t\u0001\u007f')),
  // Failing models.
  then('broken', text('x', { fail: { at: 'start', status: 400 } })),
  then('denied', text('x', { fail: { at: 'start', status: 401 } })),
  then('halfway', text('This breaks off in the middle.', { chunk: 65536, fail: { at: 10, status: 400 } })),
  then('lost', text('Here again.', { fail: { at: 'start', status: 503, times: 3 } })),
  then('lost2', text('Here again.', { fail: { at: 'start', status: 503, times: 3 } })),
  then('lost3', text('Here again.', { fail: { at: 'start', status: 503, times: 3 } })),
  then('gone', text('x', { fail: { at: 'start', status: 503 } })),
  then('after', calls(call('look', { reply: 1 })), text('x', { fail: { at: 'start', status: 422 } })),
  // Each of these breaks off once, and is asked again.
  ...[1, 2, 3, 4, 5].map((n) => then(`discard${n}`, { reasoning: 'Hm.', ...text('This was said twice. 说了两次。', { chunk: 8, fail: { at: 12, times: 1 } }) })),
  ...[1, 2, 3].map((n) => then(`discardcall${n}`, { ...text('Wait.'), ...calls(call('look', { reply: 'a rather long argument' })), chunk: 8, fail: { at: 20, times: 1 } },
    text('Seen.'))),
  // Questions.
  once('choose', ask('How long? 多久？', { choices: ['30 minutes', { label: '1 hour', description: 'the usual' }] })),
  once('strict', ask('Which room?', { choices: ['Red', 'Blue'], allow_freeform: false })),
  once('several', ask('Who comes?', { choices: ['Ann', 'Bob', 'Eve'], multi: true })),
  once('open', ask('What about?')),
  once('form', ask('Your order', { fields: [
    { name: 'item', label: 'Item', type: 'text', required: true }, { name: 'count', label: 'How many', type: 'number' }] })),
  once('选择', ask('会议定在哪天？', { choices: ['周一', { label: '周二', description: '下午没有空' }, '周三'] })),
  once('two', ask('First?'), ask('Second?', { choices: ['a', 'b'] })),
  then('chain', calls(ask('First?')), calls(ask('Then?', { choices: ['x', 'y'] })), calls(ask('Last?', { choices: ['p', 'q'], multi: true })), text('Thanks.')),
  once('badask', call('ask_user', { choices: ['a'] })),
  then('saidask', { text: 'Let me ask. 问一下。', ...calls(ask('Tea or coffee?', { choices: ['tea', 'coffee'] })) }, text('Good.')),
  // Approvals.
  once('book', book()),
  once('tea', order('tea', 2)),
  once('茶', order('绿茶', 2)),
  once('rent', call('pay', { item: 'rent' })),
  then('again', calls(order('tea', 1)), calls(order('tea', 2)), calls(order('milk')), text('All three.')),
  then('agenda', calls(book()), calls(call('calendar_read', { from: '2030-01-01T00:00:00Z', to: '2030-12-31T00:00:00Z' })), text('These.')),
  once('three', order('one'), order('two'), order('three')),
  once('both', ask('How long?'), order('tea')),
  once('tangle', ask('First?'), ask('Second?'), order('tea')),
  once('wrongargs', call('order', { item: 'tea', count: 2000 })),
  once('badjson', { name: 'order', args: '{"item": ' }),
  once('unknown', call('no_such_tool', { a: 1 })),
  once('erase', call('calendar_delete', { id: 'evt_none' })),
  once('who', call('user_resolve', { name: 'Ann' })),
  // Tools.
  once('look', call('look', { reply: { found: [1, 2.50, 'x'], deep: { a: null } } })),
  once('looks', call('look', { reply: 'first' }), call('look', { reply: { second: '二' } }), call('look', { reply: [3] })),
  then('rounds', calls(call('look', { reply: 1 })), { text: 'One more.', ...calls(call('look', { reply: 2 })) }, calls(call('look', { reply: 3 })), text('Enough.')),
  once('mixed', call('look', { reply: 'read' }), order('tea'), ask('Which?')),
  once('plain', call('plain')),
  once('empty', call('empty')),
  once('bytes', call('bytes')),
  once('fail', call('fail')),
  once('fail404', call('fail', { status: 404 })),
  once('wrong', call('wrong')),
  once('html', call('html')),
  once('cut', call('cut', { item: 'wire' })),
  once('flaky', call('flaky', { item: 'wire' })),
  once('long70', call('long', { kb: 70 })),
  once('long200', call('long', { kb: 200 })),
  once('words40', call('words', { kb: 40 })),
  once('words1', call('words', { kb: 1 })),
  then('hold', { ...calls(call('hold', { word: 'HOLD' })), chunk: 65536 }, text('Done.')),
  // Cards.
  ...Object.entries(CARDS).map(([name, hints]) => then(`card-${name}`, { text: 'Here.', ...calls(call('show_card', hints)) }, text('I see.'))),
  ...Object.entries(CARDS).map(([name, hints]) => once(`show-${name}`, call('show', { hints }))),
  once('show-huge', call('show', { hints: card({ listItems: Array.from({ length: 400 }, (_, i) => ({ title: `Entry ${i}`, description: 'x'.repeat(150) })) }) })),
  // Plans.
  then('plan', plan(), calls(call('look', { reply: 'a shop' })), text('Found a shop.'), calls(order('tea')), text('Ordered.'), text('All done: tea is ordered.')),
  then('计划', plan(ZH_STEPS), text('找到了。'), text('买好了。'), text('完成。')),
  then('badplan', calls(call('submit_plan', { steps: [] })), plan(), text('First.'), text('Second.'), text('Report.')),
  then('replan', plan([{ content: 'Ask the neighbours' }]), plan(), text('First.'), text('Second.'), text('Report.')),
  then('muteplan', plan(), text('First.'), text('Second.'), text('x', { fail: { at: 'start', status: 400 } })),
  then('failplan', plan(), calls(call('fail')), text('First.'), calls(order('tea')), text('Second.'), text('Report.')),
  // Budgets.
  then('spend', costly(400, calls(call('look'))), costly(700, calls(call('look'))), text('Never said.')),
  then('花', costly(1100, calls(call('look'))), text('没有说。')),
  then('asks', costly(400, calls(ask('Go on?'))), costly(900, calls(call('look'))), text('Never said.')),
  // The shop.
  once('shop-order', call('shop.order', { item: 'tea' })),
  once('shop-wrong', call('shop.order', { item: 7 })),
  once('shop-price', call('shop.price', { item: 'tea' })),
  once('shop-fit', call('shop.fit')),
  once('shop-visit', call('shop.visit')),
  once('shop-picture', call('shop.picture')),
  once('shop-refuse', call('shop.refuse')),
  once('shop-slow', call('shop.slow')),
  ...['order', 'price', 'fit', 'visit', 'picture'].map((name) => once(`older-${name}`, call(`older.${name}`, ['order', 'price'].includes(name) ? { item: 'tea' } : {}))),
  // The client's own tools.
  then('color', { text: 'Your choice:', ...calls(call('pick_color', { of: ['red', '蓝'] })) }, text('Fine.')),
  then('colors', calls(call('pick_color', { of: ['red'] }), call('get_place')), text('Fine.')),
  then('colormixed', calls(call('look', { reply: 'seen' }), call('pick_color', { of: ['red'] })), text('Fine.')),
  then('colorask', calls(call('pick_color', { of: ['red'] }), ask('How long?')), text('Fine.')),
  then('colororder', calls(order('tea'), call('pick_color', { of: ['red'] })), text('Fine.')),
  // Somebody is stopped.
  then('stuck', text('At last.', { delay_ms: 600_000 })),
  { turns: [text('I do not know.', { chunk: 65536 })] },
];

// Without usage the model would count the words of its prompt, and the day of the week is among them.
const counted = (turn, i) => ({ usage: { input_tokens: 100 + 7 * i, output_tokens: 20 + i }, ...turn });
export const LINES = SAID.map(({ turns, ...line }) => ({ ...line, turns: turns.map(counted) }));

// SPDX-License-Identifier: Apache-2.0
//
// Live equals history, on the screen: conversations of every kind, each seen by four pages. One was open all the time, one
// beside it in a second tab, one behind a line that was cut in the middle, one came when all was over. What stands on them
// must be the same, node for node.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { cuttingProxy, LONG, newPage, openBrowser, serialise, settledText, startScripted, until } from './kit.mjs';

const MEETING = { title: 'Review 评审', start_time: '2030-01-31T15:00:00+08:00', end_time: '2030-01-31T16:00:00+08:00' };
const book = (title = MEETING.title) => ({ name: 'calendar_write', args: { ...MEETING, title } });
const look = { name: 'calendar_read', args: { from: '2030-01-31T00:00:00+08:00', to: '2030-02-01T00:00:00+08:00' } };
const ask = (args) => ({ name: 'ask_user', args });
const card = (args) => ({ name: 'show_card', args: { version: '2.1', intent: 'data', status: 'success', title: 'A card 卡片', ...args } });
const SLOW = { chunk: 7, gap_ms: 15 };
const RICH = '## Heading 标题\n\n**重点：**一段 `code` and [a link](https://example.org/x), *emphasis*.\n\n- one\n  - nested 嵌套\n- two\n\n| a | 乙 |\n|---|---:|\n| 1 | 2 |\n\n```js\nconst answer = 42; // 答案\n```\n\n> quoted\n\n1. first\n2. second\n';

// What the model does, by the first word.
const LINES = [
  { match: '^plain', turns: [{ text: 'Hello. 你好。', ...SLOW }] },
  { match: '^rich', turns: [{ text: RICH.repeat(3), ...SLOW, gap_ms: 5 }] },
  { match: '^think', turns: [{ reasoning: 'Let me think. 想一想。'.repeat(4), text: 'Thought 了。', ...SLOW }] },
  { match: '^look', turns: [{ text: 'I look.', calls: [look], ...SLOW }, { text: 'Seen 看过了。', ...SLOW }] },
  { match: '^many', turns: [{ calls: [look, look] }, { calls: [look, look] }, { calls: [look] }, { text: 'Five times.', ...SLOW }] },
  { match: '^wrong', turns: [{ calls: [{ name: 'calendar_delete', args: { id: 'evt_none' } }] }, { text: 'It is not there.' }] },
  { match: '^choose', turns: [{ text: 'One thing.', calls: [ask({ question: '你想要什么风格的商品描述？', choices: ['简洁专业', '活泼有趣', '高端奢华'] })], ...SLOW }, { text: 'All right 好的。', ...SLOW }] },
  { match: '^several', turns: [{ calls: [ask({ question: 'Who comes?', choices: ['Ann', 'Bob', 'Eve'], multi: true })] }, { text: 'Good.' }] },
  { match: '^strict', turns: [{ calls: [ask({ question: 'Which room?', choices: ['Red', 'Blue'], allow_freeform: false })] }, { text: 'Good.' }] },
  { match: '^open', turns: [{ calls: [ask({ question: 'What about?' })] }, { text: 'Good.' }] },
  { match: '^form', turns: [{ calls: [ask({ question: 'Your data?', fields: [{ name: 'city', label: 'City', type: 'string', required: true }, { name: 'days', label: 'Days', type: 'integer' }] })] }, { text: 'Good.' }] },
  { match: '^book', turns: [{ reasoning: 'A meeting.', text: 'I book it.', calls: [book()], ...SLOW }, { text: 'Booked 已安排。', ...SLOW }] },
  { match: '^both', turns: [{ calls: [look, ask({ question: 'What about?' }), book('One'), book('Two')] }, { text: 'All done.', ...SLOW }] },
  { match: '^again', turns: [{ calls: [book('One')] }, { calls: [book('Two')] }, { text: 'Done.' }] },
  { match: '^card', turns: [{ text: 'See:', calls: [card({ items: [{ key: 'a', value: 1 }, { key: 'b', label: '乙', value: '文' }], actions: [{ label: 'Copy', action: { type: 'copy', content: 'x' } }] })], ...SLOW }] },
  { match: '^wide', turns: [{ text: 'See:', calls: [card({ body: 'wide 宽 '.repeat(9000) })], chunk: 65536 }] },
  { match: '^flaky', turns: [{ reasoning: 'Hm, hm.', text: 'At the second attempt.', fail: { at: 12, times: 1 }, ...SLOW }] },
  { match: '^fail', turns: [{ text: 'x', fail: { at: 'start', status: 400 } }] },
  { match: '^lost', turns: [{ text: 'Here again.', fail: { at: 'start', status: 503, times: 3 } }] },
  { match: '^plan', turns: [{ calls: [{ name: 'submit_plan', args: { steps: [{ content: 'Look 查看', done_when: 'seen' }, { content: 'Tell' }] } }] }, { calls: [look] }, { text: 'Looked.', ...SLOW }, { text: 'Told.', ...SLOW }, { text: 'The report.', ...SLOW }] },
  { match: '^bad', turns: [{ calls: [{ name: 'calendar_write', args: '{"a": 1' }] }, { text: 'I gave up.' }] },
  { match: '^stop', turns: [{ text: 'one two three four five six seven eight nine ten '.repeat(20), chunk: 5, gap_ms: 40 }] },
  { match: '^empty', turns: [{ text: '', calls: [look] }, { text: '' }] },
  { match: '^long', turns: [{ text: '很长的段落。'.repeat(2000), chunk: 400, gap_ms: 2 }] },
  { turns: [{ text: 'Hello. 你好。' }] },
];

const approve = ({ binding }) => ({ decision: 'approve', binding });
const reject = ({ binding }) => ({ decision: 'reject', comment: 'Not today 今天不行', binding });
const edit = ({ binding }) => ({ decision: 'edit', args: { ...MEETING, title: 'Changed 改过' }, binding });
const choose = (...choices) => () => ({ choices });
const cancel = 'cancel', silence = 'stop'; // of one interaction, of the run

// The conversations: what is said, and what is done about everything that is asked, in order; the last is repeated.
const TALKS = [
  ['think'], ['many'], ['wrong'], ['empty'], ['long'], ['bad'],
  ['choose', () => ({ choices: ['c1'], text: '并且简短' })], ['choose', cancel], ['choose', silence],
  ['several', choose('c1', 'c3')], ['strict', choose('c1')], ['open', () => ({ skip: true })], ['form', () => ({ fields: { city: '北京', days: 3 } })],
  ['book', reject], ['book', edit], ['book', cancel], ['book', ({ binding }) => ({ decision: 'respond', comment: 'Ask Ann first.', binding })],
  ['book', ({ binding }) => ({ decision: 'approve', always: { scope: 'thread' }, binding })], ['again', reject, edit],
  ['both', (one) => (one.type === 'ask_user' ? { answer: 'Money' } : approve(one))],
  ['wide'], ['flaky'], ['lost', () => ({ decision: 'continue' })], ['plan', approve], ['plan', reject, silence],
  ['plain', 'then rich'], ['book', approve, 'then look'], ['fail', 'then plain'], ['card', 'then choose', 'say 2'],
  ['look', 'then book', 'say Please not'], ['stop', silence, 'then plain'], ['choose', choose('c1'), 'instead plain'],
];
// Those whose parts all stand in one of the above.
const MORE = [
  ['plain'], ['rich'], ['look'], ['choose', choose('c2')], ['choose', () => ({ answer: '我想要文艺风' })], ['choose', () => ({ skip: true })],
  ['several', choose('c2')], ['strict', cancel], ['open', () => ({ answer: 'Money\nand more' })], ['book', approve], ['book', silence],
  ['again', approve], ['again', approve, reject], ['both', (one) => (one.type === 'ask_user' ? { skip: true } : reject(one))],
  ['card'], ['fail'], ['lost', () => ({ decision: 'give_up' })], ['stop', silence], ['choose', choose('c3'), 'then book', approve],
  ['plain', 'instead rich'],
];

let server, proxy, chromium, first, far;

before(async () => {
  server = await startScripted(LINES, { env: { FERMATA_LOCALE: 'zh-CN' } });
  proxy = await cuttingProxy(server);
  chromium = await openBrowser();
  first = await newPage(chromium.browser, { url: `${server.url}/`, locale: 'zh-CN' });
  first.second = await first.tab();
  far = await newPage(chromium.browser, { url: `${proxy.url}/`, locale: 'zh-CN' });
  far.problems.allow(/ERR_|WebSocket|Failed to load resource/); // its line is cut on purpose
});
after(async () => {
  try {
    await first?.done();
    await far?.done();
  } finally {
    await chromium?.close();
    await proxy?.close();
    await server?.stop();
  }
});

const api = async (method, path, body) => {
  const answer = await fetch(`${server.url}/api/v1/agent${path}`, { method, ...(body && { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }) });
  assert.ok(answer.ok, `${method} ${path}: ${answer.status} ${await answer.clone().text()}`);
  return answer.json();
};
const OVER = ['completed', 'cancelled', 'exhausted', 'failed'];

// Lives one conversation to its end.
async function live(threadId, [word, ...rest], cut) {
  const steps = [...rest];
  const { runId } = await until('the run', () => api('GET', `/runs/${threadId}`).catch(() => undefined));
  let message = (await api('GET', `/history?threadId=${threadId}`)).messages[0]; // the last one
  const say = (content, replaces) => {
    message = { id: `msg_${threadId}_${Math.random().toString(36).slice(2)}`, role: 'user', content, ...(replaces && { metadata: { replaces } }) };
    return api('POST', '/runs', { threadId, messages: [message] });
  };
  const settleAll = async (runId) => {
    for (;;) {
      const run = await until('the run to wait or to end', async () => {
        const now = await api('GET', `/runs/${threadId}`);
        if (word === 'stop' && now.status === 'running' && steps[0] === silence) return now;
        return now.runId === runId && (now.status === 'waiting' || OVER.includes(now.status)) && now;
      }, 30_000);
      if (OVER.includes(run.status)) return;
      const [how] = steps;
      if (steps.length > 1 && !/^(then|instead)/.test(steps[1])) steps.shift();
      if (how === silence || how === undefined) {
        if (run.status === 'running') await until('some words', () => first.page.getByTestId('log').getByText('three four').count());
        await api('POST', `/runs/${threadId}/cancel`, {});
        steps.shift();
      } else if (/^say /.test(how)) await say(how.slice(4));
      else for (const one of run.interactions) {
        if (how === cancel) await api('POST', `/interactions/${one.interactionId}/cancel`);
        else await api('POST', `/interactions/${one.interactionId}/answer`, how(one)).catch((error) => { if (!/already_resolved|409/.test(error)) throw error; });
      }
      cut();
    }
  };
  await settleAll(runId);
  while (steps.length) {
    const step = steps.shift();
    const [, kind, next] = /^(then|instead) (\w+)/.exec(step) ?? [];
    if (kind) await settleAll((await say(next, kind === 'instead' ? message.id : undefined)).runId);
  }
}

const open = (page, threadId) => page.evaluate((id) => { location.hash = `#/t/${id}`; }, threadId);

for (const [i, talk] of [...TALKS, ...LONG ? MORE : []].entries()) {
  const name = talk.map((step) => (typeof step === 'function' ? JSON.stringify(step({ binding: '' })) : step)).join(', ');
  test(`${i + 1}: ${name}`, async () => {
    await first.page.evaluate(() => { location.hash = '#/'; });
    await first.page.getByTestId('turn').first().waitFor({ state: 'detached' });
    await first.page.getByTestId('composer').fill(talk[0]);
    await first.page.getByTestId('send').click();
    const threadId = await until('its address', async () => /#\/t\/([^/]+)/.exec(first.page.url())?.[1]);
    await until('the conversation', async () => (await fetch(`${server.url}/api/v1/agent/threads/${threadId}`)).ok);
    for (const page of [first.second, far.page]) await open(page, threadId);
    // The far line is cut at a moment that differs from talk to talk, and after every answer.
    const timer = setTimeout(() => proxy.cut(), 40 + (i * 53) % 400);
    try {
      await live(threadId, talk, () => { if (i % 2) proxy.cut(); });
    } finally {
      clearTimeout(timer);
    }
    const late = await first.tab(`${server.url}/#/t/${threadId}`);
    try {
      let wanted = await settledText(late);
      for (const [who, page] of Object.entries({ live: first.page, 'second tab': first.second, 'cut line': far.page })) {
        let seen;
        await until(`${who} to be what history is`, async () => (seen = await serialise(page)) === (wanted = await serialise(late)), 60_000).catch(() => {});
        assert.equal(seen, wanted, who);
      }
    } finally {
      await late.close();
    }
  });
}

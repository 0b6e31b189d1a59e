// SPDX-License-Identifier: Apache-2.0
//
// What tools show to people: a card with every result of the calendar, live and in history, the words of an HTTP tool's own
// summary, and the cards of the demo model.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { describe, test } from 'node:test';

import { startAsking } from './asking.mjs';
import { Home, postJson } from './home.mjs';
import { faults } from './json-schema.mjs';
import { AGENT, history, talk, typesOf } from './talk.mjs';

const schemaOf = (name) => JSON.parse(readFileSync(new URL(`../../docs/schema/${name}.json`, import.meta.url), 'utf8'));
const HINTS = schemaOf('ui-hints-2.1'), SCHEMA = schemaOf('ui-schema-2.0');

const MEETING = { title: 'Review **now**', start_time: '2030-01-31T15:00:00+08:00', end_time: '2030-01-31T16:00:00+08:00', attendees: ['bob'] };
const DAY = { from: '2030-01-31T00:00:00+08:00', to: '2030-02-01T00:00:00+08:00' };
const calls = (name, args) => ({ match: `^${name}$`, turns: [{ calls: [{ name, args }] }, { text: 'Done.' }] });
const LINES = [
  calls('calendar_write', MEETING),
  calls('calendar_read', DAY),
  { ...calls('calendar_read', { from: '2031-01-01T00:00:00Z', to: '2031-01-02T00:00:00Z' }), match: '^empty' },
  calls('calendar_share', { id: 'evt_1', target: 'bob' }),
  calls('calendar_delete', { id: 'evt_1' }),
  { ...calls('calendar_delete', { id: 'evt_none' }), match: '^fail' },
  calls('user_resolve', { query: 'bob' }),
];
const config = (locale) => `agents: {assistant: {locale: ${locale}, policy: {"calendar_*": allow}}}\n`;

const EVENT = `INSERT INTO users (name, created) VALUES ('bob', 1);
  INSERT INTO calendar_events (id, owner, call_id, start_utc, end_utc, created, start_time, end_time, title, location, attendees)
  VALUES ('evt_1', 'local', 'c1', ${Date.parse('2030-01-31T15:30:00+08:00')}, ${Date.parse('2030-01-31T17:00:00+08:00')}, 1,
    '2030-01-31T15:30:00+08:00', '2030-01-31T17:00:00+08:00', '午饭', 'Café', '[]');`;

// Every node of a card.
const nodes = (node) => [node, ...(node.children ?? []).flatMap(nodes)];

// The card of a fact is what the compiler makes of its hints, and history has the same one.
async function assertCard(server, threadId, { ui, hints, messageId }, locale) {
  assert.deepEqual(faults(HINTS, hints), []);
  assert.deepEqual(faults(SCHEMA, ui), []);
  const compiled = await postJson(server, `${AGENT}/compile-ui-hints`, hints, { 'accept-language': locale });
  assert.equal(compiled.status, 200, compiled.text);
  assert.deepEqual(ui.root, compiled.json().root);
  assert.equal(ui.locale, locale);
  const { messages } = await history(server, threadId);
  assert.deepEqual(messages.find(({ id }) => id === messageId).uiSchema, ui);
}

// What one message leads to: the card of the tool's result.
async function cardOf(t, server, text, locale) {
  const { start, facts } = await talk(t, server, text);
  const { data } = facts.find(({ type }) => type === 'tool.call.result');
  const hints = data.toolAgentOutput.ui_hints;
  assert.ok(data.ui && hints, JSON.stringify(data));
  await assertCard(server, start.threadId, { ui: data.ui, hints, messageId: data.messageId }, locale);
  const all = nodes(data.ui.root);
  return {
    ...hints, content: data.content,
    texts: all.filter(({ type }) => type === 'text').map(({ content }) => content),
    badges: all.filter(({ type }) => type === 'badge').map(({ label }) => label),
    buttons: all.filter(({ type }) => type === 'button').map(({ label, action }) => [label, action]),
    values: all.filter(({ type }) => type === 'kv').flatMap(({ items }) => items.map(({ value }) => value)),
    markdown: all.some(({ format }) => format === 'markdown'),
  };
}

const FILE = { type: 'url', url: `${AGENT}/calendar.ics` };
const remove = (id) => ({ type: 'tool', toolId: 'calendar_delete', params: { id } });
const WORDS = {
  en: {
    written: 'Event created', overlap: 'It overlaps with 1 other event', when: '2030-01-31 15:00–16:00 (Thu)', read: '2 events', conflict: 'Conflict',
    free: 'Nothing scheduled', deleted: 'Event deleted', shared: 'Event shared', failed: 'The event was not deleted', found: '1 user found',
    file: 'Download my calendar (.ics)', share: 'Share with bob', remove: 'Delete', pick: 'Choose', summary: 'Event created: Review **now** (2030-01-31 15:00)',
  },
  'zh-CN': {
    written: '已创建日程', overlap: '与 1 个日程时间重叠', when: '2030-01-31 15:00–16:00（周四）', read: '2 条日程', conflict: '时间冲突',
    free: '没有日程', deleted: '已删除日程', shared: '已分享日程', failed: '日程没有删除', found: '找到 1 位用户',
    file: '下载我的日历 (.ics)', share: '分享给 bob', remove: '删除', pick: '选择', summary: '已创建日程：Review **now**（2030-01-31 15:00）',
  },
};

for (const [locale, words] of Object.entries(WORDS)) {
  test(`every result of the calendar has its card: ${locale}`, async (t) => {
    const home = await startAsking(t, { lines: LINES, config: config(locale) });
    await home.stop();
    execFileSync('sqlite3', [join(home.data, 'fermata.db')], { input: EVENT });
    const server = await home.start();
    const show = (text) => cardOf(t, server, text, locale);

    const written = await show('calendar_write');
    assert.deepEqual([written.intent, written.status, written.title, written.content], ['data', 'success', words.written, words.summary]);
    assert.ok(written.values.includes('Review **now**') && written.values.includes(words.when), written.values.join('|'));
    assert.ok(written.texts.includes(words.overlap) && written.texts.includes('午饭'), written.texts.join('|'));
    assert.ok(!written.markdown);
    const id = written.items.find(({ key }) => key === 'id').value;
    assert.deepEqual(written.buttons, [
      [words.file, FILE],
      [words.share, { type: 'tool', toolId: 'calendar_share', params: { id, target: 'bob' } }],
      [words.remove, remove(id)],
    ]);

    const read = await show('calendar_read');
    assert.deepEqual([read.intent, read.title], ['list', words.read]);
    assert.deepEqual(read.badges, [words.conflict, words.conflict]);
    assert.deepEqual(read.buttons, [[words.remove, remove(id)], [words.remove, remove('evt_1')], [words.file, FILE]]);

    const empty = await show('empty');
    assert.deepEqual([empty.intent, empty.title, empty.buttons.length], ['list', words.free, 0]);

    const shared = await show('calendar_share');
    assert.deepEqual([shared.status, shared.title], ['success', words.shared]);
    assert.deepEqual(shared.values.filter((value) => ['午饭', 'bob', 'evt_1'].includes(value)), ['午饭', 'bob', 'evt_1']);

    const deleted = await show('calendar_delete');
    assert.deepEqual([deleted.status, deleted.title], ['success', words.deleted]);

    const failed = await show('fail');
    assert.deepEqual([failed.intent, failed.status, failed.title], ['status', 'error', words.failed]);
    assert.match(failed.body, /evt_none/);

    const users = await show('user_resolve');
    assert.deepEqual([users.intent, users.title], ['list', words.found]);
    assert.deepEqual(users.buttons, [[words.pick, { type: 'payload', payload: { user: { id: 'bob', name: 'bob' } } }]]);
  });
}

test('an HTTP tool has its own words for what it did', async (t) => {
  const shop = createServer((request, response) => {
    request.resume().on('end', () => response.end(JSON.stringify({ result: { order: 17 } })));
  });
  await new Promise((done) => { shop.listen(0, '127.0.0.1', done); });
  t.after(() => shop.close());
  const tool = (name, summary) => `  - http: {name: ${name}, url: "http://127.0.0.1:${shop.address().port}/", effect: read, ` +
    `schema: {type: object}${summary ? `, summary: ${summary}` : ''}}\n`;
  const rows = {
    both: ['"{item} -> {order}"', 'tea -> 17', 'tea -> 17'],
    each: ['{zh: "已下单：{item}（{order}）", en: "Ordered: {item} ({order})"}', 'Ordered: tea (17)', '已下单：tea（17）'],
    part: ['{en: "Ordered: {item} ({price})"}', 'Ordered: tea', 'part 执行完成'], // without what is not there
    none: ['', 'none completed', 'none 执行完成'],
  };
  const lines = Object.keys(rows).map((name) => calls(name, { item: 'tea' }));
  const tools = `tools:\n${Object.entries(rows).map(([name, [summary]]) => tool(name, summary)).join('')}`;
  for (const [index, locale] of ['en', 'zh-CN'].entries()) {
    const home = await startAsking(t, { lines, config: `${config(locale)}${tools}` });
    for (const [name, row] of Object.entries(rows)) {
      const { facts } = await talk(t, home.server, name);
      assert.equal(facts.find(({ type }) => type === 'tool.call.result').data.content, row[1 + index], `${name} in ${locale}`);
    }
    await home.stop();
  }
});

describe('the demo model shows', () => {
  const rows = [
    ['Show me a card', 'list', ['copy', 'copy', 'tool', 'url']],
    ['给我看卡片', 'list', ['copy', 'copy', 'tool', 'url']],
    ['Show me a status card', 'status', []],
    ['展示状态卡片', 'status', []],
    ['Show me a form', 'form', ['payload', 'payload', 'payload']],
    ['给我看表单', 'form', ['payload', 'payload', 'payload']],
  ];
  for (const [text, intent, actions] of rows) {
    test(text, async (t) => {
      const home = await Home.make(t, { FERMATA_MODEL_PROVIDER: 'demo' });
      const server = await home.start();
      const { start, facts } = await talk(t, server, text);
      assert.ok(!typesOf(facts).some((type) => type.startsWith('tool.')), 'no call is shown');
      assert.equal(facts.at(-1).data.outcome, 'completed');
      const { data } = facts.find(({ type }) => type === 'text.message.end');
      assert.match(data.content, /demo model|演示模型/);
      const hints = data.workerAgentOutput.ui_hints;
      assert.equal(hints.intent, intent);
      assert.deepEqual(nodes(data.ui.root).filter(({ type }) => type === 'button').map(({ action }) => action.type), actions);
      await assertCard(server, start.threadId, { ui: data.ui, hints, messageId: data.messageId }, data.ui.locale);
    });
  }
});

// SPDX-License-Identifier: Apache-2.0
//
// The cards of questions, approvals, plans, unknown outcomes and lost connections as clients get them: valid, without
// controls, with every argument on them, and with nothing hidden in them, whatever the model wrote.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { after, before, describe, test } from 'node:test';

import { answer, inbox, interaction, startAsking, until, waiting } from './asking.mjs';
import { bearer, call } from './home.mjs';
import { faults } from './json-schema.mjs';
import { factsOf, history, isEnd, openEvents, runOf, waitFor } from './talk.mjs';

const ROOT = resolve(import.meta.dirname, '../..');
const SCHEMA = JSON.parse(readFileSync(join(ROOT, 'docs/schema/ui-schema-2.0.json'), 'utf8'));
const NODES_MAX = 500, DEPTH_MAX = 8, CARD_BYTES_MAX = 2 * 1024 * 1024, FACT_CARD_BYTES_MAX = 48 * 1024;
const ARGS_BYTES_MAX = 256 * 1024;
const FULL = /Not shown|未显示/;

// What nobody sees, or what turns the rest around; a line feed and spaces may stand between words.
const HIDDEN = /[\p{Cc}\p{Cf}\p{Co}\p{Zl}\p{Zp}\u00a0\u115f\u1160\u3164\uffa0\u034f\ufe00-\ufe0f]/u;
const MARK = /⟦U\+([0-9A-F]{4,6})(?: ×(\d+))?⟧/gu;
const readBack = (shown) => shown.replace(MARK, (_, code, count = '1') => String.fromCodePoint(parseInt(code, 16)).repeat(Number(count)));

function* nodesOf(node, depth = 1) {
  yield { node, depth };
  for (const child of node.children ?? []) yield* nodesOf(child, depth + 1);
}

// A card, checked: {texts, badges, rows: [[name, value]], value(name)}. A folded text is a row of its caption's name.
function read(ui) {
  assert.deepEqual(faults(SCHEMA, ui), []);
  assert.ok(Buffer.byteLength(JSON.stringify(ui)) <= CARD_BYTES_MAX);
  const nodes = [...nodesOf(ui.root)];
  assert.ok(nodes.length <= NODES_MAX, `${nodes.length} nodes`);
  assert.ok(nodes.every(({ depth }) => depth <= DEPTH_MAX));
  const rows = [], texts = [], badges = [];
  let caption;
  for (const { node } of nodes) {
    assert.notEqual(node.type, 'button', 'what decides stands outside');
    if (node.type === 'kv') for (const { key, value } of node.items) rows.push([key, value]);
    if (node.type === 'badge') badges.push(node.label);
    if (node.type !== 'text') continue;
    assert.equal(node.format, 'plain');
    if (node.maxLines) rows.push([/^(.*) ⟦[^⟦⟧]*⟧$/su.exec(caption)[1], node.content]);
    else texts.push(caption = node.content);
  }
  for (const shown of [...texts, ...badges, ...rows.flat()]) {
    assert.ok(!HIDDEN.test(String(shown).replaceAll('\n', '')), JSON.stringify(shown));
  }
  const value = (name) => {
    const found = rows.filter(([key]) => key === name);
    assert.equal(found.length, 1, `${name} in ${JSON.stringify(rows.map(([key]) => key)).slice(0, 500)}`);
    return found[0][1];
  };
  return { ui, rows, texts, badges, value, title: texts[0] };
}

// ---- a server, its tools, what its model does ----

const act = (args, name = 'act') => ({ turns: [{ calls: [{ name, args }], chunk: 60_000 }, { text: 'Done.' }] });
const ask = (args) => act(args, 'ask_user');
const HOSTILE = {
  bidi: 'ann\u202Egro.live@\u2066\u2069', zero: 'pay\u200bp\u200dal\ufeff', nul: 'a\u0000b\u001b[2K\r\nc\u0085', tab: 'a\tb', blank: ' ', empty: '',
  ends: '  a  ', many: `harmless${' '.repeat(400)}rm`, lines: `a${'\n'.repeat(60)}b`, marks: '⟦U+202E⟧ ⟦empty text⟧', none: null, list: [], object: {},
  tags: 'x\u{e0041}\u{e0042}', 'k\u202Eey': 1, 'new\nrisk': 'none', '': 'no name', 'a.b': 1, a: { b: 2, '': [true, { c: null }] }, big: 1234567,
  html: '<b>x</b> **y** [z](javascript:alert(1))', '中文': '值',
};
const MANY = Object.fromEntries(Array.from({ length: 1000 }, (_, i) => [`argument_${i}`, `value ${i}`]));
const LARGE = { note: 'short', text: Array.from({ length: 12_000 }, (_, i) => `line ${i} 文`).join('\n') };
const FULLEST = { text: 'x'.repeat(ARGS_BYTES_MAX - 11) };
const UNSEEN = { text: '\u0081\u0082'.repeat(60_000) };
let deep = 'the bottom\u202E';
for (let i = 0; i < 50; i++) deep = i % 2 ? [deep] : { in: deep };
const STEPS = [{ content: 'Look around', done_when: 'the shop is found' }, { content: 'Buy\n3. nothing\u200b' }];

const LINES = [
  { match: '^hostile', ...act(HOSTILE) },
  { match: '^many', ...act(MANY) },
  { match: '^large', ...act(LARGE) },
  { match: '^fullest', ...act(FULLEST) },
  { match: '^unseen', ...act(UNSEEN) },
  { match: '^deep', ...act({ deep }) },
  { match: '^plain', ...act({ item: 'tea', count: 2, place: { city: 'Y' } }) },
  { match: '^购买', ...act({ item: '茶' }) },
  { match: '^wipe', ...act({ what: 'all' }, 'wipe') },
  { match: '^pay', ...act({ item: 'tea' }, 'pay') },
  { match: '^huge pay', ...act(LARGE, 'pay') },
  { match: '^cut', ...act({ item: 'tea\u202E' }, 'cut') },
  { match: '^plan', turns: [{ calls: [{ name: 'submit_plan', args: { steps: STEPS } }] }, { text: 'One.' }, { text: 'Two.' }, { text: 'Report.' }] },
  { match: '^lost', turns: [{ text: 'Here again.', fail: { at: 'start', status: 503, times: 3 } }] },
  { match: '^gone', turns: [{ text: 'Here again.', fail: { at: 'start', status: 503, times: 3 } }] },
  { match: '^ask', ...ask({ question: 'How long?', choices: ['30 minutes', { label: '1 hour', description: 'the usual' }], multi: true }) },
  { match: '^问', ...ask({ question: '会议多长？', choices: ['30 分钟', '1 小时'],
    fields: [{ name: 'when', label: '哪天', type: 'date', required: true }, { name: 'who', type: 'choice', choices: ['甲', '乙'], description: '主持人' }] }) },
  { match: '^imitate', ...ask({
    question: 'Sure?\n\nYour approval is needed\n[Approve] \u202Eno# **bold**', allow_freeform: false,
    choices: ['yes\n2. no', '\u202Eon', { label: '"}]},{"type":"button","id":"a0"', description: 'zero\u200bwidth ⟦U+0041⟧' }],
    fields: [{ name: 'x\u2066', label: 'y\u2069y', type: 'text', description: 'bell\u0007s' }],
  }) },
  { turns: [{ text: 'Hello.' }] },
];

let home, server, outside;
const keys = {}, closing = [], hooked = [];

before(async () => {
  const t = { after: (fn) => closing.unshift(fn) };
  outside = createServer((request, response) => {
    const pieces = [];
    request.on('error', () => {}).on('data', (piece) => pieces.push(piece)).on('end', () => {
      if (request.url === '/hook') hooked.push(JSON.parse(Buffer.concat(pieces)));
      if (request.url === '/cut') response.destroy();
      else response.writeHead(200, { 'content-type': 'application/json' }).end('{"content":"Done."}');
    });
  });
  outside.listen(0, '127.0.0.1');
  await once(outside, 'listening');
  t.after(() => { outside.closeAllConnections(); outside.close(); });
  const at = `http://127.0.0.1:${outside.address().port}`;
  const tools = [['act', 'write'], ['wipe', 'destructive'], ['pay', 'external'], ['cut', 'write']].map(([name, risk]) => ({
    http: { name, url: `${at}/${name}`, description: `Does ${name}.`, effect: 'write', idempotent: false, risk, schema: { type: 'object' } },
  }));
  home = await startAsking(t, {
    lines: LINES,
    config: JSON.stringify({
      tools, agents: { assistant: { policy: { cut: 'allow' }, approvers: { pay: 'approver' } } },
      webhooks: [{ url: `${at}/hook`, secret_file: await secretFile(), events: ['interaction.opened', 'interaction.resolved'] }],
    }),
  });
  server = home.server;
  for (const [name, ...roles] of [['ann', 'user'], ['eve', 'approver']]) {
    keys[name] = bearer(await home.addKey(name, ...roles.flatMap((role) => ['--role', role])));
  }
});
after(async () => {
  for (const fn of closing) await fn();
});

async function secretFile() {
  const folder = await mkdtemp(join(tmpdir(), 'fermata-cards-'));
  closing.push(() => rm(folder, { recursive: true, force: true }));
  const path = join(folder, 'secret');
  await writeFile(path, 'a-secret-between-us\n', { mode: 0o600 });
  return path;
}

// What waits after the word: the interaction of the inbox, its fact, its card.
async function asked(t, word) {
  const made = await waiting(server, word, { headers: keys.ann });
  const stream = await openEvents(t, server, made.threadId, { query: '?after=0', headers: keys.ann });
  const facts = factsOf(await stream.until(isEnd));
  const fact = facts.find(({ type }) => type === 'interaction.request').data;
  const [one] = made.open;
  return { ...made, one, fact, id: one.interactionId, card: read(one.ui) };
}

const whole = (id, who = 'ann') => interaction(server, id, keys[who]);

// ---- questions ----

describe('a question', () => {
  test('title, question, numbered choices; the same in fact, inbox, run and by itself', async (t) => {
    const { one, fact, id, card, threadId } = await asked(t, 'ask');
    assert.deepEqual(card.texts, ['The agent needs your decision', 'How long?', 'Choices', '30 minutes', '1 hour', 'the usual',
      'More than one may be chosen.', 'You may also answer in your own words.']);
    assert.deepEqual(card.badges, ['1', '2']);
    assert.deepEqual([card.ui.locale, card.ui.status, card.ui.meta], ['en', 'info', { requestId: id }]);
    assert.deepEqual(fact, one);
    assert.deepEqual(await whole(id), one);
    assert.deepEqual((await runOf(server, threadId, keys.ann)).interactions, [one]);
    const members = Object.keys(one);
    assert.equal(members[members.indexOf('ui') + 1], 'requester');
    assert.ok(!('uiRef' in one));
  });

  test('in Chinese, with fields', async (t) => {
    const { card } = await asked(t, '问');
    assert.equal(card.title, 'AI 需要你的决策');
    assert.deepEqual(card.rows, [['when', '日期，必填'], ['who', '选择一项：["甲","乙"]。主持人']]);
    assert.equal(card.ui.locale, 'zh-CN');
  });

  test('that imitates a card stays inside its texts', async (t) => {
    const { card } = await asked(t, 'imitate');
    assert.deepEqual(card.texts, ['The agent needs your decision', 'Sure?\n\nYour approval is needed\n[Approve] ⟦U+202E⟧no# **bold**', 'Choices',
      'yes⟦U+000A⟧2. no', '⟦U+202E⟧on', '"}]},{"type":"button","id":"a0"', 'zero⟦U+200B⟧width ⟦U+27E6⟧U+0041⟦U+27E7⟧', 'To be filled in']);
    assert.deepEqual(card.badges, ['1', '2', '3']);
    assert.deepEqual(card.rows, [['x⟦U+2066⟧', 'text. bell⟦U+0007⟧s']]);
    assert.equal(card.ui.root.children.length, 4);
  });
});

// ---- approvals ----

describe('an approval', () => {
  test('tool, requester, risk and every argument', async (t) => {
    const { one, fact, card } = await asked(t, 'plain');
    assert.deepEqual(card.rows, [['tool', 'act'], ['requester', 'ann'], ['item', 'tea'], ['count', 2], ['place.city', 'Y']]);
    assert.deepEqual([card.title, card.badges, card.ui.status], ['Your approval is needed', ['Changes data'], 'warning']);
    assert.ok(card.texts.includes(one.pendingTool.summary));
    assert.deepEqual(fact, one);
    const members = Object.keys(one);
    assert.equal(members[members.indexOf('ui') - 1], 'binding');
  });

  test('what cannot be undone says so; in Chinese too', async (t) => {
    const { card } = await asked(t, 'wipe');
    assert.deepEqual([card.badges, card.ui.status], [['Cannot be undone'], 'error']);
    const { card: chinese } = await asked(t, '购买');
    assert.deepEqual([chinese.title, chinese.badges, chinese.value('item')], ['需要你的批准', ['会修改数据'], '茶']);
  });

  test('nothing of a hostile argument is hidden, trimmed or lost', async (t) => {
    const { one, card } = await asked(t, 'hostile');
    assert.deepEqual(JSON.parse(one.pendingTool.argsJson), HOSTILE);
    assert.ok(!HIDDEN.test(one.displayText), JSON.stringify(one.displayText));
    for (const [name, text] of Object.entries(HOSTILE)) {
      if (typeof text === 'string' && /^\w+$/.test(name) && text) assert.equal(readBack(card.value(name)), text, name);
    }
    assert.equal(card.value('bidi'), 'ann⟦U+202E⟧gro.live@⟦U+2066⟧⟦U+2069⟧');
    assert.equal(card.value('nul'), 'a⟦U+0000⟧b⟦U+001B⟧[2K⟦U+000D⟧\nc⟦U+0085⟧');
    assert.equal(card.value('many'), 'harmless⟦U+0020 ×400⟧rm');
    assert.equal(card.value('marks'), '⟦U+27E6⟧U+202E⟦U+27E7⟧ ⟦U+27E6⟧empty text⟦U+27E7⟧');
    assert.deepEqual(['empty', 'blank', 'none', 'list', 'object'].map(card.value),
      ['⟦empty text⟧', '⟦U+0020⟧', '⟦null⟧', '⟦empty list⟧', '⟦empty object⟧']);
    assert.deepEqual(['k⟦U+202E⟧ey', 'new⟦U+000A⟧risk', '[""]', '["a.b"]', 'a.b', 'a[""][0]', 'a[""][1].c', '中文'].map(card.value),
      [1, 'none', 'no name', 1, 2, true, '⟦null⟧', '值']);
    assert.ok(!card.texts.some((text) => FULL.test(text)));
  });

  test('a thousand arguments are a thousand rows', async (t) => {
    const { card, id } = await asked(t, 'many');
    assert.deepEqual(card.rows.slice(2), Object.entries(MANY));
    assert.deepEqual((await whole(id)).ui, card.ui);
  });

  for (const [word, args] of [['large', LARGE], ['fullest', FULLEST], ['unseen', UNSEEN]]) {
    test(`${word}: folded, whole, and in the fact as an address`, async (t) => {
      const { one, fact, card, id, threadId } = await asked(t, word);
      assert.ok(JSON.stringify(args).length > FACT_CARD_BYTES_MAX);
      assert.equal(readBack(card.value('text')), args.text);
      assert.ok(!card.texts.some((text) => FULL.test(text)));
      assert.ok([...nodesOf(card.ui.root)].some(({ node }) => node.maxLines > 0));
      assert.deepEqual(await whole(id), one);
      const { ui, ...rest } = one, { uiRef, ...told } = fact;
      assert.deepEqual(told, rest);
      assert.equal(uiRef, `/api/v1/agent/threads/${threadId}/messages/${id}/ui`);
      assert.equal(Object.keys(fact).indexOf('uiRef'), Object.keys(one).indexOf('ui'));
    });
  }

  test('what is nested deeply is shown as JSON', async (t) => {
    const { card } = await asked(t, 'deep');
    assert.deepEqual(JSON.parse(readBack(card.value('deep ⟦JSON⟧'))), deep);
  });
});

describe('an edit', () => {
  test('the card shows what was changed, added, removed and kept', async (t) => {
    const { one, id, threadId } = await asked(t, 'plain');
    const args = { item: 'tea\u200b', place: { city: 'Y', street: '' }, new: null };
    const taken = await answer(server, id, { decision: 'edit', args, binding: one.binding }, keys.ann);
    assert.equal(taken.status, 200, taken.text);
    const card = read(taken.json().ui);
    assert.deepEqual(card.rows, [['tool', 'act'], ['requester', 'ann'], ['editor', 'ann'],
      ['item ⟦before⟧', 'tea'], ['item ⟦after⟧', 'tea⟦U+200B⟧'], ['place.street ⟦added⟧', '⟦empty text⟧'], ['new ⟦added⟧', '⟦null⟧'],
      ['count ⟦removed⟧', 2], ['place.city', 'Y']]);
    assert.deepEqual(card.texts.filter((text) => /hanged/.test(text)), ['Changed before approval', 'Changed', 'Unchanged']);
    assert.deepEqual((await whole(id)).ui, card.ui);
    await until(server, threadId, 'completed', keys.ann);
    assert.deepEqual((await whole(id)).ui, card.ui);
  });

  test('another answer leaves the card as it was', async (t) => {
    for (const decision of ['approve', 'reject']) {
      const { one, id } = await asked(t, 'plain');
      const taken = await answer(server, id, { decision }, keys.ann);
      assert.equal(taken.status, 200, taken.text);
      assert.deepEqual(taken.json().ui, one.ui);
    }
  });

  test('of a plan: step by step', async (t) => {
    const { one, card, id } = await asked(t, 'plan');
    assert.deepEqual(card.texts, ['A plan for your approval', 'Steps', 'Look around', 'Done when: the shop is found', 'Buy⟦U+000A⟧3. nothing⟦U+200B⟧']);
    assert.deepEqual([card.badges, card.ui.status], [['1', '2'], 'info']);
    const steps = [{ content: 'Look around', done_when: 'it is noon' }, { content: 'Rest' }];
    const taken = await answer(server, id, { decision: 'edit', args: { steps }, binding: one.binding }, keys.ann);
    assert.equal(taken.status, 200, taken.text);
    assert.deepEqual(read(taken.json().ui).rows.slice(2), [
      ['1 ⟦done when⟧ ⟦before⟧', 'the shop is found'], ['1 ⟦done when⟧ ⟦after⟧', 'it is noon'],
      ['2 ⟦before⟧', 'Buy\n3. nothing⟦U+200B⟧'], ['2 ⟦after⟧', 'Rest'], ['1', 'Look around']]);
  });
});

describe('history', () => {
  test('has the same card, and the new one after an edit', async (t) => {
    for (const word of ['ask', 'plain', 'plan', 'cut', 'gone', 'large']) {
      const { one, fact, id, threadId } = await asked(t, word);
      const row = async () => (await history(server, threadId, '', keys.ann)).messages.find((message) => message.id === id);
      assert.deepEqual((await row()).uiSchema, one.ui, word);
      if (fact.uiRef) {
        const alone = await call(server, 'GET', fact.uiRef, { headers: keys.ann });
        assert.equal(alone.status, 200, alone.text);
        assert.deepEqual(alone.json(), one.ui);
      }
      if (word !== 'plain') continue;
      const taken = await answer(server, id, { decision: 'edit', args: { item: 'milk' } }, keys.ann);
      assert.equal(taken.status, 200, taken.text);
      assert.notDeepEqual(taken.json().ui, one.ui);
      assert.deepEqual((await row()).uiSchema, taken.json().ui);
    }
  });
});

// ---- the others ----

test('an unknown outcome: what was called, with what, and that nobody knows', async (t) => {
  const { one, card } = await asked(t, 'cut');
  assert.equal(one.type, 'uncertain');
  assert.deepEqual([card.title, card.ui.status], ['Outcome unknown', 'warning']);
  assert.match(card.texts[1], /may have happened, or not/);
  assert.deepEqual(card.rows, [['tool', 'cut'], ['requester', 'ann'], ['item', 'tea⟦U+202E⟧']]);
});

test('a lost connection: what is gone', async (t) => {
  const { one, card } = await asked(t, 'lost');
  assert.deepEqual([one.type, card.title, card.texts[1]], ['connection_lost', 'Connection lost', one.displayText]);
  assert.match(card.texts[1], /model/);
});

describe('an approver who is not the owner', () => {
  for (const word of ['pay', 'huge pay']) {
    test(`${word}: gets the card itself, and nothing of the thread`, async (t) => {
      const { one, id, threadId, runId, card } = await asked(t, word);
      const seen = await whole(id, 'eve');
      assert.deepEqual(seen.ui, one.ui);
      assert.ok(!('uiRef' in seen));
      for (const secret of [threadId, runId, one.toolCallId]) assert.ok(!JSON.stringify(seen).includes(`"${secret}"`));
      assert.deepEqual([card.value('requester'), card.value('approver')], ['ann', 'approver']);
      const listed = (await inbox(server, '', keys.eve)).interactions.find(({ interactionId }) => interactionId === id);
      assert.deepEqual(listed, seen);
    });
  }
});

test('webhooks bring the card, also after an edit', async (t) => {
  const { one, id } = await asked(t, 'plain');
  const told = (event) => waitFor(event, () => hooked.find((news) => news.event === event && news.interaction.interactionId === id));
  assert.deepEqual((await told('interaction.opened')).interaction.ui, one.ui);
  const taken = await answer(server, id, { decision: 'edit', args: { item: 'milk' } }, keys.ann);
  assert.equal(taken.status, 200, taken.text);
  assert.deepEqual((await told('interaction.resolved')).interaction.ui, taken.json().ui);
});

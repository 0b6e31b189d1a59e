// SPDX-License-Identifier: Apache-2.0
//
// What agents there are, and their settings: the configuration file below, the database above it.

import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';

import { assertProblem, bearer, call, Home } from './home.mjs';
import { AGENT, get } from './talk.mjs';

const SETTINGS = `${AGENT}/agents/assistant/settings`;
const CALENDAR = ['calendar_write', 'calendar_read', 'calendar_delete', 'calendar_share', 'user_resolve'];
const DEFAULTS = { enableAskUser: true, maxToolRounds: 30, confirmPolicy: {} };

// A server with this configuration file.
async function startWith(t, yaml, env = {}) {
  const home = await Home.make(t);
  const file = join(home.data, 'fermata.yaml');
  await writeFile(file, yaml);
  home.env = { FERMATA_CONFIG: file, ...env };
  await home.start();
  return home;
}

function patch(server, body, headers = {}, path = SETTINGS) {
  return call(server, 'PATCH', path, {
    headers: { 'content-type': 'application/json', ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });
}

async function changed(server, body, headers) {
  const answer = await patch(server, body, headers);
  assert.equal(answer.status, 200, answer.text);
  return answer.json();
}

async function settings(server, headers = {}) {
  const answer = await call(server, 'GET', SETTINGS, { headers });
  assert.equal(answer.status, 200, answer.text);
  return answer.json();
}

async function agent(server, headers = {}) {
  const answer = await get(server, '/agents', headers);
  assert.equal(answer.status, 200, answer.text);
  const { agents, ...rest } = answer.json();
  assert.deepEqual([agents.length, rest], [1, {}]);
  return agents[0];
}

// What people may say to the demo model first.
const DEMO = {
  en: ['What can you do?', 'Arrange a review meeting for tomorrow', 'Plan a trip', 'Show me a card'],
  zh: ['你能做什么？', '帮我约明天下午三点的评审会', '帮我做个旅行计划', '给我看卡片'],
};

describe('GET /agents', () => {
  test('starters of the demo: in the language asked for, or the agent\'s; what the file says counts, also if it says none', async (t) => {
    const home = await startWith(t, `
agents:
  assistant: {}
  zh: {locale: zh-CN}
  none: {starters: []}
  own: {starters: [Hi]}
`);
    const asked = async (language) => Object.fromEntries((await get(home.server, '/agents', language ? { 'accept-language': language } : {})).json()
      .agents.map(({ name, starters }) => [name, starters]));
    for (const [language, starters] of [[undefined, DEMO.en], ['de', DEMO.en], ['en-GB,zh;q=0.5', DEMO.en], ['zh-TW', DEMO.zh], ['en;q=0.1, zh-CN', DEMO.zh]]) {
      assert.deepEqual(await asked(language), { assistant: starters, zh: DEMO.zh, none: [], own: ['Hi'] }, language);
    }
  });

  test('without a configuration', async (t) => {
    const home = await Home.make(t);
    const server = await home.start();
    const found = await agent(server);
    const { tools } = found.capabilities;
    assert.deepEqual(found, {
      name: 'assistant', model: 'demo', provider: 'demo', starters: DEMO.en, plan: 'auto',
      limits: { upload: 100 * 1024 * 1024, body: 16 * 1024 * 1024, maxToolRounds: 30 },
      capabilities: { askUser: true, tools, plan: true, attachments: true },
    });
    assert.deepEqual(tools.map(({ name }) => name), CALENDAR);
    for (const tool of tools) {
      const members = ['name', 'effect', ...(tool.effect === 'write' ? ['risk'] : []), 'description'];
      assert.deepEqual(Object.keys(tool), members, tool.name);
      assert.ok(['read', 'write'].includes(tool.effect), tool.name);
    }
  });

  test('says what the file says', async (t) => {
    const home = await startWith(t, `
limits: {body: 1MiB, upload: 2MiB}
agents:
  assistant:
    starters: ["帮我约明天下午三点的评审会", "What is on, \\"today\\"?\\nAnd then?"]
    locale: en
    plan: never
    ask_user: false
    max_rounds: 7
    tools: []
`);
    assert.deepEqual(await agent(home.server), {
      name: 'assistant', model: 'demo', provider: 'demo',
      starters: ['帮我约明天下午三点的评审会', 'What is on, "today"?\nAnd then?'],
      locale: 'en', plan: 'never',
      limits: { upload: 2 * 1024 * 1024, body: 1024 * 1024, maxToolRounds: 7 },
      capabilities: { askUser: false, tools: [], plan: false, attachments: true },
    });
    assert.deepEqual(await settings(home.server), { enableAskUser: false, maxToolRounds: 7, confirmPolicy: {}, locale: 'en' });
  });
});

describe('settings', () => {
  let home, server, cleanUp;
  before(async () => {
    home = await startWith({ after: (fn) => { cleanUp = fn; } }, 'agents: {assistant: {policy: {"files.*": deny}, locale: en}}\n');
    server = home.server;
  });
  after(() => cleanUp?.());
  const FILE = { ...DEFAULTS, confirmPolicy: { 'files.*': 'deny' }, locale: 'en' };

  test('are the file\'s until they are set, and again when they are cleared', async () => {
    assert.deepEqual(await settings(server), FILE);
    assert.deepEqual(await changed(server, {}), FILE);
    const set = { enableAskUser: false, maxToolRounds: 1000, confirmPolicy: { '*': 'confirm', 'x.*': 'allow' }, locale: 'zh-CN' };
    assert.deepEqual(await changed(server, set), set);
    assert.deepEqual(await settings(server), set);
    const { locale, limits, capabilities } = await agent(server);
    assert.deepEqual([locale, limits.maxToolRounds, capabilities.askUser], ['zh-CN', 1000, false]);

    server = await home.restart();
    assert.deepEqual(await settings(server), set, 'a restart finds them again');
    assert.equal((await agent(server)).limits.maxToolRounds, 1000);

    assert.deepEqual(await changed(server, { maxToolRounds: 1 }), { ...set, maxToolRounds: 1 }, 'the others stay');
    assert.deepEqual(await changed(server, { confirmPolicy: {}, maxToolRounds: null }), { ...set, confirmPolicy: {}, maxToolRounds: 30 });
    assert.deepEqual(await changed(server, { enableAskUser: null, confirmPolicy: null, locale: null }), FILE);
    assert.equal((await agent(server)).capabilities.askUser, true);
    server = await home.restart();
    assert.deepEqual(await settings(server), FILE);
  });

  test('a policy may name every tool there is', async () => {
    const confirmPolicy = Object.fromEntries(CALENDAR.map((name) => [name, 'deny']));
    assert.deepEqual((await changed(server, { confirmPolicy })).confirmPolicy, confirmPolicy);
    await changed(server, { confirmPolicy: null });
  });

  const REFUSED = [
    ['no object', '[]', undefined],
    ['no object', '"x"', undefined],
    ['an unknown field', { maxRounds: 5 }, 'maxRounds'],
    ['a text for a truth', { enableAskUser: 'true' }, 'enableAskUser'],
    ['no rounds', { maxToolRounds: 0 }, 'maxToolRounds'],
    ['too many rounds', { maxToolRounds: 1001 }, 'maxToolRounds'],
    ['half a round', { maxToolRounds: 1.5 }, 'maxToolRounds'],
    ['rounds beyond any number', '{"maxToolRounds":99999999999999999999}', 'maxToolRounds'],
    ['another language', { locale: 'fr' }, 'locale'],
    ['a policy that is a list', { confirmPolicy: ['deny'] }, 'confirmPolicy'],
    ['an unknown verdict', { confirmPolicy: { 'a*': 'ask' } }, 'confirmPolicy.a*'],
    ['no verdict', { confirmPolicy: { 'a*': null } }, 'confirmPolicy.a*'],
    ['an unknown tool', { confirmPolicy: { no_such_tool: 'deny' } }, 'confirmPolicy.no_such_tool'],
    ['a star inside', { confirmPolicy: { 'a*b': 'deny' } }, 'confirmPolicy.a*b'],
    ['an empty name', { confirmPolicy: { '': 'deny' } }, 'confirmPolicy.'],
    ['101 rows', { confirmPolicy: Object.fromEntries(Array.from({ length: 101 }, (_, i) => [`t${i}*`, 'deny'])) }, 'confirmPolicy'],
    ['one wrong beside one right', { maxToolRounds: 5, locale: 'fr' }, 'locale'],
  ];
  for (const [what, body, field] of REFUSED) {
    test(`refuse ${what}: ${JSON.stringify(body).slice(0, 50)}`, async () => {
      assertProblem(await patch(server, body), 400, 'invalid_field', field);
      assert.deepEqual(await settings(server), FILE);
    });
  }

  test('take 100 rows', async () => {
    const confirmPolicy = Object.fromEntries(Array.from({ length: 100 }, (_, i) => [`${String(i).padStart(60, '_')}*`, 'confirm']));
    assert.deepEqual((await changed(server, { confirmPolicy })).confirmPolicy, confirmPolicy);
    await changed(server, { confirmPolicy: null });
  });

  test('refuse what is no JSON, no JSON type, or too much', async () => {
    assertProblem(await patch(server, '{'), 400, 'invalid_field');
    assertProblem(await patch(server, '{"locale":"en","locale":"en"}'), 400, 'invalid_field');
    assertProblem(await patch(server, '{}', { 'content-type': 'text/plain' }), 415, 'unsupported_type');
    assertProblem(await patch(server, `{"locale":"${'x'.repeat(16 * 1024)}"}`), 413, 'too_large');
  });

  test('of an agent that does not exist are not found', async () => {
    const other = `${AGENT}/agents/other/settings`;
    assertProblem(await call(server, 'GET', other), 404, 'not_found');
    assertProblem(await patch(server, { maxToolRounds: 5 }, {}, other), 404, 'not_found');
    assertProblem(await patch(server, { nonsense: 5 }, {}, other), 404, 'not_found');
  });

  test('one key, one change', async () => {
    const key = { 'idempotency-key': 'settings-1' };
    const first = await patch(server, { maxToolRounds: 41 }, key);
    assert.deepEqual([first.status, first.json().maxToolRounds], [200, 41]);
    await changed(server, { maxToolRounds: 42 });
    const again = await patch(server, { maxToolRounds: 41 }, key);
    assert.deepEqual([again.status, again.text], [200, first.text], 'the same answer');
    assert.equal((await settings(server)).maxToolRounds, 42, 'and no second effect');
    assert.equal((await agent(server)).limits.maxToolRounds, 42);
    assertProblem(await patch(server, { maxToolRounds: 43 }, key), 422, 'idempotency_mismatch');
    await changed(server, { maxToolRounds: null });
  });

  test('many changes at once: what counts is what is stored', async () => {
    const answers = await Promise.all(Array.from({ length: 40 }, (_, i) => patch(server,
      i % 2 ? { maxToolRounds: i } : { confirmPolicy: { [`t${i}*`]: 'deny' } })));
    assert.ok(answers.every(({ status }) => status === 200));
    const now = await settings(server);
    assert.ok(answers.some(({ text }) => text === JSON.stringify(now)), 'it is what one of them saw last');
    assert.equal((await agent(server)).limits.maxToolRounds, now.maxToolRounds);
    server = await home.restart();
    assert.deepEqual(await settings(server), now);
    assert.deepEqual(await changed(server, { maxToolRounds: null, confirmPolicy: null }), FILE);
  });
});

test('settings are for operators, the list is for everybody', async (t) => {
  const home = await Home.make(t);
  const server = await home.start();
  const user = bearer(await home.addKey('ann')), approver = bearer(await home.addKey('bob', '--role', 'approver'));
  const operator = bearer(await home.addKey('oscar', '--role', 'operator'));
  for (const headers of [user, approver]) {
    assert.equal((await agent(server, headers)).name, 'assistant');
    for (const name of ['assistant', 'other']) {
      const path = `${AGENT}/agents/${name}/settings`;
      assertProblem(await call(server, 'GET', path, { headers }), 403, 'forbidden');
      assertProblem(await patch(server, { maxToolRounds: 5 }, headers, path), 403, 'forbidden');
    }
  }
  assert.deepEqual(await settings(server, operator), DEFAULTS);
  assert.equal((await changed(server, { maxToolRounds: 5 }, operator)).maxToolRounds, 5);
  assert.equal((await agent(server, user)).limits.maxToolRounds, 5);
  for (const path of [`${AGENT}/agents`, SETTINGS]) assertProblem(await call(server, 'GET', path), 401, 'unauthenticated');
});

describe('a start', () => {
  const REFUSED = [
    ['a tool that does not exist', { FERMATA_AGENTS_ASSISTANT_TOOLS: 'no_such_tool' }, '',
      /agents\.assistant\.tools: there is no tool "no_such_tool"/],
    ['a policy about no tool', { FERMATA_AGENTS_ASSISTANT_POLICY: 'calendar_wirte=deny' }, '',
      /agents\.assistant\.policy: there is no tool "calendar_wirte"; did you mean "calendar_write"\?/],
    ['approvers of no tool', { FERMATA_AGENTS_ASSISTANT_APPROVERS: 'calendar=approver' }, '',
      /agents\.assistant\.approvers: there is no tool "calendar"/],
    ['a schema with a slip', {}, 'tools:\n  - http: {name: a, url: "http://127.0.0.1:1", effect: read,\n           schema: {type: object, properties: {x: {type: text}}}}\n',
      /fermata\.yaml:2: tools\[0\]\.http\.schema\.properties\.x/],
    ['a tool without effect', {}, 'tools: [{http: {name: a, url: "http://127.0.0.1:1", schema: {type: object}}}]\n',
      /fermata\.yaml:1: "tools\[0\]\.http\.effect" is missing; write read or write/],
    ['an unknown event', {}, 'webhooks: [{url: "http://127.0.0.1:1", events: [x]}]\n',
      /fermata\.yaml:1: webhooks\[0\]\.events: "x" is no event/],
  ];
  for (const [what, env, yaml, message] of REFUSED) {
    test(`is refused with ${what}`, async (t) => {
      const home = await Home.make(t);
      const file = join(home.data, 'fermata.yaml');
      await writeFile(file, yaml);
      home.env = { FERMATA_CONFIG: file, FERMATA_LISTEN: '127.0.0.1:0', ...env };
      const run = await home.run(['serve']);
      assert.notEqual(run.code, 0);
      assert.match(run.stderr, message);
      assert.equal(run.stdout, '');
      const check = await home.run(['check']);
      assert.notEqual(check.code, 0);
      assert.match(check.stdout + check.stderr, message, 'and fermata check says so beforehand');
    });
  }
});

test('tools of the file and of the pack are offered, as far as the agent may use them', async (t) => {
  const tools = `
tools:
  - http: {name: place_order, url: "http://127.0.0.1:9000/order", schema: {type: object}, effect: write, risk: external,
           description: "下单"}
  - http: {name: look, url: "http://127.0.0.1:9000/look", schema: {type: object}, effect: read}
`;
  const home = await startWith(t, `${tools}agents: {assistant: {tools: [place_order, calendar_read, "lo*"]}}\n`);
  const found = (await agent(home.server)).capabilities.tools;
  assert.deepEqual(found.map(({ name }) => name), ['calendar_read', 'place_order', 'look']);
  assert.deepEqual(found[1], { name: 'place_order', effect: 'write', risk: 'external', description: '下单' });
  assert.deepEqual(found[2], { name: 'look', effect: 'read', description: '' });
  const confirmPolicy = { place_order: 'allow', calendar_write: 'deny' };
  assert.deepEqual((await changed(home.server, { confirmPolicy })).confirmPolicy, confirmPolicy, 'of all tools, its own or not');
});

test('fermata check shows tools and webhooks, and no secret', async (t) => {
  const home = await Home.make(t);
  const file = join(home.data, 'fermata.yaml'), token = join(home.data, 'token.txt');
  await writeFile(token, 'TOPSECRET-0123456789\n');
  await writeFile(file, `
tools:
  - http: {name: place_order, url: "http://127.0.0.1:9000/order", schema: {type: object}, effect: write,
           headers: {X-Key: TOPSECRET-inline, Authorization_file: ${token}}}
webhooks: [{url: "http://127.0.0.1:9000/hook", secret_file: ${token}}]
`);
  const run = await home.run(['check'], { FERMATA_CONFIG: file });
  assert.equal(run.code, 0, run.stderr);
  assert.match(run.stdout, /^ {6}name: place_order {2}# /m);
  assert.match(run.stdout, /^ {6}schema: \{"type": "object"\} {2}# /m);
  assert.match(run.stdout, /^ {8}# X-Key: \(hidden\) {2}# /m);
  assert.match(run.stdout, /^ {8}Authorization_file: .*token\.txt {2}# /m);
  assert.match(run.stdout, /^ {4}events: \[interaction\.opened, interaction\.resolved\] {2}# /m);
  assert.ok(!run.stdout.includes('TOPSECRET') && !run.stderr.includes('TOPSECRET'));
});

// SPDX-License-Identifier: Apache-2.0
//
// Two users. Whatever one asks about the other's things, the answer is the one for things that do not exist, byte for
// byte. The routes come from the server's own document, so that a new one without a row here fails.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';

import { answer, until, waiting } from './asking.mjs';
import { bearer, call, postJson } from './home.mjs';
import { accepted, AGENT, endOf, get, history, openEvents, runOf, startTalk, talk, user } from './talk.mjs';

const NEVER = 'never-existed';
const HERS = 'hers-not-his-';
const NOT_COMPARED = ['date', 'x-request-id'];
const MEETING = { title: 'a secret meeting', start_time: '2030-01-31T15:00:00Z', end_time: '2030-01-31T16:00:00Z' };
const SCRIPT = [
  { match: '^a secret', turns: [{ calls: [{ name: 'user_resolve', args: { query: 'ann' } }] }, { text: 'A word for ann alone.' }] },
  { match: '^ask', turns: [{ calls: [{ name: 'ask_user', args: { question: 'a secret question?' } }] }, { text: 'Thank you.' }] },
  { match: '^book', turns: [{ calls: [{ name: 'calendar_write', args: MEETING }] }, { text: 'Thank you.' }] },
  { match: '^endless', turns: [{ text: 'Once upon a time. '.repeat(20_000), chunk: 4, gap_ms: 5 }] },
  { turns: [{ text: 'A word for ann alone.' }] },
];

// What to ask for, for each parameter: an id of ann's, and one of the same length that nobody ever had.
const PARAMETERS = {
  threadId: () => [ann.threadId, NEVER],
  n: () => [String(ann.n), String(ann.n)],
  interactionId: () => [ann.interactionId, never(ann.interactionId)],
  grantId: () => [ann.grantId, never(ann.grantId)],
  messageId: () => [ann.messageId, never(ann.messageId)],
  attachmentId: () => [ann.attachmentId, never(ann.attachmentId)],
};
const never = (id) => id.slice(0, id.lastIndexOf('_') + 1).padEnd(id.length, '0');

// Every route with a parameter, and the bodies to ask with; `operators`: these may. To add a route: a row.
const ROUTES = {
  'GET /api/v1/agent/runs/{threadId}': [{}],
  'POST /api/v1/agent/runs/{threadId}/cancel': [{}, { body: {} }, { body: { runId: 'r1' } }, { body: { queue: true } }],
  'DELETE /api/v1/agent/runs/{threadId}/queue/{n}': [{}],
  'GET /api/v1/agent/runs/{threadId}/events': [{ stream: true }, { stream: true, query: '?after=0' }, { stream: true, query: '?after=99' },
    { stream: true, query: '?runId=r1' }, { stream: true, query: '?format=ag-ui' }],
  'GET /api/v1/agent/runs/{threadId}/history': [{}, { query: '?limit=1' }, { query: '?before=2' }, { query: '?after=1' }],
  'GET /api/v1/agent/threads/{threadId}': [{}],
  'PATCH /api/v1/agent/threads/{threadId}': [{ body: { title: 'his' } }, { body: {} }],
  'DELETE /api/v1/agent/threads/{threadId}': [{}],
  'GET /api/v1/agent/threads/{threadId}/export': [{ query: '?format=md' }, { query: '?format=json' }],
  'GET /api/v1/agent/threads/{threadId}/messages/{messageId}/result': [{}],
  'GET /api/v1/agent/threads/{threadId}/messages/{messageId}/ui': [{}],
  'POST /api/v1/agent/runs/{threadId}/answer': [{ body: { answer: 'his' } }, { body: {} }],
  'GET /api/v1/agent/interactions/{interactionId}': [{}],
  'PATCH /api/v1/agent/interactions/{interactionId}': [{ body: { expiresAt: '2040-01-31T09:30:00Z' }, operators: true }, { body: {} }],
  'POST /api/v1/agent/interactions/{interactionId}/answer': [{ body: { answer: 'his' } }, { body: { decision: 'approve' } }, { body: [] }],
  'POST /api/v1/agent/interactions/{interactionId}/cancel': [{}],
  'DELETE /api/v1/agent/grants/{grantId}': [{ operators: true }],
  'GET /api/v1/agent/attachments/{attachmentId}': [{}],
};

// Routes whose parameter names nobody's own thing; agents.test.mjs and channels.test.mjs say who may ask them, and
// tests/channels what a call of a platform has to prove.
const COMMON = [
  'GET /api/v1/agent/agents/{name}/settings',
  'PATCH /api/v1/agent/agents/{name}/settings',
  'POST /api/v1/agent/ag-ui/{agent}',
  'GET /api/v1/agent/ag-ui/{agent}/capabilities',
  'POST /api/v1/agent/channels/{name}/login',
  'GET /api/v1/agent/channels/{name}/webhook',
  'POST /api/v1/agent/channels/{name}/webhook',
];

// Routes that take a thread's id elsewhere.
const ELSEWHERE = {
  'GET /api/v1/agent/history': (id) => ({ query: `?threadId=${id}` }),
};

let home, server, cleanUp, ann, bob, routes;
before(async () => {
  home = await startTalk({ after: (fn) => { cleanUp = fn; } }, SCRIPT);
  server = home.server;
  ann = { headers: bearer(await home.addKey('ann')), threadId: HERS };
  bob = { headers: bearer(await home.addKey('bob', '--role', 'user')), operator: bearer(await home.addKey('bob', '--role', 'operator')) };
  assert.equal(ann.threadId.length, NEVER.length, 'or the lengths would differ');
  const { paths } = (await call(server, 'GET', '/api/v1/openapi.json', { headers: bob.headers })).json();
  routes = Object.entries(paths).flatMap(([path, item]) =>
    Object.keys(item).map((method) => `${method.toUpperCase()} ${path}`));

  // A run under way and one that waits: every route has something of hers to find.
  await talk({ after: (fn) => after(fn) }, server, { threadId: HERS, runId: 'r0', messages: [user('a secret of ann', 'u0')] }, ann.headers);
  await accepted(server, { threadId: HERS, runId: 'r1', messages: [user('endless', 'u1')] }, ann.headers);
  await accepted(server, { threadId: HERS, runId: 'r2', messages: [user('waiting', 'u2')] }, ann.headers);
  ann.n = (await runOf(server, HERS, ann.headers)).queue[0].n;
  ann.messageId = (await history(server, HERS, '', ann.headers)).messages.find(({ role }) => role === 'tool').id;

  // A question that is open, and a grant.
  const { open: [asked] } = await waiting(server, 'ask', { threadId: 'asks', headers: ann.headers });
  ann.interactionId = asked.interactionId;
  const { open: [confirm] } = await waiting(server, 'book', { threadId: 'books', headers: ann.headers });
  assert.equal((await answer(server, confirm.interactionId, { decision: 'approve', always: { scope: 'user' } }, ann.headers)).status, 200);
  await until(server, 'books', 'completed', ann.headers);
  ann.grantId = (await get(server, '/grants', ann.headers)).json().grants[0].grantId;

  // A file.
  const form = new FormData();
  form.set('threadId', HERS);
  form.set('file', new Blob(['a secret file']), 'secret.txt');
  const sent = await fetch(`${server.url}${AGENT}/attachments`, { method: 'POST', body: form, headers: ann.headers });
  ann.attachmentId = (await sent.json()).attachment.id;
});
after(() => cleanUp?.());

const comparable = ({ status, headers, text }) => ({
  status, text, headers: Object.fromEntries(Object.entries(headers).filter(([name]) => !NOT_COMPARED.includes(name))),
});

function ask(method, path, { query = '', body }, headers) {
  return call(server, method, path + query, {
    headers: { ...headers, ...(body ? { 'content-type': 'application/json' } : {}) },
    ...(body ? { body: JSON.stringify(body) } : {}),
  });
}

// The path with ann's ids, and with ids that never were.
function pathsOf(path) {
  const names = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
  return [0, 1].map((which) => names.reduce((filled, name) => {
    assert.ok(PARAMETERS[name], `no row for the parameter ${name}`);
    return filled.replace(`{${name}}`, PARAMETERS[name]()[which]);
  }, path));
}

test('every route with a parameter has a row, and every row a route', () => {
  assert.ok(routes.length > 10);
  assert.deepEqual([...Object.keys(ROUTES), ...COMMON].sort(), routes.filter((route) => route.includes('{')).sort());
  for (const route of Object.keys(ELSEWHERE)) assert.ok(routes.includes(route), route);
});

describe('ann asks', () => {
  test('and her things are there, so that the answers to bob prove something', async () => {
    for (const [route, rows] of Object.entries(ROUTES)) {
      const [method, path] = route.split(' ');
      if (method !== 'GET' || rows[0].stream) continue;
      const [hers, never] = pathsOf(path);
      assert.equal((await ask(method, hers, rows[0], ann.headers)).status, 200, route);
      assert.equal((await ask(method, never, rows[0], ann.headers)).status, 404, route);
    }
    assert.equal((await runOf(server, HERS, ann.headers)).status, 'running');
  });
});

describe('bob asks', () => {
  for (const [route, rows] of Object.entries(ROUTES)) {
    const [method, path] = route.split(' ');
    for (const row of rows) {
      if (row.stream) continue;
      for (const role of row.operators ? ['headers'] : ['headers', 'operator']) {
        test(`${route}${row.query ?? ''} ${JSON.stringify(row.body ?? '')} as ${role === 'headers' ? 'a user' : 'an operator'}`, async () => {
          const [hers, never] = pathsOf(path);
          const answers = [await ask(method, hers, row, bob[role]), await ask(method, never, row, bob[role])];
          assert.ok(answers[0].status >= 400, `${answers[0].status}`);
          assert.deepEqual(comparable(answers[0]), comparable(answers[1]));
          assert.ok(!answers[0].text.includes(HERS) && !answers[0].text.includes('secret'));
        });
      }
    }
  }

  for (const [route, rowOf] of Object.entries(ELSEWHERE)) {
    test(route, async () => {
      const [method, path] = route.split(' ');
      const answers = [await ask(method, path, rowOf(HERS), bob.headers), await ask(method, path, rowOf(NEVER), bob.headers)];
      assert.equal(answers[0].status, 404);
      assert.deepEqual(comparable(answers[0]), comparable(answers[1]));
    });
  }

  test('for her events: an open stream without a word, as for any id', async (t) => {
    const [route, rows] = Object.entries(ROUTES).find(([, [row]]) => row.stream);
    assert.ok(route.endsWith('/events'));
    const streams = [];
    for (const { stream, query = '' } of rows) {
      if (!stream) continue;
      const pair = await Promise.all([HERS, NEVER].map((id) => openEvents(t, server, id, { query, headers: bob.headers })));
      const heads = pair.map(({ headers }) => comparable({ headers }));
      assert.deepEqual(heads[0], heads[1]);
      streams.push(...pair);
    }
    // Her run says more all the while; and a stream of hers, opened later, has heard it.
    const hers = await openEvents(t, server, HERS, { headers: ann.headers });
    await hers.until(({ type, data }) => type === 'text.delta' && data.offset > 100);
    assert.ok(streams.every(({ all, ended }) => all.length === 0 && !ended));
  });

  test('for lists: hers are not in them', async () => {
    for (const query of ['', '?query=secret', '?query=ann', '?query=%25', '?limit=200', '?query=hers']) {
      for (const headers of [bob.headers, bob.operator]) {
        const listed = await get(server, `/threads${query}`, headers);
        assert.equal(listed.status, 200);
        assert.deepEqual(listed.json(), { threads: [] }, query);
      }
    }
  });

  test('for the inbox and grants: hers are not in them', async () => {
    for (const headers of [bob.headers, bob.operator]) {
      for (const query of ['', '?status=resolved', '?threadId=asks', '?agent=assistant']) {
        assert.deepEqual((await get(server, `/interactions${query}`, headers)).json(), { interactions: [] }, query);
      }
      assert.deepEqual((await get(server, '/grants', headers)).json(), { grants: [] });
    }
  });

  test('and nothing of hers has changed', async () => {
    const run = await runOf(server, HERS, ann.headers);
    assert.deepEqual([run.status, run.runId, run.queue.length], ['running', 'r1', 1]);
    const thread = (await get(server, `/threads/${HERS}`, ann.headers)).json();
    assert.equal(thread.title, 'a secret of ann');
    const asked = (await get(server, `/interactions/${ann.interactionId}`, ann.headers)).json();
    assert.deepEqual([asked.status, asked.expiresAt], ['open', undefined]);
    assert.equal((await get(server, '/grants', ann.headers)).json().grants.length, 1);
    assert.deepEqual((await history(server, HERS, '', ann.headers)).messages.map(({ id }) => id).slice(0, 1), ['u0']);
  });
});

describe('bob uses her id', () => {
  test('and it is a thread of his own', async (t) => {
    const watching = await openEvents(t, server, HERS, { headers: bob.headers });
    const { start, facts } = await talk(t, server, { threadId: HERS, runId: 'r1', messages: [user('mine', 'u0')] }, bob.headers);
    assert.deepEqual([start.created, start.seq, start.threadId, start.runId], [true, 0, HERS, 'r1']);
    assert.equal(facts.length, 8, 'her busy run is not in its way');
    assert.equal((await watching.run('r1')).length, 8, 'his waiting stream follows his own');
    const { messages, seq } = await history(server, HERS, '', bob.headers);
    assert.deepEqual([messages.map(({ content }) => content), seq], [['mine', 'A word for ann alone.'], 8]);
    assert.ok(!JSON.stringify(messages).includes('secret'));
    assert.deepEqual((await get(server, '/threads', bob.headers)).json().threads.map(({ title }) => title), ['mine']);
  });

  test('a change to his leaves hers alone', async (t) => {
    const path = `${AGENT}/threads/${HERS}`;
    const hers = await openEvents(t, server, HERS, { headers: ann.headers });
    await hers.until(({ type }) => type === 'text.delta');
    assert.equal((await ask('PATCH', path, { body: { title: 'his' } }, bob.headers)).status, 200);
    assert.equal((await postJson(server, `${AGENT}/runs/${HERS}/cancel`, {}, bob.headers)).status, 409);
    assert.equal((await ask('DELETE', path, {}, bob.headers)).status, 204);
    assert.equal((await get(server, `/threads/${HERS}`, ann.headers)).json().title, 'a secret of ann');
    assert.equal((await runOf(server, HERS, ann.headers)).status, 'running');
    await hers.until(({ type }) => type === 'text.delta');
    assert.equal(hers.ended, false);
    assert.equal((await postJson(server, `${AGENT}/runs/${HERS}/cancel`, { queue: true }, ann.headers)).status, 202);
    await hers.until(endOf('r1'));
  });
});

// SPDX-License-Identifier: Apache-2.0
//
// Two agents on one server: each run has its own, by name, by path or by its thread, with its own prompt, tools,
// settings and manners.

import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';

import { assertProblem, call, Home, postJson } from './home.mjs';
import { accepted, AGENT, get, openEvents, postRun, runOf, talk, user, waitFor } from './talk.mjs';

const YAML = `
agents:
  clerk: {prompt: "You are CLERK.", tools: [calendar_read], busy: reject, on_disconnect: cancel, locale: en,
          max_rounds: 3, starters: [Hi], plan: never}
  assistant: {prompt: "You are ASSISTANT.", tools: [calendar]}
`;
const LINES = [
  { match: '^slow', turns: [{ text: 'one two three four five six seven eight nine ten', chunk: 1, gap_ms: 200 }] },
  { match: '^rounds', turns: [{ calls: [{ name: 'calendar_read', args: { from: '2026-01-01T00:00:00Z', to: '2026-01-02T00:00:00Z' } }] }] },
  { turns: [{ text: 'Hello.' }] },
];

let home, server, asked, cleanUp;
before(async () => {
  home = await Home.make({ after: (fn) => { cleanUp = fn; } });
  const file = join(home.data, 'fermata.yaml'), script = join(home.data, 'script.jsonl');
  const log = join(home.data, 'asked.jsonl');
  await writeFile(file, YAML);
  await writeFile(script, LINES.map((line) => `${JSON.stringify(line)}\n`).join(''));
  home.env = { FERMATA_CONFIG: file, FERMATA_MODEL_PROVIDER: 'scripted', FERMATA_SCRIPT: script, FERMATA_SCRIPT_LOG: log };
  server = await home.start();
  asked = async () => (await readFile(log, 'utf8')).trim().split('\n').map((line) => JSON.parse(line));
});
after(() => cleanUp?.());

const started = (facts) => facts.find(({ type }) => type === 'run.started').data;
const toolsOf = ({ tools }) => tools.map(({ name }) => name).filter((name) => name.startsWith('calendar'));

test('GET /agents lists both; the one that is meant by default comes first', async () => {
  const { agents } = (await get(server, '/agents')).json();
  assert.deepEqual(agents.map(({ name }) => name), ['assistant', 'clerk']);
  assert.deepEqual(agents.map(({ model, provider }) => [model, provider]), [['scripted', 'scripted'], ['scripted', 'scripted']]);
  const [assistant, clerk] = agents;
  assert.deepEqual(clerk.capabilities.tools.map(({ name }) => name), ['calendar_read']);
  assert.equal(assistant.capabilities.tools.length, 5);
  assert.deepEqual([clerk.starters, assistant.starters], [['Hi'], []]);
  assert.deepEqual([clerk.limits.maxToolRounds, assistant.limits.maxToolRounds], [3, 30]);
  assert.deepEqual([clerk.plan, clerk.locale, assistant.plan, assistant.locale], ['never', 'en', 'auto', undefined]);
});

test('a run has the agent that it names, else its thread\'s', async (t) => {
  const threadId = 'several-1';
  const turns = [['clerk', 'clerk'], [undefined, 'clerk'], ['assistant', 'assistant'], [undefined, 'clerk']];
  const before = (await asked().catch(() => [])).length;
  for (const [agent, expected] of turns) {
    const { facts } = await talk(t, server, { threadId, agent, messages: [user('hello')] });
    assert.equal(started(facts).agent, expected);
  }
  assert.equal((await get(server, `/threads/${threadId}`)).json().agent, 'clerk');
  const requests = (await asked()).slice(before);
  assert.deepEqual(requests.map(({ system }) => /You are (\w+)\./.exec(system)[1]), ['CLERK', 'CLERK', 'ASSISTANT', 'CLERK']);
  assert.deepEqual(requests.map((request) => toolsOf(request).length), [1, 1, 4, 1]);
});

test('a thread that nobody named one for has the default', async (t) => {
  const { facts, start } = await talk(t, server, 'hello');
  assert.equal(started(facts).agent, 'assistant');
  assert.equal((await get(server, `/threads/${start.threadId}`)).json().agent, 'assistant');
});

test('an agent that does not exist is refused', async () => {
  assertProblem(await postRun(server, { agent: 'boss', messages: [user('hello')] }), 400, 'invalid_field', 'agent');
  assertProblem(await postRun(server, { agent: 'cler', messages: [user('hello')] }), 400, 'invalid_field', 'agent');
  for (const [method, path] of [['GET', '/ag-ui/boss/capabilities'], ['GET', '/agents/boss/settings']]) {
    assertProblem(await call(server, method, `${AGENT}${path}`), 404, 'not_found');
  }
  assertProblem(await postJson(server, `${AGENT}/ag-ui/boss`, { messages: [user('hello')] }), 404, 'not_found');
});

test('an AG-UI address is that of one agent', async () => {
  for (const [name, count] of [['clerk', 1], ['assistant', 5]]) {
    const body = (await get(server, `/ag-ui/${name}/capabilities`)).json();
    assert.equal(body.identity.name, name);
    assert.equal(body.tools.items.length, count, name);
  }
  const input = { threadId: 'several-agui', runId: 'r1', messages: [user('hello', 'u1')] };
  const answer = await call(server, 'POST', `${AGENT}/ag-ui/clerk`,
    { headers: { 'content-type': 'application/json' }, body: JSON.stringify(input) });
  assert.equal(answer.status, 200);
  await waitFor('its run', async () => (await get(server, '/threads/several-agui')).status === 200);
  assert.equal((await get(server, '/threads/several-agui')).json().agent, 'clerk');
  assertProblem(await postJson(server, `${AGENT}/ag-ui/clerk`, { ...input, agent: 'assistant', runId: 'r2' }), 400, 'invalid_field', 'agent');
});

test('rounds are those of the run\'s agent', async (t) => {
  const counts = {};
  for (const agent of ['clerk', 'assistant']) {
    const { facts } = await talk(t, server, { agent, messages: [user('rounds please')] });
    counts[agent] = facts.filter(({ type }) => type === 'tool.call').length;
    assert.equal(facts.at(-1).data.outcome, 'exhausted');
  }
  assert.deepEqual(counts, { clerk: 3, assistant: 30 });
});

describe('on a busy thread', () => {
  test('the message\'s own agent says what becomes of it, and a queued run keeps its agent', async (t) => {
    const first = await accepted(server, { agent: 'assistant', messages: [user('slow')] });
    const { threadId } = first;
    assertProblem(await postRun(server, { threadId, agent: 'clerk', messages: [user('hello')] }), 409, 'busy');
    const queued = await accepted(server, { threadId, agent: 'assistant', messages: [user('hello')] });
    const events = await openEvents(t, server, threadId, { query: '?after=0' });
    const facts = await events.run(queued.runId);
    const begun = facts.filter(({ type, runId }) => type === 'run.started' && runId === queued.runId);
    assert.deepEqual(begun.map(({ data }) => data.agent), ['assistant']);
  });
});

describe('when its last reader leaves', () => {
  for (const [agent, outcome] of [['clerk', 'cancelled'], ['assistant', 'completed']]) {
    test(`a run of ${agent} is ${outcome}`, async (t) => {
      const { threadId } = await accepted(server, { agent, messages: [user('slow')] });
      const reader = await openEvents(t, server, threadId, { query: '?after=0' });
      await reader.until(({ type }) => type === 'text.delta');
      reader.close();
      const status = await waitFor('its end', async () => {
        const run = await runOf(server, threadId);
        return ['cancelled', 'completed'].includes(run.status) && run.status;
      });
      assert.equal(status, outcome);
    });
  }
});

test('settings are each agent\'s own, also after a restart', async () => {
  const path = (name) => `${AGENT}/agents/${name}/settings`;
  const rounds = async (name) => (await call(server, 'GET', path(name))).json().maxToolRounds;
  const answer = await call(server, 'PATCH', path('clerk'),
    { headers: { 'content-type': 'application/json' }, body: JSON.stringify({ maxToolRounds: 17 }) });
  assert.equal(answer.status, 200, answer.text);
  assert.equal(answer.json().locale, 'en', 'over what the file says of this agent');
  assert.deepEqual([await rounds('clerk'), await rounds('assistant')], [17, 30]);
  server = await home.restart();
  assert.deepEqual([await rounds('clerk'), await rounds('assistant')], [17, 30]);
});

// SPDX-License-Identifier: Apache-2.0
//
// CopilotKit's runtime between a client and us, as its users have it: the runtime holds an HttpAgent that points at our
// address, and answers at an endpoint of its own. What comes out there is what we sent.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { describe, test } from 'node:test';

import { order, startPlace, tool, ask } from '../api/people.mjs';
import { AGENT } from '../api/talk.mjs';
import { assertSame, CLIENTS, newThread, reload, story, Tab } from './agui.mjs';

// It would call home.
process.env.COPILOTKIT_TELEMETRY_DISABLED = 'true';
process.env.DO_NOT_TRACK = '1';

const folder = new URL('copilotkit/', import.meta.url);
assert.ok(existsSync(new URL('node_modules', folder)), 'CopilotKit is not installed: run scripts/setup test');
const here = createRequire(new URL('package.json', folder));
const { CopilotRuntime } = here('@copilotkit/runtime/v2');
const { createCopilotNodeListener } = here('@copilotkit/runtime/v2/node');
const { HttpAgent } = createRequire(here.resolve('@copilotkit/runtime/v2'))('@ag-ui/client');

const LINES = [
  { match: '^hello', turns: [{ text: 'Hello, 你好。', reasoning: 'Be kind.', chunk: 2 }] },
  { match: '^look', turns: [{ calls: [tool('look', { reply: 'seen' })] }, { text: 'Seen.' }] },
  { match: '^buy', turns: [{ text: 'One moment.', calls: [ask('How many?'), order('tea')] }, { text: 'Bought.' }] },
];
const OLD = CLIENTS.find(({ profile }) => profile === 'old'); // the version that CopilotKit's front end has

// The runtime on a port of its own: its address for a client.
async function runtimeFor(t, server) {
  const agent = new HttpAgent({ url: `${server.url}${AGENT}/ag-ui/assistant` });
  const listener = createCopilotNodeListener({ runtime: new CopilotRuntime({ agents: { default: agent } }), basePath: '/api/copilotkit' });
  const http = createServer(listener);
  http.listen(0, '127.0.0.1');
  await once(http, 'listening');
  t.after(async () => {
    http.closeAllConnections();
    http.close();
    await once(http, 'close');
  });
  return `http://127.0.0.1:${http.address().port}/api/copilotkit`;
}

async function place(t) {
  const { home: { server }, street } = await startPlace(t, LINES);
  const url = await runtimeFor(t, server);
  const tab = new Tab(OLD, server, newThread());
  tab.agent.url = `${url}/agent/default/run`;
  return { server, street, tab, url };
}

// The runtime echoes the input in RUN_STARTED, so its bytes are not ours to lint.
async function through(turn) {
  await turn.running;
  assert.equal(turn.error, null, turn.error?.stack);
  return turn;
}

describe('CopilotKit runtime', () => {
  test('says what agents there are', async (t) => {
    const { url } = await place(t);
    const answer = await fetch(`${url}/info`);
    assert.equal(answer.status, 200);
    assert.deepEqual(Object.keys((await answer.json()).agents), ['default']);
  });

  test('a chat', async (t) => {
    const { server, tab } = await place(t);
    for (const text of ['hello', 'look', 'hello']) {
      const turn = await through(tab.write(text));
      assert.equal(turn.outcome, 'success');
    }
    assert.deepEqual(tab.messages, await story(server, tab.threadId));
    assert.deepEqual(tab.messages.map(({ role }) => role), ['user', 'reasoning', 'assistant', 'user', 'assistant', 'tool', 'assistant', 'user', 'reasoning', 'assistant']);
  });

  test('a pause, and the answers', async (t) => {
    const { server, street, tab } = await place(t);
    const turn = await through(tab.write('buy'));
    assert.equal(turn.outcome, 'interrupt');
    assert.deepEqual(tab.open.map(({ reason }) => reason), ['input_required', 'tool_call']);
    assert.equal(street.visits.length, 0);
    const end = await through(tab.start({ resume: tab.answers('three', { approved: true }) }));
    assert.equal(end.outcome, 'success');
    assert.equal(street.ran('order'), 1);
    assert.equal(tab.messages.at(-1).content, 'Bought.');
    assert.deepEqual(tab.messages, await story(server, tab.threadId));
    const { tab: direct } = await reload(OLD, server, tab.threadId);
    await assertSame(direct, server);
  });

  test('the same answers again', async (t) => {
    const { server, street, tab } = await place(t);
    await through(tab.write('buy'));
    const resume = tab.answers('three', { approved: true });
    assert.equal((await through(tab.start({ resume }))).outcome, 'success');
    assert.equal((await through(tab.start({ resume }))).outcome, 'success');
    assert.equal(street.ran('order'), 1);
    assert.deepEqual(tab.messages, await story(server, tab.threadId));
  });
});

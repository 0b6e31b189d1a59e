// SPDX-License-Identifier: Apache-2.0
//
// Streams that end because something else does: the server stops, the thread is deleted, the key is revoked. A client takes a
// body that merely ends for a success, and one that breaks for the end of its process; so each ends with an event that says
// what happened. For both clients.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { until } from '../api/asking.mjs';
import { bearer, call } from '../api/home.mjs';
import { startPlace, tool } from '../api/people.mjs';
import { AGENT, waitFor } from '../api/talk.mjs';
import { assertSame, CLIENTS, newThread, story, Tab } from './agui.mjs';

const SLOW = Array.from({ length: 400 }, (_, i) => `word ${i}`).join(' ');
const LINES = [
  { match: '^wait', turns: [{ text: 'I wait.', calls: [tool('wait', { until: 'go' })] }, { text: 'Done.' }] },
  { match: '^slow', turns: [{ text: SLOW, chunk: 4, gap_ms: 15 }] },
  { match: '^hello', turns: [{ text: 'Hello.' }] },
];

for (const client of CLIENTS) {
  describe(`HttpAgent ${client.version}`, () => {
    for (const [text, seen] of [['wait', 'TOOL_CALL_END'], ['slow', 'TEXT_MESSAGE_CONTENT']]) {
      test(`the server stops in the middle (${text}), and goes on when it is back`, async (t) => {
        const { home, street } = await startPlace(t, LINES);
        const tab = new Tab(client, home.server, newThread());
        const turn = tab.write(text);
        await turn.until('the middle', ({ type }) => type === seen);
        if (text === 'wait') await street.arrived('wait');
        await home.stop();
        await turn.end();
        assert.deepEqual([turn.outcome, turn.code], ['error', 'shutting_down']);
        const server = await home.start();
        tab.agent.url = tab.agent.url.replace(/^http:\/\/[^/]+/, server.url);
        if (text === 'wait') await street.release('go');
        const again = await tab.run();
        assert.equal(again.outcome, 'success');
        assert.equal(tab.messages.at(-1).content, text === 'wait' ? 'Done.' : SLOW);
        await assertSame(tab, server);
      });
    }

    test('the thread is deleted', async (t) => {
      const { home: { server } } = await startPlace(t, LINES);
      const tab = new Tab(client, server, newThread());
      const turn = tab.write('slow');
      await turn.until('a word', ({ type }) => type === 'TEXT_MESSAGE_CONTENT');
      const remove = () => call(server, 'DELETE', `${AGENT}/threads/${tab.threadId}`);
      await waitFor('the thread to go', async () => [200, 202, 204, 404].includes((await remove()).status));
      await turn.end();
      assert.ok(['error', 'cancelled'].includes(turn.outcome), turn.outcome);
    });

    test('the key is revoked', async (t) => {
      const { home } = await startPlace(t, LINES);
      const key = await home.addKey('ann');
      const tab = new Tab(client, home.server, newThread(), { headers: bearer(key) });
      const turn = tab.write('slow');
      await turn.until('a word', ({ type }) => type === 'TEXT_MESSAGE_CONTENT');
      await home.revokeKey(key);
      await turn.end();
      assert.equal(turn.outcome, 'error');
      assert.deepEqual(await tab.start().refusal(), { status: 401, code: 'unauthenticated', field: undefined });
    });

    test('a key is needed, and a thread of somebody else is another thread', async (t) => {
      const { home } = await startPlace(t, LINES);
      const keys = [await home.addKey('ann'), await home.addKey('bob')];
      const threadId = newThread();
      const nobody = new Tab(client, home.server, threadId);
      assert.deepEqual(await nobody.write('hello').refusal(), { status: 401, code: 'unauthenticated', field: undefined });
      const [ann, bob] = keys.map((key) => new Tab(client, home.server, threadId, { headers: bearer(key) }));
      await ann.say('hello');
      assert.equal((await bob.start().refusal()).status, 400, 'for bob there is no such thread');
      await bob.say('hello');
      await until(home.server, threadId, 'completed', bearer(keys[1]));
      for (const [tab, key] of [[ann, keys[0]], [bob, keys[1]]]) assert.deepEqual(tab.messages, await story(home.server, threadId, bearer(key)));
      assert.notDeepEqual(ann.messages, bob.messages);
    });

    test('an agent that there is not', async (t) => {
      const { home: { server } } = await startPlace(t, LINES);
      const tab = new Tab(client, server, newThread(), { path: '/ag-ui/nobody' });
      assert.deepEqual(await tab.write('hello').refusal(), { status: 404, code: 'not_found', field: undefined });
    });
  });
}

// SPDX-License-Identifier: Apache-2.0
//
// Conversations over a program of the operator's: signed both ways, each message once.

import assert from 'node:assert/strict';
import { createHash, randomUUID } from 'node:crypto';
import { describe, test } from 'node:test';

import { startBridge } from './hook.mjs';
import { rows } from '../api/asking.mjs';
import { waitFor } from '../api/talk.mjs';
import { startChannels } from './kit.mjs';

const QUESTION = /^❓ 会议定在哪天？/;
const DONE = '好的，就这么定。';

async function startBridged(t) {
  const bridge = await startBridge();
  t.after(() => bridge.close());
  const row = (folder) => [`own: {kind: webhook, url: "${bridge.url}", secret_file: "${folder}/own.secret", allow: ["*"]}`];
  const home = await startChannels(t, row, { files: { 'own.secret': bridge.secret } });
  bridge.hook = `http://${home.server.host}:${home.server.port}/api/v1/agent/channels/own/webhook`;
  return { home, bridge };
}

describe('a webhook channel', () => {
  test('a question, a button, an answer', async (t) => {
    const { bridge } = await startBridged(t);
    const said = await bridge.say('爱丽丝 1', '订会议', { name: 'Alice' });
    assert.deepEqual([said.status, said.json()], [202, { accepted: true }]);
    const asked = await bridge.waitForSend(QUESTION);
    assert.deepEqual([asked.to, asked.class], ['爱丽丝 1', 'question']);
    assert.match(asked.interactionId, /^int_/);
    await bridge.press('爱丽丝 1', asked, asked.buttons[1].label);
    assert.equal((await bridge.waitForSend(DONE)).class, 'final');
    assert.deepEqual(bridge.violations, []);
  });

  test('nobody is somebody else by being called like the hash of a long id', async (t) => {
    const { home, bridge } = await startBridged(t);
    const long = `alice-${'x'.repeat(200)}`, hash = createHash('sha256').update(long).digest('hex');
    for (const sender of [long, hash]) {
      await bridge.say(sender, '订会议');
      await waitFor('a question', () => bridge.sends.some(({ to, text }) => to === sender && QUESTION.test(text)));
    }
    const owners = rows(home, 'SELECT DISTINCT owner FROM threads ORDER BY owner').map(({ owner }) => owner);
    assert.deepEqual(owners, [`own#${hash}`, `own:${hash}`]);
  });

  test('the same id is the same message', async (t) => {
    const { bridge } = await startBridged(t);
    const message = { id: randomUUID(), sender: 'alice', text: '订会议' };
    const answers = await Promise.all([bridge.post(message), bridge.post(message), bridge.post(message)]);
    assert.deepEqual(answers.map(({ status }) => status), [202, 202, 202]);
    await bridge.waitForSend(QUESTION);
    assert.equal((await bridge.post(message)).status, 202);
    await bridge.say('alice', '1');
    await bridge.waitForSend(DONE);
    assert.equal(bridge.sends.filter(({ text }) => QUESTION.test(text)).length, 1);
  });

  test('what has no answer is sent again, and is one message', async (t) => {
    const { bridge } = await startBridged(t);
    bridge.failNext('cut-after');
    bridge.failNext(503);
    await bridge.say('alice', '订会议');
    await bridge.waitForSend(QUESTION);
    await waitFor('the repetition', () => bridge.copies === 1); // answered before it, nobody would be asked again
    await bridge.say('alice', '1');
    await bridge.waitForSend(DONE, { timeoutMs: 30_000 });
    assert.equal(bridge.sends.filter(({ text }) => QUESTION.test(text)).length, 1);
    assert.deepEqual(bridge.violations, []);
  });

  test('refusals say why', async (t) => {
    const { bridge } = await startBridged(t);
    const message = { id: '1', sender: 'alice', text: '订会议' };
    const old = String(Math.floor(Date.now() / 1000) - 301);
    const cases = [
      [message, { secret: 'other' }, 401],
      [message, { timestamp: old }, 401],
      [message, { signature: null }, 401],
      [{ ...message, extra: 1 }, {}, 400, 'extra'],
      [{ ...message, files: [{ data: '*' }] }, {}, 400, 'files[0].data'],
      [message, { raw: '{"id"' }, 400],
    ];
    for (const [body, options, status, field] of cases) {
      const answer = await bridge.post(body, options);
      assert.equal(answer.status, status, answer.body);
      assert.match(answer.type, /^application\/problem\+json/);
      assert.equal(answer.json().field, field);
    }
    await bridge.say('bob', '订会议');
    await bridge.waitForSend(QUESTION);
    assert.deepEqual(bridge.sends.map(({ to }) => to), ['bob'], 'nothing of alice came in');
  });
});

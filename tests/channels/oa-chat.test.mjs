// SPDX-License-Identifier: Apache-2.0
//
// Conversations over an Official Account: calls are answered at once and taken once, what the agent says goes out by the
// API, within what a message allows.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { startChannels } from './kit.mjs';
import { startOa, xml } from './oa.mjs';

const QUESTION = /^❓ 会议定在哪天？/;
const DONE = '好的，就这么定。';
const QUICK_MS = 4500; // WeChat waits for five seconds

async function startAccount(t, options = {}, rest = {}) {
  const oa = await startOa(options);
  t.after(() => oa.close());
  const row = (folder) => [`oa: {kind: wechat_oa, base_url: "${oa.url}", app_id: ${oa.appId}, token_file: "${folder}/oa.token", `
    + `secret_file: "${folder}/oa.secret", allow: ["*"]${oa.mode === 'plain' ? '' : `, aes_key_file: "${folder}/oa.key"`}}`];
  const home = await startChannels(t, row, { files: { 'oa.token': oa.token, 'oa.secret': oa.secret, 'oa.key': oa.aesKey }, ...rest });
  aim(oa, home);
  return { home, oa };
}

// A restarted server has another port.
const aim = (oa, home) => { oa.hook = `http://${home.server.host}:${home.server.port}/api/v1/agent/channels/oa/webhook`; };

const texts = (oa) => oa.sends.map(({ text }) => text);
const tokens = (oa) => new Set(oa.tokens.map(({ given }) => given)).size;

describe('an Official Account', () => {
  for (const mode of ['plain', 'compatible', 'safe']) {
    test(`${mode}: verified, asked, tapped`, async (t) => {
      const { oa } = await startAccount(t, { mode });
      await oa.verify();
      const said = await oa.say('alice', '订会议');
      assert.deepEqual(said.answers.map(({ status, body }) => [status, body]), [[200, 'success']]);
      assert.ok(said.answers[0].ms < QUICK_MS);
      const asked = await oa.waitForSend(QUESTION);
      assert.deepEqual(asked.menu.map(({ content }) => content), ['1. 周一', '2. 周二', '3. 周三']);
      await oa.press('alice', asked, '2. 周二');
      await oa.waitForSend(DONE);
      assert.equal(tokens(oa), 1);
      assert.deepEqual(oa.violations, []);
    });
  }

  test('a menu that comes back without its id, and one that may not be sent', async (t) => {
    const { oa } = await startAccount(t, { menuIds: false });
    await oa.say('alice', '订会议');
    await oa.press('alice', await oa.waitForSend(QUESTION), '3. 周三');
    await oa.waitForSend(DONE);
    oa.verified = false;
    await oa.say('bob', '订会议');
    const asked = await oa.waitForSend((sent) => sent.to === oa.id('bob'));
    assert.equal(asked.menu, null);
    await oa.say('bob', '1');
    await oa.waitForSend(DONE, { from: oa.sends.indexOf(asked) });
    await oa.say('carol', '订会议');
    await oa.waitForSend((sent) => sent.to === oa.id('carol'));
    assert.equal(oa.refused.filter(({ code }) => code === 40200).length, 1, 'it was learned');
  });

  test('a message that is delivered again is one message', async (t) => {
    const { home, oa } = await startAccount(t, { mode: 'safe' });
    const said = await oa.say('alice', '订会议');
    assert.deepEqual((await Promise.all([oa.repeat(said), oa.repeat(said), oa.repeat(said)])).map(({ body }) => body), Array(3).fill('success'));
    await oa.waitForSend(QUESTION);
    await home.restart();
    aim(oa, home);
    await oa.repeat(said);
    await oa.say('alice', '2');
    await oa.waitForSend(DONE);
    assert.equal(texts(oa).filter((text) => QUESTION.test(text)).length, 1);
    assert.equal(texts(oa).filter((text) => text === DONE).length, 1);
  });

  test('forged calls are refused, and nobody hears of them', async (t) => {
    const { oa } = await startAccount(t, { mode: 'safe' });
    const message = xml({ FromUserName: oa.id('alice'), CreateTime: 1, MsgType: 'text', Content: '订会议', MsgId: 1 });
    const now = Math.floor(Date.now() / 1000);
    for (const given of [{ token: 'x' }, { appId: 'wx0' }, { aesKey: 'A'.repeat(43) }, { mode: 'plain' }, { timestamp: now - 700 }, { timestamp: now + 400 }])
      assert.equal((await oa.post(oa.signed(message, given))).status, 403, JSON.stringify(given));
    const { query } = oa.signed('', { token: 'x', mode: 'plain' });
    query.set('echostr', '<script>');
    const refused = await oa.get(query);
    assert.equal(refused.status, 403);
    assert.doesNotMatch(refused.body, /script/);
    await oa.say('bob', '订会议');
    await oa.waitForSend(QUESTION);
    assert.deepEqual(oa.sends.map(({ to }) => to), [oa.id('bob')]);
  });

  test('an access token that died is replaced, once for the message', async (t) => {
    const { oa } = await startAccount(t);
    await oa.say('alice', '订会议');
    await oa.waitForSend(QUESTION);
    oa.dropTokens();
    await oa.say('alice', '1');
    await oa.waitForSend(DONE);
    assert.equal(texts(oa).filter((text) => text === DONE).length, 1);
    assert.equal(tokens(oa), 2);
  });

  test('a send that surely failed is made again; one of unknown fate once more, and says so', async (t) => {
    const { oa } = await startAccount(t);
    oa.failNext('send', { errcode: -1 });
    oa.failNext('send', 'cut');
    await oa.say('alice', '订会议');
    const asked = await oa.waitForSend((sent) => /会议定在哪天/.test(sent.text), { timeoutMs: 30_000 });
    assert.doesNotMatch(asked.text, QUESTION, 'the cut one may have arrived');
    assert.equal(oa.sends.length, 1);
    assert.equal(oa.failures(), 0);
  });

  test('after the fifth message nothing is sent until they write again', async (t) => {
    const { oa } = await startAccount(t);
    await oa.say('alice', '订会议');
    await oa.waitForSend(QUESTION);
    oa.failNext('send', { errcode: 45047 });
    await oa.say('alice', '1');
    await oa.waitFor('requests', ({ body }) => body.includes(DONE));
    assert.ok(!texts(oa).includes(DONE));
    await oa.say('alice', '谢谢');
    await oa.waitForSend(DONE);
    assert.equal(texts(oa).filter((text) => text === DONE).length, 1);
  });

  test('a picture is fetched', async (t) => {
    const { oa } = await startAccount(t);
    const said = await oa.image('alice', Buffer.from('/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAP//', 'base64'));
    assert.ok(said.taken);
    assert.equal((await oa.waitFor('downloads')).mediaId, said.fields.MediaId);
  });
});

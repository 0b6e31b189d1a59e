// SPDX-License-Identifier: Apache-2.0
//
// Conversations over Telegram: buttons, files, and a platform that is not always there.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { inbox } from '../api/asking.mjs';
import { history, waitFor } from '../api/talk.mjs';
import { channelState, conversations, linkCode, startChannels } from './kit.mjs';
import { startTelegram } from './telegram.mjs';

const QUESTION = /会议定在哪天/;
const DONE = '好的，就这么定。';
const CODE = /(?:同意|approve) (\d{6})/;

async function startBot(t, { telegram: options = {}, allow = 'allow: ["*"]', ...rest } = {}) {
  const telegram = await startTelegram({ holdMs: 1000, ...options });
  t.after(() => telegram.close());
  const row = (folder) => [`tg: {kind: telegram, base_url: "${telegram.url}", token_file: "${folder}/tg.token"${allow ? `, ${allow}` : ''}}`];
  const home = await startChannels(t, row, { files: { 'tg.token': `${telegram.token}\n` }, ...rest });
  return { home, telegram };
}

async function linked(home, telegram, user, as = 'local') {
  const code = await linkCode(home, 'tg', as);
  const from = telegram.sends.length;
  telegram.say(user, `/link ${code}`);
  await telegram.waitForSend((sent) => sent.chat === telegram.id(user) && sent.text.includes(as), { from });
}

const newest = (telegram) => ({ from: telegram.sends.length });
const texts = (telegram) => telegram.sends.map(({ text }) => text);

describe('a question', () => {
  test('has a button for each choice, and a press answers it', async (t) => {
    const { home, telegram } = await startBot(t);
    await linked(home, telegram, 'alice');
    telegram.say('alice', '订会议');
    const asked = await telegram.waitForSend(QUESTION);
    assert.deepEqual(asked.buttons.map(({ label }) => label), ['1. 周一', '2. 周二', '3. 周三']);
    const press = telegram.press(asked, '2. 周二');
    await telegram.waitForSend(DONE);
    await telegram.waitFor('toasts', ({ callback }) => callback === press.callback);
    await waitFor('the buttons to go', () => telegram.message(asked.id).buttons.length === 0);
    const [thread] = await conversations(home.server);
    const { messages } = await history(home.server, thread.threadId);
    assert.equal(messages.find((row) => row.role === 'tool').content, '周二');
    const { metadata } = messages.find((row) => row.role === 'clarify');
    assert.deepEqual([metadata.status, metadata.answered_by, metadata.via], ['answered', 'local', 'telegram']);
    assert.deepEqual(telegram.violations, []);
  });

  test('is answered by words, too, and once', async (t) => {
    const { home, telegram } = await startBot(t);
    await linked(home, telegram, 'alice');
    telegram.say('alice', '订会议');
    const asked = await telegram.waitForSend(QUESTION);
    telegram.say('alice', '第三个', { reply: asked });
    await telegram.waitForSend(DONE);
    const from = newest(telegram);
    telegram.message(asked.id).buttons = asked.buttons; // as on a phone that has not seen the edit
    const press = telegram.press(asked, '1. 周一');
    await telegram.waitFor('toasts', ({ callback }) => callback === press.callback);
    telegram.say('alice', 'hi');
    await telegram.waitForSend('Hello.', from);
    const [thread] = await conversations(home.server);
    const { messages } = await history(home.server, thread.threadId);
    assert.deepEqual(messages.filter((row) => row.role === 'tool').map((row) => row.content), ['周三']);
    assert.deepEqual(telegram.violations, []);
  });

  test('a press of somebody else does nothing', async (t) => {
    const { home, telegram } = await startBot(t);
    await linked(home, telegram, 'alice');
    telegram.say('alice', '订会议');
    const asked = await telegram.waitForSend(QUESTION);
    telegram.press(asked, '2. 周二', { by: 'mallory' });
    await telegram.waitUntilRead();
    assert.equal((await inbox(home.server)).interactions.length, 1);
    telegram.press(asked, '2. 周二');
    await telegram.waitForSend(DONE);
  });

  test('in a group has no buttons', async (t) => {
    const { telegram } = await startBot(t);
    telegram.say('alice', '订会议', { group: 'team' });
    const asked = await telegram.waitForSend(QUESTION);
    assert.deepEqual(asked.buttons, []);
    assert.match(asked.text, /2\. 周二/);
    telegram.say('bob', '2', { group: 'team' });
    const told = await telegram.waitForSend(DONE);
    assert.equal(told.chat, asked.chat);
  });
});

test('an approval takes its code, and a button only rejects', async (t) => {
  const { home, telegram } = await startBot(t);
  await linked(home, telegram, 'alice');
  telegram.say('alice', 'book it');
  const first = await telegram.waitForSend(CODE);
  for (const { data } of first.buttons) assert.match(data, /:no$/);
  telegram.press(first, first.buttons[0].label);
  await telegram.waitForSend(/Done/, newest(telegram));
  await waitFor('the button to go', () => telegram.message(first.id).buttons.length === 0);
  assert.equal((await inbox(home.server)).interactions.length, 0);
  const from = newest(telegram);
  telegram.say('alice', 'book it');
  const second = await telegram.waitForSend(CODE, from);
  telegram.say('alice', `approve ${CODE.exec(second.text)[1]}`);
  await telegram.waitForSend(/Done/, { from: telegram.sends.indexOf(second) + 1 });
  assert.deepEqual(telegram.violations, []);
});

describe('messages', () => {
  test('are handled once, however often they come', async (t) => {
    const { home, telegram } = await startBot(t);
    await linked(home, telegram, 'alice');
    const from = newest(telegram);
    telegram.failNext('getUpdates', 'cut-half');
    const said = telegram.say('alice', 'hi');
    await telegram.waitForSend('Hello.', from);
    telegram.repeat(said);
    telegram.repeat(said);
    telegram.say('alice', 'ho');
    await telegram.waitForSend('Hello.', { from: from.from + 1 });
    const [thread] = await conversations(home.server);
    const { messages } = await history(home.server, thread.threadId);
    assert.deepEqual(messages.filter((row) => row.role === 'user').map((row) => row.content), ['hi', 'ho']);
  });

  test('files come along', async (t) => {
    const { home, telegram } = await startBot(t);
    await linked(home, telegram, 'alice');
    const from = newest(telegram);
    telegram.failNext('file', 'cut-half');
    telegram.say('alice', 'read this', { document: { bytes: Buffer.from('hello file'), name: 'a b.txt', mime: 'text/plain' } });
    await telegram.waitForSend('Hello.', from);
    const [thread] = await conversations(home.server);
    const { messages } = await history(home.server, thread.threadId);
    assert.match(JSON.stringify(messages), /a b\.txt/);
    assert.deepEqual(telegram.violations, []);
  });

  test('bots, edits and strangers are not heard', async (t) => {
    const { home, telegram } = await startBot(t, { allow: 'allow: ["5000000000"]' });
    assert.equal(telegram.id('alice'), 5_000_000_000);
    telegram.say('mallory', 'hi');
    const said = telegram.say('alice', 'hi');
    telegram.edit(said, 'hi there');
    telegram.say('alice', 'beep', { from: { is_bot: true } });
    await telegram.waitForSend('Hello.');
    await telegram.waitUntilRead();
    assert.deepEqual(texts(telegram), ['Hello.']);
    const { people } = await channelState(home.server, 'tg', 'online');
    assert.equal(people, 1);
  });
});

describe('trouble', () => {
  test('429 waits as long as Telegram says, and nothing is lost or doubled', async (t) => {
    const { home, telegram } = await startBot(t);
    await linked(home, telegram, 'alice');
    const from = newest(telegram);
    telegram.flood('sendMessage', 2);
    const began = Date.now();
    telegram.say('alice', 'hi');
    await telegram.waitForSend('Hello.', from);
    assert.ok(Date.now() - began >= 2000);
    assert.equal(texts(telegram).slice(from.from).length, 1);
  });

  test('an answer whose fate is unknown is sent once more, and says so', async (t) => {
    const { home, telegram } = await startBot(t);
    await linked(home, telegram, 'alice');
    const from = newest(telegram);
    telegram.failNext('sendMessage', 'cut-after');
    telegram.say('alice', 'hi');
    await telegram.waitForSend('Hello.', from);
    const again = await telegram.waitForSend(({ text }) => text !== 'Hello.', from);
    assert.match(again.text, /Hello\./);
  });

  const causes = {
    'another poll': ['trouble', /another program polls this bot/, (telegram) => telegram.pollElsewhere()],
    'a webhook': ['trouble', /deleteWebhook/, (telegram) => telegram.webhook('https://example.org/')],
    'a dead token': ['needs_login', /the token is wrong/, (telegram) => telegram.newToken()],
  };
  for (const [name, [state, words, begin]] of Object.entries(causes)) {
    test(`${name} is told to the operator`, async (t) => {
      const { home, telegram } = await startBot(t);
      await channelState(home.server, 'tg', 'online');
      telegram.holdMs = 30_000;
      await telegram.waitFor('polls', ({ given }) => given === null, { from: telegram.polls.length });
      const { token } = telegram;
      begin(telegram);
      const { detail } = await channelState(home.server, 'tg', state);
      assert.match(detail, words);
      assert.ok(!detail.includes(token));
    });
  }
});

// SPDX-License-Identifier: Apache-2.0
//
// The local Bot API keeps the rules of the real one; what is tested against it can be trusted that far.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { startTelegram } from './telegram.mjs';

async function call(telegram, method, body = {}, token = telegram.token) {
  const answer = await fetch(`${telegram.url}/bot${token}/${method}`, {
    method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body),
  });
  return { status: answer.status, ...await answer.json() };
}
const poll = (telegram, offset, more = {}) => call(telegram, 'getUpdates', { offset, timeout: 5, allowed_updates: ['message', 'callback_query'], ...more });
const words = { text: 'hi', link_preview_options: { is_disabled: true } };

async function withTelegram(body, options = {}) {
  const telegram = await startTelegram(options);
  try {
    await body(telegram);
  } finally {
    await telegram.close();
  }
}

test('a poll is held until something is said; an offset confirms what is below it', () => withTelegram(async (telegram) => {
  const held = poll(telegram, 0);
  await telegram.waitFor('polls');
  const said = telegram.say('alice', 'hello');
  assert.deepEqual((await held).result.map(({ message }) => message.text), ['hello']);
  telegram.say('alice', 'more');
  assert.deepEqual((await poll(telegram, 0)).result.map(({ message }) => message.text), ['hello', 'more']);
  assert.deepEqual((await poll(telegram, 0, { limit: 1 })).result.length, 1);
  assert.deepEqual((await poll(telegram, said.id + 1)).result.map(({ message }) => message.text), ['more']);
  assert.deepEqual((await poll(telegram, 0)).result.length, 1, 'what was confirmed is gone');
  telegram.edit(said, 'hallo');
  telegram.holdMs = 20;
  assert.deepEqual((await poll(telegram, said.id + 2)).result, [], 'nobody asked for edits');
  telegram.repeat(said);
  assert.equal((await poll(telegram, said.id + 3)).result[0].update_id, said.id);
  await telegram.waitUntilRead();
  assert.deepEqual(telegram.violations, []);
}));

test('one poll at a time, and none beside a webhook; only the token of now', () => withTelegram(async (telegram) => {
  const first = poll(telegram, 0);
  await telegram.waitFor('polls');
  const second = telegram.pollElsewhere();
  const refused = await first;
  assert.deepEqual([refused.status, refused.error_code], [409, 409]);
  assert.match(refused.description, /other getUpdates request/);
  telegram.say('alice', 'to them');
  assert.equal((await second.done).result.length, 1);
  await call(telegram, 'setWebhook', { url: 'https://example.org' });
  assert.match((await poll(telegram, 0)).description, /webhook is active/);
  await call(telegram, 'deleteWebhook');
  assert.equal((await poll(telegram, 0)).ok, true);
  assert.equal((await call(telegram, 'getMe', {}, 'nonsense')).status, 404);
  const old = telegram.token;
  telegram.newToken();
  assert.equal((await call(telegram, 'getMe', {}, old)).status, 401);
  assert.equal((await call(telegram, 'getMe')).result.is_bot, true);
}));

test('messages, buttons, presses and edits', () => withTelegram(async (telegram) => {
  const key = (data, text = 'Yes') => ({ reply_markup: { inline_keyboard: [[{ text, callback_data: data }]] } });
  assert.match((await call(telegram, 'sendMessage', { chat_id: 1, ...words })).description, /chat not found/);
  telegram.say('alice', 'hello');
  const to = { chat_id: telegram.id('alice') };
  const rows = [
    [{ text: '\u{1F44D}'.repeat(2049) }, /too long/], [{ text: ' ' }, /empty/], [key('d'.repeat(65)), /BUTTON_DATA_INVALID/],
    [key('d', ' '), /text is empty/],
  ];
  for (const [more, why] of rows) assert.match((await call(telegram, 'sendMessage', { ...to, ...words, ...more })).description, why);
  assert.equal((await call(telegram, 'sendMessage', { ...to, ...words, text: '\u{1F44D}'.repeat(2048) })).ok, true);
  const { result } = await call(telegram, 'sendMessage', { ...to, ...words, ...key('d'.repeat(64)) });
  const asked = await telegram.waitForSend('hi');
  assert.equal(asked.id, result.message_id);
  assert.throws(() => telegram.press(asked, 'No'), /no button No/);
  const press = telegram.press(asked, 'Yes');
  const told = (await poll(telegram, press.id)).result[0].callback_query;
  assert.deepEqual([told.from.id, told.data, told.message.message_id], [to.chat_id, 'd'.repeat(64), asked.id]);
  assert.equal((await call(telegram, 'answerCallbackQuery', { callback_query_id: press.callback, text: 'ok' })).result, true);
  assert.match((await call(telegram, 'answerCallbackQuery', { callback_query_id: press.callback })).description, /too old/);
  const edit = { ...to, message_id: asked.id, text: 'hi: Yes', link_preview_options: { is_disabled: true }, reply_markup: { inline_keyboard: [] } };
  assert.equal((await call(telegram, 'editMessageText', edit)).ok, true);
  assert.match((await call(telegram, 'editMessageText', edit)).description, /not modified/);
  assert.deepEqual(telegram.message(asked.id), { chat: to.chat_id, ours: true, text: 'hi: Yes', buttons: [] });
  telegram.block('alice');
  assert.equal((await call(telegram, 'sendMessage', { ...to, ...words })).status, 403);
  assert.deepEqual(telegram.violations, []);
  telegram.unblock('alice');
  await call(telegram, 'sendMessage', { ...to, text: 'x', parse_mode: 'HTML' });
  assert.equal(telegram.violations.length, 2);
}));

test('files in and out', () => withTelegram(async (telegram) => {
  const bytes = Buffer.concat([Buffer.from('\x89PNG', 'latin1'), Buffer.alloc(20, 7)]);
  telegram.say('alice', 'look', { photo: { bytes, name: 'a.png' } });
  const [{ message }] = (await poll(telegram, 0)).result;
  assert.deepEqual([message.caption, message.photo.length], ['look', 2]);
  const { result: { file_path: path } } = await call(telegram, 'getFile', { file_id: message.photo[1].file_id });
  const got = await fetch(`${telegram.url}/file/bot${telegram.token}/${path}`);
  assert.deepEqual(Buffer.from(await got.arrayBuffer()), bytes);
  for (const [kind, content, status] of [['photo', bytes, 200], ['photo', Buffer.from('no picture at all'), 400], ['document', Buffer.from('x'), 200]]) {
    const form = new FormData();
    form.set('chat_id', String(telegram.id('alice')));
    form.set(kind, new Blob([content], { type: 'image/png' }), '图.png');
    const method = kind === 'photo' ? 'sendPhoto' : 'sendDocument';
    assert.equal((await fetch(`${telegram.url}/bot${telegram.token}/${method}`, { method: 'POST', body: form })).status, status);
  }
  assert.deepEqual(telegram.sends.map(({ file: { kind, name, mime } }) => [kind, name, mime]), [['photo', '图.png', 'image/png'], ['document', '图.png', 'image/png']]);
  assert.deepEqual(telegram.violations, []);
}));

test('trouble on demand', () => withTelegram(async (telegram) => {
  telegram.say('alice', 'hello');
  const body = { chat_id: telegram.id('alice'), ...words };
  telegram.flood('sendMessage', 3);
  const flooded = await call(telegram, 'sendMessage', body);
  assert.deepEqual([flooded.status, flooded.parameters], [429, { retry_after: 3 }]);
  for (const how of ['cut', 'cut-after', 'cut-half']) {
    telegram.failNext('sendMessage', how);
    await assert.rejects(call(telegram, 'sendMessage', body));
  }
  assert.deepEqual(telegram.sends.map(({ answered }) => answered), [false, true], 'a cut before anything happens sends nothing');
  telegram.failNext('sendMessage', { status: 502, body: '{}' });
  assert.equal((await call(telegram, 'sendMessage', body)).status, 502);
  telegram.failNext('getUpdates', 'cut-after');
  await assert.rejects(poll(telegram, 0));
  assert.equal((await poll(telegram, 0)).result.length, 1, 'what was not confirmed comes again');
  assert.equal(telegram.failures(), 0);
}));

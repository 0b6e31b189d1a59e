// SPDX-License-Identifier: Apache-2.0
//
// The local iLink server keeps the rules of the real one; what is tested against it can be trusted that far.

import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'node:test';

import { md5, seal, sealedBytes, unseal } from './ilink-rules.mjs';
import { startIlink } from './ilink.mjs';

// A client of a few lines, with all headers in order.
const common = { 'iLink-App-Id': 'bot', 'iLink-App-ClientVersion': '65536' };
const uin = () => Buffer.from(String(randomBytes(4).readUInt32BE())).toString('base64');
async function call(ilink, endpoint, body = {}, { headers = {}, token = ilink.token, base = ilink.url, info = true } = {}) {
  const response = await fetch(`${base}/ilink/bot/${endpoint}`, {
    method: 'POST',
    headers: {
      ...common, 'Content-Type': 'application/json', AuthorizationType: 'ilink_bot_token', 'X-WECHAT-UIN': uin(),
      ...token && { Authorization: `Bearer ${token}` }, ...headers,
    },
    body: JSON.stringify({ ...body, ...info && { base_info: { channel_version: '1.0.0', bot_agent: 'Fermata/1.0.0' } } }),
  });
  const text = await response.text();
  return { status: response.status, text, ...response.ok && JSON.parse(text) };
}
const poll = (ilink, cursor = '') => call(ilink, 'getupdates', { get_updates_buf: cursor });
const message = (token, text = 'hi', to = 'alice@im.wechat') => ({
  msg: {
    from_user_id: '', to_user_id: to, client_id: 'c1', message_type: 2, message_state: 2,
    item_list: [{ type: 1, text_item: { text } }], context_token: token,
  },
});
const send = (ilink, ...args) => call(ilink, 'sendmessage', message(...args));

async function withIlink(options, body) {
  const ilink = await startIlink({ holdMs: 50, ...options });
  try {
    await body(ilink);
  } finally {
    await ilink.close();
  }
}

test('a poll is held until something is said, and a cursor means a position', () => withIlink({ holdMs: 5000 }, async (ilink) => {
  const held = poll(ilink);
  await ilink.waitFor('polls');
  const said = ilink.say('alice', 'hello');
  const first = await held;
  assert.equal(first.msgs.length, 1);
  assert.match(first.text, new RegExp(`"message_id":${said.id},`));
  assert.ok(BigInt(said.id) > 2n ** 53n);
  ilink.say('alice', 'again');
  assert.deepEqual((await poll(ilink)).msgs.map((each) => each.item_list[0].text_item.text), ['hello', 'again']);
  const second = await poll(ilink, first.get_updates_buf);
  assert.deepEqual(second.msgs.map((each) => each.item_list[0].text_item.text), ['again']);
  ilink.holdMs = 20;
  const third = await poll(ilink, second.get_updates_buf);
  assert.deepEqual([third.msgs, third.get_updates_buf], [[], second.get_updates_buf]);
  await ilink.waitUntilRead();
  ilink.repeat(said.id);
  assert.match((await poll(ilink, third.get_updates_buf)).text, new RegExp(`"message_id":${said.id},`));
  assert.deepEqual(ilink.violations, []);
  assert.equal((await poll(ilink, 'made up')).status, 400);
  assert.equal(ilink.violations.length, 1);
}));

test('ten sends for each message of a person, within a day', () => withIlink({}, async (ilink) => {
  assert.deepEqual((await send(ilink, 'none')).ret, -2);
  const said = ilink.say('alice', 'hello');
  assert.equal((await send(ilink, 'wrong')).errmsg, 'unknown error');
  for (let i = 0; i < 10; i++) assert.match((await send(ilink, said.contextToken, `hi ${i}`)).text, /^\{"message_id":\d{19}\}$/);
  const eleventh = await send(ilink, said.contextToken);
  assert.deepEqual([eleventh.ret, eleventh.errmsg], [-2, 'prepare failed']);
  const newer = ilink.say('alice', 'more');
  assert.equal((await send(ilink, said.contextToken, 'late')).ret, undefined);
  assert.equal(ilink.sends.at(-1).stale, true);
  ilink.advance(24 * 60 * 60 * 1000 + 1000);
  assert.equal((await send(ilink, newer.contextToken)).errmsg, 'prepare failed');
  assert.deepEqual([ilink.sends.length, ilink.refused.length], [11, 4]);
  assert.equal((await ilink.waitForSend('hi 3')).n, ilink.sends[3].n);
  await assert.rejects(ilink.waitForSend(/never/, { timeoutMs: 10 }), /no entry of sends matches/);
}));

test('what the rules forbid is refused and remembered', () => withIlink({}, async (ilink) => {
  const { contextToken } = ilink.say('alice', 'hello');
  const two = message(contextToken);
  two.msg.item_list.push(two.msg.item_list[0]);
  const rows = [
    ['unknown member', 'sendmessage', { msg: { ...message(contextToken).msg, seq: 1 } }],
    ['not exactly one item', 'sendmessage', two],
    ['message_state', 'sendmessage', { msg: { ...message(contextToken).msg, message_state: 1 } }],
    ['no base_info', 'sendmessage', message(contextToken), { info: false }],
    ['X-WECHAT-UIN is not base64', 'sendmessage', message(contextToken), { headers: { 'X-WECHAT-UIN': 'AQIDBA==' } }],
    ['iLink-App-Id', 'sendmessage', message(contextToken), { headers: { 'iLink-App-Id': 'x' } }],
    ['no Authorization', 'sendmessage', message(contextToken), { token: '' }],
    ['a ticket', 'sendtyping', { ilink_user_id: 'alice@im.wechat', typing_ticket: 'x', status: 1 }],
    ['filekey', 'getuploadurl', { filekey: 'x' }],
    ['no such endpoint', 'nothing', {}],
  ];
  for (const [what, endpoint, body, options] of rows) {
    const before = ilink.violations.length;
    assert.equal((await call(ilink, endpoint, body, options)).status, 400, what);
    assert.ok(ilink.violations.slice(before).some((each) => each.includes(what)), `${what}: ${ilink.violations.slice(before)}`);
  }
  const same = { headers: { 'X-WECHAT-UIN': uin() } };
  assert.equal((await call(ilink, 'getconfig', { ilink_user_id: 'alice@im.wechat' }, same)).status, 200);
  assert.equal((await call(ilink, 'getconfig', { ilink_user_id: 'alice@im.wechat' }, same)).text, 'X-WECHAT-UIN is not new');
  assert.equal(ilink.sends.length, 0);
}));

test('trouble comes as asked, before or after the effect', () => withIlink({}, async (ilink) => {
  const { contextToken } = ilink.say('alice', 'hello');
  for (const how of ['cut', 'cut-after', 'cut-half']) ilink.failNext('sendmessage', how);
  for (let i = 0; i < 3; i++) await assert.rejects(send(ilink, contextToken, `try ${i}`));
  assert.deepEqual(ilink.sends.map(({ text, answered }) => [text, answered]), [['try 1', false], ['try 2', false]]);
  ilink.failNext('sendmessage', { ret: -2, errmsg: 'rate limited' });
  ilink.failNext('sendmessage', { status: 502, body: 'bad gateway' });
  ilink.failNext('sendmessage', { delayMs: 1 });
  assert.equal(ilink.failures(), 3);
  assert.equal((await send(ilink, contextToken)).errmsg, 'rate limited');
  assert.equal((await send(ilink, contextToken)).status, 502);
  assert.equal((await send(ilink, contextToken, 'late')).status, 200);
  assert.equal(ilink.sends.length, 3);
  ilink.killToken();
  assert.deepEqual((await poll(ilink)).errcode, -14);
  ilink.reviveToken();
  assert.equal((await poll(ilink)).msgs.length, 1);
  await ilink.down();
  await assert.rejects(poll(ilink));
  await ilink.up();
  assert.equal((await poll(ilink)).msgs.length, 1);
}));

test('typing needs a ticket', () => withIlink({}, async (ilink) => {
  ilink.say('alice', 'hello');
  const user = { ilink_user_id: 'alice@im.wechat' };
  const { typing_ticket } = await call(ilink, 'getconfig', user);
  assert.equal((await call(ilink, 'sendtyping', { ...user, typing_ticket, status: 1 })).ret, 0);
  assert.deepEqual(ilink.typings.map(({ user: who, status }) => [who, status]), [['alice@im.wechat', 1]]);
}));

test('files go through the CDN, sealed, both ways', () => withIlink({}, async (ilink) => {
  const { contextToken } = ilink.say('alice', '', { files: [
    { kind: 'image', bytes: 'picture' }, { name: 'a.txt', bytes: 'words' }, { kind: 'voice', bytes: 'sound', text: 'two', key: 'raw' },
  ] });
  const [image, file, voice] = (await poll(ilink)).msgs[0].item_list;
  const fetched = async (media, key) => unseal(Buffer.from(await (await fetch(media.full_url)).arrayBuffer()), key).toString();
  assert.equal(await fetched(image.image_item.media, image.image_item.aeskey), 'picture');
  assert.equal(await fetched(file.file_item.media, Buffer.from(file.file_item.media.aes_key, 'base64').toString()), 'words');
  assert.equal(await fetched(voice.voice_item.media, Buffer.from(voice.voice_item.media.aes_key, 'base64').toString('hex')), 'sound');
  assert.equal(voice.voice_item.text, 'two');

  const raw = Buffer.from('an answer');
  const aeskey = '000102030405060708090a0b0c0d0e0f';
  const { upload_full_url: url } = await call(ilink, 'getuploadurl', {
    filekey: aeskey, aeskey, media_type: 3, to_user_id: 'alice@im.wechat', rawsize: raw.length, rawfilemd5: md5(raw),
    filesize: sealedBytes(raw.length), no_need_thumb: true,
  });
  const put = (bytes) => fetch(url, { method: 'POST', headers: { 'content-type': 'application/octet-stream' }, body: bytes });
  assert.equal((await put(raw)).status, 400);
  const param = (await put(seal(raw, aeskey))).headers.get('x-encrypted-param');
  const body = message(contextToken);
  body.msg.item_list = [{ type: 4, file_item: {
    media: { encrypt_query_param: param, aes_key: Buffer.from(aeskey).toString('base64'), encrypt_type: 1 }, file_name: 'b.txt', len: '9',
  } }];
  assert.equal((await call(ilink, 'sendmessage', body)).status, 200);
  assert.deepEqual(ilink.sends[0].file, { kind: 'file', name: 'b.txt', bytes: raw });
  assert.deepEqual(ilink.violations, []);
}));

test('the cipher is that of the vectors', () => {
  const key = '000102030405060708090a0b0c0d0e0f';
  assert.equal(seal('hello', key).toString('hex'), '5d8749e2af7531b2bf6661e9e5daf012');
  assert.deepEqual([0, 15, 16, 24563].map(sealedBytes), [16, 16, 32, 24576]);
});

const status = async (ilink, key, more = '', base = ilink.url) => (
  (await fetch(`${base}/ilink/bot/get_qrcode_status?qrcode=${key}${more}`, { headers: common })).json());
const code = async (ilink) => (
  await call(ilink, 'get_bot_qrcode?bot_type=3', { local_token_list: [] }, { token: '', info: false })).qrcode;

test('signing in, step by step', () => withIlink({ token: null }, async (ilink) => {
  const key = await code(ilink);
  assert.match(ilink.qr.content, new RegExp(`qrcode=${key}`));
  assert.equal((await status(ilink, key)).status, 'wait');
  ilink.scan();
  assert.equal((await status(ilink, key)).status, 'scaned');
  ilink.askCode('4821');
  assert.equal((await status(ilink, key)).status, 'need_verifycode');
  assert.equal((await status(ilink, key, '&verify_code=1')).status, 'need_verifycode');
  assert.equal((await status(ilink, key, '&verify_code=4821')).status, 'scaned');
  assert.equal((await ilink.waitFor('statuses', (entry) => entry.typed === '4821')).status, 'scaned');
  ilink.redirect();
  const { redirect_host } = await status(ilink, key);
  assert.equal(`http://${redirect_host}`, ilink.farUrl);
  ilink.confirm();
  const done = await status(ilink, key, '', ilink.farUrl);
  assert.deepEqual([done.status, done.bot_token, done.ilink_user_id], ['confirmed', ilink.token, 'alice@im.wechat']);
  assert.equal((await poll(ilink)).ret, 0);
  assert.deepEqual(ilink.violations, []);
}));

test('signing in by a script; a new token ends the old one', () => withIlink({ login: ['wait', 'expired'] }, async (ilink) => {
  const old = ilink.token;
  const key = await code(ilink);
  assert.equal((await status(ilink, key)).status, 'wait');
  assert.equal((await status(ilink, key)).status, 'expired');
  ilink.script([{ verify: '77' }, 'confirmed']);
  const next = await code(ilink);
  assert.equal((await status(ilink, key)).status, 'expired');
  assert.equal((await status(ilink, next)).status, 'need_verifycode');
  for (const expected of ['need_verifycode', 'need_verifycode', 'verify_code_blocked']) {
    assert.equal((await status(ilink, next, '&verify_code=1')).status, expected);
  }
  assert.equal((await status(ilink, next)).status, 'confirmed');
  assert.notEqual(ilink.token, old);
  assert.equal((await call(ilink, 'getupdates', { get_updates_buf: '' }, { token: old })).errcode, -14);
}));

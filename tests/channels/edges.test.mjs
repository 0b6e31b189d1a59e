// SPDX-License-Identifier: Apache-2.0
//
// Where two things meet that seldom do: a link that goes while something waits, a clock that steps back, a proxy that
// answers in the platform's place, a crash between two commits, a platform that is slow, people who guess.
//
// That something does not happen is seen by what comes after it: another message went all the way, or nothing is left to
// be done.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { describe, test } from 'node:test';

import { execute, inbox, rows } from '../api/asking.mjs';
import { postJson } from '../api/home.mjs';
import { AGENT, get, history, talk, user, waitFor } from '../api/talk.mjs';
import { startBridge } from './hook.mjs';
import { channelState, conversations, linkCode, login, startChannels, startLines } from './kit.mjs';
import { startOa, xml } from './oa.mjs';
import { startTelegram } from './telegram.mjs';

const HELLO = /^Hello\.$/;
const CODE = /approve (\d{6})/;
const FILE = { bytes: Buffer.from('hello'), name: 'contract.txt', mime: 'text/plain' };

const texts = (sends) => sends.map(({ text }) => text);
const count = (home, table, where = '1') => rows(home, `SELECT count(*) AS n FROM ${table} WHERE ${where}`)[0].n;
const booked = (home) => count(home, 'calendar_events');
const settled = (home) => waitFor('nothing is left to do', () => !count(home, 'channel_inbox', 'state<2') && !count(home, 'channel_outbox', 'state<3'));

async function startOne(t, kind, options) {
  const { home, lines } = await startLines(t, [kind], options);
  return { home, line: lines[kind], fake: lines[kind].fake };
}

// Something for them is refused, and is to be sent again in a while.
async function delay(home, line, who, text) {
  line.fake.flood('sendMessage', 20);
  await line.say(who, text);
  await waitFor('it was tried', () => count(home, 'channel_outbox', 'state=0 AND attempts>0') === 1);
}

const said = async (home) => {
  const [thread] = await conversations(home.server);
  return (await history(home.server, thread.threadId)).messages;
};

describe('who somebody is', () => {
  test('unlinked, they are sent nothing of what was theirs', async (t) => {
    const { home, line, fake } = await startOne(t, 'telegram');
    await line.link(home, 'alice', 'local');
    await line.ask('alice', 'hi', HELLO);
    await delay(home, line, 'alice', 'hi again');
    const { code, stderr } = await home.run(['channel', 'unlink', 'tg', String(fake.id('alice'))]);
    assert.equal(code, 0, stderr);
    assert.equal(count(home, 'channel_outbox', 'state<3'), 0, 'what waited is given up');
    const before = line.seen('alice').length;
    const [thread] = await conversations(home.server);
    await talk(t, home.server, { threadId: thread.threadId, messages: [user('private words')] });
    await line.ask('bob', 'hi', HELLO);
    assert.deepEqual(texts(line.seen('alice').slice(before)), []);
  });

  test('without a login, who is let in by name is the person at the page; others are not heard', async (t) => {
    const { home, line } = await startOne(t, 'weixin', { allow: ', allow: ["alice@im.wechat"]' });
    await line.say('bob', 'hi');
    await line.ask('alice', 'hi', HELLO);
    const [thread, ...more] = await conversations(home.server);
    assert.deepEqual([thread?.title, more, line.seen('bob')], ['hi', [], []]);
    const asked = await line.ask('alice', 'choose one', /How long\?/);
    const [open] = (await get(home.server, '/interactions')).json().interactions;
    assert.equal((await postJson(home.server, `${AGENT}/interactions/${open.interactionId}/answer`, { choices: ['c1'] })).status, 200);
    await line.waitForSend('alice', /^You answered through the API: 30 minutes/, { from: line.seen('alice').indexOf(asked) + 1 });
  });

  test('a user whose last key is revoked is nobody in their chats, too', async (t) => {
    const { home, line } = await startOne(t, 'telegram');
    const made = async () => {
      const { code, stdout, stderr } = await home.run(['key', 'add', '--user', 'zoe']);
      assert.equal(code, 0, stderr);
      return stdout.trim().split('_')[1];
    };
    const revoke = async (id) => assert.equal((await home.run(['key', 'revoke', id])).code, 0);
    await line.link(home, 'alice', 'zoe');
    await line.link(home, 'bob', 'max');
    await line.ask('alice', 'hi', HELLO);
    const keys = [await made(), await made()];
    await revoke(keys[0]);
    assert.equal(count(home, 'channel_peers', "user='zoe'"), 1, 'one is left');
    await delay(home, line, 'alice', 'hi again');
    const { stdout: code } = await home.run(['channel', 'link', 'tg', '--user', 'zoe']);
    await revoke(keys[1]);
    assert.deepEqual([count(home, 'channel_peers', "user='zoe'"), count(home, 'channel_peers', "user='max'")], [0, 1]);
    assert.equal(count(home, 'channel_outbox', 'state<3'), 0, 'what waited is given up');
    const before = line.seen('alice').length;
    await line.ask('alice', `/link ${code.trim()}`, /not|wrong/i);
    assert.equal(count(home, 'channel_peers', "user='zoe'"), 0);
    await line.ask('alice', 'hi', HELLO);
    assert.equal(line.seen('alice').length, before + 2);
  });

  test('linked to another user, they leave nothing open behind them, and are heard', async (t) => {
    const { home, line } = await startOne(t, 'telegram');
    await line.link(home, 'alice', 'local');
    await line.ask('alice', 'open', /What about/);
    await line.ask('alice', '/link 00000000', /wrong or has expired/);
    assert.equal((await inbox(home.server)).interactions.length, 1, 'a code that is none changes nothing');
    await line.link(home, 'alice', 'zoe');
    assert.equal((await inbox(home.server)).interactions.length, 0, 'what was open is over, as with /new');
    const before = line.seen('alice').length;
    for (let i = 0; i < 3; i++) await line.ask('alice', 'hi', HELLO);
    assert.deepEqual(texts(line.seen('alice').slice(before)), Array(3).fill('Hello.'));
  });

  test('another kind under the same name knows nobody of the old one', async (t) => {
    const { home, line, fake } = await startOne(t, 'telegram');
    await line.link(home, 'alice', 'local');
    await delay(home, line, 'alice', 'hi');
    await home.stop();
    const bridge = await startBridge();
    t.after(() => bridge.close());
    await writeFile(join(home.data, 'secret'), bridge.secret, { mode: 0o600 });
    await writeFile(home.env.FERMATA_CONFIG, `channels:\n  tg: {kind: webhook, url: "${bridge.url}", secret_file: "${home.data}/secret", allow: ["somebody"]}\n`);
    const { host, port } = await home.start();
    bridge.hook = `http://${host}:${port}${AGENT}/channels/tg/webhook`;
    await bridge.say(String(fake.id('alice')), 'hi');
    await bridge.say('somebody', 'hi');
    await bridge.waitForSend('Hello.');
    await settled(home);
    assert.deepEqual(bridge.sends.map(({ to }) => to), ['somebody']);
    assert.equal(count(home, 'channel_peers', "user<>'' AND sender<>'somebody'"), 0);
  });

  test('strangers: no code, no word; and who guesses is not heard any more', async (t) => {
    const fake = await startTelegram({ holdMs: 1000 });
    t.after(() => fake.close());
    const row = (folder) => [`tg: {kind: telegram, base_url: "${fake.url}", token_file: "${folder}/tg.token", allow: ["1"]}`];
    const home = await startChannels(t, row, { files: { 'tg.token': fake.token } });
    for (let i = 0; i < 40; i++) fake.say(`s${i}`, `/link ${10000000 + i}`);
    await fake.waitUntilRead();
    assert.equal(count(home, 'channel_peers') + count(home, 'channel_inbox') + count(home, 'channel_outbox'), 0);
    assert.deepEqual(fake.sends, []);
    const code = await linkCode(home, 'tg', 'local');
    const wrong = String((Number(code) + 1) % 1e8).padStart(8, '0');
    for (const typed of [...Array(5).fill(wrong), code]) {
      const from = fake.sends.length;
      fake.say('mallory', `/link ${typed}`);
      await fake.waitForSend(/wrong or has expired/, { from });
    }
    fake.say('alice', `/link ${code}`);
    assert.equal((await fake.waitForSend(/belongs to local/)).chat, fake.id('alice'), 'it is still good');
    assert.deepEqual(rows(home, "SELECT sender FROM channel_peers WHERE user<>''"), [{ sender: String(fake.id('alice')) }]);
  });
});

describe('what may be done', () => {
  test('nothing is approved or linked by what was said in a group, whatever is said in private meanwhile', async (t) => {
    const { home, line, fake } = await startOne(t, 'webhook');
    const asked = await line.ask('alice', 'book it', CODE);
    const word = `approve ${CODE.exec(asked.text)[1]}`;
    for (let i = 0; i < 3; i++) await Promise.all([fake.say('alice', word, { group: true }), fake.say('alice', '/help')]);
    await settled(home);
    assert.equal(booked(home), 0);
    assert.equal(count(home, 'interactions', 'status=0'), 1, 'it is still open');
    const code = await linkCode(home, 'own', 'local');
    await Promise.all([fake.say('alice', `/link ${code}`, { group: true }), fake.say('alice', '/help')]);
    await line.waitForSend('alice', /not in a group/);
    await settled(home);
    assert.equal(count(home, 'channel_peers', "user<>''"), 0);
    await line.ask('alice', word, /Done\.$/); // in private it is what it says
    assert.equal(booked(home), 1);
  });

  test('/new cancels what waits for an approval, and its code is dead', async (t) => {
    const { home, line } = await startOne(t, 'telegram');
    await line.link(home, 'alice', 'local');
    const asked = await line.ask('alice', 'book it', CODE);
    await line.ask('alice', '/new', /new conversation/);
    assert.equal((await inbox(home.server)).interactions.length, 0);
    await line.ask('alice', `approve ${CODE.exec(asked.text)[1]}`, /Nothing waits for this code/);
    await line.ask('alice', 'hi', HELLO);
    assert.equal(booked(home), 0);
  });

  test('a line of an account\'s own menu is not the person\'s words: it settles nothing', async (t) => {
    const { home, line, fake } = await startOne(t, 'wechat_oa');
    await line.link(home, 'alice', 'local');
    const asked = await line.ask('alice', 'book it please', CODE);
    await fake.event('alice', 'CLICK', { EventKey: 'where are you' });
    await line.waitForSend('alice', /^Got it\./);
    assert.equal((await inbox(home.server)).interactions.length, 1);
    await line.ask('alice', `approve ${CODE.exec(asked.text)[1]}`, /Done\.$/);
    await line.waitForSend('alice', HELLO); // what the line says to the agent
    assert.equal(booked(home), 1);
  });

  test('a choice that is none: what is wrong, and the question again', async (t) => {
    const { home, line } = await startOne(t, 'webhook');
    await line.link(home, 'alice', 'local');
    await line.ask('alice', 'strict please', /Which room/);
    const from = line.seen('alice').length;
    await line.say('alice', '7');
    const again = await line.waitForSend('alice', /from 1 to 2[^]*Which room\?[^]*1\. Red/, { from });
    const { interactions: [open] } = await inbox(home.server);
    assert.deepEqual([again.class, again.interactionId], ['question', open.interactionId]);
    await line.ask('alice', '2', /^Done\.$/);
  });

  test('an answer may bring a file', async (t) => {
    const { home, line, fake } = await startOne(t, 'telegram');
    await line.link(home, 'alice', 'local');
    await line.ask('alice', 'open', /What about/);
    fake.say('alice', 'this contract', { document: FILE });
    await line.waitForSend('alice', /^Done\.$/);
    const messages = await said(home);
    assert.equal(messages.find(({ role }) => role === 'tool').content, 'this contract');
    assert.match(JSON.stringify(messages.filter(({ role }) => role === 'user')), /contract\.txt/);
    assert.equal(fake.downloads.length, 1);
  });

  test('a question passes a long text, and words before it is shown answer nothing', async (t) => {
    const text = Array.from({ length: 400 }, (_, i) => `Paragraph ${i} of a long answer.`).join('\n\n');
    const { home, line, fake } = await startOne(t, 'wechat_oa', { lines: [
      { match: '^long', turns: [{ text, calls: [{ name: 'ask_user', args: { question: 'Delete the backups?' } }] }, { text: 'Then so.' }] },
      { turns: [{ text: 'Hello.' }] },
    ] });
    await line.ask('alice', 'long', /Delete the backups\?/);
    assert.equal(line.seen('alice').length, 5, 'the last that the platform takes');
    await line.link(home, 'bob', 'local');
    fake.failNext('send', { errcode: 45047 }); // it takes nothing more
    await line.say('bob', 'long');
    await waitFor('the question is open', async () => (await inbox(home.server)).interactions.length === 1);
    await waitFor('it is refused', () => count(home, 'channel_outbox', "state=2 AND peer=(SELECT id FROM channel_peers WHERE user='local')"));
    assert.ok(!texts(line.seen('bob')).some((sent) => /Delete/.test(sent)), 'it is not shown yet');
    await line.ask('bob', 'yes please go on', /Delete the backups\?/);
    await waitFor('it is heard', () => !count(home, 'channel_inbox', 'state<2'));
    assert.equal((await inbox(home.server)).interactions.length, 1, 'and not answered');
    await line.say('bob', 'no');
    const tool = await waitFor('the answer', async () => (await said(home)).find(({ role }) => role === 'tool'));
    assert.equal(tool.content, 'no');
  });
});

describe('calls of WeChat', () => {
  test('a query is good once: another body behind it does nothing, and what was not stored comes again', async (t) => {
    const oa = await startOa({ mode: 'plain' });
    t.after(() => oa.close());
    const row = (folder) => [`oa: {kind: wechat_oa, base_url: "${oa.url}", app_id: ${oa.appId}, token_file: "${folder}/t", secret_file: "${folder}/s", allow: ["*"]}`];
    const home = await startChannels(t, row, { files: { t: oa.token, s: oa.secret } });
    oa.hook = `http://${home.server.host}:${home.server.port}${AGENT}/channels/oa/webhook`;
    const body = (who, id, text) => xml({ ToUserName: 'gh', FromUserName: oa.id(who), CreateTime: Math.floor(Date.now() / 1000), MsgType: 'text', Content: text, MsgId: id });
    const { query, body: first } = oa.signed(body('alice', 1, 'hi'));
    const inboxed = () => rows(home, 'SELECT id FROM channel_inbox ORDER BY n').map(({ id }) => id);
    assert.equal((await oa.post({ query, body: '<xml/>' })).status, 400, 'not taken, so the query is still good');
    for (const sent of [first, body('bob', 2, 'hi'), first]) {
      const answered = await oa.post({ query, body: sent });
      assert.deepEqual([answered.status, answered.body], [200, 'success']);
    }
    assert.deepEqual(inboxed(), ['1']);
    assert.equal((await oa.post(oa.signed(body('bob', 3, 'hi'), { nonce: query.get('nonce'), timestamp: query.get('timestamp') - 1 }))).status, 200);
    assert.deepEqual(inboxed(), ['1', '3'], 'the nonce of another second is another call');
    const old = Math.floor(Date.now() / 1000) - 360;
    assert.equal((await oa.post(oa.signed(body('bob', 4, 'hi'), { timestamp: old }))).status, 403);
    const asks = oa.signed('', { timestamp: old }).query;
    asks.set('echostr', '77');
    assert.deepEqual([(await oa.get(asks)).status, (await oa.get(asks)).body], [200, '77'], 'that may be of any age');
    assert.equal((await oa.post(oa.signed(`<xml><FromUserName>a</FromUserName>${body('bob', 5, 'hi').slice(5)}`))).status, 400, 'an element twice');
  });
});

describe('trouble', () => {
  test('a clock that stepped back does not stop the polls', async (t) => {
    const { home, line } = await startOne(t, 'telegram');
    await line.ask('alice', 'hi', HELLO);
    await home.stop();
    execute(home, `UPDATE leases SET until=${Date.now() + 3600_000} WHERE name LIKE 'channel:%'`);
    assert.equal(count(home, 'leases', "name='channel:tg'"), 1);
    await home.start();
    await line.ask('alice', 'hi again', HELLO);
    await channelState(home.server, 'tg', 'online');
  });

  for (const status of [404, 401]) {
    test(`a ${status} of a proxy is no word about the token`, async (t) => {
      const { home, line, fake } = await startOne(t, 'telegram');
      await line.ask('alice', 'hi', HELLO);
      fake.failNext('getUpdates', { status, body: '<html>no backend' });
      await waitFor('it has happened', () => !fake.failures());
      await line.ask('alice', 'hi again', HELLO);
      await channelState(home.server, 'tg', 'online');
      assert.doesNotMatch(home.server.stderr(), /needs_login/);
    });
  }

  test('a real 401 asks for a login', async (t) => {
    const { home, fake } = await startOne(t, 'telegram');
    fake.failNext('getUpdates', { code: 401, description: 'Unauthorized' });
    assert.match((await channelState(home.server, 'tg', 'needs_login')).detail, /the token is wrong/);
  });

  test('a send that is told to sign in stays, and leaves once polls say that all is well', async (t) => {
    const { home, line, fake } = await startOne(t, 'weixin');
    const first = await line.say('alice', 'hi');
    await line.waitForSend('alice', HELLO);
    fake.holdMs = 20_000; // the next poll ends when something comes
    fake.failNext('sendmessage', { ret: -14, errcode: -14, errmsg: 'session timeout' });
    await line.say('alice', 'hi');
    await channelState(home.server, 'wx', 'needs_login');
    assert.equal(count(home, 'channel_outbox', 'state=0'), 1, 'it is kept, for a minute later');
    execFileSync('sqlite3', ['-cmd', '.timeout 5000', join(home.data, 'fermata.db'), 'UPDATE channel_outbox SET next=0 WHERE state=0']);
    fake.repeat(first.id); // nothing new, but a poll that went well
    await line.waitForSend('alice', HELLO, { from: 1 });
    await channelState(home.server, 'wx', 'online');
    await line.ask('bob', 'hi', HELLO);
  });

  test('a crash before a message was finished, and its file is gone: one run, and its answer', async (t) => {
    const { home, line, fake } = await startOne(t, 'telegram');
    await line.link(home, 'alice', 'local');
    fake.say('alice', 'look', { document: FILE });
    await line.waitForSend('alice', HELLO);
    await settled(home);
    await home.stop();
    execute(home, `UPDATE channel_inbox SET state=1 WHERE n=(SELECT max(n) FROM channel_inbox);
      UPDATE channel_peers SET thread=NULL, cursor=0; DELETE FROM channel_outbox;`);
    const from = line.seen('alice').length;
    fake.failNext('getFile', { code: 400, description: 'Bad Request: file is too old' }, 5);
    await home.start();
    await line.waitForSend('alice', HELLO, { from });
    await settled(home);
    assert.equal(count(home, 'runs'), 1);
    assert.equal((await said(home)).filter(({ role }) => role === 'user').length, 1);
  });

  test('files that do not come keep nobody else waiting', async (t) => {
    const { line, fake } = await startOne(t, 'telegram');
    fake.failNext('file', 'hang', 16);
    for (let i = 0; i < 16; i++) fake.say(`m${i}`, 'look', { document: FILE });
    await waitFor('all of them hang', () => !fake.failures());
    await line.ask('alice', 'hi', HELLO);
    assert.deepEqual(texts(fake.sends), ['Hello.'], 'and they still do');
  });

  test('who writes more than there is room for loses nothing, and stands in nobody\'s way', async (t) => {
    const { home, line, fake } = await startOne(t, 'weixin');
    const words = Array.from({ length: 120 }, (_, i) => ['alice', `m${i}`]);
    fake.sayAll([...words, ['bob', 'hi']]); // one poll
    await line.waitForSend('bob', HELLO);
    const of = "SELECT json_extract(body, '$.text') AS text FROM channel_inbox WHERE json_extract(body, '$.sender') LIKE 'alice%' ORDER BY n";
    await waitFor('all of it is taken', () => rows(home, of).length >= words.length, 180_000);
    await fake.waitUntilRead({ timeoutMs: 180_000 });
    assert.deepEqual(rows(home, of).map(({ text }) => text), words.map(([, text]) => text), 'once, in order');
    assert.match(home.server.stderr(), /channel\.full/);
    assert.doesNotMatch(home.server.stderr(), /channel\.not_allowed/);
  });

  for (const kind of ['webhook', 'wechat_oa']) {
    test(`a call of ${kind} that finds no room is not taken, and is when it comes again`, async (t) => {
      const { home, line, fake } = await startOne(t, kind);
      fake.calls = 1;
      await line.ask('alice', 'hi', HELLO);
      await settled(home);
      const sql = (text) => execFileSync('sqlite3', ['-cmd', '.timeout 5000', join(home.data, 'fermata.db'), text]);
      sql(`WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM c WHERE i<50) INSERT INTO channel_inbox
        (peer, state, attempts, created, channel, id, decision, body) SELECT peer, 1, 0, created, channel, 'full-'||i, '{"do":"nothing"}', body
        FROM channel_inbox, c WHERE n=1`);
      const said = await line.say('alice', 'hi again');
      assert.equal(said.answers?.at(-1).status ?? said.status, 429);
      await line.ask('bob', 'hi', HELLO);
      sql("UPDATE channel_inbox SET state=2 WHERE id LIKE 'full-%'");
      await line.again(said);
      await line.waitForSend('alice', HELLO, { from: 1 });
    });
  }

  test('a platform that gives the same again and again is asked less and less', async (t) => {
    const polls = [];
    const message = { message_id: 77, from_user_id: 'alice@im.wechat', message_type: 1, context_token: 't', item_list: [{ type: 1, text_item: { text: 'hi' } }] };
    const server = createServer((request, response) => {
      request.resume().on('end', () => {
        const asks = request.url.includes('getupdates');
        if (asks) polls.push(performance.now());
        response.writeHead(200, { 'content-type': 'application/json' }).end(asks ? JSON.stringify({ ret: 0, msgs: [message] }) : '{}');
      });
    });
    await new Promise((done) => { server.listen(0, '127.0.0.1', done); });
    t.after(() => { server.closeAllConnections(); server.close(); });
    const row = (folder) => [`wx: {kind: weixin, base_url: "http://127.0.0.1:${server.address().port}", token_file: "${folder}/wx.token", allow: ["*"]}`];
    await startChannels(t, row, { files: { 'wx.token': 'token' } });
    await waitFor('five polls', () => polls.length >= 5, 60_000);
    const waits = polls.slice(2, 5).map((at, i) => at - polls[i + 1]); // behind the first, which brings it
    assert.ok(waits[0] > 900 && waits[1] > 1900 && waits[2] > 4900, `waited ${waits}`);
  });

  test('weixin with a token and no list: anybody may write, and `check` says so', async (t) => {
    const { home, line } = await startOne(t, 'weixin', { allow: '' });
    await line.ask('alice', 'hi', HELLO);
    const { stdout } = await home.run(['check']);
    assert.match(stdout, /^remark +wx: anybody may write to it, .*set allow /m);
  });

  test('a call that does not fit whole has no code, and says where the page is', async (t) => {
    const long = { name: 'calendar_write', args: {
      title: 'Review', start_time: '2030-01-01T10:00:00Z', end_time: '2030-01-01T11:00:00Z', attendees: Array.from({ length: 50 }, (_, i) => `${i} `.padEnd(190, 'x')),
    } };
    const { home, line } = await startOne(t, 'weixin', { lines: [{ match: '^long', turns: [{ calls: [long] }, { text: 'Done.' }] }] });
    await line.link(home, 'alice', 'local');
    const { text } = await line.ask('alice', 'long one', /only on the page/);
    assert.ok(text.includes(`only on the page: http://${home.server.host}:${home.server.port}/`), text.slice(-300));
    assert.doesNotMatch(text, CODE);
    await line.ask('alice', 'approve', /only on the page/);
    await line.ask('alice', 'approve 000000', /only on the page/);
    assert.equal(count(home, 'channel_codes'), 0, 'there is nothing to try');
  });

  test('a new login: the tokens of the one before are not used', async (t) => {
    const { home, line, fake } = await startOne(t, 'weixin');
    await line.ask('alice', 'hi', HELLO);
    assert.equal(count(home, 'channel_peers', "reply_token<>''"), 1);
    fake.script(['confirmed']);
    await waitFor('somebody signs in', async () => (await login(home.server, 'wx')).json().state === 'done');
    assert.equal(count(home, 'channel_peers', "reply_token<>''"), 0);
    await line.ask('alice', 'hi', HELLO);
  });

  test('a bridge that is not found for a moment is told later', async (t) => {
    const { home, line, fake } = await startOne(t, 'webhook');
    fake.failNext(404);
    const asked = await line.ask('alice', 'book it', CODE);
    assert.equal(asked.class, 'question');
    await channelState(home.server, 'own', 'online');
  });
});

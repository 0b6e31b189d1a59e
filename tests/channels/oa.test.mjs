// SPDX-License-Identifier: Apache-2.0
//
// The local Official Account keeps the rules of the real one; what is tested against it can be trusted that far.

import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { test } from 'node:test';

import { encrypt, sign, startOa, xml } from './oa.mjs';

async function withOa(t, options = {}) {
  const oa = await startOa(options);
  t.after(() => oa.close());
  return oa;
}

const post = async (oa, path, body) => (await fetch(`${oa.url}/cgi-bin/${path}`, { method: 'POST', body: JSON.stringify(body) })).json();
const ask = (oa, more = {}) => post(oa, 'stable_token', { grant_type: 'client_credential', appid: oa.appId, secret: oa.secret, ...more });
const send = (oa, token, who, content) => post(oa, `message/custom/send?access_token=${token}`, { touser: oa.id(who), msgtype: 'text', text: { content } });

// An account that answers with the rows of its plan, then with success.
async function startAccount(t, oa, plan = []) {
  const seen = [];
  const server = createServer((request, response) => {
    const pieces = [];
    request.on('data', (piece) => pieces.push(piece)).on('end', () => {
      seen.push({ query: new URL(request.url, 'http://a').searchParams, body: Buffer.concat(pieces).toString() });
      const { status = 200, body = 'success', hang = false } = plan.shift() ?? {};
      if (!hang) response.writeHead(status).end(body);
    });
  });
  await new Promise((done) => { server.listen(0, '127.0.0.1', done); });
  t.after(() => { server.closeAllConnections(); server.close(); });
  oa.hook = `http://127.0.0.1:${server.address().port}/webhook`;
  return seen;
}

test('signatures and encryption are those of the platform', () => {
  assert.equal(sign('AAAAA', '1714037059', '486452656'), '899cf89e464efb63f54ddac96b0a0a235f53aa78');
  assert.equal(sign('AAAAA', '1714036504', '1514711492'), 'f464b24fc39322e44b38aa78f5edd27bd1441696');
  const sealed = encrypt('abcdefghijklmnopqrstuvwxyz0123456789ABCDEFG', 'wx0123456789abcdef',
    '<xml><Content><![CDATA[2]]></Content></xml>', 'aaaabbbbccccdddd');
  assert.equal(sealed, 'jn1L23DB+6ELqJ+6bruv23oF+0kQ6whaYewHWsCpUtmmT3Qdpv0JStZgu+Nf6xrcpK2KkTc5C7bfPQS0TvlwtKmlw3+uRe4RBpOqboUNENJFDKRaRb9yttGy6SsjdnXd');
  assert.equal(sign('AAAAA', '1714037059', '486452656', sealed), '9a509af5364287c739cb998c809b30e2e2305b2a');
  assert.equal(xml({ A: 1, B: 'a]]>b', C: { D: 'e' } }), '<xml><A>1</A><B><![CDATA[a]]]]><![CDATA[>b]]></B><C><D><![CDATA[e]]></D></C></xml>');
});

test('one access token for all who ask, until five minutes before its end', async (t) => {
  const oa = await withOa(t);
  const first = await ask(oa);
  assert.equal(first.expires_in, 7200);
  assert.equal((await ask(oa)).access_token, first.access_token);
  assert.equal((await ask(oa, { secret: 'x' })).errcode, 40125);
  assert.equal((await ask(oa, { appid: 'x' })).errcode, 40013);
  oa.advance(7200_000 - 299_000);
  const second = await ask(oa);
  assert.notEqual(second.access_token, first.access_token);
  assert.equal((await send(oa, first.access_token, 'alice', 'hi')).errcode, 40003, 'the old one still is good');
  oa.advance(299_000);
  assert.equal((await send(oa, first.access_token, 'alice', 'hi')).errcode, 42001);
  oa.dropTokens();
  assert.equal((await send(oa, second.access_token, 'alice', 'hi')).errcode, 40001);
});

test('five messages for each of theirs within 48 hours; three within a minute of an event', async (t) => {
  const oa = await withOa(t);
  await startAccount(t, oa);
  const { access_token: token } = await ask(oa);
  assert.equal((await send(oa, token, 'alice', 'hi')).errcode, 40003);
  await oa.say('alice', 'hello');
  for (let i = 0; i < 5; i++) assert.equal((await send(oa, token, 'alice', `hi ${i}`)).errcode, 0);
  assert.equal((await send(oa, token, 'alice', 'hi')).errcode, 45047);
  await oa.event('alice', 'CLICK', { EventKey: 'k' });
  for (let i = 0; i < 3; i++) assert.equal((await send(oa, token, 'alice', 'hi')).errcode, 0);
  assert.equal((await send(oa, token, 'alice', 'hi')).errcode, 45047);
  await oa.say('alice', 'more');
  assert.equal((await send(oa, token, 'alice', '字'.repeat(683))).errcode, 45002);
  assert.equal((await send(oa, token, 'alice', '字'.repeat(682))).errcode, 0);
  oa.advance(48 * 3600_000);
  const later = await ask(oa);
  assert.equal((await send(oa, later.access_token, 'alice', 'hi')).errcode, 45015);
  assert.equal(oa.sends.length, 9);
  assert.deepEqual(oa.violations, []);
});

test('a call is made three times, the same message signed anew, until it is answered', async (t) => {
  const oa = await withOa(t, { mode: 'safe', callMs: 300 });
  const seen = await startAccount(t, oa, [{ status: 500 }, { hang: true }]);
  const said = await oa.say('alice', 'hello');
  assert.ok(said.taken);
  assert.deepEqual(said.answers.map(({ status }) => status), [500, 0, 200]);
  for (const { query, body } of seen) {
    const sealed = /<Encrypt><!\[CDATA\[(.*?)\]\]>/.exec(body)[1];
    assert.equal(query.get('msg_signature'), sign(oa.token, query.get('timestamp'), query.get('nonce'), sealed));
    assert.doesNotMatch(body, /hello/);
  }
  assert.equal(new Set(seen.map(({ query }) => query.get('nonce'))).size, 3);
  seen.length = 0;
  await oa.repeat(said);
  assert.equal(seen.length, 1);
});

test('menus are for verified accounts; their ids come back, or 0', async (t) => {
  const oa = await withOa(t, { verified: false });
  const seen = await startAccount(t, oa);
  await oa.say('alice', 'hello');
  const { access_token: token } = await ask(oa);
  const menu = () => post(oa, `message/custom/send?access_token=${token}`, {
    touser: oa.id('alice'), msgtype: 'msgmenu', msgmenu: { head_content: 'Which?', list: [{ id: 'c:1:c1', content: 'one' }], tail_content: '' },
  });
  assert.equal((await menu()).errcode, 40200);
  oa.verified = true;
  assert.equal((await menu()).errcode, 0);
  await oa.press('alice', oa.sends[0], 'one');
  oa.menuIds = false;
  await oa.press('alice', oa.sends[0], 'one');
  assert.match(seen[1].body, /<bizmsgmenuid><!\[CDATA\[c:1:c1\]\]>/);
  assert.match(seen[2].body, /<bizmsgmenuid><!\[CDATA\[0\]\]>/);
  assert.throws(() => oa.press('alice', oa.sends[0], 'two'), /no line/);
});

test('files, trouble, and what nobody should send', async (t) => {
  const oa = await withOa(t);
  await startAccount(t, oa);
  const bytes = Buffer.from([0xff, 0xd8, 0, 1]);
  const said = await oa.image('alice', bytes);
  const { access_token: token } = await ask(oa);
  const get = (id) => fetch(`${oa.url}/cgi-bin/media/get?access_token=${token}&media_id=${id}`);
  const file = await get(said.fields.MediaId);
  assert.equal(file.headers.get('content-type'), 'image/jpeg');
  assert.deepEqual(Buffer.from(await file.arrayBuffer()), bytes);
  assert.equal((await (await get('none')).json()).errcode, 40007);
  oa.failNext('send', { errcode: 45009 });
  assert.equal((await send(oa, token, 'alice', 'hi')).errcode, 45009);
  oa.failNext('send', 'cut-after');
  await assert.rejects(send(oa, token, 'alice', 'hi'));
  assert.deepEqual(oa.sends.map(({ answered }) => answered), [false]);
  await send(oa, token, 'alice', '\u0001');
  assert.equal(oa.violations.length, 1);
});

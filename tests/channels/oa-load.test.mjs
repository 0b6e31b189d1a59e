// SPDX-License-Identifier: Apache-2.0
//
// An Official Account under load. WeChat cuts a call after five seconds and makes it twice more, so a call is answered
// when its message is on disk, whatever the agent does: here it takes minutes. What WeChat did not sign is not kept.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';

import { rows } from '../api/asking.mjs';
import { waitFor } from '../api/talk.mjs';
import { startLines } from './kit.mjs';
import { xml } from './oa.mjs';

const PEOPLE = 100;
const CUT_MS = 5000; // WeChat's own
const MINUTES = { match: '^slow', turns: [{ text: 'one two three four five six', chunk: 4, delay_ms: 120_000, gap_ms: 60_000 }] };
const LINES = [MINUTES, { turns: [{ text: 'Hello.' }] }];
const OPEN_RUN = 4; // enum run_status: below it is under way

let home, oa;
const cleanUp = [];
before(async () => {
  const started = await startLines({ after: (fn) => cleanUp.unshift(fn) }, ['wechat_oa'], { lines: LINES });
  home = started.home;
  oa = started.lines.wechat_oa.fake;
});
after(async () => {
  for (const fn of cleanUp) await fn();
});

const count = (sql) => rows(home, `SELECT count(*) AS n FROM ${sql}`)[0].n;
const kept = () => count('channel_inbox');
const known = () => count('channel_peers');
const people = Array.from({ length: PEOPLE }, (_, i) => `person${i}`);

function assertTaken(answers, what) {
  for (const { status, body, ms, why } of answers) {
    assert.deepEqual([status, body], [200, 'success'], `${what}: ${why ?? ''}`);
    assert.ok(ms < CUT_MS, `${what}: ${ms} ms`);
  }
}

describe('a hundred people at once, and an agent that takes minutes', () => {
  const said = [];

  test('each call is answered in time, the first time', async (t) => {
    said.push(...await Promise.all(people.map((who, i) => oa.say(who, `slow ${i}`))));
    for (const { answers } of said) assert.equal(answers.length, 1, 'WeChat did not have to call again');
    assertTaken(said.flatMap(({ answers }) => answers), 'a call');
    assert.equal(kept(), PEOPLE);
    t.diagnostic(`the slowest took ${Math.round(Math.max(...said.map(({ answers: [{ ms }] }) => ms)))} ms`);
  });

  test('the agent is at all of them', async () => {
    await waitFor('a run for each', () => count(`runs WHERE status<${OPEN_RUN}`) === PEOPLE);
    await waitFor('nobody waits to be looked at', () => count('channel_inbox WHERE state<2') === 0);
    assert.deepEqual(oa.sends, [], 'and nothing is said yet');
  });

  test('each is delivered three times more: one message, one run', async () => {
    assertTaken((await Promise.all(said.flatMap((one) => [oa.repeat(one), oa.repeat(one), oa.repeat(one)]))), 'a repeat');
    assert.deepEqual([kept(), known(), count('runs')], [PEOPLE, PEOPLE, PEOPLE]);
    const texts = rows(home, 'SELECT body FROM channel_inbox').map(({ body }) => JSON.parse(body).text).sort();
    assert.deepEqual(texts, people.map((_, i) => `slow ${i}`).sort(), 'what each of them said');
  });

  test('somebody else is answered meanwhile', async () => {
    const { answers } = await oa.say('quick', 'hi');
    assertTaken(answers, 'a call');
    await oa.waitForSend((sent) => sent.to === oa.id('quick') && sent.text === 'Hello.');
  });

  test('a hundred more are answered and kept while those run', async () => {
    const more = await Promise.all(people.map((who) => oa.say(who, 'hello?')));
    assertTaken(more.flatMap(({ answers }) => answers), 'a call');
    assert.equal(kept(), 2 * PEOPLE + 1);
  });

  test('a restart loses none of it', async () => {
    const before = [kept(), known()];
    await home.restart();
    oa.hook = oa.hook.replace(/\/\/[^/]+/, `//${home.server.host}:${home.server.port}`);
    assertTaken(await Promise.all(said.map((one) => oa.repeat(one))), 'a repeat');
    assert.deepEqual([kept(), known()], before);
  });
});

describe('what WeChat did not send', () => {
  const now = () => Math.floor(Date.now() / 1000);
  const message = (id = 1) => xml({ ToUserName: 'gh_x', FromUserName: oa.id('victim'), CreateTime: now(), MsgType: 'text', Content: 'hi', MsgId: id });
  const without = (name, call = oa.signed(message())) => {
    call.query.delete(name);
    return call;
  };
  const changed = (name, value, call = oa.signed(message())) => {
    call.query.set(name, value);
    return call;
  };

  // name: the call
  const forged = {
    'another token': () => oa.signed(message(), { token: 'x' }),
    'no token': () => oa.signed(message(), { token: '' }),
    'another app': () => oa.signed(message(), { appId: 'wx0000000000000000' }),
    'another aes key': () => oa.signed(message(), { aesKey: 'A'.repeat(43) }),
    'not encrypted': () => oa.signed(message(), { mode: 'plain' }),
    'eleven minutes old': () => oa.signed(message(), { timestamp: now() - 660 }),
    'of tomorrow': () => oa.signed(message(), { timestamp: now() + 86_400 }),
    'no time at all': () => oa.signed(message(), { timestamp: 'now' }),
    'another nonce': () => changed('nonce', '1'),
    'another time': () => changed('timestamp', String(now() - 1)),
    'a signature of zeros': () => changed('msg_signature', '0'.repeat(40)),
    'an empty signature': () => changed('msg_signature', ''),
    'a longer signature': () => changed('msg_signature', '0'.repeat(4000)),
    'no signature': () => without('msg_signature'),
    'no nonce': () => without('nonce'),
    'no time': () => without('timestamp'),
    'not said to be encrypted': () => without('encrypt_type'),
    'the signature of another message': () => ({ query: oa.signed(message(2)).query, body: oa.signed(message(1)).body }),
    'one byte of the message changed': () => {
      const { query, body } = oa.signed(message());
      return { query, body: body.replace(/(Encrypt><!\[CDATA\[.{40})(.)/, (_, start, byte) => start + (byte === 'A' ? 'B' : 'A')) };
    },
    'no XML': () => ({ query: oa.signed(message()).query, body: 'x' }),
    'nothing': () => ({ query: new URLSearchParams(), body: '' }),
  };
  for (const [name, make] of Object.entries(forged)) {
    test(`${name}: 403, and not kept`, async () => {
      const before = [kept(), known()];
      const call = make();
      const answers = await Promise.all([oa.post(call), oa.post(call), oa.post(call)]);
      assert.deepEqual(answers.map(({ status, body }) => [status, body]), Array(3).fill([403, '']));
      assert.deepEqual([kept(), known()], before);
    });
  }

  test('a call that was overheard, made again: the message is there once', async () => {
    const before = kept();
    const call = oa.signed(message(99));
    assertTaken(await Promise.all([oa.post(call), oa.post(call), oa.post(call)]), 'a call');
    assertTaken([await oa.post(call)], 'again');
    assert.equal(kept(), before + 1);
  });

  test('a forged question about the address is not echoed', async () => {
    const { query } = oa.signed('', { mode: 'plain', token: 'x' });
    query.set('echostr', 'echo');
    const { status, body } = await oa.get(query);
    assert.deepEqual([status, body], [403, '']);
    await oa.verify();
  });
});

// SPDX-License-Identifier: Apache-2.0
//
// One person on WeChat, on Telegram and at the API: whoever answers first has answered, everybody sees it at once, and
// who came second is told what was decided and by whom. Alice is ann everywhere.

import assert from 'node:assert/strict';
import { after, afterEach, before, describe, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';

import { answer, inbox, interaction, rows, until } from '../api/asking.mjs';
import { bearer } from '../api/home.mjs';
import { history, openEvents, waitFor } from '../api/talk.mjs';
import { KINDS, latch, SEED, startLines } from './kit.mjs';

const QUESTION = /^❓ 会议定在哪天/;
const DONE = /^好的，就这么定。$/;
const BY_API = /^你已通过接口回答：周三/; // the same person, elsewhere
const RACES = 50;
const STEP_MS_MAX = 64;

let home, wx, tg, own, oa, ann;
const cleanUp = [];
before(async () => {
  const started = await startLines({ after: (fn) => cleanUp.unshift(fn) }, KINDS, { lines: SEED });
  home = started.home;
  ({ weixin: wx, telegram: tg, webhook: own, wechat_oa: oa } = started.lines);
  ann = bearer(await home.addKey('ann'));
  for (const line of Object.values(started.lines)) await line.link(home, 'alice', 'ann');
});
after(async () => {
  for (const fn of cleanUp) await fn();
});
afterEach(async () => {
  assert.deepEqual((await inbox(home.server, '', ann)).interactions.map(({ question }) => question), [], 'nothing is left open');
});

const threadOf = (line) => rows(home, `SELECT thread_id AS id FROM channel_peers WHERE channel='${line.name}' AND sender='${line.id(line.fake, 'alice')}'`)[0].id;

// Alice asks there, and is asked: {line, asked, open, threadId}.
async function begin(line, text = '订会议', match = QUESTION) {
  const asked = await line.ask('alice', text, match);
  const threadId = threadOf(line);
  const { interactions: [open] } = await inbox(home.server, `?threadId=${threadId}`, ann);
  return { line, asked, open, threadId };
}

const settled = (id) => interaction(home.server, id, ann);
const answers = async (threadId) => (await history(home.server, threadId, '?limit=200', ann)).messages.filter(({ role }) => role === 'tool').map(({ content }) => content);
const isResolved = (id) => ({ type, data }) => type === 'interaction.resolved' && data.interactionId === id;

describe('answered in WeChat', () => {
  test('it is settled for the inbox and for everybody who follows', async (t) => {
    const { open, threadId } = await begin(wx);
    const followers = await Promise.all([0, 1].map(() => openEvents(t, home.server, threadId, { query: '?after=0', headers: ann })));
    await wx.ask('alice', '2', DONE);
    for (const events of followers) {
      const told = (await events.until(isResolved(open.interactionId))).at(-1).data;
      assert.deepEqual([told.answeredBy, told.via, told.answer.choices], ['ann', 'weixin', ['c2']], JSON.stringify(told));
    }
    const { status, answeredBy, via, answer: given } = await settled(open.interactionId);
    assert.deepEqual([status, answeredBy, via, given.choices], ['resolved', 'ann', 'weixin', ['c2']]);
    assert.deepEqual((await inbox(home.server, '', ann)).interactions, []);
  });

  test('whoever answers elsewhere is told who was first', async () => {
    const { open } = await begin(wx);
    await wx.ask('alice', '1', DONE);
    const late = await answer(home.server, open.interactionId, { choices: ['c3'] }, ann);
    assert.equal(late.status, 409, late.text);
    const { answeredBy, via, answer: given } = late.json().interaction;
    assert.deepEqual([late.json().code, answeredBy, via, given.choices], ['already_resolved', 'ann', 'weixin', ['c1']]);
  });

  test('another of her chats is not where it was asked: its press decides nothing', async () => {
    const { open, threadId } = await begin(wx);
    await tg.ask('alice', 'hi', /Hello/);
    const from = tg.seen('alice').length;
    tg.press('alice', `c:${open.interactionId}:c1`, { under: tg.seen('alice').at(-1) });
    await tg.waitForSend('alice', /Still open|仍在等待/, { from });
    assert.equal((await settled(open.interactionId)).status, 'open');
    await wx.ask('alice', '2', DONE);
    assert.equal((await answers(threadId)).at(-1), '周二');
  });
});

describe('answered by API', () => {
  for (const [name, line] of Object.entries({ weixin: () => wx, telegram: () => tg, webhook: () => own, wechat_oa: () => oa })) {
    test(`${name} is told what was decided, and by whom, before the agent goes on`, async () => {
      const { open, asked } = await begin(line());
      assert.equal((await answer(home.server, open.interactionId, { choices: ['c3'] }, ann)).status, 200);
      await line().waitForSend('alice', DONE, { from: line().seen('alice').indexOf(asked) });
      const texts = line().seen('alice').map(({ text }) => text).slice(-2);
      assert.match(texts[0], BY_API);
      assert.match(texts[1], DONE);
    });
  }

  test('a reply that was written before the notice came is told, and is no message', async () => {
    const { open, threadId } = await begin(wx);
    const from = wx.seen('alice').length;
    const { opened, open: deliver } = latch();
    const heard = () => rows(home, "SELECT count(*) AS n FROM channel_inbox WHERE channel='wx' AND state=2")[0].n;
    const before = heard();
    wx.fake.failNext('sendmessage', { until: opened }); // the notice, on its way
    assert.equal((await answer(home.server, open.interactionId, { choices: ['c3'] }, ann)).status, 200);
    wx.say('alice', '2');
    await waitFor('it is looked at', () => heard() > before);
    deliver();
    await wx.waitForSend('alice', DONE, { from });
    await waitFor('both to be told', () => wx.seen('alice').slice(from).filter(({ text }) => BY_API.test(text)).length === 2);
    const { messages } = await history(home.server, threadId, '?limit=200', ann);
    assert.notEqual(messages.filter(({ role }) => role === 'user').at(-1).content, '2');
    assert.equal((await answers(threadId)).at(-1), '周三');
  });

  test('a button of Telegram that is pressed too late says so', async () => {
    const { open, asked, threadId } = await begin(tg);
    let from = tg.seen('alice').length;
    assert.equal((await answer(home.server, open.interactionId, { choices: ['c3'] }, ann)).status, 200);
    await tg.waitForSend('alice', DONE, { from });
    from = tg.seen('alice').length;
    tg.fake.message(asked.id).buttons = asked.buttons; // as on a phone that has not seen the edit
    const press = tg.fake.press(asked, '1. 周一');
    await tg.waitForSend('alice', BY_API, { from });
    await tg.fake.waitFor('toasts', ({ callback }) => callback === press.callback);
    assert.equal((await answers(threadId)).at(-1), '周三');
  });

  test('what they say next is heard, though the notice found no room', async () => {
    const { open, threadId } = await begin(oa);
    let from = oa.seen('alice').length;
    // A message allows five sends, of which two are kept for the agent: the question, two hints, and what the agent says.
    for (let i = 0; i < 2; i += 1) {
      from = oa.seen('alice').length;
      await oa.press('alice', `c:${open.interactionId}:none`);
      await oa.waitForSend('alice', /没有处理成功/, { from });
    }
    from = oa.seen('alice').length;
    assert.equal((await answer(home.server, open.interactionId, { choices: ['c3'] }, ann)).status, 200);
    await oa.waitForSend('alice', DONE, { from });
    assert.ok(!oa.seen('alice').slice(from).some(({ text }) => BY_API.test(text)), 'no room for the notice');
    await oa.ask('alice', 'and now?', /Hello/);
    const { messages } = await history(home.server, threadId, '?limit=200', ann);
    assert.equal(messages.filter(({ role }) => role === 'user').at(-1).content, 'and now?');
  });
});

test('a new conversation: the old one is stopped, its question withdrawn, and what they say is heard', async () => {
  const { open } = await begin(wx);
  await wx.ask('alice', '/new', /新的对话|new conversation/);
  assert.equal((await answer(home.server, open.interactionId, { choices: ['c3'] }, ann)).status, 409);
  await until(home.server, open.threadId, 'cancelled', ann);
  await wx.ask('alice', 'hi', /Hello/);
});

describe('at the same moment', () => {
  test(`${RACES} times: one wins, the other is told, and the agent hears one answer`, async (t) => {
    const wins = { api: 0, weixin: 0 };
    let heard = 0; // replies that came behind the notice, and are messages
    let headStart = 10; // of WeChat, in ms; moved towards the tie, and beyond
    let step = 1, winner; // a longer one each time that the same wins again: on a slow machine the tie is far away
    for (let i = 0; i < RACES; i += 1) {
      await wx.ask('alice', '/new', /新的对话|new conversation/);
      const { open, threadId } = await begin(wx);
      const from = wx.seen('alice').length;
      const first = (what, ms) => pause(Math.max(0, ms)).then(what);
      const [answered] = await Promise.all([
        first(() => answer(home.server, open.interactionId, { choices: ['c3'] }, ann), headStart), first(() => wx.say('alice', '2'), -headStart),
      ]);
      await wx.waitForSend('alice', DONE, { from });
      const { via, answer: given, answeredBy } = await settled(open.interactionId);
      const byApi = via === 'api';
      wins[via] += 1;
      step = via === winner ? Math.min(2 * step, STEP_MS_MAX) : 1;
      winner = via;
      headStart += byApi ? step : -step;
      assert.deepEqual([answeredBy, given.choices], ['ann', [byApi ? 'c3' : 'c2']]);
      if (byApi) await wx.waitForSend('alice', BY_API, { from });
      assert.equal(answered.status, byApi ? 200 : 409, answered.text);
      if (!byApi) assert.deepEqual([answered.json().interaction.via, answered.json().interaction.answer.choices], ['weixin', ['c2']]);
      await waitFor('the reply to be looked at', () => rows(home, "SELECT count(*) AS n FROM channel_inbox WHERE channel='wx' AND state<2")[0].n === 0);
      await until(home.server, threadId, 'completed', ann);
      const { messages } = await history(home.server, threadId, '?limit=200', ann);
      const said = messages.filter(({ role }) => role === 'user').map(({ content }) => content);
      assert.deepEqual(messages.filter(({ role }) => role === 'tool').map(({ content }) => content), [byApi ? '周三' : '周二'], 'one answer');
      heard += byApi && said.length > 1;
      assert.deepEqual(said, byApi && said.length === 1 ? ['订会议'] : ['订会议', '2']);
    }
    t.diagnostic(`the API won ${wins.api}, WeChat ${wins.weixin}; ${heard} replies came behind the notice; head start ${headStart} ms`);
    assert.ok(wins.api > 0 && wins.weixin > 0 && wins.api + wins.weixin === RACES, JSON.stringify(wins));
  });
});

test('the trail is whole, and the platforms saw nothing that they forbid', async () => {
  const { code, stdout } = await home.run(['check', '--audit']);
  assert.deepEqual([code, stdout.match(/intact/)?.[0]], [0, 'intact'], stdout);
  for (const { name, fake } of [wx, tg, own, oa]) assert.deepEqual(fake.violations, [], name);
});

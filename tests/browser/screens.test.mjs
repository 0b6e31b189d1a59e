// SPDX-License-Identifier: Apache-2.0
//
// The main states of the page as pictures in build/screens, to be looked at, in both languages, light and dark, on a desk
// and on a phone. On each of them no serious barrier, and nothing wider than the window.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { axe, LOOKS, newPage, openBrowser, screen, startScripted, until } from './kit.mjs';

const BOOKED = { title: '季度评审 Quarterly review', start_time: '2030-01-31T15:00:00+08:00', end_time: '2030-01-31T16:00:00+08:00', location: '3 号会议室' };
const WORDS = {
  en: {
    all: 'Show everything', ask: 'What tone shall the description have?', choices: ['Plain and professional', 'Lively and funny', 'Noble'], done: 'All right.',
    rich: '### Three things\n\n1. **Clear** words, `code`, and [links](https://example.org/)\n2. A table:\n\n| Day | Guests |\n|---|---:|\n| Monday | 12 |\n| Tuesday | 7 |\n\n```js\nconst wait = (ms) => new Promise((go) => setTimeout(go, ms)); // as long as it takes\n```\n',
  },
  'zh-CN': {
    all: '把所有东西都给我看看', ask: '你想要什么风格的商品描述？', choices: ['简洁专业', '活泼有趣', '高端奢华'], done: '好的。',
    rich: '### 三件事\n\n1. **清楚：**文字、`代码`和[链接](https://example.org/)\n2. 表格：\n\n| 日期 | 人数 |\n|---|---:|\n| 周一 | 12 |\n| 周二 | 7 |\n\n```js\nconst wait = (ms) => new Promise((go) => setTimeout(go, ms)); // 要多久等多久\n```\n',
  },
};
const card = { name: 'show_card', args: { version: '2.1', intent: 'data', status: 'success', title: '航班 CA1234', icon: 'plane', items: [{ key: '出发 From', value: '北京 PEK 08:30' }, { key: '到达 To', value: '上海 SHA 10:45' }, { key: '座位 Seat', value: '12A' }, { key: '订单 Order', value: 'ORD-20300131-77', copyable: true }], actions: [{ label: '值机 Check in', action: { type: 'event', event: 'checkin' } }, { label: '官网 Site', style: 'secondary', action: { type: 'url', url: 'https://example.org/' } }] } };

const LINES = Object.values(WORDS).flatMap(({ all, ask, choices, rich, done }) => [
  { match: `^${all}$`, turns: [
    { reasoning: rich, text: rich, calls: [card, { name: 'calendar_read', args: { from: '2030-01-31T00:00:00+08:00', to: '2030-02-01T00:00:00+08:00' } }, { name: 'calendar_delete', args: { id: 'evt_none' } }, { name: 'ask_user', args: { question: ask, choices } }] },
    { calls: [{ name: 'ask_user', args: { question: ask, choices: choices.map((label) => ({ label, description: label })) } }, { name: 'calendar_write', args: BOOKED }] },
    { text: done }] },
]);

let server, chromium;
before(async () => {
  server = await startScripted(LINES);
  chromium = await openBrowser();
});
after(async () => {
  await chromium?.close();
  await server?.stop();
});

async function fits(page, name) {
  await screen(page, name);
  assert.deepEqual(await axe(page), [], name);
  assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `${name} is wider than its window`);
}

const answerAll = async (threadId, type, body) => {
  const open = await until('something to be asked', async () => {
    const { interactions } = await (await fetch(`${server.url}/api/v1/agent/interactions?threadId=${threadId}`)).json();
    const list = interactions.filter((one) => one.type === type);
    return list.length && list;
  });
  for (const { interactionId } of open) {
    const answer = await fetch(`${server.url}/api/v1/agent/interactions/${interactionId}/answer`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) });
    assert.equal(answer.status, 200, await answer.text());
  }
};

for (const { locale, scheme, width } of LOOKS) {
  const name = `${locale}-${scheme}-${width}`;
  test(`every kind of card, ${name}`, async (t) => {
    const { page, done } = await newPage(chromium.browser, { url: `${server.url}/`, locale, scheme, width, height: 844, touch: width < 600 });
    t.after(done);
    await page.getByTestId('composer').waitFor();
    await fits(page, `greeting-${name}`);
    await page.getByTestId('composer').fill(WORDS[locale].all);
    await page.getByTestId('send').click();
    const threadId = await until('its address', async () => /#\/t\/([^/]+)/.exec(page.url())?.[1]);
    const plans = page.getByTestId('confirm-card').filter({ has: page.locator('[data-plan]') });
    assert.equal(await plans.count(), 0);
    await page.getByTestId('ask-card').waitFor();
    await fits(page, `asked-${name}`);
    await answerAll(threadId, 'confirm', { decision: 'reject', comment: '请换个时间 another time' });
    await answerAll(threadId, 'ask_user', { choices: ['c2'] });
    await until('both cards', async () => await page.getByTestId('ask-card').count() === 2 && await page.getByTestId('confirm-card').count() === 2);
    await page.locator('.hljs, .md pre').first().waitFor();
    await fits(page, `open-${name}`);
    await page.getByTestId('turn').last().evaluate((turn) => turn.scrollIntoView());
    await fits(page, `turn-${name}`);
    await answerAll(threadId, 'confirm', { decision: 'edit', args: { ...BOOKED, title: '改过的标题 Changed' } });
    await answerAll(threadId, 'ask_user', { answer: '文艺风 poetic' });
    await page.getByText(WORDS[locale].done, { exact: true }).waitFor();
    await fits(page, `done-${name}`);
    for (const view of ['inbox', 'settings']) {
      await page.evaluate((to) => { location.hash = `#/${to}`; }, view);
      await page.getByTestId('log').waitFor({ state: 'detached' });
      await fits(page, `${view}-${name}`);
    }
  });
}

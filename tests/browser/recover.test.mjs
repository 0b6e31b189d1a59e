// SPDX-License-Identifier: Apache-2.0
//
// The server dies under an open page and comes back: the page goes on by itself, nothing is lost, nothing is there twice.
// And two browsers at one conversation.

import assert from 'node:assert/strict';
import { after, before, beforeEach, afterEach, test } from 'node:test';

import { cuttingProxy, newPage, openBrowser, serialise, startScripted, until } from './kit.mjs';

const LINES = [
  { match: '^slow', turns: [{ text: 'one two three four five six seven eight nine ten. '.repeat(6), chunk: 5, gap_ms: 40 }] },
  { match: '^ask', turns: [{ calls: [{ name: 'ask_user', args: { question: 'How long?', choices: ['30 minutes', '1 hour'] } }] }, { text: 'So be it.' }] },
  { match: '^book', turns: [{ calls: [{ name: 'calendar_write', args: { title: 'Review', start_time: '2030-01-31T15:00:00+08:00', end_time: '2030-01-31T16:00:00+08:00' } }] }, { text: 'Booked.' }] },
  { turns: [{ text: 'Hello.' }] },
];

let server, proxy, chromium;
before(async () => { chromium = await openBrowser(); });
after(async () => { await chromium?.close(); });
beforeEach(async () => {
  server = await startScripted(LINES);
  proxy = await cuttingProxy(server);
});
afterEach(async () => {
  await proxy?.close();
  await server?.stop();
});

async function open(t, path = '/') {
  const page = await newPage(chromium.browser, { url: `${proxy.url}${path}` });
  page.problems.allow(/ERR_|WebSocket|Failed to load resource: net/); // the server is away for a while
  t.after(page.done);
  return page;
}
const say = async (page, words) => {
  await page.getByTestId('composer').fill(words);
  await page.getByTestId('send').click();
};
// Dies at once, and comes back on the same folder.
async function restart() {
  await server.kill9();
  server = await startScripted(LINES, { data: server.data });
  proxy.to(server);
}
const idOf = (page) => until('its address', async () => /#\/t\/([^/]+)/.exec(page.url())?.[1]);
const history = async (id) => (await (await fetch(`${server.url}/api/v1/agent/history?threadId=${id}`)).json()).messages;
const over = (page, n = 1) => until('the end of the run', async () => await page.locator('article[data-kind=agent]').count() === n
  && await page.getByTestId('step-report').last().getAttribute('data-state').catch(() => '') === 'success', 40_000);

// The same as a page that comes now.
async function asHistory(page, context) {
  const fresh = await context.newPage();
  await fresh.goto(page.url());
  await until('what history is', async () => {
    const wanted = await serialise(fresh).catch(() => undefined);
    return wanted !== undefined && wanted.includes('data-testid="turn"') && wanted === await serialise(page);
  }, 20_000);
  await fresh.close();
}

test('killed in the middle of a reply: it is taken up, once', async (t) => {
  const { page, context } = await open(t);
  await say(page, 'slow');
  await page.getByText('three four').first().waitFor();
  await restart();
  await over(page);
  const rows = await history(await idOf(page));
  assert.deepEqual(rows.map(({ role }) => role), ['user', 'assistant']);
  assert.equal(await page.locator('article[data-kind=user]').count(), 1);
  await asHistory(page, context);
});

test('killed while it waits for an answer: the card is still there, and the answer counts', async (t) => {
  const { page, context } = await open(t);
  await say(page, 'ask');
  await page.locator('[data-testid=ask-card][data-state=pending], [data-testid=ask-card][data-state=open]').waitFor();
  await restart();
  await page.getByTestId('ask-card').getByRole('button', { name: /1 hour/ }).click();
  await over(page);
  assert.equal((await history(await idOf(page))).find(({ role }) => role === 'clarify').metadata.answer, '1 hour');
  await asHistory(page, context);
});

test('what is said while the server is away is said once it is back, once', async (t) => {
  const { page, context } = await open(t);
  await say(page, 'hello');
  await over(page);
  await server.kill9();
  await say(page, 'hello again');
  await page.getByTestId('banner').waitFor();
  server = await startScripted(LINES, { data: server.data });
  proxy.to(server);
  await over(page, 2);
  const rows = await history(await idOf(page));
  assert.deepEqual(rows.filter(({ role }) => role === 'user').map(({ content }) => content), ['hello', 'hello again']);
  await asHistory(page, context);
});

test('cut five times at random: the same as without', async (t) => {
  const { page, context } = await open(t);
  await say(page, 'slow');
  for (let n = 1; n <= 5; n++) {
    const before = (await page.getByTestId('log').innerText().catch(() => '')).length;
    await until('more words', async () => (await page.getByTestId('log').innerText()).length > before + Math.random() * 10 || await page.locator('article[data-kind=agent] footer').count());
    proxy.cut();
  }
  await over(page);
  assert.deepEqual((await history(await idOf(page))).map(({ role }) => role), ['user', 'assistant']);
  await asHistory(page, context);
});

test('refused for a while: when the network is back there is no resting', async (t) => {
  const { page } = await open(t);
  await say(page, 'hello');
  await over(page);
  proxy.refuse(true);
  proxy.cut();
  await page.getByTestId('banner').waitFor();
  proxy.refuse(false);
  await page.evaluate(() => window.dispatchEvent(new Event('online')));
  await say(page, 'hello again');
  await over(page, 2);
});

for (const [event, when] of [['online', 'somebody looks'], ['offline', 'the browser says that it is gone']]) {
  test(`a line that is dead without a word is given up when ${when}`, async (t) => {
    const { page } = await open(t);
    await say(page, 'hello');
    await over(page);
    proxy.hold();
    await page.evaluate((name) => window.dispatchEvent(new Event(name)), event);
    await page.getByTestId('banner').waitFor();
    proxy.release();
    await say(page, 'hello again');
    await over(page, 2);
  });
}

test('two browsers: a question answered in one is read-only in the other, whose draft stays', async (t) => {
  const one = await open(t);
  await say(one.page, 'ask');
  await one.page.getByTestId('ask-card').waitFor();
  const two = await open(t, `/#/t/${await idOf(one.page)}`);
  const draft = two.page.getByTestId('ask-card').getByRole('textbox');
  await draft.fill('half a thought');
  await one.page.getByTestId('ask-card').getByRole('button', { name: /30 minutes/ }).click();
  await until('the answer', async () => /30 minutes/.test(await two.page.getByTestId('ask-card').innerText()) && await two.page.getByTestId('ask-card').getByRole('textbox').count() === 0);
  await over(two.page);
  assert.match(await two.page.getByTestId('ask-card').textContent(), /half a thought/);
  await over(one.page);
});

test('two browsers answer at the same time: one answer counts, both show it', async (t) => {
  const one = await open(t);
  await say(one.page, 'ask');
  await one.page.getByTestId('ask-card').waitFor();
  const two = await open(t, `/#/t/${await idOf(one.page)}`);
  two.problems.allow(/409/);
  one.problems.allow(/409/);
  const press = (page, name) => page.getByTestId('ask-card').getByRole('button', { name }).click();
  await two.page.getByTestId('ask-card').waitFor();
  await Promise.all([press(one.page, /30 minutes/), press(two.page, /1 hour/)]);
  await over(one.page);
  await over(two.page);
  const { metadata } = (await history(await idOf(one.page))).find(({ role }) => role === 'clarify');
  for (const { page } of [one, two]) assert.match(await page.getByTestId('ask-card').innerText(), new RegExp(metadata.answer));
});

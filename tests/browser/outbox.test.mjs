// SPDX-License-Identifier: Apache-2.0
//
// What was said and has not been taken: nothing is lost, nothing is said twice, whatever becomes of the line, the tab or
// the server. The server's history is the judge.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';

import { cuttingProxy, newPage, openBrowser, screen, settledText, startScripted, until } from './kit.mjs';

const SCRIPT = [
  { match: '^short', turns: [{ text: 'A word at a time, and then it ends.', chunk: 1, gap_ms: 40 }] },
  { match: '^ask', turns: [{ calls: [{ name: 'ask_user', args: { question: 'How long?', choices: ['30 minutes', '1 hour'] } }] }, { text: 'Noted.' }] },
  { turns: [{ text: 'Hello. 你好。' }] },
];
const WEATHER = /ERR_(EMPTY_RESPONSE|CONNECTION|ABORTED|FAILED|SOCKET)|WebSocket connection to|status of 503/; // what Chromium says of a bad line

let browser, close, server;
before(async () => {
  ({ browser, close } = await openBrowser());
  server = await startScripted(SCRIPT, { env: { FERMATA_LIMITS_BODY: '4096' } });
});
after(async () => {
  await close?.();
  await server?.stop();
});

const field = (page) => page.getByTestId('composer');
const own = (page) => page.locator('[data-kind=user] .bubble');
const state = (page, name) => page.locator(`.own[data-state=${name}]`);
const replies = (page, text = 'Hello. 你好。') => page.locator('[data-kind=agent]').getByText(text, { exact: true });
const threadOf = (page) => page.evaluate(() => location.hash.replace('#/t/', ''));

async function open(t, options = {}) {
  const proxy = await cuttingProxy(server);
  const opened = await newPage(browser, { url: `${proxy.url}/`, ...options });
  t.after(async () => {
    await opened.done();
    await proxy.close();
  });
  opened.problems.allow(WEATHER);
  await field(opened.page).waitFor();
  return { ...opened, proxy };
}

async function say(page, text) {
  await field(page).fill(text);
  await field(page).press('Enter');
}

function offline(proxy) {
  proxy.refuse();
  proxy.cut();
}

// Keeps what this page says from leaving: {count, release()}.
async function hold(page) {
  const held = { count: 0 };
  const gone = new Promise((resolve) => { held.release = resolve; });
  await page.route('**/agent/runs', async (route) => {
    held.count++;
    await gone;
    await route.continue();
  });
  return held;
}

// The words of the person, as the server has them.
async function said(threadId, to = server) {
  const answer = await fetch(`${to.url}/api/v1/agent/runs/${threadId}/history`);
  if (answer.status === 404) return [];
  return (await answer.json()).messages.filter(({ role }) => role === 'user').map(({ content }) => content);
}

async function rowsOf(threadId) {
  const { messages = [] } = await (await fetch(`${server.url}/api/v1/agent/runs/${threadId}/history`)).json();
  return messages.map(({ role }) => role);
}
const questionsOf = async (threadId) => (await (await fetch(`${server.url}/api/v1/agent/interactions?status=open&threadId=${threadId}`)).json()).interactions;
const repliesOf = async (threadId) => (await rowsOf(threadId)).filter((role) => role === 'assistant').length;

// Not by this page.
async function sayElsewhere(threadId, text) {
  const before = await repliesOf(threadId);
  const answer = await fetch(`${server.url}/api/v1/agent/runs`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ threadId, messages: [{ role: 'user', content: text }] }) });
  assert.ok(answer.ok);
  await until('a reply there', async () => await repliesOf(threadId) > before);
}

const goTo = (page, hash) => page.evaluate((to) => { location.hash = to; }, hash);
const unsent = (page) => page.evaluate(() => Object.keys(localStorage).filter((name) => name.includes(':outbox:')).length);

async function begun(page) {
  await say(page, 'hello');
  await replies(page).waitFor();
  return threadOf(page);
}

describe('off the line', () => {
  test('messages wait, visibly, and go out once, in their order, when it is back', async (t) => {
    const { page, proxy } = await open(t);
    const threadId = await begun(page);
    offline(proxy);
    for (const text of ['one', 'two', 'three']) await say(page, text);
    await until('all wait', async () => await state(page, 'waiting').count() === 3);
    assert.equal(await field(page).inputValue(), '');
    await screen(page, 'outbox-waiting');
    assert.deepEqual(await said(threadId), ['hello']);
    proxy.refuse(false);
    await until('all have replies', async () => await replies(page).count() === 4, 30_000);
    assert.deepEqual(await said(threadId), ['hello', 'one', 'two', 'three']);
    assert.deepEqual(await own(page).allInnerTexts(), ['hello', 'one', 'two', 'three']);
    await until('nothing is under way', async () => await state(page, 'sent').count() === 4);

    await page.getByTestId('regenerate').waitFor();
    const live = await settledText(page);
    await page.reload();
    await page.getByTestId('regenerate').waitFor();
    assert.equal(await settledText(page), live);
  });

  test('a tab that was closed meanwhile: the next one sends it', async (t) => {
    const { page, proxy, tab } = await open(t);
    const threadId = await begun(page);
    const url = page.url();
    offline(proxy);
    await say(page, 'before the tab was closed');
    await state(page, 'waiting').waitFor();
    await page.close({ runBeforeUnload: true });
    proxy.refuse(false);
    const next = await tab(url);
    await until('the reply', async () => await replies(next).count() === 2, 30_000);
    assert.deepEqual(await said(threadId), ['hello', 'before the tab was closed']);
  });

  test('a conversation that begins there: it is all there when the line is back', async (t) => {
    const { page, proxy } = await open(t);
    offline(proxy);
    await say(page, 'first words');
    await state(page, 'waiting').waitFor();
    const threadId = await threadOf(page);
    proxy.refuse(false);
    await replies(page).waitFor();
    assert.deepEqual(await said(threadId), ['first words']);
    await say(page, 'and more');
    await until('the second reply', async () => await replies(page).count() === 2);
    await page.evaluate(() => { location.hash = '#/'; });
    await until('another place', async () => await own(page).count() === 0);
    await page.evaluate((id) => { location.hash = `#/t/${id}`; }, threadId);
    await until('both are there', async () => await replies(page).count() === 2);
  });

  test('two messages begin it, and it is looked at again only when both have been answered', async (t) => {
    const { page, proxy } = await open(t);
    const other = await begun(page);
    await goTo(page, '#/');
    await until('another place', async () => await own(page).count() === 0);
    offline(proxy);
    await say(page, 'first words');
    await own(page).waitFor(); // the field is that of the conversation
    await say(page, 'second words');
    await until('both wait', async () => await state(page, 'waiting').count() === 2);
    const threadId = await threadOf(page);
    await goTo(page, `#/t/${other}`);
    await until('elsewhere', async () => await own(page).count() === 0);
    proxy.refuse(false);
    await until('both are answered', async () => await repliesOf(threadId) === 2 && await unsent(page) === 0, 30_000);
    await goTo(page, `#/t/${threadId}`);
    await until('all of it', async () => await replies(page).count() === 2);
    assert.deepEqual(await own(page).allInnerTexts(), ['first words', 'second words']);
  });

  test('words behind the first ones do not answer what those were asked', async (t) => {
    const { page, proxy } = await open(t);
    offline(proxy);
    await say(page, 'ask me');
    await own(page).waitFor();
    await say(page, 'and buy milk');
    await until('both wait', async () => await state(page, 'waiting').count() === 2);
    const threadId = await threadOf(page);
    await page.route('**/session', async (route) => { // which is asked for before each message
      if (proxy.seen(/^POST .*\/runs/)) await until('the question', async () => (await questionsOf(threadId)).length);
      await route.continue();
    });
    proxy.refuse(false);
    await state(page, 'failed').getByText('something was asked since').waitFor();
    assert.deepEqual(await said(threadId), ['ask me']);
    assert.equal((await questionsOf(threadId)).length, 1);
  });

  test('two tabs, each with words of its own: each is sent once', async (t) => {
    const { page, proxy, tab, requests } = await open(t);
    const first = await begun(page);
    const other = await tab(`${proxy.url}/`);
    await field(other).waitFor();
    const second = await begun(other);
    offline(proxy);
    await say(page, 'from the first');
    await say(other, 'from the second');
    await say(page, 'from the first again');
    await until('all wait', async () => await state(page, 'waiting').count() === 2 && await state(other, 'waiting').count() === 1);
    const before = requests.length;
    proxy.refuse(false);
    await until('all have replies', async () => await replies(page).count() === 3 && await replies(other).count() === 2, 30_000);
    assert.deepEqual(await said(first), ['hello', 'from the first', 'from the first again']);
    assert.deepEqual(await said(second), ['hello', 'from the second']);
    const sent = requests.slice(before).filter(({ method, path }) => method === 'POST' && path.endsWith('/agent/runs')).map(({ body }) => JSON.parse(body).messages[0].content);
    for (const text of ['from the first', 'from the second', 'from the first again']) assert.ok(sent.includes(text));
  });

  test('two tabs at the same moment: neither takes the words of the other away', async (t) => {
    const { page, proxy, tab } = await open(t);
    const first = await begun(page);
    const other = await tab(`${proxy.url}/`);
    await field(other).waitFor();
    const second = await begun(other);
    offline(proxy);
    const here = [], there = [];
    for (let i = 0; i < 8; i++) {
      here.push(`here ${i}`);
      there.push(`there ${i}`);
      await Promise.all([say(page, here[i]), say(other, there[i])]);
    }
    await until('all wait', async () => await state(page, 'waiting').count() === 8 && await state(other, 'waiting').count() === 8);
    proxy.refuse(false);
    await until('all have replies', async () => await replies(page).count() === 9 && await replies(other).count() === 9, 60_000);
    assert.deepEqual([await said(first), await said(second)], [['hello', ...here], ['hello', ...there]]);
  });

  test('one tab is sending when another says something: both arrive', async (t) => {
    const { page, proxy, tab } = await open(t);
    const first = await begun(page);
    const other = await tab(`${proxy.url}/`);
    await field(other).waitFor();
    const second = await begun(other);
    const held = await hold(page);
    await say(page, 'slowly');
    await until('it is on its way', () => held.count);
    await say(other, 'meanwhile');
    await state(other, 'waiting').waitFor();
    held.release();
    await until('both have replies', async () => await replies(page).count() === 2 && await replies(other).count() === 2, 30_000);
    assert.deepEqual([await said(first), await said(second)], [['hello', 'slowly'], ['hello', 'meanwhile']]);
  });

  test('a tab ends while it is sending: another one goes on', async (t) => {
    const { page, proxy, tab } = await open(t);
    const threadId = await begun(page);
    const other = await tab(page.url());
    await replies(other).waitFor();
    const held = await hold(page);
    await say(page, 'never sent by the first');
    await until('it is on its way', () => held.count);
    await state(other, 'sending').waitFor();
    assert.deepEqual(await said(threadId), ['hello']);
    await page.close();
    await until('the reply', async () => await replies(other).count() === 2, 30_000);
    assert.deepEqual(await said(threadId), ['hello', 'never sent by the first']);
    assert.ok(proxy.seen(/^POST .*\/runs/) >= 2);
  });

  test('waiting words can be taken back, behind which new ones may stand already', async (t) => {
    const { page, proxy } = await open(t);
    const threadId = await begun(page);
    offline(proxy);
    await say(page, 'on second thought');
    await state(page, 'waiting').waitFor();
    await field(page).fill('meanwhile');
    await state(page, 'waiting').getByRole('button', { name: 'Take back' }).dispatchEvent('click'); // whenever it is tried again the button goes for a moment
    assert.equal(await field(page).inputValue(), 'on second thought\nmeanwhile');
    assert.equal(await own(page).count(), 1);
    proxy.refuse(false);
    await field(page).fill('better');
    await field(page).press('Enter');
    await until('the reply', async () => await replies(page).count() === 2, 30_000);
    assert.deepEqual(await said(threadId), ['hello', 'better']);
  });
});

describe('a bad line', () => {
  test('a 202 that is lost: said again under the same names, stored once', async (t) => {
    const { page, requests } = await open(t);
    const threadId = await begun(page);
    let lost = 0;
    await page.route('**/agent/runs', async (route) => {
      if (lost++) return route.continue();
      await route.fetch(); // the server has it
      return route.abort();
    });
    await say(page, 'only once');
    await until('it is said again', () => lost > 1, 30_000);
    await until('the reply', async () => await replies(page).count() === 2 && await state(page, 'sent').count() === 2);
    assert.deepEqual(await said(threadId), ['hello', 'only once']);
    const bodies = requests.filter(({ method, path }) => method === 'POST' && path.endsWith('/agent/runs')).slice(1).map(({ body }) => body);
    assert.equal(new Set(bodies).size, 1);
    assert.deepEqual(await own(page).allInnerTexts(), ['hello', 'only once']);
  });

  test('a 202 that stays lost, of words that are asked something: they have arrived, and are not said to have failed', async (t) => {
    const { page } = await open(t);
    const threadId = await begun(page);
    let asked = 0, lost = 0;
    await page.route('**/agent/runs', async (route) => {
      if (asked++ > 1) return route.continue();
      await route.fetch();
      await route.abort();
      return lost++;
    });
    await say(page, 'ask me');
    await page.getByTestId('ask-card').waitFor();
    await until('nothing is to be sent', async () => lost > 1 && await unsent(page) === 0);
    assert.deepEqual(await own(page).allInnerTexts(), ['hello', 'ask me']);
    assert.deepEqual([await said(threadId), (await questionsOf(threadId)).length], [['hello', 'ask me'], 1]);
  });

  test('a first 202 that is lost with its tab: whoever comes back sees all that was said since', async (t) => {
    const { page, context, proxy, tab } = await open(t);
    const spoil = async (route) => {
      await route.fetch().catch(() => {});
      await route.abort().catch(() => {}); // the page may be gone
    };
    await context.route('**/agent/runs', spoil);
    await say(page, 'the very first');
    const threadId = await until('its place', async () => /^thr_/.test(await threadOf(page)) && threadOf(page));
    await until('the reply', async () => await repliesOf(threadId) === 1);
    await page.close();
    for (const text of ['then', 'and then']) await sayElsewhere(threadId, text);
    await context.unroute('**/agent/runs', spoil);
    const next = await tab(`${proxy.url}/#/t/${threadId}`);
    await until('all of it', async () => await replies(next).count() === 3);
    assert.deepEqual(await own(next).allInnerTexts(), ['the very first', 'then', 'and then']);
    await until('nothing is to be sent', async () => await unsent(next) === 0);
    assert.equal((await said(threadId)).length, 3);
  });

  test('a history that does not fit its events: it is asked for again, but not without a pause', async (t) => {
    const { page } = await open(t);
    const threadId = await begun(page);
    await sayElsewhere(threadId, 'more');
    await goTo(page, '#/');
    await until('another place', async () => await own(page).count() === 0);
    await page.evaluate(() => {
      const { send } = WebSocket.prototype;
      window.tries = []; // when
      WebSocket.prototype.send = function (frame) {
        const { type, sessionId } = JSON.parse(frame);
        if (type === 'subscribe' && sessionId) window.tries.push(performance.now());
        send.call(this, frame);
      };
    });
    const wrong = { messages: [], hasMore: false, openInteractions: [], seq: 0 };
    await page.route('**/history*', (route) => route.fulfill({ json: wrong }));
    await goTo(page, `#/t/${threadId}`);
    const tries = await until('five tries', () => page.evaluate(() => window.tries.length > 4 && window.tries), 30_000);
    assert.ok(tries[4] - tries[1] > 1500, `each waits longer than the one before: ${tries}`);
    await page.unroute('**/history*');
    await until('all of it', async () => await replies(page).count() === 2, 30_000);
  });

  test('cut five times during a run, with words in between: the page ends up as if nothing had been', async (t) => {
    const { page, proxy } = await open(t);
    const threadId = await begun(page);
    await say(page, 'short, please');
    for (let i = 0; i < 5; i++) {
      await until('a line', () => proxy.told(/"inbox"/)); // five that were cut before would be enough to do without WebSockets
      proxy.cut();
      if (i === 2) await say(page, 'in between');
      await until('it comes back', () => proxy.open(/\/ws/));
    }
    await until('all have replies', async () => await replies(page).count() === 2 && await replies(page, 'A word at a time, and then it ends.').count() === 1, 30_000);
    assert.deepEqual(await said(threadId), ['hello', 'short, please', 'in between']);
    await page.getByTestId('regenerate').waitFor();
    const live = await settledText(page);
    await page.reload();
    await page.getByTestId('regenerate').waitFor();
    assert.equal(await settledText(page), live);
  });

  test('a server that is killed and comes back: what was said in between is there', async (t) => {
    const first = await startScripted(SCRIPT);
    const proxy = await cuttingProxy(first);
    const opened = await newPage(browser, { url: `${proxy.url}/` }), { page, problems } = opened;
    let second;
    t.after(async () => {
      await opened.done();
      await proxy.close();
      await second?.stop();
    });
    problems.allow(WEATHER);
    await field(page).waitFor();
    const threadId = await begun(page);
    await first.kill9();
    await say(page, 'while it was down');
    await state(page, 'waiting').waitFor();
    second = await startScripted(SCRIPT, { data: first.data });
    proxy.to(second);
    proxy.cut();
    await until('the reply', async () => await replies(page).count() === 2, 30_000);
    assert.deepEqual(await said(threadId, second), ['hello', 'while it was down']);
  });

  test('an answer by message goes out once, too', async (t) => {
    const { page, proxy } = await open(t);
    await say(page, 'ask me');
    await page.getByTestId('aim').waitFor();
    const threadId = await threadOf(page);
    offline(proxy);
    await say(page, '1 hour');
    await state(page, 'waiting').waitFor();
    proxy.refuse(false);
    await replies(page, 'Noted.').waitFor();
    assert.deepEqual(await said(threadId), ['ask me', '1 hour']);
    assert.deepEqual(await own(page).allInnerTexts(), ['ask me', '1 hour']);
  });
});

describe('a refusal', () => {
  test('is told with its reason; the words can be sent again, or taken back with their files', async (t) => {
    const { page, problems } = await open(t);
    problems.allow(/413/);
    const threadId = await begun(page);
    await page.getByTestId('attach').setInputFiles([{ name: 'notes.txt', mimeType: 'text/plain', buffer: Buffer.from('x') }]);
    await page.locator('[data-testid=upload][data-state=done]').waitFor();
    await say(page, 'x'.repeat(5000));
    await state(page, 'failed').getByText('Not sent').waitFor();
    await screen(page, 'outbox-failed');
    await state(page, 'failed').getByRole('button', { name: 'Try again' }).click();
    await state(page, 'failed').getByText('Not sent').waitFor();

    await say(page, 'others go past it');
    await until('the reply', async () => await replies(page).count() === 2);
    await page.reload();
    await until('all of it', async () => await replies(page).count() === 2);
    await state(page, 'failed').getByText('Not sent').waitFor();
    await state(page, 'failed').getByRole('button', { name: 'Take back' }).click();
    assert.equal((await field(page).inputValue()).length, 5000);
    assert.equal(await page.locator('[data-testid=upload][data-state=done]').count(), 1);
    await say(page, 'in fewer words');
    await until('the reply', async () => await replies(page).count() === 3);
    assert.equal(await page.locator('[data-kind=user] .files a').count(), 1);
    assert.equal((await said(threadId)).length, 3);
  });

  test('of the first words: their place is in the list, and they can be taken back to begin anew', async (t) => {
    const { page, problems } = await open(t);
    problems.allow(/413/);
    await page.getByTestId('attach').setInputFiles([{ name: 'notes.txt', mimeType: 'text/plain', buffer: Buffer.from('x') }]);
    await page.locator('[data-testid=upload][data-state=done]').waitFor();
    await say(page, 'y'.repeat(5000));
    await state(page, 'failed').waitFor();
    const row = page.getByTestId('thread').filter({ hasText: 'yyyy' });
    for (const again of [false, true]) {
      await goTo(page, '#/');
      if (again) await page.reload();
      await until('another place', async () => await field(page).isVisible() && await own(page).count() === 0);
      await row.getByRole('link').click();
      await state(page, 'failed').waitFor();
      assert.equal(await row.getByRole('button').count(), 0, 'the server knows nothing of it');
    }
    await state(page, 'failed').getByRole('button', { name: 'Take back' }).click();
    await until('a new one', async () => await page.evaluate(() => location.hash) === '#/' && (await field(page).inputValue()).length === 5000);
    await row.waitFor({ state: 'detached' });
    await say(page, 'in fewer words');
    await replies(page).waitFor();
    assert.equal(await page.locator('[data-kind=user] .files a').count(), 1);
  });
});

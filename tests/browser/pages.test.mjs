// SPDX-License-Identifier: Apache-2.0
//
// The pages around a conversation: the list, the head, the inbox, settings.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { after, before, describe, test } from 'node:test';

import { run } from '../api/home.mjs';
import { drawn, screen, startScripted, until } from './kit.mjs';
import { ended } from './long.mjs';
import { API, begin, call, CONFIG, inboxOf, LINES, log, row, say, stage } from './stage.mjs';

const { open, own, server } = stage();

describe('the list of conversations', () => {
  let at;
  before(async () => {
    at = await startScripted(LINES);
    for (let i = 0; i < 34; i++) await begin(at, `t${i}`, i === 3 ? 'needle in the hay' : `talk number ${i}`);
    for (let i = 0; i < 34; i++) await ended(at, `t${i}`); // from here on their order stays
  });
  after(() => at?.stop());

  test('is paged and searched, and marks what is open', async () => {
    const { page, context } = await open('', { at });
    await row(page, 'talk number 33').waitFor();
    assert.equal(await page.getByTestId('thread').count(), 30);
    await page.getByRole('button', { name: 'Show more' }).click();
    await until('all', async () => await page.getByTestId('thread').count() === 34);
    const requests = [];
    page.on('request', (one) => { if (one.url().includes('query=')) requests.push(one.url()); });
    await page.getByRole('searchbox').focus();
    const cdp = await context.newCDPSession(page); // as fast as somebody types, however slow the way to the page is
    await Promise.all([...'needle'].map((text) => cdp.send('Input.insertText', { text })));
    await until('one', async () => await page.getByTestId('thread').count() === 1);
    await row(page, 'needle in the hay').waitFor();
    assert.ok(requests.length <= 3, `the search waits for the end of the word: ${requests.length}`);
    await page.getByRole('searchbox').fill('nothing like it');
    await page.getByText('Nothing found').waitFor();
    await page.getByRole('searchbox').fill('');
    await row(page, 'talk number 33').waitFor();
    await row(page, 'talk number 33').getByRole('link').click();
    await log(page).getByText('Hello there.').waitFor();
    assert.equal(await page.locator('[data-testid=thread] [aria-current=page]').innerText().then((text) => text.split('\n')[0]), 'talk number 33');
  });

  test('shows more of it, though it is read anew meanwhile', async () => {
    const { page } = await open('', { at });
    await row(page, 'talk number 33').waitFor();
    const isFirst = (url) => url.pathname.endsWith('/threads') && !url.searchParams.has('cursor');
    let pass;
    const passed = new Promise((resolve) => { pass = resolve; });
    await page.route((url) => url.searchParams.has('cursor'), (route) => passed.then(() => route.continue()));
    await Promise.all([page.waitForRequest((one) => one.url().includes('cursor=')), page.getByRole('button', { name: 'Show more' }).click()]);
    const anew = page.waitForResponse((one) => isFirst(new URL(one.url())));
    await page.evaluate(() => document.dispatchEvent(new Event('visibilitychange'))); // somebody looks at it again
    await (await anew).finished();
    await drawn(page);
    pass();
    await until('all', async () => await page.getByTestId('thread').count() === 34);
  });

  test('one is renamed, in the list and over the page', async () => {
    const { page } = await open('#/t/t5', { at });
    await page.getByRole('heading', { level: 1, name: 'talk number 5' }).getByRole('button').click();
    const field = page.locator('dialog[open] input');
    assert.equal(await field.inputValue(), 'talk number 5');
    assert.ok(await field.evaluate((element) => element === document.activeElement));
    await field.fill('五号 <b>');
    await field.press('Enter');
    await page.getByRole('heading', { level: 1, name: '五号 <b>' }).waitFor();
    await row(page, '五号 <b>').waitFor();
    assert.match(await page.title(), /五号 <b> · Fermata/);
    assert.equal((await call(at, 'GET', `${API}/threads/t5`)).title, '五号 <b>');
    assert.ok(await page.evaluate(() => document.activeElement.closest('h1')), 'the focus is back where it was');
  });

  test('one is exported and deleted, after a question', async () => {
    const { page } = await open('#/t/t6', { at });
    await page.getByRole('heading', { level: 1, name: 'talk number 6' }).waitFor();
    const menu = page.locator('.head').getByRole('button', { name: /^Actions for/ });
    for (const [name, format] of [['Markdown', 'md'], ['JSON', 'json']]) {
      await menu.click();
      const [download] = await Promise.all([page.waitForEvent('download'), page.locator('.menu:popover-open').getByText(`Export as ${name}`).click()]);
      assert.equal(download.suggestedFilename(), `t6.${format}`);
      assert.match(await readFile(await download.path(), 'utf8'), /talk number 6/);
    }
    await menu.click();
    await page.locator('.menu:popover-open').getByText('Delete').click();
    await page.locator('dialog[open]').getByRole('button', { name: 'Cancel' }).click();
    await page.locator('dialog[open]').waitFor({ state: 'detached' });
    await menu.click();
    await page.locator('.menu:popover-open').getByText('Delete').click();
    await page.locator('dialog[open]').getByRole('button', { name: 'Delete', exact: true }).click();
    await page.getByTestId('greeting').waitFor();
    assert.equal(await page.evaluate(() => location.hash), '#/');
    await until('gone from the list', async () => await row(page, 'talk number 6').count() === 0);
    assert.equal((await fetch(`${at.url}${API}/threads/t6`)).status, 404);
  });

  test('cannot be loaded: it says so, and tries again', async () => {
    const { page, problems } = await open('', { at });
    await row(page, 'talk number 33').waitFor();
    problems.allow(/503|Failed to load resource/);
    await page.route('**/threads?**', (route) => route.fulfill({ status: 400, contentType: 'application/problem+json', body: '{"code":"invalid_field","status":400}' }));
    await page.getByRole('searchbox').fill('x');
    await page.getByText('could not be loaded').waitFor();
    await page.unroute('**/threads?**');
    await page.getByTestId('threads').getByRole('button', { name: 'Try again' }).click();
    await page.getByText('could not be loaded').waitFor({ state: 'hidden' });
  });

  test('is hidden and shown; on a phone it is a drawer that Esc closes', async () => {
    const { page } = await open('', { at });
    await page.getByRole('button', { name: 'Conversations', expanded: true }).click();
    await page.getByTestId('threads').waitFor({ state: 'detached' });
    await page.reload();
    await page.getByRole('button', { name: 'Conversations', expanded: false }).click();
    await row(page, 'talk number 33').waitFor();

    await page.setViewportSize({ width: 390, height: 780 });
    await page.getByTestId('threads').waitFor({ state: 'detached' });
    await page.getByRole('button', { name: 'Conversations', expanded: false }).click();
    await row(page, 'talk number 33').waitFor();
    await page.keyboard.press('Escape');
    await page.getByTestId('threads').waitFor({ state: 'detached' });
    assert.match(await page.evaluate(() => document.activeElement.title), /Conversations/);
    await page.getByRole('button', { name: 'Conversations', expanded: false }).click();
    await row(page, 'talk number 33').getByRole('link').click();
    await log(page).getByText('talk number 33').waitFor();
    await page.getByTestId('threads').waitFor({ state: 'detached' }); // whoever has chosen wants to see it
  });
});

describe('the header', () => {
  test('tells what the conversation has used', async () => {
    const at = await own(LINES, { config: 'models: {m: {provider: scripted, name: m, price: {input: 1000, output: 10000, currency: USD}}}\nagents: {assistant: {model: m}}\n' });
    const { page } = await open('', { at });
    await say(page, 'count');
    await page.getByRole('heading', { level: 1, name: 'count' }).waitFor();
    await log(page).getByText('Counted.').waitFor();
    await until('the totals', async () => /1,234 in · 56 out/.test(await page.getByTestId('totals').innerText().catch(() => '')));
    const first = await page.getByTestId('totals').innerText();
    await say(page, 'count again');
    await until('twice as much', async () => /2,468 in · 112 out/.test(await page.getByTestId('totals').innerText()));
    const { usage } = await call(at, 'GET', `${API}/threads/${await page.evaluate(() => location.hash.slice(4))}`);
    assert.deepEqual(usage.map(({ inputTokens, outputTokens }) => [inputTokens, outputTokens]), [[2468, 112]]);
    assert.ok(usage[0].cost > 0);
    assert.match(first, /\$1\.79/);
  });
});

describe('the inbox', () => {
  test('holds what is open, live; what was settled stays to be read', async () => {
    const at = await own();
    await begin(at, 'one', 'ask');
    await until('the question', async () => (await inboxOf(at)).length === 1);
    const { page } = await open('#/inbox', { at });
    const items = page.getByTestId('inbox-item');
    await items.first().waitFor();
    await begin(at, 'two', 'ask');
    await until('the second', async () => await items.count() === 2);
    assert.equal(await page.getByTestId('inbox-count').innerText().then((text) => text.trim()[0]), '2');
    assert.match(await page.title(), /^\(2\) Inbox/);

    await items.first().getByRole('button', { name: 'Red' }).click();
    await until('settled', async () => await items.first().getAttribute('data-state') === 'resolved');
    assert.match(await items.first().innerText(), /Red/);
    assert.equal(await items.first().locator('button:not([disabled]), textarea, input').filter({ visible: true }).count(), 0, 'nothing to press any more');
    assert.equal(await items.nth(1).getAttribute('data-state'), 'open');
    assert.match(await page.title(), /^\(1\) Inbox/);

    await items.nth(1).getByRole('link').click();
    await log(page).getByTestId('ask-card').waitFor();
    await until('the focus is on the question', () => page.evaluate(() => !!document.activeElement.closest('[data-testid=ask-card]')));
    assert.equal(await page.evaluate(() => location.hash), '#/t/two');
    await page.goto(`${at.url}/#/inbox`);
    await until('only what is open', async () => await items.count() === 1);
  });

  test('is empty, and says when it would not be', async () => {
    const at = await own();
    const { page } = await open('#/inbox', { at });
    await page.getByRole('heading', { name: 'Nothing waits for you' }).waitFor();
  });

  test('shows an approver what others want, without their conversation', async () => {
    const at = await own(LINES, { config: CONFIG });
    const keys = {};
    for (const [user, ...roles] of [['ann', 'user'], ['eve', 'user', 'approver']])
      keys[user] = (await run(['key', 'add', '--user', user, ...roles.flatMap((role) => ['--role', role])], { env: { FERMATA_DATA: at.data } })).stdout.trim();
    await begin(at, 'secret-thread', 'book', { authorization: `Bearer ${keys.ann}` });
    const { page, problems } = await open('#/inbox', { at });
    problems.allow(/401/);
    await page.locator('#api-key').fill(keys.eve);
    await page.locator('#api-key').press('Enter');
    const item = page.getByTestId('inbox-item');
    await item.waitFor();
    assert.match(await item.innerText(), /From ann/);
    assert.equal(await item.getByRole('link').count(), 0);
    assert.ok(!(await page.content()).includes('secret-thread'));
    await begin(at, 'mine', 'ask', { authorization: `Bearer ${keys.eve}` });
    await until('her own, too', async () => await item.count() === 2);
    await page.getByTestId('inbox-kind').selectOption('others');
    await until('one of them', async () => await item.count() === 1);
    await screen(page, 'inbox-approver');
    await item.locator('[data-state=armed]').waitFor();
    await item.getByRole('button', { name: 'Approve', exact: true }).press('Enter'); // a first click just after the list has moved would not count
    await until('approved', async () => await item.getAttribute('data-state') === 'resolved');
    assert.match(await item.innerText(), /Approved/);
    await page.getByTestId('inbox-kind').selectOption('own');
    await item.getByText('Which colour').waitFor();
  });

  test('works with more than two hundred', async () => {
    const at = await own();
    for (let i = 0; i < 210; i++) await begin(at, `q${i}`, 'ask');
    await until('all are asked', async () => {
      const { interactions, next } = await call(at, 'GET', `${API}/interactions?limit=200`);
      return interactions.length === 200 && (await call(at, 'GET', `${API}/interactions?limit=200&cursor=${next}`)).interactions.length === 10;
    }, 60_000);
    const { page } = await open('#/inbox', { at });
    const items = page.getByTestId('inbox-item');
    await until('the count', async () => (await page.title()).startsWith('(210) '));
    await until('the first page', async () => await items.count() === 50);
    for (let n = 0; n < 4; n++) await page.getByTestId('inbox').getByRole('button', { name: 'Show more' }).click();
    await until('all of them', async () => await items.count() === 210);
    const ids = await items.locator('section').evaluateAll((list) => list.map(({ id }) => id));
    assert.equal(new Set(ids).size, 210);
  });
});

describe('settings', () => {
  test('two pages agree, and the server is told', async () => {
    const at = await own();
    const [a, b] = [await open('#/settings', { at }), await open('#/settings', { at })];
    for (const { page } of [a, b]) {
      await page.clock.install();
      await page.reload();
    }
    // The pages read the settings every few seconds.
    const later = (what, page, seen) => until(what, async () => {
      await page.clock.fastForward(5000);
      return seen();
    }, 20_000);
    const ofServer = () => call(at, 'GET', `${API}/agents/assistant/settings`);
    const ask1 = a.page.getByTestId('ask-user-assistant'), ask2 = b.page.getByTestId('ask-user-assistant');
    await ask1.and(a.page.locator(':enabled')).waitFor();
    assert.ok(await ask1.isChecked());
    assert.equal(await ask1.getAttribute('role'), 'switch');
    const told = await a.page.getByTestId('saving').first().evaluateHandle((output) => {
      const list = [];
      new MutationObserver(() => list.push(output.dataset.state)).observe(output, { attributeFilter: ['data-state'] });
      return list;
    });
    await ask1.click();
    await until('it says so, for a moment', async () => (await told.jsonValue())[0] === 'saved');
    assert.equal((await ofServer()).enableAskUser, false);
    await later('the other page', b.page, async () => !await ask2.isChecked());
    await ask2.click();
    await later('and back', a.page, () => ask1.isChecked());
    assert.equal((await ofServer()).enableAskUser, true);

    const slider = a.page.getByTestId('rounds');
    await slider.focus();
    await slider.press('End');
    await until('the server has it', async () => (await ofServer()).maxToolRounds === 100);
    await a.page.getByTestId('rounds-number').fill('7');
    await a.page.getByTestId('rounds-number').press('Enter');
    await until('a number', async () => (await ofServer()).maxToolRounds === 7);
    assert.equal(await slider.inputValue(), '7');
    await a.page.getByTestId('rounds-number').fill('5000');
    await a.page.getByTestId('rounds-number').press('Tab');
    assert.equal(await a.page.getByTestId('rounds-number').inputValue(), '7', 'what the server would refuse is not sent');
    await later('the other page', b.page, async () => await b.page.getByTestId('rounds').inputValue() === '7');

    await a.page.getByTestId('policy-calendar_write').selectOption('allow');
    await until('allowed', async () => (await ofServer()).confirmPolicy.calendar_write === 'allow');
    await b.page.getByTestId('policy-calendar_delete').selectOption('deny');
    await until('both', async () => JSON.stringify((await ofServer()).confirmPolicy) === '{"calendar_write":"allow","calendar_delete":"deny"}');
    await later('seen', a.page, async () => await a.page.getByTestId('policy-calendar_delete').inputValue() === 'deny');
    await a.page.getByTestId('policy-calendar_write').selectOption('');
    await until('by default again', async () => !('calendar_write' in (await ofServer()).confirmPolicy));
  }, { timeout: 120_000 });

  test('what the server refuses is taken back and said', async () => {
    const at = await own();
    const { page, problems } = await open('#/settings', { at });
    problems.allow(/400/);
    const toggle = page.getByTestId('ask-user-assistant');
    await toggle.and(page.locator(':enabled')).waitFor();
    await page.route('**/settings', (route) => (route.request().method() === 'PATCH'
      ? route.fulfill({ status: 400, contentType: 'application/problem+json', body: '{"code":"invalid_field","status":400,"detail":"not today"}' }) : route.continue()));
    await toggle.click();
    await page.locator('[data-testid=saving][data-state=failed]', { hasText: 'not today' }).waitFor();
    assert.ok(await toggle.isChecked());
  });

  test('without the role operator they can only be read, and it says why', async () => {
    const at = await own();
    const { stdout } = await run(['key', 'add', '--user', 'ann'], { env: { FERMATA_DATA: at.data } });
    const { page, problems } = await open('#/settings', { at });
    problems.allow(/401/);
    await page.locator('#api-key').fill(stdout.trim());
    await page.locator('#api-key').press('Enter');
    await page.getByText('Only the role operator').waitFor();
    assert.ok(await page.getByTestId('ask-user-assistant').isDisabled());
    assert.ok(await page.getByTestId('rounds').isDisabled());
    assert.ok(await page.getByTestId('enter-sends').isEnabled());
  });

  test('a permission is listed and revoked', async () => {
    const at = await own();
    await begin(at, 'granting', 'book');
    const [asked] = await until('the approval', async () => { const list = await inboxOf(at); return list.length && list; });
    await call(at, 'POST', `${API}/interactions/${asked.interactionId}/answer`, { decision: 'approve', binding: asked.binding, always: { scope: 'user', match: { title: 'Review' } } });
    const { page } = await open('#/settings', { at });
    const grant = page.getByTestId('grant');
    await grant.waitFor();
    assert.match(await grant.innerText(), /Calendar write.*all your conversations[^]*title = "Review"/);
    await grant.getByRole('button').click();
    await page.getByText('No permission was given').waitFor();
    assert.deepEqual((await call(at, 'GET', `${API}/grants`)).grants, []);
  });

  test('the language changes every string, at once and in other tabs', async () => {
    const { page, tab } = await open('#/settings');
    const other = await tab(`${server().url}/#/`);
    await other.getByTestId('greeting').waitFor();
    await page.getByTestId('policy-calendar_write').waitFor();
    const texts = (one) => one.evaluate(() => {
      const out = new Set();
      const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
      while (walk.nextNode()) {
        const { parentElement, data } = walk.currentNode;
        if (!parentElement.closest('time, code, pre, kbd, script, noscript, [data-testid=status], [data-testid=thread], .who span') && data.trim()) out.add(data.trim());
      }
      for (const element of document.querySelectorAll('[aria-label], [title], [placeholder]')) {
        if (element.closest('[data-testid=thread], .menu')) continue;
        for (const name of ['aria-label', 'title', 'placeholder']) if (element.getAttribute(name)) out.add(element.getAttribute(name));
      }
      return [...out];
    });
    const SAME = new Set(['Fermata', '中文', 'English', '0', '30']); // names
    const before = [await texts(page), await texts(other)];
    assert.ok(before[0].length > 30 && before[1].length > 8, `${before.map((list) => list.length)} strings`);
    for (const text of before.flat()) assert.doesNotMatch(text, /^[a-z]+\.[a-zA-Z.]+$/, 'a raw key');
    await page.getByTestId('language').selectOption('zh-CN');
    await until('Chinese', async () => await other.evaluate(() => document.documentElement.lang) === 'zh-CN');
    for (const [i, one] of [page, other].entries()) {
      await until('every string', async () => {
        const now = await texts(one);
        return now.length === before[i].length && !now.some((text) => before[i].includes(text) && !SAME.has(text));
      }).catch(async () => assert.deepEqual((await texts(one)).filter((text) => before[i].includes(text) && !SAME.has(text)), [], 'not translated'));
      for (const text of await texts(one)) if (!SAME.has(text)) assert.match(text, /[\u4e00-\u9fff]/);
    }
  });

  test('the theme is that of the system until one is chosen', async () => {
    const { page } = await open('#/settings', { scheme: 'light' });
    const paper = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const light = await paper();
    await page.emulateMedia({ colorScheme: 'dark' });
    const dark = await paper();
    assert.notEqual(light, dark);
    await page.getByTestId('theme').selectOption('light');
    assert.equal(await paper(), light);
    await page.reload();
    await page.getByTestId('settings').waitFor();
    assert.equal(await paper(), light);
  });
});

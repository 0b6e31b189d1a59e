// SPDX-License-Identifier: Apache-2.0
//
// The frame: many tabs, notices, the greeting, shortcuts, a bad line; and every page in both languages, both themes, on a
// phone.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, request } from 'node:http';
import { after, before, describe, test } from 'node:test';

import { axe, cuttingProxy, LOOKS, screen, startScripted, until } from './kit.mjs';
import { begin, composer, CONFIG, inboxOf, LINES, log, row, say, stage } from './stage.mjs';

const { ending, open, own, server } = stage();
// What the banner has said since, by its states.
const bannersOf = (page) => page.evaluateHandle(() => {
  const list = [];
  new MutationObserver(() => {
    const state = document.querySelector('[data-testid=banner]')?.dataset.state;
    if (state && state !== list.at(-1)) list.push(state);
  }).observe(document.body, { childList: true, subtree: true, attributeFilter: ['data-state'] });
  return list;
});
const noSideways = (page) => page.evaluate(() => document.documentElement.scrollWidth <= innerWidth);

describe('eight tabs at once', () => {
  test('are all live, each with one WebSocket and no stream', async () => {
    const at = await own();
    await begin(at, 'together', 'hello');
    const { page, tab, context, requests } = await open('#/t/together', { at });
    const sockets = new Map();
    context.on('page', (one) => {
      sockets.set(one, 0);
      one.on('websocket', () => sockets.set(one, sockets.get(one) + 1));
    });
    const tabs = [];
    for (let i = 0; i < 7; i++) tabs.push(await tab(`${at.url}/#/t/together`));
    await Promise.all(tabs.map((one) => composer(one).waitFor()));
    await say(page, 'slow');
    await Promise.all([page, ...tabs].map((one) => log(one).getByText('First sentence').first().waitFor()));
    await begin(at, 'elsewhere', 'ask');
    await Promise.all([page, ...tabs].map((one) => until('the badge', async () => (await one.title()).startsWith('(1) '))));
    assert.deepEqual([...sockets.values()], Array(7).fill(1));
    assert.deepEqual(requests.filter(({ path }) => /\/events/.test(path)), []);
  }, { timeout: 90_000 });
});

describe('notices', () => {
  // Keeps what the page shows; everything goes on to the browser's own.
  function listenToNotices() {
    const Real = window.Notification;
    window.shown = [];
    window.Notification = class extends Real {
      constructor(title, options) {
        super(title, options);
        window.shown.push({ title, ...options, press: () => this.onclick?.(new Event('click')) });
      }
    };
  }
  const hide = (page, hidden) => page.evaluate((value) => {
    Object.defineProperty(document, 'hidden', { configurable: true, get: () => value });
    document.dispatchEvent(new Event('visibilitychange'));
  }, hidden);
  const shown = (page) => page.evaluate(() => window.shown.map(({ title, body, tag }) => ({ title, body, tag })));

  test('a question that opens while nobody looks; a press goes to it', async () => {
    const at = await own();
    const { page, context } = await open('#/settings', { at, permissions: ['notifications'], whole: true }); // the other has no notices
    await context.addInitScript(listenToNotices);
    await page.reload();
    const toggle = page.getByTestId('notify');
    await toggle.click();
    await until('the first one', async () => (await shown(page)).length === 1 && toggle.isChecked());
    await begin(at, 'seen', 'ask');
    await until('the badge', async () => (await page.title()).startsWith('(1) '));
    assert.equal((await shown(page)).length, 1, 'not while the page is looked at');

    await hide(page, true);
    await begin(at, 'unseen', 'ask');
    const [, notice] = await until('the notice', async () => { const list = await shown(page); return list.length === 2 && list; });
    const asked = (await inboxOf(at)).find(({ threadId }) => threadId === 'unseen');
    assert.deepEqual(notice, { title: 'The agent needs your decision', body: 'Which colour?', tag: asked.interactionId });
    await hide(page, false);
    await page.evaluate(() => window.shown[1].press());
    await until('its card', () => page.evaluate((id) => !!document.activeElement.closest(`#asked-${id}`), asked.interactionId));

    await page.goto(`${at.url}/#/settings`);
    await toggle.click();
    await hide(page, true);
    await begin(at, 'quiet', 'ask');
    await until('the badge', async () => (await page.title()).startsWith('(3) '));
    assert.equal((await shown(page)).length, 2, 'switched off');
  });

  test('where the browser does not allow them, it says so', async () => {
    const { page } = await open('#/settings'); // headless Chromium denies
    await page.getByTestId('notify').click();
    await page.getByText('does not let this site notify').waitFor();
    await until('it stays off', async () => !await page.getByTestId('notify').isChecked()); // once the browser has said so
  });

  test('a screen reader is told of a reply without its words as they come', async () => {
    const at = await own([ // slow enough to be seen at work, and not for so long that it is still at it
      { match: '^slow', turns: [{ text: 'First sentence. And then many more words. '.repeat(5), chunk: 12, gap_ms: 150 }] },
      { match: '^long', turns: [{ text: 'Done at last.', delay_ms: 12_000 }] },
    ]);
    const { page, sent } = await open('', { at });
    await until('its line', () => sent.length);
    const heard = await page.evaluateHandle(() => {
      const list = [], region = document.querySelector('[data-testid=status]');
      new MutationObserver(() => list.push(region.textContent)).observe(region, { childList: true, characterData: true, subtree: true });
      return list;
    });
    await say(page, 'slow');
    await until('its end', async () => (await heard.jsonValue()).some((text) => text.startsWith('Reply complete')));
    assert.deepEqual(await heard.jsonValue(), ['The agent is replying', 'Reply complete. First sentence.']);
    await say(page, 'long');
    await until('its end', async () => (await heard.jsonValue()).at(-1) === 'Reply complete. Done at last.', 30_000);
    assert.deepEqual((await heard.jsonValue()).slice(2), ['The agent is replying', 'Still working', 'Reply complete. Done at last.']);
    assert.equal(await page.getByRole('heading', { level: 1 }).innerText(), 'slow');
  });

  test('and of a question, wherever on the page one is', async () => {
    const at = await own();
    const { page } = await open('#/settings', { at });
    await until('it hears', async () => await page.getByTestId('threads').innerText() !== '');
    await begin(at, 'elsewhere', 'ask');
    await page.getByTestId('status').getByText('Waiting for you:').waitFor({ state: 'attached' });
  });
});

describe('the greeting', () => {
  for (const locale of ['en', 'zh-CN']) {
    test(`of the demo model: every beginning leads somewhere (${locale})`, async () => {
      const at = await own([], { env: { FERMATA_MODEL_PROVIDER: 'demo' } });
      const { page, requests } = await open('', { at, locale });
      const starters = page.getByTestId('starter');
      await starters.first().waitFor();
      assert.equal(await starters.count(), 4);
      assert.match(await page.getByTestId('demo').innerText(), /FERMATA_MODEL_PROVIDER=openai\s+export FERMATA_MODEL_BASE_URL=\S+\s+export FERMATA_MODEL_NAME=/);
      const ends = ['[data-testid=usage]', '[data-testid=ask-card]', '[data-testid=confirm-card]', '[data-testid=ui-schema]'];
      for (const [i, end] of ends.entries()) {
        await page.goto(`${at.url}/#/`);
        const text = await starters.nth(i).locator('.starter-text').innerText();
        await starters.nth(i).click();
        await log(page).locator('[data-kind=user]', { hasText: text }).waitFor();
        await log(page).locator(end).first().waitFor().catch((error) => assert.fail(`${text}: ${error}`));
        const said = (await log(page).innerText()).replace(text, '');
        if (locale === 'zh-CN') assert.match(said, /[\u4e00-\u9fff]{4}/);
        assert.doesNotMatch(said, /You wrote:|你写道/, `${text} is a scene that the demo knows`);
      }
      assert.equal(requests.filter(({ method, path }) => method === 'POST' && path.endsWith('/runs')).length, 4, 'a press says it once');
    });
  }

  test('of an agent: its own beginnings, and no word of a demo', async () => {
    const at = await own(LINES, { config: CONFIG });
    const { page, requests } = await open('', { at });
    const starters = page.getByTestId('starter');
    await starters.first().waitFor();
    assert.deepEqual(await starters.allInnerTexts(), ['ask me', 'slow']);
    assert.equal(await page.getByTestId('demo').count(), 0);
    await starters.first().dblclick();
    await page.getByTestId('ask-card').waitFor();
    await until('nothing is to be sent', () => page.evaluate(() => !Object.keys(localStorage).some((name) => name.includes(':outbox:'))));
    assert.equal(requests.filter(({ method, path }) => method === 'POST' && path.endsWith('/runs')).length, 1, 'a double click says it once');
  });
});

describe('shortcuts', () => {
  test('lead to the questions, the replies, the field; and are listed', async () => {
    const { page } = await open();
    await say(page, 'one');
    await log(page).getByText('Hello there.').waitFor();
    await say(page, 'ask');
    await page.getByTestId('ask-card').waitFor();
    const at = () => page.evaluate(() => {
      const { activeElement: one } = document;
      return one.closest('[data-testid=ask-card]') ? 'card' : one.dataset.kind ?? one.dataset.testid;
    });
    await page.keyboard.press('Alt+KeyQ');
    await until('the question', async () => await at() === 'card');
    await page.keyboard.press('Alt+KeyC');
    assert.equal(await at(), 'composer');
    await page.keyboard.press('Alt+KeyL');
    await until('the latest reply', async () => await at() === 'agent');
    await page.keyboard.press('Alt+ArrowUp');
    await until('the turn before', async () => await at() === 'user');
    await page.keyboard.press('Alt+Slash');
    const dialog = page.locator('dialog[open]');
    await dialog.waitFor();
    assert.equal(await dialog.locator('kbd').count(), 14);
    assert.deepEqual(await axe(page), []);
    await page.keyboard.press('Alt+Slash');
    await dialog.waitFor({ state: 'detached' });
    assert.equal(await at(), 'user');
    await page.keyboard.press('Alt+KeyN');
    await page.getByTestId('greeting').waitFor();
    await page.keyboard.press('Alt+KeyQ');
    await until('the question, from anywhere', async () => await at() === 'card');
  });

  test('a keyboard reaches the field with one press', async () => {
    const { page } = await open();
    await page.keyboard.press('Tab');
    assert.equal(await page.evaluate(() => document.activeElement.className), 'skip');
    await page.keyboard.press('Enter');
    assert.equal(await page.evaluate(() => document.activeElement.dataset.testid), 'composer');
  });
});

describe('a bad line', () => {
  test('is told after two seconds, with what is unsent; and when it is back', async () => {
    const proxy = await cuttingProxy(server());
    ending.push(() => proxy.close());
    const { page, problems } = await open('', { at: proxy });
    problems.allow(/net::ERR_|WebSocket/);
    await say(page, 'one');
    await log(page).getByText('Hello there.').waitFor();
    const banner = page.getByTestId('banner'), banners = await bannersOf(page);
    proxy.refuse();
    proxy.cut();
    await banner.waitFor();
    assert.equal(await banner.getAttribute('data-state'), 'lost');
    assert.match(await banner.innerText(), /Connection lost. What you write is kept/);
    await say(page, 'two');
    await banner.getByText('1 not sent yet').waitFor();
    await screen(page, 'banner-lost');
    proxy.hold(); // it does not come back before it is told to try
    proxy.refuse(false);
    await banner.getByRole('button', { name: 'Try again' }).click();
    proxy.release();
    await until('it is back', async () => (await banners.jsonValue()).join() === 'lost,back');
    await banner.waitFor({ state: 'hidden' });
    await until('the answer', async () => (await log(page).innerText()).match(/Hello there\./g)?.length === 2);
    assert.equal(await log(page).locator('[data-kind=user]', { hasText: 'two' }).count(), 1);
  });

  test('a short cut is not worth a word', async () => {
    const proxy = await cuttingProxy(server());
    ending.push(() => proxy.close());
    const { page, problems, requests } = await open('', { at: proxy });
    problems.allow(/net::ERR_|WebSocket/);
    await row(page, /./).first().waitFor();
    const banners = await bannersOf(page), before = requests.length;
    await page.clock.install(); // a slow machine does not make it a long one
    await page.clock.pauseAt(Date.now() + 1000);
    proxy.cut();
    await until('it is back, and reads the list anew', async () => {
      await page.clock.runFor(10);
      return requests.slice(before).some(({ path }) => path.includes('/threads?'));
    }, 60_000);
    await page.clock.resume();
    await say(page, 'after');
    await log(page).getByText('Hello there.').waitFor();
    assert.deepEqual(await banners.jsonValue(), []);
  });

  test('without WebSockets everything works over streams', async () => {
    const at = await own();
    const { hostname, port } = new URL(at.url);
    const streams = [];
    let deaf = false; // the inbox
    const proxy = createServer((req, res) => {
      if (req.headers.upgrade) return res.writeHead(400).end();
      if (deaf && req.url.endsWith('/interactions')) return res.writeHead(200, { 'content-type': 'application/json' }).end('{"interactions":[]}');
      if (/\/events/.test(req.url)) streams.push(req.url);
      const onward = request({ hostname, port, method: req.method, path: req.url, headers: req.headers }, (answer) => {
        res.writeHead(answer.statusCode, answer.headers);
        answer.pipe(res);
      });
      onward.on('error', () => res.destroy());
      res.on('close', () => onward.destroy());
      return req.pipe(onward);
    });
    proxy.on('upgrade', (_, socket) => socket.end('HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n'));
    proxy.listen(0, '127.0.0.1');
    await once(proxy, 'listening');
    ending.push(() => { proxy.closeAllConnections(); proxy.close(); });
    const { page, problems } = await open('', { at: { url: `http://127.0.0.1:${proxy.address().port}` } });
    problems.allow(/WebSocket connection/);
    await say(page, 'ask');
    await page.getByTestId('ask-card').waitFor({ timeout: 60_000 });
    await page.getByTestId('banner').waitFor({ state: 'hidden' }); // which moves the card
    await page.getByTestId('ask-card').getByRole('button', { name: 'Blue' }).click();
    await log(page).getByText('Painted.').waitFor();
    assert.ok(streams.length, 'over server-sent events');

    deaf = true; // what is asked here is known before it is asked for
    await say(page, 'ask');
    await page.getByTestId('aim').waitFor();
    await page.keyboard.press('Alt+KeyQ');
    await until('the question', () => page.evaluate(() => [...document.querySelectorAll('[data-testid=ask-card]')].at(-1).contains(document.activeElement)));
    await say(page, 'Green');
    await until('it was taken', async () => await log(page).getByText('Painted.').count() === 2);
    deaf = false;
    await begin(at, 'other', 'ask');
    await until('the inbox, now and then', async () => (await page.title()).startsWith('(1) '), 30_000);
  }, { timeout: 120_000 });
});

describe('every page', () => {
  const PAGES = ['', '#/t/asked', '#/inbox', '#/settings'];
  let at;
  before(async () => {
    at = await startScripted([...LINES], { env: { FERMATA_MODEL_PROVIDER: 'demo' } });
    await begin(at, 'asked', '帮我约个评审会');
    await begin(at, 'plain', 'What can you do?');
    await until('the question', async () => (await inboxOf(at)).length === 1);
  });
  after(() => at?.stop());

  for (const { locale, scheme, width } of LOOKS) {
    test(`has no barriers: ${locale} ${scheme} ${width}`, async () => {
      const { page } = await open('', { at, locale, scheme, width, height: width > 800 ? 860 : 800, touch: width < 800 });
      for (const hash of PAGES) {
        await page.goto(`${at.url}/${hash}`);
        await page.locator({ '': '[data-testid=starter]', '#/t/asked': '[data-testid=ask-card]', '#/inbox': '[data-testid=inbox-item]', '#/settings': '[data-testid=policy-calendar_write]' }[hash]).first().waitFor();
        assert.deepEqual(await axe(page), [], hash);
        assert.ok(await noSideways(page), `${hash} scrolls sideways`);
        await screen(page, `page-${hash.split('/')[1] || 'greeting'}-${locale}-${scheme}-${width}`);
      }
      if (width > 800) return;
      await page.locator('.head button').first().click();
      await page.getByTestId('thread').first().waitFor();
      assert.deepEqual(await axe(page), [], 'the drawer');
      await screen(page, `page-drawer-${locale}-${scheme}`);
    });
  }

  test('fits into 320 px, and fingers meet their targets', async () => {
    const { page } = await open('', { at, width: 320, height: 640, touch: true });
    for (const hash of PAGES) {
      await page.goto(`${at.url}/${hash}`);
      await page.locator('.page, .greeting, [data-testid=ask-card]').first().waitFor();
      assert.ok(await noSideways(page), `${hash} scrolls sideways`);
      const small = await page.evaluate(() => [...document.querySelectorAll('.head button, .side button, .side a, .starter, .page button, .page select, .menu *')]
        .filter((one) => one.checkVisibility() && !one.closest('h1') && one.getBoundingClientRect().height < 43.5).map((one) => one.outerHTML.slice(0, 80)));
      assert.deepEqual(small, [], hash);
    }
  });
});

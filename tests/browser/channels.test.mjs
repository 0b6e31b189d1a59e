// SPDX-License-Identifier: Apache-2.0
//
// Chat channels on the page of settings: how they are doing, and signing in by a QR code; and what is answered on one. First
// with a server and a WeChat of our own; then the server's answers are put in one by one, so that every state is seen. The
// code is read back from the picture.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { describe, test } from 'node:test';

import { run } from '../api/home.mjs';
import { startIlink } from '../channels/ilink.mjs';
import { axe, screen, until } from './kit.mjs';
import { LINES, log, stage } from './stage.mjs';

const { open, own, ending } = stage();

const WX = { name: 'wx', kind: 'weixin', agent: 'assistant', state: 'needs_login', detail: 'nobody has signed in', people: 0, waiting: 0, parked: 0, login: true };
const CHANNELS = [
  WX,
  { name: 'oa', kind: 'wechat_oa', agent: 'assistant', state: 'starting', people: 12, waiting: 1, parked: 2, login: false, webhookUrl: 'https://example.org/api/v1/agent/channels/oa/webhook' },
  { name: 'tg', kind: 'telegram', agent: 'assistant', state: 'online', people: 3, waiting: 0, parked: 0, login: false },
  { name: 'hook', kind: 'webhook', agent: 'assistant', state: 'trouble', detail: 'example.org refuses connections', people: 1, waiting: 7, parked: 0, login: false },
];
// Some pattern: what is drawn has to be this one.
const ROWS = Array.from({ length: 25 }, (_, y) => Array.from({ length: 25 }, (_, x) => ((x * 7 + y * 3 + x * y) % 5 < 2 ? 1 : 0)).join(''));
const CONTENT = 'https://example.org/q/7f3a?id=1&x=%22';
const WAIT = { state: 'wait', content: CONTENT, qr: { size: 25, rows: ROWS }, expiresAt: '2030-01-01T00:00:00Z' };

// The page with these channels; `answers` is what a login is answered with: one after the other, the last again and again.
// `state.typed` takes their place when a number comes: the page asks by itself, too, whenever its time has come.
async function openWith({ channels = CHANNELS, answers = [WAIT], ...how } = {}) {
  const home = await open('', how);
  const { page } = home, asked = [], state = { channels, answers };
  await page.route('**/api/v1/agent/channels', (route) => route.fulfill({ json: { channels: state.channels } }));
  await page.route('**/api/v1/agent/channels/*/login', (route) => {
    const body = route.request().postDataJSON();
    asked.push(body);
    if (body.verifyCode) state.answers = state.typed;
    const [{ status = 200, ...json }] = state.answers.length > 1 ? state.answers.splice(0, 1) : state.answers;
    return route.fulfill({ status, json });
  });
  await page.clock.install();
  await page.evaluate(() => { location.hash = '#/settings'; });
  return { ...home, asked, state, login: page.getByTestId('login'), rows: page.getByTestId('channel') };
}

const inState = (login, state) => login.and(login.page().locator(`[data-state=${state}]`)).waitFor();

// It is there when the page has asked again: the clock is put forward for that.
const later = (what, ms = 2000) => until(String(what), async () => {
  if (await what.isVisible()) return true;
  await what.page().clock.fastForward(ms);
  return false;
});

// What a camera would see, module by module, from the middle of each; with its margin.
const seen = (page) => page.locator('.qr').evaluate(async (svg) => {
  const { width, height } = svg.viewBox.baseVal, scale = 8, canvas = new OffscreenCanvas(width * scale, height * scale), pen = canvas.getContext('2d');
  const style = getComputedStyle(svg), path = new Path2D(svg.querySelector('path').getAttribute('d'));
  pen.fillStyle = style.backgroundColor;
  pen.fillRect(0, 0, canvas.width, canvas.height);
  pen.scale(scale, scale);
  pen.translate(-svg.viewBox.baseVal.x, -svg.viewBox.baseVal.y);
  pen.strokeStyle = style.stroke;
  pen.stroke(path);
  const { data } = pen.getImageData(0, 0, canvas.width, canvas.height);
  return Array.from({ length: height }, (_, y) => Array.from({ length: width }, (_, x) => {
    const at = ((y + 0.5) * scale * canvas.width + (x + 0.5) * scale) * 4;
    return data[at] < 128 ? 1 : 0;
  }).join(''));
});

// A code is known by its corners.
const CORNER = ['1111111', '1000001', '1011101', '1011101', '1011101', '1000001', '1111111'];

test('WeChat, from signing in on the page to an answer on the phone', async () => {
  const ilink = await startIlink({ token: null, holdMs: 500 });
  ending.push(() => ilink.close());
  const at = await own(LINES, { config: `channels:\n  wx: {kind: weixin, base_url: "${ilink.url}"}\n` });
  const { page } = await open('#/settings', { at });
  const channel = page.getByTestId('channel'), login = page.getByTestId('login');
  await channel.and(page.locator('[data-state=needs_login]')).waitFor();
  await channel.getByRole('button').click();
  await inState(login, 'wait');
  assert.equal(await login.getByRole('link').getAttribute('href'), ilink.qr.content);
  const code = await seen(page), size = code.length - 8;
  for (const [x, y] of [[4, 4], [size - 3, 4], [4, size - 3]])
    assert.deepEqual(code.slice(y, y + 7).map((row) => row.slice(x, x + 7)), CORNER);
  ilink.scan();
  await inState(login, 'scanned');
  ilink.askCode('4821');
  await login.getByRole('textbox').fill('1111');
  await login.getByRole('textbox').press('Enter');
  await login.getByText('That is wrong').waitFor();
  await login.getByRole('textbox').fill('4821');
  await login.getByRole('textbox').press('Enter');
  await until('the number', () => ilink.requests.some(({ url }) => url.includes('4821')));
  ilink.confirm({ userId: 'alice' });
  await login.getByText('Signed in.').waitFor();
  await page.keyboard.press('Escape');
  await channel.and(page.locator('[data-state=online]')).waitFor();

  const { stdout } = await run(['channel', 'link', 'wx', '--user', 'local'], { env: { FERMATA_DATA: at.data, FERMATA_CONFIG: join(at.data, 'fermata.yaml') } });
  ilink.say('alice', `/link ${stdout.trim()}`);
  await ilink.waitForSend(/local/);
  ilink.say('alice', 'ask me');
  await ilink.waitForSend(/Which colour/);
  await page.getByTestId('thread').getByRole('link').click();
  const card = log(page).getByTestId('ask-card');
  await card.getByRole('button', { name: 'Red' }).waitFor();
  ilink.say('alice', '2');
  await card.getByText('via WeChat').waitFor();
  assert.match(await card.innerText(), /Answered: *Blue/);
  await page.reload();
  await card.getByText('via WeChat').waitFor();
  assert.deepEqual(ilink.violations, []);
});

describe('channels', () => {
  test('are told with their state, people, and what waits', async () => {
    const { page, rows } = await openWith();
    await page.getByRole('heading', { name: 'Channels' }).waitFor();
    assert.deepEqual(await rows.allInnerTexts().then((list) => list.map((text) => text.split(/\n+/))), [
      ['wx · WeChat · Agent assistant', 'Needs signing in nobody has signed in', 'People: 0 · Messages waiting: 0', 'Sign in'],
      ['oa · WeChat Official Account · Agent assistant', 'Starting', 'People: 12 · Messages waiting: 3 https://example.org/api/v1/agent/channels/oa/webhook'],
      ['tg · Telegram · Agent assistant', 'Online', 'People: 3 · Messages waiting: 0'],
      ['hook · Webhook · Agent assistant', 'Trouble example.org refuses connections', 'People: 1 · Messages waiting: 7'],
    ]);
    assert.equal(await page.getByRole('button', { name: /^Sign in/ }).count(), 1, 'only where somebody can');
  });

  test('are not there when there are none', async () => {
    const { page, rows } = await openWith({ channels: [] });
    await page.getByText('No permission was given').waitFor();
    assert.equal(await rows.count() + await page.getByRole('heading', { name: 'Channels' }).count(), 0);
  });

  test('are not asked for without the role operator', async () => {
    const at = await own();
    const { stdout } = await run(['key', 'add', '--user', 'ann'], { env: { FERMATA_DATA: at.data } });
    const { page, problems, requests } = await open('#/settings', { at });
    problems.allow(/401/);
    await page.locator('#api-key').fill(stdout.trim());
    await page.locator('#api-key').press('Enter');
    await page.getByText('No permission was given').waitFor();
    assert.deepEqual(requests.filter(({ path }) => path.includes('/channels')), []);
    assert.equal(await page.getByRole('heading', { name: 'Channels' }).count(), 0);
  });

  test('one that is refused does not take the others away', async () => {
    const { page, rows, state, problems } = await openWith();
    await rows.nth(3).waitFor();
    problems.allow(/status of 500/);
    await page.route('**/api/v1/agent/channels', (route) => route.fulfill({ status: 500, json: { code: 'internal', status: 500, detail: 'out of order' } }));
    await later(page.getByRole('alert').getByText('out of order'), 5000);
    assert.equal(await rows.count(), 4, 'as they were');
    await page.unroute('**/api/v1/agent/channels');
    state.channels = [];
    await page.route('**/api/v1/agent/channels', (route) => route.fulfill({ json: { channels: [] } }));
    await until('gone', async () => {
      await page.clock.fastForward(5000);
      return await rows.count() === 0;
    });
  });
});

describe('signing in', () => {
  const begin = (page) => page.getByRole('button', { name: 'Sign in wx' }).click();

  test('the code is drawn as it is, black on white, with its margin, in both themes', async () => {
    for (const how of [{ scheme: 'light' }, { scheme: 'dark' }, { scheme: 'dark', forcedColors: 'active' }]) {
      const { page, login, asked } = await openWith(how);
      await begin(page);
      await inState(login, 'wait');
      const blank = '0'.repeat(33), margin = Array(4).fill(blank);
      assert.deepEqual(await seen(page), [...margin, ...ROWS.map((row) => `0000${row}0000`), ...margin]);
      assert.deepEqual(await page.locator('.qr').evaluate((svg) => [getComputedStyle(svg).backgroundColor, getComputedStyle(svg).stroke]), ['rgb(255, 255, 255)', 'rgb(0, 0, 0)']);
      const link = login.getByRole('link');
      assert.deepEqual([await link.getAttribute('href'), await link.innerText()], [CONTENT, CONTENT]);
      assert.deepEqual(asked[0], {});
    }
  });

  test('from the code to the end: scanned, a number, signed in; the list is read again', async () => {
    const { page, login, asked, state, rows } = await openWith({ answers: [{ state: 'wait' }] });
    await begin(page);
    await login.getByText('Loading…').waitFor();
    state.answers = [WAIT];
    await later(login.getByText('Scan the code'));
    state.answers = [{ ...WAIT, state: 'scanned' }];
    await later(login.getByText('Confirm on the phone'));
    assert.equal(await page.locator('.qr').count(), 0, 'a second phone is no use now');
    state.answers = [{ state: 'verify' }];
    const field = login.getByRole('textbox', { name: 'Type the number that the phone shows.' });
    await later(field.and(page.locator(':focus')));
    await field.fill('12a');
    await login.getByRole('button', { name: 'Submit' }).click();
    assert.equal(await field.evaluate((element) => element.validity.patternMismatch), true);
    await field.fill('4711');
    state.typed = [{ state: 'scanned' }, { state: 'verify', detail: 'wrong code' }];
    await field.press('Enter');
    await later(login.getByText('That is wrong. Type the number'));
    assert.deepEqual(asked.filter((one) => one.verifyCode), [{ verifyCode: '4711' }]);
    await login.getByRole('textbox').fill('4712');
    state.channels = [{ ...WX, state: 'online', detail: undefined, people: 1 }];
    state.typed = [{ state: 'done' }];
    await login.getByRole('textbox').press('Enter');
    await login.getByText('Signed in.').waitFor();
    await rows.getByText('Online').waitFor();
    const asks = asked.length;
    await page.keyboard.press('Escape');
    await login.waitFor({ state: 'detached' });
    assert.equal(await page.evaluate(() => document.activeElement.getAttribute('aria-label')), 'Sign in wx', 'the focus is back where it was');
    assert.equal(asked.length, asks, 'what is over is not asked about');
  });

  test('what was typed outlives that the server is asked meanwhile, and a number that comes late is no failure', async () => {
    const { page, login, asked, state, problems } = await openWith({ answers: [{ state: 'verify' }] });
    problems.allow(/status of 409/);
    await begin(page);
    await login.getByRole('textbox').fill('47');
    const asks = asked.length;
    await until('asked again', async () => {
      await page.clock.fastForward(2000);
      return asked.length >= asks + 2;
    });
    assert.equal(await login.getByRole('textbox').inputValue(), '47');
    state.typed = [{ status: 409, code: 'not_current', detail: 'no code is waited for' }, { state: 'done' }];
    await login.getByRole('textbox').press('Enter');
    await login.getByText('Signed in.').waitFor();
  });

  test('expired, or failed: it says so, and begins again', async () => {
    const { page, login, asked, state, problems } = await openWith({ answers: [{ state: 'expired', detail: 'three codes have expired' }] });
    problems.allow(/status of 400/);
    await begin(page);
    await login.getByText('The code has expired.').waitFor();
    state.answers = [{ state: 'failed', detail: 'the platform refused' }];
    await login.getByRole('button', { name: 'Try again' }).click();
    await login.getByText('the platform refused').waitFor();
    state.answers = [{ status: 400, code: 'invalid_field', detail: 'not this one' }];
    await login.getByRole('button', { name: 'Try again' }).click();
    await login.getByText('not this one').waitFor();
    state.answers = [WAIT];
    await login.getByRole('button', { name: 'Try again' }).click();
    await inState(login, 'wait');
    await page.locator('.qr').waitFor();
    assert.deepEqual(asked.slice(0, 4), [{}, { restart: true }, { restart: true }, { restart: true }]);
  });

  test('nobody is asked while nobody looks, or when it was closed', async () => {
    const { page, login } = await openWith();
    await page.evaluate(() => { // counted where it begins: what is on its way is not forgotten
      const { fetch } = window;
      window.asks = 0;
      window.fetch = (url, init) => {
        if (url.endsWith('/login')) window.asks++;
        return fetch(url, init);
      };
    });
    const asked = () => page.evaluate(() => window.asks);
    const hide = (to) => page.evaluate((value) => Object.defineProperty(document, 'hidden', { configurable: true, value }), to);
    const wait = async () => { for (let i = 0; i < 5; i++) await page.clock.runFor(2000); };
    const goesOn = (asks) => until('asked again', async () => {
      await wait();
      return await asked() > asks;
    });
    await begin(page);
    await goesOn(1);
    await hide(true);
    const asks = await asked();
    await wait();
    assert.equal(await asked(), asks);
    await hide(false);
    await goesOn(asks);
    await page.keyboard.press('Escape');
    await login.waitFor({ state: 'detached' });
    const all = await asked();
    await wait();
    assert.equal(await asked(), all);
  });
});

describe('how it looks', () => {
  for (const [name, how] of [
    ['en', {}], ['zh-dark', { locale: 'zh-CN', scheme: 'dark' }], ['zh-phone', { locale: 'zh-CN', width: 320, height: 700, touch: true }],
    ['en-phone-dark', { width: 320, height: 700, touch: true, scheme: 'dark' }],
  ]) {
    test(name, async () => {
      const { page, login, rows, state } = await openWith(how);
      const fits = async () => assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth && document.querySelector('main').scrollWidth <= document.querySelector('main').clientWidth), 'too wide');
      await rows.first().scrollIntoViewIfNeeded();
      await screen(page, `channels-${name}`);
      await fits();
      assert.deepEqual(await axe(page, { include: '[data-testid=settings]' }), []);
      await rows.first().getByRole('button').click();
      await inState(login, 'wait');
      await page.locator('.qr').waitFor();
      await screen(page, `channels-${name}-code`);
      await fits();
      assert.deepEqual(await axe(page, { include: 'dialog' }), []);
      state.answers = [{ state: 'verify', detail: 'wrong code' }];
      await later(login.getByRole('textbox'));
      await screen(page, `channels-${name}-verify`);
      assert.deepEqual(await axe(page, { include: 'dialog' }), []);
      if (how.locale) assert.doesNotMatch(await login.innerText(), /[a-z]/i);
    });
  }
});

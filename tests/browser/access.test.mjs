// SPDX-License-Identifier: Apache-2.0
//
// Who is at the page: signing in with a key, a key that is revoked while somebody writes, two people at one browser.

import assert from 'node:assert/strict';
import { after, afterEach, before, describe, test } from 'node:test';

import { keyId, run } from '../api/home.mjs';
import { axe, LOOKS, newPage, openBrowser, screen, startScripted, until } from './kit.mjs';

const LINES = [{ match: '^slow', turns: [{ text: 'Slowly, slowly. '.repeat(30), chunk: 8, gap_ms: 60 }] }, { turns: [{ text: 'Heard. 听到了。' }] }];
const REFUSALS = /status of 401/; // the browser notes every one

let browser, close, server;
const keys = {};
before(async () => {
  ({ browser, close } = await openBrowser());
  server = await startScripted(LINES);
  for (const user of ['ann', 'bob']) keys[user] = await addKey(user);
});
after(async () => {
  await close?.();
  await server?.stop();
});

// Pages of the test that runs, ended with it.
const opened = [];
afterEach(async () => {
  for (const done of opened.splice(0)) await done();
});

async function fermata(...args) {
  const { code, stdout, stderr } = await run(args, { env: { FERMATA_DATA: server.data } });
  assert.equal(code, 0, stderr);
  return stdout.trim();
}
const addKey = (user) => fermata('key', 'add', '--user', user);
const revoke = (key) => fermata('key', 'revoke', keyId(key));

async function open(options = {}) {
  const one = await newPage(browser, { url: server.url, ...options });
  opened.push(one.done);
  one.problems.allow(REFUSALS);
  await one.page.getByLabel(/API key|API 密钥/).waitFor();
  return one;
}

async function signIn(page, key) {
  await page.locator('#api-key').fill(key);
  await page.getByRole('button', { name: 'Sign in', exact: true }).last().click();
}

const composer = (page) => page.getByTestId('composer');
async function say(page, text) {
  await composer(page).fill(text);
  await page.getByTestId('send').click();
}
const log = (page) => page.getByTestId('log');
const told = (page) => page.evaluate(() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }, location.href, document.cookie]));

describe('signing in', () => {
  test('with the right key one is in, and the key is nowhere', async () => {
    const { page, context, requests } = await open();
    await screen(page, 'sign-in-en-light');
    const field = page.locator('#api-key');
    assert.equal(await field.getAttribute('type'), 'password');
    await page.getByLabel('Show the key').click();
    await page.locator('#api-key[type=text]').waitFor();
    assert.match(await page.locator('main').innerText(), /fermata key add --user NAME/);
    await signIn(page, keys.ann);
    await composer(page).waitFor();
    assert.match(await page.locator('.who').innerText(), /ann/);
    await say(page, 'Hello');
    await log(page).getByText('Heard.').waitFor();

    const secret = keys.ann.split('_').slice(2).join('_'); // it may have one of its own
    assert.ok(!(await told(page)).includes(secret), 'neither storage, address nor a cookie that scripts can read');
    assert.ok(!(await page.content()).includes(secret));
    assert.deepEqual(requests.filter(({ path }) => path.includes(secret)), []);
    assert.equal(requests.filter(({ body }) => body?.includes(secret)).length, 1);
    assert.ok((await context.cookies()).every(({ httpOnly, sameSite }) => httpOnly && sameSite === 'Strict'));
    await page.reload();
    await log(page).getByText('Heard.').waitFor();
  });

  test('with a wrong one it says so, and one may try again', async () => {
    const { page } = await open();
    for (const key of [`${keys.ann.slice(0, -2)}xx`, 'nonsense']) {
      await signIn(page, key);
      await page.getByRole('alert').filter({ hasText: 'does not know this key' }).waitFor();
    }
    assert.equal(await page.evaluate(() => document.activeElement.id), 'api-key');
    assert.equal(await page.locator('#api-key').getAttribute('aria-invalid'), 'true');
    await screen(page, 'sign-in-wrong');
    await page.locator('#api-key').fill('');
    await page.locator('#api-key').press('Enter');
    assert.ok(await page.locator('#api-key:invalid').count());
    await signIn(page, keys.bob);
    await composer(page).waitFor();
  });

  test('a server that was open to everybody and gets its first key asks for it', async (t) => {
    const other = await startScripted(LINES);
    const { page, problems, done } = await newPage(browser, { url: other.url });
    t.after(() => done().finally(other.stop)); // in this order: the page would note that the server is gone
    problems.allow(REFUSALS);
    assert.match(await page.locator('.who').innerText(), /local/);
    await say(page, 'Hello');
    await log(page).getByText('Heard.').waitFor();
    assert.equal(await page.getByRole('button', { name: 'Sign out' }).count(), 0, 'nobody has signed in');
    const { stdout } = await run(['key', 'add', '--user', 'carl'], { env: { FERMATA_DATA: other.data } });
    await say(page, 'And now?');
    await page.locator('[data-testid=banner][data-state=out]').waitFor();
    await page.getByTestId('banner').getByRole('button').click();
    await signIn(page, stdout.trim());
    await page.getByText('carl').waitFor();
    assert.equal(await log(page).count(), 0, 'somebody else begins anew');
    assert.equal(await page.evaluate(() => location.hash), '#/');
  });

  for (const { locale, scheme, width } of LOOKS) {
    test(`has no barriers: ${locale} ${scheme} ${width}`, async () => {
      const { page } = await open({ locale, scheme, width });
      assert.deepEqual(await axe(page), []);
      await screen(page, `sign-in-${locale}-${scheme}-${width}`);
      await page.setViewportSize({ width: 320, height: 600 });
      assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
    });
  }
});

describe('a key that is revoked while somebody writes', () => {
  test('one banner; what was typed stays; the same person goes on where they were', async () => {
    const first = await addKey('dora');
    const { page } = await open();
    await signIn(page, first);
    await say(page, 'Hello');
    await log(page).getByText('Heard.').waitFor();
    const address = page.url();
    await log(page).evaluate((element) => { element.marked = true; });
    await composer(page).fill('half a thought');

    await revoke(first);
    const banner = page.getByTestId('banner');
    await banner.and(page.locator('[data-state=out]')).waitFor(); // on a slow machine it says first that the line is lost
    assert.equal(await banner.count(), 1);
    await log(page).getByText('Heard.').waitFor();
    await composer(page).press('End');
    await composer(page).pressSequentially(', and the rest');
    await screen(page, 'signed-out');

    await banner.getByRole('button').click();
    const dialog = page.locator('dialog[open]');
    assert.deepEqual(await axe(page), []);
    await signIn(dialog, first);
    await dialog.getByRole('alert').waitFor();
    await signIn(dialog, await addKey('dora'));
    await banner.waitFor({ state: 'hidden' });
    await dialog.waitFor({ state: 'detached' });
    assert.equal(page.url(), address);
    assert.equal(await composer(page).inputValue(), 'half a thought, and the rest');
    assert.ok(await log(page).evaluate((element) => element.marked), 'the log was not drawn anew');

    await page.getByTestId('send').click();
    await until('the answer to it, live', async () => (await log(page).innerText()).match(/Heard\./g)?.length === 2);
  });

  test('in the middle of a reply: it is whole after signing in again', async () => {
    const first = await addKey('emil');
    const { page } = await open();
    await signIn(page, first);
    await say(page, 'slow');
    await log(page).getByText('Slowly').waitFor();
    await revoke(first);
    await page.locator('[data-testid=banner][data-state=out]').getByRole('button').click();
    await signIn(page, await addKey('emil'));
    await until('the whole reply', async () => (await log(page).innerText()).match(/Slowly/g)?.length === 30, 30_000);
  });
});

describe('two people at one browser', () => {
  test('never see each other’s conversations or drafts', async () => {
    const { page, problems } = await open();
    problems.allow(/404 .*\/history/); // of the address that is nobody's here
    const enter = async (user) => {
      await signIn(page, keys[user]);
      await page.locator('.who', { hasText: user }).waitFor();
    };
    const leave = async () => {
      await page.getByRole('button', { name: 'Sign out' }).click();
      await page.getByLabel('API key').waitFor();
    };
    const titles = () => page.locator('[data-testid=thread] .thread-title').allInnerTexts();

    await enter('ann');
    await say(page, 'Secret of Ann');
    await page.locator('.thread-title', { hasText: 'Secret of Ann' }).waitFor();
    await composer(page).fill('draft of Ann');
    const hers = page.url();
    await leave();
    assert.ok(!(await page.locator('body').innerText()).includes('Ann'));

    await enter('bob');
    await page.getByText('No conversations yet').waitFor();
    assert.deepEqual(await titles(), []);
    await page.goto(hers); // a foreign id is simply another conversation
    await composer(page).waitFor();
    assert.equal(await composer(page).inputValue(), '');
    await page.goto(`${server.url}/#/`);
    await composer(page).fill('draft of Bob');
    assert.ok(!(await page.locator('body').innerText()).includes('Ann'));
    await leave();

    await enter('ann');
    assert.equal(await composer(page).inputValue(), '');
    await page.locator('.thread-title', { hasText: 'Secret of Ann' }).click();
    await log(page).getByText('Secret of Ann').waitFor();
    assert.equal(await composer(page).inputValue(), 'draft of Ann');
  });

  test('not even when the name of one goes on where that of the other ends', async () => {
    const { page } = await open();
    await signIn(page, await addKey('ann:outbox'));
    await composer(page).fill('mine');
    const names = () => page.evaluate(() => Object.entries(localStorage).filter(([, value]) => value.includes('mine')).map(([name]) => name));
    const [name] = await until('it is kept', async () => (await names()).length && names());
    assert.ok(!name.includes(':ann:'), name);
  });
});

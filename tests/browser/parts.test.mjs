// SPDX-License-Identifier: Apache-2.0
//
// The page in parts: what a browser fetches before the first conversation can be used, and what that weighs; that everything
// else is fetched when it is opened, once; and that a part which cannot be fetched says so, in both languages, and costs
// nobody a word that was typed.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { gzipSync } from 'node:zlib';

import { cuttingProxy, ROOT, settledText, until } from './kit.mjs';
import { begin, composer, log, say, stage } from './stage.mjs';

const FIRST_BYTES_MAX = 90_000, ALL_BYTES_MAX = 220_000; // with gzip
const UNFETCHED = [/Failed to load resource/, /Failed to fetch dynamically imported module/, /error loading dynamically imported module/i, /WebSocket connection/];
const { ending, open, own, server } = stage();

const fetched = (requests) => requests.map(({ path }) => path).filter((path) => !path.startsWith('/api/'));
const scripts = (requests) => fetched(requests).filter((path) => path.endsWith('.js'));
const failed = (page) => page.getByTestId('part-failed');

async function weigh(at, path) {
  const answer = await fetch(at.url + path, { headers: { 'accept-encoding': 'gzip' } });
  assert.equal(answer.status, 200, path);
  const bytes = await answer.arrayBuffer(), small = answer.headers.has('content-encoding') || process.env.FERMATA_PAGE === undefined;
  return small ? Number(answer.headers.get('content-length')) : gzipSync(bytes).length; // as it went over the wire; dev.mjs makes nothing small
}
const sum = async (at, paths) => (await Promise.all([...new Set(paths)].map((path) => weigh(at, path)))).reduce((a, b) => a + b, 0);

// Which file has it, what the person does, what comes of it; its address, if it is a page and no dialog.
const PARTS = {
  inbox: {
    file: /^\/inbox-/, hash: '#/inbox', there: (page) => page.getByTestId('inbox'),
    open: (page) => page.locator('a[href="#/inbox"]').click(),
  },
  settings: {
    file: /^\/settings-/, hash: '#/settings', there: (page) => page.getByTestId('settings'),
    open: (page) => page.locator('a[href="#/settings"]').click(),
  },
  'the list of shortcuts': {
    file: /^\/help-/, there: (page) => page.locator('dialog .keys'),
    open: (page) => page.keyboard.press('Alt+/'),
  },
  'renaming a conversation': {
    file: /^\/thread-dialog-/, there: (page) => page.locator('dialog form input'),
    open: (page) => page.locator('.head h1 button').click(),
  },
};

describe('before anything is opened', () => {
  for (const locale of ['en', 'zh-CN']) {
    test(`a conversation needs little, and nothing more is fetched (${locale})`, async (t) => {
      const at = await own();
      const { page, requests } = await open('', { at, locale });
      await say(page, 'hello');
      await log(page).getByText('Hello there.').waitFor();
      await say(page, 'ask me');
      await page.getByTestId('ask-card').waitFor();
      await settledText(page);
      const html = await (await fetch(`${at.url}/`)).text();
      const named = [...html.matchAll(/(?:src|href)="([^"]*)"/g)].map(([, name]) => `/${name}`);
      const others = [...new Set(fetched(requests))].filter((path) => path !== '/' && !named.includes(path));
      assert.deepEqual(others.map((path) => path.replace(/-[0-9A-Za-z]{8,16}\./, '.')).sort(), ['/icons.svg', `/${locale}.js`].sort(), 'beside what the document names');
      const first = await sum(at, fetched(requests));
      t.diagnostic(`first load (${locale}): ${first} bytes with gzip, ${scripts(requests).length} scripts`);
      assert.ok(first <= FIRST_BYTES_MAX, `${first} bytes with gzip are over ${FIRST_BYTES_MAX}`);
    });
  }

  test('what there is altogether has its limit too', async (t) => {
    const lines = (await readFile(join(ROOT, 'build/page/manifest.txt'), 'utf8')).trim().split('\n').map((line) => line.split('\t')[0]);
    const all = await sum(server(), lines.filter((path) => !['/licences.txt', '/favicon.ico'].includes(path)));
    t.diagnostic(`all: ${all} bytes with gzip`);
    assert.ok(all <= ALL_BYTES_MAX, `${all} bytes with gzip are over ${ALL_BYTES_MAX}`);
  });
});

describe('a part is fetched when it is opened, and once', () => {
  const opened = async (requests, file, act) => {
    const before = scripts(requests);
    assert.ok(!before.some((path) => file.test(path)), `${file} was fetched before`);
    await act();
    const now = scripts(requests).slice(before.length);
    assert.ok(now.some((path) => file.test(path)), `${file} is not among ${now}`);
    return now;
  };

  for (const [name, { file, open: act, there }] of Object.entries(PARTS)) {
    test(name, async () => {
      const at = await own();
      await begin(at, 'one', 'hello');
      const { page, requests } = await open('#/t/one', { at });
      await page.locator('.head h1 button').waitFor();
      await opened(requests, file, async () => {
        await act(page);
        await there(page).waitFor();
      });
      const count = scripts(requests).length;
      await page.keyboard.press('Escape');
      await page.locator('a[href="#/"]').first().click();
      await there(page).waitFor({ state: 'detached' });
      await page.goBack();
      await act(page);
      await there(page).waitFor();
      assert.equal(scripts(requests).length, count);
    });
  }

  test('what has to be approved', async () => {
    const at = await own();
    const { page, requests } = await open('', { at });
    await opened(requests, /^\/decide-/, async () => {
      await say(page, 'book');
      await page.getByTestId('confirm-card').waitFor();
    });
  });

  test('the other language', async () => {
    const { page, requests } = await open('#/settings');
    await opened(requests, /^\/zh-CN-/, async () => {
      await page.getByTestId('language').selectOption('zh-CN');
      await page.getByRole('heading', { name: '设置' }).waitFor();
    });
    await page.getByTestId('language').selectOption('en');
    await page.getByRole('heading', { name: 'Settings' }).waitFor();
    assert.equal(scripts(requests).filter((path) => /^\/(en|zh-CN)-/.test(path)).length, 2);
  });
});

const WORDS = {
  en: { lost: 'the server does not answer', old: 'may have a newer page', retry: 'Try again', reload: 'Load the page again' },
  'zh-CN': { lost: '服务器没有回应', old: '可能已更新', retry: '重试', reload: '重新加载' },
};
const TYPED = 'Half a sentence, 半句话';

// A page with something typed, and a way to take its files away: `gone(file)` is what a server of another version answers.
async function typing(locale, at) {
  await begin(at, 'one', 'hello');
  const view = await open('#/t/one', { at, locale });
  view.problems.allow(...UNFETCHED);
  await composer(view.page).fill(TYPED);
  await view.page.locator('.head h1 button').waitFor();
  return {
    ...view,
    gone: (file) => view.context.route((url) => file.test(url.pathname), (route) => route.continue({ url: `${new URL(route.request().url()).origin}/gone-00000000.js` })),
    there: () => view.context.unrouteAll(),
    async isKept() {
      await view.page.goto(`${at.url}/#/t/one`);
      await until('what was typed', async () => await composer(view.page).inputValue() === TYPED);
    },
  };
}

for (const [locale, words] of Object.entries(WORDS)) {
  describe(`a part that cannot be fetched (${locale})`, () => {
    for (const [name, { file, hash, open: act, there: shown }] of Object.entries(PARTS)) {
      test(`${name}: the server has another version`, async () => {
        const { page, gone, there, isKept } = await typing(locale, await own());
        await gone(file);
        await act(page);
        await failed(page).getByText(words.old).waitFor();
        if (!hash) assert.equal(await composer(page).inputValue(), TYPED);
        await there();
        await Promise.all([page.waitForEvent('load'), failed(page).getByRole('button', { name: words.reload }).click()]);
        await page.locator('.head').waitFor();
        if (!hash) await act(page); // a dialog is opened again; a page is its address
        await shown(page).waitFor();
        await isKept();
      });
    }

    test('the server is gone, and comes back', async () => {
      const at = await own(), proxy = await cuttingProxy(at);
      ending.push(() => proxy.close());
      const { page, isKept } = await typing(locale, { ...at, url: proxy.url });
      proxy.refuse();
      proxy.cut();
      await PARTS.settings.open(page);
      await failed(page).getByText(words.lost).waitFor();
      await page.goBack();
      assert.equal(await composer(page).inputValue(), TYPED);
      await page.goForward();
      await failed(page).getByRole('button', { name: words.retry }).click();
      await failed(page).getByText(words.lost).waitFor();
      assert.equal(await PARTS.settings.there(page).count(), 0);
      proxy.refuse(false);
      await PARTS.settings.there(page).waitFor(); // once the page hears the server again
      await isKept();
    });

    test('what has to be approved says what it is, and what was typed stays', async () => {
      const at = await own();
      const { page, gone, there } = await typing(locale, at);
      await gone(/^\/decide-/);
      await begin(at, 'one', 'book');
      await failed(page).getByText(words.old).waitFor();
      assert.match(await page.locator('section.decide h3').innerText(), /Review|calendar/i);
      assert.equal(await composer(page).inputValue(), TYPED);
      await there();
      await Promise.all([page.waitForEvent('load'), failed(page).getByRole('button', { name: words.reload }).click()]);
      await page.getByTestId('confirm-card').waitFor();
      assert.equal(await composer(page).inputValue(), TYPED);
    });

    test('the other language: the page stays as it is', async () => {
      const { page, gone, there, isKept } = await typing(locale, await own());
      const other = locale === 'en' ? 'zh-CN' : 'en';
      await gone(new RegExp(`^/${other}-`));
      await PARTS.settings.open(page);
      await page.getByTestId('language').selectOption(other);
      await failed(page).getByText(words.old).waitFor();
      assert.equal(await page.locator('html').getAttribute('lang'), locale);
      await there();
      await Promise.all([page.waitForEvent('load'), failed(page).getByRole('button', { name: words.reload }).click()]);
      await until('the other language', async () => await page.locator('html').getAttribute('lang') === other && await failed(page).count() === 0);
      await isKept();
    });
  });
}

test('a page without words says so in both languages', async () => {
  const { page, gone, there, isKept } = await typing('en', await own());
  await gone(/^\/en-/);
  await page.reload();
  const told = page.getByTestId('speechless');
  await told.getByText('The page was not loaded completely').waitFor();
  await told.getByText('页面没有完整加载').waitFor();
  await there();
  await told.getByRole('button').click();
  await composer(page).waitFor();
  await isKept();
});

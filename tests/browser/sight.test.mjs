// SPDX-License-Identifier: Apache-2.0
//
// What is approved was seen, on the page: nothing can be approved before all of it was in sight, whatever its size
// (tests/api/sight.mjs), a card is met at its head, and whoever may not approve is not asked to.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { promisify } from 'node:util';

import { buildFolder } from '../api/server.mjs';
import { CASES, HARM, scriptOf, toolOf } from '../api/sight.mjs';
import { axe, drawn, LONG, newPage, openBrowser, screen, startScripted, until } from './kit.mjs';

const MEETING = {
  title: 'Quarterly review', start_time: '2030-01-31T15:00:00+08:00', end_time: '2030-01-31T16:00:00+08:00', location: 'Room 4, production building',
  attendees: ['ann@example.org', 'bob@example.org', 'carol@example.org', 'dave@example.org'],
};
const FORM = Array.from({ length: 6 }, (_, i) => ({ name: `f${i}`, label: `Field ${i}`, type: 'text', description: 'Some words about it.' }));
const LINES = [
  { match: '^book', turns: [{ text: 'Some words before it. '.repeat(20), calls: [{ name: 'calendar_write', args: MEETING }] }, { text: 'Booked.' }] },
  { match: '^form', turns: [{ text: 'Some words before it.', calls: [{ name: 'ask_user', args: { question: 'Who comes?', fields: FORM } }] }, { text: 'Noted.' }] },
  ...scriptOf('obey'),
];
const SIZES = { desktop: [1440, 900], small: [320, 568], ...LONG && { phone: [390, 844], zoomed: [720, 450] } };

let chromium, server, shop, ran = 0;
before(async () => {
  chromium = await openBrowser();
  shop = createServer((request, response) => request.resume().on('end', () => {
    ran++;
    response.end('{"content":"Done"}');
  })).listen(0, '127.0.0.1');
  await once(shop, 'listening');
  server = await startScripted(LINES, { config: toolOf('obey', `http://127.0.0.1:${shop.address().port}/`) });
});
after(async () => {
  await chromium?.close();
  await server?.stop();
  shop?.close();
  shop?.closeAllConnections();
});

let number = 0;
async function post(path, body, headers = {}, at = server) {
  const answer = await fetch(`${at.direct ?? at.url}/api/v1/agent${path}`, { method: 'POST', headers: { 'content-type': 'application/json', ...headers }, body: JSON.stringify(body) });
  assert.ok(answer.ok, await answer.clone().text());
  return answer.json();
}
async function open(t, text, how = {}) {
  const threadId = `t${++number}`;
  await post('/runs', { threadId, messages: [{ role: 'user', content: text }] });
  const seen = await newPage(chromium.browser, { url: `${server.url}/#/t/${threadId}`, ...how });
  t.after(seen.done);
  await seen.page.locator('[data-testid=confirm-card], [data-testid=ask-card]').waitFor();
  return { ...seen, threadId };
}

const rowOf = (page) => page.getByTestId('decide-row');
const approve = (page) => rowOf(page).getByRole('button', { name: 'Approve', exact: true });
const stateIs = (page, state) => until(`the controls are ${state}`, async () => await rowOf(page).getAttribute('data-state') === state);
const boxOf = (page, selector) => page.locator(selector).first().evaluate((node) => {
  const { top, bottom } = node.getBoundingClientRect();
  return { top, bottom };
});
const atRest = async (page) => {
  for (let before; ;) {
    await drawn(page);
    const now = await page.locator('.scroller').evaluate(({ scrollTop, scrollHeight }) => `${scrollTop} ${scrollHeight}`);
    if (now === before) return;
    before = now;
  }
};

// By the button alone, as with a keyboard.
async function readOn(page, max = 100) {
  for (let i = 0; i < max; i++) {
    // All of one moment, with the press: it may be armed in the next.
    const [state, disabled, left, where] = await until('a state', () => approve(page).evaluate((button) => {
      const row = button.closest('[data-testid=decide-row]'), { state } = row.dataset, next = document.querySelector('[data-testid=decide-next]');
      if (state !== 'armed' && (state !== 'reading' || !next)) return null;
      const seen = [state, button.getAttribute('aria-disabled'), row.getAttribute('data-left'), document.querySelector('.scroller').scrollTop];
      if (state === 'reading') next.click();
      return seen;
    }));
    if (state === 'armed') return i;
    assert.equal(disabled, 'true');
    await until('it goes on', async () => await rowOf(page).getAttribute('data-state') !== 'reading' || await rowOf(page).getAttribute('data-left') !== left
      || await page.locator('.scroller').evaluate(({ scrollTop }) => scrollTop) !== where);
    await page.waitForTimeout(350); // a person reads: that long a line has to stand there
  }
  throw new Error('it never ends');
}

// All that stands in the card.
const wordsOf = (page) => page.getByTestId('confirm-card').evaluate((card) => {
  const texts = [card.innerText];
  for (const one of card.querySelectorAll('ui-schema')) texts.push(one.shadowRoot.textContent);
  return texts.join('\n');
});

describe('a card is met at its head', () => {
  for (const [size, [width, height]] of Object.entries(SIZES)) {
    for (const [what, head] of [['book', '[data-testid=decide-head]'], ['form', '[data-testid=ask-card] h3']]) {
      test(`${what}, ${size}`, async (t) => {
        const { page, threadId } = await open(t, what, { width, height });
        const seen = async (how) => {
          await atRest(page);
          const box = await boxOf(page, '.scroller'), { top, bottom } = await boxOf(page, head);
          assert.ok(top >= box.top - 1 && bottom <= box.bottom + 1, `${how}: ${top}..${bottom} in ${box.top}..${box.bottom}`);
        };
        await seen('opened');
        await screen(page, `sight-${what}-${size}`);
        await page.locator('.scroller').evaluate((box) => { box.scrollTop = 0; });
        await page.keyboard.press('Alt+KeyQ');
        await seen('by its key');
        await page.goto(`${page.url().replace(/#.*/, '')}#/inbox`);
        await page.getByTestId('inbox').waitFor();
        await page.evaluate((id) => { location.hash = `#/t/${id}`; }, threadId);
        await page.locator(head).waitFor();
        await seen('again');
      });
    }
  }

  test('head and controls stay while it is scrolled; only then it is armed, with the keyboard too', async (t) => {
    const { page } = await open(t, 'book', { width: 390, height: 700 });
    await stateIs(page, 'reading');
    assert.equal(await page.getByTestId('decide-risk').getAttribute('data-risk'), 'write');
    assert.match(await page.getByTestId('decide-next').innerText(), /Scroll to the end to approve/);
    assert.equal(await approve(page).getAttribute('aria-describedby'), await page.getByTestId('decide-next').getAttribute('id'));
    await approve(page).click({ force: true });
    assert.equal(await page.getByTestId('confirm-card').getAttribute('data-state'), 'pending', 'a press before does not count');
    assert.deepEqual(await axe(page, { include: '[data-testid=confirm-card]' }), []);
    await page.locator('.scroller').evaluate((box) => { box.scrollTop += 60; });
    await drawn(page);
    const box = await boxOf(page, '.scroller');
    assert.ok((await boxOf(page, '[data-testid=decide-head]')).top >= box.top - 1);
    assert.ok((await boxOf(page, '[data-testid=decide-row]')).top < box.bottom);
    await page.getByTestId('decide-next').focus();
    for (let i = 0; i < 30 && await rowOf(page).getAttribute('data-state') !== 'armed'; i++) {
      if (await page.evaluate(() => document.activeElement?.dataset.testid === 'decide-next')) await page.keyboard.press('Enter');
      await page.waitForTimeout(350);
    }
    await stateIs(page, 'armed');
    assert.equal(await page.evaluate(() => document.activeElement?.dataset.testid), 'decide-row', 'going on does not end on a button that decides');
    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    await page.getByText('Booked.', { exact: true }).waitFor();
  });
});

describe('nothing is approved that was not shown', () => {
  const picked = new Set(['65,536 characters', '65,537 characters', '66,062 characters behind 260 arguments', '260 arguments of which each is long', '4,001 arguments', 'hidden characters']);
  for (const [i, { name, json }] of CASES.entries()) {
    if (!picked.has(name)) continue;
    test(name, async (t) => {
      const { page, threadId } = await open(t, `case ${i}`, { width: 1600, height: 12_000 }); // to be through with it in a few steps
      const before = ran;
      await readOn(page);
      const words = await wordsOf(page), cut = await page.locator('[data-testid=confirm-card] ui-schema').getAttribute('cut');
      assert.ok(words.includes(HARM), 'the end stands there');
      if (cut) { // then the exact arguments stand below, every one of them
        const exact = await page.locator('.decide-exact').innerText();
        assert.equal(exact.replace(/⟦U\+([0-9A-F]+)⟧/g, (_, code) => String.fromCodePoint(parseInt(code, 16))), JSON.stringify(JSON.parse(json)));
      } else assert.doesNotMatch(words, /not shown/);
      assert.equal(ran, before);
      await approve(page).click();
      await until('it ran', () => ran === before + 1);
      await until('the end', async () => (await (await fetch(`${server.direct ?? server.url}/api/v1/agent/runs/${threadId}`)).json()).status === 'completed');
    });
  }
});

describe('who may not approve', () => {
  const MINE = /Your approval is needed|需要你的批准/;
  const keys = {};
  let own;
  before(async () => {
    own = await startScripted(LINES, { config: 'agents: {assistant: {approvers: {calendar_write: approver}}}\n' });
    const key = async (user, ...roles) => (await promisify(execFile)(join(buildFolder(), 'fermata'),
      ['key', 'add', '--user', user, ...roles.flatMap((role) => ['--role', role]), '--data', own.data])).stdout.trim();
    for (const [user, ...roles] of [['ann', 'user'], ['amy', 'user', 'approver'], ['bob', 'user']]) keys[user] = await key(user, ...roles);
  });
  after(() => own?.stop());

  // What they have asked for, as they see it.
  async function ask(t, user, locale) {
    const threadId = `${user}-${locale}`, content = locale === 'en' ? 'book' : 'book：请替我约一个会';
    await post('/runs', { threadId, messages: [{ role: 'user', content }] }, { authorization: `Bearer ${keys[user]}` }, own);
    const seen = await newPage(chromium.browser, { url: `${own.url}/`, locale }), { page } = seen;
    t.after(seen.done);
    seen.problems.allow(/401/);
    await page.evaluate((value) => fetch('api/v1/session', { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ key: value }) }), keys[user]);
    await page.goto(`${own.url}/#/t/${threadId}`);
    await page.reload();
    return page;
  }

  // Neither in the words of the page nor in those of the server, which makes the card in the language of the message.
  for (const [locale, who] of [['en', 'Somebody with the role “approver” decides this.'], ['zh-CN', '需要“approver”角色的人来决定。']]) {
    test(`does not read that their approval is needed, in what they have asked for: ${locale}`, async (t) => {
      const page = await ask(t, 'bob', locale);
      await page.getByTestId('confirm-card').getByText(who).waitFor();
      assert.doesNotMatch(await wordsOf(page), MINE);
      assert.doesNotMatch(await page.locator('body').innerText(), MINE);
    });
  }

  for (const [user, why, locale] of [['ann', /Somebody with the role “approver” decides this/, 'en'], ['amy', /另一位“approver”角色的人来决定/, 'zh-CN']]) {
    test(`reads that somebody else decides, and is not counted as waited for: ${user}`, async (t) => {
      const page = await ask(t, user, locale), card = page.getByTestId('confirm-card');
      await card.waitFor();
      assert.equal(await card.getAttribute('data-may'), 'no');
      await page.getByTestId('waiting-approver').getByText(why).waitFor();
      const words = await wordsOf(page);
      assert.doesNotMatch(words, MINE);
      assert.match(words, /Waiting for an approver|等待批准者/);
      assert.equal(await rowOf(page).count(), 0, 'no controls');
      await drawn(page);
      // amy may approve what the others asked for: that is hers to answer
      assert.equal(await page.getByTestId('inbox-count').count(), user === 'ann' ? 0 : 1);
      assert.equal(/^\(\d/.test(await page.title()), user === 'amy');
      assert.doesNotMatch(await page.getByTestId('step-intent').innerText(), /waiting for you|等待你/);
      await screen(page, `sight-role-${user}`);
    });
  }
});

describe('a rejection', () => {
  test('is one calm line in the language of the page: no error, no JSON, no card of the call', async (t) => {
    const { page } = await open(t, 'book', { locale: 'zh-CN', height: 1200 });
    const press = async () => {
      const button = rowOf(page).getByRole('button', { name: '拒绝', exact: true });
      await button.and(page.locator(':not([aria-disabled=true])')).waitFor();
      await button.click();
    };
    await press();
    await page.keyboard.type('不是这天');
    await press();
    await page.getByText('Booked.', { exact: true }).waitFor();
    const card = page.getByTestId('confirm-card');
    assert.deepEqual([await card.getAttribute('data-state'), await card.getAttribute('data-decision')], ['resolved', 'reject']);
    const check = async () => {
      assert.equal(await page.getByTestId('tool-card').count(), 0);
      const words = await page.getByTestId('log').innerText();
      assert.equal(words.split('不是这天').length, 2, words);
      assert.doesNotMatch(words, /rejected|失败|\{/);
      assert.equal(await page.getByTestId('log').locator('.error, [data-state=error]').count(), 0);
    };
    await check();
    await screen(page, 'sight-rejected');
    await page.reload();
    await page.getByText('Booked.', { exact: true }).waitFor();
    await check();
  });
});

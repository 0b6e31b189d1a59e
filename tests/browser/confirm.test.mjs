// SPDX-License-Identifier: Apache-2.0
//
// Decisions on the page: approvals with everything that can be done about them, calls whose outcome is unknown, and
// connections that are gone. What was really run is told by a shop outside of the server, which keeps every order as the
// bytes that came.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { after, before, describe, test } from 'node:test';

import { buildFolder } from '../api/server.mjs';
import { axe, LONG as LONG_FORM, newPage, openBrowser, screen, settledText, startScripted, until } from './kit.mjs';

const AGENT = '/api/v1/agent';
const BIG = '9007199254740993'; // one more than a double can tell apart
const ARM_MS = 600; // of web/app/src/view/arming.ts

let chromium;
before(async () => { chromium = await openBrowser(); });
after(() => chromium?.close());

// What was opened last is closed first.
const opened = new WeakMap();
function atEnd(t, close) {
  if (!opened.has(t)) {
    opened.set(t, []);
    t.after(async () => {
      const failed = [];
      for (const one of opened.get(t).reverse()) await Promise.resolve().then(one).catch((error) => failed.push(error));
      if (failed.length) throw failed[0];
    });
  }
  opened.get(t).push(close);
}

// ---- the shop ----

const SCHEMA = {
  type: 'object', required: ['item', 'count'], additionalProperties: false,
  properties: {
    item: { type: 'string', description: 'What to order' },
    count: { type: 'integer', minimum: 1, maximum: 100 },
    price: { type: 'number' },
    gift: { type: 'boolean', description: 'Wrapped as a present' },
    speed: { enum: ['slow', 'fast'] },
    serial: { type: 'integer' },
    address: { type: 'object', description: 'Where it goes' },
    notes: { type: 'string' },
  },
};
const ORDER = `{"item":"pens","count":2,"price":1.50,"gift":false,"speed":"slow","serial":${BIG},"address":{"city":"Oslo","zip":"0150"}}`;

async function openShop(t) {
  const shop = { orders: [], hold: false };
  const server = createServer({ keepAliveTimeout: 1 }, (asked, response) => {
    const pieces = [];
    asked.on('error', () => {});
    asked.on('data', (piece) => pieces.push(piece)).on('end', () => {
      shop.orders.push(Buffer.concat(pieces).toString());
      if (shop.hold) return;
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ content: `Order ${shop.orders.length} placed`, result: { order: shop.orders.length } }));
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  atEnd(t, () => { server.closeAllConnections(); server.close(); });
  const tool = (name, more) => `  - http: ${JSON.stringify({ name, url: `http://127.0.0.1:${server.address().port}/`, description: 'Places an order.', schema: SCHEMA, effect: 'write', ...more })}\n`;
  shop.config = `tools:\n${tool('place_order', { risk: 'external' })}${tool('burn_stock', { risk: 'destructive' })}`;
  return shop;
}

// ---- what the model does ----

const calls = (name, args) => ({ turns: [{ text: 'I will see to it.', calls: [{ name, args }] }, { text: 'Done.' }] });
const HIDDEN = 'pens\u202Egpj.exe\u200B';
const LONG = Array.from({ length: 60 }, (_, i) => `Line ${i + 1} of the notes, which go on and on.`).join('\n');
const TWELVE = Array.from({ length: 12 }, (_, i) => `Short ${i + 1}`).join('\n');
const PLAN = { steps: [{ content: 'Read the calendar', done_when: 'All events are known' }, { content: 'Write the report' }] };
const SCRIPT = [
  { match: '^order', ...calls('place_order', ORDER) },
  { match: '^下单', turns: [{ calls: [{ name: 'place_order', args: ORDER }] }, { text: '完成。' }] },
  { match: '^hidden', ...calls('place_order', { item: HIDDEN, count: 1, notes: LONG }) },
  { match: '^twelve', ...calls('place_order', { item: 'x', count: 1, notes: TWELVE }) },
  { match: '^huge', ...calls('place_order', { item: 'x', count: 1, notes: `BEGIN ${'0123456789'.repeat(20_000)} END` }) },
  { match: '^burn', ...calls('burn_stock', ORDER) },
  { match: '^twice', turns: [{ calls: [{ name: 'place_order', args: ORDER }] }, { calls: [{ name: 'place_order', args: ORDER }] }, { text: 'Done.' }] },
  { match: '^plan', ...calls('submit_plan', PLAN) },
  { match: '^lost', turns: [{ text: 'Here again.', fail: { at: 'start', status: 503, times: 3 } }] },
  { turns: [{ text: 'Hello.' }] },
];

// ---- a person at a page ----

let number = 0;

async function begin(t, { text, page: how = {}, server: given, shop: kept, threadId = `t${++number}` } = {}) {
  const shop = kept ?? await openShop(t);
  const server = given ?? await startScripted(SCRIPT, { config: shop.config });
  const api = (path, options) => fetch((server.direct ?? server.url) + AGENT + path, options);
  const post = async (path, body) => {
    const answer = await api(path, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) });
    assert.ok(answer.ok, await answer.clone().text());
    return answer.json();
  };
  const view = (more = {}) => newPage(chromium.browser, { url: `${server.url}/#/t/${threadId}`, height: 1200, ...how, ...more }); // so high that a card is seen at once
  if (!given) atEnd(t, () => (server.proc.exitCode ?? server.proc.signalCode) === null ? server.stop() : undefined);
  if (text) await post('/runs', { threadId, messages: [{ id: `u${number}`, role: 'user', content: text }] });
  const seen = await view();
  atEnd(t, () => seen.done());
  const home = { ...seen, shop, server, api, post, view, threadId };
  home.answers = (requests = seen.requests) => requests.filter(({ method, path }) => method === 'POST' && path.endsWith('/answer')).map(({ body }) => body);
  home.finished = () => until('the run is over', async () => (await (await api(`/runs/${threadId}`)).json()).status === 'completed');
  return home;
}

const cardOf = (page, kind = 'confirm') => page.getByTestId(`${kind}-card`);
const button = (page, name) => page.locator('[data-testid=confirm-card], [data-testid=decide-card]').getByRole('button', { name, exact: true });
const said = (page, text = 'Done.') => page.getByTestId('log').getByText(text, { exact: true }).waitFor();

// As a person does: once it is in sight and everything has come to rest.
async function press(page, name) {
  await button(page, name).scrollIntoViewIfNeeded();
  await page.evaluate(() => new Promise((done) => { requestAnimationFrame(() => requestAnimationFrame(() => requestAnimationFrame(done))); }));
  await button(page, name).and(page.locator(':not([aria-disabled=true])')).waitFor(); // a click that has to wait scrolls
  await button(page, name).click();
}

// Through all of a card that is higher than the window, until it may be approved.
const readAll = (page) => until('all of it was seen', async () => {
  await page.getByTestId('decide-next').evaluateAll(([button]) => button?.click());
  await page.waitForTimeout(350); // that long a line has to stand there
  return await page.locator('.decide-row').getAttribute('data-state') === 'armed';
});

// Of the page's time to arm nothing passes until goOn(): a slow machine would miss it.
function holdArming(page) {
  return page.evaluate((ms) => {
    const later = window.setTimeout, at = performance.now(), held = [];
    performance.now = () => at;
    window.setTimeout = (fn, after, ...rest) => (after === ms ? void held.push(() => later(fn, after, ...rest)) : later(fn, after, ...rest));
    window.goOn = () => {
      delete performance.now;
      window.setTimeout = later;
      for (const begin of held) begin();
    };
  }, ARM_MS);
}
const goOn = (page) => page.evaluate(() => window.goOn());
const isState = (page, state, kind) => cardOf(page, kind).and(page.locator(`[data-state="${state}"]`)).waitFor();
const summary = (page, kind) => cardOf(page, kind).locator('summary');
const control = (page, name) => cardOf(page).locator(`.argument[data-name="${name}"]`);

// What the card says: its head, and the server's card, its shadow included.
const cardText = async (page) => `${(await page.getByTestId('decide-head').allInnerTexts()).join()}\n${await cardOf(page).getByTestId('ui-schema').evaluate(({ shadowRoot }) => [...shadowRoot.children].map(({ innerText }) => innerText).join('\n'))}`;

// Nothing that can be focused, but the fold.
const focusables = (card) => card.evaluate((element) => [...element.querySelectorAll('button, input, select, textarea, a[href], [tabindex="0"], summary')].map(({ localName }) => localName));

// Live equals history.
async function sameAfterReload(page) {
  await said(page);
  const live = await settledText(page);
  await page.reload();
  await said(page);
  assert.equal(await settledText(page), live);
}

describe('what is approved', () => {
  test('all of it is in sight: whole up to 12 lines, else head, tail and count; hidden characters are marked', async (t) => {
    const { page, threadId, post } = await begin(t, { text: 'hidden' });
    const card = cardOf(page);
    await card.getByText('pens⟦U+202E⟧gpj.exe⟦U+200B⟧', { exact: true }).waitFor();
    const text = await cardText(page);
    for (const seen of ['pens⟦U+202E⟧gpj.exe⟦U+200B⟧', 'place_order', 'Line 1 of', 'Line 60 of', 'Reaches outside'])
      assert.ok(text.includes(seen), `${seen} in ${text}`);
    assert.match(text, /⟦[\d,]+ characters between are not shown⟧/);
    assert.ok(!text.includes('Line 30 of'));
    await screen(page, 'confirm-long');
    await press(page, 'Show all');
    await card.getByText('Line 30 of').waitFor();
    await post('/runs', { threadId: `${threadId}-12`, messages: [{ id: 'x', role: 'user', content: 'twelve' }] });
    await page.evaluate((id) => { location.hash = `#/t/${id}`; }, `${threadId}-12`);
    await card.getByText('Short 12').waitFor();
    assert.ok((await cardText(page)).includes('Short 7'));
    assert.equal(await button(page, 'Show all').count(), 0);
  });

  test('a card too large for its event is read, and the end of the value stands there', async (t) => {
    const { page } = await begin(t, { text: 'huge' });
    await cardOf(page).getByText(/END$/).waitFor();
    assert.match(await cardText(page), /BEGIN 0123[^]*not shown⟧[^]*6789 END/);
    assert.deepEqual(await axe(page, { include: '[data-testid=confirm-card]' }), []);
  });
});

describe('arming', () => {
  test('a press at once is ignored; a double click is one decision', async (t) => {
    const { page, problems, answers, shop, post, threadId, finished } = await begin(t, {});
    problems.allow(/404 .*history/); // of a conversation that does not exist yet
    await page.evaluate(() => {
      const watch = new MutationObserver(() => {
        const first = document.querySelector('[data-testid=confirm-card] .decide-row button');
        if (!first) return;
        watch.disconnect();
        first.click();
        window.pressed = { state: first.parentElement.dataset.state, off: first.ariaDisabled };
      });
      watch.observe(document.body, { childList: true, subtree: true });
    });
    await holdArming(page);
    await post('/runs', { threadId, messages: [{ id: 'a', role: 'user', content: 'order' }] });
    await page.waitForFunction(() => window.pressed);
    assert.deepEqual(await page.evaluate(() => window.pressed), { state: 'arming', off: 'true' });
    await goOn(page);
    await page.locator('.decide-row[data-state=armed]').waitFor();
    assert.deepEqual(answers(), []);
    await button(page, 'Approve').dblclick();
    await finished();
    await isState(page, 'resolved');
    assert.equal(answers().length, 1);
    assert.equal(shop.orders.length, 1);
    assert.equal(shop.orders[0], ORDER, 'byte for byte');
    await sameAfterReload(page);
  });

  test('approve, then reject at once: the first counts', async (t) => {
    const { page, answers, shop, finished } = await begin(t, { text: 'order' });
    await page.locator('.decide-row[data-state=armed]').waitFor();
    await page.evaluate(() => {
      const [approve, , reject] = document.querySelectorAll('.decide-row button');
      approve.click();
      reject.click();
      approve.click();
    });
    await finished();
    await isState(page, 'resolved');
    assert.deepEqual(answers().map((body) => JSON.parse(body).decision), ['approve']);
    assert.equal(shop.orders.length, 1);
  });

  test('moved under the pointer: the press is ignored', async (t) => {
    const { page, answers } = await begin(t, { text: 'order', page: { height: 1600 } }); // nothing scrolls
    await page.locator('.decide-row[data-state=armed]').waitFor();
    const box = () => button(page, 'Approve').boundingBox();
    const { x, y } = await box();
    await page.mouse.move(x + 20, y + 75); // where the button is about to be
    await holdArming(page);
    await page.evaluate(() => new Promise((done) => {
      const block = document.createElement('div');
      block.style.height = '48px';
      document.querySelector('[data-testid=confirm-card]').before(block);
      requestAnimationFrame(() => requestAnimationFrame(done));
    }));
    await page.mouse.down();
    await page.mouse.up();
    await page.locator('.decide-row[data-state=arming]').waitFor();
    const { y: now, height } = await box();
    assert.ok(now < y + 75 && y + 75 < now + height, 'it was hit');
    await goOn(page);
    await page.locator('.decide-row[data-state=armed]').waitFor();
    assert.deepEqual(answers(), []);
    assert.equal(await cardOf(page).getAttribute('data-state'), 'pending');
  });
});

describe('deciding', () => {
  test('with the keyboard alone; focus goes to what is left', async (t) => {
    const { page, finished, answers } = await begin(t, { text: 'order' });
    await page.locator('.decide-row[data-state=armed]').waitFor();
    await cardOf(page).locator('h3').first().focus();
    for (let i = 0; i < 10 && !await button(page, 'Approve').evaluate((element) => element === document.activeElement); i++) await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    await finished();
    await isState(page, 'resolved');
    await page.waitForFunction(() => document.activeElement?.localName === 'summary');
    assert.equal(answers().length, 1);
    assert.deepEqual(await focusables(cardOf(page)), ['summary']);
    const { binding } = JSON.parse(answers()[0]);
    assert.ok(binding.length > 20, 'bound to what was shown');
  });

  test('rejected with a reason: recorded, and never run', async (t) => {
    const { page, shop, answers, finished } = await begin(t, { text: 'order' });
    await press(page, 'Reject');
    const reason = page.getByLabel('Why not?');
    assert.ok(await reason.evaluate((element) => element === document.activeElement));
    await page.keyboard.type('Too dear');
    await page.reload();
    assert.equal(await page.getByLabel('Why not?').inputValue(), 'Too dear', 'kept');
    await press(page, 'Reject');
    await finished();
    await summary(page).getByText('Rejected: Too dear').waitFor();
    assert.equal(JSON.parse(answers()[0]).comment, 'Too dear');
    assert.deepEqual(shop.orders, []);
    await sameAfterReload(page);
    await screen(page, 'confirm-rejected');
  });

  test('a reply instead', async (t) => {
    const { page, shop, answers, finished } = await begin(t, { text: 'order' });
    await press(page, 'Reply instead');
    assert.equal(await button(page, 'Reply instead').getAttribute('aria-disabled'), 'true', 'something has to be said');
    await page.keyboard.type('Ask Ann first');
    await press(page, 'Reply instead');
    await finished();
    await summary(page).getByText('Not run, replied: Ask Ann first').waitFor();
    assert.deepEqual([JSON.parse(answers()[0]).decision, shop.orders], ['respond', []]);
    await sameAfterReload(page);
  });

  test('what cannot be undone takes a second press; two at once are one', async (t) => {
    const { page, shop, answers, finished } = await begin(t, { text: 'burn' });
    await page.locator('.decide-row[data-state=armed]').waitFor();
    await button(page, 'Approve').scrollIntoViewIfNeeded();
    await holdArming(page);
    await button(page, 'Approve').dblclick();
    await button(page, 'Press again to confirm').waitFor();
    await goOn(page);
    await page.locator('.decide-row[data-state=armed]').waitFor();
    assert.deepEqual(answers(), []);
    await screen(page, 'confirm-destructive');
    await press(page, 'Press again to confirm');
    await finished();
    assert.deepEqual([answers().length, shop.orders.length], [1, 1]);
  });

  test('for the conversation: a grant is listed, and the next call is not asked about', async (t) => {
    const { page, shop, api, finished, threadId } = await begin(t, { text: 'twice' });
    await page.getByLabel('How far the approval goes').selectOption('thread');
    await press(page, 'Approve');
    await finished();
    assert.equal(shop.orders.length, 2);
    const { grants } = await (await api('/grants')).json();
    assert.deepEqual(grants.map(({ toolName, scope, threadId: of, match }) => [toolName, scope, of, match]), [['place_order', 'thread', threadId, {}]]);
    assert.equal(await cardOf(page).count(), 1);
    await sameAfterReload(page);
  });

  test('two browsers: approved in one, it is read-only in the other, and runs once', async (t) => {
    const { page, view, shop, finished } = await begin(t, { text: 'order' });
    const other = await view();
    atEnd(t, () => other.done());
    await press(other.page, 'Edit');
    await control(other.page, 'item').getByRole('textbox').fill('pencils');
    await press(page, 'Approve');
    await summary(other.page).getByText('Approved', { exact: true }).waitFor();
    await finished();
    assert.equal(shop.orders.length, 1);
    await said(other.page);
    assert.equal(await other.page.getByTestId('tool-card').count(), 1);
    await other.page.getByText('What was not sent').click();
    await cardOf(other.page).getByText('item: pencils').waitFor();
    await screen(other.page, 'confirm-elsewhere');
    await press(other.page, 'Delete');
    assert.deepEqual(await focusables(cardOf(other.page)), ['summary']);
    await said(page);
    assert.equal(await settledText(page), await settledText(other.page));
  });

  test('two tabs of one browser: approved in one, the reason typed in the other is kept', async (t) => {
    const { page, tab, finished } = await begin(t, { text: 'order' });
    const other = await tab();
    await press(other, 'Reject');
    await other.keyboard.type('It took me ten minutes');
    await press(page, 'Approve');
    await finished();
    for (const again of [false, true]) {
      if (again) await other.reload();
      await other.getByText('What was not sent').click();
      await cardOf(other).locator('pre').getByText('It took me ten minutes').waitFor();
    }
  });

  test('two at the same moment: one wins, the other sees what was decided and keeps its words', async (t) => {
    const { page, view, shop, answers, finished } = await begin(t, { text: 'order' });
    const other = await view();
    atEnd(t, () => other.done());
    other.problems.allow(/409/);
    await press(other.page, 'Reject');
    await other.page.keyboard.type('No money');
    await other.context.setOffline(true); // it hears nothing, and its answer waits
    await press(other.page, 'Reject');
    other.problems.allow(/ERR_INTERNET_DISCONNECTED/);
    await press(page, 'Approve');
    await finished();
    await other.context.setOffline(false);
    await summary(other.page).filter({ hasText: 'Approved' }).waitFor();
    await other.page.getByText('What was not sent').click();
    await cardOf(other.page).locator('pre').getByText('No money').waitFor();
    assert.deepEqual([answers().length, shop.orders.length], [1, 1]);
    await other.page.reload();
    await other.page.getByText('What was not sent').waitFor();
  });

  test('by somebody with the role, in the inbox; its owner sees who decides', async (t) => {
    const shop = await openShop(t);
    const server = await startScripted(SCRIPT, { config: `${shop.config}agents: {assistant: {approvers: {place_order: approver}}}\n` });
    atEnd(t, () => server.stop());
    const keyOf = async (user, role) => {
      const env = { ...process.env, FERMATA_DATA: server.data };
      const { stdout } = await promisify(execFile)(join(buildFolder(), 'fermata'), ['key', 'add', '--user', user, '--role', role], { env });
      return stdout.trim();
    };
    const enter = async (key, hash) => {
      const seen = await newPage(chromium.browser, { url: `${server.url}/${hash}` });
      atEnd(t, () => seen.done());
      seen.problems.allow(/401/);
      assert.ok((await seen.context.request.post(`${server.url}/api/v1/session`, { data: { key } })).ok());
      await seen.page.reload();
      return seen;
    };
    const [anns, eves] = [await keyOf('ann', 'user'), await keyOf('eve', 'approver')];
    const headers = { authorization: `Bearer ${anns}`, 'content-type': 'application/json' };
    const run = await fetch(`${server.direct ?? server.url}${AGENT}/runs`, { method: 'POST', headers, body: JSON.stringify({ threadId: 'ann', messages: [{ id: 'u', role: 'user', content: 'order' }] }) });
    assert.equal(run.status, 202);
    const ann = await enter(anns, '#/t/ann'), eve = await enter(eves, '#/inbox');
    await ann.page.getByText('Somebody with the role “approver” decides this.').waitFor();
    assert.equal(await button(ann.page, 'Approve').count(), 0);
    await screen(ann.page, 'confirm-role');
    await press(eve.page, 'Edit');
    await control(eve.page, 'count').getByRole('textbox').fill('3');
    await screen(eve.page, 'confirm-inbox');
    await press(eve.page, 'Approve with changes');
    await summary(eve.page).getByText('Approved with changes').waitFor();
    await said(ann.page);
    await summary(ann.page).getByText('by eve').waitFor();
    assert.deepEqual(shop.orders, [ORDER.replace('"count":2', '"count":3')]);
  });

  test('expiry: a countdown, then expired and not run', async (t) => {
    const { page, shop, api, finished } = await begin(t, { text: 'order' });
    await page.locator('.decide-row[data-state=armed]').waitFor();
    const { interactions: [{ interactionId }] } = await (await api('/interactions')).json();
    const move = (ms) => api(`/interactions/${interactionId}`, {
      method: 'PATCH', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ expiresAt: new Date(Date.now() + ms).toISOString() }),
    });
    assert.ok((await move(3_590_000)).ok);
    await page.reload();
    await cardOf(page).getByText('59 min left').waitFor();
    assert.ok((await move(3000)).ok); // a time that is over is refused
    await summary(page).getByText('Expired').waitFor();
    await finished();
    assert.deepEqual(shop.orders, []);
    await sameAfterReload(page);
  });
});

describe('editing', () => {
  test('types are kept, big integers to the digit; what is wrong is told at its control', async (t) => {
    const { page, problems, shop, answers, finished, threadId, api } = await begin(t, { text: 'order' });
    problems.allow(/status of 400/); // the browser's own line about a refusal
    await press(page, 'Edit');
    assert.equal(await button(page, 'Approve with changes').getAttribute('aria-disabled'), 'true', 'nothing is changed');
    await control(page, 'count').getByRole('textbox').fill('two');
    await control(page, 'gift').getByRole('switch').click();
    await control(page, 'speed').getByRole('combobox').selectOption({ label: 'fast' });
    await control(page, 'price').getByRole('textbox').fill('2.50');
    await control(page, 'address').getByRole('textbox').fill('{"city": "Rome"');
    await control(page, 'notes').getByRole('button', { name: 'Add notes' }).click();
    await control(page, 'notes').getByRole('textbox').fill('Ring "twice"');
    await press(page, 'Approve with changes');
    const wrong = control(page, 'address').getByRole('textbox');
    assert.equal(await wrong.getAttribute('aria-invalid'), 'true');
    const described = await wrong.evaluate((element) => element.getAttribute('aria-describedby').split(' ').map((id) => document.getElementById(id)?.textContent));
    assert.deepEqual(described, ['Where it goes', 'This is no valid JSON']);
    assert.ok((await control(page, 'count').innerText()).includes('Please give a number'));
    assert.deepEqual(answers(), []);
    await screen(page, 'confirm-edit');
    assert.deepEqual(await axe(page, { include: '[data-testid=confirm-card]' }), []);
    await wrong.fill('{"city": "Rome", "floor": 1.0}');
    await control(page, 'count').getByRole('textbox').fill('500');
    assert.equal(await control(page, 'price').locator('.arg-diff').innerText(), '1.50 → 2.50');
    await page.reload();
    assert.equal(await control(page, 'count').getByRole('textbox').inputValue(), '500', 'kept');

    await press(page, 'Approve with changes');
    await control(page, 'count').locator('.error').waitFor();
    assert.deepEqual(shop.orders, []);
    await control(page, 'count').getByRole('textbox').fill('50');
    assert.equal(await control(page, 'count').locator('.error').count(), 0);
    await press(page, 'Approve with changes');
    await finished();
    const sent = `{"item":"pens","count":50,"price":2.50,"gift":true,"speed":"fast","serial":${BIG},"address":{"city":"Rome","floor":1.0},"notes":"Ring \\"twice\\""}`;
    assert.deepEqual(shop.orders, [sent]);
    await summary(page).getByText('Approved with changes').waitFor();
    await said(page);
    await sameAfterReload(page);
    await summary(page).click();
    await cardOf(page).getByText('count ⟦before⟧').waitFor();
    assert.match(await cardText(page), /count ⟦before⟧\s+2\s+count ⟦after⟧\s+50/);
    await screen(page, 'confirm-edited');
    const { messages } = await (await api(`/history?threadId=${threadId}`)).json();
    assert.equal(messages.find(({ role }) => role === 'interaction').metadata.decision, 'edit');
  });

  test('an edit that was refused is not lost when somebody else decides', async (t) => {
    const { page, problems, post, api, threadId } = await begin(t, { text: 'order' });
    problems.allow(/status of 400/);
    await press(page, 'Edit');
    await control(page, 'item').getByRole('textbox').fill('pencils');
    await control(page, 'count').getByRole('textbox').fill('500');
    await press(page, 'Approve with changes');
    await control(page, 'count').locator('.error').waitFor();
    const [{ interactionId, binding }] = (await (await api(`/interactions?threadId=${threadId}`)).json()).interactions;
    await post(`/interactions/${interactionId}/answer`, { decision: 'reject', binding });
    await page.getByText('What was not sent').click();
    await cardOf(page).locator('pre').getByText('item: pencils').waitFor();
  });

  test('leaving out, undoing, resetting; back keeps what was typed', async (t) => {
    const { page, shop, finished } = await begin(t, { text: 'order' });
    await press(page, 'Edit');
    await control(page, 'price').getByRole('button', { name: 'Delete price' }).click();
    await control(page, 'item').getByRole('textbox').fill('ink');
    await control(page, 'item').getByRole('button', { name: 'Undo item' }).click();
    assert.equal(await control(page, 'item').getByRole('textbox').inputValue(), 'pens');
    await press(page, 'Back');
    await button(page, 'Go on editing').waitFor();
    await press(page, 'Go on editing');
    assert.equal(await control(page, 'price').getAttribute('data-state'), 'changed');
    await press(page, 'Reset');
    assert.equal(await control(page, 'price').getAttribute('data-state'), 'same');
    await control(page, 'price').getByRole('button', { name: 'Delete price' }).click();
    await press(page, 'Approve with changes');
    await finished();
    assert.deepEqual(shop.orders, [ORDER.replace('"price":1.50,', '')]);
  });

  test('a plan: steps changed, moved, added, removed', async (t) => {
    const { page, answers, finished } = await begin(t, { text: 'plan' });
    assert.equal(await page.getByLabel('How far the approval goes').count(), 0, 'each plan is approved by itself');
    await screen(page, 'confirm-plan');
    await page.locator('.decide-row[data-state=armed]').waitFor();
    const focused = await button(page, 'Edit').evaluate(async (element) => {
      element.click();
      await null; // it is drawn
      await null;
      return document.activeElement.localName;
    });
    assert.equal(focused, 'textarea', 'the first key that is pressed is not lost');
    await page.getByLabel('Step 2', { exact: true }).fill('Write a short report');
    await page.getByRole('button', { name: 'Move up Step 2' }).click();
    await page.getByRole('button', { name: 'Add Step 3' }).click();
    await page.getByLabel('Step 3', { exact: true }).and(page.locator(':focus')).waitFor();
    await page.keyboard.type('Send it');
    await page.getByLabel('Step 3: Done when').fill('Ann has it');
    await page.getByRole('button', { name: 'Delete Step 2' }).click();
    await screen(page, 'confirm-plan-edit');
    await press(page, 'Approve with changes');
    await summary(page).getByText('Approved with changes').waitFor();
    await finished();
    assert.deepEqual(JSON.parse(answers()[0]).args, { steps: [{ content: 'Write a short report' }, { content: 'Send it', done_when: 'Ann has it' }] });
  });
});

describe('neither yes nor no', () => {
  test('killed in a write: asked whether it happened; sending again takes two presses', async (t) => {
    const shop = await openShop(t);
    shop.hold = true;
    const home = await begin(t, { text: 'order', shop });
    await press(home.page, 'Approve');
    await until('the shop has it', () => shop.orders.length === 1);
    home.problems.allow(/./);
    await home.server.kill9();
    await home.context.close();
    shop.hold = false;
    const server = await startScripted(SCRIPT, { config: shop.config, data: home.server.data });
    atEnd(t, () => server.stop());
    const { page, answers, finished } = await begin(t, { server, shop, threadId: home.threadId });
    const card = cardOf(page, 'decide');
    await card.getByText('Outcome unknown').waitFor();
    await screen(page, 'decide-uncertain');
    assert.deepEqual(await axe(page, { include: '[data-testid=decide-card]' }), []);
    await press(page, 'Send it again');
    await press(page, 'Press again to confirm');
    await finished();
    assert.deepEqual(answers().map((body) => JSON.parse(body)), [{ decision: 'retry' }]);
    assert.equal(shop.orders.length, 2);
    await summary(page, 'decide').getByText('Sent again').waitFor();
    await said(page);
    await sameAfterReload(page);
  });

  test('the model is gone: go on', async (t) => {
    const { page, answers, finished } = await begin(t, { text: 'lost' });
    await cardOf(page, 'decide').getByText('Connection lost').waitFor();
    await screen(page, 'decide-lost');
    await press(page, 'Go on');
    await finished();
    await said(page, 'Here again.');
    await summary(page, 'decide').getByText('Continued').waitFor();
    assert.deepEqual(answers().map((body) => JSON.parse(body)), [{ decision: 'continue' }]);
    assert.deepEqual(await focusables(cardOf(page, 'decide')), ['summary']);
  });
});

describe('how it looks', () => {
  for (const [name, page] of [
    ['light', {}], ['zh-phone-dark', { locale: 'zh-CN', width: 320, height: 700, touch: true, scheme: 'dark' }],
    ...LONG_FORM ? [['dark', { scheme: 'dark' }], ['phone', { width: 390, height: 844, touch: true }], ['zh', { locale: 'zh-CN' }]] : [],
  ]) {
    test(name, async (t) => {
      const home = await begin(t, { text: page.locale ? '下单' : 'order', page });
      await screen(home.page, `confirm-${name}`);
      await readAll(home.page);
      await press(home.page, page.locale ? '修改' : 'Edit');
      await control(home.page, 'count').getByRole('textbox').fill('7');
      await screen(home.page, `confirm-${name}-edit`);
      assert.deepEqual(await axe(home.page, { include: '[data-testid=confirm-card]' }), []);
      const wide = await home.page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      assert.ok(wide <= 0, `${wide} px too wide`);
      await press(home.page, page.locale ? '按修改批准' : 'Approve with changes');
      await summary(home.page).getByText(page.locale ? '修改后已批准' : 'Approved with changes').waitFor();
      await summary(home.page).click();
      await screen(home.page, `confirm-${name}-settled`);
    });
  }
});

// SPDX-License-Identifier: Apache-2.0
//
// The question card and the dock, in a browser against a real server: a scripted model asks, people answer. The card never
// takes the focus, never answers by itself, never loses what was typed, and the first answer wins everywhere.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';

import { axe, cuttingProxy, drawn, LONG, newPage, openBrowser, screen, serialise, settledText, startScripted, until } from './kit.mjs';

const AGENT = '/api/v1/agent';
const UNDO_MS = 1200; // of web/app/src/asking.ts
const REST_MS = 5000; // of web/app/src/outbox.ts
const CHILD = fileURLToPath(new URL('../tools/mcp-child.mjs', import.meta.url));
const ask = (args, said = 'Good.') => [{ calls: [{ name: 'ask_user', args }] }, { text: said }];
const TONES = [{ label: '简洁专业', description: '短句，少形容词' }, '活泼有趣', '高端奢华'];
const LINES = [
  { match: '^tone', turns: ask({ question: '产品介绍用什么语气？', choices: TONES }, '好的，就用这种语气。') },
  { match: '^strict', turns: ask({ question: 'Which one?', choices: ['One', 'Two'], allow_freeform: false }) },
  { match: '^free', turns: ask({ question: 'What should the file be called?\nIt can be renamed later.' }) },
  { match: '^several', turns: ask({ question: 'Which reports do you need?', choices: ['Sales', 'Stock', 'Returns', 'Costs', 'Staff'], multi: true }) },
  { match: '^key', turns: ask({ question: 'Please give me the API key of the shop.' }) },
  { match: '^form', turns: ask({ question: 'A few facts for the booking', allow_freeform: false, fields: [
    { name: 'name', label: 'Name', type: 'text', required: true }, { name: 'guests', label: 'Guests', type: 'number', required: true, description: 'Adults and children' },
    { name: 'day', label: 'Day', type: 'date' }, { name: 'parking', label: 'Parking', type: 'boolean' }, { name: 'room', label: 'Room', type: 'choice', choices: ['Garden', 'Street'] },
  ] }) },
  { match: '^fit', turns: [{ calls: [{ name: 'shop.fit', args: {} }] }, { text: 'It fits.' }] },
  { match: '^visit', turns: [{ calls: [{ name: 'shop.visit', args: {} }] }, { text: 'Visited.' }] },
  { match: '^two', turns: [{ calls: [{ name: 'ask_user', args: { question: 'First thing?' } }, { name: 'ask_user', args: { question: 'Second thing?' } }] }, { text: 'Both.' }] },
  { match: '^slow', turns: [{ calls: [{ name: 'ask_user', args: { question: 'Late question?', choices: ['Yes', 'No'] } }], delay_ms: 1500 }, { text: 'Fine.' }] },
  { match: '^long', turns: [{ text: Array.from({ length: 60 }, (_, i) => `Paragraph ${i}.`).join('\n\n'), chunk: 4000 }] },
  { turns: [{ text: 'Hello.' }] },
];

let threads = 0;

async function post(server, path, body, method = 'POST') {
  const answer = await fetch(`${server.direct ?? server.url}${AGENT}${path}`, { method, headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) });
  assert.ok(answer.ok, `${path}: ${answer.status} ${await answer.clone().text()}`);
  return answer.json();
}
async function say(server, text, threadId = `t${++threads}`) {
  await post(server, '/runs', { threadId, messages: [{ role: 'user', content: text }] });
  return threadId;
}
const read = async (server, path) => (await fetch(`${server.direct ?? server.url}${AGENT}${path}`)).json();
const openOn = (server, threadId) => until('it is asked', async () => (await read(server, `/interactions?threadId=${threadId}`)).interactions[0]);
const settledOn = (server, threadId) => until('it is settled', async () => {
  const { messages } = await read(server, `/runs/${threadId}/history`);
  const row = messages.findLast(({ role }) => role === 'clarify');
  return row?.metadata.status !== 'pending' && row?.metadata;
});

// The bodies of all answers that left this browser.
const answersOf = ({ requests }) => requests.filter(({ method, path }) => method === 'POST' && path.endsWith('/answer')).map(({ body }) => JSON.parse(body));

// A browser of its own on the conversation, and its card.
async function visit(t, browser, server, threadId, options = {}) {
  const { url = server.url, ...rest } = options;
  const visitor = await newPage(browser, { url: `${url}/#/t/${threadId}`, ...rest });
  t.after(visitor.done);
  const { page } = visitor, card = page.getByTestId('ask-card').last();
  const state = (name) => until(`the card is ${name}`, async () => await card.count() && await card.getAttribute('data-state') === name);
  return { ...visitor, card, free: card.getByTestId('ask-free'), undo: card.getByTestId('ask-undo'), state };
}
async function asked(t, browser, server, words, options) {
  const threadId = await say(server, words);
  const interaction = await openOn(server, threadId);
  const visitor = await visit(t, browser, server, threadId, options);
  await visitor.card.waitFor();
  return { ...visitor, threadId, interaction };
}

const focused = (page) => page.evaluate(() => document.activeElement?.closest('[data-testid]')?.dataset.testid + ' ' + document.activeElement?.tagName.toLowerCase());
const ringed = (page) => page.evaluate(() => {
  const on = document.activeElement;
  return [on, on.closest('label')].some((one) => one && getComputedStyle(one).outlineStyle === 'solid' && parseFloat(getComputedStyle(one).outlineWidth) >= 2);
});
const tabbable = (card) => card.locator('a[href], button:enabled, input:enabled, textarea:enabled, select:enabled, summary, [tabindex="0"]').count();
const rest = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

// The time to undo, or another one, stands still until goOn(): a slow machine would miss it.
function holdUndo(page, held = UNDO_MS) {
  return page.evaluate((ms) => {
    const { setTimeout: set, clearTimeout: clear } = window, held = new Map();
    window.setTimeout = (fn, after, ...rest) => {
      if (after !== ms) return set(fn, after, ...rest);
      const id = set(fn, 60_000);
      held.set(id, fn);
      return id;
    };
    window.clearTimeout = (id) => {
      held.delete(id);
      clear(id);
    };
    window.goOn = () => {
      Object.assign(window, { setTimeout: set, clearTimeout: clear });
      for (const [id, fn] of held) {
        clear(id);
        fn();
      }
    };
  }, held);
}
const goOn = (page) => page.evaluate(() => window.goOn());

describe('the question card', () => {
  let browser, close, server;
  before(async () => {
    ({ browser, close } = await openBrowser());
    const config = `mcp: ${JSON.stringify({ shop: { command: [process.execPath, CHILD, '--version', '2025-06-18', '--log', '/dev/null'], read: ['fit', 'visit'] } })}\n`;
    server = await startScripted(LINES, { config });
  });
  after(async () => {
    await close?.();
    await server?.stop();
  });

  test('three choices: pressed, undone, pressed again; one answer leaves, and the card can only be read', async (t) => {
    const me = await asked(t, browser, server, 'tone', { locale: 'zh-CN' });
    const { page, card, threadId } = me;
    assert.match(await card.innerText(), /^💬\s+AI 需要你的决策\s+产品介绍用什么语气？\s+1\s+简洁专业\s+短句，少形容词\s+2\s+活泼有趣\s+3\s+高端奢华/);
    assert.equal(await me.free.getAttribute('placeholder'), '输入自定义回答…');
    assert.ok(await card.getByRole('button', { name: '提交' }).isDisabled(), 'nothing to send');
    await screen(page, 'ask-pending-zh');

    const { y, height } = await card.boundingBox();
    await holdUndo(page);
    await card.getByRole('button', { name: '活泼有趣' }).click();
    await me.state('sending');
    const now = await card.boundingBox();
    assert.ok(Math.abs(now.y - y) < 1 && Math.abs(now.height - height) < 1, 'nothing moves under the pointer');
    await screen(page, 'ask-sending-zh');
    await me.undo.click();
    await me.state('pending');
    await goOn(page);
    await rest(UNDO_MS + 300); // nothing is what is waited for
    assert.deepEqual(answersOf(me), []);
    assert.equal((await openOn(server, threadId)).status, 'open');

    await card.getByRole('button', { name: '活泼有趣' }).dblclick();
    await me.state('answered');
    assert.deepEqual(answersOf(me), [{ choices: ['c2'] }]);
    assert.match(await card.innerText(), /💬\s*产品介绍用什么语气？\s+↩ 已回答：\s*活泼有趣/);
    assert.equal(await tabbable(card), 0);
    await page.getByTestId('log').getByText('好的，就用这种语气。').waitFor();
    await screen(page, 'ask-answered-zh');
    const live = await settledText(page);
    await page.reload();
    await me.state('answered');
    await page.getByTestId('log').getByText('好的，就用这种语气。').waitFor();
    assert.equal(await settledText(page), live, 'live equals history');
  });

  test('a reload while it is pending brings the same card', async (t) => {
    const me = await asked(t, browser, server, 'tone');
    const live = await serialise(me.page, '[data-testid=ask-card]');
    await me.page.reload();
    await me.state('pending');
    assert.equal(await serialise(me.page, '[data-testid=ask-card]'), live);
    assert.match(live, /The agent needs your decision/);
  });

  test('words that were typed travel with the choice that is pressed, and the choices say so', async (t) => {
    const me = await asked(t, browser, server, 'tone');
    await me.free.fill('  但不要太夸张 ');
    assert.equal(await me.card.getByText('with your words: “但不要太夸张”').count(), 3);
    await screen(me.page, 'ask-with-words');
    await me.card.getByRole('button', { name: '高端奢华' }).click();
    await me.state('answered');
    assert.deepEqual(answersOf(me), [{ choices: ['c3'], text: '但不要太夸张' }]);
    assert.match(await me.card.innerText(), /Answered: \s*高端奢华: 但不要太夸张/);
    assert.equal(await me.card.getByTestId('ask-unsent').count(), 0, 'all of it was sent');
  });

  test('own words: Enter sends, Shift+Enter breaks the line, and composing does neither', async (t) => {
    const me = await asked(t, browser, server, 'free');
    const { page, free } = me;
    assert.equal(await me.card.locator('.ask-question').innerText(), 'What should the file be called?\nIt can be renamed later.');
    await free.focus();
    const cdp = await page.context().newCDPSession(page);
    await cdp.send('Input.imeSetComposition', { text: 'baogao', selectionStart: 6, selectionEnd: 6 });
    const refused = await free.evaluate((field) => { // Enter as an input method sends it, and as Safari does after it
      const press = (more) => field.dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter', bubbles: true, cancelable: true, ...more }));
      return [press({ isComposing: true }), press({ keyCode: 229 })];
    });
    assert.deepEqual(refused, [true, true], 'left to the input method');
    await cdp.send('Input.insertText', { text: '报告' });
    await page.keyboard.press('Shift+Enter');
    await page.keyboard.type('v2');
    assert.equal(await me.card.getAttribute('data-state'), 'pending');
    assert.equal(await free.inputValue(), '报告\nv2');
    await page.keyboard.press('Enter');
    await me.state('answered');
    assert.deepEqual(answersOf(me), [{ answer: '报告\nv2' }]);
  });

  test('a draft survives reload, language, theme, a cut and undo', async (t) => {
    const proxy = await cuttingProxy(server);
    t.after(() => proxy.close());
    const me = await asked(t, browser, server, 'tone', { url: proxy.url });
    const { page, free, problems } = me;
    problems.allow(/ERR_|WebSocket/);
    const same = async (what) => assert.equal(await free.inputValue(), '一半的话', what);
    await free.fill('一半的话');
    await page.reload();
    await me.state('pending');
    await same('reload');
    for (const [name, value] of [['language', 'zh-CN'], ['theme', 'dark']]) {
      await page.evaluate(([key, to]) => {
        const at = Object.keys(localStorage).find((one) => one.endsWith(':prefs')) ?? `fermata:${location.pathname}:prefs`;
        const text = JSON.stringify({ ...JSON.parse(localStorage.getItem(at) ?? '{}'), [key]: to });
        localStorage.setItem(at, text);
        dispatchEvent(new StorageEvent('storage', { key: at, newValue: text })); // as from another tab
      }, [name, value]);
      await until(name, () => page.evaluate(([key, to]) => (key === 'theme' ? document.documentElement.dataset.theme : document.documentElement.lang) === to, [name, value]));
      await same(name);
    }
    assert.match(await me.card.innerText(), /AI 需要你的决策/);
    const before = proxy.seen(/\/ws/);
    proxy.cut();
    await until('connected again', () => proxy.seen(/\/ws/) > before && proxy.open(/\/ws/) === 1);
    await same('a cut');
    await holdUndo(page);
    await me.card.getByRole('button', { name: '简洁专业' }).click();
    await me.undo.click();
    await same('undo');
  });

  test('a question that arrives while somebody types takes nothing: it is told, and the dock shows it', async (t) => {
    const threadId = await say(server, 'long');
    const me = await visit(t, browser, server, threadId, { height: 500 });
    const { page } = me, dock = page.getByTestId('dock'), composer = page.getByTestId('composer');
    await page.getByText('Paragraph 59.').waitFor();
    await until('the run is over', async () => (await read(server, `/runs/${threadId}`)).status === 'completed');
    await page.getByText('Paragraph 59.').hover();
    await page.mouse.wheel(0, -2000);
    await composer.click();
    await page.keyboard.type('half a ');
    await say(server, 'slow', threadId);
    await page.keyboard.type('sentence', { delay: 60 });
    await page.keyboard.press('ArrowLeft');
    await Promise.all([
      until('the dock', () => dock.isVisible()),
      until('told', async () => /Late question\?/.test(await page.getByTestId('status').innerText())),
    ]);
    assert.deepEqual(await composer.evaluate((field) => [document.activeElement === field, field.value, field.selectionStart]), [true, 'half a sentence', 14]);
    assert.match(await dock.innerText(), /1 question waits for you: Late question\?\s+Answer/);
    await screen(page, 'ask-dock');
    await dock.getByRole('button', { name: 'Answer' }).click();
    await until('the heading has the focus', async () => await focused(page) === 'ask-card h3');
    await until('the dock has done its work', async () => !await dock.isVisible());
    await page.keyboard.press('Tab');
    assert.match(await page.evaluate(() => document.activeElement.innerText), /^1\s+Yes/);
  });

  test('several questions: the dock counts them, and each is answered by itself', async (t) => {
    const threadId = await say(server, 'two');
    const me = await visit(t, browser, server, threadId);
    const cards = me.page.getByTestId('ask-card'), dock = me.page.getByTestId('dock');
    await until('both', async () => await cards.count() === 2);
    assert.match(await dock.innerText(), /Waiting for you \(2\)/);
    await cards.last().getByTestId('ask-free').fill('B');
    await me.page.keyboard.press('Enter');
    await me.state('answered');
    assert.equal(await cards.first().getAttribute('data-state'), 'pending');
    await cards.first().getByTestId('ask-free').fill('A');
    await me.page.keyboard.press('Enter');
    await me.page.getByTestId('log').getByText('Both.').waitFor();
    assert.deepEqual(answersOf(me), [{ answer: 'B' }, { answer: 'A' }]);
    assert.ok(!await dock.isVisible());
  });

  test('the keyboard alone is enough, with a visible ring at each step', async (t) => {
    const me = await asked(t, browser, server, 'tone');
    const { page } = me, at = () => page.evaluate(() => document.activeElement.querySelector('.ask-n')?.innerText ?? document.activeElement.tagName);
    await page.getByTestId('composer').focus();
    await page.keyboard.press('Alt+q');
    assert.equal(await focused(page), 'ask-card h3');
    assert.ok(await ringed(page));
    await page.keyboard.press('Tab');
    for (const [key, n] of [['', '1'], ['ArrowDown', '2'], ['ArrowRight', '3'], ['ArrowDown', '1'], ['ArrowUp', '3'], ['Home', '1'], ['End', '3'], ['2', '2'], ['9', '2']]) {
      if (key) await page.keyboard.press(key);
      assert.equal(await at(), n, key);
      assert.ok(await ringed(page), `ring after ${key}`);
    }
    await page.keyboard.press('Tab');
    assert.equal(await at(), 'TEXTAREA', 'the group is one stop');
    assert.ok(await ringed(page));
    await page.keyboard.press('1');
    assert.equal(await me.free.inputValue(), '1', 'a digit is a digit there');
    await page.keyboard.press('Backspace');
    await page.keyboard.press('Escape');
    assert.equal(await focused(page), 'composer textarea');
    assert.deepEqual(answersOf(me), []);
    await holdUndo(page);
    await page.keyboard.press('Alt+q');
    await page.keyboard.press('3');
    await page.keyboard.press('Enter');
    await me.state('sending');
    assert.equal(await focused(page), 'ask-undo button');
    await page.keyboard.press('Enter');
    await me.state('pending');
    assert.equal(await at(), '3', 'back where it was');
    await goOn(page);
    await page.keyboard.press('Space');
    await me.state('answered');
    assert.deepEqual(answersOf(me), [{ choices: ['c3'] }]);
    assert.equal(await focused(page), 'composer textarea');
  });

  test('between the server\'s yes and its event the card is not open again', async (t) => {
    const me = await asked(t, browser, server, 'strict');
    const { page } = me, held = [];
    let holds = false;
    await page.routeWebSocket(/\/ws/, (socket) => {
      socket.connectToServer().onMessage((frame) => (holds ? held.push(() => socket.send(frame)) : socket.send(frame)));
    });
    await page.reload();
    await me.state('pending');
    holds = true;
    const taken = page.waitForResponse((one) => one.url().endsWith('/answer'));
    await me.card.getByRole('button', { name: 'Two' }).click();
    assert.equal((await taken).status(), 200);
    await rest(300); // nothing is what is waited for
    assert.equal(await me.card.getAttribute('data-state'), 'sending');
    holds = false;
    for (const pass of held) pass();
    await me.state('answered');
  });

  test('between its event and the server\'s yes nothing is called not sent', async (t) => {
    const me = await asked(t, browser, server, 'tone');
    let pass;
    const held = new Promise((resolve) => { pass = resolve; });
    await me.page.route('**/answer', async (route) => {
      const response = await route.fetch();
      await held;
      await route.fulfill({ response });
    });
    await me.free.fill('但不要太夸张');
    await me.card.getByRole('button', { name: '高端奢华' }).click();
    await me.state('answered');
    assert.equal(await me.card.getByTestId('ask-unsent').count(), 0);
    const taken = me.page.waitForResponse((one) => one.url().endsWith('/answer'));
    pass();
    await (await taken).finished();
    await drawn(me.page);
    assert.equal(await me.card.getByTestId('ask-unsent').count(), 0);
  });

  test('focus that is elsewhere stays there when it is answered', async (t) => {
    const me = await asked(t, browser, server, 'strict');
    await me.card.getByRole('button', { name: 'One' }).click();
    await me.page.evaluate(() => document.activeElement.blur());
    await me.state('answered');
    assert.equal(await me.page.evaluate(() => document.activeElement.tagName), 'BODY');
  });

  test('several choices: boxes, all of them at once, a line that says what will be sent', async (t) => {
    const me = await asked(t, browser, server, 'several');
    const { card, page } = me, review = card.getByTestId('ask-review'), submit = card.getByRole('button', { name: 'Submit' });
    assert.ok(await submit.isDisabled());
    assert.match(await review.innerText(), /^0 chosen$/);
    await card.getByRole('button', { name: 'Select all' }).click();
    await card.getByRole('checkbox', { name: 'Stock' }).uncheck();
    await me.free.fill('for October');
    assert.match(await review.innerText(), /4 chosen: Sales, Returns, Costs, Staff: for October/);
    await screen(page, 'ask-multi');
    await page.reload();
    await me.state('pending');
    assert.match(await review.innerText(), /4 chosen: Sales, Returns, Costs, Staff: for October/);
    await submit.click();
    await me.state('answered');
    assert.deepEqual(answersOf(me), [{ choices: ['c1', 'c3', 'c4', 'c5'], text: 'for October' }]);
    assert.match(await card.innerText(), /Answered: \s*Sales, Returns, Costs, Staff: for October/);
    await page.reload();
    await me.state('answered');
    assert.match(await card.innerText(), /Answered: \s*Sales, Returns, Costs, Staff: for October/);
  });

  test('a form: typed values, errors at their fields, nothing left out by accident', async (t) => {
    const me = await asked(t, browser, server, 'form');
    const { card, page } = me, submit = card.getByRole('button', { name: 'Submit' });
    assert.equal(await me.free.count(), 0);
    await submit.click();
    assert.equal(await card.locator('[aria-invalid]').count(), 2);
    assert.equal(await page.evaluate(() => document.activeElement.labels[0].innerText.trim().split(/\s/)[0]), 'Name');
    await card.getByLabel('Name').fill('\u200b'); // blank to the server alone
    await card.getByLabel('Guests').fill('three');
    await submit.click();
    assert.match(await card.innerText(), /Please give a number/);
    await screen(page, 'ask-form-errors');
    await card.getByLabel('Guests').fill('3.5');
    me.problems.allow(/400/);
    await submit.click();
    await me.state('failed');
    const name = card.getByLabel('Name');
    const about = await name.getAttribute('aria-describedby');
    assert.match(await card.locator(`[id="${about}"]`).innerText(), /must be a text that is not blank/);
    await name.fill('李雷');
    await card.getByLabel('Day').fill('2026-12-24');
    await card.getByLabel('Parking').selectOption({ label: 'No' });
    assert.deepEqual(await axe(page, { include: '[data-testid=ask-card]' }), []);
    await page.reload();
    await me.state('pending');
    await screen(page, 'ask-form');
    await submit.click();
    await me.state('answered');
    assert.deepEqual(answersOf(me).at(-1), { fields: { name: '李雷', guests: 3.5, day: '2026-12-24', parking: false } });
    assert.deepEqual(await card.locator('dt, dd').allInnerTexts(), ['name', '李雷', 'guests', '3.5', 'day', '2026-12-24', 'parking', 'No']);
    await screen(page, 'ask-form-answered');
  });

  test('a form and a page of a tool of an MCP server', async (t) => {
    await until('the shop is open', () => /mcp\.connected/.test(server.stderr()));
    const me = await asked(t, browser, server, 'fit');
    await me.card.getByLabel('Size').selectOption('Large');
    await me.card.getByRole('button', { name: 'Submit' }).click();
    await me.state('answered');
    assert.deepEqual(answersOf(me), [{ fields: { size: 'Large' } }]);
    await me.page.getByTestId('log').getByText('It fits.').waitFor();

    const other = await asked(t, browser, server, 'visit');
    const link = other.card.getByRole('link');
    assert.deepEqual(await link.evaluate((one) => [one.href, one.target, one.rel]), ['https://login.example/start?x=1', '_blank', 'noopener noreferrer nofollow']);
    await other.card.getByTestId('ask-skip').click();
    await other.state('skipped');
    assert.equal(await tabbable(other.card), 0);
  });

  test('skipping is no answer, and words that were typed before are not lost by it', async (t) => {
    const me = await asked(t, browser, server, 'tone', { locale: 'zh-CN' });
    await me.free.fill('其实…');
    await me.card.getByTestId('ask-skip').click();
    await me.state('skipped');
    assert.deepEqual(answersOf(me), [{ skip: true }]);
    assert.match(await me.card.innerText(), /已跳过/);
    assert.doesNotMatch(await me.card.innerText(), /已回答/);
    await me.page.reload();
    await me.state('skipped');
    const note = me.card.getByTestId('ask-unsent');
    await note.locator('summary').click();
    assert.match(await note.innerText(), /其实…/);
    await screen(me.page, 'ask-skipped-zh');
    await note.getByRole('button', { name: '删除' }).click();
    await me.page.reload();
    await me.state('skipped');
    assert.equal(await tabbable(me.card), 0);
  });

  test('a run that is stopped cancels its question', async (t) => {
    const me = await asked(t, browser, server, 'tone');
    await me.free.fill('too late');
    await post(server, `/runs/${me.threadId}/cancel`, {});
    await me.state('canceled');
    assert.match(await me.card.innerText(), /Canceled/);
    assert.doesNotMatch(await me.card.innerText(), /Answered/);
    await me.card.getByTestId('ask-unsent').locator('summary').click();
    assert.match(await me.card.innerText(), /What was not sent\s+too late/);
    await screen(me.page, 'ask-canceled');
    assert.deepEqual(answersOf(me), []);
  });

  test('ten minutes without an answer change nothing', async (t) => {
    const me = await asked(t, browser, server, 'tone');
    me.problems.allow(/WebSocket/);
    await me.page.clock.install(); // every timer of the page, from here on
    await me.page.reload();
    await me.state('pending');
    await me.page.clock.fastForward('10:00');
    await me.page.clock.fastForward('00:05'); // what began then has ended
    assert.equal(await me.card.getAttribute('data-state'), 'pending');
    assert.equal((await openOn(server, me.threadId)).status, 'open');
    assert.deepEqual(answersOf(me), []);
  });

  test('a deadline: counted down, moved on request and while somebody types, and past it nothing was answered', async (t) => {
    const threadId = await say(server, 'free');
    const { interactionId } = await openOn(server, threadId);
    const expire = (ms) => post(server, `/interactions/${interactionId}`, { expiresAt: new Date(Date.now() + ms).toISOString() }, 'PATCH');
    await expire(40_000);
    const me = await visit(t, browser, server, threadId, { locale: 'zh-CN' });
    const time = me.card.getByTestId('ask-time'), left = async () => Date.parse((await openOn(server, threadId)).expiresAt) - Date.now();
    await time.waitFor();
    assert.match(await time.innerText(), /还剩\d+秒/);
    await me.free.fill('我想想');
    await until('typing keeps a minute', async () => await left() > 45_000);
    await me.card.getByTestId('ask-more').click();
    await until('ten minutes more', async () => await left() > 9 * 60_000);
    await until('the clock says so', async () => /还剩1[01]分钟/.test(await time.innerText()));
    await screen(me.page, 'ask-deadline-zh');
    await expire(3000); // a time that is over is refused
    await me.state('expired');
    assert.match(await me.card.innerText(), /已过期/);
    assert.doesNotMatch(await me.card.innerText(), /已回答/);
    assert.deepEqual(answersOf(me), []);
    await me.card.getByTestId('ask-unsent').locator('summary').click();
    assert.match(await me.card.innerText(), /我想想/);
    await screen(me.page, 'ask-expired-zh');
  });

  test('two people at two browsers: the first answer shows on both, the words of the other are kept', async (t) => {
    const a = await asked(t, browser, server, 'tone', { locale: 'zh-CN' });
    const b = await visit(t, browser, server, a.threadId, { locale: 'zh-CN' });
    await b.state('pending');
    await b.free.fill('我也有话说');
    await a.card.getByRole('button', { name: '简洁专业' }).click();
    await b.state('answered');
    assert.match(await b.card.innerText(), /已回答：\s*简洁专业/);
    assert.equal(await b.page.evaluate(() => document.activeElement.tagName), 'H3', 'the words go nowhere else');
    await b.card.getByTestId('ask-unsent').locator('summary').click();
    assert.match(await b.card.innerText(), /我也有话说/);
    await screen(b.page, 'ask-elsewhere-zh');
    assert.deepEqual(answersOf(b), []);
    await b.page.reload();
    await b.state('answered');
    assert.equal(await b.card.getByTestId('ask-unsent').count(), 1);
  });

  test('two tabs of one browser: words typed in one outlive an answer from the other', async (t) => {
    const a = await asked(t, browser, server, 'tone');
    const page = await a.tab(), card = page.getByTestId('ask-card');
    await card.getByTestId('ask-free').fill('from the second tab');
    await a.card.getByRole('button', { name: '简洁专业' }).click();
    await a.state('answered');
    for (const again of [false, true]) {
      if (again) await page.reload();
      await until('the note', async () => await card.getByTestId('ask-unsent').count() === 1);
      assert.match(await card.getByTestId('ask-unsent').textContent(), /from the second tab/);
    }
    assert.deepEqual(answersOf(a), [{ choices: ['c1'] }]);
  });

  test('two tabs of one browser: words typed in one outlive those typed and taken away in the other', async (t) => {
    const a = await asked(t, browser, server, 'tone');
    const page = await a.tab(), other = page.getByTestId('ask-free');
    await other.waitFor();
    await a.free.fill('long words');
    await other.fill('x');
    await other.fill('');
    await a.page.reload();
    await until('they are there', async () => await a.free.inputValue() === 'long words');
  });

  test('in the last seconds a press is not held back', async (t) => {
    const threadId = await say(server, 'tone');
    const { interactionId } = await openOn(server, threadId);
    await post(server, `/interactions/${interactionId}`, { expiresAt: new Date(Date.now() + 600_000).toISOString() }, 'PATCH');
    const me = await visit(t, browser, server, threadId);
    await me.card.getByTestId('ask-time').waitFor();
    await me.page.evaluate((undoMs) => {
      const { now } = Date, later = window.setTimeout;
      Date.now = () => now() + 599_000;
      window.setTimeout = (what, ms, ...more) => (ms === undoMs ? 0 : later(what, ms, ...more)); // that time never comes
    }, UNDO_MS);
    await me.card.getByRole('button', { name: '简洁专业' }).click();
    await me.state('answered');
  });

  test('who leaves within the time for undo has answered', async (t) => {
    const me = await asked(t, browser, server, 'tone');
    me.problems.allow(/409/);
    await holdUndo(me.page);
    await me.card.getByRole('button', { name: '活泼有趣' }).click();
    await me.state('sending');
    await me.page.reload();
    await me.state('answered');
    assert.equal((await settledOn(server, me.threadId)).answer, '活泼有趣');
    assert.equal(await me.card.getByTestId('ask-unsent').count(), 0);
  });

  test('in the inbox it is answered as well', async (t) => {
    const me = await asked(t, browser, server, 'tone');
    const page = await me.tab(`${server.url}/#/inbox`), card = page.locator(`#asked-${me.interaction.interactionId}`);
    await card.getByTestId('ask-free').fill('from the inbox');
    await card.getByRole('button', { name: '活泼有趣' }).click();
    await until('answered', async () => await card.getAttribute('data-state') === 'answered');
    assert.match(await card.innerText(), /Answered: \s*活泼有趣: from the inbox/);
    assert.equal(await tabbable(card), 0);
    await me.state('answered');
    await screen(page, 'ask-inbox');
  });

  test('two answers at the same time: one wins, and the other browser shows it with its own beside', async (t) => {
    const a = await asked(t, browser, server, 'tone');
    const b = await visit(t, browser, server, a.threadId);
    await b.state('pending');
    for (const one of [a, b]) one.problems.allow(/409/);
    await Promise.all([a.card.getByRole('button', { name: '简洁专业' }).click(), b.card.getByRole('button', { name: '高端奢华' }).click()]);
    await Promise.all([a.state('answered'), b.state('answered')]);
    const { answer } = await settledOn(server, a.threadId);
    assert.ok(['简洁专业', '高端奢华'].includes(answer));
    for (const [one, own] of [[a, '简洁专业'], [b, '高端奢华']]) {
      assert.match(await one.card.locator('.ask-answer').innerText(), new RegExp(`Answered: \\s*${answer}`));
      await until('the note', async () => await one.card.getByTestId('ask-unsent').count() === (own === answer ? 0 : 1));
    }
    const lost = answer === '简洁专业' ? b : a;
    await lost.card.getByTestId('ask-unsent').locator('summary').click();
    assert.match(await lost.card.innerText(), new RegExp(`Another answer came first.*\\s+${answer === '简洁专业' ? '高端奢华' : '简洁专业'}`));
    await screen(lost.page, 'ask-late');
  });

  test('an answer that is refused says why, keeps everything, and can be sent again', async (t) => {
    const me = await asked(t, browser, server, 'free');
    me.problems.allow(/413/);
    const long = 'x'.repeat(300 * 1024);
    await me.free.fill(long);
    await me.card.getByRole('button', { name: 'Submit' }).click();
    await me.state('failed');
    assert.match(await me.card.getByTestId('ask-error').innerText(), /too large/);
    assert.equal((await me.free.inputValue()).length, long.length);
    await me.free.evaluate((field) => { field.scrollTop = 0; });
    await screen(me.page, 'ask-failed');
    await me.card.getByRole('button', { name: 'Try again' }).click();
    await until('sent twice', () => answersOf(me).length === 2);
    await me.state('failed');
    await me.free.fill('short');
    await me.state('pending');
    await me.card.getByRole('button', { name: 'Submit' }).click();
    await me.state('answered');
    assert.match(await me.card.innerText(), /Answered: \s*short/);
  });

  test('a secret is warned of where one could type it, and only there', async (t) => {
    const me = await asked(t, browser, server, 'key');
    assert.match(await me.card.getByTestId('ask-secret').innerText(), /Do not type passwords, keys or codes/);
    await me.free.fill('abc');
    assert.equal(await me.free.evaluate((field) => getComputedStyle(field).webkitTextSecurity), 'none', 'nothing is hidden silently');
    await screen(me.page, 'ask-secret');
    const other = await asked(t, browser, server, 'tone');
    assert.equal(await other.card.getByTestId('ask-secret').count(), 0);
  });

  test('it pulses twice when it is new, not after a reload, and never where motion is not wanted', async (t) => {
    const pulses = (page) => page.evaluate(() => document.querySelector('[data-testid=ask-card]').getAnimations({ subtree: true })
      .map((one) => one.effect.getComputedTiming().endTime));
    const calm = await asked(t, browser, server, 'tone');
    assert.deepEqual(await pulses(calm.page), []);
    const threadId = await say(server, 'hello');
    const me = await visit(t, browser, server, threadId, { motion: true }); // it is there when it is asked: a question is new for a few seconds
    await me.page.getByTestId('log').getByText('Hello.').waitFor();
    await until('the run is over', async () => (await read(server, `/runs/${threadId}`)).status === 'completed');
    await say(server, 'tone', threadId);
    const { openedAt } = await openOn(server, threadId);
    const [ms, ...others] = await until('it pulses', async () => {
      const list = await me.card.count() && await pulses(me.page);
      return list.length && list;
    });
    assert.ok(ms > 0 && ms <= 5000, `${ms} ms`);
    assert.deepEqual(others, []);
    await until('it ends', async () => !(await pulses(me.page)).length);
    await until('it is old', () => Date.now() - Date.parse(openedAt) > 10_500);
    await me.page.reload();
    await me.state('pending');
    assert.deepEqual(await pulses(me.page), []);
  });

  test('offline the answer waits, can be taken back, and goes out once', async (t) => {
    const proxy = await cuttingProxy(server);
    t.after(() => proxy.close());
    const me = await asked(t, browser, server, 'tone', { url: proxy.url });
    me.problems.allow(/ERR_|WebSocket/);
    await holdUndo(me.page, REST_MS); // another try would take the button away for a moment
    proxy.refuse(true);
    proxy.cut();
    await me.free.fill('离线写的');
    await me.card.getByRole('button', { name: '活泼有趣' }).click();
    await me.state('waiting');
    assert.match(await me.card.getByTestId('ask-waiting').innerText(), /Will be sent when back online: 活泼有趣: 离线写的/);
    await screen(me.page, 'ask-offline');
    await me.card.getByRole('button', { name: 'Undo' }).click();
    await me.state('pending');
    assert.equal(await me.free.inputValue(), '离线写的');
    await me.card.getByRole('button', { name: '高端奢华' }).click();
    await me.state('waiting');
    assert.equal(proxy.seen(/\/answer$/), 0);
    proxy.refuse(false);
    await me.state('answered');
    assert.equal(proxy.seen(/\/answer$/), 1);
    assert.equal((await settledOn(server, me.threadId)).answer, '高端奢华: 离线写的');
  });

  test('the server is killed between question and answer', async (t) => {
    let own = await startScripted(LINES);
    t.after(() => own.stop());
    const proxy = await cuttingProxy(own);
    t.after(() => proxy.close());
    const me = await asked(t, browser, own, 'tone', { url: proxy.url });
    me.problems.allow(/ERR_|WebSocket|50[0-9]/);
    await me.free.fill('还在');
    await own.kill9();
    proxy.cut();
    proxy.refuse(true);
    own = await startScripted(LINES, { data: own.data });
    proxy.to(own);
    proxy.refuse(false);
    await until('connected again', () => proxy.open(/\/ws/) === 1);
    assert.equal(await me.card.getAttribute('data-state'), 'pending');
    await me.card.getByRole('button', { name: '简洁专业' }).click();
    await me.state('answered');
    await me.page.getByTestId('log').getByText('好的，就用这种语气。').waitFor();
    assert.equal((await settledOn(own, me.threadId)).answer, '简洁专业: 还在');
    assert.equal(proxy.seen(/\/answer$/), 1);
  });

  const looks = [['light-en', {}], ['phone-dark-zh', { width: 320, height: 640, touch: true, scheme: 'dark', locale: 'zh-CN' }],
    ...LONG ? [['dark-zh', { scheme: 'dark', locale: 'zh-CN' }], ['phone-zh', { width: 390, height: 760, touch: true, locale: 'zh-CN' }]] : []];
  for (const [name, options] of looks) {
    test(`no barrier, no sideways scrolling, and targets large enough: ${name}`, async (t) => {
      const threadId = await say(server, 'tone');
      await post(server, `/interactions/${(await openOn(server, threadId)).interactionId}/answer`, { choices: ['c1'], text: '再短一点' });
      await until('over', async () => (await read(server, `/runs/${threadId}`)).status === 'completed');
      await say(server, 'tone', threadId);
      await openOn(server, threadId);
      const me = await visit(t, browser, server, threadId, options);
      await me.state('pending');
      await me.free.fill('语气可以轻松一点，但不要用网络流行语');
      await screen(me.page, `ask-${name}`);
      assert.deepEqual(await axe(me.page, { include: '[data-testid=log]' }), []);
      assert.ok(await me.page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), 'no sideways scrolling');
      if (options.touch) {
        const low = await me.card.locator('button, textarea').evaluateAll((all) => all.map((one) => one.getBoundingClientRect().height).filter((px) => px < 44));
        assert.deepEqual(low, []);
      }
    });
  }
});

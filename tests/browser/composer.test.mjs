// SPDX-License-Identifier: Apache-2.0
//
// Where a person writes: keys, drafts, stopping, the queue, what a message does to a question, files, and new versions.

import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';

import { axe, cuttingProxy, LONG, newPage, openBrowser, screen, settledText, startScripted, until } from './kit.mjs';

const SLOW = 'One two three four five. '.repeat(400);
const QUESTION = 'How long should the meeting be?';
const asking = (question, choices) => ({ name: 'ask_user', args: { question, choices } });
const BOOK = { name: 'calendar_write', args: { title: 'Review', start_time: '2026-11-16T15:00:00+08:00', end_time: '2026-11-16T16:00:00+08:00' } };
const SCRIPT = [
  { match: '^slow', turns: [{ text: SLOW, chunk: 4, gap_ms: 20 }] },
  { match: '^short', turns: [{ text: 'A word at a time, and then it ends.', chunk: 1, gap_ms: 120 }] },
  { match: '^ask', turns: [{ calls: [asking(QUESTION, ['30 minutes', '1 hour'])] }, { text: 'Noted.' }] },
  { match: '^two', turns: [{ calls: [asking('First?', ['a', 'b']), asking('Second?', ['c', 'd'])] }, { text: 'Noted both.' }] },
  { match: '^book', turns: [{ calls: [BOOK] }, { text: 'As you like.' }] },
  { match: '^colour', turns: [{ text: 'A colour.' }] },
  { turns: [{ text: 'Hello. 你好。' }] },
];
const PNG = Buffer.from('iVBORw0KGgoAAAANSUhEUgAAAAoAAAAKCAIAAAACUFjqAAAAEklEQVR4nGP4z8CAB+GTG8HSALfKY52fTcuYAAAAAElFTkSuQmCC', 'base64');
const UPLOAD_MAX = 200_000;

let browser, close, server, folder, log;
before(async () => {
  ({ browser, close } = await openBrowser());
  folder = await mkdtemp(join(tmpdir(), 'fermata-asked-'));
  log = join(folder, 'asked.jsonl');
  server = await startScripted(SCRIPT, { env: { FERMATA_SCRIPT_LOG: log, FERMATA_LIMITS_UPLOAD: String(UPLOAD_MAX) } });
});
after(async () => {
  await close?.();
  await server?.stop();
  if (folder) await rm(folder, { recursive: true, force: true });
});

const field = (page) => page.getByTestId('composer');
const runs = ({ requests }) => requests.filter(({ method, path }) => method === 'POST' && path.endsWith('/agent/runs'));
const cancels = ({ requests }) => requests.filter(({ path }) => path.endsWith('/cancel'));
const own = (page) => page.locator('[data-kind=user] .bubble');
const replies = (page, text) => page.locator('[data-kind=agent]').getByText(text, { exact: true });
const asked = async () => (await readFile(log, 'utf8')).split('\n').slice(0, -1).map((line) => JSON.parse(line));

async function open(t, options = {}) {
  const opened = await newPage(browser, { url: `${server.url}/`, ...options });
  t.after(opened.done);
  await field(opened.page).waitFor();
  return opened;
}

async function say(page, text) {
  await field(page).fill(text);
  await field(page).press('Control+Enter');
}

const isAllSent = (page) => page.evaluate(() => !Object.keys(localStorage).some((name) => name.includes(':outbox:')));
const threadOf = (page) => page.evaluate(() => location.hash.replace('#/t/', ''));

describe('keys', () => {
  test('Enter sends once and empties, Shift+Enter breaks the line, blanks are nothing', async (t) => {
    const opened = await open(t), { page } = opened;
    assert.ok(await page.getByTestId('send').isDisabled());
    await field(page).fill('  \n ');
    await field(page).press('Enter');
    assert.ok(await page.getByTestId('send').isDisabled());
    assert.equal(runs(opened).length, 0);

    await field(page).fill('');
    await field(page).pressSequentially('one');
    await field(page).press('Shift+Enter');
    await field(page).pressSequentially('two');
    await field(page).press('Enter');
    await page.keyboard.press('Enter'); // the field of the new conversation has the focus
    await page.keyboard.press('Enter');
    await replies(page, 'Hello. 你好。').waitFor();
    assert.equal(await own(page).innerText(), 'one\ntwo');
    assert.equal(await field(page).inputValue(), '');
    assert.equal(await page.evaluate(() => document.activeElement.dataset.testid), 'composer');
    assert.equal(runs(opened).length, 1);

    await field(page).fill('three');
    await page.getByTestId('send').dblclick();
    await until('the second reply', async () => await replies(page, 'Hello. 你好。').count() === 2);
    assert.equal(runs(opened).length, 2);
  });

  test('Enter that an input method has neither sends nor breaks; the next one sends', async (t) => {
    const opened = await open(t, { locale: 'zh-CN' }), { page, context } = opened;
    await field(page).focus();
    const cdp = await context.newCDPSession(page);
    await cdp.send('Input.imeSetComposition', { text: 'nihao', selectionStart: 5, selectionEnd: 5 });
    await until('it is being composed', async () => await field(page).inputValue() === 'nihao');
    const press = (more) => cdp.send('Input.dispatchKeyEvent', { type: 'keyDown', key: 'Enter', code: 'Enter', ...more });
    await press({ windowsVirtualKeyCode: 13, text: '\r' }); // while it is composing
    await cdp.send('Input.insertText', { text: '你好' });
    await press({ windowsVirtualKeyCode: 229 }); // as Safari tells it, after the composition
    await until('it was composed', async () => (await field(page).inputValue()).trim() === '你好');
    assert.equal(runs(opened).length, 0);
    await field(page).press('Enter');
    await replies(page, 'Hello. 你好。').waitFor();
    assert.equal(await own(page).innerText(), '你好');
    assert.equal(runs(opened).length, 1);
  });

  test('as one likes it: Enter breaks the line, Ctrl+Enter sends; on touch Enter breaks the line', async (t) => {
    for (const options of [{ storage: { 'fermata:/:prefs': '{"enterSends":false}' } }, { touch: true, width: 390 }]) {
      const opened = await open(t, options), { page } = opened;
      await field(page).pressSequentially('one');
      await field(page).press('Enter');
      assert.equal(await field(page).inputValue(), 'one\n');
      assert.equal(runs(opened).length, 0);
      await field(page).press('Control+Enter');
      await own(page).waitFor();
      await until('it is sent', () => runs(opened).length === 1);
    }
  });

  test('forty keys while a reply comes in: none is lost', async (t) => {
    const { page } = await open(t);
    await say(page, 'slow, please');
    await page.getByTestId('log').getByText('One two three').waitFor();
    const keys = 'the quick brown fox jumps over a lazy do';
    await field(page).pressSequentially(keys, { delay: 20 });
    assert.equal(await field(page).inputValue(), keys);
    assert.ok(await page.getByTestId('stop').isVisible(), 'it was still coming in');
    await page.getByTestId('stop').click();
    await page.getByTestId('stop').waitFor({ state: 'detached' });
    assert.equal(await field(page).inputValue(), keys);
  });
});

describe('stopping', () => {
  test('by button: one request, with the run; the text stays, the stage says stopped', async (t) => {
    const opened = await open(t), { page } = opened;
    await say(page, 'slow, please');
    await page.getByTestId('log').getByText('One two three').waitFor();
    await page.getByTestId('stop').dblclick();
    await page.getByTestId('stop').waitFor({ state: 'detached' });
    assert.equal(cancels(opened).length, 1);
    assert.equal(typeof JSON.parse(cancels(opened)[0].body).runId, 'string');
    assert.match(await page.locator('[data-kind=agent] .md').innerText(), /^One two three/);
    assert.equal(await page.locator('[data-testid^=step-][data-state=stopped]').count(), 1);
  });

  test('and tried again: a double click is one', async (t) => {
    const opened = await open(t), { page } = opened;
    await say(page, 'slow, please');
    await page.getByTestId('stop').click();
    const again = page.getByTestId('outcome').getByRole('button', { name: 'Try again' });
    await again.dblclick();
    await page.locator('.replaced summary').waitFor();
    await until('nothing is to be sent', () => isAllSent(page));
    assert.equal(runs(opened).length, 2);
    await page.getByTestId('stop').click();
    await again.waitFor();
  });

  test('by Esc, twice in a row; one Esc does nothing', async (t) => {
    const opened = await open(t), { page, context } = opened;
    await say(page, 'slow, please');
    await page.getByTestId('log').getByText('One two three').waitFor();
    const labels = await page.getByTestId('stop').evaluateHandle((button) => {
      const list = [];
      new MutationObserver(() => list.push(button.textContent)).observe(button, { childList: true, characterData: true, subtree: true });
      return list;
    });
    await page.keyboard.press('Escape');
    await until('it was not meant', async () => (await labels.jsonValue()).join() === 'Press Esc again to stop,Stop');
    assert.equal(cancels(opened).length, 0);
    const cdp = await context.newCDPSession(page); // twice without a way between: there are two seconds for it
    await Promise.all(['keyDown', 'keyUp', 'keyDown', 'keyUp'].map((type) =>
      cdp.send('Input.dispatchKeyEvent', { type, key: 'Escape', code: 'Escape', windowsVirtualKeyCode: 27 })));
    await page.getByTestId('stop').waitFor({ state: 'detached' });
    assert.equal(cancels(opened).length, 1);
  });

  test('not by closing the tab', async (t) => {
    const opened = await open(t), { page, tab } = opened;
    await say(page, 'short, please');
    await page.getByTestId('stop').waitFor();
    const url = page.url();
    await page.close({ runBeforeUnload: true });
    const next = await tab(url);
    await replies(next, 'A word at a time, and then it ends.').waitFor();
    assert.equal(cancels(opened).length, 0);
  });
});

test('a message during a run is queued, and can be dropped; the next one follows', async (t) => {
  const { page, requests } = await open(t);
  await say(page, 'slow, please');
  await page.getByTestId('stop').waitFor();
  await say(page, 'drop me');
  await say(page, 'keep me');
  const queued = page.locator('[data-state=queued]');
  await until('both are queued', async () => await queued.count() === 2);
  await screen(page, 'composer-queued');
  await queued.first().getByRole('button', { name: 'Take back' }).click();
  await until('one is left', async () => await queued.count() === 1);
  await until('its words are back', async () => await field(page).inputValue() === 'drop me');
  await page.getByTestId('stop').click();
  await replies(page, 'Hello. 你好。').waitFor();
  assert.deepEqual(await own(page).allInnerTexts(), ['slow, please', 'keep me']);
  assert.equal(requests.filter(({ method }) => method === 'DELETE').length, 1);
});

test('what is queued before the server has said yes can be taken back: nothing of it is left to send', async (t) => {
  const opened = await open(t), { page } = opened, queued = page.locator('[data-state=queued]');
  await say(page, 'slow, please');
  await page.getByTestId('stop').waitFor();
  await until('nothing is to be sent', () => isAllSent(page));
  let answer; // held back, while its event is not
  await page.route('**/agent/runs', async (route) => {
    const response = await route.fetch();
    answer = () => route.fulfill({ response });
  });
  await say(page, 'drop me');
  await queued.getByRole('button', { name: 'Take back' }).click();
  await until('its words are back', async () => await field(page).inputValue() === 'drop me');
  await until('it is gone', async () => (await own(page).allInnerTexts()).join() === 'slow, please');
  assert.ok(await isAllSent(page));
  await answer();
  await page.getByTestId('stop').click();
  await page.getByTestId('stop').waitFor({ state: 'detached' });
  assert.deepEqual(await own(page).allInnerTexts(), ['slow, please']);
  assert.equal(await field(page).inputValue(), 'drop me');
  assert.equal(runs(opened).length, 2);
});

// A reply pushes along what waits below it, also between the down and the up of a press.
for (const [name, touch] of [['pointer', false], ['finger', true]]) {
  test(`a press counts for what it began on, though that has moved on under the ${name}`, async (t) => {
    const { page, context, requests } = await open(t, { height: 2400, touch }), queued = page.locator('[data-state=queued]');
    const cdp = await context.newCDPSession(page), finger = (type, ...touchPoints) => cdp.send('Input.dispatchTouchEvent', { type, touchPoints });
    const hand = touch ? { down: (x, y) => finger('touchStart', { x, y }), up: () => finger('touchEnd') }
      : { down: (x, y) => page.mouse.move(x, y).then(() => page.mouse.down()), up: () => page.mouse.up() };
    await say(page, 'slow, please');
    await page.getByTestId('stop').waitFor();
    for (const text of ['drop me', 'keep me']) await say(page, text);
    await until('both are queued', async () => await queued.count() === 2);
    const button = queued.first().getByRole('button', { name: 'Take back' });
    await button.evaluate((node) => document.addEventListener('pointerdown', ({ target }) => { window.isOnIt = target === node; }, true));
    const at = await until('it is pressed', async () => { // it may have moved before, too
      const { x, y, width, height } = await button.boundingBox(), place = [x + width / 2, y + height / 2];
      await hand.down(...place);
      if (await page.evaluate(() => window.isOnIt)) return place;
      return hand.up();
    });
    await until('something else is there', () => button.evaluate((node, [x, y]) => document.elementFromPoint(x, y) !== node, at));
    await hand.up();
    await until('one is left', async () => await queued.count() === 1);
    await until('its words are back', async () => await field(page).inputValue() === 'drop me');

    if (!touch) { // a finger that moves scrolls
      await queued.getByRole('button', { name: 'Take back' }).hover();
      await page.mouse.down();
      await page.mouse.move(10, 10);
      await page.mouse.up();
    }
    await page.getByTestId('stop').click();
    await replies(page, 'Hello. 你好。').waitFor();
    assert.deepEqual(await own(page).allInnerTexts(), ['slow, please', 'keep me']);
    assert.equal(requests.filter(({ method }) => method === 'DELETE').length, 1);
  });
}

test('drafts: one each conversation, over a reload; gone once sent', async (t) => {
  const { page } = await open(t);
  await say(page, 'hello');
  await replies(page, 'Hello. 你好。').waitFor();
  const there = await page.evaluate(() => location.hash);
  await field(page).fill('for later\n以后再说');
  await page.evaluate(() => { location.hash = '#/'; });
  await until('an empty one', async () => await field(page).inputValue() === '');
  await field(page).fill('a new one');
  await page.reload();
  await until('that of the new one', async () => await field(page).inputValue() === 'a new one');
  await page.evaluate((hash) => { location.hash = hash; }, there);
  await until('that of the old one', async () => await field(page).inputValue() === 'for later\n以后再说');
  await field(page).press('Enter');
  await until('it is said', async () => await own(page).count() === 2);
  await page.reload();
  await until('it is there', async () => await own(page).count() === 2);
  assert.equal(await field(page).inputValue(), '');
  await page.evaluate(() => { location.hash = '#/'; });
  await until('the other is not touched', async () => await field(page).inputValue() === 'a new one');
});

test('drafts in two tabs: neither takes the words of the other, and what was sent stays sent', async (t) => {
  const { page, tab } = await open(t);
  const other = await tab();
  await field(other).waitFor();
  await field(page).fill('words of the first, many');
  const third = await tab();
  await until('it shows them too', async () => await field(third).inputValue() === 'words of the first, many');
  await field(other).fill('B');
  await say(other, 'BB');
  await replies(other, 'Hello. 你好。').waitFor();
  await page.reload();
  await until('they are there', async () => await field(page).inputValue() === 'words of the first, many');
  await say(page, 'others');
  await replies(page, 'Hello. 你好。').waitFor();
  await third.reload();
  await field(third).waitFor();
  assert.equal(await field(third).inputValue(), '');
});

describe('while somebody is asked', () => {
  test('one question: the message says what it answers, and does', async (t) => {
    const { page } = await open(t);
    await say(page, 'ask me');
    const aim = page.locator('[data-testid=aim][data-state=answers]');
    await aim.getByText(QUESTION).waitFor();
    await screen(page, 'composer-answers');
    await say(page, 'forty minutes');
    await replies(page, 'Noted.').waitFor();
    await aim.waitFor({ state: 'detached' });
    await page.locator('[data-kind=user]', { hasText: 'forty minutes' }).getByText('as an answer').waitFor();
    assert.equal((await asked()).at(-1).messages.at(-1).text, 'forty minutes');
  });

  test('two questions: sending waits, with the reason; what is written stays', async (t) => {
    const opened = await open(t), { page } = opened;
    await say(page, 'two of them');
    await page.getByTestId('hint').getByText('Several questions are waiting').waitFor();
    await say(page, 'which one?');
    assert.ok(await page.getByTestId('send').isDisabled());
    assert.equal(await field(page).inputValue(), 'which one?');
    assert.equal(runs(opened).length, 1);
  });

  test('an approval: the message warns that it rejects, and does; it never approves', async (t) => {
    const { page } = await open(t);
    await say(page, 'book it');
    await page.locator('[data-testid=aim][data-state=rejects]').waitFor();
    await screen(page, 'composer-rejects');
    await say(page, 'yes, but at four');
    await replies(page, 'As you like.').waitFor();
    assert.match((await asked()).at(-1).messages.at(-1).text, /rejected.*yes, but at four/);
  });
});

describe('another version', () => {
  test('an edit folds the old turn and all that followed; the model does not see it; Esc gives up', async (t) => {
    const { page } = await open(t);
    await say(page, 'colour red');
    await replies(page, 'A colour.').waitFor();
    await say(page, 'and hello');
    await replies(page, 'Hello. 你好。').waitFor();
    const button = page.locator('[data-kind=user]', { hasText: 'colour red' }).getByTestId('edit-button');
    await button.click();
    const edit = page.getByTestId('edit').locator('textarea');
    assert.equal(await edit.inputValue(), 'colour red');
    await edit.fill('nothing');
    await page.keyboard.press('Escape');
    assert.equal(await page.getByTestId('edit').count(), 0);
    assert.equal(await own(page).first().innerText(), 'colour red');

    await button.click();
    await edit.fill('colour blue');
    await page.getByTestId('edit').getByRole('button', { name: 'Send' }).click();
    await page.locator('.replaced summary').waitFor();
    await until('one reply is left to see', async () => await replies(page, 'A colour.').count() === 1);
    assert.deepEqual(await own(page).allInnerTexts(), ['colour blue']);
    const { messages } = (await asked()).at(-1);
    assert.deepEqual(messages.map(({ text }) => text), ['colour blue']);
    await page.locator('.replaced summary').click();
    await until('the old ones show', async () => (await own(page).allInnerTexts()).join() === 'colour red,and hello,colour blue');
    await page.locator('.replaced summary').click();
    await until('and are folded again', async () => await own(page).count() === 1);
    await screen(page, 'composer-edited');

    await until('the reply is complete', async () => await page.getByTestId('regenerate').isEnabled());
    const live = await settledText(page);
    await page.reload();
    await replies(page, 'A colour.').waitFor();
    await page.getByTestId('regenerate').waitFor();
    assert.equal(await settledText(page), live);
  });

  test('answering again: of the newest reply only, not during a run, and without the old one', async (t) => {
    const { page } = await open(t);
    await say(page, 'hello');
    await replies(page, 'Hello. 你好。').waitFor();
    await say(page, 'ask me');
    await page.getByTestId('aim').waitFor();
    assert.equal(await page.locator('[data-testid=regenerate]:enabled').count(), 0);
    await say(page, '1 hour');
    await replies(page, 'Noted.').waitFor();
    await page.locator('[data-testid=regenerate]:enabled').waitFor();
    assert.equal(await page.getByTestId('regenerate').count(), 1);
    await page.getByTestId('regenerate').click(); // of the question that the run began with, not of the answer
    await page.getByTestId('aim').waitFor();
    assert.deepEqual(await own(page).allInnerTexts(), ['hello', 'ask me']);
    const { messages } = (await asked()).at(-1);
    assert.deepEqual(messages.map(({ role, text }) => `${role} ${text}`), ['user hello', 'assistant Hello. 你好。', 'user ask me']);
  });
});

describe('files', () => {
  const uploads = (page, state) => page.locator(`[data-testid=upload]${state ? `[data-state=${state}]` : ''}`);
  const pick = (page, ...files) => page.getByTestId('attach').setInputFiles(files.map(([name, mimeType, buffer]) => ({ name, mimeType, buffer })));
  // Whether it was taken.
  const give = (page, type, name, bytes) => page.evaluate(([kind, filename, list]) => {
    const data = new DataTransfer();
    data.items.add(new File([new Uint8Array(list)], filename, { type: 'image/png' }));
    const composer = document.querySelector('[data-testid=composer]');
    return !(kind === 'paste' ? composer.dispatchEvent(new ClipboardEvent('paste', { clipboardData: data, bubbles: true, cancelable: true }))
      : document.querySelector('.composer').dispatchEvent(new DragEvent(kind, { dataTransfer: data, bubbles: true, cancelable: true })));
  }, [type, name, [...bytes]]);

  test('by button, paste and drop; kept over a reload; sent, shown and seen by the model', async (t) => {
    const { page } = await open(t);
    await pick(page, ['notes.txt', 'text/plain', Buffer.from('remember the milk')]);
    await until('it listens', () => give(page, 'paste', 'pasted.png', PNG)); // which it does a frame after it is drawn
    await give(page, 'dragover', 'dropped.png', PNG);
    await page.getByTestId('drop').waitFor();
    await screen(page, 'composer-drop');
    await give(page, 'drop', 'dropped.png', PNG);
    await page.getByTestId('drop').waitFor({ state: 'detached' });
    await until('all are up', async () => await uploads(page, 'done').count() === 3);
    await until('their pictures', () => uploads(page).locator('img').evaluateAll((list) => list.filter(({ src, naturalWidth }) => src.startsWith('blob:') && naturalWidth).length === 2));
    await screen(page, 'composer-files');

    await page.reload();
    await until('all are there', async () => await uploads(page, 'done').count() === 3);
    await until('their pictures too', () => uploads(page).locator('img').evaluateAll((list) => list.filter(({ naturalWidth }) => naturalWidth).length === 2));
    await uploads(page).filter({ hasText: 'dropped.png' }).getByRole('button').click();
    await say(page, 'look at these');
    await replies(page, 'Hello. 你好。').waitFor();
    assert.equal(await uploads(page).count(), 0);
    const files = page.locator('[data-kind=user] .files');
    assert.deepEqual(await files.locator('a').allInnerTexts().then((list) => list.map((one) => one.split(/\s/)[0]).sort()), ['notes.txt', 'pasted.png']);
    assert.equal(await files.locator('img').getAttribute('alt'), 'pasted.png');
    const [message] = (await asked()).at(-1).messages;
    assert.match(message.text, /look at these[^]*remember the milk/);
    assert.deepEqual(message.images.map(({ filename }) => filename), ['pasted.png']);

    await page.getByTestId('regenerate').waitFor();
    const live = await settledText(page);
    await page.reload();
    await page.getByTestId('regenerate').waitFor();
    assert.equal(await settledText(page), live);

    await page.locator('[data-kind=user]').getByTestId('edit-button').click();
    await page.getByTestId('edit').locator('textarea').fill('look again');
    await page.getByTestId('edit').getByRole('button', { name: 'Send' }).click();
    await page.locator('.replaced summary').waitFor();
    await until('the model has the files again', async () => {
      const last = (await asked()).at(-1).messages;
      return last.length === 1 && /look again[^]*remember the milk/.test(last[0].text) && last[0].images.length === 1;
    });
  });

  test('in a new conversation, seen by other tabs: what they begin is another one, or asks first', async (t) => {
    const { page, tab } = await open(t);
    await field(page).fill('book from this file');
    await pick(page, ['notes.txt', 'text/plain', Buffer.from('x')]);
    await until('it is up', async () => await uploads(page, 'done').count() === 1);
    const without = await tab(), same = await tab();
    for (const one of [without, same]) await until('it shows the file too', async () => await uploads(one, 'done').count() === 1);
    await page.getByTestId('send').click();
    await page.getByTestId('confirm-card').waitFor();
    await uploads(without).getByRole('button').click();
    await say(without, 'another topic');
    await replies(without, 'Hello. 你好。').waitFor();
    assert.notEqual(await without.evaluate(() => location.hash), await page.evaluate(() => location.hash));
    await say(same, 'more about this file');
    await same.locator('.own[data-state=failed]').getByText('something was asked since').waitFor();
    await until('with what was not sent', async () => await own(page).count() === 2);
    assert.equal(await page.locator('[data-testid=confirm-card] .decide-row').count(), 1, 'nothing was decided');
  });

  test('dropped where they have no place: the page stays', async (t) => {
    const { page } = await open(t);
    await page.evaluate(() => { location.hash = '#/settings'; });
    await field(page).waitFor({ state: 'detached' });
    for (const type of ['dragover', 'drop']) assert.equal(await page.evaluate((name) => {
      const dataTransfer = new DataTransfer();
      dataTransfer.items.add(new File(['x'], 'x.txt'));
      return document.body.dispatchEvent(new DragEvent(name, { dataTransfer, bubbles: true, cancelable: true }));
    }, type), false, type);
  });

  test('words that are pasted with a picture of themselves stay words', async (t) => {
    const { page } = await open(t);
    const prevented = await field(page).evaluate((element) => {
      const data = new DataTransfer();
      data.setData('text/plain', 'a\tb');
      data.items.add(new File(['x'], 'table.png', { type: 'image/png' }));
      return !element.dispatchEvent(new ClipboardEvent('paste', { clipboardData: data, bubbles: true, cancelable: true }));
    });
    assert.equal(prevented, false);
    assert.equal(await uploads(page).count(), 0);
  });

  test('too large, or empty: said at once, nothing is sent, and the message waits', async (t) => {
    const { page, requests } = await open(t);
    await page.evaluate(() => { location.hash = '#/settings'; });
    await page.getByTestId('rounds').waitFor(); // the limits are known
    await page.evaluate(() => { location.hash = '#/'; });
    await field(page).waitFor();
    await pick(page, ['large.bin', 'application/octet-stream', Buffer.alloc(UPLOAD_MAX + 1)], ['empty.txt', 'text/plain', Buffer.alloc(0)]);
    assert.equal(await uploads(page, 'failed').count(), 2);
    await uploads(page).getByText('larger than 195.3 kB').waitFor();
    await uploads(page).getByText('empty', { exact: true }).waitFor();
    assert.equal(requests.filter(({ path }) => path.endsWith('/attachments')).length, 0);
    await field(page).fill('and words');
    assert.ok(await page.getByTestId('send').isDisabled());
    await page.getByTestId('hint').getByText('try again or remove it').waitFor();
    for (const name of ['large.bin', 'empty.txt']) await page.getByRole('button', { name: `Remove ${name}` }).click();
    assert.ok(await page.getByTestId('send').isEnabled());
  });

  test('progress, cancelling, and another try after a cut', async (t) => {
    const proxy = await cuttingProxy(server);
    t.after(() => proxy.close());
    const opened = await newPage(browser, { url: `${proxy.url}/` }), { page, problems, requests, sent } = opened;
    t.after(opened.done);
    problems.allow(/ERR_(EMPTY_RESPONSE|CONNECTION|ABORTED|FAILED|SOCKET)/);
    await field(page).waitFor();
    await page.waitForLoadState('networkidle');
    await until('its line', () => sent.length);
    proxy.hold();
    await pick(page, ['one.bin', 'application/octet-stream', Buffer.alloc(150_000, 1)], ['two.bin', 'application/octet-stream', Buffer.alloc(1000, 2)],
      ['three.bin', 'application/octet-stream', Buffer.alloc(1000, 3)]);
    await until('two are on their way, one waits', async () => await uploads(page, 'sending').count() === 2 && await uploads(page, 'waiting').count() === 1);
    assert.equal(await uploads(page, 'sending').getByRole('progressbar').count(), 2);
    await field(page).fill('words');
    await page.getByTestId('hint').getByText('Uploading').waitFor();
    assert.ok(await page.getByTestId('send').isDisabled());
    await screen(page, 'composer-uploading');
    await page.getByRole('button', { name: 'Remove one.bin' }).click();
    await until('the third has its place', async () => await uploads(page, 'sending').count() === 2);
    proxy.refuse();
    proxy.release();
    proxy.cut();
    await until('both failed', async () => await uploads(page, 'failed').count() === 2);
    await uploads(page, 'failed').getByText('connection lost').first().waitFor();
    await screen(page, 'composer-failed-file');
    proxy.refuse(false);
    for (const name of ['two.bin', 'three.bin']) await page.getByRole('button', { name: `Try again ${name}` }).click();
    await until('both are up', async () => await uploads(page, 'done').count() === 2);
    assert.ok(!requests.filter(({ path }) => path.endsWith('/cancel')).length);
    await until('it can be sent', () => page.getByTestId('send').isEnabled());
    await field(page).press('Enter');
    await replies(page, 'Hello. 你好。').waitFor();
    assert.equal(await page.locator('[data-kind=user] .files a').count(), 2);
  });
});

test('several agents: a new conversation has a choice, an old one has none', async (t) => {
  const two = await startScripted([{ turns: [{ text: 'Hello.' }] }], { config: 'agents:\n  assistant: {prompt: A}\n  clerk: {prompt: B}\n' });
  const opened = await newPage(browser, { url: `${two.url}/` }), { page, requests } = opened;
  t.after(async () => {
    await opened.done();
    await two.stop();
  });
  await page.getByTestId('agent').selectOption('clerk');
  await say(page, 'hello');
  await replies(page, 'Hello.').waitFor();
  assert.equal(JSON.parse(runs({ requests })[0].body).agent, 'clerk');
  assert.equal(await page.getByTestId('agent').count(), 0);
  assert.equal((await (await fetch(`${two.url}/api/v1/agent/threads/${await threadOf(page)}`)).json()).agent, 'clerk');
});

test('a long text is folded, and can be shown', async (t) => {
  const { page } = await open(t);
  const lines = Array.from({ length: 60 }, (_, i) => `line ${i + 1}`);
  await say(page, lines.join('\n'));
  await own(page).waitFor();
  assert.doesNotMatch(await own(page).innerText(), /line 31/);
  await page.getByTestId('regenerate').waitFor(); // nothing moves any more
  await own(page).getByRole('button', { name: 'Show all' }).click();
  assert.match(await own(page).innerText(), /line 60/);
});

const looks = [['light', {}], ['phone-dark-zh', { width: 320, height: 640, touch: true, scheme: 'dark', locale: 'zh-CN' }],
  ...LONG ? [['dark-zh', { scheme: 'dark', locale: 'zh-CN' }]] : []];
for (const [name, options] of looks) {
  test(`no barriers, nothing sticks out: ${name}`, async (t) => {
    const { page } = await open(t, options);
    await page.getByTestId('attach').setInputFiles([{ name: 'a-picture-with-a-name-that-is-rather-long.png', mimeType: 'image/png', buffer: PNG }]);
    await page.locator('[data-testid=upload][data-state=done]').waitFor();
    await say(page, '你好，请看这张图片。\nAnd a line in English.');
    await page.getByTestId('regenerate').waitFor();
    await say(page, 'slow, please');
    await page.getByTestId('stop').waitFor();
    await say(page, 'next in line');
    await page.locator('[data-state=queued]').waitFor();
    await page.getByTestId('attach').setInputFiles([{ name: '空.txt', mimeType: 'text/plain', buffer: Buffer.alloc(0) }]);
    await field(page).fill('a draft');
    assert.deepEqual(await axe(page), []);
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
    if (options.touch) {
      const small = await page.locator('.composer button:visible, .own button:visible').evaluateAll((list) =>
        list.map((one) => [one.title || one.textContent, one.getBoundingClientRect()]).filter(([, { width, height }]) => width < 44 || height < 44).map(([text]) => text));
      assert.deepEqual(small, []);
    }
    await screen(page, `composer-${name}`);
    await page.getByTestId('stop').click();
    await page.getByTestId('stop').waitFor({ state: 'detached' });
  });
}

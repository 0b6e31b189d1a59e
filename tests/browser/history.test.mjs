// SPDX-License-Identifier: Apache-2.0
//
// Long conversations: a few pages are in the document, the past is loaded as somebody scrolls towards it, and what is read
// stays where it is. And what is shown while there is nothing to show.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';

import { axe, LONG, newPage, openBrowser, screen, until } from './kit.mjs';
import { ended, post, startLong } from './long.mjs';

const MANY = LONG ? 10_000 : 2_500, MIDDLE = 1_500; // messages
const ELEMENTS_MAX = 12_000;
const MOUNTED_MAX = 100;
const SCRIPT = [
  { match: '^stream', turns: [{ text: 'Some **text** that grows, and grows, while somebody looks for something in the past.\n\n'.repeat(2000), chunk: 6, gap_ms: 4 }] },
  { match: '^ask', turns: [{ calls: [{ name: 'ask_user', args: { question: 'Which colour?', choices: ['Red', 'Blue'] } }] }, { text: 'Done.' }] },
  { turns: [{ text: 'Yes.' }] },
];
const user = (content) => [{ role: 'user', content }];

let browser, close, server;
before(async () => {
  ({ browser, close } = await openBrowser());
  server = await startLong({ long: MANY, middle: MIDDLE, streaming: MIDDLE, few: 20 }, SCRIPT);
});
after(async () => {
  await close?.();
  await server?.stop();
});

const at = (threadId) => `${server.url}/#/t/${threadId}`;
const gapOf = (page) => page.locator('.scroller').evaluate((el) => el.scrollHeight - el.clientHeight - el.scrollTop);
const turns = (page) => page.locator('[data-testid=turn]');
const older = (page, state) => page.locator(`[data-testid=older][data-state=${state}]`);

async function opened(t, threadId, options = {}) {
  const kit = await newPage(browser, { url: at(threadId), ...options });
  t.after(kit.done);
  await until('its end is in sight', async () => await turns(kit.page).count() > 10 && await gapOf(kit.page) < 4);
  for (const part of ['h1 button', '[data-testid=totals]']) await kit.page.locator(`.head ${part}`).waitFor(); // the head grows with them on a phone
  return kit;
}

// Scrolls up by `step` px at a time, waits until nothing is loading, and notes: every turn that was in the document, the
// most elements and turns there were, how far what is at the top edge has moved without being scrolled, and how often the past came in.
function climb({ step, pages }) {
  const el = document.querySelector('.scroller'), log = document.querySelector('[data-testid=log]');
  const seen = new Set(), notes = { elements: 0, mounted: 0, drift: 0, prepends: 0, steps: 0, doubled: 0 };
  const frame = () => new Promise(requestAnimationFrame);
  const painted = () => frame().then(() => new Promise((resolve) => setTimeout(resolve)));
  const state = () => document.querySelector('[data-testid=older]').dataset.state;
  let first = log.firstElementChild.dataset.key;
  const look = () => {
    const keys = [...log.children].map(({ dataset }) => dataset.key);
    notes.doubled += keys.length - new Set(keys).size;
    keys.forEach((key) => seen.add(key));
    notes.mounted = Math.max(notes.mounted, keys.length);
    notes.elements = Math.max(notes.elements, document.querySelectorAll('*').length);
    return keys[0];
  };
  return (async () => {
    for (look(); notes.prepends < pages; notes.steps++) {
      el.scrollTop -= step;
      await painted();
      const edge = el.getBoundingClientRect().top;
      const node = [...log.children].find((one) => one.getBoundingClientRect().bottom > edge + 1);
      const top = node.getBoundingClientRect().top;
      for (let rest = 0; rest < 2; rest = state() === 'loading' ? 0 : rest + 1) { // until the past has come in
        await painted();
        notes.drift = Math.max(notes.drift, Math.abs(node.getBoundingClientRect().top - top));
        const now = look();
        if (now !== first && state() !== 'loading') notes.prepends++;
        first = now;
      }
      if (el.scrollTop === 0 && state() === 'none') break;
    }
    return { ...notes, keys: [...seen] };
  })();
}

describe('thousands of messages', () => {
  test('open at the end; all of them up to the first; a small document; nothing moves', async (t) => {
    const { page, requests } = await opened(t, 'long');
    assert.ok(await turns(page).count() <= MOUNTED_MAX);
    assert.ok(requests.filter(({ path }) => path.includes('/history')).length <= 3, 'only the newest pages are asked for');
    const { keys, elements, mounted, drift, doubled } = await page.evaluate(climb, { step: 8000, pages: Infinity });
    assert.equal(keys.length, MANY, 'every message was there');
    assert.equal(doubled, 0, 'none was there twice');
    assert.ok(elements < ELEMENTS_MAX, `${elements} elements`);
    assert.ok(mounted <= MOUNTED_MAX, `${mounted} turns`);
    assert.ok(drift <= 2, `moved by ${drift} px`);
    assert.equal(await older(page, 'none').innerText(), 'The conversation begins here');
    assert.equal(await turns(page).first().locator('.bubble').innerText(), 'Words number 0.');
    await screen(page, 'history-beginning');

    // Back to the end at once, and into the middle of it, as a scrollbar does.
    await page.locator('.scroller').focus();
    await page.keyboard.press('End');
    await until('the end', async () => await gapOf(page) < 4 && (await turns(page).last().innerText()).includes('So much for that.'));
    await page.locator('.scroller').evaluate((el) => { el.scrollTop = el.scrollHeight / 2; });
    await until('words in the middle', () => page.evaluate(() => {
      const edge = document.querySelector('.scroller').getBoundingClientRect();
      return document.elementFromPoint(edge.left + edge.width / 2, edge.top + edge.height / 2)?.closest('[data-testid=turn]') !== null;
    }));
    assert.ok(await turns(page).count() <= MOUNTED_MAX);
    await page.locator('.scroller').evaluate((el) => { el.scrollTop = 0; });
    await until('the first', async () => await turns(page).first().locator('.bubble').innerText() === 'Words number 0.');
  });
});

test('the past comes in 20 times while a reply streams: nothing moves', async (t) => {
  const { page } = await opened(t, 'streaming');
  await post(server, 'streaming', user('stream'));
  await page.locator('[data-testid=turn][aria-busy=true] .md p').nth(3).waitFor();
  const { prepends, drift, doubled, elements } = await page.evaluate(climb, { step: 1500, pages: 20 });
  assert.ok(prepends >= 20, `${prepends} times`);
  assert.ok(drift <= 2, `moved by ${drift} px`);
  assert.equal(doubled, 0);
  assert.ok(elements < ELEMENTS_MAX);
  assert.equal(await page.locator('[data-testid=turn][aria-busy=true]').count(), 0, 'what streams is far away');
  await page.locator('[data-testid=jump]').click();
  await page.locator('[data-testid=turn][aria-busy=true]').waitFor();
  assert.ok(await gapOf(page) < 4);
  await fetch(`${server.url}/api/v1/agent/runs/streaming/cancel`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{}' });
});

test('Home goes to the first that is loaded, and further each time', async (t) => {
  const { page } = await opened(t, 'middle');
  await page.locator('.scroller').focus();
  const first = () => turns(page).first().getAttribute('data-key');
  for (let i = 0; i < 3; i++) {
    const was = await first();
    await page.keyboard.press('Home');
    await until('more of the past', async () => await first() !== was && await older(page, 'idle').count());
  }
});

test('the past that cannot be loaded: told, tried again on a press', async (t) => {
  const { page, problems } = await opened(t, 'middle', { width: 390, height: 780, locale: 'zh-CN' });
  problems.allow(/Failed to load resource.*403|403.*history/);
  await page.route(/history\?.*before=/, (route) => route.fulfill({ status: 403, contentType: 'application/problem+json', body: '{"code":"forbidden","detail":"no"}' }));
  await page.locator('.scroller').evaluate((el) => { el.scrollTop = 0; });
  await older(page, 'failed').waitFor();
  await page.locator('.scroller').evaluate((el) => { el.scrollTop = 0; });
  await screen(page, 'history-failed-phone-zh');
  assert.deepEqual(await axe(page, { include: '.scroller' }), []);
  await page.unroute(/history\?.*before=/);
  const before = await turns(page).first().getAttribute('data-key');
  await older(page, 'failed').getByRole('button').click();
  await until('more of the past', async () => await turns(page).first().getAttribute('data-key') !== before);
});

test('a link to what was asked long ago finds it and shows it', async (t) => {
  const threadId = 'asked';
  await post(server, threadId, user('ask me'));
  const { interactionId } = await until('a question', async () =>
    (await (await fetch(`${server.url}/api/v1/agent/interactions?threadId=${threadId}`)).json()).interactions[0]);
  const answer = await fetch(`${server.url}/api/v1/agent/interactions/${interactionId}/answer`, {
    method: 'POST', headers: { 'content-type': 'application/json' }, body: '{"answer":"Green"}',
  });
  assert.equal(answer.status, 200, await answer.text());
  await ended(server, threadId);
  await post(server, threadId, Array.from({ length: 400 }, (_, i) => ({ role: 'user', content: `Words ${i} since then.` })));
  await ended(server, threadId);
  const kit = await newPage(browser, { url: `${at(threadId)}/${interactionId}` });
  t.after(kit.done);
  await until('the question in sight', () => kit.page.evaluate((id) => {
    const card = document.getElementById(`asked-${id}`)?.getBoundingClientRect();
    const edge = document.querySelector('.scroller')?.getBoundingClientRect();
    return card && edge && card.top >= edge.top && card.bottom <= edge.bottom;
  }, interactionId));
  await until('the way back', async () => await kit.page.locator('[data-testid=jump]').count() === 1);
  await screen(kit.page, 'history-asked');
});

describe('before there is anything', () => {
  const held = async (t, answer) => {
    const kit = await newPage(browser, { url: server.url });
    t.after(kit.done);
    let go;
    const gate = new Promise((resolve) => { go = resolve; });
    await kit.page.route(/\/history\?/, async (route) => {
      await gate;
      await (answer ? route.fulfill(answer) : route.continue());
    });
    await kit.page.evaluate(() => {
      window.since = performance.now();
      new MutationObserver(() => {
        if (document.querySelector('[data-testid=skeleton]')) window.skeletonAfter ??= performance.now() - window.since;
      }).observe(document.body, { childList: true, subtree: true });
      location.hash = '#/t/few';
    });
    return { ...kit, go };
  };

  test('three rows that stand for turns, after a while; then the turns', async (t) => {
    const { page, go } = await held(t);
    await page.locator('[data-testid=skeleton]').waitFor();
    assert.ok(await page.evaluate(() => window.skeletonAfter) >= 290);
    assert.equal(await page.locator('.skeleton-row').count(), 3);
    await screen(page, 'history-loading');
    go();
    await until('turns', async () => await turns(page).count() === 20);
    assert.equal(await page.locator('[data-testid=skeleton]').count(), 0);
    assert.equal(await page.locator('[data-testid=older][data-state=none]').count(), 1);
  });

  test('what was refused is told, and tried again on a press', async (t) => {
    const { page, go, problems } = await held(t, { status: 403, contentType: 'application/problem+json', body: '{"code":"forbidden","detail":"This is not yours."}' });
    problems.allow(/403/);
    go();
    await page.locator('[data-testid=log-failed]').waitFor();
    assert.match(await page.locator('[data-testid=log-failed]').innerText(), /This is not yours\./);
    await screen(page, 'history-refused');
    await page.unroute(/\/history\?/);
    await page.locator('[data-testid=log-failed]').getByRole('button').click();
    await until('turns', async () => await turns(page).count() === 20);
  });
});

// SPDX-License-Identifier: Apache-2.0
//
// Where the log is scrolled to: it follows what comes in until the person scrolls up, and from then on nothing moves by
// itself, whatever streams, grows, unfolds or changes its size.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';

import { newPage, openBrowser, screen, startScripted, until } from './kit.mjs';
import { ended, post } from './long.mjs';

const PARAGRAPH = 'Some **text** that grows while somebody reads what stands above it, and it grows for quite a while.\n\n';
const SCRIPT = [
  { match: '^stream', turns: [{ text: PARAGRAPH.repeat(1000), chunk: 6, gap_ms: 4 }] },
  { match: '^tools', turns: [{ calls: [{ name: 'calendar_read', args: { from: '2030-01-01T00:00:00Z', to: '2030-01-02T00:00:00Z' } }] }, { text: 'Nothing that day.' }] },
  { match: '^story', turns: [{ text: PARAGRAPH.repeat(12) }] },
  { turns: [{ text: 'Short **answer**.\n\n- one\n- two' }] },
];
const user = (content) => [{ role: 'user', content }];

let browser, close, server, threads = 0;
before(async () => {
  ({ browser, close } = await openBrowser());
  server = await startScripted(SCRIPT);
});
after(async () => {
  await close?.();
  await server?.stop();
});

// ---- looking at the box ----

const gapOf = (page) => page.locator('.scroller').evaluate((el) => el.scrollHeight - el.clientHeight - el.scrollTop);
const frames = (page, count = 2) => page.evaluate(async (n) => {
  for (let i = 0; i < n; i++) await new Promise(requestAnimationFrame);
}, count);
const atRest = (page) => until('it is at rest', async () => {
  const top = () => page.locator('.scroller').evaluate((el) => el.scrollTop);
  const was = await top();
  await frames(page, 6);
  return was === await top();
});
const turns = (page) => page.locator('[data-testid=turn]');
const jump = (page) => page.locator('[data-testid=jump]');

// Notes after every frame, as it was painted, how far the end is away, and how far the first element in sight has moved from
// where it is now; stop() gives all gaps and the most of the drift.
async function recording(page) {
  await page.evaluate(() => {
    const el = document.querySelector('.scroller'), edge = el.getBoundingClientRect().top;
    const node = [...document.querySelectorAll('[data-testid=turn] .md > *, [data-testid=turn] .bubble')].find((one) => one.getBoundingClientRect().top >= edge);
    const top = node.getBoundingClientRect().top;
    const seen = { gaps: [], drift: 0, frames: 0, grown: -el.scrollHeight, connected: true };
    const { port1, port2 } = new MessageChannel();
    window.recorded = seen;
    port1.onmessage = () => {
      if (window.recorded !== seen) return;
      seen.frames++;
      seen.gaps.push(el.scrollHeight - el.clientHeight - el.scrollTop);
      seen.drift = Math.max(seen.drift, Math.abs(node.getBoundingClientRect().top - top));
      seen.connected &&= node.isConnected;
      requestAnimationFrame(() => port2.postMessage(0));
    };
    requestAnimationFrame(() => port2.postMessage(0));
  });
  return () => page.evaluate(() => {
    const seen = window.recorded;
    window.recorded = undefined;
    seen.grown += document.querySelector('.scroller').scrollHeight;
    return seen;
  });
}

// A conversation with so many runs behind it, open at its end.
async function opened(t, { said = ['story', 'story', 'hello'], ...options } = {}) {
  const threadId = `s${++threads}`;
  for (const words of said) {
    await post(server, threadId, user(words));
    await ended(server, threadId);
  }
  const kit = await newPage(browser, { url: `${server.url}/#/t/${threadId}`, ...options });
  t.after(kit.done);
  await until('its turns', async () => await turns(kit.page).count() === 2 * said.length);
  for (const part of ['h1 button', '[data-testid=totals]']) await kit.page.locator(`.head ${part}`).waitFor(); // the head grows with them on a phone
  await frames(kit.page);
  await kit.page.mouse.move(400, 300);
  return { ...kit, threadId };
}

async function streaming(page, threadId) {
  await post(server, threadId, user('stream'));
  await page.locator('[data-testid=turn][aria-busy=true] .md p').nth(8).waitFor();
}
const stopped = async (page, threadId) => {
  await fetch(`${server.url}/api/v1/agent/runs/${threadId}/cancel`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{}' });
  await page.locator('[data-testid=turn][aria-busy=true]').waitFor({ state: 'detached' });
};
const wheel = async (page, by) => {
  await page.mouse.wheel(0, by);
  await frames(page, 3);
};
const up = async (page, by) => {
  await wheel(page, -by);
  await until('the way back', () => jump(page).count());
  await atRest(page);
};
const resized = async (page, size) => {
  await page.setViewportSize(size);
  await page.waitForFunction(({ width, height }) => innerWidth === width && innerHeight === height, size);
  await frames(page, 4);
};

describe('following', () => {
  test('a conversation opens at its end, in its first frame', async (t) => {
    const { page, context } = await opened(t);
    await context.addInitScript(() => {
      window.firsts = [];
      const look = () => {
        const el = document.querySelector('.scroller');
        if (document.querySelector('[data-testid=turn]')) window.firsts.push(el.scrollHeight - el.clientHeight - el.scrollTop);
        if (window.firsts.length < 10) requestAnimationFrame(look);
      };
      requestAnimationFrame(look);
    });
    await page.reload();
    await page.waitForFunction(() => window.firsts.length === 10);
    assert.ok((await page.evaluate(() => window.firsts)).every((gap) => gap < 4));
    assert.equal(await jump(page).count(), 0);
  });

  test('at the end it follows what streams in', async (t) => {
    const { page, threadId } = await opened(t);
    await streaming(page, threadId);
    const stop = await recording(page);
    const height = await page.evaluate(() => document.querySelector('.scroller').scrollHeight);
    await page.waitForFunction((was) => document.querySelector('.scroller').scrollHeight > was + 800 && window.recorded.frames > 20, height);
    const { gaps } = await stop();
    assert.ok(gaps.every((gap) => gap < 4), `away from the end: ${gaps}`);
    await stopped(page, threadId);
    assert.ok(await gapOf(page) < 4);
  });

  test('one tick up releases; nothing moves for 3 s of streaming; the end pins again', async (t) => {
    const { page, threadId } = await opened(t);
    await streaming(page, threadId);
    await up(page, 1);
    const stop = await recording(page);
    await new Promise((resolve) => setTimeout(resolve, 3000));
    await page.waitForFunction(() => window.recorded.grown + document.querySelector('.scroller').scrollHeight > 300 && window.recorded.frames > 30);
    const { drift, connected } = await stop();
    assert.ok(connected);
    assert.ok(drift <= 1, `moved by ${drift} px`);
    await screen(page, 'log-released');
    const devtools = await page.context().newCDPSession(page);
    await devtools.send('Emulation.setCPUThrottlingRate', { rate: 8 }); // the end runs away from a slow page
    await wheel(page, 100_000);
    await until('it is at the end', async () => await gapOf(page) < 4 && !await jump(page).count());
    await devtools.send('Emulation.setCPUThrottlingRate', { rate: 1 });
    const height = await page.evaluate(() => document.querySelector('.scroller').scrollHeight);
    await page.waitForFunction((was) => document.querySelector('.scroller').scrollHeight > was + 200, height);
    await frames(page);
    assert.equal(await jump(page).count(), 0);
    await stopped(page, threadId);
  });

  test('a wheel over something that scrolls by itself is not the log’s', async (t) => {
    const { page, threadId } = await opened(t);
    await turns(page).last().evaluate(async (turn) => {
      await new Promise(requestAnimationFrame);
      const inner = document.createElement('div'), long = document.createElement('div');
      inner.id = 'inner';
      inner.append(long);
      Object.assign(inner.style, { height: '80px', overflow: 'auto' });
      long.style.height = '400px';
      turn.append(inner);
      inner.scrollTop = 200;
    });
    await frames(page, 3);
    assert.ok(await gapOf(page) < 4);
    await page.locator('#inner').hover();
    await wheel(page, -20);
    await until('it has scrolled', async () => await page.locator('#inner').evaluate((el) => el.scrollTop) < 200);
    await post(server, threadId, user('story'));
    await until('it follows', async () => await turns(page).count() === 8 && await gapOf(page) < 4);
  });

  test('keys: PageUp and Home release, End pins', async (t) => {
    const { page, threadId } = await opened(t);
    await page.locator('.scroller').focus();
    await streaming(page, threadId);
    for (const key of ['PageUp', 'Home']) {
      await page.keyboard.press(key);
      await until(`${key} releases`, () => jump(page).count());
      await atRest(page);
      const stop = await recording(page);
      await frames(page, 30);
      assert.ok((await stop()).drift <= 1, key);
      await page.keyboard.press('End');
      await until('End pins', async () => await gapOf(page) < 4 && !await jump(page).count());
    }
    await stopped(page, threadId);
  });

  test('a finger releases', async (t) => {
    const { page, context, threadId } = await opened(t, { touch: true, width: 390, height: 780 });
    await streaming(page, threadId);
    const cdp = await context.newCDPSession(page);
    const touch = (type, ...ys) => cdp.send('Input.dispatchTouchEvent', { type, touchPoints: ys.map((y) => ({ x: 190, y })) });
    await touch('touchStart', 300);
    for (let y = 305; y <= 450; y += 10) await touch('touchMove', y);
    await touch('touchEnd');
    await until('the way back', () => jump(page).count());
    await atRest(page);
    const stop = await recording(page);
    await page.waitForFunction(() => window.recorded.grown + document.querySelector('.scroller').scrollHeight > 20 && window.recorded.frames > 40);
    const { drift, grown } = await stop();
    assert.ok(grown > 20);
    assert.ok(drift <= 1, `moved by ${drift} px`);
    await screen(page, 'log-released-phone');
    await stopped(page, threadId);
  });
});

describe('back to the end', () => {
  test('the button counts new turns, goes to the end and pins', async (t) => {
    const { page, threadId } = await opened(t);
    await up(page, 600);
    assert.equal(await jump(page).innerText(), 'Jump to latest');
    for (const count of [2, 4]) {
      await post(server, threadId, user('hello'));
      await ended(server, threadId);
      await until(`${count} new ones`, async () => await jump(page).innerText() === `Jump to latest (${count})`);
    }
    await jump(page).click();
    await until('the end', async () => await gapOf(page) < 4 && !await jump(page).count());
    assert.ok(await page.evaluate(() => document.activeElement.matches('.scroller')), 'the focus is not lost');
    await post(server, threadId, user('story'));
    await ended(server, threadId);
    await until('it follows', async () => await turns(page).count() === 12 && await gapOf(page) < 4);
  });

  test('in Chinese', async (t) => {
    const { page, threadId } = await opened(t, { locale: 'zh-CN', scheme: 'dark' });
    await wheel(page, -600);
    await post(server, threadId, user('hello'));
    await until('the way back', async () => await jump(page).count() && await jump(page).innerText() === '回到最新（2 条新内容）');
    await screen(page, 'log-jump-zh-dark');
  });

  test('sending a message goes to the end', async (t) => {
    const { page } = await opened(t);
    await up(page, 600);
    await page.locator('[data-testid=composer]').fill('story');
    await page.locator('[data-testid=send]').click();
    await until('the answer is in sight', async () => await turns(page).count() === 8 && await gapOf(page) < 4);
    assert.equal(await jump(page).count(), 0);
  });
});

describe('what changes its size', () => {
  const grow = (page, index, px) => turns(page).nth(index).evaluate(async (turn, height) => {
    await new Promise(requestAnimationFrame); // as the page itself does
    const block = document.createElement('div');
    block.style.height = `${height}px`;
    turn.append(block);
  }, px);

  test('above the reader: nothing moves', async (t) => {
    const { page } = await opened(t);
    await up(page, 500);
    const stop = await recording(page);
    await grow(page, 0, 333);
    await frames(page, 5);
    const { drift, grown } = await stop();
    assert.equal(grown, 333);
    assert.ok(drift <= 1, `moved by ${drift} px`);
  });

  test('while pinned: it stays pinned, growing and shrinking', async (t) => {
    const { page } = await opened(t);
    for (const index of [0, 5]) {
      await grow(page, index, 250);
      await frames(page, 3);
      assert.ok(await gapOf(page) < 4);
    }
    await turns(page).nth(5).evaluate((turn) => turn.lastElementChild.remove());
    await frames(page, 3);
    await grow(page, 5, 100);
    await frames(page, 3);
    assert.ok(await gapOf(page) < 4);
    await turns(page).nth(5).evaluate((turn) => { // shorter, so that the browser scrolls, and longer again, at once
      turn.lastElementChild.style.height = '0';
      document.querySelector('.scroller').scrollTop.toString();
      turn.lastElementChild.style.height = '400px';
    });
    await frames(page, 3);
    assert.ok(await gapOf(page) < 4);
    await page.locator('.scroller').evaluate((el) => { // the same with the box, as a field that measures itself does
      Object.assign(el.style, { flex: 'none', height: `${el.clientHeight + 60}px` });
      el.scrollTop.toString();
      Object.assign(el.style, { flex: '', height: '' });
    });
    await frames(page, 3);
    assert.ok(await gapOf(page) < 4);
    await page.locator('[data-testid=composer]').focus();
    for (const key of ['a', 'Shift+Enter', 'b', 'Shift+Enter', 'c', 'Backspace', 'Backspace', 'Backspace', 'Backspace', 'd']) {
      await page.keyboard.press(key);
      await frames(page, 2);
      assert.ok(await gapOf(page) < 4, key);
    }
    assert.equal(await jump(page).count(), 0);
  });

  test('the window: at the end it stays at the end, in the middle the first words in sight stay', async (t) => {
    const { page } = await opened(t);
    for (const size of [{ width: 700, height: 800 }, { width: 700, height: 400 }, { width: 1200, height: 900 }]) {
      await resized(page, size);
      assert.ok(await gapOf(page) < 4, JSON.stringify(size));
    }
    await up(page, 700);
    const words = await page.evaluateHandle(() => {
      const edge = document.querySelector('.scroller').getBoundingClientRect().top;
      return [...document.querySelectorAll('.md > *')].find((one) => one.getBoundingClientRect().bottom > edge + 1);
    });
    const placed = () => words.evaluate((one) => one.getBoundingClientRect().top - document.querySelector('.scroller').getBoundingClientRect().top);
    const top = await placed();
    for (const size of [{ width: 500, height: 900 }, { width: 500, height: 420 }, { width: 1200, height: 900 }]) {
      await resized(page, size);
      assert.ok(Math.abs(await placed() - top) <= 1, `${JSON.stringify(size)}: ${top} -> ${await placed()}`);
    }
  });

  for (const [name, by] of [['at the end', 0], ['in the middle', 40]]) {
    test(`unfolding ${name} keeps what was pressed where it is`, async (t) => {
      const { page } = await opened(t, { said: ['story', 'tools'] });
      if (by) await up(page, by);
      const head = page.locator('[data-testid=tool-card] summary').last();
      const place = async () => (await head.boundingBox()).y;
      const before = await place();
      for (const step of ['unfolded', 'folded']) {
        await head.click();
        await until(step, async () => await page.locator('[data-testid=tool-card] details').last().evaluate((one) => one.open) === (step === 'unfolded'));
        await until('what is in it comes and goes', async () => await page.locator('.tool-body').count() === (step === 'unfolded' ? 1 : 0));
        await frames(page, 5);
        if (step === 'unfolded' || by) assert.ok(Math.abs(await place() - before) <= 1, `${step}: ${before} -> ${await place()}`);
      }
    });
  }

  test('unfolding above the fold', async (t) => {
    const { page } = await opened(t, { said: ['tools', 'story', 'story'] });
    const head = page.locator('[data-testid=tool-card] summary').first();
    await head.evaluate((one) => { // its card's head is the last thing in sight at the top
      const el = document.querySelector('.scroller');
      el.scrollTop += one.getBoundingClientRect().top - el.getBoundingClientRect().top - 5;
    });
    await frames(page, 3);
    const before = (await head.boundingBox()).y;
    await head.click();
    await page.locator('.tool-body').waitFor();
    await frames(page, 5);
    assert.ok(Math.abs((await head.boundingBox()).y - before) <= 1);
  });
});

describe('by keyboard', () => {
  const focused = (page) => page.evaluate(() => {
    const turn = document.activeElement.closest('[data-testid=turn]');
    const { top, bottom } = turn?.getBoundingClientRect() ?? {};
    const edge = document.querySelector('.scroller').getBoundingClientRect();
    return turn && { index: [...turn.parentElement.children].indexOf(turn), inSight: top >= edge.top && (bottom <= edge.bottom || bottom - top > edge.height - 24) };
  });

  test('Alt and arrows go from turn to turn, Alt+L to the latest reply', async (t) => {
    const { page } = await opened(t);
    const at = async (key, index) => {
      await page.keyboard.press(key);
      await until(`${key} to ${index}`, async () => (await focused(page))?.index === index);
      assert.ok((await focused(page)).inSight, `${key} to ${index} is in sight`);
    };
    await at('Alt+l', 5);
    await at('Alt+ArrowUp', 4);
    await at('Alt+ArrowUp', 3);
    await screen(page, 'log-focused-turn');
    await at('Alt+ArrowDown', 4);
    await at('Alt+ArrowUp', 3);
    await at('Alt+ArrowUp', 2);
    await at('Alt+ArrowUp', 1);
    await at('Alt+ArrowUp', 0);
    await page.keyboard.press('Alt+ArrowUp');
    await frames(page);
    assert.equal((await focused(page)).index, 0);
    await at('Alt+l', 5);
  });
});

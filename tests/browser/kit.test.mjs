// SPDX-License-Identifier: Apache-2.0
//
// The kit itself: a watcher that sees nothing would let every other test pass.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, request } from 'node:http';
import { after, before, describe, test } from 'node:test';

import { WebSocket } from 'ws';

import { axe, cuttingProxy, newPage, openBrowser, serialise, startScripted, until, within } from './kit.mjs';

const STEP_MS_MAX = 20_000;

describe('the kit', () => {
  let browser, close, server;
  before(async () => {
    ({ browser, close } = await openBrowser());
    server = await startScripted([{ turns: [{ text: 'Hello. 你好。', chunk: 1, gap_ms: 5 }] }]);
  });
  after(async () => {
    await close?.();
    await server?.stop();
  });

  const wrongs = [
    ['a console warning', /console warning: careful/, () => console.warn('careful')],
    ['an exception', /exception: Error: boom/, () => { setTimeout(() => { throw new Error('boom'); }); }],
    ['markup from a string', /content security policy: require-trusted-types-for/, () => {
      try { document.body.innerHTML = '<b>'; } catch { /* the refusal is what counts */ }
    }],
    ['a style attribute', /content security policy: style-src-attr/, () => document.body.setAttribute('style', 'color: red')],
    ['another origin', /request to another origin: http:\/\/localhost/, () => { open('http://localhost:1/'); }],
    ['a missing file', /console error: .*404.*\/nothing-here/, () => fetch('nothing-here')],
  ];
  for (const [name, pattern, wrong] of wrongs) {
    test(`${name} is a problem`, async () => {
      const { page, problems, done } = await newPage(browser, { url: server.url });
      await page.evaluate(wrong);
      await until(name, () => problems.left().some((text) => pattern.test(text)));
      await assert.rejects(done(), /problems on the page/);
      problems.allow(/./);
      assert.deepEqual(problems.left(), []);
    });
  }

  test('a page that does nothing wrong has no problem; looking at it makes none', async (t) => {
    const { page, done } = await newPage(browser, { url: server.url, locale: 'zh-CN', storage: { a: '1' } });
    t.after(done);
    assert.deepEqual(await page.evaluate(() => [navigator.language, localStorage.getItem('a')]), ['zh-CN', '1']);
    await page.screenshot({ animations: 'disabled', caret: 'initial' });
    await axe(page);
    await done();
  });

  test('axe finds a barrier', async (t) => {
    const { page, done } = await newPage(browser, { url: server.url });
    t.after(done);
    await page.evaluate(() => document.body.append(document.createElement('textarea')));
    assert.match((await axe(page)).join('\n'), /^critical label: .*textarea/m);
  });

  test('two elements that show the same serialise to the same text', async (t) => {
    const { page, done } = await newPage(browser, { url: server.url });
    t.after(done);
    await page.evaluate(() => {
      const make = (name, children = [], attributes = {}) => {
        const element = document.createElement(name);
        for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
        element.append(...children);
        return element;
      };
      const one = (id, thread, time, text) => {
        const label = make('label', ['Name'], { for: id }), input = make('input', [], { id, 'data-run-id': thread });
        const shade = make('div');
        shade.attachShadow({ mode: 'open' }).append(make('p', [`in ${thread}`]));
        input.value = 'typed';
        return make('section', [label, input, make('time', [time], { datetime: time }), ...text, shade,
          make('a', ['file'], { href: `f?exp=${time}&sig=${id}` })]);
      };
      document.body.replaceChildren(
        one('a7', 'thr_01hzzzzzzzzzzzzzzzzzzzzzza', '1', ['Hel', 'lo']),
        one('b9', 'thr_01hzzzzzzzzzzzzzzzzzzzzzzb', '2', ['Hello']));
    });
    const first = await serialise(page, 'section:nth-child(1)'), second = await serialise(page, 'section:nth-child(2)');
    assert.equal(first, second);
    for (const part of ['"Hello"', ':value="typed"', '#shadow', '"in @2"', 'href="f?exp=&sig="', 'for="@1"']) {
      assert.ok(first.includes(part), `${part} in\n${first}`);
    }
    await page.evaluate(() => { document.querySelectorAll('section div')[1].shadowRoot.firstChild.textContent += '.'; });
    assert.notEqual(await serialise(page, 'section:nth-child(2)'), first);
  });

  test('the proxy passes, counts, holds, cuts, refuses, and turns to another server', async (t) => {
    const proxy = await cuttingProxy(server);
    t.after(() => proxy.close());
    const get = async () => { // on a line of its own: one that was kept alive may just have been cut
      const [response] = await once(request(`${proxy.url}/healthz`, { agent: false }).end(), 'response');
      response.resume();
      return response.statusCode;
    };
    const socket = new WebSocket(`${proxy.url.replace('http', 'ws')}/api/v1/agent/ws`);
    socket.on('error', () => {});
    await within(STEP_MS_MAX, 'open', once(socket, 'open'));
    assert.equal(await get(), 200);
    assert.equal(await get(), 200);
    assert.equal(proxy.seen(/^GET \/healthz/), 2);
    assert.equal(proxy.open(/\/ws/), 1);

    proxy.hold();
    let answered = false;
    const late = get().then((status) => { answered = true; return status; });
    await new Promise((resolve) => setTimeout(resolve, 200)); // nothing is what is waited for
    assert.ok(!answered);
    proxy.release();
    assert.equal(await late, 200);

    const closed = once(socket, 'close');
    proxy.cut();
    await within(STEP_MS_MAX, 'close', closed);
    assert.equal(proxy.open(/./), 0);

    proxy.refuse(true);
    await assert.rejects(get());
    proxy.refuse(false);
    assert.equal(await get(), 200);

    const other = createServer((_, response) => response.writeHead(204).end()).listen(0, '127.0.0.1');
    t.after(() => other.close());
    await once(other, 'listening');
    proxy.cut();
    proxy.to(`http://127.0.0.1:${other.address().port}`);
    assert.equal(await get(), 204);
    proxy.cut();
  });
});

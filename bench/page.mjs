// SPDX-License-Identifier: Apache-2.0
//
// The page in a browser. A reply streams into a message that is long already, in a long conversation, while somebody types;
// beside it a page that parses and redraws the whole message in every frame. And a conversation of 10,000 messages is
// opened and scrolled back, beside one of 100. The model is a server here that keeps time.

import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import path from 'node:path';

import { column, median, quick, root, ROUNDS, Skip } from './kit.mjs';

const LONG = 10_000, SHORT = 100; // messages
const BEGINNING = 40_000, TOKEN = 4; // characters
const TICK_MS = 5; // 200 tokens a second
const STREAM_S = quick ? 3 : 6;
const KEYS = 30;
const PREPENDS = 20;
const SETTLE_MS = 1500;

const PIECE = `### A part of it

Some words with **weight**, some \`code\`, and a [link](https://example.com/), as answers have them. 中文也有**一些**。

- one point
- another one

| a | b |
|---|---|
| 1 | 2 |

`;
const text = (from, count) => {
  let out = '';
  while (out.length < count) out += PIECE.slice((from + out.length) % PIECE.length);
  return out.slice(0, count);
};

// ---- the model, and the other page ----

/** The text as it grows, to `write`, until the reader goes. */
function stream(response, write) {
  let sent = BEGINNING;
  write(text(0, BEGINNING));
  const began = performance.now();
  const timer = setInterval(() => { // what is due, however late the timer is
    for (const due = BEGINNING + Math.floor((performance.now() - began) / TICK_MS) * TOKEN; sent < due; sent += TOKEN) write(text(sent, TOKEN));
  }, TICK_MS);
  response.on('close', () => clearInterval(timer));
}

const event = (json) => `data: ${JSON.stringify(json)}\n\n`;
const chunk = (delta) => event({ id: 'c', object: 'chat.completion.chunk', created: 0, model: 'clock', choices: [{ index: 0, delta, finish_reason: null }] });

async function listening(handler) {
  const server = createServer(handler).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

const STREAM_HEAD = { 'content-type': 'text/event-stream' };
const model = () => listening((request, response) => {
  request.resume();
  response.writeHead(200, STREAM_HEAD);
  stream(response, (words) => response.write(chunk({ content: words })));
});

/** Everything is parsed and drawn again in each frame in which something came. */
const REDRAW = `<!doctype html><meta charset="utf-8"><style>body{margin:0;font:1rem/1.6 system-ui}main{height:80vh;overflow:auto}article{max-width:820px;margin:auto}</style>
<main></main><textarea data-testid="composer"></textarea><script src="marked.js"></script><script>
const main = document.querySelector('main'), turn = () => main.appendChild(document.createElement('article'));
fetch('piece').then((r) => r.text()).then((piece) => {
  for (let i = 0; i < 100; i++) turn().innerHTML = marked.parse(piece);
  const live = turn();
  let text = '', drawn = 0;
  new EventSource('words').onmessage = ({ data }) => { text += JSON.parse(data); };
  (function draw() {
    if (text.length > drawn) {
      drawn = text.length;
      live.innerHTML = marked.parse(text);
      live.setAttribute('aria-busy', 'true');
      main.scrollTop = main.scrollHeight;
    }
    requestAnimationFrame(draw);
  })();
});
</script>`;

const redrawing = () => {
  const marked = readFileSync(path.join(root, 'node_modules/marked/lib/marked.umd.js'));
  const files = { '/': ['text/html', REDRAW], '/marked.js': ['text/javascript', marked], '/piece': ['text/plain; charset=utf-8', PIECE] };
  return listening((request, response) => {
    if (request.url === '/words') {
      response.writeHead(200, STREAM_HEAD);
      return stream(response, (words) => response.write(event(words)));
    }
    const [type, body] = files[request.url] ?? ['text/plain', ''];
    return response.writeHead(200, { 'content-type': type }).end(body);
  });
};

// ---- looking ----

/** Runs in the page: frames, long tasks, and from key to paint, until told to stop. */
function watch() {
  const seen = { frames: [], tasks: [], keys: [] };
  const { port1, port2 } = new MessageChannel();
  let last = performance.now(), pressed = [];
  new PerformanceObserver((list) => seen.tasks.push(...list.getEntries().map(({ duration }) => duration))).observe({ type: 'longtask' });
  addEventListener('keydown', ({ timeStamp }) => pressed.push(timeStamp), true);
  port1.onmessage = () => { // after the paint
    seen.keys.push(...pressed.map((at) => performance.now() - at));
    pressed = [];
  };
  const frame = (now) => {
    seen.frames.push(now - last);
    last = now;
    if (pressed.length) port2.postMessage(0);
    requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
  window.watched = seen;
}

const percentile = (list, share) => list.toSorted((a, b) => a - b)[Math.min(list.length - 1, Math.floor(list.length * share))] ?? 0;

async function streamed(page, throttle) {
  const cdp = await page.context().newCDPSession(page);
  await cdp.send('Emulation.setCPUThrottlingRate', { rate: throttle });
  await new Promise((resolve) => setTimeout(resolve, SETTLE_MS));
  await page.locator('[data-testid=composer]').focus();
  await page.evaluate(watch);
  const began = performance.now();
  for (let i = 0; i < KEYS; i++) {
    await page.keyboard.press('a');
    await new Promise((resolve) => setTimeout(resolve, Math.max(0, began + ((i + 1) * STREAM_S * 1000) / KEYS - performance.now())));
  }
  const { frames, tasks, keys } = await page.evaluate(() => window.watched);
  const typed = await page.locator('[data-testid=composer]').inputValue();
  if (typed !== 'a'.repeat(KEYS)) throw new Error(`${typed.length} of ${KEYS} keys arrived`);
  const seconds = frames.reduce((sum, one) => sum + one, 0) / 1000;
  return {
    fps: frames.length / seconds, frame95: percentile(frames, 0.95), tasks: tasks.length, longest: Math.max(0, ...tasks), key95: percentile(keys, 0.95),
  };
}

// ---- rows ----

/** What the tests stand on: servers with long conversations, and a browser. */
async function kit() {
  process.env.FERMATA_BUILD ??= path.join(root, 'build', 'bench');
  try {
    const tests = { ...await import('../tests/browser/kit.mjs'), ...await import('../tests/browser/long.mjs') };
    return { ...tests, ...await tests.openBrowser() };
  } catch (error) {
    if (error.code === 'ERR_MODULE_NOT_FOUND' || error.code === 'ERR_ASSERTION') throw new Skip('no browser: scripts/setup test');
    throw error;
  }
}

const cells = ({ fps, frame95 }) => `${fps.toFixed(1)} fps, p95 ${frame95.toFixed(0)} ms`;
const rest = ({ tasks, longest, key95 }) => `${tasks} long tasks, longest ${longest.toFixed(0)} ms, key to paint p95 ${key95.toFixed(0)} ms`;
const middle = (list) => Object.fromEntries(Object.keys(list[0]).map((field) => [field, column(list, field)]));

/** Frames per second while a reply streams, at so much less than the machine's speed. */
export const streaming = (throttle) => async () => {
  const { browser, close, startLong, post } = await kit();
  const clock = await model();
  let server, peer;
  try {
    server = await startLong({ long: 200 }, [{ turns: [{ text: '' }] }], {
      env: { FERMATA_MODEL_PROVIDER: 'openai', FERMATA_MODEL_BASE_URL: `${clock.url}/v1`, FERMATA_MODEL_NAME: 'clock', FERMATA_MODEL_API_KEY: 'none-needed' },
    });
    peer = await redrawing();
    const figures = { ours: [], peer: [] };
    const looked = async (url, prepare) => {
      const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
      try {
        const page = await context.newPage();
        await page.goto(url);
        await prepare?.(page);
        await page.locator('[aria-busy=true]').last().waitFor();
        return await streamed(page, throttle);
      } finally {
        await context.close();
      }
    };
    for (let round = 0; round < ROUNDS; round++) {
      figures.ours.push(await looked(`${server.url}/#/t/long`, async (page) => {
        await page.locator('[data-testid=turn]').nth(30).waitFor();
        await post(server, 'long', [{ role: 'user', content: 'go' }]);
      }));
      await fetch(`${server.url}/api/v1/agent/runs/long/cancel`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{}' });
      figures.peer.push(await looked(`${peer.url}/`));
    }
    const ours = middle(figures.ours), other = middle(figures.peer);
    return {
      value: ours.fps, figure: cells(ours), peer: `redraw ${cells(other)}`, ratio: ours.fps / other.fps, detail: figures,
      more: `${rest(ours)}; redraw: ${rest(other)}`,
    };
  } finally {
    await close();
    await server?.stop();
    peer?.close();
    clock.close();
  }
};

/** Runs in the page: the past comes in so many times; for each, the longest time the page was busy at a stretch. */
async function scrollBack(times) {
  const box = document.querySelector('.scroller'), state = () => document.querySelector('[data-testid=older]').dataset.state;
  const { port1, port2 } = new MessageChannel();
  let last = performance.now(), worst = 0;
  port1.onmessage = () => {
    const now = performance.now();
    worst = Math.max(worst, now - last);
    last = now;
    port2.postMessage(0);
  };
  port2.postMessage(0);
  const frame = () => new Promise(requestAnimationFrame);
  const each = [];
  while (each.length < times && !(box.scrollTop === 0 && state() === 'none')) {
    box.scrollTop = 0;
    worst = 0;
    for (let rest = 0; rest < 3; rest = state() === 'loading' ? 0 : rest + 1) await frame();
    each.push(worst);
  }
  port1.close();
  return each;
}

let opened; // measured once for both rows

/** {open, prepends} of a long and a short conversation. */
const long = () => (opened ??= (async () => {
  const { browser, close, startLong } = await kit();
  let server;
  try {
    server = await startLong({ long: LONG, short: SHORT }, [{ turns: [{ text: '.' }] }]);
    const figures = { long: [], short: [] };
    for (let round = 0; round < ROUNDS * 2; round++) {
      for (const name of Object.keys(figures)) {
        const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
        const page = await context.newPage();
        await page.addInitScript(() => {
          const { port1, port2 } = new MessageChannel();
          port1.onmessage = () => { window.paintedAt = performance.now(); };
          (function look() {
            if (document.querySelector('[data-testid=turn]')) port2.postMessage(0);
            else requestAnimationFrame(look);
          })();
        });
        await page.goto(`${server.url}/#/t/${name}`);
        const open = await (await page.waitForFunction(() => window.paintedAt)).jsonValue();
        const elements = await page.evaluate(() => document.querySelectorAll('*').length);
        await page.locator('[data-testid=older]').waitFor({ state: 'attached' });
        const prepends = round || name === 'short' ? [] : await page.evaluate(scrollBack, PREPENDS);
        figures[name].push({ open, elements, prepends });
        await context.close();
      }
    }
    return figures;
  } finally {
    await close();
    await server?.stop();
  }
})());

/** From the address to the last words on the screen. */
export async function open() {
  const figures = await long();
  const [ours, floor] = [figures.long, figures.short].map((list) => median(list.map((one) => one.open)));
  return {
    value: ours, figure: `${ours.toFixed(0)} ms`, peer: `of ${SHORT}: ${floor.toFixed(0)} ms`, ratio: ours / floor, detail: figures,
    more: `${figures.long[0].elements} elements in the document`,
  };
}

/** The page's longest task each time that the past comes in. */
export async function prepend() {
  const list = (await long()).long.flatMap(({ prepends }) => prepends);
  return {
    value: percentile(list, 0.5), figure: `p50 ${percentile(list, 0.5).toFixed(0)} ms, p95 ${percentile(list, 0.95).toFixed(0)} ms`, detail: { list },
  };
}

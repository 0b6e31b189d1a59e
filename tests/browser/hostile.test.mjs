// SPDX-License-Identifier: Apache-2.0
//
// A conversation that wants to break out: in the words of the model, in a card, in a question, in arguments that wait for
// approval, in what the person says. It may look odd; it runs nothing, leaves the page where it is and asks nobody else.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { newPage, openBrowser, screen, startScripted, until } from './kit.mjs';

const MARKUP = '<script>window.__pwned = 1</script><img src=x onerror="window.__pwned = 1"><svg onload="window.__pwned = 1"></svg><iframe src="javascript:parent.__pwned = 1"></iframe><style>body{display:none}</style><base href="https://evil.example/"><form action="https://evil.example/"><input name=x></form>';
const LINKS = '[a](javascript:window.__pwned=1) [b](data:text/html,<script>1</script>) [c](vbscript:x) [d](//evil.example/x) <javascript:alert(1)> [e](\u0001javascript:window.__pwned=1) ![i](https://evil.example/track.png) ![j](//evil.example/t.png) ![k](javascript:1)\n\n[ref]: javascript:window.__pwned=1\n\n[ref] [f](JaVaScRiPt:1)';
const BIDI = 'safe \u202Egnp.exe\u202C \u2066isolate\u2069 \u200Bzero\u200Bwidth \u202Dabc';
const WORD = 'x'.repeat(20_000);
const TABLE = `| a | b |\n|---|---|\n${Array.from({ length: 10_000 }, (_, n) => `| ${n} | ${MARKUP.slice(0, 30)} |`).join('\n')}`;
const BROKEN = '**bold `code [link](http://a.b/ *it _x_ ~~y | | |\n\n```\nnever closed\n\n| a |\n|--|\n\n- - - - - 1. 1. >>>>> > > #######\n';
const DEEP = `${'> '.repeat(500)}deep\n\n${'- '.repeat(300)}list\n\n${'['.repeat(5000)}`;
const text = (words) => [{ text: words, chunk: 4096, gap_ms: 1 }];

const LINES = [
  { match: '^markup', turns: text(`${MARKUP}\n\n${LINKS}\n\n${MARKUP}`) },
  { match: '^words', turns: text(`${WORD}\n\n${BIDI}\n\n# ${WORD.slice(0, 3000)}\n\n\`${WORD.slice(0, 3000)}\`\n\n${'字'.repeat(20_000)}`) },
  { match: '^table', turns: text(TABLE) },
  { match: '^broken', turns: text(`${BROKEN}\n\n${DEEP}`) },
  { match: '^card', turns: [{ text: 'See', calls: [{ name: 'show_card', args: { version: '2.1', intent: 'mixed', status: 'warning', title: MARKUP, body: `${MARKUP}\n${LINKS}`, bodyFormat: 'markdown', items: [{ key: BIDI, value: WORD }, { key: MARKUP, value: { a: MARKUP } }], listItems: [{ title: WORD.slice(0, 2000), description: BIDI }] } }] }] },
  { match: '^ask', turns: [{ calls: [{ name: 'ask_user', args: { question: `${MARKUP} ${BIDI} ${WORD.slice(0, 500)}`, choices: [MARKUP, BIDI, WORD.slice(0, 400)] } }] }, { text: 'Thanks.' }] },
  { match: '^confirm', turns: [{ calls: [{ name: 'calendar_write', args: { title: `${BIDI} ${MARKUP}`.slice(0, 190), start_time: '2030-01-31T15:00:00+08:00', end_time: '2030-01-31T16:00:00+08:00', location: WORD.slice(0, 400) } }] }, { text: 'Done.' }] },
  { turns: [{ text: 'Hello.' }] },
];

let server, chromium;
before(async () => {
  server = await startScripted(LINES);
  chromium = await openBrowser();
});
after(async () => {
  await chromium?.close();
  await server?.stop();
});

async function hostile(t, words, { width = 390, height = 800, wait } = {}) {
  const { page, done } = await newPage(chromium.browser, { url: `${server.url}/`, width, height });
  t.after(done);
  await page.getByTestId('composer').fill(words);
  await page.getByTestId('send').click();
  if (wait) await page.getByTestId(wait).waitFor();
  else await until('the end of the run', async () => await page.getByTestId('step-report').last().getAttribute('data-state').catch(() => '') === 'success', 60_000);
  return page;
}

// Nothing ran, nothing is there that could, and the page is no wider than its window.
async function unharmed(page) {
  const found = await page.evaluate(() => {
    const all = [];
    const walk = (root) => {
      for (const element of root.querySelectorAll('*')) {
        all.push(element);
        if (element.shadowRoot) walk(element.shadowRoot);
      }
    };
    walk(document);
    const inBody = all.filter((element) => !document.head.contains(element));
    return {
      pwned: window.__pwned,
      elements: inBody.filter(({ localName }) => ['script', 'iframe', 'object', 'embed', 'base', 'link', 'style', 'meta'].includes(localName)).map(({ outerHTML }) => outerHTML.slice(0, 80)),
      handlers: all.flatMap((element) => [...element.attributes].filter(({ name }) => /^on/.test(name)).map(({ name }) => name)),
      hrefs: all.flatMap((element) => ['href', 'src', 'action'].map((name) => element.getAttribute(name)).filter(Boolean)).filter((href) => /^\s*(javascript|data|vbscript):|^\/\/|evil\.example\/t/i.test(href) && !/^https:\/\/evil\.example\/t/.test(href)),
      images: all.filter(({ localName }) => localName === 'img').map(({ src }) => src).filter((src) => new URL(src).origin !== location.origin && !src.startsWith('blob:')),
      wide: document.documentElement.scrollWidth - innerWidth,
      display: getComputedStyle(document.body).display,
    };
  });
  assert.deepEqual(found, { pwned: undefined, elements: [], handlers: [], hrefs: [], images: [], wide: 0, display: 'block' });
}

test('markup and links of the model', async (t) => {
  const page = await hostile(t, `markup ${MARKUP}`);
  await unharmed(page);
  assert.ok((await page.getByTestId('log').innerText()).includes('<script>window.__pwned = 1</script>'), 'it is shown as what it is');
  await screen(page, 'hostile-markup');
});

test('endless words and turned text', async (t) => {
  const page = await hostile(t, `words ${WORD} ${BIDI}`, { width: 320 });
  await unharmed(page);
  await screen(page, 'hostile-words');
});

test('a table of 10,000 rows', async (t) => {
  const page = await hostile(t, 'table');
  await unharmed(page);
  assert.ok(await page.evaluate(() => document.querySelectorAll('*').length) < 12_000);
});

test('broken and deep markdown', async (t) => {
  await unharmed(await hostile(t, 'broken'));
});

test('a card', async (t) => {
  const page = await hostile(t, 'card', { width: 320 });
  await page.getByTestId('ui-schema').waitFor();
  await unharmed(page);
  await screen(page, 'hostile-card');
});

test('a question and its choices', async (t) => {
  const page = await hostile(t, 'ask', { width: 320, wait: 'ask-card' });
  await unharmed(page);
  await screen(page, 'hostile-ask');
});

test('arguments that wait for approval: what turns text round is visible', async (t) => {
  const page = await hostile(t, 'confirm', { width: 320, wait: 'confirm-card' });
  await unharmed(page);
  const shown = await page.getByTestId('confirm-card').innerText();
  assert.doesNotMatch(shown, /[\u202A-\u202E\u2066-\u2069\u200B]/);
  assert.match(shown, /202E/i);
  await screen(page, 'hostile-confirm');
});

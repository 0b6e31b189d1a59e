// SPDX-License-Identifier: Apache-2.0
//
// <ui-schema> in a page of its own, under the policy of the real one: every card of tests/ui, patches, the six actions,
// hostile cards, the keyboard, both schemes. build/screens/ui-schema-*.png show the gallery.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';

import { axe, newPage, openBrowser, ROOT, screen, serialise, until } from './kit.mjs';

const POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self'; base-uri 'none'; "
  + "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";
const COPIED_MS = 1500; // of web/ui-schema/src/view.ts
const NAMES = ['calendar-check', 'check', 'circle-check', 'clock', 'download', 'file', 'trash-2', 'triangle-alert', 'users', 'x'];

const cards = readdirSync(join(ROOT, 'tests/ui')).filter((file) => file.endsWith('.json'))
  .map((file) => ({ file, ...JSON.parse(readFileSync(join(ROOT, 'tests/ui', file), 'utf8')) })).filter(({ schema }) => schema);
const cardOf = (name) => cards.find(({ file }) => file === `${name}.json`).schema;

const card = (children, more = {}) =>
  ({ version: '2.0', locale: 'en', status: 'info', theme: 'default', root: { type: 'stack', direction: 'vertical', appearance: 'card', children }, ...more });
const text = (content, more = {}) => ({ type: 'text', content, format: 'plain', role: 'body', ...more });
const button = (id, action, more = {}) => ({ type: 'button', id, label: `Button ${id}`, style: 'secondary', action, ...more });

function* nodesOf(node) {
  yield node;
  for (const child of node.children ?? []) yield* nodesOf(child);
}

// Everything that a person should be able to read on a card.
function* textsOf(schema) {
  for (const node of nodesOf(schema.root)) {
    if (node.type === 'text') yield node.content;
    if (node.type === 'badge' || node.type === 'button') yield node.label;
    for (const { key, label, value } of node.items ?? []) yield* [label ?? key, String(value)];
  }
}

const PAGE = `<!doctype html><html lang="en"><meta charset="utf-8"><title>Cards</title>
<meta name="viewport" content="width=device-width"><link rel="icon" href="/icons.svg"><link rel="stylesheet" href="/page.css">
<main><h1>Cards</h1></main><script type="module" src="/min.js"></script>`;
const STYLE = `:root { color-scheme: light dark; font: 16px/1.5 system-ui, 'Noto Sans CJK SC', sans-serif; background: light-dark(#f2f3f5, #101214);
  color: light-dark(#111, #eee) } body { margin: 16px } main { display: grid; grid-template-columns: minmax(0, 640px); gap: 16px; justify-content: center }
  h1 { margin: 0; font-size: 20px }`;
const symbol = (name) => `<symbol id="${name}" viewBox="0 0 24 24"><path d="M5 5h14v14H5zM9 9h6v6H9z"/></symbol>`;
const SPRITE = `<svg xmlns="http://www.w3.org/2000/svg">${NAMES.map(symbol).join('')}</svg>`;

let browser, server, url, elsewhere;

before(async () => {
  const { status, stdout, stderr } = spawnSync(process.execPath, [join(ROOT, 'web/ui-schema/build.mjs')], { encoding: 'utf8' });
  assert.equal(status, 0, stderr);
  console.log(stdout.trim());
  const files = {
    '/': ['text/html', PAGE], '/page.css': ['text/css', STYLE], '/icons.svg': ['image/svg+xml', SPRITE],
    '/min.js': ['text/javascript', readFileSync(join(ROOT, 'web/ui-schema/dist/index.min.js'))],
    '/again.js': ['text/javascript', readFileSync(join(ROOT, 'web/ui-schema/dist/index.js'))],
  };
  const serve = (headers) => createServer((request, response) => {
    const [type, body] = files[new URL(request.url, 'http://x').pathname] ?? [];
    response.writeHead(body ? 200 : 404, { 'content-type': `${type ?? 'text/plain'}; charset=utf-8`, 'cache-control': 'no-store', ...headers });
    response.end(body ?? 'nothing here');
  }).listen(0, '127.0.0.1');
  server = serve({ 'content-security-policy': POLICY });
  elsewhere = serve({});
  await Promise.all([once(server, 'listening'), once(elsewhere, 'listening')]);
  url = `http://127.0.0.1:${server.address().port}/`;
  browser = await openBrowser();
});

after(async () => {
  await browser?.close();
  for (const one of [server, elsewhere]) {
    one?.close();
    one?.closeAllConnections();
  }
});

// A page with these cards, one element each; window.cards are the elements, window.actions what they told.
async function show(t, schemas, { icons = true, markdown = false, ...options } = {}) {
  const opened = await newPage(browser.browser, { url, ...options });
  t.after(opened.done);
  await opened.page.evaluate(([list, sprite, withMarkdown]) => {
    window.actions = [];
    document.addEventListener('ui-action', (event) => {
      window.actions.push(event.detail);
      if (window.prevent) event.preventDefault();
    });
    window.cards = list.map((schema) => {
      const element = document.createElement('ui-schema');
      if (sprite) element.icons = sprite;
      if (withMarkdown) {
        element.markdown = (source) => {
          const paragraph = document.createElement('p');
          paragraph.append(Object.assign(document.createElement('em'), { textContent: source }));
          return paragraph;
        };
      }
      element.schema = schema;
      document.querySelector('main').append(element);
      return element;
    });
  }, [schemas, icons && '/icons.svg', markdown]);
  return opened;
}

const read = (page, i = 0) => page.evaluate((at) => window.cards[at].shadowRoot.textContent, i);
const count = (page, selector) => page.evaluate((one) => window.cards[0].shadowRoot.querySelectorAll(one).length, selector);
// As JSON: the line to the browser takes no deep objects.
const set = (page, schema) => page.evaluate((json) => { window.cards[0].schema = json && JSON.parse(json); }, JSON.stringify(schema));

describe('drawing', () => {
  test('every card of the corpus shows all of its texts', async (t) => {
    assert.ok(cards.length > 60);
    const { page } = await show(t, cards.map(({ schema }) => schema));
    for (const [i, { file, schema }] of cards.entries()) {
      const shown = await read(page, i);
      for (const one of textsOf(schema)) assert.ok(shown.includes(one.trim()), `${file}: ${one}`);
      const kinds = [...nodesOf(schema.root)].map(({ type }) => type);
      const found = await page.evaluate((at) => {
        const root = window.cards[at].shadowRoot;
        return { button: root.querySelectorAll('.act > button').length, kv: root.querySelectorAll('dl').length, divider: root.querySelectorAll('hr').length };
      }, i);
      for (const kind in found) assert.equal(found[kind], kinds.filter((one) => one === kind).length, `${file}: ${kind}`);
    }
    const styles = await page.evaluate(() => [document, ...window.cards.map((one) => one.shadowRoot)].flatMap((root) => [...root.querySelectorAll('[style], style')]).length);
    assert.equal(styles, 0);
  });

  test('kinds are the elements that say what they are', async (t) => {
    const { page } = await show(t, [card([
      text('Title', { role: 'title' }), text('Sub', { role: 'subtitle' }), text('a\n  b', { role: 'code' }), text('hidden', { visible: false }),
      { type: 'kv', items: [{ key: 'k', value: { a: [1, null] } }, { key: 'f', label: 'Flag', value: false }, { key: 'n', value: null }] },
      { type: 'divider' }, { type: 'badge', label: 'Done', status: 'success' }, { type: 'icon', name: 'check', status: 'success' },
      { type: 'icon', name: '../x"', status: 'error' }, { type: 'icon', name: 'No Such' },
      { type: 'chart', fallback: 'a chart' }, { type: 'constructor' }, { type: 'chart' },
    ], { locale: 'zh-CN' })]);
    assert.equal(await read(page), 'TitleSuba\n  bk{"a":[1,null]}FlagfalseDonea chart');
    assert.equal(await page.getByRole('heading', { level: 3 }).textContent(), 'Title');
    assert.equal(await page.getByRole('heading', { level: 4 }).textContent(), 'Sub');
    assert.equal(await page.getByRole('region', { name: '代码' }).getAttribute('tabindex'), '0');
    assert.equal(await count(page, 'use[href="/icons.svg#check"]'), 1);
    assert.equal(await count(page, 'use'), 1);
    assert.equal(await count(page, '[lang=zh-CN]'), 1);
    assert.equal(await count(page, 'p:not([dir=auto]), h3:not([dir=auto]), dt:not([dir=auto])'), 0);
    await page.evaluate(() => window.cards[0].setAttribute('heading-level', '5'));
    assert.equal(await page.getByRole('heading', { level: 5 }).textContent(), 'Title');
    await page.evaluate(() => window.cards[0].removeAttribute('icons'));
    assert.equal(await count(page, 'use'), 0);
    assert.equal(await count(page, 'span.icon'), 2, 'a status has a shape without a sprite too');
  });

  test('markdown is the host\'s, outside of the shadow root', async (t) => {
    const source = '**bold** text';
    const texts = [text(source, { format: 'markdown' }), text('**plain**'), text('# h', { format: 'markdown', role: 'title' })];
    const { page } = await show(t, [card(texts)], { markdown: true });
    assert.equal(await page.locator('ui-schema > div > p > em').textContent(), source);
    assert.equal(await read(page), '**plain**# h');
    const kept = await page.evaluate(() => { window.em = document.querySelector('em'); window.cards[0].note('x', 'y'); return window.em.isConnected; });
    assert.ok(kept, 'drawing again leaves it alone');
    await set(page, card([text('other', { format: 'markdown' })]));
    assert.equal(await page.locator('ui-schema em').textContent(), 'other');
    await page.evaluate(() => { window.cards[0].markdown = undefined; });
    assert.equal(await page.evaluate(() => window.cards[0].children.length), 0);
    assert.equal(await read(page), 'other');
  });

  test('a folded text offers to show all of it, if there is more', async (t) => {
    const long = Array.from({ length: 30 }, (_, i) => `line ${i}`).join('\n');
    const { page } = await show(t, [card([text(long, { maxLines: 6 }), text('short', { maxLines: 6 })])]);
    const more = page.getByText('Show all');
    await until('one of two is offered', async () => await more.filter({ visible: true }).count() === 1);
    const height = () => page.evaluate(() => window.cards[0].shadowRoot.querySelector('.clamp').clientHeight);
    const folded = await height();
    assert.equal(await page.evaluate(() => window.cards[0].shadowRoot.querySelector('.clamp').title), long);
    await more.first().press('Enter');
    await until('it grows', async () => await height() > 3 * folded);
    await page.evaluate(() => window.cards[0].note('x', ''));
    assert.ok(await height() > 3 * folded, 'drawing again leaves it open');
  });

  test('the grid has one column when there is little room', async (t) => {
    const { page } = await show(t, [cardOf('data-grid')], { width: 800 });
    const lefts = () => page.evaluate(() =>
      [...window.cards[0].shadowRoot.querySelectorAll('.section')].map((one) => Math.round(one.getBoundingClientRect().left)));
    const [a, b] = await lefts();
    assert.ok(a < b);
    await page.setViewportSize({ width: 400, height: 800 });
    await until('under each other', async () => { const [c, d] = await lefts(); return c === d; });
  });

  test('light and dark are the host\'s, unless the card says', async (t) => {
    const themes = ['default', 'light', 'dark'].map((theme) => card([text('words')], { theme }));
    const { page } = await show(t, themes, { scheme: 'dark' });
    const colours = await page.evaluate(() => window.cards.map((one) => getComputedStyle(one.shadowRoot.querySelector('.card')).backgroundColor));
    assert.equal(colours[0], colours[2]);
    assert.notEqual(colours[0], colours[1]);
  });
});

describe('patching', () => {
  test('a card is the same DOM whatever was there before', async (t) => {
    const { page } = await show(t, [undefined, undefined], { markdown: true });
    const stack = { type: 'stack', direction: 'vertical', appearance: 'plain', children: [text('in it')] };
    const own = [ // what stands in the same place is of one tag, and has other attributes
      [text('a', { format: 'markdown', maxLines: 2 })], [stack], [text('b', { format: 'markdown' })], [stack, text('c', { maxLines: 2 })],
      [text('1\n2\n3', { maxLines: 2 })], [text('1\n2', { maxLines: 2 })], // as high, and nothing more to show
      [text('1\n2\n3\n4', { maxLines: 2 })], [text('3\n4\n5\n6', { maxLines: 2 })],
      [text('d', { role: 'code' })], [button('undefined', { type: 'url', url: 'https://a.example' })], [stack], [button('', { type: 'url', url: 'x:' })],
    ].map((children, n) => ({ file: `own ${n}`, schema: { ...card([]), root: { ...stack, children } } }));
    const list = [...own, ...cards];
    for (const [i, { file, schema }] of list.entries()) {
      await page.evaluate(async ([one, other]) => {
        window.cards[0].schema = one; // after the card before
        const fresh = document.createElement('ui-schema');
        fresh.icons = '/icons.svg';
        fresh.markdown = window.cards[0].markdown;
        fresh.schema = other;
        window.cards[1].replaceWith(fresh);
        window.cards[1] = fresh;
        for (let i = 0; i < 2; i++) await new Promise(requestAnimationFrame); // what depends on sizes is decided with the frame
      }, [schema, structuredClone(schema)]);
      const after = await serialise(page, 'ui-schema >> nth=0'), fresh = await serialise(page, 'ui-schema >> nth=1');
      assert.equal(after, fresh, `${file} after ${list[i - 1]?.file}`);
      await page.evaluate(() => { for (const fold of window.cards[0].shadowRoot.querySelectorAll('details')) fold.open = true; });
    }
  });

  test('nodes that stay are the same elements, and keep the focus', async (t) => {
    const action = { type: 'event', event: 'e' };
    const { page } = await show(t, [card([text('one'), button('a0', action), button('a1', action), { type: 'kv', items: [{ key: 'k', value: 1 }] }])]);
    await page.getByRole('button', { name: 'Button a1' }).focus();
    const change = (schema) => page.evaluate((next) => {
      const root = window.cards[0].shadowRoot, focused = root.activeElement, value = root.querySelector('dd');
      window.cards[0].schema = next;
      return { focus: focused !== null && root.activeElement === focused, row: root.querySelector('dd') === value, text: root.textContent };
    }, schema);
    const more = await change(card([
      text('one!'), text('two'), { type: 'badge', label: 'new' }, button('a0', action), button('a1', action, { label: 'Renamed' }),
      { type: 'kv', items: [{ key: 'k', value: 2 }] },
    ]));
    assert.deepEqual(more, { focus: true, row: true, text: 'one!twonewButton a0Renamedk2' });
    const less = await change(card([button('a1', action), { type: 'kv', items: [{ key: 'z', value: 0 }, { key: 'k', value: 3 }] }]));
    assert.deepEqual(less, { focus: true, row: false, text: 'Button a1z0k3' });
    const touched = await page.evaluate(async (schema) => {
      let records = 0;
      const observer = new MutationObserver((list) => { records += list.length; });
      observer.observe(window.cards[0].shadowRoot, { subtree: true, childList: true, attributes: true, characterData: true });
      window.cards[0].schema = schema;
      await null;
      observer.takeRecords().forEach(() => { records++; });
      return records;
    }, card([button('a1', action), { type: 'kv', items: [{ key: 'z', value: 0 }, { key: 'k', value: 4 }] }]));
    assert.equal(touched, 1, 'one text changed, one mutation');
  });

  test('taking the card away leaves nothing, and a second definition is no error', async (t) => {
    const { page } = await show(t, [cardOf('calendar-write')]);
    await set(page, undefined);
    assert.equal(await read(page), '');
    assert.deepEqual(await page.evaluate(async () => Object.keys(await import('/again.js'))), ['UiSchemaElement', 'copy']);
  });
});

describe('actions', () => {
  const all = {
    navigation: { type: 'navigation', path: '/orders/7', params: { tab: 1 } }, url: { type: 'url', url: 'https://xn--bcher-kva.example/a?b#c' },
    event: { type: 'event', event: 'refresh', payload: { a: 1 } }, tool: { type: 'tool', toolId: 't', params: { id: 'x' } },
    copy: { type: 'copy', content: '  as it\nis ', successMessage: 'There it is' }, payload: { type: 'payload', payload: { a: [1] }, submitTo: '/x' },
  };
  const names = Object.keys(all);
  const schema = card(names.map((name) => button(name, all[name])));

  test('each is told once, as it stands on the card', async (t) => {
    const { page, context } = await show(t, [schema]);
    await page.evaluate(() => { window.prevent = true; });
    for (const name of names) await page.getByRole('button', { name: `Button ${name}`, exact: true }).click();
    assert.deepEqual(await page.evaluate(() => window.actions), names.map((name) => ({ id: name, label: `Button ${name}`, action: all[name] })));
    assert.equal(context.pages().length, 1, 'what is prevented is not done');
    assert.equal(await page.getByRole('button', { name: 'Button url' }).getAttribute('title'), 'xn--bcher-kva.example');
  });

  test('a link opens a tab that knows nothing of this one, or this one', async (t) => {
    const other = `http://127.0.0.1:${elsewhere.address().port}/`;
    const { page, context, problems } = await show(t, [card([
      button('a0', { type: 'url', url: other }), button('a1', { type: 'url', url: '/page.css', target: '_blank' }),
      button('a2', { type: 'url', url: '/icons.svg?here', target: '_self' }),
    ])]);
    problems.allow(/request to another origin/, /favicon\.ico/);
    const opened = async (name) => {
      const [tab] = await Promise.all([context.waitForEvent('page'), page.getByRole('button', { name }).click()]);
      await tab.waitForLoadState();
      return tab;
    };
    const tab = await opened('Button a0');
    assert.equal(tab.url(), other);
    assert.deepEqual(await tab.evaluate(() => [window.opener, document.referrer]), [null, '']);
    assert.equal((await opened('Button a1')).url(), `${url}page.css`);
    await Promise.all([page.waitForURL('**/icons.svg?here'), page.getByRole('button', { name: 'Button a2' }).click()]);
  });

  test('copying says so for a while, for buttons and rows, also when nothing else can be pressed', async (t) => {
    const { page } = await show(t, [card([
      button('a0', all.copy), button('a1', { type: 'copy', content: 'two' }), button('a2', all.event),
      { type: 'kv', items: [{ key: 'id', label: '编号', value: 'evt_1', copyable: true }, { key: 'n', value: { a: 1 }, copyable: true }] },
    ], { locale: 'zh-CN' })], { permissions: ['clipboard-read', 'clipboard-write'] });
    await page.evaluate((ms) => { // that while lasts until goOn(): a slow machine would miss it
      const later = window.setTimeout, held = [];
      window.setTimeout = (fn, after, ...rest) => (after === ms ? void held.push(fn) : later(fn, after, ...rest));
      window.goOn = () => { for (const fn of held.splice(0)) fn(); };
    }, COPIED_MS);
    const clipboard = () => page.evaluate(() => navigator.clipboard.readText());
    const press = async (name, says, holds) => {
      await page.getByRole('button', { name, exact: true }).click();
      await page.getByRole('status').getByText(says, { exact: true }).waitFor();
      assert.equal(await clipboard(), holds);
      await page.evaluate(() => window.goOn());
      await until('it goes away', async () => !(await read(page)).includes(says));
    };
    await press('Button a0', 'There it is', all.copy.content);
    await page.evaluate(() => { window.cards[0].readonly = true; });
    assert.ok(await page.getByRole('button', { name: 'Button a2' }).isDisabled());
    assert.ok(await page.evaluate(() => window.cards[0].hasAttribute('readonly')));
    await press('Button a1', '已复制', 'two');
    await press('复制 编号', '已复制', 'evt_1');
    await press('复制 n', '已复制', '{"a":1}');
    await page.evaluate(() => { window.cards[0].readonly = false; });
    assert.ok(await page.getByRole('button', { name: 'Button a2' }).isEnabled());
  });

  test('without a clipboard there is a second way, and words when that fails too', async (t) => {
    const { page } = await show(t, [card([button('a0', { type: 'copy', content: 'kept' })])], { permissions: ['clipboard-read', 'clipboard-write'] });
    await page.evaluate(() => { navigator.clipboard.writeText = () => Promise.reject(new Error('no')); });
    await page.getByRole('button').click();
    await page.getByRole('status').getByText('Copied').waitFor();
    assert.equal(await page.evaluate(() => navigator.clipboard.readText()), 'kept');
    await page.evaluate(() => { document.execCommand = () => false; });
    await page.getByRole('button').click();
    await page.getByRole('status').getByText('Copy failed').waitFor();
  });

  test('a busy button cannot be pressed and keeps the focus; notes come and go', async (t) => {
    const { page } = await show(t, [schema]);
    const pressed = page.getByRole('button', { name: 'Button tool' });
    await pressed.focus();
    await page.evaluate(() => window.cards[0].busy('tool', true));
    assert.equal(await pressed.getAttribute('aria-busy'), 'true');
    assert.equal(await pressed.getAttribute('aria-disabled'), 'true');
    await page.keyboard.press('Enter');
    await page.keyboard.press('Space');
    assert.deepEqual(await page.evaluate(() => window.actions), []);
    await page.evaluate(() => {
      window.cards[0].busy('tool', false);
      window.cards[0].note('tool', 'It did not work', 'error');
      window.cards[0].busy('no such', true);
    });
    assert.equal(await page.getByRole('status').filter({ hasText: 'It did not work' }).count(), 1);
    await page.keyboard.press('Enter');
    assert.equal((await page.evaluate(() => window.actions)).length, 1, 'the focus stayed');
    await page.evaluate(() => window.cards[0].note('tool', ''));
    assert.ok(!(await read(page)).includes('work'));
    await page.evaluate(() => window.cards[0].note('tool', 'of the old card'));
    await set(page, structuredClone(schema));
    assert.ok(!(await read(page)).includes('old card'), 'a new card begins anew');
  });

  test('the keyboard reaches every button, in order, and what can be scrolled', async (t) => {
    const { page } = await show(t, [card([
      text('wide', { role: 'code' }), button('a0', all.event), button('a1', all.event, { disabled: true }), button('a2', all.tool),
    ])]);
    const order = [];
    for (let i = 0; i < 3; i++) {
      await page.keyboard.press('Tab');
      order.push(await page.evaluate(() => window.cards[0].shadowRoot.activeElement?.textContent));
      assert.notEqual(await page.evaluate(() => getComputedStyle(window.cards[0].shadowRoot.activeElement).outlineStyle), 'none');
    }
    assert.deepEqual(order, ['wide', 'Button a0', 'Button a2']);
    await page.keyboard.press('Space');
    assert.deepEqual((await page.evaluate(() => window.actions)).map(({ id }) => id), ['a2']);
  });
});

describe('hostile cards', () => {
  test('limits hold: depth, nodes, rows, length', async (t) => {
    let deep = text('bottom');
    for (let i = 0; i < 100; i++) {
      deep = { type: 'stack', direction: 'vertical', appearance: 'section', children: [text(`level ${i}`), deep, text(`after ${i}`)] };
    }
    const { page } = await show(t, [card(Array.from({ length: 5000 }, (_, i) => text(`node ${i}`)))], { width: 320 });
    assert.equal(await count(page, 'p.body'), 1999);
    const cut = () => page.evaluate(() => [window.cards[0].cut, window.cards[0].getAttribute('cut'), window.cards[0].shadowRoot.querySelector('.cut')?.textContent]);
    const lost = Array.from({ length: 3001 }, (_, i) => `node ${i + 1999}`).join('').length;
    assert.deepEqual(await cut(), [lost, String(lost), `… ${lost} more characters are not shown`]);
    assert.ok((await read(page)).endsWith(`node 1998… ${lost} more characters are not shown`));
    await set(page, { ...card([]), root: deep });
    const shown = await read(page);
    assert.ok(shown.includes('level 77') && shown.includes('after 99') && !shown.includes('level 76') && /… \d+ more characters are not shown$/.test(shown), shown.slice(-200));
    await set(page, card([{ type: 'kv', items: Array.from({ length: 9000 }, (_, i) => ({ key: `k${i}`, value: i })) }, text('behind')]));
    assert.equal(await count(page, 'dt'), 4000);
    assert.match(await read(page), /behind… \d+ more characters are not shown$/);
    await set(page, card([
      text('x'.repeat(1_000_000)), { type: 'badge', label: 'y'.repeat(100_000) },
      button('a0', { type: 'event', event: 'e' }, { label: 'z'.repeat(100_000) }),
    ]));
    const missing = 1_000_000 + 2 * 100_000 - 3 * 65_536;
    assert.deepEqual(await cut(), [missing, String(missing), `… ${missing} more characters are not shown`]);
    assert.equal((await read(page)).length, 3 * (65_536 + 1) + `… ${missing} more characters are not shown`.length);
    const [inside, window_] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
    assert.ok(inside <= window_, `${inside} px in a window of ${window_}`);
  });

  test('what is cut is said, at the limit and above it, in both languages; what is whole says nothing', async (t) => {
    const { page } = await show(t, [card([])]);
    await page.evaluate(() => {
      window.told = [];
      document.addEventListener('ui-cut', ({ detail }) => window.told.push(detail.cut));
    });
    const row = (value) => card([{ type: 'kv', items: [{ key: 'k', value }] }]);
    for (const [schema, cut] of [
      [card([text('x'.repeat(65_535))]), 0], [card([text('x'.repeat(65_536))]), 0], [card([text('x'.repeat(65_537))]), 1], [row('y'.repeat(65_536)), 0],
      [row(`${'y'.repeat(65_536)} and delete everything`), 22], [row({ deep: 'z'.repeat(65_536) }), 11], [card([text('left out', { cut: 7 })]), 7], [card([text('all')]), 0],
    ]) {
      await set(page, schema);
      assert.deepEqual(await page.evaluate(() => [window.cards[0].cut, window.cards[0].getAttribute('cut')]), [cut, cut ? String(cut) : null]);
      assert.equal(await count(page, '.cut'), cut ? 1 : 0);
    }
    assert.deepEqual(await page.evaluate(() => window.told), [1, 0, 22, 11, 7, 0]);
    await set(page, card([text('x'.repeat(65_540))], { locale: 'zh-CN' }));
    assert.ok((await read(page)).endsWith('… 还有 4 个字符未显示'));
  });

  test('a wrong type is as if it were not there', async (t) => {
    const { page } = await show(t, [card([text('before'), text('after')])]);
    let nested = [];
    for (let i = 0; i < 200; i++) nested = [nested];
    const wrong = [null, 7, '', 'text', true, [], {}, [[null]], { toString: 1 }, nested];
    const fields = {
      stack: ['direction', 'gap', 'appearance', 'status', 'align', 'justify', 'wrap', 'children', 'visible'], grid: ['columns', 'gap', 'appearance', 'children'],
      text: ['content', 'format', 'role', 'status', 'maxLines', 'visible'], icon: ['name', 'size', 'status'], badge: ['label', 'status'], divider: ['type'],
      button: ['id', 'label', 'style', 'disabled', 'icon', 'action'], kv: ['items', 'columns'],
    };
    const whole = {
      stack: { children: [text('x')] }, grid: { children: [text('x')] }, text: { content: 'x' }, icon: { name: 'check' }, badge: { label: 'x' }, divider: {},
      button: { id: 'a0', label: 'x', action: { type: 'event', event: 'e' } }, kv: { items: [{ key: 'k', value: 'v' }, ...wrong] },
    };
    const nodes = Object.entries(fields).flatMap(([type, names]) => names.flatMap((name) => wrong.map((value) => ({ type, ...whole[type], [name]: value }))));
    const actions = ['navigation', 'url', 'event', 'tool', 'copy', 'payload', 'other', '__proto__'].flatMap((type) => wrong.map((value) =>
      button('a0', { type, path: value, url: value, event: value, toolId: value, content: value, payload: value })));
    const failed = await page.evaluate((json) => JSON.parse(json).filter((schema) => {
      window.cards[0].schema = schema;
      return !/^before.*after$/s.test(window.cards[0].shadowRoot.textContent);
    }), JSON.stringify([...wrong, ...wrong.map((type) => ({ type })), ...nodes, ...actions].map((node) => card([text('before'), node, text('after')]))));
    assert.deepEqual(failed, []);
    await set(page, card([button('a0', { type: 'other', undefined: 'x', '': 'x' })]));
    assert.ok(await page.getByRole('button').isDisabled());
    const around = wrong.map((value) => card([text('x')], { locale: value, theme: value, status: value, version: value }));
    for (const schema of [...wrong, ...wrong.map((root) => ({ root })), ...around]) await set(page, schema);
    assert.equal(await read(page), 'x');
    await page.evaluate(() => {
      const loop = { type: 'stack', children: [] };
      loop.children.push(loop, loop);
      window.cards[0].schema = { root: { type: 'stack', children: [loop, { type: 'kv', items: [{ key: 'k', value: loop }, { key: 'big', value: 10n }] }] } };
    });
  });

  test('an address that is none of ours is never opened', async (t) => {
    const bad = [
      'javascript:alert(1)', ' java\tscript:alert(1)', 'JAVASCRIPT:alert(1)', 'data:text/html,x', 'vbscript:x', 'file:///etc/passwd', 'blob:x',
      'http://', 'https://[', 'about:blank', 'ftp://x/y',
    ];
    const good = {
      'https://user@evil.example/good.example': 'evil.example', 'mailto:a@b.example': 'a@b.example', 'tel:+1': '+1', '/x': new URL(url).host,
    };
    const { page, context } = await show(t, [card([...bad, ...Object.keys(good)].map((one, i) => button(`a${i}`, { type: 'url', url: one })))]);
    const buttons = await page.evaluate((n) => [...window.cards[0].shadowRoot.querySelectorAll('button')].slice(0, n).map((one) => {
      one.click();
      return [one.disabled, one.title];
    }), bad.length);
    for (const [i, found] of buttons.entries()) assert.deepEqual(found, [true, 'Not allowed'], bad[i]);
    assert.equal(context.pages().length, 1);
    const titles = await page.evaluate(() => [...window.cards[0].shadowRoot.querySelectorAll('button:enabled')].map(({ title }) => title));
    assert.deepEqual(titles, Object.values(good));
    assert.deepEqual(await page.evaluate(() => window.actions), []);
  });

  test('markup is text, and what turns the direction stays in its own', async (t) => {
    const evil = '<img src=x onerror="window.pwned=1"><script>window.pwned=1</script>';
    const { page } = await show(t, [card([
      text(evil), text(evil, { format: 'markdown' }), text(evil, { role: 'title' }), { type: 'badge', label: evil }, { type: 'chart', fallback: evil },
      { type: 'kv', items: [{ key: evil, value: evil }] }, button('a0', { type: 'event', event: evil }, { label: evil }), { type: 'icon', name: evil },
    ])]);
    assert.equal(await count(page, 'img, script'), 0);
    assert.equal(await page.evaluate(() => window.pwned), undefined);
    const turned = [{ type: 'badge', label: 'invoice\u202egnp.exe' }, { type: 'badge', label: 'second' }, text('\u202e\u2067third')];
    await set(page, card([
      { type: 'stack', direction: 'horizontal', appearance: 'plain', children: turned },
      { type: 'kv', items: [{ key: '\u202ekey', value: 'a\u202eb', copyable: true }] },
    ]));
    const bidi = await page.evaluate(() => [...window.cards[0].shadowRoot.querySelectorAll('[dir=auto]')].map((one) => getComputedStyle(one).unicodeBidi));
    assert.ok(bidi.length >= 5 && bidi.every((one) => one === 'isolate'), bidi.join());
  });
});

describe('looks', () => {
  const picks = [
    'calendar-write', 'calendar-read-zh', 'list-full', 'data-grid', 'mixed-sections-zh', 'actions-styles', 'code-fence', 'status-error', 'form-zh',
    'shape-expense', 'shape-flight',
  ];
  const statuses = ['info', 'success', 'warning', 'error', 'pending'];
  const rowOf = (children) => ({ type: 'stack', direction: 'horizontal', appearance: 'plain', wrap: true, children });
  const gallery = [...picks.map(cardOf), card([
    text('Every status', { role: 'title' }),
    rowOf(statuses.map((status) => ({ type: 'badge', label: status, status }))),
    ...statuses.map((status) => text(`A line of status ${status}`, { role: 'caption', status })),
    text(Array.from({ length: 20 }, (_, i) => `${i} long folded words 折叠的文字`).join(' '), { maxLines: 3 }),
    rowOf(['primary', 'secondary', 'ghost', 'danger'].map((style) => button(style, { type: 'event', event: 'e' }, { style }))),
  ])];
  for (const [name, options] of Object.entries({
    light: {}, dark: { scheme: 'dark' }, narrow: { width: 320 }, touch: { width: 390, touch: true, scheme: 'dark' },
    forced: { forcedColors: 'active', scheme: 'dark' },
  })) {
    test(`nothing stands in anybody's way: ${name}`, async (t) => {
      const { page } = await show(t, gallery, { markdown: true, height: 1600, ...options });
      await page.evaluate(() => {
        const last = window.cards.at(-1);
        last.busy('primary', true);
        last.note('secondary', 'Sent', 'success');
        last.note('danger', 'Somebody else was first', 'error');
      });
      // In forced colours the computed ones, which axe reads, are not the ones that are drawn.
      assert.deepEqual((await axe(page)).filter((found) => name !== 'forced' || !found.includes('color-contrast')), []);
      const [inside, room] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
      assert.ok(inside <= room, `${inside} px in a window of ${room}`);
      const small = await page.evaluate((least) => window.cards.flatMap((one) => [...one.shadowRoot.querySelectorAll('button, summary')])
        .filter((one) => one.checkVisibility()).map((one) => [one.textContent, one.getBoundingClientRect().height])
        .filter(([, height]) => height < least - 0.5), options.touch ? 44 : 24);
      assert.deepEqual(small, []);
      await screen(page, `ui-schema-${name}`);
      await page.evaluate(() => window.cards.at(-1).scrollIntoView({ block: 'end' }));
      await screen(page, `ui-schema-${name}-end`);
    });
  }
});

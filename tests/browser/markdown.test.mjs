// SPDX-License-Identifier: Apache-2.0
//
// The page's markdown: whatever the pieces a text comes in, what stands there in the end is the same; what is done is not
// touched again; nothing that is written runs, loads or hides; and no text takes for ever.
//
// A fixture is a file of fixtures/markdown; ␠ in it stands for a space at the end of a line.

import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

import { axe, LONG, newPage, openBrowser, ROOT, screen, until } from './kit.mjs';
import { serveMarkdown } from './markdown-kit.mjs';

const folder = join(ROOT, 'tests/browser/fixtures/markdown');
const read = (name) => readFileSync(join(folder, name), 'utf8').replaceAll('␠', ' ');
const fixtures = Object.fromEntries(readdirSync(folder).sort().map((name) => [name.slice(0, -3), read(name)]));

let served, chromium;
before(async () => {
  served = await serveMarkdown();
  chromium = await openBrowser();
});
after(async () => {
  await chromium?.close();
  await served?.close();
});

async function open(t, options = {}) {
  const opened = await newPage(chromium.browser, { url: served.url, ...options });
  t.after(opened.done);
  await opened.page.waitForFunction(() => window.md !== undefined);
  return opened;
}

// What is drawn for a text that came at once.
const drawn = (page, text) => page.evaluate(async (given) => {
  const node = md.markdownNode(given);
  return node.innerHTML;
}, text);

// Draws the texts where they are seen.
const show = (page, ...texts) => page.evaluate(async (given) => {
  document.querySelector('#host').replaceChildren(...given.map((text) => md.markdownNode(text)));
}, texts);

// ---- pieces ----

test('a text that came in pieces stands there as one that came at once', async (t) => {
  const { page } = await open(t);
  assert.ok(Object.keys(fixtures).length >= 20);
  for (const [name, text] of Object.entries(fixtures)) {
    const whole = await drawn(page, text);
    for (const size of [1, 3, 7, 50, 999]) {
      const pieces = await page.evaluate(async ([given, step]) => {
        const host = document.createElement('div'), view = new md.MarkdownView(host);
        for (let end = step; end < given.length + step; end += step) view.update(given.slice(0, end), true);
        view.update(given, false);
        return host.innerHTML;
      }, [text, size]);
      assert.equal(pieces, whole, `${name} in pieces of ${size}`);
    }
  }
});

test('and so does what no one would write', async (t) => {
  const { page } = await open(t);
  const wrong = await page.evaluate(async () => {
    const bits = ['\n', '\n', '\n\n', ' ', '  ', '    ', '\t', '- ', '* ', '1. ', '2) ', '-', '*', '_', '**', '~~', '`', '```', '```js\n',
      '~~~', '# ', '#', '> ', '>', '|', '| a | b |\n', '|---|:-:|\n', '|-|', '---', '===', '[', '](', '](http://a.b/c)', '![', '[x]',
      '[ ] ', '[1]', '[1]: https://a.b', '[a]: /x\n', '"', '(', ')', '\\', '<', '<div>', '<!--', '&amp;', '中文', '标题：', '“引”', '。', 'abc',
      'http://a.b/', 'a@b.c', '\r\n', '\r', '  \n', '\\\n', '🎉', '- [ ] t\n', '1', '12', '--', '|x|\n', '  - y\n', '    z\n'];
    let seed = 20261115;
    const below = (n) => {
      seed = (seed * 1103515245 + 12345) % 2147483648;
      return Math.floor(seed / 2147483648 * n);
    };
    const pick = (list) => list[below(list.length)];
    const one = (text) => md.markdownNode(text).innerHTML;
    for (let n = 0; n < 600; n++) {
      const text = Array.from({ length: 2 + below(30) }, () => pick(bits)).join('');
      const host = document.createElement('div'), view = new md.MarkdownView(host), step = pick([1, 2, 5]);
      for (let end = step; end < text.length; end += step) view.update(text.slice(0, end), true);
      view.update(text, false);
      if (host.innerHTML !== one(text)) return { text, step };
      const at = below(text.length), changed = text.slice(0, at) + pick(bits) + text.slice(at + 1);
      view.update(changed, n % 2 === 0);
      view.update(changed, false);
      if (host.innerHTML !== one(changed)) return { text, changed };
    }
    return undefined;
  });
  assert.equal(wrong, undefined);
});

test('blocks that are done stay the same elements', async (t) => {
  const { page } = await open(t);
  for (const name of ['01-plan-zh', '02-answer-en', '08-fences', '10-tables', '11-quotes']) {
    const result = await page.evaluate(async (text) => {
      const host = document.createElement('div'), view = new md.MarkdownView(host), kept = [];
      for (let end = 1; end <= text.length; end++) {
        view.update(text.slice(0, end), true);
        while (host.children.length > kept.length + 2) kept.push(host.children[kept.length]);
      }
      view.update(text, false);
      return { kept: kept.length, same: kept.filter((node, i) => node === host.children[i]).length };
    }, fixtures[name]);
    assert.ok(result.kept >= 3, name);
    assert.equal(result.same, result.kept, name);
  }
});

test('inside the block that grows, what is whole stays too, and a text that changes is drawn from there', async (t) => {
  const { page } = await open(t);
  assert.deepEqual(await page.evaluate(() => {
    const host = document.createElement('div'), view = new md.MarkdownView(host);
    view.update('- **one**\n- two\n- thr', true);
    const item = host.querySelector('li'), strong = host.querySelector('strong');
    view.update('- **one**\n- two\n- three\n- four', true);
    const items = item === host.querySelector('li') && strong === host.querySelector('strong');
    view.update('| a | b |\n|---|---|\n| 1 | 2 |\n| 3 |', true);
    const row = host.querySelector('tbody tr');
    view.update('| a | b |\n|---|---|\n| 1 | 2 |\n| 3 | 4 |\n', true);
    const rows = row === host.querySelector('tbody tr');
    view.update('# one\n\ntwo\n\nthree\n\nfour\n\nfive', true);
    const [heading, two] = host.children;
    view.update('# one\n\ntwo\n\nthree\n\nFOUR\n\nfive', false);
    return { items, rows, change: [heading === host.children[0], two === host.children[1], host.textContent] };
  }), { items: true, rows: true, change: [true, true, 'onetwothreeFOURfive'] });
});

test('what is half written shows no marks', async (t) => {
  const { page } = await open(t);
  const cases = [
    ['这是**粗体**的字', /\*/], ['an *em* and ~~gone~~ word', /[*~]/], ['call `f(x)` now', /`/],
    ['**bold with `code` in it** end', /[*`]/],
    ['see [the page](https://example.com/long/path) here', /[[\]()]|example/],
    ['text\n\n![alt](https://e.com/x.png) more', /[[\]]/],
    ['words\n\n| a | b |\n|---|:-:|\n| 1 | 2 |\n', /[|:]|--/], ['如下：\n| a | b |\n|---|---|\n| 1 | 2 |\n', /\||--/],
    ['text\n\n```js\nlet a = 1;\n```\n\nmore', /`/], ['one\n- two\n- three', /-/],
    ['one\n\n---\n\ntwo', /-/], ['one\n## two\nthree', /#/],
  ];
  for (const [text, marks] of cases) {
    const seen = await page.evaluate((given) => {
      const host = document.createElement('div'), view = new md.MarkdownView(host), texts = [];
      for (let end = 1; end <= given.length; end++) {
        view.update(given.slice(0, end), true);
        texts.push(host.textContent.replace('Copy', ''));
      }
      return texts;
    }, text);
    for (const one of seen) assert.doesNotMatch(one, marks, text);
  }
});

test('a link that is defined below is one in the end', async (t) => {
  const { page } = await open(t);
  const host = await drawn(page, fixtures['06-references']);
  assert.equal(host.match(/example\.com\/one/g).length, 2);
  assert.equal(host.match(/example\.com\/two/g).length, 3);
  assert.match(host, /\[missing\]\[3\]/);
  assert.match(host, /\[注\]: 这不是链接/);
  assert.match(host, /\[\^1\]: 脚注/);
  assert.doesNotMatch(host, /ignored/);
});

// ---- rules ----

test('emphasis, addresses and breaks read as they should in Chinese and English', async (t) => {
  const { page } = await open(t);
  const link = (href, words, title) =>
    `<a href="${href}" rel="noopener noreferrer nofollow" target="_blank" title="${title}">${words}</a>`;
  const lines = [
    ['**标题：**内容', '<strong>标题：</strong>内容'], ['**“引用”**后', '<strong>“引用”</strong>后'], ['前**“引用”**后', '前<strong>“引用”</strong>后'],
    ['**标题:**内容', '<strong>标题:</strong>内容'], ['2 * 3 * 4', '2 * 3 * 4'], ['my_var_name', 'my_var_name'], ['a*b*c', 'a<em>b</em>c'],
    ['约 3~5 天，6~8 人', '约 3~5 天，6~8 人'], ['~~旧~~新', '<del>旧</del>新'],
    ['https://a.b/c_d, x', `${link('https://a.b/c_d', 'https://a.b/c_d', 'a.b')}, x`],
    ['见https://a.b/c。好', `见${link('https://a.b/c', 'https://a.b/c', 'a.b')}。好`],
    ['https://a.b/c中文', `${link('https://a.b/c', 'https://a.b/c', 'a.b')}中文`],
    ['(https://a.b/c_(d))', `(${link('https://a.b/c_(d)', 'https://a.b/c_(d)', 'a.b')})`],
    ['a@b.co。', `${link('mailto:a@b.co', 'a@b.co', 'a@b.co')}。`],
    ['中文\n换行', '中文换行'], ['two\nlines', 'two\nlines'], ['a  \nb', 'a<br>b'], ['a\\\nb', 'a<br>b'],
    ['&amp; &lt; &#20013; &copy;', '&amp; &lt; 中 ©'], ['<b>x</b>', '&lt;b&gt;x&lt;/b&gt;'], ['*重点*', '<em class="md-dots">重点</em>'],
  ];
  for (const [text, wanted] of lines) assert.equal(await drawn(page, text), `<p dir="auto">${wanted}</p>`, text);
  assert.match(await drawn(page, '# a\n###### b'), /^<h3 dir="auto">a<\/h3><h6 dir="auto">b<\/h6>$/);
  assert.match(await drawn(page, 'a\n---\nb'), /<p dir="auto">a<\/p><hr><p dir="auto">b<\/p>/);
  assert.match(await drawn(page, '- [ ] a\n- [x] b'),
    /<label><input type="checkbox" disabled="">a<\/label>.*<input type="checkbox" disabled="" checked="">b/);
  assert.match(await drawn(page, '3. a'), /<ol class="md-list" start="3" dir="auto">/);
});

test('what is written never runs, and leads only where it may', async (t) => {
  const { page } = await open(t);
  for (const text of Object.values(fixtures)) {
    await show(page, text);
    const found = await page.evaluate(() => ({
      elements: [...document.querySelectorAll('#host *')].filter((one) => one.matches('script, iframe, svg, style, object, embed, form, details')
        || one.getAttributeNames().some((name) => /^on|^style$/.test(name))).map((one) => one.outerHTML),
      links: [...document.querySelectorAll('#host a')].filter((a) => !['http:', 'https:', 'mailto:', 'tel:'].includes(a.protocol)
        || a.rel !== 'noopener noreferrer nofollow' || a.target !== '_blank' || !a.title).map((a) => a.outerHTML),
      pwned: window.__pwned,
    }));
    assert.deepEqual(found, { elements: [], links: [], pwned: undefined });
  }
  await show(page, fixtures['05-links']);
  const texts = await page.locator('#host a').allTextContents();
  for (const refused of ['bad', 'data', 'other', 'back', 'ftp', 'file', 'rel']) assert.ok(!texts.includes(refused), refused);
  for (const allowed of ['words', 'path', 'mail', 'tel']) assert.ok(texts.includes(allowed), allowed);
});

test('a picture from elsewhere is a link and is not asked for; one of this server is seen', async (t) => {
  const { page, requests } = await open(t);
  await show(page, fixtures['13-images'], '[![in a link](https://example.com/x.png)](https://example.com/y)');
  await page.waitForFunction(() => document.querySelector('img')?.naturalWidth === 1);
  assert.equal(await page.locator('img').count(), 1);
  assert.equal(await page.locator('img').getAttribute('alt'), 'ours');
  assert.deepEqual(await page.locator('#host a').allTextContents(),
    ['🖼 outside (example.com)', '🖼 (example.com)', '🖼 ref (example.com)', '🖼 图片 (127.0.0.2)', '🖼 in a link (example.com)']);
  assert.equal(await page.locator('a a').count(), 0);
  assert.deepEqual(requests.map(({ path }) => path).filter((path) => /png|pixel/.test(path)), ['/api/v1/agent/attachments/pixel.gif']);
});

test('marks that turn the reading direction are seen in code, and end with their link', async (t) => {
  const { page } = await open(t);
  await show(page, fixtures['17-bidi']);
  const codes = await page.locator('#host code').allTextContents();
  assert.ok(codes.every((code) => !/[\u202a-\u202e\u2066-\u2069]/.test(code)));
  assert.match(codes.join(), /⟨U\+202E⟩/);
  const directions = await page.locator('#host > div > *').evaluateAll((all) => all.map((one) => getComputedStyle(one).direction));
  assert.deepEqual(directions, ['ltr', 'rtl', 'ltr', 'rtl']);
  assert.equal(await page.evaluate(() => getComputedStyle(document.querySelector('#host a')).unicodeBidi), 'isolate');
});

// ---- code and tables ----

test('code is coloured without a changed character', async (t) => {
  const { page } = await open(t);
  await show(page, 'text `code`\n\n```\nplain\n```\n\n```nosuch\nplain\n```');
  assert.equal(await page.locator('#host pre span').count(), 0);
  const code = 'const a = `x${1 + 2}`; // 注释\n\tif (a < 3 && b) { return "\\n"; }\n';
  await show(page, `\`\`\`js\n${code}\`\`\``);
  assert.equal(await page.locator('#host pre code').textContent(), code.trimEnd());
  assert.ok(await page.locator('#host .t-kwd').count() >= 2);
  const long = `let a = "${'x'.repeat(30_000)}";`;
  await show(page, `\`\`\`js\n${long}\n\`\`\``);
  assert.equal(await page.locator('#host pre code').textContent(), long);
  assert.equal(await page.locator('#host pre span').count(), 0);
});

test('a block of code says its language and can be copied; words follow the language of the page', async (t) => {
  const { page } = await open(t, { permissions: ['clipboard-read', 'clipboard-write'] });
  await show(page, '```python\nprint("你好")\n```\n\n| a |\n|---|\n| 1 |');
  assert.equal(await page.locator('figcaption span').textContent(), 'python');
  assert.ok(await page.getByRole('region', { name: 'Code python' }).isVisible());
  assert.ok(await page.getByRole('region', { name: 'Table' }).isVisible());
  const labels = await page.locator('figcaption button').evaluateHandle((button) => {
    const list = [];
    new MutationObserver(() => list.push(button.textContent)).observe(button, { childList: true });
    return list;
  });
  await page.getByRole('button', { name: 'Copy' }).click();
  await until('it says so, for a moment', async () => (await labels.jsonValue())[0] === 'Copied');
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), 'print("你好")');
  await page.getByRole('button', { name: 'Copy', exact: true }).waitFor();
  await page.evaluate(() => { md.prefs.language.value = 'zh-CN'; });
  await page.getByRole('button', { name: '复制' }).waitFor();
  assert.ok(await page.getByRole('region', { name: '代码 python' }).isVisible());
  assert.ok(await page.getByRole('region', { name: '表格' }).isVisible());
});

test('a table of 10,000 rows shows 500, and all of them when asked', async (t) => {
  const { page } = await open(t);
  const rows = Array.from({ length: 10_000 }, (_, i) => `| ${i} | **x** | \`y\` |\n`);
  await show(page, `| a | b | c |\n|---|--:|:-:|\n${rows.join('')}`);
  assert.equal(await page.locator('tbody tr').count(), 500);
  await page.getByRole('button', { name: 'Show all 10,000 rows' }).click();
  await page.waitForFunction(() => document.querySelectorAll('tbody tr').length === 10_000);
  assert.equal(await page.locator('.md-table button').count(), 0);
  assert.equal(await page.locator('tbody tr:last-child').textContent(), '9999xy');
  const sides = await page.locator('tbody tr:first-child td').evaluateAll((all) => all.map((cell) => getComputedStyle(cell).textAlign));
  assert.deepEqual(sides, ['start', 'end', 'center']);
});

// ---- hostile ----

test('things in things end at a depth, and no word is lost', async (t) => {
  const { page } = await open(t);
  const nested = [
    `${'> '.repeat(500)}end`, `${'- '.repeat(500)}end`, `${'1. > '.repeat(300)}end`, `${'*a '.repeat(100)}end${' a*'.repeat(100)}`,
    `${'[a '.repeat(60)}end${'](https://a.b)'.repeat(60)}`, `${Array.from({ length: 200 }, (_, i) => `${'  '.repeat(i)}- x`).join('\n')} end`,
  ];
  for (const text of nested) {
    const { depth, words } = await page.evaluate((given) => {
      const node = md.markdownNode(given);
      let deepest = 0;
      for (const one of node.querySelectorAll('*')) {
        let at = 0;
        for (let up = one; up !== node; up = up.parentNode) at++;
        deepest = Math.max(deepest, at);
      }
      return { depth: deepest, words: node.textContent };
    }, text);
    assert.ok(depth <= 110, `${depth} deep: ${text.slice(0, 20)}`);
    assert.match(words, /end/);
  }
});

test('no text takes for ever', async (t) => {
  const { page } = await open(t);
  const size = 100_000, fill = (unit) => unit.repeat(size / unit.length);
  const units = ['[', '*', '**', '`', '`a``b```', '_a ', '~', '[a](b', '![', '[a][b]', '[[a](b)](c)', '<', '<!-- a>', '<a b="', '\\', 'a@',
    '@', 'http://', 'www.', 'http://a((', '> ', '> a\nb\n', '- ', '- a\n', '- [ ] a\n', '- > ', '1. a\n\n', '#\n', '|', '|a|b|\n|-|-|\n',
    'x\na|b\n-|-\n', 'a|b\n-|-|-\n', '---\n', '```\n', '    a\n', ' ', '  \n', '\n', '[a]: http://b\n', '[a]\n\n', '**中：**', '中**',
    '\u202e', '&', 'a\n\n', '*a\n\n', '中\n'];
  const long = ['a'.repeat(1_000_000), '中文 '.repeat(330_000), `\`\`\`js\n${'x '.repeat(500_000)}\n\`\`\``, `${'a'.repeat(300_000)}@`,
    `a${' '.repeat(300_000)}b`];
  const lines = (unit) => `${unit.repeat(490 / unit.length)}\n`.repeat(45);
  const codes = ['js', 'ts', 'py', 'html', 'css', 'toml', 'bash', 'sql'].flatMap((name) =>
    ['<a b   ', '"', '/*', 'a-', '\\"', '`${', 'f"{'].map((unit) => `\`\`\`${name}\n${lines(unit)}\n\`\`\``));
  const texts = [...units.flatMap((unit, i) => [fill(unit), `x ${fill(unit)} )]*\`_~>|`].filter((_, form) => LONG || form === i % 2)), ...long, ...codes];
  let worst = [0];
  for (const text of texts) {
    const ms = await page.evaluate(async (given) => {
      const begun = performance.now();
      md.markdownNode(given);
      return performance.now() - begun;
    }, text);
    if (ms > worst[0]) worst = [Math.round(ms), text.slice(0, 30)];
    assert.ok(ms < 20_000, `${ms} ms: ${JSON.stringify(text.slice(0, 40))}`);
  }
  t.diagnostic(`${texts.length} hostile texts, the slowest ${worst[0]} ms: ${JSON.stringify(worst[1])}`);
});

test('work a frame at the end of a message of 40 kB', async (t) => {
  const { page } = await open(t);
  const names = ['01-plan-zh', '02-answer-en', '08-fences', '10-tables', '07-lists', '16-breaks-zh'];
  const all = names.map((name) => fixtures[name]).join('\n\n');
  const text = all.repeat(Math.ceil(42_000 / all.length)).slice(0, 42_000);
  const times = await page.evaluate(async (given) => {
    const view = new md.MarkdownView(document.querySelector('#host')), taken = [];
    view.update(given.slice(0, 40_000), true);
    for (let end = 40_000; end < given.length; end += 14) { // 200 tokens a second at 60 frames
      const begun = performance.now();
      view.update(given.slice(0, end), true);
      taken.push(performance.now() - begun);
      await new Promise(requestAnimationFrame);
    }
    return taken.sort((a, b) => a - b);
  }, text);
  const at = (part) => times[Math.floor(times.length * part)].toFixed(2);
  t.diagnostic(`ms a frame: half ${at(0.5)}, 95 % ${at(0.95)}, worst ${times.at(-1).toFixed(2)}`);
  assert.ok(times[Math.floor(times.length * 0.95)] < 100);
});

// ---- look ----

for (const [scheme, locale] of [['light', 'en'], ['dark', 'zh-CN']]) {
  test(`it is read without barriers: ${scheme}, ${locale}`, async (t) => {
    const { page } = await open(t, { scheme, locale, width: 900, height: 1400 });
    await show(page, fixtures['01-plan-zh'], fixtures['08-fences'], fixtures['07-lists'], fixtures['10-tables']);
    await screen(page, `markdown-${scheme}`);
    const low = await page.evaluate(() => {
      const code = document.querySelector('pre code');
      const probe = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
      const light = (color) => {
        probe.fillStyle = color;
        probe.fillRect(0, 0, 1, 1);
        const parts = [...probe.getImageData(0, 0, 1, 1).data].map((part) => part / 255);
        const [r, g, b] = parts.map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
      };
      const paper = light(getComputedStyle(code.closest('figure')).backgroundColor);
      return 'kwd bool str insert num esc cmnt func class type section var oper deleted err'.split(' ').filter((kind) => {
        const span = document.createElement('span');
        span.className = `t-${kind}`;
        code.append(span);
        const ink = light(getComputedStyle(span).color);
        span.remove();
        return (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05) < 4.5;
      });
    });
    assert.deepEqual(low, [], 'kinds of code that are hard to read');
    assert.deepEqual(await axe(page, { include: '#host' }), []);
  });
}

test('nothing is wider than a small phone', async (t) => {
  const { page } = await open(t, { width: 320, height: 640, touch: true });
  await show(page, ...Object.values(fixtures), `${'x'.repeat(400)} \`${'y'.repeat(400)}\``);
  assert.ok(await page.evaluate(() => document.documentElement.scrollWidth) <= 320);
  const heights = await page.locator('#host button').evaluateAll((all) => all.map((one) => one.getBoundingClientRect().height));
  assert.ok(heights.length && heights.every((height) => height >= 44));
});

// SPDX-License-Identifier: Apache-2.0
//
// What every browser test stands on: Debian's Chromium, a page that is watched while it lives, a real server whose model
// follows a script, a proxy that cuts lines, the page's log as text, screenshots, and a search for barriers.
//
// The idea: a page is guilty of everything that happens on it. Console errors and warnings, exceptions, violations of the
// content security policy, and requests to other origins are collected from the first byte on; done() fails when there
// was one that the test did not allow. Nothing here is part of the product.

import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { chromium } from 'playwright-core';

import { startServer } from '../api/server.mjs';
import { serialiseInPage } from './serialise.mjs';

export { within } from '../api/server.mjs';
export { cuttingProxy } from './cutting-proxy.mjs';

export const ROOT = join(dirname(fileURLToPath(import.meta.url)), '../..');
const SCREENS = join(ROOT, 'build/screens');
const PROGRAMS = [process.env.CHROMIUM, '/usr/bin/chromium-headless-shell', '/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];
const STEP_MS_MAX = 30_000;
const POLL_MS = 20, POLL_MS_MAX = 200; // of until(): longer each time, since every look costs

// Languages, schemes and widths for what is about layout only: a pair that differs in everything, or, in the long form of
// the tests, all of them.
export const LONG = Boolean(process.env.FERMATA_LONG);
export const LOOKS = ['en', 'zh-CN'].flatMap((locale) => ['light', 'dark'].flatMap((scheme) => [1280, 390].map((width) => ({ locale, scheme, width }))))
  .filter(({ locale, scheme, width }) => LONG || ['en light 1280', 'zh-CN dark 390'].includes(`${locale} ${scheme} ${width}`));

// Resolves with what `fn` gives once that is truthy.
export async function until(what, fn, ms = 40_000) {
  const end = Date.now() + ms;
  for (let pause = POLL_MS; ; pause = Math.min(pause * 1.5, POLL_MS_MAX)) {
    const value = await fn();
    if (value) return value;
    if (Date.now() > end) throw new Error(`${what}: not within ${ms} ms`);
    await new Promise((resolve) => setTimeout(resolve, pause));
  }
}

// ---- browser and page -------------------------------------------------------------------------------------------------

// {browser, close()}. Nothing but loopback can be reached, whatever a page asks for. It is Chromium without a window of its
// own, at half the cost; `whole`: the one that people have, for what only that can do.
export async function openBrowser({ whole = false, ...options } = {}) {
  const executablePath = PROGRAMS.find((path) => path && existsSync(path) && !(whole && path.includes('headless')));
  assert.ok(executablePath, 'no Chromium: run scripts/setup test, or set CHROMIUM');
  const browser = await chromium.launch({
    executablePath,
    ...options,
    args: ['--no-sandbox', '--disable-dev-shm-usage', '--force-color-profile=srgb',
      '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost', ...options.args ?? []],
  });
  return { browser, close: () => browser.close() };
}

// What went wrong on a page. `allow` excuses what matches, before or after it happened.
class Problems {
  #seen = [];
  #allowed = [];

  add(text) { this.#seen.push(text); }
  allow(...patterns) { this.#allowed.push(...patterns); }
  left() { return this.#seen.filter((text) => !this.#allowed.some((pattern) => pattern.test(text))); }
  check() { assert.deepEqual(this.left(), [], 'problems on the page'); }
}

function reportViolations() {
  document.addEventListener('securitypolicyviolation', (event) => {
    window.kitViolation(`${event.effectiveDirective} ${event.blockedURI} ${event.sourceFile}:${event.lineNumber} ${event.sample}`);
  });
}

function watch(context, origin, problems, sent, requests) {
  const check = (url) => {
    if (/^(blob|about|chrome-error):/.test(url)) return;
    if (new URL(url).origin.replace(/^ws/, 'http') !== origin) problems.add(`request to another origin: ${url}`);
  };
  context.on('console', (message) => {
    if (['error', 'warning', 'assert'].includes(message.type())) {
      problems.add(`console ${message.type()}: ${message.text()} (${message.location().url})`);
    }
  });
  context.on('weberror', (error) => problems.add(`exception: ${error.error()?.stack ?? error.error()}`));
  context.on('request', (request) => {
    check(request.url());
    const { pathname, search } = new URL(request.url());
    requests.push({ method: request.method(), path: pathname + search, body: request.postData() });
  });
  context.on('page', (page) => {
    page.on('crash', () => problems.add('the page crashed'));
    page.on('websocket', (socket) => {
      check(socket.url());
      socket.on('framesent', ({ payload }) => sent.push(JSON.parse(payload)));
    });
  });
}

// A page of its own profile, loaded from `url`. `problems`: see above; `sent`: every frame the page sent over a WebSocket,
// parsed; `requests`: {method, path, body} of every request; `tab(url)` opens one more page beside it. done() fails if
// there were problems, and closes all; it may be called twice, so `t.after(done)` is the usual way.
//
// Nothing moves by itself, since every frame is drawn without a graphics card: `motion` is for tests that are about it.
// `storage` are entries of localStorage to begin with; `permissions` are Chromium's names ('clipboard-read', ...).
export async function newPage(browser, {
  url, locale = 'en', scheme = 'light', width = 1280, height = 800, motion = false, touch = false, storage = {},
  permissions = [], timezone = 'Asia/Shanghai', forcedColors = 'none',
} = {}) {
  const { origin } = new URL(url);
  const local = Object.entries(storage).map(([name, value]) => ({ name, value: String(value) }));
  const context = await browser.newContext({
    locale, colorScheme: scheme, viewport: { width, height }, reducedMotion: motion ? 'no-preference' : 'reduce',
    hasTouch: touch, isMobile: touch, permissions, timezoneId: timezone, forcedColors,
    storageState: { cookies: [], origins: local.length ? [{ origin, localStorage: local }] : [] },
  });
  context.setDefaultTimeout(STEP_MS_MAX);
  const problems = new Problems(), sent = [], requests = [];
  watch(context, origin, problems, sent, requests);
  await context.exposeBinding('kitViolation', (_, text) => problems.add(`content security policy: ${text}`));
  await context.addInitScript(reportViolations);

  const tab = async (address = url) => {
    const page = await context.newPage();
    await page.goto(address);
    return page;
  };
  const end = async () => {
    await Promise.allSettled(context.pages().map((page) => page.evaluate(() => 0))); // what it reported before has arrived
    await context.close();
    problems.check();
  };
  let ended;
  const done = () => (ended ??= end());
  try {
    return { page: await tab(), context, problems, sent, requests, tab, done };
  } catch (error) {
    await context.close();
    throw new Error(`${url} did not load; ${problems.left().join('; ')}`, { cause: error });
  }
}

// ---- server -----------------------------------------------------------------------------------------------------------

// A server (tests/api/server.mjs) whose model answers with these lines (docs/SCRIPT.md). `data` takes over the folder of one
// that was stopped with keep, or killed; `config` is the text of fermata.yaml.
export async function startScripted(lines, { env = {}, args = [], data, config } = {}) {
  const folder = data ?? await mkdtemp(join(tmpdir(), 'fermata-page-'));
  const script = join(folder, 'script.jsonl'), file = join(folder, 'fermata.yaml');
  try {
    await writeFile(script, lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
    if (config !== undefined) await writeFile(file, config);
    const server = await startServer({
      data: folder, args,
      env: {
        FERMATA_MODEL_PROVIDER: 'scripted', FERMATA_SCRIPT: script, ...(existsSync(file) && { FERMATA_CONFIG: file }), ...env,
      },
    });
    return process.env.FERMATA_PAGE ? await fromSources(server) : server;
  } catch (error) {
    if (!data) await rm(folder, { recursive: true, force: true });
    throw error;
  }
}

// With FERMATA_PAGE set the page is that of the sources (web/app/dev.mjs), so that working on it needs no build of the program.
async function fromSources(server) {
  const { serveSources } = await import('../../web/app/dev.mjs');
  const dev = await serveSources(server.url, { fixed: true });
  const ended = (how) => (...args) => {
    dev.close();
    return how(...args);
  };
  return { ...server, url: dev.url, direct: server.url, port: Number(new URL(dev.url).port), stop: ended(server.stop), kill9: ended(server.kill9) };
}

// ---- looking ----------------------------------------------------------------------------------------------------------

// What stands on the page as text, one node a line, open shadow roots included: equal for two pages that show the same
// (serialise.mjs says what is left out).
export async function serialise(page, selector = '[data-testid=log]') {
  return page.locator(selector).first().evaluate(serialiseInPage);
}

// Two frames later: what came in before is drawn, and what depends on sizes is decided.
export const drawn = (page) => page.evaluate(() => new Promise((done) => { requestAnimationFrame(() => requestAnimationFrame(done)); }));

// What a page shows once it does not change any more, and nothing on it is under way.
export async function settledText(page) {
  let before;
  return until('the page to be at rest', async () => {
    await page.getByTestId('turn').first().waitFor();
    await drawn(page);
    const now = await serialise(page);
    const rest = now === before && !/aria-busy="true"|data-highlight="wait"/.test(now);
    before = now;
    return rest && now;
  }, 60_000);
}

// What the window shows, as build/screens/NAME.png: endless animations stopped, the others at their end.
export async function screen(page, name) {
  await mkdir(SCREENS, { recursive: true });
  const path = join(SCREENS, `${name}.png`);
  await page.screenshot({ path, animations: 'disabled', caret: 'initial' });
  return path;
}

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

// The serious and critical barriers that axe-core finds, one line each; `include` is a selector.
export async function axe(page, { include } = {}) {
  const cdp = await page.context().newCDPSession(page);
  try {
    await cdp.send('Runtime.evaluate', { expression: AXE });
  } finally {
    await cdp.detach();
  }
  const violations = await page.evaluate(async (selector) => {
    const found = await window.axe.run(selector ?? document, { resultTypes: ['violations'] });
    return found.violations;
  }, include);
  return violations.filter(({ impact }) => impact === 'serious' || impact === 'critical').flatMap(({ id, impact, nodes }) =>
    nodes.map(({ target, failureSummary }) => `${impact} ${id}: ${target.flat().join(' ')}: ${failureSummary.replace(/\s+/g, ' ')}`));
}

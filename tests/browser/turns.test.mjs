// SPDX-License-Identifier: Apache-2.0
//
// What a turn shows of a run: its stages, its tools, its cards and their buttons, its end.

import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { after, before, test } from 'node:test';

import { newPage, openBrowser, screen, startScripted, until } from './kit.mjs';

const look = { name: 'calendar_read', args: { from: '2030-01-31T00:00:00+08:00', to: '2030-02-01T00:00:00+08:00' } };
const large = { name: 'large', args: {} };
const big = { rows: Array.from({ length: 400 }, (_, n) => `row ${n} 第${n}行`) };
const ACTIONS = [
  { label: 'Go', action: { type: 'navigation', path: '/inbox' } },
  { label: 'Open', action: { type: 'url', url: '/healthz' } },
  { label: 'Event', action: { type: 'event', event: 'picked', payload: { n: 1 } } },
  { label: 'Tool', action: { type: 'tool', toolId: 'calendar_read', params: look.args } },
  { label: 'Copy', action: { type: 'copy', content: 'copied words 复制' } },
  { label: 'Send', action: { type: 'payload', payload: { answer: 'yes' } } },
];
const NOWHERE = ['/orders/7', '/t/nobodys', '/t', '/inbox%zz'];
const PLACES = [['/inbox', { of: 'two words', n: 2 }], ['/settings?of=a', { tab: ['b'] }], ...NOWHERE.map((path) => [path, { n: 1 }])];
const cardOf = (actions) => ({ name: 'show_card', args: { version: '2.1', intent: 'data', status: 'info', title: 'Buttons', items: [{ key: 'a', value: 1 }], actions } });
const LINES = [
  { match: '^walk', turns: [{ text: 'First.', delay_ms: 1500, calls: [look] }, { text: 'Reported.', delay_ms: 1500, chunk: 2, gap_ms: 60 }] },
  { match: '^fail', turns: [{ text: 'x', fail: { at: 'start', status: 400 }, delay_ms: 100 }] },
  { match: '^late', turns: [{ calls: [look] }, { text: 'x', fail: { at: 'start', status: 400 } }] },
  { match: '^slow', turns: [{ calls: [{ name: 'slow', args: { n: 1 } }] }, { text: 'Done.' }] },
  { match: '^large', turns: [{ calls: [{ name: 'large', args: {} }] }, { text: 'Done.' }] },
  { match: '^broken', turns: [{ calls: [{ name: 'broken', args: {} }] }, { text: 'It failed.' }] },
  { match: '^many', turns: [{ calls: [large, large] }, { calls: [large, large, large] }, { text: 'Done.' }] },
  { match: '^card', turns: [{ text: 'See:', calls: [cardOf(ACTIONS)] }] },
  { match: '^places', turns: [{ text: 'See:', calls: [cardOf(PLACES.map(([path, params]) => ({ label: path, action: { type: 'navigation', path, params } })))] }] },
  { match: '^think', turns: [{ reasoning: 'I **think** so.', text: 'So it is.' }] },
  { match: '^plan', turns: [{ calls: [{ name: 'submit_plan', args: { steps: [{ content: 'Look', done_when: 'seen' }, { content: 'Tell' }] } }] }, { calls: [look] }, { text: 'Looked.' }, { text: 'Told.' }, { text: 'The report.' }] },
  { turns: [{ text: 'Hello.' }] },
];

let tools, held, server, chromium;

before(async () => {
  held = [];
  tools = createServer((req, res) => {
    if (req.url === '/slow') held.push(res);
    else if (req.url === '/large') res.setHeader('content-type', 'application/json').end(JSON.stringify({ content: 'A large one', result: big }));
    else res.writeHead(500).end('the shop is closed');
  });
  await new Promise((resolve) => tools.listen(0, '127.0.0.1', resolve));
  const { port } = tools.address();
  const tool = (name) => `  - http: {name: ${name}, url: "http://127.0.0.1:${port}/${name}", effect: read, description: A tool, schema: {type: object}}\n`;
  server = await startScripted(LINES, { config: `tools:\n${tool('slow')}${tool('large')}${tool('broken')}` });
  chromium = await openBrowser();
});
after(async () => {
  for (const res of held) res.end('{}');
  await chromium?.close();
  await server?.stop();
  tools.closeAllConnections();
  tools.close();
});

async function open(t, options = {}) {
  const page = await newPage(chromium.browser, { url: `${server.url}/`, ...options });
  t.after(page.done);
  return page;
}

async function say(page, words) {
  await page.getByTestId('composer').fill(words);
  await page.getByTestId('send').click();
}

const stage = (page, name) => page.getByTestId(`step-${name}`).last();
const stateOf = (locator) => locator.getAttribute('data-state');
const isIn = (locator, state) => until(`state ${state}`, async () => await stateOf(locator) === state);

test('three stages walk from pending to success, one at a time', async (t) => {
  const { page } = await open(t);
  await page.evaluate(() => {
    window.walk = [];
    const note = () => {
      const list = [...document.querySelectorAll('[data-testid^=step-]')];
      if (!list.length) return;
      const now = `${list.map((one) => one.dataset.state).join(' ')} | ${list.filter((one) => one.getAttribute('aria-current') === 'step').length}`;
      if (window.walk.at(-1) !== now) window.walk.push(now);
    };
    new MutationObserver(note).observe(document.body, { subtree: true, childList: true, attributes: true });
  });
  await say(page, 'walk');
  await isIn(stage(page, 'report'), 'success');
  const walk = await page.evaluate(() => window.walk);
  if (walk[0] === 'pending pending pending | 0') walk.shift(); // drawn between the start of the run and that of its first stage
  assert.deepEqual(walk[0], 'running pending pending | 1');
  assert.ok(walk.includes('success running pending | 1'), walk.join('\n'));
  assert.ok(walk.includes('success success success | 0'), walk.join('\n'));
  for (const step of walk) assert.match(step, step.includes('running') ? /\| 1$/ : /\| 0$/, step);
});

test('a plain answer skips the execution', async (t) => {
  const { page } = await open(t);
  await say(page, 'hello');
  await isIn(stage(page, 'report'), 'success');
  assert.equal(await stateOf(stage(page, 'execution')), 'skipped');
});

test('an error stands on the stage where it happened, with its text and a way to try again', async (t) => {
  const { page } = await open(t);
  await say(page, 'fail');
  await isIn(stage(page, 'intent'), 'error');
  assert.equal(await page.getByRole('alert').count(), 1);
  assert.match(await page.getByTestId('outcome').innerText(), /failed/);
  await say(page, 'late');
  await until('the second run to fail', async () => await page.getByTestId('step-execution').count() === 1 && await stateOf(stage(page, 'execution')) === 'error');
  await page.getByTestId('outcome').getByRole('button', { name: 'Try again' }).click();
  await page.locator('.replaced summary').waitFor();
  await isIn(stage(page, 'execution'), 'error');
});

test('a tool runs, then is closed with what came of it', async (t) => {
  const { page } = await open(t);
  await say(page, 'slow');
  const card = page.getByTestId('tool-card');
  await isIn(card, 'running');
  assert.equal(await page.locator('.spin').count() > 0, true);
  await until('the call', () => held.length);
  held.shift().setHeader('content-type', 'application/json').end('{"content": "Slow but sure", "result": 1}');
  await isIn(card, 'success');
  assert.equal(await card.locator('details').evaluate((one) => one.open), false);
  assert.match(await card.innerText(), /Slow but sure/);
  await until('nothing to turn', async () => await page.locator('.spin').count() === 0); // the run goes on for a moment
});

test('a stopped run leaves nothing turning', async (t) => {
  const { page } = await open(t);
  await say(page, 'slow');
  await isIn(page.getByTestId('tool-card'), 'running');
  await page.getByTestId('stop').click();
  await page.locator('[data-testid=outcome][data-state=cancelled]').waitFor();
  await until('nothing to turn', async () => await page.locator('.spin').count() === 0);
  assert.doesNotMatch(await stateOf(page.getByTestId('tool-card')), /running/);
});

test('a tool that failed is open and says why', async (t) => {
  const { page } = await open(t);
  await say(page, 'broken');
  const card = page.getByTestId('tool-card');
  await isIn(card, 'error');
  assert.equal(await card.locator('details').evaluate((one) => one.open), true);
  assert.match(await card.innerText(), /500|closed/);
});

test('a large result is read when asked for, and folded', async (t) => {
  const { page } = await open(t);
  await say(page, 'large');
  const card = page.getByTestId('tool-card');
  await isIn(card, 'success');
  await card.locator('summary').click();
  await card.getByRole('button', { name: 'Show the whole result' }).click();
  const result = card.getByRole('region', { name: 'Result' }).last();
  await until('the result', async () => (await result.innerText()).includes('row 12 '));
  assert.ok(!(await result.innerText()).includes('row 399'));
  await card.getByRole('button', { name: /Show all/ }).click();
  assert.ok((await result.innerText()).includes('row 399'));
});

test('many tools that went well are one line', async (t) => {
  const { page } = await open(t);
  await say(page, 'many');
  const fold = page.getByTestId('tool-fold');
  await fold.getByText('5 steps done').waitFor(); // from four on there is one
  await fold.locator('summary').first().click();
  await until('all of them', async () => await fold.getByTestId('tool-card').count() === 5);
});

test('thoughts are folded away, and drawn when they are opened', async (t) => {
  const { page } = await open(t);
  await say(page, 'think');
  await page.getByText('Thoughts').click();
  await page.locator('.thoughts strong', { hasText: 'think' }).waitFor();
});

test('a plan is a card with marks', async (t) => {
  const { page } = await open(t);
  await say(page, 'plan');
  const confirm = page.getByTestId('confirm-card');
  await confirm.waitFor();
  const { interactions: [one] } = await (await fetch(`${server.url}/api/v1/agent/interactions`)).json();
  await fetch(`${server.url}/api/v1/agent/interactions/${one.interactionId}/answer`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{"decision":"approve"}' });
  await page.getByTestId('log').getByText('The report.').waitFor();
  const plan = page.getByTestId('plan');
  assert.match(await plan.innerText(), /2 \/ 2/);
  assert.deepEqual(await plan.locator('li').evaluateAll((list) => list.map((item) => item.dataset.state)), ['done', 'done']);
  assert.match(await plan.locator('li').nth(1).innerText(), /Tell by model/);
  await screen(page, 'plan');
});

test('the six actions of a card', async (t) => {
  const { page, requests, context } = await open(t, { permissions: ['clipboard-read', 'clipboard-write'] });
  await say(page, 'card');
  const button = (label) => page.getByTestId('ui-schema').getByRole('button', { name: label, exact: true });
  await button('Copy').waitFor();
  await page.getByTestId('step-report').last().waitFor();
  await until('the end of the run', async () => await stateOf(stage(page, 'report')) === 'success');
  const pressed = () => requests.filter(({ path }) => path.endsWith('/actions'));

  await button('Copy').click();
  await until('the clipboard', async () => await page.evaluate(() => navigator.clipboard.readText()) === 'copied words 复制');
  assert.equal(pressed().length, 0);

  const opened = context.waitForEvent('page');
  await button('Open').click();
  const other = await opened;
  assert.match(other.url(), /\/healthz$/);
  assert.equal(await other.evaluate(() => window.opener), null);
  await other.close();

  await button('Event').click();
  await until('the press', () => pressed().length === 1);
  assert.equal(JSON.parse(pressed()[0].body).actionId, 'a2');
  await page.getByText('Sent').first().waitFor();
  await page.locator('article[data-kind=user]').filter({ hasText: '{"event":"picked","payload":{"n":1}}' }).waitFor(); // the agent has heard of it
  await page.locator('article[data-kind=agent]').nth(1).waitFor();

  let pass;
  const answered = new Promise((resolve) => { pass = resolve; });
  await page.route('**/actions', (route) => answered.then(() => route.continue())); // both presses come before its answer
  await button('Send').dblclick();
  pass();
  await page.locator('article[data-kind=agent]').nth(2).waitFor(); // it began a run
  assert.equal(pressed().length, 2);

  await button('Go').first().click();
  await page.getByTestId('inbox').waitFor();
});

const place = (page, label) => page.getByTestId('ui-schema').getByRole('button', { name: label, exact: true }).first();
const hashOf = (page) => new URL(page.url()).hash;

test('a card leads to a place of the page, with its parameters', async (t) => {
  const { page } = await open(t);
  await say(page, 'places');
  await place(page, '/inbox').click();
  await page.getByTestId('inbox').waitFor();
  assert.equal(hashOf(page), '#/inbox?of=two+words&n=2');
  await page.goBack();
  await place(page, '/settings?of=a').click();
  await page.getByTestId('settings').waitFor();
  assert.equal(hashOf(page), `#/settings?${new URLSearchParams({ of: 'a', tab: '["b"]' })}`);
});

for (const path of NOWHERE) {
  test(`a card that leads nowhere does not leave the chat, and says so: ${path}`, async (t) => {
    const { page, problems } = await open(t);
    problems.allow(/404/); // of the conversation that is looked for
    await say(page, 'places');
    await place(page, path).waitFor();
    const here = hashOf(page), said = page.getByText('There is no such place here');
    await place(page, path).click();
    await until('something comes of it', async () => hashOf(page) !== here || await said.count() > 0);
    assert.equal(hashOf(page), here);
    await said.first().waitFor();
    await page.locator('article[data-kind=user]').getByText('places', { exact: true }).waitFor();
  });
}

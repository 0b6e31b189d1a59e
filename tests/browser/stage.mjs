// SPDX-License-Identifier: Apache-2.0
//
// What the tests of the frame share: a model that asks, books and talks, a server for all of them, and ways to say things
// to the server behind the page's back. Everything that a test opens here ends with it.

import assert from 'node:assert/strict';
import { after, afterEach, before } from 'node:test';

import { newPage, openBrowser, startScripted } from './kit.mjs';

export const API = '/api/v1/agent';
const MEETING = { title: 'Review', start_time: '2030-01-02T15:00:00+08:00', end_time: '2030-01-02T16:00:00+08:00' };
const ask = (question) => ({ name: 'ask_user', args: { question, choices: ['Red', 'Blue'] } });
export const LINES = [
  { match: '^ask', turns: [{ calls: [ask('Which colour?')] }, { text: 'Painted.' }] },
  { match: '^book', turns: [{ calls: [{ name: 'calendar_write', args: MEETING }] }, { text: 'Booked.' }] },
  { match: '^slow', turns: [{ text: 'First sentence. And then many more words. '.repeat(5), chunk: 12, gap_ms: 40 }] },
  { match: '^long', turns: [{ text: 'Done at last.', delay_ms: 9000 }] },
  { match: '^count', turns: [{ text: 'Counted.', usage: { input_tokens: 1234, output_tokens: 56 } }] },
  { turns: [{ text: 'Hello there.' }] },
];
export const CONFIG = 'agents: {assistant: {approvers: {calendar_write: approver}, starters: ["ask me", "slow"]}}\n';

// For one file of tests: {server(), ending, own(), open()}. `ending` is what the test that runs has begun.
export function stage() {
  let browser, close, server;
  before(async () => {
    ({ browser, close } = await openBrowser());
    server = await startScripted(LINES);
  });
  after(async () => {
    await close?.();
    await server?.stop();
  });
  const ending = [];
  afterEach(async () => {
    for (const end of ending.splice(0).reverse()) await end();
  });

  return {
    server: () => server,
    ending,

    // A server for this test alone.
    async own(lines = LINES, options = {}) {
      const one = await startScripted(lines, options);
      ending.push(() => one.stop());
      return one;
    },

    // A page of the shared server, or of `at`; `whole`: in a browser of its own (kit.mjs).
    async open(hash = '', { at = server, whole, ...options } = {}) {
      const other = whole && await openBrowser({ whole });
      if (other) ending.push(other.close);
      const one = await newPage(other?.browser ?? browser, { url: `${at.url}/${hash}`, ...options });
      ending.push(one.done);
      await one.page.locator('.head, .sign').first().waitFor();
      return one;
    },
  };
}

export async function call(at, method, path, body, headers = {}) {
  const answer = await fetch(at.url + path, { method, headers: { 'content-type': 'application/json', ...headers }, body: body && JSON.stringify(body) });
  assert.ok(answer.ok, `${method} ${path}: ${answer.status}`);
  return answer.status === 204 ? undefined : answer.json();
}
export const begin = (at, threadId, text, headers) => call(at, 'POST', `${API}/runs`, { threadId, messages: [{ role: 'user', content: text }] }, headers);
export const inboxOf = async (at, headers) => (await call(at, 'GET', `${API}/interactions`, undefined, headers)).interactions;

export const composer = (page) => page.getByTestId('composer');
export async function say(page, text) {
  await composer(page).fill(text);
  await page.getByTestId('send').click();
}
export const log = (page) => page.getByTestId('log');
export const row = (page, title) => page.getByTestId('thread').filter({ hasText: title });

// SPDX-License-Identifier: Apache-2.0
//
// The page behind nginx, under a path: the configuration that docs/WEB.md shows is the one that runs here. First what
// passes through it, piece by piece; then a person with a browser.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';

import { WebSocket } from 'ws';

import { run } from '../api/home.mjs';
import { newPage, openBrowser, ROOT, screen, settledText, startScripted, until, within } from './kit.mjs';
import { freePort, startNginx } from './nginx.mjs';

const STEP_MS_MAX = 30_000;
const WORDS = 'one two three four five six seven eight nine ten';
const LINES = [
  { match: '^count', turns: [{ text: WORDS, chunk: 3, gap_ms: 200 }] },
  { match: '^ask', turns: [{ text: 'One thing.', calls: [{ name: 'ask_user', args: { question: 'How long?', choices: ['30 minutes', '1 hour'] } }] }, { text: 'That long, then.' }] },
  { match: '^read', turns: [{ text: 'Read it.' }] },
  { turns: [{ text: 'Hello. 你好。' }] },
];

// A server that knows its public address, and nginx on it. Ends with the test; `key` is ann's.
async function startBehind(t, options) {
  const port = await freePort();
  const server = await startScripted(LINES, {
    env: { FERMATA_PUBLIC_URL: `http://127.0.0.1:${port}/fermata`, FERMATA_TRUSTED_PROXIES: '127.0.0.1' },
  });
  let nginx;
  try {
    nginx = await startNginx(t, port, server, options);
  } catch (error) {
    await server.stop();
    throw error;
  }
  t.after(() => server.stop());
  const addKey = async () => {
    const { code, stdout, stderr } = await run(['key', 'add', '--user', 'ann'], { env: { FERMATA_DATA: server.data } });
    assert.equal(code, 0, stderr);
    return stdout.trim();
  };
  return { server, nginx, url: nginx.url, addKey };
}

const signIn = (url, key) => fetch(`${url}api/v1/session`, {
  method: 'POST', headers: { 'content-type': 'application/json', origin: new URL(url).origin }, body: JSON.stringify({ key }),
});

for (const keepPath of [false, true]) {
  describe(`nginx that ${keepPath ? 'keeps' : 'takes away'} the path`, () => {
    const ends = [];
    let behind, key;
    before(async () => {
      behind = await startBehind({ after: (fn) => ends.push(fn) }, { keepPath });
    });
    after(async () => {
      for (const end of ends) await end();
    });

    test('nobody comes through it before there is a key', async () => {
      const answer = await fetch(behind.url);
      assert.equal(answer.status, 403);
      assert.match((await answer.json()).detail, /fermata key add/);
      key = await behind.addKey();
    });

    test('the page and its files come as they are, and from its own path', async () => {
      const noSlash = await fetch(behind.url.slice(0, -1), { redirect: 'manual' });
      assert.ok([301, 308].includes(noSlash.status));
      assert.equal(new URL(noSlash.headers.get('location'), behind.url).href, behind.url);
      const lines = (await readFile(join(ROOT, 'build/page/manifest.txt'), 'utf8')).trim().split('\n');
      for (const [path, type, , name] of lines.map((line) => line.split('\t'))) {
        const answer = await fetch(behind.url + path.slice(1), { headers: { 'accept-encoding': 'br' } });
        assert.equal(answer.status, 200, path);
        assert.equal(answer.headers.get('content-type'), type);
        assert.match(answer.headers.get('etag'), /^"/);
        assert.equal(await answer.text(), await readFile(join(ROOT, 'build/page', name), 'utf8'));
      }
    });

    test('a session, a WebSocket and an upload with its cookie', async () => {
      assert.equal((await fetch(`${behind.url}api/v1/session`)).status, 401);
      const entered = await signIn(behind.url, key);
      assert.equal(entered.status, 200);
      const [cookie] = entered.headers.getSetCookie()[0].split(';');
      const headers = { cookie, origin: new URL(behind.url).origin };
      assert.equal((await (await fetch(`${behind.url}api/v1/session`, { headers })).json()).user, 'ann');

      const socket = new WebSocket(`${behind.url.replace('http', 'ws')}api/v1/agent/ws`, { headers });
      await within(STEP_MS_MAX, 'open', once(socket, 'open'));
      socket.send(JSON.stringify({ type: 'ping', id: 1 }));
      const [pong] = await within(STEP_MS_MAX, 'pong', once(socket, 'message'));
      assert.deepEqual(JSON.parse(pong), { type: 'pong', id: 1 });
      socket.close();
      await within(STEP_MS_MAX, 'close', once(socket, 'close'));

      const form = new FormData();
      form.append('threadId', 'behind');
      form.append('file', new Blob(['hello 你好'], { type: 'text/plain' }), 'note.txt');
      const sent = await fetch(`${behind.url}api/v1/agent/attachments`, { method: 'POST', headers, body: form });
      assert.equal(sent.status, 201, await sent.clone().text());
      const { attachment } = await sent.json();
      assert.match(attachment.url, /^\/fermata\/api\//);
      assert.equal(await (await fetch(new URL(attachment.url, behind.url))).text(), 'hello 你好');
    });
  });
}

test('a person behind it: signs in, reads along, answers, sends a file, and finds all of it again', async (t) => {
  const { browser, close } = await openBrowser();
  t.after(close);
  const behind = await startBehind(t);
  const key = await behind.addKey();
  const view = await newPage(browser, { url: behind.url });
  t.after(view.done);
  const { page, problems } = view;
  problems.allow(/console error: .*401.*\/api\/v1\/session/); // how the page learns that nobody is signed in
  const log = page.getByTestId('log'), text = () => log.innerText();
  const say = async (words) => {
    await page.getByTestId('composer').fill(words);
    await page.getByTestId('send').click();
  };

  await page.locator('input[type=password]').fill(key);
  await page.keyboard.press('Enter');
  await page.getByTestId('composer').waitFor();
  const [cookie] = await view.context.cookies();
  assert.deepEqual([cookie.name, cookie.path, cookie.httpOnly, cookie.sameSite], ['fermata_session', '/', true, 'Strict']);
  await screen(page, 'proxy-signed-in');

  await say('count');
  await until('the beginning, before the end', async () => {
    const shown = await text();
    return shown.includes('one two') && !shown.includes('nine');
  }, STEP_MS_MAX);
  await until('all of it', async () => (await text()).includes(WORDS), STEP_MS_MAX);

  await say('ask');
  await page.getByTestId('ask-card').getByRole('button', { name: '1 hour' }).click();
  await until('what comes after the answer', async () => (await text()).includes('That long, then.'), STEP_MS_MAX);

  await page.locator('input[type=file]').first().setInputFiles(
    { name: 'note.txt', mimeType: 'text/plain', buffer: Buffer.from('hello 你好') });
  await until('the upload', () => view.requests.some(({ method, path }) => method === 'POST' && path.endsWith('/attachments')));
  await page.getByText('note.txt').first().waitFor();
  await say('read this');
  await until('the answer to the file', async () => (await text()).includes('Read it.'), STEP_MS_MAX);
  assert.match(await text(), /note\.txt/);

  // Everything went over one WebSocket under the path; nothing fell back to another way.
  const streams = view.requests.filter(({ path }) => path.includes('/events'));
  assert.deepEqual(streams, []);
  assert.ok(view.sent.length > 0);
  for (const { path } of view.requests) assert.ok(path.startsWith('/fermata/'), path);

  const live = await settledText(page);
  await screen(page, 'proxy-talk');
  await page.reload();
  assert.equal(await settledText(page), live);
  assert.equal(behind.nginx.said(), '');
  await view.done();
});

// SPDX-License-Identifier: Apache-2.0
//
// The page's files as the binary serves them: every line of build/page/manifest.txt, in every encoding, byte for byte; what
// may be cached; the policy to the letter; and that nothing of it names another origin.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { request } from 'node:http';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';

import { assertProblem, bearer, call, Home, run } from '../api/home.mjs';
import { newPage, openBrowser, ROOT, startScripted, within } from './kit.mjs';

const ANSWER_MS_MAX = 20_000;
const POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self'; "
  + "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";
const FOLDER = join(ROOT, 'build/page');
const DECODE = { br: brotliDecompressSync, gzip: gunzipSync, undefined: (bytes) => bytes };
// Addresses that are words: the name of SVG, what the Markdown parser says when it fails, an example for operators.
const WORDS = ['http://www.w3.org/', 'https://github.com/markedjs/marked', 'http://127.0.0.1:11434/'];
const FOREVER = 'public, max-age=31536000, immutable';

let server, files; // files: {path, type, immutable, bytes}
before(async () => {
  const lines = (await readFile(join(FOLDER, 'manifest.txt'), 'utf8')).trim().split('\n').map((line) => line.split('\t'));
  files = await Promise.all(lines.map(async ([path, type, kept, name]) => (
    { path, type, immutable: kept === 'immutable', bytes: await readFile(join(FOLDER, name)) })));
  server = await startScripted([{ turns: [{ text: 'Hello. 你好。' }] }]);
});
after(() => server?.stop());

// {status, headers, bytes}, as they came over the wire.
function get(path, headers = {}, method = 'GET') {
  const answer = new Promise((done, failed) => {
    const sent = request({ host: server.host, port: server.port, path, method, headers, agent: false }, (response) => {
      const pieces = [];
      response.on('data', (piece) => pieces.push(piece)).on('error', failed).on('end', () => {
        done({ status: response.statusCode, headers: response.headers, bytes: Buffer.concat(pieces) });
      });
    });
    sent.on('error', failed).end();
  });
  return within(ANSWER_MS_MAX, `${method} ${path}`, answer);
}

describe('a file of the page', () => {
  test('is the same in every encoding, and each has its own tag', async () => {
    for (const { path, type, bytes } of files) {
      const tags = new Set();
      for (const accept of [undefined, 'gzip', 'br']) {
        const answer = await get(path, accept && { 'accept-encoding': accept });
        const used = answer.headers['content-encoding'];
        assert.equal(answer.status, 200);
        assert.ok(DECODE[used](answer.bytes).equals(bytes), `${path} as ${used}: not the file of build/page; an old build?`);
        assert.equal(answer.headers['content-type'], type);
        assert.equal(answer.headers['content-length'], String(answer.bytes.length));
        assert.equal(answer.headers.vary, 'Accept-Encoding');
        assert.match(answer.headers.etag, /^"[0-9a-f]{16}"$/);
        if (used !== undefined) assert.equal(used, accept);
        assert.ok(used === undefined || answer.bytes.length < bytes.length, `${path} as ${used} is not smaller`);
        if (accept === used) tags.add(answer.headers.etag);
        // What a page is read with must be small on the way; small files may be as they are.
        if (accept && bytes.length > 2000) assert.equal(used, accept, path);
      }
      assert.equal(tags.size, bytes.length > 2000 ? 3 : tags.size, `${path}: a tag for each encoding`);
    }
  });

  test('is not sent again to who has it: in the same encoding only', async () => {
    for (const { path } of files) {
      const tagOf = async (accept) => (await get(path, { 'accept-encoding': accept })).headers.etag;
      const tags = { identity: await tagOf('identity'), gzip: await tagOf('gzip'), br: await tagOf('br') };
      for (const [accept, etag] of Object.entries(tags)) {
        for (const [held, known] of Object.entries(tags)) {
          const answer = await get(path, { 'accept-encoding': accept, 'if-none-match': `"x", ${known}` });
          assert.equal(answer.status, known === etag ? 304 : 200, `${path}: holds ${held}, wants ${accept}`);
          assert.equal(answer.headers.etag, etag);
          assert.equal(answer.headers.vary, 'Accept-Encoding');
          if (answer.status === 304) {
            assert.equal(answer.bytes.length, 0);
            assert.equal(answer.headers['content-encoding'], undefined);
          }
        }
      }
    }
  });

  test('answers HEAD like GET, in every encoding', async () => {
    const compared = ({ status, headers: { date, 'x-request-id': id, ...headers } }) => ({ status, headers });
    for (const { path } of files) {
      for (const accept of ['identity', 'gzip', 'br', '*;q=0', 'gzip;q=0.2, br;q=0.1']) {
        const head = await get(path, { 'accept-encoding': accept }, 'HEAD');
        assert.deepEqual(compared(head), compared(await get(path, { 'accept-encoding': accept })));
        assert.equal(head.bytes.length, 0);
      }
    }
  });

  test('is kept for ever if its name has its hash, and asked for again otherwise', async () => {
    for (const { path, immutable } of files) {
      const { headers } = await get(path);
      assert.equal(headers['cache-control'], immutable ? FOREVER : 'no-cache', path);
      if (immutable) assert.match(path, /-[0-9A-Za-z]{8,16}\.\w+$/);
    }
    for (const { path, immutable } of files) if (/\.(js|css)$/.test(path)) assert.ok(immutable, path);
    const kept = files.filter(({ immutable }) => immutable).map(({ path }) => path);
    assert.ok(kept.some((path) => path.endsWith('.js')) && kept.some((path) => path.endsWith('.css')), String(kept));
    for (const path of ['/', '/icon.svg']) assert.ok(files.some((file) => file.path === path && !file.immutable), path);
  });

  test('has the policy, to the letter', async () => {
    for (const { path } of files) {
      const { headers } = await get(path);
      assert.equal(headers['content-security-policy'], POLICY);
      assert.equal(headers['x-content-type-options'], 'nosniff');
      assert.equal(headers['referrer-policy'], 'no-referrer');
    }
  });

  test('names no other origin, and every file it names is there', async () => {
    const paths = new Set(files.map(({ path }) => path));
    for (const { path, type, bytes } of files) {
      if (type.startsWith('text/plain')) continue; // licences are for people
      const text = bytes.toString('utf8');
      const named = [...text.matchAll(/(?:https?:|wss?:)?\/\/[a-z0-9-]+(?:\.[a-z0-9-]+)+[^\s"'`<>)]*/gi)].map(([address]) => address);
      assert.deepEqual(named.filter((address) => !WORDS.some((word) => address.startsWith(word))), [], path);
      assert.doesNotMatch(text, /url\(\s*["']?(?:[a-z]+:|\/\/)/i, path);
      for (const [, name] of text.matchAll(/["'(/]([A-Za-z-]+-[0-9A-Za-z]{8,16}\.(?:js|css|svg))\b/g)) {
        assert.ok(paths.has(`/${name}`), `${path} names ${name}`);
      }
    }
    const html = files.find(({ path }) => path === '/').bytes.toString('utf8');
    for (const [, target] of html.matchAll(/<(?:link|script|img)[^>]*\b(?:src|href)="([^"]*)"/g)) {
      assert.ok(paths.has(`/${target}`), `the page names ${target}; names are relative, so that a path prefix works`);
    }
  });

  test('is no larger with gzip, and with brotli smaller again', async (t) => {
    for (const { path, bytes } of files) {
      const { bytes: gzip } = await get(path, { 'accept-encoding': 'gzip' });
      const { bytes: br } = await get(path, { 'accept-encoding': 'br' });
      t.diagnostic(`${path}: ${bytes.length} bytes, ${gzip.length} with gzip, ${br.length} with brotli`);
      assert.ok(br.length <= gzip.length && gzip.length <= bytes.length, path);
    }
  });

  test('is found by its exact name only', async () => {
    for (const { path } of files.filter(({ path }) => path !== '/')) {
      for (const other of [`${path}.gz`, `${path}.br`, `${path}/`, `/x${path}`, `/.${path}`, path.toUpperCase(), path.slice(0, -1)]) {
        assertProblem(await call(server, 'GET', other), 404, 'not_found');
      }
    }
    for (const path of ['/index.html', '/manifest.txt', '/stamp', '/app.js']) {
      assertProblem(await call(server, 'GET', path), 404, 'not_found');
    }
  });
});

test('the page needs no key, also when others do', async (t) => {
  const home = await Home.make(t);
  const closed = await home.start();
  const key = await home.addKey('ann');
  assert.equal((await call(closed, 'GET', '/api/v1/session')).status, 401);
  assert.equal((await call(closed, 'GET', '/api/v1/session', { headers: bearer(key) })).status, 200);
  for (const { path, bytes } of files) {
    const answer = await call(closed, 'GET', path);
    assert.equal(answer.status, 200);
    assert.equal(answer.text, bytes.toString('utf8'));
  }
});

test('other sites may show the page in a frame if the operator names them', async (t) => {
  const FERMATA_WEB_FRAME_ANCESTORS = 'https://a.example,http://b.example:8080';
  const framed = await startScripted([{ turns: [{}] }], { env: { FERMATA_WEB_FRAME_ANCESTORS } });
  t.after(() => framed.stop());
  const { headers } = await call(framed, 'GET', '/');
  assert.equal(headers['content-security-policy'],
    POLICY.replace("frame-ancestors 'none'", 'frame-ancestors https://a.example http://b.example:8080'));
  for (const wrong of ["'self'", 'https://a.example/x', "https://a.example; script-src *", '*']) {
    const { code, stderr } = await run(['serve', '--web-frame-ancestors', wrong], { env: { FERMATA_DATA: framed.data } });
    assert.notEqual(code, 0);
    assert.match(stderr, /web\.frame_ancestors|web-frame-ancestors/, wrong);
  }
});

test('it loads in a browser, from its own server alone, and compressed', async (t) => {
  const { browser, close } = await openBrowser();
  t.after(close);
  const view = await newPage(browser, { url: `${server.url}/` });
  t.after(view.done);
  await view.page.reload();
  const loaded = await view.page.evaluate(() => performance.getEntriesByType('resource').map(
    ({ name, encodedBodySize, decodedBodySize }) => ({ path: new URL(name).pathname, encodedBodySize, decodedBodySize })));
  const scripts = loaded.filter(({ path }) => path.endsWith('.js'));
  assert.ok(scripts.length > 0);
  for (const { path, encodedBodySize, decodedBodySize } of scripts) assert.ok(encodedBodySize < decodedBodySize, path);
  const known = new Set(files.map(({ path }) => path));
  for (const { path } of loaded) assert.ok(known.has(path) || path.startsWith('/api/'), path);
  await view.done();
});

// SPDX-License-Identifier: Apache-2.0
//
// Files that people send: up as forms, down by address. Bytes are sent and read exactly.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createHash, createHmac, hkdfSync, randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { request } from 'node:http';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';

import { assertProblem, bearer, call, Home } from './home.mjs';
import { RawConnection } from './raw.mjs';
import { buildFolder, within } from './server.mjs';
import { AGENT, TIME, waitFor } from './talk.mjs';

const PATH = `${AGENT}/attachments`;
const BOUNDARY = 'fermata-test-boundary';
const ANSWER_MS_MAX = 30_000;
const KIB = 1024, MIB = 1024 * KIB;
const POLICY = "sandbox; default-src 'none'";

const sha256 = (bytes) => createHash('sha256').update(bytes).digest('hex');

// A form as bytes. A part is {name, filename?, head?, content}; head replaces the whole head.
function form(parts, { boundary = BOUNDARY, close = true } = {}) {
  const pieces = [];
  for (const { name, filename, head, content = '' } of parts) {
    const disposition = `form-data; name="${name}"${filename === undefined ? '' : `; filename="${filename}"`}`;
    pieces.push(Buffer.from(`--${boundary}\r\n${head ?? `Content-Disposition: ${disposition}`}\r\n\r\n`));
    pieces.push(Buffer.from(content), Buffer.from('\r\n'));
  }
  if (close) pieces.push(Buffer.from(`--${boundary}--\r\n`));
  return Buffer.concat(pieces);
}

const fileForm = (content, { threadId = 't1', filename = 'a.bin' } = {}) =>
  form([{ name: 'threadId', content: threadId }, { name: 'file', filename, content }]);

const formType = { 'content-type': `multipart/form-data; boundary=${BOUNDARY}` };

// One request: {status, headers, bytes, text, json()}. `body` is bytes, or an iterable of pieces, sent chunked.
function send(server, method, path, { headers = {}, body } = {}) {
  const answer = new Promise((done, failed) => {
    const chunked = body && !Buffer.isBuffer(body);
    const options = { host: server.host, port: server.port, method, path, agent: false,
      headers: { ...headers, ...(body && !chunked ? { 'content-length': body.length } : {}) } };
    const sent = request(options, (response) => {
      const pieces = [];
      response.on('data', (piece) => pieces.push(piece)).on('error', failed).on('end', () => {
        const bytes = Buffer.concat(pieces);
        done({ status: response.statusCode, headers: response.headers, bytes, text: bytes.toString(),
          json: () => JSON.parse(bytes.toString()), rawHeaders: response.rawHeaders });
      });
    });
    sent.on('error', failed);
    if (chunked) for (const piece of body) sent.write(piece);
    sent.end(chunked ? undefined : body);
  });
  return within(ANSWER_MS_MAX, `${method} ${path}`, answer);
}

const upload = (server, body, headers = {}) => send(server, 'POST', PATH, { headers: { ...formType, ...headers }, body });

async function uploaded(server, content, options = {}, headers = {}) {
  const answer = await upload(server, fileForm(content, options), headers);
  assert.equal(answer.status, 201, answer.text);
  return answer.json().attachment;
}

const download = (server, path, headers = {}) => send(server, 'GET', path, { headers });
const plain = (id) => `${PATH}/${id}`;

// Files in a folder of the data folder, at any depth; those in the making too.
async function filesIn(home, folder) {
  const at = join(home.data, folder);
  if (!existsSync(at)) return [];
  const entries = await readdir(at, { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).map((entry) => entry.name);
}

const rowCount = (home) => Number(execFileSync('sqlite3', [join(home.data, 'fermata.db'), 'SELECT count(*) FROM attachments']));
const objects = (home) => filesIn(home, 'blobs');

// Nothing is left of uploads that came to nothing.
async function assertNothingLeft(home, objectCount) {
  await waitFor('the spool to be empty', async () => (await filesIn(home, 'spool')).length === 0);
  await waitFor('no object too many', async () => (await objects(home)).length === objectCount);
}

function png(width, height, more = Buffer.alloc(0)) {
  const head = Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex');
  const size = Buffer.alloc(13);
  size.writeUInt32BE(width, 0);
  size.writeUInt32BE(height, 4);
  size.set([8, 6, 0, 0, 0], 8);
  return Buffer.concat([head, size, Buffer.alloc(4), more]);
}

function startHome(env = {}) {
  let cleanUp;
  const context = {};
  before(async () => {
    context.home = await Home.make({ after: (fn) => { cleanUp = fn; } }, env);
    context.server = await context.home.start();
  });
  after(() => cleanUp?.());
  return context;
}

describe('up and down', () => {
  const context = startHome();

  test('a picture: its answer, its bytes, its headers', async () => {
    const content = png(640, 480, randomBytes(1000));
    const { server } = context;
    const answer = await upload(server, fileForm(content, { filename: 'cat.png' }));
    assert.equal(answer.status, 201, answer.text);
    assert.equal(answer.headers['content-type'], 'application/json');
    assert.deepEqual(Object.keys(answer.json()), ['attachment']);
    const { attachment } = answer.json();
    assert.deepEqual(Object.keys(attachment),
      ['id', 'url', 'mimeType', 'filename', 'size', 'sha256', 'expiresAt', 'width', 'height']);
    assert.match(attachment.id, /^att_[0-9a-z]{26}$/);
    assert.equal(attachment.mimeType, 'image/png');
    assert.equal(attachment.filename, 'cat.png');
    assert.equal(attachment.size, content.length);
    assert.equal(attachment.sha256, sha256(content));
    assert.deepEqual([attachment.width, attachment.height], [640, 480]);
    assert.match(attachment.expiresAt, TIME);
    const left = Date.parse(attachment.expiresAt) - Date.now();
    assert.ok(left > 49 * 60_000 && left <= 60 * 60_000, `${left} ms`);
    assert.match(attachment.url, new RegExp(`^${PATH}/${attachment.id}\\?exp=\\d+&sig=[0-9a-f]{8}\\.[A-Za-z0-9_-]{43}$`));

    for (const path of [attachment.url, plain(attachment.id)]) {
      const got = await download(server, path);
      assert.equal(got.status, 200);
      assert.deepEqual(got.bytes, content);
      assert.equal(got.headers['content-type'], 'image/png');
      assert.equal(got.headers['content-disposition'], 'inline; filename="cat.png"');
      assert.equal(got.headers['content-security-policy'], POLICY);
      assert.equal(got.headers['x-content-type-options'], 'nosniff');
      assert.equal(got.headers.etag, `"${sha256(content)}"`);
      assert.equal(got.headers['accept-ranges'], 'bytes');
      assert.equal(got.headers['content-length'], String(content.length));
      assert.match(got.headers['cache-control'], path === attachment.url ? /^private, max-age=\d+, immutable$/ : /^private, no-cache$/);
      const names = got.rawHeaders.filter((_, i) => i % 2 === 0).map((name) => name.toLowerCase());
      assert.deepEqual(names, [...new Set(names)], 'no header twice');
      const head = await send(server, 'HEAD', path);
      assert.deepEqual([head.status, head.bytes.length], [200, 0]);
      for (const name of ['content-length', 'content-type', 'etag', 'content-disposition', 'content-security-policy']) {
        assert.equal(head.headers[name], got.headers[name], name);
      }
    }
    await assertNothingLeft(context.home, 1);
  });

  test('every size around the pieces it is moved in', async () => {
    for (const size of [1, 2, 1023, 64 * KIB - 1, 64 * KIB, 64 * KIB + 1, 256 * KIB, 256 * KIB + 1, 3 * MIB + 7]) {
      const content = randomBytes(size);
      const attachment = await uploaded(context.server, content);
      assert.deepEqual([attachment.size, attachment.sha256], [size, sha256(content)]);
      assert.deepEqual((await download(context.server, attachment.url)).bytes, content, `${size} bytes`);
    }
  });

  test('the same address for some minutes, and another file for the same bytes', async () => {
    const content = randomBytes(100);
    const [one, two] = [await uploaded(context.server, content), await uploaded(context.server, content)];
    assert.notEqual(one.id, two.id);
    assert.equal(one.sha256, two.sha256);
  });

  test('parts in either order, chunked, and cut anywhere between packets', async () => {
    const { server } = context;
    const content = Buffer.from('\r\n--fermata-test-boundar\r\n--\r\r\n\0x');
    const parts = [{ name: 'threadId', content: 't1' }, { name: 'file', filename: 'a', content }];
    for (const body of [form(parts), form([...parts].reverse())]) {
      const whole = await upload(server, body);
      assert.equal(whole.status, 201, whole.text);
      assert.equal(whole.json().attachment.sha256, sha256(content));
      const chunked = await upload(server, [...body].map((byte) => Buffer.from([byte])));
      assert.equal(chunked.status, 201, chunked.text);
      assert.equal(chunked.json().attachment.sha256, sha256(content));
      const raw = await RawConnection.open(server);
      await raw.write(Buffer.from(`POST ${PATH} HTTP/1.1\r\nHost: ${server.host}:${server.port}\r\n` +
        `Content-Type: ${formType['content-type']}\r\nContent-Length: ${body.length}\r\n\r\n`));
      await raw.writeByteByByte(body);
      const slow = await raw.response();
      assert.equal(slow.status, 201, slow.body);
      assert.equal(JSON.parse(slow.body).attachment.sha256, sha256(content));
      await raw.write(Buffer.from(`GET /healthz HTTP/1.1\r\nHost: ${server.host}:${server.port}\r\n\r\n`));
      assert.equal((await raw.response()).status, 200, 'the connection goes on');
      raw.close();
    }
  });

  test('as fetch and FormData send it', async () => {
    const data = new FormData();
    data.set('threadId', 't1');
    data.set('file', new Blob(['hello']), '会议 "1".txt');
    const answer = await fetch(`${context.server.url}${PATH}`, { method: 'POST', body: data });
    const { attachment } = await answer.json();
    assert.equal(answer.status, 201);
    assert.equal(attachment.mimeType, 'text/plain');
    assert.match(attachment.filename, /^会议 .*\.txt$/);
    const got = await fetch(`${context.server.url}${attachment.url}`);
    assert.equal(await got.text(), 'hello');
  });
});

describe('what is refused', () => {
  const context = startHome();
  const thread = { name: 'threadId', content: 't1' }, file = { name: 'file', filename: 'a', content: 'x' };
  const head = (rest) => ({ head: `Content-Disposition: form-data; ${rest}`, content: 'x' });

  test('forms: each with its code and field, and nothing stays', async () => {
    const { server, home } = context;
    const rows = [
      // fields
      [form([file]), 400, 'invalid_field', 'threadId'],
      [form([thread]), 400, 'invalid_field', 'file'],
      [form([]), 400, 'invalid_field', 'threadId'],
      [form([thread, file, file]), 400, 'invalid_field', 'file'],
      [form([thread, thread, file]), 400, 'invalid_field', 'threadId'],
      [form([thread, file, { name: 'other', content: 'x' }]), 400, 'invalid_field', 'other'],
      [form([{ name: 'File', filename: 'a', content: 'x' }, thread]), 400, 'invalid_field', 'File'],
      [form([thread, { ...file, content: '' }]), 400, 'invalid_field', 'file'],
      ...['', ' ', 't 1', 't/1', '../t', 'ü', 't\0', 'x'.repeat(129)].map(
        (content) => [form([file, { name: 'threadId', content }]), 400, 'invalid_field', 'threadId']),
      // framing
      [Buffer.alloc(0), 400, 'bad_request'],
      [Buffer.from('x'), 400, 'bad_request'],
      [form([thread, file], { close: false }), 400, 'bad_request'],
      [form([thread, file], { boundary: 'other' }), 400, 'bad_request'],
      [Buffer.concat([form([thread, file]), Buffer.from('more')]), 400, 'bad_request'],
      [form([thread, head(`name=file; filename=${'x'.repeat(9 * KIB)}`)]), 400, 'bad_request'],
      [form([thread, head('name=file\r\nContent-Type: multipart/mixed; boundary=x')]), 400, 'bad_request'],
      [form([thread, head('name=file\r\n folded: x')]), 400, 'bad_request'],
      [form([thread, head('filename=x')]), 400, 'bad_request'],
      [form([thread, { head: 'Content-Type: text/plain', content: 'x' }]), 400, 'bad_request'],
      [form([thread, head("name=file; filename*=latin-1''x")]), 400, 'bad_request'],
      [form([file, ...Array(16).fill(thread)]), 400, 'invalid_field', 'threadId'],
    ];
    for (const [body, status, code, field] of rows) {
      for (const sent of [body, [body]]) {
        if (!body.length && sent !== body) continue;
        const answer = await upload(server, sent);
        assert.equal(answer.status, status, `${body.toString('latin1', 0, 300)}: ${answer.text}`);
        assertProblem(answer, status, code, field);
      }
    }
    for (const content of ['t', 'A-Z.a_z:0', 'x'.repeat(128)]) {
      assert.equal((await upload(server, form([file, { name: 'threadId', content }]))).status, 201, content);
    }
    await assertNothingLeft(home, 3);
  });

  test('content types', async () => {
    const { server } = context;
    const body = form([thread, file]);
    for (const type of [undefined, 'application/json', 'text/plain', 'application/x-www-form-urlencoded',
      'multipart/mixed; boundary=x', 'multipart/form-dataset; boundary=x']) {
      const headers = type === undefined ? {} : { 'content-type': type };
      assertProblem(await send(server, 'POST', PATH, { headers, body }), 415, 'unsupported_type');
    }
    for (const type of ['multipart/form-data', 'multipart/form-data; boundary=', `multipart/form-data; boundary=${'x'.repeat(71)}`,
      'multipart/form-data; boundary="a', 'multipart/form-data; boundary=a; boundary=b']) {
      assertProblem(await send(server, 'POST', PATH, { headers: { 'content-type': type }, body }), 400, 'bad_request');
    }
    assertProblem(await upload(server, body, { 'content-encoding': 'gzip' }), 415, 'unsupported_type');
    assertProblem(await upload(server, body, { origin: 'https://evil.example' }), 403, 'forbidden');
    assertProblem(await upload(server, body, { 'idempotency-key': 'x'.repeat(256) }), 400, 'invalid_field', 'Idempotency-Key');
    const longest = 'y'.repeat(70);
    const answer = await send(server, 'POST', PATH, {
      headers: { 'content-type': `multipart/form-data; boundary=${longest}` }, body: form([thread, file], { boundary: longest }) });
    assert.equal(answer.status, 201, answer.text);
  });

  test('a picture that nobody could show', async () => {
    const { server, home } = context;
    const before = (await objects(home)).length;
    assertProblem(await upload(server, fileForm(png(60000, 60000))), 413, 'too_large', 'file');
    const { width, height } = await uploaded(server, png(16384, 16384));
    assert.deepEqual([width, height], [16384, 16384]);
    await assertNothingLeft(home, before + 1);
  });
});

describe('what is cut off', () => {
  test('leaves nothing, wherever it is cut', async (t) => {
    const home = await Home.make(t);
    const server = await home.start();
    const content = randomBytes(200 * KIB);
    const body = fileForm(content);
    const headOf = (more) => Buffer.from(`POST ${PATH} HTTP/1.1\r\nHost: ${server.host}:${server.port}\r\n` +
      `Content-Type: ${formType['content-type']}\r\n${more}\r\n\r\n`);
    const head = body.indexOf(content);
    const cuts = [0, 1, 20, head - 3, head, head + 1, head + 64 * KIB, head + 100 * KIB, head + content.length,
      body.length - 10, body.length - 5];
    for (const cut of cuts) {
      for (const chunked of [false, true]) {
        const raw = await RawConnection.open(server);
        await raw.write(headOf(chunked ? 'Transfer-Encoding: chunked' : `Content-Length: ${body.length}`));
        const piece = body.subarray(0, cut);
        if (chunked && cut) await raw.write(Buffer.from(`${(cut + 1).toString(16)}\r\n`));
        await raw.write(piece);
        raw.close();
      }
    }
    await assertNothingLeft(home, 0);
    // A client that ends its half only is told.
    const raw = await RawConnection.open(server);
    await raw.write(headOf(`Content-Length: ${body.length}`));
    await raw.write(body.subarray(0, head + 1000));
    raw.socket.end();
    await within(ANSWER_MS_MAX, 'the end', (async () => { while (!raw.ended) await raw.response(); })());
    raw.close();
    // Malformed chunks in the middle of a file.
    const bad = await RawConnection.open(server);
    await bad.write(headOf('Transfer-Encoding: chunked'));
    await bad.write(Buffer.concat([Buffer.from('1000\r\n'), body.subarray(0, 4096), Buffer.from('\r\nxyz\r\n')]));
    const answer = await bad.response();
    assert.equal(answer.status, 400, answer.body);
    bad.close();
    await assertNothingLeft(home, 0);
    assert.equal((await uploaded(server, content)).sha256, sha256(content));
    await assertNothingLeft(home, 1);
    assert.equal(rowCount(home), 1);
  });

  test('by a crash: swept at the next start', async (t) => {
    const home = await Home.make(t);
    const server = await home.start();
    const kept = await uploaded(server, 'kept');
    const raw = await RawConnection.open(server);
    const body = fileForm(randomBytes(MIB));
    await raw.write(Buffer.from(`POST ${PATH} HTTP/1.1\r\nHost: ${server.host}:${server.port}\r\n` +
      `Content-Type: ${formType['content-type']}\r\nContent-Length: ${body.length}\r\n\r\n`));
    await raw.write(body.subarray(0, body.length - 100));
    await waitFor('a spool file', async () => (await filesIn(home, 'spool')).length > 0);
    await server.kill9();
    home.server = null;
    raw.close();
    assert.ok((await filesIn(home, 'spool')).length > 0);
    await writeFile(join(home.data, 'spool', 'att_0123456789abcdefghjkmnpqrs'), 'left behind', { mode: 0o600 });
    const again = await home.start();
    await assertNothingLeft(home, 1);
    assert.equal((await download(again, kept.url)).text, 'kept', 'an address outlives a restart');
  });

  test('by a stop: answered or cut, in good order', async (t) => {
    const home = await Home.make(t);
    const server = await home.start();
    const body = fileForm(randomBytes(MIB));
    const raws = [];
    for (const cut of [0, 50, 1000, 500 * KIB, body.length - 10]) {
      const raw = await RawConnection.open(server);
      await raw.write(Buffer.from(`POST ${PATH} HTTP/1.1\r\nHost: ${server.host}:${server.port}\r\n` +
        `Content-Type: ${formType['content-type']}\r\nContent-Length: ${body.length}\r\n\r\n`));
      await raw.write(body.subarray(0, cut));
      raws.push(raw);
    }
    await home.stop();
    for (const raw of raws) raw.close();
    assert.deepEqual(await objects(home), []);
    await home.start();
    await assertNothingLeft(home, 0);
  });
});

describe('limits', () => {
  test('of one file: the last byte that is allowed, and the next', async (t) => {
    const max = 256 * KIB;
    const home = await Home.make(t, { FERMATA_LIMITS_UPLOAD: String(max) });
    const server = await home.start();
    const agents = (await call(server, 'GET', `${AGENT}/agents`)).json();
    assert.equal(agents.agents[0].limits.upload, max);
    const whole = await uploaded(server, randomBytes(max));
    assert.equal(whole.size, max);
    for (const size of [max + 1, max + 300 * KIB, 4 * max]) {
      const body = fileForm(randomBytes(size));
      for (const sent of [body, [body.subarray(0, 1000), body.subarray(1000)]]) {
        const answer = await upload(server, sent);
        assert.equal(answer.status, 413, answer.text);
        assert.equal(answer.json().code, 'too_large');
      }
    }
    // Told before anything is read.
    const raw = await RawConnection.open(server);
    await raw.write(Buffer.from(`POST ${PATH} HTTP/1.1\r\nHost: ${server.host}:${server.port}\r\nExpect: 100-continue\r\n` +
      `Content-Type: ${formType['content-type']}\r\nContent-Length: ${100 * MIB}\r\n\r\n`));
    assert.equal((await raw.response()).status, 413);
    raw.close();
    await assertNothingLeft(home, 1);
  });

  test('of uploads at a time: the 65th is told to wait', async (t) => {
    const home = await Home.make(t);
    const server = await home.start();
    const body = fileForm('x'.repeat(1000));
    const open = async () => {
      const raw = await RawConnection.open(server);
      await raw.write(Buffer.from(`POST ${PATH} HTTP/1.1\r\nHost: ${server.host}:${server.port}\r\nExpect: 100-continue\r\n` +
        `Content-Type: ${formType['content-type']}\r\nContent-Length: ${body.length}\r\n\r\n`));
      return raw;
    };
    const raws = [];
    for (let i = 0; i < 64; i++) {
      const raw = await open();
      assert.equal((await raw.response()).status, 100);
      raws.push(raw);
    }
    const late = await open();
    const refused = await late.response();
    assert.equal(refused.status, 429);
    assert.equal(refused.headers['retry-after'], '1');
    late.close();
    raws.pop().close();
    for (const raw of raws) await raw.write(body);
    for (const raw of raws) {
      assert.equal((await raw.response()).status, 201);
      raw.close();
    }
    assert.equal((await upload(server, body)).status, 201);
    await assertNothingLeft(home, 64);
  });
});

describe('types and names', () => {
  const context = startHome();

  test('come from the content; only pictures without scripts are shown', async () => {
    const html = '<!DOCTYPE html><html><body><script>alert(1)</script></body></html>';
    const rows = [ // content, type that is told, type that is sent, shown
      [png(1, 1), 'image/png', 'image/png', true],
      [Buffer.from('47494638396101000100000000', 'hex'), 'image/gif', 'image/gif', true],
      [Buffer.from('ffd8ffe000104a46494600010100000100010000ffc0000b080001000201011100', 'hex'), 'image/jpeg', 'image/jpeg', true],
      [Buffer.from('52494646240000005745425056503820180000003001009d012a01000100', 'hex'), 'image/webp', 'image/webp', true],
      [html, 'text/html', 'application/octet-stream', false],
      [`GIF89a=1;/*${html}*/`, 'image/gif', 'image/gif', true],
      ['<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>', 'image/svg+xml', 'application/octet-stream', false],
      ['<?xml version="1.0"?><a/>', 'text/xml', 'application/octet-stream', false],
      ['#!/bin/sh\necho hi\n', 'text/x-shellscript', 'application/octet-stream', false],
      ['%PDF-1.7\n%...', 'application/pdf', 'application/pdf', false],
      ['hello\n', 'text/plain', 'text/plain', false],
      ['{"a":1}', 'application/json', 'application/json', false],
    ];
    for (const [content, type, sent, shown] of rows) {
      const attachment = await uploaded(context.server, content, { filename: 'photo.png' });
      assert.equal(attachment.mimeType, type, String(content));
      const { headers } = await download(context.server, attachment.url);
      assert.equal(headers['content-type'], sent);
      assert.equal(headers['content-disposition'], `${shown ? 'inline' : 'attachment'}; filename="photo.png"`);
      assert.equal(headers['x-content-type-options'], 'nosniff');
      assert.equal(headers['content-security-policy'], POLICY);
    }
  });

  test('names are cleaned, and told right', async () => {
    const cut = `${'x'.repeat(253)}`;
    const rows = [ // as sent, as kept, as a header says it
      ['../../x', 'x', 'filename="x"'],
      ['C:\\dir\\x.txt', 'x.txt', 'filename="x.txt"'],
      ['a\\"b.txt', 'a"b.txt', "filename=\"a_b.txt\"; filename*=UTF-8''a%22b.txt"],
      ['a%22b.txt', 'a%22b.txt', "filename=\"a_22b.txt\"; filename*=UTF-8''a%2522b.txt"],
      ['会议.pdf', '会议.pdf', "filename=\"__.pdf\"; filename*=UTF-8''%E4%BC%9A%E8%AE%AE.pdf"],
      ['a\0b\tc.txt', 'abc.txt', 'filename="abc.txt"'],
      ['x\u202egpj.exe', 'xgpj.exe', 'filename="xgpj.exe"'],
      [`${cut}会.txt`, cut, `filename="${cut}"`],
      ['x'.repeat(5 * KIB), 'x'.repeat(255), `filename="${'x'.repeat(255)}"`],
    ];
    for (const [sent, kept, value] of rows) {
      const attachment = await uploaded(context.server, 'hello', { filename: sent });
      assert.equal(attachment.filename, kept);
      const { headers } = await download(context.server, attachment.url);
      assert.equal(headers['content-disposition'], `attachment; ${value}`);
    }
    for (const part of [{ name: 'file', content: 'x' }, { name: 'file', filename: '..', content: 'x' }]) {
      const answer = await upload(context.server, form([{ name: 'threadId', content: 't' }, part]));
      const { id, filename } = answer.json().attachment;
      assert.equal(filename, '');
      assert.equal((await download(context.server, plain(id))).headers['content-disposition'], `attachment; filename="${id}"`);
    }
    const extended = form([{ name: 'threadId', content: 't' },
      { head: "Content-Disposition: form-data; name=file; filename=x; filename*=UTF-8''%00%e4%bc%9a%0D%0A.pdf", content: 'x' }]);
    assert.equal((await upload(context.server, extended)).json().attachment.filename, '会.pdf');
  });
});

describe('parts of a file', () => {
  const context = startHome();
  const content = randomBytes(100_000);
  let attachment;
  before(async () => { attachment = await uploaded(context.server, content); });

  test('ranges', async () => {
    const last = content.length - 1;
    const rows = [ // Range, status, from, to
      ['bytes=0-0', 206, 0, 0],
      ['bytes=0-', 206, 0, last],
      ['bytes=10-19', 206, 10, 19],
      [`bytes=${last}-`, 206, last, last],
      [`bytes=${last - 5}-${last + 100}`, 206, last - 5, last],
      ['bytes=-1', 206, last, last],
      [`bytes=-${content.length * 2}`, 206, 0, last],
      [`bytes=${content.length}-`, 416],
      ['bytes=-0', 416],
      ['bytes=5-4', 200],
      ['bytes=0-1,5-6', 200],
      ['items=0-1', 200],
      ['bytes=x', 200],
    ];
    for (const [range, status, from = 0, to = last] of rows) {
      for (const path of [attachment.url, plain(attachment.id)]) {
        const got = await download(context.server, path, { range });
        assert.equal(got.status, status, range);
        if (status === 416) {
          assert.equal(got.headers['content-range'], `bytes */${content.length}`);
          assertProblem(got, 416, 'range_not_satisfiable');
          continue;
        }
        assert.deepEqual(got.bytes, content.subarray(from, to + 1), range);
        assert.equal(got.headers['content-range'], status === 206 ? `bytes ${from}-${to}/${content.length}` : undefined);
        assert.equal(got.headers['content-length'], String(to - from + 1));
        assert.equal(got.headers['content-security-policy'], POLICY);
      }
    }
    const head = await send(context.server, 'HEAD', attachment.url, { headers: { range: 'bytes=0-9' } });
    assert.deepEqual([head.status, head.headers['content-length']], [200, String(content.length)]);
  });

  test('If-Range and If-None-Match', async () => {
    const etag = `"${attachment.sha256}"`;
    const range = 'bytes=0-9';
    assert.equal((await download(context.server, attachment.url, { range, 'if-range': etag })).status, 206);
    for (const other of ['"x"', `W/${etag}`, 'Sun, 15 Nov 2026 05:52:50 GMT', attachment.sha256]) {
      assert.equal((await download(context.server, attachment.url, { range, 'if-range': other })).status, 200, other);
    }
    for (const known of [etag, `W/${etag}`, `"x", ${etag}`, '*']) {
      const got = await download(context.server, attachment.url, { 'if-none-match': known });
      assert.deepEqual([got.status, got.bytes.length, got.headers.etag], [304, 0, etag]);
      assert.match(got.headers['cache-control'], /^private/);
    }
    assert.equal((await download(context.server, attachment.url, { 'if-none-match': '"x"' })).status, 200);
  });

  test('a reader that leaves in the middle harms nobody', async () => {
    const large = await uploaded(context.server, randomBytes(8 * MIB));
    for (let i = 0; i < 20; i++) {
      const raw = await RawConnection.open(context.server);
      await raw.write(Buffer.from(`GET ${large.url} HTTP/1.1\r\nHost: ${context.server.host}:${context.server.port}\r\n\r\n`));
      await waitFor('some bytes', () => raw.received.length > 0);
      raw.close();
    }
    assert.equal((await download(context.server, large.url)).bytes.length, 8 * MIB);
  });
});

describe('who may read', () => {
  let home, server, cleanUp, ann, bob, mine;
  before(async () => {
    home = await Home.make({ after: (fn) => { cleanUp = fn; } });
    server = await home.start();
    ann = await home.addKey('ann');
    bob = await home.addKey('bob');
    mine = await uploaded(server, 'secret plans', { threadId: 'shared' }, bearer(ann));
  });
  after(() => cleanUp?.());

  // An address as the server makes it, by the installation's own secret.
  async function signed(id, exp) {
    const master = await readFile(join(home.data, 'secret.key'));
    const subkey = (label) => Buffer.from(hkdfSync('sha256', master, '', label, 32));
    const keyId = sha256(subkey('fermata 1 id')).slice(0, 8);
    const mac = createHmac('sha256', subkey('fermata 1 url')).update(`attachment\n${id}\n${exp}`).digest('base64url');
    return `${PATH}/${id}?exp=${exp}&sig=${keyId}.${mac}`;
  }

  const comparable = (answer) => {
    const headers = { ...answer.headers };
    delete headers.date;
    delete headers['x-request-id'];
    return { status: answer.status, headers, text: answer.text };
  };

  test('the owner by key, by session; nobody else; others as if it did not exist', async () => {
    assert.equal((await download(server, plain(mine.id), bearer(ann))).text, 'secret plans');
    const session = await send(server, 'POST', '/api/v1/session', {
      headers: { 'content-type': 'application/json' }, body: Buffer.from(JSON.stringify({ key: ann })) });
    const cookie = session.headers['set-cookie'][0].split(';')[0];
    assert.equal((await download(server, plain(mine.id), { cookie })).text, 'secret plans');
    assertProblem(await download(server, plain(mine.id)), 401, 'unauthenticated');
    assertProblem(await download(server, plain('att_none')), 401, 'unauthenticated');
    const foreign = await download(server, plain(mine.id), bearer(bob));
    assertProblem(foreign, 404, 'not_found');
    assert.deepEqual(comparable(foreign), comparable(await download(server, plain('att_none'), bearer(bob))));
    const byCookie = await upload(server, fileForm('x'), { cookie });
    assert.equal(byCookie.status, 201, byCookie.text);
    assertProblem(await upload(server, fileForm('x')), 401, 'unauthenticated');
  });

  test('whoever holds the signed address, without a key, by GET and HEAD', async () => {
    assert.equal((await download(server, mine.url)).text, 'secret plans');
    assert.equal((await download(server, mine.url, bearer(bob))).text, 'secret plans');
    assert.equal((await download(server, mine.url, bearer('wrong'))).text, 'secret plans');
    assert.equal((await send(server, 'HEAD', mine.url)).status, 200);
    const exp = Math.floor(Date.now() / 1000) + 60;
    assert.equal((await download(server, await signed(mine.id, exp))).text, 'secret plans', 'the signature is what we think it is');
    assertProblem(await download(server, await signed('att_none', exp)), 404, 'not_found');
  });

  test('a signed address ends with the last key of whose file it is', async () => {
    const [first, second] = [await home.addKey('cid'), await home.addKey('cid')];
    const { url } = await uploaded(server, 'mine', { threadId: 'his' }, bearer(first));
    await home.revokeKey(first);
    assert.equal((await download(server, url)).text, 'mine', 'he has another');
    await home.revokeKey(second);
    assertProblem(await download(server, url), 403, 'forbidden');
  });

  test('an address with one changed byte, or over, is 403 for everybody', async () => {
    const from = mine.url.indexOf('?exp=') + 5;
    for (let i = from; i < mine.url.length; i++) {
      if ('&sig='.includes(mine.url[i]) && i >= mine.url.indexOf('&sig=') && i < mine.url.indexOf('&sig=') + 5) continue;
      const other = mine.url[i] === '7' ? '8' : '7';
      const changed = mine.url.slice(0, i) + other + mine.url.slice(i + 1);
      assertProblem(await download(server, changed), 403, 'forbidden');
    }
    const other = await uploaded(server, 'other', {}, bearer(ann));
    const query = mine.url.slice(mine.url.indexOf('?'));
    const exp = new URLSearchParams(query).get('exp'), sig = new URLSearchParams(query).get('sig');
    const now = Math.floor(Date.now() / 1000);
    for (const url of [`${plain(other.id)}${query}`, `${plain(mine.id)}?exp=${exp}`, `${plain(mine.id)}?sig=${sig}`,
      `${plain(mine.id)}?exp=&sig=`, `${plain(mine.id)}?exp=0${exp}&sig=${sig}`, `${plain(mine.id)}?exp=${exp}&sig=${sig}x`,
      `${plain(mine.id)}?exp=${exp}&sig=${'x'.repeat(5000)}`, `${plain(mine.id)}?exp=%zz&sig=${sig}`,
      await signed(mine.id, now - 1), await signed(mine.id, 0), await signed(mine.id, '99999999999999')]) {
      for (const headers of [{}, bearer(ann)]) assertProblem(await download(server, url, headers), 403, 'forbidden');
    }
    assert.match((await download(server, await signed(mine.id, now - 1))).json().detail, /expired/);
  });
});

describe('keys of repeated requests', () => {
  const context = startHome();

  test('the same file again: the same answer, one object; another: 422', async () => {
    const { server, home } = context;
    const headers = { 'idempotency-key': 'k1' };
    const options = { threadId: 't1', filename: 'a.txt' };
    const first = await upload(server, fileForm('hello', options), headers);
    assert.equal(first.status, 201);
    const again = await upload(server, form([{ name: 'file', filename: 'a.txt', content: 'hello' },
      { name: 'threadId', content: 't1' }]), headers);
    assert.deepEqual([again.status, again.text], [201, first.text]);
    for (const [content, other] of [['hellO', options], ['hello', { ...options, threadId: 't2' }],
      ['hello', { ...options, filename: 'b.txt' }]]) {
      assertProblem(await upload(server, fileForm(content, other), headers), 422, 'idempotency_mismatch');
    }
    await assertNothingLeft(home, 1);
    assertProblem(await upload(server, fileForm('', options), { 'idempotency-key': 'k2' }), 400, 'invalid_field', 'file');
    assert.equal((await upload(server, fileForm('x', options), { 'idempotency-key': 'k2' })).status, 201, 'a refusal takes no key');
    const many = await Promise.all(Array.from({ length: 8 }, () => upload(server, fileForm('same', options), { 'idempotency-key': 'k3' })));
    assert.deepEqual(new Set(many.map(({ status, text }) => `${status} ${text}`)).size, 1);
    assert.equal(many[0].status, 201);
    await assertNothingLeft(home, 3);
  });
});

describe('a stored file that is damaged or gone', () => {
  test('is 404 that says so, and is counted', async (t) => {
    const home = await Home.make(t);
    const server = await home.start();
    const [one, two] = [await uploaded(server, randomBytes(5000)), await uploaded(server, randomBytes(5000))];
    const at = (attachment) => join(home.data, 'blobs', 'attachments', attachment.sha256.slice(0, 2), `${attachment.sha256}.${attachment.id}`);
    const bytes = await readFile(at(one));
    bytes[2500] ^= 1;
    await writeFile(at(one), bytes);
    await rm(at(two));
    for (const [attachment, word] of [[one, /damaged/], [two, /gone/]]) {
      for (const path of [attachment.url, plain(attachment.id)]) {
        const answer = await download(server, path, { range: 'bytes=0-10' });
        assertProblem(answer, 404, 'not_found');
        assert.match(answer.json().detail, word);
      }
    }
    assert.match((await call(server, 'GET', '/metrics')).text, /^fermata_attachments_lost_total 4$/m);
    await waitFor('it is said', () => /attachment\.lost/.test(server.stderr()));
  });
});

describe('behind a path prefix', () => {
  test('addresses have it, and work with it', async (t) => {
    const home = await Home.make(t, { FERMATA_PUBLIC_URL: 'http://127.0.0.1/chat' });
    const server = await home.start();
    const { id, url } = await uploaded(server, 'hello');
    assert.ok(url.startsWith(`/chat${PATH}/${id}?exp=`), url);
    assert.equal((await download(server, url)).text, 'hello');
  });
});

describe('memory', () => {
  test('a file of 100 MB passes through', async (t) => {
    const home = await Home.make(t);
    const server = await home.start();
    const kib = async (name) => {
      const status = await readFile(`/proc/${server.pid}/status`, 'utf8');
      return Number(new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(status)[1]);
    };
    const sanitized = (await readFile(join(buildFolder(), 'fermata'))).includes('__asan_init');
    await call(server, 'GET', '/readyz');
    const idle = await kib('VmRSS');
    const piece = randomBytes(MIB), hash = createHash('sha256');
    const start = fileForm('').subarray(0, fileForm('').indexOf('\r\n\r\n', fileForm('').indexOf('filename')) + 4);
    const end = Buffer.from(`\r\n--${BOUNDARY}--\r\n`);
    const size = 100 * 1000 * 1000;
    const answer = new Promise((done, failed) => {
      const sent = request({ host: server.host, port: server.port, method: 'POST', path: PATH, agent: false,
        headers: { ...formType, 'content-length': start.length + size + end.length } }, (response) => {
        const pieces = [];
        response.on('data', (bytes) => pieces.push(bytes)).on('end', () => done({
          status: response.statusCode, text: Buffer.concat(pieces).toString() }));
      });
      sent.on('error', failed);
      (async () => {
        sent.write(start);
        for (let left = size; left > 0; left -= piece.length) {
          const bytes = piece.subarray(0, Math.min(left, piece.length));
          hash.update(bytes);
          if (!sent.write(bytes)) await new Promise((resolve) => { sent.once('drain', resolve); });
        }
        sent.end(end);
      })().catch(failed);
    });
    const { status, text } = await within(120_000, 'the upload', answer);
    assert.equal(status, 201, text);
    const { attachment } = JSON.parse(text);
    assert.deepEqual([attachment.size, attachment.sha256], [size, hash.digest('hex')]);
    const up = await kib('VmHWM');
    await new Promise((done, failed) => {
      request({ host: server.host, port: server.port, path: attachment.url, agent: false }, (response) => {
        let count = 0;
        response.on('data', (bytes) => { count += bytes.length; }).on('error', failed).on('end', () => {
          try { assert.equal(count, size); done(); } catch (error) { failed(error); }
        });
      }).on('error', failed).end();
    });
    const down = await kib('VmHWM');
    t.diagnostic(`idle ${idle} KiB, after the upload ${up - idle} KiB more, after the download ${down - idle} KiB more`);
    if (sanitized) return t.diagnostic('the figures are a sanitizer\'s, and not held to a bound');
    assert.ok(up - idle < 16 * KIB, `${up - idle} KiB above idle`);
    assert.ok(down - idle < 16 * KIB, `${down - idle} KiB above idle`);
  });
});

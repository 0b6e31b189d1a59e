// SPDX-License-Identifier: Apache-2.0
//
// Chat channels for those who run them: the list, signing in by QR code over HTTP and in the terminal, links, checks,
// and who may do which.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { createServer } from 'node:http';
import { writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { describe, test } from 'node:test';

import { startIlink } from '../channels/ilink.mjs';
import { assertProblem, bearer, call, Home } from './home.mjs';
import { buildFolder, within } from './server.mjs';

const CHANNELS = '/api/v1/agent/channels';
const LOGIN = `${CHANNELS}/wx/login`;
const WAIT_MS = 60_000;
const STATES = ['wait', 'scanned', 'verify', 'done', 'expired', 'failed'];

// A data folder with channels, and iLink on loopback behind `wx`; more: lines of YAML below `channels:`.
async function makeHome(t, { more = '', wx = '', ilink: options = {} } = {}) {
  const ilink = await startIlink({ token: null, holdMs: 500, ...options });
  const home = await Home.make(t);
  t.after(() => ilink.close());
  home.env.FERMATA_CONFIG = join(home.data, 'fermata.yaml');
  await writeFile(join(home.data, 'secret'), 'a-secret-between-us\n', { mode: 0o600 });
  await writeFile(home.env.FERMATA_CONFIG,
    `channels:\n  wx: {kind: weixin, base_url: "${ilink.url}"${wx}}\n${more.replaceAll('SECRET', join(home.data, 'secret'))}`);
  return { home, ilink };
}

const OWN = '  own: {kind: webhook, url: "http://127.0.0.1:9/messages", secret_file: "SECRET"}\n';

const json = { 'content-type': 'application/json' };
const login = (server, body, headers = {}, path = LOGIN) => call(server, 'POST', path, {
  headers: { ...(body === undefined ? {} : json), ...headers }, body: body === undefined ? undefined : JSON.stringify(body),
});

// Asks until `found(answer)`, as the page does: the answer.
async function until(server, found, body = {}) {
  const deadline = Date.now() + WAIT_MS;
  for (;;) {
    const answer = await login(server, body);
    assert.equal(answer.status, 200, answer.text);
    const state = answer.json();
    assert.ok(STATES.includes(state.state), answer.text);
    if (found(state)) return state;
    assert.ok(Date.now() < deadline, `still ${answer.text.slice(0, 200)}`);
    await new Promise((done) => { setTimeout(done, 50); });
  }
}

const shown = (server, body) => until(server, (state) => state.content, body);
const become = (server, name) => until(server, ({ state }) => state === name);
const channels = async (server, headers = {}) => (await call(server, 'GET', CHANNELS, { headers })).json().channels;

// Until the platform has taken the number.
const scanned = (ilink) => within(WAIT_MS, 'scanned', (async () => {
  while (ilink.qr.status !== 'scaned') await new Promise((done) => { setTimeout(done, 20); });
})());

// The list as soon as `found(wx)`.
async function listed(server, found) {
  const deadline = Date.now() + WAIT_MS;
  for (;;) {
    const list = await channels(server);
    if (found(list[0])) return list;
    assert.ok(Date.now() < deadline, `still ${JSON.stringify(list[0])}`);
    await new Promise((done) => { setTimeout(done, 50); });
  }
}

const online = async (server) => (await listed(server, ({ state }) => state === 'online'))[0];

function assertCode({ qr, content, expiresAt }, ilink) {
  assert.equal(content, ilink.qr.content);
  assert.ok(Date.parse(expiresAt) > Date.now());
  assert.ok(qr.size >= 21 && (qr.size - 17) % 4 === 0);
  assert.equal(qr.rows.length, qr.size);
  for (const row of qr.rows) assert.match(row, new RegExp(`^[01]{${qr.size}}$`));
  assert.ok(qr.rows[0].startsWith('11111110') && qr.rows[0].endsWith('01111111'));
}

describe('the list', () => {
  test('has every channel in its order, without secrets', async (t) => {
    const { home } = await makeHome(t, { more: OWN });
    const server = await home.start();
    const [wx, own] = await listed(server, ({ state }) => state !== 'starting');
    assert.deepEqual({ ...wx, state: '', detail: '' },
      { name: 'wx', kind: 'weixin', agent: 'assistant', state: '', detail: '', people: 0, waiting: 0, parked: 0, login: true });
    assert.equal(wx.state, 'needs_login');
    assert.equal(own.kind, 'webhook');
    assert.equal(own.login, false);
    assert.match(own.webhookUrl, /\/api\/v1\/agent\/channels\/own\/webhook$/);
    assert.ok(!JSON.stringify([wx, own]).includes('a-secret'));
  });

  test('is empty without channels', async (t) => {
    const home = await Home.make(t);
    const server = await home.start();
    assert.deepEqual(await channels(server), []);
    const { code, stdout, stderr } = await home.run(['channel', 'list']);
    assert.deepEqual([code, stdout], [0, '']);
    assert.match(stderr, /There are no channels/);
    assertProblem(await login(server, {}), 404, 'not_found');
  });

  test('and logins are for operators', async (t) => {
    const { home } = await makeHome(t);
    const server = await home.start();
    const keys = {
      operator: await home.addKey('oscar', '--role', 'operator'),
      approver: await home.addKey('ann', '--role', 'user', '--role', 'approver'),
    };
    assertProblem(await call(server, 'GET', CHANNELS), 401, 'unauthenticated');
    assertProblem(await login(server, {}), 401, 'unauthenticated');
    assertProblem(await call(server, 'GET', CHANNELS, { headers: bearer(keys.approver) }), 403, 'forbidden');
    assertProblem(await login(server, {}, bearer(keys.approver)), 403, 'forbidden');
    assert.equal((await channels(server, bearer(keys.operator))).length, 1);
    assert.equal((await login(server, {}, bearer(keys.operator))).status, 200);
  });
});

describe('signing in', () => {
  test('shows a code, tells each state, and polls afterwards with the new token', async (t) => {
    const { home, ilink } = await makeHome(t);
    const server = await home.start();
    const first = await shown(server);
    assert.equal(first.state, 'wait');
    assertCode(first, ilink);
    ilink.scan();
    await become(server, 'scanned');
    ilink.confirm({ userId: 'alice' });
    const done = await become(server, 'done');
    assert.equal(done.user, 'alice@im.wechat');
    assert.ok(!('content' in done) && !('qr' in done));
    assert.equal((await online(server)).detail, undefined);
    assert.equal((await login(server, {})).json().state, 'done', 'it is told for a while');
    assert.equal(ilink.logins.length, 1);
    const files = [...(await home.files()).values()];
    assert.ok(files.some((bytes) => bytes.includes('alice@im.wechat')), 'the account is stored');

    await home.restart();
    await online(home.server);
    assert.deepEqual(ilink.violations, []);
  });

  test('asks for the number that the phone shows', async (t) => {
    const { home, ilink } = await makeHome(t);
    const server = await home.start();
    await shown(server);
    assertProblem(await login(server, { verifyCode: '4821' }), 409, 'not_current');
    ilink.askCode('4821');
    assert.equal((await become(server, 'verify')).detail, undefined);
    const wrong = await login(server, { verifyCode: '1111' });
    assert.equal(wrong.json().state, 'scanned', 'until it is judged');
    assert.ok((await become(server, 'verify')).detail);
    assert.equal((await login(server, { verifyCode: '4821' })).status, 200);
    await scanned(ilink);
    ilink.confirm();
    await become(server, 'done');
    assert.deepEqual(ilink.violations, []);
  });

  test('replaces a code that expires, three times at most', async (t) => {
    const { home, ilink } = await makeHome(t);
    const server = await home.start();
    const first = await shown(server);
    ilink.expire();
    const second = await until(server, ({ content }) => content && content !== first.content);
    assertCode(second, ilink);
    ilink.expire();
    await until(server, ({ content }) => content && content !== second.content);
    ilink.expire();
    const end = await become(server, 'expired');
    assert.ok(end.detail && !('content' in end));
    assert.equal(ilink.logins.length, 3);
    assert.equal((await login(server, {})).json().state, 'expired', 'nothing begins by itself');
    const again = await login(server, { restart: true });
    assert.equal(again.json().state, 'wait');
    assertCode(await shown(server), ilink);
    assert.equal(ilink.logins.length, 4);
  });

  test('begins anew in the middle, and the old code is not asked about any more', async (t) => {
    const { home, ilink } = await makeHome(t);
    const server = await home.start();
    const first = await shown(server);
    ilink.scan();
    await become(server, 'scanned');
    const restarted = (await login(server, { restart: true })).json();
    assert.equal(restarted.state, 'wait');
    assert.equal(restarted.content, undefined);
    const second = await shown(server);
    assert.notEqual(second.content, first.content);
    ilink.confirm();
    await become(server, 'done');
    assert.deepEqual(ilink.violations, []);
  });

  test('bears a platform that fails for a while, and ends when it gives no code', async (t) => {
    const { home, ilink } = await makeHome(t);
    const server = await home.start();
    ilink.failNext('get_bot_qrcode', { status: 500, body: 'no' });
    const failed = await become(server, 'failed');
    assert.ok(failed.detail);
    assert.equal((await login(server, { restart: true })).json().state, 'wait');
    await shown(server);
    ilink.failNext('get_qrcode_status', 'cut', 2);
    ilink.failNext('get_qrcode_status', { status: 502, body: 'bad gateway' });
    await within(WAIT_MS, 'failures', (async () => {
      while (ilink.failures()) await new Promise((done) => { setTimeout(done, 50); });
    })());
    ilink.confirm();
    await become(server, 'done');
  });

  test('that is under way does not hold up the end', async (t) => {
    const { home } = await makeHome(t, { ilink: { holdMs: 30_000 } });
    const server = await home.start();
    await shown(server);
    await home.stop();
  });

  test('refuses what it does not know', async (t) => {
    const { home } = await makeHome(t, { more: OWN });
    const server = await home.start();
    assertProblem(await login(server, {}, {}, `${CHANNELS}/nobody/login`), 404, 'not_found');
    assertProblem(await login(server, {}, {}, `${CHANNELS}/own/login`), 400, 'invalid_field', 'name');
    assertProblem(await login(server, { code: '1' }), 400, 'invalid_field', 'code');
    assertProblem(await login(server, { restart: 1 }), 400, 'invalid_field', 'restart');
    assertProblem(await login(server, { verifyCode: 123456 }), 400, 'invalid_field', 'verifyCode');
    assertProblem(await login(server, { verifyCode: '' }), 400, 'invalid_field', 'verifyCode');
    assertProblem(await login(server, { verifyCode: '1'.repeat(17) }), 400, 'invalid_field', 'verifyCode');
    assertProblem(await login(server, { verifyCode: '12a' }), 400, 'invalid_field', 'verifyCode');
    assertProblem(await login(server, { verifyCode: '1', restart: true }), 400, 'invalid_field', 'restart');
    assertProblem(await login(server, { verifyCode: '1' }), 409, 'not_current');
    assert.equal((await login(server)).status, 200, 'an empty body is fine');
  });
});

// `fermata ARGS` with a person at it: output() is what it wrote so far, say(line) types.
function begin(t, home, args, env = {}) {
  const proc = spawn(resolve(buildFolder(), 'fermata'), args,
    { env: { PATH: process.env.PATH, FERMATA_DATA: home.data, ...home.env, ...env }, stdio: 'pipe' });
  let out = '', err = '';
  proc.stdout.setEncoding('utf8').on('data', (text) => { out += text; proc.emit('said'); });
  proc.stderr.setEncoding('utf8').on('data', (text) => { err += text; proc.emit('said'); });
  const ended = new Promise((done) => { proc.once('close', (code) => { proc.emit('said'); done(code); }); });
  t.after(() => proc.kill('SIGKILL'));
  return {
    say: (line) => proc.stdin.write(`${line}\n`),
    hangUp: () => proc.stdin.end(),
    end: () => within(WAIT_MS, 'end', ended.then((code) => ({ code, stdout: out, stderr: err }))),
    wait: (pattern) => within(WAIT_MS, `${pattern}`, (async () => {
      while (!pattern.test(out + err)) await new Promise((done) => { proc.once('said', done); });
    })()),
  };
}

describe('the command line', () => {
  test('signs in', async (t) => {
    const { home, ilink } = await makeHome(t);
    await home.start();
    const command = begin(t, home, ['channel', 'login', 'wx'], { LANG: 'zh_CN.UTF-8' });
    await command.wait(/https?:\/\/\S+\n/);
    ilink.askCode('4821');
    await command.wait(/手机上显示的数字/);
    command.say('abc');
    await command.wait(/只能输入数字/);
    command.say('1111');
    await command.wait(/数字不对/);
    command.say(' 4821 ');
    await scanned(ilink);
    ilink.confirm({ userId: 'alice' });
    const { code, stdout, stderr } = await command.end();
    assert.equal(code, 0, stderr);
    assert.equal(stdout, `${ilink.qr.content}\n`, 'to a pipe the address alone');
    assert.match(stderr, /登录成功: alice@im\.wechat\n$/);
    await online(home.server);
    const list = await home.run(['channel', 'list']);
    assert.match(list.stdout, /^wx +weixin +assistant +online +0 people +0 waiting +0 parked\n$/);
  });

  test('draws the code on a terminal', async (t) => {
    const { home, ilink } = await makeHome(t);
    await home.start();
    const program = resolve(buildFolder(), 'fermata');
    const proc = spawn('script', ['-qec', `${program} channel login wx`, '/dev/null'],
      { env: { PATH: process.env.PATH, FERMATA_DATA: home.data, ...home.env }, stdio: 'pipe' });
    t.after(() => proc.kill('SIGKILL'));
    let out = '';
    const ended = new Promise((done) => { proc.once('close', done); });
    proc.stdout.setEncoding('utf8').on('data', (text) => { out += text; proc.emit('said'); });
    await within(WAIT_MS, 'code', (async () => {
      while (!out.includes('open this address')) await new Promise((done) => { proc.once('said', done); });
    })());
    const lines = out.split('\n').filter((line) => line.startsWith('\x1b[38;5;16;48;5;231m'));
    const { qr } = (await login(home.server, {})).json();
    assert.equal(lines.length, Math.ceil((qr.size + 8) / 2));
    assert.match(lines[2], /█▀▀▀▀▀█/);
    ilink.confirm();
    assert.equal(await within(WAIT_MS, 'end', ended), 0);
    assert.match(out, /Signed in/);
  });

  test('says why it failed', async (t) => {
    const { home, ilink } = await makeHome(t, { more: OWN });
    const off = await home.run(['channel', 'login', 'wx']);
    assert.equal(off.code, 1);
    assert.match(off.stderr, /no server runs on .*fermata serve/);
    assert.equal((await home.run(['channel', 'list'])).code, 1);
    await home.start();
    const unknown = await home.run(['channel', 'login', 'wy']);
    assert.equal(unknown.code, 1);
    assert.match(unknown.stderr, /no channel "wy"; did you mean "wx"\?/);
    const other = await home.run(['channel', 'login', 'own']);
    assert.equal(other.code, 1);
    assert.match(other.stderr, /nobody signs in to a channel of the kind webhook/);
    ilink.failNext('get_bot_qrcode', { ret: 1, errmsg: 'no' });
    const failed = await home.run(['channel', 'login', 'wx']);
    assert.equal(failed.code, 1);
    assert.match(failed.stderr, /Signing in failed: /);
    const command = begin(t, home, ['channel', 'login', 'wx']);
    await command.wait(/https?:\/\/\S+\n/);
    ilink.askCode('4821');
    await command.wait(/Number that/);
    command.hangUp();
    const gone = await command.end();
    assert.equal(gone.code, 1);
    assert.match(gone.stderr, /nobody to type/);
  });

  for (const served of [true, false]) {
    test(`makes codes of links ${served ? 'through the server' : 'without one'}`, async (t) => {
      const { home } = await makeHome(t);
      if (served) await home.start();
      const codes = new Set();
      for (const roles of [[], ['--role', 'approver', '--role', 'user']]) {
        const { code, stdout, stderr } = await home.run(['channel', 'link', 'wx', '--user', 'alice', ...roles]);
        assert.equal(code, 0, stderr);
        assert.match(stdout, /^\d{8}\n$/);
        assert.ok(stderr.includes(`/link ${stdout}`), stderr);
        codes.add(stdout);
      }
      assert.equal(codes.size, 2);
      for (const [name, bytes] of await home.files()) {
        for (const code of codes) assert.ok(!bytes.includes(code.trim()), `${name} has a code as it is`);
      }
      const refused = [
        [['channel', 'link', 'wy', '--user', 'a'], 1, /no channel "wy"/],
        [['channel', 'link', 'wx'], 2, /needs --user/],
        [['channel', 'link', 'wx', '--user', 'a', '--role', 'boss'], 2, /does not know "boss"/],
        [['channel', 'unlink', 'wx'], 2, /needs NAME SENDER/],
        [['channel', 'unlink', 'wx', 'a', 'b'], 2, /does not take "b"/],
        [['channel', 'unlink', 'wx', 'nobody@im.wechat'], 1, /nobody with the id "nobody@im.wechat" is linked/],
        [['channel', 'unlink', 'wy', 'a'], 1, /no channel "wy"/],
      ];
      for (const [args, code, reason] of refused) {
        const answer = await home.run(args);
        assert.equal(answer.code, code, `${args.join(' ')}: ${answer.stderr}`);
        assert.match(answer.stderr, reason);
        assert.equal(answer.stdout, '');
      }
    });
  }

  test('links a person, and undoes it', async (t) => {
    const { home, ilink } = await makeHome(t, { wx: ', allow: ["*"]' });
    const server = await home.start();
    await shown(server);
    ilink.confirm({ userId: 'owner' });
    await become(server, 'done');
    await online(server);
    const { stdout } = await home.run(['channel', 'link', 'wx', '--user', 'alice', '--role', 'approver']);
    ilink.say('bob', `/link ${stdout.trim()}`);
    await ilink.waitForSend(/alice/);
    assert.equal((await channels(server))[0].people, 1);
    const done = await home.run(['channel', 'unlink', 'wx', 'bob@im.wechat']);
    assert.equal(done.code, 0, done.stderr);
    const again = await home.run(['channel', 'unlink', 'wx', 'bob@im.wechat']);
    assert.equal(again.code, 1);
    assert.match(again.stderr, /is linked/);
  });
});

describe('check', () => {
  // Telegram and an Official Account, as far as a check asks them.
  async function startPlatform(t) {
    const server = createServer((request, response) => {
      let body = '';
      request.on('data', (piece) => { body += piece; }).on('end', () => {
        const good = request.url === '/bot1:good/getMe' || (request.url === '/cgi-bin/stable_token' && JSON.parse(body).appid === 'wxgood');
        const answer = request.url.startsWith('/bot') ? { ok: good } : good ? { access_token: 'x', expires_in: 7200 } : { errcode: 40164, errmsg: 'invalid ip' };
        response.writeHead(good || !request.url.startsWith('/bot') ? 200 : 401, json).end(JSON.stringify(answer));
      });
    });
    await new Promise((done) => { server.listen(0, '127.0.0.1', done); });
    t.after(() => { server.closeAllConnections(); server.close(); });
    return `http://127.0.0.1:${server.address().port}`;
  }

  test('asks each platform whether it knows us', async (t) => {
    const url = await startPlatform(t);
    const { home } = await makeHome(t, {
      more: [['tg', 'good'], ['tgbad', 'bad']].map(([name, token]) => `  ${name}: {kind: telegram, base_url: "${url}", token_file: "SECRET.${token}"}\n`).join('')
        + [['oa', 'wxgood'], ['oabad', 'wxbad']].map(([name, id]) => `  ${name}: {kind: wechat_oa, base_url: "${url}", app_id: ${id}, secret_file: "SECRET", token_file: "SECRET"}\n`).join('')
        + `  own: {kind: webhook, url: "${url}/m", secret_file: "SECRET"}\n${OWN.replace('own', 'gone')}`,
    });
    for (const name of ['good', 'bad']) await writeFile(join(home.data, `secret.${name}`), `1:${name}\n`);
    const { code, stdout } = await home.run(['check']);
    assert.equal(code, 1);
    const lines = Object.fromEntries(stdout.split('\n').map((line) => /^channel +(ok|FAILED): (\w+): (.*)$/.exec(line)).filter(Boolean)
      .map(([, verdict, name, what]) => [name, `${verdict} ${what}`]));
    assert.match(lines.wx, /^ok reached; needs login: .*fermata channel login/);
    assert.equal(lines.tg, 'ok reached, and it knows us');
    assert.match(lines.tgbad, /^FAILED .*the token is refused \(HTTP 401\)/);
    assert.equal(lines.oa, 'ok reached, and it knows us');
    assert.match(lines.oabad, /^FAILED .*invalid ip \(errcode 40164\)/);
    assert.equal(lines.own, 'ok reached');
    assert.match(lines.gone, /^FAILED /);
    for (const secret of ['1:good', '1:bad', 'a-secret']) assert.ok(!stdout.includes(secret), secret);
  });

  test('remarks on what works and should be known', async (t) => {
    const url = await startPlatform(t);
    const row = (name, kind, rest) => `  ${name}: {kind: ${kind}, ${kind === 'webhook' ? `url: "${url}/m"` : `base_url: "${url}"`}, ${rest}}\n`;
    const oa = (id) => `app_id: ${id}, secret_file: "SECRET", token_file: "SECRET"`;
    const { home } = await makeHome(t, {
      more: row('tg', 'telegram', 'token_file: "SECRET.1"') + row('tglist', 'telegram', 'token_file: "SECRET.2", allow: ["5"]')
        + row('tgall', 'telegram', 'token_file: "SECRET.3", allow: ["*"]')
        + row('oa', 'wechat_oa', oa('wx1')) + row('oasafe', 'wechat_oa', `${oa('wx2')}, aes_key_file: "SECRET.aes", allow: ["u"]`)
        + row('own', 'webhook', 'secret_file: "SECRET"'),
    });
    for (const name of [1, 2, 3]) await writeFile(join(home.data, `secret.${name}`), `1:${name}\n`);
    await writeFile(join(home.data, 'secret.aes'), 'abcdefghijklmnopqrstuvwxyz0123456789ABCDEFG\n');
    const { stdout } = await home.run(['check']);
    const remarks = stdout.split('\n').map((line) => /^remark +(\w+): (anybody may write to it|messages are not encrypted)/.exec(line))
      .filter(Boolean).map(([, name, what]) => `${name}: ${what}`);
    assert.deepEqual(remarks, ['tg: anybody may write to it', 'oa: anybody may write to it', 'oa: messages are not encrypted',
      'own: anybody may write to it']);
    assert.equal(stdout.match(/^remark/gm).length, remarks.length);
  });

  test('knows who has signed in', async (t) => {
    const { home, ilink } = await makeHome(t);
    const server = await home.start();
    await shown(server);
    ilink.confirm();
    await become(server, 'done');
    await online(server);
    const served = await home.run(['check']);
    assert.match(served.stdout, /^channel +ok: wx: reached; `fermata channel list` tells/m);
    await home.stop();
    const { code, stdout } = await home.run(['check']);
    assert.equal(code, 0, stdout);
    assert.match(stdout, /^channel +ok: wx: reached$/m);
  });
});

// SPDX-License-Identifier: Apache-2.0
//
// WeChat's Official Account on loopback, both halves: the API that an account calls, and the calls that WeChat makes to
// the account's address: signed, encrypted in safe mode, repeated until they are answered. What WeChat would refuse is
// refused with its codes; what it would take, and an account should not do, stands in `oa.violations`, which a test
// expects to be empty at its end.
//
//   const oa = await startOa({ mode: 'safe' });
//   ... base_url: oa.url, app_id: oa.appId, secret oa.secret, token oa.token, aes key oa.aesKey ...
//   oa.hook = 'http://127.0.0.1:.../webhook';
//   await oa.verify();                                  // the GET with echostr; throws if it is answered wrongly
//   const said = await oa.say('alice', 'hello');        // {id, fields, answers: [{status, body, ms}], taken}
//   const asked = await oa.waitForSend(/which day/);    // {to, text, menu: null | [{id, content}], n}
//   await oa.press('alice', asked, 'Tuesday');
//   await oa.close();
//
// Options, all of them optional, and changeable later:
//   mode: 'plain' | 'compatible' | 'safe'      verified: true   menus are taken      menuIds: true   else 0 comes back
//   tokenSeconds: 7200     callMs: 5000   how long a call waits for its answer       calls: 3   how often it is made
//   appId, secret, token, aesKey
//
// What came, in order; every entry has `n`, the number of its request:
//   requests [{path, body}]    everything, refused or not       tokens  [{given, forced}]   access tokens asked for
//   sends    [{to, text, menu, answered}]      typings [{to, command}]      downloads [{mediaId}]
//   refused  [{path, code}]                    violations [string]
//
// People: `who` is a name; id(who) is the openid. say(who, text), press(who, sent, label), event(who, event, {EventKey}),
//   image(who, bytes, {type}), voice(who, bytes, {Recognition}), push(who, fields): any message. Each resolves when WeChat
//   has given up or was answered. repeat(said): the same message once more, signed anew. A message allows 5 sends within
//   48 hours, an event or a tap 3 within a minute; advance(ms) lets that time pass.
// Calls by hand: signed(body, {...}) gives {query, body} of a call; post({query, body}), get(query): {status, body, ms}.
// Trouble: failNext(name, how, times = 1); name is the end of the path: 'stable_token', 'send', 'typing', 'get'.
//   how: 'cut' before anything happens; 'cut-after' it happened, without an answer; 'hang' and 'hang-after' no answer until
//   the caller leaves; 'garbage' no JSON; {errcode, errmsg}: refused so; {status, body}; {delayMs}: late.
//   dropTokens(): every access token is dead, as when the secret was changed.
// Waiting: waitForSend(match, {from: 0, timeoutMs: 10000}): the first send from index `from` on that matches: a text, a
//   RegExp or a function of the entry. waitFor('typings', match, options) for the other lists.

import { createCipheriv, createHash, randomBytes } from 'node:crypto';
import { EventEmitter, once } from 'node:events';
import { createServer } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';

const MESSAGE = { sends: 5, ms: 48 * 3600_000 };
const EVENT = { sends: 3, ms: 60_000 };
const TEXT_BYTES_MAX = 2048;
const BODY_BYTES_MAX = 1024 * 1024;

// A refusal, in the form that WeChat gives it.
class No extends Error {
  constructor(code, why) {
    super(why);
    this.code = code;
  }
}

// end of the path: method, what is done, whether it needs an access token
const CALLS = {
  '/cgi-bin/stable_token': ['POST', 'stableToken', false],
  '/cgi-bin/message/custom/send': ['POST', 'customSend', true],
  '/cgi-bin/message/custom/typing': ['POST', 'customTyping', true],
  '/cgi-bin/media/get': ['GET', 'mediaGet', true],
};

export const sign = (...texts) => createHash('sha1').update(texts.sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b))).join('')).digest('hex');

export function encrypt(aesKey, appId, message, random = randomBytes(16)) {
  const key = Buffer.from(`${aesKey}=`, 'base64');
  const size = Buffer.alloc(4);
  const bytes = Buffer.from(message);
  size.writeUInt32BE(bytes.length);
  const plain = Buffer.concat([Buffer.from(random), size, bytes, Buffer.from(appId)]);
  const pad = 32 - (plain.length % 32);
  const cipher = createCipheriv('aes-256-cbc', key, key.subarray(0, 16)).setAutoPadding(false);
  return Buffer.concat([cipher.update(Buffer.concat([plain, Buffer.alloc(pad, pad)])), cipher.final()]).toString('base64');
}

// Numbers stand bare, texts in CDATA, as WeChat writes them; objects one level deeper.
const element = (name, value) => {
  if (typeof value === 'object') return `<${name}>${Object.entries(value).map((pair) => element(...pair)).join('')}</${name}>`;
  if (typeof value === 'number' || typeof value === 'bigint') return `<${name}>${value}</${name}>`;
  return `<${name}><![CDATA[${value.replaceAll(']]>', ']]]]><![CDATA[>')}]]></${name}>`;
};
export const xml = (fields) => element('xml', fields);

export class Oa {
  constructor(options) {
    Object.assign(this, { mode: 'plain', verified: true, menuIds: true, tokenSeconds: 7200, callMs: 5000, calls: 3, hook: '' }, {
      appId: `wx${randomBytes(8).toString('hex')}`, secret: randomBytes(16).toString('hex'), token: randomBytes(8).toString('hex'),
      aesKey: randomBytes(32).toString('base64').slice(0, 43),
    }, options);
    this.requests = []; this.tokens = []; this.sends = []; this.typings = []; this.downloads = []; this.refused = []; this.violations = [];
    this.news = new EventEmitter().setMaxListeners(0);
    this.access = new Map(); // token: when it ends
    this.people = new Map(); // openid: {message, event}: {left, until} each
    this.media = new Map(); // id: {bytes, type}
    this.trouble = []; // {name, how}
    this.aheadMs = 0;
    this.nextMessage = 23_849_274_000_000_000_001n;
  }

  now() { return Date.now() + this.aheadMs; }
  advance(ms) { this.aheadMs += ms; }
  id(who) { return `o${Buffer.from(who).toString('base64url')}`; }

  async listen() {
    this.server = createServer((request, response) => {
      this.take(request, response).catch((error) => { this.violations.push(`the fake: ${error.stack}`); response.destroy(); });
    });
    this.server.keepAliveTimeout = 60_000;
    await new Promise((done) => { this.server.listen(0, '127.0.0.1', done); });
    this.url = `http://127.0.0.1:${this.server.address().port}`;
    return this;
  }

  async close() {
    this.server.closeAllConnections();
    await new Promise((done) => { this.server.close(done); });
  }

  note(list, entry) {
    list.push(entry);
    this.news.emit('news');
    return entry;
  }

  // ---- the API ----

  async take(request, response) {
    const pieces = [];
    let size = 0;
    for await (const piece of request.on('error', () => {})) {
      size += piece.length;
      if (size > BODY_BYTES_MAX) { response.destroy(); return; }
      pieces.push(piece);
    }
    const url = new URL(request.url, 'http://oa');
    const body = Buffer.concat(pieces).toString('utf8');
    const n = this.requests.length;
    this.note(this.requests, { n, path: url.pathname, body });
    const how = this.troubleOf(url.pathname.split('/').pop());
    if (how === 'cut') { response.destroy(); return; }
    if (how === 'hang') { await once(response, 'close'); return; }
    if (how?.delayMs) await pause(how.delayMs);
    const answer = how?.errcode ? { errcode: how.errcode, errmsg: how.errmsg ?? 'told so' } : how?.status ? null : this.answerOf(n, request.method, url, body);
    const left = typeof how === 'string' && (how === 'cut-after' || how === 'hang-after');
    const sent = this.sends.find((entry) => entry.n === n);
    if (sent) sent.answered = !left && how !== 'garbage';
    if (how === 'cut-after') response.destroy();
    else if (how === 'hang-after') await once(response, 'close');
    else if (how === 'garbage') response.writeHead(200).end('<html>');
    else if (how?.status) response.writeHead(how.status).end(how.body ?? '');
    else if (answer.bytes) response.writeHead(200, { 'content-type': answer.type, 'content-disposition': 'attachment; filename="m"' }).end(answer.bytes);
    else response.writeHead(200, { 'content-type': 'application/json; encoding=utf-8' }).end(JSON.stringify(answer));
  }

  answerOf(n, method, url, body) {
    try {
      const [expected, name, needsToken] = CALLS[url.pathname] ?? [];
      if (!name) throw new No(40066, 'invalid url');
      if (method !== expected) throw new No(method === 'GET' ? 43002 : 43001, `require ${expected} method`);
      if (needsToken) this.checkToken(url.searchParams.get('access_token') ?? '');
      return this[name](n, expected === 'POST' ? this.json(body) : url.searchParams);
    } catch (error) {
      if (!(error instanceof No)) throw error;
      this.note(this.refused, { n, path: url.pathname, code: error.code });
      return { errcode: error.code, errmsg: `${error.message} rid: ${n}` };
    }
  }

  json(body) {
    if (/\\u[0-9a-f]{4}/i.test(body)) this.violations.push(`a \\u escape, which people would see: ${body}`);
    try {
      return JSON.parse(body);
    } catch {
      throw new No(47001, 'data format error');
    }
  }

  checkToken(token) {
    if (!token) throw new No(41001, 'access_token missing');
    const ends = this.access.get(token);
    if (ends === undefined) throw new No(40001, 'invalid credential, access_token is invalid or not latest');
    if (ends <= this.now()) throw new No(42001, 'access_token expired');
  }

  stableToken(n, { grant_type: grant, appid, secret, force_refresh: forced = false }) {
    if (grant !== 'client_credential') throw new No(40002, 'invalid grant_type');
    if (appid !== this.appId) throw new No(40013, 'invalid appid');
    if (secret !== this.secret) throw new No(40125, 'invalid appsecret');
    let [token] = [...this.access].filter(([, ends]) => ends - this.now() > 300_000).map(([text]) => text);
    if (!token || forced) {
      token = `${randomBytes(60).toString('base64url')}-_`;
      this.access.set(token, this.now() + this.tokenSeconds * 1000);
    }
    this.note(this.tokens, { n, given: token, forced });
    return { access_token: token, expires_in: Math.floor((this.access.get(token) - this.now()) / 1000) };
  }

  // Of what somebody allowed, what ends first is used first.
  spend(openid) {
    const grants = Object.values(this.people.get(openid) ?? {}).filter(({ until }) => until > this.now());
    if (!grants.length) throw new No(45015, 'response out of time limit or subscription is canceled');
    const grant = grants.filter(({ left }) => left > 0).sort((a, b) => a.until - b.until)[0];
    if (!grant) throw new No(45047, 'out of response count limit');
    grant.left--;
  }

  customSend(n, body) {
    const { touser, msgtype, text, msgmenu } = body;
    if (typeof touser !== 'string' || !this.people.has(touser)) throw new No(40003, 'invalid openid');
    if (msgtype !== 'text' && msgtype !== 'msgmenu') throw new No(40008, 'invalid message type');
    if (msgtype === 'msgmenu' && !this.verified) throw new No(40200, 'invalid account type');
    const words = msgtype === 'text' ? text?.content : msgmenu?.head_content;
    if (typeof words !== 'string' || !words) throw new No(44004, 'empty content');
    if (Buffer.byteLength(words) > TEXT_BYTES_MAX) throw new No(45002, 'content size out of limit');
    if (msgmenu && !msgmenu.list?.every(({ id, content }) => typeof id === 'string' && content)) throw new No(47001, 'data format error');
    this.spend(touser);
    this.note(this.sends, { n, to: touser, text: words, menu: msgmenu?.list ?? null, answered: true });
    return { errcode: 0, errmsg: 'ok' };
  }

  customTyping(n, { touser, command }) {
    if (!this.people.has(touser)) throw new No(40003, 'invalid openid');
    if (command !== 'Typing' && command !== 'CancelTyping') throw new No(45072, 'invalid command');
    this.note(this.typings, { n, to: touser, command });
    return { errcode: 0, errmsg: 'ok' };
  }

  mediaGet(n, query) {
    const mediaId = query.get('media_id');
    const found = this.media.get(mediaId);
    if (!found) throw new No(40007, 'invalid media_id');
    this.note(this.downloads, { n, mediaId });
    return found;
  }

  // ---- calls to the account ----

  // A call with this message, as it is made now. Members may be given: timestamp, nonce, token, aesKey, appId, mode.
  signed(message, given = {}) {
    const { token, aesKey, appId, mode } = { token: this.token, aesKey: this.aesKey, appId: this.appId, mode: this.mode, ...given };
    const timestamp = String(given.timestamp ?? Math.floor(this.now() / 1000));
    const nonce = given.nonce ?? String(Math.floor(Math.random() * 2 ** 31));
    const query = new URLSearchParams({ signature: sign(token, timestamp, nonce), timestamp, nonce, openid: 'o' });
    if (mode === 'plain') return { query, body: message };
    const sealed = encrypt(aesKey, appId, message);
    query.set('encrypt_type', 'aes');
    query.set('msg_signature', sign(token, timestamp, nonce, sealed));
    const wrapped = element('Encrypt', sealed);
    const body = mode === 'compatible' ? message.replace(/<\/xml>$/, `${wrapped}</xml>`) : `<xml>${element('ToUserName', 'gh_fermata')}${wrapped}</xml>`;
    return { query, body };
  }

  async exchange(query, init) {
    const begun = performance.now();
    try {
      const answer = await fetch(`${this.hook}?${query}`, { ...init, signal: AbortSignal.timeout(this.callMs) });
      return { status: answer.status, body: await answer.text(), type: answer.headers.get('content-type'), ms: performance.now() - begun };
    } catch (error) {
      return { status: 0, body: '', why: String(error), ms: performance.now() - begun };
    }
  }

  get(query) { return this.exchange(query, {}); }
  post({ query, body }) { return this.exchange(query, { method: 'POST', headers: { 'content-type': 'text/xml' }, body }); }

  async verify() {
    const { query } = this.signed('', { mode: 'plain' });
    query.delete('openid');
    query.set('echostr', String(this.nextMessage));
    const answer = await this.get(query);
    if (answer.status !== 200 || answer.body !== query.get('echostr')) throw new Error(`not verified: ${answer.status} ${answer.body}`);
  }

  // Until it is answered well, as WeChat does: the same message, each time signed anew.
  async deliver(said) {
    for (let i = 0; i < this.calls && !said.taken; i++) {
      const answer = await this.post(this.signed(said.xml));
      said.answers.push(answer);
      said.taken = answer.status === 200 && (answer.body === 'success' || answer.body === '');
    }
    return said;
  }

  push(who, fields, grant = MESSAGE) {
    const openid = this.id(who);
    const known = this.people.get(openid) ?? {};
    known[grant === MESSAGE ? 'message' : 'event'] = { left: grant.sends, until: this.now() + grant.ms };
    this.people.set(openid, known);
    const id = fields.MsgType === 'event' ? undefined : this.nextMessage++;
    const whole = { ToUserName: 'gh_fermata', FromUserName: openid, CreateTime: Math.floor(this.now() / 1000), ...fields };
    if (id !== undefined) whole.MsgId = id;
    return this.deliver({ id: id === undefined ? '' : String(id), fields: whole, xml: xml(whole), answers: [], taken: false });
  }

  say(who, text) { return this.push(who, { MsgType: 'text', Content: text }); }
  event(who, event, more = {}) { return this.push(who, { MsgType: 'event', Event: event, ...more }, EVENT); }
  press(who, sent, label) {
    const line = sent.menu?.find(({ content }) => content === label);
    if (!line) throw new Error(`no line "${label}" in the menu`);
    return this.push(who, { MsgType: 'text', Content: label, bizmsgmenuid: this.menuIds ? line.id : '0' }, EVENT);
  }
  image(who, bytes, { type = 'image/jpeg' } = {}) { return this.push(who, { MsgType: 'image', PicUrl: 'http://mmbiz.invalid/1', MediaId: this.keep(bytes, type) }); }
  voice(who, bytes, more = {}) { return this.push(who, { MsgType: 'voice', Format: 'amr', MediaId: this.keep(bytes, 'audio/amr'), ...more }); }

  async repeat(said) {
    const answer = await this.post(this.signed(said.xml));
    said.answers.push(answer);
    return answer;
  }

  keep(bytes, type) {
    const mediaId = randomBytes(24).toString('base64url');
    this.media.set(mediaId, { bytes, type });
    return mediaId;
  }

  // ---- trouble and waiting ----

  failNext(name, how, times = 1) { for (let i = 0; i < times; i++) this.trouble.push({ name, how }); }
  failures() { return this.trouble.length; }
  troubleOf(name) {
    const at = this.trouble.findIndex((entry) => entry.name === name);
    return at < 0 ? undefined : this.trouble.splice(at, 1)[0].how;
  }
  dropTokens() { this.access.clear(); }

  async waitFor(list, match = () => true, { from = 0, timeoutMs = 30_000 } = {}) {
    const fits = (entry) => (typeof match === 'function' ? match(entry) : match instanceof RegExp ? match.test(entry.text) : entry.text === match);
    const until = AbortSignal.timeout(timeoutMs);
    for (;;) {
      const found = this[list].slice(from).find(fits);
      if (found) return found;
      try {
        await once(this.news, 'news', { signal: until });
      } catch {
        throw new Error(`nothing in ${list} is ${match} after ${timeoutMs} ms: ${JSON.stringify(this[list].slice(from))}`);
      }
    }
  }
  waitForSend(match, options) { return this.waitFor('sends', match, options); }
}

export const startOa = (options = {}) => new Oa(options).listen();

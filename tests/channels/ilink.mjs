// SPDX-License-Identifier: Apache-2.0
//
// WeChat's iLink server on loopback, as a client sees it: sign-in by QR code, long polls with cursors, messages out
// within a quota and a window, typing, files through an encrypting CDN. What the rules of the protocol forbid
// (ilink-rules.mjs) is answered with 400 and stands in `ilink.violations`, which a test expects to be empty at its end.
//
//   const ilink = await startIlink({ holdMs: 2000 });
//   ... base_url: ilink.url, and the token ilink.token; or sign in, see below ...
//   const said = ilink.say('alice', 'hello');                // {id, contextToken}; alice becomes alice@im.wechat
//   const sent = await ilink.waitForSend(/hi/);              // {to, text, file, clientId, contextToken, id, ...}
//   ilink.say('alice', '2', { quote: sent.id });
//   assert.deepEqual(ilink.violations, []);
//   await ilink.close();
//
// Options, all of them optional; quota, windowMs, holdMs, fullUrls and strictTokens may be changed later:
//   holdMs: 35000      how long a poll is held, and the hint given to the client    hintMs   another hint
//   quota: 10          sends for each message of a person     windowMs: 24 h   after it
//   token, botId, userId   the account that exists from the start; token: null: none, somebody has to sign in
//   firstId: 7448678501208393001n   of messages, both ways; ids are JSON numbers beyond 2^53; textIds: true: strings
//   fullUrls: true     whole addresses of the CDN, as new servers give; false: only parameters
//   strictTokens: false    true: only the newest context token of a person is good
//   login: [...]       what the polls of a sign-in are told, one entry each, see "Signing in"
//
// What came, in order; every entry has `n`, the number of its request, and `at`, of the fake's clock:
//   requests [{endpoint, method, url, headers, body}]   everything, refused or not
//   polls    [{cursor, position, given}]                how many messages an answer carried; given: null while it is held
//   sends    [{to, text | file, clientId, contextToken, id, stale, answered}]   what a person now sees on the phone.
//            file: {kind: 'image' | 'file', name, bytes}; stale: not the newest token; answered: false if it was cut
//   refused  [{to, text, clientId, errmsg}]             sends that were not taken
//   typings  [{user, status}]      uploads [{kind, to, bytes, key, filekey}]      downloads [{param}]
//   logins   [{tokens}]            QR codes asked for, with local_token_list
//   statuses [{typed, status}]     how a sign-in was told to stand; typed: the code that came with the question
//   violations [string]            overlaps: how often a second poll came while one was held
//
// People: say(user, text, options) is a message of theirs. Options: quote: id of a message; file or files: {kind:
//   'image' | 'voice' | 'file' | 'video', name, bytes, text (a voice's transcript), key: 'hex' | 'raw' | 'aeskey' |
//   'none'}; raw: {...} members over those of the message; token: '' for none. text may be empty. repeat(id) delivers
//   it once more. Messages of one call to sayAll([[user, text, options], ...]) come in one poll.
//   Sends to a person begin anew with each message of theirs.
// Time: advance(ms) moves the fake's clock, and with it the window. now() reads it.
// Trouble: failNext(endpoint, how, times = 1); endpoint as in the path: 'sendmessage', 'getupdates', 'upload', ...
//   how: 'cut' before anything happens; 'cut-after' it happened, without an answer; 'cut-half' in the middle of the
//   answer; 'hang' and 'hang-after' no answer until the client leaves; 'garbage' no JSON; {status, body, headers};
//   {ret, errcode, errmsg}: refused so; {delayMs}: late; {until}: a promise, late until it is kept. failures() says how
//   many still wait.
//   killToken(), reviveToken(): -14 for everybody from now on, and no longer. down(), up(): nobody listens, and again.
// Waiting: waitForSend(match, {from: 0, timeoutMs: 10000}): the first send from index `from` on that matches: a text, a
//   RegExp or a function of the entry. waitFor('typings', match, options) for the other lists.
//   waitUntilRead(): until the client polls from behind the newest message, which it therefore has.
// Signing in: `login` and script(list) say what each poll of the status is told: a status ('wait', 'scaned', 'expired',
//   ...), {status, ...members}, or {verify: '4821'}: need_verifycode until that code comes, blocked after three others.
//   Without an entry a poll is held until one of these is called: scan(), askCode('4821'), confirm({token, userId,
//   botId, baseurl}), expire(), bound(), redirect(). After redirect() only farUrl, another port, knows the code.
//   confirm gives a new token, and the older ones of that person are dead. qr: {key, content} is the newest code.

import { randomBytes } from 'node:crypto';
import { EventEmitter } from 'node:events';
import { createServer } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';

import * as rules from './ilink-rules.mjs';

const DAY_MS = 24 * 60 * 60 * 1000;
const BODY_BYTES_MAX = 64 * 1024 * 1024;
const TEXT_BYTES_MAX = 16384;
const VERIFY_TRIES_MAX = 3;
const KINDS = { image: [1, 2, 'image_item'], video: [2, 5, 'video_item'], file: [3, 4, 'file_item'], voice: [4, 3, 'voice_item'] };
const SESSION_OVER = { errcode: -14, errmsg: 'session timeout' };
const AGAIN = { ret: 0 };

const opaque = (bytes = 18) => randomBytes(bytes).toString('base64');
const userId = (user) => (user.includes('@') ? user : `${user}@im.wechat`);

export class Ilink {
  constructor(options) {
    Object.assign(this, {
      holdMs: 35_000, quota: 10, windowMs: DAY_MS, fullUrls: true, strictTokens: false, textIds: false,
      botId: `${randomBytes(6).toString('hex')}@im.bot`, userId: 'alice@im.wechat', token: `bot-${opaque()}`,
      firstId: 7448678501208393001n,
    }, options);
    this.userId = userId(this.userId);
    this.requests = []; this.polls = []; this.sends = []; this.refused = []; this.typings = [];
    this.uploads = []; this.downloads = []; this.logins = []; this.statuses = []; this.violations = []; this.overlaps = 0;
    this.news = new EventEmitter().setMaxListeners(0);
    this.tokens = new Map(); // token: {userId, dead}
    if (this.token) this.tokens.set(this.token, { userId: this.userId, dead: false });
    this.messages = []; // in the order of delivery; a cursor is a position in it
    this.cursors = new Map(); // cursor: position
    this.people = new Map(); // user: {tokens, heard, used}
    this.shelf = new Map(); // of the CDN: parameter: {sealed, key, raw}
    this.tickets = new Map();
    this.slots = new Map(); // upload parameter: what is to come
    this.uins = new Set();
    this.plans = new Map(); // endpoint: what goes wrong next
    this.steps = [...(options.login ?? [])];
    this.nextId = BigInt(this.firstId);
    this.offsetMs = 0;
    this.dead = false;
  }

  async start() {
    this.near = createServer((request, response) => this.serve(request, response, false));
    this.far = createServer((request, response) => this.serve(request, response, true));
    for (const server of [this.near, this.far]) server.keepAliveTimeout = 60_000;
    await Promise.all([this.near, this.far].map((server) => listen(server, 0)));
    this.port = this.near.address().port;
    this.url = `http://127.0.0.1:${this.port}`;
    this.farUrl = `http://127.0.0.1:${this.far.address().port}`;
    this.cdn = `${this.url}/c2c`;
    return this;
  }

  async close() {
    this.closed = true;
    this.news.emit('closed');
    await Promise.all([this.near, this.far].map(stop));
  }

  down() { return stop(this.near); }
  up() { return listen(this.near, this.port); }

  now() { return Date.now() + this.offsetMs; }
  advance(ms) { this.offsetMs += ms; }
  killToken() { this.dead = true; this.news.emit('change'); }
  reviveToken() { this.dead = false; }

  failNext(endpoint, how, times = 1) {
    const list = this.plans.get(endpoint) ?? [];
    for (let i = 0; i < times; i++) list.push(how);
    this.plans.set(endpoint, list);
  }
  failures() { return [...this.plans.values()].reduce((sum, list) => sum + list.length, 0); }

  // ---- what people say ----

  say(user, text, options = {}) { return this.sayAll([[user, text, options]])[0]; }

  sayAll(list) {
    const said = list.map(([user, text, options = {}]) => this.compose(userId(user), text, options));
    this.news.emit('change');
    return said;
  }

  compose(user, text, { quote, file, files = file ? [file] : [], raw = {}, token = opaque() }) {
    const person = this.people.get(user) ?? { tokens: [] };
    if (token) person.tokens.push(token);
    Object.assign(person, { heard: this.now(), used: 0 });
    this.people.set(user, person);
    const id = this.nextId++;
    const ref = quote === undefined ? undefined : { svr_id: this.textIds ? String(quote) : BigInt(quote) };
    const items = files.map((each) => this.itemOf(each));
    if (text || !items.length) items.unshift({ type: 1, text_item: { text: text ?? '' }, ref_msg: ref, is_completed: true });
    const message = {
      seq: this.messages.length + 1, message_id: this.textIds ? String(id) : id, from_user_id: user, to_user_id: this.botId,
      client_id: `phone-${id}`, create_time_ms: this.now(), update_time_ms: this.now(), delete_time_ms: 0, session_id: '',
      group_id: '', message_type: 1, message_state: 2, item_list: items, context_token: token, ...raw,
    };
    this.messages.push(message);
    return { id: String(message.message_id), contextToken: token };
  }

  repeat(id) {
    this.messages.push(this.messages.find((message) => String(message.message_id) === String(id)));
    this.news.emit('change');
  }

  itemOf({ kind = 'file', name = 'note.txt', bytes, text, key = kind === 'image' ? 'aeskey' : 'hex' }) {
    const raw = Buffer.from(bytes);
    const secret = randomBytes(16).toString('hex');
    const param = opaque(30);
    this.shelf.set(param, { bytes: key === 'none' ? raw : rules.seal(raw, secret) });
    const media = { encrypt_query_param: param, encrypt_type: 0 };
    if (this.fullUrls) media.full_url = `${this.cdn}/download?encrypted_query_param=${encodeURIComponent(param)}`;
    if (key === 'hex') media.aes_key = Buffer.from(secret).toString('base64');
    if (key === 'raw') media.aes_key = Buffer.from(secret, 'hex').toString('base64');
    const payload = { media };
    if (key === 'aeskey') payload.aeskey = secret;
    if (kind === 'file') Object.assign(payload, { file_name: name, md5: rules.md5(raw), len: String(raw.length) });
    if (kind === 'image') Object.assign(payload, { mid_size: rules.sealedBytes(raw.length) });
    if (kind === 'video') Object.assign(payload, { video_size: rules.sealedBytes(raw.length), play_length: 2 });
    if (kind === 'voice') Object.assign(payload, { encode_type: 6, sample_rate: 24000, playtime: 1500, text });
    return { type: KINDS[kind][1], [KINDS[kind][2]]: payload };
  }

  // ---- waiting ----

  waitForSend(match, options) { return this.waitFor('sends', match, options); }

  async waitFor(list, match = () => true, { from = 0, timeoutMs = 30_000 } = {}) {
    const fits = typeof match === 'function' ? match
      : (entry) => (match instanceof RegExp ? match.test(entry.text ?? '') : entry.text === match);
    const find = () => this[list].slice(from).find(fits);
    return this.until(find, timeoutMs, () => `no entry of ${list} matches ${match}; there are ${rules.toJson(this[list].slice(from)).slice(0, 2000)}`);
  }

  waitUntilRead({ timeoutMs = 30_000 } = {}) {
    return this.until(() => this.polls.some((poll) => poll.position === this.messages.length), timeoutMs,
      () => `nobody polled from behind message ${this.messages.length}`);
  }

  async until(find, timeoutMs, what) {
    const limit = AbortSignal.timeout(timeoutMs);
    for (let found = find(); ; found = find()) {
      if (found) return found;
      await new Promise((resolve, reject) => {
        const end = (settle, value) => {
          this.news.off('record', woken).off('closed', closed);
          limit.removeEventListener('abort', late);
          settle(value);
        };
        const woken = () => end(resolve);
        const closed = () => end(reject, new Error(`closed: ${what()}`));
        const late = () => end(reject, new Error(`${timeoutMs} ms: ${what()}`));
        this.news.on('record', woken).on('closed', closed);
        limit.addEventListener('abort', late);
        if (limit.aborted) late();
      });
    }
  }

  record(list, n, entry) {
    const made = Object.assign(entry, { n, at: this.now() });
    this[list].push(made);
    this.news.emit('record');
    return made;
  }

  // ---- signing in ----

  script(list) { this.steps.push(...list); this.news.emit('change'); }
  tell(status, members = {}) { Object.assign(this.qr, { status, members, told: false }); this.news.emit('change'); }
  scan() { this.tell('scaned'); }
  expire() { this.tell('expired'); }
  bound() { this.tell('binded_redirect'); }
  redirect() { this.tell('scaned_but_redirect', { redirect_host: new URL(this.farUrl).host }); }
  askCode(code) { Object.assign(this.qr, { code, tries: 0 }); this.tell('need_verifycode'); }
  confirm(options) { this.tell('confirmed', this.bind(options)); }

  bind({ token = `bot-${opaque()}`, userId: user = this.userId, botId = this.botId, baseurl = '' } = {}) {
    Object.assign(this, { token, userId: userId(user), botId });
    for (const account of this.tokens.values()) if (account.userId === this.userId) account.dead = true;
    this.tokens.set(token, { userId: this.userId, dead: false });
    this.dead = false;
    return { bot_token: token, ilink_bot_id: botId, ilink_user_id: this.userId, baseurl };
  }

  get_bot_qrcode({ n, body, url }) {
    if (url.searchParams.get('bot_type') !== '3') this.violate(n, 'bot_type is not 3');
    if (body.base_info) this.violate(n, 'base_info on the QR code');
    if (!Array.isArray(body.local_token_list) || body.local_token_list.length > 10) this.violate(n, 'no local_token_list');
    this.record('logins', n, { tokens: body.local_token_list });
    const key = randomBytes(12).toString('hex');
    this.qr = { key, content: `https://liteapp.weixin.qq.com/q/${key.slice(0, 6)}?qrcode=${key}&bot_type=3`, status: 'wait', told: true };
    return { ret: 0, qrcode: key, qrcode_img_content: this.qr.content };
  }

  async get_qrcode_status(call) {
    const typed = call.url.searchParams.get('verify_code') ?? undefined;
    const answer = await this.statusOf(call, call.url.searchParams.get('qrcode'), typed);
    this.record('statuses', call.n, { typed, status: answer.status });
    return answer;
  }

  async statusOf({ n, far, gone }, key, typed) {
    if (key !== this.qr?.key) return { ret: 0, status: 'expired' };
    if (far !== Boolean(this.qr.far)) this.violate(n, 'a poll of the status at the wrong host');
    const ready = () => this.qr.key !== key || this.steps.length || !this.qr.told || (typed && this.qr.code);
    if (!await this.held(ready, gone)) {
      const { status } = this.qr;
      return { ret: 0, status: status === 'scaned_but_redirect' ? 'scaned' : status };
    }
    if (this.qr.key !== key) return { ret: 0, status: 'expired' };
    if (this.steps.length && !(typed && this.qr.code)) this.play(this.steps.shift());
    if (this.qr.code && typed) this.verify(typed);
    Object.assign(this.qr, { told: true, far: this.qr.far || this.qr.status === 'scaned_but_redirect' });
    return { ret: 0, status: this.qr.status, ...this.qr.members };
  }

  play(step) {
    if (step.verify) this.askCode(step.verify);
    else if (step === 'confirmed') this.confirm();
    else if (step === 'scaned_but_redirect') this.redirect();
    else {
      const { status, ...members } = step.status ? step : { status: step };
      this.tell(status, members);
    }
  }

  verify(typed) {
    const good = typed === this.qr.code;
    this.qr.tries += good ? 0 : 1;
    this.qr.status = good ? 'scaned' : this.qr.tries < VERIFY_TRIES_MAX ? 'need_verifycode' : 'verify_code_blocked';
    if (this.qr.status !== 'need_verifycode') this.qr.code = undefined;
  }

  // ---- the endpoints ----

  async getupdates({ n, body, gone }) {
    const cursor = body.get_updates_buf;
    const position = cursor === '' ? 0 : this.cursors.get(cursor);
    if (position === undefined) return this.violate(n, 'a cursor that was never given');
    if (this.poller) this.overlaps++;
    const me = this.poller = {};
    this.news.emit('change');
    const poll = this.record('polls', n, { cursor, position, given: null });
    const ready = () => this.messages.length > position || this.dead || this.poller !== me;
    await this.held(ready, gone);
    if (this.poller === me) this.poller = undefined;
    if (this.dead) return SESSION_OVER;
    if (gone.aborted) return AGAIN;
    const msgs = this.messages.slice(position);
    poll.given = msgs.length;
    const next = msgs.length ? opaque(24) : cursor;
    this.cursors.set(next, position + msgs.length);
    return { ret: 0, msgs, get_updates_buf: next, sync_buf: '', longpolling_timeout_ms: this.hintMs ?? this.holdMs };
  }

  sendmessage({ n, body }) {
    const { msg } = body;
    const wrong = rules.messageWrong(msg, this.shelf);
    if (wrong.length) return this.violate(n, ...wrong);
    const [item] = msg.item_list;
    const text = item.text_item?.text;
    const person = this.people.get(msg.to_user_id);
    const entry = { to: msg.to_user_id, text, clientId: msg.client_id, contextToken: msg.context_token ?? '' };
    const errmsg = this.refusal(person, entry);
    if (errmsg !== undefined) {
      this.record('refused', n, { ...entry, errmsg });
      return { ret: -2, errmsg };
    }
    person.used++;
    entry.id = String(this.nextId++);
    entry.stale = person.tokens.at(-1) !== entry.contextToken;
    entry.answered = true;
    if (item.type !== 1) entry.file = this.fileOf(item);
    this.record('sends', n, entry);
    return { message_id: this.textIds ? entry.id : BigInt(entry.id) };
  }

  refusal(person, { contextToken, text }) {
    if (!person || !person.tokens.includes(contextToken)) return 'unknown error';
    if (this.strictTokens && person.tokens.at(-1) !== contextToken) return '';
    if (Buffer.byteLength(text ?? '') > TEXT_BYTES_MAX) return 'unknown error';
    if (this.now() - person.heard > this.windowMs || person.used >= this.quota) return 'prepare failed';
    return undefined;
  }

  fileOf(item) {
    const payload = item.image_item ?? item.file_item;
    const { raw } = this.shelf.get(payload.media.encrypt_query_param);
    return { kind: item.type === 2 ? 'image' : 'file', name: payload.file_name, bytes: raw };
  }

  getconfig({ body }) {
    if (!this.people.has(body.ilink_user_id)) return { ret: -1, errmsg: 'no such user' };
    const ticket = opaque();
    this.tickets.set(ticket, body.ilink_user_id);
    return { ...AGAIN, typing_ticket: ticket };
  }

  sendtyping({ n, body }) {
    if (this.tickets.get(body.typing_ticket) !== body.ilink_user_id) return this.violate(n, 'a ticket that is not theirs');
    if (![1, 2].includes(body.status)) return this.violate(n, 'a status of typing that is none');
    this.record('typings', n, { user: body.ilink_user_id, status: body.status });
    return AGAIN;
  }

  getuploadurl({ n, body }) {
    const wrong = rules.uploadWrong(body);
    if (wrong.length) return this.violate(n, ...wrong);
    if (!this.people.has(body.to_user_id)) return { ret: -1, errmsg: 'invalid to_user_id' };
    const param = opaque(30);
    this.slots.set(param, body);
    if (!this.fullUrls) return { upload_param: param };
    return { upload_full_url: `${this.cdn}/upload?encrypted_query_param=${encodeURIComponent(param)}&filekey=${body.filekey}` };
  }

  notifystart() { return AGAIN; }
  notifystop() { return AGAIN; }

  // ---- the CDN ----

  upload({ n, method, headers, url, bytes }) {
    const plan = this.slots.get(url.searchParams.get('encrypted_query_param'));
    const failed = (why) => ({ http: 400, headers: { 'x-error-message': why } });
    if (method !== 'POST' || headers['content-type'] !== 'application/octet-stream') return this.violate(n, 'an upload that is none');
    if (!plan || plan.filekey !== url.searchParams.get('filekey')) return failed('no such upload');
    if (bytes.length !== plan.filesize) return failed('size');
    let raw;
    try { raw = rules.unseal(bytes, plan.aeskey); } catch { return failed('cipher'); }
    if (raw.length !== plan.rawsize || rules.md5(raw) !== plan.rawfilemd5) return failed('md5');
    const param = opaque(30);
    this.shelf.set(param, { bytes, raw, key: plan.aeskey, sealed: bytes.length });
    const kind = Object.keys(KINDS).find((name) => KINDS[name][0] === plan.media_type);
    this.record('uploads', n, { kind, to: plan.to_user_id, bytes: raw, key: plan.aeskey, filekey: plan.filekey });
    return { http: 200, headers: { 'x-encrypted-param': param } };
  }

  download({ n, url }) {
    const param = url.searchParams.get('encrypted_query_param');
    const kept = this.shelf.get(param);
    if (!kept) return { http: 404, headers: { 'x-error-message': 'no such file' } };
    this.record('downloads', n, { param });
    return { http: 200, body: kept.bytes, headers: { 'content-type': 'application/octet-stream' } };
  }

  // ---- HTTP ----

  violate(n, ...what) {
    this.violations.push(...what.map((each) => `request ${n} (${this.requests[n].endpoint}): ${each}`));
    return { http: 400, body: what.join('; ') };
  }

  // Until it is true; false if the time is over, the client is gone or the server closes.
  async held(ready, gone) {
    const end = Date.now() + this.holdMs;
    while (!ready()) {
      const left = end - Date.now();
      if (left <= 0 || gone.aborted || this.closed) return false;
      await new Promise((resolve) => {
        const timer = setTimeout(done, left);
        const { news } = this;
        function done() {
          clearTimeout(timer);
          news.off('change', done).off('closed', done);
          gone.removeEventListener('abort', done);
          resolve();
        }
        news.on('change', done).on('closed', done);
        gone.addEventListener('abort', done);
      });
    }
    return !gone.aborted;
  }

  async serve(request, response, far) {
    const leave = new AbortController();
    response.on('close', () => leave.abort());
    request.on('error', () => {});
    try {
      const bytes = await readAll(request);
      const call = this.callOf(request, bytes, far, leave.signal);
      const how = this.plans.get(call.endpoint)?.shift();
      if (how?.delayMs) await pause(how.delayMs, undefined, { signal: leave.signal, ref: false });
      if (how?.until) await how.until;
      if (how === 'cut') return void request.socket.destroy();
      if (how === 'hang') return undefined;
      const told = typeof how === 'object' && ['status', 'ret', 'errcode'].some((name) => name in how);
      const { status: http, delayMs, ...members } = told ? how : {};
      const answer = told ? { ...members, ...http && { http } } : await this.answerTo(call);
      if (leave.signal.aborted) return undefined;
      return this.deliver(request, response, call, answer, how);
    } catch (error) {
      if (!leave.signal.aborted) {
        this.violations.push(`${request.method} ${request.url}: ${error.stack}`);
        response.destroy();
      }
      return undefined;
    }
  }

  callOf({ method, url, headers }, bytes, far, gone) {
    const parsed = new URL(url, this.url);
    const endpoint = /^\/(?:ilink\/bot(?:\/msg)?|c2c)\/(\w+)$/.exec(parsed.pathname)?.[1] ?? parsed.pathname;
    const cdn = parsed.pathname.startsWith('/c2c/');
    const call = { n: this.requests.length, at: this.now(), endpoint, method, url: parsed, headers, far, gone, cdn, bytes };
    if (!cdn && bytes.length) call.body = JSON.parse(bytes.toString('utf8'));
    this.requests.push({ n: call.n, at: call.at, endpoint, method, url, headers, body: cdn ? bytes : call.body });
    return call;
  }

  async answerTo(call) {
    const { n, endpoint, method, cdn } = call;
    const known = cdn ? ['upload', 'download'] : ENDPOINTS;
    if (!known.includes(endpoint)) return this.violate(n, 'there is no such endpoint');
    if (cdn) {
      const wrong = rules.cdnHeadersWrong(call);
      return wrong.length ? this.violate(n, ...wrong) : this[endpoint](call);
    }
    const open = endpoint === 'get_bot_qrcode' || endpoint === 'get_qrcode_status';
    const wrong = rules.headersWrong(call, !open, this.uins);
    if (method !== (endpoint === 'get_qrcode_status' ? 'GET' : 'POST')) wrong.push(`${method} is not its method`);
    if (!open) wrong.push(...rules.baseInfoWrong(call.body?.base_info));
    if (wrong.length) return this.violate(n, ...wrong);
    if (open) return this[endpoint](call);
    const account = this.tokens.get(call.headers.authorization.slice('Bearer '.length));
    if (!account || account.dead || this.dead) return SESSION_OVER;
    return this[endpoint](call);
  }

  deliver(request, response, call, answer, how) {
    const sent = this.sends.find((send) => send.n === call.n);
    if (how === 'cut-after' || how === 'hang-after' || how === 'cut-half') {
      if (sent) sent.answered = false;
      if (how === 'hang-after') return;
      if (how === 'cut-after') return void request.socket.destroy();
    }
    const { http = 200, headers = {} } = answer.http ? answer : {};
    const plain = Buffer.from(answer.http ? answer.body ?? '' : rules.toJson(answer));
    const body = how === 'garbage' ? Buffer.from('<html>bad gateway</html>') : plain;
    response.writeHead(http, { 'content-type': 'application/json', ...headers, 'content-length': body.length });
    if (how === 'cut-half') response.write(body.subarray(0, body.length >> 1), () => request.socket.destroy());
    else response.end(body);
  }
}

const ENDPOINTS = ['get_bot_qrcode', 'get_qrcode_status', 'getupdates', 'sendmessage', 'getconfig', 'sendtyping', 'getuploadurl',
  'notifystart', 'notifystop'];

function listen(server, port) {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, '127.0.0.1', () => {
      server.off('error', reject);
      resolve();
    });
  });
}

function stop(server) {
  return new Promise((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}

async function readAll(request) {
  const chunks = [];
  let size = 0;
  for await (const chunk of request) {
    size += chunk.length;
    if (size > BODY_BYTES_MAX) throw new Error('a body that is too large');
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

export function startIlink(options = {}) {
  return new Ilink(options).start();
}

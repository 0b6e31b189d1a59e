// SPDX-License-Identifier: Apache-2.0
//
// Telegram's Bot API on loopback, as a bot sees it: updates with offsets and long polls, messages out with buttons under
// them, presses, edits, files both ways. What Telegram would refuse is refused in its words; what it would silently
// ignore, and a bot should not do, stands in `telegram.violations`, which a test expects to be empty at its end.
//
//   const telegram = await startTelegram({ holdMs: 2000 });
//   ... base_url: telegram.url, and the token telegram.token ...
//   telegram.say('alice', 'hello');                          // {id: of the update, message, chat}
//   const asked = await telegram.waitForSend(/which day/);   // {chat, text | file, buttons: [{data, label}], id, ...}
//   const press = telegram.press(asked, 'Tuesday');          // a label or the data of a button; {id, callback}
//   await telegram.waitFor('toasts', ({ callback }) => callback === press.callback);
//   assert.equal(telegram.message(asked.id).buttons.length, 0);
//   assert.deepEqual(telegram.violations, []);
//   await telegram.close();
//
// Options, all of them optional; holdMs may be changed later:
//   token   'none': a token of the right form     holdMs   the longest that a poll is held, below its own timeout
//   firstId: 900000000001   of updates; beyond 32 bits        username: 'fermata_bot'
//
// What came, in order; every entry has `n`, the number of its request:
//   requests [{method, body, bytes}]        everything, refused or not
//   polls    [{offset, given}]              how many updates an answer carried; given: null while it is held
//   sends    [{chat, thread, text | file, buttons, id, answered}]   file: {kind: 'photo' | 'document', name, mime,
//            bytes}; chat: a number; thread: of a forum; answered: false if the bot was cut off
//   edits    [{id, chat, text, buttons}]    toasts [{callback, text}]   presses that were answered
//   typings  [{chat, action}]               downloads [{path}]          refused [{method, code, description}]
//   violations [string]
//
// People: say(who, text, options). `who` is a name; id(who) is the number. Options: group: 'team' says it in that group;
//   reply: a message of ours or its id; topic: number of a topic; photo, document, voice, video: {bytes, name, mime};
//   raw: {...} members over those of the message; from: {...} over those of the person. The text of a file is its
//   caption. edit(said, text) is an edit, which bots that do not ask for edits are not told. repeat(said) delivers it once
//   more, confirmed or not. press(sent, button, {by}): somebody else may press too. block(who), unblock(who).
//   A bot may only write to whoever wrote first.
// Trouble: failNext(method, how, times = 1); method as in the path: 'sendMessage', or 'file' for downloads.
//   how: 'cut' before anything happens; 'cut-after' it happened, without an answer; 'cut-half' in the middle of the
//   answer; 'hang' and 'hang-after' no answer until the bot leaves; 'garbage' no JSON; {code, description, parameters}:
//   refused so; {status, body}; {delayMs}: late. failures() says how many still wait.
//   flood(method, seconds, times): 429 with retry_after. webhook(url): as if setWebhook was called; '' for none.
//   newToken(): the old one is dead. pollElsewhere(): another program's poll, {done}: a promise of its answer.
// Waiting: waitForSend(match, {from: 0, timeoutMs: 10000}): the first send from index `from` on that matches: a text, a
//   RegExp or a function of the entry. waitFor('typings', match, options) for the other lists.
//   waitUntilRead(): until a poll has confirmed the newest update.

import { randomBytes } from 'node:crypto';
import { EventEmitter } from 'node:events';
import { createServer } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';

const TEXT_UNITS_MAX = 4096; // JavaScript counts as Telegram does
const TOAST_CHARS_MAX = 200;
const DATA_BYTES_MAX = 64;
const BUTTONS_MAX = 100;
const GET_FILE_BYTES_MAX = 20 * 1024 * 1024;
const PHOTO_BYTES_MAX = 10 * 1024 * 1024;
const BODY_BYTES_MAX = 64 * 1024 * 1024;
const TOKEN = /^\d+:[\w-]{20,}$/;

const newSecret = () => `${7_000_000_000 + Math.floor(Math.random() * 1e9)}:${randomBytes(26).toString('base64url')}`;
const isPicture = (bytes) => bytes.subarray(0, 4).toString('latin1') === '\x89PNG' || bytes.readUInt16BE(0) === 0xffd8
  || bytes.subarray(8, 12).toString('latin1') === 'WEBP';

// A refusal, in the form that Telegram gives it.
class No extends Error {
  constructor(code, description, parameters) {
    super(description);
    Object.assign(this, { code, parameters });
  }
}
const bad = (why) => new No(400, `Bad Request: ${why}`);

// method: parameters that are known; what is done with them
const METHODS = {
  getMe: [[], 'getMe'],
  getUpdates: [['offset', 'limit', 'timeout', 'allowed_updates'], 'getUpdates'],
  setWebhook: [['url'], 'setWebhook'],
  deleteWebhook: [['drop_pending_updates'], 'deleteWebhook'],
  sendMessage: [['chat_id', 'message_thread_id', 'text', 'link_preview_options', 'reply_markup'], 'sendMessage'],
  sendPhoto: [['chat_id', 'message_thread_id', 'photo'], 'sendFile'],
  sendDocument: [['chat_id', 'message_thread_id', 'document'], 'sendFile'],
  sendChatAction: [['chat_id', 'message_thread_id', 'action'], 'sendChatAction'],
  answerCallbackQuery: [['callback_query_id', 'text'], 'answerCallbackQuery'],
  editMessageText: [['chat_id', 'message_id', 'text', 'link_preview_options', 'reply_markup'], 'editMessage'],
  editMessageReplyMarkup: [['chat_id', 'message_id', 'reply_markup'], 'editMessage'],
  getFile: [['file_id'], 'getFile'],
};

export class Telegram {
  constructor(options) {
    Object.assign(this, { token: newSecret(), holdMs: 50_000, firstId: 900_000_000_001, username: 'fermata_bot' }, options);
    this.requests = []; this.polls = []; this.sends = []; this.edits = []; this.toasts = []; this.typings = [];
    this.downloads = []; this.refused = []; this.violations = [];
    this.news = new EventEmitter().setMaxListeners(0);
    this.updates = []; // not confirmed yet, by id
    this.again = []; // repeats
    this.allowed = null; // kinds of updates; null: the usual ones
    this.nextUpdate = this.firstId;
    this.nextMessage = 1;
    this.people = new Map(); // name: user
    this.groups = new Map(); // name: chat
    this.chats = new Map(); // id: {chat, blocked}
    this.messages = new Map(); // id: {chat, ours, text, buttons}
    this.presses = new Map(); // callback id: {answered}
    this.files = new Map(); // file id: {path, bytes}
    this.trouble = []; // {method, how}
    this.hook = '';
    this.held = null; // the poll that waits: {refuse}
  }

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
    this.closed = true;
    this.news.emit('news');
    this.server.closeAllConnections();
    await new Promise((done) => { this.server.close(done); });
  }

  // ---- requests ----

  async take(request, response) {
    const pieces = [];
    let size = 0;
    for await (const piece of request.on('error', () => {})) {
      size += piece.length;
      if (size > BODY_BYTES_MAX) { response.destroy(); return; }
      pieces.push(piece);
    }
    const match = /^\/(file\/)?bot([^/]+)\/(.*)$/.exec(request.url);
    const method = match?.[1] ? 'file' : match?.[3];
    const how = this.troubleOf(method);
    const gone = new Promise((done) => { response.on('close', done); });
    if (how === 'cut') { response.destroy(); return; }
    if (how === 'hang') { await gone; return; }
    if (how?.delayMs) await pause(how.delayMs);
    const leave = how === 'cut-after' || how === 'hang-after';
    const [status, body] = how?.status ? [how.status, how.body ?? '']
      : await this.answerTo(request, match, method, Buffer.concat(pieces), { refusal: how?.code && how, gone, leave });
    if (how === 'hang-after') { await gone; return; }
    if (leave || response.destroyed) { response.destroy(); return; }
    const bytes = how === 'garbage' ? Buffer.from('<html>oh no') : Buffer.isBuffer(body) ? body : Buffer.from(body);
    const type = Buffer.isBuffer(body) ? 'application/octet-stream' : 'application/json';
    response.writeHead(status, { 'content-type': type, 'content-length': bytes.length });
    if (how === 'cut-half') response.write(bytes.subarray(0, bytes.length >> 1), () => response.destroy());
    else response.end(bytes);
  }

  async answerTo(request, match, method, bytes, { refusal, gone, leave }) {
    let body;
    const n = this.requests.length;
    this.requests.push({ n, method, path: request.url.split('/').slice(3).join('/'), bytes, get body() { return body; } });
    try {
      if (!match || !TOKEN.test(decodeURIComponent(match[2]))) throw new No(404, 'Not Found');
      if (decodeURIComponent(match[2]) !== this.token) throw new No(401, 'Unauthorized');
      if (refusal) throw new No(refusal.code, refusal.description ?? 'refused', refusal.parameters);
      if (method === 'file') return [200, this.download(request, decodeURIComponent(match[3]), n)];
      if (!METHODS[method]) throw new No(404, 'Not Found: method not found');
      body = await this.bodyOf(request, bytes);
      const [known, name] = METHODS[method];
      for (const key of Object.keys(body)) if (!known.includes(key)) this.violations.push(`${method}: unknown parameter ${key}`);
      const result = await this[name](body, { n, method, gone, leave });
      return [200, JSON.stringify({ ok: true, result })];
    } catch (error) {
      if (!(error instanceof No)) throw error;
      const { code, message: description, parameters } = error;
      this.add(this.refused, { n, method, code, description });
      return [code, JSON.stringify({ ok: false, error_code: code, description, ...parameters && { parameters } })];
    }
  }

  // Parameters from JSON or from a form; numbers of a form are texts, as Telegram has it.
  async bodyOf(request, bytes) {
    const type = request.headers['content-type'] ?? '';
    if (request.method !== 'POST') throw bad('this fake wants POST');
    if (type.startsWith('application/json')) {
      try {
        return JSON.parse(bytes.toString('utf8'));
      } catch {
        throw bad("can't parse JSON");
      }
    }
    if (!type.startsWith('multipart/form-data')) throw bad(`a body of type ${type}`);
    const form = await new Response(bytes, { headers: { 'content-type': type } }).formData().catch(() => { throw bad('the form is broken'); });
    const body = {};
    for (const [key, value] of form) {
      body[key] = typeof value === 'string' ? value
        : { name: value.name, mime: value.type, bytes: Buffer.from(await value.arrayBuffer()) };
    }
    if (/^-?\d+$/.test(body.chat_id ?? '')) body.chat_id = Number(body.chat_id);
    if (/^\d+$/.test(body.message_thread_id ?? '')) body.message_thread_id = Number(body.message_thread_id);
    return body;
  }

  add(list, entry) {
    list.push(entry);
    this.news.emit('news');
    return entry;
  }

  // ---- updates ----

  getMe() {
    return { id: Number(this.token.split(':')[0]), is_bot: true, first_name: 'Fermata', username: this.username };
  }

  // The newer of two polls stays; the older one is told.
  async getUpdates({ offset = 0, limit = 100, timeout = 0, allowed_updates: allowed }, { n, gone, leave }) {
    if (this.hook) throw new No(409, "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first");
    if (!Number.isInteger(offset) || !Number.isInteger(limit) || limit < 1 || limit > 100) throw bad('offset or limit');
    const poll = this.add(this.polls, { n, offset, given: null });
    this.held?.refuse(new No(409, 'Conflict: terminated by other getUpdates request; make sure that only one bot instance is running'));
    if (allowed) this.allowed = allowed;
    if (offset > 0) this.updates = this.updates.filter(({ update_id: id }) => id >= offset);
    const me = { no: null, refuse: (no) => { me.no = no; this.news.emit('news'); } };
    this.held = me;
    const until = Date.now() + Math.min(timeout * 1000, this.holdMs);
    let left = false;
    gone.then(() => { left = true; this.news.emit('news'); });
    while (!this.updates.length && !this.again.length && !me.no && !left && !this.closed && Date.now() < until) {
      await this.somethingNew(until - Date.now());
    }
    if (this.held === me) this.held = null;
    if (me.no) throw me.no;
    const given = left || leave ? [] : [...this.again.splice(0), ...this.updates].slice(0, limit);
    poll.given = given.length;
    this.news.emit('news');
    return given;
  }

  somethingNew(ms) {
    return new Promise((done) => {
      const timer = setTimeout(done, Math.max(ms, 1));
      this.news.once('news', () => { clearTimeout(timer); done(); });
    });
  }

  setWebhook({ url }) {
    this.webhook(url);
    return true;
  }

  deleteWebhook() {
    this.webhook('');
    return true;
  }

  webhook(url) {
    this.hook = url;
    if (url) this.held?.refuse(new No(409, 'Conflict: terminated by setWebhook request'));
  }

  // Ids count on for kinds that nobody asked for, too.
  update(kind, body) {
    const update = { update_id: this.nextUpdate++, [kind]: body };
    if (!this.allowed || this.allowed.includes(kind)) this.updates.push(update);
    this.news.emit('news');
    return update;
  }

  // ---- people ----

  id(who) {
    return this.person(who).id;
  }

  person(name) {
    if (!this.people.has(name)) {
      const user = { id: 5_000_000_000 + this.people.size, is_bot: false, first_name: name, language_code: 'en' };
      this.people.set(name, user);
    }
    return this.people.get(name);
  }

  chatOf(who, group) {
    const user = this.person(who);
    let chat = { id: user.id, type: 'private', first_name: user.first_name };
    if (group !== undefined) {
      if (!this.groups.has(group)) this.groups.set(group, { id: -1_001_000_000_000 - this.groups.size, type: 'supergroup', title: group });
      chat = this.groups.get(group);
    }
    if (!this.chats.has(chat.id)) this.chats.set(chat.id, { chat, blocked: false });
    return chat;
  }

  fileOf(kind, { bytes, name, mime }) {
    const id = `${kind}-${randomBytes(24).toString('base64url')}`;
    this.files.set(id, { path: `${kind}s/file_${this.files.size}${/\.\w+$/.exec(name ?? '')?.[0] ?? ''}`, bytes: Buffer.from(bytes) });
    return { file_id: id, file_unique_id: id.slice(-8), file_size: bytes.length, ...name && { file_name: name }, ...mime && { mime_type: mime } };
  }

  say(who, text, { group, reply, topic, raw = {}, from = {}, ...files } = {}) {
    const chat = this.chatOf(who, group);
    const message = {
      message_id: this.nextMessage++, from: { ...this.person(who), ...from }, chat, date: Math.floor(Date.now() / 1000),
      ...topic && { is_topic_message: true, message_thread_id: topic },
      ...reply && { reply_to_message: { message_id: reply.id ?? reply, chat, date: 1 } },
    };
    for (const [kind, file] of Object.entries(files)) {
      const { file_name: name, mime_type: mime, ...stored } = this.fileOf(kind, file);
      if (kind === 'photo') {
        const { file_name: ignored, ...small } = this.fileOf('thumb', { bytes: file.bytes.subarray(0, 8) });
        message.photo = [{ ...small, width: 90, height: 60 }, { ...stored, width: 900, height: 600 }];
      } else message[kind] = { ...stored, ...name && { file_name: name }, ...mime && { mime_type: mime } };
    }
    if (text) message[Object.keys(files).length ? 'caption' : 'text'] = text;
    Object.assign(message, raw);
    this.messages.set(message.message_id, { chat: chat.id, ours: false, message });
    return { id: this.update('message', message).update_id, message: message.message_id, chat: chat.id };
  }

  edit(said, text) {
    const { message } = this.messages.get(said.message);
    return this.update('edited_message', { ...message, text, edit_date: message.date + 1 });
  }

  repeat({ id, message, update }) {
    this.again.push(update ?? { update_id: id, message: this.messages.get(message).message });
    this.news.emit('news');
  }

  press(sent, button, { by } = {}) {
    const message = this.messages.get(sent.id ?? sent);
    const pressed = message?.buttons?.find(({ data, label }) => data === button || label === button);
    if (!pressed) throw new Error(`no button ${button} under message ${sent.id ?? sent}`);
    const { chat } = this.chats.get(message.chat);
    const owner = [...this.people.values()].find(({ id }) => id === chat.id);
    const callback = `${4_000_000_000_000_000_000n + BigInt(this.presses.size)}`;
    this.presses.set(callback, { answered: false });
    const update = this.update('callback_query', {
      id: callback, from: by ? this.person(by) : owner, chat_instance: '1', data: pressed.data,
      message: {
        message_id: sent.id ?? sent, from: this.getMe(), chat, date: 1, text: message.text,
        reply_markup: { inline_keyboard: message.buttons.map(({ data, label }) => [{ text: label, callback_data: data }]) },
      },
    });
    return { id: update.update_id, callback, update };
  }

  block(who) { this.chats.get(this.id(who)).blocked = true; }

  unblock(who) { this.chats.get(this.id(who)).blocked = false; }

  message(id) { return this.messages.get(id); }

  // ---- what the bot does ----

  writable(chatId) {
    if (!Number.isInteger(chatId)) throw bad('chat_id is empty');
    const known = this.chats.get(chatId);
    if (!known) throw bad('chat not found');
    if (known.blocked) throw new No(403, 'Forbidden: bot was blocked by the user');
    return chatId;
  }

  checked(text) {
    if (typeof text !== 'string' || !text.trim()) throw bad('message text is empty');
    if (text.length > TEXT_UNITS_MAX) throw bad('message is too long');
    return text;
  }

  keyboardOf(markup) {
    if (markup === undefined) return [];
    if (!Array.isArray(markup.inline_keyboard)) throw bad('object expected as reply markup');
    const buttons = markup.inline_keyboard.flat();
    if (buttons.length > BUTTONS_MAX) throw bad('reply markup is too long');
    for (const { text, callback_data: data } of buttons) {
      if (typeof text !== 'string' || !text.trim()) throw bad("can't parse inline keyboard button: text is empty");
      if (typeof data !== 'string' || !data || Buffer.byteLength(data) > DATA_BYTES_MAX) throw bad('BUTTON_DATA_INVALID');
    }
    return buttons.map(({ text, callback_data: data }) => ({ data, label: text }));
  }

  sent(entry, { n, leave }) {
    const id = this.nextMessage++;
    this.messages.set(id, { chat: entry.chat, ours: true, text: entry.text, buttons: entry.buttons });
    this.add(this.sends, { n, ...entry, id, answered: !leave });
    return { message_id: id, from: this.getMe(), chat: this.chats.get(entry.chat).chat, date: Math.floor(Date.now() / 1000), text: entry.text };
  }

  sendMessage({ chat_id: chatId, message_thread_id: thread, text, reply_markup: markup, link_preview_options: preview }, how) {
    if (!preview?.is_disabled) this.violations.push('sendMessage: Telegram would fetch what the text links to');
    return this.sent({ chat: this.writable(chatId), thread, text: this.checked(text), buttons: this.keyboardOf(markup) }, how);
  }

  sendFile(body, how) {
    const kind = how.method === 'sendPhoto' ? 'photo' : 'document';
    const file = body[kind];
    if (!file?.bytes) throw bad(`there is no ${kind} in the request`);
    if (!file.bytes.length) throw bad('file must be non-empty');
    if (kind === 'photo' && (file.bytes.length > PHOTO_BYTES_MAX || file.bytes.length < 12 || !isPicture(file.bytes))) {
      throw bad('IMAGE_PROCESS_FAILED');
    }
    return this.sent({ chat: this.writable(body.chat_id), thread: body.message_thread_id, file: { kind, ...file }, buttons: [] }, how);
  }

  sendChatAction({ chat_id: chatId, message_thread_id: thread, action }, { n }) {
    if (!['typing', 'upload_photo', 'upload_document'].includes(action)) throw bad('wrong parameter action in request');
    this.add(this.typings, { n, chat: this.writable(chatId), thread, action });
    return true;
  }

  answerCallbackQuery({ callback_query_id: callback, text }, { n }) {
    const press = this.presses.get(callback);
    if (!press || press.answered) throw bad('query is too old and response timeout expired or query ID is invalid');
    if (text !== undefined && [...text].length > TOAST_CHARS_MAX) throw bad('MESSAGE_TOO_LONG');
    press.answered = true;
    this.add(this.toasts, { n, callback, text });
    return true;
  }

  editMessage({ chat_id: chatId, message_id: id, text, reply_markup: markup }, { n, method }) {
    const message = this.messages.get(id);
    if (!message || message.chat !== this.writable(chatId)) throw bad('message to edit not found');
    if (!message.ours) throw bad("message can't be edited");
    const next = { text: method === 'editMessageText' ? this.checked(text) : message.text, buttons: this.keyboardOf(markup) };
    if (JSON.stringify(next) === JSON.stringify({ text: message.text, buttons: message.buttons })) {
      throw bad('message is not modified: specified new message content and reply markup are exactly the same as a current content and reply markup of the message');
    }
    Object.assign(message, next);
    this.add(this.edits, { n, id, chat: chatId, ...next });
    return { message_id: id, date: 1, chat: this.chats.get(chatId).chat, text: next.text };
  }

  getFile({ file_id: id }) {
    const file = this.files.get(id);
    if (!file) throw bad('wrong file_id or the file is temporarily unavailable');
    if (file.bytes.length > GET_FILE_BYTES_MAX) throw bad('file is too big');
    return { file_id: id, file_unique_id: id.slice(-8), file_size: file.bytes.length, file_path: file.path };
  }

  download(request, path, n) {
    const file = [...this.files.values()].find((each) => each.path === path);
    if (request.method !== 'GET') this.violations.push(`${request.method} of a file`);
    if (!file) throw new No(404, 'Not Found');
    this.add(this.downloads, { n, path });
    return file.bytes;
  }

  // ---- trouble ----

  failNext(method, how, times = 1) {
    for (let i = 0; i < times; i++) this.trouble.push({ method, how });
  }

  flood(method, seconds, times = 1) {
    this.failNext(method, { code: 429, description: `Too Many Requests: retry after ${seconds}`, parameters: { retry_after: seconds } }, times);
  }

  troubleOf(method) {
    const at = this.trouble.findIndex((each) => each.method === method);
    return at < 0 ? undefined : this.trouble.splice(at, 1)[0].how;
  }

  failures() { return this.trouble.length; }

  newToken() {
    this.token = newSecret();
    this.held?.refuse(new No(401, 'Unauthorized'));
    return this.token;
  }

  pollElsewhere() {
    const done = fetch(`${this.url}/bot${this.token}/getUpdates`, {
      method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ timeout: 50 }),
    }).then((answer) => answer.json(), (error) => error);
    return { done };
  }

  // ---- waiting ----

  async waitFor(list, match = () => true, { from = 0, timeoutMs = 30_000 } = {}) {
    const fits = typeof match === 'function' ? match
      : (entry) => (match instanceof RegExp ? match.test(entry.text ?? '') : entry.text === match);
    const until = Date.now() + timeoutMs;
    for (;;) {
      const found = this[list].slice(from).find(fits);
      if (found) return found;
      if (this.closed || Date.now() >= until) {
        throw new Error(`no entry of ${list} matches ${match} in ${timeoutMs} ms; there are ${JSON.stringify(this[list].slice(from, from + 20))}`);
      }
      await this.somethingNew(until - Date.now());
    }
  }

  waitForSend(match, options) { return this.waitFor('sends', match, options); }

  waitUntilRead(options) {
    return this.waitFor('polls', ({ offset }) => offset >= this.nextUpdate, options);
  }
}

export const startTelegram = (options = {}) => new Telegram(options).listen();

// SPDX-License-Identifier: Apache-2.0
//
// Plays one conversation of the table and writes down what every surface said. A step is a list: its kind, then what it
// needs; `{{open.0.interactionId}}` in any text of it stands for something that was heard before. Steps are in order, and
// each waits for what it is about, so that nothing in the record depends on the clock.

import assert from 'node:assert/strict';
import { isUtf8 } from 'node:buffer';
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { request } from 'node:http';

import { within } from '../api/server.mjs';
import { CLOSE, frame, Frames, PING, PONG, closeFrame, TEXT } from '../api/socket.mjs';
import { AGENT, waitFor as waitLong } from '../api/talk.mjs';
import { Names } from './names.mjs';

const MS_MAX = 30_000;
const SOON_MS = 1000; // until something expires; the server wants it to be in the future
const HEADS = ['content-type', 'allow', 'location', 'www-authenticate', 'content-disposition', 'accept-ranges', 'content-range', 'retry-after', 'cache-control',
  'set-cookie'];
const waitFor = (what, ask) => waitLong(what, ask, MS_MAX);
const nodes = (node) => [node, ...(node.children ?? []).flatMap(nodes)];

export class Player {
  constructor(place, conversation, user) {
    Object.assign(this, { place, conversation, user });
    this.server = place.server;
    this.entries = []; // [surface, text]
    this.raw = ''; // the same before names
    this.names = new Names([...place.names]);
    this.closing = [];
    this.keys = {};
    this.streams = new Map();
    this.sockets = new Map();
    this.seen = {}; // what texts of steps may name
    this.count = 0;
    this.thread = 't1';
  }

  after(fn) { this.closing.unshift(fn); }

  note(surface, text) {
    this.raw += `${text}\n`;
    this.entries.push([this.names.of(surface), this.names.of(text)]);
  }

  // ---- the words of steps ----

  #look(path) {
    const found = path.split('.').reduce((at, name) => at?.[name], this.seen);
    assert.notEqual(found, undefined, `${this.conversation.name}: nothing is ${path}`);
    return found;
  }

  fill(value) {
    if (typeof value === 'string') {
      const whole = /^\{\{([^}]+)\}\}$/.exec(value);
      if (whole) return this.#look(whole[1]);
      return value.replace(/\{\{([^}]+)\}\}/g, (_, path) => String(this.#look(path)));
    }
    if (Array.isArray(value)) return value.map((one) => this.fill(one));
    if (value && typeof value === 'object' && !Buffer.isBuffer(value)) return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, this.fill(one)]));
    return value;
  }

  auth(who = 'me') {
    return who === 'nobody' ? {} : { authorization: `Bearer ${this.keys[who]}` };
  }

  // ---- requests ----

  send(method, path, { headers = {}, body, onData } = {}) {
    const bytes = body === undefined ? undefined : Buffer.isBuffer(body) || typeof body === 'string' ? body : JSON.stringify(body);
    const answer = new Promise((done, failed) => {
      const sent = request({ host: this.server.host, port: this.server.port, method, path, headers, agent: false }, (response) => {
        const pieces = [];
        if (onData) response.on('data', onData);
        response.on('data', (piece) => pieces.push(piece)).on('error', failed).on('end', () => {
          const whole = Buffer.concat(pieces), text = whole.toString('utf8');
          const shown = isUtf8(whole) ? text : `base64 ${whole.toString('base64')}`;
          done({ status: response.statusCode, headers: response.headers, text: shown, json: () => JSON.parse(text) });
        });
      });
      sent.on('error', failed);
      sent.end(bytes);
      this.after(() => sent.destroy());
    });
    return within(MS_MAX, `${this.conversation.name}: ${method} ${path}`, answer);
  }

  head(answer) {
    const heads = HEADS.filter((name) => answer.headers[name] !== undefined).map((name) => `${name}: ${answer.headers[name]}`);
    return [`${answer.status}`, ...heads].join('\n');
  }

  async ask(method, path, { body, headers = {}, who, json = true } = {}) {
    const typed = body === undefined || !json ? {} : { 'content-type': 'application/json' };
    const answer = await this.send(method, path, { headers: { ...typed, ...this.auth(who), ...headers }, body });
    this.note(`${method} ${path}`, `${this.head(answer)}\n\n${answer.text}`);
    try {
      this.seen.last = answer.json();
    } catch {
      this.seen.last = answer.text;
    }
    return answer;
  }

  agent(method, path, options) { return this.ask(method, `${AGENT}${path}`, options); }

  // Asked to know, not written down.
  async quiet(path, who) {
    const answer = await this.send('GET', `${AGENT}${path}`, { headers: this.auth(who) });
    assert.equal(answer.status, 200, `${this.conversation.name}: ${path}: ${answer.text}`);
    return answer.json();
  }

  input(text, more = {}) {
    this.count++;
    const message = typeof text === 'object' && !Array.isArray(text) ? text : { id: `u${this.count}`, role: 'user', content: text };
    return { threadId: this.thread, runId: `r${this.count}`, messages: [message], ...more };
  }

  // ---- event streams ----

  openStream(path, who) {
    const stream = { text: '', taken: 0, events: [], ends: [], from: 0, ended: false, wake: () => {} };
    const opened = new Promise((done, failed) => {
      const sent = request({ host: this.server.host, port: this.server.port, path, headers: this.auth(who), agent: false }, (response) => {
        let rest = '';
        stream.status = response.statusCode;
        response.setEncoding('utf8').on('data', (text) => {
          const frames = (rest + text).split('\n\n');
          rest = frames.pop();
          for (const one of frames) {
            if (one === ':') continue; // keep-alive
            stream.text += `${one}\n\n`;
            const data = /^data: (.*)$/m.exec(one);
            stream.events.push(data ? JSON.parse(data[1]) : {});
            stream.ends.push(stream.text.length);
          }
          stream.wake();
        }).on('end', () => { stream.ended = true; stream.wake(); }).on('error', () => {});
        done(stream);
      });
      sent.on('error', failed);
      sent.end();
      stream.close = () => sent.destroy();
      this.after(stream.close);
    });
    return within(MS_MAX, `${this.conversation.name}: ${path}`, opened);
  }

  async heardUntil(stream, what, predicate) {
    const arrived = async () => {
      while (!predicate() && !stream.ended) await new Promise((done) => { stream.wake = done; });
    };
    await within(MS_MAX, `${this.conversation.name}: ${what} (after ${stream.events.map(({ type, seq }) => seq ?? type).slice(-15).join(' ')})`, arrived());
  }

  // What was not written down, up to and with the first event for which it holds.
  async take(stream, what, predicate) {
    const at = () => stream.events.findIndex((event, i) => i >= stream.from && predicate(event));
    await this.heardUntil(stream, what, () => at() >= 0);
    const found = at();
    if (found < 0) return '';
    const text = stream.text.slice(stream.taken, stream.ends[found]);
    stream.taken = stream.ends[found];
    stream.from = found + 1;
    return text;
  }

  // Payloads go to object storage behind the run; until then their rows say that they are missing.
  stored(thread, who) {
    return waitFor(`${this.conversation.name}: what is stored`, async () => !JSON.stringify(await this.quiet(`/runs/${thread}/history?limit=200`,
      who)).includes('storage_missing'));
  }

  async seq(thread = this.thread, who = undefined) {
    return (await this.quiet(`/threads/${thread}`, who)).seq;
  }

  // Sends a RunAgentInput; what resolves at the end of its stream writes it down.
  async agui(text, { version, agent = 'assistant', route, headers = {}, ...more } = {}, onData = undefined) {
    const input = {
      ...(text === null ? { threadId: this.thread, runId: `r${++this.count}`, messages: [] } : this.input(text)), state: {}, tools: [], context: [], forwardedProps: {},
      ...(version ? { protocolVersion: version } : {}), ...more,
    };
    const answer = await this.send('POST', `${AGENT}${route ?? `/ag-ui/${agent}`}`, {
      headers: { 'content-type': 'application/json', accept: 'text/event-stream', ...this.auth(), ...headers }, body: input, onData,
    });
    return () => {
      const said = answer.text.replace(/^:\n\n/gm, ''); // keep-alive
      this.note(`AG-UI ${version ?? 'before 1.0'} ${input.runId}`, `${this.head(answer)}\n\n${said}`);
      const events = said.split('\n\n').filter((one) => one.startsWith('data: ')).map((one) => JSON.parse(one.slice('data: '.length)));
      const interrupts = events.findLast(({ type }) => type === 'RUN_FINISHED')?.outcome?.interrupts;
      if (interrupts) this.seen.interrupts = interrupts;
      const starts = events.filter(({ type }) => type === 'TOOL_CALL_START');
      if (starts.length) this.seen.calls = starts.map(({ toolCallId }) => toolCallId);
    };
  }

  // ---- steps ----

  steps = {
    // A message; and the run's end or pause behind it.
    say: async (text, more = {}, headers = {}) => {
      const { who, ...rest } = more;
      await this.agent('POST', '/runs', { body: this.input(text, rest), headers, who });
    },
    run: (body, options = {}) => this.agent('POST', '/runs', { body, ...options }),
    thread: (name) => { this.thread = name; },
    until: async (status, { open, run: runId, who } = {}) => {
      await waitFor(`${this.conversation.name}: ${this.thread} is ${status}`, async () => {
        const run = await this.quiet(`/runs/${this.thread}`, who);
        if (run.status !== status || (runId && run.runId !== runId)) return false;
        if (open === undefined) return true;
        return run.interactions.filter((one) => one.status === 'open').length === open;
      });
      await this.stored(this.thread, who);
      const { interactions } = await this.quiet(`/interactions?threadId=${this.thread}&limit=200`, who);
      if (interactions.length) this.seen.open = interactions.reverse();
    },
    answer: (which, body, options = {}) => this.agent('POST', `/interactions/${this.#look(`open.${which}.interactionId`)}/answer`, { body, ...options }),
    // The interaction expires in a moment.
    soon: async (which) => {
      const expiresAt = new Date(Date.now() + SOON_MS).toISOString();
      const id = this.#look(`open.${which}.interactionId`);
      await this.agent('PATCH', `/interactions/${id}`, { body: { expiresAt } });
      await waitFor(`${this.conversation.name}: it expires`, async () => (await this.quiet(`/interactions/${id}`)).status === 'expired');
    },
    // Interrupts as the inbox has them, for clients that are told of none.
    interrupt: () => { this.seen.interrupts ??= this.seen.open.map(({ interactionId }) => ({ id: interactionId })); },
    // Whatever the last request began is over.
    settled: () => waitFor(`${this.conversation.name}: settled`, async () => !['running', 'queued',
      'cancelling'].includes((await this.quiet(`/runs/${this.thread}`)).status)),
    cancel: (body, options = {}) => this.agent('POST', `/runs/${this.thread}/cancel`, { body, ...options }),
    call: (method, path, options = {}) => this.ask(method, path, options),
    agent: (method, path, options = {}) => this.agent(method, path, options),
    keep: (name, path = 'last') => { this.seen[name] = this.#look(path); },
    facts: async (thread = this.thread, who = undefined, query = '?after=0') => {
      const seq = await this.seq(thread, who);
      const stream = await this.openStream(`${AGENT}/runs/${thread}/events${query}`, who);
      const text = await this.take(stream, 'facts', (event) => event.seq === seq);
      stream.close();
      this.note(`events of ${thread}${query}`, text);
    },
    listen: async (name = 'live', query = '?after=0', { who, thread = this.thread } = {}) => {
      this.streams.set(name, await this.openStream(`${AGENT}/runs/${thread}/events${query}`, who));
    },
    // So many legs of the thread have ended; not written down.
    legs: async (count) => {
      const stream = await this.openStream(`${AGENT}/runs/${this.thread}/events?after=0`);
      await this.heardUntil(stream, `${count} legs`, () => stream.events.filter(({ type }) => type === 'run.finished' || type === 'run.error').length >= count);
      stream.close();
    },
    // The model was asked so often; not written down here.
    asked: (count) => waitFor(`${this.conversation.name}: the model is asked ${count} times`, () => this.place.asked(this.user).length >= count),
    // What the stream says up to the first event of a type, or to the thread's newest fact.
    heard: async (name = 'live', type = undefined) => {
      const seq = type ? undefined : await this.seq();
      this.note(`live ${name}`, await this.take(this.streams.get(name), `${name}: ${type ?? seq}`, (event) => (type ? event.type === type : event.seq === seq)));
    },
    history: (query = '', thread = this.thread) => this.agent('GET', `/runs/${thread}/history${query}`),
    // AG-UI: a whole answer. `more.version` names the protocol, `more.agent` the path, `more.route` another one.
    agui: async (text, more) => (await this.agui(text, more))(),
    // One that is read beside others, and its end: it is written down there.
    'agui-open': (name, text, more) => {
      let said = '';
      const done = this.agui(text, more, (piece) => { said += piece; });
      done.catch(() => {});
      done.said = () => said;
      this.streams.set(name, done);
    },
    'agui-end': async (name) => (await this.streams.get(name))(),
    // So many events of a type have come on it.
    'agui-until': (name, type, count) => waitFor(`${this.conversation.name}: ${count} ${type} on ${name}`,
      () => this.streams.get(name).said().split(`"type":"${type}"`).length > count),
    press: async (label, { headers = {} } = {}) => {
      const { messages } = await this.quiet(`/runs/${this.thread}/history`);
      const buttons = ({ uiSchema }) => (uiSchema ? nodes(uiSchema.root) : []).filter(({ type }) => type === 'button');
      const row = messages.findLast((message) => buttons(message).some((one) => one.label === label));
      const { id } = buttons(row).find((one) => one.label === label);
      await this.agent('POST', '/actions', { body: { threadId: this.thread, messageId: row.id, actionId: id }, headers });
    },
    upload: async (filename, content, { type = 'x/y', thread = this.thread, headers = {} } = {}) => {
      const boundary = 'a-boundary';
      const head = `--${boundary}\r\nContent-Disposition: form-data; name="threadId"\r\n\r\n${thread}\r\n--${boundary}\r\n`
        + `Content-Disposition: form-data; name="file"; filename="${filename}"\r\nContent-Type: ${type}\r\n\r\n`;
      const body = Buffer.concat([Buffer.from(head), Buffer.isBuffer(content) ? content : Buffer.from(content), Buffer.from(`\r\n--${boundary}--\r\n`)]);
      await this.agent('POST', '/attachments', { body, json: false, headers: { 'content-type': `multipart/form-data; boundary=${boundary}`, ...headers } });
      if (this.seen.last.attachment) (this.seen.files ??= []).push(this.seen.last.attachment);
    },
    release: (word) => this.place.town.release(word),
    // WebSocket.
    socket: async (name = 'ws', { who, ...options } = {}) => {
      const { response, frames } = await Frames.open(this, this.server, { headers: this.auth(who), ...options });
      this.note(`WebSocket ${name}`, `${response.status}${frames ? '' : `\n${response.body}`}`);
      if (!frames) return;
      const socket = { frames, all: [], taken: 0, replied: 0, wake: () => {}, over: null };
      this.sockets.set(name, socket);
      (async () => {
        for (;;) {
          const one = await frames.next(2 ** 30);
          if (!one) break;
          if (one.opcode === PING) await frames.write(frame(one.payload, { opcode: PONG }));
          if (one.opcode === TEXT) socket.all.push(one.payload.toString('utf8'));
          if (one.opcode === CLOSE) {
            socket.over = one.payload.length ? `${one.payload.readUInt16BE(0)} ${one.payload.toString('utf8', 2)}` : 'no code';
            break;
          }
          socket.wake();
        }
        socket.over ??= 'cut';
        socket.wake();
      })().catch(() => { socket.over ??= 'cut'; socket.wake(); });
    },
    // Sends a frame and waits for its ack or error, which is written down with the frames around it; a text is sent as it is.
    tell: async (value, { name = 'ws', silent = false } = {}) => {
      const socket = this.sockets.get(name);
      const id = silent ? undefined : `f${++this.count}`;
      await socket.frames.write(frame(typeof value === 'string' ? value : JSON.stringify(silent ? value : { ...value, id })));
      if (silent) return;
      await this.#until(socket, `the answer of ${JSON.stringify(value).slice(0, 80)}`, () => socket.all.some((one) => this.#isReply(one, id)));
      socket.replied = socket.all.findIndex((one) => this.#isReply(one, id)) + 1;
    },
    // Frames up to the first of a type (that was not written down before), all in their order.
    frames: async (type, { name = 'ws', where = {} } = {}) => {
      const socket = this.sockets.get(name);
      const fits = (one) => {
        const value = JSON.parse(one);
        return value.type === type && Object.entries(where).every(([member, wanted]) => value.data?.[member] === wanted);
      };
      await this.#until(socket, type, () => socket.all.slice(socket.taken).some(fits));
      const at = socket.all.findIndex((one, i) => i >= socket.taken && fits(one));
      this.#writeFrames(name, socket, at + 1);
    },
    // Frames up to the last answer.
    replies: ({ name = 'ws' } = {}) => {
      const socket = this.sockets.get(name);
      this.#writeFrames(name, socket, socket.replied);
    },
    // Frames up to the end of the session's log.
    'frames-all': async ({ name = 'ws' } = {}) => {
      const socket = this.sockets.get(name), seq = await this.seq();
      await this.#until(socket, `fact ${seq}`, () => socket.all.some((one) => JSON.parse(one).seq === seq));
      this.#writeFrames(name, socket, socket.all.findLastIndex((one) => JSON.parse(one).seq === seq) + 1);
    },
    closed: async (name = 'ws') => {
      const socket = this.sockets.get(name);
      await this.#until(socket, 'the end', () => socket.over !== null, true);
      this.#writeFrames(name, socket, socket.all.length);
      this.note(`WebSocket ${name}`, `closed: ${socket.over}`);
    },
    raw: async (bytes, name = 'ws') => { await this.sockets.get(name).frames.write(bytes); },
    // MCP.
    mcp: async (body, { headers = {}, who } = {}) => {
      const answer = await this.send('POST', '/mcp', {
        headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...this.auth(who), ...headers }, body });
      this.note(`MCP ${typeof body === 'string' ? body.slice(0, 40) : body.method}`, `${this.head(answer)}\n\n${answer.text}`);
      try {
        this.seen.mcp = answer.json().result?.structuredContent;
      } catch {
        this.seen.mcp = undefined;
      }
    },
    // A call that waits for a person, and its answer when there is one.
    'mcp-open': (name, body, { headers = {}, who } = {}) => {
      const answer = this.send('POST', '/mcp', {
        headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...this.auth(who), ...headers }, body });
      answer.catch(() => {});
      this.streams.set(name, answer);
    },
    'mcp-end': async (name) => {
      const answer = await this.streams.get(name);
      this.note(`MCP ${name}`, `${this.head(answer)}\n\n${answer.text}`);
      this.seen.mcp = answer.json().result?.structuredContent;
    },
    // Resolves when so many things wait for this person.
    inbox: async (count, who) => {
      await waitFor(`${this.conversation.name}: ${count} open`, async () => {
        const { interactions } = await this.quiet('/interactions?limit=200', who);
        this.seen.open = interactions.reverse();
        return interactions.length === count;
      });
    },
    // The chat channel: a message, and what comes back. `sender` is this conversation's own.
    chat: async (text, more = {}) => {
      const said = await this.place.bridge.post({ id: `m${++this.count}`, sender: this.user, ...(text === null ? {} : { text }), ...more }, {});
      this.note('chat, said', `${said.status}\n${said.type}\n\n${said.body}`);
    },
    'chat-bad': async (message, options = {}) => {
      const said = await this.place.bridge.post(message, options);
      this.note('chat, refused', `${said.status}\n${said.type}\n\n${said.body}`);
    },
    chatted: async (count) => {
      const mine = () => this.place.bridge.sends.filter(({ to }) => to === this.user);
      await waitFor(`${this.conversation.name}: ${count} messages in the chat, has ${JSON.stringify(mine())}`, () => mine().length >= (this.chats ?? 0) + count);
      const all = mine();
      for (const one of all.slice(this.chats ?? 0)) {
        const code = /(?:approve|同意|retry|重试) (\d{6})/.exec(one.text ?? '');
        if (code) {
          this.seen.code = code[1];
          this.names.places.push([code[1], `<code ${this.names.name('code', code[1])}>`]);
        }
        this.seen.chat = one;
        this.note('chat, heard', JSON.stringify(one, (name, value) => (name === 'bytes' ? undefined : value)));
      }
      this.chats = all.length;
    },
    link: async () => {
      this.seen.link = await this.place.link(this.user);
    },
    // The terminal. With `behind` its message waits behind a run whose model is silent: that is cancelled once the terminal has
    // told of the queue, so that it follows when its own run begins.
    terminal: async (args, input = '', { lang = 'C.UTF-8', behind } = {}) => {
      const env = { PATH: process.env.PATH, FERMATA_URL: this.server.url, FERMATA_API_KEY: this.keys.me, LANG: lang, ASAN_OPTIONS: process.env.ASAN_OPTIONS ?? '',
        TZ: 'UTC' };
      let told = '', over = false;
      const ended = new Promise((done) => {
        const child = execFile(this.place.program, args, { env, timeout: MS_MAX }, (error, out, err) => {
          over = true;
          done({ code: error ? error.code : 0, stdout: out, stderr: err });
        });
        child.stdout.on('data', (text) => { told += text; });
        child.stdin.on('error', () => {});
        child.stdin.end(input);
      });
      if (behind) {
        await waitFor(`${this.conversation.name}: the terminal tells of the queue`, () => over || told.includes('"type":"run.queued"'));
        await this.steps.cancel({ runId: behind });
      }
      const { code, stdout, stderr } = await ended;
      this.note(`terminal ${args.join(' ')}`, `exit ${code}\n${stdout}${stderr ? `\nstderr: ${stderr}` : ''}`);
    },
  };

  #isReply(text, id) {
    const value = JSON.parse(text);
    return value.id === id && ['ack', 'error', 'pong'].includes(value.type);
  }

  async #until(socket, what, predicate, closes = false) {
    const arrived = async () => {
      while (!predicate()) {
        assert.ok(closes || !socket.over, `${this.conversation.name}: ${what}: closed with ${socket.over}`);
        await new Promise((done) => { socket.wake = done; });
      }
    };
    await within(MS_MAX, `${this.conversation.name}: ${what}`, arrived());
  }

  #writeFrames(name, socket, to) {
    if (to <= socket.taken) return;
    this.note(`WebSocket ${name}`, socket.all.slice(socket.taken, to).join('\n'));
    socket.taken = to;
  }

  // ---- what is asked of every conversation at its end ----

  async #threadSurfaces(thread) {
    await this.stored(thread);
    await this.steps.facts(thread);
    await this.steps.history('', thread);
    await this.agent('GET', `/runs/${thread}`);
    await this.agent('GET', `/threads/${thread}/export?format=md`);
    this.thread = thread;
    const busy = ['running', 'queued', 'cancelling'].includes((await this.quiet(`/runs/${thread}`)).status);
    if (busy) return;
    await this.steps.agui(null, { version: '1.0' });
  }

  // What others were told of it: webhooks and tools. Deliveries of two interactions have no order among them.
  async #around() {
    for (const id of new Set(this.raw.match(/\bint_[0-9a-z]{26}\b/g))) {
      const asked = await this.send('GET', `${AGENT}/interactions/${id}`, { headers: this.auth() });
      if (asked.status !== 200) continue;
      for (const event of ['interaction.opened', ...(asked.json().status === 'open' ? [] : ['interaction.resolved'])]) {
        const found = await waitFor(`${this.conversation.name}: ${event} of ${id}`, () => this.place.town.told.find(
          (one) => one.event === event && one.body.includes(`"interactionId":"${id}"`)));
        this.note(`webhook ${event}`, `${found.type} ${found.signed ? 'signed' : 'NOT SIGNED'}\n\n${found.body}`);
      }
    }
    const calls = [...new Set(this.raw.match(/\bcall_[0-9a-z]{26}\b/g))];
    for (const call of calls) {
      for (const { key, house, language, type, body } of this.place.town.visits.filter((one) => one.key === call)) {
        this.note(`tool ${house}`, `Idempotency-Key: ${key}\nAccept-Language: ${language}\nContent-Type: ${type}\n\n${body}`);
      }
    }
  }

  // What the model was asked, when everything is over. What it is told in every request is kept once, in `texts`.
  asked(requests, texts) {
    const once = (kind, text) => {
      const name = `${kind} ${createHash('sha256').update(text).digest('hex').slice(0, 16)}`;
      texts.set(name, text);
      return name;
    };
    for (const { system, tools, ...request } of requests) {
      const told = system.replace(/^(- Now: |- 现在：).*$/m, '$1<now>').replace(/^(- Name of the person: |- 对方的名字：).*$/m, '$1<user>');
      this.note('model', JSON.stringify({ ...request, system: once('system', this.names.of(told)), tools: once('tools', JSON.stringify(tools)) }));
    }
  }

  async play() {
    const { roles = {}, threads = ['t1'], steps, ends = true } = this.conversation;
    this.keys.me = await this.place.key(this.user, roles.me);
    for (const [name, given] of Object.entries(roles)) { // one that begins with my- is another key of the same user
      if (name !== 'me') this.keys[name] = await this.place.key(name.startsWith('my-') ? this.user : `${this.user}-${name}`, given);
    }
    this.seen.keys = this.keys;
    try {
      for (const [kind, ...args] of steps) {
        const step = this.steps[kind];
        assert.ok(step, `${this.conversation.name}: no step ${kind}`);
        await step(...this.fill(args));
      }
      for (const name of this.sockets.keys()) this.steps.replies({ name });
      if (ends) for (const thread of this.fill(threads)) await this.#threadSurfaces(thread);
      if (ends) await this.agent('GET', '/threads');
      await this.#around();
    } finally {
      for (const fn of this.closing) await fn();
    }
    return this.entries;
  }
}

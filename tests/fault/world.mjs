// SPDX-License-Identifier: Apache-2.0
//
// One server with something of everything: a login, a model that asks and shows cards, files, a calendar, a chat channel.
// And every kind of request to it, as bytes, so that a test can stop sending or go at any of them. Each request is made
// anew: what it needs (a thread, an open question, a card) is there before it is sent.

import assert from 'node:assert/strict';
import { randomBytes, randomUUID } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';

import { bearer, call, Home, keyId, postJson } from '../api/home.mjs';
import { frame, handshake } from '../api/socket.mjs';
import { accepted, AGENT, get, history, runOf, waitFor } from '../api/talk.mjs';
import { signature } from '../channels/hook.mjs';
import { storedFacts } from '../tools/facts.mjs';

const SECRET = 'a-secret-of-the-operator-and-the-program';
const MEETING = { start_time: '2030-01-31T15:00:00+08:00', end_time: '2030-01-31T16:00:00+08:00' };
const CARD = {
  version: '2.1', intent: 'data', status: 'info', title: 'A card', items: [{ key: 'k', value: 1 }],
  actions: [{ label: 'Say', action: { type: 'payload', payload: { room: '红' } } }, { label: 'Copy', action: { type: 'copy', content: 'x' } }],
};
const asks = (args) => ({ turns: [{ calls: [{ name: 'ask_user', args }] }, { text: 'Done.' }] });
export const LINES = [
  { match: '^ask', ...asks({ question: 'What about? 什么？' }) },
  { match: '^book', turns: [{ calls: [{ name: 'calendar_write', args: { title: 'Review 评审', ...MEETING } }] }, { text: 'Done.' }] },
  { match: '^card', turns: [{ text: 'Here.', calls: [{ name: 'show_card', args: CARD }] }] },
  { match: '^slow', turns: [{ text: 'One moment, please. 请稍等。', chunk: 1, gap_ms: 20 }] },
  { match: '^stuck', turns: [{ text: 'At last.', delay_ms: 600_000 }] },
  { turns: [{ text: 'Hello. 你好。' }] },
];

export const TEXT_FILE = 'Words of a file. 文件里的字。\n';

export async function startWorld(t, { env = {}, config = '', lines = LINES } = {}) {
  const home = await Home.make(t);
  const script = join(home.data, 'script.jsonl');
  await writeFile(script, lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
  await writeFile(join(home.data, 'own.secret'), SECRET);
  home.env = {
    FERMATA_MODEL_PROVIDER: 'scripted', FERMATA_SCRIPT: script, FERMATA_CONFIG: join(home.data, 'fermata.yaml'),
    FERMATA_LIMITS_RATE: '0', ...env,
  };
  // Nobody is at the other end of the channel: what is said there waits.
  await writeFile(home.env.FERMATA_CONFIG,
    `${config}\nchannels:\n  own: {kind: webhook, url: "http://127.0.0.1:9/", secret_file: "${home.data}/own.secret", allow: ["*"]}\n`);
  await home.start();
  const world = new World(home);
  world.key = await home.addKey('ann', '--role', 'operator', '--role', 'approver');
  world.headers = bearer(world.key);
  return world;
}

export class World {
  constructor(home) {
    this.home = home;
    this.threads = 0;
    this.sessions = [];
  }

  get server() { return this.home.server; }

  fresh(prefix = 't') { return `${prefix}-${++this.threads}`; }

  // A thread whose last run has come to `status`.
  async thread(text = 'hello', status = 'completed') {
    const threadId = this.fresh();
    await accepted(this.server, { threadId, messages: [{ id: 'u', role: 'user', content: text }] }, this.headers);
    await waitFor(`${threadId} is ${status}`, async () => (await runOf(this.server, threadId, this.headers)).status === status);
    return threadId;
  }

  async asked(text = 'ask') {
    const threadId = await this.thread(text, 'waiting');
    const { interactions: [{ interactionId }] } = await runOf(this.server, threadId, this.headers);
    return { threadId, interactionId };
  }

  async card() {
    const threadId = await this.thread('card');
    const { messages } = await history(this.server, threadId, '', this.headers);
    const nodes = (node) => [node, ...(node.children ?? []).flatMap(nodes)];
    const row = messages.findLast(({ uiSchema }) => uiSchema);
    assert.ok(row, 'there is a card');
    const ids = Object.fromEntries(nodes(row.uiSchema.root).filter(({ type }) => type === 'button').map(({ label, id }) => [label, id]));
    return { threadId, messageId: row.id, ids };
  }

  async attachment() {
    const { bytes, headers } = form(this.fresh());
    const answer = await call(this.server, 'POST', `${AGENT}/attachments`, { headers: { ...headers, ...this.headers, 'content-length': bytes.length }, body: bytes });
    assert.equal(answer.status, 201, answer.text);
    return answer.json().attachment;
  }

  async grant() {
    const { interactionId } = await this.asked('book');
    const answer = await postJson(this.server, `${AGENT}/interactions/${interactionId}/answer`, { decision: 'approve', always: true }, this.headers);
    const grants = (await get(this.server, '/grants', this.headers)).json();
    return { answer, grant: (grants.grants ?? grants.items ?? [])[0] };
  }

  // The cookie of a session that the server does not remember.
  async signIn(count) {
    const cookies = [];
    for (let i = 0; i < count; i++) {
      const answer = await postJson(this.server, '/api/v1/session', { key: this.key });
      assert.equal(answer.status, 200, answer.text);
      cookies.push(answer.cookies[0].split(';')[0]);
    }
    await this.home.restart();
    this.sessions = cookies;
  }

  bytes(method, path, { headers = {}, body = '', login = this.headers } = {}) {
    const content = Buffer.isBuffer(body) ? body : Buffer.from(typeof body === 'string' ? body : JSON.stringify(body));
    const all = {
      Host: `${this.server.host}:${this.server.port}`, ...login,
      ...(content.length ? { 'Content-Type': 'application/json', 'Content-Length': content.length } : {}), ...headers,
    };
    const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`).join('');
    return Buffer.concat([Buffer.from(`${method} ${path} HTTP/1.1\r\n${lines}\r\n`), content]);
  }

  agent(method, path, options) { return this.bytes(method, AGENT + path, options); }

  run(input, headers = {}) {
    return this.agent('POST', '/runs', { headers, body: { threadId: this.fresh(), messages: [{ id: 'u', role: 'user', content: 'hello' }], ...input } });
  }

  hook(message) {
    const body = Buffer.from(JSON.stringify({ id: randomUUID(), sender: 'alice', text: 'hello', ...message }));
    const timestamp = String(Math.floor(Date.now() / 1000));
    return this.agent('POST', '/channels/own/webhook', {
      login: {}, headers: { 'Fermata-Timestamp': timestamp, 'Fermata-Signature': signature(SECRET, timestamp, body) }, body,
    });
  }

  mcp(name, args) {
    return this.bytes('POST', '/mcp', { body: { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: args } } });
  }

  // On the socket in the data folder.
  admin(method, path, body = '') { return { admin: true, bytes: this.bytes(method, path, { login: {}, body }) }; }

  // A WebSocket: what opens it, and frames behind that.
  socket(...frames) {
    return { first: Buffer.from(handshake(this.server, { headers: this.headers })), bytes: Buffer.concat(frames.map((one) => frame(JSON.stringify(one)))) };
  }
}

export function form(threadId, bytes = Buffer.from(TEXT_FILE), filename = 'a.txt') {
  const boundary = 'a-boundary';
  const head = `--${boundary}\r\nContent-Disposition: form-data; name="threadId"\r\n\r\n${threadId}\r\n`
    + `--${boundary}\r\nContent-Disposition: form-data; name="file"; filename="${filename}"\r\nContent-Type: x/y\r\n\r\n`;
  return {
    bytes: Buffer.concat([Buffer.from(head), bytes, Buffer.from(`\r\n--${boundary}--\r\n`)]),
    headers: { 'Content-Type': `multipart/form-data; boundary=${boundary}` },
  };
}

const inline = (bytes) => [{ type: 'text', text: 'look' }, { type: 'binary', mimeType: 'text/plain', data: Buffer.from(bytes).toString('base64') }];
const key = () => ({ 'Idempotency-Key': randomUUID() });
const large = () => ({ state: { noise: Array.from({ length: 40_000 }, (_, i) => i) } }); // parsed beside the loop

// Every kind of request: a function of the world that makes the bytes of one, or {bytes, ...} with what else there is:
// `first` are bytes whose answer has to come before, `answer` is a text that the answer has and an ack before it has not,
// `admin` says that it goes to the socket in the data folder, and
// `stands` tells that it waits for a person now. Names are those of tests/fault/awaits.txt.
export const REQUESTS = {
  metrics: (w) => w.bytes('GET', '/metrics'),
  'mcp, a question now': (w) => w.mcp('ask_user', { question: 'Which?', wait_s: 0, key: randomUUID() }),
  'mcp, get_answer': async (w) => {
    const asked = await postJson(w.server, '/mcp', { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'confirm', arguments: { action: 'Go?', wait_s: 0 } } }, w.headers);
    const id = /int_[0-9a-z]+/.exec(asked.text)?.[0] ?? 'int_none';
    return w.mcp('get_answer', { id, wait_s: 0 });
  },
  'mcp, a question that waits': (w) => {
    const id = randomUUID(); // looked for in the database: the server may be held
    const stands = () => storedFacts(w.home.data).filter(({ type, data }) => type === 'interaction.request' && data.includes(id)).length === 1;
    return { bytes: w.mcp('ask_user', { question: `Which of ${id}?`, wait_s: 50 }), stands };
  },
  'session, sign in': (w) => w.bytes('POST', '/api/v1/session', { login: {}, body: { key: w.key } }),
  'session, sign out': async (w) => {
    const answer = await postJson(w.server, '/api/v1/session', { key: w.key });
    return w.bytes('DELETE', '/api/v1/session', { login: { Cookie: answer.cookies[0].split(';')[0], Origin: w.server.url } });
  },
  'session, asked for in the store': (w) => w.agent('GET', '/threads', { login: { Cookie: w.sessions.pop() } }),
  'session, asked for before a body': (w) => w.agent('POST', '/runs', {
    login: { Cookie: w.sessions.pop(), Origin: w.server.url }, headers: key(), body: { threadId: w.fresh(), messages: [{ role: 'user', content: 'hello' }] },
  }),
  'session, asked for before an upload': (w) => {
    const { bytes, headers } = form(w.fresh());
    return w.agent('POST', '/attachments', { login: { Cookie: w.sessions.pop(), Origin: w.server.url }, headers, body: bytes });
  },
  'session, asked for before a socket': (w) => Buffer.from(handshake(w.server, { headers: { Cookie: w.sessions.pop(), Origin: w.server.url } })),
  run: (w) => w.run({}, key()),
  'run, with bytes': (w) => w.run({ messages: [{ id: 'u', role: 'user', content: inline(TEXT_FILE) }] }, key()),
  'run, streamed': (w) => w.run({}, { Accept: 'text/event-stream' }),
  'run, large': (w) => w.run(large(), key()),
  'run, large and not JSON': (w) => w.agent('POST', '/runs', { body: `{"a":[${'1,'.repeat(60_000)}` }),
  'run, streamed with bytes': (w) => w.run({ messages: [{ id: 'u', role: 'user', content: inline(TEXT_FILE) }] }, { Accept: 'text/event-stream' }),
  'run, repeated': async (w) => {
    const input = { threadId: w.fresh(), runId: 'r', messages: [{ id: 'u', role: 'user', content: 'hello' }] };
    await accepted(w.server, input, w.headers);
    return w.run(input, { Accept: 'text/event-stream' });
  },
  'run, on a busy thread': async (w) => w.run({ threadId: await w.thread('stuck', 'running'), messages: [{ id: 'v', role: 'user', content: 'more' }] }),
  'ag-ui': (w) => w.agent('POST', '/ag-ui/assistant', { headers: { Accept: 'text/event-stream' }, body: {
    threadId: w.fresh(), runId: randomUUID(), state: {}, messages: [{ id: 'u', role: 'user', content: 'slow' }], tools: [], context: [], forwardedProps: {} } }),
  'run, look': async (w) => w.agent('GET', `/runs/${await w.thread()}`),
  'run, cancel': async (w) => w.agent('POST', `/runs/${await w.thread('stuck', 'running')}/cancel`),
  'run, answer': async (w) => w.agent('POST', `/runs/${(await w.asked()).threadId}/answer`, { headers: key(), body: { answer: 'This.' } }),
  'run, unqueue': async (w) => {
    const threadId = await w.thread('stuck', 'running');
    await accepted(w.server, { threadId, messages: [{ id: 'v', role: 'user', content: 'more' }] }, w.headers);
    return w.agent('DELETE', `/runs/${threadId}/queue/1`);
  },
  events: async (w) => ({ bytes: w.agent('GET', `/runs/${await w.thread()}/events?after=0`), answer: 'data: ' }),
  'events, ag-ui': async (w) => ({ bytes: w.agent('GET', `/runs/${await w.thread('slow', 'running')}/events?format=ag-ui`), answer: 'data: ' }),
  'run, history': async (w) => w.agent('GET', `/runs/${(await w.card()).threadId}/history`),
  history: async (w) => w.agent('GET', `/history?threadId=${await w.thread()}`),
  threads: (w) => w.agent('GET', '/threads'),
  'threads, search': (w) => w.agent('GET', '/threads?q=hello'),
  thread: async (w) => w.agent('GET', `/threads/${await w.thread()}`),
  'thread, rename': async (w) => w.agent('PATCH', `/threads/${await w.thread()}`, { headers: key(), body: { title: 'Another 另一个' } }),
  'thread, delete': async (w) => w.agent('DELETE', `/threads/${await w.thread()}`),
  'thread, delete with files': async (w) => w.agent('DELETE', `/threads/${(await w.card()).threadId}`),
  'thread, export': async (w) => w.agent('GET', `/threads/${(await w.card()).threadId}/export`),
  result: async (w) => {
    const { threadId, messageId } = await w.card();
    return w.agent('GET', `/threads/${threadId}/messages/${messageId}/result`);
  },
  ui: async (w) => {
    const { threadId, messageId } = await w.card();
    return w.agent('GET', `/threads/${threadId}/messages/${messageId}/ui`);
  },
  inbox: (w) => w.agent('GET', '/interactions'),
  interaction: async (w) => w.agent('GET', `/interactions/${(await w.asked()).interactionId}`),
  'interaction, move': async (w) => w.agent('PATCH', `/interactions/${(await w.asked()).interactionId}`, { body: { expiresAt: '2100-01-01T00:00:00Z' } }),
  'interaction, answer': async (w) => w.agent('POST', `/interactions/${(await w.asked()).interactionId}/answer`, { headers: key(), body: { answer: 'This.' } }),
  'interaction, approve': async (w) => w.agent('POST', `/interactions/${(await w.asked('book')).interactionId}/answer`, { headers: key(), body: { decision: 'approve' } }),
  'interaction, cancel': async (w) => w.agent('POST', `/interactions/${(await w.asked()).interactionId}/cancel`, { headers: key() }),
  grants: (w) => w.agent('GET', '/grants'),
  'grants, revoke': (w) => w.agent('DELETE', '/grants/grt_none'),
  upload: (w) => {
    const { bytes, headers } = form(w.fresh());
    return w.agent('POST', '/attachments', { headers: { ...headers, ...key() }, body: bytes });
  },
  'upload, large': (w) => {
    const { bytes, headers } = form(w.fresh(), randomBytes(300_000));
    return w.agent('POST', '/attachments', { headers, body: bytes });
  },
  download: async (w) => w.agent('GET', `/attachments/${(await w.attachment()).id}`),
  'download, signed': async (w) => {
    const threadId = w.fresh();
    await accepted(w.server, { threadId, messages: [{ id: 'u', role: 'user', content: inline(TEXT_FILE) }] }, w.headers);
    const { messages: [{ attachments: [{ url }] }] } = await history(w.server, threadId, '', w.headers);
    return w.bytes('GET', url, { login: {} });
  },
  calendar: (w) => w.agent('GET', '/calendar.ics'),
  'compile-ui-hints': (w) => w.agent('POST', '/compile-ui-hints', { body: CARD }),
  press: async (w) => {
    const { threadId, messageId, ids } = await w.card();
    return w.agent('POST', '/actions', { headers: key(), body: { threadId, messageId, actionId: ids.Say } });
  },
  'press, of the client': async (w) => {
    const { threadId, messageId, ids } = await w.card();
    return w.agent('POST', '/actions', { headers: key(), body: { threadId, messageId, actionId: ids.Copy } });
  },
  'press, forged': async (w) => w.agent('POST', '/actions', { headers: key(), body: { threadId: await w.thread(), messageId: 'm', actionId: 'a', toolId: 'order' } }),
  agents: (w) => w.agent('GET', '/agents'),
  settings: (w) => w.agent('GET', '/agents/assistant/settings'),
  'settings, change': (w) => w.agent('PATCH', '/agents/assistant/settings', { headers: key(), body: { locale: 'en' } }),
  channels: (w) => w.agent('GET', '/channels'),
  'channels, call': (w) => w.hook(),
  'admin, key add': (w) => w.admin('POST', '/keys', { user: 'eve' }),
  'admin, keys': (w) => w.admin('GET', '/keys'),
  'admin, key revoke': async (w) => w.admin('DELETE', `/keys/${keyId(await w.home.addKey('eve'))}`),
  'admin, backup': (w) => w.admin('POST', '/backup', { path: join(w.home.data, `copy-${randomUUID()}.db`) }),
  'admin, link': (w) => w.admin('POST', '/channels/own/links', { user: 'ann' }),
  'admin, unlink': (w) => w.admin('DELETE', '/channels/own/links', { sender: 'nobody' }),
  'socket, subscribe': async (w) => ({ ...w.socket({ type: 'subscribe', id: '1', sessionId: await w.thread(), after: 0 }), answer: '"type":"message.added"' }),
  'socket, inbox': (w) => ({ ...w.socket({ type: 'subscribe', id: '1', inbox: true }), answer: '"type":"inbox"' }),
  'socket, message': (w) => w.socket({ type: 'message', id: '1', sessionId: w.fresh(), content: 'hello' }),
  'socket, clarify': async (w) => {
    const { threadId, interactionId } = await w.asked();
    return w.socket({ type: 'clarify_response', id: '1', sessionId: threadId, requestId: interactionId, answer: 'This.' });
  },
  'socket, stop': async (w) => w.socket({ type: 'stop', id: '1', sessionId: await w.thread('stuck', 'running') }),
};

// SPDX-License-Identifier: Apache-2.0
//
// One server with everything around it that conversations need: services that its tools call, a shop that speaks MCP,
// somebody who is told of interactions, a program at the other end of a chat channel. What came there is kept.

import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { startServer } from '../api/server.mjs';
import { waitFor } from '../api/talk.mjs';
import { startBridge } from '../channels/hook.mjs';
import { WebShop } from '../tools/mcp-web.mjs';
import { AGENTS, LINES, TOOLS } from './script.mjs';

const READS = ['price', 'fit', 'visit', 'picture', 'refuse', 'slow']; // of a shop
const SECRET = 'a-secret-between-the-two-of-us';
const LONG = (kb) => Array.from({ length: kb * 8 }, (_, i) => `row ${String(i).padStart(6, '0')} 行 ${'abcdefghij'.repeat(11)}`);

async function listen(server) {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return server.address().port;
}

// The services of the tools, and whoever is told of interactions.
class Town {
  visits = []; // {house, key, language, body}
  told = []; // {event, signed, body}
  #held = new Map(); // word -> function that lets it go
  #tries = new Map(); // key -> how often it came

  static async open(t) {
    const town = new Town();
    const server = createServer({ keepAliveTimeout: 1 }, (asked, response) => town.#take(asked, response));
    town.port = await listen(server);
    t.after(async () => {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    });
    return town;
  }

  #take(asked, response) {
    const pieces = [];
    asked.on('error', () => {});
    response.on('error', () => {});
    asked.on('data', (piece) => pieces.push(piece)).on('end', () => {
      const body = Buffer.concat(pieces).toString('utf8');
      if (asked.url === '/told') this.#hear(asked.headers, body, response);
      else this.#serve(asked.url.slice(1), asked.headers, body, response);
    });
  }

  #hear(headers, body, response) {
    const signature = `v1=${createHmac('sha256', SECRET).update(`${headers['fermata-timestamp']}.${body}`).digest('hex')}`;
    this.told.push({ event: headers['fermata-event'], type: headers['content-type'], signed: signature === headers['fermata-signature'], body });
    response.writeHead(204).end();
  }

  #serve(house, headers, body, response) {
    const key = headers['idempotency-key'], args = JSON.parse(body);
    this.visits.push({ house, key, language: headers['accept-language'], type: headers['content-type'], body });
    const tries = (this.#tries.get(key) ?? 0) + 1;
    this.#tries.set(key, tries);
    const say = (value, status = 200, type = 'application/json') => {
      response.writeHead(status, { 'content-type': type });
      response.end(typeof value === 'string' || Buffer.isBuffer(value) ? value : JSON.stringify(value));
    };
    const doors = {
      order: () => say({ content: `Ordered ${args.item}.`, result: { item: args.item, count: args.count ?? 1, order: 1000 + args.item.length } }),
      pay: () => say({ content: 'Paid.', result: { paid: true } }),
      look: () => say({ result: args.reply ?? 'nothing' }),
      plain: () => say('Only words. 只有字。', 200, 'text/plain'),
      empty: () => say('', 204),
      bytes: () => say(Buffer.from([0, 1, 2, 255]), 200, 'application/octet-stream'),
      fail: () => say({ error: 'closed today' }, args.status ?? 503),
      wrong: () => say({ error: { code: 17, why: 'not like this' } }),
      html: () => say('<html><body>Oh no</body></html>', 500, 'text/html'),
      cut: () => response.destroy(),
      flaky: () => (tries < 2 ? response.destroy() : say({ result: { tries: 'enough' } })),
      long: () => say({ result: LONG(args.kb) }),
      words: () => say(LONG(args.kb).join('\n'), 200, 'text/plain'),
      show: () => say({ content: 'Shown.', result: {}, ui_hints: args.hints }),
      hold: () => { this.#held.set(args.word, () => say({ result: args.word })); },
    };
    doors[house]();
  }

  // Lets go whoever waits for the word, as soon as somebody does.
  async release(word) {
    const go = await waitFor(`somebody who waits for ${word}`, () => this.#held.get(word));
    this.#held.delete(word);
    go();
  }
}

// A request on the socket in the data folder.
function admin(data, method, path, value) {
  const body = JSON.stringify(value);
  return new Promise((done, failed) => {
    const sent = request({
      socketPath: join(data, 'fermata.sock'), method, path, agent: false,
      headers: { host: 'localhost', 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) },
    }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (piece) => { text += piece; }).on('error', failed)
        .on('end', () => done({ status: response.statusCode, text, json: () => JSON.parse(text) }));
    });
    sent.on('error', failed);
    sent.end(body);
  });
}

export class Place {
  static async open(t, program) {
    const place = new Place();
    place.program = program;
    place.town = await Town.open(t);
    place.bridge = await startBridge({ secret: SECRET });
    t.after(() => place.bridge.close());
    place.data = await mkdtemp(join(tmpdir(), 'fermata-corpus-'));
    t.after(() => rm(place.data, { recursive: true, force: true }));
    const file = (name) => join(place.data, name);
    place.shop = await WebShop.open(t, { log: file('shop.log') });
    place.older = await WebShop.open(t, { log: file('older.log'), version: '2025-11-25' });
    await writeFile(file('secret'), SECRET, { mode: 0o600 });
    await writeFile(file('script.jsonl'), LINES.map((line) => `${JSON.stringify(line)}\n`).join(''));
    const config = {
      model: { provider: 'scripted', name: 'scripted-1', retry_ms: 10, price: { input: 2, output: 8 } },
      agents: AGENTS,
      tools: TOOLS.map(({ name, ...more }) => ({ http: { name, url: `http://127.0.0.1:${place.town.port}/${name}`, description: `Calls ${name}.`, ...more } })),
      mcp: { shop: { url: place.shop.url, read: READS }, older: { url: place.older.url, read: READS } },
      webhooks: [{ url: `http://127.0.0.1:${place.town.port}/told`, secret_file: file('secret'), events: ['interaction.opened', 'interaction.resolved'] }],
      channels: { own: { kind: 'webhook', url: place.bridge.url, secret_file: file('secret'), allow: ['*'] } },
      script: file('script.jsonl'), script_log: file('asked.jsonl'),
    };
    await writeFile(file('fermata.yaml'), JSON.stringify(config)); // JSON is YAML
    place.server = await startServer({ data: place.data, program, env: { FERMATA_CONFIG: file('fermata.yaml'), TZ: 'UTC', LANG: 'C.UTF-8' } });
    t.after(() => place.server.stop({ keep: true }));
    await waitFor('both shops are open', () => place.server.stderr().split('mcp.connected').length > 2);
    const { host, port } = place.server;
    place.bridge.hook = `http://${host}:${port}/api/v1/agent/channels/own/webhook`;
    place.names = [
      [`${host}:${port}`, '<server>'], [`127.0.0.1:${place.town.port}`, '<town>'], [place.shop.url, '<shop>'], [place.older.url, '<older>'], [place.data, '<data>'],
    ];
    return place;
  }

  #read = 0; // bytes of the model's log
  #line = Buffer.alloc(0); // one that is not whole
  #asked = new Map(); // user -> [{round, system, messages, tools, locale}], in order

  // What the model was asked on behalf of a user so far.
  asked(user) {
    const file = openSync(join(this.data, 'asked.jsonl'), 'r');
    const news = Buffer.alloc(fstatSync(file).size - this.#read);
    this.#read += readSync(file, news, 0, news.length, this.#read);
    closeSync(file);
    const lines = Buffer.concat([this.#line, news]);
    const end = lines.lastIndexOf('\n') + 1;
    this.#line = lines.subarray(end);
    for (const line of lines.toString('utf8', 0, end).split('\n').filter(Boolean)) {
      const asked = JSON.parse(line);
      const [, who] = /^- (?:Name of the person: |对方的名字：)(.*)$/m.exec(asked.system);
      this.#asked.set(who, [...this.#asked.get(who) ?? [], asked]);
    }
    return this.#asked.get(user) ?? [];
  }

  async key(user, roles = ['user']) {
    const made = await admin(this.data, 'POST', '/keys', { user, roles });
    assert.equal(made.status, 201, made.text);
    return made.json().key;
  }

  async link(user) {
    const made = await admin(this.data, 'POST', '/channels/own/links', { user });
    assert.ok(made.status < 300, made.text);
    return made.json().code;
  }
}

// SPDX-License-Identifier: Apache-2.0
//
// An MCP server for tests: a shop. It speaks 2026-07-28 or an older version, over whatever carries its messages: the
// program mcp-child.mjs (standard input and output) or HttpShop in mcp-web.mjs. Every execution of `order` is a line in a
// file, on disk before anything is answered; what a test knows about executions it knows from there.

import { appendFileSync, closeSync, fsyncSync, openSync } from 'node:fs';

export const MODERN = '2026-07-28';
const META = 'io.modelcontextprotocol/';
const PIXEL = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
const FORM = {
  type: 'object',
  properties: { size: { type: 'string', title: 'Size', oneOf: [{ const: 's', title: 'Small' }, { const: 'l', title: 'Large' }] },
                note: { type: 'string', description: 'for the parcel' } },
  required: ['size'],
};

const object = (properties = {}, required = []) => ({ $schema: 'https://json-schema.org/draft/2020-12/schema', type: 'object', properties, required });
const text = (words, more = {}) => ({ content: [{ type: 'text', text: words }], ...more });

export const TOOLS = [
  { name: 'order', description: 'Order something.', inputSchema: object({ item: { type: 'string' } }, ['item']), annotations: { readOnlyHint: true } },
  { name: 'price', description: 'What something costs.', inputSchema: object({ item: { type: 'string' } }), annotations: { readOnlyHint: true } },
  { name: 'fit', description: 'Order what fits.', inputSchema: object() },
  { name: 'visit', description: 'Needs a page opened.', inputSchema: object() },
  { name: 'picture', description: 'A picture of it.', inputSchema: object() },
  { name: 'refuse', description: 'Never works.', inputSchema: object() },
  { name: 'slow', description: 'Tells its progress.', inputSchema: object() },
  { name: 'grow', description: 'Offers one tool more.', inputSchema: object() },
  { name: 'fall', description: 'Orders, and falls over.', inputSchema: object({ item: { type: 'string' } }) },
  { name: 'wait', description: 'Orders, and never answers.', inputSchema: object({ item: { type: 'string' } }) },
];

class Refusal extends Error {
  constructor(code, message, data) {
    super(message);
    Object.assign(this, { code, data });
  }
}

export class Shop {
  // `fall()` ends the server at once.
  constructor({ version = MODERN, log, fall = () => process.exit(7) }) {
    Object.assign(this, { version, log, fall, modern: version === MODERN, tools: [...TOOLS], asked: new Map(), count: 0, requests: 0 });
    this.listeners = new Set(); // {say, id?}: where news go
  }

  // A message of the client. `say` sends one back on the same way, before or after the answer, which is returned.
  async take(message, say) {
    if (message.method === undefined) return void this.asked.get(message.id)?.(message);
    if (message.id === undefined) return undefined;
    try {
      return { jsonrpc: '2.0', id: message.id, result: await this.#answer(message, say) };
    } catch (error) {
      return { jsonrpc: '2.0', id: message.id, error: { code: error.code ?? -32603, message: error.message, data: error.data } };
    }
  }

  #answer({ id, method, params = {} }, say) {
    const meta = params._meta ?? {};
    if (this.modern && meta[`${META}protocolVersion`] !== MODERN) throw new Refusal(-32602, `this is ${MODERN} only`);
    if (method === 'server/discover' && this.modern) {
      return { resultType: 'complete', supportedVersions: [MODERN], capabilities: { tools: { listChanged: true } } };
    }
    if (method === 'subscriptions/listen' && this.modern) return this.#listen(id, say);
    if (method === 'initialize' && !this.modern) {
      this.client = params;
      return { protocolVersion: this.version, capabilities: { tools: { listChanged: true } }, serverInfo: { name: 'shop', version: '1' } };
    }
    if (method === 'tools/list') return this.#list(params.cursor);
    if (method === 'tools/call') return this.#call(params, meta, say);
    throw new Refusal(-32601, `no method ${method}`);
  }

  // Two pages.
  #list(cursor) {
    const half = this.tools.length >> 1;
    const page = cursor === undefined ? { tools: this.tools.slice(0, half), nextCursor: 'rest' } : { tools: this.tools.slice(half) };
    return this.modern ? { resultType: 'complete', ttlMs: 0, ...page } : page;
  }

  #listen(id, say) {
    say({ jsonrpc: '2.0', method: 'notifications/subscriptions/acknowledged',
          params: { _meta: { [`${META}subscriptionId`]: id }, notifications: { toolsListChanged: true } } });
    this.listeners.add({ say, id });
    return new Promise(() => {}); // until the client goes
  }

  #changed() {
    for (const { say, id } of this.listeners) {
      say({ jsonrpc: '2.0', method: 'notifications/tools/list_changed',
            ...(this.modern ? { params: { _meta: { [`${META}subscriptionId`]: id } } } : {}) });
    }
  }

  #write(what, args, meta) {
    const file = openSync(this.log, 'a');
    appendFileSync(file, `${JSON.stringify({ what, key: meta['fermata/idempotencyKey'], args })}\n`);
    fsyncSync(file);
    closeSync(file);
  }

  // Asks in the way of the version: {reply} or {needs}, a result that asks.
  async #ask(key, question, params, say) {
    if (this.modern) {
      const reply = params.requestState === `state of ${key}` ? params.inputResponses?.[key] : undefined;
      if (reply) return { reply };
      const inputRequests = { [key]: { method: 'elicitation/create', params: question } };
      return { needs: { resultType: 'input_required', inputRequests, requestState: `state of ${key}` } };
    }
    const id = `ask-${++this.requests}`;
    const answered = new Promise((resolve) => { this.asked.set(id, resolve); });
    say({ jsonrpc: '2.0', id, method: 'elicitation/create', params: question });
    const { result, error } = await answered;
    if (error) throw new Refusal(-32603, `nobody was asked: ${error.message}`);
    return { reply: result };
  }

  async #call(params, meta, say) {
    const { name, arguments: args = {} } = params;
    switch (name) {
      case 'order':
        this.#write('order', args, meta);
        return text(`ordered ${args.item}`, { structuredContent: { item: args.item, by: this.version } });
      case 'price':
        this.#write('price', args, meta);
        if (args.item === 'fall') this.fall();
        return text(`${args.item} costs 3`);
      case 'fit': {
        const { reply, needs } = await this.#ask('size', { mode: 'form', message: 'Which size?', requestedSchema: FORM }, params, say);
        if (needs) return needs;
        this.#write('fit', reply, meta);
        return text('it fits', { structuredContent: reply });
      }
      case 'visit': {
        const question = { mode: 'url', message: 'Please log in', url: 'https://login.example/start?x=1', elicitationId: 'e1' };
        const { reply, needs } = await this.#ask('page', question, params, say);
        return needs ?? text('visited', { structuredContent: reply });
      }
      case 'picture':
        return { content: [{ type: 'image', data: PIXEL, mimeType: 'image/png' }, { type: 'text', text: 'a pixel' }] };
      case 'refuse':
        return text('sold out', { isError: true });
      case 'slow':
        for (let i = 1; i <= 3; i++) {
          say({ jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken: meta.progressToken, progress: i, total: 3, message: `part ${i}` } });
        }
        return text('slowly done');
      case 'grow':
        this.tools.push({ name: `extra_${++this.count}`, inputSchema: object() });
        this.#changed();
        return text('grown');
      case 'fall':
        this.#write('fall', args, meta);
        return this.fall();
      case 'wait':
        this.#write('wait', args, meta);
        return new Promise(() => {});
      default:
        throw new Refusal(-32602, `Unknown tool: ${name}`);
    }
  }
}

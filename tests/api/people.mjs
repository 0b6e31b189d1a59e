// SPDX-License-Identifier: Apache-2.0
//
// People, and a street of services outside the server that the agent calls. What was executed is counted there, never
// read from the server: a test that says "it did not run" asks the street.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { join } from 'node:path';

import { answer, until } from './asking.mjs';
import { Home } from './home.mjs';
import { factsOf, openEvents, waitFor } from './talk.mjs';

const ITEM = {
  type: 'object', required: ['item'], additionalProperties: false,
  properties: { item: { type: 'string', minLength: 1 }, count: { type: 'integer', minimum: 1, maximum: 20 } },
};

// What stands in the street. `order`, `pay` and `cut` change something; nobody may repeat them.
const HOUSES = {
  order: { effect: 'write', idempotent: false, schema: ITEM },
  pay: { effect: 'write', idempotent: false, risk: 'external', schema: ITEM },
  cut: { effect: 'write', idempotent: false, schema: ITEM }, // hangs up before it answers
  look: { effect: 'read', schema: { type: 'object', properties: { reply: {} } } }, // says what it was told to
  wait: { effect: 'read', schema: { type: 'object', properties: { until: { type: 'string' } } } }, // until it is let go
  ship: { effect: 'write', idempotent: false, schema: { type: 'object', properties: { until: { type: 'string' } } } }, // as wait
  fail: { effect: 'read', schema: { type: 'object' } },
  show: { effect: 'read', schema: { type: 'object', properties: { hints: {} } } }, // a card as it was told to
};

export class Street {
  visits = []; // {house, key, args, language}, in order of arrival
  #held = new Map(); // word -> function that lets it go
  mostHeld = 0; // at a time

  static async open(t) {
    const street = new Street();
    const server = createServer({ keepAliveTimeout: 1 }, (request, response) => street.#take(request, response));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    street.port = server.address().port;
    t.after(async () => {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    });
    return street;
  }

  #take(request, response) {
    const pieces = [];
    request.on('error', () => {});
    response.on('error', () => {});
    request.on('data', (piece) => pieces.push(piece)).on('end', () => {
      const visit = {
        house: request.url.slice(1), key: request.headers['idempotency-key'], args: JSON.parse(Buffer.concat(pieces)),
        language: request.headers['accept-language'],
      };
      this.visits.push(visit);
      const say = (value, status = 200) => {
        response.writeHead(status, { 'content-type': 'application/json' });
        response.end(JSON.stringify(value));
      };
      const doors = {
        order: () => say({ content: 'Ordered.', result: { order: this.visits.length } }),
        pay: () => say({ content: 'Paid.', result: { paid: true } }),
        cut: () => response.destroy(),
        look: () => say({ result: visit.args.reply ?? 'nothing' }),
        wait: () => this.#hold(visit.args.until, say, response),
        ship: () => this.#hold(visit.args.until, say, response),
        fail: () => say({ error: 'closed today' }, 503),
        show: () => say({ content: 'Shown.', result: {}, ui_hints: visit.args.hints }),
      };
      doors[visit.house]();
    });
  }

  #hold(word, say, response) {
    const go = () => say({ result: word });
    this.#held.set(word, go);
    this.mostHeld = Math.max(this.mostHeld, this.#held.size);
    response.on('close', () => this.#held.get(word) === go && this.#held.delete(word)); // the caller has gone
  }

  // Resolves when so many have come to the house.
  arrived(house, count = 1) {
    return waitFor(`${count} visits to ${house}`, () => this.ran(house) >= count);
  }

  // Lets go whoever waits for the word, as soon as somebody does.
  async release(word) {
    const go = await waitFor(`somebody who waits for ${word}`, () => this.#held.get(word));
    this.#held.delete(word);
    go();
  }

  // How often a call was executed; of a house, how many were.
  ran(call) {
    return this.visits.filter(({ key, house }) => key === call || house === call).length;
  }

  // The lines of fermata.yaml; JSON is YAML.
  config(assistant = {}) {
    const tools = Object.entries(HOUSES).map(([name, house]) => ({
      http: { name, url: `http://127.0.0.1:${this.port}/${name}`, description: `Calls ${name}.`, ...house },
    }));
    return JSON.stringify({ tools, agents: { assistant: { policy: { cut: 'allow', ship: 'allow' }, approvers: { pay: 'approver' },
      ...assistant } } });
  }
}

// A model's calls.
export const tool = (name, args = {}) => ({ name, args });
export const ask = (question, more = {}) => tool('ask_user', { question, ...more });
export const order = (item, count) => tool('order', { item, ...(count === undefined ? {} : { count }) });

// A street and a server whose model follows the lines: {home, street, asked}. `assistant` are members of its
// configuration; `asked()` is everything that the model was asked, in order.
export async function startPlace(t, lines, { assistant, env = {} } = {}) {
  const street = await Street.open(t);
  const home = await Home.make(t);
  const file = (name) => join(home.data, name);
  await writeFile(file('script.jsonl'), lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
  await writeFile(file('fermata.yaml'), street.config(assistant));
  home.env = {
    FERMATA_MODEL_PROVIDER: 'scripted', FERMATA_SCRIPT: file('script.jsonl'), FERMATA_SCRIPT_LOG: file('asked.jsonl'),
    FERMATA_CONFIG: file('fermata.yaml'), ...env,
  };
  await home.start();
  const asked = () => readFileSync(file('asked.jsonl'), 'utf8').split('\n').filter(Boolean).map((line) => JSON.parse(line));
  return { home, street, asked };
}

// What the model was asked on behalf of a message, in order. The message must be of that run alone.
export const askedAbout = (asked, text) => asked().filter(({ messages }) => messages.some((message) => message.text === text));
export const toolNames = ({ tools }) => tools.map(({ name }) => name);

// Facts of a thread after `after`, up to the one for which it holds.
export async function factsUntil(t, server, threadId, predicate, { after = 0, headers = {} } = {}) {
  const events = await openEvents(t, server, threadId, { query: `?after=${after}`, headers });
  const facts = factsOf(await events.until(predicate));
  events.close();
  return facts;
}

export const finished = (outcome) => ({ type, data }) => type === 'run.finished' && data.outcome === outcome;
export const failed = ({ type }) => type === 'run.error';
export const ofType = (facts, type) => facts.filter((fact) => fact.type === type).map(({ data }) => data);
export const resultsOf = (facts) => ofType(facts, 'tool.call.result');

// An answer that must be taken.
export async function settle(server, id, body, headers = {}) {
  const taken = await answer(server, id, body, headers);
  assert.equal(taken.status, 200, taken.text);
  return taken.json();
}

export const approve = (server, { interactionId, binding }, headers = {}) =>
  settle(server, interactionId, { decision: 'approve', binding }, headers);

export async function ended(server, threadId, headers = {}) {
  return until(server, threadId, 'completed', headers);
}

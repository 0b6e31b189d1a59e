// SPDX-License-Identifier: Apache-2.0
//
// A server whose model is behind HTTP: tests/tools/fake-model.mjs on the other side, and the street of people.mjs for
// its tools.

import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';

import { startFakeModel } from '../tools/fake-model.mjs';
import { Home } from './home.mjs';
import { Street } from './people.mjs';

export const KINDS = ['openai', 'anthropic'];
export const KEY = 'sk-fake-0123456789abcdefghij';

// Settings that make a server use the model.
export const modelEnv = (kind, model, more = {}) => ({
  FERMATA_MODEL_PROVIDER: kind, FERMATA_MODEL_BASE_URL: model.url, FERMATA_MODEL_API_KEY: KEY, FERMATA_MODEL_NAME: 'fake-1',
  FERMATA_MODEL_RETRY_MS: '1', ...more,
});

// Texts that a person wrote, newest first.
export function saidIn(body) {
  const texts = [];
  for (const { role, content } of body.messages) {
    if (role !== 'user') continue;
    if (typeof content === 'string') texts.push(content);
    else for (const block of content) if (block.type === 'text') texts.push(block.text);
  }
  return texts.reverse();
}

// Answers by scene: the newest message of a person that names one picks it, and each request to it gets the next answer
// of its list; the last one is repeated. `asked(name)` are the bodies of the requests of a scene.
export class Scenes {
  #lists;
  #asked = new Map();

  constructor(lists) {
    this.#lists = new Map(Object.entries(lists));
  }

  add(name, list) {
    this.#lists.set(name, list);
  }

  asked(name) {
    return this.#asked.get(name) ?? [];
  }

  times(name) {
    return this.asked(name).length;
  }

  answer = (request) => {
    const name = saidIn(request.body).find((text) => this.#lists.has(text));
    if (name === undefined) return null;
    const list = this.#lists.get(name), asked = this.asked(name);
    const answer = list[Math.min(asked.length, list.length - 1)];
    this.#asked.set(name, [...asked, { ...request.body, at: request.at, headers: request.headers }]);
    return typeof answer === 'function' ? answer(request) : answer;
  };
}

// {home, server, street, model, scenes}. Ends with the test, and fails it if the server ever sent what the API refuses.
export async function startModelled(t, kind, lists, { assistant, env = {}, config } = {}) {
  const scenes = new Scenes(lists);
  const model = await startFakeModel({ kind, key: KEY, answers: scenes.answer });
  const street = await Street.open(t);
  const home = await Home.make(t);
  const file = join(home.data, 'fermata.yaml');
  await writeFile(file, config ?? street.config(assistant));
  home.env = { FERMATA_CONFIG: file, ...modelEnv(kind, model), ...env };
  t.after(async () => {
    await home.stop();
    await model.close();
    assert.deepEqual(model.refused, [], 'the API would have refused a request');
    assert.equal(model.unexpected, 0, 'requests that no scene expects');
  });
  await home.start();
  return { home, server: home.server, street, model, scenes };
}

// ---- requests of both kinds, read alike ----

// The results of calls, as {id, text}.
export function resultsIn(body) {
  const text = (content) => (Array.isArray(content) ? content.map((part) => part.text).join('') : content ?? '');
  return body.messages.flatMap(({ role, content, tool_call_id: id }) => {
    if (role === 'tool') return [{ id, text: text(content) }];
    if (!Array.isArray(content)) return [];
    return content.filter(({ type }) => type === 'tool_result').map((block) => ({ id: block.tool_use_id, text: text(block.content) }));
  });
}

// The calls, as {id, name, args}.
export function callsIn(body) {
  return body.messages.flatMap(({ content, tool_calls: calls }) => {
    if (calls) return calls.map((call) => ({ id: call.id, name: call.function.name, args: JSON.parse(call.function.arguments) }));
    if (!Array.isArray(content)) return [];
    return content.filter(({ type }) => type === 'tool_use').map(({ id, name, input }) => ({ id, name, args: input }));
  });
}

export const toolsIn = (body) => (body.tools ?? []).map((tool) => tool.name ?? tool.function.name);

export function systemIn(body) {
  return body.system ?? body.messages.find(({ role }) => role === 'system').content;
}

// What the model thought, as it comes back.
export function thoughtsIn(body) {
  return body.messages.flatMap(({ content, reasoning_content: thought }) => {
    if (thought !== undefined) return [thought];
    if (!Array.isArray(content)) return [];
    return content.filter(({ type }) => type === 'thinking').map(({ thinking }) => thinking);
  });
}

export function picturesIn(body) {
  return body.messages.flatMap(({ content }) => (Array.isArray(content) ? content : []))
    .filter(({ type }) => type === 'image' || type === 'image_url')
    .map((block) => (block.source ? { type: block.source.media_type, data: block.source.data } : {
      type: /^data:([^;]+);/.exec(block.image_url.url)[1], data: block.image_url.url.split(',')[1],
    }));
}

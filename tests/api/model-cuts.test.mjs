// SPDX-License-Identifier: Apache-2.0
//
// Answers of both APIs, cut at every border between two events and one byte to either side of it: by a connection that
// dies, and by one that ends as if nothing were wrong. However an answer is cut, the conversation is in the end as if it
// had not been: no call runs that was not whole, none runs twice, and nobody keeps half a text.
//
// The answers are the streams of the unit tests. Each is first played whole, and what came of it is the measure.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readdir, readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';

import { text } from '../tools/fake-model.mjs';
import { KINDS, resultsIn, startModelled } from './modelled.mjs';
import { ofType } from './people.mjs';
import { history, talk, user } from './talk.mjs';

const STREAMS = join(import.meta.dirname, '../unit/model/streams');
const STREAMS_MIN = 20;
const BATCH = 24; // conversations at a time
const NAME = /"name":\s*"([A-Za-z0-9_-]{1,64})"/g;

// Every tool that an answer calls is a write that needs nobody's consent, so that an execution too many would show.
const AGENT = (names) => ({ policy: Object.fromEntries(names.map((name) => [name, 'allow'])), max_rounds: 5 });
const TOOLS = (names, url) => names.map((name) => ({ http: { name, url: `${url}/${name}`, effect: 'write', idempotent: false, schema: { type: 'object' } } }));

async function loadStreams(kind) {
  const files = (await readdir(join(STREAMS, kind))).filter((name) => name.endsWith('.sse'));
  return Promise.all(files.sort().map(async (name) => ({ name: name.slice(0, -4), bytes: await readFile(join(STREAMS, kind, name)) })));
}

// Behind each empty line, and a byte before and after that.
function cutsOf(bytes) {
  const cuts = new Set();
  for (const match of bytes.toString('latin1').matchAll(/\r?\n\r?\n/g)) {
    const border = match.index + match[0].length;
    for (const at of [border - 1, border, border + 1]) if (at > 0 && at < bytes.length) cuts.add(at);
  }
  return [...cuts];
}

// What everybody may know of a conversation, without ids and times. A call is told by what ran.
async function outcomeOf(server, threadId, facts) {
  const { messages } = await history(server, threadId);
  return {
    end: [facts.at(-1).type, facts.at(-1).data.outcome ?? facts.at(-1).data.code],
    rows: messages.map(({ role, content, toolCalls, toolName, error }) => ({
      role, content, toolName, error,
      calls: toolCalls?.map((call) => [call.function.name, call.function.arguments]),
    })).slice(1),
    texts: ofType(facts, 'text.message.end').map(({ content }) => content),
    calls: ofType(facts, 'tool.call').map(({ toolName, args }) => [toolName, args]),
  };
}

for (const kind of KINDS) {
  describe(kind, () => {
    const closing = [];
    const t = { after: (fn) => closing.unshift(fn) };
    const ran = []; // keys of calls, one for each execution, as the tool has seen them
    const made = new Set(); // ids of calls that facts have told
    let streams, server, scenes;

    before(async () => {
      streams = await loadStreams(kind);
      assert.ok(streams.length >= STREAMS_MIN, `${streams.length} streams`);
      const names = [...new Set(streams.flatMap(({ bytes }) => [...bytes.toString().matchAll(NAME)].map((match) => match[1])))];
      const tool = createServer((request, response) => {
        request.resume().on('end', () => {
          ran.push(request.headers['idempotency-key']);
          response.end('{"result":"ok"}');
        });
      });
      tool.listen(0, '127.0.0.1');
      await once(tool, 'listening');
      t.after(() => {
        tool.closeAllConnections();
        tool.close();
      });
      const config = JSON.stringify({ tools: TOOLS(names, `http://127.0.0.1:${tool.address().port}`), agents: { assistant: AGENT(names) } });
      ({ server, scenes } = await startModelled(t, kind, {}, { config }));
    });
    after(async () => {
      for (const fn of closing) await fn();
    });

    // One conversation: the model's first turn gets these answers, one for each attempt; whatever comes then is the end.
    async function converse(on, name, attempts) {
      let tried = 0;
      scenes.add(name, [({ body }) => (resultsIn(body).length ? null : attempts[tried++]) ?? text('The end.')]);
      const { facts, start } = await talk(on, server, { messages: [user(name)] });
      const keys = ofType(facts, 'tool.call').map(({ toolCallId }) => toolCallId);
      for (const key of keys) made.add(key);
      const outcome = await outcomeOf(server, start.threadId, facts);
      return { ...outcome, executed: keys.map((key) => ran.filter((seen) => seen === key).length) };
    }

    async function checkStream(on, { name, bytes }, how) {
      const measure = await converse(on, `${name} ${how} whole`, [{ raw: bytes }]);
      for (const times of measure.executed) assert.ok(times <= 1);
      const cuts = cutsOf(bytes);
      for (let i = 0; i < cuts.length; i += BATCH) {
        await Promise.all(cuts.slice(i, i + BATCH).map(async (at) => {
          const word = `${name} ${how} ${at}`;
          assert.deepEqual(await converse(on, word, [{ raw: bytes, [how]: at }, { raw: bytes }]), measure, word);
        }));
      }
      return cuts.length;
    }

    for (const how of ['cut', 'ends']) {
      test(how === 'cut' ? 'the connection dies' : 'the connection ends in good order', async (on) => {
        let cuts = 0;
        for (const stream of streams) cuts += await checkStream(on, stream, how);
        on.diagnostic(`${cuts} cuts of ${streams.length} streams`);
        assert.ok(cuts > 100);
      });
    }

    test('nothing ran but what was told, and that once', () => {
      assert.equal(new Set(ran).size, ran.length);
      for (const key of ran) assert.ok(made.has(key), `${key} ran, and nobody was told`);
      assert.ok(ran.length > 50);
    });
  });
}

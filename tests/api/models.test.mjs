// SPDX-License-Identifier: Apache-2.0
//
// Whole conversations through both model APIs: what is sent is what the API takes, what is heard is what people get,
// and a provider in trouble is borne. The fake provider refuses what the real one would; at the end nothing was refused.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';

import { calls, failure, reasoning, signatureOf, startFakeModel, text } from '../tools/fake-model.mjs';
import { waiting } from './asking.mjs';
import { callsIn, KEY, KINDS, picturesIn, resultsIn, saidIn, startModelled, systemIn, thoughtsIn, toolsIn } from './modelled.mjs';
import { approve, factsUntil, finished, ofType, resultsOf, settle } from './people.mjs';
import { accepted, factsOf, history, isEnd, openEvents, talk, user } from './talk.mjs';

const WORDS = 'Grüße, 你好 👋. "Quoted"\nand a second line.';
const ROUNDS = 3;
const TOKENS = 1000;
const look = (reply) => ['look', { reply }];
const order = (item) => ['order', { item }];
const ask = (question, more = {}) => ['ask_user', { question, ...more }];
const spend = (tokens, what) => ({ ...what, usage: { input: tokens, output: 0 } });
const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==';

// A call whose name and id are longer than any fact may be.
const LONG = 'n'.repeat(100 * 1024);
const longNames = {
  openai: [
    { choices: [{ index: 0, delta: { tool_calls: [{ index: 0, id: LONG, function: { name: LONG, arguments: '{}' } }] } }] },
    { choices: [{ index: 0, delta: {}, finish_reason: 'tool_calls' }] },
  ].map((event) => `data: ${JSON.stringify(event)}\n\n`).join('') + 'data: [DONE]\n\n',
  anthropic: [
    { type: 'message_start', message: {} },
    { type: 'content_block_start', index: 0, content_block: { type: 'tool_use', id: LONG, name: LONG, input: {} } },
    { type: 'content_block_stop', index: 0 }, { type: 'message_delta', delta: { stop_reason: 'tool_use' } }, { type: 'message_stop' },
  ].map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join(''),
};

// Characters whose halves come in two deltas, as servers send them that count in UTF-16; JSON.stringify writes a half as its escape.
const [HIGH, LOW] = '🙂'.split('');
const halves = {
  openai: [
    { delta: { reasoning_content: `hm ${HIGH}` } }, { delta: { reasoning_content: LOW } },
    { delta: { content: `a${HIGH}` } }, { delta: { content: `${LOW}b` } },
    { delta: { tool_calls: [{ index: 0, id: 'c1', function: { name: 'look', arguments: `{"reply":"${HIGH}` } }] } },
    { delta: { tool_calls: [{ index: 0, function: { arguments: `${LOW}"}` } }] } }, { delta: {}, finish_reason: 'tool_calls' },
  ].map((choice) => `data: ${JSON.stringify({ choices: [choice] })}\n\n`).join('') + 'data: [DONE]\n\n',
  anthropic: [
    { type: 'message_start', message: {} },
    { type: 'content_block_start', index: 0, content_block: { type: 'thinking', thinking: '' } },
    { type: 'content_block_delta', index: 0, delta: { type: 'thinking_delta', thinking: `hm ${HIGH}` } },
    { type: 'content_block_delta', index: 0, delta: { type: 'thinking_delta', thinking: LOW } },
    { type: 'content_block_stop', index: 0 },
    { type: 'content_block_start', index: 1, content_block: { type: 'text', text: '' } },
    { type: 'content_block_delta', index: 1, delta: { type: 'text_delta', text: `a${HIGH}` } },
    { type: 'content_block_delta', index: 1, delta: { type: 'text_delta', text: `${LOW}b` } },
    { type: 'content_block_stop', index: 1 },
    { type: 'content_block_start', index: 2, content_block: { type: 'tool_use', id: 't1', name: 'look', input: {} } },
    { type: 'content_block_delta', index: 2, delta: { type: 'input_json_delta', partial_json: `{"reply":"${HIGH}` } },
    { type: 'content_block_delta', index: 2, delta: { type: 'input_json_delta', partial_json: `${LOW}"}` } },
    { type: 'content_block_stop', index: 2 }, { type: 'message_delta', delta: { stop_reason: 'tool_use' } }, { type: 'message_stop' },
  ].map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join(''),
};

// What the model says to the message that names the scene, request by request.
const SCENES = {
  'plain': [text(WORDS)],
  'silent': [{}],
  'tool': [{ ...text('I will look.'), ...calls(look('a shop')) }, text('There is a shop.')],
  'no arguments': [calls(['look', '']), text('Nothing.')],
  'parallel': [calls(look('one'), look('two'), look('three')), text('Three.')],
  'question': [calls(ask('How long?', { choices: ['30 minutes', '1 hour'] })), text('An hour it is.')],
  'confirm': [{ ...text('I would order.'), ...calls(order('tea')) }, text('Ordered.')],
  'plan': [calls(['submit_plan', { steps: [{ content: 'Look around' }, { content: 'Order tea' }] }]), calls(look('a shop')),
    text('Found a shop.'), text('Nothing to order.'), text('All done.')],
  'endless': [calls(look('again'))],
  'spend': [spend(400, calls(look('a'))), spend(700, calls(look('b'))), text('Never said.')],
  'wrong': [calls(['look', '{"reply":']), calls(look('right')), text('Corrected.')],
  'halves': [({ path }) => ({ raw: halves[path.endsWith('/messages') ? 'anthropic' : 'openai'] }), text('Seen.')],
  'long names': [({ path }) => ({ raw: longNames[path.endsWith('/messages') ? 'anthropic' : 'openai'] }), text('No such tool.')],
  'busy': [failure(429, 'slow down', { headers: { 'retry-after': '1' } }), text('Now.')],
  'away': [failure(500), failure(529), failure(503), text('Here again.')],
  'refused': [failure(400, 'the prompt is too long')],
  'broken': [{ ...text('Half of it'), breaksOff: { after: 4, message: 'Overloaded' } }, text('All of it.')],
  'cut': [{ ...text('Half of it'), cut: 500 }, text('All of it.')],
  'drip': [{ ...text(WORDS), wire: 1, delayMs: 1 }],
  'think': [{ ...reasoning('Shall I look? 想一想'), ...text('Let me see.'), ...calls(look('x')) }, text('Seen.'), text('Seen again.')],
  'think, then wait': [{ ...reasoning('Whom to ask?'), ...calls(ask('Who?')) }, text('Thank you.')],
  'picture': [text('A dot.')],
  'first': [text('One.')],
  'second': [text('Two.')],
};

for (const kind of KINDS) {
  describe(kind, { concurrency: 4 }, () => {
    let server, street, scenes;
    const closing = [];
    before(async () => {
      ({ server, street, scenes } = await startModelled({ after: (fn) => closing.unshift(fn) }, kind, SCENES,
        { assistant: { max_rounds: ROUNDS, budget: { tokens: TOKENS } } }));
    });
    after(async () => {
      for (const fn of closing) await fn();
    });

    const lastText = (facts) => ofType(facts, 'text.message.end').at(-1).content;
    const say = (t, word) => talk(t, server, { messages: [user(word)] });

    test('a plain answer, with what it cost in tokens', async (t) => {
      const { facts, start } = await say(t, 'plain');
      const [end] = ofType(facts, 'text.message.end');
      assert.deepEqual([end.content, end.inputTokens, end.outputTokens], [WORDS, 11, 7]);
      const [body] = scenes.asked('plain');
      assert.equal(body.model, 'fake-1');
      assert.match(systemIn(body), /Your work/);
      assert.deepEqual(saidIn(body), ['plain']);
      assert.ok(toolsIn(body).includes('ask_user') && toolsIn(body).includes('order'));
      assert.equal(body.headers['content-type'], 'application/json');
      const { messages } = await history(server, start.threadId);
      assert.deepEqual(messages.map(({ role, content }) => [role, content]), [['user', 'plain'], ['assistant', WORDS]]);
    });

    test('an answer without a word ends the run', async (t) => {
      const { facts } = await say(t, 'silent');
      assert.equal(facts.at(-1).data.outcome, 'completed');
      assert.equal(lastText(facts), '');
    });

    test('a tool is called, and its result goes back with the call', async (t) => {
      const { facts } = await say(t, 'tool');
      assert.deepEqual(ofType(facts, 'text.message.end').map(({ content }) => content), ['I will look.', 'There is a shop.']);
      const [, body] = scenes.asked('tool');
      assert.deepEqual(callsIn(body).map(({ name, args }) => [name, args]), [['look', { reply: 'a shop' }]]);
      assert.deepEqual(resultsIn(body).map(({ id, text: said }) => [id, said]), [[callsIn(body)[0].id, '"a shop"']]);
    });

    test('a character that comes in two halves is one: in words, thoughts and arguments', async (t) => {
      const stream = await openEvents(t, server, 'halves');
      await accepted(server, { threadId: 'halves', messages: [user('halves')] });
      const events = await stream.until(isEnd);
      const facts = factsOf(events);
      assert.deepEqual([ofType(facts, 'text.message.end')[0].content, ofType(facts, 'reasoning.end')[0].content], ['a🙂b', 'hm 🙂']);
      assert.deepEqual(ofType(facts, 'tool.call').map(({ args }) => args), [{ reply: '🙂' }]);
      let units = 0;
      for (const { data: { delta, offset } } of events.filter(({ type, data }) => type === 'text.delta' && data.messageId === ofType(facts, 'text.message.end')[0].messageId)) {
        assert.equal(offset, units, 'offsets count UTF-16 units');
        units += delta.length;
      }
    });

    test('a call without arguments has none', async (t) => {
      const { facts } = await say(t, 'no arguments');
      assert.deepEqual(ofType(facts, 'tool.call').map(({ args }) => args), [{}]);
      assert.equal(lastText(facts), 'Nothing.');
    });

    test('calls side by side, results in the order of the calls', async (t) => {
      const { facts } = await say(t, 'parallel');
      assert.equal(resultsOf(facts).length, 3);
      const [, body] = scenes.asked('parallel');
      assert.deepEqual(resultsIn(body).map(({ text: said }) => said), ['"one"', '"two"', '"three"']);
      assert.deepEqual(resultsIn(body).map(({ id }) => id), callsIn(body).map(({ id }) => id));
    });

    test('a question is asked, and the answer is the result', async (t) => {
      const { open: [question], threadId } = await waiting(server, 'question', { threadId: 'question' });
      await settle(server, question.interactionId, { choices: ['c2'] });
      const facts = await factsUntil(t, server, threadId, finished('completed'));
      assert.equal(lastText(facts), 'An hour it is.');
      assert.deepEqual(resultsIn(scenes.asked('question')[1]).map(({ text: said }) => said), ['1 hour']);
    });

    test('a write waits for its approval, then runs once', async (t) => {
      const before = street.ran('order');
      const { open: [confirm], threadId } = await waiting(server, 'confirm', { threadId: 'confirm' });
      assert.equal(street.ran('order'), before);
      await approve(server, confirm);
      const facts = await factsUntil(t, server, threadId, finished('completed'));
      assert.equal(lastText(facts), 'Ordered.');
      assert.equal(street.ran('order'), before + 1);
      assert.equal(resultsIn(scenes.asked('confirm')[1]).length, 1);
    });

    test('a plan, step by step, with the model speaking twice in a row', async (t) => {
      const { open: [confirm], threadId } = await waiting(server, 'plan', { threadId: 'plan' });
      await approve(server, confirm);
      const facts = await factsUntil(t, server, threadId, finished('completed'));
      assert.deepEqual(ofType(facts, 'text.message.end').map(({ content }) => content).filter(Boolean),
        ['Found a shop.', 'Nothing to order.', 'All done.']);
      assert.equal(scenes.times('plan'), 5);
      assert.deepEqual(toolsIn(scenes.asked('plan').at(-1)), [], 'the report has no tools');
    });

    test('rounds used up: exactly so many, and one request for the report', async (t) => {
      const { facts } = await say(t, 'endless');
      assert.deepEqual([facts.at(-1).data.outcome, facts.at(-1).data.code], ['exhausted', 'budget_exhausted']);
      assert.equal(resultsOf(facts).length, ROUNDS);
      assert.equal(scenes.times('endless'), ROUNDS + 1);
      assert.deepEqual(toolsIn(scenes.asked('endless').at(-1)), []);
    });

    test('tokens used up: no request more', async (t) => {
      const { facts } = await say(t, 'spend');
      assert.deepEqual([facts.at(-1).data.outcome, facts.at(-1).data.code], ['exhausted', 'budget_exhausted']);
      assert.equal(scenes.times('spend'), 2);
      assert.ok(facts.at(-1).data.usage.inputTokens >= TOKENS);
    });

    test('arguments that are no JSON are corrected', async (t) => {
      const { facts } = await say(t, 'wrong');
      assert.deepEqual(resultsOf(facts).map(({ error }) => error), ['invalid_arguments', undefined]);
      assert.equal(lastText(facts), 'Corrected.');
    });

    test('a call with a name and an id of any length is borne: there is no such tool', async (t) => {
      const { facts } = await say(t, 'long names');
      const [call] = ofType(facts, 'tool.call');
      assert.ok(call.toolName.length <= 256 && LONG.startsWith(call.toolName));
      assert.equal(resultsOf(facts)[0].error, 'tool_unavailable');
      assert.equal(lastText(facts), 'No such tool.');
    });

    test('429 with Retry-After: left alone for so long, then fine', async (t) => {
      const { facts } = await say(t, 'busy');
      assert.equal(lastText(facts), 'Now.');
      const [first, second] = scenes.asked('busy');
      assert.ok(second.at - first.at >= 990, `asked again after ${second.at - first.at} ms`);
    });

    test('away three times: the person is asked, and "continue" goes on', async (t) => {
      const { open: [lost], threadId } = await waiting(server, 'away', { threadId: 'away' });
      assert.equal(lost.type, 'connection_lost');
      assert.equal(scenes.times('away'), 3);
      await settle(server, lost.interactionId, { decision: 'continue' });
      const facts = await factsUntil(t, server, threadId, finished('completed'));
      assert.equal(lastText(facts), 'Here again.');
      assert.equal(scenes.times('away'), 4);
    });

    test('a refusal is an error at once, in the provider\'s words', async (t) => {
      const { facts } = await say(t, 'refused');
      assert.deepEqual([facts.at(-1).type, facts.at(-1).data.code], ['run.error', 'model_error']);
      assert.match(facts.at(-1).data.message, /the prompt is too long/);
      assert.equal(scenes.times('refused'), 1);
    });

    for (const word of ['broken', 'cut']) {
      test(`an answer that is ${word} is thrown away and asked for again`, async (t) => {
        const events = await openEvents(t, server, word);
        await accepted(server, { threadId: word, messages: [user(word)] });
        const all = await events.until(isEnd);
        events.close();
        assert.equal(lastText(factsOf(all)), 'All of it.');
        assert.equal(ofType(factsOf(all), 'text.message.end').length, 1);
        assert.equal(scenes.times(word), 2);
        const { messages } = await history(server, word);
        assert.deepEqual(messages.map(({ content }) => content), [word, 'All of it.']);
      });
    }

    test('an answer that comes byte by byte', async (t) => {
      const { facts } = await say(t, 'drip');
      assert.equal(lastText(facts), WORDS);
    });

    test('thoughts come back with the call they led to, unchanged', async (t) => {
      const { facts, start } = await say(t, 'think');
      const thought = 'Shall I look? 想一想';
      assert.deepEqual(ofType(facts, 'reasoning.end').map(({ content }) => content), [thought]);
      const [first, second] = scenes.asked('think');
      assert.deepEqual(thoughtsIn(first), []);
      assert.deepEqual(thoughtsIn(second), [thought]);
      if (kind === 'anthropic') {
        const { content } = second.messages.find(({ role }) => role === 'assistant');
        assert.deepEqual(content.map(({ type }) => type), ['thinking', 'text', 'tool_use']);
        assert.equal(content[0].signature, signatureOf(thought));
      }
      assert.ok(!JSON.stringify(await history(server, start.threadId)).includes(signatureOf(thought)), 'a signature is not for people');
    });

    test('a picture is shown', async (t) => {
      const content = [{ type: 'text', text: 'picture' }, { type: 'binary', mimeType: 'image/png', data: PNG, filename: 'dot.png' }];
      const { facts } = await talk(t, server, { messages: [{ role: 'user', content }] });
      assert.equal(lastText(facts), 'A dot.');
      assert.deepEqual(picturesIn(scenes.asked('picture')[0]), [{ type: 'image/png', data: PNG }]);
    });

    test('a second message has the first and its answer before it', async (t) => {
      await talk(t, server, { threadId: 'two', messages: [user('first')] });
      await talk(t, server, { threadId: 'two', messages: [user('second')] });
      const [body] = scenes.asked('second');
      const said = body.messages.filter(({ role }) => role !== 'system').map(({ role, content }) => [role, content[0].text ?? content]);
      assert.deepEqual(said, [['user', 'first'], ['assistant', 'One.'], ['user', 'second']]);
    });
  });

  describe(`${kind}, with settings of its own`, () => {
    test('thoughts are not given to another model', async (t) => {
      const { home, scenes } = await startModelled(t, kind, SCENES);
      const { open: [question], threadId } = await waiting(home.server, 'think, then wait', { threadId: 'think' });
      await home.restart({ FERMATA_MODEL_NAME: 'fake-2' });
      await settle(home.server, question.interactionId, { answer: 'Ann' });
      await factsUntil(t, home.server, threadId, finished('completed'));
      const [, body] = scenes.asked('think, then wait');
      assert.deepEqual([body.model, thoughtsIn(body)], ['fake-2', []]);
      assert.deepEqual(resultsIn(body).map(({ text: said }) => said), ['Ann']);
    });

    test('the same, if the model is the same after a restart', async (t) => {
      const { home, scenes } = await startModelled(t, kind, SCENES);
      const { open: [question], threadId } = await waiting(home.server, 'think, then wait', { threadId: 'think' });
      await home.restart();
      await settle(home.server, question.interactionId, { answer: 'Ann' });
      await factsUntil(t, home.server, threadId, finished('completed'));
      assert.deepEqual(thoughtsIn(scenes.asked('think, then wait')[1]), ['Whom to ask?']);
    });

    test('a provider that says nothing is given up after the time for a first byte', async (t) => {
      const { server, scenes } = await startModelled(t, kind, { hang: [{ hang: true }, text('Awake.')] }, { env: { FERMATA_MODEL_FIRST_BYTE_S: '1' } });
      const before = Date.now(); // the time runs from when the request is sent, which nobody here sees
      const { facts } = await talk(t, server, { messages: [user('hang')] });
      assert.equal(ofType(facts, 'text.message.end').at(-1).content, 'Awake.');
      const [, second] = scenes.asked('hang');
      assert.ok(second.at - before >= 990, `after ${second.at - before} ms`);
    });

    test('one that falls silent in the middle likewise', async (t) => {
      const { server, scenes } = await startModelled(t, kind, { hang: [{ ...text('Half'), hang: 400 }, text('Whole.')] }, { env: { FERMATA_MODEL_IDLE_S: '1' } });
      const { facts } = await talk(t, server, { messages: [user('hang')] });
      assert.deepEqual(ofType(facts, 'text.message.end').map(({ content }) => content), ['Whole.']);
      assert.equal(scenes.times('hang'), 2);
    });

    test('a wrong key is an error that says so', async (t) => {
      const { home, model } = await startModelled(t, kind, { hello: [text('Hi.')] }, { env: { FERMATA_MODEL_API_KEY: 'sk-wrong' } });
      const { facts } = await talk(t, home.server, { messages: [user('hello')] });
      assert.deepEqual([facts.at(-1).type, facts.at(-1).data.code], ['run.error', 'model_error']);
      assert.match(facts.at(-1).data.message, /401/);
      assert.equal(model.refused.length, 1);
      model.refused.length = 0;
      await home.restart({ FERMATA_MODEL_API_KEY: KEY });
      const again = await talk(t, home.server, { messages: [user('hello')] });
      assert.equal(again.facts.at(-1).data.outcome, 'completed');
    });

    test('max_output is asked for', async (t) => {
      const { server, scenes } = await startModelled(t, kind, { hello: [text('Hi.')] }, { env: { FERMATA_MODEL_MAX_OUTPUT: '321' } });
      await talk(t, server, { messages: [user('hello')] });
      const [body] = scenes.asked('hello');
      assert.equal(body.max_tokens ?? body.max_completion_tokens, 321);
    });
  });
}

// What the tests above rely on: the fake provider refuses what the real one would.
describe('the fake provider', () => {
  const user1 = { role: 'user', content: 'a' };
  const use = (id) => ({ type: 'tool_use', id, name: 'f', input: {} });
  const result = (id) => ({ type: 'tool_result', tool_use_id: id, content: 'r' });
  const call = (id) => ({ id, type: 'function', function: { name: 'f', arguments: '{}' } });
  const made = (...ids) => ({ role: 'assistant', content: null, tool_calls: ids.map(call) });
  const told = (id) => ({ role: 'tool', tool_call_id: id, content: 'r' });
  const tool = (name) => ({ type: 'function', function: { name, parameters: { type: 'object' } } });
  const model = (...content) => ({ role: 'assistant', content });
  const person = (...content) => ({ role: 'user', content });

  // Members of the body beside those of a good one, the headers likewise, and what is said about them; null: it is fine.
  const ROWS = {
    openai: [
      [{}, {}, null],
      [{ messages: [user1, made('1', '2'), told('2'), told('1'), user1], tools: [tool('f')] }, {}, null],
      [{}, { authorization: undefined }, /didn't provide/],
      [{}, { authorization: 'Bearer other' }, /Incorrect API key/],
      [{ model: '' }, {}, /model parameter/],
      [{ whatever: 1 }, {}, /Unrecognized request argument/],
      [{ messages: [] }, {}, /empty array/],
      [{ messages: [{ role: 'user', content: null }] }, {}, /got null/],
      [{ messages: [user1, told('1')] }, {}, /response to a preceeding/],
      [{ messages: [user1, made('1'), told('2')] }, {}, /response to a preceeding/],
      [{ messages: [user1, made('1', '2'), told('1'), user1] }, {}, /did not have response messages: 2/],
      [{ messages: [user1, made('1')] }, {}, /did not have response messages: 1/],
      [{ messages: [user1, made()] }, {}, /empty array/],
      [{ tools: [tool('files.read')] }, {}, /does not match pattern/],
      [{ tools: [tool('x'.repeat(65))] }, {}, /does not match pattern/],
      [{ tools: [] }, {}, /empty array/],
    ],
    anthropic: [
      [{}, {}, null],
      [{ messages: [user1, model({ type: 'text', text: 'b' }, use('1'), use('2')), person(result('1'), result('2'), { type: 'text', text: 'c' })] }, {}, null],
      [{}, { 'x-api-key': undefined }, /header is required/],
      [{}, { 'x-api-key': 'other' }, /invalid x-api-key/],
      [{}, { 'anthropic-version': undefined }, /anthropic-version/],
      [{ max_tokens: undefined }, {}, /max_tokens: Field required/],
      [{ whatever: 1 }, {}, /Extra inputs/],
      [{ messages: [] }, {}, /at least one message/],
      [{ messages: [model({ type: 'text', text: 'b' }), user1] }, {}, /first message/],
      [{ messages: [user1, user1] }, {}, /must alternate/],
      [{ messages: [user1, model({ type: 'text', text: 'b' })] }, {}, /prefill/],
      [{ messages: [person({ type: 'text', text: ' ' })] }, {}, /non-whitespace/],
      [{ messages: [person()] }, {}, /non-empty content/],
      [{ messages: [{ role: 'system', content: 'a' }] }, {}, /'user' or 'assistant'/],
      [{ messages: [user1, model(use('1')), user1] }, {}, /without `tool_result` blocks immediately after: 1/],
      [{ messages: [user1, model(use('1')), person(result('2'))] }, {}, /unexpected `tool_use_id`/],
      [{ messages: [user1, model(use('1')), person({ type: 'text', text: 'c' }, result('1'))] }, {}, /come first/],
      [{ messages: [user1, model({ ...use('1'), input: '{}' }), person(result('1'))] }, {}, /valid dictionary/],
      [{ messages: [user1, model(use('a.b')), person(result('a.b'))] }, {}, /tool_use.id: String should match/],
      [{ messages: [user1, model({ type: 'thinking', thinking: 'x', signature: signatureOf('y') }, use('1')), person(result('1'))] }, {}, /Invalid `signature`/],
      [{ messages: [user1, model({ type: 'thinking', thinking: 'x' }, use('1')), person(result('1'))] }, {}, /signature: Field required/],
      [{ tools: [{ name: 'files.read', input_schema: { type: 'object' } }] }, {}, /should match pattern/],
      [{ tools: [{ name: 'f', input_schema: {} }] }, {}, /input_schema.type/],
    ],
  };
  const GOOD = { openai: { model: 'm', stream: true, messages: [user1] }, anthropic: { model: 'm', stream: true, max_tokens: 1, messages: [user1] } };
  const HEADERS = { openai: { authorization: `Bearer ${KEY}` }, anthropic: { 'x-api-key': KEY, 'anthropic-version': '2023-06-01' } };
  const PATHS = { openai: '/chat/completions', anthropic: '/v1/messages' };

  for (const kind of KINDS) {
    test(`${kind}: what it takes and what it refuses`, async (t) => {
      const fake = await startFakeModel({ kind, key: KEY, answers: () => text('Fine.'), t });
      for (const [members, extra, expected] of ROWS[kind]) {
        const headers = Object.fromEntries(Object.entries({ 'content-type': 'application/json', ...HEADERS[kind], ...extra }).filter(([, value]) => value !== undefined));
        const answer = await fetch(fake.url + PATHS[kind], { method: 'POST', headers, body: JSON.stringify({ ...GOOD[kind], ...members }) });
        const said = await answer.text();
        const what = JSON.stringify([members, extra]);
        if (expected === null) {
          assert.equal(answer.status, 200, what + said);
          assert.match(said, /Fine|"Fin/);
        } else {
          assert.ok(answer.status === 400 || answer.status === 401, what);
          assert.match(JSON.parse(said).error.message, expected, what);
        }
      }
    });
  }
});

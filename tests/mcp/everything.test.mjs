// SPDX-License-Identifier: Apache-2.0
//
// The protocol's reference server, unmodified from npm, over both transports: every kind of result, progress, and what
// it asks people, also when either side is killed meanwhile. It speaks 2025-11-25.
//
// One more tool is one more row of RESULTS.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { MCP_TINY_IMAGE } from './node_modules/@modelcontextprotocol/server-everything/dist/tools/get-tiny-image.js';

import { answer, cancelOne, inbox, rows, until, waiting } from '../api/asking.mjs';
import { get, history, runOf, talk, user, waitFor } from '../api/talk.mjs';
import { connected, startEverything, startWeb } from './everything.mjs';

const PAGE = 'https://example.org/start?x=1';
const call = (name, args = {}) => ({ turns: [{ calls: [{ name: `everything.${name}`, args }] }, { text: 'Done.' }] });

// word of the message, tool, arguments, what the result is like; all reads, by the server's own word
const RESULTS = [
  ['echo', 'echo', { message: 'tea 茶 "\\\n' }, { text: 'Echo: tea 茶 "\\\n' }],
  ['sum', 'get-sum', { a: 2, b: 3.5 }, { text: 'The sum of 2 and 3.5 is 5.5.' }],
  ['weather', 'get-structured-content', { location: 'Chicago' },
    { result: { temperature: 36, conditions: 'Light rain / drizzle', humidity: 82 } }],
  ['annotated', 'get-annotated-message', { messageType: 'success' }, { text: 'Operation completed successfully' }],
  ['picture', 'get-tiny-image', {}, { text: "Here's the image you requested:\n\nThe image above is the MCP logo.", more: true }],
  ['links', 'get-resource-links', { count: 2 }, { text: /\/blob\/1\b[^]*Text Resource 2: demo:\/\/resource\/dynamic\/text\/2\n?[^]*Resource 2: plaintext resource$/ }],
  ['reference', 'get-resource-reference', { resourceType: 'Text', resourceId: 7 },
    { text: /demo:\/\/resource\/dynamic\/text\/7:?\s+Resource 7: This is a plaintext resource[^]*using the URI: demo:\/\/resource\/dynamic\/text\/7$/ }],
  ['refused', 'get-resource-reference', { resourceType: 'Text', resourceId: -1 },
    { error: 'Invalid resourceId: -1. Must be a finite positive integer.' }],
  ['wrong', 'get-structured-content', { location: 'Mars' }, { error: 'invalid_arguments' }],
  ['environment', 'get-env', {}, { text: /"PATH"/, without: /FERMATA|ASAN_OPTIONS/ }],
];
const LINES = [
  ...RESULTS.map(([word, name, args]) => ({ match: `^${word}`, ...call(name, args) })),
  { match: '^long', ...call('trigger-long-running-operation', { duration: 0.3, steps: 3 }) },
  { match: '^ask', ...call('trigger-elicitation-request') },
  { match: '^page', ...call('trigger-url-elicitation', { url: PAGE, elicitationId: 'e1' }) },
  { match: '^before', ...call('trigger-url-elicitation', { url: PAGE, errorPath: true }) },
  { turns: [{ text: 'Hello.' }] },
];
const ASKS = { read: ['trigger-*'] };
const WAYS = [{ http: false, name: 'a child' }, { http: true, name: 'HTTP' }];

let threads = 0;
const next = () => `e${++threads}`;

// What the model got of the only call of a thread: {text, error}.
function modelGot(home, threadId) {
  const [row] = rows(home, `SELECT model_text AS text, error FROM tool_calls
    WHERE thread=(SELECT id FROM threads WHERE thread_id='${threadId}')`);
  return row;
}

// What the server says that it was answered.
async function told(home, threadId) {
  await until(home.server, threadId, 'completed');
  const { text, error } = modelGot(home, threadId);
  assert.equal(error, '');
  return JSON.parse(/Raw result: (\{[^]*\})$/.exec(text)[1]);
}

const openOf = (home, threadId, type) => waitFor(`${type} of ${threadId}`, async () => {
  const { status, interactions } = await runOf(home.server, threadId);
  return status === 'waiting' && interactions.find((one) => one.type === type && one.status === 'open');
});

async function accept(home, { interactionId }, body) {
  const answered = await answer(home.server, interactionId, body);
  assert.equal(answered.status, 200, answered.text);
}

async function approved(home, words) {
  const run = await waiting(home.server, words, { threadId: next() });
  assert.deepEqual(run.open.map(({ type }) => type), ['confirm']);
  await accept(home, run.open[0], { decision: 'approve' });
  return run.threadId;
}

async function killAndStart(home) {
  await home.server.kill9();
  home.server = null;
  await home.start();
}

for (const { http, name } of WAYS) {
  test(`results over ${name}`, async (t) => {
    const { home } = await startEverything(t, { http, more: { trusted: true }, lines: LINES });

    await t.test('its tools are listed, with what its annotations say', async () => {
      const [{ capabilities }] = (await get(home.server, '/agents')).json().agents;
      const tools = new Map(capabilities.tools.map((tool) => [tool.name, tool]));
      assert.deepEqual([tools.get('everything.echo').effect, tools.get('everything.echo').description], ['read', 'Echoes back the input string']);
      const asks = tools.get('everything.trigger-elicitation-request');
      assert.deepEqual([asks.effect, asks.risk], ['write', 'external']);
      assert.ok(!tools.has('everything.trigger-sampling-request') && !tools.has('everything.get-roots-list')); // we offer neither
      assert.ok(!tools.has('everything.simulate-research-query')); // it runs only as a task
      await waitFor('it is said', () => /tool left out.*simulate-research-query/.test(home.server.stderr()));
    });

    for (const [word, tool, , expected] of RESULTS) {
      await t.test(`${word}: ${tool}`, async (t) => {
        const threadId = next();
        const { facts } = await talk(t, home.server, { threadId, messages: [user(word)] });
        assert.equal(facts.at(-1).data.outcome, 'completed');
        const { data } = facts.find(({ type }) => type === 'tool.call.result');
        const got = modelGot(home, threadId);
        assert.equal(data.toolName, `everything.${tool}`);
        assert.equal(data.error, expected.error);
        if (expected.result) assert.deepEqual(data.result, expected.result);
        if (typeof expected.text === 'string') assert.equal(expected.more ? got.text.slice(0, expected.text.length) : got.text, expected.text);
        else if (expected.text) assert.match(got.text, expected.text);
        if (expected.without) assert.doesNotMatch(got.text, expected.without);
      });
    }

    await t.test('a picture is an attachment, byte by byte', async (t) => {
      const threadId = next();
      await talk(t, home.server, { threadId, messages: [user('picture')] });
      const { messages } = await history(home.server, threadId);
      const [file, ...others] = messages.find(({ role }) => role === 'tool').attachments;
      assert.deepEqual([file.mimeType, file.filename, others.length], ['image/png', 'image-1.png', 0]);
      const got = await fetch(new URL(file.url, home.server.url));
      assert.equal(got.headers.get('content-type'), 'image/png');
      assert.ok(Buffer.from(await got.arrayBuffer()).equals(Buffer.from(MCP_TINY_IMAGE, 'base64')));
    });

    await t.test('progress is told as it is made', async (t) => {
      const { facts, events } = await talk(t, home.server, { threadId: next(), messages: [user('long')] });
      const { data } = facts.find(({ type }) => type === 'tool.call.result');
      const progress = events.all.filter(({ type }) => type === 'tool.progress').map((event) => event.data);
      assert.deepEqual(progress, [1, 2, 3].map((n) => ({ toolCallId: data.toolCallId, progress: n, total: 3 })));
      const order = events.all.map(({ type }) => type);
      assert.ok(order.lastIndexOf('tool.progress') < order.indexOf('tool.call.result'));
      assert.match(data.content, /^Long running operation completed\./);
    });
  });

  test(`questions over ${name}`, async (t) => {
    const { home } = await startEverything(t, { http, more: ASKS, lines: LINES });
    const asked = async (word) => {
      const { threadId, open } = await waiting(home.server, word, { threadId: next() });
      assert.deepEqual(open.map(({ type }) => type), ['ask_user']);
      return { threadId, open: open[0] };
    };

    await t.test('a form of every type is filled in', async () => {
      const { threadId, open } = await asked('ask');
      assert.match(open.question, /^everything\.trigger-elicitation-request .*Please provide inputs/);
      assert.deepEqual(open.fields.map(({ name: field, type }) => `${field} ${type}`), [
        'name text', 'check boolean', 'firstLine text', 'email text', 'homepage text', 'birthdate date', 'integer number',
        'number number', 'untitledSingleSelectEnum choice', 'untitledMultipleSelectEnum text', 'titledSingleSelectEnum choice',
        'titledMultipleSelectEnum text', 'legacyTitledEnum choice',
      ]);
      assert.deepEqual(open.fields.filter(({ required }) => required).map((field) => field.name), ['name']);
      assert.match(open.fields.find((field) => field.name === 'titledSingleSelectEnum').description, /left out it is: Superman\)$/);
      assert.ok(!JSON.stringify(open.ui).includes('U+000A'), 'the card has no marks in it');
      for (const [field, value] of [['integer', 101], ['email', 'nobody'], ['titledSingleSelectEnum', 'Joker'], ['untitledMultipleSelectEnum', 'Harp']]) {
        const refused = await answer(home.server, open.interactionId, { fields: { name: 'Ann', [field]: value } });
        assert.deepEqual([refused.status, refused.json().field], [400, `fields.${field}`], refused.text);
      }
      await accept(home, open, { fields: {
        name: 'Ann 安', check: true, email: 'ann@example.org', birthdate: '2000-01-31', integer: 7, untitledMultipleSelectEnum: 'Piano; Bass',
        titledSingleSelectEnum: 'Wonder Woman', titledMultipleSelectEnum: 'Trout', legacyTitledEnum: 'Birds',
      } });
      assert.deepEqual(await told(home, threadId), { action: 'accept', content: {
        name: 'Ann 安', check: true, firstLine: 'It was a dark and stormy night.', email: 'ann@example.org', birthdate: '2000-01-31', integer: 7,
        number: 3.14, untitledSingleSelectEnum: 'Monica', untitledMultipleSelectEnum: ['Piano', 'Bass'], titledSingleSelectEnum: 'hero-3',
        titledMultipleSelectEnum: ['fish-3'], legacyTitledEnum: 'pet-3',
      } });
    });

    await t.test('skipped is declined, and cancelled is cancelled', async () => {
      const skipped = await asked('ask');
      await accept(home, skipped.open, { skip: true });
      assert.deepEqual(await told(home, skipped.threadId), { action: 'decline' });
      const cancelled = await asked('ask');
      assert.equal((await cancelOne(home.server, cancelled.open.interactionId)).status, 200);
      assert.deepEqual(await told(home, cancelled.threadId), { action: 'cancel' });
    });

    await t.test('a page: opened, or not', async () => {
      const done = await asked('page');
      assert.ok(done.open.question.includes('(example.org)') && done.open.question.includes(PAGE), done.open.question);
      await accept(home, done.open, { choices: ['c1'] });
      assert.deepEqual(await told(home, done.threadId), { action: 'accept' });
      const not = await asked('page');
      await accept(home, not.open, { choices: ['c2'] });
      assert.deepEqual(await told(home, not.threadId), { action: 'decline' });
    });

    await t.test('a page that is needed before, and then a question: each is answered by a person', async () => {
      const { threadId, open } = await asked('before');
      assert.match(open.question, /satisfy the prerequisite/);
      await accept(home, open, { choices: ['c1'] });
      const second = await openOf(home, threadId, 'ask_user');
      assert.ok(second.question.includes(PAGE), second.question);
      await accept(home, second, { choices: ['c2'] });
      assert.deepEqual(await told(home, threadId), { action: 'decline' });
      const not = await asked('before');
      await accept(home, not.open, { choices: ['c2'] });
      await until(home.server, not.threadId, 'completed');
      assert.match(modelGot(home, not.threadId).error, /did not open the page/);
    });

    await t.test('two forms at once, answered the other way round', async () => {
      const [one, two] = [await asked('ask'), await asked('ask')];
      await accept(home, two.open, { fields: { name: 'Two' } });
      assert.equal((await told(home, two.threadId)).content.name, 'Two');
      await accept(home, one.open, { fields: { name: 'One' } });
      assert.equal((await told(home, one.threadId)).content.name, 'One');
    });
  });

  test(`killed while a person is asked, over ${name}: a read is called again, and the question stands`, async (t) => {
    const { home } = await startEverything(t, { http, more: ASKS, lines: LINES });
    const run = await waiting(home.server, 'ask', { threadId: next() });
    await killAndStart(home);
    const open = await openOf(home, run.threadId, 'ask_user');
    assert.equal(open.interactionId, run.open[0].interactionId);
    await accept(home, open, { fields: { name: 'Late' } });
    assert.equal((await told(home, run.threadId)).content.name, 'Late');
    assert.equal((await inbox(home.server)).interactions.length, 0);
  });

  test(`killed while a person is asked, over ${name}: a page, then the question on the line`, async (t) => {
    const { home } = await startEverything(t, { http, more: ASKS, lines: LINES });
    const run = await waiting(home.server, 'before', { threadId: next() });
    await killAndStart(home);
    await connected(home);
    await accept(home, run.open[0], { choices: ['c1'] });
    let open = await openOf(home, run.threadId, 'ask_user');
    // A child that is new wants its page again; behind HTTP the session is new, and so does that.
    for (let pages = 0; !open.question.includes(PAGE); pages++) {
      assert.ok(pages < 2, open.question);
      assert.match(open.question, /satisfy the prerequisite/);
      await accept(home, open, { choices: ['c1'] });
      const before = open.interactionId;
      open = await waitFor('the next question', async () => {
        const found = await openOf(home, run.threadId, 'ask_user');
        return found.interactionId !== before && found;
      });
    }
    await accept(home, open, { choices: ['c1'] });
    assert.deepEqual(await told(home, run.threadId), { action: 'accept' });
  });

  test(`killed while a person is asked, over ${name}: a write is uncertain, with the question`, async (t) => {
    const { home } = await startEverything(t, { http, lines: LINES });
    const threadId = await approved(home, 'ask');
    const question = await openOf(home, threadId, 'ask_user');
    await killAndStart(home);
    const uncertain = await openOf(home, threadId, 'uncertain');
    assert.ok(uncertain.displayText.includes('Please provide inputs'), uncertain.displayText);
    assert.equal((await answer(home.server, question.interactionId, { fields: { name: 'Late' } })).status, 409);
    assert.deepEqual((await inbox(home.server)).interactions.map(({ type }) => type), ['uncertain']);
    await accept(home, uncertain, { decision: 'retry' });
    await accept(home, await openOf(home, threadId, 'ask_user'), { fields: { name: 'Again' } });
    assert.equal((await told(home, threadId)).content.name, 'Again');
  });
}

test('the server behind HTTP is killed and comes back: new sessions, and an answer is not asked for twice', async (t) => {
  const { home, web } = await startEverything(t, { http: true, more: { read: ['*'] }, lines: LINES });
  const run = await waiting(home.server, 'ask', { threadId: next() });
  await web.kill();
  const second = await startWeb(t, web.port);
  await accept(home, run.open[0], { fields: { name: 'Back' } });
  assert.equal((await told(home, run.threadId)).content.name, 'Back');
  await second.kill();
  await startWeb(t, web.port); // it says 400 to the old session
  const { facts } = await talk(t, home.server, { threadId: next(), messages: [user('sum')] });
  assert.equal(facts.find(({ type }) => type === 'tool.call.result').data.content, 'The sum of 2 and 3.5 is 5.5.');
});

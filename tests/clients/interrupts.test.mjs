// SPDX-License-Identifier: Apache-2.0
//
// Runs that pause for a person, seen by both clients: what is asked arrives as interrupts, answers go back as resume[], and
// nothing is done twice. What was executed is counted in the street.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { cancelOne, interaction, move, until } from '../api/asking.mjs';
import { answer, runOf, waitFor } from '../api/talk.mjs';
import { ask, order, startPlace, tool } from '../api/people.mjs';
import { assertSame, CLIENTS, newThread, reload, story, Tab } from './agui.mjs';

const FORM = { fields: [{ name: 'when', type: 'date', label: 'When', required: true }, { name: 'people', type: 'number', label: 'People' }] };
const EXPIRY_MS = 3000;
const then = (...calls) => ({ turns: [{ text: 'One moment.', calls }, { text: 'Done.' }] });
const LINES = [
  { match: '^choose', ...then(ask('How long?', { choices: ['30 minutes', '1 hour'] })) },
  { match: '^strict', ...then(ask('Which room?', { choices: ['Red', 'Blue'], allow_freeform: false })) },
  { match: '^several', ...then(ask('Who comes?', { choices: ['Ann', 'Bob', 'Eve'], multi: true })) },
  { match: '^form', ...then(ask('The details?', FORM)) },
  { match: '^buy', ...then(order('tea', 1)) },
  { match: '^both', ...then(ask('How long?'), order('tea')) },
  { match: '^two', ...then(order('tea'), order('milk')) },
  { match: '^mixed', ...then(tool('look', { reply: 'seen' }), ask('How long?'), order('tea')) },
  { match: '^cut', ...then(tool('cut', { item: 'tea' })) },
  { match: '^lost', turns: [{ text: 'Here again.', fail: { at: 'start', status: 503, times: 3 } }] },
  { match: '^chain', turns: [{ calls: [ask('First?')] }, { calls: [order('tea')] }, { calls: [ask('Last?')] }, { text: 'Done.' }] },
  { match: '^hello', turns: [{ text: 'Hello.' }] },
  { match: '^帮我约', turns: [
    { calls: [ask('会议多长？', { choices: ['30 分钟', '1 小时'] })] },
    { text: '好的，我来创建日程。', calls: [tool('calendar_write', { title: '评审会', start_time: '2030-01-31T15:00:00+08:00', end_time: '2030-01-31T16:00:00+08:00' })] },
    { text: '已为你约好。' }] },
];

// What a run looked like: pieces of one thing as one, steps by their names.
const shape = (turn) => turn.events.map(({ type, stepName, name }) => [type, stepName ?? name].filter(Boolean).join(' '))
  .filter((line, i, all) => line !== all[i - 1]);

// What the model got for the calls of the newest round, in order.
const told = (asked) => {
  const { messages } = asked().at(-1);
  const last = messages.findLastIndex(({ role }) => role === 'assistant');
  return messages.slice(last + 1).filter(({ role }) => role === 'tool').map(({ text }) => text);
};

for (const client of CLIENTS) {
  // A thread with a run that pauses: {server, street, asked, home, tab, turn}.
  async function paused(t, text, options) {
    const { home, street, asked } = await startPlace(t, LINES, options);
    const tab = new Tab(client, home.server, newThread());
    const turn = await tab.say(text);
    assert.equal(turn.outcome, 'interrupt');
    return { home, server: home.server, street, asked, tab, turn };
  }

  describe(`HttpAgent ${client.version}`, () => {
    test('a question is an interrupt that says what it takes', async (t) => {
      const { server, tab, turn } = await paused(t, 'choose');
      const [asked] = tab.open;
      assert.equal(tab.open.length, 1);
      const own = await interaction(server, asked.id);
      assert.deepEqual([asked.reason, asked.message, asked.toolCallId], ['input_required', 'How long?', own.toolCallId]);
      assert.deepEqual(asked.metadata['fermata.interaction'], own);
      const schema = JSON.stringify(asked.responseSchema);
      for (const word of ['30 minutes', '1 hour', 'skip']) assert.ok(schema.includes(word), `${word} in ${schema}`);
      assert.ok(turn.of('CUSTOM').some(({ name, value }) => name === 'fermata.interaction.request' && value.interactionId === asked.id));
      await assertSame(tab, server);
    });

    const ANSWERS = { // what is asked, the payload, what the model gets
      'a string that is a label': ['choose', '1 hour', '1 hour'],
      'a string of one\'s own': ['choose', 'two weeks', 'two weeks'],
      'a choice': ['choose', { choices: ['c2'] }, '1 hour'],
      'a choice and words': ['choose', { choices: ['c1'], text: 'at most' }, '30 minutes: at most'],
      'an answer in an object': ['choose', { answer: '30 minutes' }, '30 minutes'],
      'a choice where no other words are taken': ['strict', 'Blue', 'Blue'],
      'several choices': ['several', { choices: ['c1', 'c3'] }, '["Ann","Eve"]'],
      'fields': ['form', { fields: { when: '2030-01-31', people: 4 } }, '{"when":"2030-01-31","people":4}'],
      'skipping it': ['choose', { skip: true }, 'The user skipped this question'],
    };
    for (const [name, [text, payload, model]] of Object.entries(ANSWERS)) {
      test(`a question is answered by ${name}`, async (t) => {
        const { server, asked, tab } = await paused(t, text, { assistant: { locale: 'en' } });
        const turn = await tab.resume(payload);
        assert.equal(turn.outcome, 'success');
        assert.deepEqual(tab.open, []);
        assert.deepEqual(told(asked), [model]);
        assert.deepEqual(turn.of('TOOL_CALL_RESULT').map(({ content }) => content), [model]);
        assert.deepEqual(turn.of('TOOL_CALL_START'), [], 'the call is not sent again');
        assert.deepEqual(turn.of('MESSAGES_SNAPSHOT'), [], 'the client has everything else');
        await assertSame(tab, server);
      });
    }

    test('a question that is given up', async (t) => {
      const { server, asked, tab } = await paused(t, 'choose');
      const id = tab.open[0].id;
      const turn = await tab.resume(undefined);
      assert.equal(turn.outcome, 'success');
      assert.equal((await interaction(server, id)).status, 'canceled');
      assert.equal(told(asked).length, 1);
      assert.equal(turn.of('TOOL_CALL_RESULT').length, 1, 'the call is not left hanging');
      await assertSame(tab, server);
    });

    test('an answer that cannot be taken leaves everything as it was', async (t) => {
      const { server, street, tab } = await paused(t, 'both');
      for (const [payloads, field] of [
        [[' ', { approved: true }], /^resume\[0\]\.payload/],
        [['an hour', { approved: 'yes' }], /^resume\[1\]\.payload/],
        [['an hour', { approved: true, editedArgs: { item: 7 } }], /^resume\[1\]\.payload/],
        [['an hour', 'yes'], /^resume\[1\]\.payload/],
      ]) {
        const refused = await tab.start({ resume: tab.answers(...payloads) }).refusal();
        assert.deepEqual([refused.status, refused.code], [400, 'invalid_field']);
        assert.match(refused.field, field);
      }
      const unknown = await tab.start({ resume: [...tab.answers('an hour', { approved: true }), { interruptId: 'int_none', status: 'resolved', payload: 'x' }] }).refusal();
      assert.deepEqual([unknown.status, unknown.field], [400, 'resume[2].interruptId']);
      assert.equal(street.visits.length, 0);
      assert.equal(tab.open.length, 2, 'they are still open for the client');
      const turn = await tab.resume('an hour', { approved: true });
      assert.equal(turn.outcome, 'success');
      assert.equal(street.ran('order'), 1);
      await assertSame(tab, server);
    });

    test('a conversation from its first event to its last', async (t) => {
      const { server, tab, turn } = await paused(t, '帮我约明天下午三点的评审会');
      const asking = ['TOOL_CALL_START', 'TOOL_CALL_ARGS', 'TOOL_CALL_END', 'CUSTOM fermata.interaction.request'];
      assert.deepEqual(shape(turn), ['RUN_STARTED', 'STATE_SNAPSHOT', 'STEP_STARTED intent', ...asking, 'STEP_FINISHED intent', 'RUN_FINISHED']);
      const second = await tab.resume('1 小时');
      assert.deepEqual(shape(second), ['RUN_STARTED', 'STATE_SNAPSHOT', 'STEP_STARTED intent', 'TOOL_CALL_RESULT', 'TEXT_MESSAGE_START', 'TEXT_MESSAGE_CONTENT',
        'TOOL_CALL_START', 'TOOL_CALL_ARGS', 'TEXT_MESSAGE_END', 'TOOL_CALL_END', 'CUSTOM fermata.interaction.request', 'STEP_FINISHED intent', 'RUN_FINISHED']);
      assert.equal(tab.open[0].reason, 'tool_call');
      const third = await tab.resume({ approved: true });
      assert.deepEqual(shape(third), ['RUN_STARTED', 'STATE_SNAPSHOT', 'STEP_STARTED intent', 'STEP_FINISHED intent', 'STEP_STARTED execution', 'TOOL_CALL_RESULT',
        'TEXT_MESSAGE_START', 'TEXT_MESSAGE_CONTENT', 'STEP_FINISHED execution', 'STEP_STARTED report', 'TEXT_MESSAGE_END', 'STEP_FINISHED report', 'RUN_FINISHED']);
      const { usage } = await runOf(server, tab.threadId);
      const used = [turn, second, third].map((one) => one.of('RUN_FINISHED')[0].usage[0]);
      const sum = (name) => used.reduce((total, one) => total + one[name], 0);
      assert.deepEqual([sum('inputTokens'), sum('outputTokens')], [usage.inputTokens, usage.outputTokens], 'each leg tells its own use');
      await assertSame(tab, server);
    });

    test('an approval', async (t) => {
      const { server, street, tab } = await paused(t, 'buy');
      const [asked] = tab.open;
      assert.equal(asked.reason, 'tool_call');
      assert.equal(asked.toolCallId, tab.messages.at(-1).toolCalls[0].id);
      const properties = asked.responseSchema.properties;
      assert.equal(properties.approved.type, 'boolean');
      assert.ok(properties.editedArgs.properties.item, 'editing is offered, with the schema of the arguments');
      assert.deepEqual(asked.responseSchema.required, ['approved']);
      assert.equal(street.visits.length, 0);
      const turn = await tab.resume({ approved: true });
      assert.equal(turn.outcome, 'success');
      assert.deepEqual(street.visits.map(({ args }) => args), [{ item: 'tea', count: 1 }]);
      assert.deepEqual(turn.of('STEP_STARTED').map(({ stepName }) => stepName), ['intent', 'execution', 'report']);
      await assertSame(tab, server);
    });

    test('a denial, with the reason', async (t) => {
      const { server, street, asked, tab } = await paused(t, 'buy');
      const turn = await tab.resume({ approved: false, comment: 'Too dear.' });
      assert.equal(turn.outcome, 'success');
      assert.equal(street.visits.length, 0);
      assert.match(told(asked)[0], /Too dear\./);
      assert.equal(turn.of('TOOL_CALL_RESULT').length, 1);
      await assertSame(tab, server);
    });

    test('an approval with other arguments', async (t) => {
      const { server, street, tab } = await paused(t, 'buy');
      const turn = await tab.resume({ approved: true, editedArgs: { item: 'coffee', count: 2 } });
      assert.equal(turn.outcome, 'success');
      assert.deepEqual(street.visits.map(({ args }) => args), [{ item: 'coffee', count: 2 }]);
      await assertSame(tab, server);
    });

    test('two at once, in one resume', async (t) => {
      const { server, street, asked, tab } = await paused(t, 'both');
      assert.deepEqual(tab.open.map(({ reason }) => reason), ['input_required', 'tool_call']);
      const turn = await tab.resume('an hour', { approved: true });
      assert.equal(turn.outcome, 'success');
      assert.equal(street.ran('order'), 1);
      assert.deepEqual(told(asked), ['an hour', told(asked)[1]]);
      await assertSame(tab, server);
    });

    test('two at once, one approved and one not', async (t) => {
      const { server, street, tab } = await paused(t, 'two');
      const turn = await tab.resume({ approved: false }, { approved: true });
      assert.equal(turn.outcome, 'success');
      assert.deepEqual(street.visits.map(({ args }) => args.item), ['milk']);
      await assertSame(tab, server);
    });

    test('two at once, one answered elsewhere before', async (t) => {
      const { server, street, asked, tab } = await paused(t, 'both');
      const [question, approval] = tab.open;
      await answer(server, question.id, { answer: 'half an hour' });
      await until(server, tab.threadId, 'waiting');
      const turn = await tab.resume('an hour', { approved: true });
      assert.equal(turn.outcome, 'success');
      assert.equal(told(asked)[0], 'half an hour', 'the first answer counts');
      assert.equal((await interaction(server, question.id)).answer.answer, 'half an hour');
      assert.equal((await interaction(server, approval.id)).status, 'resolved');
      assert.equal(street.ran('order'), 1);
      await assertSame(tab, server);
    });

    test('two at once, both answered elsewhere before', async (t) => {
      const { server, street, tab } = await paused(t, 'both');
      const [question, approval] = tab.open;
      await answer(server, question.id, { answer: 'half an hour' });
      await answer(server, approval.id, { decision: 'reject' });
      await until(server, tab.threadId, 'completed');
      const turn = await tab.resume('an hour', { approved: true });
      assert.equal(turn.outcome, 'success', 'nothing is left to do but to say how it ended');
      assert.deepEqual(tab.open, []);
      assert.equal(street.visits.length, 0, 'a late approval is none');
      await assertSame(tab, server);
    });

    test('a tool that runs beside a question and an approval', async (t) => {
      const { server, street, tab, turn } = await paused(t, 'mixed');
      assert.equal(turn.of('TOOL_CALL_RESULT').length, 1);
      assert.equal(street.ran('look'), 1);
      const end = await tab.resume('an hour', { approved: true });
      assert.equal(end.outcome, 'success');
      assert.equal(street.ran('look'), 1);
      await assertSame(tab, server);
    });

    test('one pause behind another', async (t) => {
      const { server, street, tab } = await paused(t, 'chain');
      assert.equal((await tab.resume('first')).outcome, 'interrupt');
      assert.equal((await tab.resume({ approved: true })).outcome, 'interrupt');
      assert.equal((await tab.resume('last')).outcome, 'success');
      assert.equal(street.ran('order'), 1);
      await assertSame(tab, server);
    });

    test('a message along with the answers comes behind them', async (t) => {
      const { server, tab } = await paused(t, 'choose');
      tab.agent.addMessage({ id: 'u-behind', role: 'user', content: 'hello' });
      const turn = await tab.start({ resume: tab.answers('1 hour') }).end({ runs: 2 });
      assert.equal(turn.outcome, 'success');
      const { fresh } = await assertSame(tab, server);
      assert.deepEqual(fresh.messages.map(({ role, content }) => (role === 'tool' ? 'tool' : content)), ['choose', 'One moment.', 'tool', 'Done.', 'hello', 'Hello.']);
    });

    for (const decision of ['retry', 'happened', 'give_up']) {
      test(`an uncertain write: ${decision}`, async (t) => {
        const { server, street, tab } = await paused(t, 'cut');
        const [asked] = tab.open;
        assert.equal(asked.reason, 'fermata:uncertain');
        assert.deepEqual([...asked.responseSchema.properties.decision.enum].sort(), ['give_up', 'happened', 'retry']);
        assert.equal(street.ran('cut'), 1);
        const turn = await tab.resume({ decision });
        assert.equal(turn.outcome, decision === 'retry' ? 'interrupt' : 'success');
        assert.equal(street.ran('cut'), decision === 'retry' ? 2 : 1);
        if (decision === 'retry') assert.equal((await tab.resume({ decision: 'give_up' })).outcome, 'success');
        await assertSame(tab, server);
      });
    }

    for (const decision of ['continue', 'give_up']) {
      test(`a model that is gone: ${decision}`, async (t) => {
        const { server, tab } = await paused(t, 'lost');
        const [asked] = tab.open;
        assert.deepEqual([asked.reason, asked.toolCallId], ['fermata:connection_lost', undefined]);
        const turn = await tab.resume({ decision });
        if (decision === 'continue') {
          assert.equal(turn.outcome, 'success');
          assert.equal(tab.messages.at(-1).content, 'Here again.');
        } else {
          assert.equal(turn.outcome, 'error');
        }
        await assertSame(tab, server);
      });
    }

    test('a page that is reloaded finds what is open', async (t) => {
      const { server, street, tab } = await paused(t, 'both');
      const { tab: fresh, turn } = await reload(client, server, tab.threadId);
      assert.equal(turn.outcome, 'interrupt');
      assert.deepEqual(fresh.open, tab.open);
      assert.deepEqual(fresh.messages, tab.messages);
      assert.deepEqual(turn.of('TEXT_MESSAGE_START'), [], 'nothing is told again');
      const end = await fresh.resume('an hour', { approved: true });
      assert.equal(end.outcome, 'success');
      assert.equal(street.ran('order'), 1);
      await assertSame(fresh, server);
    });

    test('a server that is killed while a person thinks', async (t) => {
      const { home, street, asked, tab } = await paused(t, 'both');
      await home.server.kill9();
      home.server = null;
      const server = await home.start();
      tab.agent.url = tab.agent.url.replace(/^http:\/\/[^/]+/, server.url);
      const turn = await tab.resume('an hour', { approved: true });
      assert.equal(turn.outcome, 'success');
      assert.equal(street.ran('order'), 1);
      assert.equal(told(asked)[0], 'an hour');
      await assertSame(tab, server);
    });

    test('the same resume again', async (t) => {
      const { server, street, tab } = await paused(t, 'buy');
      const resume = tab.answers({ approved: true });
      const first = await tab.run({ runId: 'again', resume });
      assert.equal(first.outcome, 'success');
      const repeated = await tab.run({ resume });
      assert.equal(repeated.outcome, 'success');
      assert.deepEqual(repeated.of('TOOL_CALL_RESULT'), []);
      const other = await tab.run({ resume: [{ ...resume[0], payload: { approved: false } }] });
      assert.equal(other.outcome, 'success', 'another answer comes too late');
      assert.equal(street.ran('order'), 1);
      await assertSame(tab, server);
    });

    test('the resume that a client sends again after an error', async (t) => {
      const { server, street, tab } = await paused(t, 'buy');
      const resume = tab.answers({ approved: true });
      const turn = tab.start({ resume });
      await turn.until('the run to begin', ({ type }) => type === 'RUN_STARTED');
      tab.agent.abortRun();
      await turn.cut();
      assert.equal(tab.open.length, 1, 'for the client it is still open');
      const again = await tab.run({ resume });
      assert.equal(again.outcome, 'success');
      assert.deepEqual(tab.open, []);
      assert.equal(street.ran('order'), 1);
      await assertSame(tab, server);
    });

    test('one that expires is not approved', async (t) => {
      const { server, street, tab } = await paused(t, 'buy');
      const [{ id }] = tab.open;
      assert.equal((await move(server, id, { expiresAt: new Date(Date.now() + EXPIRY_MS).toISOString() })).status, 200);
      await until(server, tab.threadId, 'completed');
      assert.equal((await interaction(server, id)).status, 'expired');
      const turn = await tab.resume({ approved: true });
      assert.equal(turn.outcome, 'success');
      assert.deepEqual(tab.open, []);
      assert.equal(street.visits.length, 0);
      await assertSame(tab, server);
    });

    test('a client is told when it expires, if it can bear that', async (t) => {
      const { server, street, tab } = await paused(t, 'buy');
      const [{ id }] = tab.open;
      const expiresAt = new Date(Date.now() + 86_400_000).toISOString();
      assert.equal((await move(server, id, { expiresAt })).status, 200);
      const { tab: fresh } = await reload(client, server, tab.threadId);
      assert.equal(fresh.open[0].expiresAt, client.profile === 'new' ? expiresAt : undefined);
      assert.equal((await fresh.resume({ approved: true })).outcome, 'success');
      assert.equal(street.ran('order'), 1);
    });

    test('one that is cancelled elsewhere', async (t) => {
      const { server, street, tab } = await paused(t, 'two');
      assert.equal((await cancelOne(server, tab.open[0].id)).status, 200);
      await until(server, tab.threadId, 'waiting');
      const { tab: fresh, turn } = await reload(client, server, tab.threadId);
      assert.equal(turn.outcome, 'interrupt');
      assert.deepEqual(fresh.open.map(({ id }) => id), [tab.open[1].id]);
      assert.equal((await fresh.resume({ approved: true })).outcome, 'success');
      assert.deepEqual(street.visits.map(({ args }) => args.item), ['milk']);
      await assertSame(fresh, server);
    });
  });
}

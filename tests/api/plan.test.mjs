// SPDX-License-Identifier: Apache-2.0
//
// Plans: submitted by the model, decided by a person, carried out step by step, and reported.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';

import { answer, cancelOne, inbox, until, waiting } from './asking.mjs';
import { approve, ask, askedAbout, ended, factsUntil, finished, ofType, order, resultsOf, settle, startPlace, tool, toolNames } from './people.mjs';
import { accepted, cancel, factsOf, history, isEnd, openEvents, runOf, typesOf, user, waitFor } from './talk.mjs';

const STEPS = [{ content: 'Look around', done_when: 'the shop is found' }, { content: 'Order tea' }];
const OTHER = [{ content: 'Ask the neighbours', done_when: 'somebody answered' }];
const plan = (steps = STEPS) => tool('submit_plan', { steps });
const turn = (...calls) => ({ calls });
const text = (words) => ({ text: words });

// What the model does, by the first word of the message.
const LINES = [
  { match: '^tea', turns: [turn(plan()), turn(tool('look', { reply: 'a shop' })), text('Found a shop.'), turn(order('tea')),
    text('Ordered.'), text('All done: tea is ordered.')] },
  { match: '^茶', turns: [turn(plan([{ content: '买茶' }])), text('买好了。'), text('完成。')] },
  { match: '^again', turns: [{ text: 'A plan.', calls: [plan()] }, turn(plan(OTHER)), text('They answered.'), text('The neighbours have tea.')] },
  { match: '^leave', turns: [turn(plan()), text('Then I stop.')] },
  { match: '^ready', turns: [turn(plan()), text('First.'), text('Second.'), text('Report.')] },
  { match: '^mute', turns: [turn(plan()), text('First.'), text('Second.'), { text: 'x', fail: { at: 'start', status: 400 } }] },
  { match: '^哑', turns: [turn(plan([{ content: '第一步' }, { content: '第二步' }])), text('一'), text('二'),
    { text: 'x', fail: { at: 'start', status: 503 } }] },
  { match: '^blank', turns: [turn(plan()), text('First.'), text('Second.'), turn(tool('look'))] },
  { match: '^bad', turns: [turn(tool('submit_plan', { steps: [] })), turn(tool('submit_plan', { steps: [{ done_when: 'x' }] })),
    turn(plan(OTHER)), text('Done.'), text('Report.')] },
  { match: '^twice', turns: [turn(plan(), plan(OTHER)), text('First.'), text('Second.'), text('Report.')] },
  { match: '^replan', turns: [turn(plan(OTHER)), turn(plan()), text('Done.'), text('Report.')] },
  { match: '^mix', turns: [turn(plan(), tool('look', { reply: 1 }), ask('Which tea?')), text('First.'), text('Second.'), text('Report.')] },
  { match: '^inside', turns: [turn(plan()), turn(ask('Which shop?'), order('milk')), text('First.'), text('Second.'), text('Report.')] },
  { match: '^write', turns: [turn(order('tea')), turn(tool('look', { reply: 'allowed' })), turn(plan(OTHER)), turn(order('tea')),
    text('Done.'), text('Report.')] },
  { match: '^turned', turns: [turn(plan([{ content: 'Order tea' }, { content: 'Tell' }])), turn(order('tea')), text('First.'), text('Second.'),
    { text: 'x', fail: { at: 'start', status: 400 } }] },
  { match: '^掉头', turns: [turn(plan([{ content: '订茶' }, { content: '说明' }])), turn(order('tea')), text('一'), text('二'),
    { text: 'x', fail: { at: 'start', status: 400 } }] },
  { match: '^broken', turns: [turn(plan()), turn(tool('fail', {})), text('First.'), turn(order('tea')), text('Second.'), text('Report.')] },
  { match: '^fails', turns: [turn(plan()), { text: 'x', fail: { at: 'start', status: 400 } }] },
  { turns: [text('Hello.')] },
];

let home, server, street, asked;
const closing = [];
before(async () => {
  ({ home, street, asked } = await startPlace({ after: (fn) => closing.unshift(fn) }, LINES));
  server = home.server;
});
after(async () => {
  for (const fn of closing) await fn();
});

const statuses = ({ steps }) => steps.map(({ status }) => status);
const nodes = (word) => askedAbout(asked, word).map(({ system }) => /^# Your work(?:: the (plan|report)|: (carrying))?/m.exec(system)?.slice(1).find(Boolean) ?? 'chat');
const plansOf = (facts) => ofType(facts, 'plan.updated');

// A plan that waits: {open, threadId, ..., stream}. The stream has everything from the first fact on.
async function submitted(t, word, on = server) {
  const made = await waiting(on, word);
  const stream = await openEvents(t, on, made.threadId, { query: '?after=0' });
  const facts = factsOf(await stream.until(isEnd));
  return { ...made, card: made.open[0], facts, stream };
}

describe('a plan', () => {
  test('is a confirmation without always, and nothing of it has begun', async (t) => {
    const { card, facts, threadId, runId } = await submitted(t, 'ready');
    assert.deepEqual(typesOf(facts), ['message.added', 'run.started', 'step.start', 'text.message.end', 'tool.call',
      'interaction.request', 'run.finished']);
    assert.deepEqual([card.type, card.resumeNode, card.resumePhase, card.pendingTool.toolName],
      ['confirm', 'confirm', 'waiting_confirm', 'submit_plan']);
    assert.deepEqual(JSON.parse(card.pendingTool.argsJson).steps, STEPS);
    assert.ok(card.binding.length > 40);
    const [{ stage, toolName }] = ofType(facts, 'tool.call');
    assert.deepEqual([toolName, stage], ['submit_plan', 'intent']);
    assert.equal((await runOf(server, threadId)).phase, 'interrupted');
    const { messages } = await history(server, threadId);
    assert.deepEqual(messages.map(({ role }) => role), ['user', 'assistant', 'interaction']);
    const refused = await answer(server, card.interactionId, { decision: 'approve', always: true });
    assert.deepEqual([refused.status, refused.json().field], [400, 'always']);
    await cancel(server, threadId, { runId });
  });

  test('approved: each step ends with a text, each end is told, the report comes last', async (t) => {
    const { card, stream, threadId } = await submitted(t, 'tea');
    await approve(server, card);
    const first = factsOf(await stream.until(isEnd)); // the order has to be approved
    assert.deepEqual(typesOf(first), ['interaction.resolved', 'run.started', 'tool.call.result', 'plan.updated',
      'text.message.end', 'tool.call', 'step.finish', 'step.start', 'tool.call.result', 'text.message.end', 'plan.updated',
      'text.message.end', 'tool.call', 'interaction.request', 'run.finished']);
    assert.deepEqual(plansOf(first)[0], {
      steps: [{ content: 'Look around', doneWhen: 'the shop is found', status: 'running' },
        { content: 'Order tea', doneWhen: '', status: 'pending' }], current: 0,
    });
    assert.deepEqual([plansOf(first)[1].current, statuses(plansOf(first)[1])], [1, ['done', 'running']]);
    assert.deepEqual([resultsOf(first)[0].toolName, resultsOf(first)[0].error], ['submit_plan', undefined]);
    assert.deepEqual(first.filter(({ type }) => type.startsWith('step.')).map(({ data }) => data.stepName), ['intent', 'execution'],
      'execution opens with the first executed call');
    const confirm = ofType(first, 'interaction.request')[0];
    assert.deepEqual([confirm.resumeNode, confirm.resumePhase, confirm.resumeStep], ['execute', 'executing', 1]);

    await approve(server, confirm);
    const rest = factsOf(await stream.until(isEnd));
    assert.deepEqual(typesOf(rest), ['interaction.resolved', 'run.started', 'tool.call.result', 'text.message.end', 'plan.updated',
      'step.finish', 'step.start', 'text.message.end', 'step.finish', 'run.finished']);
    assert.deepEqual([plansOf(rest)[0].current, statuses(plansOf(rest)[0])], [2, ['done', 'done']]);
    assert.deepEqual([rest.at(-1).data.outcome, ofType(rest, 'text.message.end')[1].content], ['completed', 'All done: tea is ordered.']);

    const calls = askedAbout(asked, 'tea');
    assert.deepEqual(nodes('tea'), ['chat', 'carrying', 'carrying', 'carrying', 'carrying', 'report']);
    assert.deepEqual(toolNames(calls.at(-1)), [], 'the report is made without tools');
    assert.ok(toolNames(calls[0]).includes('submit_plan') && !toolNames(calls[1]).includes('submit_plan'), 'one plan for a run');
    assert.match(calls[1].system, /Look around/);
    assert.match(calls[3].system, /Order tea/);
    const roles = (await history(server, threadId)).messages.map(({ role }) => role);
    assert.deepEqual(roles, ['user', 'assistant', 'interaction', 'tool', 'assistant', 'tool', 'assistant', 'assistant', 'interaction',
      'tool', 'assistant', 'assistant']);
    assert.equal(street.ran('order'), 1);
  });

  test('edited: the new one counts', async (t) => {
    const { card, stream } = await submitted(t, 'ready');
    const steps = [{ content: 'One', done_when: 'a' }, { content: 'Two' }, { content: 'Three' }];
    await settle(server, card.interactionId, { decision: 'edit', args: { steps } });
    const facts = factsOf(await stream.until(isEnd));
    assert.deepEqual(plansOf(facts).map(({ current, steps: shown }) => [current, shown.map(({ content }) => content)]),
      [0, 1, 2, 3].map((n) => [n, ['One', 'Two', 'Three']]));
    const [result] = resultsOf(facts);
    assert.ok(result.result.includes('Three') && result.error === undefined, result.result);
    assert.equal(result.content, 'The user changed the plan and approved it', 'a sentence, never JSON');
    assert.deepEqual(result.args, { steps });
    assert.equal(facts.at(-1).data.outcome, 'completed');
    assert.match(askedAbout(asked, 'ready').at(-2).system, /Three/);
  });

  for (const [body, field] of [[{ steps: [] }, 'args.steps'], [{ steps: [{ content: '' }] }, 'args.steps[0].content'], [{}, 'args.steps'],
    [{ steps: STEPS, more: 1 }, 'args.more']]) {
    test(`is not edited into ${JSON.stringify(body)}`, async (t) => {
      const { card, threadId } = await submitted(t, 'ready');
      const refused = await answer(server, card.interactionId, { decision: 'edit', args: body });
      assert.deepEqual([refused.status, refused.json().code, refused.json().field], [400, 'invalid_field', field]);
      await cancel(server, threadId);
    });
  }

  for (const [decision, error] of [['reject', 'rejected'], ['respond', undefined]]) {
    test(`${decision}: the model plans again, with the comment`, async (t) => {
      const count = askedAbout(asked, 'again').length;
      const { card, stream, threadId } = await submitted(t, 'again');
      await settle(server, card.interactionId, { decision, comment: 'ask the neighbours' });
      const facts = factsOf(await stream.until(isEnd));
      assert.deepEqual(typesOf(facts), ['interaction.resolved', 'run.started', 'tool.call.result', 'text.message.end', 'tool.call',
        'interaction.request', 'run.finished']);
      const [result] = resultsOf(facts);
      assert.ok(result.content.includes('ask the neighbours'));
      assert.equal(result.error, error);
      const second = askedAbout(asked, 'again')[count + 1];
      assert.equal(nodes('again')[count + 1], 'plan');
      assert.ok(second.messages.at(-1).text.includes('ask the neighbours'));
      assert.ok(toolNames(second).includes('submit_plan'));
      await approve(server, ofType(facts, 'interaction.request')[0]);
      const rest = factsOf(await stream.until(isEnd));
      assert.deepEqual(plansOf(rest).map(({ current, steps }) => [current, steps.length]), [[0, 1], [1, 1]]);
      assert.equal(rest.at(-1).data.outcome, 'completed');
      const rows = (await history(server, threadId)).messages.filter(({ role }) => role === 'interaction');
      assert.deepEqual(rows.map(({ metadata }) => metadata.decision), [decision, 'approve']);
    });
  }

  test('a plain message rejects it, as its comment', async (t) => {
    const { card, stream, threadId } = await submitted(t, 'again');
    await accepted(server, { threadId, messages: [user('no, ask the neighbours')] });
    const facts = factsOf(await stream.until(isEnd));
    assert.deepEqual(ofType(facts, 'interaction.resolved').map(({ interactionId, via, answer: given }) => [interactionId, via, given.decision]),
      [[card.interactionId, 'message', 'reject']]);
    assert.deepEqual(plansOf(facts), []);
    await cancel(server, threadId);
  });

  test('that is rejected may be left: a text ends the run', async (t) => {
    const { card, stream } = await submitted(t, 'leave');
    await settle(server, card.interactionId, { decision: 'reject' });
    const facts = factsOf(await stream.until(isEnd));
    assert.deepEqual([ofType(facts, 'text.message.end')[0].content, facts.at(-1).data.outcome], ['Then I stop.', 'completed']);
    assert.deepEqual(plansOf(facts), []);
  });

  test('whose card is cancelled gets an error, and the model goes on', async (t) => {
    const { card, stream } = await submitted(t, 'leave');
    assert.equal((await cancelOne(server, card.interactionId)).status, 200);
    const facts = factsOf(await stream.until(isEnd));
    assert.deepEqual([resultsOf(facts)[0].error, facts.at(-1).data.outcome], ['cancelled', 'completed']);
  });

  test('that is wrong is corrected', async (t) => {
    const { card, facts } = await submitted(t, 'bad');
    assert.deepEqual(resultsOf(facts).map(({ error }) => error), ['invalid_arguments', 'invalid_arguments']);
    assert.match(resultsOf(facts)[0].content, /steps/);
    assert.deepEqual(JSON.parse(card.pendingTool.argsJson).steps, OTHER);
    await approve(server, card);
    await ended(server, card.threadId);
  });

  test('beside another one: the first is asked for', async (t) => {
    const { card, open, facts } = await submitted(t, 'twice');
    assert.equal(open.length, 1);
    assert.deepEqual(JSON.parse(card.pendingTool.argsJson).steps, STEPS);
    assert.deepEqual(resultsOf(facts).map(({ error }) => error), ['not_offered']);
    await approve(server, card);
    await ended(server, card.threadId);
  });

  test('after another one: is not taken', async (t) => {
    const { card, stream } = await submitted(t, 'replan');
    await approve(server, card);
    const facts = factsOf(await stream.until(isEnd));
    assert.deepEqual(resultsOf(facts).map(({ toolName, error }) => [toolName, error]), [['submit_plan', undefined], ['submit_plan', 'not_offered']]);
    assert.equal(facts.at(-1).data.outcome, 'completed');
  });

  test('beside a read and a question: all of the turn is settled before the first step', async (t) => {
    const { open, stream, threadId } = await submitted(t, 'mix');
    assert.deepEqual(open.map(({ type, pendingTool }) => pendingTool?.toolName ?? type), ['submit_plan', 'ask_user']);
    await approve(server, open[0]);
    const partial = factsOf(await stream.until(isEnd));
    assert.deepEqual([partial.at(-1).data.outcome, partial.at(-1).data.interactions], ['interrupted', [open[1].interactionId]]);
    assert.equal((await runOf(server, threadId)).status, 'waiting');
    await settle(server, open[1].interactionId, { answer: 'green' });
    const facts = factsOf(await stream.until(isEnd));
    assert.equal(facts.at(-1).data.outcome, 'completed');
    assert.deepEqual(plansOf([...partial, ...facts]).map(({ current }) => current), [0, 1, 2]);
  });

  test('has questions and approvals inside its steps', async (t) => {
    const { card, stream, threadId } = await submitted(t, 'inside');
    await approve(server, card);
    const inside = factsOf(await stream.until(isEnd));
    assert.deepEqual(ofType(inside, 'interaction.request').map(({ type, resumeStep, resumePhase }) => [type, resumeStep, resumePhase]),
      [['ask_user', 0, 'executing'], ['confirm', 0, 'executing']]);
    for (const { interactionId, type } of (await inbox(server, `?threadId=${threadId}`)).interactions) {
      await settle(server, interactionId, type === 'confirm' ? { decision: 'reject' } : { answer: 'the next one' });
    }
    const facts = await factsUntil(t, server, threadId, finished('completed'));
    assert.deepEqual(plansOf(facts).map(({ current }) => current), [0, 1, 2]);
  });

  test('survives a kill between any two answers', async (t) => {
    const place = await startPlace(t, LINES);
    const kill = async () => {
      await place.home.server.kill9();
      place.home.server = null;
      await place.home.start();
    };
    const { threadId, open: [card] } = await waiting(place.home.server, 'tea');
    await kill();
    await approve(place.home.server, card);
    const confirm = await waitFor('the order to wait', async () => (await inbox(place.home.server)).interactions[0]);
    await kill();
    await approve(place.home.server, confirm);
    await ended(place.home.server, threadId);
    const facts = await factsUntil(t, place.home.server, threadId, finished('completed'));
    assert.deepEqual(plansOf(facts).map(({ current }) => current), [0, 1, 2]);
    assert.equal(place.street.ran('order'), 1);
  });
});

describe('a report that the model cannot give', () => {
  for (const [word, report] of [
    ['mute', 'The model could not write the report. What was planned and done:\n- [x] Look around (by model)\n- [x] Order tea (by model)'],
    ['哑', '模型未能生成总结。计划与完成情况：\n- [x] 第一步（模型自述）\n- [x] 第二步（模型自述）'],
  ]) {
    test(`${word}: is made mechanically, each step with its mark, in deltas too`, async (t) => {
      const { card, stream, threadId } = await submitted(t, word);
      await approve(server, card);
      const events = await stream.until(isEnd);
      const facts = factsOf(events);
      assert.deepEqual(typesOf(facts).slice(-5), ['step.finish', 'step.start', 'text.message.end', 'step.finish', 'run.finished']);
      assert.deepEqual([ofType(facts, 'text.message.end').at(-1).content, facts.at(-1).data.outcome], [report, 'completed']);
      const { messageId } = ofType(facts, 'text.message.end').at(-1);
      const deltas = events.filter(({ type, data }) => type === 'text.delta' && data.messageId === messageId);
      assert.equal(deltas.map(({ data }) => data.delta).join(''), report);
      assert.equal((await history(server, threadId)).messages.at(-1).content, report);
    });
  }

  test('calls instead of words: is made mechanically, and nothing is called', async (t) => {
    const { card, stream } = await submitted(t, 'blank');
    const before = street.visits.length;
    await approve(server, card);
    const facts = factsOf(await stream.until(isEnd));
    assert.match(ofType(facts, 'text.message.end').at(-1).content, /- \[x\] Look around \(by model\)\n- \[x\] Order tea \(by model\)$/);
    assert.equal(facts.at(-1).data.outcome, 'completed');
    assert.equal(street.visits.length, before);
  });
});

describe('what became of a step', () => {
  // Each with an order that needs an approval in its first step, and a second step without calls.
  const decided = { reject: { decision: 'reject', comment: 'no' }, respond: { decision: 'respond', comment: 'later' }, approve: { decision: 'approve' } };
  for (const [word, decision, first, report] of [
    ['turned', 'reject', { status: 'rejected' }, '- [ ] Order tea (rejected)\n- [x] Tell (by model)'],
    ['turned', 'respond', { status: 'rejected' }, '- [ ] Order tea (rejected)\n- [x] Tell (by model)'],
    ['turned', 'approve', { status: 'done' }, '- [x] Order tea\n- [x] Tell (by model)'],
    ['掉头', 'reject', { status: 'rejected' }, '- [ ] 订茶（已拒绝）\n- [x] 说明（模型自述）'],
  ]) {
    test(`${word}, ${decision}: the step is ${first.status}, in event, prompt and report`, async (t) => {
      const { card, stream } = await submitted(t, word);
      await approve(server, card);
      const order = ofType(factsOf(await stream.until(isEnd)), 'interaction.request')[0];
      await settle(server, order.interactionId, decided[decision]);
      const facts = factsOf(await stream.until(isEnd));
      const [moved, last] = plansOf(facts);
      assert.deepEqual(moved.steps.map(({ status, by }) => ({ status, ...(by && { by }) })), [first, { status: 'running' }]);
      assert.deepEqual(last.steps.map(({ status, by }) => ({ status, ...(by && { by }) })), [first, { status: 'done', by: 'model' }]);
      assert.ok(ofType(facts, 'text.message.end').at(-1).content.endsWith(`\n${report}`), ofType(facts, 'text.message.end').at(-1).content);
      assert.equal(facts.at(-1).data.outcome, 'completed');
      const { system } = askedAbout(asked, word).at(-1);
      const marks = /[\u4e00-\u9fff]/.test(word) ? [/1\. \[已拒绝\]/, /2\. \[已完成（模型自述）\]/]
        : [new RegExp(`1\\. \\[${first.status}\\]`), /2\. \[done \(by model\)\]/];
      for (const mark of marks) assert.match(system, mark, 'the model is told before it reports');
    });
  }

  test('a call that fails: failed; and one that the policy denies: rejected', async (t) => {
    const place = await startPlace(t, LINES, { assistant: { policy: { order: 'deny' } } });
    const { threadId, open: [card] } = await waiting(place.home.server, 'broken');
    await approve(place.home.server, card);
    await ended(place.home.server, threadId);
    const facts = await factsUntil(t, place.home.server, threadId, finished('completed'));
    assert.deepEqual(statuses(plansOf(facts).at(-1)), ['failed', 'rejected']);
  });

  test('a cancel in the middle: what waited is rejected, the rest skipped, told before the end', async (t) => {
    const { card, stream, threadId, runId } = await submitted(t, 'turned');
    await approve(server, card);
    await stream.until(isEnd);
    await cancel(server, threadId, { runId });
    const facts = factsOf(await stream.until(isEnd));
    assert.deepEqual(typesOf(facts), ['interaction.resolved', 'tool.call.result', 'plan.updated', 'step.finish', 'run.finished']);
    assert.deepEqual(plansOf(facts).map((one) => [one.current, statuses(one)]), [[0, ['rejected', 'skipped']]]);
  });

  test('a model that fails: nothing began, all is skipped, told before run.error', async (t) => {
    const { card, stream } = await submitted(t, 'fails');
    await approve(server, card);
    const facts = factsOf(await stream.until(isEnd));
    assert.deepEqual(typesOf(facts).slice(-3), ['plan.updated', 'step.finish', 'run.error']);
    assert.deepEqual(statuses(plansOf(facts).at(-1)), ['skipped', 'skipped']);
  });

  test('survives a kill: the rejected call is not forgotten', async (t) => {
    const place = await startPlace(t, LINES);
    const { threadId, open: [card] } = await waiting(place.home.server, 'turned');
    await approve(place.home.server, card);
    const confirm = await waitFor('the order to wait', async () => (await inbox(place.home.server)).interactions[0]);
    await place.home.server.kill9();
    place.home.server = null;
    await place.home.start();
    await settle(place.home.server, confirm.interactionId, { decision: 'reject' });
    await ended(place.home.server, threadId);
    const facts = await factsUntil(t, place.home.server, threadId, finished('completed'));
    assert.deepEqual(statuses(plansOf(facts).at(-1)), ['rejected', 'done']);
  });
});

describe('the agent\'s word on plans', () => {
  test('always: nothing is written before a plan, reads are', async (t) => {
    const place = await startPlace(t, LINES, { assistant: { plan: 'always' } });
    const { open: [card], threadId } = await waiting(place.home.server, 'write');
    assert.equal(card.pendingTool.toolName, 'submit_plan');
    const facts = await factsUntil(t, place.home.server, threadId, finished('interrupted'));
    assert.deepEqual(resultsOf(facts).map(({ toolName, error }) => [toolName, error]), [['order', 'plan_first'], ['look', undefined]]);
    assert.equal(place.street.ran('order'), 0);
    await approve(place.home.server, card);
    const confirm = await waitFor('the order to wait', async () => (await inbox(place.home.server)).interactions[0]);
    assert.equal(confirm.pendingTool.toolName, 'order', 'a plan approves no call');
    await approve(place.home.server, confirm);
    await ended(place.home.server, threadId);
    assert.equal(place.street.ran('order'), 1);
  });

  test('never: it is not offered, and a stubborn call gets an error', async (t) => {
    const place = await startPlace(t, LINES, { assistant: { plan: 'never' } });
    const { threadId } = await accepted(place.home.server, { messages: [user('leave')] });
    await ended(place.home.server, threadId);
    const facts = await factsUntil(t, place.home.server, threadId, finished('completed'));
    assert.deepEqual(resultsOf(facts).map(({ error }) => error), ['not_offered']);
    for (const request of place.asked()) assert.ok(!toolNames(request).includes('submit_plan'));
  });

  test('auto: a message that needs none gets none', async () => {
    const { threadId } = await accepted(server, { messages: [user('hello')] });
    await until(server, threadId, 'completed');
    assert.ok(toolNames(askedAbout(asked, 'hello')[0]).includes('submit_plan'));
  });
});

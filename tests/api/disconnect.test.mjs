// SPDX-License-Identifier: Apache-2.0
//
// agents.assistant.on_disconnect: what becomes of a run when the last one who reads along leaves while it is at work.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';

import { accepted, answer, endOf, factsOf, history, openEvents, runOf, startTalk, typesOf, user, waitFor } from './talk.mjs';

const look = { name: 'calendar_read', args: { from: '2030-01-01T00:00:00Z', to: '2030-01-02T00:00:00Z' } };
// The first turn takes long enough to leave in the middle of it; the second is what has to wait.
const slowly = (text) => ({ turns: [{ text, chunk: 1, gap_ms: 60, calls: [look] }, { text: 'Done. 完成。' }] });
const LINES = [{ match: '^看', ...slowly('请稍等，我先看一下日历再说。'.repeat(3)) }, slowly('One moment, I look at the calendar first.')];

// A run that is speaking, with `readers` streams open on it.
async function speaking(t, server, text, readers = 1) {
  const streams = [];
  const { threadId, runId } = await accepted(server, { messages: [user(text)] });
  for (let i = 0; i < readers; i++) {
    const stream = await openEvents(t, server, threadId);
    await stream.until(({ type }) => type === 'text.delta');
    streams.push(stream);
  }
  return { threadId, runId, streams };
}

const status = async (server, threadId, wanted) => waitFor(`${threadId} is ${wanted}`, async () => {
  const run = await runOf(server, threadId);
  return run.status === wanted && run;
});

async function facts(t, server, threadId, runId) {
  const stream = await openEvents(t, server, threadId, { query: '?after=0' });
  return factsOf(await stream.until((event) => endOf(runId)(event) && event.data.outcome !== 'interrupted'));
}

describe('pause', () => {
  let home, server, cleanUp;
  before(async () => {
    home = await startTalk({ after: (fn) => { cleanUp = fn; } }, LINES, { FERMATA_AGENTS_ASSISTANT_ON_DISCONNECT: 'pause' });
    server = home.server;
  });
  after(() => cleanUp?.());

  for (const [text, words] of [
    ['look', 'Nobody is reading along any more, so the run has paused. Go on?'],
    ['看一下', '已经没有人在看，运行已暂停。要继续吗？'],
  ]) {
    test(`${text}: before the next model call somebody is asked, and "continue" goes on`, async (t) => {
      const { threadId, runId, streams: [stream] } = await speaking(t, server, text);
      stream.close();
      const { interactions: [asked], phase } = await status(server, threadId, 'waiting');
      assert.deepEqual([asked.type, asked.displayText, asked.metadata], ['connection_lost', words, { cause: 'disconnect' }]);
      assert.equal(phase, 'interrupted');
      await answer(server, asked.interactionId, { decision: 'continue' });
      const all = await facts(t, server, threadId, runId);
      assert.deepEqual(typesOf(all).slice(-9), ['interaction.request', 'run.finished', 'interaction.resolved', 'run.started',
        'step.finish', 'step.start', 'text.message.end', 'step.finish', 'run.finished']);
      assert.equal(all.at(-1).data.outcome, 'completed');
      const { messages } = await history(server, threadId);
      assert.equal(messages.at(-1).content, 'Done. 完成。');
    });
  }

  test('"give_up" ends it', async (t) => {
    const { threadId, runId, streams: [stream] } = await speaking(t, server, 'look');
    stream.close();
    const { interactions: [asked] } = await status(server, threadId, 'waiting');
    await answer(server, asked.interactionId, { decision: 'give_up' });
    const { type, data } = (await facts(t, server, threadId, runId)).at(-1);
    assert.deepEqual([type, data.code, data.retryable], ['run.error', 'aborted', true]);
  });

  test('reading again answers nothing; a message does, and follows', async (t) => {
    const { threadId, streams: [stream] } = await speaking(t, server, 'look');
    stream.close();
    await status(server, threadId, 'waiting');
    const again = await openEvents(t, server, threadId);
    await again.until(({ type, data }) => type === 'run.finished' && data.outcome === 'interrupted');
    assert.equal((await runOf(server, threadId)).status, 'waiting');
    const next = await accepted(server, { threadId, messages: [user('are you there?')] });
    await again.until(({ type, data }) => type === 'run.finished' && data.outcome === 'completed');
    await again.until(endOf(next.runId));
  });

  test('as long as somebody reads, and if somebody is back in time, nobody is asked', async (t) => {
    const two = await speaking(t, server, 'look', 2);
    two.streams[0].close();
    assert.equal((await two.streams[1].run(two.runId)).at(-1).data.outcome, 'completed');

    const one = await speaking(t, server, 'look');
    one.streams[0].close();
    const back = await openEvents(t, server, one.threadId);
    assert.equal((await back.run(one.runId)).at(-1).data.outcome, 'completed');
  });

  test('a run that nobody ever read goes on', async () => {
    const { threadId } = await accepted(server, { messages: [user('look')] });
    await status(server, threadId, 'completed');
  });
});

test('continue is the default: a run does not need its readers', async (t) => {
  const { server } = await startTalk(t, LINES);
  const { threadId, streams: [stream] } = await speaking(t, server, 'look');
  stream.close();
  await status(server, threadId, 'completed');
});

test('cancel: the run is stopped, and what was said so far is kept', async (t) => {
  const { server } = await startTalk(t, LINES, { FERMATA_AGENTS_ASSISTANT_ON_DISCONNECT: 'cancel' });
  const { threadId, runId, streams: [stream] } = await speaking(t, server, 'look');
  stream.close();
  await status(server, threadId, 'cancelled');
  const said = (await facts(t, server, threadId, runId)).find(({ type }) => type === 'text.message.end');
  assert.equal(said.data.stopped, true);
});

// SPDX-License-Identifier: Apache-2.0
//
// Conversations over WeChat: a question reaches the person, and the reply is its answer.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { answer, inbox, rows } from '../api/asking.mjs';
import { history, waitFor } from '../api/talk.mjs';
import { bearer } from '../api/home.mjs';
import { channelState, conversations, latch, linkCode, seen, startWeixin } from './kit.mjs';

const QUESTION = '❓ 会议定在哪天？\n\n1. 周一\n2. 周二\n3. 周三\n\n请回复数字或直接输入你的回答';
const DONE = '好的，就这么定。';
const CODE = /(?:同意|approve) (\d{6})/;
const MAIN = '@im.wechat';

// Links a person to `local`, who may look at everything here without a key.
async function linked(home, ilink, user, as = 'local', ...flags) {
  const code = await linkCode(home, 'wx', as, ...flags);
  const from = ilink.sends.length;
  ilink.say(user, `/link ${code}`);
  await ilink.waitForSend((sent) => sent.to === user + MAIN && sent.text.includes(as), { from });
}

const newest = (ilink) => ({ from: ilink.sends.length });

describe('the example', () => {
  const cases = {
    'a number picks the choice': ['2', '周二'],
    'a number with a point': ['2.', '周二'],
    'a Chinese numeral': ['第二个', '周二'],
    'full width': ['２', '周二'],
    'the label': ['周二', '周二'],
    'a sentence is the answer itself': ['下周再说吧', '下周再说吧'],
    'a number and more is a sentence': ['2 谢谢', '2 谢谢'],
    'out of range is a sentence': ['7', '7'],
  };
  for (const [name, [reply, heard]] of Object.entries(cases)) {
    test(name, async (t) => {
      const { home, ilink } = await startWeixin(t);
      await linked(home, ilink, 'alice');
      ilink.say('alice', '订会议');
      await ilink.waitForSend(QUESTION);
      ilink.say('alice', reply);
      await ilink.waitForSend(DONE);
      const [thread] = await conversations(home.server);
      const { messages } = await history(home.server, thread.threadId);
      assert.equal(messages.find((row) => row.role === 'tool').content, heard);
      const clarify = messages.find((row) => row.role === 'clarify');
      assert.deepEqual([clarify.metadata.status, clarify.metadata.answered_by, clarify.metadata.via], ['answered', 'local', 'weixin']);
      const said = messages.filter((row) => row.role === 'user').map((row) => row.content);
      assert.deepEqual(said, ['订会议', reply], 'what they wrote is in the conversation');
      assert.equal((await conversations(home.server)).length, 1);
      assert.deepEqual(ilink.violations, []);
    });
  }

  test('with no open question the same texts begin a conversation', async (t) => {
    const { home, ilink } = await startWeixin(t);
    await linked(home, ilink, 'alice');
    for (const text of ['2', '周二', '下周再说吧']) {
      const from = newest(ilink);
      ilink.say('alice', text);
      await ilink.waitForSend('Hello.', from);
    }
    const [thread] = await conversations(home.server);
    const { messages } = await history(home.server, thread.threadId);
    assert.deepEqual(messages.filter((row) => row.role === 'user').map((row) => row.content), ['2', '周二', '下周再说吧']);
    assert.deepEqual(ilink.violations, []);
  });
});

describe('approvals', () => {
  test('the code approves, once', async (t) => {
    const { home, ilink } = await startWeixin(t);
    await linked(home, ilink, 'alice');
    ilink.say('alice', 'book it');
    const asked = await ilink.waitForSend(CODE);
    assert.match(asked.text, /Review/);
    const [, code] = CODE.exec(asked.text);
    const from = newest(ilink);
    ilink.say('alice', `approve ${code}`);
    await ilink.waitForSend(/Done\./, from);
    const [thread] = await conversations(home.server);
    const { messages } = await history(home.server, thread.threadId);
    const row = messages.find((entry) => entry.role === 'interaction');
    assert.deepEqual([row.metadata.answered_by, row.metadata.via], ['local', 'weixin']);
    const again = newest(ilink);
    ilink.say('alice', `approve ${code}`);
    await ilink.waitForSend(/Nothing waits for this code/, again);
  });

  test('nothing else does', async (t) => {
    const { home, ilink } = await startWeixin(t);
    await linked(home, ilink, 'alice');
    ilink.say('alice', 'book it');
    const [, code] = CODE.exec((await ilink.waitForSend(CODE)).text);
    const wrong = String((Number(code) + 1) % 1_000_000).padStart(6, '0');
    for (const text of ['1', 'approve', '同意', 'ok', '好', code, `approve ${wrong}`, `同意 ${wrong}`]) {
      const from = newest(ilink);
      ilink.say('alice', text);
      await ilink.waitForSend((sent) => sent.to === `alice${MAIN}`, from);
      const { interactions } = await inbox(home.server);
      assert.equal(interactions.length, 1, `still open after ${text}`);
    }
    const from = newest(ilink);
    ilink.say('alice', `同意 ${code}`);
    await ilink.waitForSend(/Done\./, from);
  });

  test('five wrong codes end it here', async (t) => {
    const { home, ilink } = await startWeixin(t);
    await linked(home, ilink, 'alice');
    ilink.say('alice', 'book it');
    const [, code] = CODE.exec((await ilink.waitForSend(CODE)).text);
    for (let i = 1; i <= 5; i += 1) {
      const from = newest(ilink);
      ilink.say('alice', `approve ${String((Number(code) + i) % 1_000_000).padStart(6, '0')}`);
      await ilink.waitForSend((sent) => sent.to === `alice${MAIN}`, from);
    }
    const from = newest(ilink);
    ilink.say('alice', `approve ${code}`);
    await ilink.waitForSend((sent) => sent.to === `alice${MAIN}`, from);
    assert.equal((await inbox(home.server)).interactions.length, 1, 'it is still open');
  });

  test('the code of somebody else is wrong', async (t) => {
    const { home, ilink } = await startWeixin(t);
    await linked(home, ilink, 'alice');
    ilink.say('alice', 'book it');
    const [, code] = CODE.exec((await ilink.waitForSend(CODE)).text);
    const from = newest(ilink);
    ilink.say('mallory', `approve ${code}`);
    await ilink.waitForSend((sent) => sent.to === `mallory${MAIN}`, from);
    assert.equal((await inbox(home.server)).interactions.length, 1);
  });

  test('other words reject, and are the reason', async (t) => {
    const { home, ilink } = await startWeixin(t);
    await linked(home, ilink, 'alice');
    ilink.say('alice', 'book it');
    await ilink.waitForSend(CODE);
    const from = newest(ilink);
    ilink.say('alice', 'not on a Thursday');
    await ilink.waitForSend('Done.', from);
    const [thread] = await conversations(home.server);
    const { messages } = await history(home.server, thread.threadId);
    const row = messages.find((entry) => entry.role === 'interaction');
    assert.match(JSON.stringify(row), /not on a Thursday/);
    assert.equal((await inbox(home.server)).interactions.length, 0);
  });
});

describe('several surfaces', () => {
  test('answered on the page: they are told who and what, and a late reply changes nothing', async (t) => {
    const { home, ilink } = await startWeixin(t);
    await linked(home, ilink, 'alice');
    ilink.say('alice', '订会议');
    await ilink.waitForSend(QUESTION);
    const { interactions: [open] } = await inbox(home.server);
    assert.equal((await answer(home.server, open.interactionId, { choices: ['c3'] })).status, 200);
    const told = await ilink.waitForSend(/周三/, { from: ilink.sends.findIndex((sent) => sent.text === QUESTION) + 1 });
    assert.match(told.text, /你|local/);
    await ilink.waitForSend(DONE);
  });

  test('a reply that crosses an answer from elsewhere is told so', async (t) => {
    const { home, ilink } = await startWeixin(t);
    await linked(home, ilink, 'alice');
    ilink.say('alice', '订会议');
    await ilink.waitForSend(QUESTION);
    const { interactions: [open] } = await inbox(home.server);
    const from = newest(ilink);
    // The notice is still on its way, so the reply is written without knowing.
    const { opened, open: deliver } = latch();
    ilink.failNext('sendmessage', { until: opened }, 1);
    assert.equal((await answer(home.server, open.interactionId, { choices: ['c3'] })).status, 200);
    ilink.say('alice', '2');
    await waitFor('it is looked at', () => rows(home, "SELECT 1 FROM channel_inbox WHERE state=2 AND json_extract(body, '$.text')='2'").length);
    deliver();
    await ilink.waitForSend(DONE, from);
    await waitFor('both to be told', () => seen(ilink, 'alice').filter((text) => text.includes('周三') && text !== QUESTION).length === 2);
    const [thread] = await conversations(home.server);
    const { messages } = await history(home.server, thread.threadId);
    assert.deepEqual(messages.filter((row) => row.role === 'user').map((row) => row.content), ['订会议']);
  });

  test('answered here: it is settled there at once', async (t) => {
    const { home, ilink } = await startWeixin(t);
    await linked(home, ilink, 'alice');
    ilink.say('alice', '订会议');
    await ilink.waitForSend(QUESTION);
    const { interactions: [open] } = await inbox(home.server);
    ilink.say('alice', '1');
    await ilink.waitForSend(DONE);
    const late = await answer(home.server, open.interactionId, { choices: ['c3'] });
    assert.equal(late.status, 409);
    assert.deepEqual([late.json().interaction.answeredBy, late.json().interaction.via], ['local', 'weixin']);
  });
});

describe('two questions', () => {
  test('they are asked which one, and the words count for it', async (t) => {
    const { home, ilink } = await startWeixin(t);
    await linked(home, ilink, 'alice');
    ilink.say('alice', 'two things');
    await ilink.waitForSend(/First\?/);
    await ilink.waitForSend(/Second\?/);
    let from = newest(ilink);
    ilink.say('alice', 'blue');
    await ilink.waitForSend(/1\. First\?\n2\. Second\?/, from);
    ilink.say('alice', '2');
    await waitFor('one to be answered', async () => (await inbox(home.server)).interactions.length === 1);
    from = newest(ilink);
    ilink.say('alice', 'red');
    await ilink.waitForSend('Done.', from);
    const [thread] = await conversations(home.server);
    const { messages } = await history(home.server, thread.threadId);
    assert.deepEqual(messages.filter((row) => row.role === 'tool').map((row) => row.content).sort(), ['blue', 'red']);
  });

  test('a quote says which one', async (t) => {
    const { home, ilink } = await startWeixin(t);
    await linked(home, ilink, 'alice');
    ilink.say('alice', 'two things');
    const second = await ilink.waitForSend(/Second\?/);
    ilink.say('alice', 'red', { quote: second.id });
    await waitFor('one to be answered', async () => (await inbox(home.server)).interactions.length === 1);
    const { interactions: [open] } = await inbox(home.server);
    assert.equal(open.question, 'First?');
  });
});

describe('commands', () => {
  test('/help, /new, /stop', async (t) => {
    const { home, ilink } = await startWeixin(t, { lines: [
      { match: '^slow', turns: [{ text: 'a b c d e f g h i j k l m n o p', chunk: 1, gap_ms: 1000 }] },
      { turns: [{ text: 'Hello.' }] },
    ] });
    await linked(home, ilink, 'alice');
    let from = newest(ilink);
    ilink.say('alice', '/help');
    await ilink.waitForSend(/\/new/, from);
    ilink.say('alice', 'slow');
    await waitFor('a run', async () => (await conversations(home.server)).length === 1);
    from = newest(ilink);
    ilink.say('alice', '/stop');
    await ilink.waitForSend((sent) => /stop/i.test(sent.text), from);
    from = newest(ilink);
    ilink.say('alice', '/new');
    await ilink.waitForSend(() => true, from);
    from = newest(ilink);
    ilink.say('alice', 'hello');
    await ilink.waitForSend('Hello.', from);
    assert.equal((await conversations(home.server)).length, 2);
  });

  test('strangers own their conversations', async (t) => {
    const { home, ilink } = await startWeixin(t);
    ilink.say('bob', 'hello');
    await ilink.waitForSend('Hello.');
    assert.deepEqual(await conversations(home.server), [], 'nothing of bob is shown to local');
  });

  test('a link needs its code, which works once', async (t) => {
    const { home, ilink } = await startWeixin(t, { allow: 'allow: [nobody]' });
    ilink.say('bob', 'hello');
    ilink.say('bob', '/link 12345678'); // there is none that could be typed
    await ilink.waitUntilRead();
    const code = await linkCode(home, 'wx', 'local');
    ilink.say('bob', 'hello');
    ilink.say('bob', `/link ${(Number(code) + 1) % 1e8}`);
    await ilink.waitForSend(() => true);
    assert.equal(ilink.sends.length, 1, 'who is not allowed gets no answer but to a code');
    ilink.say('bob', `/link ${code}`);
    await ilink.waitForSend(/local/);
    ilink.say('carol', `/link ${code}`);
    await ilink.waitUntilRead();
    assert.ok(!ilink.sends.some((sent) => sent.to === `carol${MAIN}`));
    const from = newest(ilink);
    ilink.say('bob', 'hello');
    await ilink.waitForSend('Hello.', from);
    assert.equal((await conversations(home.server)).length, 1);
  });
});

describe('the platform', () => {
  test('duplicates are handled once, also after a restart', async (t) => {
    const { home, ilink } = await startWeixin(t);
    await linked(home, ilink, 'alice');
    const said = ilink.say('alice', 'hello');
    await ilink.waitForSend('Hello.');
    ilink.repeat(said.id);
    await ilink.waitUntilRead();
    await home.restart();
    ilink.repeat(said.id);
    await ilink.waitUntilRead();
    const from = newest(ilink);
    ilink.say('alice', 'again, hello');
    await ilink.waitForSend(CODE, from);
    const [thread] = await conversations(home.server);
    const { messages } = await history(home.server, thread.threadId);
    assert.deepEqual(messages.filter((row) => row.role === 'user').map((row) => row.content), ['hello', 'again, hello']);
  });

  test('a dead token: says so, stops, and goes on after a login', async (t) => {
    const { home, ilink } = await startWeixin(t);
    await channelState(home.server, 'wx', 'online');
    ilink.killToken();
    const row = await channelState(home.server, 'wx', 'needs_login');
    assert.match(row.detail, /fermata channel login wx/);
    const polls = ilink.requests.length;
    ilink.say('alice', 'hello');
    assert.ok(ilink.requests.length <= polls + 1);
  });

  test('the budget: what is too much waits, and comes with the next message', async (t) => {
    const long = 'word '.repeat(12 * 700);
    const { home, ilink } = await startWeixin(t, { lines: [{ match: '^long', turns: [{ text: long }] }, { turns: [{ text: 'Hello.' }] }] });
    await linked(home, ilink, 'alice');
    // A send that is noted only behind the next message counts against that one.
    await waitFor('the first words are noted', () => !rows(home, 'SELECT 1 FROM channel_outbox WHERE state<3').length);
    ilink.say('alice', 'long');
    await waitFor('eight parts', () => ilink.sends.length >= 1 + 8); // two sends are kept for questions
    ilink.say('alice', 'and?');
    await ilink.waitForSend('Hello.');
    assert.deepEqual(ilink.refused, [], 'it never tried more than it may');
    const words = seen(ilink, 'alice').slice(1, -1).join(' ').split(/\s+/).filter((word) => word === 'word');
    assert.equal(words.length, 12 * 700, 'and nothing is missing');
  });

  test('what is asked passes a long text; and nobody answers what they have not seen', async (t) => {
    const text = 'word '.repeat(12 * 700);
    const { home, ilink } = await startWeixin(t, { lines: [
      { match: '^long', turns: [{ text, calls: [{ name: 'ask_user', args: { question: 'Delete the backups?' } }] }, { text: 'Done.' }] },
      { turns: [{ text: 'Hello.' }] },
    ] });
    await linked(home, ilink, 'alice');
    ilink.failNext('sendmessage', { ret: -2, errmsg: 'prepare failed' }, 1); // the platform takes nothing more
    ilink.say('alice', 'long');
    await waitFor('the question is open', async () => (await inbox(home.server)).interactions.length === 1);
    await waitFor('the send is refused', () => ilink.failures() === 0);
    assert.deepEqual(seen(ilink, 'alice').filter((sent) => sent.includes('Delete')), [], 'it is not shown yet');
    ilink.say('alice', 'yes please go on');
    await ilink.waitForSend(/Delete the backups\?/);
    assert.equal((await inbox(home.server)).interactions.length, 1, 'and not answered');
    const from = newest(ilink);
    ilink.say('alice', 'no');
    await ilink.waitForSend('Hello.', from); // the message that waited behind it
    const [thread] = await conversations(home.server);
    const { messages } = await history(home.server, thread.threadId);
    assert.equal(messages.find((row) => row.role === 'tool').content, 'no');
    assert.deepEqual(messages.filter((row) => row.role === 'user').map((row) => row.content), ['long', 'no', 'yes please go on']);
  });

  test('what was written before a question was asked answers nothing, however late it is looked at', async (t) => {
    const { home, ilink } = await startWeixin(t);
    await linked(home, ilink, 'alice');
    const waiting = () => rows(home, 'SELECT count(*) AS n FROM channel_inbox WHERE state<2')[0].n;
    const { opened, open: deliver } = latch();
    ilink.failNext('download', { until: opened });
    ilink.sayAll([['alice', 'book it'], ['alice', 'look', { file: { kind: 'file', name: 'a.csv', bytes: Buffer.from('1') } }],
      ['alice', 'thanks a lot'], ['alice', '', { file: { kind: 'file', name: 'b.csv', bytes: Buffer.from('2') } }]]); // one poll
    const asked = await ilink.waitForSend(CODE);
    assert.equal(waiting(), 3, 'the others are looked at after that');
    deliver();
    await waitFor('they are', () => !waiting(), 60_000);
    assert.equal((await inbox(home.server)).interactions.length, 1, 'and have settled nothing');
    await ilink.waitForSend(/^Got it\./);
    ilink.say('alice', `approve ${CODE.exec(asked.text)[1]}`);
    await ilink.waitForSend(/Done\.$/);
    await waitFor('what waited is answered', () => seen(ilink, 'alice').filter((text) => text === 'Hello.').length === 3);
    assert.equal(rows(home, 'SELECT count(*) AS n FROM calendar_events')[0].n, 1);
    assert.deepEqual(ilink.violations, []);
  });

  test('a question whose fate is unknown was asked the first time', async (t) => {
    const { home, ilink } = await startWeixin(t);
    await linked(home, ilink, 'alice');
    ilink.failNext('sendmessage', 'cut-after');
    ilink.say('alice', 'open');
    await ilink.waitForSend(/What about/);
    await waitFor('it is to be sent again', () => rows(home, 'SELECT count(*) AS n FROM channel_outbox WHERE again')[0].n === 1);
    ilink.say('alice', 'cats');
    await ilink.waitForSend('Done.');
  });

  test('typing is shown while the agent works', async (t) => {
    const { home, ilink } = await startWeixin(t, { lines: [{ turns: [{ text: 'a b c', chunk: 1, gap_ms: 300 }] }] });
    await linked(home, ilink, 'alice');
    ilink.say('alice', 'hello');
    await ilink.waitFor('typings', (typing) => typing.status === 1);
    await ilink.waitForSend('a b c');
    await ilink.waitFor('typings', (typing) => typing.status === 2);
  });

  test('a send whose fate is unknown is sent again, marked', async (t) => {
    const { home, ilink } = await startWeixin(t);
    await linked(home, ilink, 'alice');
    ilink.failNext('sendmessage', 'cut-after', 1);
    ilink.say('alice', 'hello');
    await ilink.waitForSend((sent) => sent.text !== 'Hello.' && sent.text.endsWith('Hello.'));
    assert.equal(seen(ilink, 'alice').filter((text) => text.endsWith('Hello.')).length, 2);
  });

  test('a send that surely did not happen is sent again, unmarked', async (t) => {
    const { home, ilink } = await startWeixin(t);
    await linked(home, ilink, 'alice');
    ilink.failNext('sendmessage', { ret: -2, errmsg: 'freq limit' }, 1);
    ilink.say('alice', 'hello');
    await ilink.waitForSend('Hello.', { timeoutMs: 20_000 });
    assert.equal(seen(ilink, 'alice').filter((text) => text.endsWith('Hello.')).length, 1);
  });

  test('files come in, and go to the model with the words', async (t) => {
    const { home, ilink } = await startWeixin(t);
    await linked(home, ilink, 'alice');
    const bytes = Buffer.from('a,b\n1,2\n');
    ilink.say('alice', 'look at this', { file: { kind: 'file', name: 'table.csv', bytes } });
    await ilink.waitForSend('Hello.');
    const [thread] = await conversations(home.server);
    const { messages: [first] } = await history(home.server, thread.threadId);
    assert.equal(first.attachments.length, 1);
    assert.equal(first.attachments[0].filename, 'table.csv');
    assert.equal(first.attachments[0].size, bytes.length);
  });
});

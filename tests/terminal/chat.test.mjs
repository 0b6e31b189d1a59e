// SPDX-License-Identifier: Apache-2.0
//
// `fermata chat` on a real terminal, with a real server and a scripted model. Expected screens stand in the tests.

import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import test from 'node:test';

import { answer, inbox } from '../api/asking.mjs';
import { ask, tool } from '../api/people.mjs';
import { startTalk } from '../api/talk.mjs';
import { fallBehind, Screen } from './screen.mjs';

const MEETING = { title: 'Review', start_time: '2030-01-31T15:00:00+08:00', end_time: '2030-01-31T16:00:00+08:00' };
// Words that fill the first row of 100 columns, and go on where a line of ours would begin.
const FORGED = `${'x'.repeat(91)}✓ approved · local (api)${'.'.repeat(60)}`;
const LINES = [
  { match: '^book', turns: [
    { text: 'Let me ask.', calls: [ask('How long?', { choices: ['30 minutes', '1 hour'] })] },
    { calls: [ask('Which room?', { choices: ['Blue', 'Green', 'Red'] })] },
    { calls: [tool('calendar_write', MEETING)] },
    { text: 'Booked.' },
  ] },
  { match: '^slow', turns: [{ text: 'one two three four five six seven eight nine ten eleven twelve', gap_ms: 150 }] },
  { match: '^long', turns: [{ text: `${'word '.repeat(10_000)}finis`, chunk: 1 }] }, // more than the server keeps for a reader
  { match: '^endless', turns: [{ text: 'again and again '.repeat(200), gap_ms: 50 }] },
  { match: '^late', turns: [{ text: 'Let me see what there is to do about it.', gap_ms: 400, calls: [tool('calendar_write', MEETING)] }, { text: 'Then not.' }] },
  { match: '^remove', turns: [{ calls: [tool('calendar_delete', { id: 'evt_1' })] }, { text: 'Gone.' }] },
  { match: '^forge', turns: [{ calls: [tool('calendar_write', { ...MEETING, title: FORGED })] }, { text: 'Booked.' }] },
  { match: '^several', turns: [{ calls: [ask('Which days?', { choices: ['Mon', 'Tue', 'Wed'], multi: true })] }, { text: 'Noted.' }] },
  { match: '^name', turns: [{ calls: [ask('What is your name?')] }, { text: 'Welcome.' }] },
  { match: '^form', turns: [{ calls: [ask('Your order', { fields: [{ name: 'item', label: 'Item', type: 'text', required: true }, { name: 'count', label: 'How many', type: 'number' }, { name: 'gift', label: 'A gift', type: 'boolean' }] })] }, { text: 'Ordered.' }] },
  { match: '^flaky', turns: [{ text: 'Here at last, whole and once.', fail: { at: 12, times: 1 } }] },
  { match: '^lost', turns: [{ text: 'Found.', fail: { at: 'start', times: 3 } }] },
  { match: '^plan', turns: [{ calls: [tool('submit_plan', { steps: [{ content: 'Look', done_when: 'seen' }, { content: 'Tell', done_when: 'told' }] })] }, { text: 'Done with it.' }] },
  { match: '^hostile', turns: [{ text: 'a\u001b[31mred\u001b]0;owned\u0007 \u202egnp.exe\u0008b' }] },
  { match: '^预订', turns: [{ text: '我先问一下。', calls: [ask('要多长时间？', { choices: ['三十分钟', '一小时'] })] }, { calls: [tool('calendar_write', { ...MEETING, title: '评审会' })] }, { text: '已经订好了。' }] },
  { turns: [{ text: 'I **do not** know.' }] },
];

const start = (t, env) => startTalk(t, LINES, env);
const chat = (t, home, words = [], more) => Screen.open(t, home, ['chat', ...words], more);

test('a whole conversation: a streamed answer, arrows, a digit, an approval', async (t) => {
  const home = await start(t), screen = await chat(t, home);
  await screen.until('Ctrl-D leaves');
  await screen.say('slow please');
  const growing = await screen.until(/one two(?!.*twelve)/);
  assert.match(growing, /working… Ctrl-C stops/);
  await screen.until((text) => text.includes('twelve') && !text.includes('working'));
  await screen.shows(`
Type a message. /help lists the commands, Ctrl-D leaves.

> slow please
one two three four five six seven eight nine ten eleven twelve
>`);
  await screen.say('book it');
  await screen.shows(`
Type a message. /help lists the commands, Ctrl-D leaves.

> slow please
one two three four five six seven eight nine ten eleven twelve

> book it
Let me ask.
? How long?
❯ 1. 30 minutes
  2. 1 hour
  ✎ in your own words
  ↷ skip
↑↓ Enter, or a number · Esc later`);
  await screen.press('Down');
  await screen.until('❯ 2. 1 hour');
  await screen.press('Enter');
  await screen.until('❯ 1. Blue');
  await screen.type('3');
  await screen.until('Press a letter');
  await screen.press('a');
  await screen.until('Booked.');
  await screen.shows(`
Type a message. /help lists the commands, Ctrl-D leaves.

> slow please
one two three four five six seven eight nine ten eleven twelve

> book it
Let me ask.
? How long?
✓ 1 hour · local (api)
? Which room?
✓ Red · local (api)
! Approval needed: calendar_write (changes data) · requested by local
  title: Review
  start_time: 2030-01-31T15:00:00+08:00
  end_time: 2030-01-31T16:00:00+08:00
✓ approved · local (api)
✓ calendar_write · Event created: Review (2030-01-31 15:00)
  Event created [Success]
  Title: Review
  Time: 2030-01-31 15:00–16:00 (Thu)
  Time zone: UTC+08:00
  Id: evt_ID
Booked.
>`);
  await screen.press('C-d');
  assert.equal(await screen.ended(), 0);
  assert.match(await screen.text(), /Come back with: fermata chat chat_[0-9a-z]{26}/);
});

test('an approval is rejected with a reason; what destroys needs the key twice', async (t) => {
  const home = await start(t), screen = await chat(t, home);
  await screen.until('Ctrl-D leaves');
  await screen.say('remove it');
  await screen.until('calendar_delete (destructive)');
  await screen.press('a');
  await screen.until('press it once more');
  await screen.press('Down'); // another key in between: not armed any more
  await screen.until((text) => !text.includes('once more'));
  await screen.press('a');
  await screen.until('press it once more');
  assert.equal((await inbox(home.server)).interactions.length, 1);
  await screen.press('r');
  await screen.until('Why?');
  await screen.say('not today');
  await screen.until('Gone.');
  await screen.shows(`
Type a message. /help lists the commands, Ctrl-D leaves.

> remove it
! Approval needed: calendar_delete (destructive) · requested by local
  id: evt_1
✓ rejected: not today · local (api)
✗ calendar_delete · The user rejected this call and said: not today
Gone.
>`);
  await screen.say('remove it again');
  await screen.until((text) => text.split('Press a letter').length === 2);
  await screen.press('a');
  await screen.until('press it once more');
  await screen.press('a');
  await screen.until('✓ approved');
});

test('an edit approves other arguments', async (t) => {
  const home = await start(t), screen = await chat(t, home);
  await screen.until('Ctrl-D leaves');
  await screen.say('book it');
  await screen.until('❯ 1. 30 minutes');
  await screen.type('1');
  await screen.until('❯ 1. Blue');
  await screen.type('1');
  await screen.until('Press a letter');
  await screen.press('e');
  await screen.until('New arguments as JSON');
  await screen.press('C-u');
  await screen.say('{"title": ');
  await screen.until('That is no JSON object.');
  await screen.press('C-u');
  await screen.say(JSON.stringify({ ...MEETING, title: 'Retro' }));
  await screen.until('Event created: Retro');
  assert.match(await screen.text(), /approved with other arguments/);
});

test('several choices, words, a form, later, skip', async (t) => {
  const home = await start(t), screen = await chat(t, home);
  await screen.until('Ctrl-D leaves');
  await screen.say('several');
  await screen.until('❯ [ ] 1. Mon');
  await screen.press('Enter');
  await screen.until('Pick at least one.');
  await screen.press('Space');
  await screen.until('❯ [x] 1. Mon');
  await screen.type('3');
  await screen.until('[x] 3. Wed');
  await screen.press('Enter');
  await screen.until('✓ ["Mon","Wed"] · local (api)');
  await screen.until('Noted.');
  await screen.say('name');
  await screen.until('Enter sends · ↓ more · Esc later');
  await screen.say('Änne 安娜');
  await screen.until('✓ Änne 安娜 · local (api)');
  await screen.until('Welcome.');
  await screen.say('name');
  await screen.until('Enter sends · ↓ more · Esc later');
  await screen.press('Escape');
  await screen.until('Open: Tab answers it · a message also answers it');
  await screen.press('Tab');
  await screen.until('Enter sends · ↓ more · Esc later');
  await screen.press('Down');
  await screen.press('Down');
  await screen.until('❯ ↷ skip');
  await screen.press('Enter');
  await screen.until('✓ skipped · local (api)');
  await screen.say('form');
  await screen.until('❯ ✎ fill in the form');
  await screen.press('Enter');
  await screen.until('Item · required');
  await screen.say('tea');
  await screen.until('How many · number · optional');
  await screen.say('two');
  await screen.until('That is no number.');
  await screen.press('C-u');
  await screen.say('2');
  await screen.until('A gift · yes or no · optional');
  await screen.say('yes');
  await screen.until('✓ {"item":"tea","count":2,"gift":true}');
  await screen.until('Ordered.');
});

test('a lost connection and a plan', async (t) => {
  const home = await start(t, { FERMATA_AGENT_PLAN: 'always' }), screen = await chat(t, home);
  await screen.until('Ctrl-D leaves');
  await screen.say('lost');
  await screen.until(/! Connection lost: [^]*c continue\n {2}g give up/);
  await screen.press('Escape');
  await screen.until('Open: Tab answers it · a message waits for its turn behind it');
  await screen.press('Tab');
  await screen.until('c continue');
  await screen.press('c');
  await screen.until('✓ continued · local (api)');
  await screen.until('Found.');
  await screen.say('plan it');
  const text = await screen.until('Press a letter');
  assert.match(text, /! Approval needed: [^]*Look[^]*Tell/);
  await screen.press('a');
  await screen.until('✓ approved · local (api)');
  await screen.until('Plan 1/2: Look');
});

test('a paste is text: it sends nothing and approves nothing', async (t) => {
  const home = await start(t), screen = await chat(t, home);
  await screen.until('Ctrl-D leaves');
  await screen.paste('first line\nsecond line');
  await screen.until(/> first line\nsecond line$/);
  assert.doesNotMatch(await screen.text(), /know/);
  await screen.press('Enter');
  await screen.until('know');
  await screen.until(/> first line\n {2}second line\n/);
  await screen.say('remove it');
  await screen.until('Press a letter');
  await screen.paste('aa\ra');
  await screen.type('x'); // drawn after the paste has been read
  await screen.press('Down');
  await screen.until('❯ a approve');
  assert.doesNotMatch(await screen.text(), /once more|✓ approved/);
  assert.equal((await inbox(home.server)).interactions.length, 1);
});

test('lines that come at once are messages of their own', async (t) => {
  const home = await start(t), screen = await chat(t, home);
  await screen.until('Ctrl-D leaves');
  await screen.tmux('set-buffer', '--', 'alpha\nbeta\ngamma\ndelta');
  await screen.tmux('paste-buffer'); // from a terminal that does not mark pastes
  await screen.until((text) => text.split('know').length === 4 && text.endsWith('\n> delta'));
  const text = await screen.text();
  for (const line of ['> alpha\n', '> beta\n', '> gamma\n']) assert.equal(text.split(line).length, 2, text);
  await screen.press('C-u');
  await home.server.kill9();
  home.server = null;
  await screen.until('No connection to the server');
  await screen.tmux('set-buffer', '--', 'one\ntwo\nthree');
  await screen.tmux('paste-buffer');
  await screen.until(/Not sent[^]*> two\nthree$/);
  await home.start();
});

test('a long paste is seen to its end', async (t) => {
  const home = await start(t), screen = await chat(t, home);
  await screen.until('Ctrl-D leaves');
  await screen.paste(Array.from({ length: 400 }, (_, i) => `line\t${i + 1}`).join('\n'));
  await screen.until(/line {4}399\nline {4}400$/);
  await screen.press('Up', 'Up');
  await screen.type('X');
  await screen.until(/line {4}398X\nline/);
  await screen.press('Enter');
  await screen.until('know');
});

test('what is chosen is seen on a low screen', async (t) => {
  const home = await start(t), screen = await chat(t, home);
  await screen.until('Ctrl-D leaves');
  await screen.tmux('resize-window', '-x', '100', '-y', '5');
  await screen.say('book it');
  await screen.until('❯ 1. 30 minutes');
  await screen.press('Up');
  await screen.until('❯ ↷ skip');
  await screen.press('Down');
  await screen.until('❯ 1. 30 minutes');
});

test('the input line: wide characters, moving, deleting, history', async (t) => {
  const home = await start(t), screen = await chat(t, home);
  await screen.until('Ctrl-D leaves');
  await screen.type('你好世界');
  await screen.press('Left', 'Left', 'BSpace');
  await screen.until('> 你世界');
  await screen.type('们');
  await screen.until('> 你们世界');
  await screen.press('Home');
  await screen.type('a ');
  await screen.press('End');
  await screen.type('!');
  await screen.until('> a 你们世界!');
  const [x, y] = (await screen.tmux('display-message', '-p', '#{cursor_x} #{cursor_y}')).trim().split(' ').map(Number);
  assert.equal(x, '> a '.length + 8 + 1);
  assert.equal(y, 1);
  await screen.press('Enter');
  await screen.until('know');
  await screen.press('Up');
  await screen.until(/know\.\n> a 你们世界!$/);
  await screen.press('C-w', 'C-w');
  await screen.until((text) => text.endsWith('\n>'));
  await screen.type(`${'long '.repeat(50)}end`);
  await screen.until(/long end$/);
  await screen.press('C-a');
  await screen.type('X');
  await screen.until('> Xlong long');
  await screen.press('C-u', 'C-k');
  await screen.until((text) => text.endsWith('know.\n>'));
});

test('answered elsewhere while the card is open', async (t) => {
  const home = await start(t), screen = await chat(t, home);
  await screen.until('Ctrl-D leaves');
  await screen.say('book it');
  await screen.until('❯ 1. 30 minutes');
  const { interactions: [{ interactionId }] } = await inbox(home.server);
  assert.equal((await answer(home.server, interactionId, { answer: 'ten minutes' })).status, 200);
  const text = await screen.until('❯ 1. Blue');
  assert.match(text, /\? How long\?\n✓ ten minutes · local \(api\)\n\? Which room\?/);
  assert.doesNotMatch(text, /30 minutes/);
});

test('words on a card that goes are not lost', async (t) => {
  const home = await start(t), screen = await chat(t, home);
  await screen.until('Ctrl-D leaves');
  await screen.say('name');
  await screen.until('Enter sends · ↓ more · Esc later');
  await screen.type('a long story');
  await screen.until('> a long story');
  const { interactions: [{ interactionId }] } = await inbox(home.server);
  assert.equal((await answer(home.server, interactionId, { answer: 'Eve' })).status, 200);
  await screen.until((text) => text.includes('Welcome.') && text.endsWith('\n>'));
  await screen.press('Up');
  await screen.until('> a long story');
  await screen.press('C-c');
  await screen.until((text) => text.endsWith('\n>'));
  await screen.say('name');
  await screen.until('Enter sends · ↓ more · Esc later');
  await screen.type('another story');
  await screen.until('> another story');
  await screen.press('C-c');
  await screen.until('Open: Tab answers it');
  await screen.press('Up');
  await screen.until('> another story');
});

test('an attempt of the model that breaks off leaves nothing behind', async (t) => {
  const home = await start(t), screen = await chat(t, home);
  await screen.until('Ctrl-D leaves');
  await screen.say('flaky');
  await screen.until('whole and once');
  await screen.shows(`
Type a message. /help lists the commands, Ctrl-D leaves.

> flaky
Here at last, whole and once.
>`);
});

test('the server is killed and started again under it', async (t) => {
  const home = await start(t), screen = await chat(t, home);
  await screen.until('Ctrl-D leaves');
  await screen.say('book it');
  await screen.until('❯ 1. 30 minutes');
  await home.server.kill9();
  home.server = null;
  await screen.until('No connection to the server');
  await screen.press('Enter'); // nobody is there to take it
  await screen.until('No Fermata server runs on the data folder');
  await home.start();
  await screen.until('Connected again.');
  await screen.until((text) => !text.includes('No connection'));
  await screen.press('Enter');
  await screen.until('❯ 1. Blue');
  const text = await screen.text();
  for (const once of ['> book it', 'Let me ask.', '? How long?', '✓ 30 minutes · local (api)'])
    assert.equal(text.split(once).length, 2, `${once}\n${text}`);
});

test('a screen that falls behind shows everything once', async (t) => {
  const home = await start(t), screen = await chat(t, home);
  await screen.until('Ctrl-D leaves');
  await screen.say('long');
  await screen.until('word word');
  await fallBehind(home, await screen.pid());
  await screen.until((text) => text.includes('finis') && !text.includes('working'));
  const all = await screen.tmux('capture-pane', '-p', '-S', '-');
  for (const once of ['> long', 'finis', 'Ctrl-D leaves']) assert.equal(all.split(once).length, 2, once);
});

test('Ctrl-C stops the agent, clears the line, leaves', async (t) => {
  const home = await start(t), screen = await chat(t, home);
  await screen.until('Ctrl-D leaves');
  await screen.say('endless');
  await screen.until('again and again again');
  await screen.press('C-c');
  await screen.until('Stopped.');
  await screen.until((text) => !text.includes('working') && !text.includes('stopping'));
  await screen.type('a word');
  await screen.until('> a word');
  await screen.press('C-c');
  await screen.until((text) => text.endsWith('\n>'));
  await screen.press('C-c');
  assert.equal(await screen.ended(), 0);
});

test('the terminal is put back when a signal ends it', async (t) => {
  const home = await start(t);
  for (const [signal, code] of [['SIGTERM', 143], ['SIGHUP', 129], ['SIGABRT', 134]]) {
    const screen = await chat(t, home);
    await screen.until('Ctrl-D leaves');
    process.kill(await screen.pid(), signal);
    assert.equal(await screen.ended(), code, signal);
  }
});

test('what others wrote is shown, and not obeyed', async (t) => {
  const home = await start(t), screen = await chat(t, home);
  await screen.until('Ctrl-D leaves');
  await screen.say('hostile');
  await screen.until('a⟦U+001B⟧[31mred⟦U+001B⟧]0;owned⟦U+0007⟧ ⟦U+202E⟧gnp.exe⟦U+0008⟧b');
  await screen.until((text) => text.endsWith('\n>'));
  assert.notEqual((await screen.tmux('display-message', '-p', '#{pane_title}')).trim(), 'owned');
});

test('a message that was begun before an approval opened does not reject it', async (t) => {
  const home = await start(t), screen = await chat(t, home);
  await screen.until('Ctrl-D leaves');
  await screen.say('late');
  await screen.until('Let me');
  process.kill(home.server.pid, 'SIGSTOP');
  await screen.type('and then');
  await screen.until('> and then');
  process.kill(home.server.pid, 'SIGCONT');
  await screen.until(/! Approval needed[^]*> and then$/);
  await screen.press('Enter');
  await screen.until(/opened while you wrote[^]*> and then$/);
  assert.equal((await inbox(home.server)).interactions.length, 1);
  await screen.press('Enter');
  await screen.until('✓ rejected');
});

test('no words in an approval reach the beginning of a row', async (t) => {
  const home = await start(t), screen = await chat(t, home);
  const safe = (text) => {
    const rows = text.slice(text.indexOf('! Approval')).split('\n').slice(1);
    assert.ok(rows.some((row) => /^ {2}│ .*✓ approved/.test(row)), text);
    for (const row of rows) assert.match(row, /^ {2}(title|start_time|end_time): |^ {2}│ |^ {2}[are] |^Press/, text);
  };
  await screen.until('Ctrl-D leaves');
  await screen.say('forge');
  safe(await screen.until('Press a letter'));
  const { interactions: [{ interactionId }] } = await inbox(home.server);
  const other = await Screen.open(t, home, ['answer', interactionId]);
  safe(await other.until('Press a letter'));
});

test('Chinese', async (t) => {
  const home = await start(t, { FERMATA_AGENT_LOCALE: 'zh-CN' }), screen = await chat(t, home, [], { lang: 'zh_CN.UTF-8' });
  await screen.until('Ctrl-D 离开');
  await screen.say('预订会议室');
  await screen.shows(`
输入消息即可开始。/help 查看命令，Ctrl-D 离开。

> 预订会议室
我先问一下。
? 要多长时间？
❯ 1. 三十分钟
  2. 一小时
  ✎ 自己输入
  ↷ 跳过
↑↓ 回车或按数字选择 · Esc 稍后`);
  await screen.press('Down', 'Enter');
  await screen.until('按字母键选择');
  await screen.shows(`
输入消息即可开始。/help 查看命令，Ctrl-D 离开。

> 预订会议室
我先问一下。
? 要多长时间？
✓ 一小时 · local (api)
! 需要审批: calendar_write (会修改数据) · 请求者 local
  title: 评审会
  start_time: 2030-01-31T15:00:00+08:00
  end_time: 2030-01-31T16:00:00+08:00
  a 批准
  r 拒绝
  e 修改参数
按字母键选择 · Esc 稍后`);
  await screen.press('r');
  await screen.until('拒绝原因');
  await screen.say('改天');
  await screen.until('✓ 已拒绝: 改天');
  await screen.until('已经订好了。');
});

test('conversations: /new, /threads, a thread named, --last', async (t) => {
  const home = await start(t), screen = await chat(t, home);
  await screen.until('Ctrl-D leaves');
  await screen.say('book it');
  await screen.until('❯ 1. 30 minutes');
  await screen.press('Escape');
  await screen.until('Open: Tab answers it');
  await screen.say('/new');
  await screen.until('New conversation.');
  await screen.say('hello there');
  await screen.until('know');
  await screen.say('/threads');
  await screen.until(/❯ 1\. hello there · \d+s ago\n {2}2\. book it/);
  await screen.type('2');
  const text = await screen.until('❯ 1. 30 minutes');
  assert.match(text, /Conversation: book it\n\n> book it\nLet me ask\.\n\? How long\?\n❯ 1/);
  await screen.type('2');
  await screen.until('❯ 1. Blue');
  await screen.press('C-c', 'C-c');
  assert.equal(await screen.ended(), 0);
  const id = /fermata chat (chat_\w+)/.exec(await screen.text())[1];
  for (const words of [[id], ['--last']]) {
    const again = await chat(t, home, words);
    await again.shows(`
> book it
Let me ask.
? How long?
✓ 1 hour · local (api)
? Which room?
❯ 1. Blue
  2. Green
  3. Red
  ✎ in your own words
  ↷ skip
↑↓ Enter, or a number · Esc later`);
  }
  const none = await chat(t, home, ['no-such-thread']);
  assert.equal(await none.ended(), 1);
});

test('a conversation whose history cannot be loaded', async (t) => {
  const home = await start(t), screen = await chat(t, home);
  await screen.until('Ctrl-D leaves');
  await screen.say('first one');
  await screen.until('know');
  await screen.say('/new');
  await screen.until('New conversation.');
  await screen.say('second one');
  await screen.until((text) => text.split('know').length === 3);
  await screen.say('/threads');
  await screen.until('2. first one');
  await home.server.kill9(); // (a) nobody is there
  home.server = null;
  await screen.type('2');
  await screen.until('No connection to the server');
  await home.start();
  await screen.until('Connected again.');
  await screen.say('more of it');
  await screen.until((text) => text.split('know').length === 5 && !text.includes('working'));
  await screen.say('/threads');
  await screen.until('2. second one');
  process.kill(home.server.pid, 'SIGSTOP'); // (b) left before it has come
  await screen.type('2');
  await screen.until('Conversation: second one');
  await screen.say('/new');
  await screen.until((text) => text.split('New conversation.').length === 3);
  process.kill(home.server.pid, 'SIGCONT');
  await screen.say('a third one');
  await screen.until(/> a third one\nI \*\*do not\*\* know\.\n>$/);
});

test('a file goes with the next message', async (t) => {
  const home = await start(t), screen = await chat(t, home);
  await screen.until('Ctrl-D leaves');
  const path = join(screen.folder, 'notes "1".txt');
  await writeFile(path, 'some notes\n');
  await screen.say('/file');
  await screen.until('/file needs the path');
  await screen.say(`/file ${path}.not`);
  await screen.until('The file cannot be read');
  await screen.say(`/file ${path}`);
  await screen.until('Goes with the next message: notes _1_.txt');
  await screen.say('look');
  await screen.until('know');
  await screen.until('> look\n  [file: notes _1_.txt]');
});

test('a narrower and a wider terminal', async (t) => {
  const home = await start(t), screen = await chat(t, home);
  await screen.until('Ctrl-D leaves');
  await screen.type('word '.repeat(30).trim());
  await screen.until(/word$/);
  for (const columns of ['60', '100', '41', '100']) {
    await screen.tmux('resize-window', '-x', columns, '-y', '30');
    await screen.until((text) => text.split('word').length === 31 && Math.max(...text.split('\n').map(({ length }) => length)) <= Number(columns));
  }
  await screen.press('Enter');
  await screen.until('know');
  const joined = await screen.tmux('capture-pane', '-p', '-J'); // the terminal wraps what was printed
  assert.equal(joined.split('word').length, 31);
});

test('keys, a URL, and no server at all', async (t) => {
  const home = await start(t);
  const key = await home.addKey('ann');
  const locked = await chat(t, home);
  assert.equal(await locked.ended(), 1);
  const screen = await chat(t, home, ['--url', home.server.url], { env: { FERMATA_API_KEY: key } });
  await screen.until('Ctrl-D leaves');
  await screen.say('hello');
  await screen.until('know');
  const inside = await chat(t, home, ['--last'], { env: { FERMATA_API_KEY: key } });
  await inside.until('> hello');
  await home.stop();
  const none = await home.run(['chat'], { FERMATA_API_KEY: key });
  assert.equal(none.code, 1);
  assert.match(none.stderr, /No Fermata server runs on the data folder .*\n.*Start one with `fermata serve`, or name one with --url/);
});

// SPDX-License-Identifier: Apache-2.0
//
// `fermata chat` in a pipe, `fermata inbox`, `fermata answer`.

import assert from 'node:assert/strict';
import { createServer } from 'node:net';
import test from 'node:test';

import { inbox } from '../api/asking.mjs';
import { Home } from '../api/home.mjs';
import { ask, tool } from '../api/people.mjs';
import { accepted, startTalk, user, waitFor } from '../api/talk.mjs';
import { fallBehind, piped, Screen } from './screen.mjs';

const MEETING = { title: 'Review', start_time: '2030-01-31T15:00:00+08:00', end_time: '2030-01-31T16:00:00+08:00' };
const LONG = 'word '.repeat(10_000).trim(); // character by character more than the server keeps for a reader
const HIDDEN = 'a\u009b31m\u202e\u200b\u2028b\u007f\ufeff c\u{e0001}';
const LINES = [
  { match: '^ask', turns: [{ calls: [ask('How long?', { choices: ['30 minutes', '1 hour'] })] }, { text: 'Thank you.' }] },
  { match: '^two', turns: [{ calls: [ask('First?'), ask('Second?')] }, { text: 'Both.' }] },
  { match: '^four', turns: [{ calls: ['a', 'b', 'c', 'd'].map((name) => ask(name)) }, { text: 'All.' }] },
  { match: '^write', turns: [{ calls: [tool('calendar_write', MEETING)] }, { text: 'Written.' }] },
  { match: '^form', turns: [{ calls: [ask('Your order', { fields: [{ name: 'item', label: 'Item', type: 'text', required: true }, { name: 'count', label: 'How many', type: 'number' }] })] }, { text: 'Ordered.' }] },
  { match: '^days', turns: [{ calls: [ask('Which days?', { choices: ['Mon', 'Tue', 'Wed'], multi: true })] }, { text: 'Noted.' }] },
  { match: '^hide', turns: [{ calls: [ask(HIDDEN)] }, { text: HIDDEN }] },
  { match: '^fail', turns: [{ fail: { at: 'start', status: 400 } }] },
  { match: '^long', turns: [{ text: LONG, chunk: 1 }] },
  { match: '^slow', turns: [{ text: 'I **do not** know.', delay_ms: 1000 }] }, // whoever follows is there by then
  { match: 'line one\nline two', turns: [{ text: 'Two lines.' }] },
  { turns: [{ text: 'I **do not** know.' }] },
];
const start = (t) => startTalk(t, LINES);
const open = async (home) => (await inbox(home.server)).interactions;

// Something that waits: its id.
async function waits(home, text) {
  const { code, stderr } = await piped(home, ['chat'], `${text}\n`);
  assert.equal(code, 3, stderr);
  return (await open(home))[0].interactionId;
}

test('each line is a message, and only answers are printed', async (t) => {
  const home = await start(t);
  assert.deepEqual(await piped(home, ['chat'], 'hello\n\n  \nand again'), { code: 0, stdout: 'I **do not** know.\nI **do not** know.\n', stderr: '' });
  assert.deepEqual(await piped(home, ['chat', '--once'], 'line one\nline two\n'), { code: 0, stdout: 'Two lines.\n', stderr: '' });
  assert.deepEqual(await piped(home, ['chat'], ''), { code: 0, stdout: '', stderr: '' });
  const failed = await piped(home, ['chat'], 'fail\nhello\n');
  assert.equal(failed.code, 1);
  assert.equal(failed.stdout, '');
  assert.match(failed.stderr, /^fermata: ✗ /);
  const broken = await piped(home, ['chat'], Buffer.from([0x68, 0xff, 0x0a]));
  assert.equal(broken.code, 1);
  assert.match(broken.stderr, /UTF-8/);
});

test('the next line answers a question, by number or in words', async (t) => {
  const home = await start(t);
  const question = '? How long?\n  1. 30 minutes\n  2. 1 hour\n';
  for (const [line, said] of [['2', '1 hour'], ['ten minutes', 'ten minutes'], ['7', '7']]) {
    assert.deepEqual(await piped(home, ['chat'], `ask\n${line}\n`), { code: 0, stdout: `${question}Thank you.\n`, stderr: '' });
    const { stdout } = await piped(home, ['chat', '--json'], `ask\n${line}\n`);
    const settled = stdout.trimEnd().split('\n').map((event) => JSON.parse(event)).find(({ type }) => type === 'interaction.resolved');
    assert.equal(settled.data.text, said);
  }
  assert.deepEqual(await piped(home, ['chat'], 'two\none\nother\n'), { code: 0, stdout: '? First?\n? Second?\nBoth.\n', stderr: '' });
  const cut = await piped(home, ['chat'], 'ask\n');
  assert.equal(cut.code, 3);
  assert.match(cut.stderr, /^fermata: Answer it with: fermata answer int_[0-9a-z]{26}\n$/);
});

test('no line approves anything', async (t) => {
  const home = await start(t);
  const { code, stdout, stderr } = await piped(home, ['chat'], 'write\ny\nyes\napprove\n');
  assert.equal(code, 3);
  assert.equal(stdout, `! Approval needed: calendar_write (changes data) · requested by local
  title: Review
  start_time: 2030-01-31T15:00:00+08:00
  end_time: 2030-01-31T16:00:00+08:00
`);
  assert.match(stderr, /^fermata: Answer it with: fermata answer int_[0-9a-z]{26} --approve \| --reject\n$/);
  assert.equal((await open(home)).length, 1);
});

test('--json prints the events', async (t) => {
  const home = await start(t);
  const { code, stdout, stderr } = await piped(home, ['chat', '--json'], 'slow\n');
  assert.equal(code, 0, stderr);
  const events = stdout.trimEnd().split('\n').map((line) => JSON.parse(line));
  assert.equal(events[0].type, 'message.added');
  assert.equal(events.at(-1).type, 'run.finished');
  assert.ok(events.some(({ type }) => type === 'text.delta'));
  assert.deepEqual(events.filter(({ seq }) => seq).map(({ seq }) => seq), events.filter(({ seq }) => seq).map((_, i) => i + 1));
});

test('--json leaves nothing that a terminal would act on, and means the same', async (t) => {
  const home = await start(t);
  const plain = (text) => assert.doesNotMatch(text, /[\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff\u{e0000}-\u{e007f}]/u);
  const { stdout: asked } = await piped(home, ['chat', '--json'], 'hide\n');
  const { stdout: listed } = await home.run(['inbox', '--json']);
  const { interactionId, question } = JSON.parse(listed);
  assert.equal(question, HIDDEN);
  const { stdout: settled } = await home.run(['answer', interactionId, '--text', HIDDEN, '--json']);
  assert.equal(JSON.parse(settled).interactionId, interactionId);
  const again = await home.run(['answer', interactionId, '--text', 'x', '--json']);
  assert.equal(again.code, 4, again.stderr);
  const events = asked.trimEnd().split('\n').map((line) => JSON.parse(line));
  assert.equal(events.find(({ type }) => type === 'interaction.request').data.question, HIDDEN);
  for (const text of [asked, listed, settled, again.stdout]) {
    assert.ok(text.includes('\\u009b') && text.includes('\\u202e'), text);
    plain(text);
  }
});

test('the inbox', async (t) => {
  const home = await start(t);
  assert.deepEqual(await home.run(['inbox']), { code: 0, stdout: 'Nothing waits for you.\n', stderr: '' });
  const question = await waits(home, 'ask me'), approval = await waits(home, 'write it');
  const { code, stdout } = await home.run(['inbox']);
  assert.equal(code, 0);
  assert.equal(stdout.replace(/\d+s ago/g, 'NOW'), `1. ${approval} · approval · NOW
   Run calendar_write? Review 2030-01-31T15:00:00+08:00
   Conversation: write it
2. ${question} · question · NOW
   How long?
   Conversation: ask me
`);
  const lines = (await home.run(['inbox', '--json'])).stdout.trimEnd().split('\n').map((line) => JSON.parse(line));
  assert.deepEqual(lines.map(({ interactionId }) => interactionId), [approval, question]);
  const chinese = await home.run(['inbox'], { LANG: 'zh_CN.UTF-8' });
  assert.match(chinese.stdout, /· 审批 · \d+ 秒前\n/);
});

test('an inbox of several pages', async (t) => {
  const home = await start(t);
  const ids = () => home.run(['inbox', '--json']).then(({ stdout }) => stdout.trimEnd().split('\n').map((line) => JSON.parse(line).interactionId));
  for (let i = 0; i < 26; i++) await accepted(home.server, { threadId: `many${i}`, messages: [user('four')] });
  const listed = await waitFor('104 questions', async () => { const all = await ids(); return all.length === 104 && all; });
  assert.equal(new Set(listed).size, 104);
  const { stdout } = await home.run(['inbox']);
  assert.deepEqual([...stdout.matchAll(/^\d+\. (int_\w+)/gm)].map(([, id]) => id), listed);
  assert.match(stdout, /^104\. /m);
});

test('answers by flags', async (t) => {
  const home = await start(t);
  const rows = [
    ['ask', ['--choice', '2'], '✓ 1 hour · local (api)\n'],
    ['ask', ['--choice', 'c1'], '✓ 30 minutes · local (api)\n'],
    ['ask', ['--text', 'later\ntoday'], '✓ later today · local (api)\n'],
    ['ask', ['--skip'], '✓ skipped · local (api)\n'],
    ['days', ['--choice', '1', '--choice', 'c3'], '✓ Mon, Wed · local (api)\n'],
    ['form', ['--field', 'item=tea', '--field', 'count=2'], '✓ {"item":"tea","count":2} · local (api)\n'],
    ['write', ['--approve'], '✓ approved · local (api)\n'],
    ['write', ['--reject', '--reason', 'no time'], '✓ rejected: no time · local (api)\n'],
    ['write', ['--edit', JSON.stringify({ ...MEETING, title: 'Retro' })], '✓ approved with other arguments · local (api)\n'],
  ];
  for (const [text, flags, expected] of rows) {
    const id = await waits(home, text);
    const said = await home.run(['answer', id, ...flags]);
    assert.equal(said.code, 0, said.stderr);
    assert.equal(said.stdout, expected, flags.join(' '));
    const late = await home.run(['answer', id, ...flags]);
    assert.equal(late.code, 4);
    assert.match(late.stderr, /^fermata: This is settled already\n✓ .* · local \(api\)\n$/);
    assert.equal((await open(home)).length, 0);
  }
});

test('what cannot be said is refused before it is sent, or by the server', async (t) => {
  const home = await start(t);
  const id = await waits(home, 'ask');
  for (const [flags, code, why] of [
    [[], 2, /Say what you decide/],
    [['--choice', '3'], 2, /There is no such choice/],
    [['--choice', '1', '--choice', '2'], 1, /one choice only/],
    [['--choice', '1', '--skip'], 2, /Say one thing/],
    [['--approve'], 1, /./],
    [['--field', 'x=1'], 2, /./],
  ]) {
    const said = await home.run(['answer', id, ...flags]);
    assert.equal(said.code, code, `${flags.join(' ')}: ${said.stderr}`);
    assert.match(said.stderr, why);
  }
  assert.equal((await home.run(['answer', 'int_0000', '--skip'])).code, 1);
  assert.equal((await home.run(['answer', '../x', '--skip'])).code, 2);
  const write = await waits(home, 'write');
  assert.match((await home.run(['answer', write, '--edit', '{'])).stderr, /no JSON object/);
  for (const short of ['int_', 'i', 'int', write.slice(0, 7), write.slice(4, 7)]) {
    const said = await home.run(['answer', short, '--skip']);
    assert.equal(said.code, 2, short);
    assert.match(said.stderr, /Write more of the id/);
  }
  assert.equal((await home.run(['answer', write.slice(0, 16), '--reject', '--json'])).code, 0);
  assert.equal((await open(home)).length, 1);
});

test('without a decision it asks, on a terminal', async (t) => {
  const home = await start(t);
  const id = await waits(home, 'write');
  const later = await Screen.open(t, home, ['answer', id]);
  await later.shows(`
! Approval needed: calendar_write (changes data) · requested by local
  title: Review
  start_time: 2030-01-31T15:00:00+08:00
  end_time: 2030-01-31T16:00:00+08:00
  a approve
  r reject
  e edit the arguments
Press a letter · Esc later`);
  await later.press('Escape');
  assert.equal(await later.ended(), 1);
  const screen = await Screen.open(t, home, ['answer', id]);
  await screen.until('Press a letter');
  await screen.press('a');
  assert.equal(await screen.ended(), 0);
  assert.match(await screen.text(), /✓ approved · local \(api\)/);
});

test('what was typed before an approval was drawn decides nothing', async (t) => {
  const home = await start(t);
  const id = await waits(home, 'write');
  process.kill(home.server.pid, 'SIGSTOP');
  const screen = await Screen.open(t, home, ['answer', id]);
  await screen.type('a');
  await screen.until('a'); // in the queue of the terminal: it is shown there before anybody reads it
  process.kill(home.server.pid, 'SIGCONT');
  await screen.until('Press a letter');
  while (!/❯ [are] /.test(await screen.text())) await screen.press('Down'); // the first may be dropped with the others
  assert.equal((await open(home)).length, 1);
  await screen.press('Escape');
  assert.equal(await screen.ended(), 1);
});

test('a reader that falls behind loses no answer', async (t) => {
  const home = await start(t);
  let behind;
  const { code, stdout, stderr } = await piped(home, ['chat', '--json'], 'long\n', { onOutput: ({ pid }) => { behind = fallBehind(home, pid); } });
  await behind;
  assert.equal(code, 0, stderr);
  const events = stdout.trimEnd().split('\n').map((line) => JSON.parse(line));
  assert.ok(events.some(({ type, data }) => type === 'reset' && data.reason === 'lagging'), 'it did fall behind');
  assert.deepEqual(events.filter(({ type }) => type === 'text.message.end').map(({ data }) => data.content), [LONG]);
});

test('why there is no server, and no conversation', async (t) => {
  const home = await start(t);
  const plain = createServer((socket) => socket.on('error', () => {}).on('data', () => socket.end('HTTP/1.1 400 no\r\n\r\n')));
  await new Promise((ready) => { plain.listen(0, '127.0.0.1', ready); });
  t.after(() => plain.close());
  for (const [words, why] of [
    [['chat', 'nosuchthread'], /^fermata: There is no such conversation: nosuchthread\n$/],
    [['chat', '--url', home.server.url.slice('http://'.length)], /^fermata: The address has to begin with http:\/\/ or https:\/\/: 127/],
    [['inbox', '--url', `https://127.0.0.1:${plain.address().port}`], /^fermata: No Fermata server at https:\S+ \(.*(TLS|SSL).*\)\n/],
    [['inbox', '--url', 'http://127.0.0.1:1'], /^fermata: No Fermata server at http:\S+ \(.+\)\n/],
  ]) {
    const said = await piped(home, words, 'hi\n');
    assert.equal(said.code, 1, words.join(' '));
    assert.match(said.stderr, why);
  }
  await home.stop();
  assert.match((await home.run(['inbox'])).stderr, /^fermata: No Fermata server runs on the data folder \S+\nfermata: Start one/);
});

test('help of a command', async (t) => {
  const home = await Home.make(t);
  for (const [name, code] of [['chat', 3], ['answer', 4]]) {
    const help = await home.run(['help', name]);
    assert.deepEqual(await home.run([name, '--help']), help);
    assert.match(help.stdout, new RegExp(`exit code ${code}`));
    assert.doesNotMatch(help.stdout, /run the server until/);
  }
  assert.match((await home.run(['--help'])).stdout, /run the server until/);
});

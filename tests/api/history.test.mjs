// SPDX-License-Identifier: Apache-2.0
//
// What is kept: history by pages, the list of threads, search, rename, export, delete. What was seen live and what is
// read later are the same.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';

import { assertProblem, call } from './home.mjs';
import {
  accepted, AGENT, get, history, openEvents, postRun, runOf, startTalk, talk, TIME, user, waitFor,
} from './talk.mjs';

const LIMIT_MAX = 200;
const SCRIPT = [
  { match: '^think', turns: [{ reasoning: 'Hm.', text: 'Thought.' }] },
  { match: '^endless', turns: [{ text: 'Once upon a time. '.repeat(20_000), chunk: 4, gap_ms: 5 }] },
  { turns: [{ text: 'Hello.' }] },
];

let home, server, cleanUp;
before(async () => {
  home = await startTalk({ after: (fn) => { cleanUp = fn; } }, SCRIPT);
  server = home.server;
});
after(() => cleanUp?.());

const say = (threadId, runId, content = 'hi') => accepted(server, { threadId, runId, messages: [user(content, `u-${runId}`)] });
const patch = (id, body) => call(server, 'PATCH', `${AGENT}/threads/${id}`, {
  headers: { 'content-type': 'application/json' }, body: JSON.stringify(body),
});
const remove = (id) => call(server, 'DELETE', `${AGENT}/threads/${id}`);
const idsOf = ({ messages }) => messages.map(({ id }) => id);
const threadsOf = async (query) => {
  const answer = await get(server, `/threads${query}`);
  assert.equal(answer.status, 200, answer.text);
  return answer.json();
};
const search = async (query) => (await threadsOf(`?query=${encodeURIComponent(query)}`)).threads.map(({ threadId }) => threadId);

describe('history', () => {
  const USERS = 9; // messages u0 to u8, and one answer
  let all;
  before(async () => {
    const messages = Array.from({ length: USERS }, (_, i) => user(`n${i}`, `u${i}`));
    await talk({ after: (fn) => after(fn) }, server, { threadId: 'h', runId: 'r1', messages });
    all = await history(server, 'h');
  });

  test('whole: every member, and nothing older', async () => {
    assert.deepEqual(Object.keys(all), ['messages', 'hasMore', 'openInteractions', 'seq']);
    assert.deepEqual([all.hasMore, all.openInteractions, all.seq], [false, [], 16]);
    assert.deepEqual(idsOf(all).slice(0, USERS), Array.from({ length: USERS }, (_, i) => `u${i}`));
    assert.equal(all.messages.length, USERS + 1);
    const last = all.messages.at(-1);
    assert.deepEqual(Object.keys(last), ['id', 'role', 'content', 'metadata', 'createdAt', 'usage']);
    assert.deepEqual([last.role, last.content], ['assistant', 'Hello.']);
    assert.deepEqual([last.metadata.run_id, last.metadata.stage], ['r1', 'report']);
    assert.ok(all.messages.every(({ createdAt }) => TIME.test(createdAt)));
  });

  test('the same by ?threadId=', async () => {
    const answers = [await get(server, '/history?threadId=h&limit=4'), await get(server, '/runs/h/history?limit=4')];
    assert.equal(answers[0].status, 200);
    assert.equal(answers[0].text, answers[1].text);
    assertProblem(await get(server, '/history'), 400, 'invalid_field', 'threadId');
    assertProblem(await get(server, '/history?threadId='), 400, 'invalid_field', 'threadId');
    assertProblem(await get(server, '/history?threadId=nowhere'), 404, 'not_found');
    assertProblem(await get(server, '/runs/nowhere/history'), 404, 'not_found');
  });

  for (const limit of [1, 2, 3, 4, 5, 9, 10, 11]) {
    test(`back by pages of ${limit}, and forth again`, async () => {
      const pages = [];
      for (let before = ''; before !== undefined;) {
        const page = await history(server, 'h', `?limit=${limit}${before && `&before=${before}`}`);
        assert.ok(page.messages.length <= limit);
        assert.equal(page.hasMore, page.before !== undefined, 'before is there if there is something older');
        pages.unshift(page);
        assert.ok(pages.length <= all.messages.length);
        before = page.before;
      }
      assert.deepEqual(pages.flatMap((page) => page.messages), all.messages);

      const seen = [...pages[0].messages];
      let cursor = pages[1]?.before; // the place of the oldest message of the second page
      if (cursor === undefined) return;
      seen.push(pages[1].messages[0]);
      for (let more = true; more;) {
        const page = await history(server, 'h', `?limit=${limit}&after=${cursor}`);
        more = page.hasMore;
        if (page.messages.length) assert.ok(page.before > cursor, 'there is something older');
        seen.push(...page.messages);
        // Only the first of a page tells its place; those of this thread are numbered without gaps up to the answer.
        cursor = page.before + page.messages.length - 1;
        assert.ok(seen.length <= all.messages.length);
      }
      assert.deepEqual(seen, all.messages);
    });
  }

  test('after=0 begins at the beginning; before=0 is before it', async () => {
    const first = await history(server, 'h', '?after=0&limit=3');
    assert.deepEqual([idsOf(first), first.hasMore, first.before], [['u0', 'u1', 'u2'], true, undefined]);
    const none = await history(server, 'h', '?before=0');
    assert.deepEqual([idsOf(none), none.hasMore, none.before], [[], false, undefined]);
  });

  test('cursors at the edges', async () => {
    assert.deepEqual(idsOf(await history(server, 'h', '?before=1')), []);
    assert.deepEqual(idsOf(await history(server, 'h', '?before=2')), ['u0']);
    assert.deepEqual(idsOf(await history(server, 'h', '?before=999999')), idsOf(all));
    assert.deepEqual(idsOf(await history(server, 'h', '?before=9223372036854775807')), idsOf(all));
    const end = await history(server, 'h', '?after=999999');
    assert.deepEqual([idsOf(end), end.hasMore], [[], false]);
    assert.ok(end.before > 0, 'there is something older');
  });

  test('what is no cursor and no limit', async () => {
    for (const [query, field] of [
      ['before=x', 'before'], ['before=-1', 'before'], ['before=', 'before'], ['before=9223372036854775808', 'before'],
      ['before=2026-13-01', 'before'], ['after=x', 'after'], ['after=-1', 'after'], ['after=9223372036854775808', 'after'],
      ['limit=0', 'limit'], ['limit=-1', 'limit'], ['limit=x', 'limit'], ['limit=', 'limit'], [`limit=${LIMIT_MAX + 1}`, 'limit'],
    ]) {
      assertProblem(await get(server, `/runs/h/history?${query}`), 400, 'invalid_field', field);
    }
    assert.equal((await history(server, 'h', `?limit=${LIMIT_MAX}`)).messages.length, all.messages.length);
  });

  test('before as a date', async (t) => {
    await talk(t, server, { threadId: 'dated', runId: 'r1', messages: [user('one', 'u1')] });
    const first = await history(server, 'dated');
    const ends = Date.parse(first.messages.at(-1).createdAt);
    await waitFor('the next millisecond', () => Date.now() > ends + 1);
    await talk(t, server, { threadId: 'dated', runId: 'r2', messages: [user('two', 'u2')] });
    const later = (await history(server, 'dated')).messages[2];
    assert.equal(later.id, 'u2');
    const at = (time) => history(server, 'dated', `?before=${encodeURIComponent(time)}`);
    assert.deepEqual(idsOf(await at(later.createdAt)), idsOf(first), 'exclusive');
    assert.equal(idsOf(await at(new Date(Date.parse(later.createdAt) + 1).toISOString()))[2], 'u2'); // its answer may be of the same millisecond
    assert.deepEqual(idsOf(await at('2001-01-01')), []);
    assert.equal((await at('2001-01-01T00:00:00Z')).before, undefined);
    assert.equal((await at('2100-01-01T00:00:00+08:00')).messages.length, 4);
    const page = await history(server, 'dated', `?limit=1&before=${encodeURIComponent(later.createdAt)}`);
    assert.deepEqual([page.hasMore, page.messages[0].id], [true, first.messages[1].id]);
  });

  test('of 50 by default', async (t) => {
    const messages = Array.from({ length: 60 }, (_, i) => user(`n${i}`, `u${i}`));
    await talk(t, server, { threadId: 'sixty', runId: 'r1', messages });
    const page = await history(server, 'sixty');
    assert.deepEqual([page.messages.length, page.hasMore, page.messages[0].id], [50, true, 'u11']);
  });

  test('joins with events at seq, without a gap or an overlap', async (t) => {
    await talk(t, server, { threadId: 'join', runId: 'r1', messages: [user('hi')] });
    const { seq, messages } = await history(server, 'join');
    const events = await openEvents(t, server, 'join', { query: `?after=${seq}` });
    await say('join', 'r2');
    const facts = await events.run('r2');
    assert.equal(facts[0].seq, seq + 1);
    const added = facts.filter(({ type }) => type === 'message.added').map(({ data }) => data.message);
    const now = await history(server, 'join');
    assert.deepEqual(now.messages.slice(0, messages.length), messages);
    assert.deepEqual(now.messages[messages.length], added[0]);
  });

  test('is what was seen live', async (t) => {
    const { facts, start } = await talk(t, server, { threadId: 'live', runId: 'r1', messages: [user('think 你好 👋', 'u1')] });
    const { messages } = await history(server, 'live');
    const text = await get(server, '/runs/live/history');
    const added = facts.find(({ type }) => type === 'message.added').data.message;
    const end = facts.find(({ type }) => type === 'text.message.end').data;
    const thought = facts.find(({ type }) => type === 'reasoning.end').data;
    assert.ok(text.text.includes(JSON.stringify(added)), 'byte for byte');
    const { messageId, content, inputTokens, outputTokens, cost, currency } = end;
    assert.deepEqual(messages[2], {
      id: messageId, role: 'assistant', content, metadata: { run_id: 'r1', stage: 'report', task_id: start.taskId },
      createdAt: messages[2].createdAt, usage: { inputTokens, outputTokens, cost, currency },
    });
    assert.deepEqual([messages[1].role, messages[1].content], ['reasoning', thought.content]);
  });
});

describe('threads', () => {
  test('one thread, member by member', async (t) => {
    const { facts } = await talk(t, server, { threadId: 'one', messages: [user('A title 标题')] });
    const thread = (await get(server, '/threads/one')).json();
    assert.deepEqual(Object.keys(thread), ['threadId', 'title', 'agent', 'seq', 'createdAt', 'updatedAt', 'usage']);
    assert.deepEqual([thread.threadId, thread.title, thread.agent, thread.seq], ['one', 'A title 标题', 'assistant', facts.at(-1).seq]);
    assert.match(thread.createdAt, TIME);
    assert.ok(thread.updatedAt >= thread.createdAt);
    const { usage, ...row } = thread;
    assert.deepEqual(usage, [facts.at(-1).data.usage]);
    assert.deepEqual((await threadsOf('?limit=1')).threads[0], row, 'the newest of the list');
    assertProblem(await get(server, '/threads/nowhere'), 404, 'not_found');
  });

  test('the last updated comes first', async (t) => {
    for (const threadId of ['first', 'second']) await talk(t, server, { threadId, runId: 'r1', messages: [user('hi')] });
    const before = Date.now();
    await waitFor('the next millisecond', () => Date.now() > before);
    await talk(t, server, { threadId: 'first', runId: 'r2', messages: [user('hi')] });
    const { threads } = await threadsOf('?limit=2');
    assert.deepEqual(threads.map(({ threadId }) => threadId), ['first', 'second']);
  });

  test('by pages: each once, in order', async (t) => {
    for (let i = 0; i < 7; i++) await talk(t, server, { threadId: `paged-${i}`, messages: [user(`paged ${i}`)] });
    const whole = (await threadsOf(`?limit=${LIMIT_MAX}`)).threads;
    for (const limit of [1, 3, whole.length - 1, whole.length, LIMIT_MAX]) {
      const seen = [];
      for (let cursor = ''; cursor !== undefined;) {
        const page = await threadsOf(`?limit=${limit}${cursor && `&cursor=${cursor}`}`);
        assert.ok(page.threads.length <= limit);
        seen.push(...page.threads);
        assert.ok(seen.length <= whole.length);
        cursor = page.next;
      }
      assert.deepEqual(seen, whole, `pages of ${limit}`);
    }
    for (const limit of [1, 2, 7, 8]) {
      const seen = [];
      for (let cursor = ''; cursor !== undefined;) {
        const page = await threadsOf(`?query=paged&limit=${limit}${cursor && `&cursor=${cursor}`}`);
        seen.push(...page.threads.map(({ title }) => title));
        assert.ok(seen.length <= 7);
        cursor = page.next;
      }
      assert.deepEqual(seen, [6, 5, 4, 3, 2, 1, 0].map((i) => `paged ${i}`));
    }
  });

  test('what is no cursor and no limit', async () => {
    for (const cursor of ['x', '1', '1-', '-1', '1-x', '-', '99999999999999999999-1', '1-99999999999999999999', '1-2-3']) {
      assertProblem(await get(server, `/threads?cursor=${cursor}`), 400, 'invalid_field', 'cursor');
    }
    for (const limit of ['0', '201', 'x', '']) assertProblem(await get(server, `/threads?limit=${limit}`), 400, 'invalid_field', 'limit');
    for (const cursor of ['1', '1-', '-1', '1-2-', '1-2-3-4', 'x-1', '1-2-x', '1-9223372036854775808', ''])
      assertProblem(await get(server, `/threads?query=x&cursor=${cursor}`), 400, 'invalid_field', 'cursor');
    for (const cursor of ['1-2', '1-2-3']) assert.equal((await get(server, `/threads?query=x&cursor=${cursor}`)).status, 200, cursor);
    assertProblem(await get(server, '/threads?query=%ff'), 400, 'invalid_field', 'query');
    assertProblem(await get(server, `/threads?query=${'x'.repeat(257)}`), 400, 'invalid_field', 'query');
    assert.equal((await get(server, `/threads?query=${'x'.repeat(256)}`)).status, 200);
  });

  test('search takes every sign for itself', async (t) => {
    const texts = {
      zh: '帮我约明天下午三点的评审会', percent: 'a discount of 100% today', under: 'snake_case here', back: 'C:\\temp\\x',
      emoji: 'party 🎉 time', umlaut: 'Äpfel, привет, ΣΑΣ, ＡＢＣ',
    };
    for (const [threadId, content] of Object.entries(texts)) {
      await talk(t, server, { threadId: `s-${threadId}`, messages: [user('Greetings'), user(content)] });
    }
    for (const [query, found] of [
      ['评审会', ['s-zh']], ['下午', ['s-zh']], ['100%', ['s-percent']], ['100% t', ['s-percent']], ['0%t', []],
      ['snake_case', ['s-under']], ['snake_CASE', ['s-under']],
      ['e_c', ['s-under']], ['p\\t', []], ['\\temp\\', ['s-back']], ['🎉', ['s-emoji']],
      ['PARTY', ['s-emoji']], ['äPFEL', ['s-umlaut']], ['ПрИвЕт', ['s-umlaut']], ['σασ', ['s-umlaut']], ['ａｂｃ', ['s-umlaut']], ["'", []], ['"', []], ['ty 🎉 ti', ['s-emoji']],
    ]) {
      assert.deepEqual(await search(query), found, query);
    }
    assert.equal((await search('greetings')).length, 6, 'titles are searched too');
    assert.ok((await search('%')).includes('s-percent') && !(await search('%')).includes('s-zh'));
  });

  test('search finds what the assistant said', async (t) => {
    await talk(t, server, { threadId: 's-think', messages: [user('think')] });
    assert.ok((await search('Thought.')).includes('s-think'));
  });

  describe('titles', () => {
    const rows = [
      ['short', 'Hello there', 'Hello there'],
      ['60 letters', 'x'.repeat(60), 'x'.repeat(60)],
      ['61 letters', 'x'.repeat(61), `${'x'.repeat(60)}…`],
      ['60 Chinese', '好'.repeat(60), '好'.repeat(60)],
      ['61 Chinese', '好'.repeat(61), `${'好'.repeat(60)}…`],
      ['61 emoji', '👋'.repeat(61), `${'👋'.repeat(60)}…`],
      ['two lines', '  \n\t First line \r\nsecond', 'First line'],
      ['control signs', '\u0000\u0007 bell\u0007 rings', 'bell\u0007 rings'],
      ['a blank at the cut', `${'x'.repeat(59)} yy`, `${'x'.repeat(59)}…`],
      ['quotes', 'say "hi" \\ <b>', 'say "hi" \\ <b>'],
    ];
    for (const [name, content, title] of rows) {
      test(name, async () => {
        const { threadId } = await accepted(server, { messages: [user(content)] });
        assert.equal((await get(server, `/threads/${threadId}`)).json().title, title);
      });
    }

    test('of parts', async () => {
      const { threadId } = await accepted(server, { messages: [user([{ type: 'text', text: 'One ' }, { type: 'text', text: 'two' }])] });
      assert.equal((await get(server, `/threads/${threadId}`)).json().title, 'One two');
    });

    test('the first message makes it, later ones do not', async (t) => {
      await talk(t, server, { threadId: 'titled', messages: [user('first'), user('second')] });
      await talk(t, server, { threadId: 'titled', messages: [user('third')] });
      assert.equal((await get(server, '/threads/titled')).json().title, 'first');
    });
  });

  describe('rename', () => {
    before(() => talk({ after: (fn) => after(fn) }, server, { threadId: 'named', messages: [user('hi')] }));

    test('another title, for good', async () => {
      const answer = await patch('named', { title: 'Neu 标题 👋' });
      assert.equal(answer.status, 200);
      assert.equal(answer.json().title, 'Neu 标题 👋');
      assert.equal((await get(server, '/threads/named')).text, answer.text);
      assert.deepEqual(await search('标题 👋'), ['named']);
    });

    test('without the blanks around it', async () => {
      assert.equal((await patch('named', { title: '  Neu\u3000' })).json().title, 'Neu');
      assert.equal((await get(server, '/threads/named')).json().title, 'Neu');
    });

    test('refused', async () => {
      for (const [body, field] of [
        [{ title: '' }, 'title'], [{ title: '   ' }, 'title'], [{ title: '\u3000\u200b' }, 'title'], [{ title: 'a\0b' }, 'title'],
        [{ title: 'a\nb' }, 'title'], [{ title: 'a\r' }, 'title'], [{ title: 'a\tb' }, 'title'], [{ title: 'a\u007fb' }, 'title'],
        [{ title: 'a\u0085b' }, 'title'], [{ title: 'a\u2028b' }, 'title'], [{ title: 'a\u2029b' }, 'title'], [{ title: 'a\u009bb' }, 'title'],
        [{}, 'title'], [{ title: 7 }, 'title'], [{ title: null }, 'title'], [{ title: 'x'.repeat(401) }, 'title'], [{ title: 'x', agent: 'y' }, 'agent'],
      ]) {
        assertProblem(await patch('named', body), 400, 'invalid_field', field);
      }
      assert.equal((await patch('named', { title: 'x'.repeat(400) })).status, 200);
      assertProblem(await patch('nowhere', { title: 'x' }), 404, 'not_found');
    });
  });

  describe('delete', () => {
    test('everything goes, and the id is free again', async (t) => {
      await talk(t, server, { threadId: 'd1', runId: 'r1', messages: [user('a secret word', 'u1')] });
      assert.equal((await remove('d1')).status, 204);
      for (const path of ['/threads/d1', '/runs/d1', '/runs/d1/history', '/history?threadId=d1', '/threads/d1/export?format=md']) {
        assertProblem(await get(server, path), 404, 'not_found');
      }
      assertProblem(await remove('d1'), 404, 'not_found');
      assert.deepEqual(await search('a secret word'), []);
      const { start, facts } = await talk(t, server, { threadId: 'd1', runId: 'r1', messages: [user('hi', 'u1')] });
      assert.deepEqual([start.created, start.seq, facts[0].seq], [true, 0, 1], 'another body under the same runId too');
      assert.equal((await history(server, 'd1')).messages.length, 2);
    });

    test('with a run under way and a queue', async (t) => {
      await say('d2', 'r1', 'endless');
      await say('d2', 'r2');
      assert.equal((await remove('d2')).status, 204);
      const { facts, start } = await talk(t, server, { threadId: 'd2', runId: 'r1', messages: [user('hi')] });
      assert.deepEqual([start.created, facts.at(-1).data.outcome, facts.length], [true, 'completed', 8]);
      assert.deepEqual((await runOf(server, 'd2')).queue, []);
    });

    test('again and again, while it is being talked on', async () => {
      for (let i = 0; i < 30; i++) {
        await say('d3', `r${i}`);
        const answers = await Promise.all([remove('d3'), postRun(server, { threadId: 'd3', runId: `x${i}`, messages: [user('hi')] })]);
        assert.deepEqual(answers.map(({ status }) => status), [204, 202]);
      }
      await waitFor('the last run', async () => {
        const answer = await get(server, '/runs/d3');
        return answer.status === 404 || answer.json().status === 'completed';
      });
    });

    test('an Idempotency-Key of a deleted thread does not answer for it', async () => {
      const key = { 'idempotency-key': 'deleted' };
      const body = { threadId: 'd4', messages: [user('hi')] };
      await accepted(server, body, key);
      await remove('d4');
      assert.equal((await accepted(server, body, key)).created, true);
      assert.equal((await get(server, '/threads/d4')).status, 200);
    });
  });

  describe('export', () => {
    before(() => talk({ after: (fn) => after(fn) }, server, { threadId: 'ex', runId: 'r1', messages: [user('Export 你好', 'u1'), user('two')] }));

    test('json: the thread and every message of its history', async () => {
      const answer = await get(server, '/threads/ex/export?format=json');
      assert.equal(answer.headers['content-type'], 'application/json');
      assert.equal(answer.headers['content-disposition'], 'attachment; filename="ex.json"');
      const { messages } = await history(server, 'ex');
      assert.deepEqual(answer.json(), { thread: (await get(server, '/threads/ex')).json(), messages });
    });

    test('md: readable, and the default', async () => {
      const answer = await get(server, '/threads/ex/export?format=md');
      assert.equal(answer.headers['content-type'], 'text/markdown; charset=utf-8');
      assert.equal(answer.headers['content-disposition'], 'attachment; filename="ex.md"');
      const [first, second, third] = (await history(server, 'ex')).messages;
      assert.equal(answer.text, `# Export 你好\n\n## user · ${first.createdAt}\n\nExport 你好\n\n## user · ${second.createdAt}\n\ntwo\n\n`
        + `## assistant · ${third.createdAt}\n\nHello.\n\n`);
      assert.equal((await get(server, '/threads/ex/export')).text, answer.text);
    });

    test('of more messages than a page holds', async (t) => {
      for (let i = 0; i < 2; i++) {
        const messages = Array.from({ length: 250 }, (_, j) => user(`n${i}-${j}`, `u${i}-${j}`));
        await talk(t, server, { threadId: 'ex2', runId: `r${i}`, messages });
      }
      const { messages } = (await get(server, '/threads/ex2/export?format=json')).json();
      assert.equal(messages.length, 502);
      assert.equal(new Set(messages.map(({ id }) => id)).size, 502);
    });

    test('refused', async () => {
      for (const format of ['x', '', 'JSON']) assertProblem(await get(server, `/threads/ex/export?format=${format}`), 400, 'invalid_field', 'format');
      assertProblem(await get(server, '/threads/nowhere/export?format=json'), 404, 'not_found');
    });
  });
});

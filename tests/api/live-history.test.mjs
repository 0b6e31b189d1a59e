// SPDX-License-Identifier: Apache-2.0
//
// Live equals history. Two hundred conversations with tools, cards, questions, approvals, failures and cancellations; and for
// each message its card as it came live, after a cut, from the beginning, in history, by its own address, and all of that
// again after kill -9: the same bytes. Nothing is parsed and written again on the way to a comparison (raw-json.mjs).
//
// To add a kind of conversation: a row in KINDS.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, request } from 'node:http';
import { after, before, describe, test } from 'node:test';

import { chance, seed } from '../fault/chance.mjs';
import { startAsking } from './asking.mjs';
import { call, postJson } from './home.mjs';
import { cut, hashOf, parts } from './raw-json.mjs';
import { within } from './server.mjs';
import { accepted, AGENT, cancel, user, waitFor } from './talk.mjs';

const KIB = 1024, MIB = 1024 * KIB;
const COUNT = 200;
const AT_ONCE = 8;
const STEP_MS_MAX = 120_000;
const CARD_FACT_MAX = 48 * KIB, RESULT_FACT_MAX = 64 * KIB;
const SIZES = [1, 2, 100, 4000, 32 * KIB, RESULT_FACT_MAX, RESULT_FACT_MAX + 1, 300 * KIB, MIB, MIB + 1, 2 * MIB];

// ---- what is shown ----

const WORDS = {
  en: ['Order 17', 'Ready', 'In stock: 3', 'Paid', 'A longer line of words, as people write them.'],
  zh: ['订单 17', '已完成', '库存：3 件', '已付款', '一行较长的文字，就像人们平常写的那样。'],
};
const HOSTILE = [
  '</script><script>alert(1)</script>', '\u202egnp.exe\u202c', 'a\u200bb\ufeffc', '"quoted" \\ and \u0000\u0001\u001f', 'line\none\r\n\ttwo', '\u2028\u2029',
  '👩‍👩‍👧‍👦 é e\u0301', '{"uiSchema":{"version":"2.0"}}', '","ui":{"root":1},"x":"', '${7*7} {{7*7}} %s %n', '\uffff\u{10ffff}', 'data: x\n\nevent: reset\n\n', 'ui', 'uiSchema',
];
const INTENTS = ['message', 'data', 'list', 'status', 'form', 'mixed'], STATUSES = ['info', 'success', 'warning', 'error', 'pending'];
const ACTIONS = (text) => [
  { type: 'navigation', path: '/orders/7', params: { tab: text } }, { type: 'url', url: 'https://example.org/a?b=c#d', target: '_blank' },
  { type: 'event', event: 'refresh', payload: { text, all: [true, null, '@number'] } }, { type: 'tool', toolId: 'look', params: { id: text } },
  { type: 'copy', content: `  ${text}\n`, successMessage: text }, { type: 'payload', payload: { a: [1, { b: text }] }, submitTo: '/submit' },
];

// Hints that are good, of this intent.
function hintsOf(c, intent) {
  const pick = (list) => list[c.next(list.length)];
  const word = () => (c.next(3) ? pick(WORDS[c.language]) : pick(HOSTILE));
  const list = (make, most) => Array.from({ length: c.next(most + 1) }, (_, i) => make(i));
  const item = (i) => ({ key: `k${i}`, label: word(), value: pick([word(), 7, -0.5, '@number', true, { deep: [word()] }, [word(), null]]), copyable: c.next(2) === 0 });
  const action = () => ({ label: `Go ${word()}`, style: pick(['primary', 'secondary', 'ghost', 'danger']), disabled: c.next(3) === 0, action: pick(ACTIONS(word())) });
  const entry = (i) => ({ title: `Entry ${i} ${word()}`, subtitle: word(), description: word(), badge: { label: word(), status: pick(STATUSES) }, items: list(item, 3), actions: list(action, 2) });
  const section = (i) => ({ title: `Section ${i} ${word()}`, description: word(), body: word(), status: pick(STATUSES), items: list(item, 5), listItems: list(entry, 2) });
  return {
    version: '2.1', intent, status: pick(STATUSES), title: `${intent} ${word()}`, description: word(), body: `${word()}\n\n**${word()}**`,
    bodyFormat: pick(['plain', 'markdown']), icon: pick(['calendar', { name: 'box', size: 'lg', status: 'success' }]), items: list(item, 6),
    listItems: list(entry, 4), sections: list(section, 3), actions: list(action, 4), meta: { of: c.id }, unknown: word(),
  };
}

const LARGE = (c, bytes = 60 * KIB + c.next(60 * KIB)) => ({ ...hintsOf(c, 'message'), body: `${HOSTILE[c.next(HOSTILE.length)]} ${'大 large '.repeat(bytes / 10)}` });
const BAD = [
  null, {}, { hints: [] }, { version: 2.1, intent: 'data', status: 'info', title: 'x' }, { version: '2.1' }, { version: '2.0', intent: 'data', status: 'info', title: 'x' }, { version: '2.1', intent: 'never', status: 'info', title: 'x' },
  { version: '2.1', intent: 'data', status: 'info', title: 7 }, { version: '2.1', intent: 'message', status: 'info', title: ' ' },
  { version: '2.1', intent: 'message', status: 'info', title: 'x', actions: [{ label: 'x', action: { type: 'url', url: 'javascript:alert(1)' } }] },
];

// JSON of exactly so many bytes.
function resultOf(c, size) {
  if (size < 3) return '7'.repeat(size);
  const text = JSON.stringify(HOSTILE.filter((word) => c.next(2)).join(' '));
  if (Buffer.byteLength(text) > size) return `"${'x'.repeat(size - 2)}"`;
  return `${text.slice(0, -1)}${'x'.repeat(size - Buffer.byteLength(text))}"`;
}

const written = (value) => JSON.stringify(value).replaceAll('"@number"', '12345678901234567890.000100e-7');

// ---- conversations ----

const turn = (...calls) => ({ text: calls.length ? '' : 'Done.', calls, chunk: 65536 });
const DONE = turn();
const MEETING = (c) => ({ title: HOSTILE[c.next(4)], start_time: `2030-01-31T1${c.next(10)}:00:00+08:00`, end_time: '2030-01-31T20:00:00+08:00' });
const approve = ({ binding }) => ({ decision: 'approve', binding });
const decideAll = (c) => ({ type, binding }) => (type === 'ask_user' ? { answer: `It is ${HOSTILE[c.next(HOSTILE.length)]}.` } : { decision: 'approve', binding });
const answerOf = (c, parts_ = {}) => ({ content: 'It is there.', result: '{"n":1}', hints: hintsOf(c, INTENTS[c.next(6)]), ...parts_ });

// What happens in it: turns of the model, and `decide` what a person says; `stop` ends it while a tool is busy or a person is
// asked. `atLeast`: so many messages have one, at least.
const KINDS = {
  'one card': (c) => ({ atLeast: 1, turns: [turn(c.look({ hints: hintsOf(c, INTENTS[c.n % 6]) })), DONE] }),
  'four calls at once': (c) => ({ atLeast: 4, turns: [turn(...[1, 2, 3, 4].map(() => c.look({ result: resultOf(c, 1 + c.next(5000)) }))), DONE] }),
  'three rounds': (c) => ({ atLeast: 3, turns: [turn(c.look()), turn(c.look()), turn(c.look()), DONE] }),
  'a large card': (c) => ({ atLeast: 2, turns: [turn(c.look({ hints: LARGE(c) }), c.look()), DONE] }),
  'bad hints': (c) => ({ atLeast: 1, turns: [turn(...BAD.map((hints) => c.look({ hints })), c.look()), DONE] }),
  'no hints': (c) => ({ atLeast: 0, turns: [turn(c.look({ hints: undefined })), DONE] }),
  'any size': (c) => ({ atLeast: 2, turns: [turn(...[0, 1].map((i) => c.look({ result: resultOf(c, SIZES[(c.n + 5 * i) % SIZES.length]) }))), DONE] }),
  'a failure with a card': (c) => ({ atLeast: 1, turns: [turn(c.look({ error: 'sold out', result: undefined })), DONE] }),
  'a failure without': (c) => ({ atLeast: 1, turns: [turn(c.look({ status: 500, error: 'broken' }), c.look()), DONE] }),
  'the calendar': (c) => ({ atLeast: 2, turns: [turn({ name: 'calendar_write', args: MEETING(c) }),
    turn({ name: 'calendar_read', args: { from: '2030-01-31T00:00:00+08:00', to: '2030-02-01T00:00:00+08:00' } }), DONE] }),
  'the model\'s own card': (c) => ({ atLeast: 1, turns: [{ text: 'See:', calls: [{ name: 'show_card', args: written(hintsOf(c, INTENTS[c.n % 6])) }], chunk: 65536 }] }),
  'the model\'s own large card': (c) => ({ atLeast: 1, turns: [{ text: 'See:', calls: [{ name: 'show_card', args: written(LARGE(c)) }], chunk: 65536 }] }),
  'the model\'s bad card': (c) => ({ atLeast: 1, turns: [turn({ name: 'show_card', args: written(BAD[5 + c.next(5)]) }),
    { text: 'See:', calls: [{ name: 'show_card', args: written(hintsOf(c, 'data')) }], chunk: 65536 }] }),
  'an approval': (c) => ({ atLeast: 2, decide: approve, turns: [turn(c.change()), DONE] }),
  'a long approval': (c) => ({ atLeast: 2, decide: approve, turns: [turn(c.change({}, { pad: HOSTILE.join(' ').repeat(300) })), DONE] }),
  'a rejection': (c) => ({ atLeast: 1, decide: () => ({ decision: 'reject', comment: 'No: </b>' }), turns: [turn(c.change()), DONE] }),
  'an edit': (c) => ({ atLeast: 2, decide: ({ binding, pendingTool }) => ({ decision: 'edit', args: { ...JSON.parse(pendingTool.argsJson), pad: HOSTILE[1] }, binding }),
    turns: [turn(c.change({}, { pad: 'before' })), DONE] }),
  'everything in one turn': (c) => ({ atLeast: 4, decide: decideAll(c),
    turns: [turn(c.look(), { name: 'ask_user', args: { question: HOSTILE[c.next(4)], choices: ['One', '二'] } }, c.change()), turn(c.look({ hints: LARGE(c) })), DONE] }),
  'stopped while a tool is busy': (c) => ({ atLeast: 1, stop: 'busy', turns: [turn(c.look(), c.look({ held: true })), DONE] }),
  'stopped while a person is asked': (c) => ({ atLeast: 2, stop: 'asked', turns: [turn(c.look()), turn(c.change()), DONE] }),
};

// One of them; its tools' answers go into `answers`, by the id that is their argument.
function conversation(n, answers) {
  const [kind, make] = Object.entries(KINDS)[n % Object.keys(KINDS).length];
  const next = chance(n);
  const c = { id: `c${n}`, n: Math.floor(n / Object.keys(KINDS).length), next, language: next(2) ? 'zh' : 'en', results: new Map() };
  const of = (name) => (answer = {}, args = {}) => {
    const id = `${c.id}-${c.results.size}`, whole = { id, ...answerOf(c, answer) };
    if (whole.held) {
      whole.released = new Promise((resolve) => { c.release = resolve; });
      c.busy = new Promise((resolve) => { whole.taken = resolve; });
    }
    c.results.set(id, whole);
    answers.set(id, whole);
    return { name, args: { id, ...args } };
  };
  c.look = of('look');
  c.change = of('change');
  return Object.assign(c, { kind }, make(c));
}

// ---- reading ----

// Facts of a stream as they stand: [{seq, name, text}]. Ends when `enough` says so.
async function readFacts(server, threadId, { query = '', headers = {}, enough }) {
  const facts = [];
  const reading = new Promise((done, failed) => {
    const path = `${AGENT}/runs/${threadId}/events${query}`;
    const sent = request({ host: server.host, port: server.port, path, headers, agent: false }, (response) => {
      const decoder = new TextDecoder('utf-8', { fatal: true });
      let rest = '', over = false;
      response.on('error', () => {}).on('close', () => failed(new Error(`the stream of ${threadId} ended`)));
      response.on('data', (bytes) => {
        try {
          const frames = (rest + decoder.decode(bytes, { stream: true })).split('\n\n');
          rest = frames.pop();
          for (const frame of over ? [] : frames) {
            const match = /^id: (\d+)\nevent: ([a-z.]+)\ndata: ([^\n]+)$/.exec(frame);
            if (!match) continue;
            facts.push({ seq: Number(match[1]), name: match[2], text: match[3] });
            if (!enough(facts.at(-1))) continue;
            over = true; // also of what is still on its way
            done(facts);
            return void response.destroy();
          }
        } catch (error) {
          failed(error);
          response.destroy();
        }
      });
    });
    sent.on('error', failed);
    sent.end();
  });
  return within(STEP_MS_MAX, `facts of ${threadId}`, reading);
}

const isOver = ({ name, text }) => name === 'run.error' || (name === 'run.finished' && JSON.parse(text).data.outcome !== 'interrupted');

// The same facts, by somebody whose connection is cut again and again.
async function readCut(server, threadId, next) {
  const facts = [];
  while (!facts.length || !isOver(facts.at(-1))) {
    let left = 1 + next(4);
    const cursor = facts.length ? { headers: { 'last-event-id': String(facts.at(-1).seq) } } : { query: '?after=0' };
    facts.push(...await readFacts(server, threadId, { ...cursor, enough: (fact) => --left === 0 || isOver(fact) }));
  }
  return facts;
}

// By message id: {card: its bytes, ref} of what facts show.
const CARDS = { 'tool.call.result': 'messageId', 'text.message.end': 'messageId', 'interaction.request': 'interactionId' };
function cardsOf(facts) {
  const cards = new Map();
  for (const { name, text } of facts) {
    if (!CARDS[name]) continue;
    const data = cut(text, 'data');
    const card = cut(data, 'ui'), ref = cut(data, 'uiRef');
    assert.ok(card === undefined || ref === undefined);
    if (card !== undefined) assert.ok(Buffer.byteLength(card) <= CARD_FACT_MAX);
    cards.set(JSON.parse(cut(data, CARDS[name])), { name, card, ref: ref && JSON.parse(ref) });
  }
  return cards;
}

// History: Map of id -> the row as it stands, once everything is in object storage.
async function rowsOf(server, threadId) {
  const text = await waitFor(`the payloads of ${threadId}`, async () => {
    const answer = await call(server, 'GET', `${AGENT}/runs/${threadId}/history?limit=200`);
    assert.equal(answer.status, 200, answer.text);
    return !answer.text.includes('"storage_missing"') && answer.text;
  }, STEP_MS_MAX);
  JSON.parse(text);
  return new Map(parts(cut(text, 'messages')).map(([, row]) => [JSON.parse(cut(row, 'id')), row]));
}

async function bytesAt(server, path) {
  const answer = await call(server, 'GET', path);
  assert.equal(answer.status, 200, `${path}: ${answer.text.slice(0, 200)}`);
  assert.equal(answer.headers['content-type'], 'application/json');
  return answer.text;
}

// ---- one conversation ----

// What a person does about what comes.
async function react(server, c, { name, text }) {
  const { data } = JSON.parse(text);
  if (c.stop === 'busy' && name === 'tool.call.result' && !data.error) {
    await c.busy;
    assert.equal((await cancel(server, c.id)).status, 202);
  }
  if (name !== 'interaction.request') return;
  if (c.stop === 'asked') return void assert.equal((await cancel(server, c.id)).status, 202);
  const taken = await postJson(server, `${AGENT}/interactions/${data.interactionId}/answer`, c.decide(data));
  assert.equal(taken.status, 200, taken.text);
}

// To its end, seen by three readers.
async function converse(server, c) {
  const words = c.language === 'zh' ? `${c.id}: 请看` : `${c.id}: look`;
  await accepted(server, { threadId: c.id, runId: 'r', messages: [user(words, 'u')] });
  const reactions = [];
  const again = readCut(server, c.id, c.next);
  again.catch(() => {}); // told below
  c.live = await readFacts(server, c.id, { query: '?after=0', enough: (fact) => {
    reactions.push(react(server, c, fact));
    return isOver(fact);
  } });
  c.release?.();
  await Promise.all(reactions);
  assert.deepEqual(await again, c.live, 'after cuts');
  c.cards = cardsOf(c.live);
  c.rows = await rowsOf(server, c.id);
}

// Every card is the one that was live; what a fact only names is there.
async function compare(server, c) {
  const facts = await readFacts(server, c.id, { query: '?after=0', enough: isOver });
  assert.deepEqual(facts, c.live, 'from the beginning');
  const rows = await rowsOf(server, c.id);
  assert.deepEqual([...rows], [...c.rows], 'history');
  const seen = { cards: 0, refs: 0, compared: 0 };
  for (const [id, { name, card, ref }] of c.cards) {
    const stored = cut(rows.get(id), 'uiSchema');
    const where = `${c.kind}: ${name} ${id}`;
    if (name === 'interaction.request') {
      const now = await bytesAt(server, `${AGENT}/interactions/${id}`);
      assert.equal(hashOf(cut(now, 'ui')), hashOf(stored), where);
      if (c.kind === 'an edit') {
        assert.notEqual(stored, card, 'it shows the edit');
        seen.cards++;
        continue;
      }
    }
    if (ref) {
      assert.equal(ref, `${AGENT}/threads/${c.id}/messages/${id}/ui`);
      const whole = await bytesAt(server, ref);
      assert.ok(Buffer.byteLength(whole) > CARD_FACT_MAX, where);
      assert.equal(hashOf(whole), hashOf(stored), where);
      seen.refs++;
    } else {
      assert.equal(card === undefined, stored === undefined, where);
      if (card === undefined) continue;
      assert.equal(hashOf(card), hashOf(stored), where);
      if (c.n % 5 === 0) assert.equal(hashOf(await bytesAt(server, `${AGENT}/threads/${c.id}/messages/${id}/ui`)), hashOf(card), where);
    }
    assert.equal(JSON.parse(stored).version, '2.0');
    seen.cards++;
  }
  for (const [id, row] of rows) if (cut(row, 'uiSchema') !== undefined) assert.ok(c.cards.has(id), `${id} was shown live`);
  assert.ok(seen.cards >= c.atLeast, `${c.kind}: ${seen.cards} cards, not ${c.atLeast}`);
  return seen;
}

// What a tool returned is what the fact and its reference say.
async function compareResults(server, c) {
  let count = 0;
  for (const { name, text } of c.live) {
    if (name !== 'tool.call.result') continue;
    const data = cut(text, 'data'), wanted = c.results.get(JSON.parse(data).args.id)?.result;
    const given = cut(data, 'result');
    if (wanted === undefined || given === undefined) continue;
    const ref = Buffer.byteLength(wanted) > RESULT_FACT_MAX;
    const path = `${AGENT}/threads/${c.id}/messages/${JSON.parse(cut(data, 'messageId'))}/result`;
    if (ref) assert.deepEqual(JSON.parse(given), { ref: path, size: Buffer.byteLength(wanted) });
    else assert.equal(hashOf(given), hashOf(wanted));
    assert.equal(hashOf(await bytesAt(server, path)), hashOf(wanted));
    count++;
  }
  return count;
}

// ---- all of them ----

let home, tool, cleanUp;
const answers = new Map();
const all = Array.from({ length: COUNT }, (_, n) => conversation(n, answers));

async function serveTool(sent, response) {
  const pieces = [];
  for await (const piece of sent) pieces.push(piece);
  const { id } = JSON.parse(Buffer.concat(pieces).toString());
  const { status = 200, content, result, error, hints, taken, released } = answers.get(id);
  taken?.();
  await released;
  const members = Object.entries({ content: JSON.stringify(content), result, error: error && JSON.stringify(error), ui_hints: hints === undefined ? undefined : written(hints) });
  const body = members.filter(([, text]) => text !== undefined).map(([name, text]) => `"${name}":${text}`).join(',');
  response.writeHead(status, { 'content-type': 'application/json' }).end(`{${body}}`);
}

before(async () => {
  tool = createServer((sent, response) => {
    response.on('error', () => {});
    serveTool(sent, response).catch(() => response.destroy());
  });
  tool.listen(0, '127.0.0.1');
  await once(tool, 'listening');
  const http = (name, effect) => `  - http: ${JSON.stringify({ name, effect, url: `http://127.0.0.1:${tool.address().port}/`,
    schema: { type: 'object', properties: { id: { type: 'string' }, pad: { type: 'string' } } } })}\n`;
  home = await startAsking({ after: (fn) => { cleanUp = fn; } }, {
    lines: all.map(({ id, turns }) => ({ match: `^${id}:`, turns })),
    config: `agents: {assistant: {policy: {"calendar_*": allow}}}\ntools:\n${http('look', 'read')}${http('change', 'write')}`,
  });
});
after(async () => {
  await cleanUp?.();
  tool.closeAllConnections();
  tool.close();
});

// Each in its turn, some at once.
async function inParallel(use) {
  const queue = [...all];
  const work = async () => {
    for (let c; (c = queue.shift());) {
      await use(c).catch((error) => {
        error.message = `${c.id}, ${c.kind}, FERMATA_SEED=${seed}: ${error.message}`;
        throw error;
      });
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
}

async function compareAll() {
  const sums = { cards: 0, refs: 0, results: 0 };
  await inParallel(async (c) => {
    const seen = await compare(home.server, c);
    sums.cards += seen.cards;
    sums.refs += seen.refs;
    const results = await compareResults(home.server, c);
    sums.results += results;
  });
  assert.ok(sums.cards > 1.5 * COUNT && sums.refs > COUNT / 8 && sums.results > COUNT, JSON.stringify(sums));
  return sums;
}

describe(`${COUNT} conversations`, () => {
  test('come to their ends, the same for a reader that is cut', async () => {
    await inParallel((c) => converse(home.server, c));
    for (const c of all) {
      const { name, text } = c.live.at(-1);
      assert.equal(name, 'run.finished', `${c.id}, ${c.kind}: ${text}`);
      assert.equal(JSON.parse(text).data.outcome, c.stop ? 'cancelled' : 'completed', `${c.id}, ${c.kind}`);
    }
  });

  test('have the cards in history that were live', async (t) => {
    t.diagnostic(JSON.stringify(await compareAll()));
  });

  test('have them after kill -9 too', async () => {
    await home.server.kill9();
    home.server = null;
    await home.start();
    await compareAll();
  });
});

// SPDX-License-Identifier: Apache-2.0
//
// SIGHUP: agents, models, tools and MCP servers as the configuration file has them now, under clients that notice
// nothing; and `fermata check`, which says beforehand whether what the file names is there.

import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';

import { card, cardOf, payloadButton, press, pressed, toolButton } from './buttons.mjs';
import { assertProblem, call, Home } from './home.mjs';
import { accepted, AGENT, answer, get, openEvents, postRun, runOf, talk, user, waitFor } from './talk.mjs';

const LINES = [
  { match: '^ask', turns: [{ calls: [{ name: 'ask_user', args: { question: 'Which?', choices: ['a', 'b'] } }] }, { text: 'Thanks.' }] },
  { match: '^book', turns: [{ calls: [{ name: 'calendar_write', args: { title: 'T', start_time: '2026-11-16T15:00:00Z', end_time: '2026-11-16T16:00:00Z' } }] }, { text: 'Over.' }] },
  { match: '^card', turns: [{ calls: [{ name: 'show_card', args: card(
    toolButton('Read', 'calendar_read', { from: '2026-01-01T00:00:00Z', to: '2026-01-02T00:00:00Z' }),
    toolButton('Who', 'user_resolve', { query: 'x' }), payloadButton('Say', { a: 1 })) }], text: 'Here.' }] },
  { match: '^slow', turns: [{ text: 'one two three four five six seven eight', chunk: 1, gap_ms: 60 }] },
  { match: '^pid', turns: [{ calls: [{ name: 'files.pid', args: {} }] }, { text: 'Told.' }] },
  { turns: [{ text: 'Hello.' }] },
];

// A server of tools over standard input and output: it tells its process id.
const TOOLS = `
const tools = process.argv.slice(2).map((name) => ({ name, description: name, inputSchema: { type: 'object' } }));
let rest = '';
const send = (message) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...message }) + '\\n');
process.stderr.write('tools are here\\n');
process.stdin.setEncoding('utf8').on('data', (text) => {
  const lines = (rest + text).split('\\n');
  rest = lines.pop();
  for (const line of lines) {
    const { id, method, params } = JSON.parse(line);
    if (id === undefined) continue;
    if (method === 'initialize') send({ id, result: { protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo: { name: 't', version: '1' } } });
    else if (method === 'tools/list') send({ id, result: { tools } });
    else if (method === 'tools/call') send({ id, result: { content: [{ type: 'text', text: params.name + ' ' + process.pid }] } });
    else if (method === 'ping') send({ id, result: {} });
    else send({ id, error: { code: -32601, message: 'unknown method' } });
  }
}).on('end', () => process.exit(0));
`;

// One that says something when it is told to go; a shell, since it has only a moment from its start on.
const CHATTY = 'cat > /dev/null; echo "last words of $$" >&2\n';

class Place {
  static async make(t, yaml, env = {}) {
    const place = new Place();
    place.home = await Home.make(t);
    place.file = join(place.home.data, 'fermata.yaml');
    const script = join(place.home.data, 'script.jsonl');
    place.folder = await mkdtemp(join(tmpdir(), 'fermata-reload-')); // a program sees nothing of the data folder
    t.after(() => rm(place.folder, { recursive: true, force: true }));
    place.tools = join(place.folder, 'tools.mjs');
    await writeFile(script, LINES.map((line) => `${JSON.stringify(line)}\n`).join(''));
    await writeFile(place.tools, TOOLS);
    await place.write(yaml);
    place.home.env = { FERMATA_CONFIG: place.file, FERMATA_MODEL_PROVIDER: 'scripted', FERMATA_SCRIPT: script, ...env };
    return place;
  }

  static async start(t, yaml, env) {
    const place = await Place.make(t, yaml, env);
    place.server = await place.home.start();
    return place;
  }

  write(yaml) {
    return writeFile(this.file, yaml);
  }

  // An entry of `mcp` that offers these tools.
  offering(...names) {
    return `{command: ["${process.execPath}", "${this.tools}", ${names.map((name) => `"${name}"`).join(', ')}], read: ["*"]}`;
  }

  // Sends SIGHUP, and waits for the word in the log; the lines from then on.
  async hangUp(word) {
    const from = this.server.stderr().length;
    process.kill(this.server.pid, 'SIGHUP');
    return this.logged(word, from);
  }

  logged(word, from = 0) {
    return waitFor(word, () => {
      const text = this.server.stderr().slice(from);
      return text.includes(word) && text;
    });
  }

  async reload(yaml) {
    await this.write(yaml);
    return this.hangUp('config.reloaded');
  }

  async names() {
    return (await get(this.server, '/agents')).json().agents.map(({ name }) => name);
  }

  async toolsOf(name) {
    const { agents } = (await get(this.server, '/agents')).json();
    return agents.find((agent) => agent.name === name).capabilities.tools.map((tool) => tool.name);
  }
}

const open = (facts) => facts.filter(({ type }) => type === 'interaction.request').map(({ data }) => data);
const alive = (pid) => {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
};

describe('a reload', () => {
  test('brings agents and takes them, and drops no connection', async (t) => {
    const place = await Place.start(t, 'agents: {assistant: {}, clerk: {max_rounds: 3}}\n');
    const { server } = place;
    assert.deepEqual(await place.names(), ['assistant', 'clerk']);
    const threadId = 'stays';
    await talk(t, server, { threadId, agent: 'clerk', messages: [user('hello')] });
    const reader = await openEvents(t, server, threadId, { query: '?after=0' });
    await reader.until(({ type }) => type === 'run.finished');

    const log = await place.reload('agents: {assistant: {starters: [New]}, boss: {prompt: Boss}}\n');
    assert.match(log, /config\.reloaded.*agents=2/);
    assert.doesNotMatch(log, /restart_needed/);
    assert.deepEqual(await place.names(), ['assistant', 'boss']);
    assert.deepEqual((await get(server, '/agents')).json().agents[0].starters, ['New']);
    assertProblem(await call(server, 'GET', `${AGENT}/agents/clerk/settings`), 404, 'not_found');
    assertProblem(await postRun(server, { agent: 'clerk', messages: [user('hello')] }), 400, 'invalid_field', 'agent');
    // The thread's agent is gone: the default takes the message, and the old reader sees it.
    const { runId } = await accepted(server, { threadId, messages: [user('hello again')] });
    const facts = await reader.run(runId);
    assert.equal(facts.find(({ type }) => type === 'run.started').data.agent, 'assistant');
    const boss = await talk(t, server, { agent: 'boss', messages: [user('hello')] });
    assert.equal(boss.facts.at(-1).data.outcome, 'completed');
  });

  test('that fails says why and changes nothing', async (t) => {
    const place = await Place.start(t, 'agents: {assistant: {starters: [Old]}}\n');
    const broken = [
      ['agents: {assistant: {tools: [calender]}}\n', /there is no tool \\?"calender\\?"/],
      ['agents: {assistant: {model: none}}\n', /none/],
      ['agents: [\n', /fermata\.yaml:/],
      ['tools:\n  - http: {name: a, url: "http://127.0.0.1:1", effect: read, schema: {type: object, properties: {x: {type: text}}}}\n', /tools\[0\]\.http\.schema\.properties\.x/],
    ];
    for (const [yaml, why] of broken) {
      await place.write(yaml);
      const log = await place.hangUp('config.reload_failed');
      assert.match(log, why);
      const [agent] = (await get(place.server, '/agents')).json().agents;
      assert.deepEqual([agent.name, agent.starters], ['assistant', ['Old']]);
    }
    const { facts } = await talk(t, place.server, 'hello');
    assert.equal(facts.at(-1).data.outcome, 'completed');
    await place.reload('agents: {assistant: {starters: [Mended]}}\n');
  });

  test('names what needs a restart, and leaves it as it was', async (t) => {
    const place = await Place.start(t, 'limits: {body: 1MiB}\n');
    const secret = join(place.home.data, 'hook.txt');
    await writeFile(secret, 'x'.repeat(32), { mode: 0o600 });
    const log = await place.reload(`limits: {body: 2MiB}\nauth: {hosts: [example.org]}\nagents: {assistant: {starters: [New]}}\nwebhooks: [{url: "http://127.0.0.1:1/x", secret_file: "${secret}"}]\n`);
    const all = await place.logged('restart_needed');
    assert.match(all.slice(all.indexOf('restart_needed')), /keys="?(?=.*limits\.body)(?=.*auth\.hosts)(?=.*webhooks)/);
    assert.doesNotMatch(log, /keys=.*agents/);
    const [agent] = (await get(place.server, '/agents')).json().agents;
    assert.deepEqual([agent.starters, agent.limits.body], [['New'], 1024 * 1024]);
  });

  test('keeps what was set, and does not end a model\'s answer that is under way', async (t) => {
    const place = await Place.start(t, 'agents: {assistant: {max_rounds: 5}}\n');
    const { server } = place;
    const path = `${AGENT}/agents/assistant/settings`;
    const set = { headers: { 'content-type': 'application/json' }, body: '{"maxToolRounds":9}' };
    assert.equal((await call(server, 'PATCH', path, set)).status, 200);
    const { threadId, runId } = await accepted(server, 'slow');
    const reader = await openEvents(t, server, threadId, { query: '?after=0' });
    await reader.until(({ type }) => type === 'text.delta');
    await place.reload('agents: {assistant: {max_rounds: 6}}\n');
    assert.equal((await call(server, 'GET', path)).json().maxToolRounds, 9);
    const facts = await reader.run(runId);
    assert.equal(facts.find(({ type }) => type === 'text.message.end').data.content, 'one two three four five six seven eight');
    assert.equal(facts.at(-1).data.outcome, 'completed');
  });

  test('many at once are one after the other', async (t) => {
    const place = await Place.start(t, '');
    await place.write('agents: {last: {}}\n');
    for (let i = 0; i < 20; i++) process.kill(place.server.pid, 'SIGHUP');
    await waitFor('the new agents', async () => (await place.names()).join() === 'last');
  });
});

describe('a run whose agent is gone', () => {
  test('asks its person, and goes on when the agent is back', async (t) => {
    const yaml = 'agents: {assistant: {}, clerk: {}}\n';
    const place = await Place.start(t, yaml);
    const { server } = place;
    const { start, facts } = await talk(t, server, { agent: 'clerk', messages: [user('ask me')] });
    const [question] = open(facts);
    await place.reload('agents: {assistant: {}}\n');
    await answer(server, question.interactionId, { choices: ['c1'] });
    const lost = await waitFor('the question', async () => {
      const { interactions } = (await get(server, '/interactions?status=open')).json();
      return interactions.find(({ type }) => type === 'connection_lost');
    });
    assert.match(lost.displayText, /clerk/);
    assert.equal((await runOf(server, start.threadId)).status, 'waiting');
    await place.reload(yaml);
    await answer(server, lost.interactionId, { decision: 'continue' });
    await waitFor('its end', async () => (await runOf(server, start.threadId)).status === 'completed');
  });

  test('runs nothing that was approved meanwhile', async (t) => {
    const place = await Place.start(t, 'agents: {assistant: {}, clerk: {}}\n');
    const { server } = place;
    const { start, facts } = await talk(t, server, { agent: 'clerk', messages: [user('book it')] });
    const [confirm] = open(facts);
    assert.equal(confirm.type, 'confirm');
    await place.reload('agents: {assistant: {}}\n');
    const reader = await openEvents(t, server, start.threadId, { query: '?after=0' });
    await answer(server, confirm.interactionId, { decision: 'approve' });
    const seen = await reader.until(({ type, data }) => type === 'tool.call.result' && data.toolName === 'calendar_write');
    const { error, result } = seen.at(-1).data;
    assert.deepEqual([error, result], ['tool_unavailable', undefined]);
  });
});

test('a button belongs to the agent that made its card, as long as there is one', async (t) => {
  const place = await Place.start(t, 'agents: {assistant: {tools: [user_resolve]}, clerk: {tools: [calendar_read]}}\n');
  const { server } = place;
  const { start } = await talk(t, server, { agent: 'assistant', messages: [user('hello')] });
  await talk(t, server, { threadId: start.threadId, agent: 'clerk', messages: [user('card')] });
  const made = await cardOf(server, start.threadId);
  assertProblem(await press(server, made, made.ids.Who), 403, 'forbidden', 'actionId');
  const runOfPress = async (label) => {
    const { runId, threadId, seq } = await pressed(server, made, made.ids[label]);
    const reader = await openEvents(t, server, threadId, { query: `?after=${seq}` });
    const facts = await reader.run(runId);
    return facts.find(({ type, runId: id }) => type === 'run.started' && id === runId).data.agent;
  };
  assert.equal(await runOfPress('Read'), 'clerk');
  await place.reload('agents: {assistant: {}}\n');
  assertProblem(await press(server, made, made.ids.Who), 403, 'forbidden', 'actionId');
  assert.equal(await runOfPress('Say'), 'assistant', 'words go to whoever is there');
});

describe('MCP servers', () => {
  test('are started, kept, changed and stopped as the file says', async (t) => {
    const place = await Place.make(t, '');
    const agents = 'agents: {assistant: {tools: [files], policy: {"files.*": allow, files.later: deny}}}\n';
    const config = (...tools) => `${agents}mcp: {files: ${place.offering(...tools)}}\n`;
    await place.write(config('pid'));
    place.server = await place.home.start();
    const { server } = place;
    await place.logged('mcp.connected');
    await waitFor('its tools', async () => (await place.toolsOf('assistant')).includes('files.pid'));
    assert.match(await place.logged('mcp.stderr'), /mcp\.stderr.*server=files.*tools are here/);
    const ask = async () => {
      const { facts } = await talk(t, server, 'pid');
      const result = facts.find(({ type }) => type === 'tool.call.result');
      return Number(/pid (\d+)/.exec(result.data.content)[1]);
    };
    const pid = await ask();
    assert.ok(alive(pid));

    assert.match(await place.reload(config('pid')), /mcp_kept=1 mcp_started=0 mcp_stopped=0/);
    assert.equal(await ask(), pid, 'the same process');

    assert.match(await place.reload(config('pid', 'more')), /mcp_kept=0 mcp_started=1 mcp_stopped=1/);
    await waitFor('the other tools', async () => (await place.toolsOf('assistant')).join() === 'files.pid,files.more');
    await waitFor('the end of the old one', () => !alive(pid));
    const second = await ask();
    assert.notEqual(second, pid);

    const log = await place.reload('agents: {assistant: {}}\n');
    assert.match(log, /mcp_stopped=1/);
    await waitFor('the end of the second', () => !alive(second));
    assert.ok(!(await place.toolsOf('assistant')).some((name) => name.startsWith('files.')));
  });

  test('one that cannot be started is told of, and its name may be used all the same', async (t) => {
    const place = await Place.start(t, 'agents: {assistant: {tools: [files, calendar_read]}}\nmcp: {files: {command: ["/nonexistent/program"]}}\n');
    assert.match(await place.logged('mcp.away'), /mcp\.away.*server=files/);
    assert.deepEqual(await place.toolsOf('assistant'), ['calendar_read']);
  });

  test('one that was started by a reload that fails in the end goes again, and may talk meanwhile', async (t) => {
    const place = await Place.start(t, 'agents: {assistant: {starters: [Old]}}\n');
    const chatty = join(place.folder, 'chatty.sh');
    await writeFile(chatty, CHATTY);
    await place.write(`mcp:\n  first: {command: ["/bin/sh", "${chatty}"]}\n  second: {url: "http://127.0.0.1:1/{x}"}\n`);
    const from = place.server.stderr().length;
    assert.match(await place.hangUp('config.reload_failed'), /mcp\.second\.url/);
    const log = await place.logged('last words', from);
    assert.match(log, /mcp\.stderr.*server=first.*last words/);
    const pid = Number(/last words of (\d+)/.exec(log)[1]);
    await waitFor('its end', () => !alive(pid));
    assert.deepEqual((await get(place.server, '/agents')).json().agents[0].starters, ['Old']);
    await place.reload('agents: {assistant: {starters: [Mended]}}\n');
  });

  test('their children end with the server', async (t) => {
    const place = await Place.make(t, '');
    await place.write(`agents: {assistant: {policy: {"files.*": allow}}}\nmcp: {files: ${place.offering('pid')}}\n`);
    place.server = await place.home.start();
    await waitFor('its tools', async () => (await place.toolsOf('assistant')).includes('files.pid'));
    const { facts } = await talk(t, place.server, 'pid');
    const pid = Number(/pid (\d+)/.exec(facts.find(({ type }) => type === 'tool.call.result').data.content)[1]);
    assert.ok(alive(pid));
    await place.home.stop();
    await waitFor('its end', () => !alive(pid));
  });
});

describe('fermata check', () => {
  // A provider that answers with this status; what it was asked.
  async function provider(t, status) {
    const seen = [];
    const server = createServer((request, response) => {
      seen.push({ url: request.url, method: request.method, headers: request.headers });
      response.writeHead(status, { 'content-type': 'application/json' }).end('{"data":[]}');
    });
    await new Promise((done) => { server.listen(0, '127.0.0.1', done); });
    t.after(() => new Promise((done) => { server.close(done); }));
    return { seen, url: `http://127.0.0.1:${server.address().port}` };
  }

  const ROWS = [
    ['openai', 200, 0, /^model +ok: main \(m1\): reached$/m],
    ['openai', 404, 0, /^model +ok: main \(m1\): reached; it offers no list of models$/m],
    ['openai', 401, 1, /^model +FAILED: main \(m1\): .*the key is refused \(HTTP 401\)$/m],
    ['anthropic', 403, 1, /^model +FAILED: main \(m1\): .*the key is refused \(HTTP 403\)$/m],
    ['anthropic', 200, 0, /^model +ok: main \(m1\): reached$/m],
    ['openai', 500, 1, /^model +FAILED: main \(m1\): .*HTTP 500$/m],
  ];
  for (const [kind, status, code, line] of ROWS) {
    test(`${kind} that answers ${status}`, async (t) => {
      const there = await provider(t, status);
      const home = await Home.make(t);
      const file = join(home.data, 'fermata.yaml'), key = join(home.data, 'key.txt');
      await writeFile(key, 'TOPSECRET-0123456789\n', { mode: 0o600 });
      const base = kind === 'openai' ? `${there.url}/v1` : there.url;
      await writeFile(file, `models: {main: {provider: ${kind}, base_url: "${base}", name: m1, api_key_file: "${key}"}}\nagents: {assistant: {model: main}}\n`);
      const run = await home.run(['check'], { FERMATA_CONFIG: file });
      assert.match(run.stdout, line);
      assert.equal(run.code, code, run.stdout + run.stderr);
      assert.match(run.stdout, /^agent +ok: assistant: model m1, 5 tools: calendar_write/m);
      assert.equal(there.seen.length, 1, 'one request, and no second try');
      assert.deepEqual([there.seen[0].method, there.seen[0].url], ['GET', '/v1/models']);
      assert.ok(JSON.stringify(there.seen[0].headers).includes('TOPSECRET'));
      assert.doesNotMatch(run.stdout + run.stderr, /TOPSECRET/);
    });
  }

  test('a model that is not there', async (t) => {
    const home = await Home.make(t);
    const env = { FERMATA_MODEL_PROVIDER: 'openai', FERMATA_MODEL_BASE_URL: 'http://127.0.0.1:1/v1', FERMATA_MODEL_NAME: 'm2' };
    const run = await home.run(['check'], env);
    assert.match(run.stdout, /^model +FAILED: openai \(m2\): http:\/\/127\.0\.0\.1:1\/v1: /m);
    assert.equal(run.code, 1);
  });

  test('MCP servers, also beside a running server', async (t) => {
    const place = await Place.make(t, '');
    await place.write(`mcp:\n  files: ${place.offering('pid', 'more')}\n  gone: {command: ["/nonexistent/program"]}\n`);
    for (const running of [false, true]) {
      if (running) await place.home.start();
      const run = await place.home.run(['check']);
      assert.match(run.stdout, /^mcp +ok: files: 2 tools$/m);
      assert.match(run.stdout, /^mcp +FAILED: gone: .+$/m);
      assert.match(run.stdout, /^agent +ok: assistant: model scripted, 7 tools: .*files\.pid, files\.more$/m);
      assert.equal(run.code, 1);
    }
    await place.write(`mcp: {files: ${place.offering('pid')}}\n`);
    assert.equal((await place.home.run(['check'])).code, 0);
  });
});

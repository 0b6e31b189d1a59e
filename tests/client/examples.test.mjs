// SPDX-License-Identifier: Apache-2.0
//
// docs/CLIENTS.md shows the files of docs/examples as they are, and these files run: each against a server with the
// demo model, to the report at the end of a conversation that asks and needs an approval.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdir, readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { test } from 'node:test';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { runInNewContext } from 'node:vm';

import { Home } from '../api/home.mjs';
import { waitFor } from '../api/talk.mjs';
import { Fermata, within } from './kit.mjs';

const EXAMPLES = new URL('../../docs/examples/', import.meta.url);
const RUN_MS_MAX = 60_000;
const REPORT = /It is in your calendar/;

const here = createRequire(import.meta.url);
const copilotkit = createRequire(new URL('../clients/copilotkit/package.json', import.meta.url));
const file = (from, name) => pathToFileURL(from.resolve(name)).href;
const inCopilotkit = () => createRequire(copilotkit.resolve('@copilotkit/runtime/v2'));

async function serve(t) {
  const home = await Home.make(t);
  return home.start();
}

// An example as its own process: {proc, out()}. `packages` are those that it names.
function run(t, name, args, packages = {}, folder = EXAMPLES) {
  const names = fileURLToPath(new URL('names.mjs', import.meta.url));
  const env = { PATH: process.env.PATH, PACKAGES: JSON.stringify(packages), COPILOTKIT_TELEMETRY_DISABLED: 'true', DO_NOT_TRACK: '1' };
  const proc = spawn(process.execPath, ['--import', names, fileURLToPath(new URL(name, folder)), ...args], { env, stdio: ['pipe', 'pipe', 'pipe'] });
  let out = '', err = '';
  proc.stdout.setEncoding('utf8').on('data', (text) => { out += text; });
  proc.stderr.setEncoding('utf8').on('data', (text) => { err += text; });
  const closed = once(proc, 'close');
  t.after(async () => {
    proc.kill('SIGKILL');
    await closed;
  });
  return { proc, out: () => out, err: () => err, closed };
}

// The same to its end: what it printed.
async function ran(t, name, args, packages) {
  const { out, err, closed } = run(t, name, args, packages);
  const [code] = await within(RUN_MS_MAX, name, closed);
  assert.equal(code, 0, `${out()}${err()}`);
  return out();
}

// One conversation on the server, with one entry in the calendar.
async function assertBooked(server) {
  const client = new Fermata({ url: server.url });
  const { threads: [{ threadId }] } = await client.threads();
  await waitFor('its end', async () => (await client.current(threadId)).status === 'completed');
  const { messages } = await client.history(threadId);
  assert.deepEqual(messages.map(({ role }) => role), ['user', 'assistant', 'clarify', 'tool', 'assistant', 'interaction', 'tool', 'assistant']);
  assert.match(messages.at(-1).content, REPORT);
}

test('the page shows the files as they are', async () => {
  const page = await readFile(new URL('../CLIENTS.md', EXAMPLES), 'utf8');
  const shown = [...page.matchAll(/\(examples\/([\w.-]+)\)[^`]*```\w+\n(.*?)^```$/gms)].map(([, name, text]) => [name, text]);
  assert.deepEqual(shown.map(([name]) => name).sort(), (await readdir(EXAMPLES)).sort());
  for (const [name, text] of shown) assert.equal(text, await readFile(new URL(name, EXAMPLES), 'utf8'), name);
});

test('a WebSocket', async (t) => {
  const server = await serve(t);
  const out = await ran(t, 'websocket.mjs', [server.url]);
  assert.match(out, /\? How long shall the meeting be\?[^]*approve\? calendar_write[^]*-> Event created/);
  assert.match(out, REPORT);
  await assertBooked(server);
});

for (const version of ['ag-ui-client-1', 'ag-ui-client-0']) {
  test(`@ag-ui/client as ${version}`, async (t) => {
    const server = await serve(t);
    const out = await ran(t, 'ag-ui.mjs', [server.url], { '@ag-ui/client': file(here, version) });
    assert.match(out, /\? How long shall the meeting be\?[^]*-> 1 hour[^]*\? Run calendar_write[^]*-> Event created/);
    assert.match(out, REPORT);
    await assertBooked(server);
  });
}

test('CopilotKit\'s runtime', async (t) => {
  const server = await serve(t);
  const { out, err } = run(t, 'copilotkit.mjs', [server.url, '0'], {
    '@ag-ui/client': file(inCopilotkit(), '@ag-ui/client'),
    '@copilotkit/runtime/v2': file(copilotkit, '@copilotkit/runtime/v2'),
    '@copilotkit/runtime/v2/node': file(copilotkit, '@copilotkit/runtime/v2/node'),
  });
  const address = await waitFor(`its address ${err()}`, () => /^http.*$/m.exec(out())?.[0], RUN_MS_MAX);
  const script = await ranThrough(t, `${address}/agent/default/run`);
  assert.match(script, REPORT);
  await assertBooked(server);
});

// The AG-UI script again, pointed at another address.
async function ranThrough(t, url) {
  const { HttpAgent } = await import('ag-ui-client-0');
  const agent = new HttpAgent({ url, threadId: 'through' });
  agent.addMessage({ id: 'u1', role: 'user', content: 'Arrange a review meeting for tomorrow' });
  let out = '', resume;
  do {
    let asked = [];
    await within(RUN_MS_MAX, 'a run', agent.runAgent({ ...(resume && { resume }) }, {
      onTextMessageContentEvent: ({ event }) => { out += event.delta; },
      onRunFinishedEvent: ({ event }) => { asked = event.outcome?.type === 'interrupt' ? event.outcome.interrupts : []; },
    }));
    resume = asked.map(({ id, reason }) => ({ interruptId: id, status: 'resolved', payload: reason === 'tool_call' ? { approved: true } : '1 hour' }));
  } while (resume.length);
  return out;
}

const CLIENT = { '@fermata/client': new URL('../../web/client/dist/index.js', import.meta.url).href };

test('@fermata/client', async (t) => {
  const server = await serve(t);
  const out = await ran(t, 'client.mjs', [server.url], CLIENT);
  assert.match(out, /^clarify: How long[^]*^interaction: Run calendar_write[^]*^tool: Event created/m);
  assert.match(out, REPORT);
  await assertBooked(server);
});

test('@fermata/client, an inbox in the terminal', async (t) => {
  const server = await serve(t);
  const { proc, out, err, closed } = run(t, 'inbox.mjs', [server.url], { ...CLIENT, ws: new URL('../../node_modules/ws/wrapper.mjs', import.meta.url).href }, new URL('../../web/client/examples/', import.meta.url));
  const shown = (what) => waitFor(`${what} ${err()}`, () => what.test(out()), RUN_MS_MAX);
  await shown(/nothing waits for you/);
  await new Fermata({ url: server.url }).run({ text: 'Arrange a review meeting for tomorrow' });
  await shown(/\(1\) How long shall the meeting be\?\n {4}1 30 minutes\n {4}2 1 hour/);
  proc.stdin.write('2\n');
  await shown(/\(1\) Run calendar_write[^]*"title"[^]*y or n\?/);
  proc.stdin.write('y\n');
  await assertBooked(server);
  proc.stdin.end();
  assert.deepEqual(await within(RUN_MS_MAX, 'its end', closed), [0, null], err());
});

// ---- the page ----

// As much of a browser as the page asks for: four elements, fetch with addresses of its own origin, EventSource.
function browser(t, server, html) {
  const elements = Object.fromEntries(['log', 'form', 'text', 'approve'].map((id) => [id, { textContent: '', value: '', hidden: id === 'approve' }]));
  const own = (path) => new URL(path, server.url);
  class EventSource {
    #listeners = new Map();

    constructor(path) {
      const control = new AbortController();
      t.after(() => control.abort());
      void this.#read(path, control.signal);
    }

    addEventListener(type, act) { this.#listeners.set(type, act); }

    async #read(path, signal) {
      const { body } = await fetch(own(path), { signal });
      let rest = '';
      for await (const text of body.pipeThrough(new TextDecoderStream())) {
        const frames = (rest + text).split('\n\n');
        rest = frames.pop();
        for (const frame of frames) {
          const [, type, data] = /event: (.*)\ndata: (.*)/.exec(frame) ?? [];
          this.#listeners.get(type)?.({ data });
        }
      }
    }
  }
  const script = /<script>(.*)<\/script>/s.exec(html)[1];
  runInNewContext(script, { document: { getElementById: (id) => elements[id] }, fetch: (path, init) => fetch(own(path), init), EventSource, Map, Date, JSON });
  return elements;
}

test('a page with EventSource', async (t) => {
  const server = await serve(t);
  const { log, form, text, approve } = browser(t, server, await readFile(new URL('eventsource.html', EXAMPLES), 'utf8'));
  const send = (words) => {
    text.value = words;
    form.onsubmit({ preventDefault() {} });
    assert.equal(text.value, '');
  };
  send('Arrange a review meeting for tomorrow');
  await waitFor('the question', () => /\? How long.*\[1\] 30 minutes \[2\] 1 hour/.test(log.textContent));
  assert.equal(approve.hidden, true);
  send('2');
  await waitFor('the approval', () => !approve.hidden && /\? Run calendar_write/.test(log.textContent));
  approve.onclick();
  await waitFor('the report', () => REPORT.test(log.textContent));
  assert.equal(approve.hidden, true);
  assert.match(log.textContent, /^you: Arrange[^]*^you: 2$[^]*^ {2}-> 1 hour$[^]*^agent: All right[^]*^ {2}-> Event created[^]*^agent: It is in your calendar/m);
});

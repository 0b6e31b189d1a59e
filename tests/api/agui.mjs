// SPDX-License-Identifier: Apache-2.0
//
// POST with an AG-UI stream as the answer, read to its end. What stock clients make of it is in tests/clients.

import assert from 'node:assert/strict';
import { request } from 'node:http';

import { within } from './server.mjs';
import { AGENT } from './talk.mjs';

const STREAM_MS_MAX = 60_000;

// Sends a RunAgentInput: {status, headers, text, events, whole}; `events` is filled as they come, `whole` resolves at the end. A
// refusal has json() as other answers have.
export async function openRun(t, server, input, { path = `${AGENT}/ag-ui/assistant`, headers = {} } = {}) {
  const run = { events: [], text: '' };
  const begun = new Promise((done, failed) => {
    const options = { host: server.host, port: server.port, method: 'POST', path, agent: false,
      headers: { 'content-type': 'application/json', accept: 'text/event-stream', ...headers } };
    const sent = request(options, (response) => {
      run.status = response.statusCode;
      run.headers = response.headers;
      run.json = () => JSON.parse(run.text);
      const stream = response.headers['content-type']?.startsWith('text/event-stream');
      let rest = '';
      run.whole = new Promise((ended, cut) => {
        response.setEncoding('utf8').on('data', (text) => {
          run.text += text;
          const frames = (rest + text).split('\n\n');
          rest = frames.pop();
          if (stream) for (const frame of frames) if (frame.startsWith('data: ')) run.events.push(JSON.parse(frame.slice('data: '.length)));
        }).on('end', () => ended(run)).on('error', cut);
      });
      run.whole.catch(() => {});
      done();
    });
    sent.on('error', failed);
    sent.end(typeof input === 'string' ? input : JSON.stringify(input));
    t.after(() => sent.destroy());
  });
  await within(STREAM_MS_MAX, 'the head of an answer', begun);
  return run;
}

// The same, to its end.
export async function runWhole(t, server, input, options) {
  const run = await openRun(t, server, input, options);
  return within(STREAM_MS_MAX, 'the end of a stream', run.whole);
}

export const typesIn = ({ events }) => events.map(({ type }) => type);
export const lastOf = ({ events }) => events.at(-1);
export const textOf = ({ events }) => events.filter(({ type }) => type === 'TEXT_MESSAGE_CONTENT').map(({ delta }) => delta).join('');

// One whole run under these ids: it begins and ends with them, and nothing follows.
export function assertRun(run, { threadId, runId }) {
  assert.equal(run.status, 200, run.text);
  assert.equal(run.headers['content-type'], 'text/event-stream; charset=utf-8');
  const [first] = run.events, last = lastOf(run);
  assert.deepEqual([first.type, first.threadId, first.runId], ['RUN_STARTED', threadId, runId]);
  assert.ok(last.type === 'RUN_ERROR' || (last.type === 'RUN_FINISHED' && last.threadId === threadId && last.runId === runId), JSON.stringify(last));
  assert.equal(run.events.filter(({ type }) => type === 'RUN_STARTED').length, 1);
  return last;
}

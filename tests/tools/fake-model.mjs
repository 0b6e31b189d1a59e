// SPDX-License-Identifier: Apache-2.0
//
// A model provider on loopback that speaks OpenAI's Chat Completions or Anthropic's Messages, as a client sees them:
// a request that the real API would refuse is refused here with the API's own error, and an answer is streamed with
// as much trouble on the way as a test asks for.
//
//   const model = await startFakeModel({ kind: 'anthropic', key: 'sk-1', answers: [text('Hi.'), calls(['f', { a: 1 }])] });
//   ... FERMATA_MODEL_BASE_URL: model.url ...
//   model.requests[0].body.messages
//   await model.close();
//
// `answers` is a list, one for each good request, or a function (request, n) that gives one; entries of the list may be
// such functions too, and may be asynchronous. Beyond the end of the list a request is answered with 500 and counted
// in `model.unexpected`. A refused request takes nothing from the list and stands in `model.refused`.
//
// An answer: what the model says, spread together from text(), reasoning() and calls(), and how it comes:
//   usage: {input, output}   tokens                       stop: 'length'   a reason of the API's own
//   raw: bytes               the whole stream, instead of what it says
//   piece: 4                 characters of one delta      wire: [10, 11] | 7   borders of the writes, or bytes of each
//   delayMs: 5               before each write            cut: 120         the socket dies after so many bytes
//   ends: 120                the answer ends in good order after so many bytes
//   hang: true | 120         no head at all, or silence after so many bytes of the stream
//   status: 429, error: {type, message}, headers: {'retry-after': '1'}      no stream at all; plain: a body that is no JSON
//   type: 'text/html'        a Content-Type that is not that of a stream
//   breaksOff: {after: 3, type: 'overloaded_error', message: 'Overloaded'}  an error instead of the 4th event

import { createHash } from 'node:crypto';
import { createServer } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';

import { refusalOf } from './fake-model-rules.mjs';

export const text = (words) => ({ text: words });
export const reasoning = (thoughts) => ({ reasoning: thoughts });
// Each call is [name, arguments]; arguments that are a string are sent as they are.
export const calls = (...list) => ({ calls: list });
export const failure = (status, message = 'not now', more = {}) => ({ status, error: { message }, ...more });

// What the fake model signs its thoughts with; a thought that comes back changed is refused.
export const signatureOf = (thought) => `fake-${createHash('sha256').update(thought).digest('base64url')}`;

const sse = (data, event) => `${event ? `event: ${event}\n` : ''}data: ${JSON.stringify(data)}\n\n`;
const argumentsOf = (args) => (typeof args === 'string' ? args : JSON.stringify(args ?? {}));

// In pieces of so many characters, none of them cut in half.
function pieces(words, size) {
  const letters = [...words];
  const list = [];
  for (let i = 0; i < letters.length; i += size) list.push(letters.slice(i, i + size).join(''));
  return list;
}

function openaiEvents(answer, id, body) {
  const { usage = { input: 11, output: 7 }, piece = 4 } = answer;
  const frame = (delta, finish = null) => sse({
    id: `chatcmpl-${id}`, object: 'chat.completion.chunk', created: 1, model: body.model,
    choices: [{ index: 0, delta, finish_reason: finish }],
  });
  const events = [frame({ role: 'assistant', content: '' })];
  for (const delta of pieces(answer.reasoning ?? '', piece)) events.push(frame({ reasoning_content: delta }));
  for (const delta of pieces(answer.text ?? '', piece)) events.push(frame({ content: delta }));
  (answer.calls ?? []).forEach(([name, args], index) => {
    const begin = { index, id: `call_${id}_${index}`, type: 'function', function: { name, arguments: '' } };
    events.push(frame({ tool_calls: [begin] }));
    for (const delta of pieces(argumentsOf(args), piece)) {
      events.push(frame({ tool_calls: [{ index, function: { arguments: delta } }] }));
    }
  });
  events.push(frame({}, answer.stop ?? (answer.calls?.length ? 'tool_calls' : 'stop')));
  if (body.stream_options?.include_usage) {
    const told = { prompt_tokens: usage.input, completion_tokens: usage.output, total_tokens: usage.input + usage.output };
    events.push(sse({ id: `chatcmpl-${id}`, object: 'chat.completion.chunk', created: 1, model: body.model, choices: [], usage: told }));
  }
  return [...events, 'data: [DONE]\n\n'];
}

function anthropicEvents(answer, id, body) {
  const { usage = { input: 11, output: 7 }, piece = 4 } = answer;
  const event = (data) => sse(data, data.type);
  const events = [event({
    type: 'message_start',
    message: {
      id: `msg_${id}`, type: 'message', role: 'assistant', model: body.model, content: [], stop_reason: null,
      stop_sequence: null, usage: { input_tokens: usage.input, output_tokens: 1 },
    },
  })];
  let index = 0;
  const block = (start, deltas) => {
    events.push(event({ type: 'content_block_start', index, content_block: start }));
    if (index === 0) events.push(event({ type: 'ping' }));
    for (const delta of deltas) events.push(event({ type: 'content_block_delta', index, delta }));
    events.push(event({ type: 'content_block_stop', index }));
    index++;
  };
  if (answer.reasoning) {
    block({ type: 'thinking', thinking: '', signature: '' }, [
      ...pieces(answer.reasoning, piece).map((thinking) => ({ type: 'thinking_delta', thinking })),
      { type: 'signature_delta', signature: signatureOf(answer.reasoning) },
    ]);
  }
  if (answer.text) block({ type: 'text', text: '' }, pieces(answer.text, piece).map((delta) => ({ type: 'text_delta', text: delta })));
  (answer.calls ?? []).forEach(([name, args], n) => {
    const deltas = pieces(argumentsOf(args), piece).map((delta) => ({ type: 'input_json_delta', partial_json: delta }));
    block({ type: 'tool_use', id: `toolu_${id}_${n}`, name, input: {} }, deltas);
  });
  const stop = answer.stop ?? (answer.calls?.length ? 'tool_use' : 'end_turn');
  events.push(event({ type: 'message_delta', delta: { stop_reason: stop, stop_sequence: null }, usage: { output_tokens: usage.output } }));
  return [...events, event({ type: 'message_stop' })];
}

const KINDS = {
  openai: {
    base: '/v1', path: '/v1/chat/completions', events: openaiEvents,
    error: ({ type = 'server_error', message, code = null }) => ({ error: { message, type, param: null, code } }),
    breakOff: ({ type = 'server_error', message }) => sse({ error: { message, type, param: null, code: null } }),
  },
  anthropic: {
    base: '', path: '/v1/messages', events: anthropicEvents,
    error: ({ type = 'api_error', message }) => ({ type: 'error', error: { type, message } }),
    breakOff: ({ type = 'overloaded_error', message }) => sse({ type: 'error', error: { type, message } }, 'error'),
  },
};

// The bytes of an answer's stream; what they are cut into is another matter.
export function streamOf(kind, answer, id = '1', body = { model: 'm', stream_options: { include_usage: true } }) {
  if (answer.raw !== undefined) return Buffer.from(answer.raw);
  const events = KINDS[kind].events(answer, id, body);
  if (answer.breaksOff) events.splice(answer.breaksOff.after, Infinity, KINDS[kind].breakOff(answer.breaksOff));
  return Buffer.from(events.join(''));
}

// Where one write ends and the next begins.
function writesOf(bytes, wire) {
  const borders = Array.isArray(wire) ? wire : [];
  if (typeof wire === 'number') for (let at = wire; at < bytes.length; at += wire) borders.push(at);
  const ends = [...borders.filter((at) => at > 0 && at < bytes.length), bytes.length];
  return ends.map((end, i) => bytes.subarray(i ? ends[i - 1] : 0, end));
}

async function sendStream(response, bytes, answer, closing) {
  const hang = typeof answer.hang === 'number' ? answer.hang : bytes.length;
  const end = Math.min(answer.cut ?? bytes.length, answer.ends ?? bytes.length, hang);
  response.writeHead(200, { 'content-type': answer.type ?? 'text/event-stream; charset=utf-8', 'cache-control': 'no-cache' });
  response.flushHeaders();
  for (const write of writesOf(bytes.subarray(0, end), answer.wire)) {
    if (answer.delayMs) await pause(answer.delayMs, undefined, { signal: closing });
    if (response.destroyed) return;
    await new Promise((done) => { response.write(write, done); });
  }
  if (answer.cut !== undefined) response.destroy();
  else if (answer.hang === undefined) response.end();
}

function sendError(response, kind, status, error, headers = {}) {
  response.writeHead(status, { 'content-type': 'application/json', ...headers });
  response.end(JSON.stringify(KINDS[kind].error(error)));
}

async function readBody(request) {
  const parts = [];
  for await (const part of request) parts.push(part);
  return Buffer.concat(parts).toString('utf8');
}

export async function startFakeModel({ kind, answers, key = 'sk-test', t }) {
  const closing = new AbortController();
  const model = { requests: [], refused: [], unexpected: 0, answered: 0 };

  async function choose(request) {
    const n = model.answered++;
    let answer = typeof answers === 'function' ? answers : answers[n];
    if (typeof answer === 'function') answer = await answer(request, n);
    if (answer) return answer;
    model.unexpected++;
    return failure(500, 'the test has no answer for this request');
  }

  async function serve(incoming, response) {
    const request = { method: incoming.method, path: incoming.url, headers: incoming.headers, at: Date.now() };
    request.text = await readBody(incoming);
    const refusal = refusalOf(kind, KINDS[kind].path, key, request, signatureOf);
    model.requests.push(request);
    if (refusal) {
      model.refused.push(refusal.error.message);
      sendError(response, kind, refusal.status, refusal.error);
      return;
    }
    const answer = await choose(request);
    if (answer.plain !== undefined) {
      response.writeHead(answer.status, { 'content-type': 'text/html' });
      response.end(answer.plain);
    } else if (answer.status) sendError(response, kind, answer.status, answer.error ?? { message: 'no' }, answer.headers);
    else if (answer.hang !== true) {
      const bytes = streamOf(kind, answer, String(model.requests.length), request.body);
      await sendStream(response, bytes, answer, closing.signal);
    }
  }

  const server = createServer((incoming, response) => {
    serve(incoming, response).catch((error) => {
      if (error.name !== 'AbortError') response.destroy(error); // the server is closing, or the client has left
    });
  });
  server.keepAliveTimeout = 60_000; // a connection that closes just as it is used again is another test
  await new Promise((done) => { server.listen(0, '127.0.0.1', done); });
  model.url = `http://127.0.0.1:${server.address().port}${KINDS[kind].base}`;
  model.close = async () => {
    closing.abort();
    server.closeAllConnections();
    await new Promise((done) => { server.close(done); });
  };
  t?.after(model.close);
  return model;
}

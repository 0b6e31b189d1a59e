#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
//
// The peer of the rows about runs: what a plain Node program does for the same conversation when it keeps nothing. No
// database, no queue, no checks, no identities: it takes a message, answers 202, and writes the frames that our server
// writes, text in pieces included, to whoever reads the thread's events. A thread is forgotten with its reader.
//
//     peer_node.mjs PIECES     how many deltas an answer has

import http from 'node:http';
import { randomUUID } from 'node:crypto';

const pieces = Array.from({ length: Number(process.argv[2] ?? 1) }, () => 'word');
const threads = new Map(); // id -> {stream, seq, waiting: [run ids]}

const thread = (id) => {
  let found = threads.get(id);
  if (!found) threads.set(id, found = { id, stream: null, seq: 0, waiting: [] });
  return found;
};

function fact(to, runId, type, data) {
  const seq = ++to.seq;
  const event = { type, threadId: to.id, runId, seq, ts: new Date().toISOString(), data };
  to.stream.write(`id: ${seq}\nevent: ${type}\ndata: ${JSON.stringify(event)}\n\n`);
}

function preview(to, runId, type, data) {
  const event = { type, threadId: to.id, runId, ts: new Date().toISOString(), data };
  to.stream.write(`event: ${type}\ndata: ${JSON.stringify(event)}\n\n`);
}

function answer(to, runId) {
  const messageId = randomUUID();
  to.stream.cork(); // frames of one answer in as few writes as Node can
  fact(to, runId, 'message.added', { message: { id: randomUUID(), role: 'user', content: 'Hello there' } });
  fact(to, runId, 'run.started', { taskId: randomUUID(), agent: 'assistant' });
  fact(to, runId, 'step.start', { step: 'chat' });
  preview(to, runId, 'text.message.start', { messageId, role: 'assistant' });
  let offset = 0;
  for (const delta of pieces) {
    preview(to, runId, 'text.delta', { messageId, delta, offset });
    offset += delta.length;
  }
  fact(to, runId, 'text.message.end', { messageId, content: pieces.join('') });
  fact(to, runId, 'step.finish', { step: 'chat' });
  fact(to, runId, 'run.finished', { outcome: 'completed', usage: { inputTokens: 3, outputTokens: pieces.length } });
  to.stream.uncork();
}

function post(request, response) {
  let body = '';
  request.setEncoding('utf8').on('data', (text) => { body += text; }).on('end', () => {
    const { threadId } = JSON.parse(body);
    const to = thread(threadId);
    const runId = randomUUID();
    response.writeHead(202, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ threadId, runId, seq: to.seq }));
    if (to.stream) answer(to, runId);
    else to.waiting.push(runId);
  });
}

function events(id, response) {
  const to = thread(id);
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  to.stream = response;
  response.on('close', () => threads.delete(id));
  for (const runId of to.waiting.splice(0)) answer(to, runId);
}

const server = http.createServer((request, response) => {
  const found = /^\/api\/v1\/agent\/runs\/([^/]+)\/events/.exec(request.url);
  if (request.method === 'POST') post(request, response);
  else if (found) events(found[1], response);
  else response.writeHead(200).end();
});
server.listen(0, '127.0.0.1', () => console.log(`listening on 127.0.0.1:${server.address().port}`));
process.on('SIGTERM', () => process.exit(0));

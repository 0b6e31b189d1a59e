#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
//
// The peer of the rows about runs: what a plain Node program does for the same conversation when it keeps nothing. No
// database, no queue, no checks, no identities: it takes a message, answers 202, and writes the frames that our server
// writes, text in pieces included, to whoever reads the thread's events. A thread is forgotten with its reader.
//
//     peer_node.mjs PIECES [ask]     how many deltas an answer has; whether a question comes before it
//
// A run that asks is an entry of a map until its answer comes. AG-UI is spoken too: the answer to one POST is the stream of
// one leg (peer_agui.mjs).

import { randomUUID } from 'node:crypto';

import { args, isAgui, json, Leg, questionOf, serve } from './peer_agui.mjs';

const pieces = Array.from({ length: Number(process.argv[2] ?? 1) }, () => 'word');
const asks = process.argv[3] === 'ask';
const threads = new Map(); // id -> {stream, seq, waiting: [run ids]}
const open = new Map(); // interaction id -> {to, runId, toolCallId, interaction}

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

const step = (stepName, index) => ({ stepName, index, total: 3 });
const usage = { inputTokens: 3, outputTokens: pieces.length, cost: 0, currency: 'USD' };

function begin(to, runId) {
  to.stream.cork(); // frames of one answer in as few writes as Node can
  const createdAt = new Date().toISOString();
  fact(to, runId, 'message.added', { message: { id: randomUUID(), role: 'user', content: 'Hello there', createdAt } });
  fact(to, runId, 'run.started', { taskId: randomUUID(), leg: 1, resumed: false, agent: 'assistant', model: 'node' });
  fact(to, runId, 'step.start', step('intent', 0));
  if (asks) ask(to, runId);
  else say(to, runId);
  to.stream.uncork();
}

function say(to, runId) {
  const messageId = randomUUID();
  preview(to, runId, 'text.message.start', { messageId, role: 'assistant' });
  let offset = 0;
  for (const delta of pieces) {
    preview(to, runId, 'text.delta', { messageId, delta, offset });
    offset += delta.length;
  }
  const content = pieces.join('');
  fact(to, runId, 'step.finish', step('intent', 0));
  fact(to, runId, 'step.start', step('report', 2));
  fact(to, runId, 'text.message.end', { messageId, content, workerAgentOutput: { answer: content }, ...usage });
  fact(to, runId, 'step.finish', step('report', 2));
  fact(to, runId, 'run.finished', { outcome: 'completed', usage });
}

function ask(to, runId) {
  const parentMessageId = randomUUID();
  const toolCallId = randomUUID();
  const interactionId = randomUUID();
  const call = { toolCallId, toolName: 'ask_user', parentMessageId, stage: 'intent' };
  const interaction = questionOf({ interactionId, threadId: to.id, runId, toolCallId });
  open.set(interactionId, { to, runId, toolCallId, interaction });
  preview(to, runId, 'tool.call.start', call);
  preview(to, runId, 'tool.call.args', { toolCallId, delta: JSON.stringify(args) });
  fact(to, runId, 'text.message.end', { messageId: parentMessageId, content: '', workerAgentOutput: { answer: '' }, ...usage });
  fact(to, runId, 'tool.call', { ...call, args });
  fact(to, runId, 'interaction.request', interaction);
  fact(to, runId, 'run.finished', { outcome: 'interrupted', interactions: [interactionId], usage });
}

function resume({ to, runId, toolCallId, interaction }, answer) {
  const content = answer.answer;
  to.stream.cork();
  fact(to, runId, 'interaction.resolved', {
    interactionId: interaction.interactionId, status: 'resolved', answer, text: content,
    answeredBy: 'local', via: 'api', at: new Date().toISOString(),
  });
  fact(to, runId, 'run.started', { taskId: randomUUID(), leg: 2, resumed: true, agent: 'assistant', model: 'node' });
  fact(to, runId, 'tool.call.result', {
    messageId: randomUUID(), toolCallId, callId: toolCallId, toolName: 'ask_user', args, result: content, content,
    toolAgentOutput: { result_summary: content },
  });
  say(to, runId);
  to.stream.uncork();
}

// ---- AG-UI: a leg is the answer to a POST ----

const questions = new Map(); // interrupt id -> {threadId, toolCallId}

function sayAgui(leg) {
  const messageId = randomUUID();
  leg.textStart(messageId);
  for (const delta of pieces) leg.text(messageId, delta);
  leg.textEnd(messageId);
  leg.succeed('node', pieces.length);
}

function askAgui(leg, { threadId }) {
  const toolCallId = randomUUID();
  const id = randomUUID();
  questions.set(id, { threadId, toolCallId });
  leg.call(toolCallId, randomUUID());
  leg.interrupt(id, toolCallId, 'node');
}

function postAgui(request, response) {
  json(request, (input) => {
    const [resumed] = input.resume ?? [];
    const question = resumed && questions.get(resumed.interruptId);
    if (resumed && question?.threadId !== input.threadId) {
      response.writeHead(400).end();
      return;
    }
    response.cork();
    const leg = new Leg(response, input);
    if (resumed) {
      questions.delete(resumed.interruptId);
      leg.result(question.toolCallId, resumed.payload);
      sayAgui(leg);
    } else if (asks) {
      askAgui(leg, input);
    } else {
      sayAgui(leg);
    }
  });
}

// ---- requests ----

function post(request, response) {
  json(request, ({ threadId }) => {
    const to = thread(threadId);
    const runId = randomUUID();
    response.writeHead(202, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ threadId, runId, seq: to.seq }));
    if (to.stream) begin(to, runId);
    else to.waiting.push(runId);
  });
}

function answer(id, request, response) {
  json(request, (body) => {
    const found = open.get(id);
    open.delete(id);
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ ...found.interaction, status: 'resolved', answer: body }));
    resume(found, body);
  });
}

function events(id, response) {
  const to = thread(id);
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  to.stream = response;
  response.on('close', () => threads.delete(id));
  for (const runId of to.waiting.splice(0)) begin(to, runId);
}

serve((request, response) => {
  const found = /^\/api\/v1\/agent\/runs\/([^/]+)\/events/.exec(request.url);
  const answered = /^\/api\/v1\/agent\/interactions\/([^/]+)\/answer$/.exec(request.url);
  if (isAgui(request)) postAgui(request, response);
  else if (answered) answer(answered[1], request, response);
  else if (request.method === 'POST') post(request, response);
  else if (found) events(found[1], response);
  else response.writeHead(200).end();
});

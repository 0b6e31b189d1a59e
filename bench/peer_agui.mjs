// SPDX-License-Identifier: Apache-2.0
//
// AG-UI as the peers speak it: the answer to one POST is the stream of one leg, with the events that ours has. What a peer does
// between them is its own. A question comes without a card.

import http from 'node:http';
import { randomUUID } from 'node:crypto';

export const args = { question: 'Which room?', choices: ['Blue', 'Green'] };

/** What our server tells of a question, card apart. */
export const questionOf = ({ interactionId, threadId, runId, toolCallId }) => ({
  version: 1, interactionId, type: 'ask_user', status: 'open', threadId, runId, toolCallId,
  displayText: args.question, question: args.question,
  choices: args.choices.map((label, i) => ({ id: `c${i + 1}`, label })), allowFreeform: true,
  resumeNode: 'execute', resumePhase: 'executing', resumeStep: 0, requester: 'local',
  openedAt: new Date().toISOString(), metadata: {},
});

/** The stream of a leg, from its first event to its last. */
export class Leg {
  #response;
  #ids;

  constructor(response, { threadId, runId }) {
    this.#response = response;
    this.#ids = { threadId, runId };
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    this.#event('RUN_STARTED', { ...this.#ids, protocolVersion: '1.0' });
    this.#event('STATE_SNAPSHOT', { snapshot: {} });
    this.#live('STEP_STARTED', { stepName: 'intent' });
  }

  #event(type, members) {
    this.#response.write(`data: ${JSON.stringify({ type, ...members })}\n\n`);
  }

  #live(type, members) {
    this.#event(type, { timestamp: Date.now(), ...members });
  }

  textStart(messageId) {
    this.#live('TEXT_MESSAGE_START', { messageId, role: 'assistant' });
  }

  text(messageId, delta) {
    this.#live('TEXT_MESSAGE_CONTENT', { messageId, delta });
  }

  textEnd(messageId) {
    this.#live('STEP_FINISHED', { stepName: 'intent' });
    this.#live('STEP_STARTED', { stepName: 'report' });
    this.#live('TEXT_MESSAGE_END', { messageId });
    this.#live('STEP_FINISHED', { stepName: 'report' });
  }

  call(toolCallId, parentMessageId) {
    this.#live('TOOL_CALL_START', { toolCallId, toolCallName: 'ask_user', parentMessageId });
    this.#live('TOOL_CALL_ARGS', { toolCallId, delta: JSON.stringify(args) });
    this.#live('TOOL_CALL_END', { toolCallId });
  }

  result(toolCallId, content) {
    this.#live('TOOL_CALL_RESULT', {
      messageId: randomUUID(), toolCallId, content, role: 'tool',
      metadata: { 'fermata.result': { callId: toolCallId, toolName: 'ask_user', args, result: content, summary: content } },
    });
  }

  #finish(outcome, model, outputTokens) {
    this.#event('RUN_FINISHED', { ...this.#ids, outcome, usage: [{ model, inputTokens: 3, outputTokens, totalTokens: 3 + outputTokens }] });
    this.#response.end();
  }

  succeed(model, outputTokens) {
    this.#finish({ type: 'success' }, model, outputTokens);
  }

  interrupt(id, toolCallId, model) {
    const value = questionOf({ interactionId: id, ...this.#ids, toolCallId });
    this.#live('CUSTOM', { name: 'fermata.interaction.request', value });
    this.#live('STEP_FINISHED', { stepName: 'intent' });
    const interrupt = {
      id, reason: 'input_required', message: args.question, toolCallId,
      responseSchema: { type: 'string', minLength: 1, examples: args.choices }, metadata: { 'fermata.interaction': value },
    };
    this.#finish({ type: 'interrupt', interrupts: [interrupt] }, model, 1);
  }
}

export const isAgui = (request) => request.url.startsWith('/api/v1/agent/ag-ui/');

/** A request's body. */
export function json(request, then) {
  let body = '';
  request.setEncoding('utf8').on('data', (text) => { body += text; }).on('end', () => then(JSON.parse(body)));
}

/** Serves until it is told to end; bench/kit.mjs reads the line. */
export function serve(handler) {
  const server = http.createServer(handler);
  server.listen(0, '127.0.0.1', () => console.log(`listening on 127.0.0.1:${server.address().port}`));
  process.on('SIGTERM', () => process.exit(0));
}

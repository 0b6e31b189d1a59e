#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
//
// The peer of the rows about AG-UI that keeps its runs, too: LangGraph.js with its SQLite checkpointer, both as npm has them, with
// their defaults (WAL with synchronous=NORMAL: a commit does not wait for the disk). The graph is the usual one: a node that is
// the model, a node that is the tool, which asks by interrupt() and is resumed by a Command. The model is a function that gives
// its tokens to the stream of the graph by its writer, which costs less than a chat model of LangChain's.
//
//     peer.mjs PIECES FOLDER [ask]     how many deltas an answer has, where the database is, whether a question comes before it

import { randomUUID } from 'node:crypto';
import path from 'node:path';

import { AIMessage, HumanMessage, ToolMessage } from '@langchain/core/messages';
import { Command, END, interrupt, MessagesAnnotation, START, StateGraph } from '@langchain/langgraph';
import { SqliteSaver } from '@langchain/langgraph-checkpoint-sqlite';

import { args, isAgui, json, Leg, serve } from '../peer_agui.mjs';

const [count, folder, asks] = process.argv.slice(2);
const pieces = Array.from({ length: Number(count) }, () => 'word');

// ---- the graph ----

function model({ messages }, { writer }) {
  const id = randomUUID();
  if (asks && ToolMessage.isInstance(messages.at(-1)) === false) {
    const call = { id: randomUUID(), name: 'ask_user', args };
    writer({ type: 'call', messageId: id, call });
    return { messages: [new AIMessage({ id, content: '', tool_calls: [call] })] };
  }
  for (const delta of pieces) writer({ type: 'text', messageId: id, delta });
  return { messages: [new AIMessage({ id, content: pieces.join('') })] };
}

function ask({ messages }, { writer }) {
  const [call] = messages.at(-1).tool_calls;
  const content = interrupt({ toolCallId: call.id, ...call.args });
  writer({ type: 'result', toolCallId: call.id, content });
  return { messages: [new ToolMessage({ tool_call_id: call.id, content })] };
}

const graph = new StateGraph(MessagesAnnotation)
  .addNode('model', model)
  .addNode('ask', ask)
  .addEdge(START, 'model')
  .addConditionalEdges('model', ({ messages }) => (messages.at(-1).tool_calls.length ? 'ask' : END), ['ask', END])
  .addEdge('ask', 'model')
  .compile({ checkpointer: SqliteSaver.fromConnString(path.join(folder, 'checkpoints.db')) });

// ---- a leg ----

const inputOf = ({ messages, resume }) => (resume
  ? new Command({ resume: Object.fromEntries(resume.map(({ interruptId, payload }) => [interruptId, payload])) })
  : { messages: messages.map(({ id, content }) => new HumanMessage({ id, content })) });

async function run(input, leg) {
  let talking = null, waits = null;
  const config = { configurable: { thread_id: input.threadId }, streamMode: ['custom', 'updates'] };
  for await (const [mode, chunk] of await graph.stream(inputOf(input), config)) {
    if (mode === 'updates') {
      if (chunk.__interrupt__) [waits] = chunk.__interrupt__;
    } else if (chunk.type === 'text') {
      if (!talking) leg.textStart(chunk.messageId);
      talking = chunk.messageId;
      leg.text(talking, chunk.delta);
    } else if (chunk.type === 'call') {
      leg.call(chunk.call.id, chunk.messageId);
    } else {
      leg.result(chunk.toolCallId, chunk.content);
    }
  }
  if (talking) leg.textEnd(talking);
  if (waits) leg.interrupt(waits.id, waits.value.toolCallId, 'langgraph');
  else leg.succeed('langgraph', pieces.length);
}

serve((request, response) => {
  if (!isAgui(request)) {
    response.writeHead(200).end();
    return;
  }
  json(request, (input) => run(input, new Leg(response, input)).catch((error) => {
    console.error(error);
    response.destroy();
  }));
});

// SPDX-License-Identifier: Apache-2.0
//
// A conversation as a page shows it, folded from history and events. Pure: every function gives a new state and leaves
// the old one alone; parts that did not change are the same objects.
//
//     messages     what is finished: the rows of history, in its order
//     previews     what is growing, shown behind them; it becomes a message, or is taken back
//
// Live equals history: a message made from events is the row that history has, whatever cuts there were between. For
// that, metadata that only the store knows is left out of rows, and the arguments of a call are written in one way.
//
//     history(page), seq 24        loaded = 24: messages and interactions are complete up to fact 24
//     events from the newest run   facts 19..24 tell only about the run (step, plan, queue); messages have them already
//     facts 25...                  tell everything; previews show the next one growing
//
// Invariants:
//  1. A fact is folded in once: one that is not newer than `seq` changes nothing. If facts are missing, `stale` says so.
//  2. Previews are void when their leg ends, and with every new connection.
//  3. `interactions` are those that are open, oldest first. Each has a row of its id, if that is among what is loaded.
//
// To add an event: its row in wire.ts, and a case in `tellRun`, `tellMessages` or `applyPreview`.

import type {
  Code, Decision, FactEvent, Facts, History, Interaction, Message, Metadata, Plan, PreviewEvent, Progress, Queued, RunStatus, Stage,
  ThreadEvent, ToolCall, UiSchema, Usage,
} from './wire.js';

export interface RunState {
  runId: string;
  taskId: string;
  status: RunStatus;
  agent: string;
  model: string;
  step?: Stage; // that is open
  stages: Stage[]; // that have begun, in order
  failed?: Stage; // the one in which it failed or was cancelled
  usage?: Usage; // as of the end of its last leg
  pendingToolCallIds?: string[]; // calls of front-end tools that it waits for
  code?: Code; // why it was exhausted
  error?: Facts['run.error'];
}

export interface ThreadState {
  threadId: string;
  seq: number; // newest fact folded in: the cursor of a stream that goes on from here
  loaded: number; // messages are complete up to this fact
  messages: Message[];
  previews: Message[];
  interactions: Interaction[];
  queue: Queued[];
  run?: RunState; // the newest that has started
  plan?: Plan; // of that run
  progress: { [toolCallId: string]: Progress };
  before?: number; // older messages: `history(threadId, {before})`, then applyOlder
  connected: boolean; // events come in
  stale: boolean; // something was missed: load the history anew
}

export const emptyState = (threadId: string): ThreadState => ({
  threadId, seq: 0, loaded: 0, messages: [], previews: [], interactions: [], queue: [], progress: {}, connected: false, stale: false,
});

// ---- rows ----

// Without what is not set.
function set<T extends object>(of: T): T {
  for (const key of Object.keys(of) as (keyof T)[]) if (of[key] === undefined) delete of[key];
  return of;
}
const row = (message: Message): Message => set({ ...message, metadata: set({ ...message.metadata }) });

const callOf = (id: string, name: string, args: string): ToolCall => ({ id, type: 'function', function: { name, arguments: args } });

const written = (args: unknown): string => (typeof args === 'string' ? args : JSON.stringify(args));
function rewritten(args: string): string {
  try {
    return written(JSON.parse(args));
  } catch {
    return args;
  }
}

// A row of history as events would have made it.
function rowOf(stored: Message): Message {
  const { storage_bucket, storage_path, storage_missing, summary_version, ...metadata } = stored.metadata;
  if (stored.role === 'tool') delete metadata.stage;
  return row({ ...stored, metadata, toolCalls: stored.toolCalls?.map((call) => callOf(call.id, call.function.name, rewritten(call.function.arguments))) });
}

const CLARIFY = { open: 'pending', resolved: 'answered', canceled: 'canceled', expired: 'expired', superseded: 'canceled' } as const;

// The row of an interaction that has been opened.
function askedRow({ interactionId, type, displayText, toolCallId, runId, pendingTool, ui, uiRef, choices = [], allowFreeform = true, openedAt }: Interaction): Message {
  const question = type === 'ask_user';
  return {
    id: interactionId, role: question ? 'clarify' : 'interaction', content: displayText, uiSchema: ui, uiRef, createdAt: openedAt,
    metadata: {
      requestId: interactionId, tool_call_id: toolCallId, run_id: runId,
      ...(question ? { choices, allowFreeform, status: 'pending' } : { type, status: 'open', tool_name: pendingTool?.toolName }),
    },
  };
}

// The same once it is settled. After an edit the stored card shows what was changed.
function settledRow(asked: Message, threadId: string, { status, answer, text, answeredBy, via, at }: Facts['interaction.resolved']): Message {
  const question = asked.role === 'clarify';
  const decision = (answer as Decision | undefined)?.decision;
  return {
    ...asked, uiRef: decision === 'edit' ? `/api/v1/agent/threads/${threadId}/messages/${asked.id}/ui` : asked.uiRef,
    metadata: {
      ...asked.metadata, status: question ? CLARIFY[status] : status, decision, answer: (question ? status === 'resolved' : decision) ? text : undefined,
      answered_by: answeredBy, via, answered_at: at,
    },
  };
}

const reasoningId = (messageId: string): string => `${messageId}-reasoning`;

// ---- lists of what has an id ----

const at = <T extends { id: string }>(list: T[], id: string): T | undefined => list.find((one) => one.id === id);

// With this one in place of the one that has its id, else behind the others.
const put = <T extends { id: string }>(list: T[], item: T): T[] =>
  (at(list, item.id) ? list.map((one) => (one.id === item.id ? item : one)) : [...list, item]);

const change = (state: ThreadState, id: string, how: (message: Message) => Message): ThreadState => {
  const message = at(state.messages, id);
  return message ? { ...state, messages: put(state.messages, row(how(message))) } : state;
};

const putCall = (message: Message, call: ToolCall): Message => ({ ...message, toolCalls: put(message.toolCalls ?? [], call) });

// ---- previews ----

function applyPreview(state: ThreadState, { type, data, ts, runId }: PreviewEvent): ThreadState {
  const grown = (message: Message): ThreadState => // unless it is finished already
    (at(state.messages, message.id) ? state : { ...state, previews: put(state.previews, message) });
  const preview = (id: string, role: 'assistant' | 'reasoning' = 'assistant'): Message =>
    at(state.previews, id) ?? { id, role, content: '', metadata: { run_id: runId }, createdAt: ts };
  switch (type) {
  case 'text.message.start':
    return grown({ ...preview(data.messageId), content: '' });
  case 'text.delta':
  case 'reasoning.delta': {
    const message = type === 'text.delta' ? preview(data.messageId) : preview(reasoningId(data.messageId), 'reasoning');
    if (data.offset > message.content.length) return state; // its beginning was not seen
    return grown({ ...message, content: (message.content as string).slice(0, data.offset) + data.delta });
  }
  case 'message.discard':
    return { ...state, previews: state.previews.filter(({ id }) => id !== data.messageId && id !== reasoningId(data.messageId)) };
  case 'tool.call.start':
    return grown(putCall(preview(data.parentMessageId), callOf(data.toolCallId, data.toolName, '')));
  case 'tool.call.args': {
    const message = state.previews.find(({ toolCalls = [] }) => at(toolCalls, data.toolCallId));
    if (!message) return state;
    const call = at(message.toolCalls!, data.toolCallId)!.function;
    return grown(putCall(message, callOf(data.toolCallId, call.name, call.arguments + data.delta)));
  }
  case 'tool.progress': {
    const { toolCallId, ...progress } = data;
    return { ...state, progress: { ...state.progress, [toolCallId]: progress } };
  }
  default:
    return state;
  }
}

// ---- facts ----

// What a fact says about runs: which is current, its step and plan, and what waits behind it.
function tellRun(state: ThreadState, { type, data, runId }: FactEvent): ThreadState {
  const waiting = state.queue.find((queued) => queued.runId === runId);
  const queue = waiting ? state.queue.filter((queued) => queued !== waiting) : state.queue;
  const run = state.run?.runId === runId ? state.run : undefined;
  const told = (more: Partial<RunState>): ThreadState => (run ? { ...state, run: set({ ...run, ...more }) } : { ...state, queue });
  switch (type) {
  case 'run.queued': {
    const { message, ...rest } = data;
    return { ...state, queue: [...queue, { ...rest, runId, messages: [...(waiting?.messages ?? []), rowOf(message)] }] };
  }
  case 'run.started': {
    const { taskId, agent, model } = data;
    return set({ ...state, queue, plan: run && state.plan, run: set<RunState>({ stages: [], ...run, runId, taskId, agent, model, status: 'running', pendingToolCallIds: undefined }) });
  }
  case 'step.start':
    return told({ step: data.stepName, stages: [...(run?.stages ?? []).filter((stage) => stage !== data.stepName), data.stepName] });
  case 'step.finish':
    return told({ step: undefined });
  case 'plan.updated':
    return { ...state, plan: data };
  case 'run.finished': {
    const { outcome, usage, code, pendingToolCallIds } = data;
    return told(outcome === 'interrupted' ? { status: 'waiting', usage, pendingToolCallIds } : { status: outcome, usage, code, step: undefined, failed: outcome === 'cancelled' ? run?.stages.at(-1) : undefined });
  }
  case 'run.error':
    return told({ status: 'failed', error: data, step: undefined, failed: run?.stages.at(-1) });
  default:
    return state;
  }
}

// What a fact adds to the messages and to what is open.
function tellMessages(state: ThreadState, { type, data, runId, ts }: FactEvent): ThreadState {
  const run = state.run?.runId === runId ? state.run : undefined;
  const metadata: Metadata = { run_id: runId, task_id: run?.taskId };
  const added = (message: Message): ThreadState => ({
    ...state, messages: put(state.messages, row(message)), previews: state.previews.filter(({ id }) => id !== message.id),
  });
  switch (type) {
  case 'message.added':
    return added(rowOf(data.message));
  case 'reasoning.end':
    return added({ id: reasoningId(data.messageId), role: 'reasoning', content: data.content, metadata: { ...metadata, stage: run?.step }, createdAt: ts });
  case 'text.message.end': {
    const { messageId, content, ui, uiRef, stopped, inputTokens, outputTokens, cost, currency } = data;
    return added({
      id: messageId, role: 'assistant', content, uiSchema: ui, uiRef, metadata: { ...metadata, stage: run?.step, stopped }, createdAt: ts,
      usage: { inputTokens, outputTokens, cost, currency },
    });
  }
  case 'tool.call':
    return change(state, data.parentMessageId, (message) => putCall(message, callOf(data.toolCallId, data.toolName, written(data.args))));
  case 'tool.call.result': {
    const { messageId, toolCallId, toolName, args, error, content, ui, uiRef, attachments } = data;
    return {
      ...added({
        id: messageId, role: 'tool', content, uiSchema: ui, uiRef, attachments, toolCallId, toolName, args, error, createdAt: ts,
        metadata: { ...metadata, tool_call_id: toolCallId, tool_name: toolName },
      }),
      progress: set({ ...state.progress, [toolCallId]: undefined! }),
    };
  }
  case 'interaction.request': {
    // A confirm asked anew about the same call: what was approved before has lapsed.
    const lapsed = data.type === 'confirm' && state.messages.find(({ metadata: { type: of, tool_call_id, status } }) =>
      of === 'confirm' && tool_call_id === data.toolCallId && status === 'resolved');
    const now = added(askedRow(data));
    const told = lapsed ? change(now, lapsed.id, (row) => ({ ...row, metadata: { ...row.metadata, status: 'superseded' } })) : now;
    return { ...told, interactions: [...state.interactions, data] };
  }
  case 'interaction.resolved':
    return {
      ...change(state, data.interactionId, (asked) => settledRow(asked, state.threadId, data)),
      interactions: state.interactions.filter(({ interactionId }) => interactionId !== data.interactionId),
    };
  case 'run.finished':
  case 'run.error':
    return forget(state);
  default:
    return state;
  }
}

const forget = (state: ThreadState): ThreadState => ({ ...state, previews: [], progress: {} });

// ---- the ways in ----

export function applyEvent(state: ThreadState, event: ThreadEvent): ThreadState {
  if (event.type === 'connection.lost') return { ...state, connected: false };
  if (event.type === 'connection.open') return { ...forget(state), connected: true };
  if (event.type === 'reset') return { ...forget(state), seq: event.seq, stale: true };
  if (!('seq' in event)) return state.seq < state.loaded ? state : applyPreview(state, event);
  if (event.seq <= state.seq) return state;
  const stale = state.stale || event.seq > Math.max(state.seq, state.loaded) + 1;
  const told = tellRun({ ...state, seq: event.seq, stale }, event);
  return event.seq > state.loaded ? tellMessages(told, event) : told;
}

// The newest page of history, in place of all that was there. A stream without a cursor then tells the rest.
export function applyHistory({ threadId, connected }: ThreadState, page: History): ThreadState {
  return set({ ...emptyState(threadId), connected, loaded: page.seq, messages: page.messages.map(rowOf), interactions: page.openInteractions, before: page.before });
}

// An older page, in front.
export function applyOlder(state: ThreadState, page: History): ThreadState {
  const known = new Set(state.messages.map(({ id }) => id));
  const older = page.messages.filter(({ id }) => !known.has(id)).map(rowOf);
  return set({ ...state, messages: [...older, ...state.messages], before: page.before });
}

// A card that an event only named, once it has been read; undefined: it could not be.
export function applyCard(state: ThreadState, messageId: string, uiSchema?: UiSchema): ThreadState {
  return change(state, messageId, (message) => ({ ...message, uiRef: undefined, uiSchema: uiSchema ?? message.uiSchema }));
}

// SPDX-License-Identifier: Apache-2.0
//
// The conversation as a list of turns: the one mapping from the reducer's state to what is drawn. Pure. Live events,
// history, a second tab and a reconnect all end up in the same state, hence in the same turns.
//
//     state.messages   u1  a1 t1 c1 t2 a2   u2  a3            rows of history
//     turns            [u1][ agent turn   ][u2][a3 + preview]
//
// A turn that has not changed is the same object as before, so that only what has changed is drawn again. What a turn
// depends on is its `of`; everything else is made from that.
//
// To add a kind of part: a member of Part, a case in partsOf, and its component in view/turn.tsx.

import type { Interaction, Json, Message, Plan, Progress, Queued, RunState, ThreadState, ToolCall, UiSchema, Usage } from '@fermata/client';
import type { Outgoing } from './outbox.js';

export interface TextPart { kind: 'text'; key: string; message: Message; live: boolean }
export interface ReasoningPart { kind: 'reasoning'; key: string; message: Message; live: boolean }
export interface CardPart { kind: 'card'; key: string; messageId: string; schema: UiSchema }
export interface ToolPart {
  kind: 'tool';
  key: string; // the call's id
  name: string;
  args: string; // JSON, as far as it is known
  status: 'writing' | 'running' | 'waiting' | 'success' | 'error' | 'unknown';
  at: string; // when it was called
  took?: number; // ms; only where nobody was waited for
  row?: Message; // its result
  progress?: Progress;
}
export interface AskedPart { kind: 'asked'; key: string; asked: Asked }
export interface FoldPart { kind: 'fold'; key: string; parts: ToolPart[] } // many that went well
export type Part = TextPart | ReasoningPart | CardPart | ToolPart | AskedPart | FoldPart;

// What a person is asked, whether it is open or settled, in a conversation or in the inbox.
export interface Asked {
  id: string;
  type: 'ask_user' | 'confirm' | 'connection_lost' | 'uncertain';
  status: 'open' | 'resolved' | 'canceled' | 'expired' | 'superseded';
  text: string; // the question
  interaction?: Interaction; // while it is open
  choices: { id: string; label: string; description?: string }[];
  ui?: UiSchema; // the card of a confirm and the like
  toolName?: string;
  decision?: string;
  answer?: string; // in the words the model got
  answeredBy?: string;
  via?: string;
  at?: string; // when it was settled
}

export interface UserTurn {
  kind: 'user';
  key: string;
  of: unknown[];
  message: Message;
  outgoing?: Outgoing; // not stored yet
  queued?: Queued; // stored, behind the run
  unanswered: boolean; // its run ended without a word
}
export interface AgentTurn {
  kind: 'agent';
  key: string;
  of: unknown[];
  parts: Part[];
  run?: RunState; // of the newest run only, in its last turn
  plan?: Plan; // likewise
  live: boolean;
  usage?: Usage;
  question?: Message; // what the person had said, and did not just answer
}
export interface FoldedTurn { kind: 'folded'; key: string; of: unknown[]; turns: Turn[] } // replaced by a later version
export interface NoteTurn { kind: 'note'; key: string; of: unknown[]; message: Message }
export type Turn = UserTurn | AgentTurn | FoldedTurn | NoteTurn;

const FOLD_FROM = 4; // tools in a row that went well
export const isActive = (run?: RunState): boolean => run?.status === 'running' || run?.status === 'cancelling';

// A stage, a step or a call that such a run is in the middle of.
export const goes = (run?: RunState): 'running' | 'waiting' | 'stopped' => (isActive(run) ? 'running' : run?.status === 'waiting' ? 'waiting' : 'stopped');

// ---- what is asked ----

const STATUS: { [status: string]: Asked['status'] } = { pending: 'open', answered: 'resolved' };

export function askedOf(row: Message, interaction?: Interaction): Asked {
  const { type, status = 'open', choices, decision, answer, answered_by, via, answered_at, tool_name } = row.metadata;
  return {
    id: row.id, type: row.role === 'clarify' ? 'ask_user' : type ?? 'confirm', status: STATUS[status] ?? status as Asked['status'],
    text: String(row.content), interaction, choices: choices ?? [], ui: row.uiSchema, toolName: tool_name, decision, answer, answeredBy: answered_by, via, at: answered_at,
  };
}

// The same from the inbox.
export function askedOfInteraction(interaction: Interaction & { text?: string; at?: string }): Asked {
  const { interactionId, type, status, displayText, choices, ui, pendingTool, answer, answeredBy, via, text, at } = interaction;
  return {
    id: interactionId, type, status, text: displayText, interaction, choices: choices ?? [], ui, toolName: pendingTool?.toolName,
    decision: answer && 'decision' in answer ? answer.decision : undefined, answer: text, answeredBy, via, at,
  };
}

// ---- parts of a turn ----

// Somebody, or the time, has decided that the call does not run.
const isRefused = ({ status, decision }: Message['metadata']): boolean => /^(reject|respond)$/.test(decision ?? '') || /^(canceled|expired)$/.test(status ?? '');

// The words of a message that may have files.
export const wordsOf = ({ content }: Message): string =>
  (typeof content === 'string' ? content : content.flatMap((part) => (part.type === 'text' ? part.text : [])).join('\n'));

// `over`: the run is, so that nothing is under way any more.
function partsOf(rows: Message[], { interactions, progress, previews }: ThreadState, over: boolean): Part[] {
  const results = new Map(rows.filter(({ role }) => role === 'tool').map((row) => [row.toolCallId, row]));
  const asked = new Map(rows.filter(({ role }) => role === 'clarify' || role === 'interaction').map(({ role, metadata }) => [metadata.tool_call_id, role]));
  const parts: Part[] = [], told = new Set<Message>();
  const ask = (row: Message) => {
    if (!told.has(row)) parts.push({ kind: 'asked', key: row.id, asked: askedOf(row, interactions.find((one) => one.interactionId === row.id)) });
    told.add(row);
  };
  const tool = ({ id, function: { name, arguments: args } }: ToolCall, { createdAt: at }: Message, live: boolean, took?: number) => {
    const row = results.get(id);
    results.delete(id);
    if (name === 'ask_user' && (live || asked.get(id) === 'clarify')) return; // the question tells it
    // What was approved stands before what came of it; until then it stands alone.
    const confirms = rows.filter(({ metadata: { type, tool_call_id } }) => type === 'confirm' && tool_call_id === id);
    confirms.forEach(ask);
    const last = confirms.at(-1)?.metadata;
    if (last?.status === 'open' || last && isRefused(last)) return; // it was never called: the line of the decision says all there is
    if (row && !asked.has(id)) took ??= Date.parse(row.createdAt) - Date.parse(at);
    parts.push({
      kind: 'tool', key: id, name, args, at, took, row, progress: progress[id],
      status: row ? (row.error === undefined ? 'success' : 'error') : interactions.some(({ toolCallId }) => toolCallId === id) ? 'waiting' : over ? 'unknown' : live ? 'writing' : 'running',
    });
  };
  for (const row of rows) {
    const { id: key, role, content, uiSchema, toolCalls, toolCallId } = row, live = previews.includes(row);
    if (role === 'reasoning') parts.push({ kind: role, key, message: row, live });
    if (role === 'clarify' || role === 'interaction') ask(row);
    if (role === 'assistant') {
      if (String(content).trim() || live && !toolCalls) parts.push({ kind: 'text', key, message: row, live });
      if (uiSchema) parts.push({ kind: 'card', key: `${key}:card`, messageId: key, schema: uiSchema });
      for (const call of toolCalls ?? []) tool(call, row, live);
    }
    // The result of a call that is on an older page.
    if (results.has(toolCallId)) tool({ id: toolCallId!, type: 'function', function: { name: row.toolName ?? '', arguments: JSON.stringify(row.args ?? {}) } }, row, false, 0);
  }
  return folded(parts);
}

// Many tools in a row that went well, and have nothing to show, in one.
function folded(parts: Part[]): Part[] {
  const out: Part[] = [], plain: ToolPart[] = [];
  for (const part of [...parts, undefined]) {
    if (part?.kind === 'tool' && part.status === 'success' && !part.row?.uiSchema && !part.row?.attachments) {
      plain.push(part);
      continue;
    }
    const some = plain.splice(0);
    out.push(...(some.length < FOLD_FROM ? some : [{ kind: 'fold' as const, key: `fold:${some[0]!.key}`, parts: some }]), ...(part ? [part] : []));
  }
  return out;
}

const usageOf = (rows: Message[]): Usage | undefined => rows.map(({ usage }) => usage).filter((usage) => usage !== undefined).reduce<Usage | undefined>((sum, one) => (sum ? {
  ...one, inputTokens: sum.inputTokens + one.inputTokens, outputTokens: sum.outputTokens + one.outputTokens, cost: sum.cost + one.cost,
} : one), undefined);

// ---- turns ----

type Known = Map<string, Turn>;

const same = (a: unknown[], b: unknown[]): boolean => a.length === b.length && a.every((one, i) => one === b[i]);

const isOwn = (row?: Message): boolean => row !== undefined && row.role !== 'user' && row.role !== 'system';
const answers = (row?: Message): boolean => !!row?.metadata.answer_to;
const runOf = (row?: Message): string => row?.metadata.run_id ?? '';

// A mapping that remembers what it gave before. All up to the last thing that was said is settled: it is made anew only
// when one of its rows has changed.
export function turnMaker(): (state: ThreadState, outgoing: Outgoing[]) => Turn[] {
  let head: { rows: Message[]; turns: Turn[]; known: Known } = { rows: [], turns: [], known: new Map() };
  let tail: Known = new Map();
  let known: Known, next: Known; // as it was, as it will be

  // The turn of this key as it was, if nothing that it is made of has changed.
  function put(name: string, of: unknown[], make: (base: { key: string; of: unknown[] }) => Turn): Turn {
    let key = name;
    for (let n = 2; next.has(key); n++) key = `${name}~${n}`;
    const old = known.get(key);
    const turn = old && same(old.of, of) ? old : make({ key, of });
    next.set(key, turn);
    return turn;
  }

  const said = (message: Message, unanswered: boolean, outgoing?: Outgoing, queued?: Queued): Turn =>
    put(`u:${message.id}`, [message, unanswered, outgoing, queued], (base) => ({ kind: 'user', ...base, message, unanswered, outgoing, queued }));

  // The turns of some rows; `last`: nothing follows them.
  function turnsOf(rows: Message[], last: boolean, state: ThreadState): Turn[] {
    const { run, interactions, progress } = state, list: Turn[] = [];
    let question: Message | undefined, root: Message | undefined; // what is answered, and what the person had said
    const agent = (own: Message[], runId: string, newest: RunState | undefined): void => {
      const calls = own.flatMap(({ toolCalls = [] }) => toolCalls.map(({ id }) => id)), plan = newest && state.plan, asks = root;
      const open = interactions.filter(({ interactionId, toolCallId }) => calls.includes(toolCallId!) || own.some(({ id }) => id === interactionId));
      list.push(put(`a:${runId}${answers(question) ? `:${question!.id}` : ''}`, [question, asks, newest, plan, ...own, 0, ...open, 0, ...calls.map((id) => progress[id])], (base) => ({
        kind: 'agent', ...base, run: newest, plan, live: isActive(newest), usage: usageOf(own), question: asks, parts: partsOf(own, state, goes(newest) === 'stopped'),
      })));
    };
    for (let i = 0; i < rows.length;) {
      const row = rows[i]!, after = rows[++i];
      if (row.role === 'user') {
        // A run that has not said anything has a turn all the same: there its stages are shown, or why it failed.
        const silent = last && !after && run && runOf(row) === run.runId;
        list.push(said(row, !isOwn(after) && !silent && !answers(row) && (!!after || !last)));
        question = row;
        if (!answers(row)) root = row;
        if (silent) agent([], run.runId, run);
      } else if (row.role === 'system') list.push(put(`n:${row.id}`, [row], (base) => ({ kind: 'note', ...base, message: row })));
      else {
        const from = i - 1, runId = runOf(row);
        while (isOwn(rows[i]) && runOf(rows[i]) === runId) i++;
        agent(rows.slice(from, i), runId, last && i === rows.length && run?.runId === runId ? run : undefined);
      }
    }
    return list;
  }

  // What was edited or asked for anew stands folded where it was, with everything that followed it up to its new version:
  // the model does not see that any more.
  function foldReplaced(list: Turn[]): Turn[] {
    const out: Turn[] = [];
    for (const turn of list) {
      const replaced = turn.kind === 'user' && turn.message.metadata.replaces;
      const at = replaced ? out.findIndex((one) => one.kind === 'user' && one.message.id === replaced) : -1;
      if (at >= 0) {
        const turns = out.splice(at);
        out.push(put(`f:${replaced}`, turns, (base) => ({ kind: 'folded', ...base, turns })));
      }
      out.push(turn);
    }
    return out;
  }

  return (state, outgoing) => {
    const { messages, previews, queue } = state;
    const cut = Math.max(0, messages.findLastIndex((row) => row.role === 'user' && !answers(row)));
    const before = messages.slice(0, cut);
    if (!same(before, head.rows)) {
      known = head.known;
      next = new Map();
      head = { rows: before, turns: turnsOf(before, false, state), known: next };
    }
    known = tail;
    tail = next = new Map();
    const turns = foldReplaced([...head.turns, ...turnsOf([...messages.slice(cut), ...previews], true, state)]);
    const there = new Set(messages.slice(-50).map(({ id }) => id));
    for (const queued of queue) {
      for (const message of queued.messages) {
        turns.push(said(message, false, undefined, queued));
        there.add(message.id);
      }
    }
    for (const one of outgoing) if (one.message && !there.has(one.message.id)) turns.push(said(one.message, false, one));
    return turns;
  };
}

export const jsonOf = (text: string): Json | undefined => {
  try {
    return JSON.parse(text) as Json;
  } catch {
    return undefined;
  }
};

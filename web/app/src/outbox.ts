// SPDX-License-Identifier: Apache-2.0
//
// What this person has said and the server has not taken yet: messages and answers. Kept in local storage until it has;
// sent by one tab at a time, in order, and again after a cut or a reload. Every message has its ids from the start, and an
// answer is taken once, so nothing is ever said twice.
//
//     say ──► waiting ──► sending ──► sent (gone once its row or its event shows it)
//                 ▲          ├── no answer: waiting, until the network is back
//                 └─ again() ┴── refused: failed, with the reason; the person decides
//
// An answer that came too late is not failed: somebody else was first, and the card shows what was decided. What was
// typed stays in the draft of its question.

import { effect, signal } from '@preact/signals';
import { FermataError, newId, passing, type Answer, type Attachment, type Interaction, type Message, type RunAgentInput, type ThreadState } from '@fermata/client';
import { asked } from './conversation.js';
import { t } from './i18n.js';
import { keep } from './keep.js';
import { access, base, client, isStillMe, network, refused, session } from './link.js';

export interface Outgoing {
  id: string; // of the message, or of what is answered
  at?: number; // its place in the order: when it was said, in ms
  threadId?: string;
  state: 'waiting' | 'sending' | 'failed' | 'sent'; // sent: stored, its row has not come in
  error?: string; // why it failed
  field?: string; // and what of it: a path into the body
  seq?: number; // of the thread, when it was stored
  message?: Message; // as its row will look
  run?: RunAgentInput; // as it is sent
  begins?: boolean; // the conversation, as far as we know
  knew?: string[]; // what was asked there when it was said; none: nobody else can know of that conversation
  body?: Answer; // of an answer
  json?: string; // the same as it is sent, where its numbers have to keep their digits
}

const NAME = 'outbox:'; // and its id: tabs never write over what another one has to say
const OTHERS_MS = 1000; // before this tab sends what another one has to say
const ANSWER_MS = 30_000; // of the server, at most
const REST_MS = 5000; // when the server did not answer; sooner when the network is back

export const outbox = signal<Outgoing[]>([]);
export const outgoingTo = (threadId: string): Outgoing[] => outbox.value.filter((one) => one.message && one.threadId === threadId);
export const outgoingAnswer = (interactionId: string): Outgoing | undefined => outbox.value.find((one) => one.body && one.id === interactionId);

// Answers of ours that came too late, and what was decided instead.
export const late = signal<{ [interactionId: string]: { body: Answer; interaction?: Interaction } }>({});

// Answers that the server took from this tab. The event that says so may still be on its way.
export const answered = signal<{ [interactionId: string]: Answer }>({});

// What is kept, and what this tab has sent: that is stored and not sent again, so it need not be kept.
function update(): void {
  const kept = keep.all<Outgoing>(NAME);
  outbox.value = [...kept, ...outbox.value.filter(({ id, state }) => state === 'sent' && !kept.some((one) => one.id === id))].sort((a, b) => a.at! - b.at!);
}
function set(one: Outgoing): void {
  outbox.value = [...outbox.value.filter(({ id }) => id !== one.id), one];
  keep.set(NAME + one.id, one.state === 'sent' ? undefined : one);
  update();
}
function change(id: string, how: Partial<Outgoing>): void {
  const one = outbox.value.find((other) => other.id === id);
  if (one) set({ ...one, ...how });
}
function drop(id: string): void {
  outbox.value = outbox.value.filter((one) => one.id !== id);
  keep.set(NAME + id, undefined);
  update();
}

function put(one: Outgoing): void {
  set({ ...one, at: Math.max(Date.now(), ...outbox.value.map(({ at }) => at! + 1)) });
  void flush();
}

// ---- ways in ----

// The server may not have heard of the conversation: its first words are on their way.
export const isNew = (threadId: string): boolean => outgoingTo(threadId).some(({ begins }) => begins);

// What was asked there when something was said: words are never taken for the answer to a question that came later.
const askedIn = (threadId?: string): string[] => asked.value.filter((one) => one.threadId === threadId).map(({ interactionId }) => interactionId);

export interface Saying {
  threadId?: string; // none: a new conversation
  begins?: boolean; // it is new though it has an id: that of its files, which other tabs may know
  text: string;
  files?: Attachment[];
  replaces?: string; // the message that this one stands for
  agent?: string;
}

// Gives the conversation.
export function say({ threadId: known, begins = !known, text, files = [], replaces, agent }: Saying): string {
  const threadId = known ?? newId('thr_');
  const parts = files.map(({ id, mimeType, filename }) => ({ type: 'binary' as const, id, mimeType, filename }));
  const content = parts.length ? [{ type: 'text' as const, text }, ...parts].slice(text ? 0 : 1) : text;
  const said = { id: newId('msg_'), role: 'user' as const, content, metadata: replaces ? { replaces } : {} };
  const { timeZone: timezone } = Intl.DateTimeFormat().resolvedOptions();
  put({
    id: said.id, threadId, state: 'waiting', begins, knew: !known ? undefined : begins ? [] : askedIn(known),
    message: { ...said, createdAt: new Date().toISOString(), ...(parts.length && { attachments: files }) },
    run: { threadId, runId: newId('run_'), agent, forwardedProps: { timezone }, messages: [said] },
  });
  return threadId;
}

export const answer = (id: string, body: Answer, threadId?: string, json?: string): void => put({ id, threadId, state: 'waiting', body, json });

export function again(id: string): void {
  change(id, { state: 'waiting', error: undefined, field: undefined, knew: askedIn(outbox.value.find((one) => one.id === id)?.threadId) });
  void flush();
}

// Takes it back: what had failed, or is waiting. Gives it, so that its words can go back to where they were typed.
export function takeBack(id: string): Outgoing | undefined {
  const one = outbox.value.find((other) => other.id === id && /failed|waiting/.test(other.state));
  if (one) drop(id);
  return one;
}

// The conversation is like this: what was stored before has shown itself, or never will. What has a row, or waits its turn, was
// stored, whether we heard so or not: once that is taken back nothing of it may be left to send.
export function shown({ threadId, seq: now, messages, queue }: ThreadState): void {
  const isStored = (id: string) => [messages, ...queue.map((one) => one.messages)].some((rows) => rows.some((one) => one.id === id));
  for (const { id, state, seq } of outgoingTo(threadId)) if (state === 'sent' ? seq! < now : isStored(id)) drop(id);
}

// ---- sending ----

let busy = false;
const isWaiting = ({ state }: Outgoing): boolean => state === 'waiting';

async function flush(): Promise<void> {
  if (busy || access.value !== 'in') return;
  busy = true;
  const locks = navigator.locks as LockManager | undefined; // not on an insecure origin: there two may send, and one counts
  const through = await (locks ? locks.request(`fermata:${base}:${session.value?.user}`, flushAll) : flushAll()).finally(() => { busy = false; });
  if (outbox.value.some(isWaiting)) setTimeout(flush, through ? 0 : REST_MS);
}

// Whether everything went out, or was refused.
async function flushAll(): Promise<boolean> {
  update();
  for (const { id, state } of outbox.value) if (state === 'sending') change(id, { state: 'waiting' }); // by a tab that is gone
  for (let one; (one = outbox.value.find(isWaiting));) {
    const { id, body, json, run, threadId, knew } = one, call = { tries: 2, signal: AbortSignal.timeout(ANSWER_MS) };
    const took = () => {
      answered.value = { ...answered.value, [id]: body! };
      drop(id);
    };
    change(id, { state: 'sending' });
    try {
      if (!await isStillMe(call.signal)) return false;
      const { interactions } = body || !knew ? { interactions: [] } : await client.interactions({ threadId, status: 'open', ...call });
      if (interactions.some(({ interactionId }) => !knew!.includes(interactionId))) change(id, { state: 'failed', error: t('composer.asked') });
      else if (!body) change(id, { state: 'sent', begins: false, seq: (await client.run(run!, call)).seq });
      else {
        await client.answer(id, json ?? body, call);
        took();
      }
    } catch (error) {
      const { status, message, field, interaction } = error as FermataError;
      if (passing(error) || !status || status === 401) {
        change(id, { state: 'waiting' });
        if (status === 401) refused();
        return false;
      }
      if (!body || ![404, 409, 410, 412].includes(status)) change(id, { state: 'failed', error: message, field });
      else if (JSON.stringify(interaction?.answer) === JSON.stringify({ ...body, binding: undefined })) took();
      else {
        late.value = { ...late.value, [id]: { body, interaction } };
        drop(id);
      }
    }
  }
  return true;
}

// Once it is known who is here: what another tab, or this one before a reload, has left.
export function begin(): void {
  update();
  keep.watch(NAME, () => {
    update();
    setTimeout(flush, OTHERS_MS); // that tab sends it; should it end before it has, this one does
  });
  effect(() => { if (access.value === 'in' && network.value !== 'lost') queueMicrotask(flush); });
}

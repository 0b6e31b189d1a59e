// SPDX-License-Identifier: Apache-2.0
//
// Answering a question: what was typed, what is about to be sent, and how long there is time. The card draws this.
//
//     pending ──► leaving (can be undone for UNDO_MS) ──► the outbox ──► taken; the event settles the card
//        ▲            │                                      ├── offline: waits there
//        └────────────┴── undo, take back ◄──────────────────┴── refused: failed, nothing is cleared
//
// It lives outside of the card, so that what was pressed goes out though its card is not drawn any more.
//
// Invariants:
//  1. What was typed is forgotten only when the server has taken exactly that, or its writer says so.
//  2. Nothing is sent without a press, and once.

import { effect, signal, type Signal } from '@preact/signals';
import type { Interaction, Json, Reply } from '@fermata/client';
import { drafts } from './drafts.js';
import { t } from './i18n.js';
import { client, may, network, session } from './link.js';
import { answer, answered, late, outgoingAnswer } from './outbox.js';
import { jsonOf, type Asked } from './turns.js';

const UNDO_MS = 1200;
const LAST_MS = 2000; // before it expires: then there is no time to take it back
const FRESH_MS = 10_000;
const MORE_MS = 10 * 60_000;
const TYPING_MS = 60_000; // that long there is time while somebody types
const TYPING_STEP_MS = 20_000;

// An answer, or what there is of one.
export interface Said {
  choices?: string[];
  fields?: { [name: string]: Json };
  text?: string; // with the choices
  answer?: string; // own words alone
  skip?: true;
}

// ---- what was typed ----

export interface Draft extends Said {
  fields?: { [name: string]: string };
}

const known: { [id: string]: Signal<Draft> } = {};
const nameOf = (id: string): string => `ask:${id}`;
export const draftOf = (id: string): Signal<Draft> => (known[id] ??= signal(drafts.get<Draft>(nameOf(id)) ?? {}));

export function setDraft(id: string, draft: Draft): void {
  draftOf(id).value = draft;
  drafts.set(nameOf(id), lineOf(draft, []) ? draft : undefined);
}

export const decisionName = (id: string): string => `confirm:${id}`; // of what was typed beside a decision

// What was taken need not be kept; of what is kept, that is, since another tab may have other words.
effect(() => {
  for (const [id, body] of Object.entries(answered.value as { [id: string]: Said })) {
    drafts.set(decisionName(id), undefined);
    const { text, choices, fields } = drafts.get<Draft>(nameOf(id)) ?? {};
    setDraft(id, { text: text?.trim() === (body.answer ?? body.text) ? undefined : text, choices: body.skip && choices, fields: body.fields ? undefined : fields });
  }
});

// ---- in words ----

export const plain = (value: Json): string => (typeof value === 'boolean' ? t(value ? 'field.yes' : 'field.no') : typeof value === 'string' ? value : JSON.stringify(value));

// In one line: `a, b: own words`.
export const lineOf = ({ skip, choices: ids = [], fields = {}, answer: words, text = words }: Said, choices: Asked['choices']): string => (skip ? t('ask.skip') : [
  [
    ...ids.map((id) => choices.find((one) => one.id === id)?.label ?? id),
    ...Object.entries(fields).flatMap(([name, value]) => (value === '' ? [] : `${name}: ${plain(value)}`)),
  ].join(t('ask.list')),
  text?.trim(),
].filter(Boolean).join(': '));

// What the model got: `["a","b"]: c` is what was picked, `{"a":1}` a form, all else own words.
export function saidOf(words: string, choices: Asked['choices']): Said {
  const [, list = '', text] = /^(\[".*?"])(?:: (.*))?$/s.exec(words) ?? [];
  const ids = (jsonOf(list) as string[] | undefined)?.map((label) => choices.find((one) => one.label === label)?.id as string);
  if (ids?.every(Boolean)) return { choices: ids, text };
  const fields = words[0] === '{' && jsonOf(words) as Said['fields'];
  return fields ? { fields } : { answer: words };
}

// Just now: it draws attention to itself.
export const isFresh = (interaction?: Interaction): boolean => Date.now() - Date.parse(interaction?.openedAt ?? '') < FRESH_MS;

const SKIPPED = ['用户跳过了这个问题', 'The user skipped this question']; // the server's words, in the language of the run

// Does the question want something that should not be typed into a conversation?
export const SECRET = /pass(word|phrase|code)|(api|access|private|secret|client|auth)[ _-]?(key|secret|token)|credential|one-time|\b(pin|cvv)\b|密码|口令|[密私]钥|令牌|验证码|卡号|凭[据证]/i;

// ---- on its way ----

export const leaving = signal<{ [id: string]: Reply | undefined }>({}); // pressed, and not handed on yet

export function undo(id: string): Reply | undefined {
  const body = leaving.value[id];
  if (body) leaving.value = { ...leaving.value, [id]: undefined };
  return body;
}

function handOn(id: string): void {
  const body = undo(id);
  if (body) answer(id, body);
}

export function press(asked: Asked, body: Reply): void {
  const { id } = asked;
  if (leaving.value[id]) return;
  leaving.value = { ...leaving.value, [id]: body };
  setTimeout(() => { if (leaving.value[id] === body) handOn(id); }, Date.parse(expiryOf(asked)!) - Date.now() < LAST_MS ? 0 : UNDO_MS);
}

// Who leaves the page has not taken it back.
addEventListener('pagehide', () => Object.keys(leaving.value).forEach(handOn));

// Somebody else was first, while it could still be undone.
export function overtaken(id: string): void {
  const body = undo(id);
  if (body) late.value = { ...late.value, [id]: { body } };
}

export type State = 'pending' | 'leaving' | 'sending' | 'waiting' | 'failed' | 'answered' | 'skipped' | 'canceled' | 'expired' | 'superseded';

export function stateOf({ id, status, answer: words }: Asked): State {
  const out = outgoingAnswer(id)?.state;
  if (status === 'resolved') return SKIPPED.includes(words!) ? 'skipped' : 'answered';
  if (status !== 'open') return status;
  if (leaving.value[id]) return 'leaving';
  if (out === 'failed' || (out === 'waiting' && network.value !== 'open')) return out;
  return out || answered.value[id] ? 'sending' : 'pending';
}

// ---- time ----

const moved = signal<{ [id: string]: string | undefined }>({}); // expiries that changed since the question was read
const heard = ({ interactionId, expiresAt }: Interaction): void => { moved.value = { ...moved.value, [interactionId]: expiresAt }; };

export const expiryOf = ({ id, interaction }: Asked): string | undefined => (id in moved.value ? moved.value[id] : interaction?.expiresAt);
export const mayMove = ({ interaction }: Asked): boolean => interaction?.requester === session.value?.user || may.value.has('operator');

const move = (id: string, at: number): Promise<void> => client.setExpiry(id, new Date(at).toISOString()).then(heard);
export const moreTime = (asked: Asked): Promise<void> => move(asked.id, Math.max(Date.now(), Date.parse(expiryOf(asked)!)) + MORE_MS);

// Nobody is cut off while typing.
let typedAt = 0;
export function typing(asked: Asked): void {
  const now = Date.now(), left = Date.parse(expiryOf(asked)!) - now;
  if (!(left < TYPING_MS) || now - typedAt < TYPING_STEP_MS || !mayMove(asked)) return;
  typedAt = now;
  move(asked.id, now + TYPING_MS).catch(() => {}); // the clock says so
}

// It should be over by now: perhaps somebody has given it more time.
export const readExpiry = (id: string): Promise<void> => client.interaction(id).then(heard, () => {}); // asked again later

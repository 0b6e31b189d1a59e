// SPDX-License-Identifier: Apache-2.0
//
// What is being written, by conversation: words, files, and for a new conversation who it is for. Kept with the drafts
// until it is sent or emptied. It outlives the component that shows it, so that files go on up while another conversation
// is looked at. And what a message would do in the conversation that is open.

import { computed, effect, signal } from '@preact/signals';
import { newId, type Attachment, type Message } from '@fermata/client';
import { current } from './conversation.js';
import { drafts } from './drafts.js';
import type { Text } from './i18n.js';
import { say } from './outbox.js';
import { isActive, wordsOf } from './turns.js';
import { doneOf, remove, restore, type Upload } from './uploads.js';

interface Kept { text: string; files: Attachment[]; threadId?: string; agent?: string }

const open = new Map<string | undefined, Draft>();
export type Draft = ReturnType<typeof newDraft>;

// Of this conversation; without one, of the next that will be begun.
export function draftOf(threadId?: string): Draft {
  const draft = open.get(threadId) ?? newDraft(threadId);
  open.set(threadId, draft);
  return draft;
}

function newDraft(of?: string) {
  const name = `say:${of ?? 'new'}`, kept = drafts.get<Kept>(name);
  const text = signal(kept?.text ?? ''), agent = signal(kept?.agent), files = signal<Upload[]>([]); // no agent: the one that is meant by default
  let threadId = of ?? kept?.threadId;
  restore(files, kept?.files);
  let typed = false;
  effect(() => {
    if (!files.value.length) threadId = of; // it was chosen for them
    const now: Kept = { text: text.value, files: doneOf(files), threadId, agent: agent.value };
    if (typed) drafts.set(name, now.text || now.files.length ? now : undefined);
    typed = true; // from here on
  });
  return {
    text, agent, files,

    // The conversation it is for. That of a new one is chosen when it is first asked for: files need it before the message.
    to: (): string => threadId ??= newId('thr_'),

    // Off it goes; emptied only when the outbox has it. Gives the conversation.
    send(): string {
      const to = say({ threadId, begins: !of, text: text.value.trim(), files: doneOf(files), agent: agent.value });
      threadId = of;
      text.value = '';
      for (const one of files.value) remove(files, one);
      return to;
    },

    // A message that was not sent after all: in front of what has been written since.
    putBack(message: Message, from: string): void {
      text.value = [wordsOf(message), text.value].filter(Boolean).join('\n');
      threadId = from; // its files are there
      restore(files, message.attachments);
    },
  };
}

// ---- what a message would do ----

export const run = computed(() => current.value?.state.value.run);
const asked = computed(() => current.value?.state.value.interactions ?? []);

// Something is under way or waits for an answer: a new version would come behind that, or answer it.
export const underWay = computed(() => isActive(run.value) || run.value?.status === 'waiting');
export const busy = computed(() => underWay.value || asked.value.length > 0 || !!current.value?.state.value.queue.length);

// A plain message while somebody is asked: it answers the question, or rejects what waits for approval. Never more.
// `unclear`: the server would not know which one is meant.
export const aim = computed((): { kind: 'answers' | 'declines' | 'rejects' | 'unclear'; text: string } | undefined => {
  const [question, another] = asked.value.filter(({ type }) => type === 'ask_user');
  const confirm = asked.value.find(({ type }) => type === 'confirm'), one = confirm ?? question;
  const kind = another ? 'unclear' : confirm ? 'rejects' : question?.allowFreeform === false ? 'declines' : 'answers';
  return one && { kind, text: one.displayText };
});

// Why it cannot be sent as it is; empty is no reason to speak of.
export function hindrance({ files }: Draft): Text | undefined {
  const is = (...states: string[]) => files.value.some(({ state }) => states.includes(state));
  return aim.value?.kind === 'unclear' ? 'composer.unclear' : is('failed') ? 'composer.failed' : is('waiting', 'sending') ? 'composer.uploading' : undefined;
}

export const canSend = (draft: Draft): boolean => !hindrance(draft) && (!!draft.text.value.trim() || draft.files.value.length > 0);

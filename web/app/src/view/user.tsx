// SPDX-License-Identifier: Apache-2.0
//
// What the person has said: their words and files, whether they have arrived, and what can be done about them. Editing
// sends a new version; the old one stays, folded, and the model no longer sees it.

import { useComputed } from '@preact/signals';
import { useState } from 'preact/hooks';
import type { FermataError, Message } from '@fermata/client';
import { busy, draftOf } from '../compose.js';
import { current } from '../conversation.js';
import { drafts } from '../drafts.js';
import { focusComposer } from '../hotkeys.js';
import { t } from '../i18n.js';
import { client } from '../link.js';
import { again, outgoingTo, say, takeBack } from '../outbox.js';
import { go } from '../route.js';
import { wordsOf, type AgentTurn, type UserTurn } from '../turns.js';
import { Field } from './composer.js';
import { Icon } from './icon.js';
import { Files } from './tool.js';
import { CopyButton, Time } from './turn.js';

const LINES_MAX = 30; // shown of a long text at first
const CHARS_MAX = 3000;
const ICONS = { sending: 'clock', waiting: 'wifi-off', failed: 'circle-alert', queued: 'clock' };

// Of what was said: in these words, or to be answered again.
export const newVersion = (message: Message, text = wordsOf(message)): string => say({ threadId: current.value!.id, text, files: message.attachments, replaces: message.id });

function Words({ text }: { text: string }) {
  const [whole, show] = useState(false);
  const short = text.split('\n', LINES_MAX).join('\n').slice(0, CHARS_MAX), long = short.length < text.length;
  return (
    <div class="bubble">
      <p dir="auto">{whole || !long ? text : `${short}…`}</p>
      {long && <button class="quiet-button" aria-expanded={whole} onClick={() => show(!whole)}>{t(whole ? 'say.showLess' : 'say.showAll')}</button>}
    </div>
  );
}

// It has not arrived, or is not its turn.
function Fate({ state, turn: { message, outgoing, queued } }: { state: keyof typeof ICONS; turn: UserTurn }) {
  const [error, set] = useState('');
  const { id } = message, threadId = current.value!.id, failed = state === 'failed';
  const back = async () => {
    try {
      if (queued) await client.dropQueued(threadId, queued.n);
      else if (!takeBack(id)) return;
      const next = draftOf(undefined), gone = outgoing?.begins && !outgoingTo(threadId).length && !next.files.value.length; // there is no such conversation
      (gone ? next : draftOf(threadId)).putBack(message, threadId);
      if (gone) go({ view: 'chat' });
      focusComposer();
    } catch (problem) {
      set((problem as FermataError).message);
    }
  };
  return (
    <div class="fate line" role={failed ? 'alert' : undefined}>
      <Icon name={ICONS[state]} />
      <span>{error ? t('say.failed', { text: error }) : t(`message.${state}`, { text: outgoing?.error ?? '' })}</span>
      {failed && <button class="quiet-button" onClick={() => again(id)}>{t('say.retry')}</button>}
      {state !== 'sending' && <button class="quiet-button" onClick={back}>{t('turn.takeBack')}</button>}
    </div>
  );
}

// ---- another version ----

const atItsEnd = (field: HTMLTextAreaElement | null): void => {
  field?.focus();
  field?.setSelectionRange(-1, -1);
};

function Edit({ message, done }: { message: Message; done: () => void }) {
  const name = `edit:${message.id}`;
  const [text, set] = useState(() => drafts.get<string>(name) ?? wordsOf(message));
  const keep = (words: string) => {
    set(words);
    drafts.set(name, words);
  };
  const close = () => {
    drafts.set(name, undefined);
    done();
  };
  const hindered = busy.value || !(text.trim() || message.attachments);
  const save = () => {
    if (hindered) return;
    newVersion(message, text.trim());
    close();
  };
  const key = (event: KeyboardEvent) => {
    if (event.key !== 'Escape' || event.isComposing) return;
    event.preventDefault();
    close();
  };
  return (
    <div class="rewrite" data-testid="edit" onKeyDown={key}>
      <Field ref={atItsEnd} label={t('turn.edit')} text={text} set={keep} send={save} />
      <button onClick={close}>{t('say.cancel')}</button>
      <button class="primary" disabled={hindered} onClick={save}>{t('composer.send')}</button>
    </div>
  );
}

// In the footer of the newest reply.
export function Regenerate({ turn: { key, question } }: { turn: AgentTurn }) {
  const newest = useComputed(() => current.value?.turns.value.at(-1)?.key === key).value;
  return question && newest && (
    <button class="plain small" data-testid="regenerate" title={t('turn.regenerate')} disabled={busy.value} onClick={() => newVersion(question)}><Icon name="refresh-cw" /></button>
  );
}

// ---- all of it ----

export function UserTurnView({ turn }: { turn: UserTurn }) {
  const { message, outgoing, queued, unanswered } = turn;
  const [editing, edit] = useState(false);
  const text = wordsOf(message), state = queued ? 'queued' : outgoing?.state ?? 'sent', answers = message.metadata.answer_to;
  return (
    <div class="own" data-state={state}>
      {answers && <p class="quiet line"><Icon name="reply" />{t('turn.answerTo')}</p>}
      {editing ? <Edit message={message} done={() => edit(false)} /> : text && <Words text={text} />}
      {message.attachments && <Files files={message.attachments} />}
      {state !== 'sent' && <Fate state={state} turn={turn} />}
      {unanswered && <p class="quiet line">{t('turn.unanswered')}</p>}
      {!editing && (
        <footer class="turn-foot">
          <Time at={message.createdAt} />
          {text && <CopyButton text={text} />}
          {!outgoing && !queued && !answers && (
            <button class="plain small" data-testid="edit-button" title={t('turn.edit')} disabled={busy.value} onClick={() => edit(true)}><Icon name="pencil" /></button>
          )}
        </footer>
      )}
    </div>
  );
}

// SPDX-License-Identifier: Apache-2.0
//
// Where a person writes: in the conversation that is open, or to begin the next one. While a run is under way it can be
// stopped, and writing goes on: the server puts what comes in behind the run. Nothing here looks at the reply that comes in.

import { signal } from '@preact/signals';
import type { FermataError } from '@fermata/client';
import { agents } from '../agents.js';
import { announce, Weight } from '../announce.js';
import { aim, canSend, draftOf, hindrance, run, underWay } from '../compose.js';
import { current } from '../conversation.js';
import { focusComposer } from '../hotkeys.js';
import { t } from '../i18n.js';
import { client } from '../link.js';
import { prefs } from '../prefs.js';
import { go } from '../route.js';
import { Attach, Attached } from './attach.js';
import { Icon } from './icon.js';

const TWICE_MS = 2000; // between two presses of Esc
const touch = matchMedia('(pointer: coarse)');

export function Composer() {
  const threadId = current.value?.id, draft = draftOf(threadId), why = hindrance(draft), { kind, text } = aim.value ?? {};
  const send = () => {
    if (!canSend(draft)) return;
    const to = draft.send();
    focusComposer();
    if (!threadId) go({ view: 'chat', threadId: to });
  };
  return (
    <section class="composer" aria-label={t('composer.write')}>
      {kind && kind !== 'unclear' && (
        <p class="aim line" data-testid="aim" data-state={kind}>
          <Icon name={kind === 'rejects' ? 'triangle-alert' : 'reply'} /><span>{t(`aim.${kind}`)} <q dir="auto">{text}</q></span>
        </p>
      )}
      <div class="composer-box">
        <Attached draft={draft} />
        <Field data-testid="composer" label={t('composer.write')} text={draft.text.value} set={(words) => { draft.text.value = words; }} send={send} />
        <p class="line quiet" id="hint" data-testid="hint">{why && t(why)}</p>
        <div class="composer-row">
          {agents.value[0]?.capabilities.attachments !== false && <Attach draft={draft} />}
          {!threadId && agents.value.length > 1 && (
            <select data-testid="agent" aria-label={t('say.agent')} value={draft.agent.value} onChange={(event) => { draft.agent.value = event.currentTarget.value; }}>
              {agents.value.map(({ name }) => <option key={name}>{name}</option>)}
            </select>
          )}
          <Stop />
          <button class="primary send" data-testid="send" title={t('composer.send')} aria-describedby="hint" disabled={!canSend(draft)} onClick={send}><Icon name="arrow-up" /></button>
        </div>
      </div>
    </section>
  );
}

interface Writing { label: string; text: string; set: (text: string) => void; send: () => void; [more: string]: unknown }

// Enter sends, or breaks the line: as one likes it. An input method has its own use for it.
export function Field({ label, text, set, send, ...more }: Writing) {
  const enterSends = prefs.enterSends.value && !touch.matches;
  const key = (event: KeyboardEvent) => {
    if (event.key !== 'Enter' || event.isComposing || event.keyCode === 229) return;
    if (!(event.ctrlKey || event.metaKey || (enterSends && !event.shiftKey && !event.altKey))) return;
    event.preventDefault();
    if (!event.repeat) send();
  };
  return (
    <textarea dir="auto" rows={text.split('\n').length} aria-label={label} placeholder={label} enterkeyhint={enterSends ? 'send' : 'enter'} value={text}
      onInput={(event) => set(event.currentTarget.value)} onKeyDown={key} {...more} />
  );
}

// ---- stopping ----

const stopped = signal<string | undefined>(''); // run
const once = signal(false); // Esc

function stop(): void {
  const { runId } = run.value!;
  stopped.value = runId;
  once.value = false;
  client.cancel(current.value!.id, { runId }).catch(({ code, message }: FermataError) => {
    if (code === 'not_current') return; // it had ended
    stopped.value = '';
    announce(t('say.failed', { text: message }), Weight.Error);
  });
}

addEventListener('keydown', (event) => {
  if (event.key !== 'Escape' || event.defaultPrevented || event.isComposing || event.repeat || run.value?.status !== 'running') return;
  if (document.querySelector('dialog[open]') || !document.querySelector('.stop:enabled')) return;
  if (once.value) return stop();
  announce(t('composer.escAgain'), Weight.Note);
  once.value = true;
  setTimeout(() => { once.value = false; }, TWICE_MS);
});

function Stop() {
  if (!underWay.value) return null;
  const stopping = run.value!.status === 'cancelling' || run.value!.runId === stopped.value;
  return (
    <button class="stop" data-testid="stop" data-state={stopping ? 'stopping' : 'ready'} disabled={stopping} onClick={stop}>
      <Icon name="square" />{t(stopping ? 'turn.cancelling' : once.value ? 'composer.escAgain' : 'composer.stop')}
    </button>
  );
}

// SPDX-License-Identifier: Apache-2.0
//
// How the page makes itself heard without taking the focus: the title of the window with the number of open questions,
// notifications of the system for those that open while nobody looks, and what a screen reader is told of them and of a reply.

import { computed, effect, untracked } from '@preact/signals';
import type { Interaction } from '@fermata/client';
import { announce, Weight } from './announce.js';
import { isFresh } from './asking.js';
import { asked, current } from './conversation.js';
import { number, t, type Text } from './i18n.js';
import { base, mine, network } from './link.js';
import { prefs } from './prefs.js';
import { go } from './route.js';
import type { Turn } from './turns.js';

const STILL_MS = 8000;
const SENTENCE_CHARS_MAX = 160;
const SEEN = `fermata-seen:${base}`; // lock that every tab in sight holds

// ---- notifications ----

export type Notices = 'none' | 'denied' | 'off' | 'on';

export const notices = (): Notices => (!isSecureContext || !window.Notification ? 'none' : Notification.permission === 'denied' ? 'denied'
  : prefs.notify.value && Notification.permission === 'granted' ? 'on' : 'off');

// Asks the browser, on a press. The first one shows that it works.
export async function allowNotices(): Promise<void> {
  if (notices() === 'none' || await Notification.requestPermission() !== 'granted') return;
  notice('settings.notifyTest');
  prefs.notify.value = true;
}

const notice = (text: Text, options?: NotificationOptions): Notification => new Notification(t(text), { icon: 'icon.svg', ...options });

// Goes to where it is asked.
export const visit = ({ threadId, interactionId: asked }: Interaction): void =>
  go(threadId === undefined ? { view: 'inbox' } : { view: 'chat', threadId, asked });

// Tabs of one browser show one: they give it the same tag, and none while one of them is in sight.
async function notify(one: Interaction): Promise<void> {
  const { held } = await navigator.locks.query();
  if (held!.some(({ name }) => name === SEEN)) return;
  const shown = notice('ask.title', { body: one.displayText, tag: one.interactionId });
  shown.onclick = () => {
    window.focus();
    visit(one);
    shown.close();
  };
}

function watchQuestions(): void {
  const told = new Set<string>();
  let news = false; // what was there before is none
  effect(() => {
    const list = asked.value;
    if (network.value !== 'open') return;
    untracked(() => {
      for (const one of list) {
        if (told.has(one.interactionId)) continue;
        told.add(one.interactionId);
        if (news || isFresh(one)) announce(t('status.asked', { text: one.displayText }), Weight.Asked);
        if (news && document.hidden && notices() === 'on') void notify(one);
      }
    });
    news = true;
  });
}

// Holds the lock until it is out of sight.
function beSeen(): void {
  if (document.hidden) return;
  void navigator.locks.request(SEEN, { mode: 'shared' }, () => document.hidden || new Promise((resolve) => {
    document.addEventListener('visibilitychange', resolve, { once: true });
  }));
}

// ---- a reply ----

function firstSentence(turns: Turn[]): string {
  const last = turns.findLast((turn) => turn.kind === 'agent');
  const part = last?.parts.findLast((one) => one.kind === 'text');
  const text = String(part?.message.content ?? '').replace(/[#*_`>|]+/g, '').trim();
  return /^.*?([。！？]|[.!?](?=\s|$)|$)/m.exec(text)![0].slice(0, SENTENCE_CHARS_MAX);
}

function tellReplies(): void {
  const active = computed(() => current.value?.active.value), run = computed(() => current.value?.state.value.run?.runId);
  let was: unknown[] = [];
  effect(() => {
    const here = current.value, now = [here, active.value, run.value];
    if (here?.phase.value !== 'ready') return undefined;
    const ended = was[0] === here && (was[1] || was[2] !== run.value); // a short one was never seen at work
    was = now;
    if (active.value) {
      announce(t('status.replying'), Weight.Done);
      const timer = setInterval(() => announce(t('status.still'), Weight.Note), STILL_MS);
      return () => clearInterval(timer);
    }
    if (ended) untracked(() => {
      if (here.state.value.run?.status === 'completed') announce(t('status.complete', { text: firstSentence(here.turns.value) }), Weight.Done);
    });
    return undefined;
  });
}

// `heading`: what the page is about.
export function begin(heading: () => string): void {
  effect(() => {
    const n = mine.value.length, name = t('app.name'), text = heading();
    document.title = `${n ? `(${number(n)}) ` : ''}${text === name ? name : `${text} · ${name}`}`;
  });
  tellReplies();
  watchQuestions();
  if (!isSecureContext) return; // no locks, and no notifications
  document.addEventListener('visibilitychange', beSeen);
  beSeen();
}

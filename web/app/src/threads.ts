// SPDX-License-Identifier: Apache-2.0
//
// The list of conversations, newest first, and looking for one. It is asked for anew when there is reason to think that
// it has changed: a run began or ended here, something was asked or answered anywhere, the tab is looked at again.

import { computed, effect, signal } from '@preact/signals';
import type { FermataError, Thread } from '@fermata/client';
import { access, client, network, open } from './link.js';
import { current } from './conversation.js';
import { drafts } from './drafts.js';
import { go, route } from './route.js';

const QUIET_MS = 300; // several reasons at once are one
const PAGE = 30;

export const threads = signal<Thread[] | undefined>(undefined); // undefined: not known yet
export const more = signal<string | undefined>(undefined); // cursor of the next page
export const search = signal('');
export const failed = signal(false);
export const known = signal<{ [threadId: string]: Thread }>({}); // all that were ever seen here

// The title of the conversation that is open; undefined while it has none.
export const title = computed(() => known.value[current.value?.id ?? '']?.title);

let timer: ReturnType<typeof setTimeout> | undefined;
let round = 0;
let latest: Promise<void> | undefined; // the list as it is read anew

const learn = (list: Thread[]): void => { known.value = { ...known.value, ...Object.fromEntries(list.map((one) => [one.threadId, one])) }; };

export function refresh(): void {
  clearTimeout(timer);
  timer = setTimeout(() => { latest = load(); }, QUIET_MS);
}

// The first page, or the one behind the cursor.
async function load(cursor?: string): Promise<void> {
  const mine = cursor ? round : ++round, query = search.value.trim() || undefined;
  const limit = cursor ? PAGE : Math.max(PAGE, Math.min(200, threads.value?.length ?? 0));
  try {
    const { threads: list, next } = await client.threads({ limit, cursor, query });
    learn(list);
    if (mine !== round) return;
    const fresh = new Set(list.map(({ threadId }) => threadId));
    threads.value = cursor ? [...threads.value!.filter(({ threadId }) => !fresh.has(threadId)), ...list] : list;
    more.value = next;
    failed.value = false;
    if (next && !list[0]) return load(next); // a long search goes on behind a page that found nothing
  } catch {
    if (mine === round) failed.value = true; // shown, with a way to try again
  }
}

// By a press, which counts also when the list is read anew meanwhile: that begins at its first page, and another cursor leads on.
export async function loadMore(): Promise<void> {
  const of = search.value;
  for (let at = -1; at !== round;) {
    for (let one; one !== latest;) await (one = latest);
    if (search.value !== of || !more.value) return;
    at = round;
    await load(more.value);
  }
}

// ---- changing one ----

export async function rename(threadId: string, to: string): Promise<void> {
  const thread = await client.rename(threadId, to);
  learn([thread]);
  threads.value = threads.value?.map((one) => (one.threadId === threadId ? thread : one));
  refresh();
}

// It goes here too when it had gone already.
export async function remove(threadId: string): Promise<void> {
  await client.remove(threadId).catch((error: FermataError) => { if (error.code !== 'not_found') throw error; });
  drafts.set(`say:${threadId}`, undefined);
  threads.value = threads.value?.filter((one) => one.threadId !== threadId);
  if (route.value.threadId === threadId) go({ view: 'chat' }, { replace: true });
  refresh();
}

export function begin(): void {
  const run = computed(() => { // not every word of a reply is a reason
    const now = current.value?.state.value.run;
    return now && now.runId + now.status;
  });
  effect(() => {
    void [network.value, open.value, search.value, run.value];
    if (access.value === 'in' && network.value !== 'lost') refresh();
  });
  // One that is not in the part of the list that we have.
  const stranger = computed(() => {
    const id = current.value?.id;
    return id !== undefined && threads.value && !known.value[id] && current.value!.state.value.messages.length ? id : undefined;
  });
  effect(() => {
    const id = stranger.value;
    if (id) void client.thread(id).then((thread) => learn([thread]), () => {}); // else it stands without a title
  });
  document.addEventListener('visibilitychange', () => { if (!document.hidden && access.value === 'in') refresh(); });
}

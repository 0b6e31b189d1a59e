// SPDX-License-Identifier: Apache-2.0
//
// The server as this tab sees it: who we are there, whether it can be heard, and what waits for this person. One
// WebSocket carries everything; where something between us lets no WebSocket through, events come over SSE and the inbox
// is asked for every few seconds.

import { computed, signal } from '@preact/signals';
import { Fermata, type Connection, type FermataError, type InboxEvent, type Interaction, type Session } from '@fermata/client';
import { keep } from './keep.js';

const REFUSED_MAX = 5; // WebSockets, while HTTP works: then SSE
const POLL_MS = 10_000;
const REST_MS = 2000;

export const base = new URL('.', document.baseURI).pathname.replace(/\/$/, ''); // the path prefix
export const client = new Fermata({ url: base });

export const access = signal<'checking' | 'in' | 'out'>('checking');
export const session = signal<Session | undefined>(undefined);
export const network = signal<'connecting' | 'open' | 'lost'>('connecting');
export const lostAt = signal(0); // when it was
export const open = signal<Interaction[]>([]); // what waits for this person anywhere, oldest first
export type Settled = Interaction & { text?: string; at?: string }; // what the model got, and when
export const settled = signal<{ [interactionId: string]: Settled }>({}); // while the page was open: as the inbox shows them
export const may = computed(() => new Set<string>(session.value?.roles));

// Who may decide it; nobody is named where it is the owner's. The server has the last word: here only so that nobody tries in
// vain, and nobody is called who cannot help. Four eyes: whoever asked does not approve for a role, but for those without keys,
// who are all one.
export const rolesOf = ({ approvers }: Interaction): string[] => (approvers as string[] | undefined) ?? [];
export const isOwnRequest = ({ requester }: Interaction): boolean => requester === session.value?.user && session.value.via !== 'local';
export const mayAnswer = (one: Interaction): boolean => {
  const roles = rolesOf(one);
  return !roles.length || !isOwnRequest(one) && roles.some((role) => may.value.has(role));
};
export const mine = computed(() => open.value.filter(mayAnswer)); // what waits for nobody else

let connection: Connection | undefined;
let ending: AbortController | undefined;

// What to share for the events of a conversation; undefined: they come over SSE.
export const via = (): Connection | undefined => connection;

// ---- who we are ----

// Resolves once it is known whether there is somebody.
export async function enter(): Promise<void> {
  for (;;) {
    try {
      session.value = await client.session();
      break;
    } catch (error) {
      if (unheard(error)) return;
      await pause(REST_MS);
    }
  }
  keep.of(session.value.user);
  keep.watch('left', anew);
  access.value = 'in';
  ending = new AbortController();
  void listen(ending.signal);
  nudge();
}

export async function signIn(key: string): Promise<void> {
  const { user } = await client.signIn(key);
  if (session.value && session.value.user !== user) return anew();
  return enter();
}

export async function signOut(): Promise<void> {
  await client.signOut();
  keep.set('left', Date.now()); // the other tabs hear of it
  anew();
}

// Still the same person? The cookie is the browser's, and another tab may have changed it.
export async function isStillMe(signal?: AbortSignal): Promise<boolean> {
  const { user } = await client.session({ tries: 1, signal });
  if (user !== session.value?.user) anew();
  return user === session.value?.user;
}

// Nothing of the person who was here stays, not even where they were.
function anew(): void {
  history.replaceState(null, '', '#/');
  location.reload();
}

// The server does not know us (any more). Drafts and what is unsent stay.
export function refused(): void {
  ending?.abort();
  connection?.close();
  connection = undefined;
  access.value = 'out';
}

// ---- hearing ----

const wake = new Set<() => void>();

// Until the time is over, or there is reason to hope.
export const pause = (ms: number): Promise<void> => new Promise((resolve) => {
  const go = () => {
    wake.delete(go);
    resolve();
  };
  setTimeout(go, ms);
  wake.add(go);
});

// Whether that is because we are nobody.
function unheard(error: unknown): boolean {
  const nobody = (error as FermataError).code === 'unauthenticated' || (error as FermataError).status === 401;
  if (nobody) refused();
  else {
    if (network.value !== 'lost') lostAt.value = Date.now();
    network.value = 'lost';
  }
  return nobody;
}

async function listen(signal: AbortSignal): Promise<void> {
  for (let refusals = 0; refusals < REFUSED_MAX && !signal.aborted;) {
    connection = client.connect({ signal });
    try {
      for await (const event of connection.inbox({ signal })) {
        if (event.type === 'connection.lost') {
          const { error } = event.data;
          unheard(error);
          refusals = /^closed with/.test(error.message) ? refusals + 1 : 0; // HTTP had answered just before
          if (refusals >= REFUSED_MAX) break;
        } else if (event.type !== 'inbox' || await isStillMe(signal)) { // the whole list comes with each new connection
          refusals = 0;
          heard(event);
        }
      }
    } catch (error) {
      connection.close();
      unheard(error);
      await pause(REST_MS);
    }
  }
  if (signal.aborted) return;
  connection!.close();
  connection = undefined;
  for (; !signal.aborted; await pause(POLL_MS)) {
    try {
      if (await isStillMe(signal)) heard({ type: 'inbox', data: await client.interactions({ signal, tries: 1 }) });
    } catch (error) {
      if (!signal.aborted) unheard(error);
    }
  }
}

function heard(event: Exclude<InboxEvent, { type: 'connection.lost' }>): void {
  network.value = 'open';
  if (event.type === 'inbox') {
    open.value = event.data.interactions;
    void rest(event.data.next);
    return;
  }
  const { interactionId } = event.data, was = open.value.find((one) => one.interactionId === interactionId);
  const others = open.value.filter((one) => one !== was);
  open.value = event.type === 'interaction.request' ? [...others, event.data] : others;
  if (event.type === 'interaction.resolved' && was) settled.value = { ...settled.value, [interactionId]: { ...was, ...event.data } };
}

// The inbox behind its first page.
async function rest(cursor?: string): Promise<void> {
  while (cursor) {
    const { interactions, next } = await client.interactions({ cursor });
    const known = new Set(open.value.map(({ interactionId }) => interactionId));
    open.value = [...open.value, ...interactions.filter(({ interactionId }) => !known.has(interactionId))];
    cursor = next;
  }
}

// The network is back or gone, or somebody looks at the page again: no need to rest any longer.
export function nudge(): void {
  connection?.wake();
  for (const go of wake) go();
}
ononline = onoffline = nudge;
document.addEventListener('visibilitychange', () => { if (!document.hidden) nudge(); });

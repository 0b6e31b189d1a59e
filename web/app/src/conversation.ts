// SPDX-License-Identifier: Apache-2.0
//
// The conversation that is open: its history and its events folded into one state (the client's reducer), and that into
// turns. Drawn at most once a frame, however fast events come. When something was missed the newest page is loaded anew,
// in place: what was loaded of the past stays.

import { computed, effect, signal } from '@preact/signals';
import { applyOlder, emptyState, FermataError, type History, type ThreadState, type Usage } from '@fermata/client';
import { t } from './i18n.js';
import { access, client, mayAnswer, mine, pause, refused, via } from './link.js';
import { isNew, outgoingTo, shown } from './outbox.js';
import { route } from './route.js';
import { isActive, turnMaker } from './turns.js';

const PAGE = 50; // rows
const HIDDEN_MS = 250; // between two drawings while nobody looks
const REST_MS = 1000; // before it is followed again
const NONE: History = { messages: [], hasMore: false, openInteractions: [], seq: 0 };

export interface Totals {
  inputTokens: number;
  outputTokens: number;
  costs: Usage[]; // one for each currency
}

export class Conversation {
  readonly state = signal<ThreadState>(emptyState(''));
  readonly phase = signal<'loading' | 'ready' | 'failed'>('loading');
  readonly error = signal(''); // why it failed
  readonly totals = signal<Totals | undefined>(undefined); // of the whole conversation, as of the end of its last run
  readonly active = computed(() => isActive(this.state.value.run)); // somebody is at work
  readonly #loading = signal<'idle' | 'loading' | 'failed'>('idle');
  readonly older = computed(() => (this.state.value.before === undefined ? 'none' : this.#loading.value)); // is there more of the past, and do we have it?
  readonly #make = turnMaker();
  readonly turns = computed(() => this.#make(this.state.value, outgoingTo(this.id)));
  readonly #end = new AbortController();
  readonly signal = this.#end.signal;
  #now = this.state.value;
  #drawing = false;

  constructor(readonly id: string) {
    const ended = computed(() => (this.active.value ? undefined : this.state.value.run)); // also one that was shorter than a frame
    const undo = [
      effect(() => shown(this.state.value)),
      effect(() => { if (ended.value) void this.#total(); }),
    ];
    this.signal.addEventListener('abort', () => undo.forEach((one) => one()));
    void this.retry();
  }

  close(): void {
    this.#end.abort();
  }

  // Another page of the past, in front.
  async loadOlder(): Promise<void> {
    const { before } = this.#now;
    if (before === undefined || this.#loading.value === 'loading') return;
    this.#loading.value = 'loading';
    try {
      const page = await client.history(this.id, { before, limit: PAGE, signal: this.signal });
      if (this.#now.before === before) this.#set(applyOlder(this.#now, page));
      this.#loading.value = 'idle';
    } catch {
      this.#loading.value = 'failed';
    }
  }

  #set(state: ThreadState): void {
    this.#now = state;
    if (this.#drawing) return;
    this.#drawing = true;
    const draw = () => {
      this.#drawing = false;
      if (!this.signal.aborted) this.state.value = this.#now;
    };
    if (document.hidden) setTimeout(draw, HIDDEN_MS);
    else requestAnimationFrame(draw);
  }

  async #total(): Promise<void> {
    const { usage: used = [] } = await client.thread(this.id, { signal: this.signal }).catch(() => ({ usage: [] })); // told again after the next run
    const sum = (of: 'inputTokens' | 'outputTokens') => used.reduce((total, one) => total + one[of], 0);
    if (used.length) this.totals.value = { inputTokens: sum('inputTokens'), outputTokens: sum('outputTokens'), costs: used.filter(({ cost }) => cost > 0) };
  }

  // Follows it to its end; also after it failed, by a press. The history of one that begins here is not asked for at first: its
  // first words are still on their way, and its events tell everything. If they do not, it has begun already.
  async retry(): Promise<void> {
    const { id, signal } = this;
    let first = true;
    const history = async () => {
      const none = first && isNew(id);
      first = false;
      return none ? NONE : client.history(id, { limit: PAGE, signal });
    };
    this.phase.value = 'loading';
    for (; !signal.aborted; await pause(REST_MS)) {
      if (access.value !== 'in') continue;
      try {
        for await (const state of client.follow(id, { signal, via: via(), history })) {
          if (state.seq < state.loaded) continue; // it is told what it knows
          if (!state.seq && this.#now.seq && !isNew(id)) throw new FermataError({ code: 'not_found', status: 404, detail: t('log.gone') });
          this.#set(joined(this.#now, state));
          this.phase.value = 'ready';
        }
      } catch (error) {
        const { status, message } = error as FermataError;
        if (status === 401) refused();
        else if (status >= 400 && status < 500) {
          this.error.value = message;
          this.phase.value = 'failed';
          return;
        }
      }
    }
  }
}

// If what we have reaches back further than what is followed, that stays in front of it.
function joined(old: ThreadState, next: ThreadState): ThreadState {
  const first = next.messages[0]?.id, at = old.messages.findIndex(({ id }) => id === first);
  return at > 0 ? { ...next, messages: [...old.messages.slice(0, at), ...next.messages], before: old.before } : next;
}

// ---- which one is open ----

export const current = signal<Conversation | undefined>(undefined);

// What waits for this person elsewhere, and whatever they are asked here: of that the conversation may hear before the inbox does.
export const asked = computed(() => {
  const here = current.value;
  return here?.phase.value === 'ready' ? [...mine.value.filter(({ threadId }) => threadId !== here.id), ...here.state.value.interactions.filter(mayAnswer)] : mine.value;
});

// Nobody here can help the conversation that is open: somebody else decides.
export const waitsForOthers = computed(() => {
  const { interactions = [] } = current.value?.state.value ?? {};
  return interactions.length > 0 && !interactions.some(mayAnswer);
});

export function begin(): void {
  effect(() => {
    const { view, threadId } = route.value;
    if (view !== 'chat' || access.value !== 'in') return; // it stays behind the other pages, and for who comes back
    if (current.peek()?.id === threadId) return;
    current.peek()?.close();
    current.value = threadId === undefined ? undefined : new Conversation(threadId);
  });
}

// SPDX-License-Identifier: Apache-2.0
//
// The client: a method for each route, and two ways to read a conversation: its events, and the state they make.
//
// Everything that changes something is safe to repeat, and is repeated when no answer came: a run by its thread and run
// id, everything else by an Idempotency-Key. So a lost 202 never becomes a second run, a lost 200 never a second answer.
//
// To add a route: a line in `Fermata`, its types in wire.ts.

import { FermataError, networkError, problemOf } from './error.js';
import { API, named, type RunInput } from './input.js';
import { backoff, newId, passing, sleep, TRIES } from './retry.js';
import { Connection } from './socket.js';
import { streamEvents, type Start } from './sse.js';
import { applyCard, applyEvent, applyHistory, emptyState, type ThreadState } from './state.js';
import type {
  Agent, Answer, Attachment, Channel, Grant, History, Interaction, InteractionStatus, Json, Login, Pressed, Run, RunAccepted, Session,
  Settings, Thread, ThreadEvent, UiSchema,
} from './wire.js';

export interface Options {
  url?: string; // of the server, with its path prefix if it has one; absent: the page's own origin
  key?: string; // API key; absent: the session cookie, or nobody in particular on this machine
  fetch?: typeof fetch;
  WebSocket?: typeof WebSocket; // for connect(), where there is none built in
}

export interface Call {
  signal?: AbortSignal;
  tries?: number; // at most, while no answer comes; 6 if absent
  language?: string; // of the server's own words; the browser's if absent
}

interface Following extends Call {
  via?: Connection;
  history?: () => Promise<History>;
}

interface Page extends Call {
  limit?: number;
  cursor?: string;
}

// A path with its parts made safe.
const at = (path: TemplateStringsArray, ...parts: (string | number)[]): string => API + String.raw(path, ...parts.map(encodeURIComponent));

// ?a=1&b=2 of what is set.
function query(values: object): string {
  const set = new URLSearchParams();
  for (const [name, value] of Object.entries(values))
    if (value !== undefined && name !== 'signal' && name !== 'tries') set.set(name, String(value));
  return String(set) && `?${set}`;
}

export class Fermata {
  readonly url: string;
  readonly options: Options;

  constructor(options: Options = {}) {
    this.options = options;
    this.url = (options.url ?? '').replace(/\/+$/, '');
  }

  // ---- conversations ----

  // Resolves once it is stored. A message on a waiting conversation may be an answer: then `answered` says to what.
  run(input: RunInput, call?: Call): Promise<RunAccepted> {
    return this.#send('POST', at`/runs`, call, named(input));
  }

  // Events as they happen; comes back by itself after a cut, and ends only by the signal or a refusal.
  events(threadId: string, start: Start = {}): AsyncGenerator<ThreadEvent> {
    const path = at`/runs/${threadId}/events` + query(start);
    return streamEvents((headers, signal) => this.#fetch(path, { headers: { accept: 'text/event-stream', ...headers }, signal }), threadId, start.signal);
  }

  // The conversation as it is now, and again after everything that happens. `via` is a connection to share, `history` a way
  // to load its newest page.
  async* follow(threadId: string, { signal, via, history = () => this.history(threadId, { signal }) }: Following = {}): AsyncGenerator<ThreadState> {
    for (let attempt = 0; !signal?.aborted; attempt++) {
      let state = emptyState(threadId), loaded = false;
      try {
        for await (const event of via ? via.subscribe(threadId, { signal }) : this.events(threadId, { signal })) {
          // The stream is open first, so that nothing falls between it and the history.
          const opens: boolean = !loaded && event.type === 'connection.open';
          if (opens) state = applyHistory(state, await history().catch(noneYet));
          loaded ||= opens;
          state = applyEvent(state, event);
          if (state.stale) break;
          if ('seq' in event) state = await this.#cards(state, signal);
          if (!opens && (!loaded || state.seq < state.loaded)) continue; // it is told what it knows
          if (!opens) attempt = 0;
          yield state;
        }
        if (!state.stale) return;
      } catch (error) {
        if (signal?.aborted) return;
        if (!passing(error)) throw error;
      }
      await sleep(backoff(attempt), signal); // also when something was missed: the next try may miss it too
    }
  }

  // With the cards that events only name. One that cannot be read is left out, as in history.
  async #cards(state: ThreadState, signal?: AbortSignal): Promise<ThreadState> {
    for (const { id, uiRef } of state.messages)
      if (uiRef) state = applyCard(state, id, await this.card(state.threadId, id, { signal }).catch(() => undefined));
    return state;
  }

  connect(call: Call = {}): Connection {
    return new Connection(this, call);
  }

  history(threadId: string, page: Call & { before?: number | string; after?: number; limit?: number } = {}): Promise<History> {
    return this.#send('GET', at`/runs/${threadId}/history` + query(page), page);
  }

  // `limit` and `cursor` are of its queue.
  current(threadId: string, page: Page = {}): Promise<Run> {
    return this.#send('GET', at`/runs/${threadId}` + query(page), page);
  }

  cancel(threadId: string, what: { runId?: string; queue?: boolean } = {}, call?: Call): Promise<{ threadId: string; runId: string; status: string }> {
    return this.#send('POST', at`/runs/${threadId}/cancel`, call, what);
  }

  dropQueued(threadId: string, n: number, call?: Call): Promise<void> {
    return this.#send('DELETE', at`/runs/${threadId}/queue/${n}`, call);
  }

  threads(page: Page & { query?: string } = {}): Promise<{ threads: Thread[]; next?: string }> {
    return this.#send('GET', at`/threads` + query(page), page);
  }

  thread(threadId: string, call?: Call): Promise<Thread> {
    return this.#send('GET', at`/threads/${threadId}`, call);
  }

  rename(threadId: string, title: string, call?: Call): Promise<Thread> {
    return this.#send('PATCH', at`/threads/${threadId}`, call, { title });
  }

  remove(threadId: string, call?: Call): Promise<void> {
    return this.#send('DELETE', at`/threads/${threadId}`, call);
  }

  // ---- what waits for a person ----

  interactions(page: Page & { status?: InteractionStatus; agent?: string; threadId?: string } = {}): Promise<{ interactions: Interaction[]; next?: string }> {
    return this.#send('GET', at`/interactions` + query(page), page);
  }

  interaction(id: string, call?: Call): Promise<Interaction> {
    return this.#send('GET', at`/interactions/${id}`, call);
  }

  // Taken once. Whoever comes later gets a FermataError with the interaction as it was settled. A string is the body as
  // JSON, for arguments with numbers that parsing would round.
  answer(id: string, body: Answer | string, call?: Call): Promise<Interaction> {
    return this.#send('POST', at`/interactions/${id}/answer`, call, body);
  }

  cancelInteraction(id: string, call?: Call): Promise<Interaction> {
    return this.#send('POST', at`/interactions/${id}/cancel`, call, {});
  }

  setExpiry(id: string, expiresAt: string | null, call?: Call): Promise<Interaction> {
    return this.#send('PATCH', at`/interactions/${id}`, call, { expiresAt });
  }

  grants(page: Page = {}): Promise<{ grants: Grant[]; next?: string }> {
    return this.#send('GET', at`/grants` + query(page), page);
  }

  revoke(grantId: string, call?: Call): Promise<void> {
    return this.#send('DELETE', at`/grants/${grantId}`, call);
  }

  // ---- files, cards, settings ----

  async upload(threadId: string, file: Blob, filename?: string, call?: Call): Promise<Attachment> {
    const form = new FormData();
    form.set('threadId', threadId);
    form.set('file', file, filename ?? (file as File).name ?? 'file');
    const { attachment } = await this.#send<{ attachment: Attachment }>('POST', at`/attachments`, call, form);
    return attachment;
  }

  // The card of a message whose `uiRef` says that it is to be read.
  card(threadId: string, messageId: string, call?: Call): Promise<UiSchema> {
    return this.#send('GET', at`/threads/${threadId}/messages/${messageId}/ui`, call);
  }

  // The whole result of a tool.
  result(threadId: string, messageId: string, call?: Call): Promise<Json> {
    return this.#send('GET', at`/threads/${threadId}/messages/${messageId}/result`, call);
  }

  press(message: { threadId: string; messageId: string; actionId: string }, call?: Call): Promise<Pressed> {
    return this.#send('POST', at`/actions`, call, message);
  }

  async agents(call?: Call): Promise<Agent[]> {
    return (await this.#send<{ agents: Agent[] }>('GET', at`/agents`, call)).agents;
  }

  settings(agent: string, call?: Call): Promise<Settings> {
    return this.#send('GET', at`/agents/${agent}/settings`, call);
  }

  changeSettings(agent: string, change: { [K in keyof Settings]?: Settings[K] | null }, call?: Call): Promise<Settings> {
    return this.#send('PATCH', at`/agents/${agent}/settings`, call, change);
  }

  async channels(call?: Call): Promise<Channel[]> {
    return (await this.#send<{ channels: Channel[] }>('GET', at`/channels`, call)).channels;
  }

  // Begins to sign in, or tells how far it is.
  login(channel: string, how: { verifyCode?: string; restart?: boolean } = {}, call?: Call): Promise<Login> {
    return this.#send('POST', at`/channels/${channel}/login`, call, how);
  }

  // ---- who am I ----

  session(call?: Call): Promise<Session> {
    return this.#send('GET', '/api/v1/session', call);
  }

  signIn(key: string, call?: Call): Promise<Session> {
    return this.#send('POST', '/api/v1/session', call, { key });
  }

  signOut(call?: Call): Promise<void> {
    return this.#send('DELETE', '/api/v1/session', call);
  }

  // One-use word for a stream that cannot send headers.
  async ticket(call?: Call): Promise<string> {
    return (await this.#send<{ ticket: string }>('POST', '/api/v1/tickets', call)).ticket;
  }

  // ---- requests ----

  // One attempt: an answer that is a success. Whatever else comes is thrown.
  async #fetch(path: string, init: RequestInit): Promise<Response> {
    const headers = new Headers(init.headers);
    if (this.options.key) headers.set('authorization', `Bearer ${this.options.key}`);
    let response: Response;
    try {
      response = await (this.options.fetch ?? fetch)(this.url + path, { ...init, headers });
    } catch (error) {
      throw networkError(error);
    }
    if (!response.ok) throw await problemOf(response);
    return response;
  }

  async #send<T>(method: string, path: string, { signal, tries = TRIES, language }: Call = {}, body?: object | string): Promise<T> {
    const form = body instanceof FormData;
    const headers: Record<string, string> = {};
    if (language) headers['accept-language'] = language;
    if (method !== 'GET') headers['idempotency-key'] = newId('key_');
    if (body && !form) headers['content-type'] = 'application/json';
    const init: RequestInit = { method, headers, signal: signal ?? null, body: form || typeof body === 'string' ? body : body ? JSON.stringify(body) : null };
    for (let attempt = 1; ; attempt++) {
      try {
        const text = await (await this.#fetch(path, init)).text().catch((error) => { throw networkError(error); });
        return (text ? JSON.parse(text) : undefined) as T;
      } catch (error) {
        signal?.throwIfAborted();
        if (!passing(error) || attempt >= tries) throw error;
        await sleep(backoff(attempt), signal);
      }
    }
  }
}

// The history of a conversation that does not exist yet.
function noneYet(error: unknown): History {
  if (error instanceof FermataError && error.code === 'not_found') return { messages: [], hasMore: false, openInteractions: [], seq: 0 };
  throw error;
}

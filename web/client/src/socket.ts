// SPDX-License-Identifier: Apache-2.0
//
// One WebSocket for many conversations, the inbox, messages and answers. It comes back by itself after a cut: every
// subscription goes on behind its newest fact, and what was sent without an answer is sent again.
//
//     connecting --open--> open --cut, or silence--> resting (backoff) --> connecting
//          \___________ close(), or a refusal that does not pass ___________/--> over
//
// Invariants:
//  1. A subscription takes events only between the server's ack of it, which is `connection.open`, and the next cut.
//  2. A reader that does not keep up has at most QUEUE_MAX events waiting: then its subscription is given up, and begins
//     again behind its newest fact when the reader has taken them.
//  3. A frame that wants an answer gets one: the server's, or an error after TRIES connections that failed.

import type { Fermata } from './client.js';
import { FermataError, networkError } from './error.js';
import { API, named, type RunInput } from './input.js';
import { backoff, passing, sleep, TRIES } from './retry.js';
import type { Answer, InboxEvent, Interaction, RunAccepted, ThreadEvent } from './wire.js';

const QUEUE_MAX = 10_000;
const PING_MS = 15_000;
const SILENCE_MS_MAX = 45_000;
const PROBE_MS_MAX = 5_000;
const INBOX = ''; // among the names of threads

interface Frame {
  type: string;
  id?: string;
  sessionId?: string;
  seq?: number;
  data?: any;
  [key: string]: unknown;
}

// Events on their way to one reader.
class Feed {
  items: any[] = [];
  asked = false; // on this connection
  acked = false;
  late = false; // given up until the reader has caught up
  over = false;
  error?: Error;
  wake = () => {};

  constructor(readonly name: string, readonly what: object, public after?: number) {}

  push(item: unknown): void {
    this.items.push(item);
    this.wake();
  }

  end(error?: Error): void {
    if (error) this.error = error;
    this.over = true;
    this.wake();
  }
}

// A frame that wants an answer.
class Question {
  sent = 0;
  done!: (data: any) => void;
  failed!: (error: Error) => void;
  readonly answer = new Promise<any>((done, failed) => Object.assign(this, { done, failed }));

  constructor(readonly frame: Frame, readonly feed?: Feed) {} // feed: that it is about, on this connection only
}

export class Connection {
  readonly #client: Fermata;
  readonly #feeds = new Map<string, Feed>(); // by thread
  readonly #questions = new Map<string, Question>(); // by id
  readonly #end = new AbortController();
  #socket: WebSocket | undefined; // while it is open
  #rest = new AbortController(); // given up by wake()
  #probe = () => {}; // asks the open connection whether it is alive
  #count = 0;

  constructor(client: Fermata, { signal }: { signal?: AbortSignal } = {}) {
    this.#client = client;
    signal?.addEventListener('abort', () => this.close());
    if (signal?.aborted) this.close();
    else void this.#live();
  }

  // As Fermata.events. One reader for each thread.
  subscribe(threadId: string, { after, signal }: { after?: number; signal?: AbortSignal } = {}): AsyncGenerator<ThreadEvent> {
    return this.#read(new Feed(threadId, { sessionId: threadId, events: ['native'] }, after), signal);
  }

  // All that is open, then what opens and what is settled; all again after a cut.
  inbox({ signal }: { signal?: AbortSignal } = {}): AsyncGenerator<InboxEvent> {
    return this.#read(new Feed(INBOX, { inbox: true }), signal);
  }

  // As Fermata.run. What a message frame has no place for goes by HTTP.
  run(input: RunInput): Promise<RunAccepted> {
    const { threadId, runId, messages, ...rest } = named(input);
    const [message, other] = messages;
    if (message?.role !== 'user' || message.metadata || other || Object.keys(rest).length) return this.#client.run({ threadId, runId, messages, ...rest });
    return this.#ask({ type: 'message', sessionId: threadId, runId, messageId: message.id, content: message.content }).answer;
  }

  // As Fermata.answer.
  answer(id: string, body: Answer): Promise<Interaction> {
    const question = this.#ask('decision' in body
      ? { ...body, type: 'confirm_response', requestId: id }
      : { type: 'clarify_response', requestId: id, answer: 'answer' in body ? body.answer : body });
    return question.answer.catch((error: FermataError) => {
      // Sent again after a cut: it may be ours that was taken.
      const { binding: _, ...ours } = body as { binding?: string };
      const { interaction } = error;
      if (question.sent > 1 && interaction && JSON.stringify(interaction.answer) === JSON.stringify(ours)) return interaction;
      throw error;
    });
  }

  // As Fermata.cancel.
  stop(threadId: string): Promise<void> {
    return this.#ask({ type: 'stop', sessionId: threadId }).answer;
  }

  // The network is back, or somebody looks: tries at once if it is resting, and finds out whether an open one is alive.
  wake(): void {
    this.#rest.abort();
    this.#probe();
  }

  // Ends every reader in good order.
  close(): void {
    this.#over();
  }

  // ---- readers ----

  async* #read(feed: Feed, signal?: AbortSignal): AsyncGenerator<any> {
    const { name } = feed;
    if (this.#feeds.get(name)?.over === false) throw new Error(`${name || 'the inbox'} has a reader on this connection`);
    if (this.#end.signal.aborted || signal?.aborted) return;
    const end = () => feed.end();
    signal?.addEventListener('abort', end);
    this.#feeds.set(name, feed);
    this.#join(feed);
    try {
      while (!signal?.aborted) {
        if (feed.items.length) {
          yield feed.items.shift();
          continue;
        }
        if (feed.error) throw feed.error;
        if (feed.over) return;
        if (feed.late) this.#join(feed);
        await new Promise<void>((resolve) => { feed.wake = resolve; });
      }
    } finally {
      signal?.removeEventListener('abort', end);
      if (this.#feeds.get(name) === feed) { // else somebody else reads it by now
        this.#feeds.delete(name);
        this.#leave(feed);
      }
    }
  }

  // While there is no connection this waits for the next one.
  #join(feed: Feed): void {
    feed.late = false;
    if (!this.#socket) return;
    feed.asked = true;
    this.#ask({ type: 'subscribe', ...feed.what, after: feed.after }, feed).answer.catch((error) => { if (!passing(error)) feed.end(error); });
  }

  #leave(feed: Feed): void {
    const { events: _, ...what } = feed.what as { events?: unknown };
    if (feed.asked) this.#send({ type: 'unsubscribe', ...what });
    feed.asked = feed.acked = false;
  }

  // ---- frames ----

  #send(frame: Frame): void {
    this.#socket?.send(JSON.stringify(frame));
  }

  #ask(frame: Frame, feed?: Feed): Question {
    const id = String(++this.#count);
    const question = new Question({ ...frame, id }, feed);
    if (this.#end.signal.aborted) question.failed(this.#end.signal.reason);
    else this.#questions.set(id, question);
    if (this.#socket) this.#pose(question);
    return question;
  }

  #pose(question: Question): void {
    question.sent++;
    this.#send(question.frame);
  }

  #take(frame: Frame): void {
    const { type, id, sessionId, seq, data } = frame;
    const question = this.#questions.get(id!);
    this.#questions.delete(id!);
    if (type === 'error') {
      const error = new FermataError({ ...data, detail: data.message });
      return question ? question.failed(error) : this.#ended(data.sessionId ?? INBOX, error);
    }
    if (question?.feed) this.#joined(question.feed);
    if (question) return question.done(data);
    const asked = type === 'inbox' || (type.startsWith('interaction.') && seq === undefined);
    const feed = this.#feeds.get(asked ? INBOX : sessionId!);
    if (!feed?.acked) return;
    if (seq !== undefined) feed.after = seq;
    const { sessionId: _, ...rest } = frame;
    feed.push(asked ? { type, data } : { threadId: sessionId, ...rest });
    if (feed.items.length < QUEUE_MAX) return;
    this.#leave(feed);
    feed.late = true;
  }

  // The server cannot go on with this one; the others stand.
  #ended(name: string, error: Error): void {
    const feed = this.#feeds.get(name);
    if (!feed) return;
    const retryMs = backoff(2);
    this.#lost(feed, error, retryMs);
    void sleep(retryMs, this.#end.signal).then(() => { if (this.#feeds.get(name) === feed) this.#join(feed); });
  }

  #lost(feed: Feed, error: Error, retryMs: number): void {
    feed.asked = feed.acked = false;
    if (feed.items.at(-1)?.type === 'connection.lost') feed.items.pop(); // nobody has read it; the newest will do
    feed.push({ type: 'connection.lost', ...(feed.name !== INBOX && { threadId: feed.name }), data: { error, retryMs } });
  }

  #joined(feed: Feed): void {
    if (!feed.asked) return; // left meanwhile
    feed.acked = true;
    if (feed.name !== INBOX) feed.push({ type: 'connection.open', threadId: feed.name });
  }

  // ---- the connection ----

  async #live(): Promise<void> {
    for (let attempt = 0; !this.#end.signal.aborted; attempt++) {
      try {
        await this.#connection(await this.#address(), () => { attempt = 0; });
      } catch (error) {
        if (this.#end.signal.aborted) return;
        if (!passing(error)) return this.#over(error as Error);
        const retryMs = backoff(attempt);
        this.#cut(error as Error, attempt + 1 >= TRIES, retryMs);
        this.#rest = new AbortController();
        await sleep(retryMs, AbortSignal.any([this.#rest.signal, this.#end.signal]));
      }
    }
  }

  // A WebSocket in a browser sends no headers and does not say why it was refused: HTTP does both before it.
  async #address(): Promise<string> {
    const address = new URL(`${this.#client.url}${API}/ws`, globalThis.location?.href);
    address.protocol = address.protocol.replace('http', 'ws');
    const call = { tries: 1, signal: this.#end.signal };
    if (this.#client.options.key) address.searchParams.set('ticket', await this.#client.ticket(call));
    else await this.#client.session(call);
    return address.href;
  }

  // Fails when it is over.
  #connection(address: string, heard: () => void): Promise<never> {
    const socket = new (this.#client.options.WebSocket ?? WebSocket)(address);
    return new Promise((_, failed) => {
      let last = Date.now();
      const cut = (why: string) => {
        clearInterval(timer);
        this.#probe = () => {};
        this.#end.signal.removeEventListener('abort', close);
        socket.onopen = socket.onmessage = socket.onclose = null;
        this.#socket = undefined;
        socket.close();
        failed(networkError(why));
      };
      const close = () => cut('closed');
      const timer = setInterval(() => {
        if (Date.now() - last > SILENCE_MS_MAX) cut('nothing was heard for too long');
        else this.#send({ type: 'ping' });
      }, PING_MS);
      this.#probe = () => {
        const asked = Date.now();
        this.#send({ type: 'ping' });
        setTimeout(() => { if (last < asked) cut('it did not answer'); }, PROBE_MS_MAX);
      };
      this.#end.signal.addEventListener('abort', close);
      socket.onerror = () => {}; // its close follows
      socket.onclose = ({ code, reason }) => cut(`closed with ${code} ${reason}`);
      socket.onopen = () => {
        this.#socket = socket;
        for (const question of this.#questions.values()) this.#pose(question);
        for (const feed of this.#feeds.values()) if (!feed.late) this.#join(feed);
      };
      socket.onmessage = ({ data }) => {
        last = Date.now();
        heard();
        this.#take(JSON.parse(data));
      };
    });
  }

  #cut(error: Error, hopeless: boolean, retryMs: number): void {
    for (const feed of this.#feeds.values()) this.#lost(feed, error, retryMs);
    for (const [id, question] of this.#questions) {
      if (!question.feed && !hopeless) continue;
      this.#questions.delete(id);
      question.failed(error);
    }
  }

  #over(error?: Error): void {
    if (this.#end.signal.aborted) return;
    const reason = error ?? networkError('the connection was closed');
    this.#end.abort(reason);
    for (const feed of this.#feeds.values()) feed.end(error);
    for (const question of this.#questions.values()) question.failed(reason);
    this.#questions.clear();
  }
}

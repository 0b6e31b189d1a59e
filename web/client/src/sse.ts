// SPDX-License-Identifier: Apache-2.0
//
// Server-sent events over fetch: a stream that comes back by itself. After a cut it goes on behind the newest fact
// (Last-Event-ID); a silence longer than three keep-alives counts as a cut. Facts are never lost or repeated; previews
// of an earlier connection are void, which `connection.open` tells.

import { FermataError, networkError } from './error.js';
import { backoff, passing, sleep } from './retry.js';
import type { ThreadEvent } from './wire.js';

const SILENCE_MS_MAX = 45_000; // the server sends a comment every 15 s

// Cuts bytes into the data of frames, however they are split. Line ends are LF, CRLF or CR.
export class Frames {
  #rest = '';
  #data: string[] = [];
  readonly #decoder = new TextDecoder();

  feed(bytes: Uint8Array): string[] {
    const lines = (this.#rest + this.#decoder.decode(bytes, { stream: true })).split(/\r\n|\n|\r(?!$)/);
    this.#rest = lines.pop()!;
    const frames: string[] = [];
    for (const line of lines) {
      if (line.startsWith('data:')) this.#data.push(line.slice(line[5] === ' ' ? 6 : 5));
      if (line || !this.#data.length) continue;
      frames.push(this.#data.join('\n'));
      this.#data = [];
    }
    return frames;
  }
}

export interface Start {
  after?: number; // goes on behind this fact; 0: from the first one; absent: from the newest run on
  runId?: string; // from this run on
  signal?: AbortSignal;
}

// Asks for the stream.
export type Open = (headers: Record<string, string>, signal: AbortSignal) => Promise<Response>;

// One connection: null when it is open, then its events. Fails when it is over.
async function* connection(open: Open, headers: Record<string, string>, outer?: AbortSignal): AsyncGenerator<ThreadEvent | null> {
  const control = new AbortController();
  let timer: ReturnType<typeof setTimeout>;
  const end = (why?: unknown) => { // also while the reader is elsewhere, and may never come back
    clearTimeout(timer);
    control.abort(why);
  };
  const heard = () => {
    clearTimeout(timer);
    timer = setTimeout(end, SILENCE_MS_MAX, 'nothing was heard for too long');
  };
  outer?.addEventListener('abort', end);
  try {
    heard();
    const response = await open(headers, control.signal);
    yield null;
    const frames = new Frames();
    const reader = response.body!.getReader();
    for (;;) {
      heard();
      const { done, value } = await reader.read();
      if (done) throw networkError('the stream ended');
      for (const text of frames.feed(value)) yield JSON.parse(text);
    }
  } catch (error) {
    throw error instanceof FermataError ? error : networkError(error);
  } finally {
    outer?.removeEventListener('abort', end);
    end();
  }
}

export async function* streamEvents(open: Open, threadId: string, signal?: AbortSignal): AsyncGenerator<ThreadEvent> {
  let last: number | undefined;
  for (let attempt = 0; !signal?.aborted; attempt++) {
    try {
      const headers: Record<string, string> = last === undefined ? {} : { 'last-event-id': String(last) };
      for await (const event of connection(open, headers, signal)) {
        if (signal?.aborted) return;
        if (event && 'seq' in event) last = event.seq;
        if (event) attempt = 0;
        yield event ?? { type: 'connection.open', threadId };
      }
    } catch (error) {
      if (signal?.aborted) return;
      if (!passing(error)) throw error;
      const retryMs = backoff(attempt);
      yield { type: 'connection.lost', threadId, data: { error: error as Error, retryMs } };
      await sleep(retryMs, signal);
    }
  }
}

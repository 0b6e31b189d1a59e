// SPDX-License-Identifier: Apache-2.0
//
// Files on their way up, for one message that is being written. A file is looked at before it goes (the server's limits),
// goes with another one at a time, tells how far it is, and can be taken out at any point. What failed for a reason that
// may pass can be tried again; it has the same key then, so that nothing is stored twice.
//
//     add ──► waiting ──► sending ──► done
//                 ▲          └──► failed ── retry ─┐
//                 └────────────────────────────────┘
//
// To add a reason: a case where `why` is set, its text.

import { signal, type Signal } from '@preact/signals';
import { newId, type Attachment } from '@fermata/client';
import type { Text } from './i18n.js';
import { base, refused } from './link.js';
import { jsonOf } from './turns.js';

export interface Upload {
  key: string;
  name: string;
  size: number;
  state: 'waiting' | 'sending' | 'done' | 'failed';
  sent: Signal<number>; // 0 to 1; by itself, since it changes often
  why?: Text; // it failed
  text?: string; // in the words of the server
  picture: string; // address of what it shows, if it does
  form?: FormData; // as it goes up
  request?: XMLHttpRequest;
  attachment?: Attachment;
}
type Files = Signal<Upload[]>;

const FILES_MAX = 32; // with one message
const AT_A_TIME = 2; // the rest of the page needs connections too
const PICTURE = /^image\/(png|jpeg|gif|webp)$/;

const FILES = `${base}/api/v1/agent/attachments`;

// By its plain address: it is good as long as we are signed in, a signed one is not.
export const addressOf = (id: string): string => `${FILES}/${id}`;

export const doneOf = (files: Files): Attachment[] => files.value.flatMap(({ attachment }) => attachment ?? []);

export function add(files: Files, list: Iterable<File>, threadId: string, bytesMax: number): void {
  for (const file of list) {
    const { name, size, type } = file, form = new FormData();
    form.set('threadId', threadId);
    form.set('file', file);
    const why = files.value.length >= FILES_MAX ? 'attach.many' : size > bytesMax ? 'attach.large' : size ? undefined : 'attach.empty';
    const picture = PICTURE.test(type) ? URL.createObjectURL(file) : '';
    files.value = [...files.value, { key: newId('key_'), name, size, state: why ? 'failed' : 'waiting', sent: signal(0), why, picture, form }];
  }
  next(files);
}

// Those that were up before a reload, or that come back with a message.
export function restore(files: Files, attachments: Attachment[] = []): void {
  const old = attachments.map((attachment): Upload => {
    const { id: key, filename: name, size, mimeType } = attachment;
    return { key, name, size, state: 'done', sent: signal(1), attachment, picture: PICTURE.test(mimeType) ? addressOf(key) : '' };
  });
  files.value = [...old, ...files.value];
}

export function remove(files: Files, { key, request, picture }: Upload): void {
  files.value = files.value.filter((one) => one.key !== key);
  request?.abort();
  URL.revokeObjectURL(picture);
}

export function retry(files: Files, { key, sent }: Upload): void {
  sent.value = 0;
  change(files, key, { state: 'waiting', why: undefined });
}

function change(files: Files, key: string, how: Partial<Upload>): void {
  files.value = files.value.map((one) => (one.key === key ? { ...one, ...how } : one));
  next(files);
}

// A place has become free, or a file has come.
function next(files: Files): void {
  const one = files.value.find(({ state }) => state === 'waiting');
  if (!one || files.value.filter(({ state }) => state === 'sending').length >= AT_A_TIME) return;
  const request = new XMLHttpRequest();
  request.upload.onprogress = ({ loaded, total }) => { one.sent.value = loaded / total; };
  request.onloadend = () => {
    const { status, responseText } = request;
    const { attachment, detail } = (jsonOf(responseText) ?? {}) as { attachment?: Attachment; detail?: string };
    if (status === 401) refused();
    change(files, one.key, attachment ? { state: 'done', attachment } : {
      state: 'failed', why: !status ? 'attach.network' : status === 415 ? 'attach.type' : 'say.failed', text: detail ?? `HTTP ${status}`,
    });
  };
  request.open('POST', FILES);
  request.setRequestHeader('idempotency-key', one.key);
  request.send(one.form);
  change(files, one.key, { state: 'sending', request });
}

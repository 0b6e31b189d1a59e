// SPDX-License-Identifier: Apache-2.0
//
// Files for the message that is being written: by button (on a phone it offers the camera), drop or paste; and how far
// each is.

import { useEffect, useState } from 'preact/hooks';
import { agents } from '../agents.js';
import type { Draft } from '../compose.js';
import { bytes, t } from '../i18n.js';
import { add, remove, retry } from '../uploads.js';
import { Icon } from './icon.js';

const bytesMax = (): number => agents.value[0]?.limits.upload ?? Infinity; // not known yet: the server will say

// The whole page takes what is dropped, so that a near miss does not leave it.
export function Attach({ draft }: { draft: Draft }) {
  const [over, set] = useState(false);
  const attach = (files: FileList) => add(draft.files, files, draft.to(), bytesMax());
  useEffect(() => {
    const end = new AbortController();
    for (const type of ['dragover', 'dragleave', 'drop', 'paste']) addEventListener(type, (event) => {
      const { clipboardData, dataTransfer = clipboardData, relatedTarget } = event as DragEvent & ClipboardEvent;
      const { types, files } = dataTransfer!;
      if (!types.includes('Files') || (clipboardData && types.includes('text/plain'))) return; // a table comes as a picture too
      event.preventDefault();
      set(type === 'dragover' || !!relatedTarget);
      if (type === 'drop' || clipboardData) attach(files);
    }, end);
    return () => end.abort();
  }, [draft]);
  return (
    <>
      {over && <p class="drop" data-testid="drop">{t('attach.add')}</p>}
      <button class="plain attach" title={t('attach.add')} onClick={(event) => (event.currentTarget.nextSibling as HTMLElement).click()}><Icon name="paperclip" /></button>
      <input type="file" hidden multiple data-testid="attach" onChange={({ currentTarget }) => {
        attach(currentTarget.files!);
        currentTarget.value = ''; // the same file can be picked again
      }} />
    </>
  );
}

export function Attached({ draft: { files } }: { draft: Draft }) {
  return files.value.length > 0 && (
    <ul class="uploads">
      {files.value.map((one) => {
        const { key, name, size, state, sent, why, text = '', picture, request } = one;
        const button = (label: string, icon: string, act: typeof retry) => (
          <button class="plain small" title={`${label} ${name}`} onClick={() => act(files, one)}><Icon name={icon} /></button>
        );
        return (
          <li key={key} data-testid="upload" data-state={state}>
            {picture ? <img src={picture} alt="" /> : <Icon name={why ? 'circle-alert' : 'file'} />}
            <div>
              <p dir="auto" title={name}>{name}</p>
              {why ? <p class="error" role="alert">{t(why, { max: bytes(bytesMax()), text })}</p> : <p class="quiet">{bytes(size)}</p>}
              {!why && state !== 'done' && <progress value={sent} aria-label={name} />}
            </div>
            {why && request && button(t('say.retry'), 'rotate-ccw', retry)}
            {button(t('attach.remove'), 'x', remove)}
          </li>
        );
      })}
    </ul>
  );
}

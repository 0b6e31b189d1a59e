// SPDX-License-Identifier: Apache-2.0
//
// What can be done with a whole conversation, from its row in the list and from the header: a menu, which the style sheet
// puts beside its button. thread-dialog.tsx renames and deletes it.

import { signal } from '@preact/signals';
import type { FermataError } from '@fermata/client';
import { t } from '../i18n.js';
import { base } from '../link.js';
import { Icon } from './icon.js';

export interface Named { threadId: string; title: string }
type Doing = 'thread.rename' | 'say.delete'; // by its name

export const managed = signal<(Named & { doing: Doing; error?: string }) | undefined>(undefined);
export const manage = (thread: Named, doing: Doing): void => { managed.value = { ...thread, doing }; };
export const closeManaged = (): void => { managed.value = undefined; };

const FORMATS = { md: 'Markdown', json: 'JSON' };

export function sayError(error: unknown): string {
  const { code, detail } = error as FermataError;
  return code === 'network' ? t('say.offline') : detail ?? String(error);
}

// `place` tells several menus of one conversation apart.
export function ThreadMenu({ thread, place }: { thread: Named; place: string }) {
  const { threadId, title } = thread, id = `menu-${place}-${threadId}`;
  return (
    <>
      <button class="plain" popovertarget={id} aria-label={t('threads.menu', { title })}><Icon name="ellipsis" /></button>
      <div class="menu" id={id} popover="auto" onClickCapture={(event) => event.currentTarget.hidePopover()}>
        <button onClick={() => manage(thread, 'thread.rename')}><Icon name="pencil" />{t('thread.rename')}</button>
        {Object.entries(FORMATS).map(([format, name]) => (
          <a href={`${base}/api/v1/agent/threads/${encodeURIComponent(threadId)}/export?format=${format}`} download><Icon name="download" />{t('thread.export', { name })}</a>
        ))}
        <button class="error" onClick={() => manage(thread, 'say.delete')}><Icon name="trash-2" />{t('say.delete')}</button>
      </div>
    </>
  );
}

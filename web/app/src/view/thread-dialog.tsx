// SPDX-License-Identifier: Apache-2.0
//
// The dialogs that rename and delete a conversation.

import { t } from '../i18n.js';
import { remove, rename } from '../threads.js';
import { Dialog } from './dialog.js';
import { closeManaged, managed, sayError } from './thread-menu.js';

const TITLE_CHARS_MAX = 130; // 400 bytes, if all are Chinese

export function ThreadDialog() {
  const one = managed.value!, { threadId, title, doing, error } = one, label = t(doing);
  const act = (event: Event) => {
    event.preventDefault();
    const [field] = event.currentTarget as HTMLFormElement;
    (doing === 'say.delete' ? remove(threadId) : rename(threadId, (field as HTMLInputElement).value.trim()))
      .then(closeManaged, (reason: unknown) => { managed.value = { ...one, error: sayError(reason) }; });
  };
  return (
    <Dialog label={label} onClose={closeManaged}>
      <form class="stack" onSubmit={act}>
        {doing === 'say.delete' ? <p dir="auto">{t('thread.deleteSure', { title })}</p>
          : <input aria-label={label} defaultValue={title} maxLength={TITLE_CHARS_MAX} required autofocus dir="auto" />}
        {error && <p class="error" role="alert">{t('say.failed', { text: error })}</p>}
        <footer><button type="button" onClick={closeManaged}>{t('say.cancel')}</button><button class={doing === 'say.delete' ? 'danger' : 'primary'}>{label}</button></footer>
      </form>
    </Dialog>
  );
}

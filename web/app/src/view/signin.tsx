// SPDX-License-Identifier: Apache-2.0
//
// Signing in with an API key: the whole page for somebody new, a dialog for somebody whose key was revoked while they
// were here. The key goes into one request, and is kept nowhere. Whoever comes back as the same person finds everything as it
// was; for somebody else the page begins anew.

import { signal } from '@preact/signals';
import type { TargetedEvent } from 'preact';
import { useState } from 'preact/hooks';
import type { FermataError } from '@fermata/client';
import { t } from '../i18n.js';
import { access, signIn } from '../link.js';
import { Dialog } from './dialog.js';
import { sayError } from './thread-menu.js';

const asking = signal(false);
export const askKey = (): void => { asking.value = true; };

function Form() {
  const [shown, show] = useState(false);
  const [error, tell] = useState<string | undefined>(''); // undefined while the server is asked
  const submit = async (event: TargetedEvent<HTMLFormElement>) => {
    event.preventDefault();
    const field = event.currentTarget.elements[0] as HTMLInputElement;
    tell(undefined);
    try {
      await signIn(field.value.trim());
      asking.value = false;
    } catch (reason) {
      tell((reason as FermataError).status === 401 ? t('sign.wrong') : t('say.failed', { text: sayError(reason) }));
      field.focus();
    }
  };
  return (
    <form class="stack" onSubmit={(event) => void submit(event)}>
      <label class="entry">
        {t('sign.key')}
        <input id="api-key" type={(shown ? 'text' : 'password') as 'password'} autocomplete="off" autocapitalize="off" spellcheck={false} autofocus required
          {...(error && { 'aria-invalid': true, 'aria-describedby': 'api-key-note' })} />
      </label>
      <label><input type="checkbox" onChange={({ currentTarget }) => show(currentTarget.checked)} /> {t('sign.show')}</label>
      {error && <p id="api-key-note" class="error" role="alert">{error}</p>}
      <button class="primary" disabled={error === undefined}>{t('sign.in')}</button>
      <p class="quiet">{t('sign.how')} <code>fermata key add --user NAME</code></p>
    </form>
  );
}

export const SignInPage = () => (
  <main class="sign"><section><img src="icon.svg" alt="" width="48" height="48" /><h1>{t('app.name')}</h1><Form /></section></main>
);

export const SignInDialog = () => (asking.value && access.value === 'out'
  ? <Dialog label={t('sign.in')} onClose={() => { asking.value = false; }}><Form /></Dialog>
  : null);

// SPDX-License-Identifier: Apache-2.0
//
// One line over the page when something is wrong between us and the server: no connection for two seconds, or nobody
// signed in any more; or the texts of the language that was chosen could not be fetched. It goes two seconds after all is well again.
//
// To add a state: a row in STATES.

import { effect, signal } from '@preact/signals';
import { number, t, wantedTexts } from '../i18n.js';
import { access, network, nudge, session } from '../link.js';
import { outbox } from '../outbox.js';
import { Icon } from './icon.js';
import { Missing } from './part.js';
import { askKey } from './signin.js';

const WORTH_A_WORD_MS = 2000;

// Icon and text; what a button says and does.
const STATES = {
  out: ['lock', 'sign.again', 'sign.in', askKey],
  lost: ['wifi-off', 'banner.lost', 'say.retry', nudge],
  back: ['circle-check', 'banner.back'],
} as const;

const shown = signal<'lost' | 'back' | undefined>(undefined);
effect(() => {
  const lost = network.value === 'lost', was = shown.peek();
  if (was && !lost) shown.value = 'back';
  const timer = setTimeout(() => { shown.value = lost ? 'lost' : undefined; }, was && lost ? 0 : WORTH_A_WORD_MS);
  return () => clearTimeout(timer);
});

export function Banner() {
  const state = access.value === 'out' && session.value ? 'out' : shown.value;
  if (!state) return wantedTexts.value.why.value ? <Missing of={wantedTexts.value} /> : null;
  const [icon, text, name, act] = STATES[state];
  const unsent = outbox.value.filter(({ state: one }) => one === 'waiting' || one === 'sending').length;
  return (
    <div class="banner" data-testid="banner" data-state={state} role="alert">
      <Icon name={icon} />
      <span>{t(text)}{state === 'lost' && unsent > 0 && <strong> {t('banner.unsent', { n: number(unsent) })}</strong>}</span>
      {name && <button onClick={act}>{t(name)}</button>}
    </div>
  );
}

// SPDX-License-Identifier: Apache-2.0
//
// A part of the page that is fetched when it is first drawn. When that fails it says so in its place, with a way on; what
// was typed anywhere is kept (drafts.ts), also when that way is to load the page again.
//
// To add one: part() around its import, and what stands around the words that it has failed.

import type { ComponentChildren, ComponentType } from 'preact';
import { useLayoutEffect } from 'preact/hooks';
import { t } from '../i18n.js';
import { later, type Later } from '../later.js';
import { Icon } from './icon.js';

export interface Around { failed: boolean; children: ComponentChildren }

export function Missing({ of: { why, begin } }: { of: Pick<Later<unknown>, 'why' | 'begin'> }) {
  const old = why.value === 'old';
  return (
    <div class="log-failed" role="alert" data-testid="part-failed" data-state={why.value}>
      <Icon name="circle-alert" />
      <p>{t(old ? 'part.old' : 'part.lost')}</p>
      <button type="button" onClick={() => (old ? location.reload() : void begin())}><Icon name="rotate-ccw" />{t(old ? 'part.reload' : 'say.retry')}</button>
    </div>
  );
}

// `isThere` subscribes who asks.
export function part<P extends object>(load: () => Promise<ComponentType<P>>, Place: ComponentType<P & Around>): ComponentType<P> & { isThere(): boolean } {
  const what = later(load);
  const Part = (props: P) => {
    const There = what.it.value, failed = !!what.why.value;
    useLayoutEffect(() => void what.begin(), []);
    return There ? <There {...props} /> : <Place {...props} failed={failed}>{failed ? <Missing of={what} /> : <p class="quiet late">{t('threads.loading')}</p>}</Place>;
  };
  return Object.assign(Part, { isThere: () => !!what.it.value });
}

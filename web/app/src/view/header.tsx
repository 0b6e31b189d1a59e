// SPDX-License-Identifier: Apache-2.0
//
// The head of the page: where we are, what the conversation has used, and what can be done with it.

import { current } from '../conversation.js';
import { money, number, t } from '../i18n.js';
import { route } from '../route.js';
import { title } from '../threads.js';
import { Icon } from './icon.js';
import { listShown, toggleList } from './sidebar.js';
import { manage, ThreadMenu } from './thread-menu.js';

// What stands over the page, and in the title of the window.
export function heading(): string {
  const { view, threadId } = route.value;
  return view !== 'chat' ? t(view === 'inbox' ? 'inbox.title' : 'settings.title') : threadId ? title.value || t('threads.new') : t('app.name');
}

export function Header() {
  const { view, threadId } = route.value, conversation = view === 'chat' ? current.value : undefined;
  const named = threadId && threadId === conversation?.id && title.value ? { threadId, title: title.value } : undefined;
  const used = conversation?.totals.value;
  return (
    <header class="head">
      <button class="plain" onClick={toggleList} title={t('frame.list')} aria-expanded={listShown.value}><Icon name="menu" /></button>
      <hgroup>
        <h1 dir="auto">{named ? <button class="plain" onClick={() => manage(named, 'thread.rename')} title={t('thread.rename')}>{named.title}</button> : heading()}</h1>
        {used && (
          <p class="quiet" data-testid="totals" title={t('thread.totals')}>
            {t('usage.line', { in: number(used.inputTokens), out: number(used.outputTokens) })}{used.costs.map(({ cost, currency }) => ` · ${money(cost, currency)}`)}
          </p>
        )}
      </hgroup>
      {named && <ThreadMenu thread={named} place="head" />}
    </header>
  );
}

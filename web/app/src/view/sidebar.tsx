// SPDX-License-Identifier: Apache-2.0
//
// The list of conversations with what stands around it: a new one, search, the inbox, settings, who is here. Beside the
// page where there is room, else a drawer over it.

import { computed, effect, signal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import type { Thread } from '@fermata/client';
import { number, t } from '../i18n.js';
import { access, mayAnswer, mine, network, open, session, signOut } from '../link.js';
import { outbox } from '../outbox.js';
import { prefs } from '../prefs.js';
import { hrefOf, route, type Route } from '../route.js';
import { failed, loadMore, more, refresh, search, threads } from '../threads.js';
import { wordsOf } from '../turns.js';
import { Dialog } from './dialog.js';
import { Icon } from './icon.js';
import { sayError, ThreadMenu } from './thread-menu.js';
import { Time } from './turn.js';

const small = matchMedia('(max-width: 800px)'), narrow = signal(small.matches), drawer = signal(false);
small.onchange = () => { narrow.value = small.matches; };
effect(() => { // whoever has gone somewhere wants to see it
  void route.value;
  drawer.value = false;
});

const which = computed(() => (narrow.value ? drawer : prefs.sidebar));
export const listShown = computed(() => which.value.value);
export const toggleList = (): void => { which.value.value = !listShown.value; };

export function Sidebar() {
  if (!listShown.value) return null;
  const label = t('frame.list'), side = <nav class="side" aria-label={label}><Content /></nav>;
  return narrow.value ? <Dialog kind="drawer" label={label} onClose={() => { drawer.value = false; }}>{side}</Dialog> : side;
}

const Place = ({ to, icon, children }: { to: Route; icon: string; children: ComponentChildren }) => <a {...linkTo(to)} class="place"><Icon name={icon} />{children}</a>;

function linkTo(to: Route) {
  const href = hrefOf(to);
  return { href, 'aria-current': href === hrefOf({ ...route.value, asked: '' }) ? 'page' as const : undefined };
}

function Content() {
  const { user, via } = session.value!, n = mine.value.length;
  const [error, fail] = useState('');
  return (
    <>
      <a class="brand" href="#/"><img src="icon.svg" alt="" width="26" />{t('app.name')}</a>
      <Place to={{ view: 'chat' }} icon="square-pen">{t('threads.new')}</Place>
      <input type="search" aria-label={t('threads.search')} placeholder={t('threads.search')} value={search.value} onInput={(event) => { search.value = event.currentTarget.value; }} />
      <List />
      <Place to={{ view: 'inbox' }} icon="inbox">
        {t('inbox.title')}{n > 0 && <span class="count" data-testid="inbox-count">{number(n)}<span class="unseen"> {t('state.waiting')}</span></span>}
      </Place>
      <Place to={{ view: 'settings' }} icon="settings">{t('settings.title')}</Place>
      <div class="who quiet">
        <Icon name="user" /><span dir="auto">{user}</span>
        {via === 'session' && <button class="plain" onClick={() => signOut().catch((reason: unknown) => fail(sayError(reason)))}>{t('sign.out')}</button>}
      </div>
      {error && <p class="error" role="alert">{t('say.failed', { text: error })}</p>}
    </>
  );
}

function List() {
  const list = threads.value;
  const unsent = search.value ? [] : outbox.value.filter(({ begins, state, threadId }) => begins && (state === 'failed' || network.value === 'lost') && !list?.some((one) => one.threadId === threadId));
  return (
    <div class="threads" data-testid="threads">
      {failed.value ? access.value === 'in' && <p role="alert">{t('threads.failed')} <button class="quiet-button" onClick={refresh}>{t('say.retry')}</button></p>
        : !(list?.length || unsent.length) && <p class="quiet late">{t(!list ? 'threads.loading' : search.value ? 'threads.noMatch' : 'threads.none')}</p>}
      <ul>
        {unsent.map(({ threadId, message }) => <Row key={threadId} threadId={threadId!} updatedAt={message!.createdAt} title={wordsOf(message!)} />)}
        {list?.map((thread) => <Row key={thread.threadId} {...thread} menu />)}
      </ul>
      {more.value && <button class="quiet-button" onClick={loadMore}>{t('say.more')}</button>}
    </div>
  );
}

function Row({ threadId, updatedAt, title: own, menu }: Pick<Thread, 'threadId' | 'updatedAt' | 'title'> & { menu?: boolean }) {
  const title = own || t('threads.new'), asked = open.value.filter((one) => one.threadId === threadId);
  return (
    <li data-testid="thread">
      <a {...linkTo({ view: 'chat', threadId })}>
        <span class="thread-title" dir="auto">{title}</span>
        <small><Time at={updatedAt} />{asked.length > 0 && (asked.some(mayAnswer) ? <strong> · {t('state.waiting')}</strong> : ` · ${t('state.waitingOther')}`)}</small>
      </a>
      {menu && <ThreadMenu thread={{ threadId, title }} place="row" />}
    </li>
  );
}

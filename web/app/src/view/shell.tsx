// SPDX-License-Identifier: Apache-2.0
//
// The frame: the list of conversations, the head, and below it one of the views. Dialogs stand at its end.

import { useEffect } from 'preact/hooks';
import { announced } from '../announce.js';
import { current } from '../conversation.js';
import { focusComposer } from '../hotkeys.js';
import { t } from '../i18n.js';
import { access, session } from '../link.js';
import { go, route } from '../route.js';
import { focusAsked } from './ask.js';
import { Banner } from './banner.js';
import { Composer } from './composer.js';
import { Dock } from './dock.js';
import { Greeting } from './greeting.js';
import { Header } from './header.js';
import { Help } from './help.js';
import { Inbox } from './inbox.js';
import { Log, showAsked } from './log.js';
import { Settings } from './settings.js';
import { Sidebar } from './sidebar.js';
import { SignInDialog, SignInPage } from './signin.js';
import { ThreadDialog } from './thread-menu.js';

function Chat() {
  const conversation = current.value, { threadId, asked } = route.value;
  const ready = conversation?.phase.value === 'ready';
  useEffect(() => { // somebody was sent here to answer
    if (!ready || !asked || threadId !== conversation.id) return;
    showAsked(asked, () => focusAsked(asked));
    go({ view: 'chat', threadId }, { replace: true });
  }, [ready, asked, threadId]);
  return (
    <>
      {conversation ? <Log key={conversation.id} conversation={conversation} /> : threadId ? <main class="scroll" /> : <Greeting />}
      {conversation && <Dock conversation={conversation} />}
      <Composer />
    </>
  );
}

const VIEWS = { chat: Chat, inbox: Inbox, settings: Settings };

function Frame() {
  const { view } = route.value, View = VIEWS[view];
  return (
    <div class="shell">
      {view === 'chat' && <button class="skip" onClick={focusComposer}>{t('frame.skip')}</button>}
      <Sidebar />
      <div class="pane">
        <Header />
        <Banner />
        <View />
      </div>
      <ThreadDialog />
      <SignInDialog />
      <Help />
    </div>
  );
}

const Checking = () => (
  <div class="pane">
    <Banner />
    <main class="greeting late"><h1>{t('app.name')}</h1><p class="quiet">{t('threads.loading')}</p></main>
  </div>
);

export const Shell = () => (
  <>
    {access.value === 'checking' ? <Checking /> : session.value ? <Frame /> : <SignInPage />}
    <p class="unseen" role="status" data-testid="status">{announced.value}</p>
  </>
);

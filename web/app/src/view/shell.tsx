// SPDX-License-Identifier: Apache-2.0
//
// The frame: the list of conversations, the head, and below it one of the views. Dialogs stand at its end. What is not the
// chat is fetched when it is opened.

import { useEffect } from 'preact/hooks';
import { announced } from '../announce.js';
import { current } from '../conversation.js';
import { focusComposer, helping } from '../hotkeys.js';
import { canSpeak, t, wantedTexts } from '../i18n.js';
import { access, session } from '../link.js';
import { go, route } from '../route.js';
import { focusAsked } from './ask.js';
import { Banner } from './banner.js';
import { Composer } from './composer.js';
import { Dialog } from './dialog.js';
import { Dock } from './dock.js';
import { Greeting } from './greeting.js';
import { Header } from './header.js';
import { Log, showAsked } from './log.js';
import { part, type Around } from './part.js';
import { Sidebar } from './sidebar.js';
import { SignInDialog, SignInPage } from './signin.js';
import { closeManaged, managed } from './thread-menu.js';

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

const Page = ({ children }: Around) => <main class="scroll"><div class="page">{children}</div></main>;
const Inbox = part(() => import('./inbox.js').then((it) => it.Inbox), Page);
const Settings = part(() => import('./settings.js').then((it) => it.Settings), Page);
const VIEWS = { chat: Chat, inbox: Inbox, settings: Settings };

const closeHelp = (): void => { helping.value = false; };
const Help = part(() => import('./help.js').then((it) => it.Help), ({ failed, children }) => failed && <Dialog label={t('keys.title')} onClose={closeHelp}>{children}</Dialog>);
const ThreadDialog = part(() => import('./thread-dialog.js').then((it) => it.ThreadDialog), ({ failed, children }) => failed && <Dialog label={t(managed.value!.doing)} onClose={closeManaged}>{children}</Dialog>);

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
      {managed.value && <ThreadDialog />}
      <SignInDialog />
      {helping.value && <Help />}
    </div>
  );
}

const Checking = () => (
  <div class="pane">
    <Banner />
    <main class="greeting late"><h1>{t('app.name')}</h1><p class="quiet">{t('threads.loading')}</p></main>
  </div>
);

// No words are there yet, in any language.
function Speechless() {
  const { why, begin } = wantedTexts.value;
  return why.value && (
    <main class="greeting">
      <div role="alert" data-testid="speechless">
        <p>页面没有完整加载。写好的内容都在。</p>
        <p>The page was not loaded completely. What you have written is kept.</p>
        <button type="button" onClick={() => (why.value === 'old' ? location.reload() : void begin())}>重试 · Try again</button>
      </div>
    </main>
  );
}

export const Shell = () => (!canSpeak.value ? <Speechless /> : (
  <>
    {access.value === 'checking' ? <Checking /> : session.value ? <Frame /> : <SignInPage />}
    <p class="unseen" role="status" data-testid="status">{announced.value}</p>
  </>
));

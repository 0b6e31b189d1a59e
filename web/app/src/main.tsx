// SPDX-License-Identifier: Apache-2.0
//
// The page begins here. State lives in modules of signals, each of which says what it is about: link (the server, who we
// are), conversation (what is open), outbox, threads, route, prefs. Components in view/ draw them.

import './css/app.css';
import { effect } from '@preact/signals';
import { render } from 'preact';
import { begin as follow } from './conversation.js';
import { begin as keys } from './hotkeys.js';
import { canSpeak, lang } from './i18n.js';
import { tryAgain } from './later.js';
import { access, enter, network } from './link.js';
import { begin as tell } from './notify.js';
import { begin as send } from './outbox.js';
import { begin as press } from './press.js';
import { begin as list } from './threads.js';
import { heading } from './view/header.js';
import { Shell } from './view/shell.js';

effect(() => { document.documentElement.lang = lang.value; });

render(<Shell />, document.body);

let begun = false;
effect(() => {
  if (access.value !== 'in' || !canSpeak.value || begun) return;
  begun = true;
  queueMicrotask(() => {
    send();
    follow();
    list();
    tell(heading);
    keys();
  });
});
effect(() => { if (network.value === 'open') tryAgain(); });
for (const type of ['dragover', 'drop']) addEventListener(type, (event) => { // a file that misses its place does not take ours
  if ((event as DragEvent).dataTransfer!.types.includes('Files')) event.preventDefault();
});
press();
void enter();

// SPDX-License-Identifier: Apache-2.0
//
// The agents of the server, the one that is meant by default first: what they offer to begin with, and their limits.
// Asked for once for each language, as soon as the server can be heard.

import { effect, signal } from '@preact/signals';
import type { Agent } from '@fermata/client';
import { lang } from './i18n.js';
import { access, client, network } from './link.js';

export const agents = signal<Agent[]>([]); // empty: not known yet

let asking = false, known = '';

effect(() => {
  const language = lang.value;
  if (access.value !== 'in' || network.value === 'lost' || (agents.value.length && known === language) || asking) return;
  asking = true;
  client.agents({ language }).then((list) => { asking = false; known = language; agents.value = list; }, () => { asking = false; }); // again with the next connection
});

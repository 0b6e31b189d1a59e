// SPDX-License-Identifier: Apache-2.0
//
// The agents of the server, the one that is meant by default first: what they offer to begin with, and their limits.
// Asked for once, as soon as the server can be heard.

import { effect, signal } from '@preact/signals';
import type { Agent } from '@fermata/client';
import { access, client, network } from './link.js';

export const agents = signal<Agent[]>([]); // empty: not known yet

let asking = false;

effect(() => {
  if (access.value !== 'in' || network.value === 'lost' || agents.value.length || asking) return;
  asking = true;
  client.agents().then((list) => { agents.value = list; }, () => {}).finally(() => { asking = false; }); // again with the next connection
});

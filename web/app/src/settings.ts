// SPDX-License-Identifier: Apache-2.0
//
// What the server keeps for the page of settings: agents, their settings for those who may change them, channels for who
// runs it, and permissions.
// It is read again and again. What was read while something was changed is not taken: it may be older than the change.

import { signal } from '@preact/signals';
import type { Channel, Grant, Settings } from '@fermata/client';
import { agents } from './agents.js';
import { client, may } from './link.js';

export const settings = signal<{ [agent: string]: Settings }>({});
export const channels = signal<Channel[]>([]);
export const grants = signal<Grant[] | undefined>(undefined); // undefined: not known yet

let changing = 0, changes = 0; // under way, done

async function grantsFrom(cursor?: string): Promise<Grant[]> {
  const page = await client.grants({ cursor });
  return page.next ? [...page.grants, ...await grantsFrom(page.next)] : page.grants;
}

export async function load(): Promise<void> {
  const before = changes, list = await client.agents(), given = await grantsFrom();
  const runs = may.value.has('operator'), chats = runs ? await client.channels() : [];
  const all = runs ? await Promise.all(list.map(async ({ name }) => [name, await client.settings(name)] as const)) : [];
  if (changing || before !== changes) return;
  agents.value = list;
  settings.value = Object.fromEntries(all);
  channels.value = chats;
  grants.value = given;
}

async function changed<T>(change: Promise<T>): Promise<T> {
  changing++;
  try {
    return await change;
  } finally {
    changing--;
    changes++;
  }
}

export async function change(agent: string, what: Partial<Settings>): Promise<void> {
  const now = await changed(client.changeSettings(agent, what));
  if (!changing) settings.value = { ...settings.value, [agent]: now };
}

// One row; the others as the server has them now. '' takes the row away.
export async function changePolicy(agent: string, tool: string, verdict: string): Promise<void> {
  const { confirmPolicy } = await client.settings(agent);
  await change(agent, { confirmPolicy: { ...confirmPolicy, [tool]: verdict || undefined } as Settings['confirmPolicy'] });
}

export async function revoke(grantId: string): Promise<void> {
  await changed(client.revoke(grantId));
  grants.value = grants.value?.filter((one) => one.grantId !== grantId);
}

// SPDX-License-Identifier: Apache-2.0
//
// What this browser remembers of its own: how the page looks and behaves here. Written through to local storage, and
// taken over from other tabs at once. Without storage (private windows of some browsers) it lasts as long as the tab.
//
// To add a preference: a row in DEFAULTS.

import { effect, signal, type Signal } from '@preact/signals';
import { keep } from './keep.js';

const DEFAULTS = {
  language: 'system' as 'system' | 'zh-CN' | 'en',
  theme: 'system' as 'system' | 'light' | 'dark',
  enterSends: true,
  notify: false,
  sidebar: true,
};
type Prefs = typeof DEFAULTS;

const stored = keep.get<Partial<Prefs>>('prefs') ?? {};
const entries = Object.entries(DEFAULTS).map(([name, value]) => [name, signal(stored[name as keyof Prefs] ?? value)]);
export const prefs = Object.fromEntries(entries) as { [K in keyof Prefs]: Signal<Prefs[K]> };

const all = (): Prefs => Object.fromEntries(Object.entries(prefs).map(([name, { value }]) => [name, value])) as Prefs;
effect(() => keep.set('prefs', all()));
keep.watch('prefs', () => {
  for (const [name, value] of Object.entries(keep.get<Partial<Prefs>>('prefs') ?? {})) if (name in prefs) prefs[name as keyof Prefs].value = value as never;
});
effect(() => { document.documentElement.dataset['theme'] = prefs.theme.value; });

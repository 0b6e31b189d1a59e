// SPDX-License-Identifier: Apache-2.0
//
// What the page says, in the language of its person. The texts of a language are fetched when it is first wanted; until they
// are there the page goes on in the other one. A component that calls t() while it is drawn is drawn again when the language
// changes.
//
// To add a text: a line in each file of texts/.

import { computed, effect } from '@preact/signals';
import { later } from './later.js';
import { prefs } from './prefs.js';
import type { Text } from './texts/zh-CN.js';

export type { Text };
export type Lang = 'zh-CN' | 'en';

const browsers = (): Lang => (/^zh/i.test(navigator.languages.find((one) => /^(zh|en)\b/i.test(one)) ?? '') ? 'zh-CN' : 'en');

const wanted = computed<Lang>(() => (prefs.language.value === 'system' ? browsers() : prefs.language.value));

const TEXTS = {
  'zh-CN': later(() => import('./texts/zh-CN.js').then((it) => it.default)),
  en: later(() => import('./texts/en.js').then((it) => it.default)),
};
effect(() => void TEXTS[wanted.value].begin());

// The language that is wanted, unless there is only the other one.
export const lang = computed<Lang>(() => {
  const other = wanted.value === 'en' ? 'zh-CN' : 'en';
  return TEXTS[wanted.value].it.value || !TEXTS[other].it.value ? wanted.value : other;
});

const texts = computed(() => TEXTS[lang.value].it.value);
export const canSpeak = computed(() => !!texts.value); // before that t() has no words
export const wantedTexts = computed(() => TEXTS[wanted.value]);

export function t(key: Text, values: { [name: string]: string | number } = {}): string {
  return (texts.value?.[key] ?? '').replace(/\{(\w+)\}/g, (whole, name: string) => String(values[name] ?? whole));
}

// ---- numbers, money, times ----

// Making a format takes longer than drawing a turn.
type Format = new (lang: Lang, how: object) => { format(value: number): string };
const formats: { [name: string]: InstanceType<Format> } = {};
const format = (Kind: unknown, value: number, how: object): string =>
  (formats[lang.value + JSON.stringify(how)] ??= new (Kind as Format)(lang.value, how)).format(value);

export const number = (value: number, how: Intl.NumberFormatOptions = {}): string => format(Intl.NumberFormat, value, how);

export function money(value: number, currency: string): string {
  try {
    return number(value, { style: 'currency', currency, currencyDisplay: 'narrowSymbol', ...(value < 0.01 && { maximumSignificantDigits: 2 }) });
  } catch {
    return `${value} ${currency}`; // not a currency that the browser knows
  }
}

export function bytes(value: number): string {
  const step = Math.min(3, Math.floor(Math.log2(value || 1) / 10));
  return `${number(value / 1024 ** step, { maximumFractionDigits: 1 })} ${['B', 'kB', 'MB', 'GB'][step]}`;
}

export function seconds(ms: number): string {
  const unit = (value: number, name: string) => number(value, { style: 'unit', unit: name, unitDisplay: 'narrow', maximumFractionDigits: ms < 10_000 ? 1 : 0 });
  return ms < 60_000 ? unit(ms / 1000, 'second') : `${unit(Math.floor(ms / 60_000), 'minute')} ${unit(Math.floor(ms / 1000) % 60, 'second')}`;
}

const date = (iso: string, dateStyle?: 'short' | 'full'): string => format(Intl.DateTimeFormat, Date.parse(iso), { dateStyle, timeStyle: 'short' });

// Today by the clock alone.
export const moment = (iso: string): string => date(iso, new Date(iso).toDateString() === new Date().toDateString() ? undefined : 'short');

export const exactly = (iso: string): string => date(iso, 'full');

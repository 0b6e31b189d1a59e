// SPDX-License-Identifier: Apache-2.0
//
// The arguments of a call, as somebody edits them: a field for each, made from its JSON schema, with what was typed read
// back. Pure.
//
// A number is kept as it is written: as a double, 9007199254740993 would be rounded, and 1.0 would become 1.
//
//     {"count":1.0,"to":["a"]}  ──fieldsOf, draft──►  count 1.0 → 2 · to ["a"]  ──argsOf──►  {"count":2,"to":["a"]}
//
// To add a kind of field: a member of Kind, how it is read in fieldsOf, and how it looks in view/edit-args.tsx.

import type { Json } from '@fermata/client';
import type { Text } from './i18n.js';

type Schema = { [key: string]: Json };
type Args = { [name: string]: Value };
type Value = unknown; // JSON with its numbers as they are written
type Kind = 'text' | 'number' | 'boolean' | 'choice' | 'json';

export interface Field {
  name: string;
  kind: Kind;
  about: string;
  required: boolean;
  options: string[]; // of a choice
  first: string | null; // as it came; null: the call does not have it
  blank: string; // what one that is added begins with
  text: string | null; // as it is now
  value: Value;
  problem?: Text;
}

// What was typed, by name, where it is not as it came.
export type Draft = { [name: string]: string | null };

// ---- JSON ----

const { rawJSON, isRawJSON, parse } = JSON as unknown as {
  rawJSON: (text: string) => Value;
  isRawJSON: (value: Value) => boolean;
  parse: (text: string, revive: (key: string, value: Value, context: { source: string }) => Value) => Value;
};

function read(text: string): Value {
  try {
    return parse(text, (_, value, { source }) => (typeof value === 'number' ? rawJSON(source) : value));
  } catch {
    return undefined;
  }
}

const typeOf = (value: Value): string => (isRawJSON(value) ? 'number' : typeof value);
const own = <T>(of: { [name: string]: T }, name: string): T | undefined => (Object.hasOwn(of, name) ? of[name] : undefined);
const words = (value: Value): string => (typeof value === 'string' ? value : JSON.stringify(value, null, 2));

// Characters that show nothing, or change how others are shown, as the server's cards write them. Its brackets cannot be forged.
export const visible = (text: string): string => text.replace(/[\p{C}\u2028\u2029\u3164\u115f\u1160\uffa0⟦⟧]/gu, (one) =>
  (one === '\n' ? one : `⟦U+${one.codePointAt(0)!.toString(16).toUpperCase().padStart(4, '0')}⟧`));

// ---- fields ----

const KINDS: { [type: string]: Kind } = { string: 'text', number: 'number', integer: 'number', boolean: 'boolean' };
const BLANKS: { [type: string]: string } = { boolean: 'false', array: '[]', object: '{}' };

// Those of the call in their order, then what it could have.
export function fieldsOf(schema: Schema, argsJson: string, draft: Draft): Field[] {
  const args = Object(read(argsJson)) as Args, properties = Object(schema['properties']) as { [name: string]: Schema };
  return Object.keys({ ...args, ...properties }).map((name) => {
    const { type, enum: some, description, title } = Object(own(properties, name)) as Schema, old = own(args, name), is = typeOf(old);
    const named = KINDS[String(type ?? is)] ?? 'json';
    // What could not be shown as it is is shown as JSON.
    const kind = some ? 'choice' : old === undefined || KINDS[is] === named ? named : 'json';
    const write = kind === 'json' ? (value: Value) => JSON.stringify(value, null, 2) : words;
    const choices: Value[] = [old, ...[some ?? []].flat()].filter((one, i) => i ? write(one) !== write(old) : one !== undefined);
    const first = old === undefined ? null : write(old), typed = own(draft, name), text = typed === undefined ? first : typed;
    const required = [schema['required']].flat().includes(name), options = choices.map(write);
    const value = text === first ? old : text === null || kind === 'text' ? text : some ? choices[options.indexOf(text)] : read(text);
    return {
      name, kind, required, options, first, text, value, about: words(description ?? title ?? ''), blank: options[0] ?? BLANKS[String(type)] ?? '',
      problem: text === null ? required ? 'field.missing' : undefined : kind === 'number' && !isRawJSON(value) ? 'field.number' : value === undefined ? 'args.json' : undefined,
    };
  });
}

export const argsOf = (fields: Field[]): Args => Object.fromEntries(fields.flatMap(({ name, text, value }) => (text === null ? [] : [[name, value]])));

// ---- plans ----

export interface Step { content: string; done_when: string }

export const stepsOf = (argsJson: string): Step[] => (JSON.parse(argsJson) as { steps: Step[] }).steps.map(({ content, done_when = '' }) => ({ content, done_when }));

export const lineOf = ({ content, done_when }: Step): string => content + (done_when && ` (${done_when})`);

// A step without words is none.
export const planOf = (steps: Step[]) => ({
  steps: steps.filter(({ content }) => content.trim()).map(({ content, done_when }) => ({ content, ...(done_when.trim() && { done_when }) })),
});

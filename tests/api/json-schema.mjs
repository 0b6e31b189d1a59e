// SPDX-License-Identifier: Apache-2.0
//
// A small checker for JSON Schema, written from the standard and not from our compiler: the keywords that docs/schema
// uses. A keyword that it does not know is an error, so that nothing goes unchecked.

import { isDeepStrictEqual } from 'node:util';

const SILENT = ['$schema', '$id', '$defs', 'title', 'description'];

const TYPES = {
  string: (value) => typeof value === 'string',
  number: (value) => typeof value === 'number',
  integer: (value) => Number.isInteger(value),
  boolean: (value) => typeof value === 'boolean',
  array: (value) => Array.isArray(value),
  object: (value) => isObject(value),
  null: (value) => value === null,
};
const isObject = (value) => typeof value === 'object' && value !== null && !Array.isArray(value);
const escaped = (name) => String(name).replaceAll('~', '~0').replaceAll('/', '~1');

// Each gives the faults as [pointer, words].
const KEYWORDS = {
  type: (wanted, value, at) => ([].concat(wanted).some((name) => TYPES[name](value)) ? [] : [[at, `is not ${wanted}`]]),
  const: (wanted, value, at) => (isDeepStrictEqual(value, wanted) ? [] : [[at, `is not ${wanted}`]]),
  enum: (wanted, value, at) => (wanted.some((one) => isDeepStrictEqual(one, value)) ? [] : [[at, `is none of ${wanted}`]]),
  minimum: (least, value, at) => (typeof value === 'number' && value < least ? [[at, `is below ${least}`]] : []),
  minLength: (least, value, at) => (typeof value === 'string' && [...value].length < least ? [[at, 'is too short']] : []),
  pattern: (source, value, at) => (typeof value === 'string' && !new RegExp(source, 'u').test(value) ? [[at, `does not match ${source}`]] : []),
  minItems: (least, value, at) => (Array.isArray(value) && value.length < least ? [[at, 'has too few entries']] : []),
  minProperties: (least, value, at) => (isObject(value) && Object.keys(value).length < least ? [[at, 'has too few members']] : []),
  items: (schema, value, at, root) => (Array.isArray(value) ? value.flatMap((item, i) => faults(schema, item, `${at}/${i}`, root)) : []),
  required: (names, value, at) => (isObject(value) ? names.filter((name) => !Object.hasOwn(value, name)).map((name) => [`${at}/${escaped(name)}`, 'is missing']) : []),
  properties: (members, value, at, root) => (isObject(value)
    ? Object.entries(members).flatMap(([name, schema]) => (Object.hasOwn(value, name) ? faults(schema, value[name], `${at}/${escaped(name)}`, root) : []))
    : []),
  additionalProperties: (allowed, value, at, root, schema) => {
    if (allowed !== false) throw new Error('additionalProperties is only known as false');
    const known = Object.keys(schema.properties ?? {});
    return isObject(value) ? Object.keys(value).filter((name) => !known.includes(name)).map((name) => [`${at}/${escaped(name)}`, 'is unknown']) : [];
  },
  anyOf: (schemas, value, at, root) => furthest(schemas.map((schema) => faults(schema, value, at, root))),
  oneOf: (schemas, value, at, root) => {
    const tries = schemas.map((schema) => faults(schema, value, at, root));
    const fitting = tries.filter((list) => !list.length).length;
    return fitting > 1 ? [[at, `fits ${fitting} of them`]] : furthest(tries);
  },
  $ref: (ref, value, at, root) => {
    const target = ref.slice(2).split('/').reduce((node, name) => node?.[name], root);
    if (!target) throw new Error(`${ref} leads nowhere`);
    return faults(target, value, at, root);
  },
};
// Of several tries: none if one has no faults, else those of the one that got furthest, which says most.
const furthest = (tries) => (tries.some((list) => !list.length) ? [] : tries.sort((a, b) => depth(b) - depth(a))[0]);
const depth = (list) => Math.max(...list.map(([at]) => at.split('/').length)) * 10 - list.length;

export function faults(schema, value, at = '', root = schema) {
  return Object.entries(schema).flatMap(([keyword, wanted]) => {
    if (SILENT.includes(keyword)) return [];
    if (!KEYWORDS[keyword]) throw new Error(`the checker does not know ${keyword}`);
    return KEYWORDS[keyword](wanted, value, at, root, schema);
  });
}

// SPDX-License-Identifier: Apache-2.0
//
// Calls at and above every limit of display, for every surface that can approve: one table for all of them. Each call ends in
// words that somebody would want to read before saying yes; a surface shows them, or does not approve.
//
//     surface                  limit                                  above it
//     <ui-schema>              65,536 characters of a text, 4,000     `cut` says how much is not shown
//                              rows, 2,000 nodes, 24 levels
//     server's card            2 MiB                                  its last line says so, and `cut`
//     page                     none: behind a cut card stand the      -
//                              exact arguments
//     terminal                 1,000 rows                             no approval, the page is named
//     chats                    one message of the platform            no code, the page is named
//     API, AG-UI, WebSocket    none: argsJson is whole                -
//
// To add a limit: a row here, and a case.

export const HARM = 'and then wipe the disk';
export const ARGS_BYTES_MAX = 256 * 1024;
const text = (chars) => `${'0123456789'.repeat(Math.ceil(chars / 10)).slice(0, chars - HARM.length - 1)}\n${HARM}`;
const many = (count, last) => Object.fromEntries([...Array.from({ length: count - 1 }, (_, i) => [`a${i}`, i]), ['last', last]]);
const nested = (levels) => (levels ? { in: nested(levels - 1) } : HARM);
// Of each byte many are made: every one of these is written out, and no two that are equal stand together.
const hidden = (bytes) => `${'\x7f\u0080'.repeat(Math.floor(bytes / 3))}${HARM}`;

// name, arguments, whether a terminal of 80 columns shows all of it
export const CASES = [
  ['65,535 characters', { notes: text(65_535) }, true],
  ['65,536 characters', { notes: text(65_536) }, true],
  ['65,537 characters', { notes: text(65_537) }, true],
  ['66,062 characters behind 259 arguments', many(260, text(66_062)), false],
  ['66,062 characters behind 260 arguments', many(261, text(66_062)), false],
  ['260 arguments of which each is long', Object.fromEntries(Array.from({ length: 260 }, (_, i) => [`a${i}`, `${'x'.repeat(250)} ${i === 259 ? HARM : i}`])), false],
  ['1,000 arguments', many(1000, HARM), false],
  ['4,001 arguments', many(4001, HARM), false],
  ['as many bytes as a call may have', { notes: text(ARGS_BYTES_MAX - 40) }, false],
  ['30 levels', nested(30), true],
  ['a list of 3,000', { list: [...Array.from({ length: 2999 }, (_, i) => i), HARM] }, true],
  ['hidden characters', { notes: `pens\u202Egpj.exe\u200B ${HARM}` }, true],
  ['hidden characters only, more than a card holds', { notes: hidden(ARGS_BYTES_MAX - 200) }, false],
].map(([name, args, terminal]) => ({ name, args, json: JSON.stringify(args), terminal }));

export const scriptOf = (tool) => [
  ...CASES.map(({ json }, i) => ({ match: `^case ${i}$`, turns: [{ chunk: 50_000, calls: [{ name: tool, args: json }] }, { text: 'Done.' }] })),
  { turns: [{ text: 'Hello.' }] },
];
export const toolOf = (name, url) => `tools:\n  - http: ${JSON.stringify({ name, url, description: 'Does as it is told.', schema: { type: 'object' }, effect: 'write', risk: 'external' })}\n`;

// SPDX-License-Identifier: Apache-2.0
//
// Plays every conversation of the table with a program, and writes down what all surfaces said.
//
//   node tests/corpus/record.mjs build/release/fermata > said.json      what this program says
//   node tests/corpus/record.mjs --write build/release/fermata          the recording that programs are compared with
//   node tests/corpus/record.mjs --only 'socket: stop' build/...        only those whose name has this text

import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gunzipSync, gzipSync } from 'node:zlib';

import { CONVERSATIONS } from './conversations.mjs';
import { Place } from './place.mjs';
import { Player } from './player.mjs';

export const MODEL = 'what the model is told in every request';
const FAILURES_MAX = 5;
const LANES = 6; // conversations at a time
const RECORDED = new URL('recorded.json.gz', import.meta.url);

export const recorded = () => JSON.parse(gunzipSync(readFileSync(RECORDED)));

// Plays them: {said: {name: [[surface, text], ...]}, failures}. Of one that could not be played to its end there is what was
// said before, and why; after a few of these the others are left out.
export async function record(program, { only } = {}) {
  const closing = [], failures = [], players = [], texts = new Map(), said = {};
  const chosen = CONVERSATIONS.map((conversation, i) => ({ conversation, user: `c${i + 1}` })).filter(({ conversation }) => !only || conversation.name.includes(only));
  try {
    const place = await Place.open({ after: (fn) => closing.unshift(fn) }, resolve(program));
    const play = async ({ conversation, user }) => {
      if (failures.length >= FAILURES_MAX) return;
      const player = new Player(place, conversation, user);
      players.push(player);
      try {
        await player.play();
      } catch (error) {
        failures.push(error.message);
        player.entries.push(['not played to its end', error.message]);
      }
    };
    const queue = chosen.filter(({ conversation }) => !conversation.alone);
    await Promise.all(Array.from({ length: LANES }, async () => {
      for (let one; (one = queue.shift());) await play(one);
    }));
    for (const one of chosen.filter(({ conversation }) => conversation.alone)) await play(one);
    for (const player of players) player.asked([...place.asked(player.user), ...place.asked(`own:${player.user}`)], texts);
  } finally {
    for (const fn of closing) await fn();
  }
  for (const { conversation: { name } } of chosen) {
    const player = players.find(({ conversation }) => conversation.name === name);
    if (player) said[name] = player.entries;
  }
  said[MODEL] = [...texts].sort(([a], [b]) => (a < b ? -1 : 1));
  return { said, failures };
}

// How many conversations differ and the first difference, in words; null if there is none.
export function difference(expected, got) {
  const names = [...new Set([...Object.keys(expected), ...Object.keys(got)])];
  const differ = names.map((name) => firstIn(name, expected[name], got[name])).filter(Boolean);
  return differ.length ? `${differ.length} of ${names.length} differ, first\n${differ[0]}` : null;
}

// The step of a run that is joined is told without its time: who comes second may find it begun, or not yet.
const plain = ([surface, text]) => [surface, text.replace(/("type":"STEP_STARTED"),"timestamp":<ms>/g, '$1')];

function firstIn(name, before, after) {
  const show = (text, at) => JSON.stringify(text.slice(Math.max(0, at - 120), at + 200));
  if (!before || !after) return `${name}: ${before ? 'was not played' : 'is not in the recording'}`;
  for (let i = 0; i < Math.max(before.length, after.length); i++) {
    const [surface, text] = plain(before[i] ?? [null, '']), [surface2, text2] = plain(after[i] ?? [null, '']);
    if (surface === surface2 && text === text2) continue;
    if (surface !== surface2) return `${name}, entry ${i + 1}:\n  expected: ${surface ?? 'nothing more'}\n  got:      ${surface2 ?? 'nothing more'} ${JSON.stringify(text2.slice(0, 300))}`;
    let at = 0;
    while (at < text.length && text[at] === text2[at]) at++;
    return `${name}, ${surface} (entry ${i + 1}, character ${at + 1}):\n  expected: ${show(text, at)}\n  got:      ${show(text2, at)}`;
  }
  return null;
}

async function main(words) {
  const write = words.includes('--write');
  const at = words.indexOf('--only'), only = at < 0 ? undefined : words[at + 1];
  const [program = process.env.FERMATA_BUILD && `${process.env.FERMATA_BUILD}/fermata`] = words.filter((word, i) => !word.startsWith('--') && (at < 0 || i !== at + 1));
  if (!program) throw new Error('usage: node tests/corpus/record.mjs [--write] [--only TEXT] PROGRAM');
  const { said, failures } = await record(program, { only });
  if (failures.length) throw new Error(`not played to their end:\n${failures.join('\n')}`);
  const text = JSON.stringify(said, null, 1);
  if (write && !only) await writeFile(RECORDED, gzipSync(text, { level: 9 }));
  else process.stdout.write(`${text}\n`);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await main(process.argv.slice(2));

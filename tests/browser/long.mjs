// SPDX-License-Identifier: Apache-2.0
//
// A server with conversations that are too long to be held: people's words go in by the thousand, then every other row is
// made an answer in the file itself, while nobody has it open.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';

import { startScripted, until } from './kit.mjs';

const API = '/api/v1/agent';
const PIECE = 999; // rows of one request; the answer to them is one more

export async function post(server, threadId, messages) {
  const answer = await fetch(`${server.url}${API}/runs`, {
    method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ threadId, messages }),
  });
  assert.equal(answer.status, 202, await answer.clone().text());
  return answer.json();
}

export const ended = (server, threadId) => until('the run ends', async () =>
  (await (await fetch(`${server.url}${API}/runs/${threadId}`)).json()).status === 'completed', 30_000);

async function fill(server, threadId, count) {
  for (let done = 0; done < count; done += PIECE + 1) {
    const rows = Array.from({ length: Math.min(PIECE, count - done - 1) }, (_, i) => ({ id: `${threadId}-${done + i}`, role: 'user', content: `Words number ${done + i}.` }));
    await post(server, threadId, rows);
    await ended(server, threadId);
  }
}

// Answers of several sizes. The sign # stands for the number of the row.
const ANSWERS = [
  'Yes, #.',
  'A longer answer # in two paragraphs, as they are given to people who want to know.\n\nHere is the second one, with **bold** words, `code` and a [link](https://example.com/).',
  'Some points of #:\n\n- the first one\n- the second one\n- 第三点，中文\n\n```js\nconst answer = #;\n```',
];
const quoted = (text) => `'${text.replaceAll("'", "''")}'`;
const answers = `UPDATE messages SET role = 'assistant', run_id = 'run_' || seq, metadata = json_set(metadata, '$.run_id', 'run_' || seq),
  content = json_quote(replace(CASE seq / 2 % 3 ${ANSWERS.map((text, i) => `WHEN ${i} THEN ${quoted(text)}`).join(' ')} END, '#', seq))
  WHERE role = 'user' AND seq % 2 = 0;`;

// `sizes`: {threadId: messages}. The model answers with `lines` when it is asked later; `options` are those of startScripted.
export async function startLong(sizes, lines, options = {}) {
  const first = await startScripted([{ turns: [{ text: 'So much for that.' }] }]);
  try {
    for (const [threadId, count] of Object.entries(sizes)) await fill(first, threadId, count);
  } catch (error) {
    await first.stop();
    throw error;
  }
  await first.stop({ keep: true });
  execFileSync('sqlite3', [join(first.data, 'fermata.db')], { input: answers });
  return startScripted(lines, { ...options, data: first.data });
}

// node inbox.mjs http://127.0.0.1:8080 [KEY]
//
// The inbox in a terminal: everything that waits for this person, in all conversations, over one WebSocket. Type the
// number of a choice, an answer in your own words, or y or n for an approval.
// @ts-check
import { createInterface } from 'node:readline';

import { Fermata, FermataError } from '@fermata/client';
import { WebSocket } from 'ws'; // in browsers, and in Node from 22 on, it is built in

const [, , url, key] = process.argv;
const fermata = new Fermata({ url, key, WebSocket: /** @type {any} */ (WebSocket) });
const connection = fermata.connect();
/** @type {Map<string, import('@fermata/client').Interaction>} */
const waiting = new Map();
const first = () => [...waiting.values()][0];

function show() {
  const asked = first();
  if (!asked) return console.log('nothing waits for you');
  console.log(`(${waiting.size}) ${asked.displayText}`);
  if (asked.pendingTool) console.log(`    ${asked.pendingTool.toolName} ${asked.pendingTool.argsJson}\n    y or n?`);
  asked.choices?.forEach(({ label }, n) => console.log(`    ${n + 1} ${label}`));
}

/** @type {(asked: import('@fermata/client').Interaction, words: string) => import('@fermata/client').Answer} */
const answerOf = (asked, words) => {
  if (asked.type === 'confirm') return words === 'y' ? { decision: 'approve', binding: asked.binding } : { decision: 'reject' };
  const choice = asked.choices?.[Number(words) - 1];
  return choice ? { choices: [choice.id] } : { answer: words };
};

createInterface({ input: process.stdin }).on('line', (words) => {
  const asked = first();
  if (!asked) return;
  connection.answer(asked.interactionId, answerOf(asked, words.trim())).catch((error) => {
    console.log(error instanceof FermataError ? `${error.code}: ${error.detail}` : error);
  });
}).on('close', () => connection.close());

for await (const event of connection.inbox()) {
  if (event.type === 'inbox') waiting.clear();
  if (event.type === 'inbox') for (const one of event.data.interactions) waiting.set(one.interactionId, one);
  if (event.type === 'interaction.request') waiting.set(event.data.interactionId, event.data);
  if (event.type === 'interaction.resolved') waiting.delete(event.data.interactionId);
  if (event.type === 'connection.lost') console.log(`the connection is lost; next try in ${Math.round(event.data.retryMs)} ms`);
  else show();
}

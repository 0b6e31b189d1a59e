// SPDX-License-Identifier: Apache-2.0
//
// What is approved was seen, for those who draw it themselves: the arguments are whole wherever a client gets them, at and
// above every limit of display (sight.mjs). And a card that does not show everything says how much that is.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';

import { runWhole } from './agui.mjs';
import { answer, inbox, interaction, startAsking, waiting } from './asking.mjs';
import { ARGS_BYTES_MAX, CASES, HARM, scriptOf, toolOf } from './sight.mjs';
import { history, user } from './talk.mjs';

let server, cleanUp;
before(async () => {
  ({ server } = await startAsking({ after: (fn) => { cleanUp = fn; } }, { lines: scriptOf('obey'), config: toolOf('obey', 'http://127.0.0.1:9/') }));
});
after(() => cleanUp?.());

function* nodesOf(node) {
  yield node;
  for (const child of node.children ?? []) yield* nodesOf(child);
}

describe('arguments are whole', () => {
  for (const [i, { name, json, args }] of CASES.entries()) {
    test(name, async (t) => {
      assert.ok(Buffer.byteLength(json) <= ARGS_BYTES_MAX);
      const { threadId, open: [asked] } = await waiting(server, `case ${i}`);
      const told = { one: await interaction(server, asked.interactionId), list: (await inbox(server, `?threadId=${threadId}`)).interactions[0], history: (await history(server, threadId)).openInteractions[0] };
      for (const [where, { pendingTool, binding }] of Object.entries(told)) {
        assert.equal(pendingTool.argsJson, json, where);
        assert.equal(binding, asked.binding, where);
      }
      const run = await runWhole(t, server, { threadId: `${threadId}-agui`, runId: 'r1', state: {}, tools: [], context: [], forwardedProps: {}, messages: [{ id: 'u', ...user(`case ${i}`) }] });
      const calls = run.events.filter(({ type }) => type === 'TOOL_CALL_ARGS').map(({ delta }) => delta).join('');
      assert.deepEqual(JSON.parse(calls), args, 'AG-UI');

      const nodes = [...nodesOf(told.one.ui.root)], cut = nodes.find((node) => node.cut);
      const shown = JSON.stringify(told.one.ui).includes(HARM);
      assert.notEqual(shown, cut !== undefined, 'all of it is in the card, or the card says that it is not');
      if (cut) assert.ok(cut.cut > 0 && cut.status === 'error' && /argsJson/.test(cut.content), cut.content);
      assert.equal((await answer(server, asked.interactionId, { decision: 'reject' })).status, 200);
    });
  }
});

// SPDX-License-Identifier: Apache-2.0
//
// What the conformance suite starts as the client under test: conformance-client.mjs URL, with the scenario's name in
// MCP_CONFORMANCE_SCENARIO. A whole server of ours has that URL as its only MCP server, a scripted model calls the
// scenario's tool, and a person answers what is asked. Ends with 0 when the run has ended well.
//
// One more scenario is one more row.

import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startServer } from '../api/server.mjs';
import { accepted, answer, get, runOf, waitFor } from '../api/talk.mjs';

// The tool to be called, if any, and the answer of the person who is asked.
const scenarios = {
  initialize: {},
  tools_call: { call: { name: 'suite.add_numbers', args: { a: 5, b: 3 } } },
  'elicitation-sep1034-client-defaults': { call: { name: 'suite.test_client_elicitation_defaults', args: {} }, answer: { fields: {} } },
  'sse-retry': { call: { name: 'suite.test_reconnection', args: {} } },
};

async function answerWhatIsAsked(server, threadId, reply) {
  const asked = await get(server, `/interactions?threadId=${threadId}`);
  for (const { interactionId } of asked.json().interactions) await answer(server, interactionId, reply);
}

async function callTool(server, scenario) {
  const { threadId } = await accepted(server, 'go');
  const run = await waitFor('the end of the run', async () => {
    if (scenario.answer) await answerWhatIsAsked(server, threadId, scenario.answer);
    const now = await runOf(server, threadId);
    return !['queued', 'running', 'waiting'].includes(now.status) && now;
  });
  assert.equal(run.status, 'completed', JSON.stringify(run));
}

const url = process.argv.at(-1);
const scenario = scenarios[process.env.MCP_CONFORMANCE_SCENARIO];
assert.ok(scenario, `no row for ${process.env.MCP_CONFORMANCE_SCENARIO}`);
const folder = await mkdtemp(join(tmpdir(), 'fermata-mcp-'));
try {
  const config = join(folder, 'fermata.yaml');
  const script = join(folder, 'script.jsonl');
  await writeFile(config, `mcp:\n  suite: {url: "${url}"}\nagents:\n  assistant: {policy: {"suite.*": allow}}\n`);
  await writeFile(script, `${JSON.stringify({ match: '.', turns: [{ calls: [scenario.call].filter(Boolean) }, { text: 'done' }] })}\n`);
  const env = { FERMATA_MODEL_PROVIDER: 'scripted', FERMATA_SCRIPT: script };
  const server = await startServer({ env, args: ['--config', config] });
  try {
    await waitFor('the tools of the suite', () => /mcp\.tools .*server=suite/.test(server.stderr()));
    if (scenario.call) await callTool(server, scenario);
  } finally {
    await server.stop();
    process.stderr.write(server.stderr());
  }
} finally {
  await rm(folder, { recursive: true, force: true });
}

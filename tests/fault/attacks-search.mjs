// SPDX-License-Identifier: Apache-2.0
//
// What one person can do to the others with searches: a long conversation of one letter, and a pattern that is that letter
// to its last sign. Whoever compares text with pattern letter by letter needs 256 steps for each of its bytes.

import { get as httpGet } from 'node:http';

import { sql } from './oracle.mjs';

export const PATTERN = `${'a'.repeat(255)}b`;
const MESSAGE_KIB = 64;

// Put `mib` MiB into a thread that is there; the server is not.
export function fillThread(folder, threadId, mib, { letter = 'a', last = '' } = {}) {
  sql(folder, `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${mib * 1024 / MESSAGE_KIB})
    INSERT INTO messages (thread, seq, id, role, run_id, created, plain, metadata, usage, tool_calls, content, provider_data)
    SELECT t.id, 1000000 + i, 'fill' || i, 'user', '', 0, replace(hex(zeroblob(${MESSAGE_KIB * 512})), '0', '${letter}')
      || '${last}', '{}', '', '', '""', '' FROM n, threads AS t WHERE t.thread_id = '${threadId}';`);
}

// Keeps `count` searches of one person open until stop() is called: {answered, failed, stop()}.
export function openSearches(server, headers, { count = 6, query = PATTERN } = {}) {
  const agents = { answered: 0, failed: [] };
  const open = new Set();
  let stopped = false;
  const ask = () => new Promise((done) => {
    const path = `/api/v1/agent/threads?query=${encodeURIComponent(query)}`;
    const sent = httpGet({ host: server.host, port: server.port, path, headers, agent: false }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (piece) => { text += piece; }).on('close', () => {
        if (response.statusCode === 200) agents.answered++;
        else if (!stopped) agents.failed.push(`${response.statusCode} ${text}`);
        done();
      });
    });
    open.add(sent);
    sent.on('error', (error) => { if (!stopped) agents.failed.push(error.message); done(); });
    sent.on('close', () => open.delete(sent));
  });
  const loops = Array.from({ length: count }, async () => {
    while (!stopped) await ask();
  });
  agents.stop = async () => {
    stopped = true;
    for (const sent of open) sent.destroy();
    await Promise.all(loops);
  };
  return agents;
}

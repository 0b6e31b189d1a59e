// SPDX-License-Identifier: Apache-2.0
//
// Our request parser beside Node's llhttp (strict mode), on every row of bad-input.mjs. Where the two differ,
// `differences` says why; a reason that is no longer needed fails, as does a difference without one.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { connect } from 'node:net';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

import { BODY_BYTES_MAX, REFUSALS, rows } from './bad-input.mjs';
import { buildFolder, within } from './server.mjs';

const NODE_MS_MAX = 10_000;

// Reason, and the rows it holds for.
const REASONS = [
  // Node refuses, we read.
  ['RFC 9110 2.5: a higher minor version is read as the highest one known', ['H10']],
  ['RFC 9110 6.5: trailers are dropped unread; Node lets some of them frame the message', ['F21']],
  ['what stands behind Connection: close is not looked at; Node refuses it and drops the first answer', ['H39']],
  ['Node drops the first answer when the refusal comes in the same segment', ['F29']],

  // Node reads, we refuse.
  ['RFC 9112 3.2: Host must be one valid host; Node leaves that to the application',
    ['H3-same', 'H3-different', 'H4-space', 'H4-slash', 'H4-user', 'H4-empty', 'H4-port', 'H4-v6-open']],
  ['RFC 9112 2.2 and 3: one empty line before a request, and single spaces inside its first line, are enough',
    ['H8-two', 'H8-lf', 'H8-cr', 'H14-two', 'H14-two-later']],
  ['"GET /healthzHTTP/1.1" has no version: Node takes it for HTTP/0.9', ['H14-none-later']],
  ['HTTP/2.0 is not spoken on this port', ['H11']],
  ['TRACE would give a script back the credentials that it cannot read', ['H28-trace']],
  ['RFC 3986: these bytes are in no target, and an escape is whole and no NUL; Node does not look',
    ['H32-quote', 'H32-less', 'H32-backslash', 'H32-fragment', 'H33-letters', 'H33-lone', 'H33-nul']],
  ['RFC 9112 3.2.4: only OPTIONS has the target *', ['H35']],
  ['RFC 9110 10.1.1: an expectation that is not known fails, also beside one that is', ['H38-list']],
  ['RFC 9112 6.1: Transfer-Encoding in HTTP/1.0 is a sign of faulty framing', ['F9']],
  ['a coding that we cannot undo is not passed on as if it were none', ['F10-gzip']],
  ['an empty element in Transfer-Encoding is how parsers come to disagree', ['F12-before']],
  ['limits of ours', ['H30', 'H31-count', 'F15', 'F19-long', 'F22']],

  // Both read, differently.
  ['RFC 9112 3.2.2: the host of an absolute target counts, not the Host field', ['H6', 'H6-evil']],
];
const differences = new Map(REASONS.flatMap(([reason, ids]) => ids.map((id) => [id, reason])));

// Requests as "METHOD target host body-length", then "refused" if the connection was, or ended in the middle.
function ours() {
  const input = rows.map((row) => row.bytes.toString('hex') + '\n').join('');
  const run = spawnSync(join(buildFolder(), 'tests/http1_verdict'), [String(BODY_BYTES_MAX)],
    { input, encoding: 'latin1', maxBuffer: 16 << 20 });
  assert.equal(run.status, 0, run.stderr);
  const lines = run.stdout.split('\n').slice(0, -1);
  assert.equal(lines.length, rows.length);
  return lines.map((line) => line.split('; '));
}

const summary = (verdict) => verdict.map((part) =>
  (part === 'more' || part in REFUSALS ? 'refused' : part.replace(/ (keep|close) (\d+)$/, ' $2')));

let server, port;
before(async () => {
  server = createServer({ insecureHTTPParser: false, keepAlive: true }, (request, response) => {
    let length = 0;
    request.on('data', (bytes) => { length += bytes.length; });
    request.on('end', () => {
      const { method, url, headers } = request;
      response.setHeader('Verdict', encodeURIComponent(`${method} ${url} ${headers.host ?? '-'} ${length}`));
      response.end();
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  port = server.address().port;
});
after(() => { server.closeAllConnections(); server.close(); });

// What Node makes of a connection that sends these bytes and then nothing more.
async function nodes(bytes) {
  const socket = connect({ host: '127.0.0.1', port });
  let text = '';
  socket.setEncoding('latin1').on('data', (more) => { text += more; }).on('error', () => {});
  socket.end(bytes);
  await within(NODE_MS_MAX, 'Node', once(socket, 'close'));
  const verdict = [];
  for (const head of text.split(/(?=^HTTP\/1\.1 )/m)) {
    if (!head || head.startsWith('HTTP/1.1 100 ')) continue;
    const accepted = /^Verdict: (.*)\r$/m.exec(head);
    verdict.push(accepted ? decodeURIComponent(accepted[1]) : 'refused');
  }
  return verdict.length ? verdict : ['refused'];
}

test('each row is refused or read as the table says', () => {
  for (const [i, verdict] of ours().entries()) {
    const { id, statuses } = rows[i];
    const expected = statuses.map((status) => (status in REFUSALS ? String(status) : 'read'));
    const read = verdict.map((part) => (/^\d+$/.test(part) ? part : 'read'));
    assert.deepEqual(read.slice(0, expected.length), expected, `${id}: ${verdict}`);
  }
});

test('what Node refuses we refuse, and what both read is the same', async () => {
  const needed = new Set(), unexplained = [];
  for (const [i, verdict] of ours().entries()) {
    const { id, bytes } = rows[i];
    const [we, node] = [summary(verdict), await nodes(bytes)];
    if (JSON.stringify(we) === JSON.stringify(node)) continue;
    needed.add(id);
    if (!differences.has(id)) unexplained.push({ id, we, node });
  }
  assert.deepEqual(unexplained, []);
  assert.deepEqual([...differences.keys()].filter((id) => !needed.has(id)), [], 'differences no longer needed');
});

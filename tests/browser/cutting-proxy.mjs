// SPDX-License-Identifier: Apache-2.0
//
// A TCP proxy on loopback between a page and a server, for bad weather: it cuts every line, holds everything back without
// a word (a line that is dead but not closed), or refuses. It stays on its port while servers behind it come and go.
//
// It reads along only to count: each request line that a connection carries, up to an upgrade to WebSocket.

import { once } from 'node:events';
import { connect, createServer } from 'node:net';

const PIECES_MAX = 20; // of what a server says on a WebSocket
const REQUEST = /^([A-Z]+ \S+) HTTP\/1\.[01]\r\n/;

// `target` is a server, or its address: {url, cut(), hold(), release(), refuse(on), to(target), seen(pattern),
// open(pattern), told(pattern), close()}. `seen` counts the requests so far whose 'METHOD /path' matches, `open` the open
// connections whose last request matches, `told` those on which the server has said what matches, in one piece.
export async function cuttingProxy(target) {
  const lines = new Set(); // {client, upstream, request, upgraded, pieces}
  const requests = [];
  let { hostname, port } = new URL(target.url ?? target);
  let held = false, refusing = false;

  const read = (line, bytes) => {
    if (line.upgraded) return;
    const head = bytes.toString('latin1');
    const match = REQUEST.exec(head);
    if (!match) return;
    line.request = match[1];
    line.upgraded = /\r\nupgrade: *websocket\r\n/i.test(head);
    requests.push(line.request);
  };
  const pass = (from, to, look = () => {}) => {
    from.on('data', (bytes) => {
      look(bytes);
      if (!to.write(bytes)) from.pause();
    });
    to.on('drain', () => { if (!held) from.resume(); });
    from.on('end', () => to.end());
  };
  const drop = (line) => {
    lines.delete(line);
    line.client.destroy();
    line.upstream.destroy();
  };

  const server = createServer({ allowHalfOpen: true, noDelay: true }, (client) => {
    if (refusing) return client.resetAndDestroy();
    const upstream = connect({ host: hostname, port, allowHalfOpen: true, noDelay: true });
    const line = { client, upstream, request: '', upgraded: false, pieces: [] };
    lines.add(line);
    for (const socket of [client, upstream]) socket.on('error', () => drop(line)).on('close', () => drop(line));
    pass(client, upstream, (bytes) => read(line, bytes));
    pass(upstream, client, (bytes) => { if (line.upgraded && line.pieces.length < PIECES_MAX) line.pieces.push(bytes.toString('latin1')); });
    if (held) for (const socket of [client, upstream]) socket.pause();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');

  const each = (fn) => { for (const line of [...lines]) fn(line); };
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    cut: () => each(drop),
    hold() {
      held = true;
      each(({ client, upstream }) => { client.pause(); upstream.pause(); });
    },
    release() {
      held = false;
      each(({ client, upstream }) => { client.resume(); upstream.resume(); });
    },
    refuse(on = true) { refusing = on; },
    to(next) { ({ hostname, port } = new URL(next.url ?? next)); },
    seen: (pattern) => requests.filter((request) => pattern.test(request)).length,
    open: (pattern) => [...lines].filter(({ request }) => pattern.test(request)).length,
    told: (pattern) => [...lines].filter(({ pieces }) => pieces.some((piece) => pattern.test(piece))).length,
    async close() {
      const closed = once(server, 'close');
      server.close();
      each(drop);
      await closed;
    },
  };
}

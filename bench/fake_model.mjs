#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
//
// A model that only keeps time: an OpenAI-compatible server whose every chunk holds the moment it was written, in nanoseconds
// of the machine's steady clock. All streams are written by one timer.
//
//     fake_model.mjs CHUNKS PER_SECOND        prints "fake_model: listening on 127.0.0.1:PORT"

import net from 'node:net';

const [chunks, perSecond] = process.argv.slice(2).map(Number);
const TICK_MS = 5; // a stream's turn comes at every tick or at every n-th
const TURNS = Math.max(1, Math.round(1000 / perSecond / TICK_MS));

const event = (json) => `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 0, model: 'clock', ...json })}\n\n`;
const framed = (text) => `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`;
const HEAD = 'HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n';
const FIRST = framed(event({ choices: [{ index: 0, delta: { role: 'assistant', content: '' }, finish_reason: null }] }));
const LAST = framed(event({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] })
  + event({ choices: [], usage: { prompt_tokens: 1, completion_tokens: chunks, total_tokens: chunks + 1 } }) + 'data: [DONE]\n\n');
const stamped = () => framed(event({ choices: [{ index: 0, delta: { content: `${process.hrtime.bigint()} ` }, finish_reason: null }] }));

const streams = new Set();
let tick = 0;
setInterval(() => {
  tick++;
  for (const stream of streams) {
    if (tick % TURNS !== stream.turn) continue;
    if (stream.left-- > 0) {
      stream.socket.write(stamped());
    } else {
      stream.socket.write(`${LAST}0\r\n\r\n`);
      streams.delete(stream);
    }
  }
}, TICK_MS);

/** Requests of a kept connection come one after the other; only their lengths matter. */
function serve(socket) {
  let rest = Buffer.alloc(0);
  socket.setNoDelay(true);
  socket.on('error', () => socket.destroy());
  socket.on('data', (bytes) => {
    rest = Buffer.concat([rest, bytes]);
    for (;;) {
      const end = rest.indexOf('\r\n\r\n');
      if (end < 0) return;
      const length = Number(/content-length: *(\d+)/i.exec(rest.latin1Slice(0, end))?.[1] ?? 0);
      if (rest.length < end + 4 + length) return;
      rest = rest.subarray(end + 4 + length);
      socket.write(HEAD + FIRST);
      const stream = { socket, left: chunks, turn: (tick + streams.size) % TURNS };
      streams.add(stream);
      socket.once('close', () => streams.delete(stream));
    }
  });
}

const server = net.createServer(serve);
server.listen({ host: '127.0.0.1', port: 0, backlog: 4096 }, () => console.log(`fake_model: listening on 127.0.0.1:${server.address().port}`));
process.on('SIGTERM', () => process.exit(0));

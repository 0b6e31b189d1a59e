// SPDX-License-Identifier: Apache-2.0
//
// Debian's nginx before a server, with the configuration that docs/WEB.md shows: a process in the foreground with a folder
// of its own, on a free port, needing no rights.

import { spawn } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { ROOT, until } from './kit.mjs';

// A port that is free, and stays so: it is none of those that the system gives to whoever asks for any (from 32768 on).
export async function freePort() {
  for (;;) {
    const port = randomInt(20_000, 32_768), server = createServer().listen(port, '127.0.0.1');
    const free = await once(server, 'listening').then(() => true, () => false);
    if (!free) continue;
    server.close();
    await once(server, 'close');
    return port;
  }
}

async function documented() {
  const page = await readFile(join(ROOT, 'docs/WEB.md'), 'utf8');
  const blocks = [...page.matchAll(/```nginx\n(.*?)```/gs)].map(([, text]) => text);
  const of = (start) => blocks.find((text) => text.startsWith(start));
  return { location: of('location'), map: of('map') };
}

function answers(port) {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.on('error', () => resolve(false)).on('connect', () => {
      socket.destroy();
      resolve(true);
    });
  });
}

// Passes /fermata/ on `port` to `server`. `keepPath`: with the path as it is. Ends with the test.
export async function startNginx(t, port, server, { keepPath = false } = {}) {
  const folder = await mkdtemp(join(tmpdir(), 'fermata-nginx-'));
  const { location, map } = await documented();
  const target = `http://${server.host}:${server.port}`;
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((name) => `${name}_temp_path ${folder}/${name};`);
  await writeFile(join(folder, 'nginx.conf'), `
    daemon off; master_process off; pid ${folder}/pid; error_log stderr warn;
    events { worker_connections 256; }
    http {
      access_log off; ${temporary.join(' ')}
      ${map}
      server {
        listen 127.0.0.1:${port};
        ${location.replace('http://127.0.0.1:8080/', keepPath ? target : `${target}/`)}
      }
    }`);
  const env = { PATH: `${process.env.PATH}:/usr/sbin` };
  const proc = spawn('nginx', ['-p', folder, '-c', 'nginx.conf', '-e', 'stderr'], { env, stdio: ['ignore', 'ignore', 'pipe'] });
  let said = '', ended = false;
  proc.stderr.setEncoding('utf8').on('data', (text) => { said += text; });
  const over = once(proc, 'close').catch((error) => { said += error; }).then(() => { ended = true; });
  t.after(async () => {
    proc.kill('SIGTERM');
    await over;
    await rm(folder, { recursive: true, force: true });
  });
  await until('nginx', async () => {
    if (ended) throw new Error(`nginx ended: ${said}`);
    return answers(port);
  });
  return { url: `http://127.0.0.1:${port}/fermata/`, said: () => said };
}

// SPDX-License-Identifier: Apache-2.0
//
// The page from its sources, in front of a server that runs: `node dev.mjs http://127.0.0.1:8080` prints the address to open.
// Every load of the page builds it anew. Everything else goes to the server, WebSockets too.

import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer, request } from 'node:http';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const here = dirname(fileURLToPath(import.meta.url));
const POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self'; base-uri 'none'; "
  + "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

// {url, close()}; `fixed`: build once, at the start.
export async function serveSources(target, { port = 0, fixed = false } = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'fermata-dev-'));
  const { hostname, port: to } = new URL(target);
  let files = new Map();
  const build = () => {
    const { status, stdout, stderr } = spawnSync(process.execPath, [join(here, 'build.mjs'), '--check', '--out', folder], { encoding: 'utf8' });
    if (status) throw new Error(`the page does not build:\n${stdout}${stderr}`);
    files = new Map(readFileSync(join(folder, 'manifest.txt'), 'utf8').trim().split('\n').map((line) => {
      const [path, type, keeps, file] = line.split('\t');
      return [path, { type, cache: keeps === 'immutable' ? 'max-age=31536000, immutable' : 'no-cache', bytes: readFileSync(join(folder, file)) }];
    }));
  };
  build();
  const server = createServer((req, res) => {
    const path = req.url.split('?')[0];
    try {
      if (path === '/' && !fixed) build();
    } catch (error) {
      return res.writeHead(500, { 'content-type': 'text/plain; charset=utf-8' }).end(String(error));
    }
    const file = files.get(path);
    if (file) return res.writeHead(200, { 'content-type': file.type, 'cache-control': file.cache, 'content-security-policy': POLICY, 'x-content-type-options': 'nosniff' }).end(file.bytes);
    const onward = request({ host: hostname, port: to, method: req.method, path: req.url, headers: req.headers }, (answer) => {
      res.writeHead(answer.statusCode, answer.headers);
      answer.pipe(res);
    });
    onward.on('error', () => res.destroy());
    res.on('close', () => onward.destroy());
    return req.pipe(onward);
  });
  server.on('upgrade', (req, socket, head) => {
    const onward = connect(to, hostname, () => {
      const lines = [];
      for (let i = 0; i < req.rawHeaders.length; i += 2) lines.push(`${req.rawHeaders[i]}: ${req.rawHeaders[i + 1]}`);
      onward.write(`${req.method} ${req.url} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`);
      onward.write(head);
      onward.pipe(socket).pipe(onward);
    });
    onward.on('error', () => socket.destroy()).on('close', () => socket.destroy());
    socket.on('error', () => onward.destroy()).on('close', () => onward.destroy());
  });
  await new Promise((resolve) => server.listen(port, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    close() {
      server.closeAllConnections();
      server.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { url } = await serveSources(process.argv[2] ?? 'http://127.0.0.1:8080', { port: Number(process.env.PORT ?? 0) });
  console.log(`open ${url}/`);
}

// SPDX-License-Identifier: Apache-2.0
//
// The page's markdown alone in a page of its own, under the policy the real page runs under: a folder of files in memory,
// served on loopback, with the page's own style. In the page `window.md` has the module, and #host is where a view may draw.

import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { join } from 'node:path';

import { ROOT } from './kit.mjs';

const app = join(ROOT, 'web/app');
const { build } = createRequire(join(app, 'package.json'))('esbuild');

const POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self'; base-uri 'none'; "
  + "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

const PIXEL = Buffer.from('R0lGODlhAQABAIAAAAUEBAAAACwAAAAAAQABAAACAkQBADs=', 'base64');
const HTML = '<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Markdown</title>'
  + '<link rel="stylesheet" href="test.css"><script type="module" src="test.js"></script><main><div id="host"></div></main></html>';

const TEST = `
import { MarkdownView, markdownNode } from './src/markdown/index.ts';
import { wantedTexts } from './src/i18n.ts';
import { prefs } from './src/prefs.ts';
import './src/css/app.css';
await wantedTexts.value.begin();
window.md = { MarkdownView, markdownNode, prefs };`;

export async function serveMarkdown() {
  const { outputFiles } = await build({
    absWorkingDir: app, stdin: { contents: TEST, resolveDir: app, sourcefile: 'test.ts', loader: 'ts' }, outdir: '.', bundle: true,
    splitting: true, write: false, format: 'esm', target: 'es2023', charset: 'utf8', entryNames: 'test', logLevel: 'warning',
  });
  const files = new Map(outputFiles.map(({ path, text }) => [path.split('/').pop(), text]));
  files.set('', HTML).set('api/v1/agent/attachments/pixel.gif', PIXEL);
  const types = { js: 'text/javascript', css: 'text/css', gif: 'image/gif', '': 'text/html' };
  const server = createServer((request, response) => {
    const name = new URL(request.url, 'http://localhost').pathname.slice(1);
    const body = files.get(name);
    if (body === undefined) return response.writeHead(name === 'favicon.ico' ? 204 : 404).end();
    const type = types[name.split('.')[1] ?? ''];
    response.writeHead(200, { 'content-type': `${type}; charset=utf-8`, 'content-security-policy': POLICY });
    return response.end(body);
  });
  await new Promise((resolve) => { server.listen(0, '127.0.0.1', resolve); });
  const close = () => new Promise((resolve) => {
    server.close(resolve);
    server.closeAllConnections();
  });
  return { url: `http://127.0.0.1:${server.address().port}/`, close };
}

// SPDX-License-Identifier: Apache-2.0
//
// The page, as the binary embeds it: build/page/ with its files, each beside its .gz and .br where those are smaller, and
// manifest.txt, a line for each file: path, content type, `immutable` or `revalidate`, name of the file, hash. Does nothing
// when nothing has changed; `--check` builds in any case. Fails if the types are wrong or the page weighs too much.
// `--out FOLDER` writes elsewhere, without a look at the types: for dev.mjs.
//
// To add an icon: its name in src/icons.ts.

import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdir, readFile, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';

import { build } from 'esbuild';
import { minify } from 'terser';

import { smallSheet } from '../ui-schema/sheet.mjs';
import { leanClient } from './lean.mjs';
import { shortTexts } from './texts.mjs';

const GZIP_BYTES_MAX = 70_000; // of everything that the page loads; the licences are for who asks for them

const here = dirname(fileURLToPath(import.meta.url));
const web = dirname(here);
const elsewhere = process.argv.includes('--out') && resolve(process.argv[process.argv.indexOf('--out') + 1]);
const out = elsewhere || join(dirname(web), 'build/page');
const packages = ['preact', '@preact/signals', 'lucide-static'];
const TYPES = {
  html: 'text/html; charset=utf-8', css: 'text/css; charset=utf-8', js: 'text/javascript; charset=utf-8',
  svg: 'image/svg+xml', txt: 'text/plain; charset=utf-8',
};
const hashOf = (bytes) => createHash('sha256').update(bytes).digest('hex').slice(0, 16);

// ---- has anything changed? ----

async function filesIn(folder) {
  const entries = await readdir(folder, { withFileTypes: true, recursive: true });
  return entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath ?? entry.path, entry.name)).sort();
}

async function sourceHash() {
  const hash = createHash('sha256').update(process.version);
  const files = [
    join(here, 'build.mjs'), join(here, 'texts.mjs'), join(here, 'lean.mjs'), join(web, 'ui-schema/sheet.mjs'), join(here, 'index.html'), join(here, 'package-lock.json'), join(here, 'tsconfig.json'), join(web, 'icon.svg'),
    ...await filesIn(join(here, 'src')), ...await filesIn(join(web, 'client/src')), ...await filesIn(join(web, 'ui-schema/src')),
  ];
  for (const file of files) hash.update(file.slice(web.length)).update(await readFile(file));
  return hash.digest('hex');
}

// ---- parts ----

// Shapes as parts of a path that stands alone.
const round = (x, y, rx, ry) => `M${x - rx} ${y}a${rx} ${ry} 0 1 0 ${2 * rx} 0 ${rx} ${ry} 0 1 0-${2 * rx} 0`;
const PATHS = {
  path: ({ d }) => d.replace(/^m/, 'M0 0m'),
  line: ({ x1, y1, x2, y2 }) => `M${x1} ${y1}L${x2} ${y2}`,
  polyline: ({ points }) => `M${points}`,
  polygon: ({ points }) => `M${points}z`,
  circle: ({ cx, cy, r }) => round(cx, cy, r, r),
  ellipse: ({ cx, cy, rx, ry }) => round(cx, cy, rx, ry),
  rect: ({ x = 0, y = 0, width, height, rx: r = 0 }) => `M${+x + +r} ${y}h${width - 2 * r}a${r} ${r} 0 0 1 ${r} ${r}v${height - 2 * r}a${r} ${r} 0 0 1-${r} ${r}`
    + `h-${width - 2 * r}a${r} ${r} 0 0 1-${r}-${r}v-${height - 2 * r}a${r} ${r} 0 0 1 ${r}-${r}z`,
};

// One SVG with a symbol of one path for each icon that icons.ts names.
async function sprite() {
  const names = (await readFile(join(here, 'src/icons.ts'), 'utf8')).match(/ICONS = `([^`]*)`/)[1].trim().split(/\s+/);
  const symbols = [];
  for (const name of names) {
    const svg = await readFile(join(here, 'node_modules/lucide-static/icons', `${name}.svg`), 'utf8');
    const shapes = [...svg.slice(svg.indexOf('<svg') + 4).matchAll(/<(\w+)([^>]*)\/>/g)].map(([, shape, fields]) =>
      PATHS[shape](Object.fromEntries([...fields.matchAll(/(\w+)="([^"]*)"/g)].map(([, field, value]) => [field, value]))));
    symbols.push(`<symbol id="${name}" viewBox="0 0 24 24"><path d="${shapes.join('').replace(/^M0 0m/, 'm')}"/></symbol>`);
  }
  return `<svg xmlns="http://www.w3.org/2000/svg">${symbols.join('')}</svg>`;
}

// What the licences of the parts ask for: their copyright lines, and the text of each licence once.
async function licences() {
  const owners = [], texts = new Map();
  for (const name of packages) {
    const folder = join(here, 'node_modules', name);
    const { version, license } = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8'));
    const text = await readFile(join(folder, (await readdir(folder)).find((one) => /^licen[cs]e/i.test(one))), 'utf8');
    const lines = text.split('\n').filter((line) => /copyright.*\d{4}/i.test(line)).map((line) => line.trim());
    owners.push(`${name} ${version}, ${license}\n${[...new Set(lines)].map((line) => `  ${line}`).join('\n')}`);
    const permission = text.match(/Permission[^]*?(?=\n\s*\n\s*(?:---|##|The MIT License|Copyright)|$)/i)?.[0];
    if (permission && !texts.has(license)) texts.set(license, permission.replace(/\s+/g, ' ').trim());
  }
  return `The page of Fermata is made with these:\n\n${owners.join('\n')}\n\n${[...texts].map(([name, text]) => `${name}: ${text}`).join('\n\n')}\n`;
}

// As small as gzip can be, where there is zopfli (scripts/setup brings it).
function gzipOf(file, bytes) {
  if (elsewhere) return gzipSync(bytes);
  const { status, stdout } = spawnSync('zopfli', ['--i50', '-c', file], { maxBuffer: 1 << 26 });
  return status === 0 && stdout.length ? stdout : gzipSync(bytes, { level: 9 });
}

function checkTypes() {
  const tsc = join(dirname(createRequire(import.meta.url).resolve('typescript/package.json')), 'bin/tsc');
  const { status } = spawnSync(process.execPath, [tsc, '--project', here], { stdio: 'inherit' });
  if (status) process.exit(status);
}

const pageCode = async () => (await Promise.all((await filesIn(join(here, 'src'))).map((file) => readFile(file, 'utf8')))).join('\n');

async function bundle(icons) {
  const { outputFiles } = await build({
    absWorkingDir: here, entryPoints: { app: 'src/main.tsx' }, outdir: out, bundle: true, minify: true, write: false,
    format: 'esm', target: 'es2023', charset: 'utf8', jsx: 'transform', jsxFactory: 'h', jsxFragment: 'Fragment', inject: ['src/jsx.ts'], tsconfigRaw: '{}', logLevel: 'warning', legalComments: 'none',
    entryNames: '[name]-[hash]', define: { __ICONS__: JSON.stringify(icons), 'window.__PREACT_SIGNALS_DEVTOOLS__': 'undefined' },
    plugins: [smallSheet, leanClient(await pageCode()), await shortTexts(join(here, 'src'))],
    alias: { '@fermata/client': join(web, 'client/src/index.ts'), '@fermata/ui-schema': join(web, 'ui-schema/src/index.ts') },
  });
  const files = new Map();
  for (const { path, text } of outputFiles) files.set(path.slice(out.length + 1), Buffer.from(path.endsWith('.js') ? await smaller(text) : text));
  return files;
}

// Another twentieth of the script: terser looks longer than esbuild does. It must not take reading a signal for nothing
// (pure_getters).
async function smaller(text) {
  if (elsewhere) return text;
  const { code } = await minify(text, { module: true, ecma: 2020, compress: { passes: 3, unsafe_arrows: true, keep_fargs: false, inline: 2, unsafe: true }, format: { quote_style: 1 } });
  return code;
}

// ---- all of it ----

const stamp = await sourceHash();
if (!process.argv.includes('--check') && stamp === await readFile(join(out, 'stamp'), 'utf8').catch(() => '')) process.exit(0);

if (!elsewhere) checkTypes();
const icons = await sprite();
const iconsName = `icons-${hashOf(icons)}.svg`;
const files = await bundle(iconsName); // by name
const entry = (ending) => [...files.keys()].find((name) => name.startsWith('app-') && name.endsWith(ending));
const page = (await readFile(join(here, 'index.html'), 'utf8')).replace('app.js', entry('.js')).replace('app.css', entry('.css'));
files.set(iconsName, Buffer.from(icons));
files.set('icon.svg', await readFile(join(web, 'icon.svg')));
files.set('licences.txt', Buffer.from(await licences()));
files.set('index.html', Buffer.from(page));

const making = `${out}.making`; // in place of the old one when all is well
await rm(making, { recursive: true, force: true });
await mkdir(making, { recursive: true });
const lines = [];
let total = 0;
for (const [name, bytes] of files) {
  await writeFile(join(making, name), bytes);
  const gzip = gzipOf(join(making, name), bytes);
  const brotli = brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length } });
  if (gzip.length < bytes.length) await writeFile(join(making, `${name}.gz`), gzip);
  if (brotli.length < bytes.length) await writeFile(join(making, `${name}.br`), brotli);
  const hashed = /-[0-9A-Za-z]{8,16}\.\w+$/.test(name);
  lines.push([name === 'index.html' ? '/' : `/${name}`, TYPES[name.split('.').pop()], hashed ? 'immutable' : 'revalidate', name, hashOf(bytes)].join('\t'));
  if (name !== 'licences.txt') total += gzip.length;
  console.log(`${String(bytes.length).padStart(8)} ${String(gzip.length).padStart(7)} ${String(brotli.length).padStart(7)}  ${name}`);
}
console.log(`the page: ${total} bytes with gzip`);
if (!elsewhere && total > GZIP_BYTES_MAX) throw new Error(`that is over its ${GZIP_BYTES_MAX}`);
lines.push(['/favicon.ico', TYPES.svg, 'revalidate', 'icon.svg', hashOf(files.get('icon.svg'))].join('\t')); // for what is no page of ours: browsers ask for it
await writeFile(join(making, 'manifest.txt'), `${lines.sort().join('\n')}\n`);
await writeFile(join(making, 'stamp'), stamp);
await rm(out, { recursive: true, force: true });
await rename(making, out);

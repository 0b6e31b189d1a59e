// SPDX-License-Identifier: Apache-2.0
//
// The page, as the binary embeds it: build/page/ with its files, each beside its .gz and .br where those are smaller, and
// manifest.txt, a line for each file: path, content type, `immutable` or `revalidate`, name of the file, hash. Does nothing
// when nothing has changed; `--check` builds in any case. Fails if the types are wrong or the page weighs too much.
//
// esbuild bundles and splits: what is reached by import() is a file of its own, which the page fetches when it is opened.
// `--out FOLDER` writes elsewhere, without a look at the types: for dev.mjs.
//
// To add an icon: its name in src/icons.ts.

import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdir, readFile, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { basename, dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';

import { build } from 'esbuild';

// With gzip: what is fetched before the first conversation can be used, and all there is. The licences are for who asks for them.
const FIRST_BYTES_MAX = 90_000, ALL_BYTES_MAX = 220_000;

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
    join(here, 'build.mjs'), join(here, 'index.html'), join(here, 'package-lock.json'), join(here, 'tsconfig.json'), join(web, 'icon.svg'),
    ...await filesIn(join(here, 'src')), ...await filesIn(join(web, 'client/src')), ...await filesIn(join(web, 'ui-schema/src')),
  ];
  for (const file of files) hash.update(file.slice(web.length)).update(await readFile(file));
  return hash.digest('hex');
}

// ---- parts ----

// One SVG with a symbol for each icon that icons.ts names.
async function sprite() {
  const names = (await readFile(join(here, 'src/icons.ts'), 'utf8')).match(/ICONS = `([^`]*)`/)[1].trim().split(/\s+/);
  const symbols = [];
  for (const name of names) {
    const svg = await readFile(join(here, 'node_modules/lucide-static/icons', `${name}.svg`), 'utf8');
    const shapes = svg.slice(svg.indexOf('>', svg.indexOf('<svg')) + 1, svg.indexOf('</svg>')).trim();
    symbols.push(`<symbol id="${name}" viewBox="0 0 24 24">${shapes}</symbol>`);
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

function checkTypes() {
  const tsc = join(dirname(createRequire(import.meta.url).resolve('typescript/package.json')), 'bin/tsc');
  const { status } = spawnSync(process.execPath, [tsc, '--project', here], { stdio: 'inherit' });
  if (status) process.exit(status);
}

// {files: bytes by name, app, style, needed, texts}: the names of the entry, of its style sheet, of what the entry cannot
// begin without, and of the texts of each language, of which it needs one.
async function bundle(icons) {
  const { outputFiles, metafile } = await build({
    absWorkingDir: here, entryPoints: { app: 'src/main.tsx' }, outdir: out, bundle: true, splitting: true, minify: true, write: false, metafile: true,
    format: 'esm', target: 'es2023', charset: 'utf8', jsx: 'transform', jsxFactory: 'h', jsxFragment: 'Fragment', inject: ['src/jsx.ts'], tsconfigRaw: '{}', logLevel: 'warning', legalComments: 'none',
    entryNames: '[name]-[hash]', chunkNames: '[name]-[hash]', define: { __ICONS__: JSON.stringify(icons), 'window.__PREACT_SIGNALS_DEVTOOLS__': 'undefined' },
    alias: { '@fermata/client': join(web, 'client/src/index.ts'), '@fermata/ui-schema': join(web, 'ui-schema/src/index.ts') },
  });
  const outputs = new Map(Object.entries(metafile.outputs).map(([path, output]) => [basename(path), output]));
  const [[app, { cssBundle }]] = [...outputs].filter(([, { entryPoint }]) => entryPoint === 'src/main.tsx');
  const needed = new Set([app]);
  for (const name of needed) for (const { path, kind } of outputs.get(name).imports) if (kind === 'import-statement') needed.add(basename(path));
  needed.delete(app);
  return {
    files: new Map(outputFiles.map(({ path, contents }) => [basename(path), contents])), app, style: basename(cssBundle), needed: [...needed],
    texts: [...outputs].flatMap(([name, { entryPoint }]) => (entryPoint?.startsWith('src/texts/') ? [name] : [])),
  };
}

// ---- all of it ----

const stamp = await sourceHash();
if (!process.argv.includes('--check') && stamp === await readFile(join(out, 'stamp'), 'utf8').catch(() => '')) process.exit(0);

if (!elsewhere) checkTypes();
const icons = await sprite();
const iconsName = `icons-${hashOf(icons)}.svg`;
const { files, app, style, needed, texts } = await bundle(iconsName);
const page = (await readFile(join(here, 'index.html'), 'utf8')).replace('app.css', style).replace('app.js', app)
  .replace('</head>', `${needed.map((name) => `<link rel="modulepreload" href="${name}">\n`).join('')}</head>`);
files.set(iconsName, Buffer.from(icons));
files.set('icon.svg', await readFile(join(web, 'icon.svg')));
files.set('licences.txt', Buffer.from(await licences()));
files.set('index.html', Buffer.from(page));

const making = `${out}.making`; // in place of the old one when all is well
await rm(making, { recursive: true, force: true });
await mkdir(making, { recursive: true });
const lines = [], weights = new Map();
for (const [name, bytes] of files) {
  await writeFile(join(making, name), bytes);
  const gzip = gzipSync(bytes, { level: 9 });
  const brotli = brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length } });
  if (gzip.length < bytes.length) await writeFile(join(making, `${name}.gz`), gzip);
  if (brotli.length < bytes.length) await writeFile(join(making, `${name}.br`), brotli);
  const hashed = /-[0-9A-Za-z]{8,16}\.\w+$/.test(name);
  lines.push([name === 'index.html' ? '/' : `/${name}`, TYPES[name.split('.').pop()], hashed ? 'immutable' : 'revalidate', name, hashOf(bytes)].join('\t'));
  if (name !== 'licences.txt') weights.set(name, gzip.length);
  console.log(`${String(bytes.length).padStart(8)} ${String(gzip.length).padStart(7)} ${String(brotli.length).padStart(7)}  ${name}`);
}
const weigh = (names) => names.reduce((sum, name) => sum + weights.get(name), 0);
const first = weigh(['index.html', style, app, ...needed, iconsName, 'icon.svg']) + Math.max(...texts.map((name) => weights.get(name)));
const all = weigh([...weights.keys()]);
console.log(`the page with gzip: ${first} bytes for the chat, ${all} with everything that is fetched when it is opened`);
if (!elsewhere && (first > FIRST_BYTES_MAX || all > ALL_BYTES_MAX)) throw new Error(`the limits are ${FIRST_BYTES_MAX} and ${ALL_BYTES_MAX}`);
lines.push(['/favicon.ico', TYPES.svg, 'revalidate', 'icon.svg', hashOf(files.get('icon.svg'))].join('\t')); // for what is no page of ours: browsers ask for it
await writeFile(join(making, 'manifest.txt'), `${lines.sort().join('\n')}\n`);
await writeFile(join(making, 'stamp'), stamp);
await rm(out, { recursive: true, force: true });
await rename(making, out);

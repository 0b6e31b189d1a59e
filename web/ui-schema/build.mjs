// SPDX-License-Identifier: Apache-2.0
//
// dist/index.js (one module, to read), dist/index.min.js (the same, small), dist/*.d.ts. Types are checked.
// Fails if the small one has grown past its limit.

import { spawnSync } from 'node:child_process';
import { readFile, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';

import { build } from 'esbuild';

const GZIP_BYTES_MAX = 6000;

const here = dirname(fileURLToPath(import.meta.url));
process.chdir(here);
const tsc = join(dirname(createRequire(import.meta.url).resolve('typescript/package.json')), 'bin/tsc');
const { status } = spawnSync(process.execPath, [tsc, '--project', '.'], { stdio: 'inherit' });
if (status) process.exit(status);

await rm('dist/index.js', { force: true });
const common = {
  absWorkingDir: here, entryPoints: ['src/index.ts'], bundle: true, format: 'esm', target: 'es2022', charset: 'utf8',
  logLevel: 'warning',
};
await build({ ...common, outfile: 'dist/index.js' });
await build({ ...common, outfile: 'dist/index.min.js', minify: true });

const small = await readFile('dist/index.min.js');
const gzip = gzipSync(small, { level: 9 }).length;
console.log(`@fermata/ui-schema: ${small.length} bytes, ${gzip} with gzip`);
if (gzip > GZIP_BYTES_MAX) throw new Error(`that is over its ${GZIP_BYTES_MAX}`);

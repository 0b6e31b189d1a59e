// SPDX-License-Identifier: Apache-2.0
//
// node tests/tools/run.mjs NAME JOBS FILE...: runs test files, JOBS at a time, each in a process of its own, and prints TAP.
// The slowest file begins first: how long each took is kept in build/times/NAME.json, and is a guess by its size before.
// The exit status is 1 if a test failed.

import { mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { run } from 'node:test';
import { tap } from 'node:test/reporters';
import { fileURLToPath } from 'node:url';

const ROOT = join(dirname(fileURLToPath(import.meta.url)), '../..');
const BYTES_PER_SECOND = 1000; // of a test file that nobody has timed
const [name, jobs, ...files] = process.argv.slice(2);
const place = join(ROOT, 'build/times', `${name}.json`);

let times = {};
try {
  times = JSON.parse(readFileSync(place, 'utf8'));
} catch { /* the first time */ }
const key = (file) => relative(ROOT, resolve(file));
const guess = (file) => times[key(file)] ?? statSync(file).size / BYTES_PER_SECOND;

const order = files.map((file) => resolve(file)).sort((a, b) => guess(b) - guess(a));
const spent = {};
const stream = run({ files: order, concurrency: Number(jobs) });
const count = ({ file, nesting, details }) => {
  if (file && nesting === 0) spent[key(file)] = (spent[key(file)] ?? 0) + details.duration_ms / 1000;
};
stream.on('test:pass', count).on('test:fail', (event) => {
  count(event);
  if (event.todo === undefined) process.exitCode = 1;
});
stream.compose(tap).pipe(process.stdout);
process.on('exit', () => {
  mkdirSync(dirname(place), { recursive: true });
  for (const [file, seconds] of Object.entries(spent)) times[file] = Math.round(seconds * 10) / 10;
  writeFileSync(place, `${JSON.stringify(Object.fromEntries(Object.entries(times).sort((a, b) => b[1] - a[1])), null, 1)}\n`);
});

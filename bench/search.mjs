// SPDX-License-Identifier: Apache-2.0
//
// Search in a million messages of one person, Chinese and English; bench/fill_words makes them. Each query is followed
// over its pages to the end, or until fifty threads are there, as the page shows them. The floor is the same person with a
// tenth of it. Queries: words that stand everywhere, seldom, once and nowhere, of one to many characters, and a pattern made
// to take long.

import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';

import { bin, median, quick, thousands, untilReady, withServer } from './kit.mjs';

const MESSAGES = quick ? 20_000 : 1_000_000;
const TIMES = quick ? 2 : 5;
const SHOWN = 50;

const QUERIES = ['conversation', '对话', '，', 'the', 'needle-1000', 'NEEDLE', 'zebra', '斑马', 'Zebra 斑马', 'not anywhere at all',
  '哪里都没有', `${'a'.repeat(255)}b`, 'ab'.repeat(128)];

async function made(messages) {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'fermata-bench-search-'));
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
  const { stdout } = await promisify(execFile)(bin('bench/fill_words'), [folder, String(messages)]);
  return { ...JSON.parse(stdout), folder };
}

/** One query to its end: milliseconds of each page, and how many threads were found. */
async function follow(server, key, query) {
  const pages = [];
  let found = 0, cursor = '';
  do {
    const began = process.hrtime.bigint();
    const answer = await fetch(`${server.url}/api/v1/agent/threads?limit=${SHOWN}&query=${encodeURIComponent(query)}${cursor}`,
      { headers: { authorization: `Bearer ${key}` } });
    if (answer.status !== 200) throw new Error(`${query}: ${answer.status} ${await answer.text()}`);
    const { threads, next } = await answer.json();
    pages.push(Number(process.hrtime.bigint() - began) / 1e6);
    found += threads.length;
    cursor = next && `&cursor=${next}`;
  } while (cursor && found < SHOWN);
  return { pages, found };
}

async function measure(data) {
  return withServer('talker', { env: { FERMATA_DATA: data.folder } }, async (server) => {
    await untilReady(`${server.url}/healthz`);
    const pages = [], whole = {};
    for (const query of QUERIES) {
      const totals = [];
      for (let i = 0; i < TIMES; i++) {
        const walk = await follow(server, data.ann, query);
        pages.push(...walk.pages);
        totals.push(walk.pages.reduce((sum, ms) => sum + ms, 0));
        whole[query] = { found: walk.found, pages: walk.pages.length };
      }
      whole[query].ms = median(totals);
    }
    pages.sort((a, b) => a - b);
    return { p50: median(pages), p99: pages[Math.floor(pages.length * 0.99)], whole };
  });
}

export async function search() {
  const data = await made(MESSAGES), less = await made(MESSAGES / 10);
  const ours = await measure(data), floor = await measure(less);
  const slowest = Object.values(ours.whole).reduce((a, b) => (a.ms > b.ms ? a : b));
  const ms = (n) => `${n.toFixed(1)} ms`;
  return {
    value: ours.p99,
    figure: ms(ours.p99),
    peer: `of ${thousands(MESSAGES / 10)}: ${ms(floor.p99)}`,
    ratio: ours.p99 / floor.p99,
    more: `p50 of a page ${ms(ours.p50)}; the longest walk ${ms(slowest.ms)} in ${slowest.pages} pages; ${(data.bytes / 2 ** 30).toFixed(1)} GiB`,
    detail: { ours, floor },
  };
}

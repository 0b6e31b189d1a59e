// SPDX-License-Identifier: Apache-2.0
//
// The door by which other threads hand something to the loop, kept shut for as long as a test likes: see
// tests/tools/hold_preload.c.

import { access, rename, rm, writeFile } from 'node:fs/promises';
import { resolve } from 'node:path';

import { buildFolder } from '../api/server.mjs';

export class Door {
  #rounds = 0;

  // `file` says that it is shut; only the folder needs to be there.
  constructor(file) {
    this.file = file;
    this.env = {
      LD_PRELOAD: resolve(buildFolder(), 'tests/hold_preload.so'), ASAN_OPTIONS: `${process.env.ASAN_OPTIONS ?? ''}:verify_asan_link_order=0`,
      HOLD: file,
    };
  }

  // `count` messages pass to the loop, and the ones behind them wait.
  async shut(count = 0) {
    await rm(`${this.file}.held`, { force: true });
    await writeFile(`${this.file}.new`, `${++this.#rounds} ${count}\n`);
    await rename(`${this.file}.new`, this.file);
  }

  // Somebody waits at it.
  held() {
    return access(`${this.file}.held`).then(() => true, () => false);
  }

  open() {
    return rm(this.file, { force: true });
  }
}

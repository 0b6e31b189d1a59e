// SPDX-License-Identifier: Apache-2.0
//
// The style sheet of src/style.ts, made small: a plugin for esbuild, for who bundles the sources.

import { readFile } from 'node:fs/promises';

export const smallSheet = {
  name: 'small sheet',
  setup({ onLoad, esbuild }) {
    onLoad({ filter: /ui-schema.src.style\.ts$/ }, async ({ path }) => {
      const source = await readFile(path, 'utf8');
      const [, sheet] = /SHEET = `([^`]*)`/.exec(source);
      const { code } = await esbuild.transform(sheet, { loader: 'css', minify: true, charset: 'utf8' });
      const small = code.trim().replace(/ *([,:/]|>=) /g, '$1').replaceAll(' }', '}');
      return { contents: source.replace(sheet, () => small), loader: 'ts' };
    });
  },
};

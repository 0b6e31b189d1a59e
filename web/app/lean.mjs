// SPDX-License-Identifier: Apache-2.0
//
// What the page does not use of the client is left out of it: no bundler takes methods out of a class. A plugin for esbuild.
// It refuses to build when the client has no such thing, or the page has begun to use it.

import { readFile } from 'node:fs/promises';

// By file: what the page calls its object, and what it does without.
const UNUSED = {
  'client.ts': ['client', ['current', 'cancelInteraction', 'upload', 'ticket']],
  'socket.ts': ['connection', ['run', 'answer', 'stop']], // what the page says goes by HTTP
};

// The page gives the address alone, and names what it says itself.
const NEW = 'new Fermata({ url: base })';
const GIVEN = { 'client.ts': [/\bthis\.options\.(key|fetch)\b/g, /\bnamed\((?=input\))/g], 'socket.ts': [/\bthis\.#client\.options\.(key|WebSocket)\b/g] };

// `code`: all sources of the page.
export const leanClient = (code) => ({
  name: 'lean client',
  setup({ onLoad }) {
    onLoad({ filter: /client.src.(client|socket)\.ts$/ }, async ({ path }) => {
      const file = path.split(/[\\/]/).pop(), [object, names] = UNUSED[file];
      let contents = await readFile(path, 'utf8');
      if (!code.includes(NEW)) throw new Error(`the page has no ${NEW}: lean.mjs takes the other options away`);
      for (const given of GIVEN[file]) {
        if (!given.test(contents)) throw new Error(`${path} has no ${given}`);
        contents = contents.replace(given, (text) => (text === 'named(' ? '(' : 'undefined'));
      }
      for (const name of names) {
        const method = new RegExp(`^  (?:async )?${name}\\(.*\\{\\n[^]*?^  \\}\\n`, 'm');
        if (!method.test(contents)) throw new Error(`${path} has no ${name}()`);
        if (new RegExp(`\\b${object}[!?]*\\.${name}\\b`).test(code)) throw new Error(`the page calls ${object}.${name}(), which lean.mjs takes away`);
        contents = contents.replace(method, '');
      }
      return { contents, loader: 'ts' };
    });
  },
});

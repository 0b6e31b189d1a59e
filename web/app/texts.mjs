// SPDX-License-Identifier: Apache-2.0
//
// Names of texts are for the sources: in the page a text is a number, and a language is a list. A plugin for esbuild.
//
//     t('turn.you')        t(57)
//     t(`stage.${stage}`)  t(`c${stage}`): what is put together while the page runs keeps the end of its name, in a third list
//
// Every 'name' with a dot that is a text's becomes a number, wherever it stands in the sources. Texts that nothing names are
// left out, and those that could be put together are not: give others names that begin in another way.

import { readFile, readdir } from 'node:fs/promises';
import { join } from 'node:path';

import { transform } from 'esbuild';

const LITERAL = /'(\w+(?:\.\w+)+)'/g;
const PUT_TOGETHER = /`([\w.]*\.)(?=\$\{[^`{}]*\}`)/g;

async function tablesOf(folder) {
  const texts = {};
  for (const name of (await readdir(folder)).filter((one) => one !== 'index.ts').sort()) {
    const { code } = await transform(await readFile(join(folder, name), 'utf8'), { loader: 'ts' });
    Object.assign(texts, (await import(`data:text/javascript,${encodeURIComponent(code)}`)).default);
  }
  return texts;
}

// {plugins}: `src` is the folder of the sources, the tables are in its texts/.
export async function shortTexts(src) {
  const tables = join(src, 'texts'), texts = await tablesOf(tables);
  const sources = (await readdir(src, { recursive: true })).filter((name) => /\.tsx?$/.test(name) && !name.startsWith('texts'));
  const code = (await Promise.all(sources.map((name) => readFile(join(src, name), 'utf8')))).join('\n');
  for (const name of Object.keys(texts)) if (!name.includes('.')) throw new Error(`the name of the text '${name}' has no dot`);
  const whole = new Set([...code.matchAll(LITERAL)].map(([, name]) => name));
  const begins = [...new Set([...code.matchAll(PUT_TOGETHER)].map(([, begin]) => begin))].filter((begin) => Object.keys(texts).some((name) => name.startsWith(begin)));
  const letters = new Map(begins.map((begin, i) => [begin, String.fromCharCode(97 + i)]));
  const beginOf = (name) => begins.find((begin) => name.startsWith(begin));
  const named = Object.keys(texts).filter(beginOf);
  const all = [...named, ...Object.keys(texts).filter((name) => !beginOf(name) && whole.has(name))];
  const numbers = new Map(all.map((name, i) => [name, i]));
  const list = (items) => {
    if (items.some((one) => one.includes('|'))) throw new Error('a text has a | in it');
    return `${JSON.stringify(items.join('|'))}.split('|')`;
  };
  const made = `const names = ${list(named.map((name) => name.replace(beginOf(name), letters.get(beginOf(name)))))}, zh = ${list(all.map((name) => texts[name][0]))}, en = ${list(all.map((name) => texts[name][1]))};
    export const textOf = (key, chinese) => (chinese ? zh : en)[key >= 0 ? key : names.indexOf(key)];`;
  return {
    name: 'short texts',
    setup({ onLoad }) {
      onLoad({ filter: /\.tsx?$/ }, async ({ path }) => {
        if (path === join(tables, 'index.ts')) return { contents: made, loader: 'js' };
        if (!path.startsWith(src)) return undefined;
        const contents = (await readFile(path, 'utf8')).replace(LITERAL, (literal, name) => String(numbers.get(name) ?? literal))
          .replace(PUT_TOGETHER, (whole, begin) => `\`${letters.get(begin) ?? begin}`);
        return { contents, loader: path.endsWith('x') ? 'tsx' : 'ts' };
      });
    },
  };
}

// SPDX-License-Identifier: Apache-2.0
//
// A block of code: its language, a button that copies it, and its text. A block is coloured once it is complete, which
// changes no character of it.
//
// To add a language: a row in LANGUAGES, its grammar in highlight.ts.

import { copy } from '@fermata/ui-schema';
import { t } from '../i18n.js';
import { highlight } from './highlight.js';
import { element, setText, visible } from './inline.js';
import { say } from './say.js';

const PAINTED_CHARS_MAX = 24_000;
const COPIED_MS = 1500;

// Name of the grammar, and what else a fence calls it.
const LANGUAGES = `js javascript jsx mjs cjs node
ts typescript tsx
py python python3
bash sh shell zsh console docker dockerfile make makefile
json jsonc json5 jsonl
html htm vue svelte xml svg
css scss less
sql mysql postgresql sqlite
yaml yml toml ini conf properties
go golang rs rust java kotlin kt scala swift c cpp c++ cc h hpp cs csharp php
diff patch`.split('\n').map((row) => row.split(' '));

export function codeBlock(language: string): HTMLElement {
  const button = element('button'), code = element('code', document.createTextNode('')), pre = element('pre', code);
  const write = (it: Element): void => { it.textContent = t('say.copy'); };
  language = visible(language);
  button.type = 'button';
  say(button, write);
  button.onclick = async () => {
    const done = await copy(code.textContent!);
    if (!done) getSelection()!.selectAllChildren(code); // to be copied by hand
    button.textContent = t(done ? 'say.copied' : 'md.selected');
    setTimeout(write, COPIED_MS, button);
  };
  pre.tabIndex = 0;
  pre.role = 'region';
  say(pre, (it) => { it.ariaLabel = `${t('md.code')} ${language}`.trim(); });
  const figure = element('figure', element('figcaption', element('span', language), button), pre);
  figure.className = 'md-code';
  return figure;
}

export function fillCode(figure: HTMLElement, language: string, source: string, complete: boolean): void {
  const code = figure.querySelector('code')!, text = visible(source), node = code.firstChild;
  const grammar = LANGUAGES.find((names) => names.includes(language.toLowerCase()))?.[0];
  if (node instanceof Text && node === code.lastChild) setText(node, text);
  else code.replaceChildren(document.createTextNode(text));
  if (complete && grammar && text.length <= PAINTED_CHARS_MAX) highlight(code, grammar);
}

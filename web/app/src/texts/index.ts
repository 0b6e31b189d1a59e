// SPDX-License-Identifier: Apache-2.0
//
// All texts: pairs, Chinese first. The build puts something smaller in place of this file (texts.mjs).
//
// To add a table: a line here, twice.

import ask from './ask.js';
import composer from './composer.js';
import confirm from './confirm.js';
import core from './core.js';
import log from './log.js';
import markdown from './markdown.js';
import pages from './pages.js';

const texts = { ...core, ...markdown, ...log, ...ask, ...confirm, ...composer, ...pages } satisfies { [key: string]: readonly [zh: string, en: string] };
export type Text = keyof typeof texts;

export const textOf = (key: Text, chinese: boolean): string => texts[key][chinese ? 0 : 1];

// SPDX-License-Identifier: Apache-2.0
//
// <ui-schema>: importing this defines it.

export { copy } from './action.js';
export { type Markdown, UiSchemaElement } from './element.js';
export type * from './types.js';

// SPDX-License-Identifier: Apache-2.0
export { Fermata, type Call, type Options } from './client.js';
export { FermataError } from './error.js';
export type { RunInput } from './input.js';
export { newId, passing } from './retry.js';
export { Connection } from './socket.js';
export type { Start } from './sse.js';
export { applyCard, applyEvent, applyHistory, applyOlder, emptyState, type RunState, type ThreadState } from './state.js';
export type * from './wire.js';

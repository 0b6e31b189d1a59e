// SPDX-License-Identifier: Apache-2.0
//
// What is said, with names of our own for it: a request that is sent again under the same names is the same request.

import { newId } from './retry.js';
import type { Content, RunAgentInput } from './wire.js';

export const API = '/api/v1/agent';

// A whole RunAgentInput, or just what to say.
export type RunInput = Omit<RunAgentInput, 'messages'> & ({ messages: RunAgentInput['messages'] } | { text: Content });

export function named(input: RunInput): RunAgentInput & { threadId: string; runId: string } {
  const { text, messages, ...rest } = input as RunAgentInput & { text: Content };
  const list: RunAgentInput['messages'] = messages ?? [{ role: 'user', content: text }];
  return { threadId: newId('thr_'), runId: newId('run_'), ...rest, messages: list.map((message) => ({ id: newId('msg_'), ...message })) };
}

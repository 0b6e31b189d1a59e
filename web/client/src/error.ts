// SPDX-License-Identifier: Apache-2.0
//
// One class for everything that goes wrong: a refusal of the server (RFC 9457), or no answer at all (code `network`).

import type { Code, Interaction } from './wire.js';

export interface Problem {
  code: Code;
  status?: number; // of the answer; 0: there was none, or it came over a WebSocket
  detail?: string;
  field?: string; // path of the field that was refused
  interaction?: Interaction; // with 409, 410 and 412: as it was settled
  interactions?: Interaction[]; // with `ambiguous`: those that could be meant
}

export class FermataError extends Error implements Problem {
  declare readonly code: Code;
  declare readonly status: number;
  declare readonly detail: string;
  declare readonly field?: string;
  declare readonly interaction?: Interaction;
  declare readonly interactions?: Interaction[];

  constructor(problem: Problem, cause?: unknown) {
    super(problem.detail ?? problem.code, { cause });
    Object.assign(this, { status: 0, detail: this.message }, problem, { name: 'FermataError' });
  }
}

// What an answer says that is no success. Proxies answer in forms of their own.
export async function problemOf(response: Response): Promise<FermataError> {
  const text = await response.text().catch(() => '');
  try {
    const problem = JSON.parse(text);
    if (typeof problem?.code === 'string') return new FermataError({ ...problem, status: response.status });
  } catch {
    // told below
  }
  return new FermataError({ code: `http_${response.status}`, status: response.status, detail: text.slice(0, 200) || response.statusText });
}

// No answer: who asked may ask again.
export const networkError = (cause: unknown): FermataError =>
  new FermataError({ code: 'network', detail: String(cause) }, cause);

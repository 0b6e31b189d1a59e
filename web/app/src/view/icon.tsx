// SPDX-License-Identifier: Apache-2.0
//
// An icon of the sprite. It says nothing to a screen reader: words stand beside it.

import { SPRITE } from '../icons.js';

export const Icon = ({ name, spin = false }: { name: string; spin?: boolean }) => (
  <svg class={spin ? 'icon spin' : 'icon'} aria-hidden="true"><use href={`${SPRITE}#${name}`} /></svg>
);

const STATES = {
  pending: 'circle', writing: 'circle-dashed', running: 'loader-circle', waiting: 'clock', success: 'circle-check', error: 'circle-x',
  rejected: 'circle-x', stopped: 'circle-stop', skipped: 'circle-minus', unknown: 'circle-help',
};
export type State = keyof typeof STATES;

// How a stage, a step or a tool is doing; its word is t(`state.${state}`).
export const Mark = ({ state }: { state: State }) => <Icon name={STATES[state]} spin={state === 'running'} />;

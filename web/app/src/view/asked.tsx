// SPDX-License-Identifier: Apache-2.0
//
// What a person is asked, by its kind.

import { useLayoutEffect } from 'preact/hooks';
import type { Asked } from '../turns.js';
import { AskCard } from './ask.js';
import { DecideCard } from './decide.js';
import { watchAsked } from './dock.js';

export function AskedView({ asked }: { asked: Asked }) {
  const Card = asked.type === 'ask_user' ? AskCard : DecideCard;
  useLayoutEffect(() => (asked.status === 'open' ? watchAsked(asked.id) : undefined), [asked.id, asked.status]);
  return <Card key={asked.id} asked={asked} />;
}

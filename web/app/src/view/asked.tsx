// SPDX-License-Identifier: Apache-2.0
//
// What a person is asked, by its kind. What is decided is rarer than a question, and is fetched when it first comes: until
// then its words stand in its place.

import { useLayoutEffect } from 'preact/hooks';
import type { Asked } from '../turns.js';
import { AskCard, focusAsked } from './ask.js';
import { watchAsked } from './dock.js';
import { part, type Around } from './part.js';

const DecideCard = part(() => import('./decide.js').then((it) => it.DecideCard), ({ asked: { id, text, status }, failed, children }: { asked: Asked } & Around) => (
  <section class={status === 'open' ? 'decide' : 'tool'} id={`asked-${id}`} aria-label={text}>
    <h3 class={failed ? undefined : 'unseen'} tabIndex={-1} dir="auto">{text}</h3>
    {children}
  </section>
));

export function AskedView({ asked, asked: { id, type, status } }: { asked: Asked }) {
  const Card = type === 'ask_user' ? AskCard : DecideCard, there = type === 'ask_user' || DecideCard.isThere();
  const held = document.getElementById(`asked-${id}`)?.contains(document.activeElement); // before the card itself comes
  useLayoutEffect(() => (status === 'open' ? watchAsked(id) : undefined), [id, status, there]);
  useLayoutEffect(() => { if (held) focusAsked(id); }, [there]);
  return <Card key={id} asked={asked} />;
}

// SPDX-License-Identifier: Apache-2.0
//
// What every decision has in common, whatever is decided: the server's card, the controls below it, and what became of the
// decision. One is sent for each id: the first press counts and the others do not.

import type { Decision, Interaction, UiSchema } from '@fermata/client';
import type { ComponentChildren } from 'preact';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { visible } from '../args.js';
import { lang, number, t, type Text } from '../i18n.js';
import { client, network } from '../link.js';
import { answer, answered, late, outgoingAnswer, takeBack } from '../outbox.js';
import type { Asked } from '../turns.js';
import { unfolded } from '../unfold.js';
import { useArming } from './arming.js';
import { Card } from './card.js';
import { Icon } from './icon.js';

// What is asked, as it is now: the server may have told us that it has changed while it was decided.
const changed = ({ id, status }: Asked): Interaction | undefined => {
  const told = late.value[id]?.interaction;
  return status === told?.status ? told : undefined;
};
export const currentOf = (asked: Asked): Interaction | undefined => changed(asked) ?? asked.interaction;

// Written out here: what is sent keeps its digits. It is bound to exactly what was shown.
export function send(asked: Asked, decision: Omit<Decision, 'args'> & { args?: object }): void {
  const { binding, threadId } = currentOf(asked)!, json = JSON.stringify({ ...decision, binding });
  answer(asked.id, JSON.parse(json) as Decision, threadId, json);
}

export const isBusy = (id: string): boolean => {
  const out = outgoingAnswer(id);
  return out ? out.state !== 'failed' : id in answered.value;
};

// ---- controls ----

interface Control { look?: string; blocked?: boolean; 'data-to'?: string; 'aria-describedby'?: string }
type Button = (text: Text, icon: string, then: () => void, more?: Control) => ComponentChildren;

// `what`: which controls stand there.
export function Row({ asked, what, look = '', children }: { asked: Asked; what: unknown; look?: string; children: (button: Button) => ComponentChildren }) {
  const { id } = asked, row = useRef<HTMLDivElement>(null), [armed, takes] = useArming(row, what), busy = isBusy(id);
  return (
    <div ref={row} class={`decide-row ${look}`} data-state={busy ? 'sent' : armed ? 'armed' : 'arming'}>
      {children((text, icon, then, { look: kind, blocked, ...more } = {}) => (
        <button class={kind} aria-disabled={busy || !armed || blocked} onClick={(event) => { if (!blocked && !isBusy(id) && takes(event)) then(); }} {...more}>
          <Icon name={icon} />{t(text)}
        </button>
      ))}
      <Fate asked={asked} />
    </div>
  );
}

// How the decision fares, once there is one.
function Fate({ asked }: { asked: Asked }) {
  const { id } = asked, out = outgoingAnswer(id), failed = out?.state === 'failed', bad = failed || !out && changed(asked);
  const body = (out?.body ?? answered.value[id]) as Decision | undefined, waiting = out?.state === 'waiting' && network.value === 'lost';
  return (bad || body) && (
    <p class={bad ? 'ask-line error' : 'ask-line quiet'} role={bad ? 'alert' : 'status'}>
      <Icon name={bad ? 'circle-alert' : waiting ? 'wifi-off' : 'send'} />
      {failed ? t('say.failed', { text: out.error! }) : bad ? t('confirm.changed') : t(waiting ? 'ask.waiting' : 'ask.sending', { text: t(`settled.${body!.decision}`) })}
      {waiting && <button class="quiet-button" onClick={() => takeBack(id)}>{t('ask.undo')}</button>}
    </p>
  );
}

// ---- the card of the server ----

// With long values whole, or with head and tail. One that was too large for its event is read; until then, the plain arguments.
export function AskedCard({ asked }: { asked: Asked }) {
  const { id, status, text } = asked, now = currentOf(asked), given = now?.ui ?? asked.ui;
  const [read, set] = useState<UiSchema>(), [whole, show] = useState(false), ui = given ?? read;
  useEffect(() => {
    if (!given && status === 'open') void client.interaction(id).then((one) => set(one.ui), () => {}); // the arguments stand there
  }, [!given]);
  const { card, long } = useMemo(() => (ui ? unfolded(ui, whole, (n) => t('confirm.hidden', { n: number(n) })) : { card: ui, long: false }), [ui, whole, lang.value]);
  return card ? (
    <>
      <Card schema={card} messageId={id} readonly />
      {long && <button class="quiet-button" aria-expanded={whole} onClick={() => show(!whole)}>{t(whole ? 'say.showLess' : 'say.showAll')}</button>}
    </>
  ) : <p class="asked-text" dir="auto">{text}{now?.pendingTool && `\n${visible(now.pendingTool.argsJson)}`}</p>;
}

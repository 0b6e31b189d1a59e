// SPDX-License-Identifier: Apache-2.0
//
// Something to decide: an approval (confirm.tsx), a call of which nobody knows whether it happened, or a connection that is
// gone. Of the last two each way out says what it does. Sending again may do a thing twice, so it takes a second press.
// Once it is settled, here or elsewhere, one line is left, with the card folded behind it.
//
// To add a way out: a row in UNCERTAIN or LOST.

import type { Decision, Interaction } from '@fermata/client';
import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { visible } from '../args.js';
import { expiryOf } from '../asking.js';
import { focusComposer } from '../hotkeys.js';
import { t, type Text } from '../i18n.js';
import { may } from '../link.js';
import { outgoingAnswer } from '../outbox.js';
import type { Asked } from '../turns.js';
import { Deadline } from './ask.js';
import { Approval, Unsent } from './confirm.js';
import { AskedCard, currentOf, Row, send } from './deciding.js';
import { Icon } from './icon.js';
import { By } from './settled.js';
import { Fold, titleOf } from './tool.js';

// ---- ways out ----

type Way = [decision: Decision['decision'], icon: string, label: Text, about: Text];

const UNCERTAIN: Way[] = [['happened', 'check', 'decide.happened', 'decide.happened.about'], ['retry', 'rotate-ccw', 'decide.retry', 'decide.retry.about']];
const LOST: Way[] = [['continue', 'refresh-cw', 'decide.continue', 'decide.continue.about']];
const giveUp = (about: Text): Way => ['give_up', 'circle-minus', 'decide.give_up', about];
const waysOf = ({ type, metadata }: Interaction): Way[] => (type === 'uncertain' ? [...UNCERTAIN, giveUp('decide.give_up.uncertain')]
  : [...LOST, giveUp(metadata['cause'] === 'tool' ? 'decide.give_up.tool' : 'decide.give_up.model')]);

function Ways({ asked, ways }: { asked: Asked; ways: Way[] }) {
  const [asking, ask] = useState(false); // for the second press
  return (
    <Row asked={asked} what={asking} look="decide-ways">
      {(button) => ways.map(([decision, icon, label, about]) => {
        const id = `${asked.id}-${decision}`, risky = decision === 'retry';
        return [
          button(risky && asking ? 'confirm.again' : label, icon, () => (risky && !asking ? ask(true) : send(asked, { decision })), { 'aria-describedby': id }),
          <p class="quiet" id={id}>{t(about)}</p>,
        ];
      })}
    </Row>
  );
}

// ---- open ----

function Open({ asked }: { asked: Asked }) {
  const now = currentOf(asked), question = now?.metadata['question'];
  // The server says too who may; here only so that nobody tries in vain.
  const roles = (now?.approvers ?? []) as string[], role = !roles.some((one) => may.value.has(one as never)) && roles.join(', ');
  return (
    <>
      <AskedCard asked={asked} />
      {question && <p class="asked-text" dir="auto">{t('decide.asking', { text: visible(String(question)) })}</p>}
      {expiryOf(asked) && <Deadline asked={asked} />}
      {role ? <p class="ask-line quiet"><Icon name="shield-alert" />{t('confirm.role', { role })}</p>
        : now && (now.type === 'confirm' ? <Approval asked={asked} now={now} /> : <Ways asked={asked} ways={waysOf(now)} />)}
    </>
  );
}

// ---- settled ----

const ICONS: { [word: string]: string } = { reject: 'circle-x', respond: 'reply', retry: 'rotate-ccw', give_up: 'circle-minus', expired: 'clock' };

// The reason alone: history has it in the sentence that the model was told.
const SAID = /^(?:The user rejected this call and said: |用户拒绝了这个操作，并说：)/;
const reasonOf = ({ answer = '', decision, interaction }: Asked): string =>
  (/^re(ject|spond)$/.test(decision!) ? (interaction?.answer as Decision | undefined)?.comment?.trim() ?? (decision === 'respond' || SAID.test(answer) ? answer.replace(SAID, '') : '') : '');

function Settled({ asked }: { asked: Asked }) {
  const { id, status, decision, toolName, text } = asked;
  const key = status === 'resolved' ? decision! : status, word = t(`settled.${key}` as Text), reason = reasonOf(asked);
  const head = (
    <>
      <Icon name={ICONS[key] ?? (decision ? 'circle-check' : 'circle-minus')} />
      <b dir="auto">{reason ? t('by.saying', { word, text: reason }) : word}</b>
      <span class="quiet" dir="auto">{toolName === 'submit_plan' ? t('plan.title') : toolName ? titleOf(toolName) : text.split('\n')[0]}</span>
      <By asked={asked} />
    </>
  );
  return (
    <>
      <Fold class={`tool-fold settled ${key}`} head={head}>{() => <AskedCard asked={asked} />}</Fold>
      <Unsent id={id} />
    </>
  );
}

// ---- the card ----

// Focus that was on a control goes to the line that is left of it.
export function DecideCard({ asked }: { asked: Asked }) {
  const { id, status, text, type } = asked, open = status === 'open', card = useRef<HTMLElement>(null);
  const held = card.current?.contains(document.activeElement); // before the controls are taken away
  useLayoutEffect(() => {
    if (!open && held) card.current!.querySelector('summary')!.focus({ preventScroll: true });
  }, [open]);
  return (
    <section ref={card} class={open ? 'decide' : 'tool'} id={`asked-${id}`} data-testid={type === 'confirm' ? 'confirm-card' : 'decide-card'} data-state={open ? outgoingAnswer(id)?.state || 'pending' : status}
      aria-label={text} onKeyDown={(event) => { if (event.key === 'Escape' && !event.isComposing) focusComposer(); }}>
      <h3 class="unseen" tabIndex={-1}>{text}</h3>
      {open ? <Open asked={asked} /> : <Settled asked={asked} />}
    </section>
  );
}

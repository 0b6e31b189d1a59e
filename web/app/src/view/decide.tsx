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
import { isOwnRequest, may, mayAnswer, rolesOf } from '../link.js';
import { outgoingAnswer } from '../outbox.js';
import type { Asked } from '../turns.js';
import { Deadline } from './ask.js';
import { Approval, Unsent } from './confirm.js';
import { AskedCard, currentOf, Deciding, Head, Row, send, type Unread } from './deciding.js';
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

function Ways({ asked, ways, unread }: { asked: Asked; ways: Way[]; unread: Unread }) {
  const [asking, ask] = useState(false); // for the second press
  return (
    <Row asked={asked} what={asking} look="decide-ways" unread={unread}>
      {(button) => ways.map(([decision, icon, label, about]) => {
        const id = `${asked.id}-${decision}`, risky = decision === 'retry';
        return [
          button(risky && asking ? 'confirm.again' : label, icon, () => (risky && !asking ? ask(true) : send(asked, { decision })), { 'aria-describedby': id, runs: risky }),
          <p class="quiet" id={id}>{t(about)}</p>,
        ];
      })}
    </Row>
  );
}

// ---- open ----

// Somebody else decides: who, and that nobody waits for this person.
const Others = ({ now }: { now: Interaction }) => (
  <p class="ask-line quiet" data-testid="waiting-approver">
    <Icon name="clock" />{t(isOwnRequest(now) && rolesOf(now).some((one) => may.value.has(one)) ? 'confirm.own' : 'confirm.role', { role: rolesOf(now).join(', ') })}
  </p>
);

function Open({ asked }: { asked: Asked }) {
  const now = currentOf(asked), question = now?.metadata['question'], others = !!now && !mayAnswer(now);
  return (
    <>
      <Head asked={asked} now={now}>{others && <Others now={now} />}</Head>
      <Deciding asked={asked}>
        {(unread) => (
          <>
            {question && <p class="asked-text" dir="auto">{t('decide.asking', { text: visible(String(question)) })}</p>}
            {expiryOf(asked) && <Deadline asked={asked} />}
            {!others && now && (now.type === 'confirm' ? <Approval asked={asked} now={now} unread={unread} /> : <Ways asked={asked} ways={waysOf(now)} unread={unread} />)}
          </>
        )}
      </Deciding>
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
  const { id, status, text, type, decision } = asked, open = status === 'open', now = currentOf(asked), card = useRef<HTMLElement>(null);
  const held = card.current?.contains(document.activeElement); // before the controls are taken away
  useLayoutEffect(() => {
    if (!open && held) card.current!.querySelector('summary')!.focus({ preventScroll: true });
  }, [open]);
  return (
    <section ref={card} class={open ? 'decide' : 'tool'} id={`asked-${id}`} data-testid={type === 'confirm' ? 'confirm-card' : 'decide-card'} data-state={open ? outgoingAnswer(id)?.state || 'pending' : status}
      data-decision={open ? undefined : decision} data-may={now && open && !mayAnswer(now) ? 'no' : undefined} aria-label={text} onKeyDown={(event) => { if (event.key === 'Escape' && !event.isComposing) focusComposer(); }}>
      {!open && <h3 class="unseen" tabIndex={-1}>{text}</h3>}
      {open ? <Open asked={asked} /> : <Settled asked={asked} />}
    </section>
  );
}

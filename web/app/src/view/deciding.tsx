// SPDX-License-Identifier: Apache-2.0
//
// What every decision has in common, whatever is decided: its head, the server's card, the controls below it, and what became
// of the decision. One is sent for each id: the first press counts and the others do not.
//
// Head and controls stay in sight while any of the card is. What lets a call run counts only once all of the card was seen
// (reading.ts). A card that cannot show everything says so, and the exact arguments below it have to be seen as well.

import type { Decision, Interaction, UiSchema } from '@fermata/client';
import type { ComponentChildren } from 'preact';
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { visible } from '../args.js';
import { lang, number, t, type Text } from '../i18n.js';
import { client, network } from '../link.js';
import { answer, answered, late, outgoingAnswer, takeBack } from '../outbox.js';
import type { Asked } from '../turns.js';
import { unfolded } from '../unfold.js';
import { useArming } from './arming.js';
import { Card } from './card.js';
import { Icon } from './icon.js';
import { followEnd } from './log.js';
import { useReading } from './reading.js';
import { titleOf } from './tool.js';
import { CopyButton } from './turn.js';

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
  followEnd(); // what comes of it
}

export const isBusy = (id: string): boolean => {
  const out = outgoingAnswer(id);
  return out ? out.state !== 'failed' : id in answered.value;
};

// ---- controls ----

interface Control { look?: string; blocked?: boolean; runs?: boolean; 'data-to'?: string; 'aria-describedby'?: string } // runs: lets a call run
type Button = (text: Text, icon: string, then: () => void, more?: Control) => ComponentChildren;

// What of the card is not seen yet, and how to get there.
export interface Unread { left: number; next: () => void }

// `what`: which controls stand there.
export function Row({ asked, what, look = '', unread: { left, next } = { left: 0, next: () => {} }, children }: { asked: Asked; what: unknown; look?: string; unread?: Unread; children: (button: Button) => ComponentChildren }) {
  const { id } = asked, row = useRef<HTMLDivElement>(null), read = useRef(0), busy = isBusy(id), why = `${id}-unread`;
  const [armed, takes] = useArming(row, `${what}${read.current}`), reading = armed && left > 0 && !busy, was = useRef(false);
  if (was.current && !left) read.current++; // the controls become others: a press that was meant to go on does not decide
  was.current = reading || was.current && left > 0;
  const held = document.activeElement?.getAttribute('data-testid') === 'decide-next' && row.current?.contains(document.activeElement);
  useLayoutEffect(() => {
    if (held && !reading) row.current!.focus({ preventScroll: true });
  }, [reading]);
  return (
    <div ref={row} class={`decide-row ${look}`} data-testid="decide-row" data-state={busy ? 'sent' : !armed ? 'arming' : reading ? 'reading' : 'armed'} data-left={left || undefined} tabIndex={-1} role="group" aria-label={t('confirm.decide')}>
      {reading && <button class="decide-next" id={why} data-testid="decide-next" title={t('confirm.next')} onClick={next}><Icon name="arrow-down" />{t('confirm.unread')}</button>}
      {children((text, icon, then, { look: kind, blocked, runs, ...more } = {}) => {
        const off = blocked || runs && left > 0;
        return (
          <button class={kind} aria-disabled={busy || !armed || off} aria-describedby={runs && reading ? why : undefined} onClick={(event) => { if (!off && !isBusy(id) && takes(event)) then(); }} {...more}>
            <Icon name={icon} />{t(text)}
          </button>
        );
      })}
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

// ---- the head ----

const TITLES: { [type: string]: Text } = { uncertain: 'decide.unknown', connection_lost: 'decide.lost' };

// What it is about, at a glance: it stays while the rest is scrolled through. `children`: who decides it, if that is somebody else.
export function Head({ asked: { id, type, text, toolName }, now, children }: { asked: Asked; now?: Interaction; children?: ComponentChildren }) {
  const { risk } = now?.pendingTool ?? {}, title = children ? 'confirm.waiting' : TITLES[type] ?? (toolName === 'submit_plan' ? 'confirm.plan' : 'confirm.title');
  return (
    <header class="decide-head" data-testid="decide-head">
      <p class="decide-title">
        <Icon name={type === 'connection_lost' ? 'unplug' : 'shield-alert'} /><strong>{t(title)}</strong>
        {risk && toolName !== 'submit_plan' && <span class="risk" data-testid="decide-risk" data-risk={risk}>{t(`risk.${risk}`)}</span>}
      </p>
      <h3 tabIndex={-1} dir="auto">{visible(text)}</h3>
      {now && <p class="decide-from quiet" dir="auto">{toolName && toolName !== 'submit_plan' && `${titleOf(toolName)} · `}{t('confirm.from', { name: visible(now.requester) })} · …{id.slice(-6)}</p>}
      {children}
    </header>
  );
}

// ---- the card of the server ----

// With long values whole, or with head and tail. One that was too large for its event is read; until then, the plain arguments.
function useCard({ id, status, type, ...asked }: Asked, now?: Interaction) {
  const given = now?.ui ?? asked.ui, [read, set] = useState<UiSchema>(), [whole, show] = useState(false), ui = given ?? read;
  useEffect(() => {
    if (!given && status === 'open') void client.interaction(id).then((one) => set(one.ui), () => {}); // the arguments stand there
  }, [!given]);
  const headless = status === 'open' && type !== 'ask_user';
  const { card, long } = useMemo(() => (ui ? unfolded(ui, { whole, headless, hidden: (n) => t('confirm.hidden', { n: number(n) }) }) : { card: ui, long: false }), [ui, whole, headless, lang.value]);
  return { card, long, whole, show };
}

interface Showing { asked: Asked; now?: Interaction; cut?: (chars: number) => void }

const Shown = ({ asked: { id, text }, now, cut, card, long, whole, show }: Showing & ReturnType<typeof useCard>) => (card ? (
  <>
    <Card schema={card} messageId={id} readonly cut={cut} />
    {long && <button class="quiet-button" data-testid="arg-unfold" aria-expanded={whole} onClick={() => show(!whole)}>{t(whole ? 'say.showLess' : 'say.showAll')}</button>}
  </>
) : <p class="asked-text" dir="auto">{text}{now?.pendingTool && `\n${visible(now.pendingTool.argsJson)}`}</p>);

// What is left of it, to be read.
export function AskedCard({ asked }: { asked: Asked }) {
  const now = currentOf(asked);
  return <Shown asked={asked} now={now} {...useCard(asked, now)} />;
}

// What is to be decided, and how much of it was seen. `children` are the controls.
export function Deciding({ asked, children }: { asked: Asked; children: (unread: Unread) => ComponentChildren }) {
  const now = currentOf(asked), body = useRef<HTMLDivElement>(null), shown = useCard(asked, now), { card, long, whole, show } = shown;
  const [cut, setCut] = useState(0), { pendingTool, binding } = now ?? {}, folded = long && !whole;
  const [unseen, goOn] = useReading(body, binding, [card, cut, lang.value, now]);
  const next = () => {
    if (folded) show(true);
    else goOn();
  };
  return (
    <>
      <div class="decide-card" ref={body}>
        <Shown asked={asked} now={now} cut={setCut} {...shown} />
        {cut > 0 && <p class="ask-line error">{t('confirm.cut', { n: number(cut) })}</p>}
        {pendingTool && <Exact args={pendingTool.argsJson} needed={cut > 0} />}
      </div>
      {children({ left: pendingTool ? unseen + Number(folded) : 0, next })}
    </>
  );
}

// The bytes that are approved, with what nobody would see written out.
function Exact({ args, needed }: { args: string; needed: boolean }) {
  const [chosen, choose] = useState<boolean>(), open = needed || !!chosen;
  return (
    <details class="thoughts" data-testid="decide-raw" open={open} onToggle={({ currentTarget }) => choose(currentTarget.open)}>
      <summary>{t('confirm.raw')}<Icon name="chevron-down" /></summary>
      {open && <><pre class="decide-exact" data-state={needed ? 'needed' : undefined} dir="auto">{visible(args)}</pre><CopyButton text={args} /></>}
    </details>
  );
}

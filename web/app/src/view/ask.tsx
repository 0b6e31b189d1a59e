// SPDX-License-Identifier: Apache-2.0
//
// A question of the agent: choices, a form, own words, or none of it. It never takes the focus by itself, never answers
// by itself, and never loses what was typed (asking.ts). Once it is settled it says how, and can only be read.
//
// Keys in it: arrows, Home and End walk through the choices, a digit goes to one without pressing it, Enter in the free
// input sends, Escape goes back to the composer.
//
// To add a way to answer: its part in Open, its body in press().

import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { Reply } from '@fermata/client';
import type { TargetedKeyboardEvent } from 'preact';
import {
  draftOf, expiryOf, isFresh, leaving, lineOf, mayMove, moreTime, overtaken, plain, press, readExpiry, saidOf, SECRET, setDraft, stateOf, typing, undo,
  type Draft, type Said, type State,
} from '../asking.js';
import { focusComposer } from '../hotkeys.js';
import { lang, t } from '../i18n.js';
import { again, answered, late, outgoingAnswer, takeBack } from '../outbox.js';
import type { Asked } from '../turns.js';
import { Form, type Field } from './fields.js';
import { Icon } from './icon.js';
import { By } from './settled.js';
import { CopyButton } from './turn.js';

const ALL_FROM = 5; // choices: then there is a button for all of them
const PULSE = { duration: 2400, iterations: 2 };
const PREVIEW_CHARS = 200; // more than a line

const focus = (element?: HTMLElement | null): void => element?.focus({ preventScroll: true });
const focusHeading = (card?: HTMLElement | null): void => focus(card?.querySelector('h3'));

// Brings it into sight, what is higher than the window with its head, and its heading into focus, if it is drawn.
export function focusAsked(id: string): void {
  const card = document.getElementById(`asked-${id}`), room = card?.closest('.scroller, .scroll')?.clientHeight ?? 0;
  card?.scrollIntoView({ block: card.offsetHeight > room ? 'start' : 'nearest' });
  focusHeading(card);
}

// ---- the card ----

const OPEN = 0, LEAVING = 1, GONE = 2;
const PHASES: { [state in State]?: number } = { pending: OPEN, failed: OPEN, leaving: LEAVING };

export function AskCard({ asked }: { asked: Asked }) {
  const { id, text } = asked, state = stateOf(asked), phase = PHASES[state] ?? GONE;
  const open = asked.status === 'open', title = open ? t('ask.title') : text;
  const card = useRef<HTMLElement>(null), was = useRef(phase), last = useRef<HTMLElement>(null);
  const on = document.activeElement as HTMLElement, held = card.current?.contains(on); // before what follows is drawn

  useLayoutEffect(() => {
    const from = was.current;
    was.current = phase;
    if (!held) return;
    if (from === OPEN) last.current = on;
    if (phase === GONE && from === LEAVING) focusComposer();
    else if (phase === LEAVING) focus(card.current!.querySelector<HTMLElement>('[data-testid=ask-undo]'));
    else if (phase === OPEN && last.current?.isConnected) focus(last.current);
    else focusHeading(card.current);
  }, [phase]);
  useEffect(() => {
    if (open && isFresh(asked.interaction) && !matchMedia('(prefers-reduced-motion: reduce)').matches)
      card.current!.animate([{ offset: 0.5, boxShadow: '0 0 0 7px var(--ask-line)' }], PULSE);
  }, []);

  return (
    <section class={open ? 'ask ask-open' : 'ask'} id={`asked-${id}`} ref={card} data-testid="ask-card" data-state={phase === LEAVING ? 'sending' : state} aria-label={title} onKeyDown={keys}>
      <h3 tabIndex={-1} dir="auto"><span aria-hidden="true">💬</span> {title}</h3>
      {open ? <Open asked={asked} state={state} /> : <Settled asked={asked} state={state} />}
    </section>
  );
}

function keys(event: TargetedKeyboardEvent<HTMLElement>): void {
  const { key } = event, target = event.target as HTMLTextAreaElement;
  if (event.isComposing || event.keyCode === 229 || event.altKey || event.ctrlKey || event.metaKey) return;
  if (key === 'Escape') focusComposer();
  else if (key === 'Enter' && target.matches('textarea') && !event.shiftKey) {
    event.preventDefault();
    target.form!.requestSubmit();
  } else if (target.matches('h3, button, [type=checkbox]')) {
    const all = [...event.currentTarget.querySelectorAll<HTMLElement>('.ask-choices :enabled')], n = all.length, at = all.indexOf(target), next = at + 1, before = at + n - 1;
    const step = ({ ArrowDown: next, ArrowRight: next, ArrowUp: before, ArrowLeft: before, Home: 0, End: n - 1 } as { [key: string]: number })[key];
    const to = all[Number(key) - 1] ?? (at < 0 ? undefined : all[step! % n]);
    if (to) event.preventDefault();
    to?.focus();
  }
}

// ---- open ----

const ADDRESS = /(https?:\/\/[^\s<>"'，。；！？、）】]+)/; // some questions are about what stands there

function Open({ asked, state }: { asked: Asked; state: State }) {
  const { id, text: question, choices, interaction } = asked, { multi, allowFreeform: free = true } = interaction ?? {};
  const fields = (interaction?.fields ?? []) as unknown as Field[];
  const draft = draftOf(id).value, { text = '', choices: picked = [], fields: typed = {} } = draft, words = free && text.trim();
  const [roving, rove] = useState(0), out = outgoingAnswer(id);
  const locked = PHASES[state] !== OPEN, waiting = state === 'waiting', failed = state === 'failed';

  const write = (how: Draft): void => {
    takeBack(id); // what had failed: it is another one now
    setDraft(id, { ...draft, ...how });
    typing(asked);
  };
  const all = choices.map((one) => one.id), every = picked.length === all.length;
  const bodyOf = (ids: string[]): Reply => ({ choices: ids, text: words || undefined });
  const body = picked.length ? bodyOf(picked) : words ? { answer: words } : undefined;
  const submit = (event: Event): void => {
    event.preventDefault();
    if (body) press(asked, body);
  };
  return (
    <>
      <fieldset disabled={locked}>
        <legend class="ask-question" dir="auto">
          {question.split(ADDRESS).map((part, i) => (i % 2 ? <a href={part} target="_blank" rel="noopener noreferrer nofollow">{part}</a> : part))}
        </legend>
        {(free || fields.some(({ type }) => /text|number/.test(type))) && SECRET.test(question + JSON.stringify(fields))
          && <p class="ask-line ask-secret" data-testid="ask-secret"><Icon name="shield-alert" />{t('ask.secret')}</p>}
        <div class="ask-choices">
          {choices.map(({ id: choice, label, description }, i) => {
            const inside = (
              <>
                <span class="ask-n">{i + 1}</span>
                <span class="ask-label">
                  <bdi>{label}</bdi>
                  {description && <small class="quiet" dir="auto">{description}</small>}
                  {words && !multi && <small class="ask-with" dir="auto">{t('ask.with', { text: words.slice(0, PREVIEW_CHARS) })}</small>}
                </span>
              </>
            );
            return multi ? (
              <label key={choice} class="ask-choice">
                <input type="checkbox" checked={picked.includes(choice)} onChange={() => write({ choices: all.filter((one) => (one === choice) !== picked.includes(one)) })} />
                {inside}
              </label>
            ) : <button key={choice} class="ask-choice" tabIndex={i === roving ? 0 : -1} onFocus={() => rove(i)} onClick={() => press(asked, bodyOf([choice]))}>{inside}</button>;
          })}
        </div>
        {fields.length > 0 && <Form asked={asked} fields={fields} typed={typed} change={(now) => write({ fields: now })} />}
        {free && (
          <form class="ask-row" onSubmit={submit}>
            <textarea rows={text.split('\n').length} dir="auto" value={text} placeholder={t('ask.free')} aria-label={t('ask.free')} data-testid="ask-free"
              onInput={(event) => write({ text: event.currentTarget.value })} />
            {!multi && <button class="primary" disabled={!body} aria-label={t('ask.submit')}><Icon name="send" /></button>}
          </form>
        )}
        {multi && <p class="quiet" dir="auto" data-testid="ask-review">{t('ask.review', { n: picked.length })}{body && `: ${lineOf(body, choices)}`}</p>}
        <div class="ask-row" hidden={locked}>
          {multi && <button class="primary" disabled={!body} onClick={submit}>{t('ask.submit')}</button>}
          {multi && all.length >= ALL_FROM && <button aria-pressed={every} onClick={() => write({ choices: every ? [] : all })}>{t('ask.all')}</button>}
          <button class="plain" data-testid="ask-skip" onClick={() => press(asked, { skip: true })}>{t('ask.skip')}</button>
        </div>
      </fieldset>
      {state !== 'pending' && (
        <p key={state} class={failed ? 'ask-line error' : 'ask-line'} role={failed ? 'alert' : undefined} data-testid={failed ? 'ask-error' : `ask-${state}`}>
          <Icon name={failed ? 'circle-alert' : waiting ? 'wifi-off' : 'send'} />
          <span dir="auto">{failed ? t('say.failed', { text: out!.error! })
            : t(waiting ? 'ask.waiting' : 'ask.sending', { text: lineOf((leaving.value[id] ?? out?.body ?? answered.value[id]) as Said, choices) })}</span>
          {failed ? <button class="quiet-button" onClick={() => again(id)}>{t('say.retry')}</button>
            : state !== 'sending' && <button class="quiet-button" data-testid="ask-undo" onClick={() => undo(id) ?? takeBack(id)}>{t('ask.undo')}</button>}
        </p>
      )}
      {expiryOf(asked) && <Deadline asked={asked} />}
    </>
  );
}

// ---- time ----

const UNITS: [string, number][] = [['day', 86_400], ['hour', 3600], ['minute', 60]];

// Until when there is time to answer.
export function Deadline({ asked }: { asked: Asked }) {
  const expiry = expiryOf(asked)!, [, tick] = useState(0), [error, fail] = useState('');
  const left = Math.max(0, Math.ceil((Date.parse(expiry) - Date.now()) / 1000));
  useEffect(() => {
    const timer = setTimeout(() => {
      if (!left) void readExpiry(asked.id);
      tick(Date.now());
    }, left < 1 ? 5000 : left < 180 ? 1000 : 20_000);
    return () => clearTimeout(timer);
  });
  const [unit, size] = UNITS.find(([, one]) => left >= 2 * one) ?? ['second', 1];
  const time = new Intl.NumberFormat(lang.value, { style: 'unit', unit }).format(Math.floor(left / size));
  return (
    <p class="ask-line quiet" data-testid="ask-time"><Icon name="clock" />
      <time dateTime={expiry}>{t('ask.left', { time })}</time>
      {mayMove(asked) && <button class="quiet-button" data-testid="ask-more" onClick={() => void moreTime(asked).then(() => fail(''), (why: Error) => fail(why.message))}>{t('ask.more')}</button>}
      {error && <span class="error" role="alert">{t('say.failed', { text: error })}</span>}
    </p>
  );
}

// ---- settled ----

function Settled({ asked, state }: { asked: Asked; state: State }) {
  const { id, choices, answer = '' } = asked;
  const said = saidOf(answer, choices), fields = said.fields && Object.entries(said.fields);
  // What this person had typed or pressed. While it is on its way it may be that which settled this: its event can come before the server's yes.
  const out = outgoingAnswer(id), unsent = (!out || out.state === 'failed') && lineOf((late.value[id]?.body ?? draftOf(id).value) as Said, choices);
  useEffect(() => overtaken(id), []);
  const forget = (): void => {
    const { [id]: _, ...rest } = late.value;
    late.value = rest;
    setDraft(id, {});
    focusAsked(id);
  };
  return (
    <>
      <div class="ask-answer">{state === 'answered' ? (
        <>
          <span aria-hidden="true">↩ </span>{t('ask.answered')}
          {fields ? <dl>{fields.flatMap(([name, value]) => [<dt dir="auto">{name}</dt>, <dd dir="auto">{plain(value)}</dd>])}</dl> : <bdi>{lineOf(said, choices)}</bdi>}
        </>
      ) : t(`settled.${state as Exclude<Asked['status'], 'open' | 'resolved'>}`)}</div>
      <By asked={asked} />
      {unsent && (
        <details class="thoughts" data-testid="ask-unsent">
          <summary>{t('ask.unsent')}<Icon name="chevron-down" /></summary>
          {state === 'answered' && <p class="quiet">{t('ask.late')}</p>}
          <p dir="auto">{unsent}</p>
          <CopyButton text={unsent} /><button class="quiet-button" onClick={forget}>{t('say.delete')}</button>
        </details>
      )}
    </>
  );
}

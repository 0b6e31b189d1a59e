// SPDX-License-Identifier: Apache-2.0
//
// The log: the turns of a conversation in a box that scrolls. follow.ts says where it is scrolled to, window.ts which turns
// are in the document. Around them stand how the past is loaded, and the way back to the end.

import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { Conversation } from '../conversation.js';
import { number, t } from '../i18n.js';
import { Follow } from './follow.js';
import { Icon } from './icon.js';
import { TurnView } from './turn.js';

const SKELETON_MS = 300; // before that, waiting is not worth a word

let shown: Follow | undefined; // the log that is on the page

// For keys: the turn before (-1) or after (1), the latest reply.
export const focusTurn = (by: 1 | -1): void => shown?.step(by);
export const focusLatest = (): void => shown?.latest();

// Brings the card of what is asked into sight, wherever it is in the conversation.
export const showAsked = (id: string, then?: (card: HTMLElement) => void): void => shown?.seek(id, then);

// To the end, and on with it.
export const followEnd = (): void => shown?.pin();

export function Log({ conversation }: { conversation: Conversation }) {
  const follow = useMemo(() => new Follow(conversation), [conversation]);
  const box = useRef<HTMLElement>(null), log = useRef<HTMLDivElement>(null);
  const turns = conversation.turns.value, span = follow.spanOf(turns);
  const { from, to } = span;

  useLayoutEffect(() => {
    shown = follow;
    const detach = follow.attach(box.current!, log.current!);
    return () => {
      detach();
      if (shown === follow) shown = undefined;
    };
  }, [follow]);
  useLayoutEffect(() => follow.drawn(turns, span), [turns, from, to]);

  return (
    <div class="log-frame">
      <main class="scroller" ref={box} tabIndex={0} aria-label={t('log.label')}>
        <div class="column">
          {turns.length > 0 && <Beginning conversation={conversation} />}
          <Room px={follow.heights.sum(turns, 0, from)} />
          <div class="log" ref={log} role="log" aria-live="off" data-testid="log">
            {turns.slice(from, to).map((turn) => <TurnView key={turn.key} turn={turn} />)}
          </div>
          <Room px={follow.heights.sum(turns, to, turns.length)} />
          {(turns.length === 0 || conversation.phase.value === 'failed') && <Waiting conversation={conversation} />}
        </div>
      </main>
      <Jump conversation={conversation} follow={follow} />
    </div>
  );
}

// In place of turns that are not mounted.
const Room = ({ px }: { px: number }) => <div class="room" aria-hidden="true" style={{ height: `${px}px` }} />;

// Above the first turn: is there more?
function Beginning({ conversation }: { conversation: Conversation }) {
  const state = conversation.older.value;
  return (
    <div class="beginning quiet" data-testid="older" data-state={state}>
      {state === 'none' && conversation.phase.value === 'ready' && t('log.beginning')}
      {state === 'loading' && <><Icon name="loader-circle" spin />{t('log.loadingOlder')}</>}
      {state === 'failed' && (
        <>
          <Icon name="circle-alert" />{t('log.failedOlder')}
          <button type="button" class="quiet-button" onClick={() => void conversation.loadOlder()}><Icon name="rotate-ccw" />{t('say.retry')}</button>
        </>
      )}
    </div>
  );
}

// Before there are turns.
function Waiting({ conversation }: { conversation: Conversation }) {
  const [long, set] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => set(true), SKELETON_MS);
    return () => clearTimeout(timer);
  }, []);
  if (conversation.phase.value === 'failed') {
    return (
      <div class="log-failed" role="alert" data-testid="log-failed">
        <Icon name="circle-alert" />
        <p>{t('log.failed', { text: conversation.error.value ?? '' })}</p>
        <button type="button" onClick={() => conversation.retry()}><Icon name="rotate-ccw" />{t('say.retry')}</button>
      </div>
    );
  }
  if (conversation.phase.value === 'ready' || !long) return null;
  return (
    <div class="skeleton" data-testid="skeleton">
      <p class="unseen">{t('log.loading')}</p>
      {[0, 1, 2].map((row) => <div key={row} class="skeleton-row" aria-hidden="true"><span /><span /><span /></div>)}
    </div>
  );
}

function Jump({ conversation, follow }: { conversation: Conversation; follow: Follow }) {
  if (!follow.away.value) return null;
  const turns = conversation.turns.value;
  const since = turns.findLastIndex(({ key }) => key === follow.since);
  const fresh = since < 0 ? 0 : turns.length - 1 - since;
  return (
    <button type="button" class="jump" data-testid="jump" onClick={() => follow.jump()}>
      <Icon name="arrow-down" />{fresh ? t('log.jumpNew', { n: number(fresh) }) : t('log.jump')}
    </button>
  );
}

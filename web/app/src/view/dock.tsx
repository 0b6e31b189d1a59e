// SPDX-License-Identifier: Apache-2.0
//
// What waits for the person in this conversation and is not in sight, between the log and the composer, with a way there.
// It covers everything that is asked: questions, approvals, decisions.

import { signal } from '@preact/signals';
import type { Conversation } from '../conversation.js';
import { t } from '../i18n.js';
import { mayAnswer } from '../link.js';
import { focusAsked } from './ask.js';
import { Icon } from './icon.js';
import { showAsked } from './log.js';

const SHARE_MIN = 0.3; // of a card, or
const HEIGHT_MIN = 160; // of it: then it is in sight

// ---- in sight? ----

const inSight = signal<{ [elementId: string]: boolean }>({});
const mark = (id: string, there: boolean): void => { inSight.value = { ...inSight.peek(), [id]: there }; };

const observer = new IntersectionObserver((entries) => {
  for (const { target, intersectionRatio, intersectionRect } of entries)
    mark(target.id, intersectionRatio >= SHARE_MIN || intersectionRect.height >= HEIGHT_MIN);
}, { threshold: [0, 0.15, SHARE_MIN, 0.5, 1] });

// For the card of something open, while it is drawn.
export function watchAsked(id: string): () => void {
  const card = document.getElementById(`asked-${id}`)!;
  mark(card.id, true); // until the observer says otherwise
  observer.observe(card);
  return () => {
    observer.unobserve(card);
    mark(card.id, false);
  };
}

// ---- the dock ----

export function Dock({ conversation: { state } }: { conversation: Conversation }) {
  const interactions = state.value.interactions.filter(mayAnswer), unseen = interactions.filter(({ interactionId }) => !inSight.value[`asked-${interactionId}`]);
  const next = unseen[0] ?? interactions[0], n = interactions.length;
  return (
    <div class="dock" data-testid="dock" hidden={!unseen.length && n < 2}>
      {next && (
        <>
          <Icon name={next.type === 'ask_user' ? 'message-circle-question-mark' : 'shield-alert'} />
          <p><b>{n > 1 || next.type !== 'ask_user' ? t('dock.many', { n }) : t('dock.question')}</b><bdi>{next.displayText}</bdi></p>
          <button onClick={() => showAsked(next.interactionId, () => focusAsked(next.interactionId))}>{t('dock.answer')}</button>
        </>
      )}
    </div>
  );
}

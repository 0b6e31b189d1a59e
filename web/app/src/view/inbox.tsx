// SPDX-License-Identifier: Apache-2.0
//
// Everything that waits for this person, oldest first: their own questions and what they may approve for others. What was
// settled while they look stays where it was, to be read, until they leave.

import { useMemo, useState } from 'preact/hooks';
import type { Interaction } from '@fermata/client';
import { t } from '../i18n.js';
import { mayAnswer, open, session, settled } from '../link.js';
import { hrefOf } from '../route.js';
import { known } from '../threads.js';
import { askedOfInteraction } from '../turns.js';
import { AskedView } from './asked.js';
import { Time } from './turn.js';

const PAGE = 50;
const KINDS = ['all', 'own', 'others'] as const;
type Kind = typeof KINDS[number];

export function Inbox() {
  const before = useMemo(() => settled.value, []); // this page was opened
  const [kind, choose] = useState<Kind>('all');
  const [shown, show] = useState(PAGE);
  const all = [...open.value, ...Object.values(settled.value).filter(({ interactionId }) => !(interactionId in before))]
    .sort((a, b) => (a.openedAt + a.interactionId < b.openedAt + b.interactionId ? -1 : 1));
  const of = (which: Kind) => all.filter(({ threadId }) => which === 'all' || (which === 'own') === (threadId !== undefined));
  const list = of(kind), own = of('own').length;
  return (
    <main class="scroll">
      <div class="page" data-testid="inbox">
        {(kind !== 'all' || own > 0 && own < all.length) && (
          <select aria-label={t('inbox.title')} data-testid="inbox-kind" value={kind} onChange={({ currentTarget }) => choose(currentTarget.value as Kind)}>
            {KINDS.map((one) => <option key={one} value={one}>{t(`show.${one}`)} ({of(one).filter((each) => each.status === 'open' && mayAnswer(each)).length})</option>)}
          </select>
        )}
        {!list.length && <div class="greeting"><h2>{t('inbox.none')}</h2><p class="quiet">{t('inbox.noneWhy')}</p></div>}
        <ol class="waiting">{list.slice(0, shown).map((one) => <Entry key={one.interactionId} interaction={one} />)}</ol>
        {list.length > shown && <button type="button" onClick={() => show((now) => now + PAGE)}>{t('say.more')}</button>}
      </div>
    </main>
  );
}

function Entry({ interaction, interaction: { interactionId, threadId, requester, openedAt, status } }: { interaction: Interaction }) {
  const asked = useMemo(() => askedOfInteraction(interaction), [interaction]);
  return (
    <li data-testid="inbox-item" data-state={status}>
      <p class="row quiet" dir="auto">
        {threadId !== undefined
          ? <a href={hrefOf({ view: 'chat', threadId, asked: interactionId })}>{known.value[threadId]?.title || t('inbox.open')}</a>
          : <span>{requester !== session.value?.user && t('inbox.from', { name: requester })}</span>}
        <Time at={openedAt} />
      </p>
      <AskedView asked={asked} />
    </li>
  );
}

// SPDX-License-Identifier: Apache-2.0
//
// The plan of the newest run: its steps with their marks.

import type { Plan, RunState } from '@fermata/client';
import { t } from '../i18n.js';
import { goes } from '../turns.js';
import { Icon, Mark } from './icon.js';

export function PlanCard({ plan: { steps }, run }: { plan: Plan; run: RunState }) {
  return (
    <section class="plan" data-testid="plan">
      <h3><Icon name="list-checks" />{t('plan.title')}<span class="quiet">{steps.filter(({ status }) => status === 'done').length} / {steps.length}</span></h3>
      <ol>
        {steps.map(({ content, doneWhen, status }, i) => {
          const state = status === 'done' ? 'success' : status === 'pending' ? status : goes(run);
          return (
            <li key={i} data-state={status}>
              <Mark state={state} />
              <div>
                <span dir="auto">{content}</span> <span class="unseen">{t(`state.${state}`)}</span>
                {doneWhen && <p class="quiet" dir="auto">{t('plan.doneWhen', { text: doneWhen })}</p>}
              </div>
            </li>
          );
        })}
      </ol>
    </section>
  );
}

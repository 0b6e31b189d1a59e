// SPDX-License-Identifier: Apache-2.0
//
// The plan of the newest run: its steps with their marks. What did not go as planned has its word beside it, and so has
// what nothing but the model's word speaks for.

import type { Plan, RunState } from '@fermata/client';
import { t } from '../i18n.js';
import { goes } from '../turns.js';
import { Icon, Mark, type State } from './icon.js';

const MARKS: Record<string, State> = { pending: 'pending', done: 'success', failed: 'error', rejected: 'rejected', skipped: 'skipped' };

export function PlanCard({ plan: { steps }, run }: { plan: Plan; run: RunState }) {
  return (
    <section class="plan" data-testid="plan">
      <h3><Icon name="list-checks" />{t('plan.title')}<span class="quiet">{steps.filter(({ status }) => status === 'done').length} / {steps.length}</span></h3>
      <ol>
        {steps.map(({ content, doneWhen, status, by }, i) => {
          const state = MARKS[status] ?? goes(run), word = t(`state.${state}`);
          return (
            <li key={i} data-state={status}>
              <Mark state={state} />
              <div>
                <span dir="auto">{content}</span> <span class={by || /^(fail|rej|skip)/.test(status) ? 'quiet' : 'unseen'}>{by ? t('plan.byModel') : word}</span>
                {doneWhen && <p class="quiet" dir="auto">{t('plan.doneWhen', { text: doneWhen })}</p>}
              </div>
            </li>
          );
        })}
      </ol>
    </section>
  );
}

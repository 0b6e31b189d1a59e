// SPDX-License-Identifier: Apache-2.0
//
// How far a run has come: three stages, each with an icon and a word. Of the newest run only. And how it ended, if that
// was not well.

import type { Message, RunState } from '@fermata/client';
import { busy } from '../compose.js';
import { waitsForOthers } from '../conversation.js';
import { t } from '../i18n.js';
import { goes } from '../turns.js';
import { Icon, Mark, type State } from './icon.js';
import { newVersion } from './user.js';

const STAGES = ['intent', 'execution', 'report'] as const;

export function Stages({ run }: { run: RunState }) {
  const { stages, step, failed, status } = run, last = STAGES.findLastIndex((stage) => stages.includes(stage));
  return (
    <ol class="stages" aria-label={t('bar.title')}>
      {STAGES.map((stage, i) => {
        const state: State = stage === failed ? (status === 'failed' ? 'error' : 'stopped') : stage === step ? goes(run)
          : stages.includes(stage) ? 'success' : i < last || goes(run) === 'stopped' ? 'skipped' : 'pending';
        return (
          <li key={stage} data-testid={`step-${stage}`} data-state={state} aria-current={/^(run|wait)/.test(state) ? 'step' : undefined}>
            <Mark state={state} />
            {t(`stage.${stage}`)}
            <span class={/^(wait|err|stop)/.test(state) ? 'stage-word' : 'unseen'}>{state === 'waiting' && waitsForOthers.value ? t('state.waitingOther') : t(`state.${state}`)}</span>
          </li>
        );
      })}
    </ol>
  );
}

const ENDS: { [status: string]: string } = { failed: 'circle-alert', exhausted: 'clock', cancelled: 'circle-stop' };

export function Outcome({ run: { status, error }, question }: { run: RunState; question?: Message }) {
  const icon = ENDS[status], failed = status === 'failed';
  if (!icon) return null;
  return (
    <div class={failed ? 'outcome error' : 'outcome'} role={failed ? 'alert' : undefined} data-testid="outcome" data-state={status}>
      <Icon name={icon} />
      <span>{failed ? t('say.failed', { text: error?.message ?? error?.code ?? '' }) : t(status === 'exhausted' ? 'turn.exhausted' : 'turn.cancelled')}</span>
      {status !== 'exhausted' && question && (
        <button class="quiet-button" disabled={busy.value} onClick={({ detail }) => { if (detail < 2) newVersion(question); }}>
          <Icon name="rotate-ccw" />{t('say.retry')}
        </button>
      )}
    </div>
  );
}

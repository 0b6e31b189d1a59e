// SPDX-License-Identifier: Apache-2.0
//
// The controls of an approval. What is to be run stands above them, in the server's card, made from the stored bytes.
//
//     choose ──► edit | reject | respond ──► sent     what was typed is kept by the id until it is taken
//
// Something that cannot be undone takes a second press.

import type { Interaction } from '@fermata/client';
import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { argsOf, fieldsOf, lineOf, planOf, stepsOf, type Draft, type Step } from '../args.js';
import { decisionName } from '../asking.js';
import { drafts } from '../drafts.js';
import { t } from '../i18n.js';
import { outgoingAnswer, takeBack } from '../outbox.js';
import type { Asked } from '../turns.js';
import { isBusy, Row, send, type Unread } from './deciding.js';
import { EditArgs, EditPlan } from './edit-args.js';
import { Fold } from './tool.js';

const SCOPES = ['once', 'thread', 'user'] as const;
const SAYING = { reject: ['confirm.reject', 'x', 'confirm.reason'], respond: ['confirm.respond', 'reply', 'confirm.words'] } as const;
type Saying = keyof typeof SAYING;

// ---- what was typed and not decided ----

interface Kept {
  mode?: 'edit' | Saying; // none: choose
  args?: Draft;
  steps?: Step[];
  text?: string; // a reason, or a reply
}

const keptOf = (id: string): Kept => drafts.get<Kept>(decisionName(id)) ?? {};
const linesOf = ({ args = {}, steps = [], text = '' }: Kept): string =>
  [...Object.entries(args).map(([name, typed]) => `${name}: ${typed ?? '—'}`), ...steps.map(lineOf), text.trim()].filter(Boolean).join('\n');

// Somebody else was first: what was typed here is not lost.
export function Unsent({ id }: { id: string }) {
  const [, draw] = useState(0), text = !isBusy(id) && linesOf(keptOf(id));
  const forget = () => {
    drafts.set(decisionName(id), undefined);
    draw(1);
  };
  return text && <Fold class="thoughts" head={t('ask.unsent')}>{() => <><pre dir="auto">{text}</pre><button class="quiet-button" onClick={forget}>{t('say.delete')}</button></>}</Fold>;
}

// ---- the controls ----

export function Approval({ asked, now: { pendingTool }, unread }: { asked: Asked; now: Interaction; unread: Unread }) {
  const { id } = asked, { argsJson, argsSchema, risk, toolName } = pendingTool!, plan = toolName === 'submit_plan';
  const [kept, set] = useState(() => keptOf(id)), [scope, choose] = useState<typeof SCOPES[number]>('once'), [asking, ask] = useState(false); // for the second press
  const { mode, args = {}, text = '' } = kept, was = useRef(mode), locked = isBusy(id);
  const find = (what: string) => document.getElementById(`asked-${id}`)!.querySelector<HTMLElement>(what);

  const keep = (more: Kept) => {
    const next = { ...kept, ...more };
    takeBack(id); // what had failed: it is another one now
    ask(false);
    set(next);
    drafts.set(decisionName(id), next.mode || linesOf(next) ? next : undefined);
  };
  const turn = (to?: Kept['mode']) => () => keep({ mode: to });
  // Who opens something begins to type there, from the first key on; who goes back is where he was.
  useLayoutEffect(() => {
    if (was.current !== mode) find(mode ? 'textarea, input, select' : `[data-to=${was.current}]`)?.focus();
    was.current = mode;
  }, [mode]);

  const edits = mode === 'edit', says = !edits && mode && SAYING[mode], comment = text.trim() || undefined;
  const fields = edits && !plan ? fieldsOf(argsSchema, argsJson, args) : [];
  const steps = kept.steps ?? (plan ? stepsOf(argsJson) : []);
  const touched = !!kept.steps || Object.keys(args).length > 0;
  const approve = () => {
    if (edits && (plan ? !steps.some(({ content }) => content.trim()) : fields.some(({ problem }) => problem))) find('[aria-invalid=true]')?.focus();
    else if (risk === 'destructive' && !asking) ask(true);
    else send(asked, edits ? { decision: 'edit', args: plan ? planOf(steps) : argsOf(fields) } : { decision: 'approve', always: scope === 'once' ? undefined : { scope } });
  };

  return (
    <>
      {mode && (
        <fieldset class="decide-body" disabled={locked} onKeyDown={(event) => {
          if (event.key !== 'Escape' || event.isComposing) return;
          event.stopPropagation();
          keep({ mode: undefined });
        }}>
          {says ? (
            <label>
              {t(says[2])}
              <textarea rows={2} dir="auto" value={text} onInput={(event) => keep({ text: event.currentTarget.value })} />
            </label>
          ) : plan ? <EditPlan id={id} steps={steps} old={stepsOf(argsJson)} set={(to) => keep({ steps: to })} />
            : <EditArgs id={id} fields={fields} refused={outgoingAnswer(id)} draft={args} set={(to) => keep({ args: to })} />}
        </fieldset>
      )}
      <Row asked={asked} what={`${mode}${asking}`} unread={unread}>
        {(button) => (
          <>
            {says ? button(says[0], says[1], () => send(asked, { decision: mode!, comment }), { look: mode === 'reject' ? 'danger' : 'primary', blocked: mode === 'respond' && !comment })
              : button(asking ? 'confirm.again' : edits ? 'confirm.approveEdited' : 'confirm.approve', 'check', approve, { look: asking ? 'primary again' : 'primary', blocked: edits && !touched, runs: true })}
            {edits && touched && button('confirm.reset', 'undo-2', () => keep({ args: undefined, steps: undefined }))}
            {mode ? button('confirm.back', 'x', turn(), { look: 'plain' }) : (
              <>
                {button(touched ? 'confirm.editMore' : 'confirm.edit', 'pencil', turn('edit'), { 'data-to': 'edit' })}
                {(Object.keys(SAYING) as Saying[]).map((to) => button(SAYING[to][0], SAYING[to][1], turn(to), { 'data-to': to }))}
                {!plan && (
                  <select aria-label={t('confirm.scope')} value={scope} disabled={locked} onChange={(event) => {
                    ask(false);
                    choose(event.currentTarget.value as typeof scope);
                  }}>
                    {SCOPES.map((one) => <option key={one} value={one}>{t(`confirm.scope.${one}`)}</option>)}
                  </select>
                )}
              </>
            )}
          </>
        )}
      </Row>
    </>
  );
}

// SPDX-License-Identifier: Apache-2.0
//
// The arguments of a call, or the steps of a plan, to be changed before they are approved. Below what was changed stands
// what it was. args.ts says what the fields mean.

import type { ComponentChildren } from 'preact';
import { lineOf, visible, type Draft, type Field, type Step } from '../args.js';
import { t, type Text } from '../i18n.js';
import type { Outgoing } from '../outbox.js';
import { Icon } from './icon.js';

const ROWS_MAX = 10;

// ---- one of them ----

interface Editing { id: string; name: string; required?: boolean; acts: ComponentChildren; about?: string; problem?: string; before: string | null; after: string | null; children: ComponentChildren }

const Argument = ({ id, name, required, acts, about, problem, before, after, children }: Editing) => (
  <div class="argument" data-name={name} data-state={problem ? 'invalid' : before === after ? 'same' : 'changed'}>
    <div class="ask-line"><label for={id} dir="auto">{name}{required && <span aria-hidden="true"> *</span>}</label>{acts}</div>
    {about && <p class="quiet" id={`${id}-about`} dir="auto">{about}</p>}
    {children}
    {problem && <p class="error" id={`${id}-problem`}>{problem}</p>}
    {before !== after && <p class="arg-diff" dir="auto"><del>{visible(before ?? '—')}</del> → <ins>{visible(after ?? '—')}</ins></p>}
  </div>
);

const act = (text: Text, icon: string, name: string, then: () => void, id?: string) => (
  <button class="plain small" id={id} aria-label={`${t(text)} ${name}`} onClick={then}><Icon name={icon} />{t(text)}</button>
);

const rowsOf = (text: string): number => Math.min(ROWS_MAX, text.split('\n').length);

// ---- arguments ----

// `refused`: what the server said about one of them. args.to[0].name is in `to`.
export function EditArgs({ id: asked, fields, draft, refused, set }: { id: string; fields: Field[]; draft: Draft; refused?: Outgoing; set: (draft: Draft) => void }) {
  return fields.map(({ name, kind, about, required, options, first, blank, text, problem: wrong }, i) => {
    const id = `${asked}-${i}`, isRefused = `${refused?.field}.`.replace('[', '.').startsWith(`args.${name}.`);
    const problem = wrong ? t(wrong) : isRefused ? refused!.error : undefined;
    const put = (to: string | null) => {
      const { [name]: _, ...others } = draft;
      set(to === first ? others : { ...others, [name]: to });
    };
    const common = { id, 'aria-describedby': `${id}-about ${id}-problem`, 'aria-invalid': !!problem, 'aria-required': required };
    const typed = (event: { currentTarget: { value: string } }) => put(event.currentTarget.value);
    const acts = (
      <>
        {first !== null && text !== first && act('ask.undo', 'undo-2', name, () => put(first))}
        {text === null ? act('args.add', 'plus', name, () => put(first ?? blank), id) : !required && act('say.delete', 'x', name, () => put(null))}
      </>
    );
    return (
      <Argument key={name} {...{ id, name, required, acts, about, problem }} before={first} after={text}>
        {text === null ? null
          : kind === 'boolean' ? <input type="checkbox" role="switch" {...common} checked={text === 'true'} onChange={(event) => put(String(event.currentTarget.checked))} />
            : kind === 'choice' ? <select {...common} value={text} onChange={typed}>{options.map((one) => <option key={one} value={one}>{visible(one)}</option>)}</select>
              : <textarea {...common} class={kind === 'json' ? 'code' : undefined} rows={rowsOf(text)} inputMode={kind === 'number' ? 'decimal' : undefined} dir="auto" value={text} onInput={typed} />}
      </Argument>
    );
  });
}

// ---- a plan ----

export function EditPlan({ id: asked, steps, old, set }: { id: string; steps: Step[]; old: Step[]; set: (steps: Step[]) => void }) {
  const nameOf = (i: number) => t('steps.step', { n: i + 1 });
  const none = steps.some(({ content }) => content.trim()) ? undefined : t('field.missing');
  return (
    <>
      {steps.map((step, i) => {
        const id = `${asked}-${i}`, name = nameOf(i), { content, done_when } = step;
        const at = (more: Partial<Step>) => set(steps.with(i, { ...step, ...more }));
        const acts = (
          <>
            {i > 0 && act('steps.up', 'arrow-up', name, () => set(steps.with(i, steps[i - 1]!).with(i - 1, step)))}
            {steps.length > 1 && act('say.delete', 'trash-2', name, () => set(steps.toSpliced(i, 1)))}
          </>
        );
        return (
          <Argument key={i} {...{ id, name, acts }} problem={none} before={old[i] ? lineOf(old[i]) : null} after={lineOf(step)}>
            <textarea id={id} rows={rowsOf(content)} dir="auto" value={content} aria-describedby={`${id}-problem`} aria-invalid={!!none} onInput={(event) => at({ content: event.currentTarget.value })} />
            <input type="text" dir="auto" value={done_when} placeholder={t('plan.doneWhen', { text: '' })} aria-label={`${name}: ${t('plan.doneWhen', { text: '' })}`} onInput={(event) => at({ done_when: event.currentTarget.value })} />
          </Argument>
        );
      })}
      {act('args.add', 'plus', nameOf(steps.length), () => {
        set([...steps, { content: '', done_when: '' }]);
        requestAnimationFrame(() => document.getElementById(`${asked}-${steps.length}`)?.focus());
      })}
    </>
  );
}

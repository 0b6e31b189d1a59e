// SPDX-License-Identifier: Apache-2.0
//
// The form of a question: a control for each field, by its type. What was typed is kept as text; the browser says what is
// wrong with it, and where. A field that is left out is left out of the answer: yes-or-no is a list for that, since an
// empty box would say no.
//
// To add a type: its control, its value in submit(), and a text, if it can be wrong (the server has the same list).

import type { TargetedEvent } from 'preact';
import { useState } from 'preact/hooks';
import type { Json } from '@fermata/client';
import { plain, press } from '../asking.js';
import { t } from '../i18n.js';
import { outgoingAnswer } from '../outbox.js';
import type { Asked } from '../turns.js';

export interface Field {
  name: string;
  label?: string;
  type: string;
  required?: boolean;
  choices?: string[];
  description?: string;
}
type Texts = { [name: string]: string };

const NUMBER = ' *[+\\-]?\\d*\\.?\\d+(e[+\\-]?\\d+)? *';

export function Form({ asked, fields, typed, change }: { asked: Asked; fields: Field[]; typed: Texts; change: (typed: Texts) => void }) {
  const [errors, fail] = useState<Texts>({}), out = outgoingAnswer(asked.id);
  const submit = (event: TargetedEvent<HTMLFormElement>): void => {
    event.preventDefault();
    const values: { [name: string]: Json } = {}, wrong: Texts = {}, controls = [...event.currentTarget] as HTMLInputElement[];
    fields.forEach(({ name, type }, i) => {
      const { validity, value } = controls[i]!;
      if (!validity.valid) wrong[name] = t(validity.patternMismatch ? 'field.number' : 'field.missing');
      else if (value.trim()) values[name] = type === 'number' ? Number(value) : type === 'boolean' ? value === 'true' : value;
    });
    fail(wrong);
    const first = controls.find(({ validity }) => !validity.valid);
    if (first) first.focus();
    else press(asked, { fields: values });
  };
  return (
    <form noValidate onSubmit={submit} onInput={(event) => {
      change(Object.fromEntries(new FormData(event.currentTarget)) as Texts);
      fail({});
    }}>
      {fields.map(({ name, label = name, type, required, choices, description }, i) => {
        const id = `${asked.id}-${i}`, error = errors[name] || (out?.field === `fields.${name}` && out.error!.replace(`${out.field} `, ''));
        const control = { id, name, required, value: typed[name] ?? '', 'aria-invalid': error ? true : undefined, 'aria-describedby': `${id}-about` };
        return (
          <div class="field" key={name}>
            <label for={id} dir="auto">{label}{required && <span class="error" aria-hidden="true"> *</span>}</label>
            {/boolean|choice/.test(type) ? (
              <select {...control}>
                <option value="">—</option>
                {(choices ?? ['true', 'false']).map((one) => <option key={one} value={one}>{choices ? one : plain(one === 'true')}</option>)}
              </select>
            ) : <input {...control} type={(type === 'date' ? type : 'text') as 'text'} dir="auto" autocomplete="off" {...(type === 'number' && { inputMode: 'decimal', pattern: NUMBER })} />}
            <p class="quiet" id={`${id}-about`} dir="auto">{description}{error && <span class="error">{error}</span>}</p>
          </div>
        );
      })}
      <button class="primary">{t('ask.submit')}</button>
    </form>
  );
}

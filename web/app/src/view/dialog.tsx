// SPDX-License-Identifier: Apache-2.0
//
// A modal dialog: the browser's own, so that it holds the focus, gives it back, and closes on Esc and the back gesture.
// It is open as long as it is drawn; `onClose` is told when it was closed by its person.

import type { ComponentChildren } from 'preact';
import { useLayoutEffect, useRef } from 'preact/hooks';
import { t } from '../i18n.js';
import { Icon } from './icon.js';

interface Props {
  label: string;
  kind?: string; // class
  onClose: () => void;
  children: ComponentChildren;
}

export function Dialog({ label, kind, onClose, children }: Props) {
  const host = useRef<HTMLDialogElement>(null);
  useLayoutEffect(() => {
    const element = host.current!;
    element.showModal();
    return () => element.close();
  }, []);
  return (
    <dialog ref={host} class={kind} aria-label={label} onClose={onClose} onClick={(event) => { if (event.target === event.currentTarget) onClose(); }}>
      <div>
        <header><h2>{label}</h2><button class="plain" onClick={onClose} title={t('say.close')}><Icon name="x" /></button></header>
        {children}
      </div>
    </dialog>
  );
}

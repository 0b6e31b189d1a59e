// SPDX-License-Identifier: Apache-2.0
//
// Chat channels, for who runs the server: how each one is doing, and signing in where a platform asks for it. To sign in, a
// QR code is scanned with a phone; the server knows how far that is, and is asked again and again while somebody looks.
//
//     wait ──► scanned ──► done        verify: the phone shows a number, which is typed here
//                └► verify ─┘          expired, failed: again, with a new code

import type { TargetedEvent } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import type { Channel, Login } from '@fermata/client';
import { t } from '../i18n.js';
import { client } from '../link.js';
import { channels, load } from '../settings.js';
import { Dialog } from './dialog.js';
import { kindOf } from './settled.js';
import { sayError } from './thread-menu.js';

const AGAIN_MS = 2000, SOON_MS = 400; // soon: for the code itself
const MARGIN = 4; // modules of white that cameras need

// One path: a line for each run of dark modules.
const Code = ({ qr: { size, rows } }: { qr: NonNullable<Login['qr']> }) => (
  <svg class="qr" aria-hidden="true" viewBox={`${-MARGIN} ${-MARGIN - 0.5} ${size + 2 * MARGIN} ${size + 2 * MARGIN}`}>
    <path d={rows.map((row, y) => row.replace(/1+|0/g, (run, x: number) => (+run ? `M${x} ${y}h${run.length}` : ''))).join('')} />
  </svg>
);

const focus = (field: HTMLElement | null) => field?.focus(); // the same one each time: it is called once

function SignIn({ name, onClose }: { name: string; onClose: () => void }) {
  const [now, set] = useState<Login>();
  const { state = 'wait', content = '', qr, detail = '' } = now ?? {}, over = /done|expired|failed/.test(state), begins = state === 'wait' && !content;
  const ask = (body = {}): Promise<void> => client.login(name, body).then(set, (reason: unknown) => set({ state: 'failed', detail: sayError(reason) }));
  useEffect(() => {
    if (state === 'done') load().catch(() => {}); // it is read again anyway
    if (over) return;
    const timer = setTimeout(() => { if (document.hidden) set({ ...now!, state }); else void ask(); }, !now ? 0 : begins ? SOON_MS : AGAIN_MS);
    return () => clearTimeout(timer);
  }, [now]);
  const submit = (event: TargetedEvent<HTMLFormElement>) => {
    event.preventDefault();
    void client.login(name, { verifyCode: (event.currentTarget[0] as HTMLInputElement).value }).then(set, () => ask()); // refused: it is not waited for any more
  };
  return (
    <Dialog label={`${t('sign.in')} ${name}`} onClose={onClose}>
      <div class="stack login" data-testid="login" data-state={state}>
        {qr && state === 'wait' && <Code qr={qr} />}
        <p role="status" id="login">{state === 'failed' ? t('say.failed', { text: detail }) : t(begins ? 'threads.loading' : detail && state === 'verify' ? 'channels.wrong' : `login.${state}`)}</p>
        {state === 'verify' && <form class="row" onSubmit={submit}><input aria-labelledby="login" inputMode="numeric" pattern="\d+" autocomplete="one-time-code" required ref={focus} /><button class="primary">{t('ask.submit')}</button></form>}
        {state === 'wait' && /^https?:/.test(content) && <a href={content} target="_blank" rel="noreferrer">{content}</a>}
        {over && state !== 'done' && <button class="primary" onClick={() => void ask({ restart: true })}>{t('say.retry')}</button>}
      </div>
    </Dialog>
  );
}

function Row({ channel: { name, kind, agent, state, detail, people, waiting, parked, login, webhookUrl } }: { channel: Channel }) {
  const [open, show] = useState(false);
  return (
    <li class="row" data-testid="channel" data-state={state}>
      <span dir="auto">
        {name} · {kindOf(kind)} · {t('say.agent')} {agent}
        <small><b class={/trouble|login/.test(state) ? 'error' : undefined}>{t(`channel.${state}`)}</b> {detail}</small>
        <small>{t('channels.counts', { people, waiting: waiting + parked })} {webhookUrl && <code>{webhookUrl}</code>}</small>
      </span>
      {login && <button class="quiet-button" aria-label={`${t('sign.in')} ${name}`} onClick={() => show(true)}>{t('sign.in')}</button>}
      {open && <SignIn name={name} onClose={() => show(false)} />}
    </li>
  );
}

export const Channels = () => (channels.value.length ? (
  <section>
    <h2>{t('channels.title')}</h2>
    <ul class="stack">{channels.value.map((one) => <Row key={one.name} channel={one} />)}</ul>
  </section>
) : null);

// SPDX-License-Identifier: Apache-2.0
//
// Settings. Those of this browser are signals and take effect at once; those of an agent are the server's: they are sent at
// once, shown as saved or not, and read again and again, so that two pages agree. A control shows what is, whenever it is
// drawn: what the server has refused goes back by itself.
//
// To add one of this browser: a row in prefs.ts and one in PREFS. One of an agent: a Row in AgentSettings.

import type { ComponentChildren, TargetedEvent } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import type { Agent, Settings as OfAgent } from '@fermata/client';
import { agents } from '../agents.js';
import { helping } from '../hotkeys.js';
import { t, type Text } from '../i18n.js';
import { base, may } from '../link.js';
import { allowNotices, notices } from '../notify.js';
import { prefs } from '../prefs.js';
import { change, changePolicy, grants, load, revoke, settings } from '../settings.js';
import { known } from '../threads.js';
import { Channels } from './channels.js';
import { sayError } from './thread-menu.js';
import { titleOf } from './tool.js';
import { Time } from './turn.js';

const AGAIN_MS = 5000;
const ROUNDS_SLIDER = 100, ROUNDS_MAX = 1000;
const SAVED_MS = 2500;
const VERDICTS = ['', 'allow', 'confirm', 'deny'] as const;
const EFFECTS: { [risk: string]: Text } = { external: 'settings.external', destructive: 'settings.destructive' };
const PREFS = [
  ['language', 'language', 'settings.language', ['system', 'zh-CN', 'en']],
  ['theme', 'theme', 'settings.theme', ['system', 'light', 'dark']],
  ['enterSends', 'enter-sends', 'settings.enter', , 'settings.enterWhy'],
] as const;

// ---- parts ----

interface RowProps {
  label: ComponentChildren;
  note?: string;
  id?: string;
  value?: string | boolean;
  of?: readonly string[]; // a list to choose from; without: a switch
  off?: boolean;
  set?: (to: never) => void;
  children?: ComponentChildren; // another control
}

const Row = ({ label, note, id, value, of, off, set, children }: RowProps) => (
  <label class="row">
    <span>{label}<small>{note}</small></span>
    {children ?? (of ? (
      <select data-testid={id} value={value as string} onChange={({ currentTarget }) => set!(currentTarget.value as never)}>
        {of.map((one) => <option key={one} value={one}>{t(`pick.${one || 'default'}` as Text)}</option>)}
      </select>
    ) : <input type="checkbox" role="switch" data-testid={id} checked={value as boolean} disabled={off} onChange={({ currentTarget }) => set!(currentTarget.checked as never)} />)}
  </label>
);

// What became of the last change, and how to make one.
function useSaving(): [told: ComponentChildren, save: (change: Promise<void>) => Promise<void>] {
  const [told, tell] = useState<{ failed?: string }>();
  return [
    <output class={told?.failed ? 'error' : 'quiet'} data-testid="saving" data-state={told && (told.failed ? 'failed' : 'saved')}>
      {told && (told.failed ? t('say.failed', { text: told.failed }) : t('settings.saved'))}
    </output>,
    async (change) => {
      try {
        await change;
        tell({});
        setTimeout(() => tell((now) => (now?.failed ? now : undefined)), SAVED_MS);
      } catch (error) {
        tell({ failed: sayError(error) });
      }
    },
  ];
}

// ---- this browser ----

function Browser() {
  const [{ broken }, draw] = useState<{ broken?: boolean }>({}); // some browsers have notifications, and refuse a page
  const state = broken ? 'denied' : notices();
  const notify = (on: boolean) => {
    if (on) allowNotices().then(() => draw({}), () => draw({ broken: true }));
    else prefs.notify.value = false;
  };
  return (
    <section>
      <h2>{t('settings.browser')}</h2>
      {PREFS.map(([name, id, label, of, note]) => (
        <Row key={id} id={id} label={t(label)} note={note && t(note)} of={of} value={prefs[name].value} set={(to) => { prefs[name].value = to; }} />
      ))}
      <Row id="notify" label={t('settings.notify')} note={state === 'none' || state === 'denied' ? t('settings.notifyDenied') : ''} value={state === 'on'} off={state === 'none'} set={notify} />
    </section>
  );
}

// ---- an agent ----

function AgentSettings({ agent: { name, model, limits, capabilities: { askUser, tools } } }: { agent: Agent }) {
  const [draft, type] = useState<string>(); // of the number; it is sent when it is let go
  const [told, save] = useSaving();
  const mine: OfAgent | undefined = settings.value[name], off = !mine, policy = mine?.confirmPolicy ?? {};
  const rounds = draft ?? mine?.maxToolRounds ?? limits.maxToolRounds;
  const choose = async ({ target }: TargetedEvent) => {
    const { value, validity } = target as HTMLInputElement;
    if (validity.valid) await save(change(name, { maxToolRounds: +value }));
    type((now) => (now === value ? undefined : now));
  };
  return (
    <section>
      <h2>{`${t('say.agent')} ${name} `}<code>{model}</code></h2>
      {!may.value.has('operator') && <p class="quiet">{t('settings.operator')}</p>}
      <Row id={`ask-user-${name}`} label={t('settings.ask')} note={t('settings.askWhy')} value={mine?.enableAskUser ?? askUser} off={off}
        set={(enableAskUser) => void save(change(name, { enableAskUser }))} />
      <Row label={t('settings.rounds')}>
        <span class="slider" onInput={({ target }) => type((target as HTMLInputElement).value)} onChange={(event) => void choose(event)}>
          <input type="range" data-testid="rounds" min={1} max={Math.max(ROUNDS_SLIDER, +rounds)} value={+rounds || 1} disabled={off} />
          <input type="number" data-testid="rounds-number" min={1} max={ROUNDS_MAX} value={rounds} disabled={off} required aria-label={t('settings.rounds')} />
        </span>
      </Row>
      {mine && <h3 class="row"><span>{t('settings.policy')}<small>{t('settings.policyWhy')}</small></span></h3>}
      {mine && [...new Set([...tools.map((tool) => tool.name), ...Object.keys(policy)])].map((one) => {
        const tool = tools.find((other) => other.name === one);
        const note = tool && t(tool.effect === 'read' ? 'settings.read' : EFFECTS[tool.risk!] ?? 'settings.write');
        return <Row key={one} id={`policy-${one}`} label={<code>{one}</code>} note={note} value={policy[one] ?? ''} of={VERDICTS} set={(to) => void save(changePolicy(name, one, to))} />;
      })}
      {told}
    </section>
  );
}

// ---- permissions ----

function Grants() {
  const [told, save] = useSaving();
  return grants.value && (
    <section>
      <h2>{t('grants.title')}</h2>
      {!grants.value.length && <p class="quiet">{t('grants.none')}</p>}
      <ul>
        {grants.value.map(({ grantId, toolName, scope, threadId = '', match, createdAt }) => (
          <li class="row" key={grantId} data-testid="grant">
            <span dir="auto">
              {titleOf(toolName)}, {t(scope === 'user' ? 'grants.user' : 'grants.thread')} {known.value[threadId]?.title}
              <small>{Object.entries(match).map(([name, value]) => `${name} = ${JSON.stringify(value)}`).join(', ') || t('grants.any')} · <Time at={createdAt} /></small>
            </span>
            <button type="button" class="quiet-button" aria-label={`${t('grants.revoke')} ${titleOf(toolName)}`} onClick={() => void save(revoke(grantId))}>{t('grants.revoke')}</button>
          </li>
        ))}
      </ul>
      {told}
    </section>
  );
}

// ---- all of it ----

export function Settings() {
  const [error, fail] = useState('');
  useEffect(() => {
    const look = () => { if (!document.hidden) load().then(() => fail(''), (reason: unknown) => fail(sayError(reason))); };
    const timer = setInterval(look, AGAIN_MS);
    look();
    return () => clearInterval(timer);
  }, []);
  return (
    <main class="scroll">
      <div class="page" data-testid="settings">
        <Browser />
        {error && <p class="error" role="alert">{t('say.failed', { text: error })}</p>}
        {agents.value.map((agent) => <AgentSettings key={agent.name} agent={agent} />)}
        <Channels />
        <Grants />
        <p class="links">
          <button type="button" class="quiet-button" onClick={() => { helping.value = true; }}>{t('keys.title')}</button>
          <a href={`${base}/api/v1/openapi.json`} target="_blank">{t('about.api')}</a>
          <a href={`${base}/licences.txt`} target="_blank">{t('about.licences')}</a>
        </p>
      </div>
    </main>
  );
}

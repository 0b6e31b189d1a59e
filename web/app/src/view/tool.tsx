// SPDX-License-Identifier: Apache-2.0
//
// A call of a tool: what it is, how it went, and folded below that what it was given and what came of it. Closed when it
// went well, open when not. Its card, if it has one, stands outside of the fold: it is what people came for.

import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import type { Attachment, Json } from '@fermata/client';
import { current } from '../conversation.js';
import { bytes, number, seconds, t } from '../i18n.js';
import { client } from '../link.js';
import { jsonOf, type FoldPart, type ToolPart } from '../turns.js';
import { addressOf } from '../uploads.js';
import { Card } from './card.js';
import { Icon, Mark } from './icon.js';
import { CopyButton } from './turn.js';

const SHOWN_CHARS = 4096;
const SLOW_MS = 10_000; // from here on it is told how long it takes

// calendar_write -> Calendar write; files.read_file -> Files: read file
export const titleOf = (name: string): string =>
  name.replaceAll('.', ': ').replaceAll('_', ' ').trim().replace(/^./u, (first) => first.toUpperCase());

const pretty = (value: Json): string => (typeof value === 'string' ? value : JSON.stringify(value, null, 2));

// What is drawn only when it is opened: by the person, or else by `open`.
interface FoldProps { class: string; head: ComponentChildren; open?: boolean; children: () => ComponentChildren; 'data-testid'?: string }
export function Fold({ head, open = false, children, ...more }: FoldProps) {
  const [chosen, choose] = useState<boolean>();
  const shown = chosen ?? open;
  return (
    <details {...more} open={shown} onToggle={({ currentTarget }) => choose(currentTarget.open)}>
      <summary>{head}<Icon name="chevron-down" /></summary>
      {shown && children()}
    </details>
  );
}

// Text that may be long: its beginning, and all of it when asked for.
function Long({ text, label }: { text: string; label: string }) {
  const [whole, show] = useState(false);
  const long = text.length > SHOWN_CHARS;
  return (
    <div class="long">
      <h4>{label}<CopyButton text={text} /></h4>
      <pre tabIndex={0} role="region" aria-label={label} dir="auto">{long && !whole ? `${text.slice(0, SHOWN_CHARS)}…` : text}</pre>
      {long && <button class="quiet-button" onClick={() => show(!whole)}>{t(whole ? 'say.showLess' : 'say.showAll')} ({number(text.length)})</button>}
    </div>
  );
}

function Elapsed({ since }: { since: string }) {
  const [now, set] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => set(Date.now()), 1000);
    return () => clearInterval(timer);
  }, []);
  const ms = now - Date.parse(since);
  return ms >= SLOW_MS && <time class="quiet">{seconds(ms)}</time>;
}

export const Files = ({ files }: { files: Attachment[] }) => (
  <ul class="files">
    {files.map(({ id, filename, mimeType, size, width, height }) => {
      const image = mimeType.startsWith('image/');
      return (
        <li key={id}>
          <a href={addressOf(id)} target="_blank" rel="noopener noreferrer" download={image ? undefined : filename}>
            {image && !mimeType.includes('svg') ? <img src={addressOf(id)} alt={filename} loading="lazy" width={width} height={height} /> : <Icon name="file" />}
            <span dir="auto">{filename}</span> <span class="quiet">{bytes(size)}</span>
          </a>
        </li>
      );
    })}
  </ul>
);

// What the history keeps beside the row: the whole result, on demand.
function Whole({ messageId }: { messageId: string }) {
  const [text, set] = useState<string>();
  const load = () => client.result(current.value!.id, messageId).then(pretty, ({ message }: Error) => t('say.failed', { text: message })).then(set);
  return text === undefined ? <button class="quiet-button" onClick={load}>{t('tool.loadResult')}</button> : <Long text={text} label={t('tool.result')} />;
}

export function ToolCard({ part: { name, args, status, took = 0, row, progress, at } }: { part: ToolPart }) {
  const ask = name === 'ask_user', running = status === 'running', said = row && String(row.content);
  const head = (
    <>
      {ask ? <span aria-hidden="true">💬</span> : <Mark state={status} />}
      <strong>{titleOf(name)}</strong>
      <span class="tool-word">{t(`state.${status}`)}</span>
      {took >= 100 && <time class="quiet">{seconds(took)}</time>}
      {running && <Elapsed since={at} />}
      {said && <span class="tool-summary quiet" dir="auto">{ask && '↩ '}{said}</span>}
    </>
  );
  return (
    <div class={ask ? 'tool tool-ask' : 'tool'} data-testid="tool-card" data-state={status} data-tool={name}>
      <Fold class="tool-fold" head={head} open={status === 'error'}>
        {() => (
          <div class="tool-body">
            {row?.error && <p class="error" dir="auto">{row.error}</p>}
            {args && <Long text={pretty(jsonOf(args) ?? args)} label={t('tool.args')} />}
            {said && <Long text={said} label={t('tool.result')} />}
            {row && !ask && <Whole messageId={row.id} />}
          </div>
        )}
      </Fold>
      {progress && running && (
        <div class="tool-progress">
          {progress.progress !== undefined && <progress value={progress.progress} max={progress.total} aria-label={titleOf(name)} />}
          <span class="quiet" dir="auto">{progress.message}</span>
        </div>
      )}
      {row?.uiSchema && <Card schema={row.uiSchema} messageId={row.id} />}
      {row?.attachments && <Files files={row.attachments} />}
    </div>
  );
}

export const FoldedTools = ({ part: { parts } }: { part: FoldPart }) => (
  <Fold class="tool tool-fold" data-testid="tool-fold" head={<><Mark state="success" /><strong>{t('tool.folded', { n: number(parts.length) })}</strong></>}>
    {() => <div class="tool-body">{parts.map((one) => <ToolCard key={one.key} part={one} />)}</div>}
  </Fold>
);

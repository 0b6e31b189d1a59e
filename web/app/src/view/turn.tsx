// SPDX-License-Identifier: Apache-2.0
//
// One turn. A turn is drawn again only when it is another object, so while a reply comes in it alone is looked at.

import { copy } from '@fermata/ui-schema';
import { Component } from 'preact';
import { useState } from 'preact/hooks';
import { exactly, moment, money, number, t } from '../i18n.js';
import type { AgentTurn, Part, ReasoningPart, TextPart, Turn } from '../turns.js';
import { AskedView } from './asked.js';
import { Card } from './card.js';
import { Icon } from './icon.js';
import { PlanCard } from './plan.js';
import { Outcome, Stages } from './stages.js';
import { Markdown } from './text.js';
import { Fold, FoldedTools, ToolCard } from './tool.js';
import { Regenerate, UserTurnView } from './user.js';

const COPIED_MS = 1500;
export const copyText = copy;

const Words = ({ part: { message, live } }: { part: TextPart | ReasoningPart }) => <Markdown text={String(message.content)} live={live} />;

function PartView({ part }: { part: Part }) {
  switch (part.kind) {
  case 'text':
    return (
      <div data-part={part.key}>
        <Words part={part} />
        {part.message.metadata.stopped && <p class="quiet working"><Icon name="circle-stop" />{t('turn.cancelled')}</p>}
      </div>
    );
  case 'reasoning':
    return <Fold class="thoughts" head={t(part.live ? 'turn.thinkingNow' : 'turn.thinking')}>{() => <Words part={part} />}</Fold>;
  case 'card':
    return <Card schema={part.schema} messageId={part.messageId} />;
  case 'tool':
    return <ToolCard part={part} />;
  case 'fold':
    return <FoldedTools part={part} />;
  case 'asked':
    return <AskedView asked={part.asked} />;
  }
}

export const Time = ({ at }: { at: string }) => <time dateTime={at} title={exactly(at)}>{moment(at)}</time>;

function Footer({ turn }: { turn: AgentTurn }) {
  const { usage, live, parts } = turn, said = parts.filter((part) => part.kind === 'text'), last = said.at(-1);
  return !live && (usage || last) && (
    <footer class="turn-foot">
      {usage && (
        <span data-testid="usage">
          {t('usage.line', { in: number(usage.inputTokens), out: number(usage.outputTokens) })}
          {usage.cost > 0 && ` · ${money(usage.cost, usage.currency)}`}
        </span>
      )}
      {last && <><Time at={last.message.createdAt} /><CopyButton text={said.map(({ message }) => message.content).join('\n\n')} /></>}
      <Regenerate turn={turn} />
    </footer>
  );
}

export function CopyButton({ text }: { text: string }) {
  const [done, set] = useState(false);
  const press = async () => {
    set(await copy(text));
    setTimeout(() => set(false), COPIED_MS);
  };
  return <button type="button" class="plain small" onClick={press} title={t(done ? 'say.copied' : 'say.copy')}><Icon name={done ? 'check' : 'copy'} /></button>;
}

function AgentTurnView({ turn }: { turn: AgentTurn }) {
  const { run, plan, parts, live, question } = turn;
  return (
    <>
      {run && <Stages run={run} />}
      {run && plan?.steps[0] && <PlanCard plan={plan} run={run} />}
      {parts.map((part) => <PartView key={part.key} part={part} />)}
      {live && !parts.some((part) => part.kind === 'text' && part.live) && <p class="quiet working"><span class="dots" />{t(run?.status === 'cancelling' ? 'turn.cancelling' : 'turn.working')}</p>}
      {run && <Outcome run={run} question={question} />}
      <Footer turn={turn} />
    </>
  );
}

const NAMES = { user: 'turn.you', agent: 'say.agent', folded: 'turn.replaced', note: 'app.name' } as const;

const contentOf = (turn: Turn) => {
  switch (turn.kind) {
  case 'user':
    return <UserTurnView turn={turn} />;
  case 'agent':
    return <AgentTurnView turn={turn} />;
  case 'folded':
    return <Fold class="replaced" head={t('turn.replaced')}>{() => turn.turns.map((one) => <TurnView key={one.key} turn={one} />)}</Fold>;
  case 'note':
    return <p class="quiet">{String(turn.message.content)}</p>;
  }
};

const Drawn = ({ turn, turn: { kind, key } }: { turn: Turn }) => (
  <article class={`turn turn-${kind}`} data-testid="turn" data-kind={kind} data-key={key} aria-busy={turn.kind === 'agent' && turn.live} aria-label={t(NAMES[kind])} tabIndex={-1}>
    <h2 class="unseen">{t(NAMES[kind])}</h2>
    {contentOf(turn)}
  </article>
);

// What it reads of signals (the language) draws it again all the same.
// What cannot be drawn, and should have been, takes nothing else with it.
export class TurnView extends Component<{ turn: Turn }, { error?: Error }> {
  static getDerivedStateFromError = (error: Error) => ({ error });

  override shouldComponentUpdate({ turn }: { turn: Turn }, state: object): boolean {
    return turn !== this.props.turn || state !== this.state;
  }

  override render() {
    return this.state.error ? <p class="error" role="alert">{String(this.state.error)}</p> : <Drawn turn={this.props.turn} />;
  }
}

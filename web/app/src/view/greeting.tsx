// SPDX-License-Identifier: Apache-2.0
//
// Before there is a conversation: what this is, and a few beginnings. A press says it. They are those of the agent; the
// demo model has its own, and says how to get a real one.
//
// To add a beginning for the demo: a row in DEMO; src/model/demo*.c must know it in both languages.

import { agents } from '../agents.js';
import { t } from '../i18n.js';
import { say } from '../outbox.js';
import { go } from '../route.js';
import { Icon } from './icon.js';
import { CopyButton } from './turn.js';

const STARTERS_MAX = 4;

const DEMO = [
  ['hello.plain', 'hello.plainWhy', 'message-square'],
  ['hello.meet', 'hello.meetWhy', 'calendar-plus'],
  ['hello.plan', 'hello.planWhy', 'list-checks'],
  ['hello.card', 'hello.cardWhy', 'list'],
] as const;

const REAL_MODEL = `export FERMATA_MODEL_PROVIDER=openai
export FERMATA_MODEL_BASE_URL=http://127.0.0.1:11434/v1
export FERMATA_MODEL_NAME=qwen3`;

export function Greeting() {
  const agent = agents.value[0], demo = agent?.provider === 'demo';
  const starters = agent?.starters.length ? agent.starters.slice(0, STARTERS_MAX).map((text) => [text, '', 'message-square'])
    : demo ? DEMO.map(([text, why, icon]) => [t(text), t(why), icon]) : [];
  return (
    <main class="scroll">
      <div class="greeting" data-testid="greeting">
        <img src="icon.svg" alt="" width="52" />
        <h2>{t('hello.title')}</h2>
        <p class="quiet">{t('hello.text')}</p>
        <ul>
          {starters.map(([text, why, icon]) => (
            <li>
              <button class="starter" data-testid="starter" onClick={({ detail }) => { if (detail < 2) go({ view: 'chat', threadId: say({ text: text! }) }); }}>
                <Icon name={icon!} /><span><strong class="starter-text" dir="auto">{text}</strong><small>{why}</small></span>
              </button>
            </li>
          ))}
        </ul>
        {demo && (
          <section class="demo" data-testid="demo">
            <h3>{t('hello.demo')}</h3>
            <p class="quiet">{t('hello.demoText')}</p>
            <pre>{REAL_MODEL}</pre><CopyButton text={REAL_MODEL} />
          </section>
        )}
      </div>
    </main>
  );
}

// SPDX-License-Identifier: Apache-2.0
//
// Before there is a conversation: what this is, and the beginnings that the agent offers. A press says it. An agent that
// offers none has none here. With the demo model it says how to get a real one.

import { agents } from '../agents.js';
import { t } from '../i18n.js';
import { say } from '../outbox.js';
import { go } from '../route.js';
import { Icon } from './icon.js';
import { CopyButton } from './turn.js';

const STARTERS_MAX = 4;

const REAL_MODEL = `export FERMATA_MODEL_PROVIDER=openai
export FERMATA_MODEL_BASE_URL=http://127.0.0.1:11434/v1
export FERMATA_MODEL_NAME=qwen3`;

export function Greeting() {
  const agent = agents.value[0], demo = agent?.provider === 'demo';
  return (
    <main class="scroll">
      <div class="greeting" data-testid="greeting">
        <img src="icon.svg" alt="" width="52" />
        <h2>{t('hello.title')}</h2>
        <p class="quiet">{t('hello.text')}</p>
        <ul>
          {agent?.starters.slice(0, STARTERS_MAX).map((text) => (
            <li>
              <button class="starter" data-testid="starter" onClick={({ detail }) => { if (detail < 2) go({ view: 'chat', threadId: say({ text }) }); }}>
                <Icon name="message-square" /><strong class="starter-text" dir="auto">{text}</strong>
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

// SPDX-License-Identifier: Apache-2.0
//
// A card: the <ui-schema> element, and what its buttons do. What is only shown or copied happens in the element; a place
// of the page is gone to; the rest is for the server, which looks the button up in what it has stored.

import '@fermata/ui-schema';
import type { UiSchemaElement } from '@fermata/ui-schema';
import type { UiSchema } from '@fermata/client';
import { h } from 'preact';
import { useLayoutEffect, useRef } from 'preact/hooks';
import { current } from '../conversation.js';
import { t } from '../i18n.js';
import { SPRITE } from '../icons.js';
import { client } from '../link.js';
import { markdownNode } from '../markdown/index.js';

interface Pressed { id: string; action: { type: string; path?: string } }

export function Card({ schema, messageId, readonly = false }: { schema: UiSchema; messageId: string; readonly?: boolean }) {
  const host = useRef<UiSchemaElement>(null);
  useLayoutEffect(() => void Object.assign(host.current!, { icons: SPRITE, markdown: markdownNode, readonly, schema }), [schema, readonly]);
  const press = async ({ detail: { id, action: { type, path = '' } } }: CustomEvent<Pressed>) => {
    const element = host.current!;
    if (type === 'navigation') location.hash = `#/${path.replace(/^\/+/, '')}`; // /inbox, /settings, /t/ID
    if (/^(nav|url|copy)/.test(type)) return;
    element.busy(id, true);
    try {
      await client.press({ threadId: current.value!.id, messageId, actionId: id });
      element.note(id, t('card.sent'), 'success');
    } catch (error) {
      element.note(id, t('say.failed', { text: (error as Error).message }), 'error');
    }
    element.busy(id, false);
  };
  return h('ui-schema', { ref: host, 'data-testid': 'ui-schema', 'onui-action': press });
}

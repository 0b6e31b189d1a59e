// SPDX-License-Identifier: Apache-2.0
//
// A card: the <ui-schema> element, and what its buttons do. What is only shown or copied happens in the element; a place
// of the page is gone to, if it is one; the rest is for the server, which looks the button up in what it has stored.

import '@fermata/ui-schema';
import type { UiSchemaElement } from '@fermata/ui-schema';
import type { FermataError, Json, UiSchema } from '@fermata/client';
import { h } from 'preact';
import { useLayoutEffect, useRef } from 'preact/hooks';
import { current } from '../conversation.js';
import { t } from '../i18n.js';
import { SPRITE } from '../icons.js';
import { client } from '../link.js';
import { markdownNode } from '../markdown/index.js';
import { placeOf } from '../route.js';

interface Pressed { id: string; action: { type: string; path?: string; params?: { [name: string]: Json } } }

// Where a path of a card leads, with its parameters; undefined: nowhere, also if that conversation is not this person's.
async function hrefTo(path: string, params: { [name: string]: Json }): Promise<string | undefined> {
  const [place = '', query] = path.replace(/^\/?#?\/*/, '').split('?'), to = placeOf(place), more = new URLSearchParams(query);
  if (!to || to.threadId && !await client.thread(to.threadId).catch(({ status }: FermataError) => status !== 404)) return undefined;
  for (const [name, value] of Object.entries(params)) more.set(name, typeof value === 'string' ? value : JSON.stringify(value));
  return `#/${place}${more.size ? `?${more}` : ''}`;
}

// `cut` is told how many characters of it are not shown.
export function Card({ schema, messageId, readonly = false, cut }: { schema: UiSchema; messageId: string; readonly?: boolean; cut?: (chars: number) => void }) {
  const host = useRef<UiSchemaElement>(null);
  useLayoutEffect(() => {
    Object.assign(host.current!, { icons: SPRITE, markdown: markdownNode, readonly, schema });
    cut?.(host.current!.cut);
  }, [schema, readonly]);
  const press = async ({ detail: { id, action: { type, path = '', params = {} } } }: CustomEvent<Pressed>) => {
    const element = host.current!;
    if (/^(url|copy)/.test(type)) return;
    element.busy(id, true);
    try {
      if (type === 'navigation') {
        const href = await hrefTo(path, params);
        if (href === undefined) element.note(id, t('card.nowhere'), 'error');
        else location.hash = href;
      } else {
        await client.press({ threadId: current.value!.id, messageId, actionId: id });
        element.note(id, t('card.sent'), 'success');
      }
    } catch (error) {
      element.note(id, t('say.failed', { text: (error as Error).message }), 'error');
    }
    element.busy(id, false);
  };
  return h('ui-schema', { ref: host, 'data-testid': 'ui-schema', 'onui-action': press });
}

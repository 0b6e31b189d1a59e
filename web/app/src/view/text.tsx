// SPDX-License-Identifier: Apache-2.0
//
// Markdown of the agent. The framework owns the element, MarkdownView what is in it: a word that comes in touches the end
// of one text node, and nothing else is looked at.

import { useLayoutEffect, useRef } from 'preact/hooks';
import { MarkdownView } from '../markdown/index.js';

export function Markdown({ text, live }: { text: string; live: boolean }) {
  const host = useRef<HTMLDivElement>(null);
  const view = useRef<MarkdownView>(undefined);
  useLayoutEffect(() => {
    view.current ??= new MarkdownView(host.current!);
    view.current.update(text, live);
  }, [text, live]);
  return <div class="md" ref={host} />;
}

// SPDX-License-Identifier: Apache-2.0
//
// Long values in a card that somebody decides about. The server sends all of a value, to be folded; here it stands whole
// up to 12 lines, and of a longer one head and tail, with a line between them that says how much is not shown. That line is
// a node of its own, so no value can pass for it. Pure.

import type { Json } from '@fermata/client';

const LINES_MAX = 12, HEAD_LINES = 7, TAIL_LINES = 3;
const LINES = /[^\n]{1,72}\n?|\n/gu; // about as they are wrapped
const PIECE = /[^]{1,30000}/gu; // a renderer may cut a text that is longer
const FOLDED = /, folded⟧$|，可展开⟧$/; // the server's own word, in brackets that no value can write
type Node = { [key: string]: Json };

// `hidden` says how many characters are not shown. `long`: there is something that is not, or would not be if not for `whole`.
export function unfolded<T extends { root: Node }>(card: T, whole: boolean, hidden: (chars: number) => string): { card: T; long: boolean } {
  let long = false;
  const walk = ({ maxLines, ...node }: Node): Node[] => {
    const { children, role } = node, content = String(node['content']);
    const piece = (part: string): Node => ({ ...node, content: part });
    if (maxLines) {
      const lines = content.match(LINES) ?? [];
      if (lines.length > LINES_MAX) {
        long = true;
        const head = lines.slice(0, HEAD_LINES).join(''), tail = lines.slice(-TAIL_LINES).join('');
        const note: Node = { type: 'text', format: 'plain', role: 'caption', status: 'warning', content: hidden(content.length - head.length - tail.length) };
        if (!whole) return [piece(head.trimEnd()), note, piece(tail)];
      }
      return (content.match(PIECE) ?? []).map(piece);
    }
    if (role === 'caption') return [piece(content.replace(FOLDED, '⟧'))];
    return [children ? { ...node, children: (children as Node[]).flatMap(walk) } : node];
  };
  return { card: { ...card, root: walk(card.root)[0]! }, long };
}

// SPDX-License-Identifier: Apache-2.0
//
// Long values in a card that somebody decides about. The server sends all of a value, to be folded; here it stands whole
// up to 12 lines, and of a longer one head and tail, with a line between them that says how much is not shown. That line is
// a node of its own, so no value can pass for it. Whole, a value stands in pieces that every renderer draws, and wrapped: what
// is beyond the edge of a box that scrolls sideways was not seen. Pure.

import type { Json } from '@fermata/client';

const LINES_MAX = 12, HEAD_LINES = 7, TAIL_LINES = 3;
const LINES = /[^\n]{1,72}\n?|\n/gu; // about as they are wrapped
const PIECE = /[^]{1,30000}/gu; // a renderer may cut a text that is longer
const ROW_CHARS_MAX = 2000; // of a row; a longer one stands below its name
const FOLDED = /, folded⟧$|，可展开⟧$/; // the server's own word, in brackets that no value can write
type Node = { [key: string]: Json };

const text = (content: string, more: Node): Node => ({ type: 'text', format: 'plain', content, ...more });

// `hidden` says how many characters are not shown. `long`: there is something that is not, or would not be if not for `whole`.
// `headless`: without its title and the line below that, which stand above it already.
export function unfolded<T extends { root: Node }>(card: T, { whole, hidden, headless }: { whole: boolean; hidden: (chars: number) => string; headless: boolean }): { card: T; long: boolean } {
  let long = false;
  const value = (content: string): Node[] => {
    const lines = content.match(LINES) ?? [], piece = (part: string) => text(part, { role: 'body' });
    if (lines.length > LINES_MAX) {
      long = true;
      const head = lines.slice(0, HEAD_LINES).join(''), tail = lines.slice(-TAIL_LINES).join('');
      if (!whole) return [piece(head.trimEnd()), text(hidden(content.length - head.length - tail.length), { role: 'caption', status: 'warning' }), piece(tail)];
    }
    return (content.match(PIECE) ?? []).map(piece);
  };
  // A long value among short ones ends their list, and another list goes on behind it.
  const rows = (items: Node[], node: Node): Node[] => {
    const out: Node[] = [];
    let list: Node[] = [];
    const end = () => {
      if (list.length) out.push({ ...node, items: list });
      list = [];
    };
    for (const item of items) {
      const own = item['value'];
      if (typeof own !== 'string' || own.length <= ROW_CHARS_MAX) list.push(item);
      else {
        end();
        out.push(text(String(item['label'] ?? item['key']), { role: 'caption' }), ...value(own));
      }
    }
    end();
    return out;
  };
  const walk = (node: Node): Node[] => {
    const { children, role, items, maxLines } = node, content = String(node['content']);
    if (maxLines) return value(content);
    if (role === 'caption') return [{ ...node, content: content.replace(FOLDED, '⟧') }];
    if (items) return rows(items as Node[], node);
    return [children ? { ...node, children: (children as Node[]).flatMap(walk) } : node];
  };
  const root = walk(card.root)[0]!, children = root['children'] as Node[] | undefined;
  const bare = headless && children ? { ...root, children: children.filter(({ direction, role }, i) => !(i ? role === 'subtitle' : direction === 'horizontal')) } : root;
  return { card: { ...card, root: bare }, long };
}

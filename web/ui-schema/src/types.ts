// SPDX-License-Identifier: Apache-2.0
//
// UiSchema 2.0 as types, for those who write cards in TypeScript; docs/schema/ui-schema-2.0.json is the formal description.
// The renderer itself trusts none of it: view.ts looks at every field before it draws.

export type Status = 'info' | 'success' | 'warning' | 'error' | 'pending';
export type Appearance = 'plain' | 'card' | 'section';
export type Fields = { [name: string]: unknown };

export type Action =
  | { type: 'navigation'; path: string; params?: Fields }
  | { type: 'url'; url: string; target?: '_self' | '_blank' }
  | { type: 'event'; event: string; payload?: Fields }
  | { type: 'tool'; toolId: string; params?: Fields }
  | { type: 'copy'; content: string; successMessage?: string }
  | { type: 'payload'; payload: Fields; submitTo?: string };

export interface Icon {
  name: string;
  size?: 'sm' | 'md' | 'lg';
  status?: Status;
}

export interface KvItem {
  key: string;
  label?: string;
  value: unknown;
  copyable?: boolean;
}

export type UiNode =
  | {
    type: 'stack'; direction: 'vertical' | 'horizontal'; gap?: number; appearance: Appearance; status?: Status;
    align?: 'start' | 'center' | 'end' | 'stretch'; justify?: 'start' | 'center' | 'end' | 'between'; wrap?: boolean;
    children: UiNode[];
  }
  | { type: 'grid'; columns: number; gap?: number; appearance: Appearance; status?: Status; children: UiNode[] }
  | {
    type: 'text'; content: string; format: 'plain' | 'markdown'; role: 'title' | 'subtitle' | 'body' | 'caption' | 'code';
    status?: Status; maxLines?: number; visible?: boolean; cut?: number;
  }
  | ({ type: 'icon' } & Icon)
  | { type: 'badge'; label: string; status?: Status }
  | { type: 'divider' }
  | {
    type: 'button'; id: string; label: string; style: 'primary' | 'secondary' | 'ghost' | 'danger'; disabled?: boolean; icon?: Icon;
    action: Action;
  }
  | { type: 'kv'; items: KvItem[]; columns?: number }
  | { type: string; [field: string]: unknown }; // of a later version: its `fallback` text is drawn, or nothing

export interface UiSchema {
  version: string;
  locale: string;
  status: Status;
  theme: string;
  meta?: Fields;
  root: UiNode;
}

// What a `ui-action` event tells.
export interface UiActionDetail {
  id: string;
  action: Action;
  label: string;
}

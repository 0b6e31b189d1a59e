// SPDX-License-Identifier: Apache-2.0
//
// A card and what its buttons do. To try another one: `fermata compile-ui` makes cards from hints.

import '../dist/index.js';

const card = document.querySelector('ui-schema'), status = document.querySelector('p');

card.schema = {
  version: '2.0', locale: 'en', status: 'success', theme: 'default',
  root: {
    type: 'stack', direction: 'vertical', appearance: 'card', children: [
      {
        type: 'stack', direction: 'horizontal', appearance: 'plain', align: 'center', children: [
          { type: 'icon', name: 'calendar' },
          { type: 'text', content: 'Event created', format: 'plain', role: 'title' },
          { type: 'badge', label: 'Success', status: 'success' },
        ],
      },
      {
        type: 'kv', columns: 2, items: [
          { key: 'title', label: 'Title', value: 'Review' }, { key: 'time', label: 'Time', value: '15:00–16:00' },
          { key: 'zone', label: 'Time zone', value: 'UTC+08:00' }, { key: 'id', label: 'Id', value: 'evt_1', copyable: true },
        ],
      },
      {
        type: 'stack', direction: 'horizontal', appearance: 'plain', wrap: true, children: [
          { type: 'button', id: 'a0', label: 'Move', style: 'primary', action: { type: 'tool', toolId: 'move', params: { id: 'evt_1' } } },
          { type: 'button', id: 'a1', label: 'Open', style: 'secondary', action: { type: 'url', url: 'https://example.org/' } },
          { type: 'button', id: 'a2', label: 'Delete', style: 'danger', icon: { name: 'trash' }, action: { type: 'event', event: 'delete' } },
        ],
      },
    ],
  },
};

card.addEventListener('ui-action', ({ detail: { id, action, label } }) => {
  status.textContent = `${label}: ${JSON.stringify(action)}`;
  if (action.type !== 'tool') return;
  card.busy(id, true);
  setTimeout(() => {
    card.busy(id, false);
    card.note(id, 'Moved', 'success');
  }, 1000);
});

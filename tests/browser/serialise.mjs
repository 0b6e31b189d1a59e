// SPDX-License-Identifier: Apache-2.0
//
// An element as text, one node a line, so that two pages that should show the same can be compared with a readable
// difference. The function runs inside the page and stands alone.
//
// Left out is what may differ between two correct pages: comments, the text and the attributes of `time` (durations stand
// in a `time` too), values of attributes named data-id, data-...-id, data-key, data-seq, and signatures in addresses. Ids of elements
// and of the server become numbers in order of appearance, wherever they stand. Added is what no attribute tells: the value
// of a control, and whether it is checked.

export function serialiseInPage(root) {
  const REFERENCES = new Set(['id', 'for', 'list', 'form', 'headers', 'popovertarget', 'commandfor', 'aria-activedescendant',
    'aria-controls', 'aria-describedby', 'aria-details', 'aria-errormessage', 'aria-flowto', 'aria-labelledby', 'aria-owns']);
  const VOLATILE = /^data-(.+-)?(id|seq|key)$/;
  const SERVER_ID = /\b[a-z]{1,8}_[0-9a-hjkmnp-tv-z]{26}\b/g;
  const numbers = new Map();
  const lines = [];

  const number = (id) => {
    if (!numbers.has(id)) numbers.set(id, `@${numbers.size + 1}`);
    return numbers.get(id);
  };
  const plain = (text) => text.replaceAll(location.host, 'HOST').replace(SERVER_ID, number); // the same page may have two addresses

  function attribute(element, { name, value }) {
    if (VOLATILE.test(name) || name === 'value' || name === 'checked') return '';
    if (name === 'style' && value === '') return '';
    if (element.localName === 'time' && (name === 'datetime' || name === 'title' || name === 'aria-label')) return '';
    let shown = plain(value);
    if (REFERENCES.has(name)) shown = value.split(/\s+/).filter(Boolean).map(number).join(' ');
    else if (value.startsWith('#') && name.endsWith('href')) shown = `#${number(value.slice(1))}`;
    else if (value.startsWith('blob:')) shown = 'blob:';
    else if (name === 'href' || name === 'src') shown = shown.replace(/([?&])(exp|sig)=[^&#]*/g, '$1$2=');
    return ` ${name}=${JSON.stringify(shown)}`;
  }

  function control(element) {
    if (!/^(input|textarea|select)$/.test(element.localName)) return '';
    const checked = element.type === 'checkbox' || element.type === 'radio' ? ` :checked=${element.checked}` : '';
    return ` :value=${JSON.stringify(plain(element.value))}${checked}`;
  }

  function children(parent, indent) {
    let text = ''; // neighbours are one text, however they came about
    const flush = () => {
      if (text !== '') lines.push(indent + JSON.stringify(plain(text)));
      text = '';
    };
    for (const child of parent.childNodes) {
      if (child.nodeType === Node.TEXT_NODE) text += child.data;
      if (child.nodeType !== Node.ELEMENT_NODE) continue;
      flush();
      walk(child, indent);
    }
    flush();
  }

  function walk(element, indent) {
    const attributes = [...element.attributes].sort((a, b) => (a.name < b.name ? -1 : 1));
    lines.push(`${indent}<${element.localName}${attributes.map((one) => attribute(element, one)).join('')}${control(element)}>`);
    if (element.localName === 'time' || element.localName === 'textarea') return;
    if (element.shadowRoot) {
      lines.push(`${indent}  #shadow`);
      children(element.shadowRoot, `${indent}    `);
    }
    children(element, `${indent}  `);
  }

  walk(root, '');
  return lines.join('\n');
}

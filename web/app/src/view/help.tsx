// SPDX-License-Identifier: Apache-2.0
//
// The shortcuts, in a dialog: the rows of hotkeys.ts.

import { KEYS, helping } from '../hotkeys.js';
import { t } from '../i18n.js';
import { Dialog } from './dialog.js';

export const Help = () => (
  <Dialog label={t('keys.title')} onClose={() => { helping.value = false; }}>
    <ul class="keys">{KEYS.map(([, key, text]) => <li><span>{t(text)}</span><kbd>Alt</kbd><kbd>{key}</kbd></li>)}</ul>
  </Dialog>
);

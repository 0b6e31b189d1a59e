// SPDX-License-Identifier: Apache-2.0
//
// When something that was asked was settled, by whom, and where.

import { t } from '../i18n.js';
import { session } from '../link.js';
import type { Asked } from '../turns.js';
import { titleOf } from './tool.js';
import { Time } from './turn.js';

const OURS = /^(api|page|websocket|message|timer|run|cancel)$/; // where it was answered need not be said

// A kind of channel, by the name that people know.
export const kindOf = (kind: string): string => (kind === 'weixin' ? t('kind.weixin') : kind === 'wechat_oa' ? t('kind.wechatOa') : titleOf(kind));

export const By = ({ asked: { at, answeredBy, via } }: { asked: Asked }) => at && (
  <small class="quiet">
    <Time at={at} /> {answeredBy && answeredBy !== session.value?.user && t('by.user', { user: answeredBy })} {via && !OURS.test(via) && t('by.via', { via: kindOf(via) })}
  </small>
);

/* SPDX-License-Identifier: Apache-2.0
 *
 * The kinds of channels there are; channel.h is the seam to platforms.
 */
#include "chat/channel.h"

static const struct channel_ops *const kinds[] = {
    &channel_telegram, &channel_webhook, &channel_wechat_oa, &channel_weixin, NULL,
};

const struct channel_ops *channel_kind(str kind)
{
    for (size_t i = 0; kinds[i]; i++)
        if (str_eq(str_c(kinds[i]->traits.kind), kind)) return kinds[i];
    return NULL;
}

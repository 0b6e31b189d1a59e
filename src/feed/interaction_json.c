/* SPDX-License-Identifier: Apache-2.0
 *
 * Interactions as JSON in an arena, by itself or in a list, by the codec of
 * agent/core/interaction.h.
 */
#include "feed/interaction_json.h"

#include <assert.h>

#include "base/limits.h"
#include "store/table/keys.h"

void role_names(unsigned roles, str out[static INTERACTION_ROLES_MAX])
{
    static_assert((int)ROLE_COUNT <= (int)INTERACTION_ROLES_MAX, "every role has a place");
    for (size_t i = 0; i < INTERACTION_ROLES_MAX; i++)
        out[i] =
            i < ROLE_COUNT && (roles & role_table[i].bit) ? str_c(role_table[i].name) : STR_EMPTY;
}

str interactions_json(struct arena *arena, const struct interaction *rows, size_t count, str user)
{
    AUTO(json_doc_done) struct json_doc doc;
    json_doc_open(&doc, HTTP_ANSWER_BYTES_MAX / 2);
    json_array(&doc.w);
    for (size_t i = 0; i < count; i++)
        interaction_write(&doc.w, &rows[i], str_eq(rows[i].owner, user));
    json_array_end(&doc.w);
    return json_doc_copy(&doc, arena);
}

str interaction_json(struct arena *arena, const struct interaction *interaction, str user)
{
    AUTO(json_doc_done) struct json_doc doc;
    json_doc_open(&doc, HTTP_ANSWER_BYTES_MAX / 2);
    interaction_write(&doc.w, interaction, str_eq(interaction->owner, user));
    return json_doc_copy(&doc, arena);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * POST /compile-ui-hints: the card compiler for clients. It has no effect and knows nothing of the
 * request but its language, so the answer is what `fermata compile-ui` prints, byte for byte.
 */
#include "http/exchange.h"
#include "http/handlers.h"
#include "ui/compile.h"
#include "ui/locale.h"

void handle_compile_ui_hints(struct exchange *x)
{
    str accepted = http_head_get(x->head, STR("Accept-Language"));
    struct ui_context context = {.locale = ui_locale_name(ui_locale_accepted(accepted))};
    struct fault why = {0};
    str schema;
    enum err e = ui_compile(exchange_arena(x), x->body, &context, &schema, &why);
    if (e)
        exchange_error(x, e, &why);
    else
        exchange_json(x, 200, schema);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Answering, and reading JSON bodies, for all handlers.
 */
#include "app/http/exchange.h"

#include <stdio.h>

#include "app/say.h"
#include "app/server.h"
#include "base/log.h"
#include "net/problem.h"

struct arena *exchange_arena(struct exchange *x)
{
    return &x->request->arena;
}

void exchange_json_with(struct exchange *x, int status, str body, const struct http_field *fields,
                        size_t field_count)
{
    http_answer(x->request, &(struct http_answer){.status = status,
                                                  .content_type = "application/json",
                                                  .fields = fields,
                                                  .field_count = field_count,
                                                  .body = body});
}

void exchange_json(struct exchange *x, int status, str body)
{
    exchange_json_with(x, status, body, NULL, 0);
}

void exchange_empty(struct exchange *x)
{
    http_answer(x->request, &(struct http_answer){.status = 204});
}

void exchange_problem(struct exchange *x, int status, str body)
{
    http_answer(x->request, &(struct http_answer){
                                .status = status, .content_type = PROBLEM_TYPE, .body = body});
}

void exchange_error(struct exchange *x, enum err e, const struct fault *why)
{
    if (e == ERR_UNAUTHENTICATED) x->server->metrics.unauthenticated++;
    if (e == ERR_RATE_LIMITED) x->server->metrics.rate_limited++;
    enum err shown = e < ERR_IO ? e : ERR_INTERNAL; /* the rest are our own affairs */
    if (err_status(e) >= 500 && e != ERR_SHUTTING_DOWN)
        log_error("request.failed", LOG_CSTR("code", err_code(e)), LOG_CSTR("id", x->request->id),
                  LOG_CSTR("route", x->route ? x->route->name : ""),
                  LOG_CSTR("reason", why ? why->text : ""));
    static const struct http_field challenge = {STR("WWW-Authenticate"), STR("Bearer")};
    static const struct http_field retry = {STR("Retry-After"), STR("1")};
    bool wait = e == ERR_RATE_LIMITED || e == ERR_SHUTTING_DOWN || e == ERR_STORAGE_FULL;
    const struct http_field *field = e == ERR_UNAUTHENTICATED ? &challenge : wait ? &retry : NULL;
    http_answer_error_with(x->request, shown, shown == e ? why : NULL, field, field ? 1 : 0);
}

enum err exchange_string(const struct json *object, const char *name, size_t len_max, str *ret_text,
                         struct fault *reterr)
{
    const struct json *member = json_get(object, str_c(name));
    if (!member) return fault_field(reterr, ERR_INVALID_FIELD, name, "%s is missing", name);
    if (member->type != JSON_STRING)
        return fault_field(reterr, ERR_INVALID_FIELD, name, "%s must be a string", name);
    if (member->text.len < 1 || member->text.len > len_max)
        return fault_field(reterr, ERR_INVALID_FIELD, name, "%s must have 1 to %zu bytes", name,
                           len_max);
    *ret_text = member->text;
    return OK;
}

static bool is_known(const char *const *names, str name)
{
    for (; *names; names++)
        if (str_eq(str_c(*names), name)) return true;
    return false;
}

enum err exchange_known(const struct json *object, const char *const *names, struct fault *reterr)
{
    if (!object || object->type != JSON_OBJECT)
        return fault(reterr, ERR_INVALID_FIELD, "the body must be a JSON object");
    for (const struct json *member = object->child; member; member = member->next)
        if (!is_known(names, member->key))
            return fault_field(reterr, ERR_INVALID_FIELD, say(member->key).text,
                               "unknown field \"%s\"", say(member->key).text);
    return OK;
}

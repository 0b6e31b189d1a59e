/* SPDX-License-Identifier: Apache-2.0
 *
 * Members of a JSON object that somebody sent, looked at before they are used.
 */
#include "base/members.h"

#include "base/say.h"

enum err members_known(const struct json *object, const char *const *names, struct fault *reterr)
{
    if (!object || object->type != JSON_OBJECT)
        return fault(reterr, ERR_INVALID_FIELD, "the body must be a JSON object");
    for (const struct json *member = object->child; member; member = member->next) {
        size_t i = 0;
        while (names[i] && !str_eq(str_c(names[i]), member->key)) i++;
        if (!names[i])
            return fault_field(reterr, ERR_INVALID_FIELD, say(member->key).text,
                               "unknown field \"%s\"", say(member->key).text);
    }
    return OK;
}

enum err member_string(const struct json *object, const char *name, size_t len_max, str *ret_text,
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

/* SPDX-License-Identifier: Apache-2.0
 *
 * Problem documents (RFC 9457): the JSON that refuses a request. Title and status come from the
 * error's row, detail and field from the fault.
 */
#include "net/problem.h"

#include <string.h>

#include "base/json.h"

str problem_clean(const char *text, char *copy, size_t size)
{
    str s = str_c(text);
    for (str whole = s; s.len - whole.len < 4; whole.len--) {
        if (utf8_valid(whole)) return whole;
        if ((unsigned char)whole.p[whole.len - 1] < 0x80) break; /* the fault lies before it */
    }
    if (s.len > size) s.len = size;
    for (size_t i = 0; i < s.len; i++) copy[i] = (unsigned char)s.p[i] < 0x80 ? s.p[i] : '?';
    return (str){copy, s.len};
}

void problem_write(struct buf *out, enum err e, const struct fault *fault)
{
    problem_write_with(out, e, fault, STR_EMPTY, STR_EMPTY);
}

void problem_write_with(struct buf *out, enum err e, const struct fault *fault, str name, str json)
{
    const char *detail = fault && fault->text[0] ? fault->text : err_title(e);
    const char *field = fault ? fault->field : "";
    char copy[sizeof fault->text];
    char type[64];
    snprintf(type, sizeof type, "urn:fermata:error:%s", err_code(e));

    struct json_writer w;
    json_write_begin(&w, out);
    json_object(&w);
    json_member(&w, STR("type"), str_c(type));
    json_member(&w, STR("title"), str_c(err_title(e)));
    json_member_u64(&w, STR("status"), (uint64_t)err_status(e));
    json_member(&w, STR("detail"), problem_clean(detail, copy, sizeof copy));
    json_member(&w, STR("code"), str_c(err_code(e)));
    if (field[0]) json_member(&w, STR("field"), problem_clean(field, copy, sizeof copy));
    if (name.len) {
        json_member_raw(&w, name, json);
    }
    json_object_end(&w);
}

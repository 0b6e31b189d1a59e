/* SPDX-License-Identifier: Apache-2.0
 *
 * The one table of errors: enum, code on the wire, HTTP status, title; `struct fault` says why. To
 * add an error, add its row to ERRS in err.h.
 */
#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/utf8.h"

struct err_row {
    const char *code;
    int status;
    const char *title;
};

#define ERR_ROW(name, code, status, title) [name] = {code, status, title},
static const struct err_row rows[ERR_COUNT] = {ERRS(ERR_ROW)};
#undef ERR_ROW

const char *err_code(enum err e)
{
    return rows[e].code;
}

const char *err_title(enum err e)
{
    return rows[e].title;
}

int err_status(enum err e)
{
    return rows[e].status;
}

/* A text that fills its room was cut, perhaps inside a character; it will stand in JSON, so what is
 * left of that character goes too. */
static void trim_cut(char *text, size_t size)
{
    size_t len = size - 1;
    for (size_t n = 1; n <= 4; n++)
        if (utf8_valid((str){text + len - n, n})) return;
    for (size_t n = 0; n < 3 && (text[len - 1] & 0xc0) == 0x80; n++) len--;
    text[len - 1] = '\0';
}

static PRINTF(4, 0) enum err
    fault_va(struct fault *reterr, enum err e, const char *field, const char *format, va_list args)
{
    if (!reterr) return e;
    reterr->err = e;
    if (snprintf(reterr->field, sizeof reterr->field, "%s", field) >= (int)sizeof reterr->field)
        trim_cut(reterr->field, sizeof reterr->field);
    if (vsnprintf(reterr->text, sizeof reterr->text, format, args) >= (int)sizeof reterr->text)
        trim_cut(reterr->text, sizeof reterr->text);
    return e;
}

#undef fault /* as the analyzer sees them */
#undef fault_field

enum err fault(struct fault *reterr, enum err e, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fault_va(reterr, e, "", format, args);
    va_end(args);
    return e;
}

enum err fault_field(struct fault *reterr, enum err e, const char *field, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fault_va(reterr, e, field, format, args);
    va_end(args);
    return e;
}

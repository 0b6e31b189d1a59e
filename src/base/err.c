/* SPDX-License-Identifier: Apache-2.0
 *
 * The error table. To add an error, add its row to ERRS in err.h.
 */
#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>

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

static enum err fault_va(struct fault *reterr, enum err e, const char *field, const char *format,
                         va_list args)
{
    if (!reterr) return e;
    reterr->err = e;
    snprintf(reterr->field, sizeof reterr->field, "%s", field);
    vsnprintf(reterr->text, sizeof reterr->text, format, args);
    return e;
}

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

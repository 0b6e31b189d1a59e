/* SPDX-License-Identifier: Apache-2.0
 *
 * Names of files: cleaned, and in a header; pure. Ours in storage come from ids and hashes; a
 * client's name is only ever shown, or offered to whoever saves the file. So it is made safe to
 * show: a base name, one line, no mark that turns the direction of what is read ("gpj.exe" for
 * "exe.jpg").
 *
 * In a header the plain form has ASCII only, and no character that clients disagree about: quote,
 * backslash, percent. The full name follows percent-encoded (RFC 8187).
 */
#include "thread/file_name.h"

#include <string.h>

#include "base/buf.h"
#include "base/utf8.h"
#include "ui/text.h"

static str base_name(str name)
{
    for (size_t i = name.len; i; i--)
        if (name.p[i - 1] == '/' || name.p[i - 1] == '\\') return str_drop(name, i);
    return name;
}

/* A space that takes room; the others show nothing, and line ends have no place in a name. */
static bool is_wide(uint32_t code)
{
    bool narrow = code < ' ' || code == 0x85 || code == 0x200b || code == 0x2028 ||
                  code == 0x2029 || code == 0x2060 || code == 0xfeff;
    return ui_is_space(code) && !narrow;
}

str attachment_name(struct arena *arena, str filename)
{
    char out[FILENAME_BYTES_MAX];
    size_t len = 0;
    for (str rest = ui_trim(base_name(filename)); rest.len;) {
        str before = rest;
        uint32_t code = ui_next_char(&rest);
        str seen = {before.p, before.len - rest.len};
        if (is_wide(code))
            seen = STR(" ");
        else if (ui_is_hidden(code))
            continue;
        if (len + seen.len > sizeof out) break;
        memcpy(out + len, seen.p, seen.len);
        len += seen.len;
    }
    str name = ui_trim((str){out, len});
    bool dots = str_eq(name, STR(".")) || str_eq(name, STR(".."));
    return dots ? STR_EMPTY : arena_str(arena, name);
}

static bool is_plain(char c)
{
    return c >= ' ' && c <= '~' && !strchr("\"\\%", c);
}

static bool is_attr_char(char c)
{
    if ((c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z')) return true;
    return c && strchr("!#$&+-.^_`|~", c);
}

str attachment_disposition(struct arena *arena, bool shown, str filename)
{
    enum { ROOM = 64 + 4 * FILENAME_BYTES_MAX };
    struct buf out;
    bool same = true;
    assert(filename.len <= FILENAME_BYTES_MAX);
    buf_init(&out, ROOM);
    buf_append(&out, shown ? STR("inline") : STR("attachment"));
    if (filename.len) buf_append(&out, STR("; filename=\""));
    for (size_t i = 0; i < filename.len; i++) {
        char c = filename.p[i];
        same = same && is_plain(c);
        if ((c & 0xc0) == 0x80) continue; /* one mark for each character */
        buf_char(&out, is_plain(c) ? c : '_');
    }
    if (filename.len) buf_char(&out, '"');
    if (!same) buf_append(&out, STR("; filename*=UTF-8''"));
    for (size_t i = 0; !same && i < filename.len; i++) {
        if (is_attr_char(filename.p[i]))
            buf_char(&out, filename.p[i]);
        else
            buf_printf(&out, "%%%02X", (unsigned char)filename.p[i]);
    }
    str value = arena_str(arena, buf_str(&out));
    assert(!out.full);
    buf_done(&out);
    return value;
}

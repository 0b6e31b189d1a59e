/* SPDX-License-Identifier: Apache-2.0
 *
 * The registry of tools, and results as a model reads them.
 *
 * A result may have 64 MiB, of which a model gets 32 KiB. So its pieces are never joined: they are
 * looked at as one long text, of which a beginning and an end are copied.
 *
 *     pieces     error \n content \n result
 *                |------------------------------ total ------------------------------|
 *     copied     |--- head ---|                                          |-- tail ---|
 *                              \n[... N bytes left out ...]\n
 *
 * A result that is in a file has only both its ends here; its middle is never asked for.
 *
 * To add a risk, add its row to TOOL_RISKS in tool.h. To add a pack, write its file and give its
 * tools to tools_join where the server is put together.
 */
#include "tool/tools.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/limits.h"

/* ---- names and risks ---- */

#define TOOL_RISK_NAME(value, name) [value] = name,
static const char *const risk_names[] = {TOOL_RISKS(TOOL_RISK_NAME)};
#undef TOOL_RISK_NAME

const char *tool_risk_name(enum tool_risk risk)
{
    return risk_names[risk];
}

enum err tool_risk_parse(str name, enum tool_risk *ret_risk)
{
    for (unsigned risk = 0; risk < TOOL_RISK_COUNT; risk++) {
        if (!str_eq(name, str_c(risk_names[risk]))) continue;
        *ret_risk = (enum tool_risk)risk;
        return OK;
    }
    return ERR_INVALID_FIELD;
}

bool tool_name_valid(str name)
{
    for (size_t i = 0; i < name.len; i++) {
        char c = name.p[i], lower = char_lower(c);
        bool fits =
            (lower >= 'a' && lower <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
        if (!fits) return false;
    }
    return name.len > 0 && name.len <= TOOL_NAME_BYTES_MAX;
}

/* ---- the registry ---- */

const struct tool *tools_find(const struct tools *tools, str name)
{
    for (size_t i = 0; i < tools->count; i++)
        if (str_eq(tools->rows[i].name, name)) return &tools->rows[i];
    return NULL;
}

static enum err check_new(const struct tools *so_far, const struct tool *tool, struct fault *reterr)
{
    if (!tool_name_valid(tool->name))
        return fault(reterr, ERR_CONFIG,
                     "a tool is called \"%.*s\": a name has 1 to %d letters, digits, _ and -",
                     STR_ARG(tool_text_head(tool->name, 80)), TOOL_NAME_BYTES_MAX);
    if (tools_find(so_far, tool->name))
        return fault(reterr, ERR_CONFIG, "two tools are called %.*s: give one of them another name",
                     STR_ARG(tool->name));
    if (so_far->count == TOOLS_MAX)
        return fault(reterr, ERR_CONFIG, "%.*s is one tool too many: at most %d can be offered",
                     STR_ARG(tool->name), TOOLS_MAX);
    return OK;
}

enum err tools_join(struct arena *arena, const struct tools *packs, size_t count,
                    struct tools *ret_tools, struct fault *reterr)
{
    size_t total = 0;
    for (size_t i = 0; i < count; i++) total += packs[i].count;
    struct tool *rows = arena_array(arena, total, sizeof *rows);
    struct tools joined = {.rows = rows};
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < packs[i].count; k++) {
            enum err e = check_new(&joined, &packs[i].rows[k], reterr);
            if (e) return e;
            rows[joined.count++] = packs[i].rows[k];
        }
    }
    *ret_tools = joined;
    return OK;
}

void tools_free(const struct tools *tools)
{
    for (size_t i = 0; i < tools->count; i++) {
        const struct tool *tool = &tools->rows[i];
        bool shared = false;
        for (size_t k = 0; k < i && !shared; k++) shared = tools->rows[k].self == tool->self;
        if (!shared && tool->ops->free) tool->ops->free(tool->self);
    }
}

/* ---- texts ---- */

bool tool_locale_zh(str locale)
{
    return locale.len >= 2 && char_lower(locale.p[0]) == 'z' && char_lower(locale.p[1]) == 'h';
}

static bool is_inner(char c)
{
    return ((unsigned char)c & 0xc0) == 0x80; /* not the first byte of a character */
}

str tool_text_head(str text, size_t max)
{
    if (text.len <= max) return text;
    while (max > 0 && is_inner(text.p[max])) max--;
    return (str){text.p, max};
}

/* A few pieces seen as one text. A hole is a piece whose bytes are not here. */
struct pieces {
    str all[8];
    size_t count;
    uint64_t total;
};

static void piece_add(struct pieces *pieces, str piece)
{
    if (!piece.len) return;
    assert(pieces->count < COUNT(pieces->all));
    pieces->all[pieces->count++] = piece;
    pieces->total += piece.len;
}

static void ends_add(struct pieces *pieces, const struct tool_ends *text)
{
    size_t known = text->head.len + text->tail.len;
    assert(known <= text->bytes);
    piece_add(pieces, text->head);
    piece_add(pieces, (str){NULL, (size_t)(text->bytes - known)});
    piece_add(pieces, text->tail);
}

static char byte_at(const struct pieces *pieces, uint64_t at)
{
    size_t i = 0;
    for (; at >= pieces->all[i].len; i++) at -= pieces->all[i].len;
    assert(pieces->all[i].p);
    return pieces->all[i].p[at];
}

static void copy_part(struct buf *out, const struct pieces *pieces, uint64_t from, size_t len)
{
    for (size_t i = 0; i < pieces->count && len; i++) {
        str piece = pieces->all[i];
        size_t skip = from < piece.len ? (size_t)from : piece.len;
        from -= skip;
        if (skip == piece.len) continue;
        assert(piece.p);
        piece = str_drop(piece, skip);
        if (piece.len > len) piece.len = len;
        buf_append(out, piece);
        len -= piece.len;
    }
}

enum { MARKER_BYTES_MAX = 80 };

/* Two thirds go to the head: what something is mostly stands in its beginning. */
static str join_cut(struct arena *arena, const struct pieces *pieces, size_t max, str locale)
{
    AUTO(buf_done) struct buf out;
    buf_init(&out, max);
    if (pieces->total <= max) {
        copy_part(&out, pieces, 0, (size_t)pieces->total);
        return arena_str(arena, buf_str(&out));
    }
    assert(max > MARKER_BYTES_MAX);
    size_t room = max - MARKER_BYTES_MAX, head = room / 3 * 2, tail = room - head;
    while (head > 0 && is_inner(byte_at(pieces, head))) head--;
    while (tail > 0 && is_inner(byte_at(pieces, pieces->total - tail))) tail--;
    copy_part(&out, pieces, 0, head);
    buf_printf(&out,
               tool_locale_zh(locale) ? "\n[…… 此处省略 %llu 字节 ……]\n"
                                      : "\n[... %llu bytes left out ...]\n",
               (unsigned long long)(pieces->total - head - tail));
    copy_part(&out, pieces, pieces->total - tail, tail);
    assert(!out.full);
    return arena_str(arena, buf_str(&out));
}

str tool_text_cut(struct arena *arena, str text, size_t max, str locale)
{
    if (text.len <= max) return text;
    struct pieces pieces = {0};
    piece_add(&pieces, text);
    return join_cut(arena, &pieces, max, locale);
}

str tool_ends_cut(struct arena *arena, const struct tool_ends *text, size_t max, str locale)
{
    struct pieces pieces = {0};
    ends_add(&pieces, text);
    return join_cut(arena, &pieces, max, locale);
}

str tool_model_text(struct arena *arena, const struct tool_result *result, str locale)
{
    bool zh = tool_locale_zh(locale);
    struct pieces pieces = {0};
    if (result->error.len) {
        piece_add(&pieces, zh ? STR("错误：") : STR("Error: "));
        piece_add(&pieces, result->error);
    }
    const struct tool_ends file = {result->result_head, result->result_tail, result->result_bytes};
    const struct tool_ends memory = {.head = result->result, .bytes = result->result.len};
    const struct tool_ends content = {.head = result->content, .bytes = result->content.len};
    const struct tool_ends *const others[] = {&content, result->spooled ? &file : &memory};
    for (size_t i = 0; i < COUNT(others); i++) {
        if (others[i]->bytes && pieces.count) piece_add(&pieces, STR("\n"));
        ends_add(&pieces, others[i]);
    }
    if (!pieces.count) return zh ? STR("（没有返回内容）") : STR("(nothing was returned)");
    return join_cut(arena, &pieces, CALL_MODEL_BYTES_MAX, locale);
}

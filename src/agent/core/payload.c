/* SPDX-License-Identifier: Apache-2.0
 *
 * What a call leaves behind: its summary, its card, and the object that is stored, made and read.
 *
 * A bad hint never breaks a run: then there is no card, and `refused` says why.
 */
#include "agent/core/payload.h"

#include "agent/core/facts.h"
#include "agent/core/files.h"
#include "agent/core/texts.h"
#include "base/clock.h"
#include "base/crypto.h"
#include "base/json.h"
#include "base/json_scan.h"
#include "base/limits.h"
#include "store/table/blob_path.h"
#include "store/table/calls.h"
#include "tool/tools.h"
#include "ui/compile.h"
#include "ui/summary.h"

enum { PAYLOAD_VERSION = 1 };

/* ---- the summary ---- */

static const struct json *payload_parsed(struct arena *arena, str text)
{
    struct json *json = NULL;
    return text.len && json_parse(arena, text, &json, NULL) == OK ? json : NULL;
}

/* Said about the call by us or by a person, not by the tool: it stands as it is. */
static bool payload_told(struct arena *arena, const struct payload_source *source)
{
    const struct call *call = source->call;
    if (call->state == CALL_REJECTED || call->state == CALL_CANCELLED) return true;
    if (str_eq(call->error, STR("unknown_outcome"))) return call->content.len;
    return str_eq(call->content, text_say(arena, TEXT_HAPPENED, source->locale, STR_EMPTY));
}

static str summary(struct arena *arena, const struct payload_source *source)
{
    const struct call *call = source->call;
    if (payload_told(arena, source)) return call->content;
    const struct tool *tool = tools_find(source->tools, call->tool);
    struct summary_source s = {.tool = call->tool,
                               .args = payload_parsed(arena, call->args),
                               .result = payload_parsed(arena, call->result),
                               .content = call->content,
                               .locale = source->locale};
    if (tool) {
        s.template_zh = tool->done_zh;
        s.template_en = tool->done_en;
    }
    if (call->state != CALL_DONE) s.error = call->content.len ? call->content : call->error;
    if (call->state != CALL_DONE && !s.error.p) s.error = STR("");
    return build_tool_content_summary(arena, &s);
}

/* ---- the card ---- */

static void file_entry(struct json_writer *w, struct arena *arena, const struct json *file, bool zh)
{
    const struct json *name = json_get(file, STR("filename")),
                      *mime = json_get(file, STR("mimeType"));
    bool image = str_starts(json_text(mime), STR("image/"));
    char size[FILE_SIZE_BYTES];
    uint64_t bytes = 0;
    if (json_u64(json_get(file, STR("size")), &bytes)) bytes = 0; /* it is ours: there is one */
    file_size(zh, bytes, size);
    json_object(w);
    json_member(w, STR("title"), json_text(name ? name : mime));
    json_member(w, STR("subtitle"),
                arena_printf(arena, "%.*s, %s", STR_ARG(json_text(mime)), size));
    json_member(w, STR("icon"), image ? STR("image") : STR("file"));
    json_member_raw(w, STR("actions"),
                    arena_printf(arena,
                                 "[{\"label\":\"%s\",\"action\":{\"type\":\"url\",\"url\":"
                                 "\"/api/v1/agent/attachments/%.*s\",\"target\":\"_blank\"}}]",
                                 zh ? "打开" : "Open",
                                 STR_ARG(json_text(json_get(file, STR("id"))))));
    json_object_end(w);
}

/* Files without a word of their tool about a card: a list of them. */
static str files_hints(struct arena *arena, str attachments, str locale)
{
    bool zh = locale_is_chinese(locale);
    AUTO(buf_done) struct buf buf;
    buf_init(&buf, FACT_FRAME_BYTES_MAX + 2 * attachments.len);
    struct json_writer w;
    json_write_begin(&w, &buf);
    json_object(&w);
    json_member(&w, STR("version"), STR("2.1"));
    json_member(&w, STR("intent"), STR("list"));
    json_member(&w, STR("status"), STR("info"));
    json_member(&w, STR("title"), zh ? STR("文件") : STR("Files"));
    json_key(&w, STR("listItems"));
    json_array(&w);
    const struct json *list = payload_parsed(arena, attachments);
    for (const struct json *file = list ? list->child : NULL; file; file = file->next)
        file_entry(&w, arena, file, zh);
    json_array_end(&w);
    json_object_end(&w);
    assert(!buf.full);
    return arena_str(arena, buf_str(&buf));
}

static void make_card(struct arena *arena, const struct payload_source *source,
                      struct payload *payload)
{
    const struct call *call = source->call;
    struct json *hints = NULL;
    struct json_error wrong = {0};
    struct fault why = {0};
    str text = call->ui_hints;
    if (!text.len && call->attachments.len)
        text = files_hints(arena, call->attachments, source->locale);
    if (!text.len) return;
    if (json_parse(arena, text, &hints, &wrong)) {
        payload->refused = STR("the hints are not JSON");
        return;
    }
    struct ui_context context = {.locale = source->locale,
                                 .request_id = call->call_id,
                                 .tool_id = call->tool,
                                 .trace_id = source->run_id,
                                 .user_id = source->user_id};
    if (ui_compile(arena, hints, &context, &payload->ui, &why)) {
        payload->ui = STR_EMPTY;
        payload->refused = arena_printf(arena, "%s: %s", why.field, why.text);
        return;
    }
    payload->ui_hints = text;
}

/* ---- the object ---- */

static void member_raw(struct json_writer *w, str key, str json)
{
    if (!json.len) return;
    json_member_raw(w, key, json);
}

static void member_time(struct json_writer *w, str key, msec at)
{
    char text[RFC3339_BYTES];
    clock_rfc3339(at, text);
    json_member(w, key, str_c(text));
}

static str object_json(struct arena *arena, const struct payload_source *source,
                       const struct payload *payload)
{
    const struct call *call = source->call;
    AUTO(buf_done) struct buf buf;
    buf_init(&buf, FACT_FRAME_BYTES_MAX + call->args.len + call->result.len + payload->ui.len +
                       6 * (call->error.len + payload->content.len));
    struct json_writer w;
    json_write_begin(&w, &buf);
    json_object(&w);
    json_member_u64(&w, STR("version"), PAYLOAD_VERSION);
    json_member(&w, STR("tool_id"), call->tool);
    json_member(&w, STR("tool_call_id"), call->call_id);
    json_member(&w, STR("run_id"), source->run_id);
    member_raw(&w, STR("args"), call->args);
    member_raw(&w, STR("result"), call->result);
    if (payload->result_path.len) json_member(&w, STR("result_path"), payload->result_path);
    json_member_u64(&w, STR("result_bytes"), call->result_bytes);
    if (call->error.len) json_member(&w, STR("error"), call->error);
    json_member(&w, STR("content"), payload->content);
    member_raw(&w, STR("ui"), payload->ui);
    member_time(&w, STR("started_at"), call->started);
    member_time(&w, STR("ended_at"), call->ended);
    json_object_end(&w);
    assert(!buf.full);
    return arena_str(arena, buf_str(&buf));
}

static str path_of(struct arena *arena, const unsigned char *hash, str whose)
{
    char path[BLOB_PATH_BYTES];
    blob_path(hash, whose, path);
    return arena_str(arena, str_c(path));
}

/* Of a file whose hash the row does not know there is no object; it stays where it is. */
static str result_path(struct arena *arena, const struct call *call)
{
    unsigned char hash[HASH_BYTES];
    if (!call->spool.len || !crypto_unhex(call->result_hash, hash, sizeof hash)) return STR_EMPTY;
    return path_of(arena, hash, call->call_id);
}

void payload_make(struct arena *arena, const struct payload_source *source,
                  struct payload *ret_payload)
{
    const struct call *call = source->call;
    struct payload payload = {.call_id = call->call_id};
    unsigned char hash[HASH_BYTES];
    payload.content = summary(arena, source);
    make_card(arena, source, &payload);
    payload.result_path = result_path(arena, call);
    payload.bytes = object_json(arena, source, &payload);
    crypto_sha256(payload.bytes, hash);
    payload.path = path_of(arena, hash, call->call_id);
    *ret_payload = payload;
}

/* ---- reading ---- */

/* Without a tree: a page of history reads many, for their cards alone. */
enum err payload_parse(struct arena *arena, str bytes, struct payload_parts *ret_parts)
{
    struct payload_parts parts = {0};
    struct json_scan *scan = ARENA_NEW(arena, struct json_scan);
    json_scan_init(scan, NULL, NULL);
    str rest = bytes, size = STR_EMPTY, path = STR_EMPTY;
    for (enum json_scan_mark mark; (mark = json_scan_next(scan, &rest)) != JSON_SCAN_MORE;) {
        if (mark == JSON_SCAN_REFUSED) return ERR_DAMAGED;
        if (mark != JSON_SCAN_END) continue;
        str key = json_scan_key(scan);
        str value = {bytes.p + scan->member.from, scan->member.to - scan->member.from};
        if (str_eq(key, STR("ui"))) parts.ui = value;
        if (str_eq(key, STR("result"))) parts.result = value;
        if (str_eq(key, STR("result_path"))) path = value;
        if (str_eq(key, STR("result_bytes"))) size = value;
    }
    if (json_scan_finish(scan) || scan->document.type != JSON_OBJECT) return ERR_DAMAGED;
    if (size.len && str_to_u64(size, &parts.result_bytes)) return ERR_DAMAGED;
    if (path.len > 2) parts.result_path = (str){path.p + 1, path.len - 2}; /* nothing is escaped */
    *ret_parts = parts;
    return OK;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * A message that came in from a chat, as one line of JSON in the inbox; what is empty, false or 0
 * is left out:
 *
 *     {"id":"71","sender":"u1","text":"hi","at":5,"files":[{"name":"a.png","ref":{...},"size":3}]}
 *
 * Whatever within its limits is written fits into CHANNEL_INBOUND_JSON_BYTES_MAX, even if every byte
 * has to be escaped: a message that a platform has given us is never too long to be kept. What names
 * something must be whole; what only people read is cut.
 *
 * To add a member: a field of struct inbound and its row in a table below.
 */
#include "chat/inbound.h"

#include "base/limits.h"

enum rule { WHOLE, NEEDED, CUT }; /* too long: refused, or cut; NEEDED: whole, and not empty */

struct text_field {
    const char *key;
    size_t offset, bytes_max;
    enum rule rule;
};

#define FIELD(member) #member, offsetof(struct inbound, member)
static const struct text_field text_fields[] = {
    {FIELD(id), CHANNEL_ID_BYTES_MAX, NEEDED},
    {FIELD(sender), CHANNEL_ID_BYTES_MAX, NEEDED},
    {FIELD(name), CHANNEL_ID_BYTES_MAX, CUT},
    {FIELD(text), CHANNEL_TEXT_BYTES_MAX, CUT},
    {FIELD(reply_token), CHANNEL_TOKEN_BYTES_MAX, WHOLE},
    {FIELD(quoted), CHANNEL_ID_BYTES_MAX, WHOLE},
    {FIELD(button), CHANNEL_ID_BYTES_MAX, WHOLE},
    {FIELD(callback_id), CHANNEL_ID_BYTES_MAX, WHOLE},
    {FIELD(pressed), CHANNEL_ID_BYTES_MAX, WHOLE},
    {FIELD(label), CHANNEL_ID_BYTES_MAX, CUT},
};
#undef FIELD

#define FIELD(member) #member, offsetof(struct inbound_file, member)
static const struct text_field file_fields[] = {
    {FIELD(name), CHANNEL_ID_BYTES_MAX, CUT},
    {FIELD(mime), CHANNEL_ID_BYTES_MAX, CUT},
};
#undef FIELD

/* Six bytes for one that is escaped; keys, marks and numbers are less than 512 bytes each time. */
enum { ESCAPED = 6, MARKS = 512 };
_Static_assert(ESCAPED *(CHANNEL_TEXT_BYTES_MAX + CHANNEL_TOKEN_BYTES_MAX +
                         8 * CHANNEL_ID_BYTES_MAX) +
                       MARKS +
                       CHANNEL_INBOUND_FILES_MAX * (ESCAPED * 2 * CHANNEL_ID_BYTES_MAX + MARKS) +
                       CHANNEL_REFS_BYTES_MAX <
                   CHANNEL_INBOUND_JSON_BYTES_MAX,
               "a message within its limits fits");

static bool refs_fit(const struct inbound *inbound)
{
    size_t left = CHANNEL_REFS_BYTES_MAX;
    for (size_t i = 0; i < inbound->file_count; i++) {
        if (inbound->files[i].ref.len > left) return false;
        left -= inbound->files[i].ref.len;
    }
    return true;
}

/* ---- writing ---- */

/* The longest start of it that ends between two characters. */
static str cut_at(str text, size_t bytes_max)
{
    if (text.len <= bytes_max) return text;
    size_t len = bytes_max;
    while (len && ((unsigned char)text.p[len] & 0xc0) == 0x80) len--;
    return (str){text.p, len};
}

static bool write_texts(struct json_writer *w, const struct text_field *fields, size_t count,
                        const void *from)
{
    for (size_t i = 0; i < count; i++) {
        str text = *(const str *)((const char *)from + fields[i].offset);
        if (!text.len && fields[i].rule == NEEDED) return false;
        if (!text.len) continue;
        if (!utf8_valid(text)) return false;
        if (text.len > fields[i].bytes_max && fields[i].rule != CUT) return false;
        json_member(w, str_c(fields[i].key), cut_at(text, fields[i].bytes_max));
    }
    return true;
}

static void write_number(struct json_writer *w, str key, uint64_t value)
{
    if (!value) return;
    json_member_u64(w, key, value);
}

static void write_flag(struct json_writer *w, str key, bool value)
{
    if (!value) return;
    json_member_bool(w, key, true);
}

static bool write_file(struct arena *arena, struct json_writer *w, const struct inbound_file *file)
{
    struct json *ref = NULL;
    if (json_parse(arena, file->ref, &ref, NULL) || ref->type != JSON_OBJECT) return false;
    json_object(w);
    if (!write_texts(w, file_fields, COUNT(file_fields), file)) return false;
    json_member_raw(w, STR("ref"), ref->raw);
    write_number(w, STR("size"), file->size);
    json_object_end(w);
    return true;
}

static bool write_inbound(struct arena *arena, struct json_writer *w, const struct inbound *inbound)
{
    if (inbound->file_count > CHANNEL_INBOUND_FILES_MAX || !refs_fit(inbound)) return false;
    json_object(w);
    if (!write_texts(w, text_fields, COUNT(text_fields), inbound)) return false;
    write_flag(w, STR("group"), inbound->group);
    write_flag(w, STR("follow"), inbound->follow);
    write_flag(w, STR("menu"), inbound->menu);
    write_number(w, STR("at"), inbound->at > 0 ? (uint64_t)inbound->at : 0);
    write_number(w, STR("allowance"), inbound->allowance);
    write_number(w, STR("window_ms"), inbound->window_ms > 0 ? (uint64_t)inbound->window_ms : 0);
    write_number(w, STR("asked"), inbound->asked > 0 ? (uint64_t)inbound->asked : 0);
    if (inbound->file_count) {
        json_key(w, STR("files"));
        json_array(w);
        for (size_t i = 0; i < inbound->file_count; i++)
            if (!write_file(arena, w, &inbound->files[i])) return false;
        json_array_end(w);
    }
    json_object_end(w);
    return true;
}

str inbound_json(struct arena *arena, const struct inbound *inbound)
{
    AUTO(json_doc_done) struct json_doc doc;
    json_doc_open(&doc, CHANNEL_INBOUND_JSON_BYTES_MAX);
    if (!write_inbound(arena, &doc.w, inbound)) return STR_EMPTY;
    assert(!doc.buf.full);
    return json_doc_copy(&doc, arena);
}

/* ---- reading ---- */

static bool read_texts(const struct json *object, const struct text_field *fields, size_t count,
                       void *to)
{
    for (size_t i = 0; i < count; i++) {
        const struct json *member = json_get(object, str_c(fields[i].key));
        if (!member && fields[i].rule == NEEDED) return false;
        if (!member) continue;
        if (member->type != JSON_STRING || member->text.len > fields[i].bytes_max) return false;
        if (!member->text.len && fields[i].rule == NEEDED) return false;
        *(str *)((char *)to + fields[i].offset) = member->text;
    }
    return true;
}

static bool read_number(const struct json *object, str key, uint64_t max, uint64_t *ret_value)
{
    const struct json *member = json_get(object, key);
    uint64_t value = 0;
    if (!member) return true;
    if (json_u64(member, &value) || value > max) return false;
    *ret_value = value;
    return true;
}

static bool read_flag(const struct json *object, str key, bool *ret_value)
{
    const struct json *member = json_get(object, key);
    if (!member) return true;
    *ret_value = member->type == JSON_TRUE;
    return member->type == JSON_TRUE || member->type == JSON_FALSE;
}

static bool read_file(const struct json *object, struct inbound_file *file)
{
    const struct json *ref = json_get(object, STR("ref"));
    if (object->type != JSON_OBJECT || !ref || ref->type != JSON_OBJECT) return false;
    file->ref = ref->raw;
    return read_texts(object, file_fields, COUNT(file_fields), file) &&
           read_number(object, STR("size"), UINT64_MAX, &file->size);
}

static bool read_files(struct arena *arena, const struct json *object, struct inbound *inbound)
{
    const struct json *files = json_get(object, STR("files"));
    if (!files) return true;
    if (files->type != JSON_ARRAY || files->count > CHANNEL_INBOUND_FILES_MAX) return false;
    inbound->files = arena_array(arena, files->count, sizeof *inbound->files);
    for (const struct json *file = files->child; file; file = file->next)
        if (!read_file(file, &inbound->files[inbound->file_count++])) return false;
    return refs_fit(inbound);
}

enum err inbound_parse(struct arena *arena, str json, struct inbound *ret_inbound)
{
    struct json *object = NULL;
    if (json.len > CHANNEL_INBOUND_JSON_BYTES_MAX || json_parse(arena, json, &object, NULL) ||
        object->type != JSON_OBJECT)
        return ERR_DAMAGED;
    struct inbound inbound = {0};
    uint64_t at = 0, allowance = 0, window_ms = 0, asked = 0;
    bool good = read_texts(object, text_fields, COUNT(text_fields), &inbound) &&
                read_flag(object, STR("group"), &inbound.group) &&
                read_flag(object, STR("follow"), &inbound.follow) &&
                read_flag(object, STR("menu"), &inbound.menu) &&
                read_number(object, STR("at"), INT64_MAX, &at) &&
                read_number(object, STR("allowance"), UINT32_MAX, &allowance) &&
                read_number(object, STR("window_ms"), INT64_MAX, &window_ms) &&
                read_number(object, STR("asked"), INT64_MAX, &asked) &&
                read_files(arena, object, &inbound);
    if (!good) return ERR_DAMAGED;
    inbound.at = (msec)at;
    inbound.allowance = (uint32_t)allowance;
    inbound.window_ms = (msec)window_ms;
    inbound.asked = (int64_t)asked;
    *ret_inbound = inbound;
    return OK;
}

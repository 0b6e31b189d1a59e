/* SPDX-License-Identifier: Apache-2.0
 *
 * Content that is a list of parts (words, our attachments, bytes along, files elsewhere): parsing,
 * and what is stored of it.
 *
 *     request                                    stored content
 *     text                                       {"type":"text","text"}
 *     an attachment of ours, or bytes along      {"type":"binary","id","mimeType","filename"?}
 *     binary elsewhere                           {"type":"binary","mimeType"?,"url","filename"?}
 *     image, audio, video, document elsewhere    {"type":...,"source":{"type":"url","value",...}}
 *
 * Invariants:
 * 1. Content is written anew from what was understood: nothing else that a part brings is stored, so
 *    rows stay small and hold no bytes of files.
 * 2. Name and type of an attachment are its row's, never the request's.
 * 3. Parts stand in the order in which they came.
 *
 * To add a kind of part: a row in types[], and if its shape is new, a function beside read_binary.
 */
#include "thread/parts.h"

#include <stdio.h>

#include "agent/core/facts.h"
#include "base/id.h"
#include "base/limits.h"
#include "thread/file_name.h"

#define ATTACHMENTS_PATH "/api/v1/agent/attachments/"

struct parts_reader {
    struct arena *arena;
    const struct parts_home *home;
    const char *path; /* of the part at hand */
    struct fault *reterr;
};

static enum err parts_refuse(const struct parts_reader *r, const char *why)
{
    return fault_field(r->reterr, ERR_INVALID_FIELD, r->path, "%s", why);
}

void part_path(const struct parts *parts, size_t at, char ret_path[static PART_PATH_BYTES])
{
    snprintf(ret_path, PART_PATH_BYTES, "messages[%zu].content[%zu]", parts->index, at);
}

/* ---- addresses ---- */

static bool take_prefix(str *text, str prefix)
{
    if (!str_starts(*text, prefix)) return false;
    *text = str_drop(*text, prefix.len);
    return true;
}

/* "https://host:8443" of an address; empty if it has none. */
static str authority_of(str url, str *ret_rest)
{
    str rest = url;
    if (!take_prefix(&rest, STR("https://")) && !take_prefix(&rest, STR("http://")))
        return STR_EMPTY;
    size_t end = 0;
    while (end < rest.len && rest.p[end] != '/' && rest.p[end] != '?' && rest.p[end] != '#') end++;
    *ret_rest = str_drop(rest, end);
    return (str){rest.p, end};
}

str parts_own_id(const struct parts_home *home, str url)
{
    str rest = url;
    if (home->origin.len && take_prefix(&rest, home->origin)) {
        /* the public name, whose scheme is known */
    } else if (!str_starts(url, STR("/"))) {
        str authority = authority_of(url, &rest);
        if (!authority.len || !str_eq_nocase(authority, home->host)) return STR_EMPTY;
    }
    str behind = rest;
    if (home->prefix.len && take_prefix(&behind, home->prefix) &&
        str_starts(behind, STR(ATTACHMENTS_PATH)))
        rest = behind;
    if (!take_prefix(&rest, STR(ATTACHMENTS_PATH))) return STR_EMPTY;
    size_t end = 0;
    while (end < rest.len && rest.p[end] != '?' && rest.p[end] != '#') end++;
    str id = {rest.p, end};
    return id_valid(id) ? id : STR_EMPTY;
}

/* An address elsewhere stands in texts for the model: no blanks, nothing invisible. */
static bool url_clean(str url)
{
    for (size_t i = 0; i < url.len; i++)
        if (url.p[i] <= ' ' || url.p[i] > '~') return false;
    return url.len <= PART_URL_BYTES_MAX;
}

/* ---- names and types ---- */

/* "image/png", perhaps with parameters, which are left out. */
static bool mime_valid(str *mime)
{
    size_t end = 0, slashes = 0;
    for (; end < mime->len && mime->p[end] != ';'; end++) {
        char c = char_lower(mime->p[end]);
        bool letter = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
        bool sign = c == '.' || c == '+' || c == '-' || c == '_';
        slashes += c == '/';
        if (!letter && !sign && (c != '/' || end == 0)) return false;
    }
    *mime = str_trim((str){mime->p, end});
    return slashes == 1 && mime->p[mime->len - 1] != '/' && mime->len <= PART_MIME_BYTES_MAX;
}

/* ---- base64 ---- */

static int digit64(char c)
{
    if (c >= 'A' && c <= 'Z') return c - 'A';
    if (c >= 'a' && c <= 'z') return c - 'a' + 26;
    if (c >= '0' && c <= '9') return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* Four digits; the last group may end in one or two '=', and the bits they leave must be 0. */
static int group64(const char *p, bool last, unsigned char *out)
{
    int pad = p[3] != '=' ? 0 : p[2] != '=' ? 1 : 2;
    if (pad && !last) return -1;
    uint32_t bits = 0;
    for (int i = 0; i < 4; i++) {
        int digit = i < 4 - pad ? digit64(p[i]) : 0;
        if (digit < 0) return -1;
        bits = bits << 6 | (uint32_t)digit;
    }
    if (pad && (bits & (pad == 1 ? 0xffu : 0xffffu))) return -1;
    for (int i = 0; i < 3 - pad; i++) out[i] = (unsigned char)(bits >> (16 - 8 * i));
    return 3 - pad;
}

bool parts_base64(str text, unsigned char *out, size_t *ret_len)
{
    size_t len = 0;
    if (text.len % 4) return false;
    for (size_t i = 0; i < text.len; i += 4) {
        int got = group64(text.p + i, i + 4 == text.len, out + len);
        if (got < 0) return false;
        len += (size_t)got;
    }
    *ret_len = len;
    return true;
}

/* ---- parsing ---- */

/* A string member, absent is empty; false for another type. */
static bool text_of(const struct json *object, const char *name, str *ret_text)
{
    const struct json *member = json_get(object, str_c(name));
    *ret_text = json_text(member);
    return !member || member->type == JSON_STRING || member->type == JSON_NULL;
}

static enum err take_mime(const struct parts_reader *r, const struct json *object,
                          struct part *part)
{
    if (!text_of(object, "mimeType", &part->mime))
        return parts_refuse(r, "mimeType must be a string");
    if (part->mime.len && !mime_valid(&part->mime))
        return parts_refuse(r, "mimeType must look like \"image/png\"");
    return OK;
}

static enum err take_filename(const struct parts_reader *r, const struct json *json,
                              struct part *part)
{
    str name;
    if (!text_of(json, "filename", &name)) return parts_refuse(r, "filename must be a string");
    if (!name.len) name = json_text(json_get(json_get(json, STR("metadata")), STR("filename")));
    part->filename = attachment_name(r->arena, name);
    return OK;
}

static enum err take_data(const struct parts_reader *r, str data, struct part *part)
{
    part->kind = PART_DATA;
    part->data = data;
    if (!part->mime.len) return parts_refuse(r, "a part with data needs a mimeType");
    return OK;
}

/* "data:image/png;base64,...": bytes that came as an address. */
static enum err take_data_url(const struct parts_reader *r, str url, struct part *part)
{
    static const str mark = STR(";base64");
    ptrdiff_t comma = str_find_char(url, ',');
    str head = {url.p, comma < 0 ? 0 : (size_t)comma};
    str mime = str_drop(head, sizeof "data:" - 1);
    if (!str_ends(head, mark)) return parts_refuse(r, "a data: address must hold base64");
    mime.len -= mark.len;
    if (!part->mime.len && mime.len && mime_valid(&mime)) part->mime = mime;
    return take_data(r, str_drop(url, (size_t)comma + 1), part);
}

static enum err take_url(const struct parts_reader *r, str url, struct part *part)
{
    part->id = parts_own_id(r->home, url);
    part->kind = part->id.len ? PART_OWN : PART_FOREIGN;
    if (part->id.len) return OK;
    if (str_starts(url, STR("data:"))) return take_data_url(r, url, part);
    if (!str_starts(url, STR("https://")) && !str_starts(url, STR("http://")))
        return parts_refuse(
            r, "url must begin with http:// or https://, or be one of our attachments");
    if (!url_clean(url))
        return parts_refuse(r,
                            "url has blanks or other signs that must be escaped, or is too long");
    part->url = url;
    return OK;
}

static enum err read_text(const struct parts_reader *r, const struct json *json, struct part *part)
{
    const struct json *text = json_get(json, STR("text"));
    if (!text || text->type != JSON_STRING) return parts_refuse(r, "a text part needs a text");
    part->kind = PART_TEXT;
    part->text = text->text;
    part->text_json = text->raw;
    return OK;
}

static enum err read_binary(const struct parts_reader *r, const struct json *json,
                            struct part *part)
{
    str id, data, url;
    enum err e = take_mime(r, json, part);
    if (e) return e;
    if (!text_of(json, "id", &id) || !text_of(json, "data", &data) || !text_of(json, "url", &url))
        return parts_refuse(r, "id, data and url must be strings");
    if (id.len) {
        if (!id_valid(id)) return parts_refuse(r, "this is no id of an attachment");
        part->kind = PART_OWN;
        part->id = id;
        return OK;
    }
    if (data.len) return take_data(r, data, part);
    if (url.len) return take_url(r, url, part);
    return parts_refuse(r, "a binary part needs an id, data or a url");
}

static enum err read_source(const struct parts_reader *r, const struct json *json,
                            struct part *part)
{
    const struct json *source = json_get(json, STR("source"));
    str type = json_text(json_get(source, STR("type")));
    str value = json_text(json_get(source, STR("value")));
    if (!source || source->type != JSON_OBJECT)
        return parts_refuse(r, "a part of this type needs a source");
    enum err e = take_mime(r, source, part);
    if (e) return e;
    if (!value.len) return parts_refuse(r, "source needs a value");
    if (str_eq(type, STR("data"))) return take_data(r, value, part);
    if (str_eq(type, STR("url"))) return take_url(r, value, part);
    return parts_refuse(r, "source.type must be url or data");
}

static const struct part_type {
    str name;
    enum err (*read)(const struct parts_reader *r, const struct json *json, struct part *part);
} types[] = {
    {STR("text"), read_text},    {STR("binary"), read_binary}, {STR("image"), read_source},
    {STR("audio"), read_source}, {STR("video"), read_source},  {STR("document"), read_source},
};

static enum err read_part(const struct parts_reader *r, const struct json *json, struct part *part)
{
    part->type = json_text(json_get(json, STR("type")));
    if (json->type != JSON_OBJECT || !part->type.len)
        return parts_refuse(r, "a part must be an object with a type");
    for (size_t i = 0; i < COUNT(types); i++) {
        if (!str_eq(part->type, types[i].name)) continue;
        enum err e = types[i].read(r, json, part);
        return e || part->kind == PART_TEXT ? e : take_filename(r, json, part);
    }
    return parts_refuse(r, "type must be text, binary, image, audio, video or document");
}

enum err parts_parse(struct arena *arena, const struct json *list, size_t index,
                     const struct parts_home *home, struct parts *ret_parts, struct fault *reterr)
{
    struct parts parts = {.count = list->count, .index = index};
    parts.rows = arena_array(arena, list->count + 1, sizeof *parts.rows);
    size_t at = 0;
    for (const struct json *json = list->child; json; json = json->next, at++) {
        char path[PART_PATH_BYTES];
        part_path(&parts, at, path);
        struct parts_reader r = {arena, home, path, reterr};
        enum err e = read_part(&r, json, &parts.rows[at]);
        if (e) return e;
        parts.files += parts.rows[at].kind != PART_TEXT;
        if (parts.files > PART_FILES_MAX)
            return fault_field(reterr, ERR_INVALID_FIELD, path, "a message may have %d files",
                               PART_FILES_MAX);
    }
    *ret_parts = parts;
    return OK;
}

enum err parts_of_files(struct arena *arena, str words, const struct sent_file *files, size_t count,
                        struct parts *ret_parts, struct fault *reterr)
{
    struct parts parts = {.rows = arena_array(arena, count + 1, sizeof *parts.rows),
                          .files = count};
    if (count > PART_FILES_MAX)
        return fault_field(reterr, ERR_INVALID_FIELD, "messages[0].content",
                           "a message may have %d files", PART_FILES_MAX);
    if (words.len)
        parts.rows[parts.count++] = (struct part){.kind = PART_TEXT,
                                                  .type = STR("text"),
                                                  .text = words,
                                                  .text_json = text_json(arena, words)};
    for (size_t i = 0; i < count; i++) {
        char path[PART_PATH_BYTES];
        struct part *part = &parts.rows[parts.count];
        part_path(&parts, parts.count++, path);
        *part = (struct part){.kind = PART_DATA,
                              .type = STR("binary"),
                              .data = files[i].bytes,
                              .decoded = true,
                              .mime = files[i].mime,
                              .filename = attachment_name(arena, files[i].name)};
        if (part->mime.len && !mime_valid(&part->mime))
            return fault_field(reterr, ERR_INVALID_FIELD, path,
                               "mimeType must look like \"image/png\"");
    }
    *ret_parts = parts;
    return OK;
}

str parts_plain(struct arena *arena, const struct parts *parts)
{
    size_t len = 0;
    for (size_t i = 0; i < parts->count; i++) len += parts->rows[i].text.len;
    char *joined = arena_alloc(arena, len + 1);
    size_t at = 0;
    for (size_t i = 0; i < parts->count; i++)
        for (size_t j = 0; j < parts->rows[i].text.len; j++)
            joined[at++] = parts->rows[i].text.p[j];
    return (str){joined, len};
}

/* ---- what is stored ---- */

enum { ESCAPE_BYTES_MAX = 6, FRAME_BYTES = 256 };

static void optional(struct json_writer *w, str key, str text)
{
    if (text.len) json_member(w, key, text);
}

static void write_foreign(struct json_writer *w, const struct part *part)
{
    bool binary = str_eq(part->type, STR("binary"));
    if (binary) {
        optional(w, STR("mimeType"), part->mime);
        json_member(w, STR("url"), part->url);
    } else {
        json_key(w, STR("source"));
        json_object(w);
        json_member(w, STR("type"), STR("url"));
        json_member(w, STR("value"), part->url);
        optional(w, STR("mimeType"), part->mime);
        json_object_end(w);
    }
    optional(w, STR("filename"), part->filename);
}

static void write_part(struct json_writer *w, const struct part *part,
                       const struct attachment *file)
{
    json_object(w);
    json_member(w, STR("type"), file ? STR("binary") : part->type);
    if (part->kind == PART_TEXT) {
        json_member_raw(w, STR("text"), part->text_json);
    } else if (part->kind == PART_FOREIGN) {
        write_foreign(w, part);
    } else {
        json_member(w, STR("id"), file->id);
        json_member(w, STR("mimeType"), file->mime);
        optional(w, STR("filename"), file->filename);
    }
    json_object_end(w);
}

static bool listed_before(const struct attachment *const *files, size_t at)
{
    for (size_t i = 0; i < at; i++)
        if (files[i] && str_eq(files[i]->id, files[at]->id)) return true;
    return false;
}

/* The most that content and list can take. */
static size_t bytes_max(const struct parts *parts, const struct attachment *const *files)
{
    size_t bytes = FRAME_BYTES;
    for (size_t i = 0; i < parts->count; i++) {
        const struct part *part = &parts->rows[i];
        bytes += part->text_json.len + FRAME_BYTES;
        bytes += ESCAPE_BYTES_MAX * (part->url.len + part->mime.len + part->filename.len);
        if (files[i])
            bytes +=
                ESCAPE_BYTES_MAX * (files[i]->id.len + files[i]->mime.len + files[i]->filename.len);
    }
    return bytes;
}

static void write_message(struct arena *arena, const struct parts *parts,
                          const struct attachment *const *files, struct message *message)
{
    AUTO(buf_done) struct buf out;
    struct json_writer w;
    size_t listed = 0;
    buf_init(&out, bytes_max(parts, files));
    json_write_begin(&w, &out);
    json_array(&w);
    for (size_t i = 0; i < parts->count; i++) write_part(&w, &parts->rows[i], files[i]);
    json_array_end(&w);
    assert(!out.full);
    message->content = arena_str(arena, buf_str(&out));

    buf_clear(&out);
    json_write_begin(&w, &out);
    json_array(&w);
    for (size_t i = 0; i < parts->count; i++) {
        if (!files[i] || listed_before(files, i)) continue;
        attachment_store(&w, files[i]);
        listed++;
    }
    json_array_end(&w);
    assert(!out.full);
    message->attachments = listed ? arena_str(arena, buf_str(&out)) : STR_EMPTY;
}

/* The row, if it is the owner's. One of another owner is as if it were not there. */
static enum err find_own(struct db *db, struct arena *arena, str id, str owner,
                         const struct attachment **ret_file)
{
    struct attachment *file = ARENA_NEW(arena, struct attachment);
    enum err e = attachment_find(db, arena, id, file);
    if (!e && !str_eq(file->owner, owner)) e = ERR_NOT_FOUND;
    if (!e) *ret_file = file;
    return e;
}

enum err parts_take(struct db *db, struct arena *arena, const struct parts *parts,
                    const struct thread *thread, struct message *message, struct fault *reterr)
{
    const struct attachment **files = arena_array(arena, parts->count + 1, sizeof *files);
    for (size_t i = 0; i < parts->count; i++) {
        const struct part *part = &parts->rows[i];
        enum err e = OK;
        if (part->kind == PART_DATA) files[i] = part->stored;
        if (part->kind == PART_OWN) e = find_own(db, arena, part->id, thread->owner, &files[i]);
        if (e == ERR_NOT_FOUND) {
            char path[PART_PATH_BYTES];
            part_path(parts, i, path);
            return fault_field(reterr, ERR_INVALID_FIELD, path, "there is no attachment \"%.*s\"",
                               STR_ARG(part->id));
        }
        if (!e && part->kind == PART_OWN) e = attachment_use(db, files[i], thread);
        if (e) return e;
    }
    write_message(arena, parts, files, message);
    return OK;
}

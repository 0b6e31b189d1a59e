/* SPDX-License-Identifier: Apache-2.0
 *
 * Files of messages, and the words that tell a model of them. The content of a row says which there
 * are and in which order, its attachments how large ours are (thread/parts.c writes both). A row is
 * parsed only if its content has a part that is no words: our parts begin with their type, and
 * inside a JSON string a quote never stands bare, so a search finds them.
 *
 * To add a kind of text file: a row in texts[]. To add a fate: its words in both languages.
 */
#include "agent/core/files.h"

#include <stdio.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/limits.h"

/* What this file says. */
struct files_words {
    str before, comma, after, colon;
    str file, image, audio, video, document;
    str byte, bytes;
    str fates[FILE_FATES];
    str cut; /* "the first 32 KiB of it" */
};

static const struct files_words words[] = {
    {.before = STR("["),
     .comma = STR(", "),
     .after = STR("]"),
     .colon = STR(": "),
     .file = STR("file"),
     .image = STR("image"),
     .audio = STR("audio"),
     .video = STR("video"),
     .document = STR("document"),
     .byte = STR("byte"),
     .bytes = STR("bytes"),
     .fates = {[FILE_NAMED] = STR(""),
               [FILE_MISSING] = STR("; its content is missing"),
               [FILE_DAMAGED] = STR("; its content is damaged and not shown"),
               [FILE_UNREADABLE] = STR("; its content could not be read"),
               [FILE_NOT_UTF8] = STR("; its text is not in UTF-8 and not shown"),
               [FILE_UNKEPT] = STR("; it could not be kept")},
     .cut = STR("\n[cut here: only the beginning of the file is shown]")},
    {.before = STR("["),
     .comma = STR("，"),
     .after = STR("]"),
     .colon = STR("："),
     .file = STR("文件"),
     .image = STR("图片"),
     .audio = STR("音频"),
     .video = STR("视频"),
     .document = STR("文档"),
     .byte = STR("字节"),
     .bytes = STR("字节"),
     .fates = {[FILE_NAMED] = STR(""),
               [FILE_MISSING] = STR("；内容已丢失"),
               [FILE_DAMAGED] = STR("；内容已损坏，无法显示"),
               [FILE_UNREADABLE] = STR("；内容无法读取"),
               [FILE_NOT_UTF8] = STR("；文本不是 UTF-8 编码，无法显示"),
               [FILE_UNKEPT] = STR("；未能保存")},
     .cut = STR("\n[此处截断：只显示文件开头]")},
};

static const struct files_words *words_of(str locale)
{
    return &words[str_starts(locale, STR("zh"))];
}

/* ---- reading rows ---- */

/* Is there a part that is no words? */
static bool has_files(str content)
{
    static const str part = STR("{\"type\":\"");
    if (!str_starts(content, STR("["))) return false;
    for (str rest = content;;) {
        ptrdiff_t at = str_find(rest, part);
        if (at < 0) return false;
        rest = str_drop(rest, (size_t)at + part.len);
        if (!str_starts(rest, STR("text\""))) return true;
    }
}

static void add_stored(const struct json *stored, struct file *file)
{
    for (const struct json *item = stored ? stored->child : NULL; item; item = item->next) {
        if (!str_eq(json_text(json_get(item, STR("id"))), file->id)) continue;
        uint64_t bytes;
        if (json_u64(json_get(item, STR("size")), &bytes) == OK) file->bytes = bytes;
        return;
    }
}

static struct file file_of(const struct json *part, const struct json *stored)
{
    const struct json *source = json_get(part, STR("source"));
    struct file file = {.type = json_text(json_get(part, STR("type"))),
                        .id = json_text(json_get(part, STR("id"))),
                        .url = json_text(json_get(part, STR("url"))),
                        .mime = json_text(json_get(part, STR("mimeType"))),
                        .filename = json_text(json_get(part, STR("filename")))};
    if (source) file.url = json_text(json_get(source, STR("value")));
    if (source) file.mime = json_text(json_get(source, STR("mimeType")));
    if (file.id.len) add_stored(stored, &file);
    return file;
}

struct file_list files_of(struct arena *arena, const struct message *row)
{
    struct file_list list = {0};
    struct json *parts, *stored = NULL;
    if (!has_files(row->content) || json_parse(arena, row->content, &parts, NULL)) return list;
    if (row->attachments.len && json_parse(arena, row->attachments, &stored, NULL)) stored = NULL;
    list.files = arena_array(arena, parts->count + 1, sizeof *list.files);
    for (const struct json *part = parts->child; part; part = part->next)
        if (!str_eq(json_text(json_get(part, STR("type"))), STR("text")))
            list.files[list.count++] = file_of(part, stored);
    return list;
}

static str name_of(const struct file *file)
{
    if (file->filename.len) return file->filename;
    return file->url.len ? file->url : file->mime;
}

str files_named(struct arena *arena, const struct message *row)
{
    struct file_list list = files_of(arena, row);
    str names = STR_EMPTY;
    for (size_t i = 0; i < list.count; i++) {
        str name = name_of(&list.files[i]);
        names = arena_printf(arena, "%.*s%s%.*s", STR_ARG(names), i ? ", " : "", STR_ARG(name));
    }
    return names;
}

static bool is_one(str mime, const str *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (str_eq_nocase(mime, list[i])) return true;
    return false;
}

bool file_is_picture(const struct file *file)
{
    static const str pictures[] = {STR("image/png"), STR("image/jpeg"), STR("image/gif"),
                                   STR("image/webp")};
    return is_one(file->mime, pictures, COUNT(pictures));
}

bool file_is_text(const struct file *file)
{
    static const str texts[] = {STR("application/json"), STR("application/x-ndjson")};
    return str_starts(file->mime, STR("text/")) || is_one(file->mime, texts, COUNT(texts));
}

/* ---- words ---- */

void file_size(bool chinese, uint64_t bytes, char ret_text[static FILE_SIZE_BYTES])
{
    static const char *const units[] = {"KiB", "MiB", "GiB"};
    if (bytes < 1024) {
        str unit = bytes == 1 ? words[chinese].byte : words[chinese].bytes;
        snprintf(ret_text, FILE_SIZE_BYTES, "%u %.*s", (unsigned)bytes, STR_ARG(unit));
        return;
    }
    size_t step = 0;
    while (step + 1 < COUNT(units) && bytes >= 1024 * 1024) {
        bytes /= 1024;
        step++;
    }
    uint64_t whole = bytes / 1024, tenth = bytes % 1024 * 10 / 1024;
    snprintf(ret_text, FILE_SIZE_BYTES, "%llu.%llu %s", (unsigned long long)whole,
             (unsigned long long)tenth, units[step]);
}

/* What an address elsewhere leads to, as far as the client says. */
static str kind_of(const struct files_words *w, const struct file *file)
{
    const struct {
        str type, mime, word;
    } rows[] = {{STR("image"), STR("image/"), w->image},
                {STR("audio"), STR("audio/"), w->audio},
                {STR("video"), STR("video/"), w->video},
                {STR("document"), STR("-"), w->document}};
    for (size_t i = 0; i < COUNT(rows); i++)
        if (str_eq(file->type, rows[i].type) || str_starts(file->mime, rows[i].mime))
            return rows[i].word;
    return w->file;
}

str file_line(struct arena *arena, str locale, const struct file *file, enum file_fate fate)
{
    const struct files_words *w = words_of(locale);
    if (!file->id.len)
        return arena_printf(arena, "%.*s%.*s%.*s%.*s%.*s", STR_ARG(w->before),
                            STR_ARG(kind_of(w, file)), STR_ARG(w->colon), STR_ARG(file->url),
                            STR_ARG(w->after));
    char size[FILE_SIZE_BYTES];
    file_size(w == &words[1], file->bytes, size);
    return arena_printf(arena, "%.*s%.*s%.*s%.*s%.*s%.*s%.*s%s%.*s%.*s", STR_ARG(w->before),
                        STR_ARG(w->file), STR_ARG(w->colon), STR_ARG(file->filename),
                        STR_ARG(file->filename.len ? w->comma : STR_EMPTY), STR_ARG(file->mime),
                        STR_ARG(w->comma), size, STR_ARG(w->fates[fate]), STR_ARG(w->after));
}

/* One sign more than the longest row of them in the text. */
static size_t fence_of(str text)
{
    size_t longest = 2, now = 0;
    for (size_t i = 0; i < text.len; i++) {
        now = text.p[i] == '`' ? now + 1 : 0;
        if (now > longest) longest = now;
    }
    return longest + 1;
}

static void put_fence(struct buf *out, size_t len)
{
    for (size_t i = 0; i < len; i++) buf_char(out, '`');
}

str file_block(struct arena *arena, str locale, const struct file *file, str bytes, size_t max)
{
    str text = bytes;
    if (str_starts(text, STR("\xef\xbb\xbf"))) text = str_drop(text, 3);
    bool cut = text.len > max;
    if (cut) {
        text.len = max;
        while (text.len && ((unsigned char)text.p[text.len] & 0xc0) == 0x80) text.len--;
    }
    if (!utf8_valid(text)) return file_line(arena, locale, file, FILE_NOT_UTF8);
    size_t fence = fence_of(text);
    str line = file_line(arena, locale, file, FILE_NAMED);
    AUTO(buf_done) struct buf out;
    buf_init(&out, line.len + text.len + 2 * fence + 256);
    buf_append(&out, line);
    buf_char(&out, '\n');
    put_fence(&out, fence);
    buf_char(&out, '\n');
    buf_append(&out, text);
    if (!str_ends(text, STR("\n"))) buf_char(&out, '\n');
    put_fence(&out, fence);
    if (cut) buf_append(&out, words_of(locale)->cut);
    assert(!out.full);
    return arena_str(arena, buf_str(&out));
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Long answers of HTTP tools on their way to the spool, read as they pass by.
 *
 *     bytes ──▶ scan ──▶ stream        what has been said is known at the end; then
 *
 *     JSON     keep the stretch that is the result ──▶ read its ends ──────────────────▶ told
 *     text     keep all of it ──▶ write it anew, quoted, piece by piece ──▶ read its ends ──▶ told
 *     bytes    keep nothing ───────────────────────────────────────────────────────────▶ told
 *
 * What stands in the answer beside its result is kept in memory as it passes: of `content` both ends,
 * of `error` the beginning, `ui_hints` if they are short enough to be used.
 *
 * A document has to stand on one line: line ends between its tokens become spaces before they are
 * written. Where a document turns out to be none after its first CALL_INLINE_BYTES_MAX, those spaces
 * stay, and the rest is kept as the text that it is.
 *
 * Invariants:
 * 1. Offsets of the scan are offsets of the stream: a byte order mark goes to neither.
 * 2. While `working`, a thread has arena, path, in, out and `read`; an answer aborted meanwhile is
 *    freed when it comes back, and touches neither spool nor loop until then.
 * 3. `stream` or `file` says what is on disk, and whoever is aborted leaves neither.
 */
#include "tool/http_long.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json_scan.h"
#include "base/limits.h"
#include "base/mem.h"
#include "net/loop.h"
#include "tool/http_result.h"
#include "tool/spool.h"
#include "tool/tools.h"
#include "tool/value.h"

enum {
    PIECE_BYTES = 16 * 1024,     /* looked at in one go: what libcurl hands out */
    QUOTE_BYTES = 64 * 1024,     /* of text, quoted in one go */
    ERROR_BYTES_MAX = 64 * 1024, /* of an error that is no string, to find its words */
    CARRY_BYTES = 3,             /* of a character that is not whole yet */
    ENDS_BYTES = CALL_MODEL_BYTES_MAX,
};

/* The beginning of something that passes, and how long it was. */
struct kept {
    struct buf head;
    uint64_t bytes;
};

struct http_long {
    struct loop *loop;
    struct spool *spool;
    const struct http_long_ops *ops;
    void *arg;
    struct arena arena;
    str name, locale;
    struct spool_stream *stream; /* NULL: none is open */
    bool file;                   /* there is one of that name */
    bool quoting;                /* it is being written anew */

    /* what is known of it so far */
    bool begun;
    struct json_scan scan;
    bool refused; /* it is no JSON */
    bool broken;  /* nor text */
    char carry[CARRY_BYTES];
    size_t carry_len;
    uint64_t bytes;         /* without a byte order mark */
    bool blank;             /* nothing but space */
    uint64_t first, behind; /* what stands between the space around it */
    struct http_shape shape;
    unsigned seen;       /* parts, as bits */
    enum http_part part; /* the member that passes */
    struct json_scan_value values[PART_OTHER];
    struct kept content, error, hints;
    struct buf tail; /* of content */

    struct loop_work work;
    bool working, left;
    const char *path;
    uint64_t file_bytes, at; /* of the file; how much of it is quoted */
    uint64_t quoted;         /* bytes written anew */
    struct buf in, out;
    enum err read;

    enum tool_end end;
    struct tool_result result;
};

/* ---- the end of it ---- */

static void free_answer(struct http_long *answer)
{
    buf_done(&answer->content.head);
    buf_done(&answer->error.head);
    buf_done(&answer->hints.head);
    buf_done(&answer->tail);
    buf_done(&answer->in);
    buf_done(&answer->out);
    arena_done(&answer->arena);
    free(answer);
}

static void tell(struct http_long *answer)
{
    answer->ops->on_end(answer->arg, answer->end, &answer->result);
    free_answer(answer);
}

/* Leave nothing on disk. */
static void drop(struct http_long *answer)
{
    if (answer->stream) spool_stream_abort(TAKE(answer->stream));
    if (answer->file) spool_remove(answer->spool, answer->name, NULL, NULL);
    answer->file = false;
}

/* The call happened, and what came back is gone: better said than asked for a second time. */
static void tell_unkept(struct http_long *answer, enum err e)
{
    struct tool_result *result = &answer->result;
    bool zh = tool_locale_zh(answer->locale);
    drop(answer);
    result->unkept = e;
    result->content = arena_printf(
        &answer->arena,
        zh ? "%.*s%s工具返回了 %llu 字节，但服务器没能保存，因此没有保留。"
           : "%.*s%sThe tool answered with %llu bytes, which the server could not keep.",
        STR_ARG(result->content), result->content.len ? "\n" : "",
        (unsigned long long)answer->bytes);
    tell(answer);
}

void http_long_abort(struct http_long *answer)
{
    drop(answer);
    answer->left = true;
    if (!answer->working) free_answer(answer);
}

/* ---- the file, read beside the loop ---- */

static enum err read_file(struct http_long *answer, uint64_t from, size_t len)
{
    AUTO(fd_closep) int fd = open(answer->path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) return ERR_IO;
    char *bytes = buf_room(&answer->in, len);
    if (!bytes) return ERR_TOO_LARGE;
    if (file_read_at(fd, bytes, len, from) < len) return ERR_IO;
    buf_added(&answer->in, len);
    return OK;
}

static void on_worked(struct loop_work *work);

static void begin_work(struct http_long *answer, void (*fn)(struct loop_work *work))
{
    answer->working = true;
    answer->work = (struct loop_work){fn, on_worked};
    loop_work(answer->loop, &answer->work);
}

/* All of a short file; of a long one its head, then its tail. */
static void read_ends(struct loop_work *work)
{
    struct http_long *answer = CONTAINER(work, struct http_long, work);
    uint64_t bytes = answer->file_bytes;
    buf_done(&answer->in);
    buf_init(&answer->in, CALL_INLINE_BYTES_MAX);
    if (bytes <= CALL_INLINE_BYTES_MAX) {
        answer->read = read_file(answer, 0, (size_t)bytes);
        return;
    }
    answer->read = read_file(answer, 0, ENDS_BYTES);
    if (!answer->read) answer->read = read_file(answer, bytes - ENDS_BYTES, ENDS_BYTES);
}

/* As it is, in memory: text is read like any other answer of this length. */
static void take_short(struct http_long *answer)
{
    struct tool_result *result = &answer->result;
    str all = buf_str(&answer->in);
    drop(answer);
    if (answer->refused) {
        struct http_reply reply = {200, answer->in.p, answer->in.len, answer->locale};
        answer->end = http_result_read(&answer->arena, &reply, result);
    } else {
        result->result = all;
    }
    tell(answer);
}

static void take_ends(struct http_long *answer)
{
    struct tool_result *result = &answer->result;
    str head = {answer->in.p, ENDS_BYTES}, tail = {answer->in.p + ENDS_BYTES, ENDS_BYTES};
    if (answer->refused && !answer->quoting) { /* too long to be quoted */
        struct tool_ends text = {head, tail, answer->file_bytes};
        result->content =
            tool_ends_cut(&answer->arena, &text, TOOL_CONTENT_BYTES_MAX, answer->locale);
        drop(answer);
    } else {
        result->spooled = true;
        result->result_bytes = answer->file_bytes;
        result->result_head = head;
        result->result_tail = tail;
    }
    tell(answer);
}

/* ---- text, written anew as a JSON string ---- */

static void on_file(void *arg, enum err e, const struct spool_file *file,
                    const struct fault *reason);

/* Characters stay whole; the file is valid UTF-8. */
static void quote_piece(struct loop_work *work)
{
    struct http_long *answer = CONTAINER(work, struct http_long, work);
    uint64_t left = answer->file_bytes - answer->at;
    size_t len = left < QUOTE_BYTES ? (size_t)left : QUOTE_BYTES;
    struct json_writer w;
    buf_clear(&answer->in);
    buf_clear(&answer->out);
    answer->read = read_file(answer, answer->at, len);
    if (answer->read) return;
    str text = buf_str(&answer->in);
    if (len < left) {
        size_t end = text.len;
        while (((unsigned char)text.p[end - 1] & 0xc0) == 0x80) end--;
        if ((unsigned char)text.p[end - 1] >= 0xc0) text.len = end - 1; /* perhaps it was whole */
    }
    json_write_begin(&w, &answer->out);
    json_string(&w, text);
    answer->at += text.len;
}

static void quote_more(struct http_long *answer)
{
    if (answer->working || answer->at == answer->file_bytes) return;
    if (spool_stream_full(answer->stream)) return;
    begin_work(answer, quote_piece);
}

static void take_quoted(struct http_long *answer)
{
    bool first = answer->quoted == 0, last = answer->at == answer->file_bytes;
    str out = buf_str(&answer->out); /* its quotes stand only at the ends of all */
    if (!first) out = str_drop(out, 1);
    if (!last) out.len--;
    answer->quoted += out.len;
    if (answer->quoted > TOOL_RESULT_BYTES_MAX) {
        if (answer->stream) spool_stream_abort(TAKE(answer->stream));
        answer->quoting = false;
        begin_work(answer, read_ends);
        return;
    }
    spool_stream_write(answer->stream, out);
    if (last)
        spool_stream_end(answer->stream, 0, UINT64_MAX, on_file, answer);
    else
        quote_more(answer);
}

/* ---- back on the loop ---- */

static void on_drained(void *arg)
{
    struct http_long *answer = arg;
    if (answer->quoting)
        quote_more(answer);
    else
        answer->ops->on_drained(answer->arg);
}

static void on_worked(struct loop_work *work)
{
    struct http_long *answer = CONTAINER(work, struct http_long, work);
    answer->working = false;
    if (answer->left)
        free_answer(answer);
    else if (answer->read)
        tell_unkept(answer, answer->read);
    else if (work->fn == quote_piece)
        take_quoted(answer);
    else if (answer->file_bytes <= CALL_INLINE_BYTES_MAX)
        take_short(answer);
    else
        take_ends(answer);
}

/* The file is there: what JSON kept, text as it came, or text quoted. */
static void on_file(void *arg, enum err e, const struct spool_file *file,
                    const struct fault *reason)
{
    struct http_long *answer = arg;
    (void)reason;
    answer->stream = NULL;
    if (e) {
        tell_unkept(answer, e);
        return;
    }
    answer->file = true;
    answer->file_bytes = file->bytes;
    memcpy(answer->result.result_hash, file->hash, sizeof file->hash);
    answer->path = spool_path(answer->spool, &answer->arena, answer->name);
    bool text = answer->refused && !answer->quoting;
    if (!text || file->bytes <= CALL_INLINE_BYTES_MAX) {
        begin_work(answer, read_ends);
        return;
    }
    answer->stream = spool_stream_new(answer->spool, answer->name, on_drained, answer);
    answer->quoting = true;
    buf_init(&answer->in, QUOTE_BYTES);
    buf_init(&answer->out, 6 * QUOTE_BYTES + 2);
    begin_work(answer, quote_piece);
}

/* ---- bytes that pass ---- */

static void http_long_keep(struct kept *kept, str bytes)
{
    size_t room = kept->head.max - kept->head.len;
    kept->bytes += bytes.len;
    if (bytes.len > room) bytes.len = room;
    buf_append(&kept->head, bytes);
}

/* Decoded, of a member that is a string. */
static void on_text(void *arg, str piece)
{
    struct http_long *answer = arg;
    if (answer->part == PART_ERROR) http_long_keep(&answer->error, piece);
    if (answer->part != PART_CONTENT) return;
    http_long_keep(&answer->content, piece);
    struct buf *tail = &answer->tail;
    if (piece.len > ENDS_BYTES) piece = str_drop(piece, piece.len - ENDS_BYTES);
    if (tail->len + piece.len > tail->max) buf_drop(tail, tail->len - ENDS_BYTES);
    buf_append(tail, piece);
}

static void begin_member(struct http_long *answer)
{
    const struct json_scan *scan = &answer->scan;
    enum http_part part = scan->key_cut ? PART_OTHER : http_part_of(json_scan_key(scan));
    if (answer->seen >> part & 1) part = PART_OTHER; /* again, where the scan has forgotten it */
    http_shape_add(&answer->shape, part, scan->member.type);
    answer->part = part;
    if (part == PART_OTHER) return;
    answer->seen |= 1U << part;
    answer->values[part] = scan->member;
}

/* Returns what the scan has refused, with all behind it. */
static str scan_piece(struct http_long *answer, str piece)
{
    for (str rest = piece; rest.len;) {
        str before = rest;
        enum json_scan_mark mark = json_scan_next(&answer->scan, &rest);
        /* What is no string is kept as it stands there; strings come decoded, to on_text. */
        str raw = {before.p, before.len - rest.len};
        bool string = answer->scan.member.type == JSON_STRING;
        if (answer->part == PART_ERROR && !string) http_long_keep(&answer->error, raw);
        if (answer->part == PART_HINTS) http_long_keep(&answer->hints, raw);
        if (mark == JSON_SCAN_BEGIN) begin_member(answer);
        if (mark == JSON_SCAN_END) {
            if (answer->part != PART_OTHER) answer->values[answer->part] = answer->scan.member;
            answer->part = PART_OTHER;
        }
        if (mark != JSON_SCAN_REFUSED) continue;
        answer->refused = true;
        answer->broken = answer->scan.broken_char;
        return rest;
    }
    return STR_EMPTY;
}

/* The part of the piece that belongs to the document. */
static void put_on_one_line(const struct http_long *answer, char *piece, size_t len)
{
    const struct json_scan *scan = &answer->scan;
    uint64_t start = answer->bytes, from = scan->document.from, to = start + len;
    if (!scan->begun) return;
    if (scan->ended && scan->document.to < to) to = scan->document.to;
    if (from < start) from = start;
    if (from < to) value_one_line(piece + (from - start), (size_t)(to - from));
}

/* What is no JSON: is it text? There is room for the carry in front of it. */
static void check_text(struct http_long *answer, char *bytes, size_t len)
{
    if (answer->broken) return;
    char *start = bytes - answer->carry_len, *end = bytes + len;
    memcpy(start, answer->carry, answer->carry_len);
    answer->broken = memchr(bytes, '\0', len) != NULL;
    const char *at = start;
    for (const char *next = at; at < end; at = next) {
        next = utf8_skip(at, end);
        while (next < end && (unsigned char)*next < 0x80) next++;
        if (next == at) break;
    }
    answer->carry_len = (size_t)(end - at);
    if (answer->carry_len > CARRY_BYTES) answer->broken = true;
    if (!answer->broken) memcpy(answer->carry, at, answer->carry_len);
}

static void find_space(struct http_long *answer, str piece)
{
    size_t first = 0, behind = piece.len;
    while (first < piece.len && strchr(" \t\r\n", piece.p[first]) && piece.p[first]) first++;
    if (first == piece.len) return;
    while (strchr(" \t\r\n", piece.p[behind - 1]) && piece.p[behind - 1]) behind--;
    if (answer->blank) answer->first = answer->bytes + first;
    answer->blank = false;
    answer->behind = answer->bytes + behind;
}

void http_long_add(struct http_long *answer, str bytes)
{
    char room[CARRY_BYTES + PIECE_BYTES], *piece = room + CARRY_BYTES;
    if (!answer->begun && str_starts(bytes, STR("\xef\xbb\xbf"))) bytes = str_drop(bytes, 3);
    answer->begun = true;
    while (bytes.len) {
        size_t len = bytes.len < PIECE_BYTES ? bytes.len : PIECE_BYTES;
        memcpy(piece, bytes.p, len);
        bytes = str_drop(bytes, len);
        str no_json = {piece, len};
        if (!answer->refused) no_json = scan_piece(answer, no_json);
        if (answer->refused)
            check_text(answer, piece + (len - no_json.len), no_json.len);
        else
            put_on_one_line(answer, piece, len);
        find_space(answer, (str){piece, len});
        answer->bytes += len;
        if (answer->broken)
            drop(answer);
        else
            spool_stream_write(answer->stream, (str){piece, len});
    }
}

bool http_long_full(const struct http_long *answer)
{
    return answer->stream && spool_stream_full(answer->stream);
}

/* ---- what it was ---- */

/* The words of `error`, if it is one. */
static bool find_error(struct http_long *answer, str *ret_words)
{
    struct kept *error = &answer->error;
    const struct json_scan_value *value = &answer->values[PART_ERROR];
    struct json *json = NULL;
    str raw = buf_str(&error->head);
    if (value->type == JSON_STRING) {
        struct json string = {.type = JSON_STRING, .text = raw};
        return http_error_words(&answer->arena, &string, ret_words);
    }
    if (!raw.len) return false; /* there was none */
    value_one_line(error->head.p, error->head.len);
    if (error->bytes == raw.len && json_parse(&answer->arena, raw, &json, NULL) == OK)
        return http_error_words(&answer->arena, json, ret_words);
    /* too long to look for words in it */
    *ret_words = arena_str(&answer->arena, tool_text_head(raw, HTTP_WORDS_BYTES_MAX));
    return true;
}

/* What people read. Returns true if it is too long for that, and has to be the result. */
static bool take_content(struct http_long *answer, bool result_too)
{
    const struct kept *content = &answer->content;
    struct tool_ends text = {buf_str(&content->head), STR_EMPTY, content->bytes};
    if (content->bytes > TOOL_CONTENT_BYTES_MAX) {
        if (!result_too) return true;
        size_t tail = content->bytes - text.head.len < ENDS_BYTES
                          ? (size_t)(content->bytes - text.head.len)
                          : ENDS_BYTES;
        text.tail = str_drop(buf_str(&answer->tail), answer->tail.len - tail);
    }
    answer->result.content =
        tool_ends_cut(&answer->arena, &text, TOOL_CONTENT_BYTES_MAX, answer->locale);
    return false;
}

/* Of an answer in our form: which stretch of it is the result; NULL: it has none. */
static const struct json_scan_value *take_parts(struct http_long *answer)
{
    struct kept *hints = &answer->hints;
    bool has_hints = answer->values[PART_HINTS].type == JSON_OBJECT;
    if (has_hints && hints->bytes == hints->head.len) {
        value_one_line(hints->head.p, hints->head.len);
        answer->result.ui_hints = buf_str(&hints->head);
    }
    bool result = answer->seen >> PART_RESULT & 1;
    if (take_content(answer, result)) return &answer->values[PART_CONTENT];
    return result ? &answer->values[PART_RESULT] : NULL;
}

void http_long_end(struct http_long *answer)
{
    if (!answer->refused && json_scan_finish(&answer->scan)) {
        answer->refused = true;
        answer->broken = answer->scan.broken_char;
    }
    answer->broken = answer->broken || answer->carry_len;
    uint64_t from = answer->first, to = answer->behind;
    bool envelope = answer->scan.document.type == JSON_OBJECT && http_shape_fits(&answer->shape);
    if (!answer->refused) {
        const struct json_scan_value *value =
            envelope ? take_parts(answer) : &answer->scan.document;
        if (envelope && find_error(answer, &answer->result.error)) answer->end = TOOL_FAILED;
        from = value ? value->from : 0;
        to = value ? value->to : 0;
    } else if (answer->broken) {
        answer->result.content = http_bytes_notice(&answer->arena, to - from, answer->locale);
        to = from;
    }
    if (from < to) {
        spool_stream_end(answer->stream, from, to - from, on_file, answer);
        return;
    }
    drop(answer);
    tell(answer);
}

struct http_long *http_long_new(struct loop *loop, struct spool *spool, str name, str locale,
                                const struct http_long_ops *ops, void *arg)
{
    struct http_long *answer = mem_new(sizeof *answer);
    answer->loop = loop;
    answer->spool = spool;
    answer->ops = ops;
    answer->arg = arg;
    answer->blank = true;
    answer->part = PART_OTHER;
    arena_init(&answer->arena);
    answer->name = arena_str(&answer->arena, name);
    answer->locale = arena_str(&answer->arena, locale);
    json_scan_init(&answer->scan, on_text, answer);
    buf_init(&answer->content.head, TOOL_CONTENT_BYTES_MAX);
    buf_init(&answer->error.head, ERROR_BYTES_MAX);
    buf_init(&answer->hints.head, TOOL_HINTS_BYTES_MAX);
    buf_init(&answer->tail, 2 * ENDS_BYTES);
    answer->stream = spool_stream_new(spool, name, on_drained, answer);
    return answer;
}

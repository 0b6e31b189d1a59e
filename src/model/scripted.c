/* SPDX-License-Identifier: Apache-2.0
 *
 * The scripted model: the script is read once, a request picks a turn of it, the player plays it.
 * For tests, demonstrations and benchmarks. What it was asked may be kept too: one line of JSON for
 * each request, in a file that a test reads.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/crypto.h"
#include "base/json.h"
#include "base/limits.h"
#include "model/model.h"
#include "model/script.h"

struct scripted {
    struct loop *loop;
    struct script *script; /* NULL: the demo's, not needed yet */
    int log;               /* -1: none */
};

static const struct play no_line = {
    .chunk = 1,
    .end = MODEL_FAILED,
    .why = &(const struct fault){.err = ERR_INTERNAL,
                                 .text = "no line of the script matches the last user message"},
};

static const struct play no_log = {
    .chunk = 1,
    .end = MODEL_FAILED,
    .why = &(const struct fault){.err = ERR_INTERNAL,
                                 .text = "the request could not be written to the script log"},
};

/* ---- what was asked ---- */

/* A picture by its hash: its bytes would make the log useless to read. */
static void write_images(struct json_writer *w, const struct model_message *message)
{
    json_key(w, STR("images"));
    json_array(w);
    for (size_t i = 0; i < message->image_count; i++) {
        const struct model_image *image = &message->images[i];
        unsigned char hash[HASH_BYTES];
        char hex[HASH_HEX_BYTES];
        crypto_sha256(image->bytes, hash);
        crypto_hex((str){(const char *)hash, HASH_BYTES}, hex);
        json_object(w);
        json_member(w, STR("mimeType"), image->mime);
        json_member(w, STR("filename"), image->filename);
        json_member_u64(w, STR("size"), image->bytes.len);
        json_member(w, STR("sha256"), str_c(hex));
        json_object_end(w);
    }
    json_array_end(w);
}

static void write_message(struct json_writer *w, const struct model_message *message)
{
    json_object(w);
    json_member(w, STR("role"), message->role);
    json_member(w, STR("text"), message->text);
    if (message->tool_calls.len) {
        json_member_raw(w, STR("toolCalls"), message->tool_calls);
    }
    if (message->tool_call_id.len) json_member(w, STR("toolCallId"), message->tool_call_id);
    if (message->image_count) write_images(w, message);
    json_object_end(w);
}

static void write_request(struct json_writer *w, const struct model_request *request)
{
    json_object(w);
    json_member_u64(w, STR("round"), request->round);
    json_member(w, STR("system"), request->system);
    json_key(w, STR("messages"));
    json_array(w);
    for (size_t i = 0; i < request->count; i++) write_message(w, &request->messages[i]);
    json_array_end(w);
    json_member_raw(w, STR("tools"), request->tools.len ? request->tools : STR("[]"));
    json_member(w, STR("locale"), request->locale);
    json_object_end(w);
}

/* The most that the line of a request can take. */
static size_t line_bytes_max(const struct model_request *request)
{
    enum { ESCAPE_BYTES_MAX = 6, FRAME_BYTES = 128 };
    size_t texts = request->system.len + request->locale.len, raw = request->tools.len;
    for (size_t i = 0; i < request->count; i++) {
        const struct model_message *m = &request->messages[i];
        texts += m->role.len + m->text.len + m->tool_call_id.len;
        raw += m->tool_calls.len + FRAME_BYTES;
        for (size_t j = 0; j < m->image_count; j++) {
            texts += m->images[j].mime.len + m->images[j].filename.len;
            raw += FRAME_BYTES + HASH_HEX_BYTES;
        }
    }
    return ESCAPE_BYTES_MAX * texts + raw + FRAME_BYTES;
}

/* All of it, in one write where the system allows. */
static bool append(int fd, str line)
{
    while (line.len) {
        ssize_t done = write(fd, line.p, line.len);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) return false;
        line = str_drop(line, (size_t)done);
    }
    return true;
}

static bool log_request(int fd, const struct model_request *request)
{
    AUTO(json_doc_done) struct json_doc doc;
    json_doc_open(&doc, line_bytes_max(request));
    write_request(&doc.w, request);
    buf_char(&doc.buf, '\n');
    assert(!doc.buf.full);
    return append(fd, buf_str(&doc.buf));
}

/* ---- what is answered ---- */

/* The demo stands in for a model that was not configured, and parsed it takes 200 KB: so it is when
 * somebody first asks. On the loop. */
static const struct script *script_of(struct scripted *model)
{
    struct fault fault;
    if (!model->script && script_parse("demo.script", demo_script, &model->script, &fault))
        abort(); /* the file is ours, and a test reads it */
    return model->script;
}

static struct model_call *scripted_start(void *self, const struct model_request *request,
                                         const struct model_sink *sink, void *arg)
{
    struct scripted *model = self;
    if (model->log >= 0 && !log_request(model->log, request))
        return player_start(model->loop, &no_log, NULL, sink, arg);
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    struct play play;
    if (!script_answer(script_of(model), request, &arena, &play))
        return player_start(model->loop, &no_line, NULL, sink, arg);
    struct model_usage *usage = &play.usage, counted = {0};
    if (usage->input_tokens == SCRIPT_COUNTED || usage->output_tokens == SCRIPT_COUNTED)
        counted = player_usage(request, play.pieces, play.count);
    if (usage->input_tokens == SCRIPT_COUNTED) usage->input_tokens = counted.input_tokens;
    if (usage->output_tokens == SCRIPT_COUNTED) usage->output_tokens = counted.output_tokens;
    play.round = request->round;
    return player_start(model->loop, &play, &arena, sink, arg);
}

static void scripted_free(void *self)
{
    struct scripted *model = self;
    if (model->log >= 0) close(model->log);
    script_free(model->script);
    free(model);
}

static const struct model_ops scripted_ops = {
    .start = scripted_start,
    .cancel = player_cancel,
    .free = scripted_free,
};

/* ---- making one ---- */

static void fd_close(const int *fd)
{
    if (*fd >= 0) close(*fd);
}

/* The whole file; `text` has room for one byte more than is allowed. */
static enum err read_file(const char *path, struct buf *text, struct fault *reterr)
{
    enum { READ_BYTES = 64 * 1024 };
    AUTO(fd_close) int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : 1;
    while (got > 0 && text->len < text->max) {
        size_t left = text->max - text->len, want = left < READ_BYTES ? left : READ_BYTES;
        do got = read(fd, buf_room(text, want), want);
        while (got < 0 && errno == EINTR);
        if (got > 0) buf_added(text, (size_t)got);
    }
    if (got < 0) return fault(reterr, ERR_CONFIG, "%s: cannot be read: %s", path, strerror(errno));
    if (text->len == text->max)
        return fault(reterr, ERR_CONFIG, "%s: larger than %zu bytes", path, text->max - 1);
    return OK;
}

static void take(struct loop *loop, struct script *script, int log, const char *name,
                 struct model *ret_model)
{
    struct scripted *model = malloc(sizeof *model);
    if (!model) abort();
    *model = (struct scripted){loop, script, log};
    *ret_model = (struct model){.ops = &scripted_ops,
                                .self = model,
                                .provider = name,
                                .name = name,
                                .images = true,
                                .retry_ms = RUN_RETRY_MS};
}

enum err model_scripted(struct loop *loop, const char *path, const char *log,
                        struct model *ret_model, struct fault *reterr)
{
    AUTO(buf_done) struct buf text;
    buf_init(&text, SCRIPT_BYTES_MAX + 1);
    struct script *script = NULL;
    int fd = -1;
    enum err e = read_file(path, &text, reterr);
    if (!e) e = script_parse(path, buf_str(&text), &script, reterr);
    if (!e && log) {
        /* Conversations: nobody else may read them. */
        fd = open(log, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
        if (fd < 0)
            e = fault(reterr, ERR_CONFIG, "%s: cannot be written: %s", log, strerror(errno));
    }
    if (e) {
        script_free(script);
        return e;
    }
    take(loop, script, fd, "scripted", ret_model);
    return OK;
}

/* ---- the demo ---- */

void model_demo(struct loop *loop, struct model *ret_model)
{
    take(loop, NULL, -1, "demo", ret_model);
}

str model_starter(const struct model *model, size_t index, bool chinese)
{
    return model->ops == &scripted_ops ? script_starter(script_of(model->self), index, chinese)
                                       : STR_EMPTY;
}

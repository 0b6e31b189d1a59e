/* SPDX-License-Identifier: Apache-2.0
 *
 * The scripted model: the script is read once, a request picks a turn of it, the player plays it.
 * For tests, demonstrations and benchmarks.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/limits.h"
#include "model/model.h"
#include "model/script.h"

struct scripted {
    struct loop *loop;
    struct script *script;
};

static const struct play no_line = {
    .chunk = 1,
    .end = MODEL_FAILED,
    .why = &(const struct fault){.err = ERR_INTERNAL,
                                 .text = "no line of the script matches the last user message"},
};

static bool fails(struct script_turn *turn)
{
    if (turn->failures == turn->failures_max) return false;
    if (turn->failures_max != UINT32_MAX) turn->failures++;
    return true;
}

static struct model_call *scripted_start(void *self, const struct model_request *request,
                                         const struct model_sink *sink, void *arg)
{
    const struct scripted *model = self;
    struct script_turn *turn =
        script_turn(model->script, player_last_user(request), request->round);
    if (!turn) return player_start(model->loop, &no_line, NULL, sink, arg);

    struct play play = fails(turn) ? turn->failing : turn->play;
    struct model_usage counted = player_usage(request, play.pieces, play.count);
    struct model_usage *usage = &play.usage;
    if (usage->input_tokens == SCRIPT_COUNTED) usage->input_tokens = counted.input_tokens;
    if (usage->output_tokens == SCRIPT_COUNTED) usage->output_tokens = counted.output_tokens;
    play.round = request->round;
    return player_start(model->loop, &play, NULL, sink, arg);
}

static void scripted_free(void *self)
{
    struct scripted *model = self;
    script_free(model->script);
    free(model);
}

static const struct model_ops scripted_ops = {
    .start = scripted_start,
    .cancel = player_cancel,
    .free = scripted_free,
};

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

enum err model_scripted(struct loop *loop, const char *path, struct model *ret_model,
                        struct fault *reterr)
{
    AUTO(buf_done) struct buf text;
    buf_init(&text, SCRIPT_BYTES_MAX + 1);
    struct script *script;
    enum err e = read_file(path, &text, reterr);
    if (!e) e = script_parse(path, buf_str(&text), &script, reterr);
    if (e) return e;

    struct scripted *model = malloc(sizeof *model);
    if (!model) abort();
    *model = (struct scripted){loop, script};
    *ret_model = (struct model){&scripted_ops, model, "scripted"};
    return OK;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Answers from files, read beside the loop.
 *
 * The head says how long the answer is. Then pieces are read beside the loop and written as the
 * client takes them: while one piece waits for the client, the next is read, and there are no more
 * than these two. To the connection this is a stream (http_int.h) that ends by itself.
 *
 *      read beside the loop          on_read          written
 *   FREE ───────────────▶ READING ──────────▶ FULL ───────────▶ FREE     for each of two places
 *
 * 1. One read is under way at a time, so pieces become full in the order of the file. They are
 *    sent in that order, from `first`.
 * 2. The descriptor and the places belong to `struct served_file`. It lives until both the connection and
 *    the read under way have let go of it.
 * 3. A byte of the file that cannot be had resets the connection: the client sees that its answer
 *    is not whole.
 */
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "net/http_conn.h"
#include "net/http_int.h"

struct http_file_piece {
    char *bytes; /* HTTP_FILE_PIECE_BYTES, made when first needed */
    size_t len;  /* read and not yet sent; 0: free */
};

struct served_file {
    struct loop_work work;
    struct loop *loop;
    struct http_conn *conn;    /* NULL once it has gone, or has the whole answer */
    struct http_charge charge; /* for the two pieces */
    int fd;
    uint64_t at, left; /* to be read */
    struct http_file_piece pieces[2];
    unsigned first; /* the piece to be sent next */
    bool sending;   /* the socket has it */
    bool reading;
    struct http_file_piece *target; /* of the read under way */
    size_t wanted;                  /* likewise */
    bool failed;                    /* likewise */
    void (*on_closed)(void *arg);
    void *closed_arg;
};

/* Goes when nobody holds it any more. */
static void file_release(struct served_file *file)
{
    if (file->conn || file->reading) return;
    close(file->fd);
    charge_drop(&file->charge);
    if (file->on_closed) file->on_closed(file->closed_arg);
    for (size_t i = 0; i < COUNT(file->pieces); i++) free(file->pieces[i].bytes);
    free(file);
}

/* ---- reading ---- */

/* Beside the loop. Fewer bytes: the file is broken, or shorter than it was. */
static void read_piece(struct loop_work *work)
{
    struct served_file *file = CONTAINER(work, struct served_file, work);
    file->failed =
        file_read_at(file->fd, file->target->bytes, file->wanted, file->at) < file->wanted;
}

static void pump(struct served_file *file);

static void on_read(struct loop_work *work)
{
    struct served_file *file = CONTAINER(work, struct served_file, work);
    file->reading = false;
    if (file->failed && file->conn) http_stream_cut(TAKE(file->conn));
    if (!file->conn) {
        file_release(file);
        return;
    }
    file->target->len = file->wanted;
    file->at += file->wanted;
    file->left -= file->wanted;
    pump(file);
}

/* Read the next piece if there is one and a place for it. */
static void read_next(struct served_file *file)
{
    if (file->reading || file->left == 0) return;
    unsigned place = file->pieces[file->first].len ? !file->first : file->first;
    struct http_file_piece *piece = &file->pieces[place];
    if (piece->len) return;
    if (!piece->bytes) piece->bytes = malloc(HTTP_FILE_PIECE_BYTES);
    if (!piece->bytes) abort();
    file->target = piece;
    file->wanted = file->left < HTTP_FILE_PIECE_BYTES ? (size_t)file->left : HTTP_FILE_PIECE_BYTES;
    file->reading = true;
    file->work = (struct loop_work){.fn = read_piece, .done = on_read};
    loop_work(file->loop, &file->work);
}

/* ---- writing ---- */

static void piece_sent(struct served_file *file)
{
    file->pieces[file->first].len = 0;
    file->first = !file->first;
}

/* Send what is there. False: the rest waits for on_writable or on_closed. */
static bool send_pieces(struct served_file *file)
{
    while (!file->sending && file->pieces[file->first].len) {
        struct http_file_piece *piece = &file->pieces[file->first];
        str bytes = {piece->bytes, piece->len};
        ptrdiff_t taken = http_stream_try(file->conn, &bytes, 1);
        if (taken < 0) return false;
        str rest = str_drop(bytes, (size_t)taken);
        if (rest.len == 0) {
            piece_sent(file);
            continue;
        }
        file->sending = http_stream_wait(file->conn, &rest, 1);
        if (!file->sending) return false; /* the head of the answer is still on its way */
    }
    return !file->sending;
}

static void pump(struct served_file *file)
{
    bool sent = send_pieces(file);
    read_next(file);
    if (!sent || file->reading) return;
    http_stream_end(TAKE(file->conn));
    file_release(file);
}

static void on_writable(void *arg)
{
    struct served_file *file = arg;
    if (file->sending) {
        file->sending = false;
        piece_sent(file);
    }
    pump(file);
}

static void on_closed(void *arg)
{
    struct served_file *file = arg;
    file->conn = NULL;
    file_release(file);
}

static void on_nothing(void *arg)
{
    (void)arg; /* a slow disk needs no sign of life, and a stop lets the answer end */
}

static const struct http_stream_ops file_ops = {.finite = true,
                                                .on_writable = on_writable,
                                                .on_quiet = on_nothing,
                                                .on_stop = on_nothing,
                                                .on_closed = on_closed};

static void close_unsent(const struct http_answer *answer, int fd)
{
    close(fd);
    if (answer->on_closed) answer->on_closed(answer->closed_arg);
}

void http_answer_file(struct http_request *request, const struct http_answer *answer, int fd,
                      uint64_t from, uint64_t len)
{
    struct http_conn *conn = conn_of(request);
    if (!conn) {
        close_unsent(answer, fd);
        return;
    }
    struct http_charge charge = {0};
    if (!charge_take(&charge, conn->server->options.budget, POOL_UNSENT, &conn->account,
                     2 * HTTP_FILE_PIECE_BYTES)) {
        struct fault why;
        enum err e = fault(&why, ERR_RATE_LIMITED, "too many files are being read already");
        close_unsent(answer, fd);
        conn_refuse(conn, e, &why, false);
        return;
    }
    conn_answer_head(conn, answer, len);
    conn->framed = false;
    if (len == 0 || !conn_answer_has_body(conn, answer->status)) {
        close_unsent(answer, fd);
        charge_drop(&charge);
        conn_answered(conn, answer->status);
        return;
    }
    struct served_file *file = mem_new(sizeof *file);
    *file = (struct served_file){.loop = conn->server->loop,
                                 .conn = conn,
                                 .charge = charge,
                                 .fd = fd,
                                 .on_closed = answer->on_closed,
                                 .closed_arg = answer->closed_arg};
    file->at = from;
    file->left = len;
    conn_stream(conn, answer->status, &file_ops, file);
    read_next(file);
}

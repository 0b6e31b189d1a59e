/* SPDX-License-Identifier: Apache-2.0
 *
 * Loaded before libuv (LD_PRELOAD), it stands in the two doors by which other threads hand something
 * to the loop, uv_async_send and uv_queue_work, and can keep one shut: whoever waits for a store job
 * or for work beside the loop waits for as long as a test likes.
 *
 *     HOLD=file    while it is there with "ROUND N": N messages pass, and each one behind them waits
 *                  until the file is gone. A new ROUND counts anew. FILE.held is made when one waits.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <uv.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long round_now = -1, passed;

/* The round that there is, and how many may pass in it; false: none. */
static bool read_round(const char *file, long *ret_number, long *ret_may_pass)
{
    FILE *f = fopen(file, "re");
    bool known = f && fscanf(f, "%ld %ld", ret_number, ret_may_pass) == 2;
    if (f) fclose(f);
    return known;
}

/* Has as much passed in this round as may? Counts the one that asks. */
static bool shut(long number, long may_pass)
{
    pthread_mutex_lock(&lock);
    if (number != round_now) passed = 0;
    round_now = number;
    bool waits = passed++ >= may_pass;
    pthread_mutex_unlock(&lock);
    return waits;
}

static void pass(void)
{
    enum { LOOK_US = 2 * 1000 };
    const char *file = getenv("HOLD");
    char held[4096];
    long number = 0, may_pass = 0, now = 0;
    if (!file || getpid() == syscall(SYS_gettid)) return; /* the loop never waits */
    if (!read_round(file, &number, &may_pass) || !shut(number, may_pass)) return;
    snprintf(held, sizeof held, "%s.held", file);
    int fd = open(held, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    if (fd >= 0) close(fd);
    while (read_round(file, &now, &may_pass) && now == number) usleep(LOOK_US);
}

int uv_async_send(uv_async_t *async)
{
    static int (*real)(uv_async_t * async);
    if (!real) *(void **)&real = dlsym(RTLD_NEXT, "uv_async_send");
    if (async != &async->loop->wq_async) pass(); /* libuv's own comes with a lock of its */
    return real(async);
}

struct work {
    uv_work_cb fn;
    uv_after_work_cb done;
    void *data;
};

static void work_run(uv_work_t *request)
{
    struct work *work = request->data;
    request->data = work->data;
    work->fn(request);
    request->data = work;
    pass();
}

static void work_done(uv_work_t *request, int status)
{
    struct work *work = request->data;
    uv_after_work_cb done = work->done;
    request->data = work->data;
    free(work);
    done(request, status);
}

int uv_queue_work(uv_loop_t *loop, uv_work_t *request, uv_work_cb fn, uv_after_work_cb done)
{
    static int (*real)(uv_loop_t * loop, uv_work_t * request, uv_work_cb fn, uv_after_work_cb done);
    if (!real) *(void **)&real = dlsym(RTLD_NEXT, "uv_queue_work");
    struct work *work = malloc(sizeof *work);
    if (!work) abort();
    *work = (struct work){fn, done, request->data};
    request->data = work;
    return real(loop, request, work_run, work_done);
}

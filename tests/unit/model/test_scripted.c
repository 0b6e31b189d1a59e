/* SPDX-License-Identifier: Apache-2.0
 *
 * The scripted model, and with it the player, on a real loop.
 */
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json.h"
#include "base/limits.h"
#include "base/utf8.h"
#include "check.h"
#include "model/model_kit.h"
#include "model/script.h"
#include "net/loop.h"

struct fixture {
    struct loop *loop;
    struct model model;
    bool loaded;
    char path[40];
};

static int setup(void **state)
{
    static struct fixture f;
    f = (struct fixture){.loop = loop_new(), .path = "/tmp/fermata-script-XXXXXX"};
    int fd = mkstemp(f.path);
    *state = &f;
    return fd < 0 ? -1 : close(fd);
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    if (f->loaded) model_free(&f->model);
    loop_free(f->loop);
    return unlink(f->path);
}

static void put(const struct fixture *f, str text)
{
    FILE *file = fopen(f->path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(text.p, 1, text.len, file), text.len);
    assert_int_equal(fclose(file), 0);
}

static void load(struct fixture *f, str text)
{
    if (f->loaded) model_free(&f->model);
    f->loaded = false;
    put(f, text);
    struct fault fault = {0};
    if (model_scripted(f->loop, f->path, NULL, &f->model, &fault))
        fail_msg("refused: %s", fault.text);
    f->loaded = true;
}

static void expect(struct fixture *f, const char *script, const char *trace)
{
    load(f, str_c(script));
    heard_expect(f->loop, &f->model, STR("x"), 1, trace);
}

/* ---- what is sent ---- */

static void sending(void **state)
{
    static const struct {
        const char *script, *trace;
    } rows[] = {
        {"{\"turns\":[{}]}", "done"},
        {"{\"turns\":[{\"text\":\"\",\"reasoning\":\"\",\"calls\":[]}]}", "done"},
        {"{\"turns\":[{\"text\":\"Hello!\"}]}", "t<Hell>t<o!>done"},
        {"{\"turns\":[{\"text\":\"abcd\"}]}", "t<abcd>done"},
        {"{\"turns\":[{\"text\":\"abc\",\"chunk\":1}]}", "t<a>t<b>t<c>done"},
        {"{\"turns\":[{\"text\":\"abc\",\"chunk\":65536}]}", "t<abc>done"},
        {"{\"turns\":[{\"text\":\"你好，世界！\",\"chunk\":4}]}", "t<你好，世>t<界！>done"},
        {"{\"turns\":[{\"text\":\"aé你😀b\",\"chunk\":1}]}", "t<a>t<é>t<你>t<😀>t<b>done"},
        {"{\"turns\":[{\"text\":\"\\ud83d\\ude00\\u00e9\",\"chunk\":1}]}", "t<😀>t<é>done"},
        {"{\"turns\":[{\"text\":\"ab\",\"reasoning\":\"cdefgh\"}]}", "r<cdef>r<gh>t<ab>done"},
        {"{\"turns\":[{\"calls\":[{\"name\":\"f\"}]}]}", "c0<call_1_1 f>a0<{}>done"},
        {"{\"turns\":[{\"calls\":[{\"name\":\"f\",\"args\":\"\"},{\"name\":\"g\"}]}]}",
         "c0<call_1_1 f>c1<call_1_2 g>a1<{}>done"},
        {"{\"turns\":[{\"calls\":[{\"args\":{ \"a\" : 1.0 },\"name\":\"f\"}]}]}",
         "c0<call_1_1 f>a0<{ \"a>a0<\" : >a0<1.0 >a0<}>done"},
        {"{\"turns\":[{\"calls\":[{\"name\":\"f\",\"args\":\"{\\\"a\\\":\"}]}]}",
         "c0<call_1_1 f>a0<{\"a\">a0<:>done"},
        {"{\"turns\":[{\"calls\":[{\"name\":\"f\",\"args\":\"你好\"}],\"chunk\":1,"
         "\"text\":\"t\",\"reasoning\":\"r\"}]}",
         "r<r>t<t>c0<call_1_1 f>a0<你>a0<好>done"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) expect(*state, rows[i].script, rows[i].trace);
}

static void choosing(void **state)
{
    struct fixture *f = *state;
    load(f, STR("\n  \r\n"
                "{\"match\":\"^hi$\",\"turns\":[{\"text\":\"1\"},{\"text\":\"2\"}]}\r\n"
                "{\"match\":\"[Hh]i|你(好)+\",\"turns\":[{\"text\":\"3\"}]}\n"
                "{\"match\":\"^$\",\"turns\":[{\"text\":\"4\"}]}\n"
                "{\"match\":\"a.b\",\"turns\":[{\"text\":\"5\"}]}\n"));
    static const struct {
        str message;
        uint32_t round;
        const char *trace;
    } rows[] = {
        {STR("hi"), 1, "t<1>done"},
        {STR("hi"), 2, "t<2>done"},
        {STR("hi"), 3, "t<2>done"}, /* the last one again */
        {STR("hi"), UINT32_MAX, "t<2>done"},
        {STR("Hi there"), 1, "t<3>done"},
        {STR("你好好"), 1, "t<3>done"},
        {STR("你"), 1, "failed"},
        {STR(""), 1, "t<4>done"},
        {{NULL, 0}, 1, "t<4>done"},
        {STR("a\0b"), 1, "t<5>done"}, /* a NUL does not end the message */
        {STR("hello weather"), 1, "failed"},
    };
    for (size_t i = 0; i < COUNT(rows); i++)
        heard_expect(f->loop, &f->model, rows[i].message, rows[i].round, rows[i].trace);

    AUTO(heard_done) struct heard h = {0};
    heard_start(&h, f->loop, &f->model, STR("other"), 1);
    heard_wait(&h);
    assert_int_equal(h.why.err, ERR_INTERNAL);
    assert_string_equal(h.why.text, "no line of the script matches the last user message");
}

/* Only the beginning of a very long message is matched. */
static void matching_is_bounded(void **state)
{
    struct fixture *f = *state;
    load(f, STR("{\"match\":\"z\",\"turns\":[{\"text\":\"yes\"}]}"));
    static char message[SCRIPT_MATCH_BYTES_MAX + 1];
    memset(message, 'a', sizeof message);
    message[SCRIPT_MATCH_BYTES_MAX] = 'z';
    heard_expect(f->loop, &f->model, (str){message, sizeof message}, 1, "failed");
    message[SCRIPT_MATCH_BYTES_MAX - 1] = 'z';
    heard_expect(f->loop, &f->model, (str){message, sizeof message}, 1, "t<yes>done");
}

static void usage(void **state)
{
    struct fixture *f = *state;
    /* The kit's request: 14 + 19 + 19 characters beside the message. */
    static const struct {
        const char *turn;
        str message;
        uint64_t in, out;
    } rows[] = {
        {"{\"text\":\"abcd\"}", STR("1234"), 14, 1},
        {"{\"text\":\"abcde\"}", STR("12345"), 15, 2},
        {"{\"text\":\"你好世界\"}", STR("你好世界"), 14, 1},
        {"{\"text\":\"ab\",\"reasoning\":\"cd\",\"calls\":[{\"name\":\"fg\"}]}", STR(""), 13, 2},
        {"{\"text\":\"a\",\"usage\":{\"input_tokens\":7,\"output_tokens\":0}}", STR(""), 7, 0},
        {"{\"text\":\"a\",\"usage\":{\"inputTokens\":7}}", STR(""), 7, 1},
        {"{\"text\":\"a\",\"usage\":{\"outputTokens\":1000000000}}", STR(""), 13, 1000000000},
        {"{\"text\":\"a\",\"usage\":{}}", STR(""), 13, 1},
        {"{\"text\":\"a\",\"usage\":{\"input_tokens\":7},\"fail\":{\"at\":0}}", STR(""), 0, 0},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        AUTO(buf_done) struct buf script;
        buf_init(&script, 1024);
        buf_printf(&script, "{\"turns\":[%s]}", rows[i].turn);
        load(f, buf_str(&script));
        AUTO(heard_done) struct heard h = {0};
        heard_start(&h, f->loop, &f->model, rows[i].message, 1);
        heard_wait(&h);
        assert_int_equal(h.usage.input_tokens, rows[i].in);
        assert_int_equal(h.usage.output_tokens, rows[i].out);
    }
}

/* ---- pace ---- */

static void pace(void **state)
{
    struct fixture *f = *state;
    static const struct {
        const char *script;
        msec first, rest; /* at least */
    } rows[] = {
        {"{\"turns\":[{\"text\":\"abcdef\",\"chunk\":1,\"gap_ms\":4}]}", 0, 20},
        {"{\"turns\":[{\"text\":\"abcdef\",\"delay_ms\":25}]}", 25, 0},
        {"{\"turns\":[{\"text\":\"ab\",\"chunk\":1,\"delay_ms\":10,\"gap_ms\":15}]}", 10, 15},
        {"{\"turns\":[{\"delay_ms\":12,\"fail\":{\"at\":\"start\"}}]}", 12, 0},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        load(f, str_c(rows[i].script));
        AUTO(heard_done) struct heard h = {0};
        msec start = loop_now(f->loop);
        heard_start(&h, f->loop, &f->model, STR("x"), 1);
        heard_wait(&h);
        if (h.first_at - start < rows[i].first) fail_msg("row %zu: too early", i);
        if (h.end_at - h.first_at < rows[i].rest) fail_msg("row %zu: too fast", i);
    }
}

/* A task that comes once a turn, beside a call without gaps: between two of its visits the call
 * sends at most its share. */
struct ticker {
    struct loop_task task;
    struct loop *loop;
    size_t turns, chunks, chunks_most, chunks_all;
    bool stopped, gone;
};

static void on_tick(struct loop_task *task)
{
    struct ticker *t = CONTAINER(task, struct ticker, task);
    t->turns++;
    t->chunks = 0;
    t->gone = t->stopped;
    if (t->gone)
        loop_stop(t->loop);
    else
        loop_post(t->loop, task);
}

static void count_chunk(void *arg)
{
    struct ticker *t = arg;
    t->chunks_all++;
    if (++t->chunks > t->chunks_most) t->chunks_most = t->chunks;
}

static void fairness(void **state)
{
    struct fixture *f = *state;
    enum { CHUNKS = 10 * PLAYER_CHUNKS_MAX + 1 };
    AUTO(buf_done) struct buf script;
    buf_init(&script, 64 * 1024);
    buf_append(&script, STR("{\"turns\":[{\"chunk\":1,\"text\":\""));
    for (int i = 0; i < CHUNKS; i++) buf_append(&script, STR("好"));
    buf_append(&script, STR("\"}]}"));
    load(f, buf_str(&script));

    struct ticker ticker = {.task = {.fn = on_tick}, .loop = f->loop};
    AUTO(heard_done) struct heard h = {.on_chunk = count_chunk, .on_chunk_arg = &ticker};
    loop_post(f->loop, &ticker.task);
    heard_start(&h, f->loop, &f->model, STR("x"), 1);
    heard_wait(&h);
    assert_int_equal(ticker.chunks_all, CHUNKS);
    assert_int_equal(ticker.chunks_most, PLAYER_CHUNKS_MAX);
    assert_in_range(ticker.turns, 10, 12);
    ticker.stopped = true;
    while (!ticker.gone) loop_run(f->loop);
}

static void two_at_once(void **state)
{
    struct fixture *f = *state;
    load(f, STR("{\"match\":\"a\",\"turns\":[{\"text\":\"aaaaaa\",\"chunk\":1,\"gap_ms\":2}]}\n"
                "{\"match\":\"b\",\"turns\":[{\"text\":\"bbb\",\"chunk\":1,\"gap_ms\":3,"
                "\"calls\":[{\"name\":\"f\"}]}]}"));
    AUTO(heard_done) struct heard a = {0};
    AUTO(heard_done) struct heard b = {0};
    AUTO(heard_done) struct heard again = {0};
    heard_start(&a, f->loop, &f->model, STR("a"), 1);
    heard_start(&b, f->loop, &f->model, STR("b"), 2);
    heard_start(&again, f->loop, &f->model, STR("a"), 1);
    heard_wait(&a);
    heard_wait(&b);
    heard_wait(&again);
    assert_str(buf_str(&a.trace), STR("t<a>t<a>t<a>t<a>t<a>t<a>done"));
    assert_str(buf_str(&b.trace), STR("t<b>t<b>t<b>c0<call_2_1 f>a0<{>a0<}>done"));
    assert_str(buf_str(&again.trace), buf_str(&a.trace));
}

/* ---- cancelling ---- */

#define BUSY_TURN                                                                                 \
    "\"chunk\":1,\"reasoning\":\"ab\",\"text\":\"你好\",\"calls\":[{\"name\":\"f\"},{\"name\":" \
    "\"g\",\"args\":\"\"}]"

static const struct {
    const char *script;
    size_t callbacks;
} busy[] = {
    {"{\"turns\":[{" BUSY_TURN "}]}", 9},
    {"{\"turns\":[{" BUSY_TURN ",\"gap_ms\":1}]}", 9},
    {"{\"turns\":[{" BUSY_TURN ",\"gap_ms\":1,\"delay_ms\":1}]}", 9},
    {"{\"turns\":[{" BUSY_TURN ",\"delay_ms\":1,\"fail\":{\"at\":8}}]}", 8},
};

/* Inside the n-th callback, for every n; 0 = before the first. A second call that is started later
 * and runs to its end shows that the loop had time for more. */
static void cancelling(void **state)
{
    struct fixture *f = *state;
    for (size_t i = 0; i < COUNT(busy); i++) {
        load(f, str_c(busy[i].script));
        for (size_t at = 0; at <= busy[i].callbacks; at++) {
            AUTO(heard_done) struct heard h = {.cancel_at = at};
            AUTO(heard_done) struct heard witness = {0};
            heard_start(&h, f->loop, &f->model, STR("x"), 1);
            if (at == 0) heard_cancel(&h);
            heard_start(&witness, f->loop, &f->model, STR("x"), 1);
            heard_wait(&witness);
            assert_true(h.cancelled);
            assert_int_equal(h.callbacks, at);
            assert_int_equal(witness.callbacks, busy[i].callbacks);
            assert_true(str_starts(buf_str(&witness.trace), buf_str(&h.trace)));
        }
    }
}

/* From outside, between two callbacks: while the call waits for its timer, for the end of the turn
 * that it started in, or is posted. The end
 * comes together with what stands before it, so there is no between for these two. */
struct outside {
    struct loop_defer first;
    struct loop_task task;
    struct heard *victim;
    size_t after;
};

static void look(struct outside *o)
{
    if (o->victim->callbacks < o->after)
        loop_post(o->victim->loop, &o->task);
    else
        heard_cancel(o->victim);
}

static void on_first(struct loop_defer *first)
{
    look(CONTAINER(first, struct outside, first));
}

static void on_outside(struct loop_task *task)
{
    look(CONTAINER(task, struct outside, task));
}

static void cancelling_from_outside(void **state)
{
    struct fixture *f = *state;
    load(f, str_c(busy[1].script));
    for (size_t after = 0; after < busy[1].callbacks - 1; after++) {
        AUTO(heard_done) struct heard h = {0};
        AUTO(heard_done) struct heard witness = {0};
        struct outside outside = {
            .first = {.fn = on_first}, .task = {.fn = on_outside}, .victim = &h, .after = after};
        loop_defer(f->loop, &outside.first); /* comes before the call in each turn */
        heard_start(&h, f->loop, &f->model, STR("x"), 1);
        heard_start(&witness, f->loop, &f->model, STR("x"), 1);
        heard_wait(&witness);
        assert_true(h.cancelled);
        assert_false(h.ended);
        assert_int_equal(h.callbacks, after);
    }
}

/* A call that is cancelled and never gets another turn goes with the loop. */
static void cancelling_at_the_end(void **state)
{
    struct fixture *f = *state;
    for (size_t i = 0; i < COUNT(busy); i++) {
        load(f, str_c(busy[i].script));
        AUTO(heard_done) struct heard h = {0};
        heard_start(&h, f->loop, &f->model, STR("x"), 1);
        heard_cancel(&h);
    }
}

/* ---- failing ---- */

static void failing_at_the_start(void **state)
{
    struct fixture *f = *state;
    static const struct {
        const char *status;
        enum model_end end;
        const char *why;
    } rows[] = {
        {"", MODEL_AGAIN, "the script ends this answer at the start: connection lost"},
        {",\"status\":400", MODEL_FAILED, "the script ends this answer at the start: status 400"},
        {",\"status\":401", MODEL_FAILED, "status 401"},
        {",\"status\":407", MODEL_FAILED, "status 407"},
        {",\"status\":408", MODEL_AGAIN, "status 408"},
        {",\"status\":409", MODEL_FAILED, "status 409"},
        {",\"status\":428", MODEL_FAILED, "status 428"},
        {",\"status\":429", MODEL_AGAIN, "status 429"},
        {",\"status\":430", MODEL_FAILED, "status 430"},
        {",\"status\":499", MODEL_FAILED, "status 499"},
        {",\"status\":500", MODEL_AGAIN, "status 500"},
        {",\"status\":599", MODEL_AGAIN, "status 599"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        AUTO(buf_done) struct buf script;
        buf_init(&script, 1024);
        buf_printf(&script,
                   "{\"turns\":[{\"text\":\"a\",\"reasoning\":\"b\",\"calls\":[{\"name\":\"f\"}],"
                   "\"fail\":{\"at\":\"start\"%s}}]}",
                   rows[i].status);
        load(f, buf_str(&script));
        for (int attempt = 0; attempt < 3; attempt++) {
            AUTO(heard_done) struct heard h = {0};
            heard_start(&h, f->loop, &f->model, STR("x"), 1);
            heard_wait(&h);
            assert_int_equal(h.callbacks, 1);
            assert_int_equal(h.end, rows[i].end);
            assert_int_equal(h.why.err,
                             h.end == MODEL_AGAIN ? ERR_MODEL_UNAVAILABLE : ERR_INTERNAL);
            assert_non_null(strstr(h.why.text, rows[i].why));
        }
    }
}

/* Cut after each byte of a text: what arrives is the longest whole beginning. */
static void failing_at_each_byte(void **state)
{
    struct fixture *f = *state;
    static const str text = STR("aé你😀b好");
    for (size_t at = 0; at <= text.len; at++) {
        size_t whole = at;
        while (!utf8_valid((str){text.p, whole})) whole--;
        for (int quoted = 0; quoted < 2; quoted++) {
            const char *mark = quoted ? "\"" : "";
            AUTO(buf_done) struct buf script;
            buf_init(&script, 1024);
            buf_printf(&script,
                       "{\"turns\":[{\"text\":\"%s\",\"chunk\":3,\"reasoning\":\"r\",\"calls\":"
                       "[{\"name\":\"f\"}],\"fail\":{\"at\":%s%zu%s}}]}",
                       text.p, mark, at, mark);
            load(f, buf_str(&script));
            AUTO(heard_done) struct heard h = {0};
            heard_start(&h, f->loop, &f->model, STR("x"), 1);
            heard_wait(&h);
            assert_int_equal(h.end, MODEL_AGAIN);
            assert_str(buf_str(&h.text), ((str){text.p, whole}));
            assert_true(str_starts(buf_str(&h.trace), STR("r<r>")));
            assert_int_equal(str_find(buf_str(&h.trace), STR("call_")), -1);
        }
    }
}

/* Bytes are counted on through the arguments. */
static void failing_in_calls(void **state)
{
    static const struct {
        const char *at, *trace;
    } rows[] = {
        {"2", "t<ab>again"},
        {"3", "t<ab>c0<call_1_1 f>a0<{>again"},
        {"4", "t<ab>c0<call_1_1 f>a0<{}>again"},
        {"5", "t<ab>c0<call_1_1 f>a0<{}>c1<call_1_2 g>again"}, /* inside 你 */
        {"7", "t<ab>c0<call_1_1 f>a0<{}>c1<call_1_2 g>a1<你>again"},
        {"8", "t<ab>c0<call_1_1 f>a0<{}>c1<call_1_2 g>a1<你}>again"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        AUTO(buf_done) struct buf script;
        buf_init(&script, 1024);
        buf_printf(&script,
                   "{\"turns\":[{\"text\":\"ab\",\"calls\":[{\"name\":\"f\"},{\"name\":\"g\","
                   "\"args\":\"你}\"}],\"fail\":{\"at\":%s}}]}",
                   rows[i].at);
        buf_char(&script, '\0');
        expect(*state, script.p, rows[i].trace);
    }
}

static void failing_some_times(void **state)
{
    struct fixture *f = *state;
    load(f, STR("{\"match\":\"a\",\"turns\":[{\"text\":\"abcd\",\"fail\":{\"at\":2,\"times\":2}},"
                "{\"text\":\"second\",\"chunk\":9,\"fail\":{\"at\":\"start\",\"times\":1}}]}\n"
                "{\"turns\":[{\"text\":\"b\",\"fail\":{\"at\":\"start\",\"times\":1}}]}"));
    static const struct {
        str message;
        uint32_t round;
        const char *trace;
    } rows[] = {
        {STR("a"), 1, "t<ab>again"},  {STR("a"), 2, "again"},         {STR("a"), 1, "t<ab>again"},
        {STR("a"), 1, "t<abcd>done"}, {STR("x"), 1, "again"},         {STR("a"), 1, "t<abcd>done"},
        {STR("x"), 1, "t<b>done"},    {STR("a"), 2, "t<second>done"},
    };
    for (size_t i = 0; i < COUNT(rows); i++)
        heard_expect(f->loop, &f->model, rows[i].message, rows[i].round, rows[i].trace);
}

/* ---- what is refused ---- */

static void assert_refused(str script, const char *text)
{
    struct script *parsed = NULL;
    struct fault fault = {0};
    if (!script_parse("s", script, &parsed, &fault)) fail_msg("taken: %.*s", STR_ARG(script));
    assert_null(parsed);
    assert_int_equal(fault.err, ERR_CONFIG);
    assert_string_equal(fault.text, text);
}

#define TURN(members) "{\"turns\":[{" members "}]}"
#define MATCH(regex)  "{\"match\":\"" regex "\",\"turns\":[{}]}"

static void refused(void **state)
{
    (void)state;
    static const struct {
        const char *script, *text;
    } rows[] = {
        {"", "s: holds no lines"},
        {"\n \t\n\r\n", "s: holds no lines"},
        {"{", "s:1: not JSON at byte 2: unexpected end"},
        {TURN("") "\n\n[]", "s:3: a line must be an object"},
        {"{}", "s:1: the line has no turns"},
        {"{\"turns\":[]}", "s:1: turns must be an array of 1 to 100 turns"},
        {"{\"turns\":{}}", "s:1: turns must be an array of 1 to 100 turns"},
        {"{\"turns\":[{},3]}", "s:1: turns[1] must be an object"},
        {TURN("") "\n{\"mtach\":1}", "s:2: the line has an unknown member \"mtach\"; known: match, "
                                     "when, turns, story, part, text, pace, starters"},
        {TURN("\"txet\":1"),
         "s:1: turns[0] has an unknown member \"txet\"; known: text, calls, reasoning, chunk, "
         "delay_ms, gap_ms, fail, usage"},
        {TURN("\"一二三四五六七八九十一二三四五六七八九十一二三四五六七八九十一二三四\":1"),
         "s:1: turns[0] has an unknown member "
         "\"一二三四五六七八九十一二三四五六七八九十一二三四五六七八九十一二\"; known: text, "
         "calls, "
         "reasoning, chunk, delay_ms, gap_ms, fail, usage"},
        {"{\"\\u001b[2J\\u0000\":1}", "s:1: the line has an unknown member \"?[2J?\"; known: "
                                      "match, when, turns, story, part, text, pace, starters"},
        {TURN("\"text\":1"), "s:1: turns[0].text must be a string"},
        {TURN("\"reasoning\":null"), "s:1: turns[0].reasoning must be a string"},
        {TURN("\"chunk\":0"), "s:1: turns[0].chunk must be a whole number from 1 to 65536"},
        {TURN("\"chunk\":65537"), "s:1: turns[0].chunk must be a whole number from 1 to 65536"},
        {TURN("\"chunk\":\"4\""), "s:1: turns[0].chunk must be a whole number from 1 to 65536"},
        {TURN("\"gap_ms\":-1"), "s:1: turns[0].gap_ms must be a whole number from 0 to 600000"},
        {TURN("\"gap_ms\":600001"), "s:1: turns[0].gap_ms must be a whole number from 0 to 600000"},
        {TURN("\"delay_ms\":1.5"),
         "s:1: turns[0].delay_ms must be a whole number from 0 to 600000"},
        {TURN("\"calls\":{}"), "s:1: turns[0].calls must be an array of at most 64 calls"},
        {TURN("\"calls\":[1]"), "s:1: turns[0].calls[0] must be an object"},
        {TURN("\"calls\":[{\"name\":\"f\"},{}]"), "s:1: turns[0].calls[1] has no name"},
        {TURN("\"calls\":[{\"name\":\"\"}]"),
         "s:1: turns[0].calls[0].name must have 1 to 256 bytes"},
        {TURN("\"calls\":[{\"name\":1}]"), "s:1: turns[0].calls[0].name must be a string"},
        {TURN("\"calls\":[{\"name\":\"f\",\"args\":[]}]"),
         "s:1: turns[0].calls[0].args must be an object or a string"},
        {TURN("\"calls\":[{\"name\":\"f\",\"id\":1}]"),
         "s:1: turns[0].calls[0] has an unknown member \"id\"; known: name, args"},
        {TURN("\"fail\":true"), "s:1: turns[0].fail must be an object"},
        {TURN("\"fail\":{}"), "s:1: turns[0].fail has no \"at\""},
        {TURN("\"fail\":{\"at\":\"end\"}"),
         "s:1: turns[0].fail.at must be \"start\" or a number of bytes"},
        {TURN("\"fail\":{\"at\":-1}"),
         "s:1: turns[0].fail.at must be \"start\" or a number of bytes"},
        {TURN("\"fail\":{\"at\":\"\"}"),
         "s:1: turns[0].fail.at must be \"start\" or a number of bytes"},
        {TURN("\"text\":\"你\",\"fail\":{\"at\":4}"),
         "s:1: turns[0] fails at byte 4, but has 3 bytes of text and arguments"},
        {TURN("\"fail\":{\"at\":\"start\",\"status\":399}"),
         "s:1: turns[0].fail.status must be a whole number from 400 to 599"},
        {TURN("\"fail\":{\"at\":\"start\",\"status\":600}"),
         "s:1: turns[0].fail.status must be a whole number from 400 to 599"},
        {TURN("\"fail\":{\"at\":\"start\",\"times\":0}"),
         "s:1: turns[0].fail.times must be a whole number from 1 to 4294967294"},
        {TURN("\"fail\":{\"at\":\"start\",\"time\":1}"),
         "s:1: turns[0].fail has an unknown member \"time\"; known: at, status, times"},
        {TURN("\"usage\":[]"), "s:1: turns[0].usage must be an object"},
        {TURN("\"usage\":{\"tokens\":1}"), "s:1: turns[0].usage has an unknown member \"tokens\"; "
                                           "known: input_tokens, output_tokens, "
                                           "inputTokens, outputTokens"},
        {TURN("\"usage\":{\"inputTokens\":1000000001}"),
         "s:1: turns[0].usage.inputTokens must be a whole number from 0 to 1000000000"},
        {TURN("") "\n" TURN("") "\n{\"match\":1}", "s:3: match must be a string"},
        {TURN("") "\n" MATCH("("), "s:2: match is malformed: Unmatched ( or \\("},
        {MATCH("[a"), "s:1: match is malformed: Unmatched [, [^, [:, [., or [="},
        {MATCH("a\\u0000b"), "s:1: match contains a NUL"},
        {MATCH("(a)\\\\1"), "s:1: match refers back to a group"},
        {MATCH("[a你]"), "s:1: match has a character beyond ASCII in brackets; write (a|b)"},
        {MATCH("[]你]"), "s:1: match has a character beyond ASCII in brackets; write (a|b)"},
        {MATCH("[[:alpha:]你]"),
         "s:1: match has a character beyond ASCII in brackets; write (a|b)"},
        {MATCH("你+"), "s:1: match repeats a character beyond ASCII; put it in parentheses"},
        {MATCH("你{2}"), "s:1: match repeats a character beyond ASCII; put it in parentheses"},
        {MATCH("a{3000}"), "s:1: match repeats too much: its repetitions multiply"},
        {MATCH("((a{99}){99})"), "s:1: match repeats too much: its repetitions multiply"},
        {MATCH("a{9}{9}{9}{9}"), "s:1: match repeats too much: its repetitions multiply"},
        {MATCH("((((()+$)+)+)+)+"),
         "s:1: match repeats a beginning or an end: ^, $, or \\b and the like"},
        {MATCH("(a|^b)*"), "s:1: match repeats a beginning or an end: ^, $, or \\b and the like"},
        {MATCH("(((((((((((x+)+)+)+)+)+)+)+)+)+)+)"),
         "s:1: match repeats too much: its repetitions multiply"},
        {MATCH(")+++++++++++"), "s:1: match repeats too much: its repetitions multiply"},
        {MATCH("(*+++++++++++)"), "s:1: match repeats too much: its repetitions multiply"},
        {MATCH("a????????????"), "s:1: match repeats too much: its repetitions multiply"},
        {MATCH("(((((((((((((((((a)))))))))))))))))"),
         "s:1: match has groups inside groups more than 16 deep"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) assert_refused(str_c(rows[i].script), rows[i].text);
}

static void taken_patterns(void **state)
{
    (void)state;
    static const char *const rows[] = {
        MATCH(""),
        MATCH("a|b"),
        MATCH("(你|您)+好"),
        MATCH("[^]a]+"),
        MATCH("[[:digit:]]{4}-[0-9]+"),
        MATCH("a\\\\.b"),
        MATCH("[[.a.]x]"),
        MATCH("((((((((((((((((a))))))))))))))))"),
        MATCH("(a{40}){40}"),
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct script *script = NULL;
        struct fault fault = {0};
        if (script_parse("s", str_c(rows[i]), &script, &fault)) fail_msg("%s", fault.text);
        script_free(script);
    }
}

/* ---- limits, on both sides ---- */

/* `count` times `part` between `before` and `after`, separated. */
static void build(struct buf *out, const char *before, const char *part, size_t count,
                  const char *separator, const char *after)
{
    buf_init(out, 2 * SCRIPT_BYTES_MAX);
    buf_printf(out, "%s", before);
    for (size_t i = 0; i < count; i++) buf_printf(out, "%s%s", i ? separator : "", part);
    buf_printf(out, "%s", after);
    assert_false(out->full);
}

static void limits(void **state)
{
    (void)state;
    static const struct {
        const char *before, *part, *separator, *after;
        size_t max;
        const char *refused;
    } rows[] = {
        {"", TURN(""), "\n", "", SCRIPT_LINES_MAX, "s:1001: more than 1000 lines"},
        {"{\"turns\":[", "{}", ",", "]}", SCRIPT_TURNS_MAX,
         "s:1: turns must be an array of 1 to 100 turns"},
        {"{\"turns\":[{\"calls\":[", "{\"name\":\"f\"}", ",", "]}]}", SCRIPT_CALLS_MAX,
         "s:1: turns[0].calls must be an array of at most 64 calls"},
        {"{\"turns\":[{\"calls\":[{\"name\":\"", "n", "", "\"}]}]}", SCRIPT_NAME_BYTES_MAX,
         "s:1: turns[0].calls[0].name must have 1 to 256 bytes"},
        {"{\"turns\":[{}],\"match\":\"", "m", "", "\"}", SCRIPT_PATTERN_BYTES_MAX,
         "s:1: match is longer than 1024 bytes"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        AUTO(buf_done) struct buf edge;
        build(&edge, rows[i].before, rows[i].part, rows[i].max, rows[i].separator, rows[i].after);
        struct script *script = NULL;
        struct fault fault = {0};
        if (script_parse("s", buf_str(&edge), &script, &fault)) fail_msg("%s", fault.text);
        script_free(script);

        AUTO(buf_done) struct buf beyond;
        build(&beyond, rows[i].before, rows[i].part, rows[i].max + 1, rows[i].separator,
              rows[i].after);
        assert_refused(buf_str(&beyond), rows[i].refused);
    }
}

static void assert_file_refused(struct fixture *f, const char *path, const char *text)
{
    struct model model = {0};
    struct fault fault = {0};
    assert_int_equal(model_scripted(f->loop, path, NULL, &model, &fault), ERR_CONFIG);
    assert_null(model.self);
    assert_true(str_starts(str_c(fault.text), str_c(path)));
    if (!strstr(fault.text, text)) fail_msg("got \"%s\", expected \"%s\"", fault.text, text);
}

static void files(void **state)
{
    struct fixture *f = *state;
    assert_file_refused(f, "/tmp/fermata-no-such-script", ": cannot be read: No such file");
    assert_file_refused(f, "/tmp", ": cannot be read: Is a directory");
    put(f, STR(""));
    assert_file_refused(f, f->path, ": holds no lines");
    put(f, STR(TURN("") "\n" TURN("\"x\":1") "\n"));
    assert_file_refused(f, f->path, ":2: turns[0] has an unknown member \"x\"");

    /* Just large enough, and one byte more. */
    AUTO(buf_done) struct buf text;
    buf_init(&text, SCRIPT_BYTES_MAX + 1);
    buf_append(&text, STR(TURN("")));
    while (text.len < SCRIPT_BYTES_MAX) buf_char(&text, '\n');
    load(f, buf_str(&text));
    heard_expect(f->loop, &f->model, STR("x"), 1, "done");
    buf_char(&text, '\n');
    put(f, buf_str(&text));
    assert_file_refused(f, f->path, ": larger than 4194304 bytes");
}

/* ---- what was asked ---- */

#define TEXT(text) "{\"text\":\"" text "\"}"

/* The lines of a log, or the empty str. */
static str read_log(const char *path)
{
    static char bytes[64 * 1024];
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    str text = {bytes, fread(bytes, 1, sizeof bytes, file)};
    assert_int_equal(fclose(file), 0);
    return text;
}

static void load_logged(struct fixture *f, str text, const char *log)
{
    if (f->loaded) model_free(&f->model);
    f->loaded = false;
    put(f, text);
    struct fault fault = {0};
    if (model_scripted(f->loop, f->path, log, &f->model, &fault)) fail_msg("%s", fault.text);
    f->loaded = true;
}

static void logging(void **state)
{
    struct fixture *f = *state;
    char log[48];
    snprintf(log, sizeof log, "%s.log", f->path);
    load_logged(f, STR("{\"match\":\"hi\",\"turns\":[" TEXT("a") "," TEXT("b") "]}"), log);
    struct stat file;
    assert_int_equal(stat(log, &file), 0);
    assert_int_equal(file.st_mode & 0777, 0600);
    assert_str(read_log(log), STR_EMPTY);

    struct model_message messages[] = {
        {.role = STR("user"), .text = STR("hi \"你\"\n")},
        {.role = STR("assistant"), .text = STR(""), .tool_calls = STR("[{\"id\":\"c1\"}]")},
        {.role = STR("tool"), .text = STR("{\"a\":1}"), .tool_call_id = STR("c1")},
    };
    struct model_request request = {.system = STR("be\nkind"),
                                    .messages = messages,
                                    .count = COUNT(messages),
                                    .tools = STR("[{\"name\":\"f\"}]"),
                                    .locale = STR("zh-CN"),
                                    .round = 2};
    /* Written before anything is answered, also when the answer is that there is none. */
    AUTO(heard_done) struct heard first = {0};
    heard_ask(&first, f->loop, &f->model, &request);
#define LINE_1                                                                                    \
    "{\"round\":2,\"system\":\"be\\nkind\",\"messages\":[{\"role\":\"user\",\"text\":\"hi "       \
    "\\\"你\\\"\\n\"},{\"role\":\"assistant\",\"text\":\"\",\"toolCalls\":[{\"id\":\"c1\"}]},"   \
    "{\"role\":\"tool\",\"text\":\"{\\\"a\\\":1}\",\"toolCallId\":\"c1\"}],\"tools\":[{\"name\":" \
    "\"f\"}],\"locale\":\"zh-CN\"}\n"
    assert_str(read_log(log), STR(LINE_1));
    heard_wait(&first);
    assert_str(buf_str(&first.trace), STR("t<b>done"));

    messages[0].text = STR("nobody knows");
    AUTO(heard_done) struct heard second = {0};
    request = (struct model_request){.messages = messages, .count = 1, .round = 1};
    heard_ask(&second, f->loop, &f->model, &request);
    heard_wait(&second);
    assert_int_equal(second.end, MODEL_FAILED);
#define LINE_2                                                                                   \
    "{\"round\":1,\"system\":\"\",\"messages\":[{\"role\":\"user\",\"text\":\"nobody knows\"}]," \
    "\"tools\":[],\"locale\":\"\"}\n"
    assert_str(read_log(log), STR(LINE_1 LINE_2));

    /* A new start goes on behind what is there. */
    load_logged(f, STR("{\"turns\":[{}]}"), log);
    AUTO(heard_done) struct heard third = {0};
    heard_ask(&third, f->loop, &f->model, &request);
    heard_wait(&third);
    assert_str(read_log(log), STR(LINE_1 LINE_2 LINE_2));
    assert_int_equal(unlink(log), 0);
}

/* Texts that grow by escaping, and many messages: the line is whole. */
static void logging_much(void **state)
{
    struct fixture *f = *state;
    char log[48];
    snprintf(log, sizeof log, "%s.log", f->path);
    load_logged(f, STR("{\"turns\":[{}]}"), log);
    char hostile[200];
    memset(hostile, 1, sizeof hostile);
    struct model_message messages[30];
    for (size_t i = 0; i < COUNT(messages); i++)
        messages[i] = (struct model_message){.role = STR("tool"),
                                             .text = {hostile, sizeof hostile},
                                             .tool_calls = STR("[]"),
                                             .tool_call_id = {hostile, 10}};
    struct model_request request = {.system = {hostile, sizeof hostile},
                                    .messages = messages,
                                    .count = COUNT(messages),
                                    .round = UINT32_MAX};
    AUTO(heard_done) struct heard h = {0};
    heard_ask(&h, f->loop, &f->model, &request);
    heard_wait(&h);
    str line = read_log(log);
    assert_true(str_ends(line, STR("\n")));
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    struct json *value;
    assert_int_equal(json_parse(&arena, (str){line.p, line.len - 1}, &value, NULL), OK);
    assert_int_equal(json_get(value, STR("messages"))->count, COUNT(messages));
    assert_int_equal(unlink(log), 0);
}

/* Pictures by their hash. */
static void logging_pictures(void **state)
{
    struct fixture *f = *state;
    char log[48];
    snprintf(log, sizeof log, "%s.log", f->path);
    load_logged(f, STR("{\"turns\":[{}]}"), log);
    const struct model_image images[] = {
        {.mime = STR("image/png"), .filename = STR("a\"b.png"), .bytes = STR("hello\n")},
        {.mime = STR("image/gif"), .bytes = STR("hello\n")}};
    const struct model_message message = {
        .role = STR("user"), .text = STR("x"), .images = images, .image_count = COUNT(images)};
    AUTO(heard_done) struct heard h = {0};
    heard_ask(&h, f->loop, &f->model,
              &(struct model_request){.messages = &message, .count = 1, .round = 1});
    heard_wait(&h);
#define HELLO \
    "\"size\":6,\"sha256\":\"5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03\"}"
    assert_true(str_find(read_log(log), STR("\"images\":[{\"mimeType\":\"image/png\",\"filename\":"
                                            "\"a\\\"b.png\"," HELLO ",{\"mimeType\":\"image/gif\","
                                            "\"filename\":\"\"," HELLO "]")) > 0);
    assert_int_equal(unlink(log), 0);
}

/* A log that cannot be opened stops the start; one that cannot be written fails the call. */
static void logging_fails(void **state)
{
    struct fixture *f = *state;
    put(f, STR("{\"turns\":[{}]}"));
    struct model model = {0};
    struct fault fault = {0};
    assert_int_equal(model_scripted(f->loop, f->path, "/tmp/fermata-no/log", &model, &fault),
                     ERR_CONFIG);
    assert_string_equal(fault.text,
                        "/tmp/fermata-no/log: cannot be written: No such file or directory");
    assert_null(model.self);

    load_logged(f, STR("{\"turns\":[{}]}"), "/dev/full");
    AUTO(heard_done) struct heard h = {0};
    heard_start(&h, f->loop, &f->model, STR("x"), 1);
    heard_wait(&h);
    assert_int_equal(h.end, MODEL_FAILED);
    assert_string_equal(h.why.text, "the request could not be written to the script log");
}

/* The last message of a person counts, however many calls and results follow it. */
static void calls_and_results(void **state)
{
    struct fixture *f = *state;
    load(f, STR("{\"match\":\"^go$\",\"turns\":["
                "{\"chunk\":99,\"calls\":[{\"name\":\"f\",\"args\":{\"a\":1}},{\"name\":\"g\","
                "\"args\":\"{"
                "\\\"b\\\":\"},{\"name\":\"ask_user\",\"args\":\"\"}]},"
                "{\"chunk\":99,\"text\":\"t\",\"calls\":[{\"name\":\"f\"}]}," TEXT(
                    "end") "]}\n"
                           "{\"turns\":[" TEXT("wrong") "]}"));
    static const char *const traces[] = {
        "c0<call_1_1 f>a0<{\"a\":1}>c1<call_1_2 g>a1<{\"b\":>c2<call_1_3 ask_user>done",
        "t<t>c0<call_2_1 f>a0<{}>done",
        "t<end>done",
    };
    struct model_message messages[] = {
        {.role = STR("user"), .text = STR("go")},
        {.role = STR("assistant"), .tool_calls = STR("[]")},
        {.role = STR("tool"), .text = STR("stop"), .tool_call_id = STR("c1")},
        {.role = STR("assistant"), .text = STR("stop")},
        {.role = STR("tool"), .text = STR("stop"), .tool_call_id = STR("c2")},
        {.role = STR("system"), .text = STR("stop")},
    };
    for (uint32_t round = 1; round <= COUNT(traces); round++) {
        AUTO(heard_done) struct heard h = {0};
        heard_ask(
            &h, f->loop, &f->model,
            &(struct model_request){.messages = messages, .count = 2 * round, .round = round});
        heard_wait(&h);
        assert_str(buf_str(&h.trace), str_c(traces[round - 1]));
    }
}

/* The example in the manual, played. */
static void manual(void **state)
{
    struct fixture *f = *state;
    FILE *file = fopen(SOURCE_ROOT "/docs/SCRIPT.md", "r");
    assert_non_null(file);
    static char page[64 * 1024];
    str rest = {page, fread(page, 1, sizeof page, file)};
    assert_int_equal(fclose(file), 0);
    ptrdiff_t at = str_find(rest, STR("```jsonl\n"));
    assert_true(at >= 0);
    rest = str_drop(rest, (size_t)at + STR("```jsonl\n").len);
    at = str_find(rest, STR("```"));
    assert_true(at >= 0);
    load(f, (str){rest.p, (size_t)at});

    static const struct {
        str message;
        uint32_t round;
        const char *trace;
    } rows[] = {
        {STR("hello"), 1, "t<Hell>t<o! 你>t<好！>done"},
        {STR("the weather?"), 1,
         "r<I ne>r<ed t>r<he f>r<orec>r<ast.>c0<call_1_1 forecast>a0<{\"ci>a0<ty\":>a0< "
         "\"Pa>a0<ris\">"
         "a0<}>done"},
        {STR("the weather?"), 2, "t<Sunn>t<y, 2>t<1 °C>t<.>done"},
        {STR("flaky"), 1, "t<Here>t< >again"},
        {STR("flaky"), 1, "t<Here>t< at >t<last>t<.>done"},
        {STR("why?"), 1, "t<I do>t< not>t< kno>t<w.>done"},
    };
    for (size_t i = 0; i < COUNT(rows); i++)
        heard_expect(f->loop, &f->model, rows[i].message, rows[i].round, rows[i].trace);
}

int test_scripted(void)
{
#define CASE(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
    const struct CMUnitTest tests[] = {
        CASE(sending),
        CASE(choosing),
        CASE(matching_is_bounded),
        CASE(usage),
        CASE(pace),
        CASE(fairness),
        CASE(two_at_once),
        CASE(cancelling),
        CASE(cancelling_from_outside),
        CASE(cancelling_at_the_end),
        CASE(failing_at_the_start),
        CASE(failing_at_each_byte),
        CASE(failing_in_calls),
        CASE(failing_some_times),
        CASE(refused),
        CASE(taken_patterns),
        CASE(limits),
        CASE(files),
        CASE(logging),
        CASE(logging_much),
        CASE(logging_pictures),
        CASE(logging_fails),
        CASE(calls_and_results),
        CASE(manual),
    };
#undef CASE
    return cmocka_run_group_tests_name("model/scripted", tests, NULL, NULL);
}

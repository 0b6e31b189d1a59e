/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/limits.h"
#include "check.h"
#include "model/model_kit.h"
#include "net/loop.h"

struct fixture {
    struct loop *loop;
    struct model model;
};

static int setup(void **state)
{
    static struct fixture f;
    f.loop = loop_new();
    model_demo(f.loop, &f.model);
    *state = &f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    model_free(&f->model);
    loop_free(f->loop);
    return 0;
}

/* All rows are asked at once, so that the test takes as long as its longest answer. Every answer
 * says what it is. */
static void answers(void **state)
{
    struct fixture *f = *state;
    static const struct {
        str message;
        const char *part;
    } rows[] = {
        {STR("Hello"), "Hello! I am"},
        {STR("hi"), "Hello! I am"},
        {STR("HEY, you"), "Hello! I am"},
        {STR("this"), "You wrote:\n\n> this\n\n"}, /* "hi" inside a word */
        {STR("Please write hi to Bob and to all of his friends"), "You wrote"},
        {STR("你好"), "你好！我是"},
        {STR("您好！"), "你好！我是"},
        {STR("hello, what can you do?"), "**demo model**"},
        {STR("你好，你会什么？"), "**演示模型**"},
        {STR("What can YOU do"), "a few rules"},
        {STR("what can you do"), "- **Book a review meeting**"},
        {STR("你会什么"), "- **帮我约个评审会**"},
        {STR("what can you do"), "- **Show me a card**"},
        {STR("你会什么"), "- **给我看卡片**"},
        {STR("show me a card"), "needs the tool `show_card`"},
        {STR("Tell me a story"), "A story from the demo model"},
        {STR("讲个故事"), "演示模型来讲一个故事"},
        {STR("book a review meeting"), "needs the tool `calendar_write`"}, /* none is offered */
        {STR("帮我约个评审会"), "需要工具 `calendar_write`"},
        {STR("Thanks!"), "You are welcome!"},
        {STR("thank you"), "You are welcome!"},
        {STR("谢谢你"), "不客气！"},
        {STR("help"), "FERMATA_MODEL_PROVIDER=openai\n"},
        {STR("帮助"), "FERMATA_MODEL_NAME="},
        {STR("whelp"), "You wrote"},
        {STR("book a room"), "> book a room\n\nI am only the demo model"},
        {STR("订个会议室"), "> 订个会议室\n\n我只是演示模型"},
        {STR("book 房"), "我只是演示模型"}, /* one Chinese character decides */
        {STR("café 😀"), "> café 😀\n"},
        {STR("  \n one \r\n two"), "> one ...\n"},
        {STR(""), "> \n"},
    };
    static struct heard heard[COUNT(rows)];
    for (size_t i = 0; i < COUNT(rows); i++) {
        heard[i] = (struct heard){0};
        heard_start(&heard[i], f->loop, &f->model, rows[i].message, 1);
    }
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct heard *h = &heard[i];
        heard_wait(h);
        assert_int_equal(h->end, MODEL_DONE);
        buf_char(&h->text, '\0');
        if (!strstr(h->text.p, rows[i].part))
            fail_msg("to \"%.*s\": \"%s\"", STR_ARG(rows[i].message), h->text.p);
        if (!strstr(h->text.p, "demo model") && !strstr(h->text.p, "演示模型"))
            fail_msg("does not say what it is: \"%s\"", h->text.p);
        heard_done(h);
    }
}

static void streams(void **state)
{
    struct fixture *f = *state;
    AUTO(heard_done) struct heard h = {0};
    heard_start(&h, f->loop, &f->model, STR("谢谢"), 1);
    heard_wait(&h);
    assert_true(h.callbacks > 5);
    assert_true(h.end_at - h.first_at >= (msec)(h.callbacks - 2) * 20);
    size_t chars = 0;
    for (size_t i = 0; i < h.text.len; i++) chars += ((unsigned char)h.text.p[i] & 0xc0) != 0x80;
    assert_int_equal(h.usage.output_tokens, (chars + 3) / 4);
    assert_int_equal(h.usage.input_tokens, (14 + 19 + 19 + 2 + 3) / 4);
}

/* A call is streamed as a text is: the same pace, whole characters. */
static void streams_calls(void **state)
{
    struct fixture *f = *state;
    static const struct {
        str said;
        const char *begins, *ends;
        size_t deltas; /* at least */
    } rows[] = {
        {STR("我的日程"), "t<我看一>t<下。\n>c0<call_7_1 calendar_read>a0<{\"f>a0<rom>",
         ":0>a0<0\"}>done", 20},
        {STR("show my calendar"),
         "t<Let me>t< look.>t<\n>c0<call_7_1 calendar_read>a0<{\"from>a0<\":\"202>", ">done", 12},
    };
    static struct heard heard[COUNT(rows)];
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct model_message message = {.role = STR("user"), .text = rows[i].said};
        heard[i] = (struct heard){0};
        heard_ask(&heard[i], f->loop, &f->model,
                  &(struct model_request){.system = STR("2026-11-15 05:52 UTC"),
                                          .messages = &message,
                                          .count = 1,
                                          .tools = STR("[{\"name\":\"calendar_read\"}]"),
                                          .round = 7});
    }
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct heard *h = &heard[i];
        heard_wait(h);
        str trace = buf_str(&h->trace);
        if (!str_starts(trace, str_c(rows[i].begins)) || !str_ends(trace, str_c(rows[i].ends)))
            fail_msg("got \"%.*s\"", STR_ARG(trace));
        assert_true(h->callbacks > rows[i].deltas);
        assert_true(h->end_at - h->first_at >= (msec)(h->callbacks - 2) * 20);
        heard_done(h);
    }
}

/* A long message is quoted up to a bound, between characters. */
static void long_quote(void **state)
{
    struct fixture *f = *state;
    AUTO(buf_done) struct buf message;
    buf_init(&message, 4096);
    for (int i = 0; i <= STORY_QUOTE_CHARS_MAX; i++) buf_append(&message, STR("房"));
    AUTO(heard_done) struct heard cut = {0};
    heard_start(&cut, f->loop, &f->model, buf_str(&message), 1);
    str shorter = {message.p, message.len - STR("房").len};
    AUTO(heard_done) struct heard whole = {0};
    heard_start(&whole, f->loop, &f->model, shorter, 1);
    heard_wait(&cut);
    heard_wait(&whole);
    assert_true(str_find(buf_str(&cut.text), STR("房 ...\n")) >= 0);
    assert_true(str_find(buf_str(&cut.text), shorter) >= 0);
    assert_true(str_find(buf_str(&cut.text), buf_str(&message)) < 0);
    assert_true(str_find(buf_str(&whole.text), STR("房\n")) >= 0);
}

/* The words of the answer belong to the call: they go with it at any time. */
static void cancelling(void **state)
{
    struct fixture *f = *state;
    static struct heard heard[12];
    AUTO(heard_done) struct heard witness = {0};
    for (size_t i = 0; i < COUNT(heard); i++) {
        heard[i] = (struct heard){.cancel_at = i};
        heard_start(&heard[i], f->loop, &f->model, STR("订个会议室"), 1);
        if (i == 0) heard_cancel(&heard[i]);
    }
    heard_start(&witness, f->loop, &f->model, STR("订个会议室"), 1);
    heard_wait(&witness);
    for (size_t i = 0; i < COUNT(heard); i++) {
        assert_true(heard[i].cancelled);
        assert_int_equal(heard[i].callbacks, i);
        heard_done(&heard[i]);
    }
}

/* Names and sizes of what came, and nothing of what is in it. */
static void files(void **state)
{
    struct fixture *f = *state;
    static const struct model_image cat = {
        .mime = STR("image/png"), .filename = STR("cat.png"), .bytes = STR("12345")};
    static const struct {
        str text;
        size_t images;
        const char *locale, *part;
        const char *absent;
    } rows[] = {
        {STR(""), 1, "en", "This has arrived:\n\n- cat.png, image/png, 5 bytes\n\nI am only", "> "},
        {STR(""), 1, "zh-CN", "已收到：\n\n- cat.png, image/png, 5 字节\n\n我只是演示模型", "> "},
        {STR("看"), 1, "en", "已收到：\n\n- cat.png", "arrived"},
        {STR("what is it?\n\n[file: a.txt, text/plain, 9 bytes]\n```\nplan a trip\n```"), 1, "en",
         "- cat.png, image/png, 5 bytes\n- a.txt, text/plain, 9 bytes\n\n", "trip"},
        {STR("[file: a.txt, text/plain, 9 bytes]\n````\n```\n[file: fake]\n````\n\n[image: "
             "http://x]"),
         0, "en", "- a.txt, text/plain, 9 bytes\n- http://x\n\n", "fake"},
        {STR("[文件：图.pdf，application/pdf，1.0 MiB]"), 0, "zh-CN",
         "- 图.pdf，application/pdf，1.0 MiB\n", "arrived"},
        {STR("show me [file: x] please"), 0, "en", "You wrote", "arrived"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        const struct model_message message = {.role = STR("user"),
                                              .text = rows[i].text,
                                              .images = &cat,
                                              .image_count = rows[i].images};
        AUTO(heard_done) struct heard h = {0};
        heard_ask(&h, f->loop, &f->model,
                  &(struct model_request){.messages = &message,
                                          .count = 1,
                                          .locale = str_c(rows[i].locale),
                                          .round = 1});
        heard_wait(&h);
        str text = buf_str(&h.text);
        if (str_find(text, str_c(rows[i].part)) < 0 || str_find(text, str_c(rows[i].absent)) >= 0)
            fail_msg("row %zu: got \"%.*s\"", i, STR_ARG(text));
    }
}

int test_demo(void)
{
#define CASE(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
    const struct CMUnitTest tests[] = {
        CASE(answers),       CASE(files),      CASE(streams),
        CASE(streams_calls), CASE(long_quote), CASE(cancelling),
    };
#undef CASE
    return cmocka_run_group_tests_name("model/demo", tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "base/limits.h"
#include "chat/channel.h"
#include "chat/platform/telegram_update.h"
#include "check.h"

#define TOKEN "123:AbC-secret_1"
#define AT(x) "https://tg.example" x

static const struct channel_home home = {
    .name = STR("tg"), .base_url = STR("https://tg.example"), .token = STR(TOKEN)};

/* An errand from one step to the next. */
struct trip {
    struct arena arena;
    struct errand errand;
    struct channel_request request;
};

static void begin(struct trip *trip)
{
    *trip = (struct trip){0};
    arena_init(&trip->arena);
    trip->errand.arena = &trip->arena;
    memset(trip->errand.random, 0xab, sizeof trip->errand.random);
}

static void finish(struct trip *trip)
{
    arena_done(&trip->arena);
}

static bool step(struct trip *trip, errand_fn *fn, const struct channel_reply *reply)
{
    trip->request = (struct channel_request){0};
    bool more = fn(&home, &trip->errand, reply, &trip->request);
    assert_true(str_find(str_c(trip->errand.detail), home.token) < 0);
    assert_null(strchr(trip->errand.detail, '\n'));
    return more;
}

static struct channel_reply answered(int status, const char *body)
{
    return (
        struct channel_reply){.sent = true, .status = status, .body = str_c(body), .reason = ""};
}

static bool replied(struct trip *trip, errand_fn *fn, int status, const char *body)
{
    struct channel_reply reply = answered(status, body);
    return step(trip, fn, &reply);
}

static void assert_has(str text, const char *part)
{
    if (str_find(text, str_c(part)) < 0) fail_msg("no \"%s\" in \"%.*s\"", part, STR_ARG(text));
}

/* ---- poll ---- */

#define OK_(result) "{\"ok\":true,\"result\":" result "}"
#define ALICE       "\"from\":{\"id\":42,\"is_bot\":false,\"first_name\":\"Al\",\"last_name\":\"Ice\"}"
#define CHAT        "\"chat\":{\"id\":42,\"type\":\"private\",\"first_name\":\"Al\"}"
#define MESSAGE(x)  "\"message\":{\"message_id\":3,\"date\":1700000000," ALICE "," CHAT "," x "}"
#define GROUP(x)                                      \
    "\"message\":{\"message_id\":3,\"date\":1," ALICE \
    ",\"chat\":{\"id\":-1001234567890,\"type\":\"supergroup\",\"title\":\"Team\\nA\"}," x "}"

static void poll_one(struct trip *trip, const char *update)
{
    char body[4096];
    snprintf(body, sizeof body, OK_("[{\"update_id\":900000000001,%s}]"), update);
    begin(trip);
    assert_true(step(trip, channel_telegram.poll, NULL));
    assert_false(replied(trip, channel_telegram.poll, 200, arena_cstr(&trip->arena, str_c(body))));
    assert_int_equal(trip->errand.verdict, VERDICT_DONE);
    assert_str(trip->errand.new_cursor, STR("900000000002"));
}

/* update, sender, text; sender NULL: nothing for us */
static const struct {
    const char *update, *sender, *text;
    bool group, follow;
} updates[] = {
    {MESSAGE("\"text\":\" hi \""), "42", "hi", false, false},
    {MESSAGE("\"text\":\"/start\""), "42", "", false, true},
    {MESSAGE("\"text\":\"/start payload\""), "42", "", false, true},
    {MESSAGE("\"text\":\"/start@our_bot\""), "42", "", false, true},
    {MESSAGE("\"text\":\"/started\""), "42", "/started", false, false},
    {MESSAGE("\"text\":\"/new@our_bot  now\""), "42", "/new@our_bot  now", false, false},
    {MESSAGE("\"text\":\"mail a@b\""), "42", "mail a@b", false, false},
    {MESSAGE("\"text\":\"/x a@b\""), "42", "/x a@b", false, false},
    {MESSAGE("\"sticker\":{\"file_id\":\"s\",\"emoji\":\"\xf0\x9f\x91\x8d\"}"), "42",
     "\xf0\x9f\x91\x8d", false, false},
    {GROUP("\"text\":\"hi all\""), "-1001234567890", "hi all", true, false},
    {MESSAGE("\"text\":\" \\n \""), NULL, "", false, false},
    {MESSAGE("\"location\":{}"), NULL, "", false, false},
    {MESSAGE("\"text\":7"), NULL, "", false, false},
    {"\"edited_message\":{" ALICE "," CHAT ",\"text\":\"hi\"}", NULL, "", false, false},
    {"\"message\":{" CHAT ",\"text\":\"nobody\"}", NULL, "", false, false},
    {"\"message\":{" ALICE ",\"text\":\"nowhere\"}", NULL, "", false, false},
    {"\"message\":{\"from\":{\"id\":42,\"is_bot\":true}," CHAT ",\"text\":\"bot\"}", NULL, "",
     false, false},
    {"\"message\":{\"from\":{\"id\":43}," CHAT ",\"text\":\"forged\"}", NULL, "", false, false},
    {"\"message\":{" ALICE ",\"chat\":{\"id\":-5,\"type\":\"channel\"},\"text\":\"hi\"}", NULL, "",
     false, false},
    {"\"message\":{\"from\":{\"id\":4.0},\"chat\":{\"id\":4.0,\"type\":\"private\"},\"text\":"
     "\"x\"}",
     NULL, "", false, false},
    {"\"message\":null", NULL, "", false, false},
    {"\"poll\":{}", NULL, "", false, false},
};

static void test_updates(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(updates); i++) {
        AUTO(finish) struct trip trip;
        poll_one(&trip, updates[i].update);
        if (trip.errand.inbound_count != (updates[i].sender != NULL))
            fail_msg("row %zu: %zu inbounds", i, trip.errand.inbound_count);
        if (!updates[i].sender) continue;
        const struct inbound *in = &trip.errand.inbounds[0];
        assert_str(in->id, STR("900000000001"));
        assert_str(in->sender, str_c(updates[i].sender));
        assert_int_equal(in->group, updates[i].group);
        assert_int_equal(in->follow, updates[i].follow);
        assert_str(in->name, updates[i].group ? STR("Team A") : STR("Al Ice"));
        assert_str(in->text, str_c(updates[i].text));
    }
}

static void test_message(void **state)
{
    (void)state;
    AUTO(finish) struct trip nul, trip;
    poll_one(&nul, MESSAGE("\"text\":\"a\\u0000b\""));
    assert_str(nul.errand.inbounds[0].text, STR("a\0b"));

    poll_one(&trip,
             MESSAGE("\"caption\":\"look\",\"is_topic_message\":true,\"message_thread_id\":8,"
                     "\"reply_to_message\":{\"message_id\":2},\"photo\":["
                     "{\"file_id\":\"small\",\"width\":90,\"height\":60},"
                     "{\"file_id\":\"big\",\"width\":900,\"height\":600,\"file_size\":5000},"
                     "{\"file_id\":\"mid\",\"width\":320,\"height\":200}],"
                     "\"document\":{\"file_id\":\"d\\\"1\",\"file_name\":\"a\\nb.pdf\","
                     "\"mime_type\":\"application/pdf\"},"
                     "\"voice\":{\"file_id\":\"v\",\"mime_type\":\"no type\"}"));
    assert_int_equal(trip.errand.inbound_count, 1);
    const struct inbound *in = trip.errand.inbounds;
    assert_str(in->text, STR("look"));
    assert_str(in->quoted, STR("2"));
    assert_str(in->reply_token, STR("8"));
    assert_int_equal(in->at, 1700000000000);
    assert_int_equal(in->file_count, 3);
    assert_str(in->files[0].ref, STR("{\"fileId\":\"big\"}"));
    assert_str(in->files[0].mime, STR("image/jpeg"));
    assert_str(in->files[0].name, STR("photo.jpg"));
    assert_int_equal(in->files[0].size, 5000);
    assert_str(in->files[1].ref, STR("{\"fileId\":\"d\\\"1\"}"));
    assert_str(in->files[1].name, STR("a b.pdf"));
    assert_str(in->files[1].mime, STR("application/pdf"));
    assert_str(in->files[2].name, STR("voice.ogg"));
    assert_str(in->files[2].mime, STR("audio/ogg"));
}

#define PRESS(from, chat)                                                                         \
    "\"callback_query\":{\"id\":\"7777\",\"from\":{\"id\":" from                                  \
    "},\"message\":{\"message_id\":5,"                                                            \
    "\"date\":0,\"chat\":{\"id\":" chat "},\"reply_markup\":{\"inline_keyboard\":[[{\"text\":"    \
    "\"No\",\"callback_data\":\"c:i:no\"}],[{\"text\":\"Tue\",\"callback_data\":\"c:i:c2\"}]]}}," \
    "\"data\":\"c:i:c2\"}"

static void test_press(void **state)
{
    (void)state;
    AUTO(finish) struct trip own;
    poll_one(&own, PRESS("42", "42,\"type\":\"private\""));
    assert_int_equal(own.errand.inbound_count, 1);
    const struct inbound *in = own.errand.inbounds;
    assert_str(in->sender, STR("42"));
    assert_str(in->button, STR("c:i:c2"));
    assert_str(in->callback_id, STR("7777"));
    assert_str(in->pressed, STR("5"));
    assert_str(in->label, STR("Tue"));
    assert_false(in->group);

    AUTO(finish) struct trip other; /* somebody else's private chat */
    poll_one(&other, PRESS("43", "42,\"type\":\"private\""));
    assert_int_equal(other.errand.inbound_count, 0);

    AUTO(finish) struct trip group; /* whoever reads this answers the press, and does no more */
    poll_one(&group, PRESS("43", "-9,\"type\":\"group\",\"title\":\"T\""));
    assert_int_equal(group.errand.inbound_count, 1);
    assert_true(group.errand.inbounds[0].group);
}

static void test_poll_request(void **state)
{
    (void)state;
    AUTO(finish) struct trip trip;
    begin(&trip);
    trip.errand.cursor = STR("900000000002");
    assert_true(step(&trip, channel_telegram.poll, NULL));
    assert_str(trip.request.url, STR(AT("/bot123:AbC-secret_1/getUpdates")));
    assert_string_equal(trip.request.method, "POST");
    assert_str(trip.request.body,
               STR("{\"offset\":900000000002,\"limit\":100,\"timeout\":50,\"allowed_updates\":["
                   "\"message\",\"callback_query\"]}"));
    assert_true(trip.request.timeout_ms > TELEGRAM_POLL_S * 1000);
    assert_false(replied(&trip, channel_telegram.poll, 200, OK_("[]")));
    assert_int_equal(trip.errand.verdict, VERDICT_DONE);
    assert_int_equal(trip.errand.new_cursor.len, 0);

    AUTO(finish) struct trip strange; /* a cursor that is none of ours is none */
    begin(&strange);
    strange.errand.cursor = STR("-1},{");
    assert_true(step(&strange, channel_telegram.poll, NULL));
    assert_true(str_find(strange.request.body, STR("offset")) < 0);
}

/* Ids that a double cannot hold, out of order: behind the highest. */
static void test_cursor(void **state)
{
    (void)state;
    AUTO(finish) struct trip trip;
    begin(&trip);
    assert_true(step(&trip, channel_telegram.poll, NULL));
    assert_false(replied(&trip, channel_telegram.poll, 200,
                         OK_("[{\"update_id\":9007199254740993,\"poll\":{}},{\"update_id\":5}]")));
    assert_str(trip.errand.new_cursor, STR("9007199254740994"));
}

/* More than we take at once: what was not read stays there. */
static void test_many(void **state)
{
    (void)state;
    AUTO(finish) struct trip trip;
    AUTO(buf_done) struct buf body;
    buf_init(&body, 1024 * 1024);
    buf_append(&body, STR("{\"ok\":true,\"result\":["));
    for (int i = 1; i <= CHANNEL_INBOUNDS_MAX + 1; i++)
        buf_printf(&body, "%s{\"update_id\":%d," MESSAGE("\"text\":\"%d\"") "}", i > 1 ? "," : "",
                   i, i);
    buf_append(&body, STR("]}"));
    begin(&trip);
    assert_true(step(&trip, channel_telegram.poll, NULL));
    buf_char(&body, '\0');
    assert_false(replied(&trip, channel_telegram.poll, 200, body.p));
    assert_int_equal(trip.errand.inbound_count, CHANNEL_INBOUNDS_MAX);
    assert_str(trip.errand.new_cursor, STR("201"));
}

/* What cannot be read is asked for alone, and left out if it is that one. */
static void test_poison(void **state)
{
    (void)state;
    AUTO(finish) struct trip trip;
    begin(&trip);
    assert_true(step(&trip, channel_telegram.poll, NULL));
    assert_true(replied(&trip, channel_telegram.poll, 200,
                        OK_("[{\"update_id\":5,\"message\":{\"text\":\"\\ud800\"}}]")));
    assert_has(trip.request.body, "\"limit\":1,\"timeout\":0");
    assert_false(replied(&trip, channel_telegram.poll, 200,
                         OK_("[{\"update_id\":5,\"message\":{\"text\":\"\\ud800\"}}]")));
    assert_int_equal(trip.errand.verdict, VERDICT_DONE);
    assert_int_equal(trip.errand.inbound_count, 0);
    assert_str(trip.errand.new_cursor, STR("6"));
    assert_has(str_c(trip.errand.detail), "left out");

    AUTO(finish) struct trip large;
    struct channel_reply cut = answered(200, "{\"ok\":true,\"result\":[{\"update_id\":7,\"me");
    cut.e = ERR_TOO_LARGE;
    begin(&large);
    assert_true(step(&large, channel_telegram.poll, NULL));
    assert_true(step(&large, channel_telegram.poll, &cut));
    assert_false(step(&large, channel_telegram.poll, &cut));
    assert_str(large.errand.new_cursor, STR("8"));

    AUTO(finish) struct trip page; /* not Telegram at all: nothing is skipped */
    begin(&page);
    assert_true(step(&page, channel_telegram.poll, NULL));
    assert_true(replied(&page, channel_telegram.poll, 200, "<html>"));
    assert_false(replied(&page, channel_telegram.poll, 200, "<html>"));
    assert_int_equal(page.errand.verdict, VERDICT_AGAIN);
    assert_int_equal(page.errand.new_cursor.len, 0);
}

/* ---- how errands end ---- */

#define NO(code, words) "{\"ok\":false,\"error_code\":" #code ",\"description\":\"" words "\"}"

static const struct {
    int status;
    const char *body;
    enum errand_verdict sends, polls;
    msec wait_ms;
    const char *detail;
} refusals[] = {
    {401, NO(401, "Unauthorized"), VERDICT_LOGIN, VERDICT_LOGIN, 0, "the token is wrong"},
    {404, NO(404, "Not Found"), VERDICT_LOGIN, VERDICT_LOGIN, 0, "the token is wrong"},
    {401, "<html>", VERDICT_AGAIN, VERDICT_AGAIN, 0, "not Telegram's answer: HTTP 401"},
    {404, "<html>", VERDICT_AGAIN, VERDICT_AGAIN, 0, "not Telegram's answer: HTTP 404"},
    {404, "", VERDICT_AGAIN, VERDICT_AGAIN, 0, "HTTP 404"},
    {404, "{}", VERDICT_AGAIN, VERDICT_AGAIN, 0, "HTTP 404"},
    {404, "[false]", VERDICT_AGAIN, VERDICT_AGAIN, 0, "HTTP 404"},
    {404, "{\"ok\":\"false\"}", VERDICT_AGAIN, VERDICT_AGAIN, 0, "HTTP 404"},
    {404, "{\"ok\":true,\"result\":1}", VERDICT_AGAIN, VERDICT_AGAIN, 0, "HTTP 404"},
    {404, "{\"ok\":false}", VERDICT_LOGIN, VERDICT_LOGIN, 0, "the token is wrong"},
    {403, NO(403, "Forbidden: bot was blocked by the user"), VERDICT_REFUSED, VERDICT_AGAIN, 0,
     "bot was blocked"},
    {400, NO(400, "Bad Request: chat not found"), VERDICT_REFUSED, VERDICT_AGAIN, 0,
     "(HTTP 400): Bad Request: chat not found"},
    {409, NO(409, "Conflict: terminated by other getUpdates request"), VERDICT_AGAIN, VERDICT_AGAIN,
     TELEGRAM_CONFLICT_MS, "another program polls this bot"},
    {409, NO(409, "Conflict: can't use getUpdates method while webhook is active"), VERDICT_AGAIN,
     VERDICT_AGAIN, TELEGRAM_CONFLICT_MS, "deleteWebhook"},
    {409, NO(409, "Conflict: terminated by setWebhook request"), VERDICT_AGAIN, VERDICT_AGAIN,
     TELEGRAM_CONFLICT_MS, "deleteWebhook"},
    {429, "{\"ok\":false,\"description\":\"Too Many\",\"parameters\":{\"retry_after\":17}}",
     VERDICT_AGAIN, VERDICT_AGAIN, 17000, "too many requests"},
    {429, "{\"ok\":false,\"parameters\":{\"retry_after\":99999999999999999}}", VERDICT_AGAIN,
     VERDICT_AGAIN, TELEGRAM_WAIT_S_MAX * 1000, "too many"},
    {429, "", VERDICT_AGAIN, VERDICT_AGAIN, 0, "too many"},
    {413, "<html>", VERDICT_REFUSED, VERDICT_AGAIN, 0, "too large"},
    {500, NO(500, "Internal"), VERDICT_AGAIN, VERDICT_AGAIN, 0, "in trouble (HTTP 500): Internal"},
    {502, "<html>", VERDICT_AGAIN, VERDICT_AGAIN, 0, "(HTTP 502)"},
    {302, "", VERDICT_AGAIN, VERDICT_AGAIN, 0, "(HTTP 302)"},
    {400, NO(400, "no 123:AbC-secret_1\\nhere 123:AbC-secret_1"), VERDICT_REFUSED, VERDICT_AGAIN, 0,
     "no *** here ***"},
};

static const struct outbound hello = {.to = STR("42"), .text = STR("hello")};

static void test_refusals(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(refusals); i++) {
        AUTO(finish) struct trip sent, polled;
        begin(&sent);
        sent.errand.message = &hello;
        assert_true(step(&sent, channel_telegram.send, NULL));
        assert_false(replied(&sent, channel_telegram.send, refusals[i].status, refusals[i].body));
        if (sent.errand.verdict != refusals[i].sends)
            fail_msg("row %zu: %d", i, sent.errand.verdict);
        assert_int_equal(sent.errand.wait_ms, refusals[i].wait_ms);
        assert_has(str_c(sent.errand.detail), refusals[i].detail);

        begin(&polled);
        assert_true(step(&polled, channel_telegram.poll, NULL));
        assert_false(replied(&polled, channel_telegram.poll, refusals[i].status, refusals[i].body));
        if (polled.errand.verdict != refusals[i].polls)
            fail_msg("row %zu: poll %d", i, polled.errand.verdict);
    }
}

/* What the network does, and whether Telegram may have seen it. */
static void test_broken(void **state)
{
    (void)state;
    const struct {
        struct channel_reply reply;
        enum errand_verdict sends;
    } rows[] = {
        {{.e = ERR_NETWORK, .sent = false, .reason = "no route to " AT("/bot" TOKEN)},
         VERDICT_AGAIN},
        {{.e = ERR_TIMEOUT, .sent = true, .reason = "timed out"}, VERDICT_UNKNOWN},
        {{.e = ERR_NETWORK,
          .sent = true,
          .status = 200,
          .body = STR("{\"ok\":tr"),
          .reason = "cut"},
         VERDICT_UNKNOWN},
        {{.e = ERR_NETWORK, .sent = true, .status = 200, .body = STR(OK_("{}")), .reason = "cut"},
         VERDICT_UNKNOWN},
        {{.e = ERR_NETWORK, .sent = true, .status = 403, .reason = "cut"}, VERDICT_REFUSED},
        {{.sent = true, .status = 200, .body = STR("{\"ok\":true}"), .reason = ""},
         VERDICT_UNKNOWN},
        {{.sent = true, .status = 200, .body = STR("[]"), .reason = ""}, VERDICT_UNKNOWN},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        AUTO(finish) struct trip trip, typing;
        begin(&trip);
        trip.errand.message = &hello;
        assert_true(step(&trip, channel_telegram.send, NULL));
        assert_false(step(&trip, channel_telegram.send, &rows[i].reply));
        if (trip.errand.verdict != rows[i].sends) fail_msg("row %zu: %d", i, trip.errand.verdict);
        assert_true(trip.errand.detail[0]);

        begin(&typing);
        typing.errand.peer = STR("42");
        assert_true(step(&typing, channel_telegram.typing, NULL));
        assert_false(step(&typing, channel_telegram.typing, &rows[i].reply));
        assert_int_not_equal(typing.errand.verdict, VERDICT_UNKNOWN);
    }
}

static void test_long_detail(void **state)
{
    (void)state;
    AUTO(finish) struct trip trip;
    AUTO(buf_done) struct buf body;
    buf_init(&body, 2048);
    buf_append(&body, STR("{\"ok\":false,\"description\":\""));
    for (int i = 0; i < 200; i++) buf_append(&body, STR("中"));
    buf_append(&body, STR("\"}"));
    buf_char(&body, '\0');
    begin(&trip);
    trip.errand.message = &hello;
    assert_true(step(&trip, channel_telegram.send, NULL));
    assert_false(replied(&trip, channel_telegram.send, 400, body.p));
    assert_true(strlen(trip.errand.detail) > sizeof trip.errand.detail - 8);
    assert_true(utf8_valid(str_c(trip.errand.detail)));
}

/* ---- send ---- */

static void test_send(void **state)
{
    (void)state;
    AUTO(finish) struct trip trip;
    struct outbound message = {
        .to = STR("-1001234567890"), .reply_token = STR("8"), .text = STR("a \"b\"\n<c> *d*")};
    begin(&trip);
    trip.errand.message = &message;
    assert_true(step(&trip, channel_telegram.send, NULL));
    assert_str(trip.request.url, STR(AT("/bot123:AbC-secret_1/sendMessage")));
    assert_str(
        trip.request.body,
        STR("{\"chat_id\":-1001234567890,\"message_thread_id\":8,\"text\":\"a \\\"b\\\"\\n<c> "
            "*d*\",\"link_preview_options\":{\"is_disabled\":true}}"));
    assert_false(
        replied(&trip, channel_telegram.send, 200, OK_("{\"message_id\":9007199254740993}")));
    assert_int_equal(trip.errand.verdict, VERDICT_DONE);
    assert_str(trip.errand.server_id, STR("9007199254740993"));

    static const char *const strangers[] = {"",    "alice", "0",  "-",
                                            "1,2", "1.5",   "07", "99999999999999999999"};
    for (size_t i = 0; i < COUNT(strangers); i++) {
        AUTO(finish) struct trip none;
        struct outbound lost = {.to = str_c(strangers[i]), .text = STR("x")};
        begin(&none);
        none.errand.message = &lost;
        assert_false(step(&none, channel_telegram.send, NULL));
        assert_int_equal(none.errand.verdict, VERDICT_REFUSED);
    }
}

#define DATA64 "0123456789012345678901234567890123456789012345678901234567890123"

static void test_buttons(void **state)
{
    (void)state;
    const struct {
        str buttons;
        bool group;
        const char *keyboard; /* NULL: none */
    } rows[] = {
        {STR("[{\"data\":\"c:i:c1\",\"label\":\"一\"},{\"data\":\"c:i:no\",\"label\":\"No\"}]"),
         false,
         "\"reply_markup\":{\"inline_keyboard\":[[{\"text\":\"一\",\"callback_data\":\"c:i:c1\"}],["
         "{"
         "\"text\":\"No\",\"callback_data\":\"c:i:no\"}]]}"},
        {STR("[{\"data\":\"" DATA64 "\",\"label\":\"x\"}]"), false, DATA64},
        {STR("[{\"data\":\"" DATA64 "4\",\"label\":\"x\"}]"), false, NULL},
        {STR("[{\"data\":\"d\",\"label\":\"x\"},{\"data\":\"d\",\"label\":\" \"}]"), false, NULL},
        {STR("[{\"data\":\"d\",\"label\":\"x\"}]"), true, NULL},
        {STR("[]"), false, NULL},
        {STR("{\"data\":\"d\"}"), false, NULL},
        {STR("nonsense"), false, NULL},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        AUTO(finish) struct trip trip;
        struct outbound message = {
            .to = STR("42"), .text = STR("?"), .buttons = rows[i].buttons, .group = rows[i].group};
        begin(&trip);
        trip.errand.message = &message;
        assert_true(step(&trip, channel_telegram.send, NULL));
        bool has = str_find(trip.request.body, STR("reply_markup")) >= 0;
        if (has != (rows[i].keyboard != NULL)) fail_msg("row %zu: %d", i, has);
        if (rows[i].keyboard) assert_has(trip.request.body, rows[i].keyboard);
    }
    /* The longest that question_text makes: "c:", an id with its prefix, ":", a choice. */
    assert_true(sizeof "c:int_0123456789abcdefghjkmnpqrs:c50" - 1 <=
                channel_telegram.traits.button_bytes_max);
}

#define BOUNDARY "abababababababababababababababababababababababababababababababab"

static void test_file(void **state)
{
    (void)state;
    AUTO(finish) struct trip trip;
    struct outbound message = {.to = STR("42"),
                               .file_name = STR("a\"b/c\r\n图.png"),
                               .file_mime = STR("image/png"),
                               .file_bytes = STR("\x89PNG\0\r\n")};
    begin(&trip);
    trip.errand.message = &message;
    assert_true(step(&trip, channel_telegram.send, NULL));
    assert_str(trip.request.url, STR(AT("/bot123:AbC-secret_1/sendPhoto")));
    assert_str(trip.request.headers[0].value, STR("multipart/form-data; boundary=" BOUNDARY));
    assert_str(trip.request.body,
               STR("--" BOUNDARY
                   "\r\nContent-Disposition: form-data; name=\"chat_id\"\r\n\r\n42\r\n"
                   "--" BOUNDARY "\r\nContent-Disposition: form-data; name=\"photo\"; "
                   "filename=\"a_b_c__图.png\"\r\nContent-Type: image/png\r\n\r\n\x89PNG\0\r\n\r\n"
                   "--" BOUNDARY "--\r\n"));
    assert_true(replied(&trip, channel_telegram.send, 400, NO(400, "PHOTO_INVALID_DIMENSIONS")));
    assert_str(trip.request.url, STR(AT("/bot123:AbC-secret_1/sendDocument")));
    assert_has(trip.request.body, "name=\"document\"");
    assert_false(replied(&trip, channel_telegram.send, 200, OK_("{\"message_id\":12}")));
    assert_str(trip.errand.server_id, STR("12"));

    AUTO(finish) struct trip document;
    struct outbound other = {
        .to = STR("42"), .file_mime = STR("text/x\r\nEvil: 1"), .file_bytes = STR_EMPTY};
    begin(&document);
    document.errand.message = &other;
    assert_true(step(&document, channel_telegram.send, NULL));
    assert_has(document.request.url, "/sendDocument");
    assert_has(document.request.body,
               "filename=\"file\"\r\nContent-Type: application/octet-stream");
    assert_false(replied(&document, channel_telegram.send, 400, NO(400, "file must be non-empty")));
    assert_int_equal(document.errand.verdict, VERDICT_REFUSED);

    AUTO(finish) struct trip large;
    other.file_bytes = (str){"", CHANNEL_FILE_BYTES_MAX + 1}; /* looked at by its length alone */
    begin(&large);
    large.errand.message = &other;
    assert_false(step(&large, channel_telegram.send, NULL));
    assert_int_equal(large.errand.verdict, VERDICT_REFUSED);
}

/* Whatever fits the traits is at most what Telegram takes. */
static void test_traits(void **state)
{
    (void)state;
    const struct channel_traits *traits = &channel_telegram.traits;
    uint64_t most = 0;
    for (uint64_t wide = 0; wide * 4 <= traits->bytes_max && wide <= traits->chars_max; wide++) {
        uint64_t narrow = traits->bytes_max - wide * 4;
        if (narrow > traits->chars_max - wide) narrow = traits->chars_max - wide;
        if (wide * 2 + narrow > most) most = wide * 2 + narrow;
    }
    assert_int_equal(most, TELEGRAM_TEXT_UNITS_MAX);
    assert_ptr_equal(channel_kind(STR("telegram")), &channel_telegram);
}

/* ---- mark, typing, fetch ---- */

static void test_mark(void **state)
{
    (void)state;
    AUTO(finish) struct trip trip;
    struct receipt receipt = {.to = STR("42"),
                              .callback_id = STR("77\"7"),
                              .server_id = STR("5"),
                              .text = STR("Which day?\n✓ Tue"),
                              .say = STR("Tue")};
    begin(&trip);
    trip.errand.receipt = &receipt;
    assert_true(step(&trip, channel_telegram.mark, NULL));
    assert_has(trip.request.url, "/answerCallbackQuery");
    assert_str(trip.request.body, STR("{\"callback_query_id\":\"77\\\"7\",\"text\":\"Tue\"}"));
    assert_true(replied(&trip, channel_telegram.mark, 400, NO(400, "query is too old")));
    assert_has(trip.request.url, "/editMessageText");
    assert_str(trip.request.body,
               STR("{\"chat_id\":42,\"message_id\":5,\"text\":\"Which day?\\n✓ Tue\","
                   "\"link_preview_options\":{\"is_disabled\":true},"
                   "\"reply_markup\":{\"inline_keyboard\":[]}}"));
    assert_false(replied(&trip, channel_telegram.mark, 400,
                         NO(400, "Bad Request: message is not modified: same")));
    assert_int_equal(trip.errand.verdict, VERDICT_DONE);
    assert_string_equal(trip.errand.detail, "");
}

static void test_mark_parts(void **state)
{
    (void)state;
    struct receipt press = {.to = STR("42"), .callback_id = STR("7")};
    struct receipt settled = {.to = STR("42"), .server_id = STR("5")};
    struct receipt nothing = {.to = STR("42")};
    AUTO(finish) struct trip a, b, c, d;

    begin(&a);
    a.errand.receipt = &press;
    assert_true(step(&a, channel_telegram.mark, NULL));
    assert_str(a.request.body, STR("{\"callback_query_id\":\"7\"}"));
    assert_false(replied(&a, channel_telegram.mark, 500, ""));
    assert_int_equal(a.errand.verdict, VERDICT_AGAIN);

    begin(&b);
    b.errand.receipt = &settled;
    assert_true(step(&b, channel_telegram.mark, NULL));
    assert_has(b.request.url, "/editMessageReplyMarkup");
    assert_false(replied(&b, channel_telegram.mark, 400, NO(400, "message can't be edited")));
    assert_int_equal(b.errand.verdict, VERDICT_REFUSED);

    begin(&c);
    c.errand.receipt = &nothing;
    assert_false(step(&c, channel_telegram.mark, NULL));
    assert_int_equal(c.errand.verdict, VERDICT_DONE);

    press.server_id = STR("5");
    begin(&d);
    d.errand.receipt = &press;
    assert_true(step(&d, channel_telegram.mark, NULL));
    assert_false(replied(&d, channel_telegram.mark, 401, NO(401, "Unauthorized")));
    assert_int_equal(d.errand.verdict, VERDICT_LOGIN);
}

/* A text that Telegram would not take does not keep the buttons there. */
static void test_mark_long(void **state)
{
    (void)state;
    static const char *const units[] = {"x", "\xf0\x9f\x91\x8d"};
    for (size_t i = 0; i < COUNT(units); i++) {
        for (unsigned over = 0; over < 2; over++) {
            AUTO(finish) struct trip trip;
            AUTO(buf_done) struct buf text;
            buf_init(&text, 64 * 1024);
            unsigned count = TELEGRAM_TEXT_UNITS_MAX / (i ? 2 : 1) + over;
            for (unsigned k = 0; k < count; k++) buf_append(&text, str_c(units[i]));
            struct receipt receipt = {
                .to = STR("42"), .server_id = STR("5"), .text = buf_str(&text)};
            begin(&trip);
            trip.errand.receipt = &receipt;
            assert_true(step(&trip, channel_telegram.mark, NULL));
            assert_has(trip.request.url, over ? "/editMessageReplyMarkup" : "/editMessageText");
        }
    }
}

static void test_typing(void **state)
{
    (void)state;
    AUTO(finish) struct trip trip, stop;
    begin(&trip);
    trip.errand.peer = STR("42");
    trip.errand.reply_token = STR("8");
    assert_true(step(&trip, channel_telegram.typing, NULL));
    assert_has(trip.request.url, "/sendChatAction");
    assert_str(trip.request.body,
               STR("{\"chat_id\":42,\"message_thread_id\":8,\"action\":\"typing\"}"));
    assert_false(replied(&trip, channel_telegram.typing, 200, OK_("true")));
    assert_int_equal(trip.errand.verdict, VERDICT_DONE);

    begin(&stop);
    stop.errand.peer = STR("42");
    stop.errand.stop = true;
    assert_false(step(&stop, channel_telegram.typing, NULL));
    assert_int_equal(stop.errand.verdict, VERDICT_DONE);
}

static void test_fetch(void **state)
{
    (void)state;
    AUTO(finish) struct trip trip;
    struct inbound_file file = {.ref = STR("{\"fileId\":\"AgAC\"}")};
    begin(&trip);
    trip.errand.file = &file;
    assert_true(step(&trip, channel_telegram.fetch, NULL));
    assert_str(trip.request.body, STR("{\"file_id\":\"AgAC\"}"));
    assert_true(replied(&trip, channel_telegram.fetch, 200,
                        OK_("{\"file_id\":\"AgAC\",\"file_path\":\"photos/a?b#%.jpg\"}")));
    assert_string_equal(trip.request.method, "GET");
    assert_str(trip.request.url, STR(AT("/file/bot123:AbC-secret_1/photos/a%3Fb%23%25.jpg")));
    assert_int_equal(trip.request.bytes_max, CHANNEL_FILE_BYTES_MAX);
    assert_false(replied(&trip, channel_telegram.fetch, 200, "JFIF"));
    assert_int_equal(trip.errand.verdict, VERDICT_DONE);
    assert_str(trip.errand.bytes, STR("JFIF"));
}

/* ref, what getFile says, what the download ends with; how it ends */
static const struct {
    const char *ref, *answer;
    struct channel_reply last;
    enum errand_verdict verdict;
} fetches[] = {
    {"{}", NULL, {0}, VERDICT_REFUSED},
    {"", NULL, {0}, VERDICT_REFUSED},
    {"{\"fileId\":\"f\"}", NO(400, "file is too big"), {0}, VERDICT_REFUSED},
    {"{\"fileId\":\"f\"}", OK_("{}"), {0}, VERDICT_REFUSED},
    {"{\"fileId\":\"f\"}", OK_("{\"file_path\":\"/etc/passwd\"}"), {0}, VERDICT_REFUSED},
    {"{\"fileId\":\"f\"}", OK_("{\"file_path\":\"a/../b\"}"), {0}, VERDICT_REFUSED},
    {"{\"fileId\":\"f\"}", OK_("{\"file_path\":\"..\"}"), {0}, VERDICT_REFUSED},
    {"{\"fileId\":\"f\"}", OK_("{\"file_path\":\"a//b\"}"), {0}, VERDICT_REFUSED},
    {"{\"fileId\":\"f\"}", OK_("{\"file_path\":\"a\\\\b\"}"), {0}, VERDICT_REFUSED},
    {"{\"fileId\":\"f\"}", OK_("{\"file_path\":\"a\\u0000b\"}"), {0}, VERDICT_REFUSED},
    {"{\"fileId\":\"f\"}",
     OK_("{\"file_path\":\"a\",\"file_size\":10485761}"),
     {0},
     VERDICT_REFUSED},
    {"{\"fileId\":\"f\"}",
     OK_("{\"file_path\":\"a\",\"file_size\":10485760}"),
     {.e = ERR_TOO_LARGE, .sent = true, .status = 200, .reason = "too large"},
     VERDICT_REFUSED},
    {"{\"fileId\":\"f\"}",
     OK_("{\"file_path\":\"..a\"}"),
     {.sent = true, .status = 404, .reason = ""},
     VERDICT_REFUSED},
    {"{\"fileId\":\"f\"}",
     OK_("{\"file_path\":\"a\"}"),
     {.e = ERR_NETWORK, .sent = true, .status = 200, .reason = "cut"},
     VERDICT_AGAIN},
    {"{\"fileId\":\"f\"}",
     OK_("{\"file_path\":\"a\"}"),
     {.sent = true, .status = 503, .reason = ""},
     VERDICT_AGAIN},
    {"{\"fileId\":\"f\"}",
     OK_("{\"file_path\":\"a\"}"),
     {.sent = true, .status = 401, .reason = ""},
     VERDICT_AGAIN},
    {"{\"fileId\":\"f\"}",
     OK_("{\"file_path\":\"a\"}"),
     {.sent = true, .status = 401, .body = STR(NO(401, "Unauthorized")), .reason = ""},
     VERDICT_LOGIN},
};

static void test_fetch_ends(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(fetches); i++) {
        AUTO(finish) struct trip trip;
        struct inbound_file file = {.ref = str_c(fetches[i].ref)};
        begin(&trip);
        trip.errand.file = &file;
        bool more = step(&trip, channel_telegram.fetch, NULL);
        assert_int_equal(more, fetches[i].answer != NULL);
        if (more) {
            int status = str_starts(str_c(fetches[i].answer), STR("{\"ok\":true")) ? 200 : 400;
            more = replied(&trip, channel_telegram.fetch, status, fetches[i].answer);
            if (more != (fetches[i].last.reason != NULL)) fail_msg("row %zu goes on: %d", i, more);
        }
        if (more) assert_false(step(&trip, channel_telegram.fetch, &fetches[i].last));
        if (trip.errand.verdict != fetches[i].verdict)
            fail_msg("row %zu: %d", i, trip.errand.verdict);
        assert_true(trip.errand.detail[0]);
        assert_int_equal(trip.errand.bytes.len, 0);
    }
}

int test_telegram(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_updates),   cmocka_unit_test(test_message),
        cmocka_unit_test(test_press),     cmocka_unit_test(test_poll_request),
        cmocka_unit_test(test_cursor),    cmocka_unit_test(test_many),
        cmocka_unit_test(test_poison),    cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_broken),    cmocka_unit_test(test_long_detail),
        cmocka_unit_test(test_send),      cmocka_unit_test(test_buttons),
        cmocka_unit_test(test_file),      cmocka_unit_test(test_traits),
        cmocka_unit_test(test_mark),      cmocka_unit_test(test_mark_parts),
        cmocka_unit_test(test_mark_long), cmocka_unit_test(test_typing),
        cmocka_unit_test(test_fetch),     cmocka_unit_test(test_fetch_ends),
    };
    return cmocka_run_group_tests_name("telegram", tests, NULL, NULL);
}

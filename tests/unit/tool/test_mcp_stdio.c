/* SPDX-License-Identifier: Apache-2.0
 *
 * Links to real children: shell scripts that answer, chatter, die in mid-line, flood, and stay.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/limits.h"
#include "check.h"
#include "mcp/client/mcp.h"
#include "mcp_link_kit.h"

static void start(struct owner *owner, const char *script)
{
    const str command[] = {STR("sh"), STR("-c"), str_c(script)};
    const struct mcp_pair env[] = {{STR("SECRET"), STR("s3cret")}, {STR("TERM"), STR("dumb")}};
    owner_init(owner);
    owner->link = mcp_stdio_new(owner->loop, command, COUNT(command), env, COUNT(env), NULL,
                                &owner_events, owner);
}

static void finish(struct owner *owner)
{
    owner_done(owner);
    loop_free(owner->loop);
}

/* A message of ours is read as a line; REPLY answers it with its own number. */
#define REPLY(text) \
    "id=${line#*id\\\":}; id=${id%%,*}; echo \"{\\\"id\\\":$id,\\\"result\\\":" text "}\"; "

/* ---- what is told, from the first line to the last ---- */

static void children_are_told_in_order(void **state)
{
    (void)state;
    static const struct {
        const char *script;
        unsigned requests; /* sent before it runs */
        const char *told, *why;
    } rows[] = {
        {"read line; echo '{\"id\":1,\"result\":{}}'; read line; exit 0", 1,
         "open\nmessage {\"id\":1,\"result\":{}}\n", NULL},
        /* noise around messages, standard error, an unfinished line of each */
        {"echo ready; echo warn >&2; echo '{\"method\":\"m\"}'; printf '{\"half'; printf tail >&2; "
         "exit 3",
         0, NULL, "sh ended with status 3\n"},
        /* dies in mid-line with requests open */
        {"read line; read line; printf '{\"id\":1,\"res'; kill -9 $$", 2,
         "open\nlost 1 LOST 0\nlost 2 LOST 0\ndown\n",
         "sh was killed by signal 9\nsh was killed by signal 9\nsh was killed by signal 9\n"},
        {"read line; exec no-such-program-here 2>&-", 1, "open\nlost 1 LOST 0\ndown\n",
         "sh ended with status 127\nsh ended with status 127\n"},
        /* answered before it died; the other was not */
        {"read line; read line; echo '{\"id\":2,\"error\":{}}'; exit 0", 2,
         "open\nmessage {\"id\":2,\"error\":{}}\nlost 1 LOST 0\ndown\n",
         "sh ended with status 0\nsh ended with status 0\n"},
        /* closes its output and stays: ended by us */
        {"exec >&-; exec sleep 60", 1, "open\nlost 1 LOST 0\ndown\n",
         "sh was killed by signal 15\nsh was killed by signal 15\n"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct owner owner;
        start(&owner, rows[i].script);
        for (unsigned request = 1; request <= rows[i].requests; request++)
            owner_send(&owner, request);
        owner_run(&owner, rows[i].why ? "down" : "message", 1);
        if (rows[i].told) assert_str(buf_str(&owner.told), str_c(rows[i].told));
        if (rows[i].why) assert_str(buf_str(&owner.whys), str_c(rows[i].why));
        if (!rows[i].told) { /* two pipes: any order between them */
            assert_true(owner_heard(&owner, "open\n"));
            assert_true(owner_heard(&owner, "stderr ready\n"));
            assert_true(owner_heard(&owner, "message {\"method\":\"m\"}\n"));
            assert_true(owner_heard(&owner, "stderr warn\n"));
            assert_true(owner_heard(&owner, "stderr tail\ndown\n"));
            assert_false(owner_heard(&owner, "half"));
        }
        finish(&owner);
    }
}

static void a_program_that_is_not_there_was_surely_not_asked(void **state)
{
    (void)state;
    struct owner owner;
    const str command[] = {STR("no-such-program-here"), STR("s3cret")};
    owner_init(&owner);
    owner.link = mcp_stdio_new(owner.loop, command, 2, NULL, 0, NULL, &owner_events, &owner);
    owner_send(&owner, 1);
    owner_send(&owner, 0);
    owner_run(&owner, "down", 1);
    assert_str(buf_str(&owner.told), STR("lost 1 AWAY 0\ndown\n"));
    assert_true(str_find(buf_str(&owner.whys), STR("cannot be started: no such program")) > 0);
    assert_true(str_find(buf_str(&owner.whys), STR("s3cret")) < 0);
    finish(&owner);
}

static void its_environment_is_clean(void **state)
{
    (void)state;
    struct owner owner;
    setenv("FERMATA_TEST_KEY", "key-of-ours", 1);
    setenv("LANG", "C.UTF-8", 1);
    start(&owner, "env >&2; read line");
    owner_run(&owner, "stderr TERM=", 1);
    mcp_link_close(owner.link, NULL, 0);
    owner_run(&owner, "down", 1);
    unsetenv("FERMATA_TEST_KEY");
    assert_true(owner_heard(&owner, "stderr SECRET=s3cret\n"));
    assert_true(owner_heard(&owner, "stderr TERM=dumb\n"));
    assert_true(owner_heard(&owner, "stderr LANG=C.UTF-8\n"));
    assert_true(owner_heard(&owner, "stderr PATH="));
    assert_false(owner_heard(&owner, "key-of-ours"));
    finish(&owner);
}

/* ---- many and large ---- */

static void answers_find_their_requests(void **state)
{
    (void)state;
    enum { COUNT_OF = 500 };
    struct owner owner;
    start(&owner, "while read line; do " REPLY("[]") " done");
    for (uint64_t request = 1; request <= COUNT_OF; request++) owner_send(&owner, request);
    mcp_link_forget(owner.link, 3);
    mcp_link_forget(owner.link, 3);
    owner_run(&owner, "message", COUNT_OF);
    mcp_link_close(owner.link, NULL, 0);
    owner_run(&owner, "down", 1);
    assert_false(owner_heard(&owner, "lost"));
    assert_true(owner_heard(&owner, "message {\"id\":500,\"result\":[]}\n"));
    finish(&owner);
}

static void too_many_are_refused(void **state)
{
    (void)state;
    struct owner owner;
    start(&owner, "cat >/dev/null");
    for (uint64_t request = 1; request <= MCP_OPEN_MAX + 2; request++) owner_send(&owner, request);
    owner_run(&owner, "lost", 2);
    assert_true(owner_heard(&owner, "lost 1025 AWAY 0\nlost 1026 AWAY 0\n"));
    mcp_link_forget(owner.link, 1);
    owner_send(&owner, 2000); /* there is room again */
    mcp_link_close(owner.link, NULL, 0);
    owner_send(&owner, 2001);
    owner_run(&owner, "down", 1);
    assert_true(owner_heard(&owner, "lost 2001 AWAY 0\n"));
    assert_true(owner_heard(&owner, "lost 2000 LOST 0\ndown\n"));
    assert_false(owner_heard(&owner, "lost 1 "));
    finish(&owner);
}

static void a_message_may_have_64_mib_and_not_one_byte_more(void **state)
{
    (void)state;
    for (int more = 0; more < 2; more++) {
        struct owner owner;
        char script[256];
        snprintf(
            script, sizeof script,
            "read line; printf '{\"a\":\"'; head -c %d /dev/zero | tr '\\0' x; echo '\"}'; read "
            "line",
            MCP_MESSAGE_BYTES_MAX - 8 + more);
        start(&owner, script);
        owner.short_messages = true;
        owner_send(&owner, 1);
        owner_run(&owner, more ? "down" : "message of 67108864", 1);
        if (more) {
            assert_str(buf_str(&owner.told), STR("open\nlost 1 LOST 0\ndown\n"));
            assert_true(str_find(buf_str(&owner.whys), STR("more than 64 MiB")) > 0);
        }
        finish(&owner);
    }
}

/* What did not even begin to leave us was surely not done. */
static void a_child_that_does_not_read_is_told_from_one_that_did(void **state)
{
    (void)state;
    struct owner owner;
    enum { BYTES = 1024 * 1024 };
    char *json = malloc(BYTES);
    memset(json, ' ', BYTES);
    memcpy(json, "{", 1);
    json[BYTES - 1] = '}';
    start(&owner, "trap '' TERM; exec sleep 60");
    owner_run(&owner, "open", 1);
    for (uint64_t request = 1; request <= 65; request++)
        mcp_link_send(owner.link, &(struct mcp_post){.json = {json, BYTES}, .request = request});
    owner_run(&owner, "lost", 1); /* more than may wait */
    assert_true(owner_heard(&owner, "lost 64 AWAY 0\n") || owner_heard(&owner, "lost 65 AWAY 0\n"));
    mcp_link_send(owner.link, &(struct mcp_post){.json = {json, BYTES}});
    owner_run(&owner, "down", 1); /* a response that cannot be given ends it */
    assert_true(owner_heard(&owner, "lost 1 LOST 0\nlost 2 AWAY 0\n"));
    assert_true(str_ends(buf_str(&owner.whys), STR("does not read what was sent before\n")));
    free(json);
    finish(&owner);
}

static void floods_of_standard_error_are_counted(void **state)
{
    (void)state;
    struct owner owner;
    start(&owner, "i=0; while [ $i -lt 5000 ]; do echo line $i >&2; i=$((i+1)); done; "
                  "head -c 10000 /dev/zero | tr '\\0' y >&2");
    owner_run(&owner, "down", 1);
    assert_true(owner_heard(&owner, "stderr line 99\n"));
    assert_false(owner_heard(&owner, "stderr line 100\n"));
    assert_true(owner_heard(&owner, "stderr (4901 more lines were left out)\ndown\n"));
    finish(&owner);
}

static void a_long_line_of_standard_error_is_cut(void **state)
{
    (void)state;
    struct owner owner;
    start(&owner, "head -c 10000 /dev/zero | tr '\\0' y >&2; echo >&2; echo next >&2");
    owner_run(&owner, "down", 1);
    assert_int_equal(owner.told.len,
                     strlen("open\nstderr \nstderr next\ndown\n") + MCP_STDERR_LINE_BYTES_MAX);
    finish(&owner);
}

/* ---- the end ---- */

static void closing_takes_as_much_as_it_needs(void **state)
{
    (void)state;
    static const struct {
        const char *script, *why;
    } rows[] = {
        {"while read line; do :; done; exit 5", "sh ended with status 5\n"},
        {"while read line; do :; done; exec sleep 60", "sh was killed by signal 15\n"},
        {"trap '' TERM; while read line; do :; done; exec sleep 60", "sh was killed by signal 9\n"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct owner owner;
        start(&owner, rows[i].script);
        owner_run(&owner, "open", 1);
        mcp_link_listen(owner.link, NULL, 0); /* nothing */
        mcp_link_close(owner.link, NULL, 0);
        mcp_link_close(owner.link, NULL, 0);
        owner_run(&owner, "down", 1);
        assert_str(buf_str(&owner.told), STR("open\ndown\n"));
        assert_str(buf_str(&owner.whys), str_c(rows[i].why));
        finish(&owner);
    }
}

/* An answer that comes while it is being ended is still one. */
static void the_last_answer_counts(void **state)
{
    (void)state;
    struct owner owner;
    start(&owner, "read line; read end; " REPLY("1"));
    owner_send(&owner, 4);
    owner_run(&owner, "open", 1);
    mcp_link_close(owner.link, NULL, 0);
    owner_run(&owner, "down", 1);
    assert_str(buf_str(&owner.told), STR("open\nmessage {\"id\":4,\"result\":1}\ndown\n"));
    finish(&owner);
}

static void it_may_be_freed_in_any_callback(void **state)
{
    (void)state;
    static const char *const moments[] = {"open",   "message", "stderr noise", "stderr e",
                                          "lost 1", "lost 2",  "down"};
    for (size_t i = 0; i < COUNT(moments); i++) {
        struct owner owner;
        start(&owner, "echo '{}'; echo '{}'; echo noise; echo e >&2; echo f >&2; exit 0");
        owner.free_at = moments[i];
        owner_send(&owner, 1);
        owner_send(&owner, 2);
        owner_run(&owner, moments[i], 1);
        assert_null(owner.link);
        finish(&owner);
    }
    struct owner owner;
    start(&owner, "echo '{}'");
    owner_send(&owner, 1);
    finish(&owner); /* at once */
}

int test_mcp_stdio(void)
{
    signal(SIGPIPE, SIG_IGN); /* as the server does */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(children_are_told_in_order),
        cmocka_unit_test(a_program_that_is_not_there_was_surely_not_asked),
        cmocka_unit_test(its_environment_is_clean),
        cmocka_unit_test(answers_find_their_requests),
        cmocka_unit_test(too_many_are_refused),
        cmocka_unit_test(a_message_may_have_64_mib_and_not_one_byte_more),
        cmocka_unit_test(a_child_that_does_not_read_is_told_from_one_that_did),
        cmocka_unit_test(floods_of_standard_error_are_counted),
        cmocka_unit_test(a_long_line_of_standard_error_is_cut),
        cmocka_unit_test(closing_takes_as_much_as_it_needs),
        cmocka_unit_test(the_last_answer_counts),
        cmocka_unit_test(it_may_be_freed_in_any_callback),
    };
    return cmocka_run_group_tests_name("mcp_stdio", tests, NULL, NULL);
}

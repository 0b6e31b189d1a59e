/* SPDX-License-Identifier: Apache-2.0
 *
 * The server that commands of the terminal talk to: by URL, or by the socket of the data folder.
 * The way is found as `fermata mcp` finds it: --url or FERMATA_URL, else the socket, which only who
 * owns the folder can open. The key is FERMATA_API_KEY; without a login none is needed.
 */
#include "term/link.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/limits.h"
#include "base/say.h"
#include "term/term_text.h"
#include "term/term_words.h"

void link_init(struct link *link, struct arena *arena, const struct config *config,
               const struct args *args)
{
    str url = args->url.len ? args->url : str_c(getenv("FERMATA_URL"));
    while (str_ends(url, STR("/"))) url.len--;
    *link = (struct link){.lang = lang_asked(environ), .folder = config->data.p};
    link->url = url.len ? arena_cstr(arena, url) : "http://localhost";
    if (!url.len) link->socket = arena_printf(arena, "%s/fermata.sock", config->data.p).p;
    if (config->api_key.len)
        link->bearer = arena_printf(arena, "Bearer %.*s", STR_ARG(config->api_key)).p;
}

size_t link_fields(const struct link *link, struct client_header fields[static LINK_FIELDS_MAX])
{
    size_t count = 0;
    fields[count++] =
        (struct client_header){"Accept-Language", link->lang == LANG_ZH ? "zh-CN" : "en"};
    if (link->bearer) fields[count++] = (struct client_header){"Authorization", link->bearer};
    return count;
}

const char *link_url(const struct link *link, struct arena *arena, str path)
{
    return arena_printf(arena, "%s%.*s", link->url, STR_ARG(path)).p;
}

bool link_good(const struct link_answer *answer)
{
    return !answer->err && answer->status >= 200 && answer->status < 300;
}

/* The members of a problem document. */
static void read_problem(struct arena *arena, struct link_answer *answer)
{
    struct json *json = NULL;
    if (answer->err || link_good(answer) || !answer->body.len) return;
    if (json_parse(arena, answer->body, &json, NULL)) return;
    answer->problem = json_text(json_get(json, STR("detail")));
    answer->code = json_text(json_get(json, STR("code")));
}

str link_trouble(const struct link *link, struct arena *arena, const struct link_answer *answer)
{
    enum lang lang = link->lang;
    if (answer->status == 401) return words(lang, W_NEEDS_KEY);
    if (!answer->err && answer->problem.len) return term_clean(arena, answer->problem, false);
    if (!answer->err) return arena_printf(arena, "%s (%d)", word(lang, W_REFUSED), answer->status);
    bool there = !link->socket;
    str reason = term_clean(arena, answer->reason, false);
    if (!there && answer->err == ERR_NETWORK) {
        /* The client would speak of ports. Nothing is said of a socket that is not there or that nobody
         * listens on: then no server runs, and that is said already. */
        bool open = !access(link->socket, R_OK | W_OK) || errno == ENOENT;
        reason = open ? STR_EMPTY : str_c(strerror(errno));
    }
    return arena_printf(arena, "%s %s%s%.*s%s",
                        word(lang, there ? W_NO_SERVER_URL : W_NO_SERVER_DATA),
                        say(str_c(there ? link->url : link->folder)).text, reason.len ? " (" : "",
                        STR_ARG(reason), reason.len ? ")" : "");
}

int link_failed(const struct link *link, struct arena *arena, const struct link_answer *answer)
{
    str why = link_trouble(link, arena, answer);
    fprintf(stderr, "fermata: %.*s\n", STR_ARG(why));
    return EXIT_FAILED;
}

bool link_check(const struct link *link)
{
    AUTO(arena_done) struct arena arena;
    str url = str_c(link->url);
    arena_init(&arena);
    if (!str_starts(url, STR("http://")) && !str_starts(url, STR("https://"))) {
        fprintf(stderr, "fermata: %s: %s\n", word(link->lang, W_BAD_URL), say(url).text);
        return false;
    }
    struct link_answer answer = link_ask(link, &arena, "GET", STR("/api/v1/session"), STR_EMPTY);
    if (link_good(&answer)) return true;
    link_failed(link, &arena, &answer);
    if (answer.err) fprintf(stderr, "fermata: %s\n", word(link->lang, W_START_ONE));
    return false;
}

/* ---- one request ---- */

static struct client_options options_of(const struct link *link, struct arena *arena,
                                        struct client_header fields[static LINK_FIELDS_MAX],
                                        const char *method, str path, const char *type, str body)
{
    size_t count = link_fields(link, fields);
    if (body.len)
        fields[count++] = (struct client_header){"Content-Type", type ? type : "application/json"};
    return (struct client_options){.method = method,
                                   .url = link_url(link, arena, path),
                                   .unix_path = link->socket,
                                   .headers = fields,
                                   .header_count = count,
                                   .body = body,
                                   .body_bytes_max = HTTP_ANSWER_BYTES_MAX};
}

struct link_answer link_ask(const struct link *link, struct arena *arena, const char *method,
                            str path, str body)
{
    struct client_header fields[LINK_FIELDS_MAX];
    struct link_answer answer = {.reason = STR_EMPTY};
    struct fault fault = {0};
    AUTO(buf_done) struct buf text;
    buf_init(&text, HTTP_ANSWER_BYTES_MAX);
    struct client_options options = options_of(link, arena, fields, method, path, NULL, body);
    answer.err = client_call(&options, &answer.status, &text, &fault);
    if (answer.err) answer.reason = arena_str(arena, str_c(fault.text));
    answer.body = arena_str(arena, text.len ? buf_str(&text) : STR_EMPTY);
    read_problem(arena, &answer);
    return answer;
}

struct sending {
    struct buf body;
    int status;
    void (*done)(void *arg, const struct link_answer *answer);
    void *arg;
};

static void on_head(void *arg, struct client_request *request, int status)
{
    struct sending *sending = arg;
    (void)request;
    sending->status = status;
}

static void on_body(void *arg, str bytes)
{
    struct sending *sending = arg;
    buf_append(&sending->body, bytes);
}

static void on_done(void *arg, enum err e, const struct fault *reason)
{
    struct sending *sending = arg;
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    struct link_answer answer = {.err = e, .status = sending->status};
    if (e) answer.reason = str_c(reason->text);
    answer.body = sending->body.len ? buf_str(&sending->body) : STR_EMPTY;
    if (e) answer.status = 0;
    read_problem(&arena, &answer);
    sending->done(sending->arg, &answer);
    buf_done(&sending->body);
    free(sending);
}

void link_send(const struct link *link, struct client *client, const char *method, str path,
               const char *type, str body,
               void (*done)(void *arg, const struct link_answer *answer), void *arg)
{
    static const struct client_ops ops = {on_head, on_body, on_done};
    AUTO(arena_done) struct arena arena;
    struct client_header fields[LINK_FIELDS_MAX];
    struct sending *sending = calloc(1, sizeof *sending);
    if (!sending) abort();
    arena_init(&arena);
    *sending = (struct sending){.done = done, .arg = arg};
    buf_init(&sending->body, HTTP_ANSWER_BYTES_MAX);
    struct client_options options = options_of(link, &arena, fields, method, path, type, body);
    client_send(client, &options, &ops, sending);
}

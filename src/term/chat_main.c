/* SPDX-License-Identifier: Apache-2.0
 *
 * `fermata chat`: which conversation, and whether with a terminal or without; and what it sends.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/say.h"
#include "term/chat.h"
#include "term/term.h"
#include "term/term_words.h"

void chat_new_id(const char *prefix, char out[static ID_CLIENT_BYTES_MAX + 1])
{
    char random[ID_BYTES];
    id_random(random);
    snprintf(out, ID_CLIENT_BYTES_MAX + 1, "%s%s", prefix, random);
}

/* ---- what is sent ---- */

/* The name of the time zone that this machine is set to, if it has one. */
static str timezone_name(char out[static 256])
{
    static const str folder = STR("/zoneinfo/");
    str zone = str_c(getenv("TZ"));
    if (!zone.len) {
        ssize_t len = readlink("/etc/localtime", out, 255);
        str link = {out, len > 0 ? (size_t)len : 0};
        ptrdiff_t at = str_find(link, folder);
        zone = at < 0 ? STR_EMPTY : str_drop(link, (size_t)at + folder.len);
    }
    return say_plain(zone) && str_find_char(zone, '/') > 0 ? zone : STR_EMPTY;
}

void chat_message(struct buf *out, const char *thread_id, const char *run_id, str text,
                  const struct chat_file *files, size_t file_count)
{
    struct json_writer w;
    char zone_room[256];
    str zone = timezone_name(zone_room);
    json_write_begin(&w, out);
    json_object(&w);
    json_member(&w, STR("threadId"), str_c(thread_id));
    json_member(&w, STR("runId"), str_c(run_id));
    json_key(&w, STR("messages"));
    json_array(&w);
    json_object(&w);
    json_member(&w, STR("role"), STR("user"));
    json_key(&w, STR("content"));
    if (!file_count) json_string(&w, text);
    if (file_count) json_array(&w);
    if (file_count && text.len) {
        json_object(&w);
        json_member(&w, STR("type"), STR("text"));
        json_member(&w, STR("text"), text);
        json_object_end(&w);
    }
    for (size_t i = 0; i < file_count; i++) {
        json_object(&w);
        json_member(&w, STR("type"), STR("binary"));
        json_member(&w, STR("id"), str_c(files[i].id));
        json_object_end(&w);
    }
    if (file_count) json_array_end(&w);
    json_object_end(&w);
    json_array_end(&w);
    if (zone.len) {
        json_key(&w, STR("forwardedProps"));
        json_object(&w);
        json_member(&w, STR("timezone"), zone);
        json_object_end(&w);
    }
    json_object_end(&w);
}

/* ---- files ---- */

static bool read_into(struct buf *out, int fd)
{
    enum { PIECE = 64 * 1024 };
    for (;;) {
        char *room = buf_room(out, PIECE);
        ssize_t n = room ? read(fd, room, PIECE) : -1;
        if (n < 0 && room && errno == EINTR) continue;
        if (n <= 0) return n == 0;
        buf_added(out, (size_t)n);
    }
}

static bool put_file(struct buf *out, const char *path, enum lang lang, char why[static 256])
{
    struct stat info;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    bool there = fd >= 0 && !fstat(fd, &info) && S_ISREG(info.st_mode);
    bool fits = there && info.st_size <= TERM_FILE_BYTES_MAX;
    bool whole = fits && read_into(out, fd);
    if (!there)
        snprintf(why, 256, "%s: %s", word(lang, W_FILE_BAD), say(str_c(path)).text);
    else if (!whole)
        snprintf(why, 256, "%s", word(lang, fits ? W_FILE_BAD : W_FILE_LARGE));
    if (fd >= 0) close(fd);
    return whole;
}

bool chat_upload(struct buf *out, const char *thread_id, const char *path, enum lang lang,
                 char ret_type[static CHAT_TYPE_BYTES], char ret_why[static 256])
{
    char boundary[ID_CLIENT_BYTES_MAX + 1];
    chat_new_id("fermata-", boundary);
    buf_printf(out, "--%s\r\nContent-Disposition: form-data; name=\"threadId\"\r\n\r\n%s\r\n",
               boundary, thread_id);
    buf_printf(out, "--%s\r\nContent-Disposition: form-data; name=\"file\"; filename=\"", boundary);
    const char *slash = strrchr(path, '/');
    for (const char *p = slash ? slash + 1 : path; *p; p++) {
        bool special = *p == '"' || *p == '\\' || (unsigned char)*p < ' ' || *p == 0x7f;
        buf_char(out, special ? '_' : *p);
    }
    buf_append(out, STR("\"\r\nContent-Type: application/octet-stream\r\n\r\n"));
    if (!put_file(out, path, lang, ret_why)) return false;
    buf_printf(out, "\r\n--%s--\r\n", boundary);
    snprintf(ret_type, CHAT_TYPE_BYTES, "multipart/form-data; boundary=%s", boundary);
    return true;
}

/* ---- times ---- */

struct chat_age chat_age(str at, enum lang lang)
{
    static const struct {
        msec unit;
        enum word name;
    } rows[] = {{24 * 60 * 60 * 1000, W_DAYS},
                {60 * 60 * 1000, W_HOURS},
                {60 * 1000, W_MINUTES},
                {1000, W_SECONDS}};
    struct chat_age age = {""};
    msec then = 0;
    if (clock_parse(at, &then)) return age;
    msec gone = clock_wall(&clock_system) - then;
    size_t i = 0;
    if (gone < 0) gone = 0;
    while (i + 1 < COUNT(rows) && gone < rows[i].unit) i++;
    snprintf(age.text, sizeof age.text, "%lld%s%s", (long long)(gone / rows[i].unit),
             lang == LANG_ZH || i == 3 ? "" : " ", word(lang, rows[i].name));
    return age;
}

/* ---- the command ---- */

static bool newest_thread(const struct link *link, struct chat_start *start)
{
    AUTO(arena_done) struct arena arena;
    struct json *json = NULL;
    arena_init(&arena);
    struct link_answer answer =
        link_ask(link, &arena, "GET", STR("/api/v1/agent/threads?limit=1"), STR_EMPTY);
    if (!link_good(&answer) || json_parse(&arena, answer.body, &json, NULL)) {
        link_failed(link, &arena, &answer);
        return false;
    }
    str id = json_text(json_get(json_at(json_get(json, STR("threads")), 0), STR("threadId")));
    start->old = id_valid(id);
    if (start->old) snprintf(start->thread_id, sizeof start->thread_id, "%.*s", STR_ARG(id));
    return true;
}

int chat_main(const struct config *config, struct arena *arena, const struct args *args)
{
    struct link link;
    struct chat_start start = {.old = false};
    link_init(&link, arena, config, args);
    if (args->operand.len && (args->last || !id_valid(args->operand))) {
        fprintf(stderr, "fermata: %s: %s\n", word(link.lang, W_NO_THREAD), say(args->operand).text);
        return EXIT_USAGE;
    }
    if (!link_check(&link)) return EXIT_FAILED;
    if (args->operand.len) {
        start.old = true;
        snprintf(start.thread_id, sizeof start.thread_id, "%.*s", STR_ARG(args->operand));
    }
    if (args->last && !newest_thread(&link, &start)) return EXIT_FAILED;
    if (!start.old) chat_new_id("chat_", start.thread_id);
    bool piped = args->json || args->once || !term_usable();
    return piped ? chat_pipe(&link, &start, args->json, args->once) : chat_tty(&link, &start);
}

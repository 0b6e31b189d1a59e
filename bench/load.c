/* SPDX-License-Identifier: Apache-2.0
 *
 * load: puts a server on this machine under load and checks what comes back.
 *
 *     load http  --url U --conns N --seconds S [--pipeline K]        requests per second
 *     load sse   --url U --publish-url P --subs N --events E         fan-out to N readers
 *     load idle  --url U --subs N --pid P                            memory per open stream
 *     load slow  --url U --slow-url V --kind head|body|read ...      healthy ones beside slow
 *     load abort --url U --cycles N [--pid P]                        clients that leave half-way
 *     load runs  --url U --conns N --seconds S [--turns T --pauses P] conversations, run by run
 *     load agui  --url U --conns N --seconds S [--pauses P --text B]  AG-UI, a run in one POST
 *     load inbox --url U --pages N --depth D --key K                 a list, page by page
 *
 * Every mode prints one line of JSON and exits 0 only if no answer was wrong, lost or out of order;
 * 1 if one was, 2 if it could not run. One more mode: a file load_x.c, a row in modes[].
 */
#include "load.h"

#include <inttypes.h>

enum kind { TEXT, NUMBER };

static const struct option {
    const char *name;
    enum kind kind;
    size_t field;
    uint64_t initial, min, max;
    const char *help;
} option_table[] = {
#define FIELD(name) offsetof(struct options, name)
    {"url", TEXT, FIELD(url), 0, 0, 0, "what to ask for, http://127.0.0.1:port/path"},
    {"publish-url", TEXT, FIELD(publish_url), 0, 0, 0, "where events are posted (sse)"},
    {"slow-url", TEXT, FIELD(slow_url), 0, 0, 0, "what the slow clients ask for (slow)"},
    {"kind", TEXT, FIELD(kind), 0, 0, 0, "head, body or read (slow)"},
    {"pid", TEXT, FIELD(pid), 0, 0, 0, "the server's processes, 12,13: to read its costs"},
    {"key", TEXT, FIELD(key), 0, 0, 0, "who is asking, by turns if there are several: a,b (inbox)"},
    {"conns", NUMBER, FIELD(conns), 64, 1, CONNS_MAX,
     "connections or clients (http, slow, abort, runs, agui)"},
    {"subs", NUMBER, FIELD(subs), 1000, 1, CONNS_MAX, "open streams (sse, idle)"},
    {"seconds", NUMBER, FIELD(seconds), 3, 1, 600, "how long (http, slow, runs, agui)"},
    {"pipeline", NUMBER, FIELD(pipeline), 1, 1, PIPELINE_MAX, "requests under way (http, sse)"},
    {"events", NUMBER, FIELD(events), 2000, 1, EVENTS_MAX, "events to publish (sse)"},
    {"rate", NUMBER, FIELD(rate), 0, 0, 1000000, "events per second, 0 = all at once (sse)"},
    {"size", NUMBER, FIELD(size), 32, 10, EVENT_BYTES_MAX, "bytes of an event's text (sse)"},
    {"cycles", NUMBER, FIELD(cycles), 10000, 1, 10000000, "connections to abort (abort)"},
    {"healthy", NUMBER, FIELD(healthy), 8, 1, 1000, "healthy clients (slow)"},
    {"pauses", NUMBER, FIELD(pauses), 0, 0, 100,
     "questions that a run asks; answered (runs, agui)"},
    {"least", NUMBER, FIELD(least), 0, 0, 1000000, "cycles, however long they take (agui)"},
    {"text", NUMBER, FIELD(text), 4, 0, 1000000, "bytes of a run's last words (agui)"},
    {"turns", NUMBER, FIELD(turns), 1, 1, 1000, "runs on a thread before the next one (runs)"},
    {"pages", NUMBER, FIELD(pages), 1000, 1, 1000000, "pages to read (inbox)"},
    {"depth", NUMBER, FIELD(depth), 1000, 1, 1000000, "pages before the first again (inbox)"},
    {"seed", NUMBER, FIELD(seed), 1, 0, UINT64_MAX, "of the random choices (abort)"},
    {"timeout", NUMBER, FIELD(timeout), 60, 1, 3600, "seconds after which a run has failed"},
#undef FIELD
};

static const struct mode {
    const char *name;
    int (*run)(const struct options *options);
    const char *needs; /* a text option that must be there besides url */
} modes[] = {
    {"http", load_http, NULL},   {"sse", load_sse, "publish-url"}, {"idle", load_idle, "pid"},
    {"slow", load_slow, "kind"}, {"abort", load_abort, NULL},      {"runs", load_runs, NULL},
    {"agui", load_agui, NULL},   {"inbox", load_inbox, "key"},
};

static void usage_text(void)
{
    fputs("usage: load http|sse|idle|slow|abort|runs|agui|inbox [--option value]...\n", stderr);
    for (size_t i = 0; i < COUNT(option_table); i++)
        fprintf(stderr, "  --%-12s %s\n", option_table[i].name, option_table[i].help);
    exit(2);
}

static const struct option *option_find(str name)
{
    for (size_t i = 0; i < COUNT(option_table); i++)
        if (str_eq(name, str_c(option_table[i].name))) return &option_table[i];
    return NULL;
}

static const char **text_field(struct options *options, const struct option *option)
{
    return (const char **)(void *)((char *)options + option->field);
}

static uint64_t *number_field(struct options *options, const struct option *option)
{
    return (uint64_t *)(void *)((char *)options + option->field);
}

static void option_set(struct options *options, const struct option *option, const char *value)
{
    if (option->kind == TEXT) {
        *text_field(options, option) = value;
        return;
    }
    uint64_t number = 0;
    if (str_to_u64(str_c(value), &number) || number < option->min || number > option->max)
        die("--%s takes a number from %" PRIu64 " to %" PRIu64, option->name, option->min,
            option->max);
    *number_field(options, option) = number;
}

static void options_parse(char **args, struct options *options)
{
    for (size_t i = 0; i < COUNT(option_table); i++)
        if (option_table[i].kind == NUMBER)
            *number_field(options, &option_table[i]) = option_table[i].initial;
    for (; *args; args += 2) {
        str name = str_c(*args);
        const struct option *option =
            str_starts(name, STR("--")) ? option_find(str_drop(name, 2)) : NULL;
        if (!option) die("unknown option %s", *args);
        if (!args[1]) die("%s needs a value", *args);
        option_set(options, option, args[1]);
    }
}

int main(int argc, char **argv)
{
    struct options options = {0};
    if (argc < 2) usage_text();
    for (size_t i = 0; i < COUNT(modes); i++) {
        if (!str_eq(str_c(argv[1]), str_c(modes[i].name))) continue;
        options_parse(argv + 2, &options);
        if (!options.url) die("--url is missing");
        if (modes[i].needs && !*text_field(&options, option_find(str_c(modes[i].needs))))
            die("--%s is missing", modes[i].needs);
        return modes[i].run(&options);
    }
    usage_text();
}

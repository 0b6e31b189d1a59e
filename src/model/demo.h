/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of the demo model share. It remembers nothing: each turn is made from the request
 * alone, from the person's last message and from what was called and answered since.
 *
 *     demo_words.c   words in messages, titles, lengths of time
 *     demo_time.c    the date and the time zone that the system text tells
 *     demo_view.c    the request, as scenes look at it
 *     demo_scenes.c  the scenes: one function each, from a view to the next turn
 *     demo_cards.c   the scene of cards
 *     demo_files.c   pictures and files
 *     demo.c         plain answers, and the model itself
 */
#ifndef MODEL_DEMO_H
#define MODEL_DEMO_H

#include "base/json.h"
#include "model/model.h"

enum language { ENGLISH, CHINESE, LANGUAGES };

/* ---- words ---- */

enum language demo_language(str text);  /* Chinese if it holds a Chinese character */
bool demo_has_word(str text, str word); /* in any case, and not inside a longer word */
/* One of a list that ends with an empty str, or at `max`. */
bool demo_has_one(str text, const str *words, size_t max);
str demo_trim(str text); /* without blanks and ends of lines around it */
/* At most `chars` characters, without line ends and without what Markdown would take for a table. */
str demo_line(struct arena *arena, str text, size_t chars);

/* What a meeting is called in a message: "Review meeting", "评审会". */
str demo_title(struct arena *arena, str message, enum language language);
/* "1 hour", "45 分钟", "半小时" in minutes; 0 if no sensible length stands there. */
unsigned demo_minutes(str text);

/* ---- time ---- */

struct demo_time {
    msec now; /* UTC */
    int zone; /* minutes east of UTC, tomorrow */
    bool zone_known;
};

/* From the last "2026-11-15 05:52 UTC" of a system text and the name of a zone at the end of the
 * line behind it. Without them: the system's clock, and UTC. */
struct demo_time demo_time(str system);
int demo_zone_minutes(str name, msec at, bool *ret_known);

/* "2026-11-16T15:00:00+08:00": `days` after today there, at a minute of that day. */
str demo_stamp(struct arena *arena, const struct demo_time *time, int days, int minute);

/* ---- the view ---- */

enum ending {
    ENDED_WELL,  /* the tool returned JSON */
    ENDED_BADLY, /* the tool, or the way to it, failed */
    TURNED_DOWN, /* the person did not want it, or did not answer */
    NOT_KNOWN,   /* it may have happened, or did; there is no result */
};

/* A call since the person's last message. */
struct deed {
    str name;
    const struct json *args; /* NULL if they are not JSON */
    str result;              /* as the model gets it */
    const struct json *json; /* the same, if it is a JSON object */
    enum ending ending;
};

struct view {
    struct arena *arena;
    const struct model_request *request;
    enum language language;
    str said; /* the person's last message, trimmed; the beginning of a long one */
    struct deed *deeds;
    size_t count;
    size_t fresh; /* the first deed behind the newest turn without calls */
    const struct json *tools;
    struct demo_time time;
};

void demo_look(struct arena *arena, const struct model_request *request, struct view *ret_view);
bool demo_is_error(str *result); /* and then *result is what was wrong */
bool demo_offered(const struct view *view, str tool);
/* The newest call of a tool from deed `from` on; NULL if there is none. */
const struct deed *demo_deed(const struct view *view, size_t from, str tool);
/* The step of the plan that the system text marks as current; empty if there is none. */
str demo_current_step(const struct view *view);

/* ---- scenes ---- */

/* The next turn: text, a call, or both. */
struct reply {
    str text;
    str tool; /* empty: no call */
    str args;
};

/* The text of the view's language, with {1} to {4} filled in. */
enum { DEMO_SLOTS = 4 };
str demo_fill(const struct view *v, const char *english, const char *chinese,
              const str slots[static DEMO_SLOTS]);
#define FILL(v, english, chinese, ...) \
    demo_fill((v), (english), (chinese), (const str[DEMO_SLOTS]){__VA_ARGS__})

struct reply demo_missing(const struct view *v, str tool); /* the agent has no such tool */

/* The arguments of a call: one object, members between begin and end. */
struct demo_args {
    struct buf buf;
    struct json_writer w;
};
void demo_args_begin(struct demo_args *args);
str demo_args_end(const struct view *v, struct demo_args *args);

struct reply demo_cards(const struct view *view);

/* False unless the message is what a button of the form sends. */
bool demo_form_sent(const struct view *view, struct reply *ret_reply);

/* False if the message begins no scene. */
bool demo_scene(const struct view *view, struct reply *ret_reply);

/* ---- files ---- */

/* The words of a message, without what tells of its files. */
str demo_said(str text);
/* False if nothing came with the message. */
bool demo_files(const struct view *view, struct reply *ret_reply);

#endif

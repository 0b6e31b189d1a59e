/* SPDX-License-Identifier: Apache-2.0
 *
 * Stories: turns of a script that are chosen by what has happened, and filled with it (docs/SCRIPT.md).
 * Nothing is remembered: each turn is made from the request alone, from the person's last message and
 * from what was called and answered since.
 *
 *     story_words.c  words in messages, titles, lengths of time
 *     story_time.c   the date and the time zone that the system text tells
 *     story_view.c   the request, as a tree of values with names
 *     story.c        conditions on these values, and texts and arguments with places for them
 */
#ifndef MODEL_STORY_H
#define MODEL_STORY_H

#include "base/json.h"
#include "model/model.h"

enum language { ENGLISH, CHINESE, LANGUAGES };

/* ---- words ---- */

enum language story_language(str text);  /* Chinese if it holds a Chinese character */
bool story_has_word(str text, str word); /* in any case, and not inside a longer word */
bool story_has_one(str text, const str *words, size_t count);
str story_trim(str text); /* without blanks and ends of lines around it */
/* At most `chars` characters, without line ends and without what Markdown would take for a table. */
str story_line(struct arena *arena, str text, size_t chars);

/* What a meeting is called in a message: "Review meeting", "评审会". */
str story_title(struct arena *arena, str message, enum language language);
/* "1 hour", "45 分钟", "半小时" in minutes; 0 if no sensible length stands there. */
unsigned story_minutes(str text);

/* ---- time ---- */

struct story_time {
    msec now; /* UTC */
    int zone; /* minutes east of UTC, tomorrow */
    bool zone_known;
};

/* From the last "2026-11-15 05:52 UTC" of a system text and the name of a zone at the end of the
 * line behind it. Without them: the system's clock, and UTC. */
struct story_time story_time(str system);
int story_zone_minutes(str name, msec at, bool *ret_known);

/* "2026-11-16T15:00:00+08:00": `days` after today there, at a minute of that day. */
str story_stamp(struct arena *arena, const struct story_time *time, int days, int minute);

/* ---- the view ---- */

struct story_view {
    struct arena *arena;
    enum language language;
    str said;           /* the person's last message, trimmed; the beginning of a long one */
    struct json values; /* by name, as docs/SCRIPT.md lists them. Strings that others wrote have
                           their source in `raw`; ours have none */
    struct json **end;  /* of the values */
    struct story_time time;
};

/* Everything lives in the arena, or in the request. */
void story_look(struct arena *arena, const struct model_request *request,
                struct story_view *ret_view);
void story_put(struct story_view *view, str name, str text); /* one more value */

/* The value at a path, "calls.ask_user.ended"; `it` is what that name means. NULL if there is none. */
const struct json *story_get(const struct story_view *view, const struct json *it, str path);
bool story_knows(str path); /* Does it begin with a name that a view can have? */

/* ---- telling ---- */

/* A text with a name, for others to use. */
struct story_part {
    const struct story_part *next;
    str name;
    const struct json *text;
};

/* What conditions and places are filled from. */
struct teller {
    const struct story_view *view;
    const struct story_part *parts;
    const struct json *it; /* the element at hand, inside "each" */
    unsigned steps, depth;
    bool broken; /* it became too much: what was made is not whole */
};

const struct story_part *story_part(const struct story_part *parts, str name);
/* The next place in a text, without its braces, and what stands before it; false: there is none. */
bool story_place(str *rest, str *ret_before, str *ret_path);

bool story_by_language(const struct json *value); /* {"en": ..., "zh": ...} and nothing else */
/* Of such a value the one of the view's language; any other as it is. */
const struct json *story_pick(const struct teller *teller, const struct json *value);
bool story_holds(struct teller *teller, const struct json *when); /* NULL always holds */
str story_text(struct teller *teller, const struct json *text);   /* NULL is empty */
str story_args(struct teller *teller, str args); /* a template; what is no JSON stays as it is */

/* The shapes of the JSON that a story is made of. */
enum story_kind {
    STORY_TEXT,
    STORY_WHEN,
    STORY_TEST,
    STORY_WORDS,
    STORY_ARGS,
    STORY_PATH,
    STORY_NUMBER,
    STORY_NOTHING,
};

/* Is it one that the functions above can take? ERR_CONFIG says why not. */
enum err story_check(const struct story_part *parts, const struct json *value, enum story_kind kind,
                     struct fault *reterr) MUST_USE;

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * The request as stories see it: a tree of values, each with a name. What the person said last, which
 * files came with it, each call since then with its result, and what can be read out of them.
 *
 * A file stands in the person's message behind the words, as a line in brackets, with what is in a
 * text file between fences below; pictures come beside the text.
 *
 * To add a value: a name in names[], a line in story_look, a row in docs/SCRIPT.md.
 */
#include "base/limits.h"
#include "model/player.h"
#include "model/story.h"

static const str names[] = {
    STR("it"),   STR("said"),   STR("quote"), STR("language"), STR("title"), STR("minutes"),
    STR("step"), STR("zone"),   STR("day"),   STR("tools"),    STR("calls"), STR("fresh"),
    STR("sent"), STR("images"), STR("files"), STR("tool"),
};

bool story_knows(str path)
{
    str name = str_split(&path, '.');
    for (size_t i = 0; i < COUNT(names); i++)
        if (str_eq(name, names[i])) return true;
    return false;
}

/* ---- building ---- */

/* One more member of an object or a list, behind *end, which moves on. */
static struct json *put(struct arena *arena, struct json *of, struct json ***end, struct json value)
{
    struct json *node = ARENA_NEW(arena, struct json);
    *node = value;
    node->next = NULL;
    of->count++;
    **end = node;
    *end = &node->next;
    return node;
}

static struct json text_value(str key, str text)
{
    return (struct json){.type = JSON_STRING, .key = key, .text = text};
}

static struct json number_value(struct arena *arena, str key, size_t number)
{
    return (
        struct json){.type = JSON_NUMBER, .key = key, .text = arena_printf(arena, "%zu", number)};
}

static struct json keyed(const struct json *value, str key)
{
    struct json copy = *value;
    copy.key = key;
    return copy;
}

void story_put(struct story_view *view, str name, str text)
{
    put(view->arena, &view->values, &view->end, text_value(name, text));
}

static struct json *put_list(struct story_view *view, str name)
{
    return put(view->arena, &view->values, &view->end,
               (struct json){.type = JSON_ARRAY, .key = name});
}

static const struct json *object_of(struct arena *arena, str text)
{
    struct json *value;
    if (json_parse(arena, text, &value, NULL)) return NULL;
    return value->type == JSON_OBJECT ? value : NULL;
}

/* ---- files ---- */

/* What stands in the brackets; empty if the line tells of no file. */
static str told(str line)
{
    static const str marks[] = {
        STR("[file: "), STR("[image: "), STR("[audio: "), STR("[video: "), STR("[document: "),
        STR("[文件："), STR("[图片："),  STR("[音频："),  STR("[视频："),  STR("[文档："),
    };
    for (size_t i = 0; i < COUNT(marks); i++)
        if (str_starts(line, marks[i]) && str_ends(line, STR("]")))
            return (str){line.p + marks[i].len, line.len - marks[i].len - 1};
    return STR_EMPTY;
}

/* The words of a message, without what tells of its files. */
static str without_files(str text)
{
    for (str rest = text; rest.p;) {
        str line = str_split(&rest, '\n');
        if (told(line).len) return (str){text.p, (size_t)(line.p - text.p)};
    }
    return text;
}

/* Three or more backticks and nothing else. */
static bool is_fence(str line)
{
    for (size_t i = 0; i < line.len; i++)
        if (line.p[i] != '`') return false;
    return line.len >= 3;
}

static void put_files(struct story_view *view, const struct model_message *message)
{
    struct arena *arena = view->arena;
    struct json *images = put_list(view, STR("images")), **end = &images->child;
    for (size_t i = 0; i < message->image_count && i < STORY_EACH_MAX; i++) {
        const struct model_image *image = &message->images[i];
        str name = image->filename.len ? image->filename : image->mime;
        struct json *of = put(arena, images, &end, (struct json){.type = JSON_OBJECT});
        struct json **members = &of->child;
        name = story_line(arena, name, STORY_REASON_CHARS_MAX);
        put(arena, of, &members, text_value(STR("name"), name));
        put(arena, of, &members, text_value(STR("mime"), image->mime));
        put(arena, of, &members, number_value(arena, STR("bytes"), image->bytes.len));
    }
    /* Lines that tell of files, those inside of a file left out. */
    struct json *files = put_list(view, STR("files"));
    str fence = STR_EMPTY, rest = str_drop(message->text, without_files(message->text).len);
    for (end = &files->child; rest.p && files->count < STORY_EACH_MAX;) {
        str line = str_split(&rest, '\n');
        if (fence.len) {
            if (str_eq(line, fence)) fence = STR_EMPTY;
        } else if (is_fence(line)) {
            fence = line;
        } else if (told(line).len) {
            line = story_line(arena, told(line), STORY_REASON_CHARS_MAX);
            put(arena, files, &end, text_value(STR_EMPTY, line));
        }
    }
}

/* ---- calls ---- */

/* Then *result is what was wrong. */
static bool is_error(str *result)
{
    static const str prefixes[] = {STR("Error: "), STR("错误：")};
    for (size_t i = 0; i < COUNT(prefixes); i++) {
        if (!str_starts(*result, prefixes[i])) continue;
        *result = str_drop(*result, prefixes[i].len);
        return true;
    }
    return false;
}

/* Results are JSON when a tool worked. Anything else is a sentence: from the server, when a person
 * said no or nothing or when nobody knows, else from the tool. */
static str ending_of(str result)
{
    static const str no[] = {
        STR("rejected"), STR("declined"), STR("denied"),     STR("cancelled"),      STR("canceled"),
        STR("expired"),  STR("skipped"),  STR("has passed"), STR("did not answer"), STR("拒绝"),
        STR("取消"),     STR("过期"),     STR("未批准"),     STR("没有批准"),       STR("不同意"),
        STR("未回答"),   STR("跳过"),
    };
    static const str unknown[] = {STR("outcome unknown"), STR("confirms that it happened"),
                                  STR("结果未知"), STR("确认操作已发生")};
    if (story_has_one(result, unknown, COUNT(unknown))) return STR("unknown");
    return story_has_one(result, no, COUNT(no)) ? STR("refused") : STR("failed");
}

static struct json *put_call(struct story_view *view, struct json *calls, struct json ***end,
                             str name, str result)
{
    struct arena *arena = view->arena;
    str reason = result;
    bool error = is_error(&reason);
    /* A result may have words for people on the lines before its JSON, but those of a failure. */
    const struct json *json = object_of(arena, result);
    ptrdiff_t at = json || error ? -1 : str_find(result, STR("\n{"));
    if (at >= 0) json = object_of(arena, str_drop(result, (size_t)at + 1));
    reason = story_line(arena, reason, STORY_REASON_CHARS_MAX);

    struct json *call = put(arena, calls, end, (struct json){.type = JSON_OBJECT});
    struct json **members = &call->child;
    put(arena, call, &members, text_value(STR("name"), name));
    put(arena, call, &members, text_value(STR("ended"), json ? STR("done") : ending_of(result)));
    put(arena, call, &members, text_value(STR("text"), result));
    put(arena, call, &members, text_value(STR("reason"), reason));
    if (error) put(arena, call, &members, text_value(STR("error"), reason));
    if (json) put(arena, call, &members, keyed(json, STR("result")));
    return call;
}

static str result_of(const struct model_request *request, size_t from, str call_id)
{
    for (size_t i = from; i < request->count; i++)
        if (str_eq(request->messages[i].role, STR("tool")) &&
            str_eq(request->messages[i].tool_call_id, call_id))
            return request->messages[i].text;
    return STR_EMPTY;
}

/* Those since the person's last message; `fresh` are those behind the newest turn without calls. */
static void put_calls(struct story_view *view, const struct model_request *request, size_t from)
{
    struct json *calls = put_list(view, STR("calls")), **end = &calls->child;
    struct json *fresh = put_list(view, STR("fresh"));
    for (size_t i = from; i < request->count; i++) {
        const struct model_message *message = &request->messages[i];
        struct json *list;
        if (json_parse(view->arena, message->tool_calls, &list, NULL)) {
            if (str_eq(message->role, STR("assistant"))) fresh->child = NULL, fresh->count = 0;
            continue;
        }
        for (const struct json *call = list->child; call; call = call->next) {
            str name = json_text(json_get(json_get(call, STR("function")), STR("name")));
            str result = result_of(request, i + 1, json_text(json_get(call, STR("id"))));
            struct json *made = put_call(view, calls, &end, name, result);
            if (!fresh->count++) fresh->child = made; /* the rest of the same list */
        }
    }
}

/* The step of the plan that the system text marks as current; empty if there is none. */
static str current_step(str system)
{
    static const str marks[] = {STR(". [current] "), STR(". [当前] ")};
    str step = STR_EMPTY; /* the last one counts: the operator's words come first */
    for (size_t i = 0; i < COUNT(marks); i++) {
        str rest = system;
        for (ptrdiff_t at; (at = str_find(rest, marks[i])) >= 0;) {
            rest = str_drop(rest, (size_t)at + marks[i].len);
            str line = rest;
            step = str_split(&line, '\n');
        }
    }
    return step;
}

/* ---- all of it ---- */

void story_look(struct arena *arena, const struct model_request *request,
                struct story_view *ret_view)
{
    static const struct model_message nothing = {.role = STR("user"), .text = STR("")};
    size_t at = request->count; /* behind the last message of a person */
    while (at > 0 && (!str_eq(request->messages[at - 1].role, STR("user")) ||
                      request->messages[at - 1].along))
        at--;
    const struct model_message *message = at ? &request->messages[at - 1] : &nothing;
    str said = player_chars(story_trim(without_files(message->text)), STORY_MESSAGE_CHARS_MAX);
    bool chinese =
        said.len ? story_language(said) == CHINESE : str_starts(request->locale, STR("zh"));

    struct story_view *view = ret_view;
    *view = (struct story_view){.arena = arena,
                                .language = chinese ? CHINESE : ENGLISH,
                                .said = said,
                                .values = {.type = JSON_OBJECT},
                                .time = story_time(request->system)};
    view->end = &view->values.child;
    story_put(view, STR("said"), said);
    str rest = said; /* the quote is its first line */
    str quote = player_chars(story_trim(str_split(&rest, '\n')), STORY_QUOTE_CHARS_MAX);
    const char *more = quote.len < said.len ? " ..." : "";
    story_put(view, STR("quote"), arena_printf(arena, "%.*s%s", STR_ARG(quote), more));
    story_put(view, STR("language"), chinese ? STR("zh") : STR("en"));
    story_put(view, STR("title"), story_title(arena, said, view->language));
    if (view->time.zone_known)
        story_put(view, STR("zone"), str_drop(story_stamp(arena, &view->time, 0, 0), 19));
    str step = current_step(request->system);
    if (step.len)
        put(arena, &view->values, &view->end,
            (struct json){.type = JSON_STRING, .key = STR("step"), .text = step, .raw = step});
    put_files(view, message);
    put_calls(view, request, at);

    struct json *json;
    struct json tools = {.type = JSON_ARRAY};
    if (json_parse(arena, request->tools, &json, NULL) == OK && json->type == JSON_ARRAY)
        tools = *json;
    put(arena, &view->values, &view->end, keyed(&tools, STR("tools")));
    if (json_parse(arena, said, &json, NULL) == OK) {
        const struct json *inner = json_get(json, STR("payload"));
        put(arena, &view->values, &view->end, keyed(inner ? inner : json, STR("sent")));
    }
    const struct json *asked = story_get(view, NULL, STR("calls.ask_user.text"));
    unsigned minutes = asked ? story_minutes(asked->text) : 0;
    if (minutes)
        put(arena, &view->values, &view->end, number_value(arena, STR("minutes"), minutes));
}

/* ---- paths ---- */

static const struct json *made(struct arena *arena, struct json value)
{
    struct json *node = ARENA_NEW(arena, struct json);
    *node = value;
    return node;
}

/* "1", "1.15", "1.15.30", "1.15.minutes": days, hours and minutes from the beginning of today on. */
static const struct json *day_at(const struct story_view *view, str *path)
{
    enum { NUMBER_MAX = 10000 };
    uint64_t numbers[3] = {0};
    for (size_t i = 0; i < COUNT(numbers) && path->p; i++) {
        str rest = *path, text = str_split(&rest, '.');
        const struct json *minutes = json_get(&view->values, text);
        if (i == 2 && minutes && str_eq(text, STR("minutes"))) text = minutes->text;
        uint64_t number;
        if (str_to_u64(text, &number) || number > NUMBER_MAX) break;
        numbers[i] = number;
        *path = rest;
    }
    int minute = (int)(numbers[1] * 60 + numbers[2]);
    str stamp = story_stamp(view->arena, &view->time, (int)numbers[0], minute);
    return made(view->arena, text_value(STR_EMPTY, stamp));
}

/* In a list: a number counts from 0, and a name is the last element that has it as its `name`. */
static const struct json *element_at(struct arena *arena, const struct json *list, str name)
{
    uint64_t index;
    if (str_to_u64(name, &index) == OK) return json_at(list, index);
    if (str_eq(name, STR("count"))) return made(arena, number_value(arena, name, list->count));
    if (str_eq(name, STR("more")))
        return list->count <= STORY_EACH_MAX
                   ? NULL
                   : made(arena, number_value(arena, name, list->count - STORY_EACH_MAX));
    const struct json *found = NULL;
    for (const struct json *child = list->child; child; child = child->next)
        if (str_eq(json_text(json_get(child, STR("name"))), name)) found = child;
    return found;
}

/* Of "2026-11-16T15:00:00+08:00": "2026-11-16" and "15:00"; empty if it is no time. */
static const struct json *stamp_part(struct arena *arena, str stamp, str name)
{
    stamp = story_line(arena, stamp, STORY_QUOTE_CHARS_MAX);
    bool date = str_eq(name, STR("date"));
    if (!date && !str_eq(name, STR("time"))) return NULL;
    str part = stamp.len < 16 ? STR_EMPTY : date ? (str){stamp.p, 10} : (str){stamp.p + 11, 5};
    return made(arena, text_value(name, part));
}

const struct json *story_get(const struct story_view *view, const struct json *it, str path)
{
    str name = str_split(&path, '.');
    const struct json *value = str_eq(name, STR("it"))    ? it
                               : str_eq(name, STR("day")) ? day_at(view, &path)
                                                          : json_get(&view->values, name);
    while (value && path.p) {
        name = str_split(&path, '.');
        if (value->type == JSON_ARRAY)
            value = element_at(view->arena, value, name);
        else if (value->type == JSON_STRING)
            value = stamp_part(view->arena, value->text, name);
        else
            value = json_get(value, name);
    }
    return value;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * The request as a scene sees it: what the person said last, and each call since then with its
 * result. Everything lives in the arena given, or in the request.
 */
#include "base/limits.h"
#include "model/demo.h"
#include "model/player.h"

/* The index behind the last message of a person. */
static size_t behind_last_user(const struct model_request *request)
{
    size_t at = request->count;
    while (at > 0 && (!str_eq(request->messages[at - 1].role, STR("user")) ||
                      request->messages[at - 1].along))
        at--;
    return at;
}

bool demo_is_error(str *result)
{
    static const str prefixes[] = {STR("Error: "), STR("错误：")};
    for (size_t i = 0; i < COUNT(prefixes); i++) {
        if (!str_starts(*result, prefixes[i])) continue;
        *result = str_drop(*result, prefixes[i].len);
        return true;
    }
    return false;
}

static const struct json *object_of(struct arena *arena, str text)
{
    struct json *value;
    if (json_parse(arena, text, &value, NULL)) return NULL;
    return value->type == JSON_OBJECT ? value : NULL;
}

/* A result may have words for people on the lines before its JSON, but those of a failure. */
static const struct json *json_of_result(struct arena *arena, str result)
{
    const struct json *json = object_of(arena, result);
    if (json || demo_is_error(&result)) return json;
    ptrdiff_t at = str_find(result, STR("\n{"));
    return at < 0 ? NULL : object_of(arena, str_drop(result, (size_t)at + 1));
}

static str result_of(const struct model_request *request, size_t from, str call_id)
{
    for (size_t i = from; i < request->count; i++)
        if (str_eq(request->messages[i].role, STR("tool")) &&
            str_eq(request->messages[i].tool_call_id, call_id))
            return request->messages[i].text;
    return STR_EMPTY;
}

/* Results are JSON when a tool worked. Anything else is a sentence: from the server, when a person
 * said no or nothing or when nobody knows, else from the tool. */
static enum ending ending_of(const struct deed *deed)
{
    static const str no[] = {
        STR("rejected"), STR("declined"), STR("denied"),     STR("cancelled"),      STR("canceled"),
        STR("expired"),  STR("skipped"),  STR("has passed"), STR("did not answer"), STR("拒绝"),
        STR("取消"),     STR("过期"),     STR("未批准"),     STR("没有批准"),       STR("不同意"),
        STR("未回答"),   STR("跳过"),
    };
    static const str unknown[] = {STR("outcome unknown"), STR("confirms that it happened"),
                                  STR("结果未知"), STR("确认操作已发生")};
    if (deed->json) return ENDED_WELL;
    if (demo_has_one(deed->result, unknown, COUNT(unknown))) return NOT_KNOWN;
    return demo_has_one(deed->result, no, COUNT(no)) ? TURNED_DOWN : ENDED_BADLY;
}

static void add_calls(struct view *view, const struct json *calls, size_t behind)
{
    for (const struct json *call = calls->child; call; call = call->next) {
        const struct json *function = json_get(call, STR("function"));
        struct deed *deed = &view->deeds[view->count++];
        deed->name = json_text(json_get(function, STR("name")));
        deed->args = object_of(view->arena, json_text(json_get(function, STR("arguments"))));
        deed->result = result_of(view->request, behind, json_text(json_get(call, STR("id"))));
        deed->json = json_of_result(view->arena, deed->result);
        deed->ending = ending_of(deed);
    }
}

static void look_at_deeds(struct view *view)
{
    const struct model_request *request = view->request;
    size_t first = behind_last_user(request), room = 0;
    const struct json **calls = arena_array(view->arena, request->count + 1, sizeof *calls);
    for (size_t i = first; i < request->count; i++) {
        struct json *list;
        if (json_parse(view->arena, request->messages[i].tool_calls, &list, NULL)) continue;
        calls[i] = list;
        room += list->count;
    }
    view->deeds = arena_array(view->arena, room + 1, sizeof *view->deeds);
    for (size_t i = first; i < request->count; i++) {
        if (calls[i])
            add_calls(view, calls[i], i + 1);
        else if (str_eq(request->messages[i].role, STR("assistant")))
            view->fresh = view->count;
    }
}

void demo_look(struct arena *arena, const struct model_request *request, struct view *ret_view)
{
    str words = demo_trim(demo_said(player_last_user(request)));
    str said = player_chars(words, DEMO_MESSAGE_CHARS_MAX);
    bool chinese =
        said.len ? demo_language(said) == CHINESE : str_starts(request->locale, STR("zh"));
    struct view view = {.arena = arena,
                        .request = request,
                        .language = chinese ? CHINESE : ENGLISH,
                        .said = said,
                        .time = demo_time(request->system)};
    struct json *tools;
    if (request->tools.len && json_parse(arena, request->tools, &tools, NULL) == OK)
        view.tools = tools;
    look_at_deeds(&view);
    *ret_view = view;
}

bool demo_offered(const struct view *view, str tool)
{
    for (const struct json *t = view->tools ? view->tools->child : NULL; t; t = t->next)
        if (str_eq(json_text(json_get(t, STR("name"))), tool)) return true;
    return false;
}

const struct deed *demo_deed(const struct view *view, size_t from, str tool)
{
    for (size_t i = view->count; i-- > from;)
        if (str_eq(view->deeds[i].name, tool)) return &view->deeds[i];
    return NULL;
}

str demo_current_step(const struct view *view)
{
    static const str marks[] = {STR(". [current] "), STR(". [当前] ")};
    str step = STR_EMPTY; /* the last one counts: the operator's words come first */
    for (size_t i = 0; i < COUNT(marks); i++) {
        str rest = view->request->system;
        for (ptrdiff_t at; (at = str_find(rest, marks[i])) >= 0;) {
            rest = str_drop(rest, (size_t)at + marks[i].len);
            str line = rest;
            step = str_split(&line, '\n');
        }
    }
    return step;
}

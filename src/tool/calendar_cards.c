/* SPDX-License-Identifier: Apache-2.0
 *
 * Cards of the calendar pack: results and errors of its tools. Each tool has a row in tools[]: how
 * its card is made from the result, and what its title is when the call did not work.
 *
 *     calendar_write    data      title, time, place, people; conflicts as a section; buttons
 *     calendar_read     list      one entry for each event, marked if two of them overlap
 *     calendar_delete   status    what is gone
 *     calendar_share    status    what is shared, and with whom
 *     user_resolve      list      who it may be, each with a button that picks
 *     any error         status    the reason
 *
 * 1. A card depends on the result and the locale and on nothing else: no clock, no store.
 * 2. Texts of people pass line(): one line, no marks that turn it around, at most so many
 *    characters. None of them is markdown, a link or a label of ours.
 * 3. A time is shown as it was written, in its own offset. The offset is named where it is not the
 *    one of the card.
 * 4. Lists are bounded (CALENDAR_CARD_*_MAX), so that the compiler does not have to cut them; what is
 *    left out is said.
 *
 * To add a card: a function like write_card, and its row in tools[].
 */
#include "tool/calendar_cards.h"

#include "base/clock.h"
#include "base/json.h"
#include "base/limits.h"
#include "ui/locale.h"
#include "ui/text.h"

struct calendar_card {
    struct arena *arena;
    struct buf out;
    struct json_writer w;
    enum ui_locale locale;
    const struct json *result;
};

/* ---- words ---- */

/* word, English, Chinese */
#define WORDS(X)                                                            \
    X(LABEL_TITLE, "Title", "标题")                                         \
    X(LABEL_TIME, "Time", "时间")                                           \
    X(LABEL_ZONE, "Time zone", "时区")                                      \
    X(LABEL_PLACE, "Location", "地点")                                      \
    X(LABEL_PEOPLE, "Attendees", "参加者")                                  \
    X(LABEL_TARGET, "Shared with", "分享给")                                \
    X(LABEL_ID, "Id", "编号")                                               \
    X(BUTTON_FILE, "Download my calendar (.ics)", "下载我的日历 (.ics)")    \
    X(BUTTON_DELETE, "Delete", "删除")                                      \
    X(BUTTON_PICK, "Choose", "选择")                                        \
    X(BADGE_CONFLICT, "Conflict", "时间冲突")                               \
    X(TITLE_CONFLICTS, "Conflicts", "时间冲突")                             \
    X(TITLE_WRITTEN, "Event created", "已创建日程")                         \
    X(TITLE_DELETED, "Event deleted", "已删除日程")                         \
    X(TITLE_SHARED, "Event shared", "已分享日程")                           \
    X(TITLE_FREE, "Nothing scheduled", "没有日程")                          \
    X(TITLE_NOBODY, "No user found", "没有找到用户")                        \
    X(BODY_FREE, "Ask about another time, or let me add an event.",         \
      "可以换一段时间查询，也可以让我新建一个日程。")                       \
    X(BODY_NOBODY, "Try another part of the name.", "请换一部分名字再试。") \
    X(BODY_MORE_USERS, "There are others; ask with more of the name.",      \
      "还有其他用户，请提供更完整的名字。")                                 \
    X(FAILED_WRITE, "The event was not created", "日程没有创建")            \
    X(FAILED_READ, "The calendar could not be read", "没有查到日程")        \
    X(FAILED_DELETE, "The event was not deleted", "日程没有删除")           \
    X(FAILED_SHARE, "The event was not shared", "日程没有分享")             \
    X(FAILED_RESOLVE, "The user could not be looked up", "没有查到用户")

#define WORD_ENUM(word, english, chinese) word,
enum calendar_word { WORDS(WORD_ENUM) };
#undef WORD_ENUM
#define WORD_ROW(word, english, chinese) {[UI_EN] = STR(english), [UI_ZH] = STR(chinese)},
static const str words[][UI_LOCALES] = {WORDS(WORD_ROW)};
#undef WORD_ROW

static str say(const struct calendar_card *c, enum calendar_word word)
{
    return words[word][c->locale];
}

/* Where one's own events are to be had (http/routes.c). */
static const str export_path = STR("/api/v1/agent/calendar.ics");

/* ---- texts and times ---- */

static str line(const struct calendar_card *c, str text)
{
    return ui_line(c->arena, text, CALENDAR_CARD_LINE_CHARS_MAX);
}

static str member_line(const struct calendar_card *c, const struct json *object, str name)
{
    return line(c, json_text(json_get(object, name)));
}

/* A time of RFC 3339, taken apart; date is empty if it is none. */
struct stamp {
    str date, hour;
    str offset; /* "+08:00", "UTC" */
    unsigned weekday;
};

static struct stamp stamp_of(str text)
{
    enum { DATE = 10, MINUTE = 16, OFFSET = 6, DAY_MS = 24 * 60 * 60 * 1000 };
    struct stamp stamp = {.date = STR_EMPTY};
    msec at, day;
    if (text.len <= MINUTE || clock_parse(text, &at) || clock_parse((str){text.p, DATE}, &day))
        return stamp;
    int weekday = (int)(day / DAY_MS % 7 + 4 + 7) % 7; /* 1970 began on a Thursday */
    bool utc = text.p[text.len - 1] == 'Z';
    return (struct stamp){.date = {text.p, DATE},
                          .hour = {text.p + DATE + 1, MINUTE - DATE - 1},
                          .offset = utc ? STR("UTC") : str_drop(text, text.len - OFFSET),
                          .weekday = (unsigned)weekday};
}

static str offset_text(const struct calendar_card *c, str offset)
{
    if (!offset.len || str_eq(offset, STR("UTC"))) return offset;
    return arena_printf(c->arena, "UTC%.*s", STR_ARG(offset));
}

/* "2026-11-16 15:00", and the day of the week of it. */
static str moment_text(const struct calendar_card *c, const struct stamp *stamp)
{
    return arena_printf(c->arena, "%.*s %.*s", STR_ARG(stamp->date), STR_ARG(stamp->hour));
}

static str weekday_text(const struct calendar_card *c, const struct stamp *stamp)
{
    static const str days[][UI_LOCALES] = {
        {STR(" (Sun)"), STR("（周日）")}, {STR(" (Mon)"), STR("（周一）")},
        {STR(" (Tue)"), STR("（周二）")}, {STR(" (Wed)"), STR("（周三）")},
        {STR(" (Thu)"), STR("（周四）")}, {STR(" (Fri)"), STR("（周五）")},
        {STR(" (Sat)"), STR("（周六）")},
    };
    return days[stamp->weekday][c->locale];
}

/* When an event is: "2026-11-16 15:00–16:00 (Mon)". Both days are named if it ends on another one,
 * both offsets if they differ; else the offset is, if it is not `home`. */
static str time_text(const struct calendar_card *c, const struct json *event, str home)
{
    str from = json_text(json_get(event, STR("start_time")));
    str to = json_text(json_get(event, STR("end_time")));
    struct stamp start = stamp_of(from), end = stamp_of(to);
    if (!start.date.len || !end.date.len)
        return line(c, arena_printf(c->arena, "%.*s %.*s", STR_ARG(from), STR_ARG(to)));
    bool one_offset = str_eq(start.offset, end.offset);
    bool one_day = str_eq(start.date, end.date) && one_offset;
    str first = moment_text(c, &start), last = one_day ? end.hour : moment_text(c, &end);
    str first_day = one_day ? STR_EMPTY : weekday_text(c, &start), last_day = weekday_text(c, &end);
    str first_zone = one_offset ? STR_EMPTY : offset_text(c, start.offset);
    str last_zone =
        one_offset && str_eq(start.offset, home) ? STR_EMPTY : offset_text(c, end.offset);
    if (one_day && str_eq(start.hour, end.hour)) last = STR_EMPTY; /* a moment */
    return arena_printf(c->arena, "%.*s%.*s%s%.*s%s%.*s%.*s%s%.*s", STR_ARG(first),
                        STR_ARG(first_day), first_zone.len ? " " : "", STR_ARG(first_zone),
                        one_day ? last.len ? "–" : "" : " – ", STR_ARG(last), STR_ARG(last_day),
                        last_zone.len ? " " : "", STR_ARG(last_zone));
}

static str offset_of(const struct json *object, str name)
{
    return stamp_of(json_text(json_get(object, name))).offset;
}

/* The first names of a list: "Ann, Bob (12 in all)". */
static str names_text(const struct calendar_card *c, const struct json *list, size_t max)
{
    bool zh = c->locale == UI_ZH;
    AUTO(buf_done) struct buf out;
    buf_init(&out, TOOL_HINTS_BYTES_MAX);
    const struct json *name = list ? list->child : NULL;
    for (size_t i = 0; name && i < max; name = name->next, i++) {
        if (i) buf_append(&out, zh ? STR("、") : STR(", "));
        buf_append(&out, line(c, json_text(name)));
    }
    if (name) buf_printf(&out, zh ? " 等 %u 人" : " (%u in all)", list->count);
    return arena_str(c->arena, buf_str(&out));
}

/* ---- parts of a card ---- */

static void put_head(struct calendar_card *c, str intent, str status, str title, str icon)
{
    json_member(&c->w, STR("version"), STR("2.1"));
    json_member(&c->w, STR("intent"), intent);
    json_member(&c->w, STR("status"), status);
    json_member(&c->w, STR("title"), title);
    if (icon.len) json_member(&c->w, STR("icon"), icon);
}

/* Nothing if the value is empty. */
static void put_item(struct calendar_card *c, str key, enum calendar_word label, str value,
                     bool copyable)
{
    if (!value.len) return;
    json_object(&c->w);
    json_member(&c->w, STR("key"), key);
    json_member(&c->w, STR("label"), say(c, label));
    json_member(&c->w, STR("value"), value);
    if (copyable) {
        json_member_bool(&c->w, STR("copyable"), true);
    }
    json_object_end(&c->w);
}

static void put_event_items(struct calendar_card *c, const struct json *event)
{
    str zone = offset_of(event, STR("start_time"));
    bool one = str_eq(zone, offset_of(event, STR("end_time")));
    put_item(c, STR("title"), LABEL_TITLE, member_line(c, event, STR("title")), false);
    if (json_get(event, STR("start_time")))
        put_item(c, STR("time"), LABEL_TIME, time_text(c, event, zone), false);
    if (one) put_item(c, STR("timezone"), LABEL_ZONE, offset_text(c, zone), false);
    put_item(c, STR("location"), LABEL_PLACE, member_line(c, event, STR("location")), false);
    const struct json *people = json_get(event, STR("attendees"));
    put_item(c, STR("attendees"), LABEL_PEOPLE, names_text(c, people, CALENDAR_CARD_ATTENDEES_MAX),
             false);
}

static void put_id(struct calendar_card *c, const struct json *event)
{
    put_item(c, STR("id"), LABEL_ID, json_text(json_get(event, STR("id"))), true);
}

static void action_begin(struct calendar_card *c, str label, str style, str icon, str type)
{
    json_object(&c->w);
    json_member(&c->w, STR("label"), label);
    json_member(&c->w, STR("style"), style);
    json_member(&c->w, STR("icon"), icon);
    json_key(&c->w, STR("action"));
    json_object(&c->w);
    json_member(&c->w, STR("type"), type);
}

static void action_end(struct calendar_card *c)
{
    json_object_end(&c->w);
    json_object_end(&c->w);
}

static void put_file_action(struct calendar_card *c)
{
    action_begin(c, say(c, BUTTON_FILE), STR("secondary"), STR("download"), STR("url"));
    json_member(&c->w, STR("url"), export_path);
    action_end(c);
}

/* A call with all its arguments, so that it can be made as it is: an event, and perhaps whom it is
 * for. */
static void put_tool_action(struct calendar_card *c, str label, str style, str icon, str tool,
                            str id, str target)
{
    action_begin(c, label, style, icon, STR("tool"));
    json_member(&c->w, STR("toolId"), tool);
    json_key(&c->w, STR("params"));
    json_object(&c->w);
    json_member(&c->w, STR("id"), id);
    if (target.len) json_member(&c->w, STR("target"), target);
    json_object_end(&c->w);
    action_end(c);
}

static void put_delete_action(struct calendar_card *c, str id)
{
    put_tool_action(c, say(c, BUTTON_DELETE), STR("danger"), STR("trash-2"), STR("calendar_delete"),
                    id, STR_EMPTY);
}

/* For the first attendees: who takes part may want to see it. Whether they are users the call tells. */
static void put_share_actions(struct calendar_card *c, const struct json *event)
{
    enum { TARGET_BYTES_MAX = 128, LABEL_CHARS_MAX = 40 };
    str id = json_text(json_get(event, STR("id")));
    const struct json *people = json_get(event, STR("attendees"));
    const struct json *one = people ? people->child : NULL;
    for (size_t i = 0; one && i < CALENDAR_CARD_SHARES_MAX; one = one->next) {
        str target = json_text(one), name = ui_line(c->arena, target, LABEL_CHARS_MAX);
        if (!ui_trim(name).len || target.len > TARGET_BYTES_MAX) continue;
        str label = arena_printf(c->arena, c->locale == UI_ZH ? "分享给 %.*s" : "Share with %.*s",
                                 STR_ARG(name));
        put_tool_action(c, label, STR("secondary"), STR("share-2"), STR("calendar_share"), id,
                        target);
        i++;
    }
}

/* ---- calendar_write ---- */

static str conflicts_text(const struct calendar_card *c, const struct json *conflicts)
{
    bool more = json_get(c->result, STR("more")) != NULL;
    unsigned count = conflicts->count;
    if (c->locale == UI_ZH)
        return arena_printf(c->arena, "与%s %u 个日程时间重叠", more ? "至少" : "", count);
    return arena_printf(c->arena, "It overlaps with %s%u other event%s", more ? "at least " : "",
                        count, count == 1 ? "" : "s");
}

static void put_conflicts(struct calendar_card *c, const struct json *conflicts)
{
    str home = offset_of(c->result, STR("start_time"));
    json_key(&c->w, STR("sections"));
    json_array(&c->w);
    json_object(&c->w);
    json_member(&c->w, STR("title"), say(c, TITLE_CONFLICTS));
    json_member(&c->w, STR("description"), conflicts_text(c, conflicts));
    json_member(&c->w, STR("status"), STR("warning"));
    json_member(&c->w, STR("icon"), STR("triangle-alert"));
    json_key(&c->w, STR("listItems"));
    json_array(&c->w);
    for (const struct json *event = conflicts->child; event; event = event->next) {
        json_object(&c->w);
        json_member(&c->w, STR("title"), member_line(c, event, STR("title")));
        json_member(&c->w, STR("subtitle"), time_text(c, event, home));
        json_object_end(&c->w);
    }
    json_array_end(&c->w);
    json_object_end(&c->w);
    json_array_end(&c->w);
}

static void write_card(struct calendar_card *c)
{
    const struct json *conflicts = json_get(c->result, STR("conflicts"));
    str id = json_text(json_get(c->result, STR("id")));
    put_head(c, STR("data"), STR("success"), say(c, TITLE_WRITTEN), STR("calendar-check"));
    json_key(&c->w, STR("items"));
    json_array(&c->w);
    put_event_items(c, c->result);
    put_id(c, c->result);
    json_array_end(&c->w);
    if (conflicts && conflicts->count) put_conflicts(c, conflicts);
    json_key(&c->w, STR("actions"));
    json_array(&c->w);
    put_file_action(c);
    put_share_actions(c, c->result);
    put_delete_action(c, id);
    json_array_end(&c->w);
}

/* ---- calendar_read ---- */

/* An event of the list, as far as its time goes. */
struct slot {
    msec start, end;
    bool own; /* and its time is known */
};

static struct slot *slots_of(struct calendar_card *c, const struct json *events)
{
    struct slot *slots = arena_array(c->arena, events->count, sizeof *slots), *slot = slots;
    for (const struct json *event = events->child; event; event = event->next, slot++)
        slot->own = !json_get(event, STR("shared_by")) &&
                    !clock_parse(json_text(json_get(event, STR("start_time"))), &slot->start) &&
                    !clock_parse(json_text(json_get(event, STR("end_time"))), &slot->end);
    return slots;
}

/* As calendar_conflicts has it: one's own events, and those that touch are not in each other's way. */
static bool overlaps(const struct slot *slots, size_t count, size_t at)
{
    const struct slot *mine = &slots[at];
    for (size_t i = 0; i < count && mine->own; i++)
        if (i != at && slots[i].own && slots[i].end > mine->start && slots[i].start < mine->end)
            return true;
    return false;
}

static void put_badge(struct calendar_card *c, const struct json *event, bool conflict)
{
    str other = member_line(c, event, STR("shared_by"));
    if (!other.len && !conflict) return;
    json_key(&c->w, STR("badge"));
    json_object(&c->w);
    json_member(&c->w, STR("label"),
                conflict ? say(c, BADGE_CONFLICT)
                         : arena_printf(c->arena, c->locale == UI_ZH ? "来自 %.*s" : "From %.*s",
                                        STR_ARG(other)));
    json_member(&c->w, STR("status"), conflict ? STR("warning") : STR("info"));
    json_object_end(&c->w);
}

static str place_text(const struct calendar_card *c, const struct json *event)
{
    str place = member_line(c, event, STR("location"));
    str people = names_text(c, json_get(event, STR("attendees")), CALENDAR_CARD_NAMES_MAX);
    const char *between = place.len && people.len ? " · " : "";
    str both = arena_printf(c->arena, "%.*s%s%.*s", STR_ARG(place), between, STR_ARG(people));
    return ui_line(c->arena, both, CALENDAR_CARD_PLACE_CHARS_MAX);
}

static void put_event(struct calendar_card *c, const struct json *event, bool conflict, str home)
{
    str place = place_text(c, event);
    json_object(&c->w);
    json_member(&c->w, STR("title"), member_line(c, event, STR("title")));
    json_member(&c->w, STR("subtitle"), time_text(c, event, home));
    if (place.len) json_member(&c->w, STR("description"), place);
    put_badge(c, event, conflict);
    if (!json_get(event, STR("shared_by"))) {
        json_key(&c->w, STR("actions"));
        json_array(&c->w);
        put_delete_action(c, json_text(json_get(event, STR("id"))));
        json_array_end(&c->w);
    }
    json_object_end(&c->w);
}

/* The time that was asked about. */
static str range_text(const struct calendar_card *c)
{
    struct stamp from = stamp_of(json_text(json_get(c->result, STR("from"))));
    struct stamp to = stamp_of(json_text(json_get(c->result, STR("to"))));
    if (!from.date.len || !to.date.len) return STR_EMPTY;
    str first = moment_text(c, &from), last = moment_text(c, &to), zone = offset_text(c, to.offset);
    str first_zone = str_eq(from.offset, to.offset) ? STR_EMPTY : offset_text(c, from.offset);
    return arena_printf(c->arena, "%.*s%s%.*s %s %.*s %.*s", STR_ARG(first),
                        first_zone.len ? " " : "", STR_ARG(first_zone),
                        c->locale == UI_ZH ? "至" : "to", STR_ARG(last), STR_ARG(zone));
}

static str count_text(const struct calendar_card *c, unsigned count, bool more)
{
    if (c->locale == UI_ZH)
        return arena_printf(c->arena, "%s%u 条日程", more ? "超过 " : "", count);
    return arena_printf(c->arena, "%s%u event%s", more ? "More than " : "", count,
                        count == 1 && !more ? "" : "s");
}

/* What a list does not show is said. */
static void put_left_out(struct calendar_card *c, unsigned count)
{
    bool more = json_get(c->result, STR("more")) != NULL;
    if (count <= CALENDAR_CARD_EVENTS_MAX && !more) return;
    unsigned shown = count < CALENDAR_CARD_EVENTS_MAX ? count : CALENDAR_CARD_EVENTS_MAX;
    json_member(&c->w, STR("body"),
                arena_printf(c->arena,
                             c->locale == UI_ZH
                                 ? "这里只列出前 %u 条；缩短时间范围可以看到其余的。"
                                 : "These are the first %u; ask about a shorter time to see the "
                                   "others.",
                             shown));
}

static void read_card(struct calendar_card *c)
{
    const struct json *events = json_get(c->result, STR("events"));
    unsigned count = events ? events->count : 0;
    bool more = json_get(c->result, STR("more")) != NULL;
    str range = range_text(c), home = offset_of(c->result, STR("from"));
    put_head(c, STR("list"), STR("info"), count ? count_text(c, count, more) : say(c, TITLE_FREE),
             STR("calendar-days"));
    if (range.len) json_member(&c->w, STR("description"), range);
    if (!count) {
        json_member(&c->w, STR("body"), say(c, BODY_FREE));
        return;
    }
    put_left_out(c, count);
    const struct slot *slots = slots_of(c, events);
    const struct json *event = events->child;
    json_key(&c->w, STR("listItems"));
    json_array(&c->w);
    for (size_t i = 0; event && i < CALENDAR_CARD_EVENTS_MAX; event = event->next, i++)
        put_event(c, event, overlaps(slots, count, i), home);
    json_array_end(&c->w);
    json_key(&c->w, STR("actions"));
    json_array(&c->w);
    put_file_action(c);
    json_array_end(&c->w);
}

/* ---- calendar_delete, calendar_share ---- */

static void put_about(struct calendar_card *c, enum calendar_word title, str icon)
{
    put_head(c, STR("status"), STR("success"), say(c, title), icon);
    json_key(&c->w, STR("items"));
    json_array(&c->w);
    put_event_items(c, c->result);
    put_item(c, STR("target"), LABEL_TARGET, member_line(c, c->result, STR("target")), false);
    put_id(c, c->result);
    json_array_end(&c->w);
}

static void delete_card(struct calendar_card *c)
{
    put_about(c, TITLE_DELETED, STR("calendar-x"));
}

static void share_card(struct calendar_card *c)
{
    put_about(c, TITLE_SHARED, STR("share-2"));
}

/* ---- user_resolve ---- */

static void put_user(struct calendar_card *c, const struct json *user)
{
    str id = json_text(json_get(user, STR("id"))), name = json_text(json_get(user, STR("name")));
    json_object(&c->w);
    json_member(&c->w, STR("title"), line(c, name));
    if (!str_eq(id, name)) json_member(&c->w, STR("subtitle"), line(c, id));
    json_member(&c->w, STR("icon"), STR("user"));
    json_key(&c->w, STR("actions"));
    json_array(&c->w);
    action_begin(c, say(c, BUTTON_PICK), STR("secondary"), STR("check"), STR("payload"));
    json_key(&c->w, STR("payload"));
    json_object(&c->w);
    json_key(&c->w, STR("user"));
    json_object(&c->w);
    json_member(&c->w, STR("id"), id);
    json_member(&c->w, STR("name"), name);
    json_object_end(&c->w);
    json_object_end(&c->w);
    action_end(c);
    json_array_end(&c->w);
    json_object_end(&c->w);
}

static void users_card(struct calendar_card *c)
{
    const struct json *users = json_get(c->result, STR("users"));
    unsigned count = users ? users->count : 0;
    bool zh = c->locale == UI_ZH, more = json_get(c->result, STR("more")) != NULL;
    str found = arena_printf(c->arena, zh ? "找到 %u 位用户%s" : "%u user%s found", count,
                             zh || count == 1 ? "" : "s");
    put_head(c, STR("list"), STR("info"), count ? found : say(c, TITLE_NOBODY), STR("users"));
    if (!count) {
        json_member(&c->w, STR("body"), say(c, BODY_NOBODY));
        return;
    }
    if (more) json_member(&c->w, STR("body"), say(c, BODY_MORE_USERS));
    const struct json *user = users->child;
    json_key(&c->w, STR("listItems"));
    json_array(&c->w);
    for (size_t i = 0; user && i < CALENDAR_USERS_MAX; user = user->next, i++) put_user(c, user);
    json_array_end(&c->w);
}

/* ---- choosing ---- */

static const struct {
    str tool;
    void (*put)(struct calendar_card *card);
    enum calendar_word failed;
} tools[] = {
    {STR("calendar_write"), write_card, FAILED_WRITE},
    {STR("calendar_read"), read_card, FAILED_READ},
    {STR("calendar_delete"), delete_card, FAILED_DELETE},
    {STR("calendar_share"), share_card, FAILED_SHARE},
    {STR("user_resolve"), users_card, FAILED_RESOLVE},
};

str calendar_card(struct arena *arena, str tool, const struct tool_result *result, str locale)
{
    struct calendar_card card = {.arena = arena, .locale = ui_locale_of(locale)};
    struct json *json = NULL;
    size_t row = 0;
    while (row < COUNT(tools) && !str_eq(tools[row].tool, tool)) row++;
    if (row == COUNT(tools)) return STR_EMPTY;
    if (!result->error.len) {
        if (json_parse(arena, result->result, &json, NULL) || json->type != JSON_OBJECT)
            return STR_EMPTY;
        card.result = json;
    }
    buf_init(&card.out, TOOL_HINTS_BYTES_MAX);
    json_write_begin(&card.w, &card.out);
    json_object(&card.w);
    if (result->error.len) {
        put_head(&card, STR("status"), STR("error"), say(&card, tools[row].failed), STR_EMPTY);
        json_member(&card.w, STR("body"), line(&card, result->error));
    } else {
        tools[row].put(&card);
    }
    json_object_end(&card.w);
    str hints = card.out.full ? STR_EMPTY : arena_str(arena, buf_str(&card.out));
    buf_done(&card.out);
    return hints;
}

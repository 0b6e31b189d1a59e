/* SPDX-License-Identifier: Apache-2.0
 *
 * Interactions as JSON: on the wire, as facts, as history rows; and who may answer one.
 *
 * Members stand in the order of the documentation, always: stored bytes are sent as they are. What
 * is absent is left out, never null. To add a member: a line in write_interaction, where the
 * documentation has it.
 */
#include <stdio.h>

#include "agent/core/interaction_int.h"
#include "base/clock.h"
#include "base/limits.h"

enum { INTERACTION_VERSION = 1 };

/* ---- texts and refusals ---- */

/* NBSP, zero width space, line and paragraph separator, ideographic space, byte order mark */
static const str blanks[] = {{"\xc2\xa0", 2},     {"\xe2\x80\x8b", 3}, {"\xe2\x80\xa8", 3},
                             {"\xe2\x80\xa9", 3}, {"\xe3\x80\x80", 3}, {"\xef\xbb\xbf", 3}};

static size_t blank_at_start(str text)
{
    if (text.len && (unsigned char)text.p[0] <= ' ') return 1;
    for (size_t i = 0; i < COUNT(blanks); i++)
        if (str_starts(text, blanks[i])) return blanks[i].len;
    return 0;
}

static size_t blank_at_end(str text)
{
    if (text.len && (unsigned char)text.p[text.len - 1] <= ' ') return 1;
    for (size_t i = 0; i < COUNT(blanks); i++)
        if (str_ends(text, blanks[i])) return blanks[i].len;
    return 0;
}

str text_trim(str text)
{
    for (size_t len; (len = blank_at_start(text));) text = str_drop(text, len);
    for (size_t len; (len = blank_at_end(text));) text.len -= len;
    return text;
}

void path_join(const char *path, str name, char out[static PATH_BYTES])
{
    size_t len = (size_t)snprintf(out, PATH_BYTES, "%s%s", path, path[0] ? "." : "");
    assert(len < PATH_BYTES);
    size_t room = PATH_BYTES - 1 - len;
    if (name.len > room) {
        name.len = room;
        while (name.len && ((unsigned char)name.p[name.len] & 0xc0) == 0x80) name.len--;
    }
    snprintf(out + len, PATH_BYTES - len, "%.*s", STR_ARG(name));
}

enum err refuse_unknown(const struct json *object, const char *path, const char *const *names,
                        struct fault *reterr)
{
    for (const struct json *member = object->child; member; member = member->next) {
        size_t i = 0;
        while (names[i] && !str_eq(member->key, str_c(names[i]))) i++;
        if (names[i]) continue;
        char at[PATH_BYTES];
        path_join(path, member->key, at);
        return fault_field(reterr, ERR_INVALID_FIELD, at, "nothing of this name is known here");
    }
    return OK;
}

/* ---- who may answer ---- */

static bool holds(const struct decider *decider, str role)
{
    for (size_t i = 0; i < COUNT(decider->roles); i++)
        if (str_eq(decider->roles[i], role)) return true;
    return false;
}

enum admission interaction_allows(const struct interaction *interaction,
                                  const struct decider *decider)
{
    bool owner = str_eq(interaction->owner, decider->user);
    if (!interaction->approver.len) return owner ? ADMITTED : ADMITTED_NOT_SEEN;
    if (!holds(decider, interaction->approver))
        return owner ? ADMITTED_WRONG_ROLE : ADMITTED_NOT_SEEN;
    return owner && !decider->alone ? ADMITTED_OWN_REQUEST : ADMITTED;
}

/* ---- members ---- */

static void member_time(struct json_writer *w, str key, msec at)
{
    char text[RFC3339_BYTES];
    clock_rfc3339(at, text);
    json_member(w, key, str_c(text));
}

/* These two leave out what is empty. */
static void member_text(struct json_writer *w, str key, str text)
{
    if (text.len) json_member(w, key, text);
}

static void member_raw(struct json_writer *w, str key, str json)
{
    if (!json.len) return;
    json_member_raw(w, key, json);
}

/* ---- the interaction on the wire ---- */

static void write_question(struct json_writer *w, const struct interaction *interaction)
{
    json_member(w, STR("question"), interaction->question);
    member_raw(w, STR("choices"), interaction->choices);
    json_member_bool(w, STR("allowFreeform"), interaction->allow_freeform);
    member_raw(w, STR("fields"), interaction->fields);
    if (interaction->multi) json_member_bool(w, STR("multi"), true);
}

static void write_pending_tool(struct json_writer *w, const struct interaction *interaction)
{
    json_key(w, STR("pendingTool"));
    json_object(w);
    json_member(w, STR("toolName"), interaction->tool);
    json_member(w, STR("argsJson"), interaction->args);
    json_member(w, STR("summary"), interaction->summary);
    member_raw(w, STR("argsSchema"), interaction->args_schema);
    member_text(w, STR("risk"), interaction->risk);
    json_object_end(w);
}

static void write_interaction(struct json_writer *w, const struct interaction *interaction,
                              bool for_owner, str ui, str ui_ref)
{
    bool asks = interaction->type == INTERACTION_ASK_USER;
    json_object(w);
    json_member_u64(w, STR("version"), INTERACTION_VERSION);
    json_member(w, STR("interactionId"), interaction->id);
    json_member(w, STR("type"), str_c(interaction_type_name(interaction->type)));
    json_member(w, STR("status"), str_c(interaction_status_name(interaction->status)));
    if (for_owner) {
        json_member(w, STR("threadId"), interaction->thread_id);
        json_member(w, STR("runId"), interaction->run_id);
        member_text(w, STR("toolCallId"), interaction->call_id);
    }
    json_member(w, STR("displayText"), interaction->display_text);
    if (asks) write_question(w, interaction);
    json_member(w, STR("resumeNode"), interaction->resume_node);
    json_member(w, STR("resumePhase"), interaction->resume_phase);
    json_member_u64(w, STR("resumeStep"), interaction->resume_step);
    if (!asks && interaction->tool.len) write_pending_tool(w, interaction);
    member_text(w, STR("binding"), interaction->binding);
    member_raw(w, STR("ui"), ui);
    member_text(w, STR("uiRef"), ui_ref);
    json_member(w, STR("requester"), interaction->owner);
    if (interaction->approver.len) {
        json_key(w, STR("approvers"));
        json_array(w);
        json_string(w, interaction->approver);
        json_array_end(w);
    }
    member_time(w, STR("openedAt"), interaction->opened);
    if (interaction->expires) member_time(w, STR("expiresAt"), interaction->expires);
    member_raw(w, STR("answer"), interaction->answer);
    member_text(w, STR("answeredBy"), interaction->answered_by);
    member_text(w, STR("via"), interaction->via);
    member_raw(w, STR("metadata"), interaction->metadata);
    json_object_end(w);
}

void interaction_write(struct json_writer *w, const struct interaction *interaction, bool for_owner)
{
    write_interaction(w, interaction, for_owner, interaction->ui, STR_EMPTY);
}

/* ---- documents ---- */

/* More than any document of this interaction takes: what goes in as it is, what is escaped, and
 * ids, names and times. */
static size_t bytes_max(const struct interaction *interaction)
{
    const struct interaction *i = interaction;
    size_t raw = i->choices.len + i->fields.len + i->args_schema.len + i->metadata.len +
                 i->answer.len + i->ui.len;
    size_t text =
        i->display_text.len + i->question.len + i->args.len + i->summary.len + i->text.len;
    return FACT_FRAME_BYTES_MAX + raw + ESCAPE_BYTES_MAX * text;
}

/* A long card would make the fact long for every reader of the stream: it stands at its address. */
static void write_request(struct json_writer *w, struct arena *arena,
                          const struct interaction *interaction)
{
    const struct interaction *i = interaction;
    if (i->ui.len <= CARD_FACT_BYTES_MAX) {
        interaction_write(w, i, true);
        return;
    }
    str ref = arena_printf(arena, "/api/v1/agent/threads/%.*s/messages/%.*s/ui",
                           STR_ARG(i->thread_id), STR_ARG(i->id));
    write_interaction(w, i, true, STR_EMPTY, ref);
}

static void write_resolved(struct json_writer *w, struct arena *arena,
                           const struct interaction *interaction)
{
    (void)arena;
    json_object(w);
    json_member(w, STR("interactionId"), interaction->id);
    json_member(w, STR("status"), str_c(interaction_status_name(interaction->status)));
    member_raw(w, STR("answer"), interaction->answer);
    member_text(w, STR("text"), interaction->text);
    member_text(w, STR("answeredBy"), interaction->answered_by);
    member_text(w, STR("via"), interaction->via);
    member_time(w, STR("at"), interaction->settled);
    json_object_end(w);
}

/* A question is never superseded; were it, nobody would have answered. */
static const char *const clarify_statuses[] = {
    [INTERACTION_OPEN] = "pending",        [INTERACTION_RESOLVED] = "answered",
    [INTERACTION_CANCELED] = "canceled",   [INTERACTION_EXPIRED] = "expired",
    [INTERACTION_SUPERSEDED] = "canceled",
};

/* Who settled it, where and when: what every surface shows beside the answer. */
static void write_settled_by(struct json_writer *w, const struct interaction *interaction)
{
    member_text(w, STR("answered_by"), interaction->answered_by);
    member_text(w, STR("via"), interaction->via);
    if (interaction->settled) member_time(w, STR("answered_at"), interaction->settled);
}

static void write_clarify_row(struct json_writer *w, const struct interaction *interaction)
{
    bool answered = interaction->status == INTERACTION_RESOLVED;
    json_object(w);
    json_member(w, STR("requestId"), interaction->id);
    json_member_raw(w, STR("choices"), interaction->choices.len ? interaction->choices : STR("[]"));
    json_member_bool(w, STR("allowFreeform"), interaction->allow_freeform);
    json_member(w, STR("status"), str_c(clarify_statuses[interaction->status]));
    if (answered) member_text(w, STR("answer"), interaction->text);
    write_settled_by(w, interaction);
    member_text(w, STR("tool_call_id"), interaction->call_id);
    json_member(w, STR("run_id"), interaction->run_id);
    json_object_end(w);
}

static void write_row(struct json_writer *w, struct arena *arena,
                      const struct interaction *interaction)
{
    if (interaction->type == INTERACTION_ASK_USER) {
        write_clarify_row(w, interaction);
        return;
    }
    struct json *answer = NULL;
    str decision = STR_EMPTY;
    if (interaction->answer.len && json_parse(arena, interaction->answer, &answer, NULL) == OK)
        decision = json_text(json_get(answer, STR("decision")));
    json_object(w);
    json_member(w, STR("requestId"), interaction->id);
    json_member(w, STR("type"), str_c(interaction_type_name(interaction->type)));
    json_member(w, STR("status"), str_c(interaction_status_name(interaction->status)));
    member_text(w, STR("tool_name"), interaction->tool);
    member_text(w, STR("tool_call_id"), interaction->call_id);
    member_text(w, STR("decision"), decision);
    if (decision.len) member_text(w, STR("answer"), interaction->text);
    write_settled_by(w, interaction);
    json_member(w, STR("run_id"), interaction->run_id);
    json_object_end(w);
}

static str document(struct arena *arena, const struct interaction *interaction,
                    void (*write)(struct json_writer *w, struct arena *arena,
                                  const struct interaction *interaction))
{
    AUTO(json_doc_done) struct json_doc doc;
    json_doc_open(&doc, bytes_max(interaction));
    write(&doc.w, arena, interaction);
    assert(!doc.buf.full);
    return json_doc_copy(&doc, arena);
}

str fact_interaction_request(struct arena *arena, const struct interaction *interaction)
{
    return document(arena, interaction, write_request);
}

str fact_interaction_resolved(struct arena *arena, const struct interaction *interaction)
{
    return document(arena, interaction, write_resolved);
}

str interaction_role(const struct interaction *interaction)
{
    return interaction->type == INTERACTION_ASK_USER ? STR("clarify") : STR("interaction");
}

str interaction_metadata(struct arena *arena, const struct interaction *interaction)
{
    return document(arena, interaction, write_row);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * The entries of an AG-UI resume, all checked before one is settled. Each goes the way of POST
 * answer (settle.h), with these differences:
 *
 *     settled already                 accepted and ignored: clients send an entry again after a cut
 *     too late, or the tool changed   settled as expired or superseded, noted, and ignored
 *     unknown, foreign, elsewhere     400 resume[i].interruptId
 *     does not fit                    400 resume[i].payload, or a member of it
 *
 * Invariants:
 * 1. Nothing is settled before every entry was found good.
 * 2. Somebody else's interaction is refused in the same bytes as an id that nobody has.
 *
 * To add a way to say it: a row in resume_read, and how its members are called in name_payload.
 */
#include "thread/resume.h"

#include <stdio.h>
#include <string.h>

#include "agent/core/interaction.h"
#include "base/limits.h"

/* ---- payloads ---- */

static enum err bad(struct fault *reterr, const char *member, const char *why)
{
    return fault_field(reterr, ERR_INVALID_FIELD, member, "%s", why);
}

static enum err parse_made(struct arena *arena, const struct buf *made,
                           const struct json **ret_json)
{
    struct json *json = NULL;
    assert(!made->full);
    if (json_parse(arena, arena_str(arena, buf_str(made)), &json, NULL)) return ERR_INTERNAL;
    *ret_json = json;
    return OK;
}

static enum err read_words(struct arena *arena, const struct json *payload,
                           struct resume_body *body)
{
    AUTO(json_doc_done) struct json_doc doc;
    json_doc_open(&doc, payload->raw.len + 32);
    json_object(&doc.w);
    json_member_raw(&doc.w, STR("answer"), payload->raw);
    json_object_end(&doc.w);
    body->words = true;
    return parse_made(arena, &doc.buf, &body->json);
}

static bool is_null(const struct json *member)
{
    return !member || member->type == JSON_NULL;
}

/* {"approved", ...} with our names; members that are not known here are refused by the answer's own
 * rules. */
static enum err read_approved(struct arena *arena, const struct json *payload,
                              struct resume_body *body, struct fault *reterr)
{
    const struct json *approved = json_get(payload, STR("approved"));
    bool edits = !is_null(json_get(payload, STR("editedArgs")));
    if (approved->type != JSON_TRUE && approved->type != JSON_FALSE)
        return bad(reterr, "approved", "approved must be true or false");
    if (json_get(payload, STR("decision")))
        return bad(reterr, "decision", "decision does not go with approved");
    if (json_get(payload, STR("args")))
        return bad(reterr, "args", "beside approved they are called editedArgs");
    if (edits && approved->type == JSON_FALSE)
        return bad(reterr, "editedArgs", "editedArgs goes with approved: true only");
    AUTO(json_doc_done) struct json_doc doc;
    json_doc_open(&doc, payload->raw.len + 64);
    json_object(&doc.w);
    json_member(&doc.w, STR("decision"),
                approved->type == JSON_FALSE ? STR("reject")
                : edits                      ? STR("edit")
                                             : STR("approve"));
    for (const struct json *member = payload->child; member; member = member->next) {
        if (member == approved || is_null(member)) continue;
        json_member_raw(&doc.w, str_eq(member->key, STR("editedArgs")) ? STR("args") : member->key,
                        member->raw);
    }
    json_object_end(&doc.w);
    body->approved = true;
    return parse_made(arena, &doc.buf, &body->json);
}

enum err resume_read(struct arena *arena, enum interaction_type type, const struct json *payload,
                     struct resume_body *ret_body, struct fault *reterr)
{
    struct resume_body body = {.json = payload};
    bool object = payload && payload->type == JSON_OBJECT, confirm = type == INTERACTION_CONFIRM;
    enum err e = OK;
    if (payload && payload->raw.len > ANSWER_BYTES_MAX)
        return fault_field(reterr, ERR_TOO_LARGE, "", "an answer may have %d bytes",
                           ANSWER_BYTES_MAX);
    if (payload && payload->type == JSON_STRING && type == INTERACTION_ASK_USER)
        e = read_words(arena, payload, &body);
    else if (!object && type == INTERACTION_ASK_USER)
        e = bad(reterr, "", "the payload must be a string, or an object that answers the question");
    else if (!object)
        e = bad(reterr, "",
                confirm ? "the payload must be an object with approved: true or false"
                        : "the payload must be an object with a decision");
    else if (confirm && json_get(payload, STR("approved")))
        e = read_approved(arena, payload, &body, reterr);
    else if (confirm && !json_get(payload, STR("decision")))
        e = bad(reterr, "approved", "approved must be true or false");
    if (!e) *ret_body = body;
    return e;
}

/* ---- refusals ---- */

enum { ENTRY_PATH_BYTES = sizeof((struct fault *)NULL)->field };

/* Is it about `args`, and not another member that begins like it? */
static bool is_args(const struct resume_body *body, const char *text)
{
    return body->approved && str_starts(str_c(text), STR("args")) &&
           strchr(".[ ", text[strlen("args")]);
}

/* Where the client finds it, and in its words: members of the body as the payload calls them. */
static void name_payload(size_t index, const struct resume_body *body, struct fault *why)
{
    char path[ENTRY_PATH_BYTES];
    struct fault said = *why;
    bool args = is_args(body, said.field), text = is_args(body, said.text);
    const char *name = args ? said.field + strlen("args") : said.field;
    if (body->words) name = "";
    if (body->approved && strcmp(said.field, "decision") == 0) name = "approved";
    snprintf(path, sizeof path, "resume[%zu].payload%s%s%s", index, name[0] || args ? "." : "",
             args ? "editedArgs" : "", name);
    fault_field(why, said.err, path, "%s%s", text ? "editedArgs" : "",
                said.text + (text ? strlen("args") : 0));
}

static enum err unknown(struct fault *why, size_t index)
{
    char path[ENTRY_PATH_BYTES];
    snprintf(path, sizeof path, "resume[%zu].interruptId", index);
    return fault_field(why, ERR_INVALID_FIELD, path, "nothing on this thread has this id");
}

/* Refused, and that is committed. */
static enum err resume_refuse(struct thread_change *tc, struct db *db, const struct settle *settle,
                              const struct judged *judged, struct resume_found *found)
{
    found->refused = true;
    change_refuse(&tc->change, judged->why.err, &judged->why, STR_EMPTY, STR_EMPTY);
    return settle_refused(db, settle, judged->interaction.thread, &judged->interaction,
                          judged->refusal);
}

/* ---- entries ---- */

/* One that is open and theirs to settle: what they say. */
static enum err judge_entry(struct thread_change *tc, const struct settle *settle,
                            const struct resume_entry *entry, size_t index, struct judged *judged)
{
    struct arena *arena = change_arena(&tc->change);
    struct resume_body body = {0};
    if (entry->cancelled) {
        settle_drop(settle, judged);
        return OK;
    }
    enum err e = resume_read(arena, judged->interaction.type, entry->payload, &body, &judged->why);
    if (e == ERR_INVALID_FIELD || e == ERR_TOO_LARGE) {
        judged->refusal = REFUSAL_INVALID_ANSWER;
        name_payload(index, &body, &judged->why);
        return OK;
    }
    if (!e) e = settle_fit(arena, settle, body.json, judged);
    if (!e && judged->refusal && !judged->overtaken) name_payload(index, &body, &judged->why);
    return e;
}

static enum err take_entry(struct thread_change *tc, struct db *db, const struct settle *settle,
                           const struct resume_entry *entry, size_t index, struct pending *pending,
                           struct resume_found *found)
{
    struct change *change = &tc->change;
    struct judged judged = {0};
    const struct interaction *open = pending_named(pending, entry->interrupt_id);
    if (open) judged.interaction = *open;
    enum err e = open ? OK
                      : settle_find(db, change_arena(change), settle, entry->interrupt_id,
                                    &judged.interaction);
    if (e) return e == ERR_NOT_FOUND ? unknown(&change->why, index) : e;
    bool admitted = settle_admit(settle, entry->cancelled ? WISH_CANCEL : WISH_ANSWER, &judged);
    if (judged.interaction.thread != tc->thread.id) return unknown(&change->why, index);
    found->named = true;
    found->run_id = judged.interaction.run_id;
    if (judged.interaction.status != INTERACTION_OPEN) return OK;
    if (admitted) e = judge_entry(tc, settle, entry, index, &judged);
    if (e) return e;
    if (!admitted && refusal_err(judged.refusal) == ERR_FORBIDDEN) {
        char path[ENTRY_PATH_BYTES];
        snprintf(path, sizeof path, "resume[%zu].interruptId", index);
        fault_field(&judged.why, ERR_FORBIDDEN, path, "%s", refusal_says(judged.refusal));
    }
    if (judged.refusal && !judged.overtaken) return resume_refuse(tc, db, settle, &judged, found);
    pending_settle(pending, &judged.resolution, !judged.refusal);
    return judged.refusal ? settle_refused(db, settle, judged.interaction.thread,
                                           &judged.interaction, judged.refusal)
                          : OK;
}

enum err resume_find(struct thread_change *tc, struct db *db, const struct settle *settle,
                     const struct run_input *input, struct pending *pending,
                     struct resume_found *ret_found)
{
    struct resume_found found = {0};
    enum err e = OK;
    for (size_t i = 0; !e && !found.refused && i < input->resume_count; i++)
        e = take_entry(tc, db, settle, &input->resume[i], i, pending, &found);
    if (!e) *ret_found = found;
    return e;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Any bytes as what is asked and what is replied. The first byte picks what is open, the second how
 * much fits into a message; then a line that is asked, and the reply. A question fits and, where it has
 * a code, shows it; a reply that answers is taken by the server's own check; nothing approves but a
 * word and the very code. The same bytes as a long text come in parts that fit.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/core/interaction.h"
#include "chat/chat_text.h"
#include "ui/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CHOICES                                                                                  \
    "[{\"id\":\"c1\",\"label\":\"30 min\"},{\"id\":\"c2\",\"label\":\"周二\",\"description\":" \
    "\"usual\"},{\"id\":\"c3\",\"label\":\"2\"},{\"id\":\"c4\",\"label\":\"A, b and c\"}]"
#define FIELDS                                                                                    \
    "[{\"name\":\"t\",\"type\":\"text\",\"required\":true},{\"name\":\"n\",\"type\":\"number\"}," \
    "{\"name\":\"b\",\"type\":\"boolean\"},{\"name\":\"d\",\"type\":\"date\"},"                   \
    "{\"name\":\"c\",\"type\":\"choice\",\"choices\":[\"x\",\"y\"]}]"

static const struct interaction templates[] = {
    {.type = INTERACTION_ASK_USER, .choices = STR(CHOICES), .allow_freeform = true},
    {.type = INTERACTION_ASK_USER, .choices = STR(CHOICES)},
    {.type = INTERACTION_ASK_USER, .choices = STR(CHOICES), .multi = true},
    {.type = INTERACTION_ASK_USER, .fields = STR(FIELDS)},
    {.type = INTERACTION_ASK_USER, .allow_freeform = true},
    {.type = INTERACTION_CONFIRM, .tool = STR("pay"), .risk = STR("write")},
    {.type = INTERACTION_CONFIRM, .tool = STR("submit_plan")},
    {.type = INTERACTION_CONNECTION_LOST},
    {.type = INTERACTION_UNCERTAIN, .tool = STR("pay")},
};

static void must(bool holds)
{
    if (!holds) abort();
}

static size_t chars(str text)
{
    size_t count = 0;
    for (; text.len; count++) ui_next_char(&text);
    return count;
}

static void check_question(struct arena *arena, const struct interaction *asked,
                           const struct channel_traits *traits, bool zh)
{
    struct question_view view = {.locale = zh ? UI_ZH : UI_EN,
                                 .traits = traits,
                                 .code = STR("482913"),
                                 .page = STR("https://a.example"),
                                 .mine = true};
    struct question_text text;
    struct json *buttons = NULL;
    question_text(arena, asked, &view, &text);
    must(utf8_valid(text.text) && text.text.len <= traits->bytes_max);
    must(chars(text.text) <= traits->chars_max);
    must(!text.coded || str_find(text.text, STR("482913")) >= 0);
    must(!text.buttons.len || !json_parse(arena, text.buttons, &buttons, NULL));
}

/* A word and the code, however it is spaced. */
static bool looks_approving(str text)
{
    size_t digits = 0, others = 0;
    for (str rest = text; rest.len;) {
        uint32_t code = ui_next_char(&rest);
        if (code >= 0xff10 && code <= 0xff19) code -= 0xff10 - '0';
        if (code >= '0' && code <= '9')
            digits++;
        else
            others++;
    }
    return digits == 6 && others > 0;
}

static void check_reply(struct arena *arena, const struct interaction *asked,
                        const struct channel_traits *traits, str text, bool zh)
{
    struct open_question open = {asked, STR("482913"), 0, true};
    struct reply_context context = {
        .locale = zh ? UI_ZH : UI_EN, .traits = traits, .open = &open, .open_count = 1};
    struct reply reply;
    struct json *body = NULL;
    struct resolution resolution;
    reply_read(arena, &context, text, &reply);
    must(utf8_valid(reply.say));
    if (reply.kind == REPLY_ANSWER) {
        must(!json_parse(arena, reply.body, &body, NULL));
        must(!answer_parse(arena, asked, body, &resolution, NULL));
        if (resolution.decision == DECISION_APPROVE || resolution.decision == DECISION_RETRY)
            must(looks_approving(text));
    }
    context.group = true;
    reply_read(arena, &context, text, &reply);
    if (reply.kind == REPLY_ANSWER) {
        must(!json_parse(arena, reply.body, &body, NULL));
        must(!answer_parse(arena, asked, body, &resolution, NULL));
        must(resolution.decision != DECISION_APPROVE && resolution.decision != DECISION_RETRY);
    }
    str rest;
    (void)command_read(text, &rest);
    (void)text_locale(text, UI_EN);
}

static void check_parts(struct arena *arena, const struct channel_traits *traits, str text)
{
    struct text_parts parts;
    text_split(arena, traits, text, &parts);
    must(parts.count > 0);
    bool valid = utf8_valid(text);
    for (size_t i = 0; i < parts.count; i++) {
        must(parts.parts[i].len <= traits->bytes_max);
        must(!valid || utf8_valid(parts.parts[i]));
        must(!valid || chars(parts.parts[i]) <= traits->chars_max);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2) return 0;
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    str all = {(const char *)data + 2, size - 2}, rest = all, line = str_split(&rest, '\n');
    struct channel_traits traits = {.chars_max = 8u + data[1] * 4u,
                                    .bytes_max = 8u + data[1] * 6u,
                                    .buttons_max = 8,
                                    .button_bytes_max = 64};
    check_parts(&arena, &traits, all);
    struct interaction asked = templates[data[0] % COUNT(templates)];
    asked.id = STR("int_1");
    asked.metadata = STR("{}");
    if (utf8_valid(line))
        asked.question = asked.display_text = asked.summary = asked.args = asked.owner = line;
    check_question(&arena, &asked, &traits, data[0] & 0x80);
    check_reply(&arena, &asked, &traits, rest.p ? rest : line, data[0] & 0x80);
    return 0;
}

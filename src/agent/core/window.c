/* SPDX-License-Identifier: Apache-2.0
 *
 * How much of a conversation fits into the model's window:
 *
 *     |<------------------------- window -------------------------->|
 *     | system, tools |        conversation        | answer | 1,024 |
 *                     |<---------- room ---------->|
 *                     |<----- target: 3/4 -------->|
 *
 * Providers charge less for a request that begins as the one before it, so the beginning has to stay
 * the same for many turns. That is why nothing is cut before it must be, and then down to the target.
 * Where a thread's context begins is stored (state.from_message) and only grows.
 *
 * The newest turn cannot go. If it alone is too long it is walked through in the order in which it
 * grew, piece by piece (a message, or a message with calls and their results), and whenever the sum
 * passes the room:
 *
 *  1. older results are cut, oldest first, and shorter still if that does not do, down to the target;
 *  2. the piece itself is cut: its results in equal shares, or the person's words; a quarter of the
 *     room is left to it in any case;
 *  3. older calls go with their results, oldest first, down to the target;
 *  4. older words of the person are cut like results: there were several messages at once, or one that
 *     had filled the room before the results came.
 *
 * The walk does not look ahead. So a longer turn begins with the same cuts as a shorter one, which is
 * the same steadiness without storing anything.
 *
 * Invariants: a call goes with its results or not at all; a person's words are never dropped; texts are
 * cut at characters, and a line says how much is missing.
 */
#include "agent/core/window.h"

#include <string.h>

#include "base/limits.h"
#include "tool/tools.h"

/* ---- counting ---- */

size_t window_tokens(str text)
{
    size_t ascii = 0, first = 0, of_four = 0;
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.p[i];
        ascii += c < 0x80;
        first += c >= 0xc0;
        of_four += c >= 0xf0;
    }
    return (ascii + 2) / 3 + first + of_four;
}

size_t window_message_tokens(const struct model_message *message)
{
    return WINDOW_MESSAGE_TOKENS + window_tokens(message->text) +
           window_tokens(message->tool_calls) + window_tokens(message->tool_call_id) +
           window_tokens(message->provider_data);
}

static size_t less(size_t a, size_t b)
{
    return a > b ? a - b : 0;
}

size_t window_room(const struct model *model)
{
    if (!model->window) return 0;
    size_t answer = model->max_output, share = model->window / 4;
    if (!answer) answer = share < WINDOW_ANSWER_TOKENS ? share : WINDOW_ANSWER_TOKENS;
    size_t room = less(model->window, answer + WINDOW_RESERVE_TOKENS);
    return room ? room : 1; /* 0 has another meaning */
}

static size_t target_of(const struct window_talk *talk)
{
    return talk->room / 4 * 3;
}

static size_t sum_of(const struct window_talk *talk, size_t from, size_t to)
{
    size_t sum = 0;
    for (size_t i = from; i < to; i++) sum += talk->tokens[i];
    return sum;
}

/* ---- whole turns ---- */

size_t window_first(const struct window_talk *talk, size_t begin, size_t least)
{
    if (begin >= least && sum_of(talk, begin, talk->count) <= talk->room) return begin;
    if (!talk->start_count) return begin;
    size_t turn = talk->start_count - 1, first = talk->starts[turn];
    size_t sum = sum_of(talk, first, talk->count);
    while (first > begin) {
        size_t before = turn > 0 ? talk->starts[--turn] : begin;
        sum += sum_of(talk, before, first);
        if (sum > target_of(talk) || before < least) break;
        first = before;
    }
    return first;
}

/* ---- inside the newest turn ---- */

static bool is_role(const struct window_talk *talk, size_t at, const char *role)
{
    return str_eq(talk->messages[at].role, str_c(role));
}

/* Behind the results of the message at `at`. */
static size_t piece_end(const struct window_talk *talk, size_t at)
{
    do at++;
    while (at < talk->count && is_role(talk, at, "tool"));
    return at;
}

/* Returns what that saves. */
static size_t cut(struct window_talk *talk, size_t at, size_t bytes_max)
{
    struct model_message *message = &talk->messages[at];
    if (bytes_max < WINDOW_CUT_BYTES_MIN) bytes_max = WINDOW_CUT_BYTES_MIN;
    if (message->text.len <= bytes_max) return 0;
    size_t before = window_tokens(message->text);
    message->text = tool_text_cut(talk->arena, message->text, bytes_max, talk->locale);
    size_t saved = less(before, window_tokens(message->text));
    talk->tokens[at] -= saved;
    return saved;
}

static size_t cut_older(struct window_talk *talk, size_t first, size_t at, size_t sum,
                        const bool *gone)
{
    static const size_t steps[] = {WINDOW_CUT_BYTES, WINDOW_CUT_BYTES_MIN};
    for (size_t step = 0; step < COUNT(steps); step++)
        for (size_t i = first; i < at && sum > target_of(talk); i++)
            if (!gone[i] && is_role(talk, i, "tool")) sum -= cut(talk, i, steps[step]);
    return sum;
}

/* A text has no more tokens than half its bytes. */
static size_t cut_own(struct window_talk *talk, size_t at, size_t end, size_t sum)
{
    bool words = is_role(talk, at, "user");
    size_t texts = 0, count = 0, quarter = talk->room / 4;
    for (size_t i = at; i < end; i++) {
        if (!words && !is_role(talk, i, "tool")) continue;
        texts += window_tokens(talk->messages[i].text);
        count++;
    }
    if (!count) return sum;
    size_t left = less(target_of(talk), sum - texts), share;
    if (left < quarter) left = quarter;
    share = left / count;
    for (size_t i = at; i < end; i++)
        if (words || is_role(talk, i, "tool")) sum -= cut(talk, i, 2 * share);
    return sum;
}

static size_t drop_older(struct window_talk *talk, size_t first, size_t at, size_t sum, bool *gone)
{
    for (size_t i = first, end; i < at && sum > target_of(talk); i = end) {
        end = piece_end(talk, i);
        if (gone[i] || !is_role(talk, i, "assistant")) continue;
        sum -= sum_of(talk, i, end);
        memset(gone + i, true, end - i);
    }
    return sum;
}

static size_t cut_words(struct window_talk *talk, size_t first, size_t at, size_t sum)
{
    const size_t steps[] = {talk->room / 4, WINDOW_CUT_BYTES, WINDOW_CUT_BYTES_MIN};
    for (size_t step = 0; step < COUNT(steps); step++)
        for (size_t i = first; i < at && sum > target_of(talk); i++)
            if (is_role(talk, i, "user")) sum -= cut(talk, i, steps[step]);
    return sum;
}

void window_squeeze(struct window_talk *talk, size_t first, bool *gone)
{
    size_t sum = 0;
    for (size_t at = first, end; at < talk->count; at = end) {
        end = piece_end(talk, at);
        sum += sum_of(talk, at, end);
        if (sum > talk->room) sum = cut_older(talk, first, at, sum, gone);
        if (sum > talk->room) sum = cut_own(talk, at, end, sum);
        if (sum > talk->room) sum = drop_older(talk, first, at, sum, gone);
        if (sum > talk->room) sum = cut_words(talk, first, at, sum);
    }
}

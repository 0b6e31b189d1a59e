/* SPDX-License-Identifier: Apache-2.0
 *
 * A thousand random conversations through chat/chat_outbox.c against a platform that counts. A
 * conversation is made from its seed alone; whatever fails names it.
 *
 * The platform takes so many sends after a message of the person, for so long, and refuses the rest.
 * A message that gives less time than is left of the one before does not end that one.
 * Now and then it is busy, says nothing about what it did, wants a login, takes less than it promised
 * or is asked by a process that dies. It keeps what the person got.
 *
 * What must hold:
 * 1. It never sees more than it allows.
 * 2. Every answer and question that it did not refuse arrives in the end, in the order of putting; but
 *    questions and errors may pass answers.
 * 3. One that arrives twice says so the second time, and never where the platform knows repeats.
 * 4. A notice or an error arrives at most once, and is not sent again after an unknown fate.
 */
#include <stdio.h>

#include "base/limits.h"
#include "chat/chat_outbox.h"
#include "check.h"
#include "store/fixture.h"

#define SECOND ((msec)1000)
#define HOUR   (3600 * SECOND)

enum { CONVERSATIONS = 1000, STEPS = 60, PUTS_MAX = 40, ROUNDS_MAX = 200, SENDS_MAX = 2000 };

static const struct channel_traits kinds[] = {
    {.kind = "weixin", .sends_max = 10, .sends_kept = 2, .window_ms = 24 * HOUR},
    {.kind = "strict", .sends_max = 3, .sends_kept = 1, .window_ms = HOUR},
    {.kind = "free"},
    {.kind = "counted", .sends_max = 5, .sends_kept = 2, .dedups = true},
    {.kind = "deduping", .window_ms = 2 * HOUR, .dedups = true},
};

struct sent { /* one that was put, by its number */
    enum out_class class;
    int arrived, unmarked;
    bool refused, unknown;
    char client_ids[8][32]; /* that the platform knows */
    int ids;
};

struct leave { /* to send */
    bool given;
    uint32_t allows, seen; /* allows 0: no limit */
    msec closes;           /* 0: never */
};

struct talk {
    struct db_fixture *t;
    unsigned long long seed;
    uint64_t random;
    const struct channel_traits *traits;
    int64_t peer;
    msec now;
    struct sent put[PUTS_MAX];
    int put_count, newest[2]; /* newest: number of what arrived last, and of what may pass it */
    int faults;               /* of a hundred sends */
    struct leave leaves[2];   /* of the platform: the one that is open longest, and a short one */
    bool doubt; /* it said that no more may come while a message of theirs was on its way to us */
};

#define WRONG(talk, ...)                               \
    do {                                               \
        char why_[160];                                \
        snprintf(why_, sizeof why_, __VA_ARGS__);      \
        fail_msg("seed %llu: %s", (talk)->seed, why_); \
    } while (0)
#define GOOD(talk, e)                                               \
    do {                                                            \
        enum err e_ = (e);                                          \
        if (e_) WRONG(talk, "line %d: %s", __LINE__, err_code(e_)); \
    } while (0)

static unsigned chance(struct talk *talk, unsigned below)
{
    uint64_t z = talk->random += 0x9e3779b97f4a7c15; /* splitmix64 */
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return (unsigned)((z ^ (z >> 31)) % below);
}

/* ---- the person and the platform ---- */

static void person_writes(struct talk *talk)
{
    struct inbound inbound = {.allowance = chance(talk, 6) ? 0 : 1 + chance(talk, 4),
                              .window_ms = chance(talk, 6) ? 0 : 60 * SECOND};
    uint32_t allows = inbound.allowance ? inbound.allowance : talk->traits->sends_max;
    msec window_ms = inbound.window_ms ? inbound.window_ms : talk->traits->window_ms;
    struct peer peer = {0};
    struct leave leave = {true, allows, 0, window_ms ? talk->now + window_ms : 0};
    const struct leave *longest = &talk->leaves[0];
    bool shorter =
        longest->given && leave.closes && (!longest->closes || longest->closes > leave.closes);
    talk->leaves[shorter] = leave;
    if (!shorter) talk->leaves[1] = (struct leave){0};
    GOOD(talk, peer_by_id(talk->t->db, &talk->t->arena, talk->peer, &peer));
    GOOD(talk, outbox_heard(talk->t->db, talk->traits, &inbound, &peer, talk->now));
}

static bool knows(const struct sent *sent, str client_id)
{
    for (int i = 0; i < sent->ids; i++)
        if (str_eq(str_c(sent->client_ids[i]), client_id)) return true;
    return false;
}

static void arrives(struct talk *talk, const struct out_row *row, int number)
{
    struct sent *sent = &talk->put[number];
    if (talk->traits->dedups && knows(sent, row->client_id)) return;
    if (knows(sent, row->client_id)) WRONG(talk, "%d came again with the same id", number);
    int *newest = &talk->newest[row->class == OUT_QUESTION || row->class == OUT_ERROR];
    if (number < *newest) WRONG(talk, "%d came behind %d", number, *newest);
    *newest = number;
    sent->arrived++;
    if (!row->again) sent->unmarked++;
    if ((size_t)sent->ids == COUNT(sent->client_ids)) WRONG(talk, "%d came too often", number);
    snprintf(sent->client_ids[sent->ids++], sizeof sent->client_ids[0], "%.*s",
             STR_ARG(row->client_id));
}

enum fate {
    ARRIVES,
    BUSY,
    OFTEN,
    SILENT_LOST,
    SILENT_ARRIVES,
    NO_MORE,
    NEVER,
    LOGIN,
    DIES,
    DIES_ARRIVES
};

/* fate, how many of a hundred that are not well */
static const struct {
    enum fate fate;
    unsigned share;
} fates[] = {{BUSY, 20}, {OFTEN, 10}, {SILENT_LOST, 15}, {SILENT_ARRIVES, 15}, {NO_MORE, 10},
             {NEVER, 5}, {LOGIN, 5},  {DIES, 10},        {DIES_ARRIVES, 10}};

static enum fate fate_of(struct talk *talk)
{
    if (chance(talk, 100) >= (unsigned)talk->faults) return ARRIVES;
    unsigned at = chance(talk, 100);
    for (size_t i = 0; i < COUNT(fates); i++) {
        if (at < fates[i].share) return fates[i].fate;
        at -= fates[i].share;
    }
    WRONG(talk, "shares are not a hundred");
    return ARRIVES;
}

static const enum errand_verdict verdicts[] = {
    [ARRIVES] = VERDICT_DONE,
    [BUSY] = VERDICT_AGAIN,
    [OFTEN] = VERDICT_OFTEN,
    [SILENT_LOST] = VERDICT_UNKNOWN,
    [SILENT_ARRIVES] = VERDICT_UNKNOWN,
    [NO_MORE] = VERDICT_SPENT,
    [NEVER] = VERDICT_REFUSED,
    [LOGIN] = VERDICT_LOGIN,
    [DIES] = VERDICT_UNKNOWN, /* as nobody is there to say */
    [DIES_ARRIVES] = VERDICT_UNKNOWN,
};

/* Which one it counts a send against is the platform's own affair. NULL: there is none. */
static struct leave *leave_for(struct talk *talk)
{
    struct leave *open[2];
    unsigned count = 0;
    for (size_t i = 0; i < COUNT(talk->leaves); i++) {
        struct leave *leave = &talk->leaves[i];
        bool late = leave->closes && talk->now >= leave->closes;
        bool spent = leave->allows && leave->seen >= leave->allows;
        if (leave->given && !late && !spent) open[count++] = leave;
    }
    return count ? open[chance(talk, count)] : NULL;
}

/* The platform gets one message. */
static enum fate platform_gets(struct talk *talk, const struct out_row *row)
{
    int number = -1;
    char text[32];
    snprintf(text, sizeof text, "%.*s", STR_ARG(row->text));
    if (sscanf(text, "m%d", &number) != 1 || number < 0 || number >= talk->put_count)
        WRONG(talk, "a message that nobody put: %s", text);
    struct sent *sent = &talk->put[number];
    bool once = !talk->traits->dedups && (sent->class == OUT_NOTICE || sent->class == OUT_ERROR);
    if (once && sent->unknown) WRONG(talk, "%d was sent again", number);
    struct leave *leave = leave_for(talk);
    if (!leave) {
        if (!talk->doubt) WRONG(talk, "%d is too late or too many", number);
        talk->doubt = false; /* one more to be sure, and no other */
        return NO_MORE;
    }
    enum fate fate = fate_of(talk);
    bool unknown = verdicts[fate] == VERDICT_UNKNOWN;
    if (fate == ARRIVES || unknown || fate == NEVER) leave->seen++;
    if (fate == ARRIVES || fate == SILENT_ARRIVES || fate == DIES_ARRIVES)
        arrives(talk, row, number);
    if (fate == NO_MORE) { /* less than it promised, until they write again */
        for (size_t i = 0; i < COUNT(talk->leaves); i++) talk->leaves[i].given = false;
    }
    if (fate == NEVER) sent->refused = true;
    if (unknown) sent->unknown = true;
    return fate;
}

/* ---- us ---- */

static void puts_one(struct talk *talk)
{
    if (talk->put_count == PUTS_MAX) return;
    int number = talk->put_count++;
    struct out_row row = {.peer = talk->peer,
                          .class = (enum out_class)chance(talk, OUT_CLASS_COUNT)};
    row.text = arena_printf(&talk->t->arena, "m%d", number);
    talk->put[number].class = row.class;
    GOOD(talk, outbox_put(talk->t->db, &talk->t->arena, &row, talk->now));
}

/* One send if there is one: true. *ret_at: as outbox_take says. */
static bool sends_one(struct talk *talk, msec *ret_at)
{
    struct db_fixture *t = talk->t;
    struct out_row row = {0};
    struct peer peer = {0};
    enum err e =
        outbox_take(t->db, &t->arena, talk->traits, talk->peer, talk->now, &row, &peer, ret_at);
    if (e == ERR_NOT_FOUND) return false;
    GOOD(talk, e);
    bool before = !chance(talk, 12);
    if (before) person_writes(talk); /* before it gets there */
    enum fate fate = platform_gets(talk, &row);
    talk->doubt = before && fate == NO_MORE;
    talk->now += chance(talk, 2000);
    if (!chance(talk, 12)) person_writes(talk); /* before we know */
    if (fate >= DIES) {
        GOOD(talk, outbox_recover(t->db, &t->arena, talk->traits, talk->peer, talk->now));
        return true;
    }
    msec wait_ms = chance(talk, 3) ? 0 : chance(talk, 9000);
    GOOD(talk, outbox_end(t->db, &t->arena, talk->traits, &row, verdicts[fate], wait_ms, STR("s"),
                          talk->now));
    return true;
}

static void step(struct talk *talk)
{
    static const msec spans[] = {SECOND, 20 * SECOND, HOUR / 4, HOUR, 13 * HOUR};
    msec at = 0;
    switch (chance(talk, 10)) {
    case 0:
        person_writes(talk);
        break;
    case 1:
    case 2:
    case 3:
        puts_one(talk);
        break;
    case 4:
        talk->now += spans[chance(talk, COUNT(spans))];
        break;
    default:
        sends_one(talk, &at);
    }
}

/* They write until there is nothing left to say. */
static void finish(struct talk *talk)
{
    size_t waiting = 1;
    for (int round = 0; waiting; round++) {
        if (round == ROUNDS_MAX) WRONG(talk, "%zu still wait", waiting);
        person_writes(talk);
        msec at = 1;
        for (int sends = 0; at && sends < SENDS_MAX; sends++) {
            at = 1;
            if (!sends_one(talk, &at) && at > talk->now) talk->now = at;
        }
        if (at) WRONG(talk, "it never comes to rest");
        talk->now += HOUR;
        GOOD(talk, out_waiting(talk->t->db, talk->peer, &waiting));
    }
}

static void judge(struct talk *talk)
{
    for (int i = 0; i < talk->put_count; i++) {
        const struct sent *sent = &talk->put[i];
        bool kept = sent->class == OUT_FINAL || sent->class == OUT_QUESTION;
        if (kept && !sent->refused && !sent->arrived) WRONG(talk, "%d never came", i);
        if (sent->unmarked > 1) WRONG(talk, "%d came %d times unmarked", i, sent->unmarked);
        if ((!kept || talk->traits->dedups) && sent->arrived > 1)
            WRONG(talk, "%d came %d times", i, sent->arrived);
        if (sent->arrived > sent->unmarked && !sent->unknown)
            WRONG(talk, "%d is marked without a reason", i);
    }
}

static void conversations(void **state)
{
    struct db_fixture *t = *state;
    static struct talk talk;
    int twice = 0, marked = 0, arrived = 0;
    bool unknown = false;
    assert_int_equal(db_begin(t->db), OK);
    for (unsigned long long seed = 1; seed <= CONVERSATIONS; seed++) {
        talk = (struct talk){.t = t, .seed = seed, .random = seed, .now = 1000 * 24 * HOUR};
        talk.traits = &kinds[chance(&talk, COUNT(kinds))];
        talk.faults = (int)chance(&talk, 60);
        struct peer peer = {.channel = STR("wx"), .sender = arena_printf(&t->arena, "%llu", seed)};
        GOOD(&talk, peer_add(t->db, &peer));
        talk.peer = peer.id;
        person_writes(&talk);
        for (int i = 0; i < STEPS; i++) step(&talk);
        finish(&talk);
        judge(&talk);
        arena_reset(&t->arena);
        for (int i = 0; i < talk.put_count; i++) {
            arrived += talk.put[i].arrived > 0;
            twice += talk.put[i].arrived > 1;
            marked += talk.put[i].arrived > talk.put[i].unmarked;
        }
    }
    assert_int_equal(db_commit(t->db, &unknown), OK);
    /* The worlds have what they are for. */
    assert_true(arrived > 5 * CONVERSATIONS && twice > CONVERSATIONS / 20 && marked > twice);
}

int test_outbox_model(void)
{
    const struct CMUnitTest tests[] = {WITH_DB(conversations)};
    return cmocka_run_group_tests_name("channel/outbox model", tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * The stand-in, and its model: a call ends with MODEL_AGAIN in the next turn of the loop, so the shell
 * of the agent takes the path of any model that cannot be reached.
 */
#include "app/agents/stand_in.h"

#include <stdlib.h>
#include <string.h>

#include "app/say.h"
#include "base/limits.h"
#include "net/loop.h"

struct stand_in {
    struct agent agent; /* first: it is what others have */
    struct loop *loop;
    char *name;
    struct fault why;
};

struct model_call {
    const struct stand_in *stand_in;
    const struct model_sink *sink;
    void *arg;
    struct timer *timer;
};

static void call_free(struct model_call *call)
{
    timer_free(call->timer);
    free(call);
}

static void on_due(void *arg)
{
    struct model_call *call = arg;
    const struct model_sink *sink = call->sink;
    const struct fault *why = &call->stand_in->why;
    void *to = call->arg;
    call_free(call);
    sink->on_end(to, &(struct model_ending){.end = MODEL_AGAIN, .why = why});
}

static struct model_call *start(void *self, const struct model_request *request,
                                const struct model_sink *sink, void *arg)
{
    (void)request;
    struct stand_in *stand_in = self;
    struct model_call *call = calloc(1, sizeof *call);
    if (!call) abort();
    *call = (struct model_call){.stand_in = stand_in, .sink = sink, .arg = arg};
    call->timer = timer_new(stand_in->loop, on_due, call);
    timer_start(call->timer, 0);
    return call;
}

static void keep(void *self)
{
    (void)self; /* stand_in_free does it */
}

static const struct model_ops ops = {.start = start, .cancel = call_free, .free = keep};

static const struct policy_row deny_all[] = {{STR("*"), VERDICT_DENY}};

const struct agent *stand_in_new(struct loop *loop, str name)
{
    struct stand_in *stand_in = calloc(1, sizeof *stand_in);
    if (!stand_in) abort();
    stand_in->loop = loop;
    stand_in->name = strndup(name.len ? name.p : "", name.len);
    if (!stand_in->name) abort();
    if (name.len)
        fault(&stand_in->why, ERR_MODEL_UNAVAILABLE,
              "the agent %s is not configured any more; configure it again to go on",
              say(name).text);
    else
        fault(&stand_in->why, ERR_MODEL_UNAVAILABLE,
              "its agent is not configured any more; configure it again to go on");
    stand_in->agent =
        (struct agent){.name = str_c(stand_in->name),
                       .model = {.ops = &ops, .self = stand_in, .provider = "none", .name = "none"},
                       .max_rounds = AGENT_ROUNDS_MAX, /* of a run that begins with it, for good */
                       .policy = {.rows = deny_all, .count = COUNT(deny_all)}};
    return &stand_in->agent;
}

void stand_in_free(const struct agent *agent)
{
    if (!agent) return;
    struct stand_in *stand_in = (struct stand_in *)(void *)agent;
    free(stand_in->name);
    free(stand_in);
}

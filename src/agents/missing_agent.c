/* SPDX-License-Identifier: Apache-2.0
 *
 * The missing agent: who answers for one that is not configured any more. A call of its model ends
 * with MODEL_AGAIN in the next turn of the loop, so the shell of the agent takes the path of any
 * model that cannot be reached.
 */
#include "agents/missing_agent.h"

#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/say.h"
#include "net/loop.h"

struct missing_agent {
    struct agent agent; /* first: it is what others have */
    struct loop *loop;
    char *name;
    struct fault why;
};

struct model_call {
    const struct missing_agent *missing;
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
    const struct fault *why = &call->missing->why;
    void *to = call->arg;
    call_free(call);
    sink->on_end(to, &(struct model_ending){.end = MODEL_AGAIN, .why = why});
}

static struct model_call *start(void *self, const struct model_request *request,
                                const struct model_sink *sink, void *arg)
{
    (void)request;
    struct missing_agent *missing = self;
    struct model_call *call = mem_new(sizeof *call);
    *call = (struct model_call){.missing = missing, .sink = sink, .arg = arg};
    call->timer = timer_new(missing->loop, on_due, call);
    timer_start(call->timer, 0);
    return call;
}

static void keep(void *self)
{
    (void)self; /* missing_agent_free does it */
}

static const struct model_ops ops = {.start = start, .cancel = call_free, .free = keep};

static const struct policy_row deny_all[] = {{STR("*"), VERDICT_DENY}};

const struct agent *missing_agent_new(struct loop *loop, str name)
{
    struct missing_agent *missing = mem_new(sizeof *missing);
    missing->loop = loop;
    missing->name = mem_str(name);
    if (name.len)
        fault(&missing->why, ERR_MODEL_UNAVAILABLE,
              "the agent %s is not configured any more; configure it again to go on",
              say(name).text);
    else
        fault(&missing->why, ERR_MODEL_UNAVAILABLE,
              "its agent is not configured any more; configure it again to go on");
    missing->agent =
        (struct agent){.name = str_c(missing->name),
                       .model = {.ops = &ops, .self = missing, .provider = "none", .name = "none"},
                       .max_rounds = AGENT_ROUNDS_MAX, /* of a run that begins with it, for good */
                       .policy = {.rows = deny_all, .count = COUNT(deny_all)}};
    return &missing->agent;
}

void missing_agent_free(const struct agent *agent)
{
    if (!agent) return;
    struct missing_agent *missing = (struct missing_agent *)(void *)agent;
    free(missing->name);
    free(missing);
}

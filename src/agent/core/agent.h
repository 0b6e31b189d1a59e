/* SPDX-License-Identifier: Apache-2.0
 *
 * An agent: what it is configured to be, with the settings of the database over the file. Lives on
 * the loop thread, which alone changes it; a job gets copies of what it needs.
 */
#ifndef AGENT_CORE_AGENT_H
#define AGENT_CORE_AGENT_H

#include "agent/core/policy.h"
#include "model/model.h"

enum busy { BUSY_ENQUEUE, BUSY_REJECT, BUSY_INTERRUPT };
/* When the last one who reads along has gone while the run is at work. */
enum on_disconnect { DISCONNECT_CONTINUE, DISCONNECT_PAUSE, DISCONNECT_CANCEL };
enum plan_mode { PLAN_AUTO, PLAN_ALWAYS, PLAN_NEVER };

struct agent {
    str name;
    struct model model;
    enum busy busy;
    enum on_disconnect on_disconnect;
    enum plan_mode plan;
    bool ask_user;
    uint32_t max_rounds;
    str prompt;           /* the operator's own words, put before ours; may be empty */
    str locale;           /* "zh-CN" or "en"; empty: the language of the person's message */
    uint64_t tokens_max;  /* of a run; 0: no limit */
    uint64_t cost_max;    /* likewise, in pico units of the model's currency: model.h */
    msec active_ms_max;   /* of a run, waiting for people not counted; 0: no limit */
    struct policy policy; /* of the file */
    struct policy policy_settings; /* of the database, over it */
    const struct tool **tools;     /* those it may use, in the order offered */
    size_t tool_count;
};

const struct tool *agent_tool(const struct agent *agent, str name); /* NULL: not one of its */

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * A request with a RunAgentInput: POST /runs and POST /ag-ui/{agent}. What it brings is told by
 * run_input.h; what becomes of it on its thread by take_input.h; here it is received and answered.
 */
#ifndef HTTP_API_POST_RUN_H
#define HTTP_API_POST_RUN_H

#include "base/str.h"

struct exchange;

/* Answers the exchange: with the AG-UI stream of the leg that it begins or joins, or with a 202 that
 * says where its events are. A refusal is a problem document in both forms. `agent` is one that there
 * is; empty: the body says which, else it is the thread's if there still is such a one, else the
 * default. */
void post_run(struct exchange *x, str agent, bool stream);

#endif

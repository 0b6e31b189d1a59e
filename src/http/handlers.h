/* SPDX-License-Identifier: Apache-2.0
 *
 * The handlers named in the route tables. Each answers its exchange exactly once.
 */
#ifndef HTTP_HANDLERS_H
#define HTTP_HANDLERS_H

#include "base/err.h"

struct exchange;

/* api_ops.c */
void handle_healthz(struct exchange *x);
void handle_readyz(struct exchange *x);
void handle_metrics(struct exchange *x);
void handle_openapi(struct exchange *x);

/* api_session.c */
void handle_session_get(struct exchange *x);
void handle_session_post(struct exchange *x);
void handle_session_delete(struct exchange *x);
void handle_ticket_post(struct exchange *x);

/* api_post_run.c */
void handle_run_post(struct exchange *x);

/* api_agui.c */
void handle_agui_post(struct exchange *x);
void handle_agui_capabilities(struct exchange *x);

/* api_runs.c */
void handle_run_get(struct exchange *x);
void handle_run_cancel(struct exchange *x);
void handle_queue_delete(struct exchange *x);

/* api_actions.c */
void handle_action_post(struct exchange *x);

/* api_threads.c */
void handle_threads_list(struct exchange *x);
void handle_thread_get(struct exchange *x);
void handle_thread_patch(struct exchange *x);
void handle_thread_delete(struct exchange *x);
void handle_thread_export(struct exchange *x);

/* api_interactions.c */
void handle_interactions_list(struct exchange *x);
void handle_interaction_get(struct exchange *x);
void handle_interaction_patch(struct exchange *x);
void handle_interaction_answer(struct exchange *x);
void handle_interaction_cancel(struct exchange *x);
void handle_run_answer(struct exchange *x);

/* api_ui.c */
void handle_compile_ui_hints(struct exchange *x);

/* api_grants.c */
void handle_grants_list(struct exchange *x);
void handle_grant_delete(struct exchange *x);

/* api_result.c */
void handle_message_result(struct exchange *x);
void handle_message_ui(struct exchange *x);

/* api_upload.c */
void handle_attachment_post(struct exchange *x);

/* api_attachments.c */
void handle_attachment_get(struct exchange *x);

/* api_history.c */
void handle_history(struct exchange *x);
void handle_run_history(struct exchange *x);
void handle_events(struct exchange *x);

/* api_socket.c */
void handle_socket(struct exchange *x);

/* api_mcp.c */
void handle_mcp(struct exchange *x);

/* api_calendar.c */
void handle_calendar(struct exchange *x);

/* api_agents.c */
void handle_agents_list(struct exchange *x);
void handle_settings_get(struct exchange *x);
void handle_settings_patch(struct exchange *x);

/* api_channels.c */
void handle_channels_list(struct exchange *x);
void handle_channel_login(struct exchange *x);
void admin_channel_link(struct exchange *x);
void admin_channel_unlink(struct exchange *x);

/* api_channel_hook.c */
enum err admit_channel_hook(struct exchange *x, struct fault *reterr);
void handle_channel_hook_get(struct exchange *x);
void handle_channel_hook_post(struct exchange *x);

#endif

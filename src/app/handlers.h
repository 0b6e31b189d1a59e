/* SPDX-License-Identifier: Apache-2.0
 *
 * The handlers named in the route tables. Each answers its exchange exactly once.
 */
#ifndef APP_HANDLERS_H
#define APP_HANDLERS_H

struct exchange;

/* handle_ops.c */
void handle_healthz(struct exchange *x);
void handle_readyz(struct exchange *x);
void handle_metrics(struct exchange *x);
void handle_openapi(struct exchange *x);

/* handle_session.c */
void handle_session_get(struct exchange *x);
void handle_session_post(struct exchange *x);
void handle_session_delete(struct exchange *x);
void handle_ticket_post(struct exchange *x);

/* post_run.c */
void handle_run_post(struct exchange *x);

/* handle_agui.c */
void handle_agui_post(struct exchange *x);
void handle_agui_capabilities(struct exchange *x);

/* handle_runs.c */
void handle_run_get(struct exchange *x);
void handle_run_cancel(struct exchange *x);
void handle_queue_delete(struct exchange *x);

/* handle_actions.c */
void handle_action_post(struct exchange *x);

/* handle_threads.c */
void handle_threads_list(struct exchange *x);
void handle_thread_get(struct exchange *x);
void handle_thread_patch(struct exchange *x);
void handle_thread_delete(struct exchange *x);
void handle_thread_export(struct exchange *x);

/* handle_interactions.c */
void handle_interactions_list(struct exchange *x);
void handle_interaction_get(struct exchange *x);
void handle_interaction_patch(struct exchange *x);
void handle_interaction_answer(struct exchange *x);
void handle_interaction_cancel(struct exchange *x);
void handle_run_answer(struct exchange *x);

/* handle_ui.c */
void handle_compile_ui_hints(struct exchange *x);

/* handle_grants.c */
void handle_grants_list(struct exchange *x);
void handle_grant_delete(struct exchange *x);

/* handle_result.c */
void handle_message_result(struct exchange *x);
void handle_message_ui(struct exchange *x);

/* handle_upload.c */
void handle_attachment_post(struct exchange *x);

/* handle_attachments.c */
void handle_attachment_get(struct exchange *x);

/* handle_history.c */
void handle_history(struct exchange *x);
void handle_run_history(struct exchange *x);
void handle_events(struct exchange *x);

/* ws_session.c */
void handle_socket(struct exchange *x);

/* mcp_server.c */
void handle_mcp(struct exchange *x);

/* handle_calendar.c */
void handle_calendar(struct exchange *x);

/* handle_agents.c */
void handle_agents_list(struct exchange *x);
void handle_settings_get(struct exchange *x);
void handle_settings_patch(struct exchange *x);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * The handlers named in the route tables. Each answers its exchange exactly once.
 */
#ifndef APP_API_HANDLERS_H
#define APP_API_HANDLERS_H

struct exchange;

/* ops.c */
void handle_healthz(struct exchange *x);
void handle_readyz(struct exchange *x);
void handle_metrics(struct exchange *x);
void handle_openapi(struct exchange *x);

/* session.c */
void handle_session_get(struct exchange *x);
void handle_session_post(struct exchange *x);
void handle_session_delete(struct exchange *x);
void handle_ticket_post(struct exchange *x);

/* post_run.c */
void handle_run_post(struct exchange *x);

/* agui.c */
void handle_agui_post(struct exchange *x);
void handle_agui_capabilities(struct exchange *x);

/* runs.c */
void handle_run_get(struct exchange *x);
void handle_run_cancel(struct exchange *x);
void handle_queue_delete(struct exchange *x);

/* actions.c */
void handle_action_post(struct exchange *x);

/* threads.c */
void handle_threads_list(struct exchange *x);
void handle_thread_get(struct exchange *x);
void handle_thread_patch(struct exchange *x);
void handle_thread_delete(struct exchange *x);
void handle_thread_export(struct exchange *x);

/* interactions.c */
void handle_interactions_list(struct exchange *x);
void handle_interaction_get(struct exchange *x);
void handle_interaction_patch(struct exchange *x);
void handle_interaction_answer(struct exchange *x);
void handle_interaction_cancel(struct exchange *x);
void handle_run_answer(struct exchange *x);

/* ui.c */
void handle_compile_ui_hints(struct exchange *x);

/* grants.c */
void handle_grants_list(struct exchange *x);
void handle_grant_delete(struct exchange *x);

/* result.c */
void handle_message_result(struct exchange *x);
void handle_message_ui(struct exchange *x);

/* upload.c */
void handle_attachment_post(struct exchange *x);

/* attachments.c */
void handle_attachment_get(struct exchange *x);

/* history.c */
void handle_history(struct exchange *x);
void handle_run_history(struct exchange *x);
void handle_events(struct exchange *x);

/* socket/session.c */
void handle_socket(struct exchange *x);

/* mcp/server.c */
void handle_mcp(struct exchange *x);

/* calendar.c */
void handle_calendar(struct exchange *x);

/* agents.c */
void handle_agents_list(struct exchange *x);
void handle_settings_get(struct exchange *x);
void handle_settings_patch(struct exchange *x);

/* channels.c */
void handle_channels_list(struct exchange *x);
void handle_channel_login(struct exchange *x);
void admin_channel_link(struct exchange *x);
void admin_channel_unlink(struct exchange *x);

/* channel/hook.c */
void handle_channel_hook_get(struct exchange *x);
void handle_channel_hook_post(struct exchange *x);

#endif

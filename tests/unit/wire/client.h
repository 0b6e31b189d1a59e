/* SPDX-License-Identifier: Apache-2.0
 *
 * An AG-UI client for tests: it reads the bytes of an answer, refuses whatever a real one refuses
 * (shapes of events, nulls, order, what must be closed), and builds the list of messages by the rules
 * of the stock client. Any refusal fails the test and prints the frame.
 */
#ifndef TESTS_WIRE_CLIENT_H
#define TESTS_WIRE_CLIENT_H

#include "wire/agui.h"

struct client_call {
    str id, name, args;
    struct client_call *next;
};

struct client_message {
    str id, role;
    str content; /* a text; of a list, its bytes */
    str call_id; /* of a result */
    struct client_call *calls;
    struct client_message *next;
};

struct client {
    struct arena *arena;
    enum agui_profile profile;
    bool running, over; /* over: a run has ended, and none has begun behind it */
    str thread_id, run_id;
    const char *ended; /* type of the last terminal event */
    struct client_message *messages;
    struct client_open *open; /* texts, calls, ... that are open */
    size_t interrupts;        /* of the last RUN_FINISHED */
    size_t frames, snapshots;
};

void client_init(struct client *client, struct arena *arena, enum agui_profile profile);

/* A whole answer, or several behind each other. The bytes must outlive the client. */
void client_read(struct client *client, str bytes);

/* It has an end and nothing is open. */
void client_check_over(const struct client *client);

/* The client's messages are exactly the rows that it should have, in their order. `apart`: those of
 * people and those of the agent each in their order; a stock client appends what a snapshot has new,
 * so a message that came while words were open stands behind these words. */
void client_check_rows(const struct client *client, const struct agui_row *rows, size_t count,
                       bool apart);

#endif

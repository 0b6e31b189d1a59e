/* SPDX-License-Identifier: Apache-2.0
 *
 * Metrics in Prometheus' text form. One row of METRICS makes the field, the name and the help.
 */
#ifndef SERVER_METRICS_H
#define SERVER_METRICS_H

#include "base/buf.h"

/* field, name, type, help */
#define METRICS(X)                                                                                 \
    X(requests_2xx, "fermata_http_requests_total{class=\"2xx\"}", "counter", "Requests by status") \
    X(requests_3xx, "fermata_http_requests_total{class=\"3xx\"}", "counter", "Requests by status") \
    X(requests_4xx, "fermata_http_requests_total{class=\"4xx\"}", "counter", "Requests by status") \
    X(requests_5xx, "fermata_http_requests_total{class=\"5xx\"}", "counter", "Requests by status") \
    X(unauthenticated, "fermata_http_unauthenticated_total", "counter",                            \
      "Requests without a valid key")                                                              \
    X(rate_limited, "fermata_http_rate_limited_total", "counter", "Requests over the rate limit")  \
    X(connections, "fermata_http_connections", "gauge", "Open connections")                        \
    X(attachments_lost, "fermata_attachments_lost_total", "counter",                               \
      "Files asked for that are gone or damaged")                                                  \
    X(runs_active, "fermata_runs_active", "gauge", "Runs that are worked on")                      \
    X(streams, "fermata_event_streams", "gauge", "Open event streams")                             \
    X(sockets, "fermata_websockets", "gauge", "Open WebSockets")                                   \
    X(encoded_native, "fermata_events_encoded_total{dialect=\"native\"}", "counter",               \
      "Facts and previews encoded, for however many readers")                                      \
    X(encoded_agui, "fermata_events_encoded_total{dialect=\"ag-ui\"}", "counter",                  \
      "Facts and previews encoded, for however many readers")                                      \
    X(encoded_socket, "fermata_events_encoded_total{dialect=\"websocket\"}", "counter",            \
      "Facts and previews encoded, for however many readers")                                      \
    X(store_commits, "fermata_store_commits_total", "counter", "Transactions on disk")             \
    X(store_jobs, "fermata_store_jobs_total", "counter", "Write jobs finished")                    \
    X(store_reads, "fermata_store_reads_total", "counter", "Read jobs finished")                   \
    X(statements_write, "fermata_store_statements_total{job=\"write\"}", "counter",                \
      "SQL statements run, by the kind of job")                                                    \
    X(statements_read, "fermata_store_statements_total{job=\"read\"}", "counter",                  \
      "SQL statements run, by the kind of job")                                                    \
    X(store_retries, "fermata_store_retries_total", "counter", "Jobs run again after a rollback")  \
    X(store_full, "fermata_store_full_total", "counter", "Jobs refused for lack of disk space")    \
    X(blob_puts_ok, "fermata_blob_puts_total{result=\"ok\"}", "counter",                           \
      "Objects given to object storage, by result")                                                \
    X(blob_puts_failed, "fermata_blob_puts_total{result=\"failed\"}", "counter",                   \
      "Objects given to object storage, by result")                                                \
    X(blob_gets_ok, "fermata_blob_gets_total{result=\"ok\"}", "counter",                           \
      "Objects asked of object storage, by result")                                                \
    X(blob_gets_failed, "fermata_blob_gets_total{result=\"failed\"}", "counter",                   \
      "Objects asked of object storage, by result")                                                \
    X(blobs_damaged, "fermata_blobs_damaged_total", "counter",                                     \
      "Objects found with other bytes than were stored")                                           \
    X(blobs_waiting, "fermata_blobs_waiting", "gauge",                                             \
      "Payloads kept in the database or the spool until object storage takes them")                \
    X(blobs_swept, "fermata_blobs_swept_total", "counter",                                         \
      "Objects removed because nothing named them")                                                \
    X(resident_bytes, "process_resident_memory_bytes", "gauge", "Memory in use")                   \
    X(start_seconds, "process_start_time_seconds", "gauge", "Start of the process since 1970")

#define METRIC_FIELD(field, name, type, help) uint64_t field;
struct metrics {
    METRICS(METRIC_FIELD)
};
#undef METRIC_FIELD

void metrics_count_status(struct metrics *metrics, int status);
void metrics_write(const struct metrics *metrics, struct buf *out);

uint64_t metrics_resident_bytes(void); /* of this process */

#endif

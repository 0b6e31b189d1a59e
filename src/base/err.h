/* SPDX-License-Identifier: Apache-2.0
 *
 * Errors: one list makes the enum, the code on the wire, the title and the HTTP status.
 *
 * A fallible function returns `enum err`; OK is 0. Where a person will read the reason it also
 * takes a `struct fault *reterr`, which may be NULL, and fills it through fault(). Functions below
 * app/ return errors and never log them, so each failure is logged once, where its request is
 * known.
 */
#ifndef BASE_ERR_H
#define BASE_ERR_H

#include "base/def.h"

/* enum, code in problem documents, HTTP status, title */
#define ERRS(X)                                                                              \
    X(OK, "ok", 200, "OK")                                                                   \
    X(ERR_BAD_REQUEST, "bad_request", 400, "Malformed request")                              \
    X(ERR_INVALID_FIELD, "invalid_field", 400, "Invalid field")                              \
    X(ERR_UNAUTHENTICATED, "unauthenticated", 401, "Authentication required")                \
    X(ERR_FORBIDDEN, "forbidden", 403, "Not allowed")                                        \
    X(ERR_FORBIDDEN_HOST, "forbidden_host", 403, "Host not allowed")                         \
    X(ERR_NOT_FOUND, "not_found", 404, "Not found")                                          \
    X(ERR_METHOD_NOT_ALLOWED, "method_not_allowed", 405, "Method not allowed")               \
    X(ERR_NOT_ACCEPTABLE, "not_acceptable", 406, "Not acceptable")                           \
    X(ERR_TIMEOUT, "request_timeout", 408, "Request took too long")                          \
    X(ERR_BUSY, "busy", 409, "Busy")                                                         \
    X(ERR_ALREADY_RESOLVED, "already_resolved", 409, "Already resolved")                     \
    X(ERR_AMBIGUOUS, "ambiguous", 409, "Ambiguous")                                          \
    X(ERR_SUPERSEDED, "superseded", 409, "Superseded")                                       \
    X(ERR_NOT_CURRENT, "not_current", 409, "Not the current run")                            \
    X(ERR_EXPIRED, "expired", 410, "Expired")                                                \
    X(ERR_BINDING_MISMATCH, "binding_mismatch", 412, "Binding does not match")               \
    X(ERR_TOO_LARGE, "too_large", 413, "Too large")                                          \
    X(ERR_URI_TOO_LONG, "uri_too_long", 414, "Request target too long")                      \
    X(ERR_UNSUPPORTED_TYPE, "unsupported_type", 415, "Unsupported content type")             \
    X(ERR_RANGE, "range_not_satisfiable", 416, "Range not satisfiable")                      \
    X(ERR_EXPECTATION, "expectation_failed", 417, "Expectation not supported")               \
    X(ERR_IDEMPOTENCY_MISMATCH, "idempotency_mismatch", 422, "Key reused with another body") \
    X(ERR_INVALID_HINTS, "invalid_hints", 422, "Invalid UI hints")                           \
    X(ERR_UPGRADE_REQUIRED, "upgrade_required", 426, "Upgrade required")                     \
    X(ERR_RATE_LIMITED, "rate_limited", 429, "Too many requests")                            \
    X(ERR_HEAD_TOO_LARGE, "head_too_large", 431, "Request header section too large")         \
    X(ERR_INTERNAL, "internal", 500, "Internal error")                                       \
    X(ERR_NOT_IMPLEMENTED, "not_implemented", 501, "Not implemented")                        \
    X(ERR_MODEL_UNAVAILABLE, "model_unavailable", 503, "Model unavailable")                  \
    X(ERR_SHUTTING_DOWN, "shutting_down", 503, "Shutting down")                              \
    X(ERR_STORE_UNAVAILABLE, "store_unavailable", 503, "Store not available")                \
    X(ERR_VERSION, "version_not_supported", 505, "HTTP version not supported")               \
    X(ERR_STORAGE_FULL, "storage_full", 507, "Storage full")                                 \
    X(ERR_QUOTA, "quota_exceeded", 507, "Quota exceeded")                                    \
    /* The rest are our own affairs: a client sees them as `internal`. */                    \
    X(ERR_IO, "io", 500, "Input or output failed")                                           \
    X(ERR_DAMAGED, "damaged", 500, "Stored bytes are damaged")                               \
    X(ERR_NO_THREAD, "no_thread", 503, "The system gives no thread for it")                  \
    X(ERR_LOCKED, "locked", 500, "Held by another process")                                  \
    X(ERR_CONFIG, "config", 500, "Configuration refused")                                    \
    X(ERR_NETWORK, "network", 502, "Peer could not be reached")                              \
    X(ERR_CANCELLED, "cancelled", 500, "Cancelled")

#define ERR_ENUM(name, code, status, title) name,
enum err { ERRS(ERR_ENUM) ERR_COUNT };
#undef ERR_ENUM

const char *err_code(enum err e);
const char *err_title(enum err e);
int err_status(enum err e);

/* Why something failed, for a person: fixed size, no allocation on the error path. */
struct fault {
    enum err err;
    char field[128]; /* path of the offending field, "" if none */
    char text[384];
};

/* Fill reterr (unless NULL) and return e, so that a refusal is one line. Text too long is cut. */
enum err fault(struct fault *reterr, enum err e, const char *format, ...) PRINTF(3, 4);

/* The same, naming the field. */
enum err fault_field(struct fault *reterr, enum err e, const char *field, const char *format, ...)
    PRINTF(4, 5);

#ifdef __clang_analyzer__ /* sees one file at a time: not that these return what they were given */
#define fault(reterr, e, ...)              ((void)(fault)(reterr, e, __VA_ARGS__), (e))
#define fault_field(reterr, e, field, ...) ((void)(fault_field)(reterr, e, field, __VA_ARGS__), (e))
#endif

#endif

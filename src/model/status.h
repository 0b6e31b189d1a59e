/* SPDX-License-Identifier: Apache-2.0
 *
 * What a provider's refusal means: worth another attempt or not, when, and what people read about it.
 * Texts of others pass status_clean first: without keys, on one line, short. Pure.
 */
#ifndef MODEL_STATUS_H
#define MODEL_STATUS_H

#include "base/arena.h"
#include "model/model.h"

/* Of an answer that is no 2xx, or of an error inside one that names such a status: MODEL_AGAIN or
 * MODEL_FAILED. */
enum model_end status_end(int status);

/* "HOST answered 401: check ...: its own words". `words` is clean, or empty. */
void status_explain(struct fault *ret_why, const char *host, int status, str words);

/* What others say, for people: the key and every stretch of it that has STATUS_KEY_RUN bytes becomes
 * stars, and so does a word with "***" in it, which is how providers show a key; control characters
 * become spaces, what is no UTF-8 becomes "?", and it is cut to MODEL_WORDS_BYTES_MAX. */
enum { STATUS_KEY_RUN = 8 };
str status_clean(struct arena *arena, str words, str key);

/* How long a provider wants to be left alone: `ms` is its header retry-after-ms, `after` its
 * Retry-After, in seconds or as a date; `date` is its Date, against which that date is read, or else
 * `now`. 0: it does not say. At most MODEL_RETRY_READ_MS_MAX. */
msec status_retry_after(str ms, str after, str date, msec now);

#endif

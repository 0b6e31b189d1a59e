/* SPDX-License-Identifier: Apache-2.0
 *
 * The other JSON parser of bench_json. It has a file of its own because jansson and base/json give
 * the same names to different things.
 */
#ifndef BENCH_JSON_PEER_H
#define BENCH_JSON_PEER_H

#include "base/str.h"

void json_peer_parse(str text); /* parse and free; aborts if refused */

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * The API document (OpenAPI 3.1), made from the route table the server itself uses.
 */
#ifndef APP_API_OPENAPI_H
#define APP_API_OPENAPI_H

#include "app/http/route.h"

void openapi_write(struct buf *out, const struct routes *routes);

/* Is there a schema of this name? For the test that every row's schemas exist. */
bool openapi_has_schema(const char *name);

#endif

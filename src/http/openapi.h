/* SPDX-License-Identifier: Apache-2.0
 *
 * The API document (OpenAPI 3.1), made from the route table the server itself uses.
 */
#ifndef HTTP_OPENAPI_H
#define HTTP_OPENAPI_H

#include "http/route.h"

void openapi_write(struct buf *out, const struct routes *routes);

/* Is there a schema of this name, a parameter? For the test that those of every row exist. */
bool openapi_has_schema(const char *name);
bool openapi_has_parameter(const char *name);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * The models of a configuration: one for each entry of `models`, and the one of the options `model.*`
 * if an agent uses it. Made once, shared by the agents that name them.
 */
#ifndef AGENTS_MODELS_H
#define AGENTS_MODELS_H

#include "config/config.h"
#include "model/model.h"

struct client;
struct loop;
struct models;

/* ERR_CONFIG names the entry and its option. Loop and client outlive the models; the configuration is
 * not kept. */
enum err models_new(struct loop *loop, struct client *client, const struct config *config,
                    struct models **ret_models, struct fault *reterr) MUST_USE;
void models_free(struct models *models); /* after the last call of any; NULL is fine */

/* As an agent names it: empty is the one of the options. NULL: there is none. */
const struct model *models_find(const struct models *models, str name);
size_t models_count(const struct models *models);

/* What a provider behind HTTP is given. Borrows from the entry. */
struct model_http_options models_http(const struct config_model *config);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * The models of a configuration, made once: its entries into struct model. The provider makes the
 * model; what the entry says besides (window, price, pauses) is filled in here, for all providers
 * alike.
 *
 * To add a provider: its name in enum config_provider, and a branch in make().
 */
#include "agents/models.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/say.h"

struct entry {
    str name;
    struct model model;
};

struct models {
    struct entry *rows;
    size_t count;
    struct arena arena;
};

struct model_http_options models_http(const struct config_model *config)
{
    return (struct model_http_options){.base_url = config->base_url,
                                       .name = config->model,
                                       .api_key = config->api_key,
                                       .max_output = config->max_output,
                                       .images = config->images,
                                       .connect_ms = (msec)config->connect_s * 1000,
                                       .first_byte_ms = (msec)config->first_byte_s * 1000,
                                       .idle_ms = (msec)config->idle_s * 1000};
}

/* ---- making one ---- */

static enum err refused(const struct config *config, const struct config_model *c,
                        const struct fault *why, struct fault *reterr)
{
    char path[sizeof why->field + 80], place[160] = "";
    snprintf(path, sizeof path, "%s%s%s%s", c->name.len ? "models." : "model",
             c->name.len ? say(c->name).text : "", why->field[0] ? "." : "", why->field);
    if (c->line) snprintf(place, sizeof place, "%s:%u: ", say(config->file).text, c->line);
    return fault_field(reterr, ERR_CONFIG, path, "%s%s: %s", place, path, why->text);
}

static enum err make(struct loop *loop, struct client *client, const struct config *config,
                     const struct config_model *c, struct model *ret_model, struct fault *reterr)
{
    struct model_http_options http = models_http(c);
    const char *log = config->script_log.len ? config->script_log.p : NULL;
    struct model model = {0};
    struct fault why = {0};
    enum err e = OK;
    switch (c->provider) {
    case PROVIDER_DEMO:
        model_demo(loop, &model);
        break;
    case PROVIDER_SCRIPTED:
        /* what it says names the file, not an option */
        e = model_scripted(loop, config->script.p, log, &model, reterr);
        if (e) return e;
        break;
    case PROVIDER_OPENAI:
        e = model_openai(client, &http, &model, &why);
        break;
    case PROVIDER_ANTHROPIC:
        e = model_anthropic(client, &http, &model, &why);
        break;
    }
    if (e) return refused(config, c, &why, reterr);
    model.window = c->window;
    model.max_output = c->max_output;
    model.retry_ms = c->retry_ms;
    model.price = c->price;
    *ret_model = model;
    return OK;
}

/* ---- all of them ---- */

static void models_freep(struct models **models)
{
    models_free(*models);
}

enum err models_new(struct loop *loop, struct client *client, const struct config *config,
                    struct models **ret_models, struct fault *reterr)
{
    AUTO(models_freep) struct models *models = mem_new(sizeof *models);
    arena_init(&models->arena);
    models->rows = arena_array(&models->arena, config->models.count + 1, sizeof *models->rows);
    bool options = false; /* does an agent use the model of the options? */
    for (size_t i = 0; i < config->agents.count && !options; i++)
        options = !config->agents.items[i].model.len;
    for (size_t i = 0; i < config->models.count + options; i++) {
        const struct config_model *c =
            i < config->models.count ? &config->models.items[i] : &config->model;
        struct entry *row = &models->rows[models->count];
        enum err e = make(loop, client, config, c, &row->model, reterr);
        if (e) return e;
        row->name = arena_str(&models->arena, c->name);
        models->count++;
    }
    *ret_models = TAKE(models);
    return OK;
}

void models_free(struct models *models)
{
    if (!models) return;
    for (size_t i = 0; i < models->count; i++) model_free(&models->rows[i].model);
    arena_done(&models->arena);
    free(models);
}

const struct model *models_find(const struct models *models, str name)
{
    for (size_t i = 0; i < models->count; i++)
        if (str_eq(models->rows[i].name, name)) return &models->rows[i].model;
    return NULL;
}

size_t models_count(const struct models *models)
{
    return models->count;
}

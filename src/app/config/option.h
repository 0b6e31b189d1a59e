/* SPDX-License-Identifier: Apache-2.0
 *
 * The option table, for config.c which fills struct config from it and print.c which
 * describes it; and the checks that record.c shares with it. Everybody else asks config.h.
 */
#ifndef APP_CONFIG_OPTION_H
#define APP_CONFIG_OPTION_H

#include "app/config/config.h"

enum option_type {
    PATH,
    SECRET,
    LISTEN,
    URL,
    LOG,
    PROVIDER,
    BUSY,
    DISCONNECT,
    PLAN,
    LOCALE,
    BOOL,
    BYTES,
    U32,
    U64,
    TEXT,
    TEXTS,
    TOOLS,
    POLICY,
    APPROVERS,
    CIDRS,
    ORIGINS,
    HOSTS,
    STORAGE,
    ENDPOINT,
    MODEL,
    ENTRY,
    PRICE,
    COST,
    CURRENCY,
    TYPE_COUNT
};

/* What a row fills a field of. */
enum option_of { OF_CONFIG, OF_MODEL, OF_AGENT, OF_COUNT };

struct option {
    const char *name; /* in YAML, dots between levels; flag and environment name come from it */
    enum option_type type;
    enum option_of of;
    size_t offset;        /* of its field in what it fills */
    const char *fallback; /* as one would write it; "" = not set */
    uint64_t min, max;    /* of BYTES, U32, U64, PRICE and COST */
    const char *help[LANG_COUNT];
    bool not_in_file; /* only environment and flag */
    const char *env;  /* its name in the environment when another one than usual; NULL: the usual */
};

extern const struct option options[];
extern const size_t option_count;

/* A map in the file whose entries are described by rows of the table: each has a name of its own
 * in place of how the rows begin. */
struct option_map {
    const char *name;   /* "models"; NULL: OF_CONFIG has none */
    const char *rows;   /* "model.": how the names of its rows begin */
    const char *own;    /* "assistant": the entry that the options are; NULL: none is */
    const char *needed; /* "model.provider": a row that every entry gives; NULL: none */
    const char *help[LANG_COUNT], *example;
};
extern const struct option_map option_maps[OF_COUNT];

/* How values of a type are written. */
enum option_shape {
    SHAPE_ONE,
    SHAPE_LIST, /* [a, b] in YAML, a,b elsewhere */
    SHAPE_MAP,  /* {a: b} in YAML, a=b elsewhere */
};
struct option_form {
    const char *placeholder; /* in help */
    const char *write;       /* completes "write ..." */
    enum option_shape shape;
    bool prose; /* any text, lines and all; else one line that can be printed */
};
const struct option_form *option_form(enum option_type type);

struct option_name {
    char text[64];
};
const struct option *option_at(str name);                    /* NULL: no key of the file */
struct option_name option_flag(const struct option *option); /* "limits-body" */
struct option_name option_env(const struct option *option);  /* "FERMATA_LIMITS_BODY" */
str option_leaf(str name);                                   /* "body" of "limits.body" */

/* Words that the API takes, too; they end in NULL. */
extern const char *const plan_names[]; /* by enum plan_mode */
extern const char *const locale_names[];
extern const char *const provider_names[]; /* by enum config_provider */

/* Where a value came from: "default", "fermata.yaml:3", "FERMATA_DATA" or "--data". */
struct option_place {
    char text[128];
};
struct option_place option_place(const struct config *config, const struct option *option,
                                 const struct config_value *value);

/* Where values go: the options themselves, or an entry of a map. */
struct option_target {
    const struct config *config; /* names the file in messages */
    struct arena *arena;
    struct fault *reterr;
    void *fills[OF_COUNT];       /* by what a row fills; NULL: it has no such rows */
    struct config_value *values; /* one per row of the table */
    const char *path, *rows;     /* "models.main." stands for "model." in messages; else "" */
};

/* What a person calls a row there: "models.main.price.input". */
struct option_path {
    char text[160];
};
struct option_path option_path(const struct option_target *target, str name);

/* Check a value, parse it into its field and remember it in the target's values. On failure all is
 * as it was and the fault says what is wrong, where, and what to write. */
enum err option_set(const struct option_target *target, const struct option *option,
                    struct config_value value) MUST_USE;

/* May this be an API key, a name of tools with or without a * at its end, a URL to call? NULL, or
 * why not. */
const char *option_secret_check(str key) MUST_USE;
const char *option_pattern_check(str pattern) MUST_USE;
const char *option_address_check(str text) MUST_USE;

/* The text of a file that holds one line, without the end of that line. */
str option_line(str bytes);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * The option table, for config.c which fills struct config from it and config_print.c which
 * describes it; and the checks that record.c shares with it. Everybody else asks config.h.
 */
#ifndef APP_OPTION_H
#define APP_OPTION_H

#include "app/config.h"

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
    TYPE_COUNT
};

struct option {
    const char *name; /* in YAML, dots between levels; flag and environment name come from it */
    enum option_type type;
    size_t offset;        /* of its field in struct config */
    const char *fallback; /* as one would write it; "" = not set */
    uint64_t min, max;    /* of BYTES, U32 and U64 */
    const char *help[LANG_COUNT];
    bool not_in_file; /* only environment and flag */
    const char *env;  /* its name in the environment when another one than usual; NULL: the usual */
};

extern const struct option options[];
extern const size_t option_count;

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
struct option_name option_flag(const struct option *option); /* "limits-body" */
struct option_name option_env(const struct option *option);  /* "FERMATA_LIMITS_BODY" */
str option_leaf(str name);                                   /* "body" of "limits.body" */

/* Words that the API takes, too; they end in NULL. */
extern const char *const plan_names[]; /* by enum plan_mode */
extern const char *const locale_names[];

/* Where a value came from: "default", "fermata.yaml:3", "FERMATA_DATA" or "--data". */
struct option_place {
    char text[128];
};
struct option_place option_place(const struct config *config, const struct option *option,
                                 const struct config_value *value);

/* Check a value, parse it into its field and remember it in config->values. On failure config is as
 * it was and the fault says what is wrong, where, and what to write. */
enum err option_set(struct config *config, struct arena *arena, const struct option *option,
                    struct config_value value, struct fault *reterr) MUST_USE;

/* May this be an API key, a name of tools with or without a * at its end? NULL, or why not. */
const char *option_secret_check(str key) MUST_USE;
const char *option_pattern_check(str pattern) MUST_USE;

/* The text of a file that holds one line, without the end of that line. */
str option_line(str bytes);

#endif

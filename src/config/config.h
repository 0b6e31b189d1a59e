/* SPDX-License-Identifier: Apache-2.0
 *
 * Configuration: a table of options (option.c) makes the YAML keys, the environment names, the
 * flags, the checks, the help and docs/CONFIGURATION.md. Its rows about a model and an agent also
 * describe the entries of the maps `models` and `agents`, which stand in the file alone, as the maps
 * and lists of record.c do, whose tables have rows of the same kind.
 *
 * Later wins: default, file, environment, flag. Every value given is checked, also one that a later
 * source replaces. Values live in the arena given to config_load; a str in struct config is
 * NUL-terminated, and empty when the option is not set. Nothing changes after config_load: readable
 * from any thread.
 */
#ifndef CONFIG_CONFIG_H
#define CONFIG_CONFIG_H

#include "agent/core/agent.h"
#include "base/arena.h"
#include "base/json.h"
#include "base/log.h"
#include "config/host.h"

struct strs {
    const str *items;
    size_t count;
};

struct cidrs {
    const struct cidr *items;
    size_t count;
};

struct config_log {
    enum log_level level;
    bool json;
};

enum config_provider { PROVIDER_DEMO, PROVIDER_SCRIPTED, PROVIDER_OPENAI, PROVIDER_ANTHROPIC };

enum config_source { CONFIG_DEFAULT, CONFIG_FILE, CONFIG_ENVIRONMENT, CONFIG_FLAG };

/* What was written for an option, and where; a scalar is one item, an unset one none, a map its
 * names and values in turn. */
struct config_value {
    enum config_source source;
    uint32_t line; /* of CONFIG_FILE */
    struct strs items;
    const uint32_t *lines; /* of the items, where each has its own; else NULL */
    bool silent;           /* says nothing about the entry that it is of: not shown */
};

/* How an entry of a map or list of the file begins. */
struct config_entry {
    uint32_t line; /* 0: it does not stand in the file */
    str name;
    struct config_value *values; /* as written, one per row of its table */
};

/* A model: one entry of `models`, or the options `model.*`, which are the one without a name. */
struct config_model {
    uint32_t line; /* 0: the options */
    str name;      /* what agents call it; empty: the options */
    struct config_value *values;
    enum config_provider provider;
    str base_url; /* of openai and anthropic, theirs if none is given; never ends in / */
    str model;    /* what the provider calls it (`name` in the file) */
    str api_key_file, api_key;                /* the key, wherever it came from; empty: none */
    uint32_t window, max_output;              /* tokens; 0: not said */
    bool images;                              /* it can be shown pictures */
    uint32_t retry_ms;                        /* before the second attempt */
    uint32_t connect_s, first_byte_s, idle_s; /* time-outs */
    struct model_price price;
};
struct config_models {
    const struct config_model *items;
    size_t count;
};

/* An agent: an entry of `agents`; `assistant` may also come from options, or be there by default. */
struct config_agent {
    uint32_t line; /* 0: it does not stand in the file */
    str name;      /* "assistant" */
    struct config_value *values;
    str model; /* name of an entry of `models`; empty: the options `model.*` */
    str prompt;
    struct strs tools; /* names of tools or packs, or patterns; "*" is all */
    enum plan_mode plan;
    enum busy busy; /* what happens to a message on a busy thread */
    enum on_disconnect on_disconnect;
    bool ask_user;
    uint32_t max_rounds;
    str locale; /* "zh-CN" or "en"; empty: the language of the person's message */
    struct strs starters;
    uint64_t tokens_max;  /* of a run; 0 = no limit */
    uint32_t minutes_max; /* likewise */
    uint64_t cost_max;    /* likewise; pico units of its model's currency, as in model.h */
    struct policy policy;
};
/* At least one. The first is the one that is meant when a request names none: `assistant` if there
 * is one, else the first of the file. */
struct config_agents {
    const struct config_agent *items;
    size_t count;
};

/* A header to send along. */
struct config_header {
    str name, value;
    str file; /* that the value was read from; empty if it stands in the configuration */
};
struct config_headers {
    const struct config_header *items;
    size_t count;
};

/* One item of `tools`. Its schema is not compiled yet: agents_tool_schema does that. */
struct config_template {
    str zh, en; /* empty: the general rules of ui/summary.h */
};
struct config_http_tool {
    uint32_t line;
    str name;
    struct config_value *values;
    str url, description;
    struct config_template summary; /* of what it did */
    const struct json *schema;      /* an object; its `raw` is the text, on one line */
    bool write, idempotent;
    enum tool_risk risk; /* of a write */
    uint32_t timeout_s;
    struct config_headers headers;
};
struct config_http_tools {
    const struct config_http_tool *items;
    size_t count;
};

/* An entry of `mcp`: a server that offers tools. */
struct config_pair {
    str name, value;
};
struct config_pairs {
    const struct config_pair *items;
    size_t count;
};
struct config_mcp {
    uint32_t line;
    str name;
    struct config_value *values;
    struct strs command;     /* program and arguments; empty: it is reached by url */
    struct config_pairs env; /* the child's whole environment but for PATH, HOME and the like */
    str url;
    struct config_headers headers;
    bool trusted;                 /* its own word on its tools counts: readOnlyHint and others */
    struct strs read, idempotent; /* names of its tools, or patterns */
    uint32_t timeout_s;           /* of a call, waiting for people not counted */
};
struct config_mcps {
    const struct config_mcp *items;
    size_t count;
};

/* event, bit, name on the wire */
#define CONFIG_EVENTS(X)                     \
    X(EVENT_OPENED, 1, "interaction.opened") \
    X(EVENT_RESOLVED, 2, "interaction.resolved")
#define CONFIG_EVENT_ENUM(event, bit, name) event = bit,
enum config_event { CONFIG_EVENTS(CONFIG_EVENT_ENUM) };
#undef CONFIG_EVENT_ENUM

/* One item of `webhooks`. */
struct config_webhook {
    uint32_t line;
    str name; /* it has none */
    struct config_value *values;
    str url;
    str secret_file, secret;
    unsigned events; /* bits */
};
struct config_webhooks {
    const struct config_webhook *items;
    size_t count;
};

/* An entry of `channels`: a chat platform that an agent is on. What its kind has no use for is
 * empty. */
struct config_channel {
    uint32_t line;
    str name; /* "wx" */
    struct config_value *values;
    str kind;     /* "weixin", "wechat_oa", "telegram", "webhook" */
    str agent;    /* the first one if none is given */
    str base_url; /* the platform's own if none is given; never ends in /; webhook: empty */
    str token_file, token; /* weixin: empty if somebody has to sign in first */
    str app_id;
    str secret_file, secret;
    str aes_key_file, aes_key; /* 43 characters, or empty */
    str url;                   /* webhook: where messages go */
    struct strs allow; /* ids of senders; empty and not allow_all: who signed in or is linked */
    bool allow_all;
};
struct config_channels {
    const struct config_channel *items;
    size_t count;
};

struct config {
    str file; /* the configuration file that was read; empty if none */
    struct host_port listen;
    str data;
    str api_key; /* also when it came from api_key_file */
    str api_key_file;
    struct url public_url;
    struct cidrs trusted_proxies;
    struct strs web_frame_ancestors;
    struct config_log log;
    str secret_file;
    str blobs;          /* where objects are kept: config_blobs knows the default */
    uint32_t grace_s;   /* that an object stays when nothing names it */
    uint64_t hot_bytes; /* of rows kept in memory */
    str script;         /* of PROVIDER_SCRIPTED, and then never empty */
    str script_log;
    struct config_model model; /* the options `model.*` */
    struct config_models models;
    struct config_agents agents;
    struct config_mcps mcps;
    struct strs auth_cors;
    struct strs auth_hosts;
    uint64_t body_bytes_max;
    uint64_t upload_bytes_max;
    uint64_t storage_bytes_max; /* of each user; 0 = no limit */
    uint32_t connections_max;
    uint32_t rate_max; /* requests per key and second; 0 = no limit */
    struct config_http_tools http_tools;
    struct config_webhooks webhooks;
    struct config_channels channels;

    struct strs warnings;        /* for the log, one line each */
    struct config_value *values; /* one per row of the option table */
};

/* One option from the command line; config_flag gives its number. */
struct config_arg {
    int option;
    str value;
};

/* Read everything. `environment` ends in NULL. On failure the fault (ERR_CONFIG) says what is
 * wrong, where, and what to write; *ret_config is untouched. Blocks: reads files. */
enum err config_load(struct arena *arena, const struct config_arg *args, size_t arg_count,
                     char *const *environment, struct config *ret_config, struct fault *reterr)
    MUST_USE;

/* What config_load gives when there is no file, variable or flag. */
void config_defaults(struct arena *arena, struct config *ret_config);

/* The model of an agent: an entry of `models`, or the options. */
const struct config_model *config_model_of(const struct config *config,
                                           const struct config_agent *agent);

/* The address of object storage: the option, or the folder `blobs` of the data folder. */
const char *config_blobs(const struct config *config, struct arena *arena);

struct nearest;
int config_flag(str flag); /* the option of "limits-body" (without --), or -1 */
void config_offer_flags(struct nearest *n);

/* ERR_CONFIG if its value is a secret, which everybody reads in the list of processes; the words say what
 * to write instead. */
enum err config_flag_check(int option, struct fault *reterr) MUST_USE;

/* The effective configuration as YAML that can be read back, the source of each value behind it; at
 * most CONFIG_PRINT_BYTES_MAX. Secrets stand in comments, hidden. */
void config_print(const struct config *config, struct buf *out);

enum lang { LANG_EN, LANG_ZH, LANG_COUNT };

/* The one that LC_ALL, LC_MESSAGES or LANG (the first one set) asks for. */
enum lang lang_asked(char *const *environment);

void config_help(struct buf *out, enum lang lang); /* the lines of --help */
void config_markdown(struct buf *out);             /* docs/CONFIGURATION.md */

#endif

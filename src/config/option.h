/* SPDX-License-Identifier: Apache-2.0
 *
 * The one system of options: types of values, rows that describe a key each, tables of rows, and the
 * maps and lists of the file. An option has a row in option.c, and so have the keys of models and
 * agents; those of tools, webhooks, MCP servers and channels have theirs in record.c. For the files
 * of this folder; everybody else asks config.h.
 */
#ifndef CONFIG_OPTION_H
#define CONFIG_OPTION_H

#include "config/config.h"

/* ---- types ---- */

/* How values of a type are written. */
enum option_shape {
    SHAPE_ONE,
    SHAPE_LIST,   /* [a, b] in YAML, a,b elsewhere */
    SHAPE_MAP,    /* {a: b} in YAML, a=b elsewhere */
    SHAPE_EITHER, /* one or a map */
    SHAPE_TREE,   /* a map of anything, kept as one item: its JSON */
};

/* What an item may be, or the value of a map; names in a map are lines. */
enum option_text {
    TEXT_LINE,     /* one line that can be printed */
    TEXT_PROSE,    /* any text, lines and all */
    TEXT_ARGUMENT, /* any text, as long as a line may be, or empty */
    TEXT_VALUE,    /* any text, or empty */
};

/* What is never repeated to a person. */
enum option_hide {
    HIDE_NOTHING,
    HIDE_TEXT,  /* of a map the values */
    HIDE_LOGIN, /* a URL in which a password may stand; only in a refusal */
};

/* One row for each type: its name and
 *
 *     placeholder   in help; NULL: no option has it, only entries of the file
 *     write         completes "write ..."
 *     shape         SHAPE_
 *     parse         puts what is checked into the field: in option_value.c, which says what field
 *     and, where it is not the usual: .text, .hide; .words: the only ones taken, with .otherwise to
 *     say what any other is; .check: of every item, or every name of a map: why it is refused
 *
 * The order is that of docs/CONFIGURATION.md. To add a type: a row, and what of it is new. */
/* clang-format off */
#define OPTION_TYPES(X)                                                                            \
    X(PATH, "PATH", "a path", ONE, parse_text)                                                     \
    X(SECRET, "KEY", "up to 256 letters, digits and signs without spaces", ONE, parse_text,        \
      .hide = HIDE_TEXT, .check = option_secret_check)                                             \
    X(LISTEN, "HOST:PORT", "HOST:PORT such as 127.0.0.1:8080 or [::1]:8080", ONE, parse_listen)    \
    X(URL, "URL", "a URL such as https://example.com/fermata", ONE, parse_url)                     \
    X(LOG, "LEVEL[,FORM]", "debug, info, warn or error, with ,json or ,text if you like", ONE,     \
      parse_log)                                                                                   \
    X(PROVIDER, "PROVIDER", "demo, scripted, openai or anthropic", ONE, parse_enum,                \
      .words = provider_names, .otherwise = "is no provider")                                      \
    X(BUSY, "POLICY", "enqueue, reject or interrupt", ONE, parse_enum,                             \
      .words = busy_names, .otherwise = "is no policy")                                            \
    X(DISCONNECT, "WHAT", "continue, pause or cancel", ONE, parse_enum,                            \
      .words = disconnect_names, .otherwise = "is none of them")                                   \
    X(PLAN, "WHEN", "auto, always or never", ONE, parse_enum,                                      \
      .words = plan_names, .otherwise = "is none of them")                                         \
    X(LOCALE, "LOCALE", "zh-CN or en", ONE, parse_text,                                            \
      .words = locale_names, .otherwise = "is a language it does not speak")                       \
    X(BOOL, "BOOL", "true or false", ONE, parse_bool,                                              \
      .words = truth_names, .otherwise = "is neither")                                             \
    X(BYTES, "SIZE", "a size such as 512, 64KiB or 16MiB", ONE, parse_u64)                         \
    X(U32, "NUMBER", "a whole number", ONE, parse_u32)                                             \
    X(U64, "COUNT", "a whole number", ONE, parse_u64)                                              \
    X(TEXT, "TEXT", "any text, on several lines if you like", ONE, parse_text,                     \
      .text = TEXT_PROSE)                                                                          \
    X(TEXTS, "TEXTS", "texts", LIST, parse_texts, .text = TEXT_PROSE)                              \
    X(TOOLS, "TOOLS", "names of tools, or patterns such as calendar_*", LIST, parse_texts,         \
      .check = option_pattern_check)                                                               \
    X(POLICY, "TOOL=VERDICT",                                                                      \
      "tools or patterns such as calendar_*, each with allow, confirm or deny", MAP, parse_policy, \
      .check = option_pattern_check)                                                               \
    X(APPROVERS, "TOOL=ROLE",                                                                      \
      "tools or patterns such as calendar_*, each with user, approver or operator", MAP,           \
      parse_approvers, .check = option_pattern_check)                                              \
    X(CIDRS, "ADDRESSES", "addresses or ranges such as 10.1.2.3 or 10.0.0.0/8", LIST, parse_cidrs) \
    X(ORIGINS, "ORIGINS", "origins such as https://app.example.com", LIST, parse_texts,            \
      .check = origin_check)                                                                       \
    X(HOSTS, "HOSTS", "lower-case host names such as app.example.com or app.example.com:8443",     \
      LIST, parse_texts, .check = host_check)                                                      \
    X(STORAGE, "FOLDER", "a folder, or file: and a folder", ONE, parse_text,                       \
      .check = blob_url_check)                                                                     \
    X(ENDPOINT, "ADDRESS", "a URL such as https://example.org/v1", ONE, parse_endpoint,            \
      .hide = HIDE_LOGIN, .check = option_endpoint_check)                                          \
    X(NAME, "NAME", "a name, on one line", ONE, parse_text)                                        \
    X(PRICE, "PRICE", "a number such as 0.5, with up to 6 decimals", ONE, parse_price)             \
    X(COST, "AMOUNT", "a number such as 1.5, with up to 6 decimals", ONE, parse_cost)              \
    X(CURRENCY, "CURRENCY", "3 capital letters such as USD", ONE, parse_currency)                  \
    X(TOOL_NAME, NULL, "up to 64 letters, digits, _ and -", ONE, parse_text,                       \
      .check = option_tool_check)                                                                  \
    X(ADDRESS, NULL, "a URL such as https://example.org/order", ONE, parse_text,                   \
      .hide = HIDE_LOGIN, .check = option_address_check)                                           \
    X(TEMPLATE, NULL, "a text such as \"Ordered: {item}\", or {zh: ..., en: ...}", EITHER,         \
      parse_template)                                                                              \
    X(SCHEMA, NULL, "a JSON Schema, as YAML, such as {type: object}", TREE, parse_schema,          \
      .text = TEXT_VALUE)                                                                          \
    X(EFFECT, NULL, "read or write", ONE, parse_bool,                                              \
      .words = effect_names, .otherwise = "is no effect")                                          \
    X(RISK, NULL, "write, external or destructive", ONE, parse_enum,                               \
      .words = risk_names, .otherwise = "is no risk")                                              \
    X(HEADERS, NULL, "a map such as {X-Tenant: a, Authorization_file: token.txt}", MAP,            \
      parse_headers, .text = TEXT_VALUE, .hide = HIDE_TEXT)                                        \
    X(EVENTS, NULL, "interaction.opened, interaction.resolved, or both, in a list", LIST,          \
      parse_events, .words = event_names, .otherwise = "is no event")                              \
    X(COMMAND, NULL, "a list such as [npx, -y, some-server]", LIST, parse_command,                 \
      .text = TEXT_ARGUMENT)                                                                       \
    X(VARIABLES, NULL, "a map such as {TOKEN: abc}", MAP, parse_variables,                         \
      .text = TEXT_VALUE, .hide = HIDE_TEXT, .check = option_variable_check)                       \
    X(PLATFORM, NULL, "weixin, wechat_oa, telegram or webhook", ONE, parse_text,                   \
      .words = platform_names, .otherwise = "is no kind of channel")                               \
    X(SENDERS, NULL, "a list of ids such as [\"12345\"], or [\"*\"] for everybody", LIST,          \
      parse_senders)
/* clang-format on */

#define OPTION_TYPE_ENUM(type, ...) type,
enum option_type { OPTION_TYPES(OPTION_TYPE_ENUM) TYPE_COUNT };
#undef OPTION_TYPE_ENUM

struct option_target;
struct option_setting; /* a value on its way into its field */
struct option_form {
    const char *placeholder, *write;
    enum option_shape shape;
    enum err (*parse)(const struct option_setting *s, void *field);
    enum option_text text;
    enum option_hide hide;
    const char *const *words; /* end in NULL */
    const char *otherwise;
    const char *(*check)(str item);
};
extern const struct option_form option_forms[TYPE_COUNT];

/* ---- rows ---- */

/* What a row fills a field of. */
enum option_of { OF_CONFIG, OF_MODEL, OF_AGENT, OF_MCP, OF_TOOL, OF_WEBHOOK, OF_CHANNEL, OF_COUNT };

struct option {
    const char *name; /* in YAML, dots between levels; flag and environment name come from it */
    enum option_type type;
    enum option_of of;
    size_t offset;        /* of its field in what it fills */
    const char *fallback; /* as one would write it; "" = not set */
    uint64_t min, max;    /* of numbers */
    const char *help[LANG_COUNT];
    bool not_in_file; /* only environment and flag */
    bool needed;      /* every entry of its map or list gives it */
    const char *env;  /* its name in the environment when another one than usual; NULL: the usual */
};

/* Tables end in a row without a name. */
extern const struct option options[];
extern const size_t option_count;
size_t option_rows(const struct option *table);

/* A map or list in the file whose entries are described by rows. */
struct option_map {
    const char *name; /* "models"; NULL: OF_CONFIG has none */
    const struct option *table;
    const char *rows; /* "model.": how the names of its rows begin, before the key; or "" */
    const char *own;  /* "assistant": the entry that the options are; NULL: none is */
    bool list;        /* entries have no names */
    const char *tag;  /* "http": an item of the list names its kind; NULL: holds its keys at once */
    size_t name_bytes_max;
    size_t size;   /* of an entry, which begins as struct config_entry */
    size_t offset; /* in struct config: as struct config_entries */
    /* Check the entry at `index`, whose rows are filled, beside those before it; or NULL. */
    enum err (*finish)(const struct option_target *target, void *entries, size_t index);
    const char *help[LANG_COUNT], *example;
};
extern const struct option_map option_maps[OF_COUNT];

struct config_entries {
    const void *items;
    size_t count;
};
struct config_entries config_entries(const struct config *config, enum option_of of);

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

/* ---- values ---- */

/* Where a value came from: "default", "fermata.yaml:3", "FERMATA_DATA" or "--data". */
struct option_place {
    char text[128];
};
struct option_place option_place(const struct config *config, const struct option *option,
                                 const struct config_value *value);
struct option_place option_place_line(const struct config *config, uint32_t line);

/* Where values go: the options themselves, or an entry of a map or list. */
struct option_target {
    const struct config *config; /* names the file in messages */
    struct arena *arena;
    struct fault *reterr;
    const struct option *table;
    void *fills[OF_COUNT];       /* by what a row fills; NULL: it has no such rows */
    struct config_value *values; /* one per row of the table */
    const char *path, *rows;     /* "models.main." stands for "model." in messages; else "" */
};
bool option_given(const struct option_target *target, const char *row); /* not by default */
struct config_value *option_value(const struct option_target *target, const char *row);

/* What a person calls a row there: "models.main.price.input". */
struct option_path {
    char text[160];
};
struct option_path option_path(const struct option_target *target, str name);

/* `place: "path" what`: the fault, and its ERR_CONFIG. The second says it of a row, or with "" of the
 * entry, at a line of the file. */
enum err option_refuse(const struct option_target *target, const char *place, const char *path,
                       const char *what, ...) PRINTF(4, 5);
enum err option_refuse_row(const struct option_target *target, uint32_t line, const char *row,
                           const char *what, ...) PRINTF(4, 5);

/* Check a value, parse it into its field and remember it in the target's values. On failure all is
 * as it was and the fault says what is wrong, where, and what to write. Blocks if headers name a
 * file. */
enum err option_set(const struct option_target *target, const struct option *option,
                    struct config_value value) MUST_USE;

/* The one line of a file that the value of `path`, written at `place`, names. With ret_absent the
 * file need not be there. Blocks. */
enum err option_read_line(const struct option_target *target, const char *place, const char *path,
                          str file, size_t bytes_max, bool *ret_absent, str *ret_line) MUST_USE;
str option_line(str bytes); /* without the end of the line */

/* A header whose name ends in _file is read from the file that it names. */
bool option_header_file(str name);

/* ---- checks of a text (option_check.c) ---- */

/* NULL, or why it is refused: words that go on after the quoted text. */
const char *option_secret_check(str key) MUST_USE;
const char *option_pattern_check(str pattern) MUST_USE; /* a name of tools, or with * at its end */
const char *option_address_check(str text) MUST_USE;    /* a URL to call */
const char *option_endpoint_check(str text) MUST_USE; /* the same, for paths to be put behind it */
const char *option_tool_check(str name) MUST_USE;
const char *option_template_check(str text) MUST_USE;
const char *option_header_check(str name) MUST_USE;
const char *option_header_value_check(str value) MUST_USE;
const char *option_variable_check(str name) MUST_USE;
bool option_tool_taken(str name); /* a tool or pack that comes with us */

#endif

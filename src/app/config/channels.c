/* SPDX-License-Identifier: Apache-2.0
 *
 * Channels as a whole, once every layer is laid: which keys each kind needs and which say nothing
 * about it, their secrets, their agents.
 *
 *                  base_url  token_file  app_id  secret_file  aes_key_file  url
 *     weixin       may       may             -             -             -    -
 *     wechat_oa    may       must         must          must           may    -
 *     telegram     may       must            -             -             -    -
 *     webhook        -       -               -          must             -  must
 *
 * Invariants of what is left behind: 1. a channel's agent is there; 2. what its kind needs is set and
 * read, what it has no use for is empty; 3. only the token of a weixin channel may be missing though
 * its file is named: it may be written later, or somebody signs in; 4. an account has one channel: two
 * would take each other's messages.
 *
 * To add a kind: its name in take_platform of field.c and a row in kinds[].
 */
#include <stdio.h>

#include "app/config/int.h"
#include "app/file.h"
#include "app/say.h"
#include "base/limits.h"

enum { WHAT_BYTES_MAX = 384 }; /* as struct fault has it */

enum need { NEED_NONE, NEED_MAY, NEED_MUST };

/* The keys that not every kind takes. */
enum key { KEY_BASE_URL, KEY_TOKEN, KEY_APP_ID, KEY_SECRET, KEY_AES_KEY, KEY_URL, KEY_COUNT };

#define CHAN(member) offsetof(struct config_channel, member)
static const struct {
    const char *name;
    size_t offset;
    const char *write;
} keys[KEY_COUNT] = {
    [KEY_BASE_URL] = {"base_url", CHAN(base_url), "the address of the platform"},
    [KEY_TOKEN] = {"token_file", CHAN(token_file), "the path of a file with the token"},
    [KEY_APP_ID] = {"app_id", CHAN(app_id), "the AppID of the account"},
    [KEY_SECRET] = {"secret_file", CHAN(secret_file), "the path of a file with the secret"},
    [KEY_AES_KEY] = {"aes_key_file", CHAN(aes_key_file), "the path of a file with the key"},
    [KEY_URL] = {"url", CHAN(url), "the address that gets messages"},
};

static const struct channel_form {
    const char *kind;
    const char *base_url; /* the platform's own */
    enum need needs[KEY_COUNT];
    bool closed;           /* not open for everybody unless `allow` says so */
    size_t secret_min;     /* characters: ours to choose, so it can be guessed if it is short */
    bool token_may_follow; /* its file need not be there */
    enum key account;      /* whose value no other channel of the kind has; KEY_COUNT: none */
} kinds[] = {
    {
        .kind = "weixin",
        .base_url = "https://ilinkai.weixin.qq.com",
        .needs = {[KEY_BASE_URL] = NEED_MAY, [KEY_TOKEN] = NEED_MAY},
        .closed = true,
        .token_may_follow = true,
        .account = KEY_TOKEN,
    },
    {
        .kind = "wechat_oa",
        .base_url = "https://api.weixin.qq.com",
        .needs = {[KEY_BASE_URL] = NEED_MAY,
                  [KEY_TOKEN] = NEED_MUST,
                  [KEY_APP_ID] = NEED_MUST,
                  [KEY_SECRET] = NEED_MUST,
                  [KEY_AES_KEY] = NEED_MAY},
        .account = KEY_APP_ID,
    },
    {
        .kind = "telegram",
        .base_url = "https://api.telegram.org",
        .needs = {[KEY_BASE_URL] = NEED_MAY, [KEY_TOKEN] = NEED_MUST},
        .account = KEY_TOKEN,
    },
    {
        .kind = "webhook",
        .base_url = "",
        .needs = {[KEY_SECRET] = NEED_MUST, [KEY_URL] = NEED_MUST},
        .secret_min = 16,
        .account = KEY_COUNT,
    },
};

static const struct channel_form *form_of(str kind)
{
    for (size_t i = 0; i < COUNT(kinds); i++)
        if (str_eq(str_c(kinds[i].kind), kind)) return &kinds[i];
    return NULL;
}

static enum err refuse(const struct config_load *load, const struct config_channel *channel,
                       const char *key, const char *what)
{
    struct said name = say(channel->name);
    char path[96];
    snprintf(path, sizeof path, "channels.%s.%s", name.text, key);
    return fault_field(load->reterr, ERR_CONFIG, path, "%s:%u: \"%s\" %s",
                       say(load->config.file).text, channel->line, path, what);
}

/* ---- keys ---- */

static enum err check_keys(const struct config_load *load, const struct config_channel *channel,
                           const struct channel_form *form)
{
    for (size_t i = 0; i < KEY_COUNT; i++) {
        bool given = ((const str *)(const void *)((const char *)channel + keys[i].offset))->len;
        char what[128];
        if (given && form->needs[i] == NEED_NONE) {
            snprintf(what, sizeof what, "says nothing about a channel of the kind %s; leave it out",
                     form->kind);
            return refuse(load, channel, keys[i].name, what);
        }
        if (given || form->needs[i] != NEED_MUST) continue;
        snprintf(what, sizeof what, "is missing; a channel of the kind %s needs it: write %s",
                 form->kind, keys[i].write);
        return refuse(load, channel, keys[i].name, what);
    }
    return OK;
}

/* ---- secrets ---- */

/* Not repeated in a refusal. */
static const char *secret_check(str text, size_t bytes_max)
{
    if (text.len == 0) return "is empty";
    if (text.len > bytes_max) return "is too long";
    for (size_t i = 0; i < text.len; i++)
        if (text.p[i] <= ' ' || text.p[i] > '~') return "has spaces or characters beyond ASCII";
    return NULL;
}

static const char *aes_key_check(str text)
{
    enum { AES_KEY_CHARS = 43 };
    bool fits = text.len == AES_KEY_CHARS;
    for (size_t i = 0; i < text.len; i++) {
        char c = char_lower(text.p[i]);
        if ((c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '+' && c != '/') fits = false;
    }
    return fits ? NULL : "is no EncodingAESKey: that has 43 letters and digits";
}

static enum err refuse_file(const struct config_load *load, const struct config_channel *channel,
                            const char *key, const char *why)
{
    char what[WHAT_BYTES_MAX];
    snprintf(what, sizeof what, "cannot be read: %s; name a file that holds one line", why);
    return refuse(load, channel, key, what);
}

static enum err refuse_secret(const struct config_load *load, const struct config_channel *channel,
                              const char *key, str file, const char *why)
{
    char what[WHAT_BYTES_MAX];
    snprintf(what, sizeof what, "names %s, and what stands there %s", say(file).text, why);
    return refuse(load, channel, key, what);
}

/* Fills token, secret and aes_key from the files that are named. */
static enum err read_secrets(const struct config_load *load, struct config_channel *channel,
                             const struct channel_form *form)
{
    const struct {
        enum key key;
        str file, *text;
    } rows[] = {
        {KEY_TOKEN, channel->token_file, &channel->token},
        {KEY_SECRET, channel->secret_file, &channel->secret},
        {KEY_AES_KEY, channel->aes_key_file, &channel->aes_key},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        const char *name = keys[rows[i].key].name;
        if (!rows[i].file.len) continue;
        struct fault found = {0};
        str bytes = STR_EMPTY;
        enum err e =
            file_read(load->arena, rows[i].file.p, CHANNEL_TOKEN_BYTES_MAX + 2, &bytes, &found);
        if (e == ERR_NOT_FOUND && rows[i].key == KEY_TOKEN && form->token_may_follow) continue;
        if (e) return refuse_file(load, channel, name, found.text);
        *rows[i].text = arena_str(load->arena, option_line(bytes));
        const char *refused = rows[i].key == KEY_AES_KEY
                                  ? aes_key_check(*rows[i].text)
                                  : secret_check(*rows[i].text, CHANNEL_TOKEN_BYTES_MAX);
        if (!refused && rows[i].key == KEY_SECRET && rows[i].text->len < form->secret_min)
            refused = "is shorter than 16 characters and can be guessed; make one with: openssl "
                      "rand -hex 32";
        if (refused) return refuse_secret(load, channel, name, rows[i].file, refused);
    }
    return OK;
}

/* ---- the rest ---- */

static enum err find_agent(const struct config_load *load, struct config_channel *channel)
{
    const struct config_agents *agents = &load->config.agents;
    if (!channel->agent.len) {
        channel->agent = agents->items[0].name;
        return OK;
    }
    struct nearest n;
    nearest_init(&n, channel->agent);
    for (size_t i = 0; i < agents->count; i++) {
        if (str_eq(agents->items[i].name, channel->agent)) return OK;
        nearest_offer(&n, agents->items[i].name, arena_cstr(load->arena, agents->items[i].name));
    }
    char what[WHAT_BYTES_MAX];
    snprintf(what, sizeof what, "is \"%s\", which is no agent%s", say(channel->agent).text,
             say_nearest(&n, "write the name of an entry of agents").text);
    return refuse(load, channel, "agent", what);
}

/* By what the platform knows it; empty: nothing yet. */
static str account_of(const struct config_channel *channel, enum key key)
{
    return key == KEY_TOKEN ? channel->token : key == KEY_APP_ID ? channel->app_id : STR_EMPTY;
}

/* Has one of those before it the same account? */
static enum err check_account(const struct config_load *load, const struct config_channel *before,
                              const struct config_channel *channel)
{
    enum key key = form_of(channel->kind)->account;
    str account = account_of(channel, key);
    for (; account.len && before < channel; before++) {
        if (!str_eq(before->kind, channel->kind)) continue;
        if (!str_eq(account_of(before, key), account)) continue;
        char what[WHAT_BYTES_MAX];
        snprintf(what, sizeof what,
                 "has the same %s as the channel %s; an account has one channel: remove one",
                 key == KEY_TOKEN ? "token" : "AppID", say(before->name).text);
        return refuse(load, channel, keys[key].name, what);
    }
    return OK;
}

static enum err finish_channel(const struct config_load *load, struct config_channel *channel)
{
    const struct channel_form *form = form_of(channel->kind);
    enum err e = check_keys(load, channel, form);
    if (!e) e = read_secrets(load, channel, form);
    if (!e) e = find_agent(load, channel);
    if (e) return e;
    if (!channel->base_url.len) channel->base_url = str_c(form->base_url);
    bool star = channel->allow.count == 1 && str_eq(channel->allow.items[0], STR("*"));
    channel->allow_all = star || (!channel->allow.count && !form->closed);
    return OK;
}

enum err config_channels_finish(struct config_load *load)
{
    const struct config_channels *given = &load->config.channels;
    struct config_channel *channels = arena_array(load->arena, given->count, sizeof *channels);
    for (size_t i = 0; i < given->count; i++) {
        channels[i] = given->items[i];
        enum err e = finish_channel(load, &channels[i]);
        if (!e) e = check_account(load, channels, &channels[i]);
        if (e) return e;
    }
    load->config.channels = (struct config_channels){channels, given->count};
    return OK;
}

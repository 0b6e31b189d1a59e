/* SPDX-License-Identifier: Apache-2.0
 *
 * Chat channels as a whole, once every layer is laid: which keys each kind needs and which say
 * nothing about it, their secrets, their agents.
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
 * To add a kind: its name in platform_names of option_value.c and a row in kinds[].
 */
#include <string.h>

#include "base/limits.h"
#include "base/say.h"
#include "config/config_int.h"

static const struct channel_form {
    const char *kind;
    const char *base_url; /* the platform's own */
    /* Keys beside those of every kind, up to a NULL. */
    const char *must[4], *may[3];
    const char *account;   /* the key whose value no other channel of the kind has; NULL: none */
    bool closed;           /* not open for everybody unless `allow` says so */
    bool token_may_follow; /* its file need not be there */
    size_t secret_min;     /* characters: ours to choose, so it can be guessed if it is short */
} kinds[] = {
    {
        .kind = "weixin",
        .base_url = "https://ilinkai.weixin.qq.com",
        .may = {"base_url", "token_file"},
        .account = "token_file",
        .closed = true,
        .token_may_follow = true,
    },
    {
        .kind = "wechat_oa",
        .base_url = "https://api.weixin.qq.com",
        .must = {"token_file", "app_id", "secret_file"},
        .may = {"base_url", "aes_key_file"},
        .account = "app_id",
    },
    {
        .kind = "telegram",
        .base_url = "https://api.telegram.org",
        .must = {"token_file"},
        .may = {"base_url"},
        .account = "token_file",
    },
    {
        .kind = "webhook",
        .base_url = "",
        .must = {"secret_file", "url"},
        .secret_min = AUTH_KEY_BYTES_SAFE,
    },
};

static bool listed(const char *const *names, const char *name)
{
    while (*names && strcmp(*names, name)) names++;
    return *names;
}

/* ---- secrets ---- */

static const char *token_check(str text)
{
    if (text.len == 0) return "is empty";
    if (text.len > CHANNEL_TOKEN_BYTES_MAX) return "is too long";
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

/* Fills token, secret and aes_key from the files that are named. */
static enum err read_secrets(const struct option_target *target, struct config_channel *channel,
                             const struct channel_form *form)
{
    struct config_key_form key = {.bytes_max = CHANNEL_TOKEN_BYTES_MAX + 2,
                                  .check = token_check,
                                  .may_follow = form->token_may_follow};
    enum err e = config_read_key(target, "token_file", &key, &channel->token);
    key.may_follow = false;
    key.safe_min = form->secret_min;
    if (!e) e = config_read_key(target, "secret_file", &key, &channel->secret);
    key.safe_min = 0;
    key.check = aes_key_check;
    return e ? e : config_read_key(target, "aes_key_file", &key, &channel->aes_key);
}

/* ---- a channel ---- */

static enum err check_keys(const struct option_target *target, const struct config_channel *channel,
                           const struct channel_form *form)
{
    static const char *const of_all[] = {"kind", "agent", "allow", NULL};
    for (const struct option *o = target->table; o->name; o++) {
        bool given = option_given(target, o->name), must = listed(form->must, o->name);
        if (given && !must && !listed(form->may, o->name) && !listed(of_all, o->name))
            return option_refuse_row(target, channel->line, o->name,
                                     "says nothing about a channel of the kind %s; leave it out",
                                     form->kind);
        if (!given && must)
            return option_refuse_row(target, channel->line, o->name,
                                     "is missing; a channel of the kind %s needs it: write %s",
                                     form->kind, option_forms[o->type].write);
    }
    return OK;
}

/* What nobody wrote, as if somebody had. */
static void fall_back(const struct option_target *target, const char *row, str *field, str text)
{
    if (field->len || !text.len) return;
    str *item = ARENA_NEW(target->arena, str);
    *item = *field = text;
    *option_value(target, row) = (struct config_value){.items = {item, 1}};
}

static enum err find_agent(const struct option_target *target, struct config_channel *channel)
{
    const struct config_agents *agents = &target->config->agents;
    struct nearest n;
    fall_back(target, "agent", &channel->agent, agents->items[0].name);
    nearest_init(&n, channel->agent);
    for (size_t i = 0; i < agents->count; i++) {
        if (str_eq(agents->items[i].name, channel->agent)) return OK;
        nearest_offer(&n, agents->items[i].name, arena_cstr(target->arena, agents->items[i].name));
    }
    return option_refuse_row(target, channel->line, "agent", "is \"%s\", which is no agent%s",
                             say(channel->agent).text,
                             say_nearest(&n, "write the name of an entry of agents").text);
}

/* Has one of those before it the same account, by which the platform knows it? */
static enum err check_account(const struct option_target *target,
                              const struct config_channel *before,
                              const struct config_channel *channel, const char *key)
{
    bool by_id = key && !strcmp(key, "app_id");
    for (; key && before < channel; before++) {
        str account = by_id ? channel->app_id : channel->token;
        if (account.len && str_eq(before->kind, channel->kind) &&
            str_eq(by_id ? before->app_id : before->token, account))
            return option_refuse_row(target, channel->line, key,
                                     "has the same %s as the channel %s; an account has one "
                                     "channel: remove one",
                                     by_id ? "AppID" : "token", say(before->name).text);
    }
    return OK;
}

static enum err finish_channel(const struct option_target *target,
                               const struct config_channel *before, struct config_channel *channel)
{
    const struct channel_form *form = kinds;
    while (!str_eq(str_c(form->kind), channel->kind)) form++;
    enum err e = check_keys(target, channel, form);
    if (!e) e = read_secrets(target, channel, form);
    if (!e) e = find_agent(target, channel);
    if (e) return e;
    fall_back(target, "base_url", &channel->base_url, str_c(form->base_url));
    bool star = channel->allow.count == 1 && str_eq(channel->allow.items[0], STR("*"));
    channel->allow_all = star || (!channel->allow.count && !form->closed);
    for (size_t i = 0; i < option_rows(target->table); i++)
        target->values[i].silent = target->values[i].items.count == 0;
    return check_account(target, before, channel, form->account);
}

enum err config_channels_finish(struct config_load *load)
{
    const struct config_channels *given = &load->config.channels;
    struct config_channel *channels = arena_array(load->arena, given->count, sizeof *channels);
    for (size_t i = 0; i < given->count; i++) {
        channels[i] = given->items[i];
        struct option_target target = config_target(load, OF_CHANNEL, i, &channels[i]);
        enum err e = finish_channel(&target, channels, &channels[i]);
        if (e) return e;
    }
    load->config.channels.items = channels;
    return OK;
}

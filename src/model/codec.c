/* SPDX-License-Identifier: Apache-2.0
 *
 * What codecs of providers share: names as providers take them, calls and JSON as providers write
 * them.
 *
 * A name is turned without a look at other names, so that it is the same in every request; only
 * where two names of one request would become one does tool_names.c choose another.
 *
 * A lone surrogate ("\ud83d" without its other half) comes from servers that cut a text between two
 * UTF-16 units. Its six bytes are overwritten with the six of "\ufffd"; nothing moves. So a string's
 * bytes as they came stand where its bytes as they were read stand, and tell which half it was:
 *
 *     came  {"text":"Hi \ud83d"}     {"text":"\ude42!"}
 *     read  {"text":"Hi \ufffd"}     {"text":"\ufffd!"}
 *     said   Hi , a half is held       🙂!
 */
#include "model/codec.h"

#include <string.h>

#include "base/crypto.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/utf8.h"

enum { HASH_DIGITS = 8 };

static bool fits(char c)
{
    char low = char_lower(c);
    return (low >= 'a' && low <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
}

static bool fine(str name)
{
    for (size_t i = 0; i < name.len; i++)
        if (!fits(name.p[i])) return false;
    return name.len > 0 && name.len <= TOOL_NAME_BYTES_MAX;
}

/* Its beginning, and a hash of all of it. */
static size_t shorten(char *out, str name)
{
    unsigned char hash[HASH_BYTES];
    char digits[HASH_HEX_BYTES];
    size_t kept = TOOL_NAME_BYTES_MAX - HASH_DIGITS - 1;
    crypto_sha256(name, hash);
    crypto_hex((str){(const char *)hash, sizeof hash}, digits);
    out[kept] = '_';
    memcpy(out + kept + 1, digits, HASH_DIGITS);
    return TOOL_NAME_BYTES_MAX;
}

str codec_name(struct arena *arena, str name)
{
    if (fine(name)) return name;
    if (!name.len) return STR("_");
    size_t len = name.len < TOOL_NAME_BYTES_MAX ? name.len : TOOL_NAME_BYTES_MAX;
    char *out = arena_alloc(arena, TOOL_NAME_BYTES_MAX);
    for (size_t i = 0; i < len; i++) out[i] = fits(name.p[i]) ? name.p[i] : '_';
    if (name.len > TOOL_NAME_BYTES_MAX) len = shorten(out, name);
    return (str){out, len};
}

str codec_call_id(struct arena *arena, str id)
{
    if (id.len <= MODEL_CALL_ID_BYTES_MAX) return id;
    unsigned char hash[HASH_BYTES];
    char digits[HASH_HEX_BYTES];
    crypto_sha256(id, hash);
    crypto_hex((str){(const char *)hash, sizeof hash}, digits);
    return arena_printf(arena, "call_%.32s", digits);
}

str codec_call_name(str name)
{
    if (name.len <= MODEL_TOOL_NAME_BYTES_MAX) return name;
    size_t len = MODEL_TOOL_NAME_BYTES_MAX;
    while (len && ((unsigned char)name.p[len] & 0xc0) == 0x80) len--;
    return (str){name.p, len};
}

/* ---- JSON ---- */

/* The 16 bits of "\uXXXX" at `at`; -1 if it is none. */
static int32_t unit_at(const char *at, const char *end)
{
    unsigned char bytes[2];
    char digits[4];
    if (end - at < 6 || at[0] != '\\' || at[1] != 'u') return -1;
    for (size_t i = 0; i < sizeof digits; i++) digits[i] = char_lower(at[2 + i]);
    if (!crypto_unhex((str){digits, sizeof digits}, bytes, sizeof bytes)) return -1;
    return bytes[0] << 8 | bytes[1];
}

static bool is_high(int32_t unit)
{
    return unit >= 0xd800 && unit < 0xdc00;
}

static bool is_low(int32_t unit)
{
    return unit >= 0xdc00 && unit < 0xe000;
}

static void mend_surrogates(char *at, const char *end)
{
    while ((at = memchr(at, '\\', (size_t)(end - at)))) {
        int32_t unit = unit_at(at, end);
        if (is_high(unit) && is_low(unit_at(at + 6, end))) {
            at += 12;
            continue;
        }
        if (is_high(unit) || is_low(unit)) memcpy(at, "\\ufffd", 6);
        at += unit < 0 ? 2 : 6;
        if (at >= end) return;
    }
}

enum err codec_document(struct arena *arena, str text, struct json **ret_json,
                        struct codec_said *ret_said)
{
    struct json_error error;
    *ret_said = (struct codec_said){text.p, text.p};
    enum err e = json_parse(arena, text, ret_json, &error);
    if (!e || strcmp(error.reason, "lone surrogate") != 0) return e;
    char *mended = arena_cstr(arena, text);
    mend_surrogates(mended, mended + text.len);
    ret_said->read = mended;
    return json_parse(arena, (str){mended, text.len}, ret_json, NULL);
}

enum err codec_json(struct arena *arena, str text, struct json **ret_json)
{
    struct codec_said said;
    return codec_document(arena, text, ret_json, &said);
}

/* ---- texts in pieces ---- */

#define FFFD STR("\xef\xbf\xbd")
enum { ESCAPE_BYTES = 6 }; /* \uXXXX */

/* The half that was overwritten here, `at` bytes into the string with its quotes; -1: none was. */
static int32_t half_at(const struct codec_said *said, str raw, size_t at)
{
    if (said->came == said->read || at + ESCAPE_BYTES >= raw.len) return -1;
    const char *came = said->came + (raw.p - said->read) + at;
    int32_t unit = unit_at(came, came + ESCAPE_BYTES);
    bool half = is_high(unit) || is_low(unit);
    return half && !memcmp(raw.p + at, "\\ufffd", ESCAPE_BYTES) ? unit : -1;
}

static uint32_t joined(uint16_t high, int32_t low)
{
    return 0x10000 + ((uint32_t)(high - 0xd800) << 10) + (uint32_t)(low - 0xdc00);
}

str codec_piece(struct arena *arena, const struct codec_said *said, const struct json *string,
                struct codec_half *half)
{
    str text = json_text(string), before = STR_EMPTY;
    char character[4];
    if (!text.len) return text;
    str raw = string->raw;
    int32_t first = half_at(said, raw, 1);
    int32_t last = raw.len > ESCAPE_BYTES ? half_at(said, raw, raw.len - 1 - ESCAPE_BYTES) : -1;
    if (half->high && is_low(first)) {
        before = (str){character, utf8_write(joined(half->high, first), character)};
        text = str_drop(text, FFFD.len);
    } else if (half->high) {
        before = FFFD;
    }
    half->high = is_high(last) ? (uint16_t)last : 0;
    if (half->high) text.len -= FFFD.len;
    if (!before.len) return text;
    char *piece = arena_alloc(arena, before.len + text.len);
    memcpy(piece, before.p, before.len);
    if (text.len) memcpy(piece + before.len, text.p, text.len);
    return (str){piece, before.len + text.len};
}

str codec_piece_end(struct codec_half *half)
{
    bool missing = half->high;
    half->high = 0;
    return missing ? FFFD : STR_EMPTY;
}

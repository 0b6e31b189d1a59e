/* SPDX-License-Identifier: Apache-2.0
 *
 * Facts as the bytes of a row. Pure.
 *
 * Reading trusts nothing: every length is compared with what is left before it is used, and a row has
 * exactly the frames that its numbers say.
 */
#include "store/table/fact_frames.h"

#include <string.h>

#include "base/limits.h"

enum {
    VARINT_BITS = 7,
    VARINT_MORE = 1 << VARINT_BITS,
    VARINT_BYTES_MAX = 10, /* of 64 bits */
};

/* ---- writing ---- */

static size_t varint_bytes(uint64_t value)
{
    size_t bytes = 1;
    while (value >>= VARINT_BITS) bytes++;
    return bytes;
}

static void varint_write(struct buf *out, uint64_t value)
{
    for (; value >= VARINT_MORE; value >>= VARINT_BITS)
        buf_char(out, (char)(value % VARINT_MORE | VARINT_MORE));
    buf_char(out, (char)value);
}

/* What a frame says of itself, seen from the one before it (NULL: it is the first). */
struct head {
    uint64_t at, run, data;
    str type, run_id; /* run_id: as far as it is written */
};

static struct head head_of(const struct fact *before, const struct fact *fact)
{
    uint64_t difference = (uint64_t)fact->at - (before ? (uint64_t)before->at : 0);
    bool same = str_eq(fact->run_id, before ? before->run_id : STR_EMPTY);
    return (struct head){
        .at = difference << 1 ^ (0 - (difference >> 63)),
        .run = same ? 0 : 1 + (uint64_t)fact->run_id.len,
        .data = fact->data.len,
        .type = str_c(fact->type),
        .run_id = same ? STR_EMPTY : fact->run_id,
    };
}

static size_t frame_bytes(const struct fact *before, const struct fact *fact)
{
    struct head head = head_of(before, fact);
    return varint_bytes(head.at) + varint_bytes(head.run) + varint_bytes(head.data) +
           head.type.len + 1 + head.run_id.len + fact->data.len;
}

size_t fact_frames_fit(const struct fact *facts, size_t count, size_t *ret_bytes)
{
    size_t fit = 0, bytes = 0;
    for (; fit < count; fit++) {
        size_t more = frame_bytes(fit ? &facts[fit - 1] : NULL, &facts[fit]);
        if (fit && bytes + more > FACT_ROW_BYTES_MAX) break;
        bytes += more;
    }
    *ret_bytes = bytes;
    return fit;
}

void fact_frames_write(struct buf *out, const struct fact *facts, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct head head = head_of(i ? &facts[i - 1] : NULL, &facts[i]);
        varint_write(out, head.at);
        varint_write(out, head.run);
        varint_write(out, head.data);
        buf_append(out, head.type);
        buf_char(out, '\0');
        buf_append(out, head.run_id);
        buf_append(out, facts[i].data);
    }
}

/* ---- reading ---- */

static bool varint_read(str *rest, uint64_t *ret_value)
{
    uint64_t value = 0;
    for (size_t i = 0; i < rest->len && i < VARINT_BYTES_MAX; i++) {
        uint64_t byte = (unsigned char)rest->p[i];
        if (i == VARINT_BYTES_MAX - 1 && byte > 1) return false; /* beyond 64 bits */
        value |= byte % VARINT_MORE << (i * VARINT_BITS);
        if (byte >= VARINT_MORE) continue;
        *rest = str_drop(*rest, i + 1);
        *ret_value = value;
        return true;
    }
    return false;
}

static bool bytes_read(str *rest, uint64_t len, str *ret_bytes)
{
    if (len > rest->len) return false;
    *ret_bytes = (str){rest->p, (size_t)len};
    *rest = str_drop(*rest, (size_t)len);
    return true;
}

static bool frame_read(struct fact_frames *frames, struct fact *fact)
{
    str rest = frames->rest, data, run_id = frames->run_id;
    uint64_t at, run, len;
    if (!varint_read(&rest, &at) || !varint_read(&rest, &run) || !varint_read(&rest, &len))
        return false;
    const char *type = rest.p, *end = rest.len ? memchr(type, '\0', rest.len) : NULL;
    if (!end) return false;
    rest = str_drop(rest, (size_t)(end - type) + 1);
    if (run && !bytes_read(&rest, run - 1, &run_id)) return false;
    if (!bytes_read(&rest, len, &data)) return false;
    frames->rest = rest;
    frames->run_id = run_id;
    frames->at = (msec)((uint64_t)frames->at + (at >> 1 ^ (0 - (at & 1))));
    *fact = (struct fact){
        .seq = frames->seq, .type = type, .run_id = run_id, .at = frames->at, .data = data};
    return true;
}

void fact_frames_begin(struct fact_frames *frames, str bytes, int64_t first, int64_t last)
{
    *frames = (struct fact_frames){.rest = bytes,
                                   .run_id = STR_EMPTY,
                                   .seq = first,
                                   .last = last,
                                   .damaged = first < 1 || first > last || last == INT64_MAX};
}

bool fact_frames_next(struct fact_frames *frames, struct fact *ret_fact)
{
    if (frames->damaged || frames->seq > frames->last) return false;
    frames->damaged = !frame_read(frames, ret_fact);
    if (frames->damaged) return false;
    if (frames->seq++ == frames->last && frames->rest.len) frames->damaged = true;
    return true;
}

enum err fact_frames_end(const struct fact_frames *frames)
{
    return frames->damaged ? ERR_DAMAGED : OK;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Files of a person's message, as a history row holds them, and the words that tell a model of them.
 * Pure; texts live in the arena given, or in the row.
 *
 *     [file: notes.txt, text/plain, 120 bytes]      and behind it what is in a text file
 *     [image: https://example.org/cat.png]          a file elsewhere, which nobody fetches
 */
#ifndef AGENT_CORE_FILES_H
#define AGENT_CORE_FILES_H

#include "base/arena.h"
#include "store/table/conversation.h"

struct file {
    str type;           /* of the part: "binary", "image", ... */
    str id;             /* of an attachment; empty: elsewhere */
    str url;            /* then */
    str mime, filename; /* each may be empty */
    uint64_t bytes;
};

struct file_list {
    struct file *files;
    size_t count;
};

/* Of a user's row, in the order of its parts. Most rows have none, which costs a look at the text. */
struct file_list files_of(struct arena *arena, const struct message *row);

/* "a.png, b.txt"; a file without a name by its address or its type. Empty if there are no files. */
str files_named(struct arena *arena, const struct message *row);

bool file_is_picture(const struct file *file); /* of a kind that models are shown */
bool file_is_text(const struct file *file);

/* What has become of its bytes. */
enum file_fate {
    FILE_NAMED,      /* nobody asked for them */
    FILE_MISSING,    /* they are not where they should be */
    FILE_DAMAGED,    /* they are not what was stored */
    FILE_UNREADABLE, /* they could not be read just now */
    FILE_NOT_UTF8,   /* a text in another encoding */
    FILE_UNKEPT,     /* they were there, and could not be stored */
    FILE_FATES
};

/* One line that tells of it. */
str file_line(struct arena *arena, str locale, const struct file *file, enum file_fate fate);

/* The line, and what is in the text file: at most `max` bytes, between fences that it cannot close
 * itself. */
str file_block(struct arena *arena, str locale, const struct file *file, str bytes, size_t max);

/* "950 bytes", "1.2 KiB"; "字节" in Chinese. */
enum { FILE_SIZE_BYTES = 32 };
void file_size(bool chinese, uint64_t bytes, char ret_text[static FILE_SIZE_BYTES]);

#endif

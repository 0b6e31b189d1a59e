/* SPDX-License-Identifier: Apache-2.0
 *
 * The demo model and files. A file stands in the person's message behind the words, as a line in
 * brackets, with what is in a text file between fences below; pictures come beside the text. The
 * answer names what came, and says nothing about what is in it.
 */
#include "base/limits.h"
#include "model/demo.h"

/* How a line that tells of a file begins. */
static const str marks[] = {
    STR("[file: "), STR("[image: "), STR("[audio: "), STR("[video: "), STR("[document: "),
    STR("[文件："), STR("[图片："),  STR("[音频："),  STR("[视频："),  STR("[文档："),
};

/* clang-format off */
static const struct {
    str before, after, bytes;
} words[LANGUAGES] = {
    [ENGLISH] = {STR("This has arrived:\n\n"),
                 STR("\nI am only the demo model and cannot look into it. A real model gets the "
                     "same files. Say **help** to learn what can speak in my place.\n"),
                 STR("bytes")},
    [CHINESE] = {STR("已收到：\n\n"),
                 STR("\n我只是演示模型，看不懂里面的内容；真正的模型会得到同样的文件。说**帮助**可以了解用什么来代替我。\n"),
                 STR("字节")},
};
/* clang-format on */

/* What stands in the brackets; empty if the line tells of no file. */
static str told(str line)
{
    for (size_t i = 0; i < COUNT(marks); i++)
        if (str_starts(line, marks[i]) && str_ends(line, STR("]")))
            return (str){line.p + marks[i].len, line.len - marks[i].len - 1};
    return STR_EMPTY;
}

str demo_said(str text)
{
    for (str rest = text; rest.p;) {
        str line = str_split(&rest, '\n');
        if (told(line).len) return (str){text.p, (size_t)(line.p - text.p)};
    }
    return text;
}

/* Three or more backticks and nothing else. */
static bool is_fence(str line)
{
    for (size_t i = 0; i < line.len; i++)
        if (line.p[i] != '`') return false;
    return line.len >= 3;
}

/* Lines that tell of files, those inside of a file left out. */
static size_t list_told(const struct view *view, str text, struct buf *out)
{
    size_t count = 0;
    str fence = STR_EMPTY;
    for (str rest = str_drop(text, demo_said(text).len); rest.p && count < DEMO_TABLE_ROWS_MAX;) {
        str line = str_split(&rest, '\n');
        if (fence.len) {
            if (str_eq(line, fence)) fence = STR_EMPTY;
        } else if (is_fence(line)) {
            fence = line;
        } else if (told(line).len) {
            str shown = demo_line(view->arena, told(line), DEMO_REASON_CHARS_MAX);
            buf_printf(out, "- %.*s\n", STR_ARG(shown));
            count++;
        }
    }
    return count;
}

static const struct model_message *last_user(const struct model_request *request)
{
    for (size_t i = request->count; i-- > 0;)
        if (str_eq(request->messages[i].role, STR("user")) && !request->messages[i].along)
            return &request->messages[i];
    return NULL;
}

bool demo_files(const struct view *view, struct reply *ret_reply)
{
    const struct model_message *message = last_user(view->request);
    if (!message) return false;
    AUTO(buf_done) struct buf out;
    buf_init(&out, DEMO_TEXT_BYTES_MAX);
    buf_append(&out, words[view->language].before);
    size_t count = 0;
    for (; count < message->image_count && count < DEMO_TABLE_ROWS_MAX; count++) {
        const struct model_image *image = &message->images[count];
        str name = image->filename.len ? image->filename : image->mime;
        name = demo_line(view->arena, name, DEMO_REASON_CHARS_MAX);
        buf_printf(&out, "- %.*s, %.*s, %zu %.*s\n", STR_ARG(name), STR_ARG(image->mime),
                   image->bytes.len, STR_ARG(words[view->language].bytes));
    }
    count += list_told(view, message->text, &out);
    if (!count) return false;
    buf_append(&out, words[view->language].after);
    assert(!out.full);
    *ret_reply = (struct reply){.text = arena_str(view->arena, buf_str(&out))};
    return true;
}

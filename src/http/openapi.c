/* SPDX-License-Identifier: Apache-2.0
 *
 * The API document, OpenAPI 3.1 from the route table. Routes of one path follow each other in the
 * table, so a path item is opened at its first row and closed after its last. What a row names,
 * bodies and parameters, has its own row here.
 */
#include "http/openapi.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "net/problem.h"

/* Bodies by name: their media type and JSON Schema. */
static const struct openapi_schema {
    const char *name, *media, *json;
} schemas[] = {
    {"Object", "application/json", "{\"type\":\"object\"}"},
    {"Text", "text/plain", "{\"type\":\"string\"}"},
    {"Markdown", "text/markdown", "{\"type\":\"string\"}"},
    {"Problem", PROBLEM_TYPE,
     "{\"type\":\"object\",\"required\":[\"type\",\"title\",\"status\",\"detail\",\"code\"],"
     "\"properties\":{\"type\":{\"type\":\"string\"},\"title\":{\"type\":\"string\"},"
     "\"status\":{\"type\":\"integer\"},\"detail\":{\"type\":\"string\"},"
     "\"code\":{\"type\":\"string\"},\"field\":{\"type\":\"string\"},"
     "\"interaction\":{\"$ref\":\"#/components/schemas/Interaction\"},"
     "\"interactions\":{\"type\":\"array\","
     "\"items\":{\"$ref\":\"#/components/schemas/Interaction\"}}}}"},
    {"ChannelCall", "application/json", "{}"}, /* each platform has its own */
    {"Health", "application/json",
     "{\"type\":\"object\",\"required\":[\"status\"],"
     "\"properties\":{\"status\":{\"const\":\"ok\"}}}"},
    {"SessionRequest", "application/json",
     "{\"type\":\"object\",\"required\":[\"key\"],\"additionalProperties\":false,"
     "\"properties\":{\"key\":{\"type\":\"string\",\"minLength\":1}}}"},
    {"Session", "application/json",
     "{\"type\":\"object\",\"required\":[\"user\",\"roles\",\"via\"],"
     "\"properties\":{\"user\":{\"type\":\"string\"},"
     "\"roles\":{\"type\":\"array\",\"items\":{\"enum\":[\"user\",\"approver\",\"operator\"]}},"
     "\"via\":{\"enum\":[\"local\",\"key\",\"session\",\"ticket\"]},"
     "\"expiresAt\":{\"type\":\"string\",\"format\":\"date-time\"}}}"},
    {"RunAgentInput", "application/json",
     "{\"type\":\"object\",\"required\":[\"messages\"],\"properties\":{"
     "\"threadId\":{\"type\":\"string\"},\"runId\":{\"type\":\"string\"},"
     "\"protocolVersion\":{\"type\":[\"string\",\"null\"]},"
     "\"agent\":{\"type\":[\"string\",\"null\"]},\"state\":{},\"forwardedProps\":{},"
     "\"tools\":{\"type\":[\"array\",\"null\"]},\"context\":{\"type\":[\"array\",\"null\"]},"
     "\"resume\":{\"type\":[\"array\",\"null\"],\"items\":{\"type\":\"object\","
     "\"required\":[\"interruptId\",\"status\"],\"properties\":{"
     "\"interruptId\":{\"type\":\"string\"},"
     "\"status\":{\"enum\":[\"resolved\",\"cancelled\"]},\"payload\":{}}}},"
     "\"messages\":{\"type\":\"array\",\"items\":{\"type\":\"object\","
     "\"required\":[\"role\"]}}}}"},
    {"RunAccepted", "application/json",
     "{\"type\":\"object\",\"required\":[\"taskId\",\"threadId\",\"runId\",\"created\",\"seq\","
     "\"eventsUrl\"],\"properties\":{\"taskId\":{\"type\":\"string\"},"
     "\"threadId\":{\"type\":\"string\"},\"runId\":{\"type\":\"string\"},"
     "\"created\":{\"type\":\"boolean\"},\"seq\":{\"type\":\"integer\"},"
     "\"eventsUrl\":{\"type\":\"string\"},\"queued\":{\"type\":\"boolean\"},"
     "\"answered\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}}}}"},
    {"McpMessage", "application/json",
     "{\"type\":\"object\",\"required\":[\"jsonrpc\"],\"properties\":{"
     "\"jsonrpc\":{\"const\":\"2.0\"},\"id\":{\"type\":[\"string\",\"number\",\"null\"]},"
     "\"method\":{\"type\":\"string\"},\"params\":{\"type\":\"object\"},"
     "\"result\":{\"type\":\"object\"},\"error\":{\"type\":\"object\"}}}"},
    {"Press", "application/json",
     "{\"type\":\"object\",\"required\":[\"threadId\",\"messageId\",\"actionId\"],"
     "\"additionalProperties\":false,\"properties\":{"
     "\"threadId\":{\"type\":\"string\",\"minLength\":1},"
     "\"messageId\":{\"type\":\"string\",\"minLength\":1},"
     "\"actionId\":{\"type\":\"string\",\"minLength\":1}}}"},
    {"PressedAction", "application/json",
     "{\"type\":\"object\",\"required\":[\"action\"],\"properties\":{\"action\":{"
     "\"type\":\"object\",\"required\":[\"type\"],\"properties\":{\"type\":{"
     "\"enum\":[\"navigation\",\"url\",\"event\",\"copy\"]}}}}}"},
    {"Run", "application/json",
     "{\"type\":\"object\",\"required\":[\"threadId\",\"runId\",\"status\",\"interactions\","
     "\"queue\","
     "\"usage\"],\"properties\":{\"threadId\":{\"type\":\"string\"},"
     "\"runId\":{\"type\":\"string\"},\"status\":{\"type\":\"string\"},"
     "\"phase\":{\"type\":\"string\"},\"step\":{\"type\":\"string\"},"
     "\"interactions\":{\"type\":\"array\"},\"queue\":{\"type\":\"array\"},"
     "\"next\":{\"type\":\"string\"},"
     "\"usage\":{\"$ref\":\"#/components/schemas/Usage\"}}}"},
    {"CancelRequest", "application/json",
     "{\"type\":\"object\",\"additionalProperties\":false,\"properties\":{"
     "\"runId\":{\"type\":\"string\"},\"queue\":{\"type\":\"boolean\"}}}"},
    {"Nothing", "application/json", "{\"type\":\"object\",\"additionalProperties\":false}"},
    {"Thread", "application/json",
     "{\"type\":\"object\",\"required\":[\"threadId\",\"title\",\"agent\",\"seq\",\"createdAt\","
     "\"updatedAt\"],\"properties\":{\"threadId\":{\"type\":\"string\"},"
     "\"title\":{\"type\":\"string\"},\"agent\":{\"type\":\"string\"},"
     "\"seq\":{\"type\":\"integer\"},\"createdAt\":{\"type\":\"string\",\"format\":\"date-time\"},"
     "\"updatedAt\":{\"type\":\"string\",\"format\":\"date-time\"},"
     "\"usage\":{\"type\":\"array\",\"items\":{\"$ref\":\"#/components/schemas/Usage\"}}}}"},
    {"Usage", "application/json",
     "{\"type\":\"object\",\"required\":[\"inputTokens\",\"outputTokens\",\"cost\",\"currency\"],"
     "\"properties\":{\"inputTokens\":{\"type\":\"integer\"},"
     "\"outputTokens\":{\"type\":\"integer\"},\"cost\":{\"type\":\"number\"},"
     "\"currency\":{\"type\":\"string\"}}}"},
    {"Threads", "application/json",
     "{\"type\":\"object\",\"required\":[\"threads\"],\"properties\":{\"threads\":{\"type\":"
     "\"array\","
     "\"items\":{\"$ref\":\"#/components/schemas/Thread\"}},\"next\":{\"type\":\"string\"}}}"},
    {"ThreadChange", "application/json",
     "{\"type\":\"object\",\"required\":[\"title\"],\"additionalProperties\":false,"
     "\"properties\":{\"title\":{\"type\":\"string\",\"minLength\":1}}}"},
    {"History", "application/json",
     "{\"type\":\"object\",\"required\":[\"messages\",\"hasMore\",\"openInteractions\",\"seq\"],"
     "\"properties\":{\"messages\":{\"type\":\"array\",\"items\":{\"type\":\"object\"}},"
     "\"hasMore\":{\"type\":\"boolean\"},\"before\":{\"type\":\"integer\"},"
     "\"openInteractions\":{\"type\":\"array\"},\"seq\":{\"type\":\"integer\"}}}"},
    {"Any", "application/json", "{}"},
    {"Interaction", "application/json",
     "{\"type\":\"object\",\"required\":[\"version\",\"interactionId\",\"type\",\"status\","
     "\"displayText\",\"requester\",\"openedAt\",\"metadata\"],\"properties\":{"
     "\"interactionId\":{\"type\":\"string\"},"
     "\"type\":{\"enum\":[\"ask_user\",\"confirm\",\"connection_lost\",\"uncertain\"]},"
     "\"status\":{\"enum\":[\"open\",\"resolved\",\"canceled\",\"expired\",\"superseded\"]},"
     "\"threadId\":{\"type\":\"string\"},\"runId\":{\"type\":\"string\"},"
     "\"toolCallId\":{\"type\":\"string\"},\"displayText\":{\"type\":\"string\"},"
     "\"question\":{\"type\":\"string\"},\"choices\":{\"type\":\"array\"},"
     "\"allowFreeform\":{\"type\":\"boolean\"},\"fields\":{\"type\":\"array\"},"
     "\"multi\":{\"type\":\"boolean\"},\"pendingTool\":{\"type\":\"object\"},"
     "\"binding\":{\"type\":\"string\"},\"ui\":{\"type\":\"object\"},"
     "\"uiRef\":{\"type\":\"string\"},\"requester\":{\"type\":\"string\"},"
     "\"openedAt\":{\"type\":\"string\",\"format\":\"date-time\"},"
     "\"expiresAt\":{\"type\":\"string\",\"format\":\"date-time\"},"
     "\"answer\":{\"type\":\"object\"},\"answeredBy\":{\"type\":\"string\"},"
     "\"via\":{\"type\":\"string\"},\"metadata\":{\"type\":\"object\"}}}"},
    {"Interactions", "application/json",
     "{\"type\":\"object\",\"required\":[\"interactions\"],\"properties\":{\"interactions\":"
     "{\"type\":\"array\",\"items\":{\"$ref\":\"#/components/schemas/Interaction\"}},"
     "\"next\":{\"type\":\"string\"}}}"},
    {"InteractionChange", "application/json",
     "{\"type\":\"object\",\"required\":[\"expiresAt\"],\"additionalProperties\":false,"
     "\"properties\":{\"expiresAt\":{\"type\":[\"string\",\"null\"],\"format\":\"date-time\"}}}"},
    {"Answer", "application/json",
     "{\"oneOf\":["
     "{\"type\":\"object\",\"additionalProperties\":false,\"properties\":{"
     "\"choices\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}},"
     "\"text\":{\"type\":\"string\"},\"answer\":{\"type\":\"string\"},"
     "\"fields\":{\"type\":\"object\"},\"skip\":{\"const\":true}}},"
     "{\"type\":\"object\",\"required\":[\"decision\"],\"additionalProperties\":false,"
     "\"properties\":{\"decision\":{\"enum\":[\"approve\",\"edit\",\"reject\",\"respond\","
     "\"continue\",\"give_up\",\"retry\",\"happened\"]},\"args\":{\"type\":\"object\"},"
     "\"comment\":{\"type\":\"string\"},\"always\":{\"type\":\"object\"},"
     "\"binding\":{\"type\":\"string\"}}}]}"},
    {"RunAnswer", "application/json",
     "{\"type\":\"object\",\"required\":[\"answer\"],\"additionalProperties\":false,"
     "\"properties\":{\"answer\":{\"type\":\"string\",\"minLength\":1}}}"},
    {"Grant", "application/json",
     "{\"type\":\"object\",\"required\":[\"grantId\",\"toolName\",\"scope\",\"match\",\"madeBy\","
     "\"createdAt\",\"approvedBy\"],\"properties\":{\"grantId\":{\"type\":\"string\"},"
     "\"toolName\":{\"type\":\"string\"},\"scope\":{\"enum\":[\"thread\",\"user\"]},"
     "\"threadId\":{\"type\":\"string\"},\"match\":{\"type\":\"object\"},"
     "\"madeBy\":{\"type\":\"string\"},\"interactionId\":{\"type\":\"string\"},"
     "\"createdAt\":{\"type\":\"string\",\"format\":\"date-time\"},"
     "\"requester\":{\"type\":\"string\"},\"rule\":{\"type\":\"string\"},"
     "\"approvedBy\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}}}}"},
    {"Grants", "application/json",
     "{\"type\":\"object\",\"required\":[\"grants\"],\"properties\":{\"grants\":"
     "{\"type\":\"array\",\"items\":{\"$ref\":\"#/components/schemas/Grant\"}},"
     "\"next\":{\"type\":\"string\"}}}"},
    {"Events", "text/event-stream", "{\"type\":\"string\"}"},
    {"Calendar", "text/calendar", "{\"type\":\"string\"}"},
    {"File", "application/octet-stream", "{\"type\":\"string\",\"format\":\"binary\"}"},
    {"Upload", "multipart/form-data",
     "{\"type\":\"object\",\"required\":[\"threadId\",\"file\"],\"additionalProperties\":false,"
     "\"properties\":{\"threadId\":{\"type\":\"string\",\"pattern\":\"^[A-Za-z0-9._:-]{1,128}$\"},"
     "\"file\":{\"type\":\"string\",\"format\":\"binary\"}}}"},
    {"Attachment", "application/json",
     "{\"type\":\"object\",\"required\":[\"attachment\"],\"properties\":{\"attachment\":{"
     "\"type\":\"object\",\"required\":[\"id\",\"url\",\"mimeType\",\"filename\",\"size\","
     "\"sha256\",\"expiresAt\"],\"properties\":{\"id\":{\"type\":\"string\"},"
     "\"url\":{\"type\":\"string\"},\"mimeType\":{\"type\":\"string\"},"
     "\"filename\":{\"type\":\"string\"},\"size\":{\"type\":\"integer\"},"
     "\"sha256\":{\"type\":\"string\"},"
     "\"expiresAt\":{\"type\":\"string\",\"format\":\"date-time\"},"
     "\"width\":{\"type\":\"integer\"},\"height\":{\"type\":\"integer\"}}}}}"},
    {"Agents", "application/json",
     "{\"type\":\"object\",\"required\":[\"agents\"],\"properties\":{\"agents\":{\"type\":"
     "\"array\","
     "\"items\":{\"type\":\"object\",\"required\":[\"name\",\"model\",\"provider\",\"starters\","
     "\"plan\",\"limits\",\"capabilities\"],\"properties\":{\"name\":{\"type\":\"string\"},"
     "\"model\":{\"type\":\"string\"},\"provider\":{\"type\":\"string\"},"
     "\"starters\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}},"
     "\"locale\":{\"enum\":[\"zh-CN\",\"en\"]},\"plan\":{\"enum\":[\"auto\",\"always\",\"never\"]},"
     "\"limits\":{\"type\":\"object\",\"required\":[\"upload\",\"body\",\"maxToolRounds\"],"
     "\"properties\":{\"upload\":{\"type\":\"integer\"},\"body\":{\"type\":\"integer\"},"
     "\"maxToolRounds\":{\"type\":\"integer\"}}},"
     "\"capabilities\":{\"type\":\"object\",\"required\":[\"askUser\",\"tools\",\"plan\","
     "\"attachments\"],\"properties\":{\"askUser\":{\"type\":\"boolean\"},"
     "\"plan\":{\"type\":\"boolean\"},\"attachments\":{\"type\":\"boolean\"},"
     "\"tools\":{\"type\":\"array\",\"items\":{\"type\":\"object\",\"required\":[\"name\","
     "\"effect\",\"description\"],\"properties\":{\"name\":{\"type\":\"string\"},"
     "\"effect\":{\"enum\":[\"read\",\"write\"]},"
     "\"risk\":{\"enum\":[\"write\",\"external\",\"destructive\"]},"
     "\"description\":{\"type\":\"string\"}}}}}}}}}}}"},
    {"Settings", "application/json",
     "{\"type\":\"object\",\"required\":[\"enableAskUser\",\"maxToolRounds\",\"confirmPolicy\"],"
     "\"properties\":{\"enableAskUser\":{\"type\":\"boolean\"},"
     "\"maxToolRounds\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":1000},"
     "\"confirmPolicy\":{\"type\":\"object\","
     "\"additionalProperties\":{\"enum\":[\"allow\",\"confirm\",\"deny\"]}},"
     "\"locale\":{\"enum\":[\"zh-CN\",\"en\"]}}}"},
    {"SettingsChange", "application/json",
     "{\"type\":\"object\",\"additionalProperties\":false,\"properties\":{"
     "\"enableAskUser\":{\"type\":[\"boolean\",\"null\"]},"
     "\"maxToolRounds\":{\"type\":[\"integer\",\"null\"],\"minimum\":1,\"maximum\":1000},"
     "\"confirmPolicy\":{\"type\":[\"object\",\"null\"],\"maxProperties\":100,"
     "\"additionalProperties\":{\"enum\":[\"allow\",\"confirm\",\"deny\"]}},"
     "\"locale\":{\"enum\":[\"zh-CN\",\"en\",null]}}}"},
    {"Channels", "application/json",
     "{\"type\":\"object\",\"required\":[\"channels\"],\"properties\":{\"channels\":{"
     "\"type\":\"array\",\"items\":{\"type\":\"object\",\"required\":[\"name\",\"kind\","
     "\"agent\",\"state\",\"people\",\"waiting\",\"parked\",\"login\"],\"properties\":{"
     "\"name\":{\"type\":\"string\"},"
     "\"kind\":{\"enum\":[\"weixin\",\"wechat_oa\",\"telegram\",\"webhook\"]},"
     "\"agent\":{\"type\":\"string\"},"
     "\"state\":{\"enum\":[\"starting\",\"online\",\"trouble\",\"needs_login\"]},"
     "\"detail\":{\"type\":\"string\"},\"people\":{\"type\":\"integer\"},"
     "\"waiting\":{\"type\":\"integer\"},\"parked\":{\"type\":\"integer\"},"
     "\"login\":{\"type\":\"boolean\"},\"webhookUrl\":{\"type\":\"string\"}}}}}}"},
    {"ChannelLoginWish", "application/json",
     "{\"type\":\"object\",\"additionalProperties\":false,\"properties\":{"
     "\"verifyCode\":{\"type\":\"string\",\"pattern\":\"^[0-9]{1,16}$\"},"
     "\"restart\":{\"type\":\"boolean\"}}}"},
    {"ChannelLogin", "application/json",
     "{\"type\":\"object\",\"required\":[\"state\",\"expiresAt\"],\"properties\":{"
     "\"state\":{\"enum\":[\"wait\",\"scanned\",\"verify\",\"done\",\"expired\",\"failed\"]},"
     "\"content\":{\"type\":\"string\"},"
     "\"qr\":{\"type\":\"object\",\"required\":[\"size\",\"rows\"],\"properties\":{"
     "\"size\":{\"type\":\"integer\"},"
     "\"rows\":{\"type\":\"array\",\"items\":{\"type\":\"string\",\"pattern\":\"^[01]+$\"}}}},"
     "\"expiresAt\":{\"type\":\"string\",\"format\":\"date-time\"},"
     "\"user\":{\"type\":\"string\"},\"detail\":{\"type\":\"string\"}}}"},
    /* docs/schema has both in full. */
    {"UiHints", "application/json",
     "{\"type\":\"object\",\"required\":[\"version\",\"intent\",\"status\"],\"properties\":{"
     "\"version\":{\"const\":\"2.1\"},"
     "\"intent\":{\"enum\":[\"message\",\"data\",\"list\",\"status\",\"form\",\"mixed\"]},"
     "\"status\":{\"enum\":[\"info\",\"success\",\"warning\",\"error\",\"pending\"]},"
     "\"title\":{\"type\":\"string\"},\"description\":{\"type\":\"string\"},"
     "\"body\":{\"type\":\"string\"},\"bodyFormat\":{\"enum\":[\"plain\",\"markdown\"]},"
     "\"items\":{\"type\":\"array\"},\"listItems\":{\"type\":\"array\"},"
     "\"sections\":{\"type\":\"array\"},\"actions\":{\"type\":\"array\"},"
     "\"icon\":{\"type\":[\"string\",\"object\"]},\"meta\":{\"type\":\"object\"}}}"},
    {"UiSchema", "application/json",
     "{\"type\":\"object\",\"required\":[\"version\",\"locale\",\"status\",\"theme\",\"root\"],"
     "\"properties\":{\"version\":{\"const\":\"2.0\"},\"locale\":{\"type\":\"string\"},"
     "\"status\":{\"enum\":[\"info\",\"success\",\"warning\",\"error\",\"pending\"]},"
     "\"theme\":{\"enum\":[\"default\",\"light\",\"dark\"]},"
     "\"meta\":{\"type\":\"object\"},\"root\":{\"type\":\"object\",\"required\":[\"type\"]}}}"},
    {"Ticket", "application/json",
     "{\"type\":\"object\",\"required\":[\"ticket\",\"expiresAt\"],"
     "\"properties\":{\"ticket\":{\"type\":\"string\"},"
     "\"expiresAt\":{\"type\":\"string\",\"format\":\"date-time\"}}}"},
};

/* What a request carries in its query or head, by the name that the route table has for it. */
static const struct parameter {
    const char *name;
    const char *in, *key; /* where, and what it is called there */
    bool required;
    const char *json, *description;
} parameters[] = {
    {"Limit", "query", "limit", false,
     "{\"type\":\"integer\",\"minimum\":1,\"maximum\":200,\"default\":50}", "Rows of a page"},
    {"Scope", "query", "scope", false, "{\"enum\":[\"mine\",\"all\"]}",
     "`all`: of everybody, for operators"},
    {"Cursor", "query", "cursor", false, "{\"type\":\"string\"}", "`next` of the page before"},
    {"Search", "query", "query", false, "{\"type\":\"string\"}",
     "A part of a title, a message or a file's name, in whatever case; at most 256 bytes. A page "
     "of a search may have few threads, even none, and a `next` with which it goes on"},
    {"Thread", "query", "threadId", true, "{\"type\":\"string\"}", "The thread"},
    {"OfThread", "query", "threadId", false, "{\"type\":\"string\"}", "Only those of this thread"},
    {"OfAgent", "query", "agent", false, "{\"type\":\"string\"}", "Only those of this agent"},
    {"InStatus", "query", "status", false,
     "{\"enum\":[\"open\",\"resolved\",\"canceled\",\"expired\",\"superseded\"],"
     "\"default\":\"open\"}",
     "Only those in this status"},
    {"BeforeMessage", "query", "before", false, "{\"type\":\"string\"}",
     "`before` of the page that is there, or a time in ISO form: what was said earlier"},
    {"AfterMessage", "query", "after", false, "{\"type\":\"integer\",\"minimum\":0}",
     "A place as in `before` of an answer: what was said later; 0 is from the first message"},
    {"AfterFact", "query", "after", false, "{\"type\":\"integer\",\"minimum\":0}",
     "The `seq` of a fact: what happened later; 0 is everything"},
    {"LastEventId", "header", "Last-Event-ID", false, "{\"type\":\"string\"}",
     "The same, as browsers say it after a cut; it wins over ?after="},
    {"FromRun", "query", "runId", false, "{\"type\":\"string\"}",
     "Without a place to begin at: from the start of this run, not of the newest"},
    {"EventFormat", "query", "format", false,
     "{\"enum\":[\"native\",\"ag-ui\"],\"default\":\"native\"}", "How events are written"},
    {"ProtocolVersion", "query", "protocolVersion", false, "{\"type\":\"string\"}",
     "With format=ag-ui: the version that the client speaks; none is one before 1.0"},
    {"ExportFormat", "query", "format", false, "{\"enum\":[\"md\",\"json\"],\"default\":\"md\"}",
     "How the thread is written"},
    {"Ticket", "query", "ticket", false, "{\"type\":\"string\"}",
     "Instead of a key: from createTicket"},
    {"Exp", "query", "exp", false, "{\"type\":\"integer\"}",
     "With sig, instead of a key: until when, in seconds since 1970"},
    {"Sig", "query", "sig", false, "{\"type\":\"string\"}", "Our signature of the address and exp"},
    {"IdempotencyKey", "header", "Idempotency-Key", false,
     "{\"type\":\"string\",\"maxLength\":255,\"pattern\":\"^[!-~]*$\"}",
     "The same key with the same request: the same answer, and nothing is done twice"},
    {"Range", "header", "Range", false, "{\"type\":\"string\"}", "A part of the file"},
    {"IfRange", "header", "If-Range", false, "{\"type\":\"string\"}",
     "The ETag that the part must be of; else all of it is sent"},
    {"IfNoneMatch", "header", "If-None-Match", false, "{\"type\":\"string\"}",
     "ETags that are there already"},
    {"AcceptLanguage", "header", "Accept-Language", false, "{\"type\":\"string\"}",
     "The language of our own words"},
    /* of channels: WeChat's query, and the head of our own kind */
    {"WechatSignature", "query", "signature", false, "{\"type\":\"string\"}",
     "WeChat's signature of timestamp and nonce"},
    {"WechatMsgSignature", "query", "msg_signature", false, "{\"type\":\"string\"}",
     "WeChat's signature of an encrypted message"},
    {"WechatTimestamp", "query", "timestamp", false, "{\"type\":\"string\"}",
     "When WeChat signed, in seconds since 1970"},
    {"WechatNonce", "query", "nonce", false, "{\"type\":\"string\"}", "Another one for each call"},
    {"WechatEcho", "query", "echostr", false, "{\"type\":\"string\"}", "What WeChat wants to hear"},
    {"WechatEncryption", "query", "encrypt_type", false, "{\"type\":\"string\"}",
     "`aes`: the message is encrypted"},
    {"HookTimestamp", "header", "Fermata-Timestamp", false, "{\"type\":\"string\"}",
     "Of a channel of kind webhook: when it was signed, in seconds since 1970"},
    {"HookSignature", "header", "Fermata-Signature", false, "{\"type\":\"string\"}",
     "Of a channel of kind webhook: the signature of time and body"},
};

static const struct openapi_schema *schema_find(const char *name)
{
    for (size_t i = 0; i < COUNT(schemas); i++)
        if (strcmp(schemas[i].name, name) == 0) return &schemas[i];
    return NULL;
}

bool openapi_has_schema(const char *name)
{
    return schema_find(name) != NULL;
}

bool openapi_has_parameter(const char *name)
{
    for (size_t i = 0; i < COUNT(parameters); i++)
        if (strcmp(parameters[i].name, name) == 0) return true;
    return false;
}

/* A body of one of the media types of `content`. */
static void put_media(struct json_writer *w, const char *name)
{
    const struct openapi_schema *schema = schema_find(name);
    assert(schema);
    char ref[64];
    snprintf(ref, sizeof ref, "#/components/schemas/%s", name);
    json_key(w, str_c(schema->media));
    json_object(w);
    json_key(w, STR("schema"));
    json_object(w);
    json_member(w, STR("$ref"), str_c(ref));
    json_object_end(w);
    json_object_end(w);
}

static void put_carried(struct json_writer *w, const char *name)
{
    char ref[64];
    assert(openapi_has_parameter(name));
    snprintf(ref, sizeof ref, "#/components/parameters/%s", name);
    json_object(w);
    json_member(w, STR("$ref"), str_c(ref));
    json_object_end(w);
}

static void put_parameters(struct json_writer *w, const struct route *route)
{
    bool with_signature = route->access == ACCESS_SIGNED;
    if (!strchr(route->path, '{') && !route->carries[0] && !route->ticket && !with_signature)
        return;
    json_key(w, STR("parameters"));
    json_array(w);
    for (str rest = str_c(route->path); rest.p;) {
        str piece = str_split(&rest, '/');
        if (piece.len <= 2 || piece.p[0] != '{') continue;
        json_object(w);
        json_member(w, STR("name"), (str){piece.p + 1, piece.len - 2});
        json_member(w, STR("in"), STR("path"));
        json_member_bool(w, STR("required"), true);
        json_member_raw(w, STR("schema"), STR("{\"type\":\"string\"}"));
        json_object_end(w);
    }
    for (size_t i = 0; i < ROUTE_CARRIES_MAX && route->carries[i]; i++)
        put_carried(w, route->carries[i]);
    if (route->ticket) put_carried(w, "Ticket");
    if (with_signature) {
        put_carried(w, "Exp");
        put_carried(w, "Sig");
    }
    json_array_end(w);
}

/* One status: the first of `answers`, and the next ones if they are of the same, in another type. How
 * many that were. */
static size_t put_status(struct json_writer *w, const struct route_answer *answers, size_t count)
{
    char status[8];
    snprintf(status, sizeof status, "%d", answers->status);
    const char *schema = answers->schema;
    size_t i = 0;
    json_key(w, str_c(status));
    json_object(w);
    json_member(w, STR("description"), schema ? str_c(schema) : STR("Done"));
    if (schema) {
        json_key(w, STR("content"));
        json_object(w);
        for (; i < count && answers[i].status == answers->status; i++)
            put_media(w, answers[i].schema);
        json_object_end(w);
    }
    json_object_end(w);
    return i ? i : 1;
}

/* Every route that needs a key refuses one with the role ask. */
static void put_answers(struct json_writer *w, const struct route *route)
{
    static const struct route_answer forbidden = {403, "Problem"};
    bool said = route->access == ACCESS_OPEN || route->ask;
    json_key(w, STR("responses"));
    json_object(w);
    for (size_t i = 0; i < ROUTE_ANSWERS_MAX && route->answers[i].status;) {
        if (!said && route->answers[i].status > 403) put_status(w, &forbidden, 1);
        said = said || route->answers[i].status >= 403;
        i += put_status(w, &route->answers[i], ROUTE_ANSWERS_MAX - i);
    }
    if (!said) put_status(w, &forbidden, 1);
    json_object_end(w);
}

static void put_operation(struct json_writer *w, const struct route *route)
{
    char method[16];
    const char *name = http_method_name(route->method);
    for (size_t i = 0; i <= strlen(name); i++) method[i] = char_lower(name[i]);
    json_key(w, str_c(method));
    json_object(w);
    json_member(w, STR("operationId"), str_c(route->name));
    json_member(w, STR("summary"), str_c(route->summary));
    put_parameters(w, route);
    if (route->access == ACCESS_OPEN) json_member_raw(w, STR("security"), STR("[]"));
    if (route->access == ACCESS_SIGNED)
        json_member_raw(w, STR("security"), STR("[{\"key\":[]},{\"session\":[]},{}]"));
    if (route->body) {
        json_key(w, STR("requestBody"));
        json_object(w);
        json_member_bool(w, STR("required"), !route->body_optional);
        json_key(w, STR("content"));
        json_object(w);
        put_media(w, route->body);
        json_object_end(w);
        json_object_end(w);
    }
    put_answers(w, route);
    json_object_end(w);
}

static void put_components(struct json_writer *w)
{
    json_key(w, STR("components"));
    json_object(w);
    json_key(w, STR("securitySchemes"));
    json_raw(
        w,
        STR("{\"key\":{\"type\":\"http\",\"scheme\":\"bearer\"},"
            "\"session\":{\"type\":\"apiKey\",\"in\":\"cookie\",\"name\":\"fermata_session\"}}"));
    json_key(w, STR("parameters"));
    json_object(w);
    for (size_t i = 0; i < COUNT(parameters); i++) {
        const struct parameter *parameter = &parameters[i];
        json_key(w, str_c(parameter->name));
        json_object(w);
        json_member(w, STR("name"), str_c(parameter->key));
        json_member(w, STR("in"), str_c(parameter->in));
        json_member(w, STR("description"), str_c(parameter->description));
        json_member_bool(w, STR("required"), parameter->required);
        json_member_raw(w, STR("schema"), str_c(parameter->json));
        json_object_end(w);
    }
    json_object_end(w);
    json_key(w, STR("schemas"));
    json_object(w);
    for (size_t i = 0; i < COUNT(schemas); i++)
        json_member_raw(w, str_c(schemas[i].name), str_c(schemas[i].json));
    json_object_end(w);
    json_object_end(w);
}

void openapi_write(struct buf *out, const struct routes *routes)
{
    struct json_writer w;
    json_write_begin(&w, out);
    json_object(&w);
    json_member(&w, STR("openapi"), STR("3.1.0"));
    json_key(&w, STR("info"));
    json_object(&w);
    json_member(&w, STR("title"), STR("Fermata"));
    json_member(&w, STR("version"), STR(FERMATA_VERSION));
    json_object_end(&w);
    json_member_raw(&w, STR("security"), STR("[{\"key\":[]},{\"session\":[]}]"));
    json_key(&w, STR("paths"));
    json_object(&w);
    for (size_t i = 0; i < routes->count;) {
        const char *path = routes->rows[i].path;
        json_key(&w, str_c(path));
        json_object(&w);
        for (; i < routes->count && strcmp(routes->rows[i].path, path) == 0; i++)
            put_operation(&w, &routes->rows[i]);
        json_object_end(&w);
    }
    json_object_end(&w);
    put_components(&w);
    json_object_end(&w);
}

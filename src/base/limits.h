/* SPDX-License-Identifier: Apache-2.0
 *
 * Every fixed bound, with its reason. Bounds that an operator may move are rows of the option table
 * (config/option.c); these are their defaults or have no reason to move.
 */
#ifndef BASE_LIMITS_H
#define BASE_LIMITS_H

enum {
    /* HTTP request head. Browsers send about 1 KiB; a cookie jar may add a few. */
    HTTP_TARGET_BYTES_MAX = 8 * 1024,  /* the request line's target: 414 beyond */
    HTTP_HEAD_BYTES_MAX = 16 * 1024,   /* request line and fields together: 431 beyond */
    HTTP_FIELDS_MAX = 100,             /* 431 beyond */
    HTTP_METHOD_BYTES_MAX = 32,        /* longer is no method anybody knows: 501 */
    HTTP_CHUNK_EXT_BYTES_MAX = 1024,   /* all extensions of one body */
    HTTP_CHUNK_DIGITS_MAX = 16,        /* 64 bits of chunk size */
    HTTP_TRAILER_BYTES_MAX = 4 * 1024, /* 431 beyond */

    /* HTTP connections. */
    HTTP_HEAD_MS_MAX = 10 * 1000,      /* first byte to end of head: 408 */
    HTTP_BODY_IDLE_MS_MAX = 30 * 1000, /* without a byte of the body: 408 */
    HTTP_BODY_RATE_MIN = 512, /* bytes a second that a body must bring over any such 30 s: 408 */
    HTTP_IDLE_MS_MAX = 75 * 1000,        /* kept alive between requests */
    HTTP_WRITE_STALL_MS_MAX = 30 * 1000, /* a reader is judged by what it took within this */
    HTTP_READ_RATE_MIN = 1024, /* bytes a second that it must take of what waits for it, or it is
                                  cut; a modem takes 5,000 */
    HTTP_LINGER_MS_MAX = 2 * 1000,        /* reading on after a refusal, so that no reset eats it */
    HTTP_LINGER_TOTAL_MS_MAX = 30 * 1000, /* as long as the client still sends its body */
    HTTP_AHEAD_BYTES_MAX =
        128 * 1024, /* pipelined bytes that wait: what one or two reads brought */
    SOCK_UNSENT_BYTES_MAX = 128 * 1024, /* taken by the kernel ahead of a slow reader */
    HTTP_CORK_BYTES_MAX = 64 * 1024,    /* answers to pipelined requests collected for one write */
    HTTP_GATHER_BYTES_MAX = 16 * 1024,  /* of a stream, copied for one write: the copy is cheaper */
    HTTP_IGNORED_BODY_BYTES_MAX = 64 * 1024, /* a body nobody asked for is read up to here: 413 */
    HTTP_ANSWER_BYTES_MAX = 64 * 1024 * 1024,
    HTTP_FILE_PIECE_BYTES = 64 * 1024, /* of a file: one read; two of them for each answer */

    /* What clients make us hold, by who they are. A user is whoever showed a key, a session or a
     * ticket; everybody else is known by address only. */
    HTTP_BODIES_BYTES_MAX = 256 * 1024 * 1024,     /* of bodies, of all users */
    HTTP_BODIES_USER_BYTES_MAX = 64 * 1024 * 1024, /* of one: four of RUN_INPUT_BYTES_MAX */
    HTTP_BODIES_STRANGERS_BYTES_MAX =
        16 * 1024 * 1024,                            /* of all without a key: calls of platforms */
    HTTP_BODIES_ADDRESS_BYTES_MAX = 4 * 1024 * 1024, /* of one: four of CHANNEL_HOOK_BYTES_MAX */
    HTTP_BODY_STEP_BYTES = 64 * 1024,          /* by which a body of unknown length is counted */
    HTTP_UNSENT_BYTES_MAX = 512 * 1024 * 1024, /* of answers not read, of all users */
    HTTP_UNSENT_USER_BYTES_MAX = 64 * 1024 * 1024, /* of one: the largest answer there is, or eight
                                                      of MESSAGE_PAGE_BYTES_MAX */
    HTTP_UNSENT_STRANGERS_BYTES_MAX = 32 * 1024 * 1024, /* of all without a key: signed files */
    HTTP_UNSENT_ADDRESS_BYTES_MAX = 8 * 1024 * 1024,    /* of one: 64 downloads at a time */
    HTTP_CONNECTIONS_SHARE_MIN = 64,   /* of an address or a user, however few there are in all */
    HTTP_CONNECTIONS_ADDRESS_PART = 4, /* an address without a key has a quarter of them */
    HTTP_CONNECTIONS_USER_PART = 2,    /* a user half: a program may serve many with one key */
    HTTP_ROOM_IDLE_MS_MIN = 1000,  /* an idle connection gives way to another of its own address */
    HTTP_ROOM_LOOKS_MAX = 64,      /* idle connections looked at to find one that gives way */
    HTTP_HOLDERS_MAX = 100 * 1000, /* users, and addresses, that hold something at a time */

    /* Uploads. */
    MULTIPART_HEAD_BYTES_MAX = 8 * 1024, /* of one part; a browser sends 200 bytes */
    MULTIPART_PARTS_MAX = 16,            /* of one form; ours has two */
    UPLOADS_MAX = 64,                    /* at a time; each holds a file and some buffers */
    UPLOADS_USER_MAX = 16,               /* of one user: a quarter of them */
    UPLOAD_FORM_BYTES_MAX = 256 * 1024,  /* of a form besides its file: heads, boundaries, fields */
    UPLOAD_LOOK_BYTES_MAX = 256 * 1024,  /* of a file, for its type and the size of a picture */
    IMAGE_PIXELS_MAX = 1 << 28,          /* of a picture: cameras have 2 * 10^8; shown, 1 GiB */
    ATTACHMENT_URL_MS_MAX = 60 * 60 * 1000,  /* a signed address: as long as a page stays open */
    ATTACHMENT_URL_STEP_MS = 10 * 60 * 1000, /* the same address within this */
    ATTACHMENT_JSON_BYTES_MAX = 16 * 1024,   /* its longest part: the URL, whose prefix has 4 KiB */

    /* Accepting. */
    LOOP_ACCEPTS_MAX = 64,      /* new connections of a listener in one turn of the loop */
    LOOP_ACCEPT_PAUSE_MS = 100, /* out of descriptors: try again after this */

    /* HTTP client: what a server may make us hold. */
    CLIENT_REQUESTS_MAX = 4096,               /* open at a time; each holds a descriptor */
    CLIENT_IDLE_CONNECTIONS_MAX = 64,         /* kept for the next request */
    CLIENT_URL_BYTES_MAX = 16 * 1024,         /* signed URLs reach 2 KiB */
    CLIENT_FIELDS_MAX = 200,                  /* of an answer, and of a request */
    CLIENT_HEAD_BYTES_MAX = 64 * 1024,        /* of an answer; large sites send 10 KiB */
    CLIENT_BODY_BYTES_MAX = 64 * 1024 * 1024, /* of an answer, unless the caller says otherwise */
    CLIENT_SEND_BYTES = 16 * 1024,            /* of a request at a time; libcurl has 64 KiB */
    CLIENT_TRICKLE_BYTES = 4 * 1024,          /* of an answer at a time, if it trickles; else 16 */
    CLIENT_WHOLE_BYTES_MAX = 32 * 1024,       /* a body that goes out with its head, in no buffer */
    CLIENT_CONNECT_MS_MAX = 10 * 1000,
    CLIENT_FIRST_BYTE_MS_MAX = 60 * 1000, /* a large model thinks before its first token */
    CLIENT_IDLE_MS_MAX = 60 * 1000,

    /* JSON. */
    JSON_DEPTH_MAX = 64,           /* deeper is an attack: our own documents stay under 20 */
    JSON_VALUES_MAX = 1000 * 1000, /* each takes 80 bytes of arena, and 2 of a hostile source */
    JSON_VALUES_SURE = 32 * 1024,  /* of any body, however short: 2.5 MiB of tree */
    JSON_VALUE_BYTES = 8, /* of a longer body for each value: a tree of 10 times it. Messages and
                             schemas have 12 and more, coordinates 10; 2 are an attack */
    JSON_BESIDE_BYTES = 64 * 1024, /* a longer body is parsed beside the loop: it takes 1 ms */
    JSON_F64_BYTES_MAX = 512,      /* a number as text; no double needs more than 25 */
    JSON_SCAN_KEYS_MAX = 32, /* remembered of a document that is not kept; compared with each */
    JSON_SCAN_KEY_BYTES_MAX = 64, /* of each; names that anybody asks for have 10 */

    /* Event streams. */
    SSE_KEEPALIVE_MS = 15 * 1000,        /* proxies drop silence at 30 to 60 s */
    SSE_SEGMENT_BYTES_MIN = 4 * 1024,    /* the first piece of a log */
    SSE_SEGMENT_BYTES = 64 * 1024,       /* one piece of a shared log */
    SSE_REST_MS_MIN = 2,                 /* a delivery shorter than this needs no rest after it */
    SSE_REST_MS_MAX = 10,                /* the longest such rest */
    SSE_PRIVATE_BYTES_MAX = 256 * 1024,  /* catch-up bytes waiting for one reader */
    SSE_LOG_BYTES_MAX = 4 * 1024 * 1024, /* kept in memory per log; a reader behind it catches up
                                            from the store */

    /* WebSocket. */
    WS_MESSAGE_BYTES_MAX = 256 * 1024,     /* from a client; 1009 beyond. Longer ones go by HTTP */
    WS_FRAGMENTS_MAX = 64,                 /* of a message; 1008 beyond */
    WS_QUEUE_BYTES_MAX = 256 * 1024,       /* waiting for a slow reader; then 1013 */
    WS_PONG_MS_MAX = 60 * 1000,            /* without an answer to our ping it is dropped */
    WS_CLOSE_MS_MAX = 2 * 1000,            /* for the peer's close frame */
    WS_PINGS_MAX = 100,                    /* from a client in a second; 1008 beyond */
    WS_CATCHUP_BYTES_MAX = 128 * 1024,     /* of the queue, for old events: acks have the rest */
    WS_SLOW_MS_MAX = 5 * 1000,             /* no room for what happens now, for so long: 1013 */
    WS_SUBSCRIPTIONS_MAX = 256,            /* of a socket; a person looks at a few */
    WS_SUBSCRIPTIONS_ALL_MAX = 100 * 1000, /* of all of them; FEEDS_MAX counts on it */
    WS_SUBSCRIPTIONS_USER_MAX = 10 * 1000, /* of one user's sockets */
    WS_SOCKETS_MAX = 1000 * 1000,          /* as many as there may be connections */
    WS_SOCKETS_USER_MAX = 2500,            /* of one user: a quarter of the connections there are
                                              by default */
    WS_FRAMES_MAX = 64,                    /* that wait while one is worked on */
    WS_FRAMES_BYTES_MAX = 1024 * 1024,     /* of them */
    WS_BAD_FRAMES_MAX = 10,                /* in WS_BAD_FRAMES_MS; then 1008 */
    WS_BAD_FRAMES_MS = 60 * 1000,
    WS_ID_BYTES_MAX = 256, /* of a frame's id, which we have to say again */

    /* AG-UI. */
    AGUI_SNAPSHOT_BYTES_MAX = 8 * 1024 * 1024, /* clients break at 10 Mi characters */
    AGUI_DELTA_BYTES_MAX = 1024 * 1024,        /* of text in one frame: each byte may take six */
    AGUI_ROW_BYTES_MAX = 4 * 1024 * 1024,      /* of a message in a snapshot; a longer one is cut */
    AGUI_ROW_CUT_BYTES = 512 * 1024,           /* to this: as long as anybody reads */
    AGUI_IDS_MAX = 10 * 1000,  /* of a client's messages, compared with ours; with more of them it
                                  is sent ours */
    RESUME_ENTRIES_MAX = 1000, /* as many as a run can wait for: STATE_IDS_MAX */
    AGUI_HELD_BYTES_MAX = 16 * 1024 * 1024, /* that wait while a snapshot is read */
    FRONT_TOOLS_MAX = 128,                  /* of one request */
    FRONT_TOOLS_BYTES_MAX = 256 * 1024,     /* of them; every model call carries them */
    FRONT_CONTEXT_BYTES_MAX = 32 * 1024,    /* of what a client tells the model beside them */
    FRONT_CONTEXT_ENTRY_BYTES = 32,         /* each of its entries counts as this much more */

    /* The scripted model and the player. The operator writes the script; these keep a slip from
     * taking the process with it. */
    SCRIPT_BYTES_MAX = 4 * 1024 * 1024,     /* the file; ours stay under 100 KiB */
    SCRIPT_LINES_MAX = 1000,                /* each is tried against each message */
    SCRIPT_TURNS_MAX = 100,                 /* of a line; a run has 30 rounds by default */
    SCRIPT_CALLS_MAX = 64,                  /* of a turn */
    SCRIPT_NAME_BYTES_MAX = 256,            /* of a tool; long enough for one that is refused */
    SCRIPT_PATTERN_BYTES_MAX = 1024,        /* one regular expression */
    SCRIPT_PATTERN_DEPTH_MAX = 16,          /* groups inside each other */
    MODEL_RETRY_AFTER_MS_MAX = 60 * 1000,   /* that a provider may ask for between two attempts */
    MODEL_KEPT_BYTES_MAX = 4 * 1024 * 1024, /* of signed thoughts kept with an answer, escaped */
    SCRIPT_PATTERN_NODES_MAX = 2000, /* after repetitions are written out, as regcomp does it */

    /* Models behind HTTP: what a provider may make us hold. */
    MODEL_EVENT_BYTES_MAX = 1024 * 1024,         /* of a stream; a delta has 300 bytes */
    MODEL_ANSWER_BYTES_MAX = 64 * 1024 * 1024,   /* all events of one answer */
    MODEL_REQUEST_BYTES_MAX = 128 * 1024 * 1024, /* CONTEXT_PICTURES_MAX in base64, and text */
    MODEL_REFUSAL_BYTES_MAX = 64 * 1024,         /* of an answer that is an error, for its reason */
    MODEL_WORDS_BYTES_MAX = 200,                 /* of that reason, for people */
    MODEL_RETRY_READ_MS_MAX =
        24 * 60 * 60 * 1000, /* longer wishes to be left alone count as this */
    MODEL_DRAIN_MS = 1000,   /* for the end of an answer behind its end mark; then it is cut */
    MODEL_KEY_BYTES_MAX = 8 * 1024,  /* signed tokens reach 4 KiB */
    MODEL_NAME_BYTES_MAX = 256,      /* of a model; paths of files are the longest kind */
    MODEL_CALL_ID_BYTES_MAX = 128,   /* a longer one is replaced by its hash */
    MODEL_TOOL_NAME_BYTES_MAX = 256, /* that a model makes up; a longer one is cut */

    /* MCP servers */
    MCP_SERVERS_MAX = 100,
    MCP_MESSAGE_BYTES_MAX = 64 * 1024 * 1024, /* a long tool result, pictures included */
    MCP_STDERR_LINE_BYTES_MAX = 4096,
    MCP_TOOLS_MAX = 500,            /* of one server */
    MCP_TOOL_BYTES_MAX = 64 * 1024, /* name, description and schema of one tool */
    MCP_CALL_S = 300,
    MCP_OPEN_MAX = 1024,            /* requests to one server that wait for their answers */
    MCP_STOP_MS = 1000,             /* for a child to leave, and again after SIGTERM: both fit into
                                         SHUTDOWN_MS_MAX */
    MCP_STDERR_LINES_MAX = 100,     /* of one child, in MCP_STDERR_MS; the rest is counted */
    MCP_STDERR_MS = 10 * 1000,      /* so a child that complains all day fills no disk */
    MCP_STREAM_BYTES_MAX = 1 << 30, /* of all messages on the way to one answer */
    MCP_REFUSAL_BYTES_MAX = 64 * 1024,  /* of the body of an HTTP error; nobody reads more */
    MCP_REASON_BYTES_MAX = 300,         /* of what it says, in our own text */
    MCP_SESSION_BYTES_MAX = 1024,       /* a session's id: real ones have 36, a JWT some hundreds */
    MCP_EVENT_ID_BYTES_MAX = 1024,      /* a longer one is not sent back */
    MCP_RESUME_TRIES_MAX = 5,           /* of a broken stream, without a new event in between */
    MCP_RESUME_REST_MS = 1000,          /* before each, unless the server says how long; doubles */
    MCP_RESUME_REST_MS_MAX = 60 * 1000, /* that a server may say */
    MCP_LISTEN_REST_MS = 1000,          /* before a standing stream is opened again; doubles */
    MCP_LISTEN_REST_MS_MAX = 5 * 60 * 1000, /* so late news of other tools may come */
    MCP_LISTEN_QUIET_MS = 15 * 60 * 1000,   /* then the stream may be dead, and is opened again */

    /* Child processes. */
    CHILD_FILES = 1024,    /* open files, as everybody has; we raise ours for connections */
    CHILD_DRAIN_MS = 1000, /* for the last output of a dead one, if others hold its pipes */
    CHILD_REAP_MS = 2000,  /* for a killed one to be gone; longer, and it hangs in the kernel */
    WALL_HIDDEN_MAX = 8, /* folders and files that children cannot see: data, objects, the secret */
    WALL_STEPS_MAX = 4096, /* from a process up to the first one, looks that were in vain counted */
    MCP_LIST_BYTES_MAX =
        2 * 1024 * 1024, /* of all tools of one server; every model call has them */
    MCP_LISTS_MAX = 100, /* different ones since the start: calls may use old ones */
    MCP_KEPT_BYTES_MAX = 32 * 1024 * 1024, /* of memory for them */
    MCP_PAGES_MAX = 100,                   /* of one list */
    MCP_CURSOR_BYTES_MAX = 4 * 1024,
    MCP_NAME_BYTES_MAX = 40,              /* of a server: stands in front of its tools' names */
    MCP_TOOL_NAME_BYTES_MAX = 256,        /* of a tool as its server has it; 128 are usual */
    MCP_DESCRIPTION_BYTES_MAX = 4 * 1024, /* of a tool, for the model; a longer one is cut */
    MCP_PARAMS_MAX = 16,                  /* arguments of a tool that are HTTP headers too */
    MCP_PARAM_BYTES_MAX = 4 * 1024,       /* of one such value */
    MCP_PARAM_DEPTH_MAX = 8,              /* objects around it */
    MCP_ID_BYTES_MAX = 256,               /* of a server's request, which we have to say again */
    MCP_SEND_BYTES_MAX =
        48 * 1024 * 1024,     /* of a message: all answers to all questions of a call */
    MCP_PROBE_MS = 10 * 1000, /* for server/discover; then it is taken for an older one */
    MCP_START_MS = 60 * 1000, /* for each answer before it is there: npx loads first */
    MCP_REST_MS = 1000,       /* before it is started again; doubles */
    MCP_REST_MS_MAX = 60 * 1000,
    MCP_STEADY_MS = 60 * 1000,        /* so long up, and the rests begin anew */
    MCP_RELIST_MS = 1000,             /* between two lists, whatever the server tells */
    MCP_WAIT_MS = 10 * 1000,          /* that a call waits for a server that is on its way */
    MCP_CALLS_MAX = 1000,             /* of one server, at a time */
    MCP_AGAIN_MAX = 10,               /* a server may send a call back without a question */
    MCP_STATE_BYTES_MAX = 64 * 1024,  /* requestState, which we keep for it */
    MCP_SCHEMA_BYTES_MAX = 64 * 1024, /* of the answer to a question */
    MCP_URL_BYTES_MAX = 2 * 1024,     /* of a page that a person is to open */
    MCP_PROGRESS_BYTES_MAX = 1024,    /* of what a call says of its progress */
    MCP_PROGRESS_S_MAX = 20,          /* such messages of a call in a second; the rest is dropped */
    MCP_NOTES_S_MAX = 20,             /* lines for the log in a second; the rest is dropped */
    MCP_READS_MAX = 4,                /* long messages read beside the loop at a time */
    QUESTIONS_CALL_MAX = 100,         /* of one call, one after the other */
    QUESTIONS_OPEN_MAX =
        20, /* of a run, at a time; a tool that asks more is told that nobody answers */
    SCRIPT_MATCH_BYTES_MAX = 16 * 1024, /* the part of a message that is matched */
    SCRIPT_CHUNK_MAX = 64 * 1024,       /* characters of one piece */
    SCRIPT_MS_MAX = 10 * 60 * 1000,     /* one pause: longer than any time limit to be tested */
    PLAYER_CHUNKS_MAX = 64,             /* pieces of one call in one turn of the loop */
    STORY_QUOTE_CHARS_MAX = 80,         /* of a value that a story repeats */
    STORY_MESSAGE_CHARS_MAX = 4000,     /* of a message that are searched for words */
    STORY_REASON_CHARS_MAX = 200,       /* of a sentence that a tool answered with */
    STORY_EACH_MAX = 20,                /* of a list, in one answer; nobody reads more */
    STORY_BYTES_MAX = 640 * 1024,       /* a text or the arguments of a call, filled in */
    STORY_STEPS_MAX = 20 * 1000,        /* parts of a script that one answer is made of */
    STORY_DEPTH_MAX = 64,               /* of them inside each other */

    /* Configuration and command line. */
    YAML_BYTES_MAX = 1024 * 1024,       /* a configuration file; ours stay under 10 KiB */
    YAML_DEPTH_MAX = 32,                /* a tool's schema begins at 5 and nests */
    YAML_NODES_MAX = 10 * 1000,         /* keeps the search for duplicate keys short */
    CONFIG_TEXT_BYTES_MAX = 4095,       /* one value: a path is the longest kind */
    CONFIG_LIST_MAX = 100,              /* items of one list, map, or list of records */
    CONFIG_ENTRY_NAME_BYTES_MAX = 64,   /* of a model or an agent */
    CONFIG_MCP_NAME_BYTES_MAX = 32,     /* of a server: half of TOOL_NAME_BYTES_MAX is its tools' */
    CONFIG_ENV_NAME_BYTES_MAX = 128,    /* a variable of a server; real ones stay under 64 */
    CONFIG_PROSE_BYTES_MAX = 64 * 1024, /* a prompt: as long as a setting may be */
    CONFIG_HEADER_NAME_BYTES_MAX = 64,  /* the longest registered one has 36 */
    CONFIG_SCHEMA_BYTES_MAX = 64 * 1024, /* JSON of one tool's; every model call carries it */
    CONFIG_SCHEMA_KEY_BYTES_MAX = 128,   /* one name in it; YAML takes 1,024 characters, escaped */
    CONFIG_HEADER_BYTES_MAX = 8 * 1024,  /* a value: signed tokens reach 4 KiB */
    CONFIG_PRINT_BYTES_MAX = 8 * 1024 * 1024, /* a file, escaped, its places behind it */
    CONFIG_WARNINGS_MAX = 32,                 /* nobody reads more */
    RELOADS_MAX = 10 * 1000,            /* each is kept, some 10 KiB: one an hour for a year */
    PROBE_MS_MAX = 10 * 1000,           /* `fermata check` waits for a model or a server */
    PROBE_BODY_BYTES_MAX = 1024 * 1024, /* of a list of models */
    PROBE_HEADERS_MAX = 8,
    AGENTS_GONE_MAX = 100, /* named by runs and not configured any more; more share one word */
    CONFIG_SECRET_BYTES_MAX = 256,       /* an API key of the operator's choice */
    CONFIG_SECRET_FILE_BYTES_MAX = 1024, /* the same with its newline, and room for a clear error */
    COMMAND_FLAG_VALUES_MAX = 16,        /* one flag given many times */
    COMMAND_TEXT_BYTES_MAX = 256,        /* one value of a command's own flag */

    /* Log lines. */
    LOG_LINE_BYTES_MAX = 4096, /* PIPE_BUF: a pipe takes that much whole, never mixed with others */
    LOG_LINE_BYTES_MIN = 128,  /* time, level and an end always fit */

    /* The store. */
    STORE_BATCH_JOBS_MAX = 512,       /* jobs in one transaction: bounds how long one waits */
    STORE_BATCH_SHARED_JOBS = 64,     /* enough for one that several people share */
    STORE_BATCH_TAKE_JOBS = 16,       /* taken at a time: who comes meanwhile waits for those */
    STORE_QUEUE_JOBS_MAX = 64 * 1024, /* waiting jobs; more are refused as overload */
    CHANGES_MAX = 32 * 1024,          /* of them for requests; the rest is for our own work */
    CHANGES_USER_MAX = 4096,          /* of one user's requests */
    STORE_READERS = 4,                /* threads that read; see the table in store.c */
    STORE_READS_EACH_MAX = 16 * 1024, /* reading jobs of one person that wait, of those */
    STORE_READ_MS_MAX = 30 * 1000,    /* a read that somebody waits for; a page takes some ms */
    STORE_WALK_MS_MAX = 10 * 1000,    /* a long one; holds back the log while it lasts */
    STORE_WATCH_OPS = 1000,           /* steps of SQLite between two looks whether to go on */
    STORE_STUCK_MS = 10 * 1000,       /* one commit: a disk that takes longer is not ready */
    STORE_ROOM_BYTES = 256 * 1024,    /* free again after the disk was full, before we say so */
    STORE_ROOM_MS = 1000,             /* between two looks for it */
    STORE_STMTS_MAX = 512,            /* prepared statements of a connection; power of two */
    STORE_STACK_BYTES = 512 * 1024,   /* of a store thread; a job needs a few KiB */
    STORE_CACHE_KIB = 2000,           /* page cache of a connection, grown on demand */
    HOT_ENTRY_BYTES_MAX = 128 * 1024, /* of one kind and thread; what is longer is read each time */
    HOT_BUCKETS_MIN = 64,             /* and one for so many bytes, which is a short entry: so no */
    HOT_BUCKET_BYTES = 256,           /* chain is long, whatever the memory; they are 1/32 of it */
    HOT_MESSAGES_MAX = 64,            /* of a thread's history that is kept: that of a short one */
    STORE_BLOCK_BYTES_MAX = 6 * 1024, /* of SQLite's memory, kept for the next use: up to a page */
    STORE_BLOCKS_KIB = 256,           /* of them, kept by a thread */
    STORE_BUSY_MS_MAX = 500,          /* waiting for a lock in the database file */
    STORE_WAL_PAGES = 4000,           /* 16 MiB of log: a page written often is copied once */
    STORE_WAL_PAGES_HIGH = 16 * 1000, /* readers kept it from starting anew: wait for them */
    STORE_WAL_BYTES_KEPT = 16 * 1024 * 1024, /* a larger log file is cut when it starts anew */
    SECRET_FILE_BYTES_MAX = 4 * 1024,        /* FERMATA_SECRET_FILE */
    KEYS_MAX = 10 * 1000,                    /* active API keys: all of them are held in memory */
    KEY_NAME_BYTES_MAX = 128,                /* a label for people */
    USER_BYTES_MAX = 128,                    /* a user's name; an e-mail address fits */
    SESSIONS_EXPIRE_MAX = 1000,              /* rows removed by one job */
    SESSIONS_KEY_MAX = 20 * 1000,            /* opened with one key; the oldest ends */
    SETTING_NAME_BYTES_MAX = 128,            /* scope or name of a setting */
    SETTING_VALUE_BYTES_MAX = 64 * 1024,     /* a prompt is the longest kind */

    /* Object storage. */
    BLOB_JOBS_MAX = 16 * 1024,              /* under way */
    BLOB_PUT_BYTES_MAX = 256 * 1024 * 1024, /* that puts under way hold, while storage hangs */
    BLOB_AT_ONCE_MAX = 2, /* jobs on the pool, which has 4 threads: storage that hangs keeps no more
                             of them from what others need them for */
    BLOB_BUCKETS_MAX = 16,                  /* there are two */
    BLOB_LIST_MAX = 1000,                   /* names on one page: 200 KiB */
    BLOB_PIECE_BYTES = 256 * 1024,          /* read and hashed, or copied, at a time */
    BLOB_CACHED_BYTES_MAX = 256 * 1024,     /* of a small object, whose bytes are kept */
    BLOB_CACHE_BYTES_MAX = 8 * 1024 * 1024, /* of all of these: some pages of history */
    BLOB_CACHE_OBJECTS_MAX = 8 * 1024,
    BLOB_WHOLE_MAX = 1024, /* files remembered as whole; 100 bytes each */
    BLOB_YOUNG_MS = 1000, /* a file is not remembered that soon after its last change: the clocks of
                              file systems tick in steps of milliseconds, some of a second */

    /* Backups. */
    ARCHIVE_PARTS_MAX = 100 * 1000 * 1000, /* an object is a part */
    ARCHIVE_NAME_BYTES_MAX = 99,           /* what a ustar header holds, with its NUL */
    ARCHIVE_FOLDER_BYTES_MAX = 154,        /* the same, of the folders before it */
    ARCHIVE_KEPT_LINES_MAX = 16,           /* of parts outside of folders; an archive has three */
    ARCHIVE_PART_GIB_MAX = 16 * 1024,      /* more than a file system takes for one file */
    BACKUP_PAGES_STEP = 1024,              /* pages copied between two looks at whether to stop */
    BACKUP_PIECE_BYTES = 256 * 1024,       /* read and hashed at a time */
    BACKUP_MANIFEST_BYTES_MAX = 4096,      /* ours has 150 bytes */
    BACKUP_NAMED_MAX = 10, /* files left out that are named one by one; the rest is counted */
    BACKUP_HOLD_MS_MAX = 12 * 60 * 60 * 1000, /* objects stay for a backup that does not end */
    BACKUP_COPY_MS_MAX = 60 * 60 * 1000,      /* the server copies some 200 MiB a second */
    LOCK_WAIT_MS_MAX = 10 * 60 * 1000, /* for a backup of a stopped server; then a start gives up */
    LOCK_LOOK_MS = 100,                /* between two tries */

    /* Conversations. */
    FACT_PAGE_BYTES_MAX = 256 * 1024, /* data read in one go for a follower that lags */
    FACT_ROW_BYTES_MAX =
        64 * 1024,                /* of a commit's facts in one row, unless a single one is longer:
                                       what is read to get at one of them */
    SEARCH_QUERY_BYTES_MAX = 256, /* a sentence */
    NEEDLE_BYTES_MAX = 256,       /* of a text to be found; its automaton: 256 KiB */
    SEARCH_BYTES_MAX = 1 << 28,   /* of text looked at for one page: about a second */
    SEARCH_ROW_BYTES = 256,       /* what a row counts beside its text: finding it */
    SEARCH_CLOCK_BYTES = 64 * 1024,          /* looked at between two looks at the clock */
    SEARCH_MS_MAX = 2 * 1000,                /* of work for one page; the next one goes on */
    RUN_QUEUE_MAX = 1000,                    /* queued runs of a thread that are listed */
    IDEMPOTENCY_EXPIRE_MAX = 1000,           /* rows removed by one job */
    IDEMPOTENCY_INLINE_BYTES_MAX = 2 * 1024, /* a longer answer is kept once for all who got it */
    STORAGE_COUNT_PAGE = 500,                /* threads counted by one job: some milliseconds */
    BUS_THREADS_MAX = 2 * 1024 * 1024,       /* followed at a time: as many as there are feeds */

    /* Runs. */
    RUNS_ACTIVE_MAX = 10 * 1000,          /* worked on at a time; waiting ones do not count */
    RUNS_USER_MAX = 1000,                 /* of them one user's, before another is refused */
    AGENT_ROUNDS_MAX = 30,                /* model turns with tool calls in one run */
    AGENT_ROUNDS_SET_MAX = 1000,          /* what an operator may set it to */
    RUN_ATTEMPTS_MAX = 3,                 /* of one model call, before the model counts as gone */
    RUN_RETRY_MS = 500,                   /* before the second attempt; doubles */
    RUN_COMMIT_RETRY_MS = 500,            /* when the disk was full */
    RUN_TEXT_BYTES_MAX = 3 * 1024 * 1024, /* of one model turn: a frame holds it escaped, 3 times */
    RUN_CONTEXT_MESSAGES_MAX = 4000,      /* the newest, as context for the model */
    RUN_HISTORY_FACTS_MAX = 128,        /* of a thread that is read inside a commit: some 100 us */
    RUN_HISTORY_BYTES_MAX = 256 * 1024, /* likewise; a longer one is read beside who writes */
    RUN_CONTEXT_READ_BYTES_MAX = 4 * 1024 * 1024, /* of them: a window of a million tokens has 3 */
    RUN_CONTEXT_REQUEST_MAX = 16, /* first rows of a run, to find what it was asked */
    CONTEXT_PICTURES_MAX = 8,     /* shown to the model in one request, the newest */
    CONTEXT_PICTURE_BYTES_MAX = 5 * 1024 * 1024, /* one of them: what model providers take */
    CONTEXT_PICTURE_TOKENS = 1600,               /* of one: as large as providers take them */
    CONTEXT_FILE_TEXT_BYTES_MAX = 32 * 1024,     /* of a text file, for the model: as of a result */
    CONTEXT_FILE_MS_MAX = 10 * 1000,          /* for one of them: storage may hang, a run may not */
    CONTEXT_FILE_BYTES_MAX = 5 * 1024 * 1024, /* a longer text file is only named: it would be read
                                                 whole for its beginning */
    CONTEXT_FILE_TEXT_BYTES_MIN = 512,        /* with less room for it a file is only named */
    CONTEXT_FILE_TOKENS = 24,                 /* of the line of a file, beside its names */
    WINDOW_UNKNOWN_TOKENS = 32 * 1024,        /* of a conversation: the models of today take that */
    WINDOW_ANSWER_TOKENS = 4 * 1024,          /* of the window, when nobody says more */
    WINDOW_RESERVE_TOKENS = 1024,             /* for what we count too low */
    WINDOW_MESSAGE_TOKENS = 8,                /* of a message, beside its texts: role and marks */
    WINDOW_CUT_BYTES = 1024,                  /* of an old result that does not fit: what it was */
    WINDOW_CUT_BYTES_MIN = 128,               /* if that is still too much: that it was */
    CONTEXT_OWN_BYTES_MAX = 64 * 1024,        /* of our words in the system text; they have 6 KiB */
    TIMEZONE_BYTES_MAX = 64,                  /* the longest name of a zone has 32 */
    RUN_RECOVER_PAGE = 500,                   /* runs found again in one read after a start */
    STATE_BYTES_MAX = 1024 * 1024,            /* a snapshot; without a plan it has 500 bytes */
    STATE_IDS_MAX = 1000,                     /* open interactions, or calls, of a run */
    PLAN_STEPS_MAX = 100,                     /* nobody reads a longer plan */
    STEP_TOOLS_MAX = 64, /* of one step whose last calls are told apart; the rest shares a row */
    FACT_FRAME_BYTES_MAX = 64 * 1024, /* a fact without its content: ids, names, figures */
    RUN_ERROR_BYTES_MAX = 4 * 1024,   /* why a run failed, for people; a fault has 384 */

    /* Tools and people. */
    CALLS_STARTED_MAX = 4,                 /* of a run, under way at a time */
    CALLS_TURN_MAX = 64,                   /* of one model turn; the rest is refused to the model */
    CALL_ARGS_BYTES_MAX = 256 * 1024,      /* what a person has to approve must be readable */
    CALL_ATTEMPTS_MAX = 3,                 /* of a call that may be repeated */
    CALL_INLINE_BYTES_MAX = 1024 * 1024,   /* a larger result goes to a spool file */
    SPOOL_STREAM_BYTES_MAX = 256 * 1024,   /* of pieces that wait to be written */
    SPOOL_PIECE_BYTES = 64 * 1024,         /* moved at a time when a stretch is cut out of a file */
    CALL_FACT_BYTES_MAX = 64 * 1024,       /* a larger result stands in its fact as {ref, size} */
    PAYLOAD_TRIES_MAX = 3,                 /* of putting what a call returned, before it is shown */
    PAYLOAD_RETRY_MS = 125,                /* doubles before each */
    PAYLOAD_MS_MAX = 2000,                 /* of all tries: the person waits */
    PAYLOAD_RETRY_PAGE = 16,               /* payloads read at a time, of up to 1 MiB each */
    PAYLOAD_RETRY_REST_MS = 500,           /* before trying again; doubles */
    PAYLOAD_RETRY_REST_MS_MAX = 10 * 1000, /* so long a storage that is back may go unnoticed */
    PAYLOAD_BYTES_MAX = 4 * 1024 * 1024,   /* an inline result, arguments, a card, escaped words */
    CARDS_MS_MAX = 2000,                   /* history waits for a card; below SHUTDOWN_MS_MAX */
    CARD_FACT_BYTES_MAX = 48 * 1024,       /* a larger card stands in its fact as uiRef */
    CALL_FILES_MAX = 16,                   /* that a result brings along */
    CALL_FILES_BYTES_MAX = 32 * 1024 * 1024, /* of them together */
    RESULT_FILES_FRESH_MS =
        10 * 60 * 1000,               /* no row names it yet: put again, far below storage.grace */
    CALL_MODEL_BYTES_MAX = 32 * 1024, /* of a result, head and tail, for the model */
    TOOLS_MAX = 500,                  /* offered at a time; models choose badly among 100 */
    TOOL_NAME_BYTES_MAX = 64,         /* what model providers take */
    TOOL_CONTENT_BYTES_MAX = 32 * 1024, /* words of a tool for people; longer text is a result */
    TOOL_ERROR_BYTES_MAX = 1024,        /* why a call failed, of what a server says */
    TOOL_HINTS_BYTES_MAX = 256 * 1024,  /* a card takes no more */
    TOOL_RESULT_BYTES_MAX = 64 * 1024 * 1024, /* of one call: one answer of the HTTP client */
    HTTP_TOOL_S = 60,                         /* a call, unless its timeout_s says otherwise */
    HTTP_TOOL_S_MAX = 60 * 60,                /* what needs longer should answer at once */
    HTTP_TOOL_LOOP_BYTES_MAX = 64 * 1024, /* a longer answer is read beside the loop: 1 MiB of JSON
                                             takes some 10 ms */
    SCHEMA_DEPTH_MAX = 16,                /* schemas inside each other; real ones have 2 to 5 */
    SCHEMA_PROPERTIES_MAX = 500,          /* of a whole schema */
    SCHEMA_ENUM_MAX = 500,                /* values of one list; a model has to read them */
    SCHEMA_STEPS_MAX = 1000 * 1000,       /* values compared with each other for one check: some
                                             tens of milliseconds */
    CONFIRMS_OPEN_MAX = 5,                /* of a run; the rest is refused to the model */
    CORRECTIONS_MAX = 3,                  /* malformed calls in a row before the run is aborted */
    ASK_CHOICES_MAX = 50,                 /* of a question */
    ASK_FIELDS_MAX = 50,
    ASK_NAME_BYTES_MAX = 96,          /* of a field; its path fits into a fault */
    GRANT_MATCH_ARGS_MAX = 16,        /* arguments that a grant names; looked up at each call */
    GRANT_MATCH_BYTES_MAX = 4 * 1024, /* nobody reads a longer one; bounds each comparison */
    ASK_TEXT_BYTES_MAX = 16 * 1024,   /* a question, a label, a description */
    ANSWER_BYTES_MAX = 256 * 1024,    /* an answer, with its new arguments */
    HOOK_BODY_BYTES_MAX = 8 * 1024 * 1024, /* an interaction with its arguments, escaped twice */
    GRANTS_MAX = 1000,                     /* looked at for a run */
    CALLS_LATE_RUNS = 16,  /* newest runs of a thread, where a late result may have its call */
    CALLS_LATE_MAX = 1024, /* calls of these that are looked at, the newest */
    CALLS_SEEN_BYTES_MAX = 4 * 1024 * 1024, /* of results read back for the model, newest first */
    INBOX_LOOK_MAX = 20 * 1000, /* index rows looked at for one page: some milliseconds */
    INBOX_PAGE_BYTES_MAX = 8 * 1024 * 1024, /* a page of the inbox ends behind what passes it */
    INBOX_NEWS_MAX = 1024,                  /* not told yet; with more everybody gets a new list */
    INBOX_NEWS_BYTES_MAX = 8 * 1024 * 1024, /* of them */
    INBOX_NEWS_BATCH = 16,                  /* looked up by one job, cards and all */
    AUDIT_ENTRY_BYTES_MAX = 4 * 1024,       /* ids, names and words; ours stay under 500 */
    AUDIT_CHECK_ENTRIES = 10 * 1000, /* checked in one transaction: some tens of milliseconds */
    CALENDAR_EVENTS_MAX = 10 * 1000, /* of a user: five a day for five years */
    CALENDAR_READ_MAX = 200,         /* events of one answer; nobody reads more */
    CALENDAR_PAGE_BYTES_MAX = 256 * 1024,    /* a list ends behind the event that passes it */
    CALENDAR_CONFLICTS_MAX = 20,             /* listed; the rest is known by `more` */
    CALENDAR_USERS_MAX = 50,                 /* that fit a name; then one asks more precisely */
    CALENDAR_RESULT_BYTES_MAX = 1024 * 1024, /* such a list escaped, with its ids and times */
    CALENDAR_SHARED_CHARS_MAX =
        120, /* of a title or a place that another wrote: no room for a plan */
    CALENDAR_SHARED_NAMES_BYTES_MAX = 1024, /* of their attendees; more are left out */
    CALENDAR_CARD_EVENTS_MAX = 40,          /* entries of a card: about 9 nodes each, of 500 */
    CALENDAR_CARD_ATTENDEES_MAX = 50,       /* as many as an event may have */
    CALENDAR_CARD_NAMES_MAX = 5,            /* of them in an entry of a list */
    CALENDAR_CARD_SHARES_MAX = 3,           /* buttons that share; more would hide the others */
    CALENDAR_CARD_LINE_CHARS_MAX = 500,     /* a place, the longest text that an event has */
    CALENDAR_CARD_PLACE_CHARS_MAX = 200,    /* of place and names, in an entry of a list */

    /* Cards. */
    UI_HINTS_BYTES_MAX = 1024 * 1024, /* hints to compile; a card of them is cut long before */
    UI_SCHEMA_BYTES_MAX = 256 * 1024, /* a card: a renderer shows it in one go */
    UI_SCHEMA_NODES_MAX = 500,        /* renderers take 2,000 */
    UI_SCHEMA_DEPTH_MAX = 8,          /* nodes inside each other; renderers take 24 */
    UI_ID_BYTES_MAX = 256,            /* an id in a card's meta: ours and our users' are shorter */
    UI_VALUE_DEPTH_MAX = 32,          /* of what an action carries: JSON_DEPTH_MAX has to hold it
                                          with the card around it */
    CARD_WORDS_BYTES_MAX =
        4 * 1024, /* of what the model says beside a call, for whoever approves */
    CARD_BYTES_MAX = 2 * 1024 * 1024, /* a card that asks a person: all of CALL_ARGS_BYTES_MAX, each
                                         character of it written out */
    CARD_TAIL_BYTES_MAX = 4 * 1024,   /* of it, for the end: brackets, and what is not shown */
    CARD_ROW_BYTES_MAX = 200,         /* a longer argument is folded */
    CARD_ROW_LINES_MAX = 4,           /* so is one of more lines */
    CARD_FOLD_LINES = 6,              /* of a folded one, shown at first */
    CARD_FLAT_ROWS_MAX = 50,          /* a longer list or object is shown as JSON */
    CARD_FLAT_ALL_MAX = 2000,         /* such rows of one card; with more all are shown as JSON */
    CARD_FLAT_DEPTH_MAX = 4,          /* so is a deeper one: nobody reads such names */
    CARD_FLAT_KEY_BYTES_MAX = 64,     /* so is one with longer keys; each row repeats them */
    VISIBLE_SPACES_MAX = 32,          /* in a row: code is indented so far, more is written out */
    VISIBLE_LINES_MAX = 4,            /* ends of line in a row, likewise */
    SUMMARY_CHARS_MAX = 200,          /* one line of a chat */
    SUMMARY_LIST_NAMES_MAX = 3,       /* of a list, named in a summary */
    SUMMARY_TEXT_BYTES_MAX = 16 * 1024, /* of a text that are looked at for a summary */

    CLOCKWORK_DUE_MAX = 100,     /* interactions settled by one job when their time is over */
    CLOCKWORK_FAILING_MAX = 100, /* runs among them that cannot be stepped */
    TRAIL_STRANGERS_MAX = 1024,  /* who named what they may not see, until it is noted */
    TRAIL_WAIT_MS = 2000,        /* so much later: no answer, and none behind it, waits for that */
    TRAIL_PAGE = 200,            /* chains from before that one job makes known */
    CLOCKWORK_LOOK_MS = 60 * 1000,   /* the wall clock may jump: the longest wait for an expiry */
    CLOCKWORK_RETRY_MS = 1000,       /* when the store could not */
    ROW_WORKER_RETRY_MS = 1000,      /* likewise */
    WEBHOOK_SENDS_MAX = 8,           /* under way at a time, and one more for each receiver */
    WEBHOOK_SENDS_HOOK_MAX = 4,      /* to one receiver, so that a dead one leaves room */
    WEBHOOK_SEND_MS_MAX = 30 * 1000, /* one attempt */
    WEBHOOK_ANSWER_BYTES_MAX = 64 * 1024,     /* of what a receiver says; nobody reads it */
    WEBHOOK_AGE_MS_MAX = 24 * 60 * 60 * 1000, /* then it is given up */

    RUN_INPUT_SHORT_MAX = 2 * 1024, /* stands in the row of its run, which every step writes */
    RUN_INPUT_BYTES_MAX = 16 * 1024 * 1024, /* AG-UI clients send their whole history along */
    ACTION_BODY_BYTES_MAX = 16 * 1024,      /* three ids that say which button is pressed */
    RUN_MESSAGES_MAX = 1000,                /* new ones in one request; each is a row and a fact */
    PART_FILES_MAX = 32,                    /* of a request; each is looked up or put on disk */
    PART_URL_BYTES_MAX = 8 * 1024,          /* of a file elsewhere: as long as a target of ours */
    PART_MIME_BYTES_MAX = 127,              /* two names of 63, RFC 6838's advice */
    RUN_QUEUE_BYTES_MAX = 16 * 1024 * 1024, /* that wait on a thread, before another is refused */
    TITLE_CHARS_MAX = 60,                   /* a title cut from the first message */
    THREAD_TITLE_BYTES_MAX = 400,           /* a title that a person gives */
    LIST_LIMIT = 50,                        /* rows of a list when none is asked for */
    LIST_LIMIT_MAX = 200,
    IDEMPOTENCY_KEY_BYTES_MAX = 255,
    IDEMPOTENCY_MS_MIN = 25 * 60 * 60 * 1000, /* answers are remembered a day and a little */

    EXPORTS_MAX = 32,                      /* at a time: each holds a file */
    EXPORTS_USER_MAX = 2,                  /* of one user */
    EXPORT_BYTES_MAX = 1024 * 1024 * 1024, /* of one: so much of the disk is lent to a reader */
    EXPORT_STEP_BYTES = 256 * 1024,        /* written before other readers have their turn */
    STREAMS_MAX = 1000 * 1000,             /* as many as there may be connections */
    STREAMS_USER_MAX = 2500,               /* of one user, as of WebSockets */
    FEEDS_MAX = 2 * 1024 * 1024, /* threads with readers: one for each connection (a million at
                                    most) and for each subscription of a WebSocket */
    FEED_MARKS_MIN = 16,         /* room for those at first */
    FEED_MARKS_MAX = 1024,       /* ends of facts remembered, to find a slow reader's place */
    MESSAGE_PAGE_BYTES_MAX = 8 * 1024 * 1024, /* a page of history ends behind what passes it */
    FEED_PAGE_FACTS = 256,                    /* facts in one read while catching up */
    FEED_FRAME_BYTES_MAX = 60 * 1024 * 1024, /* the largest message, escaped; fits into an answer */

    /* Identities held in memory. */
    AUTH_SESSIONS_CACHED_MAX = 10000, /* the store has them all */
    AUTH_TICKETS_MAX = 10000,         /* 30 s of 300 new streams a second */
    AUTH_TICKETS_USER_MAX = 1000,     /* of one user */
    AUTH_COUNTERS_MAX = 10000,        /* keys and addresses counted at a time */
    AUTH_FAILURES_MAX = 100,          /* wrong keys of an address within: */
    AUTH_FAILURES_MS = 60 * 1000,     /* 144,000 guesses a day find no key of AUTH_KEY_BYTES_SAFE */
    AUTH_KEY_BYTES_SAFE = 16,         /* a shorter one may be found by trying */
    AUTH_KEY_BYTES_MIN = 8,           /* of the configured key: a shorter one is refused */
    TICKET_MS_MAX = 30 * 1000,        /* long enough to open a stream, too short to be passed on */
    SESSION_DAYS_MAX = 30,            /* then the browser asks for the key again */

    ADMIN_CONNECTIONS_MAX =
        256, /* a command uses one, `fermata mcp` one for each call that waits */

    /* Our own MCP server. */
    DESK_BODY_BYTES_MAX =
        512 * 1024, /* a message: CALL_ARGS_BYTES_MAX, and what stands around it */
    DESK_RESULT_BYTES_MAX =
        4 * 1024 * 1024,         /* an answer and new arguments, each ANSWER_BYTES_MAX, escaped */
    DESK_WAIT_S_MAX = 50,        /* clients give up after 60 */
    DESK_OPEN_MS_MAX = 5 * 1000, /* until a new question is open; it takes two commits */
    DESK_GONE_MS = 5 * 1000,     /* how often a wait looks whether its client is still there */
    DESK_WAITS_MAX = 20 * 1000,  /* calls that wait at a time; others are pending at once */
    DESK_WAITS_USER_MAX = 2 * 1000,   /* of one user */
    DESK_THREADS_MAX = 32,            /* questions of one key that are open at a time */
    DESK_KEY_BYTES_MAX = 800,         /* 200 characters */
    DESK_TITLE_BYTES_MAX = 800,       /* likewise */
    DESK_ID_BYTES_MAX = 128,          /* of a question: ours are shorter */
    DESK_CLIENT_CHARS_MAX = 60,       /* of the name of a client, in a title */
    CONSENT_ACTION_BYTES_MAX = 2000,  /* one line, of 500 characters */
    DESK_RPC_ID_BYTES_MAX = 256,      /* of a JSON-RPC message */
    DESK_SMALL_BYTES_MAX = 16 * 1024, /* an answer without anybody's words in it */
    DESK_KEEP_MS = 60 * 60 * 1000,    /* how long a client may keep our list of tools */
    DESK_BRIDGE_POSTS_MAX = 200,      /* of `fermata mcp` at a time, below ADMIN_CONNECTIONS_MAX */
    DESK_ANSWER_BYTES_MAX = 32 * 1024 * 1024, /* of one of them: our largest result, twice */
    DESK_ANSWER_MS_MAX = 90 * 1000,           /* DESK_WAIT_S_MAX, and time to spare */
    DESK_LINES_MAX = 16,                      /* read, and not yet looked at */
    DESK_READ_BYTES = 64 * 1024,              /* of one read */
    DESK_GRACE_MS = 2 * 1000,   /* for answers on their way when the input has ended */
    UPKEEP_MS = 60 * 60 * 1000, /* expired rows may wait an hour for their removal */
    DOOMED_FILES_MAX = 64,      /* of deleted threads, removed at a time */
    REMOVER_SLICE_MS = 4,       /* of the store at a time for their rows; others wait so long */
    REMOVER_REST_MS = 500,      /* when something cannot be removed; doubles */
    REMOVER_REST_MS_MAX = 60 * 1000, /* so long a storage that is back may go unnoticed */
    SWEEP_PAGE = 200, /* objects, or attachments, of one job: some milliseconds of the store */
    SWEEP_UNUSED_MS = 7 * 24 * 60 * 60 * 1000, /* a file sent, and never a message with it */

    /* Chat channels. */
    CHANNELS_MAX = 32,                    /* in the configuration */
    CHANNEL_NAME_BYTES_MAX = 32,          /* part of ids of threads and runs */
    CHANNEL_ID_BYTES_MAX = 256,           /* of a message, a sender, a button: WeChat's have 40 */
    CHANNEL_TOKEN_BYTES_MAX = 4 * 1024,   /* a reply token, a cursor's part */
    CHANNEL_CURSOR_BYTES_MAX = 64 * 1024, /* opaque; WeChat's has some hundred bytes */
    CHANNEL_TEXT_BYTES_MAX = 64 * 1024,   /* that came in: WeChat takes 16 KiB */
    CHANNEL_INBOUNDS_MAX = 200,           /* of one poll or call: Telegram gives 100 */
    CHANNEL_INBOUND_FILES_MAX = 10,       /* of one message */
    CHANNEL_REFS_BYTES_MAX =
        1024 * 1024, /* of its files together: where they are, or they themselves
                                             as a call brought them */
    CHANNEL_INBOUND_JSON_BYTES_MAX = 2 * 1024 * 1024, /* a message in the inbox */
    CHANNEL_HOOK_BYTES_MAX = 1024 * 1024,             /* a call of a platform */
    CHANNEL_REPLY_BYTES_MAX = 8 * 1024 * 1024,        /* the answer to a poll: 200 long messages */
    CHANNEL_FILE_BYTES_MAX = 10 * 1024 * 1024, /* in or out: goes through memory as one piece, and
                                                     as base64 into a run */
    CHANNEL_JSON_BYTES_MAX = 64 * 1024,        /* an account, a decision */
    CHANNEL_MEMORY_MS =
        7 * 24 * 60 * 60 * 1000,             /* a message is known for a week: repeats come within
                                                     a day */
    CHANNEL_EXPIRE_MAX = 1000,               /* rows removed by one job */
    CHANNEL_INBOX_MAX = 50,                  /* messages of one person that wait to be looked at;
                                                the platform keeps the rest */
    OUTBOX_WAITING_MAX = 50,                 /* messages to one person that wait */
    CHANNEL_SENDS_MAX = 16,                  /* under way at a time, of one channel */
    CHANNEL_HANDLES_MAX = 16,                /* messages being carried out, of one channel */
    CHANNEL_FACTS_MAX = 2000,                /* of one leg, looked at for what goes out */
    CHANNEL_TYPING_MS = 5 * 1000,            /* how often we say that we are at work */
    CHANNEL_ATTEMPTS_MAX = 5,                /* to carry out a message, to fetch a file */
    CHANNEL_LINK_MS = 15 * 60 * 1000,        /* a code of `fermata channel link` */
    CHANNEL_LOGIN_MS_MAX = 8 * 60 * 1000,    /* scanning a QR code */
    CHANNEL_LOGIN_CODES_MAX = 3,             /* shown in one login */
    CHANNEL_LOGIN_POLL_MS = 1000,            /* between two looks how a login stands */
    CHANNEL_LOGIN_TOLD_MS = 60 * 1000,       /* how a login ended is told for so long */
    CHANNEL_LOGIN_BYTES_MAX = 128 * 1024,    /* what is told of one: a code of 177 rows is 32 KiB */
    CHANNEL_VERIFY_BYTES_MAX = 16,           /* a number that a phone shows has six digits */
    QR_TEXT_BYTES_MAX = 2048,                /* the largest code holds 2331 bytes */
    QR_SIDE_MAX = 177,                       /* modules of the largest code */
    XML_DEPTH_MAX = 8,                       /* of a call: WeChat's have 4 */
    XML_ELEMENTS_MAX = 200,                  /* WeChat's have less than 40 */
    WECHAT_CALL_AGE_S_MAX = 5 * 60,          /* WeChat calls again within a minute */
    CHANNEL_CALLS_MAX = 4096,                /* of a platform that are remembered: 13 a second for
                                                WECHAT_CALL_AGE_S_MAX; 8 bytes each */
    WECHAT_CALL_AHEAD_S_MAX = 5 * 60,        /* its clock before ours */
    WECHAT_EVENT_SENDS = 3,                  /* WeChat's own, after an event or a tap on a menu */
    WECHAT_EVENT_MS = 60 * 1000,             /* likewise */
    WECHAT_CALL_MS_MAX = 20 * 1000,          /* everything but files */
    WECHAT_FILE_MS_MAX = 60 * 1000,          /* 10 MiB */
    WECHAT_CALL_BYTES_MAX = 256 * 1024,      /* a body, or an address with its token */
    WECHAT_TEXT_BYTES_MAX = 64 * 1024,       /* before it is escaped; WeChat takes 2 KiB */
    WECHAT_REPLY_BYTES_MAX = 64 * 1024,      /* an answer that is no file */
    WECHAT_TOKEN_SPARE_MS = 5 * 60 * 1000,   /* asked for anew so long before it ends */
    WECHAT_TOKEN_S_MAX = 24 * 60 * 60,       /* of its life; WeChat's is two hours */
    WECHAT_TOKEN_WAIT_MS = 60 * 1000,        /* after a token that was none */
    WECHAT_OPERATOR_WAIT_MS = 5 * 60 * 1000, /* somebody has to change something over there */
    HOOK_CLOCK_S_MAX = 5 * 60,               /* the sender's clock and ours, apart */
    HOOK_SEND_MS_MAX = 30 * 1000,            /* one message to a program of the operator's */
    TELEGRAM_POLL_S = 50,                    /* a poll without news; proxies cut after a minute */
    TELEGRAM_UPDATES_MAX = 100,              /* of one poll; Telegram gives no more */
    TELEGRAM_CALL_MS_MAX = 15 * 1000,        /* everything but polls and files */
    TELEGRAM_FILE_MS_MAX = 120 * 1000,       /* 10 MiB over a slow line */
    TELEGRAM_CALL_BYTES_MAX = 256 * 1024,    /* a body: a text with all of it escaped */
    TELEGRAM_TEXT_UNITS_MAX = 4096,          /* Telegram's own, in UTF-16 */
    TELEGRAM_TOAST_CHARS_MAX = 190,          /* what a press is answered with; Telegram takes 200 */
    TELEGRAM_BUTTONS_MAX = 50,               /* under one message; Telegram takes 100 */
    TELEGRAM_BUTTON_BYTES_MAX = 64,          /* Telegram's own */
    TELEGRAM_PATH_BYTES_MAX = 512,           /* of a file there: "photos/file_7.jpg" */
    TELEGRAM_CONFLICT_MS = 10 * 1000,        /* before the next poll while another one is there */
    TELEGRAM_WAIT_S_MAX = 60 * 60,           /* that Telegram may tell us to wait */

    /* The terminal: `fermata chat`, `inbox`, `answer`. */
    TERM_LINE_BYTES_MAX = 256 * 1024,       /* an input line, pasted text and all */
    TERM_AREA_BYTES_MAX = 256 * 1024,       /* what is drawn again; a screen has some KiB */
    TERM_WRITE_BYTES_MAX = 1024 * 1024,     /* one write to the terminal */
    TERM_HEAD_BYTES_MAX = 64 * 1024 * 1024, /* a card's words: arguments written out take 12 bytes
                                                  for one */
    TERM_PREVIEW_BYTES_MAX = 16 * 1024 * 1024, /* the model's words as they grow */
    TERM_EVENT_BYTES_MAX = 64 * 1024 * 1024,   /* one event, as HTTP_ANSWER_BYTES_MAX */
    TERM_PRINT_BYTES_MAX = 256 * 1024 * 1024, /* lines that wait to be printed, a page of history */
    TERM_CARD_CHARS_MAX = 4000,               /* of a card; the page shows the rest */
    TERM_APPROVE_ROWS_MAX =
        1000, /* of what is approved here: terminals keep about so many rows, and
                                     what has gone cannot be read */
    TERM_SUMMARY_CHARS_MAX = 300, /* of a result, an answer, a step on one line */
    TERM_NAME_CHARS_MAX = 80,     /* of a tool, a file, a person */
    TERM_TITLE_CHARS_MAX = 60,    /* of a conversation in a list */
    TERM_TOOLS_MAX = 16,          /* calls under way that are shown */
    TERM_OPEN_MAX = 64,           /* questions and approvals of one conversation */
    TERM_ESC_MS = 50,             /* Esc alone, or the beginning of a key: ssh is faster */
    TERM_HISTORY_ROWS = 30,       /* of a conversation that is opened again */
    TERM_THREADS = 20,            /* to pick from */
    TERM_FILES_MAX = 32,          /* of one message: as the server takes them */
    TERM_FILE_BYTES_MAX = 100 * 1024 * 1024, /* of one: the server's default */

    /* Shutdown: open answers get this long, then connections are cut. */
    SHUTDOWN_MS_MAX = 3 * 1000,
};

#endif

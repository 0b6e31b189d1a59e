/* SPDX-License-Identifier: Apache-2.0
 *
 * Steps that bring an older database to the schema of tables.c, numbered. To change the schema, add
 * a row at the end, and change tables.c to what it comes to. A row that was released is never
 * edited: databases in the field have run it.
 *
 * Times are milliseconds since 1970; NULL is "not yet". Tables are STRICT, so a column holds what
 * it says.
 */
#include "store/db/migrate.h"

#include "store/db/sqlite.h"
#include "store/db/tables.h"

struct migration {
    int number;
    const char *name;
    const char *sql;
};

/* The number is set inside the step's own transaction. */
#define MIGRATION(number, name, sql)                         \
    {                                                        \
        number, name, sql "PRAGMA user_version=" #number ";" \
    }

enum { APPLICATION_ID = 0x4665726d }; /* "Ferm" */

static const struct migration migrations[] = {
    /* clang-format off */
    MIGRATION(1, "users and settings",
        "PRAGMA application_id=0x4665726d;"
        "CREATE TABLE users ("
        "  name TEXT PRIMARY KEY,"
        "  created INTEGER NOT NULL"
        ") STRICT, WITHOUT ROWID;"
        "CREATE TABLE api_keys ("
        "  id TEXT PRIMARY KEY,"
        "  user TEXT NOT NULL REFERENCES users(name),"
        "  roles INTEGER NOT NULL,"            /* bits of enum role */
        "  name TEXT NOT NULL,"
        "  hash BLOB NOT NULL UNIQUE,"         /* SHA-256 of the key's text */
        "  created INTEGER NOT NULL,"
        "  revoked INTEGER"
        ") STRICT;"
        "CREATE TABLE sessions ("
        "  hash BLOB PRIMARY KEY,"             /* SHA-256 of the token */
        "  key_id TEXT,"                       /* the key it was opened with, if any */
        "  user TEXT NOT NULL,"
        "  roles INTEGER NOT NULL,"
        "  created INTEGER NOT NULL,"
        "  expires INTEGER NOT NULL,"
        "  ended INTEGER"
        ") STRICT, WITHOUT ROWID;"
        "CREATE INDEX sessions_by_key ON sessions(key_id);"
        "CREATE INDEX sessions_by_expiry ON sessions(expires);"
        "CREATE TABLE settings ("
        "  scope TEXT NOT NULL,"
        "  name TEXT NOT NULL,"
        "  value TEXT NOT NULL,"
        "  PRIMARY KEY (scope, name)"
        ") STRICT, WITHOUT ROWID;"),

    /* Whatever belongs to a thread goes with it: ON DELETE CASCADE, over keys that begin with it.
     * Ids of threads and runs are never used again (AUTOINCREMENT), so that who still holds the id
     * of a deleted one finds nothing instead of somebody else's. Rows with long texts have the
     * short columns first, so that looking at those does not read the others. */
    MIGRATION(2, "conversations",
        "CREATE TABLE threads ("
        "  id INTEGER PRIMARY KEY AUTOINCREMENT,"
        "  owner TEXT NOT NULL,"
        "  thread_id TEXT NOT NULL,"           /* the client's; unique for its owner only */
        "  title TEXT NOT NULL,"
        "  agent TEXT NOT NULL,"
        "  last_seq INTEGER NOT NULL,"         /* number of the newest fact */
        "  newest_run INTEGER NOT NULL DEFAULT 0," /* whose leg was the last to start */
        "  created INTEGER NOT NULL,"
        "  updated INTEGER NOT NULL,"
        "  UNIQUE (owner, thread_id)"
        ") STRICT;"
        "CREATE INDEX threads_by_update ON threads(owner, updated);"
        "CREATE TABLE events ("                /* the facts */
        "  thread INTEGER NOT NULL REFERENCES threads(id) ON DELETE CASCADE,"
        "  seq INTEGER NOT NULL,"
        "  type TEXT NOT NULL,"
        "  run_id TEXT NOT NULL,"
        "  at INTEGER NOT NULL,"
        "  data TEXT NOT NULL,"
        "  PRIMARY KEY (thread, seq)"
        ") STRICT, WITHOUT ROWID;"
        "CREATE TABLE messages ("
        "  thread INTEGER NOT NULL REFERENCES threads(id) ON DELETE CASCADE,"
        "  seq INTEGER NOT NULL,"              /* of the fact that added it */
        "  id TEXT NOT NULL,"
        "  role TEXT NOT NULL,"
        "  run_id TEXT NOT NULL,"
        "  created INTEGER NOT NULL,"
        "  plain TEXT NOT NULL,"
        "  metadata TEXT NOT NULL,"
        "  usage TEXT NOT NULL,"               /* from here on '' is "none" */
        "  tool_calls TEXT NOT NULL,"
        "  content TEXT NOT NULL,"
        "  provider_data TEXT NOT NULL,"
        "  PRIMARY KEY (thread, seq, id)"
        ") STRICT, WITHOUT ROWID;"
        "CREATE UNIQUE INDEX messages_by_id ON messages(thread, id);"
        "CREATE TABLE runs ("
        "  id INTEGER PRIMARY KEY AUTOINCREMENT,"
        "  thread INTEGER NOT NULL REFERENCES threads(id) ON DELETE CASCADE,"
        "  run_id TEXT NOT NULL,"
        "  status INTEGER NOT NULL,"           /* enum run_status: below 4 is open */
        "  legs INTEGER NOT NULL,"
        "  start_seq INTEGER NOT NULL,"
        "  input_tokens INTEGER NOT NULL,"
        "  output_tokens INTEGER NOT NULL,"
        "  created INTEGER NOT NULL,"
        "  ended INTEGER NOT NULL,"            /* 0: open */
        "  agent TEXT NOT NULL,"
        "  model TEXT NOT NULL,"
        "  task_id TEXT NOT NULL,"             /* of the newest leg, as is input */
        "  input TEXT NOT NULL,"
        "  queued TEXT NOT NULL,"              /* the message that waits */
        "  UNIQUE (thread, run_id)"
        ") STRICT;"
        "CREATE INDEX runs_open ON runs(status, thread) WHERE status<4;"
        "CREATE TABLE legs ("
        "  run INTEGER NOT NULL REFERENCES runs(id) ON DELETE CASCADE,"
        "  n INTEGER NOT NULL,"                /* 1, 2, ... */
        "  task_id TEXT NOT NULL,"
        "  wire_run_id TEXT NOT NULL,"         /* what the request that began it calls the run */
        "  started INTEGER NOT NULL,"
        "  PRIMARY KEY (run, n)"
        ") STRICT, WITHOUT ROWID;"
        "CREATE TABLE snapshots ("
        "  run INTEGER PRIMARY KEY REFERENCES runs(id) ON DELETE CASCADE,"
        "  version INTEGER NOT NULL,"
        "  epoch INTEGER NOT NULL,"            /* of the lease it was written under */
        "  hash BLOB NOT NULL,"                /* SHA-256 of the bytes */
        "  bytes BLOB NOT NULL"
        ") STRICT;"
        "CREATE TABLE accepted ("              /* what POST /runs answered */
        "  thread INTEGER NOT NULL REFERENCES threads(id) ON DELETE CASCADE,"
        "  run_id TEXT NOT NULL,"
        "  hash BLOB NOT NULL,"                /* SHA-256 of the request */
        "  created INTEGER NOT NULL,"
        "  answer TEXT NOT NULL,"
        "  PRIMARY KEY (thread, run_id)"
        ") STRICT, WITHOUT ROWID;"
        "CREATE TABLE leases ("
        "  name TEXT PRIMARY KEY,"
        "  holder TEXT NOT NULL,"
        "  epoch INTEGER NOT NULL,"            /* grows with every taking */
        "  until INTEGER NOT NULL"
        ") STRICT, WITHOUT ROWID;"
        "CREATE TABLE idempotency ("
        "  owner TEXT NOT NULL,"
        "  key TEXT NOT NULL,"
        "  thread INTEGER REFERENCES threads(id) ON DELETE CASCADE,"
        "  hash BLOB NOT NULL,"                /* SHA-256 of the request */
        "  status INTEGER NOT NULL,"
        "  created INTEGER NOT NULL,"
        "  body TEXT NOT NULL,"
        "  PRIMARY KEY (owner, key)"
        ") STRICT, WITHOUT ROWID;"
        "CREATE INDEX idempotency_by_age ON idempotency(created);"
        "CREATE INDEX idempotency_by_thread ON idempotency(thread) WHERE thread IS NOT NULL;"),

    /* A run's input may be long and never changes: apart from the row that every step writes, a
     * step does not write it again. How much waits on a thread, and which messages, is known
     * without reading what waits. An interaction goes with its thread, as its run does.
     *
     * The three indexes that interactions are listed by hold all that a list looks at, in its
     * order, for each status apart. */
    MIGRATION(3, "people and tools",
        "CREATE TABLE run_inputs ("            /* none: {} */
        "  run INTEGER PRIMARY KEY REFERENCES runs(id) ON DELETE CASCADE,"
        "  input TEXT NOT NULL"
        ") STRICT;"
        "INSERT INTO run_inputs SELECT id, input FROM runs WHERE input NOT IN ('', '{}');"
        "ALTER TABLE runs DROP COLUMN input;"
        "ALTER TABLE runs ADD COLUMN input_bytes INTEGER NOT NULL DEFAULT 0;"
        "UPDATE runs SET input_bytes=length(CAST("
        "  (SELECT input FROM run_inputs WHERE run=id) AS BLOB))"
        "  WHERE id IN (SELECT run FROM run_inputs);"
        "ALTER TABLE runs ADD COLUMN queued_bytes INTEGER NOT NULL DEFAULT 0;" /* and its input */
        "UPDATE runs SET queued_bytes=input_bytes+length(CAST(queued AS BLOB)) WHERE status=0;"
        "CREATE INDEX runs_queued ON runs(status, thread, queued_bytes) WHERE status=0;"
        "CREATE TABLE queued_ids ("            /* of the messages that wait */
        "  thread INTEGER NOT NULL,"           /* of the run */
        "  id TEXT NOT NULL,"
        "  run INTEGER NOT NULL REFERENCES runs(id) ON DELETE CASCADE,"
        "  PRIMARY KEY (thread, id)"
        ") STRICT, WITHOUT ROWID;"
        "CREATE INDEX queued_ids_by_run ON queued_ids(run);"
        "INSERT OR IGNORE INTO queued_ids"     /* ignored: a message without an id */
        "  SELECT runs.thread, iif(message.type='object', message.value->>'id', NULL), runs.id"
        "  FROM runs, json_each(iif(json_valid(runs.queued), runs.queued, '[]')) AS message"
        "  WHERE runs.status=0;"
        "ALTER TABLE messages ADD COLUMN tool TEXT NOT NULL DEFAULT '';" /* '': no tool row */
        "CREATE TABLE interactions ("
        "  n INTEGER PRIMARY KEY AUTOINCREMENT,"
        "  thread INTEGER NOT NULL REFERENCES threads(id) ON DELETE CASCADE,"
        "  run INTEGER NOT NULL,"
        "  type INTEGER NOT NULL,"             /* enum interaction_type */
        "  status INTEGER NOT NULL,"           /* enum interaction_status: 0 is open */
        "  seq INTEGER NOT NULL,"              /* of the fact that opened it */
        "  opened INTEGER NOT NULL,"
        "  expires INTEGER NOT NULL,"          /* 0: never */
        "  settled INTEGER NOT NULL,"          /* 0: open */
        "  resume_step INTEGER NOT NULL,"
        "  allow_freeform INTEGER NOT NULL,"
        "  multi INTEGER NOT NULL,"
        "  id TEXT NOT NULL UNIQUE,"
        "  owner TEXT NOT NULL,"
        "  agent TEXT NOT NULL,"
        "  thread_id TEXT NOT NULL,"
        "  run_id TEXT NOT NULL,"
        "  call_id TEXT NOT NULL,"             /* from here on '' is "none" */
        "  approver TEXT NOT NULL,"
        "  answered_by TEXT NOT NULL,"
        "  via TEXT NOT NULL,"
        "  locale TEXT NOT NULL,"
        "  resume_node TEXT NOT NULL,"
        "  resume_phase TEXT NOT NULL,"
        "  tool TEXT NOT NULL,"
        "  risk TEXT NOT NULL,"
        "  binding TEXT NOT NULL,"
        "  display_text TEXT NOT NULL,"
        "  question TEXT NOT NULL,"
        "  summary TEXT NOT NULL,"
        "  text TEXT NOT NULL,"
        "  choices TEXT NOT NULL,"
        "  fields TEXT NOT NULL,"
        "  metadata TEXT NOT NULL,"
        "  answer TEXT NOT NULL,"
        "  args_schema TEXT NOT NULL,"
        "  args TEXT NOT NULL"
        ") STRICT;"
        "CREATE INDEX interactions_by_thread ON interactions(thread, status, n, agent);"
        "CREATE INDEX interactions_by_owner ON interactions(owner, status, n, agent);"
        "CREATE INDEX interactions_by_approver ON interactions(approver, status, n, agent)"
        "  WHERE approver<>'';"
        "CREATE INDEX interactions_by_expiry ON interactions(expires) WHERE status=0 AND expires>0;"
        "CREATE TABLE tool_calls ("
        "  id INTEGER PRIMARY KEY,"
        "  run INTEGER NOT NULL REFERENCES runs(id) ON DELETE CASCADE,"
        "  round INTEGER NOT NULL,"
        "  n INTEGER NOT NULL,"
        "  thread INTEGER NOT NULL,"           /* of the run */
        "  state INTEGER NOT NULL,"            /* enum call_state */
        "  stage INTEGER NOT NULL,"
        "  write INTEGER NOT NULL,"
        "  idempotent INTEGER NOT NULL,"
        "  attempts INTEGER NOT NULL,"
        "  created INTEGER NOT NULL,"
        "  started INTEGER NOT NULL,"          /* 0: not yet, as ended */
        "  ended INTEGER NOT NULL,"
        "  result_bytes INTEGER NOT NULL,"
        "  call_id TEXT NOT NULL,"
        "  message_id TEXT NOT NULL,"
        "  tool TEXT NOT NULL,"
        "  provider_id TEXT NOT NULL,"
        "  rule TEXT NOT NULL,"                /* from here on '' is "none" */
        "  binding TEXT NOT NULL,"
        "  result_id TEXT NOT NULL,"
        "  spool TEXT NOT NULL,"
        "  error TEXT NOT NULL,"
        "  args TEXT NOT NULL,"
        "  model_text TEXT NOT NULL,"
        "  content TEXT NOT NULL,"
        "  result TEXT NOT NULL,"
        "  UNIQUE (run, round, n)"
        ") STRICT;"
        "CREATE UNIQUE INDEX tool_calls_by_result ON tool_calls(thread, result_id)"
        "  WHERE result_id<>'';"
        "CREATE INDEX tool_calls_spooled ON tool_calls(thread) WHERE spool<>'';"
        "CREATE INDEX tool_calls_by_spool ON tool_calls(spool) WHERE spool<>'';"
        "CREATE TABLE grants ("
        "  n INTEGER PRIMARY KEY AUTOINCREMENT,"
        "  thread INTEGER REFERENCES threads(id) ON DELETE CASCADE," /* NULL: all of the owner's */
        "  created INTEGER NOT NULL,"
        "  id TEXT NOT NULL UNIQUE,"
        "  owner TEXT NOT NULL,"
        "  thread_id TEXT NOT NULL,"
        "  tool TEXT NOT NULL,"
        "  approver TEXT NOT NULL,"            /* '': the owner gave it */
        "  made_by TEXT NOT NULL,"
        "  interaction_id TEXT NOT NULL,"
        "  match TEXT NOT NULL"
        ") STRICT;"
        "CREATE INDEX grants_by_owner ON grants(owner, n);"
        "CREATE INDEX grants_for_all ON grants(owner, n) WHERE thread IS NULL;"
        "CREATE INDEX grants_by_thread ON grants(thread, n) WHERE thread IS NOT NULL;"
        "CREATE TABLE audit ("
        "  thread INTEGER NOT NULL REFERENCES threads(id) ON DELETE CASCADE,"
        "  n INTEGER NOT NULL,"                /* 1, 2, ... */
        "  action INTEGER NOT NULL,"           /* enum audit_action */
        "  at INTEGER NOT NULL,"
        "  interaction_id TEXT NOT NULL,"
        "  call_id TEXT NOT NULL,"
        "  who TEXT NOT NULL,"
        "  via TEXT NOT NULL,"
        "  why TEXT NOT NULL,"
        "  hash BLOB NOT NULL,"                /* SHA-256 of what it is about */
        "  seal BLOB NOT NULL,"                /* over the one before it and all of this row */
        "  PRIMARY KEY (thread, n)"
        ") STRICT, WITHOUT ROWID;"
        "CREATE TABLE audit_heads ("
        "  thread INTEGER PRIMARY KEY REFERENCES threads(id) ON DELETE CASCADE,"
        "  count INTEGER NOT NULL,"
        "  last BLOB NOT NULL,"                /* seal of the last entry */
        "  seal BLOB NOT NULL"                 /* over the others */
        ") STRICT;"
        "CREATE TABLE outbox ("
        "  n INTEGER PRIMARY KEY AUTOINCREMENT,"
        "  next INTEGER NOT NULL,"
        "  attempts INTEGER NOT NULL,"
        "  created INTEGER NOT NULL,"
        "  id TEXT NOT NULL,"
        "  event TEXT NOT NULL,"
        "  url TEXT NOT NULL,"
        "  body TEXT NOT NULL"
        ") STRICT;"
        "CREATE INDEX outbox_by_url ON outbox(url, next, n);"),

    /* Events are looked for by time, and those of past years are the many: by their end. */
    MIGRATION(4, "calendar",
        "CREATE TABLE calendar_events ("
        "  id TEXT NOT NULL UNIQUE,"
        "  owner TEXT NOT NULL,"
        "  call_id TEXT NOT NULL,"             /* that wrote it */
        "  start_utc INTEGER NOT NULL,"
        "  end_utc INTEGER NOT NULL,"
        "  created INTEGER NOT NULL,"
        "  start_time TEXT NOT NULL,"          /* as it was written, with its offset */
        "  end_time TEXT NOT NULL,"
        "  title TEXT NOT NULL,"
        "  location TEXT NOT NULL,"            /* '': none */
        "  attendees TEXT NOT NULL,"           /* JSON list */
        "  UNIQUE (owner, call_id)"
        ") STRICT;"
        "CREATE INDEX calendar_by_end ON calendar_events(owner, end_utc, start_utc, id);"
        "CREATE TABLE calendar_shares ("
        "  event TEXT NOT NULL REFERENCES calendar_events(id) ON DELETE CASCADE,"
        "  target TEXT NOT NULL,"              /* the user who may see it */
        "  PRIMARY KEY (event, target)"
        ") STRICT, WITHOUT ROWID;"
        "CREATE INDEX calendar_shares_by_target ON calendar_shares(target);"
        "CREATE TABLE calendar_done ("         /* what calls with an effect returned */
        "  owner TEXT NOT NULL,"
        "  call_id TEXT NOT NULL,"
        "  created INTEGER NOT NULL,"
        "  result TEXT NOT NULL,"
        "  PRIMARY KEY (owner, call_id)"
        ") STRICT, WITHOUT ROWID;"),

    /* What a tool returned lives in object storage, and its row names it. What could not be put
     * there yet waits in the row of the object: its bytes, or the name of its spool file. */
    MIGRATION(5, "cards",
        "ALTER TABLE messages ADD COLUMN ui TEXT NOT NULL DEFAULT '';"          /* of an assistant's card */
        "ALTER TABLE messages ADD COLUMN hints TEXT NOT NULL DEFAULT '';"       /* it was made from */
        "ALTER TABLE messages ADD COLUMN attachments TEXT NOT NULL DEFAULT '';" /* JSON list */
        "ALTER TABLE interactions ADD COLUMN ui TEXT NOT NULL DEFAULT '';"
        "ALTER TABLE tool_calls ADD COLUMN ui_hints TEXT NOT NULL DEFAULT '';"
        "ALTER TABLE tool_calls ADD COLUMN result_hash TEXT NOT NULL DEFAULT '';" /* of the spool file */
        "CREATE TABLE blobs ("
        "  n INTEGER PRIMARY KEY AUTOINCREMENT,"
        "  thread INTEGER NOT NULL REFERENCES threads(id) ON DELETE CASCADE,"
        "  created INTEGER NOT NULL,"
        "  waiting INTEGER NOT NULL,"          /* 1: not in object storage yet */
        "  bucket TEXT NOT NULL,"
        "  path TEXT NOT NULL,"
        "  message_id TEXT NOT NULL,"          /* of the tool row that names it */
        "  spool TEXT NOT NULL,"               /* '': none, as bytes */
        "  bytes TEXT NOT NULL,"
        "  UNIQUE (bucket, path)"
        ") STRICT;"
        "CREATE INDEX blobs_by_thread ON blobs(thread);"
        "CREATE INDEX blobs_waiting ON blobs(n) WHERE waiting=1;"
        "CREATE TABLE attachments ("
        "  id TEXT PRIMARY KEY,"
        "  owner TEXT NOT NULL,"
        "  thread_id TEXT NOT NULL,"           /* the owner's name for it; it may not exist yet */
        "  created INTEGER NOT NULL,"
        "  bytes INTEGER NOT NULL,"
        "  width INTEGER NOT NULL,"            /* 0: no picture, or not known */
        "  height INTEGER NOT NULL,"
        "  mime TEXT NOT NULL,"
        "  filename TEXT NOT NULL,"
        "  sha256 TEXT NOT NULL,"
        "  bucket TEXT NOT NULL,"
        "  path TEXT NOT NULL,"
        "  UNIQUE (bucket, path)"
        ") STRICT, WITHOUT ROWID;"
        "CREATE INDEX attachments_by_thread ON attachments(owner, thread_id);"
        "CREATE INDEX attachments_by_age ON attachments(created);"
        "CREATE TABLE attachment_uses ("       /* by threads other than its own */
        "  id TEXT NOT NULL REFERENCES attachments(id) ON DELETE CASCADE,"
        "  thread INTEGER NOT NULL REFERENCES threads(id) ON DELETE CASCADE,"
        "  PRIMARY KEY (id, thread)"
        ") STRICT, WITHOUT ROWID;"
        "CREATE INDEX attachment_uses_by_thread ON attachment_uses(thread);"),

    /* What the client of a run offers to the model: read before each of its calls, and short. */
    MIGRATION(6, "front_end_tools",
        "CREATE TABLE run_offers ("
        "  run INTEGER PRIMARY KEY REFERENCES runs(id) ON DELETE CASCADE,"
        "  tools TEXT NOT NULL,"               /* JSON list; '' is "none", as context */
        "  context TEXT NOT NULL"
        ") STRICT;"),

    MIGRATION(7, "costs, and questions of tools",
        "ALTER TABLE runs ADD COLUMN cost INTEGER NOT NULL DEFAULT 0;"       /* pico units, as in model.h */
        "ALTER TABLE runs ADD COLUMN currency TEXT NOT NULL DEFAULT '';"     /* '': no price is known */
        "ALTER TABLE runs ADD COLUMN from_message INTEGER NOT NULL DEFAULT 0;" /* seq of a message */
        "ALTER TABLE tool_calls ADD COLUMN asked TEXT NOT NULL DEFAULT '';" /* JSON, agent/core/asked.h */
        "CREATE INDEX tool_calls_under_way ON tool_calls(run) WHERE state=3;"),

    MIGRATION(8, "files of results",
        "ALTER TABLE tool_calls ADD COLUMN attachments TEXT NOT NULL DEFAULT '';"), /* JSON list */

    /* People outlive their conversations: when a thread is deleted, who wrote it is still known and
     * begins the next one. What is not done yet has indexes of its own, so that looking for work
     * never reads what is done; a row of the outbox has its person's channel for the same reason. */
    MIGRATION(9, "chat channels",
        "CREATE TABLE channels ("
        "  name TEXT PRIMARY KEY,"
        "  kind TEXT NOT NULL,"
        "  state INTEGER NOT NULL,"            /* enum channel_state */
        "  changed INTEGER NOT NULL,"
        "  detail TEXT NOT NULL,"
        "  cursor TEXT NOT NULL,"
        "  account TEXT NOT NULL"              /* JSON object */
        ") STRICT, WITHOUT ROWID;"
        "CREATE TABLE channel_peers ("
        "  id INTEGER PRIMARY KEY AUTOINCREMENT,"
        "  thread INTEGER REFERENCES threads(id) ON DELETE SET NULL," /* NULL: not there, or deleted */
        "  is_group INTEGER NOT NULL,"
        "  roles INTEGER NOT NULL,"            /* bits of enum role, of the link */
        "  conversations INTEGER NOT NULL,"
        "  cursor INTEGER NOT NULL,"           /* seq of the newest fact in the outbox */
        "  heard INTEGER NOT NULL,"            /* 0: never */
        "  window INTEGER NOT NULL,"           /* 0: no limit, as allowance */
        "  allowance INTEGER NOT NULL,"
        "  used INTEGER NOT NULL,"
        "  created INTEGER NOT NULL,"
        "  channel TEXT NOT NULL,"
        "  sender TEXT NOT NULL,"
        "  name TEXT NOT NULL,"
        "  locale TEXT NOT NULL,"
        "  user TEXT NOT NULL,"                /* '': not linked */
        "  thread_id TEXT NOT NULL,"           /* from here on '' is "none" */
        "  reply_token TEXT NOT NULL,"
        "  held TEXT NOT NULL,"                /* JSON */
        "  UNIQUE (channel, sender)"
        ") STRICT;"
        "CREATE INDEX channel_peers_by_thread ON channel_peers(thread) WHERE thread IS NOT NULL;"
        "CREATE TABLE channel_inbox ("
        "  n INTEGER PRIMARY KEY AUTOINCREMENT,"
        "  peer INTEGER NOT NULL REFERENCES channel_peers(id),"
        "  state INTEGER NOT NULL,"            /* enum inbound_state: below 2 is not done */
        "  attempts INTEGER NOT NULL,"
        "  created INTEGER NOT NULL,"
        "  channel TEXT NOT NULL,"
        "  id TEXT NOT NULL,"                  /* the platform's */
        "  decision TEXT NOT NULL,"            /* JSON; '': none yet */
        "  body TEXT NOT NULL,"                /* JSON */
        "  UNIQUE (channel, id)"
        ") STRICT;"
        "CREATE INDEX channel_inbox_open ON channel_inbox(peer, n) WHERE state<2;"
        "CREATE INDEX channel_inbox_people ON channel_inbox(channel, peer) WHERE state<2;"
        "CREATE INDEX channel_inbox_done ON channel_inbox(created) WHERE state=2;"
        "CREATE TABLE channel_outbox ("
        "  n INTEGER PRIMARY KEY AUTOINCREMENT,"
        "  peer INTEGER NOT NULL REFERENCES channel_peers(id),"
        "  class INTEGER NOT NULL,"            /* enum out_class */
        "  state INTEGER NOT NULL,"            /* enum out_state: below 3 is not done */
        "  attempts INTEGER NOT NULL,"
        "  unknowns INTEGER NOT NULL,"
        "  again INTEGER NOT NULL,"
        "  created INTEGER NOT NULL,"
        "  since INTEGER NOT NULL,"            /* 0: not tried */
        "  next INTEGER NOT NULL,"
        "  channel TEXT NOT NULL,"             /* of the peer */
        "  client_id TEXT NOT NULL,"
        "  server_id TEXT NOT NULL,"           /* from here on '' is "none" */
        "  interaction TEXT NOT NULL,"
        "  file TEXT NOT NULL,"                /* JSON, as buttons */
        "  buttons TEXT NOT NULL,"
        "  text TEXT NOT NULL"
        ") STRICT;"
        "CREATE INDEX channel_outbox_open ON channel_outbox(peer, n) WHERE state<3;"
        "CREATE INDEX channel_outbox_going ON channel_outbox(channel, peer) WHERE state<2;"
        "CREATE INDEX channel_outbox_parked ON channel_outbox(channel) WHERE state=2;"
        "CREATE INDEX channel_outbox_done ON channel_outbox(created) WHERE state>=3;"
        "CREATE INDEX channel_outbox_by_server_id ON channel_outbox(peer, server_id)"
        "  WHERE server_id<>'';"
        "CREATE INDEX channel_outbox_by_interaction ON channel_outbox(interaction, peer)"
        "  WHERE interaction<>'';"
        "CREATE INDEX channel_outbox_asked ON channel_outbox(peer, n) WHERE class=1 AND state=3;"
        "CREATE TABLE channel_codes ("         /* wrong ones */
        "  peer INTEGER NOT NULL REFERENCES channel_peers(id),"
        "  interaction TEXT NOT NULL,"         /* id */
        "  tries INTEGER NOT NULL,"
        "  PRIMARY KEY (peer, interaction)"
        ") STRICT, WITHOUT ROWID;"
        "CREATE TABLE channel_links ("
        "  hash TEXT PRIMARY KEY,"             /* hex of SHA-256 of the code */
        "  channel TEXT NOT NULL,"
        "  user TEXT NOT NULL,"
        "  roles INTEGER NOT NULL,"
        "  expires INTEGER NOT NULL"
        ") STRICT, WITHOUT ROWID;"
        "CREATE INDEX channel_links_by_expiry ON channel_links(expires);"),
    /* What a thread stores is counted with its facts; NULL: it is older than that. The row without an
     * owner says up to which thread the users' sums go (store/table/storage.h). A long answer that is
     * remembered is kept once for all who got it. */
    MIGRATION(10, "how much is stored, and long answers",
        "ALTER TABLE threads ADD COLUMN bytes INTEGER;"
        "CREATE TABLE storage ("
        "  owner TEXT PRIMARY KEY,"
        "  bytes INTEGER NOT NULL"
        ") STRICT, WITHOUT ROWID;"
        "CREATE TABLE answers ("
        "  id INTEGER PRIMARY KEY,"
        "  hash BLOB NOT NULL UNIQUE,"         /* SHA-256 of the body */
        "  body TEXT NOT NULL"
        ") STRICT;"
        "ALTER TABLE idempotency ADD COLUMN answer INTEGER REFERENCES answers(id);" /* instead of body */
        "CREATE INDEX idempotency_by_answer ON idempotency(answer) WHERE answer IS NOT NULL;"),

    /* What was asked through /mcp knows with which key; threads of that way in have it in their
     * names. A grant knows its rule, and is found by who made it and who could.
     *
     * The trail of a thread does not go with it: its tables do not refer to threads any more, whose
     * numbers are never used again. */
    MIGRATION(11, "people",
        "ALTER TABLE runs ADD COLUMN asked_key TEXT NOT NULL DEFAULT '';"
        "ALTER TABLE interactions ADD COLUMN asked_key TEXT NOT NULL DEFAULT '';"
        "UPDATE runs SET asked_key=(SELECT substr(thread_id, 5,"
        "   coalesce(nullif(instr(substr(thread_id, 5), ':'), 0)-1, 128))"
        "   FROM threads WHERE threads.id=runs.thread)"
        "  WHERE status<4 AND thread IN (SELECT id FROM threads WHERE thread_id GLOB 'mcp:*');"
        "UPDATE interactions SET asked_key=substr(thread_id, 5,"
        "   coalesce(nullif(instr(substr(thread_id, 5), ':'), 0)-1, 128))"
        "  WHERE status=0 AND thread IN (SELECT id FROM threads WHERE thread_id GLOB 'mcp:*');"
        "CREATE INDEX api_keys_by_user ON api_keys(user);"
        "CREATE INDEX channel_peers_by_user ON channel_peers(user) WHERE user<>'';"
        "ALTER TABLE grants ADD COLUMN rule TEXT NOT NULL DEFAULT '';"
        "CREATE INDEX grants_by_maker ON grants(made_by, n);"
        "CREATE INDEX grants_by_approver ON grants(approver, n) WHERE approver<>'';"
        "PRAGMA writable_schema=ON;"           /* no row changes: a trail may be long */
        "UPDATE sqlite_schema SET sql=replace(sql, ' REFERENCES threads(id) ON DELETE CASCADE', '')"
        "  WHERE type='table' AND name IN ('audit', 'audit_heads');"
        "PRAGMA writable_schema=RESET;"
        "ALTER TABLE audit RENAME COLUMN thread TO chain;"
        "ALTER TABLE audit ADD COLUMN of TEXT NOT NULL DEFAULT '';" /* name of a chain; '': none */
        "ALTER TABLE audit ADD COLUMN of_chain INTEGER NOT NULL DEFAULT 0;" /* and its number */
        "ALTER TABLE audit ADD COLUMN total INTEGER NOT NULL DEFAULT 0;" /* entries it was closed with */
        "ALTER TABLE audit ADD COLUMN last BLOB NOT NULL DEFAULT x'';" /* seal of the last of them */
        "ALTER TABLE audit_heads RENAME TO audit_chains;"
        "ALTER TABLE audit_chains RENAME COLUMN thread TO chain;" /* 0: the chain `server` */
        "ALTER TABLE audit_chains ADD COLUMN known INTEGER NOT NULL DEFAULT 0;" /* to `server` */
        "ALTER TABLE audit_chains ADD COLUMN closed INTEGER NOT NULL DEFAULT 0;"
        "ALTER TABLE audit_chains ADD COLUMN name TEXT NOT NULL DEFAULT '';" /* "chn_...", "server" */
        "ALTER TABLE audit_chains ADD COLUMN owner TEXT NOT NULL DEFAULT '';" /* for people, as: */
        "ALTER TABLE audit_chains ADD COLUMN thread_id TEXT NOT NULL DEFAULT '';"
        "UPDATE audit_chains SET name='chn_'||lower(hex(randomblob(13))),"
        "  owner=coalesce((SELECT owner FROM threads WHERE id=chain), ''),"
        "  thread_id=coalesce((SELECT thread_id FROM threads WHERE id=chain), '');"
        "CREATE INDEX audit_chains_unknown ON audit_chains(chain) WHERE known=0;"
        "CREATE INDEX audit_of ON audit(of_chain) WHERE of<>'';"
        "CREATE INDEX audit_strangers ON audit(interaction_id, who) WHERE why='not_visible';"
        "CREATE INDEX sessions_by_age ON sessions(key_id, created);"),

    /* Facts from before stay where they are, so that a long database is served at once. */
    MIGRATION(12, "facts of a commit in one row, what lives with a run in its row",
        "CREATE TABLE facts ("
        "  thread INTEGER NOT NULL REFERENCES threads(id) ON DELETE CASCADE,"
        "  first_seq INTEGER NOT NULL,"
        "  last_seq INTEGER NOT NULL,"
        "  bytes BLOB NOT NULL,"               /* store/table/fact_frames.h */
        "  UNIQUE (thread, first_seq)"
        ") STRICT;"
        "ALTER TABLE runs ADD COLUMN version INTEGER NOT NULL DEFAULT 0;" /* of the snapshot; 0: none here */
        "ALTER TABLE runs ADD COLUMN epoch INTEGER NOT NULL DEFAULT 0;" /* of the lease it was written under */
        "ALTER TABLE runs ADD COLUMN hash BLOB NOT NULL DEFAULT x'';" /* SHA-256 of snapshot */
        "ALTER TABLE runs ADD COLUMN input TEXT NOT NULL DEFAULT '';" /* if all three are short; else in run_inputs */
        "ALTER TABLE runs ADD COLUMN tools TEXT NOT NULL DEFAULT '';" /* JSON list; and in run_offers */
        "ALTER TABLE runs ADD COLUMN context TEXT NOT NULL DEFAULT '';"
        "ALTER TABLE runs ADD COLUMN snapshot BLOB NOT NULL DEFAULT x'';"), /* how far the run has come */
    /* clang-format on */
};

int migrate_latest(void)
{
    return migrations[COUNT(migrations) - 1].number;
}

static enum err number_read(struct stmt *s, int64_t *ret_number)
{
    int64_t number = stmt_step(s) ? stmt_i64(s, 0) : 0;
    enum err e = stmt_end(s);
    if (!e) *ret_number = number;
    return e;
}

/* A fresh file has no tables, no number and no owner. */
enum err migrate_number(struct db *db, int64_t *ret_number, struct fault *reterr)
{
    int64_t application = 0, version = 0, tables = 0;
    enum err e = number_read(db_prepare(db, "PRAGMA application_id"), &application);
    if (!e) e = number_read(db_prepare(db, "PRAGMA user_version"), &version);
    if (!e) e = number_read(db_prepare(db, "SELECT count(*) FROM sqlite_schema"), &tables);
    if (e) return fault(reterr, e, "the database cannot be read: %s", db_message(db));
    bool fresh = application == 0 && version == 0 && tables == 0;
    if (!fresh && application != APPLICATION_ID)
        return fault(reterr, ERR_CONFIG,
                     "the database belongs to another program: give Fermata a folder of its own");
    if (version > migrate_latest())
        return fault(reterr, ERR_CONFIG,
                     "the database has schema %lld and this version knows up to %d: "
                     "install the newer version again, or restore an older backup",
                     (long long)version, migrate_latest());
    *ret_number = version;
    return OK;
}

/* Each script sets the number that it comes to, inside its own transaction. */
static enum err apply(struct db *db, const char *sql)
{
    bool unknown = false; /* the caller gives up after any error, so it makes no difference */
    enum err e = db_schema_changes(db, true);
    if (!e) e = db_begin(db);
    if (!e) e = db_script(db, sql);
    if (!e) e = db_commit(db, &unknown);
    enum err closed = db_schema_changes(db, false);
    return e ? e : closed;
}

enum err migrate_steps(struct db *db, int64_t version, struct fault *reterr)
{
    for (size_t i = 0; i < COUNT(migrations); i++) {
        if (migrations[i].number <= version) continue;
        enum err e = apply(db, migrations[i].sql);
        if (e)
            return fault(reterr, e, "schema step %d (%s) failed: %s", migrations[i].number,
                         migrations[i].name, db_message(db));
    }
    return OK;
}

enum err migrate(struct db *db, struct fault *reterr)
{
    int64_t version = 0;
    enum err e = migrate_number(db, &version, reterr);
    if (e) return e;
    e = db_use_wal(db);
    if (e) return fault(reterr, e, "the database cannot use a write-ahead log: %s", db_message(db));
    if (version) return migrate_steps(db, version, reterr);
    e = apply(db, tables_sql);
    if (e) return fault(reterr, e, "the tables cannot be made: %s", db_message(db));
    return OK;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * The schema: every table and index, as text. A fresh database is made from this text at once; one
 * that is older comes to the same by the steps of migrate.c. To change the schema, change this and
 * add a step: a test compares the two, column by column, in their order.
 *
 * Times are milliseconds since 1970; NULL is "not yet". Tables are STRICT, so a column holds what
 * it says.
 *
 * Whatever belongs to a thread goes with it: ON DELETE CASCADE, over keys that begin with it. Ids of
 * threads and runs are never used again (AUTOINCREMENT), so that who still holds the id of a deleted
 * one finds nothing instead of somebody else's. Rows with long texts have the short columns first, so
 * that looking at those does not read the others. What is not done yet has indexes of its own, so
 * that looking for work never reads what is done.
 */
#include "store/db/tables.h"

const char tables_sql[] =
    /* clang-format off */
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
    "CREATE INDEX api_keys_by_user ON api_keys(user);"
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
    "CREATE INDEX sessions_by_age ON sessions(key_id, created);"
    "CREATE TABLE settings ("
    "  scope TEXT NOT NULL,"
    "  name TEXT NOT NULL,"
    "  value TEXT NOT NULL,"
    "  PRIMARY KEY (scope, name)"
    ") STRICT, WITHOUT ROWID;"
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
    "  bytes INTEGER,"
    "  UNIQUE (owner, thread_id)"
    ") STRICT;"
    "CREATE INDEX threads_by_update ON threads(owner, updated);"
    "CREATE TABLE events ("                /* facts from before version 12 */
    "  thread INTEGER NOT NULL REFERENCES threads(id) ON DELETE CASCADE,"
    "  seq INTEGER NOT NULL,"
    "  type TEXT NOT NULL,"
    "  run_id TEXT NOT NULL,"
    "  at INTEGER NOT NULL,"
    "  data TEXT NOT NULL,"
    "  PRIMARY KEY (thread, seq)"
    ") STRICT, WITHOUT ROWID;"
    "CREATE TABLE facts ("                 /* those of a commit in one row, mostly */
    "  thread INTEGER NOT NULL REFERENCES threads(id) ON DELETE CASCADE,"
    "  first_seq INTEGER NOT NULL,"
    "  last_seq INTEGER NOT NULL,"
    "  bytes BLOB NOT NULL,"               /* store/table/fact_frames.h */
    "  UNIQUE (thread, first_seq)"
    ") STRICT;"
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
    "  tool TEXT NOT NULL DEFAULT '',"     /* '': no tool row */
    "  ui TEXT NOT NULL DEFAULT '',"       /* of an assistant's card */
    "  hints TEXT NOT NULL DEFAULT '',"    /* it was made from */
    "  attachments TEXT NOT NULL DEFAULT ''," /* JSON list */
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
    "  task_id TEXT NOT NULL,"             /* of the newest leg */
    "  queued TEXT NOT NULL,"              /* the message that waits */
    "  input_bytes INTEGER NOT NULL DEFAULT 0,"
    "  queued_bytes INTEGER NOT NULL DEFAULT 0," /* and its input */
    "  cost INTEGER NOT NULL DEFAULT 0,"   /* pico units, as in model.h */
    "  currency TEXT NOT NULL DEFAULT ''," /* '': no price is known */
    "  from_message INTEGER NOT NULL DEFAULT 0," /* seq of a message */
    "  asked_key TEXT NOT NULL DEFAULT '',"
    "  version INTEGER NOT NULL DEFAULT 0," /* of the snapshot; 0: none here */
    "  epoch INTEGER NOT NULL DEFAULT 0," /* of the lease it was written under */
    "  hash BLOB NOT NULL DEFAULT x''," /* SHA-256 of snapshot */
    "  input TEXT NOT NULL DEFAULT ''," /* if all three are short; else in run_inputs */
    "  tools TEXT NOT NULL DEFAULT ''," /* JSON list; and in run_offers */
    "  context TEXT NOT NULL DEFAULT '',"
    "  snapshot BLOB NOT NULL DEFAULT x''," /* how far the run has come */
    "  UNIQUE (thread, run_id)"
    ") STRICT;"
    "CREATE INDEX runs_open ON runs(status, thread) WHERE status<4;"
    "CREATE INDEX runs_queued ON runs(status, thread, queued_bytes) WHERE status=0;"
    "CREATE TABLE legs ("                  /* those that a request named */
    "  run INTEGER NOT NULL REFERENCES runs(id) ON DELETE CASCADE,"
    "  n INTEGER NOT NULL,"                /* 1, 2, ... */
    "  task_id TEXT NOT NULL,"
    "  wire_run_id TEXT NOT NULL,"         /* what the request that began it calls the run */
    "  started INTEGER NOT NULL,"
    "  PRIMARY KEY (run, n)"
    ") STRICT, WITHOUT ROWID;"
    "CREATE TABLE snapshots ("             /* of runs that waited before there was runs.snapshot */
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
    "CREATE TABLE answers ("
    "  id INTEGER PRIMARY KEY,"
    "  hash BLOB NOT NULL UNIQUE,"         /* SHA-256 of the body */
    "  body TEXT NOT NULL"
    ") STRICT;"
    "CREATE TABLE idempotency ("
    "  owner TEXT NOT NULL,"
    "  key TEXT NOT NULL,"
    "  thread INTEGER REFERENCES threads(id) ON DELETE CASCADE,"
    "  hash BLOB NOT NULL,"                /* SHA-256 of the request */
    "  status INTEGER NOT NULL,"
    "  created INTEGER NOT NULL,"
    "  body TEXT NOT NULL,"
    "  answer INTEGER REFERENCES answers(id)," /* instead of body */
    "  PRIMARY KEY (owner, key)"
    ") STRICT, WITHOUT ROWID;"
    "CREATE INDEX idempotency_by_age ON idempotency(created);"
    "CREATE INDEX idempotency_by_thread ON idempotency(thread) WHERE thread IS NOT NULL;"
    "CREATE INDEX idempotency_by_answer ON idempotency(answer) WHERE answer IS NOT NULL;"
    "CREATE TABLE run_inputs ("            /* none: {} */
    "  run INTEGER PRIMARY KEY REFERENCES runs(id) ON DELETE CASCADE,"
    "  input TEXT NOT NULL"
    ") STRICT;"
    "CREATE TABLE queued_ids ("            /* of the messages that wait */
    "  thread INTEGER NOT NULL,"           /* of the run */
    "  id TEXT NOT NULL,"
    "  run INTEGER NOT NULL REFERENCES runs(id) ON DELETE CASCADE,"
    "  PRIMARY KEY (thread, id)"
    ") STRICT, WITHOUT ROWID;"
    "CREATE INDEX queued_ids_by_run ON queued_ids(run);"
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
    "  args TEXT NOT NULL,"
    "  ui TEXT NOT NULL DEFAULT '',"
    "  asked_key TEXT NOT NULL DEFAULT ''"
    ") STRICT;"
    "CREATE INDEX interactions_by_thread ON interactions(thread, status, n, agent);"
    "CREATE INDEX interactions_by_owner ON interactions(owner, status, n, agent);"
    "CREATE INDEX interactions_by_approver ON interactions(approver, status, n, agent)"
    "  WHERE approver<>'';"
    "CREATE INDEX interactions_by_expiry ON interactions(expires)"
    "  WHERE status=0 AND expires>0;"
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
    "  ui_hints TEXT NOT NULL DEFAULT '',"
    "  result_hash TEXT NOT NULL DEFAULT ''," /* of the spool file */
    "  asked TEXT NOT NULL DEFAULT '',"    /* JSON, agent/core/asked.h */
    "  attachments TEXT NOT NULL DEFAULT ''," /* JSON list */
    "  UNIQUE (run, round, n)"
    ") STRICT;"
    "CREATE UNIQUE INDEX tool_calls_by_result ON tool_calls(thread, result_id)"
    "  WHERE result_id<>'';"
    "CREATE INDEX tool_calls_spooled ON tool_calls(thread) WHERE spool<>'';"
    "CREATE INDEX tool_calls_by_spool ON tool_calls(spool) WHERE spool<>'';"
    "CREATE INDEX tool_calls_under_way ON tool_calls(run) WHERE state=3;"
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
    "  match TEXT NOT NULL,"
    "  rule TEXT NOT NULL DEFAULT ''"
    ") STRICT;"
    "CREATE INDEX grants_by_owner ON grants(owner, n);"
    "CREATE INDEX grants_for_all ON grants(owner, n) WHERE thread IS NULL;"
    "CREATE INDEX grants_by_thread ON grants(thread, n) WHERE thread IS NOT NULL;"
    "CREATE INDEX grants_by_maker ON grants(made_by, n);"
    "CREATE INDEX grants_by_approver ON grants(approver, n) WHERE approver<>'';"
    "CREATE TABLE audit ("
    "  chain INTEGER NOT NULL,"            /* 0: the chain `server` */
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
    "  of TEXT NOT NULL DEFAULT '',"       /* name of a chain; '': none */
    "  of_chain INTEGER NOT NULL DEFAULT 0," /* and its number */
    "  total INTEGER NOT NULL DEFAULT 0,"  /* entries it was closed with */
    "  last BLOB NOT NULL DEFAULT x'',"    /* seal of the last of them */
    "  PRIMARY KEY (chain, n)"
    ") STRICT, WITHOUT ROWID;"
    "CREATE INDEX audit_of ON audit(of_chain) WHERE of<>'';"
    "CREATE INDEX audit_strangers ON audit(interaction_id, who) WHERE why='not_visible';"
    "CREATE TABLE audit_chains ("
    "  chain INTEGER PRIMARY KEY,"         /* as in audit */
    "  count INTEGER NOT NULL,"
    "  last BLOB NOT NULL,"                /* seal of the last entry */
    "  seal BLOB NOT NULL,"                /* over the others */
    "  known INTEGER NOT NULL DEFAULT 0,"  /* to `server` */
    "  closed INTEGER NOT NULL DEFAULT 0,"
    "  name TEXT NOT NULL DEFAULT '',"     /* "chn_...", "server" */
    "  owner TEXT NOT NULL DEFAULT '',"    /* for people, as: */
    "  thread_id TEXT NOT NULL DEFAULT ''"
    ") STRICT;"
    "CREATE INDEX audit_chains_unknown ON audit_chains(chain) WHERE known=0;"
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
    "CREATE INDEX outbox_by_url ON outbox(url, next, n);"
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
    ") STRICT, WITHOUT ROWID;"
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
    "CREATE INDEX attachment_uses_by_thread ON attachment_uses(thread);"
    "CREATE TABLE run_offers ("
    "  run INTEGER PRIMARY KEY REFERENCES runs(id) ON DELETE CASCADE,"
    "  tools TEXT NOT NULL,"               /* JSON list; '' is "none", as context */
    "  context TEXT NOT NULL"
    ") STRICT;"
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
    "CREATE INDEX channel_peers_by_user ON channel_peers(user) WHERE user<>'';"
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
    "CREATE INDEX channel_links_by_expiry ON channel_links(expires);"
    "CREATE TABLE storage ("
    "  owner TEXT PRIMARY KEY,"
    "  bytes INTEGER NOT NULL"
    ") STRICT, WITHOUT ROWID;"
    "PRAGMA user_version=12;";
/* clang-format on */

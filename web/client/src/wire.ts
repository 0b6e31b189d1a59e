// SPDX-License-Identifier: Apache-2.0
//
// What travels: requests, answers and events of a Fermata server, under the names they have on the wire. Types only.
//
// To add an event: a row in Facts or Previews. To add a route: its types here, its method in client.ts.

// ---- small words ----

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
export type Stage = 'intent' | 'execution' | 'report';
export type RunStatus = 'queued' | 'running' | 'waiting' | 'cancelling' | 'completed' | 'cancelled' | 'exhausted' | 'failed';
export type InteractionType = 'ask_user' | 'confirm' | 'connection_lost' | 'uncertain';
export type InteractionStatus = 'open' | 'resolved' | 'canceled' | 'expired' | 'superseded';
export type Role = 'user' | 'assistant' | 'tool' | 'clarify' | 'interaction' | 'reasoning' | 'system';

// What a request can be refused with, and what a run can fail with. A later server may know more.
export type Code =
  | 'invalid_field' | 'unauthenticated' | 'forbidden' | 'not_found' | 'busy' | 'already_resolved' | 'ambiguous' | 'expired'
  | 'superseded' | 'binding_mismatch' | 'idempotency_mismatch' | 'invalid_hints' | 'too_large' | 'unsupported_type'
  | 'method_not_allowed' | 'not_acceptable' | 'not_current' | 'uri_too_long' | 'head_too_large' | 'bad_request'
  | 'forbidden_host' | 'rate_limited' | 'storage_full' | 'quota_exceeded' | 'model_unavailable' | 'shutting_down' | 'store_unavailable'
  | 'range_not_satisfiable'
  | 'model_error' | 'tool_unavailable' | 'policy_changed' | 'snapshot_damaged' | 'aborted' | 'internal'
  | 'network' // ours: no answer came
  | (string & {});

export interface Usage {
  inputTokens: number;
  outputTokens: number;
  cost: number;
  currency: string;
}

// A card, version 2.0: docs/schema/ has it in full.
export interface UiSchema {
  version: string;
  locale: string;
  status: 'info' | 'success' | 'warning' | 'error' | 'pending';
  theme: string;
  meta?: { [key: string]: Json };
  root: { type: string; [key: string]: Json };
}

// ---- messages ----

export type Part =
  | { type: 'text'; text: string }
  | { type: 'binary'; id?: string; url?: string; data?: string; mimeType?: string; filename?: string }
  | { type: 'image' | 'audio' | 'video' | 'document'; source: { type: 'url' | 'data'; value: string; mimeType?: string } };
export type Content = string | Part[];

export interface ToolCall {
  id: string;
  type: 'function';
  function: { name: string; arguments: string };
}

export interface Attachment {
  id: string;
  url: string;
  mimeType: string;
  filename: string;
  size: number;
  sha256?: string;
  expiresAt?: string;
  width?: number;
  height?: number;
}

// Only what is set is there; names are the store's, hence snake_case.
export interface Metadata {
  run_id?: string;
  task_id?: string;
  stage?: Stage;
  stopped?: true;
  answer_to?: string | string[];
  replaces?: string;
  requestId?: string; // of clarify and interaction rows, as what follows
  type?: InteractionType;
  status?: 'pending' | 'answered' | InteractionStatus;
  choices?: Choice[];
  allowFreeform?: boolean;
  answer?: string;
  decision?: Decision['decision'];
  answered_by?: string;
  via?: string;
  answered_at?: string;
  tool_call_id?: string;
  tool_name?: string;
  [key: string]: unknown;
}

// A row of history.
export interface Message {
  id: string;
  role: Role;
  content: Content;
  toolCalls?: ToolCall[];
  uiSchema?: UiSchema;
  uiRef?: string; // ours: the card is to be read there (`card`); it was too large for an event, or has changed
  attachments?: Attachment[];
  toolCallId?: string;
  toolName?: string;
  args?: Json;
  error?: string;
  metadata: Metadata;
  createdAt: string;
  usage?: Usage;
}

export interface History {
  messages: Message[];
  hasMore: boolean;
  before?: number;
  openInteractions: Interaction[];
  seq: number;
}

// ---- interactions ----

export interface Choice {
  id: string;
  label: string;
  description?: string;
}

export interface Interaction {
  version: number;
  interactionId: string;
  type: InteractionType;
  status: InteractionStatus;
  threadId?: string; // these three only for the owner
  runId?: string;
  toolCallId?: string;
  displayText: string;
  question?: string;
  choices?: Choice[];
  allowFreeform?: boolean;
  fields?: Json[];
  multi?: boolean;
  resumeNode?: string;
  resumePhase?: string;
  resumeStep?: number;
  pendingTool?: {
    toolName: string;
    argsJson: string;
    summary: string;
    argsSchema: { [key: string]: Json };
    risk: 'write' | 'external' | 'destructive';
  };
  binding?: string;
  ui?: UiSchema;
  uiRef?: string;
  requester: string;
  approvers?: Json;
  openedAt: string;
  expiresAt?: string;
  answer?: Answer;
  answeredBy?: string;
  via?: string;
  metadata: { [key: string]: Json };
}

// To a question.
export type Reply =
  | { choices: string[]; text?: string }
  | { answer: string }
  | { fields: { [name: string]: Json } }
  | { skip: true };

// To everything else. Which ones an interaction takes depends on its type.
export interface Decision {
  decision: 'approve' | 'edit' | 'reject' | 'respond' | 'continue' | 'give_up' | 'retry' | 'happened';
  args?: { [name: string]: Json };
  comment?: string;
  always?: { scope: 'thread' | 'user'; match?: { [arg: string]: Json } };
  binding?: string;
}
export type Answer = Reply | Decision;

export interface Grant {
  grantId: string;
  toolName: string;
  scope: 'thread' | 'user';
  threadId?: string;
  match: { [arg: string]: Json };
  madeBy: string;
  interactionId?: string;
  createdAt: string;
}

// ---- runs ----

export interface UserMessage {
  id?: string;
  role: 'user';
  content: Content;
  metadata?: { replaces?: string };
}
export interface ToolMessage {
  id?: string;
  role: 'tool';
  toolCallId: string;
  content: string;
  error?: string;
}

export interface RunAgentInput {
  threadId?: string;
  runId?: string;
  agent?: string;
  messages: (UserMessage | ToolMessage)[];
  state?: Json;
  tools?: { name: string; description: string; parameters?: Json }[];
  context?: { description: string; value: string }[];
  forwardedProps?: { timezone?: string; [key: string]: Json | undefined };
}

export interface RunAccepted {
  taskId: string;
  threadId: string;
  runId: string;
  created: boolean;
  seq: number;
  eventsUrl: string;
  queued?: true;
  answered?: string[];
}

export interface Queued {
  n: number;
  runId: string;
  taskId: string;
  messages: Message[];
}

export interface Run {
  threadId: string;
  runId: string;
  taskId: string;
  status: RunStatus;
  phase?: string;
  step?: Stage;
  agent: string;
  model: string;
  interactions: Interaction[];
  queue: Queued[]; // a page of it: `next` is there if more wait
  next?: string;
  usage: Usage;
}

export interface Thread {
  threadId: string;
  title: string;
  agent: string;
  seq: number;
  createdAt: string;
  updatedAt: string;
  usage?: Usage[]; // one for each currency
}

export interface Agent {
  name: string;
  model: string;
  provider: string; // `demo` and `scripted` are no real models
  starters: string[];
  locale?: 'zh-CN' | 'en';
  plan: 'auto' | 'always' | 'never';
  limits: { upload: number; body: number; maxToolRounds: number };
  capabilities: {
    askUser: boolean;
    plan: boolean;
    attachments: boolean;
    tools: { name: string; effect: 'read' | 'write'; risk?: string; description: string }[];
  };
}

export interface Settings {
  enableAskUser: boolean;
  maxToolRounds: number;
  confirmPolicy: { [tool: string]: 'allow' | 'confirm' | 'deny' };
  locale?: 'zh-CN' | 'en';
}

// A way to talk to people: WeChat, Telegram and others.
export interface Channel {
  name: string;
  kind: string;
  agent: string;
  state: 'online' | 'starting' | 'trouble' | 'needs_login';
  detail?: string;
  people: number;
  waiting: number; // messages that are to be sent
  parked: number; // those that wait until their reader writes again
  login: boolean; // somebody can sign in there
  webhookUrl?: string;
}

export interface Login {
  state: 'wait' | 'scanned' | 'verify' | 'done' | 'expired' | 'failed';
  content?: string; // what the QR code says
  qr?: { size: number; rows: string[] }; // '1' is dark
  expiresAt?: string;
  detail?: string;
}

export interface Session {
  user: string;
  roles: ('user' | 'approver' | 'operator')[];
  via: 'local' | 'key' | 'session' | 'ticket';
  expiresAt?: string;
}

// What a pressed button leaves to the client, or what it began on the server.
export type Pressed = RunAccepted | { action: { type: 'navigation' | 'url' | 'copy'; [key: string]: Json } };

// ---- events ----

// What became of a step is what its calls say; `by` stands where only the model says that it is done.
export interface Plan {
  steps: { content: string; doneWhen: string; status: 'pending' | 'running' | 'done' | 'failed' | 'rejected' | 'skipped'; by?: 'model' }[];
  current: number;
}
export interface Step {
  stepName: Stage;
  index: number;
  total: number;
  label?: string;
}
export interface Progress {
  progress?: number;
  total?: number;
  message?: string;
}

// Finished things: numbered, stored before they are shown, never lost or repeated.
export interface Facts {
  'message.added': { message: Message };
  'run.queued': { taskId: string; n: number; message: Message };
  'run.started': { taskId: string; leg: number; resumed: boolean; agent: string; model: string };
  'step.start': Step;
  'step.finish': Step;
  'reasoning.end': { messageId: string; content: string };
  'text.message.end': Usage & {
    messageId: string;
    content: string;
    workerAgentOutput: { answer: string; ui_hints?: Json };
    ui?: UiSchema;
    uiRef?: string;
    stopped?: true;
  };
  'tool.call': { toolCallId: string; toolName: string; args: Json; parentMessageId: string; stage: Stage };
  'tool.call.result': {
    messageId: string;
    toolCallId: string;
    callId: string;
    toolName: string;
    args: Json;
    result?: Json;
    error?: string;
    content: string;
    ui?: UiSchema;
    uiRef?: string;
    attachments?: Attachment[];
    toolAgentOutput: { result_summary: string; ui_hints?: Json };
  };
  'interaction.request': Interaction;
  'interaction.resolved': {
    interactionId: string;
    status: InteractionStatus;
    answer?: Answer;
    text?: string;
    answeredBy?: string;
    via?: string;
    at: string;
  };
  'plan.updated': Plan;
  'run.finished': {
    outcome: 'completed' | 'interrupted' | 'cancelled' | 'exhausted';
    code?: Code;
    interactions?: string[];
    pendingToolCallIds?: string[];
    usage: Usage;
  };
  'run.error': { code: Code; message: string; retryable: boolean };
}

// The next fact growing: no number, and it may be taken back.
export interface Previews {
  'text.message.start': { messageId: string; role: 'assistant' };
  'text.delta': { messageId: string; delta: string; offset: number };
  'reasoning.delta': { messageId: string; delta: string; offset: number };
  'message.discard': { messageId: string; reason: string };
  'tool.call.start': { toolCallId: string; toolName: string; parentMessageId: string; stage: Stage };
  'tool.call.args': { toolCallId: string; delta: string };
  'tool.progress': { toolCallId: string } & Progress;
}

export type FactEvent = {
  [T in keyof Facts]: { type: T; threadId: string; runId: string; seq: number; ts: string; data: Facts[T] };
}[keyof Facts];
export type PreviewEvent = {
  [T in keyof Previews]: { type: T; threadId: string; runId: string; ts: string; data: Previews[T] };
}[keyof Previews];

// The cursor was no good: reload the history; the stream goes on after `seq`.
export interface ResetEvent {
  type: 'reset';
  threadId: string;
  seq: number;
  ts: string;
  data: { reason: string; seq: number };
}

// Ours, not on the wire: what happens to the connection. Previews of an earlier one are void with `connection.open`.
export interface OpenEvent {
  type: 'connection.open';
  threadId: string;
}
export interface LostEvent {
  type: 'connection.lost';
  threadId: string;
  data: { error: Error; retryMs: number };
}

export type ThreadEvent = FactEvent | PreviewEvent | ResetEvent | OpenEvent | LostEvent;

// What is asked anywhere, over a WebSocket. `inbox` is the whole list, after every (re)connect.
export type InboxEvent =
  | { type: 'inbox'; data: { interactions: Interaction[]; next?: string } } // next: there are more, `interactions({cursor})`
  | { type: 'interaction.request'; data: Interaction }
  | { type: 'interaction.resolved'; data: Facts['interaction.resolved'] }
  | { type: 'connection.lost'; data: { error: Error; retryMs: number } };

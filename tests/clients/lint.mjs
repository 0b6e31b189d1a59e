// SPDX-License-Identifier: Apache-2.0
//
// What an AG-UI answer must be, down to the byte. Clients forgive much, each of them something else; this forgives nothing.
// `lint` gives one sentence for each fault of a whole answer. Three layers:
//
//     frames    LF only, "data: {JSON}" or a comment, a blank line behind each
//     fields    the table EVENTS: no unknown member, no wrong type, no null where the protocol knows the member
//     order     one run, nothing open at its end, ids that match (class Order)
//
// Two profiles: 'new' names a protocolVersion, 'old' is a client before 1.0. `only` marks what the other must not get.
// To allow one more event or member: a row in EVENTS.

const FRAME_BYTES_MAX = 10 * 1024 * 1024; // clients refuse longer ones
const ID_LENGTH_MAX = 160; // a client's longest, and what we put behind it

// ---- checks of one value: (value, where, say, profile) ----

const when = (holds, what) => (value, where, say) => { if (!holds(value)) say(`${where} is not ${what}: ${JSON.stringify(value)?.slice(0, 80)}`); };
const isObject = (value) => typeof value === 'object' && value !== null && !Array.isArray(value);

const text = when((value) => typeof value === 'string', 'a string');
const words = when((value) => typeof value === 'string' && value !== '', 'a string with something in it');
const id = when((value) => typeof value === 'string' && value.length >= 1 && value.length <= ID_LENGTH_MAX, 'an id');
const whole = when((value) => Number.isSafeInteger(value) && value >= 0, 'a whole number');
const count = when((value) => Number.isSafeInteger(value) && value > 0, 'a count above 0');
const time = when((value) => /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/.test(value), 'a time');
const anything = when((value) => value !== undefined && value !== null, 'JSON but null');
const whatever = when((value) => value !== undefined, 'JSON');
const object = when(isObject, 'an object');
const oneOf = (...list) => when((value) => list.includes(value), `one of ${list.join(', ')}`);

const list = (check, least = 0) => (value, where, say, profile) => {
  if (!Array.isArray(value) || value.length < least) return say(`${where} is not a list of at least ${least}`);
  value.forEach((item, i) => check(item, `${where}[${i}]`, say, profile));
};

const optional = (check) => Object.assign((...args) => check(...args), { optional: true });
const only = (wanted, check) => Object.assign((value, where, say, profile) => {
  if (profile !== wanted) say(`${where} is not for ${profile} clients`);
  else check(value, where, say, profile);
}, { optional: true });

// An object with these members and no others.
const shape = (members) => (value, where, say, profile) => {
  if (!isObject(value)) return say(`${where} is not an object`);
  for (const name of Object.keys(value)) if (!Object.hasOwn(members, name)) say(`${where}.${name} is not a member of it`);
  for (const [name, check] of Object.entries(members)) {
    if (Object.hasOwn(value, name)) check(value[name], `${where}.${name}`, say, profile);
    else if (!check.optional) say(`${where}.${name} is missing`);
  }
};

// One of several shapes, by a member.
const byMember = (member, shapes) => (value, where, say, profile) => {
  const check = isObject(value) && Object.hasOwn(shapes, value[member]) ? shapes[value[member]] : null;
  if (check) check(value, where, say, profile);
  else say(`${where}.${member} is unknown: ${JSON.stringify(value?.[member])}`);
};

// ---- messages ----

const meta = optional(object);
const source = byMember('type', {
  data: shape({ type: text, value: text, mimeType: text }),
  url: shape({ type: text, value: text, mimeType: optional(text) }),
});
const media = shape({ type: text, source, id: optional(id), metadata: optional(anything) });
const part = byMember('type', {
  text: shape({ type: text, text, id: optional(id), metadata: optional(anything) }),
  image: media, audio: media, video: media, document: media,
  binary: (value, where, say, profile) => (profile === 'old' ? shape({
    type: text, mimeType: text, url: optional(text), data: optional(text), id: optional(text), filename: optional(text),
  })(value, where, say, profile) : say(`${where} is a binary part, which 1.0 has not`)),
});
const content = (value, where, say, profile) => (typeof value === 'string' ? undefined : list(part)(value, where, say, profile));
const toolCall = shape({
  id, type: oneOf('function'), function: shape({ name: words, arguments: text }), metadata: meta,
});
const message = byMember('role', {
  user: shape({ id, role: text, content, name: optional(text), metadata: meta }),
  assistant: shape({ id, role: text, content: optional(text), toolCalls: optional(list(toolCall, 1)), metadata: meta }),
  system: shape({ id, role: text, content: text, metadata: meta }),
  reasoning: shape({ id, role: text, content: text, metadata: meta }),
  tool: shape({ id, role: text, toolCallId: id, content: text, error: optional(text), metadata: meta }),
});

// ---- the end of a run ----

const INTERRUPT = shape({
  id, reason: oneOf('input_required', 'tool_call', 'fermata:connection_lost', 'fermata:uncertain'), message: words,
  toolCallId: optional(id), responseSchema: object, expiresAt: only('new', time), metadata: object,
});
const interrupt = (value, where, say, profile) => {
  INTERRUPT(value, where, say, profile);
  if (!isObject(value)) return;
  if (value.reason === 'tool_call' && !value.toolCallId) say(`${where}.toolCallId is missing, though a call waits`);
  const own = value.metadata?.['fermata.interaction'];
  if (own?.interactionId !== value.id) say(`${where}.metadata["fermata.interaction"] is not this interaction`);
};
const outcome = byMember('type', {
  success: shape({ type: text, pendingToolCallIds: only('new', list(id, 1)) }),
  interrupt: shape({ type: text, interrupts: list(interrupt, 1) }),
  cancelled: (value, where, say, profile) => (profile === 'new' ? shape({ type: text })(value, where, say, profile)
    : say(`${where} is cancelled, which kills clients before 1.0`)),
});
const usage = list(shape({
  provider: optional(text), model: optional(text), inputTokens: optional(count), outputTokens: optional(count), totalTokens: optional(count),
  reasoningTokens: optional(count), cachedInputTokens: optional(count), cacheWriteInputTokens: optional(count),
}));

// ---- events ----

const result = shape({ // of a tool, as our own clients want it
  callId: id, toolName: words, args: anything, result: optional(whatever), error: optional(words), summary: text,
});
const ours = (value, where, say, profile) => {
  if (!isObject(value)) return say(`${where} is not an object`);
  if (profile === 'new' || value['fermata.result'] !== undefined) result(value['fermata.result'], `${where}["fermata.result"]`, say, profile);
};

const EVENTS = {
  RUN_STARTED: { threadId: id, runId: id, protocolVersion: oneOf('1.0') },
  RUN_FINISHED: { threadId: id, runId: id, result: optional(anything), outcome, usage: optional(usage) },
  RUN_ERROR: { message: words, code: words, usage: optional(usage) },
  STEP_STARTED: { stepName: oneOf('intent', 'execution', 'report') },
  STEP_FINISHED: { stepName: oneOf('intent', 'execution', 'report') },
  TEXT_MESSAGE_START: { messageId: id, role: optional(oneOf('assistant')) }, // a user's words are never started
  TEXT_MESSAGE_CONTENT: { messageId: id, delta: words },
  TEXT_MESSAGE_END: { messageId: id },
  TOOL_CALL_START: { toolCallId: id, toolCallName: words, parentMessageId: id },
  TOOL_CALL_ARGS: { toolCallId: id, delta: words },
  TOOL_CALL_END: { toolCallId: id },
  TOOL_CALL_RESULT: {
    messageId: id, toolCallId: id, content: text, role: optional(oneOf('tool')),
    ui: only('old', object), uiRef: only('old', words), callId: only('old', id), toolName: only('old', words),
    args: only('old', anything), result: only('old', whatever), error: only('old', words),
  },
  STATE_SNAPSHOT: { snapshot: whatever },
  MESSAGES_SNAPSHOT: { messages: list(message) },
  REASONING_START: { messageId: id },
  REASONING_MESSAGE_START: { messageId: id, role: oneOf('reasoning') },
  REASONING_MESSAGE_CONTENT: { messageId: id, delta: words },
  REASONING_MESSAGE_END: { messageId: id },
  REASONING_END: { messageId: id },
  CUSTOM: { name: when((value) => /^fermata\.[a-z.]+$/.test(value), 'a name of ours'), value: object },
};
const EVERY = { type: text, timestamp: optional(whole), metadata: meta };
const shapes = new Map(Object.entries(EVENTS).map(([type, members]) => [type, shape({ ...EVERY, ...members })]));

function checkFields(event, where, say, profile) {
  const check = shapes.get(event.type);
  if (!check) return say(`${where}: an event of ours is never ${JSON.stringify(event.type)}`);
  check(event, `${where} ${event.type}`, say, profile);
  if (event.type !== 'TOOL_CALL_RESULT') return;
  if (profile === 'new') ours(event.metadata, `${where} metadata`, say, profile);
  else for (const name of ['callId', 'toolName', 'args']) if (!Object.hasOwn(event, name)) say(`${where} ${name} is missing for an old client`);
}

// ---- order ----

// What opens, goes on and closes: [kind, what it does, member with its name].
const LIVES = {
  STEP_STARTED: ['step', 'open', 'stepName'], STEP_FINISHED: ['step', 'close', 'stepName'],
  TEXT_MESSAGE_START: ['text', 'open', 'messageId'], TEXT_MESSAGE_CONTENT: ['text', 'go on', 'messageId'], TEXT_MESSAGE_END: ['text', 'close', 'messageId'],
  TOOL_CALL_START: ['call', 'open', 'toolCallId'], TOOL_CALL_ARGS: ['call', 'go on', 'toolCallId'], TOOL_CALL_END: ['call', 'close', 'toolCallId'],
  REASONING_START: ['thought', 'open', 'messageId'], REASONING_END: ['thought', 'close', 'messageId'],
  REASONING_MESSAGE_START: ['reasoning', 'open', 'messageId'], REASONING_MESSAGE_CONTENT: ['reasoning', 'go on', 'messageId'],
  REASONING_MESSAGE_END: ['reasoning', 'close', 'messageId'],
};

class Order {
  state = 'before'; // 'before', 'begun' (its state must follow), 'in', 'after' a run
  open = new Set(); // "kind name"
  closed = new Set(); // texts, calls and reasonings: opened again they would be doubled
  answered = new Set(); // calls
  results = new Set(); // ids of tool messages
  begun = []; // calls of this run

  constructor(expected, say) {
    this.expected = expected;
    this.say = say;
    this.runs = 0;
  }

  take(event, where) {
    const say = (fault) => this.say(`${where} ${event.type}: ${fault}`);
    if (this.state === 'after' && !(this.expected.many && event.type === 'RUN_STARTED')) return say('comes behind the end');
    if (this.state === 'before' && event.type !== 'RUN_STARTED' && event.type !== 'RUN_ERROR') say('comes before RUN_STARTED');
    if (this.state === 'begun' && event.type !== 'STATE_SNAPSHOT' && event.type !== 'RUN_ERROR') say('comes before STATE_SNAPSHOT');
    if (this.state === 'begun') this.state = 'in';
    if (Object.hasOwn(LIVES, event.type)) return this.#live(event, say);
    const handler = {
      RUN_STARTED: () => this.#start(event, say),
      RUN_FINISHED: () => this.#finish(event, say),
      RUN_ERROR: () => { this.state = 'after'; },
      TOOL_CALL_RESULT: () => this.#result(event, say),
      MESSAGES_SNAPSHOT: () => this.#snapshot(event, say),
    }[event.type];
    handler?.();
  }

  #live(event, say) {
    const [kind, does, member] = LIVES[event.type];
    const name = `${kind} ${event[member]}`;
    if (does !== 'open') {
      if (!this.open.has(name)) say(`${name} is not open`);
      if (does === 'close') this.open.delete(name);
      return;
    }
    if (this.open.has(name)) say(`${name} is open already`);
    if (this.closed.has(name)) say(`${name} was closed before`);
    if (kind === 'step' && [...this.open].some((other) => other.startsWith('step '))) say('another step is open');
    if (kind === 'reasoning' && ![...this.open].some((other) => other.startsWith('thought '))) say('it is outside of a span');
    if (kind !== 'step') this.closed.add(name);
    if (kind === 'call') this.begun.push(event.toolCallId);
    this.open.add(name);
  }

  #start(event, say) {
    if (this.state === 'in' || this.state === 'begun') say('a run is under way');
    const { threadId, runId } = this.expected;
    if (event.threadId !== threadId) say(`the thread is ${threadId}, not ${event.threadId}`);
    if (runId !== undefined && event.runId !== runId) say(`the run is ${runId}, not ${event.runId}`);
    this.runId = event.runId;
    this.runs++;
    this.state = 'begun';
    this.open.clear();
    this.begun = [];
  }

  #finish(event, say) {
    if (this.open.size) say(`left open: ${[...this.open].join(', ')}`);
    if (event.threadId !== this.expected.threadId) say(`the thread is ${this.expected.threadId}, not ${event.threadId}`);
    if (event.runId !== this.runId) say(`the run is ${this.runId}, not ${event.runId}`);
    const { type, interrupts = [], pendingToolCallIds } = event.outcome ?? {};
    const ids = Array.isArray(interrupts) ? interrupts.map((one) => one?.id) : [];
    if (new Set(ids).size !== ids.length) say('an interrupt is there twice');
    const left = this.begun.filter((call) => !this.answered.has(call));
    if (type === 'success' && this.expected.profile === 'new') {
      const named = Array.isArray(pendingToolCallIds) ? pendingToolCallIds : [];
      for (const call of left) if (!named.includes(call)) say(`${call} is neither answered nor pending`);
      for (const call of named) if (this.answered.has(call)) say(`${call} is pending, though it is answered`);
      if (new Set(named).size !== named.length) say('a pending call is there twice');
    }
    this.state = 'after';
  }

  #result(event, say) {
    if (this.answered.has(event.toolCallId)) say(`${event.toolCallId} has its result already`);
    if (this.results.has(event.messageId)) say(`the message ${event.messageId} is there already`);
    if (this.open.has(`call ${event.toolCallId}`)) say(`${event.toolCallId} is still open`);
    this.answered.add(event.toolCallId);
    this.results.add(event.messageId);
  }

  #snapshot({ messages }, say) {
    const growing = [...this.open].filter((name) => !name.startsWith('step '));
    if (growing.length) say(`while it is open: ${growing.join(', ')}`);
    if (!Array.isArray(messages)) return;
    const ids = messages.map((one) => one?.id);
    if (new Set(ids).size !== ids.length) say('a message is there twice');
    const calls = new Set(messages.flatMap((one) => one?.toolCalls ?? []).map((call) => call?.id));
    this.begun = this.begun.filter((call) => calls.has(call)); // the others were taken back
    let owner = null; // the message whose calls the tool rows behind it answer
    for (const one of messages) {
      if (one?.role !== 'tool') owner = one;
      else if (!owner?.toolCalls?.some?.((call) => call?.id === one.toolCallId)) say(`${one.id} does not stand behind the message of its call`);
    }
  }

  end() {
    if (this.expected.open) return;
    if (this.state !== 'after') this.say('no terminal event');
  }
}

// ---- frames ----

// The texts of the frames, comments left out.
function frames(bytes, expected, say) {
  let string;
  try {
    string = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    if (!expected.open) say('not UTF-8');
    string = new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes);
  }
  if (string.includes('\r')) say('a CR');
  if (string.includes('\ufeff')) say('a byte order mark');
  const list = string.split('\n\n');
  const rest = list.pop();
  if (rest !== '' && !expected.open) say(`no blank line at the end: ${JSON.stringify(rest.slice(0, 80))}`);
  return list.filter((frame) => !/^:[^\n]*$/.test(frame));
}

// The events of an answer; faults go to `say`.
export function parse(bytes, expected, say) {
  const events = [];
  for (const [i, frame] of frames(bytes, expected, say).entries()) {
    if (Buffer.byteLength(frame) > FRAME_BYTES_MAX) say(`frame ${i} is too long`);
    const match = /^data: ([^\n]+)$/.exec(frame);
    if (!match) {
      say(`frame ${i} is not one line of data: ${JSON.stringify(frame.slice(0, 80))}`);
      continue;
    }
    try {
      const event = JSON.parse(match[1]);
      if (isObject(event)) events.push(event);
      else say(`frame ${i} is not an object`);
    } catch {
      say(`frame ${i} is not JSON: ${match[1].slice(0, 80)}`);
    }
  }
  return events;
}

// The faults of an answer. `expected`: {profile, threadId, runId?, contentType?, many?: several runs, open?: cut off by us}.
export function lint(bytes, expected) {
  const faults = [];
  const say = (fault) => { faults.push(fault); };
  const { contentType } = expected;
  if (contentType !== undefined && !/^text\/event-stream(;|$)/.test(contentType)) say(`content type ${contentType}`);
  const order = new Order(expected, say);
  for (const [i, event] of parse(bytes, expected, say).entries()) {
    checkFields(event, `event ${i}`, say, expected.profile);
    order.take(event, `event ${i}`);
  }
  order.end();
  return faults;
}

// SPDX-License-Identifier: Apache-2.0
//
// What a client makes of AG-UI events, in as few words as possible: messages by the rules that clients share. A text that
// starts under a known id goes on, arguments append, a list of messages replaces what it has and drops what it has not.
// Nothing here forgives: events that come twice leave a text that is there twice.

const shown = ['user', 'assistant', 'reasoning', 'system'];

export class Fold {
  messages = [];
  growing = new Set(); // texts, thoughts and calls that have started and not ended
  runId = null; // of the run under way, or of the last one
  end = null; // the event with which it ended

  #message(id, role) {
    const known = this.messages.find((message) => message.id === id);
    if (known) return known;
    this.messages.push({ id, role, content: '' });
    return this.messages.at(-1);
  }

  #call(id) {
    return this.messages.flatMap(({ toolCalls = [] }) => toolCalls).find((call) => call.id === id);
  }

  #owner(callId) {
    return this.messages.findIndex(({ toolCalls = [] }) => toolCalls.some(({ id }) => id === callId));
  }

  #startCall({ toolCallId, toolCallName, parentMessageId }) {
    if (this.#call(toolCallId)) return;
    const message = this.#message(parentMessageId, 'assistant');
    message.toolCalls = [...(message.toolCalls ?? []), { id: toolCallId, type: 'function', function: { name: toolCallName, arguments: '' } }];
  }

  // Behind the message that made the call, and behind the results that are there already.
  #result({ messageId, toolCallId, content, metadata }) {
    let at = this.#owner(toolCallId);
    if (at < 0) at = this.messages.length - 1;
    while (this.messages[at + 1]?.role === 'tool') at++;
    this.messages.splice(at + 1, 0, { id: messageId, role: 'tool', toolCallId, content, ...(metadata ? { metadata } : {}) });
  }

  // What stays keeps its place, what is new stands behind it. Thoughts that the list does not know stay if it has none at all.
  #snapshot(messages) {
    const given = new Map(messages.map((message) => [message.id, structuredClone(message)]));
    const thoughts = !messages.some(({ role }) => role === 'reasoning');
    const kept = this.messages.flatMap((message) => given.get(message.id) ?? (thoughts && message.role === 'reasoning' ? [message] : []));
    const ids = new Set(kept.map(({ id }) => id));
    this.messages = [...kept, ...[...given.values()].filter(({ id }) => !ids.has(id))];
  }

  // The connection has gone: nothing that was open goes on by itself.
  cut() {
    this.growing.clear();
  }

  take(event) {
    const { type, messageId, toolCallId, delta, metadata } = event;
    const rows = {
      RUN_STARTED: () => { this.growing.clear(); this.runId = event.runId; this.end = null; },
      RUN_FINISHED: () => { this.end = event; },
      RUN_ERROR: () => { this.end = event; },
      TEXT_MESSAGE_START: () => { this.#message(messageId, 'assistant'); this.growing.add(messageId); },
      TEXT_MESSAGE_CONTENT: () => { const message = this.#message(messageId); message.content = (message.content ?? '') + delta; },
      TEXT_MESSAGE_END: () => {
        if (metadata) Object.assign(this.#message(messageId).metadata ??= {}, metadata);
        this.growing.delete(messageId);
      },
      REASONING_MESSAGE_START: () => { this.#message(messageId, 'reasoning'); this.growing.add(messageId); },
      REASONING_MESSAGE_CONTENT: () => { this.#message(messageId).content += delta; },
      REASONING_MESSAGE_END: () => this.growing.delete(messageId),
      TOOL_CALL_START: () => { this.#startCall(event); this.growing.add(toolCallId); },
      TOOL_CALL_ARGS: () => { this.#call(toolCallId).function.arguments += delta; },
      TOOL_CALL_END: () => this.growing.delete(toolCallId),
      TOOL_CALL_RESULT: () => this.#result(event),
      MESSAGES_SNAPSHOT: () => this.#snapshot(event.messages),
    };
    rows[type]?.();
  }
}

// What is compared of messages; cards only where the client has them in its messages.
export const plain = (messages, { cards = false } = {}) => messages.map(({ id, role, content, toolCalls, toolCallId, metadata }) => ({
  id, role, content: content ?? '',
  ...(toolCalls?.length ? { toolCalls: toolCalls.map((call) => ({ id: call.id, type: call.type, function: call.function })) } : {}),
  ...(toolCallId === undefined ? {} : { toolCallId }),
  ...(cards && metadata?.['fermata.ui'] ? { ui: metadata['fermata.ui'] } : {}),
}));

// The rows of history as AG-UI has them: those that people and the model wrote, each result right behind the message that
// called, nothing that says nothing.
export function mapped(rows, { cards = false } = {}) {
  const said = ({ role, content, toolCalls, uiSchema }) => shown.includes(role) && (role !== 'assistant' || content || toolCalls?.length || uiSchema);
  const results = (row) => rows.filter(({ role, toolCallId }) => role === 'tool' && row.toolCalls?.some(({ id }) => id === toolCallId));
  const list = rows.filter(said).flatMap((row) => [row, ...results(row)]);
  return plain(list.map((row) => ({ ...row, metadata: row.uiSchema ? { 'fermata.ui': row.uiSchema } : undefined })), { cards });
}

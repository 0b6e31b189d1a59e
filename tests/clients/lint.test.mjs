// SPDX-License-Identifier: Apache-2.0
//
// The linter finds what it is there for: good answers have no fault, and each row of FAULTS spoils one in one way.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { lint } from './lint.mjs';

const THREAD = 't1', RUN = 'r1';
const interrupt = (id, more = {}) => ({
  id, reason: 'input_required', message: 'How long?', toolCallId: 'c1', responseSchema: { type: 'object' },
  metadata: { 'fermata.interaction': { interactionId: id, binding: null } }, ...more,
});
const OURS = { callId: 'c1', toolName: 'look', args: {}, result: null, summary: 'seen' };
const RESULT = {
  new: { type: 'TOOL_CALL_RESULT', messageId: 'tool1', toolCallId: 'c1', content: 'seen', metadata: { 'fermata.result': OURS, 'fermata.ui': {} } },
  old: { type: 'TOOL_CALL_RESULT', messageId: 'tool1', toolCallId: 'c1', content: 'seen', ui: {}, callId: 'c1', toolName: 'look', args: {}, result: null },
};

// A run with one of everything.
const whole = (profile, last = { type: 'success' }) => [
  { type: 'RUN_STARTED', threadId: THREAD, runId: RUN, protocolVersion: '1.0', timestamp: 1 },
  { type: 'STATE_SNAPSHOT', snapshot: { a: null } },
  { type: 'MESSAGES_SNAPSHOT', messages: [
    { id: 'u1', role: 'user', content: 'look' },
    { id: 'a0', role: 'assistant', toolCalls: [{ id: 'c0', type: 'function', function: { name: 'look', arguments: '{}' } }] },
    { id: 't0', role: 'tool', toolCallId: 'c0', content: 'seen', metadata: { x: null } },
    { id: 'th0', role: 'reasoning', content: 'Hm.' }] },
  { type: 'STEP_STARTED', stepName: 'intent' },
  { type: 'REASONING_START', messageId: 'm1-reasoning' },
  { type: 'REASONING_MESSAGE_START', messageId: 'm1-reasoning', role: 'reasoning' },
  { type: 'REASONING_MESSAGE_CONTENT', messageId: 'm1-reasoning', delta: 'Well' },
  { type: 'REASONING_MESSAGE_END', messageId: 'm1-reasoning' },
  { type: 'REASONING_END', messageId: 'm1-reasoning' },
  { type: 'TEXT_MESSAGE_START', messageId: 'm1', role: 'assistant' },
  { type: 'TEXT_MESSAGE_CONTENT', messageId: 'm1', delta: '看\u2028' },
  { type: 'TOOL_CALL_START', toolCallId: 'c1', toolCallName: 'look', parentMessageId: 'm1' },
  { type: 'TOOL_CALL_ARGS', toolCallId: 'c1', delta: '{}' },
  { type: 'TEXT_MESSAGE_END', messageId: 'm1', metadata: { 'fermata.ui': { a: null } } },
  { type: 'TOOL_CALL_END', toolCallId: 'c1' },
  { type: 'CUSTOM', name: 'fermata.tool.progress', value: { progress: null } },
  RESULT[profile],
  { type: 'STEP_FINISHED', stepName: 'intent' },
  { type: 'RUN_FINISHED', threadId: THREAD, runId: RUN, outcome: last, usage: [{ model: 'm', inputTokens: 1 }] },
];

const bytesOf = (events) => Buffer.from(`:\n\n${events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('')}`);
const expected = (profile, more = {}) => ({ profile, threadId: THREAD, runId: RUN, contentType: 'text/event-stream', ...more });

// A whole run after a change. `at` is the type of the event that is changed, or of the one to put `event` before.
const change = (at, more, nth = 0) => (events) => {
  const found = events.filter(({ type }) => type === at)[nth];
  return events.map((event) => (event === found ? Object.fromEntries(Object.entries({ ...event, ...more }).filter(([, value]) => value !== undefined)) : event));
};
const drop = (at) => (events) => events.filter(({ type }) => type !== at);
const before = (at, ...more) => (events) => events.flatMap((event) => (event.type === at ? [...more, event] : [event]));
const behind = (...more) => (events) => [...events, ...more];
const row = (message) => change('MESSAGES_SNAPSHOT', { messages: [message] });
const ends = (outcome) => change('RUN_FINISHED', { outcome });
const pausing = (...list) => ends({ type: 'interrupt', interrupts: list });
const started = { type: 'RUN_STARTED', threadId: THREAD, runId: RUN, protocolVersion: '1.0' };
const finished = { type: 'RUN_FINISHED', threadId: THREAD, runId: RUN, outcome: { type: 'success' } };
const TEXT = { type: 'TEXT_MESSAGE_START', messageId: 'm2' };
const CALL = { type: 'TOOL_CALL_START', toolCallId: 'c2', toolCallName: 'look', parentMessageId: 'm1' };

const GOOD = {
  'an interrupt': ['both', pausing(interrupt('i1'), interrupt('i2'))],
  'an interrupt with a time': ['new', pausing(interrupt('i1', { expiresAt: '2030-01-01T00:00:00.000Z' }))],
  'an interrupt of a call': ['both', pausing(interrupt('i1', { reason: 'tool_call' }))],
  'a cancelled run': ['new', ends({ type: 'cancelled' })],
  'an error with things open': ['both', (events) => [...events.slice(0, 12), { type: 'RUN_ERROR', message: 'no', code: 'aborted' }]],
  'an error alone': ['both', () => [{ type: 'RUN_ERROR', message: 'no', code: 'aborted' }]],
  'a pending call': ['new', (events) => ends({ type: 'success', pendingToolCallIds: ['c1'] })(drop('TOOL_CALL_RESULT')(events))],
  'a pending call that an old client is not told of': ['old', drop('TOOL_CALL_RESULT')],
  'a call that is taken back': ['new', before('RUN_FINISHED', { ...CALL }, { type: 'TOOL_CALL_END', toolCallId: 'c2' }, { type: 'MESSAGES_SNAPSHOT', messages: [] })],
  'a picture': ['both', row({ id: 'u1', role: 'user', content: [{ type: 'text', text: 'see' }, { type: 'image', source: { type: 'url', value: 'x' } }] })],
  'a binary part': ['old', row({ id: 'u1', role: 'user', content: [{ type: 'binary', mimeType: 'image/png', url: 'x' }] })],
  'a failed call': ['new', change('TOOL_CALL_RESULT', { metadata: { 'fermata.result': { callId: 'c1', toolName: 'look', args: {}, error: 'no', summary: 'no' } } })],
};

// name: [profiles, change, what is said about it].
const FAULTS = {
  'no terminal event': ['both', drop('RUN_FINISHED'), /no terminal event/],
  'two terminal events': ['both', behind(finished), /behind the end/],
  'an event behind the end': ['both', behind({ type: 'CUSTOM', name: 'fermata.x', value: {} }), /behind the end/],
  'a second run': ['both', behind(started, { type: 'STATE_SNAPSHOT', snapshot: {} }, finished), /behind the end/],
  'a run in a run': ['both', before('STEP_STARTED', started), /a run is under way/],
  'no RUN_STARTED': ['both', drop('RUN_STARTED'), /before RUN_STARTED/],
  'no state': ['both', drop('STATE_SNAPSHOT'), /before STATE_SNAPSHOT/],
  'another run': ['both', change('RUN_STARTED', { runId: 'r2' }), /the run is r1/],
  'another thread': ['both', change('RUN_STARTED', { threadId: 't2' }), /the thread is t1/],
  'the end of another run': ['both', change('RUN_FINISHED', { runId: 'r2' }), /the run is r1/],
  'the end of another thread': ['both', change('RUN_FINISHED', { threadId: 't2' }), /the thread is t1/],
  'no version': ['both', change('RUN_STARTED', { protocolVersion: undefined }), /protocolVersion is missing/],
  'the input again': ['both', change('RUN_STARTED', { input: {} }), /input is not a member/],
  'an unknown event': ['both', before('STEP_STARTED', { type: 'HELLO' }), /never "HELLO"/],
  'a chunk': ['both', before('STEP_STARTED', { type: 'TEXT_MESSAGE_CHUNK', messageId: 'm', delta: 'x' }), /never "TEXT_MESSAGE_CHUNK"/],
  'an unknown member': ['both', change('TEXT_MESSAGE_END', { ui: {} }), /ui is not a member/],
  'members of old clients': ['new', change('TOOL_CALL_RESULT', { ui: {} }), /ui is not for new clients/],
  'a null': ['both', change('TEXT_MESSAGE_START', { role: null }), /role is not one of/],
  'a null for metadata': ['both', change('TEXT_MESSAGE_START', { metadata: null }), /metadata is not an object/],
  'a null result': ['both', change('RUN_FINISHED', { result: null }), /result is not JSON but null/],
  'a timestamp with a fraction': ['both', change('CUSTOM', { timestamp: 1.5 }), /timestamp is not a whole number/],
  'a timestamp as text': ['both', change('CUSTOM', { timestamp: '1' }), /timestamp is not a whole number/],
  'no value': ['both', change('CUSTOM', { value: undefined }), /value is missing/],
  'a name that is not ours': ['both', change('CUSTOM', { name: 'thing' }), /not a name of ours/],
  'a user started as text': ['both', change('TEXT_MESSAGE_START', { role: 'user' }), /role is not one of/],
  'a call without its message': ['both', change('TOOL_CALL_START', { parentMessageId: undefined }), /parentMessageId is missing/],
  'a result as a list': ['both', change('TOOL_CALL_RESULT', { content: [{ type: 'text', text: 'x' }] }), /content is not a string/],
  'a result without ours': ['new', change('TOOL_CALL_RESULT', { metadata: {} }), /fermata.result"\] is not an object/],
  'a result without metadata': ['new', change('TOOL_CALL_RESULT', { metadata: undefined }), /metadata is not an object/],
  'a result without what old clients read': ['old', change('TOOL_CALL_RESULT', { toolName: undefined }), /toolName is missing/],
  'a result twice': ['both', before('STEP_FINISHED', RESULT.new), /has its result already/],
  'a result of an open call': ['both', before('TEXT_MESSAGE_END', { ...RESULT.new, messageId: 'tool2' }), /still open/],
  'a text opened twice': ['both', before('TEXT_MESSAGE_CONTENT', { type: 'TEXT_MESSAGE_START', messageId: 'm1' }), /open already/],
  'a text that comes again': ['both', before('STEP_FINISHED', { type: 'TEXT_MESSAGE_START', messageId: 'm1' }, { type: 'TEXT_MESSAGE_END', messageId: 'm1' }), /closed before/],
  'a call that comes again': ['both', before('STEP_FINISHED', { ...CALL, toolCallId: 'c1' }, { type: 'TOOL_CALL_END', toolCallId: 'c1' }), /closed before/],
  'words for no text': ['both', drop('TEXT_MESSAGE_START'), /text m1 is not open/],
  'arguments for no call': ['both', drop('TOOL_CALL_START'), /call c1 is not open/],
  'thoughts outside of a span': ['both', drop('REASONING_START'), /outside of a span/],
  'another role in a thought': ['both', change('REASONING_MESSAGE_START', { role: 'assistant' }), /role is not one of reasoning/],
  'a text left open': ['both', before('STEP_FINISHED', TEXT), /left open: text m2/],
  'a call left open': ['both', before('STEP_FINISHED', CALL), /left open: call c2/],
  'a thought left open': ['both', drop('REASONING_END'), /left open: thought/],
  'a step left open': ['both', drop('STEP_FINISHED'), /left open: step intent/],
  'a step that never began': ['both', drop('STEP_STARTED'), /step intent is not open/],
  'two steps at once': ['both', before('REASONING_START', { type: 'STEP_STARTED', stepName: 'report' }), /another step is open/],
  'a step of no name': ['both', change('STEP_STARTED', { stepName: 'tools' }), /stepName is not one of/],
  'an empty delta': ['both', change('TEXT_MESSAGE_CONTENT', { delta: '' }), /delta is not a string with/],
  'no messages': ['both', change('MESSAGES_SNAPSHOT', { messages: undefined }), /messages is missing/],
  'a message twice': ['both', change('MESSAGES_SNAPSHOT', { messages: [{ id: 'u', role: 'user', content: '' }, { id: 'u', role: 'user', content: '' }] }), /there twice/],
  'a role of ours': ['both', row({ id: 'q', role: 'clarify', content: '' }), /role is unknown: "clarify"/],
  'content that is null': ['both', row({ id: 'a', role: 'assistant', content: null }), /content is not a string/],
  'no calls, as a list': ['both', row({ id: 'a', role: 'assistant', toolCalls: [] }), /not a list of at least 1/],
  'arguments that are no text': ['both', row({ id: 'a', role: 'assistant', toolCalls: [{ id: 'c', type: 'function', function: { name: 'f', arguments: {} } }] }), /arguments is not a string/],
  'a tool row by itself': ['both', row({ id: 't', role: 'tool', toolCallId: 'c', content: '' }), /does not stand behind/],
  'a binary part for 1.0': ['new', row({ id: 'u', role: 'user', content: [{ type: 'binary', mimeType: 'x', url: 'x' }] }), /binary part/],
  'messages while a text grows': ['both', before('TEXT_MESSAGE_END', { type: 'MESSAGES_SNAPSHOT', messages: [] }), /while it is open/],
  'no outcome': ['both', change('RUN_FINISHED', { outcome: undefined }), /outcome is missing/],
  'an outcome as text': ['both', ends('success'), /type is unknown/],
  'an unknown outcome': ['both', ends({ type: 'exhausted' }), /type is unknown/],
  'cancelled, for an old client': ['old', ends({ type: 'cancelled' }), /kills clients before 1\.0/],
  'pending calls, for an old client': ['old', ends({ type: 'success', pendingToolCallIds: ['c1'] }), /pendingToolCallIds is not for old/],
  'a pending call that is not named': ['new', drop('TOOL_CALL_RESULT'), /neither answered nor pending/],
  'a pending call that is answered': ['new', ends({ type: 'success', pendingToolCallIds: ['c1'] }), /though it is answered/],
  'no interrupts': ['both', pausing(), /not a list of at least 1/],
  'an interrupt twice': ['both', pausing(interrupt('i1'), interrupt('i1')), /an interrupt is there twice/],
  'an interrupt without a schema': ['both', pausing(interrupt('i1', { responseSchema: true })), /responseSchema is not an object/],
  'an interrupt of an unknown reason': ['both', pausing(interrupt('i1', { reason: 'why' })), /reason is not one of/],
  'an interrupt of no call': ['both', pausing(interrupt('i1', { reason: 'tool_call', toolCallId: undefined })), /though a call waits|toolCallId is not an id/],
  'an interrupt of another interaction': ['both', pausing(interrupt('i1', { metadata: {} })), /not this interaction/],
  'a time, for an old client': ['old', pausing(interrupt('i1', { expiresAt: '2030-01-01T00:00:00.000Z' })), /expiresAt is not for old/],
  'a time that is none': ['new', pausing(interrupt('i1', { expiresAt: 'soon' })), /expiresAt is not a time/],
  'an error without a code': ['both', () => [{ type: 'RUN_ERROR', message: 'no' }], /code is missing/],
  'a count of nothing': ['both', change('RUN_FINISHED', { usage: [{ inputTokens: 0 }] }), /not a count/],
  'usage that is no list': ['both', change('RUN_FINISHED', { usage: {} }), /not a list/],
};

// Bytes of a whole run after a change of the text.
const BYTES = {
  'CRLF': [(text) => text.replaceAll('\n', '\r\n'), /a CR/],
  'a CR somewhere': [(text) => text.replace(':\n\n', ':\r\n\n'), /a CR/],
  'an id': [(text) => text.replace('data: ', 'id: 1\ndata: '), /not one line of data/],
  'the name of an event': [(text) => text.replace('data: ', 'event: x\ndata: '), /not one line of data/],
  'no blank behind the colon': [(text) => text.replace('data: ', 'data:'), /not one line of data/],
  'the end of other streams': [(text) => `${text}data: [DONE]\n\n`, /not JSON/],
  'a list': [(text) => `${text}data: []\n\n`, /not an object/],
  'empty data': [(text) => `${text}data:\n\n`, /not one line of data/],
  'data on two lines': [(text) => text.replace('data: {', 'data: {\ndata: '), /not one line of data/],
  'half a frame at the end': [(text) => text.slice(0, -1), /no blank line/],
  'a mark at the beginning': [(text) => `\ufeff${text}`, /byte order mark/],
};

const cases = (rows) => Object.entries(rows).flatMap(([name, [profiles, ...more]]) =>
  (profiles === 'both' ? ['new', 'old'] : [profiles]).map((profile) => [`${profile}: ${name}`, profile, ...more]));

test('answers without a fault', () => {
  for (const profile of ['new', 'old']) assert.deepEqual(lint(bytesOf(whole(profile)), expected(profile)), []);
  for (const [name, profile, changed] of cases(GOOD)) {
    assert.deepEqual(lint(bytesOf(changed(whole(profile))), expected(profile)), [], name);
  }
});

test('each fault is found', () => {
  for (const [name, profile, changed, said] of cases(FAULTS)) {
    const faults = lint(bytesOf(changed(whole(profile))), expected(profile));
    assert.ok(faults.some((fault) => said.test(fault)), `${name}: ${JSON.stringify(faults)}`);
  }
});

test('each fault of the bytes is found', () => {
  for (const [name, [changed, said]] of Object.entries(BYTES)) {
    const faults = lint(Buffer.from(changed(bytesOf(whole('new')).toString())), expected('new'));
    assert.ok(faults.some((fault) => said.test(fault)), `${name}: ${JSON.stringify(faults)}`);
  }
  const broken = Buffer.concat([bytesOf(whole('new')), Buffer.from([0x3a, 0xff, 0x0a, 0x0a])]);
  assert.deepEqual(lint(broken, expected('new')), ['not UTF-8']);
  assert.deepEqual(lint(bytesOf(whole('new')), expected('new', { contentType: 'application/json' })), ['content type application/json']);
});

test('a stream of several runs, and one that was cut', () => {
  const second = whole('new').map((event) => ('runId' in event ? { ...event, runId: 'r2' } : event)).slice(0, 4);
  const bytes = bytesOf([...whole('new'), ...second]);
  const many = { profile: 'new', threadId: THREAD, many: true };
  assert.deepEqual(lint(bytes, { ...many, open: true }), []);
  assert.deepEqual(lint(bytes.subarray(0, -9), { ...many, open: true }), []);
  assert.deepEqual(lint(bytes, many), ['no terminal event']);
});

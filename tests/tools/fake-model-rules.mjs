// SPDX-License-Identifier: Apache-2.0
//
// What the two APIs refuse, for fake-model.mjs: the rules that a client can break by what it sends, with the status and
// about the words of the real ones. `refusalOf` gives null, or {status, error: {type, message}}; request.body is the
// parsed body then.

const NAME = /^[A-Za-z0-9_-]{1,64}$/;
const ID = /^[A-Za-z0-9_-]+$/;
const IMAGE_TYPES = ['image/png', 'image/jpeg', 'image/gif', 'image/webp'];
const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

class Refusal extends Error {
  constructor(message, status = 400, type = 'invalid_request_error', code = undefined) {
    super(message);
    this.status = status;
    this.type = type;
    this.code = code;
  }
}

function must(holds, message, ...more) {
  if (!holds) throw new Refusal(message, ...more);
}

const isObject = (value) => typeof value === 'object' && value !== null && !Array.isArray(value);
const isText = (value) => typeof value === 'string';

function onlyMembers(value, allowed, path) {
  for (const name of Object.keys(value)) must(allowed.includes(name), `${path}${name}: Extra inputs are not permitted`);
}

// ---- OpenAI ----

const OPENAI_MEMBERS = [
  'model', 'messages', 'tools', 'tool_choice', 'parallel_tool_calls', 'stream', 'stream_options', 'max_tokens',
  'max_completion_tokens', 'temperature', 'top_p', 'stop', 'n', 'user', 'seed', 'response_format', 'reasoning_effort', 'store',
];

function openaiTools(tools) {
  if (tools === undefined) return;
  must(Array.isArray(tools) && tools.length > 0, "Invalid 'tools': empty array. Expected an array with minimum length 1");
  const names = new Set();
  tools.forEach((tool, i) => {
    must(tool.type === 'function' && isObject(tool.function), `Missing required parameter: 'tools[${i}].function'.`);
    const { name, description, parameters } = tool.function;
    must(isText(name) && NAME.test(name), `Invalid 'tools[${i}].function.name': string does not match pattern '^[a-zA-Z0-9_-]+$'.`);
    must(!names.has(name), `Duplicate tool name: '${name}'.`);
    names.add(name);
    must(description === undefined || isText(description), `Invalid type for 'tools[${i}].function.description'.`);
    must(parameters === undefined || parameters.type === 'object', `Invalid schema for function '${name}': schema must be a JSON Schema of 'type: "object"'.`);
  });
}

function openaiParts(parts, path) {
  must(parts.length > 0, `Invalid '${path}': empty array.`);
  for (const part of parts) {
    if (part.type === 'text') must(isText(part.text), `Missing required parameter: '${path}.text'.`);
    else {
      must(part.type === 'image_url' && isText(part.image_url?.url), `Invalid value in '${path}'.`);
      const match = /^data:([a-z/]+);base64,(.*)$/s.exec(part.image_url.url);
      must(match ? IMAGE_TYPES.includes(match[1]) && BASE64.test(match[2]) : /^https?:/.test(part.image_url.url), 'Invalid image data.');
    }
  }
}

function openaiCalls(message, path) {
  must(Array.isArray(message.tool_calls) && message.tool_calls.length > 0, `Invalid '${path}.tool_calls': empty array.`);
  return message.tool_calls.map((call) => {
    must(call.type === 'function' && isText(call.id) && call.id, `Missing required parameter: '${path}.tool_calls[0].id'.`);
    must(isText(call.function?.name) && NAME.test(call.function.name), `Invalid '${path}.tool_calls[0].function.name'.`);
    must(isText(call.function.arguments), `Invalid type for '${path}.tool_calls[0].function.arguments': expected a string.`);
    return call.id;
  });
}

function openaiMessages(messages) {
  must(Array.isArray(messages) && messages.length > 0, "Invalid 'messages': empty array.");
  let open = [];
  const answered = () => must(open.length === 0, `An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: ${open.join(', ')}`);
  messages.forEach((message, i) => {
    const path = `messages[${i}]`;
    const { role, content } = message;
    must(['system', 'developer', 'user', 'assistant', 'tool'].includes(role), `Invalid value: '${role}'. Supported values are: 'system', 'assistant', 'user', 'function', 'tool', and 'developer'.`);
    if (Array.isArray(content)) openaiParts(content, `${path}.content`);
    else must(isText(content) || (role === 'assistant' && (content ?? null) === null && message.tool_calls), `Invalid value for 'content': expected a string, got null.`);
    if (role === 'tool') {
      must(open.includes(message.tool_call_id), "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.");
      open = open.filter((id) => id !== message.tool_call_id);
      return;
    }
    answered();
    if (role === 'assistant' && message.tool_calls !== undefined) open = openaiCalls(message, path);
  });
  answered();
}

function openai(request, key) {
  const auth = request.headers.authorization ?? '';
  must(auth, "You didn't provide an API key.", 401, 'invalid_request_error', null);
  must(auth === `Bearer ${key}`, 'Incorrect API key provided.', 401, 'invalid_request_error', 'invalid_api_key');
  const { body } = request;
  must(isText(body.model) && body.model, 'you must provide a model parameter');
  for (const name of Object.keys(body)) must(OPENAI_MEMBERS.includes(name), `Unrecognized request argument supplied: ${name}`);
  must(body.stream === true, 'this server only streams');
  must(body.stream_options === undefined || isObject(body.stream_options), "Invalid type for 'stream_options'.");
  openaiTools(body.tools);
  openaiMessages(body.messages);
}

// ---- Anthropic ----

const ANTHROPIC_MEMBERS = [
  'model', 'messages', 'max_tokens', 'system', 'tools', 'tool_choice', 'stream', 'stop_sequences', 'temperature', 'top_p', 'top_k',
  'metadata', 'thinking', 'service_tier',
];

const notBlank = (text) => isText(text) && /\S/.test(text);

function anthropicTools(tools) {
  if (tools === undefined) return;
  must(Array.isArray(tools), 'tools: Input should be a valid list');
  const names = new Set();
  tools.forEach((tool, i) => {
    onlyMembers(tool, ['name', 'description', 'input_schema', 'cache_control', 'type'], `tools.${i}.`);
    must(isText(tool.name) && NAME.test(tool.name), `tools.${i}.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,64}$'`);
    must(!names.has(tool.name), 'tools: Tool names must be unique.');
    names.add(tool.name);
    must(tool.description === undefined || isText(tool.description), `tools.${i}.custom.description: Input should be a valid string`);
    must(tool.input_schema?.type === 'object', `tools.${i}.custom.input_schema.type: Field required`);
  });
}

// One block of content; what it may stand in, and its members.
const BLOCKS = {
  text: {
    roles: ['user', 'assistant'], members: ['text', 'cache_control', 'citations'],
    check: (block) => must(notBlank(block.text), 'messages: text content blocks must contain non-whitespace text'),
  },
  image: {
    roles: ['user'], members: ['source', 'cache_control'],
    check: ({ source }) => must(source?.type === 'base64' && IMAGE_TYPES.includes(source.media_type) && isText(source.data) && source.data && BASE64.test(source.data), 'messages: Could not process image'),
  },
  tool_use: {
    roles: ['assistant'], members: ['id', 'name', 'input', 'cache_control'],
    check: ({ id, name, input }) => {
      must(isText(id) && ID.test(id), "messages.content.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'");
      must(isText(name) && NAME.test(name), "messages.content.tool_use.name: String should match pattern '^[a-zA-Z0-9_-]{1,64}$'");
      must(isObject(input), 'messages.content.tool_use.input: Input should be a valid dictionary');
    },
  },
  tool_result: {
    roles: ['user'], members: ['tool_use_id', 'content', 'is_error', 'cache_control'],
    check: ({ tool_use_id: id, content }) => {
      must(isText(id) && ID.test(id), "messages.content.tool_result.tool_use_id: String should match pattern '^[a-zA-Z0-9_-]+$'");
      must(content === undefined || isText(content) || Array.isArray(content), 'messages.content.tool_result.content: Input should be a valid string');
    },
  },
  thinking: {
    roles: ['assistant'], members: ['thinking', 'signature'],
    check: ({ thinking, signature }, verify) => {
      must(isText(thinking) && isText(signature) && signature, 'messages.content.thinking.signature: Field required');
      must(!signature.startsWith('fake-') || signature === verify(thinking), 'messages: Invalid `signature` in `thinking` block');
    },
  },
  redacted_thinking: {
    roles: ['assistant'], members: ['data'],
    check: ({ data }) => must(isText(data) && data, 'messages.content.redacted_thinking.data: Field required'),
  },
};

function anthropicContent({ role, content }, path, verify) {
  if (isText(content)) {
    must(notBlank(content), 'messages: text content blocks must contain non-whitespace text');
    return [{ type: 'text', text: content }];
  }
  must(Array.isArray(content) && content.length > 0, `${path}: all messages must have non-empty content except for the optional final assistant message`);
  for (const block of content) {
    const rule = BLOCKS[block.type];
    must(rule?.roles.includes(role), `${path}.content: Input tag '${block.type}' is not expected here`);
    onlyMembers(block, ['type', ...rule.members], `${path}.content.`);
    rule.check(block, verify);
  }
  return content;
}

// Every use has its result at the beginning of the next message, and every result its use in the one before.
function anthropicResults(content, before, path) {
  const results = content.filter(({ type }) => type === 'tool_result').map(({ tool_use_id: id }) => id);
  const uses = before.filter(({ type }) => type === 'tool_use').map(({ id }) => id);
  must(new Set(uses).size === uses.length, `${path}: tool_use ids must be unique`);
  for (const id of results) must(uses.includes(id), `${path}: unexpected \`tool_use_id\` found in \`tool_result\` blocks: ${id}. Each \`tool_result\` block must have a corresponding \`tool_use\` block in the previous message.`);
  must(new Set(results).size === results.length, `${path}: each tool_use must have a single result`);
  const missing = uses.filter((id) => !results.includes(id));
  must(missing.length === 0, `${path}: \`tool_use\` ids were found without \`tool_result\` blocks immediately after: ${missing.join(', ')}`);
  must(content.slice(0, results.length).every(({ type }) => type === 'tool_result'), `${path}: tool_result blocks must come first`);
}

// Thoughts stand before what they led to.
function anthropicThoughts(content, path) {
  const last = content.findLastIndex(({ type }) => type === 'thinking' || type === 'redacted_thinking');
  must(last < content.length - 1 || content.length === 0, `${path}: The final block in an assistant message cannot be \`thinking\`.`);
}

function anthropicMessages(messages, verify) {
  must(Array.isArray(messages) && messages.length > 0, 'messages: at least one message is required');
  let before = [];
  messages.forEach((message, i) => {
    const path = `messages.${i}`;
    onlyMembers(message, ['role', 'content'], `${path}.`);
    must(['user', 'assistant'].includes(message.role), `${path}.role: Input should be 'user' or 'assistant'`);
    const due = i % 2 ? 'assistant' : 'user';
    must(message.role === due, i ? 'messages: roles must alternate between "user" and "assistant"' : 'messages: first message must use the "user" role');
    const content = anthropicContent(message, path, verify);
    if (message.role === 'user') anthropicResults(content, before, path);
    else anthropicThoughts(content, path);
    before = content;
  });
  must(messages.length % 2 === 1, 'This model does not support assistant message prefill. The conversation must end with a user message.');
}

function anthropic(request, key, verify) {
  must(request.headers['x-api-key'], 'x-api-key header is required', 401, 'authentication_error');
  must(request.headers['x-api-key'] === key, 'invalid x-api-key', 401, 'authentication_error');
  must(request.headers['anthropic-version'] === '2023-06-01', 'anthropic-version: header is required');
  const { body } = request;
  onlyMembers(body, ANTHROPIC_MEMBERS, '');
  must(isText(body.model) && body.model, 'model: Field required');
  must(Number.isInteger(body.max_tokens) && body.max_tokens > 0, 'max_tokens: Field required');
  must(body.stream === true, 'this server only streams');
  must(body.system === undefined || notBlank(body.system), 'system: text content blocks must be non-empty');
  anthropicTools(body.tools);
  anthropicMessages(body.messages, verify);
}

// ---- both ----

const APIS = { openai, anthropic };

export function refusalOf(kind, path, key, request, verify) {
  try {
    must(request.path === path, `Invalid URL (${request.method} ${request.path})`, 404, kind === 'openai' ? 'invalid_request_error' : 'not_found_error');
    must(request.method === 'POST', 'Not allowed to use this method', 405);
    must(/^application\/json\b/.test(request.headers['content-type'] ?? ''), 'the content type must be application/json');
    try {
      request.body = JSON.parse(request.text);
    } catch {
      throw new Refusal('We could not parse the JSON body of your request.');
    }
    APIS[kind](request, key, verify);
    return null;
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    return { status: error.status, error: { type: error.type, message: error.message, code: error.code } };
  }
}

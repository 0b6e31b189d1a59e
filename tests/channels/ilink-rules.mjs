// SPDX-License-Identifier: Apache-2.0
//
// What an iLink server asks of its clients, one function for each thing that is said to it. Each returns a list of
// what is wrong, empty if nothing is. And the small tools of both sides: AES, JSON with numbers beyond 2^53.

import { createCipheriv, createDecipheriv, createHash } from 'node:crypto';

export const md5 = (bytes) => createHash('md5').update(bytes).digest('hex');
export const sealedBytes = (length) => (Math.floor(length / 16) + 1) * 16;

// AES-128-ECB with PKCS#7; the key as 32 hex digits.
export function seal(bytes, key) {
  const cipher = createCipheriv('aes-128-ecb', Buffer.from(key, 'hex'), null);
  return Buffer.concat([cipher.update(bytes), cipher.final()]);
}
export function unseal(bytes, key) {
  const decipher = createDecipheriv('aes-128-ecb', Buffer.from(key, 'hex'), null);
  return Buffer.concat([decipher.update(bytes), decipher.final()]);
}

// JSON with BigInt as a number, which JSON.stringify cannot write.
export function toJson(value) {
  if (typeof value === 'bigint') return value.toString();
  if (Array.isArray(value)) return `[${value.map(toJson).join(',')}]`;
  if (value === null || typeof value !== 'object') return JSON.stringify(value) ?? 'null';
  const members = Object.entries(value).filter(([, member]) => member !== undefined);
  return `{${members.map(([key, member]) => `${JSON.stringify(key)}:${toJson(member)}`).join(',')}}`;
}

const HEX32 = /^[0-9a-f]{32}$/;
const AGENT = /^[\w.-]{1,32}\/[\w.+-]{1,32}( \([\x20-\x27\x2a-\x7e]{1,64}\))?( [\w.-]{1,32}\/[\w.+-]{1,32}( \([\x20-\x27\x2a-\x7e]{1,64}\))?)*$/;
const OURS = ['ilink-app-id', 'ilink-app-clientversion', 'authorizationtype', 'x-wechat-uin', 'authorization', 'skroutetag'];

// Members that stand there and are not in the list.
const strangers = (object, known, where) => Object.keys(object ?? {}).filter((key) => !known.includes(key))
  .map((key) => `${where}: unknown member ${key}`);

// `uins` are the values of X-WECHAT-UIN seen so far; a repeated one is wrong.
export function headersWrong({ method, headers }, authenticated, uins) {
  const wrong = [];
  if (headers['ilink-app-id'] !== 'bot') wrong.push('iLink-App-Id is not bot');
  const version = headers['ilink-app-clientversion'];
  if (!/^\d+$/.test(version ?? '') || Number(version) > 0xffffff) wrong.push('iLink-App-ClientVersion is not a version');
  if (method !== 'POST') return wrong;
  if (!/^application\/json\b/.test(headers['content-type'] ?? '')) wrong.push('Content-Type is not application/json');
  if (headers.authorizationtype !== 'ilink_bot_token') wrong.push('AuthorizationType is not ilink_bot_token');
  const uin = headers['x-wechat-uin'] ?? '';
  const number = Buffer.from(uin, 'base64').toString('latin1');
  if (!/^(0|[1-9]\d{0,9})$/.test(number) || Number(number) > 0xffffffff || Buffer.from(number).toString('base64') !== uin) {
    wrong.push('X-WECHAT-UIN is not base64 of a decimal uint32');
  } else if (uins.has(uin)) wrong.push('X-WECHAT-UIN is not new');
  uins.add(uin);
  if (authenticated !== /^Bearer \S+$/.test(headers.authorization ?? '')) {
    wrong.push(authenticated ? 'no Authorization' : 'Authorization where there is none');
  }
  return wrong;
}

export const cdnHeadersWrong = ({ headers }) => OURS.filter((name) => headers[name]).map((name) => `${name} on the CDN`);

export function baseInfoWrong(info) {
  if (!info || typeof info !== 'object') return ['no base_info'];
  const wrong = strangers(info, ['channel_version', 'bot_agent'], 'base_info');
  if (!/^\d+\.\d+\.\d+$/.test(info.channel_version ?? '')) wrong.push('channel_version is not a version');
  if (info.bot_agent !== undefined && (!AGENT.test(info.bot_agent) || info.bot_agent.length > 256)) {
    wrong.push('bot_agent is not name/version');
  }
  return wrong;
}

// `uploads` maps what the CDN gave for an upload to {key, raw, sealed}.
export function messageWrong(msg, uploads) {
  if (!msg || typeof msg !== 'object') return ['no msg'];
  const wrong = strangers(msg, ['from_user_id', 'to_user_id', 'client_id', 'message_type', 'message_state', 'item_list',
    'context_token', 'run_id'], 'msg');
  if (msg.from_user_id !== '') wrong.push('from_user_id is not empty');
  if (typeof msg.to_user_id !== 'string' || !msg.to_user_id) wrong.push('no to_user_id');
  if (typeof msg.client_id !== 'string' || !msg.client_id) wrong.push('no client_id');
  if (msg.message_type !== 2) wrong.push('message_type is not 2');
  if (msg.message_state !== 2) wrong.push('message_state is not 2');
  if (!Array.isArray(msg.item_list) || msg.item_list.length !== 1) return [...wrong, 'not exactly one item'];
  return [...wrong, ...itemWrong(msg.item_list[0], uploads)];
}

const PAYLOADS = { 1: 'text_item', 2: 'image_item', 4: 'file_item' };

function itemWrong(item, uploads) {
  const name = PAYLOADS[item.type];
  if (!name || !item[name]) return [`an item of type ${item.type} without ${name}`];
  const wrong = strangers(item, ['type', name], 'item');
  const payload = item[name];
  if (item.type === 1) {
    if (typeof payload.text !== 'string' || !payload.text) wrong.push('no text');
    return [...wrong, ...strangers(payload, ['text'], name)];
  }
  const upload = uploads.get(payload.media?.encrypt_query_param);
  if (!upload) return [...wrong, 'media that was not uploaded'];
  wrong.push(...strangers(payload.media, ['encrypt_query_param', 'aes_key', 'encrypt_type'], 'media'));
  if (payload.media.aes_key !== Buffer.from(upload.key).toString('base64')) wrong.push('aes_key is not that of the upload');
  if (payload.media.encrypt_type !== 1) wrong.push('encrypt_type is not 1');
  if (item.type === 2) {
    if (payload.mid_size !== upload.sealed) wrong.push('mid_size is not the size of what was uploaded');
    return [...wrong, ...strangers(payload, ['media', 'mid_size'], name)];
  }
  if (payload.len !== String(upload.raw.length)) wrong.push('len is not the size of the file, as a string');
  if (typeof payload.file_name !== 'string' || !payload.file_name) wrong.push('no file_name');
  return [...wrong, ...strangers(payload, ['media', 'file_name', 'len'], name)];
}

export function uploadWrong(body) {
  const wrong = strangers(body, ['filekey', 'media_type', 'to_user_id', 'rawsize', 'rawfilemd5', 'filesize', 'aeskey',
    'no_need_thumb', 'base_info'], 'getuploadurl');
  for (const name of ['filekey', 'rawfilemd5', 'aeskey']) if (!HEX32.test(body[name] ?? '')) wrong.push(`${name} is not 32 hex digits`);
  if (![1, 2, 3, 4].includes(body.media_type)) wrong.push('no media_type');
  if (!Number.isSafeInteger(body.rawsize) || body.rawsize < 0) wrong.push('no rawsize');
  else if (body.filesize !== sealedBytes(body.rawsize)) wrong.push('filesize is not that of the sealed file');
  if (body.no_need_thumb !== true) wrong.push('no thumb and no no_need_thumb');
  return wrong;
}

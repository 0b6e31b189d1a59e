// SPDX-License-Identifier: Apache-2.0
//
// Bytes that a connection may send, good and bad, and what must come of them. Used against the running
// server (refusals.test.mjs) and against Node's parser (http1.test.mjs). The same names stand in
// tests/unit/net/test_http1.c, which knows more variants of each.
//
// A row: id; bytes; statuses, all responses in order; close, whether the connection ends behind the last
// one; and, where needed, headers the last response must have, or which responses answer a HEAD.

const HOST = 'Host: localhost\r\n';
const LINE = 'GET /healthz HTTP/1.1\r\n';
const GET = LINE + HOST;
const REQUEST = GET + '\r\n';
const CHUNKED = GET + 'Transfer-Encoding: chunked\r\n\r\n';
const DONE = '0\r\n\r\n';
const LOGIN = 'POST /api/v1/session HTTP/1.1\r\n' + HOST + 'Content-Type: application/json\r\n';

// The largest body of POST /api/v1/session.
export const BODY_BYTES_MAX = 16 * 1024;

// Statuses that the parser gives; behind them the connection cannot be used any more.
export const REFUSALS = { 400: 'bad_request', 413: 'too_large', 414: 'uri_too_long', 417: 'expectation_failed',
  431: 'head_too_large', 501: 'not_implemented', 505: 'version_not_supported' };
export const CODES = { ...REFUSALS, 403: 'forbidden_host', 404: 'not_found', 405: 'method_not_allowed',
  415: 'unsupported_type' };

// One character is one byte.
function row(id, text, statuses, more = {}) {
  statuses = [statuses].flat();
  return { id, bytes: Buffer.from(text, 'latin1'), statuses, close: statuses.at(-1) in REFUSALS, ...more };
}

const field = (id, lines, statuses = 400, more) => row(id, GET + lines + '\r\n', statuses, more);
const line = (id, requestLine, statuses = 400, more) => row(id, `${requestLine}\r\n${HOST}\r\n`, statuses, more);
const target = (id, text, statuses = 400, more) => line(id, `GET ${text} HTTP/1.1`, statuses, more);
const host = (id, value, statuses = 400) => row(id, `${LINE}Host: ${value}\r\n\r\n`, statuses);
const length = (id, value, statuses = 400) => field(id, `Content-Length: ${value}\r\n`, statuses);
const coding = (id, value, statuses = 400) =>
  row(id, `${GET}Transfer-Encoding: ${value}\r\n\r\n${DONE}`, statuses);
const chunks = (id, text, statuses = 400) => row(id, CHUNKED + text, statuses);

const CONTROLS = [...Array(32).keys(), 127].filter((c) => c !== 9 && c !== 10 && c !== 13);

export const rows = [
  // Request line and fields.
  row('H1', REQUEST, 200),
  row('H2', LINE + '\r\n', 400),
  field('H3-same', HOST),
  field('H3-different', 'Host: other\r\n'),
  host('H4-space', 'a b'),
  host('H4-slash', 'a/../b'),
  host('H4-user', 'a@b'),
  host('H4-empty', ''),
  host('H4-port', 'localhost:8x'),
  host('H4-v6-open', '[::1'),
  host('H5', 'evil.example', 403),
  row('H6', 'GET http://localhost/healthz HTTP/1.1\r\nHost: evil.example\r\n\r\n', 200),
  row('H6-evil', 'GET http://evil.example/healthz HTTP/1.1\r\n' + HOST + '\r\n', 403),
  row('H7', '\r\n' + REQUEST, 200),
  row('H7-between', REQUEST + '\r\n' + REQUEST, [200, 200]),
  row('H8-two', '\r\n\r\n' + REQUEST, 400),
  row('H8-lf', '\n' + REQUEST, 400),
  row('H8-cr', '\r' + REQUEST, 400),
  row('H8-space', ' ' + REQUEST, 400),
  row('H9', 'GET /healthz\r\n', 400),
  line('H10', 'GET /healthz HTTP/1.2', 200),
  line('H11', 'GET /healthz HTTP/2.0', 505),
  row('H11-preface', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 505),
  line('H12-10', 'GET /healthz HTTP/1.10'),
  line('H12-none', 'GET /healthz HTTP/1.'),
  line('H12-lower', 'GET /healthz http/1.1'),
  line('H12-cr', 'GET /healthz HTTP/\r\r1.1'),
  line('H12-wrap', 'GET /healthz HTTP/4294967297.1'),
  row('H13', 'GET /healthz HTTP/1.0\r\n\r\n', 200, { close: true }),
  row('H13-keep', 'GET /healthz HTTP/1.0\r\nConnection: keep-alive\r\n\r\n', 200,
    { headers: { connection: /^keep-alive$/i } }),
  line('H14-two', 'GET  /healthz HTTP/1.1'),
  line('H14-two-later', 'GET /healthz  HTTP/1.1'),
  line('H14-tab', 'GET\t/healthz HTTP/1.1'),
  line('H14-tab-later', 'GET /healthz\tHTTP/1.1'),
  line('H14-none', 'GET/healthz HTTP/1.1'),
  line('H14-none-later', 'GET /healthzHTTP/1.1'),
  line('H14-trailing', 'GET /healthz HTTP/1.1 '),
  line('H15', 'GET /healthz\nHTTP/1.1'),
  row('H16-line', 'GET /healthz HTTP/1.1\n' + HOST + '\r\n', 400),
  row('H16-field', LINE + 'Host: localhost\n\r\n', 400),
  row('H16-last', GET + '\n', 400),
  field('H17', 'X: a\rb\r\n'),
  field('H17-smuggle', 'Visible: x\rSmuggled: y\r\n'),
  field('H18-value', 'X: a\0b\r\n'),
  field('H18-name', 'X\0Y: a\r\n'),
  target('H18-target', '/healthz\0'),
  ...CONTROLS.map((c) => field(`H19-${c.toString(16).padStart(2, '0')}`, `X: a${String.fromCharCode(c)}b\r\n`)),
  field('H20', 'X: \x80\xff\r\n', 200),
  coding('H21-coding', '\xa0chunked'),
  length('H21-length', '\x855'),
  field('H22-space', 'Content-Length : 0\r\n'),
  field('H22-tab', 'Content-Length\t: 0\r\n'),
  row('H23', LINE + ' ' + HOST + '\r\n', 400),
  field('H24-space', 'X: a\r\n b\r\n'),
  field('H24-tab', 'X: a\r\n\tb\r\n'),
  field('H25-empty', ': x\r\n'),
  field('H25-no-colon', 'abc\r\n'),
  field('H25-8bit', 'X\x80: a\r\n'),
  ...[...'(),/;<=>?@[]{}"'].map((c) => field(`H25-${c}`, `a${c}b: x\r\n`)),
  field('H26', 'Transfer-\r\nEncoding: chunked\r\n'),
  line('H27', 'G=":<> /healthz HTTP/1.1'),
  line('H27-control', 'G\x01T /healthz HTTP/1.1'),
  row('H27-tls', '\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03', 400),
  line('H28', 'FOO /healthz HTTP/1.1', 501),
  line('H28-lower', 'get /healthz HTTP/1.1', 501),
  line('H28-long', 'M'.repeat(5000) + ' /healthz HTTP/1.1', 501),
  line('H28-connect', 'CONNECT localhost:1 HTTP/1.1', 501),
  line('H28-trace', 'TRACE /healthz HTTP/1.1', 501),
  line('H29', 'POST /healthz HTTP/1.1', 405, { headers: { allow: /\bGET\b.*\bHEAD\b/ } }),
  target('H30', '/' + 'a'.repeat(9 * 1024), 414),
  field('H31-field', `X: ${'x'.repeat(17 * 1024)}\r\n`, 431),
  field('H31-fields', `X: ${'x'.repeat(168)}\r\n`.repeat(99), 431),
  field('H31-count', 'X: y\r\n'.repeat(100), 431),
  target('H32-space', '/a b'),
  target('H32-8bit', '/\x80'),
  target('H32-quote', '/"'),
  target('H32-less', '/<'),
  target('H32-backslash', '/\\'),
  target('H32-fragment', '/healthz#a'),
  target('H33-letters', '/%zz'),
  target('H33-lone', '/%'),
  target('H33-nul', '/%00'),
  target('H34-escaped', '/static/..%2f..%2fetc/passwd', 404),
  target('H34-dots', '/static/%2e%2e/x', 404),
  target('H34-four', '/static/....//x', 404),
  target('H34-slashes', '//evil/x', 404),
  target('H35', '*'),
  line('H35-options', 'OPTIONS * HTTP/1.1', 204, { headers: { allow: /\bGET\b/ } }),
  row('H37', LOGIN + `Expect: 100-continue\r\nContent-Length: ${BODY_BYTES_MAX + 1}\r\n\r\n`, 413),
  field('H38', 'Expect: x\r\n', 417),
  field('H38-list', 'Expect: 100-continue, x\r\n', 417),
  row('H39', GET + 'Connection: close\r\n\r\n' + REQUEST, 200, { close: true }),
  row('H40', REQUEST.repeat(20), Array(20).fill(200)),
  row('H41', REQUEST.replace('GET', 'HEAD') + REQUEST, [200, 200], { heads: [0] }),
  field('H42', 'Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n', 200),

  // Where a message ends.
  field('F1', 'Content-Length: 5\r\nTransfer-Encoding: chunked\r\n'),
  field('F1-other', 'Transfer-Encoding: chunked\r\nContent-Length: 5\r\n'),
  field('F2', 'Content-Length: 5\r\nContent-Length: 6\r\n'),
  field('F3', 'Content-Length: 5\r\nContent-Length: 5\r\n'),
  length('F3-list', '5, 5'),
  length('F4', ''),
  field('F4-then', 'Content-Length:\r\nContent-Length: 43\r\n'),
  ...['+5', '-5', '0x5', '5 5', '5a', '1_0', '5.0', '"5"'].map((value) => length(`F5-${value}`, value)),
  row('F6', GET + 'Content-Length: 010\r\n\r\n' + '0123456789' + REQUEST, [200, 200]),
  length('F7-63', '9223372036854775807', 413),
  length('F7-63-over', '9223372036854775808', 413),
  length('F7-64-over', '18446744073709551616', 413),
  length('F7-40', '1234567890'.repeat(4), 413),
  row('F8', GET + 'Content-Length: 5\r\n\r\n' + 'GET /' + REQUEST, [200, 200]),
  row('F9', 'GET /healthz HTTP/1.0\r\n' + HOST + 'Transfer-Encoding: chunked\r\n\r\n' + DONE, 400),
  coding('F10-gzip', 'gzip, chunked', 501),
  coding('F10-identity', 'identity'),
  coding('F10-garbage', 'blegh'),
  coding('F11-last', 'chunked, gzip'),
  coding('F11-twice', 'chunked, chunked'),
  coding('F11-lines', 'chunked\r\nTransfer-Encoding: chunked'),
  coding('F11-lines-other', 'chunked\r\nTransfer-Encoding: identity'),
  coding('F12-before', ',chunked'),
  coding('F12-behind', 'chunked,'),
  coding('F12-prefix', 'xchunked'),
  coding('F12-double', 'chunkedchunked'),
  coding('F12-quote', '"chunked"'),
  coding('F12-parameter', 'chunked;a=b'),
  coding('F12-case', 'Chunked', 200),
  ...['0x5', '+5', '-1', ' 5', '5 ', '5_0', '', 'G'].map((size) => chunks(`F13-${size}`, `${size}\r\nhello\r\n${DONE}`)),
  chunks('F14-17', '10000000000000000\r\n'),
  chunks('F14-64', 'ffffffffffffffff\r\n', 413),
  chunks('F14-63', '7fffffffffffffff\r\n', 413),
  chunks('F15', `${'0'.repeat(40)}5\r\nhello\r\n${DONE}`),
  chunks('F16-lf', `5\nhello\r\n${DONE}`),
  chunks('F16-cr', `5\rhello\r\n${DONE}`),
  chunks('F16-crcr', `5\r\r\nhello\r\n${DONE}`),
  chunks('F16-x', `5\rX\r\nhello\r\n${DONE}`),
  chunks('F17-none', `5\r\nhello${DONE}`),
  chunks('F17-many', `5\r\nhello!\r\n${DONE}`),
  chunks('F17-few', `5\r\nhell\r\n${DONE}`),
  chunks('F18', `5;a=b;c="d"\r\nhello\r\n${DONE}`, 200),
  chunks('F19-cr', `5;a=\rb\r\nhello\r\n${DONE}`),
  chunks('F19-quote', `5;a="b\r\nhello\r\n${DONE}`),
  chunks('F19-long', `5;${'a'.repeat(1024)}\r\nhello\r\n${DONE}`),
  chunks('F20', '0\r\nXX\r\n'),
  chunks('F21', '5\r\nhello\r\n0\r\nContent-Length: 9\r\nHost: evil.example\r\nAuthorization: x\r\n' +
    'Transfer-Encoding: gzip\r\n\r\n' + REQUEST, [200, 200]),
  chunks('F22', `0\r\nX: ${'x'.repeat(4096)}\r\n\r\n`, 431),
  row('F25', LOGIN + 'Transfer-Encoding: chunked\r\n\r\n' + `400\r\n${'x'.repeat(1024)}\r\n`.repeat(17), 413),
  row('F27', LOGIN + `Content-Length: ${BODY_BYTES_MAX + 1}\r\n\r\n` + REQUEST.repeat(3), 413),
  row('F28', LOGIN + 'Content-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}', 415, { close: undefined }),
  chunks('F29', `5\r\nhello\r\n${DONE}\0`, [200, 400]),
];

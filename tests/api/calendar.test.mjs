// SPDX-License-Identifier: Apache-2.0
//
// The calendar for other programs: GET /calendar.ics, read by a parser that takes only what RFC 5545 has.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';

import { assertProblem, bearer, call, Home } from './home.mjs';

const PATH = '/api/v1/agent/calendar.ics';
const LINE_OCTETS_MAX = 75;
const CREATED = Date.UTC(2026, 10, 15, 9, 12, 13, 999);

// Events as they are stored: {id, owner, title, start, end, location?, attendees?, sharedWith?}.
const EVENTS = [
  { id: 'evt_1', owner: 'ann', title: '评审会', start: '2026-11-16T15:00:00+08:00', end: '2026-11-16T16:00:00+08:00' },
  {
    id: 'evt_2', owner: 'ann', title: `"Q4": plan; part 1, \\o/ ${'很长的标题🎉'.repeat(12)}`, location: 'Room 1\nFloor 2',
    attendees: ['Ann', 'bob, the other', 'zoe@example.org'], start: '2026-12-31T23:30:00-05:00', end: '2027-01-01T00:30:00-05:00',
  },
  { id: 'evt_3', owner: 'ann', title: 'moment', start: '2026-11-16T15:00:00Z', end: '2026-11-16T15:00:00Z' },
  { id: 'evt_4', owner: 'bob', title: 'a secret of bob', start: '2026-11-16T15:00:00Z', end: '2026-11-16T16:00:00Z' },
  { id: 'evt_5', owner: 'bob', title: 'shared by bob', start: '2026-11-16T15:00:00Z', end: '2026-11-16T16:00:00Z', sharedWith: 'ann' },
  { id: 'evt_6', owner: 'eve', title: 'x\r\nEND:VEVENT\r\nBEGIN:VALARM', start: '2026-11-16T15:00:00Z', end: '2026-11-16T16:00:00Z' },
];

const quoted = (text) => `'${text.replaceAll("'", "''")}'`;
const COLUMNS = 'id, owner, call_id, start_utc, end_utc, created, start_time, end_time, title, location, attendees';

function insertOf({ id, owner, title, start, end, location = '', attendees = [], sharedWith }) {
  const values = [quoted(id), quoted(owner), quoted(`call_${id}`), Date.parse(start), Date.parse(end), CREATED, quoted(start), quoted(end),
    quoted(title), quoted(location), quoted(JSON.stringify(attendees))];
  const share = sharedWith ? `INSERT INTO calendar_shares (event, target) VALUES (${quoted(id)}, ${quoted(sharedWith)});` : '';
  return `INSERT INTO calendar_events (${COLUMNS}) VALUES (${values.join(', ')});${share}`;
}

// 36 MiB of calendar: more than an answer holds.
const HUGE = `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 900)
  INSERT INTO calendar_events (${COLUMNS})
  SELECT 'huge' || i, 'hugo', 'c' || i, i, i + 1, 1, '', '', printf('%.*c', 40000, 'x'), '', '[]' FROM n;`;

let home, server, cleanUp;
const keys = {};
before(async () => {
  home = await Home.make({ after: (fn) => { cleanUp = fn; } });
  await home.start();
  for (const user of ['ann', 'bob', 'carol', 'eve', 'hugo']) keys[user] = bearer(await home.addKey(user));
  await home.stop();
  execFileSync('sqlite3', [join(home.data, 'fermata.db')], { input: EVENTS.map(insertOf).join('\n') + HUGE });
  server = await home.start();
});
after(() => cleanUp?.());

const unescaped = (text) => text.replace(/\\([\\;,nN])/g, (_, c) => (c === 'n' || c === 'N' ? '\n' : c));

// The events of a calendar, each an object of its properties. Refuses what is not to the letter.
function parse(text) {
  assert.ok(text.endsWith('\r\n'));
  const folded = text.slice(0, -2).split('\r\n');
  for (const line of folded) {
    assert.ok(line.length > 0 && Buffer.byteLength(line) <= LINE_OCTETS_MAX, line);
    assert.doesNotMatch(line, /[\0-\x08\x0a-\x1f\x7f\ufffd]/, 'no control character and no cut character');
  }
  const lines = folded.join('\r\n').replaceAll('\r\n ', '').split('\r\n');
  const head = lines.splice(0, 4);
  assert.deepEqual(head.slice(0, 2), ['BEGIN:VCALENDAR', 'VERSION:2.0']);
  assert.match(head[2], /^PRODID:-\/\/Fermata\/\/.+\/\/EN$/);
  assert.equal(head[3], 'CALSCALE:GREGORIAN');
  assert.equal(lines.pop(), 'END:VCALENDAR');
  const events = [];
  let open = null;
  for (const line of lines) {
    const [, name, value] = /^([A-Z]+):(.*)$/.exec(line) ?? assert.fail(line);
    if (name === 'BEGIN') {
      assert.deepEqual([value, open], ['VEVENT', null]);
      open = {};
    } else if (name === 'END') {
      assert.equal(value, 'VEVENT');
      events.push(open);
      open = null;
    } else {
      assert.ok(!(name in open), `${name} once`);
      open[name] = name.startsWith('DT') ? value : unescaped(value);
    }
  }
  assert.equal(open, null);
  return events;
}

async function eventsOf(user) {
  const answer = await call(server, 'GET', PATH, { headers: keys[user] });
  assert.equal(answer.status, 200, answer.text);
  assert.equal(answer.headers['content-type'], 'text/calendar; charset=utf-8');
  assert.equal(answer.headers['content-disposition'], 'attachment; filename="calendar.ics"');
  return parse(answer.text);
}

const stamp = (time) => new Date(time).toISOString().replace(/[-:]|\.\d+/g, '');
const expected = ({ id, title, start, end, location, attendees }) => ({
  UID: id, DTSTAMP: stamp(CREATED), DTSTART: stamp(start), ...(start === end ? {} : { DTEND: stamp(end) }), SUMMARY: title,
  ...(location ? { LOCATION: location } : {}), ...(attendees ? { DESCRIPTION: `参加者 / Attendees: ${attendees.join(', ')}` } : {}),
});

describe('the calendar of', () => {
  test('ann has her own events whole, and not what bob shared with her', async () => {
    const events = await eventsOf('ann');
    assert.deepEqual(events.map(({ UID }) => UID), ['evt_1', 'evt_3', 'evt_2'], 'by their end');
    for (const event of events) assert.deepEqual(event, expected(EVENTS.find(({ id }) => id === event.UID)));
    assert.deepEqual([events[0].DTSTART, events[0].DTEND], ['20261116T070000Z', '20261116T080000Z'], 'in UTC');
  });

  test('bob has his', async () => {
    assert.deepEqual((await eventsOf('bob')).map(({ SUMMARY }) => SUMMARY), ['a secret of bob', 'shared by bob']);
  });

  test('carol is empty', async () => {
    assert.deepEqual(await eventsOf('carol'), []);
  });

  test('eve has one event, whatever its title says', async () => {
    assert.deepEqual((await eventsOf('eve')).map(({ SUMMARY }) => SUMMARY), ['x\nEND:VEVENT\nBEGIN:VALARM']);
  });

  test('hugo is refused as too large', async () => {
    assertProblem(await call(server, 'GET', PATH, { headers: keys.hugo }), 413, 'too_large');
  });

  test('nobody needs a key', async () => {
    assertProblem(await call(server, 'GET', PATH), 401, 'unauthenticated');
  });
});

test('the same bytes every time', async () => {
  const texts = [];
  for (let i = 0; i < 2; i++) texts.push((await call(server, 'GET', PATH, { headers: keys.ann })).text);
  assert.equal(texts[0], texts[1]);
});

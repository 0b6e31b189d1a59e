// SPDX-License-Identifier: Apache-2.0
//
// Facts as the database has them, read without the server's code: rows of `events`, one for each fact, from before version
// 12 of the schema, and rows of `facts`, several in each. docs/STORAGE.md has the form of the latter.

import { execFileSync } from 'node:child_process';
import { join } from 'node:path';

// Rows of both tables, in the order of their facts. `hex` is null for one of the old table.
export const FACT_COLUMNS = 'thread first_seq last_seq run_id type at data hex';
export const FACT_ROWS = `
  SELECT thread, seq AS first_seq, seq AS last_seq, run_id, type, at, data, NULL AS hex FROM events
  UNION ALL SELECT thread, first_seq, last_seq, NULL, NULL, NULL, NULL, hex(bytes) FROM facts ORDER BY 1, 2`;

// The facts of such a row: {thread, seq, type, run_id, at, data}.
export function unpackFacts({ thread, first_seq: first, last_seq: last, run_id: run, type, at, data, hex }) {
  if (hex === null) return [{ thread, seq: first, type, run_id: run, at, data }];
  const bytes = Buffer.from(hex, 'hex'), facts = [];
  const broken = () => new Error(`the row of facts ${first} to ${last} of thread ${thread} is damaged`);
  let place = 0, before = { run_id: '', at: 0 };
  const take = (length) => {
    if (!(place + length <= bytes.length)) throw broken();
    return bytes.subarray(place, place += length);
  };
  const number = () => {
    let value = 0, byte;
    for (let unit = 1; ; unit *= 128) {
      [byte] = take(1);
      value += (byte % 128) * unit;
      if (byte < 128) return value;
    }
  };
  for (let seq = first; seq <= last; seq++) {
    const since = number(), length = number(), size = number(), end = bytes.indexOf(0, place);
    if (end < 0) throw broken();
    const name = take(end - place).toString();
    take(1);
    before = {
      thread, seq, type: name,
      run_id: length ? take(length - 1).toString() : before.run_id,
      at: before.at + (since % 2 ? -(since + 1) / 2 : since / 2),
      data: take(size).toString(),
    };
    facts.push(before);
  }
  if (place !== bytes.length || !facts.length) throw broken();
  return facts;
}

// The bytes of a row with this one fact, as SQL.
export function packFact({ type, run_id: run, data }) {
  const short = (text, more = 0) => {
    if (Buffer.byteLength(text) + more > 127) throw new Error('too long for one byte');
    return Buffer.byteLength(text) + more;
  };
  return `x'${Buffer.from([0, short(run, 1), short(data), ...Buffer.from(`${type}\0${run}${data}`)]).toString('hex')}'`;
}

// Facts in a database, by thread and number. `flags` are those of sqlite3, `where` is SQL about rows.
export function storedFacts(folder, { flags = ['-readonly'], where = 'true' } = {}) {
  const text = execFileSync('sqlite3', [...flags, '-json', join(folder, 'fermata.db'), `SELECT * FROM (${FACT_ROWS}) WHERE ${where}`],
    { encoding: 'utf8', maxBuffer: 2 ** 28 });
  return (text.trim() ? JSON.parse(text) : []).flatMap(unpackFacts);
}

// SPDX-License-Identifier: Apache-2.0
//
// The program says what it said: every conversation of the table is played, and what all surfaces said is compared, byte for
// byte, with the recording. `node tests/corpus/record.mjs --write PROGRAM` makes the recording anew, when another word is meant.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { describe, test } from 'node:test';

import { buildFolder } from '../api/server.mjs';
import { CONVERSATIONS } from './conversations.mjs';
import { difference, MODEL, record, recorded } from './record.mjs';

const CONVERSATIONS_MIN = 200;
const KINDS = [...new Set(CONVERSATIONS.map(({ kind }) => kind))];

describe('the recorded conversations', () => {
  const expected = recorded();
  let got = null;
  const same = (t, names) => {
    if (!got) {
      t.skip('nothing was played');
      return;
    }
    const pick = (said) => Object.fromEntries(names.map((name) => [name, said[name]]));
    const found = difference(pick(expected), pick(got));
    if (found) assert.fail(found);
  };

  test('are those of the table, and enough', () => {
    assert.ok(CONVERSATIONS.length >= CONVERSATIONS_MIN);
    assert.deepEqual(Object.keys(expected).sort(), [...CONVERSATIONS.map(({ name }) => name), MODEL].sort());
  });

  test('are played to their end', async () => {
    const { said, failures } = await record(join(buildFolder(), 'fermata'));
    got = said;
    assert.deepEqual(failures, []);
  });

  for (const kind of KINDS) {
    const names = CONVERSATIONS.filter((one) => one.kind === kind).map(({ name }) => name);
    test(`${kind}: ${names.length}`, (t) => same(t, names));
  }
  test(MODEL, (t) => same(t, [MODEL]));
});

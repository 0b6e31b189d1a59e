// SPDX-License-Identifier: Apache-2.0
//
// What differs from run to run gets a name that does not: ids, bindings, cursors, codes, signatures by the order in which
// they first appear, times and ports by one word. An id keeps its kind: int_1, att_2. Everything else stays, byte for byte.

const DIGIT = '[0-9a-hjkmnp-tv-z]';
const ID = new RegExp(`(?<![0-9A-Za-z])(?:([a-z]+)_)?(${DIGIT}{26})(?![0-9A-Za-z])`, 'g');
const KEY = /fk_[0-9a-z]{26}_[A-Za-z0-9_-]{43}/g;
const COOKIE = /(?<=fermata_session=)[A-Za-z0-9_.-]+/g;
const TICKET = /(?<="ticket":"|[?&]ticket=)[A-Za-z0-9_.-]+/g;
const BINDING = /(?<![0-9A-Za-z])[0-9a-f]{8}\.[A-Za-z0-9_-]{43}(?![0-9A-Za-z_-])/g;
const STORED = /(?<![0-9a-f])[0-9a-f]{2}\/([0-9a-f]{64})(?=\.call_)/g; // the bytes have ids in them
const SIGNED = /\bexp=\d{10}&sig=[A-Za-z0-9_-]+/g;
const TIME = /\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{3}|)Z/g;
const STAMP = /\bDTSTAMP:\d{8}T\d{6}Z/g;
const AGE = /\bmax-age=3[0-9]{3}\b/g; // what is left of the hour of a signed address
const CURSOR = /("next":"|[?&]cursor=)(\d[\d-]*)/g; // rows of all users are counted together
const MS = /("timestamp":)\d{13}(?!\d)/g;
const DAY_MS = 86_400_000;
const NEAR_MS = 400 * DAY_MS; // what was made now, or ends in some weeks; dates of the conversations lie further off

export class Names {
  #known = new Map(); // what it is -> its name
  #counts = new Map(); // kind -> how many there are

  // `places` are texts of this run with their words: [[text, word], ...].
  constructor(places = []) {
    this.places = places;
  }

  // The name of one thing of this kind.
  name(kind, thing) {
    const known = this.#known.get(`${kind} ${thing}`);
    if (known) return known;
    const count = (this.#counts.get(kind) ?? 0) + 1;
    const given = `${kind}_${count}`;
    this.#counts.set(kind, count);
    this.#known.set(`${kind} ${thing}`, given);
    return given;
  }

  of(text) {
    let out = text;
    for (const [found, word] of this.places) out = out.replaceAll(found, word);
    return out
      .replace(KEY, (key) => this.name('key', key))
      .replace(COOKIE, (cookie) => this.name('session', cookie))
      .replace(TICKET, (ticket) => this.name('ticket', ticket))
      .replace(BINDING, (binding) => this.name('binding', binding))
      .replace(STORED, (_, hash) => this.name('stored', hash))
      .replace(SIGNED, 'exp=<time>&sig=<signature>')
      .replace(ID, (_, kind, id) => this.name(kind ?? 'id', id))
      .replace(CURSOR, (_, before, cursor) => before + this.name('cursor', cursor))
      .replace(STAMP, 'DTSTAMP:<time>')
      .replace(AGE, 'max-age=<seconds>')
      .replace(MS, '$1<ms>')
      .replace(TIME, (time, ms) => (Math.abs(Date.parse(time) - Date.now()) < NEAR_MS ? (ms ? '<time.ms>' : '<time>') : time));
  }
}

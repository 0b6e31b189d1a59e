// SPDX-License-Identifier: Apache-2.0
//
// A provider's key is for the provider alone. It is planted, the provider repeats it in everything that it says about
// itself, whole and in pieces, and then it is looked for wherever anybody might look: on disk, in what the server prints,
// in events, history and error texts, in what it tells about its agents, and in what `fermata check` prints.

import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, test } from 'node:test';

import { failure, startFakeModel, text } from '../tools/fake-model.mjs';
import { inbox } from './asking.mjs';
import { call, Home } from './home.mjs';
import { KINDS, modelEnv, Scenes } from './modelled.mjs';
import { settle } from './people.mjs';
import { AGENT, accepted, get, history, isEnd, openEvents, user } from './talk.mjs';

const KEY = 'sk-planted-Zq81LmXw03Rt77HbVe5KcYs92dPf';
const PIECE = 10; // so much of it in a row is too much
const masked = `${KEY.slice(0, 8)}***${KEY.slice(-4)}`; // as providers show it

function assertNowhere(what, bytes) {
  const haystack = Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes);
  for (let at = 0; at + PIECE <= KEY.length; at++) {
    assert.ok(!haystack.includes(KEY.slice(at, at + PIECE)), `${what} holds ${PIECE} bytes of the key, from byte ${at} on`);
  }
  for (const form of ['base64', 'base64url', 'hex']) assert.ok(!haystack.includes(Buffer.from(KEY).toString(form)), `${what} holds the key as ${form}`);
}

// How a provider may give it away: {answers, and how the run then ends}.
const said = (words) => ({ message: words });
const SCENES = {
  'plain': [text('Hello.')],
  'unauthorized': [{ status: 401, error: said(`Incorrect API key provided: ${KEY}. You can find yours elsewhere.`) }],
  'masked': [{ status: 403, error: said(`The key ${masked} may not use this model.`) }],
  'bad request': [{ status: 400, error: said(`headers: {"x-api-key":"${KEY}","authorization":"Bearer ${KEY}"}`) }],
  'piece': [{ status: 404, error: said(`unknown project ${KEY.slice(5, 25)} of model`) }],
  'no JSON': [{ status: 400, plain: `<html>${KEY}</html>` }],
  'broken off': [{ ...text('Half.'), breaksOff: { after: 3, type: 'invalid_request_error', message: `key ${KEY} revoked` } }],
  'overloaded': [{ ...text('Half.'), breaksOff: { after: 3, message: `quota of ${KEY}` } }],
  'away': [failure(500, `upstream refused ${KEY}`), failure(503, KEY), failure(529, `x${KEY}x`), text('Back.')],
  'other type': [{ type: `text/${KEY}`, raw: 'x' }],
  'nonsense': [{ raw: `data: {"oops": "${KEY}"\n\n` }],
  'long': [{ status: 400, error: said(`${'x'.repeat(360)} ${KEY} ${'y'.repeat(300)}`) }],
};

for (const kind of KINDS) {
  describe(kind, () => {
    test('the key is found nowhere', async (t) => {
      const scenes = new Scenes(SCENES);
      const model = await startFakeModel({ kind, key: KEY, answers: scenes.answer, t });
      const home = await Home.make(t);
      const keyFile = join(await Home.make(t).then(({ data }) => data), 'key.txt'); // outside the data folder, as it should be
      await writeFile(keyFile, `${KEY}\n`);
      const env = modelEnv(kind, model, { FERMATA_LOG: 'debug', FERMATA_MODEL_API_KEY_FILE: keyFile });
      delete env.FERMATA_MODEL_API_KEY;
      home.env = env;
      const server = await home.start();
      let printed = '';
      server.proc.stdout.on('data', (piece) => { printed += piece; });

      const texts = [];
      for (const name of Object.keys(SCENES)) {
        const threadId = name.replaceAll(' ', '-');
        const events = await openEvents(t, server, threadId);
        await accepted(server, { threadId, messages: [user(name)] });
        const all = await events.until(isEnd);
        if (all.at(-1).data.outcome === 'interrupted') {
          const { interactions } = await inbox(server, `?threadId=${threadId}`);
          texts.push(['the inbox', JSON.stringify(interactions)]);
          await settle(server, interactions[0].interactionId, { decision: name === 'away' ? 'continue' : 'give_up' });
          all.push(...await events.until(isEnd));
        }
        events.close();
        texts.push([`the events of ${name}`, JSON.stringify(all)], [`the history of ${name}`, JSON.stringify(await history(server, threadId))]);
        texts.push([`the run of ${name}`, (await get(server, `/runs/${threadId}`)).text]);
      }
      for (const path of [`${AGENT}/agents`, `${AGENT}/agents/assistant/settings`, `${AGENT}/threads`, '/metrics', '/readyz', '/api/v1/openapi.json']) {
        texts.push([path, (await call(server, 'GET', path)).text]);
      }
      assert.ok(texts.some(([, said]) => said.includes('answered 401')), 'the reasons are told');
      assert.equal(model.unexpected, 0);
      assert.deepEqual(model.refused, []);
      assert.ok(model.requests.every(({ headers }) => JSON.stringify(headers).includes(KEY)), 'the provider has got it');

      for (const [what, words] of texts) assertNowhere(what, words);
      for (const [name, bytes] of await home.files()) assertNowhere(`${name}, while it runs`, bytes);
      const check = await home.run(['check']);
      assertNowhere('fermata check', check.stdout + check.stderr);
      await home.stop();
      assertNowhere('what the server printed', printed + server.stderr());
      for (const [name, bytes] of await home.files()) assertNowhere(`${name}, afterwards`, bytes);
      const checkAlone = await home.run(['check']);
      assertNowhere('fermata check of a stopped server', checkAlone.stdout + checkAlone.stderr);
    });

    test('a key in the environment is not printed either, also one that cannot be used', async (t) => {
      const model = await startFakeModel({ kind, key: KEY, answers: () => text('Hello.'), t });
      const home = await Home.make(t, modelEnv(kind, model));
      const good = await home.run(['check'], { FERMATA_MODEL_API_KEY: KEY });
      assertNowhere('fermata check', good.stdout + good.stderr);
      const bad = await home.run(['serve'], { FERMATA_LISTEN: '127.0.0.1:0', FERMATA_MODEL_API_KEY: `${KEY} ${KEY}` });
      assert.notEqual(bad.code, 0);
      assert.match(bad.stderr, /api_key/);
      assertNowhere('the refusal to start', bad.stdout + bad.stderr);
    });
  });
}

// SPDX-License-Identifier: Apache-2.0
//
// A server with chat channels, beside the platforms that the other files of this folder play.
//
//   const { home, ilink } = await startWeixin(t, { lines, config, ilink: { holdMs: 500 } });
//   ilink.say('alice', 'hello');
//   await ilink.waitForSend('Hello.');
//
// The channel is named wx, and anybody may write to it. Everything ends with the test.
//
//   const { home, lines } = await startLines(t, KINDS, { lines });   // all platforms, each with the same few verbs
//   await lines.telegram.ask('alice', 'book it', /approve (\d{6})/);

import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';

import { ASKING } from '../api/asking.mjs';
import { Home, postJson } from '../api/home.mjs';
import { AGENT, get, waitFor } from '../api/talk.mjs';
import { startBridge } from './hook.mjs';
import { startIlink } from './ilink.mjs';
import { startOa } from './oa.mjs';
import { startTelegram } from './telegram.mjs';

const SEND_MS_MAX = 60_000;

// Words in Chinese, as the seed tells it.
export const SEED = [
  { match: '^订会议', turns: [
    { calls: [{ name: 'ask_user', args: { question: '会议定在哪天？', choices: ['周一', '周二', '周三'] } }] },
    { text: '好的，就这么定。' },
  ] },
  ...ASKING,
];

// `channels` gives the lines for a folder, where `files` are, each with its text.
export async function startChannels(t, channels, { lines = SEED, files = {}, config = '', env = {} } = {}) {
  const home = await Home.make(t);
  for (const [name, text] of Object.entries(files)) await writeFile(join(home.data, name), text, { mode: 0o600 });
  const script = join(home.data, 'script.jsonl');
  await writeFile(script, lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
  const path = join(home.data, 'fermata.yaml');
  await writeFile(path, `channels:\n${channels(home.data).map((line) => `  ${line}\n`).join('')}${config}`);
  home.env = { FERMATA_MODEL_PROVIDER: 'scripted', FERMATA_SCRIPT: script, FERMATA_CONFIG: path, ...env };
  await home.start();
  return home;
}

export async function startWeixin(t, { ilink: options = {}, allow = 'allow: ["*"]', ...rest } = {}) {
  const ilink = await startIlink({ holdMs: 1000, ...options });
  t.after(() => ilink.close());
  const row = (folder) => [`wx: {kind: weixin, base_url: "${ilink.url}", token_file: "${folder}/wx.token"${allow ? `, ${allow}` : ''}}`];
  const home = await startChannels(t, row, { files: ilink.token ? { 'wx.token': ilink.token } : {}, ...rest });
  return { home, ilink };
}

// The texts a person has on the phone, in order.
export const seen = (ilink, user) => ilink.sends.filter((sent) => sent.to === `${user}@im.wechat`).map((sent) => sent.text);

// A promise and the function that keeps it: what waits for it goes on when the test says so.
export function latch() {
  let open;
  const opened = new Promise((resolve) => { open = resolve; });
  return { opened, open };
}

// All conversations of a person, newest first; and the one there is.
export async function conversations(server, user, headers) {
  const answer = await get(server, '/threads', headers);
  assert.equal(answer.status, 200, answer.text);
  return answer.json().threads;
}

export const channelList = async (server) => (await get(server, '/channels')).json().channels;

export async function channelState(server, name, state) {
  return waitFor(`${name} to be ${state}`, async () => (await channelList(server)).find((row) => row.name === name && row.state === state));
}

export const login = (server, name, body = {}) => postJson(server, `${AGENT}/channels/${name}/login`, body);

// A code that links a sender to a user.
export async function linkCode(home, channel, user, ...flags) {
  const { code, stdout, stderr } = await home.run(['channel', 'link', channel, '--user', user, ...flags]);
  assert.equal(code, 0, stderr);
  return stdout.trim();
}

// ---- the four platforms behind one face ----

// kind: its channel's name, its fake, its row of the configuration without the braces, and how people do things there.
// `quote` is what somebody else sent, as it stands in `sends`; of a press `under` is the message that shows the button.
const PLATFORMS = {
  weixin: {
    name: 'wx', start: () => startIlink({ holdMs: 1000 }), files: (fake) => ({ 'wx.token': fake.token }),
    row: (fake, folder) => `base_url: "${fake.url}", token_file: "${folder}/wx.token"`,
    id: (fake, who) => `${who}@im.wechat`, to: (sent) => sent.to,
    say: (fake, who, text, { quote } = {}) => fake.say(who, text, quote ? { quote: quote.id } : {}),
    again: (fake, said) => fake.repeat(said.id),
  },
  telegram: {
    name: 'tg', start: () => startTelegram({ holdMs: 1000 }), files: (fake) => ({ 'tg.token': fake.token }),
    row: (fake, folder) => `base_url: "${fake.url}", token_file: "${folder}/tg.token"`,
    id: (fake, who, group) => (group ? fake.chatOf(who, group).id : fake.id(who)), to: (sent) => sent.chat,
    say: (fake, who, text, { quote, group } = {}) => fake.say(who, text, { ...quote && { reply: quote }, ...group && { group } }),
    press: (fake, who, data, { under }) => {
      const message = fake.message(under.id);
      message.buttons = [...message.buttons, { data, label: data.slice(0, 20) }];
      return fake.press(under, data, { by: who });
    },
    again: (fake, said) => fake.repeat(said),
  },
  wechat_oa: {
    name: 'oa', start: () => startOa({ mode: 'safe' }),
    files: (fake) => ({ 'oa.token': fake.token, 'oa.secret': fake.secret, 'oa.key': fake.aesKey }),
    row: (fake, folder) => `base_url: "${fake.url}", app_id: ${fake.appId}, token_file: "${folder}/oa.token", `
      + `secret_file: "${folder}/oa.secret", aes_key_file: "${folder}/oa.key"`,
    id: (fake, who) => fake.id(who), to: (sent) => sent.to,
    say: (fake, who, text) => fake.say(who, text),
    press: (fake, who, data) => fake.push(who, { MsgType: 'text', Content: '1', bizmsgmenuid: data }),
    again: (fake, said) => fake.repeat(said),
  },
  webhook: {
    name: 'own', start: () => startBridge({ answerId: ({ id }) => `theirs-${id}` }), files: (fake) => ({ 'own.secret': fake.secret }),
    row: (fake, folder) => `url: "${fake.url}", secret_file: "${folder}/own.secret"`,
    id: (fake, who, group) => group ?? who, to: (sent) => sent.to,
    say: (fake, who, text, { quote, group } = {}) => fake.say(group ?? who, text, { ...quote && { quoted: `theirs-${quote.id}` }, ...group && { group: true } }),
    press: (fake, who, data, { group } = {}) => fake.say(group ?? who, undefined, { button: data, ...group && { group: true } }),
    again: (fake, said) => fake.post(said.message),
  },
};
export const KINDS = Object.keys(PLATFORMS);

// A platform as its people see it.
export class Line {
  constructor(kind, fake) {
    Object.assign(this, { kind, fake, ...PLATFORMS[kind] });
    for (const name of ['say', 'press', 'again']) if (this[name]) this[name] = PLATFORMS[kind][name].bind(null, fake);
  }

  // What somebody, or a group, was sent, in order.
  seen(who, group) {
    const id = PLATFORMS[this.kind].id(this.fake, who, group);
    return this.fake.sends.filter((sent) => this.to(sent) === id);
  }

  // The first that fits, from the one with the number `from` on.
  async waitForSend(who, match, { from = 0, group } = {}) {
    const fresh = () => this.seen(who, group).slice(from);
    try {
      return await waitFor('', () => fresh().find(({ text }) => match.test(text ?? '')), SEND_MS_MAX);
    } catch {
      throw new Error(`${who} of ${this.name} is not sent ${match} but ${JSON.stringify(fresh().map(({ text }) => text))}`);
    }
  }

  // Says it, and resolves to what they are sent about it.
  async ask(who, text, match, options = {}) {
    const from = this.seen(who, options.group).length;
    await this.say(who, text, options);
    return this.waitForSend(who, match, { from, group: options.group });
  }

  // Makes the sender somebody of the server's.
  async link(home, who, user, ...flags) {
    return this.ask(who, `/link ${await linkCode(home, this.name, user, ...flags)}`, new RegExp(`(?:belongs to|已绑定到) ${user}`));
  }
}

// One server on all of these platforms, open for everybody: {home, lines}, a line for each kind.
// `allow` is what each row ends with.
export async function startLines(t, kinds, { allow = ', allow: ["*"]', ...options } = {}) {
  const lines = {};
  for (const kind of kinds) {
    const fake = await PLATFORMS[kind].start();
    t.after(() => fake.close());
    lines[kind] = new Line(kind, fake);
  }
  const list = Object.values(lines);
  const rows = (folder) => list.map((line) => `${line.name}: {kind: ${line.kind}, ${line.row(line.fake, folder)}${allow}}`);
  const files = Object.assign({}, ...list.map((line) => line.files(line.fake)));
  const home = await startChannels(t, rows, { ...options, files });
  for (const line of list) {
    if ('hook' in line.fake && line.kind !== 'telegram') line.fake.hook = `http://${home.server.host}:${home.server.port}${AGENT}/channels/${line.name}/webhook`;
  }
  return { home, lines };
}

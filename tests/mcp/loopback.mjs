// SPDX-License-Identifier: Apache-2.0
// Before a program of others: node --import ./loopback.mjs PROGRAM. Its servers listen on the loopback only, whatever
// they ask for, and say their port on standard error as "listening on 127.0.0.1:PORT": with PORT=0 nobody else does.
// And what a newer Node has that the conformance suite imports (not for what we run of it) is there by name.
import fs from 'node:fs';
import {register} from 'node:module';
import net from 'node:net';

const listen = net.Server.prototype._listen2; // after this, address() must know the port at once
net.Server.prototype._listen2 = function (address, port, type, ...rest) {
  const result = port >= 0 ? listen.call(this, '127.0.0.1', port, 4, ...rest) : listen.call(this, address, port, type, ...rest);
  if (port >= 0 && this.address()) console.error(`listening on 127.0.0.1:${this.address().port}`);
  return result;
};

const wrapper = `data:text/javascript,${encodeURIComponent(
  "export * from 'node:fs'; export {default} from 'node:fs'; export const globSync = () => [];")}`;
const hooks = `export const resolve = (name, context, next) =>
  name === 'fs' ? {url: ${JSON.stringify(wrapper)}, shortCircuit: true} : next(name, context);`;
if (!fs.globSync) register(`data:text/javascript,${encodeURIComponent(hooks)}`);

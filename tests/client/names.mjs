// SPDX-License-Identifier: Apache-2.0
//
// node --import names.mjs: packages under the names that their users know. Which of the installed versions a name stands
// for is told by PACKAGES, a JSON object of name -> file.

import { register } from 'node:module';

const hooks = `
  const packages = ${process.env.PACKAGES ?? '{}'};
  export const resolve = (name, context, next) => (Object.hasOwn(packages, name) ? { url: packages[name], shortCircuit: true } : next(name, context));
`;
register(`data:text/javascript,${encodeURIComponent(hooks)}`);

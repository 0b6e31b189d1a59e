// SPDX-License-Identifier: Apache-2.0
//
// What JSX becomes: the build puts these into every file that has some.
export { Fragment, h } from 'preact';

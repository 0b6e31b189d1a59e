// SPDX-License-Identifier: Apache-2.0
// Style sheets are imported for their effect: the build gathers them.
declare module '*.css';

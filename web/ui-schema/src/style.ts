// SPDX-License-Identifier: Apache-2.0
//
// The look: one sheet that all elements share, adopted and never written into a page, so that `style-src 'self'` is enough.
// Colours, fonts, gaps and corners come from custom properties of the host, `--ui-...`, with values of our own behind them.
//
// Status is a colour and a shape: `.s-...` draws the shape in front of a text. The shape is cut out of
// a border, which stays visible in forced colours; so do transparent borders.
// Numbers of a card (gap, columns, lines) are classes, since an attribute `style` would be refused: .g8 for a gap,
// .n2 for columns or lines.

import { Max } from './view.js';

const SHEET = `
:host {
  display: block; font-family: var(--ui-font, inherit);
  --ink: var(--ui-ink, light-dark(#1c2024, #eceef0));
  --quiet: var(--ui-quiet, color-mix(in srgb, var(--ink) 68%, var(--paper)));
  --paper: var(--ui-paper, light-dark(#fff, #1b1e22));
  --inset: var(--ui-inset, color-mix(in srgb, var(--ink) 4%, var(--paper)));
  --line: var(--ui-line, color-mix(in srgb, var(--ink) 13%, var(--paper)));
  --accent: var(--ui-accent, light-dark(#2759d6, #8db4ff));
  --radius: var(--ui-radius, 10px);
  --gap: var(--ui-gap, 12px);
}
:host([hidden]) { display: none }
* { box-sizing: border-box; min-width: 0; margin: 0; font: inherit }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px }
.root {
  container-type: inline-size; overflow: clip; overflow-clip-margin: 4px; color: var(--ink);
  font-size: .94em; line-height: 1.5; white-space: pre-wrap; overflow-wrap: anywhere;
}
.light { color-scheme: light }
.dark { color-scheme: dark }
slot { white-space: normal }

.badge {
  --c: var(--quiet); padding: 0 8px; font-size: .9em;
  border: 1px solid transparent; border-radius: 1em; color: var(--c); background: color-mix(in srgb, var(--c) 11%, transparent);
}
.secondary { --c: var(--ink) }
.ghost { --c: var(--accent) }
.primary { --b: var(--accent); --c: var(--ui-accent-ink, var(--paper)) }
.s-info { --c: var(--ui-info, var(--accent)); --m: circle(30%) }
.s-success { --c: var(--ui-success, light-dark(#1a7348, #62d49c)); --m: polygon(0 50%, 35% 100%, 100% 0, 35% 65%) }
.s-warning { --c: var(--ui-warning, light-dark(#8a5600, #efbd54)); --m: polygon(50% 0, 100% 100%, 0 100%) }
.s-error, .danger {
  --c: var(--ui-error, light-dark(#c1272d, #ff958c));
  --m: polygon(0 0, 50% 35%, 100% 0, 65% 50%, 100% 100%, 50% 65%, 0 100%, 35% 50%);
}
.s-pending { --c: var(--ui-pending, light-dark(#6547b8, #c0abff)); --m: inset(35% 0) }
[class*=s-]:not(div) { color: var(--c) }
button [class*=s-] { color: inherit }
[class*=s-]:not(div, svg)::before {
  content: ''; display: inline-block; border: .375em solid; margin-inline-end: var(--e, .45em); clip-path: var(--m);
}

.vertical { display: flex; flex-direction: column; gap: var(--gap) }
.horizontal { display: flex; flex-wrap: wrap; align-items: start; gap: 8px }
.horizontal:not(.j) > :is(.title, .body, .vertical) { flex: 1; min-width: 7em }
.horizontal > .vertical { gap: 4px }
.grid { display: grid; gap: var(--gap) }
.center { align-items: center }
.end { align-items: end }
.stretch { align-items: stretch }
.j-center { justify-content: center }
.j-end { justify-content: end }
.j-between { justify-content: space-between }
:is(.light, .dark) > .plain, .card, .section, .code {
  padding: 12px; background: var(--paper); border: 1px solid transparent; border-radius: var(--radius);
}
.card { padding: 16px; border-color: var(--line) }
.section, .code { gap: 8px; background: var(--inset) }
.section[class*=s-] { background: color-mix(in srgb, var(--c) 6%, var(--paper)) }
.section[class*=s-], .secondary, .danger { border-color: color-mix(in srgb, var(--c) 30%, transparent) }
hr { width: 100%; border: 0; border-top: 1px solid var(--line) }

.title { font-weight: 600 }
.lead { font-size: 1.1em }
.subtitle, .caption, dt, .note { font-size: .9em; color: var(--quiet) }
.wrap > .caption { flex: 100%; padding-inline-start: 2.4em }
.code { overflow: auto; font: .9em/1.5 var(--ui-mono, ui-monospace, monospace) }
.clamp {
  padding-block: 0; overflow: hidden; white-space: pre-wrap;
  display: -webkit-box; -webkit-line-clamp: var(--n); -webkit-box-orient: vertical;
}
.clamp:has(+ [open]) { display: block }

.icon {
  --e: 0; flex: none; display: grid; place-items: center; width: 1.35em; height: 1.35em;
  fill: none; stroke: currentColor; stroke-width: 2; stroke-linecap: round; stroke-linejoin: round;
}
.sm, button .icon { font-size: .9em }
.lg { font-size: 1.4em }

dl { display: grid; grid-template-columns: fit-content(40%) 1fr; gap: 0 16px }
dl > div { display: grid; grid-template-columns: subgrid; grid-column: 1 / -1; align-items: baseline }
dl > div + div { border-top: 1px solid var(--line); margin-top: 4px; padding-top: 4px }

button { color: inherit; background: none; border: 1px solid transparent; border-radius: var(--radius); cursor: pointer }
.act > button {
  display: flex; align-items: center; gap: 8px; min-height: 36px; padding: 4px 14px;
  color: var(--c); background: var(--b);
}
.act > button:hover:enabled { background: color-mix(in srgb, var(--c) 8%, var(--b, transparent)) }
button:disabled { opacity: .5 }
dd button { margin-inline-start: 8px; padding: 4px 8px; font-size: .9em; color: var(--quiet) }
summary { padding-block: 4px; color: var(--accent); cursor: pointer }
@media (pointer: coarse) {
  button { min-width: 44px; min-height: 44px !important }
  summary { padding-block: 12px }
}
@container (width >= 420px) {
  .grid, .wide { grid-template-columns: repeat(var(--n), minmax(0, 1fr)) }
  .wide { row-gap: var(--gap) }
  .wide > div { all: revert }
}
`;

export const sheet = new CSSStyleSheet();
let numbers = '';
for (let n = 0; n <= Max.Number; n++) numbers += `.g${n}{gap:${n}px!important}.n${n}{--n:${n}}`;
sheet.replaceSync(SHEET + numbers);

// SPDX-License-Identifier: Apache-2.0
//
// The icons there are, by Lucide's names: those of the page first, then those that cards like to use. The build makes one
// SVG of them. A card that names another one has none there.

export const ICONS = `
  arrow-down arrow-up check chevron-down circle circle-alert circle-check circle-dashed circle-help circle-minus circle-stop
  circle-x clock copy download ellipsis file inbox info list-checks loader-circle lock menu message-circle-question-mark
  message-square paperclip pencil plus refresh-cw reply rotate-ccw search send settings shield-alert square square-pen
  trash-2 triangle-alert undo-2 unplug user wifi-off x
  calendar calendar-check calendar-days calendar-plus calendar-x file-text globe link list mail map-pin minus
  package plane share-2 thumbs-down thumbs-up users
`;

declare const __ICONS__: string; // address of that SVG, beside the page
export const SPRITE = __ICONS__;

// Keys of the timeline.

export type Command =
  | "left"
  | "right"
  | "up"
  | "down"
  | "zoomIn"
  | "zoomOut"
  | "fit"
  | "nextSpan"
  | "previousSpan"
  | "nextMatch"
  | "previousMatch"
  | "zoomToSpan"
  | "selectSpan"
  | "openSpan"
  | "pinLane"
  | "hideLane"
  | "clear";

const COMMANDS: Record<string, Command> = {
  arrowleft: "left",
  a: "left",
  arrowright: "right",
  d: "right",
  arrowup: "up",
  arrowdown: "down",
  w: "zoomIn",
  "+": "zoomIn",
  "=": "zoomIn",
  s: "zoomOut",
  "-": "zoomOut",
  "0": "fit",
  ".": "nextSpan",
  ",": "previousSpan",
  n: "nextMatch",
  p: "previousMatch",
  enter: "zoomToSpan",
  m: "selectSpan",
  i: "openSpan",
  t: "pinLane",
  h: "hideLane",
  escape: "clear",
};

/** Keys with their descriptions for readers. */
export const KEYS: [string, string][] = [
  ["← → or A D", "move"],
  ["+ − or W S", "zoom around the pointer"],
  ["0", "show everything"],
  ["↑ ↓", "go to the lane above or below"],
  [", .", "go to the span before or after"],
  ["Enter", "zoom to the chosen span"],
  ["I", "show all details of it"],
  ["M", "select it, or what is shown"],
  ["T", "pin its lane to the top, or put it back"],
  ["H", "hide its lane"],
  ["/", "find, or go to a time such as 1.5 ms; Enter and N: next match, P: previous"],
  ["Esc", "clear"],
  ["Tab", "leave the timeline"],
];

export function commandFor(event: { key: string; ctrlKey: boolean; metaKey: boolean; altKey: boolean }): Command | null {
  if (event.ctrlKey || event.metaKey || event.altKey) return null;
  return COMMANDS[event.key.toLowerCase()] ?? null;
}

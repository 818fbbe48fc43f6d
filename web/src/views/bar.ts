// A bar of parts, each as long as its share of the total.

import type { Known } from "../data/report";
import { el } from "../dom";
import { share, time } from "../format";

export interface Part {
  title: string;
  /** The custom property of its colour. */
  variable: string;
  /** Null: it was not recorded. */
  value: Known;
}

/** Parts with a positive time. */
export function known(parts: Part[]): (Part & { value: number })[] {
  return parts.filter((part): part is Part & { value: number } => (part.value ?? 0) > 0);
}

/** The bar of `name`; each part shows its share and its time. */
export function bar(name: string, parts: Part[], whole: number, nanoseconds = true): HTMLElement {
  const shown = known(parts);
  const words = shown.map((part) => `${part.title} ${share(part.value, whole, 1)}`);
  const segments = shown.map((part, at) =>
    el("span", { class: "segment", style: `flex: ${part.value} 0 0; background: var(${part.variable})`, title: `${words[at]}, ${time(part.value, nanoseconds)}` }),
  );
  return el("div", { class: "bar", role: "img", "aria-label": `${name}: ${words.join(", ")}` }, ...segments);
}

// The colours of layers, by the code's owner. A layer can be emphasized or hidden.

import { rgb } from "../../colours";
import { LAYERS, type Layer } from "../../data/stacks";
import { el } from "../../dom";

export const TITLES: Record<Layer, string> = {
  who: "VMs, vCPUs",
  guest_user: "guest: user space",
  guest_kernel: "guest: kernel",
  nested_guest: "nested guest",
  guest: "guest, code unknown",
  host_kernel: "host’s kernel",
  vmm: "VMM",
  host_user: "host’s programs",
  not_split: "exits, code unknown",
  waits: "not running",
};

const VARIABLES: Record<Layer, string> = {
  who: "--lane",
  guest_user: "--guest",
  guest_kernel: "--guest-kernel",
  nested_guest: "--nested-guest",
  guest: "--guest-irq",
  host_kernel: "--kernel",
  vmm: "--user",
  host_user: "--user",
  not_split: "--not-split",
  waits: "--halted",
};

/** Shades of a layer distinguish adjacent frames. */
const SHADES = 6;
export const FOUND = { fill: "#c2187f", text: "#ffffff" };

export interface Fill {
  fill: string;
  text: string;
}

/** Colours by layer and shade, from the theme. */
export function fills(): Fill[][] {
  const dark = document.documentElement.dataset.theme === "dark";
  const end = dark ? 0 : 255;
  return LAYERS.map((layer) => {
    const base = rgb(VARIABLES[layer]);
    return Array.from({ length: SHADES }, (_, shade) => {
      const colour = base.map((one) => Math.round(one + (end - one) * shade * 0.06)) as [number, number, number];
      return { fill: `rgb(${colour.join()})`, text: readable(colour) };
    });
  });
}

/** Black or white, whichever is more legible on a colour (WCAG 2.2, relative luminance). */
function readable(colour: [number, number, number]): string {
  const [red, green, blue] = colour.map((one) => (one / 255 <= 0.04045 ? one / 255 / 12.92 : ((one / 255 + 0.055) / 1.055) ** 2.4)) as [number, number, number];
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.179 ? "#111111" : "#ffffff";
}

/** A function has the same shade in every graph. */
export function shadeOf(name: string): number {
  let hash = 0;
  for (let at = 0; at < name.length; at++) hash = (hash * 31 + name.charCodeAt(at)) >>> 0;
  return hash % SHADES;
}

export interface LegendState {
  out: string[];
  without: string[];
}

/** The legend; `there` has the layers that occur. */
export function legend(there: Set<Layer>, now: LegendState, change: (to: LegendState) => void): HTMLElement[] {
  const turned = (all: string[], key: string) => (all.includes(key) ? all.filter((one) => one !== key) : [...all, key]);
  const without = (all: string[], key: string) => all.filter((one) => one !== key);
  const entry = (layer: Layer) => {
    const [out, hidden] = [now.out.includes(layer), now.without.includes(layer)];
    const stand = () => change({ out: turned(now.out, layer), without: without(now.without, layer) });
    const hide = () => change({ out: without(now.out, layer), without: turned(now.without, layer) });
    const title = TITLES[layer];
    return el(
      "li",
      { class: hidden ? "left-out" : null },
      el("button", { type: "button", "aria-pressed": String(out), "aria-label": `${title}: highlight this code`, title: "Highlight it", onclick: stand }, el("i", { style: `background: var(${VARIABLES[layer]})` }), title),
      el("button", { type: "button", class: "hide", "aria-pressed": String(hidden), "aria-label": `${hidden ? "show" : "hide"} code: ${title}`, title: hidden ? "Show its time again" : "Leave its time out", onclick: hide }, hidden ? "show" : "hide"),
    );
  };
  const all = el("button", { type: "button", class: "all", onclick: () => change({ out: [], without: [] }) }, "All layers");
  const entries = LAYERS.filter((layer) => layer !== "who" && (there.has(layer) || now.without.includes(layer))).map(entry);
  return [...entries, ...(now.out.length + now.without.length > 0 ? [el("li", {}, all)] : [])];
}

// The single tooltip, which describes the item under the pointer.

import { el } from "./dom";

const box = el("div", { class: "tooltip", role: "presentation", hidden: true });

/** Shows lines near a point of the window; the first is a heading. */
export function showTooltip(x: number, y: number, lines: (string | Node)[]): void {
  if (!box.isConnected) document.body.append(box);
  box.replaceChildren(...lines.map((line, at) => el("div", { class: at === 0 ? "head" : null }, line)));
  box.hidden = false;
  const { width, height } = box.getBoundingClientRect();
  const left = x + 16 + width > innerWidth ? x - width - 12 : x + 16;
  const top = y + 16 + height > innerHeight ? y - height - 12 : y + 16;
  box.style.transform = `translate(${Math.max(4, left)}px, ${Math.max(4, top)}px)`;
}

export function hideTooltip(): void {
  box.hidden = true;
}

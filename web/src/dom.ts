// Elements made from data. Strings only ever become text: no code here parses HTML.

type Child = Node | string | null | undefined | false;
type Attributes = Record<string, string | number | boolean | null | undefined | ((event: Event) => void)>;

function fill<E extends Element>(element: E, attributes: Attributes, children: Child[]): E {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(name.replace(/^on/, ""), value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children) if (child !== null && child !== undefined && child !== false) element.append(child);
  return element;
}

export function el<K extends keyof HTMLElementTagNameMap>(
  name: K,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  return fill(document.createElement(name), attributes, children);
}

export function svg<K extends keyof SVGElementTagNameMap>(
  name: K,
  attributes: Attributes = {},
  ...children: Child[]
): SVGElementTagNameMap[K] {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);
}

/** A section of the page with its heading. */
export function section(id: string, title: string, ...children: Child[]): HTMLElement {
  const heading = el("h2", { id: `${id}-title` }, title);
  return el("section", { id, "aria-labelledby": `${id}-title`, tabindex: -1 }, heading, ...children);
}

/** A table that scrolls if it is wider than the page, also by keys. It is no landmark, because there are many. */
export function scrolled(title: string, table: HTMLTableElement): HTMLElement {
  return el("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": title }, table);
}

/** A folded table with the content of a figure, for readers who can't see it. */
export function tableBehind(title: string, make: () => HTMLTableElement): HTMLDetailsElement {
  const details = el("details", { class: "behind" }, el("summary", {}, title));
  details.addEventListener("toggle", () => {
    details.querySelector("table")?.parentElement?.remove();
    if (details.open) details.append(scrolled(title, make()));
  });
  return details;
}

/** A plain table. */
export function plainTable(caption: string, titles: string[], rows: (string | number)[][]): HTMLTableElement {
  const cell = (value: string | number, at: number) =>
    at === 0 ? el("th", { scope: "row" }, String(value)) : el("td", { class: "number" }, String(value));
  return el(
    "table",
    {},
    el("caption", {}, caption),
    el("thead", {}, el("tr", {}, ...titles.map((title) => el("th", { scope: "col" }, title)))),
    el("tbody", {}, ...rows.map((row) => el("tr", {}, ...row.map(cell)))),
  );
}

/** A table whose cells may contain elements; columns from `firstNumber` on are numbers. */
export function rowsTable(caption: string, titles: string[], rows: HTMLElement[], firstNumber: number, name?: string): HTMLTableElement {
  const head = titles.map((title, at) => el("th", { scope: "col", class: at >= firstNumber ? "number" : null }, title));
  return el("table", { class: name }, el("caption", {}, caption), el("thead", {}, el("tr", {}, ...head)), el("tbody", {}, ...rows));
}

// One host: its numbers next to those of other hosts of its kind, its sessions, and the commands that open their
// reports.

import { el, section } from "../dom";
import { count, measured } from "../format";
import { compareCommand, reportCommand, sourceOf } from "./commands";
import type { Context } from "./context";
import { idOf, nameOf, type Host, type Session } from "./data";
import { times } from "./findings";
import { columnsOf, type Column } from "./numbers";

export function host(context: Context): HTMLElement {
  const { fleet, view } = context;
  const options = fleet.hosts.map((one) => el("option", { value: one.host }, one.host));
  const list = el("select", { "aria-label": "Host", onchange: () => view.update({ host: list.value }) }, ...options);
  const body = el("div", { class: "host" });
  const show = () => {
    const at = fleet.hosts.findIndex((one) => one.host === view.value.host);
    list.value = view.value.host;
    const hadFocus = body.contains(document.activeElement);
    body.replaceChildren(...(at < 0 ? [el("p", {}, "This page has no host of this name.")] : [numbers(context, at), sessions(context, fleet.hosts[at]!)]));
    if (hadFocus) body.querySelector<HTMLElement>(".chosen button")?.focus();
  };
  view.follow(show);
  show();
  return section("host", "One host", el("div", { class: "controls" }, list), body);
}

/** The typical change of hosts of a kind, without controls. */
function typical({ fleet }: Context, { ratios }: Column, of: Host): number | null {
  const logs = ratios.flatMap((ratio, at) => {
    const one = fleet.hosts[at]!;
    return ratio !== null && one.stratum === of.stratum && one.control === of.control && one.host !== of.host ? [Math.log(ratio)] : [];
  });
  return logs.length > 0 ? Math.exp(logs.reduce((sum, log) => sum + log, 0) / logs.length) : null;
}

function numbers(context: Context, at: number): HTMLElement {
  const { fleet, view } = context;
  const { metric, key } = view.value;
  const host = fleet.hosts[at]!;
  const columns = columnsOf(fleet, metric, "change").filter(({ a, b }) => a[at] !== null || b[at] !== null);
  const line = (column: Column) => {
    const name = nameOf(column.key);
    const [a, b, ratio] = [column.a[at] ?? null, column.b[at] ?? null, column.ratios[at] ?? null];
    const go = () => view.update({ key: idOf(column.key) });
    return el(
      "tr",
      { class: idOf(column.key) === key ? "chosen" : null },
      el("th", { scope: "row" }, el("button", { type: "button", class: "reason", onclick: go }, name)),
      ...[measured(metric, a), measured(metric, b), times(ratio), times(typical(context, column, host))].map((text) => el("td", { class: "number" }, text)),
      el("td", {}, notes(context, host.host, column).join(", ")),
    );
  };
  const titles = ["exits", "A", "B", "B / A", "others of its kind", "notes"];
  const kind = host.stratum === null ? "" : `, of ${fleet.diff.strata} ${host.stratum}`;
  const table = el(
    "table",
    {},
    el("caption", {}, `${host.host}${kind}${host.control ? ", a control" : ""}: ${metric}`),
    el("thead", {}, el("tr", {}, ...titles.map((title, place) => el("th", { scope: "col", class: place > 0 && place < 5 ? "number" : null }, title)))),
    el("tbody", {}, ...columns.map(line)),
  );
  return el("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": "Numbers of the host" }, table);
}

function notes({ fleet, view }: Context, host: string, { key }: Column): string[] {
  const { metric } = view.value;
  const is = (one: { metric: string }, of: Parameters<typeof idOf>[0]) => one.metric === metric && idOf(of) === idOf(key);
  const carries = fleet.diff.rows.some((row) => row.finding && is(row, row) && row.carried_by.includes(host));
  const apart = fleet.outliers.filter((one) => one.host === host && is(one, one.key));
  const words = { change: "stands apart in its change", level: "stands apart in its value on B" };
  return [...(carries ? ["carries the change"] : []), ...apart.map((one) => words[one.of])];
}

function sessions(context: Context, host: Host): HTMLElement {
  const [a, b] = [host.a, host.b].map((all) => all.map((one) => sourceOf(one.source_uri)).find((one) => one !== null));
  const compared = a && b ? compareCommand(a, b, host.host) : null;
  const isSimulated = [a, b].some((one) => one?.isSimulated);
  return el(
    "div",
    { class: "host-sessions" },
    el("h3", {}, "Reports of its sessions"),
    compared ? el("p", {}, "The newest of B compared with the newest of A:") : null,
    compared ? copied(context, compared) : null,
    list(context, host, "B", host.b, host.sessions[1]),
    list(context, host, "A", host.a, host.sessions[0]),
    el("p", { class: "note" }, `A command is run where the recordings are, at the paths by which they were added to the lake.${isSimulated ? " Of simulated hosts there is no recording: commands open the one that their exits are like." : ""}`),
  );
}

function list(context: Context, host: Host, side: string, all: Session[], there: number): HTMLElement {
  const line = (one: Session) => {
    const source = sourceOf(one.source_uri);
    const facts = [one.date ?? "day not known", one.kernel_release].filter((fact) => fact !== null).join(" · ");
    const command = source ? copied(context, reportCommand(source, host.host, one.date)) : el("p", { class: "missing" }, "The location of its recording is unknown.");
    return el("li", {}, el("p", { title: `session ${one.session_id}` }, facts), command);
  };
  const more = there - all.length;
  const title = `Sessions of ${side}: ${there === 0 ? "none" : count(there)}`;
  return el("details", { open: side === "B" && all.length > 0 }, el("summary", {}, title), el("ul", { class: "commands" }, ...all.map(line)), more > 0 ? el("p", { class: "note" }, `${count(more)} older ones are omitted.`) : null);
}

/** A command, and a button that copies it. */
function copied({ announce }: Context, command: string): HTMLElement {
  const code = el("code", { tabindex: 0, role: "group", "aria-label": "Command" }, command);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(command);
    } catch {
      // Pages from disk may lack access to the clipboard: the selected text can be copied by keyboard.
      getSelection()?.selectAllChildren(code);
      return announce("Selected");
    }
    announce("Copied");
  };
  return el("div", { class: "command" }, code, el("button", { type: "button", onclick: copy, "aria-label": `Copy ${command}` }, "Copy"));
}


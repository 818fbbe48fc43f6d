// The code that vCPUs ran: a flame graph of their time, its functions, and one function between callers and callees.

import type { CodeView } from "../../code_view";
import { timestampOf } from "../../clock";
import { hasVcpus, slicesOf, threadName, type Profile } from "../../data/profile";
import { LAYERS, matcher, type Stacks, type Layer, type Sums, type Wanted } from "../../data/stacks";
import { el, section } from "../../dom";
import { describe, EVERYTHING, type Context } from "../../focus";
import { count, share, time } from "../../format";
import { Functions } from "./functions";
import { legend } from "./layers";
import { Picture } from "./picture";
import { SandwichPanel } from "./sandwich_panel";

export class Code {
  readonly element: HTMLElement;
  private readonly profile: Profile;
  private readonly picture: Picture;
  private readonly functions: Functions;
  private readonly panel: SandwichPanel;
  private readonly summary = el("p", { class: "note code-summary", role: "status" });
  private readonly legend = el("ul", { class: "legend acts-on-states", "aria-label": "Colours of code; click to highlight one" });
  private readonly crumbs = el("nav", { class: "crumbs", "aria-label": "Enlarged" });
  private readonly about = el("div", { class: "code-about" });
  private readonly words = el("span", { role: "status" });
  private readonly chips = el("div", { class: "hidden-lanes" });
  private readonly found = el("span", { class: "found", role: "status" });
  private readonly field: HTMLInputElement;
  private readonly controls: HTMLElement;
  private readonly ns: boolean;
  private times: Float64Array = new Float64Array();
  private sums: Sums = { total: new Float64Array(), own: new Float64Array() };
  private slices: ReturnType<typeof slicesOf> = null;
  private frame = 0;

  constructor(
    private readonly context: Context,
    private readonly stacks: Stacks,
  ) {
    this.ns = context.report.nanoseconds;
    this.profile = stacks.profile;
    const words = (node: number) => this.describe(node);
    this.picture = new Picture(`Flame graph of the code that ${this.hasVcpus ? "vCPUs" : "threads"} ran`, {
      words,
      open: (node) => this.zoom(node),
      choose: (node) => this.choose(node),
      key: (event, node) => this.key(event, node),
    });
    this.functions = new Functions(this.ns, (key) => this.openFunction(key));
    this.panel = new SandwichPanel(this.ns, (key) => this.openFunction(key));
    this.field = el("input", { type: "search", placeholder: "Find code, or /expression/ …", "aria-label": "Find code", value: this.view.find, oninput: () => this.change({ find: this.field.value }) });
    this.controls = el("div", { class: "controls" });
    this.about.append(this.words);
    this.element = section("code", "Which code ran", this.summary, this.controls, this.chips, this.legend, this.crumbs, this.picture.element, this.about, this.panel.element, this.functions.element,
      ...this.profile.info.notes.map((note) => el("p", { class: "note" }, note)));
    this.buildControls();
    for (const name of ["hyperscope:selection", "hyperscope:clock"]) addEventListener(name, () => this.schedule());
    context.focus.follow(() => this.schedule());
    context.view.follow(() => {
      this.field.value = this.view.find;
      this.buildControls();
      this.draw();
    });
    this.draw();
  }

  private get view(): CodeView {
    return this.context.view.value.code;
  }

  private change(part: Partial<CodeView>): void {
    this.context.view.update({ code: { ...this.view, ...part } });
    this.draw();
  }

  /** A drag changes the selection with every movement: draws once per frame. */
  private schedule(): void {
    if (this.frame !== 0) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      this.draw();
    });
  }

  private buildControls(): void {
    const { owners } = this.profile.info;
    const toggle = (name: "idle" | "threads" | "up", title: string, hint: string) => {
      const button = el("button", { type: "button", title: hint, "aria-pressed": String(this.view[name]), onclick: () => {
        this.change({ [name]: !this.view[name] });
        button.setAttribute("aria-pressed", String(this.view[name]));
      } }, title);
      return button;
    };
    const vms = [...new Set(owners.map((one) => one.vm))];
    const choice = (label: string, chosen: string, all: [string, string][], pick: (value: string) => void) => {
      const select = el("select", { "aria-label": label, onchange: () => pick(select.value) }, ...all.map(([value, title]) => el("option", { value, selected: value === chosen }, title)));
      return select;
    };
    const named = owners.map((one, at) => [String(at), `${vms.length > 1 ? `${one.vm} ` : ""}${one.vcpu === null ? threadName(one) : `vCPU ${one.vcpu}`}`] as [string, string]);
    this.controls.replaceChildren(
      this.field,
      this.found,
      vms.length > 1 ? choice("VM", this.view.vm, [["", "All VMs"], ...vms.map((vm) => [vm, vm] as [string, string])], (vm) => this.change({ vm, owner: null, zoom: 0 })) : "",
      owners.length > 1 ? choice("Thread", String(this.view.owner ?? ""), [["", this.hasVcpus ? "All vCPUs" : "All threads"], ...named], (value) => this.change({ owner: value === "" ? null : Number(value), zoom: 0 })) : "",
      toggle("up", "Callees above", "Callers at the bottom, as flames; else at the top, as icicles"),
      this.hasVcpus ? toggle("idle", "Idle time", "Time in which guests had nothing to do: halted, polling, in their idle threads") : "",
      this.hasVcpus && owners.some((one) => one.vcpu === null) ? toggle("threads", "Other threads", "Code that other threads of the VMM and the kernel ran for VMs, in addition to the vCPUs’ time") : "",
    );
  }

  private get hasVcpus(): boolean {
    return hasVcpus(this.profile.info);
  }

  private wanted(): Wanted {
    const { report, focus, view } = this.context;
    const { vm, owner, idle, threads, without, always } = this.view;
    const { owners } = this.profile.info;
    this.slices = always ? null : slicesOf(this.profile.info, view.value.selection);
    const only = focus.value;
    const known = (vm_: string | null) => (vm_ && owners.some((one) => one.vm === vm_) ? vm_ : null);
    return {
      vm: known(vm) ?? known(only.vm),
      owner: owner !== null && owner < owners.length ? owner : null,
      level: only.level,
      reason: only.reason,
      idle: idle || report.exits.rows.some((row) => row.waiting && row.reason === only.reason),
      threads: threads || !this.hasVcpus,
      without: without as Layer[],
      slices: this.slices,
    };
  }

  private draw(): void {
    const begun = performance.now();
    const wanted = this.wanted();
    this.times = this.stacks.times(wanted);
    this.sums = this.stacks.sums(this.times);
    const { total } = this.sums;
    const zoom = this.zoomed;
    const match = this.view.find === "" ? null : matcher(this.view.find);
    const marks = match ? this.stacks.matches(match, total) : null;
    if (this.view.find === "") this.found.textContent = "";
    else this.found.textContent = marks ? `${share(marks.time, total[0]!)}, ${time(marks.time, this.ns)}` : "Invalid regular expression";
    this.picture.show({ tree: this.stacks, total, zoom, up: this.view.up, found: marks?.found ?? null, out: this.view.out.filter((one) => (LAYERS as readonly string[]).includes(one)) });
    this.functions.show(this.stacks.functions(this.sums), total[0]!, match);
    this.panel.show(this.stacks, total, this.view.of);
    this.legend.replaceChildren(...legend(this.layersThere(), this.view, (to) => this.change(to)));
    this.drawSummary(wanted);
    this.drawChips();
    this.drawCrumbs(zoom);
    this.element?.dispatchEvent(new CustomEvent("hyperscope:summed", { detail: performance.now() - begun }));
  }

  /** The node that fills the width: one with time. */
  private get zoomed(): number {
    const { zoom } = this.view;
    return zoom < this.stacks.length && this.sums.total[zoom]! > 0 ? zoom : 0;
  }

  private layersThere(): Set<Layer> {
    return new Set(Array.from(this.stacks.rowLayer, (layer) => LAYERS[layer]!));
  }

  private drawSummary(wanted: Wanted): void {
    const { report } = this.context;
    const all = this.stacks.times({ ...wanted, idle: true, without: [], reason: null, level: null });
    const [whole, shown] = [all.reduce((sum, one) => sum + one, 0), this.sums.total[0]!];
    const parts = [`${time(shown, this.ns)} of ${time(whole, this.ns)} of ${this.whose(wanted)}`];
    if (this.slices) {
      const { from, to } = this.slices;
      const { slice_ns } = this.profile.info.slices!;
      parts.push(`from ${timestampOf(report, Math.max(0, from))} to ${timestampOf(report, Math.min(to, report.length_ns))}: the slices of ${time(slice_ns, this.ns)} that contain the timeline's selection`);
    }
    const cut = this.profile.info.cut_ns;
    if (cut > 0) parts.push(`stacks of ${time(cut, this.ns)} end in “…”, as the page has no room for all their frames`);
    const idle = wanted.idle || !this.hasVcpus ? "" : " Time in which guests had nothing to do is left out.";
    this.summary.textContent = `${parts.join("; ")}.${idle}`;
    this.summary.dataset["shown"] = String(shown);
  }

  private whose({ vm, owner, threads }: Wanted): string {
    const { owners } = this.profile.info;
    const one = owner === null ? null : owners[owner]!;
    if (one) return one.vcpu === null ? threadName(one) : `vCPU ${one.vcpu}`;
    if (!this.hasVcpus) return `${count(owners.length)} thread${owners.length === 1 ? "" : "s"}, by samples`;
    const vcpus = owners.filter((each) => each.vcpu !== null && (vm === null || each.vm === vm)).length;
    return `${count(vcpus)} vCPU${vcpus === 1 ? "" : "s"}${threads ? " and threads that work for them" : ""}`;
  }

  private drawChips(): void {
    const { focus, view } = this.context;
    const only = describe(focus.value);
    const { always } = this.view;
    const hasTime = slicesOf(this.profile.info, view.value.selection) !== null;
    const all = [
      only ? el("button", { type: "button", class: "chip", "aria-label": `Only ${only}: show everything`, onclick: () => focus.set(EVERYTHING) }, `${only}  ✕`) : null,
      hasTime ? el("button", { type: "button", "aria-pressed": String(!always), title: "The timeline's selection, or everything", onclick: () => this.change({ always: !always }) }, "Selected time only") : null,
      hasTime ? el("button", { type: "button", onclick: () => this.context.deselect() }, "Clear the selection") : null,
    ];
    this.chips.replaceChildren(...all.filter((one) => one !== null));
  }

  private drawCrumbs(zoom: number): void {
    this.crumbs.hidden = zoom === 0;
    const path = this.stacks.path(zoom);
    const button = (node: number) => el("button", { type: "button", "aria-current": node === zoom ? "true" : null, onclick: () => this.zoom(node, true) }, this.stacks.names[node]!);
    this.crumbs.replaceChildren(...path.flatMap((node, at) => (at === 0 ? [button(node)] : ["›", button(node)])));
  }

  private zoom(node: number, always = false): void {
    // A second click on the zoomed frame zooms out to its caller.
    const to = node === this.zoomed && !always ? this.stacks.parent[node]! : node;
    this.change({ zoom: to });
    this.context.announce(`${this.stacks.names[to]} is enlarged`);
  }

  private choose(node: number): void {
    this.words.textContent = this.describe(node).join(" · ");
    const key = this.stacks.isCode[node] ? this.stacks.key(node) : null;
    this.about.replaceChildren(this.words, ...(key ? [el("button", { type: "button", onclick: () => this.openFunction(key) }, "Callers and callees")] : []));
  }

  private key(event: KeyboardEvent, node: number): void {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Escape" && this.view.zoom > 0) this.change({ zoom: 0 });
    else if (event.key === "Backspace" && this.view.zoom > 0) this.change({ zoom: this.stacks.parent[this.zoomed]! });
    else if (event.key.toLowerCase() === "s" && this.stacks.isCode[node]) this.openFunction(this.stacks.key(node));
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  /** Shows a function between its callers and callees; an empty key closes it. */
  openFunction(key: string): void {
    this.change({ of: key });
    if (key !== "") this.panel.element.scrollIntoView({ block: "nearest" });
  }

  private describe(node: number): string[] {
    const { stacks, ns } = this;
    const { total, own } = this.sums;
    const caller = stacks.parent[node]!;
    const lines = [stacks.names[node]!, `${time(total[node]!, ns)}, ${share(total[node]!, total[0]!)} of all`];
    if (node > 0) lines.push(`${share(total[node]!, total[caller]!)} of ${stacks.names[caller]}`);
    if (own[node]! > 0 && own[node] !== total[node]) lines.push(`${time(own[node]!, ns)} in itself`);
    const sure = stacks.sureness(node, this.times);
    if (this.slices || sure.samples === 0) return lines;
    const [low, high] = [Math.max(0, total[node]! - sure.below), total[node]! + sure.above];
    const interval = sure.below + sure.above > 0 ? `; 95%: ${time(low, ns)} to ${time(high, ns)}` : "";
    return [...lines, `${count(sure.samples)} sample${sure.samples === 1 ? "" : "s"}${interval}`];
  }
}

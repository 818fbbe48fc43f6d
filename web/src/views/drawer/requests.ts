// Requests of a stretch of time.

import type { Report } from "../../data/report";
import { el } from "../../dom";
import type { Range } from "../timeline/range";
import { command } from "./exits";

export function requests(report: Report, range: Range): HTMLElement[] {
  if (!report.path) return [el("p", {}, "No requests were found in this recording.")];
  const words = "The page holds requests of the whole recording only, in “Paths of requests”. Those of the selection: ";
  return [el("p", { class: "note" }, `${words}${command(report, range).replace("hyperscope exits", "hyperscope path")}`)];
}

// What the parts of a fleet's page share.

import type { Fleet } from "./data";
import type { FleetStore } from "./state";

export interface Context {
  fleet: Fleet;
  view: FleetStore;
  /** Shows a section. */
  goTo: (section: string) => void;
  /** Says something to readers who don't see it. */
  announce: (words: string) => void;
}

// Shared by the parts of a fleet's page.

import type { Fleet } from "./data";
import type { FleetStore } from "./state";

export interface Context {
  fleet: Fleet;
  view: FleetStore;
  /** Shows a section. */
  goTo: (section: string) => void;
  /** Announces a text to screen readers. */
  announce: (words: string) => void;
}

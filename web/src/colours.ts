// The colours of states: from the style sheet, so that they change with the theme.

const VARIABLES: Record<string, string> = {
  guest: "--guest",
  guest_user: "--guest",
  guest_kernel: "--guest-kernel",
  guest_irq: "--guest-irq",
  guest_idle: "--guest-idle",
  nested_guest: "--nested-guest",
  before_exit: "--before-exit",
  exit_kernel: "--kernel",
  exit_user: "--user",
  waiting: "--waiting",
  preempted: "--preempted",
  halt_poll: "--halt-poll",
  halted: "--halted",
  blocked: "--blocked",
  unknown: "--unknown",
  not_split: "--not-split",
  cpu_vcpu: "--guest",
  cpu_other: "--other",
  running: "--other",
  kernel_function: "--call-kernel",
  kvm_function: "--call-kvm",
  module_function: "--call-module",
};

/** The custom property of a state's colour. */
export function variableOf(state: string): string {
  return VARIABLES[state] ?? "--other";
}

function resolved(variable: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(variable).trim();
}

/** A colour of the style sheet, as red, green, blue. */
export function rgb(variable: string): [number, number, number] {
  const digits = resolved(variable).replace("#", "");
  const whole = digits.length === 3 ? [...digits].map((digit) => digit + digit).join("") : digits;
  const value = Number.parseInt(whole, 16);
  return [(value >> 16) & 255, (value >> 8) & 255, value & 255];
}

export function css(variable: string): string {
  return resolved(variable);
}

/** A colour as a 32-bit word of ImageData: little-endian, opaque. */
export function word([red, green, blue]: [number, number, number]): number {
  return ((255 << 24) | (blue << 16) | (green << 8) | red) >>> 0;
}

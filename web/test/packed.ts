// Numbers as a page carries them, before gzip and base64.

import { Columns } from "../src/data/columns";

export function packed(numbers: number[]): Columns {
  const bytes: number[] = [];
  for (let value of numbers) {
    for (; value >= 128; value = Math.floor(value / 128)) bytes.push((value % 128) + 128);
    bytes.push(value);
  }
  return new Columns(Uint8Array.from(bytes));
}

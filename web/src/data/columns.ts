// Decodes columns of numbers from the page: base64, gzip, LEB128.

/** The bytes of base64 text. */
export function fromBase64(text: string): Uint8Array<ArrayBuffer> {
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let at = 0; at < binary.length; at++) bytes[at] = binary.charCodeAt(at);
  return bytes;
}

/** Unpacks gzip. */
export async function gunzip(packed: Uint8Array<ArrayBuffer>): Promise<Uint8Array> {
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** The columns in an element of the page, which is emptied: they are needed only once. */
export async function columnsIn(page: Document, id: string): Promise<Columns> {
  const element = page.getElementById(id);
  if (!element?.textContent) throw new Error(`The page lacks ${id}.`);
  const packed = fromBase64(element.textContent);
  element.textContent = "";
  return new Columns(await gunzip(packed));
}

/** Reads numbers one after the other. */
export class Columns {
  private at = 0;

  constructor(private readonly bytes: Uint8Array) {}

  byte(): number {
    const value = this.bytes[this.at];
    if (value === undefined) throw new Error("The page's columns end too early.");
    this.at++;
    return value;
  }

  /** Exact up to 2^53. */
  number(): number {
    let value = 0;
    let scale = 1;
    for (;;) {
      const byte = this.byte();
      value += (byte & 0x7f) * scale;
      if (byte < 0x80) return value;
      scale *= 128;
      if (scale > 2 ** 63) throw new Error("A number in the page's columns has no end.");
    }
  }

  get done(): boolean {
    return this.at >= this.bytes.length;
  }
}

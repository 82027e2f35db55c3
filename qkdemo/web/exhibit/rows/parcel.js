// Opens what `qkdemo/web/lab/parcel.py` lays out, and keeps the parts: those that were sent before are only named.

const KEPT = 128; // parts, twice as many as the server takes for known
const BETWEEN = "\x1e";
const parts = new Map(); // name → the columns in it, those that were used last at the end; for all exhibits of the page

// {rows, view, columns} of a parcel; null if it names a part that is not here, or is packed for other browsers.
export async function open(bytes) {
  const [head, body] = headOf(bytes);
  if (!head.plain && !canInflate) return null;
  const inflate = head.plain ? (packed) => packed : inflated;
  let at = body + head.view;
  const opened = head.parts.map(([name, length]) => {
    const packed = bytes.subarray(at, (at += length));
    return length ? Promise.resolve(inflate(packed)).then((raw) => keep(name, columnsOf(raw))) : known(name);
  });
  const view = JSON.parse(textOf(await inflate(bytes.subarray(body, body + head.view))));
  const found = await Promise.all(opened);
  if (found.includes(undefined)) return null;
  return { rows: head.rows, view, columns: new Map(found.flatMap((columns) => [...columns])) };
}

export const canInflate = typeof DecompressionStream !== "undefined";

function keep(name, columns) {
  parts.set(name, columns);
  if (parts.size > KEPT) parts.delete(parts.keys().next().value);
  return columns;
}

function known(name) {
  const columns = parts.get(name);
  if (columns && parts.delete(name)) parts.set(name, columns);
  return columns;
}

// [name, {kind, width, data}] of every column.
function columnsOf(bytes) {
  const [kinds, body] = headOf(bytes);
  let at = body;
  return new Map(kinds.map(([name, kind, width, length]) => [name, { kind, width, data: bytes.subarray(at, (at += length)) }]));
}

// The texts of a column.
export function textsIn({ data }) {
  return textOf(data).split(BETWEEN);
}

// The numbers of a column: all rows of the first one in a row, then of the second …
export function numbersIn({ kind, data }) {
  if (kind === "u1") return data;
  const size = Number(kind[1]);
  const count = data.length / size;
  const together = new Uint8Array(data.length);
  for (let byte = 0; byte < size; byte++) for (let i = 0; i < count; i++) together[i * size + byte] = data[byte * count + i];
  return new (size === 8 ? Float64Array : Float32Array)(together.buffer);
}

function headOf(bytes) {
  const length = new DataView(bytes.buffer, bytes.byteOffset).getUint32(0, true);
  return [JSON.parse(textOf(bytes.subarray(4, 4 + length))), 4 + length];
}

function textOf(bytes) {
  return new TextDecoder().decode(bytes);
}

async function inflated(bytes) {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

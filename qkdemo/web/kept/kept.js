// What the session holds, kept by the window for a session after it: see `again`. What the window kept of one before stays
// until it was asked for.

const KEPT = "qkdemo:kept";

export default function ({ data }) {
  if (!data) return;
  globalThis.qkdemoKept = data.kept;
  try {
    globalThis.qkdemoBefore ??= sessionStorage.getItem(KEPT) ?? "";
    const before = globalThis.qkdemoTaken ? "" : globalThis.qkdemoBefore;
    const all = { ...JSON.parse(before || "{}"), ...JSON.parse(data.kept || "{}") };
    sessionStorage.setItem(KEPT, JSON.stringify(all));
  } catch {
    // where a browser keeps nothing, or not so much, it lives as long as the page
  }
}

// What the session holds, kept by the window for a session after it: see `again`.

const KEPT = "qkdemo:kept";

export default function ({ data }) {
  if (!data) return;
  try {
    globalThis.qkdemoBefore ??= sessionStorage.getItem(KEPT) ?? "";
    sessionStorage.setItem(KEPT, data.kept);
  } catch {
    // where a browser keeps nothing, or not so much, it lives as long as the page
  }
  globalThis.qkdemoKept = data.kept;
}

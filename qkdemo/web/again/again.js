// The page is run again when the server is back, and what the session held goes with that: it may be another session.
//
// A page that is loaded anew asks for what the window kept of the one before, once it comes where that is wanted: `wants`
// is how the names of that begin.

const KEPT = "qkdemo:kept";
let send = null;

export default function ({ data, setTriggerValue }) {
  if (!data) return;
  send = (why, kept) => setTriggerValue("again", { why, kept });
  document.dispatchEvent(new CustomEvent("qkdemo:served", { detail: data }));
  if (!data.wants || globalThis.qkdemoTaken) return;
  globalThis.qkdemoTaken = true;
  if (before().includes(data.wants)) send("loaded", before());
}

document.addEventListener("qkdemo:back", () => send?.("back", globalThis.qkdemoKept ?? ""));

function before() {
  try {
    return (globalThis.qkdemoBefore ??= sessionStorage.getItem(KEPT) ?? "");
  } catch {
    return ""; // where a browser keeps nothing
  }
}

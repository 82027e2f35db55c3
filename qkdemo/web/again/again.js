// The page is run again when the server is back, and what the session held goes with that: it may be another session.
//
// A page that is loaded anew asks for what the window kept of the one before, if that is named like `answers`.

const KEPT = "qkdemo:kept";
let [send, loaded] = [null, false];

export default function ({ data, setTriggerValue }) {
  if (!data) return;
  send = (why, kept) => setTriggerValue("again", { why, kept });
  document.dispatchEvent(new CustomEvent("qkdemo:served", { detail: data }));
  if (loaded) return;
  loaded = true;
  if (before().includes(data.answers)) send("loaded", before());
}

document.addEventListener("qkdemo:back", () => send?.("back", globalThis.qkdemoKept ?? ""));

function before() {
  try {
    return (globalThis.qkdemoBefore ??= sessionStorage.getItem(KEPT) ?? "");
  } catch {
    return ""; // where a browser keeps nothing
  }
}

// The page is run again when the server is back, and what the session held goes with that: it may be another session.
//
// `kept` is what this session holds, as a text. The window keeps it too, so that a page that is loaded anew has it.

const KEPT = "qkdemo:kept";
let [send, kept, loaded] = [null, "", false];

export default function ({ data, setTriggerValue }) {
  if (!data) return;
  send = (why) => setTriggerValue("again", { why, kept });
  document.dispatchEvent(new CustomEvent("qkdemo:served", { detail: data }));
  const before = loaded ? "" : stored();
  loaded = true;
  if (before && !data.kept) {
    kept = before;
    send("loaded");
    return;
  }
  kept = data.kept;
  store(kept);
}

document.addEventListener("qkdemo:back", () => send?.("back"));

function stored() {
  try {
    return sessionStorage.getItem(KEPT) ?? "";
  } catch {
    return ""; // where a browser keeps nothing
  }
}

function store(text) {
  try {
    sessionStorage.setItem(KEPT, text);
  } catch {
    // what does not fit, or may not be kept, is lost with the window
  }
}

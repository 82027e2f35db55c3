// The speaker's window: it follows the lecture's, which says where it is, and hands its keys on to that.
//
// `place` is the "track/stop/shown" that is on screen here. The server is asked for another as soon as the lecture is there.

const KEYS = new Set(["PageDown", "PageUp", "ArrowRight", "ArrowLeft"]);
const AS = { ArrowRight: "PageDown", ArrowLeft: "PageUp" };
const began = Date.now();
const channel = new BroadcastChannel("qkdemo:lecture");
let timer = 0;

export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".notes");
  if (!root || !data) return undefined;
  const listening = new AbortController();
  const { signal } = listening;
  channel.addEventListener("message", ({ data: told }) => {
    if (typeof told?.place !== "string") return;
    root.querySelector(".follows").textContent = data.words.follows;
    if (told.place !== data.place) setTriggerValue("place", told.place);
  }, { signal });
  document.addEventListener("keydown", ({ key }) => {
    if (KEYS.has(key)) channel.postMessage({ key: AS[key] ?? key });
  }, { signal });
  clearInterval(timer);
  timer = setInterval(() => tell(root, data.words), 1000);
  tell(root, data.words);
  channel.postMessage({ where: true });
  return () => listening.abort();
}

function tell(root, { elapsed }) {
  const seconds = Math.floor((Date.now() - began) / 1000);
  const since = `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
  root.querySelector(".clock").textContent = new Date().toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
  root.querySelector(".since").textContent = `${elapsed} ${since}`;
}

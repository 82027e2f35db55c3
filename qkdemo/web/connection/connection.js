// Whether the page is connected to its server: a sentence when it is not, and a word to the page when it is again.
//
// Part of the page itself, since it also speaks when nothing came. Its sentences stand in the page's head.

import { say } from "./status.js";

const LOST_MS = 1500; // a connection that comes back at once needs no word
const NEVER_MS = 8000;
const ASKED = 4; // times, of a server that may be several
const LOOK_MS = 250;
const { words } = JSON.parse(document.querySelector("meta[name=qkdemo]").content);
let opened = location.pathname.slice(new URL("../", import.meta.url).pathname.length); // the page that was asked for
const bar = document.createElement("p");
let [was, since, ever, several, unknown] = [false, performance.now(), false, false, ""];

function look() {
  const app = document.querySelector("[data-testid=stApp]");
  const now = app?.dataset.testConnectionState === "CONNECTED";
  if (now !== was) {
    since = performance.now();
    if (now && ever) document.dispatchEvent(new CustomEvent("qkdemo:back"));
    ever ||= now;
    was = now;
  }
  const away = performance.now() - since;
  if (!now && ever && away > LOST_MS) tell(words.lost);
  else if (!now && !ever && away > NEVER_MS) tell(words.never);
  else if (several) tell(words.several);
  else tell(unknown && words.unknown.replace("{page}", unknown));
}

function tell(sentence) {
  if (bar.textContent !== sentence) {
    bar.textContent = sentence;
    say(sentence);
  }
  bar.hidden = !sentence;
}

// Several servers behind one address, each with sessions of its own: asked a few times, they give different names.
const name = async () => (await fetch(new URL("server", import.meta.url), { cache: "no-store" })).text();
async function ask() {
  const names = new Set();
  for (let i = 0; i < ASKED; i++) names.add(await name());
  return names;
}

// A server that was started anew has another name, and is one all the same: after every outage they are asked again.
let [asked, serving] = [null, ""];
function askAnew() {
  [asked, serving] = [ask().catch(() => new Set()), ""];
  judge();
}

async function judge() {
  const mine = asked;
  const names = await mine;
  if (mine === asked) several = names.size > 1 || Boolean(serving && names.size && !names.has(serving));
}

bar.id = "qkdemo-connection";
bar.style.cssText = `position: fixed; z-index: 1000001; left: 50%; bottom: 1rem; transform: translateX(-50%); margin: 0;
  width: max-content; max-width: min(40rem, calc(100vw - 2rem)); padding: 0.6rem 1rem; border-radius: 8px;
  background: #1f2530; color: #fff; font: 1rem/1.4 "Source Sans", sans-serif; box-shadow: 0 2px 12px rgb(0 0 0 / 35%);`;
tell("");
document.body.append(bar);
setInterval(look, LOOK_MS);
askAnew();
document.addEventListener("qkdemo:back", askAnew);
document.addEventListener("qkdemo:served", ({ detail: { server, page } }) => {
  unknown = page ? "" : opened;
  opened = "";
  serving = server;
  judge();
});

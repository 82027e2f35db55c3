// Keys for whoever presents: each presses one of the page's buttons, wherever the focus is but in a text; and the pointer,
// a large dot that follows the mouse, for the back row. In a lecture letters act alone, elsewhere with Alt.
//
// `keys` says which: {key: the classes that Streamlit gives to the buttons' elements, of which the first that is there is
// pressed; or "pointer", "more" or "notes"}. `choices` is the class of what holds the answers among which digits choose, if
// they do. `place` is what the speaker's window is told, `told` names the stop whose answer is shown. `run` is another
// number whenever the page was made anew. `lang` is the language that is spoken, for those who hear the page. In a lecture
// a page key also follows a link of its class.

import { closeMenu, openAtTop, wearScheme } from "./arrivals.js";
import { darken, light, wake } from "./bar.js";
import { fitColumn } from "./fit.js";
import { followFocus } from "./focus.js";
import { openNotes, tellNotes } from "./hall.js";
import { tidyHistory } from "./history.js";
import { arrived, inLine, once } from "./line.js";
import { point } from "./pointer.js";

const TEXT = "input:not([type=range], [type=radio], [type=checkbox]), textarea, select, [contenteditable=true]";
const MOVES = "input[type=range], [role=slider]"; // what page keys move, except in a lecture
const PAGES = new Set(["PageDown", "PageUp"]);
const [SHOW, CODE, LEAVE] = ["st-key-lesson-show", "st-key-lecture-code", "st-key-lecture-switch"];
let shown; // the run that is on screen
let listening = new AbortController(); // Streamlit may mount the next page's before it unmounts this one's

export default function ({ data, parentElement }) {
  tidyHistory();
  openAtTop();
  closeMenu();
  wearScheme();
  const root = parentElement.querySelector(".presenter");
  if (!root || !data?.keys) return undefined;
  document.documentElement.lang = data.lang;
  listening.abort();
  listening = new AbortController();
  const { signal } = listening;
  const { lecture, place, told, run } = data;
  const press = (key) => pressed(root, data, key);
  document.addEventListener("pointermove", (event) => point(root, event), { signal });
  document.addEventListener("keydown", (event) => keyDown(press, data, event), { signal, capture: true });
  if (lecture) {
    for (const kind of ["pointermove", "pointerdown", "keydown"]) document.addEventListener(kind, wake, { signal, capture: true });
    document.addEventListener("click", ({ target }) => press(target.closest?.("[data-key]")?.dataset.key), { signal });
  }
  if (lecture) tellNotes(place, press, signal);
  root.classList.add("listening");
  fitColumn(lecture, signal);
  followFocus(told);
  if (run !== shown) {
    requestAnimationFrame(() => {
      darken();
      arrived();
    });
  }
  shown = run;
  return () => {
    if (signal === listening.signal) listening.abort();
  };
}

function keyDown(press, { lecture }, event) {
  const key = keyOf(event);
  const fits = key.length === 1 ? lecture || event.altKey : !event.altKey; // a bare letter may be spoken, or slip
  const from = event.composedPath()[0];
  if (event.ctrlKey || event.metaKey || !fits || from?.matches?.(TEXT)) return;
  if (PAGES.has(key) && !lecture && from?.matches?.(MOVES)) return;
  if (!event.repeat && !press(key)) return;
  if (event.repeat && !(lecture && PAGES.has(key))) return; // in a lecture a held page key scrolls nothing either
  event.preventDefault();
  event.stopPropagation();
}

// Returns whether the key does anything here.
function pressed(root, { keys, lecture, choices }, key) {
  const names = keys[key] ?? (choices && /^[1-9]$/.test(key) ? [choices] : null);
  if (!names) return false;
  const [first] = names;
  const dialog = document.querySelector("[role=dialog]");
  const code = dialog?.querySelector("img.qr");
  if (dialog && code && (first === CODE || (lecture && PAGES.has(key)))) return close(dialog);
  if (dialog && !(code && first === LEAVE)) return false;
  if (first === "pointer") return root.classList.toggle("shown") || true;
  if (first === "notes") return openNotes();
  if (first === "more") return document.documentElement.classList.toggle("more") || true;
  const what = PAGES.has(key) && lecture ? "button:enabled, [data-testid=stPageLink] a" : "button:enabled";
  const act = () => (first === choices ? choose(first, Number(key)) : names.some((name) => click(name, what)));
  if (!lecture) return inLine(act, first === SHOW || first === choices);
  return once(() => act() && light(key));
}

// A letter in lower case, whatever Alt makes of it: on a Mac another letter.
function keyOf({ key = "", code = "", altKey }) {
  if (altKey && code.startsWith("Key") && !/^[a-z]$/i.test(key)) return code.slice(3).toLowerCase();
  return key.length === 1 ? key.toLowerCase() : key;
}

function close(dialog) {
  dialog.querySelector("[aria-label=Close]")?.click();
  return true;
}

function click(name, what) {
  const button = document.querySelector(`.${name} :is(${what})`);
  button?.click();
  return Boolean(button);
}

// The answer at a place of an open question, unless it is chosen already.
function choose(name, place) {
  const answer = document.querySelectorAll(`.${name} [data-testid=stRadio] input`)[place - 1];
  if (!answer || answer.checked) return false;
  answer.click();
  return true;
}

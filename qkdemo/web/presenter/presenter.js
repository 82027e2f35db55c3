// Keys for whoever presents: each presses one of the page's buttons, wherever the focus is but in a text; and the pointer,
// a large dot that follows the mouse, for the back row. In a lecture letters act alone, elsewhere with Alt.
//
// `keys` says which: {key: the class that Streamlit gives to the button's element, or "pointer"}. Of these classes `answers`
// is that of the button that opens an answer, `code` of the one whose key also closes what it opened, `leave` of the one
// that is pressed from there too; `choices` is that of what holds the answers among which digits choose, if they do. `run`
// is another number whenever the page was made anew. In a lecture a page key also follows a link of its class.

import { closeMenu, openAtTop } from "./arrivals.js";
import { tidyHistory } from "./history.js";
import { arrived, inLine } from "./line.js";

const TEXT = "input:not([type=range], [type=radio], [type=checkbox]), textarea, select, [contenteditable=true]";
const MOVES = "input[type=range], [role=slider]"; // what page keys move, except in a lecture
const PAGES = { PageDown: 1, PageUp: -1 };
const AWAKE = 0.8; // below this share of the window's height the pointer wakes the bar
let shown; // the run that is on screen
let listening = new AbortController(); // Streamlit may mount the next page's before it unmounts this one's

export default function ({ data, parentElement }) {
  tidyHistory();
  openAtTop();
  closeMenu();
  const dot = parentElement.querySelector(".presenter");
  if (!dot || !data?.keys) return undefined;
  const { keys, lecture, answers, choices, code, leave, run } = data;
  const move = ({ clientX, clientY }) => {
    dot.style.translate = `${clientX}px ${clientY}px`;
    document.querySelector(".st-key-lecture-bar")?.classList.toggle("awake", clientY > AWAKE * innerHeight);
  };
  const press = (event) => {
    const key = keyOf(event);
    const name = keys[key] ?? (choices && /^[1-9]$/.test(key) ? choices : undefined);
    const fits = key.length === 1 ? lecture || event.altKey : !event.altKey; // a bare letter may be spoken, or slip
    const held = event.ctrlKey || event.metaKey || event.repeat || !fits;
    const from = event.composedPath()[0];
    if (!name || held || from?.matches?.(TEXT)) return;
    const dialog = document.querySelector("[role=dialog]");
    const shows = dialog?.querySelector("img.qr") && (name === code || name === leave);
    if (dialog && !shows) return;
    const way = PAGES[event.key];
    if (way && !lecture && from?.matches?.(MOVES)) return;
    const push = () => click(name, way && lecture ? "button:enabled, [data-testid=stPageLink] a" : "button:enabled");
    const act = () => (name === choices ? choose(name, Number(key)) : (way && lecture && page(way)) || push());
    const told = name === answers || name === choices;
    if (dialog && name === code) return void dialog.querySelector("[aria-label=Close]")?.click();
    const done = name === "pointer" ? dot.classList.toggle("shown") || true : inLine(act, told);
    if (!done) return;
    event.preventDefault();
    event.stopPropagation();
  };
  listening.abort();
  listening = new AbortController();
  const { signal } = listening;
  document.addEventListener("pointermove", move, { signal });
  document.addEventListener("keydown", press, { signal, capture: true });
  dot.classList.add("listening");
  if (run !== shown) requestAnimationFrame(arrived);
  shown = run;
  return () => {
    if (signal === listening.signal) listening.abort();
  };
}

// A letter in lower case, whatever Alt makes of it: on a Mac another letter.
function keyOf({ key = "", code = "", altKey }) {
  if (altKey && code.startsWith("Key") && !/^[a-z]$/i.test(key)) return code.slice(3).toLowerCase();
  return key.length === 1 ? key.toLowerCase() : key;
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

// In a lecture a page key first shows what of the lesson's column lies beyond the screen; without one, it scrolls.
function page(way) {
  const main = document.querySelector("[data-testid=stMain]");
  const column = document.querySelector(".st-key-lesson-column");
  const room = main && (way > 0 ? main.scrollHeight - main.clientHeight - main.scrollTop : main.scrollTop);
  if (!(room > 1)) return false;
  const beyond = column ? column.getBoundingClientRect() : null;
  const bar = 0.1 * innerHeight;
  if (beyond && (way > 0 ? beyond.bottom <= innerHeight + 1 : beyond.top >= -bar)) return false;
  main.addEventListener("scrollend", arrived, { once: true });
  main.scrollBy({ top: way * 0.7 * innerHeight, behavior: "smooth" });
  return true;
}

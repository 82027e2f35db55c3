// Keys for whoever presents: each presses one of the page's buttons, wherever the focus is but in a text; and the pointer,
// a large dot that follows the mouse, for the back row.
//
// `keys` says which: {key: the class that Streamlit gives to the button's element, or "pointer"}.

import { tidyHistory } from "./history.js";

const TEXT = "input:not([type=range], [type=radio], [type=checkbox]), textarea, select, [contenteditable=true]";
const MOVES = "input[type=range], [role=slider]"; // what page keys move, except in a lecture
const PAGES = { PageDown: 1, PageUp: -1 };
const AWAKE = 0.8; // below this share of the window's height the pointer wakes the bar

export default function ({ data, parentElement }) {
  tidyHistory();
  const dot = parentElement.querySelector(".presenter");
  if (!dot || !data?.keys) return undefined;
  const { keys, lecture } = data;
  const move = ({ clientX, clientY }) => {
    dot.style.translate = `${clientX}px ${clientY}px`;
    document.querySelector(".st-key-lecture-bar")?.classList.toggle("awake", clientY > AWAKE * innerHeight);
  };
  const press = (event) => {
    const name = keys[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    const held = event.ctrlKey || event.metaKey || event.altKey || event.repeat;
    const from = event.composedPath()[0];
    if (!name || held || from?.matches?.(TEXT) || document.querySelector("[role=dialog]")) return;
    const way = PAGES[event.key];
    if (way && !lecture && from?.matches?.(MOVES)) return;
    const done = name === "pointer" ? dot.classList.toggle("shown") || true : (way && lecture && page(way)) || click(name);
    if (!done) return;
    event.preventDefault();
    event.stopPropagation();
  };
  document.addEventListener("pointermove", move);
  document.addEventListener("keydown", press, true);
  dot.classList.add("listening");
  return () => {
    document.removeEventListener("pointermove", move);
    document.removeEventListener("keydown", press, true);
  };
}

function click(name) {
  const button = document.querySelector(`.${name} button:enabled`);
  button?.click();
  return Boolean(button);
}

// In a lecture a page key first shows what of the lesson's column lies beyond the screen; without one, it scrolls.
function page(way) {
  const main = document.querySelector("[data-testid=stMain]");
  const column = document.querySelector(".st-key-lesson-column");
  if (!main) return false;
  const beyond = column ? column.getBoundingClientRect() : null;
  const bar = 0.1 * innerHeight;
  if (beyond && (way > 0 ? beyond.bottom <= innerHeight + 1 : beyond.top >= -bar)) return false;
  main.scrollBy({ top: way * 0.7 * innerHeight, behavior: "smooth" });
  return true;
}

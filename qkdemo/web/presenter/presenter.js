// Keys for whoever presents: each presses one of the page's buttons, wherever the focus is but in a text; and the pointer,
// a large dot that follows the mouse, for the back row.
//
// `keys` says which: {key: the class that Streamlit gives to the button's element, or "pointer"}.

import { tidyHistory } from "./history.js";

const TEXT = "input:not([type=range], [type=radio], [type=checkbox]), textarea, select, [contenteditable=true]";
const MOVES = "input[type=range], [role=slider]"; // what page keys move, except in a lecture
const PAGES = new Set(["PageUp", "PageDown"]);

export default function ({ data, parentElement }) {
  tidyHistory();
  const dot = parentElement.querySelector(".presenter");
  if (!dot || !data?.keys) return undefined;
  const { keys, lecture } = data;
  const move = ({ clientX, clientY }) => {
    dot.style.translate = `${clientX}px ${clientY}px`;
  };
  const press = (event) => {
    const name = keys[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    const held = event.ctrlKey || event.metaKey || event.altKey || event.repeat;
    const from = event.composedPath()[0];
    if (!name || held || from?.matches?.(TEXT) || document.querySelector("[role=dialog]")) return;
    if (!lecture && PAGES.has(event.key) && from?.matches?.(MOVES)) return;
    event.preventDefault();
    event.stopPropagation();
    if (name === "pointer") dot.classList.toggle("shown");
    else document.querySelector(`.${name} button:enabled`)?.click();
  };
  document.addEventListener("pointermove", move);
  document.addEventListener("keydown", press, true);
  dot.classList.add("listening");
  return () => {
    document.removeEventListener("pointermove", move);
    document.removeEventListener("keydown", press, true);
  };
}

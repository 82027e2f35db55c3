// Where the focus goes when what had it is gone: to the verdict when an answer is shown, to the question when another one
// comes, by a button or by a key. Who hears the page hears it, and nothing scrolls.

import { keepInSight } from "./phone.js";

const COLUMN = "[class~=st-key-lesson-column], .st-key-lecture-bar"; // whose buttons are pressed
const ANSWER = ".verdict, [class~=st-key-lesson-column] [data-testid=stAlert]"; // or why there is none yet
let before; // the stop whose answer was on screen, and the title of the stop

export function followFocus(told) {
  requestAnimationFrame(() => {
    const title = document.querySelector("h2.stop")?.textContent;
    const was = before;
    before = { told, title };
    if (!was || (!title && !was.title)) return;
    if (!title) go("[data-testid=stMain] h1");
    else if (title !== was.title || (was.told && !told)) go("h2.stop");
    else if (told && !was.told) {
      go(ANSWER);
      keepInSight();
    }
  });
}

// Not from where a visitor has gone meanwhile: a dial, a chart.
function go(selector) {
  const { activeElement } = document;
  const left = !activeElement?.isConnected || activeElement.matches("body, [data-testid=stMain]") || activeElement.closest(COLUMN);
  const there = left && document.querySelector(selector);
  if (!there) return;
  there.tabIndex = -1;
  there.focus({ preventScroll: true });
}

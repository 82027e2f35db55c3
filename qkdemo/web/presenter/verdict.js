// When an answer is shown, the focus goes to its verdict: who hears the page hears it, and nothing scrolls.

let before; // the stop whose answer was on screen

export function hearVerdict(told) {
  const comes = before === "" && told;
  before = told;
  if (!comes) return;
  requestAnimationFrame(() => {
    const { activeElement } = document;
    const left = !activeElement?.isConnected || activeElement === document.body || activeElement.closest(".st-key-lesson-column");
    if (left) document.querySelector(".verdict")?.focus({ preventScroll: true });
  });
}

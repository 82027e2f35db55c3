// The bar of a lecture, which says its keys: it withdraws, and comes back whenever the mouse or a key moves.

const AWAKE_MS = 4000;
let timer = 0;

export function wake() {
  const bar = document.querySelector(".st-key-lecture-bar");
  if (!bar) return;
  bar.classList.add("awake");
  clearTimeout(timer);
  timer = setTimeout(() => bar.classList.remove("awake"), AWAKE_MS);
}

export function darken() {
  document.querySelectorAll(".key.lit").forEach((key) => key.classList.remove("lit"));
}

// Says at once that a key was heard, whatever the server is doing; until the page has followed.
export function light(key) {
  document.querySelector(`.key[data-key="${key}"]`)?.classList.add("lit");
  return true;
}

// The lesson's column on one screen: its words as large as they can be while all of them fit above the bar.
//
// At the smallest size that the back row reads, what is too long ends in "…"; the rest of it comes with "more".

const SIZES = [1, 0.97, 0.94, 0.91, 0.88, 0.85, 0.82, 0.79, 0.76, 0.73]; // in rem; the last is a fortieth of the screen's height
const LINE = 1.35; // of a line's height to its size, as `lecture.css` says
let watched; // the column that is fitted
const sizes = new ResizeObserver(() => fit());

export function fitColumn(lecture, signal) {
  const column = lecture ? document.querySelector(".st-key-lesson-column") : null;
  if (!lecture) document.documentElement.classList.remove("more");
  if (watched !== column) {
    sizes.disconnect();
    watched = column;
    if (column) sizes.observe(column);
  }
  addEventListener("resize", fit, { signal });
  fit();
}

function fit() {
  if (!watched?.isConnected) return;
  const room = room_of(watched);
  const key = `${Math.round(room)} ${watched.scrollHeight}`;
  if (watched.dataset.fitted === key) return;
  const set = (name, value) => watched.style.setProperty(name, value);
  set("--lines", "none");
  SIZES.some((size) => {
    set("--words", `${size}rem`);
    return watched.scrollHeight <= room;
  });
  const over = watched.scrollHeight - room;
  const prose = watched.querySelector(".st-key-lesson-prose");
  if (over > 0 && prose) {
    const line = LINE * parseFloat(getComputedStyle(prose).fontSize);
    set("--lines", Math.max(1, Math.floor(prose.offsetHeight / line) - Math.ceil(over / line)));
  }
  watched.dataset.fitted = `${Math.round(room)} ${watched.scrollHeight}`;
}

function room_of(column) {
  const style = getComputedStyle(document.documentElement);
  const bar = parseFloat(style.getPropertyValue("--bar") || "0") * parseFloat(style.fontSize);
  return innerHeight - 1 - bar - column.getBoundingClientRect().top - document.querySelector("[data-testid=stMain]").scrollTop;
}

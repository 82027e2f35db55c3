// Gives the focus to a heading, or a verdict, that has just come, so that it is read aloud; on a phone it is scrolled to as well.

const PHONE = "(max-width: 640px)"; // where Streamlit stacks its columns
const done = new Set();

export default function ({ data }) {
  const heading = data && document.querySelector(`.${data.within} :is(h1, h2, h3, p)`);
  if (!heading || done.has(data.token)) return;
  done.add(data.token);
  heading.tabIndex = -1;
  heading.focus({ preventScroll: true });
  if (!matchMedia(PHONE).matches) return;
  heading.style.scrollMarginTop = "4rem"; // below Streamlit's header
  heading.scrollIntoView({ block: "start" });
}

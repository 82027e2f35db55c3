// What Streamlit leaves undone when a visitor comes somewhere else.
//
// * A track's new stop opens at its top: Streamlit keeps the place that was scrolled to. It is moved as soon as the title
//   has changed, which is before that is painted. Turning a dial or answering changes no title.
// * In a narrow window choosing a page closes the menu, which would cover it: Streamlit closes it on a phone alone.

const NARROW = "(max-width: 768px)"; // where Streamlit's sidebar lies over the page
let stop; // the title that is on screen, or was last

export function openAtTop() {
  if (stop !== undefined) return;
  stop = titled() ?? "";
  new MutationObserver(() => {
    const title = titled();
    if (!title || title === stop) return;
    stop = title;
    document.documentElement.classList.remove("more"); // which belonged to the stop before
    document.querySelector("[data-testid=stMain]")?.scrollTo({ top: 0, behavior: "instant" });
  }).observe(document.body, { childList: true, characterData: true, subtree: true });
}

let closes = false;

export function closeMenu() {
  if (closes) return;
  closes = true;
  document.addEventListener("click", ({ target }) => {
    if (!target.closest?.("[data-testid=stSidebarNavLink]") || !matchMedia(NARROW).matches) return;
    // Not before Streamlit did: its button would open again what it closed.
    setTimeout(() => document.querySelector("[data-testid=stSidebarCollapseButton] button")?.click());
  });
}

// The title of the track's stop on screen, if there is one.
export const titled = () => document.querySelector("h2.stop")?.textContent;

// What lies beside the app in the page, such as a menu that is open, has the theme's colours too: the line around what has
// the focus is in the strongest one.
export function wearScheme() {
  const app = document.querySelector("[data-testid=stApp]");
  document.documentElement.style.colorScheme = app ? getComputedStyle(app).colorScheme : "";
}

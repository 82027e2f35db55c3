// One entry in the browser's history for one thing that a visitor did.
//
// Streamlit pushes an address for every change of page and for every change of the query, so that going to a page leaves
// two entries: the page's bare address, or the next page's query on the page before. Going back would end in between, and
// whatever the page then writes would cut off the way forward. Such a push replaces the entry it completes.

const SOON_MS = 1000;

export function tidyHistory() {
  if (window.qkdemoTidy) return;
  const push = history.pushState.bind(history);
  let last = { at: -Infinity, moved: false };
  addEventListener("popstate", () => {
    last = { at: performance.now(), moved: true };
  });
  history.pushState = (state, title, url) => {
    const { pathname } = new URL(url, location.href);
    const moves = pathname !== location.pathname;
    const soon = performance.now() - last.at < SOON_MS;
    const completes = soon && (last.moved || moves);
    last = { at: performance.now(), moved: moves };
    if (completes) history.replaceState(state, title, url);
    else push(state, title, url);
  };
  window.qkdemoTidy = true;
}

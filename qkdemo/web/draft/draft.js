// Answers that are not sent yet are kept by this window, so that a page that is loaded anew, or a server that is started
// again, loses none: in the order of the questions, which choice is on.
//
// `key` names the sheet, `within` is the class of what holds its questions.

const GROUPS = "[role=radiogroup]";
let listening = new AbortController();

export default function ({ data }) {
  if (!data) return undefined;
  listening.abort();
  listening = new AbortController();
  const { signal } = listening;
  const name = `qkdemo:draft:${data.key}`;
  document.addEventListener("change", ({ target }) => target.closest?.(`.${data.within} ${GROUPS}`) && keep(), { signal });
  restore();
  return () => {
    if (signal === listening.signal) listening.abort();
  };

  function groups() {
    return [...document.querySelectorAll(`.${data.within} ${GROUPS}`)].map((group) => [...group.querySelectorAll("input")]);
  }

  function keep() {
    const chosen = groups().map((inputs) => inputs.findIndex((input) => input.checked));
    try {
      sessionStorage.setItem(name, JSON.stringify(chosen));
    } catch {
      // where a browser keeps nothing, the answers live as long as the page
    }
  }

  // The questions may be drawn after this; each is answered once it is there, unless it was answered meanwhile.
  function restore(tries = 20) {
    if (signal.aborted) return;
    const kept = stored();
    const there = groups();
    if (there.length < kept.length) {
      if (tries) setTimeout(restore, 100, tries - 1);
      return;
    }
    there.forEach((inputs, at) => {
      if (!inputs.some((input) => input.checked)) inputs[kept[at]]?.click();
    });
  }

  function stored() {
    try {
      return JSON.parse(sessionStorage.getItem(name)) ?? [];
    } catch {
      return [];
    }
  }
}

// The page's one polite status: what a change brought, said once when it has settled, for those who hear the page.
//
// Whoever has something to say sends "qkdemo:say": {words}, or {finding, more}: what the page found, and its numbers, which
// are said where the sentence is the same as before. What stands on a page that was just opened is not said: it is read.

const QUIET_MS = 300; // more that comes within it is one change

const node = document.createElement("p");
let known; // what was found last: {finding, more, stop}
let timer = 0;

export function say(words) {
  clearTimeout(timer);
  timer = setTimeout(() => {
    if (words && node.textContent !== words) node.textContent = words;
  }, QUIET_MS);
}

function found(finding, more = "") {
  const before = known;
  const stop = document.querySelector("h2.stop")?.textContent;
  known = { finding, more, stop };
  if (before && before.stop !== stop) node.textContent = ""; // what is found at this stop is said, also if it was at the last
  if (!before || before.stop !== stop) return; // the focus goes to the new question, which is heard then
  if (finding !== before.finding) say(finding);
  else if (before.more && more !== before.more) say(more);
}

node.id = "qkdemo-status";
node.setAttribute("role", "status");
node.setAttribute("aria-live", "polite");
node.style.cssText = "position: fixed; width: 1px; height: 1px; margin: 0; overflow: hidden; clip-path: inset(50%); white-space: nowrap;";
document.body.append(node);
document.addEventListener("qkdemo:say", ({ detail: { words, finding, more } }) => (finding ? found(finding, more) : say(words)));

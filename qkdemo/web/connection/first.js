// The picture that the server drew into the page's own HTML goes when the page has drawn itself, or shows something else.

const LOOK_MS = 100;
const WITHOUT_MS = 2000; // a page that came to rest without an exhibit shows what it has to say
const picture = document.getElementById("qkdemo-first");
const { href } = location;
let rested = 0;

// An exhibit whose style has not come yet is not seen.
function drawn(/** @type {Event} */ event) {
  const exhibit = /** @type {Element} */ (event.composedPath()[0]);
  const look = () => {
    if (!picture?.isConnected) return;
    if (getComputedStyle(exhibit).visibility !== "visible") setTimeout(look, LOOK_MS);
    else requestAnimationFrame(() => requestAnimationFrame(leave));
  };
  look();
}

function watch() {
  const app = document.querySelector("[data-testid=stApp]");
  const rests = app?.getAttribute("data-test-script-state") === "notRunning" && document.querySelector("[data-testid=stMainBlockContainer]");
  rested = rests ? rested + LOOK_MS : 0;
  const elsewhere = new URL(href).pathname !== location.pathname;
  if (elsewhere || rested > WITHOUT_MS || document.querySelector("[role=dialog]")) leave();
}

function leave() {
  clearInterval(timer);
  document.removeEventListener("qkdemo:drawn", drawn);
  const main = document.querySelector("[data-testid=stMain]");
  if (main && picture) main.scrollTop = picture.scrollTop;
  picture?.remove();
}

const timer = setInterval(watch, LOOK_MS);
document.addEventListener("qkdemo:drawn", drawn);
if (!picture) leave();

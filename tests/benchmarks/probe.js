// Watches a page from inside, before its own scripts run. Times are performance.now().
//
//   frames   when each frame was over in which a canvas was drawn on, or what is watched changed
//   delays   from a pointer's event to the end of the frame that it changed
//   moves    pointer events that the page received, those that the browser merged included
//   ticks    animation frames that the page got, whatever they showed
//   touched  when the page last drew on a canvas or changed its words or elements
//   first    when a canvas was first drawn on
//   watch    (element) counts a frame, too, in which an attribute or a word inside of this element became another one
//   words    when the first element of `window.awaited` (a selector) was there

(() => {
  const probe = (window.probe = { touched: 0, first: 0, words: 0 });
  probe.reset = () => Object.assign(probe, { frames: [], delays: [], moves: 0, ticks: 0, pressed: 0, asked: 0 });
  probe.reset();

  const over = new MessageChannel(); // a message sent within a frame arrives after it was painted
  let drawn = false;
  const draw = () => {
    if (!drawn) over.port2.postMessage(null);
    drawn = true;
  };
  over.port1.onmessage = () => {
    const now = (probe.touched = performance.now());
    drawn = false;
    probe.first ||= now;
    probe.frames.push(now);
    if (probe.asked) probe.delays.push(now - probe.asked);
    probe.asked = 0;
  };

  for (const name of ["clearRect", "fillRect", "stroke", "fill", "drawImage"]) {
    const original = CanvasRenderingContext2D.prototype[name];
    CanvasRenderingContext2D.prototype[name] = function (...given) {
      if (this.canvas.isConnected) draw();
      return original.apply(this, given);
    };
  }
  const changed = ({ type, target, attributeName, oldValue }) =>
    type === "childList" || oldValue !== (type === "attributes" ? target.getAttribute(attributeName) : target.data);
  probe.watch = (element) =>
    new MutationObserver((records) => records.some(changed) && draw()).observe(element, {
      subtree: true, childList: true, characterDataOldValue: true, attributeOldValue: true,
    });
  addEventListener("pointermove", (event) => {
    probe.asked = event.timeStamp;
    probe.moves += event.getCoalescedEvents?.().length || 1;
  }, true);
  addEventListener("keydown", (event) => (probe.pressed = event.timeStamp), true);
  const tick = () => {
    probe.ticks += 1;
    if (!probe.words && window.awaited && document.querySelector(window.awaited)) probe.words = performance.now();
    requestAnimationFrame(tick);
  };
  tick();
  addEventListener("DOMContentLoaded", () =>
    new MutationObserver((changes) => {
      const inside = ({ target }) => (target.closest ? target : target.parentElement)?.closest("[data-testid=stMain], [data-testid=stSidebar]");
      if (changes.some(inside)) probe.touched = performance.now();
    }).observe(document.body, { subtree: true, childList: true, characterData: true }),
  );
})();

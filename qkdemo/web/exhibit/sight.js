// Which pictures are on screen. While the dial moves the others rest, and are right again when it stands or they come.

const NEAR = "120px"; // a panel that is about to come is drawn already
const AROUND = /** @type {IntersectionObserverInit} */ ({ rootMargin: NEAR, scrollMargin: NEAR });

export class Sight {
  // `came` is called when a panel that was not seen comes.
  constructor(came) {
    this.hidden = new Set(); // until the browser says otherwise all are seen
    this.observer = new IntersectionObserver((entries) => this.look(entries) && came(), AROUND);
  }

  watch(nodes) {
    this.observer.disconnect();
    this.hidden.clear();
    for (const node of nodes) this.observer.observe(node);
  }

  look(entries) {
    const came = entries.filter(({ target, isIntersecting }) => isIntersecting && this.hidden.delete(target));
    for (const { target, isIntersecting } of entries) if (!isIntersecting) this.hidden.add(target);
    return came.length > 0;
  }

  sees(node) {
    return !this.hidden.has(node);
  }

  close() {
    this.observer.disconnect();
  }
}

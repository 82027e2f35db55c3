// Which parts are on screen. While the dial moves the others rest, and are right again when it stands or they come.

export class Sight {
  // `came` is called when a panel that was not seen comes.
  constructor(came) {
    this.hidden = new Set(); // until the browser says otherwise all are seen
    this.observer = new IntersectionObserver((entries) => this.look(entries) && came());
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

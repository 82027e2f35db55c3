// The pointer: while it is shown, the mouse points, and turns no dial; a shield lies over the page.

export function point(root, { clientX, clientY }) {
  const dot = root.querySelector(".dot");
  if (dot) dot.style.translate = `${clientX}px ${clientY}px`;
}

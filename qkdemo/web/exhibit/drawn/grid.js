// A grid of texts, whose cells can be picked: rows have a role, cells a tone. An HTML table, so that it reads itself out.
//
// Its texts follow the cursor. Columns are equally wide, so that nothing jumps.

export class Grid {
  // What must be equal for the table to be kept.
  static shapeOf({ rows, head }) {
    return [rows.map((row) => row.role), head.length];
  }

  constructor({ rows, head }) {
    const words = () => ["short", "full"].map((className) => node("span", null, { className }));
    this.head = head.map(() => node("th", "columnheader", { scope: "col" }, ...words()));
    this.rows = rows.map(({ role }) => ({
      label: node("th", "rowheader", { scope: "row", className: `role-${role}` }),
      cells: head.map(() => node("td", "gridcell", { tabIndex: -1 }, document.createTextNode(""))),
      role,
    }));
    this.corner = node("td", "columnheader", {});
    this.table = node(
      "table",
      "grid",
      {},
      node("thead", "rowgroup", {}, node("tr", "row", {}, this.corner, ...this.head)),
      node("tbody", "rowgroup", {}, ...this.rows.map(({ label, cells, role }) => node("tr", "row", { className: `of-${role}` }, label, ...cells))),
    );
    this.node = node("div", null, { className: "scroller" }, this.table);
  }

  name(words) {
    this.table.setAttribute("aria-label", words);
  }

  follow(panel, sweep) {
    this.corner.textContent = panel.corner ?? "";
    panel.head.forEach(({ text, label, rest }, i) => {
      [text, label].forEach((words, at) => (this.head[i].children[at].textContent = words));
      this.head[i].title = label;
      this.head[i].setAttribute("aria-label", label);
      for (const cell of [this.head[i], ...this.rows.map(({ cells }) => cells[i])]) cell.classList.toggle("rest", Boolean(rest));
    });
    panel.rows.forEach((row, i) => {
      this.rows[i].label.textContent = row.text;
      this.rows[i].label.setAttribute("aria-label", row.label);
      this.rows[i].label.parentElement.classList.toggle("rest", Boolean(row.rest));
      this.rows[i].texts = sweep.texts(row.column);
      this.rows[i].tones = sweep.texts(row.tones);
    });
  }

  show(row) {
    for (const { cells, texts, tones } of this.rows) {
      const words = texts[row].split("\t");
      cells.forEach((cell, i) => {
        if (cell.firstChild.nodeValue !== words[i]) cell.firstChild.nodeValue = words[i];
        if (cell.dataset.tone !== tones[row][i]) cell.dataset.tone = tones[row][i];
      });
    }
  }

  // Marks the selected cell, which is also the one that Tab reaches.
  mark([row, column]) {
    const cell = this.rows[row]?.cells[column];
    if (cell === this.marked) return;
    if (this.marked) {
      this.marked.tabIndex = -1;
      this.marked.removeAttribute("aria-selected");
    }
    this.marked = cell;
    if (!cell) return;
    cell.tabIndex = 0;
    cell.setAttribute("aria-selected", "true");
  }

  // The [row, column] of an element of the table, or null.
  at(element) {
    const cell = element.closest("td[role=gridcell]");
    const row = this.rows.findIndex(({ cells }) => cells.includes(cell));
    return row < 0 ? null : [row, this.rows[row].cells.indexOf(cell)];
  }

  // The next cell that is shown in that direction; the same one if there is none.
  next([row, column], [down, right]) {
    let [r, c] = [row + down, column + right];
    while (this.rows[r]?.cells[c] && !this.rows[r].cells[c].getClientRects().length) [r, c] = [r + down, c + right];
    return this.rows[r]?.cells[c] ? [r, c] : [row, column];
  }

  focus([row, column]) {
    this.rows[row].cells[column].focus();
  }
}

function node(tag, role, properties, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  if (role) made.setAttribute("role", role);
  made.append(...children);
  return made;
}

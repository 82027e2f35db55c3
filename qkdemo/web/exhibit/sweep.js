// The sweep: the Arrow table that Python sent, one row per position of the dial, decoded column by column when first asked for.

export class Sweep {
  constructor(table, dial) {
    this.table = table;
    this.rows = table.numRows;
    this.columns = new Map();
    this.dial = this.numbers(dial.column);
    this.scaled = scaleOf(dial.log, this.dial[0]);
    this.places = Float64Array.from(this.dial, (value) => this.place(value));
  }

  has(name) {
    return Boolean(this.table.getChild(name));
  }

  // The scalar column as a Float64Array.
  numbers(name) {
    return this.decoded(name, (column) => Float64Array.from({ length: this.rows }, (_, row) => Number(column.get(row))));
  }

  // The list of one row as a typed array.
  list(name, row) {
    return this.decoded(name, (column) => Array.from({ length: this.rows }, (_, r) => column.get(r).toArray()))[row];
  }

  // The strings of a column.
  texts(name) {
    return this.decoded(name, (column) => Array.from({ length: this.rows }, (_, row) => String(column.get(row) ?? "")));
  }

  text(name, row) {
    return this.texts(name)[row];
  }

  decoded(name, decode) {
    if (!this.columns.has(name)) {
      const column = this.table.getChild(name);
      if (!column) throw new Error(`exhibit: the table has no column ${name}`);
      this.columns.set(name, decode(column));
    }
    return this.columns.get(name);
  }

  // Where a dial value lies between the first row (0) and the last (1).
  place(value) {
    const [first, last] = [this.scaled(this.dial[0]), this.scaled(this.dial[this.rows - 1])];
    return (this.scaled(value) - first) / (last - first || 1);
  }

  // The row nearest to a place between 0 and 1.
  rowAt(place) {
    let low = 0;
    let high = this.rows - 1;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (this.places[middle] <= place) low = middle;
      else high = middle;
    }
    return place - this.places[low] <= this.places[high] - place ? low : high;
  }

  rowOf(value) {
    return this.rowAt(this.place(value));
  }
}

// A logarithmic dial that starts at 0 is laid out by log(1 + x).
function scaleOf(log, first) {
  if (!log) return (value) => value;
  return first > 0 ? Math.log : Math.log1p;
}

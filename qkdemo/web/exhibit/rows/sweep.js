// The sweep: the columns that Python sent, one row per position of the dial, decoded when first asked for.

import { numbersIn, textsIn } from "./parcel.js";

export class Sweep {
  constructor({ rows, columns }, dial) {
    this.rows = rows;
    this.columns = columns;
    this.dial = this.numbers(dial.column);
    this.scaled = scaleOf(dial.log, this.dial[0]);
    this.places = Float64Array.from(this.dial, (value) => this.place(value));
  }

  has(name) {
    return this.columns.has(name);
  }

  // The scalar column as a Float64Array.
  numbers(name) {
    return this.decoded(name, (column) => Float64Array.from(numbersIn(column)));
  }

  // The list of one row as a typed array.
  list(name, row) {
    return this.decoded(name, (column) => listsOf(numbersIn(column), column.width, this.rows))[row];
  }

  // The strings of a column.
  texts(name) {
    return this.decoded(name, textsIn);
  }

  text(name, row) {
    return this.texts(name)[row];
  }

  // What a column holds: kept with it, since the next sweep may have it too.
  decoded(name, decode) {
    const column = this.columns.get(name);
    if (!column) throw new Error(`exhibit: the table has no column ${name}`);
    return (column.decoded ??= decode(column));
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

// One typed array for each row.
function listsOf(numbers, width, rows) {
  const lists = Array.from({ length: rows }, () => new numbers.constructor(width));
  for (let i = 0; i < width; i++) for (let row = 0; row < rows; row++) lists[row][i] = numbers[i * rows + row];
  return lists;
}

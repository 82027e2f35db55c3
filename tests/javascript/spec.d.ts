// Made by `python -m tests.javascript.declarations` from qkdemo/charts: panels.py, spec.py.

declare namespace Spec {
  interface Text {
    text: string;
  }

  interface PlainAxis {
    ticks: [number, string][];
  }

  interface Axis {
    log: boolean;
    domain: [number, number];
    ticks: [number, string][];
    grows?: boolean;
  }

  interface Line {
    role: "plain" | "norm" | "bound" | "left" | "right" | "other";
    column: string;
    label: string;
    low?: string;
    high?: string;
    dots?: boolean;
    name?: string;
    texts?: string;
  }

  interface Mark {
    x: number;
    label: string;
    role: "plain" | "norm" | "bound" | "left" | "right" | "other";
  }

  interface Point {
    x: number;
    y: number;
    role: "plain" | "norm" | "bound" | "left" | "right" | "other";
    label: string;
    read?: boolean;
  }

  interface Level {
    y: number;
    label: string;
  }

  interface Curves {
    title: string;
    subtitle?: string;
    on_paper?: string;
    wide: number;
    tall?: boolean;
    matters?: boolean;
    rest?: boolean;
    folded?: number;
    kind: "curves";
    x: PlainAxis;
    y: Axis;
    lines: Line[];
    marks: Mark[];
    points?: Point[];
    levels?: Level[];
    labels?: "apart";
    noise?: number;
  }

  interface Details {
    url: string;
    panel: number;
    numbers: Record<string, string[]>;
  }

  interface Pooled {
    each: number;
    of: number;
    queries: string;
    keys: string;
  }

  interface Heat {
    title: string;
    subtitle?: string;
    on_paper?: string;
    wide: number;
    tall?: boolean;
    matters?: boolean;
    rest?: boolean;
    folded?: number;
    kind: "heat";
    role: "plain" | "norm" | "bound" | "left" | "right" | "other";
    column: string;
    rows: number;
    columns: number;
    selected: [number, number] | null;
    query_label: string;
    key_label: string;
    pooled?: Pooled;
    coarse?: number;
    ramp?: [number, string][];
    details?: Details;
  }

  interface BarsLine {
    role: "plain" | "norm" | "bound" | "left" | "right" | "other";
    column: string;
    label?: string;
    numbers?: string[];
  }

  interface Note {
    role: "plain" | "norm" | "bound" | "left" | "right" | "other";
    column: string;
    entry: number | null;
    x: number;
    label: string;
  }

  interface Bars {
    title: string;
    subtitle?: string;
    on_paper?: string;
    wide: number;
    tall?: boolean;
    matters?: boolean;
    rest?: boolean;
    folded?: number;
    kind: "bars";
    lines: BarsLine[];
    labels: string[];
    selected: number | null;
    key_label: string;
    y?: PlainAxis;
    pooled?: Pooled;
    notes?: Note[];
  }

  interface Cells {
    title: string;
    subtitle?: string;
    on_paper?: string;
    wide: number;
    tall?: boolean;
    matters?: boolean;
    rest?: boolean;
    folded?: number;
    kind: "cells";
    head: (string | Text)[];
    roles: ("plain" | "norm" | "bound" | "left" | "right" | "other" | null)[];
    rows: ((string | Text)[])[];
    strong?: number;
    breaks?: number[];
  }

  interface Head {
    text: string;
    label: string;
    rest?: boolean;
  }

  interface GridRow {
    text: string;
    label: string;
    rest?: boolean;
    role: "plain" | "norm" | "bound" | "left" | "right" | "other";
    column: string;
    tones: string;
  }

  interface Grid {
    title: string;
    subtitle?: string;
    on_paper?: string;
    wide: number;
    tall?: boolean;
    matters?: boolean;
    rest?: boolean;
    folded?: number;
    kind: "grid";
    corner: string;
    head: Head[];
    rows: GridRow[];
    selected: [number, number];
  }

  interface Arcs {
    title: string;
    subtitle?: string;
    on_paper?: string;
    wide: number;
    tall?: boolean;
    matters?: boolean;
    rest?: boolean;
    folded?: number;
    kind: "arcs";
    labels: string[];
    lines: Line[];
    selected: number;
    key_label: string;
  }

  interface Arrows {
    title: string;
    subtitle?: string;
    on_paper?: string;
    wide: number;
    tall?: boolean;
    matters?: boolean;
    rest?: boolean;
    folded?: number;
    kind: "arrows";
    role: "plain" | "norm" | "bound" | "left" | "right" | "other";
    angles: string;
    lengths: string;
    query: string;
    selected: number;
    keys?: number[];
    reach: number;
    ring: number | null;
    label: string;
  }

  interface Pick {
    dial?: number;
    query?: number;
    key?: number;
    row?: number;
    column?: number;
    fork?: number;
    news?: number;
    command?: string;
    guess?: number;
    again?: number;
  }

  interface Dial {
    column: string;
    name?: string;
    text: string;
    label: string;
    at: number;
    log: boolean;
  }

  interface TileLine {
    role: "plain" | "norm" | "bound" | "left" | "right" | "other";
    column: string | Text;
  }

  interface Tile {
    label: string;
    lines: TileLine[];
  }

  interface Fork {
    label: string;
    help: string;
  }

  interface Live {
    url?: string;
    source?: string;
    columns?: string[];
    steps?: number;
    own?: boolean;
    shipped?: boolean;
    pace?: number;
    resting?: boolean;
    shown?: number;
    watch?: boolean;
    lead?: string;
    forks?: Fork[];
  }

  interface Veil {
    x?: number;
    from?: number;
    column?: string;
    low?: number;
    high?: number;
  }

  interface Guess {
    column: string;
    x: number;
    y: number;
    label: string;
  }

  interface Fold {
    more: string;
    less: string;
  }

  interface Exhibit {
    dial: Dial;
    finding: string;
    room?: string;
    heading?: number;
    tiles: Tile[];
    panels: (Curves | Heat | Bars | Cells | Grid | Arcs | Arrows)[];
    words: Record<string, string>;
    alt: string;
    fold?: Fold;
    live?: Live;
    made?: string;
    veil?: Veil | null;
    guesses?: Guess[];
    lecture?: boolean;
    stop?: boolean;
  }

  type Panel = Curves | Heat | Bars | Cells | Grid | Arcs | Arrows;
}

// What the compiler cannot know of the page: its selectors find HTML elements, and these are its own events.

// What a panel is drawn from: itself, all of the exhibit, the rows of its table, and how it is looked at.
interface Scene<P> {
  panel: P;
  view: Spec.Exhibit;
  row: number;
  selected: any; // what the visitor chose last, else the panel's
  sweep: any;
  theme: any;
  measure: any;
  gutters: any;
  axis: any; // where the title of the axis stands
  open: number[]; // the first and last row that may be seen
  lit: any;
  guesses: Spec.Guess[];
}

interface ParentNode {
  querySelector<E extends HTMLElement & HTMLInputElement & HTMLMetaElement>(selectors: string): E | null;
  querySelectorAll<E extends HTMLElement & HTMLInputElement>(selectors: string): NodeListOf<E>;
}

interface EventTarget {
  closest?(selectors: string): HTMLElement | null;
}

interface Event {
  composedPath(): HTMLElement[];
}

interface DocumentEventMap {
  "qkdemo:look": CustomEvent;
  "qkdemo:served": CustomEvent<{ server: string; page: string }>;
  "qkdemo:back": CustomEvent;
  "qkdemo:say": CustomEvent<{ words?: string; finding?: string; more?: string }>;
}

interface Window {
  qkdemoTidy?: boolean;
}

interface IntersectionObserverInit {
  scrollMargin?: string; // Chromium 120, and the others since; the compiler's list is older
}

// What the compiler cannot know of the page: its selectors find HTML elements, and these are its own events.

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

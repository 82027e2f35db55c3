// Where the app answers, whatever path stands before its pages: at the server or at a proxy before it that takes it away.

const DEEP = "../../../"; // this module lies in _stcore/bidi-components/<component>/ of it

export const HOME = new URL(DEEP, import.meta.url);

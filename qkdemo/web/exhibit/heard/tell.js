// A word to the page's polite status, which `connection/status.js` is.

export function tell(detail) {
  document.dispatchEvent(new CustomEvent("qkdemo:say", { detail }));
}

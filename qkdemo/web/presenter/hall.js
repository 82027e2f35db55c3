// What a lecture's window tells the speaker's, which `notes/notes.js` is, and the keys that come back from there.

const channel = new BroadcastChannel("qkdemo:lecture");

export function tellNotes(place, press, signal) {
  const tell = () => channel.postMessage({ place });
  const hear = ({ data }) => {
    if (data?.where) tell();
    else if (typeof data?.key === "string") press(data.key);
  };
  channel.addEventListener("message", hear, { signal });
  tell();
}

export function openNotes() {
  window.open("./notes", "qkdemo-notes", "popup,width=1000,height=760");
  return true;
}

// The frontiers of all collections as /frontiers tells them. A page that nobody looks at has no connection: browsers
// have six for a server, and each tab that listens takes one.
export function frontiers({ onState, onChange }) {
  let source = null, isFirst = true;

  function open() {
    source = new EventSource("frontiers");
    isFirst = true;
    source.onmessage = ({ data }) => {
      const { collections, gone = [] } = JSON.parse(data);
      onState("live");
      // Each connection begins with all of them.
      onChange(collections, gone, isFirst);
      isFirst = false;
    };
    source.onerror = () => {
      onState("reconnecting");
      isFirst = true;
      if (source.readyState === EventSource.CLOSED) {
        close();
        setTimeout(look, 3000);
      }
    };
  }

  function close() {
    source?.close();
    source = null;
  }

  function look() {
    if (document.hidden) close();
    else if (!source) open();
  }

  document.addEventListener("visibilitychange", look);
  look();
}

// Browsers refuse workers to pages that are opened from a disk. There the search runs in a hidden frame instead: what is
// posted to the worker becomes an event inside the frame, and what the frame posts becomes an event of the worker.
if (location.protocol === "file:") {
  class FrameWorker extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      const inside = frame.contentWindow;
      inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      const script = inside.document.createElement("script");
      script.src = new URL(url, location.href).href;
      this.loaded = new Promise((resolve) => script.addEventListener("load", resolve));
      this.deliver = (data) => inside.dispatchEvent(new MessageEvent("message", { data }));
      inside.document.body.append(script);
    }

    postMessage(data) {
      this.loaded.then(() => this.deliver(data));
    }
  }
  window.IFrameWorker = window.Worker = FrameWorker; // by the first name the search knows that it runs in a frame
}

/**
 * What the server says of itself, shared by all stages of a page: one websocket, taken up again when it breaks.
 */

const RETRY_S = 2;
/** @type {Map<string, Status>} */
const OPEN = new Map();

/** @param {string} url @returns {Status} */
export function openStatus(url) {
  if (!OPEN.has(url)) OPEN.set(url, new Status(url));
  return OPEN.get(url);
}

class Status {
  constructor(url) {
    this.url = url;
    this.users = 0;
    /** @type {any} */ this.value = null;
  }

  use() {
    this.users += 1;
    if (this.users === 1) this.#connect();
  }

  release() {
    this.users -= 1;
    if (this.users === 0) this.socket?.close();
  }

  #connect() {
    const url = new URL(this.url, document.baseURI);
    url.protocol = url.protocol.replace("http", "ws");
    const socket = (this.socket = new WebSocket(url));
    socket.onmessage = (message) => {
      try {
        this.value = JSON.parse(message.data);
      } catch {
        this.value = null;
      }
    };
    socket.onclose = () => {
      if (this.socket !== socket) return;
      this.value = null;
      setTimeout(() => this.users > 0 && this.socket === socket && this.#connect(), RETRY_S * 1000);
    };
  }
}

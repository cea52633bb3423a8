/**
 * Keeps a person's own devices and models in this browser: what they added here comes back on their next visit. It draws
 * nothing. A link that brings other devices never overwrites them; only adding and forgetting does.
 */

const KEY = "siliconscope.own";

/** @param {{data: {own: string, changed: boolean}, setStateValue: Function}} component @param {Storage} [storage] */
export default function keep({ data, setStateValue }, storage = safeStorage()) {
  const held = storage?.getItem(KEY) ?? "";
  if (data.changed && data.own) storage?.setItem(KEY, data.own);
  else if (data.changed) storage?.removeItem(KEY);
  else if (!data.own && held) setStateValue("own", held);
}

/** A browser may forbid storage; then the address alone keeps them. */
function safeStorage() {
  try {
    return window.localStorage;
  } catch {
    return null;
  }
}

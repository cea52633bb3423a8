/**
 * The keys of runs that were started in this tab. Streamlit forgets a session at a refresh; the tab keeps the key, so
 * that whoever started a run can still stop it. A tab without storage (a browser may forbid it) keeps nothing.
 */

const PREFIX = "siliconscope-run-key:";

/**
 * @template {{id: string, key?: string | null}} R
 * @param {R | null} run what the page says of the run
 * @param {() => Storage} open gives the tab's storage, or throws where the browser forbids it
 * @returns {R | null} the same, with the key that this tab kept
 */
export function withKey(run, open = () => window.sessionStorage) {
  if (!run) return null;
  try {
    if (run.key) open().setItem(PREFIX + run.id, run.key);
    return { ...run, key: run.key ?? open().getItem(PREFIX + run.id) };
  } catch {
    return run;
  }
}

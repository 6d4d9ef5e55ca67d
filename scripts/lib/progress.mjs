const SILENT_MS = 1_000;

/**
 * @callback Step shows what is under way once it takes longer than a second, and how long it took
 * @param {string} title such as "Building"
 * @param {() => Promise<any>} work
 * @returns {Promise<any>} what the work resolved to
 */

/**
 * @param {(line: string) => void} say
 * @returns {Step}
 */
export function progress(say) {
  return async (title, work) => {
    const began = performance.now();
    let shown = false;
    const timer = setTimeout(() => {
      shown = true;
      say(`  ${title}…`);
    }, SILENT_MS);
    try {
      const result = await work();
      if (shown) say(`  ${title} took ${((performance.now() - began) / 1000).toFixed(1)} s`);
      return result;
    } finally {
      clearTimeout(timer);
    }
  };
}

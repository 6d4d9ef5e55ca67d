const SILENT_MS = 1_000;

/**
 * Announces work that takes longer than a second, and then prints its duration. The title is one such as "Building".
 * @typedef {<T>(title: string, work: () => Promise<T>) => Promise<T>} Step
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

/** Opens the worker. Bundlers recognise exactly this expression, and add the file. */
export function openWorker(): Worker {
  return new Worker(new URL('./encryption-worker.js', import.meta.url), { type: 'module' });
}

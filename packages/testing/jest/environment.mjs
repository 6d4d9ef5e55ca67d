import { TestEnvironment } from 'jest-environment-node';
// Jest does not transform an ES module here, so this imports the built package: `npm test` builds first.
import { measureFile } from '../dist/file-usage.js';

const STOP_WITHIN_MS = 30_000;

// @roamhq/wrtc crashes when Node tears down its environment at the end of the event loop: its finalizers release
// references to objects that Node has freed before. process.exit() runs no finalizers, and keeps Jest's exit code.
process.once('beforeExit', () => process.exit());

/** Jest's message to a worker that gets no more files. */
const NO_MORE_FILES = 2;
const OPEN_AFTER_MS = 10_000;
/** A worker's own: the pipes of its output, and the channel to Jest. */
const OWN_RESOURCES = ['PipeWrap', 'TTYWrap'];
const LOOK_EVERY_MS = 100;

// If a worker does not end, Jest says only that a test leaks. This says what is open. A worker that ran WebRTC tests keeps
// a handle of @roamhq/wrtc, which Node does not list, and would wait until Jest kills it: it ends at once.
process.on('message', function onMessage([kind]) {
  if (kind !== NO_MORE_FILES) return;
  process.off('message', onMessage);
  setInterval(() => {
    if (process.getActiveResourcesInfo().every((resource) => OWN_RESOURCES.includes(resource))) process.exit();
  }, LOOK_EVERY_MS).unref();
  setTimeout(() => {
    const handles = process
      ._getActiveHandles()
      .map(({ constructor, remotePort, localPort, spawnargs }) =>
        [constructor.name, spawnargs?.join(' '), localPort, remotePort].filter(Boolean).join(' '),
      );
    const left = [...process.getActiveResourcesInfo(), ...handles].join(', ');
    process.stderr.write(`This Jest worker has nothing to do and does not end. Open: ${left}\n`);
  }, OPEN_AFTER_MS).unref();
});

/**
 * Stops everything that a test file started (see resources.ts), newest first. Runs after all of the file's own hooks,
 * whether or not its tests passed. Then reports the processor time of the file.
 */
export default class CallplaneEnvironment extends TestEnvironment {
  #usage;

  constructor(config, context) {
    super(config, context);
    this.#usage = measureFile(context.testPath);
  }

  handleTestEvent(event) {
    if (event.name === 'run_start') this.#usage.testsBegin();
  }

  async teardown() {
    const stops = this.global[Symbol.for('callplane.resources')] ?? [];
    for (const stop of stops.splice(0).reverse()) {
      let timer;
      const tooLong = new Promise((_, reject) => {
        timer = setTimeout(() => reject(new Error(`not within ${STOP_WITHIN_MS / 1000} s`)), STOP_WITHIN_MS);
      });
      await Promise.race([stop(), tooLong]).catch((error) => console.error('A test server did not stop:', error));
      clearTimeout(timer);
    }
    this.#usage.end();
    await super.teardown();
  }
}

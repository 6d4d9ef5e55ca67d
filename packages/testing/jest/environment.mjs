import { types } from 'node:util';
import { TestEnvironment } from 'jest-environment-node';
// Jest does not transform an ES module here, so this imports the built package: `npm test` builds first.
import { stopAll } from '../dist/resources.js';

// @roamhq/wrtc crashes when Node tears down its environment at the end of the event loop: its finalizers release
// references to objects that Node has freed before. process.exit() runs no finalizers, and keeps Jest's exit code.
process.once('beforeExit', () => process.exit());

/** Jest's message to a worker that gets no more files. */
const NO_MORE_FILES = 2;
const OPEN_AFTER_MS = 10_000;
/** A worker's own: the pipes of its output, and the channel to Jest. */
const OWN_RESOURCES = ['PipeWrap', 'TTYWrap'];
const LOOK_EVERY_MS = 100;

/** @type {typeof import('../dist/worker-servers.js') | undefined} */
let kept;

/** Kept by workerValue() from file to file. */
const values = new Map();

/** Starts the servers that this worker keeps from file to file. Most workers of a short run need none. */
async function keepServers() {
  kept ??= await import('../dist/worker-servers.js');
  return kept.keepServers();
}

/** Ends them. jest/global-teardown.mjs calls it too, because Jest runs a single file without workers. */
export const stopKeptServers = async () => kept?.stopKeptServers();

// If a worker does not end, Jest says only that a test leaks. This names the open handles. A worker that ran WebRTC
// tests keeps a handle of @roamhq/wrtc, which Node does not list, and would wait until Jest kills it: it ends at once.
process.on('message', function onMessage([kind]) {
  if (kind !== NO_MORE_FILES) return;
  process.off('message', onMessage);
  void stopKeptServers();
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
 * whether or not its tests passed.
 */
export default class CallplaneEnvironment extends TestEnvironment {
  constructor(config, context) {
    super(config, context);
    this.global[Symbol.for('callplane.worker')] = keepServers;
    this.global[Symbol.for('callplane.values')] = values;
    // For the modules of share-libraries.mjs.
    this.global['callplane.library'] = (path) => import(path);
    // The errors and dates of shared libraries, and of Node, are errors and dates in a test, too.
    const isNamed = (name) => (value) => types.isNativeError(value) && value.name === name;
    const instanceChecks = { Error: types.isNativeError, Date: types.isDate };
    for (const name of ['AggregateError', 'SyntaxError', 'TypeError']) instanceChecks[name] = isNamed(name);
    for (const [name, isOne] of Object.entries(instanceChecks)) {
      const own = this.global[name];
      Object.defineProperty(own, Symbol.hasInstance, {
        value(value) {
          return Function.prototype[Symbol.hasInstance].call(this, value) || (this === own && isOne(value));
        },
      });
    }
  }

  async teardown() {
    await stopAll(this.global);
    await super.teardown();
  }
}

import { TestEnvironment } from 'jest-environment-node';

const STOP_WITHIN_MS = 30_000;

/**
 * Stops what a test file started (see resources.ts), newest first, after all of the file's own hooks have run and
 * whether or not its tests passed.
 */
export default class CallplaneEnvironment extends TestEnvironment {
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
    await super.teardown();
  }
}

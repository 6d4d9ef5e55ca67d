import { TestEnvironment } from 'jest-environment-node';

/**
 * Stops what a test file started (see resources.ts), newest first, after all of the file's own hooks have run and
 * whether or not its tests passed.
 */
export default class CallplaneEnvironment extends TestEnvironment {
  async teardown() {
    const stops = this.global[Symbol.for('callplane.resources')] ?? [];
    for (const stop of stops.splice(0).reverse()) {
      await stop().catch((error) => console.error('A test server did not stop:', error));
    }
    await super.teardown();
  }
}

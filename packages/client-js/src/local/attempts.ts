import { asCallplaneError } from '../errors.js';
import type { TrackSource } from '../protocol.generated.js';
import type { TrackFailure } from './create-tracks.js';

/** The sources that are being published, muted, unmuted or switched, and why the latest attempt at each has failed. */
export class Attempts {
  readonly #running = new Set<readonly TrackSource[]>();
  readonly #failures = new Map<TrackSource, TrackFailure>();

  constructor(private readonly onChange: () => void) {}

  get pending(): TrackSource[] {
    return [...new Set([...this.#running].flat())];
  }

  get failures(): TrackFailure[] {
    return [...this.#failures.values()];
  }

  async run<T>(sources: readonly TrackSource[], task: () => Promise<T>): Promise<T> {
    this.#running.add(sources);
    for (const source of sources) this.#failures.delete(source);
    this.onChange();
    try {
      return await task();
    } catch (error) {
      const { code, message } = asCallplaneError(error);
      this.fail(sources.map((source) => ({ source, code, message })));
      throw error;
    } finally {
      this.#running.delete(sources);
      this.onChange();
    }
  }

  fail(failures: readonly TrackFailure[]): void {
    for (const failure of failures) {
      // The application has cancelled it.
      if (failure.code !== 'aborted') this.#failures.set(failure.source, failure);
    }
  }
}

import { asCallplaneError, invalidArgument, type CallplaneError } from '../errors.js';
import { STREAM_BYTES_MAX, tooLarge } from './stream-options.js';

const READ_AHEAD_BYTES = 256 * 1024;

/** The bytes that were read of a stream's source. They stay until the end: a lost part is sent again. */
export class Source {
  /** How many bytes were read. */
  available = 0;
  /** Whether these are all. */
  isEnded = false;
  #bytes = new Uint8Array(0);
  #isReading = false;

  constructor(
    private readonly reader: ReadableStreamDefaultReader<Uint8Array | string>,
    private readonly size: number | undefined,
    private readonly on: { read: () => void; failure: (error: CallplaneError) => void },
  ) {}

  /** Reads the next bytes, but only a little further than the fastest recipient. */
  readAhead(ofFastest: number): void {
    if (this.#isReading || this.isEnded || this.available - ofFastest >= READ_AHEAD_BYTES) return;
    this.#isReading = true;
    this.reader.read().then(
      ({ value, done }) => {
        this.#isReading = false;
        if (!done) this.#append(typeof value === 'string' ? new TextEncoder().encode(value) : value);
        else if (this.available === (this.size ?? this.available)) this.isEnded = true;
        else this.on.failure(invalidArgument('size', `is ${this.size}, but the source has ${this.available} bytes`));
        this.on.read();
      },
      (error: unknown) => this.on.failure(asCallplaneError(error)),
    );
  }

  subarray(begin: number, end: number): Uint8Array {
    return this.#bytes.subarray(begin, end);
  }

  cancel(reason: CallplaneError | undefined): void {
    this.reader.cancel(reason).catch(() => undefined);
  }

  #append(chunk: Uint8Array): void {
    const length = this.available + chunk.length;
    if (length > STREAM_BYTES_MAX) {
      this.on.failure(tooLarge(length));
      return;
    }
    if (length > this.#bytes.length) {
      const grown = new Uint8Array(Math.max(length, this.size ?? Math.min(2 * length, STREAM_BYTES_MAX)));
      grown.set(this.#bytes.subarray(0, this.available));
      this.#bytes = grown;
    }
    this.#bytes.set(chunk, this.available);
    this.available = length;
  }
}

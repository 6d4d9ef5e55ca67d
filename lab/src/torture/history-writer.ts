import { createWriteStream, mkdirSync, type WriteStream } from 'node:fs';
import { join } from 'node:path';
import { HISTORY_FILES, REDACTED, type HistoryLines, type JsonObject, type Mark } from './history.js';

type Fields<Kind extends keyof HistoryLines> = Omit<HistoryLines[Kind], 'n' | 'wall'>;

/** Fields whose values are secrets, wherever they are. */
const SECRET = new Set(['token', 'key', 'secret', 'signingSecret', 'resumeSecret', 'credential', 'password']);

export class HistoryWriter {
  readonly #streams = new Map<keyof HistoryLines, { stream: WriteStream; count: number }>();
  #isClosed = false;
  readonly #startedAtMs = performance.now();
  readonly #startedAtWallMs = Date.now();

  constructor(readonly folder: string) {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    for (const [kind, file] of Object.entries(HISTORY_FILES)) {
      const stream = createWriteStream(join(folder, file), { flags: 'wx' });
      this.#streams.set(kind as keyof HistoryLines, { stream, count: 0 });
    }
  }

  /** Milliseconds since the begin of the run. */
  get nowMs(): number {
    return Math.round((performance.now() - this.#startedAtMs) * 1000) / 1000;
  }

  write<Kind extends keyof HistoryLines>(kind: Kind, fields: Fields<Kind>): void {
    // A client may still learn of the end of its connection.
    if (this.#isClosed) return;
    const to = this.#streams.get(kind);
    if (to === undefined) throw new Error(`the history has no file for ${kind}`);
    const { startMs, atMs } = fields as { startMs?: number; atMs?: number };
    const wall = new Date(this.#startedAtWallMs + (startMs ?? atMs ?? 0)).toISOString();
    to.stream.write(`${JSON.stringify({ n: to.count, wall, ...fields })}\n`);
    to.count += 1;
  }

  mark(mark: Mark, detail: JsonObject = {}): void {
    this.write('marks', { atMs: this.nowMs, mark, detail });
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all([...this.#streams.values()].map(({ stream }) => new Promise((done) => stream.end(done))));
  }
}

/** A copy without secrets. */
export function withoutSecrets(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutSecrets);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, held]) => [
      name,
      SECRET.has(name) && typeof held === 'string' ? REDACTED : withoutSecrets(held),
    ]),
  );
}

import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** The folder with the recordings of a fleet, which can be away. */
export class RecordingsStore {
  readonly folder: string;

  constructor(dir: string) {
    this.folder = join(dir, 'recordings');
    mkdirSync(this.folder);
  }

  /** Every use of it fails: a file is in its place. */
  lose(): void {
    renameSync(this.folder, this.#hidden);
    writeFileSync(this.folder, '');
  }

  find(): void {
    if (!existsSync(this.#hidden)) return;
    rmSync(this.folder);
    renameSync(this.#hidden, this.folder);
  }

  get #hidden(): string {
    return `${this.folder}-away`;
  }
}

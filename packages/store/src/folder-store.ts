import { randomUUID } from 'node:crypto';
import { createReadStream, createWriteStream } from 'node:fs';
import { mkdir, open, rename, rm, stat } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { ObjectStore, StoredObject } from './object-store.js';

/** The name of a capture has an @ if its feed says on which media server it is. */
const NAME = /^[A-Za-z0-9_-][A-Za-z0-9._@-]*(\/[A-Za-z0-9_-][A-Za-z0-9._@-]*)*\/?$/;

/** Keeps each object as a file of a folder, which all processes of the deployment share. */
export class FolderStore implements ObjectStore {
  readonly folder: string;
  readonly linkOrigin = null;

  constructor(folder: string) {
    this.folder = resolve(folder);
  }

  async put(name: string, object: StoredObject): Promise<void> {
    const path = this.pathOf(name);
    const folder = dirname(path);
    await mkdir(folder, { recursive: true });
    // Readers see the whole file or none.
    const part = join(folder, `.${randomUUID()}`);
    try {
      const source = Buffer.isBuffer(object) ? Readable.from([object]) : createReadStream(object.path);
      await pipeline(source, createWriteStream(part, { mode: 0o640, flush: true }));
      await rename(part, path);
    } catch (error) {
      await rm(part, { force: true });
      throw error;
    }
    const handle = await open(folder);
    try {
      await handle.sync();
    } finally {
      await handle.close();
    }
  }

  async read(name: string): Promise<Readable> {
    const handle = await open(this.pathOf(name));
    return handle.createReadStream();
  }

  async size(name: string): Promise<number | null> {
    try {
      return (await stat(this.pathOf(name))).size;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
      throw error;
    }
  }

  async removeAll(prefix: string): Promise<void> {
    await rm(this.pathOf(prefix), { recursive: true, force: true });
  }

  link(): Promise<null> {
    return Promise.resolve(null);
  }

  /** The path of an object, for a process that serves it. */
  pathOf(name: string): string {
    if (!NAME.test(name)) throw new Error(`"${name}" is no name of an object`);
    return join(this.folder, name);
  }
}

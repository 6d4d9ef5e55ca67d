import type { Readable } from 'node:stream';

/** An object that is about to be stored: bytes, or a file. */
export type StoredObject = Buffer | { path: string };

/**
 * Where captures and recordings are kept. Names are paths of letters, digits, dots, hyphens and underscores, with
 * slashes between them. One process at a time puts files into a folder.
 */
export interface ObjectStore {
  /** Resolves once the object would survive a loss of power. Replaces an object of this name. */
  put(name: string, object: StoredObject): Promise<void>;
  /** @throws an error with the code ENOENT if there is no such object */
  read(name: string): Promise<Readable>;
  /** The size in bytes; null if there is no such object. */
  size(name: string): Promise<number | null>;
  /** Deletes the object of this name, or all whose names begin with this path if it ends in a slash. */
  removeAll(prefix: string): Promise<void>;
  /** The origin of links; null if the API serves the files. */
  readonly linkOrigin: string | null;
  /** A link of the store itself, which needs no other right; null if the API serves the files. */
  link(name: string, contentType: string, expiresInSeconds: number): Promise<string | null>;
}

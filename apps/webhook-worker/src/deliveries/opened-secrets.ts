import { open, type MasterKeys } from '@callplane/core';

const KEPT_MAX = 1000;

/** Caches the signing secrets that were opened last, because opening one costs as much as signing with it. */
export class OpenedSecrets {
  readonly #masterKeys: MasterKeys;
  readonly #opened = new Map<string, string>();

  constructor(masterKeys: MasterKeys) {
    this.#masterKeys = masterKeys;
  }

  /**
   * @throws Error if the sealed secret was altered, belongs to another context, or its master key is not configured.
   */
  open(sealed: string, context: string): string {
    const key = `${context} ${sealed}`;
    const known = this.#opened.get(key);
    if (known !== undefined) return known;
    const secret = open(this.#masterKeys, sealed, context);
    const [oldest] = this.#opened.keys();
    if (oldest !== undefined && this.#opened.size >= KEPT_MAX) this.#opened.delete(oldest);
    this.#opened.set(key, secret);
    return secret;
  }
}

import { createPublicKey, type KeyObject } from 'node:crypto';

/** A public key as the JWKS publishes it. */
export interface VerificationJwk {
  kid: string;
  kty: string;
  crv: string;
  x: string;
  y: string;
}

/** How old the loaded keys may be, in milliseconds: a key that has ended verifies for at most so much longer. */
const FRESH_MS = 30_000;
/** How often an unknown key id may have them loaded again, in milliseconds: anybody can send one. */
const UNKNOWN_KID_PAUSE_MS = 1000;

/** The keys that verify participant tokens, as this process knows them. */
export class VerificationKeys {
  readonly #load: () => Promise<VerificationJwk[]>;
  readonly #monotonicMs: () => number;
  #keys = new Map<string, KeyObject>();
  #loadedAtMs = -Infinity;
  #triedAtMs = -Infinity;
  #loading: Promise<void> | undefined;

  constructor(load: () => Promise<VerificationJwk[]>, monotonicMs: () => number = () => performance.now()) {
    this.#load = load;
    this.#monotonicMs = monotonicMs;
  }

  /**
   * The key of this id; null when no such key is published.
   * @throws when the keys cannot be loaded and none of before will do.
   */
  async find(kid: string): Promise<KeyObject | null> {
    if (this.#monotonicMs() - this.#loadedAtMs > FRESH_MS) await this.#reload();
    const known = this.#keys.get(kid);
    if (known !== undefined) return known;
    if (this.#monotonicMs() - this.#triedAtMs < UNKNOWN_KID_PAUSE_MS) return null;
    await this.#reload();
    return this.#keys.get(kid) ?? null;
  }

  /** For the notice of a rotation: the next use loads them again. */
  expire(): void {
    this.#loadedAtMs = -Infinity;
  }

  #reload(): Promise<void> {
    this.#triedAtMs = this.#monotonicMs();
    const startedAtMs = this.#triedAtMs;
    this.#loading ??= this.#load()
      .then((jwks) => {
        this.#keys = new Map(
          jwks.map(({ kid, kty, crv, x, y }) => [kid, createPublicKey({ key: { kty, crv, x, y }, format: 'jwk' })]),
        );
        this.#loadedAtMs = startedAtMs;
      })
      .finally(() => {
        this.#loading = undefined;
      });
    return this.#loading;
  }
}

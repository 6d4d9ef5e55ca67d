import { createPublicKey, type KeyObject } from 'node:crypto';

/** A public key in the form that the JWKS publishes. */
export interface VerificationJwk {
  kid: string;
  kty: string;
  crv: string;
  x: string;
  y: string;
}

/** Maximum age of the loaded keys, in milliseconds. A retired key verifies tokens for at most this much longer. */
const FRESH_MS = 30_000;
/** Minimum pause between reloads for unknown key ids, in milliseconds. Any client can send such an id. */
const UNKNOWN_KID_PAUSE_MS = 1000;

/** A load of the keys in progress, and the generation of the keys when it began. */
interface Loading {
  generation: number;
  done: Promise<void>;
}

/** Cache of the public keys that verify participant tokens. */
export class VerificationKeys {
  readonly #load: () => Promise<VerificationJwk[]>;
  readonly #monotonicMs: () => number;
  #keys = new Map<string, KeyObject>();
  /** Grows with each rotation. Keys whose load began in an earlier generation are stale. */
  #generation = 0;
  #loadedGeneration = -1;
  #loadedAtMs = -Infinity;
  #triedAtMs = -Infinity;
  #loading: Loading | null = null;

  constructor(load: () => Promise<VerificationJwk[]>, monotonicMs: () => number = () => performance.now()) {
    this.#load = load;
    this.#monotonicMs = monotonicMs;
  }

  /**
   * Returns the key with this id; null if no such key is published.
   * @throws if the keys have to be loaded and cannot be.
   */
  async find(kid: string): Promise<KeyObject | null> {
    if (!this.#isFresh) await this.#reload();
    const known = this.#keys.get(kid);
    if (known !== undefined) return known;
    if (this.#monotonicMs() - this.#triedAtMs < UNKNOWN_KID_PAUSE_MS) return null;
    await this.#reload();
    return this.#keys.get(kid) ?? null;
  }

  /** Call this when keys are rotated: a `find` from now on uses keys whose load began after this call. */
  expire(): void {
    this.#generation += 1;
  }

  get #isFresh(): boolean {
    return this.#loadedGeneration === this.#generation && this.#monotonicMs() - this.#loadedAtMs <= FRESH_MS;
  }

  /** Joins the load in progress, unless it began before the last rotation: such a load may miss the new keys. */
  async #reload(): Promise<void> {
    while (this.#loading !== null && this.#loading.generation !== this.#generation) {
      await this.#loading.done.catch(() => undefined);
    }
    this.#loading ??= this.#startLoading();
    await this.#loading.done;
  }

  #startLoading(): Loading {
    const generation = this.#generation;
    const startedAtMs = this.#monotonicMs();
    this.#triedAtMs = startedAtMs;
    const done = this.#load()
      .then((jwks) => {
        this.#keys = new Map(
          jwks.map(({ kid, kty, crv, x, y }) => [kid, createPublicKey({ key: { kty, crv, x, y }, format: 'jwk' })]),
        );
        this.#loadedGeneration = generation;
        this.#loadedAtMs = startedAtMs;
      })
      .finally(() => {
        this.#loading = null;
      });
    return { generation, done };
  }
}

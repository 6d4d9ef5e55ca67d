import type { KeyObject } from 'node:crypto';

/** The key that signs now. */
export interface Signer {
  kid: string;
  privateKey: KeyObject;
}

/** What verifiers may know, as `/.well-known/jwks.json` publishes it. */
export interface Jwks {
  keys: Record<string, unknown>[];
}

export interface LoadedSigningKeys {
  signer: Signer;
  jwks: Jwks;
}

/** How old the loaded keys may be, in milliseconds: a rotation is followed within this, without a restart. */
const FRESH_MS = 5000;
/** With keys older than this nothing is signed: a retired key is published only so long. */
const USABLE_MS = 60_000;

/** The signing keys as this process knows them, loaded again when they are due. */
export class SigningKeyRing {
  readonly #load: () => Promise<LoadedSigningKeys>;
  readonly #monotonicMs: () => number;
  #loaded: (LoadedSigningKeys & { atMs: number }) | undefined;
  #loading: Promise<LoadedSigningKeys> | undefined;
  #expired = false;

  /** @param load activates a key that is due, makes the first one, and reads them all. */
  constructor(load: () => Promise<LoadedSigningKeys>, monotonicMs: () => number = () => performance.now()) {
    this.#load = load;
    this.#monotonicMs = monotonicMs;
  }

  async signer(): Promise<Signer> {
    return (await this.#keys()).signer;
  }

  async jwks(): Promise<Jwks> {
    return (await this.#keys()).jwks;
  }

  /** For the notice of a rotation: the next use loads them again and waits for that. */
  expire(): void {
    this.#expired = true;
  }

  async #keys(): Promise<LoadedSigningKeys> {
    const loaded = this.#loaded;
    const ageMs = loaded === undefined ? Infinity : this.#monotonicMs() - loaded.atMs;
    if (loaded === undefined || ageMs > USABLE_MS) return this.#reload();
    if (ageMs <= FRESH_MS && !this.#expired) return loaded;
    const loading = this.#reload().catch(() => loaded);
    // Slightly old keys still serve, so that no request waits for the database every few seconds.
    return this.#expired ? loading : loaded;
  }

  #reload(): Promise<LoadedSigningKeys> {
    const atMs = this.#monotonicMs();
    this.#loading ??= this.#load()
      .then((keys) => {
        this.#expired = false;
        return (this.#loaded = { ...keys, atMs });
      })
      .finally(() => {
        this.#loading = undefined;
      });
    return this.#loading;
  }
}

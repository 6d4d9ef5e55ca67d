import type { loadSigningKeys } from '@callplane/db';

type LoadedSigningKeys = Awaited<ReturnType<typeof loadSigningKeys>>;

/**
 * How long loaded keys count as fresh, in milliseconds. A rotation takes effect within this time, without a restart.
 */
const FRESH_MS = 5000;
/**
 * Maximum age of keys that may sign, in milliseconds. A retired key is published only for a limited time, so older keys
 * might sign tokens that verifiers reject.
 */
const USABLE_MS = 60_000;

/** Caches the signing keys in this process and reloads them in time. */
export class SigningKeyRing {
  #loaded: (LoadedSigningKeys & { atMs: number }) | undefined;
  #loading: Promise<LoadedSigningKeys> | undefined;
  #expired = false;

  /** @param load activates a due key, creates the first key if there is none, and reads all keys. */
  constructor(private readonly load: () => Promise<LoadedSigningKeys>) {}

  async signer(): Promise<LoadedSigningKeys['signer']> {
    return (await this.#keys()).signer;
  }

  async jwks(): Promise<LoadedSigningKeys['jwks']> {
    return (await this.#keys()).jwks;
  }

  /** Called on the notice of a rotation. The next use reloads the keys and waits for the result. */
  expire(): void {
    this.#expired = true;
  }

  async #keys(): Promise<LoadedSigningKeys> {
    const loaded = this.#loaded;
    const ageMs = loaded === undefined ? Infinity : performance.now() - loaded.atMs;
    if (loaded === undefined || ageMs > USABLE_MS) return this.#reload();
    if (ageMs <= FRESH_MS && !this.#expired) return loaded;
    const loading = this.#reload().catch(() => loaded);
    // Unless a rotation was announced, slightly old keys still serve: no request then waits for the database every few
    // seconds.
    return this.#expired ? loading : loaded;
  }

  #reload(): Promise<LoadedSigningKeys> {
    const atMs = performance.now();
    this.#loading ??= this.load()
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

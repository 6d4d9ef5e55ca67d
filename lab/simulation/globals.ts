import crypto from 'node:crypto';
import { syncBuiltinESMExports } from 'node:module';
import timersPromises from 'node:timers/promises';
import { running, type SimProcess } from './processes.js';
import type { Random } from '../src/random.js';

/** Replaces the machine's time and randomness for simulated code. */
export interface Ambient {
  nowMs(process: SimProcess): number;
  monotonicMs(): number;
  random: Random;
  /** @returns a function that cancels the call. */
  later(process: SimProcess, ms: number, call: () => void): () => void;
  soon(process: SimProcess, call: () => void): void;
}

export const real = {
  setTimeout: globalThis.setTimeout,
  clearTimeout: globalThis.clearTimeout,
  setImmediate: globalThis.setImmediate,
  now: performance.now.bind(performance),
  Date: globalThis.Date,
};

class SimTimer {
  constructor(readonly cancel: () => void) {}
  ref(): this {
    return this;
  }
  unref(): this {
    return this;
  }
  hasRef(): boolean {
    return true;
  }
}

/**
 * Replaces the timers, clocks and sources of randomness of Node for code that runs in a simulated process. All other
 * code, such as the driver of PostgreSQL, keeps the machine's.
 */
export function replaceGlobals(ambient: () => Ambient): void {
  replaceTimers(ambient);
  replaceClocks(ambient);
  replaceRandomness(ambient);
  syncBuiltinESMExports();
}

type Call = (...args: unknown[]) => void;

function replaceTimers(ambient: () => Ambient): void {
  const { setTimeout, setInterval, setImmediate, clearTimeout, clearInterval } = globalThis;
  const { setTimeout: delay } = timersPromises;
  const clear = (otherwise: (handle: never) => void) => (handle: unknown) => {
    if (handle instanceof SimTimer) handle.cancel();
    else otherwise(handle as never);
  };
  const replaced = {
    setTimeout: (call: Call, ms = 0, ...args: unknown[]) => {
      const process = running.getStore();
      if (process === undefined) return setTimeout(call, ms, ...args);
      return new SimTimer(ambient().later(process, ms, () => call(...args)));
    },
    setInterval: (call: Call, ms = 0, ...args: unknown[]) => {
      const process = running.getStore();
      if (process === undefined) return setInterval(call, ms, ...args);
      let cancel: () => void = () => undefined;
      const again = (): void => {
        cancel = ambient().later(process, Math.max(1, ms), () => {
          again();
          call(...args);
        });
      };
      again();
      return new SimTimer(() => cancel());
    },
    setImmediate: (call: Call, ...args: unknown[]) => {
      const process = running.getStore();
      if (process === undefined) return setImmediate(call, ...args);
      ambient().soon(process, () => call(...args));
      return new SimTimer(() => undefined);
    },
    clearTimeout: clear(clearTimeout),
    clearInterval: clear(clearInterval),
  };
  Object.assign(globalThis, replaced);
  Object.assign(timersPromises, {
    setTimeout: (ms = 0, value?: unknown, options: { signal?: AbortSignal } = {}) => {
      if (running.getStore() === undefined) return delay(ms, value, options);
      return new Promise((resolve, reject) => {
        const { signal } = options;
        const aborted = (): void => {
          replaced.clearTimeout(timer);
          reject(Object.assign(new Error('The operation was aborted'), { name: 'AbortError', code: 'ABORT_ERR' }));
        };
        const timer = replaced.setTimeout(() => {
          signal?.removeEventListener('abort', aborted);
          resolve(value);
        }, ms);
        if (signal?.aborted === true) aborted();
        else signal?.addEventListener('abort', aborted, { once: true });
      });
    },
  });
}

function replaceClocks(ambient: () => Ambient): void {
  const nowMs = (): number => {
    const process = running.getStore();
    return process === undefined ? real.Date.now() : ambient().nowMs(process);
  };
  globalThis.Date = new Proxy(real.Date, {
    construct: (target, args: unknown[], newTarget: NewableFunction) =>
      Reflect.construct(target, args.length === 0 ? [nowMs()] : args, newTarget) as object,
    get: (target, name, receiver) => (name === 'now' ? nowMs : (Reflect.get(target, name, receiver) as unknown)),
  });
  const isInside = (): boolean => running.getStore() !== undefined;
  performance.now = () => (isInside() ? ambient().monotonicMs() : real.now());
}

function replaceRandomness(ambient: () => Ambient): void {
  const { randomBytes, randomFillSync, randomUUID, randomInt } = crypto;
  const webRandom = globalThis.crypto.getRandomValues.bind(globalThis.crypto);
  const mathRandom = Math.random;
  const inside = (): Random | null => (running.getStore() === undefined ? null : ambient().random);
  const uuid = (stream: Random): string => {
    const hex = Buffer.from(stream.fill(new Uint8Array(16))).toString('hex');
    const parts = [hex.slice(0, 8), hex.slice(8, 12), `4${hex.slice(13, 16)}`, `8${hex.slice(17, 20)}`, hex.slice(20)];
    return parts.join('-');
  };
  Math.random = () => inside()?.next() ?? mathRandom();
  Object.assign(crypto, {
    randomBytes: (size: number) => {
      const stream = inside();
      return stream === null ? randomBytes(size) : Buffer.from(stream.fill(new Uint8Array(size)));
    },
    randomFillSync: (bytes: NodeJS.TypedArray) => inside()?.fill(bytes) ?? randomFillSync(bytes),
    randomUUID: () => {
      const stream = inside();
      return stream === null ? randomUUID() : uuid(stream);
    },
    randomInt: (...args: number[]) => {
      const [from = 0, to] = args.length === 1 ? [0, args[0]] : args;
      return inside()?.between(from, (to ?? 1) - 1) ?? randomInt(from, to ?? 1);
    },
  });
  globalThis.crypto.getRandomValues = ((bytes: NodeJS.TypedArray) =>
    inside()?.fill(bytes) ?? webRandom(bytes as never)) as never;
}

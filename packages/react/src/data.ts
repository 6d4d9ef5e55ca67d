'use client';
import {
  CallplaneError,
  type IncomingStream,
  type Participant,
  type RequestHandler,
  type RequestOptions,
  type StreamOptions,
  type StreamResult,
  type StreamSource,
} from '@callplane/client-js';
import { useCallback, useEffect, useRef, useState } from 'react';
import { useCall, useCallState } from './context.js';
import { Store, useStore } from './store.js';

/** A stream that this page sends or receives. */
export interface Transfer {
  id: number;
  direction: 'in' | 'out';
  /** The sender of an incoming stream. */
  from: string | undefined;
  name: string | undefined;
  contentType: string | undefined;
  /** In bytes; undefined if it is not known. */
  size: number | undefined;
  /** That have arrived: here, or at every recipient. Changes with each hundredth of the size. */
  bytes: number;
  state: 'active' | 'done' | 'failed';
  error: CallplaneError | undefined;
  /** An incoming stream that is done, unless `onStream` has read it. */
  blob: Blob | undefined;
  cancel: () => void;
}

export interface DataStream {
  /** The newest 50, the oldest first. */
  transfers: readonly Transfer[];
  maySend: boolean;
  /** Rejects with a CallplaneError if nobody receives the stream. */
  send: (source: StreamSource, options?: StreamOptions) => Promise<StreamResult | undefined>;
  /** Forgets a transfer that is over, and its blob. */
  dismiss: (id: number) => void;
}

const TRANSFERS_MAX = 50;
/** Bytes between two changes of a stream whose size is not known. */
const STEP_BYTES = 64 * 1024;

/** The transfers of one component. */
class Transfers {
  readonly store = new Store<readonly Transfer[]>([]);
  #lastId = 0;

  add(transfer: Pick<Transfer, 'direction' | 'from' | 'name' | 'contentType' | 'size' | 'cancel'>): number {
    const id = ++this.#lastId;
    const fresh = { id, bytes: 0, state: 'active' as const, error: undefined, blob: undefined, ...transfer };
    this.store.set([...this.store.get(), fresh].slice(-TRANSFERS_MAX));
    return id;
  }

  change(id: number, change: Partial<Transfer>): void {
    this.store.set(this.store.get().map((one) => (one.id === id ? { ...one, ...change } : one)));
  }

  progress(id: number, bytes: number): void {
    const known = this.store.get().find((one) => one.id === id);
    if (known === undefined) return;
    const step = known.size === undefined ? STEP_BYTES : known.size / 100;
    if (bytes - known.bytes >= step || bytes === known.size) this.change(id, { bytes });
  }

  readonly dismiss = (id: number): void =>
    this.store.set(this.store.get().filter((one) => one.id !== id || one.state === 'active'));
}

/**
 * Sends streams of a method, and receives the streams of others while the component is mounted.
 * @param onStream reads each incoming stream; without it, transfers get a `blob`
 */
export function useDataStream(method: string, onStream?: (stream: IncomingStream) => void | Promise<void>): DataStream {
  const call = useCall();
  const [all] = useState(() => new Transfers());
  const transfers = useStore(all.store);
  const maySend = useCallState(({ permissions }) => permissions.includes('messages:send'));
  const latest = useLatest(onStream);
  useEffect(
    () =>
      call?.handleStream(method, async (stream) => {
        const { from, name, contentType, size } = stream;
        const id = all.add({ direction: 'in', from, name, contentType, size, cancel: () => stream.cancel() });
        stream.onProgress = ({ bytes }) => all.progress(id, bytes);
        try {
          const blob = latest.current === undefined ? await stream.blob() : undefined;
          await latest.current?.(stream);
          all.change(id, { state: 'done', blob });
        } catch (error) {
          all.change(id, { state: 'failed', error: error as CallplaneError });
          throw error;
        }
      }),
    [call, method, all, latest],
  );
  const send = useCallback(
    async (source: StreamSource, options: StreamOptions = {}) => {
      if (call === undefined) return undefined;
      const { name, type, size } = (source instanceof Blob ? source : {}) as Partial<File>;
      const described = { name, contentType: type, size, ...options };
      const abort = new AbortController();
      options.signal?.addEventListener('abort', () => abort.abort(options.signal?.reason));
      if (options.signal?.aborted === true) abort.abort(options.signal.reason);
      const { contentType } = described;
      const own = { direction: 'out' as const, from: undefined, cancel: () => abort.abort() };
      const id = all.add({ ...own, name: described.name, contentType, size: described.size });
      try {
        const result = await call.sendStream(method, source, {
          ...options,
          signal: abort.signal,
          onProgress: (progress) => {
            all.progress(id, progress.bytes);
            options.onProgress?.(progress);
          },
        });
        all.change(id, { state: 'done' });
        return result;
      } catch (error) {
        all.change(id, { state: 'failed', error: error as CallplaneError });
        throw error;
      }
    },
    [call, method, all],
  );
  return { transfers, maySend, send, dismiss: all.dismiss };
}

/**
 * Handles the requests of a method while the component is mounted, if there is a handler, and sends such requests.
 * @returns `request` rejects with a CallplaneError, such as `no_handler`.
 */
export function useRpc<Payload = unknown, Answer = unknown>(
  method: string,
  handler?: RequestHandler<Payload, Answer>,
): {
  request: (
    participant: string | Pick<Participant, 'participantId'>,
    payload?: Payload,
    options?: RequestOptions,
  ) => Promise<Answer>;
} {
  const call = useCall();
  const latest = useLatest(handler);
  const isHandling = handler !== undefined;
  useEffect(() => {
    if (!isHandling) return undefined;
    return call?.handle<Payload, Answer>(method, (payload, info) =>
      (latest.current as RequestHandler<Payload, Answer>)(payload, info),
    );
  }, [call, method, isHandling, latest]);
  const request = useCallback(
    async (
      participant: string | Pick<Participant, 'participantId'>,
      payload?: Payload,
      options?: RequestOptions,
    ): Promise<Answer> => {
      if (call === undefined) throw new CallplaneError('closed', 'The call is not joined.');
      return call.request<Answer>(participant, method, payload, options);
    },
    [call, method],
  );
  return { request };
}

/** The value of the latest render, for functions that outlive it. */
function useLatest<T>(value: T): { readonly current: T } {
  const latest = useRef(value);
  useEffect(() => {
    latest.current = value;
  });
  return latest;
}

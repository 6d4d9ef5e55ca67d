'use client';
import {
  type CallplaneError,
  createLocalTracks,
  type DeviceKind,
  type LocalTrack,
  type TrackFailure,
} from '@callplane/client-js';
import { useCallback, useEffect, useMemo, useRef, useState } from 'react';
import type { DeviceChoice } from './devices.js';
import { type Constraints, trackOf } from './local-media.js';

export type PreviewSource = 'microphone' | 'camera';

export interface Preview extends DeviceChoice {
  /** Open and not published. */
  tracks: readonly LocalTrack[];
  /** Devices that could not be opened. */
  failures: readonly TrackFailure[];
  isPending: boolean;
  setOn: (source: PreviewSource, isOn: boolean) => Promise<void>;
  /**
   * The tracks belong to the caller from now on: an unmount leaves them open. False gives them back.
   * @returns the tracks, once no device is being opened
   */
  keep: (isKept: boolean) => Promise<readonly LocalTrack[]>;
}

const SOURCE_OF = { audioinput: 'microphone', videoinput: 'camera', audiooutput: undefined } as const;

/** Opens microphone and camera before a call, and closes them with the component. */
export function usePreview({
  audio = true,
  video = true,
  constraints = {},
}: {
  audio?: boolean | undefined;
  video?: boolean | undefined;
  constraints?: Constraints | undefined;
} = {}): Preview {
  const [state, setState] = useState<Opened>({ tracks: [], failures: [], isPending: true });
  const devices = useRef<PreviewDevices>(undefined);
  const begin = useRef({ audio, video, constraints });
  useEffect(() => {
    const opened = new PreviewDevices(begin.current.constraints, setState);
    devices.current = opened;
    const { audio: withAudio, video: withVideo } = begin.current;
    // In development, React runs an effect twice at once: the first run must ask for no device.
    queueMicrotask(
      () =>
        void opened.open([...(withAudio ? ['microphone' as const] : []), ...(withVideo ? ['camera' as const] : [])]),
    );
    return () => opened.close();
  }, []);
  const setOn = useCallback(
    async (source: PreviewSource, isOn: boolean) =>
      isOn ? devices.current?.open([source]) : devices.current?.stop(source),
    [],
  );
  const select = useCallback(async (kind: DeviceKind, deviceId: string) => {
    const source = SOURCE_OF[kind];
    if (source !== undefined) await devices.current?.choose(source, deviceId);
  }, []);
  const keep = useCallback(async (isKept: boolean) => (await devices.current?.keep(isKept)) ?? [], []);
  return useMemo(() => {
    const open = new Map(state.tracks.map((track) => [track.trackId, track]));
    const deviceIdOf = (kind: DeviceKind) => {
      const source = SOURCE_OF[kind];
      return source === undefined ? undefined : trackOf(open, source)?.deviceId;
    };
    return { ...state, deviceIdOf, select, setOn, keep };
  }, [state, select, setOn, keep]);
}

type Opened = Pick<Preview, 'tracks' | 'failures' | 'isPending'>;

/** The open devices of one preview. One request at a time, in the order of the user's presses. */
class PreviewDevices {
  readonly #tracks = new Map<PreviewSource, LocalTrack>();
  readonly #chosen = new Map<PreviewSource, string>();
  #failures: TrackFailure[] = [];
  #last: Promise<void> = Promise.resolve();
  #isClosed = false;
  #isKept = false;

  constructor(
    private readonly constraints: Constraints,
    private readonly show: (state: Opened) => void,
  ) {}

  open(sources: readonly PreviewSource[]): Promise<void> {
    return this.#next(async () => {
      const missing = sources.filter((source) => !this.#tracks.has(source));
      if (this.#isClosed || missing.length === 0) return;
      this.#failures = this.#failures.filter(({ source }) => !missing.includes(source as PreviewSource));
      this.#show(true);
      const wanted = (source: PreviewSource, constraints: MediaTrackConstraints = {}) => {
        const deviceId = this.#chosen.get(source);
        if (!missing.includes(source)) return false;
        return deviceId === undefined ? constraints : { ...constraints, deviceId: { exact: deviceId } };
      };
      const { audio, video } = this.constraints;
      const options = { audio: wanted('microphone', audio), video: wanted('camera', video) };
      const { tracks, failed } = await createLocalTracks(options).catch((error: unknown) => {
        const { code, message } = error as CallplaneError;
        return { tracks: [], failed: missing.map((source) => ({ source, code, message })) };
      });
      this.#failures.push(...failed);
      for (const track of tracks) {
        this.#tracks.set(track.source as PreviewSource, track);
      }
      this.#stopIfClosed();
    });
  }

  stop(source: PreviewSource): Promise<void> {
    return this.#next(() => {
      this.#tracks.get(source)?.stop();
      this.#tracks.delete(source);
      return Promise.resolve();
    });
  }

  async choose(source: PreviewSource, deviceId: string): Promise<void> {
    this.#chosen.set(source, deviceId);
    await this.stop(source);
    await this.open([source]);
  }

  async keep(isKept: boolean): Promise<LocalTrack[]> {
    this.#isKept = isKept;
    await this.#last;
    return [...this.#tracks.values()];
  }

  close(): void {
    this.#isClosed = true;
    this.#stopIfClosed();
  }

  #stopIfClosed(): void {
    if (this.#isClosed && !this.#isKept) for (const track of this.#tracks.values()) track.stop();
  }

  #next(task: () => Promise<void>): Promise<void> {
    this.#last = this.#last.then(task).then(() => this.#show(false));
    return this.#last;
  }

  #show(isPending: boolean): void {
    if (!this.#isClosed) this.show({ tracks: [...this.#tracks.values()], failures: [...this.#failures], isPending });
  }
}

'use client';
import { type Call, isSupported, type PublishedTrack, type TrackFailure, type TrackSource } from '@callplane/client-js';
import { createContext, useCallback, useContext } from 'react';
import { companionOf } from './companion.js';
import { useCall, useCallState } from './context.js';

/** A device, or a screen, that this participant may publish. */
export type LocalSource = Exclude<TrackSource, 'screen_audio'>;

/** How microphone and camera are opened. */
export interface Constraints {
  audio?: MediaTrackConstraints;
  video?: MediaTrackConstraints;
}

export const ConstraintsContext = createContext<Constraints>({});

export interface LocalMedia {
  track: PublishedTrack | undefined;
  /** Whether the others receive it: published and not muted. */
  isOn: boolean;
  /** Whether it is being opened, published, muted, unmuted or switched. */
  isPending: boolean;
  /** Why the latest attempt failed. A screen that the user did not choose is no failure. */
  failure: TrackFailure | undefined;
  /** Whether the browser supports it, and the token permits it. */
  isAvailable: boolean;
  /** Publishes or unmutes, or mutes; a screen is unpublished. A later wish replaces one that is in progress. */
  setOn: (isOn: boolean) => Promise<void>;
  toggle: () => Promise<void>;
}

const PERMISSION = { microphone: 'audio:publish', camera: 'video:publish', screen: 'screen:publish' } as const;

/** Your microphone, camera or screen: whether the others receive it, and how to change that. Failures are in `failure`. */
export function useLocalMedia(source: LocalSource): LocalMedia {
  const call = useCall();
  const constraints = useContext(ConstraintsContext);
  const [track, isPending, failure, isPermitted] = useCallState(
    ({ tracks, pending, failures, permissions }) =>
      [
        trackOf(tracks, source),
        pending.includes(source),
        failures.find((one) => one.source === source),
        permissions.includes(PERMISSION[source]),
      ] as const,
  );
  const setOn = useCallback(
    async (isOn: boolean) => call && fulfil(call, source, isOn, constraints),
    [call, source, constraints],
  );
  const toggle = useCallback(async () => {
    if (call !== undefined) await setOn(!(companionOf(call).wishes.get(source) ?? isOnIn(call, source)));
  }, [call, source, setOn]);
  return {
    track,
    isOn: track?.muted === false,
    isPending,
    failure: source === 'screen' && failure?.code === 'device_permission_denied' ? undefined : failure,
    isAvailable: isPermitted && (source !== 'screen' || isSupported('screenShare')),
    setOn,
    toggle,
  };
}

export function trackOf<T extends { source: TrackSource }>(tracks: ReadonlyMap<string, T>, source: TrackSource) {
  for (const track of tracks.values()) if (track.source === source) return track;
  return undefined;
}

const isOnIn = (call: Call, source: LocalSource) => trackOf(call.tracks, source)?.muted === false;

/** One attempt at a time for each source; the last wish counts when it ends. */
async function fulfil(call: Call, source: LocalSource, isOn: boolean, constraints: Constraints): Promise<void> {
  const { wishes } = companionOf(call);
  const isRunning = wishes.has(source);
  wishes.set(source, isOn);
  if (isRunning) return;
  let tried: boolean | undefined;
  try {
    for (let wish: boolean | undefined = isOn; wish !== undefined && wish !== tried; wish = wishes.get(source)) {
      if (isOnIn(call, source) !== wish) await change(call, source, wish, constraints);
      tried = wish;
    }
  } catch {
    // The snapshot has the failure.
  } finally {
    wishes.delete(source);
  }
}

async function change(call: Call, source: LocalSource, isOn: boolean, { audio, video }: Constraints): Promise<void> {
  const track = trackOf(call.tracks, source);
  if (source === 'screen') await (isOn ? call.shareScreen() : call.stopScreenShare());
  else if (track !== undefined) await (isOn ? call.unmute(track.trackId) : call.mute(track.trackId));
  else if (isOn) await call.publish(source === 'microphone' ? { audio: audio ?? true } : { video: video ?? true });
}

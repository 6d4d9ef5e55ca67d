'use client';
import { type Device, type DeviceKind, isSupported, listDevices, onDevicesChanged } from '@callplane/client-js';
import { createContext, useCallback, useContext, useEffect, useState } from 'react';
import { companionOf } from './companion.js';
import { useCall, useCallState } from './context.js';
import { useCompanion } from './hooks.js';
import { trackOf } from './local-media.js';
import { Store, useStore } from './store.js';

/** The devices in use by a preview, in place of a call's. */
export interface DeviceChoice {
  deviceIdOf: (kind: DeviceKind) => string | undefined;
  select: (kind: DeviceKind, deviceId: string) => Promise<void>;
}

export const DeviceChoiceContext = createContext<DeviceChoice | undefined>(undefined);

const devices = new Store<readonly Device[]>([]);
const refresh = () =>
  void listDevices().then(
    (found) => {
      if (JSON.stringify(found) !== JSON.stringify(devices.get())) devices.set(found);
    },
    () => devices.set([]),
  );
let users = 0;
let stop: (() => void) | undefined;

/** One list for all components, which follows the machine while one of them is mounted. */
function watch(): () => void {
  if (users++ === 0) stop = onDevicesChanged(refresh);
  return () => {
    if (--users === 0) stop?.();
  };
}

const NO_OUTPUT = new Store<string | undefined>(undefined);

export interface Devices {
  /** Without names and ids until the user has allowed a device of the kind; empty where the page cannot choose. */
  devices: readonly Device[];
  /** The device in use, or the chosen loudspeaker. */
  deviceId: string | undefined;
  isPending: boolean;
  /** Why the device could not be used. */
  error: unknown;
  /** Uses another device, also for later tracks. */
  select: (deviceId: string) => void;
}

/** The microphones, cameras or loudspeakers of this machine. */
export function useDevices(kind: DeviceKind): Devices {
  const call = useCall();
  const preview = useContext(DeviceChoiceContext);
  const all = useStore(devices);
  const outputId = useCompanion((companion) => companion.outputId, NO_OUTPUT);
  const ownId = useCallState(({ tracks }) =>
    kind === 'audiooutput' ? undefined : trackOf(tracks, kind === 'audioinput' ? 'microphone' : 'camera')?.deviceId,
  );
  const deviceId = preview?.deviceIdOf(kind) ?? (kind === 'audiooutput' ? outputId : ownId);
  const [attempt, setAttempt] = useState<{ isPending: boolean; error?: unknown }>({ isPending: false });
  useEffect(watch, []);
  // Once a device of the kind is open, the browser tells the names.
  useEffect(refresh, [deviceId]);
  const select = useCallback(
    (id: string) => {
      const switching = async () => {
        if (preview !== undefined) return preview.select(kind, id);
        await call?.switchDevice(kind, id);
        if (call !== undefined && kind === 'audiooutput') companionOf(call).outputId.set(id);
      };
      setAttempt({ isPending: true });
      switching().then(
        () => setAttempt({ isPending: false }),
        (error: unknown) => setAttempt({ isPending: false, error }),
      );
    },
    [call, kind, preview],
  );
  const isChoosable = kind !== 'audiooutput' || isSupported('audioOutput');
  return {
    devices: isChoosable ? all.filter((one) => one.kind === kind) : [],
    deviceId,
    isPending: attempt.isPending,
    error: attempt.error,
    select,
  };
}

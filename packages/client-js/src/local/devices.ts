import { CallplaneError } from '../errors.js';
import { platformOf, type Platform } from '../platform.js';

/** As in browsers: a microphone, a camera, or a loudspeaker. */
export type DeviceKind = 'audioinput' | 'videoinput' | 'audiooutput';

export interface Device {
  kind: DeviceKind;
  deviceId: string;
  /** The browser's name, or “Camera 2” until the user has allowed a device of this kind. */
  label: string;
}

const LABELS = { audioinput: 'Microphone', videoinput: 'Camera', audiooutput: 'Speaker' } as const;

/**
 * The devices of this machine. Browsers hide names and ids until the user has allowed the microphone or the camera.
 * @param kind default: all
 */
export async function listDevices(kind?: DeviceKind, platform?: Partial<Platform>): Promise<Device[]> {
  const { mediaDevices } = platformOf(platform);
  if (mediaDevices?.enumerateDevices === undefined)
    throw new CallplaneError('unsupported', 'Media devices are not available. Serve the page over HTTPS.');
  const counts = { audioinput: 0, videoinput: 0, audiooutput: 0 };
  const devices: Device[] = [];
  for (const found of await mediaDevices.enumerateDevices()) {
    const count = ++counts[found.kind];
    if (kind !== undefined && found.kind !== kind) continue;
    // Without permission, a browser reports one entry without an id for each kind of device.
    if (found.deviceId === '') continue;
    devices.push({
      kind: found.kind,
      deviceId: found.deviceId,
      label: found.label === '' ? `${LABELS[found.kind]} ${count}` : found.label,
    });
  }
  return devices;
}

/**
 * @throws CallplaneError `device_not_found` if the browser lists the devices of this kind, and not this one. Before the
 * user has allowed the kind, browsers list none of their ids.
 */
export async function assertDevice({ mediaDevices }: Platform, kind: DeviceKind, deviceId: string): Promise<void> {
  const all = await mediaDevices?.enumerateDevices?.().catch(() => undefined);
  const listed = all?.filter((one) => one.kind === kind);
  if (listed === undefined || listed.some((one) => one.deviceId === '' || one.deviceId === deviceId)) return;
  const what = LABELS[kind].toLowerCase();
  throw new CallplaneError('device_not_found', `The ${what} "${deviceId}" is not available. Choose another one.`);
}

/** Calls the listener when a device was connected or removed. @returns a function that removes the listener. */
export function onDevicesChanged(listener: () => void, platform?: Partial<Platform>): () => void {
  const { mediaDevices } = platformOf(platform);
  mediaDevices?.addEventListener?.('devicechange', listener);
  return () => mediaDevices?.removeEventListener?.('devicechange', listener);
}

/**
 * Whether this browser, on this page, can take part in a call (`call`), open microphone and camera (`devices`), share a
 * screen (`screenShare`), or choose the loudspeaker (`audioOutput`).
 */
export function isSupported(
  feature: 'call' | 'devices' | 'screenShare' | 'audioOutput' = 'call',
  platform?: Partial<Platform>,
): boolean {
  const { WebSocket, RTCPeerConnection, mediaDevices } = platformOf(platform);
  switch (feature) {
    case 'call':
      return (WebSocket as unknown) !== undefined && RTCPeerConnection !== undefined;
    case 'devices':
      return mediaDevices?.getUserMedia !== undefined;
    case 'screenShare':
      return mediaDevices?.getDisplayMedia !== undefined;
    case 'audioOutput':
      return typeof HTMLMediaElement !== 'undefined' && 'setSinkId' in HTMLMediaElement.prototype;
  }
}

'use client';
import type { DeviceKind } from '@callplane/client-js';
import { useDevices } from '../devices.js';
import { readable, useTexts } from '../texts.js';

/** A menu of the microphones, cameras or loudspeakers. Renders nothing where the user has no choice. */
export function DevicePicker({ kind }: { kind: DeviceKind }) {
  const texts = useTexts();
  const { devices, deviceId, isPending, error, select } = useDevices(kind);
  if (devices.length === 0) return null;
  const label = { audioinput: texts.microphone, videoinput: texts.camera, audiooutput: texts.speaker }[kind];
  return (
    <label className="cp-field" data-kind={kind}>
      <span>{label}</span>
      <select
        className="cp-input"
        value={deviceId ?? ''}
        aria-busy={isPending}
        onChange={(event) => select(event.target.value)}
      >
        {!devices.some((one) => one.deviceId === deviceId) && kind !== 'audiooutput' && <option value="">–</option>}
        {devices.map((device) => (
          <option key={device.deviceId} value={device.deviceId}>
            {device.label}
          </option>
        ))}
      </select>
      {error !== undefined && (
        <small className="cp-problem" role="alert">
          {readable(texts, error, kind === 'videoinput' ? 'camera' : 'microphone')}
        </small>
      )}
    </label>
  );
}

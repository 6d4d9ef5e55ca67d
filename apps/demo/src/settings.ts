import { type Call, type DeviceKind, isSupported, listDevices, onDevicesChanged } from '@callplane/client-js';
import { button, element, readable } from './elements.js';

/** @returns a function that closes the dialog, whose menus then no longer follow the devices */
export function openSettings(call: Call, onProblem: (text: string) => void): () => void {
  const dialog = element('settings', HTMLDialogElement);
  let outputId: string | undefined;
  const picker = pickDevices(
    'settings',
    (kind) => {
      if (kind === 'audiooutput') return outputId;
      const source = kind === 'audioinput' ? 'microphone' : 'camera';
      return [...call.tracks.values()].find((track) => track.source === source)?.deviceId;
    },
    (kind, deviceId) => {
      call.switchDevice(kind, deviceId).then(
        () => {
          if (kind === 'audiooutput') outputId = deviceId;
        },
        (error: unknown) => {
          onProblem(readable(error));
          void picker.fill();
        },
      );
    },
  );
  element('room-id', HTMLElement).textContent = call.room.id;
  button('show-settings').onclick = () => {
    void picker.fill();
    dialog.showModal();
  };
  return () => {
    picker.close();
    dialog.close();
  };
}

const KINDS: readonly DeviceKind[] = ['audioinput', 'videoinput', 'audiooutput'];

/**
 * Fills the menus of a place (`lobby` or `settings`) with the devices, and keeps them current.
 * @param currentOf the device in use
 * @returns `fill` to call again after the user has allowed devices: browsers hide the names until then
 */
export function pickDevices(
  place: string,
  currentOf: (kind: DeviceKind) => string | undefined,
  onChoice: (kind: DeviceKind, deviceId: string) => void,
): { fill: () => Promise<void>; close: () => void } {
  const menuOf = (kind: DeviceKind) => document.querySelector<HTMLSelectElement>(`#${place}-${kind}`);
  const fill = async () => {
    const devices = await listDevices().catch(() => []);
    for (const kind of KINDS) {
      const menu = menuOf(kind);
      if (menu === null) continue;
      const own = devices.filter((device) => device.kind === kind);
      menu.replaceChildren(...own.map(({ label, deviceId }) => new Option(label, deviceId)));
      const current = currentOf(kind);
      if (current !== undefined && own.some(({ deviceId }) => deviceId === current)) menu.value = current;
      const isUseful = own.length > 0 && (kind !== 'audiooutput' || isSupported('audioOutput'));
      menu.closest('label')?.toggleAttribute('hidden', !isUseful);
    }
  };
  for (const kind of KINDS) {
    const menu = menuOf(kind);
    if (menu !== null) menu.onchange = () => onChoice(kind, menu.value);
  }
  return { fill, close: onDevicesChanged(() => void fill()) };
}

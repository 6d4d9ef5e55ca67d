import { type Call, type DeviceKind, isSupported, listDevices, onDevicesChanged } from '@callplane/client-js';
import { button, element } from './elements.js';
import { readable } from './problems.js';

/** The dialog with the devices and the id of the room. */
export function openSettings(call: Call, onProblem: (text: string) => void): { close: () => void } {
  const dialog = element('settings', HTMLDialogElement);
  let outputId: string | undefined;
  const picker = new DevicePicker(
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
  return {
    close: () => {
      picker.close();
      dialog.close();
    },
  };
}

const KINDS: readonly DeviceKind[] = ['audioinput', 'videoinput', 'audiooutput'];

/** Fills the menus of a place (`lobby` or `settings`) with the devices, and keeps them current. */
export class DevicePicker {
  readonly #place: string;
  readonly #current: (kind: DeviceKind) => string | undefined;
  readonly #stop: () => void;

  /** @param current the device in use */
  constructor(
    place: string,
    current: (kind: DeviceKind) => string | undefined,
    onChoice: (kind: DeviceKind, deviceId: string) => void,
  ) {
    this.#place = place;
    this.#current = current;
    for (const kind of KINDS) {
      const menu = this.#menu(kind);
      if (menu !== null) menu.onchange = () => onChoice(kind, menu.value);
    }
    this.#stop = onDevicesChanged(() => void this.fill());
  }

  /** Call again after the user has allowed devices: browsers hide the names until then. */
  async fill(): Promise<void> {
    const devices = await listDevices().catch(() => []);
    for (const kind of KINDS) {
      const menu = this.#menu(kind);
      if (menu === null) continue;
      const own = devices.filter((device) => device.kind === kind);
      menu.replaceChildren(...own.map(({ label, deviceId }) => new Option(label, deviceId)));
      const current = this.#current(kind);
      if (current !== undefined && own.some(({ deviceId }) => deviceId === current)) menu.value = current;
      const isUseful = own.length > 0 && (kind !== 'audiooutput' || isSupported('audioOutput'));
      menu.closest('label')?.toggleAttribute('hidden', !isUseful);
    }
  }

  close(): void {
    this.#stop();
  }

  #menu(kind: DeviceKind): HTMLSelectElement | null {
    const id = `${this.#place}-${kind}`;
    return document.getElementById(id) === null ? null : element(id, HTMLSelectElement);
  }
}

import { isSupported, listDevices, onDevicesChanged, type DeviceKind } from '@callplane/client-js';
import { element } from './elements.js';

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

  chosen(kind: DeviceKind): string | undefined {
    return this.#menu(kind)?.value || undefined;
  }

  close(): void {
    this.#stop();
  }

  #menu(kind: DeviceKind): HTMLSelectElement | null {
    const id = `${this.#place}-${kind}`;
    return document.getElementById(id) === null ? null : element(id, HTMLSelectElement);
  }
}

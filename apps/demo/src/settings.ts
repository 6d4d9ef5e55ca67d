import type { Call } from '@callplane/client-js';
import { DevicePicker } from './device-picker.js';
import { button, element } from './elements.js';
import { readable } from './problems.js';

/** The dialog with the devices and the id of the room. */
export function openSettings(call: Call, onProblem: (text: string) => void): { show: () => void; close: () => void } {
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
  const show = () => {
    void picker.fill();
    dialog.showModal();
  };
  button('show-settings').onclick = show;
  return {
    show,
    close: () => {
      picker.close();
      dialog.close();
    },
  };
}

import { createLocalTracks, isSupported, listDevices, onDevicesChanged } from '@callplane/client-js';

/** Shows the camera before the call, and keeps a menu of cameras. Publish the tracks later, or stop them. */
export async function preview(place: HTMLElement, menu: HTMLSelectElement) {
  if (!isSupported()) throw new Error('This browser cannot take part in calls.');
  const { tracks } = await createLocalTracks({ audio: true, video: true });
  for (const track of tracks) if (track.kind === 'video') place.append(track.attach());
  const fill = async () => {
    const cameras = await listDevices('videoinput'); // with names, now that the user has allowed one
    menu.replaceChildren(...cameras.map(({ label, deviceId }) => new Option(label, deviceId)));
  };
  onDevicesChanged(() => void fill());
  await fill();
  return tracks;
}

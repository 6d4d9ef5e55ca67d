import type { Page } from 'playwright-core';

/**
 * Replaces the camera and the microphone of a page: the picture has a color, and flashes white while the sound beeps, at
 * irregular times. A regular pattern would hide whole seconds.
 * @param color null: no flashes, and no sound
 */
export async function installFlashes(page: Page, { color, flashes }: { color: string; flashes: boolean }) {
  await page.evaluate(
    ([color, flashes]) => {
      const canvas = Object.assign(document.createElement('canvas'), { width: 320, height: 180 });
      const picture = canvas.getContext('2d')!;
      const sound = new AudioContext({ sampleRate: 48_000, latencyHint: 'interactive' });
      const [out, gain, tone] = [sound.createMediaStreamDestination(), sound.createGain(), sound.createOscillator()];
      gain.gain.value = 0;
      tone.frequency.value = 1000;
      tone.connect(gain).connect(out);
      tone.start();
      let [isOn, nextMs, seed, count] = [false, 0, 7, 0];
      const draw = () => {
        const now = performance.now();
        if (flashes && now >= nextMs) {
          isOn = !isOn;
          if (isOn) Object.assign(globalThis, { flashes: ++count });
          seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31;
          nextMs = now + (isOn ? 160 : 500 + (seed % 7) * 130);
          gain.gain.setValueAtTime(isOn ? 0.5 : 0, sound.currentTime);
        }
        picture.fillStyle = isOn ? '#fff' : color;
        picture.fillRect(0, 0, 320, 180);
        // A canvas that does not change sends no picture.
        picture.fillStyle = `hsl(0,0%,${Math.round(now / 40) % 20}%)`;
        picture.fillRect(0, 0, 8, 8);
      };
      // Timers of a worker keep their pace in a page that is not shown.
      const timer = URL.createObjectURL(new Blob(['setInterval(() => postMessage(0), 40)']));
      new Worker(timer).onmessage = draw;
      const [video] = canvas.captureStream(25).getVideoTracks();
      const [audio] = out.stream.getAudioTracks();
      navigator.mediaDevices.getUserMedia = async (wanted = {}) =>
        new MediaStream([...(wanted.video ? [video!.clone()] : []), ...(wanted.audio ? [audio!.clone()] : [])]);
    },
    [color, flashes] as const,
  );
}

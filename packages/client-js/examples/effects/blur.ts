import type { TrackProcessor } from '@callplane/client-js';
import { FilesetResolver, ImageSegmenter, type MPMask } from '@mediapipe/tasks-vision';

/**
 * Blurs everything behind the person before a camera.
 * @param wasm the URL of the folder `wasm` of `@mediapipe/tasks-vision`
 * @param model the URL of a model that tells persons from backgrounds, such as MediaPipe's `selfie_segmenter.tflite`
 */
export function backgroundBlur(wasm: string, model: string, radius = 12): TrackProcessor {
  let loading: Promise<ImageSegmenter> | undefined;
  let end = (): void => undefined;
  const load = async () =>
    ImageSegmenter.createFromOptions(await FilesetResolver.forVisionTasks(wasm), {
      baseOptions: { modelAssetPath: model, delegate: 'GPU' },
      runningMode: 'VIDEO',
      outputConfidenceMasks: true,
      outputCategoryMask: false,
    });
  return {
    async process(camera) {
      end();
      const segmenter = await (loading ??= load());
      const video = document.createElement('video');
      video.muted = true;
      video.srcObject = new MediaStream([camera]);
      await video.play();
      const canvas = document.createElement('canvas');
      const person = document.createElement('canvas');
      canvas.width = video.videoWidth;
      canvas.height = video.videoHeight;
      const [drawing, cutting] = [canvas.getContext('2d'), person.getContext('2d')];
      const [blurred] = canvas.captureStream().getVideoTracks();
      if (drawing === null || cutting === null || blurred === undefined) throw new Error('This browser has no canvas.');
      const draw = (mask: MPMask) => {
        const { width, height } = mask;
        const image = new ImageData(width, height);
        mask.getAsFloat32Array().forEach((confidence, at) => (image.data[at * 4 + 3] = confidence * 255));
        // A new size also clears the canvas.
        person.width = width;
        person.height = height;
        cutting.putImageData(image, 0, 0);
        cutting.globalCompositeOperation = 'source-in';
        cutting.drawImage(video, 0, 0, width, height);
        drawing.filter = `blur(${radius}px)`;
        drawing.drawImage(video, 0, 0);
        drawing.filter = 'none';
        drawing.drawImage(person, 0, 0, canvas.width, canvas.height);
      };
      let next = 0;
      const onPicture = () => {
        segmenter.segmentForVideo(video, performance.now(), ({ confidenceMasks }) => {
          const mask = confidenceMasks?.at(-1);
          if (mask !== undefined) draw(mask);
        });
        next = video.requestVideoFrameCallback(onPicture);
      };
      next = video.requestVideoFrameCallback(onPicture);
      end = () => {
        video.cancelVideoFrameCallback(next);
        video.srcObject = null;
        blurred.stop();
      };
      return blurred;
    },
    stop() {
      end();
      void loading?.then((segmenter) => segmenter.close());
      loading = undefined;
    },
  };
}

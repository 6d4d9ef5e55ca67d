import { expect, test } from '@jest/globals';
import { execFile } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { repositoryRoot, temporaryDirectory } from '@callplane/testing';
import { withMetadata } from './model-metadata.testkit.js';
import { openBrowser, serveFolder } from './pages.testkit.js';

const packageFolder = join(repositoryRoot, 'packages', 'client-js');
const mediapipe = join(packageFolder, 'node_modules', '@mediapipe');
/** In a process of its own: the bundler is native, and does not run inside Jest's module system. */
const BUNDLE = `
  import { build } from 'vite';
  const [entry, outDir] = process.argv.slice(1);
  await build({
    configFile: false,
    logLevel: 'warn',
    build: { outDir, lib: { entry, formats: ['es'], fileName: 'blur' } },
  });`;

/** A person before stripes as fine as the pattern of the shirt. @returns their contrast before and after, from 0 to 1 */
const RUN = `(async () => {
  const { backgroundBlur } = await import('/blur.js');
  const [width, height] = [320, 240];
  const canvas = Object.assign(document.createElement('canvas'), { width, height });
  const drawing = canvas.getContext('2d');
  const ellipse = (colour, x, y, rx, ry) => {
    drawing.fillStyle = colour;
    drawing.beginPath();
    drawing.ellipse(x, y, rx, ry, 0, 0, 7);
    drawing.fill();
  };
  const paint = () => {
    drawing.fillStyle = '#b8c4c8';
    drawing.fillRect(0, 0, width, height);
    drawing.fillStyle = '#5d6a70';
    for (let x = 0; x < width; x += 4) drawing.fillRect(x, 0, 2, height);
    ellipse('#28364f', 160, 260, 95, 90);
    drawing.save();
    drawing.clip();
    drawing.fillStyle = '#90a0c0';
    for (let x = 0; x < width; x += 4) drawing.fillRect(x, 200, 2, height);
    drawing.restore();
    ellipse('#c79a80', 160, 165, 20, 35);
    ellipse('#3a2a20', 160, 100, 50, 58);
    ellipse('#d8ab90', 160, 112, 41, 54);
    for (const x of [143, 177]) {
      ellipse('#fff', x, 104, 8, 4);
      ellipse('#30241c', x, 104, 4, 4);
      ellipse('#3a2a20', x, 93, 10, 2);
    }
    ellipse('#b98a70', 160, 122, 6, 10);
    ellipse('#a04a48', 160, 142, 14, 4);
  };
  const painting = setInterval(paint, 100);
  paint();
  const [camera] = canvas.captureStream().getVideoTracks();
  const processor = backgroundBlur('/mediapipe/wasm', '/mediapipe/model.tflite');
  const track = await processor.process(camera);
  const video = Object.assign(document.createElement('video'), { muted: true, srcObject: new MediaStream([track]) });
  await video.play();
  const seen = Object.assign(document.createElement('canvas'), { width, height });
  const contrastOf = (source, x, y) => {
    const context = seen.getContext('2d', { willReadFrequently: true });
    context.drawImage(source, 0, 0, width, height);
    const reds = [...context.getImageData(x, y, 40, 20).data].filter((_, at) => at % 4 === 0);
    return (Math.max(...reds) - Math.min(...reds)) / 255;
  };
  const contrasts = (source) => ({ background: contrastOf(source, 20, 40), shirt: contrastOf(source, 140, 212) });
  // The first pictures come before the first mask.
  for (let frames = 0; frames < 5; frames += 1) await new Promise((resolve) => video.requestVideoFrameCallback(resolve));
  const result = { before: contrasts(canvas), after: contrasts(video), picture: seen.toDataURL() };
  clearInterval(painting);
  processor.stop();
  return { ...result, isEnded: track.readyState === 'ended' };
})()`;

test('the example blurs the background, and leaves the person as it is', async () => {
  const folder = temporaryDirectory('blur');
  const entry = join(packageFolder, 'examples', 'effects', 'blur.ts');
  const bundle = promisify(execFile)('node', ['--input-type=module', '--eval', BUNDLE, entry, folder], {
    cwd: packageFolder,
  });
  const [{ newPage }] = await Promise.all([openBrowser({ more: ['--enable-unsafe-swiftshader'] }), bundle]);
  const page = await newPage();
  const model = withMetadata(readFileSync(join(mediapipe, 'selfie_segmentation', 'selfie_segmentation.tflite')));
  await page.route('**/mediapipe/model.tflite', (route) => route.fulfill({ body: model }));
  await page.route('**/mediapipe/wasm/*', (route) => {
    const name = new URL(route.request().url()).pathname.split('/').at(-1)!;
    return route.fulfill({ path: join(mediapipe, 'tasks-vision', 'wasm', name) });
  });
  await page.goto(await serveFolder(folder));
  const { before, after, isEnded, picture } = await page.evaluate<any>(RUN);
  const pictures = process.env['CALLPLANE_SCREENSHOTS'];
  if (pictures !== undefined) writeFileSync(join(pictures, 'blur.png'), Buffer.from(picture.split(',')[1], 'base64'));
  process.stderr.write(`    measured: contrasts ${JSON.stringify({ before, after })}\n`);
  expect(before.background).toBeGreaterThan(0.3);
  expect(after.background).toBeLessThan(0.1);
  expect(after.shirt).toBeGreaterThan(before.shirt / 2);
  expect(isEnded).toBe(true);
});

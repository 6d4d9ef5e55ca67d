/** The SDK's worker, whose frames a test sees before and after it. */
import '/sdk/encryption-worker.js';

const FRAMES_MAX = 400;
const seen = [];
function tap(side, stage) {
  return new TransformStream({
    transform(frame, controller) {
      const { mimeType } = frame.getMetadata();
      if (seen.length < FRAMES_MAX) seen.push({ side, stage, mimeType, bytes: [...new Uint8Array(frame.data)] });
      controller.enqueue(frame);
    },
  });
}

const transform = globalThis.onrtctransform;
globalThis.onrtctransform = ({ transformer: { readable, writable, options } }) => {
  const out = tap(options.side, 'out');
  out.readable.pipeTo(writable).catch(() => undefined);
  transform({
    transformer: { options, readable: readable.pipeThrough(tap(options.side, 'in')), writable: out.writable },
  });
};

const answer = globalThis.onmessage;
globalThis.onmessage = (event) => {
  if (event.data === 'seen') globalThis.postMessage({ type: 'seen', seen });
  else answer(event);
};

/** The SDK's worker, whose frames a test sees before and after it. */
import '/sdk/encryption-worker.js';

const FRAMES_MAX = { audio: 500, video: 60 };
/** By side, stage and codec. */
const seen = {};
function tap(side, stage) {
  return new TransformStream({
    transform(frame, controller) {
      const { mimeType } = frame.getMetadata();
      const key = `${side} ${stage} ${mimeType}`;
      const frames = (seen[key] ??= []);
      // A byte is a character: pages pass texts on much faster than lists.
      if (frames.length < FRAMES_MAX[mimeType.split('/')[0]])
        frames.push(Array.from(new Uint8Array(frame.data), (byte) => String.fromCharCode(byte)).join(''));
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

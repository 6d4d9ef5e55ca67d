/** Encrypts and decrypts in a worker, so that a busy page delays no frame. Holds the keys of one call. */
import { FrameKeys, Refused } from './encryption/frame-keys.js';
import { encryptFrame, FrameReceiver, type CarriedTrack, type EncodedFrame } from './encryption/frames.js';
import type { TransformOptions, WorkerKey, WorkerMessage, WorkerRequest } from './encryption/messages.js';
import type { Bytes } from './encryption/sframe.js';

/** The part of a worker's global object that is used here; TypeScript has it in no library beside the page's. */
interface Scope {
  postMessage(message: WorkerMessage): void;
  onmessage: ((event: { data: WorkerRequest & { number: number } }) => void) | null;
  onrtctransform:
    | ((event: {
        transformer: {
          readable: ReadableStream<EncodedFrame>;
          writable: WritableStream<EncodedFrame>;
          options: TransformOptions;
        };
      }) => void)
    | null;
}
const scope = globalThis as unknown as Scope;

let keys: FrameKeys | undefined;
const sent = new Map<number, CarriedTrack | undefined>();
const receivers = new Map<number, FrameReceiver>();

function receiverOf(id: number): FrameReceiver | undefined {
  const known = receivers.get(id);
  if (known !== undefined || keys === undefined) return known;
  const receiver = new FrameReceiver(keys, {
    state: (reason) => scope.postMessage({ type: 'state', id, reason }),
    unknownKey: (keyId) => scope.postMessage({ type: 'unknownKey', keyId }),
  });
  receivers.set(id, receiver);
  return receiver;
}

async function answerTo(request: WorkerRequest): Promise<Bytes | WorkerKey | undefined> {
  if (request.type === 'start') {
    keys = new FrameKeys(request.cipher);
    keys.onKey = ({ id: keyId, fingerprint }) => scope.postMessage({ type: 'key', keyId, fingerprint });
    return undefined;
  }
  if (keys === undefined) throw new Refused('unknown_key');
  switch (request.type) {
    case 'sender':
      keys.sender = request.sender;
      return undefined;
    case 'key':
      await keys.setKey(request.keyId, request.raw, request.use);
      return undefined;
    case 'use':
      keys.use(request.keyId);
      return undefined;
    case 'ratchet': {
      const { id: keyId, raw, fingerprint } = await keys.ratchet();
      return { keyId, raw, fingerprint };
    }
    case 'carry': {
      sent.set(request.id, request.carried);
      const receiver = receiverOf(request.id);
      if (receiver !== undefined) receiver.carried = request.carried;
      return undefined;
    }
    case 'seal':
      return keys.seal(request.metadata, request.plain);
    case 'open':
      return keys.open(request.sender, request.metadata, request.sealed);
  }
}

scope.onmessage = ({ data: { number, ...request } }) => {
  answerTo(request).then(
    (value) => scope.postMessage({ type: 'answer', number, ...(value === undefined ? {} : { value }) }),
    (error: unknown) =>
      scope.postMessage({ type: 'answer', number, refused: error instanceof Refused ? error.reason : 'malformed' }),
  );
};

scope.onrtctransform = ({ transformer: { readable, writable, options } }) => {
  const { id, side } = options;
  const mayPass = async (frame: EncodedFrame): Promise<boolean> => {
    if (side === 'receive') return (await receiverOf(id)?.receive(frame)) === true;
    const carried = sent.get(id);
    if (keys === undefined || carried === undefined) return false;
    await encryptFrame(keys, carried, frame);
    return true;
  };
  // In Chromium, two pipes with a TransformStream between them cost 35 µs more for each frame.
  const [reader, writer] = [readable.getReader(), writable.getWriter()];
  const passAll = async (): Promise<void> => {
    for (let next = await reader.read(); !next.done; next = await reader.read()) {
      // A frame that cannot be encrypted or opened is dropped: nothing passes as it is.
      if (await mayPass(next.value).catch(() => false)) await writer.write(next.value);
    }
  };
  passAll().catch(() => undefined);
};

/** The SDK's worker, whose frames a test sees before and after it, and changes as a hostile media server could. */
import '/sdk/encryption-worker.js';

const FRAMES_MAX = { audio: 3000, video: 600 };
/** By side, stage and codec. */
const seen = {};
/** Digests of the frames that this page has sent (`given`) or may play (`played`), by the person and track they are shown as. */
const digests = { given: {}, played: {} };
/** Frames that this page may play. */
let played = 0;
/** Every nonce that has encrypted something, after its key. */
const nonces = [];
let attack = 'none';
/** Frames since the attack began, by kind. */
let attacked = {};
let sender = '';
const carried = new Map();
const queues = new Map();

/** Changes of a hostile media server to a frame; undefined: it passes nothing on. */
const attacks = {
  none: (data) => data,
  replay: (_data, { past }) => past,
  cut: (data) => data.slice(0, -5),
  flip(data) {
    const bytes = new Uint8Array(data.slice(0));
    bytes[Math.min(8, bytes.length - 1)] ^= 1;
    return bytes.buffer;
  },
  /** To another person, at whose receiver it has not been. */
  swap(data, { id, kind }) {
    const queueOf = (one) => queues.get(one) ?? queues.set(one, []).get(one);
    queueOf(id).push(data);
    const others = [...carried].filter(([one, track]) => one !== id && track?.kind === kind);
    return others.map(([one]) => queueOf(one).shift()).find((one) => one !== undefined);
  },
};

function digestOf(data) {
  let hash = 0x811c9dc5;
  for (const byte of new Uint8Array(data)) hash = Math.imul(hash ^ byte, 0x01000193);
  return `${data.byteLength} ${hash}`;
}

function see(side, stage, { data, mime }) {
  const frames = (seen[`${side} ${stage} ${mime}`] ??= []);
  // A byte is a character: pages pass texts on much faster than lists.
  if (frames.length < FRAMES_MAX[mime.split('/')[0]])
    frames.push(Array.from(new Uint8Array(data), (byte) => String.fromCharCode(byte)).join(''));
}

function tap({ side, id }, stage) {
  let past;
  return new TransformStream({
    transform(frame, controller) {
      const { mimeType: mime } = frame.getMetadata();
      if (side === 'receive' && stage === 'in') {
        const kind = mime.split('/')[0];
        const data = attacks[attack](frame.data, { past, id, kind });
        attacked[kind] = (attacked[kind] ?? 0) + 1;
        if (attack === 'none') past = frame.data.slice(0);
        if (data === undefined) return;
        frame.data = data;
      }
      see(side, stage, { data: frame.data, mime });
      const list = { 'send in': digests.given, 'receive out': digests.played }[`${side} ${stage}`];
      if (side === 'receive' && stage === 'out') played += 1;
      const track = carried.get(id);
      if (list !== undefined && track !== undefined)
        (list[`${side === 'send' ? sender : track.sender} ${track.label}`] ??= []).push(digestOf(frame.data));
      controller.enqueue(frame);
    },
  });
}

const { subtle } = crypto;
const [importKey, encrypt] = [subtle.importKey.bind(subtle), subtle.encrypt.bind(subtle)];
const hex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
const keyTexts = new WeakMap();
subtle.importKey = async (format, raw, ...more) => {
  const text = hex(raw);
  const key = await importKey(format, raw, ...more);
  keyTexts.set(key, text);
  return key;
};
subtle.encrypt = (algorithm, key, plain) => {
  nonces.push(`${keyTexts.get(key)} ${hex(algorithm.iv)}`);
  return encrypt(algorithm, key, plain);
};

const transform = globalThis.onrtctransform;
globalThis.onrtctransform = ({ transformer: { readable, writable, options } }) => {
  const out = tap(options, 'out');
  out.readable.pipeTo(writable).catch(() => undefined);
  transform({
    transformer: { options, readable: readable.pipeThrough(tap(options, 'in')), writable: out.writable },
  });
};

const answer = globalThis.onmessage;
globalThis.onmessage = (event) => {
  const { data } = event;
  if (data === 'counts' || data === 'notes') {
    const notes = data === 'notes' ? { seen, ...digests, nonces } : { attacked, played };
    globalThis.postMessage({ type: 'spied', notes });
    return;
  }
  if (data.attack !== undefined) {
    ({ attack } = data);
    attacked = {};
    return;
  }
  if (data.type === 'sender') ({ sender } = data);
  if (data.type === 'carry') carried.set(data.id, data.carried);
  answer(event);
};

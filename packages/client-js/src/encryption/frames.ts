import { escapeH264, splitFrame, unescapeH264 } from './clear-head.js';
import { Refused, type FrameKeys, type Refusal } from './frame-keys.js';
import { bytesOf, concat, type Bytes } from './sframe.js';

/** The part of `RTCEncodedVideoFrame` and `RTCEncodedAudioFrame` that is used here. */
export interface EncodedFrame {
  data: ArrayBuffer;
  getMetadata(): { mimeType?: string };
}

/** The track that a sender or a receiver carries at present. */
export interface CarriedTrack {
  kind: 'audio' | 'video';
  /** Kind, source and track id that the page shows. */
  label: string;
  /** Participant id, session and name that the page shows. */
  sender: string;
}

/** Failures in a row after which a track counts as undecryptable. */
const FAILURES_MAX = 10;
/** How long a frame waits for the message that says whose it is. */
const NAME_WAIT_MS = 500;

const codecOf = (frame: EncodedFrame, kind: CarriedTrack['kind']): string =>
  frame.getMetadata().mimeType?.split('/')[1]?.toLowerCase() ?? (kind === 'audio' ? 'opus' : 'vp8');

/** The authenticated bytes of a frame: nobody can move it to another track or decoder, or change its clear head. */
function metadataOf({ label }: CarriedTrack, codec: string, authentic: Bytes): Bytes {
  return concat(bytesOf(`${label}${codec}\0`), authentic);
}

export async function encryptFrame(keys: FrameKeys, carried: CarriedTrack, frame: EncodedFrame): Promise<void> {
  const codec = codecOf(frame, carried.kind);
  const { head, rest, authentic } = splitFrame(codec, new Uint8Array(frame.data));
  const sealed = await keys.seal(metadataOf(carried, codec, authentic), rest);
  frame.data = concat(head, codec === 'h264' ? escapeH264(sealed) : sealed).buffer;
}

/** @throws Refused */
async function decryptFrame(keys: FrameKeys, carried: CarriedTrack, frame: EncodedFrame): Promise<void> {
  const codec = codecOf(frame, carried.kind);
  const { head, rest, authentic } = splitFrame(codec, new Uint8Array(frame.data));
  const sealed = codec === 'h264' ? unescapeH264(rest) : rest;
  const plain = await keys.open(carried.sender, metadataOf(carried, codec, authentic), sealed);
  frame.data = concat(head, plain).buffer;
}

/** Opens the frames of one receiver, whose section may carry one track after the other. */
export class FrameReceiver {
  #carried: CarriedTrack | undefined;
  #onNamed: (() => void)[] = [];
  #failures = 0;
  /** Whether a failure may come from an outdated name. */
  #mayWait = true;

  constructor(
    private readonly keys: FrameKeys,
    private readonly on: {
      /** Many frames in a row have failed, or after failures (undefined) one is opened. */
      state: (reason: Refusal | undefined) => void;
      unknownKey: (keyId: number) => void;
    },
  ) {}

  /** Undefined: the section carries nothing. */
  set carried(carried: CarriedTrack | undefined) {
    this.#carried = carried;
    this.#failures = 0;
    this.#mayWait = true;
    for (const named of this.#onNamed.splice(0)) named();
  }

  /** @returns whether the frame may be played. Nothing else ever is. */
  async receive(frame: EncodedFrame): Promise<boolean> {
    const encrypted = frame.data;
    let refused = await this.#open(frame);
    if (refused?.reason === 'wrong_key' && this.#mayWait) {
      // Media may overtake the message that names the track of the section. Later frames wait behind this one.
      await new Promise<void>((resolve) => {
        this.#onNamed.push(resolve);
        setTimeout(resolve, NAME_WAIT_MS);
      });
      frame.data = encrypted;
      refused = await this.#open(frame);
    }
    this.#mayWait = refused === undefined;
    this.#note(refused);
    return refused === undefined;
  }

  async #open(frame: EncodedFrame): Promise<Refused | undefined> {
    if (this.#carried === undefined) return new Refused('wrong_key');
    try {
      await decryptFrame(this.keys, this.#carried, frame);
      return undefined;
    } catch (error) {
      return error instanceof Refused ? error : new Refused('malformed');
    }
  }

  #note(refused: Refused | undefined): void {
    if (refused === undefined) {
      // The pictures before are lost: the next one must stand alone.
      if (this.#failures > 0) this.on.state(undefined);
      this.#failures = 0;
      return;
    }
    if (this.#carried === undefined) return;
    this.#failures += 1;
    if (this.#failures === FAILURES_MAX) this.on.state(refused.reason);
    if (refused.keyId !== undefined) this.on.unknownKey(refused.keyId);
  }
}

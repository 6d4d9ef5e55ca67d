import type { Refusal } from './frame-keys.js';
import type { CarriedTrack } from './frames.js';
import type { Bytes, Cipher } from './sframe.js';

/** Requests to the worker. Each has one answer. */
export type WorkerRequest =
  | { type: 'start'; cipher: Cipher }
  | { type: 'sender'; sender: string }
  | { type: 'key'; keyId: number; raw: Bytes; use: boolean }
  | { type: 'use'; keyId: number }
  | { type: 'ratchet' }
  /** The track of a sender or a receiver from now on. */
  | { type: 'carry'; id: number; carried: CarriedTrack | undefined }
  | { type: 'seal'; metadata: Bytes; plain: Bytes }
  | { type: 'open'; sender: string; metadata: Bytes; sealed: Bytes };

export interface WorkerKey {
  keyId: number;
  raw: Bytes;
  fingerprint: string;
}

export type WorkerMessage =
  | { type: 'answer'; number: number; value?: Bytes | WorkerKey; refused?: Refusal }
  /** This key seals from now on. */
  | { type: 'key'; keyId: number; fingerprint: string }
  | { type: 'state'; id: number; reason: Refusal | undefined }
  | { type: 'unknownKey'; keyId: number };

/** Options of an `RTCRtpScriptTransform`. */
export interface TransformOptions {
  id: number;
  side: 'send' | 'receive';
}

import type { PartMessage } from '../protocol.generated.js';
import type { StreamInfo } from './incoming.js';

/** Sealed for its place, a part cannot be opened at another one, and no server can end a stream early. */
export function partPurpose({ streamId, offset, last }: Pick<PartMessage, 'streamId' | 'offset' | 'last'>): string {
  return `/part/${streamId}/${offset}${last === true ? '/last' : ''}`;
}

export function openPurpose(streamId: string, method: string): string {
  return `/stream/${streamId}/${method}`;
}

/** The description of a stream. Its sender may be hostile. */
export function readInfo(payload: unknown): Pick<StreamInfo, 'name' | 'contentType' | 'size' | 'attributes'> {
  const { name, contentType, size, attributes } = (payload ?? {}) as Record<string, unknown>;
  const text = (value: unknown) => (typeof value === 'string' ? value : undefined);
  const entries = Object.entries(attributes ?? {}).filter(([, value]) => typeof value === 'string');
  return {
    name: text(name),
    contentType: text(contentType),
    size: Number.isInteger(size) ? (size as number) : undefined,
    attributes: Object.fromEntries(entries) as Record<string, string>,
  };
}

export function toBase64(bytes: Uint8Array): string {
  return btoa(String.fromCharCode(...bytes));
}

export function fromBase64(text: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(atob(text), (char) => char.charCodeAt(0));
}

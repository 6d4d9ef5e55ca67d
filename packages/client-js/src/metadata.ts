/**
 * The metadata of your application. Declare it once, and the SDK's types follow:
 *
 *     declare module '@callplane/client-js' {
 *       interface Metadata {
 *         room: { topic: string };
 *         participant: { avatarUrl?: string };
 *       }
 *     }
 *
 * The SDK does not check values against it: validate metadata that others write.
 */
// oxlint-disable-next-line typescript/no-empty-object-type -- applications add its properties
export interface Metadata {}

type Json = Record<string, unknown>;
export type RoomMetadata = Metadata extends { room: infer Room } ? Room : Json;
export type ParticipantMetadata = Metadata extends { participant: infer Participant } ? Participant : Json;

/** The room, as the REST API returns it. */
export interface Room {
  id: string;
  projectId: string;
  environmentId: string;
  name: string;
  metadata: RoomMetadata;
  status: 'created' | 'active' | 'ending' | 'ended';
  maxParticipants: number;
  /** `required`: clients send only media that they have encrypted end to end. Fixed at the creation. */
  encryption: 'none' | 'required';
  /** ISO 8601, UTC, as the others. */
  createdAt: string;
  startedAt: string | null;
  endedAt: string | null;
  /** Since when the room is recorded; null while it is not. */
  recordingSince: string | null;
}
